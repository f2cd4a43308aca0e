//! Who puts everything back if this process does not live to do it.
//!
//! One guardian serves a whole reservation: command, backend, stoppers and monitor keep in it what
//! each of them would have to undo, before they do it. The process itself is [`hourglass_sys`]'s;
//! what is kept, and when, is decided by its users:
//!
//! - Whoever freezes or stops, keeps the [`Undo::Write`] that thaws or the [`Undo::Continue`] once at
//!   the start: thawing who is not frozen does nothing. The monitor renews [`Guardian::promise`].
//! - Whoever raises others and keeps them to a budget, renews a [`Pledge`] at each look.
//! - Whoever changes policy or CPUs of a thread, keeps an [`Undo::Thread`] with what it had; for a
//!   cgroup whose members come and go, an [`Undo::Members`] beside it.
//! - Whoever makes a cgroup, keeps an [`Undo::Move`] for its members and an [`Undo::RemoveGroup`] for itself, and
//!   where members are raised an [`Undo::Strays`] for those who leave it unseen.
//!
//! A normal end goes the same way ([`Kept::undo`]), so that both ends are the same code.

//!
//! While no guardian lives, since both of its processes were killed and another one is being started, nobody is stopped
//! or raised: [`Guardian::must_live`] is asked before.

pub use hourglass_sys::guardian::{
    Guardian, GuardianUnavailable, HeartbeatPromise, TaskIdentity, UndoAction, UndoGuard, clean,
};
