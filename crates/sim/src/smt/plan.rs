//! Which threads of which core share which CPU.
//!
//! Owns: [`CorePlan`], and the test whether slack is known for a system. Must not: decide anything later.

use super::{Monitoring, SlackCheck, SmtError, SmtPolicy};
use crate::{Class, Preemption, System, Thread};

/// A core on which real-time threads run beside others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Core {
    /// The CPU of its real-time threads.
    pub(super) cpu: u32,
    pub(super) siblings: Vec<u32>,
    pub(super) threads: Vec<usize>,
}

/// The cores that a policy controls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CorePlan {
    pub(super) cores: Vec<Core>,
}

/// Whether a thread competes by deadline or priority, by itself or through its server.
pub(super) fn is_real_time(thread: &Thread) -> bool {
    thread.server.is_some()
        || matches!(thread.class, Class::Edf | Class::Fifo(_) | Class::RoundRobin(_))
}

impl CorePlan {
    /// Gives the real-time threads of each core with several CPUs one CPU of it: the first on which
    /// one of them may run. The unaware policy leaves everything as it is.
    pub(super) fn new(system: &mut System, policy: SmtPolicy) -> Result<CorePlan, SmtError> {
        let cores: Vec<Vec<u32>> =
            system.cores.iter().filter(|core| core.len() > 1).cloned().collect();
        if cores.is_empty() {
            return Err(SmtError::NoSiblings);
        }
        if let SmtPolicy::Monitor(monitoring) = policy {
            can_be_watched(system, monitoring)?;
        }
        if policy == SmtPolicy::Ignore {
            return Ok(CorePlan::default());
        }
        let mut plan = CorePlan::default();
        let all: Vec<u32> = (0..system.cpus).collect();
        for core in &cores {
            let mut found = Core { cpu: u32::MAX, siblings: Vec::new(), threads: Vec::new() };
            for (position, thread) in system.threads.iter().enumerate() {
                let cpus = if thread.cpus.is_empty() { &all } else { &thread.cpus };
                if !is_real_time(thread) || !cpus.iter().any(|cpu| core.contains(cpu)) {
                    continue;
                }
                if !cpus.iter().all(|cpu| core.contains(cpu)) {
                    return Err(SmtError::SeveralCores(position));
                }
                found.cpu = found.cpu.min(cpus.iter().copied().min().unwrap_or(u32::MAX));
                found.threads.push(position);
            }
            if found.threads.is_empty() {
                continue;
            }
            found.siblings = core.iter().copied().filter(|cpu| *cpu != found.cpu).collect();
            for thread in &found.threads {
                if let Some(thread) = system.threads.get_mut(*thread) {
                    thread.cpus = vec![found.cpu];
                }
            }
            plan.cores.push(found);
        }
        Ok(plan)
    }
}

/// Slack is only known of threads that are preempted at once and do not wait for others, on a
/// machine whose time is all theirs.
fn can_be_watched(system: &System, monitoring: Monitoring) -> Result<(), SmtError> {
    if monitoring.check == SlackCheck::Fixed(0) {
        return Err(SmtError::Interval);
    }
    if system.throttling.is_some() {
        return Err(SmtError::Throttled);
    }
    let of = |(position, thread): (usize, &Thread)| {
        let what = match thread {
            _ if thread.server.is_some() => "in a server",
            _ if !thread.marks.is_empty() => "that locks or suspends itself",
            _ if !thread.after.is_empty() => "that comes after others",
            _ if thread.preemption != Preemption::Full => "that is not preempted everywhere",
            _ => return Ok(()),
        };
        Err(SmtError::Slack { thread: position, what })
    };
    let real_time = |(_, thread): &(usize, &Thread)| is_real_time(thread);
    system.threads.iter().enumerate().filter(real_time).try_for_each(of)
}
