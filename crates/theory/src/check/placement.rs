//! From a set of tasks to the processors that run them.
//!
//! Owns: who runs where, by which rule, and below which reservations. Must not: know what an analysis supports on a
//! processor; see [`super::processor_builder`].

use hourglass_documents::CpuSet;
use hourglass_sched as sched;
use hourglass_sched::catalogue::Rule;
use hourglass_sched::fixed_priority::Sections;
use hourglass_sched::servers::{DEADLINE_CLASS, Delivery};
use hourglass_tasks::{Scheduler, Server, TaskSet};

use super::processor::{Member, NoteList, Processor, TaskGroup};
use super::processor_builder::{ProcessorTasks, processor};
use super::servers::{self, SharedReservations};

/// The processors of a set, each task on one of them. Without `phases`, offsets are not used.
///
/// # Errors
/// The CPUs of tasks overlap, or no analysis knows the scheduler, in a sentence.
pub(super) fn processors(
    set: &TaskSet,
    phases: bool,
    notes: &mut NoteList,
) -> Result<Vec<Processor>, String> {
    let rule = rule(set.scheduler)?;
    let groups = groups(set, rule)?;
    let mut found = Vec::new();
    for group in &groups {
        let above = groups.iter().find(|other| is_below(group, other)).map(|other| &other.shared);
        match group.cpus.iter().next().filter(|_| group.cpus.len() == 1) {
            Some(cpu) => {
                found.extend(on_cpu(set, (cpu, &group.tasks), above, rule, phases, notes));
            }
            None => found.extend(on_cpus(set, group, above, rule, notes)),
        }
    }
    Ok(found)
}

/// Tasks that may run on exactly these CPUs.
struct Placement<'a> {
    cpus: CpuSet,
    /// Reservations on all of these CPUs.
    shared: SharedReservations<'a>,
    /// Those in these reservations.
    reserved: Vec<usize>,
    /// The others.
    tasks: Vec<usize>,
}

/// Whether only reservations of `above` may run on the CPUs of `group`, all of them.
fn is_below(group: &Placement, above: &Placement) -> bool {
    let is_within = group.cpus.intersection(&above.cpus) == group.cpus;
    is_within && group.cpus != above.cpus && group.reserved.is_empty() && above.tasks.is_empty()
}

/// The tasks by their CPUs.
///
/// # Errors
/// CPUs overlap, but those of reservations and of tasks below them, in a sentence.
fn groups(set: &TaskSet, rule: Rule) -> Result<Vec<Placement<'_>>, String> {
    let all = set.cpus();
    let mut here: Vec<(CpuSet, Vec<usize>)> = Vec::new();
    for (position, task) in set.tasks.iter().enumerate() {
        let server = set.server_of(&task.name).and_then(|server| server.cpus.as_ref());
        let cpus = task.cpus.as_ref().or(server).unwrap_or(&all);
        match here.iter_mut().find(|(known, _)| known == cpus) {
            Some((_, tasks)) => tasks.push(position),
            None => here.push((cpus.clone(), vec![position])),
        }
    }
    let mut found: Vec<Placement> = Vec::new();
    for (cpus, here) in here {
        let shared = servers::shared(set, &cpus, rule);
        let is_reserved = |position: &usize| shared.has(&set.tasks[*position]);
        let (reserved, tasks) = here.iter().partition(|position| is_reserved(position));
        let group = Placement { cpus, shared, reserved, tasks };
        let meets = |other: &&Placement| {
            !other.cpus.intersection(&group.cpus).is_empty()
                && !is_below(other, &group)
                && !is_below(&group, other)
        };
        if let Some(other) = found.iter().find(meets) {
            return Err(format!(
                "task '{}' runs on CPUs {} and others on CPUs {}, which overlap; no analysis here has that: pin \
                 each task to one CPU, or none",
                set.tasks[here[0]].name, group.cpus, other.cpus
            ));
        }
        found.push(group);
    }
    found.sort_by_key(|group| group.cpus.iter().next());
    Ok(found)
}

