//! Causes of gaps, sorted by the time they took, and the longest gaps one by one.

use std::cmp::Reverse;

use hourglass_documents::Cause;
use hourglass_documents::document::{CauseReport, RunResult};

use super::gaps::{Gap, KINDS, kind_of};
use super::table::{Cell, HtmlTable, begin_section, grouped, show_button, width};
use crate::clean::for_xml;
use crate::run::{RunView, evidence};
use crate::units::{UnitScale, rounded, share};

/// How many of the longest gaps are listed.
const LONGEST: usize = 20;

/// Writes the section about causes; nothing where none were inferred.
pub(super) fn write(out: &mut String, result: &RunResult) {
    if result.causes.is_empty() {
        return;
    }
    let mut causes: Vec<_> = result.causes.iter().collect();
    causes.sort_by_key(|cause| Reverse(cause.total_ns));
    let all = causes.iter().fold(0u64, |sum, cause| sum.saturating_add(cause.total_ns));
    let most = causes.first().map_or(0, |cause| cause.total_ns);
    let totals = UnitScale::for_block(causes.iter().map(|cause| cause.total_ns));
    let scale = UnitScale::for_block(causes.iter().map(|cause| cause.p50_ns));
    let caption = format!(
        "By total time lost; total in {}, median and max in {}",
        totals.name(),
        scale.name()
    );
    let kind = |cause: &CauseReport| Cause::from_name(&cause.cause).map(kind_of);
    let table = HtmlTable::of(caption, &causes)
        .text("cause", |cause| {
            let name = kind(cause).and_then(|kind| KINDS.get(kind).copied());
            named(kind(cause), name.unwrap_or(&cause.cause))
        })
        .text("", |cause| bar(kind(cause), cause.total_ns, most))
        .number("total", |cause| totals.text(cause.total_ns))
        .number("share", |cause| share(cause.total_ns, all))
        .number("gaps", |cause| cause.count)
        .number("median", |cause| scale.text(cause.p50_ns))
        .number("max", |cause| scale.text(cause.max_ns))
        .number("confidence", |cause| format!("{:.0} %", cause.confidence * 100.0));
    begin_section(out, "causes", "Causes of gaps");
    table.write(out);
    out.push_str("</section>\n");
}

/// A name with the colour of its kind.
fn named(kind: Option<usize>, name: &str) -> Cell {
    let class = kind.map_or_else(String::new, |kind| format!(" k{kind}"));
    Cell::Markup(format!(
        "<span class=\"kind\"><span class=\"dot{class}\"></span>{}</span>",
        for_xml(name)
    ))
}

/// A bar as long as `part` is of `most`.
fn bar(kind: Option<usize>, part: u64, most: u64) -> Cell {
    let class = kind.map_or_else(String::new, |kind| format!(" k{kind}"));
    Cell::Markup(format!(
        "<span class=\"bar-cell\"><span class=\"fill{class}\" style=\"{}\"></span></span>",
        width(part, most)
    ))
}

/// Writes the list of the longest gaps, each with a button that shows it in the timeline.
pub(super) fn longest(out: &mut String, run: &RunView<'_>, gaps: &[Gap<'_>]) {
    if gaps.is_empty() {
        return;
    }
    let mut order: Vec<&Gap<'_>> = gaps.iter().collect();
    let by_length = |gap: &&Gap<'_>| (Reverse(gap.length_ns()), gap.from_ns);
    if order.len() > LONGEST {
        order.select_nth_unstable_by_key(LONGEST, by_length);
        order.truncate(LONGEST);
    }
    order.sort_unstable_by_key(by_length);
    let with_causes = !run.causes.is_empty();
    let caption = format!("{} of {}", order.len(), grouped(gaps.len() as u64));
    let mut table = HtmlTable::of(caption, &order)
        .number("length", |gap| rounded(gap.length_ns()))
        .number("at, s", |gap| seconds(gap.from_ns))
        .text("thread", |gap| thread_of(run, gap.thread))
        .text("CPU", |gap| match (gap.cpu_before, gap.cpu) {
            (before, after) if before == after => after.to_string(),
            (before, after) => format!("{before}\u{a0}to\u{a0}{after}"),
        })
        .text("kind", |gap| named(Some(gap.kind), KINDS.get(gap.kind).copied().unwrap_or("gap")));
    if with_causes {
        table = table.number("confidence", |gap| {
            let confidence = gap.attribution.map(|why| why.confidence() * 100.0);
            confidence.map(|percent| format!("{percent:.0} %")).unwrap_or_default()
        });
    }
    let table = table
        .text("", |gap| {
            show_button(gap.thread, gap.to_ns, &format!("gap of {}", rounded(gap.length_ns())))
        })
        .below(|gap| {
            gap.attribution.map(|why| evidence(why, run.thread_names())).unwrap_or_default()
        });
    begin_section(out, "longest", "Longest gaps");
    table.write(out);
    out.push_str("</section>\n");
}

/// A thread's number, and its name if it has one.
fn thread_of(run: &RunView<'_>, id: u32) -> Cell {
    let thread = run.document.result.threads.iter().find(|thread| thread.id == id);
    match thread.and_then(|thread| thread.name.as_ref()) {
        Some(name) => Cell::Text(format!("{id}: {name}")),
        None => Cell::Text(id.to_string()),
    }
}

/// A moment of the run in seconds, to the nanosecond.
pub(super) fn seconds(ns: i64) -> String {
    let (sign, ns) = (if ns < 0 { "-" } else { "" }, ns.unsigned_abs());
    format!("{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}
