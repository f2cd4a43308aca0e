//! Server design: the smallest reservation in which a set of tasks works.
//!
//! Owns: the search for the smallest budget of a period, by bisection, and for the best of several
//! periods (the problem of Shin and Lee, RTSS 2003, and of Lipari and Bini, ECRTS 2003, in whole
//! numbers); the longest period of a budget of one whole job ([`of_whole_jobs`]). Must not: judge;
//! [`crate::servers`] does.
//!
//! More budget never supplies less, so that bisection finds the smallest budget that the test
//! accepts. It is rounded up to whole steps.

mod together;

pub use together::{Stage, StageServer, together};

use crate::servers::{LocalScheduler, Server, ServerPolicy};
use crate::task::{Task, TaskSet};
use crate::verdict::{Refusal, Verdict};

/// The tasks and conditions for which a server is designed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DesignProblem<'a> {
    /// The tasks in it.
    pub set: &'a TaskSet,
    /// The scheduler of the tasks in the server.
    pub inside: LocalScheduler,
    /// The rules of the budget.
    pub kind: ServerPolicy,
    /// Budgets are multiples of this; 1 for the smallest of all, 0 is taken as 1.
    pub step: u64,
}

/// A server that is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerDesign {
    /// The server.
    pub server: Server,
    /// Whether a step less is known to fail the test. If not, the test was given up there.
    pub smallest: bool,
}

/// The smallest budget with which the set is feasible in every `period`; `None` if no multiple of the
/// step up to the whole period is known to be enough. At most 65 analyses.
#[must_use]
pub fn smallest_budget(wanted: &DesignProblem, period: u64) -> Option<ServerDesign> {
    let step = wanted.step.max(1);
    let verdict = |steps: u64| {
        let server = Server::new(wanted.kind, period, steps * step).ok()?;
        Some((server, server.verdict(wanted.set, wanted.inside)))
    };
    let enough = |steps| verdict(steps).filter(|(_, v)| *v == Verdict::Feasible).map(|(s, _)| s);
    let mut most = period / step;
    let mut server = enough(most)?;
    let mut too_few = 0;
    while most - too_few > 1 {
        let middle = too_few + (most - too_few) / 2;
        match enough(middle) {
            Some(found) => (server, most) = (found, middle),
            None => too_few = middle,
        }
    }
    let given_up = |v: Verdict| {
        matches!(v, Verdict::Unknown(Refusal::TooLong | Refusal::Overflow | Refusal::Endless))
    };
    let smallest = !verdict(too_few).is_some_and(|(_, v)| given_up(v));
    Some(ServerDesign { server, smallest })
}

/// The server that takes the least share of the processor over all these periods; of equal ones, that
/// with the longest period. `switch` is what a period costs beyond the budget: without it, shorter
/// periods are nearly always better. `None` if no period has a budget that is enough.
#[must_use]
pub fn best(wanted: &DesignProblem, periods: &[u64], switch: u64) -> Option<ServerDesign> {
    let found = periods.iter().filter_map(|period| smallest_budget(wanted, *period));
    let share = |found: &ServerDesign| {
        let cost = u128::from(found.server.budget()) + u128::from(switch);
        (cost, u128::from(found.server.period()))
    };
    found.reduce(|best, next| {
        let ((a, b), (c, d)) = (share(&best), share(&next));
        // Below 2^65 times 2^64: halves suffice where a product does not fit.
        let less = match (c.checked_mul(b), a.checked_mul(d)) {
            (Some(next), Some(best)) => next.cmp(&best),
            _ => (c / d).cmp(&(a / b)),
        };
        if less.then(b.cmp(&d)).is_lt() { next } else { best }
    })
}

