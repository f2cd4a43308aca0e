//! Conversion between ticks and nanoseconds by a multiplication and a shift.

/// Nanoseconds per tick as a fixed-point number: ns = ticks x mult / 2^shift.
///
/// All arithmetic is in 128 bits, so that no distance overflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    mult: u64,
    shift: u32,
}

/// The finest fixed point tried; a tick of 1 ns or less leaves 62 bits behind the point.
const FINEST_SHIFT: u32 = 62;

impl Rate {
    /// The multiplier.
    #[must_use]
    pub const fn mult(self) -> u64 {
        self.mult
    }

    /// The shift, bits.
    #[must_use]
    pub const fn shift(self) -> u32 {
        self.shift
    }

    /// One tick a nanosecond.
    pub const NANOSECONDS: Rate = Rate { mult: 1 << FINEST_SHIFT, shift: FINEST_SHIFT };

    /// The rate at which `ticks` pass in `ns`; `None` if either is zero or a tick would be longer
    /// than 2^61 ns.
    #[must_use]
    pub fn from_ratio(ns: u64, ticks: u64) -> Option<Rate> {
        if ns == 0 || ticks == 0 {
            return None;
        }
        (0..=FINEST_SHIFT).rev().find_map(|shift| {
            let scaled = u128::from(ns) << shift;
            let mult = (scaled + u128::from(ticks) / 2) / u128::from(ticks);
            let fits = mult > 0 && mult < 1 << 63;
            fits.then_some(Rate { mult: mult as u64, shift })
        })
    }

    /// Nanoseconds in `ticks`, rounded down, held at `i64::MAX`.
    #[must_use]
    pub fn ns_floor(self, ticks: u64) -> i64 {
        let ns = (u128::from(ticks) * u128::from(self.mult)) >> self.shift;
        i64::try_from(ns).unwrap_or(i64::MAX)
    }

    /// Picoseconds in `ticks`, rounded down, held at `u64::MAX`.
    #[must_use]
    pub fn ps_floor(self, ticks: u64) -> u64 {
        // 2^53 ticks are weeks; beyond them the last digits of a picosecond do not matter.
        let product = u128::from(ticks) * u128::from(self.mult);
        let ps = match product.checked_mul(1_000) {
            Some(exact) => exact >> self.shift,
            None => (product >> self.shift).saturating_mul(1_000),
        };
        u64::try_from(ps).unwrap_or(u64::MAX)
    }

    /// The least number of ticks that are at least `ns`, held at `u64::MAX`.
    #[must_use]
    pub fn ticks_ceil(self, ns: u64) -> u64 {
        let scaled = u128::from(ns) << self.shift;
        u64::try_from(scaled.div_ceil(u128::from(self.mult))).unwrap_or(u64::MAX)
    }

    /// Ticks per second, for people.
    #[must_use]
    pub fn hertz(self) -> f64 {
        1e9 * 2f64.powi(self.shift as i32) / self.mult as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2.3 GHz over a day is exact to the nanosecond: 128-bit products, unlike the 64-bit ones
    /// that overflow after 4.3 s at a shift of 32.
    #[test]
    fn a_day_at_2300_mhz() {
        let rate = Rate::from_ratio(1_000_000_000, 2_300_000_000).unwrap();
        let day_ns = 86_400_000_000_000u64;
        let ticks = day_ns / 10 * 23;
        assert!((rate.ns_floor(ticks) - day_ns as i64).abs() <= 1);
        assert!(rate.ticks_ceil(day_ns).abs_diff(ticks) <= 1);
    }

    #[test]
    fn round_trips_never_fall_short() {
        for (ns, ticks) in [(1_000, 62), (7, 3), (1_000_000_007, 2_299_999_917), (5, 5)] {
            let rate = Rate::from_ratio(ns, ticks).unwrap();
            for wanted in [0, 1, 2, 999, 1_000_000, 3_000_000, 123_456_789_012] {
                let back = rate.ns_floor(rate.ticks_ceil(wanted));
                assert!(back + 1 >= wanted as i64, "{wanted} ns became {back}");
            }
        }
    }

    #[test]
    fn the_ends_do_not_wrap() {
        let slow = Rate::from_ratio(u64::MAX, 5).unwrap();
        assert_eq!(slow.ns_floor(u64::MAX), i64::MAX);
        assert_eq!(slow.ps_floor(u64::MAX), u64::MAX);
        let fast = Rate::from_ratio(1, 1 << 40).unwrap();
        assert_eq!(fast.ticks_ceil(u64::MAX), u64::MAX);
        assert_eq!(Rate::from_ratio(0, 1), None);
        assert_eq!(Rate::from_ratio(1, 0), None);
    }

    #[test]
    fn picoseconds_are_finer_than_ticks() {
        let rate = Rate::from_ratio(1_000_000_000, 2_300_000_000).unwrap();
        assert!((9_999..=10_000).contains(&rate.ps_floor(23)));
        assert_eq!(Rate::NANOSECONDS.ps_floor(97), 97_000);
    }
}
