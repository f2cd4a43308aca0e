//! A run of a loop that is the user's own: the same folder, document and evidence as a run of ours.
//!
//! Owns: what surrounds [`hourglass_workload::OwnLoop`]: facts about the machine, warnings, the folder.
//! Must not: measure; do anything between two marks.
//!
//! ```
//! use hourglass_measure::own_loop::MeasuredLoop;
//! use hourglass_workload::LoopSpec;
//! use hourglass_time::Span;
//!
//! let mut own = MeasuredLoop::start(LoopSpec::every("control", Span::from_millis(2)), None)?;
//! for _ in 0..5 {
//!     own.begin_period();
//!     // One step of the real work, with `own.check()` here and there.
//!     own.end_period();
//!     std::thread::sleep(std::time::Duration::from_millis(1));
//! }
//! let finished = own.finish();
//! assert_eq!(finished.document.result.threads[0].deadlines.map(|d| d.completed), Some(5));
//! # Ok::<(), hourglass_measure::own_loop::LoopFailure>(())
//! ```

use std::path::{Path, PathBuf};

use hourglass_clock::choice;
use hourglass_documents::document::{Deadlines, RUN_SCHEMA, RunDocument, Warning};
use hourglass_documents::host::Host;
use hourglass_documents::{CpuSet, Policy};
use hourglass_machine::advice::{self, ThreadDemand};
use hourglass_machine::facts::HostReader;
use hourglass_runs::store::{CreateError, NewRunFolder, RunFolder};
use hourglass_workload::own_loop::{LoopChange, LoopMeasurement};
use hourglass_workload::run::{RunMeasurement, ThreadOutcome};
use hourglass_workload::spec::{RunSpec, ThreadSpec};
use hourglass_workload::{LoopError, LoopSpec, OwnLoop};
use thiserror::Error;

use hourglass_runs::causes::LOOP;

use crate::experiment::{Finished, RunFailure, conclude};
use crate::gates::with_skipped;
use crate::loop_observer::LoopObserver;
use crate::records::{MOST_JOBS, switches, wake_ups};
use crate::resources::check_memory;
use crate::{evidence, findings, node_name, switch_records, tick};

