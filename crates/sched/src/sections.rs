//! Where jobs may be preempted, and how finely time passes.
//!
//! Owns: [`Sections`], [`TimeModel`]. Must not: analyse.

/// Where a job may be preempted.
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

/// How finely time passes, which decides by how much a segment that has just begun delays others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeModel {
    /// In steps of one unit: a segment began a unit before, and delays by its length less one.
    Discrete,
    /// Without steps: a segment delays by its length, which is never quite reached.
    Continuous,
}
