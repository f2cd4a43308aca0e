//! Whether a set of tasks can be meant.
//!
//! Owns: the rules that values must keep, alone and together, and the warnings. Must not: judge
//! whether deadlines hold. A task whose execution time is longer than its deadline is accepted,
//! with a warning: the analysis answers that it is infeasible.

mod machine;
mod servers;
mod single_task;
mod warn;

use std::collections::{BTreeMap, BTreeSet};

use hourglass_time::Span;

use super::error::{Location, TaskSetError};
use super::keys::remedy;
use super::read::{NAME, is_name};
use super::{Assignment, Preemption, Protocol, Task, TaskSet, TaskSetWarning};

type CheckResult = Result<(), TaskSetError>;

impl TaskSet {
    /// That every value is in its range, every name is known, and nothing contradicts something
    /// else.
    ///
    /// # Errors
    /// The first fault: parts one by one in the order of the set, then how they fit together.
    pub fn check(&self) -> Result<(), TaskSetError> {
        if self.tasks.is_empty() && self.background.is_empty() {
            return Err(TaskSetError::NoTasks);
        }
        let background = self.background.iter().map(|thread| &thread.name);
        unique("task", self.tasks.iter().map(|task| &task.name).chain(background))?;
        unique("resource", self.resources.iter().map(|resource| &resource.name))?;
        unique("server", self.servers.iter().map(|server| &server.name))?;
        if let Some(horizon) = self.horizon.filter(|horizon| !horizon.is_positive()) {
            return Err(Location::file().bad("horizon", horizon, "it must be above zero"));
        }
        machine::check(self)?;
        for task in &self.tasks {
            single_task::check(task)?;
        }
        servers::check(self)?;
        in_order(&self.tasks)?;
        periods_of_chains(&self.tasks)?;
        priorities(self)?;
        critical_sections(self)?;
        thresholds(self)
    }

    /// That a file of our own can say the names, which another tool gave.
    pub(super) fn check_names(&self) -> CheckResult {
        let background = self.background.iter().map(|thread| ("background", &thread.name));
        let tasks = self.tasks.iter().map(|task| ("task", &task.name)).chain(background);
        let resources = self.resources.iter().map(|resource| ("resource", &resource.name));
        let servers = self.servers.iter().map(|server| ("server", &server.name));
        let mut all = tasks.chain(resources).chain(servers);
        match all.find(|(_, name)| !is_name(name)) {
            Some((kind, name)) => {
                Err(Location::named(kind, name).bad("name", format_args!("{name:?}"), NAME))
            }
            None => Ok(()),
        }
    }

    #[must_use]
    pub fn warnings(&self) -> Vec<TaskSetWarning> {
        warn::warnings(self)
    }
}

fn above_zero(place: &Location, key: &str, value: Span, remedy: &str) -> CheckResult {
    if value.is_positive() {
        return Ok(());
    }
    Err(place.bad(key, value, format_args!("it must be above zero; {remedy}")))
}

fn not_negative(place: &Location, key: &str, value: Span) -> CheckResult {
    if !value.is_negative() {
        return Ok(());
    }
    Err(place.bad(key, value, "it must not be negative"))
}

fn known_name(
    place: &Location,
    key: &'static str,
    kind: &'static str,
    name: &str,
    known: &BTreeSet<&str>,
) -> CheckResult {
    if known.contains(name) {
        return Ok(());
    }
    Err(TaskSetError::UnknownName {
        place: place.clone(),
        key,
        name: name.escape_debug().to_string(),
        kind,
        remedy: remedy(name, known.iter().copied()),
    })
}

fn unique<'a>(kind: &'static str, names: impl Iterator<Item = &'a String>) -> CheckResult {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            let name = name.escape_debug().to_string();
            return Err(TaskSetError::DuplicateName { kind, name });
        }
    }
    Ok(())
}

fn task_names(tasks: &[Task]) -> BTreeSet<&str> {
    tasks.iter().map(|task| task.name.as_str()).collect()
}

/// Positions of the tasks that each one is after.
///
/// # Errors
/// A name that no task has.
fn predecessors(tasks: &[Task]) -> Result<Vec<Vec<usize>>, TaskSetError> {
    let names = task_names(tasks);
    let positions: BTreeMap<&str, usize> =
        tasks.iter().enumerate().map(|(position, task)| (task.name.as_str(), position)).collect();
    let of = |task: &Task| {
        let place = Location::named("task", &task.name);
        let mut before = Vec::new();
        for name in &task.after {
            known_name(&place, "after", "task", name, &names)?;
            before.extend(positions.get(name.as_str()));
        }
        Ok(before)
    };
    tasks.iter().map(of).collect()
}

/// Positions of all tasks, each behind those that it is after (Kahn 1962).
///
/// # Errors
/// An `after` that names no task; tasks that wait for each other.
pub(super) fn in_order(tasks: &[Task]) -> Result<Vec<usize>, TaskSetError> {
    let before = predecessors(tasks)?;
    let mut followers = vec![Vec::new(); tasks.len()];
    for (position, before) in before.iter().enumerate() {
        for predecessor in before {
            followers[*predecessor].push(position);
        }
    }
    let mut waits: Vec<usize> = before.iter().map(Vec::len).collect();
    let mut order: Vec<usize> = (0..tasks.len()).filter(|position| waits[*position] == 0).collect();
    let mut done = 0;
    while let Some(position) = order.get(done).copied() {
        done += 1;
        for follower in &followers[position] {
            waits[*follower] -= 1;
            if waits[*follower] == 0 {
                order.push(*follower);
            }
        }
    }
    match waits.iter().position(|waits| *waits > 0) {
        None => Ok(order),
        Some(start) => Err(TaskSetError::Circle { names: circle(tasks, &before, &waits, start) }),
    }
}

