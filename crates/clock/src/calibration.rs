//! Calibration of a counter against `CLOCK_MONOTONIC`.

use hourglass_sys::clock::{ClockId, now_ns};

use crate::{Counter, Rate};

/// Brackets tried for one pair; the narrowest wins. 64 took the error below 0.1 ppm over 20 ms.
const BRACKETS: u32 = 64;

/// The counter and `CLOCK_MONOTONIC` at one moment, known to within a bracket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The counter, in the middle of the bracket.
    pub ticks: u64,
    /// `CLOCK_MONOTONIC`, ns.
    pub monotonic_ns: u64,
    /// How far `ticks` may be off: half the width of the bracket and a tick, since a counter that
    /// reads n may be about to read n + 1.
    pub half_width_ticks: u64,
}

impl Pair {
    /// Reads (counter, clock, counter) several times and keeps the narrowest bracket; about 4 us.
    ///
    /// Brackets that began and ended on different CPUs, or ran backwards, do not count; if all
    /// did, the last one stands with the whole of its width.
    #[must_use]
    pub fn read(counter: &impl Counter) -> Pair {
        let mut best: Option<Pair> = None;
        for attempt in 1..=BRACKETS {
            let before = counter.read();
            let monotonic_ns = now_ns(ClockId::Monotonic);
            let after = counter.read();
            let width = after.ticks.saturating_sub(before.ticks);
            let pair = Pair {
                ticks: before.ticks + width / 2,
                monotonic_ns,
                half_width_ticks: width.div_ceil(2).saturating_add(1),
            };
            let sound = before.cpu == after.cpu && after.ticks >= before.ticks;
            let narrowest = best.is_none_or(|b| pair.half_width_ticks < b.half_width_ticks);
            if (sound && narrowest) || (attempt == BRACKETS && best.is_none()) {
                best = Some(pair);
            }
        }
        // The last attempt fills an empty `best`.
        best.unwrap_or(Pair { ticks: 0, monotonic_ns: 0, half_width_ticks: u64::MAX })
    }
}

/// A counter's rate against `CLOCK_MONOTONIC` between two pairs, with a bound on its error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calibration {
    /// Nanoseconds per tick.
    pub rate: Rate,
    /// Time between the pairs, ns.
    pub window_ns: u64,
    /// Bound on the relative error of `rate`, parts per billion: both half-widths, and a nanosecond
    /// of the clock, over the window.
    pub rate_error_ppb: u64,
    /// The wider half-width of the two pairs, ns rounded up.
    pub bracket_ns: u64,
}

impl Calibration {
    /// The rate between two pairs of the same counter; `None` if no time passed between them.
    #[must_use]
    pub fn between(first: Pair, second: Pair) -> Option<Calibration> {
        let ticks = second.ticks.checked_sub(first.ticks)?;
        let window_ns = second.monotonic_ns.checked_sub(first.monotonic_ns)?;
        let rate = Rate::from_ratio(window_ns, ticks)?;
        let uncertain = u128::from(first.half_width_ticks) + u128::from(second.half_width_ticks);
        let by_ticks = (uncertain * 1_000_000_000).div_ceil(u128::from(ticks));
        // Both readings of the clock are rounded down.
        let rate_error_ppb = by_ticks + u128::from(1_000_000_000u64.div_ceil(window_ns));
        let bracket = first.half_width_ticks.max(second.half_width_ticks);
        Some(Calibration {
            rate,
            window_ns,
            rate_error_ppb: u64::try_from(rate_error_ppb).unwrap_or(u64::MAX),
            bracket_ns: rate.ns_floor(bracket).unsigned_abs() + 1,
        })
    }

    /// The least number of ticks that are at least `ns` whatever the error within its bound.
    #[must_use]
    pub fn ticks_at_least(&self, ns: u64) -> u64 {
        let error = u128::from(ns) * u128::from(self.rate_error_ppb);
        let margin = u64::try_from(error.div_ceil(1_000_000_000)).unwrap_or(u64::MAX);
        self.rate.ticks_ceil(ns.saturating_add(margin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OsMonotonic;

    fn pair(ticks: u64, monotonic_ns: u64) -> Pair {
        Pair { ticks, monotonic_ns, half_width_ticks: 23 }
    }

    #[test]
    fn the_bound_holds_the_true_rate() {
        // True rate 2.3 ticks a ns; each pair is off by its half-width, in opposite directions.
        let wrong = Calibration::between(pair(23, 0), pair(46_000_000 - 23, 20_000_000)).unwrap();
        let off_ppb = (wrong.rate.hertz() / 2.3e9 - 1.0).abs() * 1e9;
        assert!(off_ppb <= wrong.rate_error_ppb as f64, "{off_ppb} > {}", wrong.rate_error_ppb);
        // With the margin the amount is never short on the true rate.
        assert!(wrong.ticks_at_least(3_000_000) >= 6_900_000);
    }

    /// A counter of 24 MHz read in no time, and pairs at the worst moments of its ticks: the first
    /// just before the count moves, the second just after.
    #[test]
    fn the_bound_allows_for_a_tick_of_a_slow_counter() {
        let at = |ticks, monotonic_ns| Pair { ticks, monotonic_ns, half_width_ticks: 1 };
        let found = Calibration::between(at(0, 41), at(24_000, 1_000_000)).unwrap();
        let off_ppb = (found.rate.hertz() / 24e6 - 1.0).abs() * 1e9;
        assert!(off_ppb > 40_000.0 && off_ppb <= found.rate_error_ppb as f64, "{found:?}");
        let still = Pair::read(&CoarseCounter);
        assert!(still.half_width_ticks >= 1, "{still:?}");
    }

    /// A counter that does not move while it is bracketed.
    struct CoarseCounter;

    impl Counter for CoarseCounter {
        const NAME: &'static str = "coarse";

        fn read(&self) -> hourglass_sys::counter::CounterReading {
            hourglass_sys::counter::CounterReading { ticks: 7, cpu: 0 }
        }
    }

    #[test]
    fn no_time_no_rate() {
        assert_eq!(Calibration::between(pair(5, 5), pair(5, 5)), None);
        assert_eq!(Calibration::between(pair(9, 9), pair(5, 5)), None);
    }

    #[test]
    fn the_os_clock_against_itself_is_one() {
        let first = Pair::read(&OsMonotonic);
        std::thread::sleep(std::time::Duration::from_millis(5));
        let found = Calibration::between(first, Pair::read(&OsMonotonic)).unwrap();
        let off_ppb = (found.rate.hertz() / 1e9 - 1.0).abs() * 1e9;
        assert!(off_ppb <= found.rate_error_ppb as f64, "{off_ppb} > {}", found.rate_error_ppb);
    }
}
