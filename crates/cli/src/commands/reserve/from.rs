//! `reserve --from`: what tasks, or the threads of a run, are to reserve.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use hourglass_documents::reserve::{ReserveDocument, ReserveRefusal};
use hourglass_documents::{Reservation, ReservationKind};
use hourglass_report::text;
use hourglass_tasks::Task;
use hourglass_time::Span;

use crate::exit::{self, Stop};
use crate::lab::reserve::{self, Backend, SessionRequest, SessionTarget};
use crate::lab::task_input;
use crate::output;
use crate::settings::Settings;

/// How the targets are to be reserved.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProposalOptions<'a> {
    /// The file or folder with the tasks.
    pub(super) path: &'a Path,
    pub(super) strength: ReservationKind,
    pub(super) cpu: Option<u32>,
    pub(super) backend: Option<Backend>,
}

/// Proposes a reservation for each task of a file or run folder, and says whether it would be granted, each by itself.
///
/// # Errors
/// It is no set of tasks.
pub(super) fn from(how: ProposalOptions<'_>, settings: Settings) -> Result<ExitCode> {
    let input = task_input::read(how.path, None).map_err(Stop::bad_input)?;
    let proposals: Vec<ReserveDocument> =
        input.set.tasks.iter().map(|task| proposal(task, how)).collect::<Result<_, _>>()?;
    let granted = proposals.iter().all(|one| one.backend.is_some());
    let mut rest = proposals.into_iter();
    let Some(first) = rest.next() else {
        return Err(
            Stop::usage(format!("{}: it has no tasks to reserve for", how.path.display())).into()
        );
    };
    let document = ReserveDocument { also: rest.collect(), ..first };
    output::shown(&document, text::reserve_proposals, settings)?;
    if !settings.json && !settings.quiet {
        input.notes.iter().for_each(|note| crate::messages::say(note));
    }
    Ok(ExitCode::from(if granted { exit::YES } else { exit::NO }))
}

/// Its longest execution time and what a job needs beyond it, in each period; on the first of its CPUs that grants it.
fn proposal(task: &Task, how: ProposalOptions<'_>) -> Result<ReserveDocument, Stop> {
    if let Some(cause) = not_one_job_a_period(task) {
        let budget = task.wcet.min(task.period).min(task.deadline());
        let document = ask(task, how, how.cpu, budget)?;
        let refusal = ReserveRefusal {
            backend: "any".to_owned(),
            id: "no-proposal".to_owned(),
            errno: None,
            cause: cause.clone(),
            remedy: "hourglass check FILE --server PERIOD finds a budget where there is one"
                .to_owned(),
        };
        return Ok(ReserveDocument {
            target: task.name.clone(),
            backend: None,
            guarantee: false,
            reason: cause,
            refusals: vec![refusal],
            suggested_budget_ns: None,
            ..document
        });
    }
    let own = task.cpus.iter().flat_map(|cpus| cpus.iter().map(Some));
    let cpus: Vec<Option<u32>> = match (how.cpu, &task.cpus) {
        (None, Some(_)) => own.collect(),
        (cpu, _) => vec![cpu],
    };
    let mut last = None;
    for cpu in cpus {
        let needed = ask(task, how, cpu, task.wcet)?;
        let more = needed.suggested_budget_ns.and_then(|ns| i64::try_from(ns).ok());
        let document = match more.map(Span::from_nanos) {
            Some(more) if more <= task.deadline().min(task.period) => ask(task, how, cpu, more)?,
            _ => needed,
        };
        let granted = document.backend.is_some();
        last = Some(document);
        if granted {
            break;
        }
    }
    let document = last.ok_or_else(|| Stop::usage(format!("{}: it has no CPU", task.name)))?;
    Ok(ReserveDocument { target: task.name.clone(), suggested_budget_ns: None, ..document })
}

/// Why the time of one job in each period does not keep the deadlines of a task.
fn not_one_job_a_period(task: &Task) -> Option<String> {
    let least = task.deadline().min(task.period);
    if task.wcet > least {
        let of = if task.wcet > task.period { "period" } else { "deadline" };
        return Some(format!("a job takes up to {}, more than the {of} of {least}", task.wcet));
    }
    if task.jitter.is_positive() || !task.arrivals.is_empty() {
        return Some("jobs may come closer together than the period".to_owned());
    }
    let waits = task.suspension.is_positive() || task.program.is_some();
    waits.then(|| {
        "a job waits before its end, and the budget that remains then is not known".to_owned()
    })
}

fn ask(
    task: &Task,
    how: ProposalOptions<'_>,
    cpu: Option<u32>,
    budget: Span,
) -> Result<ReserveDocument, Stop> {
    let wrong = |error: &dyn std::fmt::Display| {
        Stop::usage(format!("{}: {budget}/{}: {error}", task.name, task.period))
    };
    let deadline = task.deadline().min(task.period);
    let whole = Reservation::new(budget, task.period, how.strength);
    let reservation =
        whole.and_then(|whole| whole.with_deadline(deadline)).map_err(|error| wrong(&error))?;
    let request = SessionRequest {
        reservation,
        cpu,
        backend: how.backend,
        subject: SessionTarget::CheckOnly,
        siblings: None,
        additional: Vec::new(),
        aside: false,
    };
    reserve::check(&request).map_err(|failure| wrong(&failure))
}
