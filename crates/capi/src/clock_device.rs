//! Clock devices: opened by name, with a resolution that can be changed within a skew, timers that expire
//! at ticks (*Real-Time Mach Timers*, section 2).
//!
//! Owns: the handles, and the rule that the thread that opened a device serves it.
//! Must not: add behaviour to `hourglass_timer::clock_device`.

use std::ffi::{CString, c_char};
use std::ptr;
use std::sync::{Mutex, MutexGuard, OnceLock, TryLockError};

use hourglass_queue::Handle;
use hourglass_time::{Instant, Span};
use hourglass_timer::clock_device::{Cancel, ClockDevice, ClockDevices, ClockReader};
use hourglass_timer::event::{DeviceWaitEnd, Kick};

use crate::error::{
    CapiError, HG_BUSY, HG_EMPTY, HG_INTERRUPTED, HG_OK, HG_PANIC, HG_TIMEOUT, HG_WRONG_THREAD,
    answer, guard, hg_error, hg_status, reading,
};
use crate::pointers::{give, nanoseconds, text};
use crate::table::{HandleTable, handles};
use crate::threads::thread_number;

handles! {
    hg_clock_device, "A clock device.";
    hg_device_timer, "A timer of a clock device.";
}

/// A timer that expired at a tick.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_device_expiry {
    /// The timer.
    pub timer: hg_device_timer,
    /// The number that it was given.
    pub tag: u64,
    /// When it was to expire, ns on `CLOCK_MONOTONIC`.
    pub expiry_ns: i64,
    /// The tick at which it did, ns.
    pub tick_ns: u64,
    /// Further expirations of a periodic timer that had passed by then.
    pub overruns: u64,
}

struct ClockDeviceHandle {
    device: Mutex<ClockDevice<u64>>,
    reader: ClockReader,
    kick: Kick,
    /// The thread that opened it, and serves it.
    owner: u64,
}

impl ClockDeviceHandle {
    /// For the thread that opened it: no other thread takes the lock.
    fn device(&self) -> Result<MutexGuard<'_, ClockDevice<u64>>, CapiError> {
        if self.owner != thread_number() {
            let text = "another thread opened this clock device: only that one may serve it";
            return Err(CapiError::new(HG_WRONG_THREAD, text));
        }
        match self.device.try_lock() {
            Ok(device) => Ok(device),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(CapiError::new(
                HG_BUSY,
                "this clock device is in use by the call that this interrupted",
            )),
        }
    }
}

static DEVICES: HandleTable<ClockDeviceHandle> = HandleTable::new(16, "clock device");

/// Names as C wants them.
fn names() -> &'static [CString] {
    static NAMES: OnceLock<Vec<CString>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let devices = ClockDevices::native();
        devices.list().filter_map(|device| CString::new(device.name).ok()).collect()
    })
}

/// The name of a clock device of this machine.
#[unsafe(no_mangle)]
pub extern "C" fn hg_clock_device_name(number: u32) -> *const c_char {
    answer(ptr::null(), || names().get(number as usize).map_or(ptr::null(), |name| name.as_ptr()))
}

/// Opens a clock device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_clock_device_open(
    name: *const c_char,
    device: *mut hg_clock_device,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        // SAFETY: as the header says of `name`.
        let name = unsafe { text(name, ClockDevices::BASELINE) }?;
        let opened: ClockDevice<u64> = ClockDevices::native().open(&name)?;
        let handle = DEVICES.insert(ClockDeviceHandle {
            reader: opened.reader(),
            kick: opened.kick(),
            device: Mutex::new(opened),
            owner: thread_number(),
        })?;
        Ok(hg_clock_device { handle })
    };
    // SAFETY: as the header says of `device` and `error`.
    unsafe { give(device, "device", error, work) }
}

/// Changes its resolution.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_clock_device_set_resolution(
    device: hg_clock_device,
    desired_ns: u64,
    skew_ns: u64,
    actual_ns: *mut u64,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let desired = Span::from_nanos(nanoseconds(desired_ns, "a resolution")?);
        let skew = Span::from_nanos(nanoseconds(skew_ns, "a skew")?);
        let opened = DEVICES.get(device.handle)?;
        let actual = opened.device()?.set_resolution(desired, skew)?;
        Ok(actual.nth_ns(1))
    };
    // SAFETY: as the header says of `actual_ns` and `error`.
    unsafe { give(actual_ns, "actual_ns", error, work) }
}

