//! The slow twin of the analyses: small busy windows simulated one unit of time after the other.
//!
//! Owns: the simulation, and the assertion that no simulated response is over its bound. Takes numbers:
//! tasks, curves, thresholds, phases. Must not: be compiled into release builds, know an analysis, or
//! share code with the searches.

mod phases;

pub(crate) use phases::assert_phases;
#[cfg(test)]
pub(crate) use phases::worst_with_phases;

use crate::curve::Curve;
use crate::sections::Sections;
use crate::task::{Task, TaskSet};
use crate::verdict::{Analysis, ResponseTime};

/// Larger sets are not simulated: most units of time, over all cases of a task.
const MOST_UNITS: u64 = 20_000;

/// A job in the simulated queue.
#[derive(Clone, Copy, Debug)]
struct Job {
    priority: u32,
    release: u64,
    /// Nominal arrival plus the task's jitter, so that it is not negative.
    nominal: u64,
    own: bool,
    remaining: u64,
    /// The remaining work when it can be preempted no longer.
    tail: u64,
}

/// Asserts that what an analysis bounds stays within the bound, if the set is small.
pub(crate) fn assert_fixed_priority(set: &TaskSet, sections: Sections, analysis: &Analysis) {
    if set.len() > 6 || set.tasks().iter().any(|t| t.suspension > 0) {
        return;
    }
    for position in 0..set.len() {
        let Some(bound) = analysis.tasks[position].outcome.response() else { continue };
        let Some(worst) = worst_fixed_priority(set, sections, position, analysis) else { continue };
        assert!(
            worst.from_arrival <= bound.from_arrival && worst.from_release <= bound.from_release,
            "task {position} of {set:?}, {sections:?}: {worst:?} simulated, bound {bound:?}"
        );
    }
}

/// The worst response of a task in its busy window in discrete time, by simulation of every offset
/// that its first job may have; `None` if that takes too long.
pub(crate) fn worst_fixed_priority(
    set: &TaskSet,
    sections: Sections,
    position: usize,
    analysis: &Analysis,
) -> Option<ResponseTime> {
    worst_of(set, &periodic(set), sections, position, analysis)
}

/// The curves of tasks without bursts.
fn periodic(set: &TaskSet) -> Vec<Curve> {
    set.tasks().iter().filter_map(|task| Curve::periodic(task.period).ok()).collect()
}

/// Asserts as [`assert_fixed_priority`], for tasks with bursts.
pub(crate) fn assert_bursts(
    set: &TaskSet,
    curves: &[Curve],
    sections: Sections,
    analysis: &Analysis,
) {
    if set.len() > 6 {
        return;
    }
    for position in 0..set.len() {
        let Some(bound) = analysis.tasks[position].outcome.response() else { continue };
        let worst = worst_of(set, curves, sections, position, analysis);
        assert!(
            worst.is_none_or(|worst| worst.from_arrival <= bound.from_arrival
                && worst.from_release <= bound.from_release),
            "task {position} of {set:?} {curves:?}, {sections:?}: {worst:?} simulated, bound {bound:?}"
        );
    }
}

/// The responses as [`worst_fixed_priority`], for tasks with these arrivals.
pub(crate) fn worst_of(
    set: &TaskSet,
    curves: &[Curve],
    sections: Sections,
    position: usize,
    analysis: &Analysis,
) -> Option<ResponseTime> {
    let own = &set.tasks()[position];
    let equals = set.tasks().iter().filter(|t| t.priority == own.priority).count() > 1;
    // Among equals it matters when a job is released, not only that it is.
    let (offsets, delays) = if equals { (own.period, own.jitter + 1) } else { (1, 1) };
    let last = analysis.points(position).iter().map(|p| p.finish).max()?;
    let units = last.checked_add(own.period)?.checked_mul(offsets)?.checked_mul(delays)?;
    if units > MOST_UNITS {
        return None;
    }
    let mut worst = ResponseTime { from_arrival: 0, from_release: 0 };
    for offset in 0..offsets {
        for delay in 0..delays {
            let found =
                simulate(set, curves, sections, position, ArrivalOffset { offset, delay }, last);
            worst.from_arrival = worst.from_arrival.max(found.from_arrival);
            worst.from_release = worst.from_release.max(found.from_release);
        }
    }
    Some(worst)
}

