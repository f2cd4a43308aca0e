//! Causes of gaps, sorted by the time they took, and the longest gaps one by one.

use std::cmp::Reverse;

use hourglass_documents::Cause;
use hourglass_documents::document::RunResult;

use super::gaps::{Gap, KINDS, kind_of};
use super::table::{Cell, HtmlTable, begin_section, count, grouped, text};
use super::tables::share;
use crate::clean::for_xml;
use crate::run::{RunView, evidence};
use crate::units::{UnitScale, rounded};

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
    let mut table = HtmlTable::new(caption).texts(["cause", ""]).numbers([
        "total",
        "share",
        "gaps",
        "median",
        "max",
        "confidence",
    ]);
    for cause in causes {
        let kind = Cause::from_name(&cause.cause).map(kind_of);
        let name = kind.and_then(|kind| KINDS.get(kind).copied()).unwrap_or(&cause.cause);
        table.row([
            named(kind, name),
            Cell::Markup(bar(kind, cause.total_ns, most)),
            text(totals.text(cause.total_ns)),
            text(share(cause.total_ns, all)),
            count(cause.count),
            text(scale.text(cause.p50_ns)),
            text(scale.text(cause.max_ns)),
            text(format!("{:.0} %", cause.confidence * 100.0)),
        ]);
    }
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
fn bar(kind: Option<usize>, part: u64, most: u64) -> String {
    let tenths = if most == 0 { 0 } else { u128::from(part) * 1000 / u128::from(most) };
    let class = kind.map_or_else(String::new, |kind| format!(" k{kind}"));
    format!(
        "<span class=\"bar-cell\"><span class=\"fill{class}\" style=\"width:{}.{}%\"></span></span>",
        tenths / 10,
        tenths % 10
    )
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
    let mut table =
        HtmlTable::new(caption).numbers(["length", "at, s", "thread"]).texts(["CPU", "kind"]);
    if with_causes {
        table = table.numbers(["confidence"]);
    }
    table = table.texts([""]);
    for gap in order {
        let why = gap.attribution.map(|why| evidence(why, run.names)).unwrap_or_default();
        table.row_above(row(gap, with_causes), &why);
    }
    begin_section(out, "longest", "Longest gaps");
    table.write(out);
    out.push_str("</section>\n");
}

fn row(gap: &Gap<'_>, with_causes: bool) -> Vec<Cell> {
    let cpu = match (gap.cpu_before, gap.cpu) {
        (before, after) if before == after => after.to_string(),
        (before, after) => format!("{before}\u{a0}to\u{a0}{after}"),
    };
    let mut row = vec![
        text(rounded(gap.length_ns())),
        text(seconds(gap.from_ns)),
        count(gap.thread.into()),
        text(cpu),
        named(Some(gap.kind), KINDS.get(gap.kind).copied().unwrap_or("gap")),
    ];
    if with_causes {
        let confidence = gap.attribution.map(|why| format!("{:.0} %", why.confidence() * 100.0));
        row.push(text(confidence.unwrap_or_default()));
    }
    row.push(Cell::Markup(format!(
        "<button type=\"button\" class=\"quiet show\" data-thread=\"{}\" data-end=\"{}\" \
         aria-label=\"Show the gap of {} in the timeline\">show</button>",
        gap.thread,
        gap.to_ns,
        rounded(gap.length_ns())
    )));
    row
}

/// A moment of the run in seconds, to the nanosecond.
pub(super) fn seconds(ns: i64) -> String {
    let (sign, ns) = (if ns < 0 { "-" } else { "" }, ns.unsigned_abs());
    format!("{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}
