//! The 128-bit arithmetic behind everything that could leave 64 bits.
//!
//! A count of nanoseconds lies in `MIN..=MAX`, symmetric around zero. What was computed exactly in
//! 128 bits comes back into that range in one of two ways: refused, or held at the ends.

pub(crate) const MAX: i64 = i64::MAX;

/// The smallest count: one above `i64::MIN`, so that every count has its negative.
pub(crate) const MIN: i64 = -MAX;

/// The count, or `None` out of range.
pub(crate) const fn narrow(exact: i128) -> Option<i64> {
    if exact < MIN as i128 || exact > MAX as i128 { None } else { Some(exact as i64) }
}

/// The count, held at the ends of the range.
pub(crate) const fn saturate(exact: i128) -> i64 {
    if exact < MIN as i128 {
        MIN
    } else if exact > MAX as i128 {
        MAX
    } else {
        exact as i64
    }
}

/// The quotient towards minus infinity, or `None` if the divisor is zero.
///
/// Neither argument may be `i128::MIN`; products of two 64-bit numbers never are.
pub(crate) const fn div_floor(dividend: i128, divisor: i128) -> Option<i128> {
    if divisor == 0 {
        return None;
    }
    let (dividend, divisor) = if divisor < 0 { (-dividend, -divisor) } else { (dividend, divisor) };
    Some(dividend.div_euclid(divisor))
}
