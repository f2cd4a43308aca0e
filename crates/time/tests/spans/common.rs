//! Values worth trying, and 128-bit arithmetic that is slow and obviously right.
#![allow(dead_code, reason = "each test file uses some of it")]

use hourglass_time::Span;
use proptest::prelude::*;

/// The largest number of nanoseconds in a span.
pub const MAX: i128 = i64::MAX as i128;

pub const MIN: i128 = -MAX;

/// Whether a span holds it.
pub fn within(nanos: i128) -> bool {
    (MIN..=MAX).contains(&nanos)
}

/// Spans of every size: any, a few nanoseconds, close to a whole unit, close to the ends.
pub fn spans() -> impl Strategy<Value = Span> {
    let near = -3_i64..=3;
    let units = prop::sample::select(vec![1_000_i64, 1_000_000, 1_000_000_000, 86_400_000_000_000]);
    prop_oneof![
        any::<i64>(),
        near.clone(),
        (units, -1_000_i64..=1_000, near.clone()).prop_map(|(unit, n, off)| unit * n + off),
        (0_u32..63, near.clone()).prop_map(|(bits, off)| (1_i64 << bits).saturating_add(off)),
        (0_u32..63, near.clone()).prop_map(|(bits, off)| (-1_i64 << bits).saturating_add(off)),
        near.clone().prop_map(|off| i64::MAX.saturating_add(off)),
        near.prop_map(|off| i64::MIN.saturating_add(off)),
    ]
    .prop_map(Span::from_nanos)
}

/// The quotient towards minus infinity.
pub fn floor(dividend: i128, divisor: i128) -> i128 {
    let quotient = dividend / divisor;
    let below = dividend % divisor != 0 && (dividend < 0) != (divisor < 0);
    if below { quotient - 1 } else { quotient }
}

/// The quotient to the nearest, a tie away from zero.
pub fn nearest(dividend: i128, divisor: i128) -> i128 {
    let magnitude = dividend.unsigned_abs();
    let by = divisor.unsigned_abs();
    let up = u128::from(magnitude % by >= by - magnitude % by);
    let quotient = i128::try_from(magnitude / by + up).expect("magnitudes are small");
    if (dividend < 0) == (divisor < 0) { quotient } else { -quotient }
}
