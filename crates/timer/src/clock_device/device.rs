//! One clock device: a source, an event device and a queue.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use hourglass_clock::Clock;
use hourglass_clock::timekeeping::{Bounds, Timebase};
use hourglass_queue::{Handle, QueueError};
use hourglass_time::{Instant, Monotonic, Span};

use crate::event::{
    DeviceError, DeviceWaitEnd, EventDevice, Kick, Mode, Period, Periods, ResolutionError,
};

use super::error::{ArmError, OpenError};
use super::reader::{ClockReader, MappedClock};
use super::timers::{Cancel, DeviceExpiry, DeviceTimers, instant};

/// A clock device, with timers that carry a `T`.
///
/// It belongs to the thread that opened it, which serves it: [`ClockDevice::wait`] is the interrupt,
/// and what expired at it is taken by [`ClockDevice::pop_expired`] afterwards, "at a safe point"
/// (section 2.2). Other threads read it ([`ClockDevice::reader`]) and make it look again
/// ([`ClockDevice::kick`]).
///
/// **Timers** expire at the first tick that is not before their expiry, so never early, and late by
/// less than a tick plus whatever the thread is late. One that is armed for a time that has passed
/// expires at the next tick.
///
/// Every call with the handle of a terminated one is refused: [`QueueError::StaleHandle`].
///
/// ```
/// use hourglass_time::Span;
/// use hourglass_timer::clock_device::{ClockDevice, ClockDevices};
///
/// let devices = ClockDevices::native();
/// let mut clock: ClockDevice<&str> = devices.open(ClockDevices::BASELINE)?;
/// let actual = clock.set_resolution(Span::from_millis(1), Span::from_micros(50))?;
/// println!("it ticks every {actual}");
///
/// let timer = clock.create("sample")?;
/// clock.arm_after(timer, Span::from_millis(3), Some(Span::from_millis(2)))?;
/// let due = loop {
///     clock.wait(None)?;
///     if let Some(due) = clock.pop_expired() {
///         break due;
///     }
/// };
/// assert!(due.tick_ns >= due.expiry.since_zero().nanos_or_zero());
/// assert!(clock.now_ns() <= clock.now_precise().latest);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ClockDevice<T = (), C = &'static Clock> {
    name: String,
    clock: C,
    device: EventDevice,
    periods: Periods,
    resolution: Period,
    /// The resolution was changed since the last tick, and the period begun anew.
    begun_anew: bool,
    face: Arc<MappedClock>,
    timers: DeviceTimers<T>,
}

/// The resolution that a device has when it is opened: "the standard 10ms scheduling clock tick".
pub(super) const USUAL: Span = Span::from_millis(10);

impl<T, C: Clone> ClockDevice<T, C> {
    /// A device by the name of `name` that tells the time of `clock` and ticks by `device`, at its
    /// period nearest to 10 ms; no finer than `finest` may be asked for. For devices that no
    /// registry has.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn new(
        name: impl Into<String>,
        clock: C,
        mut device: EventDevice,
        finest: Option<Span>,
    ) -> Result<ClockDevice<T, C>, OpenError> {
        let name = name.into();
        let named = || name.clone();
        let attached = device.attach();
        attached.map_err(|error| OpenError::Device { name: named(), error })?;
        let refused = |error| OpenError::Resolution { name: named(), error };
        let periods = limited(device.facts().grantable(), finest).map_err(refused)?;
        let usual = periods.nearest(USUAL);
        let usual = usual.ok_or_else(|| refused(ResolutionError::NoPeriods))?;
        device
            .set_mode(Mode::Periodic(usual))
            .map_err(|error| refused(ResolutionError::Refused(error)))?;
        let face = Arc::new(MappedClock::default());
        face.show(device.now_ns());
        face.show_resolution(usual.nth_ns(1));
        Ok(ClockDevice {
            name,
            clock,
            device,
            periods,
            resolution: usual,
            begun_anew: false,
            face,
            timers: DeviceTimers::new(),
        })
    }

    /// A handle that reads it from any thread.
    #[must_use]
    pub fn reader(&self) -> ClockReader<C> {
        ClockReader { face: Arc::clone(&self.face), clock: self.clock.clone() }
    }
}

fn limited(periods: Periods, finest: Option<Span>) -> Result<Periods, ResolutionError> {
    let Some((finest, longest)) = finest.zip(periods.longest()) else { return Ok(periods) };
    let least_ns = finest.nanos_or_zero();
    let is_short_enough = |exponent: &u32| u128::from(least_ns) << exponent <= NS_A_SECOND;
    let limited = match periods {
        Periods::None => Some(periods),
        Periods::Multiples { unit, fewest, most } => {
            let fewest = fewest.max(unit.covering(least_ns));
            (fewest <= most).then_some(Periods::Multiples { unit, fewest, most })
        }
        Periods::PowersOfTwo { slowest, fastest } => {
            // At most 31, so that nothing is shifted out.
            let fastest = (slowest..=fastest.min(31)).rev().find(is_short_enough);
            fastest.map(|fastest| Periods::PowersOfTwo { slowest, fastest })
        }
    };
    limited.ok_or(ResolutionError::NoneSoLong { finest, longest })
}

const NS_A_SECOND: u128 = 1_000_000_000;

