//! Acts of scripts by which threads meet: events, barriers, semaphores, starts, and locks within each other.
//!
//! Owns: who waits, who is woken first. Must not: know jobs, or what a thread does next.

use std::collections::VecDeque;

use super::super::error::SimError;
use super::super::script::SimStep;
use super::super::system::SimLockProtocol;
use super::super::thread::Class;
use super::SimState;
use super::script::{Scripts, StepFlow};

impl<const TELL: bool> SimState<TELL> {
    /// Acts that other threads wait for, or that wait for others.
    pub(super) fn meet(&mut self, thread: usize, act: SimStep) -> Result<StepFlow, SimError> {
        let arrival = self.own_arrival(thread);
        match act {
            SimStep::Wait { event, lock } => {
                let _ = self.release_lock(thread, lock)?;
                self.set_wants(thread, lock);
                self.await_others(thread, |scripts| &mut scripts.events[event])
            }
            SimStep::Suspend(event) => {
                self.await_others(thread, |scripts| &mut scripts.events[event])
            }
            SimStep::Signal(event) => {
                self.wake_some(1, arrival, |scripts| &mut scripts.events[event])
            }
            SimStep::Broadcast(event) => {
                self.wake_some(usize::MAX, arrival, |scripts| &mut scripts.events[event])
            }
            SimStep::Barrier(barrier) => {
                let waiting = self.scripts.barriers[barrier].len() as u64;
                if waiting + 1 < self.scripts.parties[barrier] {
                    return self.await_others(thread, |scripts| &mut scripts.barriers[barrier]);
                }
                let now = self.now;
                self.passed(thread);
                self.wake_some(usize::MAX, now, |scripts| &mut scripts.barriers[barrier])
            }
            SimStep::Take(semaphore) => match self.scripts.left[semaphore].checked_sub(1) {
                Some(rest) => {
                    self.scripts.left[semaphore] = rest;
                    self.passed(thread);
                    Ok(StepFlow::Next)
                }
                None => self.await_others(thread, |scripts| &mut scripts.semaphores[semaphore]),
            },
            SimStep::Post(semaphore) if self.scripts.semaphores[semaphore].is_empty() => {
                let left = &mut self.scripts.left[semaphore];
                *left = left.saturating_add(1);
                Ok(StepFlow::Next)
            }
            SimStep::Post(semaphore) => {
                self.wake_some(1, arrival, |scripts| &mut scripts.semaphores[semaphore])
            }
            SimStep::Fork(start) => self.fork(start),
            SimStep::Forked { start, number } if self.scripts.made[start] > number => {
                self.begin_thread(thread, self.now);
                Ok(StepFlow::Next)
            }
            SimStep::Forked { start, .. } => {
                self.await_others(thread, |scripts| &mut scripts.starts[start])
            }
            _ => Ok(StepFlow::Next),
        }
    }

    fn await_others(
        &mut self,
        thread: usize,
        of: impl Fn(&mut Scripts) -> &mut VecDeque<usize>,
    ) -> Result<StepFlow, SimError> {
        of(&mut self.scripts).push_back(thread);
        self.make_unready(thread)?;
        Ok(StepFlow::Stop)
    }

    /// Wakes some of those who wait, the most urgent and of these the first to come before others. What they
    /// begin arrived at `arrival`.
    fn wake_some(
        &mut self,
        most: usize,
        arrival: u64,
        of: impl Fn(&mut Scripts) -> &mut VecDeque<usize>,
    ) -> Result<StepFlow, SimError> {
        let mut then = StepFlow::Next;
        for _ in 0..most {
            let count = of(&mut self.scripts).len();
            let mut first: Option<(u64, usize)> = None;
            for place in 0..count {
                let waiter = of(&mut self.scripts)[place];
                let order = self.kernel_order(waiter);
                if first.is_none_or(|(least, _)| order < least) {
                    first = Some((order, place));
                }
            }
            let next = first.and_then(|(_, place)| of(&mut self.scripts).remove(place));
            let Some(next) = next else { break };
            let arrival = self.woken_by(next, arrival);
            self.resumes(next, arrival)?;
            then = StepFlow::Look;
        }
        Ok(then)
    }

    /// When the job arrived that a thread does now, if it does one.
    fn own_arrival(&mut self, thread: usize) -> u64 {
        let now = self.now;
        self.cursor(thread).and_then(|cursor| cursor.arrival).unwrap_or(now)
    }

