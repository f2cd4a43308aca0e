//! Locks: who holds them, who waits.
//!
//! Owns: taking and giving back. What a holder inherits is asked when CPUs are given out. Must not:
//! choose who runs.

use super::super::error::SimError;
use super::super::system::Protocol;
use super::Machine;

impl<const TELL: bool> Machine<TELL> {
    /// Takes a lock, or waits for it. Whether the job goes on.
    pub(super) fn lock(&mut self, thread: usize, resource: usize) -> Result<bool, SimError> {
        let domain = self.runners[thread].domain;
        self.soil(domain);
        let spin = self.locks[resource].protocol == Protocol::Spin;
        let Some(holder) = self.locks[resource].holder else {
            self.locks[resource].holder = Some(thread);
            self.runners[thread].holds = Some(resource);
            self.runners[thread].held |= spin;
            return Ok(true);
        };
        self.locks[resource].waiters.push(thread);
        let domain = self.runners[holder].domain;
        self.soil(domain);
        if spin {
            self.runners[thread].held = true;
            self.runners[thread].spinning = true;
        } else {
            self.make_unready(thread)?;
        }
        Ok(false)
    }

    /// Gives a lock to whom it is due next.
    pub(super) fn unlock(&mut self, thread: usize, resource: usize) -> Result<(), SimError> {
        if self.locks[resource].holder != Some(thread) {
            return Ok(());
        }
        self.runners[thread].holds = None;
        let domain = self.runners[thread].domain;
        self.soil(domain);
        if self.locks[resource].protocol == Protocol::Spin {
            self.runners[thread].held = self.is_in_section(thread);
        }
        let next = self.next_holder(resource);
        self.locks[resource].holder = next;
        let Some(next) = next else { return Ok(()) };
        self.locks[resource].waiters.retain(|waiter| *waiter != next);
        self.runners[next].holds = Some(resource);
        let domain = self.runners[next].domain;
        self.soil(domain);
        if std::mem::take(&mut self.runners[next].spinning) {
            return Ok(());
        }
        self.wake(next)
    }

    /// First come, first served for spinning and plain locks, else the most urgent waiter.
    fn next_holder(&self, resource: usize) -> Option<usize> {
        let lock = &self.locks[resource];
        let first = lock.waiters.first().copied();
        match lock.protocol {
            Protocol::Spin | Protocol::Plain => first,
            // Waiters whose servers have no budget are no candidates.
            Protocol::Ceiling(_) | Protocol::Inheritance => {
                self.most_urgent(&lock.waiters).or(first)
            }
        }
    }

    /// Whether a thread holds a lock under which it is not preempted.
    pub(super) fn spins(&self, thread: usize) -> bool {
        let lock = self.runners[thread].holds.map(|resource| self.locks[resource].protocol);
        lock == Some(Protocol::Spin)
    }

    /// Whether a thread is in a non-preemptive section of its own.
    fn is_in_section(&self, thread: usize) -> bool {
        let runner = &self.runners[thread];
        match runner.preemption {
            super::super::Preemption::None => true,
            super::super::Preemption::Limited { .. } => {
                runner.job.is_some_and(|job| job.left > job.section)
            }
            _ => false,
        }
    }
}
