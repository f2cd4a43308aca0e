//! The documents `hourglass.check/1` and `hourglass.check-corpus/1`: what theory says about a set
//! of tasks, and how worked examples were answered.
//!
//! Owns: their shape. Times are whole nanoseconds, fractions are texts such as `5/8`.
//! Must not: judge.

use serde::{Deserialize, Serialize};

use crate::expected_results::ExpectedResults;
use crate::explanation::Explanation;

/// Name and version of the document about a set of tasks.
pub const CHECK_SCHEMA: &str = "hourglass.check/1";

/// Name and version of the document about worked examples.
pub const CHECK_CORPUS_SCHEMA: &str = "hourglass.check-corpus/1";

crate::named_enum! {
    /// Whether deadlines hold.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub serde enum Verdict {
        /// Every job is done by its deadline.
        #[default]
        Feasible => "feasible",
        /// The analysis cannot tell.
        Unknown => "unknown",
        /// More is demanded than there is, so that responses grow without bound.
        NoBound => "no_bound",
        /// A job misses its deadline in a case that the description allows.
        Infeasible => "infeasible",
    }
}

/// What theory says about a set of tasks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckDocument {
    /// Always [`CHECK_SCHEMA`].
    pub schema: String,
    /// What the set is called; may be empty.
    pub set: String,
    /// Names of the analyses that answered, with `+` between several.
    pub analysis: String,
    /// What each of these is, and whose.
    pub sources: Vec<AnalysisFacts>,
    /// The verdict on all tasks: the worst of theirs.
    pub verdict: Verdict,
    /// A case in which a deadline is missed, or an overload, if there is one.
    pub witness: Option<WitnessFacts>,
    /// Why there is no other verdict than unknown; null with any other.
    pub reason: Option<String>,
    /// One for each task, in the order of the set.
    pub tasks: Vec<TaskFacts>,
    /// The processors that the tasks were analysed on.
    pub processors: Vec<ProcessorFacts>,
    /// How what the description says became numbers of the analysis, one sentence each.
    pub assumptions: Vec<String>,
    /// The smallest reservation, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerDesign>,
    /// How far each task may change, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sensitivity: Option<Vec<SensitivityFacts>>,
    /// How far all execution times of each processor may grow together; absent of many tasks where that was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breakdown: Option<Vec<BreakdownFacts>>,
    /// What was understood, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub understood: Option<Explanation>,
}

/// An analysis by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnalysisFacts {
    /// Its name, as `--analysis` takes it.
    pub name: String,
    /// What it answers.
    pub about: String,
    /// Whose it is: author, year.
    pub source: String,
}

/// Why a deadline does not hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WitnessFacts {
    /// `response`, `demand`, `utilisation` or `cost`.
    pub kind: String,
    /// The task that is late; null where it is the processor that has too little.
    pub task: Option<String>,
    /// Which job of the busy window, from 1; null for the other kinds.
    pub job: Option<u64>,
    /// The response time or the demand.
    pub found_ns: Option<u64>,
    /// The deadline, or the interval in which the demand is due.
    pub limit_ns: Option<u64>,
    /// The same as a sentence.
    pub text: String,
    /// The first miss of a task in the scenario; null where none was found by simulation, which an overload
    /// may have far away.
    pub miss: Option<MissFacts>,
    /// A file of tasks in whose simulation that deadline is missed, as TOML; null without a miss.
    pub scenario: Option<String>,
}

/// A deadline that is missed in a simulation. Times count from its beginning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissFacts {
    /// The task.
    pub task: String,
    /// Which job of it, from 0.
    pub job: u64,
    /// Its nominal arrival.
    pub arrival_ns: u64,
    /// When it is due.
    pub due_ns: u64,
    /// When it is done; null if not by the end of the simulation.
    pub done_ns: Option<u64>,
}

/// What is known of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskFacts {
    /// Its name.
    pub name: String,
    /// The bound on the response time from nominal arrival, own jitter included; null: no bound.
    pub response_time_ns: Option<u64>,
    /// The bound on the response time from actual release; null: no bound.
    pub response_time_from_release_ns: Option<u64>,
    /// The deadline that holds, from nominal arrival.
    pub deadline_ns: u64,
    /// Deadline less bound; null without a bound.
    pub slack_ns: Option<i64>,
    /// Whether the deadline holds.
    pub verdict: Verdict,
    /// Why the verdict is unknown, or what is known beside it; empty if there is nothing to say.
    pub reason: String,
    /// The longest execution time.
    pub wcet_ns: u64,
    /// The period.
    pub period_ns: u64,
    /// The priority that counted, given or found; null without one. The larger is more urgent.
    pub priority: Option<u32>,
    /// Where it was analysed.
    pub cpus: String,
    /// The server it runs in, if any.
    pub server: Option<String>,
    /// `wcet / period`, a fraction.
    pub utilisation: String,
    /// What prove the bound: fixed points of its equation, at most [`MOST_POINTS`]; the one that
    /// decides is among them.
    pub fixed_points: Vec<FixedPoint>,
    /// How many fixed points there are in all.
    pub fixed_point_count: u64,
}

/// Fixed points of a task that a document holds at most.
pub const MOST_POINTS: usize = 1_000;

