//! Figure 4: how long context switches take (section 5.1).

use std::collections::BTreeMap;

use hourglass_documents::paper::{AxisScale, Curve, CurveOrigin, EdgeUnit, PaperFigure};
use hourglass_time::Span;
use hourglass_trace::inferences::{CostEstimate, Switch, SwitchKind, switch_cost, switches};

use super::super::bench::MeasurementHost;
use super::super::drawing::{curve, curves, edge};
use super::super::printed::{MeasuredTable, Table};
use super::runs::{self, cost_rows, inferred, inferred_row};

const FULL: Span = Span::from_secs(60);
const QUICK: Span = Span::from_secs(2);

const THREADS: usize = 10;

const COLUMNS: f64 = 20.0;

/// The two runs of the section, in the order of the table's first lines.
const RUNS: [(&str, SwitchKind); 2] =
    [("CPU", SwitchKind::Involuntary), ("CPU_YIELD 0.9ms", SwitchKind::Voluntary)];

pub(super) fn measure(table: &Table, bench: &MeasurementHost) -> Option<MeasuredTable> {
    let duration = bench.at_most(FULL, QUICK);
    let cpu = runs::measured_cpu();
    let (mut rows, mut drawn, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    for (at, (line, (workload, kind))) in (0u32..).zip(table.lines.iter().zip(RUNS)) {
        let name = &line.name;
        let threads = runs::thread(workload, "NORMAL", "NATIVE", cpu)
            .and_then(|thread| runs::run(vec![thread; THREADS], duration, &|| 0));
        match threads {
            Ok(ran) => {
                let (finished, _) = ran?;
                let found = switches(finished.intervals());
                let cost = switch_cost(&found, kind);
                rows.extend(cost_rows(line, cost.as_ref()));
                if kind == SwitchKind::Involuntary {
                    // Beside those of both groups of systems in the paper.
                    for line in table.lines.iter().skip(RUNS.len()) {
                        let what = line.name.split(' ').next().unwrap_or_default();
                        let statistic = if what == "switches" { "rate" } else { "median" };
                        let inference = inferred(&finished, what, None, statistic);
                        let paper = line.printed(0);
                        rows.push(inferred_row(&line.name, &line.unit, paper, inference));
                    }
                }
                notes.extend(cost.as_ref().map(|cost| note(name, cost)));
                notes.extend(runs::others(&finished).map(|others| format!("{name}: {others}")));
                drawn.push(histogram(name, at, kind, &found));
            }
            Err(why) => {
                notes.push(why);
                rows.extend(cost_rows(line, None));
            }
        }
    }
    let edges = [
        edge("length of the gap", EdgeUnit::Time, AxisScale::Logarithmic),
        edge("switches", EdgeUnit::Number, AxisScale::Linear),
    ];
    let note =
        "Each point counts the gaps of a twentieth of a decade; those set aside are among them.";
    let figure = curves(("4", "Lengths of context switches"), edges, drawn, note);
    let measured = table.with_rows(rows, runs::values(cpu, duration));
    Some(measured.with_notes(notes).with_figure(PaperFigure::Curves(figure)))
}

fn note(name: &str, cost: &CostEstimate) -> String {
    let us = |ns: f64| format!("{:.2}", ns / runs::US);
    let median = cost.median;
    format!(
        "{name}: median {} us, 95 % interval from {} to {}; {} of {} gaps were set aside, those above \
         {} us.",
        us(median.value),
        us(median.lo),
        us(median.hi),
        cost.set_aside,
        cost.count + cost.set_aside,
        us(cost.limit_ns as f64),
    )
}

fn histogram(name: &str, colour: u32, kind: SwitchKind, found: &[Switch]) -> Curve {
    let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
    for switch in found.iter().filter(|s| s.kind == kind && s.is_cost && s.gap_ns > 0) {
        let column = ((switch.gap_ns as f64).log10() * COLUMNS).floor() as i64;
        *counts.entry(column).or_default() += 1;
    }
    let place = |column: i64| {
        let count = counts.get(&column).copied().unwrap_or(0);
        (10f64.powf((column as f64 + 0.5) / COLUMNS), count as f64)
    };
    // Columns without a gap lie on the ground, as far as there are others.
    let (first, last) = (counts.keys().next(), counts.keys().next_back());
    let columns = first.zip(last).map(|(first, last)| *first..=*last);
    curve(name, CurveOrigin::Here, colour, columns.into_iter().flatten().map(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_counts_every_gap() {
        let switch = |gap_ns| Switch {
            cpu: 0,
            prev_tid: 0,
            next_tid: 1,
            at_ns: 0,
            gap_ns,
            turn_ns: None,
            kind: SwitchKind::Involuntary,
            is_cost: true,
        };
        let mut found: Vec<Switch> = (0..300).map(|n| switch(5_000 + 10 * (n % 100))).collect();
        found.push(switch(900_000));
        let cost = switch_cost(&found, SwitchKind::Involuntary).unwrap();
        let curve = histogram("preemption", 0, SwitchKind::Involuntary, &found);
        let counted: f64 = curve.points.iter().map(|place| place.up).sum();
        assert_eq!(counted, 301.0);
        assert!(curve.points.iter().any(|place| place.up == 0.0), "the ground between");
        assert!(note("preemption", &cost).contains("1 of 301 gaps were set aside"));
    }
}
