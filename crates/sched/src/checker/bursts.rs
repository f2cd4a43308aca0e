//! The equations of busy windows and demand with bursts, checked by substitution.
//!
//! Owns: what [`bursts`] and [`bursty_demand`] check; arrivals are counted here one by one. Must not:
//! search.

use std::cmp::Ordering;

use crate::bursts::BurstyTaskSet;
use crate::edf::qpa::Feasibility;
use crate::fixed_priority::{Sections, TimeModel};
use crate::task::{Task, TaskSet};
use crate::verdict::{Analysis, Point, ResponseBound, Verdict, Window, Witness};

use super::{Defect, check_verdict};
use crate::sections::segment_before;

/// The most arrivals of a task within `time` of its first one, counted in its distances.
fn arrivals_by(bursty: &BurstyTaskSet, task: usize, time: u128) -> u128 {
    let curve = &bursty.curves[task];
    let within = curve.distances().iter().take_while(|d| u128::from(**d) <= time).count();
    let burst = 1 + within as u128;
    match curve.distances().get(within) {
        Some(_) => burst,
        None => {
            let last = curve.distances().last().copied().unwrap_or(0);
            burst + (time - u128::from(last)) / u128::from(curve.period())
        }
    }
}

fn work_by(bursty: &BurstyTaskSet, task: usize, instant: u128) -> u128 {
    let of = &bursty.set.tasks()[task];
    arrivals_by(bursty, task, instant + u128::from(of.jitter)) * u128::from(of.cost)
}

fn work_before(bursty: &BurstyTaskSet, task: usize, window: u128) -> u128 {
    window.checked_sub(1).map_or(0, |last| work_by(bursty, task, last))
}

/// Checks an answer of [`crate::bursts::fixed_priority`].
///
/// # Errors
/// The first property that does not hold.
pub fn bursts(
    set: &TaskSet,
    sections: Sections,
    time: TimeModel,
    analysis: &Analysis,
) -> Result<(), Defect> {
    let bursty = &BurstyTaskSet::of(set);
    for (task, result) in analysis.tasks.iter().enumerate() {
        let own = &bursty.set.tasks()[task];
        if let ResponseBound::Bounded(bound) = result.outcome {
            let points = analysis.points(task);
            let Window::Length(length) = result.window else { return Err(Defect::Window { task }) };
            check_points(bursty, task, sections, time, points)?;
            check_cover(bursty, task, sections, time, points, length.into())?;
            let nominal = |p: &Point| bursty.curves[task].distance(p.jobs).unwrap_or(u64::MAX);
            let arrival = |p: &Point| {
                p.finish.saturating_add(own.jitter).saturating_sub(nominal(p).max(p.offset))
            };
            let arrival = points.iter().map(arrival).max();
            let release = points.iter().map(|p| p.finish.saturating_sub(p.offset)).max();
            if (arrival, release) != (Some(bound.from_arrival), Some(bound.from_release)) {
                return Err(Defect::Bound { task });
            }
        }
        check_verdict(task, own, result)?;
    }
    Ok(())
}

/// Work in a window of this length that is not of lower priority, and what blocks it.
struct CheckedInterference {
    equals: Vec<usize>,
    higher: Vec<usize>,
    blocking: u128,
}

fn others(
    bursty: &BurstyTaskSet,
    task: usize,
    sections: Sections,
    time: TimeModel,
) -> CheckedInterference {
    let own = &bursty.set.tasks()[task];
    let mut others = CheckedInterference { equals: Vec::new(), higher: Vec::new(), blocking: 0 };
    let mut segment = 0;
    for (at, other) in bursty.set.tasks().iter().enumerate().filter(|(at, _)| *at != task) {
        match other.priority.cmp(&own.priority) {
            Ordering::Greater => others.higher.push(at),
            Ordering::Equal => others.equals.push(at),
            Ordering::Less => segment = segment.max(segment_before(other, sections, time)),
        }
    }
    others.blocking = u128::from(own.blocking) + u128::from(segment);
    others
}

fn check_points(
    bursty: &BurstyTaskSet,
    task: usize,
    sections: Sections,
    time: TimeModel,
    points: &[Point],
) -> Result<(), Defect> {
    let own = &bursty.set.tasks()[task];
    let others = others(bursty, task, sections, time);
    let rest = match sections {
        Sections::Preemptive | Sections::Floating => 0,
        Sections::NonPreemptive => u128::from(own.cost - 1),
        Sections::Limited => u128::from(own.last.saturating_sub(1)),
    };
    for (index, point) in points.iter().enumerate() {
        let broken = Defect::NotFixed { task, point: index };
        let finish = u128::from(point.finish);
        let x = finish.checked_sub(rest).ok_or(broken)?;
        let equals = others.equals.iter().map(|at| work_by(bursty, *at, point.offset.into()));
        let higher = others.higher.iter().map(|at| work_before(bursty, *at, x));
        let work = u128::from(point.jobs) * u128::from(own.cost);
        if others.blocking + work + equals.chain(higher).sum::<u128>() != finish {
            return Err(broken);
        }
    }
    Ok(())
}

