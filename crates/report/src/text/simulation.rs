//! What became of a set of tasks on virtual time, for people.

use std::fmt::Write;

use hourglass_documents::simulation::{SimulationDocument, SmtFindings, TaskFindings};
use hourglass_time::Span;

use super::Style;
use super::table::{LabelledLines, NARROW, TextCell, TextStyle, TextTable, paint};
use crate::clean;

/// Width of the words that stand before the lines below the tables.
const LABEL: usize = 10;

/// A simulation: a row for each task, what the policy of shared cores did, a verdict in one line,
/// and warnings with what mends them. Times are exact, but for the 99th percentile.
#[must_use]
pub fn simulation(document: &SimulationDocument, style: Style) -> String {
    let mut out = paint(&title(document), TextStyle::Heading, style);
    out.push_str("\n\n");
    if !document.tasks.is_empty() {
        tasks(&document.tasks).write(&mut out, style);
    }
    if !document.background.is_empty() {
        background(document).write(&mut out, style);
    }
    let mut lines = LabelledLines { out, style, indent: LABEL, page: NARROW };
    if let Some(smt) = &document.smt {
        lines.line("Cores", &cores(smt), TextStyle::Normal);
    }
    lines.line("Horizon", &horizon(document), TextStyle::Normal);
    let (text, tone) = verdict(document);
    lines.line("Verdict", &text, tone);
    document.warnings.iter().for_each(|warning| lines.warning(warning));
    if document.interrupted {
        let text =
            format!("after {} of {}", time(document.simulated_ns), time(document.horizon_ns));
        lines.line("Stopped", &text, TextStyle::Caution);
    }
    lines.out
}

fn title(document: &SimulationDocument) -> String {
    let name = match document.name.as_str() {
        "" => String::new(),
        name => format!("{}: ", clean::shortened(&clean::for_terminal(name), 40)),
    };
    format!(
        "{name}{} simulated, {}, {}, {}",
        counted(document.tasks.len() as u64, "task"),
        document.scheduler,
        counted(document.jobs, "job"),
        counted(document.events, "event")
    )
}

fn tasks(tasks: &[TaskFindings]) -> TextTable {
    let any = |count: fn(&TaskFindings) -> u64| tasks.iter().any(|task| count(task) > 0);
    let (lost, moved) = (any(|task| task.lost), any(|task| task.migrations));
    let differs = |task: &TaskFindings| task.max_response_from_release_ns != task.max_response_ns;
    let released = tasks.iter().any(differs);
    let late = |task: &TaskFindings| task.max_response_ns > Some(task.deadline_ns);
    TextTable::of("Response times, from the nominal arrival", tasks)
        .elastic("task", |task| task.name.as_str())
        .number("jobs", |task| task.jobs)
        .number("missed", |task| TextCell::bad_if(task.missed > 0, task.missed))
        .number_if(lost, "lost", |task| TextCell::bad_if(task.lost > 0, task.lost))
        .number("shortest", |task| task.min_response_ns.map(time))
        .number("p99", |task| task.p99_response_ns.map(time))
        .number("longest", |task| TextCell::bad_if(late(task), task.max_response_ns.map(time)))
        .number_if(released, "from release", |task| task.max_response_from_release_ns.map(time))
        .number("deadline", |task| time(task.deadline_ns))
        .number_if(moved, "migrations", |task| task.migrations)
        .table()
}

fn background(document: &SimulationDocument) -> TextTable {
    let has_jobs = document.background.iter().any(|thread| thread.jobs > 0);
    TextTable::of("Background", &document.background)
        .elastic("thread", |thread| thread.name.as_str())
        .number("CPU time", |thread| time(thread.cpu_time_ns))
        .number("progress", |thread| time(thread.progress_ns))
        .number_if(has_jobs, "jobs", |thread| thread.jobs)
        .number_if(has_jobs, "longest", |thread| thread.max_response_ns.map(time))
        .table()
}

fn cores(smt: &SmtFindings) -> String {
    let mut text = smt.policy.clone();
    if smt.alpha.is_some() || smt.margin_ns.is_some() {
        let alpha = smt.alpha.as_deref().unwrap_or("0");
        let _ = write!(text, ", alpha {alpha}, margin {}", time(smt.margin_ns.unwrap_or(0)));
        match smt.interval_ns {
            Some(interval) => {
                let _ = write!(text, ", checks {} apart", time(interval));
            }
            None => text.push_str(", checks as the slack allows"),
        }
        if let Some(progress) = &smt.progress {
            let _ = write!(text, ", progress {progress}");
        }
        let _ = write!(
            text,
            "; {} checks, at most {} a job, {} stops",
            smt.wakeups, smt.wakeups_per_job_max, smt.stops
        );
    }
    let _ = write!(text, "; best effort achieved {}", time(smt.best_effort_ns));
    if let Some(ratio) = smt.throughput_ratio {
        let _ = write!(text, ", {ratio:.2} times as much as with siblings disabled");
    }
    clean::for_terminal(&text)
}

fn horizon(document: &SimulationDocument) -> String {
    let why = match document.horizon_from.as_str() {
        "hyperperiod" => ", after which everything repeats that does not depend on chance",
        "default" => "; --horizon asks for more",
        _ => "",
    };
    format!("{}{why}; seed {}", time(document.horizon_ns), document.seed)
}

fn verdict(document: &SimulationDocument) -> (String, TextStyle) {
    let settled =
        document.tasks.iter().map(|t| t.hit.saturating_add(t.missed).saturating_add(t.lost));
    let settled: u64 = settled.fold(0, u64::saturating_add);
    let failed = document.failed();
    if document.tasks.is_empty() {
        return ("no thread has a deadline".to_owned(), TextStyle::Normal);
    }
    if settled == 0 {
        return ("no deadline came within the horizon".to_owned(), TextStyle::Caution);
    }
    if failed == 0 {
        let met = match settled {
            1 => "the only deadline".to_owned(),
            _ => format!("all {settled} deadlines"),
        };
        return (
            format!("{met} met; this does not prove more than the simulated time"),
            TextStyle::Good,
        );
    }
    let of = |task: &&TaskFindings| task.missed.saturating_add(task.lost);
    let worst = document.tasks.iter().max_by_key(of);
    let text = format!("{failed} of {} not met", counted(settled, "deadline"));
    let text = match worst {
        Some(task) if document.tasks.len() > 1 => {
            let name = clean::for_terminal(&task.name);
            match of(&task) {
                missed if missed == failed => format!("{text}, all by {name}"),
                missed => format!("{text}, most of them by {name}: {missed}"),
            }
        }
        _ => text,
    };
    (text, TextStyle::Bad)
}

fn counted(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// Exactly.
fn time(ns: u64) -> String {
    Span::saturating_from_nanos(ns).to_string()
}
