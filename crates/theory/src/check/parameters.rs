//! From a task as it is described to the numbers of an analysis.
//!
//! Owns: which cost of the machine is which cost of `sched::overheads`; slow siblings, ticks and timers, each
//! reported. Must not: charge a cost, look at locks or at who is more urgent than whom.

use hourglass_documents::CpuSet;
use hourglass_sched as sched;
use hourglass_sched::catalogue::Rule;
use hourglass_sched::fixed_priority::Sections;
use hourglass_sched::overheads::{self, InflatedTaskSet, KernelOverheads, OverheadError, Tick};
use hourglass_tasks::{Fraction, Preemption, Task, TaskSet};
use hourglass_time::Span;

use super::locks;
use super::processor::{Member, NoteList, TaskGroup};
use super::processor_builder::{ProcessorBuilder, ProcessorTasks};

/// A number that does not fit.
pub(super) const TOO_LONG: &str = "a time has more than 64 bits";

/// The execution times of the machine's kernel.
pub(super) fn costs(set: &TaskSet) -> KernelOverheads {
    let overheads = &set.machine.overheads;
    let cost = |span: Option<Span>| span.map_or(0, |span| span.nanos_or_zero());
    let tick = overheads
        .tick_period
        .map(|period| Tick { period: period.nanos_or_zero(), cost: cost(overheads.tick_cost) });
    KernelOverheads {
        switch: cost(overheads.context_switch),
        caches: cost(overheads.cache_delay),
        tick: tick.filter(|tick| tick.cost > 0),
        granularity: cost(overheads.timer_granularity),
    }
}

/// The numbers of the task at `position` without what the kernel costs, its priority left out. Its
/// jobs wait for `spinning` in all, on their CPU.
///
/// # Errors
/// Nothing sound can be said about it, in a sentence.
pub(super) fn member(
    of: &ProcessorTasks,
    position: usize,
    spinning: u64,
    draft: &mut ProcessorBuilder,
) -> Result<Member, String> {
    let set = of.set;
    let task = &set.tasks[position];
    let rate = slowest_rate(set, position);
    if rate != Fraction::ONE {
        draft.counts("a sibling CPU need not be busy all the time");
        draft.notes.say(format!(
            "'{}' may always have a co-runner on a sibling CPU and then runs at {rate} of its speed",
            task.name
        ));
    }
    let cost = slowed(set, position, task.wcet.nanos_or_zero())?;
    let cost = cost.checked_add(spinning).ok_or(TOO_LONG)?;
    let jitter = jitter(task, draft.notes)?;
    if task.offset.is_some() && !of.has_phases {
        draft.counts(NO_OFFSETS);
        draft.notes.say(NO_OFFSETS);
    }
    let (longest, last) = segments(of, task, cost, draft);
    let made = sched::Task::new(cost, task.period.nanos_or_zero(), task.deadline().nanos_or_zero())
        .and_then(|made| made.with_segments(longest, last))
        .map_err(|why| format!("task '{}': {why}", task.name))?;
    let made = made
        .with_jitter(jitter)
        .with_suspension(task.suspension.nanos_or_zero())
        .with_blocking(task.blocking.nanos_or_zero());
    let name = task.name.clone();
    Ok(Member {
        position: Some(position),
        name,
        task: made,
        jitter,
        held: Vec::new(),
        unknown: None,
    })
}

pub(super) const NO_OFFSETS: &str = "offsets are not used: any phase is taken to be possible";

