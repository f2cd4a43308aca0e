//! Wall-clock time as the kernel tells it, with the bound on its error against UTC.
//!
//! [`super::Clock::wall`] asks the kernel at each read, since a step, a leap second, a greater error and the loss of
//! synchronisation come at any moment. [`super::Clock::utc_bounded`] keeps what was said ([`StatementCache`]) for as long as the
//! kernel's clock goes on under one generation, at most [`KEPT_NS`]: every step, every leap second and every tick of the
//! kernel is another generation, so that the distance of the wall clock from the monotonic one stays what it was. A
//! greater error and the loss of synchronisation are no generation of their own: they are seen at the kernel's next
//! tick. Until then the bound is what was vouched for, grown by the kernel's 500 ppm.
//!
//! No source vouches by a bound that began at 0 ([`states_bound`]), nor while the clock is slewed faster than that: the daemon that slews it may be dead, and the clock goes on
//! at that rate.

use std::sync::atomic::Ordering::Acquire;
use std::sync::atomic::fence;

use hourglass_time::{Bounded, Instant, Realtime};

use super::bound::Bounds;
use super::clock_offsets::difference;
use super::seq_words::SeqWords;
use super::timebase::{Discipline, Leap, ReferenceClock, Timebase};
use super::utc_statement::VouchedNow;
use super::wall_clock::{WallStatus, WallTime};

/// How often the kernel is asked again after its clock was set meanwhile.
const TRIES: u32 = 4;
pub(super) const SECOND_NS: u64 = 1_000_000_000;
/// The kernel lets its bound grow by 500 ppm, each second at once (`second_overflow`, `MAXFREQ`).
const GROWTH_PPM: u64 = 500;
/// A rate above which the clock leaves its bound, 2^-32: 500 ppm.
pub(super) const FASTEST: u64 = 2_147_484;
/// How late a tick may come that begins a second, or a leap second (HZ = 100).
const LATE_NS: u64 = 10_000_000;
/// How long an answer of the kernel serves where no tick of it comes. A leap second that is 2 s away when the kernel
/// is asked is still to come by then.
pub(super) const KEPT_NS: u64 = 100_000_000;

/// Whether the kernel's `maxerror`, in ns, is the statement of a synchroniser about UTC. systemd-timesyncd, ptp4l and phc2sys
/// set it to 0, whatever the error of their own source, to have the kernel count anew, by 500 us each second. Another that
/// happens to state a multiple of this is refused with them.
#[must_use]
pub const fn states_bound(max_error_ns: u64) -> bool {
    const OF_SECOND_NS: u64 = SECOND_NS / 1_000_000 * GROWTH_PPM;
    !max_error_ns.is_multiple_of(OF_SECOND_NS)
}

/// UTC at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Utc {
    /// It is in this interval.
    Bounded(UtcInterval),
    /// No source vouches for the wall clock: it is not synchronised, or the kernel does not say.
    Unvouched,
}

/// From when to when UTC is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UtcInterval {
    /// ns since 1970.
    pub earliest_ns: i64,
    /// ns since 1970.
    pub latest_ns: i64,
    /// Who vouches for it.
    pub status: WallStatus,
}

impl Utc {
    /// The interval, if anybody vouches for one.
    #[must_use]
    pub const fn interval(self) -> Option<UtcInterval> {
        match self {
            Utc::Bounded(interval) => Some(interval),
            Utc::Unvouched => None,
        }
    }

    /// Whether this moment was before the other one: `None` if that is not known, because the intervals overlap or
    /// no source vouches for one of them.
    #[must_use]
    pub fn is_before(self, other: Utc) -> Option<bool> {
        self.interval()?.is_before(other.interval()?)
    }
}

impl From<WallTime> for Utc {
    fn from(wall: WallTime) -> Utc {
        let Some(error_ns) = wall.error_ns else { return Utc::Unvouched };
        let error_ns = held(error_ns);
        Utc::Bounded(UtcInterval {
            earliest_ns: wall.ns.saturating_sub(error_ns),
            latest_ns: wall.ns.saturating_add(error_ns),
            status: wall.status,
        })
    }
}

impl UtcInterval {
    /// Whether this moment was before the other one: `None` if the intervals overlap.
    #[must_use]
    pub const fn is_before(self, other: UtcInterval) -> Option<bool> {
        if self.latest_ns < other.earliest_ns {
            Some(true)
        } else if self.earliest_ns >= other.latest_ns {
            Some(false)
        } else {
            None
        }
    }

