//! Figures 7 to 12 as tables.
//!
//! Owns: which figure has which runs, and what its texts say of them. Must not: run anything itself.

use hourglass_documents::paper::PaperFigure;

use super::super::bench::MeasurementHost;
use super::super::printed::{MeasuredTable, Table, Values};
use super::contention::CoRunner;
use super::evaluation::{Scenario, SubjectRuns, rig, runs};
use super::figures::{bars, completions, gain_rows, gains, how, miss_rows, monitor_rows};
use super::late_jobs;
use super::outcome::ProcessOutcome;
use super::smt_methods::SmtMethod;

/// The ways of Figure 7, of Figure 8, and of Figure 11.
const REPORTED: &[SmtMethod] = &[SmtMethod::Ignore, SmtMethod::Disable, SmtMethod::Word];
const UNREPORTED: &[SmtMethod] = &[SmtMethod::Instructions, SmtMethod::CpuTime];
const FIVE: &[SmtMethod] = &[
    SmtMethod::Ignore,
    SmtMethod::Word,
    SmtMethod::Instructions,
    SmtMethod::CpuTime,
    SmtMethod::Disable,
];

/// From this load average on, throughput is also that of other programs.
const BUSY: f64 = 0.5;

pub(super) fn by_period(table: &Table, bench: &MeasurementHost) -> Option<MeasuredTable> {
    let (subject, ways) = match table.id.as_str() {
        "figure-7a" => (Scenario::Product(CoRunner::Integer), REPORTED),
        "figure-7b" => (Scenario::Product(CoRunner::Float), REPORTED),
        "figure-7c" => (Scenario::Product(CoRunner::Compile), REPORTED),
        "figure-8" => (Scenario::Product(CoRunner::Compile), UNREPORTED),
        "figure-10" => (Scenario::VideoAlone, &[SmtMethod::Ignore][..]),
        _ => (Scenario::Video, FIVE),
    };
    let runs = runs(bench, subject)?;
    let how = how(rig(bench), subject);
    let mut rows = miss_rows(runs, ways, how);
    rows.extend(monitor_rows(runs, ways, how));
    let note = match rig(bench) {
        Ok(rig) if subject != Scenario::VideoAlone && rig.emulated => "Contention is emulated.",
        Ok(_) if subject != Scenario::VideoAlone => "On hardware threads of one core.",
        _ => "",
    };
    let measured = table.with_rows(rows, outcomes(runs, ways, values(bench, subject)));
    let figure = completions(table, subject, runs, ways, note);
    Some(measured.with_figure(PaperFigure::Curves(figure)))
}

pub(super) fn throughput(table: &Table, bench: &MeasurementHost) -> Option<MeasuredTable> {
    let kinds = match table.id.as_str() {
        "figure-9" => CoRunner::ALL.map(Scenario::Product).to_vec(),
        _ => vec![Scenario::Video],
    };
    let subjects: Option<Vec<_>> = table
        .lines
        .iter()
        .zip(&kinds)
        .map(|(line, subject)| Some((line, runs(bench, *subject)?)))
        .collect();
    let (subjects, subject) = (subjects?, *kinds.first()?);
    let how = how(rig(bench), subject);
    let word = subjects.iter().filter_map(|(_, runs)| gains(runs, SmtMethod::Word)[0]);
    let least = word.reduce(f64::min);
    let rows = subjects.iter().flat_map(|(line, runs)| gain_rows(line, runs, how)).collect();
    let values = values(bench, subject)
        .with_if("more", least.is_some_and(|least| least > 1.0))
        .with_some("least", least.map(|least| format!("{least:.2}")));
    let figure = PaperFigure::Bars(bars(table, how, &subjects));
    Some(table.with_rows(rows, values).with_figure(figure))
}

fn values(bench: &MeasurementHost, subject: Scenario) -> Values {
    let rig = rig(bench).as_ref();
    let load = bench.load.filter(|load| *load >= BUSY);
    Values::default()
        .with_if("product", matches!(subject, Scenario::Product(_)))
        .with("jobs", subject.jobs(bench.effort).0.jobs.len())
        .with_if("alone", subject == Scenario::VideoAlone && rig.is_ok())
        .with_some("cpu", rig.ok().map(|rig| u64::from(rig.cpu)))
        .with_some("rig", rig.ok().map(|rig| rig.words()))
        .with_some("why", rig.err().map(String::as_str))
        .with_some("load", load.map(|load| format!("{load:.1}")))
}

fn outcomes(runs: &SubjectRuns, ways: &[SmtMethod], values: Values) -> Values {
    let found = |way: SmtMethod| {
        ways.contains(&way).then(|| runs.here(way)?.as_ref().ok().map(|of| (way, of))).flatten()
    };
    let ignored = found(SmtMethod::Ignore).map(|(_, outcome)| outcome);
    let beside = ignored.filter(|_| ways.len() > 1);
    let promising = ways.iter().filter(|way| **way != SmtMethod::Ignore);
    let promised: Vec<_> = promising.filter_map(|way| found(*way)).collect();
    let broken: Vec<String> = promised.iter().filter_map(|(way, of)| broken(*way, of)).collect();
    let excused = late_jobs::excused_words(runs, ways);
    // As on a machine where others have the CPUs that the co-runners want.
    let harmless = |of: &ProcessOutcome| of.best_effort_ns > 0.0 && of.missed() == 0;
    values
        .with_if("harmless", beside.is_some_and(harmless))
        .with_some("ignored", beside.map(|of| format!("{:.0}", of.missed_percent())))
        .with_if("promised", !promised.is_empty())
        .with_some("broken", (!broken.is_empty()).then(|| broken.join(", ")))
        .with_some("excused", (!excused.is_empty()).then_some(excused))
        .with_if("met", ignored.is_some_and(|of| of.missed() == 0))
        .with_some("missed", ignored.map(ProcessOutcome::missed))
        .with_some("periods", ignored.map(|of| of.periods))
}

fn broken(way: SmtMethod, outcome: &ProcessOutcome) -> Option<String> {
    let missed = Some(outcome.missed()).filter(|missed| *missed > 0)?;
    let preempted = match outcome.preempted() {
        0 => String::new(),
        count => format!(" ({count} late jobs lost their CPU to threads of a higher priority)"),
    };
    let late_ms = outcome.latest_look_ns as f64 / 1e6;
    let looks = if way.monitors() {
        format!(", looking up to {late_ms:.2} ms late")
    } else {
        String::new()
    };
    Some(format!("{} misses {missed} of {} periods{preempted}{looks}", way.name(), outcome.periods))
}
