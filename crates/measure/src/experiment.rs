//! One run, from its specification to its document and its folder.
//!
//! # How a run goes
//!
//! 1. `cli` reads the ordered options (or a TOML file, by `measure::workload_file`) into a
//!    `workload::RunSpec`. Models and wake-up methods read their own words.
//! 2. `measure::experiment::run` reads the facts about the host, chooses the counter, gives advice, makes the folder (so that a
//!    run cannot fail late for a silly reason) and calls `workload::run`.
//! 3. `workload::run` prepares: allocates and touches every buffer, measures the
//!    loop of each model (GAP is twice its typical iteration), locks memory. Threads are started, take
//!    their CPUs and policies, and wait at a gate. If one is refused something, all go home: there is
//!    no partial run.
//! 4. The gate opens with the timeline: the run's zero on the counter, and a calibration against
//!    `CLOCK_MONOTONIC` with a bound. Each thread sleeps to its start and runs its model on its
//!    `Recorder`. The main thread sleeps; it ticks only if there is a CPU that is not measured.
//! 5. Afterwards everything is converted with the calibration over the whole run, merged in order of
//!    start, written, printed.

use std::convert::Infallible;
use std::path::{Path, PathBuf};

use hourglass_clock::choice;
use hourglass_documents::Policy;
use hourglass_documents::concurrent_threads::ConcurrentThreads;
use hourglass_documents::document::{Premise, RUN_SCHEMA, RunDocument, RunResult, Warning};
use hourglass_documents::host::{CpuInterrupts, Host, HostChange, RealTimeThread};
use hourglass_documents::stack::StackReport;
use hourglass_machine::advice::{self, ThreadDemand};
use hourglass_machine::facts::HostReader;
use hourglass_machine::refusal;
use hourglass_runs::store::{NewRunFolder, RunFolder, StoredWakeUp, WriteError};
use hourglass_sys::signal;
use hourglass_trace::cause::AttributedGap;
use hourglass_trace::{Interval, JobRecord, KernelEvent};
use hourglass_workload::Buckets;
use hourglass_workload::jobs::{JobLog, JobTiming};
use hourglass_workload::run::{RunError, RunMeasurement, Shortfall, ThreadOutcome};
use hourglass_workload::spec::RunSpec;

use crate::affinity_violations;
use crate::concurrent_threads;
use crate::dma_latency;
use crate::evidence;
pub use crate::failure::RunFailure;
use crate::findings;
use crate::gates::{self, Gates};
use crate::interrupt_counts;
use crate::kernel_trace;
use crate::load::Load;
pub use crate::load::LoadOptions;
use crate::niceness;
use crate::node_name;
pub use crate::observer::ExperimentObserver;
use crate::premises::Masks;
use crate::records::{self, lateness_ps, merged, switches};
use crate::reserver::KernelReserver;
use crate::resources::{check_cpus, check_memory};
use crate::run_observer::RunObserver;
use crate::switch_records;
use crate::tick;
use crate::time_limits::{self, TimeLimitGuard};
use crate::utc;
use crate::wakeups;
use crate::workload_file;
use crate::worst_intervals::{self, WorstInterval};
use crate::worst_stacks;
use hourglass_runs::{Explanation, drift, inferences, late_jobs};

#[derive(Clone, Debug)]
pub struct RunOptions {
    pub spec: RunSpec,
    pub command_line: Vec<String>,
    /// Holds `/dev/cpu_dma_latency` at this value, in microseconds.
    pub dma_latency_us: Option<u32>,
    /// Keep the run in this folder, which must not exist.
    pub folder: Option<PathBuf>,
    pub gates: Gates,
    /// Runs beside the measurement.
    pub load: Option<LoadOptions>,
    /// Record the kernel's events of the measured CPUs too, which needs root.
    pub trace: bool,
}

impl RunOptions {
    /// A run of `spec` that is not kept, with no more than that.
    pub fn new(spec: RunSpec) -> RunOptions {
        RunOptions {
            spec,
            command_line: Vec::new(),
            dma_latency_us: None,
            folder: None,
            gates: Gates::default(),
            load: None,
            trace: false,
        }
    }

