//! What the paper's runs have in common here: threads from words, a run without a folder, its
//! inferences as rows.
//!
//! Owns: how a run of the paper is made and how its numbers become rows. Must not: know a table.

use std::time::Instant;

use hourglass_documents::CpuSet;
use hourglass_documents::document::Warning;
use hourglass_documents::inference::Inference;
use hourglass_documents::paper::{MeasurementKind, PaperRow, PaperTable, TraceFigure, TracePiece};
use hourglass_measure::experiment::{self, ExperimentObserver, Finished, RunFailure, RunOptions};
use hourglass_sys::thread::affinity;
use hourglass_time::Span;
use hourglass_trace::Interval;
use hourglass_trace::inferences::CostEstimate;
use hourglass_workload::{RunSpec, ThreadSpec, models, wake};

use super::super::bench::{MeasurementHost, MeasurementSize};
use super::super::rows::{beside, found, lacking};

/// Records of a run, and of each second of it: enough for something that interrupts every 30 µs.
const RECORDS: u64 = 100_000;
const RECORDS_PER_SECOND: u64 = 33_000;

/// Others may take this share of the CPU without a word.
const OTHERS: f64 = 0.03;

/// Nanoseconds in a microsecond, and in a millisecond.
pub(super) const US: f64 = 1e3;
pub(super) const MS: f64 = 1e6;

/// How long a run takes: as in the paper, or what suffices to see its point.
pub(super) fn duration(bench: &MeasurementHost, full: Span, quick: Span) -> Span {
    at_most(bench, full, quick)
}

/// What a whole measurement may take, or a quick one: a time, or a number of runs.
pub(super) fn at_most<T>(bench: &MeasurementHost, full: T, quick: T) -> T {
    match bench.effort {
        MeasurementSize::Quick => quick,
        MeasurementSize::Full => full,
    }
}

/// The CPU that the paper's runs have here; its machine had one. The last, since interrupts of devices
/// go to the first.
pub(super) fn measured_cpu() -> u32 {
    affinity().ok().and_then(|cpus| cpus.last().copied()).unwrap_or(0)
}

/// A thread as the paper's options write it: `-w`, `-p`, `-i`.
pub(super) fn thread(
    workload: &str,
    policy: &str,
    timer: &str,
    cpu: u32,
) -> Result<ThreadSpec, String> {
    let words: Vec<&str> = workload.split_whitespace().collect();
    let bad = |error: &dyn std::fmt::Display| error.to_string();
    Ok(ThreadSpec {
        model: models::parse(&words).map_err(|error| bad(&error))?,
        wake: wake::parse(timer).map_err(|error| bad(&error))?,
        policy: policy.parse().map_err(|error| bad(&error))?,
        cpus: Some(CpuSet::from_iter([cpu])),
        ..ThreadSpec::default()
    })
}

/// What is counted beside a run, such as bytes received, and for how long the run went on.
#[derive(Clone, Copy, Debug)]
pub(super) struct SideCounts {
    pub(super) counted: u64,
    pub(super) seconds: f64,
}

/// Runs threads; `counter` is read at the run's start and end. `None` if a signal ended it.
///
/// # Errors
/// One line that says why there was no run, and what would mend that.
pub(super) fn run(
    threads: Vec<ThreadSpec>,
    duration: Span,
    counter: &dyn Fn() -> u64,
) -> Result<Option<(Finished, SideCounts)>, String> {
    run_spec(spec(threads, duration), counter)
}

/// The same, which emulates or goes without what the machine refuses.
///
/// # Errors
/// As [`run`].
pub(super) fn run_degraded(
    threads: Vec<ThreadSpec>,
    duration: Span,
    counter: &dyn Fn() -> u64,
) -> Result<Option<(Finished, SideCounts)>, String> {
    run_spec(RunSpec { best_effort: true, ..spec(threads, duration) }, counter)
}

fn spec(threads: Vec<ThreadSpec>, duration: Span) -> RunSpec {
    let seconds = duration.nanos_or_zero() / 1_000_000_000;
    let records = RECORDS + RECORDS_PER_SECOND * seconds;
    RunSpec { duration, records, ..RunSpec::new(threads) }
}

