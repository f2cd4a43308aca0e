//! Tasks of the time-sharing classes: whatever the order in which threads get the processor, it is not idle while
//! a job waits for it.
//!
//! Owns: what background threads may take of a processor, and the bounds of time-sharing tasks there. Such a task is
//! analysed as the least urgent of all: between the last idle instant before a job arrives and its end, nothing is
//! executed but jobs of its own task up to it, and what others release meanwhile. That holds for every
//! work-conserving order, and needs no idea of shares. Must not: guess how often a thread that nothing holds back runs.

use hourglass_documents::check::{CheckDocument, Verdict};
use hourglass_documents::{CpuSet, Policy};
use hourglass_sched as sched;
use hourglass_sched::effort::StepLimit;
use hourglass_sched::fixed_priority::{self, Sections, TimeModel};
use hourglass_sched::sensitivity::ScaleTest;
use hourglass_tasks::{Background, Program, ProgramStep, Task, TaskSet};

use super::MOST_TOGETHER;
use super::processor::{Member, Processor};
use super::proof;
use super::solve::{NO_ANALYSIS, NO_PROOF, ProcessorSolution};

/// The time-sharing tasks of a processor.
#[derive(Clone, Debug)]
pub(super) struct TimeSharing {
    /// The positions of the tasks among the members.
    members: Vec<usize>,
    /// The demand of background threads there, or the reason why no bound is known.
    beside: Result<BackgroundWork, String>,
}

impl TimeSharing {
    /// Whether the member at `at` is one of them that has a bound.
    pub(super) fn bounds(&self, processor: &Processor, at: usize) -> bool {
        self.members.contains(&at) && self.work(processor).is_ok()
    }

    /// The demand of background threads, or the reason why no bound is known.
    fn work(&self, processor: &Processor) -> Result<&BackgroundWork, String> {
        let beside = self.beside.as_ref().map_err(Clone::clone)?;
        let count = processor.members.len() + beside.members.len();
        let looks = count.saturating_mul(count).saturating_mul(self.members.len());
        if looks > MOST_TOGETHER * MOST_TOGETHER {
            return Err("too many threads".to_owned());
        }
        if processor.sections != Sections::Preemptive || processor.has_bursts() {
            return Err(
                "no analysis of Hourglass covers bursts or non-preemptive sections together with \
                 them"
                    .to_owned(),
            );
        }
        Ok(beside)
    }
}

/// The work that runs beside the tasks.
#[derive(Clone, Debug, Default)]
struct BackgroundWork {
    /// The work in all, ns.
    once: u64,
    /// Again and again.
    members: Vec<Member>,
}

/// The largest work of a program, ns.
#[derive(Debug, Default, PartialEq, Eq)]
struct Demand {
    once: u64,
    /// The work between two sleeps, and the shortest sleep after it.
    each: Option<(u64, u64)>,
}

/// Whether a task runs in a time-sharing class, without a reservation.
fn shares(set: &TaskSet, task: &Task) -> bool {
    let other = !task.has_fixed_priority() && task.policy != Some(Policy::Deadline);
    other && set.server_of(&task.name).is_none()
}

/// What bounds of tasks of these classes rest on: any thread of any program takes its share beside them.
pub(super) fn say_premise(set: &TaskSet, document: &mut CheckDocument) {
    let mut tasks = set.tasks.iter().zip(&document.tasks);
    if tasks.any(|(task, facts)| facts.verdict == Verdict::Feasible && shares(set, task)) {
        let text = "ordinary tasks share their CPUs with no program but those of the file";
        document.assumptions.push(text.to_owned());
    }
}

/// Selects tasks of time-sharing classes on one CPU, and what runs beside them.
pub(super) fn of(set: &TaskSet, cpu: &str, tasks: &[usize]) -> Option<TimeSharing> {
    let tasks_at = tasks.iter().enumerate();
    let members = tasks_at.filter(|(_, position)| shares(set, &set.tasks[**position]));
    let members: Vec<usize> = members.map(|(at, _)| at).collect();
    let beside = || {
        plain(set, tasks)?;
        beside(set, &cpu.parse().unwrap_or_default(), tasks)
    };
    (!members.is_empty()).then(|| TimeSharing { members, beside: beside() })
}

