//! The tick where its moments are known: which gaps hold one, and how sure that is.
//!
//! The kernel's tick lies on a grid of `CLOCK_MONOTONIC`. A gap that is no switch and holds a point of that grid,
//! or begins right behind one, is the tick. In a virtual machine another grid of the same distance is the host's.

use super::facts::TickClock;
use super::gap::length_ns;
use super::log2_buckets::Sizes;

/// A tick that is late begins within this behind its point, ns: measured in a virtual machine.
const LATE_NS: i64 = 40_000;

/// The minimum number of gaps that hold a tick.
const FEWEST: u64 = 3;
/// Share of the gaps holding a tick that the tick made, where nothing else is there; and what is
/// lost of that where all would be there by chance. Measured, `bench/record/infer-calibration-*`.
const TICK: f64 = 0.98;
const OTHER_AT_CHANCE: f64 = 0.1;
/// Where most gaps at the points are there by chance, those no longer than this, ns, that hold one
/// are ticks; at least this share of such gaps was: 0.97 and 0.88 were measured.
const LONGEST_NS: u64 = 50_000;
const TICK_AT_CHANCE: f64 = 0.88;
/// Of the ticks to expect at least one in this number shows, where their points are right and ticks were counted.
const SHOWN_ONE_IN: u64 = 20;
/// The minimum number of expected ticks to judge ticks that do not show: a second at 250 Hz.
const FEWEST_EXPECTED: u64 = 250;
/// The minimum number of ticks to know the shortest tick.
const FEWEST_LENGTHS: u64 = 50;
/// One tick in this number is shorter than the shortest that counts.
const SHORT_ONE_IN: u64 = 20;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TickGaps {
    grid: TickGrid,
    passed_ns: u64,
    /// Gaps that hold a point, and how many by powers of two of their lengths in ns.
    hits: u64,
    lengths: Sizes,
    /// Gaps that do not, and for how long each of them, with the time behind a point, would have held one.
    others: u64,
    others_ns: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TickGrid {
    period_ns: i64,
    at_ns: i64,
}

impl TickGrid {
    /// The grid of `cpu`; `None` for an invalid period.
    pub(super) fn new(clock: TickClock, cpu: u32) -> Option<TickGrid> {
        let period_ns = i64::try_from(clock.period_ns).ok().filter(|ns| *ns > LATE_NS)?;
        let skew_ns = clock.skew_ns.saturating_mul(u64::from(cpu)) % clock.period_ns;
        let at_ns = clock.at_ns.rem_euclid(period_ns).saturating_add_unsigned(skew_ns);
        Some(TickGrid { period_ns, at_ns })
    }

    /// The number of the point that a gap holds or begins right behind.
    pub(super) fn point(&self, start: i64, end: i64) -> Option<i64> {
        let last = end.saturating_sub(self.at_ns).div_euclid(self.period_ns);
        let at = self.at_ns.saturating_add(last.saturating_mul(self.period_ns));
        (start.saturating_sub(LATE_NS) <= at).then_some(last)
    }
}

impl TickGaps {
    pub(super) fn new(clock: TickClock, cpu: u32) -> Option<TickGaps> {
        Some(TickGaps { grid: TickGrid::new(clock, cpu)?, ..TickGaps::default() })
    }

    pub(super) fn grid(&self) -> &TickGrid {
        &self.grid
    }

    /// Adds a time in which a thread ran, ns.
    pub(super) fn pass(&mut self, ns: u64) {
        self.passed_ns = self.passed_ns.saturating_add(ns);
    }

    /// A gap in which the thread kept its CPU. Whether it holds a point.
    pub(super) fn push(&mut self, start: i64, end: i64) -> bool {
        let held = self.grid.point(start, end).is_some();
        if held {
            self.hits = self.hits.saturating_add(1);
            self.lengths.push(length_ns(start, end));
        } else {
            let reach = length_ns(start, end).saturating_add(LATE_NS.unsigned_abs());
            self.others = self.others.saturating_add(1);
            self.others_ns = self.others_ns.saturating_add(reach);
        }
        held
    }

    /// How likely a gap that holds a point is there for the tick, from 0 to 1. In such a gap is a tick; that
    /// something else took longer is the more likely the more gaps chance puts there.
    pub(super) fn confidence(&self) -> f64 {
        let one_of = 1.0 / (self.hits as f64 + 2.0);
        (TICK - OTHER_AT_CHANCE * self.by_chance() - one_of).clamp(0.0, 1.0)
    }

    /// Which part of the gaps that hold a point would be there without a tick, by the gaps elsewhere.
    fn by_chance(&self) -> f64 {
        let there = self.others_ns as f64 / (self.grid.period_ns.max(1) as f64);
        there / self.hits.max(1) as f64
    }

    /// Whether the ticks show: most gaps at their points are not there by chance.
    pub(super) fn shows(&self) -> bool {
        self.hits >= FEWEST && self.by_chance() < 0.5
    }

    /// A gap shorter than this, ns, is no interrupt: the way into the kernel and out takes all but the shortest ticks
    /// at least twice as long. `None` where too few ticks were seen.
    pub(super) fn too_short_ns(&self) -> Option<u64> {
        let enough = self.hits >= FEWEST_LENGTHS;
        enough.then(|| self.lengths.lower_bound(self.hits / SHORT_ONE_IN) / 2)
    }

    /// How sure it is that a gap of this length that holds a point is the tick, where ticks do not
    /// show: it holds a tick, if `counted` timer interrupts came.
    pub(super) fn among_others(&self, length: u64, counted: u64) -> Option<f64> {
        let there = self.hits >= FEWEST && counted.saturating_mul(2) >= self.expected();
        (there && length <= LONGEST_NS).then_some(TICK_AT_CHANCE)
    }

    /// Whether ticks were `counted` that do not show: then their points are wrong, or the clock is.
    pub(super) fn contradict(&self, counted: u64) -> bool {
        let expected = self.expected();
        expected >= FEWEST_EXPECTED
            && counted.saturating_mul(2) >= expected
            && self.hits.saturating_mul(SHOWN_ONE_IN) < expected
    }

    fn expected(&self) -> u64 {
        self.passed_ns / self.period_ns().max(1)
    }

    pub(super) fn period_ns(&self) -> u64 {
        self.grid.period_ns.unsigned_abs()
    }

    /// Share of the points to expect at which something was seen, per mille.
    pub(super) fn share_per_mille(&self) -> u64 {
        self.hits.saturating_mul(1_000) / self.expected().max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: TickClock =
        TickClock { period_ns: 4_000_000, at_ns: -1_000_000, skew_ns: 500_000 };

    #[test]
    fn a_gap_holds_a_point_or_begins_right_behind_one() {
        let grid = TickGrid::new(CLOCK, 1).unwrap();
        for (start, end, point) in [
            (3_490_000, 3_510_000, Some(0)),
            (3_500_000, 3_500_001, Some(0)),
            (3_540_000, 3_542_000, Some(0)),
            (3_540_001, 3_542_000, None),
            (3_400_000, 3_499_999, None),
            (-501_000, -499_000, Some(-1)),
            (3_490_000, 11_600_000, Some(2)),
        ] {
            assert_eq!(grid.point(start, end), point, "{start} to {end}");
        }
        assert_eq!(TickGrid::new(TickClock { period_ns: 1, ..CLOCK }, 0), None);
    }

    #[test]
    fn ticks_among_many_gaps_and_ticks_that_do_not_show() {
        const PERIOD: i64 = 4_000_000;
        let clock = TickClock { period_ns: 4_000_000, at_ns: 0, skew_ns: 0 };
        // Every how many points a gap is there, every how many ns another, timer interrupts that were counted.
        for (one_in, others_ns, counted, named, contradiction) in [
            (1, 20_000, 1_000, Some(TICK_AT_CHANCE), false), // many gaps of the host
            (1, 20_000, 0, None, false),                     // no tick there (nohz_full)
            (50, 0, 1_000, Some(TICK_AT_CHANCE), true),      // the points are wrong
            (50, 0, 10, None, false),
        ] {
            let mut gaps = TickGaps::new(clock, 0).unwrap();
            gaps.pass(1_000 * 4_000_000);
            for tick in (0..1_000).filter(|tick| tick % one_in == 0) {
                gaps.push(tick * PERIOD - 2_000, tick * PERIOD + 10_000);
            }
            for at in (0..1_000 * PERIOD).step_by(others_ns.max(PERIOD as usize)) {
                let within = if others_ns == 0 { 0 } else { PERIOD / others_ns as i64 };
                (1..within).for_each(|k| {
                    gaps.push(
                        at + k * others_ns as i64 + 50_000,
                        at + k * others_ns as i64 + 55_000,
                    );
                });
            }
            assert_eq!(gaps.among_others(12_000, counted), named, "{one_in} {others_ns} {counted}");
            assert_eq!(gaps.among_others(60_000, counted), None);
            assert_eq!(gaps.contradict(counted), contradiction, "{one_in} {others_ns} {counted}");
            assert!(others_ns == 0 || !gaps.shows());
        }
    }

    #[test]
    fn the_ends_of_the_range_do_not_wrap() {
        let clock = TickClock { period_ns: u64::MAX, at_ns: i64::MIN, skew_ns: u64::MAX };
        assert_eq!(TickGrid::new(clock, 9), None);
        let clock = TickClock { period_ns: i64::MAX as u64, at_ns: i64::MIN, skew_ns: u64::MAX };
        let mut gaps = TickGaps::new(clock, u32::MAX).unwrap();
        gaps.push(i64::MIN, i64::MAX);
        gaps.push(i64::MAX, i64::MIN);
        assert!((0.0..=1.0).contains(&gaps.confidence()));
    }
}
