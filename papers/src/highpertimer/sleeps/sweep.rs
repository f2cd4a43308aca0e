//! All lengths of the thesis by several ways, in turn.

use super::super::super::bench::MeasurementSize;
use super::block::{Block, BlockSleeper, MissParts, Usage};
use super::stats::Values;
use super::{DRAWN, SleepMethod};

/// A length of sleep of Tables 5.1, 5.2, 5.4 and 5.6, as printed there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Length {
    pub(crate) name: &'static str,
    pub(crate) ns: u64,
}

const fn length(name: &'static str, ns: u64) -> Length {
    Length { name, ns }
}

pub(crate) const LENGTHS: [Length; 20] = [
    length("1 s", 1_000_000_000),
    length("0.5 s", 500_000_000),
    length("0.25 s", 250_000_000),
    length("125 ms", 125_000_000),
    length("62.5 ms", 62_500_000),
    length("31.25 ms", 31_250_000),
    length("15.625 ms", 15_625_000),
    length("7.812 ms", 7_812_000),
    length("3.906 ms", 3_906_000),
    length("1.953 ms", 1_953_000),
    length("976 us", 976_000),
    length("488 us", 488_000),
    length("244 us", 244_000),
    length("122 us", 122_000),
    length("61 us", 61_000),
    length("30 us", 30_000),
    length("15 us", 15_000),
    length("7 us", 7_000),
    length("3 us", 3_000),
    length("1 us", 1_000),
];

#[derive(Clone, Debug)]
pub(crate) struct SweepPlan {
    pub(crate) rounds: usize,
    pub(crate) counts: [usize; 20],
}

/// Sleeps before those that count, for sleepers that learn: length, ns, and how often.
const FIRST: [(u64, usize); 3] = [(100_000, 60), (1_000_000, 40), (5_000_000, 12)];

impl SweepPlan {
    /// A quarter of a minute for all ways, or some minutes.
    pub(crate) fn of(effort: MeasurementSize) -> SweepPlan {
        match effort {
            MeasurementSize::Quick => SweepPlan {
                rounds: 6,
                counts: [
                    1, 1, 1, 1, 2, 3, 5, 8, 12, 20, 40, 80, 120, 200, 250, 250, 250, 250, 250, 250,
                ],
            },
            MeasurementSize::Full => SweepPlan {
                rounds: 20,
                counts: [
                    5, 5, 10, 20, 40, 80, 150, 300, 500, 800, 1_500, 2_000, 2_000, 2_000, 2_000,
                    2_000, 2_000, 2_000, 2_000, 2_000,
                ],
            },
        }
    }

    /// How often the length of that number is slept by this way: the thesis' has two runs.
    fn count(&self, way: SleepMethod, at: usize) -> usize {
        match way {
            SleepMethod::Thesis => self.counts[at].max(2),
            _ if way.is_drawn_only() && !DRAWN.contains(&LENGTHS[at].ns) => 0,
            _ => self.counts[at],
        }
    }

    /// How often in that round: evenly spread over the rounds.
    fn times(&self, way: SleepMethod, at: usize, round: usize) -> usize {
        let count = self.count(way, at);
        let rounds = self.rounds.max(1);
        (round + 1) * count / rounds - round * count / rounds
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    blocks: Vec<Block>,
    pub(crate) missing: Option<String>,
}

impl Tally {
    pub(crate) fn misses(&self) -> Values {
        let samples = self.blocks.iter().flat_map(|block| &block.samples);
        Values::of(samples.map(|sample| sample.miss))
    }

    pub(crate) fn half(&self, second: bool) -> Values {
        let samples = || self.blocks.iter().flat_map(|block| &block.samples);
        let first = samples().count().div_ceil(2);
        let misses = samples().map(|sample| sample.miss);
        if second { Values::of(misses.skip(first)) } else { Values::of(misses.take(first)) }
    }

    pub(crate) fn part(&self, of: fn(&MissParts) -> i64) -> Values {
        let samples = self.blocks.iter().flat_map(|block| &block.samples);
        Values::of(samples.filter_map(|sample| sample.parts.as_ref()).map(of))
    }

    pub(crate) fn usage(&self) -> Usage {
        self.blocks.iter().fold(Usage::default(), |sum, block| sum.and(block.usage))
    }

    pub(crate) fn count(&self) -> u64 {
        self.blocks.iter().map(|block| block.samples.len() as u64).sum()
    }

    pub(crate) fn cpu_percent(&self) -> Option<f64> {
        let usage = self.usage();
        (usage.wall_ns > 0).then(|| usage.cpu_ns as f64 * 100.0 / usage.wall_ns as f64)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Sweep {
    ways: Vec<SleepMethod>,
    tallies: Vec<Vec<Tally>>,
    pub(crate) rounds: usize,
}

impl Sweep {
    pub(crate) fn of(&self, way: SleepMethod, at: usize) -> &Tally {
        const NOTHING: &Tally = &Tally { blocks: Vec::new(), missing: None };
        let index = self.ways.iter().position(|own| *own == way);
        index.and_then(|index| self.tallies[index].get(at)).unwrap_or(NOTHING)
    }

    pub(crate) fn preemptions(&self) -> u64 {
        self.tallies.iter().flatten().map(|tally| tally.usage().preemptions).sum()
    }
}

fn learns(way: SleepMethod) -> bool {
    way == SleepMethod::Learned || way.is_drawn_only()
}

/// Every length by every way, in turn; each round the ways are in another order. `None` if `stopped`
/// said so before it was complete.
pub(crate) fn sweep(
    machine: &mut impl BlockSleeper,
    plan: &SweepPlan,
    stopped: impl Fn() -> bool,
) -> Option<Sweep> {
    let ways = SleepMethod::MEASURED;
    let mut tallies = vec![vec![Tally::default(); LENGTHS.len()]; ways.len()];
    for way in ways {
        for (ns, times) in FIRST.into_iter().take(if learns(way) { 3 } else { 1 }) {
            // A failure is reported when the sleeps count.
            let _ = machine.block(way, ns, times);
        }
    }
    for round in 0..plan.rounds {
        for (at, length) in LENGTHS.iter().enumerate() {
            for turn in 0..ways.len() {
                let index = (turn + round) % ways.len();
                let times = plan.times(ways[index], at, round);
                if times == 0 {
                    continue;
                }
                if stopped() {
                    return None;
                }
                match machine.block(ways[index], length.ns, times) {
                    Ok(block) => tallies[index][at].blocks.push(block),
                    Err(why) => tallies[index][at].missing = Some(why),
                }
            }
        }
    }
    Some(Sweep { ways: ways.to_vec(), tallies, rounds: plan.rounds })
}
