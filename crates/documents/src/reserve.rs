//! The document `hourglass.reserve/1`: what was reserved, by what means, and what of it was delivered;
//! also the answer of `reserve --check`, where nothing is reserved.

use serde::{Deserialize, Serialize};

use crate::document::Warning;

/// Name and version of the document.
pub const RESERVE_SCHEMA: &str = "hourglass.reserve/1";

/// A reservation and its results. Times in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReserveDocument {
    /// Always [`RESERVE_SCHEMA`].
    pub schema: String,
    /// Target of the reservation, such as `sleep 10`, `process 4711 (mpd)` or `thread 4712 (audio)`.
    pub target: String,
    /// Backend that enforces it: `deadline`, `user` or `quota`; null if no backend would.
    pub backend: Option<String>,
    /// Why this backend was chosen, in one sentence.
    pub reason: String,
    /// Whether the budget is guaranteed, and not only a limit; `kept` says whether the guarantee held.
    pub guarantee: bool,
    /// Processor time of a period, ns.
    pub budget_ns: u64,
    /// The period, ns.
    pub period_ns: u64,
    /// When in the period the budget is delivered at the latest, ns.
    pub deadline_ns: u64,
    /// Whether the reservation is soft.
    pub soft: bool,
    /// The CPUs on which it holds.
    pub cpus: Vec<u32>,
    /// Complete periods that were watched; of a quota, those in which the work ran; 0 from `--check`.
    pub periods: u64,
    /// Median of the time delivered in the periods in which all of the budget was wanted, ns; null without such a
    /// period.
    pub delivered_p50_ns: Option<u64>,
    /// Minimum of the time delivered in these periods, ns.
    pub delivered_min_ns: Option<u64>,
    /// Maximum of the time delivered in any period, ns.
    pub delivered_max_ns: Option<u64>,
    /// Periods whose budget was wanted and not delivered by the deadline; null where that is not known: of a quota the
    /// kernel does not count what each period got, and where several reservations take turns on one core, `smt` has it.
    pub missed: Option<u64>,
    /// Periods in which more than the budget was wanted; of a quota, periods in which the kernel held the work back.
    pub overruns: u64,
    /// Time for which the reserved work stood because its budget was used up, ns; null where it
    /// cannot be known.
    pub throttled_ns: Option<u64>,
    /// Supply of the periods: the upper end of each step, ns, and how many periods it holds.
    pub supply: Vec<SupplyStep>,
    /// Protection from siblings; null without `--smt`.
    pub smt: Option<SmtReport>,
    /// Backends that are refused, with remedies; empty without a refusal.
    pub refusals: Vec<ReserveRefusal>,
    /// A larger budget: what measured overruns suggest, or, from `--check`, what to reserve for jobs
    /// that need all of this one (Hourglass paper, section 5.6); null without need or measurement.
    pub suggested_budget_ns: Option<u64>,
    /// What a reader must know before believing the numbers.
    pub warnings: Vec<Warning>,
    /// How the command ended; null from `--check` and for adopted processes.
    pub exit_code: Option<i32>,
    /// Whether a signal ended the reservation before the command ended.
    pub interrupted: bool,
    /// Whether `sched_yield` ends the dispatch of a period, as in the papers' model: in the deadline class it does.
    /// From user space a yield cannot be seen. Null where nothing would be reserved.
    #[serde(default)]
    pub yield_ends_period: Option<bool>,
    /// Processor time of a period that the backend keeps, ns: with co-runners more than the budget, which is progress,
    /// so that slowed work is not throttled before its budget is done. Supply and overruns refer to it. Null where
    /// nothing would be reserved, and for a quota.
    #[serde(default)]
    pub kept_ns: Option<u64>,
    /// Further reservations of the same command (`reserve --also`), in the order in which they were named; each a
    /// document of its own, with the same `schema`, whose `smt` has the jobs of that reservation. Empty without.
    #[serde(default)]
    pub also: Vec<ReserveDocument>,
    /// Whether every period in which the whole budget was wanted had it by its deadline, whatever was promised; null
    /// where periods were left out and no other was missed, without a whole period, and of a quota.
    #[serde(default)]
    pub kept: Option<bool>,
    /// What may have had the CPU, or failed, where `kept` is false: `process 4711 (...) of user 0`, `thread 4712 (...)
    /// of the deadline class`, `member-moved`, `keeper-late`, `keeper-busy` (the thread that keeps the reservation had
    /// the CPU itself). Empty where that is unknown.
    #[serde(default)]
    pub broken_by: Vec<String>,
    /// Processor time of the work from the start of the reservation to its end, ns, with time beyond budgets; null
    /// where it is not counted: for a quota of version 1 control groups, or where the keeper was away and no control
    /// group counts it.
    #[serde(default)]
    pub cpu_time_ns: Option<u64>,
    /// From the start of the reservation to its end, ns; null from `--check`.
    #[serde(default)]
    pub wall_ns: Option<u64>,
    /// Processor time of the thread that keeps the reservation, ns; null where the kernel keeps it.
    #[serde(default)]
    pub keeper_ns: Option<u64>,
    /// The longest time for which the work, by its reservation, and the thread that keeps it had the CPU without a
    /// break, ns, as that thread measured it. No bound: threads above both and interrupts are not counted. Of a
    /// user-space reserve on one CPU; null elsewhere, and where that thread was away.
    #[serde(default)]
    pub others_waited_max_ns: Option<u64>,
    /// Changes of its budget, by `reserve --change` or, in the deadline class, by any privileged program, in their
    /// order; empty without a change.
    #[serde(default)]
    pub changes: Vec<ReserveChange>,
    /// From `reserve --from`: within which time of its nominal arrival a job of the task is done that takes no longer
    /// than stated, by the deadline of the task, ns; null elsewhere, and where nothing is proposed or a warning denies it.
    #[serde(default)]
    pub bound_ns: Option<u64>,
    /// From `reserve --from`: what the longest job of the task runs at least, ns, where its `wcet`, by which the budget is, is an
    /// upper bound alone; null elsewhere.
    #[serde(default)]
    pub wcet_at_least_ns: Option<u64>,
    /// From `reserve --from`: why it is not known whether it would be granted, where it is refused by a `wcet` that is an upper
    /// bound alone, and not by the lower figure; null elsewhere.
    #[serde(default)]
    pub unknown_because: Option<String>,
}

