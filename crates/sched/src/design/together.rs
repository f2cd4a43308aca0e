//! Budgets of one whole job for several tasks that share processors and follow each other.
//!
//! Owns: the search for deadlines and periods that hold together. Must not: know how a deadline becomes a priority.

use crate::servers::{Server, ServerPolicy};
use crate::task::Task;

/// Rounds until the deadlines of stages that follow each other no longer grow.
const ROUNDS: usize = 64;
/// Deadlines are longer than they must be by the first of these parts that is possible; 0 for no longer.
const MORE: [u64; 5] = [1, 2, 4, 8, 0];
/// So many stages are looked at in each order of urgency.
const ALL_ORDERS: usize = 6;

/// A task that is to have a deferrable server of its own.
#[derive(Clone, Copy, Debug)]
pub struct Stage<'a> {
    /// Its cost is the budget; its jitter is that of its release after its arrival and the ends of the stages before it.
    pub task: &'a Task,
    /// Where it runs.
    pub processor: u32,
    /// The places of the stages whose ends release it.
    pub after: &'a [usize],
    /// From the arrival of the first stage to the end of a job, at most; `None` where only later stages have one.
    pub deadline: Option<u64>,
}

/// The server of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageServer {
    /// Its deadline is that of its priority.
    pub server: Server,
    /// From the arrival of the first stage to the end of a job, at most.
    pub bound: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Terms {
    budget: u64,
    period: u64,
    deadline: u64,
    bound: u64,
}

