//! Rows and pictures of the evaluation.
//!
//! Owns: what of an outcome becomes a row, what a point. Must not: run anything.

use hourglass_documents::paper::{
    AxisScale, Curve, CurveOrigin, CurvePoint, Curves, Edge, EdgeUnit, MeasurementKind,
    PaperFigure, PaperRow, PaperTable,
};

use super::super::rows::{beside, found, lacking};
use super::evaluation::{Scenario, SubjectRuns};
use super::late_jobs;
use super::outcome::ProcessOutcome;
use super::smt_methods::SmtMethod;
use super::test_host::SmtTestHost;

/// Nanoseconds in a millisecond.
const MS: f64 = 1e6;

/// How numbers of a machine are found, also of one that cannot be had: without co-runners there is nothing to
/// emulate.
pub(super) fn how(rig: &Result<SmtTestHost, String>, subject: Scenario) -> MeasurementKind {
    match rig {
        Ok(rig) if subject != Scenario::VideoAlone => rig.how(),
        _ => MeasurementKind::Measured,
    }
}

/// Which periods were missed, and when the latest job was done: here and simulated. The paper has no
/// number but that monitoring and disabling miss nothing.
pub(super) fn miss_rows(
    runs: &SubjectRuns,
    ways: &[SmtMethod],
    how: MeasurementKind,
) -> Vec<PaperRow> {
    let mut rows = Vec::new();
    for way in ways {
        let Some(here) = runs.here(*way) else { continue };
        let name = way.name();
        let promised = (*way != SmtMethod::Ignore).then_some(0.0);
        let missed = |how, outcome: &ProcessOutcome| {
            let percent = outcome.missed_percent();
            let name = format!("{name}: periods missed");
            beside(promised, found(name, percent, "%", how, outcome.periods))
        };
        let latest = |how, outcome: &ProcessOutcome| {
            let jobs = outcome.done.len() as u64;
            let row = |what: &str, ns: u64| {
                found(format!("{name}: {what} completion"), ns as f64 / MS, "ms", how, jobs)
            };
            let median = outcome.median_ns().map(|ns| row("median", ns));
            median.into_iter().chain(outcome.latest_ns().map(|ns| row("latest", ns)))
        };
        match here {
            Ok(outcome) => {
                rows.push(missed(how, outcome));
                rows.extend(latest(how, outcome));
                rows.extend(apart_rows(name, outcome, how));
            }
            Err(why) => {
                let row = lacking(format!("{name}: periods missed"), "%", how, why);
                rows.push(beside(promised, row));
            }
        }
        if let Some(outcome) = runs.simulated(*way) {
            rows.push(missed(MeasurementKind::Simulated, outcome));
            rows.extend(latest(MeasurementKind::Simulated, outcome));
        }
    }
    rows
}

/// Periods that are listed apart, if there are any.
fn apart_rows(name: &str, outcome: &ProcessOutcome, how: MeasurementKind) -> Vec<PaperRow> {
    let row = |(what, count): (&str, u64)| {
        let percent = count.min(outcome.periods) as f64 * 100.0 / outcome.periods.max(1) as f64;
        (count > 0).then(|| found(format!("{name}: {what}"), percent, "%", how, outcome.periods))
    };
    let apart = [
        ("late by a job that needed more than reserved, or than it reported", outcome.overran()),
        ("late only by gaps below the kernel", outcome.excused()),
    ];
    apart.into_iter().filter_map(row).collect()
}

/// What the monitor did and cost, for the ways that have one.
pub(super) fn monitor_rows(
    runs: &SubjectRuns,
    ways: &[SmtMethod],
    how: MeasurementKind,
) -> Vec<PaperRow> {
    let mut rows = Vec::new();
    for way in ways.iter().filter(|way| way.monitors()) {
        let Some(Ok(outcome)) = runs.here(*way) else { continue };
        let jobs = outcome.done.len().max(1) as u64;
        let name = way.name();
        let of_job = |what: &str, count: u64| {
            found(format!("{name}: {what}"), count as f64 / jobs as f64, "per job", how, jobs)
        };
        rows.push(of_job("looks", outcome.checks));
        rows.push(of_job("stops", outcome.stops));
        let late = outcome.latest_look_ns as f64 / MS;
        rows.push(found(format!("{name}: latest look"), late, "ms late", how, outcome.checks));
        let time = outcome.periods as f64 * outcome.deadline_ns as f64;
        let share = outcome.monitor_ns as f64 * 100.0 / time.max(1.0);
        rows.push(found(format!("{name}: the monitor's CPU use"), share, "%", how, jobs));
    }
    rows
}

