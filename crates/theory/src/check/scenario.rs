//! Scenarios: cases that a description allows, written as sets of tasks that `hourglass simulate` runs.
//!
//! Owns: at which instants first jobs arrive, who holds the processor when they do, who comes last among
//! equals. A scenario changes nothing that the description says: it chooses among the phases that are open,
//! takes every job at its longest, and every floating section where it hurts. Must not: simulate, judge.

use std::iter;

use hourglass_documents::Policy;
use hourglass_documents::check::FixedPoint;
use hourglass_tasks::{Activation, Assignment, Preemption, ProgramStep, Scheduler, Task, TaskSet};
use hourglass_time::Span;

/// Cases of the busy window that are tried for a task, at most.
const MOST_SHIFTS: usize = 4;

/// Tasks that are tried as those that hold the processor, at most.
const MOST_BLOCKERS: usize = 8;

/// A scenario, and until when it may show what it is for.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    pub(super) set: TaskSet,
    /// When the first jobs are released together, ns.
    pub(super) together: u64,
    /// The position of each of its tasks in the described set.
    pub(super) places: Vec<usize>,
    /// Whether all background threads are in it. Those that are not only matter to tasks of time-sharing classes.
    pub(super) is_whole: bool,
    /// Whether any phase of each task is possible.
    open: Vec<bool>,
}

/// All first jobs are released at one instant, each after its longest jitter, as far as phases are open.
/// `priorities` are those that were found, where they were to be found.
pub(super) fn together(set: &TaskSet, priorities: &[Option<u32>]) -> Scenario {
    let mut set = set.clone();
    let is_whole = leave_out(&mut set);
    for task in &mut set.tasks {
        (task.execution_time, task.bcet, task.program) = (None, None, None);
        // A sporadic one may come as often as it may, from any instant on.
        task.activation = Activation::Periodic;
    }
    if set.assignment() == Assignment::Optimal {
        assign(&mut set, priorities);
    }
    let open: Vec<bool> = set.tasks.iter().map(is_open).collect();
    let leads: Vec<u64> = set.tasks.iter().map(|task| lead(&set, task)).collect();
    let longest = leads.iter().zip(&open).filter(|(_, open)| **open).map(|(lead, _)| *lead).max();
    let ticks = set.tasks.iter().map(|task| tick(&set, task));
    let longest = longest.unwrap_or(0);
    let together = longest.checked_next_multiple_of(ticks.max().unwrap_or(1)).unwrap_or(longest);
    for ((task, lead), _) in set.tasks.iter_mut().zip(leads).zip(&open).filter(|(_, open)| **open) {
        task.offset = span(together.saturating_sub(lead));
    }
    let places = (0..set.tasks.len()).collect();
    Scenario { set, together, places, is_whole, open }
}

/// Scenarios that may show a miss of the task at `task`, the likelier ones first. `points` are the cases of its
/// busy window. `base` is the set with everybody together.
pub(super) fn candidates<'a>(
    base: &'a Scenario,
    task: usize,
    points: &'a [FixedPoint],
) -> impl Iterator<Item = Scenario> + use<'a> {
    let cases = move || {
        let shifts = shifts(&base.set.tasks[task], points);
        blockers(base, task).into_iter().flat_map(move |blocker| {
            let shifts = shifts.clone().into_iter();
            shifts.filter_map(move |shift| base.with(task, blocker, shift))
        })
    };
    iter::once_with(|| base.clone()).chain(iter::once_with(cases).flatten())
}

/// Leaves out the time-sharing threads in the background that wait for others, where tasks have steps: a scenario has
/// jobs instead of these steps, so that such a thread would wait for ever, or not at all. Whether none was left out.
fn leave_out(set: &mut TaskSet) -> bool {
    let waits = |step: &ProgramStep| {
        matches!(
            step,
            ProgramStep::Wait { .. }
                | ProgramStep::Suspend(_)
                | ProgramStep::Barrier(_)
                | ProgramStep::Take(_)
                | ProgramStep::Forked { .. }
        )
    };
    let is_urgent = |policy: Policy| policy.is_real_time() || policy == Policy::Deadline;
    let before = set.background.len();
    if set.tasks.iter().any(|task| task.program.is_some()) {
        set.background.retain(|thread| {
            let mut steps = thread.program.phases.iter().flat_map(|phase| &phase.steps);
            let changes = thread.program.phases.iter().filter_map(|phase| phase.policy);
            let mut policies = thread.policy.into_iter().chain(changes);
            policies.any(is_urgent) || !steps.any(waits)
        });
    }
    set.background.len() == before
}

/// Priorities that were found become given ones; without them, deadline-monotonic ones hold.
fn assign(set: &mut TaskSet, found: &[Option<u32>]) {
    let complete = set.tasks.iter().zip(found).all(|(task, priority)| {
        task.policy.is_none() && task.has_fixed_priority() && priority.is_some()
    });
    if !complete || set.tasks.len() != found.len() {
        set.assignment = Some(Assignment::DeadlineMonotonic);
        return;
    }
    set.assignment = Some(Assignment::Given);
    for (task, priority) in set.tasks.iter_mut().zip(found) {
        task.priority = *priority;
    }
}

/// The tick that releases of a task wait for, ns; 1 without one.
fn tick(set: &TaskSet, task: &Task) -> u64 {
    let granularity = set.machine.overheads.timer_granularity;
    task.tick().or(granularity).map_or(1, |tick| tick.nanos_or_zero().max(1))
}

