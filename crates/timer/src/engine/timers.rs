//! The timers of one engine: a queue a base, and a wheel of timeouts.
//!
//! Owns: which timer of all bases is next, and what setting the wall clock means for them.
//! Must not: read a clock (readings are passed in), know about devices.

use hourglass_time::{ClockTag, Instant, Monotonic, Span};

use super::expired_timer::TimerStore;
use super::{Cause, ClockBase, ClockReadings, ClockSetPolicy, ExpiredTimer, TimerError, TimerId};
use crate::queue::{ExpiredEntry, Handle, Queue, QueueError, TimeoutWheel};

/// EngineTimers on four clocks and timeouts, each with a payload `T`.
///
/// There is one [`Queue`] a base and one [`TimeoutWheel`]. Expiries are absolute on their own
/// clock, so that setting the wall clock moves nothing: only [`earliest`](EngineTimers::earliest), which
/// maps the first of each base to device time, comes out otherwise (*Hrtimers and Beyond*, section
/// 4.2).
///
/// **Order.** In one look timers expire by the device time of their latest time, over all bases;
/// those of one base and latest time in the order in which they were armed; at equal device time in
/// the order of [`ClockBase::ALL`], timeouts last. As in a [`Queue`], a timer that could expire already
/// may wait behind one of its base that may not yet.
///
/// **Memory.** 56 bytes a timer with a payload of four bytes, 64 with eight, for as many as there
/// is room; a timer with [`ClockSetPolicy::Expire`] takes twice that. Creating may allocate, not
/// within the room reserved; nothing else does.
///
/// ```
/// use hourglass_time::Span;
/// use hourglass_timer::engine::{ClockBase, ClockReadings, TimerError, EngineTimers};
///
/// // Monotonic, boottime, realtime, tai.
/// let now = ClockReadings::new([1_000, 1_000, 501_000, 538_000]);
/// let mut timers = EngineTimers::new(Span::from_micros(100), &now)?;
/// let valve = timers.create(ClockBase::Monotonic, "valve")?;
/// let gong = timers.create(ClockBase::Realtime, "gong")?;
/// timers.arm(valve, 3_000, 0)?;
/// timers.arm(gong, 501_500, 0)?;
/// assert_eq!(timers.earliest(&now), Some(1_500));
///
/// // The wall clock is set back by 1 us: nothing moves, and the valve is first.
/// let now = ClockReadings::new([1_000, 1_000, 500_000, 537_000]).with_sets(1);
/// assert_eq!(timers.earliest(&now), Some(2_500));
///
/// let now = ClockReadings::new([3_000, 3_000, 502_000, 539_000]).with_sets(1);
/// let mut order = Vec::new();
/// timers.expire(&now, 10, |timers, fired| order.push(*timers.payload(fired.id).unwrap()));
/// assert_eq!(order, ["gong", "valve"]);
/// # Ok::<(), TimerError>(())
/// ```
#[derive(Debug)]
pub struct EngineTimers<T> {
    /// In the order of [`ClockBase::ALL`].
    queues: [Queue<BaseClockTag, EngineTimer<T>>; 4],
    wheel: TimeoutWheel<Monotonic, T>,
    /// What the wheel's next expiry was when it was last looked at.
    wheel_next: Option<i64>,
    /// Whether it may have changed since.
    wheel_stale: bool,
    /// Armed timers with [`ClockSetPolicy::Expire`] by the settings known when they were armed; first in,
    /// first out among equals.
    notices: Queue<ClockSetTag, TimerId>,
    /// The settings of the wall clock known.
    sets: u64,
}

/// The clock of one of four queues, each its own timeline.
#[derive(Debug)]
enum BaseClockTag {}

impl ClockTag for BaseClockTag {
    const NAME: &'static str = "timer_base";
}

/// Settings of the wall clock, counted: the "time" at which timers that expire with a setting are due.
#[derive(Debug)]
enum ClockSetTag {}

impl ClockTag for ClockSetTag {
    const NAME: &'static str = "clock_sets";
}

