//! Progress of a run, which is shown while it goes on. No document: it is not stored.

use crate::cause::Cause;

/// All threads of a run so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveReport {
    /// Since the run's start, ns.
    pub elapsed_ns: u64,
    /// Whether wake-ups are counted; else gaps are.
    pub wake_ups: bool,
    /// The threads, in the order of their numbers.
    pub threads: Vec<LiveThread>,
    /// Histogram of all threads together: place N counts values from 2^(N-1) ns to below 2^N ns, the last place also
    /// all longer ones.
    pub counts: Vec<u64>,
}

/// Counts of a thread so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveThread {
    /// Its number in the run.
    pub id: u32,
    /// Number of its wake-ups, or gaps.
    pub count: u64,
    /// Wake-ups that never took place because an earlier one was too late.
    pub lost: u64,
    /// The smallest latency or length, ns; 0 without a value. The next three are 0 then, too.
    pub min_ns: u64,
    /// The mean, ns.
    pub mean_ns: u64,
    /// The last value, ns.
    pub last_ns: u64,
    /// The greatest value, ns.
    pub max_ns: u64,
    /// The greatest value with its evidence; `None` without a value.
    pub worst: Option<LiveWorst>,
}

/// The greatest latency or gap of a thread so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveWorst {
    /// Latency or length, ns.
    pub ns: u64,
    /// When it ended, ns after the run's start.
    pub at_ns: u64,
    /// CPU on which the thread was before.
    pub cpu: u32,
    /// Its cause by its own evidence; the result rests on the evidence of all and may give another cause.
    pub cause: Cause,
    /// Upper bound of the thread's wait for a CPU, ns, where the kernel counts it: from the sample before the worst
    /// wake-up to the sample after it.
    pub waited_ns: Option<u64>,
}

/// A reservation at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReserveMoment {
    /// Time since the start, ns.
    pub elapsed_ns: u64,
    /// The budget of a period, ns.
    pub budget_ns: u64,
    /// Time delivered in the last complete period, ns; `None` without a complete period, and for a quota.
    pub last_ns: Option<u64>,
    /// Complete periods so far.
    pub periods: u64,
    /// Complete periods whose budget was wanted and not delivered in time; `None` where that is not known.
    pub missed: Option<u64>,
    /// Complete periods in which more than the budget was wanted.
    pub overruns: u64,
    /// Whether the budget is guaranteed, and no fault of the guarantee is known so far.
    pub guarantee: bool,
}
