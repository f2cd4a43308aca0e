//! Table 5.7: the thesis' sleep called, and expanded inline.

use hourglass_documents::paper::MeasurementKind;
use hourglass_timer::sleep::HzProbe;

use super::super::bench::MeasurementHost;
use super::super::printed::{MeasuredTable, Table};
use super::super::rows::row;
use super::sleep_tables::tick_values;
use super::sleeps::block::BlockSleeper;
use super::sleeps::local_sleeper::{LocalSleeper, conditions};
use super::sleeps::stats::{Values, mean_of, median_of};
use super::sleeps::{SleepMethod, probe};

/// In the order of the table's lines.
const WAYS: [SleepMethod; 2] = [SleepMethod::ThesisCalled, SleepMethod::Thesis];

/// Lengths, ns, and how often each is slept in a round. The first one is twice 1/HZ.
const SHORT: [(u64, usize); 3] = [(488_000, 10), (61_000, 20), (7_000, 20)];
const LONG_TIMES: usize = 3;

pub(super) fn measure(table: &Table, bench: &MeasurementHost) -> Option<MeasuredTable> {
    let probe = probe(bench);
    let rounds = bench.at_most(100, 10);
    let mut here = LocalSleeper::new(&WAYS, probe.policy());
    let found = Table57Data::measured(&mut here, probe, rounds, bench.stopped)?;
    Some(found.assembled(table, MeasurementKind::Measured, &conditions(bench)))
}

/// What was found: for each way the misses by length, the long one first.
pub(super) struct Table57Data {
    probe: HzProbe,
    tick_ns: u64,
    rounds: usize,
    misses: [Vec<Values>; 2],
}

impl Table57Data {
    pub(super) fn measured(
        machine: &mut impl BlockSleeper,
        probe: HzProbe,
        rounds: usize,
        stopped: impl Fn() -> bool,
    ) -> Option<Table57Data> {
        let tick_ns = probe.policy().tick_ns().unwrap_or(1_000_000);
        let lengths = [&[(2 * tick_ns, LONG_TIMES)], SHORT.as_slice()].concat();
        let mut misses = [(); 2].map(|()| vec![Vec::new(); lengths.len()]);
        for round in 0..rounds {
            for (at, (length_ns, times)) in lengths.iter().enumerate() {
                for turn in 0..WAYS.len() {
                    let index = (turn + round) % WAYS.len();
                    if stopped() {
                        return None;
                    }
                    if let Ok(block) = machine.block(WAYS[index], *length_ns, *times) {
                        misses[index][at].extend(block.samples.iter().map(|sample| sample.miss));
                    }
                }
            }
        }
        let values = |all: Vec<Vec<i64>>| all.into_iter().map(|one| Values::of(one.into_iter()));
        let misses = misses.map(|all| values(all).collect());
        Some(Table57Data { probe, tick_ns, rounds, misses })
    }

    pub(super) fn assembled(
        &self,
        table: &Table,
        how: MeasurementKind,
        conditions: &str,
    ) -> MeasuredTable {
        let mut rows = Vec::new();
        for (line, misses) in table.lines.iter().zip(&self.misses) {
            let misses: Vec<&Values> = misses.iter().collect();
            let classes = [(">= 1/HZ", &misses[..1]), ("< 1/HZ", &misses[1..])];
            for (column, (class, misses)) in classes.into_iter().enumerate() {
                let count = misses.iter().map(|values| values.count()).sum();
                let mut add = |statistic: &str, paper, ns: Option<f64>| {
                    let why =
                        "a sleep that it needs could not be measured; run it under SCHED_OTHER";
                    let found = ns.map(|ns| (ns, count)).ok_or_else(|| why.to_owned());
                    let name = format!("{}, {class}: {statistic}", line.name);
                    rows.push(row(name, &line.unit, paper, how, found));
                };
                add("mean", line.printed(column), mean_of(misses, Values::mean));
                add("median", None, median_of(misses));
            }
        }
        let values = tick_values(self.probe)
            .with("long", format!("{:.0} ms", 2.0 * self.tick_ns as f64 / 1e6))
            .with("rounds", self.rounds)
            .with("conditions", conditions);
        table.with_rows(rows, values)
    }
}
