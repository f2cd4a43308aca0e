//! The document `hourglass.model/1`: which tasks the threads of a running program are.

use serde::{Deserialize, Serialize};

use crate::kernel::KernelNames;
use crate::premise::PremiseKind;
use crate::warning::{Premise, Warning};

/// Name and version of the document.
pub const MODEL_SCHEMA: &str = "hourglass.model/1";

/// The threads of a recorded program as tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelDocument {
    /// Always [`MODEL_SCHEMA`].
    pub schema: String,
    /// What it was made from.
    #[serde(default)]
    pub source: ModelSource,
    /// Length of the record, ns.
    pub elapsed_ns: u64,
    /// Events of the kernel that were lost.
    pub events_lost: u64,
    /// The threads that ran, in the order of the record.
    pub threads: Vec<ThreadModel>,
    /// Names of threads that did not run in the record. They are not in the file of tasks.
    pub never_ran: Vec<String>,
    /// What a reader must know before believing the numbers (model --pid).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// Assumptions that did not hold to the end of the record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub premises: Vec<Premise>,
}

/// What a model was made from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelSource {
    /// The kernel's events: switches and wakings.
    #[default]
    Events,
    /// The intervals of a run, without wakings.
    Intervals,
    /// The kernel's counts in /proc, looked at again and again: no thread is a task by them.
    Counts,
}

/// A thread as a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadModel {
    /// The name of the task: that of the thread, with its number where two threads that ran share a name; the only task among
    /// them has it alone.
    pub name: String,
    /// The kernel's number of the thread, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tid: Option<u32>,
    /// Its policy, as `FIFO:80`.
    pub policy: String,
    /// Its reservation, as `BUDGET/PERIOD`, with `/DEADLINE` where that is before the period and a `+` where it reclaims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<String>,
    /// The CPUs on which it may run.
    pub cpus: String,
    /// Policy, reservation and CPUs were others before, from the record's start on, ns: jobs until then are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_ns: Option<u64>,
    /// When its jobs arrive.
    pub activation: ActivationModel,
    /// For how long they run.
    pub execution: ExecutionModel,
    /// How long they took from their waking to their end, waits included. Absent where wakings were not recorded, and where
    /// no job was seen from one to the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<ResponseModel>,
    /// For how long they wait before they are done, where such waits can be told from the waits between jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspension: Option<SuspensionModel>,
    /// What woke it for a job, the most frequent first.
    pub woken_by: Vec<WakerModel>,
    /// The task each of whose jobs activates one of this thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// How many of the jobs of `after` were seen to activate one of this thread, where that were not all: the chain is not exact
    /// then. Absent elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_fit: Option<ChainFitModel>,
    /// Whether that task waits within its job until the one of this thread is done, as for an answer: its own time has that of
    /// this thread in it, which a file of tasks has with arrivals of its own, and not after it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waited_for: bool,
    /// How much of the record the model has.
    pub fit: FitModel,
    /// Why the thread is no task. The figures are then what was seen, and no model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmodelled: Option<String>,
    /// What the kernel's counts say of it (model --pid).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<CountModel>,
}

/// What the kernel's counts say of a thread, between the first look at it and the last one. What the kernel does not
/// count is null.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountModel {
    /// The first look at the thread, counted from the first of all, ns. What it did before is not in the counts.
    pub since_ns: u64,
    /// From its first look to its last one, without holes, ns.
    pub observed_ns: u64,
    /// Number of looks.
    pub looks: u64,
    /// Places where its counts fell or its name changed, as where it became another program; nothing is reckoned across.
    pub holes: u64,
    /// Whether it ended meanwhile. What it did after its last look is not in the counts.
    pub ended: bool,
    /// Time on a CPU, ns. While the thread runs, the kernel's count may be behind by a tick.
    pub run_ns: Option<u64>,
    /// `run_ns` in millionths of `observed_ns`.
    pub utilisation_ppm: Option<u64>,
    /// The window of the highest utilisation, of 100 ms or longer.
    pub busiest: Option<CountWindow>,
    /// Time for which it could have run and had no CPU, ns.
    pub wait_ns: Option<u64>,
    /// How often it was woken.
    pub activations: Option<CountedActivations>,
    /// Bounds on the longest execution time from a waking to the next wait. Where a thread waits within its jobs, for a lock, for
    /// input or on a page fault, a job is several activations, and no bound on it follows.
    pub longest_activation: LongestActivation,
}

