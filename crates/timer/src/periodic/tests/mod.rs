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

fn task(seed: u64, load: Load, parameters: &ValidParameters) -> SimLoop {
    let sleeper = sleeper(seed, load, SleeperSettings::with_policy(SleepPolicy::KernelOnly));
    PeriodicLoop::new(sleeper, parameters)
}

fn every_ms(ms: i64) -> Parameters {
    Parameters::every(Span::from_millis(ms))
}
