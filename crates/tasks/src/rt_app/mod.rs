//! Importing rt-app's JSON: threads as phases of run, sleep, timer and lock.
//!
//! Owns: the grammar of rt-app's files (its `doc/tutorial.txt`), its quirks included, and what of
//! it can be said as tasks. Must not: replay anything.
//!
//! Times are whole microseconds. The quirks: comments (`/* */`, `//`) and commas before a closing
//! bracket are passed over; in a thread or phase the same key may stand several times, or with a
//! number behind it (`run0`, `run1`), and each is an event of its own, as rt-app's `workgen` makes
//! it so; a thread may have its events directly instead of phases.
//!
//! A job is what a thread executes between two wake-ups by a timer; its period is the shortest of
//! those timers, its execution time the longest of such jobs, its critical sections what it
//! executes between lock and unlock. Without a timer, sleeps take its place, and jobs are at least
//! a sleep and its run apart. A thread that only waits for another's signal or resume is `after`
//! that one. A thread that waits for nothing is no task and runs in the background. Threads of the
//! deadline class become a server. A thread that is forked exists from the start and waits for it. Whatever cannot
//! be said so is kept in the steps and noted. A thread without `cpus` may run anywhere.

mod events;
pub(super) mod jobs;
mod json_fixup;
mod read;
mod task_conversion;
mod threads;

use std::fmt;

pub(super) use json_fixup::plain;

use super::error::TaskSetError;
use super::{Program, TaskSet};
use hourglass_documents::{CpuSet, Policy};
use hourglass_time::Span;

#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The tasks, each with its steps; threads that are not tasks are in the background.
    pub set: TaskSet,
    /// Notes about parts that were skipped or have another meaning.
    pub notes: Vec<ImportNote>,
    /// How long rt-app would run; `None` without an end.
    pub duration: Option<Span>,
}

/// Something of the file that the tasks do not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportNote {
    /// The thread; empty for the file as a whole.
    pub thread: String,
    /// The note, one sentence.
    pub text: String,
}

impl fmt::Display for ImportNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.thread.as_str() {
            "" => f.write_str(&self.text),
            thread => write!(f, "thread '{}': {}", thread.escape_debug(), self.text),
        }
    }
}

/// A thread object of the file.
#[derive(Clone, Debug)]
struct Thread {
    name: String,
    instances: u32,
    delay: Span,
    policy: Policy,
    cpus: Option<CpuSet>,
    /// Budget, period and deadline of the deadline class.
    reservation: Option<(Span, Span, Span)>,
    program: Program,
}

/// The result of an import; the error concerns the whole file.
type Import<T> = Result<T, TaskSetError>;

impl TaskSet {
    /// Reads a file of rt-app.
    ///
    /// # Errors
    /// The text is not rt-app's JSON, a key or value in it is not understood, or no thread runs.
    /// Where no thread comes again after a time that the file says, the set has no task.
    pub fn from_rt_app(text: &str) -> Result<Imported, TaskSetError> {
        let node = super::read::parse_json(&plain(text)?)?;
        let mut notes = Vec::new();
        let file = read::file(&node, &mut notes)?;
        let set = task_conversion::task_set(&file, &mut notes)?;
        set.check_names()?;
        set.check()?;
        Ok(Imported { set, notes, duration: file.duration })
    }
}
