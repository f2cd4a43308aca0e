//! The trace clock and the run's counter: which clock, and how one becomes the other.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;

use hourglass_clock::CounterKind;
use hourglass_documents::kernel::ClockCheck;
use hourglass_workload::AnyCounter;

use super::drain::MARK;
use crate::time_namespace::Offset;

/// Marks written for one check; the one with the narrowest bracket counts.
const MARKS: u64 = 16;

/// The trace clock for a counter, and whether it is that very counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TraceClock {
    pub(super) name: &'static str,
    pub(super) same: bool,
}

impl TraceClock {
    /// The best of those that are `offered`; `None` if none of them can be put on the counter.
    pub(super) fn choose(
        kind: CounterKind,
        offered: &[String],
        offset: Option<Offset>,
    ) -> Option<TraceClock> {
        let own = match kind {
            #[cfg(target_arch = "x86_64")]
            CounterKind::Tsc => Some("x86-tsc"),
            #[cfg(target_arch = "aarch64")]
            CounterKind::Cntvct => None,
            CounterKind::OsMonotonic => {
                Some("mono").filter(|_| offset.is_some_and(Offset::is_none))
            }
        };
        let has = |name: &&str| offered.iter().any(|clock| clock == name);
        if let Some(name) = own.filter(has) {
            return Some(TraceClock { name, same: true });
        }
        // This clock is not steered, so that two pairs and a straight line are enough.
        Some("mono_raw").filter(has).map(|name| TraceClock { name, same: false })
    }
}

#[derive(Clone, Copy, Debug)]
struct MarkBracket {
    mark: u64,
    before: u64,
    after: u64,
}

/// Marks that were written, in groups: one before the run, one after it.
#[derive(Debug, Default)]
pub(super) struct Marks {
    groups: Vec<Vec<MarkBracket>>,
    written: u64,
}

impl Marks {
    /// Writes a group of marks. The caller runs on a CPU whose events are recorded.
    ///
    /// # Errors
    /// The kernel refuses a mark.
    pub(super) fn write(&mut self, marker: &mut File, counter: AnyCounter) -> std::io::Result<()> {
        let mut group = Vec::with_capacity(MARKS as usize);
        for _ in 0..MARKS {
            let mark = self.written;
            self.written += 1;
            let text = format!("{MARK}{mark}\n");
            let before = counter.read().ticks;
            marker.write_all(text.as_bytes())?;
            let after = counter.read().ticks;
            group.push(MarkBracket { mark, before, after });
        }
        self.groups.push(group);
        Ok(())
    }

    /// The narrowest bracket of each group whose mark was `found` among the events.
    pub(super) fn checks(&self, found: &BTreeMap<u64, u64>) -> Vec<ClockCheck> {
        let best = |group: &Vec<MarkBracket>| {
            let seen = group.iter().filter_map(|bracket| {
                let trace = *found.get(&bracket.mark)?;
                Some(ClockCheck { before: bracket.before, trace, after: bracket.after })
            });
            seen.min_by_key(|check| check.after.saturating_sub(check.before))
        };
        self.groups.iter().filter_map(best).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Map {
    Same,
    /// By the line through two pairs of (trace clock, counter).
    Line([(u64, u64); 2]),
}

impl Map {
    /// `None` where two pairs are needed and are not there.
    pub(super) fn new(clock: TraceClock, checks: &[ClockCheck]) -> Option<Map> {
        if clock.same {
            return Some(Map::Same);
        }
        let pair = |check: &ClockCheck| {
            (check.trace, check.before + check.after.saturating_sub(check.before) / 2)
        };
        let (first, last) = (pair(checks.first()?), pair(checks.last()?));
        (first.0 < last.0 && first.1 < last.1).then_some(Map::Line([first, last]))
    }

    /// The counter at a time of the trace clock, rounded down.
    pub(super) fn ticks(self, time: u64) -> u64 {
        let Map::Line([(trace0, ticks0), (trace1, ticks1)]) = self else { return time };
        let (along, across) = (i128::from(time) - i128::from(trace0), i128::from(ticks1 - ticks0));
        // Both factors are below 2^64, so that the product may not fit; then the time is no time of the run.
        let moved = along.saturating_mul(across).div_euclid(i128::from(trace1 - trace0));
        u64::try_from(i128::from(ticks0) + moved).unwrap_or(if moved < 0 { 0 } else { u64::MAX })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_counter_itself_if_the_kernel_has_it() {
        let os = CounterKind::OsMonotonic;
        let all = offered(&["local", "mono", "mono_raw", "x86-tsc"]);
        let mono = TraceClock { name: "mono", same: true };
        let none = Some(Offset::default());
        assert_eq!(TraceClock::choose(os, &all, none), Some(mono));
        let raw = TraceClock { name: "mono_raw", same: false };
        assert_eq!(TraceClock::choose(os, &all, None), Some(raw), "not where it may be another's");
        assert_eq!(TraceClock::choose(os, &offered(&["local", "mono_raw"]), none), Some(raw));
        assert_eq!(TraceClock::choose(os, &offered(&["local"]), none), None);
        #[cfg(target_arch = "x86_64")]
        assert_eq!(
            TraceClock::choose(CounterKind::Tsc, &all, None),
            Some(TraceClock { name: "x86-tsc", same: true })
        );
    }

    #[test]
    fn the_narrowest_bracket_whose_mark_came() {
        let bracket = |mark, before, after| MarkBracket { mark, before, after };
        let first = vec![bracket(0, 100, 101), bracket(1, 200, 209), bracket(2, 300, 330)];
        let marks = Marks { groups: vec![first, vec![bracket(3, 900, 910)]], written: 4 };
        let found = BTreeMap::from([(1, 205), (2, 320), (9, 5)]);
        let check = ClockCheck { before: 200, trace: 205, after: 209 };
        assert_eq!(marks.checks(&found), [check]);
        assert!(check.holds());
        assert!(!ClockCheck { trace: 210, ..check }.holds());
    }

    /// A trace clock in ns beside a counter of 2.4 ticks a ns.
    #[test]
    fn the_line_through_two_pairs() {
        let clock = TraceClock { name: "mono_raw", same: false };
        let check = |trace, ticks: u64| ClockCheck { before: ticks - 10, trace, after: ticks + 10 };
        let checks = [check(1_000, 50_000), check(1_001_000, 2_450_000)];
        let map = Map::new(clock, &checks).unwrap();
        let pairs = [(1_000, 50_000), (1_010, 50_024), (0, 47_600), (2_001_000, 4_850_000)];
        for (time, ticks) in pairs {
            assert_eq!(map.ticks(time), ticks, "{time}");
        }
        assert_eq!(map.ticks(u64::MAX), u64::MAX);
        let steep = Map::Line([(0, 0), (1, u64::MAX)]);
        assert_eq!((steep.ticks(u64::MAX), steep.ticks(1)), (u64::MAX, u64::MAX));
        assert_eq!(Map::Line([(u64::MAX - 1, 0), (u64::MAX, u64::MAX)]).ticks(0), 0);
        assert_eq!(Map::new(clock, &checks[..1]), None);
        assert_eq!(Map::new(clock, &[]), None);
        let same = TraceClock { name: "mono", same: true };
        assert_eq!(Map::new(same, &[]).map(|map| map.ticks(7)), Some(7));
    }
}