/// When jobs of the task under analysis come.
#[derive(Clone, Copy, Debug, Default)]
struct ArrivalOffset {
    /// Nominal arrival of the first, plus the task's jitter.
    offset: u64,
    /// How much later releases are than they could be; never later than jitter allows.
    delay: u64,
}

fn tail(task: &Task, sections: Sections) -> u64 {
    match sections {
        Sections::Preemptive | Sections::Floating => 0,
        Sections::NonPreemptive => task.cost,
        Sections::Limited => task.last,
    }
}

/// All jobs of a task whose release is before `until`; `own` if it is the task under analysis.
fn jobs_of(
    (task, curve): (&Task, &Curve),
    own: Option<ArrivalOffset>,
    sections: Sections,
    until: u64,
    jobs: &mut Vec<Job>,
) {
    let ArrivalOffset { offset, delay } = own.unwrap_or_default();
    let nominals = (1..).map_while(|number| offset.checked_add(curve.distance(number)?));
    for nominal in nominals.take_while(|nominal| nominal.saturating_sub(task.jitter) < until) {
        jobs.push(Job {
            priority: task.priority,
            release: (nominal.saturating_sub(task.jitter) + delay).min(nominal),
            nominal,
            own: own.is_some(),
            remaining: task.cost,
            tail: tail(task, sections),
        });
    }
}

fn simulate(
    set: &TaskSet,
    curves: &[Curve],
    sections: Sections,
    position: usize,
    own: ArrivalOffset,
    until: u64,
) -> ResponseTime {
    let task = &set.tasks()[position];
    let mut jobs = Vec::new();
    let mut blocker = 0;
    for (other, t) in set.tasks().iter().enumerate() {
        if t.priority < task.priority {
            let segment = match sections {
                Sections::Preemptive => 0,
                Sections::NonPreemptive => t.cost,
                Sections::Limited | Sections::Floating => t.np,
            };
            blocker = blocker.max(segment.saturating_sub(1));
        } else {
            let own = (other == position).then_some(own);
            jobs_of((t, &curves[other]), own, sections, until, &mut jobs);
        }
    }
    blocker += task.blocking;
    let mut worst = ResponseTime { from_arrival: 0, from_release: 0 };
    let mut held: Option<usize> = None;
    for now in blocker..until {
        let ready = |job: &Job| job.release <= now && job.remaining > 0;
        // Of equals the first released; of those released together ours is last.
        let chosen = held.or_else(|| {
            let order =
                |i: &usize| (std::cmp::Reverse(jobs[*i].priority), jobs[*i].release, jobs[*i].own);
            (0..jobs.len()).filter(|i| ready(&jobs[*i])).min_by_key(order)
        });
        let Some(index) = chosen else { continue };
        let job = &mut jobs[index];
        job.remaining -= 1;
        held = (job.remaining > 0 && job.remaining < job.tail).then_some(index);
        if job.remaining == 0 && job.own {
            // The nominal arrival is a jitter before what the job remembers.
            let finish = now + 1;
            worst.from_arrival = worst.from_arrival.max(finish + task.jitter - job.nominal);
            worst.from_release = worst.from_release.max(finish - job.release);
        }
    }
    worst
}

/// Asserts as [`assert_fixed_priority`], with preemption thresholds.
pub(crate) fn assert_thresholds(set: &TaskSet, thresholds: &[u32], analysis: &Analysis) {
    if set.len() > 6 {
        return;
    }
    for position in 0..set.len() {
        let Some(bound) = analysis.tasks[position].outcome.response() else { continue };
        let worst = worst_with_thresholds(set, thresholds, position, analysis);
        assert!(
            worst.is_none_or(|worst| worst.from_arrival <= bound.from_arrival
                && worst.from_release <= bound.from_release),
            "task {position} of {set:?} {thresholds:?}: {worst:?} simulated, bound {bound:?}"
        );
    }
}