/// A fixed point: a case of the busy window, and when its job is done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FixedPoint {
    /// How many jobs of the task the window holds up to this one.
    pub job: u64,
    /// From the beginning of the window to the job's release; under EDF, to its arrival plus its
    /// jitter.
    pub offset_ns: u64,
    /// From the beginning of the window to the job's completion, which is the fixed point.
    pub finish_ns: u64,
    /// The response time from nominal arrival that follows.
    pub response_time_ns: u64,
    /// What adds up to the completion; empty but for the point that decides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub terms: Vec<Term>,
}

/// A share in a sum of processor time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Term {
    /// Whose it is: a task, or `blocking`.
    pub of: String,
    /// How many jobs.
    pub jobs: u64,
    /// The time for each.
    pub each_ns: u64,
}

/// A processor, or several that share tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessorFacts {
    /// Its number, or those of several.
    pub cpus: String,
    /// The server whose budget is the processor; null for a real one.
    pub server: Option<String>,
    /// The analysis that answered.
    pub analysis: String,
    /// The verdict on its tasks.
    pub verdict: Verdict,
    /// How much of it is used, a fraction; empty if it has more than 64 bits.
    pub utilisation: String,
    /// The same in parts of a million, rounded up; null if it is not known.
    pub utilisation_ppm: Option<u64>,
    /// What proves the verdict under EDF: intervals, and what is demanded in them.
    pub demand_points: Vec<DemandPoint>,
    /// No longer interval needs to be looked at; null without a demand test.
    pub demand_length_ns: Option<u64>,
    /// What verified the proof: `substitution` of its points, the `conditions` of a theorem, or null if there is nothing to verify.
    pub verified_by: Option<String>,
    /// How many points were verified.
    pub verified_points: u64,
}

/// A point of a demand test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DemandPoint {
    /// Length of the interval.
    pub interval_ns: u64,
    /// What is due in it, blocking included.
    pub demand_ns: u64,
}

/// The smallest reservation that makes a set work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerDesign {
    /// The period asked for; of several, the one whose budget takes the least share, or the first.
    pub period_ns: u64,
    /// The smallest budget; null if even the whole processor is not known to suffice.
    pub budget_ns: Option<u64>,
    /// Bounds from nominal arrival with that budget, in the order of the set.
    pub response_times_ns: Vec<Option<u64>>,
    /// Why there is no budget, or that one unit less is not known to suffice.
    pub reason: String,
}

/// How far a task may change before the set is no longer known to be feasible.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SensitivityFacts {
    /// The task.
    pub name: String,
    /// The largest execution time up to which each is feasible; null if none is. A task that is not preempted is so for all
    /// of it; sections whose lengths are stated keep them.
    pub largest_wcet_ns: Option<u64>,
    /// The smallest period from which each up to the given one is feasible; null if that is not, for a task that another one
    /// releases, and for bursts. It is that of all in a chain. A deadline that is the period stays it; priorities stay as they are.
    pub smallest_period_ns: Option<u64>,
    /// The largest jitter up to which each from the given one on is feasible; null if that is not, and for a task that another one
    /// releases.
    pub largest_jitter_ns: Option<u64>,
    /// Why it was not looked for, that more may hold, or that only a `wcet` that is an upper bound alone is in the way. Of a task of
    /// a time-sharing class no deadline is asked for either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How far all execution times of a processor's tasks, or of all tasks where some are in chains, and the sections in them that are
/// not preempted, may grow together, or must shrink (the breakdown utilisation of Lehoczky, Sha and Ding, RTSS 1989).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BreakdownFacts {
    /// The processor, or all of the chains.
    pub cpus: String,
    /// The server whose budget it is.
    pub server: Option<String>,
    /// Factor of all execution times, but not of what the kernel, servers and locks take, rounded down to a thousandth, with which every deadline that is asked for is still proven to hold.
    pub factor: f64,
    /// The utilisation that the tasks have then; null where it is not known.
    pub utilisation: Option<f64>,
    /// The task that is not proven to meet its deadline a thousandth further on; null under EDF.
    pub first_to_miss: Option<String>,
    /// The factor by the lower figures (`wcet_at_least`), where the `wcet` of a task is an upper bound alone: the true one is
    /// between the two. Null elsewhere, and where it is not known.
    #[serde(default)]
    pub factor_at_most: Option<f64>,
    /// Why `factor` may be too small: which `wcet` is an upper bound alone, or that bounds need not be reached; and of which
    /// deadlines it says nothing. Null where none of it is so.
    #[serde(default)]
    pub reason: Option<String>,
}

/// How worked examples were answered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckCorpusDocument {
    /// Always [`CHECK_CORPUS_SCHEMA`].
    pub schema: String,
    /// One for each case, files in the order of their names.
    pub cases: Vec<CaseFacts>,
    /// How many passed.
    pub passed: u64,
    /// How many failed.
    pub failed: u64,
    /// How many are of kinds, or with keys, that are not known here.
    pub unsupported: u64,
}

/// One case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CaseFacts {
    /// Its name.
    pub id: String,
    /// What it asks.
    pub kind: String,
    /// How it went.
    pub status: CaseStatus,
    /// The answers, with the names and shapes of what is expected.
    pub got: ExpectedResults,
    /// What was expected, where it is not what was got.
    #[serde(skip_serializing_if = "ExpectedResults::is_empty")]
    pub expected: ExpectedResults,
    /// The file.
    pub file: String,
    /// Why there is no answer; empty if there is one.
    pub reason: String,
}

/// How a case went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CaseStatus {
    /// As expected.
    Pass,
    /// Otherwise, or without an answer.
    Fail,
    /// Of a kind, or with a key, that is not known here.
    Unsupported,
}