/// Throughput of the others relative to disabled SMT: here, and simulated.
pub(super) fn gains(runs: &SubjectRuns, way: SmtMethod) -> [Option<f64>; 2] {
    let gain = |disable: &ProcessOutcome, own: &ProcessOutcome| {
        let base = disable.best_effort();
        (base > 0.0).then(|| own.best_effort() / base)
    };
    let here = runs.here(way).zip(runs.here(SmtMethod::Disable));
    let here = here.and_then(|(own, disable)| gain(disable.as_ref().ok()?, own.as_ref().ok()?));
    let simulated = runs.simulated(way).zip(runs.simulated(SmtMethod::Disable));
    [here, simulated.and_then(|(own, disable)| gain(disable, own))]
}

/// Rows of these gains; the paper's number belongs to both.
pub(super) fn gain_rows(
    name: &str,
    paper: Option<f64>,
    runs: &SubjectRuns,
    way: SmtMethod,
    how: MeasurementKind,
) -> Vec<PaperRow> {
    let [here, simulated] = gains(runs, way);
    let name = format!("{name}; {}", way.name());
    let why = match runs.here(way) {
        Some(Err(why)) => why.as_str(),
        _ => "the others got nothing to compare with",
    };
    let count = |outcome: Option<&ProcessOutcome>| outcome.map_or(0, |outcome| outcome.periods);
    let row = match (here, runs.here(way)) {
        (Some(gain), Some(Ok(outcome))) => {
            found(name.clone(), gain, "times", how, count(Some(outcome)))
        }
        _ => lacking(name.clone(), "times", how, why),
    };
    let mut rows = vec![beside(paper, row)];
    if let Some(gain) = simulated {
        let row =
            found(name, gain, "times", MeasurementKind::Simulated, count(runs.simulated(way)));
        rows.push(beside(paper, row));
    }
    rows
}

/// Completion times by period, marks for those above the deadline, and the deadline.
pub(super) fn completions(
    (id, title): (&str, &str),
    counted: &str,
    runs: &SubjectRuns,
    ways: &[SmtMethod],
    note: String,
) -> PaperFigure {
    let mut curves = Vec::new();
    let mut last = 1.0f64;
    let mut deadline = None;
    for way in ways {
        let Some(Ok(outcome)) = runs.here(*way) else { continue };
        last = last.max(outcome.periods as f64);
        deadline = Some(outcome.deadline_ns as f64);
        curves.push(Curve {
            name: way.name().to_owned(),
            origin: CurveOrigin::Here,
            colour: way.colour(),
            joined: true,
            points: outcome.done.iter().map(late_jobs::place).collect(),
        });
    }
    curves.extend(late_jobs::curves(runs, ways));
    if let Some(up) = deadline {
        let ends = [1.0, last].map(|across| CurvePoint { across, up });
        curves.push(Curve {
            name: "deadline".into(),
            origin: CurveOrigin::Paper,
            colour: 11,
            joined: true,
            points: ends.into(),
        });
    }
    let edge = |text: &str, unit| Edge { text: text.to_owned(), unit, scale: AxisScale::Linear };
    PaperFigure::Curves(Curves {
        id: id.to_owned(),
        title: title.to_owned(),
        across: edge(counted, EdgeUnit::Number),
        up: edge("completion time", EdgeUnit::Time),
        curves,
        note,
    })
}

const MACHINE: &str =
    "Xeon workstation with Hyper-Threading, Linux 2.4.21 with the paper's scheduler";

/// How a figure was found, in a sentence.
fn method(subject: Scenario, rig: &Result<SmtTestHost, String>, jobs: usize) -> String {
    let what = match subject {
        Scenario::Product(_) => {
            "products of 200x200 matrices, as many as take 50 ms here alone (one took 50 ms in 2006), \
             every 70 ms, 55 ms reserved"
        }
        Scenario::VideoAlone | Scenario::Video => {
            "a job in the phases of a video encoder (motion estimation and cosine transformation tell \
             progress, the rest does not), 13 to 23.5 ms by frame, every 33.3 ms, 25 ms reserved"
        }
    };
    let place = match rig {
        Ok(rig) if subject == Scenario::VideoAlone => {
            format!("on CPU {}, without co-runners", rig.cpu)
        }
        Ok(rig) => rig.words(),
        Err(why) => format!("not run here: {why}"),
    };
    format!(
        "{what}; {jobs} jobs of each policy, in turns; {place}; simulated on a core of two threads"
    )
}

/// A table of the evaluation.
pub(super) fn table(
    (id, title): (&str, &str),
    (subject, rig, jobs): (Scenario, &Result<SmtTestHost, String>, usize),
    rows: Vec<PaperRow>,
    difference: String,
    notes: Vec<String>,
) -> PaperTable {
    PaperTable {
        id: id.into(),
        title: title.into(),
        paper_machine: MACHINE.into(),
        method: method(subject, rig, jobs),
        rows,
        decisions: Vec::new(),
        difference,
        notes,
        figure: None,
    }
}
