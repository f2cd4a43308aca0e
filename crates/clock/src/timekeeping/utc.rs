//! Wall-clock time as the kernel tells it, with the bound on its error against UTC: asked at each read, since a step, a
//! leap second, a greater error and the loss of synchronisation come at any moment.

use super::timebase::{Discipline, Leap, ReferenceClock, Timebase};
use super::wall_clock::{WallStatus, WallTime};

/// How often the kernel is asked again after its clock was set meanwhile.
const TRIES: u32 = 4;
const SECOND_NS: u64 = 1_000_000_000;
/// The kernel lets its bound grow by 500 ppm, each second at once (`second_overflow`, `MAXFREQ`).
const GROWTH_PPM: u64 = 500;
/// How late a tick may come that begins a second, or a leap second (HZ = 100).
const LATE_NS: u64 = 10_000_000;

/// Asks the kernel how far its clock may be off between two readings of that; a clock that was set between them is
/// read again.
pub(super) fn of_kernel<B: Timebase>(base: &B) -> WallTime {
    let mut ns = 0;
    for _ in 0..TRIES {
        let from_ns = base.reference_ns(ReferenceClock::Monotonic);
        let before_ns = base.reference_ns(ReferenceClock::Realtime);
        let said = base.discipline();
        ns = base.reference_ns(ReferenceClock::Realtime);
        let within_ns =
            base.reference_ns(ReferenceClock::Monotonic).saturating_sub(from_ns).saturating_add(1);
        let Some(said) = said.filter(|said| said.synchronised) else { break };
        if ns.checked_sub(before_ns).is_some_and(|passed| passed <= within_ns) {
            // A step by less than the time between the readings went unnoticed.
            let error_ns = Some(bound(&said, ns).saturating_add(within_ns));
            return WallTime { ns: held(ns), error_ns, status: WallStatus::Synchronised };
        }
    }
    WallTime { ns: held(ns), error_ns: None, status: WallStatus::Unknown }
}

/// What the kernel vouches for, with what it has not added yet, and a second where a leap second is near.
fn bound(said: &Discipline, ns: u64) -> u64 {
    let of_second = ns % SECOND_NS;
    let since_ns = if of_second < LATE_NS { of_second + SECOND_NS } else { of_second };
    let bound_ns = said.max_error_ns.saturating_add(since_ns * GROWTH_PPM / 1_000_000);
    let near = match said.leap {
        Leap::None => false,
        Leap::Announced => to_midnight(ns) <= bound_ns.saturating_add(2 * SECOND_NS),
        Leap::Running => true,
    };
    bound_ns.saturating_add(if near { SECOND_NS } else { 0 })
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
mod tests;