/// What was counted of a thread between two looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountWindow {
    /// Its start, counted from the first look of all, ns.
    pub from_ns: u64,
    /// Its end, ns.
    pub to_ns: u64,
    /// Time on a CPU that was counted in it, ns.
    pub run_ns: Option<u64>,
    /// Voluntary switches in it.
    pub switches: Option<u64>,
}

/// Wakings of a thread, by its voluntary switches: each ends one activation. They are no jobs: a thread that waits for a
/// lock or on a page fault within its job is woken once more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedActivations {
    /// Voluntary switches, each of which ended an activation.
    pub ended: u64,
    /// Wakings, at least.
    pub min: u64,
    /// Wakings, at most.
    pub max: u64,
    /// Wakings in 1000 s, at least.
    pub min_millihertz: u64,
    /// Wakings in 1000 s, at most. Null where the looks are not apart.
    pub max_millihertz: Option<u64>,
    /// The window with most switches for its length, of 100 ms or longer: observed, and no bound on others.
    pub most_switches: Option<CountWindow>,
}

/// Bounds on the longest execution time of the activations that were looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongestActivation {
    /// One of them ran for this long or longer, ns; one that began before the first look or goes on after the last one counts.
    pub at_least_ns: u64,
    /// None of those that began and ended between the looks ran for longer, ns. Null where none did, or none is counted.
    pub at_most_ns: Option<u64>,
    /// Number of activations that `at_most_ns` bounds.
    pub bounded: u64,
    /// Activations that ended, and that nothing bounds, as they began before the first look or in a hole.
    pub unbounded: u64,
    /// Why there is no `at_most_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unbounded_because: Option<String>,
}

/// The law of the arrivals of jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActivationModel {
    /// The kind of the law.
    pub class: ActivationClass,
    /// The period; the shortest distance of sporadic arrivals; for an arrival curve, the shortest distance of the arrivals
    /// beyond `arrivals_ns`. 0 where it is unknown.
    pub period_ns: u64,
    /// The earliest release in the first period, counted from the start of the record, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset_ns: Option<i64>,
    /// The longest time from the earliest to the latest release in a period, ns.
    pub jitter_ns: u64,
    /// Releases far later than all others, one in a hundred at most: a host or an interrupt held up the timer.
    #[serde(default)]
    pub late: u64,
    /// As `jitter_ns`, without the late ones; 0 where there are none.
    #[serde(default)]
    pub usual_jitter_ns: u64,
    /// Jobs of which the release was not seen, as the thread still ran: each has a period of its own.
    #[serde(default)]
    pub unseen: u64,
    /// Periods within the record without a job.
    pub skipped: u64,
    /// The shortest times from the first to the 2nd, 3rd, 4th of successive arrivals, ns.
    pub arrivals_ns: Vec<u64>,
}

/// Laws of arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActivationClass {
    /// Once in every period, or not at all.
    Periodic,
    /// Never closer than a distance.
    Sporadic,
    /// In bursts: so many arrivals in so long a time at most.
    ArrivalCurve,
    /// No law was found.
    #[default]
    Unknown,
}

/// Execution times, interrupts included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutionModel {
    /// The longest of a job.
    pub max_ns: u64,
    /// The longest ran for this long or longer. Below `max_ns` where the longest was cut off, or runs on over releases after
    /// which no job was seen, and may be several jobs. Null in older documents.
    #[serde(default)]
    pub at_least_ns: Option<u64>,
    /// The shortest of a whole job.
    pub min_ns: u64,
    /// The longest of 1, 2, 3, ... successive jobs in all.
    pub successive_ns: Vec<u64>,
    /// How many whole jobs took from `lo_ns` to below `hi_ns`.
    pub histogram: Vec<ExecutionBucket>,
}

/// A step of a histogram of execution times; each doubling has four.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutionBucket {
    /// The lowest value.
    pub lo_ns: u64,
    /// Above the highest value.
    pub hi_ns: u64,
    /// Number of jobs.
    pub count: u64,
}

