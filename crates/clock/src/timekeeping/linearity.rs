//! Whether a counter kept one rate over the samples of a row.
//!
//! A check of the latest interval alone sees nothing that is smaller than its two brackets, however
//! long that goes on: where a read is slow, a rate that is off by a thousandth stays within them. Over
//! a row of samples it adds up, and the brackets do not.

use super::clock_offsets::difference;
use super::event::ClockEventKind;
use super::sample::{ClockSample, SampleWindow, SlopeFit};
use super::slope::{RELATIVE_BITS, relative, share_of};

/// How far a sample is from the straight line between the first and the last of its row, and how
/// far samples and the drift allowed for explain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Nonlinearity {
    /// The position of the sample, counted from the oldest.
    place: usize,
    /// The line's time minus the sample's, ns.
    pub(super) error_ns: i64,
    /// The allowed difference there, ns.
    pub(super) bound_ns: u64,
    /// Time between the sample and the last, ns.
    behind_ns: u64,
}

/// What two rows of one counter say, one against `CLOCK_MONOTONIC`, one against its raw form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rows {
    /// One rate explains the first row.
    Straight,
    /// The counter left both clocks.
    CounterBent(Nonlinearity),
    /// The kernel slewed its clock; the counter goes with the raw one.
    ReferenceBent(Nonlinearity),
    /// One of the two cases; the error of the slope grows by this (2^-32).
    Doubtful(u64),
}

/// A line whose slope is known no better than to 1/16 (2^-32) shows no bend.
const USELESS: u64 = 1 << (RELATIVE_BITS - 4);
/// Two clock readings and a product, each rounded down, ns.
const ROUNDING_NS: u64 = 3;

impl Nonlinearity {
    fn is_beyond(&self) -> bool {
        self.error_ns.unsigned_abs() > self.bound_ns
    }

    pub(super) fn residual(&self) -> ClockEventKind {
        ClockEventKind::Residual { error_ns: self.error_ns, bound_ns: self.bound_ns }
    }

    /// By how much the slope behind the sample may differ from that of the whole line, 2^-32.
    pub(super) fn doubt(&self) -> u64 {
        relative(self.error_ns.unsigned_abs().saturating_add(self.bound_ns), self.behind_ns)
    }
}

/// Judges the samples of `row` that are at most `longest_ns` before `latest`, which follows them, and
/// those that `raw_row` has of the same moments. The rate may be off by `allowance` (2^-32) from one
/// that is common to all. Costs a division, and one more for each sample.
pub(super) fn check_linearity(
    (row, latest): (&SampleWindow, &ClockSample),
    (raw_row, raw_latest): (&SampleWindow, &ClockSample),
    allowance: u64,
    longest_ns: u64,
) -> Rows {
    let is_near = |sample: &&ClockSample| latest.ns.saturating_sub(sample.ns) <= longest_ns;
    let count = row.samples().iter().rev().take_while(is_near).count();
    let worst = bends(row.newest(count), latest, allowance)
        .max_by_key(|bend| i128::from(bend.error_ns.unsigned_abs()) - i128::from(bend.bound_ns));
    let Some(bend) = worst.filter(Nonlinearity::is_beyond) else { return Rows::Straight };
    let raw = bends(raw_row.newest(count), raw_latest, allowance);
    match raw.into_iter().find(|raw| raw.place == bend.place) {
        Some(raw) if !raw.is_beyond() => {
            let apart_ns = bend.error_ns.abs_diff(raw.error_ns);
            if apart_ns > bend.bound_ns.saturating_add(raw.bound_ns) {
                Rows::ReferenceBent(bend)
            } else {
                Rows::Doubtful(bend.doubt())
            }
        }
        _ => Rows::CounterBent(bend),
    }
}

/// Each sample between the first and `last`, against the line through these two; nothing where that
/// is not known well enough.
fn bends<'a>(
    samples: &'a [ClockSample],
    last: &'a ClockSample,
    allowance: u64,
) -> impl Iterator<Item = Nonlinearity> + 'a {
    let first = samples.first();
    let line = first.and_then(|first| SlopeFit::between(first, last).map(|line| (first, line)));
    let line = line.filter(|(_, line)| line.error <= USELESS);
    let between = samples.iter().enumerate().skip(1);
    between.filter_map(move |(place, at)| {
        let (first, line) = line?;
        Some(line.bend_at(place, [first, at, last], allowance))
    })
}