#[derive(Debug)]
struct EngineTimer<T> {
    payload: T,
    /// Its place in `notices`, with [`ClockSetPolicy::Expire`].
    notice: Option<Handle>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NextExpiry {
    pub(super) home: TimerStore,
    /// Its latest time, ns on its clock.
    pub(super) latest_ns: i64,
    /// Until then, ns.
    until_ns: i64,
}

impl NextExpiry {
    /// Device time of its latest time.
    pub(super) fn device_ns(&self, now: &ClockReadings) -> u64 {
        now.device_ns().saturating_add_signed(self.until_ns)
    }
}

/// Where timers live, in the order of equal device times.
const HOMES: [TimerStore; 5] = [
    TimerStore::Queue(ClockBase::Monotonic),
    TimerStore::Queue(ClockBase::Boottime),
    TimerStore::Queue(ClockBase::Realtime),
    TimerStore::Queue(ClockBase::Tai),
    TimerStore::Wheel,
];

impl<T> EngineTimers<T> {
    /// No timers, and a wheel of timeouts in granules of at most `granularity`.
    ///
    /// # Errors
    /// [`QueueError::TooFine`] below [`TimeoutWheel::FINEST`].
    pub fn new(granularity: Span, now: &ClockReadings) -> Result<EngineTimers<T>, TimerError> {
        let monotonic = Instant::from_nanos(now.ns(ClockBase::Monotonic));
        Ok(EngineTimers {
            queues: [Queue::new(), Queue::new(), Queue::new(), Queue::new()],
            wheel: TimeoutWheel::new(granularity, monotonic)?,
            wheel_next: None,
            wheel_stale: false,
            notices: Queue::new(),
            sets: now.sets(),
        })
    }

    /// Makes room for this many timers of a base altogether.
    ///
    /// # Errors
    /// [`QueueError::Full`], [`QueueError::OutOfMemory`].
    pub fn reserve(&mut self, base: ClockBase, timers: usize) -> Result<(), TimerError> {
        Ok(self.queues[base as usize].reserve(timers)?)
    }

    /// Makes room for this many timeouts altogether.
    ///
    /// # Errors
    /// [`QueueError::Full`], [`QueueError::OutOfMemory`].
    pub fn reserve_timeouts(&mut self, timeouts: usize) -> Result<(), TimerError> {
        Ok(self.wheel.reserve(timeouts)?)
    }

    /// A new timer on `base`, not armed, that follows its clock. Without room the queue doubles.
    ///
    /// # Errors
    /// [`QueueError::Full`], [`QueueError::OutOfMemory`].
    #[inline]
    pub fn create(&mut self, base: ClockBase, payload: T) -> Result<TimerId, TimerError> {
        let handle = self.queues[base as usize].create(EngineTimer { payload, notice: None })?;
        Ok(TimerId { home: TimerStore::Queue(base), handle })
    }

    /// As [`EngineTimers::create`], with a choice of what happens when the clock is set.
    ///
    /// # Errors
    /// As [`EngineTimers::create`].
    pub fn create_with(
        &mut self,
        base: ClockBase,
        on_set: ClockSetPolicy,
        payload: T,
    ) -> Result<TimerId, TimerError> {
        let id = self.create(base, payload)?;
        if on_set == ClockSetPolicy::Expire && base.is_settable() {
            let notice = self.notices.create(id);
            if let Err(error) = notice {
                self.remove(id)?;
                return Err(error.into());
            }
            self.queues[base as usize].payload_mut(id.handle)?.notice = notice.ok();
        }
        Ok(id)
    }

    /// A new timeout, not armed: for what is nearly always cancelled, and may be late.
    ///
    /// # Errors
    /// As [`EngineTimers::create`].
    #[inline]
    pub fn create_timeout(&mut self, payload: T) -> Result<TimerId, TimerError> {
        let handle = self.wheel.create(payload)?;
        Ok(TimerId { home: TimerStore::Wheel, handle })
    }