/// The worst response of a task with thresholds: every offset of its first job, behind every job of
/// lower priority that may have just begun; `None` if that takes too long.
pub(crate) fn worst_with_thresholds(
    set: &TaskSet,
    thresholds: &[u32],
    position: usize,
    analysis: &Analysis,
) -> Option<ResponseTime> {
    let own = &set.tasks()[position];
    let equals = set.tasks().iter().filter(|t| t.priority == own.priority).count() > 1;
    let (offsets, delays) = if equals { (own.period, own.jitter + 1) } else { (1, 1) };
    let last = analysis.points(position).iter().map(|p| p.finish).max()?;
    let units = last.checked_add(own.period)?.checked_mul(offsets)?.checked_mul(delays)?;
    if units.checked_mul(set.len() as u64)? > MOST_UNITS {
        return None;
    }
    let mut worst = ResponseTime { from_arrival: 0, from_release: 0 };
    for offset in 0..offsets {
        for delay in 0..delays {
            for blocker in 0..set.len() {
                let own = ArrivalOffset { offset, delay };
                let found = simulate_thresholds(set, thresholds, position, own, blocker, last);
                worst.from_arrival = worst.from_arrival.max(found.from_arrival);
                worst.from_release = worst.from_release.max(found.from_release);
            }
        }
    }
    Some(worst)
}

/// All that is not of lower priority begins at 0; `blocker`, if of lower priority, began a unit
/// before.
fn simulate_thresholds(
    set: &TaskSet,
    thresholds: &[u32],
    position: usize,
    own: ArrivalOffset,
    blocker: usize,
    until: u64,
) -> ResponseTime {
    let task = &set.tasks()[position];
    // Each job with the priority that it has from its first unit on, and its cost.
    let mut jobs: Vec<(Job, u32, u64)> = Vec::new();
    for (other, t) in set.tasks().iter().enumerate().filter(|(_, t)| t.priority >= task.priority) {
        let own = (other == position).then_some(own);
        let mut of_task = Vec::new();
        let Ok(curve) = Curve::periodic(t.period) else { continue };
        jobs_of((t, &curve), own, Sections::Preemptive, until, &mut of_task);
        jobs.extend(of_task.into_iter().map(|job| (job, thresholds[other], t.cost)));
    }
    let lower = &set.tasks()[blocker];
    if lower.priority < task.priority {
        let job = Job {
            priority: lower.priority,
            release: 0,
            nominal: 0,
            own: false,
            remaining: lower.cost - 1,
            tail: 0,
        };
        jobs.push((job, thresholds[blocker], lower.cost));
    }
    let mut worst = ResponseTime { from_arrival: 0, from_release: 0 };
    for now in task.blocking..until {
        let key = |at: &usize| {
            let (job, threshold, cost) = &jobs[*at];
            let begun = job.remaining < *cost;
            let priority = if begun { *threshold } else { job.priority };
            (std::cmp::Reverse(priority), !begun, job.release, job.own)
        };
        let ready = |at: &usize| jobs[*at].0.release <= now && jobs[*at].0.remaining > 0;
        let Some(at) = (0..jobs.len()).filter(ready).min_by_key(key) else { continue };
        let job = &mut jobs[at].0;
        job.remaining -= 1;
        if job.remaining == 0 && job.own {
            let finish = now + 1;
            worst.from_arrival = worst.from_arrival.max(finish + task.jitter - job.nominal);
            worst.from_release = worst.from_release.max(finish - job.release);
        }
    }
    worst
}

