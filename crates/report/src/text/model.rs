//! The threads of a program as tasks, for people.

use std::collections::BTreeMap;

use hourglass_documents::task_model::{
    ActivationClass, CountModel, CountWindow, CountedActivations, LongestActivation, ModelDocument,
    ModelSource, ThreadModel,
};

use super::Style;
use super::table::{NARROW, TextStyle, TextTable, paint_line, wrapped_within};
use super::watched_threads::warnings;
use crate::clean;
use crate::units::{rounded, share};

/// Threads that a line names.
const NAMED: usize = 8;

/// A table of the tasks, then what is none, and why.
#[must_use]
pub fn task_model(model: &ModelDocument, style: Style) -> String {
    let mut out = String::new();
    let count = model.threads.len();
    let threads = if count == 1 { "thread" } else { "threads" };
    let title = format!("{count} {threads} in {}", rounded(model.elapsed_ns));
    if model.source == ModelSource::Counts {
        by_counts(&mut out, title, model, style);
        return out;
    }
    table(title, &model.threads).write(&mut out, style);
    for thread in &model.threads {
        if let Some(from_ns) = thread.settled_ns {
            let until = rounded(from_ns);
            let text =
                format!("its policy, CPUs or reservation changed: its first {until} are left out");
            line(&mut out, thread, &text);
        }
        if let Some(waits) = &thread.suspension {
            line(
                &mut out,
                thread,
                &format!("waits {} within a job, told by {}", rounded(waits.max_ns), waits.basis),
            );
        }
        if let Some(after) = &thread.after {
            let not_exactly = thread.after_fit.map(|fit| {
                format!(
                    ", not exactly: {} of {} were seen to, {} came while it still ran",
                    fit.own, fit.jobs, fit.merged
                )
            });
            let not_exactly = not_exactly.unwrap_or_default();
            let waits = if thread.waited_for { ", which waits for it" } else { "" };
            let text =
                format!("each of its jobs is activated by one of {after}{waits}{not_exactly}");
            line(&mut out, thread, &text);
        }
    }
    for text in unmodelled(model) {
        let text = wrapped_within(NARROW, &clean::for_terminal(&text), 0, 2);
        paint_line(&mut out, &text, TextStyle::Caution, style);
    }
    never_ran(&mut out, model);
    out
}

/// A line for each reason for which threads are no tasks, without a line break.
#[must_use]
pub fn unmodelled(model: &ModelDocument) -> Vec<String> {
    let grouped = by_reason(model.unmodelled());
    grouped.into_iter().map(|(why, names)| format!("{names}: no task: {why}")).collect()
}

/// Each reason, with the names of the first threads that have it.
fn by_reason<'a, W: Ord>(
    threads: impl Iterator<Item = (&'a ThreadModel, W)>,
) -> BTreeMap<W, String> {
    let mut grouped: BTreeMap<W, Vec<&str>> = BTreeMap::new();
    threads.for_each(|(of, why)| grouped.entry(why).or_default().push(&of.name));
    let named = |names: Vec<&str>| match names.len().saturating_sub(NAMED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names[..NAMED].join(", ")),
    };
    grouped.into_iter().map(|(why, names)| (why, named(names))).collect()
}

fn never_ran(out: &mut String, model: &ModelDocument) {
    if !model.never_ran.is_empty() {
        paragraph(out, &format!("did not run, and are left out: {}", model.never_ran.join(", ")));
    }
}

fn paragraph(out: &mut String, text: &str) {
    out.push_str(&wrapped_within(NARROW, &clean::for_terminal(text), 0, 2));
    out.push('\n');
}

