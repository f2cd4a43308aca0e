//! Figure 3: execution traces of three priorities (section 3.1).

use hourglass_infer::inferences::{Switch, quantum, switches};
use hourglass_model::Inference;
use hourglass_model::paper::{PaperFigure, PaperRow};
use hourglass_time::Span;

use super::super::bench::MeasurementHost;
use super::super::printed::MeasuredTable;
use super::runs::{self, MS, inferred, inferred_row, row};

pub(super) const ID: &str = "figure-3";
pub(super) const TITLE: &str = "Execution traces of three priorities";

/// The paper's run, and what suffices for a segment and its shares.
const FULL: Span = Span::from_secs(5);
const QUICK: Span = Span::from_secs(2);

/// The segment that is drawn, as long as the paper's upper three.
const SEGMENT_NS: i64 = 500_000_000;

const PRIORITIES: [&str; 3] = ["LOW", "NORMAL", "HIGH"];

pub(super) fn measure(bench: &MeasurementHost) -> Option<MeasuredTable> {
    let duration = runs::duration(bench, FULL, QUICK);
    let cpu = runs::measured_cpu();
    let threads = PRIORITIES.map(|priority| runs::thread("CPU", priority, "NATIVE", cpu));
    let threads: Result<Vec<_>, String> = threads.into_iter().collect();
    let ran = threads.and_then(|threads| runs::run(threads, duration, &|| 0));
    let method = format!(
        "hourglass -n 3 -d {duration} -t 0 -p LOW -t 1 -p NORMAL -t 2 -p HIGH, all on CPU {cpu}"
    );
    let (finished, _) = match ran {
        Ok(ran) => ran?,
        Err(why) => {
            let rows = PRIORITIES.map(|name| row(&share_of(name), None, ("%", 0.01), None, &why));
            let table = runs::table((ID, TITLE), method, rows.into(), String::new(), Vec::new());
            return Some(MeasuredTable { table, figure: None });
        }
    };
    let found = switches(finished.intervals());
    let mut rows = Vec::new();
    for (thread, name) in (0u32..).zip(PRIORITIES) {
        let share = inferred(&finished, "cpu_share", Some(thread), "share");
        rows.push(inferred_row(&share_of(name), None, ("%", 0.01), share));
    }
    let seconds = duration.nanos() as f64 / 1e9;
    for (thread, name) in (0u32..).zip(PRIORITIES) {
        rows.extend(turn_rows(thread, name, &found, seconds));
    }
    let rates = (0..3).filter_map(|thread| inferred(&finished, "interrupts", Some(thread), "rate"));
    let sum = |(rate, count), of: &Inference| (rate + of.value, count + of.count);
    let interrupts = Some(rates.fold((0.0, 0), sum));
    rows.push(row("interrupts a second", Some(100.0), ("1/s", 1.0), interrupts, ""));
    let middle = duration.nanos() / 2;
    let labels = (0u32..).zip(PRIORITIES).map(|(id, name)| (id, name.to_owned())).collect();
    let trace = finished.intervals();
    let range = (middle, middle + SEGMENT_NS.min(middle));
    let figure = runs::segment("3", "three priorities on one CPU", range, labels, trace);
    let difference = difference(&found);
    let mut notes = vec![
        "The paper shows pictures, not shares. Its Linux has a clock interrupt every 10 ms; interrupts \
         here are all gaps in which no thread of the run came."
            .to_owned(),
    ];
    notes.extend(runs::others(&finished));
    let table = runs::table((ID, TITLE), method, rows, difference, notes);
    Some(MeasuredTable { table, figure: Some(PaperFigure::Trace(figure)) })
}

fn share_of(name: &str) -> String {
    format!("{name}: share of the CPU")
}

fn of_thread(thread: u32, found: &[Switch]) -> Vec<Switch> {
    found.iter().filter(|switch| switch.prev_tid == thread).copied().collect()
}

/// How long a priority's turns are, and how many it gets.
fn turn_rows(thread: u32, name: &str, found: &[Switch], seconds: f64) -> [PaperRow; 2] {
    let own = of_thread(thread, found);
    let length = quantum(&own).map(|quantum| (quantum.median.value, quantum.median.count));
    let often = (own.len() as f64 / seconds, own.len() as u64);
    [
        row(&format!("{name}: a turn, median"), None, ("ms", MS), length, "no turn was preempted"),
        row(&format!("{name}: turns a second"), None, ("1/s", 1.0), Some(often), ""),
    ]
}

/// Whether higher priorities run for longer or more often.
fn difference(found: &[Switch]) -> String {
    let turns = |thread| {
        let own = of_thread(thread, found);
        Some((quantum(&own)?.mean.value, own.len() as f64))
    };
    let Some(((low, low_often), (high, high_often))) = turns(0).zip(turns(2)) else {
        return "A priority got no turn that was preempted, so that nothing can be compared."
            .into();
    };
    let (longer, often) = (high / low, high_often / low_often);
    format!(
        "In the paper's Linux higher priorities run for longer, not more often. Here a turn of HIGH is \
         {longer:.1} times as long as one of LOW, and HIGH has {often:.1} times as many."
    )
}

#[cfg(test)]
mod tests {
    use hourglass_infer::inferences::SwitchKind;

    use super::*;

    fn switch(from: u32, turn_ns: u64) -> Switch {
        let (to, kind) = ((from + 1) % 3, SwitchKind::Involuntary);
        let turn_ns = Some(turn_ns);
        Switch {
            cpu: 0,
            prev_tid: from,
            next_tid: to,
            at_ns: 0,
            gap_ns: 5,
            turn_ns,
            kind,
            is_cost: true,
        }
    }

    /// The paper's Linux: as many turns each, those of HIGH longer.
    #[test]
    fn longer_or_more_often() {
        let round = [switch(0, 10_000_000), switch(1, 30_000_000), switch(2, 60_000_000)];
        let found = round.repeat(9);
        let text = difference(&found);
        assert!(text.contains("6.0 times as long") && text.contains("1.0 times as many"), "{text}");
        let [length, often] = turn_rows(2, "HIGH", &found, 3.0);
        assert_eq!((length.measured, often.measured), (Some(60.0), Some(3.0)));
        assert!(difference(&found[..1]).contains("nothing can be compared"));
    }
}
