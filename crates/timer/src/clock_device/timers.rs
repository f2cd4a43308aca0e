//! The timers of a clock device: RT-Mach's arming and cancelling, on the exact queue.

use hourglass_queue::{Handle, Queue, QueueError};
use hourglass_time::{Instant, Monotonic, Span};

use super::error::ArmError;

/// Which expirations are cancelled (section 3 of the paper: "canceling only the current expiration,
/// or all forthcoming").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cancel {
    /// The next one; a periodic timer stays armed for the one after it.
    Current,
    /// All expiries, also later ones of a period.
    All,
}

/// A timer that has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceExpiry {
    /// The timer that expired.
    pub timer: Handle,
    /// Time for which it was armed.
    pub expiry: Instant<Monotonic>,
    /// The tick at which it did, ns.
    pub tick_ns: u64,
    /// Expirations of a periodic timer after this one that had passed by then. This number is all
    /// that is reported of them.
    pub overruns: u64,
}

#[derive(Debug)]
struct Timer<T> {
    payload: T,
    /// The requested expiry.
    expiry: Instant<Monotonic>,
    period: Option<Span>,
}

#[derive(Debug)]
pub(super) struct DeviceTimers<T> {
    queue: Queue<Monotonic, Timer<T>>,
}

impl<T> DeviceTimers<T> {
    pub(super) fn new() -> DeviceTimers<T> {
        DeviceTimers { queue: Queue::new() }
    }

    pub(super) fn create(&mut self, payload: T) -> Result<Handle, QueueError> {
        self.queue.create(Timer { payload, expiry: Instant::ZERO, period: None })
    }

    pub(super) fn terminate(&mut self, timer: Handle) -> Result<T, QueueError> {
        self.queue.remove(timer).map(|timer| timer.payload)
    }

    pub(super) fn payload_mut(&mut self, timer: Handle) -> Result<&mut T, QueueError> {
        self.queue.payload_mut(timer).map(|timer| &mut timer.payload)
    }

    /// Arms it; it does not expire at a tick that has been.
    pub(super) fn arm(
        &mut self,
        timer: Handle,
        expiry: Instant<Monotonic>,
        period: Option<Span>,
        last_tick_ns: u64,
    ) -> Result<(), ArmError> {
        if let Some(period) = period.filter(|period| !period.is_positive()) {
            return Err(ArmError::Period(period));
        }
        self.place(timer, expiry, last_tick_ns)?;
        let armed = self.queue.payload_mut(timer)?;
        (armed.expiry, armed.period) = (expiry, period);
        Ok(())
    }

    fn place(
        &mut self,
        timer: Handle,
        expiry: Instant<Monotonic>,
        last_tick_ns: u64,
    ) -> Result<(), QueueError> {
        let earliest = instant(last_tick_ns).saturating_add(Span::NANOSECOND);
        self.queue.arm(timer, expiry.max(earliest), Span::ZERO)
    }

    pub(super) fn cancel(
        &mut self,
        timer: Handle,
        cancel: Cancel,
        last_tick_ns: u64,
    ) -> Result<bool, QueueError> {
        let was_armed = self.queue.cancel(timer)?;
        let armed = self.queue.payload_mut(timer)?;
        if let (true, Cancel::Current, Some(period)) = (was_armed, cancel, armed.period) {
            armed.expiry = armed.expiry.saturating_add(period);
            let expiry = armed.expiry;
            self.place(timer, expiry, last_tick_ns)?;
        }
        Ok(was_armed)
    }

    /// The next one that expires at the tick `tick_ns`; a periodic one is armed again, from when it
    /// was to expire.
    pub(super) fn pop(&mut self, tick_ns: u64) -> Option<DeviceExpiry> {
        let timer = self.queue.pop_expired(instant(tick_ns))?.handle;
        let expired = self.queue.payload_mut(timer).ok()?;
        let expiry = expired.expiry;
        let Some(period) = expired.period else {
            return Some(DeviceExpiry { timer, expiry, tick_ns, overruns: 0 });
        };
        let (overruns, next) = after(expiry, period, tick_ns);
        expired.expiry = next;
        // The timer is there, and has no slack.
        let _ = self.queue.arm(timer, next, Span::ZERO);
        Some(DeviceExpiry { timer, expiry, tick_ns, overruns })
    }

    pub(super) fn next_expiry(&self) -> Option<Instant<Monotonic>> {
        self.queue.next_expiry()
    }

    pub(super) fn expiry(&self, timer: Handle) -> Result<Option<Instant<Monotonic>>, QueueError> {
        let armed = self.queue.expiry(timer)?.is_some();
        let asked = self.queue.payload(timer)?.expiry;
        Ok(armed.then_some(asked))
    }
}

/// How many expirations after `expiry` have passed at `tick_ns`, and the first one that has not.
fn after(expiry: Instant<Monotonic>, period: Span, tick_ns: u64) -> (u64, Instant<Monotonic>) {
    let (from, period) = (i128::from(expiry.nanos()), i128::from(period.nanos()));
    let overruns = (i128::from(tick_ns) - from).max(0) / period;
    let next = from + (overruns + 1) * period;
    let next = i64::try_from(next).unwrap_or(i64::MAX);
    (u64::try_from(overruns).unwrap_or(u64::MAX), Instant::from_nanos(next))
}

/// An instant of a reading in ns, held at the end of the range.
pub(super) fn instant(ns: u64) -> Instant<Monotonic> {
    Instant::from_nanos(i64::try_from(ns).unwrap_or(i64::MAX))
}
