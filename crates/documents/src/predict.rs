//! The document `hourglass.predict/1`: what theory, simulation and a run say of the same tasks.

use serde::{Deserialize, Serialize};

/// Name and version of the document.
pub const PREDICT_SCHEMA: &str = "hourglass.predict/1";

/// Bounds, simulated and measured worst cases of a set of tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PredictDocument {
    /// Always [`PREDICT_SCHEMA`].
    pub schema: String,
    /// Name of the set; its file where it has no name.
    pub name: String,
    /// The analysis that gave the bounds.
    pub analysis: String,
    /// Verdict of the analysis on the set: `feasible`, `infeasible`, `no_bound` or `unknown`.
    pub verdict: String,
    /// Why the set has no bounds; null where it was analysed.
    pub not_analysed: Option<String>,
    /// The simulation; null where the set was not simulated.
    pub simulation: Option<SimulationFacts>,
    /// Why the set was not simulated; null where it was.
    pub not_simulated: Option<String>,
    /// The run; null without a run.
    pub run: Option<MeasurementFacts>,
    /// Interference with the most urgent thread, if that was measured.
    pub noise: Option<NoiseFacts>,
    /// The tasks, in the order of the set.
    pub tasks: Vec<PredictedTask>,
    /// What the analysis assumes of each task, tested on the run; empty without a run, or where its
    /// trace is not whole.
    #[serde(default)]
    pub assumptions: Vec<Assumption>,
    /// What else a reader should know, one sentence each.
    pub notes: Vec<String>,
    /// Whether a signal ended the measurement early.
    pub interrupted: bool,
    /// The record against which the bounds are held; null without `--against`.
    #[serde(default)]
    pub against: Option<AgainstFacts>,
}

/// A record of a program, against which bounds are held.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgainstFacts {
    /// The run folder.
    pub folder: String,
    /// Length of the record, ns.
    pub elapsed_ns: u64,
    /// Events of the kernel that were lost.
    pub events_lost: u64,
    /// Tasks no job of which was longer than its bound.
    pub held: u64,
    /// Tasks with a job that was.
    pub broken: u64,
    /// Tasks of which neither is known.
    pub unknown: u64,
}

/// A simulation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimulationFacts {
    /// Virtual time.
    pub horizon_ns: u64,
    /// Jobs that ended in it.
    pub jobs: u64,
}

/// A run of the tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasurementFacts {
    /// How long it was to take.
    pub duration_ns: u64,
    /// How long it took.
    pub elapsed_ns: u64,
    /// Start of its random sequences.
    pub seed: u64,
    /// Where it was kept; null if it was not.
    pub folder: Option<String>,
    /// What spoils its numbers, each with its remedy.
    pub warnings: Vec<String>,
}

/// What takes a CPU from a thread of the highest priority: the kernel, other threads of that
/// priority, a hypervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoiseFacts {
    /// Processor time that was watched, over all CPUs.
    pub watched_ns: u64,
    /// The longest single gap.
    pub longest_ns: u64,
    /// All gaps together.
    pub total_ns: u64,
    /// How many gaps.
    pub gaps: u64,
}

/// One task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PredictedTask {
    /// Its name.
    pub name: String,
    /// The bound on its response time from nominal arrival; null without a bound.
    pub bound_ns: Option<u64>,
    /// The longest simulated response; null without a simulation.
    pub simulated_ns: Option<u64>,
    /// The longest measured response; null where no job of it ended in a run.
    pub measured_ns: Option<u64>,
    /// Its relative deadline.
    pub deadline_ns: u64,
    /// Jobs of the run that finished late or were not finished in time; null without a run.
    pub missed: Option<u64>,
    /// What makes measurement and theory differ; null where they do not.
    pub explanation: Option<String>,
    /// Whether the explanation covers all of the difference; null without a difference.
    pub explained: Option<bool>,
    /// What the analysis says of it: `feasible`, `infeasible`, `no_bound` or `unknown`.
    pub verdict: String,
    /// The bound with what was measured put in the place of what was assumed; null without a
    /// difference or where there is no such bound.
    pub corrected_bound_ns: Option<u64>,
    /// Simulated jobs that missed their deadlines; null without a simulation.
    pub simulated_missed: Option<u64>,
    /// Jobs that were done in time; null without a run.
    pub hit: Option<u64>,
    /// Jobs that never started because an earlier one was still running; null without a run.
    pub lost: Option<u64>,
    /// What was found about its jobs; null without a run.
    pub measured: Option<MeasuredTerms>,
    /// For a response above the bound, the assumptions that failed before the end of that job and
    /// since the CPU last had nothing as urgent to do; the largest excess first.
    #[serde(default)]
    pub failed: Vec<Assumption>,
    /// Whether all jobs of the record kept the bound; null without `--against`, and where that is not known.
    #[serde(default)]
    pub held: Option<bool>,
    /// Why it is not known; null where it is, and without `--against`.
    #[serde(default)]
    pub not_held: Option<String>,
    /// Jobs of the record that were seen from their waking to their end; null without `--against`.
    #[serde(default)]
    pub recorded_jobs: Option<u64>,
}

/// An assumption of the analysis, tested on the jobs of one task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assumption {
    /// The task.
    pub task: String,
    /// `arrivals` (within their curve), `release` (within the jitter), `cost` (within the worst
    /// case), `work-conserving` (a job that has begun does not wait longer than its suspension),
    /// `priority` (no less urgent task runs for longer than blocking allows) or `supply` (no other
    /// work takes a CPU).
    pub assumption: String,
    /// Whether it held; null where the run does not show it.
    pub held: Option<bool>,
    /// How many jobs it was tested on.
    pub jobs: u64,
    /// By how much it failed at most.
    pub excess_ns: u64,
    /// Arrival of the job with which it failed by that much, from the run's start; null where it
    /// held.
    pub at_ns: Option<i64>,
    /// The CPU; null where the task has several.
    pub cpu: Option<u32>,
}

/// What jobs of a task were found to do, where the analysis assumes something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredTerms {
    /// Jobs that ended.
    pub jobs: u64,
    /// The longest processor time that a job received.
    pub execution_ns: u64,
    /// The longest time from nominal arrival to release that its timer is to blame for.
    pub jitter_ns: u64,
    /// The longest time for which it kept the CPU while it waited for its next job.
    pub busy_wait_ns: u64,
    /// The longest time within one job in which no task of the set ran.
    pub taken_ns: u64,
}
