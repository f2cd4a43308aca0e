//! Where the timers of one engine live, as all threads see them.
//!
//! Owns: memory for timers, which never moves; which places are free; which timers changed.
//! Must not: give memory back before the service ends: a place is used again instead.

use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use hourglass_sys::no_stop::NoStopGuard;
use hourglass_sys::{fork, futex};

use super::action::Action;
use super::clock::ServiceClock;
use super::error::ServiceError;
use super::remote::{DirtySet, TimerSlot, Wake};
use super::statistics::Counters;
use crate::engine::{ClockBase, ClockSetPolicy, EngineError};
use crate::event::Kick;

/// Timers that are made at once, and share a word of [`DirtySet`].
pub(super) const BLOCK: usize = 64;
/// Timers that share a [`DirtySet`].
pub(super) const CHUNK: usize = BLOCK * BLOCK;
/// Chunks of an engine: 1,048,576 timers.
const CHUNKS: usize = 256;

/// One timer, as all threads see it.
///
/// Its first line of memory is what an arming writes; what the engine writes lies in others.
#[repr(C, align(64))]
pub(super) struct TimerEntry {
    pub(super) slot: TimerSlot,
    /// Counts what waiting threads wait for: a sleep's end, an action's end.
    gate: AtomicU32,
    /// Which of the timers that lived here one after the other it is.
    generation: AtomicU32,
    /// Whether an owner waits for the last handle to go.
    watched: AtomicBool,
    /// Its clock, and what it does when that is set: for good, since its queue remembers it.
    pub(super) kind: AtomicU32,
    /// The class of its action plus one; 0 for an immediate action.
    pub(super) route: AtomicU32,
    /// What the action receives next; the engine's until a worker may see it.
    pub(super) published: PublishedExpiry,
    /// When it expires next, as the engine has it, and for which state that holds.
    pub(super) scheduled_ns: AtomicI64,
    pub(super) scheduled_for: AtomicU64,
    pub(super) fired: AtomicU64,
    pub(super) overruns: AtomicU64,
    pub(super) panics: AtomicU32,
    /// Locked by the thread that runs it, and by the one that drops it when it can no longer run.
    pub(super) action: Mutex<Option<Action>>,
}

#[derive(Default)]
pub(super) struct PublishedExpiry {
    pub(super) expiry_ns: AtomicI64,
    pub(super) now_ns: AtomicI64,
    pub(super) overruns: AtomicU64,
    /// The priority, and in the lowest bit whether the clock was set.
    pub(super) kind: AtomicU32,
}

impl PublishedExpiry {
    /// An expiry joined the one that waits; whether it is more urgent. Only the engine writes the
    /// kind; a worker that takes the expiry up at this moment may still find the old one.
    pub(super) fn raise(&self, priority: u32) -> bool {
        let kind = self.kind.load(Ordering::Relaxed);
        let is_more = priority > kind >> 1;
        if is_more {
            self.kind.store(priority << 1 | kind & 1, Ordering::Release);
        }
        is_more
    }
}

impl TimerEntry {
    fn new() -> TimerEntry {
        TimerEntry {
            slot: TimerSlot::new(),
            gate: AtomicU32::new(0),
            generation: AtomicU32::new(0),
            watched: AtomicBool::new(false),
            kind: AtomicU32::new(0),
            route: AtomicU32::new(0),
            published: PublishedExpiry::default(),
            scheduled_ns: AtomicI64::new(0),
            scheduled_for: AtomicU64::new(0),
            fired: AtomicU64::new(0),
            overruns: AtomicU64::new(0),
            panics: AtomicU32::new(0),
            action: Mutex::new(None),
        }
    }

    /// Ends the waits at the gate: the awaited event may have come.
    pub(super) fn open_gate(&self) {
        self.gate.fetch_add(1, Ordering::Release);
        futex::wake(&self.gate, u32::MAX);
    }

    /// Waits until `over` says something; it looks again whenever the gate was opened.
    pub(super) fn wait<T>(&self, mut over: impl FnMut() -> Option<T>) -> T {
        loop {
            let gate = self.gate.load(Ordering::Acquire);
            if let Some(ends) = over() {
                return ends;
            }
            // However it ends, the state is looked at again.
            let _ = futex::wait_until(&self.gate, gate, u64::MAX);
        }
    }

    /// A timer lives here from now on; which one.
    pub(super) fn open(&self) -> u32 {
        // Before it: a thread that sees the new timer's state sees that it is another one.
        let before = self.generation.fetch_add(1, Ordering::Relaxed);
        self.slot.open();
        before.wrapping_add(1)
    }

    pub(super) fn generation(&self) -> u32 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Whether a timer whose last handle goes, or is gone, may still act: it is not terminated yet,
    /// or its action runs.
    pub(super) fn may_act(&self, generation: u32) -> bool {
        let state = self.slot.state();
        // Last: what was seen before may be the next timer's.
        (!state.dead() || state.running()) && self.generation() == generation
    }

