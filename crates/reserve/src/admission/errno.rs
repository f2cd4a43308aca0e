//! What stands behind the kernel's answer to `sched_setattr` for the deadline class.

use crate::ownership::ESRCH;

use super::{AdmissionFacts, Obstacle, Refusal, bandwidth, deadline};
use crate::request::BackendRequest;

/// Error numbers, the same on every architecture of Linux with a clock source for Hourglass.
pub(crate) const EPERM: i32 = 1;
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
pub fn explain(errno: i32, request: &BackendRequest, facts: &AdmissionFacts) -> Refusal {
    let causes = causes_of(errno);
    let seen = deadline(request, facts).into_iter().find(|refusal| causes.contains(&refusal.id));
    let refusal = seen.unwrap_or_else(|| unseen(errno, request, facts));
    Refusal { errno: Some(errno), ..refusal }
}

fn causes_of(errno: i32) -> &'static [Obstacle] {
    match errno {
        // The class switched off is Bandwidth.
        EPERM | EACCES => &[Obstacle::Capability, Obstacle::Affinity, Obstacle::Bandwidth],
        EBUSY => &[Obstacle::Bandwidth],
        EINVAL => &[Obstacle::Times],
        _ => &[],
    }
}

fn unseen(errno: i32, request: &BackendRequest, facts: &AdmissionFacts) -> Refusal {
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
            "no such thread: it has ended".to_owned(),
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
            "sudo dmesg | tail may show the cause",
        ),
    };
    Refusal::deadline(id, cause, remedy.to_owned())
}

/// The kernel answers EBUSY although the sum fits: a thread that is not visible here has the bandwidth, or had it until
/// just now, or the kernel's account is wrong.
///
/// Linux 6.18 was seen with an account below zero after threads of several programs had entered and left the
/// class at the same time; the cause is not known. Below zero it compares as more than there is, so that every
/// request is refused, until the kernel counts anew, which it does when cpusets change.
fn busy(request: &BackendRequest, facts: &AdmissionFacts) -> Refusal {
    let sum = bandwidth(request, facts)
        .map_or("the bandwidth is given away (EBUSY)".to_owned(), |sum| {
            super::bandwidth::cause(request, facts, &sum)
        });
    let below = facts.accounts.values().any(|account| *account < 0);
    let (cause, remedy) = if below {
        (
            format!(
                "{sum}; that would fit, but the kernel's account has gone below zero (total_bw in \
                 /sys/kernel/debug/sched/debug), and then it refuses everything"
            ),
            recount(),
        )
    } else {
        (
            format!(
                "{sum}, and that would fit: a thread of another container may have the rest, or the \
                 kernel's account is wrong"
            ),
            format!(
                "wait a second and try again, or reserve less; to let the kernel recount: {}",
                recount()
            ),
        )
    };
    Refusal::deadline(Obstacle::Bandwidth, cause, remedy)
}

/// A cpuset that is made and taken away has the kernel count anew.
fn recount() -> String {
    let group = "/sys/fs/cgroup/cpuset/recount";
    format!(
        "as root: mkdir {group} && echo 0 > {group}/cpuset.cpus; rmdir {group} (version 1; version 2: \
         make and remove a partition)"
    )
}
