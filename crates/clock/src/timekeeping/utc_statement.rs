//! What another source than the kernel says about UTC, and for how long that counts.
//!
//! A statement is about `CLOCK_REALTIME` at one moment. It is kept as the distance of UTC from `CLOCK_MONOTONIC`, and beside it
//! where that clock stood to `CLOCK_MONOTONIC_RAW`, which nothing slews. Let r be the rate that the kernel had been given at the
//! statement (`ADJ_FREQUENCY`, `ADJ_TICK`), and x = MONOTONIC - RAW (1 + r). While the kernel leaves its rate alone, x stays what
//! it was, and the statement's growth covers the rest. Whatever slews the clock since, by whatever call, seen or over
//! in between, moves x by exactly what it moves the clock by, and the bound is widened by as much on the side where
//! UTC then is. So no change of the rate has to be noticed when it happens.
//!
//! A step of `CLOCK_REALTIME` does not move UTC from `CLOCK_MONOTONIC`, but it says that somebody holds the statement for
//! wrong, or that the machine slept or a leap second came, of which `CLOCK_MONOTONIC` knows nothing: the statement is dropped.

use std::sync::atomic::Ordering::Acquire;
use std::sync::atomic::fence;
#[cfg(target_os = "linux")]
use std::sync::atomic::{
    AtomicU32,
    Ordering::{AcqRel, Relaxed},
};

use super::bound::{Bounds, Status};
use super::clock::Clock;
use super::clock_offsets::difference;
use super::seq_words::SeqWords;
use super::timebase::{Discipline, ReferenceClock, Timebase};
use super::utc::{FASTEST, KEPT_NS, KernelStatement, SECOND_NS, is_leap_near};

/// The longest that a statement counts, ns.
const MAX_AGE_NS: u64 = 5 * SECOND_NS;

/// What a source says about `CLOCK_REALTIME`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UtcStatement {
    /// Bound on its distance from UTC at `at_ns`, ns; [`UtcStatement::NO_BOUND`] if there is none.
    pub error_ns: u64,
    /// By how much that grows at most, parts in 10^9, while the kernel goes on at the frequency and the tick that it had
    /// been given at `at_ns`. What slews the clock otherwise is found by the [`super::Clock`].
    pub growth_ppb: u64,
    /// `CLOCK_MONOTONIC` at the latest when it held.
    pub at_ns: u64,
    /// How long before the source heard from its own, at most.
    pub age_ns: u64,
    /// Whether the source is what keeps the kernel's clock, and knows that what it tells the kernel bounds less: the
    /// kernel's bound does not answer while this statement counts.
    pub supersedes_kernel: bool,
}

impl UtcStatement {
    /// The error of a source that vouches for nothing. One that supersedes the kernel says by it that what the kernel was
    /// told bounds nothing either.
    pub const NO_BOUND: u64 = u64::MAX;

    /// The bound some time after it was said.
    #[must_use]
    pub fn error_ns(&self, since_ns: u64) -> u64 {
        self.error_ns.saturating_add(growth_ns(since_ns, self.growth_ppb))
    }
}

/// What a rate comes to, ns rounded up.
#[must_use]
pub(crate) fn growth_ns(since_ns: u64, rate_ppb: u64) -> u64 {
    let grown = u128::from(since_ns) * u128::from(rate_ppb);
    u64::try_from(grown.div_ceil(1_000_000_000)).unwrap_or(u64::MAX)
}

/// Why a statement about UTC does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UtcStatementError {
    /// The state of the kernel's clock is unknown.
    #[error("the kernel does not say how it keeps its clock: allow adjtimex in this sandbox")]
    KernelSilent,
    /// `CLOCK_REALTIME` was set since.
    #[error(
        "the clock was set, the machine slept or a leap second passed since the statement: ask its source again"
    )]
    Stepped,
    /// The rate of the clock is another one.
    #[error("the clock's rate was changed while the source was asked: ask it again")]
    RateChanged,
    /// More than 500 ppm, or an offset is taken away at a rate that the kernel does not tell.
    #[error(
        "the kernel slews its clock by more than 500 ppm, or by ADJ_OFFSET: wait until that is over"
    )]
    Slewed,
    /// `STA_UNSYNC` was set since.
    #[error(
        "the kernel's clock lost its synchronisation since the statement: ask the source again"
    )]
    LostSynchronisation,
    /// Older than 5 s, of a time before the state of the clock was read, or still to come.
    #[error(
        "the statement is of a time before the clock's state was read, still to come, or more than 5 s old: read the state, ask the source, and hand over its answer at once"
    )]
    Age,
    /// Another thread hands one over.
    #[error(
        "another thread hands a statement to this clock at this moment: let one thread do that"
    )]
    Busy,
}

