//! Context switches that a trace proves: a thread runs, a gap occurs, another thread runs (section 4,
//! first rule), and what they cost (section 5.1).

use std::collections::BTreeMap;

use crate::{Interval, IntervalStart};

use super::CostEstimate;
use crate::statistics::{Estimate, USUAL, Windows};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SwitchKind {
    Voluntary,
    /// It was preempted: it went on as if nothing had happened. Of threads that never yield or
    /// block this is certain, and the preemption came with an interrupt (section 4, second rule).
    Involuntary,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    pub cpu: u32,
    pub prev_tid: u32,
    pub next_tid: u32,
    /// When `from` was last seen to run, ns from the run's start.
    pub at_ns: i64,
    /// The time from then until `to` was first seen to run, ns.
    pub gap_ns: u64,
    /// For how long `from` had held the CPU, gaps that are no switches included; `None` if the
    /// trace does not know since when.
    pub turn_ns: Option<u64>,
    /// Whether `from` left by its own will.
    pub kind: SwitchKind,
    /// Whether the gap is the switch and nothing else that is known: where `from` waited and `to`
    /// had been waiting, the CPU may have been idle between them.
    pub is_cost: bool,
}

#[derive(Clone, Copy, Debug)]
struct PreviousRecord {
    thread: u32,
    end_ns: i64,
    /// Since when the thread has the CPU.
    since_ns: Option<i64>,
}

/// A switch of which it is not known yet by whose will it was.
#[derive(Clone, Copy, Debug)]
struct PendingSwitch {
    cpu: u32,
    to: u32,
    to_onset: IntervalStart,
    at_ns: i64,
    gap_ns: u64,
    turn_ns: Option<u64>,
}

/// Finds the switches of a trace.
///
/// The next record of a thread shows by whose will it left. A thread without another record may have
/// come to its end; its last switch is not among those found.
#[derive(Clone, Debug, Default)]
pub struct Switches {
    last: BTreeMap<u32, PreviousRecord>,
    pending: BTreeMap<u32, PendingSwitch>,
    found: Vec<Switch>,
}

impl Switches {
    /// Takes the next record, in the order of starts.
    pub fn push(&mut self, interval: &Interval) {
        if let Some(pending) = self.pending.remove(&interval.thread) {
            self.found.extend(resolved(interval.thread, pending, interval.onset));
        }
        let since_ns = match self.last.get(&interval.cpu) {
            None => None,
            Some(last) if last.thread == interval.thread => {
                if left_the_run(interval) {
                    Some(interval.start_ns)
                } else {
                    last.since_ns
                }
            }
            Some(last) => {
                let gap_ns = interval.start_ns.saturating_sub(last.end_ns);
                let turn = |since: i64| last.end_ns.saturating_sub(since).max(0).unsigned_abs();
                let pending = PendingSwitch {
                    cpu: interval.cpu,
                    to: interval.thread,
                    to_onset: interval.onset,
                    at_ns: last.end_ns,
                    gap_ns: u64::try_from(gap_ns).unwrap_or(0),
                    turn_ns: last.since_ns.map(turn),
                };
                // Two records of one CPU that overlap prove nothing.
                if gap_ns >= 0 {
                    self.pending.insert(last.thread, pending);
                }
                Some(interval.start_ns)
            }
        };
        let last = PreviousRecord { thread: interval.thread, end_ns: interval.end_ns, since_ns };
        self.last.insert(interval.cpu, last);
    }

    /// The switches found, in the order in which it became known by whose will they were.
    pub fn finish(self) -> Vec<Switch> {
        self.found
    }
}

/// Whether the kernel counted a switch where no other thread of the run came: a thread outside the
/// run did.
fn left_the_run(interval: &Interval) -> bool {
    interval.onset == IntervalStart::Wait
        || interval.evidence.counted.is_some_and(|n| n.involuntary > 0 || n.voluntary > 0)
}

fn resolved(from: u32, pending: PendingSwitch, onset: IntervalStart) -> Option<Switch> {
    let kind = match onset {
        IntervalStart::Wait | IntervalStart::Yield => SwitchKind::Voluntary,
        IntervalStart::Gap | IntervalStart::Migration | IntervalStart::Late => {
            SwitchKind::Involuntary
        }
        IntervalStart::Start => return None,
    };
    let PendingSwitch { cpu, to, to_onset, at_ns, gap_ns, turn_ns } = pending;
    // A thread that yields gives the CPU away at once; one that waits may leave it idle.
    let came_later = matches!(to_onset, IntervalStart::Wait | IntervalStart::Start);
    let is_cost = onset != IntervalStart::Wait || !came_later;
    Some(Switch { cpu, prev_tid: from, next_tid: to, at_ns, gap_ns, turn_ns, kind, is_cost })
}

