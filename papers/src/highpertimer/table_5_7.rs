//! Table 5.7: the thesis' sleep called, and expanded inline.

use hourglass_documents::paper::{MeasurementKind, PaperRow, PaperTable};
use hourglass_timer::sleep::HzProbe;

use super::super::bench::MeasurementSize;
use super::super::{MeasuredTable, TableDef};
use super::INTEL_1000;
use super::sleep_rows::{UNRELIABLE, row, said};
use super::sleeps::block::BlockSleeper;
use super::sleeps::local_sleeper::{LocalSleeper, conditions};
use super::sleeps::stats::{Values, mean_of, median_of};
use super::sleeps::{SleepMethod, probe};

pub(super) const TABLE: TableDef = TableDef {
    id: "5.7",
    title: "Mean miss of the thesis' sleep, called and expanded inline",
    measure: |bench| {
        let probe = probe(bench);
        let rounds = match bench.effort {
            MeasurementSize::Quick => 10,
            MeasurementSize::Full => 100,
        };
        let mut here = LocalSleeper::new(&WAYS.map(|(way, ..)| way), probe.policy());
        let found = Table57Data::measured(&mut here, probe, rounds, bench.stopped)?;
        Some(found.assembled(MeasurementKind::Measured, &conditions(bench)))
    },
};

/// Way, name, and the thesis' means of long and short sleeps, us.
const WAYS: [(SleepMethod, &str, [f64; 2]); 2] = [
    (SleepMethod::ThesisCalled, "not inline", [0.258, 0.095]),
    (SleepMethod::Thesis, "inline", [0.250, 0.095]),
];

/// Lengths, ns, and how often each is slept in a round. The first one is twice 1/HZ.
const SHORT: [(u64, usize); 3] = [(488_000, 10), (61_000, 20), (7_000, 20)];
const LONG_TIMES: usize = 3;

/// What was found: for each way the misses of the long sleeps, and of the short ones by length.
pub(super) struct Table57Data {
    probe: HzProbe,
    rounds: usize,
    long: [Values; 2],
    short: [Vec<Values>; 2],
}

impl Table57Data {
    /// Both ways in turn. `None` if `stopped` said so.
    pub(super) fn measured(
        machine: &mut impl BlockSleeper,
        probe: HzProbe,
        rounds: usize,
        stopped: impl Fn() -> bool,
    ) -> Option<Table57Data> {
        let tick_ns = probe.policy().tick_ns().unwrap_or(1_000_000);
        let lengths = [&[(2 * tick_ns, LONG_TIMES)], SHORT.as_slice()].concat();
        let mut misses = vec![vec![Vec::new(); lengths.len()]; WAYS.len()];
        for round in 0..rounds {
            for (at, (length_ns, times)) in lengths.iter().enumerate() {
                for turn in 0..WAYS.len() {
                    let index = (turn + round) % WAYS.len();
                    if stopped() {
                        return None;
                    }
                    if let Ok(block) = machine.block(WAYS[index].0, *length_ns, *times) {
                        misses[index][at].extend(block.samples.iter().map(|sample| sample.miss));
                    }
                }
            }
        }
        let values = |index: usize, at: usize| Values::of(misses[index][at].iter().copied());
        Some(Table57Data {
            probe,
            rounds,
            long: [values(0, 0), values(1, 0)],
            short: [0, 1].map(|index| (1..lengths.len()).map(|at| values(index, at)).collect()),
        })
    }

    fn short(&self, index: usize, of: fn(&Values) -> Option<f64>) -> Option<f64> {
        mean_of(&self.short[index].iter().collect::<Vec<_>>(), of)
    }

    fn short_median(&self, index: usize) -> Option<f64> {
        median_of(&self.short[index].iter().collect::<Vec<_>>())
    }

    pub(super) fn assembled(&self, how: MeasurementKind, conditions: &str) -> MeasuredTable {
        let mut rows: Vec<PaperRow> = Vec::new();
        for (index, (_, name, printed)) in WAYS.into_iter().enumerate() {
            let short = self.short[index].iter().map(Values::count).sum();
            let mut add = |class: &str, paper, ns: Option<f64>, count| {
                let both = (paper, ns.map(|ns| ns / 1e3));
                rows.push(row(format!("{name}, {class}"), both, "us", how, count));
            };
            let long = &self.long[index];
            add(">= 1/HZ: mean", Some(printed[0]), long.mean(), long.count());
            add(">= 1/HZ: median", None, long.median(), long.count());
            add("< 1/HZ: mean", Some(printed[1]), self.short(index, Values::mean), short);
            add("< 1/HZ: median", None, self.short_median(index), short);
        }
        let tick_ms = self.probe.policy().tick_ns().map_or(0.0, |ns| ns as f64 / 1e6);
        let table = PaperTable {
            id: TABLE.id.into(),
            title: TABLE.title.into(),
            paper_machine: INTEL_1000.into(),
            method: format!(
                "sleeps of {:.0} ms, and of 488, 61 and 7 us which count alike, both ways in turn \
                 in {} rounds; {conditions}; 1/HZ = {tick_ms:.1} ms ({})",
                2.0 * tick_ms,
                self.rounds,
                self.probe
            ),
            rows,
            decisions: Vec::new(),
            difference: self.explain(),
            notes: notes(),
            figure: None,
        };
        MeasuredTable { table, figure: None }
    }

    fn explain(&self) -> String {
        format!(
            "By the medians long sleeps miss {} called and {} inline, short ones {} and {}; a call \
             takes some nanoseconds, and the thesis found 8 and 0 ns. The means are those of all \
             sleeps, and beyond that they are made of preemptions.",
            said(self.long[0].median()),
            said(self.long[1].median()),
            said(self.short_median(0)),
            said(self.short_median(1))
        )
    }
}

fn notes() -> Vec<String> {
    [
        "The thesis heads the columns with nanoseconds; its text and Table 5.5 give the same numbers \
         in microseconds, and so they stand here.",
        "What is expanded inline here is the sleep around its spin; the spin itself is a function in \
         both cases.",
        UNRELIABLE,
    ]
    .map(str::to_owned)
    .to_vec()
}
