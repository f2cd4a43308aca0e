//! Timers: made on a clock with an action, armed and cancelled from any thread.

use std::ffi::c_void;

use hourglass_time::Span;
use hourglass_timer::Timer;
use hourglass_timer::engine::{ClockBase, ClockSetPolicy};
use hourglass_timer::service::{Action, CancelScope, Expiration, Expiry, TimerSettings, TimerSpec};

use crate::error::{CapiError, guard, hg_error, hg_status};
use crate::fault::{hg_watched, watched_of};
use crate::pointers::{User, give, hg_release_fn, offer, read, read_or_default, unused};
use crate::service::{class_of, hg_class, hg_expiration, hg_owner, hg_port, owner_of, port_of};
use crate::table::{HandleTable, handles};
use crate::threads::{hg_thread, waker_of};

handles! {
    hg_timer, "A timer.";
}

/// An action's function.
pub type hg_expire_fn = Option<unsafe extern "C" fn(*const hg_expiration, *mut c_void)>;

/// Action of a timer; all zero does nothing.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct hg_action {
    /// `HG_ACTION_*`.
    pub kind: u32,
    /// Reserved: 0.
    pub reserved: u32,
    /// Number of the message.
    pub tag: u64,
    /// Port of the message.
    pub port: hg_port,
    /// Thread to wake.
    pub thread: hg_thread,
    /// Class whose thread calls the function.
    pub class_: hg_class,
    /// Thread to fault.
    pub watched: hg_watched,
    /// Function to call.
    pub call: hg_expire_fn,
    /// Data of the function.
    pub user: *mut c_void,
    /// Releases the data.
    pub release: hg_release_fn,
}

/// Settings of a timer; all zero follows `CLOCK_MONOTONIC`, on engines in turn.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_timer_settings {
    /// `HG_BASE_*`.
    pub base: u32,
    /// Whether it expires at once when its clock is set.
    pub expire_on_set: bool,
    /// Whether engine number `engine` serves it.
    pub on_engine: bool,
    /// Reserved: 0.
    pub reserved: [u8; 2],
    /// Number of the engine, from 0.
    pub engine: u32,
    /// Reserved: 0.
    pub reserved_too: u32,
}

/// When a timer expires.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_arm {
    /// A time of the timer's clock, ns; or with `relative` a length.
    pub expiry_ns: i64,
    /// Time from each scheduled expiry to the next, ns; 0 for one expiry.
    pub period_ns: i64,
    /// Allows the timer to expire up to this much later, ns.
    pub slack_ns: i64,
    /// Whether `expiry_ns` counts from now.
    pub relative: bool,
    /// Whether `priority` replaces the priority of the thread.
    pub has_priority: bool,
    /// Priority among deferred actions; a higher one runs first.
    pub priority: u8,
    /// Reserved: 0.
    pub reserved: [u8; 5],
}

/// State of a timer.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_timer_status {
    /// Its next expiry, ns on its clock; 0 if it is not armed.
    pub next_ns: i64,
    /// Actions that ran, and sleeps that ended in time.
    pub fired: u64,
    /// Expiries without an action of their own.
    pub overruns: u64,
    /// Whether it is armed.
    pub armed: bool,
    /// Whether its action waits or runs.
    pub busy: bool,
    /// Whether it was terminated.
    pub terminated: bool,
    /// Reserved: 0.
    pub reserved: [u8; 5],
}

static TIMERS: HandleTable<Timer> = HandleTable::new(8, "timer");

/// An action with the data of its function, which it releases when it is dropped.
struct ActionArgs {
    action: hg_action,
    user: User,
}

impl hg_action {
    /// Takes ownership of `user`.
    ///
    /// # Safety
    /// As the header says of actions.
    unsafe fn take(&self) -> ActionArgs {
        // SAFETY: as the caller promises.
        ActionArgs { action: *self, user: unsafe { User::new(self.user, self.release) } }
    }
}

impl ActionArgs {
    fn action(self) -> Result<Action, CapiError> {
        let ActionArgs { action, user } = self;
        unused(action.reserved, "hg_action")?;
        let function = || {
            action.call.ok_or_else(|| CapiError::null("call")).map(|call| {
                move |expiration: &Expiration| {
                    let event = hg_expiration::from(*expiration);
                    // SAFETY: the header asks that it may be called so, on the thread it names.
                    unsafe { call(&raw const event, user.data()) };
                }
            })
        };
        Ok(match action.kind {
            0 => Action::nothing(),
            1 => {
                let thread = waker_of(action.thread)?;
                Action::immediate(move |_| thread.interrupt())
            }
            2 => Action::send(&port_of(action.port)?, action.tag),
            3 => Action::immediate(function()?),
            4 => Action::deferred(&class_of(action.class_)?, function()?),
            5 => Action::fault(watched_of(action.watched)?),
            other => {
                let text = format!("kind {other} is no action: give an HG_ACTION_*");
                return Err(CapiError::invalid(text));
            }
        })
    }
}

