//! Response times under EDF of tasks that suspend themselves, in which suspension is not counted as
//! execution for others.
//!
//! Owns: bounds R by which each job of a task is done after its arrival, all of them together. In the
//! `x` after an arrival of task k, other jobs delay it that arrived less than their R before it, and
//! before `x`, and are due no later than it. If
//!
//! `C_k + S_k + sum over i of max(0, ceil((min(D_k - D_i, x) + R_i) / T_i)) C_i <= x`
//!
//! it is done by then. Every R is at most its deadline, so that the first job that would break its
//! bound contradicts the bounds of the others, which end before (the argument of Guenzel, von der
//! Brueggen and Chen, "EDF-Like Scheduling for Self-Suspending Real-Time Tasks", RTSS 2022). A job may
//! suspend itself as often as it likes, S in all.
//!
//! Must not: know jitter, blocking, segments, or deadlines beyond the period.

use crate::effort::StepLimit;
use crate::task::{Task, TaskSet};
use crate::verdict::{Analysis, Refusal, TaskResult, Verdict};

/// Looks at a task that the search may take.
const LOOKS: u64 = 5_000_000;

/// Rounds in which bounds are taken to make others smaller. The bounds hold after each.
const ROUNDS: u32 = 16;

/// Bounds the response times of a set under EDF with full preemption, or says of all tasks why it
/// cannot: the bounds hold only together.
#[must_use]
pub fn response_times(set: &TaskSet) -> Analysis {
    let found = match outside(set) {
        Some(why) => Err(why),
        None => bounds(set, &mut StepLimit::with_steps(LOOKS)),
    };
    let analysis = match found {
        Ok(bounds) => Analysis::all_within(&bounds),
        Err(why) => unknown(set, why),
    };
    debug_assert_eq!(crate::checker::edf_suspension(set, &analysis), Ok(()));
    analysis
}

/// Parameters that the test does not know.
fn outside(set: &TaskSet) -> Option<Refusal> {
    let beyond = |t: &Task| t.jitter > 0 || t.blocking > 0 || t.np > 0 || t.last > 0;
    if !set.is_plain() || set.tasks().iter().any(beyond) {
        return Some(Refusal::OutsideModel);
    }
    let long = set.tasks().iter().any(|task| task.deadline > task.period);
    long.then_some(Refusal::LongDeadlines)
}

fn unknown(set: &TaskSet, why: Refusal) -> Analysis {
    let task = |_: &Task| -> TaskResult { crate::global::without_bound(Verdict::Unknown(why), 0) };
    Analysis { tasks: set.tasks().iter().map(task).collect(), points: Vec::new() }
}

/// Computes bounds, from deadlines as first bounds downwards.
fn bounds(set: &TaskSet, effort: &mut StepLimit) -> Result<Vec<u64>, Refusal> {
    let mut known: Vec<u64> = set.tasks().iter().map(Task::deadline).collect();
    for round in 0..ROUNDS {
        let mut next = Vec::with_capacity(set.len());
        for position in 0..set.len() {
            match bound(set, position, &known, effort) {
                Ok(found) => next.push(found),
                // The bounds of the round before hold without this round.
                Err(Refusal::TooLong) if round > 0 => return Ok(known),
                Err(why) => return Err(why),
            }
        }
        if next == known {
            break;
        }
        known = next;
    }
    Ok(known)
}

/// The least `x` for a task; the bounds of the others are `known`.
fn bound(
    set: &TaskSet,
    position: usize,
    known: &[u64],
    effort: &mut StepLimit,
) -> Result<u64, Refusal> {
    let task = &set.tasks()[position];
    let mut x = task.cost.checked_add(task.suspension).ok_or(Refusal::Overflow)?;
    loop {
        effort.charge(set.len())?;
        let next = u64::try_from(demand(set, position, known, x)).map_err(|_| Refusal::Overflow)?;
        if next > task.deadline {
            return Err(Refusal::NotExact);
        }
        if next <= x {
            return Ok(x);
        }
        x = next;
    }
}

/// Cost and suspension of a job, and what delays it in the `x` after its arrival.
pub(crate) fn demand(set: &TaskSet, position: usize, known: &[u64], x: u64) -> u128 {
    let task = &set.tasks()[position];
    let others = set.tasks().iter().zip(known).enumerate().filter(|(at, _)| *at != position);
    let delay = |(_, (other, bound)): (usize, (&Task, &u64))| {
        let later = i128::from(task.deadline) - i128::from(other.deadline);
        let length = later.min(i128::from(x)) + i128::from(*bound);
        let jobs = u128::try_from(length).unwrap_or(0).div_ceil(other.period.into());
        jobs * u128::from(other.cost)
    };
    let own = u128::from(task.cost) + u128::from(task.suspension);
    others.map(delay).fold(own, u128::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(tasks: &[(u64, u64, u64)]) -> TaskSet {
        let task = |(cost, suspension, period): &(u64, u64, u64)| {
            Task::new(*cost, *period, *period).unwrap().with_suspension(*suspension)
        };
        TaskSet::in_order(tasks.iter().map(task).collect())
    }

    /// The bug: two tasks of a tenth each, suspended for half of the time, were said to demand more
    /// than there is.
    #[test]
    fn what_suspends_itself_leaves_the_processor() {
        let found = response_times(&set(&[(1, 5, 10), (1, 5, 10)]));
        assert_eq!(found.from_arrival(), [Some(7), Some(7)]);
        assert_eq!(found.verdict(), Verdict::Feasible);
    }

    #[test]
    fn what_does_not_fit_is_unknown() {
        let found = response_times(&set(&[(5, 4, 10), (4, 4, 12)]));
        assert_eq!(found.verdict(), Verdict::Unknown(Refusal::NotExact));
        let jitter = TaskSet::new(vec![Task::new(1, 10, 10).unwrap().with_jitter(1)]);
        assert_eq!(response_times(&jitter).verdict(), Verdict::Unknown(Refusal::OutsideModel));
        let long = TaskSet::new(vec![Task::new(1, 10, 11).unwrap()]);
        assert_eq!(response_times(&long).verdict(), Verdict::Unknown(Refusal::LongDeadlines));
    }
}
