//! What comes of a simulation.
//!
//! Owns: [`SimOutcome`] and its parts. Must not: grow with simulated time.

use super::histogram::Histogram;

/// Statistics of a simulation. Its size depends on the system, not on the time simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimOutcome {
    /// Simulated time, ns.
    pub horizon: u64,
    /// Instants at which something happened.
    pub events: u64,
    pub jobs: u64,
    /// One a thread, in the order of the system.
    pub threads: Vec<ThreadOutcome>,
    pub servers: Vec<ServerOutcome>,
    pub cpus: Vec<CpuOutcome>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadOutcome {
    pub released: u64,
    pub jobs: u64,
    /// Jobs done late, and jobs that were due by the horizon and are not done.
    pub missed: u64,
    /// Jobs done late alone.
    pub late: u64,
    /// Jobs that never started because an earlier one was still running.
    pub lost: u64,
    /// Jobs that are released and not done at the horizon.
    pub unfinished: u64,
    /// Whether the oldest of those has begun: the others cannot have.
    pub oldest_started: bool,
    /// The shortest response of a job that was done, from its nominal arrival, ns.
    pub min_response: Option<u64>,
    /// The longest, from nominal arrival.
    pub max_response: Option<u64>,
    /// The longest, from actual release.
    pub max_response_from_release: Option<u64>,
    /// All responses from nominal arrival.
    pub responses: Histogram,
    /// The first job that missed its deadline, by completion.
    pub first_miss: Option<FirstMiss>,
    /// Time on CPUs, ns.
    pub received: u64,
    /// Work done, ns of an unshared CPU, rounded down.
    pub progress: u64,
    /// How often it lost a CPU in the middle of a job.
    pub preemptions: u64,
    /// How often it went on on another CPU than it last had.
    pub migrations: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstMiss {
    /// Number of the job, from 0.
    pub job: u64,
    /// The nominal arrival of the job, ns.
    pub arrival: u64,
    /// When it was due, ns.
    pub deadline: u64,
    /// When it was done, ns; `None` if not by the horizon.
    pub done: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerOutcome {
    /// Processor time that it gave to its threads out of its budget, ns.
    pub received: u64,
    /// How often the budget was spent before its threads were done.
    pub exhausted: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuOutcome {
    /// Time in which a thread ran, ns.
    pub busy: u64,
    /// Time that switches, ticks and the monitor took, ns.
    pub overhead: u64,
    /// Switches from one thread to another.
    pub switches: u64,
    /// How often fixed priorities were throttled.
    pub throttled: u64,
}