/// Deferrable servers, one a stage, of which each keeps its own deadline beside the others on its processor, and all keep
/// those of the stages; `None` if none are found. `less_urgent`: the shortest deadline with a lower priority than this one;
/// only that is looked at as less urgent.
///
/// The more urgent servers on its processor delay a server in no window by more than budgets that come late in one period and
/// early in the next (Strosnider, Lehoczky and Sha, IEEE ToC 1995), so that work with a budget has all of C within d, whenever it
/// comes. Let jobs take C at most, be released T apart at least, and have periods P = T - (d - C) + x with 0 <= x <= d - C and
/// d <= P. Then they end within d + x of their release; with x = d - C that is [`super::of_whole_jobs`].
///
/// Let a job be released y before the end of its period, which began at b. By induction, its budget lasts for y - x more, or for
/// all of it: the job before was released y + (d - C) - x before b at least. In an earlier period than the last before b, it was
/// done by b. Otherwise it had run for y - x by b, or for its own rest of a budget, which lasted for y + (d - C) - 2 x and so for
/// y - x, too; the period from b on lost no more than the rest of C. Now a job whose budget lasts to the end of the period has one
/// all the time, and ends within d. One that has used it up ran for y - x before that end, and what is left of C is done d -
/// (y - x) after it: d + x after the release.
#[must_use]
pub fn together(
    stages: &[Stage<'_>],
    less_urgent: impl Fn(u64) -> Option<u64>,
) -> Option<Vec<StageServer>> {
    let less_urgent: &dyn Fn(u64) -> Option<u64> = &less_urgent;
    let with = |more: &usize| {
        let more = vec![*more; stages.len()];
        orders(stages)
            .find_map(|order| Some((in_order(stages, &order, less_urgent, &more)?, order)))
    };
    // The most room that there is for what no analysis counts, for all, then for one after the other.
    let (least, (mut found, order)) =
        (0..MORE.len()).find_map(|more| Some((more, with(&more)?)))?;
    let mut more = vec![least; stages.len()];
    for place in &order {
        for better in 0..least {
            more[*place] = better;
            if let Some(other) = in_order(stages, &order, less_urgent, &more) {
                found = other;
                break;
            }
            more[*place] = least;
        }
    }
    Some(found)
}

/// Orders of urgency, the likeliest first: all of a few stages.
fn orders(stages: &[Stage<'_>]) -> impl Iterator<Item = Vec<usize>> {
    let mut by_deadline: Vec<usize> = (0..stages.len()).collect();
    by_deadline.sort_by_key(|place| {
        let Stage { task, deadline, .. } = stages[*place];
        (deadline.unwrap_or(task.period()), task.cost())
    });
    let mut by_cost = by_deadline.clone();
    by_cost.sort_by_key(|place| stages[*place].task.cost());
    let first = (stages.len() <= ALL_ORDERS).then(|| (0..stages.len()).collect::<Vec<usize>>());
    let next = |order: &Vec<usize>| {
        let mut order = order.clone();
        next_order(&mut order).then_some(order)
    };
    [by_deadline, by_cost].into_iter().chain(std::iter::successors(first, next))
}

/// The next one in the order of their numbers; false behind the last.
fn next_order(order: &mut [usize]) -> bool {
    let Some(rise) = order.windows(2).rposition(|pair| pair[0] < pair[1]) else { return false };
    let larger = order.iter().rposition(|place| *place > order[rise]).unwrap_or(rise);
    order.swap(rise, larger);
    order[rise + 1..].reverse();
    true
}

/// The same with this order of urgency, and these places in `MORE`.
fn in_order(
    stages: &[Stage<'_>],
    order: &[usize],
    less_urgent: &dyn Fn(u64) -> Option<u64>,
    more: &[usize],
) -> Option<Vec<StageServer>> {
    let least = |stage: &Stage<'_>| {
        let budget = stage.task.cost();
        Terms { budget, period: stage.task.period(), deadline: budget, bound: 0 }
    };
    let mut all: Vec<Terms> = stages.iter().map(least).collect();
    for _ in 0..ROUNDS {
        let before = all.clone();
        let mut above: Vec<usize> = Vec::new();
        for place in order {
            let here = |other: &&usize| stages[**other].processor == stages[*place].processor;
            let above_here: Vec<Terms> = above.iter().filter(here).map(|at| all[*at]).collect();
            let is_last = !stages.iter().any(|stage| stage.after.contains(place));
            let least = all[*place].deadline;
            let longest = above_here.iter().map(|other| other.deadline).max();
            let least = longest.map_or(Some(least), |ns| Some(less_urgent(ns)?.max(least)))?;
            let within = Deadline { least, part: MORE[more[*place]], is_last };
            all[*place] = terms(&stages[*place], &all, &above_here, within)?;
            above.push(*place);
        }
        if all == before {
            let holds = |(stage, terms): (&Stage<'_>, &Terms)| {
                stage.deadline.is_none_or(|deadline| terms.bound <= deadline)
            };
            if !stages.iter().zip(&all).all(holds) {
                return None;
            }
            return all.iter().map(|terms| terms.server()).collect();
        }
    }
    None
}

impl Terms {
    fn server(&self) -> Option<StageServer> {
        let Terms { budget, period, deadline, bound } = *self;
        let server = Server::with_deadline(ServerPolicy::Deferrable, period, budget, deadline);
        Some(StageServer { server: server.ok()?, bound })
    }

    /// What it takes of a window at most.
    fn most_in(&self, window: u64) -> Option<u64> {
        let late = self.period.checked_sub(self.budget)?;
        let budgets = window.checked_add(late)?.div_ceil(self.period.max(1));
        budgets.checked_mul(self.budget)
    }
}

/// What a deadline must be: no less from round to round, below others, and longer than it must be by a part of itself.
#[derive(Clone, Copy)]
struct Deadline {
    least: u64,
    part: u64,
    is_last: bool,
}

/// Of a stage below these servers.
fn terms(stage: &Stage<'_>, all: &[Terms], above: &[Terms], within: Deadline) -> Option<Terms> {
    let budget = stage.task.cost();
    let ends = stage.after.iter().map(|at| all.get(*at).map_or(0, |terms| terms.bound));
    let jitter = ends.max().unwrap_or(0).checked_add(stage.task.jitter())?;
    let apart = stage.task.curve().map_or(Some(stage.task.period()), |curve| curve.distance(2))?;
    let apart = apart.checked_sub(jitter)?;
    let served = served_within(budget, above, apart)?;
    let more = served.checked_div(within.part).unwrap_or(0);
    let deadline = served.checked_add(more)?.max(within.least);
    let wait = deadline - budget;
    if apart < deadline {
        return None;
    }
    let shortest = deadline.max(apart.saturating_sub(wait));
    let released = jitter.checked_add(deadline)?;
    // Longer periods take less, and delay only what comes after.
    let spare = match stage.deadline {
        Some(until) if within.is_last => until.saturating_sub(released),
        _ => 0,
    };
    let later = (wait - (apart - shortest)).max(spare.min(wait));
    let period = apart - (wait - later);
    Some(Terms { budget, period, deadline, bound: released.checked_add(later)? })
}

/// Until when a budget is had below these servers; `None` beyond `most`.
fn served_within(budget: u64, above: &[Terms], most: u64) -> Option<u64> {
    let mut window = budget;
    loop {
        let mut taken = above.iter().map(|other| other.most_in(window));
        let next = taken.try_fold(budget, |sum, taken| sum.checked_add(taken?))?;
        if next <= window {
            return Some(window);
        }
        if next > most {
            return None;
        }
        window = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(costs: &[u64], period: u64) -> Option<Vec<(u64, u64, u64)>> {
        let made = |cost: &u64| Task::new(*cost, period, period).unwrap();
        let tasks: Vec<Task> = costs.iter().map(made).collect();
        let after: Vec<Vec<usize>> =
            (0..costs.len()).map(|at| Vec::from_iter(at.checked_sub(1))).collect();
        let stage = |at: usize| {
            let deadline = (at + 1 == costs.len()).then_some(period);
            Stage { task: &tasks[at], processor: 0, after: &after[at], deadline }
        };
        let stages: Vec<Stage<'_>> = (0..costs.len()).map(stage).collect();
        let found = together(&stages, |deadline| Some(1 << (deadline.ilog2() + 1)))?;
        let numbers = |one: StageServer| (one.server.period(), one.server.deadline(), one.bound);
        Some(found.into_iter().map(numbers).collect())
    }

    /// By hand. Alone: twice its budget, and a period of the whole distance. Two: twice 10, and 20 + 2 * 10 and half of it more.
    /// Three: the last one has the smallest distance, and is more urgent than the second.
    #[test]
    fn deadlines_leave_room_for_what_is_more_urgent() {
        assert_eq!(chain(&[6], 100), Some(vec![(100, 12, 18)]));
        assert_eq!(chain(&[10, 20], 100), Some(vec![(90, 20, 20), (60, 60, 100)]));
        assert_eq!(chain(&[6, 11, 11], 100), Some(vec![(94, 12, 12), (50, 50, 63), (35, 25, 100)]));
        assert_eq!(chain(&[30, 30, 20], 100), None);
    }

    #[test]
    fn every_order_comes_once() {
        let (mut order, mut count) = (vec![0, 1, 2, 3], 1);
        while next_order(&mut order) {
            count += 1;
        }
        assert_eq!((count, order), (24, vec![3, 2, 1, 0]));
    }
}
