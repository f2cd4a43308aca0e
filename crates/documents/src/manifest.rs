//! The manifest of a run: everything that explains its numbers.

use hourglass_time::Span;
use serde::{Deserialize, Serialize};

use crate::document::RunResult;
use crate::host::Host;
use crate::kernel::KernelFacts;
use crate::load::LoadFacts;
use crate::simulation::SimulationDocument;

/// Name and version of the manifest as a file.
pub const MANIFEST_SCHEMA: &str = "hourglass.manifest/1";

/// What explains the numbers of a run. In a run folder it also carries the `result`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Always [`MANIFEST_SCHEMA`].
    pub schema: String,
    /// Version of Hourglass that measured.
    pub hourglass: String,
    /// The command line, word by word.
    pub command_line: Vec<String>,
    /// The process whose threads were measured. Absent where there are several, in simulations, and in folders of
    /// earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Where the run's zero lies on the clocks.
    pub epoch: Epoch,
    /// How long the run was meant to be.
    pub duration_ns: u64,
    /// How long it was.
    pub elapsed_ns: u64,
    /// Start of the random sequences; the same seed draws the same execution times.
    pub seed: u64,
    /// Trace records that all threads together could store.
    pub records_capacity: u64,
    /// Whether a full buffer kept the newest records (`--ring`) rather than the oldest.
    pub ring: bool,
    /// The counter that measured, and its calibration.
    pub clock: ClockFacts,
    /// The threads as they were asked for and set up.
    pub threads: Vec<ThreadFacts>,
    /// What was locked into memory.
    pub memory: MemoryFacts,
    /// Latency in microseconds that `/dev/cpu_dma_latency` was held at, if it was.
    pub dma_latency_us: Option<u32>,
    /// What ran beside the measurement (`--load`), if anything was asked to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadFacts>,
    /// Sources of evidence about gaps that threads and kernel had, and what would give the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<EvidenceFacts>,
    /// The node's clocks before the run and after it. Absent where they were not read: in simulations, and
    /// in folders of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub utc: Vec<UtcReading>,
    /// The machine. Empty if it was simulated.
    pub host: Host,
    /// How the kernel's events were recorded, where they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelFacts>,
    /// What was simulated, if nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulation: Option<SimulationDocument>,
    /// The findings, in a run folder. The run document carries them beside the manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<RunResult>,
}

impl Default for Manifest {
    /// An empty one.
    fn default() -> Manifest {
        Manifest {
            schema: MANIFEST_SCHEMA.to_owned(),
            hourglass: String::new(),
            command_line: Vec::new(),
            pid: None,
            epoch: Epoch::default(),
            duration_ns: 0,
            elapsed_ns: 0,
            seed: 0,
            records_capacity: 0,
            ring: false,
            clock: ClockFacts::default(),
            threads: Vec::new(),
            memory: MemoryFacts::default(),
            dma_latency_us: None,
            load: None,
            evidence: Vec::new(),
            utc: Vec::new(),
            host: Host::default(),
            kernel: None,
            simulation: None,
            result: None,
        }
    }
}

/// A source of evidence about gaps, and whether the run had it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceFacts {
    /// Which: [`EvidenceFacts::RSEQ`] and the others.
    pub source: String,
    /// Whether the run had it.
    pub used: bool,
    /// What the source gave, or why it was not there.
    pub found: String,
    /// What would give it; a command where there is one. `None` if it was there, or nothing helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// Whether its evidence is complete. `None` where that is not known, or makes no sense.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete: Option<bool>,
}

impl EvidenceFacts {
    /// Whether the kernel cleared a thread's critical section during a gap.
    pub const RSEQ: &'static str = "rseq";
    /// The kernel's counts of a thread (`getrusage`), asked after gaps.
    pub const COUNTERS: &'static str = "counters";
    /// Records of context switches (`perf_event_open`).
    pub const PERF: &'static str = "perf";
    /// The kernel's trace events (`--trace`).
    pub const TRACE: &'static str = "trace";
}

/// The run's zero on three clocks, read together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Epoch {
    /// `CLOCK_MONOTONIC`.
    pub monotonic_ns: u64,
    /// `CLOCK_REALTIME`.
    pub realtime_ns: u64,
    /// The raw counter.
    pub ticks: u64,
}

