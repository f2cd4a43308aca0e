//! The cascading timer wheel of Linux 1997 to 2016, as the paper describes it.
//!
//! Owns: the arrays of the paper's Table 1, the cascade, and counting what it moves.
//! Must not: be repaired. It shows why the other wheel is the way it is.
//!
//! Source: "Hrtimers and Beyond" (2006), section 4.1 and Table 1: five arrays, the first of 256 ticks,
//! four of 64 entries each as wide as the array before. Each time the first has come round, an entry
//! of the second is emptied into it, and so on upwards. "A single step of cascading moves many
//! timers"; and, section 9, to find the next expiry "the code has to walk through a large number
//! of hash buckets".

use hourglass_time::{ClockTag, Instant, Span};

use crate::arena::NONE;
use crate::lists::{Lists, TimerArena};
use crate::{ExpiredEntry, Handle, QueueError};

/// log2 of the entries of the first array, n1 = 256.
const FIRST_BITS: u32 = 8;

/// log2 of the entries of each other, n2 to n5 = 64.
const OTHER_BITS: u32 = 6;

const ARRAYS: u32 = 5;

const ENTRIES: u32 = (1 << FIRST_BITS) + (ARRAYS - 1) * (1 << OTHER_BITS);

/// The end of Table 1, in ticks.
const LONGEST: u64 = u32::MAX as u64;

/// What an advance did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdvanceCounts {
    /// Timers that fired.
    pub fired: u64,
    /// Timers that were moved to a lower array.
    pub cascaded: u64,
    /// Most timers moved in one tick.
    pub cascaded_at_once: u64,
}

/// What a search for the next expiry found, and what it cost.
#[derive(Debug)]
pub struct Search<C: ClockTag> {
    /// When the next timer fires.
    pub next: Option<Instant<C>>,
    /// Entries and timers looked at.
    pub looked_at: u64,
}

/// The paper's wheel: arming and cancelling take constant time, a tick may take any.
///
/// Not for use: [`advance`](CascadingWheel::advance) moves every timer of an entry at once and
/// walks over every tick, and has no budget, because the original had none. Timers fire at the tick
/// that begins at their expiry or after it, never early.
#[derive(Debug)]
pub struct CascadingWheel<C: ClockTag, T> {
    timers: TimerArena<C, T>,
    lists: Lists,
    tick: Span,
    /// When tick 0 began.
    origin: Instant<C>,
    base: u64,
    armed: usize,
}

impl<C: ClockTag, T> CascadingWheel<C, T> {
    /// An empty wheel whose tick 0 is `now`, with ticks of this length (the paper's were 10 ms, 1 ms
    /// and 4 ms).
    ///
    /// # Errors
    /// [`QueueError::TooFine`] for a tick that is not positive.
    pub fn new(tick: Span, now: Instant<C>) -> Result<CascadingWheel<C, T>, QueueError> {
        if !tick.is_positive() {
            return Err(QueueError::TooFine { granularity: tick, finest: Span::NANOSECOND });
        }
        let lists = Lists::new(ENTRIES as usize);
        Ok(CascadingWheel {
            timers: TimerArena::new(),
            lists,
            tick,
            origin: now,
            base: 1,
            armed: 0,
        })
    }

    /// A new timer, not armed.
    ///
    /// # Errors
    /// [`QueueError::Full`], [`QueueError::OutOfMemory`].
    pub fn create(&mut self, payload: T) -> Result<Handle, QueueError> {
        if let Some(room) = self.timers.growth_needed()? {
            self.timers.reserve(room)?;
        }
        Ok(self.timers.create(payload))
    }

    /// Takes the timer away.
    pub fn remove(&mut self, handle: Handle) -> Result<T, QueueError> {
        self.cancel(handle)?;
        self.timers.remove(handle)
    }

    /// Arms the timer, or moves it.
    ///
    /// # Errors
    /// [`QueueError::StaleHandle`]; [`QueueError::ExpiryOutOfRange`] beyond the end of Table 1,
    /// 4,294,967,295 ticks from now.
    pub fn arm(&mut self, handle: Handle, expiry: Instant<C>) -> Result<(), QueueError> {
        self.timers.find(handle)?;
        let expiry_tick = self.tick_ceil(expiry).max(self.base);
        if expiry_tick - self.base >= LONGEST {
            let now = self.start_of(self.base - 1);
            let longest = self.start_of(self.base - 1 + LONGEST).saturating_since(now);
            return Err(QueueError::ExpiryOutOfRange {
                after: expiry.saturating_since(now),
                longest,
            });
        }
        self.cancel(handle)?;
        self.timers.find_mut(handle)?.kept.expiry = expiry;
        self.put(handle.slot(), expiry_tick);
        self.armed += 1;
        Ok(())
    }

    /// Takes the timer out of its entry; whether it was armed.
    pub fn cancel(&mut self, handle: Handle) -> Result<bool, QueueError> {
        let armed = self.timers.find(handle)?.kept.list != NONE;
        if armed {
            self.lists.take_out(&mut self.timers, handle.slot());
            self.armed -= 1;
        }
        Ok(armed)
    }

