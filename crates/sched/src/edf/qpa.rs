//! Quick processor-demand analysis (Zhang and Burns, IEEE TC 2009), with cuts (Singh, RTS 2023) where the
//! numbers are of usual size.
//!
//! Owns: the search from the longest interval downwards, and the points that prove its answer. Where
//! segments block, it runs between the deadlines at which the blocking changes. Must not: skip an
//! interval that may demand too much.

use crate::effort::Effort;
use crate::fixed_priority::{Sections, TimeModel};
use crate::task::{Task, TaskSet};
use crate::verdict::{Refusal, Verdict};

use super::demand::{blocking_within, demand_bound, first_deadline, too_much};
use super::length::{DIGITS, Length, length};

/// The answer and what proves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feasibility {
    /// Whether every deadline holds.
    pub verdict: Verdict,
    /// No longer interval had to be looked at.
    pub length: u64,
    /// The intervals looked at, descending, each with what is demanded in it, blocking included.
    /// From one to the next, no interval can demand too much: between a demand and its interval, or by the
    /// shares of the tasks.
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
    if !set.is_plain() {
        return Feasibility::without(Verdict::Unknown(Refusal::OutsideModel));
    }
    let mut effort = effort;
    let mut shares = Vec::with_capacity(set.len());
    let end = match length(set, sections, time, &mut effort, &mut shares) {
        Ok(Length::Below(end)) => end,
        Ok(Length::Overload) => return Feasibility::without(Verdict::NoBound),
        Err(why) => return Feasibility::without(Verdict::Unknown(why)),
    };
    let visited = Vec::with_capacity(16);
    let mut search = Search { tasks: set.tasks(), shares, visited, effort };
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
    /// The share of each, rounded down, and its last deadline in the interval looked at, or 0.
    shares: Vec<(u64, u64)>,
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
        let at_once = if lowest == 0 { demand_bound(set, 0) } else { 0 };
        if at_once > 0 {
            // Jitter may use up the whole deadline.
            let blocking = blocking_within(set, 0, sections, time);
            let at_once = at_once.saturating_add(u128::from(blocking));
            self.visited.push((0, u64::try_from(at_once).unwrap_or(u64::MAX)));
            return Ok(Some((0, at_once)));
        }
        if sections == Sections::Preemptive {
            let blocking = blocking_within(set, lowest, sections, time);
            return if lowest < end { self.piece(lowest, end, blocking) } else { Ok(None) };
        }
        let mut edges: Vec<u64> = vec![lowest];
        edges.extend(self.tasks.iter().map(first_deadline).filter(|d| *d > lowest && *d < end));
        edges.sort_unstable_by(|a, b| b.cmp(a));
        edges.dedup();
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
        let mut below = end;
        while below > from {
            self.effort.look(self.tasks.len())?;
            let (demand, last) = match self.look(below - 1) {
                Some((demand, last)) => (u128::from(demand), Some(last)),
                None => self.slowly(below - 1),
            };
            let Some(at) = last.filter(|at| *at >= from) else { break };
            let demand = demand.saturating_add(u128::from(blocking));
            self.visited.push((at, u64::try_from(demand).unwrap_or(u64::MAX)));
            if demand > u128::from(at) {
                return Ok(Some((at, demand)));
            }
            // It is at most `at` here, and so fits.
            let demand = demand as u64;
            below = if demand < at { self.cut(demand) } else { at };
        }
        Ok(None)
    }

    /// The demand in an interval and the last deadline in it, or 0, if the numbers allow.
    fn look(&mut self, interval: u64) -> Option<(u64, u64)> {
        let (mut sum, mut latest) = (0u64, 0);
        for (task, (_, last)) in self.tasks.iter().zip(&mut self.shares) {
            *last = 0;
            let shifted = interval.checked_add(task.jitter)?;
            if let Some(after) = shifted.checked_sub(task.deadline) {
                let jobs = after / task.period;
                let cost = task.cost.checked_add(task.suspension)?;
                sum = sum.checked_add(jobs.checked_add(1)?.checked_mul(cost)?)?;
                // A job may be due before 0, which is later than its release.
                *last = interval.saturating_sub(after - jobs * task.period);
                latest = latest.max(*last);
            }
        }
        Some((sum, latest))
    }

    /// The same for any numbers.
    #[cold]
    fn slowly(&mut self, interval: u64) -> (u128, Option<u64>) {
        // Without last deadlines there is no cut.
        self.shares.iter_mut().for_each(|(_, last)| *last = 0);
        let demand = demand_bound(&TaskSet::new(self.tasks.to_vec()), interval);
        (demand, interval.checked_add(1).and_then(|end| self.last_before(end)))
    }

    /// The least interval from which up to the one looked at nothing demands too much, given that what is
    /// demanded in that one is `level` with the blocking: where jobs due after `level` count by their
    /// shares only. A cut of Singh ("Cutting-plane algorithms for preemptive uniprocessor real-time scheduling
    /// problems", RTS 2023, section 5); QPA goes to `level`.
    fn cut(&self, level: u64) -> u64 {
        let (mut lower, mut used, mut least) = (0u128, 0u64, 0u64);
        for (task, (share, last)) in self.tasks.iter().zip(&self.shares) {
            if let Some(later) = last.checked_sub(level).filter(|later| *later > 0) {
                lower += u128::from(later) * u128::from(*share);
                used = used.saturating_add(*share);
                // A line is below the demand where it is below 0.
                let begins = first_deadline(task).saturating_sub(task.period);
                least = least.max(begins);
            }
        }
        let free = (1u64 << DIGITS).checked_sub(used).filter(|free| *free > 0);
        let further = match (free, u64::try_from(lower)) {
            (None, _) => return level,
            (Some(free), Ok(lower)) => lower / free,
            (Some(free), Err(_)) => u64::try_from(lower / u128::from(free)).unwrap_or(u64::MAX),
        };
        level.saturating_sub(further).max(least.min(level))
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