    /// Half the distance between the two, ns rounded up.
    #[must_use]
    pub const fn error_ns(self) -> u64 {
        self.latest_ns.abs_diff(self.earliest_ns).div_ceil(2)
    }

    /// As instants.
    #[must_use]
    pub fn instants(self) -> Bounded<Instant<Realtime>> {
        let [earliest, latest] = [self.earliest_ns, self.latest_ns].map(Instant::from_nanos);
        Bounded::new(earliest, latest).unwrap_or(Bounded::exact(earliest))
    }
}

/// What the kernel said, for as long as its generation lasts. No source vouches where it is at least more than at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KernelStatement {
    pub(super) generation: u32,
    /// When it was asked, ns on `CLOCK_MONOTONIC`.
    pub(super) at_ns: u64,
    /// UTC minus `CLOCK_MONOTONIC`, at least and at most, ns.
    pub(super) least_ns: i64,
    pub(super) most_ns: i64,
}

/// The longest that a machine runs: 73 years; with it the farthest that UTC is from its beginning, so that their sum and
/// what a bound grows by have room: to the year 2189.
const LONGEST_UPTIME_NS: u64 = u64::MAX / 8;
const FARTHEST_NS: i64 = i64::MAX / 4 * 3 - SECOND_NS.cast_signed();

impl KernelStatement {
    /// That no source vouches, where sums might overflow.
    pub(super) fn in_range(self) -> KernelStatement {
        let is_near = |ns: i64| (-FARTHEST_NS..=FARTHEST_NS).contains(&ns);
        let sums =
            self.at_ns <= LONGEST_UPTIME_NS && is_near(self.least_ns) && is_near(self.most_ns);
        if sums { self } else { self.silent() }
    }

    /// That no source vouches.
    pub(super) fn silent(self) -> KernelStatement {
        KernelStatement { least_ns: i64::MAX, most_ns: i64::MIN, ..self }
    }

    /// UTC at a moment under the same generation; `None` if that is too long after.
    #[inline(always)]
    pub(super) fn at(&self, now: Bounds) -> Option<Utc> {
        let age_ns = now.latest.saturating_sub(self.at_ns);
        if age_ns > KEPT_NS {
            return None;
        }
        if self.least_ns > self.most_ns {
            return Some(Utc::Unvouched);
        }
        // None of these sums overflows: [`KernelStatement::in_range`], and now is at most 0.1 s after it.
        let growth_ns = growth(age_ns).cast_signed() + 1;
        let [earliest, latest] = [now.earliest, now.latest].map(u64::cast_signed);
        Some(Utc::Bounded(UtcInterval {
            earliest_ns: earliest.wrapping_add(self.least_ns - growth_ns),
            latest_ns: latest.wrapping_add(self.most_ns + growth_ns),
            status: WallStatus::Synchronised,
        }))
    }
}

/// The last answer. Readers take no lock; one that finds another at work asks the kernel itself. The words are the guard of page
/// and kernel under which it holds ([`super::calibration_page::guard_of`]), and [`KernelStatement`].
#[derive(Debug)]
#[repr(transparent)]
pub(super) struct StatementCache(SeqWords<4>);

impl StatementCache {
    pub(super) const fn new() -> StatementCache {
        StatementCache(SeqWords::new())
    }

    /// UTC at a moment, by what was said under `guard`.
    #[inline(always)]
    pub(super) fn at(&self, guard: u64, now: Bounds) -> Option<Utc> {
        let ([under, at_ns, least, most], _) = self.0.read()?;
        if under != guard || at_ns == 0 {
            return None;
        }
        let (least_ns, most_ns) = (least.cast_signed(), most.cast_signed());
        KernelStatement { generation: 0, at_ns, least_ns, most_ns }.at(now)
    }

    /// Keeps what was said, unless another thread is at it.
    pub(super) fn keep(&self, guard: u64, said: &KernelStatement) {
        let [least, most] = [said.least_ns, said.most_ns].map(i64::cast_unsigned);
        self.0.write([guard, said.at_ns, least, most]);
    }

    /// Has the kernel asked again by the next reader.
    pub(super) fn clear(&self) {
        self.0.write([0; 4]);
    }
}

