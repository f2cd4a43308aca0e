//! A point in time, on one clock.

use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;

use crate::{ClockTag, Span};

/// A point in time, in whole nanoseconds since the zero of the clock `C`.
///
/// Range: -(2^63 - 1) to 2^63 - 1 ns from the clock's zero, about 292 years either way. Which
/// clock it was read from is part of its type, and costs nothing at run time: instants of one
/// clock can be compared and subtracted, instants of two cannot. (In the thesis' library the ticks
/// of every source share one type, so that changing the source invalidates every object.)
///
/// ```
/// use hourglass_time::{Instant, Monotonic, Span};
///
/// let release = Instant::<Monotonic>::from_nanos(1_000_000);
/// let finish = Instant::<Monotonic>::from_nanos(1_250_000);
/// assert_eq!(finish.checked_since(release), Some(Span::from_micros(250)));
/// assert_eq!(release.saturating_add(Span::from_micros(250)), finish);
/// ```
///
/// Two clocks do not mix; neither difference nor comparison compiles:
///
/// ```compile_fail,E0308
/// use hourglass_time::{Instant, Monotonic, Realtime};
///
/// let boot = Instant::<Monotonic>::from_nanos(1_000_000);
/// let wall = Instant::<Realtime>::from_nanos(1_250_000);
/// let _ = wall.checked_since(boot);
/// ```
///
/// ```compile_fail,E0308
/// use hourglass_time::{Instant, Monotonic, MonotonicRaw};
///
/// let steered = Instant::<Monotonic>::ZERO;
/// let raw = Instant::<MonotonicRaw>::ZERO;
/// let _ = steered < raw;
/// ```
///
/// As with [`Span`], there is no `+` and no `-`: the method's name says what happens at the ends of
/// the range.
pub struct Instant<C: ClockTag> {
    since_zero: Span,
    clock: PhantomData<fn() -> C>,
}

impl<C: ClockTag> Instant<C> {
    /// The clock's zero.
    pub const ZERO: Instant<C> = Instant::from_zero(Span::ZERO);
    /// The latest instant.
    pub const MAX: Instant<C> = Instant::from_zero(Span::MAX);
    /// The earliest instant.
    pub const MIN: Instant<C> = Instant::from_zero(Span::MIN);

    /// The instant `ns` nanoseconds after the clock's zero; `i64::MIN` is taken as
    /// [`Instant::MIN`].
    #[must_use]
    pub const fn from_nanos(ns: i64) -> Instant<C> {
        Instant::from_zero(Span::from_nanos(ns))
    }

    /// The instant `since_zero` after the clock's zero.
    #[must_use]
    pub const fn from_zero(since_zero: Span) -> Instant<C> {
        Instant { since_zero, clock: PhantomData }
    }

    /// Nanoseconds since the clock's zero, never `i64::MIN`.
    #[must_use]
    pub const fn nanos(self) -> i64 {
        self.since_zero.nanos()
    }

    /// The time since the clock's zero.
    #[must_use]
    pub const fn since_zero(self) -> Span {
        self.since_zero
    }

    /// The instant later by `span`, or `None` out of range.
    #[must_use]
    pub const fn checked_add(self, span: Span) -> Option<Instant<C>> {
        match self.since_zero.checked_add(span) {
            Some(since_zero) => Some(Instant::from_zero(since_zero)),
            None => None,
        }
    }

    /// The instant earlier by `span`, or `None` out of range.
    #[must_use]
    pub const fn checked_sub(self, span: Span) -> Option<Instant<C>> {
        match self.since_zero.checked_sub(span) {
            Some(since_zero) => Some(Instant::from_zero(since_zero)),
            None => None,
        }
    }

    /// The instant later by `span`, clamped to the range.
    #[must_use]
    pub const fn saturating_add(self, span: Span) -> Instant<C> {
        Instant::from_zero(self.since_zero.saturating_add(span))
    }

    /// The instant earlier by `span`, clamped to the range.
    #[must_use]
    pub const fn saturating_sub(self, span: Span) -> Instant<C> {
        Instant::from_zero(self.since_zero.saturating_sub(span))
    }

