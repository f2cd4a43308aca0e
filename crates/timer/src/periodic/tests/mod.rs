//! Periodic tasks: hours of them on simulated machines. Every random run prints its seed.

mod by_hand;
mod stopping;
mod twin;

use hourglass_time::Span;

use super::{Parameters, PeriodicLoop, ValidParameters};
use crate::sleep::sim::{Load, SimMachine};
use crate::sleep::tests::{SimClock, seed, sleeper};
use crate::sleep::{Mechanism, SleepPolicy, SleeperSettings};

type SimLoop = PeriodicLoop<SimClock, SimMachine>;
type SimJob<'a> = super::RunningJob<'a, SimClock, SimMachine>;

const MS: u64 = 1_000_000;

/// A task on a simulated machine that waits in the kernel only.
fn task(seed: u64, load: Load, parameters: &ValidParameters) -> SimLoop {
    let sleeper = sleeper(seed, load, SleeperSettings::with_policy(SleepPolicy::KernelOnly));
    PeriodicLoop::new(sleeper, parameters)
}

fn every_ms(ms: i64) -> Parameters {
    Parameters::every(Span::from_millis(ms))
}

/// A small generator (SplitMix64), so that a printed seed replays a run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}
