//! The recorder for a loop of the user's own.

use std::cell::UnsafeCell;
use std::ffi::c_char;

use hourglass_measure::own_loop::MeasuredLoop;
use hourglass_sys::fork;
use hourglass_time::Span;
use hourglass_workload::{LoopSpec, RunMeasurement};

use crate::error::{
    CapiError, HG_FORKED, HG_OK, HG_OS, HG_PANIC, HG_STALE, HG_WRONG_THREAD, answer, guard,
    hg_error, hg_status,
};
use crate::pointers::{give, is_there, nanoseconds, path, read, text, unused, write, write_all};
use crate::table::{HandleTable, handles};
use crate::threads::thread_number;

handles! {
    hg_loop, "A loop that is measured.";
    hg_recording, "What was measured of it.";
}

/// Settings of a measured loop. All but the period may be zero.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct hg_loop_spec {
    /// Name of the loop; NULL for "loop".
    pub name: *const c_char,
    /// Period of the loop, ns.
    pub period_ns: u64,
    /// Deadline after the release of a period, ns; 0 for the period.
    pub deadline_ns: u64,
    /// Threshold of a gap between two marks, ns; 0 leaves gaps to the kernel's counts and the CPU clock.
    pub gap_ns: u64,
    /// Capacity in intervals; 0 for a run's default.
    pub records: u64,
    /// Number of periods that are stored one by one.
    pub jobs: u64,
    /// Whether a full buffer keeps the newest intervals.
    pub ring: bool,
    /// Reserved: 0.
    pub reserved: [u8; 7],
    /// Folder for the run; NULL stores no run.
    pub folder: *const c_char,
}

/// Counts of periods.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_deadlines {
    /// Periods that finished in time.
    pub hit: u64,
    /// Periods that started and did not finish in time.
    pub missed: u64,
    /// Periods that never started, because an earlier one was still running.
    pub lost: u64,
    /// Periods that finished, in time or not.
    pub completed: u64,
}

/// Summary of a recording.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct hg_recording_summary {
    /// Time that the thread was seen to run, ns.
    pub received_ns: u64,
    /// From the first mark to the end, ns.
    pub wall_ns: u64,
    /// The recording's zero, ns on `CLOCK_MONOTONIC`.
    pub epoch_ns: u64,
    /// Number of intervals, stored or not.
    pub intervals: u64,
    /// Intervals that found no room.
    pub dropped: u64,
    /// Number of gaps.
    pub gaps: u64,
    /// Sum of the lengths of gaps, ns.
    pub gap_total_ns: u64,
    /// Median length of gaps, ns.
    pub gap_p50_ns: u64,
    /// 99th percentile, ns.
    pub gap_p99_ns: u64,
    /// 99.9th percentile, ns.
    pub gap_p999_ns: u64,
    /// The longest gap, ns.
    pub gap_max_ns: u64,
    /// How often two intervals in a row ran on different CPUs.
    pub migrations: u64,
    /// Counts of periods.
    pub deadlines: hg_deadlines,
    /// Bound on the relative error of all lengths, parts per billion.
    pub rate_error_ppb: u64,
}

/// An interval in which the thread ran.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_interval {
    /// ns from the recording's zero.
    pub start_ns: i64,
    /// ns from the recording's zero.
    pub end_ns: i64,
    /// CPU on which it ran.
    pub cpu: u32,
    /// `HG_ONSET_*`: why the interval before ended.
    pub onset: u32,
}

/// A loop, and the process whose thread it belongs to.
struct RecorderHandle {
    owner: u64,
    /// Value of [`fork::generation`] at the start.
    generation: u32,
    own_loop: UnsafeCell<Option<MeasuredLoop>>,
}

// SAFETY: what is within is reached by the thread of `owner` only, which every access asks first, and
// whose number no other thread ever has; a loop of a thread that ended stays where it is.
unsafe impl Send for RecorderHandle {}

// SAFETY: as for `Send`.
unsafe impl Sync for RecorderHandle {}

static LOOPS: HandleTable<RecorderHandle> = HandleTable::new(12, "loop");
static RECORDINGS: HandleTable<RunMeasurement> = HandleTable::new(13, "recording");

