//! What the paper's runs have in common here: threads from words, a run without a folder, its
//! inferences as rows.
//!
//! Owns: how a run of the paper is made and how its numbers become rows. Must not: know a table.

use std::time::Instant;

use hourglass_documents::CpuSet;
use hourglass_documents::document::Warning;
use hourglass_documents::inference::Inference;
use hourglass_documents::paper::{PaperRow, TraceFigure, TracePiece};
use hourglass_measure::experiment::{self, ExperimentObserver, Finished, RunFailure, RunOptions};
use hourglass_time::Span;
use hourglass_trace::Interval;
use hourglass_trace::inferences::CostEstimate;
use hourglass_workload::{RunSpec, ThreadSpec, models, wake};

use super::super::bench::MeasurementHost;
use super::super::costs::measuring_cpu;
use super::super::printed::{Line, Values};
use super::super::rows::{NumberResult, measured};

/// Records of a run, and of each second of it: enough for something that interrupts every 30 µs.
const RECORDS: u64 = 100_000;
const RECORDS_PER_SECOND: u64 = 33_000;

/// Others may take this share of the CPU without a word.
const OTHERS: f64 = 0.03;

pub(super) const US: f64 = 1e3;

/// The CPU that the paper's runs have here; its machine had one.
pub(super) fn measured_cpu() -> u32 {
    measuring_cpu().unwrap_or(0)
}

pub(super) fn values(cpu: u32, duration: Span) -> Values {
    Values::default().with("cpu", u64::from(cpu)).with("duration", duration.to_string())
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

pub(super) fn why(failure: &RunFailure) -> String {
    match failure {
        RunFailure::Refused(refusals) => refusals.first().map_or_else(
            || failure.to_string(),
            |refused| format!("{}: {}; {}", refused.what, refused.reason, refused.remedy),
        ),
        _ => failure.to_string(),
    }
}

pub(super) fn inferred<'a>(
    finished: &'a Finished,
    name: &str,
    thread: Option<u32>,
    statistic: &str,
) -> Option<&'a Inference> {
    let all = finished.document.result.inferences.iter();
    { all }.find(|i| i.name == name && i.thread == thread && i.statistic == statistic)
}

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

pub(super) fn inferred_row(
    name: &str,
    unit: &str,
    paper: Option<f64>,
    inference: Option<&Inference>,
) -> PaperRow {
    let scale = if unit == "%" { 100.0 } else { 1.0 };
    let found = inference.map(|inference| (inference.value * scale, inference.count));
    measured(name, unit, paper, found.ok_or_else(|| "the trace does not say".to_owned()))
}

pub(super) fn cost_rows(line: &Line, cost: Option<&CostEstimate>) -> Vec<PaperRow> {
    let none = "no such switch was seen";
    let atypical =
        "too few gaps are near the shortest: most held the turn of another program; end others";
    let typical = cost.filter(|cost| cost.representative);
    let why = if cost.is_some() { atypical } else { none };
    let number =
        |of: Option<&CostEstimate>, value: fn(&CostEstimate) -> f64, why: &str| -> NumberResult {
            of.map(|cost| (value(cost), cost.count)).ok_or_else(|| why.to_owned())
        };
    let aside = cost.map(|cost| {
        let all = cost.count + cost.set_aside;
        (cost.set_aside as f64 * 100.0 / all as f64, all)
    });
    let median = number(typical, |cost| cost.median.value, why);
    [
        ("fastest", "us", None, number(cost, |cost| cost.fastest_ns as f64, none)),
        ("mode", "us", None, number(typical, |cost| cost.mode_ns as f64, why)),
        ("median", "us", line.printed(0), median),
        ("set aside", "%", None, aside.ok_or_else(|| none.to_owned())),
    ]
    .into_iter()
    .map(|(what, unit, paper, found)| {
        measured(format!("{}: {what}", line.name), unit, paper, found)
    })
    .collect()
}

/// Missed of those missed or hit, in per cent, to a tenth, as the paper counts.
pub(super) fn share(missed: u64, hit: u64) -> Option<f64> {
    let all = missed + hit;
    (all > 0).then(|| (missed as f64 * 1_000.0 / all as f64).round() / 10.0)
}

pub(super) fn paper_share(line: &Line, task: usize) -> Option<f64> {
    share(line.printed(2 * task)? as u64, line.printed(2 * task + 1)? as u64)
}

pub(super) fn paper_meets_all(line: &Line) -> bool {
    [0, 2].iter().all(|column| line.printed(*column).is_none_or(|missed| missed == 0.0))
}

/// A case that should miss nothing is run again while it does.
pub(super) fn most_rounds(line: &Line, bench: &MeasurementHost) -> usize {
    if paper_meets_all(line) { bench.at_most(3, 2) } else { 1 }
}

/// Runs of a case, of which the best counts: what a hypervisor or interrupts take from the CPU comes in bursts and
/// is no property of a remedy; what a remedy misses by itself, it misses in each run.
#[derive(Debug)]
pub(super) struct Rounds<T> {
    /// The one with the fewest periods missed or lost.
    pub(super) best: T,
    late: Vec<u64>,
}

