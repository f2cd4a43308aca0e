//! The threads of a program as tasks, for people.

use hourglass_documents::task_model::{ActivationClass, ModelDocument, ThreadModel};

use super::Style;
use super::table::{NARROW, TextStyle, TextTable, paint_line, wrapped_within};
use crate::clean;
use crate::units::rounded;

/// A table of the tasks, then what is none, and why.
#[must_use]
pub fn task_model(model: &ModelDocument, style: Style) -> String {
    let mut out = String::new();
    let count = model.threads.len();
    let threads = if count == 1 { "thread" } else { "threads" };
    let title = format!("{count} {threads} in {}", rounded(model.elapsed_ns));
    table(title, &model.threads).write(&mut out, style);
    for thread in &model.threads {
        if let Some(waits) = &thread.suspension {
            line(
                &mut out,
                thread,
                &format!("waits {} within a job, told by {}", rounded(waits.max_ns), waits.basis),
            );
        }
        if let Some(after) = &thread.after {
            line(&mut out, thread, &format!("each of its jobs is activated by one of {after}"));
        }
    }
    for (thread, why) in model.unmodelled() {
        let text = format!("{}: no task: {why}", thread.name);
        let text = wrapped_within(NARROW, &clean::for_terminal(&text), 0, 2);
        paint_line(&mut out, &text, TextStyle::Caution, style);
    }
    if !model.never_ran.is_empty() {
        let text = format!("did not run, and are left out: {}", model.never_ran.join(", "));
        let text = wrapped_within(NARROW, &clean::for_terminal(&text), 0, 2);
        out.push_str(&text);
        out.push('\n');
    }
    out
}

fn line(out: &mut String, thread: &ThreadModel, text: &str) {
    let text = clean::for_terminal(&format!("{}: {text}", thread.name));
    out.push_str(&wrapped_within(NARROW, &text, 0, 2));
    out.push('\n');
}

fn table(title: String, threads: &[ThreadModel]) -> TextTable {
    let class = |thread: &ThreadModel| match thread.activation.class {
        ActivationClass::Periodic => "periodic".to_owned(),
        ActivationClass::Sporadic => "sporadic".to_owned(),
        ActivationClass::ArrivalCurve => {
            format!("bursts of {}", thread.activation.arrivals_ns.len().saturating_add(1))
        }
        ActivationClass::Unknown => "unknown".to_owned(),
    };
    let time = |ns: u64| (ns > 0).then(|| rounded(ns));
    TextTable::of(title, threads)
        .elastic("thread", |thread| clean::for_terminal(&thread.name))
        .text("policy", |thread| thread.policy.clone())
        .text("CPUs", |thread| thread.cpus.clone())
        .text("arrivals", class)
        .number("period", |thread| time(thread.activation.period_ns))
        .number("jitter", |thread| time(thread.activation.jitter_ns))
        .number("longest job", |thread| time(thread.execution.max_ns))
        .number("jobs", |thread| thread.fit.jobs)
        .narrow()
}
