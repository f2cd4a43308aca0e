//! Percentiles as exact parts, and where in a histogram they lie.

use std::fmt;
use std::str::FromStr;

use hdrhistogram::Histogram;
use hourglass_runs::store::StoredWakeUp;
use hourglass_workload::memory::LatencyRecorder;
use thiserror::Error;

/// Parts in a whole: six decimals of a per cent.
const WHOLE: u64 = 100_000_000;
const DECIMALS: usize = 6;

/// A part of all samples, in steps of a millionth of a per cent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percentile(u64);

#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ParsePercentileError {
    /// No `p`.
    #[error("a percentile begins with p")]
    NoP,
    #[error("p takes a number with at most {DECIMALS} decimals")]
    Number,
    #[error("it lies above 0 and not above 100")]
    Range,
}

impl Percentile {
    /// Whether the part of `count` samples that is not among the `beyond` ones is this large.
    /// Nothing measured is no such part.
    pub fn holds(self, count: u64, beyond: u64) -> bool {
        let within = u128::from(count.saturating_sub(beyond));
        count > 0 && within * u128::from(WHOLE) >= u128::from(count) * u128::from(self.0)
    }

    /// The least value of the histogram that so large a part does not exceed, to its digits.
    pub(crate) fn of(self, histogram: &Histogram<u64>) -> u64 {
        let wanted = u128::from(histogram.len()) * u128::from(self.0);
        let mut seen = 0u128;
        for step in histogram.iter_recorded() {
            seen += u128::from(step.count_since_last_iteration());
            if seen * u128::from(WHOLE) >= wanted {
                return step.value_iterated_to();
            }
        }
        0
    }
}

impl FromStr for Percentile {
    type Err = ParsePercentileError;

    fn from_str(text: &str) -> Result<Percentile, ParsePercentileError> {
        let number = text.strip_prefix('p').ok_or(ParsePercentileError::NoP)?;
        let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(decimals) || decimals.len() > DECIMALS {
            return Err(ParsePercentileError::Number);
        }
        let parts: u64 = format!("{whole}{decimals:0<DECIMALS$}")
            .parse()
            .map_err(|_| ParsePercentileError::Range)?;
        if (1..=WHOLE).contains(&parts) {
            Ok(Percentile(parts))
        } else {
            Err(ParsePercentileError::Range)
        }
    }
}

impl fmt::Display for Percentile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = WHOLE / 100;
        let text = format!("p{}.{:0DECIMALS$}", self.0 / one, self.0 % one);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// The histogram of wake-ups on a grid of `period_ns`, with each lost period at the lateness at
/// which it could have been served: that is what a reader of percentiles asks for, and what
/// leaving lost periods out would hide (coordinated omission).
pub(crate) fn with_lost(lateness: &LatencyRecorder, period_ns: Option<u64>) -> Histogram<u64> {
    let mut all = lateness.histogram.clone();
    let Some(period) = period_ns.filter(|period| *period > 0) else { return all };
    for step in lateness.histogram.iter_recorded() {
        let mut late = step.value_iterated_to().min(lateness.max_ns);
        while late > period {
            late -= period;
            all.saturating_record_n(late, step.count_since_last_iteration());
        }
    }
    all
}

/// Periods that a loop skipped at once are counted up to this number: a longer pause was no lateness.
const MOST_SKIPPED: i64 = 1_000_000;

