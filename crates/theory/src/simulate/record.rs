//! What happened, as a trace and as counts.
//!
//! Owns: joining slices to intervals, the memory that they may take, what only the trace knows: gaps. Without
//! a trace it asks for nothing but the progress of the simulation, which is much faster. Must not:
//! write a folder.

use hdrhistogram::Histogram;
use hourglass_sim::{Event, Sink, SinkDetail, Slice, System};
use hourglass_sys::signal;
use hourglass_trace::{Interval, IntervalStart};

use super::SimulationObserver;

pub(super) struct Recorder<'a> {
    pub(super) threads: Vec<ThreadRecord>,
    /// The machine's number of each CPU.
    cpus: &'a [u32],
    /// Intervals that may still be stored; `None` if none are wanted.
    room: Option<u64>,
    horizon: u64,
    watch: &'a mut dyn SimulationObserver,
}

/// The counts and the trace of a thread.
#[derive(Clone, Debug)]
pub(super) struct ThreadRecord {
    /// The thread's intervals, as far as there was room, in order.
    pub(super) trace: Vec<Interval>,
    /// Intervals for which there was no room.
    pub(super) dropped: u64,
    pub(super) intervals: u64,
    /// Lengths of gaps within jobs, ns.
    pub(super) gaps: Histogram<u64>,
    pub(super) gaps_total: u64,
    pub(super) gaps_max: u64,
    /// CPUs on which it ran.
    pub(super) cpus_seen: Vec<u32>,
    /// The interval that may still go on, and the job that it is of.
    open: Option<(Interval, u64)>,
}

/// Significant digits of the histograms of gaps, as those of runs.
const DIGITS: u8 = 3;

impl ThreadRecord {
    fn new() -> Option<ThreadRecord> {
        Some(ThreadRecord {
            trace: Vec::new(),
            dropped: 0,
            intervals: 0,
            gaps: Histogram::new(DIGITS).ok()?,
            gaps_total: 0,
            gaps_max: 0,
            cpus_seen: Vec::new(),
            open: None,
        })
    }

    fn gap(&mut self, length: u64) {
        self.gaps.saturating_record(length);
        self.gaps_total = self.gaps_total.saturating_add(length);
        self.gaps_max = self.gaps_max.max(length);
    }
}

impl<'a> Recorder<'a> {
    /// Stores up to `capacity` intervals; without it, nothing is recorded.
    pub(super) fn new(
        system: &System,
        cpus: &'a [u32],
        horizon: u64,
        capacity: Option<u64>,
        watch: &'a mut dyn SimulationObserver,
    ) -> Recorder<'a> {
        Recorder {
            threads: system.threads.iter().filter_map(|_| ThreadRecord::new()).collect(),
            cpus,
            room: capacity,
            horizon,
            watch,
        }
    }

    /// Stores what was still open.
    pub(super) fn close(mut self) -> Vec<ThreadRecord> {
        for thread in &mut self.threads {
            if let Some((interval, _)) = thread.open.take() {
                store(thread, interval, &mut self.room);
            }
        }
        self.threads
    }
}

fn store(thread: &mut ThreadRecord, interval: Interval, room: &mut Option<u64>) {
    let Some(left) = room else { return };
    match left.checked_sub(1) {
        Some(rest) => {
            *left = rest;
            thread.trace.push(interval);
        }
        None => thread.dropped += 1,
    }
}

impl Sink for Recorder<'_> {
    fn interest(&self) -> SinkDetail {
        if self.room.is_some() { SinkDetail::Slices } else { SinkDetail::Nothing }
    }

    fn ran(&mut self, slice: Slice) {
        let cpu = usize::try_from(slice.cpu).ok().and_then(|cpu| self.cpus.get(cpu));
        let cpu = cpu.copied().unwrap_or(slice.cpu);
        let Some(thread) = self.threads.get_mut(slice.thread) else { return };
        let (start, end) = (slice.start.cast_signed(), slice.end.cast_signed());
        let onset = match &mut thread.open {
            None => IntervalStart::Start,
            Some((last, job)) if *job == slice.job && last.cpu == cpu && last.end_ns == start => {
                last.end_ns = end;
                last.end_ticks = slice.end;
                return;
            }
            Some((_, job)) if *job != slice.job => IntervalStart::Wait,
            Some((last, _)) if last.cpu != cpu => IntervalStart::Migration,
            Some(_) => IntervalStart::Gap,
        };
        thread.intervals += 1;
        if !thread.cpus_seen.contains(&cpu) {
            thread.cpus_seen.push(cpu);
        }
        if let Some((last, _)) = thread.open.take() {
            if onset.is_gap() {
                thread.gap(slice.start.saturating_sub(last.end_ticks));
            }
            store(thread, last, &mut self.room);
        }
        let interval = Interval {
            thread: u32::try_from(slice.thread).unwrap_or(u32::MAX),
            cpu,
            start_ns: start,
            end_ns: end,
            start_ticks: slice.start,
            end_ticks: slice.end,
            onset,
            evidence: Default::default(),
        };
        thread.open = Some((interval, slice.job));
    }

    fn reached(&mut self, now: u64) -> bool {
        self.watch.reached(now, self.horizon);
        signal::stop_asked().is_none()
    }

    fn event(&mut self, _: u64, _: Event) {}
}