    /// Waits until such a timer acts no more. Not for a timer with handles: that waits for ever.
    pub(super) fn wait_for_orphan(&self, generation: u32) {
        self.wait(|| {
            self.watched.store(true, Ordering::Relaxed);
            // Either this sees that it was terminated, or the one that did sees that it is watched.
            fence(Ordering::SeqCst);
            // Of the next timer this asks for one needless look.
            let _ = self.slot.await_end();
            (!self.may_act(generation)).then_some(())
        });
    }

    /// The timer was terminated: an owner may wait for the thread that drops its last handle to do so.
    pub(super) fn terminated(&self) {
        fence(Ordering::SeqCst);
        if self.watched.load(Ordering::Relaxed) {
            self.watched.store(false, Ordering::Relaxed);
            self.open_gate();
        }
    }

    /// Takes the arming with that sequence away, and wakes the thread that slept for it.
    pub(super) fn disarm(&self, sequence: u64) {
        if self.slot.disarm(sequence) {
            self.open_gate();
        }
    }

    /// Drops the action, when it can no longer run.
    pub(super) fn retire(&self) {
        let action =
            NoStopGuard::new(|| self.action.lock().unwrap_or_else(PoisonError::into_inner)).take();
        // Dropped with nothing locked: it may own timers, and it is the user's code.
        drop(action);
    }
}

pub(super) type Block = [TimerEntry; BLOCK];

const _: () = assert!(
    std::mem::offset_of!(TimerEntry, slot) == 0 && std::mem::size_of::<TimerEntry>() <= 256
);

pub(super) struct Chunk {
    pub(super) changed: DirtySet<BLOCK>,
    blocks: [OnceLock<Arc<Block>>; BLOCK],
}

/// What the engine writes all the time, away from what threads that arm read.
#[repr(align(64))]
pub(super) struct CacheAligned<T>(T);

impl<T> std::ops::Deref for CacheAligned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

pub(super) struct TimerTable {
    pub(super) engine: u32,
    chunks: Box<[OnceLock<Arc<Chunk>>]>,
    used: AtomicUsize,
    free: Mutex<Free>,
    pub(super) wake: Wake,
    pub(super) kick: OnceLock<Kick>,
    pub(super) counters: CacheAligned<Counters>,
    pub(super) ended: AtomicU64,
    pub(super) clock: ServiceClock,
    pub(super) stop: AtomicBool,
    pub(super) is_precise: AtomicBool,
    failed: OnceLock<ServiceError>,
    is_failed: AtomicBool,
    /// Forks of the process that the engine's thread is in.
    forks: u32,
}

/// A kind of timer for which the engine's queue has places of its own.
pub(super) const KINDS: usize = 8;

pub(super) fn kind(base: ClockBase, on_set: ClockSetPolicy) -> usize {
    base as usize * 2 + usize::from(on_set == ClockSetPolicy::Expire)
}

pub(super) fn of_kind(kind: usize) -> (ClockBase, ClockSetPolicy) {
    let on_set = if kind % 2 == 1 { ClockSetPolicy::Expire } else { ClockSetPolicy::Follow };
    (ClockBase::ALL[(kind / 2) % ClockBase::ALL.len()], on_set)
}

#[derive(Default)]
struct Free {
    /// Places that a timer of the kind has lived in, which its queue remembers.
    places: [Vec<u32>; KINDS],
    used: usize,
}

impl Free {
    /// Timers that live, and terminated ones that still have a handle.
    fn held(&self) -> usize {
        self.used - self.places.iter().map(Vec::len).sum::<usize>()
    }
}

#[derive(Clone)]
pub(super) struct TableSlot {
    pub(super) index: u32,
    pub(super) chunk: Arc<Chunk>,
    pub(super) block: Arc<Block>,
}

impl TableSlot {
    #[inline]
    pub(super) fn entry(&self) -> &TimerEntry {
        &self.block[self.index as usize % BLOCK]
    }
}

impl TimerTable {
    pub(super) fn new(engine: u32, clock: ServiceClock) -> TimerTable {
        TimerTable {
            engine,
            chunks: (0..CHUNKS).map(|_| OnceLock::new()).collect(),
            used: AtomicUsize::new(0),
            free: Mutex::default(),
            wake: Wake::new(),
            kick: OnceLock::new(),
            counters: CacheAligned(Counters::default()),
            ended: AtomicU64::new(0),
            clock,
            stop: AtomicBool::new(false),
            is_precise: AtomicBool::new(true),
            failed: OnceLock::new(),
            is_failed: AtomicBool::new(false),
            forks: fork::watch(),
        }
    }

    #[inline]
    pub(super) fn is_forked(&self) -> bool {
        fork::generation() != self.forks
    }

    #[inline]
    pub(super) fn check_not_forked(&self) -> Result<(), ServiceError> {
        if self.is_forked() { Err(ServiceError::Forked) } else { Ok(()) }
    }

