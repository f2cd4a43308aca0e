//! Sleeping on simulated machines. Every random test prints its seed.

mod budget;
mod ends;
mod help;
mod learning;
mod questions;
mod rate;
mod thesis;

use std::sync::Arc;

use hourglass_clock::Clock;
use hourglass_clock::source::SimSource;
use hourglass_clock::source::sim::SimConfig;
use hourglass_clock::timekeeping::ClockSettings;
use hourglass_time::Span;

use super::sim::{Load, SimMachine};
use super::{Mechanism, SleepOutcome, Sleeper, SleeperSettings};
pub(crate) use hourglass_dice::seed;

pub(crate) type SimClock = Arc<Clock<Arc<SimSource>>>;
pub(crate) type SimSleeper = Sleeper<SimClock, SimMachine>;

pub(crate) fn sleeper(seed: u64, load: Load, settings: SleeperSettings) -> SimSleeper {
    let time = Arc::new(SimSource::new(SimConfig {
        seed,
        read_cost: Span::from_nanos(15),
        read_jitter: Span::from_nanos(10),
        ..SimConfig::default()
    }));
    let clock_settings = ClockSettings { look_every_ns: u64::MAX, ..ClockSettings::DEFAULT };
    let clock = Arc::new(Clock::on(Arc::clone(&time), clock_settings));
    Sleeper::on(clock, SimMachine::new(time, seed, load), settings)
}

#[derive(Debug, Default)]
struct Run {
    misses_ns: Vec<u64>,
    cpu_ns: u64,
    wall_ns: u64,
}

impl Run {
    fn of(sleeper: &mut SimSleeper, sleeps: u32, mut length_ns: impl FnMut() -> u64) -> Run {
        let (begun, cpu) = (sleeper.mechanism().now(), sleeper.mechanism().cpu_time_ns());
        let mut misses_ns: Vec<u64> = (0..sleeps)
            .map(|_| {
                let slept: SleepOutcome = sleeper.sleep_ns(length_ns());
                assert!(slept.reached() && !slept.interrupted, "{slept:?}");
                slept.miss_ns()
            })
            .collect();
        misses_ns.sort_unstable();
        Run {
            misses_ns,
            cpu_ns: sleeper.mechanism().cpu_time_ns() - cpu,
            wall_ns: sleeper.mechanism().now() - begun,
        }
    }

    fn miss_ns(&self, ppm: usize) -> u64 {
        self.misses_ns[(self.misses_ns.len() - 1) * ppm / 1_000_000]
    }

    fn cpu_ppm(&self) -> u64 {
        self.cpu_ns * 1_000_000 / self.wall_ns
    }
}
