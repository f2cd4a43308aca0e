//! What a timer does when it expires.

use std::fmt;
use std::thread::Thread;

use super::class::ActionClass;
use super::expiration::Expiration;
use super::port::{Message, Port};
use crate::engine::ClockBase;
use crate::fault::WatchedHandle;

/// A timer's synchronization action. It is given when the timer is made, so that arming publishes
/// numbers only.
///
/// **Two contexts.** [`Action::wake`], [`Action::send`], [`Action::immediate`] and [`Action::fault`]
/// run at once, on the engine's thread, in the expiry path. Whatever runs there delays every other
/// timer of that engine, so a function given to [`Action::immediate`] MUST NOT block, wait for
/// another action, or take long; how long it took is in
/// [`Statistics`](super::ServiceStatistics). It may arm and cancel timers, also its own: that is a message
/// to the engine, which it finds when the expired timers are done. [`Action::deferred`] runs on the
/// thread of its [`ActionClass`](super::ActionClass).
///
/// A function that panics is counted, its timer is disarmed, unless it was armed again since the
/// expiry, and all other timers go on.
pub struct Action(pub(super) ActionKind);

pub(super) type Function = Box<dyn FnMut(&Expiration) + Send>;

pub(super) enum ActionKind {
    Nothing,
    Wake(Thread),
    Send(Port, u64),
    Immediate(Function),
    Deferred(ActionClass, Function),
    Fault(WatchedHandle),
}

impl Action {
    /// Nothing: for a timer that is only slept on, or asked for its status.
    #[must_use]
    pub fn nothing() -> Action {
        Action(ActionKind::Nothing)
    }

    /// Unparks a thread ([`std::thread::park`]).
    #[must_use]
    pub fn wake(thread: Thread) -> Action {
        Action(ActionKind::Wake(thread))
    }

    /// Sends a message with `tag` and the time to a port. A full port counts it as lost.
    #[must_use]
    pub fn send(port: &Port, tag: u64) -> Action {
        Action(ActionKind::Send(port.clone(), tag))
    }

    /// Calls a function in the expiry path; what it MUST NOT do is said above.
    #[must_use]
    pub fn immediate(call: impl FnMut(&Expiration) + Send + 'static) -> Action {
        Action(ActionKind::Immediate(Box::new(call)))
    }

    /// Calls a function on the thread of a class. Never twice at the same time: what expires
    /// meanwhile is one more call afterwards, with the rest in
    /// [`Expiration::overruns`].
    #[must_use]
    pub fn deferred(class: &ActionClass, call: impl FnMut(&Expiration) + Send + 'static) -> Action {
        Action(ActionKind::Deferred(class.clone(), Box::new(call)))
    }

    /// Faults a thread ([`WatchedHandle::fault`]): what RT-Mach does for an armed timer with the flag for it (section 4). For
    /// the thread that arms the timer, `Action::fault(watch.thread())`, where `watch` is its own
    /// [`crate::fault::DeadlineWatch`]; on time to microseconds are deadlines that a thread arms with that
    /// watch itself, since their interrupt comes on its own CPU.
    #[must_use]
    pub fn fault(thread: WatchedHandle) -> Action {
        Action(ActionKind::Fault(thread))
    }

    pub(super) fn class(&self) -> Option<&ActionClass> {
        match &self.0 {
            ActionKind::Deferred(class, _) => Some(class),
            _ => None,
        }
    }

    pub(super) fn run(&mut self, expiration: &Expiration) {
        match &mut self.0 {
            ActionKind::Nothing => {}
            ActionKind::Wake(thread) => thread.unpark(),
            ActionKind::Send(port, tag) => {
                // A port that is full has counted it.
                port.send(&Message { tag: *tag, expiration: *expiration });
            }
            ActionKind::Immediate(call) | ActionKind::Deferred(_, call) => call(expiration),
            ActionKind::Fault(thread) => {
                let deadline_ns = match expiration.base {
                    ClockBase::Monotonic => u64::try_from(expiration.expiry_ns).unwrap_or(0),
                    // As far back as on the timer's own clock.
                    _ => thread.now_ns().saturating_sub(expiration.late_ns()),
                };
                // One that is watched no more has nothing to be stopped in.
                thread.fault(deadline_ns);
            }
        }
    }
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            ActionKind::Nothing => "Action::nothing",
            ActionKind::Wake(_) => "Action::wake",
            ActionKind::Send(..) => "Action::send",
            ActionKind::Immediate(_) => "Action::immediate",
            ActionKind::Deferred(..) => "Action::deferred",
            ActionKind::Fault(_) => "Action::fault",
        })
    }
}
