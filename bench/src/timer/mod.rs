//! The suite `timer`: the queue of timers and the wheel of timeouts beside their peers, arming from
//! another thread, interrupted sleepers, timing faults.
//!
//! Owns: which structures run with how many timers, and the rows that come of it.
//! Must not: know how a structure works ([`ours`], [`standard`] and [`crates`] do), or what is done to
//! it ([`workload`] does).
//!
//! All structures take their turn in each round, each built anew, so that ratios are between
//! neighbours in time. Every one keeps what its user would need anyway to cancel a timer by a small
//! number: its handle or key, in a dense array.

mod crates;
mod dice;
mod faults;
mod ours;
mod remote;
mod standard;
mod workload;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use hourglass_queue::{Heap, RedBlackTree};

use crate::document::Row;
use crate::paired::median;
use workload::{Figures, TimerBackend, run};

const OUTSTANDING: [usize; 3] = [100, 10_000, MANY];

const MANY: usize = 1_000_000;

/// Whose figures ratios are given to. Our other variants are beside, not against.
const PEERS: [&str; 5] = [
    standard::Map::NAME,
    standard::LazyHeap::NAME,
    crates::DelayQueue::NAME,
    crates::NexusWheel::NAME,
    crates::HashWheel::NAME,
];

type Turn = (&'static str, fn(usize, u32) -> Figures);

fn turn<T: TimerBackend>() -> Turn {
    (T::NAME, run::<T>)
}

fn turns() -> Vec<Turn> {
    vec![
        turn::<ours::ExactQueue<Heap>>(),
        turn::<standard::Map>(),
        turn::<ours::Timeouts>(),
        turn::<standard::LazyHeap>(),
        turn::<ours::ExactQueue<RedBlackTree>>(),
        turn::<crates::DelayQueue>(),
        turn::<crates::NexusWheel>(),
        turn::<crates::HashWheel>(),
        turn::<ours::Cascading>(),
    ]
}

const ROUNDS: u32 = 15;
/// After this time no further round with one number of timers is begun, unless there were fewer than
/// [`LEAST_ROUNDS`]: a round with a million timers takes up to a minute.
const LONGEST: Duration = Duration::from_secs(100);
/// The least of which a median is worth something.
const LEAST_ROUNDS: u32 = 3;

/// All cases of the suite, in `rounds` rounds, or the number that fits into five minutes.
///
/// # Errors
/// No thread can be started.
pub(crate) fn measure(rounds: Option<u32>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for outstanding in OUTSTANDING {
        rows.extend(measure_with(outstanding, rounds));
    }
    let rounds = rounds.unwrap_or(ROUNDS);
    rows.extend(crate::sleep::interrupts(rounds)?);
    rows.extend(faults::measure(rounds)?);
    rows.extend(remote::rows(rounds)?);
    Ok(rows)
}

fn measure_with(outstanding: usize, rounds: Option<u32>) -> Vec<Row> {
    let turns = turns();
    let begun = Instant::now();
    let mut measured: BTreeMap<&str, Vec<Figures>> = BTreeMap::new();
    for round in 0..rounds.unwrap_or(ROUNDS) {
        // With one more of the same length.
        let ends = begun.elapsed() * (round + 1) / round.max(1);
        if rounds.is_none() && round >= LEAST_ROUNDS && ends > LONGEST {
            break;
        }
        let mut turns = turns.clone();
        if round % 2 == 1 {
            turns.reverse();
        }
        for (name, run) in turns {
            measured.entry(name).or_default().push(run(outstanding, round));
        }
    }
    let mut rows = Vec::new();
    for (case, unit, of) in CASES {
        for (name, _) in &turns {
            let values = |name: &str| measured[name].iter().map(of).collect::<Vec<f64>>();
            let own = values(name);
            let case = format!("{outstanding}/{case}");
            let mut row = Row::alone(&case, name, median(&mut own.clone()), unit);
            if name.starts_with("hourglass") {
                row.ratio_to = PEERS.map(|peer| ratio(peer, &own, &values(peer))).into();
            }
            rows.push(if outstanding == MANY { with_goal(row) } else { row });
        }
    }
    rows
}

fn with_goal(mut row: Row) -> Row {
    let case = row.case.rsplit_once('/').map_or("", |(_, case)| case).to_owned();
    match (row.subject.as_str(), case.as_str()) {
        (<ours::ExactQueue<Heap>>::NAME, "insert") => row.set_goal(standard::Map::NAME, 0.1),
        (<ours::ExactQueue<Heap>>::NAME, "cancel") => row.set_goal(standard::Map::NAME, 0.15),
        (<ours::ExactQueue<Heap>>::NAME, "rearm") => row.set_goal(standard::Map::NAME, 0.75),
        (<ours::ExactQueue<Heap>>::NAME | ours::Timeouts::NAME, "worst_poll") => {
            return row.at_most(1_000.0);
        }
        (ours::Timeouts::NAME, "arm_cancel") => return row.at_most(15.0),
        _ => {}
    }
    row
}

/// A case's name, its unit, and which of the figures it is.
type Case = (&'static str, &'static str, fn(&Figures) -> f64);

const CASES: [Case; 6] = [
    ("insert", "ns", |figures| figures.insert),
    ("cancel", "ns", |figures| figures.cancel),
    ("arm_cancel", "ns", |figures| figures.arm_cancel),
    ("rearm", "ns", |figures| figures.rearm),
    ("worst_poll", "us", |figures| figures.worst_poll),
    ("p999_poll", "us", |figures| figures.p999_poll),
];

fn ratio(peer: &str, own: &[f64], theirs: &[f64]) -> (String, f64) {
    let mut ratios: Vec<f64> = own.iter().zip(theirs).map(|(own, their)| own / their).collect();
    (peer.to_owned(), median(&mut ratios))
}
