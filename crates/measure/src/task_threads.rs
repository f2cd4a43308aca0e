//! The run of a set: which thread each task becomes, where and how it is scheduled.
//!
//! Owns: policies, CPUs and wake-up methods of the threads. Must not: run them.

use std::path::PathBuf;
use std::sync::Arc;

use hourglass_documents::{CpuSet, Policy, Reservation, ReservationKind};
use hourglass_tasks::{Scheduler, ServerKind, Task, TaskSet};
use hourglass_time::Span;
use hourglass_workload::replay::{self, ReplayError, ReplayOptions};
use hourglass_workload::spec::{DEFAULT_RECORDS, MOST_THREADS};
use hourglass_workload::wake::{self, WakeUpMethod};
use hourglass_workload::{RunSpec, ThreadSpec, WordError};
use thiserror::Error;

use crate::experiment;
use crate::workload_file::online_cpus;

/// What wakes a task that says nothing about it.
const TIMER: &str = "HR";

/// Records for each thread, where that is more than what a run has anyway.
const RECORDS_PER_THREAD: u64 = 30_000;

/// Jobs of a task that are kept one by one, at most: 32 MiB of memory.
const MOST_JOBS: u64 = 1 << 20;

/// Jobs for which there is room beyond those that the duration makes likely.
const SPARE_JOBS: u64 = 64;

#[derive(Clone, Debug)]
pub struct RunRequest {
    /// For how long, above zero.
    pub duration: Span,
    /// Where tasks run if the set names no CPU at all; as the set has it, on CPU 0.
    pub cpus: Option<CpuSet>,
    /// Delay releases by a random part of each task's release jitter.
    pub draws_jitter: bool,
    /// Go on, degraded, where the machine refuses something.
    pub best_effort: bool,
    /// Measure what others take from the CPUs if the run leaves a difference open: a second or more
    /// for each CPU.
    pub watches_others: bool,
    /// Keep the run in this folder, which must not exist.
    pub folder: Option<PathBuf>,
    pub command_line: Vec<String>,
}

impl RunRequest {
    pub fn with_duration(duration: Span) -> RunRequest {
        RunRequest {
            duration,
            cpus: None,
            draws_jitter: false,
            best_effort: false,
            watches_others: true,
            folder: None,
            command_line: Vec::new(),
        }
    }
}

/// A set that cannot be run as it is. One line with the culprit and the remedy.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum PlanError {
    #[error("{0}; or --no-run")]
    Replay(#[from] ReplayError),
    #[error("task '{task}': timer: {source}")]
    Timer { task: String, source: WordError },
    #[error(
        "task '{task}': the kernel's FIFO class has priorities from 1 to 99, not {priority}; \
         change it, or --no-run"
    )]
    Priority { task: String, priority: u32 },
    /// No priority, because the analysis is to find it.
    #[error(
        "task '{0}': a run needs its priority; set priorities = \"deadline-monotonic\" or give one \
         to each task, or --no-run"
    )]
    NoPriority(String),
    #[error(
        "{thread}: CPU {missing} does not exist or is offline (online: {online}); change its \
         cpus, or --no-run"
    )]
    NoSuchCpu { thread: String, missing: CpuSet, online: CpuSet },
    /// A scheduler that Linux does not have for ordinary threads.
    #[error(
        "scheduler = \"edf\": Linux has it only with budgets, which a set of tasks does not give; \
         use --no-run"
    )]
    Edf,
    #[error(
        "server '{0}': only servers of the kinds cbs-hard, cbs-soft and cbs-reclaim with one task, and a deadline \
         equal to the period, can be run as threads; use --no-run"
    )]
    Server(String),
    #[error(
        "task '{task}': its first job arrives {offset} after the start, which a run of {duration} \
         does not see; give --duration more than that"
    )]
    Late { task: String, offset: Span, duration: Span },
    #[error("{0} threads are more than a run has ({MOST_THREADS}); use --no-run")]
    TooMany(usize),
}

/// A run of a set. Its first threads are the tasks, in their order.
#[derive(Clone, Debug)]
pub struct TaskRunPlan {
    pub spec: RunSpec,
    /// What threads do not do as the set says, one sentence each.
    pub notes: Vec<String>,
    /// Whether what others take is measured if the run leaves a difference open.
    pub watches_others: bool,
}

