//! Every operation on spans and instants against its slow twin in 128 bits.
//!
//! Thesis chapter 4, item 3: "the most potential problem is a type overflow"; listing 4.1 computes
//! the sum in 64 bits before it tests for the overflow.

use crate::common::{MAX, MIN, floor, nearest, spans, within};
use hourglass_time::{Bounded, Instant, Monotonic, Span};
use proptest::prelude::*;

/// The values of the range, and so the modulus of wrapping arithmetic.
const TURN: i128 = 2 * MAX + 1;

fn wide(span: Span) -> i128 {
    i128::from(span.nanos())
}

fn checked(exact: i128) -> Option<Span> {
    within(exact).then(|| narrow(exact))
}

fn saturated(exact: i128) -> Span {
    narrow(exact.clamp(MIN, MAX))
}

/// Walks around the circle turn by turn, at most a few times, then by the remainder.
fn wrapped(exact: i128) -> Span {
    let mut rest = exact % TURN;
    while rest > MAX {
        rest -= TURN;
    }
    while rest < MIN {
        rest += TURN;
    }
    narrow(rest)
}

fn narrow(exact: i128) -> Span {
    Span::from_nanos(i64::try_from(exact).expect("within 64 bits"))
}

fn factors() -> impl Strategy<Value = i64> {
    prop_oneof![any::<i64>(), -5_i64..=5, Just(i64::MIN), Just(i64::MAX)]
}

