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
mod result;
mod sweep;
#[cfg(test)]
mod tests;
mod vector_tasks;

pub use crate::sections::{Sections, TimeModel};
pub(crate) use level::tail_of;
pub(crate) use result::{
    NO_RESPONSE, judge_by, larger, outside, overloaded, refused, response, task_result,
};
pub(crate) use sweep::{LateRanks, late_among};

use crate::effort::StepLimit;
use crate::task::TaskSet;
use crate::verdict::{Analysis, Refusal, Verdict};

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
    verdict_of_by(set, task, sections, time, &mut StepLimit::default())
}

/// The same, which takes what it needs from an effort for several.
#[must_use]
pub fn verdict_of_by(
    set: &TaskSet,
    task: usize,
    sections: Sections,
    time: TimeModel,
    effort: &mut StepLimit,
) -> Verdict {
    match set.tasks().get(task) {
        Some(_) if !set.is_plain() => Verdict::Unknown(Refusal::OutsideModel),
        Some(_) => level::analyse_task(set, task, sections, time, effort),
        None => Verdict::Feasible,
    }
}