/// The members of a draft with what the kernel costs.
///
/// # Errors
/// Nothing sound can be said about them, in a sentence.
pub(super) fn charged(
    of: &ProcessorTasks,
    draft: &mut ProcessorBuilder,
) -> Result<InflatedTaskSet, String> {
    let ProcessorTasks { set, sections, costs, .. } = of;
    let is_shared = matches!(of.place, TaskGroup::Shared(..)) && !costs.switches_are_free();
    let waits = |member: &Member| {
        let waits = member.position.map_or(0, |at| locks::most_waits(of, at));
        if is_shared {
            waits.checked_add(preemptions(of, member, &draft.members)?)
        } else {
            Some(waits)
        }
    };
    let waits: Option<Vec<u64>> = draft.members.iter().map(waits).collect();
    let waits = waits.ok_or(TOO_LONG)?;
    let numbers: Vec<sched::Task> =
        draft.members.iter().map(|member| member.task.clone()).collect();
    let charged = overheads::charge(&numbers.into(), *sections, costs, &waits);
    let charged = charged.map_err(|why| match why {
        OverheadError::Suspension(at) => format!(
            "how often '{}' suspends itself is not known, and each time costs switches",
            draft.members[at].name
        ),
        why => why.to_string(),
    })?;
    if is_shared {
        draft.notes.say(
            "each job costs two context switches and a cache delay, and the same again for each more urgent job that may come until \
             its deadline",
        );
        let share = |task: &sched::Task| {
            u128::from(task.cost()) * 1_000_000_000 / u128::from(task.period())
        };
        let shares: u128 = charged.tasks().iter().map(share).sum();
        let TaskGroup::Shared(cpus, _) = of.place else { return Ok(charged) };
        if shares >= cpus.len() as u128 * 1_000_000_000 {
            return Err("as often as jobs may take the CPU from each other, switches and caches cost more than there is".to_owned());
        }
    } else if !costs.switches_are_free() {
        draft.counts("not every job costs all the switches and cache delays counted for it");
        draft.notes.say(
            "each job costs two context switches and the cache delay of the one that it preempts, the same \
             again for each lock that it may wait for; each waits for one switch that has just begun",
        );
    }
    if let Some(step) = set.machine.overheads.timer_granularity {
        draft.notes.say(format!("timers are granular: a jitter of {step} more for each task"));
    }
    if let Some(tick) = costs.tick {
        let (cost, period) = (super::proof::time(tick.cost), super::proof::time(tick.period));
        draft.counts("ticks need not come at the worst instants");
        draft.notes.say(format!("a tick takes {cost} every {period}, before every task"));
        if *sections != Sections::Preemptive {
            draft.notes.say("what is not preempted takes longer by the ticks in it");
        }
    }
    Ok(charged)
}

/// How often jobs of others may take the CPU of one of this task until its deadline. On several CPUs it goes on at once on another,
/// so that what this costs is its own.
fn preemptions(of: &ProcessorTasks, member: &Member, all: &[Member]) -> Option<u64> {
    let priorities = of.set.priorities();
    let priority = |member: &Member| member.position.and_then(|at| priorities[at]);
    let deadline = member.task.deadline();
    let come = all.iter().filter(|other| other.name != member.name).map(|other| {
        let late = other.jitter.checked_add(of.costs.granularity)?;
        // The last that is due before this one, if the CPU goes by that.
        let last = match of.rule {
            Rule::Edf => deadline.checked_add(late)?.checked_sub(other.task.deadline()),
            _ => Some(deadline.checked_add(late)?),
        };
        let is_less = match (priority(other), priority(member)) {
            (Some(other), Some(own)) => other <= own,
            (None, Some(_)) => !of.finds_priorities,
            _ => false,
        };
        match last {
            None => Some(0),
            Some(_) if of.rule == Rule::FixedPriority && is_less => Some(0),
            Some(last) => (last / other.task.period()).checked_add(1),
        }
    });
    come.sum()
}

/// How long a task may take for `work` while co-runners run, ns; `work` is its time without them.
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
    let parts = (rate.numerator(), rate.denominator());
    overheads::slowed(work, parts).ok_or_else(|| TOO_LONG.to_owned())
}

/// The lowest rate of a task beside anything that may run on a sibling of its CPUs.
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

/// The time from nominal arrival to release: the given jitter, and that of its timer.
fn jitter(task: &Task, notes: &mut NoteList) -> Result<u64, String> {
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
    Ok(jitter)
}

/// The longest and the last non-preemptive section of a job with a known cost.
fn segments(
    of: &ProcessorTasks,
    task: &Task,
    cost: u64,
    draft: &mut ProcessorBuilder,
) -> (u64, u64) {
    if of.has_thresholds {
        return (0, 0);
    }
    if let Preemption::Threshold(threshold) = task.preemption {
        draft.counts("the preemption threshold is taken to delay all tasks");
        draft.notes.say(format!(
            "'{}' with its preemption threshold of {threshold} is taken to hold up every more \
             urgent task for its whole execution time, and to be preempted by all of them",
            task.name
        ));
    }
    let added = cost.saturating_sub(task.wcet.nanos_or_zero());
    let stated = Span::nanos_or_zero;
    let longer = |span: Span| stated(span).saturating_add(added).min(cost);
    match task.preemption {
        Preemption::Full => (0, 0),
        Preemption::None => (cost, cost),
        Preemption::Limited { longest, last } => (longer(longest), stated(last).min(cost)),
        Preemption::Floating { longest } => (longer(longest), 0),
        Preemption::Threshold(_) => (cost, 0),
    }
}
