//! Table 2: deadlines of a real-time thread that needs 4 ms in every 5 ms, during receive processing
//! (section 5.4).

use std::time::{Duration, Instant};

use hourglass_infer::inferences::{MissedShare, missed};
use hourglass_model::paper::{MeasurementKind, PaperRow};
use hourglass_time::Span;

use super::super::bench::MeasurementHost;
use super::super::printed::MeasuredTable;
use super::super::rows::without_figure;
use super::runs::{self, SideCounts, row};
use super::table_1::way;
use crate::load::{NetworkLoad, Path};

pub(super) const ID: &str = "2";
pub(super) const TITLE: &str = "Deadlines of a real-time thread during receive processing";

const FULL: Span = Span::from_secs(20);
const QUICK: Span = Span::from_secs(2);

/// How often it is looked whether to end while only the load runs.
const LOOK: Duration = Duration::from_millis(50);

/// The thread: FIFO 80, which leaves a fifth of one CPU to all others, more than throttling takes.
pub(super) const TASK: &str = "PERIODIC 4ms 5ms";
const LONGER: &str = "PERIODIC 8ms 10ms";

/// A line of the table.
struct Line {
    name: &'static str,
    workload: Option<&'static str>,
    loaded: bool,
    /// Missed deadlines in per cent and throughput in Mbps; plain Linux where there are several.
    paper: (Option<f64>, Option<f64>),
}

/// In the order in which they are measured.
const LINES: [Line; 4] = [
    Line {
        name: "control 1, 4/5 ms alone",
        workload: Some(TASK),
        loaded: false,
        paper: (Some(0.0), None),
    },
    Line {
        name: "control 2, stream alone",
        workload: None,
        loaded: true,
        paper: (None, Some(94.0)),
    },
    Line {
        name: "4/5 ms and stream",
        workload: Some(TASK),
        loaded: true,
        paper: (Some(33.0), Some(68.0)),
    },
    Line {
        name: "8/10 ms and stream",
        workload: Some(LONGER),
        loaded: true,
        paper: (Some(0.0), Some(52.0)),
    },
];

/// What was found of a line.
#[derive(Default)]
struct LineResult {
    missed: Option<(MissedShare, u64)>,
    megabits: Option<f64>,
    path: Option<Path>,
    why: String,
}

pub(super) fn measure(bench: &MeasurementHost) -> Option<MeasuredTable> {
    let duration = runs::duration(bench, FULL, QUICK);
    let cpu = runs::measured_cpu();
    let (mut rows, mut notes) = (Vec::new(), notes());
    let mut found = Vec::new();
    for line in &LINES {
        let one = measure_line(line, cpu, duration, bench.stopped)?;
        rows.extend(line_rows(line, &one));
        found.push(one);
    }
    let mut ways: Vec<String> =
        found.iter().filter_map(|one| one.path.as_ref().and_then(way)).collect();
    ways.dedup();
    notes.extend(ways);
    notes.extend(LINES.iter().zip(&found).filter_map(|(line, one)| interval(line, one)));
    let method = format!(
        "hourglass -d {duration} -n 1 -t 0 -p RTHIGH -w PERIODIC 4ms 5ms -i HR on CPU {cpu}, alone, \
         beside a TCP stream at full speed that is received there over a pair of virtual Ethernet \
         devices, and with 8 ms of 10; missed are shares of the periods that were hit, missed or lost"
    );
    let difference = difference(&found);
    Some(without_figure(runs::table((ID, TITLE), method, rows, difference, notes)))
}

/// `None` if a signal ended it.
fn measure_line(
    line: &Line,
    cpu: u32,
    duration: Span,
    stopped: fn() -> bool,
) -> Option<LineResult> {
    let load = match line.loaded.then(|| NetworkLoad::onto(cpu)).transpose() {
        Ok(load) => load,
        Err(why) => return Some(LineResult { why, ..LineResult::default() }),
    };
    let path = load.as_ref().map(|load| load.path().clone());
    let received = || load.as_ref().map_or(0, NetworkLoad::received_bytes);
    let Some(workload) = line.workload else {
        let beside = count_for(duration, &received, stopped)?;
        return Some(LineResult { megabits: megabits(beside), path, ..LineResult::default() });
    };
    let ran = runs::thread(workload, "RTHIGH", "HR", cpu)
        .and_then(|thread| runs::run(vec![thread], duration, &received));
    match ran {
        Err(why) => Some(LineResult { why, ..LineResult::default() }),
        Ok(ran) => {
            let (finished, beside) = ran?;
            let deadlines = finished.document.result.threads.first().and_then(|t| t.deadlines);
            let share = deadlines.and_then(|d| {
                let all = d.hit + d.missed + d.lost;
                Some((missed(d.hit, d.missed, d.lost)?, all))
            });
            let megabits = megabits(beside).filter(|_| line.loaded);
            Some(LineResult { missed: share, megabits, path, why: String::new() })
        }
    }
}

