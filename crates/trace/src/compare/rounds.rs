//! Rounds: pairs of runs, made in turn.

use hourglass_documents::diff::DiffMetric;

use super::joint_test::{Candidate, DetectableRounds, joint_chances};
use super::quantity::{Quantity, Value};
use super::signed_rank::shift;
use super::verdict::{QuantityChange, Rules};
use crate::statistics::{Estimate, USUAL, mean};

/// With fewer rounds there is no verdict: with five, even equal signs of one quantity come by chance once in
/// sixteen times.
pub const LEAST_ROUNDS: usize = 6;

/// A percentile of a run must have this many measurements above it; else it is the maximum.
const LEAST_ABOVE: f64 = 1.0;

/// Compares the runs of each round: the quantities of the first and of the second way of running.
///
/// The interval is for each quantity alone. What is said to have moved holds for all quantities
/// together, those that only explain others among themselves.
pub fn by_rounds(rounds: &[(Vec<Value>, Vec<Value>)], rules: &Rules) -> Vec<DiffMetric> {
    let quantities = quantities(rounds);
    let (explaining, plain): (Vec<_>, Vec<_>) =
        quantities.into_iter().partition(Quantity::explains);
    let mut metrics = family(rounds, &plain, rules);
    metrics.extend(family(rounds, &explaining, rules));
    metrics
}

/// Every quantity that any run has, in the order of the first run that has it.
fn quantities(rounds: &[(Vec<Value>, Vec<Value>)]) -> Vec<Quantity> {
    let mut all: Vec<Quantity> =
        rounds.iter().flat_map(|(a, b)| a.iter().chain(b)).map(|v| v.quantity.clone()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn family(
    rounds: &[(Vec<Value>, Vec<Value>)],
    quantities: &[Quantity],
    rules: &Rules,
) -> Vec<DiffMetric> {
    let rows: Vec<Row> = quantities.iter().map(|quantity| Row::of(rounds, quantity)).collect();
    let sound: Vec<usize> = (0..rows.len()).filter(|at| rows[*at].reason.is_empty()).collect();
    let moved = moved(&rows, &sound, rules);
    let reach = DetectableRounds::of_all(sound.iter().map(|at| &rows[*at].quantity));
    let changes = rows.into_iter().zip(moved).map(|(row, moved)| QuantityChange {
        rounds: rounds.len() as u64,
        rounds_needed: if row.quantity.leads() { reach.leading } else { reach.all },
        change: row.change(),
        a: row.a,
        b: row.b,
        quantity: row.quantity,
        is_significant: moved,
        reason: match row.reason.as_str() {
            "" if rounds.len() < LEAST_ROUNDS => format!("fewer than {LEAST_ROUNDS} rounds"),
            _ => row.reason,
        },
    });
    changes.map(|change| change.judged(rules)).collect()
}

fn moved(rows: &[Row], sound: &[usize], rules: &Rules) -> Vec<bool> {
    let mut moved = vec![false; rows.len()];
    let candidate = |row: &Row| Candidate {
        differences: row.differences.clone(),
        is_primary: row.quantity.leads(),
    };
    let family: Vec<Candidate> = sound.iter().map(|at| candidate(&rows[*at])).collect();
    for (at, chance) in sound.iter().zip(joint_chances(&family, rules.seed)) {
        moved[*at] = chance.shows_a_move();
    }
    moved
}

struct Row {
    quantity: Quantity,
    a: Option<f64>,
    b: Option<f64>,
    differences: Vec<f64>,
    reason: String,
}

impl Row {
    fn of(rounds: &[(Vec<Value>, Vec<Value>)], quantity: &Quantity) -> Row {
        let pairs: Vec<(Option<Value>, Option<Value>)> = rounds
            .iter()
            .map(|(a, b)| (find(a, quantity).cloned(), find(b, quantity).cloned()))
            .collect();
        let number = |value: &Option<Value>| value.as_ref().and_then(|value| value.value);
        let is_thin = |value: &Value| !value.has_above(LEAST_ABOVE);
        let differences: Vec<f64> =
            pairs.iter().filter_map(|(a, b)| Some(number(b)? - number(a)?)).collect();
        let reason = if differences.len() < rounds.len() {
            "not in every run".to_owned()
        } else if pairs.iter().any(|(a, b)| a.iter().chain(b).any(is_thin)) {
            "too few measurements in a run for this percentile".to_owned()
        } else {
            String::new()
        };
        Row {
            quantity: quantity.clone(),
            a: median(pairs.iter().filter_map(|(a, _)| number(a)).collect()),
            b: median(pairs.iter().filter_map(|(_, b)| number(b)).collect()),
            differences,
            reason,
        }
    }

    /// The change with its interval, for this quantity alone: Student's t where there are too few rounds for
    /// ranks, which is no verdict.
    fn change(&self) -> Option<Estimate> {
        match self.differences.len() {
            0..LEAST_ROUNDS => mean(&self.differences, USUAL),
            _ => shift(&self.differences),
        }
    }
}

fn find<'a>(values: &'a [Value], quantity: &Quantity) -> Option<&'a Value> {
    values.iter().find(|value| value.quantity == *quantity)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    Some(values[last / 2] / 2.0 + values[values.len() / 2] / 2.0)
}
