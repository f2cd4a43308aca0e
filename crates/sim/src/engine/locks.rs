//! Locks: who holds them, who waits.
//!
//! Owns: taking and giving back. What a holder inherits is asked when CPUs are given out. Must not:
//! choose who runs.
//!
//! A lock that is given back is free, but for spin locks, which are handed on: the kernel wakes a waiter,
//! and that asks again when it runs. Until then a running thread may take the lock, under inheritance only
//! one that is more urgent than the waiter (`rt_mutex_steal` in Linux). So a thread never holds a lock
//! that it did not take itself, which the bounds on blocking rest on.

use super::super::error::SimError;
use super::super::system::SimLockProtocol;
use super::SimState;

impl<const TELL: bool> SimState<TELL> {
    /// Takes a lock, or waits for it. Returns whether the job goes on.
    pub(super) fn lock(&mut self, thread: usize, resource: usize) -> Result<bool, SimError> {
        let domain = self.runners[thread].domain;
        self.soil(domain);
        self.locks[resource].woken_waiters.retain(|woken| *woken != thread);
        let spin = self.locks[resource].protocol == SimLockProtocol::Spin;
        if self.is_free_for(thread, resource) {
            self.locks[resource].holder = Some(thread);
            self.locks[resource].held_since = self.now;
            self.runners[thread].holds = Some(resource);
            self.runners[thread].held |= spin;
            self.rank_again(thread);
            return Ok(true);
        }
        self.locks[resource].waiters.push(thread);
        if let Some(holder) = self.locks[resource].holder {
            let domain = self.runners[holder].domain;
            self.soil(domain);
            self.rank_again(holder);
        }
        if spin {
            self.runners[thread].held = true;
            self.runners[thread].spinning = true;
            self.rank_again(thread);
        } else {
            self.make_unready(thread)?;
        }
        Ok(false)
    }

    fn is_free_for(&self, thread: usize, resource: usize) -> bool {
        let lock = &self.locks[resource];
        if lock.holder.is_some() {
            return false;
        }
        let overtakes = |woken: &usize| self.is_more_urgent(thread, *woken);
        lock.protocol != SimLockProtocol::Inheritance || lock.woken_waiters.iter().all(overtakes)
    }

    /// Gives a lock back, and wakes who is due next.
    pub(super) fn unlock(&mut self, thread: usize, resource: usize) -> Result<(), SimError> {
        if self.locks[resource].holder != Some(thread) {
            return Ok(());
        }
        self.locks[resource].holder = None;
        self.runners[thread].holds = None;
        let domain = self.runners[thread].domain;
        self.soil(domain);
        if self.locks[resource].protocol == SimLockProtocol::Spin {
            self.runners[thread].held = self.is_in_section(thread);
            self.rank_again(thread);
            self.hand_on(resource);
            return Ok(());
        }
        self.rank_again(thread);
        let Some(next) = self.next_to_wake(resource) else { return Ok(()) };
        self.locks[resource].waiters.retain(|waiter| *waiter != next);
        self.locks[resource].woken_waiters.push(next);
        self.ask_again(next);
        self.wake(next)
    }

    /// A spin lock goes to the first that came.
    fn hand_on(&mut self, resource: usize) {
        if self.locks[resource].waiters.is_empty() {
            return;
        }
        let next = self.locks[resource].waiters.remove(0);
        self.locks[resource].holder = Some(next);
        self.runners[next].holds = Some(resource);
        self.runners[next].spinning = false;
        if let Some(cpu) = self.runners[next].cpu {
            self.cpus[cpu].stale = true;
        }
        self.rank_again(next);
        let domain = self.runners[next].domain;
        self.soil(domain);
    }

    /// The mark at which a job waited for a lock is before it again.
    fn ask_again(&mut self, thread: usize) {
        if let Some(job) = &mut self.runners[thread].job {
            job.marks = job.marks.saturating_sub(1);
            job.point = job.remaining;
        }
    }

    /// The waiter to be woken: the first that came to a plain lock, else the most urgent one.
    /// `None` without a waiter, or if it was already woken.
    fn next_to_wake(&self, resource: usize) -> Option<usize> {
        let lock = &self.locks[resource];
        let first = lock.waiters.first().copied()?;
        if lock.protocol == SimLockProtocol::Inheritance {
            // Waiters whose servers have no budget are no candidates.
            let next = self.most_urgent(&lock.waiters).unwrap_or(first);
            let overtakes = |woken: &usize| self.is_more_urgent(next, *woken);
            return lock.woken_waiters.iter().all(overtakes).then_some(next);
        }
        if !lock.woken_waiters.is_empty() {
            return None;
        }
        match lock.protocol {
            SimLockProtocol::Ceiling(_) | SimLockProtocol::DeadlineFloor(_) => {
                self.most_urgent(&lock.waiters).or(Some(first))
            }
            _ => Some(first),
        }
    }

    /// Whether a thread holds a lock under which it is not preempted.
    pub(super) fn spins(&self, thread: usize) -> bool {
        let lock = self.runners[thread].holds.map(|resource| self.locks[resource].protocol);
        lock == Some(SimLockProtocol::Spin)
    }

    /// Whether a thread is in a non-preemptive section of its own.
    fn is_in_section(&self, thread: usize) -> bool {
        let runner = &self.runners[thread];
        match runner.preemption {
            super::super::Preemption::None => true,
            super::super::Preemption::Limited { .. } => {
                runner.job.is_some_and(|job| job.remaining > job.section)
            }
            _ => false,
        }
    }
}
