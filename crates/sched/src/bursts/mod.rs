//! Tasks whose jobs arrive in bursts.
//!
//! Owns: the analyses of sets whose tasks may have arrival curves ([`Task::with_bursts`]): response times
//! under fixed priorities (the busy window of Tindell, Burns and Wellings, RTSJ 1994, with the curves of
//! Richter, 2005, in the place of ceilings); demand under EDF. Without bursts, all answers are
//! those of [`crate::fixed_priority`] and [`crate::edf`]. Must not: bound the responses of tasks
//! that suspend themselves, or that have more than bursts.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use crate::curve::Curve;
use crate::edf::demand::{blocking_within, is_exact};
use crate::edf::qpa::Feasibility;
use crate::edf::steps::{DemandStream, each_step};
use crate::effort::StepLimit;
use crate::exact_fraction::compare_shares;
use crate::fixed_priority::{self, Sections, TimeModel};
use crate::fixed_priority::{judge_by, overloaded, refused, tail_of};
use crate::task::{Task, TaskFeature, TaskSet};
use crate::verdict::{
    Analysis, Point, Refusal, ResponseTime, TaskResult, Verdict, Window, Witness,
};

/// A set with the curve of each task, also of those that have no bursts.
pub(crate) struct BurstyTaskSet<'a> {
    pub(crate) set: &'a TaskSet,
    pub(crate) curves: Vec<Curve>,
}

impl BurstyTaskSet<'_> {
    pub(crate) fn of(set: &TaskSet) -> BurstyTaskSet<'_> {
        BurstyTaskSet { set, curves: set.tasks().iter().map(Task::arrivals).collect() }
    }

    fn is_plain(&self) -> bool {
        self.curves.iter().all(Curve::is_periodic)
    }

    fn is_as_given(&self) -> bool {
        self.curves.iter().all(Curve::is_as_given)
    }

    /// Whether more is demanded than there is, in the long run.
    fn load(&self) -> Ordering {
        let share = |(task, curve): (&Task, &Curve)| (task.cost, curve.period());
        let shares = self.set.tasks().iter().zip(&self.curves).map(share);
        compare_shares(shares, (1, 1))
    }
}

/// Bounds response times under fixed priorities. Equal priorities are served first come, first
/// served.
#[must_use]
pub fn fixed_priority(set: &TaskSet, sections: Sections, time: TimeModel) -> Analysis {
    fixed_priority_by(set, sections, time, &mut StepLimit::default())
}

/// The same, which takes what it needs from an effort for several analyses.
#[must_use]
pub fn fixed_priority_by(
    set: &TaskSet,
    sections: Sections,
    time: TimeModel,
    effort: &mut StepLimit,
) -> Analysis {
    if !set.is_plain_but(TaskFeature::Bursts) {
        return fixed_priority::outside(set);
    }
    let bursty = BurstyTaskSet::of(set);
    if bursty.is_plain() {
        return fixed_priority::analyse_by(&set.plain(), sections, time, effort);
    }
    let analysis = with_curves(&bursty, sections, time, effort);
    debug_assert_eq!(crate::checker::bursts(set, sections, time, &analysis), Ok(()));
    #[cfg(debug_assertions)]
    crate::reference::assert_bursts(set, &bursty.curves, sections, &analysis);
    analysis
}

/// The search itself, also for sets without bursts.
pub(crate) fn with_curves(
    bursty: &BurstyTaskSet,
    sections: Sections,
    time: TimeModel,
    effort: &mut StepLimit,
) -> Analysis {
    let mut points = Vec::new();
    let suspends = bursty.set.tasks().iter().any(|task| task.suspension > 0);
    let mut tasks = Vec::with_capacity(bursty.set.len());
    for position in 0..bursty.set.len() {
        let from = points.len();
        let level = Level::new(bursty, position, sections, time);
        let solved = match (suspends, &level) {
            (true, _) => Err(Refusal::Suspension),
            (false, None) => Err(Refusal::Overflow),
            (false, Some(level)) => level.solve(effort, &mut points),
        };
        tasks.push(match solved {
            Ok(Some(window)) => task_result(bursty, position, &points, from, window),
            Ok(None) => overloaded(from),
            Err(why) => {
                points.truncate(from);
                refused(why, from)
            }
        });
    }
    Analysis { tasks, points }
}

/// The bounds of a job by a point: its nominal arrival is at the latest both a jitter before its
/// release and where its number puts it.
fn response(point: &Point, curve: &Curve, jitter: u64) -> Option<ResponseTime> {
    let nominal = curve.distance(point.jobs)?;
    let from_arrival = point.finish.checked_add(jitter)?.saturating_sub(nominal.max(point.offset));
    Some(ResponseTime { from_arrival, from_release: point.finish.saturating_sub(point.offset) })
}

fn task_result(
    bursty: &BurstyTaskSet,
    position: usize,
    points: &[Point],
    from: usize,
    window: Window,
) -> TaskResult {
    let (task, curve) = (&bursty.set.tasks()[position], &bursty.curves[position]);
    let exact = task.blocking == 0 && bursty.is_as_given();
    let response = |point: &Point| response(point, curve, task.jitter);
    judge_by(bursty.set, position, points, from..points.len(), window, exact, response)
}

