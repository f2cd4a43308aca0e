//! The equations of deadline busy periods, checked by substitution.
//!
//! Owns: what [`edf`] checks. Must not: search.

use std::cmp::Ordering;

use crate::exact::compare_shares;
use crate::fixed_priority::{Sections, TimeModel};
use crate::task::{Task, TaskSet};
use crate::verdict::{Analysis, Outcome, Point, Window};

use super::{Defect, check_verdict, released_before, segment_before};

/// Checks an answer of [`crate::edf::response_times`].
///
/// # Errors
/// The first thing that does not hold.
pub fn edf(
    set: &TaskSet,
    sections: Sections,
    time: TimeModel,
    analysis: &Analysis,
) -> Result<(), Defect> {
    // Not suspension: while a task suspends itself, others run.
    let share = |t: &Task| (t.cost, t.period);
    let used = compare_shares(set.tasks().iter().map(share), (1, 1));
    for (task, result) in analysis.tasks.iter().enumerate() {
        let case = Case { set, task, sections, time };
        match &result.outcome {
            Outcome::Bounded(bound) => {
                let points = analysis.points(task);
                case.check_points(points)?;
                case.check_cover(points, result.window)?;
                let jitter = case.own().jitter;
                let arrival = points
                    .iter()
                    .map(|p| p.finish.saturating_add(jitter).saturating_sub(p.offset))
                    .max();
                let release = points
                    .iter()
                    .map(|p| p.finish.saturating_sub(p.offset.saturating_sub(jitter)))
                    .max();
                if (arrival, release) != (Some(bound.from_arrival), Some(bound.from_release)) {
                    return Err(Defect::Bound { task });
                }
            }
            Outcome::Unbounded if used != Ordering::Greater => {
                return Err(Defect::Verdict { task });
            }
            Outcome::Unbounded | Outcome::Unknown(_) => {}
        }
        check_verdict(task, case.own(), result)?;
    }
    Ok(())
}

/// One task of a set.
struct Case<'a> {
    set: &'a TaskSet,
    task: usize,
    sections: Sections,
    time: TimeModel,
}

impl<'a> Case<'a> {
    fn own(&self) -> &'a Task {
        &self.set.tasks()[self.task]
    }

    fn others(&self) -> impl Iterator<Item = &'a Task> {
        let task = self.task;
        self.set.tasks().iter().enumerate().filter(move |(at, _)| *at != task).map(|(_, t)| t)
    }

    /// Jobs of another task that are due no later than ours, which arrives a jitter before `offset`.
    fn due_by(&self, offset: u128, other: &Task) -> u128 {
        let own = self.own();
        let until = offset + u128::from(own.deadline) + u128::from(other.jitter);
        let from = u128::from(own.jitter) + u128::from(other.deadline);
        until.checked_sub(from).map_or(0, |after| after / u128::from(other.period) + 1)
    }

    fn check_points(&self, points: &[Point]) -> Result<(), Defect> {
        let own = self.own();
        let rest = match self.sections {
            Sections::Preemptive | Sections::Floating => 0,
            Sections::NonPreemptive => u128::from(own.cost - 1),
            Sections::Limited => u128::from(own.last.saturating_sub(1)),
        };
        for (index, point) in points.iter().enumerate() {
            let broken = Defect::NotFixed { task: self.task, point: index };
            let offset = u128::from(point.offset);
            let x = u128::from(point.finish).checked_sub(rest).ok_or(broken)?;
            let due = offset + u128::from(own.deadline);
            let due = |t: &Task| due + u128::from(t.jitter);
            let later =
                self.others().filter(|t| u128::from(t.deadline) + u128::from(own.jitter) > due(t));
            let segment = later.map(|t| segment_before(t, self.sections, self.time)).max();
            let work = |t: &Task| {
                let jobs = released_before(x, t.jitter, t.period).min(self.due_by(offset, t));
                jobs * (u128::from(t.cost) + u128::from(t.suspension))
            };
            let jobs = offset / u128::from(own.period) + 1;
            let sum = u128::from(own.blocking)
                + u128::from(segment.unwrap_or(0))
                + jobs * (u128::from(own.cost) + u128::from(own.suspension))
                + self.others().map(work).sum::<u128>();
            if sum != x + rest || jobs != u128::from(point.jobs) {
                return Err(broken);
            }
        }
        Ok(())
    }

    /// The window is no longer than stated, and between two points nothing changes.
    fn check_cover(&self, points: &[Point], window: Window) -> Result<(), Defect> {
        let Window::Length(length) = window else { return Err(Defect::Window { task: self.task }) };
        let length = u128::from(length);
        let work = |t: &Task| {
            let cost = u128::from(t.cost) + u128::from(t.suspension);
            released_before(length, t.jitter, t.period) * cost
        };
        if self.set.tasks().iter().map(work).sum::<u128>() > length {
            return Err(Defect::Window { task: self.task });
        }
        let own = self.own();
        let count = |offset: u128| {
            let due = self.others().map(|t| self.due_by(offset, t)).sum::<u128>();
            due + offset / u128::from(own.period)
        };
        let end = length + u128::from(own.jitter);
        if points.first().map(|p| p.offset) != Some(0) {
            return Err(Defect::Missing { task: self.task, point: 0 });
        }
        for (index, point) in points.iter().enumerate() {
            let until = points.get(index + 1).map_or(end, |next| next.offset.into());
            let offset = u128::from(point.offset);
            if until <= offset || count(until - 1) != count(offset) {
                return Err(Defect::Missing { task: self.task, point: index });
            }
        }
        Ok(())
    }
}
