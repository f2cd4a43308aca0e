//! All that a trace says, by one reading.

use crate::Interval;

use super::{
    CostEstimate, CpuShares, InterruptCost, Interrupts, Quantum, SwitchKind, Switches, ThreadFact,
};
use crate::statistics::Estimate;

/// Takes a trace record by record for all statements at once.
#[derive(Clone, Debug)]
pub struct Collector {
    from_ns: i64,
    to_ns: i64,
    switches: Switches,
    interrupts: Interrupts,
    shares: CpuShares,
    /// Whether every thread never yields or blocks: then each preemption is certain.
    never_block: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statements {
    pub voluntary: Option<CostEstimate>,
    /// Direct cost of a preemption, with the interrupt that comes with it.
    pub involuntary: Option<CostEstimate>,
    /// Whether the preemptions are certain (section 4, second rule).
    pub preemptions_certain: bool,
    pub switches_per_second: Option<Estimate>,
    pub quantum: Option<Quantum>,
    pub interrupts: Vec<InterruptCost>,
    pub shares: Vec<(u32, Estimate)>,
}

impl Collector {
    pub fn of(threads: &[ThreadFact]) -> Collector {
        Collector {
            from_ns: threads.iter().map(|fact| fact.start_ns).min().unwrap_or(0),
            to_ns: threads.iter().map(|fact| fact.finish_ns).max().unwrap_or(0),
            switches: Switches::default(),
            interrupts: Interrupts::of(threads),
            shares: CpuShares::of(threads),
            never_block: threads.iter().all(|fact| fact.never_blocks),
        }
    }

    /// Takes the next record, in the order of starts.
    pub fn push(&mut self, interval: &Interval) {
        self.switches.push(interval);
        self.interrupts.push(interval);
        self.shares.push(interval);
    }

    pub fn finish(self) -> Statements {
        let switches = self.switches.finish();
        let rate = super::switch_rate(&switches, self.from_ns, self.to_ns);
        Statements {
            voluntary: super::switch_cost(&switches, SwitchKind::Voluntary),
            involuntary: super::switch_cost(&switches, SwitchKind::Involuntary),
            preemptions_certain: self.never_block,
            switches_per_second: rate.filter(|_| !switches.is_empty()),
            quantum: super::quantum(&switches),
            interrupts: self.interrupts.finish(),
            shares: self.shares.finish(),
        }
    }
}

impl Extend<Interval> for Collector {
    fn extend<T: IntoIterator<Item = Interval>>(&mut self, intervals: T) {
        intervals.into_iter().for_each(|interval| self.push(&interval));
    }
}

#[cfg(test)]
mod tests {
    use crate::IntervalStart;

    use super::super::simulated::TurnTrace;
    use super::*;

    /// One pass over a trace gives the statements of each inference by itself.
    #[test]
    fn together_and_alone() {
        let trace = TurnTrace { threads: 3, turn_ns: 4_000_000, cost_ns: 2_000, turns: 90 };
        let records = trace.records(IntervalStart::Gap);
        let facts: Vec<ThreadFact> = (0..3)
            .map(|thread| ThreadFact {
                thread,
                start_ns: 0,
                finish_ns: records.last().unwrap().end_ns,
                never_blocks: true,
                highest: false,
            })
            .collect();
        let mut collector = Collector::of(&facts);
        collector.extend(records.iter().copied());
        let found = collector.finish();
        let alone = super::super::switches(records.iter().copied());
        assert_eq!(found.involuntary, super::super::switch_cost(&alone, SwitchKind::Involuntary));
        assert_eq!(found.quantum, super::super::quantum(&alone));
        assert_eq!(found.interrupts, super::super::interrupts(records.iter().copied(), &facts));
        assert_eq!(found.shares, super::super::cpu_shares(records, &facts));
        assert!(found.preemptions_certain && found.voluntary.is_none());
        let share: f64 = found.shares.iter().map(|(_, share)| share.value).sum();
        assert!((share - 1.0).abs() < 0.001, "{share}");
        let mut nothing = Collector::of(&[]);
        nothing.extend([]);
        assert_eq!(
            nothing.finish(),
            Statements { preemptions_certain: true, ..Default::default() }
        );
    }

    /// A damaged trace causes no panic, and every number of the document is finite.
    #[test]
    fn nonsense_is_survived() {
        use crate::{CounterDeltas, Evidence};
        use hourglass_documents::random::Stream;
        for seed in 0..200 {
            let mut random = Stream::from_seeds(&[seed]);
            let mut time = || match random.below(6) {
                0 => i64::MIN,
                1 => i64::MAX,
                2 => -(random.below(1_000) as i64),
                _ => random.below(1_000_000) as i64,
            };
            let times: Vec<i64> = (0..200).map(|_| time()).collect();
            let facts: Vec<ThreadFact> = (0..3)
                .map(|thread| ThreadFact {
                    thread,
                    start_ns: times[thread as usize],
                    finish_ns: times[thread as usize + 3],
                    never_blocks: thread == 0,
                    highest: thread == 1,
                })
                .collect();
            let records: Vec<Interval> = times
                .windows(2)
                .map(|ends| {
                    let pick = |of: u64, times: u64| (ends[0].unsigned_abs() / times % of) as u32;
                    let counted =
                        CounterDeltas { involuntary: pick(2, 7) as u8, ..CounterDeltas::default() };
                    Interval {
                        thread: pick(4, 1),
                        cpu: pick(3, 5),
                        start_ns: ends[0],
                        end_ns: ends[1],
                        start_ticks: 0,
                        end_ticks: 0,
                        onset: IntervalStart::ALL[pick(5, 11) as usize],
                        evidence: Evidence {
                            cleared: Some(pick(2, 13) == 0),
                            counted: (pick(2, 17) == 0).then_some(counted),
                        },
                    }
                })
                .collect();
            let mut collector = Collector::of(&facts);
            collector.extend(records.iter().copied());
            for inference in collector.finish().document() {
                let ends = [Some(inference.value), inference.ci_lo, inference.ci_hi];
                assert!(ends.iter().flatten().all(|n| n.is_finite()), "seed {seed}: {inference:?}");
            }
            assert_eq!(super::super::place(records.iter().copied()).intervals.len(), 199);
        }
    }
}
