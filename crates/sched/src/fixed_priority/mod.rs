//! Response times under fixed priorities, on one processor.
//!
//! Owns: which analysis applies to a set, and the verdicts. The window is looked at as a whole, so
//! deadlines may be longer than periods (Lehoczky, RTSS 1990; Tindell, Burns and Wellings, RTSJ
//! 1994); release jitter and blocking follow Audsley et al., SEJ 1993. Non-preemptive segments follow
//! Davis, Burns, Bril and Lukkien, RTSJ 2007, and Bozhko and Brandenburg, ECRTS 2020. Equal
//! priorities are served first come, first served.
//!
//! Must not: order tasks; see `assign`.

mod level;
mod sweep;
#[cfg(test)]
mod tests;
mod vector_tasks;

pub use crate::sections::{Sections, TimeModel};
pub(crate) use level::tail_of;
pub(crate) use sweep::{LateRanks, late_among};

use crate::effort::StepLimit;
use crate::task::TaskSet;
use crate::verdict::{Analysis, Point, Refusal, ResponseBound, ResponseTime, TaskResult, Verdict};
use crate::verdict::{Window, Witness};

/// Whether all tasks of a set are found in one sweep: see [`late_among`].
pub(crate) fn is_swept(set: &TaskSet) -> bool {
    set.is_plain() && sweep::applies(set, set.by_priority())
}

/// Bounds the response times of a set under fixed priorities.
#[must_use]
pub fn analyse(set: &TaskSet, sections: Sections, time: TimeModel) -> Analysis {
    analyse_within(set, sections, time, StepLimit::default())
}

/// The same with a stated effort.
#[must_use]
pub fn analyse_within(
    set: &TaskSet,
    sections: Sections,
    time: TimeModel,
    mut effort: StepLimit,
) -> Analysis {
    analyse_by(set, sections, time, &mut effort)
}

/// The same, which takes what it needs from an effort for several analyses.
#[must_use]
pub fn analyse_by(
    set: &TaskSet,
    sections: Sections,
    time: TimeModel,
    effort: &mut StepLimit,
) -> Analysis {
    if !set.is_plain() {
        return outside(set);
    }
    let order = set.by_priority();
    let analysis = if sections == Sections::Preemptive && sweep::applies(set, order) {
        sweep::analyse(set, order, effort)
    } else {
        level::analyse(set, order, sections, time, effort)
    };
    debug_assert_eq!(crate::checker::fixed_priority(set, sections, time, &analysis), Ok(()));
    #[cfg(debug_assertions)]
    crate::reference::assert_fixed_priority(set, sections, &analysis);
    analysis
}

/// The verdict on the set, as by [`analyse_within`], for those who want no bounds: of each task only
/// jobs up to the first late one are looked at, which the witness names. Sets that use all of the
/// processor or nearly so, whose busy windows last up to a hyperperiod, are mostly decided so.
#[must_use]
pub fn verdict_within(
    set: &TaskSet,
    sections: Sections,
    time: TimeModel,
    mut effort: StepLimit,
) -> Verdict {
    if !set.is_plain() || set.tasks().iter().any(|task| task.suspension > 0) {
        return analyse_within(set, sections, time, effort).verdict();
    }
    let mut worst = Verdict::Feasible;
    for position in set.by_priority() {
        worst = Verdict::worst([
            worst,
            level::analyse_task(set, *position, sections, time, &mut effort),
        ]);
        if matches!(worst, Verdict::Infeasible(_)) {
            break;
        }
    }
    worst
}

/// The verdict on one task. As in [`analyse`], without looking at tasks of lower priority but for
/// what they block, nor at jobs after the first late one, which the witness names.
#[must_use]
pub fn verdict_of(set: &TaskSet, task: usize, sections: Sections, time: TimeModel) -> Verdict {
    verdict_of_within(set, task, sections, time, StepLimit::default())
}

/// The same with a stated effort.
#[must_use]
pub fn verdict_of_within(
    set: &TaskSet,
    task: usize,
    sections: Sections,
    time: TimeModel,
    mut effort: StepLimit,
) -> Verdict {
    match set.tasks().get(task) {
        Some(_) if !set.is_plain() => Verdict::Unknown(Refusal::OutsideModel),
        Some(_) => level::analyse_task(set, task, sections, time, &mut effort),
        None => Verdict::Feasible,
    }
}

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
fn judge_bound(
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
