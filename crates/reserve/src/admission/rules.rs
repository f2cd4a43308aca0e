//! What the kernel's deadline class demands beside bandwidth (`__sched_setscheduler` and
//! `__checkparam_dl`; Documentation/scheduler/sched-deadline.rst, sections 4 and 5).

use hourglass_documents::CpuSet;
use hourglass_time::Span;

use super::{AdmissionFacts, Obstacle, Refusal};
use crate::request::BackendRequest;

/// The least budget, ns (`DL_SCALE`).
pub(super) const SHORTEST_BUDGET_NS: i64 = 1024;

/// Periods that the class takes where the kernel does not tell them, microseconds.
const PERIOD_MIN_US: u64 = 100;
const PERIOD_MAX_US: u64 = 4_194_304;

/// The usual share of the real-time classes, microseconds in a second.
pub(super) const USUAL_RT_RUNTIME_US: i64 = 950_000;

pub(super) fn times(request: &BackendRequest, facts: &AdmissionFacts) -> Option<Refusal> {
    let reservation = &request.reservation;
    let shortest = micros(facts.deadline_period_min_us.unwrap_or(PERIOD_MIN_US));
    let longest = micros(facts.deadline_period_max_us.unwrap_or(PERIOD_MAX_US));
    let (budget, period) = (reservation.budget(), reservation.period());
    let (cause, remedy) = if period < shortest {
        (
            format!(
                "a period of {period} is below kernel.sched_deadline_period_min_us, {shortest}"
            ),
            format!("choose a period of at least {shortest}"),
        )
    } else if period > longest {
        (
            format!("a period of {period} is above kernel.sched_deadline_period_max_us, {longest}"),
            format!("choose a period of at most {longest}"),
        )
    } else if budget < Span::from_nanos(SHORTEST_BUDGET_NS) {
        (
            format!("a budget of {budget} is below the deadline class's least, 1.024us"),
            "reserve at least 1.024us".to_owned(),
        )
    } else {
        return None;
    };
    Some(Refusal::deadline(Obstacle::Times, cause, remedy))
}

/// `CAP_SYS_NICE`, in the first user namespace.
pub(super) fn capability(_: &BackendRequest, facts: &AdmissionFacts) -> Option<Refusal> {
    let (cause, remedy) = match (facts.sys_nice, facts.user_namespace) {
        (Some(true), Some(true)) => (
            "CAP_SYS_NICE counts only inside this user namespace (/proc/self/uid_map), and the \
             kernel asks for it outside",
            "run it outside of the user namespace, as a user with the privilege",
        ),
        (Some(false), _) => (
            "CAP_SYS_NICE is missing (CapEff in /proc/self/status); no resource limit grants the \
             deadline class",
            "sudo setcap cap_sys_nice,cap_ipc_lock+ep $(command -v hourglass); in a container: \
             --cap-add SYS_NICE",
        ),
        _ => return None,
    };
    Some(Refusal::deadline(Obstacle::Capability, cause.to_owned(), remedy.to_owned()))
}

pub(super) fn cpu(request: &BackendRequest, facts: &AdmissionFacts) -> Option<Refusal> {
    let (cause, remedy) = not_there(request, facts)?;
    Some(Refusal::deadline(Obstacle::Cpu, cause, remedy))
}

/// Why the CPU asked for cannot be had by any backend.
pub(crate) fn not_there(
    request: &BackendRequest,
    facts: &AdmissionFacts,
) -> Option<(String, String)> {
    let cpu = request.cpu?;
    let online = facts.online.as_ref().filter(|online| !online.contains(cpu))?;
    if facts.present.as_ref().is_some_and(|present| !present.contains(cpu)) {
        let cause = format!("there is no CPU {cpu} on this machine; online are {online}");
        return Some((cause, "choose one of these".to_owned()));
    }
    Some((
        format!("CPU {cpu} is not among /sys/devices/system/cpu/online, {online}"),
        format!(
            "choose one of these, or: echo 1 | sudo tee /sys/devices/system/cpu/cpu{cpu}/online"
        ),
    ))
}