    /// Processes every tick until `now`, each with the cascades that fall on it.
    pub fn advance(
        &mut self,
        now: Instant<C>,
        mut fire: impl FnMut(&mut CascadingWheel<C, T>, ExpiredEntry<C>),
    ) -> AdvanceCounts {
        let mut done = AdvanceCounts::default();
        let last = self.tick_floor(now);
        while self.base <= last {
            let cascaded = self.cascade();
            done.cascaded += cascaded;
            done.cascaded_at_once = done.cascaded_at_once.max(cascaded);
            let tick = self.base;
            self.base += 1;
            // What is armed while it is emptied goes into a later entry: `base` is past this one.
            let list = entry(0, tick);
            while let Some(slot) = self.lists.first(list) {
                self.lists.take_out(&mut self.timers, slot);
                self.armed -= 1;
                done.fired += 1;
                if let Some((handle, waiting)) = self.timers.at(slot) {
                    let latest = self.start_of(tick);
                    let expired = ExpiredEntry { handle, expiry: waiting.expiry, latest };
                    fire(self, expired);
                }
            }
        }
        done
    }

    /// Looks for the next expiry as the paper says one has to: entry by entry, and in the entry
    /// found timer by timer, in every array.
    #[must_use]
    pub fn search(&self) -> Search<C> {
        let mut looked_at = 0;
        let mut next: Option<u64> = None;
        for array in 0..ARRAYS {
            let below = bits_below(array);
            // The present entry was emptied unless its cascade is still to come.
            let emptied = self.base & ((1 << below) - 1) != 0;
            let present = (self.base >> below) + u64::from(emptied);
            for number in present..present + entries(array) {
                looked_at += 1;
                let mut least: Option<u64> = None;
                for (_, waiting) in self.lists.iter(&self.timers, entry(array, number << below)) {
                    looked_at += 1;
                    let tick = self.tick_ceil(waiting.expiry).max(self.base);
                    least = Some(least.map_or(tick, |least| least.min(tick)));
                }
                if let Some(least) = least {
                    next = Some(next.map_or(least, |next| next.min(least)));
                    break;
                }
            }
        }
        Search { next: next.map(|tick| self.start_of(tick)), looked_at }
    }

    /// When the next tick begins. The wheel has to be advanced then: it does not know when
    /// something is due without a [`search`](CascadingWheel::search).
    #[must_use]
    pub fn next_tick(&self) -> Instant<C> {
        self.start_of(self.base)
    }

    /// The array of Table 1, counted from 1, and the entry of it that the timer lies in; `None` if it
    /// is not armed.
    pub fn place(&self, handle: Handle) -> Result<Option<(u32, u32)>, QueueError> {
        let list = self.timers.find(handle)?.kept.list;
        let (first, other) = (1 << FIRST_BITS, 1 << OTHER_BITS);
        Ok(match list {
            NONE => None,
            list if list < first => Some((1, list)),
            list => Some((2 + (list - first) / other, (list - first) % other)),
        })
    }

    /// The timer's payload.
    pub fn payload(&self, handle: Handle) -> Result<&T, QueueError> {
        self.timers.payload(handle)
    }

    /// Timers armed.
    #[must_use]
    pub fn armed(&self) -> usize {
        self.armed
    }

    /// Empties the entries of the higher arrays that the lower ones have come round to; how many
    /// timers that moved.
    fn cascade(&mut self) -> u64 {
        let mut moved = 0;
        for array in 1..ARRAYS {
            if self.base & ((1 << bits_below(array)) - 1) != 0 {
                break;
            }
            let from = entry(array, self.base);
            while let Some(slot) = self.lists.first(from) {
                let Some((_, waiting)) = self.timers.at(slot) else { break };
                let expiry_tick = self.tick_ceil(waiting.expiry).max(self.base);
                self.lists.take_out(&mut self.timers, slot);
                self.put(slot, expiry_tick);
                moved += 1;
            }
        }
        moved
    }

    /// Puts a slot into the entry of Table 1.
    fn put(&mut self, slot: u32, expiry_tick: u64) {
        let array = array_of(expiry_tick - self.base);
        self.lists.push(&mut self.timers, slot, entry(array, expiry_tick));
    }

    fn tick_floor(&self, time: Instant<C>) -> u64 {
        time.saturating_since(self.origin).nanos_or_zero() / self.tick.nanos_or_zero()
    }

    fn tick_ceil(&self, time: Instant<C>) -> u64 {
        time.saturating_since(self.origin).nanos_or_zero().div_ceil(self.tick.nanos_or_zero())
    }

    /// When a tick begins, held at the end of the range.
    fn start_of(&self, tick: u64) -> Instant<C> {
        let tick = i64::try_from(tick).unwrap_or(i64::MAX);
        let since = self.tick.checked_mul(tick).unwrap_or(Span::MAX);
        self.origin.saturating_add(since)
    }
}

/// The array of a timer that is `ticks` after the next one to process.
fn array_of(ticks: u64) -> u32 {
    (0..ARRAYS - 1).find(|array| ticks >> bits_below(array + 1) == 0).unwrap_or(ARRAYS - 1)
}

