//! Whether a system makes sense.
//!
//! Owns: what is refused before anything runs. Must not: change the system.

use hourglass_tasks::Fraction;

use super::error::SimError;
use super::script;
use super::server::{Charge, ServerKind};
use super::system::System;
use super::thread::{ArrivalPattern, Class, CostModel, MarkAction, Preemption, Thread};

/// CPUs that a set of them has room for.
const MOST_CPUS: u32 = 128;

pub(super) fn check(system: &System) -> Result<(), SimError> {
    machine(system)?;
    for (position, thread) in system.threads.iter().enumerate() {
        arrivals(position, thread)?;
        cost(position, thread)?;
        class(position, thread)?;
        marks(position, thread, system.resources.len())?;
        references(position, thread, system)?;
    }
    chains(system)?;
    script::check(system)?;
    for position in 0..system.servers.len() {
        server(position, system)?;
    }
    for (thread, beside, rate) in system.interference.entries() {
        let known = *thread.max(beside) < system.threads.len();
        if !known || *rate > Fraction::ONE {
            return Err(SimError::Interference { thread: *thread, beside: *beside });
        }
    }
    Ok(())
}

fn machine(system: &System) -> Result<(), SimError> {
    if !(1..=MOST_CPUS).contains(&system.cpus) {
        return Err(SimError::Cpus(system.cpus));
    }
    let mut seen = 0u128;
    for cpu in system.cores.iter().flatten() {
        if *cpu >= system.cpus {
            return Err(SimError::UnknownCpu(*cpu));
        }
        if seen & (1 << *cpu) != 0 {
            return Err(SimError::CoreTwice(*cpu));
        }
        seen |= 1 << *cpu;
    }
    for (value, what) in [(system.quantum, "quantum"), (system.slice, "slice")] {
        if value == 0 {
            return Err(SimError::Machine(what));
        }
    }
    if system.throttling.is_some_and(|throttling| throttling.period == 0) {
        return Err(SimError::Machine("period of throttling"));
    }
    let costs = &system.overheads;
    if costs.tick_period > 0 && costs.tick_cost >= costs.tick_period {
        return Err(SimError::Tick);
    }
    Ok(())
}

fn arrivals(position: usize, thread: &Thread) -> Result<(), SimError> {
    let sorted = |times: &[u64]| match times.is_sorted() {
        true => Ok(()),
        false => Err(SimError::Unsorted { thread: position, what: "arrivals" }),
    };
    match &thread.arrivals {
        ArrivalPattern::Always { .. } => Ok(()),
        ArrivalPattern::Periodic { period: 0, .. }
        | ArrivalPattern::Sporadic { period: 0, .. }
        | ArrivalPattern::Burst { period: 0, .. } => {
            Err(SimError::Zero { thread: position, what: "period" })
        }
        ArrivalPattern::Periodic { .. } | ArrivalPattern::Sporadic { .. } => Ok(()),
        ArrivalPattern::Burst { distances: times, .. } | ArrivalPattern::Listed(times) => {
            sorted(times)
        }
    }
}

fn cost(position: usize, thread: &Thread) -> Result<(), SimError> {
    let zero = |what| Err(SimError::Zero { thread: position, what });
    let none = match &thread.cost {
        CostModel::Worst(cost) | CostModel::Drawn { at_most: cost, .. } => *cost == 0,
        CostModel::Listed(costs) => costs.is_empty() || costs.contains(&0),
    };
    match (none, thread.deadline) {
        (true, _) => zero("cost"),
        (false, 0) => zero("deadline"),
        (false, _) => Ok(()),
    }
}

fn class(position: usize, thread: &Thread) -> Result<(), SimError> {
    if let Class::Fair(nice) = thread.class
        && !(-20..=19).contains(&nice)
    {
        return Err(SimError::Nice(position));
    }
    if let Preemption::Limited { longest, last } = thread.preemption
        && (longest == 0 || last > longest)
    {
        return Err(SimError::Limited(position));
    }
    Ok(())
}

/// Marks ascend, sections do not overlap, and each is longer than nothing.
fn marks(position: usize, thread: &Thread, resources: usize) -> Result<(), SimError> {
    if !thread.marks.is_sorted_by_key(|mark| mark.at) {
        return Err(SimError::Unsorted { thread: position, what: "marks" });
    }
    let mut held: Option<(usize, u64)> = None;
    for mark in &thread.marks {
        match (mark.action, held) {
            (MarkAction::Suspend(0), _) => {
                return Err(SimError::Zero { thread: position, what: "suspension" });
            }
            (MarkAction::Suspend(_), _) => {}
            (MarkAction::Lock(resource) | MarkAction::Unlock(resource), _)
                if resource >= resources =>
            {
                return Err(SimError::Dangling { thread: position, what: "resource" });
            }
            (MarkAction::Lock(resource), None) => held = Some((resource, mark.at)),
            (MarkAction::Unlock(resource), Some((taken, since)))
                if taken == resource && mark.at > since =>
            {
                held = None;
            }
            _ => return Err(SimError::Sections(position)),
        }
    }
    Ok(())
}

fn references(position: usize, thread: &Thread, system: &System) -> Result<(), SimError> {
    if let Some(cpu) = thread.cpus.iter().find(|cpu| **cpu >= system.cpus) {
        return Err(SimError::UnknownCpu(*cpu));
    }
    let dangling = |what| Err(SimError::Dangling { thread: position, what });
    if thread.server.is_some_and(|server| server >= system.servers.len()) {
        return dangling("server");
    }
    for before in &thread.after {
        let Some(predecessor) = system.threads.get(*before) else { return dangling("thread") };
        if predecessor.is_best_effort() || thread.is_best_effort() {
            return Err(SimError::Endless(position));
        }
    }
    Ok(())
}

/// Takes away threads whose predecessors are all gone, until none is left. Each pass takes one or
/// ends, so that there are at most as many passes as threads.
fn chains(system: &System) -> Result<(), SimError> {
    let threads = &system.threads;
    let mut gone = vec![false; threads.len()];
    for _ in 0..threads.len() {
        let free = |at: &usize| !gone[*at] && threads[*at].after.iter().all(|before| gone[*before]);
        let found: Vec<usize> = (0..threads.len()).filter(free).collect();
        if found.is_empty() {
            break;
        }
        for at in found {
            gone[at] = true;
        }
    }
    gone.iter().position(|gone| !gone).map_or(Ok(()), |at| Err(SimError::Cycle(at)))
}

fn server(position: usize, system: &System) -> Result<(), SimError> {
    let server = &system.servers[position];
    let ordered =
        server.budget > 0 && server.budget <= server.deadline && server.deadline <= server.period;
    if !ordered {
        return Err(SimError::Server(position));
    }
    let constant = matches!(server.kind, ServerKind::CbsHard | ServerKind::CbsSoft);
    if server.reclaim && (!constant || server.charge == Charge::Progress) {
        return Err(SimError::Reclaim(position));
    }
    let mut cpus = system.threads.iter().filter(|thread| thread.server == Some(position));
    let first = cpus.next().map(|thread| mask(thread, system.cpus));
    if cpus.any(|thread| Some(mask(thread, system.cpus)) != first) {
        return Err(SimError::ServerCpus(position));
    }
    Ok(())
}

/// The CPUs of a thread, one bit each.
pub(super) fn mask(thread: &Thread, cpus: u32) -> u128 {
    if thread.cpus.is_empty() {
        return if cpus >= MOST_CPUS { u128::MAX } else { (1 << cpus) - 1 };
    }
    thread.cpus.iter().fold(0, |mask, cpu| mask | (1 << *cpu))
}
