//! Threads of the deadline class, and how many threads a process has.

use hourglass_documents::CpuSet;
use hourglass_sys::sched::Attributes;

use super::files::Files;
use super::{Policies, field};

/// A thread of the deadline class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlineThread {
    /// Thread ID.
    pub tid: u32,
    /// Name of the thread, as in `comm`.
    pub name: String,
    /// Budget, ns.
    pub runtime_ns: u64,
    /// Relative deadline, ns.
    pub deadline_ns: u64,
    /// Period, ns.
    pub period_ns: u64,
    /// CPUs on which it may run, which are those of its root domain.
    pub cpus: Option<CpuSet>,
}

pub(super) fn deadline(
    files: &Files,
    subject: Option<u32>,
    policies: Policies<'_>,
) -> Vec<DeadlineThread> {
    let mut found = Vec::new();
    for process in files.names("proc").iter().filter(|name| name.parse::<u32>().is_ok()) {
        for thread in files.names(&format!("proc/{process}/task")) {
            let Ok(tid) = thread.parse::<u32>() else { continue };
            let Some(Attributes::Deadline { runtime_ns, deadline_ns, period_ns, .. }) =
                policies(tid)
            else {
                continue;
            };
            if subject == Some(tid) || period_ns == 0 {
                continue;
            }
            let status =
                files.text(&format!("proc/{process}/task/{thread}/status")).unwrap_or_default();
            let name = field(&status, "Name").unwrap_or("?").to_owned();
            let cpus = field(&status, "Cpus_allowed_list").and_then(|list| list.parse().ok());
            found.push(DeadlineThread { tid, name, runtime_ns, deadline_ns, period_ns, cpus });
        }
    }
    found
}

pub(super) fn count(files: &Files, whose: &str, status: &str) -> Option<usize> {
    let process = field(status, "Tgid").map_or(whose.to_owned(), |tgid| format!("proc/{tgid}"));
    match files.names(&format!("{process}/task")).len() {
        0 => None,
        threads => Some(threads),
    }
}
