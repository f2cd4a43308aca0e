//! One CPU of the common case, event by event.
//!
//! Owns: [`Track`]. Must not: know the other CPUs.
//!
//! There is no queue of jobs: arrivals are a period apart, so that those that wait are known by their
//! count. Who is ready is a bit each, in the order of urgency under fixed priorities.
//!
//! What runs for every event is compiled for each kind of track: `KEYS`, by a key of the job instead of the
//! place of the lane, that is, by deadline, or by priority with equals in the order of their releases; `MANY`, more threads than a word has bits; `TELL`, slices are wanted.

use super::super::engine::MOST_WAITING;
use super::super::error::SimError;
use super::super::outcome::{CpuOutcome, FirstMiss, ThreadOutcome};
use super::super::settings::SimSettings;
use super::super::source::ExecutionTimes;
use super::super::system::System;
use super::super::thread::{ArrivalPattern, OverrunPolicy, Preemption, Thread};
use super::keys::{Keys, NEVER};
use super::ready::{MOST_THREADS, ReadySet, WORD};
use super::slices::{CpuSlices, SliceEnd};

/// A thread and its current job: what every event touches.
#[derive(Clone, Copy, Debug)]
struct FastThread {
    arrival: u64,
    remaining: u64,
    coming: u64,
    /// Nothing is released before this: the offset and the longest jitter.
    earliest_release: u64,
    period: u64,
    deadline: u64,
    /// The cost of all jobs, or of the current one where costs differ.
    cost: u64,
    /// What is added to a release to make it a key, less the deadline where that counts.
    base: KeyKind,
    started: bool,
    firm: bool,
    skips: bool,
    drawn: bool,
    /// Released jobs behind the current one.
    waiting: u32,
}

#[derive(Clone, Debug)]
struct ThreadStats {
    /// Position in the system.
    thread: usize,
    offset: u64,
    costs: ExecutionTimes,
    min: u64,
    max: u64,
    /// The longest response from release.
    released: u64,
    outcome: ThreadOutcome,
}

/// The order in which jobs are dispatched.
#[derive(Clone, Debug)]
pub(super) enum DispatchOrder {
    /// The earliest absolute deadline.
    Deadline,
    /// The lanes as they stand.
    Priority,
    /// The priority of a lane, from which its keys begin, and of equals the job that was released first.
    Turn(Vec<u64>),
}

/// The meaning of a lane's keys.
#[derive(Clone, Copy, Debug)]
enum KeyKind {
    /// The absolute deadline.
    Deadline,
    /// The release, counted from here.
    Release(u64),
}

#[derive(Debug)]
pub(super) struct Track {
    now: u64,
    /// When the running job will be done; [`NEVER`] without one.
    end: u64,
    by_key: bool,
    /// Whether the running job comes first among jobs with equal keys.
    keeps: bool,
    /// Next releases.
    next: Keys,
    /// Keys of current jobs: absolute deadlines, or releases behind those of more urgent priorities.
    dues: Keys,
    lanes: Vec<FastThread>,
    ledgers: Vec<ThreadStats>,
    /// Lanes with a job.
    ready: ReadySet,
    /// Lanes that came to have one at this instant, where there are few.
    fresh: u64,
    running: Option<usize>,
    last: Option<usize>,
    switches: u64,
    pub(super) events: u64,
    max_events: u64,
    /// The slices, if the sink wants them.
    pub(super) slices: Option<CpuSlices>,
}

fn many(threads: usize) -> bool {
    threads > WORD
}

