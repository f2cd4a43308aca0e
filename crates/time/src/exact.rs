//! The 128-bit arithmetic behind everything that could leave 64 bits.
//!
//! A count of nanoseconds lies in `MIN..=MAX`, symmetric around zero. What was computed exactly in
//! 128 bits comes back into that range in one of three ways: refused, held at the ends, or folded.

pub(crate) const MAX: i64 = i64::MAX;

/// The smallest count: one above `i64::MIN`, so that every count has its negative.
pub(crate) const MIN: i64 = -MAX;

/// How many counts there are: the turn of the circle on which wrapping arithmetic moves.
const TURN: i128 = 2 * (MAX as i128) + 1;

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

/// The count as often turned around the circle as it takes: one step above `MAX` is `MIN`.
pub(crate) const fn fold(exact: i128) -> i64 {
    if let Some(count) = narrow(exact) {
        return count;
    }
    let within_turn = exact.rem_euclid(TURN);
    let folded = if within_turn > MAX as i128 { within_turn - TURN } else { within_turn };
    folded as i64
}

/// Where a quotient that is not whole goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// Towards minus infinity.
    Floor,
    /// Towards plus infinity.
    Ceil,
    /// To the nearest; a tie goes away from zero, so that the sign does not matter.
    Nearest,
}

/// The quotient in whole numbers, or `None` if the divisor is zero.
///
/// Neither argument may be `i128::MIN`; products of two 64-bit numbers never are.
pub(crate) const fn divide(dividend: i128, divisor: i128, rounding: Rounding) -> Option<i128> {
    if divisor == 0 {
        return None;
    }
    let (dividend, divisor) = if divisor < 0 { (-dividend, -divisor) } else { (dividend, divisor) };
    let floor = dividend.div_euclid(divisor);
    let rest = dividend.rem_euclid(divisor);
    let up = match rounding {
        Rounding::Floor => false,
        Rounding::Ceil => rest > 0,
        // Compared by halves: twice the rest might not fit.
        Rounding::Nearest => {
            let other_half = divisor - rest;
            rest > other_half || (rest == other_half && dividend > 0)
        }
    };
    Some(if up { floor + 1 } else { floor })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_circle_closes_without_a_gap() {
        let (max, min) = (i128::from(MAX), i128::from(MIN));
        assert_eq!(fold(max + 1), MIN);
        assert_eq!(fold(min - 1), MAX);
        assert_eq!(fold(3 * TURN + 5), 5);
        assert_eq!(fold(-3 * TURN - 5), -5);
        assert_eq!(narrow(i128::from(i64::MIN)), None);
        assert_eq!(saturate(i128::from(i64::MIN)), MIN);
    }

    #[test]
    fn quotients_round_where_the_name_says() {
        use Rounding::{Ceil, Floor, Nearest};
        for (n, d, floor, ceil, nearest) in [
            (7, 2, 3, 4, 4),
            (-7, 2, -4, -3, -4),
            (7, -2, -4, -3, -4),
            (-7, -2, 3, 4, 4),
            (5, 3, 1, 2, 2),
            (-5, 3, -2, -1, -2),
            (4, 3, 1, 2, 1),
            (6, 3, 2, 2, 2),
            (0, 3, 0, 0, 0),
        ] {
            assert_eq!(divide(n, d, Floor), Some(floor), "{n}/{d}");
            assert_eq!(divide(n, d, Ceil), Some(ceil), "{n}/{d}");
            assert_eq!(divide(n, d, Nearest), Some(nearest), "{n}/{d}");
        }
        assert_eq!(divide(1, 0, Floor), None);
    }
}
