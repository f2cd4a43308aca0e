//! Which CPUs are kept for the work, and what else may still run on them.
//!
//! Sources: `Documentation/admin-guide/kernel-parameters.txt` (`isolcpus=`),
//! `Documentation/admin-guide/cgroup-v2.rst` (`cpuset.cpus.partition`),
//! `Documentation/core-api/workqueue.rst` ("Affinity Scopes"),
//! `Documentation/ABI/testing/sysfs-devices-system-cpu` (`smt/control`).

use hourglass_documents::CpuSet;
use hourglass_documents::doctor::CpuSelection;

use super::input::DoctorInput;
use super::remedy;
use super::verdict::{CheckVerdict, unread, unread_unless_absent};

/// Two hardware threads on one core.
pub(super) fn smt(e: &DoctorInput) -> CheckVerdict {
    const ACTIVE: &str = "/sys/devices/system/cpu/smt/active";
    let guest = e.is_guest();
    let single = if guest {
        "no core shows two threads, but the host's may have them"
    } else {
        "every core runs one thread"
    };
    let cpus = &e.host.cpu;
    match cpus.smt_active {
        None => return unread_unless_absent(e, ACTIVE, single),
        Some(false) => return CheckVerdict::ok(single),
        Some(true) => {}
    }
    let (judged, _) = e.judged();
    let online = e.online();
    let shared: Vec<CpuSet> = cpus
        .siblings
        .iter()
        .map(|core| core.intersection(&online))
        .filter(|core| core.len() > 1 && !core.intersection(&judged).is_empty())
        .collect();
    let Some(first) = shared.first() else {
        return CheckVerdict::ok(format!("CPUs {judged} have their cores to themselves"));
    };
    // Of each core one thread stays.
    let spare: CpuSet =
        shared.iter().flat_map(|core| core.iter().skip(1).collect::<Vec<_>>()).collect();
    let found = match shared.len() {
        1 => format!("CPUs {first} share a core"),
        cores => format!("CPUs share {cores} cores, such as CPUs {first}"),
    };
    let switchable = e.tuning.processor.smt_control.as_deref() == Some("on");
    let remedy = if !e.sets_cpus_apart() && switchable {
        remedy::write(e, "off", "/sys/devices/system/cpu/smt/control")
    } else {
        remedy::write_each(e, "0", "/sys/devices/system/cpu/cpu$c/online", &spare)
    };
    CheckVerdict::warn(found, remedy)
}

/// CPUs on which nothing is put that did not ask for them.
pub(super) fn isolation(e: &DoctorInput) -> CheckVerdict {
    const ISOLATED: &str = "/sys/devices/system/cpu/isolated";
    if e.host.cpu.isolated.is_none() {
        return unread(e, ISOLATED);
    }
    let isolated = e.isolated();
    let (judged, origin) = e.judged();
    let open = judged.difference(&isolated);
    if origin != CpuSelection::Online && open.is_empty() {
        return CheckVerdict::ok(format!("CPUs {judged} are isolated"));
    }
    let found = match origin {
        CpuSelection::Online => "no CPU is kept from other programs".to_owned(),
        _ => format!("CPUs {open} are open to other programs"),
    };
    let remedy = match e.apart() {
        _ if e.built_with("CONFIG_CPU_ISOLATION") == Some(false) => {
            "boot a kernel built with CONFIG_CPU_ISOLATION=y".to_owned()
        }
        Some(apart) => remedy::boot(e, &format!("isolcpus=managed_irq,domain,{apart}")),
        None => remedy::no_room(e),
    };
    CheckVerdict::warn(found, remedy)
}

/// The kernel's workers that are bound to no CPU.
pub(super) fn workqueues(e: &DoctorInput) -> CheckVerdict {
    const UNBOUND: &str = "/sys/devices/virtual/workqueue/cpumask";
    let interrupts = &e.tuning.interrupts;
    let Some(unbound) = &interrupts.workqueue_cpus else {
        return unread(e, UNBOUND);
    };
    // A queue runs where its own mask and that of all unbound ones meet.
    let writeback = match &interrupts.writeback_cpus {
        Some(cpus) => cpus.intersection(unbound),
        None => CpuSet::default(),
    };
    let (judged, _) = e.judged();
    let (hit, written) = (judged.intersection(unbound), judged.intersection(&writeback));
    if hit.is_empty() {
        return CheckVerdict::ok(format!("kept off CPUs {judged}"));
    }
    let and_writeback = if written.is_empty() { "" } else { ", writeback too" };
    let remedy = match e.rest() {
        Some(rest) => remedy::write(e, &remedy::mask(&rest), UNBOUND),
        None => remedy::no_room(e),
    };
    CheckVerdict::warn(format!("the kernel's workers run on CPUs {hit}{and_writeback}"), remedy)
}
