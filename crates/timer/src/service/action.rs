//! What a timer does when it expires.

use std::fmt;
use std::thread::Thread;

use super::class::ActionClass;
use super::port::{Message, Port};
use crate::engine::{Cause, ClockBase};
use crate::fault::WatchedHandle;

/// An expiry, as its action sees it.
///
/// It may stand for several: those of a periodic timer that came while the engine could not poll
/// it, or while the action before still waited or ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiration {
    /// Clock of the timer.
    pub base: ClockBase,
    /// The last expiry that the engine had found when it ran or queued the action, ns on the timer's
    /// clock: as scheduled, not as late as it was.
    pub expiry_ns: i64,
    /// What the clock said when the engine looked at it, ns. Not before the expiry, unless the
    /// clock was set.
    pub now_ns: i64,
    /// Expiries that had no action of their own: before it, and after it those that came while the
    /// action waited for its worker.
    pub overruns: u64,
    /// Whether its time came or its clock was set.
    pub cause: Cause,
}

impl Expiration {
    /// How late the engine was, ns; 0 if the clock was set.
    #[must_use]
    pub fn late_ns(&self) -> u64 {
        match self.cause {
            Cause::ClockSet => 0,
            _ if self.now_ns > self.expiry_ns => self.now_ns.abs_diff(self.expiry_ns),
            _ => 0,
        }
    }

    pub(super) fn words(&self) -> [u64; 4] {
        let cause = if self.cause == Cause::ClockSet { 1 } else { 0 };
        let base = ClockBase::ALL.iter().position(|base| *base == self.base).unwrap_or(0) as u64;
        [self.expiry_ns as u64, self.now_ns as u64, self.overruns, base << 1 | cause]
    }

    pub(super) fn from_words(words: [u64; 4]) -> Expiration {
        let [expiry, now, overruns, kind] = words;
        Expiration {
            base: ClockBase::ALL[(kind >> 1) as usize % ClockBase::ALL.len()],
            expiry_ns: expiry as i64,
            now_ns: now as i64,
            overruns,
            cause: if kind & 1 == 1 { Cause::ClockSet } else { Cause::Expiry },
        }
    }
}

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
