//! Queues and wheels from outside: against slow twins, and that they never allocate.

#[cfg(target_os = "linux")]
mod allocation;
mod orders;
mod wheels;
