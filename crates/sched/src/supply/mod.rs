//! What a reservation supplies at least, and what that makes of response times.
//!
//! Owns: the supply of a periodic resource (Shin and Lee, RTSS 2003) and of an explicit-deadline
//! periodic resource (Easwaran, Anand and Lee, RTSS 2007), its inverse, fixed priorities and EDF
//! on it. Must not: know how a reservation is enforced; see [`crate::servers`]; search for a budget;
//! see [`crate::design`].

pub mod edf;

use std::cmp::Ordering;

use crate::effort::StepLimit;
use crate::exact_fraction::{compare_shares, greatest_common_divisor};
use crate::recurrence::Stream;
use crate::task::{Task, TaskSet};
use crate::verdict::{Analysis, Point, Refusal, ResponseBound, TaskResult, Window};

/// `budget` units of processor time in every period, within `deadline` of the period's beginning.
///
/// Invariants: 0 < budget <= deadline <= period; wait <= period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supply {
    period: u64,
    budget: u64,
    deadline: u64,
    /// The longest time from the beginning of a window to that of a period.
    wait: u64,
}

/// A supply that cannot be meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SupplyError {
    /// The budget is zero.
    #[error("the budget is 0; give the processor time of a period")]
    NoBudget,
    /// The budget does not fit.
    #[error("a budget of {budget} does not fit into {deadline}")]
    BudgetOverDeadline {
        /// The budget.
        budget: u64,
        /// The time for it.
        deadline: u64,
    },
    /// The deadline is over the period.
    #[error("a deadline of {deadline} is longer than the period of {period}")]
    DeadlineOverPeriod {
        /// The deadline.
        deadline: u64,
        /// The period.
        period: u64,
    },
}

impl Supply {
    /// A periodic resource: `budget` anywhere in every `period`.
    ///
    /// # Errors
    /// A budget of 0 or over the period.
    pub fn periodic(period: u64, budget: u64) -> Result<Supply, SupplyError> {
        Supply::with_deadline(period, budget, period)
    }

    /// An explicit-deadline periodic resource.
    ///
    /// # Errors
    /// A budget of 0 or over the deadline, a deadline over the period.
    pub fn with_deadline(period: u64, budget: u64, deadline: u64) -> Result<Supply, SupplyError> {
        if budget == 0 {
            return Err(SupplyError::NoBudget);
        }
        if budget > deadline {
            return Err(SupplyError::BudgetOverDeadline { budget, deadline });
        }
        if deadline > period {
            return Err(SupplyError::DeadlineOverPeriod { deadline, period });
        }
        Ok(Supply { period, budget, deadline, wait: period - budget })
    }

    /// The same, but a window may begin `wait` before a period does; at most the period.
    pub(crate) fn with_wait(self, wait: u64) -> Supply {
        Supply { wait: wait.min(self.period), ..self }
    }

    /// The processor time of a period.
    #[must_use]
    pub fn budget(&self) -> u64 {
        self.budget
    }

    /// The period.
    #[must_use]
    pub fn period(&self) -> u64 {
        self.period
    }

    /// The longest time without supply: in a periodic resource, it came at once, and comes as late as
    /// it may.
    fn gap(&self) -> u128 {
        u128::from(self.wait) + u128::from(self.deadline - self.budget)
    }

    /// The least processor time in any window of length `window`: the supply bound function.
    #[must_use]
    pub fn least_in(&self, window: u64) -> u64 {
        let Some(after) = u128::from(window).checked_sub(self.gap()) else { return 0 };
        let (periods, into) = (after / u128::from(self.period), after % u128::from(self.period));
        let budget = u128::from(self.budget);
        // No more than the window, which has 64 bits.
        u64::try_from(periods * budget + into.min(budget)).unwrap_or(u64::MAX)
    }

