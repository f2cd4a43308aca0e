//! Critical sections of a file, as `sched::blocking` takes them.
//!
//! Owns: which sections may hold up others, and for how long each is held; what of it nothing bounds, in
//! words. Sections of a job are taken not to lie in each other.
//!
//! A spin lock may also be shared with tasks that are pinned to other CPUs: a request waits for these
//! (`sched::spin`), which makes the sections of this processor longer, and the jobs that hold them. Must
//! not: bound blocking or responses.

use std::collections::BTreeSet;

use hourglass_sched::blocking::{self, Usage};
use hourglass_sched::catalogue::Rule;
use hourglass_sched::fixed_priority::TimeModel;
use hourglass_sched::spin;
use hourglass_sched::task::{CriticalSection, Task};
use hourglass_tasks::{
    CriticalSection as Section, Preemption, ProgramStep, Protocol, Resource, TaskSet,
};

use super::processor::NoteList;
use super::processor_builder::ProcessorTasks;
use super::{parameters, priorities};

/// A number that does not fit.
const TOO_LONG: &str = "a critical section has more than 64 bits";

/// That nothing keeps the wait for a lock of these tasks from having a bound.
///
/// # Errors
/// What does, in a sentence.
pub(super) fn check(of: &ProcessorTasks) -> Result<(), String> {
    for task in of.tasks {
        for section in &of.set.tasks[*task].critical_sections {
            bounded(of, resource(of.set, &section.resource)?)?;
        }
    }
    Ok(())
}

/// The blocking of each of `tasks` by these [`sections`]: the numbers of these tasks, and behind them those of
/// servers, which hold no locks of their own.
///
/// # Errors
/// Nothing bounds it, in a sentence.
pub(super) fn blocking(
    set: &TaskSet,
    rule: Rule,
    sections: &[Vec<CriticalSection>],
    tasks: &[Task],
) -> Result<Vec<u64>, String> {
    if sections.iter().all(Vec::is_empty) {
        return Ok(vec![0; tasks.len()]);
    }
    let known = priorities::known_priorities(set);
    let protocols = set.resources.iter().map(|resource| protocol(resource, &known)).collect();
    // Sections that tasks state are added to those that locks make.
    let held = sections.iter().map(Vec::as_slice).chain(std::iter::repeat(&[][..]));
    let holding = tasks.iter().zip(held);
    let holding = holding.map(|(task, held)| {
        // What follows a section may be longer than is left of the job.
        let longest = held.iter().map(|section| section.length).max().unwrap_or(0);
        task.with_blocking(0).with_cost_at_least(longest).with_critical_sections(held)
    });
    let usage = Usage::new(holding.collect::<Vec<Task>>().into(), protocols);
    let usage = usage.map_err(|why| why.to_string())?;
    let bound = |position: usize| {
        let found = match rule {
            Rule::Edf => blocking::edf::blocking(&usage, position, TimeModel::Continuous),
            _ => usage.blocking(position, TimeModel::Continuous),
        };
        found
            .ok_or_else(|| "nothing bounds a blocking time, or it has more than 64 bits".to_owned())
    };
    (0..tasks.len()).map(bound).collect()
}

/// The protocol with its ceiling as a rank.
fn protocol(resource: &Resource, known: &[u32]) -> blocking::LockProtocol {
    match resource.protocol {
        Protocol::Ceiling => {
            let rank = |ceiling| priorities::rank_above(known, ceiling);
            blocking::LockProtocol::Ceiling(resource.ceiling.map(rank))
        }
        Protocol::Inheritance => blocking::LockProtocol::Inheritance,
        Protocol::Spin => blocking::LockProtocol::Spin,
        Protocol::Plain => blocking::LockProtocol::Plain,
    }
}

fn resource<'a>(set: &'a TaskSet, name: &str) -> Result<&'a Resource, String> {
    let found = set.resources.iter().find(|resource| resource.name == name);
    found.ok_or_else(|| format!("no resource '{name}'"))
}

/// The sections of each of these tasks that may hold up others of them.
///
/// # Errors
/// Nothing bounds how long one is held, in a sentence.
pub(super) fn sections(of: &ProcessorTasks) -> Result<Vec<Vec<CriticalSection>>, String> {
    let set = of.set;
    if of.rule == Rule::Fifo {
        // First come, first served: a job that holds a lock is not overtaken.
        return Ok(vec![Vec::new(); of.tasks.len()]);
    }
    let spinning = locking(of)?;
    let mut all = Vec::new();
    for position in of.tasks {
        let mut found = Vec::new();
        for section in &set.tasks[*position].critical_sections {
            let resource = resource(set, &section.resource)?;
            if is_private(set, resource) {
                continue;
            }
            let resource = place(set, resource);
            let waits = spin::request_waits(&spinning, HERE, resource);
            let held = held(of, *position, section)?.checked_add(overlap(of, *position)?);
            let length = waits.and_then(|waits| held?.checked_add(waits)).ok_or(TOO_LONG)?;
            let count = section.count.into();
            found.push(CriticalSection { resource, count, length });
        }
        all.push(found);
    }
    Ok(all)
}

