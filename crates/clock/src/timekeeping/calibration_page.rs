//! The calibration page: all that a reader needs, in atomics, in process memory or shared.
//!
//! # Layout, version 2
//! 512 bytes, aligned to 64: 64 words of 64 bits in the byte order of the machine.
//!
//! | word | meaning |
//! |---|---|
//! | 0 | magic: [`MAGIC`] |
//! | 1 | version of this layout: [`VERSION`] |
//! | 2 | size, bytes |
//! | 3 | architecture: ELF's `e_machine` (62 x86-64, 183 aarch64) |
//! | 4 | process number of the writer, 0 if the page is not shared |
//! | 5 | heartbeat: `CLOCK_MONOTONIC` when the writer last wrote, ns |
//! | 6 | recent: the last time published, ns |
//! | 7 | how many events the writer counted |
//! | 8 | turn: bit 0 set while the writer switches; bit 1 the slot that counts; the rest counts up |
//! | 9 | guard: the generation of the kernel's clock under which the line of the turn was last found to hold, less the turn, modulo 2^32; bits 32-63 the turn, modulo 2^32 |
//! | 10 | in the writer's own memory: where that generation is read (32 bits); zero in a shared page |
//! | 11-15 | zero |
//! | 16-39 | slot 0 |
//! | 40-63 | slot 1 |
//!
//! | word of a slot | meaning |
//! |---|---|
//! | 0 | bits 0-15 source ([`SourceId`]), 16-23 shift, 24-31 status, 32-63 epoch |
//! | 1 | base of the counter, ticks |
//! | 2 | validity after the base, ticks |
//! | 3 | mult: ns = (ticks x mult) >> shift, in 128 bits |
//! | 4 | base, ns on `CLOCK_MONOTONIC`'s scale |
//! | 5 | bound on the error at the base, ns |
//! | 6 | growth of the bound, 2^-32 ns a ns |
//! | 7 | hold: what a bounded read has to look at, 0 nothing (the bound holds by itself), 1 the OS clock (nothing says that it holds), 2 the guard (in the upper half the generation under which the line was drawn) |
//! | 8, 9, 10 | mult and shift against `CLOCK_MONOTONIC_RAW`; bound on their relative error, 2^-32 |
//! | 11-16 | wall-clock time that this process set or steers, with status 0 where the kernel's decides: base (ns monotonic), wall at the base (ns since 1970, signed), rate minus one (2^-32, signed), bound (ns), its growth (2^-32), status |
//! | 17-23 | zero |
//!
//! # Reading
//! Load the turn (acquire); load the words of its slot and the counter; fence (acquire); load the
//! turn again. The same even number both times: what was read belongs together. Else again, a
//! bounded number of times. For a bounded read load, after the fence, the guard and the generation
//! of the kernel's clock too: the bound holds if the guard's lower half and the turn add up to it and its upper half is
//! the turn's lower, or hold is 0. After the fence, since
//! a reader may be interrupted for long between two loads: the generation must be the later one. The slot that the writer fills is never the one that counts, so what a
//! reader finds under an odd turn is the line up to now, whole, but about to be replaced.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU64, Ordering, fence};

#[cfg(target_os = "linux")]
use hourglass_sys::memfd::{ReadOnlyWords, SharedWords};

use super::bound::{Reading, Status};
use super::clock_offsets::RawRate;
use super::line::{self, ClockLine, LineValidity};
#[cfg(not(target_os = "linux"))]
use super::share::SharedWords;
use super::slope::Slope;
use super::timebase::SourceId;
use super::wall_clock::WallLine;

/// What the first word holds: `hgclkpag` in ASCII, the first letter in the lowest byte.
pub const MAGIC: u64 = u64::from_le_bytes(*b"hgclkpag");
/// The version of the layout described in this module.
pub const VERSION: u64 = 2;
/// Words of a page.
pub const WORDS: usize = 64;
/// Bytes of a page.
pub const BYTES: u64 = 8 * WORDS as u64;

/// ELF's number of this architecture; 0 for those that have no counter here.
pub(super) const ARCHITECTURE: u64 = if cfg!(target_arch = "x86_64") {
    62
} else if cfg!(target_arch = "aarch64") {
    183
} else {
    0
};