impl RecorderHandle {
    /// Calls `work` with the loop in its own thread; an error elsewhere. A forked child lacks its counters.
    fn with_loop<T>(
        &self,
        work: impl FnOnce(&mut Option<MeasuredLoop>) -> T,
    ) -> Result<T, hg_status> {
        if fork::generation() != self.generation {
            return Err(HG_FORKED);
        }
        if thread_number() != self.owner {
            return Err(HG_WRONG_THREAD);
        }
        // SAFETY: this is the owner, and `work` calls nothing that comes here again.
        Ok(work(unsafe { &mut *self.own_loop.get() }))
    }
}

/// With a loop, in its own thread.
fn with<T>(
    own_loop: hg_loop,
    work: impl FnOnce(&mut Option<MeasuredLoop>) -> T,
) -> Result<T, CapiError> {
    LOOPS.get(own_loop.handle)?.with_loop(work).map_err(|kind| {
        let text = match kind {
            HG_FORKED => "the loop is the parent process's: start one in this process",
            _ => "a loop is marked by the thread that started it: start one in this thread",
        };
        CapiError::new(kind, text)
    })
}

/// Records a mark. Allocates nothing, with or without an error.
fn mark(own_loop: hg_loop, work: impl FnOnce(&mut MeasuredLoop)) -> hg_status {
    answer(HG_PANIC, || {
        let kept = match LOOPS.find(own_loop.handle) {
            Ok(kept) => kept,
            Err(kind) => return kind,
        };
        match kept.with_loop(|own_loop| own_loop.as_mut().map(work)) {
            Ok(Some(())) => HG_OK,
            Ok(None) => HG_STALE,
            Err(kind) => kind,
        }
    })
}

impl hg_loop_spec {
    /// # Safety
    /// As the header says of `name`.
    unsafe fn spec(&self) -> Result<LoopSpec, CapiError> {
        unused(self.reserved, "hg_loop_spec")?;
        let span = |ns: u64, name: &str| nanoseconds(ns, name).map(Span::from_nanos);
        // SAFETY: as the caller promises.
        let name = unsafe { text(self.name, "loop") }?;
        let default = LoopSpec::every(&name, span(self.period_ns, "period_ns")?);
        let given = |ns: u64, name: &str| (ns != 0).then(|| span(ns, name)).transpose();
        Ok(LoopSpec {
            deadline: given(self.deadline_ns, "deadline_ns")?,
            gap: given(self.gap_ns, "gap_ns")?,
            records: if self.records == 0 { default.records } else { self.records },
            jobs: usize::try_from(self.jobs).unwrap_or(usize::MAX),
            ring: self.ring,
            ..default
        })
    }
}

/// Starts to measure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_loop_start(
    spec: *const hg_loop_spec,
    own_loop: *mut hg_loop,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        // SAFETY: as the header says of `spec` and what it points to.
        let given = unsafe { read(spec, "spec") }?;
        // SAFETY: as the header says of what it points to.
        let (spec, folder) = unsafe { (given.spec()?, path(given.folder, "folder")?) };
        let started = MeasuredLoop::start(spec, folder)?;
        let own_loop = UnsafeCell::new(Some(started));
        let kept = RecorderHandle { owner: thread_number(), generation: fork::watch(), own_loop };
        Ok(hg_loop { handle: LOOPS.insert(kept)? })
    };
    // SAFETY: as the header says of `own_loop` and `error`.
    unsafe { give(own_loop, "own_loop", error, work) }
}

/// A period begins.
#[unsafe(no_mangle)]
pub extern "C" fn hg_loop_begin(own_loop: hg_loop) -> hg_status {
    mark(own_loop, MeasuredLoop::begin_period)
}

/// A period begins that was due at a time.
#[unsafe(no_mangle)]
pub extern "C" fn hg_loop_begin_due(own_loop: hg_loop, due_ns: u64) -> hg_status {
    mark(own_loop, |own_loop| own_loop.begin_period_due(due_ns))
}

/// Records that the thread runs.
#[unsafe(no_mangle)]
pub extern "C" fn hg_loop_check(own_loop: hg_loop) -> hg_status {
    mark(own_loop, MeasuredLoop::check)
}

/// The period is done.
#[unsafe(no_mangle)]
pub extern "C" fn hg_loop_end(own_loop: hg_loop) -> hg_status {
    mark(own_loop, MeasuredLoop::end_period)
}

