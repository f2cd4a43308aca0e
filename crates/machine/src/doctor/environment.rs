//! What is below the kernel and around the process: hypervisor, control groups, other programs.
//!
//! Sources: `Documentation/admin-guide/cgroup-v2.rst` (`cpu.max`, `cpuset.cpus.effective`),
//! `Documentation/scheduler/sched-bwc.rst`, `proc_stat(5)` (steal), `proc_loadavg(5)`.

use hourglass_documents::host::LEAVE_THE_GUEST;
use hourglass_documents::host_limits::{self, micros};
use hourglass_time::Span;

use super::input::DoctorInput;
use super::remedy;
use super::verdict::{CheckVerdict, unread};
use crate::advice::{machine, percent};

const ONLINE: &str = "/sys/devices/system/cpu/online";

/// Parts per million in a whole CPU.
const WHOLE_CPU_PPM: u64 = 1_000_000;

pub(super) fn virtual_machine(e: &DoctorInput) -> CheckVerdict {
    match e.host.virtual_machine.present {
        None => unread(e, "/proc/cpuinfo"),
        Some(false) => CheckVerdict::ok("no hypervisor shows"),
        Some(true) => {
            let kind = machine::hypervisor(&e.host).unwrap_or_default();
            CheckVerdict::warn(
                format!("a virtual machine ({kind}): its host can stop it unseen"),
                leave_the_guest(),
            )
        }
    }
}

fn leave_the_guest() -> String {
    format!("{} (on the host: virsh vcpupin GUEST VCPU CPU)", LEAVE_THE_GUEST)
}

pub(super) fn stolen_time(e: &DoctorInput) -> CheckVerdict {
    match e.host.start.steal_ns {
        None => unread(e, "/proc/stat"),
        Some(0) if e.is_guest() => {
            CheckVerdict::ok("none is logged since boot, which does not prove that there was none")
        }
        Some(0) => CheckVerdict::ok("none"),
        Some(ns) => {
            let span = Span::saturating_from_nanos(ns);
            CheckVerdict::warn(
                format!("the host took {span} from all CPUs together since boot"),
                leave_the_guest(),
            )
        }
    }
}

/// A quota on the time of ordinary threads.
pub(super) fn quota(e: &DoctorInput) -> CheckVerdict {
    let Some(quota) = host_limits::tightest_quota(&e.host) else {
        if e.host.cgroup.groups.is_empty() {
            return unread(e, "/proc/self/cgroup");
        }
        return match e.tuning.quota_visible {
            true => CheckVerdict::ok("none"),
            false => unread(e, "/sys/fs/cgroup"),
        };
    };
    let usable = e.host.cpu.allowed.as_ref().or(e.host.cpu.online.as_ref());
    let usable = usable.map_or(1, |cpus| cpus.len().max(1)) as u64;
    let granted = host_limits::quota_ppm(quota);
    let grants = format!("{} grants {} of a CPU", quota.file, percent(granted));
    if granted >= usable.saturating_mul(WHOLE_CPU_PPM) {
        return CheckVerdict::ok(format!("{grants}, as much as there is"));
    }
    CheckVerdict::fail(
        format!(
            "{grants}: when it is spent, all threads but real-time ones are stopped for up to {} \
             in every {}{}",
            micros(machine::quota_gap_us(quota, usable)),
            micros(quota.period_us),
            machine::quota_debt(&e.host, quota, usable)
        ),
        remedy::own(e, &machine::quota_remedy(&e.host, quota)),
    )
    .delaying(machine::quota_gap_us(quota, usable).saturating_mul(1_000))
}

pub(super) fn cpuset(e: &DoctorInput) -> CheckVerdict {
    let cpu = &e.host.cpu;
    let (Some(allowed), Some(online)) = (&cpu.allowed, &cpu.online) else {
        let hidden = if cpu.online.is_none() { ONLINE } else { "/proc/self/status" };
        return unread(e, hidden);
    };
    let permitted = e.host.cgroup.cpuset.as_ref().unwrap_or(online);
    let wanted = e.asked.clone().unwrap_or_default();
    let barred = wanted.difference(permitted);
    let widen = match cpuset_file(e) {
        _ if e.is_contained() => "start the container without --cpuset-cpus".to_owned(),
        Some(file) => {
            remedy::write(e, &online.to_string(), &file) + " # and in the groups above it"
        }
        None => format!("taskset -cp {online} $$ # in the shell that starts the work"),
    };
    if !barred.is_empty() {
        return CheckVerdict::fail(
            format!("CPUs {barred} are barred: the control group has {permitted} only"),
            widen,
        );
    }
    // Programs start outside of isolcpus, and may still go there.
    let usual = online.difference(&e.isolated());
    let missing = usual.difference(allowed);
    if wanted.is_empty() && !missing.is_empty() {
        let remedy = match permitted.difference(allowed).is_empty() {
            true => widen,
            false => format!("taskset -cp {permitted} $$ # in the shell that starts the work"),
        };
        return CheckVerdict::warn(
            format!("this process starts on CPUs {allowed} of {online} only"),
            remedy,
        );
    }
    CheckVerdict::ok(format!("CPUs {permitted} may be used"))
}

/// The file that says which CPUs the control group of this process has.
fn cpuset_file(e: &DoctorInput) -> Option<String> {
    let has = |names: &[String]| names.iter().any(|name| name == "cpuset");
    let groups = &e.host.cgroup.groups;
    let first = groups.iter().find(|group| group.version == 1 && has(&group.controllers));
    let group = first.or_else(|| groups.iter().find(|group| group.version == 2))?;
    let mount = if group.version == 1 { "/sys/fs/cgroup/cpuset" } else { "/sys/fs/cgroup" };
    // The outermost group has all CPUs and no such file.
    (group.path != "/").then(|| format!("{mount}{}/cpuset.cpus", group.path))
}

pub(super) fn load(e: &DoctorInput) -> CheckVerdict {
    let Some([average, ..]) = e.host.start.load_average else {
        return unread(e, "/proc/loadavg");
    };
    match machine::others_at_work(&e.host) {
        None if e.host.start.runnable_others == Some(0) => {
            CheckVerdict::ok(format!("nothing else runs now (load average {average})"))
        }
        None => CheckVerdict::ok(format!("load average {average}")),
        Some((load, cpus)) if e.judged().0.difference(&e.isolated()).is_empty() => {
            CheckVerdict::ok(format!(
                "load average {load} on {cpus} CPUs, but the work has its own"
            ))
        }
        Some((load, cpus)) => CheckVerdict::warn(
            format!("other programs are running: load average {load} on {cpus} CPUs"),
            machine::END_THE_OTHERS,
        ),
    }
}
