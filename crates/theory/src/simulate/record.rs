//! What happened, as a trace and as counts.
//!
//! Owns: joining slices to intervals, the memory that they may take, what only the trace knows: gaps. Without
//! a trace it asks for nothing but the progress of the simulation, which is much faster. Must not:
//! write a folder.

use std::collections::BTreeMap;

use hourglass_sim::{Event, Sink, SinkDetail, Slice, System};
use hourglass_sys::signal;
use hourglass_trace::{CounterDeltas, Evidence, GapStatistics, Interval, IntervalStart, JobRecord};

use super::SimulationObserver;

pub(super) struct Recorder<'a> {
    pub(super) threads: Vec<ThreadRecord>,
    /// The machine's number of each CPU.
    cpus: &'a [u32],
    /// Intervals that may still be stored; `None` if none are wanted.
    room: Option<u64>,
    /// Jobs that may still be stored; `None` if none are wanted.
    jobs_room: Option<u64>,
    /// Relative deadlines of the threads, ns, and the servers in which they run.
    deadlines: Vec<u64>,
    servers: Vec<Option<usize>>,
    /// When each server last spent its budget, and each CPU was last closed to fixed priorities, ns.
    exhausted: BTreeMap<usize, u64>,
    throttled: BTreeMap<u32, u64>,
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
    /// Gaps within jobs.
    pub(super) gaps: GapStatistics,
    /// CPUs on which it ran.
    pub(super) cpus_seen: Vec<u32>,
    /// Jobs with a deadline, as far as there was room, by their numbers.
    pub(super) jobs: Vec<(u64, JobRecord)>,
    /// Jobs for which there was no room.
    pub(super) jobs_dropped: u64,
    /// When it last began to wait, ns.
    waits: Option<u64>,
    /// The interval that may still go on, and the job that it is of.
    open: Option<(Interval, u64)>,
}

impl ThreadRecord {
    fn new() -> ThreadRecord {
        ThreadRecord {
            trace: Vec::new(),
            dropped: 0,
            intervals: 0,
            gaps: GapStatistics::default(),
            cpus_seen: Vec::new(),
            jobs: Vec::new(),
            jobs_dropped: 0,
            waits: None,
            open: None,
        }
    }

    /// The job of this number, if there was room for it.
    fn job(&mut self, number: u64) -> Option<&mut JobRecord> {
        let place = self.jobs.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        self.jobs.get_mut(place).map(|(_, job)| job)
    }
}

impl<'a> Recorder<'a> {
    /// Stores up to `capacity` intervals, and as many jobs where these are wanted; without it, nothing is recorded.
    pub(super) fn new(
        system: &System,
        cpus: &'a [u32],
        horizon: u64,
        (capacity, wants_jobs): (Option<u64>, bool),
        watch: &'a mut dyn SimulationObserver,
    ) -> Recorder<'a> {
        Recorder {
            threads: system.threads.iter().map(|_| ThreadRecord::new()).collect(),
            cpus,
            room: capacity,
            jobs_room: capacity.filter(|_| wants_jobs),
            servers: system.threads.iter().map(|thread| thread.server).collect(),
            exhausted: BTreeMap::new(),
            throttled: BTreeMap::new(),
            deadlines: system.threads.iter().map(|thread| thread.deadline).collect(),
            horizon,
            watch,
        }
    }

    /// The machine's number of a simulated CPU.
    fn number_of(&self, cpu: u32) -> u32 {
        let number = usize::try_from(cpu).ok().and_then(|cpu| self.cpus.get(cpu));
        number.copied().unwrap_or(cpu)
    }

    /// Takes a job that arrived then, of a thread with a deadline.
    fn arrived(&mut self, thread: usize, number: u64, arrival: u64, lost: bool) {
        let Some(room) = &mut self.jobs_room else { return };
        let due = self.deadlines.get(thread).and_then(|deadline| arrival.checked_add(*deadline));
        let (Some(due), Some(record)) = (due, self.threads.get_mut(thread)) else { return };
        let Some(rest) = room.checked_sub(1) else {
            record.jobs_dropped += 1;
            return;
        };
        let (Ok(release_ns), Ok(deadline_ns)) = (i64::try_from(arrival), i64::try_from(due)) else {
            return;
        };
        *room = rest;
        let job = JobRecord {
            thread: u32::try_from(thread).unwrap_or(u32::MAX),
            release_ns,
            deadline_ns,
            started_ns: None,
            finished_ns: None,
            lost,
        };
        record.jobs.push((number, job));
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

/// The switches that the kernel would count: one by a wait, or one by another thread. A budget that is used up
/// counts none.
fn counted(waits: bool, spent: bool) -> CounterDeltas {
    let involuntary = u8::from(!waits && !spent);
    CounterDeltas { involuntary, voluntary: waits.into(), faults: 0 }
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
        match (self.room, self.jobs_room) {
            (_, Some(_)) => SinkDetail::Everything,
            (Some(_), None) => SinkDetail::Slices,
            (None, None) => SinkDetail::Nothing,
        }
    }

    fn ran(&mut self, slice: Slice) {
        let cpu = self.number_of(slice.cpu);
        let Some(thread) = self.threads.get_mut(slice.thread) else { return };
        let (start, end) = (slice.start.cast_signed(), slice.end.cast_signed());
        if let Some(job) = thread.job(slice.job) {
            job.started_ns.get_or_insert(start);
        }
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
        let mut evidence = Evidence::NONE;
        if let Some((last, _)) = thread.open.take() {
            if onset.is_gap() {
                if self.jobs_room.is_some() {
                    let left = Some(last.end_ticks);
                    let server = self.servers.get(slice.thread).copied().flatten();
                    let spent = server.and_then(|server| self.exhausted.get(&server).copied());
                    let closed = self.throttled.get(&last.cpu).copied();
                    evidence.counted =
                        Some(counted(thread.waits == left, spent == left || closed == left));
                }
                thread.gaps.push(slice.start.saturating_sub(last.end_ticks));
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
            evidence,
        };
        thread.open = Some((interval, slice.job));
    }

    fn reached(&mut self, now: u64) -> bool {
        self.watch.reached(now, self.horizon);
        signal::stop_asked().is_none()
    }

    fn event(&mut self, at: u64, event: Event) {
        match event {
            Event::Release { thread, job, arrival } => self.arrived(thread, job, arrival, false),
            Event::Lost { thread, job, arrival } => self.arrived(thread, job, arrival, true),
            Event::Completion { thread, job, .. } => {
                let record = self.threads.get_mut(thread).and_then(|thread| thread.job(job));
                if let Some(record) = record {
                    record.finished_ns = i64::try_from(at).ok();
                }
            }
            Event::Waits { thread } => {
                if let Some(thread) = self.threads.get_mut(thread) {
                    thread.waits = Some(at);
                }
            }
            Event::Exhausted { server } => {
                self.exhausted.insert(server, at);
            }
            Event::Throttled { cpu } => {
                self.throttled.insert(self.number_of(cpu), at);
            }
            _ => {}
        }
    }
}
