//! A command, process or thread under a reservation, and what came of it.
//!
//! Owns: the order in which a reservation is made, watched and undone ([`run`](fn@run)), what would
//! be refused ([`check`](fn@check)), undoing what killed ones left ([`clean`](fn@clean)), the documents. Must not: enforce anything itself (`reserve` does),
//! print, parse the command line.
//!
//! # How a command is reserved
//!
//! `lifecycle` has the order. Its thread has a real-time priority until the command runs (`priority_boost.rs`), but for the
//! measurement of stoppers. Signals become something to read, and the two processes of the guardian are forked, while the
//! process has no other threads. The program is found, and forked so that it waits at a gate (`sys::process`): it has
//! its number, and can be given policy, CPUs and groups, and has not begun. Who shares its CPU is looked up, and a way of
//! stopping them measured. A backend takes the reservation (`backend_selection.rs` asks the best that nothing is in the way of, and
//! then the next); the monitor proves that it runs; the gate opens. Beside co-runners the backend keeps more than the budget
//! for the work, since it counts processor time and the budget is progress (`co_runners.rs`). When the program ends, it
//! stays a zombie until everything is undone, so that the kernel does not reuse its number. It finds signals ignored and
//! blocked as hourglass found them: the loader has `sys::inherited_signals` note that before `main`.
//!
//! The guardian (`sys::guardian`) is two processes, each with one end of a line (a socket, since a pipe raises
//! SIGPIPE), and a page of slots that they share with their maker. A slot is written before that is done which it
//! undoes, and read only when the maker has ended. They may be forked, and run, where the maker has many threads, so
//! they make system calls and nothing else. `UndoGuard` carries out the same slots at a normal end. A maker that stops
//! others also promises to come back by a time; if it does not, they run again. One of the two does the work; the other
//! one waits for its end and then does it. A thread of the maker (`guardians.rs`) sleeps until either ends, and forks
//! another one for it. `Guardian::must_live` is asked before anything is stopped or raised.
//!
//! Each slot is copied to a file in a folder of the user (`record.rs`, `runtime_folder.rs`), on which the process that may still undo it holds a
//! lock. `reserve --clean` (`clean.rs`) carries out the files that no process has locked: with the rights of the user to whom a file belongs
//! (`privilege.rs`), and without capabilities unless that is root.

mod additional;
pub mod arguments;
mod backend_selection;
mod broken;
mod change;
mod check;
mod clean;
mod co_runners;
mod document;
mod kept;
mod lifecycle;
mod list;
mod moment;
mod named_threads;
mod priority_boost;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io;

pub use crate::backend::BackendKind as Backend;
pub use crate::backend::user::less_urgent;
pub use crate::command::{AttachError, LaunchError, TargetSelector};
pub use crate::smt::co_runners::Selection;
pub use crate::smt::monitor::SiblingPolicy;
pub use crate::smt::stopper::StopperKind as Stopper;
pub use crate::smt::topology::SharingLevel;
use hourglass_documents::Reservation;
use hourglass_documents::reserve::{ReserveDocument, ReserveRefusal};
pub use hourglass_sim::slack::ProgressRate;
/// For a program that starts a process of its own for each reserved command.
pub use hourglass_sys::process::end_with_parent;
use hourglass_time::Span;

pub use crate::admission::PlannedReservation;
pub use additional::warnings_of;
pub use broken::kept_until_now;
pub use change::{ChangeFailure, change};
pub use check::{check, check_beside, planned};
pub use clean::clean;
pub use lifecycle::{run, run_watched};
pub use list::list;
pub use named_threads::{NamedThreadError, named_threads};

/// A reservation and its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRequest {
    /// Budget, period, deadline, strength.
    pub reservation: Reservation,
    /// The CPU on which the work is to stay; `None` leaves it where it is.
    pub cpu: Option<u32>,
    /// The backend; `None` lets the machine decide.
    pub backend: Option<Backend>,
    /// The target.
    pub subject: SessionTarget,
    /// The protection from CPUs that share with the reserved one; `None` for no protection.
    pub siblings: Option<CoRunnerSettings>,
    /// Further reservations, for processes that run already, on the same CPU where `siblings` are watched.
    pub additional: Vec<AdditionalReservation>,
    /// Sends a command's output to stderr, because stdout is for the document.
    pub aside: bool,
}