/// How long a section is held, with its switches.
fn held(of: &ProcessorTasks, task: usize, section: &Section) -> Result<u64, String> {
    let length = parameters::slowed(of.set, task, section.length.nanos_or_zero())?;
    of.costs.with_switches(length).ok_or_else(|| TOO_LONG.to_owned())
}

/// For how long a job that releases a lock may still not be preempted: its next section of that kind may have begun meanwhile.
/// The one in which it took the lock is the blocking by such sections.
fn overlap(of: &ProcessorTasks, task: usize) -> Result<u64, String> {
    match of.set.tasks[task].preemption {
        Preemption::Limited { longest, .. } | Preemption::Floating { longest } => {
            parameters::slowed(of.set, task, longest.nanos_or_zero())
        }
        Preemption::Full | Preemption::None | Preemption::Threshold(_) => Ok(0),
    }
}

/// Whether locks are held for longer where its sections grow that are not preempted.
pub(super) fn may_overlap(task: &hourglass_tasks::Task) -> bool {
    let has_sections =
        matches!(task.preemption, Preemption::Limited { .. } | Preemption::Floating { .. });
    has_sections && !task.critical_sections.is_empty()
}

/// Says which ceilings mean nothing here.
pub(super) fn passed_over(of: &ProcessorTasks, notes: &mut NoteList) {
    let used = |resource: &&Resource| users(of.set, resource).any(|user| of.tasks.contains(&user));
    let ceilings = of.set.resources.iter().filter(|resource| resource.ceiling.is_some());
    for resource in ceilings.filter(used).filter(|_| of.rule == Rule::Edf) {
        notes.say(resource.ceiling_passed_over());
    }
}

/// How often a job waits for locks that other jobs on its CPU hold, at most. One that it has preempted holds one lock at
/// most, and none any more after that: Sha, Rajkumar and Lehoczky, IEEE Transactions on Computers, 1990, theorem 6. With a
/// ceiling or spinning, a lock is free whenever a job runs that asks for it.
pub(super) fn most_waits(of: &ProcessorTasks, task: usize) -> u64 {
    let (set, priorities) = (of.set, of.set.priorities());
    let own = priorities[task].filter(|_| of.rule == Rule::FixedPriority);
    let is_preempted = |user: &usize| {
        let less = own.zip(priorities[*user]).is_none_or(|(own, other)| other < own);
        *user != task && of.tasks.contains(user) && less
    };
    let (mut locks, mut holders) = (BTreeSet::new(), BTreeSet::new());
    for section in &set.tasks[task].critical_sections {
        let Ok(resource) = resource(set, &section.resource) else { continue };
        if matches!(resource.protocol, Protocol::Ceiling | Protocol::Spin) {
            continue;
        }
        let mut found = users(set, resource).filter(is_preempted).peekable();
        if found.peek().is_some() {
            locks.insert(place(set, resource));
        }
        holders.extend(found);
    }
    locks.len().min(holders.len()) as u64
}

fn place(set: &TaskSet, resource: &Resource) -> usize {
    set.resources.iter().position(|known| known.name == resource.name).unwrap_or(0)
}

/// How long the jobs of each of these tasks spin for locks that tasks on other CPUs hold.
///
/// # Errors
/// Nothing bounds it, in a sentence.
pub(super) fn spinning(of: &ProcessorTasks) -> Result<Vec<u64>, String> {
    let all = locking(of)?;
    if all.is_empty() {
        return Ok(vec![0; of.tasks.len()]);
    }
    let wait = |position| spin::job_waits(&all, position).ok_or_else(|| TOO_LONG.to_owned());
    // These tasks come first.
    (0..of.tasks.len()).map(wait).collect()
}

/// The processor of these tasks, whichever it is; others have that of their CPU after it.
const HERE: usize = 0;

/// These tasks, and behind them those elsewhere that share spin locks with them; empty without such locks.
fn locking(of: &ProcessorTasks) -> Result<Vec<Task>, String> {
    let ProcessorTasks { set, tasks: here, .. } = *of;
    let spins = |resource: &&Resource| resource.protocol == Protocol::Spin;
    let used = |resource: &&Resource| users(set, resource).any(|user| here.contains(&user));
    let shared: Vec<&Resource> = set.resources.iter().filter(spins).filter(used).collect();
    if shared.is_empty() {
        return Ok(Vec::new());
    }
    let elsewhere = (0..set.tasks.len()).filter(|task| !here.contains(task));
    let elsewhere = elsewhere.filter(|task| {
        set.tasks[*task]
            .critical_sections
            .iter()
            .any(|s| shared.iter().any(|r| r.name == s.resource))
    });
    let here = here.iter().map(|task| (*task, HERE));
    let mut found = Vec::new();
    for (position, cpu) in here.chain(elsewhere.map(|task| (task, HERE + 1))) {
        let task = &set.tasks[position];
        let mut requests = Vec::new();
        let mut cpu = cpu;
        for section in &task.critical_sections {
            let resource = shared.iter().find(|resource| resource.name == section.resource);
            let Some(resource) = resource else { continue };
            if cpu != HERE {
                let only = only_cpu(set, position).ok_or_else(|| self::elsewhere(resource))?;
                cpu = HERE + 1 + only as usize;
            }
            let length = held(of, position, section)?;
            let (resource, count) = (place(set, resource), section.count.into());
            requests.push(CriticalSection { resource, count, length });
        }
        let (cost, period) = (task.wcet.nanos_or_zero(), task.period.nanos_or_zero());
        let task = Task::new(cost, period, task.deadline().nanos_or_zero());
        let task = task.map_err(|why| format!("task '{}': {why}", set.tasks[position].name))?;
        found.push(task.with_cpu(cpu).with_critical_sections(&requests));
    }
    Ok(found)
}

