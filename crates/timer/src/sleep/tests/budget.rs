//! The default budget on machines of all kinds, beside what peers do there.
//!
//! Waits take 4 to 70 us of the CPU, wake-ups are late by 3 to 250 us: alike, spread exponentially,
//! one of two kinds, or another every few hundred sleeps.

use std::sync::atomic::AtomicU32;

use super::*;
use crate::sleep::SchedClass;
use crate::sleep::sim::LatencyDistribution;

const WAITS_NS: [u64; 4] = [4_000, 12_000, 30_000, 70_000];
const LATENESS_NS: [u64; 6] = [3_000, 10_000, 30_000, 60_000, 120_000, 250_000];
const LENGTHS_NS: [u64; 4] = [100_000, 1_000_000, 10_000_000, 100_000_000];
/// Sleeps that count; as many before them are for learning.
const SLEEPS: u32 = 600;

/// Where all random sequences begin, unless `HOURGLASS_SEED` says otherwise: with so few sleeps, one seed of sixty puts
/// one of the 576 points beyond its allowance.
fn fixed_seed() -> u64 {
    let given = std::env::var("HOURGLASS_SEED").ok().and_then(|seed| seed.parse().ok());
    given.unwrap_or(7_919)
}

/// Where a peer's fixed time happens to fit.
const LATE_AND_ALIKE: [Kind; 2] = [
    Kind { spread: Spread::Alike, mean_ns: 68_000, wait_ns: 30_000 },
    Kind { spread: Spread::Alike, mean_ns: 90_000, wait_ns: 30_000 },
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spread {
    Alike,
    Exponential,
    TwoKinds,
}

const SPREADS: [Spread; 3] = [Spread::Alike, Spread::Exponential, Spread::TwoKinds];

#[derive(Clone, Copy, Debug)]
struct Kind {
    spread: Spread,
    mean_ns: u64,
    wait_ns: u64,
}

impl Kind {
    fn all() -> impl Iterator<Item = Kind> {
        let each = |spread| {
            LATENESS_NS.into_iter().flat_map(move |mean_ns| {
                WAITS_NS.into_iter().map(move |wait_ns| Kind { spread, mean_ns, wait_ns })
            })
        };
        SPREADS.into_iter().flat_map(each)
    }

    fn load(self) -> Load {
        let mean = self.mean_ns;
        let some = |weight, from_ns, to_ns| LatencyDistribution { weight, from_ns, to_ns };
        let kind = |from_ns, to_ns| some(1, from_ns, to_ns);
        let wake_ups = match self.spread {
            Spread::Alike => vec![kind(mean, mean + mean / 10)],
            // Equally likely from one to the next, by -ln(1 - q) of the mean for q of 0 to 19/20.
            Spread::Exponential => {
                let ends = [0, 51, 105, 163, 223, 288, 357, 431, 511, 598, 693, 799, 916, 1_050];
                let ends: Vec<u64> =
                    ends.into_iter().chain([1_204, 1_386, 1_609, 1_897, 2_303, 2_996]).collect();
                let end = |index: usize| ends.get(index).map_or(5_000, |end| *end) * mean / 1_000;
                (0..ends.len()).map(|index| kind(end(index), end(index + 1))).collect()
            }
            // The median is of the later kind.
            Spread::TwoKinds => {
                vec![some(4, mean / 5, mean / 4), some(6, mean * 15 / 10, mean * 16 / 10)]
            }
        };
        Load { wake_ups, wait_cost_ns: self.wait_ns, preemptions: None }
    }

    /// The margin that covers the share of wake-ups of this spread, and what it spins, ns.
    fn covering(self, ppm: usize) -> u64 {
        let mut all: Vec<u64> = self.load().wake_ups.iter().flat_map(points).collect();
        all.sort_unstable();
        let margin = all[(all.len() - 1) * ppm / 1_000_000];
        all.iter().map(|late| margin.saturating_sub(*late)).sum::<u64>() / all.len() as u64
    }
}

/// Points evenly spread over a kind of wake-ups.
fn points(kind: &LatencyDistribution) -> impl Iterator<Item = u64> + use<> {
    let LatencyDistribution { weight, from_ns, to_ns } = *kind;
    let many = u64::from(weight) * 20;
    (0..many).map(move |part| from_ns + (to_ns - from_ns) * part / many)
}

#[derive(Clone, Copy, Debug)]
struct Point {
    p50_ns: u64,
    cpu_ns: u64,
}

fn ours(
    seed: u64,
    class: SchedClass,
    load: Load,
    length_ns: u64,
    settings: SleeperSettings,
    cold_ns: u64,
) -> Point {
    let mut sleeper = sleeper(seed, load, settings);
    sleeper.mechanism().class = class;
    sleeper.mechanism().cold_ns = cold_ns;
    let _ = Run::of(&mut sleeper, SLEEPS, || length_ns);
    let run = Run::of(&mut sleeper, SLEEPS, || length_ns);
    Point { p50_ns: run.miss_ns(500_000), cpu_ns: run.cpu_ns / u64::from(SLEEPS) }
}

/// A plain sleep without slack that ends `early_ns` before the end, and then spinning, as by
/// `spin_sleep` (125 us, with slack; tuned to 100 us without it); 0 is a plain sleep.
fn peer(seed: u64, class: SchedClass, load: Load, length_ns: u64, early_ns: u64) -> Point {
    let mut machine = sleeper(seed, load, SleeperSettings::DEFAULT);
    let machine = machine.mechanism();
    machine.class = class;
    if early_ns != SPIN_SLEEP_NS {
        machine.set_slack_ns(1);
    }
    let (word, begun, mut misses) = (AtomicU32::new(0), machine.cpu_time_ns(), Vec::new());
    for _ in 0..SLEEPS {
        let until = machine.now() + length_ns;
        if length_ns > early_ns {
            let _ = machine.wait_until(&word, 0, until - early_ns);
        }
        while machine.now() < until {
            let left = until - machine.now();
            machine.relax(left);
        }
        misses.push(machine.now() - until);
    }
    misses.sort_unstable();
    let cpu_ns = (machine.cpu_time_ns() - begun) / u64::from(SLEEPS);
    Point { p50_ns: misses[misses.len() / 2], cpu_ns }
}

const SPIN_SLEEP_NS: u64 = 125_000;
const TUNED_NS: u64 = 100_000;

/// Whether it misses less at the median for the same CPU. The margin goes with the last few wake-ups, which where
/// they are not alike costs a little.
fn is_below(peer: Point, own: Point) -> bool {
    peer.p50_ns + 1_000 + own.p50_ns / 5 < own.p50_ns && peer.cpu_ns <= own.cpu_ns
}

/// No peer misses less at the median for the same CPU; ours is at most twice the dearer of a plain
/// sleep and `spin_sleep`, but for what two of three wake-ups need; and the median is precise from
/// 10 ms on wherever that, and half a percent, allow.
#[test]
fn no_peers_point_is_below_ours() {
    let seed = fixed_seed();
    for kind in Kind::all() {
        for length_ns in LENGTHS_NS {
            for class in [SchedClass::OTHER, SchedClass::FIFO] {
                let own = ours(seed, class, kind.load(), length_ns, SleeperSettings::DEFAULT, 0);
                let plain = peer(seed, class, kind.load(), length_ns, 0);
                let spin_sleep = peer(seed, class, kind.load(), length_ns, SPIN_SLEEP_NS);
                let said = format!(
                    "{kind:?} {length_ns} {class:?}: {own:?}, plain {plain:?}, spin_sleep {spin_sleep:?}"
                );
                for peer in [plain, spin_sleep] {
                    assert!(!is_below(peer, own), "{said}");
                }
                let dearer = plain.cpu_ns.max(spin_sleep.cpu_ns);
                let usual =
                    plain.cpu_ns + kind.covering(666_667).min(length_ns / 200 + plain.cpu_ns);
                let most = (2 * dearer).max(usual * 5 / 4) + kind.mean_ns / 16 + 1_500;
                assert!(own.cpu_ns <= most.min(length_ns + plain.cpu_ns), "{said}, most {most}");
                let affordable = kind.covering(720_000) * 11 / 10 <= length_ns / 200;
                if length_ns >= 10_000_000 && affordable {
                    assert!(own.p50_ns <= 1_000, "{said}");
                }
            }
        }
    }
}

/// Nor of a frugal sleep's, also where the sleeper's own code is driven out of the caches: with a budget of a quarter of
/// the wait and nothing else 10 to 15 us of that left nothing to spin after 100 ms, and a sleep ended 28 to 78 us late at the
/// CPU time at which `spin_sleep` was late by 2 to 26 (measured on an Intel guest).
#[test]
fn no_peers_point_is_below_a_frugal_one() {
    let seed = fixed_seed();
    for kind in Kind::all().chain(LATE_AND_ALIKE) {
        for (length_ns, cold_ns) in [(1_000_000, 0), (10_000_000, 2_000), (100_000_000, 15_000)] {
            for class in [SchedClass::OTHER, SchedClass::FIFO] {
                let (load, settings) = (kind.load(), SleeperSettings::FRUGAL);
                let own = ours(seed, class, load, length_ns, settings, cold_ns);
                for early_ns in [0, SPIN_SLEEP_NS, TUNED_NS] {
                    let peer = peer(seed, class, kind.load(), length_ns, early_ns);
                    let said = format!(
                        "{kind:?} {length_ns} {class:?}: {own:?}, {early_ns} early {peer:?}"
                    );
                    assert!(!is_below(peer, own), "{said}");
                }
            }
        }
    }
}

/// A machine that is now of one kind and then of another: a sleep still costs at most about twice a
/// plain one, and the median is precise.
#[test]
fn a_change_of_the_machine_breaks_no_budget() {
    let seed = fixed_seed();
    for wait_ns in WAITS_NS {
        let kind = |mean_ns, spread| Kind { spread, mean_ns, wait_ns };
        let kinds = [
            kind(8_000, Spread::Alike),
            kind(90_000, Spread::Alike),
            kind(20_000, Spread::Exponential),
            kind(250_000, Spread::Alike),
            kind(4_000, Spread::Exponential),
        ];
        for length_ns in [1_000_000, 10_000_000] {
            let mut sleeper = sleeper(seed, kinds[0].load(), SleeperSettings::DEFAULT);
            let (mut misses, mut cpu_ns) = (Vec::new(), 0);
            for kind in kinds.iter().cycle().take(20) {
                sleeper.mechanism().set_load(kind.load());
                let run = Run::of(&mut sleeper, SLEEPS / 2, || length_ns);
                misses.extend(run.misses_ns);
                cpu_ns += run.cpu_ns / u64::from(SLEEPS / 2);
            }
            misses.sort_unstable();
            let p50 = misses[misses.len() / 2];
            let said = format!("{wait_ns} {length_ns}: p50 {p50}, {cpu_ns} ns in 20 sleeps");
            assert!(cpu_ns <= 20 * (2 * wait_ns + length_ns / 200 + 500), "{said}");
            assert!(p50 <= 1_000, "{said}");
        }
    }
}

/// The words for intent mean what they say, on any kind of machine: frugal sleeps cost no more than
/// the default ones and those no more than precise ones, which are hardly ever late.
#[test]
fn words_for_intent_are_in_order() {
    let seed = fixed_seed();
    for kind in Kind::all() {
        for length_ns in [1_000_000, 10_000_000] {
            let of = |settings| ours(seed, SchedClass::FIFO, kind.load(), length_ns, settings, 0);
            let frugal = of(SleeperSettings::FRUGAL);
            let default = of(SleeperSettings::DEFAULT);
            let precise = of(SleeperSettings::PRECISE);
            let said = format!(
                "{kind:?} {length_ns}: frugal {frugal:?}, default {default:?}, precise {precise:?}"
            );
            // A mean of some hundred sleeps.
            let slack = 1_500 + kind.mean_ns / 4;
            assert!(frugal.cpu_ns <= 2 * kind.wait_ns + length_ns / 2_000 + slack, "{said}");
            assert!(frugal.cpu_ns <= default.cpu_ns + slack, "{said}");
            assert!(default.cpu_ns <= precise.cpu_ns + slack, "{said}");
            assert!(precise.p50_ns <= default.p50_ns.max(100), "{said}");
            // No margin is longer than 0.5 ms.
            let reachable = kind.spread != Spread::Exponential || kind.mean_ns <= 60_000;
            if reachable {
                let mut sleeper = sleeper(seed, kind.load(), SleeperSettings::PRECISE);
                let _ = Run::of(&mut sleeper, SLEEPS, || length_ns);
                let p99 = Run::of(&mut sleeper, SLEEPS, || length_ns).miss_ns(980_000);
                assert!(p99 <= 1_000, "{said}: p98 {p99}");
            }
        }
    }
}
