//! Figure 3: execution traces of three priorities (section 3.1).

use hourglass_documents::Inference;
use hourglass_documents::paper::{PaperFigure, PaperRow};
use hourglass_time::Span;
use hourglass_trace::inferences::{Switch, quantum, switches};

use super::super::bench::MeasurementHost;
use super::super::printed::{MeasuredTable, Table, Values};
use super::super::rows::measured;
use super::runs::{self, inferred, inferred_row};

/// The paper's run, and what suffices for a segment and its shares.
const FULL: Span = Span::from_secs(5);
const QUICK: Span = Span::from_secs(2);

/// The segment that is drawn, as long as the paper's upper three.
const SEGMENT_NS: i64 = 500_000_000;

const PRIORITIES: [&str; 3] = ["LOW", "NORMAL", "HIGH"];

pub(super) fn measure(table: &Table, bench: &MeasurementHost) -> Option<MeasuredTable> {
    let duration = bench.at_most(FULL, QUICK);
    let cpu = runs::measured_cpu();
    let values = runs::values(cpu, duration);
    let threads = PRIORITIES.map(|priority| runs::thread("CPU", priority, "NATIVE", cpu));
    let threads: Result<Vec<_>, String> = threads.into_iter().collect();
    let (finished, _) = match threads.and_then(|threads| runs::run(threads, duration, &|| 0)) {
        Ok(ran) => ran?,
        Err(why) => {
            let row = |name| measured(share_of(name), "%", None, Err(why.clone()));
            let rows = PRIORITIES.map(row).into();
            return Some(table.with_rows(rows, values));
        }
    };
    let found = switches(finished.intervals());
    let mut rows = Vec::new();
    for (thread, name) in (0u32..).zip(PRIORITIES) {
        let share = inferred(&finished, "cpu_share", Some(thread), "share");
        rows.push(inferred_row(&share_of(name), "%", None, share));
    }
    let seconds = duration.nanos() as f64 / 1e9;
    for (thread, name) in (0u32..).zip(PRIORITIES) {
        rows.extend(turn_rows(thread, name, &found, seconds));
    }
    let rates = (0..3).filter_map(|thread| inferred(&finished, "interrupts", Some(thread), "rate"));
    let sum = |(rate, count), of: &Inference| (rate + of.value, count + of.count);
    let interrupts = rates.fold((0.0, 0), sum);
    for line in &table.lines {
        rows.push(measured(&*line.name, &line.unit, line.printed(0), Ok(interrupts)));
    }
    let middle = duration.nanos() / 2;
    let labels = (0u32..).zip(PRIORITIES).map(|(id, name)| (id, name.to_owned())).collect();
    let range = (middle, middle + SEGMENT_NS.min(middle));
    let title = "three priorities on one CPU";
    let figure = runs::segment("3", title, range, labels, finished.intervals());
    let measured = table.with_rows(rows, ratios(&found, values));
    Some(measured.with_notes(runs::others(&finished)).with_figure(PaperFigure::Trace(figure)))
}

fn share_of(name: &str) -> String {
    format!("{name}: share of the CPU")
}

fn of_thread(thread: u32, found: &[Switch]) -> Vec<Switch> {
    found.iter().filter(|switch| switch.prev_tid == thread).copied().collect()
}

fn turn_rows(thread: u32, name: &str, found: &[Switch], seconds: f64) -> [PaperRow; 2] {
    let own = of_thread(thread, found);
    let length = quantum(&own).map(|quantum| (quantum.median.value, quantum.median.count));
    let length = length.ok_or_else(|| "no turn was preempted".to_owned());
    let often = (own.len() as f64 / seconds, own.len() as u64);
    [
        measured(format!("{name}: a turn, median"), "ms", None, length),
        measured(format!("{name}: turns a second"), "1/s", None, Ok(often)),
    ]
}

fn ratios(found: &[Switch], values: Values) -> Values {
    let turns = |thread| {
        let own = of_thread(thread, found);
        Some((quantum(&own)?.mean.value, own.len() as f64))
    };
    let ratios = turns(0).zip(turns(2)).map(|(low, high)| (high.0 / low.0, high.1 / low.1));
    values
        .with_if("ran", true)
        .with_some("longer", ratios.map(|(longer, _)| format!("{longer:.1}")))
        .with_some("often", ratios.map(|(_, often)| format!("{often:.1}")))
}

#[cfg(test)]
mod tests {
    use hourglass_trace::inferences::SwitchKind;

    use super::super::tests::table;
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

    #[test]
    fn longer_or_more_often() {
        let round = [switch(0, 10_000_000), switch(1, 30_000_000), switch(2, 60_000_000)];
        let found = round.repeat(9);
        let difference = |found: &[Switch]| {
            let values = ratios(found, Values::default());
            table("figure-3").with_rows(Vec::new(), values).table.difference
        };
        let text = difference(&found);
        assert!(text.contains("6.0 times as long") && text.contains("1.0 times as many"), "{text}");
        let [length, often] = turn_rows(2, "HIGH", &found, 3.0);
        assert_eq!((length.measured, often.measured), (Some(60.0), Some(3.0)));
        assert!(difference(&found[..1]).contains("nothing can be compared"));
    }
}
