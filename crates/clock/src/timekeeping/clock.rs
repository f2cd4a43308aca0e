//! The clock.

#[cfg(target_os = "linux")]
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use hourglass_sys::no_stop::NoStopGuard;

use super::bound::{Bounds, Reading, Status};
use super::calibration_page::{self, Page, PageWords, word};
use super::clock_offsets::Offset;
use super::event::{ClockEventKind, Event, EventKind};
use super::line::LineValidity;
use super::native::Native;
use super::settings::ClockSettings;
use super::share::SharedPage;
use super::slope::share_of;
use super::slow_path::{self, ReadKind};
use super::timebase::{ReferenceClock, SourceId, Timebase};
use super::timekeeper::{Context, Timekeeper, TimekeeperState};
use super::utc::{self, StatementCache, Utc};
use super::utc_statement::StatementSlot;
use super::wall_clock::{Wall, WallReference, WallTime};
use crate::trust::TrustReport;

/// A clock on `CLOCK_MONOTONIC`'s scale that tells how far it may be off.
///
/// Usable at once: nothing runs before `main`, nothing blocks. It never goes backwards, whatever
/// serves: when a counter is calibrated anew, or left, or another one chosen, the new line begins
/// where the old one is. It can be a `static`, shared by reference, or put into an `Arc`.
///
/// Reading takes no lock. Calibration is done from time to time by a caller of [`Clock::maintain`], a
/// [`super::MaintenanceThread`] thread, or (unless [`ClockSettings::readers_refit`] is off) a reader that finds the
/// line at its end. None of them allocates, and a reader only tries the lock, so that reading is
/// safe in any signal handler. A calibration takes some tens of microseconds; that setting spares
/// readers this time.
///
/// What is asked before a counter serves takes microseconds: the kernel's clock source, the
/// invariant bit, KVM's stable bit, whether reads are emulated. The rest of policy `strict`
/// (offsets between CPUs, order over all of them, drift) comes with [`Clock::examine`].
///
/// After a `fork` the child's reads go on. If another thread held the clock's lock at that moment, no thread
/// of the child can maintain it: it reads the OS clock from the line's end, and the methods that take
/// the lock (all but reads and [`Clock::maintain`]) wait for ever. A child makes a clock of its own.
///
/// # What it cannot notice
/// A counter is compared with the reference now and then, and believed in between. One that leaves
/// its line (a jump beyond the line's end or before its beginning) is left by the first read after
/// that. One that stays on it (a short jump, another rate, counters of CPUs that disagree) is
/// believed until the next check, at most [`ClockSettings::longest_interval_ns`] away, and until then times
/// read may go back or be outside their bounds. All this concerns a counter that shows this process something
/// else than the kernel. What a daemon does to the kernel's own clock every bounded read
/// notices ([`Status::Steady`]); [`Clock::now`] follows it at the next calibration. A counter that stands still brings no reader
/// to the line's end: only [`Clock::maintain`] or a [`super::MaintenanceThread`] find that. A constant offset
/// and a constant wrong rate that no statement contradicts ([`ClockSettings::prior`]) are never noticed and do
/// no harm, since calibration takes them out.
#[derive(Debug)]
pub struct Clock<B: Timebase = Native> {
    page: Page,
    pub(super) base: B,
    pub(super) settings: ClockSettings,
    timekeeper: Mutex<Timekeeper>,
    pub(super) utc: StatementCache,
    pub(super) vouched: StatementSlot,
}

/// A reading of the counter, and in which epoch: ticks of two epochs do not mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticks {
    /// The counter.
    pub count: u64,
    /// Counts changes of source.
    pub epoch: u32,
}

/// A length of time by the difference clock: measured at the rate of `CLOCK_MONOTONIC_RAW`, which
/// is never slewed or set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed {
    /// ns, negative if the second reading is the earlier one.
    pub ns: i64,
    /// Bound on the error of the rate over that time, ns. The readings themselves may be some 40
    /// ns off the instructions around them where they are not ordered.
    pub error_ns: u64,
}

/// Ticks that cannot be compared any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the clock's source changed (epoch {current} now), so ticks of epochs {first} and {second} have no common measure; keep times (`Clock::now`), which stay valid"
)]
pub struct MixedTicks {
    /// Epoch of the first reading.
    pub first: u32,
    /// Epoch of the second one.
    pub second: u32,
    /// Epoch now.
    pub current: u32,
}

/// A source that cannot be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("source {} ({}) cannot be read on this machine; `hourglass clocks` lists those that can", .0.0, .0.name())]
pub struct SetSourceError(pub SourceId);

