//! Counters that a measuring loop polls.

use hourglass_sys::clock::{ClockId, current_cpu, now_ns};
use hourglass_sys::counter::CounterReading;

/// A counter that tells ticks and CPU number together.
///
/// Implementations MUST
/// - read the counter on the CPU whose number they return (a thread may be moved at any moment);
/// - never go backwards on one CPU;
/// - never fail, block, allocate or enter the kernel;
/// - cost tens of nanoseconds at most, since the read is the resolution of gap detection.
///
/// They need not agree between CPUs: callers take a step backwards after a migration as no time.
pub trait Counter: Send {
    /// The name of the source in documents.
    const NAME: &'static str;

    /// Reads counter and CPU number.
    fn read(&self) -> CounterReading;
}

/// The time-stamp counter, by `rdtscp`.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub struct Tsc;

#[cfg(target_arch = "x86_64")]
impl Counter for Tsc {
    const NAME: &'static str = "tsc";

    #[inline(always)]
    fn read(&self) -> CounterReading {
        hourglass_sys::counter::tsc_with_cpu()
    }
}

/// The generic timer's virtual count. The CPU number is a second read, so it is taken before and
/// after and the count discarded when they differ.
#[cfg(target_arch = "aarch64")]
#[derive(Clone, Copy, Debug)]
pub struct Cntvct;

#[cfg(target_arch = "aarch64")]
impl Counter for Cntvct {
    const NAME: &'static str = "cntvct";

    #[inline(always)]
    fn read(&self) -> CounterReading {
        between_two_cpu_reads(hourglass_sys::counter::cntvct)
    }
}

/// `CLOCK_MONOTONIC`, one tick a nanosecond: for machines whose own counter can't be trusted.
#[derive(Clone, Copy, Debug)]
pub struct OsMonotonic;

impl Counter for OsMonotonic {
    const NAME: &'static str = "monotonic";

    #[inline(always)]
    fn read(&self) -> CounterReading {
        between_two_cpu_reads(|| now_ns(ClockId::Monotonic))
    }
}

/// Reads `ticks` between two reads of the CPU number until both agree. Two migrations within
/// tens of nanoseconds do not happen, so the loop ends at the first or second turn.
#[inline(always)]
fn between_two_cpu_reads(ticks: impl Fn() -> u64) -> CounterReading {
    let mut before = current_cpu();
    loop {
        let ticks = ticks();
        let after = current_cpu();
        if before == after {
            return CounterReading { ticks, cpu: after };
        }
        before = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_os_clock_does_not_go_backwards() {
        let mut last = OsMonotonic.read().ticks;
        for _ in 0..10_000 {
            let now = OsMonotonic.read().ticks;
            assert!(now >= last);
            last = now;
        }
    }
}
