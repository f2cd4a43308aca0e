//! Critical sections of a file, as `sched::blocking` takes them.
//!
//! Owns: which sections may hold up others, and for how long each is held; what of it nothing bounds, in
//! words. Sections of a job are taken not to lie in each other.
//!
//! A spin lock may also be shared with tasks that are pinned to other CPUs: a request waits,
//! not preempted, for one section of each of these at most (MSRP: Gai, Lipari and Di Natale, RTSS
//! 2001). That makes the sections of this processor longer, and the jobs that hold them. Must not:
//! bound blocking or responses.

use std::collections::{BTreeMap, BTreeSet};

use hourglass_model::tasks::{Protocol, Resource, Step, TaskSet};
use hourglass_sched::blocking::{self, CriticalSection, Usage};
use hourglass_sched::fixed_priority::TimeModel;
use hourglass_sched::{Task, TaskSet as Numbers};

use super::host;
use super::numbers;
use super::processor::Rule;

/// A number that does not fit.
const TOO_LONG: &str = "a critical section has more than 64 bits";

/// That nothing keeps the wait for a lock of the tasks in `here` (positions in the set) from having a
/// bound.
///
/// # Errors
/// What does, in a sentence.
pub(super) fn check(
    set: &TaskSet,
    here: &[usize],
    priorities: &[Option<u32>],
    rule: Rule,
) -> Result<(), String> {
    for task in here {
        for section in &set.tasks[*task].critical_sections {
            bounded(set, here, priorities, rule, resource(set, &section.resource)?)?;
        }
    }
    Ok(())
}

/// The blocking of each task in `here` (positions in the set, whose numbers are `tasks`) by sections of
/// the others. `extra` is what a section takes beyond its length.
///
/// # Errors
/// Nothing bounds it, in a sentence.
pub(super) fn blocking(
    set: &TaskSet,
    here: &[usize],
    tasks: &[Task],
    rule: Rule,
    extra: u64,
) -> Result<Vec<u64>, String> {
    // First come, first served: a job that holds a lock is not overtaken.
    let sections = if rule == Rule::Fifo { Vec::new() } else { sections(set, here, extra)? };
    if sections.is_empty() {
        return Ok(vec![0; here.len()]);
    }
    let known = host::known_priorities(set);
    let protocols = set.resources.iter().map(|resource| protocol(resource, &known)).collect();
    let usage = Usage::new(Numbers::new(tasks.to_vec()), protocols, &sections);
    let usage = usage.map_err(|why| why.to_string())?;
    let of = |position: usize| {
        let found = match rule {
            Rule::Edf => blocking::edf::blocking(&usage, position, TimeModel::Continuous),
            _ => usage.blocking(position, TimeModel::Continuous),
        };
        found
            .ok_or_else(|| "nothing bounds a blocking time, or it has more than 64 bits".to_owned())
    };
    (0..here.len()).map(of).collect()
}

/// The protocol with its ceiling as a rank.
fn protocol(resource: &Resource, known: &[u32]) -> blocking::Protocol {
    match resource.protocol {
        Protocol::Ceiling => {
            let rank = |ceiling| host::rank_above(known, ceiling);
            blocking::Protocol::Ceiling(resource.ceiling.map(rank))
        }
        Protocol::Inheritance => blocking::Protocol::Inheritance,
        Protocol::Spin => blocking::Protocol::Spin,
        Protocol::Plain => blocking::Protocol::Plain,
    }
}

fn resource<'a>(set: &'a TaskSet, name: &str) -> Result<&'a Resource, String> {
    let found = set.resources.iter().find(|resource| resource.name == name);
    found.ok_or_else(|| format!("no resource '{name}'"))
}

/// The sections of the tasks in `here` that may hold up others of them.
fn sections(set: &TaskSet, here: &[usize], extra: u64) -> Result<Vec<CriticalSection>, String> {
    let mut found = Vec::new();
    for (task, position) in here.iter().enumerate() {
        for section in &set.tasks[*position].critical_sections {
            let of = resource(set, &section.resource)?;
            if is_private(set, of) {
                continue;
            }
            let length = numbers::slowed(set, *position, section.length.nanos_or_zero())?;
            let waits = spin(set, here, of, extra)?;
            let length = length.checked_add(extra).and_then(|length| length.checked_add(waits));
            let resource = set.resources.iter().position(|known| known.name == of.name);
            let resource = resource.unwrap_or(0);
            let length = length.ok_or(TOO_LONG)?;
            found.push(CriticalSection { task, resource, length });
        }
    }
    Ok(found)
}