/// That nothing makes a job wait while the processor is idle, or costs more the more often threads take turns.
fn plain(set: &TaskSet, tasks: &[usize]) -> Result<(), String> {
    let tasks = || tasks.iter().map(|position| &set.tasks[*position]);
    let is = |span: Option<hourglass_time::Span>| span.is_some_and(|span| span.is_positive());
    let costs = &set.machine.overheads;
    let what = if tasks().any(|task| !task.critical_sections.is_empty()) {
        "locks"
    } else if tasks().any(|task| task.suspension.is_positive()) {
        "suspension"
    } else if !set.servers.is_empty() {
        "servers"
    } else if set.machine.has_siblings() {
        "sibling CPUs"
    } else if is(costs.context_switch) || is(costs.cache_delay) || is(costs.tick_cost) {
        "costs of switches or ticks"
    } else {
        return Ok(());
    };
    Err(format!("no analysis of Hourglass covers {what} together with time-sharing classes"))
}

/// The background threads that may run on a CPU.
fn beside(set: &TaskSet, cpu: &CpuSet, tasks: &[usize]) -> Result<BackgroundWork, String> {
    let moves_here = |program: &Program| {
        let cpus = program.phases.iter().filter_map(|phase| phase.cpus.as_ref());
        cpus.into_iter().any(|cpus| !cpus.intersection(cpu).is_empty())
    };
    let others = set.tasks.iter().enumerate().filter(|(at, _)| !tasks.contains(at));
    let mut others = others.filter_map(|(_, task)| Some((task, task.program.as_ref()?)));
    if let Some((task, _)) = others.find(|(_, program)| moves_here(program)) {
        return Err(format!("task '{}' moves to CPU {cpu} in its phases", task.name));
    }
    let mut found = BackgroundWork::default();
    let all = set.cpus();
    for thread in &set.background {
        let own = thread.cpus.as_ref().unwrap_or(&all);
        if own.intersection(cpu).is_empty() && !moves_here(&thread.program) {
            continue;
        }
        let why =
            || format!("nothing bounds how often the background thread '{}' runs", thread.name);
        let demand = demand(&thread.program).ok_or_else(why)?;
        found.once = found.once.checked_add(demand.once).ok_or_else(why)?;
        found.members.extend(demand.each.map(|each| member(thread, each)).transpose()?);
    }
    Ok(found)
}

/// A thread that sleeps between what it executes, as a task with at least that sleep between two
/// arrivals. Where it sleeps several times, its work within that time is still at most one round.
fn member(thread: &Background, (run, sleep): (u64, u64)) -> Result<Member, String> {
    let name = format!("background '{}'", thread.name);
    let task = sched::Task::new(run, sleep, sleep).map_err(|why| format!("{name}: {why}"))?;
    Ok(Member::of_others(name, task))
}

/// The demand of a program; `None` without a bound.
fn demand(program: &Program) -> Option<Demand> {
    let (mut run, mut sleep) = (0u64, 0u64);
    for phase in program.phases.iter().filter(|phase| phase.loops != Some(0)) {
        let (one_run, one_sleep) = once_through(&phase.steps)?;
        let Some(loops) = phase.loops else { return again(run, one_run, one_sleep) };
        run = run.checked_add(one_run.checked_mul(loops)?)?;
        sleep = sleep.checked_add(one_sleep.checked_mul(loops)?)?;
    }
    match program.loops {
        Some(loops) if sleep == 0 || loops <= 1 => {
            Some(Demand { once: run.checked_mul(loops)?, each: None })
        }
        _ => again(0, run, sleep),
    }
}

/// The demand of `once` at the start and then `run` between any two sleeps. Rounds without a sleep
/// never leave the processor, whatever their steps are.
fn again(once: u64, run: u64, sleep: u64) -> Option<Demand> {
    match (run, sleep) {
        (_, 0) => None,
        (0, _) => Some(Demand { once, each: None }),
        _ => Some(Demand { once, each: Some((run, sleep)) }),
    }
}

