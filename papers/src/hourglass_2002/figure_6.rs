//! Figure 6: what receive processing does to the execution of a periodic real-time thread (section 5.4).

use hourglass_documents::paper::{PaperFigure, PaperRow};
use hourglass_time::Span;
use hourglass_trace::Interval;

use super::super::bench::MeasurementHost;
use super::super::printed::{MeasuredTable, Table};
use super::super::rows::measured;
use super::runs::{self, inferred, inferred_row};
use super::table_1::no_namespace;
use super::table_2::TASK;
use crate::load::NetworkLoad;

/// The segment is as long as the paper's; the run around it lets the stream find its speed.
const SEGMENT_NS: i64 = 25_000_000;
const FULL: Span = Span::from_secs(5);
const QUICK: Span = Span::from_secs(1);

pub(super) fn measure(table: &Table, bench: &MeasurementHost) -> Option<MeasuredTable> {
    let duration = bench.at_most(FULL, QUICK);
    let cpu = runs::measured_cpu();
    let load = NetworkLoad::onto(cpu);
    let way = load.as_ref().ok().and_then(|load| no_namespace(load.path()));
    let values = runs::values(cpu, duration).with_some("no namespace", way);
    let ran = load.as_ref().map_err(Clone::clone).and_then(|load| {
        let thread = runs::thread(TASK, "RTHIGH", "HR", cpu)?;
        runs::run(vec![thread], duration, &|| load.received_bytes())
    });
    let (finished, _) = match ran {
        Ok(ran) => ran?,
        Err(why) => {
            let rows = vec![measured("interruptions in a segment", "gaps", None, Err(why))];
            return Some(table.with_rows(rows, values));
        }
    };
    let from = duration.nanos() / 2;
    let range = (from, from + SEGMENT_NS);
    let mut rows = segment_rows(&lost(finished.intervals(), range));
    for (name, unit, inference, statistic) in [
        ("an interruption, median, whole run", "us", "interrupt_cost", "median"),
        ("interruptions a second, whole run", "1/s", "interrupts", "rate"),
        ("lost to them of all time, whole run", "%", "interrupts", "share"),
    ] {
        let inference = inferred(&finished, inference, Some(0), statistic);
        rows.push(inferred_row(name, unit, None, inference));
    }
    let title = "a periodic real-time thread during receive processing";
    let labels = vec![(0, TASK.to_owned())];
    let figure = runs::segment("6", title, range, labels, finished.intervals());
    let measured = table.with_rows(rows, values.with_if("ran", true));
    Some(measured.with_figure(PaperFigure::Trace(figure)))
}

/// Lengths of the gaps within periods that lie in a segment, ns.
fn lost(trace: impl Iterator<Item = Interval>, (from, to): (i64, i64)) -> Vec<u64> {
    let mut end = None;
    let mut found = Vec::new();
    for interval in trace {
        let before = end.replace(interval.end_ns);
        let inside = (from..to).contains(&interval.start_ns);
        if let Some(before) = before.filter(|_| inside && interval.onset.is_gap()) {
            found.push(u64::try_from(interval.start_ns - before).unwrap_or(0));
        }
    }
    found
}

fn segment_rows(cut: &[u64]) -> Vec<PaperRow> {
    let count = cut.len() as u64;
    let sum: u64 = cut.iter().sum();
    let longest = cut.iter().max().map(|longest| (*longest as f64, count));
    vec![
        measured("interruptions in the segment", "gaps", None, Ok((count as f64, count))),
        measured("lost to them in the segment", "us", None, Ok((sum as f64, count))),
        measured(
            "longest in the segment",
            "us",
            None,
            longest.ok_or_else(|| "there is none".into()),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use hourglass_trace::IntervalStart;

    use super::*;

    #[test]
    fn what_cuts_a_segment() {
        let interval = |start_ns, end_ns, onset| Interval::new(0, 0, start_ns, end_ns, onset);
        let trace = [
            interval(0, 90, IntervalStart::Start),
            interval(95, 105, IntervalStart::Gap),
            interval(125, 130, IntervalStart::Gap),
            interval(150, 160, IntervalStart::Wait),
            interval(163, 170, IntervalStart::Gap),
            interval(230, 240, IntervalStart::Gap),
        ];
        let cut = lost(trace.into_iter(), (100, 200));
        assert_eq!(cut, [20, 3]);
        let rows = segment_rows(&cut);
        let measured: Vec<_> = rows.iter().map(|row| row.measured).collect();
        assert_eq!(measured, [Some(2.0), Some(0.023), Some(0.02)]);
        assert!(segment_rows(&[])[2].missing.is_some());
    }
}