pub(super) mod word {
    pub(in super::super) const MAGIC: usize = 0;
    pub(in super::super) const VERSION: usize = 1;
    pub(in super::super) const BYTES: usize = 2;
    pub(in super::super) const ARCHITECTURE: usize = 3;
    #[cfg(target_os = "linux")]
    pub(in super::super) const WRITER_PID: usize = 4;
    pub(in super::super) const HEARTBEAT_NS: usize = 5;
    pub(in super::super) const RECENT_NS: usize = 6;
    pub(in super::super) const EVENTS: usize = 7;
    pub(in super::super) const TURN: usize = 8;
    pub(in super::super) const GUARD: usize = 9;
    pub(in super::super) const GENERATION_AT: usize = 10;
}

const FIRST_SLOT: usize = 16;
const SLOT_WORDS: usize = 24;

const META: usize = 0;
const BASE_TICKS: usize = 1;
const VALID_FOR: usize = 2;
const MULT: usize = 3;
const BASE_NS: usize = 4;
const BOUND_NS: usize = 5;
const GROWTH: usize = 6;
const HOLD: usize = 7;
/// Index of the first word of [`RawRate`].
const RAW: usize = 8;
/// Index of the first word of [`WallLine`].
const WALL: usize = 11;

/// Set in the turn while the writer switches.
pub(super) const SWITCHING: u64 = 1;
/// What interrupting a switch adds: the slot stays, the writer notices.
const INTERRUPTED: u64 = 4;
/// How often a writer begins again when readers interrupt it.
const SWITCH_ATTEMPTS: u32 = 64;

/// Words of memory that another thread may write during a read.
pub(super) trait PageWords {
    fn load(&self, index: usize, order: Ordering) -> u64;
}

#[cfg(target_os = "linux")]
impl PageWords for ReadOnlyWords {
    #[inline(always)]
    fn load(&self, index: usize, order: Ordering) -> u64 {
        ReadOnlyWords::load(self, index, order)
    }
}

/// A page in process memory.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Page {
    words: [AtomicU64; WORDS],
}

impl PageWords for Page {
    #[inline(always)]
    fn load(&self, index: usize, order: Ordering) -> u64 {
        self.words[index].load(order)
    }
}

/// All that a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) line: ClockLine,
    pub(super) raw: RawRate,
    pub(super) wall: WallLine,
}

#[inline(always)]
fn slot_of(turn: u64) -> usize {
    FIRST_SLOT + ((turn >> 1) & 1) as usize * SLOT_WORDS
}

/// The time now, if the page gives it without further ado. `ticks` reads the counter of a source,
/// or nothing if it is not known here.
#[inline(always)]
pub(super) fn now<W: PageWords>(words: &W, ticks: impl Fn(SourceId) -> Option<u64>) -> Option<u64> {
    let turn = words.load(word::TURN, Acquire);
    let slot = slot_of(turn);
    let meta = words.load(slot + META, Relaxed);
    let base_ticks = words.load(slot + BASE_TICKS, Relaxed);
    let valid_for = words.load(slot + VALID_FOR, Relaxed);
    let mult = words.load(slot + MULT, Relaxed);
    let base_ns = words.load(slot + BASE_NS, Relaxed);
    let ahead = ticks(source_of(meta))?.wrapping_sub(base_ticks);
    fence(Acquire);
    let whole = turn & SWITCHING == 0 && words.load(word::TURN, Relaxed) == turn;
    (whole && ahead <= valid_for).then(|| {
        let slope = Slope { mult, shift: shift_of(meta) };
        base_ns.wrapping_add(slope.ns_within(ahead))
    })
}

/// The same with the bound on its error. `holds` says of a turn whether its line still keeps the
/// bound; it is asked after the counter was read.
#[inline(always)]
pub(super) fn bounded<W: PageWords>(
    words: &W,
    ticks: impl Fn(SourceId) -> Option<u64>,
    holds: impl Fn(u64) -> bool,
) -> Option<Reading> {
    let turn = words.load(word::TURN, Acquire);
    let slot = slot_of(turn);
    let meta = words.load(slot + META, Relaxed);
    let base_ticks = words.load(slot + BASE_TICKS, Relaxed);
    let valid_for = words.load(slot + VALID_FOR, Relaxed);
    let mult = words.load(slot + MULT, Relaxed);
    let base_ns = words.load(slot + BASE_NS, Relaxed);
    let bound_ns = words.load(slot + BOUND_NS, Relaxed);
    let growth = words.load(slot + GROWTH, Relaxed);
    let ahead = ticks(source_of(meta))?.wrapping_sub(base_ticks);
    fence(Acquire);
    let whole = turn & SWITCHING == 0 && words.load(word::TURN, Relaxed) == turn;
    (whole && ahead <= valid_for && holds(turn)).then(|| {
        let elapsed_ns = Slope { mult, shift: shift_of(meta) }.ns_within(ahead);
        let error_ns = ClockLine::bound_within(bound_ns, growth, elapsed_ns);
        Reading::from_center(base_ns.wrapping_add(elapsed_ns), error_ns, status_of(meta))
    })
}

