//! Jobs that missed their deadlines, one by one.

use serde::{Deserialize, Serialize};

use crate::occupants::OccupantReport;

/// A job that was not done by its deadline, and where the time from its release to its end went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateJob {
    /// Number of the thread in the run.
    pub thread: u32,
    /// Its nominal arrival, ns from the run's start.
    pub release_ns: i64,
    /// When it had to be done.
    pub deadline_ns: i64,
    /// When it first ran; null if it did not.
    pub started_ns: Option<i64>,
    /// When it was done; null if the run ended before.
    pub finished_ns: Option<i64>,
    /// By how much it was late, ns; to the end of the run if it was not done.
    pub late_ns: u64,
    /// Jobs behind it that never started, because it still ran.
    pub lost_behind: u64,
    /// How long the job before it kept it from starting, ns.
    pub behind_ns: u64,
    /// How long it took to start otherwise, ns: the latency of its wake-up.
    pub wake_up_ns: u64,
    /// Its own execution and its own waits, ns: what the gaps leave of the time from its start to its end.
    pub own_ns: u64,
    /// Its gaps by cause, the longest in all first.
    pub gaps: Vec<LateJobGaps>,
}

/// What one cause took from a late job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateJobGaps {
    /// The cause by name.
    pub cause: String,
    /// Number of gaps.
    pub count: u64,
    /// Their length within the job, ns.
    pub total_ns: u64,
    /// Those that had the CPU, where they are known, the longest first.
    pub ran: Vec<OccupantReport>,
}