/// Why a loop cannot be measured. Nothing is left behind.
#[derive(Debug, Error)]
pub enum LoopFailure {
    /// Its specification cannot be meant, or the counter stands still.
    #[error(transparent)]
    Loop(#[from] LoopError),
    #[error("records: they take {wanted} MiB, and {limit}; ask for fewer")]
    Memory {
        /// What they would take, MiB.
        wanted: u64,
        /// What there is, MiB.
        given: u64,
        limit: String,
    },
    #[error(transparent)]
    Folder(#[from] CreateError),
}

/// A loop that is being measured, and where its run is to be kept. It belongs to the thread that
/// started it; see [`OwnLoop`] for what each mark costs.
#[derive(Debug)]
pub struct MeasuredLoop {
    own: OwnLoop,
    folder: Option<NewRunFolder>,
    host: Host,
    reader: HostReader,
    switches: switch_records::SwitchSession,
    observer: Option<LoopObserver>,
}

impl MeasuredLoop {
    /// Makes everything ready, in the thread that will run the loop. Its CPUs and its policy are looked at when the first
    /// period begins, and then once a second. Until the end a thread on CPUs that the loop may not use samples who
    /// runs meanwhile, if there are such CPUs. `folder`, if the run is to be kept, must not exist. Takes some 30 ms.
    pub fn start(mut spec: LoopSpec, folder: Option<PathBuf>) -> Result<MeasuredLoop, LoopFailure> {
        spec.check()?;
        if folder.is_some() && spec.jobs == 0 {
            spec.jobs = usize::try_from(spec.records).map_or(MOST_JOBS, |all| all.min(MOST_JOBS));
        }
        let reader = HostReader::new(Path::new("/"));
        let mut host = node_name::named(reader.read());
        host.tick = tick::from_host(&host);
        let checked = check_memory(&run_spec(&spec), &host);
        if let Err(RunFailure::Memory { wanted, given, limit }) = checked {
            return Err(LoopFailure::Memory { wanted, given, limit });
        }
        let choice = choice::choose(Path::new("/"));
        let folder = folder.map(RunFolder::create).transpose()?;
        // Before the loop begins, so that none of its switches is missing.
        let switches = switch_records::SwitchSession::of_this_thread();
        let own = OwnLoop::start(spec, choice)?;
        let observer = LoopObserver::of_this_thread();
        Ok(MeasuredLoop { own, folder, host, reader, switches, observer })
    }

    #[inline]
    pub fn begin_period(&mut self) {
        self.own.begin_period();
    }

    #[inline]
    pub fn begin_period_due(&mut self, due_ns: u64) {
        self.own.begin_period_due(due_ns);
    }

    #[inline]
    pub fn check(&mut self) {
        self.own.check();
    }

    #[inline]
    pub fn end_period(&mut self) {
        self.own.end_period();
    }

    /// Periods so far, without the one at hand.
    pub fn deadlines(&self) -> Deadlines {
        self.own.deadlines()
    }

    /// Ends measuring, writes the folder if there is to be one, and tells what was found.
    pub fn finish(self) -> Finished {
        let MeasuredLoop { own, folder, mut host, reader, mut switches, observer } = self;
        let asked = own.spec().clone();
        let LoopMeasurement { measured, changed } = own.finish();
        switches.end();
        let meanwhile = observer.and_then(LoopObserver::finish);
        host.change = Some(reader.change_since(&host.start));
        let mut document = document(&asked, &measured, host);
        document
            .result
            .warnings
            .extend(changed.map(|changed| changed_warning(&measured, &changed)));
        let records = switches.finish();
        document.manifest.evidence.extend(evidence::of_kernel(false, Some(&records)));
        conclude(document, folder, measured, (None, Some(records), meanwhile), |_| {})
    }
}

/// What such a loop is called where a run of ours names its workload.
fn workload(asked: &LoopSpec) -> String {
    format!("{LOOP} {}", asked.period)
}

/// A run with the loop as its only thread, as far as the two are alike.
fn run_spec(asked: &LoopSpec) -> RunSpec {
    let thread = ThreadSpec { gap: asked.gap, jobs: asked.jobs, ..ThreadSpec::default() };
    RunSpec { records: asked.records, ring: asked.ring, ..RunSpec::new(vec![thread]) }
}

fn document(asked: &LoopSpec, measured: &RunMeasurement, host: Host) -> RunDocument {
    let spec = RunSpec { duration: measured.elapsed, ..run_spec(asked) };
    let mut warnings = advice::before_run(&host, &demands(measured));
    warnings.extend(findings::warnings(measured, &spec, &host).into_iter().filter(|warning| {
        // Code and stacks are the program's own to lock.
        warning.id != findings::MEMORY_UNLOCKED || measured.memory.buffers_unlocked_bytes > 0
    }));
    let mut result = findings::result(measured, &spec, warnings);
    result.switches = switches(measured);
    for (thread, found) in result.threads.iter_mut().zip(&measured.threads) {
        let lost = thread.deadlines.map_or(0, |deadlines| deadlines.lost);
        thread.latency = found.recorded.lateness.as_ref().map(|late| {
            let wake_ups =
                wake_ups(measured).filter(|(id, _)| *id == found.id).flat_map(|(_, all)| all);
            let all = with_skipped(late, wake_ups, asked.period.nanos_or_zero());
            findings::latency_report(late, &all, lost)
        });
        thread.name = Some(asked.name.clone());
        thread.workload = workload(asked);
        thread.wake_up = String::new();
    }
    let command_line = std::env::args().collect();
    let facts = findings::ManifestInputs { spec: &spec, command_line, dma_latency_us: None, host };
    let mut manifest = findings::manifest(measured, facts);
    for (thread, found) in manifest.threads.iter_mut().zip(&measured.threads) {
        thread.workload = workload(asked);
        thread.wake_up = String::new();
        thread.policy_asked = found.policy.clone();
    }
    RunDocument { schema: RUN_SCHEMA.to_owned(), manifest, result }
}

fn changed_warning(measured: &RunMeasurement, changed: &LoopChange) -> Warning {
    let on = |policy: &str, cpus: &[u32]| {
        format!("{policy} on CPUs {}", cpus.iter().copied().collect::<CpuSet>())
    };
    let begun =
        measured.threads.iter().map(|thread| on(&thread.policy, &thread.cpus)).collect::<String>();
    Warning {
        id: "loop-changed".to_owned(),
        text: format!(
            "the loop started under {begun} and later ran under {}",
            on(&changed.policy, &changed.cpus)
        ),
        remedy: "set policy and CPUs before the first period".to_owned(),
    }
}

fn demands(measured: &RunMeasurement) -> Vec<ThreadDemand> {
    let demand = |thread: &ThreadOutcome| ThreadDemand {
        id: thread.id,
        policy: thread.policy.parse().unwrap_or(Policy::Deadline),
        cpu_bound: false,
        utilisation_ppm: None,
        cpus: thread.cpus.iter().copied().collect::<CpuSet>(),
    };
    measured.threads.iter().map(demand).collect()
}
