//! The forms in which a sleep is asked for: the thesis' (section 5.3.2) and the standard library's.

use std::ops::Deref;
use std::time::Duration;

use hourglass_clock::Clock;
use hourglass_clock::timekeeping::{Ticks, Timebase};
use hourglass_time::{Instant, Monotonic, Span};

use super::kernel_wait::SleepTarget;
use super::mechanism::Mechanism;
use super::outcome::SleepOutcome;
use super::sleeper::Sleeper;

impl<B: Timebase, C: Deref<Target = Clock<B>>, M: Mechanism> Sleeper<C, M> {
    /// Sleeps until an absolute time (the thesis' `SleepTo`). Times before the clock's zero have
    /// passed.
    #[inline(always)]
    pub fn sleep_until(&mut self, deadline: impl Into<Instant<Monotonic>>) -> SleepOutcome {
        let deadline_ns = deadline.into().since_zero().nanos_or_zero();
        self.sleep_to(SleepTarget::Time(deadline_ns))
    }

    /// Sleeps for `length` from now; not at all for spans that are not positive.
    #[inline(always)]
    pub fn sleep_for(&mut self, length: Span) -> SleepOutcome {
        self.sleep_to(SleepTarget::Passed(length.nanos_or_zero()))
    }

    /// Sleeps as `std::thread::sleep` does; lengths beyond 584 years are held at that.
    #[inline(always)]
    pub fn sleep(&mut self, length: Duration) -> SleepOutcome {
        let length_ns = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        self.sleep_to(SleepTarget::Passed(length_ns))
    }

    /// Sleeps this many nanoseconds from now (the thesis' `NSecSleep`).
    #[inline(always)]
    pub fn sleep_ns(&mut self, length_ns: u64) -> SleepOutcome {
        self.sleep_to(SleepTarget::Passed(length_ns))
    }

    /// Sleeps this many microseconds from now (the thesis' `USecSleep`).
    #[inline(always)]
    pub fn sleep_us(&mut self, length_us: u64) -> SleepOutcome {
        self.sleep_to(SleepTarget::Passed(length_us.saturating_mul(1_000)))
    }

    /// Sleeps until the clock's counter has counted `count` ticks from now (the thesis'
    /// `TicsSleep`), and never less.
    ///
    /// The counter has a rate of its own, so that a long sleep goes to the kernel more than once.
    /// If the clock leaves its counter meanwhile, the rest is slept by time. The deadline in the
    /// outcome is the time at which the ticks were last expected to be over.
    pub fn sleep_ticks(&mut self, count: u64) -> SleepOutcome {
        /// Up to here counter and clock may differ in rate by 500 ppm without any harm: 0.5 us.
        const SHORT_NS: u64 = 1_000_000;
        /// The part of a long sleep that is left for the next round, and the least of it: the kernel
        /// wakes late.
        const PART: u64 = 1_000;
        const LEAST_LEFT_NS: u64 = SHORT_NS / 2;
        let begun = self.clock.ticks();
        let start = self.now_ns();
        let by_time = start.saturating_add(self.ticks_ns(begun, count).unwrap_or(0));
        let mut kernel_ns = 0;
        loop {
            let now = self.now_ns();
            let left = self.ticks_left(begun, count).and_then(|left| self.ticks_ns(begun, left));
            let left = left.unwrap_or(by_time.saturating_sub(now));
            if left > SHORT_NS {
                let ahead = left - (left / PART).max(LEAST_LEFT_NS);
                let uninterrupted = self.wait_coarsely(now.saturating_add(ahead));
                kernel_ns += self.now_ns().saturating_sub(now);
                if uninterrupted {
                    continue;
                }
            }
            let mut slept = self.sleep_to(SleepTarget::Time(now.saturating_add(left)));
            slept.kernel_ns = slept.kernel_ns.saturating_add(kernel_ns);
            self.count_out(begun, count, &mut slept);
            return slept;
        }
    }

    /// Spins for the ticks that the time slept was short of.
    fn count_out(&mut self, begun: Ticks, count: u64, slept: &mut SleepOutcome) {
        let woke = slept.woke_ns;
        while !slept.interrupted && self.ticks_left(begun, count).is_some_and(|left| left > 0) {
            self.mechanism.relax(1);
            slept.woke_ns = self.now_ns();
            slept.interrupted = self.interrupter().is_set();
        }
        slept.spin_ns += slept.woke_ns - woke;
    }

    /// How many ticks are left to count; `None` if the counter is not the same any more.
    fn ticks_left(&self, begun: Ticks, count: u64) -> Option<u64> {
        let now = self.clock.ticks();
        let counted = now.count.wrapping_sub(begun.count);
        // A counter that went back has counted nothing.
        let counted = if counted > u64::MAX / 2 { 0 } else { counted };
        (now.epoch == begun.epoch).then(|| count.saturating_sub(counted))
    }

    /// How long `count` ticks take, ns; `None` if the counter is not the same any more.
    fn ticks_ns(&self, begun: Ticks, count: u64) -> Option<u64> {
        // Longer differences than 2^63 would be taken for negative ones.
        let count = count.min(u64::MAX / 2);
        let end = Ticks { count: begun.count.wrapping_add(count), epoch: begun.epoch };
        let elapsed = self.clock.elapsed(begun, end).ok()?;
        u64::try_from(elapsed.ns).ok()
    }
}
