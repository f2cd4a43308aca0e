//! Figures 7 to 12 as tables.
//!
//! Owns: which figure has which rows, and what differs from the paper. Must not: run anything itself.

use hourglass_model::paper::{
    BarSeries, Bars, CurveOrigin, MeasurementKind, PaperFigure, PaperRow,
};

use super::super::bench::MeasurementHost;
use super::super::printed::MeasuredTable;
use super::contention::CoRunner;
use super::evaluation::{Scenario, SubjectRuns, rig, runs};
use super::figures::{completions, gain_rows, gains, how, miss_rows, monitor_rows, table};
use super::late_jobs;
use super::outcome::ProcessOutcome;
use super::smt_methods::SmtMethod;

/// A part of Figure 7.
pub(super) struct FigurePart {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    number: &'static str,
    kind: CoRunner,
}

/// Figure 7, (a) to (c).
pub(super) const FIGURE_7: [FigurePart; 3] = [
    FigurePart {
        id: "figure-7a",
        title: "Completion times beside an integer product",
        number: "7a",
        kind: CoRunner::Integer,
    },
    FigurePart {
        id: "figure-7b",
        title: "Completion times beside a floating-point product",
        number: "7b",
        kind: CoRunner::Float,
    },
    FigurePart {
        id: "figure-7c",
        title: "Completion times beside a compilation",
        number: "7c",
        kind: CoRunner::Compile,
    },
];
pub(super) const ID_8: &str = "figure-8";
pub(super) const TITLE_8: &str = "Completion times without reported progress, beside a compilation";
pub(super) const ID_9: &str = "figure-9";
pub(super) const TITLE_9: &str = "Best-effort throughput relative to SMT disabled";
pub(super) const ID_10: &str = "figure-10";
pub(super) const TITLE_10: &str = "Completion times of an encoder by itself";
pub(super) const ID_11: &str = "figure-11";
pub(super) const TITLE_11: &str = "Completion times of an encoder beside a compilation";
pub(super) const ID_12: &str = "figure-12";
pub(super) const TITLE_12: &str =
    "Best-effort throughput beside an encoder, relative to SMT disabled";

/// The ways of Figure 7, of Figure 8, and of Figure 11.
const REPORTED: [SmtMethod; 3] = [SmtMethod::Ignore, SmtMethod::Disable, SmtMethod::Word];
const UNREPORTED: [SmtMethod; 2] = [SmtMethod::Instructions, SmtMethod::CpuTime];
const FOUR: [SmtMethod; 5] = [
    SmtMethod::Ignore,
    SmtMethod::Word,
    SmtMethod::Instructions,
    SmtMethod::CpuTime,
    SmtMethod::Disable,
];
const MONITORS: [SmtMethod; 3] = [SmtMethod::Word, SmtMethod::Instructions, SmtMethod::CpuTime];

pub(super) fn figure_7a(bench: &MeasurementHost) -> Option<MeasuredTable> {
    figure_7(bench, &FIGURE_7[0])
}

pub(super) fn figure_7b(bench: &MeasurementHost) -> Option<MeasuredTable> {
    figure_7(bench, &FIGURE_7[1])
}

pub(super) fn figure_7c(bench: &MeasurementHost) -> Option<MeasuredTable> {
    figure_7(bench, &FIGURE_7[2])
}

fn figure_7(bench: &MeasurementHost, part: &FigurePart) -> Option<MeasuredTable> {
    let shown = CompletionFigure {
        names: (part.id, part.title, part.number),
        subject: Scenario::Product(part.kind),
        ways: &REPORTED,
        notes: stand_in(part.kind),
    };
    shown.by_period(bench)
}

pub(super) fn figure_8(bench: &MeasurementHost) -> Option<MeasuredTable> {
    let mut notes = stand_in(CoRunner::Compile);
    notes.push(CPU_TIME.to_owned());
    let subject = Scenario::Product(CoRunner::Compile);
    CompletionFigure { names: (ID_8, TITLE_8, "8"), subject, ways: &UNREPORTED, notes }
        .by_period(bench)
}

pub(super) fn figure_10(bench: &MeasurementHost) -> Option<MeasuredTable> {
    let notes = vec![FRAMES.to_owned()];
    let subject = Scenario::VideoAlone;
    CompletionFigure { names: (ID_10, TITLE_10, "10"), subject, ways: &[SmtMethod::Ignore], notes }
        .by_period(bench)
}

pub(super) fn figure_11(bench: &MeasurementHost) -> Option<MeasuredTable> {
    let mut notes = vec![FRAMES.to_owned()];
    notes.extend(stand_in(CoRunner::Compile));
    CompletionFigure {
        names: (ID_11, TITLE_11, "11"),
        subject: Scenario::Video,
        ways: &FOUR,
        notes,
    }
    .by_period(bench)
}

