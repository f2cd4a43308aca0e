//! The start of a reservation, ahead of timesharing work.
//!
//! On a busy machine each step of the start would wait for its turn among timesharing processes, and the command would
//! begin late by the sum of these waits. So the thread that makes the reservation has a real-time priority meanwhile:
//! the lowest one, so that it delays no other real-time work. It waits for the kernel and for short proofs of its own
//! threads, and never spins.
//!
//! Owns: that priority, for as long as the value lives and the process with it. Must not: hand it to the command
//! ([`PriorityBoost::restore_in_child`]); stay during measurements, which take long ([`PriorityBoost::paused`]).

use std::io;

use hourglass_sys::sched::{self, Attributes, SavedScheduling};

/// Above timesharing work, and above nothing else.
const PRIORITY: u8 = 1;

/// Where nothing of ordinary processes is above.
const HIGHEST: u8 = 99;

/// The calling thread at a real-time priority. Dropping it gives the thread back what it had.
#[derive(Debug)]
pub(super) struct PriorityBoost {
    /// Former settings; `None` if unchanged: the thread is a real-time thread already, or must not be one.
    before: Option<SavedScheduling>,
}

impl PriorityBoost {
    pub(super) fn begin() -> PriorityBoost {
        PriorityBoost::at(PRIORITY)
    }

    /// Above everything: for the few system calls that end what spins at a real-time priority on every CPU.
    pub(super) fn above_all() -> PriorityBoost {
        PriorityBoost::at(HIGHEST)
    }

    fn at(priority: u8) -> PriorityBoost {
        let shares = matches!(
            sched::read(0),
            Ok(Some(Attributes::Other(_) | Attributes::Batch(_) | Attributes::Idle))
        );
        let before = SavedScheduling::read(0).ok().filter(|_| shares);
        PriorityBoost { before: before.filter(|_| sched::set(Attributes::Fifo(priority)).is_ok()) }
    }

    /// Gives a process that was forked meanwhile what this thread had before, which it would have inherited.
    ///
    /// # Errors
    /// What the kernel answers; ESRCH if it has ended.
    pub(super) fn restore_in_child(&self, pid: u32) -> io::Result<()> {
        self.before.map_or(Ok(()), |before| before.restore(pid))
    }

    /// Does something long at the priority that the thread had before.
    pub(super) fn paused<T>(&self, long: impl FnOnce() -> T) -> T {
        if self.before.is_none() {
            return long();
        }
        // A priority that cannot be lowered now cannot be lowered at all; the kernel's limit bounds it.
        let _ = self.restore_in_child(0);
        let done = long();
        let _ = sched::set(Attributes::Fifo(PRIORITY));
        done
    }
}

impl Drop for PriorityBoost {
    fn drop(&mut self) {
        // Lowering a priority needs no privilege.
        let _ = self.restore_in_child(0);
    }
}

#[cfg(test)]
mod tests {
    use hourglass_skip::{Requirement, skip};

    use super::*;

    /// The bug: under load a command began 0.2 to 0.7 s late, since hourglass prepared it as one timesharing process
    /// among others. What the thread and the command had comes back, with the nice value.
    #[test]
    fn a_start_goes_before_timesharing_work_and_leaves_nothing() {
        std::thread::spawn(|| {
            sched::set(Attributes::Batch(4)).unwrap();
            let had = sched::read(0).unwrap();
            let urgent = PriorityBoost::begin();
            if urgent.before.is_none() {
                return skip(Requirement::REAL_TIME, "a real-time priority is refused here");
            }
            assert_eq!(sched::read(0).unwrap(), Some(Attributes::Fifo(PRIORITY)));
            let child = crate::testing::Program::sleeping();
            urgent.restore_in_child(child.pid()).unwrap();
            assert_eq!(sched::read(child.pid()).unwrap(), had);
            assert_eq!(urgent.paused(|| sched::read(0).unwrap()), had);
            assert_eq!(sched::read(0).unwrap(), Some(Attributes::Fifo(PRIORITY)));
            drop(urgent);
            assert_eq!(sched::read(0).unwrap(), had);
            // A real-time thread stays one.
            sched::set(Attributes::RoundRobin(3)).unwrap();
            drop(PriorityBoost::begin());
            assert_eq!(sched::read(0).unwrap(), Some(Attributes::RoundRobin(3)));
        })
        .join()
        .unwrap();
    }
}
