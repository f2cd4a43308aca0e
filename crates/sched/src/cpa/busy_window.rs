//! Busy times on one processor: how long the first q jobs of a busy window take.
//!
//! Owns: one equation a scheduler, and when a window ends. Must not: know the graph beyond the event
//! models of the tasks on the processor.

use std::rc::Rc;

use crate::effort::StepLimit;
use crate::verdict::Refusal;

use super::events::EventStream;
use super::{CpaSystem, Scheduler};

/// Jobs of a busy window, before it is given up.
const MOST_JOBS: u64 = 1_000;

/// Event models by task.
type Models = [Option<Rc<EventStream>>];

/// The busy times of a task from 1 job to the end of the window, and its longest response.
pub(crate) fn busy_times(
    system: &CpaSystem,
    models: &Models,
    task: usize,
    effort: &mut StepLimit,
) -> Result<(Vec<u64>, u64), Refusal> {
    let own = models[task].as_ref().ok_or(Refusal::Endless)?;
    let end = match system.schedulers()[system.tasks()[task].processor] {
        Scheduler::NonPreemptive => Some(window(system, models, task, effort)?),
        _ => None,
    };
    let (mut busy, mut response, mut from) = (Vec::new(), 0, 0);
    for jobs in 1..=MOST_JOBS {
        let time = fixed_point(system, models, task, jobs, from, effort)?;
        response = response.max(time.saturating_sub(own.distance(jobs)?));
        busy.push(time);
        from = time;
        if own.distance(jobs + 1)? >= end.unwrap_or(time) {
            return Ok((busy, response));
        }
    }
    Err(Refusal::TooLong)
}

/// The least time above 0 that satisfies the equation, given that it is not below `from`.
fn fixed_point(
    system: &CpaSystem,
    models: &Models,
    task: usize,
    jobs: u64,
    from: u64,
    effort: &mut StepLimit,
) -> Result<u64, Refusal> {
    let own = jobs.checked_mul(system.tasks()[task].cost).ok_or(Refusal::Overflow)?;
    let mut time = own.max(from);
    loop {
        let next = equation(system, models, task, jobs, time, effort)?;
        if next <= time {
            return Ok(time);
        }
        time = next;
    }
}

/// The time that `jobs` jobs of a task need in a window of `time`.
pub(crate) fn equation(
    system: &CpaSystem,
    models: &Models,
    task: usize,
    jobs: u64,
    time: u64,
    effort: &mut StepLimit,
) -> Result<u64, Refusal> {
    effort.charge(1)?;
    let of = &system.tasks()[task];
    let own = jobs.checked_mul(of.cost).ok_or(Refusal::Overflow)?;
    let add = |sum: u64, more: u64| sum.checked_add(more).ok_or(Refusal::Overflow);
    let mut sum = own;
    match system.schedulers()[of.processor] {
        Scheduler::Preemptive => {
            for other in system.same_processor(task).filter(|other| system.delays(*other, task)) {
                sum = add(sum, work(system, models, other, time, effort)?)?;
            }
        }
        Scheduler::NonPreemptive => {
            // The last job begins when it has waited; what comes up to then goes first.
            let wait = time.saturating_sub(of.cost);
            let wait = wait.checked_add(1).ok_or(Refusal::Overflow)?;
            sum = add(sum, blocking(system, task))?;
            for other in system.same_processor(task).filter(|other| system.delays(*other, task)) {
                sum = add(sum, work(system, models, other, wait, effort)?)?;
            }
        }
        Scheduler::RoundRobin => {
            let turns = own.div_ceil(of.parameter);
            for other in system.same_processor(task) {
                let slot = system.tasks()[other].parameter;
                let slots = turns.checked_mul(slot).ok_or(Refusal::Overflow)?;
                let work = match &models[other] {
                    Some(_) => work(system, models, other, time, effort)?,
                    None => slots,
                };
                sum = add(sum, slots.min(work))?;
            }
        }
        Scheduler::TimeDivision => {
            for other in system.same_processor(task) {
                let slot = system.tasks()[other].parameter;
                let turns = own.div_ceil(of.parameter);
                sum = add(sum, turns.checked_mul(slot).ok_or(Refusal::Overflow)?)?;
            }
        }
    }
    Ok(sum)
}

/// Work of a task whose activations fall into a window.
fn work(
    system: &CpaSystem,
    models: &Models,
    task: usize,
    window: u64,
    effort: &mut StepLimit,
) -> Result<u64, Refusal> {
    effort.charge(1)?;
    let events = models[task].as_ref().ok_or(Refusal::Endless)?;
    events.in_window(window)?.checked_mul(system.tasks()[task].cost).ok_or(Refusal::Overflow)
}

/// The longest less urgent task, which may have just begun.
fn blocking(system: &CpaSystem, task: usize) -> u64 {
    let lower = system.same_processor(task).filter(|other| !system.delays(*other, task));
    lower.map(|other| system.tasks()[other].cost).max().unwrap_or(0)
}

/// The longest time for which a processor without preemption serves what is not less urgent than
/// the task without a pause; jobs activated later begin a new window.
pub(crate) fn window(
    system: &CpaSystem,
    models: &Models,
    task: usize,
    effort: &mut StepLimit,
) -> Result<u64, Refusal> {
    let begun = blocking(system, task);
    let mut length = begun.max(1);
    loop {
        let mut sum = begun;
        let more = system.same_processor(task).filter(|other| system.delays(*other, task));
        for other in more.chain(std::iter::once(task)) {
            let work = work(system, models, other, length, effort)?;
            sum = sum.checked_add(work).ok_or(Refusal::Overflow)?;
        }
        if sum <= length {
            return Ok(length);
        }
        length = sum;
    }
}