/// A lane and its ledger at time 0.
fn lane(thread: &Thread, position: usize, seed: u64) -> Option<(FastThread, ThreadStats)> {
    let ArrivalPattern::Periodic { offset, period } = thread.arrivals else { return None };
    let stream = thread.stream.unwrap_or(position as u64);
    let costs = ExecutionTimes::new(thread, stream, seed);
    let lane = FastThread {
        arrival: 0,
        remaining: 0,
        coming: offset,
        earliest_release: offset.checked_add(thread.worst_jitter())?,
        period,
        deadline: thread.deadline,
        cost: if let ExecutionTimes::Worst(cost) = costs { cost } else { 0 },
        base: KeyKind::Deadline,
        started: false,
        firm: thread.preemption == Preemption::None,
        skips: thread.late == OverrunPolicy::Skip,
        drawn: !matches!(costs, ExecutionTimes::Worst(_)),
        waiting: 0,
    };
    let outcome = ThreadOutcome::default();
    let ledger =
        ThreadStats { thread: position, offset, costs, min: NEVER, max: 0, released: 0, outcome };
    Some((lane, ledger))
}

impl ThreadStats {
    #[cold]
    fn miss(&mut self, lane: &FastThread, done: Option<u64>) {
        self.outcome.missed += 1;
        let (job, arrival) = ((lane.arrival - self.offset) / lane.period, lane.arrival);
        let due = arrival.saturating_add(lane.deadline);
        self.outcome.first_miss.get_or_insert(FirstMiss { job, arrival, deadline: due, done });
    }
}

impl Track {
    /// The threads at these positions on a CPU of their own. `None` if one of them is not periodic.
    pub(super) fn new(
        system: &System,
        settings: SimSettings,
        threads: &[usize],
        order: DispatchOrder,
        slices: Option<CpuSlices>,
    ) -> Option<Track> {
        if threads.len() > MOST_THREADS {
            return None;
        }
        let made = threads.iter().map(|at| lane(&system.threads[*at], *at, settings.seed));
        let (mut lanes, ledgers): (Vec<FastThread>, Vec<ThreadStats>) =
            made.collect::<Option<_>>()?;
        if let DispatchOrder::Turn(bases) = &order {
            for (lane, base) in lanes.iter_mut().zip(bases) {
                lane.base = KeyKind::Release(*base);
            }
        }
        let mut next = Keys::new(lanes.len());
        lanes.iter().enumerate().for_each(|(at, lane)| next.set(at, lane.earliest_release));
        Some(Track {
            now: 0,
            end: NEVER,
            by_key: !matches!(order, DispatchOrder::Priority),
            keeps: matches!(order, DispatchOrder::Deadline),
            dues: Keys::new(lanes.len()),
            next,
            ready: ReadySet::new(lanes.len()),
            lanes,
            ledgers,
            fresh: 0,
            running: None,
            last: None,
            switches: 0,
            events: 0,
            max_events: settings.max_events,
            slices,
        })
    }

    /// What happens before `limit`, ns; if this is the horizon, also what ends at it.
    pub(super) fn advance(&mut self, limit: u64, is_horizon: bool) -> Result<(), SimError> {
        match (self.by_key, many(self.lanes.len()), self.slices.is_some()) {
            (false, false, false) => self.run::<false, false, false>(limit, is_horizon),
            (false, false, true) => self.run::<false, false, true>(limit, is_horizon),
            (false, true, false) => self.run::<false, true, false>(limit, is_horizon),
            (false, true, true) => self.run::<false, true, true>(limit, is_horizon),
            (true, false, false) => self.run::<true, false, false>(limit, is_horizon),
            (true, false, true) => self.run::<true, false, true>(limit, is_horizon),
            (true, true, false) => self.run::<true, true, false>(limit, is_horizon),
            (true, true, true) => self.run::<true, true, true>(limit, is_horizon),
        }
    }

