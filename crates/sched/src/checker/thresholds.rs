//! The equations of starts and completions with preemption thresholds, checked by substitution.
//!
//! Owns: what [`thresholds`] checks. Must not: search.

use crate::fixed_priority::TimeModel;
use crate::task::{Task, TaskSet};
use crate::thresholds::ThresholdAnalysis;
use crate::verdict::{ResponseBound, Window};

use super::{Defect, check_verdict, released_before, released_by};

/// Checks an answer of [`crate::thresholds::analyse`].
///
/// # Errors
/// The first property that does not hold.
pub fn thresholds(of: &TaskSet, time: TimeModel, answer: &ThresholdAnalysis) -> Result<(), Defect> {
    for (task, result) in answer.analysis.tasks.iter().enumerate() {
        if let ResponseBound::Bounded(bound) = result.outcome {
            let case = Case { of, task, blocking: blocking(of, task, time) };
            case.check_points(answer)?;
            case.check_cover(answer, result.window)?;
            let own = case.own();
            let nominal = |jobs: u64| u128::from(jobs - 1) * u128::from(own.period);
            let points = answer.analysis.points(task);
            let arrival = points.iter().map(|p| {
                let at = nominal(p.jobs).max(p.offset.into());
                (u128::from(p.finish) + u128::from(own.jitter)).saturating_sub(at)
            });
            let release = points.iter().map(|p| p.finish.saturating_sub(p.offset));
            if arrival.max() != Some(bound.from_arrival.into())
                || release.max() != Some(bound.from_release)
            {
                return Err(Defect::Bound { task });
            }
        }
        check_verdict(task, &of.tasks()[task], result)?;
    }
    Ok(())
}

/// The longest job of lower priority whose threshold is not below the task's priority, a unit of
/// which has passed in discrete time; and the blocking stated.
fn blocking(of: &TaskSet, task: usize, time: TimeModel) -> u128 {
    let own = &of.tasks()[task];
    let mut longest = 0;
    for other in of.tasks() {
        let threshold = other.threshold().unwrap_or(other.priority);
        if other.priority < own.priority && threshold >= own.priority {
            longest = longest.max(other.cost);
        }
    }
    let passed = u64::from(time == TimeModel::Discrete && longest > 0);
    u128::from(own.blocking) + u128::from(longest - passed)
}

struct Case<'a> {
    of: &'a TaskSet,
    task: usize,
    blocking: u128,
}

impl<'a> Case<'a> {
    fn own(&self) -> &'a Task {
        &self.of.tasks()[self.task]
    }

    fn others(&self) -> impl Iterator<Item = &'a Task> {
        let task = self.task;
        self.of.tasks().iter().enumerate().filter(move |(at, _)| *at != task).map(|(_, t)| t)
    }

    fn work_by(&self, instant: u128, which: impl Fn(&Task) -> bool) -> u128 {
        let work = |t: &Task| released_by(instant, t.jitter, t.period) * u128::from(t.cost);
        self.others().filter(|t| which(t)).map(work).sum()
    }

    fn check_points(&self, answer: &ThresholdAnalysis) -> Result<(), Defect> {
        let own = self.own();
        let threshold = own.threshold().unwrap_or(own.priority);
        let (points, starts) = (answer.analysis.points(self.task), answer.starts(self.task));
        for (index, point) in points.iter().enumerate() {
            let broken = Defect::NotFixed { task: self.task, point: index };
            let start = u128::from(*starts.get(index).ok_or(broken)?);
            let before = u128::from(point.jobs - 1) * u128::from(own.cost);
            let equals = self.work_by(point.offset.into(), |t| t.priority == own.priority);
            let higher = self.work_by(start, |t| t.priority > own.priority);
            if start != self.blocking + before + equals + higher {
                return Err(broken);
            }
            let finish = u128::from(point.finish);
            let since = |t: &Task| {
                let by_start = released_by(start, t.jitter, t.period);
                let jobs = released_before(finish, t.jitter, t.period).checked_sub(by_start);
                jobs.map_or(u128::MAX, |jobs| jobs * u128::from(t.cost))
            };
            let above = self.others().filter(|t| t.priority > threshold).map(since);
            if finish != start + u128::from(own.cost) + above.fold(0, u128::saturating_add) {
                return Err(broken);
            }
        }
        Ok(())
    }

    /// The window is no longer than stated, every job in it has its points, and between two of them
    /// no job of equal priority comes.
    fn check_cover(&self, answer: &ThresholdAnalysis, window: Window) -> Result<(), Defect> {
        let own = self.own();
        let Window::Length(length) = window else { return Err(Defect::Window { task: self.task }) };
        let length = u128::from(length);
        let work = |t: &Task| released_before(length, t.jitter, t.period) * u128::from(t.cost);
        let counts = self.others().filter(|t| t.priority >= own.priority);
        if self.blocking + work(own) + counts.map(work).sum::<u128>() > length {
            return Err(Defect::Window { task: self.task });
        }
        let period = u128::from(own.period);
        let equals = |instant: u128| self.work_by(instant, |t| t.priority == own.priority);
        let alone = self.others().all(|t| t.priority != own.priority);
        let points = answer.analysis.points(self.task);
        let mut at = 0;
        for job in 1..=(length + u128::from(own.jitter)).div_ceil(period) {
            let missing = |point: usize| Defect::Missing { task: self.task, point };
            let nominal = (job - 1) * period;
            let end = (nominal + period).min(length);
            let of_job = points[at..].iter().take_while(|p| u128::from(p.jobs) == job).count();
            let mine = &points[at..at + of_job];
            let first = nominal.saturating_sub(own.jitter.into());
            if mine.first().map(|p| u128::from(p.offset)) != Some(first) {
                return Err(missing(at));
            }
            let mut offsets = mine.iter().map(|p| u128::from(p.offset));
            let placed = alone || nominal >= end || offsets.any(|offset| offset == nominal);
            for (index, point) in mine.iter().enumerate() {
                let until = mine.get(index + 1).map_or(end, |next| next.offset.into());
                let offset = u128::from(point.offset);
                if !placed || (until > offset + 1 && equals(until - 1) != equals(offset)) {
                    return Err(missing(at + index));
                }
            }
            at += of_job;
        }
        let rest = Defect::Missing { task: self.task, point: at };
        if at == points.len() { Ok(()) } else { Err(rest) }
    }
}
