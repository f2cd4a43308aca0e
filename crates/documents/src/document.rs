//! The run document `hourglass.run/1`: what a run found, for people and scripts.
//!
//! Keys only grow within a version. Times are in nanoseconds, counted as integers.

use serde::{Deserialize, Serialize};

use crate::concurrent_threads::ConcurrentThreads;
use crate::diff::ControlReport;
use crate::inference::Inference;
use crate::late_jobs::LateJob;
use crate::manifest::Manifest;
pub use crate::occupants::OccupantReport;
use crate::reserve::ReserveDocument;
pub use crate::sites::{LostSpan, SiteCause, SiteReport};
use crate::stack::StackReport;
use crate::wakeup::WakeUpReport;
pub use crate::warning::{GateReport, LimitConfidence, Premise, Stationarity, Warning};
use crate::watched::WatchedReport;

/// Name and version of the run document.
pub const RUN_SCHEMA: &str = "hourglass.run/1";

/// A run: its results and the facts that explain them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunDocument {
    /// Always [`RUN_SCHEMA`].
    pub schema: String,
    /// Facts that explain the numbers.
    pub manifest: Manifest,
    /// Results of the run.
    #[serde(flatten)]
    pub result: RunResult,
}

/// The results of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// One for each thread, in the order of their numbers.
    pub threads: Vec<ThreadReport>,
    /// Causes of gaps by name. Empty where no cause was inferred.
    #[serde(default)]
    pub causes: Vec<CauseReport>,
    /// How often two different threads of the run followed each other on one CPU: context
    /// switches that the trace proves (section 4, first rule).
    #[serde(default)]
    pub switches: u64,
    /// What the trace says by the rules of the paper's sections 4 and 5. Empty where nothing
    /// could be inferred.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inferences: Vec<Inference>,
    /// Where the time of wake-ups went, thread by thread. Empty unless the kernel was traced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wakeups: Vec<WakeUpReport>,
    /// Where the kernel was at the switches of the longest gaps and the latest wake-ups. Empty unless the kernel was
    /// traced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<StackReport>,
    /// Who may have had the CPU in the longest gaps and before the latest wake-ups, by what the kernel counts for
    /// every thread. Empty where the kernel was traced, which says it exactly.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub meanwhile: Vec<ConcurrentThreads>,
    /// The jobs that were late by the most, the latest first, and where their time went. Empty if all were in time, or
    /// the run is of another kind than `run` and `simulate`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late_jobs: Vec<LateJob>,
    /// What a reader must know before believing the numbers.
    #[serde(default)]
    pub warnings: Vec<Warning>,
    /// Assumptions of the run that did not hold to its end: the exit code is 4. Empty if all held.
    #[serde(default)]
    pub premises: Vec<Premise>,
    /// Limits that the run had to keep, with their results.
    #[serde(default)]
    pub gates: Vec<GateReport>,
    /// The gap or wake-up that ended the run, if a limit did.
    #[serde(default)]
    pub hit: Option<HitReport>,
    /// Whether the run was ended early by a signal.
    #[serde(default)]
    pub interrupted: bool,
    /// Results of an idle control beside the threads, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<ControlReport>,
    /// Results of `watch` for threads of other processes, if the run was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched: Option<WatchedReport>,
    /// Results of a reservation, if the folder is of `reserve -o`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<ReserveDocument>,
    /// Call sites of a program that recorded its spans, and what the scheduler took from them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sites: Vec<SiteReport>,
    /// The spans that lost most, the worst first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worst_spans: Vec<LostSpan>,
}

/// The gap or wake-up at which a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HitReport {
    /// `gap` or `latency`.
    pub kind: String,
    /// Number of the thread.
    pub thread: u32,
    /// CPU on which the thread ran afterwards.
    pub cpu: u32,
    /// The limit, ns.
    pub limit_ns: u64,
    /// Length of the gap, or latency of the wake-up, ns.
    pub value_ns: u64,
    /// When it ended, counted from the run's start, ns.
    pub at_ns: i64,
}

