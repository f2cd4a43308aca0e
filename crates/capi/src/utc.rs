//! UTC between two bounds, and waiting until a time of it has passed for certain.

use hourglass_clock::process::clock;
use hourglass_clock::timekeeping::{Utc, UtcInterval, WallStatus};
use hourglass_clock::utc::UtcKeeper;
use hourglass_time::{Instant, Realtime, Span};
use hourglass_timer::sleep::{UtcWait, UtcWaitEnd};

use crate::clock::wall_status;
use crate::error::{
    CapiError, HG_EXHAUSTED, HG_INTERRUPTED, HG_TIMEOUT, HG_UNSUPPORTED, guard, hg_error,
    hg_status, reading,
};
use crate::interrupt::{NEVER, hg_interrupt, interrupt_at};
use crate::pointers::{give, offer};
use crate::sleep::by_own_sleeper;
use crate::table::{HandleTable, handles};

handles! {
    hg_utc_keeper, "A thread that asks who vouches for UTC.";
}

static KEEPERS: HandleTable<UtcKeeper> = HandleTable::new(17, "keeper of UTC");

/// What the source said that vouches.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct hg_utc_source {
    /// Its name, ended by 0.
    pub name: [u8; 16],
    /// Bound on the error of the wall clock, ns.
    pub error_ns: u64,
    /// By how much that grows, parts in 10^9.
    pub growth_ppb: u64,
    /// When it held, ns on `CLOCK_MONOTONIC`.
    pub at_ns: u64,
}

/// UTC between two bounds.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct hg_utc {
    /// ns since 1970.
    pub earliest_ns: i64,
    /// ns since 1970.
    pub latest_ns: i64,
    /// `HG_WALL_*`: who vouches for it.
    pub status: u32,
    /// Reserved: 0.
    pub reserved: u32,
}

impl hg_utc {
    /// All of time: no source vouches for anything.
    const UNVOUCHED: hg_utc =
        hg_utc { earliest_ns: i64::MIN, latest_ns: i64::MAX, status: 0, reserved: 0 };
}

impl From<Utc> for hg_utc {
    fn from(utc: Utc) -> hg_utc {
        let Utc::Bounded(UtcInterval { earliest_ns, latest_ns, status }) = utc else {
            return hg_utc::UNVOUCHED;
        };
        hg_utc { earliest_ns, latest_ns, status: wall_status(status), reserved: 0 }
    }
}

/// Result of a wait.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct hg_utc_wait {
    /// How long it was, ns.
    pub waited_ns: u64,
    /// How far the time was still to come at the beginning, ns.
    pub ahead_ns: u64,
    /// The bound on the error at the beginning, ns.
    pub error_ns: u64,
    /// UTC at the end.
    pub last: hg_utc,
}

impl From<UtcWait> for hg_utc_wait {
    fn from(wait: UtcWait) -> hg_utc_wait {
        let UtcWait { waited_ns, ahead_ns, error_ns, last, .. } = wait;
        hg_utc_wait { waited_ns, ahead_ns, error_ns, last: last.into() }
    }
}

/// UTC between two bounds: what the inline read of the header falls back to.
#[unsafe(no_mangle)]
pub extern "C" fn hg_utc_bounded_call() -> hg_utc {
    reading(hg_utc::UNVOUCHED, || clock().utc_bounded().into())
}

/// Whether one moment was before another.
#[unsafe(no_mangle)]
pub extern "C" fn hg_utc_is_before(first: hg_utc, second: hg_utc) -> i32 {
    let interval = |utc: hg_utc| UtcInterval {
        earliest_ns: utc.earliest_ns,
        latest_ns: utc.latest_ns,
        status: WallStatus::Synchronised,
    };
    reading(-1, || {
        let known = first.status != 0 && second.status != 0;
        let before = known.then(|| interval(first).is_before(interval(second))).flatten();
        before.map_or(-1, i32::from)
    })
}

/// Waits until a time has passed for certain.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_utc_wait_until_past(
    time_ns: i64,
    at_most_ns: u64,
    interrupt: *mut hg_interrupt,
    wait: *mut hg_utc_wait,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let interrupt = if interrupt.is_null() {
            &NEVER
        } else {
            // SAFETY: as the header says; the sleeper drops the reference before this returns.
            unsafe { interrupt_at(interrupt) }?
        };
        let at_most = Span::saturating_from_nanos(at_most_ns);
        let time = Instant::<Realtime>::from_nanos(time_ns);
        let found = by_own_sleeper(interrupt, |own| own.wait_until_past(time, at_most));
        // SAFETY: as the header says of `wait`.
        unsafe { offer(wait, hg_utc_wait::from(found)) };
        match found.end {
            UtcWaitEnd::AlreadyPast | UtcWaitEnd::Past => Ok(()),
            UtcWaitEnd::Interrupted => Err(CapiError::new(HG_INTERRUPTED, "")),
            UtcWaitEnd::OutOfReach => Err(CapiError::new(
                HG_TIMEOUT,
                "by the bound on UTC as it is, the wait would be longer than at_most_ns",
            )),
            UtcWaitEnd::Unvouched => Err(CapiError::new(
                HG_UNSUPPORTED,
                "no source vouches for the wall clock: run chronyd or ntpd, which state a bound, or have ClockBound's daemon or ptp4l \
                 asked by hg_utc_keeper_start; systemd-timesyncd and phc2sys state none",
            )),
        }
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

/// Starts a keeper.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_utc_keeper_start(
    keeper: *mut hg_utc_keeper,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let started = UtcKeeper::start().map_err(|error| {
            CapiError::new(HG_EXHAUSTED, format!("no thread for the keeper: {error}"))
        })?;
        Ok(hg_utc_keeper { handle: KEEPERS.insert(started)? })
    };
    // SAFETY: as the header says of `keeper` and `error`.
    unsafe { give(keeper, "keeper", error, work) }
}

/// Reads who vouches.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_utc_keeper_look(
    keeper: hg_utc_keeper,
    source: *mut hg_utc_source,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let status = KEEPERS.get(keeper.handle)?.status();
        let (Some(name), Some(said)) = (status.source, status.said) else {
            let refused = status.refused.iter().map(|(name, why)| format!("{name}: {why}"));
            let refused = refused.collect::<Vec<_>>().join("; ");
            return Err(CapiError::new(HG_UNSUPPORTED, refused));
        };
        let mut found = [0; 16];
        // The last one stays 0.
        found.iter_mut().take(15).zip(name.bytes()).for_each(|(to, from)| *to = from);
        let (error_ns, growth_ppb, at_ns) = (said.error_ns, said.growth_ppb, said.at_ns);
        Ok(hg_utc_source { name: found, error_ns, growth_ppb, at_ns })
    };
    // SAFETY: as the header says of `source` and `error`.
    unsafe { give(source, "source", error, work) }
}

/// Ends a keeper.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_utc_keeper_free(
    keeper: hg_utc_keeper,
    error: *mut hg_error,
) -> hg_status {
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, || KEEPERS.remove(keeper.handle).map(drop)) }
}