fn run_spec(
    spec: RunSpec,
    counter: &dyn Fn() -> u64,
) -> Result<Option<(Finished, SideCounts)>, String> {
    let request = RunOptions::new(spec);
    let mut counting = CounterWindow { counter, begin: None, end: None };
    let finished = experiment::run(request, &mut counting).map_err(|failure| why(&failure))?;
    if finished.signal().is_some() {
        return Ok(None);
    }
    let beside = match (counting.begin, counting.end) {
        (Some((before, begin)), Some((after, end))) => SideCounts {
            counted: after.saturating_sub(before),
            seconds: end.duration_since(begin).as_secs_f64(),
        },
        _ => SideCounts { counted: 0, seconds: 0.0 },
    };
    Ok(Some((finished, beside)))
}

/// Reads a counter when a run begins and when it ends.
struct CounterWindow<'a> {
    counter: &'a dyn Fn() -> u64,
    begin: Option<(u64, Instant)>,
    end: Option<(u64, Instant)>,
}

impl ExperimentObserver for CounterWindow<'_> {
    fn warn(&mut self, _warnings: &[Warning]) {}
    fn started(&mut self, _duration: Span, _ticking: bool) {
        self.begin = Some(((self.counter)(), Instant::now()));
    }
    fn tick(&mut self, _elapsed: Span) {}
    fn ended(&mut self) {
        self.end = Some(((self.counter)(), Instant::now()));
    }
}

fn why(failure: &RunFailure) -> String {
    match failure {
        RunFailure::Refused(refusals) => refusals.first().map_or_else(
            || failure.to_string(),
            |refused| format!("{}: {}; {}", refused.what, refused.reason, refused.remedy),
        ),
        _ => failure.to_string(),
    }
}

/// What was inferred of a run by that name.
pub(super) fn inferred<'a>(
    finished: &'a Finished,
    name: &str,
    thread: Option<u32>,
    statistic: &str,
) -> Option<&'a Inference> {
    let all = finished.document.result.inferences.iter();
    { all }.find(|i| i.name == name && i.thread == thread && i.statistic == statistic)
}

/// That other programs took part of a CPU that threads of a run wanted all the time, if they did.
pub(super) fn others(finished: &Finished) -> Option<String> {
    let all = finished.document.result.inferences.iter();
    let taken: f64 = all.filter(|i| i.name == "cpu_share").map(|share| share.value).sum();
    (taken < 1.0 - OTHERS).then(|| {
        format!(
            "Other programs had {:.0} % of the CPU: gaps and intervals hold their turns too.",
            (1.0 - taken) * 100.0
        )
    })
}

/// A row of a number that was inferred, converted from the unit of the inference.
pub(super) fn row(
    name: &str,
    paper: Option<f64>,
    (unit, length): (&str, f64),
    number: Option<(f64, u64)>,
    why_not: &str,
) -> PaperRow {
    beside(
        paper,
        match number {
            Some((value, count)) => {
                found(name.to_owned(), value / length, unit, MeasurementKind::Measured, count)
            }
            None => lacking(name.to_owned(), unit, MeasurementKind::Measured, why_not),
        },
    )
}

/// The same of an inference.
pub(super) fn inferred_row(
    name: &str,
    paper: Option<f64>,
    unit: (&str, f64),
    inference: Option<&Inference>,
) -> PaperRow {
    let number = inference.map(|inference| (inference.value, inference.count));
    row(name, paper, unit, number, "the trace does not say")
}

