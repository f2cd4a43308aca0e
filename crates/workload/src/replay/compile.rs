//! From tasks to scripts: names become places, tasks without steps get some.
//!
//! Owns: what a job of a task does that says no more than its numbers. Must not: execute.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hourglass_documents::ExecutionTime;
use hourglass_tasks::{Preemption, Program, ProgramStep, Protocol, Task, TaskSet};
use hourglass_time::Span;

use super::arrivals::JobArrivals;
use super::execution::ScriptModel;
use super::lock::Lock;
use super::script::{AmountPart, JobSpec, Phases, ReplayPhase, ReplayStep, RingSize, Script};
use super::shared::{Barrier, Event, JobCounter, ReplayShared, Semaphore, Timer};
use super::{ReplayError, ReplayOptions, Replayed, Threads};
use crate::models::{self, Model};

/// A thread before its script is put to work.
struct ThreadDraft<'a> {
    name: &'a str,
    task: Option<usize>,
    script: Script,
}

/// The threads that replay a set, as far as their workloads go.
///
/// # Errors
/// A step cannot be replayed.
pub fn threads(set: &TaskSet, manner: ReplayOptions) -> Result<Threads, ReplayError> {
    let mut names = Names::of(set);
    let mut notes = Vec::new();
    let mut drafts = Vec::new();
    for (position, task) in set.tasks.iter().enumerate() {
        let script = match &task.program {
            Some(program) => Script::Phases(names.phases(&task.name, program)?),
            None => Script::Jobs(names.jobs(set, position, manner, &mut notes)),
        };
        drafts.push(ThreadDraft { name: &task.name, task: Some(position), script });
    }
    for thread in &set.background {
        let script = Script::Phases(names.phases(&thread.name, &thread.program)?);
        drafts.push(ThreadDraft { name: &thread.name, task: None, script });
    }
    names.check_forks()?;
    let shared = Arc::new(names.shared(set));
    let mut models = Vec::new();
    for draft in drafts {
        let task = draft.task.map(|position| &set.tasks[position]);
        let simple = task.filter(|task| is_simple(set, task, manner)).and_then(as_periodic);
        let model = match simple {
            Some(model) => model,
            None => {
                Arc::new(ScriptModel::new(draft.name, draft.task, task, draft.script, &shared)?)
            }
        };
        models.push(Replayed { name: draft.name.to_owned(), model });
    }
    let background = models.split_off(set.tasks.len());
    Ok(Threads { tasks: models, background, notes })
}

/// The script of one task at work, for the simulated machine.
#[cfg(test)]
pub(super) fn running(set: &TaskSet, position: usize) -> super::execution::ReplayExecution {
    let mut names = Names::of(set);
    let task = &set.tasks[position];
    let script = match &task.program {
        Some(program) => Script::Phases(names.phases(&task.name, program).unwrap()),
        None => Script::Jobs(names.jobs(set, position, ReplayOptions::default(), &mut Vec::new())),
    };
    let shared = Arc::new(names.shared(set));
    ScriptModel::new(&task.name, Some(position), Some(task), script, &shared).unwrap().running(0)
}

/// Whether a task is no more than an execution time in a period.
fn is_simple(set: &TaskSet, task: &Task, manner: ReplayOptions) -> bool {
    let waits_for_others = !task.after.is_empty() || is_waited_for(set, &task.name);
    let jitters = manner.draws_jitter && task.jitter.is_positive();
    task.program.is_none()
        && task.deadline() == task.period
        && task.suspension.is_zero()
        && task.critical_sections.is_empty()
        && task.arrivals.is_empty()
        && !matches!(task.preemption, Preemption::None | Preemption::Threshold(_))
        && !waits_for_others
        && !jitters
}

/// The paper's model of it; `None` where it does not take the numbers.
fn as_periodic(task: &Task) -> Option<Arc<dyn Model>> {
    let ExecutionTime::Fixed(amount) = execution(task) else { return None };
    let words = [amount.to_string(), task.period.to_string()];
    models::parse(&["PERIODIC", &words[0], &words[1]]).ok()
}

