//! One CPU of the common case, event by event.
//!
//! Owns: [`Track`]. Must not: know the other CPUs.
//!
//! There is no queue of jobs: arrivals are a period apart, so that those that wait are known by their
//! count. Who is ready is a bit each, in the order of urgency under fixed priorities.

use super::super::engine::MOST_WAITING;
use super::super::error::SimError;
use super::super::outcome::{CpuOutcome, FirstMiss, ThreadOutcome};
use super::super::settings::Settings;
use super::super::source::Costs;
use super::super::system::System;
use super::super::thread::{Arrivals, Late, Thread};

/// Binary digits of a key that say which lane it is.
pub(super) const LANE_BITS: u32 = 6;

/// Threads that there are bits for.
pub(super) const MOST_THREADS: usize = 1 << LANE_BITS;

/// Keys are looked at four at a time, which the processor does side by side.
const ABREAST: usize = 4;

/// No time.
const NEVER: u64 = u64::MAX;

/// A thread and its current job: what every event touches.
#[derive(Clone, Copy, Debug)]
struct Lane {
    arrival: u64,
    left: u64,
    /// The arrival that comes next.
    coming: u64,
    /// Nothing is released before this: the offset and the longest jitter.
    floor: u64,
    period: u64,
    deadline: u64,
    /// Of all jobs, or of the current one where costs differ.
    cost: u64,
    begun: bool,
    skips: bool,
    /// Whether costs differ.
    drawn: bool,
    /// Released jobs behind the current one.
    waiting: u32,
}

/// What fewer events touch.
#[derive(Clone, Debug)]
struct Ledger {
    /// Position in the system.
    thread: usize,
    offset: u64,
    costs: Costs,
    min: u64,
    max: u64,
    /// The longest response from release.
    released: u64,
    outcome: ThreadOutcome,
}

/// The state. A key is a time with the number of its lane behind it, so that the least one says both.
#[derive(Debug)]
pub(super) struct Track {
    now: u64,
    /// When the running job will be done; [`NEVER`] without one.
    end: u64,
    by_deadline: bool,
    /// Keys of next releases, padded with [`NEVER`].
    next: Vec<u64>,
    /// Keys of the absolute deadlines of current jobs, for EDF.
    dues: Vec<u64>,
    lanes: Vec<Lane>,
    ledgers: Vec<Ledger>,
    /// A bit for each lane with a job.
    ready: u64,
    /// Lanes that came to have one at this instant.
    fresh: u64,
    running: Option<usize>,
    last: Option<usize>,
    switches: u64,
    pub(super) events: u64,
    most_events: u64,
}

/// The key of a time that leaves room for the lane.
#[inline]
fn key(time: u64, lane: usize) -> u64 {
    (time << LANE_BITS) | lane as u64
}

/// The least key.
#[inline]
fn least(keys: &[u64]) -> u64 {
    let mut found = [NEVER; ABREAST];
    for keys in keys.chunks_exact(ABREAST) {
        for (least, key) in found.iter_mut().zip(keys) {
            *least = (*least).min(*key);
        }
    }
    found.iter().fold(NEVER, |least, key| least.min(*key))
}

/// A lane and its ledger at time 0.
fn lane(thread: &Thread, position: usize, seed: u64) -> Option<(Lane, Ledger)> {
    let Arrivals::Periodic { offset, period } = thread.arrivals else { return None };
    let stream = thread.stream.unwrap_or(position as u64);
    let costs = Costs::new(thread, stream, seed);
    let lane = Lane {
        arrival: 0,
        left: 0,
        coming: offset,
        floor: offset.checked_add(thread.worst_jitter())?,
        period,
        deadline: thread.deadline,
        cost: if let Costs::Worst(cost) = costs { cost } else { 0 },
        begun: false,
        skips: thread.late == Late::Skip,
        drawn: !matches!(costs, Costs::Worst(_)),
        waiting: 0,
    };
    let outcome = ThreadOutcome::default();
    let ledger =
        Ledger { thread: position, offset, costs, min: NEVER, max: 0, released: 0, outcome };
    Some((lane, ledger))
}

impl Ledger {
    #[cold]
    fn miss(&mut self, lane: &Lane, done: Option<u64>) {
        self.outcome.missed += 1;
        let (job, arrival) = ((lane.arrival - self.offset) / lane.period, lane.arrival);
        let due = arrival.saturating_add(lane.deadline);
        self.outcome.first_miss.get_or_insert(FirstMiss { job, arrival, due, done });
    }
}

impl Track {
    /// The threads at these positions on a CPU of their own: the most urgent first, or by deadline. `None` if
    /// one of them is not periodic.
    pub(super) fn new(
        system: &System,
        settings: Settings,
        threads: &[usize],
        by_deadline: bool,
    ) -> Option<Track> {
        let made = threads.iter().map(|at| lane(&system.threads[*at], *at, settings.seed));
        let (lanes, ledgers): (Vec<Lane>, Vec<Ledger>) = made.collect::<Option<_>>()?;
        let first = lanes.iter().enumerate().map(|(at, lane)| key(lane.floor, at));
        let mut next: Vec<u64> = first.collect();
        next.resize(next.len().next_multiple_of(ABREAST), NEVER);
        Some(Track {
            now: 0,
            end: NEVER,
            by_deadline,
            dues: vec![NEVER; next.len()],
            next,
            lanes,
            ledgers,
            ready: 0,
            fresh: 0,
            running: None,
            last: None,
            switches: 0,
            events: 0,
            most_events: settings.most_events,
        })
    }

