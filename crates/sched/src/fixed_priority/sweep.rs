//! All tasks of a set in one sweep: the plain case, fast.
//!
//! Owns: the search for preemptive tasks with different priorities and neither blocking nor
//! suspension. The level-i busy window is over before the first job of task i+1 is done, so every
//! window begins where the last one ended, and each release is counted once for the whole set.
//! Instead of dividing, the next release of every task is kept. Must not: approximate; the points
//! are those of the usual iteration.

use std::cmp::Ordering;

use crate::effort::Effort;
use crate::exact::{compare_utilisation_with_one, share_floor};
use crate::task::{Task, TaskSet};
use crate::verdict::{Analysis, Point, Refusal, TaskResult, Window};

use super::{judge, level, overloaded, refused};

/// Whether the sweep may be used; `order` has the most urgent task first.
pub(super) fn applies(set: &TaskSet, order: &[usize]) -> bool {
    let tasks = set.tasks();
    let plain = |task: &Task| task.blocking == 0 && task.suspension == 0;
    let differ = |pair: &[usize]| tasks[pair[0]].priority != tasks[pair[1]].priority;
    tasks.iter().all(plain) && order.windows(2).all(differ)
}

/// A task whose first jobs are counted already.
#[derive(Clone, Copy, Debug)]
struct Counted {
    /// When its first job that is not counted is released.
    next: u64,
    period: u64,
    cost: u64,
}

/// The busy window so far.
struct Sweep {
    counted: Vec<Counted>,
    /// The earliest release that is not counted.
    earliest: u64,
    /// The end of the window so far.
    end: u64,
    /// What the tasks counted use, rounded down, and their number: see [`Shares`].
    used: u64,
    /// Work that jitter brings into the window at least.
    early: u64,
    /// Whether all costs and periods together are below [`NEAR`].
    near: bool,
    effort: Effort,
}

/// A time that can be doubled.
const NEAR: u64 = 1 << 62;

/// In every so many rounds all releases of a task are counted at once.
const LONG_ROUND: u32 = 4;

