//! All tasks of a set in one sweep: the plain case, fast.
//!
//! Owns: the search for preemptive tasks with different priorities and neither blocking nor
//! suspension. The level-i busy window is over before the first job of task i+1 is done, so every
//! window begins where the last one ended, and each release is counted once for the whole set.
//! Instead of dividing, the next release of every task is kept. Must not: approximate; the points
//! are those of the usual iteration.

mod probe;

use std::cmp::Ordering;

use crate::effort::StepLimit;
use crate::exact_fraction::{compare_utilisation_with_one, high_half, inverse, share_floor};
use crate::task::{Task, TaskSet};
use crate::verdict::{Analysis, Point, Refusal, ResponseTime, TaskResult, Window};

pub(crate) use probe::{LateRanks, late_among};

use super::level;
use super::result::{judge_bound, overloaded, refused, task_result};
use super::vector_tasks::{Digits, NEAR, SHORT_ROUNDS, VectorTasks};

/// A look in a short round takes less than this part of one with a division.
const LOOKS_AT_ONCE: usize = 16;

/// Whether the sweep may be used; `order` has the most urgent task first.
pub(super) fn applies(set: &TaskSet, order: &[usize]) -> bool {
    let tasks = set.tasks();
    let plain = |task: &Task| task.blocking == 0 && task.suspension == 0;
    let differ = |pair: &[usize]| tasks[pair[0]].priority != tasks[pair[1]].priority;
    tasks.iter().all(plain) && order.windows(2).all(differ)
}

/// Any binary digit that a cost or a period has.
fn all_digits(set: &TaskSet) -> u64 {
    set.tasks().iter().fold(0, |digits, task| digits | task.cost | task.period)
}

/// The busy window so far.
struct Sweep<N> {
    counted: VectorTasks<N>,
    /// No release before this is left to count.
    earliest: u64,
    /// The end of the window so far.
    end: u64,
    /// The share that the counted tasks use, rounded down, and their number: see [`Shares`].
    used: u64,
    /// Work that jitter brings into the window at least.
    early: u64,
    /// Whether the number of tasks times any cost or period is below [`NEAR`].
    near: bool,
    effort: StepLimit,
}

pub(super) fn analyse(set: &TaskSet, order: &[usize], effort: &mut StepLimit) -> Analysis {
    let digits = all_digits(set);
    if digits < <u32 as Digits>::LONGEST {
        analyse_with::<u32>(set, order, digits, effort)
    } else {
        analyse_with::<u64>(set, order, digits, effort)
    }
}

fn analyse_with<N: Digits>(
    set: &TaskSet,
    order: &[usize],
    digits: u64,
    effort: &mut StepLimit,
) -> Analysis {
    let near = digits.saturating_mul(order.len() as u64) < NEAR;
    let mut sweep = Sweep::<N> {
        counted: VectorTasks::with_capacity(order.len()),
        earliest: 0,
        end: 0,
        used: 0,
        early: 0,
        near,
        effort: *effort,
    };
    // Few tasks have more than a job in their windows.
    let mut points = Vec::with_capacity(order.len() + order.len() / 4 + 1);
    let mut tasks: Vec<TaskResult> = Vec::with_capacity(order.len());
    let mut shares = Shares::default();
    for (rank, position) in order.iter().enumerate() {
        let from = points.len();
        let task = &set.tasks()[*position];
        let used = shares.add(task, || order[..=rank].iter().map(|p| &set.tasks()[*p]));
        let found = match used {
            Ordering::Equal if shares.jitter > 0 => {
                tasks.push(level::repeating(set, order, rank, &mut sweep.effort, &mut points));
                continue;
            }
            Ordering::Greater => {
                tasks.push(overloaded(from));
                continue;
            }
            Ordering::Less | Ordering::Equal => sweep.task(task, &shares, |point| {
                points.push(point);
                true
            }),
        };
        match found {
            Ok(()) => {
                tasks.push(judged(set, *position, &points, from));
            }
            Err(why) => {
                // Points below it depend on the end of its window.
                points.truncate(from);
                tasks.resize_with(order.len(), || refused(why, from));
                break;
            }
        }
    }
    *effort = sweep.effort;
    Analysis { tasks: in_order_given(tasks, order), points }
}

/// The result of a task whose points begin at `from`.
#[inline]
fn judged(set: &TaskSet, position: usize, points: &[Point], from: usize) -> TaskResult {
    let range = from..points.len();
    match &points[from..] {
        [only] if set.tasks()[position].jitter == 0 => {
            let bound = ResponseTime { from_arrival: only.finish, from_release: only.finish };
            judge_bound(set, position, bound, 1, range, Window::Closed, true)
        }
        _ => task_result(set, position, points, range, Window::Closed, true),
    }
}

/// Results by rank, put where their tasks are in the set.
fn in_order_given(tasks: Vec<TaskResult>, order: &[usize]) -> Vec<TaskResult> {
    if order.is_sorted() {
        return tasks;
    }
    let mut placed: Vec<(usize, TaskResult)> = order.iter().copied().zip(tasks).collect();
    placed.sort_unstable_by_key(|(position, _)| *position);
    placed.into_iter().map(|(_, task)| task).collect()
}