/// The guard of a turn under a generation: the turn, and their difference.
///
/// The difference alone is not enough: turn and generation move on by the same steps, so that the guard of an
/// earlier turn, which a reader found for itself, would be taken for that of a later line.
#[inline(always)]
pub(super) const fn guard_of(turn: u64, generation: u32) -> u64 {
    turn << 32 | generation.wrapping_sub(turn as u32) as u64
}

/// Whether a guard is of this turn and generation.
#[inline(always)]
pub(super) const fn guards(guard: u64, turn: u64, generation: u32) -> bool {
    guard == guard_of(turn, generation)
}

/// Whether the line under `turn` keeps its bound under a generation, read after the counter.
#[inline(always)]
pub(super) fn holds<W: PageWords>(words: &W, turn: u64, generation: u32) -> bool {
    is_guarded(words, turn, generation) || always_holds(words, turn)
}

/// Whether the page's guard is of this turn and generation.
#[inline(always)]
pub(super) fn is_guarded<W: PageWords>(words: &W, turn: u64, generation: u32) -> bool {
    guards(words.load(word::GUARD, Relaxed), turn, generation)
}

/// Whether the line under `turn` needs no guard. Since it was read, the slot may have been given to a later line.
#[inline(always)]
pub(super) fn always_holds<W: PageWords>(words: &W, turn: u64) -> bool {
    let hold = words.load(slot_of(turn) + HOLD, Relaxed);
    fence(Acquire);
    hold == line::ALWAYS && words.load(word::TURN, Relaxed) == turn
}

/// The epoch of the line that counts, and its counter's ticks.
#[inline(always)]
pub(super) fn ticks<W: PageWords>(words: &W, read: impl Fn(SourceId) -> u64) -> (u32, u64) {
    let meta = words.load(slot_of(words.load(word::TURN, Acquire)) + META, Relaxed);
    (epoch_of(meta), read(source_of(meta)))
}

/// The line that counts under `turn`; belongs together if the turn is still the same afterwards.
pub(super) fn line_under<W: PageWords>(words: &W, turn: u64) -> ClockLine {
    let slot = slot_of(turn);
    let word = |index: usize| words.load(slot + index, Relaxed);
    let meta = word(META);
    ClockLine {
        source: source_of(meta),
        status: status_of(meta),
        epoch: epoch_of(meta),
        slope: Slope { mult: word(MULT), shift: shift_of(meta) },
        base_ticks: word(BASE_TICKS),
        valid_for: word(VALID_FOR),
        base_ns: word(BASE_NS),
        bound_ns: word(BOUND_NS),
        growth: word(GROWTH),
        validity: LineValidity::from_word(word(HOLD)),
    }
}

/// Everything under `turn`; belongs together if the turn is still the same afterwards.
pub(super) fn content_under<W: PageWords>(words: &W, turn: u64) -> Content {
    let slot = slot_of(turn);
    let word = |index: usize| words.load(slot + index, Relaxed);
    Content {
        line: line_under(words, turn),
        raw: RawRate::from_words(std::array::from_fn(|i| word(RAW + i))),
        wall: WallLine::from_words(std::array::from_fn(|i| word(WALL + i))),
    }
}

/// Everything, read together; `None` if a writer was busy or stopped all the while.
pub(super) fn content<W: PageWords>(words: &W) -> Option<Content> {
    const ATTEMPTS: u32 = 1_000;
    for _ in 0..ATTEMPTS {
        let turn = words.load(word::TURN, Acquire);
        let content = content_under(words, turn);
        if is_unchanged(words, turn) && turn & SWITCHING == 0 {
            return Some(content);
        }
        std::hint::spin_loop();
    }
    None
}

