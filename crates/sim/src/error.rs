//! Refusals of a simulation.
//!
//! Owns: [`SimError`]. Must not: find them.

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    #[error("{0} CPUs; a simulation has from 1 to 128")]
    Cpus(u32),
    #[error("CPU {0} is named, but the machine does not have it")]
    UnknownCpu(u32),
    #[error("CPU {0} is listed in two cores; a CPU belongs to one core")]
    CoreTwice(u32),
    #[error("thread {thread}: its {what} is 0; give a time above zero")]
    Zero { thread: usize, what: &'static str },
    #[error("thread {thread}: its {what} do not ascend; sort them")]
    Unsorted { thread: usize, what: &'static str },
    #[error("thread {thread} names a {what} that does not exist")]
    Dangling { thread: usize, what: &'static str },
    #[error("thread {0} waits for itself through its predecessors; break the cycle")]
    Cycle(usize),
    #[error("thread {0}: nice is from -20 to 19")]
    Nice(usize),
    #[error(
        "thread {0}: sections must not overlap: each lock is given back before the next is taken, at a later point"
    )]
    Sections(usize),
    #[error(
        "thread {0}: a thread with a script has no arrivals, predecessors or marks; leave them out"
    )]
    Script(usize),
    #[error("thread {0}: its last section is longer than the longest, or the longest is 0")]
    Limited(usize),
    #[error("server {0}: give 0 < budget <= deadline <= period")]
    Server(usize),
    #[error("server {0}: only constant bandwidth servers reclaim, and only when charged by time")]
    Reclaim(usize),
    #[error("server {0}: its threads are allowed on different sets of CPUs; give them the same")]
    ServerCpus(usize),
    #[error("thread {0} never ends a job, so that no thread can come after it, nor it after one")]
    Endless(usize),
    #[error("interference: thread {thread} beside {beside}: no such threads, or a rate above 1")]
    Interference { thread: usize, beside: usize },
    #[error("the rates of interference have no common denominator of 64 bits; give fewer digits")]
    RatesTooFine,
    #[error("the {0} of the machine is 0; give a time above zero")]
    Machine(&'static str),
    #[error("a tick takes as long as the time between two; give a shorter cost")]
    Tick,
    #[error("a time of thread {thread} has more than 64 bits; choose a shorter horizon")]
    Overflow { thread: usize },
    #[error("a time has more than 64 bits; choose a shorter horizon")]
    TimeOverflow,
    #[error(
        "given up at {at} ns of simulated time after {events} events; choose a shorter horizon, or allow more"
    )]
    TooManyEvents {
        /// How many were allowed.
        events: u64,
        /// Simulated time, ns.
        at: u64,
    },
    #[error("over {waiting} jobs of thread {thread} wait; it is overloaded: let late jobs be lost")]
    Backlog { thread: usize, waiting: usize },
    #[error("the monitor gives new orders again and again at {at} ns")]
    Restless {
        /// Simulated time, ns.
        at: u64,
    },
    #[error("the monitor gives an order about a CPU, thread or timer that does not exist")]
    UnknownOrder,
}