const CPU_TIME: &str = "CPU time counts fully while the others stand, and beside them as much as is \
    certain: nine tenths of the emulator's rate, nothing on hardware threads.";
const FRAMES: &str = "The frames are no video: each computes for a time that is drawn with the seed \
    2006, as the paper describes its frames. A quick run takes 72 of the 900, with one change of scene.";

fn stand_in(kind: CoRunner) -> Vec<String> {
    let text = "The compilation is a stand-in that looks words up in a table and waits 1 ms after every 8 ms of \
                work, as for a disk: a compiler can neither be slowed by the emulator nor say when it runs.";
    if kind == CoRunner::Compile { vec![text.to_owned()] } else { Vec::new() }
}

/// That other programs ran, if they did.
fn busy(bench: &MeasurementHost) -> Option<String> {
    let load = bench.load.filter(|load| *load >= BUSY)?;
    Some(format!(
        "Other programs ran here (load average {load:.1}). What they take of the CPUs the co-runners lack, under \
         every policy, and who lacks it slows nobody; what they do to caches and to the host slows all."
    ))
}

/// From this load average on, throughput is also that of other programs.
const BUSY: f64 = 0.5;

/// A figure of completion times.
struct CompletionFigure<'a> {
    /// Of the table: its name and title; the figure's number.
    names: (&'static str, &'static str, &'static str),
    subject: Scenario,
    ways: &'a [SmtMethod],
    notes: Vec<String>,
}

impl CompletionFigure<'_> {
    fn by_period(self, bench: &MeasurementHost) -> Option<MeasuredTable> {
        let (id, title, number) = self.names;
        let rig = rig(bench);
        let runs = runs(bench, self.subject)?;
        let how = how(rig, self.subject);
        let mut rows = miss_rows(runs, self.ways, how);
        rows.extend(monitor_rows(runs, self.ways, how));
        let counted = match self.subject {
            Scenario::Product(_) => "period",
            Scenario::VideoAlone | Scenario::Video => "frame",
        };
        let note = match rig {
            _ if self.subject == Scenario::VideoAlone => String::new(),
            Ok(rig) if rig.emulated => "Contention is emulated.".to_owned(),
            Ok(_) => "On hardware threads of one core.".to_owned(),
            Err(_) => String::new(),
        };
        let figure = completions((number, title), counted, runs, self.ways, note);
        let (jobs, _) = self.subject.jobs(bench.effort);
        let what = (self.subject, rig, jobs.jobs.len());
        let difference = difference(runs, self.ways);
        let mut notes = self.notes;
        notes.extend(busy(bench));
        let table = table((id, title), what, rows, difference, notes);
        Some(MeasuredTable { table, figure: Some(figure) })
    }
}

/// Whether deadlines hold where they should.
fn difference(runs: &SubjectRuns, ways: &[SmtMethod]) -> String {
    let found = |way: &SmtMethod| match runs.here(*way) {
        Some(Ok(outcome)) => Some((*way, outcome)),
        _ => None,
    };
    let broken: Vec<String> = ways
        .iter()
        .filter(|way| **way != SmtMethod::Ignore)
        .filter_map(found)
        .filter(|(_, outcome)| outcome.missed() > 0)
        .map(|(way, outcome)| {
            let ProcessOutcome { periods, .. } = outcome;
            let preempted = match outcome.preempted() {
                0 => String::new(),
                count => {
                    format!(" ({count} late jobs lost their CPU to threads of a higher priority)")
                }
            };
            let looks = if way.monitors() {
                format!(", looking up to {:.2} ms late", outcome.latest_look_ns as f64 / 1e6)
            } else {
                String::new()
            };
            let name = way.name();
            format!("{name} misses {} of {periods} periods{preempted}{looks}", outcome.missed())
        })
        .collect();
    let ignored =
        found(&SmtMethod::Ignore).filter(|_| ways.contains(&SmtMethod::Ignore) && ways.len() > 1);
    let ignored = ignored.map_or(String::new(), |(_, outcome)| ignored_words(outcome));
    if let ([SmtMethod::Ignore], Some((_, alone))) = (ways, found(&SmtMethod::Ignore)) {
        return match alone.missed() {
            0 => "None: without co-runners no deadline is missed.".to_owned(),
            missed => {
                format!("Without co-runners {missed} of {} periods are missed.", alone.periods)
            }
        };
    }
    let excused = late_jobs::excused_words(runs, ways);
    if broken.is_empty() {
        let held = "No deadline is missed where others are disabled or slack is monitored, as in the paper.";
        let any = ways.iter().any(|way| *way != SmtMethod::Ignore && found(way).is_some());
        let held = if any { held } else { "" };
        return format!("{ignored}{held}{excused}").trim().to_owned();
    }
    format!(
        "{ignored}Other than in the paper, {}; programs of a higher priority or a host that slows the \
         CPU for less than 0.3 ms at a time may be behind it.{excused}",
        broken.join(", ")
    )
}