fn is_waited_for(set: &TaskSet, name: &str) -> bool {
    set.tasks.iter().any(|task| task.after.iter().any(|before| before == name))
}

fn execution(task: &Task) -> ExecutionTime {
    task.execution_time.clone().unwrap_or(ExecutionTime::Fixed(task.wcet))
}

#[derive(Default)]
struct Names {
    locks: BTreeMap<String, usize>,
    conditions: BTreeMap<String, usize>,
    suspends: BTreeMap<String, usize>,
    semaphores: BTreeMap<String, usize>,
    events: usize,
    barriers: BTreeMap<String, (usize, u32)>,
    timers: BTreeMap<(String, String), usize>,
    forks: BTreeMap<String, usize>,
    forking: Vec<(String, String)>,
    /// Names of which some thread waits for a start.
    forked: BTreeSet<String>,
}

struct SharedNames {
    is_forked: bool,
    barriers: Vec<usize>,
    rings: Vec<RingSize>,
}

fn place<K: Ord>(places: &mut BTreeMap<K, usize>, name: K) -> usize {
    let next = places.len();
    *places.entry(name).or_insert(next)
}

impl Names {
    fn of(set: &TaskSet) -> Names {
        let mut names = Names::default();
        for resource in &set.resources {
            place(&mut names.locks, resource.name.clone());
        }
        names
    }

    fn event(&mut self, suspends: bool, name: &str) -> usize {
        let places = if suspends { &mut self.suspends } else { &mut self.conditions };
        *places.entry(name.to_owned()).or_insert_with(|| {
            self.events += 1;
            self.events - 1
        })
    }

    fn lock(&mut self, name: &str) -> usize {
        place(&mut self.locks, name.to_owned())
    }

    /// Each thread with a barrier is one of its parties, however often its steps come to it; but a
    /// thread that is forked, as rt-app has it.
    fn barrier(&mut self, name: &str, met: &mut SharedNames) -> usize {
        let next = self.barriers.len();
        let (place, parties) = self.barriers.entry(name.to_owned()).or_insert((next, 0));
        if !met.barriers.contains(place) {
            met.barriers.push(*place);
            *parties += u32::from(!met.is_forked);
        }
        *place
    }

    /// Timers are shared by name, but for those that rt-app calls unique.
    fn timer(&mut self, thread: &str, name: &str) -> usize {
        let owner = if name.starts_with("unique") { thread } else { "" };
        place(&mut self.timers, (owner.to_owned(), name.to_owned()))
    }

    fn phases(&mut self, thread: &str, program: &Program) -> Result<Phases, ReplayError> {
        let is_forked = program.forked().is_some();
        let mut met = SharedNames { is_forked, barriers: Vec::new(), rings: Vec::new() };
        let mut phases = Vec::new();
        for phase in &program.phases {
            let acts = phase.steps.iter().map(|step| self.act(thread, step, &mut met));
            phases.push(ReplayPhase {
                loops: phase.loops,
                policy: phase.policy,
                cpus: phase.cpus.clone(),
                acts: acts.collect::<Result<_, _>>()?,
            });
        }
        let beginning = program.beginning();
        Ok(Phases { loops: program.loops, phases, beginning, rings: met.rings })
    }