    /// Arms the timer to expire from `expiry_ns` of its clock on, and by `slack_ns` later (held at
    /// the end of the clock's range). An armed one is moved in place, and goes behind all of the
    /// same latest time. An expiry may lie in the past: the timer expires at the next look.
    ///
    /// # Errors
    /// [`TimerError::ExpiryOutOfRange`] for a negative expiry, [`TimerError::IsATimeout`],
    /// [`QueueError::StaleHandle`].
    #[inline]
    pub fn arm(&mut self, id: TimerId, expiry_ns: i64, slack_ns: u64) -> Result<(), TimerError> {
        let TimerStore::Queue(base) = id.home else { return Err(TimerError::IsATimeout(id)) };
        check(base, expiry_ns)?;
        let slack = Span::from_nanos(i64::try_from(slack_ns).unwrap_or(i64::MAX));
        let queue = &mut self.queues[base as usize];
        queue.arm(id.handle, Instant::from_nanos(expiry_ns), slack)?;
        // Only on a clock that may be set.
        if base.is_settable()
            && let Some(notice) = queue.payload(id.handle)?.notice
        {
            self.notices.arm(notice, of_sets(self.sets), Span::ZERO)?;
        }
        Ok(())
    }

    /// Arms the timeout to expire at `expiry_ns` of [`ClockBase::Monotonic`] or later, as late as
    /// [`TimeoutWheel`] says for its delay from `now`; if that is past, by the end of a granule.
    ///
    /// # Errors
    /// [`TimerError::ExpiryOutOfRange`] for a negative expiry, [`TimerError::IsATimer`],
    /// [`QueueError::StaleHandle`].
    #[inline]
    pub fn arm_timeout(
        &mut self,
        id: TimerId,
        now: &ClockReadings,
        expiry_ns: i64,
    ) -> Result<(), TimerError> {
        let TimerStore::Wheel = id.home else { return Err(TimerError::IsATimer(id)) };
        check(ClockBase::Monotonic, expiry_ns)?;
        let now = Instant::from_nanos(now.ns(ClockBase::Monotonic));
        // In granules, for a look that is as of the last tick.
        self.wheel.arm_in_granules(id.handle, now, Instant::from_nanos(expiry_ns))?;
        self.wheel_stale = true;
        Ok(())
    }

    /// Takes the timer or timeout out of its order; whether it was armed. It can be armed again.
    ///
    /// # Errors
    /// [`QueueError::StaleHandle`].
    #[inline]
    pub fn cancel(&mut self, id: TimerId) -> Result<bool, TimerError> {
        match id.home {
            TimerStore::Queue(base) => {
                let armed = self.queues[base as usize].cancel(id.handle)?;
                if armed && base.is_settable() {
                    self.cancel_notice(base, id.handle)?;
                }
                Ok(armed)
            }
            TimerStore::Wheel => {
                let armed = self.wheel.cancel(id.handle)?;
                self.wheel_stale |= armed;
                Ok(armed)
            }
        }
    }

    /// Takes the timer or timeout away, armed or not; its id is stale from now on.
    ///
    /// # Errors
    /// [`QueueError::StaleHandle`].
    #[inline]
    pub fn remove(&mut self, id: TimerId) -> Result<T, TimerError> {
        match id.home {
            TimerStore::Queue(base) => {
                let timer = self.queues[base as usize].remove(id.handle)?;
                if let Some(notice) = timer.notice {
                    self.notices.remove(notice)?;
                }
                Ok(timer.payload)
            }
            TimerStore::Wheel => {
                self.wheel_stale = true;
                Ok(self.wheel.remove(id.handle)?)
            }
        }
    }

    /// When an armed timer may expire first, ns on its clock; `None` if it is not armed.
    ///
    /// # Errors
    /// [`QueueError::StaleHandle`].
    pub fn expiry_ns(&self, id: TimerId) -> Result<Option<i64>, TimerError> {
        Ok(match id.home {
            TimerStore::Queue(base) => {
                self.queues[base as usize].expiry(id.handle)?.map(Instant::nanos)
            }
            TimerStore::Wheel => self.wheel.expiry(id.handle)?.map(Instant::nanos),
        })
    }

