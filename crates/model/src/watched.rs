//! The document `hourglass.watch/1`: what kept the threads of another process from running.
//!
//! What the kernel does not give has no key: it is unknown, not zero.

use serde::{Deserialize, Serialize};

use crate::occupants::OccupantReport;
use crate::warning::{Premise, Warning};

/// Name and version of the document.
pub const WATCH_SCHEMA: &str = "hourglass.watch/1";

/// Threads of other processes, watched from outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WatchDocument {
    /// Always [`WATCH_SCHEMA`].
    pub schema: String,
    /// What was found.
    #[serde(flatten)]
    pub found: WatchedReport,
}

/// What was found about threads that were watched from outside.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WatchedReport {
    /// `proc`: from the kernel's counts, read again and again; `trace`: also from its events.
    pub how: String,
    /// From one look at the counts to the next, as it was at last.
    pub interval_ns: u64,
    /// From the first look to the last.
    pub elapsed_ns: u64,
    /// How often the counts were read.
    pub looks: u64,
    /// The processes of which threads were watched, by their numbers.
    pub processes: Vec<WatchedProcess>,
    /// The threads; the one that waited longest for a CPU comes first.
    pub threads: Vec<WatchedThread>,
    /// Events of the kernel that were lost, if they were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events_lost: Option<u64>,
    /// What a reader must know before believing the numbers.
    pub warnings: Vec<Warning>,
    /// What did not hold to the end: the exit code is 4.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub premises: Vec<Premise>,
    /// Whether a signal ended it.
    pub interrupted: bool,
}

/// A process of which threads were watched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedProcess {
    /// Its number.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Periods in which the quota of its control group, or of one around it, stopped the group. No key
    /// without a quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_throttled: Option<u64>,
    /// For how long, summed over CPUs, where the kernel tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_throttled_ns: Option<u64>,
    /// Its CPU time meanwhile, threads that ended included. No key where the threads seen had it but for a twentieth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
    /// What the threads seen had of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_cpu_ns: Option<u64>,
    /// Whether it ended meanwhile.
    pub ended: bool,
}

/// A thread that was watched: what the kernel counted for it meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WatchedThread {
    /// The kernel's number of the thread.
    pub tid: u32,
    /// The process that it belongs to.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Its policy, as `FIFO:80`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// What it did at the last look, as `ps` shows it: R, S, D, T...
    pub state: String,
    /// Whether it ended meanwhile; the numbers are those of the last look before.
    pub ended: bool,
    /// When it was first seen, counted from the first look.
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
    /// The interval between two looks in which it waited longest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_interval: Option<WatchedInterval>,
    /// Time during which it is known to have been stopped (SIGSTOP, a debugger): from the kernel's events where
    /// they were recorded, else between two looks that both found it so and it did not run in between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_ns: Option<u64>,
    /// Context switches by its own wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voluntary_switches: Option<u64>,
    /// Context switches forced on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub involuntary_switches: Option<u64>,
    /// How often it was moved to another CPU.
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
    /// Who had its CPU while it waited, the three that had it longest. From the kernel's events this is exact; from
    /// counts it is the most that each can have had: its own time on that CPU, in intervals in which the thread waited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ran: Vec<OccupantReport>,
}

/// An interval between two looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedInterval {
    /// When it began, counted from the first look.
    pub from_ns: u64,
    /// When it ended.
    pub to_ns: u64,
    /// For how long the thread waited for a CPU in it.
    pub wait_ns: u64,
}

/// What the kernel had counted for a watched thread at one look. A row of a table, not of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchedSample {
    /// When, counted from the first look, ns.
    pub ns: u64,
    /// The kernel's number of the thread.
    pub tid: u32,
    /// What it did, as `ps` shows it: R, S, D, T...
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

/// Run-queue delays of a thread, each from the moment at which it could run to that at which it did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelayReport {
    /// How many.
    pub count: u64,
    /// How many of them after a wait of its own; the others after the CPU was taken from it.
    pub after_wait: u64,
    /// Their sum.
    pub total_ns: u64,
    /// Median.
    pub p50_ns: u64,
    /// 99 of 100 are not longer.
    pub p99_ns: u64,
    /// 999 of 1000 are not longer.
    pub p999_ns: u64,
    /// The longest, exactly.
    pub max_ns: u64,
    /// The longest, in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<WorstDelay>,
}

/// The longest delay of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorstDelay {
    /// When it began, counted from the first look.
    pub at_ns: i64,
    /// When it began, on `CLOCK_MONOTONIC`.
    pub monotonic_ns: u64,
    /// Its length.
    pub delay_ns: u64,
    /// The CPU on which the thread ran at its end.
    pub cpu: u32,
    /// Whether the thread had waited by its own will before; else the CPU was taken from it.
    pub after_wait: bool,
    /// Who had the CPU meanwhile, the three that had it longest; 0 is the idle CPU.
    pub ran: Vec<OccupantReport>,
}