    fn act(
        &mut self,
        thread: &str,
        step: &ProgramStep,
        met: &mut SharedNames,
    ) -> Result<ReplayStep, ReplayError> {
        Ok(match step {
            ProgramStep::Run(time) => ReplayStep::Run(*time),
            ProgramStep::RunFor(time) => ReplayStep::RunFor(*time),
            ProgramStep::Sleep(time) => ReplayStep::Sleep(*time),
            ProgramStep::Timer { name, period, absolute } => ReplayStep::Timer {
                timer: self.timer(thread, name),
                period_ns: period.nanos_or_zero(),
                absolute: *absolute,
            },
            ProgramStep::Lock(name) => ReplayStep::Lock(self.lock(name)),
            ProgramStep::Unlock(name) => ReplayStep::Unlock(self.lock(name)),
            ProgramStep::Wait { condition, mutex } => {
                ReplayStep::Wait { event: self.event(false, condition), lock: self.lock(mutex) }
            }
            ProgramStep::Signal(name) => ReplayStep::Signal(self.event(false, name)),
            ProgramStep::Broadcast(name) => ReplayStep::Broadcast(self.event(false, name)),
            ProgramStep::Barrier(name) => ReplayStep::Barrier(self.barrier(name, met)),
            ProgramStep::Suspend(name) => ReplayStep::Suspend(self.event(true, name)),
            ProgramStep::Resume(name) => ReplayStep::Broadcast(self.event(true, name)),
            ProgramStep::Post(name) => ReplayStep::Post(place(&mut self.semaphores, name.clone())),
            ProgramStep::Take(name) => ReplayStep::Take(place(&mut self.semaphores, name.clone())),
            ProgramStep::Yield => ReplayStep::Yield,
            ProgramStep::Memory(bytes) => ReplayStep::Memory(*bytes),
            ProgramStep::Io(bytes) => ReplayStep::Io(*bytes),
            ProgramStep::Read { bytes, buffer } => {
                ReplayStep::Read { bytes: *bytes, buffer: *buffer }
            }
            ProgramStep::Write { bytes, buffer } => {
                ReplayStep::Write { bytes: *bytes, buffer: *buffer }
            }
            ProgramStep::Chase { hops, buffer, stride, sequential } => {
                let wanted = RingSize { buffer: *buffer, stride: *stride, sequential: *sequential };
                let known = met.rings.iter().position(|ring| *ring == wanted);
                let ring = known.unwrap_or_else(|| {
                    met.rings.push(wanted);
                    met.rings.len() - 1
                });
                ReplayStep::Chase { hops: *hops, ring }
            }
            ProgramStep::Fork(name) => {
                self.forking.push((thread.to_owned(), name.clone()));
                ReplayStep::Fork(place(&mut self.forks, name.clone()))
            }
            ProgramStep::Forked { name, number } => {
                self.forked.insert(name.clone());
                ReplayStep::Forked { start: place(&mut self.forks, name.clone()), number: *number }
            }
            ProgramStep::StartAfter(time) => ReplayStep::StartAfter(*time),
            other => {
                let (thread, step) = (thread.to_owned(), other.to_string());
                return Err(ReplayError::Step { thread, step });
            }
        })
    }

    fn check_forks(&self) -> Result<(), ReplayError> {
        let lost = self.forking.iter().find(|(_, started)| !self.forked.contains(started));
        match lost.cloned() {
            Some((thread, started)) => Err(ReplayError::Fork { thread, started }),
            None => Ok(()),
        }
    }

    fn jobs(
        &mut self,
        set: &TaskSet,
        position: usize,
        manner: ReplayOptions,
        notes: &mut Vec<String>,
    ) -> JobSpec {
        let task = &set.tasks[position];
        let mut note = |text: String| notes.push(format!("{}: {text}", task.name.escape_debug()));
        let top = || set.priorities().into_iter().flatten().max();
        let raised = match task.preemption {
            Preemption::None => top(),
            Preemption::Threshold(priority) => Some(priority),
            Preemption::Limited { .. } | Preemption::Floating { .. } => {
                note("its non-preemptive sections are preemptive in the run".to_owned());
                None
            }
            Preemption::Full => None,
        };
        let find = |name: &String| set.tasks.iter().position(|other| other.name == *name);
        let first = first_of_chain(set, task);
        let (acts, in_sections) = self.acts(task);
        JobSpec {
            arrivals: JobArrivals::of(first),
            jitter: if manner.draws_jitter { task.jitter } else { Span::ZERO },
            after: task.after.iter().filter_map(find).collect(),
            raised: raised.and_then(real_time),
            execution: execution(task),
            in_sections,
            acts,
        }
    }

