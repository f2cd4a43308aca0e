//! Where jobs may be preempted, and how finely time passes.
//!
//! Owns: [`Sections`], [`TimeModel`], the delay by a segment that has just begun. Must not: analyse.

use crate::task::Task;

/// The points at which a job may be preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sections {
    /// Anywhere; the segments of the tasks are ignored.
    Preemptive,
    /// Nowhere.
    NonPreemptive,
    /// Between segments at fixed places: the longest and the last one count.
    Limited,
    /// Outside of sections that may lie anywhere: the longest one counts.
    Floating,
}

impl Sections {
    /// All values, in their order.
    pub const ALL: [Sections; 4] =
        [Sections::Preemptive, Sections::NonPreemptive, Sections::Limited, Sections::Floating];
}

/// How finely time passes, which decides by how much a segment that has just begun delays others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeModel {
    /// In steps of one unit: a segment began a unit before, and delays by its length less one.
    Discrete,
    /// Time without steps: a segment delays by its length, which is never quite reached.
    Continuous,
}

/// By how much a task of lower priority that has just begun a segment delays others.
pub(crate) fn segment_before(task: &Task, sections: Sections, time: TimeModel) -> u64 {
    let segment = match sections {
        Sections::Preemptive => 0,
        Sections::NonPreemptive => task.cost,
        Sections::Limited | Sections::Floating => task.np,
    };
    if time == TimeModel::Discrete { segment.saturating_sub(1) } else { segment }
}
