//! The counter and a clock of the reference at one moment, and what a row of such moments says.

use super::slope::{Slope, relative};
use super::timebase::{ReferenceClock, SourceId, Timebase};

/// A counter and a clock at one moment, known to within a bracket.
///
/// [`crate::Pair`] is the same for a measuring loop's counter and `CLOCK_MONOTONIC`; this one is
/// for any timebase and any clock of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockSample {
    /// The counter, in the middle of the bracket.
    pub(super) ticks: u64,
    /// How far `ticks` may be off: half the width of the bracket, ticks rounded up, and what clock
    /// and counter move by at once. That is enough for later readings too: the bracket's count can
    /// only make the time read later, a reading's own count only earlier.
    pub(super) half_ticks: u64,
    /// The clock, ns rounded down.
    pub(super) ns: u64,
}

/// A counter that went backwards within a bracket, where nothing but time came between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BackwardStep {
    pub(super) ticks: u64,
}

/// The narrowest of at most `tries` brackets (counter, clock, counter), of two that move by
/// `grain` ticks at once. Stops early at a half-width of `enough_ticks`.
///
/// # Errors
/// The counter went backwards, once: no narrower bracket speaks against that.
pub(super) fn narrowest<B: Timebase>(
    base: &B,
    source: SourceId,
    scale: ReferenceClock,
    grain: u64,
    tries: u32,
    enough_ticks: u64,
) -> Result<ClockSample, BackwardStep> {
    let mut best = bracket(base, source, scale, grain)?;
    for _ in 1..tries {
        if best.half_ticks <= enough_ticks {
            break;
        }
        let next = bracket(base, source, scale, grain)?;
        if next.half_ticks < best.half_ticks {
            best = next;
        }
    }
    Ok(best)
}

fn bracket<B: Timebase>(
    base: &B,
    source: SourceId,
    scale: ReferenceClock,
    grain: u64,
) -> Result<ClockSample, BackwardStep> {
    let before = base.ticks_enclosing(source);
    let ns = base.reference_ns(scale);
    let after = base.ticks_ordered(source);
    let width = after.wrapping_sub(before);
    if width > u64::MAX / 2 {
        return Err(BackwardStep { ticks: width.wrapping_neg() });
    }
    let half_ticks = width.div_ceil(2).saturating_add(grain);
    Ok(ClockSample { ticks: before.wrapping_add(width / 2), half_ticks, ns })
}

/// A slope and the bound on its relative error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlopeFit {
    pub(super) slope: Slope,
    /// Relative, 2^-32: what the brackets leave open, without any allowance for drift.
    pub(super) error: u64,
    /// Time between the samples, ns.
    pub(super) window_ns: u64,
}

impl SlopeFit {
    /// The slope between two samples; `None` if the counter or the clock did not advance.
    pub(super) fn between(first: &ClockSample, last: &ClockSample) -> Option<SlopeFit> {
        let ticks = last.ticks.wrapping_sub(first.ticks);
        let window_ns = last.ns.checked_sub(first.ns)?;
        if ticks > u64::MAX / 2 {
            return None;
        }
        let slope = Slope::between(window_ns, ticks)?;
        // Of the least number of ticks that may have passed, or the bound would be short by its own square; some
        // more for the product of both errors (proofs/timekeeping.py).
        let half_ticks = first.half_ticks.saturating_add(last.half_ticks);
        let product = half_ticks / window_ns + 1;
        let least_ticks = ticks.saturating_sub(half_ticks);
        let by_ticks = relative(half_ticks.saturating_add(product), least_ticks);
        // Either reading of the clock is rounded down by less than 1 ns; 1 more for this rounding.
        let by_clock = relative(1, window_ns).saturating_add(1);
        Some(SlopeFit { slope, error: by_ticks.saturating_add(by_clock), window_ns })
    }
}

/// How many samples a row keeps.
const KEPT: usize = 16;

/// The samples of the last seconds, oldest first.
#[derive(Clone, Copy, Debug)]
pub(super) struct SampleWindow {
    samples: [ClockSample; KEPT],
    count: usize,
}

impl SampleWindow {
    pub(super) const EMPTY: SampleWindow =
        SampleWindow { samples: [ClockSample { ticks: 0, half_ticks: 0, ns: 0 }; KEPT], count: 0 };

    /// Oldest first.
    pub(super) fn samples(&self) -> &[ClockSample] {
        &self.samples[..self.count]
    }

    /// The latest `count` of them, or as many as there are.
    pub(super) fn newest(&self, count: usize) -> &[ClockSample] {
        &self.samples[self.count.saturating_sub(count)..self.count]
    }

    pub(super) fn latest(&self) -> Option<&ClockSample> {
        self.samples[..self.count].last()
    }

    /// Allows for more in every sample.
    pub(super) fn widen(&mut self, ticks: u64) {
        for sample in &mut self.samples[..self.count] {
            sample.half_ticks = sample.half_ticks.saturating_add(ticks);
        }
    }

    /// Adds a sample, forgetting the oldest if there is no room.
    pub(super) fn push(&mut self, sample: ClockSample) {
        if self.count == KEPT {
            self.samples.rotate_left(1);
            self.count -= 1;
        }
        self.samples[self.count] = sample;
        self.count += 1;
    }

