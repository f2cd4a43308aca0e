//! Moments of the wall clock in the words of other formats.

use jiff::Timestamp;

/// `Tue, 03 Dec 2019 15:56:57 +0000`, as mail has it (RFC 5322); UTC. Input: nanoseconds since
/// 1970. Empty beyond the year 9999.
pub(crate) fn mail(realtime_ns: u64) -> String {
    formatted(realtime_ns, "%a, %d %b %Y %H:%M:%S +0000")
}

/// `2019-12-03 15:56:57 UTC`. Input: nanoseconds since 1970. Empty beyond the year 9999.
pub(crate) fn plain(realtime_ns: u64) -> String {
    formatted(realtime_ns, "%Y-%m-%d %H:%M:%S UTC")
}

/// `2019-12-03T15:56:57`; UTC. Input: nanoseconds since 1970. Empty beyond the year 9999.
pub(crate) fn iso(realtime_ns: u64) -> String {
    formatted(realtime_ns, "%Y-%m-%dT%H:%M:%S")
}

fn formatted(realtime_ns: u64, format: &str) -> String {
    Timestamp::from_nanosecond(i128::from(realtime_ns))
        .map(|moment| moment.strftime(format).to_string())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_in_utc() {
        let ns = 1_575_388_617_900_000_000;
        assert_eq!(mail(ns), "Tue, 03 Dec 2019 15:56:57 +0000");
        assert_eq!(iso(ns), "2019-12-03T15:56:57");
        assert_eq!(plain(ns), "2019-12-03 15:56:57 UTC");
        // The last nanosecond of 64 bits is in 2554.
        assert_eq!(plain(u64::MAX), "2554-07-21 23:34:33 UTC");
    }
}