impl SlopeFit {
    fn bend_at(
        &self,
        place: usize,
        [first, at, last]: [&ClockSample; 3],
        allowance: u64,
    ) -> Nonlinearity {
        let ticks = at.ticks.wrapping_sub(first.ticks);
        let by_line_ns = i64::try_from(self.slope.ns_floor(ticks)).unwrap_or(i64::MAX);
        let error_ns = by_line_ns.saturating_sub(difference(at.ns, first.ns));
        // The line is off by a mean of what its ends are off by.
        let ends = first.half_ticks.max(last.half_ticks);
        let brackets_ns = self.slope.ns_ceil(at.half_ticks.saturating_add(ends));
        // The slope that makes nanoseconds of ticks is itself off by at most 1/16.
        let brackets_ns = brackets_ns.saturating_add(share_of(brackets_ns, 2 * self.error));
        // Before and behind the sample the rate may be off in opposite directions.
        let before_ns = at.ns.saturating_sub(first.ns);
        let behind_ns = last.ns.saturating_sub(at.ns);
        let product = u128::from(before_ns) * u128::from(behind_ns) * 2;
        let apart_ns = u64::try_from(product / u128::from(self.window_ns.max(1)));
        let drift_ns = share_of(apart_ns.unwrap_or(u64::MAX), allowance);
        let bound_ns = brackets_ns.saturating_add(drift_ns).saturating_add(ROUNDING_NS);
        Nonlinearity { place, error_ns, bound_ns, behind_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::super::slope::relative_from_ppb;
    use super::*;

    const MS: u64 = 1_000_000;
    const LONG: u64 = 32_000 * MS;

    /// Samples every `every_ns` that may be off by `half_ns`, at 2 ticks a ns; from the sample
    /// `bent_at` on the counter is faster by `ppb`.
    fn row(
        every_ns: u64,
        half_ns: u64,
        bent_at: u64,
        ppb: u64,
        start: u64,
    ) -> (SampleWindow, ClockSample) {
        let sample = |place: u64| {
            let extra = place.saturating_sub(bent_at) * every_ns / 1_000 * ppb / 1_000_000;
            let ticks = start.wrapping_add((place * every_ns + extra) * 2);
            ClockSample { ticks, half_ticks: half_ns * 2, ns: place * every_ns }
        };
        let mut row = SampleWindow::EMPTY;
        (0..15).for_each(|place| row.push(sample(place)));
        (row, sample(15))
    }

    /// Both clocks give one verdict.
    fn both((row, latest): (SampleWindow, ClockSample), allowance: u64, longest_ns: u64) -> Rows {
        check_linearity((&row, &latest), (&row, &latest), allowance, longest_ns)
    }

    /// The bug: reads that take 100 us hid 2,000 ppm for good, since a check of 20 ms may be off by
    /// 0.2 ms; over 300 ms it is 0.3 ms off in the middle.
    #[test]
    fn a_rate_that_hides_in_the_brackets_of_an_interval_bends_the_row() {
        for start in [0, u64::MAX - 100 * MS] {
            let found = both(row(20 * MS, 50_000, 7, 2_000_000, start), 0, LONG);
            let Rows::CounterBent(bend) = found else { panic!("{found:?}") };
            assert_eq!((bend.place, bend.behind_ns), (7, 8 * 20 * MS));
            assert!((-160_000..-140_000).contains(&bend.error_ns), "{bend:?}");
            assert!((99_000..102_000).contains(&bend.bound_ns), "{bend:?}");
            assert_eq!(both(row(20 * MS, 50_000, 7, 0, start), 0, LONG), Rows::Straight);
        }
    }

    #[test]
    fn what_brackets_or_drift_explain_is_no_bend() {
        let little = row(20 * MS, 50_000, 7, 1_300_000, 0);
        assert_eq!(both(little, 0, LONG), Rows::Straight, "97 us of 100");
        let bent = row(20 * MS, 50_000, 7, 2_000_000, 0);
        let allowed = relative_from_ppb(1_000_000);
        assert_eq!(both(bent, allowed, LONG), Rows::Straight, "1,000 ppm either way");
        assert!(matches!(both(bent, allowed / 8, LONG), Rows::CounterBent(_)));
        assert_eq!(both(bent, 0, 100 * MS), Rows::Straight, "what is longer ago is not asked");
    }

    /// Who left whom is said only where the brackets leave no doubt: one row was beyond its bound, the
    /// other just not, and the counter that had changed its rate was taken for a slewed kernel, again
    /// and again.
    #[test]
    fn a_row_just_beyond_and_one_just_within_accuse_no_source() {
        let of = |ppb| row(20 * MS, 50_000, 7, ppb, 0);
        let judged = |ppb, raw_ppb| {
            let ((row, latest), (raw_row, raw_latest)) = (of(ppb), of(raw_ppb));
            check_linearity((&row, &latest), (&raw_row, &raw_latest), 0, LONG)
        };
        let doubtful = judged(1_500_000, 1_300_000);
        let Rows::Doubtful(doubt) = doubtful else { panic!("{doubtful:?}") };
        assert!(
            doubt >= relative_from_ppb(800_000),
            "it is off by 800 ppm behind the bend: {doubt}"
        );
        assert!(matches!(judged(3_500_000, 0), Rows::ReferenceBent(_)));
        assert!(matches!(judged(3_500_000, 3_400_000), Rows::CounterBent(_)));
        assert_eq!(judged(0, 3_400_000), Rows::Straight);
    }

    #[test]
    fn a_row_too_short_to_know_the_rate_says_nothing() {
        let bent = row(60_000, 50_000, 7, 100_000_000, 0);
        assert_eq!(both(bent, 0, LONG), Rows::Straight, "known to 1/9");
        assert_eq!(both((SampleWindow::EMPTY, bent.1), 0, LONG), Rows::Straight);
    }
}
