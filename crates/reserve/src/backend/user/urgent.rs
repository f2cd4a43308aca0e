//! Threads of real-time classes that run on a CPU above what is raised there.
//!
//! Owns: finding them. Must not: name one that only waits for something.

use hourglass_documents::CpuSet;

use super::registry::Holder;
use crate::backend::{members, nested};

/// `SCHED_FIFO` and `SCHED_RR`.
const REAL_TIME: [u32; 2] = [1, 2];

/// Processes with a thread that runs on `cpus` at this moment, or waits to, above `priority` and the one above it, which a
/// reservation takes turns with. This process, the kernel's threads and those that keep reservations are left out.
pub(super) fn above(cpus: &CpuSet, priority: u32) -> Vec<String> {
    let own = std::process::id();
    let runs = |tid: u32| {
        let found = members::placed(tid)?;
        let is_above =
            REAL_TIME.contains(&found.policy) && found.priority > priority.saturating_add(1);
        (found.state == 'R' && is_above && cpus.contains(found.cpu)).then_some(found.priority)
    };
    let of = |pid: u32| {
        let highest = members::threads_of(pid).into_iter().filter_map(runs).max()?;
        (!members::is_kernel_thread(pid) && !nested::holds_reservation(pid))
            .then(|| format!("{} at real-time priority {highest}", Holder::process(pid)))
    };
    members::all_processes().into_iter().filter(|pid| *pid != own).filter_map(of).collect()
}