/// The same of a loop that says when each period was due: the periods between two that began further apart are lost. Of
/// `wake_ups`, in order.
pub(crate) fn with_skipped(
    begun: &LatencyRecorder,
    wake_ups: impl Iterator<Item = StoredWakeUp>,
    period_ns: u64,
) -> Histogram<u64> {
    let mut all = begun.histogram.clone();
    let period = i64::try_from(period_ns.max(1)).unwrap_or(i64::MAX);
    // When the one before was due, and when it began.
    let mut last: Option<(i64, i64)> = None;
    for wake_up in wake_ups {
        let Some(woke) = wake_up.woke_ns else { continue };
        let due = woke.saturating_sub_unsigned(wake_up.lateness_ps / 1_000);
        let (before, served) = last.replace((due, woke)).unwrap_or((due, woke));
        let mut skipped = before.saturating_add(period);
        let end = before.saturating_add(period.saturating_mul(MOST_SKIPPED)).min(due);
        while skipped.saturating_add(period / 2) < end {
            let begin = if served >= skipped { served } else { woke };
            all.saturating_record(begin.saturating_sub(skipped).max(0).unsigned_abs());
            skipped = skipped.saturating_add(period);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loop of 10 ms that began its second period 35 ms late. One that skips loses three; one that catches up
    /// begins them all, late.
    #[test]
    fn periods_that_a_loop_skipped_count_with_the_lateness_they_would_have_had() {
        let ms = |ms: u64| ms * 1_000_000;
        let skips: [(u64, u64); 3] = [(0, 0), (10, 45), (50, 50)];
        let catches_up = [(0, 0), (10, 45), (20, 45), (30, 45), (40, 45), (50, 50)];
        for periods in [&skips[..], &catches_up[..]] {
            let mut begun = LatencyRecorder::new(10, false);
            periods.iter().for_each(|(due, began)| begun.record(ms(began - due), ms(began - due)));
            let wake_up = |(due, began): &(u64, u64)| StoredWakeUp {
                woke_ns: Some(ms(*began) as i64),
                lateness_ps: ms(began - due) * 1_000,
            };
            let all = with_skipped(&begun, periods.iter().map(wake_up), ms(10));
            assert_eq!((all.len(), begun.histogram.len()), (6, periods.len() as u64));
            let about = |wanted: u64| all.count_between(ms(wanted) - 100_000, ms(wanted) + 100_000);
            assert_eq!([35, 25, 15, 5].map(about), [1; 4], "{periods:?}");
        }
    }

    fn percentile(text: &str) -> Percentile {
        text.parse().unwrap()
    }

    #[test]
    fn read_and_printed() {
        for (text, parts, printed) in [
            ("p50", 50_000_000, "p50"),
            ("p99.9", 99_900_000, "p99.9"),
            ("p99.990", 99_990_000, "p99.99"),
            ("p99.999999", 99_999_999, "p99.999999"),
            ("p100", 100_000_000, "p100"),
            ("p0.5", 500_000, "p0.5"),
        ] {
            assert_eq!(percentile(text), Percentile(parts));
            assert_eq!(percentile(text).to_string(), printed);
        }
        for text in ["", "50", "p", "p.5", "p5.", "p0", "p100.1", "p-1", "p1e2", "p99.9999999"] {
            assert!(text.parse::<Percentile>().is_err(), "{text}");
        }
    }

    /// 99.9 % of 1000 is 999: one may be beyond, not two.
    #[test]
    fn the_boundary_is_exact() {
        let p = percentile("p99.9");
        assert!(p.holds(1_000, 1) && !p.holds(1_000, 2));
        assert!(p.holds(999, 0) && !p.holds(999, 1));
        assert!(!p.holds(0, 0));
        let p = percentile("p100");
        assert!(p.holds(u64::MAX, 0) && !p.holds(u64::MAX, 1));
        assert!(percentile("p33.333333").holds(3, 2) && !percentile("p33.333334").holds(3, 2));
    }

    /// Against sorting.
    #[test]
    fn its_place_in_a_histogram() {
        let values: Vec<u64> = (1..=1_000).collect();
        let mut histogram = Histogram::new(3).unwrap();
        values.iter().for_each(|value| histogram.saturating_record(*value));
        for (text, wanted) in [("p50", 500), ("p99.9", 999), ("p99.91", 1_000), ("p0.000001", 1)] {
            assert_eq!(percentile(text).of(&histogram), wanted, "{text}");
        }
    }
}