/// Response times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseModel {
    /// The longest from a waking, ns.
    pub max_ns: u64,
    /// The longest from the nominal arrival, ns: from the earliest release in any period, on the grid of periodic jobs. Of a
    /// thread `after` another one, from that of the first of its chain. Null without a grid.
    pub from_nominal_ns: Option<u64>,
    /// The longest of `max_ns`' kind without the time that threads which are not in the model had its CPU meanwhile, ns. Null in
    /// older documents.
    #[serde(default)]
    pub alone_ns: Option<u64>,
    /// As `alone_ns`, from the nominal arrival.
    #[serde(default)]
    pub from_nominal_alone_ns: Option<u64>,
    /// The job whose response says most against a bound: a long one that such threads held up little. Null in older documents.
    #[serde(default)]
    pub least_held: Option<HeldResponse>,
    /// As `least_held`, from the nominal arrival.
    #[serde(default)]
    pub from_nominal_least_held: Option<HeldResponse>,
    /// Number of jobs of which the waking and the end were seen.
    pub jobs: u64,
    /// Number of others, but for the last one of the record, whose response may be longer.
    #[serde(default)]
    pub unseen: u64,
}

/// A response beside threads that are not in the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldResponse {
    /// ns.
    pub response_ns: u64,
    /// For how long such threads, or an idle CPU, held up the thread or more urgent ones whose work it still had before it, ns.
    pub others_ns: u64,
}

impl HeldResponse {
    /// The response without that time.
    #[must_use]
    pub fn alone_ns(self) -> u64 {
        self.response_ns.saturating_sub(self.others_ns)
    }

    /// What the response is worth: behind time that others had, more urgent threads that take seven eighths of a CPU need eight
    /// times as long to be as far as they would be.
    #[must_use]
    pub fn weight(self) -> i128 {
        i128::from(self.response_ns) - 8 * i128::from(self.others_ns)
    }
}

/// Waits within jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuspensionModel {
    /// The longest in all of a job, ns: from the wait to the waking.
    pub max_ns: u64,
    /// Waits of a job, at most.
    pub waits: u64,
    /// The longest of each wait of a job, in their order, ns, where all whole jobs have as many. Empty where the waits vary.
    pub segments_ns: Vec<u64>,
    /// How they were told from the waits between jobs.
    pub basis: String,
}

/// Who made a thread runnable for its jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakerModel {
    /// `interrupt` (a timer or a device), the name of a thread, or `unknown`.
    pub name: String,
    /// The kernel's number, of a thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tid: Option<u32>,
    /// Number of jobs.
    pub jobs: u64,
}

/// What the model of a thread was made from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FitModel {
    /// Jobs that were seen to arrive.
    pub jobs: u64,
    /// Jobs that keep the law of arrivals.
    pub explained: u64,
    /// Jobs that the start or the end of the record, or missing events, cut off. Where the switch to a thread
    /// is missing, its longest possible time counts, else what was seen.
    pub cut_off: u64,
    /// Places where the record of the thread has a hole; distances across them do not count.
    pub holes: u64,
}

/// A chain in which wakings fell together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainFitModel {
    /// Jobs of the thread before, from the first to the last that activated one of this thread.
    pub jobs: u64,
    /// Those of which the waking was seen.
    pub own: u64,
    /// Those that came while this thread was still at work. Some of its jobs are of several then, or these left no work.
    pub merged: u64,
}

impl ModelDocument {
    /// The threads that are no tasks.
    pub fn unmodelled(&self) -> impl Iterator<Item = (&ThreadModel, &str)> {
        let with_reason = |thread| Some((thread, thread_reason(thread)?));
        self.threads.iter().filter_map(with_reason)
    }

    /// Whether every thread that ran is a task, and the record has all that it was to have; where none ran, nothing is known.
    pub fn is_whole(&self) -> bool {
        let are_tasks = !self.threads.is_empty() && self.unmodelled().next().is_none();
        are_tasks && self.premises.is_empty()
    }

    /// Whether threads ran that the record does not follow.
    pub fn has_unfollowed(&self) -> bool {
        let kinds = [PremiseKind::ThreadsUnseen, PremiseKind::ProcessesUnseen];
        self.premises.iter().any(|premise| kinds.iter().any(|kind| kind.name() == premise.id))
    }

    /// Names the wakers by the kernel's names of threads.
    pub fn name_wakers(&mut self, names: &KernelNames) {
        for waker in self.threads.iter_mut().flat_map(|thread| &mut thread.woken_by) {
            let known = waker.tid.and_then(|tid| names.threads.get(&tid));
            waker.name = known.unwrap_or(&waker.name).clone();
        }
    }
}

impl ThreadModel {
    /// Its name without its number.
    pub fn plain_name(&self) -> &str {
        let number = self.tid.map(|tid| format!("-{tid}"));
        number.and_then(|number| self.name.strip_suffix(&number)).unwrap_or(&self.name)
    }
}

fn thread_reason(thread: &ThreadModel) -> Option<&str> {
    thread.unmodelled.as_deref()
}