/// Time on another scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScaleTime {
    /// ns since that scale's beginning.
    pub ns: i64,
    /// Bound on the distance to what the kernel says on that scale, ns.
    pub error_ns: u64,
    /// The evidence on which the bound rests.
    pub status: Status,
}

/// The result of [`Clock::maintain`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaintenanceResult {
    /// Whether a line was drawn.
    pub drawn: bool,
    /// When to call again, ns from now.
    pub next_ns: u64,
}

impl Clock<Native> {
    /// This machine's clock with [`ClockSettings::DEFAULT`]; does nothing yet.
    #[must_use]
    pub const fn new() -> Clock {
        Clock::on(Native, ClockSettings::DEFAULT)
    }

    /// This machine's clock, kept as `settings` say; does nothing yet.
    #[must_use]
    pub const fn with(settings: ClockSettings) -> Clock {
        Clock::on(Native, settings)
    }
}

impl Default for Clock<Native> {
    fn default() -> Self {
        Clock::new()
    }
}

impl<B: Timebase> Clock<B> {
    /// A clock over any counter and reference; does nothing yet.
    #[must_use]
    pub const fn on(base: B, settings: ClockSettings) -> Clock<B> {
        Clock {
            page: Page::new(),
            base,
            settings,
            timekeeper: Mutex::new(Timekeeper::NEW),
            utc: StatementCache::new(),
            vouched: StatementSlot::new(),
        }
    }

    /// The time, ns on `CLOCK_MONOTONIC`'s scale. About 12 ns at 2.3 GHz.
    ///
    /// Unordered: the processor samples the counter while instructions around it are under way,
    /// tens of nanoseconds off, and microseconds before an earlier load that waits for memory. So
    /// a time that another thread stored may lie after one that is read behind its load;
    /// [`Clock::now_ordered`] never does.
    #[inline]
    #[must_use]
    pub fn now(&self) -> u64 {
        match calibration_page::now(&self.page, |source| Some(self.base.ticks(source))) {
            Some(ns) => ns,
            None => self.late(ReadKind::Time).ns,
        }
    }

    /// The time after all earlier instructions.
    #[inline]
    #[must_use]
    pub fn now_ordered(&self) -> u64 {
        match calibration_page::now(&self.page, |source| Some(self.base.ticks_ordered(source))) {
            Some(ns) => ns,
            None => self.late(ReadKind::Time).ns,
        }
    }

    /// The time between two bounds, which hold whatever is done to the rate of `CLOCK_MONOTONIC`
    /// meanwhile; [`Bounds::status`] says what that rests on. Nothing needs to maintain the clock for
    /// that. Where the kernel went on to another tick, the first read after it takes some 0.1 us.
    ///
    /// Unordered, as [`Clock::now`]: they bound the time at which the
    /// counter was sampled, with 40 ns for the instructions around it. To compare with times that
    /// came from other threads, take [`Clock::now_bounded_ordered`].
    #[inline]
    #[must_use]
    pub fn now_bounded(&self) -> Bounds {
        let holds = |turn| calibration_page::holds(&self.page, turn, self.base.generation());
        match calibration_page::bounded(&self.page, |source| Some(self.base.ticks(source)), holds) {
            Some(reading) => reading.bounds,
            None => self.late(ReadKind::Bounds).bounds,
        }
    }

    /// The time between two bounds, after all earlier instructions: not before any time that was
    /// read, by whatever thread, before it.
    #[inline]
    #[must_use]
    pub fn now_bounded_ordered(&self) -> Bounds {
        let holds = |turn| calibration_page::holds(&self.page, turn, self.base.generation());
        match calibration_page::bounded(
            &self.page,
            |source| Some(self.base.ticks_ordered(source)),
            holds,
        ) {
            Some(reading) => reading.bounds,
            None => self.late(ReadKind::Bounds).bounds,
        }
    }

    /// The last time that anybody published: by [`Clock::maintain`] or a calibration. One load;
    /// as old as that call.
    #[inline]
    #[must_use]
    pub fn recent(&self) -> u64 {
        match self.page.recent_ns() {
            0 => self.now(),
            ns => ns,
        }
    }

    /// The counter that serves, unordered. Differences of them are measured by
    /// [`Clock::elapsed`].
    #[inline]
    #[must_use]
    pub fn ticks(&self) -> Ticks {
        let (epoch, count) = calibration_page::ticks(&self.page, |source| self.base.ticks(source));
        Ticks { count, epoch }
    }

