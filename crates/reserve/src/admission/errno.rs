//! What stands behind the kernel's answer to `sched_setattr` for the deadline class.

use super::{Facts, Obstacle, Refusal, bandwidth, deadline};
use crate::backend::{Kind, Request};

/// Error numbers, the same on every architecture of Linux with a clock source for Hourglass.
pub(crate) const EPERM: i32 = 1;
pub(crate) const ESRCH: i32 = 3;
pub(crate) const E2BIG: i32 = 7;
pub(crate) const EAGAIN: i32 = 11;
pub(crate) const EACCES: i32 = 13;
pub(crate) const EBUSY: i32 = 16;
pub(crate) const ENODEV: i32 = 19;
pub(crate) const EINVAL: i32 = 22;
pub(crate) const ENOSYS: i32 = 38;

/// Why the kernel answered a request for the deadline class with `errno`: what of the facts
/// explains it, and the line that mends it.
#[must_use]
pub fn explain(errno: i32, request: &Request, facts: &Facts) -> Refusal {
    let causes = causes_of(errno);
    let seen = deadline(request, facts).into_iter().find(|refusal| causes.contains(&refusal.id));
    let refusal = seen.unwrap_or_else(|| unseen(errno, request, facts));
    Refusal { errno: Some(errno), ..refusal }
}

/// What the kernel says with it.
fn causes_of(errno: i32) -> &'static [Obstacle] {
    match errno {
        // The class switched off is Bandwidth.
        EPERM | EACCES => &[Obstacle::Capability, Obstacle::Affinity, Obstacle::Bandwidth],
        EBUSY => &[Obstacle::Bandwidth],
        EINVAL => &[Obstacle::Times],
        _ => &[],
    }
}

/// What is said where the facts show nothing in the way.
fn unseen(errno: i32, request: &Request, facts: &Facts) -> Refusal {
    let (id, cause, remedy) = match errno {
        EPERM | EACCES => (
            Obstacle::Capability,
            "the privilege is there and the affinity covers the root domain; a seccomp filter or a \
             security module refuses sched_setattr"
                .to_owned(),
            "in a container: --security-opt seccomp=unconfined; else sudo dmesg | grep -i -e audit -e \
             denied names the rule",
        ),
        EBUSY => return busy(request, facts),
        EINVAL => (
            Obstacle::Times,
            "the deadline class does not take these times (EINVAL)".to_owned(),
            "choose a period from 100us to 4.194304s and a budget of at least 1.024us",
        ),
        EAGAIN => (
            Obstacle::Fork,
            "a thread of the deadline class may not fork (EAGAIN)".to_owned(),
            "let it make its threads and children first, or --backend user, which has one budget for all",
        ),
        ESRCH => (
            Obstacle::Gone,
            "there is no such thread: it has ended".to_owned(),
            "name one that runs; ls /proc/PID/task has the threads of a process",
        ),
        ENOSYS | E2BIG | ENODEV => (
            Obstacle::Missing,
            "this kernel has no deadline class (Linux 3.14 and later have it)".to_owned(),
            "--backend user",
        ),
        _ => (
            Obstacle::Missing,
            format!("the kernel said: {}", std::io::Error::from_raw_os_error(errno)),
            "sudo dmesg | tail may tell more",
        ),
    };
    Refusal { backend: Kind::Deadline, id, errno: None, cause, remedy: remedy.to_owned() }
}

/// Busy although the sum fits: somebody whom we do not see has it, or had it until just now.
fn busy(request: &Request, facts: &Facts) -> Refusal {
    let (mut cause, mut remedy) = (
        "the bandwidth is given away (EBUSY), by more than can be seen here".to_owned(),
        "wait a second and try again, or reserve less".to_owned(),
    );
    if let Some(sum) = bandwidth(request, facts) {
        cause = format!(
            "{}, and that would fit: threads of other containers, or bandwidth that was given back \
             less than 200 ms ago, must have the rest",
            super::bandwidth::cause(request, facts, &sum)
        );
        remedy = format!(
            "wait a second and try again, or reserve less; root sees the account with: mount -t debugfs \
             none /sys/kernel/debug; grep total_bw /sys/kernel/debug/sched/debug"
        );
    }
    Refusal { backend: Kind::Deadline, id: Obstacle::Bandwidth, errno: None, cause, remedy }
}
