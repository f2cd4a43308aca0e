//! `reserve --from`: what tasks, or the threads of a run, are to reserve.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use hourglass_model::reserve::ReserveDocument;
use hourglass_model::{Reservation, Strength};
use hourglass_report::text;
use hourglass_tasks::Task;

use crate::lab::reserve::{self, Backend, Request, Subject};
use crate::lab::task_input;
use crate::output;
use crate::settings::Settings;
use crate::stop::{self, Stop};

/// How they are to be reserved.
#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    pub(super) strength: Strength,
    pub(super) cpu: Option<u32>,
    pub(super) backend: Option<Backend>,
}

/// Proposes a reservation for each task of a file or run folder, and says whether it would be granted, each by itself.
///
/// # Errors
/// It is no set of tasks.
pub(super) fn from(path: &Path, how: How, settings: Settings) -> Result<ExitCode> {
    let input = task_input::read(path, None).map_err(|error| Stop::usage(error.to_string()))?;
    let proposals: Vec<ReserveDocument> =
        input.set.tasks.iter().map(|task| proposal(task, how)).collect::<Result<_, _>>()?;
    let granted = proposals.iter().all(|one| one.backend.is_some());
    let mut rest = proposals.into_iter();
    let Some(first) = rest.next() else { return Err(Stop::usage("it has no tasks").into()) };
    let document = ReserveDocument { also: rest.collect(), ..first };
    if settings.json {
        output::json(&document)?;
    } else {
        output::text(&text::reserve_proposals(&document, output::style()))?;
        input.notes.iter().filter(|_| !settings.quiet).for_each(|note| crate::messages::say(note));
    }
    Ok(ExitCode::from(if granted { stop::YES } else { stop::NO }))
}

/// Its longest execution time and what a job needs beyond it, in each period.
fn proposal(task: &Task, how: How) -> Result<ReserveDocument, Stop> {
    let ask = |budget| -> Result<ReserveDocument, Stop> {
        let wrong = |error: &dyn std::fmt::Display| {
            Stop::usage(format!("{}: {budget}/{}: {error}", task.name, task.period))
        };
        let whole = Reservation::new(budget, task.period, how.strength);
        let deadline = task.deadline().min(task.period);
        let reservation =
            whole.and_then(|whole| whole.with_deadline(deadline)).map_err(|error| wrong(&error))?;
        let request = Request {
            reservation,
            cpu: how.cpu,
            backend: how.backend,
            subject: Subject::Nobody,
            siblings: None,
            also: Vec::new(),
            aside: false,
        };
        reserve::check(&request).map_err(|failure| wrong(&failure))
    };
    let needed = ask(task.wcet)?;
    let more = needed.suggested_budget_ns.and_then(|ns| i64::try_from(ns).ok());
    let document = match more.map(hourglass_time::Span::from_nanos) {
        Some(more) if more <= task.deadline() => ask(more)?,
        _ => needed,
    };
    Ok(ReserveDocument { target: task.name.clone(), suggested_budget_ns: None, ..document })
}
