//! Quick processor-demand analysis (Zhang and Burns, IEEE TC 2009).
//!
//! Owns: the search from the longest interval downwards, and the points that prove its answer. Where
//! segments block, it runs between the deadlines at which the blocking changes. Must not: skip an
//! interval that may demand too much.

use crate::effort::Effort;
use crate::fixed_priority::{Sections, TimeModel};
use crate::task::{Task, TaskSet};
use crate::verdict::{Refusal, Verdict};

use super::demand::{blocking_within, demand_bound, first_deadline, too_much};
use super::length::{Length, length};

/// The answer and what proves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feasibility {
    /// Whether every deadline holds.
    pub verdict: Verdict,
    /// No longer interval had to be looked at.
    pub length: u64,
    /// The intervals looked at, descending, each with what is demanded in it, blocking included.
    /// From one to the next, no interval between a demand and its interval can demand too much.
    pub visited: Vec<(u64, u64)>,
}

impl Feasibility {
    fn without(verdict: Verdict) -> Feasibility {
        Feasibility { verdict, length: 0, visited: Vec::new() }
    }
}

/// Whether the demand of a set never exceeds the interval in which it is due.
#[must_use]
pub fn feasible(set: &TaskSet, sections: Sections, time: TimeModel) -> Feasibility {
    feasible_within(set, sections, time, Effort::default())
}

/// The same with a stated effort.
#[must_use]
pub fn feasible_within(
    set: &TaskSet,
    sections: Sections,
    time: TimeModel,
    effort: Effort,
) -> Feasibility {
    let mut effort = effort;
    let end = match length(set, sections, time, &mut effort) {
        Ok(Length::Below(end)) => end,
        Ok(Length::Overload) => return Feasibility::without(Verdict::NoBound),
        Err(why) => return Feasibility::without(Verdict::Unknown(why)),
    };
    let mut search = Search { tasks: set.tasks(), visited: Vec::with_capacity(32), effort };
    let verdict = match search.pieces(set, sections, time, end) {
        Ok(None) => Verdict::Feasible,
        Ok(Some((interval, demand))) => too_much(set, sections, interval, demand),
        Err(why) => Verdict::Unknown(why),
    };
    let found = Feasibility { verdict, length: end, visited: search.visited };
    debug_assert_eq!(crate::checker::demand(set, sections, time, &found), Ok(()));
    found
}

struct Search<'a> {
    tasks: &'a [Task],
    visited: Vec<(u64, u64)>,
    effort: Effort,
}

impl Search<'_> {
    /// Searches below `end`; gives an interval with more demand than there is.
    fn pieces(
        &mut self,
        set: &TaskSet,
        sections: Sections,
        time: TimeModel,
        end: u64,
    ) -> Result<Option<(u64, u128)>, Refusal> {
        let lowest = self.tasks.iter().map(first_deadline).min().unwrap_or(u64::MAX);
        let at_once = if lowest == 0 { self.demand(0) } else { 0 };
        if at_once > 0 {
            // Jitter may use up the whole deadline.
            let blocking = blocking_within(set, 0, sections, time);
            let at_once = at_once.saturating_add(u128::from(blocking));
            self.visited.push((0, u64::try_from(at_once).unwrap_or(u64::MAX)));
            return Ok(Some((0, at_once)));
        }
        let mut edges: Vec<u64> = vec![lowest];
        if sections != Sections::Preemptive {
            edges.extend(self.tasks.iter().map(first_deadline).filter(|d| *d > lowest && *d < end));
            edges.sort_unstable_by(|a, b| b.cmp(a));
            edges.dedup();
        }
        let mut end = end;
        for from in edges {
            if from < end {
                let blocking = blocking_within(set, from, sections, time);
                if let Some(found) = self.piece(from, end, blocking)? {
                    return Ok(Some(found));
                }
                end = from;
            }
        }
        Ok(None)
    }

    /// Searches the intervals from `from` to below `end`, in which the blocking is the same.
    fn piece(
        &mut self,
        from: u64,
        end: u64,
        blocking: u64,
    ) -> Result<Option<(u64, u128)>, Refusal> {
        let mut interval = self.last_before(end);
        while let Some(at) = interval.filter(|at| *at >= from) {
            self.effort.step()?;
            let demand = self.demand(at).saturating_add(u128::from(blocking));
            self.visited.push((at, u64::try_from(demand).unwrap_or(u64::MAX)));
            if demand > u128::from(at) {
                return Ok(Some((at, demand)));
            }
            // It is at most `at` here, and so fits.
            let demand = demand as u64;
            interval = if demand < at { Some(demand) } else { self.last_before(at) };
        }
        Ok(None)
    }

    /// The demand in an interval, quickly if the numbers allow.
    fn demand(&self, interval: u64) -> u128 {
        let mut sum = 0u64;
        for task in self.tasks {
            let Some(shifted) = interval.checked_add(task.jitter) else {
                return self.slowly(interval);
            };
            if let Some(after) = shifted.checked_sub(task.deadline) {
                let cost = task.cost.checked_add(task.suspension);
                let work = cost.and_then(|cost| (after / task.period + 1).checked_mul(cost));
                let Some(total) = work.and_then(|work| sum.checked_add(work)) else {
                    return self.slowly(interval);
                };
                sum = total;
            }
        }
        u128::from(sum)
    }

    #[cold]
    fn slowly(&self, interval: u64) -> u128 {
        demand_bound(&TaskSet::new(self.tasks.to_vec()), interval)
    }

    /// The last deadline before `end`, of jobs released together at 0 and as early as can be.
    fn last_before(&self, end: u64) -> Option<u64> {
        let end = end.checked_sub(1)?;
        let last = |task: &Task| {
            // Jitter puts deadlines closer, the first perhaps before 0.
            let shifted = u128::from(end) + u128::from(task.jitter);
            let after = shifted.checked_sub(task.deadline.into())?;
            let period = u128::from(task.period);
            let into = match (u64::try_from(after), task.period) {
                (Ok(after), period) => u128::from(after % period),
                (Err(_), _) => after % period,
            };
            u64::try_from((shifted - into).checked_sub(task.jitter.into())?).ok()
        };
        self.tasks.iter().filter_map(last).max()
    }
}