/// A reservation's budget was changed while it was in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReserveChange {
    /// When the first period with it began, ns after the first one of all.
    pub at_ns: u64,
    /// The budget from then on, ns.
    pub budget_ns: u64,
    /// The period from then on, ns.
    pub period_ns: u64,
}

/// One step of the histogram of supply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupplyStep {
    /// Upper end, ns; the step begins at the upper end of the step before it.
    pub up_to_ns: u64,
    /// Number of periods in the step.
    pub periods: u64,
}

/// A reason for which a backend is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReserveRefusal {
    /// The refused backend; `smt` for an obstacle to the protection from co-runners, `owner` for a target that belongs
    /// to another user, with any backend.
    pub backend: String,
    /// A name for scripts, such as `capability`, `owner`, `affinity`, `group_budget` or `bandwidth`.
    pub id: String,
    /// The kernel's answer, such as `EPERM`; null where it was not asked.
    pub errno: Option<String>,
    /// The obstacle, with the file or the number that shows it.
    pub cause: String,
    /// A command or a step that removes the obstacle.
    pub remedy: String,
}

/// Protection from the CPUs that share a core with the reserved one (Inoue et al., section 3).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SmtReport {
    /// `monitor`, `disable` or `ignore`.
    pub policy: String,
    /// The interval between two checks of slack, ns, no shorter than timers allow; null if it was checked when it could
    /// be used up.
    #[serde(default)]
    pub interval_ns: Option<u64>,
    /// Whether protection is claimed, only against those in `against`: all of them stood when they should,
    /// for the whole run. False where the topology shows no sibling and none was named, where the reservation does
    /// not leave the margin, where an order was refused, and where the guardian was gone or had to wake them.
    pub protected: bool,
    /// The co-runners that were stopped, as they were named: `4711` with its descendants, a control group,
    /// `session:4711`; or `everybody`. Others on those CPUs disturb as before.
    #[serde(default)]
    pub against: Vec<String>,
    /// How often the guardian let them run since it had no signal of the monitor, or of the thread that keeps the
    /// reservation.
    #[serde(default)]
    pub broken: u64,
    /// CPUs that share a core with the reserved one.
    pub shares: Vec<u32>,
    /// Source of the progress: `word`, `instructions`, `cpu_time` or `none`.
    pub progress: String,
    /// How co-runners were stopped, such as `cgroup2_freeze` or `sigstop`; null if never.
    pub stopper: Option<String>,
    /// The margin at which they were stopped, at the end of the run, ns: measured p99.9 of stopping and of timers, and
    /// at least the longest stop since.
    pub margin_ns: u64,
    /// The margin at the start, ns.
    #[serde(default)]
    pub margin_first_ns: u64,
    /// The longest time to stop the co-runners in a few trials at the start, ns; null without trials.
    #[serde(default)]
    pub stop_trial_ns: Option<u64>,
    /// The longest time to stop them in the run, ns; 0 without a stop.
    #[serde(default)]
    pub stop_max_ns: u64,
    /// Jobs that were monitored.
    pub jobs: u64,
    /// Jobs not done by their deadline.
    pub missed: u64,
    /// Jobs of which the program reported nothing, and that wanted no processor at their deadline: they waited for
    /// something, or were done without a report. Not among the missed.
    #[serde(default)]
    pub idle: u64,
    /// Number of times that co-runners were stopped.
    pub stops: u64,
    /// Time for which they were stopped, ns.
    pub stopped_ns: u64,
    /// Number of times that the monitor checked the slack.
    pub checks: u64,
    /// Jobs during which the progress word went backwards.
    pub backwards: u64,
    /// Jobs during which the progress word did not change.
    pub unmoved: u64,
    /// State of the page on which the command was to report its progress: `told` (it reported), `opened` (without a
    /// report), or `not_opened`, where its processor time is counted; null where it got no page.
    #[serde(default)]
    pub page: Option<String>,
}
