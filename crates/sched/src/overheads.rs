//! What the kernel costs, charged to the tasks.
//!
//! Owns: [`charge`], which makes of a set without costs one with costs, so that every analysis of
//! the latter holds for the former on a real kernel (the accounting of Liu, Real-Time Systems, 2000,
//! section 6.8, and Brandenburg, PhD thesis, UNC 2011, section 3.5). Must not: measure costs.
//!
//! | cost | charged as |
//! |---|---|
//! | context switch | two to every job: to it, and from it back to whom it preempted; and one that has just begun, as blocking |
//! | caches | once to every job, for the job that it preempts; each job preempts one at most, when it begins |
//! | tick | a task above all others; and what is not preempted becomes longer by the ticks in it |
//! | granularity of timers | release jitter |
//!
//! Contended locks under inheritance cost two more switches each; whoever states sections adds these.

use crate::edf::qpa::{self, Feasibility};
use crate::fixed_priority::{self, Sections, TimeModel};
use crate::task::{Task, TaskError, TaskSet};
use crate::verdict::{Analysis, Outcome, Refusal, Verdict};

/// What the kernel costs; nothing by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// One context switch.
    pub switch: u64,
    /// What a preempted job takes at most to fill the caches again.
    pub caches: u64,
    /// The tick, if there is one.
    pub tick: Option<Tick>,
    /// Releases happen at multiples of this only; 0 for any time.
    pub granularity: u64,
}

/// An interrupt that comes again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// The time between two ticks.
    pub period: u64,
    /// What one takes; below the period.
    pub cost: u64,
}

/// Costs that cannot be charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OverheadError {
    /// The tick takes all time.
    #[error("a tick that takes {cost} every {period} leaves no time; give its cost and its period")]
    Tick {
        /// What a tick takes.
        cost: u64,
        /// The time between two.
        period: u64,
    },
    /// How often a job suspends itself is not known, and so not how often it is switched to.
    #[error("task {0} suspends itself, and how many context switches that costs is not known")]
    Suspension(usize),
    /// A number has more than 64 bits.
    #[error("with the costs of the kernel, a time has more than 64 bits")]
    Overflow,
    /// A task with its costs cannot be meant.
    #[error(transparent)]
    Task(#[from] TaskError),
}

/// A set with costs: the tasks in the order given, behind them the tick if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charged {
    set: TaskSet,
    tick: Option<Tick>,
    sections: Sections,
    /// Whether anything was charged that need not happen.
    pessimistic: bool,
}

/// Charges `costs` to the tasks of a set that are preempted according to `sections`.
///
/// # Errors
/// A tick without time between two; suspension where switches or caches cost something; times that
/// have more than 64 bits.
pub fn charge(set: &TaskSet, sections: Sections, costs: &Costs) -> Result<Charged, OverheadError> {
    let tick = costs.tick.filter(|tick| tick.cost > 0);
    if let Some(Tick { period, cost }) = tick.filter(|tick| tick.cost >= tick.period) {
        return Err(OverheadError::Tick { cost, period });
    }
    let free = costs.switch == 0 && costs.caches == 0;
    let suspends = set.tasks().iter().position(|task| task.suspension > 0);
    if let Some(task) = suspends.filter(|_| !free) {
        return Err(OverheadError::Suspension(task));
    }
    let charged = set.tasks().iter().map(|task| with_costs(task, sections, costs, tick));
    let set = ranked(&charged.collect::<Result<Vec<Task>, _>>()?);
    Ok(Charged { set, tick, sections, pessimistic: !free || tick.is_some() })
}

