//! The document `hourglass.simulate/1`: what became of a set of tasks on virtual time.
//!
//! Owns: the shape of the findings. Must not: simulate (`sched` does), judge, lay out text.

use serde::{Deserialize, Serialize};

use crate::warning::Warning;

/// Name and version of the document.
pub const SIMULATE_SCHEMA: &str = "hourglass.simulate/1";

/// What a simulation found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SimulationDocument {
    /// Always [`SIMULATE_SCHEMA`].
    pub schema: String,
    /// What the set of tasks is called; may be empty.
    pub name: String,
    /// Who runs next: `fixed-priority`, `edf`, `fifo`, `round-robin`, `fair`.
    pub scheduler: String,
    /// Start of the random sequences; the same seed gives the same document.
    pub seed: u64,
    /// When jobs were released, as far as the set leaves it open: `critical`, `nominal`, `random`.
    pub releases: String,
    /// How long it was to go on.
    pub horizon_ns: u64,
    /// Where the horizon comes from: `asked`, `file`, `hyperperiod`, `default`.
    pub horizon_from: String,
    /// Time after which the schedule repeats: the least common multiple of the periods. Null if it
    /// has more than 64 bits.
    pub hyperperiod_ns: Option<u64>,
    /// How far it came: the horizon, or less if it was interrupted.
    pub simulated_ns: u64,
    /// Releases, completions, switches, refills and whatever else was an event.
    pub events: u64,
    /// Jobs released, of all tasks.
    pub jobs: u64,
    /// One for each task, in the order of the set.
    pub tasks: Vec<TaskFindings>,
    /// One for each background thread, in the order of the set.
    #[serde(default)]
    pub background: Vec<BackgroundFindings>,
    /// Cores with several hardware threads, where a policy for them was asked for.
    #[serde(default)]
    pub smt: Option<SmtFindings>,
    /// What must be known before the numbers are believed.
    #[serde(default)]
    pub warnings: Vec<Warning>,
    /// Whether it was ended early by a signal.
    #[serde(default)]
    pub interrupted: bool,
}

/// What became of one task.
///
/// Jobs whose deadline lies beyond what was simulated, and that were not finished by then, are
/// neither hit nor missed nor lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskFindings {
    /// Its name.
    pub name: String,
    /// The thread's number in a run folder.
    pub thread: u32,
    /// Time between two arrivals.
    pub period_ns: u64,
    /// From the nominal arrival.
    pub deadline_ns: u64,
    /// Jobs released.
    pub jobs: u64,
    /// Finished by the deadline.
    pub hit: u64,
    /// Started, but not finished by the deadline.
    pub missed: u64,
    /// Never started, because an earlier one was still running at the end, or was when this one
    /// was due and late jobs skip what they passed.
    pub lost: u64,
    /// Longest response time of a finished job from its nominal arrival; null if none finished.
    pub max_response_ns: Option<u64>,
    /// The same from the actual release.
    pub max_response_from_release_ns: Option<u64>,
    /// Shortest response time of a finished job from its nominal arrival.
    pub min_response_ns: Option<u64>,
    /// Median of the response times from the nominal arrival.
    pub p50_response_ns: Option<u64>,
    /// 99 of 100 are not longer.
    pub p99_response_ns: Option<u64>,
    /// Processor time received.
    pub cpu_time_ns: u64,
    /// How often another took the CPU from it.
    pub preemptions: u64,
    /// How often it came to another CPU.
    pub migrations: u64,
    /// The first deadline missed, by completion; absent if none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_miss: Option<FirstMiss>,
}

/// A deadline that is missed. Times count from the beginning of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstMiss {
    /// Which job, from 0.
    pub job: u64,
    /// Its nominal arrival.
    pub arrival_ns: u64,
    /// When it was due.
    pub due_ns: u64,
    /// When it was done; null if not by the end.
    pub done_ns: Option<u64>,
}

/// What a background thread received.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundFindings {
    /// Its name.
    pub name: String,
    /// The thread's number in a run folder.
    pub thread: u32,
    /// Processor time received.
    pub cpu_time_ns: u64,
    /// What it achieved, as time of a processor that is not shared.
    pub progress_ns: u64,
    /// Jobs done: what it executed between two waits, where its steps were followed.
    #[serde(default)]
    pub jobs: u64,
    /// The longest time from a job's arrival to its end.
    #[serde(default)]
    pub max_response_ns: Option<u64>,
}

/// What the policy for shared cores did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SmtFindings {
    /// `unaware`, `disabling`, `slack-monitoring`.
    pub policy: String,
    /// Worst rate of progress beside others that the monitor relies on.
    pub alpha: Option<String>,
    /// Neighbours are stopped at this slack.
    pub margin_ns: Option<u64>,
    /// What stopping takes.
    #[serde(default)]
    pub latency_ns: Option<u64>,
    /// Time between two checks of the slack; null where the slack itself sets it.
    pub interval_ns: Option<u64>,
    /// How progress is known: `counted`, or `reported:N` in `N` steps.
    pub progress: Option<String>,
    /// Checks of the slack, of all jobs.
    pub wakeups: u64,
    /// The most looks while one job was pending.
    pub wakeups_per_job_max: u64,
    /// How often neighbours were stopped.
    pub stops: u64,
    /// What threads without a deadline achieved, as time of processors that are not shared.
    pub best_effort_ns: u64,
    /// The same where cores are not shared beside real-time tasks; null if that was not simulated.
    pub best_effort_disabling_ns: Option<u64>,
    /// The one divided by the other.
    pub throughput_ratio: Option<f64>,
}

impl SimulationDocument {
    /// Jobs of all tasks that were not finished by their deadline: missed and lost ones.
    #[must_use]
    pub fn failed(&self) -> u64 {
        let failed = |task: &TaskFindings| task.missed.saturating_add(task.lost);
        self.tasks.iter().map(failed).fold(0, u64::saturating_add)
    }
}
