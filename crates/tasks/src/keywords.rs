//! The words that files have for choices.
//!
//! Owns: the vocabulary, in one place for reading, writing and explaining; keys are in `language`. Must not: read.

use super::resource::Protocol;
use super::server::ServerKind;
use super::task::Activation;
use super::task_set::{Assignment, Scheduler};

/// Name and version of the format, which a file may state.
pub const TASKS_SCHEMA: &str = "hourglass.tasks/1";

pub(crate) const SCHEDULERS: [(&str, Scheduler); 5] = [
    ("fixed-priority", Scheduler::FixedPriority),
    ("edf", Scheduler::Edf),
    ("fifo", Scheduler::Fifo),
    ("round-robin", Scheduler::RoundRobin),
    ("fair", Scheduler::Fair),
];

pub(crate) const ASSIGNMENTS: [(&str, Assignment); 4] = [
    ("given", Assignment::Given),
    ("rate-monotonic", Assignment::RateMonotonic),
    ("deadline-monotonic", Assignment::DeadlineMonotonic),
    ("optimal", Assignment::Optimal),
];

pub(crate) const ACTIVATIONS: [(&str, Activation); 2] =
    [("periodic", Activation::Periodic), ("sporadic", Activation::Sporadic)];

pub(crate) const PROTOCOLS: [(&str, Protocol); 4] = [
    ("ceiling", Protocol::Ceiling),
    ("inheritance", Protocol::Inheritance),
    ("spin", Protocol::Spin),
    ("plain", Protocol::Plain),
];

pub(crate) const SERVER_KINDS: [(&str, ServerKind); 8] = [
    ("polling", ServerKind::Polling),
    ("deferrable", ServerKind::Deferrable),
    ("sporadic", ServerKind::Sporadic),
    ("cbs-hard", ServerKind::CbsHard),
    ("cbs-soft", ServerKind::CbsSoft),
    ("cbs-reclaim", ServerKind::CbsReclaim),
    ("periodic-resource", ServerKind::PeriodicResource),
    ("explicit-deadline", ServerKind::ExplicitDeadline),
];

/// The words of a choice.
pub(crate) const fn names<T, const N: usize>(words: &[(&'static str, T); N]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut at = 0;
    while at < N {
        names[at] = words[at].0;
        at += 1;
    }
    names
}

pub(crate) fn word<T: PartialEq>(words: &[(&'static str, T)], value: &T) -> &'static str {
    words.iter().find(|(_, known)| known == value).map_or("", |(word, _)| *word)
}
