//! An `Instant` with the interface of `std::time::Instant`.

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::Duration;

use hourglass_time::{Monotonic, Span};

use crate::process;

/// `std::time::Instant`, read from the clock of the process: changing the `use` is enough.
///
/// ```
/// use hourglass_clock::Instant; // was: use std::time::Instant;
///
/// let begin = Instant::now();
/// assert!(begin.elapsed().as_secs() < 60);
/// ```
///
/// It keeps what std promises: never earlier than any instant read before, on whatever thread. On
/// Linux it stands on `CLOCK_MONOTONIC`'s scale, as std's does; [`process::clock`] tells how far
/// it may be off.
///
/// Two things differ. `+` and `-` never panic: beyond 292 years from the clock's zero they are held
/// at the end of the range (`checked_add` and `checked_sub` tell). And there is
/// [`Instant::now_unordered`], at half the cost.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(hourglass_time::Instant<Monotonic>);

impl Instant {
    /// The time now, after everything that this thread did before. Allocates nothing, never fails.
    #[inline]
    #[must_use]
    pub fn now() -> Instant {
        Instant::from_ns(process::now_ordered())
    }

    /// The time now, sampled some tens of nanoseconds before or after the instructions around it.
    #[inline]
    #[must_use]
    pub fn now_unordered() -> Instant {
        Instant::from_ns(process::now())
    }

    #[inline]
    fn from_ns(ns: u64) -> Instant {
        // CLOCK_MONOTONIC began at boot: 2^63 ns are 292 years.
        Instant(hourglass_time::Instant::from_nanos(i64::try_from(ns).unwrap_or(i64::MAX)))
    }

    /// The time from `earlier` to this, or zero if `earlier` is later.
    #[must_use]
    pub fn duration_since(&self, earlier: Instant) -> Duration {
        self.checked_duration_since(earlier).unwrap_or_default()
    }

    /// The time from `earlier` to this, or `None` if `earlier` is later.
    #[must_use]
    pub fn checked_duration_since(&self, earlier: Instant) -> Option<Duration> {
        // Two instants may be 2^64 ns apart, more than a span holds.
        let apart = i128::from(self.0.nanos()) - i128::from(earlier.0.nanos());
        u64::try_from(apart).ok().map(Duration::from_nanos)
    }

    /// The time from `earlier` to this, or zero if `earlier` is later.
    #[must_use]
    pub fn saturating_duration_since(&self, earlier: Instant) -> Duration {
        self.duration_since(earlier)
    }

    /// The time from this until now.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        Instant::now().duration_since(*self)
    }

    /// The instant `duration` later, or `None` out of range.
    #[must_use]
    pub fn checked_add(&self, duration: Duration) -> Option<Instant> {
        self.0.checked_add(span(duration)?).map(Instant)
    }

    /// The instant `duration` earlier, or `None` out of range.
    #[must_use]
    pub fn checked_sub(&self, duration: Duration) -> Option<Instant> {
        self.0.checked_sub(span(duration)?).map(Instant)
    }
}

fn span(duration: Duration) -> Option<Span> {
    i64::try_from(duration.as_nanos()).ok().map(Span::from_nanos)
}

impl Add<Duration> for Instant {
    type Output = Instant;

    /// Held at the end of the range.
    fn add(self, duration: Duration) -> Instant {
        self.checked_add(duration).unwrap_or(Instant(hourglass_time::Instant::MAX))
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;

    /// Held at the end of the range.
    fn sub(self, duration: Duration) -> Instant {
        self.checked_sub(duration).unwrap_or(Instant(hourglass_time::Instant::MIN))
    }
}

impl Sub for Instant {
    type Output = Duration;

    /// Zero if `earlier` is later.
    fn sub(self, earlier: Instant) -> Duration {
        self.duration_since(earlier)
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl SubAssign<Duration> for Instant {
    fn sub_assign(&mut self, duration: Duration) {
        *self = *self - duration;
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<Instant> for hourglass_time::Instant<Monotonic> {
    fn from(instant: Instant) -> Self {
        instant.0
    }
}

impl From<hourglass_time::Instant<Monotonic>> for Instant {
    fn from(instant: hourglass_time::Instant<Monotonic>) -> Instant {
        Instant(instant)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Clock;
    use crate::source::SimSource;
    use crate::timekeeping::ClockSettings;

    /// The same function over both types, as a program whose `use` was changed.
    macro_rules! works_with {
        ($name:ident, $instant:ty) => {
            #[test]
            fn $name() {
                let begin = <$instant>::now();
                let mut later = begin + Duration::from_millis(5);
                later += Duration::from_millis(1);
                later -= Duration::from_millis(2);
                assert_eq!(later - begin, Duration::from_millis(4));
                assert_eq!(begin - later, Duration::ZERO);
                assert_eq!(later - Duration::from_millis(4), begin);
                assert_eq!(begin.duration_since(later), Duration::ZERO);
                assert_eq!(begin.checked_duration_since(later), None);
                assert_eq!(later.saturating_duration_since(begin), Duration::from_millis(4));
                assert!(begin.checked_add(Duration::MAX).is_none());
                assert!(begin.checked_sub(Duration::MAX).is_none());
                // An hour before boot exists, too.
                assert!(begin.checked_sub(Duration::from_secs(1 << 33)).is_some());
                assert!(<$instant>::now() >= begin && begin.elapsed() < Duration::from_secs(600));
            }
        };
    }

    works_with!(std_is_kept, std::time::Instant);
    works_with!(the_same_with_ours, Instant);

    #[test]
    fn the_ends_are_held_without_a_panic() {
        let now = Instant::now();
        let (last, first) = (now + Duration::MAX, now - Duration::MAX);
        assert_eq!(hourglass_time::Instant::from(last), hourglass_time::Instant::MAX);
        assert_eq!(hourglass_time::Instant::from(first), hourglass_time::Instant::MIN);
        assert_eq!(last - first, Duration::from_nanos(u64::MAX - 1));
    }

    /// std's promise: no less than any instant read before, here by another thread.
    #[test]
    fn threads_agree_on_the_order() {
        use std::sync::Mutex;
        let last = Mutex::new(Instant::now());
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        let mut last = last.lock().unwrap();
                        let now = Instant::now();
                        assert!(now >= *last, "{now:?} after {last:?}");
                        *last = now;
                    }
                });
            }
        });
    }

    #[test]
    fn a_test_replaces_the_clock_of_its_thread_only() {
        let before = Instant::now();
        let clock = Arc::new(Clock::on(SimSource::default(), ClockSettings::DEFAULT));
        process::with_clock(&clock, || {
            assert_eq!(Instant::now(), Instant::from_ns(0));
            assert_eq!(Instant::now_unordered(), Instant::from_ns(0));
            std::thread::scope(|scope| {
                scope.spawn(|| assert!(Instant::now() >= before));
            });
        });
        let panicked = std::panic::catch_unwind(|| {
            let clock = Arc::new(Clock::on(SimSource::default(), ClockSettings::DEFAULT));
            process::with_clock(&clock, || panic!("in the test's own thread"));
        });
        assert!(panicked.is_err() && Instant::now() >= before);
    }
}
