//! Evidence about gaps in the manifest of a run: which sources were there, and what would give the others.

use hourglass_documents::manifest::EvidenceFacts;
use hourglass_sys::rseq::{ClearRule, RseqUnusable};
use hourglass_workload::run::RunMeasurement;

use crate::switch_records::SwitchRecording;

pub(crate) fn of_threads(measured: &RunMeasurement) -> Vec<EvidenceFacts> {
    let rseq = match &measured.rseq {
        Ok(ClearRule::EverySwitch) => {
            "whether the kernel took the CPU from the thread, read after each gap".to_owned()
        }
        Ok(ClearRule::WhereInterrupted) => {
            "whether the kernel took the CPU from the thread outside system calls, read after each gap".to_owned()
        }
        Err(reason) => reason.to_string(),
    };
    let counters = match &measured.rseq {
        Ok(ClearRule::EverySwitch) => {
            "context switches and page faults, asked after gaps in which the kernel took the CPU"
        }
        Ok(ClearRule::WhereInterrupted) => {
            "context switches and page faults, asked after gaps in which the kernel took the CPU, and after system calls"
        }
        Err(_) => "context switches and page faults, asked after every gap",
    };
    let remedy = measured.rseq.as_ref().err().map(remedy);
    vec![
        EvidenceFacts {
            source: EvidenceFacts::RSEQ.to_owned(),
            used: measured.rseq.is_ok(),
            found: rseq,
            remedy,
            ..EvidenceFacts::default()
        },
        EvidenceFacts {
            source: EvidenceFacts::COUNTERS.to_owned(),
            used: true,
            found: counters.to_owned(),
            ..EvidenceFacts::default()
        },
    ]
}

fn remedy(reason: &RseqUnusable) -> String {
    let remedy = match reason {
        RseqUnusable::KeptInSystemCalls => {
            "nothing is amiss: counters take its place; with the processor's counter (`hourglass clocks` says \
             what is wrong with it) a run of the command has both"
        }
        _ => {
            "use Linux 4.18 or later on x86-64 or aarch64, where no filter forbids the system call rseq"
        }
    };
    remedy.to_owned()
}

/// The kernel's own evidence: its trace if that was requested, else records of switches.
pub(crate) fn of_kernel(traced: bool, switches: Option<&SwitchRecording>) -> [EvidenceFacts; 2] {
    let trace = EvidenceFacts {
        source: EvidenceFacts::TRACE.to_owned(),
        used: traced,
        found: if traced {
            "the kernel's events of the measured CPUs".to_owned()
        } else {
            "not recorded".to_owned()
        },
        remedy: (!traced).then(|| "run as root with --trace".to_owned()),
        ..EvidenceFacts::default()
    };
    let switches = switches.map(SwitchRecording::facts).unwrap_or_else(|| EvidenceFacts {
        source: EvidenceFacts::PERF.to_owned(),
        used: false,
        found: "not needed with the kernel's trace".to_owned(),
        ..EvidenceFacts::default()
    });
    [trace, switches]
}
