//! Moments that lie on a grid of known period: where is it, and how sure is that?
//!
//! Integers only. The phase may drift, because a grid may be kept by another clock than the
//! trace: it is looked for window by window.

use super::gap::length_ns;

/// A bin of the histogram of phases is not narrower, ns: the timer's interrupt comes some
/// microseconds late, and not always the same.
const NARROWEST_BIN_NS: i64 = 10_000;
/// Bins of such a histogram.
const BINS: (i64, i64) = (32, 256);
const PEAK_BINS: usize = 3;
/// A window is closed when this many moments are to be expected in it.
const WINDOW: u64 = 48;
/// A peak needs at least this many moments.
const FEWEST: u64 = 3;
/// A peak must stand out of what chance puts there by this factor.
const OVER_CHANCE: u64 = 4;
/// Phases that are kept; a clock that drifts more often than this has no grid.
const MOST_PHASES: usize = 1_024;

#[derive(Clone, Debug)]
pub(super) struct GridFinder {
    period_ns: i64,
    /// At least one in this number of moments to expect must be on the grid.
    one_in: u64,
    histogram: Vec<u32>,
    bin_ns: i64,
    in_window: u64,
    window_start: Option<i64>,
    waited_ns: u64,
    grid: GapGrid,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct GapGrid {
    pub(super) period_ns: i64,
    /// How far from a point a moment may be.
    pub(super) reach_ns: i64,
    /// The phases of the grid, each with the time from which it holds.
    phases: Vec<(i64, i64)>,
    pub(super) hits: u64,
    pub(super) expected: u64,
    /// Moments that chance put into the peaks, thousandths.
    chance_milli: u64,
}

impl GridFinder {
    /// Looks for a grid with points every `period_ns`, on which at least one in `one_in` of the
    /// moments to expect must lie. `None` for a period too short to have bins.
    pub(super) fn new(period_ns: u64, one_in: u64) -> Option<GridFinder> {
        let period_ns = i64::try_from(period_ns).ok()?;
        let bins = (period_ns / NARROWEST_BIN_NS).min(BINS.1);
        if bins < BINS.0 {
            return None;
        }
        // Rounded up, so that the bins cover the period.
        let bin_ns = period_ns / bins + i64::from(period_ns % bins != 0);
        let reach_ns = bin_ns.saturating_mul(3) / 2;
        Some(GridFinder {
            period_ns,
            one_in: one_in.max(1),
            histogram: vec![0; usize::try_from(bins).ok()?],
            bin_ns,
            in_window: 0,
            window_start: None,
            waited_ns: 0,
            grid: GapGrid { period_ns, reach_ns, ..GapGrid::default() },
        })
    }

    /// Adds a time in which points of the grid would have been seen, ns.
    pub(super) fn pass(&mut self, ns: u64) {
        self.waited_ns = self.waited_ns.saturating_add(ns);
    }

    /// Something began (or ended) at `at`.
    pub(super) fn push(&mut self, at: i64) {
        if self.expected() >= WINDOW {
            self.close();
        }
        self.window_start.get_or_insert(at);
        let bin = usize::try_from(at.rem_euclid(self.period_ns) / self.bin_ns).unwrap_or(0);
        if let Some(count) = self.histogram.get_mut(bin) {
            *count = count.saturating_add(1);
            self.in_window = self.in_window.saturating_add(1);
        }
    }

    /// Something ended at `at`, and one such end was to be expected.
    pub(super) fn push_expected(&mut self, at: i64) {
        self.push(at);
        self.pass(self.period_ns.unsigned_abs());
    }

    /// Whether `at` is on the grid as far as it is known by now.
    pub(super) fn holds(&self, at: i64) -> bool {
        self.grid.is_real(self.one_in) && self.grid.holds(at)
    }

    pub(super) fn finish(mut self) -> Option<GapGrid> {
        self.close();
        let real = self.grid.is_real(self.one_in);
        real.then_some(self.grid)
    }