    /// The time between two readings of the counter.
    ///
    /// # Errors
    /// [`MixedTicks`] if the source changed between them or since.
    pub fn elapsed(&self, first: Ticks, second: Ticks) -> Result<Elapsed, MixedTicks> {
        let content =
            calibration_page::content(&self.page).unwrap_or(calibration_page::Content::UNDRAWN);
        let current = content.line.epoch;
        if first.epoch != current || second.epoch != current {
            return Err(MixedTicks { first: first.epoch, second: second.epoch, current });
        }
        let ahead = second.count.wrapping_sub(first.count);
        let backwards = ahead > u64::MAX / 2;
        let length = if backwards { ahead.wrapping_neg() } else { ahead };
        let length_ns = content.raw.slope.ns_floor(length);
        let ns = i64::try_from(length_ns).unwrap_or(i64::MAX);
        Ok(Elapsed {
            ns: if backwards { -ns } else { ns },
            error_ns: share_of(length_ns, content.raw.error).saturating_add(1),
        })
    }

    /// The time on a scale of the kernel. Other scales than [`ReferenceClock::Monotonic`] are read from the kernel,
    /// since each may be set or go on by itself at any moment.
    #[must_use]
    pub fn now_on(&self, scale: ReferenceClock) -> ScaleTime {
        if scale != ReferenceClock::Monotonic {
            let ns = i64::try_from(self.base.reference_ns(scale)).unwrap_or(i64::MAX);
            return ScaleTime { ns, error_ns: 1, status: Status::OsClock };
        }
        let bounds = self.now_bounded();
        let ns = i64::try_from(bounds.middle()).unwrap_or(i64::MAX);
        ScaleTime { ns, error_ns: bounds.error_ns(), status: bounds.status }
    }

    /// Wall-clock time, with a bound on its error against UTC if anybody vouches for it.
    ///
    /// Unless it was set or is steered here, each read asks the kernel (about 0.5 us), so that a step of its clock, a
    /// greater error and the loss of synchronisation are seen at once. Around a leap second that the kernel announces the
    /// bound is a second wider. Nothing needs to maintain the clock for it.
    #[must_use]
    pub fn wall(&self) -> WallTime {
        let content =
            calibration_page::content(&self.page).unwrap_or(calibration_page::Content::UNDRAWN);
        if content.wall.follows_kernel() {
            return utc::of_kernel(&self.base).0;
        }
        let bounds = self.now_bounded();
        content.wall.at(bounds.middle(), bounds.error_ns())
    }

    /// UTC between two bounds, if anybody vouches for any: [`Clock::wall`] at the cost of a bounded read.
    ///
    /// The kernel is asked (about 1 us) when its clock went on to another generation, which is at each of its ticks, at
    /// every step and every leap second; reads in between take its last answer, whose bound grows by 500 ppm. So a
    /// greater error and the loss of synchronisation are seen at the kernel's next tick, 1 to 10 ms later, or after
    /// 0.1 s where none comes; a step and a leap second at once. A clock whose kernel shows no generation asks at each read.
    ///
    /// The bound holds while what the daemon states to the kernel holds. A statement of another source, if there is one, is
    /// asked for beside the kernel's ([`Clock::vouch_utc`]). `Unvouched` while the clock is slewed by more than
    /// 500 ppm.
    ///
    /// Unordered, as [`Clock::now_bounded`].
    #[inline]
    #[must_use]
    pub fn utc_bounded(&self) -> Utc {
        let now = self.now_bounded();
        fence(Ordering::Acquire);
        let turn = self.page.load(word::TURN, Ordering::Relaxed);
        match self.utc.at(calibration_page::guard_of(turn, self.base.generation()), now) {
            Some(utc) => utc,
            None => self.utc_asked(),
        }
    }

    #[cold]
    #[inline(never)]
    fn utc_asked(&self) -> Utc {
        // A sandbox that forbids the question sets `errno`.
        #[cfg(target_os = "linux")]
        let _kept = hourglass_sys::caller_state::keep();
        let turn = self.page.load(word::TURN, Ordering::Acquire);
        let content =
            calibration_page::content(&self.page).unwrap_or(calibration_page::Content::UNDRAWN);
        if !content.wall.follows_kernel() {
            let now = self.now_bounded();
            return content.wall.at(now.middle(), now.error_ns()).into();
        }
        let (utc, said) = utc::of_both(utc::of_kernel(&self.base), self.vouched.now(&self.base));
        if let Some(said) = said {
            self.utc.keep(calibration_page::guard_of(turn, said.generation), &said);
        }
        utc
    }

    /// Sets wall-clock time of this clock (not of the kernel). It may step.
    pub fn set_wall(&self, said: WallReference) {
        self.change(|timekeeper, _| timekeeper.wall.set(said));
    }