    /// The payload.
    ///
    /// # Errors
    /// [`QueueError::StaleHandle`].
    #[inline]
    pub fn payload(&self, id: TimerId) -> Result<&T, TimerError> {
        match id.home {
            TimerStore::Queue(base) => Ok(&self.queues[base as usize].payload(id.handle)?.payload),
            TimerStore::Wheel => Ok(self.wheel.payload(id.handle)?),
        }
    }

    /// The payload.
    ///
    /// # Errors
    /// [`QueueError::StaleHandle`].
    #[inline]
    pub fn payload_mut(&mut self, id: TimerId) -> Result<&mut T, TimerError> {
        match id.home {
            TimerStore::Queue(base) => {
                Ok(&mut self.queues[base as usize].payload_mut(id.handle)?.payload)
            }
            TimerStore::Wheel => Ok(self.wheel.payload_mut(id.handle)?),
        }
    }

    /// EngineTimers armed on a base, without timeouts.
    #[must_use]
    pub fn armed(&self, base: ClockBase) -> usize {
        self.queues[base as usize].armed()
    }

    /// Timeouts armed.
    #[must_use]
    pub fn armed_timeouts(&self) -> usize {
        self.wheel.armed()
    }

    /// EngineTimers and timeouts there are, armed or not.
    #[must_use]
    pub fn count(&self) -> usize {
        self.queues.iter().map(Queue::timers).sum::<usize>() + self.wheel.timers()
    }
}

/// Looking at them.
impl<T> EngineTimers<T> {
    /// Expires what is due at `now`, `budget` timers and timeouts at most; how many there were. If
    /// that is the budget, more may be due. `fire` may do anything with the timers; what it arms
    /// for `now` counts towards the budget, so that a timer that re-arms itself at once cannot hold
    /// the caller for ever.
    pub fn expire(
        &mut self,
        now: &ClockReadings,
        budget: usize,
        mut fire: impl FnMut(&mut EngineTimers<T>, ExpiredTimer),
    ) -> usize {
        for fired in 0..budget {
            let Some(expired) = self.pop_due(now) else { return fired };
            fire(self, expired);
        }
        budget
    }

    /// The next timer or timeout that expires at `now`; it is not armed any more. EngineTimers that
    /// expire with a setting of their clock come first, in the order in which they were armed.
    #[inline]
    pub fn pop_due(&mut self, now: &ClockReadings) -> Option<ExpiredTimer> {
        if now.sets() > self.sets {
            self.sets = now.sets();
        }
        if let Some(fired) = self.pop_notice(now) {
            return Some(fired);
        }
        self.look_at_wheel();
        let mut tried = [false; HOMES.len()];
        loop {
            // The homes are few, and most of them empty.
            let mut first: Option<(usize, i64)> = None;
            for (place, home) in HOMES.iter().enumerate() {
                let Some(latest_ns) = self.latest_of(*home) else { continue };
                let until_ns = now.until_ns(home.base(), latest_ns);
                if !tried[place] && first.is_none_or(|(_, sooner)| until_ns < sooner) {
                    first = Some((place, until_ns));
                }
            }
            let (place, _) = first?;
            let popped = self.pop_from(HOMES[place], now);
            if popped.is_some() {
                return popped;
            }
            tried[place] = true;
        }
    }

    /// Device time by which a timer or timeout is to expire first, over all bases, ns; in the past
    /// if one is due. `None` if none is armed.
    #[must_use]
    pub fn earliest(&mut self, now: &ClockReadings) -> Option<u64> {
        match self.has_notice(now) {
            true => Some(now.device_ns()),
            false => self.first(now).map(|first| first.device_ns(now)),
        }
    }

    /// Whether a timer is due because its clock was set.
    pub(super) fn has_notice(&self, now: &ClockReadings) -> bool {
        self.notices.next_expiry().is_some_and(|armed| armed < of_sets(now.sets()))
    }