    /// The time from `earlier` to this, negative if `earlier` is later; `None` if they are more
    /// than 292 years apart.
    #[must_use]
    pub const fn checked_since(self, earlier: Instant<C>) -> Option<Span> {
        self.since_zero.checked_sub(earlier.since_zero)
    }

    /// The time from `earlier` to this, negative if `earlier` is later, held at the ends of the
    /// range.
    #[must_use]
    pub const fn saturating_since(self, earlier: Instant<C>) -> Span {
        self.since_zero.saturating_sub(earlier.since_zero)
    }
}

// Written out, because derived ones would ask the same of the tag.

impl<C: ClockTag> Clone for Instant<C> {
    fn clone(&self) -> Instant<C> {
        *self
    }
}

impl<C: ClockTag> Copy for Instant<C> {}

impl<C: ClockTag> PartialEq for Instant<C> {
    fn eq(&self, other: &Instant<C>) -> bool {
        self.since_zero == other.since_zero
    }
}

impl<C: ClockTag> Eq for Instant<C> {}

impl<C: ClockTag> PartialOrd for Instant<C> {
    fn partial_cmp(&self, other: &Instant<C>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<C: ClockTag> Ord for Instant<C> {
    fn cmp(&self, other: &Instant<C>) -> Ordering {
        self.since_zero.cmp(&other.since_zero)
    }
}

impl<C: ClockTag> Hash for Instant<C> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.since_zero.hash(state);
    }
}

/// Prints the clock's name and the signed time since its zero, as [`Span`] prints it, with its
/// precision: `monotonic+12.5s`, `realtime-3ms`.
impl<C: ClockTag> fmt::Display for Instant<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::span::print(self.since_zero, C::NAME, f)
    }
}

impl<C: ClockTag> fmt::Debug for Instant<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Monotonic, Realtime};
    use std::format;
    use std::string::ToString;

    type Mono = Instant<Monotonic>;

    /// Thesis section 3.2, `SetTimerSource` (research 1.1 i): the clock is part of the type, and
    /// the type is as small as its nanoseconds.
    #[test]
    fn a_tag_costs_nothing() {
        assert_eq!(size_of::<Mono>(), size_of::<i64>());
        fn goes_to_another_thread<T: Send + Sync + Copy>(_: T) {}
        goes_to_another_thread(Mono::ZERO);
    }

    #[test]
    fn times_before_the_epoch_exist() {
        let eve = Instant::<Realtime>::from_nanos(-3_000_000);
        assert!(eve < Instant::ZERO);
        assert_eq!(eve.to_string(), "realtime-3ms");
        assert_eq!(Instant::ZERO.checked_since(eve), Some(Span::from_millis(3)));
    }

    #[test]
    fn the_ends_do_what_the_name_says() {
        let step = Span::NANOSECOND;
        assert_eq!(Mono::MAX.checked_add(step), None);
        assert_eq!(Mono::MAX.saturating_add(step), Mono::MAX);
        assert_eq!(Mono::MIN.checked_sub(step), None);
        assert_eq!(Mono::MIN.saturating_sub(step), Mono::MIN);
        assert_eq!(Mono::MAX.checked_since(Mono::MIN), None);
        assert_eq!(Mono::MAX.saturating_since(Mono::MIN), Span::MAX);
        assert_eq!(Mono::from_nanos(i64::MIN), Mono::MIN);
    }

    /// Research 5, pitfall 5: where cores disagree, `end - start` is negative, not 2^64 - n.
    #[test]
    fn a_negative_difference_is_negative() {
        let (start, end) = (Mono::from_nanos(105), Mono::from_nanos(100));
        assert_eq!(end.checked_since(start), Some(Span::from_nanos(-5)));
        assert_eq!(end.saturating_since(start), Span::from_nanos(-5));
    }

    #[test]
    fn the_clock_is_printed_with_the_time() {
        assert_eq!(format!("{:.3}", Mono::from_nanos(12_500_000_000)), "monotonic+12.500s");
        assert_eq!(format!("{:?}", Mono::ZERO), "monotonic+0s");
    }
}