impl hg_timer_settings {
    fn with(&self, action: Action) -> Result<TimerSettings, CapiError> {
        unused((self.reserved, self.reserved_too), "hg_timer_settings")?;
        let base = ClockBase::ALL.get(self.base as usize).copied();
        let base = base.ok_or_else(|| {
            CapiError::invalid(format!(
                "base {} is no clock of timers: give an HG_BASE_*",
                self.base
            ))
        })?;
        let on_set =
            if self.expire_on_set { ClockSetPolicy::Expire } else { ClockSetPolicy::Follow };
        let engine = self.on_engine.then_some(self.engine as usize);
        Ok(TimerSettings { base, on_set, action, engine })
    }
}

impl hg_arm {
    fn arm(&self) -> Result<TimerSpec, CapiError> {
        unused(self.reserved, "hg_arm")?;
        let expiry = match self.relative {
            true => Expiry::After(Span::from_nanos(self.expiry_ns)),
            false => Expiry::At(self.expiry_ns),
        };
        // What `hg_arm_every` makes of 0, which alone would be once: a period, and none that can be.
        let period = match self.period_ns {
            0 => None,
            i64::MIN => Some(Span::ZERO),
            ns => Some(Span::from_nanos(ns)),
        };
        Ok(TimerSpec {
            expiry,
            period,
            slack: Span::from_nanos(self.slack_ns),
            priority: self.has_priority.then_some(self.priority),
        })
    }
}

/// Makes a timer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_timer_new(
    owner: hg_owner,
    settings: *const hg_timer_settings,
    action: *const hg_action,
    timer: *mut hg_timer,
    error: *mut hg_error,
) -> hg_status {
    // SAFETY: as the header says of `action`; what it is given is released whatever fails from here on.
    let given = unsafe { action.as_ref().map(|action| action.take()) };
    let work = move || {
        let action = given.map_or(Ok(Action::nothing()), ActionArgs::action)?;
        // SAFETY: as the header says of `settings`.
        let settings = unsafe { read_or_default(settings) };
        let made = owner_of(owner)?.timer_with(settings.with(action)?)?;
        Ok(hg_timer { handle: TIMERS.insert(made)? })
    };
    // SAFETY: as the header says of `timer` and `error`.
    unsafe { give(timer, "timer", error, work) }
}

/// Arms it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_timer_arm(
    timer: hg_timer,
    arm: *const hg_arm,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        // SAFETY: as the header says of `arm`.
        let arm = unsafe { read(arm, "arm") }?.arm()?;
        Ok(TIMERS.get(timer.handle)?.arm(arm)?)
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

/// Cancels it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_timer_cancel(
    timer: hg_timer,
    which: u32,
    cancelled: *mut bool,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let which = match which {
            0 => CancelScope::All,
            1 => CancelScope::Current,
            other => {
                let text = format!("nothing to cancel is {other}: give an HG_CANCEL_*");
                return Err(CapiError::invalid(text));
            }
        };
        let found = TIMERS.get(timer.handle)?.cancel(which)?;
        // SAFETY: as the header says of `cancelled`.
        unsafe { offer(cancelled, found) };
        Ok(())
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

/// Sleeps on it until a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_timer_sleep_until(
    timer: hg_timer,
    at_ns: i64,
    error: *mut hg_error,
) -> hg_status {
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, || Ok(TIMERS.get(timer.handle)?.sleep_until(at_ns)?)) }
}

/// Sleeps on the timer for a length of time, ns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_timer_sleep_for(
    timer: hg_timer,
    length_ns: i64,
    error: *mut hg_error,
) -> hg_status {
    let length = Span::from_nanos(length_ns);
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, || Ok(TIMERS.get(timer.handle)?.sleep_for(length)?)) }
}

/// Reads the state of a timer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_timer_look(
    timer: hg_timer,
    status: *mut hg_timer_status,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let found = TIMERS.get(timer.handle)?.status()?;
        let status = hg_timer_status {
            next_ns: found.next_ns.unwrap_or(0),
            fired: found.fired,
            overruns: found.overruns,
            armed: found.armed,
            busy: found.busy,
            terminated: found.terminated,
            reserved: [0; 5],
        };
        Ok(status)
    };
    // SAFETY: as the header says of `status` and `error`.
    unsafe { give(status, "status", error, work) }
}

/// Terminates it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_timer_terminate(timer: hg_timer, error: *mut hg_error) -> hg_status {
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, || Ok(TIMERS.get(timer.handle)?.terminate()?)) }
}

/// Terminates it and frees its handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_timer_free(timer: hg_timer, error: *mut hg_error) -> hg_status {
    let work = || {
        // First, so that a thread that sleeps on it returns.
        TIMERS.get(timer.handle)?.terminate()?;
        TIMERS.remove(timer.handle).map(drop)
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}