/// The CPU that a task is pinned to.
fn only_cpu(set: &TaskSet, task: usize) -> Option<u32> {
    let all = set.cpus();
    let cpus = set.tasks[task].cpus.as_ref().unwrap_or(&all);
    cpus.iter().next().filter(|_| cpus.len() == 1)
}

fn elsewhere(resource: &Resource) -> String {
    format!(
        "resource '{}' is shared with tasks on other processors or in other servers",
        resource.name
    )
}

/// That a lock that others hold on other CPUs is waited for as [`spin`] says.
fn spins(of: &ProcessorTasks, users: &[usize], resource: &Resource) -> Result<(), String> {
    let set = of.set;
    let pinned = |task: &usize| only_cpu(set, *task).is_some();
    if resource.protocol != Protocol::Spin
        || !set.servers.is_empty()
        || !of.tasks.iter().chain(users).all(pinned)
    {
        return Err(elsewhere(resource));
    }
    if set.machine.overheads.tick_cost.is_some_and(|cost| cost.is_positive()) {
        return Err(format!(
            "ticks prolong sections of resource '{}' on other CPUs, which no analysis of Hourglass counts",
            resource.name
        ));
    }
    let suspends = users.iter().find(|task| set.tasks[**task].suspension.is_positive());
    suspends.map_or(Ok(()), |task| Err(suspended(set, *task, resource)))
}

fn suspended(set: &TaskSet, task: usize, resource: &Resource) -> String {
    format!(
        "task '{}' suspends itself where resource '{}' is shared; how often it then waits for the \
         lock is not known",
        set.tasks[task].name, resource.name
    )
}

fn users<'a>(set: &'a TaskSet, resource: &'a Resource) -> impl Iterator<Item = usize> + 'a {
    let uses = |position: &usize| {
        set.tasks[*position].critical_sections.iter().any(|s| s.resource == resource.name)
    };
    (0..set.tasks.len()).filter(uses)
}

/// Whether a lock delays no task: one task alone uses it, and is not more urgent meanwhile.
fn is_private(set: &TaskSet, resource: &Resource) -> bool {
    let raises = match resource.protocol {
        Protocol::Spin => true,
        Protocol::Ceiling => resource.ceiling.is_some(),
        Protocol::Inheritance | Protocol::Plain => false,
    };
    !raises && users(set, resource).count() < 2
}

/// Checks that the time for which a section is held has a bound.
fn bounded(of: &ProcessorTasks, resource: &Resource) -> Result<(), String> {
    let ProcessorTasks { set, tasks: here, rule, .. } = *of;
    let users: Vec<usize> = users(set, resource).collect();
    if users.iter().any(|user| !here.contains(user)) {
        spins(of, &users, resource)?;
    }
    let locks =
        |step: &ProgramStep| matches!(step, ProgramStep::Lock(name) if *name == resource.name);
    let thread = set
        .background
        .iter()
        .find(|thread| thread.program.phases.iter().flat_map(|phase| &phase.steps).any(locks));
    if let Some(thread) = thread {
        return Err(format!(
            "the background thread '{}' locks resource '{}', and nothing says for how long",
            thread.name, resource.name
        ));
    }
    if is_private(set, resource) {
        return Ok(());
    }
    let suspends = here.iter().find(|task| set.tasks[**task].suspension.is_positive());
    if let Some(task) = suspends {
        return Err(suspended(set, *task, resource));
    }
    match resource.protocol {
        Protocol::Plain if rule != Rule::Fifo => Err(format!(
            "resource '{}' has a plain lock: tasks in between may prolong the wait without a \
             bound; give it the protocol ceiling or inheritance",
            resource.name
        )),
        Protocol::Inheritance if rule == Rule::FixedPriority => {
            let (priorities, mut seen) = (set.priorities(), BTreeSet::new());
            match here.iter().filter_map(|task| priorities[*task]).find(|p| !seen.insert(*p)) {
                None => Ok(()),
                Some(priority) => Err(format!(
                    "several tasks have priority {priority}, and their order while a priority is inherited is not defined; make the priorities different"
                )),
            }
        }
        Protocol::Inheritance | Protocol::Ceiling | Protocol::Spin | Protocol::Plain => Ok(()),
    }
}
