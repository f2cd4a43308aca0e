//! Sleeping on other systems than Linux: their most precise wait, and the spin hint.

use std::sync::atomic::{AtomicU32, Ordering};

use hourglass_sys::alarm::Alarm;
use hourglass_sys::clock::{ClockId, now_ns};

use super::mechanism::{Mechanism, SchedClass, WakeReason};

/// The longest wait in the kernel before the word is checked, ns: these waits do not end when it changes.
const LOOK_NS: u64 = 5_000_000;
/// What a wait is taken to cost of the CPU where the system does not count that finely, ns.
const WAIT_COSTS_NS: u64 = 10_000;
/// From here on the clock is read without a pause, ns: one is 10 to 60 ns.
const CLOSE_NS: u64 = 64;

/// The calling thread on this machine's kernel.
///
/// macOS waits by `mach_wait_until`, Windows by waitable timers of high resolution, other systems as the
/// standard library sleeps. An interrupt ends a wait in the kernel within 5 ms, not at once. All sleeps
/// of a thread are taken to be of one scheduling class.
#[derive(Clone, Debug, Default)]
pub struct KernelSleep {
    alarm: Alarm,
    waits: u64,
}

impl KernelSleep {
    /// Asks the system for what it needs to wait.
    #[must_use]
    pub fn new() -> KernelSleep {
        KernelSleep::default()
    }

    /// Whether spinning is done at low power: never.
    #[must_use]
    pub fn has_low_power_wait(&self) -> bool {
        false
    }
}

impl Mechanism for KernelSleep {
    fn wait_until(&mut self, word: &AtomicU32, expected: u32, deadline_ns: u64) -> WakeReason {
        self.waits = self.waits.saturating_add(1);
        loop {
            if word.load(Ordering::Acquire) != expected {
                return WakeReason::Changed;
            }
            let left = deadline_ns.saturating_sub(now_ns(ClockId::Monotonic));
            if left == 0 {
                return WakeReason::Timeout;
            }
            self.alarm.wait(left.min(LOOK_NS));
        }
    }

    fn wait_for(&mut self, word: &AtomicU32, expected: u32, length_ns: u64) -> WakeReason {
        let deadline_ns = now_ns(ClockId::Monotonic).saturating_add(length_ns);
        self.wait_until(word, expected, deadline_ns)
    }

    #[inline]
    fn relax(&mut self, left_ns: u64) {
        if left_ns > CLOSE_NS {
            std::hint::spin_loop();
        }
    }

    fn cpu(&mut self) -> u32 {
        self.alarm.cpu()
    }

    fn class(&mut self) -> SchedClass {
        SchedClass::OTHER
    }

    fn preemptions(&mut self) -> u64 {
        0
    }

    fn cpu_time_ns(&mut self) -> u64 {
        self.alarm.cpu_time_ns().unwrap_or(self.waits.saturating_mul(WAIT_COSTS_NS))
    }

    fn slack_ns(&mut self) -> Option<u64> {
        None
    }

    fn set_slack_ns(&mut self, _slack_ns: u64) {}
}
