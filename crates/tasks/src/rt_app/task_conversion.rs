//! From threads to tasks.
//!
//! Owns: which thread becomes a task, which runs in the background, and what is noted about it.
//! Must not: read the file.

use std::collections::{BTreeMap, BTreeSet};

use hourglass_documents::Policy;
use hourglass_time::Span;

use super::jobs::JobTotals;
use super::read::File;
use super::threads::instances;
use super::{Import, ImportNote, Thread};
use crate::error::Location;
use crate::{
    Activation, Background, CriticalSection, JobTrigger, Program, ProgramStep, Protocol, Resource,
    Server, ServerKind, Task, TaskSet,
};

/// One thread that runs: an instance of a thread object.
pub(super) struct Instance<'a> {
    pub(super) name: String,
    pub(super) thread: &'a Thread,
    /// The program of the thread object, after what it waits for at its start.
    pub(super) program: Program,
    pub(super) jobs: JobTotals,
}

pub(super) fn task_set(file: &File, notes: &mut Vec<ImportNote>) -> Import<TaskSet> {
    let instances = instances(file, notes)?;
    let wakers = wakers(&instances);
    let mut set = TaskSet::default();
    let periods = periods(&instances, &wakers);
    for instance in &instances {
        about(instance, notes);
        match periods.get(instance.name.as_str()) {
            Some(period) if instance.jobs.execution.is_positive() => {
                add_task(&mut set, instance, *period, wakers.get(instance.name.as_str()));
            }
            known => add_background(&mut set, instance, known.is_some(), notes),
        }
    }
    if set.tasks.is_empty() && set.background.is_empty() {
        let message = "no thread runs; give one an instance, or fork it";
        return Err(Location::part("tasks").contradiction(message));
    }
    // A thread in the background may wake a task's waker; only tasks are waited for.
    let names: BTreeSet<String> = set.tasks.iter().map(|task| task.name.clone()).collect();
    for task in &mut set.tasks {
        task.after.retain(|name| names.contains(name));
    }
    set.resources = resources(&set, file.inherits);
    Ok(set)
}

/// For each thread that others wake, the one that does it, if it is one and does it once a job.
fn wakers<'a>(instances: &'a [Instance<'a>]) -> BTreeMap<&'a str, String> {
    let mut signals: Waking<'_> = BTreeMap::new();
    let mut resumes: Waking<'_> = BTreeMap::new();
    for (position, instance) in instances.iter().enumerate() {
        note_waking(&mut signals, &instance.jobs.signals, position);
        note_waking(&mut resumes, &instance.jobs.resumes, position);
    }
    let mut wakers = BTreeMap::new();
    for (position, instance) in instances.iter().enumerate() {
        let JobTotals { wake_up, conditions, suspends, .. } = &instance.jobs;
        if *wake_up != JobTrigger::Event {
            continue;
        }
        let by_signal = conditions.iter().filter_map(|name| signals.get(name.as_str()));
        let by_resume = suspends.iter().filter_map(|name| resumes.get(name.as_str()));
        let all = by_signal.chain(by_resume).flatten();
        let others: Vec<&(usize, u32)> = all.filter(|(other, _)| *other != position).collect();
        if let [(waker, 1)] = others[..] {
            wakers.insert(instance.name.as_str(), instances[*waker].name.clone());
        }
    }
    wakers
}

/// For each name the threads that wake those that wait under it, and how often a job does.
type Waking<'a> = BTreeMap<&'a str, Vec<(usize, u32)>>;

/// Who is woken by more than one other is woken by too many; two and itself tell.
const ENOUGH: usize = 3;

fn note_waking<'a>(waking: &mut Waking<'a>, names: &'a BTreeMap<String, u32>, position: usize) {
    for (name, count) in names {
        let wakers = waking.entry(name).or_default();
        if wakers.len() < ENOUGH {
            wakers.push((position, *count));
        }
    }
}

/// The period of each thread that has one: its own, or that of the thread that wakes it, and so
/// on along the chain.
fn periods<'a>(
    instances: &'a [Instance<'a>],
    wakers: &BTreeMap<&'a str, String>,
) -> BTreeMap<&'a str, Span> {
    let known = |instance: &'a Instance<'a>| {
        instance.jobs.separation.map(|period| (instance.name.as_str(), period))
    };
    let mut periods: BTreeMap<&str, Span> = instances.iter().filter_map(known).collect();
    // Threads that wake each other have none; they are not gone through twice.
    let mut tried: BTreeSet<&str> = BTreeSet::new();
    for instance in instances {
        let mut chain: Vec<&str> = Vec::new();
        let mut name = instance.name.as_str();
        while !periods.contains_key(name) && tried.insert(name) {
            let Some((woken, waker)) = wakers.get_key_value(name) else { break };
            chain.push(woken);
            name = waker;
        }
        if let Some(period) = periods.get(name).copied() {
            periods.extend(chain.into_iter().map(|name| (name, period)));
        }
    }
    periods
}

