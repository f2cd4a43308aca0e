//! Values that belong to one thread, although Python may hand them to any thread.
//!
//! Owns: the check that the owner calls, and that no call of it is in progress (a signal's handler runs
//! within a wait). Must not: hand out the value to another thread than the owner.

use std::cell::{RefCell, RefMut};
use std::process;
use std::thread::{self, ThreadId};

use crate::errors::{ErrorKind, PyFailure};

/// A thing, and the thread that it belongs to. Of a thing that is dropped elsewhere, or in a forked child, nothing is
/// undone.
pub(crate) struct ThreadOwned<T> {
    owner: ThreadId,
    process: u32,
    /// `None` when it was taken.
    thing: RefCell<Option<T>>,
}

// SAFETY: what is within is reached by the thread of `owner` only, which every access asks first, and
// whose number no other thread ever has; elsewhere it is forgotten and not dropped.
unsafe impl<T> Send for ThreadOwned<T> {}

// SAFETY: as for `Send`; the cell's own count of borrows is reached by that thread only, too.
unsafe impl<T> Sync for ThreadOwned<T> {}

impl<T> ThreadOwned<T> {
    /// Of the calling thread.
    pub(crate) fn for_this_thread(thing: T) -> ThreadOwned<T> {
        let thing = RefCell::new(Some(thing));
        ThreadOwned { owner: thread::current().id(), process: process::id(), thing }
    }

    /// Checks that this is no forked child, for values with memory or threads that a child lacks.
    ///
    /// # Errors
    /// `Forked`.
    pub(crate) fn not_inherited(&self, what: &str) -> Result<(), PyFailure> {
        match self.is_inherited() {
            false => Ok(()),
            true => Err(PyFailure::new(
                ErrorKind::Forked,
                format_args!("the {what} is the parent process's: make another one in the child"),
            )),
        }
    }

    fn is_inherited(&self) -> bool {
        process::id() != self.process
    }

    /// Whether this is its thread.
    pub(crate) fn is_here(&self) -> bool {
        thread::current().id() == self.owner
    }

    fn cell(&self, what: &str) -> Result<RefMut<'_, Option<T>>, PyFailure> {
        if !self.is_here() {
            return Err(PyFailure::new(
                ErrorKind::WrongThread,
                format_args!(
                    "the {what} belongs to the thread that began it: begin one in this thread"
                ),
            ));
        }
        self.thing.try_borrow_mut().map_err(|_| {
            PyFailure::new(
                ErrorKind::Busy,
                format_args!(
                    "the {what} is in use: a signal's handler cannot use what it interrupted"
                ),
            )
        })
    }

    /// To use it, in its own thread.
    ///
    /// # Errors
    /// `WrongThread`, `Busy`, `Closed`.
    pub(crate) fn get(&self, what: &str) -> Result<RefMut<'_, T>, PyFailure> {
        RefMut::filter_map(self.cell(what)?, Option::as_mut).map_err(|_| {
            PyFailure::new(ErrorKind::Closed, format_args!("the {what} is over: make another one"))
        })
    }

    /// Takes the value, once.
    ///
    /// # Errors
    /// `WrongThread`, `Busy`.
    pub(crate) fn take(&self, what: &str) -> Result<Option<T>, PyFailure> {
        Ok(self.cell(what)?.take())
    }
}

impl<T> Drop for ThreadOwned<T> {
    fn drop(&mut self) {
        if !self.is_here() || self.is_inherited() {
            std::mem::forget(self.thing.get_mut().take());
        }
    }
}

/// What is used by a closure that runs in this thread but must seem to run in any:
/// `Python::detach` asks for it, so that nothing of Python is taken along.
pub(crate) struct ThreadBound<T>(T);

// SAFETY: made in a thread for a closure that this thread runs itself, in `ThreadBound::detach` alone.
unsafe impl<T> Send for ThreadBound<T> {}

impl<T> ThreadBound<T> {
    fn into_inner(self) -> T {
        self.0
    }

    /// Does `work` with a thing that has nothing of Python in it, in this thread, without the interpreter.
    pub(crate) fn detach<R>(py: pyo3::Python<'_>, thing: T, work: impl FnOnce(T) -> R + Send) -> R {
        let here = ThreadBound(thing);
        py.detach(move || ThreadBound(work(here.into_inner()))).into_inner()
    }
}
