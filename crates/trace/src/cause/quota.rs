//! Which long gaps a control group's quota made, also where others compete for the CPU.
//!
//! A stopped group goes on when the next period of its quota begins: its gaps hold that moment, the same in each
//! period, and end there or, where a competitor has the CPU, some turns later. The kernel counts in how many periods it
//! stopped the group; this number of the longest gaps shows where the periods begin. A group that overdrew pays for
//! several periods in one gap, which holds a beginning wherever that is.

use super::gap::length_ns;

/// Number of steps of a period in which phases are distinguished.
const STEPS: usize = 500;
const FEWEST: usize = 3;
/// Of the longest gaps at least this part must hold the moment, per cent.
const MOST_HOLD: usize = 60;
/// Steps count as candidates down to this part of the most gaps that hold one, per cent.
const PLATEAU: u32 = 90;
const MOST: usize = 50_000;

#[derive(Clone, Debug)]
pub(super) struct QuotaFinder {
    period_ns: i64,
    throttled: usize,
    gaps: Vec<(i64, i64)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct QuotaPeriods {
    period_ns: i64,
    /// `None` where the gaps do not show it: only those that are longer than a period hold one for sure.
    phase_ns: Option<i64>,
    /// That a long gap that holds such a moment is the quota's, from 0 to 1.
    pub(super) confidence: f64,
}

impl QuotaFinder {
    /// For a quota that stopped the group in `throttled` periods. `None` for a period too short to be one.
    pub(super) fn new(period_ns: u64, throttled: u64) -> Option<QuotaFinder> {
        let period_ns = i64::try_from(period_ns).ok().filter(|ns| *ns >= STEPS as i64)?;
        let throttled = usize::try_from(throttled).unwrap_or(usize::MAX);
        Some(QuotaFinder { period_ns, throttled, gaps: Vec::new() })
    }

    pub(super) fn push(&mut self, start: i64, end: i64) {
        if self.gaps.len() < MOST {
            self.gaps.push((start, end));
        }
    }

    /// Which part of the gaps can be the quota's at most, from 0 to 1: each takes a period in which it stopped the group.
    pub(super) fn most(&self) -> f64 {
        (self.throttled as f64 / self.gaps.len().max(1) as f64).min(1.0)
    }

    /// The periods; `None` where the gaps do not show them.
    pub(super) fn finish(mut self) -> Option<QuotaPeriods> {
        self.gaps.sort_by_key(|(start, end)| std::cmp::Reverse(length_ns(*start, *end)));
        let mut left = self.throttled;
        let paid = |(start, end): &&(i64, i64)| {
            let fits = left > 0;
            left = left.saturating_sub(self.periods(*start, *end));
            fits
        };
        let longest = self.gaps.iter().take_while(paid).count();
        let longest = &self.gaps[..longest];
        let whole = longest.partition_point(|(start, end)| self.is_whole(*start, *end));
        let phase_ns = self.phase_ns(&longest[whole..]);
        let in_whole: usize =
            longest[..whole].iter().map(|(start, end)| self.periods(*start, *end)).sum();
        if phase_ns.is_none() && in_whole < FEWEST {
            return None;
        }
        let mut periods = QuotaPeriods { period_ns: self.period_ns, phase_ns, confidence: 0.0 };
        let holding = self.gaps.iter().filter(|(start, end)| periods.holds(*start, *end));
        let holding: usize = holding.map(|(start, end)| self.periods(*start, *end)).sum();
        periods.confidence = (self.throttled as f64 / holding.max(1) as f64).min(1.0);
        Some(periods)
    }

    fn is_whole(&self, start: i64, end: i64) -> bool {
        length_ns(start, end) >= self.period_ns.unsigned_abs()
    }

    /// The least number of periods in which a group with this gap is stopped.
    fn periods(&self, start: i64, end: i64) -> usize {
        let whole = length_ns(start, end) / self.period_ns.unsigned_abs().max(1);
        usize::try_from(whole).unwrap_or(usize::MAX).max(1)
    }

    /// The start of the periods, by gaps that are shorter than one.
    fn phase_ns(&self, gaps: &[(i64, i64)]) -> Option<i64> {
        if gaps.len() < FEWEST {
            return None;
        }
        let held = self.held(gaps);
        let most = held.iter().copied().max()?;
        if (most as usize).saturating_mul(100) < gaps.len().saturating_mul(MOST_HOLD) {
            return None;
        }
        // The last step that as good as all of them hold: behind it the first of them end.
        let enough = |step: usize| held[step % STEPS] * 100 >= most * PLATEAU;
        let first = held.iter().position(|count| *count == most)?;
        let last = (first..first + STEPS).take_while(|step| enough(*step)).last()? % STEPS;
        Some(self.step_ns().saturating_mul(last as i64))
    }

    fn step_ns(&self) -> i64 {
        self.period_ns / STEPS as i64
    }

