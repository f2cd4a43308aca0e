//! What became of a set of tasks on virtual time, for people.

use std::fmt::Write;

use hourglass_documents::simulation::{SimulationDocument, SmtFindings, TaskFindings};
use hourglass_time::Span;

use super::Style;
use super::table::{ColumnFormat, TextStyle, TextTable, paint, wrapped};
use crate::clean;

/// What stands where there is nothing to show.
const NOTHING: &str = "-";

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
    if let Some(smt) = &document.smt {
        line(&mut out, "Cores", &cores(smt), TextStyle::Normal, style);
    }
    line(&mut out, "Horizon", &horizon(document), TextStyle::Normal, style);
    let (text, tone) = verdict(document);
    line(&mut out, "Verdict", &text, tone, style);
    for warning in &document.warnings {
        line(&mut out, "Warning", &warning.text, TextStyle::Caution, style);
        if !warning.remedy.is_empty() {
            out.extend(std::iter::repeat_n(' ', LABEL));
            out.push_str(&wrapped(&clean::for_terminal(&warning.remedy), LABEL, LABEL));
            out.push('\n');
        }
    }
    if document.interrupted {
        let text =
            format!("after {} of {}", time(document.simulated_ns), time(document.horizon_ns));
        line(&mut out, "Stopped", &text, TextStyle::Caution, style);
    }
    out
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
    let mut table = TextTable::new("Response times, from the nominal arrival".to_owned())
        .column(ColumnFormat::Elastic, "task")
        .columns(ColumnFormat::Number, ["jobs", "missed"])
        .column_if(lost, ColumnFormat::Number, "lost")
        .columns(ColumnFormat::Number, ["shortest", "p99", "longest"])
        .column_if(released, ColumnFormat::Number, "from release")
        .column(ColumnFormat::Number, "deadline")
        .column_if(moved, ColumnFormat::Number, "migrations");
    for task in tasks {
        let late = task.max_response_ns.is_some_and(|longest| longest > task.deadline_ns);
        let bad = |wrong: bool| if wrong { TextStyle::Bad } else { TextStyle::Normal };
        let mut row = vec![
            (clean::for_terminal(&task.name), TextStyle::Normal),
            (task.jobs.to_string(), TextStyle::Normal),
            (task.missed.to_string(), bad(task.missed > 0)),
        ];
        if lost {
            row.push((task.lost.to_string(), bad(task.lost > 0)));
        }
        row.push((or_nothing(task.min_response_ns), TextStyle::Normal));
        row.push((or_nothing(task.p99_response_ns), TextStyle::Normal));
        row.push((or_nothing(task.max_response_ns), bad(late)));
        if released {
            row.push((or_nothing(task.max_response_from_release_ns), TextStyle::Normal));
        }
        row.push((time(task.deadline_ns), TextStyle::Normal));
        if moved {
            row.push((task.migrations.to_string(), TextStyle::Normal));
        }
        table.row(row);
    }
    table
}

fn background(document: &SimulationDocument) -> TextTable {
    let has_jobs = document.background.iter().any(|thread| thread.jobs > 0);
    let mut table = TextTable::new("Background".to_owned())
        .column(ColumnFormat::Elastic, "thread")
        .columns(ColumnFormat::Number, ["CPU time", "progress"])
        .column_if(has_jobs, ColumnFormat::Number, "jobs")
        .column_if(has_jobs, ColumnFormat::Number, "longest");
    for thread in &document.background {
        let longest = thread.max_response_ns.map_or(NOTHING.to_owned(), time);
        let mut row = vec![
            (clean::for_terminal(&thread.name), TextStyle::Normal),
            (time(thread.cpu_time_ns), TextStyle::Normal),
            (time(thread.progress_ns), TextStyle::Normal),
        ];
        row.push((thread.jobs.to_string(), TextStyle::Normal));
        row.push((longest, TextStyle::Normal));
        table.row(row);
    }
    table
}

fn cores(smt: &SmtFindings) -> String {
    let mut text = smt.policy.clone();
    if smt.alpha.is_some() || smt.margin_ns.is_some() {
        let alpha = smt.alpha.as_deref().unwrap_or("0");
        let _ = write!(text, ", alpha {alpha}, margin {}", time(smt.margin_ns.unwrap_or(0)));
        match smt.interval_ns {
            Some(interval) => {
                let _ = write!(text, ", looks {} apart", time(interval));
            }
            None => text.push_str(", looks as the slack has it"),
        }
        if let Some(progress) = &smt.progress {
            let _ = write!(text, ", progress {progress}");
        }
        let _ = write!(
            text,
            "; {} looks, at most {} a job, {} stops",
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

fn line(out: &mut String, label: &str, text: &str, tone: TextStyle, style: Style) {
    out.push_str(&paint(label, TextStyle::Heading, style));
    out.extend(std::iter::repeat_n(' ', LABEL.saturating_sub(label.len())));
    let text = wrapped(&clean::for_terminal(text), LABEL, LABEL);
    out.push_str(&paint(&text, tone, style));
    out.push('\n');
}

fn counted(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

fn or_nothing(ns: Option<u64>) -> String {
    ns.map_or(NOTHING.to_owned(), time)
}

/// Exactly.
fn time(ns: u64) -> String {
    Span::saturating_from_nanos(ns).to_string()
}
