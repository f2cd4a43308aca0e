//! The only home of `unsafe` in Hourglass outside the foreign-function skins.
//!
//! Owns: processor counters, clocks, waits, scheduling calls, memory locking, signals; each as a
//! safe function that says what the kernel answered.
//! Must not: hold policy, retry on its own judgement, know what a task or a run is.
//!
//! Errors are the kernel's own ([`std::io::Error`] with its errno); what they mean for a user is
//! said further up. Linux only.

#[cfg(not(target_os = "linux"))]
compile_error!("hourglass-sys speaks to Linux; on other systems use the crates `time` and `clock`");

pub mod adjtimex;
pub mod clock;
pub mod counter;
#[cfg(target_arch = "x86_64")]
pub mod cpuid;
pub mod hpet;
#[cfg(target_arch = "x86_64")]
pub mod lies;
pub mod memfd;
pub mod memory;
pub mod ptp;
pub mod rtc;
pub mod sched;
pub mod signal;
pub mod thread;
pub mod wait;

use std::io;

/// Turns the usual `-1 and errno` into a result.
fn checked(returned: libc::c_int) -> io::Result<libc::c_int> {
    if returned == -1 { Err(io::Error::last_os_error()) } else { Ok(returned) }
}

/// The same for raw system calls, which return a long.
fn checked_long(returned: libc::c_long) -> io::Result<libc::c_long> {
    if returned == -1 { Err(io::Error::last_os_error()) } else { Ok(returned) }
}
