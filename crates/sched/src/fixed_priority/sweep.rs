//! All tasks of a set in one sweep: the plain case, fast.
//!
//! Owns: the search for preemptive tasks with different priorities and neither blocking nor
//! suspension. The level-i busy window is over before the first job of task i+1 is done, so every
//! window begins where the last one ended, and each release is counted once for the whole set.
//! Instead of dividing, the next release of every task is kept. Must not: approximate; the points
//! are those of the usual iteration.

use std::cmp::Ordering;

use crate::effort::Effort;
use crate::exact::{compare_utilisation_with_one, share_floor, stretched};
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
    effort: Effort,
}

/// After as many rounds the even start is tried, which jumps over many small steps.
const ROUNDS_BEFORE_JUMP: u32 = 32;

pub(super) fn analyse(set: &TaskSet, order: &[usize], effort: Effort) -> Analysis {
    let mut sweep =
        Sweep { counted: Vec::with_capacity(order.len()), earliest: u64::MAX, end: 0, effort };
    let mut points = Vec::with_capacity(order.len() * 2);
    let mut tasks: Vec<TaskResult> = Vec::new();
    tasks.resize_with(set.len(), || overloaded(0));
    let mut shares = Shares::default();
    for (rank, position) in order.iter().enumerate() {
        let from = points.len();
        let task = &set.tasks()[*position];
        let used = shares.add(task, || order[..=rank].iter().map(|p| &set.tasks()[*p]));
        let found = match used {
            Ordering::Less => sweep.task(task, &mut points),
            Ordering::Equal if shares.jitter == 0 => sweep.task(task, &mut points),
            Ordering::Equal => {
                tasks[*position] = level::repeating(set, order, rank, effort, &mut points);
                continue;
            }
            Ordering::Greater => {
                tasks[*position] = overloaded(from);
                continue;
            }
        };
        tasks[*position] = match found {
            Ok(()) => judge(set, *position, &points, from..points.len(), Window::Closed, true),
            Err(why) => {
                points.truncate(from);
                return give_up(set, &order[rank..], why, tasks, points);
            }
        };
    }
    Analysis { tasks, points }
}

/// The sweep has ended early: this task and all below it are unknown.
fn give_up(
    set: &TaskSet,
    rest: &[usize],
    why: Refusal,
    mut tasks: Vec<TaskResult>,
    points: Vec<Point>,
) -> Analysis {
    debug_assert!(rest.len() <= set.len());
    for position in rest {
        tasks[*position] = refused(why, points.len());
    }
    Analysis { tasks, points }
}

/// How much of the processor the tasks so far use, kept cheaply from above.
#[derive(Default)]
struct Shares {
    /// The sum, each share rounded up to 32 binary digits behind the point.
    above: u64,
    /// The largest jitter so far.
    jitter: u64,
}

impl Shares {
    /// Adds a task and compares the sum with one; `all` are the tasks so far with it.
    fn add<'a, I>(&mut self, task: &Task, all: impl Fn() -> I) -> Ordering
    where
        I: Iterator<Item = &'a Task> + Clone,
    {
        const ONE: u64 = 1 << 32;
        let share = match u32::try_from(task.cost) {
            Ok(cost) => (u64::from(cost) << 32) / task.period,
            Err(_) => u64::try_from(share_floor(task.cost, task.period) >> 32).unwrap_or(u64::MAX),
        };
        self.above = self.above.saturating_add(share).saturating_add(1);
        self.jitter = self.jitter.max(task.jitter);
        if self.above <= ONE { Ordering::Less } else { compare_utilisation_with_one(all()) }
    }
}

impl Sweep {
    /// Adds all jobs of `task` in its busy window, a point each, and then counts it.
    fn task(&mut self, task: &Task, points: &mut Vec<Point>) -> Result<(), Refusal> {
        let mut jobs = 0u64;
        let mut offset = 0u64;
        loop {
            jobs += 1;
            self.end = self.end.checked_add(task.cost).ok_or(Refusal::Overflow)?;
            if self.end > self.earliest {
                self.settle()?;
            }
            points.push(Point { offset, jobs, finish: self.end });
            let next = jobs.checked_mul(task.period).ok_or(Refusal::Overflow)?;
            let next = next.saturating_sub(task.jitter);
            if self.end <= next {
                self.earliest = self.earliest.min(next);
                self.counted.push(Counted { next, period: task.period, cost: task.cost });
                return Ok(());
            }
            self.effort.step()?;
            offset = next;
        }
    }

    /// Counts releases until none is left before the end.
    fn settle(&mut self) -> Result<(), Refusal> {
        let mut rounds = 0;
        while self.end > self.earliest {
            self.effort.step()?;
            rounds += 1;
            let jumps = rounds % ROUNDS_BEFORE_JUMP == 0;
            let reached = if jumps { self.reached() } else { 0 };
            self.round(reached).ok_or(Refusal::Overflow)?;
        }
        Ok(())
    }

    /// Looks at every task once. The window is known to reach `reached`.
    fn round(&mut self, reached: u64) -> Option<()> {
        let mut end = self.end;
        let mut earliest = u64::MAX;
        for task in &mut self.counted {
            let until = end.max(reached);
            if task.next < until {
                let late = until - task.next;
                let jobs = if late <= task.period { 1 } else { late.div_ceil(task.period) };
                task.next = task.next.checked_add(jobs.checked_mul(task.period)?)?;
                end = end.checked_add(jobs.checked_mul(task.cost)?)?;
            }
            earliest = earliest.min(task.next);
        }
        self.end = end;
        self.earliest = earliest;
        Some(())
    }

    /// A time that the window is known to reach: where it would end if all further work came evenly.
    /// A task brings at least (x - next) cost / period more until x, so that
    /// x (1 - U) >= end - sum of next cost / period.
    fn reached(&self) -> u64 {
        let mut used = 0u128;
        let mut behind = 0u128;
        for task in &self.counted {
            used = used.saturating_add(share_floor(task.cost, task.period));
            let work = (u128::from(task.next) * u128::from(task.cost)).div_ceil(task.period.into());
            behind = behind.saturating_add(work);
        }
        let base = u128::from(self.end).saturating_sub(behind);
        u64::try_from(base).ok().and_then(|base| stretched(base, used)).unwrap_or(0)
    }
}