    fn held(&self, gaps: &[(i64, i64)]) -> Vec<u32> {
        let mut held = vec![0_u32; STEPS];
        for (start, end) in gaps {
            let step = |at: i64| at.rem_euclid(self.period_ns) / self.step_ns().max(1);
            let (from, to) = (step(*start) as usize, step(*end) as usize);
            let steps = (to + STEPS - from) % STEPS + 1;
            (from..from + steps).for_each(|step| held[step % STEPS] += 1);
        }
        held
    }
}

impl QuotaPeriods {
    /// Whether a gap holds the beginning of a period, but for a step.
    pub(super) fn holds(&self, start: i64, end: i64) -> bool {
        if length_ns(start, end) >= self.period_ns.unsigned_abs() {
            return true;
        }
        let Some(phase_ns) = self.phase_ns else { return false };
        let step = self.period_ns / STEPS as i64;
        let from = phase_ns.saturating_sub(step);
        let point = end.saturating_sub(from).div_euclid(self.period_ns.max(1));
        start <= from.saturating_add(point.saturating_mul(self.period_ns)).saturating_add(2 * step)
    }

    /// Whether a gap is certainly not the quota's: it holds no beginning, and a tenth of a period or more is outside of
    /// it. Of a longer one it is likelier that the beginning is a little off.
    pub(super) fn excludes(&self, start: i64, end: i64) -> bool {
        let most = self.period_ns.unsigned_abs() / 10 * 9;
        self.phase_ns.is_some() && !self.holds(start, end) && length_ns(start, end) <= most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// As measured beside a competitor: a group stopped some ms before 43.4 ms of each period goes on then, or
    /// up to two turns later; turns of 4 ms come all the time.
    #[test]
    fn periods_are_found_beside_a_competitor() {
        let mut finder = QuotaFinder::new(100_000_000, 58).unwrap();
        for k in 0..60_i64 {
            let (begins, ends) = (43_400_000 + k * 100 * MS, 60_000 + k % 3 * 2 * MS);
            if k % 30 != 7 {
                finder.push(begins - (8 + k % 17) * MS, begins + ends);
            }
            for turn in 1..6 {
                let at = begins + turn * 11 * MS + k % 7 * 300_000;
                finder.push(at, at + 4 * MS);
            }
        }
        let found = finder.finish().unwrap();
        assert!(
            found.phase_ns.is_some_and(|at| (43_000_000..=43_600_000).contains(&at)),
            "{found:?}"
        );
        assert!(found.confidence > 0.95);
        assert!(found.holds(130 * MS, 144 * MS) && found.holds(43 * MS, 44 * MS));
        assert!(!found.holds(130 * MS, 142 * MS) && !found.holds(44 * MS, 48 * MS));
        assert!(found.excludes(44 * MS, 48 * MS) && !found.excludes(130 * MS, 144 * MS));
        // A stop of 98 ms of 100 was said to be a competitor's for sure.
        assert!(!found.holds(44 * MS, 142 * MS) && !found.excludes(44 * MS, 142 * MS));
    }

    /// As measured: 1.5 ms of 50 ms beside a competitor, taken at ticks of 4 ms, so that a group owes for one to
    /// four periods; 80 of 81 periods were throttled.
    #[test]
    fn a_gap_of_several_periods_is_one_of_a_group_that_overdrew() {
        for (owed, throttled, confidence) in [
            (&[2_i64, 4, 3][..], 80, 0.9),
            (&[4], 80, 0.9),
            (&[4], 8, 0.09), // seldom throttled: something else kept the thread off
            (&[1, 1, 2], 80, 0.9),
        ] {
            let mut finder = QuotaFinder::new(50_000_000, throttled).unwrap();
            let mut at = 7 * MS;
            for owes in owed.iter().cycle() {
                finder.push(at + 4 * MS, at + owes * 50 * MS + 60_000);
                at += owes * 50 * MS;
                if at > 80 * 50 * MS {
                    break;
                }
            }
            let found = finder.finish().unwrap();
            assert!(found.holds(61 * MS, 208 * MS), "{owed:?} {found:?}");
            assert!(
                found.confidence >= confidence && found.confidence < confidence + 0.2,
                "{found:?}"
            );
        }
        let mut once = QuotaFinder::new(50_000_000, 1).unwrap();
        once.push(0, 60 * MS);
        assert_eq!((once.most(), once.finish()), (1.0, None));
    }

    #[test]
    fn what_comes_at_any_time_has_no_periods() {
        let mut finder = QuotaFinder::new(100_000_000, 40).unwrap();
        (0..400_i64).for_each(|k| finder.push(k * 13_700_000, k * 13_700_000 + (3 + k % 5) * MS));
        assert_eq!(finder.finish(), None);
        assert_eq!(QuotaFinder::new(100_000_000, 40).unwrap().finish(), None);
        assert!(QuotaFinder::new(10, 40).is_none());
    }

    #[test]
    fn the_ends_of_the_range_do_not_wrap() {
        let mut finder = QuotaFinder::new(i64::MAX as u64, u64::MAX).unwrap();
        for _ in 0..4 {
            finder.push(i64::MIN, i64::MAX);
            finder.push(i64::MAX, i64::MIN);
        }
        if let Some(found) = finder.finish() {
            let _ = found.holds(i64::MIN, i64::MAX) | found.holds(i64::MAX, i64::MIN);
        }
    }
}
