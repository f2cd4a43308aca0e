//! What a run could find out about its gaps, told in the manifest once: what was there, and what would
//! give the rest.

use hourglass_model::manifest::EvidenceFacts;
use hourglass_workload::run::Measured;

use crate::switch_records::Recorded;

/// What the threads could find out about their gaps.
pub(crate) fn of_threads(measured: &Measured) -> Vec<EvidenceFacts> {
    let rseq = match &measured.rseq {
        Ok(()) => {
            "whether the kernel took the CPU from the thread, looked at after each gap".to_owned()
        }
        Err(reason) => reason.to_string(),
    };
    let counters = match &measured.rseq {
        Ok(()) => {
            "context switches and page faults, asked after gaps in which the kernel took the CPU"
        }
        Err(_) => "context switches and page faults, asked after every gap",
    };
    let remedy = measured.rseq.as_ref().err().map(|_| {
        "use Linux 4.18 or later on x86-64 or aarch64, where no filter forbids the system call rseq"
            .to_owned()
    });
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

/// What the kernel told of its own: its trace if that was asked for, else records of switches.
pub(crate) fn of_kernel(traced: bool, switches: Option<&Recorded>) -> [EvidenceFacts; 2] {
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
    let switches = switches.map(Recorded::facts).unwrap_or_else(|| EvidenceFacts {
        source: EvidenceFacts::PERF.to_owned(),
        used: false,
        found: "not needed beside the kernel's trace".to_owned(),
        ..EvidenceFacts::default()
    });
    [trace, switches]
}