    /// What happens before `limit`, ns; if this is the horizon, also what ends at it.
    pub(super) fn advance(&mut self, limit: u64, is_horizon: bool) -> Result<(), SimError> {
        if self.by_deadline {
            self.run::<true>(limit, is_horizon)
        } else {
            self.run::<false>(limit, is_horizon)
        }
    }

    /// Each round goes to the next release or completion.
    fn run<const EDF: bool>(&mut self, limit: u64, is_horizon: bool) -> Result<(), SimError> {
        let mut soonest = least(&self.next);
        let mut end = self.end;
        loop {
            let release = soonest >> LANE_BITS;
            let now = end.min(release);
            if now >= limit && !(is_horizon && end == limit) {
                break;
            }
            if let Some(at) = self.running {
                self.lanes[at].left -= now - self.now;
            }
            self.now = now;
            let completed = end == now;
            if completed {
                self.count_event()?;
                self.complete::<EDF>();
            }
            if now < limit {
                while soonest >> LANE_BITS == now {
                    self.release::<EDF>(soonest)?;
                    soonest = least(&self.next);
                }
            }
            self.dispatch::<EDF>(completed);
            end = match self.running {
                Some(at) => now.saturating_add(self.lanes[at].left),
                None => NEVER,
            };
        }
        self.end = end;
        Ok(())
    }

    /// A job that arrived at `arrival` becomes the current one of its lane.
    #[inline]
    fn start<const EDF: bool>(&mut self, at: usize, arrival: u64) {
        let lane = &mut self.lanes[at];
        if lane.drawn {
            lane.cost = self.ledgers[at].costs.next();
        }
        lane.arrival = arrival;
        lane.left = lane.cost;
        lane.begun = false;
        if EDF {
            self.dues[at] = key(arrival + lane.deadline, at);
        }
    }

    /// The running job is done.
    #[inline]
    fn complete<const EDF: bool>(&mut self) {
        let Some(at) = self.running else { return };
        let lane = &mut self.lanes[at];
        let ledger = &mut self.ledgers[at];
        let response = self.now - lane.arrival;
        ledger.min = ledger.min.min(response);
        ledger.max = ledger.max.max(response);
        ledger.released = ledger.released.max(self.now - lane.arrival.max(lane.floor));
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
            self.start::<EDF>(at, arrival);
        } else {
            self.ready &= !(1 << at);
            self.dues[at] = NEVER;
        }
    }

    /// Releases what has this key.
    #[inline]
    fn release<const EDF: bool>(&mut self, soonest: u64) -> Result<(), SimError> {
        self.count_event()?;
        let at = soonest as usize % MOST_THREADS;
        let lane = &mut self.lanes[at];
        let arrival = lane.coming;
        // It has room for the lane, since now is below the horizon.
        lane.coming = arrival + lane.period;
        self.next[at] = key(lane.coming.max(lane.floor), at);
        let bit = 1 << at;
        if self.ready & bit == 0 {
            self.ready |= bit;
            self.fresh |= bit;
            self.start::<EDF>(at, arrival);
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

    /// Gives the CPU to the most urgent.
    #[inline]
    fn dispatch<const EDF: bool>(&mut self, completed: bool) {
        let chosen = if self.ready == 0 {
            None
        } else if EDF {
            self.earliest(completed)
        } else {
            Some(self.ready.trailing_zeros() as usize)
        };
        self.fresh = 0;
        if chosen != self.running {
            if let Some(at) = self.running {
                self.last = Some(at);
                if self.ready & (1 << at) != 0 && self.lanes[at].begun {
                    self.ledgers[at].outcome.preemptions += 1;
                }
            }
            self.switches += u64::from(chosen.is_some() && self.last != chosen);
            self.running = chosen;
        }
        if let Some(at) = chosen {
            self.lanes[at].begun = true;
        }
    }

    /// The earliest deadline; of equal ones that of who runs, else the first.
    #[inline]
    fn earliest(&self, completed: bool) -> Option<usize> {
        let running = self.running.filter(|at| self.ready & (1 << at) != 0);
        let found = match running {
            // Who runs was the earliest; only what has just come can be earlier.
            Some(at) if !completed => {
                let mut found = self.dues[at];
                let mut fresh = self.fresh;
                while fresh != 0 {
                    found = found.min(self.dues[fresh.trailing_zeros() as usize]);
                    fresh &= fresh - 1;
                }
                found
            }
            _ => least(&self.dues),
        };
        let equal = running.filter(|at| self.dues[*at] >> LANE_BITS == found >> LANE_BITS);
        Some(equal.unwrap_or(found as usize % MOST_THREADS))
    }

    #[inline]
    fn count_event(&mut self) -> Result<(), SimError> {
        self.events += 1;
        if self.events > self.most_events {
            return Err(SimError::TooManyEvents { events: self.most_events, at: self.now });
        }
        Ok(())
    }

    /// What became of the CPU, and of its threads in their places.
    pub(super) fn finish(mut self, horizon: u64, threads: &mut [ThreadOutcome]) -> CpuOutcome {
        let mut busy = 0;
        if let Some(at) = self.running {
            self.lanes[at].left -= horizon - self.now;
        }
        for (at, ledger) in self.ledgers.iter_mut().enumerate() {
            let lane = &mut self.lanes[at];
            let jobs = ledger.outcome.responses.count();
            if self.ready & (1 << at) != 0 {
                ledger.outcome.received += lane.cost - lane.left;
                ledger.outcome.unfinished = 1 + u64::from(lane.waiting);
                ledger.outcome.begun = lane.left < lane.cost;
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
