//! A consistent time line of several CPUs, where the trace does not say on which CPU a thread ran
//! (section 7).

use std::collections::BTreeMap;

use crate::Interval;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlacedTrace {
    /// The records, in their order, with CPUs counted from 0 by their first use.
    pub intervals: Vec<Interval>,
    /// Minimum number of CPUs of the machine that recorded the trace.
    pub cpus: u32,
    /// Records that might as well have run on another of these CPUs: more than one was free, and
    /// the thread had not run on any of them last.
    pub ambiguous: u64,
}

/// Gives every record a CPU, whatever number it has: no two records of a CPU overlap, and no more CPUs
/// are used than threads are seen to run at once.
///
/// A thread goes on where it ran last if no thread has run there since, or if that CPU is free; otherwise it takes the
/// CPU that became free last: the thread that stopped there was preempted in order to run it, while a
/// thread that goes on all the time has a CPU of its own (section 7). The records must come in the order
/// of their starts.
pub fn place(trace: impl IntoIterator<Item = Interval>) -> PlacedTrace {
    let mut placed = PlacedTrace::default();
    // The end of the last record of each CPU, and the CPU of each thread.
    let mut free_from: Vec<i64> = Vec::new();
    let mut of_thread: BTreeMap<u32, usize> = BTreeMap::new();
    for interval in trace {
        let is_free = |end: &i64| *end <= interval.start_ns;
        let own = of_thread.get(&interval.thread).copied();
        let own = own.filter(|cpu| free_from.get(*cpu).is_some_and(is_free));
        let free = free_from.iter().filter(|end| is_free(end)).count();
        let chosen = own.or_else(|| {
            let by_end = free_from.iter().enumerate().filter(|(_, end)| is_free(end));
            by_end.max_by_key(|(_, end)| **end).map(|(cpu, _)| cpu)
        });
        if own.is_none() && free > 1 {
            placed.ambiguous += 1;
        }
        let cpu = chosen.unwrap_or_else(|| {
            free_from.push(i64::MIN);
            free_from.len() - 1
        });
        if let Some(end) = free_from.get_mut(cpu) {
            *end = interval.end_ns.max(interval.start_ns);
        }
        of_thread.insert(interval.thread, cpu);
        let number = u32::try_from(cpu).unwrap_or(u32::MAX);
        placed.intervals.push(Interval { cpu: number, ..interval });
    }
    placed.cpus = u32::try_from(free_from.len()).unwrap_or(u32::MAX);
    placed
}

#[cfg(test)]
mod tests {
    use crate::IntervalStart;
    use hourglass_documents::random::Stream;

    use super::*;

    /// Section 7: thread 1 goes on without a gap while thread 2 stops and thread 3 starts. So thread
    /// 1 has a CPU, and on another one 2 was preempted in order to run 3.
    #[test]
    fn the_example_of_section_7() {
        let placed = place([
            Interval::new(1, 9, 0, 100, IntervalStart::Start),
            Interval::new(2, 9, 1, 40, IntervalStart::Start),
            Interval::new(3, 9, 42, 90, IntervalStart::Start),
            Interval::new(2, 9, 92, 99, IntervalStart::Gap),
        ]);
        let cpus: Vec<u32> = placed.intervals.iter().map(|interval| interval.cpu).collect();
        assert_eq!((cpus, placed.cpus, placed.ambiguous), (vec![0, 1, 1, 1], 2, 0));
        let found = super::super::switches(placed.intervals);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].prev_tid, found[0].next_tid, found[0].gap_ns), (2, 3, 2));
    }

    /// Turns of pinned threads come back as they were: every thread of a CPU is found on one.
    #[test]
    fn pinned_threads_are_distinguished() {
        let mut records: Vec<Interval> = Vec::new();
        for cpu in 0..3 {
            // Different lengths of turns, so that no two CPUs switch at the same time.
            let turn = 1_000 + 137 * i64::from(cpu);
            for n in 0..50u32 {
                let start = 11 * i64::from(cpu) + i64::from(n) * turn;
                records.push(Interval::new(
                    cpu * 2 + n % 2,
                    cpu,
                    start,
                    start + turn - 2,
                    IntervalStart::Gap,
                ));
            }
        }
        records.sort_by_key(|record| record.start_ns);
        // Only records while all CPUs are busy.
        records.retain(|record| record.end_ns < 49_000);
        let placed = place(records.iter().copied());
        assert_eq!(placed.cpus, 3);
        let mut threads: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (found, truth) in placed.intervals.iter().zip(&records) {
            threads.entry(found.cpu).or_default().push(truth.cpu);
        }
        assert!(threads.values().all(|truth| truth.iter().all(|cpu| *cpu == truth[0])));
    }

    /// No two records of a CPU overlap, and as many CPUs are used as threads ran at once.
    #[test]
    fn a_time_line_is_consistent() {
        for seed in 0..50 {
            let mut random = Stream::from_seeds(&[seed]);
            let mut records: Vec<Interval> = Vec::new();
            for thread in 0..6 {
                let mut now = random.below(50) as i64;
                for _ in 0..40 {
                    let end = now + random.below(30) as i64;
                    records.push(Interval::new(thread, 0, now, end, IntervalStart::Gap));
                    now = end + 1 + random.below(40) as i64;
                }
            }
            records.sort_by_key(|record| record.start_ns);
            let placed = place(records.iter().copied());
            let mut end_of: BTreeMap<u32, i64> = BTreeMap::new();
            for record in &placed.intervals {
                let before = end_of.insert(record.cpu, record.end_ns);
                assert!(before.is_none_or(|end| end <= record.start_ns), "seed {seed}");
            }
            let at_once = |now: i64| {
                let runs = |record: &&Interval| record.start_ns <= now && now < record.end_ns;
                records.iter().filter(runs).count() as u32
            };
            let most = records.iter().map(|record| at_once(record.start_ns)).max();
            assert!(placed.cpus >= most.unwrap() && placed.cpus <= 6, "seed {seed}");
        }
        assert_eq!(place([]), PlacedTrace::default());
    }
}
