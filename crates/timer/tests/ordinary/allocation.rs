//! Engines and periodic loops never allocate, and a timer of an engine takes 64 bytes at most.

use hourglass_dice::Dice;
use hourglass_sys::allocation::thread_counts;
use hourglass_time::Span;
use hourglass_timer::Sleeper;
use hourglass_timer::engine::{ClockBase, ClockSetPolicy, DEFAULT_TICK, Engine, TimerId};
use hourglass_timer::event::native::SleepEvent;
use hourglass_timer::event::{EventDevice, SimEventConfig};
use hourglass_timer::periodic::{OverrunPolicy, Parameters, PeriodicLoop, RunningJob, Snapshot};
use hourglass_timer::sleep::{SleepPolicy, SleeperSettings};

use crate::common::machine;

/// From the first release on: waiting in the kernel and with the learnt margin, in time and overrun,
/// under each overrun policy; and reading the statistics into an older copy.
#[test]
fn a_periodic_task_never_allocates() {
    let policies = [OverrunPolicy::Skip, OverrunPolicy::CatchUp, OverrunPolicy::Delay];
    for (settings, policy) in
        [SleeperSettings::with_policy(SleepPolicy::KernelOnly), SleeperSettings::DEFAULT]
            .map(|s| policies.map(|p| (s, p)))
            .concat()
    {
        let parameters = Parameters::every(Span::from_micros(200)).with_overrun_policy(policy);
        let parameters = parameters.with_budget(Span::from_micros(100)).check().unwrap();
        let mut task = PeriodicLoop::new(Sleeper::with(settings), &parameters);
        let statistics = task.statistics();
        let mut copy = Snapshot::new();
        let mut late = 0u64;
        let mut body = |job: &mut RunningJob<'_>| {
            let end = job.now_ns() + if job.number().is_multiple_of(8) { 450_000 } else { 10_000 };
            while job.now_ns() < end {
                late += u64::from(!job.check().is_within());
            }
        };
        let before = thread_counts();
        for _ in 0..200 {
            let _ = task.step(&mut body);
            statistics.read_into(&mut copy);
        }
        assert_eq!(thread_counts(), before, "{policy:?}");
        assert!(copy.jobs == 200 && copy.overruns >= 25 && late > 0);
    }
}

fn run(engine: &mut Engine<u64>, turns: u64, mut ahead_ns: impl FnMut(&mut Dice) -> i64) {
    let mut dice = Dice::new(3);
    let timers = engine.timers();
    let mut ids: Vec<TimerId> = Vec::new();
    for i in 0..100 {
        ids.extend(
            ClockBase::ALL.map(|base| timers.create_with(base, ClockSetPolicy::Expire, i).unwrap()),
        );
    }
    let mut fired = 0;
    let mut turn = |engine: &mut Engine<u64>, dice: &mut Dice| {
        let now = engine.now();
        for _ in 0..5 {
            let id = ids[dice.below(ids.len() as u64) as usize];
            let expiry_ns = now.ns(id.base()) + ahead_ns(dice);
            let timers = engine.timers();
            match dice.below(4) {
                0 => assert!(timers.cancel(id).is_ok()),
                _ => timers.arm(id, expiry_ns, dice.below(1_000)).unwrap(),
            }
        }
        engine.wait(Some(now.device_ns() + 50_000_000)).unwrap();
        fired += engine.expire(20, |timers, fired| {
            timers.arm(fired.id, fired.now_ns + 1_000_000, 0).unwrap();
        });
    };
    // The first wait may start a thread that watches the clocks.
    for _ in 0..10 {
        turn(engine, &mut dice);
    }
    let before = thread_counts();
    for _ in 0..turns {
        turn(engine, &mut dice);
    }
    assert_eq!(thread_counts(), before);
    assert!(fired > turns as usize / 2, "{fired}");
}

#[test]
fn engines_never_allocate() {
    for config in [SimEventConfig::exact(), SimEventConfig::i8254(), SimEventConfig::mc146818()] {
        let (mut engine, _) = machine::engine(config);
        run(&mut engine, 5_000, |dice| dice.magnitude(30));
    }
}

#[test]
fn an_engine_of_this_machine_never_allocates() {
    let device = EventDevice::new(SleepEvent::new()).unwrap();
    let mut engine = Engine::native(DEFAULT_TICK, device).unwrap();
    run(&mut engine, 200, |dice| dice.magnitude(20));
}

/// The project's bound, with an eight-byte payload; all arrays included, at the room reserved.
#[test]
fn a_timer_of_an_engine_takes_64_bytes_at_most() {
    let timers = 100_000;
    let before = thread_counts().held;
    let (mut engine, _) = machine::engine::<u64>(SimEventConfig::exact());
    engine.timers().reserve(ClockBase::Realtime, timers).unwrap();
    let of_engine = (thread_counts().held - before) as f64 / timers as f64;
    assert!(of_engine <= 64.5, "{of_engine} bytes a timer, with the engine's own 20 KiB or so");
}
