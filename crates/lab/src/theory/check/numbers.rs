//! From a task as it is described to the numbers of an analysis.
//!
//! Owns: the stated transformations: overheads and slow siblings as longer execution times, bursts,
//! ticks and timers as jitter. Each makes the bounds larger, never smaller, and is told. Must not:
//! look at locks or at who is more urgent than whom.

use hourglass_model::CpuSet;
use hourglass_model::tasks::{Fraction, Preemption, Task, TaskSet};
use hourglass_sched as sched;

use super::processor::{Member, Notes, Processor};

/// A number that does not fit.
const TOO_LONG: &str = "a time has more than 64 bits";

/// The numbers of the task at `position`, its priority and blocking left out. Its jobs wait for
/// `spinning` in all, on their CPU.
///
/// # Errors
/// Nothing sound can be said about it, in a sentence.
pub(super) fn member(
    set: &TaskSet,
    position: usize,
    spinning: u64,
    processor: &mut Processor,
    notes: &mut Notes,
) -> Result<Member, String> {
    let task = &set.tasks[position];
    let cost = cost(set, position, processor, notes)?.checked_add(spinning).ok_or(TOO_LONG)?;
    let jitter = jitter(set, task, notes)?;
    if task.offset.is_some() && !processor.has_phases {
        processor.forget_phases();
        notes.say("offsets are not used: any phase is taken to be possible");
    }
    let (longest, last) = segments(task, cost, processor, notes);
    let made = sched::Task::new(cost, task.period.nanos_or_zero(), task.deadline().nanos_or_zero())
        .and_then(|made| made.with_segments(longest, last))
        .map_err(|why| format!("task '{}': {why}", task.name))?;
    let made = made.with_jitter(jitter).with_suspension(task.suspension.nanos_or_zero());
    Ok(Member {
        position: Some(position),
        name: task.name.clone(),
        task: made,
        jitter,
        offset: task.offset.map(|offset| offset.nanos_or_zero()),
        arrivals: task.arrivals.iter().map(|distance| distance.nanos_or_zero()).collect(),
        threshold: 0,
        unknown: None,
    })
}

/// One context switch: whoever is released while one is going on waits for its end.
pub(super) fn switch(set: &TaskSet) -> u64 {
    set.machine.overheads.context_switch.map_or(0, |span| span.nanos_or_zero())
}

/// What a job adds to each section and each lock for the switches around it.
pub(super) fn switches(set: &TaskSet) -> u64 {
    switch(set).saturating_mul(2)
}

fn cost(
    set: &TaskSet,
    position: usize,
    processor: &mut Processor,
    notes: &mut Notes,
) -> Result<u64, String> {
    let task = &set.tasks[position];
    let rate = slowest_rate(set, position);
    let cost = slowed(set, position, task.wcet.nanos_or_zero())?;
    if rate != Fraction::ONE {
        processor.counts("a sibling CPU need not be busy all the time");
        notes.say(format!(
            "'{}' may always have a neighbour on a sibling CPU and then runs at {rate} of its speed",
            task.name
        ));
    }
    let switch = switches(set);
    let delay = set.machine.overheads.cache_delay.map_or(0, |span| span.nanos_or_zero());
    if switch == 0 && delay == 0 {
        return Ok(cost);
    }
    if task.suspension.is_positive() {
        return Err(format!(
            "how often '{}' suspends itself is not known, and each time costs switches",
            task.name
        ));
    }
    processor.counts("not every job costs all the switches and cache delays counted for it");
    notes.say(
        "each job costs two context switches, two more for each critical section, and the cache \
         delay of the one that it preempts; each waits for one switch that has just begun",
    );
    let sections = task.critical_sections.iter().map(|section| u64::from(section.count));
    let times = sections.sum::<u64>() + 1;
    let added = switch.checked_mul(times).and_then(|sum| sum.checked_add(delay)).ok_or(TOO_LONG)?;
    cost.checked_add(added).ok_or_else(|| TOO_LONG.to_owned())
}

/// How long work of a task may take that needs `work` where nobody runs on a sibling CPU.
///
/// # Errors
/// It may take for ever, or longer than a number holds, in a sentence.
pub(super) fn slowed(set: &TaskSet, position: usize, work: u64) -> Result<u64, String> {
    let rate = slowest_rate(set, position);
    if rate == Fraction::ZERO {
        return Err(format!(
            "task '{}' makes no progress while another runs on a sibling CPU",
            set.tasks[position].name
        ));
    }
    let slowed = u128::from(work) * u128::from(rate.denominator());
    u64::try_from(slowed.div_ceil(rate.numerator().into())).map_err(|_| TOO_LONG.to_owned())
}