fn ignored_words(outcome: &ProcessOutcome) -> String {
    if outcome.best_effort_ns > 0.0 && outcome.missed() == 0 {
        // As on a machine where others have the CPUs that the co-runners want.
        return "Other than in the paper, no deadline is missed where the scheduler ignores SMT: the co-runners had \
                too little of the CPUs to slow the process, and that deadlines hold under the other policies shows little. "
            .to_owned();
    }
    let percent = outcome.missed_percent();
    format!("Where the scheduler ignores SMT, {percent:.0} % of periods are missed. ")
}

/// Figure 9.
pub(super) fn figure_9(bench: &MeasurementHost) -> Option<MeasuredTable> {
    let mut subjects = Vec::new();
    for kind in CoRunner::ALL {
        let subject = Scenario::Product(kind);
        subjects.push((kind.name(), Some(kind.paper_gain()), runs(bench, subject)?));
    }
    let mut notes = vec![
        "The paper gives one number for both of its implementations. The emulator's rates are those \
         with which the simulated gain of the reported one is the paper's."
            .to_owned(),
    ];
    notes.extend(stand_in(CoRunner::Compile));
    let first = Scenario::Product(CoRunner::Integer);
    Some(throughput(bench, (ID_9, TITLE_9, "9"), first, &subjects, notes))
}

/// Figure 12.
pub(super) fn figure_12(bench: &MeasurementHost) -> Option<MeasuredTable> {
    let subjects = [(CoRunner::Compile.name(), None, runs(bench, Scenario::Video)?)];
    let mut notes = vec![FRAMES.to_owned()];
    notes.extend(stand_in(CoRunner::Compile));
    Some(throughput(bench, (ID_12, TITLE_12, "12"), Scenario::Video, &subjects, notes))
}

fn throughput(
    bench: &MeasurementHost,
    (id, title, number): (&str, &str, &str),
    subject: Scenario,
    subjects: &[(&str, Option<f64>, &SubjectRuns)],
    notes: Vec<String>,
) -> MeasuredTable {
    let rig = rig(bench);
    let mut notes = notes;
    notes.extend(busy(bench));
    let mut rows: Vec<PaperRow> = Vec::new();
    for (name, paper, runs) in subjects {
        for way in MONITORS {
            let paper = paper.filter(|_| way != SmtMethod::CpuTime);
            rows.extend(gain_rows(name, paper, runs, way, how(rig, subject)));
        }
    }
    let word =
        |at: usize| subjects.iter().filter_map(move |(.., runs)| gains(runs, SmtMethod::Word)[at]);
    let least = word(0).reduce(f64::min);
    let difference = match least {
        Some(least) if least > 1.0 => {
            "As in the paper, the others get more everywhere where slack is monitored.".to_owned()
        }
        Some(least) => format!(
            "Other than in the paper, monitored slack gives the others only {least:.2} times as much: \
             programs beside these had the CPUs, or stopping costs more than slack gives."
        ),
        None => "Nothing can be compared.".to_owned(),
    };
    let (jobs, _) = subject.jobs(bench.effort);
    let what = (subject, rig, jobs.jobs.len());
    let table = table((id, title), what, rows, difference, notes);
    let figure = PaperFigure::Bars(bars((number, title), how(rig, subject), subjects));
    MeasuredTable { table, figure: Some(figure) }
}

fn bars(
    (number, title): (&str, &str),
    how: MeasurementKind,
    subjects: &[(&str, Option<f64>, &SubjectRuns)],
) -> Bars {
    let series = |name: &str, origin, colour, values: Vec<Option<f64>>| BarSeries {
        name: name.to_owned(),
        origin,
        colour,
        values,
    };
    let of = |way: SmtMethod, at: usize| {
        subjects.iter().map(|(.., runs)| gains(runs, way)[at]).collect()
    };
    let mut all = Vec::new();
    if subjects.iter().any(|(_, paper, _)| paper.is_some()) {
        let paper = subjects.iter().map(|(_, paper, _)| *paper).collect();
        all.push(series("monitor, in the paper", CurveOrigin::Paper, 11, paper));
    }
    for way in MONITORS {
        let found = if how == MeasurementKind::Emulated { "emulated" } else { "measured" };
        let name = format!("{}, {found}", way.name());
        all.push(series(&name, CurveOrigin::Here, way.colour(), of(way, 0)));
        if way.simulated().is_some() {
            let name = format!("{}, simulated", way.name());
            all.push(series(&name, CurveOrigin::Simulated, way.colour(), of(way, 1)));
        }
    }
    all.retain(|series| series.values.iter().any(Option::is_some));
    Bars {
        id: number.to_owned(),
        title: title.to_owned(),
        up: "throughput, times that with SMT disabled".to_owned(),
        groups: subjects.iter().map(|(name, ..)| (*name).to_owned()).collect(),
        series: all,
    }
}