/// Whether nothing was switched since `turn` was loaded.
#[inline(always)]
pub(super) fn is_unchanged<W: PageWords>(words: &W, turn: u64) -> bool {
    fence(Acquire);
    words.load(word::TURN, Relaxed) == turn
}

const fn source_of(meta: u64) -> SourceId {
    SourceId((meta & 0xffff) as u16)
}

const fn shift_of(meta: u64) -> u32 {
    ((meta >> 16) & 63) as u32
}

const fn status_of(meta: u64) -> Status {
    Status::from_bits(meta >> 24)
}

const fn epoch_of(meta: u64) -> u32 {
    (meta >> 32) as u32
}

const fn meta_of(line: &ClockLine) -> u64 {
    line.source.0 as u64
        | (line.slope.shift as u64 & 63) << 16
        | (line.status as u64) << 24
        | (line.epoch as u64) << 32
}

impl Content {
    /// What holds before anything was measured.
    pub(super) const UNDRAWN: Content =
        Content { line: ClockLine::UNDRAWN, raw: RawRate::UNKNOWN, wall: WallLine::UNKNOWN };

    /// Writes a slot; the writer's fences say when.
    fn write(&self, words: &[AtomicU64], slot: usize) {
        let put = |index: usize, value: u64| {
            if let Some(word) = words.get(slot + index) {
                word.store(value, Relaxed);
            }
        };
        let line = self.line.held();
        put(META, meta_of(&line));
        put(BASE_TICKS, line.base_ticks);
        put(VALID_FOR, line.valid_for);
        put(MULT, line.slope.mult);
        put(BASE_NS, line.base_ns);
        put(BOUND_NS, line.bound_ns);
        put(GROWTH, line.growth);
        put(HOLD, line.validity.to_word());
        self.raw.to_words().iter().enumerate().for_each(|(i, v)| put(RAW + i, *v));
        self.wall.to_words().iter().enumerate().for_each(|(i, v)| put(WALL + i, *v));
    }
}

impl Page {
    /// A page on which nothing is drawn: readers are sent to the OS clock.
    pub(super) const fn new() -> Page {
        let mut words = [const { AtomicU64::new(0) }; WORDS];
        words[word::MAGIC] = AtomicU64::new(MAGIC);
        words[word::VERSION] = AtomicU64::new(VERSION);
        words[word::BYTES] = AtomicU64::new(BYTES);
        words[word::ARCHITECTURE] = AtomicU64::new(ARCHITECTURE);
        words[FIRST_SLOT + META] = AtomicU64::new(meta_of(&ClockLine::UNDRAWN));
        words[FIRST_SLOT + MULT] = AtomicU64::new(ClockLine::UNDRAWN.slope.mult);
        let raw = RawRate::UNKNOWN.to_words();
        let mut index = 0;
        while index < raw.len() {
            words[FIRST_SLOT + RAW + index] = AtomicU64::new(raw[index]);
            index += 1;
        }
        Page { words }
    }

    /// Replaces the line that counts. Only one thread at a time may do so.
    ///
    /// `draw` receives the current line and must read the clocks itself: it runs while readers
    /// wait, so that its samples come after all times that readers received. It runs again if a
    /// reader did not wait ([`Page::interrupt`]). `None` if that went on; nothing is changed then.
    pub(super) fn switch(
        &self,
        mirror: Option<&SharedWords>,
        mut draw: impl FnMut(&ClockLine) -> Content,
    ) -> Option<Content> {
        let turn = &self.words[word::TURN];
        let mirror = mirror.map(SharedWords::words).and_then(|m| m.split_first_chunk::<WORDS>());
        let mirror = mirror.map(|(words, _)| words);
        let before = turn.load(Relaxed);
        if let Some(mirror) = mirror {
            mirror[word::TURN].store(before | SWITCHING, SeqCst);
        }
        // Sequentially consistent: the counter must not be read before others see this.
        let mut current = turn.fetch_or(SWITCHING, SeqCst) | SWITCHING;
        fence(SeqCst);
        let old = line_under(self, before);
        for _ in 0..SWITCH_ATTEMPTS {
            let new = draw(&old);
            let next = (((current >> 2).wrapping_add(1)) << 2) | ((current ^ 2) & 2);
            let guard = guard_of(next, new.line.validity.generation());
            new.write(&self.words, slot_of(next));
            self.words[word::GUARD].store(guard, Relaxed);
            if let Some(mirror) = mirror {
                new.write(mirror, slot_of(next));
                mirror[word::GUARD].store(guard, Relaxed);
            }
            match turn.compare_exchange(current, next, SeqCst, Relaxed) {
                Ok(_) => {
                    if let Some(mirror) = mirror {
                        mirror[word::TURN].store(next, Release);
                    }
                    return Some(new);
                }
                Err(interrupted) => current = interrupted,
            }
        }
        let last = turn.fetch_and(!SWITCHING, SeqCst) & !SWITCHING;
        // The line goes on as it was, for readers to confirm.
        self.words[word::GUARD].store(guard_of(last, LineValidity::Never.generation()), Release);
        if let Some(mirror) = mirror {
            mirror[word::GUARD].store(guard_of(before, LineValidity::Never.generation()), Relaxed);
            mirror[word::TURN].store(before, Release);
        }
        None
    }

