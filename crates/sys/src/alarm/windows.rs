//! Waitable timers.

use core::ffi::c_void;
use core::ptr;
use std::time::Duration;

/// `CREATE_WAITABLE_TIMER_HIGH_RESOLUTION`.
const HIGH_RESOLUTION: u32 = 2;
/// `SYNCHRONIZE | TIMER_MODIFY_STATE`.
const ACCESS: u32 = 0x0010_0000 | 0x0002;
/// `INFINITE`.
const FOR_EVER: u32 = u32::MAX;
/// The unit of these timers, ns.
const UNIT_NS: u64 = 100;

#[link(name = "kernel32")]
unsafe extern "system" {
    fn CreateWaitableTimerExW(
        attributes: *const c_void,
        name: *const u16,
        flags: u32,
        access: u32,
    ) -> *mut c_void;
    fn SetWaitableTimer(
        timer: *mut c_void,
        due: *const i64,
        period: i32,
        routine: *const c_void,
        argument: *const c_void,
        resume: i32,
    ) -> i32;
    fn WaitForSingleObject(object: *mut c_void, milliseconds: u32) -> u32;
    fn CloseHandle(object: *mut c_void) -> i32;
    fn GetCurrentProcessorNumber() -> u32;
}

/// A thread's way to wait.
#[derive(Debug)]
pub struct Alarm {
    /// The timer; null if it could not be made.
    timer: *mut c_void,
}

// SAFETY: a handle names an object of the process, which any of its threads may use.
unsafe impl Send for Alarm {}

// SAFETY: what takes the alarm by shared reference does not touch the handle.
unsafe impl Sync for Alarm {}

impl Alarm {
    /// Asks for a timer: a precise one, else a plain one, else none.
    #[must_use]
    pub fn new() -> Alarm {
        let precise = create(HIGH_RESOLUTION);
        Alarm { timer: if precise.is_null() { create(0) } else { precise } }
    }

    /// Waits `length_ns`, and longer by the latency of the kernel.
    pub fn wait(&mut self, length_ns: u64) {
        // Negative: from now on.
        let due = -i64::try_from(length_ns / UNIT_NS).unwrap_or(i64::MAX);
        let set = !self.timer.is_null() && {
            // SAFETY: the handle is of a timer of ours, and the time a live local; no routine is called.
            unsafe {
                SetWaitableTimer(self.timer, &raw const due, 0, ptr::null(), ptr::null(), 0) != 0
            }
        };
        if set {
            // SAFETY: the handle is of a timer of ours, which is closed only when this is dropped.
            unsafe { WaitForSingleObject(self.timer, FOR_EVER) };
        } else {
            std::thread::sleep(Duration::from_nanos(length_ns));
        }
    }

    /// CPU time of the calling thread: not known, since the system counts it in ticks of 15.6 ms.
    #[must_use]
    pub fn cpu_time_ns(&self) -> Option<u64> {
        None
    }

    /// The CPU that the thread runs on.
    #[must_use]
    pub fn cpu(&self) -> u32 {
        // SAFETY: no arguments, no memory.
        unsafe { GetCurrentProcessorNumber() }
    }
}

/// A timer, or null.
fn create(flags: u32) -> *mut c_void {
    // SAFETY: null stands for no attributes and no name.
    unsafe { CreateWaitableTimerExW(ptr::null(), ptr::null(), flags, ACCESS) }
}

impl Clone for Alarm {
    fn clone(&self) -> Alarm {
        Alarm::new()
    }
}

impl Default for Alarm {
    fn default() -> Self {
        Alarm::new()
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if !self.timer.is_null() {
            // SAFETY: the handle is ours, and has no user from now on.
            unsafe { CloseHandle(self.timer) };
        }
    }
}