    /// Makes room for wake-ups and jobs one by one, as a run with a folder has it.
    pub fn keep_records(&mut self) {
        records::make_room(&mut self.spec, self.trace, true);
    }
}

#[derive(Debug)]
pub struct Finished {
    pub document: RunDocument,
    pub folder: Option<Result<PathBuf, WriteError>>,
    pub measured: RunMeasurement,
    pub(crate) kernel: Option<kernel_trace::KernelRecording>,
    pub(crate) records: Option<switch_records::SwitchRecording>,
    explanation: Explanation,
}

impl Finished {
    /// The kernel's trace events, in order of `ticks`; of a run without a trace, records of the threads' context
    /// switches where the kernel gave them.
    pub fn kernel_events(&self) -> impl Iterator<Item = KernelEvent> + '_ {
        kernel_events(&self.measured, self.kernel.as_ref(), self.records.as_ref())
    }

    pub fn explanation(&self) -> &Explanation {
        &self.explanation
    }

    /// The execution trace, in order of start.
    pub fn intervals(&self) -> impl Iterator<Item = Interval> + '_ {
        merged(&self.measured)
    }

    /// The intervals, with gaps that the trace had no room for: before and after each such gap stands an interval of
    /// length 0. For causes; what happened between such gaps is unknown.
    pub fn intervals_and_long_gaps(&self) -> impl Iterator<Item = Interval> + '_ {
        records::with_long_gaps(&self.measured)
    }

    /// The jobs of periodic threads with those that are lost between them, by thread, as far as they were kept.
    pub fn job_records(&self) -> impl Iterator<Item = JobRecord> + '_ {
        records::jobs(&self.measured)
    }

    /// The jobs of a thread that were kept one by one, in the order in which they ended.
    pub fn jobs(&self, thread: u32) -> impl Iterator<Item = JobTimes> + '_ {
        let jobs = self.jobs_of(thread).map_or(&[][..], JobLog::jobs);
        jobs.iter().map(|job| self.times(job))
    }

    /// The job of a thread with the longest response, whether it was kept or not.
    pub fn worst_job(&self, thread: u32) -> Option<JobTimes> {
        self.jobs_of(thread)?.worst.as_ref().map(|job| self.times(job))
    }

    /// For how long the job had been there, from its arrival, that the end of the run cut off.
    pub fn cut_off_ns(&self, thread: u32) -> Option<u64> {
        let arrival = self.jobs_of(thread)?.unfinished?.arrival;
        let ended = self.outcome(thread)?.recorded.end;
        Some(self.measured.timeline.ns_in(ended.saturating_sub(arrival)))
    }

    pub(crate) fn outcome(&self, thread: u32) -> Option<&ThreadOutcome> {
        self.measured.threads.iter().find(|outcome| outcome.id == thread)
    }

    fn jobs_of(&self, thread: u32) -> Option<&JobLog> {
        self.outcome(thread)?.recorded.jobs.as_ref()
    }

    fn times(&self, job: &JobTiming) -> JobTimes {
        let timeline = &self.measured.timeline;
        JobTimes {
            arrival_ns: timeline.ns_at(job.arrival),
            start_ns: timeline.ns_at(job.started),
            finished_ns: timeline.ns_at(job.finished),
            received_ns: timeline.ns_in(job.received),
        }
    }

    pub fn tid(&self, thread: u32) -> Option<u32> {
        Some(self.outcome(thread)?.tid)
    }

    /// The last wake-up of a latency test, ns late.
    pub fn last_latency_ns(&self, thread: u32) -> Option<u64> {
        Some(self.outcome(thread)?.recorded.lateness.as_ref()?.last_ns)
    }

    pub fn buckets(&self, thread: u32) -> Option<&Buckets> {
        let recorded = &self.outcome(thread)?.recorded;
        match &recorded.lateness {
            Some(lateness) => lateness.buckets.as_ref(),
            None => recorded.gaps.buckets.as_ref(),
        }
    }

    /// The signal that ended it; not that of a limit on time, which is a premise.
    pub fn signal(&self) -> Option<i32> {
        let is_limit = self.document.result.premises.iter().any(Premise::is_time_limit);
        self.measured.interrupted.filter(|_| !is_limit)
    }

    /// Lateness of the wake-ups of a latency test, one by one, in picoseconds, as far as they
    /// were stored.
    pub fn latencies_ps(&self, thread: u32) -> impl Iterator<Item = u64> + '_ {
        lateness_ps(&self.measured).filter(move |(id, _)| *id == thread).flat_map(|(_, late)| late)
    }

    pub fn wake_ups(&self, thread: u32) -> impl Iterator<Item = StoredWakeUp> + '_ {
        records::wake_ups(&self.measured)
            .filter(move |(id, _)| *id == thread)
            .flat_map(|(_, all)| all)
    }
}

