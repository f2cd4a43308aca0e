//! The steps of histograms that can be added exactly: HdrHistogram's, of three significant digits from 1 ns on.
//!
//! Up to 2,048 ns each value has a step of its own; above, each doubling has 1,024 steps of equal width, so that a step
//! is at most a thousandth of its values wide. Every value belongs to one step, whatever the largest one
//! is, so histograms of any two runs have the same steps.

/// Significant digits.
pub const SIGNIFICANT_DIGITS: u32 = 3;

/// Bits of a value that its step keeps: the least with which two steps differ by a thousandth (2,048 > 2 x 1,000).
const KEPT_BITS: u32 = 11;

/// The step of a value: from the first, inclusive, to the second, exclusive. Only the last step of all ends
/// at `u64::MAX`, which it includes.
#[must_use]
pub fn step_of(value: u64) -> (u64, u64) {
    step_of_bits(value, KEPT_BITS)
}

/// The same where a step keeps so many bits of its values, at least 1.
#[must_use]
pub fn step_of_bits(value: u64, kept_bits: u32) -> (u64, u64) {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(kept_bits);
    let low = value >> shift << shift;
    (low, low.saturating_add(1 << shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_one_step() {
        for shift in 0..u64::BITS {
            for value in [1_u64 << shift, (1 << shift) - 1, (1 << shift) + 1, 3 << shift >> 1] {
                let (low, high) = step_of(value);
                assert!(low <= value && (value < high || high == u64::MAX), "{value}");
                assert_eq!(step_of(low), (low, high));
                if high < u64::MAX {
                    assert_eq!(step_of(high - 1), (low, high));
                    assert_eq!(step_of(high).0, high);
                }
            }
        }
        assert_eq!(
            [0, 2_047, 2_048, 2_049].map(|value| step_of(value).0),
            [0, 2_047, 2_048, 2_048]
        );
        assert_eq!(step_of(50_000_000), (49_971_200, 50_003_968));
    }
}
