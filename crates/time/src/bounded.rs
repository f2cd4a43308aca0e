//! A time known up to an error.

use core::fmt;

use crate::{ClockTag, Instant, Span};

mod sealed {
    pub trait Sealed {}
    impl Sealed for crate::Span {}
    impl<C: crate::ClockTag> Sealed for crate::Instant<C> {}
}

/// What can be shifted along a line by a [`Span`]: spans and instants. Not to be implemented
/// elsewhere.
pub trait Shift: sealed::Sealed + Copy + Ord {
    /// The value later or longer by `by`, clamped to the range.
    #[must_use]
    fn shifted_saturating(self, by: Span) -> Self;

    /// How far it is from `other` to this, or `None` out of range.
    #[must_use]
    fn distance_checked(self, other: Self) -> Option<Span>;
}

impl Shift for Span {
    fn shifted_saturating(self, by: Span) -> Span {
        self.saturating_add(by)
    }

    fn distance_checked(self, other: Span) -> Option<Span> {
        self.checked_sub(other)
    }
}

impl<C: ClockTag> Shift for Instant<C> {
    fn shifted_saturating(self, by: Span) -> Instant<C> {
        self.saturating_add(by)
    }

    fn distance_checked(self, other: Instant<C>) -> Option<Span> {
        self.checked_since(other)
    }
}

/// A time that lies somewhere from `earliest` to `latest`, both included.
///
/// Questions are answered as in TrueTime: what is *definitely* so holds wherever in its interval
/// the time lies, what is *possibly* so holds somewhere in it. The other side may be a time or
/// again an interval. `earliest` is never after `latest`.
///
/// ```
/// use hourglass_time::{Bounded, Instant, Monotonic, Span};
///
/// let read = Instant::<Monotonic>::from_nanos(10_000);
/// let now = Bounded::from_center(read, Span::from_nanos(40)).expect("the error is not negative");
/// let deadline = Instant::from_nanos(10_030);
/// assert!(!now.is_definitely_before(deadline));
/// assert!(now.is_possibly_before(deadline));
/// assert!(now.is_definitely_after(Instant::from_nanos(9_959)));
/// assert_eq!(now.width(), Some(Span::from_nanos(80)));
/// ```
///
/// Two clocks do not mix here either:
///
/// ```compile_fail,E0277
/// use hourglass_time::{Bounded, Instant, Monotonic, Realtime};
///
/// let now = Bounded::exact(Instant::<Monotonic>::ZERO);
/// let _ = now.is_definitely_before(Instant::<Realtime>::ZERO);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bounded<T> {
    earliest: T,
    latest: T,
}

impl<T: Copy + Ord> Bounded<T> {
    /// From `earliest` to `latest`, or `None` if the one is after the other.
    #[must_use]
    pub fn new(earliest: T, latest: T) -> Option<Bounded<T>> {
        (earliest <= latest).then_some(Bounded { earliest, latest })
    }

    /// A time that is known exactly.
    #[must_use]
    pub const fn exact(time: T) -> Bounded<T> {
        Bounded { earliest: time, latest: time }
    }

    /// The earliest that it can be.
    #[must_use]
    pub const fn earliest(self) -> T {
        self.earliest
    }

    /// The latest that it can be.
    #[must_use]
    pub const fn latest(self) -> T {
        self.latest
    }

    /// Whether it can be exactly this time, or for an interval, every time in it.
    #[must_use]
    pub fn contains(self, other: impl Into<Bounded<T>>) -> bool {
        let other = other.into();
        self.earliest <= other.earliest && other.latest <= self.latest
    }

    /// Whether it is before the other, wherever both lie.
    #[must_use]
    pub fn is_definitely_before(self, other: impl Into<Bounded<T>>) -> bool {
        self.latest < other.into().earliest
    }

    /// Whether it is before the other, for some place of both.
    #[must_use]
    pub fn is_possibly_before(self, other: impl Into<Bounded<T>>) -> bool {
        self.earliest < other.into().latest
    }

    /// Whether it is after the other, wherever both lie.
    #[must_use]
    pub fn is_definitely_after(self, other: impl Into<Bounded<T>>) -> bool {
        self.earliest > other.into().latest
    }

    /// Whether it is after the other, for some place of both.
    #[must_use]
    pub fn is_possibly_after(self, other: impl Into<Bounded<T>>) -> bool {
        self.latest > other.into().earliest
    }

    /// Where both can be, for two statements about the same time; `None` if they contradict each
    /// other.
    #[must_use]
    pub fn intersection(self, other: Bounded<T>) -> Option<Bounded<T>> {
        Bounded::new(self.earliest.max(other.earliest), self.latest.min(other.latest))
    }
}

impl<T: Shift> Bounded<T> {
    /// From `error` before `centre` to `error` after it, held at the ends of the range; `None` if
    /// the error is negative.
    #[must_use]
    pub fn from_center(centre: T, error: Span) -> Option<Bounded<T>> {
        Bounded::exact(centre).widened(error)
    }