/// Where `CLOCK_MONOTONIC` stood to UTC at a moment, and the bound on that.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UtcReading {
    /// `CLOCK_MONOTONIC`: the middle of the bracket.
    pub monotonic_ns: u64,
    /// `CLOCK_REALTIME`, read within the bracket.
    pub realtime_ns: u64,
    /// Between the two readings of `CLOCK_MONOTONIC` around that of `CLOCK_REALTIME`.
    pub bracket_ns: u64,
    /// Upper bound of the difference of `CLOCK_REALTIME` from UTC, by the narrowest of those who vouch for it; null
    /// without one: the difference is then unknown.
    pub max_error_ns: Option<u64>,
    /// Who said the bound: `adjtimex` (the kernel), `chronyd`, `ptp4l`, `clockbound`; `none` where nobody did, and the kernel was not to
    /// be asked.
    pub source: String,
}

/// Which counter measured, why that one, and how it was converted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockFacts {
    /// `tsc`, `cntvct` or `monotonic`.
    pub source: String,
    /// Whether it is the processor's own counter and was found fit.
    pub trusted: bool,
    /// Why this source was taken.
    pub reason: String,
    /// Ticks per second.
    pub frequency_hz: f64,
    /// At the start of the run: pairs of counter and `CLOCK_MONOTONIC` over a short window.
    pub calibration_start: CalibrationFacts,
    /// Over the whole run; this one converted the trace.
    pub calibration_end: CalibrationFacts,
}

/// One calibration of the counter against `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CalibrationFacts {
    /// Ticks per second.
    pub frequency_hz: f64,
    /// Length of the window between the two pairs.
    pub window_ns: u64,
    /// Bound on the error of the frequency, parts per billion.
    pub rate_error_ppb: u64,
    /// Bound on the error of one pair: half the width of its bracket.
    pub bracket_ns: u64,
}

/// A thread as it was asked for and set up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadFacts {
    /// Number of the thread.
    pub id: u32,
    /// The workload as it is written.
    pub workload: String,
    /// The wake-up method as it is written.
    pub wake_up: String,
    /// The policy that was asked for.
    pub policy_asked: String,
    /// The policy that was in force.
    pub policy: String,
    /// The reservation, as `BUDGET/PERIOD`, if one was asked for.
    pub reservation: Option<String>,
    /// What kept the reservation, if it was granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<ReservedFacts>,
    /// CPUs on which it was allowed to run.
    pub cpus: String,
    /// When it started, counted from the run's start.
    pub start_ns: u64,
    /// When it was to finish.
    pub finish_ns: u64,
    /// From when on it had this policy, these CPUs and this reservation, where others were in force before; counted from the
    /// run's start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_ns: Option<u64>,
    /// Gaps longer than this are recorded.
    pub gap_ns: u64,
    /// Time of a typical iteration of its loop, from which GAP was taken; 99 of 100 iterations
    /// take no longer.
    pub loop_ns: u64,
    /// Records that its buffer could hold.
    pub records_capacity: u64,
    /// The execution times of its jobs, where they were read from a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amounts: Option<TableFacts>,
}

/// What kept a thread's reservation, and why that.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservedFacts {
    /// `deadline` or `user`, as `reserve --backend` names it.
    pub by: String,
    /// Why, in one sentence.
    pub reason: String,
    /// Whether every period in which the whole budget was wanted had it in time; null where that is not known, as in
    /// the deadline class.
    #[serde(default)]
    pub kept: Option<bool>,
    /// What may have had the CPU, or failed, where `kept` is false, as `reserve` names it; empty where nothing is known of it.
    #[serde(default)]
    pub broken_by: Vec<String>,
}

/// Execution times that were read from a file, which may have changed since.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableFacts {
    /// How many there are; behind the last follows the first again.
    pub count: u64,
    /// The longest.
    pub longest_ns: u64,
    /// Their sum.
    pub total_ns: u64,
    /// The first 1000 of them, in their order.
    pub first_ns: Vec<u64>,
}

impl TableFacts {
    /// More are not kept one by one.
    const KEPT: usize = 1_000;

    /// Facts of these times; `None` without a time.
    #[must_use]
    pub fn of(times: &[Span]) -> Option<TableFacts> {
        let ns = || times.iter().map(|time| time.nanos_or_zero());
        Some(TableFacts {
            count: times.len() as u64,
            longest_ns: ns().max()?,
            total_ns: ns().fold(0, u64::saturating_add),
            first_ns: ns().take(TableFacts::KEPT).collect(),
        })
    }
}

/// What was locked into memory, and what could not be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryFacts {
    /// Whether everything, present and future, was locked.
    pub all_locked: bool,
    /// Bytes of buffers that were locked one by one.
    pub buffers_locked_bytes: u64,
    /// Bytes of buffers that were touched but could not be locked.
    pub buffers_unlocked_bytes: u64,
}
