//! Two tiny processes that outlive this one, to put its changes back.
//!
//! They hold a line and a page that they share with their maker, and nothing else. What is to be put back is written
//! there before it is done ([`Guardian::keep`]). When the maker ends by whatever signal, one of them puts everything
//! back that is still written there, and ends; the other one takes over if that one is killed. A thread of the maker
//! sleeps until either is killed, and starts another one for it, with the same page. The kernel ends them last when
//! memory runs out.
//!
//! What remains: maker and both of them killed within the time in which another one is started, which is that of a
//! wake-up and a `fork(2)`. For that, a record of what is to be put back lies in a folder of the user
//! ([`clean`]).
//!
//! Owns: those processes, the page, the record, and how each [`UndoAction`] is carried out by system calls alone.
//! Must not: decide what is to be put back.

mod acts;
pub mod clean;
mod groups;
mod guardians;
mod oom;
mod process;
mod raised_threads;
mod record;
mod table;
mod undo;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use guardians::GuardianPair;
use record::Record;
use table::UndoSlot;
pub use undo::{TaskIdentity, UndoAction};

/// The guardian, seen from its maker. Clones are the same one.
///
/// When the last clone and the last [`UndoGuard`] are dropped, its processes end, and are waited for.
#[derive(Clone, Debug)]
pub struct Guardian(Arc<Process>);

#[derive(Debug)]
struct Process {
    guardians: Arc<GuardianPair>,
    watch: Option<JoinHandle<()>>,
    /// The process that made it: a child of that, forked without `exec`, has no part in it.
    maker: u32,
}

impl Guardian {
    /// Starts one. Costs two `fork(2)` of the caller and a thread that sleeps. They run as `SCHED_FIFO` where they may,
    /// so that what the maker left behind cannot keep them from their work, and on all CPUs.
    ///
    /// The processes are in sessions of their own, so that signals to the caller's group or terminal do not reach them.
    /// A kill of every process of a cgroup kills them as well.
    ///
    /// # Errors
    /// No descriptors, memory or processes left; EAGAIN from a thread of the deadline class; ENOSYS before Linux 5.3.
    pub fn start() -> io::Result<Guardian> {
        // Without a record, only `--clean` has less to go by.
        Guardian::with(Record::create().ok())
    }

    fn with(record: Option<Record>) -> io::Result<Guardian> {
        let (guardians, watch) = GuardianPair::start(record)?;
        Ok(Guardian(Arc::new(Process { guardians, watch: Some(watch), maker: std::process::id() })))
    }

    /// Writes down what is to be put back. To be called before it is done that makes this
    /// necessary. From here on it will be carried out once: by [`UndoGuard::undo`], by dropping what
    /// this returns, or by the guardian.
    ///
    /// # Errors
    /// `InvalidInput` for a text longer than [`UndoAction::LONGEST`] bytes or with a zero in it;
    /// `StorageFull` if [`Guardian::ROOM`] are kept.
    pub fn keep(&self, undo: &UndoAction) -> io::Result<UndoGuard> {
        let written = undo.written()?;
        let GuardianPair { table, record, .. } = &*self.0.guardians;
        let slot = table.fill(&written)?;
        if let Some(record) = record {
            // The guardians have it; what cannot be recorded (a full disk), `--clean` does not find.
            let _ = record.fill(slot.index(), &written);
        }
        Ok(UndoGuard { slot: Some(slot), guardian: self.clone() })
    }

    /// How many can be kept at once.
    pub const ROOM: usize = table::SLOTS;

    /// Promises to be heard of again before `until_ns` of `CLOCK_MONOTONIC`. If the promise is not
    /// renewed by then, the guardian carries out all [`UndoAction::Write`] and [`UndoAction::Continue`] once,
    /// as if this process were dead, and keeps everything. 0 promises nothing (as at the start).
    ///
    /// Only the first promise costs a system call; renewing it is a store.
    ///
    /// # Errors
    /// [`GuardianUnavailable`], of a first promise; then nothing is promised.
    pub fn promise(&self, until_ns: u64) -> io::Result<()> {
        self.promise_as(0, until_ns)
    }

    /// How often that promise was broken and the guardian acted.
    #[must_use]
    pub fn broken(&self) -> u64 {
        self.0.guardians.table.broken(0)
    }

    /// How often any promise was broken, a [`HeartbeatPromise`] as well: each time all that was stopped ran again.
    #[must_use]
    pub fn woken(&self) -> u64 {
        self.0.guardians.table.all_broken()
    }

    /// Takes a promise of its own, for a thread that keeps others to their budgets ([`HeartbeatPromise`]).
    ///
    /// # Errors
    /// `StorageFull` if 31 are taken.
    pub fn pledge(&self) -> io::Result<HeartbeatPromise> {
        Ok(HeartbeatPromise {
            index: self.0.guardians.table.take_promise()?,
            guardian: self.clone(),
        })
    }

