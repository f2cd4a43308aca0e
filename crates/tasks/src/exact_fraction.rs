//! Utilisations compared exactly, whatever their denominators.
//!
//! Owns: comparisons of sums and products of fractions of 64-bit numbers. First with 64 binary
//! digits behind the point, which nearly always decides; else with numbers of any length. Must not:
//! use floating point.

use std::cmp::Ordering;

/// A natural number of any length, in digits of 64 bits, the least first, without leading zeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BigNatural(Vec<u64>);

impl BigNatural {
    pub fn from_u64(value: u64) -> BigNatural {
        BigNatural(if value == 0 { Vec::new() } else { vec![value] })
    }

    pub fn times(&self, factor: &BigNatural) -> BigNatural {
        let mut digits = vec![0u64; self.0.len() + factor.0.len()];
        for (low, a) in self.0.iter().enumerate() {
            let mut carry = 0u128;
            for (high, b) in factor.0.iter().enumerate() {
                let sum = u128::from(*a) * u128::from(*b) + u128::from(digits[low + high]) + carry;
                digits[low + high] = low_half(sum);
                carry = sum >> 64;
            }
            digits[low + factor.0.len()] = low_half(carry);
        }
        BigNatural(digits).trimmed()
    }

    pub fn plus(&self, other: &BigNatural) -> BigNatural {
        let mut digits = Vec::with_capacity(self.0.len().max(other.0.len()) + 1);
        let mut carry = 0u128;
        for place in 0..self.0.len().max(other.0.len()) {
            let digit = |number: &BigNatural| u128::from(number.0.get(place).copied().unwrap_or(0));
            let sum = digit(self) + digit(other) + carry;
            digits.push(low_half(sum));
            carry = sum >> 64;
        }
        digits.push(low_half(carry));
        BigNatural(digits).trimmed()
    }

    pub fn of_wide(value: u128) -> BigNatural {
        BigNatural(vec![low_half(value), low_half(value >> 64)]).trimmed()
    }

    pub fn power(&self, exponent: usize) -> BigNatural {
        (0..exponent).fold(BigNatural::from_u64(1), |product, _| product.times(self))
    }

    fn trimmed(mut self) -> BigNatural {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
        self
    }

    pub fn compare(&self, other: &BigNatural) -> Ordering {
        let by_digits = || self.0.iter().rev().cmp(other.0.iter().rev());
        self.0.len().cmp(&other.0.len()).then_with(by_digits)
    }
}

#[derive(Clone, Debug)]
pub struct FractionSum {
    numerator: BigNatural,
    denominator: BigNatural,
}

impl FractionSum {
    pub fn zero() -> FractionSum {
        FractionSum { numerator: BigNatural::from_u64(0), denominator: BigNatural::from_u64(1) }
    }

    /// Adds `above / below`, which is not a division by 0.
    pub fn add(&mut self, above: &BigNatural, below: &BigNatural) {
        self.numerator = self.numerator.times(below).plus(&self.denominator.times(above));
        self.denominator = self.denominator.times(below);
    }

    pub fn add_sum(&mut self, other: &FractionSum) {
        self.add(&other.numerator, &other.denominator);
    }

    pub fn compare(&self, whole: u64) -> Ordering {
        self.numerator.compare(&self.denominator.times(&BigNatural::from_u64(whole)))
    }
}

fn low_half(value: u128) -> u64 {
    (value & u128::from(u64::MAX)) as u64
}

/// One, with 64 binary digits behind the point.
const ONE: u128 = 1 << 64;

/// `part / whole` rounded down to 64 binary digits behind the point. `whole` is not 0.
pub fn share_floor(part: u64, whole: u64) -> u128 {
    (u128::from(part) << 64) / u128::from(whole)
}

/// 2^64 / `whole`, rounded down or one less. `whole` is not 0. What is divided by it often is multiplied with
/// this instead: see [`high_half`].
#[inline]
pub fn inverse(whole: u64) -> u64 {
    u64::MAX / whole
}

/// `a * b / 2^64`, rounded down. Where `b` is the [`inverse`] of a number, this is `a` by that number, rounded
/// down, or one less.
#[inline]
pub fn high_half(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> u64::BITS) as u64
}

/// Compares the sum of the shares `(part, whole)` with the fraction `limit`. No denominator is 0.
pub fn compare_shares(
    shares: impl Iterator<Item = (u64, u64)> + Clone,
    limit: (u64, u64),
) -> Ordering {
    // Up to 2^63 shares of up to 2^64 with 64 digits behind the point do not fit; saturate.
    let mut low = 0u128;
    let mut count = 0u128;
    for (part, whole) in shares.clone() {
        low = low.saturating_add(share_floor(part, whole));
        count += 1;
    }
    let limit_low = share_floor(limit.0, limit.1);
    if low > limit_low {
        return if low > limit_low + 1 { Ordering::Greater } else { sum_exactly(shares, limit) };
    }
    // The true sum is below low + count.
    if low + count <= limit_low { Ordering::Less } else { sum_exactly(shares, limit) }
}

fn sum_exactly(shares: impl Iterator<Item = (u64, u64)>, limit: (u64, u64)) -> Ordering {
    let (sum, whole) = exact_sum(shares);
    sum.times(&BigNatural::from_u64(limit.1)).compare(&whole.times(&BigNatural::from_u64(limit.0)))
}

/// The sum of fractions as numerator and denominator.
pub fn exact_sum(shares: impl Iterator<Item = (u64, u64)>) -> (BigNatural, BigNatural) {
    let start = (BigNatural::from_u64(0), BigNatural::from_u64(1));
    shares.fold(start, |(numerator, denominator), (part, whole)| {
        let whole = BigNatural::from_u64(whole);
        let added = denominator.times(&BigNatural::from_u64(part));
        (numerator.times(&whole).plus(&added), denominator.times(&whole))
    })
}

/// The greatest common divisor; the other number if one is 0.
pub fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A lower bound on the least `x` with `x = base + x * used`, where `used` has 64 binary digits
/// behind the point and is rounded down. `None` if all is used, or the bound has over 64 bits.
pub fn stretched(base: u64, used: u128) -> Option<u64> {
    let free = ONE.checked_sub(used).filter(|free| *free > 0)?;
    // base << 64 divided by free, which is at most 2^64.
    u64::try_from((u128::from(base) << 64) / free).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cases at both ends, and where the product is just too small.
    #[test]
    fn the_inverse_divides_but_for_one() {
        let wholes = [1, 2, 3, 7, 641, 1 << 32, 999_999_937, u64::MAX / 3, u64::MAX - 1, u64::MAX];
        for whole in wholes {
            for times in [0, 1, 2, 3, u64::MAX / whole] {
                for step in [0, 1, whole / 2, whole - 1] {
                    let a = whole.saturating_mul(times).saturating_add(step);
                    let less = a / whole - high_half(a, inverse(whole));
                    assert!(less <= 1, "{a} / {whole}");
                }
            }
        }
    }
}