/// Waits for its next tick.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_clock_device_wait(
    device: hg_clock_device,
    limit_ns: u64,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let opened = DEVICES.get(device.handle)?;
        let limit = (limit_ns != u64::MAX).then_some(limit_ns);
        let woken = opened.device()?.wait(limit)?;
        match woken {
            DeviceWaitEnd::Event { .. } => Ok(()),
            DeviceWaitEnd::Limit => {
                Err(CapiError::new(HG_TIMEOUT, "no tick came before the limit"))
            }
            _ => Err(CapiError::new(HG_INTERRUPTED, "the wait was ended by a kick or a signal")),
        }
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

/// Ends its wait.
#[unsafe(no_mangle)]
pub extern "C" fn hg_clock_device_kick(device: hg_clock_device) -> hg_status {
    answer(HG_PANIC, || match DEVICES.find(device.handle) {
        Ok(opened) => {
            opened.kick.kick();
            HG_OK
        }
        Err(kind) => kind,
    })
}

/// The time at its last tick.
#[unsafe(no_mangle)]
pub extern "C" fn hg_clock_device_now(device: hg_clock_device) -> u64 {
    reading(0, || DEVICES.find(device.handle).map_or(0, |opened| opened.reader.now_ns()))
}

/// Makes a timer on it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_device_timer_new(
    device: hg_clock_device,
    tag: u64,
    timer: *mut hg_device_timer,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let made = DEVICES.get(device.handle)?.device()?.create(tag)?;
        Ok(hg_device_timer { handle: made.to_bits() })
    };
    // SAFETY: as the header says of `timer` and `error`.
    unsafe { give(timer, "timer", error, work) }
}

/// Arms a timer, once or every so often.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_device_timer_arm(
    device: hg_clock_device,
    timer: hg_device_timer,
    expiry_ns: u64,
    period_ns: u64,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let expiry = Instant::from_nanos(nanoseconds(expiry_ns, "an expiry")?);
        let period = Span::from_nanos(nanoseconds(period_ns, "a period")?);
        let period = period.is_positive().then_some(period);
        Ok(DEVICES.get(device.handle)?.device()?.arm(of_timer(timer)?, expiry, period)?)
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

/// Cancels a timer's next expiration, or all.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_device_timer_cancel(
    device: hg_clock_device,
    timer: hg_device_timer,
    all: bool,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let which = if all { Cancel::All } else { Cancel::Current };
        DEVICES.get(device.handle)?.device()?.cancel(of_timer(timer)?, which)?;
        Ok(())
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

/// Takes a timer away.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_device_timer_free(
    device: hg_clock_device,
    timer: hg_device_timer,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        DEVICES.get(device.handle)?.device()?.terminate(of_timer(timer)?)?;
        Ok(())
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

/// The next timer that expired by the last tick.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_clock_device_expired(
    device: hg_clock_device,
    expiry: *mut hg_device_expiry,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let opened = DEVICES.get(device.handle)?;
        let mut device = opened.device()?;
        let Some(due) = device.pop_expired() else {
            return Err(CapiError::new(HG_EMPTY, "no timer has expired by the last tick"));
        };
        Ok(hg_device_expiry {
            timer: hg_device_timer { handle: due.timer.to_bits() },
            tag: device.payload_mut(due.timer).map_or(0, |tag| *tag),
            expiry_ns: due.expiry.nanos(),
            tick_ns: due.tick_ns,
            overruns: due.overruns,
        })
    };
    // SAFETY: as the header says of `expiry` and `error`.
    unsafe { give(expiry, "expiry", error, work) }
}

/// Closes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_clock_device_free(
    device: hg_clock_device,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        // Its thread was changed when it opened, and only that one can change it back.
        drop(DEVICES.get(device.handle)?.device()?);
        DEVICES.remove(device.handle).map(drop)
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

fn of_timer(timer: hg_device_timer) -> Result<Handle, CapiError> {
    let none =
        || CapiError::new(crate::error::HG_STALE, "no timer of a clock device has this handle");
    Handle::from_bits(timer.handle).ok_or_else(none)
}