    /// Each round goes to the next release or completion.
    fn run<const KEYS: bool, const MANY: bool, const TELL: bool>(
        &mut self,
        limit: u64,
        is_horizon: bool,
    ) -> Result<(), SimError> {
        let (mut release, mut lane) = self.next.least::<MANY>();
        let mut end = self.end;
        loop {
            let now = end.min(release);
            if now >= limit && !(is_horizon && end == limit) {
                break;
            }
            if let Some(at) = self.running {
                self.lanes[at].remaining -= now - self.now;
            }
            self.now = now;
            let completed = end == now;
            if completed {
                self.count_event()?;
                self.complete::<KEYS, MANY, TELL>();
            }
            if now < limit {
                while release == now {
                    self.release::<KEYS, MANY>(lane)?;
                    (release, lane) = self.next.least::<MANY>();
                }
            }
            self.dispatch::<KEYS, MANY, TELL>(completed);
            end = match self.running {
                Some(at) => now.saturating_add(self.lanes[at].remaining),
                None => NEVER,
            };
        }
        self.end = end;
        Ok(())
    }

    /// Reports the slice of the running job, which stops running or ends here.
    #[inline]
    fn tell<const TELL: bool>(&mut self, at: usize, end: SliceEnd) {
        if TELL && let Some(slices) = &mut self.slices {
            let (lane, ledger) = (&self.lanes[at], &self.ledgers[at]);
            let job = || (lane.arrival - ledger.offset) / lane.period;
            slices.until(self.now, end, ledger.thread, job);
        }
    }

    /// A job that arrived at `arrival` becomes the current one of its lane.
    #[inline]
    fn start<const KEYS: bool, const MANY: bool>(&mut self, at: usize, arrival: u64) {
        let lane = &mut self.lanes[at];
        if lane.drawn {
            lane.cost = self.ledgers[at].costs.next();
        }
        lane.arrival = arrival;
        lane.remaining = lane.cost;
        lane.started = false;
        if KEYS {
            let key = match lane.base {
                KeyKind::Deadline => arrival + lane.deadline,
                KeyKind::Release(base) => base + arrival.max(lane.earliest_release),
            };
            self.dues.put::<MANY>(at, key);
        }
    }

    #[inline]
    fn complete<const KEYS: bool, const MANY: bool, const TELL: bool>(&mut self) {
        let Some(at) = self.running else { return };
        self.tell::<TELL>(at, SliceEnd::Completed);
        let lane = &mut self.lanes[at];
        let ledger = &mut self.ledgers[at];
        let response = self.now - lane.arrival;
        ledger.min = ledger.min.min(response);
        ledger.max = ledger.max.max(response);
        ledger.released = ledger.released.max(self.now - lane.arrival.max(lane.earliest_release));
        ledger.outcome.responses.record(response);
        ledger.outcome.received += lane.cost;
        if response > lane.deadline {
            ledger.outcome.late += 1;
            ledger.miss(lane, Some(self.now));
        }
        if lane.waiting > 0 {
            lane.waiting -= 1;
            // Of those that wait the first came a period after it.
            let arrival = lane.arrival + lane.period;
            self.start::<KEYS, MANY>(at, arrival);
        } else {
            self.ready.remove::<MANY>(at);
            if KEYS {
                self.dues.put::<MANY>(at, NEVER);
            }
        }
    }

    /// Releases the next job of a lane.
    #[inline]
    fn release<const KEYS: bool, const MANY: bool>(&mut self, at: usize) -> Result<(), SimError> {
        self.count_event()?;
        let lane = &mut self.lanes[at];
        let arrival = lane.coming;
        // It has room for the lane, since now is below the horizon.
        lane.coming = arrival + lane.period;
        self.next.put::<MANY>(at, lane.coming.max(lane.earliest_release));
        if !self.ready.has::<MANY>(at) {
            self.ready.insert::<MANY>(at);
            if !MANY {
                self.fresh |= 1 << at;
            }
            self.start::<KEYS, MANY>(at, arrival);
        } else if lane.skips {
            self.ledgers[at].outcome.lost += 1;
        } else {
            lane.waiting += 1;
            if lane.waiting as usize > MOST_WAITING {
                let thread = self.ledgers[at].thread;
                return Err(SimError::Backlog { thread, waiting: MOST_WAITING });
            }
        }
        Ok(())
    }