    /// Steers wall-clock time of this clock by an external reference, which is to come every some
    /// seconds. Errors up to 128 ms are slewed away, larger ones stepped.
    pub fn steer_wall(&self, said: WallReference) {
        self.change(|timekeeper, context| {
            let kernel = Offset::measure(context.base, ReferenceClock::Realtime);
            timekeeper.wall.steer(said, kernel);
        });
    }

    /// Lets the kernel say again what wall-clock time is.
    pub fn release_wall(&self) {
        self.change(|timekeeper, _| timekeeper.wall = Wall::FOLLOWING);
    }

    /// Does what is due: judges the machine, looks for reasons not to trust the counter, calibrates.
    /// At most some tens of microseconds; nothing if another thread is at it or nothing is due.
    /// Not for signal handlers.
    pub fn maintain(&self) -> MaintenanceResult {
        /// How soon to come back when another thread is at it.
        const BUSY_NS: u64 = 1_000_000;
        let Some(mut timekeeper) = self.try_keeper() else {
            return MaintenanceResult { drawn: false, next_ns: BUSY_NS };
        };
        let drawn = timekeeper.update(&self.context(), false);
        let shared = timekeeper.shared.as_ref().and_then(SharedPage::words);
        self.page.set_recent(shared, self.now_under_lock());
        MaintenanceResult {
            drawn,
            next_ns: timekeeper.next_ns(self.base.reference_ns(ReferenceClock::Monotonic)),
        }
    }

    /// Gathers the whole evidence of policy `strict` about the counter that serves, offsets between
    /// CPUs and order over all of them included, and leaves it if anything speaks against it
    /// ([`EventKind::Untrusted`]). About 0.1 s, in threads on the CPUs that the caller may run on.
    /// A [`super::MaintenanceThread`] does it once for each adoption ([`ClockSettings::examine`]).
    pub fn examine(&self) -> TrustReport {
        let (source, epoch) = {
            let timekeeper = self.timekeeper();
            (timekeeper.source, timekeeper.epoch)
        };
        if source != SourceId::OS {
            let against = self.base.examine(source, self.settings.root());
            let mut timekeeper = self.timekeeper();
            if let (Some(reason), true) = (against, timekeeper.epoch == epoch) {
                let now_ns = self.base.reference_ns(ReferenceClock::Monotonic);
                timekeeper.fail_over(&self.context(), now_ns, ClockEventKind::Untrusted { reason });
            }
        }
        self.trust()
    }

    /// Changes the source by hand, without a step; every time read so far stays valid. A counter
    /// that failed a check is thereby trusted again.
    ///
    /// # Errors
    /// [`SetSourceError`] if it cannot be read here; nothing is changed then.
    pub fn set_source(&self, source: SourceId) -> Result<(), SetSourceError> {
        if !self.base.supports(source) {
            return Err(SetSourceError(source));
        }
        self.timekeeper().change_by_hand(&self.context(), source);
        Ok(())
    }

    /// The source that serves.
    #[must_use]
    pub fn source(&self) -> SourceId {
        self.timekeeper().source
    }