/// Rows of a cost, in microseconds: fastest, mode, median, and which share was set aside.
pub(super) fn cost_rows(
    name: &str,
    paper_median_us: f64,
    cost: Option<&CostEstimate>,
) -> Vec<PaperRow> {
    let none = "no such switch was seen";
    let atypical =
        "too few gaps are near the shortest: most held the turn of another program; end others";
    let us = ("us", US);
    let of = |value: fn(&CostEstimate) -> f64| cost.map(|cost| (value(cost), cost.count));
    let typical = |value: fn(&CostEstimate) -> f64| {
        cost.filter(|cost| cost.representative).map(|cost| (value(cost), cost.count))
    };
    let why = if cost.is_some() { atypical } else { none };
    let aside = |cost: &CostEstimate| cost.set_aside as f64 / (cost.count + cost.set_aside) as f64;
    vec![
        row(&format!("{name}: fastest"), None, us, of(|c| c.fastest_ns as f64), none),
        row(&format!("{name}: mode"), None, us, typical(|c| c.mode_ns as f64), why),
        row(
            &format!("{name}: median"),
            Some(paper_median_us),
            us,
            typical(|c| c.median.value),
            why,
        ),
        row(
            &format!("{name}: set aside"),
            None,
            ("%", 0.01),
            cost.map(|cost| (aside(cost), cost.count + cost.set_aside)),
            none,
        ),
    ]
}

/// A segment of a run's trace.
pub(super) fn segment(
    id: &str,
    title: &str,
    (from_ns, to_ns): (i64, i64),
    threads: Vec<(u32, String)>,
    trace: impl Iterator<Item = Interval>,
) -> TraceFigure {
    // What lies around the segment says how long the gaps at its edges are.
    let around = to_ns - from_ns;
    let near = |i: &Interval| i.end_ns >= from_ns - around && i.start_ns <= to_ns + around;
    let piece = |i: Interval| TracePiece {
        thread: i.thread,
        cpu: i.cpu,
        start_ns: i.start_ns,
        end_ns: i.end_ns,
        onset: i.onset.code(),
    };
    TraceFigure {
        id: id.to_owned(),
        title: title.to_owned(),
        from_ns,
        to_ns,
        threads,
        pieces: trace.filter(near).map(piece).collect(),
    }
}

/// A table of this paper.
pub(super) fn table(
    (id, title): (&str, &str),
    method: String,
    rows: Vec<PaperRow>,
    difference: String,
    notes: Vec<String>,
) -> PaperTable {
    PaperTable {
        id: id.into(),
        title: title.into(),
        paper_machine: "Pentium III of 850 MHz, Linux 2.4.17 unless something else is said".into(),
        method,
        rows,
        decisions: Vec::new(),
        difference,
        notes,
        figure: None,
    }
}

#[cfg(test)]
mod tests {
    use hourglass_trace::IntervalStart;

    use super::*;

    /// The paper's options are read as on its command line, and threads stay on their CPU.
    #[test]
    fn threads_from_words() {
        let spec = thread("PERIODIC 4ms 5ms", "RTHIGH", "HR", 3).unwrap();
        assert_eq!(spec.model.to_string(), "PERIODIC 4ms 5ms");
        assert_eq!(spec.policy, hourglass_documents::Policy::Fifo(80));
        assert_eq!(spec.cpus, Some(CpuSet::from_iter([3])));
        assert!(thread("PERIODIC", "RTHIGH", "HR", 0).is_err());
    }

    /// A segment keeps its own length of the trace on both sides.
    #[test]
    fn a_segment_and_what_lies_around_it() {
        let interval = |start_ns| Interval {
            thread: 0,
            cpu: 0,
            start_ns,
            end_ns: start_ns + 5,
            start_ticks: 0,
            end_ticks: 0,
            onset: IntervalStart::Gap,
            evidence: Default::default(),
        };
        let trace = (0..100).map(|n| interval(n * 10));
        let found = segment("6", "", (500, 600), Vec::new(), trace);
        assert_eq!((found.pieces[0].start_ns, found.pieces.len()), (400, 31));
    }

    #[test]
    fn costs_become_rows() {
        let cost = CostEstimate::of([vec![2_000; 30], vec![90_000; 10]].concat()).unwrap();
        let rows = cost_rows("yield", 2.19, Some(&cost));
        let measured: Vec<_> = rows.iter().map(|row| row.measured.unwrap()).collect();
        assert_eq!(measured, [2.0, 2.0, 2.0, 25.0]);
        assert_eq!((rows[2].paper, rows[3].count), (Some(2.19), Some(40)));
        assert!(cost_rows("yield", 2.19, None).iter().all(|row| row.missing.is_some()));
    }
}
