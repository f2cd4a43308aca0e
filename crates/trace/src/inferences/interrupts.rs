//! The cost of interrupts to a thread (section 3.1 and section 4, third rule).

use std::collections::BTreeMap;

use crate::{Interval, IntervalStart};

use super::{CostEstimate, ThreadFact};
use crate::statistics::{Estimate, USUAL, Windows};

/// Entering and leaving the kernel takes longer than this on every processor: a shorter gap is the
/// measuring loop itself, delayed.
const SHORTEST_NS: i64 = 300;

/// The time that interrupts, and other work outside threads, took from a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct InterruptCost {
    pub thread: u32,
    pub cost: CostEstimate,
    /// How many there were in a second, those set aside included.
    pub per_second: Estimate,
    /// Which share of the thread's time they took, from 0 to 1, those set aside included.
    pub lost: Estimate,
    /// Whether no other thread can have run in any of these gaps: the thread is the highest and
    /// never blocks, or the kernel says so of each gap. Otherwise most of them are interrupts.
    pub certain: bool,
}

#[derive(Clone, Debug)]
struct Thread {
    fact: ThreadFact,
    lengths: Vec<u64>,
    often: Windows,
    lost: Windows,
    certain: bool,
}

/// Collects the gaps of each thread in which no other thread of the run had the CPU.
#[derive(Clone, Debug, Default)]
pub struct Interrupts {
    /// The last record of each CPU: its thread and its end.
    last: BTreeMap<u32, (u32, i64)>,
    threads: BTreeMap<u32, Thread>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OccupancyEvidence {
    Unoccupied,
    Occupied,
    Unknown,
}

fn ran(interval: &Interval) -> OccupancyEvidence {
    match (interval.evidence.cleared, interval.evidence.counted) {
        (_, Some(counted)) if counted.involuntary > 0 || counted.voluntary > 0 => {
            OccupancyEvidence::Occupied
        }
        (Some(false), _) | (_, Some(_)) => OccupancyEvidence::Unoccupied,
        _ => OccupancyEvidence::Unknown,
    }
}

impl Interrupts {
    pub fn of(threads: &[ThreadFact]) -> Interrupts {
        let thread = |fact: &ThreadFact| {
            let windows = Windows::between(fact.start_ns, fact.finish_ns)?;
            let (often, lost) = (windows.clone(), windows);
            let lengths = Vec::new();
            Some((fact.thread, Thread { fact: *fact, lengths, often, lost, certain: true }))
        };
        Interrupts { last: BTreeMap::new(), threads: threads.iter().filter_map(thread).collect() }
    }

    /// Takes the next record, in the order of starts.
    pub fn push(&mut self, interval: &Interval) {
        let last = self.last.insert(interval.cpu, (interval.thread, interval.end_ns));
        let Some((before, end_ns)) = last else { return };
        if before != interval.thread || interval.onset != IntervalStart::Gap {
            return;
        }
        let Some(thread) = self.threads.get_mut(&interval.thread) else { return };
        let ran = ran(interval);
        if ran == OccupancyEvidence::Occupied {
            return;
        }
        let gap = interval.start_ns.saturating_sub(end_ns);
        if gap < SHORTEST_NS {
            return;
        }
        let alone = thread.fact.highest && thread.fact.never_blocks;
        thread.certain &= alone || ran == OccupancyEvidence::Unoccupied;
        thread.lengths.push(u64::try_from(gap).unwrap_or(0));
        thread.often.event(end_ns);
        thread.lost.stretch(end_ns, interval.start_ns);
    }

    pub fn finish(self) -> Vec<InterruptCost> {
        let statement = |(number, thread): (u32, Thread)| {
            let count = thread.lengths.len() as u64;
            let per_second = thread.often.rate(USUAL)?.scaled(1e9);
            let lost = thread.lost.rate(USUAL)?;
            Some(InterruptCost {
                thread: number,
                cost: CostEstimate::of(thread.lengths)?,
                per_second: Estimate { count, ..per_second },
                lost: Estimate { hi: lost.hi.min(1.0), count, ..lost },
                certain: thread.certain,
            })
        };
        self.threads.into_iter().filter_map(statement).collect()
    }
}

/// The cost of interrupts to each thread; see [`Interrupts`].
pub fn interrupts(
    trace: impl IntoIterator<Item = Interval>,
    threads: &[ThreadFact],
) -> Vec<InterruptCost> {
    let mut interrupts = Interrupts::of(threads);
    trace.into_iter().for_each(|interval| interrupts.push(&interval));
    interrupts.finish()
}

#[cfg(test)]
mod tests {
    use crate::{CounterDeltas, Evidence};

    use super::*;

    const MS: i64 = 1_000_000;

    fn fact(highest: bool) -> ThreadFact {
        ThreadFact { thread: 0, start_ns: 0, finish_ns: 1_000 * MS, never_blocks: true, highest }
    }

    /// A clock interrupt of 5 µs every 10 ms, as on the paper's Linux (Figure 3).
    fn clock() -> Vec<Interval> {
        let one = |n: i64| {
            let onset = if n == 0 { IntervalStart::Start } else { IntervalStart::Gap };
            Interval::new(0, 0, n * 10 * MS, (n + 1) * 10 * MS - 5_000, onset)
        };
        (0..100).map(one).collect()
    }

    #[test]
    fn the_clock_interrupts_of_the_paper() {
        let [found] = interrupts(clock(), &[fact(true)]).try_into().unwrap();
        assert_eq!((found.cost.fastest_ns, found.cost.mode_ns), (5_000, 5_000));
        assert!((found.per_second.value - 99.0).abs() < 0.01 && found.per_second.holds(100.0));
        assert!((found.lost.value - 0.000_495).abs() < 1e-6);
        assert!(found.certain);
        let [lower] = interrupts(clock(), &[fact(false)]).try_into().unwrap();
        assert!(!lower.certain, "another thread may have run");
    }

    /// A gap that the kernel counted as a switch is not an interrupt; where its counts show each
    /// gap without a switch, the statement is certain for any thread.
    #[test]
    fn evidence_decides() {
        let mut records = clock();
        for record in &mut records {
            record.evidence = Evidence { cleared: Some(false), counted: None };
        }
        let away = CounterDeltas { involuntary: 1, ..CounterDeltas::default() };
        records[7].evidence = Evidence { cleared: Some(true), counted: Some(away) };
        let [found] = interrupts(records, &[fact(false)]).try_into().unwrap();
        assert_eq!(found.cost.count, 98);
        assert!(found.certain);
    }

    /// A gap in which another thread of the run had the CPU is a switch.
    #[test]
    fn other_threads_are_no_interrupts() {
        let records = [
            Interval::new(0, 0, 0, 10, IntervalStart::Start),
            Interval::new(1, 0, 12, 20, IntervalStart::Start),
            Interval::new(0, 0, 22, 30, IntervalStart::Gap),
        ];
        assert!(interrupts(records, &[fact(true)]).is_empty());
    }
}