/// A job, in nanoseconds from the run's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobTimes {
    pub arrival_ns: i64,
    pub start_ns: i64,
    pub finished_ns: i64,
    /// Processor time that it received.
    pub received_ns: u64,
}

impl JobTimes {
    pub fn response_ns(&self) -> u64 {
        self.finished_ns.saturating_sub(self.arrival_ns).max(0).unsigned_abs()
    }
}

/// Measures, and keeps the run if a folder is given.
///
/// # Errors
/// See [`RunFailure`]. A folder that cannot be written after the run is no failure: the findings
/// come back with the reason.
pub fn run(
    request: RunOptions,
    watch: &mut dyn ExperimentObserver,
) -> Result<Finished, RunFailure> {
    run_and_add(request, watch, |_| {})
}

/// The same; what `add` puts into the document is kept with it.
pub(crate) fn run_and_add(
    request: RunOptions,
    watch: &mut dyn ExperimentObserver,
    add: impl FnOnce(&mut Finished),
) -> Result<Finished, RunFailure> {
    let RunOptions { mut spec, command_line, dma_latency_us, folder, gates, load, trace } = request;
    spec.check()?;
    gates.check(&spec)?;
    spec.guard.counted = gates.counted();
    records::make_room(&mut spec, trace, folder.is_some());
    // What happened around the hit is what was recorded last.
    spec.ring |= spec.guard.stop_on_gap.is_some() || spec.guard.stop_on_latency.is_some();
    let reader = HostReader::new(Path::new("/"));
    let mut host = host_for(&reader, &spec, dma_latency_us)?;
    let wanted = demands(&spec);
    let mut warnings = warnings_before(&mut spec, &host, &wanted, watch);
    let choice = choice::choose(Path::new("/"));
    let mut tracing = kernel_trace::start(trace, &spec, &choice, &host, &mut warnings)?;
    spec.marker = tracing.as_ref().and_then(kernel_trace::TraceSession::marker);
    let held = dma_latency::hold(dma_latency_us, &spec, &mut warnings)?;
    // Before there is a folder: a program that ends by a signal leaves it half-written.
    let _ = signal::catch_stop();
    let folder = folder.map(RunFolder::create).transpose()?;
    let mut recording = tracing.is_none().then(|| switch_records::SwitchSession::new(&spec));
    let without = |refused: &[Shortfall], warnings: &mut Vec<Warning>| {
        advice::judge_again(&host, &advice::without(&wanted, refused), warnings);
    };
    let mut interrupts = interrupt_counts::InterruptSession::for_run(&spec, host.tick);
    let mut meanwhile = tracing.is_none().then(concurrent_threads::RunTimeSampler::default);
    let mut masks = Masks::of(&spec);
    let mut load = load.map(|load| Load::start(&load, &host)).transpose()?;
    let mut run_observer = RunObserver {
        watch,
        warnings: &mut warnings,
        without: &without,
        interrupts: &mut interrupts,
        tracing: tracing.as_mut(),
        switches: recording.as_mut(),
        live_threads: None,
        meanwhile: &mut meanwhile,
        masks: &mut masks,
        load: load.as_mut(),
    };
    let reserver = KernelReserver::for_run(&spec);
    let real_time = spec.threads.iter().any(|thread| thread.policy.is_real_time());
    let others = real_time.then(|| reader.real_time_others());
    let utc_before = utc::reading();
    let limits = TimeLimitGuard::new();
    let measured = hourglass_workload::run(&spec, choice, &reserver, &mut run_observer)
        .map_err(|error| failure(error, &host))?;
    let utc = vec![utc_before, utc::reading()];
    let hit = gates::hit_report(&measured, &spec.guard);
    warnings.extend(gates::run_on_hit(&gates, hit.as_ref(), folder.as_ref()));
    drop(held);
    let limit = limits.reached(&measured);
    let interrupts = interrupts.finish(measured.timeline.epoch.monotonic_ns);
    let others = others.map(|before| reader.real_time_others_since(&before)).unzip();
    host.change = Some(change(&reader, &host, interrupts, others));
    let kernel = tracing.map(kernel_trace::TraceSession::finish);
    warnings.extend(findings::warnings(&measured, &spec, &host));
    warnings.extend(kernel.iter().flat_map(|kernel| kernel.warnings.iter().cloned()));
    let mut result = findings::result(&measured, &spec, warnings);
    result.switches = switches(&measured);
    masks.fill(&mut result, &measured, limit, watch);
    result.gates = gates::evaluate(&gates, &measured, &spec, hit.as_ref());
    result.hit = hit;
    let facts = findings::ManifestInputs { spec: &spec, command_line, dma_latency_us, host };
    let mut manifest = findings::manifest(&measured, facts);
    manifest.utc = utc;
    manifest.load = load.map(|load| load.fill(&mut result));
    let tids: Vec<u32> = measured.threads.iter().map(|thread| thread.tid).collect();
    result.warnings.extend(reserver.end(&tids, &mut manifest.threads));
    manifest.kernel = kernel.as_ref().map(|kernel| kernel.facts.clone());
    let records = recording.map(switch_records::SwitchSession::finish);
    manifest.evidence.extend(evidence::of_kernel(kernel.is_some(), records.as_ref()));
    let document = RunDocument { schema: RUN_SCHEMA.to_owned(), manifest, result };
    Ok(conclude(document, folder, measured, (kernel, records, meanwhile), add))
}

