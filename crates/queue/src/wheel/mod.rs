//! The wheel of timeouts: for what is nearly always cancelled.
//!
//! Owns: arming, cancelling and expiring timeouts in constant time.
//! Must not: read a clock (time is passed in), run foreign code but the closure of
//! [`TimeoutWheel::expire`], move a timeout that is waiting.

mod levels;

use hourglass_time::{ClockTag, Instant, Span};

use super::arena::NONE;
use super::lists::{Lists, TimerArena};
use super::{ExpiredEntry, Handle, QueueError};
use levels::{BUCKETS, BucketPosition, LEVELS, Levels};

/// Timeouts of one clock, each with a payload `T`: arming and cancelling take constant time, at the
/// price of firing late.
///
/// It is the wheel of Linux 4.8 and later: buckets of growing width, in which a timeout waits until
/// it is cancelled or its bucket's time has come; nothing ever cascades. (The wheel of before,
/// which does, is kept as [`CascadingWheel`](super::reference::CascadingWheel).)
///
/// **How late.** Never early. The bucket's time is less than 1/15 of the delay and a granule after
/// the expiry, the delay being counted from when it was armed; that is
/// [`latest`](ExpiredEntry::latest) when it fires. There are 64 buckets a level, each level four times as
/// coarse as the one below; the kernel's are eight times as coarse, which makes its timeouts late
/// by up to 1/7.75 of their delay. The levels reach to the end of the clock's range: no timeout is
/// cut off.
///
/// **How much at once.** Many timeouts of long delay share a bucket and are due together (10^5 of
/// 10^6 is no exception). [`pop_expired`](TimeoutWheel::pop_expired) does the work of one timeout,
/// [`expire`](TimeoutWheel::expire) of at most its budget; where a batch is larger than that, the
/// rest waits for the next call, and [`next_expiry`](TimeoutWheel::next_expiry) says meanwhile that
/// it is due. The next expiry itself is found in bounded time, at most one word of bits a level.
///
/// **Order.** Buckets come off in the order of their times, the timeouts of a bucket in the order
/// in which they got there. Two timeouts of the same expiry may lie in buckets of different width,
/// so that the one that was armed later fires first. Callers that need an order use
/// [`Queue`](super::Queue).
///
/// **Clocks.** Time passed in is taken as the latest seen if it is earlier; a timeout measures a
/// delay, which a clock that is set (`CLOCK_REALTIME`) does not. Timers on such clocks belong into a
/// [`Queue`](super::Queue).
///
/// **Memory.** 32 bytes a timeout and the payload as an `Option`, for as many as there is room; 15 KiB
/// of buckets.
///
/// ```
/// use hourglass_time::{Instant, Monotonic, Span};
/// use hourglass_queue::{QueueError, TimeoutWheel};
///
/// let at = |ms| Instant::<Monotonic>::from_zero(Span::from_millis(ms));
/// let mut wheel = TimeoutWheel::new(Span::MILLISECOND, at(0))?;
/// let request = wheel.create("request 7")?;
/// wheel.arm_after(request, at(0), Span::from_secs(5))?;
/// assert_eq!(wheel.cancel(request), Ok(true));
///
/// wheel.arm_at(request, at(20), at(5_000))?;
/// let next = wheel.next_expiry().unwrap();
/// assert!(at(5_000) <= next && next <= at(5_000 + 5_000 / 15 + 1));
/// assert_eq!(wheel.pop_expired(at(4_999)), None);
/// let expired = wheel.pop_expired(next).unwrap();
/// assert_eq!((expired.expiry, expired.latest), (at(5_000), next));
/// # Ok::<(), QueueError>(())
/// ```
#[derive(Debug)]
pub struct TimeoutWheel<C: ClockTag, T> {
    timeouts: TimerArena<C, T>,
    lists: Lists,
    levels: Levels,
    /// log2 of the granule in nanoseconds.
    shift: u32,
    /// The granule that time has come to; no bucket of an earlier time has anything in it.
    position: u64,
    /// No bucket of an earlier time than this has anything in it.
    earliest: u64,
    armed: usize,
}

impl<C: ClockTag, T> TimeoutWheel<C, T> {
    /// The finest granularity: with it the levels reach to the end of the range.
    pub const FINEST: Span = Span::from_nanos(2);

    /// A budget for [`expire`](TimeoutWheel::expire) that keeps a call below a millisecond, if the
    /// closure takes less than half a microsecond: the wheel's own part is about 0.3 ms with 10^6
    /// timeouts, each of them a cache miss.
    pub const BUDGET: usize = 1_000;

