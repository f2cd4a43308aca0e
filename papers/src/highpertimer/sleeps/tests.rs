//! Sleeping on a simulated machine, whose wake-ups have a given latency.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use hourglass_clock::Clock;
use hourglass_clock::source::SimSource;
use hourglass_clock::source::sim::SimConfig;
use hourglass_clock::timekeeping::ClockSettings;
use hourglass_time::Span;
use hourglass_timer::sleep::sim::{LatencyDistribution, Load, SimMachine};
use hourglass_timer::sleep::{Mechanism, SleepOutcome, SleepPolicy, Sleeper, SleeperSettings};

use super::super::super::bench::MeasurementSize;
use super::block::{Block, BlockSleeper, OutOfLineSleep, Sleeps, Usage, block};
use super::sweep::{LENGTHS, Sweep, SweepPlan, sweep};
use super::{DRAWN, SleepMethod};

type SimClock = Arc<Clock<Arc<SimSource>>>;
type SimSleeper = Sleeper<SimClock, SimMachine>;

/// A simulated machine: wake-ups exactly 30 us late, slack 50 us, a read of the clock 15 ns.
pub(crate) struct Simulated {
    clock: SimClock,
    system: SimSystem,
    sleepers: Vec<(SleepMethod, SimSleeper)>,
    called: OutOfLineSleep<SimSleeper>,
}

struct SimSystem {
    machine: SimMachine,
    clock: SimClock,
}

impl Sleeps for SimSystem {
    fn sleep(&mut self, length_ns: u64) -> Option<SleepOutcome> {
        self.machine.wait_for(&AtomicU32::new(0), 0, length_ns);
        None
    }

    fn usage(&mut self) -> Usage {
        Usage {
            cpu_ns: self.machine.cpu_time_ns(),
            wall_ns: self.clock.now_ordered(),
            preemptions: 0,
            split: None,
        }
    }
}

impl Simulated {
    pub(crate) fn new(hz: u32) -> Simulated {
        let time = Arc::new(SimSource::new(SimConfig {
            read_cost: Span::from_nanos(15),
            ..SimConfig::default()
        }));
        let settings = ClockSettings { look_every_ns: u64::MAX, ..ClockSettings::DEFAULT };
        let clock = Arc::new(Clock::on(Arc::clone(&time), settings));
        let load = Load {
            wake_ups: vec![LatencyDistribution { weight: 1, from_ns: 30_000, to_ns: 30_000 }],
            ..Load::idle()
        };
        let machine = || SimMachine::new(Arc::clone(&time), 1, load.clone());
        let sleeper = |policy| {
            Sleeper::on(Arc::clone(&clock), machine(), SleeperSettings::with_policy(policy))
        };
        Simulated {
            system: SimSystem { machine: machine(), clock: Arc::clone(&clock) },
            sleepers: vec![
                (SleepMethod::KernelOnly, sleeper(SleepPolicy::KernelOnly)),
                (SleepMethod::Busy, sleeper(SleepPolicy::SpinOnly)),
                (SleepMethod::Thesis, sleeper(SleepPolicy::Thesis { hz })),
                (SleepMethod::Learned, sleeper(SleepPolicy::Learned)),
                (
                    SleepMethod::Frugal,
                    Sleeper::on(Arc::clone(&clock), machine(), SleeperSettings::FRUGAL),
                ),
                (
                    SleepMethod::Precise,
                    Sleeper::on(Arc::clone(&clock), machine(), SleeperSettings::PRECISE),
                ),
            ],
            called: OutOfLineSleep(sleeper(SleepPolicy::Thesis { hz })),
            clock,
        }
    }
}

impl BlockSleeper for Simulated {
    fn block(&mut self, way: SleepMethod, length_ns: u64, times: usize) -> Result<Block, String> {
        let clock = &*self.clock;
        let own = self.sleepers.iter_mut().find(|(own, _)| *own == way);
        let mut done = match (way, own) {
            (SleepMethod::System, _) => block(clock, &mut self.system, length_ns, times),
            (_, Some((_, sleeper))) => block(clock, sleeper, length_ns, times),
            _ => block(clock, &mut self.called, length_ns, times),
        };
        // It has no system mode.
        done.usage.split = Some((done.usage.cpu_ns, 0));
        Ok(done)
    }
}