/// What will spoil the numbers; what may end the process is said at once.
fn warnings_before(
    spec: &mut RunSpec,
    host: &Host,
    wanted: &[ThreadDemand],
    watch: &mut dyn ExperimentObserver,
) -> Vec<Warning> {
    let mut warnings = advice::before_run(host, wanted);
    warnings.extend(time_limits::cpu_time_warning(host, wanted, spec.duration));
    crate::observer::warn_of_the_end(watch, &warnings);
    warnings.extend(niceness::fit(spec, host));
    warnings.extend(niceness::without_effect(spec));
    warnings
}

fn change(
    reader: &HostReader,
    host: &Host,
    interrupts: Vec<CpuInterrupts>,
    (others, over_ns): (Option<Vec<RealTimeThread>>, Option<u64>),
) -> HostChange {
    HostChange {
        interrupts,
        real_time_others: others.unwrap_or_default(),
        real_time_others_over_ns: over_ns,
        ..reader.change_since(&host.start)
    }
}

/// The machine as it is before the run, if it has the CPUs and the memory; what the run will hold counts as what it has.
fn host_for(reader: &HostReader, spec: &RunSpec, dma_us: Option<u32>) -> Result<Host, RunFailure> {
    let mut host = node_name::named(reader.read());
    check_cpus(spec, &host)?;
    check_memory(spec, &host)?;
    host.idle.latency_limit_us = dma_us.or(host.idle.latency_limit_us);
    host.tick = tick::from_host(&host);
    Ok(host)
}

