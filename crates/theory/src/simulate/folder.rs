//! A simulation as an ordinary run folder.
//!
//! Owns: the manifest and the reports of threads that never were. Must not: claim that anything was
//! measured.

use std::path::PathBuf;

use hourglass_documents::document::{Deadlines, RunResult, ThreadReport, Warning};
use hourglass_documents::host::Host;
use hourglass_documents::manifest::{
    CalibrationFacts, ClockFacts, Epoch, MANIFEST_SCHEMA, Manifest, MemoryFacts, ThreadFacts,
};
use hourglass_documents::simulation::SimulationDocument;
use hourglass_documents::{CpuSet, Policy};
use hourglass_runs::store::{NewRunFolder, WriteError, merge_by_start};
use hourglass_sim::{Class, Thread};
use hourglass_tasks::{Server, Task};
use hourglass_trace::CpuTimeline;

use super::system::{Model, ns};
use super::{Pass, SimulationRequest};

/// Ticks of the simulated counter in a second: one a nanosecond.
const HERTZ: f64 = 1e9;

pub(super) fn keep(
    mut folder: NewRunFolder,
    request: &SimulationRequest,
    model: &Model,
    document: &SimulationDocument,
    pass: &Pass,
) -> Result<PathBuf, WriteError> {
    let path = folder.path().to_path_buf();
    let mut trace = folder.trace()?;
    let mut timeline = CpuTimeline::default();
    let streams = pass.threads.iter().map(|thread| thread.trace.iter().copied()).collect();
    for interval in merge_by_start(streams) {
        timeline.push(&interval);
        trace.write(&interval)?;
    }
    trace.finish()?;
    folder.write_jobs(
        pass.threads.iter().flat_map(|thread| thread.jobs.iter().map(|(_, job)| *job)),
    )?;
    let mut result = result(request, model, document, pass);
    result.switches = timeline.switches();
    folder.finish(&manifest(request, model, document, result))?;
    Ok(path)
}

fn result(
    request: &SimulationRequest,
    model: &Model,
    document: &SimulationDocument,
    pass: &Pass,
) -> RunResult {
    let reports =
        (0..model.names.len()).filter_map(|at| report(request, model, document, pass, at));
    let mut warnings = document.warnings.clone();
    let dropped = pass.threads.iter().map(|thread| thread.dropped).fold(0, u64::saturating_add);
    if dropped > 0 {
        warnings.push(Warning {
            id: "records-dropped".to_owned(),
            text: format!(
                "the trace was full: {dropped} intervals are counted but not stored; the oldest \
                 are kept"
            ),
            remedy: format!(
                "ask for a shorter --horizon, or --records above {}",
                request.records.saturating_add(dropped)
            ),
        });
    }
    let jobs = pass.threads.iter().map(|thread| thread.jobs_dropped).fold(0, u64::saturating_add);
    if jobs > 0 {
        warnings.push(Warning {
            id: "jobs-dropped".to_owned(),
            text: format!("{jobs} jobs are counted but not stored one by one; the oldest are kept"),
            remedy: "ask for a shorter --horizon, or more --records".to_owned(),
        });
    }
    RunResult {
        threads: reports.collect(),
        warnings,
        interrupted: document.interrupted,
        ..RunResult::default()
    }
}

fn report(
    request: &SimulationRequest,
    model: &Model,
    document: &SimulationDocument,
    pass: &Pass,
    position: usize,
) -> Option<ThreadReport> {
    let thread = model.system.threads.get(position)?;
    let outcome = pass.outcome.threads.get(position)?;
    let seen = pass.threads.get(position)?;
    let name = model.names.get(position)?;
    let task = request.set.tasks.get(position);
    let found = document.tasks.get(position);
    Some(ThreadReport {
        id: u32::try_from(position).ok()?,
        tid: None,
        name: Some(name.clone()),
        workload: workload(task),
        wake_up: task.and_then(|task| task.timer.clone()).unwrap_or_default(),
        emulated: Some(HOW.to_owned()),
        policy: policy(thread, request.set.server_of(name)),
        cpus: allowed(thread, model),
        cpus_seen: seen.cpus_seen.clone(),
        cpu_time_ns: outcome.received,
        wall_ns: document.simulated_ns,
        intervals: seen.intervals,
        gaps: seen.gaps.report(),
        deadlines: found.map(|task| Deadlines {
            hit: task.hit,
            missed: task.missed,
            lost: task.lost,
            completed: outcome.jobs,
        }),
        latency: None,
        work: None,
        records_dropped: seen.dropped,
        migrations: outcome.migrations,
        strayed: None,
        kernel: None,
    })
}