/// The slowest that a task may be beside anything that may run on a sibling of its CPUs.
fn slowest_rate(set: &TaskSet, position: usize) -> Fraction {
    let all = set.cpus();
    let own = set.tasks[position].cpus.as_ref().unwrap_or(&all);
    let mut siblings = CpuSet::default();
    for cpu in own.iter() {
        for sibling in set.machine.core_of(cpu).iter().filter(|sibling| *sibling != cpu) {
            siblings.insert(sibling);
        }
    }
    let may_run =
        |cpus: &Option<CpuSet>| !cpus.as_ref().unwrap_or(&all).intersection(&siblings).is_empty();
    let tasks = set.tasks.iter().enumerate().filter(|(at, _)| *at != position);
    let tasks = tasks.filter(|(_, task)| may_run(&task.cpus)).map(|(_, task)| &task.name);
    let others = set.background.iter().filter(|thread| may_run(&thread.cpus));
    let beside = tasks.chain(others.map(|thread| &thread.name));
    let rates = beside.map(|beside| set.rate(&set.tasks[position].name, beside));
    rates.min().unwrap_or(Fraction::ONE)
}

/// From nominal arrival to release: as given, and what timers add.
fn jitter(set: &TaskSet, task: &Task, notes: &mut Notes) -> Result<u64, String> {
    let mut jitter = task.jitter.nanos_or_zero();
    if let Some(tick) = task.tick() {
        let delay = task.tick_delay();
        jitter = jitter.checked_add(delay.nanos_or_zero()).ok_or(TOO_LONG)?;
        let more = if task.jitter.is_positive() { " more" } else { "" };
        notes.say(match task.tick_jitter {
            None => format!("'{}' is woken by a tick: a jitter of {tick}{more}", task.name),
            Some(_) => format!(
                "'{}' is woken by a tick of {tick}, which is said to delay it by {delay} at most: \
                 a jitter of that{more}",
                task.name
            ),
        });
    }
    if let Some(step) = set.machine.overheads.timer_granularity {
        jitter = jitter.checked_add(step.nanos_or_zero()).ok_or(TOO_LONG)?;
        notes.say(format!("timers are granular: a jitter of {step} more for each task"));
    }
    Ok(jitter)
}

/// Bursts as jitter, for analyses that know no arrival curves.
///
/// # Errors
/// A number does not fit.
pub(super) fn bursts_as_jitter(processor: &mut Processor) -> Result<(), String> {
    for member in &mut processor.members {
        let burst = burst(&member.arrivals, member.task.period()).ok_or(TOO_LONG)?;
        let together = member.jitter.checked_add(burst).ok_or(TOO_LONG)?;
        member.task = member.task.with_jitter(together);
    }
    if processor.has_bursts() {
        processor.counts("bursts count as jitter");
    }
    Ok(())
}

/// The jitter that makes periodic arrivals cover a burst: the k-th of its arrivals comes so much
/// before (k - 1) periods. `None` if it has more than 64 bits.
fn burst(arrivals: &[u64], period: u64) -> Option<u64> {
    let mut most = 0;
    for (distance, periods) in arrivals.iter().zip(1u64..) {
        let nominal = periods.checked_mul(period)?;
        most = most.max(nominal.saturating_sub(*distance));
    }
    Some(most)
}

/// The longest and the last non-preemptive section of a job that costs so much.
fn segments(task: &Task, cost: u64, processor: &mut Processor, notes: &mut Notes) -> (u64, u64) {
    let added = cost.saturating_sub(task.wcet.nanos_or_zero());
    let longer = |span: hourglass_time::Span| span.nanos_or_zero().saturating_add(added).min(cost);
    match task.preemption {
        Preemption::Full => (0, 0),
        Preemption::None if processor.has_thresholds => (0, 0),
        Preemption::None => (cost, cost),
        Preemption::Limited { longest, last } => (longer(longest), last.nanos_or_zero().min(cost)),
        Preemption::Floating { longest } => (longer(longest), 0),
        Preemption::Threshold(_) if processor.has_thresholds => (0, 0),
        Preemption::Threshold(threshold) => {
            processor.counts("the preemption threshold is taken to hold up everybody");
            notes.say(format!(
                "'{}' with its preemption threshold of {threshold} is taken to hold up every more \
                 urgent task for its whole execution time, and to be preempted by all of them",
                task.name
            ));
            (cost, 0)
        }
    }
}
