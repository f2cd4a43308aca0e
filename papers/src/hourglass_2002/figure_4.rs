//! Figure 4: how long context switches take (section 5.1).

use std::collections::BTreeMap;

use hourglass_infer::inferences::{CostEstimate, Switch, SwitchKind, switch_cost, switches};
use hourglass_lab::experiment::Finished;
use hourglass_model::paper::{
    AxisScale, Curve, CurveOrigin, CurvePoint, Curves, Edge, EdgeUnit, PaperFigure, PaperRow,
};
use hourglass_time::Span;

use super::super::bench::MeasurementHost;
use super::super::printed::MeasuredTable;
use super::runs::{self, MS, cost_rows, inferred, inferred_row};

pub(super) const ID: &str = "figure-4";
pub(super) const TITLE: &str = "Direct cost of context switches";

const FULL: Span = Span::from_secs(60);
const QUICK: Span = Span::from_secs(2);

const THREADS: usize = 10;

/// The paper: "on the order of 10 µs" for a preemption (section 5.2), and the gaps of its three lines of
/// output for a yield (section 5.1).
const PREEMPTION_US: f64 = 10.0;
const YIELD_US: f64 = 2.188;

/// Columns of the histogram in a decade.
const COLUMNS: f64 = 20.0;

/// The two runs of the section.
const RUNS: [(&str, &str, SwitchKind, f64); 2] = [
    ("preemption", "CPU", SwitchKind::Involuntary, PREEMPTION_US),
    ("yield", "CPU_YIELD 0.9ms", SwitchKind::Voluntary, YIELD_US),
];

pub(super) fn measure(bench: &MeasurementHost) -> Option<MeasuredTable> {
    let duration = runs::duration(bench, FULL, QUICK);
    let cpu = runs::measured_cpu();
    let (mut rows, mut curves, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    for (at, (name, workload, kind, paper)) in (0u32..).zip(RUNS) {
        let threads = runs::thread(workload, "NORMAL", "NATIVE", cpu)
            .and_then(|thread| runs::run(vec![thread; THREADS], duration, &|| 0));
        match threads {
            Ok(ran) => {
                let (finished, _) = ran?;
                let found = switches(finished.intervals());
                let cost = switch_cost(&found, kind);
                rows.extend(cost_rows(name, paper, cost.as_ref()));
                if kind == SwitchKind::Involuntary {
                    rows.extend(rate_rows(&finished));
                }
                notes.extend(cost.as_ref().map(|cost| note(name, cost)));
                notes.extend(runs::others(&finished).map(|others| format!("{name}: {others}")));
                curves.push(histogram(name, at, kind, &found));
            }
            Err(why) => {
                notes.push(why);
                rows.extend(cost_rows(name, paper, None));
            }
        }
    }
    let method = format!(
        "ten threads on CPU {cpu} for {duration} each: -w CPU, where every switch is a preemption, and \
         -w CPU_YIELD 0.9ms; costs are the gaps between two threads, without those much longer than \
         the shortest"
    );
    let difference =
        "The paper's preemptions hold its clock interrupt, and so do these; in a virtual \
                      machine also what the hypervisor needs to bring it."
            .to_owned();
    let table = runs::table((ID, TITLE), method, rows, difference, notes);
    Some(MeasuredTable { table, figure: Some(PaperFigure::Curves(figure(curves))) })
}

/// Switches and quanta beside those of both groups of systems in the paper.
fn rate_rows(finished: &Finished) -> Vec<PaperRow> {
    let rate = inferred(finished, "switches", None, "rate");
    let quantum = inferred(finished, "quantum", None, "median");
    let rate_row = |name: &str, paper| inferred_row(name, Some(paper), ("1/s", 1.0), rate);
    let quantum_row = |name: &str, paper| inferred_row(name, Some(paper), ("ms", MS), quantum);
    vec![
        rate_row("switches a second (there Linux 2.4.17)", 18.0),
        rate_row("switches a second (there TimeSys, Windows, FreeBSD)", 50.0),
        quantum_row("quantum (there Linux 2.4.17)", 60.0),
        quantum_row("quantum (there TimeSys, Windows, FreeBSD)", 20.0),
    ]
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

/// How many gaps of each length there were, those set aside included.
fn histogram(name: &str, colour: u32, kind: SwitchKind, found: &[Switch]) -> Curve {
    let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
    for switch in found.iter().filter(|s| s.kind == kind && s.is_cost && s.gap_ns > 0) {
        let column = ((switch.gap_ns as f64).log10() * COLUMNS).floor() as i64;
        *counts.entry(column).or_default() += 1;
    }
    let place = |(column, count): (i64, u64)| CurvePoint {
        across: 10f64.powf((column as f64 + 0.5) / COLUMNS),
        up: count as f64,
    };
    // Columns without a gap lie on the ground, as far as there are others.
    let (first, last) = (counts.keys().next(), counts.keys().next_back());
    let columns = first.zip(last).map(|(first, last)| *first..=*last);
    let all = columns.into_iter().flatten();
    Curve {
        name: name.to_owned(),
        origin: CurveOrigin::Here,
        colour,
        joined: true,
        points: all.map(|at| place((at, counts.get(&at).copied().unwrap_or(0)))).collect(),
    }
}

fn figure(curves: Vec<Curve>) -> Curves {
    let edge = |text: &str, unit, scale| Edge { text: text.into(), unit, scale };
    Curves {
        id: "4".into(),
        title: "Lengths of context switches".into(),
        across: edge("length of the gap", EdgeUnit::Time, AxisScale::Logarithmic),
        up: edge("switches", EdgeUnit::Number, AxisScale::Linear),
        curves,
        note:
            "Each point counts the gaps of a twentieth of a decade; those set aside are among them."
                .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every gap is in a column, and gaps that were set aside are reported.
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
