//! Nodes beside each other, for people.
//!
//! Owns: their look. Must not: count.

use std::fmt::Write;

use hourglass_documents::merged::{FleetDocument, FleetGaps, FleetLatency, FleetNode, FleetShare};

use super::Style;
use super::table::{NARROW, TextStyle, TextTable, paint_line, wrapped_within};
use crate::clean;
use crate::units::UnitScale;

/// Nodes that are shown: a page of them. All are in the document.
const SHOWN: usize = 20;

/// Parts per billion in the fourth decimal of a percent.
const PPB: u64 = 1_000;

/// Spaces before the remedy of a warning.
const INDENT: usize = 2;

/// Nodes as rows, the worst first, one table for gaps and one for wake-ups; then what makes them hard to compare.
#[must_use]
pub fn fleet(document: &FleetDocument, style: Style) -> String {
    let mut out = String::new();
    let title = format!(
        "{} of {}: {}",
        counted(document.runs, "run"),
        counted(document.nodes.len() as u64, "node"),
        clean::for_terminal(&document.measured.join(", "))
    );
    let title = wrapped_within(NARROW, &title, 0, INDENT);
    paint_line(&mut out, &title, TextStyle::Heading, style);
    out.push('\n');
    let with_gaps: Vec<_> =
        document.nodes.iter().filter_map(|node| Some((node, node.gaps.as_ref()?))).collect();
    if !with_gaps.is_empty() {
        gaps(&with_gaps).write(&mut out, style);
        more(&mut out, with_gaps.len());
    }
    let late: Vec<_> =
        document.nodes.iter().filter_map(|node| Some((node, node.latency.as_ref()?))).collect();
    if !late.is_empty() {
        latency(&late).write(&mut out, style);
        more(&mut out, late.len());
    }
    shares(&mut out, "Hourglass", &document.versions);
    shares(&mut out, "kernels", &document.kernels);
    for warning in &document.warnings {
        let text = format!("warning: {}", clean::for_terminal(&warning.text));
        let text = wrapped_within(NARROW, &text, 0, INDENT);
        paint_line(&mut out, &text, TextStyle::Caution, style);
        // Writing to a string cannot fail.
        let remedy = wrapped_within(NARROW, &warning.remedy, INDENT, INDENT);
        let _ = writeln!(out, "{:INDENT$}{remedy}", "");
    }
    out
}

fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

fn gaps(nodes: &[(&FleetNode, &FleetGaps)]) -> TextTable {
    let nodes = nodes.get(..SHOWN).unwrap_or(nodes);
    let scale = UnitScale::for_block(nodes.iter().map(|(_, gaps)| gaps.p99_ns));
    TextTable::of(format!("Gaps, lengths in {}", scale.name()), nodes)
        .elastic("node", |(node, _)| node.node.as_str())
        .number("gaps", |(_, gaps)| gaps.count)
        .number("lost %", |(_, gaps)| format!("{:.4}", (gaps.lost_ppb / PPB) as f64 / 1e4))
        .number("p50", |(_, gaps)| scale.text(gaps.p50_ns))
        .number("p99", |(_, gaps)| scale.text(gaps.p99_ns))
        .number("p99.9", |(_, gaps)| scale.text(gaps.p999_ns))
        .number("max", |(_, gaps)| scale.text(gaps.max_ns))
        .elastic("most time by", |(_, gaps)| gaps.cause.map(|cause| cause.name()))
        .narrow()
}

fn latency(nodes: &[(&FleetNode, &FleetLatency)]) -> TextTable {
    let nodes = nodes.get(..SHOWN).unwrap_or(nodes);
    let scale = UnitScale::for_block(nodes.iter().map(|(_, latency)| latency.p50_ns));
    TextTable::of(format!("Wake-ups, latency in {}", scale.name()), nodes)
        .elastic("node", |(node, _)| node.node.as_str())
        .number("wake-ups", |(_, latency)| latency.count)
        .number("lost", |(_, latency)| latency.lost)
        .number("p50", |(_, latency)| scale.text(latency.p50_ns))
        .number("p99", |(_, latency)| scale.text(latency.p99_ns))
        .number("p99.9", |(_, latency)| scale.text(latency.p999_ns))
        .number("max", |(_, latency)| scale.text(latency.max_ns))
        .narrow()
}

/// How many nodes are not shown. The empty line behind the table moves below it.
fn more(out: &mut String, nodes: usize) {
    if let Some(more @ 1..) = nodes.checked_sub(SHOWN) {
        out.pop();
        let _ = writeln!(out, "and {more} more; --json has all\n");
    }
}

/// What the runs have in common, or not.
fn shares(out: &mut String, what: &str, shares: &[FleetShare]) {
    let share = |share: &FleetShare| match shares {
        [_] => clean::for_terminal(&share.name),
        _ => format!("{} ({})", clean::for_terminal(&share.name), counted(share.runs, "run")),
    };
    let all: Vec<String> = shares.iter().map(share).collect();
    let line = wrapped_within(NARROW, &format!("{what}: {}", all.join(", ")), 0, INDENT);
    let _ = writeln!(out, "{line}");
}
