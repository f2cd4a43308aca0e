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

/// Threads that there are bits for.
const MOST_THREADS: usize = 64;

/// A thread and its job.
#[derive(Clone, Debug)]
struct Lane {
    /// Position in the system.
    thread: usize,
    period: u64,
    deadline: u64,
    offset: u64,
    skips: bool,
    costs: Costs,
    /// Of the current job: arrival, cost, what is left, absolute deadline.
    arrival: u64,
    cost: u64,
    left: u64,
    due: u64,
    begun: bool,
    /// Released jobs behind the current one.
    waiting: u64,
    min: u64,
    max: u64,
    outcome: ThreadOutcome,
}

/// The state.
#[derive(Debug)]
struct Track {
    now: u64,
    horizon: u64,
    /// Next releases, in the order of lanes.
    next: Vec<u64>,
    lanes: Vec<Lane>,
    /// A bit for each lane with a job.
    ready: u64,
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
    let class = match thread.class {
        // Deadlines that do not fit are refused by the engine.
        Class::Edf => by_deadline && thread.deadline <= u64::MAX - horizon,
        Class::Fifo(_) => !by_deadline,
        _ => false,
    };
    class
        && matches!(thread.arrivals, Arrivals::Periodic { .. })
        && thread.after.is_empty()
        && thread.jitter == Jitter::None
        && thread.tick <= 1
        && thread.preemption == Preemption::Full
        && thread.marks.is_empty()
        && thread.server.is_none()
}

impl Lane {
    fn new(thread: &Thread, position: usize, seed: u64) -> Option<Lane> {
        let Arrivals::Periodic { offset, period } = thread.arrivals else { return None };
        let stream = thread.stream.unwrap_or(position as u64);
        Some(Lane {
            thread: position,
            period,
            deadline: thread.deadline,
            offset,
            skips: thread.late == Late::Skip,
            costs: Costs::new(thread, stream, seed),
            arrival: 0,
            cost: 0,
            left: 0,
            due: 0,
            begun: false,
            waiting: 0,
            min: u64::MAX,
            max: 0,
            outcome: ThreadOutcome::default(),
        })
    }

    /// A job that arrived at `arrival` becomes the current one.
    #[inline]
    fn start(&mut self, arrival: u64) {
        self.arrival = arrival;
        self.cost = self.costs.next();
        self.left = self.cost;
        self.due = arrival.saturating_add(self.deadline);
        self.begun = false;
    }

    /// Counts the current job as done.
    #[inline]
    fn complete(&mut self, now: u64) {
        let response = now - self.arrival;
        self.min = self.min.min(response);
        self.max = self.max.max(response);
        self.outcome.responses.record(response);
        self.outcome.received += self.cost;
        if response > self.deadline {
            self.miss(Some(now));
        }
    }

    #[cold]
    fn miss(&mut self, done: Option<u64>) {
        self.outcome.missed += 1;
        let job = (self.arrival - self.offset) / self.period;
        let (arrival, due) = (self.arrival, self.due);
        self.outcome.first_miss.get_or_insert(FirstMiss { job, arrival, due, done });
    }
}

impl Track {
    fn new(system: &System, settings: Settings, by_deadline: bool) -> Option<Track> {
        let threads = system.threads.iter().enumerate();
        let lanes = threads.map(|(position, thread)| Lane::new(thread, position, settings.seed));
        let mut lanes: Vec<Lane> = lanes.collect::<Option<_>>()?;
        if !by_deadline {
            let priority = |lane: &Lane| match system.threads[lane.thread].class {
                Class::Fifo(priority) => priority,
                _ => 0,
            };
            lanes.sort_by_key(|lane| std::cmp::Reverse(priority(lane)));
            if lanes.windows(2).any(|pair| priority(&pair[0]) == priority(&pair[1])) {
                return None;
            }
        }
        Some(Track {
            now: 0,
            horizon: settings.horizon,
            next: lanes.iter().map(|lane| lane.offset).collect(),
            lanes,
            ready: 0,
            running: None,
            last: None,
            switches: 0,
            events: 0,
            most_events: settings.most_events,
        })
    }