pub(crate) fn simulated(hz: u32) -> Sweep {
    sweep(&mut Simulated::new(hz), &SweepPlan::of(MeasurementSize::Quick), || false).unwrap()
}

fn at(ns: u64) -> usize {
    LENGTHS.iter().position(|length| length.ns == ns).unwrap()
}

#[test]
fn misses_and_cpu_time_follow_from_the_machine() {
    let sweep = simulated(1_000);
    let median = |way, ns| sweep.of(way, at(ns)).misses().median().unwrap();
    let cpu = |way, ns| sweep.of(way, at(ns)).cpu_percent().unwrap();
    let second = 1_000_000_000;
    // Slack and wake-up, and a read of the clock.
    assert!((80_000.0..80_200.0).contains(&median(SleepMethod::System, second)));
    assert!((30_000.0..30_400.0).contains(&median(SleepMethod::KernelOnly, 125_000_000)));
    for way in [SleepMethod::Busy, SleepMethod::Thesis, SleepMethod::Learned] {
        for length in LENGTHS {
            assert!(median(way, length.ns) < 300.0, "{way:?} {length:?}");
        }
    }
    assert!(cpu(SleepMethod::Busy, second) > 99.9 && cpu(SleepMethod::System, second) < 0.1);
    // 1/HZ of 1.953 ms, less what the kernel is late by: some 47 %.
    assert!(
        (40.0..55.0).contains(&cpu(SleepMethod::Thesis, 1_953_000)),
        "{}",
        cpu(SleepMethod::Thesis, 1_953_000)
    );
    assert!(cpu(SleepMethod::Thesis, 976_000) > 99.0, "shorter than 1/HZ is spun");
    assert!(cpu(SleepMethod::Learned, 1_953_000) < 5.0, "{}", cpu(SleepMethod::Learned, 1_953_000));
}

/// The parts of a miss make up the whole (Figure 5.7).
#[test]
fn the_measuring_points_add_up() {
    let mut machine = Simulated::new(250);
    for way in
        [SleepMethod::Busy, SleepMethod::Thesis, SleepMethod::ThesisCalled, SleepMethod::Learned]
    {
        for sample in machine.block(way, 61_000, 50).unwrap().samples {
            let parts = sample.parts.unwrap();
            assert_eq!(parts.entry + parts.inside + parts.exit, sample.miss, "{way:?}");
            assert!(parts.entry >= 0 && parts.inside >= 0 && parts.exit >= 0, "{sample:?}");
        }
    }
}

#[test]
fn the_plan_is_kept() {
    for effort in [MeasurementSize::Quick, MeasurementSize::Full] {
        let plan = SweepPlan::of(effort);
        let least_ns: u64 =
            LENGTHS.iter().zip(plan.counts).map(|(length, count)| length.ns * count as u64).sum();
        let seconds = least_ns * SleepMethod::COMPARED.len() as u64 / 1_000_000_000;
        assert!(seconds < if effort == MeasurementSize::Quick { 15 } else { 180 }, "{seconds} s");
    }
    let (sweep_done, plan) = (simulated(250), SweepPlan::of(MeasurementSize::Quick));
    for (at, count) in plan.counts.into_iter().enumerate() {
        for way in SleepMethod::COMPARED {
            let expected = if way == SleepMethod::Thesis { count.max(2) } else { count };
            assert_eq!(sweep_done.of(way, at).count(), expected as u64, "{way:?} {at}");
        }
        let drawn = if DRAWN.contains(&LENGTHS[at].ns) { count as u64 } else { 0 };
        assert_eq!(sweep_done.of(SleepMethod::Precise, at).count(), drawn);
        let tally = sweep_done.of(SleepMethod::Thesis, at);
        assert!(tally.half(false).count() >= 1 && tally.half(true).count() >= 1);
    }
    assert!(sweep(&mut Simulated::new(250), &plan, || true).is_none());
}
