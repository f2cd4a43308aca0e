//! Deadline handlers, and timing faults that other threads read and raise.

use std::ffi::c_void;

use hourglass_time::Span;
use hourglass_timer::fault::{
    Attributes, Deadline, DeadlineHandler, Fault, FaultAction, FaultVerdict, Scheduling,
    SchedulingUpdate, WatchSettings, WatchedHandle, deadline_handler,
};

use crate::error::{CapiError, guard, hg_error, hg_status};
use crate::pointers::hg_release_fn;
use crate::pointers::{User, give, offer, read_or_default, unused};
use crate::scheduling::hg_scheduling;
use crate::table::{HandleTable, handles};

handles! {
    hg_watched, "A watched thread, as others see it.";
    hg_handler, "An installed handler.";
}

/// How a thread is watched; all zero notifies.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_watch_settings {
    /// `HG_STRENGTH_*`.
    pub strength: u32,
    /// The signal of its timer; 0 for the fifth real-time one.
    pub signal: i32,
    /// The longest stop of the thread, ns; 0 without a limit.
    pub longest_stop_ns: u64,
}

/// How a handler's thread runs; all zero as the installing thread, and demotes to `SCHED_IDLE`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_handler_settings {
    /// Policy of the handler's thread.
    pub scheduling: hg_scheduling,
    /// Policy for a thread with `HG_STRENGTH_DEMOTE`.
    pub demoted: hg_scheduling,
    /// Whether the handler's thread runs on `cpu` only.
    pub pinned: bool,
    /// Reserved: 0.
    pub reserved: [u8; 3],
    /// CPU of the handler's thread, with `pinned`.
    pub cpu: u32,
}

/// A deadline that was passed.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_fault {
    /// Deadlines that the thread has passed.
    pub count: u64,
    /// Passed deadlines that no handler received.
    pub untold: u64,
    /// The deadline, ns; `UINT64_MAX` for a budget.
    pub deadline_ns: u64,
    /// When the thread was stopped, ns.
    pub stopped_ns: u64,
    /// When the handler ran, ns.
    pub handled_ns: u64,
    /// The kernel's number of the thread.
    pub thread: u32,
    /// `HG_STRENGTH_*`.
    pub strength: u32,
    /// Whether a region deferred the fault.
    pub deferred: bool,
    /// Whether the fault is a budget overrun.
    pub over_budget: bool,
    /// Reserved: 0.
    pub reserved: [u8; 6],
}

/// How the thread goes on; all zero resumes it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_verdict {
    /// `HG_VERDICT_*`.
    pub kind: u32,
    /// `HG_CHANGE_*`, or several.
    pub changes: u32,
    /// With `HG_CHANGE_SCHEDULING`.
    pub scheduling: hg_scheduling,
    /// With `HG_CHANGE_DEADLINE_AT` or `_IN`, ns.
    pub deadline_ns: u64,
    /// With `HG_CHANGE_CPU`.
    pub cpu: u32,
    /// Reserved: 0.
    pub reserved: u32,
}

/// A handler's function.
pub type hg_fault_fn = Option<unsafe extern "C" fn(*const hg_fault, *mut c_void) -> hg_verdict>;

/// Counts of a handler.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_handled {
    /// Calls of its function.
    pub faults: u64,
    /// Changes that the kernel refused, and deadlines out of range.
    pub refused: u64,
}

static WATCHED: HandleTable<WatchedHandle> = HandleTable::new(9, "watched thread");
static HANDLERS: HandleTable<DeadlineHandler> = HandleTable::new(10, "handler");

impl hg_watch_settings {
    pub(crate) fn settings(&self) -> Result<WatchSettings, CapiError> {
        let strength = match self.strength {
            0 => FaultAction::Notify,
            1 => FaultAction::Demote,
            2 => FaultAction::Suspend,
            other => {
                let text = format!("no strength is {other}: give an HG_STRENGTH_*");
                return Err(CapiError::invalid(text));
            }
        };
        let longest = i64::try_from(self.longest_stop_ns).unwrap_or(i64::MAX);
        Ok(WatchSettings {
            strength,
            longest_stop: (longest != 0).then_some(Span::from_nanos(longest)),
            signal: (self.signal != 0).then_some(self.signal),
        })
    }
}

impl hg_handler_settings {
    pub(crate) fn attributes(&self) -> Result<Attributes, CapiError> {
        unused(self.reserved, "hg_handler_settings")?;
        Ok(Attributes {
            scheduling: self.scheduling.attributes()?,
            cpu: self.pinned.then_some(self.cpu),
            demoted: self.demoted.attributes()?.unwrap_or(Scheduling::Idle),
        })
    }
}

impl From<&Fault> for hg_fault {
    fn from(fault: &Fault) -> hg_fault {
        hg_fault {
            count: fault.count,
            untold: fault.undelivered,
            deadline_ns: fault.deadline_ns,
            stopped_ns: fault.stopped_ns,
            handled_ns: fault.handled_ns,
            thread: fault.thread,
            strength: match fault.strength {
                FaultAction::Notify => 0,
                FaultAction::Demote => 1,
                FaultAction::Suspend => 2,
            },
            deferred: fault.deferred,
            over_budget: fault.is_over_budget(),
            reserved: [0; 6],
        }
    }
}

const CHANGE_SCHEDULING: u32 = 1;
const CHANGE_CPU: u32 = 2;
const CHANGE_DEADLINE_AT: u32 = 4;
const CHANGE_DEADLINE_IN: u32 = 8;