    /// Forgets all but the latest.
    pub(super) fn begin_again(&mut self) {
        if let Some(latest) = self.latest().copied() {
            *self = SampleWindow::EMPTY;
            self.push(latest);
        }
    }

    /// The most certain slope up to the latest sample over at most `longest_ns`.
    pub(super) fn fit(&self, longest_ns: u64) -> Option<SlopeFit> {
        let (latest, earlier) = self.samples[..self.count].split_last()?;
        let fits = earlier.iter().filter_map(|first| SlopeFit::between(first, latest));
        fits.filter(|fit| fit.window_ns <= longest_ns).min_by_key(|fit| fit.error)
    }
}

#[cfg(test)]
mod tests {
    use hourglass_time::Span;

    use super::super::slope::{relative_from_ppb, share_of};
    use super::*;
    use crate::source::SimSource;
    use crate::source::sim::{Fault, FaultKind, SimConfig};

    fn sample(ticks: u64, ns: u64) -> ClockSample {
        ClockSample { ticks, half_ticks: 23, ns }
    }

    #[test]
    fn the_bound_holds_the_true_slope() {
        // True rate 2.3 ticks a ns; each sample is off by its half-width, in opposite directions.
        let fit = SlopeFit::between(&sample(23, 0), &sample(46_000_000 - 23, 20_000_000)).unwrap();
        let truth = Slope::between(10, 23).unwrap();
        assert!(truth.distance(fit.slope) <= fit.error, "{fit:?}");
        assert!(fit.error < relative_from_ppb(1_100));
    }

    /// Brackets as wide as a tenth of the window, all of which speaks for a faster counter: the error is relative to what
    /// was measured, and the bound was short by its own square.
    #[test]
    fn the_bound_holds_the_true_slope_however_wide_the_brackets() {
        let wide = |ticks, ns| ClockSample { ticks, half_ticks: 50_000, ns };
        for sign in [-1_i64, 1] {
            // A tick a nanosecond.
            let moved = 1_000_000_u64.saturating_add_signed(sign * 100_000);
            let fit = SlopeFit::between(&wide(0, 0), &wide(moved, 1_000_000)).unwrap();
            let off_ns = fit.slope.ns_floor(1_000_000).abs_diff(1_000_000);
            let allowed_ns = share_of(fit.slope.ns_floor(1_000_000), fit.error);
            assert!(off_ns <= allowed_ns, "{off_ns} ns off, {allowed_ns} ns allowed: {fit:?}");
        }
    }

    /// A tick of 52 ns (an ARM timer of 19.2 MHz) read in no time: the bracket has no width, and
    /// still the moment is known to a tick only.
    #[test]
    fn a_bracket_is_never_narrower_than_a_tick() {
        let config = SimConfig { hertz: 19_200_000, ..SimConfig::default() };
        let sim = SimSource::new(config);
        sim.advance(Span::from_nanos(1_041));
        let found =
            narrowest(&sim, SourceId::SIMULATED, ReferenceClock::Monotonic, 1, 8, 0).unwrap();
        assert_eq!((found.ticks, found.ns), (19, 1_041));
        // 19 ticks are 989.6 ns: the count is almost 20.
        let truth_ticks = found.ns * 192 / 10_000 + 1;
        assert!(truth_ticks - found.ticks <= found.half_ticks, "{found:?}");
    }

    /// One step back in sixty-four brackets was passed over for a narrower one.
    #[test]
    fn a_single_step_back_is_no_bad_bracket_but_a_bad_counter() {
        let at = Span::from_nanos(1_000);
        let config = SimConfig {
            read_cost: Span::from_nanos(10),
            faults: vec![Fault { at, kind: FaultKind::Step(Span::from_nanos(-500)) }],
            ..SimConfig::default()
        };
        let sim = SimSource::new(config);
        let found = narrowest(&sim, SourceId::SIMULATED, ReferenceClock::Monotonic, 1, 64, 0);
        assert_eq!(found, Err(BackwardStep { ticks: 490 }));
        assert!(narrowest(&sim, SourceId::SIMULATED, ReferenceClock::Monotonic, 1, 64, 0).is_ok());
    }

    #[test]
    fn a_counter_that_stands_or_runs_backwards_has_no_slope() {
        assert_eq!(SlopeFit::between(&sample(5, 5), &sample(5, 9)), None);
        assert_eq!(SlopeFit::between(&sample(9, 5), &sample(5, 9)), None);
        assert_eq!(SlopeFit::between(&sample(5, 9), &sample(9, 5)), None);
    }

    #[test]
    fn a_row_takes_the_most_certain_window_that_is_short_enough() {
        let mut row = SampleWindow::EMPTY;
        assert_eq!(row.fit(u64::MAX), None);
        for second in 0..40u64 {
            row.push(sample(second * 2_300_000_000, second * 1_000_000_000));
        }
        assert_eq!(row.fit(u64::MAX).unwrap().window_ns, 15_000_000_000);
        assert_eq!(row.fit(4_500_000_000).unwrap().window_ns, 4_000_000_000);
        row.begin_again();
        assert_eq!(row.fit(u64::MAX), None);
        assert_eq!(row.latest().unwrap().ns, 39_000_000_000);
    }
}
