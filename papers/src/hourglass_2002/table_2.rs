//! Table 2: deadlines of a real-time thread that needs 4 ms in every 5 ms, during receive processing
//! (section 5.4).

use std::time::{Duration, Instant};

use hourglass_documents::paper::{MeasurementKind, PaperRow};
use hourglass_time::Span;
use hourglass_trace::inferences::{MissedShare, missed};

use super::super::bench::MeasurementHost;
use super::super::printed::{MeasuredTable, Table, Values};
use super::super::rows::{NumberResult, row};
use super::runs::{self, SideCounts};
use super::table_1::no_namespace;
use crate::load::{NetworkLoad, Path};

const FULL: Span = Span::from_secs(20);
const QUICK: Span = Span::from_secs(2);

const LOOK: Duration = Duration::from_millis(50);

/// The thread: FIFO 80, which leaves a fifth of one CPU to all others, more than throttling takes.
pub(super) const TASK: &str = "PERIODIC 4ms 5ms";
const LONGER: &str = "PERIODIC 8ms 10ms";

struct Control {
    name: &'static str,
    workload: Option<&'static str>,
    loaded: bool,
}

const CONTROLS: [Control; 4] = [
    Control { name: "control 1, 4/5 ms alone", workload: Some(TASK), loaded: false },
    Control { name: "control 2, stream alone", workload: None, loaded: true },
    Control { name: "4/5 ms and stream", workload: Some(TASK), loaded: true },
    Control { name: "8/10 ms and stream", workload: Some(LONGER), loaded: true },
];

#[derive(Default)]
struct LineResult {
    missed: Option<(MissedShare, u64)>,
    megabits: Option<f64>,
    path: Option<Path>,
    why: String,
}

pub(super) fn measure(table: &Table, bench: &MeasurementHost) -> Option<MeasuredTable> {
    let duration = bench.at_most(FULL, QUICK);
    let cpu = runs::measured_cpu();
    let mut found = Vec::new();
    for control in &CONTROLS {
        found.push(measure_line(control, cpu, duration, bench.stopped)?);
    }
    let lines = || CONTROLS.iter().zip(&found);
    let rows = lines().flat_map(|(of, one)| line_rows(table, of, one)).collect();
    let measured = table.with_rows(rows, texts(&found, runs::values(cpu, duration)));
    Some(measured.with_notes(lines().filter_map(|(of, one)| interval(of, one))))
}

fn measure_line(
    line: &Control,
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

fn megabits(beside: SideCounts) -> Option<f64> {
    (beside.seconds > 0.0).then(|| beside.counted as f64 * 8.0 / 1e6 / beside.seconds)
}

fn line_rows(table: &Table, line: &Control, found: &LineResult) -> Vec<PaperRow> {
    let why = if found.why.is_empty() { "no period came to its end" } else { &found.why };
    let by_loopback = matches!(found.path, Some(Path::Loopback(_)));
    let stream = if by_loopback { MeasurementKind::Emulated } else { MeasurementKind::Measured };
    let missed = found.missed.map(|(share, all)| (share.late.value * 100.0, all));
    let megabits = found.megabits.map(|megabits| (megabits, 1));
    let mut rows = Vec::new();
    for (shown, what, unit, how, number) in [
        (line.workload.is_some(), "missed", "%", MeasurementKind::Measured, missed),
        (line.loaded, "throughput", "Mbps", stream, megabits),
    ] {
        let name = format!("{}: {what}", line.name);
        let (paper, found): (_, NumberResult) =
            (table.printed(&name, 0), number.ok_or_else(|| why.to_owned()));
        rows.extend(shown.then(|| row(name, unit, paper, how, found)));
    }
    rows
}

fn interval(line: &Control, found: &LineResult) -> Option<String> {
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

fn texts(found: &[LineResult], values: Values) -> Values {
    let way = found.iter().find_map(|one| no_namespace(one.path.as_ref()?));
    let values = values.with_some("no namespace", way);
    let [alone, stream, both, _] = found else { return values };
    let late = |found: &LineResult| found.missed.map(|(share, _)| share.late);
    let Some((before, with)) = late(alone).zip(late(both)) else { return values };
    let kept = both.megabits.zip(stream.megabits).map(|(with, alone)| with / alone * 100.0);
    values
        .with_if("worse", with.lo > before.hi)
        .with("with", format!("{:.1}", with.value * 100.0))
        .with("before", format!("{:.1}", before.value * 100.0))
        .with_some("kept", kept.map(|kept| format!("{kept:.0}")))
}

#[cfg(test)]
mod tests {
    use super::super::tests::table;
    use super::*;

    fn difference(found: &[LineResult]) -> String {
        let values = texts(found, Values::default());
        table("2").with_rows(Vec::new(), values).table.difference
    }

    fn found(hit: u64, missed_ones: u64, megabits: f64) -> LineResult {
        LineResult {
            missed: missed(hit, missed_ones, 0).map(|share| (share, hit + missed_ones)),
            megabits: Some(megabits),
            path: Some(Path::Veth),
            why: String::new(),
        }
    }

    #[test]
    fn the_papers_table() {
        let papers = [
            LineResult { megabits: None, path: None, ..found(4_000, 0, 0.0) },
            LineResult { missed: None, ..found(1, 0, 94.0) },
            found(2_680, 1_320, 68.0),
            found(2_000, 0, 52.0),
        ];
        for (line, found) in CONTROLS.iter().zip(&papers) {
            for row in line_rows(table("2"), line, found) {
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
        let rows = line_rows(table("2"), &CONTROLS[2], &refused);
        assert!(rows.iter().all(|row| row.missing.as_deref() == Some("no privilege")));
        assert_eq!(megabits(SideCounts { counted: 1, seconds: 0.0 }), None);
    }
}