/// Asserts as [`assert_fixed_priority`], for EDF.
pub(crate) fn assert_edf(set: &TaskSet, sections: Sections, analysis: &Analysis) {
    if set.len() > 6 || set.tasks().iter().any(|t| t.suspension > 0) {
        return;
    }
    for position in 0..set.len() {
        let Some(bound) = analysis.tasks[position].outcome.response() else { continue };
        let Some(worst) = worst_edf(set, sections, position, analysis) else { continue };
        assert!(
            worst.from_arrival <= bound.from_arrival && worst.from_release <= bound.from_release,
            "task {position} of {set:?}, {sections:?}: {worst:?} simulated, bound {bound:?}"
        );
    }
}

/// The worst response of a task under EDF: every offset of its first job, and every segment that
/// may have just begun, by simulation; `None` if that takes too long.
pub(crate) fn worst_edf(
    set: &TaskSet,
    sections: Sections,
    position: usize,
    analysis: &Analysis,
) -> Option<ResponseTime> {
    let own = &set.tasks()[position];
    let last = analysis.points(position).iter().map(|p| p.finish).max()?;
    let units = last.checked_add(own.period)?.checked_mul(own.period)?;
    let units = units.checked_mul(set.len() as u64)?;
    if units > MOST_UNITS {
        return None;
    }
    let mut worst = ResponseTime { from_arrival: 0, from_release: 0 };
    for offset in 0..own.period {
        for blocker in 0..set.len() {
            let found = simulate_edf(set, sections, position, offset, blocker, last);
            worst.from_arrival = worst.from_arrival.max(found.from_arrival);
            worst.from_release = worst.from_release.max(found.from_release);
        }
    }
    Some(worst)
}

/// All tasks but ours begin at 0, `blocker` (unless it is ours) instead a unit before with its
/// longest segment.
fn simulate_edf(
    set: &TaskSet,
    sections: Sections,
    position: usize,
    offset: u64,
    blocker: usize,
    until: u64,
) -> ResponseTime {
    let task = &set.tasks()[position];
    let mut worst = ResponseTime { from_arrival: 0, from_release: 0 };
    let segment = match sections {
        Sections::Preemptive => 0,
        Sections::NonPreemptive => set.tasks()[blocker].cost,
        Sections::Limited | Sections::Floating => set.tasks()[blocker].np,
    };
    let blocked = blocker != position && segment > 1;
    let busy = task.blocking + if blocked { segment - 1 } else { 0 };
    let mut jobs = Vec::new();
    let curves = periodic(set);
    for (other, t) in set.tasks().iter().enumerate() {
        let own = ArrivalOffset { offset, delay: 0 };
        let own = (other == position).then_some(own);
        if own.is_some() || !(blocked && other == blocker) {
            let from = jobs.len();
            jobs_of((t, &curves[other]), own, sections, until, &mut jobs);
            // Due dates in the place of priorities; jitter of all is added to keep them positive.
            for job in &mut jobs[from..] {
                let due = job.nominal + t.deadline + MOST_UNITS - t.jitter;
                job.priority = u32::MAX - u32::try_from(due).unwrap_or(u32::MAX);
            }
        }
    }
    // Who blocks is due later than our job; those of ours that are due no earlier do not count.
    let blocks_until = set.tasks()[blocker].deadline;
    let mut held: Option<usize> = None;
    for now in busy..until {
        let ready = |job: &Job| job.release <= now && job.remaining > 0;
        let chosen = held.or_else(|| {
            let order = |i: &usize| (std::cmp::Reverse(jobs[*i].priority), jobs[*i].own, *i);
            (0..jobs.len()).filter(|i| ready(&jobs[*i])).min_by_key(order)
        });
        let Some(index) = chosen else { continue };
        let job = &mut jobs[index];
        job.remaining -= 1;
        held = (job.remaining > 0 && job.remaining < job.tail).then_some(index);
        let counts = !blocked || job.nominal + task.deadline < blocks_until + task.jitter;
        if job.remaining == 0 && job.own && counts {
            let finish = now + 1;
            worst.from_arrival = worst.from_arrival.max(finish + task.jitter - job.nominal);
            worst.from_release = worst.from_release.max(finish - job.release);
        }
    }
    worst
}