    /// The shortest window that is sure to have `work` units of processor time; 0 for none. `None`
    /// if it has more than 64 bits.
    #[must_use]
    pub fn window_for(&self, work: u64) -> Option<u64> {
        let Some(before) = work.checked_sub(1) else { return Some(0) };
        let (periods, into) = (before / self.budget, before % self.budget);
        let window =
            self.gap() + u128::from(periods) * u128::from(self.period) + u128::from(into) + 1;
        u64::try_from(window).ok()
    }
}

/// Bounds response times under preemptive fixed priorities inside a reservation: as on a processor
/// of its own, with windows as long as it takes to supply them. Equal priorities count as higher.
///
/// A bound over a deadline leaves it unknown: the supply need not be the least every time.
#[must_use]
pub fn fixed_priority(set: &TaskSet, supply: &Supply) -> Analysis {
    fixed_priority_by(set, supply, &mut StepLimit::default())
}

/// The same, which takes what it needs from an effort for several analyses.
#[must_use]
pub fn fixed_priority_by(set: &TaskSet, supply: &Supply, effort: &mut StepLimit) -> Analysis {
    let mut points = Vec::new();
    let tasks = (0..set.len())
        .map(|position| {
            let from = points.len();
            match solve(set, position, supply, effort, &mut points) {
                Ok(Some(window)) => crate::fixed_priority::task_result(
                    set,
                    position,
                    &points,
                    from..points.len(),
                    window,
                    false,
                ),
                Ok(None) => crate::fixed_priority::overloaded(from),
                Err(why) => {
                    points.truncate(from);
                    crate::fixed_priority::refused(why, from)
                }
            }
        })
        .collect::<Vec<TaskResult>>();
    Analysis { tasks, points }
}

/// A time that the period of a reservation and those of all tasks divide: if all supply is used,
/// x(q + H/T) = x(q) + H with it. `None` if it has more than 64 bits.
fn repetition<'a>(supply: &Supply, tasks: impl Iterator<Item = &'a Task>) -> Option<u64> {
    let mut periods = tasks.map(|task| task.period).chain([supply.period]);
    periods.try_fold(1u64, |multiple, period| {
        (multiple / greatest_common_divisor(multiple, period)).checked_mul(period)
    })
}

/// The points of a task's window; `None` if more is demanded than is supplied.
fn solve(
    set: &TaskSet,
    position: usize,
    supply: &Supply,
    effort: &mut StepLimit,
    points: &mut Vec<Point>,
) -> Result<Option<Window>, Refusal> {
    let task = &set.tasks()[position];
    if !set.is_plain() {
        return Err(Refusal::OutsideModel);
    }
    if set.tasks().iter().any(|t| t.suspension > 0) {
        return Err(Refusal::Suspension);
    }
    let others = set.tasks().iter().enumerate();
    let higher = others.filter(|(at, t)| *at != position && t.priority >= task.priority);
    let higher: Vec<&Task> = higher.map(|(_, t)| t).collect();
    let all = || higher.iter().copied().chain([task]);
    let mut repeats = None;
    match compare_shares(all().map(|t| (t.cost, t.period)), (supply.budget, supply.period)) {
        Ordering::Greater => return Ok(None),
        // Then the window need not end.
        Ordering::Equal => repeats = repetition(supply, all()),
        Ordering::Less => {}
    }
    let most = match repeats {
        Some(after) => after.checked_add(task.jitter).ok_or(Refusal::Overflow)? / task.period + 1,
        None => u64::MAX,
    };
    let higher: Vec<Stream> = higher.into_iter().map(Stream::from_task).collect();
    let (mut finish, mut offset) = (1, 0);
    for jobs in 1..=most {
        let own = jobs.checked_mul(task.cost).and_then(|own| own.checked_add(task.blocking));
        let own = own.ok_or(Refusal::Overflow)?;
        loop {
            effort.charge(higher.len() + 1)?;
            let add = |sum: u64, stream: &Stream| sum.checked_add(stream.work_before(finish)?);
            let work = higher.iter().try_fold(own, add).ok_or(Refusal::Overflow)?;
            let window = supply.window_for(work).ok_or(Refusal::Overflow)?;
            if window <= finish {
                break;
            }
            finish = window;
        }
        points.push(Point { offset, jobs, finish });
        let next = jobs.checked_mul(task.period).ok_or(Refusal::Overflow)?;
        offset = next.saturating_sub(task.jitter);
        if finish <= offset {
            return Ok(Some(Window::Closed));
        }
    }
    repeats.map(|after| Some(Window::Repeats(after))).ok_or(Refusal::TooLong)
}