/// The statement of the summary about every thread.
const HOW: &str = "simulated on virtual time; nothing was measured";

fn workload(task: Option<&Task>) -> String {
    match task {
        Some(task) => {
            let amount = match &task.execution_time {
                Some(times) => times.to_string(),
                None => task.wcet.to_string(),
            };
            format!("PERIODIC {amount} {}", task.period)
        }
        None => "CPU".to_owned(),
    }
}

/// A policy as the kernel would have it, where it has such a one.
fn policy(thread: &Thread, server: Option<&Server>) -> String {
    if let Some(server) = server {
        return format!("DEADLINE:{}/{}", server.budget, server.period);
    }
    let small = |priority: u32| u8::try_from(priority).ok();
    match thread.class {
        Class::Edf => Policy::Deadline.to_string(),
        Class::Fifo(priority) => small(priority)
            .map_or_else(|| format!("FIFO:{priority}"), |p| Policy::Fifo(p).to_string()),
        Class::RoundRobin(priority) => small(priority)
            .map_or_else(|| format!("RR:{priority}"), |p| Policy::RoundRobin(p).to_string()),
        Class::Fair(nice) => Policy::Other(nice).to_string(),
        Class::Idle => Policy::Idle.to_string(),
    }
}

fn allowed(thread: &Thread, model: &Model) -> Vec<u32> {
    if thread.cpus.is_empty() {
        return model.cpus.clone();
    }
    let number =
        |cpu: &u32| usize::try_from(*cpu).ok().and_then(|cpu| model.cpus.get(cpu).copied());
    thread.cpus.iter().filter_map(number).collect()
}

fn manifest(
    request: &SimulationRequest,
    model: &Model,
    document: &SimulationDocument,
    result: RunResult,
) -> Manifest {
    let exact = CalibrationFacts {
        frequency_hz: HERTZ,
        window_ns: document.simulated_ns,
        rate_error_ppb: 0,
        bracket_ns: 0,
    };
    let facts = |(thread, report): (&Thread, &ThreadReport)| {
        let task = usize::try_from(report.id).ok().and_then(|id| request.set.tasks.get(id));
        let cpus: CpuSet = report.cpus.iter().copied().collect();
        let server = thread.server.and_then(|server| request.set.servers.get(server));
        ThreadFacts {
            id: report.id,
            workload: report.workload.clone(),
            wake_up: report.wake_up.clone(),
            policy_asked: report.policy.clone(),
            policy: report.policy.clone(),
            reservation: server.map(|server| format!("{}/{}", server.budget, server.period)),
            reserved: None,
            cpus: cpus.to_string(),
            start_ns: task.and_then(|task| task.offset).map_or(0, ns),
            finish_ns: document.horizon_ns,
            gap_ns: 0,
            loop_ns: 0,
            records_capacity: request.records,
            settled_ns: None,
            amounts: None,
        }
    };
    Manifest {
        schema: MANIFEST_SCHEMA.to_owned(),
        pid: None,
        utc: Vec::new(),
        hourglass: env!("CARGO_PKG_VERSION").to_owned(),
        command_line: request.command_line.clone(),
        epoch: Epoch::default(),
        duration_ns: document.horizon_ns,
        elapsed_ns: document.simulated_ns,
        seed: request.seed,
        records_capacity: request.records,
        ring: false,
        clock: ClockFacts {
            source: "sim".to_owned(),
            trusted: true,
            reason: "time is simulated, and exact".to_owned(),
            frequency_hz: HERTZ,
            calibration_start: exact,
            calibration_end: exact,
        },
        threads: model.system.threads.iter().zip(&result.threads).map(facts).collect(),
        memory: MemoryFacts::default(),
        dma_latency_us: None,
        load: None,
        evidence: Vec::new(),
        host: Host::default(),
        kernel: None,
        simulation: Some(document.clone()),
        result: Some(result),
    }
}
