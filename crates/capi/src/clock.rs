//! The clock of the process.
//!
//! Owns: the address of the page, from which the header reads the time inline, and the calls for all other
//! requests.

use std::ffi::c_char;

use hourglass_clock::process::clock;
use hourglass_clock::timekeeping::{
    Bounds, ClockEventKind, EventKind, ReferenceClock, SourceId, Status, Ticks, WallReference,
    WallStatus,
};

use crate::error::{CapiError, TEXT, answer, guard, hg_error, hg_status, put_text, reading};
use crate::pointers::{give, read};

/// Address of the calibration page, which `hourglass.h` reads.
#[repr(transparent)]
pub struct PageAddress(*const u64);

// SAFETY: it is a number that never changes; what lies there is read atomically only.
unsafe impl Sync for PageAddress {}

/// The page of the clock of the process, of layout 1. A library with another layout has another symbol,
/// so that a program that knows this one only is not linked with it.
#[unsafe(no_mangle)]
pub static hg_clock_page_v1: PageAddress = PageAddress(clock().page_address());

/// What the kernel said last about UTC, of layout 1; `hourglass.h` reads it.
#[unsafe(no_mangle)]
pub static hg_clock_utc_v1: PageAddress = PageAddress(clock().utc_address());

/// A time between two others.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_bounds {
    /// ns on `CLOCK_MONOTONIC`.
    pub earliest_ns: u64,
    /// ns on `CLOCK_MONOTONIC`.
    pub latest_ns: u64,
    /// `HG_CLOCK_*`: what the bound rests on.
    pub status: u32,
    /// Reserved: 0.
    pub reserved: u32,
}

impl From<Bounds> for hg_bounds {
    fn from(bounds: Bounds) -> hg_bounds {
        hg_bounds {
            earliest_ns: bounds.earliest,
            latest_ns: bounds.latest,
            status: status_number(bounds.status),
            reserved: 0,
        }
    }
}

/// `HG_CLOCK_*`.
pub(crate) fn status_number(status: Status) -> u32 {
    status as u64 as u32
}

/// `HG_WALL_*`.
pub(crate) fn wall_status(status: WallStatus) -> u32 {
    match status {
        WallStatus::Unknown => 0,
        WallStatus::Synchronised => 1,
        WallStatus::ByHand => 2,
        WallStatus::Steered => 3,
    }
}

/// A reading of the counter.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_ticks {
    /// The counter.
    pub count: u64,
    /// Counts changes of source.
    pub epoch: u32,
    /// Reserved: 0.
    pub reserved: u32,
}

/// A length of time by the counter.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_elapsed {
    /// ns, negative if the second reading is the earlier one.
    pub ns: i64,
    /// Bound on the error, ns.
    pub error_ns: u64,
}

/// A time on another scale.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_scale_time {
    /// ns since that scale's beginning.
    pub ns: i64,
    /// Bound on the error, ns.
    pub error_ns: u64,
    /// `HG_CLOCK_*`.
    pub status: u32,
    /// Reserved: 0.
    pub reserved: u32,
}

/// Wall-clock time.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_wall_time {
    /// ns since 1970.
    pub ns: i64,
    /// Bound on the error against UTC, ns; `UINT64_MAX` if the bound is unknown.
    pub error_ns: u64,
    /// `HG_WALL_*`.
    pub status: u32,
    /// Reserved: 0.
    pub reserved: u32,
}

/// A sample of an external reference.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_wall_reference {
    /// ns on `CLOCK_MONOTONIC`.
    pub monotonic_ns: u64,
    /// ns since 1970.
    pub wall_ns: i64,
    /// Bound on its error, ns.
    pub error_ns: u64,
}

/// Result of maintaining the clock.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_maintained {
    /// When to call again, ns from now.
    pub next_ns: u64,
    /// Whether a new clock line was computed.
    pub drawn: bool,
    /// Reserved: 0.
    pub reserved: [u8; 7],
}

/// Whether a clock source can be trusted.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hg_trust {
    /// Whether the source can be trusted.
    pub trusted: bool,
    /// Reserved: 0.
    pub reserved: [u8; 7],
    /// The reason, a text terminated by 0.
    pub reason: [c_char; TEXT],
}

/// An event of the clock, such as a change of source.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hg_clock_event {
    /// When it was detected, ns on `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// `HG_EVENT_*`.
    pub kind: u32,
    /// Reserved: 0.
    pub reserved: u32,
    /// Description, a text terminated by 0.
    pub text: [c_char; TEXT],
}