pub(super) fn analyse(set: &TaskSet, order: &[usize], effort: Effort) -> Analysis {
    let sizes = set.tasks().iter().flat_map(|task| [task.cost, task.period]);
    let near = sizes.fold(0, u64::saturating_add) < NEAR;
    let mut sweep = Sweep {
        counted: Vec::with_capacity(order.len()),
        earliest: u64::MAX,
        end: 0,
        used: 0,
        early: 0,
        near,
        effort,
    };
    let mut points = Vec::with_capacity(order.len());
    let mut tasks: Vec<TaskResult> = Vec::with_capacity(order.len());
    let mut shares = Shares::default();
    for (rank, position) in order.iter().enumerate() {
        let from = points.len();
        let task = &set.tasks()[*position];
        let used = shares.add(task, || order[..=rank].iter().map(|p| &set.tasks()[*p]));
        let found = match used {
            Ordering::Equal if shares.jitter > 0 => {
                tasks.push(level::repeating(set, order, rank, effort, &mut points));
                continue;
            }
            Ordering::Greater => {
                tasks.push(overloaded(from));
                continue;
            }
            Ordering::Less | Ordering::Equal => sweep.task(task, shares.last, &mut points),
        };
        match found {
            Ok(()) => {
                let range = from..points.len();
                tasks.push(judge(set, *position, &points, range, Window::Closed, true));
            }
            Err(why) => {
                // What is below it depends on where its window ends.
                points.truncate(from);
                tasks.resize_with(order.len(), || refused(why, from));
                break;
            }
        }
    }
    Analysis { tasks: in_order_given(tasks, order), points }
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
/// The whole processor.
const ONE: u64 = 1 << DIGITS;

/// How much of the processor the tasks so far use, kept cheaply from above.
#[derive(Default)]
struct Shares {
    /// The sum, each share rounded up.
    above: u64,
    /// The share of the task added last, rounded down.
    last: u64,
    /// The largest jitter so far.
    jitter: u64,
}

impl Shares {
    /// Adds a task and compares the sum with one; `all` are the tasks so far with it.
    fn add<'a, I>(&mut self, task: &Task, all: impl Fn() -> I) -> Ordering
    where
        I: Iterator<Item = &'a Task> + Clone,
    {
        self.last = match u32::try_from(task.cost) {
            Ok(cost) => (u64::from(cost) << DIGITS) / task.period,
            Err(_) => u64::try_from(share_floor(task.cost, task.period) >> 32).unwrap_or(u64::MAX),
        };
        self.above = self.above.saturating_add(self.last).saturating_add(1);
        self.jitter = self.jitter.max(task.jitter);
        if self.above <= ONE { Ordering::Less } else { compare_utilisation_with_one(all()) }
    }
}

impl Sweep {
    /// Adds all jobs of `task` in its busy window, a point each, and then counts it.
    fn task(&mut self, task: &Task, share: u64, points: &mut Vec<Point>) -> Result<(), Refusal> {
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
            points.push(Point { offset, jobs, finish: self.end });
            let next = jobs.checked_mul(task.period).ok_or(Refusal::Overflow)?;
            let next = next.saturating_sub(task.jitter);
            if self.end <= next {
                self.earliest = self.earliest.min(next);
                self.counted.push(Counted { next, period: task.period, cost: task.cost });
                self.used = self.used.saturating_add(share);
                if task.jitter > 0 {
                    let early = (u128::from(task.jitter) * u128::from(share)) >> DIGITS;
                    let early = u64::try_from(early).unwrap_or(u64::MAX);
                    self.early = self.early.saturating_add(early);
                }
                return Ok(());
            }
            self.effort.look(1)?;
            offset = next;
        }
    }

    /// Counts releases until none is left before the end. `work` is what would end the window if
    /// nothing more came than the shares of the tasks counted.
    fn settle(&mut self, work: u64) -> Result<(), Refusal> {
        let reached = self.reached(work);
        if reached > self.end {
            self.effort.look(self.counted.len())?;
            self.count_before(reached).ok_or(Refusal::Overflow)?;
        }
        let mut rounds = 0u32;
        while self.end > self.earliest {
            self.effort.look(self.counted.len())?;
            rounds += 1;
            if !rounds.is_multiple_of(LONG_ROUND) && self.near && self.end < NEAR {
                (self.end, self.earliest) = short_round(&mut self.counted, self.end);
            } else {
                self.round().ok_or(Refusal::Overflow)?;
            }
        }
        Ok(())
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

    /// Counts all releases before a time that the window is known to reach.
    fn count_before(&mut self, reached: u64) -> Option<()> {
        let mut end = self.end;
        let mut earliest = u64::MAX;
        for task in &mut self.counted {
            if task.next < reached {
                end = end.checked_add(task.count_before(reached)?)?;
            }
            earliest = earliest.min(task.next);
        }
        self.end = end;
        self.earliest = earliest;
        Some(())
    }

    /// Looks at every task once, and counts what is released before the end so far.
    fn round(&mut self) -> Option<()> {
        let (end, earliest) = round(&mut self.counted, self.end)?;
        self.end = end;
        self.earliest = earliest;
        Some(())
    }
}

/// The new end and the earliest release that is not counted. On its own and with the rare part
/// elsewhere, so that the loop keeps its values in registers.
#[inline(never)]
fn round(counted: &mut [Counted], end: u64) -> Option<(u64, u64)> {
    let mut end = end;
    let mut earliest = u64::MAX;
    for task in counted {
        let mut next = task.next;
        if next < end {
            if end - next <= task.period {
                next = next.checked_add(task.period)?;
                task.next = next;
                end = end.checked_add(task.cost)?;
            } else {
                end = end.checked_add(task.count_before(end)?)?;
                next = task.next;
            }
        }
        earliest = earliest.min(next);
    }
    Some((end, earliest))
}

/// The same, but of each task one release at most, and without a branch that may be mispredicted.
/// Only for times below [`NEAR`], which cannot overflow.
#[inline(never)]
fn short_round(counted: &mut [Counted], end: u64) -> (u64, u64) {
    let mut end = end;
    let mut earliest = u64::MAX;
    for task in counted {
        let due = u64::from(task.next < end).wrapping_neg();
        let next = task.next.wrapping_add(task.period & due);
        task.next = next;
        end = end.wrapping_add(task.cost & due);
        earliest = earliest.min(next);
    }
    (end, earliest)
}

impl Counted {
    /// Counts all releases before `time`, of which there is one at least; gives their work.
    #[inline(never)]
    fn count_before(&mut self, time: u64) -> Option<u64> {
        let jobs = (time - self.next).div_ceil(self.period);
        self.next = self.next.checked_add(jobs.checked_mul(self.period)?)?;
        jobs.checked_mul(self.cost)
    }
}