    /// An empty wheel that starts at `now`, with granules of the largest power of two nanoseconds
    /// not above `granularity`. No delay is measured finer than that.
    ///
    /// # Errors
    /// [`QueueError::TooFine`] below [`FINEST`](TimeoutWheel::FINEST).
    pub fn new(granularity: Span, now: Instant<C>) -> Result<TimeoutWheel<C, T>, QueueError> {
        if granularity < Self::FINEST {
            return Err(QueueError::TooFine { granularity, finest: Self::FINEST });
        }
        let mut wheel = TimeoutWheel {
            timeouts: TimerArena::new(),
            lists: Lists::new(LEVELS * BUCKETS),
            levels: Levels::new(),
            shift: granularity.nanos_or_zero().ilog2(),
            position: 0,
            earliest: u64::MAX,
            armed: 0,
        };
        wheel.position = wheel.granule_floor(now);
        Ok(wheel)
    }

    /// The granule: at most the granularity asked for, and more than half of it.
    #[must_use]
    pub fn granularity(&self) -> Span {
        Span::from_nanos(1 << self.shift)
    }

    /// Makes room for this many timeouts altogether; less than before changes nothing. Takes time
    /// proportional to the timeouts, as growing by itself does.
    ///
    /// # Errors
    /// [`QueueError::Full`] above about 2^32 timeouts, [`QueueError::OutOfMemory`].
    pub fn reserve(&mut self, timeouts: usize) -> Result<(), QueueError> {
        self.timeouts.reserve(timeouts)
    }

