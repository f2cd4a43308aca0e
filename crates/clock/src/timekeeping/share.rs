//! The page in a memfd: written by one process, read by others.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use hourglass_sys::memfd::{ReadOnlyWords, SharedWords};

use super::bound::{Bounds, Reading};
use super::calibration_page::{
    self, ARCHITECTURE, BYTES, MAGIC, Page, PageWords, VERSION, WORDS, word,
};
use super::line::LineValidity;
use super::native::Native;
use super::slow_path::{self, ReadKind};
use super::timebase::{ReferenceClock, SourceId, Timebase};

#[derive(Debug)]
pub(super) struct SharedPage {
    words: SharedWords,
    /// The process that writes: a forked child must not.
    writer: u32,
}

impl SharedPage {
    /// Makes shared words and copies a page to them.
    pub(super) fn create(page: &Page) -> io::Result<SharedPage> {
        let words = SharedWords::create(c"hourglass-clock", WORDS)?;
        let writer = std::process::id();
        page.copy_to(&words);
        if let Some(pid) = words.words().get(word::WRITER_PID) {
            pid.store(u64::from(writer), Ordering::Release);
        }
        Ok(SharedPage { words, writer })
    }

    /// The words, if this process may write them.
    pub(super) fn words(&self) -> Option<&SharedWords> {
        (self.writer == std::process::id()).then_some(&self.words)
    }

    pub(super) fn descriptor(&self) -> io::Result<OwnedFd> {
        self.words.as_fd().try_clone_to_owned()
    }
}

/// The reason why a file cannot be read as a calibration page.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenPageError {
    /// The file is shorter than a page.
    #[error(
        "the file has {found} bytes, a calibration page has {BYTES}; take the descriptor that `Clock::share` gives"
    )]
    Truncated {
        /// The length of the file, bytes.
        found: u64,
    },
    /// Its size is not sealed, so that its owner could take it away from under a reader.
    #[error(
        "the file is not sealed against shrinking; take the descriptor that `Clock::share` gives, not a copy of its contents"
    )]
    NotSealed,
    /// The file does not begin as a page does.
    #[error(
        "the file is not a calibration page (it begins with {found:#018x}); take the descriptor that `Clock::share` gives"
    )]
    NotAPage {
        /// The first word of the file.
        found: u64,
    },
    /// Another release of the library wrote it.
    #[error(
        "the page has version {found} and {bytes} bytes, this library reads version {VERSION} with {BYTES}; use the writer's release of Hourglass, or the reader's, on both sides"
    )]
    OtherVersion {
        /// Version of its layout.
        found: u64,
        /// The size of the page, bytes.
        bytes: u64,
    },
    /// The page was written for another processor.
    #[error(
        "the page is for ELF machine {found}, this is {ARCHITECTURE}; counters of different processors mean different things, read it natively"
    )]
    OtherArchitecture {
        /// ELF's number of its architecture.
        found: u64,
    },
    /// The page's counter cannot be read on this host.
    #[error("the page is drawn over source {} ({}), which cannot be read here; use `Clock::new`, or let the writer use one that both have (`Clock::set_source`)", .found.0, .found.name())]
    OtherCounter {
        /// The counter.
        found: SourceId,
    },
    /// The page was written in another time namespace, whose `CLOCK_MONOTONIC` began at another time.
    #[error(
        "the page's time is {apart_ns} ns from this process's CLOCK_MONOTONIC; run both in one time namespace (time_namespaces(7))"
    )]
    OtherTimeline {
        /// Distance, ns.
        apart_ns: u64,
    },
    /// The kernel does not map it.
    #[error("the file cannot be mapped: {0}")]
    NotMapped(#[source] io::Error),
}

/// The identity of a page's writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writer {
    /// The writer's process number, in its own namespace.
    pub pid: u64,
    /// When it last drew a line, ns on `CLOCK_MONOTONIC`.
    pub heartbeat_ns: u64,
    /// How many events it counted.
    pub events: u64,
    /// Whether its line is past its end: it died, stopped, or is not maintained. Readers then get
    /// the OS clock.
    pub expired: bool,
}

/// Beyond its bound by this, a page is of another time namespace: their offsets are whole seconds
/// in practice, and an interrupted reader is not that late.
const TIMELINE_NS: u64 = 500_000_000;