    /// From the earliest to the latest, or `None` if that is more than 292 years.
    #[must_use]
    pub fn width(self) -> Option<Span> {
        self.latest.distance_checked(self.earliest)
    }

    /// With `error` added on both sides, clamped to the range; `None` if it is negative.
    #[must_use]
    pub fn widened(self, error: Span) -> Option<Bounded<T>> {
        if error.is_negative() {
            return None;
        }
        Some(Bounded {
            earliest: self.earliest.shifted_saturating(-error),
            latest: self.latest.shifted_saturating(error),
        })
    }

    /// The time from `earlier` to this, with the errors of both; `None` if it can be more than 292
    /// years.
    #[must_use]
    pub fn checked_since(self, earlier: Bounded<T>) -> Option<Bounded<Span>> {
        Some(Bounded {
            earliest: self.earliest.distance_checked(earlier.latest)?,
            latest: self.latest.distance_checked(earlier.earliest)?,
        })
    }
}

/// A time that is known exactly.
impl<T: Copy + Ord> From<T> for Bounded<T> {
    fn from(time: T) -> Bounded<T> {
        Bounded::exact(time)
    }
}

/// Prints both ends: `[monotonic+9.96us, monotonic+10.04us]`.
impl<T: fmt::Display> fmt::Display for Bounded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        self.earliest.fmt(f)?;
        f.write_str(", ")?;
        self.latest.fmt(f)?;
        f.write_str("]")
    }
}

impl<T: fmt::Debug> fmt::Debug for Bounded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        self.earliest.fmt(f)?;
        f.write_str(", ")?;
        self.latest.fmt(f)?;
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Monotonic;
    use std::format;

    fn from_to(earliest: i64, latest: i64) -> Bounded<Instant<Monotonic>> {
        let (earliest, latest) = (Instant::from_nanos(earliest), Instant::from_nanos(latest));
        Bounded::new(earliest, latest).expect("in order")
    }

    /// Research 1.9: TrueTime's `after(t)` is "t has definitely passed", `before(t)` "t has
    /// definitely not arrived".
    #[test]
    fn what_is_definite_and_what_is_possible() {
        let now = from_to(100, 200);
        for (at, before, maybe_before, maybe_after, after) in [
            (99, false, false, true, true),
            (100, false, false, true, false),
            (101, false, true, true, false),
            (199, false, true, true, false),
            (200, false, true, false, false),
            (201, true, true, false, false),
        ] {
            let at = Instant::from_nanos(at);
            assert_eq!(now.is_definitely_before(at), before, "{at}");
            assert_eq!(now.is_possibly_before(at), maybe_before, "{at}");
            assert_eq!(now.is_possibly_after(at), maybe_after, "{at}");
            assert_eq!(now.is_definitely_after(at), after, "{at}");
        }
        assert!(now.is_definitely_before(from_to(201, 300)));
        assert!(!now.is_definitely_before(from_to(200, 300)));
        assert!(now.is_possibly_after(from_to(150, 300)));
    }

    #[test]
    fn ends_in_the_wrong_order_and_negative_errors_are_refused() {
        assert_eq!(Bounded::new(Span::NANOSECOND, Span::ZERO), None);
        assert_eq!(Bounded::from_center(Span::ZERO, -Span::NANOSECOND), None);
        assert_eq!(from_to(0, 10).widened(Span::MIN), None);
    }

    #[test]
    fn the_ends_of_the_range_hold() {
        let all = Bounded::from_center(Span::ZERO, Span::MAX).expect("positive");
        assert_eq!((all.earliest(), all.latest()), (Span::MIN, Span::MAX));
        assert_eq!(all.width(), None);
        assert_eq!(all.checked_since(all), None);
        assert_eq!(all.widened(Span::MAX), Some(all));
    }

    #[test]
    fn two_statements_about_one_time() {
        let (a, b) = (from_to(0, 100), from_to(80, 150));
        assert_eq!(a.intersection(b), Some(from_to(80, 100)));
        assert_eq!(a.intersection(from_to(101, 150)), None);
        assert!(a.contains(from_to(0, 100)) && !a.contains(b));
        assert!(a.contains(Instant::from_nanos(100)) && !a.contains(Instant::from_nanos(101)));
    }

    #[test]
    fn the_errors_of_a_difference_add_up() {
        let elapsed = from_to(1_000, 1_010).checked_since(from_to(400, 420)).expect("in range");
        assert_eq!(elapsed.earliest(), Span::from_nanos(580));
        assert_eq!(elapsed.latest(), Span::from_nanos(610));
        assert_eq!(format!("{elapsed}"), "[580ns, 610ns]");
        assert_eq!(format!("{:?}", from_to(-1, 2)), "[monotonic-1ns, monotonic+2ns]");
    }
}
