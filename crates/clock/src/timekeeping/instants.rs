//! Reads as instants that know their clock.

use hourglass_time::{
    Boottime, Bounded, ClockTag, Instant, Monotonic, MonotonicRaw, Realtime, Span, Tai,
};

use super::bound::Bounds;
use super::clock::{Clock, ScaleTime};
use super::timebase::{ReferenceClock, Timebase};

/// A clock tag whose time a [`Clock`] can tell.
pub trait Timeline: ClockTag {
    /// The clock of the reference that it stands for.
    const SCALE: ReferenceClock;
}

macro_rules! timelines {
    ($($tag:ident = $scale:ident;)*) => {$(
        impl Timeline for $tag {
            const SCALE: ReferenceClock = ReferenceClock::$scale;
        }
    )*};
}

timelines! {
    Monotonic = Monotonic;
    MonotonicRaw = Raw;
    Realtime = Realtime;
    Tai = Tai;
    Boottime = Boottime;
}

impl<B: Timebase> Clock<B> {
    /// The time as an instant; [`Clock::now`] otherwise.
    #[inline]
    #[must_use]
    pub fn instant(&self) -> Instant<Monotonic> {
        Instant::from_nanos(held(self.now()))
    }

    /// The time on the clock `C` between two bounds, as [`Clock::now_on`] tells it.
    ///
    /// ```
    /// use hourglass_clock::Clock;
    /// use hourglass_time::{Instant, Tai};
    ///
    /// let clock = Clock::new();
    /// let begin = clock.read::<Tai>();
    /// assert!(begin.is_definitely_after(Instant::ZERO));
    /// ```
    #[must_use]
    pub fn read<C: Timeline>(&self) -> Bounded<Instant<C>> {
        let ScaleTime { ns, error_ns, .. } = match C::SCALE {
            ReferenceClock::Monotonic => return self.now_bounded().instants(),
            scale => self.now_on(scale),
        };
        let centre = Instant::from_nanos(ns);
        let error = Span::from_nanos(held(error_ns));
        // An error held at the end of the range is not negative.
        Bounded::from_center(centre, error).unwrap_or(Bounded::exact(centre))
    }
}

impl Bounds {
    /// The same as instants.
    #[must_use]
    pub fn instants<C: ClockTag>(&self) -> Bounded<Instant<C>> {
        let earliest = Instant::from_nanos(held(self.earliest));
        let latest = Instant::from_nanos(held(self.latest));
        Bounded::new(earliest, latest).unwrap_or(Bounded::exact(latest))
    }
}

/// Nanoseconds in the range of instants, held at its end: 292 years.
fn held(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timekeeping::Native;

    /// Each timeline against the kernel's clock of that name, read before and after.
    #[test]
    fn every_timeline_is_the_kernels() {
        fn is_between<C: Timeline>(clock: &Clock) {
            for _ in 0..1_000 {
                let before = held(Native.reference_ns(C::SCALE));
                let read = clock.read::<C>();
                let after = held(Native.reference_ns(C::SCALE));
                assert!(!read.is_definitely_before(Instant::from_nanos(before)), "{read}");
                assert!(!read.is_definitely_after(Instant::from_nanos(after)), "{read}");
            }
        }
        let clock = Clock::new();
        is_between::<Monotonic>(&clock);
        is_between::<MonotonicRaw>(&clock);
        is_between::<Boottime>(&clock);
        assert!(clock.instant() <= clock.instant());
    }

    #[test]
    fn the_ends_are_held() {
        let status = super::super::Status::OsClock;
        let bounds = Bounds { earliest: 5, latest: u64::MAX, status };
        let read: Bounded<Instant<Tai>> = bounds.instants();
        assert_eq!((read.earliest(), read.latest()), (Instant::from_nanos(5), Instant::MAX));
    }
}