/// The CPU with the tasks here that are in no server, and the inside of each server; `above` may run on other CPUs as well.
fn on_cpu(
    set: &TaskSet,
    (cpu, tasks): (u32, &[usize]),
    above: Option<&SharedReservations>,
    rule: Rule,
    phases: bool,
    notes: &mut NoteList,
) -> Vec<Processor> {
    let is_here = |server: &&Server| {
        let cpus = server.cpus.clone().unwrap_or_else(|| set.cpus());
        let runs = |position: &usize| server.tasks.contains(&set.tasks[*position].name);
        cpus.contains(cpu) && (server.tasks.is_empty() || tasks.iter().any(runs))
    };
    let own: Vec<&Server> = set.servers.iter().filter(is_here).collect();
    let outside = |position: &&usize| set.server_of(&set.tasks[**position].name).is_none();
    let outside: Vec<usize> = tasks.iter().filter(outside).copied().collect();
    let servers = above.map_or(&own, |above| &above.servers);
    let place = TaskGroup::Cpu { cpu: cpu.to_string(), servers, shared: above };
    let host = ProcessorTasks::new(set, &place, &outside, rule, phases);
    let host = processor(&host, notes);
    let mut found = Vec::new();
    for server in own.iter().filter(|server| !server.tasks.is_empty()) {
        let inside = |position: &&usize| server.tasks.contains(&set.tasks[**position].name);
        let inside: Vec<usize> = tasks.iter().filter(inside).copied().collect();
        let rule = match server.scheduler {
            // A task alone has no other to wait for, and fixed priorities have the tighter bounds in servers.
            _ if inside.len() == 1 => Rule::FixedPriority,
            Scheduler::Edf => Rule::Edf,
            Scheduler::Fifo => Rule::Fifo,
            _ => Rule::FixedPriority,
        };
        let place = TaskGroup::Inside(server, host.cpus.clone(), delivered(server, &host));
        let inside = ProcessorTasks::new(set, &place, &inside, rule, phases);
        found.push(processor(&inside, notes));
    }
    if !outside.is_empty() {
        found.insert(0, host);
    }
    found
}

/// Several CPUs with the tasks here that are in no reservation of the deadline class, and the inside of each; `above` may run
/// on other CPUs as well.
fn on_cpus(
    set: &TaskSet,
    here: &Placement,
    above: Option<&SharedReservations>,
    rule: Rule,
    notes: &mut NoteList,
) -> Vec<Processor> {
    let mut found = Vec::new();
    if !here.tasks.is_empty() {
        let place = TaskGroup::Shared(&here.cpus, above.unwrap_or(&here.shared));
        let of = ProcessorTasks::new(set, &place, &here.tasks, rule, false);
        found.push(processor(&of, notes));
    }
    for server in &here.shared.servers {
        let inside = |position: &&usize| server.tasks.contains(&set.tasks[**position].name);
        let inside: Vec<usize> = here.reserved.iter().filter(inside).copied().collect();
        let delivery = here.shared.delivery.clone();
        let place = TaskGroup::Inside(server, here.cpus.to_string(), delivery);
        let of = ProcessorTasks::new(set, &place, &inside, Rule::FixedPriority, false);
        found.push(processor(&of, notes));
    }
    found
}

/// How the server gets its budget, within each period or by its deadline.
///
/// # Errors
/// It is not known to, in a sentence.
fn delivered(server: &Server, host: &Processor) -> Result<Delivery, String> {
    let label = servers::label(server);
    if let Some(why) = &host.refused {
        return Err(format!("what {label} gets is not known: {why}"));
    }
    let own = host.members.iter().position(|member| member.name == label);
    let numbers: sched::TaskSet =
        host.with_bursts_as_jitter().ok_or(super::parameters::TOO_LONG)?;
    let holds = own.is_some_and(|own| match host.rule {
        Rule::Fifo => false,
        Rule::Edf => sched::servers::is_delivered_by_deadline(&numbers),
        Rule::FixedPriority => sched::servers::is_delivered(&numbers, host.sections, own),
    });
    if !holds {
        return Err(format!("{label} is not known to get its budget in time"));
    }
    let is_own = |member: &Member| member.position.is_none() && member.name == label;
    let is_below = |member: &Member| match is_own(member) {
        true => member.task.priority() == DEADLINE_CLASS && member.task.blocking() == 0,
        false => member.task.priority() < DEADLINE_CLASS,
    };
    let is_alone = host.rule == Rule::FixedPriority && host.members.iter().all(is_below)
        || host.rule == Rule::Edf && host.members.iter().all(is_own);
    Ok(match is_alone && host.sections == Sections::Preemptive {
        true => Delivery::AtOnce,
        false => Delivery::ByDeadline,
    })
}

/// The rule by which a scheduler chooses.
///
/// # Errors
/// No analysis knows it, in a sentence.
pub(super) fn rule(scheduler: Scheduler) -> Result<Rule, String> {
    match scheduler {
        Scheduler::FixedPriority => Ok(Rule::FixedPriority),
        Scheduler::Edf => Ok(Rule::Edf),
        Scheduler::Fifo => Ok(Rule::Fifo),
        Scheduler::RoundRobin | Scheduler::Fair => {
            let name = if scheduler == Scheduler::Fair { "fair" } else { "round-robin" };
            Err(format!(
                "no analysis of Hourglass bounds response times under the scheduler {name}; write \
                 scheduler = \"fixed-priority\", \"edf\" or \"fifo\""
            ))
        }
    }
}
