//! Tests of timers that may share a process. Those that may not are in `../alone`, those of orders
//! of threads in `../interleavings`.
//!
//! A test here must not change what the process has but its threads: no signal handler, limit, panic
//! hook or environment. What a thread allocates is counted for each thread.

#[path = "../common/mod.rs"]
mod common;

#[cfg(target_os = "linux")]
mod allocation;
#[cfg(target_os = "linux")]
mod called_to_account;
#[cfg(target_os = "linux")]
mod clock_devices;
#[cfg(target_os = "linux")]
mod engine;
#[cfg(target_os = "linux")]
mod fault_handlers;
#[cfg(target_os = "linux")]
mod faults;
#[cfg(target_os = "linux")]
mod futures;
#[cfg(target_os = "linux")]
mod native_events;
#[cfg(target_os = "linux")]
mod periodic;
#[cfg(target_os = "linux")]
mod rtc_device;
#[cfg(target_os = "linux")]
mod service;
#[cfg(target_os = "linux")]
mod service_classes;
#[cfg(target_os = "linux")]
mod service_ends;
#[cfg(target_os = "linux")]
mod service_engines;
#[cfg(target_os = "linux")]
mod service_sim;
#[cfg(target_os = "linux")]
mod simulated_faults;
#[cfg(target_os = "linux")]
mod sleep;
#[cfg(target_os = "linux")]
mod time_slice;

use hourglass_sys::allocation::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