    /// Whether the engine serves its timers.
    #[inline]
    pub(super) fn serves(&self) -> Result<(), ServiceError> {
        self.check_not_forked()?;
        match self.is_failed.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(self.failed.get().cloned().unwrap_or(EngineError::NoDevice.into())),
        }
    }

    /// The engine's thread ends: arming fails from now on, and sleeping threads are woken with the error.
    pub(super) fn fail(&self, why: ServiceError) {
        let _ = self.failed.set(why);
        self.is_failed.store(true, Ordering::Release);
        for (_, chunk) in self.changed() {
            let blocks = chunk.blocks.iter().filter_map(OnceLock::get);
            blocks.flat_map(|block| block.iter()).for_each(TimerEntry::open_gate);
        }
    }

    pub(super) fn place(&self, index: u32) -> Option<TableSlot> {
        let number = index as usize;
        let chunk = self.chunks.get(number / CHUNK)?.get()?;
        let block = chunk.blocks[number / BLOCK % BLOCK].get()?;
        Some(TableSlot { index, chunk: Arc::clone(chunk), block: Arc::clone(block) })
    }

    /// For the engine, which looks at many.
    pub(super) fn entry(&self, index: u32) -> Option<&TimerEntry> {
        let number = index as usize;
        let chunk = self.chunks.get(number / CHUNK)?.get()?;
        let block = chunk.blocks[number / BLOCK % BLOCK].get()?;
        Some(&block[number % BLOCK])
    }

    /// A place for a timer of a kind, vacant; one of another kind does not do, since the engine's queue
    /// remembers the kind. Second: whether the engine never saw it.
    pub(super) fn take(&self, kind: usize) -> Result<(TableSlot, bool), ServiceError> {
        let mut free = self.free();
        if let Some(index) = free.places[kind].pop()
            && let Some(place) = self.place(index)
        {
            return Ok((place, false));
        }
        let number = free.used;
        let timers = free.held();
        let base = of_kind(kind).0;
        let full = || ServiceError::TooManyTimers { base, timers, places: number };
        let chunk = self.chunks.get(number / CHUNK).ok_or_else(full)?;
        let chunk = chunk.get_or_init(|| {
            let blocks = std::array::from_fn(|_| OnceLock::new());
            Arc::new(Chunk { changed: DirtySet::new(), blocks })
        });
        self.used.store(number / CHUNK + 1, Ordering::Release);
        let block = chunk.blocks[number / BLOCK % BLOCK]
            .get_or_init(|| Arc::new(std::array::from_fn(|_| TimerEntry::new())));
        free.used += 1;
        let index = u32::try_from(number).map_err(|_| full())?;
        let place = TableSlot { index, chunk: Arc::clone(chunk), block: Arc::clone(block) };
        place.entry().kind.store(kind as u32, Ordering::Release);
        Ok((place, true))
    }

    pub(super) fn release(&self, index: u32) {
        let Some(entry) = self.entry(index) else { return };
        let kind = entry.kind.load(Ordering::Acquire) as usize % KINDS;
        self.free().places[kind].push(index);
    }

    fn free(&self) -> NoStopGuard<MutexGuard<'_, Free>> {
        NoStopGuard::new(|| self.free.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn timers(&self) -> usize {
        let ended = self.ended.load(Ordering::Acquire);
        let created = self.counters.created.load(Ordering::Acquire);
        usize::try_from(created.saturating_sub(ended)).unwrap_or(usize::MAX)
    }

    pub(super) fn any_changed(&self) -> bool {
        self.changed().any(|(_, chunk)| chunk.changed.has_changes())
    }

    pub(super) fn changed(&self) -> impl Iterator<Item = (usize, &Arc<Chunk>)> {
        let used = self.used.load(Ordering::Acquire).min(CHUNKS);
        let chunks = self.chunks[..used].iter().enumerate();
        chunks.filter_map(|(number, chunk)| Some((number, chunk.get()?)))
    }

    pub(super) fn kick(&self) {
        if let Some(kick) = self.kick.get() {
            kick.kick();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places that went to one clock are not another's: the refusal says that, and counts the timers
    /// that live, not the places.
    #[test]
    fn what_is_full_is_said() {
        let table = TimerTable::new(0, ServiceClock::Os);
        let [monotonic, realtime] = [ClockBase::Monotonic, ClockBase::Realtime]
            .map(|base| kind(base, ClockSetPolicy::Follow));
        let (place, _) = table.take(monotonic).unwrap();
        // As if as many timers had lived on that clock as there are places.
        let places = CHUNKS * CHUNK;
        {
            let mut free = table.free();
            free.used = places;
            free.places[monotonic] = (1..places as u32).collect();
        }
        let refused = table.take(realtime).map(|_| ()).unwrap_err();
        let full = ServiceError::TooManyTimers { base: ClockBase::Realtime, timers: 1, places };
        assert_eq!(refused, full);
        assert!(refused.to_string().contains("all 1048576 are given to clocks"), "{refused}");
        table.release(place.index);
        assert_eq!(table.free().held(), 0);
        assert!(table.take(monotonic).is_ok_and(|(again, new)| again.index == place.index && !new));
    }
}