/// `hg_now` where the page does not simply give the time.
#[unsafe(no_mangle)]
pub extern "C" fn hg_now_call() -> u64 {
    reading(0, || clock().now())
}

/// `hg_now_ordered` where the page does not simply give the time.
#[unsafe(no_mangle)]
pub extern "C" fn hg_now_ordered_call() -> u64 {
    reading(0, || clock().now_ordered())
}

/// `hg_now_bounded` where the page does not simply give the time.
#[unsafe(no_mangle)]
pub extern "C" fn hg_now_bounded_call() -> hg_bounds {
    reading(hg_bounds::default(), || clock().now_bounded().into())
}

/// `hg_now_bounded_ordered` where the page does not simply give the time.
#[unsafe(no_mangle)]
pub extern "C" fn hg_now_bounded_ordered_call() -> hg_bounds {
    reading(hg_bounds::default(), || clock().now_bounded_ordered().into())
}

/// Reads the counter in use.
#[unsafe(no_mangle)]
pub extern "C" fn hg_clock_ticks() -> hg_ticks {
    reading(hg_ticks::default(), || {
        let Ticks { count, epoch } = clock().ticks();
        hg_ticks { count, epoch, reserved: 0 }
    })
}

/// The time between two readings of the counter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_clock_elapsed(
    first: hg_ticks,
    second: hg_ticks,
    elapsed: *mut hg_elapsed,
    error: *mut hg_error,
) -> hg_status {
    let ticks = |ticks: hg_ticks| Ticks { count: ticks.count, epoch: ticks.epoch };
    let work = || {
        let found = clock().elapsed(ticks(first), ticks(second))?;
        let found = hg_elapsed { ns: found.ns, error_ns: found.error_ns };
        Ok(found)
    };
    // SAFETY: as the header says of `elapsed` and `error`.
    unsafe { give(elapsed, "elapsed", error, work) }
}

/// The time on another scale.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_now_on(
    scale: i32,
    time: *mut hg_scale_time,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let scale = match scale {
            0 => ReferenceClock::Monotonic,
            1 => ReferenceClock::Raw,
            2 => ReferenceClock::Realtime,
            3 => ReferenceClock::Tai,
            4 => ReferenceClock::Boottime,
            _ => {
                return Err(CapiError::invalid(format!("no scale is {scale}: give an HG_SCALE_*")));
            }
        };
        let found = clock().now_on(scale);
        let status = status_number(found.status);
        let found = hg_scale_time { ns: found.ns, error_ns: found.error_ns, status, reserved: 0 };
        Ok(found)
    };
    // SAFETY: as the header says of `time` and `error`.
    unsafe { give(time, "time", error, work) }
}

/// Wall-clock time.
#[unsafe(no_mangle)]
pub extern "C" fn hg_wall() -> hg_wall_time {
    answer(hg_wall_time::default(), || {
        let found = clock().wall();
        let status = wall_status(found.status);
        let error_ns = found.error_ns.unwrap_or(u64::MAX);
        hg_wall_time { ns: found.ns, error_ns, status, reserved: 0 }
    })
}

/// Passes a sample of a reference to the clock.
///
/// # Safety
/// As the header says of the two addresses.
unsafe fn refer(
    reference: *const hg_wall_reference,
    error: *mut hg_error,
    tell: impl FnOnce(WallReference),
) -> hg_status {
    let work = || {
        // SAFETY: as the caller promises.
        let said = unsafe { read(reference, "reference") }?;
        let hg_wall_reference { monotonic_ns, wall_ns, error_ns } = said;
        tell(WallReference { monotonic_ns, wall_ns, error_ns });
        Ok(())
    };
    // SAFETY: as the caller promises.
    unsafe { guard(error, work) }
}

/// Sets wall-clock time of this process' clock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_wall_set(
    reference: *const hg_wall_reference,
    error: *mut hg_error,
) -> hg_status {
    // SAFETY: as the header says.
    unsafe { refer(reference, error, |said| clock().set_wall(said)) }
}

/// Steers wall-clock time of this process' clock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_wall_steer(
    reference: *const hg_wall_reference,
    error: *mut hg_error,
) -> hg_status {
    // SAFETY: as the header says.
    unsafe { refer(reference, error, |said| clock().steer_wall(said)) }
}

/// Takes wall-clock time from the kernel again.
#[unsafe(no_mangle)]
pub extern "C" fn hg_wall_release() {
    answer((), || clock().release_wall());
}

/// The clock source in use.
#[unsafe(no_mangle)]
pub extern "C" fn hg_clock_source() -> i32 {
    answer(0, || i32::from(clock().source().0))
}

