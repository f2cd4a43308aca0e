//! Why the kernel refused a policy or a lock, and the exact line that grants it.

use std::path::Path;

use hourglass_documents::host::{Bound, Host, Limit};

use hourglass_documents::host_limits::{micros, share_ppm};

use super::percent;

/// Error numbers that have a meaning here; the same on every architecture of Linux that has a
/// clock source for Hourglass.
const EPERM: i32 = 1;
const ENOMEM: i32 = 12;
const EACCES: i32 = 13;
const EBUSY: i32 = 16;
const EINVAL: i32 = 22;

/// The kernel's default real-time runtime.
const USUAL_RT_RUNTIME_US: i64 = 950_000;

/// Times that the deadline class takes when the kernel does not tell them.
const DEADLINE_PERIOD_MIN_US: u64 = 100;
const DEADLINE_PERIOD_MAX_US: u64 = 4_194_304;

/// The programs that have capabilities of their own; a program that starts another one gives it none.
const PROGRAMS: [&str; 2] = ["hourglass", "hourglass-paper"];

/// The line that gives the running program its capabilities.
fn setcap() -> String {
    setcap_for(std::env::current_exe().ok().as_deref())
}

/// The line for the program at this path; for `hourglass` where that is another one.
fn setcap_for(path: Option<&Path>) -> String {
    let own = path.and_then(Path::file_name);
    let is_own = |name: &&str| own.is_some_and(|own| own == *name);
    let program = PROGRAMS.into_iter().find(is_own).unwrap_or(PROGRAMS[0]);
    format!("sudo setcap cap_sys_nice,cap_ipc_lock+ep $(command -v {program})")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedOperation {
    /// FIFO or RR with this priority.
    RealTime {
        /// From 1 to 99.
        priority: u8,
    },
    /// A nice value below the present one.
    NegativeNice {
        /// From -20 to 19.
        nice: i8,
    },
    Deadline,
    MemoryLock {
        bytes: u64,
    },
}

/// Why `refused` failed with `errno` on `host`, and what grants it: reason and remedy, one line
/// each.
#[must_use]
pub fn why_refused(refused: RefusedOperation, errno: i32, host: &Host) -> (String, String) {
    why_refused_to(Grantee::Hourglass, refused, errno, host)
}

/// The same, with the line that grants it to `whom`.
pub(crate) fn why_refused_to(
    whom: Grantee<'_>,
    refused: RefusedOperation,
    errno: i32,
    host: &Host,
) -> (String, String) {
    match (refused, errno) {
        (RefusedOperation::RealTime { priority }, EPERM | EACCES) => {
            real_time(priority, whom, host)
        }
        (RefusedOperation::RealTime { priority }, EINVAL) => (
            format!("{priority} is not a real-time priority"),
            "choose one from 1 (lowest) to 99".to_owned(),
        ),
        (RefusedOperation::NegativeNice { nice }, EPERM | EACCES) => {
            negative_nice(nice, whom, host)
        }
        (RefusedOperation::Deadline, EPERM | EACCES) => deadline(host),
        (RefusedOperation::Deadline, EBUSY) => deadline_busy(host),
        (RefusedOperation::Deadline, EINVAL) => deadline_invalid(host),
        (RefusedOperation::MemoryLock { bytes }, EPERM | EACCES | ENOMEM) => {
            memory_lock(bytes, whom, host)
        }
        _ => otherwise(errno),
    }
}

/// An error that none of the known causes has.
fn otherwise(errno: i32) -> (String, String) {
    (
        format!("the kernel said: {}", std::io::Error::from_raw_os_error(errno)),
        "sudo dmesg | tail may show the cause; a security module or a kernel without this feature can \
         be the cause"
            .to_owned(),
    )
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grantee<'a> {
    /// To this command.
    Hourglass,
    /// To all programs of the user with this name.
    User(&'a str),
}

/// Where the limits of a user are set (`limits.conf(5)`).
const LIMITS_FILE: &str = "/etc/security/limits.d/99-realtime.conf";

/// How a privilege is granted, inside a container and outside.
struct Grant {
    /// Capability, without `CAP_`.
    capability: &'static str,
    /// `--ulimit` of docker and podman, if a limit grants it too.
    ulimit: Option<&'static str>,
    /// Limit and value as `limits.conf(5)` writes them, if a limit grants it too.
    limit: Option<&'static str>,
}

const GRANT_REAL_TIME: Grant =
    Grant { capability: "SYS_NICE", ulimit: Some("rtprio=99"), limit: Some("rtprio 99") };
const GRANT_NICE: Grant =
    Grant { capability: "SYS_NICE", ulimit: Some("nice=40"), limit: Some("nice -20") };
const GRANT_DEADLINE: Grant = Grant { capability: "SYS_NICE", ulimit: None, limit: None };
const GRANT_LOCK: Grant =
    Grant { capability: "IPC_LOCK", ulimit: Some("memlock=-1"), limit: Some("memlock unlimited") };

impl Grant {
    /// The line that grants it to `whom` on `host`.
    fn remedy(&self, whom: Grantee<'_>, host: &Host) -> String {
        let rootless = host.process.user_namespace == Some(true);
        let Some(container) = &host.container else {
            return match (rootless, self.limit, whom) {
                (true, ..) => {
                    "run it outside of the user namespace, as a user with the privilege".to_owned()
                }
                (false, None, _) => setcap(),
                (false, Some(limit), Grantee::User(name)) => format!(
                    "echo '{name} - {limit}' | sudo tee -a {LIMITS_FILE} # then log in again"
                ),
                (false, Some(limit), Grantee::Hourglass) => format!(
                    "{}; or the line '@realtime - {limit}' in /etc/security/limits.d/realtime.conf, for \
                     members of the group realtime after their next login",
                    setcap()
                ),
            };
        };
        match (container.kind.as_str(), self.ulimit) {
            (_, None) if rootless => {
                "start the container as root: a rootless one cannot have it".to_owned()
            }
            ("kubernetes", _) => format!(
                "securityContext: {{capabilities: {{add: [\"{}\"]}}}} in the pod's container",
                self.capability
            ),
            (_, Some(ulimit)) if rootless => format!(
                "start the container with --ulimit {ulimit}, as a user whose own limit is as high"
            ),
            (_, Some(ulimit)) => {
                format!("start the container with --cap-add {} --ulimit {ulimit}", self.capability)
            }
            (_, None) => format!("start the container with --cap-add {}", self.capability),
        }
    }
}

/// Why a capability does not help: `None` if it is there and counts.
pub(crate) fn lacks(host: &Host, held: Option<bool>, name: &str) -> Option<String> {
    match (held, host.process.user_namespace) {
        (Some(true), Some(true)) => Some(format!(
            "{name} counts only inside this user namespace, and the kernel asks for it outside"
        )),
        (Some(true), _) => None,
        (Some(false), _) => Some(format!("{name} is missing")),
        (None, _) => Some(format!("{name} may be missing")),
    }
}

pub(crate) fn limit_text(limit: Option<Limit>) -> String {
    match limit.map(|limit| limit.soft) {
        Some(Bound::At(most)) => most.to_string(),
        Some(Bound::Unlimited) => "unlimited".to_owned(),
        None => "unknown".to_owned(),
    }
}

/// Whether a limit allows `amount`: now, or once the process raises it itself.
fn allows(limit: Option<Limit>, amount: u64) -> (bool, bool) {
    limit.map_or((false, false), |limit| (limit.soft.allows(amount), limit.hard.allows(amount)))
}

fn real_time(priority: u8, whom: Grantee<'_>, host: &Host) -> (String, String) {
    let mut causes = Vec::new();
    causes.extend(no_rt_budget(host));
    let limit = host.process.real_time_priority;
    let (now, when_raised) = allows(limit, u64::from(priority));
    if let (false, Some(lack)) = (now, lacks(host, host.process.cap_sys_nice, "CAP_SYS_NICE")) {
        let remedy = if when_raised {
            format!("ulimit -r {priority} # in the shell that starts the run")
        } else {
            GRANT_REAL_TIME.remedy(whom, host)
        };
        causes.push((format!("{lack} and RLIMIT_RTPRIO is {}", limit_text(limit)), remedy));
    }
    if causes.is_empty() {
        causes.extend(hidden_rt_budget(host));
    }
    joined(causes).unwrap_or_else(|| withheld(host))
}

/// A control group of version 1 that gives real-time threads nothing.
pub(crate) fn no_rt_budget(host: &Host) -> Option<(String, String)> {
    let (own, ancestors) = host.cgroup.rt_budgets.split_first()?;
    // Without a limit for the machine the kernel does not look at the groups.
    if own.runtime_us != 0 || host.scheduler.rt_runtime_us.is_some_and(|us| us < 0) {
        return None;
    }
    let runtime = ancestors
        .iter()
        .map(|budget| budget.runtime_us)
        .filter(|us| *us > 0)
        .min()
        .map_or(USUAL_RT_RUNTIME_US, |us| us.min(USUAL_RT_RUNTIME_US));
    // A group can get no more than its parent has, so the outermost comes first.
    let empty = host.cgroup.rt_budgets.iter().take_while(|budget| budget.runtime_us == 0);
    let mut lines: Vec<String> =
        empty.map(|budget| format!("echo {runtime} > {}", budget.file)).collect();
    lines.reverse();
    let mut remedy = format!("{} # as root", lines.join(" && "));
    if host.container.is_some() {
        remedy.push_str(" on the container's host, or start the container with --cpu-rt-runtime=");
        remedy.push_str(&runtime.to_string());
    }
    let reason = format!("the control group gives real-time threads no time: {} is 0", own.file);
    Some((reason, remedy))
}

/// Real-time group scheduling under version 2, which has no file to show or to mend it.
pub(crate) fn hidden_rt_budget(host: &Host) -> Option<(String, String)> {
    if host.scheduler.rt_runtime_us == Some(0) {
        return Some((
            "kernel.sched_rt_runtime_us is 0: real-time threads get no time".to_owned(),
            format!("sudo sysctl kernel.sched_rt_runtime_us={USUAL_RT_RUNTIME_US}"),
        ));
    }
    let grouped = host.scheduler.rt_group_scheduling;
    let limited = host.scheduler.rt_runtime_us.is_none_or(|us| us >= 0);
    // A container sees its own group as the root, which it is not.
    let group = host
        .cgroup
        .groups
        .iter()
        .find(|group| group.version == 2 && (group.path != "/" || host.container.is_some()))?;
    let visible = !host.cgroup.rt_budgets.is_empty();
    if grouped == Some(false) || visible || !limited {
        return None;
    }
    let certainty = match grouped {
        Some(true) => "has",
        _ => "may have",
    };
    let remedy = match host.container {
        Some(_) => {
            "on the container's host: sudo sysctl kernel.sched_rt_runtime_us=-1, or boot with \
             rt_group_sched=0"
        }
        None => {
            "echo $$ | sudo tee /sys/fs/cgroup/cgroup.procs before the run, or boot with \
             rt_group_sched=0, or sudo sysctl kernel.sched_rt_runtime_us=-1"
        }
    };
    Some((
        format!(
            "the kernel {certainty} CONFIG_RT_GROUP_SCHED, which gives the control group {} no \
             real-time share",
            group.path
        ),
        remedy.to_owned(),
    ))
}

/// Refused although nothing that can be seen is missing.
fn withheld(host: &Host) -> (String, String) {
    let reason = match host.process.seccomp {
        Some(true) => {
            "the privilege is there; a seccomp filter or a security module refuses the call"
        }
        _ => "the privilege is there; a security module refuses the call",
    };
    let remedy = match host.container {
        Some(_) => "start the container with --security-opt seccomp=unconfined",
        None => "sudo dmesg | grep -i -e audit -e denied names the rule",
    };
    (reason.to_owned(), remedy.to_owned())
}

/// Several causes in one line each.
fn joined(causes: Vec<(String, String)>) -> Option<(String, String)> {
    causes.into_iter().reduce(|(reasons, remedies), (reason, remedy)| {
        (format!("{reasons}; and {reason}"), format!("{remedies}; and {remedy}"))
    })
}

fn negative_nice(nice: i8, whom: Grantee<'_>, host: &Host) -> (String, String) {
    let limit = host.process.nice_ceiling;
    // The limit counts upwards: 1 is nice 19, 40 is nice -20.
    let wanted = u64::try_from(20 - i16::from(nice)).unwrap_or_default();
    let (now, when_raised) = allows(limit, wanted);
    match lacks(host, host.process.cap_sys_nice, "CAP_SYS_NICE") {
        Some(lack) if !now => (
            format!("{lack} and RLIMIT_NICE is {}; nice {nice} needs {wanted}", limit_text(limit)),
            if when_raised {
                format!("ulimit -e {wanted} # in the shell that starts the run")
            } else {
                GRANT_NICE.remedy(whom, host)
            },
        ),
        _ => withheld(host),
    }
}

/// The deadline class without permission.
fn deadline(host: &Host) -> (String, String) {
    if let Some(lack) = lacks(host, host.process.cap_sys_nice, "CAP_SYS_NICE") {
        return (
            format!("{lack}; no resource limit grants the deadline class"),
            GRANT_DEADLINE.remedy(Grantee::Hourglass, host),
        );
    }
    if host.scheduler.rt_runtime_us == Some(0) {
        return (
            "kernel.sched_rt_runtime_us is 0: the deadline class has nothing to give".to_owned(),
            format!("sudo sysctl kernel.sched_rt_runtime_us={USUAL_RT_RUNTIME_US}"),
        );
    }
    let own_domain = matches!(host.cgroup.cpuset_partition.as_deref(), Some("root" | "isolated"));
    let narrow = [&host.cpu.allowed, &host.cgroup.cpuset]
        .into_iter()
        .flatten()
        .find(|cpus| {
            let isolated = host.cpu.isolated.clone().unwrap_or_default();
            let domain = host.cpu.online.as_ref().map(|all| all.difference(&isolated));
            domain.is_some_and(|domain| !domain.difference(cpus).is_empty())
        })
        .filter(|_| !own_domain);
    let rule = "the deadline class needs a thread that may use every CPU of its scheduling domain";
    let reason = match narrow {
        Some(cpus) => format!("{rule}, and this process has only {cpus}"),
        None => format!("{rule}; --cpu or another affinity of its own keeps it from some"),
    };
    let remedy = match (narrow, &host.container) {
        (Some(_), Some(_)) => "start the container without --cpuset-cpus",
        (Some(_), None) => {
            "run it without taskset, or make its cpuset a domain of its own: echo root > \
             cpuset.cpus.partition in its control group"
        }
        (None, _) => {
            "leave --cpu out, or start in a control group with these CPUs whose \
             cpuset.cpus.partition is root"
        }
    };
    (reason, remedy.to_owned())
}

fn deadline_busy(host: &Host) -> (String, String) {
    let number = |value: Option<i64>, usual: u64| {
        value.and_then(|value| u64::try_from(value).ok()).unwrap_or(usual)
    };
    let share = share_ppm(
        number(host.scheduler.rt_runtime_us, 950_000),
        number(host.scheduler.rt_period_us, 1_000_000),
    );
    (
        format!(
            "the bandwidth is given already: the deadline class has {} of each CPU less what the \
             fair servers keep, and what a thread gave back stays taken for about 0.2 s; or the \
             affinity of a deadline thread was to change",
            percent(share)
        ),
        "ask for a smaller budget or a longer period, end other deadline threads (chrt -p PID \
         tells), or wait a second and try again"
            .to_owned(),
    )
}

fn deadline_invalid(host: &Host) -> (String, String) {
    let shortest = host.scheduler.deadline_period_min_us.unwrap_or(DEADLINE_PERIOD_MIN_US);
    let longest = host.scheduler.deadline_period_max_us.unwrap_or(DEADLINE_PERIOD_MAX_US);
    (
        "the deadline class does not take these times".to_owned(),
        format!(
            "choose a period from {} to {} and a budget of at least 1024ns, not above the period",
            micros(shortest),
            micros(longest)
        ),
    )
}

fn memory_lock(bytes: u64, whom: Grantee<'_>, host: &Host) -> (String, String) {
    let limit = host.process.memory_lock_bytes;
    let Some(lack) = lacks(host, host.process.cap_ipc_lock, "CAP_IPC_LOCK")
        .filter(|_| limit.is_none_or(|limit| limit.soft != Bound::Unlimited))
    else {
        return too_little_memory(bytes, host);
    };
    let (now, when_raised) = allows(limit, bytes);
    let besides = if now { " more than what is locked already" } else { "" };
    (
        format!(
            "{lack} and RLIMIT_MEMLOCK is {} bytes; {bytes} are wanted{besides}",
            limit_text(limit)
        ),
        if when_raised && !now {
            format!("ulimit -l {} # in the shell that starts the run", bytes.div_ceil(1024))
        } else {
            GRANT_LOCK.remedy(whom, host)
        },
    )
}

/// Locking is allowed, but there is nothing to lock.
fn too_little_memory(bytes: u64, host: &Host) -> (String, String) {
    match host.cgroup.memory_limit_bytes {
        Some(most) if most < bytes => (
            format!("the control group may use {most} bytes of memory; {bytes} are wanted"),
            "record less (fewer threads or smaller buffers), or raise the group's memory limit"
                .to_owned(),
        ),
        _ => (
            format!("there is too little free memory for {bytes} locked bytes"),
            "record less (fewer threads or smaller buffers), or free memory".to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `hourglass-paper` printed the line for `hourglass`, whose capabilities it does not get (execve(2)).
    #[test]
    fn capabilities_are_for_the_program_that_lacks_them() {
        for (path, program) in [
            (Some("/usr/bin/hourglass"), "hourglass"),
            (Some("/usr/bin/hourglass-paper"), "hourglass-paper"),
            (Some("/usr/bin/python3"), "hourglass"),
            (None, "hourglass"),
        ] {
            let line = setcap_for(path.map(Path::new));
            assert!(line.ends_with(&format!(" $(command -v {program})")), "{path:?}: {line}");
        }
    }
}
