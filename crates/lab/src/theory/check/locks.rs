//! How long less urgent tasks hold up others by the locks that they hold.
//!
//! Owns: blocking from critical sections on one processor. Under the ceiling protocol, a section of
//! one less urgent task (Sha, Rajkumar and Lehoczky 1990; Baker 1991 for EDF); under inheritance, at
//! most one of each such task and one of each such resource; spinning is not preempted. Sections of a
//! job are taken not to lie in each other.
//!
//! A spin lock may also be shared with tasks that are pinned to other CPUs: whoever asks for it waits,
//! not preempted, for one section of each of these at most (MSRP: Gai, Lipari and Di Natale, RTSS
//! 2001). That makes the sections of this processor longer, and the jobs that hold them. Must not:
//! bound responses.

use std::collections::{BTreeMap, BTreeSet};

use hourglass_model::tasks::{Protocol, Resource, Step, TaskSet};

use super::numbers;
use super::processor::Rule;

/// A number that does not fit.
const TOO_LONG: &str = "a critical section has more than 64 bits";

/// A section that may hold up others: whose, of which resource, how long.
struct Section<'a> {
    task: usize,
    resource: &'a Resource,
    length: u64,
}

/// The blocking of each task in `here` (positions in the set) by sections of the others, in the
/// order of `here`. `priorities` and `extra` are by position in the set; `extra` is what a section
/// takes beyond its length.
///
/// # Errors
/// Nothing bounds it, in a sentence.
pub(super) fn blocking(
    set: &TaskSet,
    here: &[usize],
    priorities: &[Option<u32>],
    rule: Rule,
    extra: u64,
) -> Result<Vec<u64>, String> {
    let sections = sections(set, here, extra)?;
    for section in &sections {
        bounded(set, here, priorities, rule, section)?;
    }
    // Nobody overtakes whoever holds a lock, so that nobody waits for one of the same processor.
    if sections.is_empty() || rule == Rule::Fifo {
        return Ok(vec![0; here.len()]);
    }
    let too_long = || "a blocking time has more than 64 bits".to_owned();
    let of = |task: &usize| {
        let blocks = |section: &&Section<'_>| {
            let others = section.task != *task;
            others && reaches(set, priorities, rule, section, *task)
        };
        let blocking: Vec<&Section<'_>> = sections.iter().filter(blocks).collect();
        let longest = |protocol: Protocol| {
            let of = blocking.iter().filter(|section| section.resource.protocol == protocol);
            of.map(|section| section.length).max().unwrap_or(0)
        };
        longest(Protocol::Ceiling)
            .checked_add(longest(Protocol::Spin))
            .and_then(|sum| sum.checked_add(inherited(&blocking)?))
            .ok_or_else(too_long)
    };
    here.iter().map(of).collect()
}

fn sections<'a>(set: &'a TaskSet, here: &[usize], extra: u64) -> Result<Vec<Section<'a>>, String> {
    let mut found = Vec::new();
    for task in here {
        for section in &set.tasks[*task].critical_sections {
            let resource = set.resources.iter().find(|r| r.name == section.resource);
            let resource = resource.ok_or_else(|| format!("no resource '{}'", section.resource))?;
            let length = numbers::slowed(set, *task, section.length.nanos_or_zero())?;
            let waits = spin(set, here, resource, extra)?;
            let length = length.checked_add(extra).and_then(|length| length.checked_add(waits));
            let length = length.ok_or(TOO_LONG)?;
            found.push(Section { task: *task, resource, length });
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
            let resource = set.resources.iter().find(|r| r.name == section.resource);
            let resource = resource.ok_or_else(|| format!("no resource '{}'", section.resource))?;
            let each = spin(set, here, resource, extra)?;
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

/// That the time for which a section is held has a bound at all.
fn bounded(
    set: &TaskSet,
    here: &[usize],
    priorities: &[Option<u32>],
    rule: Rule,
    section: &Section<'_>,
) -> Result<(), String> {
    let resource = section.resource;
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
    if users.len() < 2 && resource.protocol != Protocol::Spin {
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

/// Whether a section of another task can hold up `task`.
fn reaches(
    set: &TaskSet,
    priorities: &[Option<u32>],
    rule: Rule,
    section: &Section<'_>,
    task: usize,
) -> bool {
    let resource = section.resource;
    match rule {
        Rule::Fifo => false,
        Rule::Edf => resource.protocol == Protocol::Spin || users(set, resource).count() > 1,
        Rule::FixedPriority => {
            let (own, theirs) = (priorities[task], priorities[section.task]);
            let highest = || users(set, resource).filter_map(|user| priorities[user]).max();
            // None, the time-sharing classes, is below every number.
            theirs < own
                && match resource.protocol {
                    Protocol::Spin => true,
                    Protocol::Ceiling => resource.ceiling.or_else(highest) >= own,
                    Protocol::Inheritance | Protocol::Plain => highest() >= own,
                }
        }
    }
}

/// Under inheritance: one section of each task, and one of each resource; the smaller sum.
fn inherited(blocking: &[&Section<'_>]) -> Option<u64> {
    let inherited: Vec<&&Section<'_>> =
        blocking.iter().filter(|s| s.resource.protocol == Protocol::Inheritance).collect();
    let longest_of = |is: &dyn Fn(&Section<'_>) -> bool| {
        inherited.iter().filter(|s| is(s)).map(|s| s.length).max().unwrap_or(0)
    };
    let tasks: BTreeSet<usize> = inherited.iter().map(|s| s.task).collect();
    let resources: BTreeSet<&str> = inherited.iter().map(|s| s.resource.name.as_str()).collect();
    let sum = |mut lengths: Vec<u64>| {
        lengths.drain(..).try_fold(0u64, |sum, length| sum.checked_add(length))
    };
    let by_task = sum(tasks.iter().map(|task| longest_of(&|s| s.task == *task)).collect())?;
    let by_resource =
        sum(resources.iter().map(|name| longest_of(&|s| s.resource.name == *name)).collect())?;
    Some(by_task.min(by_resource))
}
