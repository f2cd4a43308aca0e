//! What spoils real-time work on a machine, for people.

use std::fmt::Write;

use hourglass_documents::doctor::{
    CheckDifference, CheckResult, CpuSelection, DoctorDocument, Status,
};

use super::Style;
use super::table::{NARROW as PAGE, TextStyle, paint, wrapped_within};
use crate::clean;

/// Width of the longest status, and of the gap behind it.
const STATUS: usize = 9;

/// How many matter most, and the columns before them.
const FIRST: usize = 3;
const RANK: usize = 5;

/// Spaces behind the longest name.
const BETWEEN: usize = 2;

/// The checks, worst first: what was found, and where it is not as it should be, what is wanted
/// and the line that changes it. The last line counts.
#[must_use]
pub fn doctor(document: &DoctorDocument, style: Style) -> String {
    if let Some(differences) = &document.differences {
        return different(document, differences, style);
    }
    let mut out = String::new();
    let heading = match (document.cpus.is_empty(), document.cpus_are) {
        (true, _) => "Real-time work on this machine".to_owned(),
        (false, CpuSelection::Asked) => format!("Real-time work on CPUs {}", document.cpus),
        (false, CpuSelection::Isolated) => {
            format!("Real-time work on CPUs {}, which are isolated", document.cpus)
        }
        (false, CpuSelection::Online) => {
            format!("Real-time work on CPUs {}, all of them", document.cpus)
        }
    };
    out.push_str(&paint(&heading, TextStyle::Heading, style));
    out.push_str("\n\n");
    let mut checks: Vec<&CheckResult> = document.checks.iter().collect();
    checks.sort_by_key(|check| check.status);
    let widest = checks.iter().map(|check| check.id.chars().count()).max().unwrap_or(0);
    matters_most(&mut out, &checks, style);
    for check in &checks {
        entry(&mut out, check, widest, style);
    }
    let counts = &document.counts;
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "\n{} check{}: {} fail, {} warn, {} unknown, {} ok",
        checks.len(),
        if checks.len() == 1 { "" } else { "s" },
        counts.fail,
        counts.warn,
        counts.unknown,
        counts.ok
    );
    out
}

/// What is not as expected, and how many were compared.
fn different(document: &DoctorDocument, differences: &[CheckDifference], style: Style) -> String {
    let mut out = String::new();
    for one in differences {
        let state = |status: Option<Status>, found: Option<&str>| {
            let status = status.map(Status::name).into_iter();
            status.chain(found).map(clean::for_terminal).collect::<Vec<_>>().join(": ")
        };
        let expected = state(one.expected_status, one.expected.as_deref());
        let found = state(Some(one.status), Some(&one.found));
        let name = paint(&clean::for_terminal(&one.id), TextStyle::Heading, style);
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{name}\n{:STATUS$}expected  {expected}\n{:STATUS$}found     {found}",
            "", ""
        );
        if !one.remedy.is_empty() {
            let _ = writeln!(out, "{:STATUS$}{}", "", clean::for_terminal(&one.remedy));
        }
    }
    let _ = writeln!(out, "{} of {} checks differ", differences.len(), document.checks.len());
    out
}

/// The first three by their effect on the worst latency, each with its remedy; nothing where there is
/// no choice.
fn matters_most(out: &mut String, checks: &[&CheckResult], style: Style) {
    let mut ranked: Vec<(usize, &CheckResult)> =
        checks.iter().filter_map(|check| Some((check.effect.rank?, *check))).collect();
    if ranked.len() < 2 {
        return;
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    out.push_str(&paint("Matters most:", TextStyle::Heading, style));
    out.push('\n');
    for (rank, check) in ranked.into_iter().take(FIRST) {
        let line = match check.effect.ns {
            Some(_) => format!("{}: {}", check.id, check.effect.words),
            None => format!("{}: {}", check.id, check.found),
        };
        let line = wrapped_within(PAGE, &clean::for_terminal(&line), RANK, RANK);
        let remedy = clean::for_terminal(&check.remedy);
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  {rank}  {line}\n{:RANK$}{remedy}", "");
    }
    out.push('\n');
}

fn entry(out: &mut String, check: &CheckResult, widest: usize, style: Style) {
    let tone = match check.status {
        Status::Fail => TextStyle::Bad,
        Status::Warn => TextStyle::Caution,
        Status::Unknown => TextStyle::Faint,
        Status::Ok => TextStyle::Good,
    };
    let status = check.status.name();
    let indent = STATUS + widest + BETWEEN;
    let found = wrapped_within(PAGE, &clean::for_terminal(&check.found), indent, indent);
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{}{:blank$}{:<width$}{found}",
        paint(status, tone, style),
        "",
        clean::for_terminal(&check.id),
        blank = STATUS - status.len(),
        width = widest + BETWEEN
    );
    if check.remedy.is_empty() {
        return;
    }
    let wanted = format!("wanted: {}", clean::for_terminal(&check.wanted));
    let wanted = wrapped_within(PAGE, &wanted, STATUS, STATUS);
    for line in wanted.split('\n') {
        let _ =
            writeln!(out, "{:STATUS$}{}", "", paint(line.trim_start(), TextStyle::Faint, style));
    }
    if check.effect.ns.is_some() {
        let effect = format!("effect: {}", clean::for_terminal(&check.effect.words));
        let _ = writeln!(out, "{:STATUS$}{}", "", wrapped_within(PAGE, &effect, STATUS, STATUS));
    }
    let remedy = clean::for_terminal(&check.remedy);
    let _ = writeln!(out, "{:STATUS$}{}", "", paint(&remedy, TextStyle::Heading, style));
}
