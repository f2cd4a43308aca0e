//! Refusals of a simulation.
//!
//! Owns: [`SimError`]. Must not: find them.

/// A system that cannot be simulated, or a simulation that was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// No CPU, or too many.
    #[error("{0} CPUs; a simulation has from 1 to 128")]
    Cpus(u32),
    /// A CPU that the machine does not have.
    #[error("CPU {0} is named, but the machine does not have it")]
    UnknownCpu(u32),
    /// A CPU that is in two cores, or twice in one.
    #[error("CPU {0} is listed in two cores; a CPU belongs to one core")]
    CoreTwice(u32),
    /// A value of a thread that must be above zero.
    #[error("thread {thread}: its {what} is 0; give a time above zero")]
    Zero {
        /// Position of the thread.
        thread: usize,
        /// The name of the value.
        what: &'static str,
    },
    /// A list of times that does not ascend.
    #[error("thread {thread}: its {what} do not ascend; sort them")]
    Unsorted {
        /// Position of the thread.
        thread: usize,
        /// The name of the list.
        what: &'static str,
    },
    /// A reference to something that there is not.
    #[error("thread {thread} names a {what} that does not exist")]
    Dangling {
        /// Position of the thread.
        thread: usize,
        /// The kind of the unknown item.
        what: &'static str,
    },
    /// Threads that wait for one another.
    #[error("thread {0} waits for itself through its predecessors; break the cycle")]
    Cycle(usize),
    /// A nice value out of range.
    #[error("thread {0}: nice is from -20 to 19")]
    Nice(usize),
    /// Locks in an order that makes no sense.
    #[error(
        "thread {0}: sections must not overlap: each lock is given back before the next is taken, at a later point"
    )]
    Sections(usize),
    /// A script beside jobs that arrive by themselves.
    #[error(
        "thread {0}: a thread with a script has no arrivals, predecessors or marks; leave them out"
    )]
    Script(usize),
    /// A section of a length that a section cannot have.
    #[error("thread {0}: its last section is longer than the longest, or the longest is 0")]
    Limited(usize),
    /// A server that cannot be.
    #[error("server {0}: give 0 < budget <= deadline <= period")]
    Server(usize),
    /// Reclaiming by a server that cannot reclaim.
    #[error("server {0}: only constant bandwidth servers reclaim, and only when charged by time")]
    Reclaim(usize),
    /// The threads of a server may run on different CPUs.
    #[error("server {0}: its threads are allowed on different sets of CPUs; give them the same")]
    ServerCpus(usize),
    /// A best-effort thread as part of a chain.
    #[error("thread {0} never ends a job, so that no thread can come after it, nor it after one")]
    Endless(usize),
    /// A malformed entry of the interference matrix.
    #[error("interference: thread {thread} beside {beside}: no such threads, or a rate above 1")]
    Interference {
        /// The thread with the rate.
        thread: usize,
        /// The thread beside it.
        beside: usize,
    },
    /// Rates whose common denominator is too large.
    #[error("the rates of interference have no common denominator of 64 bits; give fewer digits")]
    RatesTooFine,
    /// Something of the machine that must be above zero.
    #[error("the {0} of the machine is 0; give a time above zero")]
    Machine(&'static str),
    /// Ticks that take all of the time.
    #[error("a tick takes as long as the time between two; give a shorter cost")]
    Tick,
    /// A time over 64 bits.
    #[error("a time of thread {thread} has more than 64 bits; choose a shorter horizon")]
    Overflow {
        /// Position of the thread.
        thread: usize,
    },
    /// A time of the machine over 64 bits.
    #[error("a time has more than 64 bits; choose a shorter horizon")]
    TimeOverflow,
    /// More events than allowed.
    #[error(
        "given up at {at} ns of simulated time after {events} events; choose a shorter horizon, or allow more"
    )]
    TooManyEvents {
        /// How many were allowed.
        events: u64,
        /// Simulated time, ns.
        at: u64,
    },
    /// More jobs of a thread wait than are kept.
    #[error("over {waiting} jobs of thread {thread} wait; it is overloaded: let late jobs be lost")]
    Backlog {
        /// Position of the thread.
        thread: usize,
        /// How many may wait.
        waiting: usize,
    },
    /// A monitor that never stops giving orders at one instant.
    #[error("the monitor gives new orders again and again at {at} ns")]
    Restless {
        /// Simulated time, ns.
        at: u64,
    },
    /// An order about a CPU, thread or timer that there is not.
    #[error("the monitor gives an order about a CPU, thread or timer that does not exist")]
    UnknownOrder,
}
