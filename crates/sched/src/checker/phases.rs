//! The windows of tasks with known phases, checked by substitution.
//!
//! Owns: what [`phases`] checks: every point, and of what is found with phases the bound. Whether all
//! windows were looked at follows from the repetition, which is checked to be one. Must not: search.

use crate::offsets::OffsetAnalysis;
use crate::task::{Task, TaskSet};
use crate::verdict::{ResponseBound, Window};

use super::Defect;

/// Checks an answer of [`crate::offsets::fixed_priority`]. Bounds without phases are not checked
/// here.
///
/// # Errors
/// The first property that does not hold.
pub fn phases(of: &TaskSet, answer: &OffsetAnalysis) -> Result<(), Defect> {
    let phased = (0..of.len()).filter(|task| answer.uses_phases(*task));
    for task in phased {
        let result = &answer.analysis.tasks[task];
        let ResponseBound::Bounded(bound) = result.outcome else {
            return Err(Defect::Bound { task });
        };
        let own = &of.tasks()[task];
        let counted = |at: &usize| *at == task || of.tasks()[*at].priority >= own.priority;
        let counted: Vec<usize> = (0..of.len()).filter(counted).collect();
        let (mut arrival, mut release) = (0, 0);
        let points = answer.analysis.points(task);
        for (index, (point, start)) in points.iter().zip(answer.starts(task)).enumerate() {
            let broken = Defect::NotFixed { task, point: index };
            let (start, finish) = (i128::from(*start), i128::from(point.finish));
            let work = |at: &usize| {
                let other = &of.tasks()[*at];
                let jobs = if *at == task {
                    point.jobs.into()
                } else {
                    released(other, start, start + finish)
                };
                jobs * i128::from(other.cost)
            };
            let sum = counted.iter().map(work).sum::<i128>() + i128::from(own.blocking);
            let (_, mine) = arrivals(own, start);
            let nominal = mine + i128::from(point.jobs - 1) * i128::from(own.period) - start;
            if sum != finish || i128::from(point.offset) != nominal.max(0) {
                return Err(broken);
            }
            arrival = arrival.max(finish - nominal);
            release = release.max(finish - nominal.max(0));
        }
        if (arrival, release) != (bound.from_arrival.into(), bound.from_release.into()) {
            return Err(Defect::Bound { task });
        }
        let known = counted.iter().filter(|at| of.tasks()[**at].phase().is_some());
        let mut periods = known.map(|at| of.tasks()[*at].period);
        match result.window {
            Window::Repeats(after) if periods.all(|period| after.is_multiple_of(period)) => {}
            _ => return Err(Defect::Window { task }),
        }
        super::check_verdict(task, own, result)?;
    }
    Ok(())
}

/// The number of the first job that may be released at `start` or later, and its arrival.
fn arrivals(task: &Task, start: i128) -> (i128, i128) {
    let (period, jitter) = (i128::from(task.period), i128::from(task.jitter));
    match task.phase().map(i128::from) {
        None => (0, start - jitter),
        Some(offset) => {
            let number = (start - offset - jitter + period - 1).div_euclid(period).max(0);
            (number, offset + number * period)
        }
    }
}

/// Jobs that arrive before `end`, from the first that may be released at `start` on.
fn released(task: &Task, start: i128, end: i128) -> i128 {
    let (_, first) = arrivals(task, start);
    (end - first + i128::from(task.period) - 1).div_euclid(task.period.into()).max(0)
}
