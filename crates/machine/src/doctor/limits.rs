//! What this user may do: policies, locked memory, nice values, time limits, timer slack.
//!
//! Sources: `sched(7)`, `setrlimit(2)`, `capabilities(7)`, `limits.conf(5)`, `mlockall(2)`,
//! `PR_SET_TIMERSLACK(2const)`, `proc_pid_timerslack_ns(5)`.

use hourglass_documents::host::{Bound, Limit};
use hourglass_documents::host_limits::micros;
use hourglass_documents::premise;

use super::input::DoctorInput;
use super::remedy;
use super::verdict::{CheckVerdict, unread};
use crate::advice::refusal_advice::{Grantee, lacks, limit_text, why_refused_to};
use crate::advice::{RefusedOperation, machine};

/// EPERM, the answer to those who may not.
const EPERM: i32 = 1;

const HIGHEST_PRIORITY: u8 = 99;

/// The priority of the kernel's interrupt threads (`MAX_RT_PRIO / 2`).
const INTERRUPT_PRIORITY: u64 = 50;

/// RLIMIT_NICE from which on a thread may have nice values below 0.
const NICE_ZERO: u64 = 20;

/// Timer slack that the kernel gives to ordinary threads.
const USUAL_SLACK_NS: u64 = 50_000;

const LIMITS: &str = "/proc/self/limits";

/// The line that grants to the user what was refused with `errno`, and why it was.
fn refused(e: &DoctorInput, refused: RefusedOperation, errno: i32) -> (String, String) {
    let name = e.tuning.user.name.as_deref().unwrap_or("@realtime");
    let (reason, remedy) = why_refused_to(Grantee::User(name), refused, errno, &e.host);
    (reason, remedy::own(e, &remedy))
}

pub(super) fn real_time_priority(e: &DoctorInput) -> CheckVerdict {
    let highest = RefusedOperation::RealTime { priority: HIGHEST_PRIORITY };
    match e.trials.real_time {
        None => CheckVerdict::unknown("it was not tried", "chrt -f 1 true"),
        Some(Err(errno)) => {
            let (reason, remedy) = refused(e, highest, errno);
            CheckVerdict::fail(format!("SCHED_FIFO is refused: {reason}"), remedy)
        }
        Some(Ok(())) => {
            let process = &e.host.process;
            let by_capability = lacks(&e.host, process.cap_sys_nice, "CAP_SYS_NICE").is_none();
            match process.real_time_priority.map(|limit| limit.soft) {
                Some(Bound::At(most)) if !by_capability && most < INTERRUPT_PRIORITY => {
                    CheckVerdict::warn(
                        format!(
                            "up to {most} (RLIMIT_RTPRIO), below the {INTERRUPT_PRIORITY} of \
                             interrupt threads"
                        ),
                        refused(e, highest, EPERM).1,
                    )
                }
                Some(Bound::At(most)) if !by_capability => {
                    CheckVerdict::ok(format!("SCHED_FIFO up to {most} (RLIMIT_RTPRIO)"))
                }
                _ => CheckVerdict::ok(format!("SCHED_FIFO up to {HIGHEST_PRIORITY}")),
            }
        }
    }
}

pub(super) fn deadline_class(e: &DoctorInput) -> CheckVerdict {
    match e.trials.deadline {
        None => CheckVerdict::unknown("it was not tried", "chrt -d -T 1000000 -P 100000000 0 true"),
        Some(Ok(())) => CheckVerdict::ok("SCHED_DEADLINE is granted"),
        Some(Err(errno)) => {
            let (reason, remedy) = refused(e, RefusedOperation::Deadline, errno);
            CheckVerdict::warn(format!("SCHED_DEADLINE is refused: {reason}"), remedy)
        }
    }
}

pub(super) fn locked_memory(e: &DoctorInput) -> CheckVerdict {
    let process = &e.host.process;
    let Some(limit) = process.memory_lock_bytes else {
        return unread(e, LIMITS);
    };
    let Some(lack) = lacks(&e.host, process.cap_ipc_lock, "CAP_IPC_LOCK") else {
        return CheckVerdict::ok("as much as there is (CAP_IPC_LOCK)");
    };
    match limit {
        Limit { soft: Bound::Unlimited, .. } => {
            CheckVerdict::ok("as much as there is (RLIMIT_MEMLOCK)")
        }
        Limit { soft: Bound::At(_), hard } => {
            let remedy = match hard {
                Bound::Unlimited => {
                    "ulimit -l unlimited # in the shell that starts the work".to_owned()
                }
                Bound::At(_) => {
                    refused(e, RefusedOperation::MemoryLock { bytes: u64::MAX }, EPERM).1
                }
            };
            let most = limit_text(Some(limit));
            CheckVerdict::warn(format!("at most {most} bytes (RLIMIT_MEMLOCK); {lack}"), remedy)
        }
    }
}

pub(super) fn nice(e: &DoctorInput) -> CheckVerdict {
    let process = &e.host.process;
    let Some(limit) = process.nice_ceiling else {
        return unread(e, LIMITS);
    };
    let Some(lack) = lacks(&e.host, process.cap_sys_nice, "CAP_SYS_NICE") else {
        return CheckVerdict::ok("down to -20 (CAP_SYS_NICE)");
    };
    match limit.soft {
        Bound::At(most) if most <= NICE_ZERO => {
            let wanted = RefusedOperation::NegativeNice { nice: -20 };
            CheckVerdict::warn(
                format!("none below 0 (RLIMIT_NICE is {most}); {lack}"),
                refused(e, wanted, EPERM).1,
            )
        }
        Bound::At(most) => {
            CheckVerdict::ok(format!("down to -{} (RLIMIT_NICE)", most.min(40) - NICE_ZERO))
        }
        Bound::Unlimited => CheckVerdict::ok("down to -20 (RLIMIT_NICE)"),
    }
}

/// Real-time threads that never wait are killed where RLIMIT_RTTIME is set.
pub(super) fn real_time_limit(e: &DoctorInput) -> CheckVerdict {
    if e.host.process.real_time_timeout_us.is_none() {
        return unread(e, LIMITS);
    }
    match machine::rt_time_limit_us(&e.host) {
        None => CheckVerdict::ok("no limit (RLIMIT_RTTIME)"),
        Some(longest_us) => CheckVerdict::warn(
            format!(
                "real-time threads are killed after {} without a wait (RLIMIT_RTTIME)",
                micros(longest_us)
            ),
            remedy::own(e, premise::LIFT_RT_TIME),
        ),
    }
}

/// How late the kernel may wake ordinary threads. Real-time threads have no slack.
pub(super) fn timer_slack(e: &DoctorInput) -> CheckVerdict {
    let Some(slack_ns) = e.tuning.timer_slack_ns else {
        return unread(e, "/proc/self/timerslack_ns");
    };
    let found = format!("{slack_ns} ns for ordinary threads, none for real-time ones");
    let only_ordinary = matches!(e.trials.real_time, Some(Err(_)));
    if slack_ns > USUAL_SLACK_NS || (only_ordinary && slack_ns >= USUAL_SLACK_NS) {
        let found = if only_ordinary { format!("{found}, which are refused") } else { found };
        return CheckVerdict::warn(
            found,
            "echo 1 > /proc/$$/timerslack_ns # in the shell that starts the work",
        )
        .delaying(slack_ns);
    }
    CheckVerdict::ok(found)
}
