//! The table of an experiment of schedulability, for people.
//!
//! Owns: its look. Must not: count.

use std::fmt::Write;

use hourglass_documents::sweep::{SweepDocument, SweepExperiment, SweepPoint};

use super::Style;
use super::table::{ColumnFormat, NARROW as PAGE, TextCell, TextStyle, TextTable, wrapped_within};
use crate::clean;

const THOUSAND: u64 = 1_000;

/// The least width of a column of shares: `<0.1`, and a weighted share.
const SHARE: usize = 5;

/// Spaces before a column of shares.
const BETWEEN: usize = 2;

/// The head of the points.
const POINTS: &str = "utilisation";

/// Points as rows, analyses as columns; what the numbers mean below. Analyses that do not fit beside
/// each other stand in tables below each other.
#[must_use]
pub fn sweep(document: &SweepDocument, style: Style) -> String {
    let experiment = &document.experiment;
    let mut out = String::new();
    let title = format!("Sets accepted, % of {}", clean::for_terminal(&sweep_summary(experiment)));
    let mut title = wrapped_within(PAGE, &title, 0, 2);
    for names in beside_each_other(&experiment.analyses) {
        block(document, names, std::mem::take(&mut title)).write(&mut out, style);
    }
    out.push_str("weighted: sum of utilisation times share accepted, over that of utilisations\n");
    let undecided = |name: &&String| given_up(&document.points, name) > 0;
    for name in experiment.analyses.iter().filter(undecided) {
        let count = given_up(&document.points, name);
        let name = clean::for_terminal(name);
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{name}: undecided: {count}; these do not count as accepted");
    }
    let redrawn: u64 = document.points.iter().map(|point| point.redrawn).sum();
    if redrawn > 0 {
        let left_out: u64 =
            document.points.iter().map(|p| experiment.sets.saturating_sub(p.sets)).sum();
        let _ = writeln!(
            out,
            "redrawn: {redrawn} draws ran out of tries, and others were drawn in their place; \
             {left_out} sets are missing"
        );
    }
    if document.interrupted {
        let missing = experiment.utilisations.len().saturating_sub(document.points.len());
        let _ = writeln!(
            out,
            "interrupted: {missing} of {} points missing",
            experiment.utilisations.len()
        );
    }
    out
}

/// The names in parts whose columns fit the page; a name alone stands there however long it is.
fn beside_each_other(names: &[String]) -> Vec<&[String]> {
    let width = |name: &String| BETWEEN + clean::for_terminal(name).chars().count().max(SHARE);
    let (mut parts, mut first, mut used) = (Vec::new(), 0, POINTS.len());
    for (at, name) in names.iter().enumerate() {
        if at > first && used + width(name) > PAGE {
            parts.push(&names[first..at]);
            (first, used) = (at, POINTS.len());
        }
        used += width(name);
    }
    parts.push(&names[first..]);
    parts
}

/// The table of some of the analyses.
fn block(document: &SweepDocument, names: &[String], title: String) -> TextTable {
    let points = document.points.iter().zip(&document.experiment.utilisations).map(Some);
    // The last row.
    let rows: Vec<Option<(&SweepPoint, &String)>> = points.chain([None]).collect();
    let faint = |text: String| TextCell::toned(text, TextStyle::Faint);
    let mut table = TextTable::of(title, &rows).number(POINTS, |row| match row {
        Some((_, utilisation)) => utilisation.as_str().into(),
        None => faint("weighted".to_owned()),
    });
    for name in names {
        table = table.column(ColumnFormat::Number, clean::for_terminal(name), |row| match row {
            Some((point, _)) => share(point, name).into(),
            None => {
                let weighted = document.weighted.get(name);
                faint(weighted.map_or(String::new(), |weighted| format!("{weighted:.3}")))
            }
        });
    }
    table.table()
}

/// An experiment in a line: what was drawn, and how.
#[must_use]
pub fn sweep_summary(experiment: &SweepExperiment) -> String {
    let cpus = match experiment.processors {
        1 => "1 CPU".to_owned(),
        count => format!("{count} CPUs"),
    };
    let SweepExperiment { sets, tasks, generator, periods, deadlines, seed, .. } = experiment;
    if experiment.template.is_some() {
        return format!("one set of {tasks} tasks with scaled execution times, {cpus}");
    }
    format!(
        "{sets} sets of {tasks} tasks, {cpus}, {generator}, periods {periods}, deadlines {deadlines}, \
         seed {seed}"
    )
}

fn given_up(points: &[SweepPoint], name: &str) -> u64 {
    points.iter().filter_map(|point| point.undecided.get(name)).sum()
}

/// Per cent with a decimal, rounded towards the middle: only all are 100, only none are 0.
fn share(point: &SweepPoint, name: &str) -> String {
    let Some(accepted) = point.accepted.get(name).copied() else { return String::new() };
    let thousandths = accepted.saturating_mul(THOUSAND) / point.sets.max(1);
    match (accepted, thousandths) {
        (0, _) => "0".to_owned(),
        (_, 0) => "<0.1".to_owned(),
        (all, _) if all >= point.sets => "100".to_owned(),
        (_, part) => format!("{}.{}", part / 10, part % 10),
    }
}