/// Changes the source.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_clock_set_source(source: i32, error: *mut hg_error) -> hg_status {
    let work = || {
        let known = [SourceId::OS, SourceId::TSC, SourceId::CNTVCT, SourceId::HPET];
        let found =
            known.into_iter().find(|known| i32::from(known.0) == source).ok_or_else(|| {
                CapiError::invalid(format!("no source is {source}: give an HG_SOURCE_*"))
            })?;
        Ok(clock().set_source(found)?)
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

/// Name of a source, a text that is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn hg_source_name(source: i32) -> *const c_char {
    let name = match source {
        1 => c"monotonic",
        2 => c"tsc",
        3 => c"cntvct",
        4 => c"hpet",
        16 => c"sim",
        _ => c"unknown",
    };
    name.as_ptr()
}

/// Does the maintenance that is due.
#[unsafe(no_mangle)]
pub extern "C" fn hg_clock_maintain() -> hg_maintained {
    answer(hg_maintained::default(), || {
        let done = clock().maintain();
        hg_maintained { next_ns: done.next_ns, drawn: done.drawn, reserved: [0; 7] }
    })
}

/// Examines the source with all available evidence.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_clock_examine(trust: *mut hg_trust, error: *mut hg_error) -> hg_status {
    let work = || {
        let found = clock().examine();
        let mut trust = hg_trust { trusted: found.trusted, reserved: [0; 7], reason: [0; TEXT] };
        put_text(&mut trust.reason, &found.reason);
        Ok(trust)
    };
    // SAFETY: as the header says of `trust` and `error`.
    unsafe { give(trust, "trust", error, work) }
}

/// The numbers of `HG_EVENT_*`; 0 for what a later version may add.
fn event_number(what: &ClockEventKind) -> u32 {
    match what {
        ClockEventKind::Adopted(_) => 1,
        ClockEventKind::ByHand { .. } => 2,
        ClockEventKind::KernelChangedSource { .. } => 3,
        ClockEventKind::Residual { .. } => 4,
        ClockEventKind::NegativeStep { .. } => 5,
        ClockEventKind::Stuck(_) => 6,
        ClockEventKind::Unsupported(_) => 7,
        ClockEventKind::PriorContradicted { .. } => 8,
        ClockEventKind::Untrusted { .. } => 9,
        ClockEventKind::Suspended { .. } => 10,
        ClockEventKind::CpusChanged { .. } => 11,
        ClockEventKind::VmChanged => 12,
        ClockEventKind::ReferenceSlewed { .. } => 13,
        ClockEventKind::RateCorrected { .. } => 14,
        ClockEventKind::WallSet { .. } => 15,
        _ => 0,
    }
}

/// Number of events of a kind.
#[unsafe(no_mangle)]
pub extern "C" fn hg_clock_count(kind: u32) -> u64 {
    answer(0, || {
        let index = (kind as usize).wrapping_sub(1);
        EventKind::ALL.get(index).map_or(0, |kind| clock().count(*kind))
    })
}

/// The latest events, oldest first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_clock_events(
    events: *mut hg_clock_event,
    room: usize,
    count: *mut usize,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let latest = clock().events();
        let written = latest.iter().map(|event| {
            let kind = event_number(&event.what);
            let mut out = hg_clock_event { at_ns: event.at_ns, kind, reserved: 0, text: [0; TEXT] };
            put_text(&mut out.text, &event.what.to_string());
            out
        });
        // SAFETY: as the header says of `events`, `room` and `count`.
        unsafe { crate::pointers::write_all(events, room, count, written) }
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the header are those by which events are counted.
    #[test]
    fn events_are_numbered_as_they_are_counted() {
        let some = [
            (ClockEventKind::Adopted(SourceId::TSC), EventKind::Adopted),
            (ClockEventKind::VmChanged, EventKind::VmChanged),
            (ClockEventKind::WallSet { ns: 1 }, EventKind::WallSet),
            (ClockEventKind::Stuck(SourceId::TSC), EventKind::Stuck),
        ];
        for (what, kind) in some {
            assert_eq!(EventKind::ALL[event_number(&what) as usize - 1], kind);
        }
        assert_eq!(hg_clock_count(0), 0);
        assert_eq!(hg_clock_count(u32::MAX), 0);
    }

    #[test]
    fn the_page_is_where_the_symbol_says() {
        assert_eq!(hg_clock_page_v1.0, clock().page_address());
        assert_eq!(hg_clock_page_v1.0 as usize % 64, 0);
    }
}