    #[inline]
    fn dispatch<const KEYS: bool, const MANY: bool, const TELL: bool>(&mut self, completed: bool) {
        let held = self.running.filter(|at| !completed && self.lanes[*at].firm);
        let chosen = if self.ready.is_empty() {
            None
        } else if held.is_some() {
            held
        } else if KEYS {
            self.earliest::<MANY>(completed)
        } else {
            Some(self.ready.first::<MANY>())
        };
        self.fresh = 0;
        if chosen != self.running {
            if let Some(at) = self.running {
                self.last = Some(at);
                if self.ready.has::<MANY>(at) && self.lanes[at].started {
                    self.ledgers[at].outcome.preemptions += 1;
                    self.tell::<TELL>(at, SliceEnd::Displaced);
                }
            }
            if TELL && let Some(slices) = &mut self.slices {
                slices.from(self.now);
            }
            self.switches += u64::from(chosen.is_some() && self.last != chosen);
            self.running = chosen;
        }
        if let Some(at) = chosen {
            self.lanes[at].started = true;
        }
    }

    /// The least key; of equal ones that of who runs if that counts, else the first.
    #[inline]
    fn earliest<const MANY: bool>(&self, completed: bool) -> Option<usize> {
        let running = self.running.filter(|at| self.ready.has::<MANY>(*at));
        let (due, lane) = match running {
            // Who runs was the earliest; only what has just come can be earlier.
            Some(at) if !completed && !MANY => self.dues.least_of(at, self.fresh),
            _ => self.dues.least::<MANY>(),
        };
        let equal = running.filter(|at| self.keeps && self.dues.time(*at) == due);
        Some(equal.unwrap_or(lane))
    }

    #[inline]
    fn count_event(&mut self) -> Result<(), SimError> {
        self.events += 1;
        if self.events > self.max_events {
            return Err(SimError::TooManyEvents { events: self.max_events, at: self.now });
        }
        Ok(())
    }

    /// Ends the slice of the running job at the horizon.
    pub(super) fn close(&mut self, horizon: u64) {
        if let Some(at) = self.running {
            self.lanes[at].remaining -= horizon - self.now;
            self.now = horizon;
            self.tell::<true>(at, SliceEnd::Horizon);
        }
    }

    /// Returns the outcome of the CPU, and writes those of its threads to their places.
    pub(super) fn finish(mut self, horizon: u64, threads: &mut [ThreadOutcome]) -> CpuOutcome {
        let mut busy = 0;
        if let Some(at) = self.running {
            self.lanes[at].remaining -= horizon - self.now;
        }
        for (at, ledger) in self.ledgers.iter_mut().enumerate() {
            let lane = &mut self.lanes[at];
            let jobs = ledger.outcome.responses.count();
            if self.ready.contains(at) {
                ledger.outcome.received += lane.cost - lane.remaining;
                ledger.outcome.unfinished = 1 + u64::from(lane.waiting);
                ledger.outcome.oldest_started = lane.remaining < lane.cost;
                // The current job, and those behind it that are due.
                for _ in 0..=lane.waiting {
                    let due = lane.arrival.checked_add(lane.deadline);
                    if due.is_some_and(|due| due <= horizon) {
                        ledger.miss(lane, None);
                    }
                    lane.arrival = lane.arrival.saturating_add(lane.period);
                }
            }
            let outcome = &mut ledger.outcome;
            outcome.jobs = jobs;
            outcome.released = jobs + outcome.unfinished;
            outcome.progress = outcome.received;
            if jobs > 0 {
                outcome.min_response = Some(ledger.min);
                outcome.max_response = Some(ledger.max);
                outcome.max_response_from_release = Some(ledger.released);
            }
            busy += outcome.received;
            threads[ledger.thread] = std::mem::take(outcome);
        }
        CpuOutcome { busy, switches: self.switches, ..CpuOutcome::default() }
    }
}
