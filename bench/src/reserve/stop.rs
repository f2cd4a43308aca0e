//! From the decision to stop a co-runner to its last sign of life.
//!
//! Each way of stopping that the machine has takes its turn in each round, on a victim that spins on
//! another CPU. A round gives a median and a 99th percentile; the rows are the medians of these.

use anyhow::{Context, Result};
use hourglass_documents::CpuSet;
use hourglass_reserve::guardian::Guardian;
use hourglass_reserve::smt::stopper::{
    StopLatency, StopTrialSetup, StopperKind, measure as measure_kind,
};

use crate::document::Row;
use crate::paired::median;

/// Trials of each kind in a round, and how long they may take on a busy machine.
const TRIALS: u32 = 200;
const LIMIT_MS: u64 = 5_000;

/// What is aimed at, us.
const GOAL_P50: f64 = 15.0;
const GOAL_P99: f64 = 60.0;

/// Rows of every kind that the machine has; the one that is preferred goes without a name, and has
/// the goals.
pub(super) fn measure(rounds: u32) -> Result<Vec<Row>> {
    let guardian = Guardian::start().context("no guardian")?;
    let setup = match StopTrialSetup::new(&CpuSet::default()) {
        Ok(setup) => StopTrialSetup { trials: TRIALS, limit_ms: LIMIT_MS, ..setup },
        Err(reason) => {
            eprintln!("stop_p50, stop_p99: left out: {reason}");
            return Ok(Vec::new());
        }
    };
    let mut found: Vec<(StopperKind, Vec<StopLatency>)> = Vec::new();
    for kind in StopperKind::ALL {
        match measure_kind(kind, &StopTrialSetup { trials: 20, ..setup }, &guardian) {
            Ok(_) => found.push((kind, Vec::new())),
            Err(reason) => eprintln!("stop_p50, stop_p99: {reason}"),
        }
    }
    for _ in 0..rounds {
        for (kind, measured) in &mut found {
            match measure_kind(*kind, &setup, &guardian) {
                Ok(one) => measured.push(one),
                Err(reason) => eprintln!("stop_p50, stop_p99: a round is left out: {reason}"),
            }
        }
    }
    found.retain(|(_, measured)| !measured.is_empty());
    Ok(rows(&found))
}

fn rows(found: &[(StopperKind, Vec<StopLatency>)]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (place, (kind, measured)) in found.iter().enumerate() {
        let of = |value: fn(&StopLatency) -> u64| {
            median(&mut measured.iter().map(|one| value(one) as f64 / 1e3).collect::<Vec<_>>())
        };
        let own = format!("hourglass/{kind}");
        let subject = if place == 0 { "hourglass" } else { own.as_str() };
        let cases = [
            ("stop_p50", of(|one| one.p50_ns), GOAL_P50),
            ("stop_p99", of(|one| one.p99_ns), GOAL_P99),
        ];
        for (case, value, goal) in cases {
            let row = Row::alone(case, subject, value, "us");
            rows.push(if place == 0 { row.at_most(goal) } else { row });
        }
        rows.push(Row::alone("stop_resumed_p50", subject, of(|one| one.resumed_p50_ns), "us"));
    }
    rows
}
