//! Samples of a thread of the class, from its folder under `/proc`.

use std::fs;
use std::io;

use hourglass_sys::clock::cpu_time::ProcessTime;
use hourglass_sys::clock::{ClockId, now_ns};

use crate::backend::members;
use crate::guardian::TaskIdentity;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReservedThread {
    pub(super) life: TaskIdentity,
    process: u32,
}

impl ReservedThread {
    pub(super) fn open(tid: u32) -> io::Result<ReservedThread> {
        let life = TaskIdentity::of_task(tid)?;
        Ok(ReservedThread { life, process: members::process_of(tid).unwrap_or(tid) })
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DeadlineSample {
    /// Time of the sample, ns of `CLOCK_MONOTONIC`, not after the sampled values.
    pub(super) at_ns: u64,
    /// Processor time that it had until then, ns.
    pub(super) cpu_ns: u64,
    /// Remaining budget, ns; negative if the thread took more.
    pub(super) left_ns: i64,
    /// The end of its server's period, ns of the kernel's own clock.
    pub(super) deadline_ns: u64,
    /// For how long it was ready and did not run, ns.
    pub(super) waited_ns: Option<u64>,
    pub(super) runnable: bool,
}

impl DeadlineSample {
    /// Looks at the thread; `None` if it has ended, has left the class, or the kernel does not tell.
    pub(super) fn at(reserved: &ReservedThread) -> Option<DeadlineSample> {
        let at_ns = now_ns(ClockId::Monotonic);
        let tid = reserved.life.id;
        // Brings the account of a running thread up to date, which reading the file does not.
        let _ = ProcessTime::for_task(reserved.process).read_ns();
        let state = members::state_of(tid)?;
        let text = fs::read_to_string(format!("/proc/{tid}/sched")).ok()?;
        let schedstat = fs::read_to_string(format!("/proc/{tid}/schedstat")).unwrap_or_default();
        let waited_ns = schedstat.split_ascii_whitespace().nth(1).and_then(|ns| ns.parse().ok());
        let account = SchedDebugEntry::read(&text)?;
        reserved.life.is_alive().then_some(DeadlineSample {
            at_ns,
            cpu_ns: account.cpu_ns,
            left_ns: account.left_ns,
            deadline_ns: account.deadline_ns,
            waited_ns,
            runnable: state == 'R',
        })
    }
}

/// Detects a thread that the kernel forgot. On Linux 6.18 it was seen, twice in 100,000 entries of the class, that a
/// thread that had used up its budget was not given the next one: ready, 0.7 us over its budget, its deadline minutes
/// ago. Only leaving the class wakes it; not even SIGKILL does.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StallDetector {
    /// The first look that found it as it is, while it wanted more than it had.
    since: Option<DeadlineSample>,
}

impl StallDetector {
    /// No period of the class is late by this time, ns, or by this number of periods.
    const LEAST_NS: u64 = 1_000_000_000;
    const PERIODS: u64 = 10;

    /// Whether it has been so for long, seen once more; then it counts anew.
    pub(super) fn sees(&mut self, look: &DeadlineSample, period_ns: u64) -> bool {
        let wants = look.runnable && look.left_ns <= 0;
        let same = |first: &DeadlineSample| {
            (first.cpu_ns, first.deadline_ns) == (look.cpu_ns, look.deadline_ns) && wants
        };
        let Some(first) = self.since.filter(same) else {
            self.since = wants.then_some(*look);
            return false;
        };
        let long_ns = period_ns.saturating_mul(StallDetector::PERIODS).max(StallDetector::LEAST_NS);
        let is_stuck = look.at_ns.saturating_sub(first.at_ns) >= long_ns;
        if is_stuck {
            self.since = None;
        }
        is_stuck
    }
}

/// Fields of `/proc/TID/sched`, all of one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SchedDebugEntry {
    cpu_ns: u64,
    left_ns: i64,
    deadline_ns: u64,
}

impl SchedDebugEntry {
    fn read(text: &str) -> Option<SchedDebugEntry> {
        let value = |name: &str| {
            text.lines().find_map(|line| {
                let (key, value) = line.split_once(':')?;
                (key.trim() == name).then_some(value.trim())
            })
        };
        Some(SchedDebugEntry {
            cpu_ns: millis(value("se.sum_exec_runtime")?)?,
            left_ns: value("dl.runtime")?.parse().ok()?,
            deadline_ns: value("dl.deadline")?.parse().ok()?,
        })
    }
}

/// `261.751395`: milliseconds with six places, as ns.
fn millis(text: &str) -> Option<u64> {
    let (whole, places) = text.split_once('.')?;
    let nanos: u64 = (places.len() == 6).then_some(places)?.parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux 6.18 writes it.
    const TOLD: &str = "\
sh (9743, #threads: 1)
-------------------------------------------------------------------
se.exec_start                                :      47936739.619921
se.sum_exec_runtime                          :           261.751395
nr_voluntary_switches                        :                    2
policy                                       :                    6
dl.runtime                                   :             -2840362
dl.deadline                                  :       48101122499170
";

    #[test]
    fn the_kernels_account_is_read() {
        let account = SchedDebugEntry {
            cpu_ns: 261_751_395,
            left_ns: -2_840_362,
            deadline_ns: 48_101_122_499_170,
        };
        assert_eq!(SchedDebugEntry::read(TOLD), Some(account));
        // A thread of another class has no such lines.
        let other: String = TOLD.lines().filter(|line| !line.starts_with("dl.")).collect();
        assert_eq!(SchedDebugEntry::read(&other), None);
        assert_eq!(millis("1.5"), None);
        assert_eq!(millis("18446744073709551615.000000"), None);
    }

    #[test]
    fn a_thread_is_known_again_and_another_is_not() {
        let own = ReservedThread::open(std::process::id()).unwrap();
        assert!(DeadlineSample::at(&own).is_none(), "it is in another class");
        let error = ReservedThread::open(u32::MAX).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(crate::ownership::ESRCH));
    }
}
