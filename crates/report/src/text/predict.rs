//! What theory, simulation and a run say of the same tasks, in columns of 80.

use hourglass_documents::predict::{AgainstFacts, PredictDocument, PredictedTask};

use super::Style;
use super::table::{
    NARROW as PAGE, TextCell, TextStyle, TextTable, paint, paint_line, wrapped_within,
};
use crate::clean;
use crate::units::{UnitScale, rounded};

/// A name is cut behind this, so that the numbers fit the page.
const LONGEST_NAME: usize = 18;

/// The table, what explains its differences, and the verdict.
#[must_use]
pub fn predict(document: &PredictDocument, style: Style) -> String {
    let mut out = String::new();
    table(document).write(&mut out, style);
    if let Some(against) = &document.against {
        held(&mut out, document, against, style);
    }
    for task in &document.tasks {
        if let Some(explanation) = &task.explanation {
            paragraph(&mut out, &short(task), explanation, TextStyle::Normal, style);
        }
    }
    if document.tasks.iter().any(|task| task.explanation.is_some()) {
        out.push('\n');
    }
    for (what, why) in
        [("no bounds", &document.not_analysed), ("not simulated", &document.not_simulated)]
    {
        if let Some(why) = why {
            paragraph(&mut out, what, why, TextStyle::Caution, style);
        }
    }
    document
        .notes
        .iter()
        .for_each(|note| paragraph(&mut out, "note", note, TextStyle::Faint, style));
    let run = document.run.as_ref();
    for warning in run.map(|run| &run.warnings[..]).unwrap_or_default() {
        paragraph(&mut out, "warning", warning, TextStyle::Caution, style);
    }
    paragraph(&mut out, "based on", &basis(document), TextStyle::Faint, style);
    let (text, tone) = verdict(document);
    paint_line(&mut out, &wrapped_within(PAGE, &text, 0, 2), tone, style);
    out
}

fn table(document: &PredictDocument) -> TextTable {
    let times = document.tasks.iter().flat_map(|task| {
        // The last tells apart what differs by a hundredth.
        let fine = task.bound_ns.map(|ns| ns / 10);
        [Some(task.deadline_ns), task.bound_ns, task.simulated_ns, task.measured_ns, fine]
    });
    let scale = UnitScale::for_block(times.flatten());
    let title = format!(
        "{} ({})",
        clean::shortened(&clean::for_terminal(&document.name), PAGE / 2),
        scale.name()
    );
    let time = |task: &PredictedTask, ns: Option<u64>| {
        let tone = match ns {
            Some(ns) if ns > task.deadline_ns => TextStyle::Bad,
            Some(_) => TextStyle::Good,
            None => TextStyle::Faint,
        };
        TextCell::toned(ns.map(|ns| scale.text(ns)), tone)
    };
    let late = |number: Option<u64>| TextCell::bad_if(number.is_some_and(|n| n > 0), number);
    TextTable::of(title, &document.tasks)
        .text("task", short)
        .number("bound", |task| time(task, task.bound_ns))
        .number("simulated", |task| time(task, task.simulated_ns))
        .number("measured", |task| time(task, task.measured_ns))
        .number("deadline", |task| scale.text(task.deadline_ns))
        .number("hit", |task| task.hit)
        .number("missed", |task| late(task.missed))
        .number("lost", |task| late(task.lost))
        .table()
}

