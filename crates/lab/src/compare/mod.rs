//! Two ways of running compared: run folders, rounds of runs in turn, a run beside an idle control.
//!
//! Owns: what is compared with what ([`folders`]), running it in turn ([`rounds`]), the control
//! ([`control`]), and what must be said with it: other machines, other workloads, runs made one
//! after the other. Must not: hold the statistics (`hourglass_infer::compare` does), draw.
//!
//! # How two runs are compared
//!
//! `infer::compare` takes from each run a `Sample`: gaps and wake-ups with the part of the run into which they fell, and counts.
//! Rounds (`rounds.rs`) give one difference for each pair of runs and metric; `joint_test.rs` asks of all signs that these
//! differences might have had how often any metric strays as far as it did, so that the verdict holds for all
//! metrics together, medians and shares before tails and maxima; it also says how many rounds can decide what (`Reach`),
//! which `lab::compare::reach` says before they are measured. One run each (`bootstrap_parts.rs`) is cut into 20 parts, which are drawn anew; neighbours that resemble each
//! other widen the interval. `verdict.rs` is the only place where a number becomes a verdict. Gaps count above
//! the larger GAP of all runs, since GAP is measured for each.
//!
//! What two runs say only together (section 4: this load causes the gaps, this timer is inaccurate) `lab::compare::statements`
//! asks of `infer::two_runs`. Limits are judged in each run, by `lab::gates`, and stand in the document round by round.
//!
//! `lab::compare` reads folders, or runs two ways in turn (`rounds.rs`): which is first is drawn for every second
//! round and reversed in the next. A round that a signal cuts short is kept under another name (`store::rounds`).
//! `control.rs` adds a thread that only watches, on a CPU that the load leaves free, or lets it take turns with the load.

mod comparison_power;
pub mod control;
mod differences;
pub mod folders;
pub mod rounds;
mod side;
mod statements;
#[cfg(test)]
mod tests;

use hourglass_infer::compare::{by_parts, by_rounds, overall};
use hourglass_model::diff::{DIFF_SCHEMA, DiffDocument, DiffMetric};

pub use folders::CompareError;
pub use hourglass_infer::compare::Rules;
pub use hourglass_model::diff::DiffVerdict;

use side::ComparedRun;
use statements::Pairing;

/// The warning of a comparison for each run of which a premise broke: nothing is decided.
pub const PREMISE_BROKEN: &str = "premise-broken";

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
fn document_of(
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
        let planned = comparison_power::ComparisonPower::of_metrics(&metrics);
        warnings.extend(planned.and_then(|planned| planned.warning(rounds as u64)));
    }
    DiffDocument {
        schema: DIFF_SCHEMA.to_owned(),
        a: side::facts(&a),
        b: side::facts(&b),
        method: method.to_owned(),
        rounds: rounds as u64,
        seed: rules.seed,
        confidence: hourglass_infer::statistics::USUAL,
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

/// Of runs that rest on what did not hold.
fn decide_nothing(metrics: &mut [DiffMetric]) {
    for metric in metrics {
        metric.verdict = DiffVerdict::Unknown;
        metric.reason = "what a run rests on did not hold".to_owned();
    }
}
