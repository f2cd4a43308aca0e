//! How long the scheduler lets a thread run before it gives the CPU to another (section 5.1).

use super::switches::{Switch, SwitchKind};
use crate::statistics::{Estimate, USUAL, mean, median, mode};

#[derive(Clone, Debug, PartialEq)]
pub struct Quantum {
    /// The length at which the turns are densest, ns.
    pub mode_ns: u64,
    /// Median of the turns, with its 95 % interval, ns.
    pub median: Estimate,
    /// Mean of the turns, with its 95 % interval, ns.
    pub mean: Estimate,
}

/// The quantum, from the turns that ended in a preemption and of which the beginning is known.
/// Interrupts within a turn count as part of it. `None` without such a turn.
pub fn quantum(switches: &[Switch]) -> Option<Quantum> {
    let preempted = switches.iter().filter(|switch| switch.kind == SwitchKind::Involuntary);
    let mut turns: Vec<u64> = preempted.filter_map(|switch| switch.turn_ns).collect();
    turns.sort_unstable();
    let lengths: Vec<f64> = turns.iter().map(|ns| *ns as f64).collect();
    Some(Quantum {
        mode_ns: mode(&turns)?,
        median: median(&turns, USUAL)?,
        mean: mean(&lengths, USUAL)?,
    })
}

#[cfg(test)]
mod tests {
    use crate::{CounterDeltas, Evidence, Interval, IntervalStart};

    use super::super::simulated::TurnTrace;
    use super::super::switches;
    use super::*;

    /// Linux 2.4.17 of the paper: quanta of 60 ms.
    #[test]
    fn the_quantum_of_the_papers_linux() {
        let trace = TurnTrace { threads: 10, turn_ns: 60_000_000, cost_ns: 7_000, turns: 300 };
        let found = quantum(&switches(trace.records(IntervalStart::Gap))).unwrap();
        assert_eq!((found.mode_ns, found.median.value), (60_000_000, 60_000_000.0));
        assert!(found.mean.holds(60_000_000.0) && found.median.count > 280);
    }

    /// Where the kernel counted a switch although no thread of the run came, a turn ended too: what
    /// follows is a new one.
    #[test]
    fn others_end_a_turn_where_that_is_known() {
        let away = Evidence {
            cleared: Some(true),
            counted: Some(CounterDeltas { involuntary: 1, ..CounterDeltas::default() }),
        };
        let with = |evidence| {
            let mut records = vec![
                Interval::new(0, 0, 0, 10, IntervalStart::Start),
                Interval::new(1, 0, 12, 20, IntervalStart::Start),
                Interval::new(1, 0, 30, 40, IntervalStart::Gap),
                Interval::new(0, 0, 42, 50, IntervalStart::Gap),
                Interval::new(1, 0, 52, 60, IntervalStart::Gap),
            ];
            records[2].evidence = evidence;
            let turn = switches(records).iter().find(|s| s.prev_tid == 1).map(|s| s.turn_ns);
            turn.unwrap()
        };
        assert_eq!(with(away), Some(10));
        assert_eq!(with(Evidence::NONE), Some(28), "without evidence it is one turn");
        assert_eq!(quantum(&[]), None);
    }
}