/// What the kernel's counts say: utilisation, then activations, then what they do not say.
fn by_counts(out: &mut String, title: String, model: &ModelDocument, style: Style) {
    let counts = |thread: &ThreadModel| thread.counts.clone().unwrap_or_default();
    let of = |thread: &ThreadModel, part: fn(&CountModel) -> Option<String>| part(&counts(thread));
    TextTable::of(format!("{title}, by the kernel's counts"), &model.threads)
        .elastic("thread", |thread| clean::for_terminal(&thread.name))
        .text("policy", |thread| thread.policy.clone())
        .text("CPUs", |thread| thread.cpus.clone())
        .number("ran", |thread| of(thread, |counts| counts.run_ns.map(rounded)))
        .number("utilisation", |thread| {
            of(thread, |counts| share(counts.utilisation_ppm?, 1_000_000))
        })
        .number("highest", |thread| of(thread, |counts| utilisation(&counts.busiest?)))
        .number("waited", |thread| of(thread, |counts| counts.wait_ns.map(rounded)))
        .narrow()
        .write(out, style);
    let longest = |thread: &ThreadModel| counts(thread).longest_activation;
    TextTable::of("Activations, from a waking to the next wait", &model.threads)
        .elastic("thread", |thread| clean::for_terminal(&thread.name))
        .number("wakings", |thread| of(thread, |counts| wakings(&counts.activations?)))
        .number("a second", |thread| of(thread, |counts| rate(&counts.activations?)))
        .number("longest is from", |thread| {
            let LongestActivation { at_least_ns, .. } = longest(thread);
            (at_least_ns > 0).then(|| rounded(at_least_ns))
        })
        .number("to", |thread| longest(thread).at_most_ns.map(rounded))
        .narrow()
        .write(out, style);
    paragraph(
        out,
        "A thread that waits for a lock, for input or on a page fault within its job is woken once more: a job may \
         be several activations.",
    );
    let unbounded = model.threads.iter();
    let unbounded = unbounded.filter_map(|of| Some((of, longest(of).unbounded_because?)));
    for (why, names) in by_reason(unbounded) {
        paragraph(out, &format!("activations are not bounded: {why}: {names}"));
    }
    never_ran(out, model);
    paint_line(out, &wrapped_within(NARROW, NO_TASK_BY_COUNTS, 0, 2), TextStyle::Caution, style);
    warnings(out, &model.warnings, style);
}

/// What no count says, and what does.
pub const NO_TASK_BY_COUNTS: &str = "no thread is a task: counts show how often it was woken, not when, so that no \
     period is known; as root, hourglass watch PID --trace --tasks FILE records it";

fn utilisation(window: &CountWindow) -> Option<String> {
    let length_ns = window.to_ns.checked_sub(window.from_ns)?;
    // A count may catch up with what ran before the window.
    share(window.run_ns?.min(length_ns), length_ns)
}

fn wakings(counted: &CountedActivations) -> Option<String> {
    Some(format!("{} to {}", counted.min, counted.max))
}

/// The bounds, rounded outwards.
fn rate(counted: &CountedActivations) -> Option<String> {
    let (min, max) = (counted.min_millihertz / 100, counted.max_millihertz?.div_ceil(100));
    Some(format!("{}.{} to {}.{}", min / 10, min % 10, max / 10, max % 10))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A program of hundreds of threads that end after a job each has a line for all of them.
    #[test]
    fn threads_of_one_reason_have_one_line() {
        let thread = |at: usize| ThreadModel {
            name: format!("t{at}"),
            unmodelled: Some(if at == 3 { "it never waited" } else { "4 jobs are too few" }.into()),
            ..ThreadModel::default()
        };
        let model =
            ModelDocument { threads: (0..12).map(thread).collect(), ..ModelDocument::default() };
        let few = "t0, t1, t2, t4, t5, t6, t7, t8 and 3 more: no task: 4 jobs are too few";
        assert_eq!(unmodelled(&model), [few, "t3: no task: it never waited"]);
    }

    /// Rates are rounded outwards, a share is no more than all, and what is not bounded has its reason.
    #[test]
    fn counts_are_said_with_what_they_do_not_say() {
        let window = CountWindow { from_ns: 100, to_ns: 200, run_ns: Some(150), switches: Some(1) };
        let thread = |name: &str, longest_activation| ThreadModel {
            name: name.to_owned(),
            counts: Some(CountModel {
                run_ns: Some(1_500),
                utilisation_ppm: Some(250_000),
                busiest: Some(window),
                activations: Some(CountedActivations {
                    min: 9,
                    max: 11,
                    min_millihertz: 1_999,
                    max_millihertz: Some(2_001),
                    ..CountedActivations::default()
                }),
                longest_activation,
                ..CountModel::default()
            }),
            ..ThreadModel::default()
        };
        let bounded = LongestActivation {
            at_least_ns: 20,
            at_most_ns: Some(30),
            ..LongestActivation::default()
        };
        let open = LongestActivation {
            unbounded_because: Some("it never waited".to_owned()),
            ..LongestActivation::default()
        };
        let model = ModelDocument {
            source: ModelSource::Counts,
            threads: vec![thread("audio", bounded), thread("spin\u{1b}", open)],
            ..ModelDocument::default()
        };
        let text = task_model(&model, Style::Plain);
        for part in [
            "25.0 %  100.0 %",
            "9 to 11  1.9 to 2.1",
            "20 ns  30 ns",
            "not bounded: it never waited: spin",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.contains(&NO_TASK_BY_COUNTS[..40]) && !text.contains('\u{1b}'), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= NARROW), "{text}");
    }
}