    fn expected(&self) -> u64 {
        self.waited_ns / self.period_ns.unsigned_abs().max(1)
    }

    fn close(&mut self) {
        let expected = self.expected();
        self.grid.expected = self.grid.expected.saturating_add(expected);
        if let (Some(start), Some((first, peak))) = (self.window_start, self.peak()) {
            let bins = self.histogram.len() as u64;
            let outside = bins.saturating_sub(PEAK_BINS as u64).max(1);
            let elsewhere = self.in_window.saturating_sub(peak);
            let chance_milli = elsewhere.saturating_mul(1_000 * PEAK_BINS as u64) / outside;
            let least = (expected / self.one_in).max(FEWEST);
            if peak >= least && peak.saturating_mul(1_000) > chance_milli * OVER_CHANCE {
                self.grid.hits = self.grid.hits.saturating_add(peak);
                self.grid.chance_milli = self.grid.chance_milli.saturating_add(chance_milli);
                let phase = self.centre(first, peak);
                self.grid.set_phase(start, phase, self.bin_ns / 2);
            }
        }
        self.histogram.fill(0);
        self.in_window = 0;
        self.window_start = None;
        self.waited_ns = 0;
    }

    /// The first bin of the fullest neighbours, and how many moments are in them.
    fn peak(&self) -> Option<(usize, u64)> {
        let bins = self.histogram.len();
        let sum = |first: usize| -> u64 {
            (0..PEAK_BINS).map(|step| u64::from(self.histogram[(first + step) % bins])).sum()
        };
        (0..bins).map(|first| (first, sum(first))).max_by_key(|(_, count)| *count)
    }

    /// The middle of the moments in a peak, as a phase.
    fn centre(&self, first: usize, peak: u64) -> i64 {
        let bins = self.histogram.len();
        let weighted: u64 = (0..PEAK_BINS)
            .map(|step| step as u64 * u64::from(self.histogram[(first + step) % bins]))
            .sum();
        let steps_milli = weighted.saturating_mul(1_000) / peak.max(1);
        let from_first = self.bin_ns / 2 + self.bin_ns.saturating_mul(steps_milli as i64) / 1_000;
        let first_ns = self.bin_ns.saturating_mul(first as i64);
        first_ns.saturating_add(from_first).rem_euclid(self.period_ns)
    }
}

impl GapGrid {
    /// Whether at least one in `one_in` of the moments to expect was on it.
    fn is_real(&self, one_in: u64) -> bool {
        self.hits >= FEWEST && self.hits.saturating_mul(one_in) >= self.expected
    }

    /// How likely a moment on the grid is there for the grid's reason, from 0 to 1.
    pub(super) fn confidence(&self) -> f64 {
        let by_chance = self.chance_milli as f64 / 1_000.0 / (self.hits.max(1) as f64);
        // A part of one in the number of hits is left for what a count of that size cannot exclude.
        let unknown = 1.0 / (self.hits as f64 + 2.0);
        (1.0 - by_chance - unknown).clamp(0.0, 1.0)
    }

    /// Share of the points to expect at which something was seen, per mille.
    pub(super) fn share_per_mille(&self) -> u64 {
        self.hits.saturating_mul(1_000) / self.expected.max(1)
    }

    /// Whether `at` lies within the reach of a point of the grid.
    pub(super) fn holds(&self, at: i64) -> bool {
        self.point(at).is_some()
    }

    /// The number of the grid's point within whose reach `at` lies.
    pub(super) fn point(&self, at: i64) -> Option<i64> {
        let known = self.phases.partition_point(|(from, _)| *from <= at);
        let (_, phase) = self.phases.get(known.saturating_sub(1))?;
        let period = self.period_ns.max(1);
        let near = self.distance(at.rem_euclid(period), *phase) <= self.reach_ns;
        let nearest = at.saturating_sub(*phase).saturating_add(period / 2).div_euclid(period);
        near.then_some(nearest)
    }