/// How the kernel's clock stood before a source was asked about UTC ([`super::Clock::kernel_clock_state`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelClockState {
    /// Of the kernel's clock, if that was one all the while.
    generation: Option<u32>,
    /// `CLOCK_MONOTONIC` before and after the others.
    from_ns: u64,
    until_ns: u64,
    realtime_ns: u64,
    raw_ns: u64,
    /// `CLOCK_REALTIME` minus `CLOCK_MONOTONIC`, at least and at most.
    offset_ns: [i64; 2],
    /// `CLOCK_MONOTONIC` minus `CLOCK_MONOTONIC_RAW`, likewise.
    lead_ns: [i64; 2],
    kernel: Discipline,
}

impl KernelClockState {
    /// Asks the kernel and reads the clocks; some 0.5 us. What happens meanwhile is in the bounds.
    pub(super) fn read<B: Timebase>(base: &B) -> Result<KernelClockState, UtcStatementError> {
        let generation = base.generation();
        let kernel = base.discipline().ok_or(UtcStatementError::KernelSilent)?;
        let clocks = [
            ReferenceClock::Monotonic,
            ReferenceClock::Realtime,
            ReferenceClock::Raw,
            ReferenceClock::Monotonic,
        ];
        let [from_ns, realtime_ns, raw_ns, until_ns] = clocks.map(|clock| base.reference_ns(clock));
        fence(Acquire);
        let is_one = generation & 1 == 0 && base.generation() == generation;
        let offset_ns = [difference(realtime_ns, until_ns), difference(realtime_ns, from_ns)];
        let lead_ns = [difference(from_ns, raw_ns), difference(until_ns, raw_ns)];
        Ok(KernelClockState {
            generation: is_one.then_some(generation),
            from_ns,
            until_ns,
            realtime_ns,
            raw_ns,
            offset_ns: outward(offset_ns, 1),
            lead_ns: outward(lead_ns, 1),
            kernel,
        })
    }

    /// `CLOCK_MONOTONIC` at the latest when it was read.
    #[must_use]
    pub fn read_ns(&self) -> u64 {
        self.until_ns
    }

    fn is_slewed(&self) -> bool {
        self.kernel.slewing || self.kernel.correction.unsigned_abs() > FASTEST
    }

    /// x at least and at most, for the rate of a statement and a beginning of `CLOCK_MONOTONIC_RAW`.
    fn slewed_ns(&self, rate: i64, begin_ns: u64) -> [i64; 2] {
        let passed = i128::from(self.raw_ns) - i128::from(begin_ns);
        let by_rate = i64::try_from((passed * i128::from(rate)) >> 32).unwrap_or(i64::MAX);
        outward(self.lead_ns.map(|lead| lead.saturating_sub(by_rate)), 1)
    }
}

fn outward([least, most]: [i64; 2], by: i64) -> [i64; 2] {
    [least.saturating_sub(by), most.saturating_add(by)]
}

fn hull(a: [i64; 2], b: [i64; 2]) -> [i64; 2] {
    [a[0].min(b[0]), a[1].max(b[1])]
}

fn overlap(a: [i64; 2], b: [i64; 2]) -> bool {
    a[0] <= b[1] && b[0] <= a[1]
}

/// A statement with what it stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Vouched {
    at_ns: u64,
    error_ns: u64,
    growth_ppb: u64,
    offset_ns: [i64; 2],
    /// x, and what it is relative to.
    slewed_ns: [i64; 2],
    rate: i64,
    begin_ns: u64,
    was_synchronised: bool,
    supersedes_kernel: bool,
}

const WORDS: usize = 10;

impl Vouched {
    /// The clock stood as `before` before the source was asked, and as `after` after it answered.
    fn new(
        before: &KernelClockState,
        after: &KernelClockState,
        said: UtcStatement,
    ) -> Result<Vouched, UtcStatementError> {
        if !(before.from_ns..=after.until_ns).contains(&said.at_ns) {
            // What slewed the clock before its state was read is not known.
            return Err(UtcStatementError::Age);
        }
        if said.error_ns != UtcStatement::NO_BOUND {
            Vouched::stands(before, after)?;
        }
        let (rate, begin_ns) = (before.kernel.correction, before.raw_ns);
        let [from, to] = [before, after].map(|state| state.slewed_ns(rate, begin_ns));
        Ok(Vouched {
            at_ns: said.at_ns,
            error_ns: said.error_ns,
            growth_ppb: said.growth_ppb,
            offset_ns: hull(before.offset_ns, after.offset_ns),
            slewed_ns: hull(from, to),
            rate,
            begin_ns,
            was_synchronised: before.kernel.synchronised,
            supersedes_kernel: said.supersedes_kernel,
        })
    }