/// Checks the points of [`fixed_priority`] by substitution: each is as long as the supply of its
/// work takes, and the last one ends the window.
#[must_use]
pub fn holds(set: &TaskSet, supply: &Supply, analysis: &Analysis) -> bool {
    let task_holds = |(position, result): (usize, &TaskResult)| {
        let ResponseBound::Bounded(_) = result.outcome else { return true };
        let task = &set.tasks()[position];
        let points = analysis.points(position);
        let fixed = |(index, point): (usize, &Point)| {
            let others = set.tasks().iter().enumerate();
            let higher = others.filter(|(at, t)| *at != position && t.priority >= task.priority);
            let work = higher.map(|(_, t)| Stream::from_task(t).work_before(point.finish));
            let own = (index as u64 + 1).checked_mul(task.cost)?.checked_add(task.blocking);
            let work = work.chain([own]).try_fold(0u64, |sum, work| sum.checked_add(work?))?;
            Some(supply.window_for(work)? == point.finish && point.jobs == index as u64 + 1)
        };
        let ends = points.last().is_some_and(|last| match result.window {
            Window::Repeats(after) => {
                let periods = set.tasks().iter().enumerate();
                let mut counted = periods
                    .filter(|(at, t)| *at == position || t.priority >= task.priority)
                    .map(|(_, t)| t.period);
                let repeats = counted.all(|period| after.is_multiple_of(period));
                repeats
                    && after.is_multiple_of(supply.period)
                    && last.jobs > after.saturating_add(task.jitter) / task.period
            }
            Window::Closed => {
                last.finish <= last.jobs.saturating_mul(task.period).saturating_sub(task.jitter)
            }
            Window::Length(_) => false,
        });
        ends && points.iter().enumerate().all(|point| fixed(point) == Some(true))
    };
    analysis.tasks.iter().enumerate().all(task_holds)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The least supply of all windows, by placing budgets as early and late as can be.
    fn by_force(supply: &Supply, window: u64) -> u64 {
        let Supply { period, budget, deadline, .. } = *supply;
        // The first budget at the beginning of its period, all others at the end of their time.
        let given = |t: u64| {
            let (index, into) = (t / period, t % period);
            let from = if index == 0 { 0 } else { deadline - budget };
            u64::from(into >= from && into < from + budget)
        };
        let sums = (0..=2 * period).map(|from| (from..from + window).map(given).sum::<u64>());
        sums.min().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn the_supply_is_the_least(
            period in 1..14u64, a in 0..14u64, b in 0..14u64, window in 0..60u64
        ) {
            let budget = 1 + a % period;
            let deadline = budget + b % (period - budget + 1);
            let supply = Supply::with_deadline(period, budget, deadline).unwrap();
            prop_assert_eq!(supply.least_in(window), by_force(&supply, window));
        }

        #[test]
        fn the_inverse_is_the_first_window(
            period in 1..1_000_000u64, a in any::<u64>(), work in 1..1u64 << 40
        ) {
            let supply = Supply::periodic(period, 1 + a % period).unwrap();
            let window = supply.window_for(work).unwrap();
            prop_assert!(supply.least_in(window) >= work && supply.least_in(window - 1) < work);
        }

        #[test]
        fn bounds_are_proven(period in 1..20u64, budget in 1..20u64, c in 1..4u64) {
            let Ok(supply) = Supply::periodic(period, budget) else { return Ok(()) };
            let tasks = [Task::new(c, 10, 10).unwrap(), Task::new(2 * c, 23, 20).unwrap()];
            let set = TaskSet::in_order(tasks.to_vec());
            prop_assert!(holds(&set, &supply, &fixed_priority(&set, &supply)));
        }
    }
}