impl TaskRunPlan {
    pub fn request(&self, wish: &RunRequest) -> experiment::RunOptions {
        experiment::RunOptions {
            command_line: wish.command_line.clone(),
            folder: wish.folder.clone(),
            ..experiment::RunOptions::new(self.spec.clone())
        }
    }

    pub fn timer(&self, task: usize) -> Option<&dyn WakeUpMethod> {
        self.spec.threads.get(task).map(|thread| &*thread.wake)
    }
}

/// The threads that a run of a set has, and what they do not do as it says, one sentence each. Their jobs are not kept
/// one by one.
///
/// # Errors
/// The set cannot be run as it is.
pub fn threads(
    set: &TaskSet,
    wish: &RunRequest,
) -> Result<(Vec<ThreadSpec>, Vec<String>), PlanError> {
    let plan = plan(set, wish, 0)?;
    let threads = plan.spec.threads.into_iter();
    Ok((threads.map(|thread| ThreadSpec { jobs: 0, ..thread }).collect(), plan.notes))
}

pub fn plan(set: &TaskSet, wish: &RunRequest, seed: u64) -> Result<TaskRunPlan, PlanError> {
    let count = set.tasks.len() + set.background.len();
    if count > MOST_THREADS {
        return Err(PlanError::TooMany(count));
    }
    let replayed = replay::threads(set, ReplayOptions { draws_jitter: wish.draws_jitter })?;
    let mut notes = replayed.notes;
    let standard = standard_cpus(set, wish);
    let mut threads = Vec::with_capacity(count);
    for ((task, priority), thread) in set.tasks.iter().zip(set.priorities()).zip(replayed.tasks) {
        let (policy, reservation) = scheduling(set, task, priority)?;
        let offset = task.offset.unwrap_or(Span::ZERO);
        if offset >= wish.duration {
            let (task, duration) = (task.name.clone(), wish.duration);
            return Err(PlanError::Late { task, offset, duration });
        }
        // The kernel admits threads to the deadline class only where they may run everywhere: elsewhere a
        // reservation is kept in user space.
        let cpus = task.cpus.clone().or_else(|| reservation.is_none().then(|| standard.clone()));
        check_cpus(&format!("task '{}'", task.name.escape_debug()), cpus.as_ref())?;
        threads.push(ThreadSpec {
            model: thread.model,
            wake: method(task)?,
            policy,
            policy_is_named: false,
            reservation,
            cpus,
            start: offset,
            jobs: room(task, wish.duration),
            ..ThreadSpec::default()
        });
    }
    for (thread, replayed) in set.background.iter().zip(replayed.background) {
        let cpus = thread.cpus.clone().unwrap_or_else(|| standard.clone());
        check_cpus(&format!("thread '{}'", thread.name.escape_debug()), Some(&cpus))?;
        let policy = match thread.policy {
            Some(Policy::Deadline) => {
                notes.push(format!("{}: runs without its reservation", thread.name));
                Policy::Other(0)
            }
            policy => policy.unwrap_or(Policy::Other(0)),
        };
        threads.push(ThreadSpec {
            model: replayed.model,
            policy,
            policy_is_named: policy == Policy::Other(0),
            cpus: Some(cpus),
            ..ThreadSpec::default()
        });
    }
    let records = DEFAULT_RECORDS.max(RECORDS_PER_THREAD * count as u64);
    let spec = RunSpec {
        duration: wish.duration,
        records,
        seed,
        best_effort: wish.best_effort,
        ..RunSpec::new(threads)
    };
    Ok(TaskRunPlan { spec, notes, watches_others: wish.watches_others })
}

/// Where threads run that say nothing about it: all CPUs of the set's machine. If the set names no
/// CPU at all, the one that was asked for takes the place of CPU 0.
fn standard_cpus(set: &TaskSet, wish: &RunRequest) -> CpuSet {
    let named = set.machine.cpus.is_some()
        || !set.machine.cores.is_empty()
        || set.tasks.iter().any(|task| task.cpus.is_some())
        || set.servers.iter().any(|server| server.cpus.is_some())
        || set.background.iter().any(|thread| thread.cpus.is_some());
    match &wish.cpus {
        Some(cpus) if !named => cpus.clone(),
        _ => set.cpus(),
    }
}