/// A task with its share of the costs.
fn with_costs(
    task: &Task,
    sections: Sections,
    costs: &Costs,
    tick: Option<Tick>,
) -> Result<Task, OverheadError> {
    let sum = |parts: &[u64]| {
        let sum = parts.iter().try_fold(0u64, |sum, part| sum.checked_add(*part));
        sum.ok_or(OverheadError::Overflow)
    };
    let job = sum(&[costs.switch, costs.switch, costs.caches])?;
    let cost = sum(&[task.cost, job])?;
    let segment = if task.np > 0 { sum(&[task.np, job])? } else { 0 };
    let stretched = |time: u64| match tick {
        Some(tick) => tick.stretch(time).ok_or(OverheadError::Overflow),
        None => Ok(time),
    };
    let (cost, segment) = match sections {
        Sections::Preemptive => (cost, segment),
        Sections::NonPreemptive => (stretched(cost)?, segment),
        Sections::Floating => (cost, stretched(segment)?),
        // The last segment stays what it was: what is added to the job may be preempted.
        Sections::Limited => {
            (sum(&[cost, stretched(task.last)? - task.last])?, stretched(segment)?)
        }
    };
    let made = Task::new(cost.max(segment), task.period, task.deadline)?;
    let made = made.with_segments(segment, task.last)?.with_suspension(task.suspension);
    let blocking = sum(&[task.blocking, costs.switch])?;
    let jitter = sum(&[task.jitter, costs.granularity])?;
    Ok(made.with_blocking(blocking).with_jitter(jitter).with_priority(task.priority))
}

/// The same order of priorities, in small numbers, so that there is room above.
fn ranked(tasks: &[Task]) -> TaskSet {
    let mut priorities: Vec<u32> = tasks.iter().map(Task::priority).collect();
    priorities.sort_unstable();
    priorities.dedup();
    let rank = |task: &Task| {
        let below = priorities.partition_point(|priority| *priority < task.priority);
        task.with_priority(u32::try_from(below).unwrap_or(u32::MAX - 1))
    };
    TaskSet::new(tasks.iter().map(rank).collect())
}

impl Tick {
    /// How long something of this length takes at most if nothing but ticks interrupts it; `None` if
    /// that has more than 64 bits.
    fn stretch(&self, time: u64) -> Option<u64> {
        if time == 0 {
            return Some(0);
        }
        let free = self.period.checked_sub(self.cost).filter(|free| *free > 0)?;
        // In every period of wall time, `free` of it is left; then n ticks are enough.
        let ticks = time.div_ceil(free);
        time.checked_add(ticks.checked_mul(self.cost)?)
    }
}

impl Charged {
    /// The tasks with their costs, and behind them the tick. For [`Charged::fixed_priority`].
    ///
    /// # Errors
    /// None of a tick that could be charged.
    pub fn set(&self) -> Result<TaskSet, TaskError> {
        let mut tasks = self.set.tasks().to_vec();
        if let Some(tick) = self.tick {
            // Whether a tick is in time is nobody's question.
            let above = tasks.iter().map(Task::priority).max().map_or(0, |p| p.saturating_add(1));
            tasks.push(Task::new(tick.cost, tick.period, u64::MAX)?.with_priority(above));
        }
        Ok(TaskSet::new(tasks))
    }

    /// The tasks with their costs under EDF: the tick as a task that is due when the next one comes,
    /// and one more tick as blocking, which together are no less than the ticks of any interval.
    fn edf_set(&self) -> Result<TaskSet, Refusal> {
        let mut tasks = self.set.tasks().to_vec();
        if let Some(tick) = self.tick {
            for task in &mut tasks {
                task.blocking = task.blocking.checked_add(tick.cost).ok_or(Refusal::Overflow)?;
            }
            let made = Task::new(tick.cost, tick.period, tick.period);
            tasks.push(made.map_err(|_| Refusal::Overflow)?);
        }
        Ok(TaskSet::new(tasks))
    }

    /// Response times under fixed priorities. A bound over its deadline is never called infeasible
    /// where costs count that need not all occur.
    ///
    /// # Errors
    /// None of a tick that could be charged.
    pub fn fixed_priority(&self, time: TimeModel) -> Result<Analysis, TaskError> {
        let mut analysis = fixed_priority::analyse(&self.set()?, self.sections, time);
        for task in &mut analysis.tasks {
            task.verdict = self.softened(task.verdict);
        }
        Ok(analysis)
    }

    /// Whether demand under EDF ever exceeds an interval.
    #[must_use]
    pub fn edf(&self, time: TimeModel) -> Feasibility {
        match self.edf_set() {
            Ok(set) => {
                let mut found = qpa::feasible(&set, self.sections, time);
                found.verdict = self.softened(found.verdict);
                found
            }
            Err(why) => {
                Feasibility { verdict: Verdict::Unknown(why), length: 0, visited: Vec::new() }
            }
        }
    }