/// Why the CPU asked for cannot be had by a backend that pins.
pub(crate) fn not_permitted(
    request: &BackendRequest,
    facts: &AdmissionFacts,
) -> Option<(String, String)> {
    not_there(request, facts).or_else(|| {
        let (cpu, cpuset) = (request.cpu?, facts.cpuset.as_ref()?);
        (!cpuset.cpus.contains(cpu)).then(|| {
            let (folder, cpus) = (&cpuset.folder, &cpuset.cpus);
            (
                format!("CPU {cpu} is not in the cpuset {folder}, which has {cpus}"),
                "choose one of these, or give the cpuset more".to_owned(),
            )
        })
    })
}

/// Whether everything is admitted, wherever it may run.
fn unlimited(facts: &AdmissionFacts) -> bool {
    facts.rt_runtime_us.is_some_and(|us| us < 0)
}

/// A CPU of its own is to be had only in a domain of one CPU.
pub(super) fn pinned(request: &BackendRequest, facts: &AdmissionFacts) -> Option<Refusal> {
    let cpu = request.cpu.filter(|_| !unlimited(facts))?;
    let domain = facts.domain.as_ref()?;
    let alone: CpuSet = [cpu].into_iter().collect();
    if *domain == alone || facts.online.as_ref().is_some_and(|online| !online.contains(cpu)) {
        return None;
    }
    Some(Refusal::deadline(
        Obstacle::Affinity,
        format!(
            "the deadline class does not pin: its threads move over their root domain, CPUs {domain}, \
             and it is to stay on CPU {cpu}"
        ),
        format!(
            "name no CPU for it, or --backend user, which pins; or make CPU {cpu} a domain of its own: {}",
            partition(&alone, facts)
        ),
    ))
}

pub(super) fn affinity(request: &BackendRequest, facts: &AdmissionFacts) -> Option<Refusal> {
    if unlimited(facts) || request.cpu.is_some() {
        return None;
    }
    let (affinity, domain) = (facts.affinity.as_ref()?, facts.domain.as_ref()?);
    let lacking = domain.difference(affinity);
    if lacking.is_empty() {
        return None;
    }
    let subject = facts.subject.map_or("this thread".to_owned(), |tid| format!("thread {tid}"));
    let narrow =
        facts.cpuset.as_ref().filter(|cpuset| !lacking.difference(&cpuset.cpus).is_empty());
    let cause = match narrow {
        Some(cpuset) => format!(
            "{subject} may run on CPUs {affinity}, its cpuset {} has CPUs {}, and the deadline class \
             wants all of its root domain, CPUs {domain}",
            cpuset.folder, cpuset.cpus
        ),
        None => format!(
            "{subject} may run on CPUs {affinity} (Cpus_allowed_list), and the deadline class wants all \
             of its root domain, CPUs {domain}"
        ),
    };
    let remedy = match (narrow, facts.subject) {
        (Some(cpuset), _) => partition(&cpuset.cpus, facts),
        (None, Some(tid)) => format!("taskset -pc {domain} {tid}"),
        (None, None) => {
            format!("start it with all of them: taskset -c {domain}")
        }
    };
    Some(Refusal::deadline(Obstacle::Affinity, cause, remedy))
}

fn partition(cpus: &CpuSet, facts: &AdmissionFacts) -> String {
    match &facts.cpuset {
        Some(cpuset) if cpuset.version == 2 && cpuset.cpus == *cpus => {
            format!("echo root | sudo tee {}/cpuset.cpus.partition", cpuset.folder)
        }
        Some(cpuset) if cpuset.version == 1 && cpuset.cpus == *cpus => format!(
            "as root: echo 1 > {}/cpuset.cpu_exclusive, and echo 0 > cpuset.sched_load_balance in the \
             root cpuset",
            cpuset.folder
        ),
        _ => format!(
            "systemd-run -p AllowedCPUs={cpus}, then: echo root > cpuset.cpus.partition in its control \
             group (version 2)"
        ),
    }
}

pub(super) fn switched_off(_: &BackendRequest, facts: &AdmissionFacts) -> Option<Refusal> {
    (facts.rt_runtime_us == Some(0)).then(|| {
        Refusal::deadline(
            Obstacle::Bandwidth,
            "kernel.sched_rt_runtime_us is 0: the deadline class has nothing to give".to_owned(),
            format!("sudo sysctl kernel.sched_rt_runtime_us={USUAL_RT_RUNTIME_US}"),
        )
    })
}

pub(super) fn micros(us: u64) -> Span {
    Span::from_micros(i64::try_from(us).unwrap_or(i64::MAX))
}
