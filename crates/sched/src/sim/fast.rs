//! The common case, fast: one CPU, independent periodic threads under distinct fixed priorities or
//! under EDF, preempted anywhere, at no cost.
//!
//! Owns: which systems it takes, and their simulation with statistics only. Its outcome is that of the
//! engine, event for event (tests compare them). Must not: differ.
//!
//! There is no queue of jobs: arrivals are a period apart, so that those that wait are known by their
//! count. Who is ready is a bit each, in the order of urgency under fixed priorities.

use super::engine::MOST_WAITING;
use super::error::SimError;
use super::outcome::{CpuOutcome, FirstMiss, Outcome, ThreadOutcome};
use super::settings::Settings;
use super::source::Costs;
use super::system::{Overheads, System};
use super::thread::{Arrivals, Class, Jitter, Late, Preemption, Thread};

/// Binary digits of a key that say which lane it is.
const LANE_BITS: u32 = 6;

/// Threads that there are bits for.
const MOST_THREADS: usize = 1 << LANE_BITS;

/// Times in keys are below this: nine years.
const MOST_TIME: u64 = 1 << (u64::BITS - LANE_BITS);

/// Keys are looked at four at a time, which the processor does side by side.
const ABREAST: usize = 4;

/// No time.
const NEVER: u64 = u64::MAX;

/// A thread and its current job: what every event touches.
#[derive(Clone, Copy, Debug)]
struct Lane {
    arrival: u64,
    left: u64,
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
    outcome: ThreadOutcome,
}

/// The state. A key is a time with the number of its lane behind it, so that the least one says both.
#[derive(Debug)]
struct Track {
    now: u64,
    horizon: u64,
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
    events: u64,
    most_events: u64,
}

/// Simulates the system if it is a simple one.
pub(super) fn run(system: &System, settings: Settings) -> Option<Result<Outcome, SimError>> {
    let by_deadline = simple(system, settings)?;
    let mut track = Track::new(system, settings, by_deadline)?;
    let ran = if by_deadline { track.run::<true>() } else { track.run::<false>() };
    Some(ran.map(|()| track.finish()))
}

/// Whether a system is simple: by deadline, or not, by distinct priorities.
fn simple(system: &System, settings: Settings) -> Option<bool> {
    let by_deadline = system.threads.first()?.class == Class::Edf;
    let simple = system.cpus == 1
        && system.threads.len() <= MOST_THREADS
        && system.servers.is_empty()
        && system.overheads == Overheads::default()
        && system.throttling.is_none()
        && system.threads.iter().all(|thread| is_simple(thread, by_deadline, settings.horizon));
    simple.then_some(by_deadline)
}

fn is_simple(thread: &Thread, by_deadline: bool, horizon: u64) -> bool {
    let below = |time: u64| horizon.checked_add(time).is_some_and(|sum| sum < MOST_TIME);
    let class = match thread.class {
        Class::Edf => by_deadline && below(thread.deadline),
        Class::Fifo(_) => !by_deadline,
        _ => false,
    };
    let arrivals = match thread.arrivals {
        Arrivals::Periodic { offset, period } => below(period) && offset < MOST_TIME,
        _ => false,
    };
    class
        && arrivals
        && thread.after.is_empty()
        && thread.jitter == Jitter::None
        && thread.tick <= 1
        && thread.preemption == Preemption::Full
        && thread.marks.is_empty()
        && thread.server.is_none()
}

