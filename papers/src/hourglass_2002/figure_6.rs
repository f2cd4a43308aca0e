//! Figure 6: what receive processing does to the execution of a periodic real-time thread (section 5.4).

use hourglass_model::Interval;
use hourglass_model::paper::{PaperFigure, PaperRow};
use hourglass_time::Span;

use super::super::bench::MeasurementHost;
use super::super::printed::MeasuredTable;
use super::runs::{self, US, inferred, inferred_row, row};
use super::table_1::way;
use super::table_2::TASK;
use crate::load::NetworkLoad;

pub(super) const ID: &str = "figure-6";
pub(super) const TITLE: &str = "Receive processing and a periodic real-time thread";

/// The segment is as long as the paper's; the run around it lets the stream find its speed.
const SEGMENT_NS: i64 = 25_000_000;
const FULL: Span = Span::from_secs(5);
const QUICK: Span = Span::from_secs(1);

pub(super) fn measure(bench: &MeasurementHost) -> Option<MeasuredTable> {
    let duration = runs::duration(bench, FULL, QUICK);
    let cpu = runs::measured_cpu();
    let method = format!(
        "hourglass -d {duration} -n 1 -t 0 -p RTHIGH -w {TASK} -i HR on CPU {cpu} while a TCP stream at \
         full speed is received there; 25 ms from the middle are drawn"
    );
    let load = NetworkLoad::onto(cpu);
    let ran = load.as_ref().map_err(Clone::clone).and_then(|load| {
        let thread = runs::thread(TASK, "RTHIGH", "HR", cpu)?;
        runs::run(vec![thread], duration, &|| load.received_bytes())
    });
    let (finished, _) = match ran {
        Ok(ran) => ran?,
        Err(why) => {
            let rows = vec![row("interruptions in a segment", None, ("gaps", 1.0), None, &why)];
            let table = runs::table((ID, TITLE), method, rows, String::new(), Vec::new());
            return Some(MeasuredTable { table, figure: None });
        }
    };
    let from = duration.nanos() / 2;
    let range = (from, from + SEGMENT_NS);
    let cut: Vec<u64> = lost(finished.intervals(), range);
    let labels = vec![(0, TASK.to_owned())];
    let figure = runs::segment(
        "6",
        "a periodic real-time thread during receive processing",
        range,
        labels,
        finished.intervals(),
    );
    let mut rows = segment_rows(&cut);
    let all = |name, statistic| inferred(&finished, name, Some(0), statistic);
    rows.push(inferred_row(
        "an interruption, median, whole run",
        None,
        ("us", US),
        all("interrupt_cost", "median"),
    ));
    rows.push(inferred_row(
        "interruptions a second, whole run",
        None,
        ("1/s", 1.0),
        all("interrupts", "rate"),
    ));
    rows.push(inferred_row(
        "lost to them of all time, whole run",
        None,
        ("%", 0.01),
        all("interrupts", "share"),
    ));
    let difference = "The paper shows pictures of three kernels: in plain Linux interrupts and \
                      bottom halves cut the execution everywhere, in TimeSys nearly nowhere. What \
                      this kernel does is in the picture and the numbers."
        .to_owned();
    let notes = load.iter().filter_map(|load| way(load.path())).collect();
    let table = runs::table((ID, TITLE), method, rows, difference, notes);
    Some(MeasuredTable { table, figure: Some(PaperFigure::Trace(figure)) })
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
        row("interruptions in the segment", None, ("gaps", 1.0), Some((count as f64, count)), ""),
        row("lost to them in the segment", None, ("us", US), Some((sum as f64, count)), ""),
        row("longest in the segment", None, ("us", US), longest, "there is none"),
    ]
}

#[cfg(test)]
mod tests {
    use hourglass_model::IntervalStart;

    use super::*;

    /// Waits for the next period are no interruptions, and neither is what lies outside.
    #[test]
    fn what_cuts_a_segment() {
        let interval = |start_ns, end_ns, onset| Interval {
            thread: 0,
            cpu: 0,
            start_ns,
            end_ns,
            start_ticks: 0,
            end_ticks: 0,
            onset,
            evidence: Default::default(),
        };
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