    /// The line of `turn` holds under this generation too. Nothing, if another line counts now, or
    /// is about to.
    pub(super) fn confirm(&self, turn: u64, generation: u32) {
        let guard = &self.words[word::GUARD];
        let seen = guard.load(Acquire);
        // A writer says that it switches before it writes another guard, so this is the turn's own.
        if self.words[word::TURN].load(SeqCst) == turn {
            // A value that another thread wrote meanwhile is newer and stays.
            let _ = guard.compare_exchange(seen, guard_of(turn, generation), Relaxed, Relaxed);
        }
    }

    /// Where readers in other languages find the generation of the reference.
    pub(super) fn set_generation_address(&self, address: u64) {
        self.words[word::GENERATION_AT].store(address, Release);
    }

    /// Makes a writer that switches begin again, so that a reader may use what it read under
    /// `turn`: what the writer has read by now, it will read once more. False if the switch is over.
    pub(super) fn interrupt(&self, turn: u64) -> bool {
        let next = turn.wrapping_add(INTERRUPTED);
        self.words[word::TURN].compare_exchange(turn, next, SeqCst, Relaxed).is_ok()
    }

    /// What the writer wrote last. Only the writer may ask.
    pub(super) fn written(&self) -> Content {
        content_under(self, self.words[word::TURN].load(Acquire))
    }

    /// The last time published, ns.
    pub(super) fn recent_ns(&self) -> u64 {
        self.words[word::RECENT_NS].load(Acquire)
    }

    /// Publishes a time that a reader received.
    pub(super) fn set_recent(&self, mirror: Option<&SharedWords>, ns: u64) {
        let before = self.words[word::RECENT_NS].fetch_max(ns, SeqCst);
        if let Some(word) = mirror.and_then(|m| m.words().get(word::RECENT_NS)) {
            word.fetch_max(ns.max(before), Release);
        }
    }

    /// Publishes that the writer lives, and how many events it counted.
    pub(super) fn set_beat(&self, mirror: Option<&SharedWords>, now_ns: u64, events: u64) {
        let mirror = mirror.map_or(&[][..], SharedWords::words);
        for words in [&self.words[..], mirror] {
            if let Some(word) = words.get(word::HEARTBEAT_NS) {
                word.store(now_ns, Relaxed);
            }
            if let Some(word) = words.get(word::EVENTS) {
                word.store(events, Relaxed);
            }
        }
    }

    /// Copies everything to shared words: the header last, so that a reader finds a page or none.
    #[cfg(target_os = "linux")]
    pub(super) fn copy_to(&self, shared: &SharedWords) {
        let words = shared.words();
        for (to, from) in words.iter().zip(&self.words).skip(word::WRITER_PID) {
            to.store(from.load(Relaxed), Relaxed);
        }
        // Addresses of this process are nothing for others.
        if let Some(address) = words.get(word::GENERATION_AT) {
            address.store(0, Relaxed);
        }
        fence(SeqCst);
        for (to, from) in words.iter().zip(&self.words).take(word::WRITER_PID) {
            to.store(from.load(Relaxed), Release);
        }
    }
}

#[cfg(test)]
#[path = "tests/page.rs"]
mod tests;