    /// In which order the kernel wakes threads: real-time ones by priority, the others as they came.
    fn kernel_order(&self, thread: usize) -> u64 {
        match self.runners[thread].class {
            Class::Edf => 0,
            Class::Fifo(priority) | Class::RoundRobin(priority) => {
                1 + u64::from(u32::MAX - priority)
            }
            Class::Fair(_) | Class::Idle => u64::MAX,
        }
    }

    /// When the job arrives of a thread that is woken: with the job that wakes it; now, where that has
    /// woken it before.
    fn woken_by(&mut self, thread: usize, arrival: u64) -> u64 {
        let now = self.now;
        let last = self.cursor(thread).map_or(0, |cursor| cursor.last_arrival);
        if arrival > last && arrival <= now { arrival } else { now }
    }

    /// The condition that the thread would wait for already holds.
    fn passed(&mut self, thread: usize) {
        let now = self.now;
        if self.cursor(thread).is_some_and(|cursor| std::mem::take(&mut cursor.begins)) {
            self.begin_job(thread, now);
        }
    }

    fn fork(&mut self, start: usize) -> Result<StepFlow, SimError> {
        let now = self.now;
        let made = self.scripts.made[start].saturating_add(1);
        self.scripts.made[start] = made;
        let mut then = StepFlow::Next;
        for _ in 0..self.scripts.starts[start].len() {
            let Some(next) = self.scripts.starts[start].pop_front() else { break };
            if self.forked_number(next).is_some_and(|number| number >= made) {
                self.scripts.starts[start].push_back(next);
            } else {
                self.begin_thread(next, now);
                self.wake(next)?;
                then = StepFlow::Look;
            }
        }
        Ok(then)
    }

    /// Of which start a thread waits that waits for one: its last act.
    fn forked_number(&mut self, thread: usize) -> Option<u64> {
        let cursor = self.cursor(thread)?;
        let acts = &cursor.script.phases.get(cursor.phase)?.acts;
        match acts.get(cursor.act.checked_sub(1)?)? {
            SimStep::Forked { number, .. } => Some(*number),
            _ => None,
        }
    }

    /// Takes a lock, or waits for it. Whether the thread has it now.
    pub(super) fn take_lock(&mut self, thread: usize, lock: usize) -> Result<bool, SimError> {
        let outer = self.runners[thread].holds;
        let has = outer == Some(lock)
            || self.cursor(thread).is_some_and(|cursor| cursor.outer.contains(&lock));
        if !has {
            self.runners[thread].holds = None;
            let got = self.lock(thread, lock)?;
            let spins = self.runners[thread].spinning;
            match outer {
                Some(outer) if got || spins => {
                    if let Some(cursor) = self.cursor(thread) {
                        cursor.outer.push(outer);
                    }
                }
                outer if !got => self.runners[thread].holds = outer,
                _ => {}
            }
            if !got {
                return Ok(false);
            }
        }
        if let Some(cursor) = self.cursor(thread) {
            cursor.wants = None;
        }
        Ok(true)
    }

    /// Gives a lock back, if the thread has it.
    pub(super) fn release_lock(
        &mut self,
        thread: usize,
        lock: usize,
    ) -> Result<StepFlow, SimError> {
        let last = self.runners[thread].holds;
        let Some(cursor) = self.cursor(thread) else { return Ok(StepFlow::Next) };
        let rest = if last == Some(lock) {
            cursor.outer.pop()
        } else if let Some(place) = cursor.outer.iter().position(|held| *held == lock) {
            cursor.outer.remove(place);
            last
        } else {
            return Ok(StepFlow::Next);
        };
        // What a lock raises it over, it may have to make way for.
        let raised = self.locks[lock].protocol != SimLockProtocol::Plain;
        let looks = raised || !self.locks[lock].waiters.is_empty();
        self.unlock(thread, lock)?;
        self.runners[thread].holds = rest;
        self.runners[thread].held |= self.spins(thread);
        self.rank_again(thread);
        Ok(if looks { StepFlow::Look } else { StepFlow::Next })
    }

    /// The locks of a thread besides the last one, which raise its urgency.
    pub(super) fn outer_locks(&self, thread: usize) -> &[usize] {
        let cursor = self.scripts.cursor(thread);
        cursor.map_or(&[], |cursor| &cursor.outer)
    }
}