/// Jobs of one task as others see them.
#[derive(Clone, Copy)]
struct Flow<'a> {
    curve: &'a Curve,
    cost: u64,
    jitter: u64,
}

impl Flow<'_> {
    fn work_before(&self, window: u64) -> Option<u64> {
        if window == 0 {
            return Some(0);
        }
        self.curve.before(window.checked_add(self.jitter)?).checked_mul(self.cost)
    }

    fn work_by(&self, instant: u64) -> Option<u64> {
        self.curve.by(instant.checked_add(self.jitter)?).checked_mul(self.cost)
    }

    /// The earliest release of the job with this number, from 1.
    fn release(&self, number: u64) -> Option<u64> {
        Some(self.curve.distance(number)?.saturating_sub(self.jitter))
    }
}

/// Everything that decides when jobs of one task are done.
struct Level<'a> {
    task: Flow<'a>,
    equals: Vec<Flow<'a>>,
    higher: Vec<Flow<'a>>,
    blocking: u64,
    rest: u64,
}

impl<'a> Level<'a> {
    fn new(
        bursty: &'a BurstyTaskSet<'a>,
        position: usize,
        sections: Sections,
        time: TimeModel,
    ) -> Option<Level<'a>> {
        let task = &bursty.set.tasks()[position];
        let flow = |at: usize| {
            let task = &bursty.set.tasks()[at];
            Flow { curve: &bursty.curves[at], cost: task.cost, jitter: task.jitter }
        };
        let (mut equals, mut higher, mut segment) = (Vec::new(), Vec::new(), 0);
        for (at, other) in bursty.set.tasks().iter().enumerate().filter(|(at, _)| *at != position) {
            match other.priority.cmp(&task.priority) {
                Ordering::Greater => higher.push(flow(at)),
                Ordering::Equal => equals.push(flow(at)),
                Ordering::Less => {
                    segment = segment.max(crate::sections::segment_before(other, sections, time));
                }
            }
        }
        let blocking = task.blocking.checked_add(segment)?;
        let rest = tail_of(task, sections).saturating_sub(1);
        Some(Level { task: flow(position), equals, higher, blocking, rest })
    }

    fn all(&self) -> impl Iterator<Item = &Flow<'a>> + Clone {
        std::iter::once(&self.task).chain(&self.equals).chain(&self.higher)
    }

    /// All points of the window; `None` if more is demanded than there is.
    fn solve(
        &self,
        effort: &mut StepLimit,
        points: &mut Vec<Point>,
    ) -> Result<Option<Window>, Refusal> {
        match compare_shares(self.all().map(|f| (f.cost, f.curve.period())), (1, 1)) {
            Ordering::Greater => return Ok(None),
            // Bursts, jitter or blocking may keep the window open for ever.
            Ordering::Equal => return Err(Refusal::Endless),
            Ordering::Less => {}
        }
        let flows: Vec<Flow> = self.all().copied().collect();
        let length = least_fixed_point(self.blocking, 1, &flows, effort)?;
        let end = length.checked_add(self.task.jitter).ok_or(Refusal::Overflow)?;
        let mut from = 1;
        for jobs in 1..=self.task.curve.before(end) {
            let mut first = None;
            for offset in self.offsets(jobs, length, effort)? {
                let x = self.finish_time(jobs, offset, from, effort)?;
                first = first.or(Some(x));
                let finish = x.checked_add(self.rest).ok_or(Refusal::Overflow)?;
                points.push(Point { offset, jobs, finish });
            }
            from = first.unwrap_or(from);
        }
        Ok(Some(Window::Length(length)))
    }

    /// Offsets of a job at which its delay may be longest, ascending: as early as can be, at its
    /// nominal place, and wherever a job of equal priority comes before it.
    fn offsets(&self, jobs: u64, limit: u64, effort: &mut StepLimit) -> Result<Vec<u64>, Refusal> {
        effort.charge(self.equals.len())?;
        let nominal = self.task.curve.distance(jobs).ok_or(Refusal::Overflow)?;
        let start = nominal.saturating_sub(self.task.jitter);
        if self.equals.is_empty() {
            return Ok(vec![start]);
        }
        let end = self.task.curve.distance(jobs + 1).unwrap_or(u64::MAX).min(limit);
        let mut offsets = vec![start];
        offsets.extend((nominal < end).then_some(nominal));
        for equal in &self.equals {
            let mut number = equal.curve.by(start.saturating_add(equal.jitter)) + 1;
            while let Some(release) = equal.release(number).filter(|release| *release < end) {
                effort.charge(1)?;
                offsets.extend((release > start).then_some(release));
                number += 1;
            }
        }
        offsets.sort_unstable();
        offsets.dedup();
        Ok(offsets)
    }

    /// When the job can be preempted no longer; not before `from`.
    fn finish_time(
        &self,
        jobs: u64,
        offset: u64,
        from: u64,
        effort: &mut StepLimit,
    ) -> Result<u64, Refusal> {
        let own = jobs.checked_mul(self.task.cost).and_then(|own| own.checked_add(self.blocking));
        let add = |sum: u64, equal: &Flow| sum.checked_add(equal.work_by(offset)?);
        let base = self.equals.iter().try_fold(own.ok_or(Refusal::Overflow)?, add);
        let base = base.ok_or(Refusal::Overflow)? - self.rest;
        least_fixed_point(base, from.max(base), &self.higher, effort)
    }
}

