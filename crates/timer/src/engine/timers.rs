//! The timers of one engine: a queue a base.
//!
//! Owns: which timer of all bases is next, and what setting the wall clock means for them.
//! Must not: read a clock (readings are passed in), know about devices.

use std::fmt;

use hourglass_queue::{Handle, Queue, QueueError};
use hourglass_time::{ClockTag, Instant, Span};

use super::{ClockBase, ClockReadings, TimerError};

/// Names a timer of the [`EngineTimers`] that created it. Stale once that is
/// removed, and refused from then on: generations never repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerId {
    base: ClockBase,
    handle: Handle,
}

impl TimerId {
    /// The clock of its expiries.
    #[must_use]
    pub const fn base(self) -> ClockBase {
        self.base
    }
}

/// `realtime 7.1`.
impl fmt::Display for TimerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.base.name(), self.handle)
    }
}

/// What a timer on a clock that may be set does when it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ClockSetPolicy {
    /// It follows the clock: it expires when the clock reaches its expiry, whenever that is.
    #[default]
    Follow,
    /// It expires at once, with [`Cause::ClockSet`] (as timerfds with `TFD_TIMER_CANCEL_ON_SET`
    /// do). On a clock that cannot be set, as [`ClockSetPolicy::Follow`].
    Expire,
}

/// Why a timer expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Its time came.
    Expiry,
    /// Its clock was set, and it was made to expire then ([`ClockSetPolicy::Expire`]).
    ClockSet,
}

/// A timer that has expired. It is not armed any more, but lives on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpiredTimer {
    /// The timer that expired.
    pub id: TimerId,
    /// Clock of the timer.
    pub base: ClockBase,
    /// The expiry that it was armed with, ns on its clock.
    pub expiry_ns: i64,
    /// By when it was to expire, ns on its clock: expiry plus slack.
    pub latest_ns: i64,
    /// What its clock said when the poll began, ns. Not before the expiry, unless the clock
    /// was set.
    pub now_ns: i64,
    /// Why it expired.
    pub cause: Cause,
}

impl ExpiredTimer {
    /// By how much the poll missed the latest time, ns.
    #[must_use]
    pub const fn late_ns(&self) -> u64 {
        match self.cause {
            Cause::Expiry if self.now_ns > self.latest_ns => self.now_ns.abs_diff(self.latest_ns),
            Cause::Expiry | Cause::ClockSet => 0,
        }
    }
}

/// Timers on four clocks, each with a payload `T`.
///
/// There is one [`Queue`] a base. Expiries are absolute on their own clock, so that setting the wall clock moves nothing: only [`earliest`](EngineTimers::earliest), which
/// maps the first of each base to device time, comes out otherwise (*Hrtimers and Beyond*, section
/// 4.2).
///
/// **Order.** In one poll timers expire by the device time of their latest time, over all bases;
/// those of one base and latest time in the order in which they were armed; at equal device time in
/// the order of [`ClockBase::ALL`]. As in a [`Queue`], a timer that could expire already
/// may wait behind one of its base that may not yet.
///
/// **Errors.** Every call with the id of a removed timer is refused: [`QueueError::StaleHandle`].
///
/// **Memory.** 56 bytes a timer with a payload of four bytes, 64 with eight, for as many as there
/// is room; a timer with [`ClockSetPolicy::Expire`] takes twice that. Creating may allocate, not
/// within the room reserved; nothing else does.
///
/// ```
/// use hourglass_timer::engine::{ClockBase, ClockReadings, TimerError, EngineTimers};
///
/// // Monotonic, boottime, realtime, tai.
/// let now = ClockReadings::new([1_000, 1_000, 501_000, 538_000]);
/// let mut timers = EngineTimers::new(&now);
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
    /// Armed timers with [`ClockSetPolicy::Expire`] by the settings known when they were armed; first in,
    /// first out among equals.
    notices: Queue<ClockSetTag, TimerId>,
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
    pub(super) base: ClockBase,
    /// Its latest time, ns on its clock.
    pub(super) latest_ns: i64,
    until_ns: i64,
}

