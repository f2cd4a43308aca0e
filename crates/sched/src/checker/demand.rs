//! The points of a quick processor-demand analysis, checked by substitution.
//!
//! Owns: what [`demand`] checks. Must not: search.

use crate::edf::qpa::Feasibility;
use crate::exact_fraction::compare_shares;
use crate::fixed_priority::{Sections, TimeModel};
use crate::task::{Task, TaskSet};
use crate::verdict::{Verdict, Witness};

use super::Defect;
use crate::sections::segment_before;

/// Checks an answer of [`crate::edf::qpa::feasible`]: each demand, and that no interval was skipped
/// that may demand too much.
///
/// # Errors
/// The first property that does not hold; the task is always 0.
pub fn demand(
    set: &TaskSet,
    sections: Sections,
    time: TimeModel,
    found: &Feasibility,
) -> Result<(), Defect> {
    let case = Case { set, sections, time };
    for (point, (interval, stated)) in found.visited.iter().enumerate() {
        let demand = case.demand(*interval) + case.blocking(*interval);
        if demand != u128::from(*stated) && *stated != u64::MAX {
            return Err(Defect::NotFixed { task: 0, point });
        }
    }
    match found.verdict {
        Verdict::Feasible => case.check_cover(found),
        Verdict::Infeasible(Witness::Demand { interval, demand }) => {
            let holds = demand > interval
                && case.demand(interval) + case.blocking(interval) >= demand.into();
            if holds { Ok(()) } else { Err(Defect::Verdict { task: 0 }) }
        }
        Verdict::Infeasible(_) => Err(Defect::Verdict { task: 0 }),
        Verdict::NoBound | Verdict::Unknown(_) => Ok(()),
    }
}

struct Case<'a> {
    set: &'a TaskSet,
    sections: Sections,
    time: TimeModel,
}

impl Case<'_> {
    fn demand(&self, interval: u64) -> u128 {
        let work = |t: &Task| {
            let after =
                (u128::from(interval) + u128::from(t.jitter)).checked_sub(t.deadline.into());
            let jobs = after.map_or(0, |after| after / u128::from(t.period) + 1);
            jobs.saturating_mul(u128::from(t.cost) + u128::from(t.suspension))
        };
        self.set.tasks().iter().map(work).sum()
    }

    fn blocking(&self, interval: u64) -> u128 {
        let later =
            self.set.tasks().iter().filter(|t| t.deadline.saturating_sub(t.jitter) > interval);
        let segment = later.map(|t| segment_before(t, self.sections, self.time)).max().unwrap_or(0);
        let stated = self.set.tasks().iter().map(|t| t.blocking).max().unwrap_or(0);
        u128::from(segment) + u128::from(stated)
    }

    /// From the longest interval down to the first deadline: with `(t, h)` visited, all intervals
    /// between h and t demand at most h, as long as the blocking is the same; where nothing is
    /// due between two intervals, both have equal demand; and jobs bring at most the share of their
    /// task.
    fn check_cover(&self, found: &Feasibility) -> Result<(), Defect> {
        let share = |t: &Task| (t.cost.saturating_add(t.suspension), t.period);
        let used = compare_shares(self.set.tasks().iter().map(share), (1, 1));
        let mut below = found.length;
        let mut before = None;
        for (point, (interval, demand)) in found.visited.iter().enumerate() {
            // Nothing is due between this interval and what is proven already, or not enough.
            let by_work = || {
                let first = self.next_deadline(Some(*interval));
                used.is_le() && before.is_some_and(|before| self.by_work(first, before))
            };
            let proven = *interval >= below || self.silent(*interval, below) || by_work();
            if demand > interval || !proven {
                return Err(Defect::Missing { task: 0, point });
            }
            below = below.min(if self.blocking(*demand) == self.blocking(*interval) {
                *demand
            } else {
                self.edge(*interval, *demand)
            });
            before = Some(*interval);
        }
        let first = self.next_deadline(None);
        let by_work = || used.is_le() && before.is_some_and(|before| self.by_work(first, before));
        let last = Defect::Missing { task: 0, point: found.visited.len() };
        let proven = below == 0 || self.demand(below - 1) == 0 || by_work();
        if proven { Ok(()) } else { Err(last) }
    }

    /// The first interval longer than this one, or at all, in which one job more is due.
    fn next_deadline(&self, interval: Option<u64>) -> u128 {
        let next = |t: &Task| {
            let first = i128::from(t.deadline) - i128::from(t.jitter);
            let Some(interval) = interval else { return u128::try_from(first).unwrap_or(0) };
            let after = i128::from(interval) - first;
            let jobs = if after < 0 { 0 } else { after / i128::from(t.period) + 1 };
            u128::try_from(first + jobs * i128::from(t.period)).unwrap_or(0)
        };
        self.set.tasks().iter().map(next).min().unwrap_or(u128::MAX)
    }

    /// Whether no interval from `first` to `last` demands too much: of each task at most those jobs are
    /// due that are due in `last`, and at most its share of the time since a period before its first
    /// deadline. As the shares are at most 1 in all, the shortest interval is the worst.
    fn by_work(&self, first: u128, last: u64) -> bool {
        let Ok(shortest) = u64::try_from(first) else { return true };
        let (mut whole, mut parts) = (self.blocking(shortest), 0u128);
        for t in self.set.tasks() {
            let cost = u128::from(t.cost) + u128::from(t.suspension);
            let period = u128::from(t.period);
            let after = (u128::from(last) + u128::from(t.jitter)).checked_sub(t.deadline.into());
            let most = after.map_or(0, |after| after / period + 1).saturating_mul(cost);
            let since = (first + u128::from(t.jitter) + period).saturating_sub(t.deadline.into());
            match since.checked_mul(cost).filter(|line| line / period < most) {
                Some(line) => {
                    whole = whole.saturating_add(line / period);
                    parts += ((line % period) << 64).div_ceil(period);
                }
                None => whole = whole.saturating_add(most),
            }
        }
        whole.saturating_add(parts >> 64) <= first
    }

    /// Whether no deadline lies between an interval and a longer one, both left out.
    fn silent(&self, interval: u64, longer: u64) -> bool {
        longer <= interval + 1 || self.demand(longer - 1) == self.demand(interval)
    }

    /// Down to where the blocking stays as it is for `interval`, but not below `demand`.
    fn edge(&self, interval: u64, demand: u64) -> u64 {
        let edges = self.set.tasks().iter().map(|t| t.deadline.saturating_sub(t.jitter));
        let edges = edges.filter(|d| *d <= interval);
        edges.max().unwrap_or(0).max(demand)
    }
}
