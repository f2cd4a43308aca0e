//! Histograms of fixed size that one thread counts in and any thread reads: equal steps within each power of two,
//! as HdrHistogram has them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use hourglass_time::Span;

/// How a histogram divides its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BucketLayout {
    /// Two to the power of this many steps in each power of two.
    steps_log2: u32,
    /// Values from two to the power of this on are in the last step.
    end_log2: u32,
    /// Two to the power of this is the unit.
    unit_log2: u32,
}

/// Lengths, in ticks of the counter: to 1/16, up to 2^44 (an hour and a half at 3 GHz).
pub(crate) const LENGTHS: BucketLayout = BucketLayout { steps_log2: 4, end_log2: 44, unit_log2: 0 };
/// Lost time, in nanoseconds: to 1/8, in units of 1,024 ns, up to 2^42 ns (73 minutes).
pub(crate) const LOSSES: BucketLayout = BucketLayout { steps_log2: 3, end_log2: 42, unit_log2: 10 };

impl BucketLayout {
    /// Number of steps.
    pub(crate) const fn steps(self) -> usize {
        ((self.end_log2 - self.unit_log2 - self.steps_log2 + 1) << self.steps_log2) as usize
    }

    /// The step of a value.
    #[inline]
    pub(crate) fn step(self, value: u64) -> usize {
        let value = value >> self.unit_log2;
        let Some(log2) = value.checked_ilog2().filter(|log2| *log2 >= self.steps_log2) else {
            return value as usize;
        };
        let power = log2 - self.steps_log2;
        let place = (value >> power) as usize; // with the highest bit, which is one whole power
        (((power as usize) << self.steps_log2) + place).min(self.steps() - 1)
    }

    /// The least value of a step.
    pub(crate) fn least(self, step: usize) -> u64 {
        let whole = 1_usize << self.steps_log2;
        let value = match step < whole {
            true => step as u64,
            false => {
                let power = step / whole - 1;
                ((step % whole + whole) as u64) << power
            }
        };
        value << self.unit_log2
    }
}

/// Counts without a value, ready to be counted in.
pub(crate) fn zeros(count: usize) -> Box<[AtomicU64]> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}

/// Adds to a count of which the calling thread is the only writer.
#[inline]
pub(crate) fn add(count: &AtomicU64, more: u64) {
    count.store(count.load(Relaxed).wrapping_add(more), Relaxed);
}

/// A step, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    least_ns: u64,
    most_ns: u64,
    count: u64,
}

/// How often which lengths of time were counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    /// Steps that have counts. In ascending order.
    steps: Vec<Step>,
    greatest_ns: u64,
}

impl Distribution {
    /// Sums histograms of one scale and converts their values to ns; `greatest_ns` is the exact maximum.
    pub(crate) fn of<'a>(
        scale: BucketLayout,
        histograms: impl Iterator<Item = &'a [AtomicU64]>,
        ns: impl Fn(u64) -> u64,
        greatest_ns: u64,
    ) -> Distribution {
        let mut sums = vec![0_u64; scale.steps()];
        for histogram in histograms {
            for (sum, count) in sums.iter_mut().zip(histogram) {
                *sum = sum.wrapping_add(count.load(Relaxed));
            }
        }
        let counted = sums.into_iter().enumerate().filter(|(_, count)| *count > 0);
        let step = |(step, count)| {
            let least_ns = ns(scale.least(step));
            // The last step has no end.
            let last = step + 1 == scale.steps();
            let most_ns = if last { u64::MAX } else { ns(scale.least(step + 1) - 1) };
            Step { least_ns, most_ns: most_ns.min(greatest_ns.max(least_ns)), count }
        };
        Distribution { steps: counted.map(step).collect(), greatest_ns }
    }

    /// How many were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.steps.iter().map(|step| step.count).sum()
    }

    /// The greatest.
    #[must_use]
    pub fn greatest(&self) -> Span {
        Span::saturating_from_nanos(self.greatest_ns)
    }

    /// A length that `ppm` of a million do not exceed: never too low, and too high by less than the width of its step,
    /// 1/16 of span lengths, 1/8 of lost time and about a microsecond. Zero if nothing was counted.
    #[must_use]
    pub fn quantile(&self, ppm: u32) -> Span {
        let rank = (u128::from(self.count()) * u128::from(ppm.min(1_000_000))).div_ceil(1_000_000);
        let mut seen = 0_u128;
        let found = self.steps.iter().find(|step| {
            seen += u128::from(step.count);
            seen >= rank
        });
        found.map_or(Span::ZERO, |step| Span::saturating_from_nanos(step.most_ns))
    }

    /// Each step that has counts: its least length, and how many there are. For histograms of other tools.
    pub fn steps(&self) -> impl Iterator<Item = (Span, u64)> + '_ {
        self.steps.iter().map(|step| (Span::saturating_from_nanos(step.least_ns), step.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_follow_each_other_and_hold_their_values() {
        for scale in [LENGTHS, LOSSES] {
            for step in 0..scale.steps() {
                let least = scale.least(step);
                assert_eq!(scale.step(least), step);
                assert!(step == 0 || scale.step(least - 1) == step - 1, "{scale:?} {step}");
            }
            assert_eq!(scale.step(u64::MAX), scale.steps() - 1);
        }
        // By hand: 1000 = 512 + 488, in steps of 32.
        assert_eq!(LENGTHS.least(LENGTHS.step(1_000)), 992);
        assert_eq!(LOSSES.least(LOSSES.step(1_023)), 0);
    }

    #[test]
    fn quantiles_are_those_of_the_counts() {
        let counts = zeros(LENGTHS.steps());
        for (value, times) in [(10, 50), (1_000, 49), (70_000, 1)] {
            (0..times).for_each(|_| add(&counts[LENGTHS.step(value)], 1));
        }
        let found = Distribution::of(LENGTHS, [&counts[..]].into_iter(), |ticks| ticks, 70_000);
        let at = |ppm| found.quantile(ppm).nanos();
        assert_eq!((found.count(), at(500_000), at(500_001)), (100, 10, 1_023));
        assert_eq!((at(990_000), at(990_001), at(1_000_000)), (1_023, 70_000, 70_000));
        assert_eq!(Distribution::default().quantile(500_000), Span::ZERO);
    }

    /// The bug: the median of ten spans of 12 ms and more was reported as 11.98 ms.
    #[test]
    fn quantiles_are_never_too_low_and_too_high_by_a_step_at_most() {
        for (scale, width) in [(LENGTHS, 16), (LOSSES, 8)] {
            for seed in 0..200_u64 {
                let value = |at: u64| {
                    (seed * 7_919 + 12_000_000 + at * at * (seed * seed + 1) * 977) % (1 << 41)
                };
                let mut values: Vec<u64> = (0..31).map(value).collect();
                let counts = zeros(scale.steps());
                values.iter().for_each(|value| add(&counts[scale.step(*value)], 1));
                values.sort_unstable();
                let found = Distribution::of(scale, [&counts[..]].into_iter(), |ns| ns, values[30]);
                for (rank, exact) in values.iter().enumerate() {
                    let ppm = u32::try_from((rank + 1) * 1_000_000 / 31).unwrap();
                    let quantile = found.quantile(ppm).nanos() as u64;
                    assert!(
                        quantile >= *exact && quantile <= exact + exact / width + 1_024,
                        "{seed}: {quantile} of {exact}"
                    );
                }
            }
        }
    }
}
