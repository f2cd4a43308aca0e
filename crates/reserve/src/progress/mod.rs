//! How far reserved work is, as time of a processor that is not shared.
//!
//! Owns: the sources of that: the word that a program writes ([`page`], [`writer`], [`word_progress`]), retired
//! instructions ([`instructions`]), processor time ([`cpu_time`]), the largest of several
//! (`max_progress`), the count of many threads (`tree`), and whether it wanted anything (`idle_aware`). Must not: decide anything; count as
//! done what is not known to be.

pub mod cpu_time;
pub(crate) mod idle_aware;
pub mod instructions;
pub(crate) mod max_progress;
pub mod page;
pub(crate) mod tree;
pub mod word_progress;
pub mod writer;

pub use page::{PATH_VARIABLE, PageError, ProgressPage, VARIABLE};
pub use word_progress::WordProgress;
pub use writer::Progress;

/// Tells progress in one job (Inoue et al., section 3.2).
///
/// MUST: never say more than was done: what is not known counts as not done. MUST NOT block or
/// allocate. What goes backwards counts as no progress, and is counted.
pub trait ProgressSource: Send {
    /// As documents name it: `word`, `instructions`, `cpu_time` or `none`.
    fn name(&self) -> &'static str;
    /// A job begins, with `reserved_ns` of single-thread time. Earlier progress does not count.
    fn begin(&mut self, reserved_ns: u64);
    /// What is done of it now, ns, 0 to what is reserved; the reserved amount means all is done.
    fn done_ns(&mut self) -> u64;
    /// When the job that counts now began, ns of `CLOCK_MONOTONIC`, if the program has reported it: periods that began
    /// at a guess then begin with its jobs.
    fn begun_ns(&mut self) -> Option<u64> {
        None
    }
    /// The job began later than [`ProgressSource::begin`] was called: what was done until now is not its own.
    /// For sources that cannot tell by themselves.
    fn restart(&mut self) {}
    /// Called after co-runners were stopped and before they run again, for sources that count differently in these two
    /// states.
    fn co_runners(&mut self, _running: bool) {}
    /// Whether the program has reported nothing of this job so far.
    fn is_silent(&mut self) -> bool {
        true
    }
    /// Whether the work has reported nothing of this job and wants no processor now, by its own will: it sleeps, and
    /// was not stopped for having used up what is reserved. MUST be false if that is not known. Asked only of jobs for
    /// which co-runners would stand, or that are not done at their deadline, so that it may read files.
    fn is_idle(&mut self) -> bool {
        false
    }
    /// Whether all of the work has ended, so that there will be no further job. MUST be cheap: it is asked at each look.
    fn has_ended(&mut self) -> bool {
        false
    }
    /// What there was to doubt in the jobs that have ended.
    fn errors(&self) -> ProgressErrors {
        ProgressErrors::default()
    }
}

/// Jobs whose progress could not be believed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgressErrors {
    /// Those whose progress went backwards; from there on it counted as none.
    pub backwards: u64,
    /// Jobs in which the program reported no progress at all.
    pub unmoved: u64,
}
