//! The equations of busy windows under fixed priorities, checked by substitution.
//!
//! Owns: what [`fixed_priority`] checks. Must not: search.

use std::cmp::Ordering;

use crate::exact_fraction::compare_shares;
use crate::fixed_priority::{Sections, TimeModel};
use crate::task::{Task, TaskSet};
use crate::verdict::{Analysis, Point, ResponseBound, ResponseTime, Window};

use super::{Defect, check_verdict, released_before, released_by};
use crate::sections::segment_before;

/// Checks an answer of [`crate::fixed_priority::analyse`].
///
/// # Errors
/// The first property that does not hold.
pub fn fixed_priority(
    set: &TaskSet,
    sections: Sections,
    time: TimeModel,
    analysis: &Analysis,
) -> Result<(), Defect> {
    for (task, result) in analysis.tasks.iter().enumerate() {
        let equation = Equation::new(set, task, sections, time, analysis);
        match (&result.outcome, equation) {
            (ResponseBound::Bounded(bound), Some(equation)) => {
                let points = analysis.points(task);
                equation.check_points(points)?;
                equation.check_window(points, result.window, *bound)?;
                check_bound(task, &set.tasks()[task], points, *bound)?;
            }
            (ResponseBound::Bounded(_), None) => return Err(Defect::Numbers { task }),
            (ResponseBound::Unbounded, Some(equation)) if !equation.overloaded() => {
                return Err(Defect::Verdict { task });
            }
            (ResponseBound::Unbounded | ResponseBound::Unknown(_), _) => {}
        }
        check_verdict(task, &set.tasks()[task], result)?;
    }
    Ok(())
}

fn check_bound(
    position: usize,
    task: &Task,
    points: &[Point],
    bound: ResponseTime,
) -> Result<(), Defect> {
    let arrival = |p: &Point| {
        let nominal = u128::from(p.jobs - 1) * u128::from(task.period);
        (u128::from(p.finish) + u128::from(task.jitter))
            .saturating_sub(nominal.max(p.offset.into()))
    };
    let from_arrival = points.iter().map(arrival).max();
    let from_release = points.iter().map(|p| p.finish.saturating_sub(p.offset)).max();
    let holds =
        from_arrival == Some(bound.from_arrival.into()) && from_release == Some(bound.from_release);
    if holds { Ok(()) } else { Err(Defect::Bound { task: position }) }
}

/// The equation of one task, as the papers write it.
struct Equation<'a> {
    position: usize,
    own: &'a Task,
    equals: Vec<&'a Task>,
    /// More urgent tasks, each with the jitter that covers its suspension.
    higher: Vec<(&'a Task, u64)>,
    blocking: u128,
    cost: u128,
    rest: u128,
}

