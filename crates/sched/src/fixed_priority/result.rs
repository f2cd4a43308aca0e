//! From the points of a busy window to the result of a task.
//!
//! Owns: bounds and verdicts of tasks. Must not: find points.

use crate::task::TaskSet;
use crate::verdict::{Analysis, Point, Refusal, ResponseBound, ResponseTime, TaskResult, Verdict};
use crate::verdict::{Window, Witness};

/// The bounds of a job by a point of its busy window. Its nominal arrival is at the latest both a
/// jitter before its release and where its number puts it.
pub(crate) fn response(point: &Point, period: u64, jitter: u64) -> Option<ResponseTime> {
    let nominal = (point.jobs.checked_sub(1)?).checked_mul(period)?;
    let from_arrival = point.finish.checked_add(jitter)?.saturating_sub(nominal.max(point.offset));
    Some(ResponseTime { from_arrival, from_release: point.finish.saturating_sub(point.offset) })
}

/// The larger of two bounds, each way.
pub(crate) fn larger(a: ResponseTime, b: ResponseTime) -> ResponseTime {
    ResponseTime {
        from_arrival: a.from_arrival.max(b.from_arrival),
        from_release: a.from_release.max(b.from_release),
    }
}

/// No response yet.
pub(crate) const NO_RESPONSE: ResponseTime = ResponseTime { from_arrival: 0, from_release: 0 };

/// The result of a task from all of its points. `exact`: what the bound counts can happen.
#[inline]
pub(crate) fn task_result(
    set: &TaskSet,
    position: usize,
    points: &[Point],
    range: std::ops::Range<usize>,
    window: Window,
    exact: bool,
) -> TaskResult {
    let task = &set.tasks()[position];
    let response = |point: &Point| response(point, task.period, task.jitter);
    judge_by(set, position, points, range, window, exact, response)
}

/// The same where a point's response is found in another way; `None` if a number is too large.
#[inline]
pub(crate) fn judge_by(
    set: &TaskSet,
    position: usize,
    points: &[Point],
    range: std::ops::Range<usize>,
    window: Window,
    exact: bool,
    response: impl Fn(&Point) -> Option<ResponseTime>,
) -> TaskResult {
    let mut bound = NO_RESPONSE;
    let mut worst = 0;
    for point in &points[range.clone()] {
        let Some(found) = response(point) else {
            return refused(Refusal::Overflow, range.start);
        };
        if found.from_arrival > bound.from_arrival {
            worst = point.jobs;
        }
        bound = larger(bound, found);
    }
    judge_bound(set, position, bound, worst, range, window, exact)
}

/// The same from the bound, which the job with the number `worst` of a busy window reaches.
#[inline]
pub(super) fn judge_bound(
    set: &TaskSet,
    position: usize,
    bound: ResponseTime,
    worst: u64,
    range: std::ops::Range<usize>,
    window: Window,
    exact: bool,
) -> TaskResult {
    let task = &set.tasks()[position];
    let verdict = if bound.from_arrival <= task.deadline {
        Verdict::Feasible
    } else if exact {
        Verdict::Infeasible(Witness::Response {
            task: position,
            job: worst,
            response: bound.from_arrival,
            deadline: task.deadline,
        })
    } else {
        Verdict::Unknown(Refusal::NotExact)
    };
    TaskResult { outcome: ResponseBound::Bounded(bound), verdict, window, points: range }
}

/// The answer for a set with something that an analysis does not know.
pub(crate) fn outside(set: &TaskSet) -> Analysis {
    let tasks = set.tasks().iter().map(|_| refused(Refusal::OutsideModel, 0)).collect();
    Analysis { tasks, points: Vec::new() }
}

/// The result of a task that the analysis cannot tell about; its points would begin at `at`.
pub(crate) fn refused(why: Refusal, at: usize) -> TaskResult {
    let (outcome, verdict) = (ResponseBound::Unknown(why), Verdict::Unknown(why));
    TaskResult { outcome, verdict, window: Window::Closed, points: at..at }
}

/// The result of a task for which more is demanded than there is.
pub(crate) fn overloaded(at: usize) -> TaskResult {
    let (outcome, verdict) = (ResponseBound::Unbounded, Verdict::NoBound);
    TaskResult { outcome, verdict, window: Window::Closed, points: at..at }
}
