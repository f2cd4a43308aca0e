//! The words that files have for choices, and the keys of each table.
//!
//! Owns: the vocabulary, in one place for reading, writing and explaining. Must not: read.

use super::resource::Protocol;
use super::server::ServerKind;
use super::task::Activation;
use super::task_set::{Assignment, Scheduler};

/// Name and version of the format, which a file may state.
pub const TASKS_SCHEMA: &str = "hourglass.tasks/1";

pub(crate) const FILE_KEYS: [&str; 12] = [
    "schema",
    "name",
    "unit",
    "scheduler",
    "priorities",
    "horizon",
    "machine",
    "resource",
    "server",
    "task",
    "interference",
    "background",
];

pub(crate) const TASK_KEYS: [&str; 27] = [
    "name",
    "activation",
    "period",
    "wcet",
    "bcet",
    "execution_time",
    "deadline",
    "jitter",
    "offset",
    "blocking",
    "suspension",
    "preemptive",
    "preemption_threshold",
    "longest_section",
    "last_section",
    "floating_section",
    "priority",
    "policy",
    "cpus",
    "cpu",
    "arrivals",
    "after",
    "critical_sections",
    "timer",
    "tick_jitter",
    "loops",
    "phases",
];

pub(crate) const PHASE_KEYS: [&str; 5] = ["name", "loops", "policy", "cpus", "steps"];

pub(crate) const SECTION_KEYS: [&str; 3] = ["resource", "length", "count"];

pub(crate) const RESOURCE_KEYS: [&str; 3] = ["name", "protocol", "ceiling"];

pub(crate) const SERVER_KEYS: [&str; 10] = [
    "name",
    "kind",
    "budget",
    "period",
    "deadline",
    "priority",
    "cpus",
    "cpu",
    "scheduler",
    "tasks",
];

pub(crate) const MACHINE_KEYS: [&str; 3] = ["cpus", "cores", "overheads"];

pub(crate) const OVERHEAD_KEYS: [&str; 5] =
    ["context_switch", "tick_period", "tick_cost", "timer_granularity", "cache_delay"];

pub(crate) const INTERFERENCE_KEYS: [&str; 3] = ["task", "beside", "rate"];

pub(crate) const BACKGROUND_KEYS: [&str; 6] = ["name", "policy", "cpus", "cpu", "loops", "phases"];

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

pub(crate) const SERVER_KINDS: [(&str, ServerKind); 7] = [
    ("polling", ServerKind::Polling),
    ("deferrable", ServerKind::Deferrable),
    ("sporadic", ServerKind::Sporadic),
    ("cbs-hard", ServerKind::CbsHard),
    ("cbs-soft", ServerKind::CbsSoft),
    ("periodic-resource", ServerKind::PeriodicResource),
    ("explicit-deadline", ServerKind::ExplicitDeadline),
];

pub(crate) fn word<T: PartialEq>(words: &[(&'static str, T)], value: &T) -> &'static str {
    words.iter().find(|(_, known)| known == value).map_or("", |(word, _)| *word)
}