/// A further reservation, which ends with the first one or with its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdditionalReservation {
    /// Budget, period, strength.
    pub reservation: Reservation,
    /// A process; or a thread, where the first one is for a thread and no co-runners are watched.
    pub target: TargetSelector,
    /// The CPU of a thread; processes are on that of the first reservation.
    pub cpu: Option<u32>,
    /// The backend of a thread; a user-space reserve for `None`, as of processes.
    pub backend: Option<Backend>,
}

/// The target of a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionTarget {
    /// A program that is started, with its words.
    Command(Vec<OsString>),
    /// A thread or process that runs already.
    Adopted(TargetSelector),
    /// No target: for [`check`](fn@check) alone.
    CheckOnly,
}

/// How reserved work is protected from co-runners of its processor (Inoue et al., 2006).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoRunnerSettings {
    /// The policy towards co-runners.
    pub policy: SiblingPolicy,
    /// The kind of sharing that matters.
    pub interference: SharingLevel,
    /// The processes that may be stopped; empty means all, which only core scheduling can do.
    pub stopped: Vec<Selection>,
    /// How they are stopped; `None` lets a measurement decide.
    pub stopper: Option<Stopper>,
    /// Whether they are slowed before they are stopped.
    pub graded: bool,
    /// The proven least rate of progress beside them.
    pub alpha: ProgressRate,
    /// How often slack is looked at; `None` when it can be used up.
    pub interval: Option<Span>,
    /// The margin at which co-runners are stopped; `None` is what was measured.
    pub margin: Option<Span>,
    /// Where progress is read, beside processor time; `None` wherever it can be.
    pub progress: Option<ProgressFrom>,
}

/// Where progress is read (section 4.2). Processor time counts besides, as far as it is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressFrom {
    /// The word that the program writes; the paper's `Syscall`.
    Word,
    /// Retired instructions, counted by the processor; the paper's `PMC`.
    Instructions,
    /// Nothing else.
    CpuTime,
}

/// Why there is no reservation. Everything is as it was.
#[derive(Debug, thiserror::Error)]
pub enum SessionFailure {
    /// The program does not start.
    #[error(transparent)]
    NotStarted(#[from] LaunchError),
    /// The thread or process is not there.
    #[error(transparent)]
    NotAdopted(#[from] AttachError),
    /// No backend takes it; the document has the reasons.
    #[error("{}", refusals(.0))]
    Refused(Box<ReserveDocument>),
    /// The co-runners of its processor cannot be kept off.
    #[error("--smt: {0}")]
    Siblings(String),
    /// Progress cannot be read from where it was asked to be.
    #[error("--progress {0}")]
    Progress(String),
    /// The arguments contradict each other.
    #[error("{0}")]
    Words(String),
    /// The system does not do what every system does.
    #[error("{what}: {source}")]
    System {
        /// The call that failed.
        what: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl SessionFailure {
    fn system(what: &'static str) -> impl FnOnce(io::Error) -> SessionFailure {
        move |source| SessionFailure::System { what, source }
    }
}

/// Each refusal in a line; what several backends say of the same thing stands there once.
#[must_use]
pub fn refusal_lines(document: &ReserveDocument) -> Vec<String> {
    let mut said: Vec<(Vec<&str>, &ReserveRefusal)> = Vec::new();
    for refusal in &document.refusals {
        let same = |other: &ReserveRefusal| {
            (&other.cause, &other.remedy) == (&refusal.cause, &refusal.remedy)
        };
        match said.iter_mut().find(|(_, other)| same(other)) {
            Some((backends, _)) => backends.push(&refusal.backend),
            None => said.push((vec![&refusal.backend], refusal)),
        }
    }
    let line = |(backends, refusal): (Vec<&str>, &ReserveRefusal)| {
        format!("{}: {}; {}", backends.join(", "), refusal.cause, refusal.remedy)
    };
    said.into_iter().map(line).collect()
}

fn refusals(document: &ReserveDocument) -> String {
    let lines = refusal_lines(document);
    if lines.is_empty() { "no backend enforces it".to_owned() } else { lines.join("; ") }
}

/// A reservation that was in force.
#[derive(Debug)]
pub struct SessionOutcome {
    /// The results.
    pub document: ReserveDocument,
    /// The exit code: the command's own code, 128 plus the signal that ended it or the reservation, 0 for an attached
    /// target that has ended.
    pub exit_code: u8,
}