/// A clock that another process keeps.
///
/// Reads as [`super::Clock`] does, but never writes: past the end of the line's validity (the
/// writer died, or does not maintain it) it gives the OS clock. A writer stopped in the midst of a
/// switch is waited for some microseconds; then the line before serves, to its end. Should that
/// writer go on, its new line may begin behind times read meanwhile: by nanoseconds as a rule,
/// by up to a sixteenth of the pause where it left a counter that was ahead.
#[derive(Debug)]
pub struct PageReader<B: Timebase = Native> {
    words: ReadOnlyWords,
    base: B,
    source: Option<SourceId>,
    /// The guard that this reader found for itself, since the writer does not look at every tick. Odd
    /// at first, as no guard is.
    own_guard: AtomicU64,
}

impl PageReader<Native> {
    /// Maps the page in `file`: what [`super::Clock::share`] gives, received over a socket,
    /// inherited, or opened as `/proc/PID/fd/N`. The file may be closed afterwards.
    ///
    /// # Errors
    /// [`OpenPageError`].
    pub fn open(file: &File) -> Result<PageReader, OpenPageError> {
        PageReader::open_on(file, Native)
    }
}

impl<B: Timebase> PageReader<B> {
    /// The same over another timebase.
    ///
    /// # Errors
    /// [`OpenPageError`].
    pub fn open_on(file: &File, base: B) -> Result<PageReader<B>, OpenPageError> {
        let words = ReadOnlyWords::map(file, WORDS).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                OpenPageError::Truncated { found: file.metadata().map_or(0, |m| m.len()) }
            }
            io::ErrorKind::PermissionDenied => OpenPageError::NotSealed,
            _ => OpenPageError::NotMapped(error),
        })?;
        let header = |index| PageWords::load(&words, index, Ordering::Acquire);
        if header(word::MAGIC) != MAGIC {
            return Err(OpenPageError::NotAPage { found: header(word::MAGIC) });
        }
        let (found, bytes) = (header(word::VERSION), header(word::BYTES));
        if (found, bytes) != (VERSION, BYTES) {
            return Err(OpenPageError::OtherVersion { found, bytes });
        }
        if header(word::ARCHITECTURE) != ARCHITECTURE {
            return Err(OpenPageError::OtherArchitecture { found: header(word::ARCHITECTURE) });
        }
        let found = calibration_page::line_under(&words, header(word::TURN)).source;
        if !base.supports(found) {
            return Err(OpenPageError::OtherCounter { found });
        }
        let own = [SourceId::TSC, SourceId::CNTVCT, SourceId::HPET, SourceId::SIMULATED];
        let known = if found == SourceId::OS {
            own.into_iter().find(|source| base.supports(*source))
        } else {
            Some(found)
        };
        let reader = PageReader { words, base, source: known, own_guard: AtomicU64::new(1) };
        match reader.distance_ns() {
            Some(apart_ns) if apart_ns > TIMELINE_NS => {
                Err(OpenPageError::OtherTimeline { apart_ns })
            }
            _ => Ok(reader),
        }
    }

    /// How far the page's time is from this process's clock, beyond its bound; `None` if the page
    /// gives no time now.
    fn distance_ns(&self) -> Option<u64> {
        let ticks = |s| self.supports(s).then(|| self.base.ticks(s));
        let reading = calibration_page::bounded(&self.words, ticks, |_| true)?;
        let os_ns = self.base.reference_ns(ReferenceClock::Monotonic);
        let after_ns = os_ns.saturating_sub(reading.bounds.latest);
        Some(after_ns.max(reading.bounds.earliest.saturating_sub(os_ns)))
    }

    fn supports(&self, source: SourceId) -> bool {
        self.source == Some(source) || source == SourceId::OS
    }

    /// The time, ns on `CLOCK_MONOTONIC`'s scale; unordered, as [`super::Clock::now`].
    #[inline]
    #[must_use]
    pub fn now(&self) -> u64 {
        match calibration_page::now(&self.words, |s| self.supports(s).then(|| self.base.ticks(s))) {
            Some(ns) => ns,
            None => self.late(ReadKind::Time).ns,
        }
    }

    /// The time after all earlier instructions.
    #[inline]
    #[must_use]
    pub fn now_ordered(&self) -> u64 {
        match calibration_page::now(&self.words, |s| {
            self.supports(s).then(|| self.base.ticks_ordered(s))
        }) {
            Some(ns) => ns,
            None => self.late(ReadKind::Time).ns,
        }
    }

    /// The time between two bounds; as [`super::Clock::now_bounded`].
    #[inline]
    #[must_use]
    pub fn now_bounded(&self) -> Bounds {
        let ticks = |s| self.supports(s).then(|| self.base.ticks(s));
        match calibration_page::bounded(&self.words, ticks, |turn| self.holds(turn)) {
            Some(reading) => reading.bounds,
            None => self.late(ReadKind::Bounds).bounds,
        }
    }

    /// The time between two bounds, after all earlier instructions; as
    /// [`super::Clock::now_bounded_ordered`].
    #[inline]
    #[must_use]
    pub fn now_bounded_ordered(&self) -> Bounds {
        let ticks = |s| self.supports(s).then(|| self.base.ticks_ordered(s));
        match calibration_page::bounded(&self.words, ticks, |turn| self.holds(turn)) {
            Some(reading) => reading.bounds,
            None => self.late(ReadKind::Bounds).bounds,
        }
    }

    /// The last time that the writer published, ns: the cheapest read, and the oldest.
    #[must_use]
    pub fn recent(&self) -> u64 {
        PageWords::load(&self.words, word::RECENT_NS, Ordering::Acquire)
    }

    /// The address of the mapped page; as [`super::Clock::page_address`], until this is dropped.
    #[must_use]
    pub fn page_address(&self) -> *const u64 {
        self.words.address()
    }

    /// The processor's counter over which this reader takes the page's time, if it can read one.
    #[must_use]
    pub const fn counter(&self) -> Option<SourceId> {
        self.source
    }

    /// The guard that this reader found, as word 9 of a page is one: for readers of the page in other
    /// languages, beside the writer's.
    #[must_use]
    pub fn guard(&self) -> u64 {
        self.own_guard.load(Ordering::Relaxed)
    }

    /// The identity of the writer.
    #[must_use]
    pub fn writer(&self) -> Writer {
        let header = |index| PageWords::load(&self.words, index, Ordering::Acquire);
        let line = calibration_page::line_under(&self.words, header(word::TURN));
        let place =
            self.supports(line.source).then(|| line.place(self.base.ticks_ordered(line.source)));
        Writer {
            pid: header(word::WRITER_PID),
            heartbeat_ns: header(word::HEARTBEAT_NS),
            events: header(word::EVENTS),
            expired: place.is_none_or(|place| slow_path::is_overdue(&line, place)),
        }
    }

    /// Whether the line under `turn` keeps its bound, as the writer or this reader found, or by itself.
    #[inline(always)]
    fn holds(&self, turn: u64) -> bool {
        self.is_guarded(turn) || calibration_page::always_holds(&self.words, turn)
    }

    #[inline(always)]
    fn is_guarded(&self, turn: u64) -> bool {
        let generation = self.base.generation();
        calibration_page::guards(self.own_guard.load(Ordering::Relaxed), turn, generation)
            || calibration_page::is_guarded(&self.words, turn, generation)
    }

    #[cold]
    #[inline(never)]
    fn late(&self, wanted: ReadKind) -> Reading {
        for attempt in 0..slow_path::ATTEMPTS {
            let turn = PageWords::load(&self.words, word::TURN, Ordering::Acquire);
            let line = calibration_page::line_under(&self.words, turn);
            let switching = turn & calibration_page::SWITCHING != 0;
            if self.supports(line.source) && !(switching && attempt < slow_path::PATIENCE) {
                let place = line.place(self.base.ticks_ordered(line.source));
                let settled = turn & !calibration_page::SWITCHING;
                let holds = wanted == ReadKind::Time
                    || line.validity == LineValidity::Always
                    || self.is_guarded(settled);
                if !holds && let Some(generation) = slow_path::confirmed(&self.base, &line) {
                    let guard = calibration_page::guard_of(settled, generation);
                    self.own_guard.store(guard, Ordering::Relaxed);
                    continue;
                }
                let reading = if holds {
                    slow_path::reading(&self.base, &line, place)
                } else {
                    slow_path::os_in_place(&self.base, &line, place)
                };
                if calibration_page::is_unchanged(&self.words, turn) {
                    return reading;
                }
            }
            std::hint::spin_loop();
        }
        let os_ns = self.base.reference_ns(ReferenceClock::Monotonic);
        Reading::of_os(os_ns, 0, super::bound::Status::OsClock)
    }
}

#[cfg(test)]
#[path = "tests/share.rs"]
mod tests;
