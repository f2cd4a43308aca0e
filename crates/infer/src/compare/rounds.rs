//! Rounds: pairs of runs, made in turn.

use hourglass_model::diff::DiffMetric;

use super::judge::{Change, Rules};
use super::quantity::{Quantity, Value};
use super::signed_rank::{joint_chances, shift};
use crate::statistics::{Estimate, USUAL, mean};

/// With fewer rounds there is no verdict.
pub const LEAST_ROUNDS: usize = 5;

/// From so many rounds on signs and ranks decide; with one less even equal signs come by chance once
/// in sixteen times, and Student's t has to.
const LEAST_FOR_RANKS: usize = 6;

/// A percentile of a run must have so many measurements above it; else it is the maximum.
const LEAST_ABOVE: f64 = 1.0;

/// Compares the runs of each round: the quantities of the first and of the second way of running.
///
/// The interval is for each quantity alone. What is said to have moved holds for all quantities
/// together, those that only explain others among themselves.
#[must_use]
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
    let changes = rows.into_iter().zip(moved).map(|(row, moved)| Change {
        change: row.change(),
        a: row.a,
        b: row.b,
        quantity: row.quantity,
        moved,
        reason: row.reason,
    });
    changes.map(|change| change.judged(rules)).collect()
}

/// Which of the rows moved, those at `sound` considered together.
fn moved(rows: &[Row], sound: &[usize], rules: &Rules) -> Vec<bool> {
    let mut moved = vec![false; rows.len()];
    let family: Vec<Vec<f64>> = sound.iter().map(|at| rows[*at].differences.clone()).collect();
    if family.first().is_some_and(|one| one.len() < LEAST_FOR_RANKS) {
        // Bonferroni: each at its share of the error.
        let confidence = 1.0 - (1.0 - USUAL) / family.len() as f64;
        for (at, differences) in sound.iter().zip(&family) {
            moved[*at] = mean(differences, confidence).is_some_and(|mean| !mean.holds(0.0));
        }
        return moved;
    }
    for (at, chance) in sound.iter().zip(joint_chances(&family, rules.seed)) {
        moved[*at] = chance <= 1.0 - USUAL;
    }
    moved
}

/// A quantity over all rounds.
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
        } else if rounds.len() < LEAST_ROUNDS {
            format!("fewer than {LEAST_ROUNDS} rounds")
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

    /// The change with its interval, for this quantity alone.
    fn change(&self) -> Option<Estimate> {
        match self.differences.len() {
            0..LEAST_FOR_RANKS => mean(&self.differences, USUAL),
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
