//! One task whose jobs take whole budgets, checked by its conditions.
//!
//! Owns: what [`whole_budgets`] checks. Must not: search.

use crate::servers::{Delivery, Server, ServerPolicy};
use crate::task::TaskSet;
use crate::verdict::{ResponseBound, ResponseTime, Window};

use super::{Defect, check_verdict};

/// Checks an answer of [`Server::whole_budgets`]: one task that never waits, alone in a hard constant-bandwidth server;
/// whose deadline is its period; no job longer than n budgets, and arrivals at least n periods of the server apart; and that
/// the bound is the n-th deadline of the server, after the jitter (Abeni and Buttazzo, RTSS 1998), or the end of the n-th
/// budget where each is delivered at once. That nothing of the server is used before the first job is a premise.
///
/// # Errors
/// The first property that does not hold; the task is always 0.
pub fn whole_budgets(
    set: &TaskSet,
    server: &Server,
    analysis: &crate::verdict::Analysis,
) -> Result<(), Defect> {
    let ([task], [result]) = (set.tasks(), &analysis.tasks[..]) else {
        return Err(Defect::Numbers { task: 0 });
    };
    let [period, jitter] = [task.period, task.jitter].map(u128::from);
    let budgets = u128::from(task.cost).div_ceil(u128::from(server.budget()));
    let periods = budgets * u128::from(server.period());
    let is_idle_before = periods + jitter <= period;
    let is_hard = matches!(server.kind(), ServerPolicy::HardBandwidth | ServerPolicy::Reclaiming);
    let takes_whole_budgets = is_hard
        && task.is_plain()
        && (task.suspension, task.blocking) == (0, 0)
        && periods <= period
        && server.deadline() == server.period();
    if !takes_whole_budgets || result.window != Window::Closed {
        return Err(Defect::Window { task: 0 });
    }
    // Where the budget is delivered at once, the last one is over when its part of the job is.
    let left = match server.delivery() {
        Delivery::AtOnce => {
            budgets * u128::from(server.budget()) - u128::from(task.cost)
                + u128::from(server.period() - server.budget())
        }
        Delivery::ByDeadline => 0,
    };
    let from_arrival = periods + jitter - left;
    let from_release = if is_idle_before { from_arrival - jitter } else { from_arrival };
    match result.outcome {
        ResponseBound::Bounded(ResponseTime { from_arrival: stated, from_release: of_release })
            if [stated, of_release].map(u128::from) == [from_arrival, from_release] => {}
        _ => return Err(Defect::Bound { task: 0 }),
    }
    check_verdict(0, task, result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Task;

    /// A job of 3 every 10 in 3 every 10 is done by 10; nothing of that may differ.
    #[test]
    fn every_condition_counts() {
        let server = |kind, budget| Server::new(kind, 10, budget).unwrap();
        let hard = server(ServerPolicy::HardBandwidth, 3);
        let task = Task::new(3, 10, 10).unwrap();
        let set = |task: Task| TaskSet::in_order(vec![task]);
        let found = hard.whole_budgets(&set(task.clone())).unwrap();
        assert_eq!(whole_budgets(&set(task.clone()), &hard, &found), Ok(()));
        let others = [
            task.with_jitter(1),
            task.with_blocking(1),
            task.with_suspension(1),
            task.with_bursts(&[1]).unwrap(),
            Task::new(4, 10, 10).unwrap(),
            Task::new(3, 9, 10).unwrap(),
            Task::new(3, 10, 9).unwrap(),
        ];
        for other in others {
            assert!(whole_budgets(&set(other.clone()), &hard, &found).is_err(), "{other:?}");
        }
        assert!(whole_budgets(&TaskSet::new(Vec::new()), &hard, &found).is_err());
        for other in
            [server(ServerPolicy::SoftBandwidth, 3), server(ServerPolicy::HardBandwidth, 2)]
        {
            assert!(whole_budgets(&set(task.clone()), &other, &found).is_err(), "{other:?}");
        }
        let at_once = hard.with_delivery(Delivery::AtOnce);
        assert!(whole_budgets(&set(task.clone()), &at_once, &found).is_err());
        let soon = at_once.whole_budgets(&set(task.clone())).unwrap();
        assert_eq!(soon.from_arrival(), [Some(3)]);
        assert_eq!(whole_budgets(&set(task.clone()), &at_once, &soon), Ok(()));
        assert!(whole_budgets(&set(task.clone()), &hard, &soon).is_err());
        let mut shorter = found;
        shorter.tasks[0].outcome =
            ResponseBound::Bounded(ResponseTime { from_arrival: 9, from_release: 9 });
        assert!(whole_budgets(&set(task), &hard, &shorter).is_err());
    }

    /// The bug: a deadline before the period was kept by each job, as if the server began with one. The kernel has 2 every 40
    /// in 2.1 of 40 with a deadline of 10 done in 39.2 where the server began 1 before the first of them.
    #[test]
    fn a_deadline_before_the_period_is_none_of_a_job() {
        let set = TaskSet::in_order(vec![Task::new(20, 400, 100).unwrap()]);
        let with = |deadline| {
            Server::with_deadline(ServerPolicy::HardBandwidth, 400, 21, deadline).unwrap()
        };
        let found = with(400).whole_budgets(&set).unwrap();
        assert_eq!(whole_budgets(&set, &with(400), &found), Ok(()));
        for deadline in [21, 100, 399] {
            let short = with(deadline);
            assert_eq!(whole_budgets(&set, &short, &found), Err(Defect::Window { task: 0 }));
            assert_eq!(short.whole_budgets(&set), None);
            let supplied = short.response_times(&set).unwrap().from_arrival();
            assert_eq!(supplied, [Some(400 + deadline - 2 * 21 + 20)]);
        }
    }
}
