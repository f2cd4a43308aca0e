//! From what was simulated to the document.
//!
//! Owns: which jobs are hit, missed and lost, and the account of shared cores. Must not: simulate.

use hourglass_documents::document::Warning;
use hourglass_documents::simulation::{
    BackgroundFindings, FirstMiss, SIMULATE_SCHEMA, SimulationDocument, SmtFindings, TaskFindings,
};
use hourglass_sim::{Class, System, smt};
use hourglass_tasks::{Fraction, Scheduler, Task};

use super::horizon::Horizon;
use super::system::{Model, ns, warn};
use super::{Pass, SimulationRequest};

/// The document of a pass; `compared` is the one with siblings disabled.
pub(super) fn document(
    request: &SimulationRequest,
    model: &Model,
    horizon: Horizon,
    pass: &Pass,
    compared: Option<&Pass>,
) -> SimulationDocument {
    let outcome = &pass.outcome;
    let tasks = request.set.tasks.iter().zip(&outcome.threads).zip(0u32..);
    let background = request.set.background.iter().zip(outcome.threads.iter().skip(model.tasks));
    let first = u32::try_from(model.tasks).unwrap_or(u32::MAX);
    let found: Vec<TaskFindings> =
        tasks.map(|((task, outcome), id)| task_findings(task, outcome, id)).collect();
    let mut warnings = model.warnings.clone();
    short_horizon(request, horizon, &mut warnings);
    SimulationDocument {
        schema: SIMULATE_SCHEMA.to_owned(),
        name: request.set.name.clone(),
        scheduler: scheduler(request.set.scheduler).to_owned(),
        seed: request.seed,
        releases: request.releases.name().to_owned(),
        horizon_ns: horizon.ns,
        horizon_from: horizon.from.to_owned(),
        hyperperiod_ns: horizon.hyperperiod,
        simulated_ns: outcome.horizon,
        events: outcome.events,
        jobs: found.iter().map(|task| task.jobs).fold(0, u64::saturating_add),
        tasks: found,
        background: background
            .zip(first..)
            .map(|((thread, outcome), id)| BackgroundFindings {
                name: thread.name.clone(),
                thread: id,
                cpu_time_ns: outcome.received,
                progress_ns: outcome.progress,
                jobs: outcome.jobs,
                max_response_ns: outcome.max_response,
            })
            .collect(),
        smt: request.smt.map(|policy| smt_findings(policy, pass, compared)),
        warnings,
        interrupted: false,
    }
}

/// The name of a scheduler, as files have it.
fn scheduler(scheduler: Scheduler) -> &'static str {
    match scheduler {
        Scheduler::FixedPriority => "fixed-priority",
        Scheduler::Edf => "edf",
        Scheduler::Fifo => "fifo",
        Scheduler::RoundRobin => "round-robin",
        Scheduler::Fair => "fair",
    }
}

/// Of the jobs that were due and are not done, at most the first has started: the others are lost
/// behind it, as the account of a run has them. Where it has not, all of them are lost.
fn task_findings(task: &Task, outcome: &hourglass_sim::ThreadOutcome, thread: u32) -> TaskFindings {
    let never_done = outcome.missed.saturating_sub(outcome.late);
    let behind = never_done.saturating_sub(u64::from(outcome.oldest_started));
    TaskFindings {
        name: task.name.clone(),
        thread,
        period_ns: ns(task.period),
        deadline_ns: ns(task.deadline()),
        jobs: outcome.released,
        hit: outcome.jobs.saturating_sub(outcome.late),
        missed: outcome.missed - behind,
        lost: outcome.lost.saturating_add(behind),
        max_response_ns: outcome.max_response,
        max_response_from_release_ns: outcome.max_response_from_release,
        min_response_ns: outcome.min_response,
        p50_response_ns: quantile(outcome, 1, 2),
        p99_response_ns: quantile(outcome, 99, 100),
        cpu_time_ns: outcome.received,
        preemptions: outcome.preemptions,
        migrations: outcome.migrations,
        first_miss: outcome.first_miss.map(|miss| FirstMiss {
            job: miss.job,
            arrival_ns: miss.arrival,
            due_ns: miss.deadline,
            done_ns: miss.done,
        }),
    }
}