    /// Timeouts that there is room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.timeouts.room()
    }

    /// A new timeout, not armed. Without room the wheel doubles.
    ///
    /// # Errors
    /// [`QueueError::Full`] at about 2^32 timeouts, [`QueueError::OutOfMemory`].
    #[inline]
    pub fn create(&mut self, payload: T) -> Result<Handle, QueueError> {
        if let Some(room) = self.timeouts.growth_needed()? {
            self.reserve(room)?;
        }
        Ok(self.timeouts.create(payload))
    }

    /// Takes the timeout away, armed or not; its handle is stale from now on.
    #[inline]
    pub fn remove(&mut self, handle: Handle) -> Result<T, QueueError> {
        self.cancel(handle)?;
        self.timeouts.remove(handle)
    }

    /// Arms the timeout to fire at `expiry` or later, as late as the type says. An armed one is
    /// moved, unless its bucket stays the same. An expiry that is not after `now` is due at once.
    ///
    /// `now` is what the clock says. If buckets that were due before have not been emptied yet, the
    /// delay, and with it the lateness, counts from the first of those.
    #[inline]
    pub fn arm_at(
        &mut self,
        handle: Handle,
        now: Instant<C>,
        expiry: Instant<C>,
    ) -> Result<(), QueueError> {
        let waiting = &mut self.timeouts.find_mut(handle)?.kept;
        waiting.expiry = expiry;
        let list = waiting.list;
        self.advance(self.granule_floor(now));
        // What is due already does not wait for the next granule to start.
        let due = if expiry <= now { self.position } else { self.granule_ceil(expiry) };
        let BucketPosition { bucket, granule } = levels::place(self.position, due);
        // No two granules of buckets in use share a bucket, so that the same one is the same time.
        if list == bucket {
            return Ok(());
        }
        if list == NONE {
            self.armed += 1;
        } else {
            self.leave(handle.slot());
        }
        self.lists.push(&mut self.timeouts, handle.slot(), bucket);
        self.levels.occupy(bucket);
        self.earliest = self.earliest.min(granule);
        Ok(())
    }

    /// Arms the timeout to fire when `delay` has passed since `now`; see
    /// [`arm_at`](TimeoutWheel::arm_at).
    ///
    /// # Errors
    /// [`QueueError::StaleHandle`]; [`QueueError::ExpiryOutOfRange`] if the clock ends before.
    #[inline]
    pub fn arm_after(
        &mut self,
        handle: Handle,
        now: Instant<C>,
        delay: Span,
    ) -> Result<(), QueueError> {
        let longest = Instant::MAX.saturating_since(now);
        let expiry = now.checked_add(delay);
        let expiry = expiry.ok_or(QueueError::ExpiryOutOfRange { after: delay, longest })?;
        self.arm_at(handle, now, expiry)
    }

    /// Takes the timeout out of its bucket; whether it was armed. It can be armed again.
    #[inline]
    pub fn cancel(&mut self, handle: Handle) -> Result<bool, QueueError> {
        let armed = self.timeouts.find(handle)?.kept.list != NONE;
        if armed {
            self.leave(handle.slot());
            self.armed -= 1;
        }
        Ok(armed)
    }

    /// The time of the first bucket in use, when it will fire and not before; in bounded time.
    /// `None` if nothing is armed. It lies in the past only if something is due.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Instant<C>> {
        self.levels.first(self.position).map(|first| self.start_of(first.granule))
    }

    /// The next timeout that fires at `now`; it is not armed any more. One call does the work of
    /// one timeout.
    #[inline]
    pub fn pop_expired(&mut self, now: Instant<C>) -> Option<ExpiredEntry<C>> {
        let now = self.granule_floor(now);
        if now < self.earliest {
            self.position = self.position.max(now);
            return None;
        }
        let Some(first) = self.levels.first(self.position) else {
            self.earliest = u64::MAX;
            self.position = self.position.max(now);
            return None;
        };
        let due = first.granule.min(self.end());
        self.earliest = due;
        if due > now {
            self.position = self.position.max(now);
            return None;
        }
        self.position = due;
        let slot = self.lists.first(first.bucket)?;
        let (handle, waiting) = self.timeouts.at(slot)?;
        let expiry = waiting.expiry;
        self.leave(slot);
        self.armed -= 1;
        Some(ExpiredEntry { handle, expiry, latest: self.start_of(due).max(expiry) })
    }

    /// Fires what is due at `now`, `budget` timeouts at most; how many there were. If that is the
    /// budget, more may be due, and [`next_expiry`](TimeoutWheel::next_expiry) says so. `fire` may do
    /// anything with the wheel; what it arms for `now` counts towards the budget.
    pub fn expire(
        &mut self,
        now: Instant<C>,
        budget: usize,
        mut fire: impl FnMut(&mut TimeoutWheel<C, T>, ExpiredEntry<C>),
    ) -> usize {
        for fired in 0..budget {
            let Some(expired) = self.pop_expired(now) else { return fired };
            fire(self, expired);
        }
        budget
    }

    /// When an armed timeout may fire first; `None` if it is not armed.
    pub fn expiry(&self, handle: Handle) -> Result<Option<Instant<C>>, QueueError> {
        let waiting = &self.timeouts.find(handle)?.kept;
        Ok((waiting.list != NONE).then_some(waiting.expiry))
    }

    /// The timeout's payload.
    pub fn payload(&self, handle: Handle) -> Result<&T, QueueError> {
        self.timeouts.payload(handle)
    }

    /// The timeout's payload.
    pub fn payload_mut(&mut self, handle: Handle) -> Result<&mut T, QueueError> {
        self.timeouts.payload_mut(handle)
    }

    /// Timeouts there are, armed or not.
    #[must_use]
    pub fn timers(&self) -> usize {
        self.timeouts.live()
    }

    /// Timeouts armed.
    #[must_use]
    pub fn armed(&self) -> usize {
        self.armed
    }

    #[inline]
    fn leave(&mut self, slot: u32) {
        if let Some(emptied) = self.lists.take_out(&mut self.timeouts, slot) {
            self.levels.vacate(emptied);
        }
    }

    /// Lets the wheel follow the clock, up to the first bucket in use.
    #[inline]
    fn advance(&mut self, now: u64) {
        if now >= self.earliest {
            // What is known about the earliest may be old: cancelling does not look.
            let first = self.levels.first(self.position);
            self.earliest = first.map_or(u64::MAX, |first| first.granule.min(self.end()));
        }
        self.position = self.position.max(now.min(self.earliest));
    }

    /// The granule after the last: its start is the end of the clock's range.
    #[inline]
    fn end(&self) -> u64 {
        1 << (u64::BITS - self.shift)
    }

    #[inline]
    fn granule_floor(&self, time: Instant<C>) -> u64 {
        if time == Instant::MAX { self.end() } else { in_order(time) >> self.shift }
    }

    /// The first granule that does not start before a time.
    #[inline]
    fn granule_ceil(&self, time: Instant<C>) -> u64 {
        // A time in order is at least 1.
        ((in_order(time) - 1) >> self.shift) + 1
    }

    /// When a granule starts, held at the end of the range.
    #[inline]
    fn start_of(&self, granule: u64) -> Instant<C> {
        if granule >= self.end() {
            return Instant::MAX;
        }
        Instant::from_nanos(((granule << self.shift) ^ SIGN) as i64)
    }
}

const SIGN: u64 = 1 << (u64::BITS - 1);

/// Nanoseconds as a number without sign, in the same order, and never 0: an instant is never
/// `i64::MIN`.
#[inline]
fn in_order<C: ClockTag>(time: Instant<C>) -> u64 {
    (time.nanos() as u64) ^ SIGN
}

#[cfg(test)]
mod tests;
