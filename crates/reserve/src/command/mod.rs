//! The target of a command line: a program that is started under its reservation, or a process or thread that runs
//! already.
//!
//! Owns: searching for programs ([`Launch`]), finding threads by name ([`AttachedTarget`]), waiting for the
//! end of either while signals are passed on ([`until_end`]).
//! Must not: choose a backend, print.

mod attach;
mod launch;
mod wait;

pub use attach::{AttachError, AttachedTarget, TargetSelector};
pub use launch::{Launch, LaunchError};
pub use wait::{Wait, WaitEnd, until_end};

/// A started child, how it ended, and signals to be read, as the kernel tells them.
pub use hourglass_sys::process::{Child, ExitStatus, Gated};
pub use hourglass_sys::signal_file::{ENDING, PASSED, SignalFile};

/// What a command that is started under its reservation finds in its environment, with the process that reserves for
/// it. A process that leaves the reserved group unseen is known by it ([`crate::guardian::UndoAction::Strays`]).
pub const RESERVED_BY: &str = "HOURGLASS_RESERVED_BY";

/// The entry of the environment with which this process starts commands.
#[must_use]
pub fn mark() -> String {
    format!("{RESERVED_BY}={}", std::process::id())
}
