//! When jobs come and what they need, one after the other.
//!
//! Owns: the streams of releases and execution times, which the engine and its fast path share. Must
//! not: know what becomes of the jobs.

use hourglass_documents::Sampler;

use super::random::{Purpose, SimRng, seed_of};
use super::thread::{ArrivalPattern, CostModel, Jitter, Thread};

/// Arrival and release of a job, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JobRelease {
    pub(super) arrival: u64,
    pub(super) release: u64,
}

/// The releases of a thread.
#[derive(Clone, Debug)]
pub(super) struct Releases {
    arrivals: ArrivalPattern,
    jitter: Jitter,
    tick: u64,
    /// The longest wait for it.
    tick_jitter: u64,
    gaps: SimRng,
    delays: SimRng,
    count: usize,
    /// The last arrival.
    last: u64,
    /// The first arrival, once it has come.
    first: Option<u64>,
    /// No release before this, so that jobs stay in order.
    earliest_release: u64,
}

impl Releases {
    pub(super) fn new(thread: &Thread, stream: u64, seed: u64) -> Releases {
        Releases {
            arrivals: thread.arrivals.clone(),
            jitter: thread.jitter,
            tick: thread.tick.max(1),
            tick_jitter: thread.tick_jitter,
            gaps: SimRng::new(seed_of(seed, stream, Purpose::Gap)),
            delays: SimRng::new(seed_of(seed, stream, Purpose::Jitter)),
            count: 0,
            last: 0,
            first: None,
            earliest_release: 0,
        }
    }

    /// The next job of a thread with arrivals of its own; `None` after the last one, or if it is
    /// not within 64 bits.
    pub(super) fn next(&mut self) -> Option<JobRelease> {
        let arrival = self.next_arrival()?;
        self.count += 1;
        self.last = arrival;
        self.next_release(arrival, 0)
    }

    /// The release of a job that arrives at `arrival` and cannot be released before `from`.
    pub(super) fn next_release(&mut self, arrival: u64, from: u64) -> Option<JobRelease> {
        let first = *self.first.get_or_insert(arrival);
        let delayed = match self.jitter {
            Jitter::None => arrival,
            Jitter::Worst(jitter) => arrival.max(first.checked_add(jitter)?),
            Jitter::Random(jitter) => arrival.checked_add(self.delays.next_at_most(jitter))?,
        };
        self.earliest_release = self.earliest_release.max(delayed).max(from);
        let release = if self.tick == 1 {
            self.earliest_release
        } else {
            let tick = self.earliest_release.div_ceil(self.tick).checked_mul(self.tick)?;
            tick.min(self.earliest_release.saturating_add(self.tick_jitter))
        };
        Some(JobRelease { arrival, release })
    }

    fn next_arrival(&mut self) -> Option<u64> {
        match &self.arrivals {
            ArrivalPattern::Always { offset } => (self.count == 0).then_some(*offset),
            ArrivalPattern::Listed(times) => times.get(self.count).copied(),
            ArrivalPattern::Periodic { offset, .. }
            | ArrivalPattern::Sporadic { offset, .. }
            | ArrivalPattern::Burst { offset, .. }
                if self.count == 0 =>
            {
                Some(*offset)
            }
            ArrivalPattern::Periodic { period, .. } => self.last.checked_add(*period),
            ArrivalPattern::Sporadic { period, extra, .. } => {
                let gap = period.checked_add(self.gaps.next_at_most(*extra))?;
                self.last.checked_add(gap)
            }
            ArrivalPattern::Burst { offset, distances, period } => {
                match distances.get(self.count - 1) {
                    Some(distance) => offset.checked_add(*distance),
                    None => self.last.checked_add(*period),
                }
            }
        }
    }
}

/// The execution times of a thread.
#[derive(Clone, Debug)]
pub(super) enum ExecutionTimes {
    /// Always this.
    Worst(u64),
    /// Draws, cut off.
    Drawn(Box<Sampler>, u64),
    Listed(Vec<u64>, usize),
}

impl ExecutionTimes {
    pub(super) fn new(thread: &Thread, stream: u64, seed: u64) -> ExecutionTimes {
        match &thread.cost {
            CostModel::Worst(cost) => ExecutionTimes::Worst(*cost),
            CostModel::Drawn { times, at_most } => {
                let sampler = Sampler::new(times, seed_of(seed, stream, Purpose::Cost));
                ExecutionTimes::Drawn(Box::new(sampler), *at_most)
            }
            CostModel::Listed(costs) => ExecutionTimes::Listed(costs.clone(), 0),
        }
    }

    /// The execution time of the next job, ns, above zero.
    #[inline]
    pub(super) fn next(&mut self) -> u64 {
        match self {
            ExecutionTimes::Worst(cost) => *cost,
            ExecutionTimes::Drawn(sampler, at_most) => {
                // A draw is at least 1.
                let drawn = u64::try_from(sampler.draw().nanos()).unwrap_or(1);
                drawn.clamp(1, *at_most)
            }
            ExecutionTimes::Listed(costs, next) => {
                let cost = costs.get(*next).copied().unwrap_or(1);
                *next = if *next + 1 >= costs.len() { 0 } else { *next + 1 };
                cost
            }
        }
    }
}
