//! Every operation on spans and instants against its slow twin in 128 bits.
//!
//! Thesis chapter 4, item 3: "the most potential problem is a type overflow"; listing 4.1 computes
//! the sum in 64 bits before it tests for the overflow.

use crate::common::{MAX, MIN, floor, spans, within};
use hourglass_time::{Bounded, Instant, Monotonic, Span};
use proptest::prelude::*;

fn wide(span: Span) -> i128 {
    i128::from(span.nanos())
}

fn checked(exact: i128) -> Option<Span> {
    within(exact).then(|| narrow(exact))
}

fn saturated(exact: i128) -> Span {
    narrow(exact.clamp(MIN, MAX))
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
        let difference = wide(a) - wide(b);
        prop_assert_eq!(a.checked_sub(b), checked(difference));
        prop_assert_eq!(a.saturating_sub(b), saturated(difference));
        let product = wide(a) * i128::from(n);
        prop_assert_eq!(a.checked_mul(n), checked(product));
        prop_assert_eq!(a.saturating_mul(n), saturated(product));
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
            prop_assert_eq!(a.div_floor(n).or(a.div_ceil(n)), None);
        } else {
            let n_wide = i128::from(n);
            prop_assert_eq!(a.div_floor(n).map(wide), Some(floor(wide(a), n_wide)));
            prop_assert_eq!(a.div_ceil(n).map(wide), Some(-floor(-wide(a), n_wide)));
        }
    }

    #[test]
    fn ratios_and_rests(a in spans(), unit in spans()) {
        let (n, d) = (wide(a), wide(unit));
        if d == 0 {
            prop_assert_eq!(a.ratio_floor(unit), None);
            prop_assert_eq!(a.rem_floor(unit), None);
        } else {
            prop_assert_eq!(a.ratio_floor(unit).map(i128::from), Some(floor(n, d)));
            prop_assert_eq!(a.rem_floor(unit).map(wide), Some(n - floor(n, d) * d));
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
        prop_assert_eq!(at.checked_since(from), a.checked_sub(b));
        prop_assert_eq!(at.saturating_since(from), a.saturating_sub(b));
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
        if let Some(both) = x.intersection(y) {
            prop_assert!(x.contains(both) && y.contains(both));
        } else {
            prop_assert!(x.is_definitely_before(y) || x.is_definitely_after(y));
        }
        if let Some(apart) = x.checked_since(y) {
            let all = ends.iter().all(|(x, y)| apart.contains(x.saturating_sub(*y)));
            prop_assert!(all);
        }
        prop_assert_eq!(x.widened(c).is_some(), !c.is_negative());
    }
}
