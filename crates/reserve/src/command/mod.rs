//! The target of a command line: a program that is started under its reservation, or a process or thread that runs
//! already.
//!
//! Owns: searching for programs ([`Launch`]), finding threads by name (`AttachedTarget`), waiting for the
//! end of either while signals are passed on (`until_end`).
//! Must not: choose a backend, print.

use std::ffi::OsString;

mod attach;
mod launch;
mod wait;

pub(crate) use attach::AttachedTarget;
pub use attach::{AttachError, TargetSelector};
pub use launch::{Launch, LaunchError};
pub(crate) use wait::{Wait, WaitEnd, until_end};

pub use hourglass_sys::process::{Child, ExitStatus, Gated};
pub(crate) use hourglass_sys::signal_file::{PASSED, SignalFile};

/// What a command that is started under its reservation finds in its environment, with the process that reserves for
/// it. A process that leaves the reserved group unseen is known by it ([`crate::guardian::UndoAction::Strays`]).
pub(crate) const RESERVED_BY: &str = "HOURGLASS_RESERVED_BY";

/// What tells a command by which process it is reserved for.
pub(crate) fn reserved_by_this_process() -> (OsString, OsString) {
    (RESERVED_BY.into(), std::process::id().to_string().into())
}

/// The entry of the environment with which this process starts commands.
pub(crate) fn mark() -> String {
    format!("{RESERVED_BY}={}", std::process::id())
}