/// The least `x` above 0 with `x = base + work(x)`, given that it is not below `from`.
fn least_fixed_point(
    base: u64,
    from: u64,
    flows: &[Flow],
    effort: &mut StepLimit,
) -> Result<u64, Refusal> {
    let mut x = from.max(1);
    loop {
        effort.charge(flows.len())?;
        let add = |sum: u64, flow: &Flow| sum.checked_add(flow.work_before(x)?);
        let next = flows.iter().try_fold(base, add).ok_or(Refusal::Overflow)?;
        if next <= x {
            return Ok(next.max(1));
        }
        x = next;
    }
}

/// Whether the demand under EDF ever exceeds the interval in which it is due: at every deadline
/// below the length of the longest busy period.
#[must_use]
pub fn edf(set: &TaskSet, sections: Sections, time: TimeModel) -> Feasibility {
    edf_by(set, sections, time, &mut StepLimit::default())
}

/// The same, which takes what it needs from an effort for several tests.
#[must_use]
pub fn edf_by(
    set: &TaskSet,
    sections: Sections,
    time: TimeModel,
    effort: &mut StepLimit,
) -> Feasibility {
    if !set.is_plain_but(TaskFeature::Bursts) {
        let verdict = Verdict::Unknown(Refusal::OutsideModel);
        return Feasibility { verdict, length: 0, visited: Vec::new() };
    }
    let bursty = BurstyTaskSet::of(set);
    if bursty.is_plain() {
        return crate::edf::qpa::feasible_by(&set.plain(), sections, time, effort);
    }
    let found = demand_with_curves(&bursty, sections, time, effort);
    debug_assert_eq!(crate::checker::bursty_demand(set, sections, time, &found), Ok(()));
    found
}

/// The test itself, also for sets without bursts.
pub(crate) fn demand_with_curves(
    bursty: &BurstyTaskSet,
    sections: Sections,
    time: TimeModel,
    effort: &mut StepLimit,
) -> Feasibility {
    let mut found = Feasibility { verdict: Verdict::Feasible, length: 0, visited: Vec::new() };
    if bursty.set.tasks().iter().any(|task| task.suspension > 0) {
        found.verdict = Verdict::Unknown(Refusal::Suspension);
        return found;
    }
    match bursty.load() {
        Ordering::Greater => found.verdict = Verdict::NoBound,
        Ordering::Equal => found.verdict = Verdict::Unknown(Refusal::Endless),
        Ordering::Less => {
            if let Err(why) = steps(bursty, sections, time, effort, &mut found) {
                found.verdict = Verdict::Unknown(why);
            }
        }
    }
    found
}

fn steps(
    bursty: &BurstyTaskSet,
    sections: Sections,
    time: TimeModel,
    effort: &mut StepLimit,
    found: &mut Feasibility,
) -> Result<(), Refusal> {
    let tasks = || bursty.set.tasks().iter().zip(&bursty.curves);
    let flow = |(t, curve)| Flow { curve, cost: Task::cost(t), jitter: t.jitter };
    let flows: Vec<Flow> = tasks().map(flow).collect();
    let blocking = blocking_within(bursty.set, 0, sections, time);
    let length = least_fixed_point(blocking, 1, &flows, effort)?;
    found.length = length.checked_add(1).ok_or(Refusal::Overflow)?;
    let due = |(t, curve): (&'_ Task, _)| DemandStream {
        curve,
        cost: t.cost,
        deadline: t.deadline,
        jitter: t.jitter,
    };
    let dues: Vec<DemandStream> = tasks().map(due).collect();
    let (mut worst, visited) = (None, &mut found.visited);
    each_step(&dues, found.length, effort, &mut |interval, demand| {
        let blocked = blocking_within(bursty.set, interval, sections, time);
        let demand = demand.saturating_add(u128::from(blocked));
        visited.push((interval, u64::try_from(demand).unwrap_or(u64::MAX)));
        if demand > u128::from(interval) {
            worst = Some((interval, u64::try_from(demand).unwrap_or(u64::MAX)));
        }
        worst.is_none()
    })?;
    if let Some((interval, demand)) = worst {
        let exact = bursty.is_as_given() && is_exact(bursty.set, sections);
        found.verdict = if exact {
            Verdict::Infeasible(Witness::Demand { interval, demand })
        } else {
            Verdict::Unknown(Refusal::NotExact)
        };
    }
    Ok(())
}
