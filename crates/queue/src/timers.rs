//! The queue of timers: exact, ordered by expiry, for what usually fires.
//!
//! Owns: arming, cancelling and expiring, by the rules of `hrtimers`.
//! Must not: read a clock (time is passed in), run foreign code but the closure of
//! [`Queue::expire`], wake a thread.

use std::fmt;
use std::marker::PhantomData;

use hourglass_time::{ClockTag, Instant, Span};

use super::arena::{Arena, SLOTS_MAX};
use super::{Handle, Heap, Key, PriorityStructure, QueueError};

/// Timers of one clock, each with a payload `T`, ordered by absolute expiry to the nanosecond.
///
/// A timer is created, armed, fires or is cancelled, may be armed again, and lives until it is
/// removed. Creating may allocate (not within the room that was reserved); arming, cancelling and
/// firing never do. All three take logarithmic time at most, also at worst, and the next expiry is
/// known in constant time.
///
/// **Order.** Timers fire by their latest time, which is expiry plus slack; equal ones in the order
/// in which they were armed, re-arming included. A timer may fire from its expiry on: when the queue
/// is looked at ([`pop_expired`](Queue::pop_expired)), timers come off its front until the
/// first one's expiry lies in the future. So a timer with slack is late only to save a wake-up, and
/// one that could fire may wait behind one that may not yet; both are the rule of the kernel's
/// `hrtimers` (expiry in the order of the latest times, "soft" and "hard"). Without slack every timer
/// fires at the first look at or after its expiry.
///
/// **Clocks.** One queue serves one clock, as `hrtimers` keep a queue a time base (2006, section
/// 4.2). Expiries are absolute, so that setting the wall clock recalculates nothing: the same
/// queue is looked at with the new time.
///
/// **Errors.** Every call with the handle of a removed timer is refused: [`QueueError::StaleHandle`].
///
/// **Memory.** With the default order 40 bytes a timer and the payload as an `Option` (so 56 with a
/// payload of eight bytes), for as many as there is room; in huge pages where the kernel grants them.
///
/// ```
/// use hourglass_time::{Instant, Monotonic, Span};
/// use hourglass_queue::{Queue, QueueError};
///
/// let at = Instant::<Monotonic>::from_nanos;
/// let mut queue: Queue<Monotonic, &str> = Queue::with_capacity(2)?;
/// let valve = queue.create("valve")?;
/// let pump = queue.create("pump")?;
/// queue.arm(valve, at(2_000), Span::ZERO)?;
/// queue.arm(pump, at(1_000), Span::from_nanos(500))?;
///
/// assert_eq!(queue.next_expiry(), Some(at(1_500)));
/// assert_eq!(queue.pop_expired(at(999)), None);
/// let expired = queue.pop_expired(at(1_200)).unwrap();
/// assert_eq!(queue.payload(expired.handle)?, &"pump");
/// assert_eq!(expired.expiry, at(1_000));
///
/// // It lives on, to be armed again or removed; another timer never answers to its handle.
/// assert_eq!(queue.remove(pump)?, "pump");
/// assert_eq!(queue.cancel(pump), Err(QueueError::StaleHandle { handle: pump }));
/// # Ok::<(), QueueError>(())
/// ```
#[derive(Debug)]
pub struct Queue<C: ClockTag, T, B: PriorityStructure = Heap> {
    timers: Arena<SoftExpiry<C>, T>,
    order: B,
    /// The sequence of the next key.
    sequence: u64,
    clock: PhantomData<fn() -> C>,
}

/// From when on a timer may fire, if it is armed.
#[derive(Debug)]
struct SoftExpiry<C: ClockTag>(Instant<C>);

impl<C: ClockTag> Default for SoftExpiry<C> {
    fn default() -> SoftExpiry<C> {
        SoftExpiry(Instant::ZERO)
    }
}

impl<C: ClockTag, T, B: PriorityStructure> Queue<C, T, B> {
    /// An empty queue without room.
    #[must_use]
    pub fn new() -> Queue<C, T, B> {
        Queue { timers: Arena::new(), order: B::default(), sequence: 0, clock: PhantomData }
    }

    /// An empty queue with room for this many timers.
    ///
    /// # Errors
    /// [`QueueError::Full`] above about 2^32 timers, [`QueueError::OutOfMemory`].
    pub fn with_capacity(timers: usize) -> Result<Queue<C, T, B>, QueueError> {
        let mut queue = Queue::new();
        queue.reserve(timers)?;
        Ok(queue)
    }

    /// Makes room for this many timers altogether; less than before changes nothing. Takes time
    /// proportional to the timers, as growing by itself does.
    ///
    /// # Errors
    /// [`QueueError::Full`] above about 2^32 timers, [`QueueError::OutOfMemory`].
    pub fn reserve(&mut self, timers: usize) -> Result<(), QueueError> {
        if timers > SLOTS_MAX {
            return Err(QueueError::Full { timers: self.timers.live() });
        }
        let reserved = self.order.reserve(timers);
        reserved.map_err(|_| QueueError::OutOfMemory { timers })?;
        self.timers.reserve(timers)
    }

