//! The suite `sched`: response times under fixed priorities, EDF's demand test, the simulator.
//!
//! Owns: which sets are analysed, and the rows that come of it. Every bound is compared with the
//! peer's on every set before anything is timed.
//! Must not: know how an analysis works.

mod peer;
mod sets;
mod simulate;

pub(crate) use sets::XorShift;

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Result, ensure};
use hourglass_sched::edf::qpa;
use hourglass_sched::fixed_priority::{self, Sections, TimeModel};
use hourglass_sched::{Analysis, TaskSet, Verdict};

use crate::document::Row;
use crate::paired::compare;

/// Sets a case; the literature's figures of speed are means over some hundreds.
const SETS: usize = 200;

const COUNTS: [usize; 3] = [10, 20, 50];

const UTILISATIONS: [(&str, f64); 2] = [("0.7", 0.7), ("0.95", 0.95)];

/// The goal: at most this share of the peer's time.
const SHARE_OF_PEER: f64 = 0.4;

/// The goal of QPA with 20 tasks at 0.95, us a set.
const QPA_GOAL: f64 = 5.0;

/// The shortest deadline of QPA's sets, as a share of the period.
const QPA_DEADLINES: f64 = 0.7;

pub(crate) fn measure(rounds: u32) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for count in COUNTS {
        for (name, utilisation) in UTILISATIONS {
            rows.extend(fixed_priorities(
                &format!("fp/{count}/{name}"),
                count,
                utilisation,
                rounds,
            )?);
        }
    }
    for count in COUNTS {
        for (name, utilisation) in UTILISATIONS {
            let row = demand(&format!("qpa/{count}/{name}"), count, utilisation, rounds)?;
            rows.push(if (count, name) == (20, "0.95") { row.at_most(QPA_GOAL) } else { row });
        }
    }
    rows.extend(simulate::measure(rounds)?);
    Ok(rows)
}

fn made(count: usize, utilisation: f64, shortest_deadline: f64) -> Vec<TaskSet> {
    let mut dice = sets::XorShift::new(count as u64);
    (0..SETS).map(|_| sets::set(&mut dice, count, utilisation, shortest_deadline)).collect()
}

fn analyse(set: &TaskSet) -> Analysis {
    fixed_priority::analyse(set, Sections::Preemptive, TimeModel::Discrete)
}

fn fixed_priorities(case: &str, count: usize, utilisation: f64, rounds: u32) -> Result<Vec<Row>> {
    let sets = made(count, utilisation, 1.0);
    let prepared: Vec<peer::PeerTaskSet> = sets.iter().map(peer::prepare).collect();
    for (set, peer) in sets.iter().zip(&prepared) {
        let (ours, theirs) = (analyse(set).from_release(), peer.bounds());
        ensure!(ours == theirs, "{case}: {set:?}: bounds {ours:?}, the peer's {theirs:?}");
    }
    let ours = || {
        per_set(&sets, |set| {
            black_box(analyse(black_box(set)));
        })
    };
    let theirs = || {
        per_set(&prepared, |peer| {
            black_box(black_box(peer).bounds());
        })
    };
    let mut rows = compare(case, "us", rounds, peer::NAME, ours, theirs);
    if let Some(row) = rows.first_mut() {
        row.set_goal(peer::NAME, SHARE_OF_PEER);
    }
    Ok(rows)
}

fn demand(case: &str, count: usize, utilisation: f64, rounds: u32) -> Result<Row> {
    let sets = made(count, utilisation, QPA_DEADLINES);
    let test = |set: &TaskSet| qpa::feasible(set, Sections::Preemptive, TimeModel::Discrete);
    for set in &sets {
        let full = hourglass_sched::edf::demand::processor_demand(
            set,
            Sections::Preemptive,
            TimeModel::Discrete,
        );
        let (quick, full) = (test(set).verdict == Verdict::Feasible, full == Verdict::Feasible);
        ensure!(quick == full, "{case}: {set:?}: QPA {quick}, processor demand {full}");
    }
    let mut values: Vec<f64> = (0..rounds)
        .map(|_| {
            per_set(&sets, |set| {
                black_box(test(black_box(set)));
            })
        })
        .collect();
    Ok(Row::alone(case, "hourglass", crate::paired::median(&mut values), "us"))
}

/// How often all sets are analysed for one figure: a single pass takes a tenth of a millisecond, in
/// which the processor has not yet learnt the branches.
const PASSES: usize = 20;

/// How long one set takes, us.
fn per_set<T>(sets: &[T], mut analyse: impl FnMut(&T)) -> f64 {
    let begun = Instant::now();
    for _ in 0..PASSES {
        for set in sets {
            analyse(set);
        }
    }
    begun.elapsed().as_secs_f64() * 1e6 / (PASSES * sets.len()) as f64
}