impl<T, C> ClockDevice<T, C> {
    /// Name under which it was opened.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The cheap read: the time at the last tick, ns ([`ClockReader::now_ns`]).
    #[inline]
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.face.shown_ns()
    }

    /// The resolution that was granted last, exactly, at which the device ticks; about 10 ms at first.
    #[must_use]
    pub fn resolution(&self) -> Period {
        self.resolution
    }

    /// The resolutions that can be set.
    #[must_use]
    pub fn resolutions(&self) -> Periods {
        self.periods
    }

    /// Changes the resolution to the possible one nearest to `desired`, if that is at most `skew`
    /// away, either way. In force at once: the next tick is at most one new period away. Returns the
    /// actual one.
    ///
    /// # Errors
    /// [`ResolutionError`]; then nothing changed. [`ResolutionError::TooFar`] names the nearest
    /// possible and the skew that would do.
    pub fn set_resolution(&mut self, desired: Span, skew: Span) -> Result<Period, ResolutionError> {
        let granted = self.periods.grant(desired, skew)?;
        if granted != self.resolution {
            self.device.set_mode(Mode::Periodic(granted)).map_err(ResolutionError::Refused)?;
            (self.resolution, self.begun_anew) = (granted, true);
            self.face.show_resolution(granted.nth_ns(1));
        }
        Ok(granted)
    }

    /// The interrupt: waits until the device ticks, a kick arrives, a signal is handled, or the
    /// time reaches `limit_ns`. After a tick the time is shown and timers can be taken.
    pub fn wait(&mut self, limit_ns: Option<u64>) -> Result<DeviceWaitEnd, DeviceError> {
        let woken = if self.is_overdue() {
            DeviceWaitEnd::Event { periods: 1 }
        } else {
            self.device.wait(limit_ns)?
        };
        if matches!(woken, DeviceWaitEnd::Event { .. }) {
            self.face.show(self.device.now_ns());
        }
        Ok(woken)
    }

    /// Whether a change of the resolution would delay a tick beyond a period, so that it is due now:
    /// repeated changes before the first tick must not stop the timers.
    fn is_overdue(&mut self) -> bool {
        let since_ns = || self.device.now_ns().saturating_sub(self.face.shown_ns());
        std::mem::take(&mut self.begun_anew) && since_ns() >= self.resolution.nth_ns(1)
    }

    /// A handle that ends waits, from any thread and from signal handlers.
    #[must_use]
    pub fn kick(&self) -> Kick {
        self.device.kick()
    }

    /// A timer on this clock, not armed.
    ///
    /// # Errors
    /// [`QueueError::Full`], [`QueueError::OutOfMemory`].
    pub fn create(&mut self, payload: T) -> Result<Handle, QueueError> {
        self.timers.create(payload)
    }

    /// Takes the timer away, armed or not; its handle is stale from now on.
    pub fn terminate(&mut self, timer: Handle) -> Result<T, QueueError> {
        self.timers.terminate(timer)
    }

    /// What the timer carries.
    pub fn payload_mut(&mut self, timer: Handle) -> Result<&mut T, QueueError> {
        self.timers.payload_mut(timer)
    }

    /// Arms the timer for an absolute time, and then every `period` after that: "relative to the
    /// last expiration time" (section 3), so that no lateness adds up. An armed one is moved.
    ///
    /// # Errors
    /// [`ArmError`]; then it is armed as it was.
    pub fn arm(
        &mut self,
        timer: Handle,
        expiry: impl Into<Instant<Monotonic>>,
        period: Option<Span>,
    ) -> Result<(), ArmError> {
        self.timers.arm(timer, expiry.into(), period, self.face.shown_ns())
    }

    /// Arms the timer for `length` from now (from the true time, not from the last tick).
    ///
    /// # Errors
    /// [`ArmError`]; then it is armed as it was.
    pub fn arm_after(
        &mut self,
        timer: Handle,
        after: Span,
        period: Option<Span>,
    ) -> Result<(), ArmError> {
        let now = instant(self.device.now_ns());
        self.arm(timer, now.saturating_add(after), period)
    }

    /// Cancels the next expiration, or all; whether there was one.
    pub fn cancel(&mut self, timer: Handle, cancel: Cancel) -> Result<bool, QueueError> {
        self.timers.cancel(timer, cancel, self.face.shown_ns())
    }

    /// When the timer expires next; `None` if it is not armed.
    pub fn expiry(&self, timer: Handle) -> Result<Option<Instant<Monotonic>>, QueueError> {
        self.timers.expiry(timer)
    }

    /// The next timer that expired by the last tick, in order of expiry, first armed first; a
    /// periodic one is armed again already. Whatever is armed between two calls expires at a later
    /// tick, so that taking all of them always ends.
    pub fn pop_expired(&mut self) -> Option<DeviceExpiry> {
        self.timers.pop(self.face.shown_ns())
    }

    /// When something expires next, unless timers are armed or cancelled.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Instant<Monotonic>> {
        self.timers.next_expiry()
    }
}

impl<T, B: Timebase, C: Deref<Target = Clock<B>>> ClockDevice<T, C> {
    /// The precise read: the source's time between two bounds ([`ClockReader::now_precise`]).
    #[inline]
    #[must_use]
    pub fn now_precise(&self) -> Bounds {
        self.clock.now_bounded_ordered()
    }
}

impl<T, C> fmt::Debug for ClockDevice<T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClockDevice")
            .field("name", &self.name)
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}