/// log2 of the ticks that an entry of an array is wide.
fn bits_below(array: u32) -> u32 {
    match array {
        0 => 0,
        _ => FIRST_BITS + OTHER_BITS * (array - 1),
    }
}

fn entries(array: u32) -> u64 {
    if array == 0 { 1 << FIRST_BITS } else { 1 << OTHER_BITS }
}

/// The list of the entry of an array in which a tick lies.
fn entry(array: u32, tick: u64) -> u32 {
    let within = ((tick >> bits_below(array)) % entries(array)) as u32;
    match array {
        0 => within,
        _ => (1 << FIRST_BITS) + (array - 1) * (1 << OTHER_BITS) + within,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hourglass_time::Sim;

    fn at(tick: i64) -> Instant<Sim> {
        Instant::from_zero(Span::from_millis(tick))
    }

    fn wheel() -> CascadingWheel<Sim, i64> {
        CascadingWheel::new(Span::MILLISECOND, at(0)).unwrap()
    }

    /// "Hrtimers and Beyond", Table 1: start, end and granularity of the five arrays.
    #[test]
    fn table_1() {
        let table = [
            (1, 256, 1),
            (257, 16_384, 256),
            (16_385, 1_048_576, 16_384),
            (1_048_577, 67_108_864, 1_048_576),
            (67_108_865, 4_294_967_295, 67_108_864),
        ];
        let now = wheel().base - 1;
        for (array, (start, end, granularity)) in (0..).zip(table) {
            for ticks in [start, end] {
                assert_eq!(array_of(now + ticks - wheel().base), array, "{ticks} ticks from now");
            }
            assert_eq!(1 << bits_below(array), granularity);
        }
    }

    /// A timer lies in its entry until the one below has come round to it.
    #[test]
    fn where_a_timer_lies() {
        let mut wheel = wheel();
        let timer = wheel.create(0).unwrap();
        assert_eq!(wheel.place(timer), Ok(None));
        wheel.arm(timer, at(256)).unwrap();
        assert_eq!(wheel.place(timer), Ok(Some((1, 0))));
        wheel.arm(timer, at(3 * 256 + 7)).unwrap();
        assert_eq!(wheel.place(timer), Ok(Some((2, 3))));
        wheel.advance(at(3 * 256), |_, _| ());
        assert_eq!(wheel.place(timer), Ok(Some((1, 7))));
        wheel.arm(timer, at(4_294_967_295)).unwrap();
        assert_eq!(wheel.place(timer), Ok(Some((5, 63))));
    }

    #[test]
    fn beyond_table_1_is_refused() {
        let mut wheel = wheel();
        let timer = wheel.create(0).unwrap();
        assert_eq!(wheel.arm(timer, at(4_294_967_295)), Ok(()));
        let longest = Span::from_millis(4_294_967_295);
        let after = Span::from_millis(4_294_967_296);
        assert_eq!(
            wheel.arm(timer, at(4_294_967_296)),
            Err(QueueError::ExpiryOutOfRange { after, longest })
        );
        assert_eq!(wheel.armed(), 1);
        assert!(CascadingWheel::<Sim, ()>::new(Span::ZERO, at(0)).is_err());
    }

    /// Section 4.1: timers beyond the first array are moved at least once, and one step moves all
    /// of an entry; those cancelled before are not moved.
    #[test]
    fn one_tick_moves_a_whole_entry() {
        let mut wheel = wheel();
        let handles: Vec<Handle> = (0..1_000)
            .map(|i| {
                let handle = wheel.create(i).unwrap();
                wheel.arm(handle, at(512 + i % 256)).unwrap();
                handle
            })
            .collect();
        for handle in &handles[..100] {
            assert_eq!(wheel.cancel(*handle), Ok(true));
        }
        let mut fired = 0;
        let done = wheel.advance(at(511), |_, _| fired += 1);
        assert_eq!((done, fired), (AdvanceCounts::default(), 0));
        let done = wheel.advance(at(512), |_, _| fired += 1);
        assert_eq!((done.cascaded, done.cascaded_at_once), (900, 900));
        let done = wheel.advance(at(800), |wheel, expired| {
            assert_eq!(
                wheel.timers.payload(expired.handle).map(|i| at(512 + i % 256)),
                Ok(expired.expiry)
            );
            assert_eq!(expired.latest, expired.expiry);
            fired += 1;
        });
        assert_eq!((done.cascaded, fired, wheel.armed()), (0, 900, 0));
    }

    /// Section 9: the search walks. With one timer in the last array it looks at every entry before.
    #[test]
    fn the_next_expiry_has_to_be_searched() {
        let mut wheel = wheel();
        assert!(wheel.search().next.is_none());
        assert_eq!(wheel.search().looked_at, u64::from(ENTRIES));
        let timer = wheel.create(0).unwrap();
        wheel.arm(timer, at(4_000_000_000)).unwrap();
        let search = wheel.search();
        assert_eq!(search.next, Some(at(4_000_000_000)));
        assert!(search.looked_at > 256 + 3 * 64 + 50, "{}", search.looked_at);
    }
}