/// The answer by the kernel's bound and a statement, and what may be kept of it: the narrower one. Two that contradict each
/// other are none, since one of them is wrong.
pub(super) fn of_both(
    (wall, kernel): (WallTime, Option<KernelStatement>),
    vouched: Option<VouchedNow>,
) -> (Utc, Option<KernelStatement>) {
    let of_kernel = Utc::from(wall);
    let Some((vouched, own)) = vouched.and_then(|v| Some((v.said.at(v.now)?, v))) else {
        return (of_kernel, kernel);
    };
    let keep = Some(own.said).filter(|said| said.generation & 1 == 0);
    let (Some(interval), false) = (of_kernel.interval(), own.supersedes_kernel) else {
        return (vouched, keep);
    };
    let apart = |kernel: KernelStatement| {
        own.said.least_ns > kernel.most_ns || own.said.most_ns < kernel.least_ns
    };
    if kernel.is_some_and(apart) {
        return (Utc::Unvouched, keep.map(KernelStatement::silent));
    }
    let is_narrower = vouched.interval().is_some_and(|own| own.error_ns() < interval.error_ns());
    if is_narrower { (vouched, keep) } else { (of_kernel, kernel) }
}

/// Asks the kernel how far its clock may be off between two readings of that; a clock that was set between them is
/// read again. The second answer may be kept, if the kernel's generation was one all the while.
pub(super) fn of_kernel<B: Timebase>(base: &B) -> (WallTime, Option<KernelStatement>) {
    let mut ns = 0;
    for _ in 0..TRIES {
        let generation = base.generation();
        let from_ns = base.reference_ns(ReferenceClock::Monotonic);
        let before_ns = base.reference_ns(ReferenceClock::Realtime);
        let said = base.discipline();
        ns = base.reference_ns(ReferenceClock::Realtime);
        let until_ns = base.reference_ns(ReferenceClock::Monotonic);
        fence(Acquire);
        let is_one = generation & 1 == 0 && base.generation() == generation;
        let keep = |least_ns, most_ns| {
            let at_ns = from_ns;
            is_one.then_some(KernelStatement { generation, at_ns, least_ns, most_ns }.in_range())
        };
        let is_bound = |said: &Discipline| {
            said.synchronised
                && states_bound(said.max_error_ns)
                && said.correction.unsigned_abs() <= FASTEST
        };
        let Some(said) = said.filter(is_bound) else {
            let wall = WallTime { ns: held(ns), error_ns: None, status: WallStatus::Unknown };
            return (wall, keep(i64::MAX, i64::MIN));
        };
        let within_ns = until_ns.saturating_sub(from_ns).saturating_add(1);
        if ns.checked_sub(before_ns).is_some_and(|passed| passed <= within_ns) {
            let bound_ns = bound(&said, ns);
            // A step by less than the time between the readings went unnoticed.
            let error_ns = Some(bound_ns.saturating_add(within_ns));
            let wall = WallTime { ns: held(ns), error_ns, status: WallStatus::Synchronised };
            // Under one generation there was none, and both readings tell the distance of the clocks.
            let error = held(bound_ns).saturating_add(1);
            let least_ns = difference(ns, until_ns).saturating_sub(error);
            let most_ns = difference(before_ns, from_ns).saturating_add(error);
            return (wall, keep(least_ns, most_ns));
        }
    }
    (WallTime { ns: held(ns), error_ns: None, status: WallStatus::Unknown }, None)
}

/// By how much the bound grows while an answer is kept: 525/2^20, less than 0.14 % above 500 ppm, without a division.
#[inline(always)]
const fn growth(age_ns: u64) -> u64 {
    (age_ns * 525) >> 20
}

/// What the kernel vouches for, with what it has not added yet, and a second where a leap second is near.
fn bound(said: &Discipline, ns: u64) -> u64 {
    let of_second = ns % SECOND_NS;
    let since_ns = if of_second < LATE_NS { of_second + SECOND_NS } else { of_second };
    let bound_ns = said.max_error_ns.saturating_add(since_ns * GROWTH_PPM / 1_000_000);
    let near = is_leap_near(said.leap, bound_ns, ns);
    bound_ns.saturating_add(if near { SECOND_NS } else { 0 })
}

/// Whether UTC may leap soon, or has just done so, where the clock is off by `bound_ns` at most.
pub(crate) fn is_leap_near(leap: Leap, bound_ns: u64, ns: u64) -> bool {
    match leap {
        Leap::None => false,
        Leap::Announced => to_midnight(ns) <= bound_ns.saturating_add(2 * SECOND_NS),
        Leap::Running => true,
    }
}

/// How far the nearest midnight is, ns.
fn to_midnight(ns: u64) -> u64 {
    const DAY_NS: u64 = 86_400 * SECOND_NS;
    let of_day = ns % DAY_NS;
    of_day.min(DAY_NS - of_day)
}

fn held(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "tests/utc.rs"]
pub(super) mod tests;
