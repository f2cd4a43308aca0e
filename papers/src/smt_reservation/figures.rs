//! Rows and pictures of the evaluation.
//!
//! Owns: what of an outcome becomes a row, what a point. Must not: run anything.

use hourglass_documents::paper::{
    AxisScale, BarSeries, Bars, CurveOrigin, Curves, EdgeUnit, MeasurementKind, PaperRow,
};

use super::super::drawing::{curve, curves, edge};
use super::super::printed::{Line, Table};
use super::super::rows::row;
use super::evaluation::{Scenario, SubjectRuns};
use super::late_jobs;
use super::outcome::ProcessOutcome;
use super::smt_methods::SmtMethod;
use super::test_host::SmtTestHost;

const MONITORS: [SmtMethod; 3] = [SmtMethod::Word, SmtMethod::Instructions, SmtMethod::CpuTime];

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
        let promised = (*way != SmtMethod::Ignore).then_some(0.0);
        match here {
            Ok(outcome) => {
                rows.extend(completion_rows(way.name(), promised, outcome, how));
                rows.extend(apart_rows(way.name(), outcome, how));
            }
            Err(why) => {
                let name = format!("{}: periods missed", way.name());
                rows.push(row(name, "%", promised, how, Err(why.clone())));
            }
        }
        if let Some(outcome) = runs.simulated(*way) {
            let how = MeasurementKind::Simulated;
            rows.extend(completion_rows(way.name(), promised, outcome, how));
        }
    }
    rows
}

fn completion_rows(
    name: &str,
    promised: Option<f64>,
    outcome: &ProcessOutcome,
    how: MeasurementKind,
) -> Vec<PaperRow> {
    let missed = Ok((outcome.missed_percent(), outcome.periods));
    let mut rows = vec![row(format!("{name}: periods missed"), "%", promised, how, missed)];
    for (what, ns) in [("median", outcome.median_ns()), ("latest", outcome.latest_ns())] {
        let found = ns.map(|ns| (ns as f64, outcome.done.len() as u64));
        let name = format!("{name}: {what} completion");
        rows.extend(found.map(|found| row(name, "ms", None, how, Ok(found))));
    }
    rows
}

fn apart_rows(name: &str, outcome: &ProcessOutcome, how: MeasurementKind) -> Vec<PaperRow> {
    let apart = [
        ("late by a job that needed more than reserved, or than it reported", outcome.overran()),
        ("late only by gaps below the kernel", outcome.excused()),
    ];
    let periods = outcome.periods;
    let some = apart.into_iter().filter(|(_, count)| *count > 0);
    some.map(|(what, count)| {
        let percent = count.min(periods) as f64 * 100.0 / periods.max(1) as f64;
        row(format!("{name}: {what}"), "%", None, how, Ok((percent, periods)))
    })
    .collect()
}

pub(super) fn monitor_rows(
    runs: &SubjectRuns,
    ways: &[SmtMethod],
    how: MeasurementKind,
) -> Vec<PaperRow> {
    let mut rows = Vec::new();
    for way in ways.iter().filter(|way| way.monitors()) {
        let Some(Ok(outcome)) = runs.here(*way) else { continue };
        let jobs = outcome.done.len().max(1) as u64;
        let time = outcome.periods as f64 * outcome.deadline_ns as f64;
        let share = outcome.monitor_ns as f64 * 100.0 / time.max(1.0);
        let late_ms = outcome.latest_look_ns as f64 / 1e6;
        for (what, unit, number, count) in [
            ("looks", "per job", outcome.checks as f64 / jobs as f64, jobs),
            ("stops", "per job", outcome.stops as f64 / jobs as f64, jobs),
            ("latest look", "ms late", late_ms, outcome.checks),
            ("the monitor's CPU use", "%", share, jobs),
        ] {
            rows.push(row(format!("{}: {what}", way.name()), unit, None, how, Ok((number, count))));
        }
    }
    rows
}

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

/// Rows of the gains beside a co-runner; the paper's number belongs to both, measured and simulated.
pub(super) fn gain_rows(line: &Line, runs: &SubjectRuns, how: MeasurementKind) -> Vec<PaperRow> {
    let mut rows = Vec::new();
    for way in MONITORS {
        let paper = line.printed(0).filter(|_| way != SmtMethod::CpuTime);
        let [here, simulated] = gains(runs, way);
        let name = format!("{}; {}", line.name, way.name());
        let found = match (here, runs.here(way)) {
            (Some(gain), Some(Ok(outcome))) => Ok((gain, outcome.periods)),
            (_, Some(Err(why))) => Err(why.clone()),
            _ => Err("the others got nothing to compare with".to_owned()),
        };
        rows.push(row(name.clone(), &line.unit, paper, how, found));
        if let Some(gain) = simulated {
            let periods = runs.simulated(way).map_or(0, |outcome| outcome.periods);
            let how = MeasurementKind::Simulated;
            rows.push(row(name, &line.unit, paper, how, Ok((gain, periods))));
        }
    }
    rows
}

fn number(table: &Table) -> &str {
    table.id.trim_start_matches("figure-")
}

pub(super) fn completions(
    table: &Table,
    subject: Scenario,
    runs: &SubjectRuns,
    ways: &[SmtMethod],
    note: &str,
) -> Curves {
    let mut drawn = Vec::new();
    let mut last = 1.0f64;
    let mut deadline = None;
    for way in ways {
        let Some(Ok(outcome)) = runs.here(*way) else { continue };
        last = last.max(outcome.periods as f64);
        deadline = Some(outcome.deadline_ns as f64);
        let points = outcome.done.iter().map(late_jobs::place);
        drawn.push(curve(way.name(), CurveOrigin::Here, way.colour(), points));
    }
    drawn.extend(late_jobs::curves(runs, ways));
    drawn.extend(deadline.map(|up| {
        curve("deadline", CurveOrigin::Paper, 11, [1.0, last].map(|across| (across, up)))
    }));
    let counted = if matches!(subject, Scenario::Product(_)) { "period" } else { "frame" };
    let edges = [(counted, EdgeUnit::Number), ("completion time", EdgeUnit::Time)]
        .map(|(text, unit)| edge(text, unit, AxisScale::Linear));
    curves((number(table), &table.title), edges, drawn, note)
}

pub(super) fn bars(
    table: &Table,
    how: MeasurementKind,
    subjects: &[(&Line, &SubjectRuns)],
) -> Bars {
    let found = if how == MeasurementKind::Emulated { "emulated" } else { "measured" };
    let series = |name: String, origin, colour, of: &dyn Fn(&Line, &SubjectRuns) -> Option<f64>| {
        let values = subjects.iter().map(|(line, runs)| of(line, runs)).collect();
        BarSeries { name, origin, colour, values }
    };
    let paper = "monitor, in the paper".to_owned();
    let mut all = vec![series(paper, CurveOrigin::Paper, 11, &|line, _| line.printed(0))];
    for way in MONITORS {
        for (at, origin, found) in
            [(0, CurveOrigin::Here, found), (1, CurveOrigin::Simulated, "simulated")]
        {
            let name = format!("{}, {found}", way.name());
            all.push(series(name, origin, way.colour(), &|_, runs| gains(runs, way)[at]));
        }
    }
    all.retain(|series| series.values.iter().any(Option::is_some));
    Bars {
        id: number(table).to_owned(),
        title: table.title.clone(),
        up: "throughput, times that with SMT disabled".to_owned(),
        groups: subjects.iter().map(|(line, _)| line.name.clone()).collect(),
        series: all,
    }
}
