//! The clock of the process: what [`crate::Instant`] reads.
//!
//! One [`Clock`] for programs that do not pass one around. Nothing runs before `main`; the
//! first read starts it. A test replaces it for its own thread with [`with_clock`].

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::timekeeping::{Clock, Timebase};

static CLOCK: Clock = Clock::new();

/// Threads that have a clock of their own now.
static REPLACED: AtomicUsize = AtomicUsize::new(0);

/// A clock of any timebase.
trait ProcessClock {
    fn now_ordered(&self) -> u64;
    fn now(&self) -> u64;
}

impl<B: Timebase> ProcessClock for Clock<B> {
    fn now_ordered(&self) -> u64 {
        Clock::now_ordered(self)
    }

    fn now(&self) -> u64 {
        Clock::now(self)
    }
}

thread_local! {
    static OWN: RefCell<Option<Arc<dyn ProcessClock>>> = const { RefCell::new(None) };
}

/// The clock of the process, for what [`crate::Instant`] does not offer: bounds, events,
/// [`Clock::maintain`].
#[must_use]
pub const fn clock() -> &'static Clock {
    &CLOCK
}

/// Lets this thread's [`crate::Instant`] tell the time of another clock, a simulated one say, while
/// `work` runs. Threads that `work` starts are not concerned.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use hourglass_clock::{Clock, Instant, process, source::SimSource, timekeeping::ClockSettings};
/// use hourglass_time::Span;
///
/// let time = Arc::new(SimSource::default());
/// let clock = Arc::new(Clock::on(Arc::clone(&time), ClockSettings::DEFAULT));
/// process::with_clock(&clock, || {
///     let begin = Instant::now();
///     time.advance(Span::from_secs(3_600));
///     assert_eq!(begin.elapsed(), Duration::from_secs(3_600));
/// });
/// ```
pub fn with_clock<B: Timebase + 'static, T>(clock: &Arc<Clock<B>>, work: impl FnOnce() -> T) -> T {
    struct ClockOverride(Option<Arc<dyn ProcessClock>>);
    impl Drop for ClockOverride {
        fn drop(&mut self) {
            OWN.with(|own| own.replace(self.0.take()));
            REPLACED.fetch_sub(1, Ordering::Relaxed);
        }
    }
    REPLACED.fetch_add(1, Ordering::Relaxed);
    let own: Arc<dyn ProcessClock> = Arc::clone(clock) as _;
    let _restore = ClockOverride(OWN.with(|cell| cell.replace(Some(own))));
    work()
}

/// The time after all earlier instructions, ns.
#[inline]
pub(crate) fn now_ordered() -> u64 {
    if REPLACED.load(Ordering::Relaxed) == 0 {
        CLOCK.now_ordered()
    } else {
        own(|own| own.now_ordered())
    }
}

/// The time, unordered, ns.
#[inline]
pub(crate) fn now() -> u64 {
    if REPLACED.load(Ordering::Relaxed) == 0 { CLOCK.now() } else { own(|own| own.now()) }
}

#[cold]
fn own(read: fn(&dyn ProcessClock) -> u64) -> u64 {
    // While a thread ends, its own clock is gone.
    let own = OWN.try_with(|own| own.borrow().clone()).ok().flatten();
    own.map_or_else(|| read(&CLOCK), |own| read(&*own))
}
