//! Memory management that takes pages away while the work runs.
//!
//! Sources: `Documentation/admin-guide/sysctl/vm.rst` (`swappiness`,
//! `compact_unevictable_allowed`, `stat_interval`), `Documentation/admin-guide/mm/transhuge.rst`,
//! `Documentation/admin-guide/mm/ksm.rst`, `Documentation/admin-guide/sysctl/kernel.rst`
//! (`numa_balancing`), `mlockall(2)`.

use super::input::DoctorInput;
use super::limits;
use super::remedy;
use super::verdict::{CheckVerdict, unread, unread_unless_absent};
use hourglass_documents::doctor::Status;

/// Up to here the kernel hardly swaps (the advice for audio work).
const LOW_SWAPPINESS: u32 = 10;

/// Memory statistics at least this many seconds apart are rare enough (profile `network-latency`
/// of tuned).
const RARE_STATISTICS_S: u32 = 10;

/// Huge pages that the kernel puts together behind the back of programs.
pub(super) fn huge_pages(e: &DoctorInput) -> CheckVerdict {
    const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    match e.host.memory.transparent_huge_pages.as_deref() {
        Some("always") => CheckVerdict::warn(
            "always: pages are put together, and split, while programs use them",
            remedy::write(e, "madvise", ENABLED),
        ),
        Some(mode) => CheckVerdict::ok(mode),
        None => unread_unless_absent(e, ENABLED, "this kernel has none"),
    }
}

/// Pages that have to be read back from a disk.
pub(super) fn swap(e: &DoctorInput) -> CheckVerdict {
    let Some(bytes) = e.host.memory.swap_total_bytes else {
        return unread(e, "/proc/meminfo");
    };
    let swappiness = e.tuning.memory.swappiness;
    let shown = swappiness.map_or("unknown".to_owned(), |value| value.to_string());
    if bytes == 0 {
        return CheckVerdict::ok("none");
    }
    let found = format!("{} MiB, vm.swappiness={shown}", bytes >> 20);
    let lockable = limits::locked_memory(e).status == Status::Ok;
    if lockable && swappiness.is_some_and(|value| value <= LOW_SWAPPINESS) {
        return CheckVerdict::ok(format!("{found}; and memory may be locked"));
    }
    let milder = if lockable { "or: " } else { "or, with locked memory: " };
    CheckVerdict::warn(
        found,
        format!(
            "{} # {milder}{}",
            remedy::kernel(e, "sudo swapoff -a"),
            remedy::own(e, &format!("sudo sysctl vm.swappiness={LOW_SWAPPINESS}"))
        ),
    )
}

/// Pages that are merged with equal ones, and copied when they are written.
pub(super) fn merging(e: &DoctorInput) -> CheckVerdict {
    const RUN: &str = "/sys/kernel/mm/ksm/run";
    match e.tuning.memory.merging {
        Some(1) => CheckVerdict::warn(
            "merges equal pages; the next write to one has to copy it",
            remedy::write(e, "2", RUN),
        ),
        Some(_) => CheckVerdict::ok("off"),
        None => unread_unless_absent(e, RUN, "this kernel has none"),
    }
}

/// Pages that are moved to make room for larger ones.
pub(super) fn compaction(e: &DoctorInput) -> CheckVerdict {
    const LOCKED: &str = "/proc/sys/vm/compact_unevictable_allowed";
    match e.tuning.memory.compacts_locked {
        Some(false) => CheckVerdict::ok("leaves locked memory alone"),
        Some(true) => CheckVerdict::warn(
            "moves locked memory too: the next access to a moved page faults",
            remedy::sysctl(e, "vm.compact_unevictable_allowed=0"),
        ),
        None => unread_unless_absent(e, LOCKED, "this kernel has none"),
    }
}

/// Pages that are moved towards the CPUs that use them, by taking them away first.
pub(super) fn numa_balancing(e: &DoctorInput) -> CheckVerdict {
    const SETTING: &str = "/proc/sys/kernel/numa_balancing";
    match (e.host.scheduler.numa_balancing, e.tuning.memory.nodes) {
        (Some(false), _) => CheckVerdict::ok("off"),
        (Some(true), Some(1)) => CheckVerdict::ok("on, but there is one memory node"),
        (Some(true), _) => CheckVerdict::warn(
            "on: pages are unmapped to see which threads touch them",
            remedy::sysctl(e, "kernel.numa_balancing=0"),
        ),
        (None, _) => unread_unless_absent(e, SETTING, "this kernel has none"),
    }
}

/// Memory statistics that a worker on each CPU brings up to date.
pub(super) fn statistics(e: &DoctorInput) -> CheckVerdict {
    const INTERVAL: &str = "/proc/sys/vm/stat_interval";
    match e.tuning.memory.statistics_interval_s {
        None => unread(e, INTERVAL),
        Some(seconds) if seconds >= RARE_STATISTICS_S => {
            CheckVerdict::ok(format!("brought up to date every {seconds} s"))
        }
        Some(seconds) => CheckVerdict::warn(
            format!("a worker on each busy CPU brings them up to date every {seconds} s"),
            remedy::sysctl(e, &format!("vm.stat_interval={RARE_STATISTICS_S}")),
        ),
    }
}