proptest! {
    #[test]
    fn sums_differences_products(a in spans(), b in spans(), n in factors()) {
        let sum = wide(a) + wide(b);
        prop_assert_eq!(a.checked_add(b), checked(sum));
        prop_assert_eq!(a.saturating_add(b), saturated(sum));
        prop_assert_eq!(a.wrapping_add(b), wrapped(sum));
        let difference = wide(a) - wide(b);
        prop_assert_eq!(a.checked_sub(b), checked(difference));
        prop_assert_eq!(a.saturating_sub(b), saturated(difference));
        prop_assert_eq!(a.wrapping_sub(b), wrapped(difference));
        let product = wide(a) * i128::from(n);
        prop_assert_eq!(a.checked_mul(n), checked(product));
        prop_assert_eq!(a.saturating_mul(n), saturated(product));
        prop_assert_eq!(a.wrapping_mul(n), wrapped(product));
    }

    #[test]
    fn wrapping_comes_back(a in spans(), b in spans()) {
        prop_assert_eq!(a.wrapping_add(b).wrapping_sub(b), a);
        prop_assert_eq!(a.wrapping_sub(b).wrapping_add(b), a);
    }

    /// Thesis chapter 4: sign, comparisons; section 3.2: the smallest and the largest value.
    #[test]
    fn sign_and_order(a in spans(), b in spans()) {
        prop_assert_eq!(wide(-a), -wide(a));
        prop_assert_eq!(wide(a.abs()), wide(a).abs());
        prop_assert_eq!(i128::from(a.signum()), wide(a).signum());
        prop_assert_eq!(a.magnitude().as_nanos(), wide(a).unsigned_abs());
        prop_assert_eq!(a.cmp(&b), wide(a).cmp(&wide(b)));
        prop_assert_eq!(wide(a.min(b)), wide(a).min(wide(b)));
        prop_assert_eq!(wide(a.max(b)), wide(a).max(wide(b)));
        prop_assert!(Span::MIN <= a && a <= Span::MAX);
    }

    #[test]
    fn parts(a in spans(), n in factors()) {
        if n == 0 {
            prop_assert_eq!(a.div_floor(n).or(a.div_ceil(n)).or(a.div_nearest(n)), None);
        } else {
            let n_wide = i128::from(n);
            prop_assert_eq!(a.div_floor(n).map(wide), Some(floor(wide(a), n_wide)));
            prop_assert_eq!(a.div_ceil(n).map(wide), Some(-floor(-wide(a), n_wide)));
            prop_assert_eq!(a.div_nearest(n).map(wide), Some(nearest(wide(a), n_wide)));
        }
    }

    #[test]
    fn ratios_and_rests(a in spans(), unit in spans()) {
        let (n, d) = (wide(a), wide(unit));
        if d == 0 {
            prop_assert_eq!(a.ratio_floor(unit).or(a.ratio_ceil(unit)), None);
            prop_assert_eq!(a.ratio_nearest(unit), None);
            prop_assert_eq!(a.rem_floor(unit), None);
        } else {
            prop_assert_eq!(a.ratio_floor(unit).map(i128::from), Some(floor(n, d)));
            prop_assert_eq!(a.ratio_ceil(unit).map(i128::from), Some(-floor(-n, d)));
            prop_assert_eq!(a.ratio_nearest(unit).map(i128::from), Some(nearest(n, d)));
            prop_assert_eq!(a.rem_floor(unit).map(wide), Some(n - floor(n, d) * d));
        }
    }

    #[test]
    fn multiples(a in spans(), step in spans()) {
        let (n, d) = (wide(a), wide(step));
        if d <= 0 {
            prop_assert_eq!(a.round_down(step).or(a.round_up(step)), None);
            prop_assert_eq!(a.round_nearest(step), None);
        } else {
            prop_assert_eq!(a.round_down(step), checked(floor(n, d) * d));
            prop_assert_eq!(a.round_up(step), checked(-floor(-n, d) * d));
            prop_assert_eq!(a.round_nearest(step), checked(nearest(n, d) * d));
        }
    }

    #[test]
    fn instants(a in spans(), b in spans()) {
        let (at, from) = (Instant::<Monotonic>::from_zero(a), Instant::<Monotonic>::from_zero(b));
        let since_zero = |instant: Instant<Monotonic>| instant.since_zero();
        prop_assert_eq!(at.checked_add(b).map(since_zero), a.checked_add(b));
        prop_assert_eq!(at.checked_sub(b).map(since_zero), a.checked_sub(b));
        prop_assert_eq!(at.saturating_add(b).since_zero(), a.saturating_add(b));
        prop_assert_eq!(at.saturating_sub(b).since_zero(), a.saturating_sub(b));
        prop_assert_eq!(at.wrapping_add(b).since_zero(), a.wrapping_add(b));
        prop_assert_eq!(at.wrapping_sub(b).since_zero(), a.wrapping_sub(b));
        prop_assert_eq!(at.checked_since(from), a.checked_sub(b));
        prop_assert_eq!(at.saturating_since(from), a.saturating_sub(b));
        prop_assert_eq!(from.wrapping_add(at.wrapping_since(from)), at);
        prop_assert_eq!(at.cmp(&from), a.cmp(&b));
        prop_assert_eq!(at.nanos(), a.nanos());
    }

    /// Research 1.9 (TrueTime): an answer that is definite holds for all places of the time, one
    /// that is possible for some. Both tried with the ends, which decide.
    #[test]
    fn bounds(a in spans(), b in spans(), c in spans(), d in spans()) {
        let x = Bounded::new(a.min(b), a.max(b)).expect("in order");
        let y = Bounded::new(c.min(d), c.max(d)).expect("in order");
        let ends = [(a, c), (a, d), (b, c), (b, d)];
        prop_assert_eq!(x.is_definitely_before(y), ends.iter().all(|(x, y)| x < y));
        prop_assert_eq!(x.is_possibly_before(y), ends.iter().any(|(x, y)| x < y));
        prop_assert_eq!(x.is_definitely_after(y), ends.iter().all(|(x, y)| x > y));
        prop_assert_eq!(x.is_possibly_after(y), ends.iter().any(|(x, y)| x > y));
        prop_assert_eq!(x.contains(y), x.contains(c) && x.contains(d));
        prop_assert_eq!(x.contains(c), x.earliest() <= c && c <= x.latest());
        prop_assert_eq!(x.width(), x.latest().checked_sub(x.earliest()));
        prop_assert!(x.hull(y).contains(x) && x.hull(y).contains(y));
        if let Some(both) = x.intersection(y) {
            prop_assert!(x.contains(both) && y.contains(both));
        } else {
            prop_assert!(x.is_definitely_before(y) || x.is_definitely_after(y));
        }
        if let Some(middle) = x.midpoint_floor() {
            prop_assert_eq!(wide(middle), floor(wide(a) + wide(b), 2));
        }
        if let Some(moved) = x.checked_shift(c) {
            prop_assert_eq!(moved, x.saturating_shift(c));
            prop_assert_eq!(moved.width(), x.width());
        }
        if let Some(apart) = x.checked_since(y) {
            let all = ends.iter().all(|(x, y)| apart.contains(x.saturating_sub(*y)));
            prop_assert!(all);
        }
        prop_assert_eq!(x.widened(c).is_some(), !c.is_negative());
    }
}