/// The bounds held against a record, and the assumptions that failed in it.
fn held(out: &mut String, document: &PredictDocument, against: &AgainstFacts, style: Style) {
    let times = document.tasks.iter().flat_map(|task| [task.bound_ns, task.measured_ns]);
    let scale = UnitScale::for_block(times.flatten());
    let folder = clean::shortened(&clean::for_terminal(&against.folder), PAGE / 2);
    let answer = |task: &PredictedTask| match task.held {
        Some(true) => TextCell::toned(Some("yes".to_owned()), TextStyle::Good),
        Some(false) => TextCell::toned(Some("no".to_owned()), TextStyle::Bad),
        None => TextCell::toned(Some("unknown".to_owned()), TextStyle::Caution),
    };
    out.push('\n');
    TextTable::of(format!("against {folder} ({})", scale.name()), &document.tasks)
        .text("task", short)
        .number("bound", |task| task.bound_ns.map(|ns| scale.text(ns)))
        .number("measured", |task| task.measured_ns.map(|ns| scale.text(ns)))
        .number("jobs", |task| task.recorded_jobs)
        .number("holds", answer)
        .table()
        .write(out, style);
    for task in &document.tasks {
        if let Some(why) = &task.not_held {
            paragraph(out, &short(task), why, TextStyle::Caution, style);
        }
    }
    for failed in document.assumptions.iter().filter(|row| row.held == Some(false)) {
        let name = clean::shortened(&clean::for_terminal(&failed.task), LONGEST_NAME);
        let text = format!(
            "the assumption {} failed by {}: the bound is not about what was recorded",
            failed.assumption,
            rounded(failed.excess_ns)
        );
        paragraph(out, &name, &text, TextStyle::Bad, style);
    }
    out.push('\n');
}

fn short(task: &PredictedTask) -> String {
    clean::shortened(&clean::for_terminal(&task.name), LONGEST_NAME)
}

fn paragraph(out: &mut String, head: &str, text: &str, tone: TextStyle, style: Style) {
    let used = head.chars().count() + 2;
    let text = clean::for_terminal(text);
    let text = wrapped_within(PAGE, &text, used, 2);
    out.push_str(&format!("{}: {text}\n", paint(head, tone, style)));
}

/// What the numbers come from.
fn basis(document: &PredictDocument) -> String {
    let mut parts = Vec::new();
    if document.not_analysed.is_none() {
        parts.push(format!("analysis: {}", document.analysis));
    }
    if let Some(simulation) = &document.simulation {
        let horizon = rounded(simulation.horizon_ns);
        parts.push(format!("{} jobs simulated over {horizon}", simulation.jobs));
    }
    match &document.run {
        Some(run) => parts.push(format!("a run of {}", rounded(run.elapsed_ns))),
        None => parts.push("no run".to_owned()),
    }
    if let Some(noise) = &document.noise {
        parts.push(format!(
            "noise watched for {}: {} gaps, the longest {}",
            rounded(noise.watched_ns),
            noise.gaps,
            rounded(noise.longest_ns)
        ));
    }
    parts.join("; ")
}

fn verdict(document: &PredictDocument) -> (String, TextStyle) {
    let names = |late: &dyn Fn(&PredictedTask) -> bool| -> Vec<String> {
        let late = document.tasks.iter().filter(|task| late(task));
        late.map(short).collect()
    };
    let missing = names(&|task| task.missed.unwrap_or(0) + task.lost.unwrap_or(0) > 0);
    let simulated = names(&|task| task.simulated_ns.is_some_and(|ns| ns > task.deadline_ns));
    let mut text = match document.verdict.as_str() {
        "feasible" => "on paper every deadline holds",
        "infeasible" => "on paper deadlines are missed",
        "no_bound" => "on paper nothing bounds the response times",
        _ => "the analysis does not decide",
    }
    .to_owned();
    if !simulated.is_empty() {
        text.push_str(&format!("; in the simulation they are missed by {}", simulated.join(", ")));
    }
    if let Some(AgainstFacts { held, broken, unknown, .. }) = &document.against {
        text.push_str(&format!(
            "; of the bounds, the record kept {held}, broke {broken}, and does not show {unknown}"
        ));
        let is_good = document.verdict == "feasible" && *broken == 0 && *held > 0;
        return (text, tone(is_good));
    }
    text.push_str(&match (document.run.is_some(), missing.is_empty()) {
        (false, _) => "; nothing was run".to_owned(),
        (true, true) => "; in the run all were met".to_owned(),
        (true, false) => format!("; in the run they were missed by {}", missing.join(", ")),
    });
    let is_good = document.verdict == "feasible" && simulated.is_empty() && missing.is_empty();
    (text, tone(is_good))
}

fn tone(good: bool) -> TextStyle {
    if good { TextStyle::Good } else { TextStyle::Bad }
}