    /// Timers that there is room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.timers.room()
    }

    /// A new timer, not armed. Without room the queue doubles.
    ///
    /// # Errors
    /// [`QueueError::Full`] at about 2^32 timers, [`QueueError::OutOfMemory`].
    #[inline]
    pub fn create(&mut self, payload: T) -> Result<Handle, QueueError> {
        if let Some(room) = self.timers.growth_needed()? {
            self.reserve(room)?;
        }
        Ok(self.timers.create(payload))
    }

    /// Takes the timer away, armed or not; its handle is stale from now on.
    #[inline]
    pub fn remove(&mut self, handle: Handle) -> Result<T, QueueError> {
        let payload = self.timers.remove(handle)?;
        self.order.remove(handle.slot());
        Ok(payload)
    }

    /// Arms the timer to fire from `expiry` on and by `expiry` plus `slack`, which is held at the
    /// end of the clock's range. An armed one is moved in place, and goes behind all of the same
    /// latest time. An expiry may lie in the past: the timer fires at the next look.
    ///
    /// # Errors
    /// [`QueueError::StaleHandle`], [`QueueError::NegativeSlack`].
    #[inline]
    pub fn arm(
        &mut self,
        handle: Handle,
        expiry: Instant<C>,
        slack: Span,
    ) -> Result<(), QueueError> {
        if slack.is_negative() {
            return Err(QueueError::NegativeSlack { slack });
        }
        self.timers.find_mut(handle)?.kept = SoftExpiry(expiry);
        let latest = expiry.saturating_add(slack).nanos();
        // At a billion a second it lasts 584 years.
        self.sequence = self.sequence.wrapping_add(1);
        self.order.place(handle.slot(), Key { expiry: latest, sequence: self.sequence });
        Ok(())
    }

    /// Takes the timer out of the order; whether it was armed. It can be armed again.
    #[inline]
    pub fn cancel(&mut self, handle: Handle) -> Result<bool, QueueError> {
        self.timers.find(handle)?;
        Ok(self.order.remove(handle.slot()))
    }

    /// The latest time to look at the queue again, in constant time: `None` if nothing is armed.
    /// It lies in the past only if something is due.
    #[must_use]
    #[inline]
    pub fn next_expiry(&self) -> Option<Instant<C>> {
        self.order.first().map(|first| Instant::from_nanos(first.expiry))
    }

    /// The next timer that fires at `now`; it is not armed any more. One call does the work of one
    /// timer. `now` may be earlier than before.
    #[inline]
    pub fn pop_expired(&mut self, now: Instant<C>) -> Option<ExpiredEntry<C>> {
        let first = self.order.first()?;
        let (handle, &SoftExpiry(expiry)) = self.timers.at(first.slot)?;
        if expiry > now {
            return None;
        }
        // Asked for here, what the next call looks at arrives while the order closes its gap.
        if let Some(next) = self.order.second() {
            self.timers.prefetch(next);
            self.order.prefetch(next);
        }
        self.order.remove(first.slot);
        Some(ExpiredEntry { handle, expiry, latest: Instant::from_nanos(first.expiry) })
    }

    /// Fires what is due at `now`, `budget` timers at most; how many there were. If that is the
    /// budget, more may be due, and [`next_expiry`](Queue::next_expiry) says so. `fire` may do
    /// anything with the queue; what it arms for `now` counts towards the budget, so that a timer
    /// that re-arms itself at once cannot hold the caller for ever.
    pub fn expire(
        &mut self,
        now: Instant<C>,
        budget: usize,
        mut fire: impl FnMut(&mut Queue<C, T, B>, ExpiredEntry<C>),
    ) -> usize {
        for fired in 0..budget {
            let Some(expired) = self.pop_expired(now) else { return fired };
            fire(self, expired);
        }
        budget
    }

    /// When an armed timer may fire first; `None` if it is not armed.
    pub fn expiry(&self, handle: Handle) -> Result<Option<Instant<C>>, QueueError> {
        let SoftExpiry(expiry) = self.timers.find(handle)?.kept;
        Ok(self.order.expiry(handle.slot()).map(|_| expiry))
    }

    /// By when an armed timer is to fire, expiry plus slack; `None` if it is not armed.
    pub fn latest(&self, handle: Handle) -> Result<Option<Instant<C>>, QueueError> {
        self.timers.find(handle)?;
        Ok(self.order.expiry(handle.slot()).map(Instant::from_nanos))
    }

    /// The timer's payload.
    pub fn payload(&self, handle: Handle) -> Result<&T, QueueError> {
        self.timers.payload(handle)
    }

    /// The timer's payload.
    pub fn payload_mut(&mut self, handle: Handle) -> Result<&mut T, QueueError> {
        self.timers.payload_mut(handle)
    }

    /// Timers there are, armed or not.
    #[must_use]
    pub fn timers(&self) -> usize {
        self.timers.live()
    }

    /// Timers armed.
    #[must_use]
    pub fn armed(&self) -> usize {
        self.order.len()
    }
}

impl<C: ClockTag, T, B: PriorityStructure> Default for Queue<C, T, B> {
    fn default() -> Queue<C, T, B> {
        Queue::new()
    }
}

/// A timer or timeout that has fired. It is not armed any more, but lives on.
pub struct ExpiredEntry<C: ClockTag> {
    /// The timer that expired.
    pub handle: Handle,
    /// The expiry that it was armed with; never later than the time at which it fired.
    pub expiry: Instant<C>,
    /// By when it was to fire: expiry plus slack, or the time of its bucket. If it fired later than
    /// that, the queue was not polled in between.
    pub latest: Instant<C>,
}

// Written out, because derived ones would ask the same of the tag.

impl<C: ClockTag> Clone for ExpiredEntry<C> {
    fn clone(&self) -> ExpiredEntry<C> {
        *self
    }
}

impl<C: ClockTag> Copy for ExpiredEntry<C> {}

impl<C: ClockTag> PartialEq for ExpiredEntry<C> {
    fn eq(&self, other: &ExpiredEntry<C>) -> bool {
        (self.handle, self.expiry, self.latest) == (other.handle, other.expiry, other.latest)
    }
}

impl<C: ClockTag> Eq for ExpiredEntry<C> {}

impl<C: ClockTag> fmt::Debug for ExpiredEntry<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expired")
            .field("handle", &self.handle)
            .field("expiry", &self.expiry)
            .field("latest", &self.latest)
            .finish()
    }
}