/// Notes about properties of the thread that the task does not represent.
fn about(instance: &Instance<'_>, notes: &mut Vec<ImportNote>) {
    let mut note = |text: String| notes.push(ImportNote { thread: instance.name.clone(), text });
    for doubt in &instance.jobs.doubts {
        note((*doubt).to_owned());
    }
    if let Some(loops) = instance.program.loops {
        note(format!("ends after {loops} loops; taken as going on for ever"));
    }
    let steps = instance.program.phases.iter().flat_map(|phase| &phase.steps);
    let mut timers = steps.filter_map(|step| match step {
        ProgramStep::Timer { name, .. } => Some(name),
        _ => None,
    });
    let first = timers.next();
    if timers.any(|name| Some(name) != first) {
        note("uses several timers; the shortest period is taken for all".to_owned());
    }
    let phases = &instance.program.phases;
    if phases.iter().any(|phase| phase.policy.is_some_and(|p| p != instance.thread.policy)) {
        note("changes its policy in a phase; the task has that of the thread".to_owned());
    }
    if phases.iter().any(|phase| phase.cpus.is_some()) {
        note("changes its CPUs in a phase; the task has those of the thread".to_owned());
    }
}

fn add_task(set: &mut TaskSet, instance: &Instance<'_>, period: Span, waker: Option<&String>) {
    let Instance { name, thread, program, jobs } = instance;
    let by_timer = jobs.wake_up == JobTrigger::Timer;
    let is_forked = program.forked().is_some();
    let section = |(mutex, (length, count)): (&String, &(Span, u32))| CriticalSection {
        resource: mutex.clone(),
        length: *length,
        count: *count,
    };
    let task = Task {
        activation: if by_timer { Activation::Periodic } else { Activation::Sporadic },
        suspension: jobs.suspension,
        offset: Some(thread.delay).filter(|delay| by_timer && delay.is_positive() && !is_forked),
        policy: Some(thread.policy),
        cpus: thread.cpus.clone(),
        after: waker.into_iter().cloned().collect(),
        critical_sections: jobs.sections.iter().map(section).collect(),
        program: Some(program.clone()),
        ..Task::new(name, jobs.execution, period)
    };
    if let Some((budget, period, deadline)) = thread.reservation {
        set.servers.push(Server {
            deadline: Some(deadline),
            cpus: thread.cpus.clone(),
            tasks: vec![name.clone()],
            ..Server::new(name, ServerKind::CbsHard, budget, period)
        });
    }
    set.tasks.push(task);
}

fn add_background(
    set: &mut TaskSet,
    instance: &Instance<'_>,
    has_period: bool,
    notes: &mut Vec<ImportNote>,
) {
    let why = match (has_period, instance.jobs.wake_up) {
        (true, _) => "executes for no time that the file says",
        (_, JobTrigger::Start) => "never waits, so nothing bounds how often it runs",
        _ => "is not woken by one thread alone that has a period and does it once a job",
    };
    let text = format!("{why}; it is not a task and runs in the background");
    notes.push(ImportNote { thread: instance.name.clone(), text });
    if instance.thread.policy == Policy::Deadline {
        let text = "its reservation is omitted, because no task runs in it".to_owned();
        notes.push(ImportNote { thread: instance.name.clone(), text });
    }
    set.background.push(Background {
        name: instance.name.clone(),
        policy: Some(instance.thread.policy),
        cpus: instance.thread.cpus.clone(),
        program: instance.program.clone(),
    });
}

fn resources(set: &TaskSet, inherits: bool) -> Vec<Resource> {
    let sections = set.tasks.iter().flat_map(|task| &task.critical_sections);
    let names: BTreeSet<&String> = sections.map(|section| &section.resource).collect();
    let protocol = if inherits { Protocol::Inheritance } else { Protocol::Plain };
    let resource = |name: &String| Resource { name: name.clone(), protocol, ceiling: None };
    names.into_iter().map(resource).collect()
}
