//! Global EDF: bounds on response times, each task's helping the others'.
//!
//! Owns: the response-time analysis of Bertogna and Cirinei (RTSS 2007) and the iterative test of
//! Bertogna, Cirinei and Lipari (IEEE TPDS 2009). Both assume that every job responds within its
//! deadline and bound the responses under that assumption, then assume those bounds, and so on. If
//! all bounds are within the deadlines in the end, no job can be the first to break them; if one is
//! not, none of the bounds is good for anything. Must not: guess; a bound is checked by
//! [`crate::checker::global_edf`].

use crate::effort::StepLimit;
use crate::task::{Task, TaskSet};
use crate::verdict::{Analysis, Refusal, Verdict};

use super::window::{WindowJob, WindowWork};
use super::{beforehand_constrained, without_bound};

/// How the work of others is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorkBound {
    /// Once, in the window from the arrival of a job to its deadline (TPDS 2009, equations 17, 18).
    AtDeadline,
    /// Also in each window in which the job may have to wait (RTSS 2007, equations 4, 5, 8, 9).
    AtResponse,
}

/// Bounds the response times of a set under global EDF (Bertogna and Cirinei, RTSS 2007). Needs
/// deadlines of at most periods.
#[must_use]
pub fn analyse(set: &TaskSet, cpus: u64) -> Analysis {
    analyse_by(set, cpus, &mut StepLimit::default())
}

/// The same, which takes what it needs from an effort for several analyses: a step looks once at the work of all tasks in a
/// window.
#[must_use]
pub fn analyse_by(set: &TaskSet, cpus: u64, effort: &mut StepLimit) -> Analysis {
    let analysis = improve(set, cpus, WorkBound::AtResponse, effort);
    debug_assert_eq!(crate::checker::global_edf(set, cpus, &analysis), Ok(()));
    analysis
}

/// The iterative test of Bertogna, Cirinei and Lipari (IEEE TPDS 2009): its slacks, as bounds on
/// response times. Accepts what their first test ([`super::edf::bcl`]) accepts.
#[must_use]
pub fn bcl_iterative(set: &TaskSet, cpus: u64) -> Analysis {
    bcl_iterative_by(set, cpus, &mut StepLimit::default())
}

/// The same, which takes what it needs from an effort for several tests.
pub(super) fn bcl_iterative_by(set: &TaskSet, cpus: u64, effort: &mut StepLimit) -> Analysis {
    improve(set, cpus, WorkBound::AtDeadline, effort)
}

fn improve(set: &TaskSet, cpus: u64, looks: WorkBound, effort: &mut StepLimit) -> Analysis {
    if let Some(verdict) = beforehand_constrained(set, cpus) {
        let tasks = set.tasks().iter().map(|_| without_bound(verdict, 0)).collect();
        return Analysis { tasks, points: Vec::new() };
    }
    let mut bounds: Vec<u64> = set.tasks().iter().map(Task::deadline).collect();
    let mut proven = vec![false; set.len()];
    let rounds = rounds(set, cpus, looks, &mut bounds, &mut proven, effort);
    match rounds {
        // Bounds that are all proven stay so, even if more steps would have lowered them.
        _ if proven.iter().all(|proven| *proven) => Analysis::all_within(&bounds),
        Err(why) => unknown(set, why),
        Ok(()) => unknown(set, Refusal::NotExact),
    }
}

/// Lowers bounds until none can be lowered.
fn rounds(
    set: &TaskSet,
    cpus: u64,
    looks: WorkBound,
    bounds: &mut [u64],
    proven: &mut [bool],
    effort: &mut StepLimit,
) -> Result<(), Refusal> {
    loop {
        let mut lower = false;
        for k in 0..set.len() {
            let Some(found) = response_time(set, cpus, looks, k, bounds, effort)? else { continue };
            lower |= !proven[k] || found < bounds[k];
            proven[k] = true;
            bounds[k] = bounds[k].min(found);
        }
        if !lower {
            return Ok(());
        }
    }
}

/// The least response of task k that its equation allows, if it is within the deadline.
fn response_time(
    set: &TaskSet,
    cpus: u64,
    looks: WorkBound,
    k: usize,
    bounds: &[u64],
    effort: &mut StepLimit,
) -> Result<Option<u64>, Refusal> {
    let task = &set.tasks()[k];
    let (own, limit) = (task.cost, task.deadline);
    if looks == WorkBound::AtResponse {
        let works = |window: u64, works: &mut Vec<WindowWork>| {
            interference(set, looks, k, bounds, window, works);
        };
        return WindowJob { own, limit, cpus }.shortest(effort, works);
    }
    effort.charge(set.len())?;
    let mut works = Vec::new();
    interference(set, looks, k, bounds, limit, &mut works);
    let delay = works.iter().map(|work| work.now).sum::<u128>() / u128::from(cpus);
    let bound = u64::try_from(u128::from(own) + delay).ok();
    Ok(bound.filter(|bound| *bound <= limit))
}

/// Works of the others that can delay task k in a window, none counted beyond what a delay takes.
fn interference(
    set: &TaskSet,
    looks: WorkBound,
    k: usize,
    bounds: &[u64],
    window: u64,
    works: &mut Vec<WindowWork>,
) {
    let task = &set.tasks()[k];
    let most = u128::from(window - task.cost) + 1;
    let of = |(i, other): (usize, &Task)| {
        let due = work_due_with(other, task.deadline, other.deadline - bounds[i]);
        let work = match looks {
            WorkBound::AtDeadline => WindowWork { now: due, grows: 0 },
            WorkBound::AtResponse => {
                WindowWork::with_carry_in(other, window, bounds[i]).at_most(due)
            }
        };
        work.at_most_growing(most)
    };
    works.extend(set.tasks().iter().enumerate().filter(|(i, _)| *i != k).map(of));
}

/// Most work of a task in a window that ends with one of its deadlines, if its jobs end `slack`
/// before theirs.
fn work_due_with(task: &Task, window: u64, slack: u64) -> u128 {
    let jobs = u128::from(window / task.period);
    let before = u128::from((window % task.period).saturating_sub(slack));
    jobs * u128::from(task.cost) + before.min(task.cost.into())
}

fn unknown(set: &TaskSet, why: Refusal) -> Analysis {
    let tasks = set.tasks().iter().map(|_| without_bound(Verdict::Unknown(why), 0)).collect();
    Analysis { tasks, points: Vec::new() }
}
