//! Interrupts: which reach the CPUs of the work, and who moves them about.
//!
//! Sources: `Documentation/core-api/irq/irq-affinity.rst`,
//! `Documentation/admin-guide/kernel-parameters.txt` (`irqaffinity=`, `isolcpus=managed_irq`),
//! `irqbalance(1)`, which leaves CPUs of `isolcpus` and `nohz_full` alone by default.

use hourglass_documents::CpuSet;
use hourglass_documents::tuning::Interrupt;

use super::input::DoctorInput;
use super::remedy;
use super::verdict::{CheckVerdict, unread};

/// Interrupts that are named in a line.
const NAMED: usize = 3;

fn comes_to(line: &Interrupt) -> &CpuSet {
    line.delivered.as_ref().unwrap_or(&line.allowed)
}

/// Interrupts on the CPUs of the work.
pub(super) fn affinity(e: &DoctorInput) -> CheckVerdict {
    let Some(lines) = &e.tuning.interrupts.lines else {
        return unread(e, "/proc/irq");
    };
    let (cpus, _) = e.judged();
    let reaches = |set: &CpuSet| !set.intersection(&cpus).is_empty();
    let hits: Vec<&Interrupt> = lines.iter().filter(|line| reaches(comes_to(line))).collect();
    let may = lines.iter().filter(|line| reaches(&line.allowed)).count();
    let all = lines.len();
    if hits.is_empty() {
        let rest = match may {
            0 => String::new(),
            count => format!(", though {count} may be"),
        };
        return CheckVerdict::ok(format!(
            "none of {all} interrupts is delivered to CPUs {cpus}{rest}"
        ));
    }
    let mut names: Vec<String> =
        hits.iter().take(NAMED).map(|line| format!("{} {}", line.number, line.name)).collect();
    if hits.len() > NAMED {
        names.push("...".to_owned());
    }
    let found = format!(
        "{} of {all} interrupts are delivered to CPUs {cpus} ({})",
        hits.len(),
        names.join(", ")
    );
    let remedy = match e.rest() {
        Some(rest) => {
            let (line, default) = if e.is_root() && !e.is_contained() {
                ("> $f", "> /proc/irq/default_smp_affinity")
            } else {
                ("| sudo tee $f", "| sudo tee /proc/irq/default_smp_affinity")
            };
            let command = format!(
                "for f in /proc/irq/*/smp_affinity_list; do echo {rest} {line}; done; echo {} \
                 {default} # those that refuse are bound by their driver",
                remedy::mask(&rest)
            );
            remedy::kernel(e, &command)
        }
        None => remedy::no_room(e),
    };
    CheckVerdict::warn(found, remedy)
}

/// The program that moves interrupts to idle CPUs.
pub(super) fn balancer(e: &DoctorInput) -> CheckVerdict {
    let interrupts = &e.tuning.interrupts;
    if e.is_contained() && interrupts.irqbalance != Some(true) {
        return CheckVerdict::unknown(
            "a container does not see the processes of its host",
            "on the container's host: systemctl is-active irqbalance",
        );
    }
    match interrupts.irqbalance {
        None => unread(e, "/proc/1/comm"),
        Some(false) => CheckVerdict::ok("does not run"),
        Some(true) => balanced(e),
    }
}

/// It runs: which CPUs does it leave alone?
fn balanced(e: &DoctorInput) -> CheckVerdict {
    let (cpus, _) = e.judged();
    let by_default = || {
        let nohz_full = e.host.cpu.nohz_full.clone().unwrap_or_default();
        e.host.cpu.isolated.clone().unwrap_or_default().union(&nohz_full)
    };
    let spared = e.tuning.interrupts.irqbalance_banned.clone().unwrap_or_else(by_default);
    let open = cpus.difference(&spared);
    if open.is_empty() {
        return CheckVerdict::ok(format!("runs, but leaves CPUs {cpus} alone"));
    }
    CheckVerdict::warn(
        format!("runs, and moves interrupts to CPUs {open}"),
        remedy::kernel(e, "sudo systemctl disable --now irqbalance"),
    )
}
