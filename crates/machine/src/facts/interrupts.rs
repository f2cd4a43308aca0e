//! Who may interrupt which CPU: interrupts, their balancer, and the kernel's unbound workers.
//!
//! Sources: the kernel's `Documentation/core-api/irq/irq-affinity.rst` and
//! `Documentation/core-api/workqueue.rst`; `irqbalance(1)`.

use hourglass_documents::CpuSet;
use hourglass_documents::tuning::{Interrupt, Interrupts};

use super::files::{Files, clean, cpu_list, cpu_mask, field};

/// The files of an interrupt; what else lies in its folder are the folders of its handlers.
const FILES: [&str; 7] = [
    "affinity_hint",
    "effective_affinity",
    "effective_affinity_list",
    "node",
    "smp_affinity",
    "smp_affinity_list",
    "spurious",
];

/// Where distributions keep the settings of the balancer's service.
const BALANCER_SETTINGS: [&str; 2] = ["etc/default/irqbalance", "etc/sysconfig/irqbalance"];

pub(super) fn facts(files: &Files) -> Interrupts {
    Interrupts {
        lines: lines(files),
        irqbalance: runs(files, "irqbalance"),
        irqbalance_banned: BALANCER_SETTINGS.iter().find_map(|path| banned(&files.text(path)?)),
        workqueue_cpus: mask(files, "sys/devices/virtual/workqueue/cpumask"),
        writeback_cpus: mask(files, "sys/bus/workqueue/devices/writeback/cpumask"),
    }
}

fn mask(files: &Files, path: &str) -> Option<CpuSet> {
    cpu_mask(&files.line(path)?)
}

/// The interrupts that have a handler; others do not fire.
fn lines(files: &Files) -> Option<Vec<Interrupt>> {
    let names = files.names("proc/irq");
    let interrupt = |name: &String| {
        let number = name.parse().ok()?;
        let folder = format!("proc/irq/{number}");
        let entries = files.names(&folder);
        let handlers: Vec<&str> =
            entries.iter().map(String::as_str).filter(|entry| !FILES.contains(entry)).collect();
        if handlers.is_empty() {
            return None;
        }
        Some(Interrupt {
            number,
            name: clean(&handlers.join(" "))?,
            allowed: files.cpus(&format!("{folder}/smp_affinity_list"))?,
            delivered: files
                .cpus(&format!("{folder}/effective_affinity_list"))
                .filter(|cpus| !cpus.is_empty()),
        })
    };
    let mut lines: Vec<Interrupt> = names.iter().filter_map(interrupt).collect();
    lines.sort_by_key(|line| line.number);
    // A machine without a single interrupt does not run; a folder without one hides them.
    (!lines.is_empty()).then_some(lines)
}

/// Whether a process of this name runs; `None` if processes of others are hidden (`hidepid`).
fn runs(files: &Files, name: &str) -> Option<bool> {
    files.line("proc/1/comm")?;
    let found = files.names("proc").iter().any(|process| {
        process.bytes().all(|digit| digit.is_ascii_digit())
            && files.line(&format!("proc/{process}/comm")).as_deref() == Some(name)
    });
    Some(found)
}

/// The CPUs that the balancer leaves alone: a list, or the mask of earlier versions.
fn banned(settings: &str) -> Option<CpuSet> {
    let value = |name: &str| {
        let value = field(settings, name, '=')?.trim_matches(['"', '\'']);
        (!value.is_empty()).then_some(value)
    };
    value("IRQBALANCE_BANNED_CPULIST")
        .and_then(cpu_list)
        .or_else(|| value("IRQBALANCE_BANNED_CPUS").and_then(cpu_mask))
}