    /// What is to expire first, settings of the clock left aside.
    pub(super) fn first(&mut self, now: &ClockReadings) -> Option<NextExpiry> {
        self.look_at_wheel();
        let firsts = HOMES.into_iter().filter_map(|home| {
            let latest_ns = self.latest_of(home)?;
            Some(NextExpiry { home, latest_ns, until_ns: now.until_ns(home.base(), latest_ns) })
        });
        firsts.min_by_key(|first| first.until_ns)
    }

    /// The latest time of the first of a home. The wheel must have been looked at.
    #[inline]
    fn latest_of(&self, home: TimerStore) -> Option<i64> {
        match home {
            TimerStore::Queue(base) => self.queues[base as usize].next_expiry().map(Instant::nanos),
            TimerStore::Wheel => self.wheel_next,
        }
    }

    /// Finding the wheel's next expiry takes longer than a queue's: once for each change.
    #[inline]
    fn look_at_wheel(&mut self) {
        if self.wheel_stale {
            self.wheel_next = self.wheel.next_expiry().map(Instant::nanos);
            self.wheel_stale = false;
        }
    }

    fn pop_from(&mut self, home: TimerStore, now: &ClockReadings) -> Option<ExpiredTimer> {
        let base = home.base();
        let now_ns = now.ns(base);
        let (handle, expiry_ns, latest_ns) = match home {
            TimerStore::Queue(base) => {
                let expired =
                    self.queues[base as usize].pop_expired(Instant::from_nanos(now_ns))?;
                if base.is_settable() {
                    // The timer was alive a moment ago.
                    let _ = self.cancel_notice(base, expired.handle);
                }
                split(expired)
            }
            TimerStore::Wheel => {
                // The wheel's own time may be ahead of this reading, which is then in a tick.
                if self.wheel_next.is_none_or(|next_ns| next_ns > now_ns) {
                    return None;
                }
                let expired = self.wheel.pop_expired(Instant::from_nanos(now_ns))?;
                self.wheel_stale = true;
                split(expired)
            }
        };
        let id = TimerId { home, handle };
        Some(ExpiredTimer { id, base, expiry_ns, latest_ns, now_ns, cause: Cause::Expiry })
    }

    /// The first timer that was armed before its clock was set and expires with that.
    fn pop_notice(&mut self, now: &ClockReadings) -> Option<ExpiredTimer> {
        if !self.has_notice(now) {
            return None;
        }
        let notice = self.notices.pop_expired(of_sets(now.sets().saturating_sub(1)))?;
        let id = *self.notices.payload(notice.handle).ok()?;
        let queue = &mut self.queues[id.base() as usize];
        let expiry = queue.expiry(id.handle).ok()??;
        let latest = queue.latest(id.handle).ok()??;
        queue.cancel(id.handle).ok()?;
        Some(ExpiredTimer {
            id,
            base: id.base(),
            expiry_ns: expiry.nanos(),
            latest_ns: latest.nanos(),
            now_ns: now.ns(id.base()),
            cause: Cause::ClockSet,
        })
    }

    /// The timer is not armed any more.
    fn cancel_notice(&mut self, base: ClockBase, handle: Handle) -> Result<(), QueueError> {
        if let Some(notice) = self.queues[base as usize].payload(handle)?.notice {
            self.notices.cancel(notice)?;
        }
        Ok(())
    }
}

fn check(base: ClockBase, expiry_ns: i64) -> Result<(), TimerError> {
    match expiry_ns < 0 {
        true => Err(TimerError::ExpiryOutOfRange { base, expiry_ns }),
        false => Ok(()),
    }
}

/// The "time" after this many settings.
fn of_sets(sets: u64) -> Instant<ClockSetTag> {
    Instant::from_nanos(i64::try_from(sets).unwrap_or(i64::MAX))
}

fn split<C: ClockTag>(expired: ExpiredEntry<C>) -> (Handle, i64, i64) {
    (expired.handle, expired.expiry.nanos(), expired.latest.nanos())
}
