//! What a fresh process says of its first value.
//!
//! Owns: the measurement inside the fresh process. Must not: touch a clock before the first value,
//! which would warm it up.

use std::hint::black_box;
use std::time::Duration;

use hourglass_sys::clock::{ClockId, now_ns};

/// Takes a first value and prints how long that took, and the time thereafter: both ns, the second
/// one on `CLOCK_MONOTONIC`'s scale.
///
/// Timed by the processor's counter, since reading the OS clock before would load the pages that
/// the first value needs. The counter's rate is measured afterwards.
pub(crate) fn tell<T>(first: impl FnOnce() -> T) {
    let before = ticks();
    black_box(first());
    let after = ticks();
    let at_ns = now_ns(ClockId::Monotonic);
    let ns = ns_of(after.saturating_sub(before));
    println!("{ns} {at_ns}");
}

fn ns_of(count: u64) -> u64 {
    let pair = || (ticks(), now_ns(ClockId::Monotonic));
    let (first_ticks, first_ns) = pair();
    std::thread::sleep(Duration::from_millis(2));
    let (last_ticks, last_ns) = pair();
    let window = u128::from(last_ticks.saturating_sub(first_ticks)).max(1);
    let window_ns = u128::from(last_ns.saturating_sub(first_ns));
    u64::try_from(u128::from(count) * window_ns / window).unwrap_or(u64::MAX)
}

/// The counter after all earlier and before all later instructions.
#[cfg(target_arch = "x86_64")]
fn ticks() -> u64 {
    let ticks = hourglass_sys::counter::tsc_after_earlier();
    hourglass_sys::counter::fence_instructions();
    ticks
}

/// The counter after all earlier and before all later instructions.
#[cfg(target_arch = "aarch64")]
fn ticks() -> u64 {
    let ticks = hourglass_sys::counter::cntvct_after_earlier();
    // A second ordered read holds later instructions back.
    black_box(hourglass_sys::counter::cntvct_after_earlier());
    ticks
}

/// Elsewhere the OS clock has to serve.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn ticks() -> u64 {
    now_ns(ClockId::Monotonic)
}
