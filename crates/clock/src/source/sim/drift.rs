//! How a simulated clock's rate departs from its nominal one.

use hourglass_time::Span;

/// One part per billion of a nanosecond: drifts add up without rounding.
pub(super) const ATTOSECONDS_PER_NS: i128 = 1_000_000_000;

/// No drift changes the rate by more than half, so that time goes forward under each of them.
const STEEPEST_PPB: i64 = 500_000_000;

/// Over a day; longer periods would not fit the arithmetic with the steepest drift.
const LONGEST: Span = Span::from_secs(100_000);

/// What the rate of a clock does. Rates in parts per billion: positive is fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drift {
    /// The rate has a constant error: a crystal's tolerance.
    Constant {
        /// The rate.
        ppb: i64,
    },
    /// Ever more off, up to a limit: ageing, warming up.
    Linear {
        /// The rate's change, in every second.
        ppb_per_s: i64,
        /// The error at which the rate stops changing; its sign does not matter.
        limit_ppb: i64,
    },
    /// A triangle wave: day and night, a cooling fan. Over a whole period nothing is lost.
    Periodic {
        /// The rate at the crests.
        ppb: i64,
        /// Length of a period, 4 ns to 100,000 s.
        period: Span,
    },
    /// Another rate after every interval, at random: a virtual machine that moves, a sloppy
    /// discipline. The error stays within half an interval of the steepest rate.
    Stepping {
        /// The steepest rate.
        ppb: i64,
        /// Length of an interval, 4 ns to 100,000 s.
        interval: Span,
    },
}

impl Drift {
    /// This drift, limited to the documented ranges.
    pub(super) fn clamped(self) -> Drift {
        let rate = |ppb: i64| ppb.clamp(-STEEPEST_PPB, STEEPEST_PPB);
        let length = |span: Span| span.clamp(Span::from_nanos(4), LONGEST);
        match self {
            Drift::Constant { ppb } => Drift::Constant { ppb: rate(ppb) },
            Drift::Linear { ppb_per_s, limit_ppb } => {
                Drift::Linear { ppb_per_s: rate(ppb_per_s), limit_ppb: rate(limit_ppb) }
            }
            Drift::Periodic { ppb, period } => {
                Drift::Periodic { ppb: rate(ppb), period: length(period) }
            }
            Drift::Stepping { ppb, interval } => {
                Drift::Stepping { ppb: rate(ppb), interval: length(interval) }
            }
        }
    }

    /// How far the clock is ahead after running for `t_ns`, attoseconds; not for values out of the
    /// ranges documented.
    pub(super) fn error(self, seed: u64, t_ns: i64) -> i128 {
        let t = i128::from(t_ns);
        match self {
            Drift::Constant { ppb } => i128::from(ppb) * t,
            Drift::Linear { ppb_per_s, limit_ppb } => linear(ppb_per_s, limit_ppb, t),
            Drift::Periodic { ppb, period } => periodic(ppb, i128::from(period.nanos()), t),
            Drift::Stepping { ppb, interval } => {
                stepping(seed, ppb, i128::from(interval.nanos()), t)
            }
        }
    }
}

/// The integral of a rate that grows with time until it reaches its limit.
fn linear(ppb_per_s: i64, limit_ppb: i64, t: i128) -> i128 {
    const NS_PER_S: i128 = 1_000_000_000;
    if ppb_per_s == 0 {
        return 0;
    }
    let (slope, limit) = (i128::from(ppb_per_s), i128::from(limit_ppb.abs()));
    let growing = t.min(limit * NS_PER_S / slope.abs());
    let grown = slope * growing * growing / (2 * NS_PER_S);
    grown + limit * slope.signum() * (t - growing)
}

/// The integral of a triangle wave that begins at zero and rises.
fn periodic(ppb: i64, period: i128, t: i128) -> i128 {
    let (crest, phase, quarter) = (i128::from(ppb), t.rem_euclid(period), period / 4);
    let rising = |x: i128| 2 * crest * x * x / period;
    if phase <= quarter {
        rising(phase)
    } else if phase < period - quarter {
        // Falling from crest to trough, symmetric about the middle of the period.
        let from_middle = phase - period / 2;
        crest * period / 4 - rising(from_middle)
    } else {
        rising(period - phase)
    }
}

