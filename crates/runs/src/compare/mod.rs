//! Two ways of running compared: run folders, rounds of runs, a run beside an idle control.
//!
//! Owns: what is compared with what ([`folders`]), and what must be said with it: other machines, other
//! workloads, runs made one after the other. `measure::compare` runs rounds and controls. Must not: hold the statistics
//! (`hourglass_trace::compare` does), draw.
//!
//! # How two runs are compared
//!
//! `trace::compare` takes from each run a `Sample`: gaps and wake-ups with the part of the run into which they fell, and counts.
//! Rounds (`rounds.rs`) give one difference for each pair of runs and metric; `joint_test.rs` asks of all signs that these
//! differences might have had how often any metric strays as far as it did, so that the verdict holds for all
//! metrics together, medians and shares before tails and maxima; it also says how many rounds can decide what ([`ComparisonPower`]),
//! which [`ComparisonPower`] says before they are measured. One run each (`bootstrap_parts.rs`) is cut into 20 parts, which are drawn anew; neighbours that resemble each
//! other widen the interval. `verdict.rs` is the only place where a number becomes a verdict. Gaps count above
//! the larger GAP of all runs, since GAP is measured for each.
//!
//! What two runs say only together (section 4: this load causes the gaps, this timer is inaccurate) [`statements`]
//! asks of `trace::run_comparison`. Limits are judged in each run, by `measure::gates`, and stand in the document round by round.
//!
//! A round that a signal cut short lies under another name (`store::rounds`).

mod comparison_power;
mod differences;
pub mod folders;
mod side;
pub mod statements;
#[cfg(test)]
mod tests;

use hourglass_documents::diff::{DIFF_SCHEMA, DiffDocument, DiffMetric};
use hourglass_trace::compare::{by_parts, by_rounds, overall};

pub use folders::CompareError;
pub use hourglass_documents::diff::DiffVerdict;
pub use hourglass_trace::compare::Rules;

pub use comparison_power::ComparisonPower;
pub use side::{ComparedRun, premise_broken};
pub use statements::Pairing;

/// Compares as many runs of one way as of the other: each with its partner, or, if there is one of
/// each only, part by part.
fn document(
    a: Vec<ComparedRun>,
    b: Vec<ComparedRun>,
    rules: &Rules,
    least_gap_ns: u64,
) -> DiffDocument {
    document_of(a, b, rules, least_gap_ns, Pairing::Same)
}

/// The same; `pairing` says which threads have gaps to put beside each other.
pub fn document_of(
    mut a: Vec<ComparedRun>,
    mut b: Vec<ComparedRun>,
    rules: &Rules,
    least_gap_ns: u64,
    pairing: Pairing,
) -> DiffDocument {
    let gap_ns = a.iter().chain(&b).map(ComparedRun::gap_ns).max().unwrap_or(0).max(least_gap_ns);
    a.iter_mut().chain(&mut b).for_each(|run| run.sample.drop_gaps_to(gap_ns));
    let rounds = a.len().min(b.len());
    let (method, mut metrics) = match (&a[..], &b[..]) {
        ([a], [b]) => ("blocks", by_parts(&a.sample, &b.sample, rules)),
        _ => {
            let values = |run: &ComparedRun| run.sample.values();
            let pairs: Vec<_> = a.iter().zip(&b).map(|(a, b)| (values(a), values(b))).collect();
            ("rounds", by_rounds(&pairs, rules))
        }
    };
    let mut warnings = side::broken(&a, &b);
    let holds = warnings.is_empty();
    if !holds {
        decide_nothing(&mut metrics);
    }
    warnings.extend(differences::warnings(&a, &b));
    if method == "rounds" {
        let planned = ComparisonPower::of_metrics(&metrics);
        warnings.extend(planned.and_then(|planned| planned.warning(rounds as u64)));
    }
    DiffDocument {
        schema: DIFF_SCHEMA.to_owned(),
        a: side::facts(&a),
        b: side::facts(&b),
        method: method.to_owned(),
        rounds: rounds as u64,
        seed: rules.seed,
        confidence: hourglass_trace::statistics::USUAL,
        margin_percent: rules.margin_percent,
        gap_ns,
        verdict: overall(&metrics),
        metrics,
        differences: differences::differences(&a, &b),
        warnings,
        gates: side::gates(&a, &b),
        statements: if holds { statements::of(&a, &b, pairing) } else { Vec::new() },
        control: None,
        interrupted: false,
    }
}

pub fn decide_nothing(metrics: &mut [DiffMetric]) {
    for metric in metrics {
        metric.verdict = DiffVerdict::Unknown;
        metric.reason = "what a run rests on did not hold".to_owned();
    }
}
