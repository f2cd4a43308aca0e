//! Waiting for a time on other systems than Linux, by the most precise wait that each has for a thread.
//!
//! macOS: `mach_wait_until`. Windows: a waitable timer of high resolution (Windows 10, 1803), and where
//! the kernel has none a plain one, which is late by up to its tick of 15.6 ms. Elsewhere the standard
//! library's sleep.
//!
//! Owns: the wait, and what these systems say of a thread's CPU time. Must not: spin, learn, retry.

#[cfg(target_os = "macos")]
mod macos;
#[cfg(not(any(target_os = "macos", windows)))]
mod portable;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "macos")]
pub use macos::Alarm;
#[cfg(not(any(target_os = "macos", windows)))]
pub use portable::Alarm;
#[cfg(windows)]
pub use windows::Alarm;