fn kernel_events<'a>(
    measured: &'a RunMeasurement,
    kernel: Option<&'a kernel_trace::KernelRecording>,
    records: Option<&'a switch_records::SwitchRecording>,
) -> impl Iterator<Item = KernelEvent> + use<'a> {
    let timeline = &measured.timeline;
    let traced = kernel.into_iter().flat_map(|kernel| kernel.events(timeline));
    traced.chain(records.into_iter().flat_map(|records| records.events(timeline)))
}

/// Finds the causes of all gaps and puts them into the document.
pub(crate) fn explain<I: Iterator<Item = Interval>>(
    document: &mut RunDocument,
    intervals: impl Fn() -> I,
    events: impl Iterator<Item = KernelEvent>,
) -> Explanation {
    let read = || intervals().map(Ok::<_, Infallible>);
    let Ok(explanation) = Explanation::new(document, read());
    let Ok(()) = explanation.fill(document, read(), events.map(Ok));
    explanation
}

fn woken(measured: &RunMeasurement) -> impl Iterator<Item = WorstInterval> + '_ {
    records::wake_ups(measured).flat_map(|(thread, all)| {
        let outcome = measured.threads.iter().find(|outcome| outcome.id == thread);
        let cpu = match outcome.map(|outcome| &outcome.cpus[..]) {
            Some([only]) => Some(*only),
            _ => None,
        };
        all.filter_map(move |one| {
            let to_ns = one.woke_ns?;
            let from_ns = to_ns.saturating_sub_unsigned(one.lateness_ps / 1_000);
            Some(WorstInterval { kind: WorstInterval::WAKE_UP, thread, from_ns, to_ns, cpu })
        })
    })
}

/// The kernel's stacks at the longest gaps and the latest wake-ups.
fn stacks(measured: &RunMeasurement, kernel: &kernel_trace::KernelRecording) -> Vec<StackReport> {
    let mut spans =
        worst_intervals::longest(worst_intervals::gaps(records::with_long_gaps(measured)));
    spans.extend(worst_intervals::longest(woken(measured)));
    let tids = measured.threads.iter().map(|thread| (thread.id, thread.tid)).collect();
    let (events, stacks) = (kernel.events(&measured.timeline), kernel.stacks(&measured.timeline));
    worst_stacks::reports(&spans, &tids, events, stacks, &kernel.facts.names.threads)
}

/// Who ran meanwhile, by the kernel's counts, in the longest gaps that are switches, and at the latest wake-ups.
fn by_counts(
    measured: &RunMeasurement,
    explanation: &Explanation,
    records: Option<&switch_records::SwitchRecording>,
    counts: &concurrent_threads::RunTimeSampler,
) -> Vec<ConcurrentThreads> {
    let intervals = records::with_long_gaps(measured).map(Ok::<_, Infallible>);
    let events = kernel_events(measured, None, records).map(Ok);
    let switched = explanation.gaps(intervals, events).filter_map(|gap| {
        let Ok(gap) = gap;
        let AttributedGap { thread, start_ns: from_ns, end_ns: to_ns, cpu_after, .. } = gap;
        let cpu = Some(cpu_after);
        gap.was_switched().then_some(WorstInterval {
            kind: WorstInterval::GAP,
            thread,
            from_ns,
            to_ns,
            cpu,
        })
    });
    let mut spans = worst_intervals::longest(switched);
    spans.extend(worst_intervals::longest(woken(measured)));
    let tids = measured.threads.iter().map(|thread| (thread.tid, thread.id)).collect();
    let real_time = measured
        .threads
        .iter()
        .filter(|thread| thread.policy.parse::<Policy>().is_ok_and(Policy::is_real_time));
    let real_time = real_time.map(|thread| thread.id).collect();
    counts.reports(&spans, &tids, &real_time, measured.timeline.epoch.monotonic_ns)
}

/// What the kernel recorded of a run; each part only where it did.
pub(crate) type KernelData = (
    Option<kernel_trace::KernelRecording>,
    Option<switch_records::SwitchRecording>,
    Option<concurrent_threads::RunTimeSampler>,
);

