//! The only home of `unsafe` in Hourglass outside the foreign-function skins.
//!
//! Owns: processor counters, clocks, waits, scheduling calls, memory locking, signals, memory
//! hints, network namespaces, control groups, the kernel's trace; each as a safe function that says what the kernel
//! answered.
//! Must not: hold policy, retry on its own judgement, know what a task or a run is.
//!
//! Errors are the kernel's own ([`std::io::Error`] with its errno); what they mean for a user is
//! said further up. Other systems than Linux have [`clock`], [`prefetch`], [`huge_pages`], [`allocation`],
//! [`no_stop`] and a wait of their own (`alarm`) only.

#[cfg(target_os = "linux")]
pub mod adjtimex;
#[cfg(not(target_os = "linux"))]
pub mod alarm;
pub mod allocation;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod call_faults;
#[cfg(target_os = "linux")]
pub mod caller_state;
#[cfg(target_os = "linux")]
pub mod cgroup;
pub mod clock;
#[cfg(target_os = "linux")]
pub mod core_sched;
#[cfg(target_os = "linux")]
pub mod counter;
#[cfg(target_os = "linux")]
pub mod cpu_relax;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod cpuid;
#[cfg(target_os = "linux")]
pub mod credentials;
#[cfg(target_os = "linux")]
pub mod eventfd;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod fault_injection;
#[cfg(target_os = "linux")]
mod file_limit;
#[cfg(target_os = "linux")]
pub mod fork;
#[cfg(target_os = "linux")]
pub mod futex;
#[cfg(target_os = "linux")]
pub mod guardian;
#[cfg(target_os = "linux")]
pub mod heart_beat;
#[cfg(target_os = "linux")]
pub mod hpet;
pub mod huge_pages;
#[cfg(target_os = "linux")]
pub mod idle_latency;
#[cfg(target_os = "linux")]
pub mod inherited_signals;
#[cfg(target_os = "linux")]
pub mod instructions;
#[cfg(target_os = "linux")]
pub mod lock;
#[cfg(target_os = "linux")]
pub mod memfd;
#[cfg(target_os = "linux")]
pub mod memory;
#[cfg(target_os = "linux")]
pub mod netns;
pub mod no_stop;
#[cfg(target_os = "linux")]
pub mod open;
#[cfg(target_os = "linux")]
pub mod perf;
#[cfg(target_os = "linux")]
pub mod pidfd;
#[cfg(target_os = "linux")]
pub mod posix_timer;
pub mod prefetch;
#[cfg(target_os = "linux")]
pub mod privilege;
#[cfg(target_os = "linux")]
pub mod process;
#[cfg(target_os = "linux")]
pub mod ptp;
#[cfg(target_os = "linux")]
pub mod rseq;
#[cfg(target_os = "linux")]
pub mod rtc;
#[cfg(target_os = "linux")]
pub mod runtime_folder;
#[cfg(target_os = "linux")]
pub mod sched;
#[cfg(target_os = "linux")]
pub mod signal;
#[cfg(target_os = "linux")]
pub mod signal_file;
#[cfg(target_os = "linux")]
pub mod stop;
#[cfg(target_os = "linux")]
pub mod strange_file;
#[cfg(target_os = "linux")]
pub mod task_clock;
#[cfg(target_os = "linux")]
pub mod terminal;
#[cfg(target_os = "linux")]
pub mod thread;
#[cfg(target_os = "linux")]
pub mod time_limit;
#[cfg(target_os = "linux")]
pub mod time_slice;
#[cfg(target_os = "linux")]
pub mod tracefs;
#[cfg(target_os = "linux")]
pub mod vvar;
#[cfg(target_os = "linux")]
pub mod wait;
pub mod wake_reason;
#[cfg(target_os = "linux")]
pub mod worker_process;

#[cfg(target_os = "linux")]
use std::io;

/// Turns the usual `-1 and errno` into a result.
#[cfg(target_os = "linux")]
fn checked(returned: libc::c_int) -> io::Result<libc::c_int> {
    if returned == -1 { Err(io::Error::last_os_error()) } else { Ok(returned) }
}

/// As `checked`, for raw system calls, which return a long.
#[cfg(target_os = "linux")]
fn checked_long(returned: libc::c_long) -> io::Result<libc::c_long> {
    if returned == -1 { Err(io::Error::last_os_error()) } else { Ok(returned) }
}

// The example of the page on a registry is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