    /// Whether the clock went on as it was while a source was asked.
    fn stands(
        before: &KernelClockState,
        after: &KernelClockState,
    ) -> Result<(), UtcStatementError> {
        if before.is_slewed() || after.is_slewed() {
            return Err(UtcStatementError::Slewed);
        }
        if before.kernel.correction != after.kernel.correction {
            return Err(UtcStatementError::RateChanged);
        }
        if !overlap(before.offset_ns, after.offset_ns) {
            return Err(UtcStatementError::Stepped);
        }
        if before.kernel.synchronised && !after.kernel.synchronised {
            return Err(UtcStatementError::LostSynchronisation);
        }
        Ok(())
    }

    /// What is left of a statement that does not count any more: for as long as it would have, the kernel's bound, which it
    /// superseded, does not answer either.
    fn without_bound(self) -> Option<Vouched> {
        let error_ns = UtcStatement::NO_BOUND;
        self.supersedes_kernel.then_some(Vouched { error_ns, ..self })
    }

    /// UTC minus `CLOCK_MONOTONIC` while the kernel's clock goes on as it is now, for [`KEPT_NS`].
    fn under(&self, now: &KernelClockState) -> Result<KernelStatement, UtcStatementError> {
        let age_ns = now.until_ns.checked_sub(self.at_ns).ok_or(UtcStatementError::Age)?;
        if age_ns > MAX_AGE_NS {
            return Err(UtcStatementError::Age);
        }
        let generation = now.generation.unwrap_or(u32::MAX);
        let said = KernelStatement { generation, at_ns: now.from_ns, least_ns: 0, most_ns: 0 };
        if self.error_ns == UtcStatement::NO_BOUND {
            return Ok(said.silent());
        }
        if !overlap(self.offset_ns, now.offset_ns) {
            return Err(UtcStatementError::Stepped);
        }
        if self.was_synchronised && !now.kernel.synchronised {
            return Err(UtcStatementError::LostSynchronisation);
        }
        if now.is_slewed() {
            return Err(UtcStatementError::Slewed);
        }
        // An answer that is kept grows by 500 ppm, which is left to what slews the clock unseen (adjtime).
        let apart = now.kernel.correction.abs_diff(self.rate);
        let apart_ns = (u128::from(apart) * u128::from(KEPT_NS)) >> 32;
        let error_ns = self
            .error_ns
            .saturating_add(growth_ns(age_ns.saturating_add(KEPT_NS), self.growth_ppb))
            .saturating_add(u64::try_from(apart_ns).unwrap_or(u64::MAX))
            .saturating_add(2);
        let near = is_leap_near(now.kernel.leap, error_ns, now.realtime_ns);
        let error_ns = error_ns.saturating_add(if near { SECOND_NS } else { 0 });
        let [least, most] = outward(self.offset_ns, i64::try_from(error_ns).unwrap_or(i64::MAX));
        let slewed_ns = now.slewed_ns(self.rate, self.begin_ns);
        let behind_ns = slewed_ns[0].saturating_sub(self.slewed_ns[1]).min(0);
        let ahead_ns = slewed_ns[1].saturating_sub(self.slewed_ns[0]).max(0);
        let least_ns = least.saturating_sub(ahead_ns);
        let most_ns = most.saturating_sub(behind_ns);
        Ok(KernelStatement { least_ns, most_ns, ..said }.in_range())
    }

    fn to_words(self) -> [u64; WORDS] {
        let flags = u64::from(self.was_synchronised) | u64::from(self.supersedes_kernel) << 1;
        let [a, b, c, d, rate] =
            [self.offset_ns[0], self.offset_ns[1], self.slewed_ns[0], self.slewed_ns[1], self.rate]
                .map(i64::cast_unsigned);
        [self.at_ns, self.error_ns, self.growth_ppb, a, b, c, d, rate, self.begin_ns, flags]
    }

    /// `None` where there is no statement.
    fn from_words(words: [u64; WORDS]) -> Option<Vouched> {
        let [at_ns, error_ns, growth_ppb, a, b, c, d, rate, begin_ns, flags] = words;
        let [a, b, c, d, rate] = [a, b, c, d, rate].map(u64::cast_signed);
        (at_ns != 0).then_some(Vouched {
            at_ns,
            error_ns,
            growth_ppb,
            offset_ns: [a, b],
            slewed_ns: [c, d],
            rate,
            begin_ns,
            was_synchronised: flags & 1 != 0,
            supersedes_kernel: flags & 2 != 0,
        })
    }
}

/// What a statement comes to at this moment.
pub(super) struct VouchedNow {
    /// Of no generation (`u32::MAX`) where it may not be kept.
    pub(super) said: KernelStatement,
    /// `CLOCK_MONOTONIC`.
    pub(super) now: Bounds,
    pub(super) supersedes_kernel: bool,
}

/// The last statement that was handed to a clock.
#[derive(Debug)]
pub(super) struct StatementSlot {
    words: SeqWords<WORDS>,
    #[cfg(target_os = "linux")]
    keepers: AtomicU32,
}

