//! The process that puts everything back if this one dies before it can.
//!
//! One guardian serves a whole reservation: command, backend, stoppers and monitor keep in it what
//! each of them would have to undo, before they do it. The process itself is [`hourglass_sys`]'s;
//! what is kept, and when, is decided by its users:
//!
//! - A caller that freezes or stops keeps the [`UndoAction::Write`] that thaws or the [`UndoAction::Continue`] once at the start:
//!   thawing a group that is not frozen does nothing. The monitor renews [`Guardian::promise`].
//! - A caller that raises others and keeps them to a budget renews a [`HeartbeatPromise`] at each look.
//! - A caller that changes policy or CPUs of a thread keeps an [`UndoAction::Thread`] with what it had; for a cgroup whose
//!   members come and go, an [`UndoAction::Members`] beside it.
//! - A caller that makes a cgroup keeps an [`UndoAction::Move`] for its members and an [`UndoAction::RemoveGroup`] for itself, and
//!   where members are raised an [`UndoAction::Strays`] for those who leave it unseen.
//!
//! A normal end goes the same way ([`UndoGuard::undo`]), so that both ends are the same code.

//!
//! While no guardian lives, since both of its processes were killed and another one is being started, nothing is
//! stopped or raised: callers ask [`Guardian::must_live`] before.

pub use hourglass_sys::guardian::{
    Guardian, GuardianUnavailable, HeartbeatPromise, TaskIdentity, UndoAction, UndoGuard, clean,
};