/// The server of the longest period that keeps the deadline of the only task in it with a budget of one whole job;
/// `None` where a job waits before its end, takes longer than two arrivals are apart or than jitter leaves of the
/// deadline, and of other kinds than those below. A larger budget keeps the deadline as well.
///
/// Let jobs take C at most, arrive T apart at least, be released up to J after their arrival and in its order, and
/// have D from their arrival (not from their release).
///
/// *Hard constant bandwidth* (Abeni and Buttazzo, RTSS 1998; [`Server::whole_budgets`] with one budget a job). By
/// induction, the server's deadline at the end of a job is at most J + P after its arrival if P <= T: a job that finds
/// that deadline past gets one of P after its release; one that finds it ahead has it at most J + P after the arrival of
/// the job before, so at most J after its own, and needs one postponement by P at most. So P = min(T, D - J). A deadline
/// of D - J in a longer period would take less bandwidth, and no job is sure of it: see [`Server::whole_budgets`].
///
/// *Periodic* (a budget at any time of periods on a grid, which no release knows). A budget of C is had within
/// P + d - C of a release (Shin and Lee, RTSS 2003), so that 2 P - C + J <= D with d = P, and P <= T.
///
/// *Deferrable* (the same, but a budget that is not used waits until its period ends, and a job that has any is served
/// within d, whenever it comes). With P <= T - J no two jobs are released in one period, so that one lacks budget only
/// by what the job before it has left over, e, which is served within d - (C - e) of the period's begin. Let the job be
/// released x before the end of its period, and leave e' over. Then x <= d - e', by induction: a job with its whole budget
/// waits d - C at most for others, and has run for C - e' in x. One whose budget is used up leaves e' <= e, and is released
/// no earlier in its period than the one before it, so that x <= d - e. Of one that is not, what is left over before it is
/// done when it comes, and the first case holds again, since work that waits from a begin on has all of C within d. So a job
/// ends at most x + d - (C - e') <= 2 d - C after its release, and 2 d - C + J <= D. Where d is more than T - J, periods of
/// d, as above, are the longer ones.
#[must_use]
pub fn of_whole_jobs(kind: ServerPolicy, task: &Task) -> Option<Server> {
    if task.suspension() > 0 || task.blocking() > 0 {
        return None;
    }
    let cost = task.cost();
    let apart = task.curve().map_or(Some(task.period()), |curve| curve.distance(2))?;
    let left = task.deadline().checked_sub(task.jitter())?;
    let released = apart.saturating_sub(task.jitter());
    let within = left.min(apart);
    let on_grid = apart.min(left.midpoint(cost));
    let (period, deadline) = match kind {
        ServerPolicy::HardBandwidth => (within, within),
        ServerPolicy::Periodic => (on_grid, on_grid),
        ServerPolicy::Deferrable => (released.max(on_grid), on_grid),
        _ => return None,
    };
    Server::with_deadline(kind, period, cost, deadline).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::servers::KINDS;
    use crate::supply::{self, Supply};

    fn set(tasks: &[(u64, u64)]) -> TaskSet {
        TaskSet::in_order(tasks.iter().map(|(c, t)| Task::new(*c, *t, *t).unwrap()).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        /// Every smaller budget fails, the one found and every larger one does not.
        #[test]
        fn no_smaller_budget_is_enough(
            tasks in proptest::collection::vec((1..4u64, 8..30u64), 1..4), period in 1..14u64,
            step in 1..4u64, edf in any::<bool>(),
        ) {
            let set = set(&tasks);
            let inside = if edf { LocalScheduler::Edf } else { LocalScheduler::FixedPriority };
            for kind in KINDS {
                let found = smallest_budget(&DesignProblem { set: &set, inside, kind, step }, period);
                let enough = (1..=period).filter(|budget| budget % step == 0).find(|budget| {
                    let server = Server::new(kind, period, *budget).unwrap();
                    server.verdict(&set, inside) == Verdict::Feasible
                });
                prop_assert_eq!(found.map(|found| found.server.budget()), enough);
            }
        }
    }

    /// One every 10 and three every 20, behind a budget every 5.
    #[test]
    fn the_smallest_budget_is_enough_and_no_smaller_one_is() {
        let set = set(&[(1, 10), (3, 20)]);
        let (inside, kind) = (LocalScheduler::FixedPriority, ServerPolicy::Periodic);
        let found =
            smallest_budget(&DesignProblem { set: &set, inside, kind, step: 1 }, 5).unwrap();
        let verdict = |budget| {
            let supply = Supply::periodic(5, budget).unwrap();
            supply::fixed_priority(&set, &supply).verdict()
        };
        assert_eq!(verdict(found.server.budget()), Verdict::Feasible);
        assert_ne!(verdict(found.server.budget() - 1), Verdict::Feasible);
    }

    /// Hourglass paper, section 5.6, and Shin and Lee: 3 every 8. Alone under a soft server 3 of 8 is
    /// enough; under a hard one that begins at another time than the work, more is needed.
    #[test]
    fn a_reservation_for_the_paper() {
        let set = set(&[(3_000, 8_000)]);
        let budget = |kind, period| {
            let wanted =
                DesignProblem { set: &set, inside: LocalScheduler::FixedPriority, kind, step: 1 };
            smallest_budget(&wanted, period).map(|found| (found.server.budget(), found.smallest))
        };
        assert_eq!(budget(ServerPolicy::SoftBandwidth, 8_000), Some((3_000, true)));
        // 2 (8000 - Q) + 3000 <= 8000.
        assert_eq!(budget(ServerPolicy::HardBandwidth, 8_000), Some((5_500, true)));
        // 2 (2000 - Q) + 2 periods + ... : 3000 in at most 8000 of a period of 2000.
        assert_eq!(budget(ServerPolicy::HardBandwidth, 2_000), Some((1_000, true)));
    }

    /// Without a cost of switching the shortest period is the best, with one it is not.
    #[test]
    fn periods_are_compared_by_their_share() {
        let set = set(&[(1_000, 10_000), (3_000, 20_000)]);
        let (inside, kind) = (LocalScheduler::FixedPriority, ServerPolicy::Periodic);
        let wanted = DesignProblem { set: &set, inside, kind, step: 1 };
        let periods = [200, 1_000, 4_000, 8_000];
        let period = |switch| best(&wanted, &periods, switch).unwrap().server.period();
        assert_eq!(period(0), 200);
        assert_eq!(period(50), 1_000);
        assert!(best(&wanted, &[], 0).is_none());
    }

    /// By hand, from the argument of [`of_whole_jobs`]: 3 every 20.
    #[test]
    fn a_budget_of_a_whole_job_has_the_longest_period() {
        let task = |jitter, deadline| Task::new(3, 20, deadline).unwrap().with_jitter(jitter);
        let of = |kind, task: &Task| {
            of_whole_jobs(kind, task).map(|server| (server.period(), server.deadline()))
        };
        let hard = |jitter, deadline| of(ServerPolicy::HardBandwidth, &task(jitter, deadline));
        assert_eq!(hard(0, 20), Some((20, 20)));
        assert_eq!(hard(4, 20), Some((16, 16)));
        assert_eq!(hard(4, 22), Some((18, 18)));
        assert_eq!(hard(4, 30), Some((20, 20)));
        assert_eq!(hard(4, 10), Some((6, 6)));
        assert_eq!((hard(18, 20), hard(18, 21)), (None, Some((3, 3))));
        let grid = |jitter, deadline| of(ServerPolicy::Periodic, &task(jitter, deadline));
        assert_eq!((grid(0, 20), grid(4, 20)), (Some((11, 11)), Some((9, 9))));
        assert_eq!((grid(0, 60), grid(18, 20)), (Some((20, 20)), None));
        let kept = |jitter, deadline| of(ServerPolicy::Deferrable, &task(jitter, deadline));
        assert_eq!((kept(0, 20), kept(4, 20)), (Some((20, 11)), Some((16, 9))));
        assert_eq!((kept(0, 60), kept(12, 30)), (Some((20, 20)), Some((10, 10))));
        assert_eq!((kept(4, 10), kept(18, 20)), (Some((16, 4)), None));
        // Two jobs may come 7 apart, and the third 13 after that.
        let burst = task(0, 20).with_bursts(&[7]).unwrap();
        assert_eq!(of(ServerPolicy::HardBandwidth, &burst), Some((7, 7)));
        let close = task(0, 20).with_bursts(&[2]).unwrap();
        let refused = [close, task(0, 20).with_blocking(1), task(0, 20).with_suspension(1)];
        let none = |task| of(ServerPolicy::HardBandwidth, task).is_none();
        assert!(refused.iter().all(none));
        assert_eq!(of(ServerPolicy::Polling, &task(0, 20)), None);
    }
}
