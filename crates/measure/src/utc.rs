//! Where this node's monotonic clock stands to UTC, and the bound on that, for the manifest.

use hourglass_documents::manifest::UtcReading;
use hourglass_sys::adjtimex::{self, ClockPair, Discipline};

/// Reads both clocks and asks the kernel for its bound; some microseconds, no privilege.
pub(crate) fn reading() -> UtcReading {
    stated(adjtimex::both_clocks(), adjtimex::discipline().ok())
}

/// The time in UTC; without a bound where the clock is not synchronised, or the kernel does not say.
fn stated(both: ClockPair, discipline: Option<Discipline>) -> UtcReading {
    let bound = discipline.filter(|found| found.synchronised);
    UtcReading {
        monotonic_ns: both.monotonic_ns,
        realtime_ns: both.realtime_ns,
        bracket_ns: both.bracket_ns,
        max_error_ns: bound.and_then(|found| found.max_error_us.checked_mul(1_000)),
        source: if discipline.is_some() { "adjtimex" } else { "none" }.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_holds_only_while_the_clock_is_synchronised() {
        let both = ClockPair { monotonic_ns: 5, realtime_ns: 7, bracket_ns: 2 };
        let found = Discipline {
            synchronised: true,
            max_error_us: 1_500,
            frequency: 0,
            tick_us: 10_000,
            slewing: false,
            leap: adjtimex::Leap::None,
        };
        let with = stated(both, Some(found));
        assert_eq!((with.max_error_ns, with.source.as_str()), (Some(1_500_000), "adjtimex"));
        assert_eq!((with.monotonic_ns, with.realtime_ns, with.bracket_ns), (5, 7, 2));
        let without = stated(both, Some(Discipline { synchronised: false, ..found }));
        assert_eq!((without.max_error_ns, without.source.as_str()), (None, "adjtimex"));
        let forbidden = stated(both, None);
        assert_eq!((forbidden.max_error_ns, forbidden.source.as_str()), (None, "none"));
        let huge = stated(both, Some(Discipline { max_error_us: u64::MAX, ..found }));
        assert_eq!(huge.max_error_ns, None);
    }

    #[test]
    fn a_manifest_has_a_bound_or_says_null() {
        let written = serde_json::to_value(UtcReading::default()).unwrap();
        assert!(written["max_error_ns"].is_null() && written.get("source").is_some(), "{written}");
    }
}