/// The histogram rounds up within its buckets; no value is above the largest one.
fn quantile(outcome: &hourglass_sim::ThreadOutcome, part: u64, whole: u64) -> Option<u64> {
    let found = outcome.responses.quantile(part, whole)?;
    let at_least = outcome.min_response.unwrap_or(0);
    Some(found.clamp(at_least, outcome.max_response.unwrap_or(found).max(at_least)))
}

fn short_horizon(request: &SimulationRequest, horizon: Horizon, warnings: &mut Vec<Warning>) {
    let unseen =
        request.set.tasks.iter().find(|task| {
            ns(task.deadline()).saturating_add(task.offset.map_or(0, ns)) > horizon.ns
        });
    if let Some(task) = unseen {
        let text = format!("task '{}': no deadline of its comes within the horizon", task.name);
        warn(warnings, "short-horizon", text, "ask for a longer --horizon");
    }
}

fn smt_findings(policy: smt::SmtPolicy, pass: &Pass, compared: Option<&Pass>) -> SmtFindings {
    let mut found = SmtFindings {
        policy: match policy {
            smt::SmtPolicy::Ignore => "unaware",
            smt::SmtPolicy::Disable => "disabling",
            smt::SmtPolicy::Monitor(_) => "slack-monitoring",
        }
        .to_owned(),
        wakeups: pass.watched.wakeups,
        wakeups_per_job_max: pass.watched.wakeups_per_job_max,
        stops: pass.watched.stops,
        best_effort_ns: pass.best_effort,
        best_effort_disabling_ns: match policy {
            smt::SmtPolicy::Disable => Some(pass.best_effort),
            _ => compared.map(|compared| compared.best_effort),
        },
        ..SmtFindings::default()
    };
    if let smt::SmtPolicy::Monitor(monitoring) = policy {
        let (part, whole) = monitoring.alpha.parts();
        found.alpha = Fraction::new(part, whole).map(|alpha| alpha.to_string());
        found.margin_ns = Some(monitoring.margin);
        found.latency_ns = Some(monitoring.latency);
        found.interval_ns = match monitoring.check {
            smt::SlackCheck::Variable => None,
            smt::SlackCheck::Fixed(interval) => Some(interval),
        };
        found.progress = Some(match monitoring.progress {
            smt::ProgressModel::Counted => "counted".to_owned(),
            smt::ProgressModel::Reported(steps) => format!("reported:{steps}"),
        });
    }
    let disabling = found.best_effort_disabling_ns.filter(|ns| *ns > 0);
    found.throughput_ratio = disabling.map(|below| found.best_effort_ns as f64 / below as f64);
    found
}

/// The least rate at which a real-time thread progresses beside threads without a deadline on all
/// siblings of its core; `None` where rates have no common measure of 64 bits.
pub(super) fn least_rate(system: &System) -> Option<(u128, u128)> {
    let siblings = system.cores.iter().map(Vec::len).max().unwrap_or(1).saturating_sub(1);
    let waits = |class: Class| matches!(class, Class::Fair(_) | Class::Idle);
    let entries = system.interference.entries().iter();
    let met = entries.filter(|(thread, beside, _)| {
        let class = |at: &usize| system.threads.get(*at).map(|thread| thread.class);
        class(thread).is_some_and(|class| !waits(class)) && class(beside).is_some_and(waits)
    });
    let least = met.map(|(.., rate)| *rate).min().unwrap_or(Fraction::ONE);
    (0..siblings).try_fold((1u128, 1u128), |(part, whole), _| {
        let part = part.checked_mul(least.numerator().into())?;
        Some((part, whole.checked_mul(least.denominator().into())?))
    })
}
