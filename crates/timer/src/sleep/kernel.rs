//! Sleeping on this machine: futexes, and the processor's own ways to wait a moment.

use std::sync::atomic::AtomicU32;

use hourglass_sys::clock::{ClockId, current_cpu, now_ns};
#[cfg(target_arch = "aarch64")]
use hourglass_sys::counter::cntvct as ticks;
#[cfg(target_arch = "x86_64")]
use hourglass_sys::counter::tsc as ticks;
use hourglass_sys::{cpu_relax, futex, sched, thread, time_slice};

use super::mechanism::{LAST_NS, Mechanism, SchedClass, WakeReason, low_power_slice_ns};

/// Binary digits after the point in ticks per nanosecond.
const FRACTION: u32 = 16;
/// From here on the clock is read without a pause, ns: one is 10 to 60 ns.
const CLOSE_NS: u64 = 64;

/// The calling thread on this machine's kernel.
///
/// Waits are futex waits on `CLOCK_MONOTONIC`. A moment of spinning is TPAUSE where CPUID states
/// WAITPKG, WFET on aarch64 where the kernel states FEAT_WFxT, else the processor's spin hint. The
/// counter's rate for the former is taken from the clock across kernel waits; until one was long
/// enough, and where the counter disagrees, the hint serves. In the last microseconds of a spin the
/// kernel is asked not to preempt the thread, where it can be (time-slice extension, Linux 7.0).
#[derive(Clone, Debug)]
pub struct KernelSleep {
    low_power: bool,
    /// Counter and clock at the last [`Mechanism::clock_says`].
    last: Option<(u64, u64)>,
    /// Ticks per ns, with [`FRACTION`] digits after the point; 0 while unknown.
    rate: u64,
    /// Whether this thread may ask for a longer time slice; what it was at the last wait.
    extends: bool,
    /// The kernel has extensions, but not for us.
    refused: bool,
    asked: bool,
}

impl KernelSleep {
    /// Asks the processor what it has (CPUID: some us in a virtual machine).
    #[must_use]
    pub fn new() -> KernelSleep {
        let low_power = has_low_power_wait();
        KernelSleep { low_power, last: None, rate: 0, extends: false, refused: false, asked: false }
    }

    /// Whether spinning is done by TPAUSE or WFET once the counter's rate is known.
    #[must_use]
    pub fn has_low_power_wait(&self) -> bool {
        self.low_power
    }
}

impl Default for KernelSleep {
    fn default() -> Self {
        KernelSleep::new()
    }
}

impl Mechanism for KernelSleep {
    fn spin_follows(&mut self) {
        // Each time, since a sleeper may go to another thread.
        if !self.refused {
            self.extends = time_slice::enable();
            self.refused = !self.extends && time_slice::is_available();
        }
    }

    #[inline]
    fn wait_until(&mut self, word: &AtomicU32, expected: u32, deadline_ns: u64) -> WakeReason {
        futex::wait_until(word, expected, deadline_ns).unwrap_or(WakeReason::Timeout)
    }

    fn wait_for(&mut self, word: &AtomicU32, expected: u32, length_ns: u64) -> WakeReason {
        futex::wait_for(word, expected, length_ns).unwrap_or(WakeReason::Timeout)
    }

    #[inline]
    fn relax(&mut self, left_ns: u64) {
        if self.extends && !self.asked && left_ns <= LAST_NS {
            self.asked = true;
            time_slice::ask();
        }
        let slice_ns = if self.rate > 0 { low_power_slice_ns(left_ns) } else { None };
        if let Some(slice_ns) = slice_ns {
            low_power_wait((slice_ns * self.rate) >> FRACTION);
        } else if left_ns > CLOSE_NS {
            std::hint::spin_loop();
        }
    }

    #[inline]
    fn spin_ended(&mut self) {
        if self.asked {
            self.asked = false;
            let _ = time_slice::withdraw();
        }
    }

    #[inline]
    fn cpu(&mut self) -> u32 {
        current_cpu()
    }

    fn class(&mut self) -> SchedClass {
        SchedClass(sched::policy_number().unwrap_or(0))
    }

    fn preemptions(&mut self) -> u64 {
        thread::counters().involuntary
    }

    fn cpu_time_ns(&mut self) -> u64 {
        now_ns(ClockId::ThreadCpu)
    }

    fn slack_ns(&mut self) -> Option<u64> {
        thread::timer_slack()
    }

    fn set_slack_ns(&mut self, slack_ns: u64) {
        // Refused only where there is no such call.
        let _ = thread::set_timer_slack(slack_ns);
    }

    fn clock_says(&mut self, now_ns: u64) {
        if self.low_power {
            let now = (counter(), now_ns);
            if let Some(rate) = self.last.and_then(|last| rate(last, now)) {
                self.rate = rate;
            }
            self.last = Some(now);
        }
    }
}

/// Ticks per nanosecond between two readings; `None` if they are too close for it to be right to a
/// percent, 0 if no counter does that.
fn rate((ticks, ns): (u64, u64), (later_ticks, later_ns): (u64, u64)) -> Option<u64> {
    /// A reading may be some 100 ns off.
    const SHORTEST_NS: u64 = 20_000;
    /// 100 GHz.
    const HIGHEST: u64 = 100 << FRACTION;
    let passed = later_ns.checked_sub(ns).filter(|passed| *passed >= SHORTEST_NS)?;
    let counted = u128::from(later_ticks.wrapping_sub(ticks)) << FRACTION;
    let rate = u64::try_from(counted / u128::from(passed)).unwrap_or(0);
    Some(if rate <= HIGHEST { rate } else { 0 })
}

#[cfg(target_arch = "x86_64")]
fn has_low_power_wait() -> bool {
    // Without a readable TSC its end cannot be given.
    cpu_relax::has_tpause() && hourglass_sys::counter::has_tsc_with_cpu()
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn low_power_wait(length: u64) {
    cpu_relax::tpause(ticks().wrapping_add(length));
}

#[cfg(target_arch = "aarch64")]
fn has_low_power_wait() -> bool {
    cpu_relax::has_wfet()
}

#[cfg(target_arch = "aarch64")]
#[inline]
fn low_power_wait(length: u64) {
    cpu_relax::wfet(ticks().wrapping_add(length));
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn counter() -> u64 {
    ticks()
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn has_low_power_wait() -> bool {
    false
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn low_power_wait(_length: u64) {
    std::hint::spin_loop();
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn counter() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_comes_from_two_readings() {
        let start = (u64::MAX - 99, 1_000_000);
        assert_eq!(rate(start, (45_900, 1_019_999)), None);
        // 2.3 GHz over 20 us, the counter wrapping in between.
        assert_eq!(rate(start, (45_900, 1_020_000)), Some((23 << FRACTION) / 10));
        // A clock that went back, a counter that did.
        assert_eq!(rate((0, 5), (100, 4)), None);
        assert_eq!(rate((100, 0), (0, 1_000_000)), Some(0));
    }

    #[test]
    fn a_moment_is_short() {
        let mut kernel = KernelSleep::new();
        for left in [0, 1, 100, 1_000, 1_000_000, u64::MAX] {
            let best = (0..100).map(|_| {
                let begun = now_ns(ClockId::Monotonic);
                kernel.relax(left);
                now_ns(ClockId::Monotonic) - begun
            });
            assert!(best.min().is_some_and(|ns| ns < 5_000));
        }
    }
}
