//! What a monitor orders at a look, and what it counts.
//!
//! Owns: these nouns. Must not: decide (that is [`super::monitor`]'s).

use crate::progress::ProgressErrors;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum CoRunnerLevel {
    Run,
    /// Run on what is left over.
    Slow,
    Stop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MonitorDecision {
    pub(super) level: CoRunnerLevel,
    /// Whether a period began at this look.
    pub(super) began: bool,
    /// The only reservation whose work may run, but for those that rest; `None` if all may.
    pub(super) runs: Option<usize>,
    /// Reservations whose jobs are not done and whose work sleeps by its own will: it takes no processor time, and is
    /// not held, so that it can wake.
    pub(super) idle: ReservationSet,
    /// Slack of the system at this look, ns; `None` if nothing is pending or it was not asked for.
    pub(super) slack_ns: Option<i128>,
    pub(super) next_ns: u64,
}

/// Some of the reservations of a core; those beyond [`ReservationSet::MOST`] are never in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReservationSet(u64);

impl ReservationSet {
    pub(super) const MOST: usize = u64::BITS as usize;

    pub(super) fn has(self, index: usize) -> bool {
        index < ReservationSet::MOST && self.0 & (1 << index) != 0
    }

    pub(super) fn with(self, index: usize) -> ReservationSet {
        if index < ReservationSet::MOST { ReservationSet(self.0 | 1 << index) } else { self }
    }
}

/// Counts of the jobs of one reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobCounts {
    /// As [`MonitorStatistics::jobs`].
    pub jobs: u64,
    /// As [`MonitorStatistics::missed`].
    pub missed: u64,
    /// As [`MonitorStatistics::idle`].
    pub idle: u64,
    /// Where its progress is read.
    pub progress: &'static str,
    /// Errors of its progress.
    pub progress_errors: ProgressErrors,
}

/// Counts of a monitor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MonitorStatistics {
    /// Jobs whose period is over.
    pub jobs: u64,
    /// Jobs not done at the look that their deadline called for.
    pub missed: u64,
    /// Jobs without a report, whose work wanted no processor at that check, or when less was left than is reserved; not
    /// among the missed.
    pub idle: u64,
    /// Periods without a check, because the monitor itself was away.
    pub skipped: u64,
    /// Looks.
    pub checks: u64,
    /// Times that co-runners were stopped.
    pub stops: u64,
    /// Times that they were slowed.
    pub slows: u64,
    /// Time for which they stood, ns.
    pub stopped_ns: u64,
    /// The longest order to stop, ns; 0 where that is not measured.
    pub stop_max_ns: u64,
    /// Orders that could not be carried out.
    pub failed: u64,
    /// The latest look after its time, ns.
    pub max_latency_ns: u64,
}