impl NextExpiry {
    pub(super) fn device_ns(&self, now: &ClockReadings) -> u64 {
        now.device_ns().saturating_add_signed(self.until_ns)
    }
}

impl<T> EngineTimers<T> {
    /// No timers.
    #[must_use]
    pub fn new(now: &ClockReadings) -> EngineTimers<T> {
        EngineTimers {
            queues: [Queue::new(), Queue::new(), Queue::new(), Queue::new()],
            notices: Queue::new(),
            sets: now.sets(),
        }
    }

    /// Makes room for this many timers of a base altogether.
    ///
    /// # Errors
    /// [`QueueError::Full`], [`QueueError::OutOfMemory`].
    pub fn reserve(&mut self, base: ClockBase, timers: usize) -> Result<(), TimerError> {
        Ok(self.queues[base as usize].reserve(timers)?)
    }

    /// A new timer on `base`, not armed, that follows its clock. Without room the queue doubles.
    ///
    /// # Errors
    /// [`QueueError::Full`], [`QueueError::OutOfMemory`].
    #[inline]
    pub fn create(&mut self, base: ClockBase, payload: T) -> Result<TimerId, TimerError> {
        let handle = self.queues[base as usize].create(EngineTimer { payload, notice: None })?;
        Ok(TimerId { base, handle })
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

    /// Arms the timer to expire from `expiry_ns` of its clock on, and by `slack_ns` later (held at
    /// the end of the clock's range). An armed one is moved in place, and goes behind all of the
    /// same latest time. An expiry may lie in the past: the timer expires at the next poll.
    ///
    /// # Errors
    /// [`TimerError::ExpiryOutOfRange`] for a negative expiry, [`QueueError::StaleHandle`].
    #[inline]
    pub fn arm(&mut self, id: TimerId, expiry_ns: i64, slack_ns: u64) -> Result<(), TimerError> {
        let base = id.base;
        if expiry_ns < 0 {
            return Err(TimerError::ExpiryOutOfRange { base, expiry_ns });
        }
        let slack = Span::saturating_from_nanos(slack_ns);
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

    /// Takes the timer out of its order; whether it was armed. It can be armed again.
    #[inline]
    pub fn cancel(&mut self, id: TimerId) -> Result<bool, TimerError> {
        let armed = self.queues[id.base as usize].cancel(id.handle)?;
        if armed && id.base.is_settable() {
            self.cancel_notice(id.base, id.handle)?;
        }
        Ok(armed)
    }

    /// Takes the timer away, armed or not; its id is stale from now on.
    #[inline]
    pub fn remove(&mut self, id: TimerId) -> Result<T, TimerError> {
        let timer = self.queues[id.base as usize].remove(id.handle)?;
        if let Some(notice) = timer.notice {
            self.notices.remove(notice)?;
        }
        Ok(timer.payload)
    }

    /// When an armed timer may expire first, ns on its clock; `None` if it is not armed.
    pub fn expiry_ns(&self, id: TimerId) -> Result<Option<i64>, TimerError> {
        Ok(self.queues[id.base as usize].expiry(id.handle)?.map(Instant::nanos))
    }

    /// The payload.
    #[inline]
    pub fn payload(&self, id: TimerId) -> Result<&T, TimerError> {
        Ok(&self.queues[id.base as usize].payload(id.handle)?.payload)
    }

    /// The payload.
    #[inline]
    pub fn payload_mut(&mut self, id: TimerId) -> Result<&mut T, TimerError> {
        Ok(&mut self.queues[id.base as usize].payload_mut(id.handle)?.payload)
    }

    /// Timers armed on a base.
    #[must_use]
    pub fn armed(&self, base: ClockBase) -> usize {
        self.queues[base as usize].armed()
    }

    /// Timers there are, armed or not.
    #[must_use]
    pub fn count(&self) -> usize {
        self.queues.iter().map(Queue::timers).sum()
    }
}

impl<T> EngineTimers<T> {
    /// Expires what is due at `now`, `budget` timers at most; how many there were. If
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

    /// The next timer that expires at `now`; it is not armed any more. Timers that
    /// expire with a setting of their clock come first, in the order in which they were armed.
    #[inline]
    pub fn pop_due(&mut self, now: &ClockReadings) -> Option<ExpiredTimer> {
        if now.sets() > self.sets {
            self.sets = now.sets();
        }
        if let Some(fired) = self.pop_notice(now) {
            return Some(fired);
        }
        let mut tried = [false; ClockBase::ALL.len()];
        loop {
            // The bases are few, and most of their queues empty.
            let mut first: Option<(ClockBase, i64)> = None;
            for base in ClockBase::ALL {
                let Some(latest_ns) = self.latest_of(base) else { continue };
                let until_ns = now.until_ns(base, latest_ns);
                if !tried[base as usize] && first.is_none_or(|(_, sooner)| until_ns < sooner) {
                    first = Some((base, until_ns));
                }
            }
            let (base, _) = first?;
            let popped = self.pop_from(base, now);
            if popped.is_some() {
                return popped;
            }
            tried[base as usize] = true;
        }
    }

    /// Device time by which a timer is to expire first, over all bases, ns; in the past
    /// if one is due. `None` if none is armed.
    #[must_use]
    pub fn earliest(&self, now: &ClockReadings) -> Option<u64> {
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
    pub(super) fn first(&self, now: &ClockReadings) -> Option<NextExpiry> {
        let firsts = ClockBase::ALL.into_iter().filter_map(|base| {
            let latest_ns = self.latest_of(base)?;
            Some(NextExpiry { base, latest_ns, until_ns: now.until_ns(base, latest_ns) })
        });
        firsts.min_by_key(|first| first.until_ns)
    }

    #[inline]
    fn latest_of(&self, base: ClockBase) -> Option<i64> {
        self.queues[base as usize].next_expiry().map(Instant::nanos)
    }

    fn pop_from(&mut self, base: ClockBase, now: &ClockReadings) -> Option<ExpiredTimer> {
        let now_ns = now.ns(base);
        let expired = self.queues[base as usize].pop_expired(Instant::from_nanos(now_ns))?;
        if base.is_settable() {
            // The timer was alive a moment ago.
            let _ = self.cancel_notice(base, expired.handle);
        }
        let id = TimerId { base, handle: expired.handle };
        let (expiry_ns, latest_ns) = (expired.expiry.nanos(), expired.latest.nanos());
        Some(ExpiredTimer { id, base, expiry_ns, latest_ns, now_ns, cause: Cause::Expiry })
    }

    /// The first timer that was armed before its clock was set and expires with that.
    fn pop_notice(&mut self, now: &ClockReadings) -> Option<ExpiredTimer> {
        if !self.has_notice(now) {
            return None;
        }
        let notice = self.notices.pop_expired(of_sets(now.sets().saturating_sub(1)))?;
        let id = *self.notices.payload(notice.handle).ok()?;
        let queue = &mut self.queues[id.base as usize];
        let expiry = queue.expiry(id.handle).ok()??;
        let latest = queue.latest(id.handle).ok()??;
        queue.cancel(id.handle).ok()?;
        Some(ExpiredTimer {
            id,
            base: id.base,
            expiry_ns: expiry.nanos(),
            latest_ns: latest.nanos(),
            now_ns: now.ns(id.base),
            cause: Cause::ClockSet,
        })
    }

    fn cancel_notice(&mut self, base: ClockBase, handle: Handle) -> Result<(), QueueError> {
        if let Some(notice) = self.queues[base as usize].payload(handle)?.notice {
            self.notices.cancel(notice)?;
        }
        Ok(())
    }
}

/// The "time" after this many settings.
fn of_sets(sets: u64) -> Instant<ClockSetTag> {
    Instant::from_nanos(i64::try_from(sets).unwrap_or(i64::MAX))
}
