//! What the test programs share.

#[cfg(target_os = "linux")]
pub(crate) mod devices;
#[cfg(target_os = "linux")]
pub(crate) mod machine;
#[cfg(target_os = "linux")]
pub(crate) mod serving;
#[cfg(target_os = "linux")]
pub(crate) mod watching;

/// `CLOCK_MONOTONIC`, ns.
#[cfg(target_os = "linux")]
#[allow(dead_code, reason = "each program uses its part")]
pub(crate) fn now() -> u64 {
    hourglass_sys::clock::now_ns(hourglass_sys::clock::ClockId::Monotonic)
}