/// The longest time from a task's first arrival to its release, ns: its jitter, and the wait for a tick that has
/// just been missed.
fn lead(set: &TaskSet, task: &Task) -> u64 {
    let most = task.tick_jitter.filter(|_| task.tick().is_some());
    let wait = most.map_or(u64::MAX, |most| most.nanos_or_zero()).min(tick(set, task) - 1);
    task.jitter.nanos_or_zero().saturating_add(wait)
}

/// Whether any phase of a task is possible, and it arrives by itself.
fn is_open(task: &Task) -> bool {
    task.offset.is_none() && task.after.is_empty()
}

/// By how much the first job of a task is later than those of the others, so that one of its jobs is the one
/// that misses: from each case of the window that is over the deadline, the worst first.
fn shifts(task: &Task, points: &[FixedPoint]) -> Vec<u64> {
    let late = |point: &&FixedPoint| point.response_time_ns > task.deadline().nanos_or_zero();
    let mut late: Vec<&FixedPoint> = points.iter().filter(late).collect();
    late.sort_by_key(|point| std::cmp::Reverse(point.response_time_ns));
    let shift = |point: &&FixedPoint| {
        let before = point.job.saturating_sub(1).checked_mul(task.period.nanos_or_zero())?;
        Some(point.offset_ns.saturating_sub(before))
    };
    let mut found: Vec<u64> = Vec::new();
    for shift in late.iter().filter_map(shift).chain([0]) {
        if !found.contains(&shift) && found.len() < MOST_SHIFTS {
            found.push(shift);
        }
    }
    found
}

/// Tasks that may hold the processor when the others are released: `None`, or a task with a section
/// that is not preempted, the longest first.
fn blockers(base: &Scenario, task: usize) -> Vec<Option<usize>> {
    let others = base.set.tasks.iter().enumerate();
    let others = others.filter(|(at, _)| *at != task && base.open[*at]);
    let mut known: Vec<(u64, usize)> =
        others.filter_map(|(at, other)| Some((section(other)?.1, at))).collect();
    known.sort_by_key(|(length, at)| (std::cmp::Reverse(*length), *at));
    let known = known.into_iter().take(MOST_BLOCKERS).map(|(_, at)| Some(at));
    iter::once(None).chain(known).collect()
}

/// The longest section of a job that others cannot preempt: what is done before it, and its length, ns.
fn section(task: &Task) -> Option<(u64, u64)> {
    let wcet = task.wcet.nanos_or_zero();
    match task.preemption {
        Preemption::Full => None,
        Preemption::None | Preemption::Threshold(_) => Some((0, wcet)),
        // Floating ones are simulated one after the other, the last as long as the longest.
        Preemption::Floating { longest: last } | Preemption::Limited { last, .. } => {
            let longest = task.longest_section();
            let last = last.nanos_or_zero().min(wcet);
            let body = wcet - last;
            let first = longest.nanos_or_zero().min(body);
            Some(if first >= last { (0, first) } else { (body, last) })
        }
    }
}

impl Scenario {
    /// The same where `blocker` holds the processor first, and `task` comes by `shift` later than the others,
    /// after its equals. `None` if phases are not open, or a time does not fit.
    fn with(&self, task: usize, blocker: Option<usize>, shift: u64) -> Option<Scenario> {
        let mut scenario = self.clone();
        let floats = |task: &Task| matches!(task.preemption, Preemption::Floating { .. });
        for (at, other) in scenario.set.tasks.iter_mut().enumerate() {
            // The sections of this task may lie anywhere in its jobs.
            if Some(at) != blocker && floats(other) {
                other.preemption = Preemption::Full;
            }
        }
        scenario.block(blocker)?;
        scenario.shift(task, shift)?;
        scenario.put_last(task);
        Some(scenario)
    }

    /// The section of a task begins just before the others are released. `None` if that is before the
    /// beginning and not all phases are open, or if a time does not fit.
    fn block(&mut self, blocker: Option<usize>) -> Option<()> {
        let Some(blocker) = blocker else { return Some(()) };
        let task = &self.set.tasks[blocker];
        let lead = section(task)?.0.checked_add(1)?.checked_add(task.jitter.nanos_or_zero())?;
        let later = lead.saturating_sub(self.together);
        self.together = self.together.checked_add(later)?;
        let later = span(later)?;
        for (task, open) in self.set.tasks.iter_mut().zip(&self.open) {
            if *open {
                task.offset = Some(task.offset?.checked_add(later)?);
            } else if !later.is_zero() && task.after.is_empty() {
                return None;
            }
        }
        self.set.tasks[blocker].offset = Some(span(self.together - lead)?);
        Some(())
    }

    /// Delays the first job of a task by `by`. `None` if its phase is not open, or a time does not fit.
    fn shift(&mut self, task: usize, by: u64) -> Option<()> {
        if by > 0 {
            let offset = self.set.tasks[task].offset.filter(|_| self.open[task])?;
            self.set.tasks[task].offset = Some(offset.checked_add(span(by)?)?);
        }
        Some(())
    }

    /// A task comes after all that are released with it, where the order in the file decides about that
    /// alone.
    fn put_last(&mut self, task: usize) {
        let decides = self.set.scheduler != Scheduler::FixedPriority
            || self.set.assignment() == Assignment::Given;
        if decides {
            self.set.tasks[task..].rotate_left(1);
            self.places[task..].rotate_left(1);
            self.open[task..].rotate_left(1);
        }
    }
}

fn span(ns: u64) -> Option<Span> {
    i64::try_from(ns).ok().map(Span::from_nanos)
}