    /// A job of a task without steps: half of its free execution time, its critical sections, its
    /// suspension, the other half.
    fn acts(&mut self, task: &Task) -> (Vec<ReplayStep>, Span) {
        let mut acts = Vec::new();
        let mut in_sections = Span::ZERO;
        for section in &task.critical_sections {
            let all = section.length.checked_mul(i64::from(section.count)).unwrap_or(Span::MAX);
            in_sections = in_sections.saturating_add(all);
            let lock = self.lock(&section.resource);
            acts.push(ReplayStep::Section { lock, length: section.length, count: section.count });
        }
        if task.suspension.is_positive() {
            acts.push(ReplayStep::Sleep(task.suspension));
        }
        if acts.is_empty() {
            return (vec![ReplayStep::Rest(AmountPart::Whole)], in_sections);
        }
        acts.insert(0, ReplayStep::Rest(AmountPart::FirstHalf));
        acts.push(ReplayStep::Rest(AmountPart::SecondHalf));
        (acts, in_sections)
    }

    fn shared(self, set: &TaskSet) -> ReplayShared {
        let mut locks: Vec<(usize, Lock)> =
            self.locks.iter().map(|(name, place)| (*place, lock_named(set, name))).collect();
        locks.sort_by_key(|(place, _)| *place);
        let mut parties: Vec<(usize, u32)> = self.barriers.into_values().collect();
        parties.sort_unstable();
        let barrier = |(_, parties)| Barrier { parties, ..Barrier::default() };
        let done = |task: &Task| JobCounter {
            is_waited_for: is_waited_for(set, &task.name),
            ..JobCounter::default()
        };
        ReplayShared {
            locks: locks.into_iter().map(|(_, lock)| lock).collect(),
            events: (0..self.events).map(|_| Event::default()).collect(),
            barriers: parties.into_iter().map(barrier).collect(),
            timers: (0..self.timers.len()).map(|_| Timer::default()).collect(),
            semaphores: (0..self.semaphores.len()).map(|_| Semaphore::default()).collect(),
            forks: (0..self.forks.len()).map(|_| JobCounter::of_forks()).collect(),
            done: set.tasks.iter().map(done).collect(),
        }
    }
}

/// The lock of a resource; one that no task executes under has the protocol of the others, if
/// they all have the same.
fn lock_named(set: &TaskSet, name: &str) -> Lock {
    let top = || set.priorities().into_iter().flatten().max();
    match set.resources.iter().find(|resource| resource.name == name) {
        Some(resource) => {
            let ceiling = match resource.protocol {
                Protocol::Ceiling => set.ceiling(resource),
                Protocol::Spin => top(),
                Protocol::Inheritance | Protocol::Plain => None,
            };
            Lock::new(resource.protocol, ceiling.and_then(real_time))
        }
        None => {
            let protocol = |of: Protocol| set.resources.iter().all(|other| other.protocol == of);
            let inherits = !set.resources.is_empty() && protocol(Protocol::Inheritance);
            Lock::new(if inherits { Protocol::Inheritance } else { Protocol::Plain }, None)
        }
    }
}

fn real_time(priority: u32) -> Option<u8> {
    u8::try_from(priority).ok().filter(|priority| (1..=99).contains(priority))
}

/// Where a task's jobs come from: going back along the first task of each `after`, at most once
/// through the set.
fn first_of_chain<'a>(set: &'a TaskSet, task: &'a Task) -> &'a Task {
    let mut first = task;
    for _ in 0..set.tasks.len() {
        match first.after.first().and_then(|name| set.task(name)) {
            Some(before) => first = before,
            None => break,
        }
    }
    first
}
