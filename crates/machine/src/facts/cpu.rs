//! The processors: model, flags, which are online, isolated, siblings, and their mitigations.

use std::collections::BTreeSet;

use hourglass_documents::CpuSet;
use hourglass_documents::host::CpuFacts;

use super::files::{CPUS, Files, clean, cpu_list, field};

/// Flags that bear on time: the counter, the pause and idle instructions, partitioned caches, a
/// hypervisor; on aarch64 the event stream and the virtual counter.
const FLAGS: [&str; 24] = [
    "arat",
    "art",
    "cat_l2",
    "cat_l3",
    "constant_tsc",
    "ecv",
    "evtstrm",
    "ht",
    "hypervisor",
    "mba",
    "monitor",
    "mwaitx",
    "nonstop_tsc",
    "nonstop_tsc_s3",
    "rdpid",
    "rdtscp",
    "serialize",
    "tsc",
    "tsc_adjust",
    "tsc_deadline_timer",
    "tsc_known_freq",
    "tsc_reliable",
    "waitpkg",
    "wfxt",
];

/// The flags of the first processor, all of them: `flags` on x86, `Features` on aarch64.
pub(super) fn all_flags(cpuinfo: &str) -> Option<&str> {
    field(cpuinfo, "flags", ':').or_else(|| field(cpuinfo, "Features", ':'))
}

pub(super) fn facts(files: &Files) -> CpuFacts {
    let cpuinfo = files.text("proc/cpuinfo").unwrap_or_default();
    let flags = all_flags(&cpuinfo).unwrap_or_default().split_whitespace();
    let status = files.text("proc/self/status").unwrap_or_default();
    let siblings = siblings(files);
    CpuFacts {
        model: model(files, &cpuinfo),
        microcode: field(&cpuinfo, "microcode", ':')
            .and_then(clean)
            .or_else(|| files.line(&format!("{CPUS}/cpu0/microcode/version"))),
        flags: flags.filter(|flag| FLAGS.contains(flag)).map(str::to_owned).collect(),
        online: files.cpus(&format!("{CPUS}/online")),
        possible: files.cpus(&format!("{CPUS}/possible")),
        allowed: field(&status, "Cpus_allowed_list", ':').and_then(cpu_list),
        isolated: files.cpus(&format!("{CPUS}/isolated")),
        nohz_full: files.cpus(&format!("{CPUS}/nohz_full")),
        smt_active: files
            .flag(&format!("{CPUS}/smt/active"))
            .or_else(|| (!siblings.is_empty()).then_some(true)),
        siblings,
        mitigations: files
            .names(&format!("{CPUS}/vulnerabilities"))
            .into_iter()
            .filter_map(|name| {
                let state = files.line(&format!("{CPUS}/vulnerabilities/{name}"))?;
                Some((clean(&name)?, state))
            })
            .collect(),
    }
}

/// The model's name; on ARM, which has none, the board's, or the numbers of maker and part.
fn model(files: &Files, cpuinfo: &str) -> Option<String> {
    if let Some(name) = field(cpuinfo, "model name", ':').and_then(clean) {
        return Some(name);
    }
    if let Some(board) = files.line("proc/device-tree/model") {
        return Some(board);
    }
    let maker = field(cpuinfo, "CPU implementer", ':')?;
    let part = field(cpuinfo, "CPU part", ':')?;
    clean(&format!("implementer {maker} part {part}"))
}

/// The sets of hardware threads that share a core.
fn siblings(files: &Files) -> Vec<CpuSet> {
    let cores: BTreeSet<CpuSet> = files
        .cpu_folders()
        .iter()
        .filter_map(|cpu| files.cpus(&format!("{CPUS}/cpu{cpu}/topology/thread_siblings_list")))
        .filter(|core| core.len() > 1)
        .collect();
    cores.into_iter().collect()
}