/// Reads the counts of periods.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_loop_deadlines(
    own_loop: hg_loop,
    deadlines: *mut hg_deadlines,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let counted = with(own_loop, |kept| kept.as_ref().map(MeasuredLoop::deadlines))?;
        let counted = counted.ok_or_else(|| CapiError::new(HG_STALE, "the loop was finished"))?;
        let deadlines = hg_deadlines {
            hit: counted.hit,
            missed: counted.missed,
            lost: counted.lost,
            completed: counted.completed,
        };
        Ok(deadlines)
    };
    // SAFETY: as the header says of `deadlines` and `error`.
    unsafe { give(deadlines, "deadlines", error, work) }
}

/// Ends measuring, and frees the loop; the recording is given also if it could not be kept.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_loop_finish(
    own_loop: hg_loop,
    recording: *mut hg_recording,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        is_there(recording, "recording")?;
        let taken = with(own_loop, Option::take)?;
        drop(LOOPS.remove(own_loop.handle)?);
        let taken = taken.ok_or_else(|| CapiError::new(HG_STALE, "the loop was finished"))?;
        let mut finished = taken.finish();
        let kept = finished.folder.take();
        let made = hg_recording { handle: RECORDINGS.insert(finished.measured)? };
        // SAFETY: as the header says of `recording`.
        unsafe { write(recording, made, "recording") }?;
        match kept {
            Some(Err(error)) => Err(CapiError::new(HG_OS, format!("the run is not kept: {error}"))),
            _ => Ok(()),
        }
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

fn summary(measured: &RunMeasurement) -> hg_recording_summary {
    let timeline = &measured.timeline;
    let Some(thread) = measured.threads.first() else { return hg_recording_summary::default() };
    let recorded = &thread.recorded;
    let longest_ns = timeline.ns_in(recorded.gaps.longest_ticks);
    let quantile = |of: f64| recorded.gaps.histogram.value_at_quantile(of).min(longest_ns);
    let counted = recorded.tally.deadlines;
    hg_recording_summary {
        received_ns: timeline.ns_in(recorded.received),
        wall_ns: timeline.ns_in(recorded.end.saturating_sub(thread.start)),
        epoch_ns: timeline.epoch.monotonic_ns,
        intervals: recorded.intervals,
        dropped: recorded.trace.dropped(),
        gaps: recorded.gaps.histogram.len(),
        gap_total_ns: timeline.ns_in(recorded.gaps.total_ticks),
        gap_p50_ns: quantile(0.5),
        gap_p99_ns: quantile(0.99),
        gap_p999_ns: quantile(0.999),
        gap_max_ns: longest_ns,
        migrations: recorded.migrations,
        deadlines: counted.map_or(hg_deadlines::default(), |counted| hg_deadlines {
            hit: counted.hit,
            missed: counted.missed,
            lost: counted.lost,
            completed: counted.completed,
        }),
        rate_error_ppb: timeline.calibration.rate_error_ppb,
    }
}

/// A recording in numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_recording_look(
    recording: hg_recording,
    found: *mut hg_recording_summary,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let found = summary(&*RECORDINGS.get(recording.handle)?);
        Ok(found)
    };
    // SAFETY: as the header says of `found` and `error`.
    unsafe { give(found, "summary", error, work) }
}

/// Intervals of a recording, from the one with that number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_recording_intervals(
    recording: hg_recording,
    first: u64,
    intervals: *mut hg_interval,
    room: usize,
    count: *mut usize,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let measured = RECORDINGS.get(recording.handle)?;
        let records = measured.threads.first().into_iter().flat_map(|t| t.recorded.trace.iter());
        let written =
            records.skip(usize::try_from(first).unwrap_or(usize::MAX)).map(|record| hg_interval {
                start_ns: measured.timeline.ns_at(record.start),
                end_ns: measured.timeline.ns_at(record.end),
                cpu: record.cpu,
                onset: u32::from(record.onset().code()),
            });
        // SAFETY: as the header says of `intervals`, `room` and `count`.
        unsafe { write_all(intervals, room, count, written) }
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

/// Frees a recording.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_recording_free(
    recording: hg_recording,
    error: *mut hg_error,
) -> hg_status {
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, || RECORDINGS.remove(recording.handle).map(drop)) }
}