impl<'a> Equation<'a> {
    fn new(
        set: &'a TaskSet,
        position: usize,
        sections: Sections,
        time: TimeModel,
        analysis: &Analysis,
    ) -> Option<Equation<'a>> {
        let own = &set.tasks()[position];
        let mut equation = Equation {
            position,
            own,
            equals: Vec::new(),
            higher: Vec::new(),
            blocking: u128::from(own.blocking),
            cost: u128::from(own.cost) + u128::from(own.suspension),
            rest: match sections {
                Sections::Preemptive | Sections::Floating => 0,
                Sections::NonPreemptive => u128::from(own.cost - 1),
                Sections::Limited => u128::from(own.last.saturating_sub(1)),
            },
        };
        let mut segment = 0;
        for (other, task) in set.tasks().iter().enumerate().filter(|(o, _)| *o != position) {
            match task.priority.cmp(&own.priority) {
                Ordering::Greater if task.suspension == 0 => {
                    equation.higher.push((task, task.jitter));
                }
                Ordering::Greater => {
                    let bound = analysis.tasks[other].outcome.response()?.from_arrival;
                    let jitter = bound.checked_sub(task.cost).filter(|_| bound <= task.period);
                    equation.higher.push((task, jitter?));
                }
                Ordering::Equal => equation.equals.push(task),
                Ordering::Less => segment = segment.max(segment_before(task, sections, time)),
            }
        }
        equation.blocking += u128::from(segment);
        Some(equation)
    }

    fn overloaded(&self) -> bool {
        // Suspension does not count: while a task suspends itself, others run.
        let own = (self.own.cost, self.own.period);
        let equals = self.equals.iter().map(|t| (t.cost, t.period));
        let higher = self.higher.iter().map(|(t, _)| (t.cost, t.period));
        let all = std::iter::once(own).chain(equals).chain(higher);
        compare_shares(all, (1, 1)) == Ordering::Greater
    }

    fn check_points(&self, points: &[Point]) -> Result<(), Defect> {
        for (index, point) in points.iter().enumerate() {
            let Some(x) = u128::from(point.finish).checked_sub(self.rest) else {
                return Err(Defect::NotFixed { task: self.position, point: index });
            };
            let own = u128::from(point.jobs) * self.cost;
            let equals = self
                .equals
                .iter()
                .map(|t| released_by(point.offset.into(), t.jitter, t.period) * u128::from(t.cost));
            let higher = self
                .higher
                .iter()
                .map(|(t, jitter)| released_before(x, *jitter, t.period) * u128::from(t.cost));
            let sum = self.blocking + own + equals.sum::<u128>() + higher.sum::<u128>();
            if sum != x + self.rest {
                return Err(Defect::NotFixed { task: self.position, point: index });
            }
        }
        Ok(())
    }

    fn check_window(
        &self,
        points: &[Point],
        window: Window,
        bound: ResponseTime,
    ) -> Result<(), Defect> {
        let broken = Defect::Window { task: self.position };
        let period = u128::from(self.own.period);
        let jitter = u128::from(self.own.jitter);
        let (jobs, limit) = match window {
            Window::Closed => {
                let last = points.last().ok_or(broken)?;
                let next = u128::from(last.jobs) * period;
                let closed = u128::from(last.finish) <= next.saturating_sub(jitter);
                if !closed || self.rest > 0 || !self.equals.is_empty() {
                    return Err(broken);
                }
                (u128::from(last.jobs), u128::MAX)
            }
            Window::Length(length) => {
                let length = u128::from(length);
                if self.blocking + self.all_before(length) > length {
                    return Err(broken);
                }
                let jobs = (length + jitter).div_ceil(period);
                if !self.equals.is_empty() {
                    return self.check_among_equals(points, jobs, length, bound);
                }
                (jobs, length)
            }
            Window::Repeats(after) => {
                let after = u128::from(after);
                let divides = |t: &Task| after % u128::from(t.period) == 0;
                let mut all = self.equals.iter().chain(self.higher.iter().map(|(t, _)| t));
                let divides = all.all(|t| divides(t)) && divides(self.own);
                if !divides || self.work_in(after) != after {
                    return Err(broken);
                }
                ((after + jitter) / period + 1, u128::MAX)
            }
        };
        self.check_cover(points, jobs, limit)
    }

    fn all_before(&self, window: u128) -> u128 {
        let own = released_before(window, self.own.jitter, self.own.period) * self.cost;
        let work =
            |t: &Task, jitter: u64| released_before(window, jitter, t.period) * u128::from(t.cost);
        let equals: u128 = self.equals.iter().map(|t| work(t, t.jitter)).sum();
        own + equals + self.higher.iter().map(|(t, jitter)| work(t, *jitter)).sum::<u128>()
    }

    /// Work of all tasks in a time that all periods divide.
    fn work_in(&self, time: u128) -> u128 {
        let work = |t: &Task| time / u128::from(t.period) * u128::from(t.cost);
        let own = time / u128::from(self.own.period) * self.cost;
        let equals: u128 = self.equals.iter().map(|t| work(t)).sum();
        own + equals + self.higher.iter().map(|(t, _)| work(t)).sum::<u128>()
    }

    /// Every job from 1 to `jobs` has its points, and between two of them nothing changes.
    fn check_cover(&self, points: &[Point], jobs: u128, limit: u128) -> Result<(), Defect> {
        let missing = |point: usize| Err(Defect::Missing { task: self.position, point });
        let mut at = 0;
        let mut job = 0;
        while job < jobs {
            job += 1;
            let nominal = (job - 1) * u128::from(self.own.period);
            let start = nominal.saturating_sub(self.own.jitter.into());
            let end = (nominal + u128::from(self.own.period)).min(limit);
            let mut offset = start;
            let mut nominal_seen = nominal >= end || self.equals.is_empty();
            loop {
                let found = points
                    .get(at)
                    .is_some_and(|p| u128::from(p.jobs) == job && u128::from(p.offset) == offset);
                if !found {
                    return missing(at);
                }
                nominal_seen |= offset == nominal;
                let next = points.get(at + 1).filter(|p| u128::from(p.jobs) == job);
                let until = next.map_or(end, |p| p.offset.into());
                if until > offset + 1 && self.equals_by(until - 1) != self.equals_by(offset) {
                    return missing(at);
                }
                at += 1;
                match next {
                    Some(_) => offset = until,
                    None => break,
                }
            }
            if !nominal_seen {
                return missing(at);
            }
        }
        if at == points.len() { Ok(()) } else { missing(at) }
    }

    /// Of every job from 1 to `jobs`, the cases in which it may come first or after others of its priority
    /// are points, or no case between two points responds later than the bound.
    fn check_among_equals(
        &self,
        points: &[Point],
        jobs: u128,
        limit: u128,
        bound: ResponseTime,
    ) -> Result<(), Defect> {
        let missing = |point: usize| Defect::Missing { task: self.position, point };
        let arrival = i128::from(bound.from_arrival) - i128::from(self.own.jitter);
        let room = arrival.min(bound.from_release.into());
        let (mut left, mut job) = (points.len(), jobs);
        while job > 0 {
            let of_job = points[..left].iter().rev().take_while(|p| u128::from(p.jobs) == job);
            let from = left - of_job.count();
            if from < left {
                self.check_cases(points, from..left, limit, room).map_err(missing)?;
                (left, job) = (from, job - 1);
                continue;
            }
            // Jobs without a point: all at once, or one by one.
            let before = points[..left].last().map_or(0, |p| u128::from(p.jobs));
            let settled = |first: u128, last: u128| {
                let (start, _, _) = self.places(first, limit);
                let (_, _, end) = self.places(last, limit);
                self.is_settled(start, end, &points[left..], room)
            };
            let settled_alone = || (before + 1..=job).all(|job| settled(job, job));
            if before >= job || !(settled(before + 1, job) || settled_alone()) {
                return Err(missing(left));
            }
            job = before;
        }
        if left == 0 { Ok(()) } else { Err(missing(0)) }
    }

    /// Where a job is released at the earliest and nominally, and what is after all its places.
    fn places(&self, job: u128, limit: u128) -> (u128, u128, u128) {
        let nominal = (job - 1) * u128::from(self.own.period);
        let start = nominal.saturating_sub(self.own.jitter.into());
        (start, nominal, (nominal + u128::from(self.own.period)).min(limit).max(start + 1))
    }

    /// The cases of one job, whose points are in a range; gives the point at which one is missing.
    fn check_cases(
        &self,
        points: &[Point],
        range: std::ops::Range<usize>,
        limit: u128,
        room: i128,
    ) -> Result<(), usize> {
        let (start, nominal, end) = self.places(points[range.start].jobs.into(), limit);
        let mut first = start;
        for (at, point) in points[..range.end].iter().enumerate().skip(range.start) {
            let offset = u128::from(point.offset);
            let skipped = first < offset;
            if offset < start || offset >= end {
                return Err(at);
            }
            if skipped && !self.is_settled(first, offset, &points[at..], room) {
                return Err(at);
            }
            let next = |t: &&Task| {
                let jobs = released_by(offset, t.jitter, t.period);
                (jobs * u128::from(t.period)).saturating_sub(t.jitter.into())
            };
            let next = self.equals.iter().map(next).min().unwrap_or(end);
            first = if nominal > offset { next.min(nominal) } else { next };
        }
        let settled = first >= end || self.is_settled(first, end, &points[range.end..], room);
        if settled { Ok(()) } else { Err(range.end) }
    }

    /// Whether all cases from `first` to before `end` end within `room` after their offsets: with the
    /// work of a case behind them, one of `later`, or with the work there can be by then, if no
    /// higher priority brings more. The least offset is the worst, as all shares are at most 1.
    fn is_settled(&self, first: u128, end: u128, later: &[Point], room: i128) -> bool {
        let whole = |value: u128| i128::try_from(value).unwrap_or(i128::MAX);
        let limit = whole(first).saturating_add(room);
        let behind = later.iter().find(|p| u128::from(p.offset) + 1 >= end);
        if behind.is_some_and(|p| i128::from(p.finish) <= limit) {
            return true;
        }
        let own = (self.own.jitter, self.own.period, self.cost);
        let equals = self.equals.iter().map(|t| (t.jitter, t.period, u128::from(t.cost)));
        let (mut work, mut parts) = (self.blocking, 0u128);
        for (jitter, period, cost) in equals.chain([own]) {
            let most = released_by(end - 1, jitter, period).saturating_mul(cost);
            let since = first + u128::from(jitter) + u128::from(period);
            let period = u128::from(period);
            match since.checked_mul(cost).filter(|line| line / period < most) {
                Some(line) => {
                    work = work.saturating_add(line / period);
                    parts += ((line % period) << 64).div_ceil(period);
                }
                None => work = work.saturating_add(most),
            }
        }
        self.higher.is_empty() && whole(work.saturating_add(parts >> 64)) <= limit
    }

    /// How many jobs of equal priority are released up to and at an instant.
    fn equals_by(&self, instant: u128) -> u128 {
        self.equals.iter().map(|t| released_by(instant, t.jitter, t.period)).sum()
    }
}