    fn promise_as(&self, index: usize, until_ns: u64) -> io::Result<()> {
        let GuardianPair { table, .. } = &*self.0.guardians;
        let before = table.promise(index, until_ns);
        if before != 0 || until_ns == 0 {
            return Ok(());
        }
        // Withdrawn if no guardian takes it, so that the next one is sent again.
        self.0.guardians.check_promises().inspect_err(|_| {
            table.promise(index, 0);
        })
    }

    /// Whether one of its processes lives now. Costs a system call. While none does, nothing is to be stopped or
    /// raised: if this process were killed as well, it would stay so.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.0.guardians.is_alive()
    }

    /// [`Self::is_alive`] as an error, to be asked before a process is stopped or raised.
    ///
    /// # Errors
    /// [`GuardianUnavailable`].
    pub fn must_live(&self) -> io::Result<()> {
        if self.is_alive() { Ok(()) } else { Err(GuardianUnavailable.into()) }
    }

    /// How often one of its processes was started for one that had been killed.
    #[must_use]
    pub fn replaced(&self) -> u64 {
        self.0.guardians.replaced()
    }

    /// Its processes now. They are children of this one that must not be waited for by others, nor stopped.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        self.0.guardians.pids()
    }
}

/// No process of the guardian lives at the moment: they were killed, and others are being started. The kernel has
/// refused nothing; the same can be had a little later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardianUnavailable;

impl GuardianUnavailable {
    /// Whether this is what stands behind an error.
    #[must_use]
    pub fn is_behind(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<GuardianUnavailable>())
    }
}

impl fmt::Display for GuardianUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the guardian was killed, and another one is not there yet")
    }
}

impl std::error::Error for GuardianUnavailable {}

impl From<GuardianUnavailable> for io::Error {
    fn from(absent: GuardianUnavailable) -> io::Error {
        io::Error::other(absent)
    }
}

impl Drop for Process {
    /// Waits until the processes have ended, which takes them as long as they need to put back what is left, 5 s at
    /// most.
    fn drop(&mut self) {
        if self.maker != std::process::id() {
            return;
        }
        self.guardians.stop();
        let _ = self.watch.take().map(JoinHandle::join);
        self.guardians.dismiss();
    }
}

/// The promise of a thread that raises others and keeps them to a budget: to be heard of again. If it is not, the
/// guardian carries out all [`UndoAction::Write`] and [`UndoAction::Continue`], and all [`UndoAction::Members`] and
/// [`UndoAction::Thread`] but for their CPUs, and keeps everything: none stays urgent without a budget. Dropping it
/// takes it back.
#[derive(Debug)]
pub struct HeartbeatPromise {
    index: usize,
    guardian: Guardian,
}

impl HeartbeatPromise {
    /// Promises to be heard of again before `until_ns` of `CLOCK_MONOTONIC`; 0 promises nothing. Costs a store, and a
    /// system call where nothing was promised.
    ///
    /// # Errors
    /// As [`Guardian::promise`].
    pub fn until(&self, until_ns: u64) -> io::Result<()> {
        self.guardian.promise_as(self.index, until_ns)
    }

    /// How often it was broken. Counted when the guardian has acted.
    #[must_use]
    pub fn broken(&self) -> u64 {
        self.guardian.0.guardians.table.broken(self.index)
    }
}

impl Drop for HeartbeatPromise {
    fn drop(&mut self) {
        self.guardian.0.guardians.table.release_slot(self.index);
    }
}

/// Something that is to be put back. Dropping it does so.
#[derive(Debug)]
#[must_use = "dropping it puts everything back at once"]
pub struct UndoGuard {
    slot: Option<UndoSlot>,
    /// After the slot: it must not end while something is kept.
    guardian: Guardian,
}

impl UndoGuard {
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
    /// As [`UndoGuard::undo`].
    pub fn attempt(&self) -> io::Result<()> {
        let slot = self.slot.as_ref();
        let words = slot.and_then(|slot| self.guardian.0.guardians.table.read(slot));
        words.map_or(Ok(()), |words| acts::carry_out(&words))
    }

    /// It is no longer necessary.
    pub fn forget(mut self) {
        self.clear();
    }

    /// The record first: behind it the slot may be filled anew.
    fn clear(&mut self) {
        let Some(slot) = self.slot.take() else { return };
        let GuardianPair { table, record, .. } = &*self.guardian.0.guardians;
        record.iter().for_each(|record| record.clear(slot.index()));
        table.clear(slot);
    }

    fn carry_out(&mut self) -> io::Result<()> {
        let done = self.attempt();
        self.clear();
        done
    }
}

impl Drop for UndoGuard {
    fn drop(&mut self) {
        // `undo` returns the error; `drop` has no caller that could receive it.
        let _ = self.carry_out();
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
#[path = "tests/killed.rs"]
mod tests_killed;
#[cfg(test)]
#[path = "tests/stopped.rs"]
mod tests_stopped;