impl StatementSlot {
    pub(super) const fn new() -> StatementSlot {
        StatementSlot {
            words: SeqWords::new(),
            #[cfg(target_os = "linux")]
            keepers: AtomicU32::new(0),
        }
    }

    pub(super) fn set<B: Timebase>(
        &self,
        base: &B,
        before: &KernelClockState,
        said: UtcStatement,
    ) -> Result<(), UtcStatementError> {
        let after = KernelClockState::read(base)?;
        let words = Vouched::new(before, &after, said)?.to_words();
        if self.words.write(words) { Ok(()) } else { Err(UtcStatementError::Busy) }
    }

    pub(super) fn clear(&self) {
        self.words.write([0; WORDS]);
    }

    /// What it comes to now; of one that does not count any more nothing is kept but that the kernel's bound does not
    /// count either. Takes no lock.
    pub(super) fn now<B: Timebase>(&self, base: &B) -> Option<VouchedNow> {
        let (words, turn) = self.words.read()?;
        let vouched = Vouched::from_words(words)?;
        let now = KernelClockState::read(base).ok();
        let found = now.and_then(|now| match vouched.under(&now) {
            Ok(said) => Some((said, now)),
            Err(_) => {
                let left = vouched.without_bound();
                let said = left.and_then(|left| left.under(&now).ok());
                let left = left.filter(|_| said.is_some());
                self.words.replace(turn, left.map_or([0; WORDS], Vouched::to_words));
                Some((said?, now))
            }
        });
        let Some((said, now)) = found else {
            if now.is_none() {
                self.words.replace(turn, [0; WORDS]);
            }
            return None;
        };
        let now = Bounds { earliest: now.from_ns, latest: now.until_ns, status: Status::OsClock };
        Some(VouchedNow { said, now, supersedes_kernel: vouched.supersedes_kernel })
    }
}

impl<B: Timebase> Clock<B> {
    /// How the kernel's clock stands, to be read before a source is asked about UTC ([`Clock::vouch_utc`]). About 0.5 us.
    ///
    /// # Errors
    /// [`UtcStatementError::KernelSilent`].
    pub fn kernel_clock_state(&self) -> Result<KernelClockState, UtcStatementError> {
        KernelClockState::read(&self.base)
    }

    /// Hands over what a source says of `CLOCK_REALTIME`, which was asked after `before` was read: [`Clock::utc_bounded`] answers
    /// by that or by the kernel's bound, whichever is narrower, and `Unvouched` where they contradict each other. It
    /// replaces the last statement.
    ///
    /// It counts, also where the kernel's clock is unsynchronised or its synchroniser states no bound, for 5 s at most, and
    /// does not count any more when the kernel is asked and
    /// - `CLOCK_REALTIME` was set, the machine slept or a leap second passed: its distance from `CLOCK_MONOTONIC` is another
    ///   one, by more than the readings tell;
    /// - `STA_UNSYNC` was set, and was not before: the clock was set, or its daemon lost its source;
    /// - the clock is slewed by more than 500 ppm, or by `ADJ_OFFSET`.
    ///
    /// Where it superseded the kernel's bound, that one does not answer either until those 5 s are over, or another statement
    /// comes. One without a bound ([`UtcStatement::NO_BOUND`]) counts whatever becomes of the clock.
    ///
    /// Any other slewing since, also one that began and ended unseen, is measured by `CLOCK_MONOTONIC_RAW` and added to the bound
    /// on its side. Around an announced leap second the bound is a second wider, as the kernel's. What is true of
    /// `CLOCK_MONOTONIC_RAW` is taken for granted: that it runs at one rate for 5 s, within the statement's growth.
    ///
    /// # Errors
    /// Why the statement does not count; the last one stays.
    pub fn vouch_utc(
        &self,
        before: &KernelClockState,
        said: UtcStatement,
    ) -> Result<(), UtcStatementError> {
        self.vouched.set(&self.base, before, said)?;
        self.utc.clear();
        Ok(())
    }

    /// Forgets what was handed over: the kernel's bound answers again.
    pub fn withdraw_utc(&self) {
        self.vouched.clear();
        self.utc.clear();
    }

    /// One more hands over what sources say.
    #[cfg(target_os = "linux")]
    pub(crate) fn enter_utc_keeper(&self) {
        self.vouched.keepers.fetch_add(1, Relaxed);
    }

    /// The last one of them takes the statement away.
    #[cfg(target_os = "linux")]
    pub(crate) fn leave_utc_keeper(&self) {
        if self.vouched.keepers.fetch_sub(1, AcqRel) == 1 {
            self.withdraw_utc();
        }
    }
}

#[cfg(test)]
#[path = "tests/utc_statement.rs"]
mod tests;