/// Counts for a given time; `None` if it was stopped.
fn count_for(
    duration: Span,
    counter: &dyn Fn() -> u64,
    stopped: fn() -> bool,
) -> Option<SideCounts> {
    let length = Duration::from_nanos(duration.nanos_or_zero());
    let (begin, before) = (Instant::now(), counter());
    while begin.elapsed() < length {
        if stopped() {
            return None;
        }
        std::thread::sleep(LOOK.min(length.saturating_sub(begin.elapsed())));
    }
    let seconds = begin.elapsed().as_secs_f64();
    Some(SideCounts { counted: counter().saturating_sub(before), seconds })
}

/// Millions of bits a second.
fn megabits(beside: SideCounts) -> Option<f64> {
    (beside.seconds > 0.0).then(|| beside.counted as f64 * 8.0 / 1e6 / beside.seconds)
}

fn line_rows(line: &Line, found: &LineResult) -> Vec<PaperRow> {
    let why = if found.why.is_empty() { "no period came to its end" } else { &found.why };
    let mut rows = Vec::new();
    if line.workload.is_some() {
        let number = found.missed.map(|(share, all)| (share.late.value * 100.0, all));
        let name = format!("{}: missed", line.name);
        rows.push(row(&name, line.paper.0, ("%", 1.0), number, why));
    }
    if line.loaded {
        let number = found.megabits.map(|megabits| (megabits, 1));
        let name = format!("{}: throughput", line.name);
        let row = row(&name, line.paper.1, ("Mbps", 1.0), number, why);
        let by_loopback = matches!(found.path, Some(Path::Loopback(_)));
        rows.push(PaperRow {
            how: if by_loopback { MeasurementKind::Emulated } else { row.how },
            ..row
        });
    }
    rows
}

fn interval(line: &Line, found: &LineResult) -> Option<String> {
    let (share, all) = found.missed?;
    let percent = |share: f64| format!("{:.2}", share * 100.0);
    let late = share.late;
    Some(format!(
        "{}: {} % of {all} periods, 95 % interval from {} to {}.",
        line.name,
        percent(late.value),
        percent(late.lo),
        percent(late.hi)
    ))
}

fn notes() -> Vec<String> {
    [
        "The paper's other kernels under the stream: 2.4.17 RML misses 0.4 % at 66 Mbps, 2.4.7 TimeSys \
         0.0 % at 59 Mbps. With 8/10 ms plain Linux meets essentially all.",
        "The paper's stream is limited by Ethernet of 100 Mbps; this one by the processor, so that \
         receive processing takes all that it can get.",
    ]
    .map(String::from)
    .into()
}

/// Whether receive processing makes the task miss, and what the task takes from the stream.
fn difference(found: &[LineResult]) -> String {
    let [alone, stream, both, _] = found else { return String::new() };
    let late = |found: &LineResult| found.missed.map(|(share, _)| share.late);
    let Some((before, with)) = late(alone).zip(late(both)) else {
        return "The task or the stream was refused, so that nothing can be compared.".to_owned();
    };
    let verdict = if with.lo > before.hi {
        "Here too, receive processing makes the task miss deadlines"
    } else {
        "Unlike in the paper, receive processing does not measurably make the task miss deadlines here"
    };
    let kept = both.megabits.zip(stream.megabits).map(|(with, alone)| with / alone * 100.0);
    let kept = kept.map_or(String::new(), |kept| {
        format!("; {kept:.0} % of the throughput is left beside it, in the paper 72 %")
    });
    format!(
        "{verdict}: {:.1} % against {:.1} % alone{kept}.",
        with.value * 100.0,
        before.value * 100.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(hit: u64, missed_ones: u64, megabits: f64) -> LineResult {
        LineResult {
            missed: missed(hit, missed_ones, 0).map(|share| (share, hit + missed_ones)),
            megabits: Some(megabits),
            path: Some(Path::Veth),
            why: String::new(),
        }
    }

    /// The paper's own numbers, as if they had been measured here.
    #[test]
    fn the_papers_table() {
        let papers = [
            LineResult { megabits: None, path: None, ..found(4_000, 0, 0.0) },
            LineResult { missed: None, ..found(1, 0, 94.0) },
            found(2_680, 1_320, 68.0),
            found(2_000, 0, 52.0),
        ];
        for (line, found) in LINES.iter().zip(&papers) {
            for row in line_rows(line, found) {
                assert_eq!(row.measured, row.paper, "{}", row.name);
                assert_eq!(row.how, MeasurementKind::Measured);
            }
        }
        let text = difference(&papers);
        assert!(text.contains("makes the task miss") && text.contains("72 % of the"), "{text}");
    }

    #[test]
    fn what_is_not_measurable_is_not_claimed() {
        let same = [found(400, 1, 0.0), found(1, 0, 94.0), found(400, 1, 90.0), found(9, 0, 9.0)];
        assert!(difference(&same).starts_with("Unlike in the paper"));
        let refused = LineResult { why: "no privilege".to_owned(), ..LineResult::default() };
        let rows = line_rows(&LINES[2], &refused);
        assert!(rows.iter().all(|row| row.missing.as_deref() == Some("no privilege")));
        assert_eq!(megabits(SideCounts { counted: 1, seconds: 0.0 }), None);
    }
}
