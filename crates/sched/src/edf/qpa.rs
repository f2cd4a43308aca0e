//! Quick processor-demand analysis (Zhang and Burns, IEEE TC 2009), with cuts (Singh, RTS 2023) where the
//! numbers are of usual size.
//!
//! Owns: the search from the longest interval downwards, and the points that prove its answer. Where
//! segments block, it runs between the deadlines at which the blocking changes. Must not: skip an
//! interval that may demand too much.

use crate::effort::StepLimit;
use crate::fixed_priority::{Sections, TimeModel};
use crate::task::{Task, TaskSet};
use crate::verdict::{Refusal, Verdict};

use super::analysis_length::{Length, length};
use super::demand::{blocking_within, demand_bound, first_deadline, too_much};
use super::demand_set::DemandSet;

/// The answer and what proves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feasibility {
    /// Whether every deadline holds.
    pub verdict: Verdict,
    /// The longest interval that had to be tested.
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
    feasible_within(set, sections, time, StepLimit::default())
}

/// The same with a stated effort.
#[must_use]
pub fn feasible_within(
    set: &TaskSet,
    sections: Sections,
    time: TimeModel,
    mut effort: StepLimit,
) -> Feasibility {
    feasible_by(set, sections, time, &mut effort)
}

/// The same, which takes what it needs from an effort for several tests.
#[must_use]
pub fn feasible_by(
    set: &TaskSet,
    sections: Sections,
    time: TimeModel,
    effort: &mut StepLimit,
) -> Feasibility {
    if !set.is_plain() {
        return Feasibility::without(Verdict::Unknown(Refusal::OutsideModel));
    }
    let mut lanes = DemandSet::with_capacity(set.len());
    let end = match length(set, sections, time, effort, &mut lanes) {
        Ok(Length::Below(end)) => end,
        Ok(Length::Overload) => return Feasibility::without(Verdict::NoBound),
        Err(why) => return Feasibility::without(Verdict::Unknown(why)),
    };
    let visited = Vec::with_capacity(16);
    let near = lanes.are_near(end);
    let mut search = Search { tasks: set.tasks(), lanes, fits_u64: near, visited, effort };
    let verdict = match search.pieces(set, sections, time, end) {
        Ok(None) => Verdict::Feasible,
        Ok(Some((interval, demand))) => too_much(set, sections, interval, demand),
        Err(why) => Verdict::Unknown(why),
    };
    let found = Feasibility { verdict, length: end, visited: search.visited };
    debug_assert_eq!(crate::checker::demand(set, sections, time, &found), Ok(()));
    found
}

struct Search<'a, 'b> {
    tasks: &'a [Task],
    lanes: DemandSet,
    fits_u64: bool,
    visited: Vec<(u64, u64)>,
    effort: &'b mut StepLimit,
}

impl Search<'_, '_> {
    /// Searches below `end`; gives an interval with more demand than there is.
    fn pieces(
        &mut self,
        set: &TaskSet,
        sections: Sections,
        time: TimeModel,
        end: u64,
    ) -> Result<Option<(u64, u128)>, Refusal> {
        let lowest = match self.fits_u64 {
            true => self.lanes.lowest(),
            false => self.tasks.iter().map(first_deadline).min().unwrap_or(u64::MAX),
        };
        let at_once = if lowest == 0 { demand_bound(set, 0) } else { 0 };
        if at_once > 0 {
            // Jitter may use up the whole deadline.
            let blocking = blocking_within(set, 0, sections, time);
            let at_once = at_once.saturating_add(u128::from(blocking));
            self.visited.push((0, u64::try_from(at_once).unwrap_or(u64::MAX)));
            return Ok(Some((0, at_once)));
        }
        if sections == Sections::Preemptive {
            let blocking = self.lanes.blocking();
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
            self.effort.charge(self.tasks.len())?;
            let (demand, last) = if self.fits_u64 {
                let (demand, last) = self.lanes.look(below - 1);
                (u128::from(demand), Some(last))
            } else {
                self.lanes.look_far(self.tasks, below - 1)
            };
            let Some(at) = last.filter(|at| *at >= from) else { break };
            let demand = demand.saturating_add(u128::from(blocking));
            self.visited.push((at, u64::try_from(demand).unwrap_or(u64::MAX)));
            if demand > u128::from(at) {
                return Ok(Some((at, demand)));
            }
            // The demand is at most `at` here, and so fits.
            let demand = demand as u64;
            below = match (demand < at, self.fits_u64) {
                (true, true) => self.lanes.cut(demand, at),
                (true, false) => demand,
                (false, _) => at,
            };
        }
        Ok(None)
    }
}
