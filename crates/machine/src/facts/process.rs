//! What the process may do: resource limits, capabilities, user namespace.

use hourglass_documents::host::{Bound, Limit, ProcessFacts};

use super::files::{Files, field};

/// Bit numbers of capabilities (`linux/capability.h`).
const CAP_IPC_LOCK: u32 = 14;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_SYS_NICE: u32 = 23;

pub(super) fn facts(files: &Files) -> ProcessFacts {
    let limits = files.text("proc/self/limits").unwrap_or_default();
    let status = files.text("proc/self/status").unwrap_or_default();
    let capabilities =
        field(&status, "CapEff", ':').and_then(|bits| u64::from_str_radix(bits, 16).ok());
    let capability = |number: u32| capabilities.map(|bits| bits >> number & 1 == 1);
    ProcessFacts {
        memory_lock_bytes: limit(&limits, "Max locked memory"),
        real_time_priority: limit(&limits, "Max realtime priority"),
        real_time_timeout_us: limit(&limits, "Max realtime timeout"),
        cpu_time_s: limit(&limits, "Max cpu time"),
        nice_ceiling: limit(&limits, "Max nice priority"),
        pending_signals: limit(&limits, "Max pending signals"),
        cap_sys_nice: capability(CAP_SYS_NICE),
        cap_ipc_lock: capability(CAP_IPC_LOCK),
        cap_sys_admin: capability(CAP_SYS_ADMIN),
        user_namespace: user_namespace(files),
        seccomp: field(&status, "Seccomp", ':')
            .and_then(|mode| mode.parse::<u8>().ok())
            .map(|mode| mode != 0),
    }
}

/// A line of `/proc/self/limits`: name, soft limit, hard limit, unit.
fn limit(limits: &str, name: &str) -> Option<Limit> {
    let mut values =
        limits.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().map(bound);
    Some(Limit { soft: values.next()??, hard: values.next()?? })
}

fn bound(word: &str) -> Option<Bound> {
    match word {
        "unlimited" => Some(Bound::Unlimited),
        number => number.parse().ok().map(Bound::At),
    }
}

/// Whether the process is in a user namespace of its own: the first one maps every user to
/// itself.
fn user_namespace(files: &Files) -> Option<bool> {
    let map = files.text("proc/self/uid_map")?;
    let numbers: Vec<&str> = map.split_whitespace().collect();
    Some(numbers != ["0", "0", "4294967295"])
}
