//! The document `hourglass.watch/1`: what kept the threads of another process from running.
//!
//! What the kernel does not give has no key: it is unknown, not zero.

use serde::{Deserialize, Serialize};

use crate::cause::Cause;
use crate::occupants::OccupantReport;
use crate::warning::{Premise, Warning};

/// Name and version of the document.
pub const WATCH_SCHEMA: &str = "hourglass.watch/1";

/// Threads of other processes, watched from outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WatchDocument {
    /// Always [`WATCH_SCHEMA`].
    pub schema: String,
    /// Results for the watched threads.
    #[serde(flatten)]
    pub found: WatchedReport,
}

/// Results for threads that were watched from outside.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WatchedReport {
    /// `proc`: from repeated samples of the kernel's counts; `trace`: also from its events.
    pub how: String,
    /// Time between two samples of the counts, at the end of the run, ns.
    pub interval_ns: u64,
    /// From the first sample to the last, ns.
    pub elapsed_ns: u64,
    /// Number of samples.
    pub looks: u64,
    /// The processes whose threads were watched, by their numbers.
    pub processes: Vec<WatchedProcess>,
    /// The threads; the one that waited longest for a CPU comes first.
    pub threads: Vec<WatchedThread>,
    /// Events of the kernel that were lost, if they were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events_lost: Option<u64>,
    /// What a reader must know before believing the numbers.
    pub warnings: Vec<Warning>,
    /// Assumptions that did not hold to the end: the exit code is 4. Empty if all held.
    #[serde(default)]
    pub premises: Vec<Premise>,
    /// Whether a signal ended the run.
    pub interrupted: bool,
    /// The command that was started to be watched, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<WatchedCommand>,
}

/// A command that was started to be watched, with the processes that it started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedCommand {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// Number of its process.
    pub pid: u32,
    /// Its exit code; 128 and the number of the signal that killed it.
    pub exit: i32,
}

/// A process whose threads were watched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedProcess {
    /// Process number.
    pub pid: u32,
    /// Process name.
    pub name: String,
    /// Periods in which the quota of its control group, or of one around it, stopped the group. No key
    /// without a quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_throttled: Option<u64>,
    /// Time for which the quota stopped the group, summed over CPUs, ns, where the kernel counts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_throttled_ns: Option<u64>,
    /// Its CPU time in the run, ns, with threads that ended. No key where the sampled threads had at least 95 % of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
    /// CPU time of the sampled threads, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_cpu_ns: Option<u64>,
    /// Whether it ended in the run.
    pub ended: bool,
}

/// A watched thread: the kernel's counts of it in the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WatchedThread {
    /// The kernel's number of the thread.
    pub tid: u32,
    /// The process that it belongs to.
    pub pid: u32,
    /// Thread name.
    pub name: String,
    /// Its policy, as `FIFO:80`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Budget and period in the deadline class, as `5ms/20ms`, with a deadline before the period `5ms/20ms/10ms`, and with a `+`
    /// where the thread may take what others leave (`SCHED_FLAG_RECLAIM`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<String>,
    /// The first sample with its last policy, CPUs and reservation, where these changed: counted from the first sample of
    /// the run, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_ns: Option<u64>,
    /// Its state in the last sample, as `ps` shows it: R, S, D, T...
    pub state: String,
    /// Whether it ended in the run; the numbers are then those of its last sample.
    pub ended: bool,
    /// When it was first sampled, counted from the first sample of the run, ns.
    pub since_ns: u64,
    /// The CPU on which it ran last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// Time on a CPU, interrupts included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_ns: Option<u64>,
    /// Run-queue delay: time during which it could have run and had no CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ns: Option<u64>,
    /// The interval between two samples in which it waited longest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_interval: Option<WatchedInterval>,
    /// Time during which it is known to have been stopped (SIGSTOP, a debugger): from the kernel's events where they
    /// were recorded, else between two samples that both found it stopped and between which it did not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_ns: Option<u64>,
    /// Context switches by its own wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voluntary_switches: Option<u64>,
    /// Context switches forced on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub involuntary_switches: Option<u64>,
    /// Number of moves to another CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migrations: Option<u64>,
    /// Page faults that needed no input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minor_faults: Option<u64>,
    /// Page faults that waited for input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub major_faults: Option<u64>,
    /// Its delays one by one, if the kernel's events were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delays: Option<DelayReport>,
    /// The three occupants that had its CPU for the longest time while it waited. From the kernel's events this is
    /// exact; from counts it is an upper bound: their own time on that CPU, in intervals in which the thread waited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ran: Vec<OccupantReport>,
}

/// An interval between two samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedInterval {
    /// Its start, counted from the first sample, ns.
    pub from_ns: u64,
    /// Its end, counted from the first sample, ns.
    pub to_ns: u64,
    /// Time for which the thread waited for a CPU in it, ns.
    pub wait_ns: u64,
}

/// One sample of the kernel's counts of a watched thread. A row of a table, not of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchedSample {
    /// Time of the sample, counted from the first one, ns.
    pub ns: u64,
    /// The kernel's number of the thread.
    pub tid: u32,
    /// Its state, as `ps` shows it: R, S, D, T...
    pub state: char,
    /// The CPU on which it ran last.
    pub cpu: Option<u32>,
    /// Time on a CPU since the thread began, ns.
    pub run_ns: Option<u64>,
    /// Time during which it could have run and had no CPU, ns.
    pub wait_ns: Option<u64>,
    /// Context switches by its own wait.
    pub voluntary_switches: Option<u64>,
    /// Context switches forced on it.
    pub involuntary_switches: Option<u64>,
}

/// Run-queue delays of a thread, each from the moment it became runnable to the moment it ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelayReport {
    /// Number of delays.
    pub count: u64,
    /// Delays after a wait of its own; before the others the CPU was taken from it.
    pub after_wait: u64,
    /// Sum of the delays, ns.
    pub total_ns: u64,
    /// Median, ns.
    pub p50_ns: u64,
    /// 99 of 100 are not longer.
    pub p99_ns: u64,
    /// 999 of 1000 are not longer.
    pub p999_ns: u64,
    /// The longest, exactly.
    pub max_ns: u64,
    /// The longest delay, with its time and CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<WorstDelay>,
    /// Of these, the delays that began as the thread's budget of the deadline class was used up. Only of that class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_budget: Option<BudgetEndReport>,
}

/// Delays that began as a budget was used up. What was left of a budget is reckoned, and
/// taken for whole where it is not known: some may be missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetEndReport {
    /// Number of delays.
    pub count: u64,
    /// Sum of the delays, ns.
    pub total_ns: u64,
    /// The longest, ns.
    pub max_ns: u64,
}

/// The longest delay of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorstDelay {
    /// When it began, counted from the first sample, ns.
    pub at_ns: i64,
    /// When it began, on `CLOCK_MONOTONIC`.
    pub monotonic_ns: u64,
    /// Length of the delay, ns.
    pub delay_ns: u64,
    /// The CPU on which the thread ran at its end.
    pub cpu: u32,
    /// Whether the thread had waited by its own will before; else the CPU was taken from it.
    pub after_wait: bool,
    /// `deadline_budget` where it began as the thread's budget was used up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The three occupants that had the CPU for the longest time in the delay; 0 is the idle CPU.
    pub ran: Vec<OccupantReport>,
}