/// What steps execute and sleep. What others do about it counts as done at once: also where the file names nobody who
/// does, since the threads of a record are woken by what was not recorded.
fn once_through(steps: &[ProgramStep]) -> Option<(u64, u64)> {
    let (mut run, mut sleep) = (0u64, 0u64);
    for step in steps {
        match step {
            ProgramStep::Run(time) | ProgramStep::RunFor(time) => {
                run = run.checked_add(time.nanos_or_zero())?
            }
            ProgramStep::Sleep(time) => sleep = sleep.checked_add(time.nanos_or_zero())?,
            ProgramStep::Memory(_)
            | ProgramStep::Io(_)
            | ProgramStep::Read { .. }
            | ProgramStep::Write { .. }
            | ProgramStep::Chase { .. } => return None,
            _ => {}
        }
    }
    Some((run, sleep))
}

/// Bounds the time-sharing tasks of a processor whose other tasks are done.
pub(super) fn solve(processor: &Processor, solved: &mut ProcessorSolution) {
    let Some(of) = &processor.time_sharing else { return };
    for at in &of.members {
        // The task's points among equals, first come, first served, prove nothing here.
        let facts = &mut solved.tasks[*at].1;
        facts.fixed_points.clear();
        solved.facts.verified_points -= std::mem::take(&mut facts.fixed_point_count);
        let work = of.work(processor);
        if let Err(why) = work.and_then(|beside| one(processor, beside, *at, solved)) {
            let facts = &mut solved.tasks[*at].1;
            facts.verdict = Verdict::Unknown;
            facts.reason =
                format!("the time-sharing classes order threads in no known way, and {why}");
        }
    }
}

/// Whether all that have bounds are in time.
pub(super) fn tested(processor: &Processor, effort: &mut StepLimit) -> ScaleTest {
    let feasible = ScaleTest { verdict: sched::Verdict::Feasible, failing: None };
    let Some(of) = &processor.time_sharing else { return feasible };
    let Ok(beside) = of.work(processor) else { return feasible };
    let mut is_late = |at: usize| {
        let Ok(least) = least_urgent(processor, beside, at) else { return true };
        let (numbers, sections) = (least.numbers(), least.sections);
        let found = fixed_priority::analyse_by(&numbers, sections, TimeModel::Continuous, effort);
        found.tasks[at].verdict != sched::Verdict::Feasible
    };
    let late = of.members.iter().find(|at| is_late(**at));
    // The others need not run before it.
    let unknown = sched::Verdict::Unknown(sched::Refusal::NotExact);
    late.map_or(feasible, |at| ScaleTest { verdict: unknown, failing: Some(*at) })
}

/// The processor with the member at `at` as the least urgent of all.
fn least_urgent(
    processor: &Processor,
    beside: &BackgroundWork,
    at: usize,
) -> Result<Processor, String> {
    let mut least = Processor { time_sharing: None, ..processor.clone() };
    least.members.extend(beside.members.iter().cloned());
    for (member, rank) in least.members.iter_mut().zip(1..) {
        (member.task, member.unknown) = (member.task.plain().with_priority(rank), None);
    }
    let own = &mut least.members[at];
    let blocking =
        own.task.blocking().checked_add(beside.once).ok_or(super::parameters::TOO_LONG)?;
    own.task = own.task.with_priority(0).with_blocking(blocking);
    least.inexact.push("others need not run before it".to_owned());
    Ok(least)
}

/// Bounds the member at `at`.
fn one(
    processor: &Processor,
    beside: &BackgroundWork,
    at: usize,
    solved: &mut ProcessorSolution,
) -> Result<(), String> {
    let least = least_urgent(processor, beside, at)?;
    let question = least.question();
    let found = question.analysis().and_then(|entry| entry.bounds(&question));
    let found = found.ok_or(NO_ANALYSIS)??;
    if !found.is_proven {
        return Err(NO_PROOF.to_owned());
    }
    let facts = &mut solved.tasks[at].1;
    super::solve::task(&least, &least.members[at], at, &found.analysis, facts);
    if facts.verdict == Verdict::NoBound {
        facts.verdict = Verdict::Unknown;
    }
    proof::add_points(&least, &question, &found.analysis, at, facts);
    solved.facts.verified_points += facts.fixed_point_count;
    Ok(())
}

#[cfg(test)]
mod tests;
