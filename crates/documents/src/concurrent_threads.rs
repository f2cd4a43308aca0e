//! Who may have run instead of a thread of the run, by counts.

use serde::{Deserialize, Serialize};

use crate::Cause;
use crate::occupants::OccupantReport;

/// One of the longest gaps or latest wake-ups of a run, and the threads that ran on its CPU around it.
///
/// Counts do not say when: each thread had the CPU for at most its `total_ns` of the gap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConcurrentThreads {
    /// `gap` or `wake_up`.
    pub of: String,
    /// Number of the thread in the run.
    pub thread: u32,
    /// When it was over, ns from the run's start.
    pub at_ns: i64,
    /// Length of the gap, or latency of the wake-up, ns.
    pub length_ns: u64,
    /// The look at the counts before it, ns from the run's start.
    pub looked_ns: i64,
    /// The look behind it.
    pub looked_again_ns: i64,
    /// Those that ran between these looks, and at the second were on its CPU; the one with the most first.
    pub ran: Vec<OccupantReport>,
    /// `stopped`: meanwhile no thread of the process ran or waited for a CPU, as under SIGSTOP or in a freezer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
}