impl hg_verdict {
    fn deadline(&self) -> Option<Deadline> {
        if self.changes & CHANGE_DEADLINE_AT != 0 {
            return Some(Deadline::At(self.deadline_ns));
        }
        let length = i64::try_from(self.deadline_ns).unwrap_or(i64::MAX);
        (self.changes & CHANGE_DEADLINE_IN != 0).then_some(Deadline::In(Span::from_nanos(length)))
    }

    /// An unknown kind resumes the thread, since a stopped thread would stay stopped.
    fn verdict(&self) -> FaultVerdict {
        match self.kind {
            1 => FaultVerdict::KeepDemoted,
            2 => FaultVerdict::End,
            _ if self.changes == 0 => FaultVerdict::Resume,
            _ => FaultVerdict::Reschedule(SchedulingUpdate {
                scheduling: match self.changes & CHANGE_SCHEDULING {
                    0 => None,
                    _ => self.scheduling.attributes().ok().flatten(),
                },
                cpu: (self.changes & CHANGE_CPU != 0).then_some(self.cpu),
                deadline: self.deadline(),
            }),
        }
    }
}

/// Calls a handler's function for its verdict on a thread.
pub(crate) fn call_handler(
    call: unsafe extern "C" fn(*const hg_fault, *mut c_void) -> hg_verdict,
    fault: &Fault,
    user: *mut c_void,
) -> FaultVerdict {
    let event = hg_fault::from(fault);
    // SAFETY: the header asks that it may be called so, on the handler's thread.
    unsafe { call(&raw const event, user) }.verdict()
}

/// Wraps a handler's function and its data.
///
/// # Errors
/// `HG_NULL`; `user` is released then.
fn entry(
    call: hg_fault_fn,
    user: User,
) -> Result<impl FnMut(&Fault, &mut ()) -> FaultVerdict + Send + 'static, CapiError> {
    let call = call.ok_or_else(|| CapiError::null("entry"))?;
    Ok(move |fault: &Fault, (): &mut ()| call_handler(call, fault, user.data()))
}

/// The watched thread of a handle.
pub(crate) fn watched_of(watched: hg_watched) -> Result<WatchedHandle, CapiError> {
    WATCHED.get(watched.handle).map(|watched| watched.clone())
}

/// A handle for a watched thread.
pub(crate) fn watched(thread: WatchedHandle) -> Result<hg_watched, CapiError> {
    Ok(hg_watched { handle: WATCHED.insert(thread)? })
}

/// Faults a thread now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_watched_fault(
    watched: hg_watched,
    deadline_ns: u64,
    notified: *mut bool,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let found = WATCHED.get(watched.handle)?.fault(deadline_ns);
        // SAFETY: as the header says of `notified`.
        unsafe { offer(notified, found) };
        Ok(())
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

/// Deadlines that a thread has passed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_watched_faults(
    watched: hg_watched,
    faults: *mut u64,
    untold: *mut u64,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let found = WATCHED.get(watched.handle)?;
        // SAFETY: as the header says of both.
        unsafe {
            offer(faults, found.faults());
            offer(untold, found.undelivered());
        }
        Ok(())
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

/// Frees the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_watched_free(watched: hg_watched, error: *mut hg_error) -> hg_status {
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, || WATCHED.remove(watched.handle).map(drop)) }
}

/// Installs a handler.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_handler_install(
    watched: hg_watched,
    settings: *const hg_handler_settings,
    entry_: hg_fault_fn,
    user: *mut c_void,
    release: hg_release_fn,
    handler: *mut hg_handler,
    error: *mut hg_error,
) -> hg_status {
    // SAFETY: as the header says of `user` and `release`; released whatever fails from here on.
    let user = unsafe { User::new(user, release) };
    let work = move || {
        let entry = entry(entry_, user)?;
        // SAFETY: as the header says of `settings`.
        let settings = unsafe { read_or_default(settings) };
        let thread = watched_of(watched)?;
        let made = deadline_handler(&thread, settings.attributes()?, entry, ())?;
        Ok(hg_handler { handle: HANDLERS.insert(made)? })
    };
    // SAFETY: as the header says of `handler` and `error`.
    unsafe { give(handler, "handler", error, work) }
}

/// Reads the counts of a handler.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_handler_look(
    handler: hg_handler,
    handled: *mut hg_handled,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let found = HANDLERS.get(handler.handle)?.handled();
        let handled = hg_handled { faults: found.faults, refused: found.refused };
        Ok(handled)
    };
    // SAFETY: as the header says of `handled` and `error`.
    unsafe { give(handled, "handled", error, work) }
}

/// Removes a handler.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_handler_free(handler: hg_handler, error: *mut hg_error) -> hg_status {
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, || HANDLERS.remove(handler.handle).map(drop)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_what_they_say() {
        let of = |verdict: hg_verdict| verdict.verdict();
        assert_eq!(of(hg_verdict::default()), FaultVerdict::Resume);
        assert_eq!(of(hg_verdict { kind: 2, ..Default::default() }), FaultVerdict::End);
        // Nonsense must not leave a thread standing.
        assert_eq!(of(hg_verdict { kind: 77, ..Default::default() }), FaultVerdict::Resume);
        let by = hg_verdict { changes: CHANGE_DEADLINE_IN, deadline_ns: 5, ..Default::default() };
        let deadline = Some(Deadline::In(Span::from_nanos(5)));
        assert_eq!(
            of(by),
            FaultVerdict::Reschedule(SchedulingUpdate { deadline, ..SchedulingUpdate::default() })
        );
    }
}