/// Binary digits behind the point of a share.
const DIGITS: u32 = 32;
const ONE: u64 = 1 << DIGITS;

/// How much of the processor the tasks so far use, kept cheaply from above.
#[derive(Default)]
struct Shares {
    /// The sum, each share rounded up.
    above: u64,
    /// The share of the task added last, rounded down, or a digit less.
    last: u64,
    /// The [`inverse`] of its period.
    inverse: u64,
    /// The largest jitter so far.
    jitter: u64,
}

impl Shares {
    /// Adds a task and compares the sum with one; `all` are the tasks so far with it.
    fn add<'a, I>(&mut self, task: &Task, all: impl Fn() -> I) -> Ordering
    where
        I: Iterator<Item = &'a Task> + Clone,
    {
        self.inverse = inverse(task.period);
        self.last = match u32::try_from(task.cost) {
            Ok(cost) => high_half(u64::from(cost) << DIGITS, self.inverse),
            Err(_) => u64::try_from(share_floor(task.cost, task.period) >> 32).unwrap_or(u64::MAX),
        };
        self.above = self.above.saturating_add(self.last).saturating_add(2);
        self.jitter = self.jitter.max(task.jitter);
        if self.above <= ONE { Ordering::Less } else { compare_utilisation_with_one(all()) }
    }
}

impl<N: Digits> Sweep<N> {
    /// Adds all jobs of `task` in its busy window, a point each, while these say to go on, and then counts it.
    #[inline]
    fn task(
        &mut self,
        task: &Task,
        shares: &Shares,
        mut goes_on: impl FnMut(Point) -> bool,
    ) -> Result<(), Refusal> {
        let mut jobs = 0u64;
        let mut offset = 0u64;
        let mut work = self.early;
        loop {
            jobs += 1;
            self.end = self.end.checked_add(task.cost).ok_or(Refusal::Overflow)?;
            work = work.saturating_add(task.cost);
            if self.end > self.earliest {
                self.settle(work)?;
            }
            if !goes_on(Point { offset, jobs, finish: self.end }) {
                return Ok(());
            }
            let next = jobs.checked_mul(task.period).ok_or(Refusal::Overflow)?;
            let next = next.saturating_sub(task.jitter);
            if self.end <= next {
                self.count(task, self.end, next, shares);
                return Ok(());
            }
            self.effort.charge(1)?;
            offset = next;
            if self.end > self.earliest {
                // Few tasks have a second job here, but some of these have many.
                self.earliest = self.counted.earliest();
            }
        }
    }

    /// Puts a task to those that are counted, up to a release at most a period after `at`.
    fn count(&mut self, task: &Task, at: u64, next: u64, shares: &Shares) {
        self.counted.push(at, next, (task.cost, task.period), shares.inverse);
        self.earliest = self.earliest.min(next);
        self.used = self.used.saturating_add(shares.last);
        if task.jitter > 0 {
            let early = (u128::from(task.jitter) * u128::from(shares.last)) >> DIGITS;
            let early = u64::try_from(early).unwrap_or(u64::MAX);
            self.early = self.early.saturating_add(early);
        }
    }

    /// Counts releases until none is left before the end. `work` is what would end the window if
    /// nothing more came than the shares of the tasks counted.
    fn settle(&mut self, work: u64) -> Result<(), Refusal> {
        let mut reached = None;
        loop {
            if self.near && self.end < NEAR {
                let (end, rounds) = self.counted.short_rounds(self.end);
                self.end = end;
                self.effort.charge_steps(rounds, self.counted.len() / LOOKS_AT_ONCE)?;
                if rounds < SHORT_ROUNDS {
                    return Ok(());
                }
            }
            let time = *reached.get_or_insert_with(|| self.reached(work));
            if !self.round(time.max(self.end))? {
                return Ok(());
            }
        }
    }

    /// A time that the window is known to reach: if all work came evenly, it would end there
    /// (Sjodin and Hansson, RTSS 1998). Rounded down; 0 if it does not fit.
    fn reached(&self, work: u64) -> u64 {
        let free = ONE.saturating_sub(self.used);
        match u32::try_from(work) {
            Ok(work) => (u64::from(work) << DIGITS).checked_div(free).unwrap_or(0),
            Err(_) => {
                let end = (u128::from(work) << DIGITS).checked_div(free.into()).unwrap_or(0);
                u64::try_from(end).unwrap_or(0)
            }
        }
    }

    /// Looks at every task once, and counts all or nearly all that is released before a time that the
    /// window reaches. Whether there was anything.
    fn round(&mut self, time: u64) -> Result<bool, Refusal> {
        let near = self.near && time < NEAR && self.end < NEAR;
        let work =
            if near { Some(self.counted.long_round(time)) } else { self.counted.far_round(time) };
        let work = work.ok_or(Refusal::Overflow)?;
        if work == 0 {
            return Ok(false);
        }
        self.effort.charge(self.counted.len())?;
        self.end = self.end.checked_add(work).ok_or(Refusal::Overflow)?;
        Ok(true)
    }
}