/// The key of a time below [`MOST_TIME`].
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
        period,
        deadline: thread.deadline,
        cost: if let Costs::Worst(cost) = costs { cost } else { 0 },
        begun: false,
        skips: thread.late == Late::Skip,
        drawn: !matches!(costs, Costs::Worst(_)),
        waiting: 0,
    };
    let outcome = ThreadOutcome::default();
    Some((lane, Ledger { thread: position, offset, costs, min: NEVER, max: 0, outcome }))
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
    fn new(system: &System, settings: Settings, by_deadline: bool) -> Option<Track> {
        let threads = system.threads.iter().enumerate();
        let made = threads.map(|(position, thread)| lane(thread, position, settings.seed));
        let mut made: Vec<(Lane, Ledger)> = made.collect::<Option<_>>()?;
        if !by_deadline {
            let priority = |made: &(Lane, Ledger)| match system.threads[made.1.thread].class {
                Class::Fifo(priority) => priority,
                _ => 0,
            };
            made.sort_by_key(|made| std::cmp::Reverse(priority(made)));
            if made.windows(2).any(|pair| priority(&pair[0]) == priority(&pair[1])) {
                return None;
            }
        }
        let (lanes, ledgers): (Vec<Lane>, Vec<Ledger>) = made.into_iter().unzip();
        let offsets = ledgers.iter().enumerate().map(|(at, ledger)| key(ledger.offset, at));
        let mut next: Vec<u64> = offsets.collect();
        next.resize(next.len().next_multiple_of(ABREAST), NEVER);
        Some(Track {
            now: 0,
            horizon: settings.horizon,
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

    /// Up to the horizon. Each round goes to the next release or completion.
    fn run<const EDF: bool>(&mut self) -> Result<(), SimError> {
        let mut soonest = least(&self.next);
        let mut end = NEVER;
        loop {
            let release = soonest >> LANE_BITS;
            let now = end.min(release);
            if now >= self.horizon && (now > self.horizon || end > now) {
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
            if now < self.horizon {
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
        if let Some(at) = self.running {
            self.lanes[at].left -= self.horizon - self.now;
        }
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
        ledger.outcome.responses.record(response);
        ledger.outcome.received += lane.cost;
        if response > lane.deadline {
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
        let (now, at) = (soonest >> LANE_BITS, soonest as usize % MOST_THREADS);
        let lane = &mut self.lanes[at];
        // Below MOST_TIME, since now is below the horizon.
        self.next[at] = key(now + lane.period, at);
        let bit = 1 << at;
        if self.ready & bit == 0 {
            self.ready |= bit;
            self.fresh |= bit;
            self.start::<EDF>(at, now);
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

    fn finish(mut self) -> Outcome {
        let mut threads = vec![ThreadOutcome::default(); self.lanes.len()];
        for (at, ledger) in self.ledgers.iter_mut().enumerate() {
            let lane = &mut self.lanes[at];
            let jobs = ledger.outcome.responses.count();
            if self.ready & (1 << at) != 0 {
                ledger.outcome.received += lane.cost - lane.left;
                ledger.outcome.unfinished = 1 + u64::from(lane.waiting);
                // The current job, and those behind it that are due.
                for _ in 0..=lane.waiting {
                    let due = lane.arrival.checked_add(lane.deadline);
                    if due.is_some_and(|due| due <= self.horizon) {
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
                outcome.max_response_from_release = Some(ledger.max);
            }
            threads[ledger.thread] = std::mem::take(outcome);
        }
        let busy = threads.iter().map(|thread| thread.received).sum();
        Outcome {
            horizon: self.horizon,
            events: self.events,
            jobs: threads.iter().map(|thread| thread.jobs).sum(),
            threads,
            servers: Vec::new(),
            cpus: vec![CpuOutcome { busy, switches: self.switches, ..CpuOutcome::default() }],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::Dice;
    use super::super::{Cost, Nobody, Unwatched, engine};
    use super::*;

    fn thread(dice: &mut Dice, class: Class) -> Thread {
        let mut between = |low, high| low + dice.up_to(high - low);
        let period = between(3, 40);
        let cost = match between(0, 2) {
            0 => Cost::Worst(between(1, period / 2)),
            1 => Cost::Listed((0..3).map(|_| between(1, period)).collect()),
            _ => {
                let times = "uniform:1ns,9ns".parse().unwrap();
                Cost::Drawn { times, at_most: 8 }
            }
        };
        let arrivals = Arrivals::Periodic { offset: between(0, 20), period };
        let deadline = between(1, 2 * period);
        let late = if between(0, 2) == 0 { Late::Skip } else { Late::Queue };
        Thread { late, ..Thread::new(class, arrivals, cost, deadline) }
    }

    /// The engine and this agree in everything, overloaded or not, however they end.
    #[test]
    fn it_does_as_the_engine() {
        let mut taken = 0;
        for seed in 0..3_000 {
            let mut dice = Dice::new(seed);
            let by_deadline = dice.up_to(1) == 0;
            let count = 1 + dice.up_to(5);
            let mut system = System::new(1);
            for priority in 0..count {
                let class = if by_deadline { Class::Edf } else { Class::Fifo(priority as u32) };
                system.threads.push(thread(&mut dice, class));
            }
            let most = if dice.up_to(9) == 0 { 50 } else { 1_000_000 };
            let settings = Settings::until(dice.up_to(600)).with_seed(seed).with_most_events(most);
            let quick = run(&system, settings);
            let engine = engine::run(&system, settings, &mut Nobody, &mut Unwatched);
            taken += u32::from(quick.is_some());
            assert_eq!(quick, Some(engine), "seed {seed}: {system:?}");
        }
        assert_eq!(taken, 3_000);
    }

    #[test]
    fn what_is_not_simple_is_left_to_the_engine() {
        let mut system = System::new(1);
        system.threads = vec![Thread::periodic(1, 3), Thread::periodic(1, 3)];
        let settings = Settings::until(10);
        assert!(run(&system, settings).is_none(), "equal priorities");
        system.threads[0].class = Class::Fifo(2);
        assert!(run(&system, settings).is_some());
        system.threads[0].jitter = Jitter::Random(1);
        assert!(run(&system, settings).is_none(), "jitter");
    }
}
