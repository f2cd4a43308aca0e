//! How a run goes, as it is shown while it goes on. No document: nothing of it is kept.

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
    /// How many of each length, of all threads together: place N has what takes less than 2^N ns and not less than
    /// half of that, the last one all that is longer.
    pub counts: Vec<u64>,
}

/// A thread so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveThread {
    /// Its number in the run.
    pub id: u32,
    /// Its wake-ups, or gaps.
    pub count: u64,
    /// Wake-ups that never took place because an earlier one was too late.
    pub lost: u64,
    /// The least lateness or length, ns; 0 where there was none. So are the next three.
    pub min_ns: u64,
    /// The mean.
    pub mean_ns: u64,
    /// That of the last one.
    pub last_ns: u64,
    /// The greatest.
    pub max_ns: u64,
    /// The greatest one; `None` where there was none.
    pub worst: Option<LiveWorst>,
}

/// The greatest lateness or gap of a thread so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveWorst {
    /// Lateness or length, ns.
    pub ns: u64,
    /// When it was over, ns after the run's start.
    pub at_ns: u64,
    /// CPU on which the thread was before.
    pub cpu: u32,
    /// Why, as far as it alone tells; the result may say another, which rests on all of them.
    pub cause: Cause,
    /// For so long the thread waited for a CPU at most, ns, where the kernel counts that: from the look before the
    /// worst wake-up to the one behind it.
    pub waited_ns: Option<u64>,
}

/// A reservation at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReserveMoment {
    /// Since the begin, ns.
    pub elapsed_ns: u64,
    /// The budget of a period, ns.
    pub budget_ns: u64,
    /// What the last complete period was given, ns; `None` without any, and of a quota.
    pub last_ns: Option<u64>,
    /// Complete periods so far.
    pub periods: u64,
    /// Those of them whose budget was wanted and not delivered in time; `None` where that is not known.
    pub missed: Option<u64>,
    /// Those of them in which more was wanted.
    pub overruns: u64,
    /// Whether the budget is promised, and nothing is known by now that stands against it.
    pub guarantee: bool,
}
