//! The equations of deadline busy periods, checked by substitution.
//!
//! Owns: what [`edf`] checks. Must not: search.

use std::cmp::Ordering;

use crate::exact_fraction::compare_shares;
use crate::fixed_priority::{Sections, TimeModel};
use crate::task::{Task, TaskSet};
use crate::verdict::{Analysis, Point, ResponseBound, Window};

use super::{Defect, check_verdict, released_before};
use crate::sections::segment_before;

/// Checks an answer of [`crate::edf::response_times`].
///
/// # Errors
/// The first property that does not hold.
pub fn edf(
    set: &TaskSet,
    sections: Sections,
    time: TimeModel,
    analysis: &Analysis,
) -> Result<(), Defect> {
    // Suspension does not count: while a task suspends itself, others run.
    let share = |t: &Task| (t.cost, t.period);
    let used = compare_shares(set.tasks().iter().map(share), (1, 1));
    for (task, result) in analysis.tasks.iter().enumerate() {
        let case = Case { set, task, sections, time };
        match &result.outcome {
            ResponseBound::Bounded(bound) => {
                let points = analysis.points(task);
                case.check_points(points)?;
                case.check_cover(points, result.window, bound.from_release)?;
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
            ResponseBound::Unbounded if used != Ordering::Greater => {
                return Err(Defect::Verdict { task });
            }
            ResponseBound::Unbounded | ResponseBound::Unknown(_) => {}
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
            let work = |t: &Task| {
                released_before(x, t.jitter, t.period).min(self.due_by(offset, t)) * cost_of(t)
            };
            let jobs = offset / u128::from(own.period) + 1;
            let sum = u128::from(own.blocking)
                + u128::from(self.blocking(offset))
                + jobs * cost_of(own)
                + self.others().map(work).sum::<u128>();
            if sum != x + rest || jobs != u128::from(point.jobs) {
                return Err(broken);
            }
        }
        Ok(())
    }

    /// The window is no longer than stated, and between two points nothing changes, or no job responds
    /// later than the bound, which is at least `release` from its release.
    fn check_cover(&self, points: &[Point], window: Window, release: u64) -> Result<(), Defect> {
        let Window::Length(length) = window else { return Err(Defect::Window { task: self.task }) };
        let length = u128::from(length);
        let work = |t: &Task| released_before(length, t.jitter, t.period) * cost_of(t);
        if self.set.tasks().iter().map(work).sum::<u128>() > length {
            return Err(Defect::Window { task: self.task });
        }
        let jitter = self.own().jitter;
        let end = length + u128::from(jitter);
        let room = i128::from(release) - i128::from(jitter);
        if points.first().map(|p| p.offset) != Some(0) {
            return Err(Defect::Missing { task: self.task, point: 0 });
        }
        for (index, point) in points.iter().enumerate() {
            let next = points.get(index + 1);
            let until = next.map_or(end, |next| next.offset.into());
            let offset = u128::from(point.offset);
            let first = self.next_case(offset);
            let settled = || {
                let by_end = next.is_some_and(|next| {
                    self.blocking(first) == self.blocking(until)
                        && signed(next.finish.into()) <= signed(first).saturating_add(room)
                });
                let counted = if next.is_some() { until } else { until - 1 };
                by_end || self.by_work(first, counted, room)
            };
            if until <= offset || (first < until && !settled()) {
                return Err(Defect::Missing { task: self.task, point: index });
            }
        }
        Ok(())
    }

    /// The longest segment that delays a job with this offset, which is due before those of its task.
    fn blocking(&self, offset: u128) -> u64 {
        let own = self.own();
        let due = |t: &Task| offset + u128::from(own.deadline) + u128::from(t.jitter);
        let later =
            self.others().filter(|t| u128::from(t.deadline) + u128::from(own.jitter) > due(t));
        later.map(|t| segment_before(t, self.sections, self.time)).max().unwrap_or(0)
    }

    /// The offset from which on jobs of a task count.
    fn begins(&self, task: &Task) -> i128 {
        let due = |t: &Task| i128::from(t.deadline) - i128::from(t.jitter);
        due(task) - due(self.own())
    }

    /// The first offset after this one at which one job more counts.
    fn next_case(&self, offset: u128) -> u128 {
        let next = |t: &Task| {
            let jobs = signed(self.due_by(offset, t));
            self.begins(t).saturating_add(jobs.saturating_mul(t.period.into())).unsigned_abs()
        };
        self.set.tasks().iter().map(next).min().unwrap_or(u128::MAX)
    }

    /// Whether all cases from `first` to `last` end within `room` after their offsets: of each task at
    /// most those jobs count that do at `last`, and at most its share of the time since its jobs begin to
    /// count, and one. The shares are at most 1 in all, as the window has an end, so that the least offset
    /// is the worst.
    fn by_work(&self, first: u128, last: u128, room: i128) -> bool {
        let (mut whole, mut parts) = (0u128, 0u128);
        for task in self.set.tasks() {
            let most = self.due_by(last, task).saturating_mul(cost_of(task));
            let since = signed(first) - self.begins(task) + i128::from(task.period);
            let period = u128::from(task.period);
            let line = u128::try_from(since).unwrap_or(0).checked_mul(cost_of(task));
            match line.filter(|line| line / period < most) {
                Some(line) => {
                    whole = whole.saturating_add(line / period);
                    parts += ((line % period) << 64).div_ceil(period);
                }
                None => whole = whole.saturating_add(most),
            }
        }
        let delay = u128::from(self.own().blocking) + u128::from(self.blocking(first));
        let work = whole.saturating_add(parts >> 64).saturating_add(delay);
        signed(work) <= signed(first).saturating_add(room)
    }
}

fn cost_of(task: &Task) -> u128 {
    u128::from(task.cost) + u128::from(task.suspension)
}

fn signed(value: u128) -> i128 {
    i128::try_from(value).unwrap_or(i128::MAX)
}
