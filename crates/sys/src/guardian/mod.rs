//! A tiny process that outlives this one, to put back what nobody else will.
//!
//! It holds one end of a line and a page that it shares with its maker, and nothing else. What is
//! to be put back is written there before it is done ([`Guardian::keep`]). When the maker ends by
//! whatever signal, the kernel closes the other end of the line; the guardian puts everything back
//! that is still written there, and ends.
//!
//! Owns: that process, the page, and how each [`Undo`] is carried out by system calls alone.
//! Must not: decide what is to be put back.

mod acts;
mod groups;
mod process;
mod strays;
mod table;
mod undo;

use std::io;
use std::sync::Arc;

use process::Duty;
use table::{Slot, Table};
pub use undo::{Life, Undo};

use crate::checked;
use crate::process::Speaker;

/// Asks the guardian to look at the promise anew.
const LOOK: u8 = b'?';

/// The guardian, seen from its maker. Clones are the same one.
///
/// When the last clone and the last [`Kept`] are dropped, it ends, and is waited for.
#[derive(Clone, Debug)]
pub struct Guardian(Arc<Process>);

/// Its process.
#[derive(Debug)]
struct Process {
    pid: libc::pid_t,
    table: Arc<Table>,
    /// Closed when dropped.
    line: Option<Speaker>,
}

impl Guardian {
    /// Starts one. Costs a `fork(2)` of the caller. It runs as `SCHED_FIFO` where it may, so that
    /// what its maker left behind cannot keep it from its work, and on all CPUs.
    ///
    /// It is in a session of its own, so that signals to the caller's group or terminal do not
    /// reach it. What kills every process of a cgroup at once kills it as well.
    ///
    /// # Errors
    /// No descriptors, memory or processes left; EAGAIN from a thread of the deadline class.
    pub fn start() -> io::Result<Guardian> {
        let table = Arc::new(Table::new()?);
        let (pid, line) = Duty::begin(&table)?;
        Ok(Guardian(Arc::new(Process { pid, table, line: Some(line) })))
    }

    /// Writes down what is to be put back. To be called before it is done that makes this
    /// necessary. From here on it will be carried out once: by [`Kept::undo`], by dropping what
    /// this returns, or by the guardian.
    ///
    /// # Errors
    /// `InvalidInput` for a text longer than [`Undo::LONGEST`] bytes or with a zero in it;
    /// `StorageFull` if [`Guardian::ROOM`] are kept.
    pub fn keep(&self, undo: &Undo) -> io::Result<Kept> {
        let slot = self.0.table.fill(&undo.written()?)?;
        Ok(Kept { slot: Some(slot), guardian: self.clone() })
    }

    /// How many can be kept at once.
    pub const ROOM: usize = table::SLOTS;

    /// Promises to be heard of again before `until_ns` of `CLOCK_MONOTONIC`. If the promise is not
    /// renewed by then, the guardian carries out all [`Undo::Write`] and [`Undo::Continue`] once,
    /// as if this process were dead, and keeps everything. 0 promises nothing (as at the start).
    ///
    /// Only the first promise costs a system call; renewing it is a store.
    ///
    /// # Errors
    /// The guardian is gone.
    pub fn promise(&self, until_ns: u64) -> io::Result<()> {
        self.promise_as(0, until_ns)
    }

    /// How often that promise was broken and the guardian acted.
    #[must_use]
    pub fn broken(&self) -> u64 {
        self.0.table.broken(0)
    }

    /// How often any promise was broken, a [`Pledge`] as well: each time whoever stood ran again.
    #[must_use]
    pub fn woken(&self) -> u64 {
        self.0.table.all_broken()
    }

    /// Takes a promise of its own, for a thread that keeps others to their budgets ([`Pledge`]).
    ///
    /// # Errors
    /// `StorageFull` if 31 are taken.
    pub fn pledge(&self) -> io::Result<Pledge> {
        Ok(Pledge { index: self.0.table.take_promise()?, guardian: self.clone() })
    }

    fn promise_as(&self, index: usize, until_ns: u64) -> io::Result<()> {
        let before = self.0.table.promise(index, until_ns);
        if before == 0 && until_ns != 0 { self.say(LOOK) } else { Ok(()) }
    }

    /// Whether it still lives. Who kills it takes away what it was to put back if this process is killed as well.
    #[must_use]
    pub fn lives(&self) -> bool {
        acts::started(self.pid()).is_some()
    }

    /// Its process. It is a child of this one that must not be waited for by others.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.0.pid.unsigned_abs()
    }

    fn say(&self, word: u8) -> io::Result<()> {
        self.0.line.as_ref().map_or(Ok(()), |line| line.say(word))
    }
}

impl Drop for Process {
    /// Waits until the guardian has ended, which takes it as long as it needs to put back what is
    /// left, 5 s at most.
    fn drop(&mut self) {
        drop(self.line.take());
        let mut status = 0;
        // SAFETY: writes to a live local; the child is ours and was not waited for.
        while checked(unsafe { libc::waitpid(self.pid, &raw mut status, 0) })
            .is_err_and(|error| error.kind() == io::ErrorKind::Interrupted)
        {}
    }
}

/// The promise of a thread that raises others and keeps them to a budget: to be heard of again. If it is not, the
/// guardian carries out all [`Undo::Write`] and [`Undo::Continue`], and all [`Undo::Members`] and [`Undo::Thread`]
/// but for their CPUs, and keeps everything: nobody stays urgent without a budget. Dropping it takes it back.
#[derive(Debug)]
pub struct Pledge {
    index: usize,
    guardian: Guardian,
}

impl Pledge {
    /// Promises to be heard of again before `until_ns` of `CLOCK_MONOTONIC`; 0 promises nothing. Costs a store, and a
    /// system call where nothing was promised.
    ///
    /// # Errors
    /// The guardian is gone.
    pub fn until(&self, until_ns: u64) -> io::Result<()> {
        self.guardian.promise_as(self.index, until_ns)
    }

    /// How often it was broken. Counted when the guardian has acted.
    #[must_use]
    pub fn broken(&self) -> u64 {
        self.guardian.0.table.broken(self.index)
    }
}

impl Drop for Pledge {
    fn drop(&mut self) {
        self.guardian.0.table.give_back(self.index);
    }
}

/// Something that is to be put back. Dropping it does so.
#[derive(Debug)]
#[must_use = "dropping it puts everything back at once"]
pub struct Kept {
    slot: Option<Slot>,
    /// After the slot: it must not end while something is kept.
    guardian: Guardian,
}

impl Kept {
    /// Puts it back now.
    ///
    /// # Errors
    /// What the kernel answers; threads and files that are gone are no error.
    pub fn undo(mut self) -> io::Result<()> {
        self.carry_out()
    }

    /// Puts it back now, and keeps it none the less.
    ///
    /// # Errors
    /// As [`Kept::undo`].
    pub fn attempt(&self) -> io::Result<()> {
        let slot = self.slot.as_ref();
        let words = slot.and_then(|slot| self.guardian.0.table.read(slot));
        words.map_or(Ok(()), |words| acts::carry_out(&words))
    }

    /// It is no longer necessary.
    pub fn forget(mut self) {
        self.slot.take().into_iter().for_each(|slot| self.guardian.0.table.clear(slot));
    }

    fn carry_out(&mut self) -> io::Result<()> {
        let done = self.attempt();
        self.slot.take().into_iter().for_each(|slot| self.guardian.0.table.clear(slot));
        done
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // Nobody is left to be told; `undo` tells.
        let _ = self.carry_out();
    }
}

#[cfg(test)]
mod tests;
