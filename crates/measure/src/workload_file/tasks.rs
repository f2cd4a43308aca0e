//! Tasks in the place of a workload file: each becomes the thread that `predict` runs for it.
//!
//! Owns: what `hourglass run FILE.json` makes of a file of rt-app, or of a set of tasks in JSON. Must not: judge the
//! tasks.

use std::path::Path;

use crate::task_threads::{PlanError, RunRequest, threads};
use hourglass_documents::CpuSet;
use hourglass_time::Span;
use hourglass_workload::ThreadSpec;

use super::{WorkloadFile, WorkloadFileError};
use crate::task_input::{self, Input};

pub(super) fn is_json(text: &str) -> bool {
    let start = text.trim_start_matches('\u{feff}').trim_start();
    ["{", "/*", "//"].iter().any(|sign| start.starts_with(sign))
}

/// The threads of the tasks, for as long as the file says. `name` stands in messages.
pub(super) fn read(
    name: &str,
    text: &str,
    online: Option<&CpuSet>,
) -> Result<WorkloadFile, WorkloadFileError> {
    let wrong = |message: String| WorkloadFileError::Tasks(message);
    let input = task_input::parse(Path::new(name), text, None);
    let Input { set, notes, duration, .. } =
        input.map_err(|error| wrong(error.to_string()))?.on(online);
    // Jobs are not kept one by one, so that the length of the run needs no room.
    let planned = threads(&set, &RunRequest::with_duration(Span::MAX));
    let (threads, more) =
        planned.map_err(|error| wrong(format!("{name}: {}", in_a_run(&error))))?;
    let names = set.tasks.iter().map(|task| task.name.clone());
    let names = names.chain(set.background.iter().map(|thread| thread.name.clone()));
    let place = |thread: String| format!("{name}, thread '{}'", thread.escape_debug());
    let threads = threads.into_iter().zip(names.clone());
    Ok(WorkloadFile {
        duration: duration.filter(|duration| duration.is_positive()),
        places: names.map(place).collect(),
        notes: notes.into_iter().chain(more).collect(),
        threads: threads.map(|(spec, name)| ThreadSpec { name: Some(name), ..spec }).collect(),
        ..WorkloadFile::default()
    })
}

/// The error without the option of `predict` that avoids it.
fn in_a_run(error: &PlanError) -> String {
    let text = error.to_string();
    ["; or --no-run", ", or --no-run", "; use --no-run"]
        .iter()
        .find_map(|remedy| text.strip_suffix(remedy).map(str::to_owned))
        .unwrap_or(text)
}