/// How long the jobs of each task in `here` spin for locks that tasks on other CPUs hold, in the order
/// of `here`. `extra` is what a section takes beyond its length.
///
/// # Errors
/// Nothing bounds it, in a sentence.
pub(super) fn spinning(set: &TaskSet, here: &[usize], extra: u64) -> Result<Vec<u64>, String> {
    let of = |task: &usize| {
        let mut sum = 0u64;
        for section in &set.tasks[*task].critical_sections {
            let each = spin(set, here, resource(set, &section.resource)?, extra)?;
            let all = each.checked_mul(section.count.into());
            sum = all.and_then(|all| sum.checked_add(all)).ok_or(TOO_LONG)?;
        }
        Ok(sum)
    };
    here.iter().map(of).collect()
}

/// How long a request of a task in `here` waits for those on other CPUs: the longest section of each of
/// these.
fn spin(set: &TaskSet, here: &[usize], resource: &Resource, extra: u64) -> Result<u64, String> {
    let mut longest: BTreeMap<u32, u64> = BTreeMap::new();
    if resource.protocol != Protocol::Spin {
        return Ok(0);
    }
    for user in users(set, resource).filter(|user| !here.contains(user)) {
        let cpu = only_cpu(set, user).ok_or_else(|| elsewhere(resource))?;
        let held = longest.entry(cpu).or_default();
        for section in &set.tasks[user].critical_sections {
            if section.resource == resource.name {
                let length = numbers::slowed(set, user, section.length.nanos_or_zero())?;
                *held = length.checked_add(extra).ok_or(TOO_LONG)?.max(*held);
            }
        }
    }
    let sum = longest.values().try_fold(0u64, |sum, length| sum.checked_add(*length));
    sum.ok_or_else(|| TOO_LONG.to_owned())
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
fn spins(
    set: &TaskSet,
    here: &[usize],
    users: &[usize],
    resource: &Resource,
) -> Result<(), String> {
    let pinned = |task: &usize| only_cpu(set, *task).is_some();
    if resource.protocol != Protocol::Spin
        || !set.servers.is_empty()
        || !here.iter().chain(users).all(pinned)
    {
        return Err(elsewhere(resource));
    }
    if set.machine.overheads.tick_cost.is_some_and(|cost| cost.is_positive()) {
        return Err(format!(
            "ticks prolong sections of resource '{}' on other CPUs, which no analysis here counts",
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

/// Whether a lock holds up nobody: one task alone uses it, and is not more urgent meanwhile.
fn is_private(set: &TaskSet, resource: &Resource) -> bool {
    let raises = match resource.protocol {
        Protocol::Spin => true,
        Protocol::Ceiling => resource.ceiling.is_some(),
        Protocol::Inheritance | Protocol::Plain => false,
    };
    !raises && users(set, resource).count() < 2
}

/// That the time for which a section is held has a bound at all.
fn bounded(
    set: &TaskSet,
    here: &[usize],
    priorities: &[Option<u32>],
    rule: Rule,
    resource: &Resource,
) -> Result<(), String> {
    let users: Vec<usize> = users(set, resource).collect();
    if users.iter().any(|user| !here.contains(user)) {
        spins(set, here, &users, resource)?;
    }
    let locks = |step: &Step| matches!(step, Step::Lock(name) if *name == resource.name);
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
            let mut seen = BTreeSet::new();
            match here.iter().filter_map(|task| priorities[*task]).find(|p| !seen.insert(*p)) {
                None => Ok(()),
                Some(priority) => Err(format!(
                    "several tasks have priority {priority}, and who of them goes first while a \
                     lock is inherited is not defined; make the priorities different"
                )),
            }
        }
        Protocol::Inheritance | Protocol::Ceiling | Protocol::Spin | Protocol::Plain => Ok(()),
    }
}