impl<T> Rounds<T> {
    /// Runs until nothing is late, at most so often. `None` if a signal ended one.
    pub(super) fn run<E>(
        most: usize,
        late: fn(&T) -> u64,
        mut once: impl FnMut() -> Result<Option<T>, E>,
    ) -> Result<Option<Rounds<T>>, E> {
        let Some(best) = once()? else { return Ok(None) };
        let mut rounds = Rounds { late: vec![late(&best)], best };
        while rounds.late.len() < most && late(&rounds.best) > 0 {
            let Some(next) = once()? else { return Ok(None) };
            rounds.late.push(late(&next));
            if late(&next) < late(&rounds.best) {
                rounds.best = next;
            }
        }
        Ok(Some(rounds))
    }

    pub(super) fn note(&self, case: &str) -> Option<String> {
        let [before @ .., last] = &self.late[..] else { return None };
        let before: Vec<String> = before.iter().map(u64::to_string).collect();
        (!before.is_empty()).then(|| {
            format!(
                "{case}: the best of {} runs, in which {} and {last} periods were missed or lost; a run \
                 is repeated because what others than these threads take from the CPU comes in bursts.",
                self.late.len(),
                before.join(", ")
            )
        })
    }
}

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

#[cfg(test)]
mod tests {
    use hourglass_trace::IntervalStart;

    use super::super::tests::table;
    use super::*;

    #[test]
    fn threads_from_words() {
        let spec = thread("PERIODIC 4ms 5ms", "RTHIGH", "HR", 3).unwrap();
        assert_eq!(spec.model.to_string(), "PERIODIC 4ms 5ms");
        assert_eq!(spec.policy, hourglass_documents::Policy::Fifo(80));
        assert_eq!(spec.cpus, Some(CpuSet::from_iter([3])));
        assert!(thread("PERIODIC", "RTHIGH", "HR", 0).is_err());
    }

    #[test]
    fn a_segment_and_what_lies_around_it() {
        let interval = |start_ns| Interval::new(0, 0, start_ns, start_ns + 5, IntervalStart::Gap);
        let trace = (0..100).map(|n| interval(n * 10));
        let found = segment("6", "", (500, 600), Vec::new(), trace);
        assert_eq!((found.pieces[0].start_ns, found.pieces.len()), (400, 31));
    }

    #[test]
    fn costs_become_rows() {
        let cost = CostEstimate::of([vec![2_000; 30], vec![90_000; 10]].concat()).unwrap();
        let line = Line { name: "yield".into(), unit: "us".into(), paper: vec![2.19] };
        let rows = cost_rows(&line, Some(&cost));
        let measured: Vec<_> = rows.iter().map(|row| row.measured.unwrap()).collect();
        assert_eq!(measured, [2.0, 2.0, 2.0, 25.0]);
        assert_eq!((rows[2].paper, rows[3].count), (Some(2.19), Some(40)));
        assert!(cost_rows(&line, None).iter().all(|row| row.missing.is_some()));
    }

    /// Section 5.5: a remedy is run until it misses nothing, at most so often; the best run counts, and all are named.
    #[test]
    fn the_best_run_of_a_remedy_counts_and_all_are_named() {
        let rounds = |most, late: &[u64]| {
            let mut late = late.iter().copied();
            Rounds::run(most, |late| *late, || Ok::<_, ()>(late.next())).unwrap()
        };
        let note = |rounds: &Rounds<u64>| rounds.note("17/33");
        let three = rounds(3, &[5, 2, 7, 0]).unwrap();
        assert_eq!(three.best, 2, "three and no more");
        assert!(note(&three).is_some_and(|note| note.contains("5, 2 and 7 periods")));
        let once = rounds(1, &[5, 2]).unwrap();
        assert_eq!((once.best, note(&once)), (5, None), "one run needs no word");
        assert_eq!(rounds(3, &[0, 1]).unwrap().late, [0]);
        assert!(rounds(3, &[5]).is_none(), "a signal leaves nothing");
    }

    /// Sections 5.5 and 5.6: 142 missed and 143 hit; 985 and 12, 106 and 197; then none.
    #[test]
    fn shares_are_the_papers() {
        assert_eq!((share(142, 143), share(0, 1001), share(0, 0)), (Some(49.8), Some(0.0), None));
        let shares = |id| -> Vec<_> {
            let lines = table(id).lines.iter().filter(|line| line.unit == "%");
            lines
                .map(|line| (paper_meets_all(line), [0, 1].map(|task| paper_share(line, task))))
                .collect()
        };
        let none = (true, [Some(0.0), Some(0.0)]);
        assert_eq!(shares("5.5"), [(false, [Some(0.0), Some(49.8)]), none, none]);
        let unknown = (true, [None, None]);
        assert_eq!(shares("5.6"), [(false, [Some(98.8), Some(35.0)]), none, unknown, unknown]);
    }
}