fn check_cpus(thread: &str, cpus: Option<&CpuSet>) -> Result<(), PlanError> {
    // What the machine does not tell is left to the kernel to refuse.
    let (Some(cpus), Some(online)) = (cpus, online_cpus()) else { return Ok(()) };
    let missing = cpus.difference(&online);
    if missing.is_empty() {
        return Ok(());
    }
    Err(PlanError::NoSuchCpu { thread: thread.to_owned(), missing, online })
}

fn method(task: &Task) -> Result<Arc<dyn WakeUpMethod>, PlanError> {
    wake::parse(task.timer.as_deref().unwrap_or(TIMER))
        .map_err(|source| PlanError::Timer { task: task.name.clone(), source })
}

fn scheduling(
    set: &TaskSet,
    task: &Task,
    priority: Option<u32>,
) -> Result<(Policy, Option<Reservation>), PlanError> {
    if let Some(server) = set.server_of(&task.name) {
        let strength = match server.kind {
            ServerKind::CbsHard => ReservationKind::Hard,
            ServerKind::CbsSoft | ServerKind::CbsReclaim => ReservationKind::Soft,
            _ => return Err(PlanError::Server(server.name.clone())),
        };
        let other_deadline = server.deadline.is_some_and(|deadline| deadline != server.period);
        let reservation = Reservation::new(server.budget, server.period, strength);
        return match reservation {
            Ok(reservation) if server.tasks.len() == 1 && !other_deadline => {
                Ok((Policy::Deadline, Some(reservation)))
            }
            _ => Err(PlanError::Server(server.name.clone())),
        };
    }
    if let Some(policy) = task.policy {
        return Ok((policy, None));
    }
    let real_time = || {
        let priority = priority.ok_or_else(|| PlanError::NoPriority(task.name.clone()))?;
        let number = u8::try_from(priority).ok().filter(|number| (1..=99).contains(number));
        number.ok_or_else(|| PlanError::Priority { task: task.name.clone(), priority })
    };
    let policy = match set.scheduler {
        Scheduler::FixedPriority => Policy::Fifo(real_time()?),
        Scheduler::RoundRobin => Policy::RoundRobin(real_time()?),
        // All at one priority: the kernel serves them first come, first served.
        Scheduler::Fifo => Policy::Fifo(1),
        Scheduler::Fair => Policy::Other(0),
        Scheduler::Edf => return Err(PlanError::Edf),
    };
    Ok((policy, None))
}

/// Room for as many jobs as a run of `duration` is likely to have.
fn room(task: &Task, duration: Span) -> usize {
    let periods = duration.nanos_or_zero() / task.period.nanos_or_zero().max(1);
    let jobs = periods.saturating_add(task.arrivals.len() as u64).saturating_add(SPARE_JOBS);
    usize::try_from(jobs.min(MOST_JOBS)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bug: CPUs of a task with a reservation were left out without a word, so that its means changed by chance.
    #[test]
    fn a_reservation_is_kept_where_the_file_says() {
        let file = |cpus: &str| {
            format!(
                "[[server]]\nname = \"s\"\nkind = \"cbs-hard\"\nbudget = \"2ms\"\nperiod = \"5ms\"\ntasks = [\"a\"]\n\
                 [[task]]\nname = \"a\"\nwcet = \"1ms\"\nperiod = \"5ms\"\npolicy = \"DEADLINE\"\n{cpus}"
            )
        };
        for (cpus, kept) in [("cpus = \"0\"\n", Some("0")), ("", None)] {
            let set = TaskSet::from_toml(&file(cpus)).unwrap();
            let planned =
                plan(&set, &RunRequest::with_duration(Span::from_millis(100)), 1).unwrap();
            let [thread] = &planned.spec.threads[..] else { panic!("{:?}", planned.spec) };
            assert!(thread.reservation.is_some());
            assert_eq!(thread.cpus.as_ref().map(ToString::to_string).as_deref(), kept);
        }
    }
}