/// Activity of one thread, and its gaps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadReport {
    /// Number of the thread, from 0.
    pub id: u32,
    /// The kernel's number of the thread while it ran, if it was a real one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tid: Option<u32>,
    /// Name of the thread, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The workload as it is written: `PERIODIC 3ms 8ms`.
    pub workload: String,
    /// What wakes it, as it is written: `HR`, `TICK:100`.
    #[serde(default)]
    pub wake_up: String,
    /// If a device was emulated: which, and how.
    #[serde(default)]
    pub emulated: Option<String>,
    /// The policy that was in force: `FIFO:80`, `DEADLINE:3.1ms/8ms`; `USER:3.1ms/8ms` for a reserve in user space.
    pub policy: String,
    /// CPUs on which it was allowed to run.
    pub cpus: Vec<u32>,
    /// CPUs on which it was seen to run.
    #[serde(default)]
    pub cpus_seen: Vec<u32>,
    /// Received time: the sum of the gap-free intervals, not the kernel's CPU clock.
    pub cpu_time_ns: u64,
    /// From the thread's start to its finish.
    pub wall_ns: u64,
    /// Intervals found, stored or not.
    pub intervals: u64,
    /// Gaps that were forced on the thread between its start and its end; its own waits are not among them.
    pub gaps: GapReport,
    /// Periods, for models that have them.
    pub deadlines: Option<Deadlines>,
    /// Latency of wake-ups, for models that measure it.
    pub latency: Option<LatencyReport>,
    /// Passes over the array, for models that scan one.
    pub work: Option<u64>,
    /// Intervals and latency samples that found the buffer full.
    pub records_dropped: u64,
    /// How often two intervals in a row ran on different CPUs.
    #[serde(default)]
    pub migrations: u64,
    /// Its time on CPUs that are not among `cpus`, as when the last of these goes offline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strayed: Option<StrayReport>,
    /// The kernel's counts for the same time, where it has them.
    #[serde(default)]
    pub kernel: Option<KernelAccount>,
}

/// A thread's time on CPUs that it was not given. The other numbers of the thread include it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrayReport {
    /// When it first came to such a CPU, from the run's start.
    pub at_ns: u64,
    /// The CPU on which it was before.
    pub from_cpu: u32,
    /// The CPU to which it came.
    pub to_cpu: u32,
    /// Intervals on such CPUs.
    pub intervals: u64,
    /// Time received there.
    pub cpu_time_ns: u64,
}

/// Gaps: the times during which a thread did not run although it wanted to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapReport {
    /// Number of gaps.
    pub count: u64,
    /// Sum of their lengths, ns.
    pub total_ns: u64,
    /// Median length, ns.
    pub p50_ns: u64,
    /// 99 of 100 are not longer.
    pub p99_ns: u64,
    /// 999 of 1000 are not longer.
    pub p999_ns: u64,
    /// The longest gap, exactly, ns.
    pub max_ns: u64,
}

/// Periods of a periodic thread. `hit + missed + lost` is the number of whole periods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadlines {
    /// Periods that finished in time.
    pub hit: u64,
    /// Periods that started and did not finish in time.
    pub missed: u64,
    /// Periods that never started, because an earlier one was still running.
    pub lost: u64,
    /// Times that the amount was received; more than `hit` where a thread need not wait.
    #[serde(default)]
    pub completed: u64,
}

/// Latency of wake-ups from the requested time. Percentiles count lost wake-ups with the latency at which they could
/// have been served; the other numbers are of those that took place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyReport {
    /// Number of wake-ups measured.
    pub count: u64,
    /// The smallest latency, exactly, ns.
    pub min_ns: u64,
    /// Median latency, ns.
    pub p50_ns: u64,
    /// 99 of 100 are not later.
    pub p99_ns: u64,
    /// 999 of 1000 are not later.
    pub p999_ns: u64,
    /// The greatest latency, exactly, ns.
    pub max_ns: u64,
    /// Mean latency, ns.
    pub mean_ns: u64,
    /// Wake-ups that never took place because an earlier one was too late.
    pub lost: u64,
}

/// What the kernel counted for a thread between its start and its finish.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelAccount {
    /// Time on a CPU (first number of `schedstat`), interrupts included.
    pub run_ns: u64,
    /// Time waiting for a CPU while runnable (second number of `schedstat`).
    pub wait_ns: u64,
    /// Context switches by its own wait or yield.
    pub voluntary_switches: u64,
    /// Context switches forced on it.
    pub involuntary_switches: u64,
}

/// Gaps of one cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CauseReport {
    /// Name of the cause, such as `timer_tick`.
    pub cause: String,
    /// Gaps with this cause.
    pub count: u64,
    /// Sum of their lengths, ns.
    pub total_ns: u64,
    /// Median length, ns.
    pub p50_ns: u64,
    /// The longest of these gaps, ns.
    pub max_ns: u64,
    /// Confidence in the cause, from 0 to 1.
    pub confidence: f64,
    /// The three occupants that had the CPU for the longest time in these gaps; empty where the kernel was not traced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ran: Vec<OccupantReport>,
}