    /// Up to the horizon. Each round goes to the next release or completion.
    fn run<const EDF: bool>(&mut self) -> Result<(), SimError> {
        let mut soonest = self.soonest();
        loop {
            let end = match self.running {
                Some(at) => self.now.saturating_add(self.lanes[at].left),
                None => u64::MAX,
            };
            let now = end.min(soonest);
            if now >= self.horizon && (now > self.horizon || end > now) || now == u64::MAX {
                break;
            }
            if let Some(at) = self.running {
                self.lanes[at].left -= now - self.now;
            }
            self.now = now;
            if end == now {
                self.count_event()?;
                self.complete();
            }
            if now < self.horizon {
                while soonest == now {
                    self.release(now)?;
                    soonest = self.soonest();
                }
            }
            self.dispatch::<EDF>();
        }
        if let Some(at) = self.running {
            self.lanes[at].left -= self.horizon - self.now;
        }
        Ok(())
    }

    #[inline]
    fn soonest(&self) -> u64 {
        self.next.iter().fold(u64::MAX, |least, at| least.min(*at))
    }

    /// The running job is done.
    #[inline]
    fn complete(&mut self) {
        let Some(at) = self.running else { return };
        let lane = &mut self.lanes[at];
        lane.complete(self.now);
        if lane.waiting > 0 {
            lane.waiting -= 1;
            // Of those that wait the first came a period after it.
            lane.start(lane.arrival + lane.period);
        } else {
            self.ready &= !(1 << at);
        }
    }

    /// Releases what is due.
    #[inline]
    fn release(&mut self, now: u64) -> Result<(), SimError> {
        for at in 0..self.lanes.len() {
            if self.next[at] != now {
                continue;
            }
            self.count_event()?;
            let lane = &mut self.lanes[at];
            self.next[at] = now.checked_add(lane.period).unwrap_or(u64::MAX);
            let bit = 1 << at;
            if self.ready & bit == 0 {
                self.ready |= bit;
                lane.start(now);
            } else if lane.skips {
                lane.outcome.lost += 1;
            } else {
                if lane.waiting >= MOST_WAITING as u64 {
                    let thread = lane.thread;
                    return Err(SimError::Backlog { thread, waiting: MOST_WAITING });
                }
                lane.waiting += 1;
            }
        }
        Ok(())
    }

    /// Gives the CPU to the most urgent.
    #[inline]
    fn dispatch<const EDF: bool>(&mut self) {
        let chosen = if self.ready == 0 {
            None
        } else if EDF {
            self.earliest()
        } else {
            Some(self.ready.trailing_zeros() as usize)
        };
        if chosen == self.running {
            if let Some(at) = chosen {
                self.lanes[at].begun = true;
            }
            return;
        }
        if let Some(at) = self.running {
            self.last = Some(at);
            if self.ready & (1 << at) != 0 && self.lanes[at].begun {
                self.lanes[at].outcome.preemptions += 1;
            }
        }
        if let Some(at) = chosen {
            self.switches += u64::from(self.last != Some(at));
            self.lanes[at].begun = true;
        }
        self.running = chosen;
    }

    /// The earliest deadline; of equal ones that of who runs, else the first.
    #[inline]
    fn earliest(&self) -> Option<usize> {
        let mut found = self.running.filter(|at| self.ready & (1 << at) != 0);
        let mut due = found.map_or(u64::MAX, |at| self.lanes[at].due);
        let mut rest = self.ready;
        while rest != 0 {
            let at = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            if self.lanes[at].due < due || found.is_none() {
                (found, due) = (Some(at), self.lanes[at].due);
            }
        }
        found
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
        for (at, lane) in self.lanes.iter_mut().enumerate() {
            let jobs = lane.outcome.responses.count();
            if self.ready & (1 << at) != 0 {
                lane.outcome.received += lane.cost - lane.left;
                lane.outcome.unfinished = 1 + lane.waiting;
                // The current job, and those behind it that are due.
                for _ in 0..=lane.waiting {
                    if lane.due < self.horizon {
                        lane.miss(None);
                    }
                    lane.arrival = lane.arrival.saturating_add(lane.period);
                    lane.due = lane.arrival.saturating_add(lane.deadline);
                }
            }
            let outcome = &mut lane.outcome;
            outcome.jobs = jobs;
            outcome.released = jobs + outcome.unfinished;
            outcome.progress = outcome.received;
            if jobs > 0 {
                outcome.min_response = Some(lane.min);
                outcome.max_response = Some(lane.max);
                outcome.max_response_from_release = Some(lane.max);
            }
            threads[lane.thread] = std::mem::take(outcome);
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