    fn set_phase(&mut self, from: i64, phase: i64, tolerance_ns: i64) {
        let same =
            self.phases.last().is_some_and(|(_, last)| self.distance(phase, *last) <= tolerance_ns);
        if !same && self.phases.len() < MOST_PHASES {
            self.phases.push((from, phase));
        }
    }

    /// Distance of two phases, the short way round.
    fn distance(&self, a: i64, b: i64) -> i64 {
        let direct = a.saturating_sub(b).abs();
        direct.min(self.period_ns.saturating_sub(direct))
    }
}

/// Whether `length` is within one part in `parts` of `wanted`.
pub(super) fn is_within(length: u64, wanted: u64, parts: u64) -> bool {
    length.abs_diff(wanted) <= wanted / parts.max(1)
}

/// Whether two moments are about one, two or three periods apart, within one part in `parts` of
/// a period.
pub(super) fn periods_apart(earlier: i64, later: i64, period_ns: u64, parts: u64) -> bool {
    let distance = length_ns(earlier, later);
    let periods = distance.saturating_add(period_ns / 2) / period_ns.max(1);
    (1..=3).contains(&periods)
        && distance.abs_diff(period_ns.saturating_mul(periods)) <= period_ns / parts.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn found(period_ns: u64, moments: &[i64]) -> Option<GapGrid> {
        let mut finder = GridFinder::new(period_ns, 2).unwrap();
        let mut last = 0;
        for at in moments {
            finder.pass(length_ns(last, *at));
            finder.push(*at);
            last = *at;
        }
        finder.finish()
    }

    #[test]
    fn a_tick_is_found_among_other_gaps() {
        let mut moments: Vec<i64> =
            (0..1_000).map(|k| 3_777_000 + k * 4 * MS + k % 7 * 900).collect();
        moments.extend((0..2_300).map(|k| k * 1_713_337));
        moments.sort_unstable();
        let grid = found(4_000_000, &moments).unwrap();
        assert!(grid.holds(3_779_000 + 400 * MS) && !grid.holds(5_700_000));
        assert!(grid.share_per_mille() > 900, "{grid:?}");
        assert!(grid.confidence() > 0.9, "{}", grid.confidence());
        assert_eq!(grid.phases.len(), 1, "the phase does not move");
    }

    #[test]
    fn a_grid_of_another_clock_is_followed() {
        // 50 parts per million too slow: half a millisecond in ten seconds.
        let moments: Vec<i64> = (0..2_500).map(|k| k * 4_000_200).collect();
        let grid = found(4_000_000, &moments).unwrap();
        assert!(grid.phases.len() > 5);
        let held = moments.iter().filter(|at| grid.holds(**at)).count();
        assert!(held > 2_450, "{held} of 2500");
    }

    #[test]
    fn what_has_no_grid_gets_none() {
        let mut dice = hourglass_dice::Dice::new(20_020_618);
        let mut at = 0_i64;
        let moments: Vec<i64> = (0..10_000)
            .map(|_| {
                at += dice.within(0, 4_200_000);
                at
            })
            .collect();
        assert_eq!(found(4_000_000, &moments), None);
        assert_eq!(found(4_000_000, &[]), None);
        assert!(GridFinder::new(1_000, 2).is_none());
    }

    #[test]
    fn the_ends_of_the_range_do_not_wrap() {
        let mut finder = GridFinder::new(i64::MAX as u64, 2).unwrap();
        for at in [i64::MIN, i64::MAX, 0, -1, i64::MIN, i64::MAX] {
            finder.push_expected(at);
        }
        if let Some(grid) = finder.finish() {
            let _ = grid.holds(i64::MIN) | grid.holds(i64::MAX);
        }
        assert!(!periods_apart(i64::MIN, i64::MAX, 1, 50));
        assert!(periods_apart(0, 2_010, 1_000, 50) && !periods_apart(0, 2_100, 1_000, 50));
    }
}