    /// Response times under EDF of the tasks, without the tick. Bounds hold up to the deadline,
    /// since ticks after it are not counted; beyond it there is none.
    ///
    /// # Errors
    /// Times that have more than 64 bits.
    pub fn edf_response_times(&self, time: TimeModel) -> Result<Analysis, Refusal> {
        let mut analysis = crate::edf::response_times(&self.edf_set()?, self.sections, time);
        analysis.tasks.truncate(self.set.len());
        for (task, of) in analysis.tasks.iter_mut().zip(self.set.tasks()) {
            let late = task.outcome.response().is_some_and(|r| r.from_arrival > of.deadline);
            if late && self.tick.is_some() {
                task.outcome = Outcome::Unknown(Refusal::NotExact);
                task.verdict = Verdict::Unknown(Refusal::NotExact);
            }
            task.verdict = self.softened(task.verdict);
        }
        Ok(analysis)
    }

    fn softened(&self, verdict: Verdict) -> Verdict {
        match verdict {
            Verdict::Infeasible(_) if self.pessimistic => Verdict::Unknown(Refusal::NotExact),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [Sections; 4] =
        [Sections::Preemptive, Sections::NonPreemptive, Sections::Limited, Sections::Floating];

    fn set_of(numbers: &[(u64, u64, u64, u64)]) -> TaskSet {
        let task = |(period, tenths, jitter, np): &(u64, u64, u64, u64)| {
            let cost = (period * tenths / 20).max(1);
            let made = Task::new(cost, *period, *period).unwrap().with_jitter(jitter / 4);
            made.with_segments(*np.min(&cost), 1).unwrap()
        };
        TaskSet::in_order(numbers.iter().map(task).collect())
    }

    fn numbers() -> impl Strategy<Value = Vec<(u64, u64, u64, u64)>> {
        proptest::collection::vec((10..60u64, 1..7u64, 0..9u64, 1..6u64), 1..5)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// What costs nothing changes nothing.
        #[test]
        fn no_costs_no_change(numbers in numbers(), kind in 0..4usize) {
            let set = set_of(&numbers);
            let charged = charge(&set, ALL[kind], &Costs::default()).unwrap();
            let found = charged.fixed_priority(TimeModel::Discrete).unwrap();
            let plain = fixed_priority::analyse(&set, ALL[kind], TimeModel::Discrete);
            prop_assert_eq!(found.from_arrival(), plain.from_arrival());
            let plain = qpa::feasible(&set, ALL[kind], TimeModel::Discrete).verdict;
            prop_assert_eq!(charged.edf(TimeModel::Discrete).verdict, plain);
        }

        /// More costs never shorten a bound, under EDF never make a set feasible.
        #[test]
        fn costs_grow_bounds(
            numbers in numbers(), kind in 0..4usize, a in (0..3u64, 0..3u64, 0..3u64, 0..3u64),
            b in (0..3u64, 0..3u64, 0..3u64, 0..3u64)
        ) {
            let set = set_of(&numbers);
            let of = |(switch, caches, cost, granularity)| {
                let tick = Some(Tick { period: 10, cost });
                charge(&set, ALL[kind], &Costs { switch, caches, tick, granularity }).unwrap()
            };
            let less = of(a);
            let more = of((a.0 + b.0, a.1 + b.1, a.2 + b.2, a.3 + b.3));
            let times = |of: &Charged| of.fixed_priority(TimeModel::Discrete).unwrap().from_arrival();
            for (less, more) in times(&less).iter().zip(times(&more)).take(set.len()) {
                prop_assert!(more.is_none_or(|more| less.is_some_and(|less| less <= more)));
            }
            if more.edf(TimeModel::Discrete).verdict == Verdict::Feasible {
                prop_assert_eq!(less.edf(TimeModel::Discrete).verdict, Verdict::Feasible);
                let times = more.edf_response_times(TimeModel::Discrete).unwrap();
                prop_assert_eq!(times.verdict(), Verdict::Feasible);
            }
        }

        /// Ticks from any phase, one unit after the other: nothing takes longer than is charged.
        #[test]
        fn ticks_stretch_no_further(time in 1..60u64, period in 2..12u64, a in 1..12u64, phase in 0..12u64) {
            let tick = Tick { period, cost: 1 + a % (period - 1).max(1) };
            prop_assume!(tick.cost < period);
            let (mut left, mut now) = (time, 0);
            while left > 0 {
                // A tick that has begun before counts from its beginning.
                let busy = now >= phase && (now - phase) % period < tick.cost;
                left -= u64::from(!busy);
                now += 1;
            }
            prop_assert!(now <= tick.stretch(time).unwrap());
        }

        /// Two preemptive tasks and ticks in a simulation of units, each job with its switches before
        /// and after it, stay within the bounds.
        #[test]
        fn simulated_costs_stay_within(
            c in (1..5u64, 1..8u64), t in (12..30u64, 20..60u64), switch in 0..3u64, phase in 0..9u64,
        ) {
            let tick = Tick { period: 9, cost: 1 };
            let tasks = [Task::new(c.0, t.0, t.0).unwrap(), Task::new(c.1, t.1, t.1).unwrap()];
            let costs = Costs { switch, tick: Some(tick), ..Costs::default() };
            let charged = charge(&TaskSet::in_order(tasks.to_vec()), Sections::Preemptive, &costs);
            let bounds = charged.unwrap().fixed_priority(TimeModel::Discrete).unwrap().from_arrival();
            let Some(bound) = bounds[1] else { return Ok(()) };
            // Work of the first task and its switches goes first; that of ticks before both.
            let (mut first, mut second, mut now) = (0, c.1 + 2 * switch, 0);
            while second > 0 && now <= bound {
                first += if now % t.0 == 0 { c.0 + 2 * switch } else { 0 };
                if now >= phase && (now - phase) % tick.period == 0 {
                    // The tick.
                } else if first > 0 {
                    first -= 1;
                } else {
                    second -= 1;
                }
                now += 1;
            }
            prop_assert!(second == 0 && now <= bound);
        }
    }

    /// Hourglass paper, section 5.5: a tick timer is 8 ms of jitter to whoever waits for it.
    #[test]
    fn granularity_is_jitter() {
        let tasks = [Task::new(3, 8, 16).unwrap(), Task::new(19, 33, 40).unwrap()];
        let late = TaskSet::in_order(tasks.map(|task| task.with_jitter(8)).to_vec());
        let costs = Costs { granularity: 8, ..Costs::default() };
        let charged = charge(&TaskSet::in_order(tasks.to_vec()), Sections::Preemptive, &costs);
        let found = charged.unwrap().fixed_priority(TimeModel::Discrete).unwrap();
        let known = fixed_priority::analyse(&late, Sections::Preemptive, TimeModel::Discrete);
        assert_eq!(found.from_arrival(), known.from_arrival());
        assert_eq!(found.verdict(), known.verdict());
    }

    #[test]
    fn costs_over_a_deadline_are_not_certain() {
        let set = TaskSet::in_order(vec![Task::new(5, 10, 6).unwrap()]);
        let costs = Costs { switch: 1, ..Costs::default() };
        let charged = charge(&set, Sections::Preemptive, &costs).unwrap();
        let found = charged.fixed_priority(TimeModel::Discrete).unwrap();
        assert_eq!(found.verdict(), Verdict::Unknown(Refusal::NotExact));
        assert_eq!(found.from_arrival(), [Some(8)]);
    }

    #[test]
    fn what_cannot_be_charged_is_refused() {
        let set = TaskSet::in_order(vec![Task::new(5, 10, 6).unwrap().with_suspension(1)]);
        let costs = Costs { switch: 1, ..Costs::default() };
        let found = charge(&set, Sections::Preemptive, &costs);
        assert_eq!(found, Err(OverheadError::Suspension(0)));
        let tick = Some(Tick { period: 3, cost: 3 });
        let costs = Costs { tick, ..Costs::default() };
        let found = charge(&set, Sections::Preemptive, &costs);
        assert_eq!(found, Err(OverheadError::Tick { cost: 3, period: 3 }));
    }
}
