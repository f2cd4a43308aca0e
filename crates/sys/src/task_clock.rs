//! The processor time of others, exact at the moment of reading (`PERF_COUNT_SW_TASK_CLOCK`).
//!
//! The kernel's own sums ([`crate::clock::cpu_time`]) are up to a tick old while the thread runs on
//! another CPU. This clock asks that CPU, which costs it an interrupt of some microseconds.
//!
//! Owns: the clock. Must not: know what the time is for.

use std::io;

use crate::perf::{self, Count, PerfAttributes, PerfUnavailable};

/// `PERF_TYPE_SOFTWARE` and `PERF_COUNT_SW_TASK_CLOCK`.
const SOFTWARE: u32 = 1;
const TASK_CLOCK: u64 = 1;
/// `inherit`: threads and processes made from now on count as well.
const INHERIT: u64 = 1 << 1;
/// `exclude_kernel`, `exclude_hv`: what any user may ask for. All time counts none the less.
const FLAGS: u64 = 1 << 5 | 1 << 6;

/// The processor time of a thread from when this was opened.
#[derive(Debug)]
pub struct TaskClock(Count);

impl TaskClock {
    /// Of thread `tid`, with all that it makes from now on if `with_children`.
    ///
    /// # Errors
    /// [`PerfUnavailable`]: the thread has ended, or the kernel or a sandbox does not let it be watched.
    pub fn open(tid: u32, with_children: bool) -> Result<TaskClock, PerfUnavailable> {
        let flags = if with_children { FLAGS | INHERIT } else { FLAGS };
        Count::open(tid, PerfAttributes::counting(SOFTWARE, TASK_CLOCK, flags))
            .map(TaskClock)
            .map_err(|error| perf::refused(&error))
    }

    /// Processor time so far, ns: a system call.
    ///
    /// # Errors
    /// What the kernel answers; does not happen.
    pub fn read_ns(&self) -> io::Result<u64> {
        self.0.read()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{ClockId, now_ns};
    use crate::thread::counters;
    use hourglass_skip::{Requirement, skip};

    /// Uses `ns` of processor time; returns whether the thread kept its CPU meanwhile.
    fn spend(ns: u64) -> bool {
        let before = counters().switches();
        let until = now_ns(ClockId::ThreadCpu) + ns;
        while now_ns(ClockId::ThreadCpu) < until {}
        counters().switches() == before
    }

    /// Against the thread's own clock, which counts the same, but that it has some of the kernel's way from one thread to
    /// the next; and a thread that is made counts too.
    #[test]
    fn it_counts_what_the_thread_and_its_children_use() {
        std::thread::spawn(|| {
            let clock = match TaskClock::open(0, true) {
                Ok(clock) => clock,
                Err(refused) => return skip(Requirement::PERF_EVENTS, format_args!("{refused:?}")),
            };
            let both_kept_it = |_| {
                let before = clock.read_ns().unwrap();
                let kept = spend(500_000);
                let own = clock.read_ns().unwrap();
                assert!(!kept || own - before >= 500_000, "{before} {own}");
                let child_kept = std::thread::spawn(|| spend(800_000)).join().unwrap();
                let all = clock.read_ns().unwrap();
                assert!(!child_kept || all - own >= 800_000, "{own} {all}");
                kept && child_kept
            };
            assert!((0..100).any(both_kept_it));
        })
        .join()
        .unwrap();
    }
}
