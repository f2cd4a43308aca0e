//! CPU time of a process that none of the threads seen had: those that began and ended between two looks.
//!
//! `/proc/PID/stat` counts threads that have ended, too (`proc_pid_stat(5)`). It is read after the threads at the
//! first look and before them at each other, so that what passes in between is never taken for missing. Of a command it
//! also counts the children that it has waited for, which are compared with the processes seen in the same way.

use std::collections::BTreeMap;

use hourglass_documents::document::Premise;
use hourglass_documents::premise::PremiseKind;
use hourglass_documents::watched::WatchedProcess;

use super::thread_totals::ThreadTotals;

/// User and system time are whole hundredths of a second, at the start and at the end.
const STEPS_NS: u64 = 40_000_000;
/// Less than one part in `PART` is neglected.
const PART: u64 = 20;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CpuTime {
    first_ns: u64,
    last_ns: u64,
    seen_ns: u64,
    /// The look since which threads are missing.
    missing_since_ns: Option<u64>,
}

impl CpuTime {
    pub(super) fn new(first_ns: u64) -> CpuTime {
        CpuTime { first_ns, last_ns: first_ns, ..CpuTime::default() }
    }

    /// Takes `cpu_ns` of a look that began at `at_ns`, and what the threads counted at it.
    pub(super) fn take(&mut self, cpu_ns: u64, seen_ns: u64, at_ns: u64) {
        (self.last_ns, self.seen_ns) = (cpu_ns, seen_ns);
        let missing_ns = self.whole_ns().saturating_sub(seen_ns);
        let is_missing = missing_ns > STEPS_NS.max(self.whole_ns() / PART);
        self.missing_since_ns = is_missing.then(|| self.missing_since_ns.unwrap_or(at_ns));
    }

    fn whole_ns(&self) -> u64 {
        self.last_ns.saturating_sub(self.first_ns)
    }

    /// Writes down what the whole is where the threads seen are not.
    pub(super) fn fill(&self, process: &mut WatchedProcess) {
        if self.missing_since_ns.is_some() {
            process.cpu_ns = Some(self.whole_ns());
            process.seen_cpu_ns = Some(self.seen_ns);
        }
    }

    pub(super) fn trouble(&self, process: &WatchedProcess) -> Option<Premise> {
        let whose = format!("the threads seen of {} ({})", process.name, process.pid);
        self.premise(PremiseKind::ThreadsUnseen, &whose, "its", "threads")
    }

    /// The same of the children of a command.
    pub(super) fn trouble_of_children(&self) -> Option<Premise> {
        let whose = "the processes seen that the command started";
        self.premise(PremiseKind::ProcessesUnseen, whose, "their", "processes")
    }

    fn premise(&self, kind: PremiseKind, whose: &str, of: &str, missing: &str) -> Option<Premise> {
        let at_ns = self.missing_since_ns?;
        let text = format!(
            "{whose} had {} ms of {of} {} ms of CPU time: {missing} that started and ended between two samples are missing, \
             and the time of others between their last sample and their end",
            self.seen_ns / 1_000_000,
            self.whole_ns() / 1_000_000
        );
        Some(kind.broken(text, at_ns))
    }
}

/// How long the threads of the processes ran that are meant.
pub(super) fn ran_ns(threads: &BTreeMap<u32, ThreadTotals>, is_meant: impl Fn(u32) -> bool) -> u64 {
    let own = threads.values().filter(|tally| is_meant(tally.pid));
    own.filter_map(ThreadTotals::run_ns).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// CPU time of the process at the first and at the last look, and what the threads seen ran, ms.
    fn missing(first: u64, last: u64, seen: u64) -> Option<String> {
        let mut time = CpuTime::new(first * MS);
        time.take(last * MS, seen * MS, 700);
        time.trouble(&WatchedProcess { pid: 7, name: "pool".into(), ..WatchedProcess::default() })
            .map(|premise| premise.text)
    }

    #[test]
    fn threads_are_missing_where_more_than_steps_and_a_twentieth_is() {
        let text = missing(1_000, 4_200, 100).unwrap();
        assert!(text.contains("pool (7) had 100 ms of its 3200 ms"), "{text}");
        assert!(missing(0, 60, 10).is_some());
        for (first, last, seen) in
            [(0, 0, 0), (0, 40, 0), (500, 540, 10), (0, 2_000, 1_900), (0, 2_000, 2_100), (9, 0, 0)]
        {
            assert_eq!(missing(first, last, seen), None, "{first} {last} {seen}");
        }
    }

    #[test]
    fn the_moment_is_the_first_look_of_those_that_missed_some() {
        let mut time = CpuTime::new(0);
        time.take(100 * MS, 10 * MS, 100);
        time.take(1_000 * MS, 990 * MS, 200);
        assert_eq!(time.missing_since_ns, None);
        time.take(2_000 * MS, 990 * MS, 300);
        time.take(3_000 * MS, 990 * MS, 400);
        assert_eq!(time.missing_since_ns, Some(300));
    }
}