/// The switches that a trace proves; see [`Switches`].
pub fn switches(trace: impl IntoIterator<Item = Interval>) -> Vec<Switch> {
    let mut switches = Switches::default();
    trace.into_iter().for_each(|interval| switches.push(&interval));
    switches.finish()
}

/// The direct cost of switches of one kind (section 5.1, Figure 4). That each of them is a switch is
/// certain; that the median is the cost of one is statistical.
pub fn switch_cost(switches: &[Switch], kind: SwitchKind) -> Option<CostEstimate> {
    let of_kind = switches.iter().filter(|switch| switch.kind == kind && switch.is_cost);
    CostEstimate::of(of_kind.map(|switch| switch.gap_ns).collect())
}

/// Switches a second between two moments, ns from the run's start, with a 95 % interval. `None` if
/// they are too close to each other.
pub fn switch_rate(switches: &[Switch], from_ns: i64, to_ns: i64) -> Option<Estimate> {
    let mut windows = Windows::between(from_ns, to_ns)?;
    switches.iter().for_each(|switch| windows.event(switch.at_ns));
    let rate = windows.rate(USUAL)?.scaled(1e9);
    Some(Estimate { count: switches.len() as u64, ..rate })
}

#[cfg(test)]
mod tests {
    use super::super::simulated::TurnTrace;
    use super::*;

    /// Two threads in turns of 4 ms that cost 2 µs each, and an interrupt of 1 µs in every tenth.
    #[test]
    fn turns_are_switches_and_interrupts_are_not() {
        let trace = TurnTrace { threads: 2, turn_ns: 4_000_000, cost_ns: 2_000, turns: 200 };
        let found = switches(trace.records(IntervalStart::Gap));
        assert_eq!(found.len(), 198, "the last of each thread may be its end");
        assert!(found.iter().all(|switch| switch.kind == SwitchKind::Involuntary));
        let cost = switch_cost(&found, SwitchKind::Involuntary).unwrap();
        assert_eq!((cost.fastest_ns, cost.mode_ns, cost.median.value), (2_000, 2_000, 2_000.0));
        assert_eq!((cost.count, cost.set_aside), (198, 0));
        assert_eq!(switch_cost(&found, SwitchKind::Voluntary), None);
        let rate = switch_rate(&found, 0, 200 * 4_002_000).unwrap();
        assert!((rate.value - 198.0 / 0.8004).abs() < 1.0 && rate.holds(249.9), "{rate:?}");
    }

    /// The command with CPU_YIELD of section 5.1: every switch is voluntary.
    #[test]
    fn who_yields_leaves_by_its_will() {
        let trace = TurnTrace { threads: 10, turn_ns: 900_000, cost_ns: 2_190, turns: 1_000 };
        let found = switches(trace.records(IntervalStart::Yield));
        let cost = switch_cost(&found, SwitchKind::Voluntary).unwrap();
        assert_eq!((cost.mode_ns, cost.count), (2_190, 990));
        assert_eq!(switch_cost(&found, SwitchKind::Involuntary), None);
    }

    /// A thread that waits leaves its CPU idle until the next is woken: that gap is no cost. One
    /// that is woken into the turn of another is.
    #[test]
    fn idle_time_is_no_cost() {
        let found = switches([
            Interval::new(0, 0, 0, 100, IntervalStart::Start),
            Interval::new(1, 0, 500, 600, IntervalStart::Start),
            Interval::new(0, 0, 900, 1_000, IntervalStart::Wait),
            Interval::new(1, 0, 1_003, 1_100, IntervalStart::Gap),
            Interval::new(0, 0, 1_105, 1_200, IntervalStart::Wait),
        ]);
        let seen: Vec<_> =
            found.iter().map(|s| (s.prev_tid, s.kind, s.gap_ns, s.is_cost)).collect();
        assert_eq!(
            seen,
            [
                (0, SwitchKind::Voluntary, 400, false),
                (1, SwitchKind::Involuntary, 300, true),
                (0, SwitchKind::Voluntary, 3, true),
            ]
        );
    }

    /// Records that overlap, and times at the ends of the range, prove nothing and break nothing.
    #[test]
    fn nonsense_is_survived() {
        let found = switches([
            Interval::new(0, 0, i64::MIN, i64::MAX, IntervalStart::Gap),
            Interval::new(1, 0, i64::MIN, i64::MIN, IntervalStart::Gap),
            Interval::new(0, 0, i64::MAX, i64::MIN, IntervalStart::Gap),
            Interval::new(1, 0, 0, 5, IntervalStart::Gap),
        ]);
        assert!(found.len() <= 2, "{found:?}");
        assert!(switch_rate(&found, i64::MIN, i64::MAX).is_some());
    }
}
