//! Nanoseconds per tick as a fixed-point number that a read applies with one multiplication.

/// ns = ticks x mult / 2^shift, in 128 bits, so that no distance overflows
/// (a 64-bit product overflows after 4.3 s at a shift of 32).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slope {
    pub(super) mult: u64,
    /// The shift; at most 63, so that a read masks instead of checking.
    pub(super) shift: u32,
}

/// Relative errors are counted in units of 2^-32 (0.23 parts per billion).
pub(super) const RELATIVE_BITS: u32 = 32;

/// Bits that the multiplier has where the shift allows: 60 leave two for corrections.
const MULT_BITS: i64 = 60;

impl Slope {
    pub(super) const IDENTITY: Slope = Slope { mult: 1 << MULT_BITS, shift: MULT_BITS as u32 };

    /// The slope at which `ticks` pass in `ns`; `None` if either is zero, or a tick shorter than
    /// 2^-63 ns.
    pub(super) fn between(ns: u64, ticks: u64) -> Option<Slope> {
        if ns == 0 || ticks == 0 {
            return None;
        }
        let quotient_bits = i64::from(ticks.leading_zeros()) - i64::from(ns.leading_zeros()) + 1;
        let shift = (MULT_BITS - quotient_bits).clamp(0, 63) as u32;
        let mult = ((u128::from(ns) << shift) + u128::from(ticks) / 2) / u128::from(ticks);
        let mult = u64::try_from(mult).ok().filter(|mult| *mult > 0)?;
        Some(Slope { mult, shift })
    }

    /// Nanoseconds in `ticks`, rounded down, modulo 2^64: what a read does, once it knows that
    /// `ticks` lie within a line's validity.
    #[inline(always)]
    pub(super) fn ns_within(self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.mult)) >> (self.shift & 63)) as u64
    }

    /// Nanoseconds in `ticks`, rounded down, held at `u64::MAX`.
    pub(super) fn ns_floor(self, ticks: u64) -> u64 {
        let ns = (u128::from(ticks) * u128::from(self.mult)) >> (self.shift & 63);
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// Nanoseconds in `ticks`, rounded up, held at `u64::MAX`.
    pub(super) fn ns_ceil(self, ticks: u64) -> u64 {
        self.ns_floor(ticks).saturating_add(1)
    }

    /// The number of ticks that begin within `ns`, held at `u64::MAX`.
    pub(super) fn ticks_floor(self, ns: u64) -> u64 {
        let ticks = (u128::from(ns) << (self.shift & 63)) / u128::from(self.mult.max(1));
        u64::try_from(ticks).unwrap_or(u64::MAX)
    }

    /// The slope that is `by_ns` slower over `over_ns` (faster, if negative); held within
    /// 1/16 of this one.
    pub(super) fn slower(self, by_ns: i64, over_ns: u64) -> Slope {
        let limit = i128::from(self.mult / 16);
        let wanted = i128::from(self.mult) * i128::from(by_ns) / i128::from(over_ns.max(1));
        let mult = i128::from(self.mult) - wanted.clamp(-limit, limit);
        Slope { mult: u64::try_from(mult).unwrap_or(self.mult).max(1), shift: self.shift }
    }

    /// How far `other` is from this one, relative, in units of 2^-32, rounded up.
    pub(super) fn distance(self, other: Slope) -> u64 {
        // Both multipliers have about 60 bits; the wider shift gives up what the other lacks.
        let common = self.shift.min(other.shift);
        let own = self.mult >> (self.shift - common);
        let theirs = other.mult >> (other.shift - common);
        let apart = u128::from(own.abs_diff(theirs)) + 1;
        let relative = (apart << RELATIVE_BITS).div_ceil(u128::from(own.max(1)));
        u64::try_from(relative).unwrap_or(u64::MAX)
    }
}

/// Parts per billion in units of 2^-32, rounded up.
pub(super) fn relative_from_ppb(ppb: u64) -> u64 {
    let relative = (u128::from(ppb) << RELATIVE_BITS).div_ceil(1_000_000_000);
    u64::try_from(relative).unwrap_or(u64::MAX)
}

/// `part` of `whole` in units of 2^-32, rounded up; everything, if there is no whole.
pub(super) fn relative(part: u64, whole: u64) -> u64 {
    if whole == 0 {
        return u64::MAX;
    }
    let relative = (u128::from(part) << RELATIVE_BITS).div_ceil(u128::from(whole));
    u64::try_from(relative).unwrap_or(u64::MAX)
}

/// The error of a length by a relative error: ns, rounded up, limited to `u64::MAX`.
pub(super) fn share_of(length_ns: u64, relative: u64) -> u64 {
    let share = (u128::from(length_ns) * u128::from(relative)) >> RELATIVE_BITS;
    u64::try_from(share).unwrap_or(u64::MAX).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_exact_to_the_nanosecond_at_any_frequency() {
        let day_ns = 86_400_000_000_000u64;
        for hertz in [1_000u64, 24_000_000, 1_000_000_000, 2_300_000_000, 10_000_000_000] {
            let slope = Slope::between(1_000_000_000, hertz).unwrap();
            let ticks = hertz * 86_400;
            assert!(slope.ns_floor(ticks).abs_diff(day_ns) <= 1, "{hertz}");
            assert_eq!(slope.ns_floor(ticks), slope.ns_within(ticks));
            assert!(slope.ticks_floor(day_ns).abs_diff(ticks) <= 1, "{hertz}");
        }
    }

    #[test]
    fn the_ends_do_not_wrap() {
        assert_eq!(Slope::between(0, 1), None);
        assert_eq!(Slope::between(1, 0), None);
        for (ns, ticks) in [(u64::MAX, 1), (1, u64::MAX), (u64::MAX, u64::MAX), (1, 1)] {
            let Some(slope) = Slope::between(ns, ticks) else { continue };
            assert!(slope.shift < 64);
            let _ = slope.ns_floor(u64::MAX);
            let _ = slope.ticks_floor(u64::MAX);
            let _ = slope.slower(i64::MIN, 0);
            let _ = slope.distance(Slope::IDENTITY);
        }
        assert_eq!(share_of(u64::MAX, u64::MAX), u64::MAX);
        assert_eq!(relative(1, 0), u64::MAX);
    }

    #[test]
    fn a_correction_is_a_share_of_the_slope_and_limited() {
        let slope = Slope::IDENTITY.slower(1_000, 1_000_000);
        assert!(slope.ns_floor(1_000_000).abs_diff(999_000) <= 1);
        let faster = Slope::IDENTITY.slower(-1_000, 1_000_000);
        assert!(faster.ns_floor(1_000_000).abs_diff(1_001_000) <= 1);
        let held = Slope::IDENTITY.slower(i64::MAX, 1);
        assert_eq!(held.ns_floor(1_600), 1_500);
    }

    #[test]
    fn distances_are_rounded_up() {
        let slow = Slope::between(1_000_000, 2_300_000).unwrap();
        let fast = Slope::between(1_000_100, 2_300_000).unwrap();
        let ppm_100 = relative_from_ppb(100_000);
        assert!((ppm_100..ppm_100 + 4).contains(&slow.distance(fast)), "{}", slow.distance(fast));
        assert!(slow.distance(slow) <= 2);
    }
}