    /// The latest events, oldest first.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        self.timekeeper().log.latest()
    }

    /// How often something happened.
    #[must_use]
    pub fn count(&self, kind: EventKind) -> u64 {
        self.timekeeper().log.count(kind)
    }

    /// Puts the page into a memfd, if it is in none yet, and gives a descriptor that other
    /// processes read it by ([`super::PageReader`]). A forked child's copy of the clock stops
    /// writing to it.
    ///
    /// # Errors
    /// No descriptors or memory left; a kernel before 5.1.
    #[cfg(target_os = "linux")]
    pub fn share(&self) -> io::Result<OwnedFd> {
        let mut timekeeper = self.timekeeper();
        let shared = match timekeeper.shared.take() {
            Some(shared) if shared.words().is_some() => shared,
            _ => SharedPage::create(&self.page)?,
        };
        let descriptor = shared.descriptor();
        timekeeper.shared = Some(shared);
        descriptor
    }

    /// Where this clock's page lies: [`WORDS`](super::calibration_page::WORDS) words of 64 bits, for readers in
    /// other languages, who read it as [`super::calibration_page`] says, go to [`Clock::now`] for whatever it does
    /// not simply tell, and never write. It stays where the clock stays.
    #[must_use]
    pub const fn page_address(&self) -> *const u64 {
        (&raw const self.page).cast()
    }

    /// Where the kernel's last answer about UTC lies, for readers in other languages: five words of 64 bits. The first is odd
    /// while the others are written; then the guard under which they hold, when the kernel was asked, and what UTC is
    /// ahead of `CLOCK_MONOTONIC` at least and at most, ns. They read it as [`Clock::utc_bounded`] does, go to that for
    /// whatever it does not tell, and never write.
    #[must_use]
    pub const fn utc_address(&self) -> *const u64 {
        (&raw const self.utc).cast()
    }

    /// Whether a counter serves steadily, and the settings ask for an examination.
    pub(super) fn is_to_be_examined(&self) -> bool {
        self.settings.examine && matches!(self.line_status(), Status::Steady | Status::Assumed)
    }

    /// What the line rests on that serves now, whether bounded reads take it or the OS clock.
    pub(super) fn line_status(&self) -> Status {
        calibration_page::content(&self.page)
            .unwrap_or(calibration_page::Content::UNDRAWN)
            .line
            .status
    }

    fn context(&self) -> Context<'_, B> {
        Context { page: &self.page, base: &self.base, settings: &self.settings }
    }

    /// A timekeeper that panicked left a whole page behind, so that its state may be used.
    pub(super) fn timekeeper(&self) -> NoStopGuard<MutexGuard<'_, Timekeeper>> {
        NoStopGuard::new(|| self.timekeeper.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn try_keeper(&self) -> Option<NoStopGuard<MutexGuard<'_, Timekeeper>>> {
        NoStopGuard::maybe(|| match self.timekeeper.try_lock() {
            Ok(timekeeper) => Some(timekeeper),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        })
    }

    /// Changes what stands beside the line, and publishes it under the line as it is.
    fn change(&self, change: impl FnOnce(&mut Timekeeper, &Context<'_, B>)) {
        let mut timekeeper = self.timekeeper();
        let context = self.context();
        if timekeeper.state == TimekeeperState::Fresh {
            timekeeper.update(&context, false);
        }
        change(&mut timekeeper, &context);
        timekeeper.publish(&context, |old| *old);
    }

    /// The time, read while this thread keeps the clock.
    fn now_under_lock(&self) -> u64 {
        match calibration_page::now(&self.page, |source| Some(self.base.ticks_ordered(source))) {
            Some(ns) => ns,
            None => self.page.recent_ns(),
        }
    }

    /// Computes the time where the page alone does not give it: the clock was never calibrated, the
    /// line is at its end, the counter is behind its base, a writer is at work, or the kernel's
    /// clock went on to another generation (at every tick of the kernel).
    #[cold]
    #[inline(never)]
    fn late(&self, wanted: ReadKind) -> Reading {
        let mut may_refit = self.settings.readers_refit;
        for attempt in 0..slow_path::ATTEMPTS {
            let turn = self.page.load(word::TURN, Ordering::Acquire);
            let line = calibration_page::line_under(&self.page, turn);
            let place = line.place(self.base.ticks_ordered(line.source));
            let switching = turn & calibration_page::SWITCHING != 0;
            let settled = turn & !calibration_page::SWITCHING;
            let holds = wanted == ReadKind::Time
                || line.validity == LineValidity::Always
                || calibration_page::is_guarded(&self.page, settled, self.base.generation());
            if !holds
                && (!switching || attempt >= slow_path::PATIENCE)
                && let Some(generation) = slow_path::confirmed(&self.base, &line)
            {
                self.page.confirm(settled, generation);
                continue;
            }
            // A line that is drawn anew would be held by nothing, either, if this one never was.
            let left = !holds && matches!(line.validity, LineValidity::Under(_));
            if may_refit && !switching && (left || slow_path::is_overdue(&line, place)) {
                may_refit = false;
                // The reader may be a signal handler, or be cancelled while a calibration opens and reads files.
                #[cfg(target_os = "linux")]
                let _kept = hourglass_sys::caller_state::keep();
                if let Some(mut timekeeper) = self.try_keeper() {
                    timekeeper
                        .update(&self.context(), calibration_page::is_unchanged(&self.page, turn));
                    continue;
                }
            }
            let reading = if holds {
                slow_path::reading(&self.base, &line, place)
            } else {
                slow_path::os_in_place(&self.base, &line, place)
            };
            let whole = if !switching {
                calibration_page::is_unchanged(&self.page, turn)
            } else if attempt < slow_path::PATIENCE {
                false
            } else {
                // The writer was interrupted in the midst: it shall begin again, after this read.
                self.page.interrupt(turn)
            };
            if whole {
                return reading;
            }
            std::hint::spin_loop();
        }
        Reading::of_os(self.base.reference_ns(ReferenceClock::Monotonic), 0, Status::OsClock)
    }
}

#[cfg(test)]
#[path = "tests/clock.rs"]
mod tests;