/// One circle among tasks each of which still waits for another that waits: from `start` along
/// the waits until a task comes again.
fn circle(tasks: &[Task], before: &[Vec<usize>], waits: &[usize], start: usize) -> Vec<String> {
    let mut seen_at = vec![None; tasks.len()];
    let mut path = Vec::new();
    let mut position = start;
    while seen_at[position].is_none() {
        seen_at[position] = Some(path.len());
        path.push(position);
        let next = before[position].iter().find(|predecessor| waits[**predecessor] > 0);
        position = next.copied().unwrap_or(start);
    }
    path.push(position);
    let names = path[seen_at[position].unwrap_or(0)..].iter();
    names.map(|position| tasks[*position].name.escape_debug().to_string()).collect()
}

/// A task that is released by others comes as often as they do.
fn periods_of_chains(tasks: &[Task]) -> CheckResult {
    for (task, before) in tasks.iter().zip(predecessors(tasks)?) {
        for other in before.into_iter().map(|position| &tasks[position]) {
            if other.period != task.period {
                let reason = format!(
                    "'{}', which it is after, has {}; leave the period out or make them equal",
                    other.name.escape_debug(),
                    other.period
                );
                let place = Location::named("task", &task.name);
                return Err(place.bad("period", task.period, &reason));
            }
        }
    }
    Ok(())
}

fn priorities(set: &TaskSet) -> CheckResult {
    let are_given = set.assignment() == Assignment::Given;
    for task in &set.tasks {
        let place = || Location::named("task", &task.name);
        if let (Some(priority), Some(policy)) = (task.priority, task.policy) {
            let message = format!(
                "priority {priority} and policy {policy} both say how it is scheduled; keep one \
                 of them"
            );
            return Err(place().contradiction(message));
        }
        match (set.assignment, task.priority()) {
            (Some(Assignment::Given) | None, _) | (_, None) => {}
            (Some(_), Some(priority)) => {
                let message = format!(
                    "priority {priority} contradicts the file's priorities, which are assigned; \
                     drop one of them"
                );
                return Err(place().contradiction(message));
            }
        }
        let is_needed = are_given && task.has_fixed_priority();
        if is_needed && task.priority().is_none() {
            let remedy = "other tasks have one; give it to all, or to none to have them assigned";
            return Err(place().missing("priority", remedy));
        }
    }
    Ok(())
}

fn critical_sections(set: &TaskSet) -> CheckResult {
    let resources: BTreeSet<&str> = set.resources.iter().map(|r| r.name.as_str()).collect();
    for task in &set.tasks {
        let place = Location::named("task", &task.name);
        for section in &task.critical_sections {
            let key = "critical_sections";
            known_name(&place, key, "resource", &section.resource, &resources)?;
            above_zero(&place, "length", section.length, "or leave the section out")?;
            if section.count == 0 {
                let reason = "it must be at least 1; or leave the section out";
                return Err(place.bad("count", section.count, reason));
            }
            if section.length > task.wcet {
                let reason = format!(
                    "longer than the wcet of {}, which contains the critical sections",
                    task.wcet
                );
                return Err(place.bad("length", section.length, &reason));
            }
        }
    }
    for resource in &set.resources {
        if resource.ceiling.is_some() && resource.protocol != Protocol::Ceiling {
            let message = "ceiling belongs to the protocol 'ceiling'; drop one of them";
            return Err(Location::named("resource", &resource.name).contradiction(message));
        }
    }
    ceilings(set)
}

/// A ceiling below a user's priority would be none.
fn ceilings(set: &TaskSet) -> CheckResult {
    for resource in &set.resources {
        let Some(ceiling) = resource.ceiling else { continue };
        for (task, priority) in set.tasks.iter().zip(set.priorities()) {
            let uses = task.critical_sections.iter().any(|s| s.resource == resource.name);
            if let (true, Some(priority)) = (uses, priority)
                && priority > ceiling
            {
                let place = Location::named("resource", &resource.name);
                let reason = format!(
                    "below the priority {priority} of task '{}', which uses it; leave it out for \
                     the highest of its users",
                    task.name.escape_debug()
                );
                return Err(place.bad("ceiling", ceiling, &reason));
            }
        }
    }
    Ok(())
}

/// A preemption threshold is not below the priority, and both are numbers of the same scale.
fn thresholds(set: &TaskSet) -> CheckResult {
    for task in &set.tasks {
        let Preemption::Threshold(threshold) = task.preemption else { continue };
        let place = Location::named("task", &task.name);
        let key = "preemption_threshold";
        let Some(priority) = task.priority() else {
            let reason = "it is compared with priorities, which must be given, not assigned";
            return Err(place.bad(key, threshold, reason));
        };
        if threshold < priority {
            let reason = format!("below the task's own priority {priority}");
            return Err(place.bad(key, threshold, &reason));
        }
    }
    Ok(())
}