/// The window is no longer than stated, every job in it has its points, and between two of them no
/// job of equal priority comes.
fn check_cover(
    bursty: &BurstyTaskSet,
    task: usize,
    sections: Sections,
    time: TimeModel,
    points: &[Point],
    length: u128,
) -> Result<(), Defect> {
    let own = &bursty.set.tasks()[task];
    let others = others(bursty, task, sections, time);
    let all = others.equals.iter().chain(&others.higher).chain(std::iter::once(&task));
    let work: u128 = all.map(|at| work_before(bursty, *at, length)).sum();
    if others.blocking + work > length {
        return Err(Defect::Window { task });
    }
    let jobs = arrivals_by(bursty, task, length + u128::from(own.jitter) - 1);
    let equals = |instant: u128| -> u128 {
        others.equals.iter().map(|at| work_by(bursty, *at, instant)).sum()
    };
    let curve = &bursty.curves[task];
    let mut at = 0;
    for job in 1..=u64::try_from(jobs).unwrap_or(u64::MAX) {
        let missing = |point: usize| Defect::Missing { task, point };
        let nominal = curve.distance(job).ok_or(missing(at))?;
        let end = u128::from(curve.distance(job + 1).unwrap_or(u64::MAX)).min(length);
        let of_job = points[at..].iter().take_while(|p| p.jobs == job).count();
        let mine = &points[at..at + of_job];
        if mine.first().map(|p| p.offset) != Some(nominal.saturating_sub(own.jitter)) {
            return Err(missing(at));
        }
        let placed = others.equals.is_empty()
            || u128::from(nominal) >= end
            || mine.iter().any(|p| p.offset == nominal);
        for (index, point) in mine.iter().enumerate() {
            let until = mine.get(index + 1).map_or(end, |next| next.offset.into());
            let offset = u128::from(point.offset);
            if !placed || (until > offset + 1 && equals(until - 1) != equals(offset)) {
                return Err(missing(at + index));
            }
        }
        at += of_job;
    }
    if at == points.len() { Ok(()) } else { Err(Defect::Missing { task, point: at }) }
}

/// Checks an answer of [`crate::bursts::edf`]: each demand, that none was left out, and that the
/// busy period is no longer than stated.
///
/// # Errors
/// The first property that does not hold; the task is always 0.
pub fn bursty_demand(
    set: &TaskSet,
    sections: Sections,
    time: TimeModel,
    found: &Feasibility,
) -> Result<(), Defect> {
    let (bursty, tasks) = (&BurstyTaskSet::of(set), set.tasks());
    let demand = |interval: u64| -> u128 {
        let one = |(at, task): (usize, &Task)| {
            let shifted = u128::from(interval) + u128::from(task.jitter);
            let after = shifted.checked_sub(task.deadline.into());
            after.map_or(0, |after| arrivals_by(bursty, at, after) * u128::from(task.cost))
        };
        tasks.iter().enumerate().map(one).sum()
    };
    let blocking = |interval: u64| -> u128 {
        let later = tasks.iter().filter(|t| t.deadline.saturating_sub(t.jitter) > interval);
        let segment = later.map(|t| segment_before(t, sections, time)).max().unwrap_or(0);
        u128::from(segment) + u128::from(tasks.iter().map(|t| t.blocking).max().unwrap_or(0))
    };
    let mut before = None;
    for (point, (interval, stated)) in found.visited.iter().enumerate() {
        if demand(*interval) + blocking(*interval) != u128::from(*stated) {
            return Err(Defect::NotFixed { task: 0, point });
        }
        let since = before.map_or(0, demand);
        if interval.checked_sub(1).is_some_and(|last| demand(last) != since) {
            return Err(Defect::Missing { task: 0, point });
        }
        before = Some(*interval);
    }
    match found.verdict {
        Verdict::Feasible => {
            let length = u128::from(found.length - 1);
            let work = (0..tasks.len()).map(|at| work_before(bursty, at, length)).sum::<u128>();
            let ends = blocking(0) + work <= length;
            let last = demand(found.length - 1) == before.map_or(0, demand);
            let fits = found.visited.iter().all(|(interval, demand)| demand <= interval);
            if ends && last && fits { Ok(()) } else { Err(Defect::Verdict { task: 0 }) }
        }
        Verdict::Infeasible(Witness::Demand { interval, demand: stated }) => {
            let holds = stated > interval && found.visited.last() == Some(&(interval, stated));
            if holds { Ok(()) } else { Err(Defect::Verdict { task: 0 }) }
        }
        Verdict::Infeasible(_) => Err(Defect::Verdict { task: 0 }),
        Verdict::NoBound | Verdict::Unknown(_) => Ok(()),
    }
}
