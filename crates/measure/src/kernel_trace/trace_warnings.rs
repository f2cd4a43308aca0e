//! Warnings about a kernel trace: why it was not recorded, and which events it lacks.

use std::io;

use hourglass_documents::CpuSet;
use hourglass_documents::document::Warning;
use hourglass_documents::kernel::{ClockCheck, KernelFacts};
use hourglass_machine::refusal::Refusal;
use hourglass_sys::tracefs::{TraceFileError, Unavailable};

pub(super) const EVENTS_LOST: &str = "kernel-events-lost";
pub(crate) const SWITCHES_MISSING: &str = "switch-events-missing";

pub(super) fn refused(missing: &Unavailable) -> Refusal {
    Refusal { what: "--trace".to_owned(), reason: missing.to_string(), remedy: missing.remedy() }
}

pub(super) fn failed(error: &TraceFileError) -> Refusal {
    failure(error, "free memory, or trace fewer CPUs with --cpu")
}

/// The same of a command that has no CPUs to choose.
pub(super) fn failed_live(error: &TraceFileError) -> Refusal {
    failure(error, "free memory, or drop --trace")
}

fn failure(error: &TraceFileError, memory: &str) -> Refusal {
    let remedy = match error.source.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "run it as root (sudo hourglass ...), in a container with --privileged; a kernel that \
             is locked down (/sys/kernel/security/lockdown) gives no trace to anybody"
        }
        io::ErrorKind::OutOfMemory => memory,
        _ => "drop --trace",
    };
    Refusal { what: "--trace".to_owned(), reason: error.to_string(), remedy: remedy.to_owned() }
}

/// What a reader must know; `placed` if the events are on the run's time.
pub(super) fn warnings(facts: &KernelFacts, placed: bool, troubles: &[String]) -> Vec<Warning> {
    let warning = |id: &str, text: String, remedy: &str| Warning {
        id: id.to_owned(),
        text,
        remedy: remedy.to_owned(),
    };
    let mut warnings = Vec::new();
    for trouble in troubles {
        let text = format!("--trace: {trouble}");
        warnings.push(warning("trace-incomplete", text, "measure again"));
    }
    let lost = facts.lost();
    if lost > 0 {
        let on: CpuSet = facts.cpus.iter().filter(|cpu| cpu.lost > 0).map(|cpu| cpu.cpu).collect();
        warnings.push(warning(
            EVENTS_LOST,
            format!("--trace: {lost} events of the kernel were lost on CPU {on}: its ring was full"),
            "leave a CPU unmeasured (--cpu), which empties the ring during the run; or a shorter -d",
        ));
    }
    let damaged: u64 = facts.cpus.iter().map(|cpu| cpu.damaged).sum();
    if damaged > 0 {
        let text = format!(
            "--trace: {damaged} pieces of the kernel's ring could not be read to their end"
        );
        warnings.push(warning(
            "kernel-ring-damaged",
            text,
            "report this with the kernel's version",
        ));
    }
    warnings.extend(unwritten(facts));
    if !placed {
        warnings.push(warning(
            "trace-clock-unknown",
            format!(
                "--trace: the events cannot be put on the run's time: {} has no pairs",
                facts.clock
            ),
            "measure again",
        ));
    } else if facts.same_counter && !facts.checks.iter().all(ClockCheck::holds) {
        warnings.push(warning(
            "trace-clock-drift",
            format!(
                "--trace: the trace clock {} was not the run's counter when it was checked",
                facts.clock
            ),
            "do not join events with gaps; report this with the kernel's version",
        ));
    }
    warnings
}

/// Switches that the kernel did not write, though no event was lost.
fn unwritten(facts: &KernelFacts) -> Option<Warning> {
    let lacking = || facts.cpus.iter().filter(|cpu| cpu.missing_switches > 0);
    let on: CpuSet = lacking().map(|cpu| cpu.cpu).collect();
    let missing: u64 = lacking().map(|cpu| cpu.missing_switches).sum();
    (missing > 0).then(|| Warning {
        id: SWITCHES_MISSING.to_owned(),
        text: format!(
            "--trace: the kernel did not record {missing} switches on CPU {on}, and lost none: wake-ups there cannot be divided into stages, and causes of gaps there lack \
             the occupants; some kernels do this on a CPU that was offline and came back"
        ),
        remedy: "measure on another CPU (-c), or after a reboot".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use hourglass_documents::kernel::KernelCpu;

    use super::*;

    #[test]
    fn what_is_not_whole_is_said() {
        let cpu = |cpu, lost| KernelCpu { cpu, events: 5, lost, ..KernelCpu::default() };
        let whole = KernelFacts {
            same_counter: true,
            cpus: vec![cpu(0, 0), cpu(1, 0)],
            checks: vec![ClockCheck { before: 5, trace: 6, after: 7 }],
            ..KernelFacts::default()
        };
        assert_eq!(warnings(&whole, true, &[]), []);
        let lossy = KernelFacts { cpus: vec![cpu(0, 0), cpu(1, 7)], ..whole.clone() };
        let unwritten = KernelCpu { missing_switches: 476, ..cpu(1, 0) };
        let unwritten = KernelFacts { cpus: vec![cpu(0, 0), unwritten], ..whole.clone() };
        let mut drifted = whole.clone();
        drifted.checks[0].trace = 9;
        let ids = |facts: &KernelFacts, placed, troubles: &[String]| {
            let all = warnings(facts, placed, troubles);
            all.into_iter().map(|warning| warning.id).collect::<Vec<String>>()
        };
        assert_eq!(ids(&lossy, true, &[]), ["kernel-events-lost"]);
        assert_eq!(ids(&unwritten, true, &[]), ["switch-events-missing"]);
        let said = warnings(&unwritten, true, &[]).remove(0).text;
        assert!(said.contains("476 switches") && said.contains("CPU 1,"), "{said}");
        assert_eq!(ids(&drifted, true, &[]), ["trace-clock-drift"]);
        // `watch` has no option that chooses CPUs.
        for facts in [&lossy, &unwritten, &drifted] {
            let live = crate::kernel_trace::live_warnings(facts, &[]);
            let of_others =
                |remedy: &str| ["(-c)", "--cpu"].iter().any(|word| remedy.contains(word));
            assert!(!live.is_empty() && !live.iter().any(|one| of_others(&one.remedy)), "{live:?}");
            assert!(!warnings(facts, true, &[]).is_empty());
        }
        assert_eq!(
            ids(&whole, false, &["x".to_owned()]),
            ["trace-incomplete", "trace-clock-unknown"]
        );
    }
}