/// Says what the trace says, and keeps the run if there is a folder for it.
pub(crate) fn conclude(
    mut document: RunDocument,
    folder: Option<NewRunFolder>,
    measured: RunMeasurement,
    (kernel, records, counts): KernelData,
    add: impl FnOnce(&mut Finished),
) -> Finished {
    document.result.warnings.extend(drift::warning(&document.manifest));
    let online = workload_file::online_cpus();
    document
        .result
        .warnings
        .extend(affinity_violations::warnings(&document.result.threads, online.as_ref()));
    let events = kernel_events(&measured, kernel.as_ref(), records.as_ref());
    let explanation = explain(&mut document, || records::with_long_gaps(&measured), events);
    document.result.inferences =
        inferences::of_run(&document, merged(&measured), lateness_ps(&measured));
    if let Some(kernel) = &kernel {
        document.result.wakeups = wakeups::of_run(&measured, kernel.events(&measured.timeline));
        document.result.stacks = stacks(&measured, kernel);
    }
    if let Some(counts) = &counts {
        document.result.meanwhile = by_counts(&measured, &explanation, records.as_ref(), counts);
    }
    if late_jobs::has_late_jobs(&document) {
        let intervals = records::with_long_gaps(&measured).map(Ok::<_, Infallible>);
        let events = kernel_events(&measured, kernel.as_ref(), records.as_ref()).map(Ok);
        let gaps = explanation.gaps(intervals, events).flatten();
        let found = late_jobs::latest(&document, records::jobs(&measured), gaps);
        document.result.late_jobs = found;
    }
    let mut finished = Finished { document, folder: None, measured, kernel, records, explanation };
    add(&mut finished);
    finished.folder = folder.map(|folder| keep(folder, &finished));
    finished
}

pub(crate) fn failure(error: RunError, host: &Host) -> RunFailure {
    match error {
        RunError::Spec(error) => RunFailure::Spec(error),
        RunError::Refused(shortfalls) => RunFailure::Refused(refusal::of_all(&shortfalls, host)),
        other => RunFailure::Other(other.to_string()),
    }
}

fn demands(spec: &RunSpec) -> Vec<ThreadDemand> {
    (0u32..)
        .zip(&spec.threads)
        .map(|(id, thread)| {
            let demand = thread.model.demand();
            let period_ns = demand.period.map(|period| period.nanos() as f64);
            let share = demand.mean_ns.zip(period_ns).map(|(mean, period)| mean / period);
            ThreadDemand {
                id,
                policy: match thread.deadline_reservation() {
                    Some(_) => Policy::Deadline,
                    None => thread.policy,
                },
                cpu_bound: demand.cpu_bound || thread.wake.busy_waits(),
                utilisation_ppm: share.map(|share| (share * 1e6).round() as u64),
                cpus: thread.cpus.clone().unwrap_or_default(),
            }
        })
        .collect()
}

fn keep(mut folder: NewRunFolder, finished: &Finished) -> Result<PathBuf, WriteError> {
    let Finished { document, measured, kernel, records, .. } = finished;
    let path = folder.path().to_path_buf();
    let mut trace = folder.trace()?;
    for interval in merged(measured) {
        trace.write(&interval)?;
    }
    trace.finish()?;
    let latencies: Vec<_> = measured
        .threads
        .iter()
        .filter_map(|thread| Some((thread.id, &thread.recorded.lateness.as_ref()?.histogram)))
        .collect();
    let manifest = &document.manifest;
    folder.write_latencies(&manifest.epoch, manifest.elapsed_ns, &latencies)?;
    folder.write_samples(records::wake_ups(measured))?;
    folder.write_jobs(records::jobs(measured))?;
    if kernel.is_some() || records.as_ref().is_some_and(switch_records::SwitchRecording::is_there) {
        folder.write_kernel_events(finished.kernel_events())?;
    }
    let result: RunResult = document.result.clone();
    let whole =
        hourglass_documents::manifest::Manifest { result: Some(result), ..manifest.clone() };
    folder.finish(&whole)?;
    Ok(path)
}