/// A line between random errors at the interval's ends; the first one is zero.
fn stepping(seed: u64, ppb: i64, interval: i128, t: i128) -> i128 {
    let widest = i128::from(ppb) * interval / 2;
    let error_at = |k: i128| match k {
        0 => 0,
        // The upper half, in parts of 2^31: both signs are as likely, and the product fits.
        _ => (widest * i128::from((random(seed, k as u64) >> 32) as u32 as i32)) >> 31,
    };
    let (k, within) = (t.div_euclid(interval), t.rem_euclid(interval));
    let (from, to) = (error_at(k), error_at(k + 1));
    from + (to - from) * within / interval
}

/// The `index`-th number of the SplitMix64 sequence of `seed` (Steele, Lea, Flood, *Fast
/// Splittable Pseudorandom Number Generators*, OOPSLA 2014).
pub(super) fn random(seed: u64, index: u64) -> u64 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut z = seed.wrapping_add(GOLDEN.wrapping_mul(index.wrapping_add(1)));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn ns(drift: Drift, t_ns: i64) -> i64 {
        (drift.clamped().error(42, t_ns) / ATTOSECONDS_PER_NS) as i64
    }

    #[test]
    fn constant_and_linear() {
        assert_eq!(ns(Drift::Constant { ppb: -2_000 }, 10 * S), -20_000);
        let ageing = Drift::Linear { ppb_per_s: 100, limit_ppb: 1_000 };
        // 100 ppb/s x (4 s)^2 / 2.
        assert_eq!(ns(ageing, 4 * S), 800);
        // 10 s of growing, then 1,000 ppb.
        assert_eq!(ns(ageing, 10 * S), 5_000);
        assert_eq!(ns(ageing, 13 * S), 8_000);
        let other = Drift::Linear { ppb_per_s: -100, limit_ppb: 1_000 };
        assert_eq!(ns(other, 13 * S), -8_000);
        assert_eq!(ns(Drift::Linear { ppb_per_s: 0, limit_ppb: 9 }, 13 * S), 0);
    }

    #[test]
    fn a_triangle_wave_comes_back_to_zero() {
        let wave = Drift::Periodic { ppb: 8_000, period: Span::from_secs(8) };
        let errors: Vec<i64> = (0..=8).map(|s| ns(wave, s * S)).collect();
        // The area under half a wave is crest x half a period / 2.
        assert_eq!(errors, [0, 2_000, 8_000, 14_000, 16_000, 14_000, 8_000, 2_000, 0]);
        assert_eq!(ns(wave, 80 * S), 0);
    }

    #[test]
    fn stepping_changes_its_rate_within_its_bounds() {
        let drift = Drift::Stepping { ppb: 1_000, interval: Span::from_secs(1) };
        assert_eq!(ns(drift, 0), 0);
        let rates: Vec<i64> = (0..200).map(|k| ns(drift, (k + 1) * S) - ns(drift, k * S)).collect();
        assert!(rates.iter().all(|r| r.abs() <= 1_001), "{rates:?}");
        assert!(rates.iter().any(|r| *r > 300) && rates.iter().any(|r| *r < -300));
        // Half an interval has half the error of the whole.
        let whole = ns(drift, S);
        assert!((2 * ns(drift, S / 2) - whole).abs() <= 2);
    }

    /// The reference sequence of SplitMix64 for seed 1234567.
    #[test]
    fn the_generator_is_splitmix64() {
        let first: Vec<u64> = (0..3).map(|k| random(1_234_567, k)).collect();
        assert_eq!(
            first,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn no_drift_turns_time_back() {
        for drift in [
            Drift::Constant { ppb: i64::MIN },
            Drift::Linear { ppb_per_s: i64::MIN, limit_ppb: i64::MIN },
            Drift::Periodic { ppb: i64::MIN, period: Span::from_nanos(4_001) },
            Drift::Stepping { ppb: i64::MIN, interval: Span::from_nanos(4_001) },
        ] {
            let local = |t: i64| i128::from(t) * ATTOSECONDS_PER_NS + drift.clamped().error(1, t);
            assert!((0..20_000).all(|t| local(t + 1) > local(t)), "{drift:?}");
        }
    }
}
