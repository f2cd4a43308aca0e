//! Who is more urgent than whom: priorities as ranks, and background threads above them.
//!
//! Owns: ranks, for tasks, servers, ceilings and thresholds of a whole set. Must not: analyse.

use hourglass_documents::{CpuSet, Policy};
use hourglass_sched::catalogue::Rule;
use hourglass_sched::servers::DEADLINE_CLASS;
use hourglass_tasks::TaskSet;

use super::processor::{Member, TaskGroup};
use super::processor_builder::{ProcessorBuilder, ProcessorTasks};

/// The rank of each task: 0 for the time-sharing classes, above that by priority.
pub(super) fn ranks(of: &ProcessorTasks) -> Result<Vec<u32>, String> {
    let ProcessorTasks { set, tasks, rule, .. } = *of;
    if rule != Rule::FixedPriority {
        // Under first in, first out, real-time tasks of any priority wait for each other.
        let joins = |policy: Policy| match rule {
            Rule::Edf => policy == Policy::Deadline,
            _ => matches!(policy, Policy::Fifo(_) | Policy::RoundRobin(_)),
        };
        let mut tasks_here = tasks.iter().map(|position| &set.tasks[*position]);
        return match tasks_here.find(|task| task.policy.is_some_and(|policy| !joins(policy))) {
            Some(task) => Err(format!(
                "task '{}' has a policy of its own, but the scheduler is {}; drop one of them",
                task.name,
                if rule == Rule::Edf { "edf" } else { "fifo" }
            )),
            None => Ok(vec![1; tasks.len()]),
        };
    }
    let priorities = set.priorities();
    let mut given: Vec<u32> = tasks.iter().filter_map(|position| priorities[*position]).collect();
    given.sort_unstable();
    let equal = given.windows(2).any(|pair| pair[0] == pair[1]);
    for position in tasks {
        let task = &set.tasks[*position];
        match task.policy {
            Some(Policy::Deadline) if !in_reservation(set, &task.name) => {
                return Err(without_reservation(&task.name));
            }
            Some(Policy::Deadline)
                if set.server_of(&task.name).is_some_and(|own| own.tasks.len() > 1) =>
            {
                return Err(format!(
                    "task '{}' is in the deadline class, where a reservation has one thread; give it a \
                     [[server]] of its own",
                    task.name
                ));
            }
            Some(Policy::RoundRobin(_)) if equal => {
                return Err(format!(
                    "task '{}' shares its CPU by time slices with tasks of the same priority; \
                     make the priorities different",
                    task.name
                ));
            }
            _ => {}
        }
    }
    let known = known_priorities(set);
    let rank = |position: &usize| priorities[*position].map_or(0, |p| rank_among(&known, p));
    Ok(tasks.iter().map(rank).collect())
}

/// Why a task of the deadline class is not analysed that has no server.
pub(super) fn without_reservation(task: &str) -> String {
    format!(
        "task '{task}' is in the deadline class without a reservation; add a [[server]] with its budget and period"
    )
}

/// Whether a task runs in a server as the deadline class has them.
fn in_reservation(set: &TaskSet, task: &str) -> bool {
    set.server_of(task).is_some_and(|server| server.kind.is_constant_bandwidth())
}

/// The priorities of tasks and servers, ascending, each once.
pub(super) fn known_priorities(set: &TaskSet) -> Vec<u32> {
    let servers = set.servers.iter().filter_map(|server| server.priority);
    let mut known: Vec<u32> = set.priorities().into_iter().flatten().chain(servers).collect();
    known.sort_unstable();
    known.dedup();
    known
}

/// The rank of the most urgent priority known that is not above a threshold.
pub(super) fn rank_above(known: &[u32], threshold: u32) -> u32 {
    let among = known.partition_point(|known| *known <= threshold);
    u32::try_from(among).unwrap_or(DEADLINE_CLASS - 2)
}

/// The rank of a priority among those known; from 1.
pub(super) fn rank_among(known: &[u32], priority: u32) -> u32 {
    let below = known.partition_point(|known| *known < priority);
    u32::try_from(below).unwrap_or(DEADLINE_CLASS - 2) + 1
}

/// Threads that run as often as they like, above tasks: nothing bounds what these wait.
pub(super) fn background(of: &ProcessorTasks, draft: &mut ProcessorBuilder) -> Result<(), String> {
    let ProcessorTasks { set, rule, .. } = *of;
    let all = set.cpus();
    let cpus: CpuSet = of.place.cpus().parse().unwrap_or_default();
    let priorities = set.priorities();
    // Tasks in a reservation wait where it waits; the deadline class comes before every real-time priority.
    let priority_of = |member: &Member| match of.place {
        TaskGroup::Inside(server, ..) if server.kind.is_constant_bandwidth() => Some(u32::MAX),
        TaskGroup::Inside(server, ..) => server.priority,
        _ => member.position.and_then(|position| priorities[position]),
    };
    for thread in &set.background {
        let moves = thread.program.phases.iter().filter_map(|phase| phase.cpus.as_ref());
        let mut own = moves.chain([thread.cpus.as_ref().unwrap_or(&all)]);
        let apart = own.all(|own| own.intersection(&cpus).is_empty());
        let phases = thread.program.phases.iter().filter_map(|phase| phase.policy);
        let policies: Vec<Policy> = thread.policy.into_iter().chain(phases).collect();
        let why = format!("nothing bounds how often the background thread '{}' runs", thread.name);
        let urgent =
            policies.iter().filter(|policy| policy.is_real_time()).max_by_key(
                |policy| match policy {
                    Policy::Fifo(priority) | Policy::RoundRobin(priority) => u32::from(*priority),
                    _ => 0,
                },
            );
        if apart {
            continue;
        }
        match urgent {
            _ if policies.contains(&Policy::Deadline) => return Err(why),
            None => {}
            Some(_) if rule != Rule::FixedPriority => return Err(why),
            Some(Policy::Fifo(urgent) | Policy::RoundRobin(urgent)) => {
                for member in &mut draft.members {
                    if priority_of(member).is_none_or(|own| own <= u32::from(*urgent)) {
                        member.unknown.get_or_insert(why.clone());
                    }
                }
            }
            Some(_) => {}
        }
    }
    Ok(())
}
