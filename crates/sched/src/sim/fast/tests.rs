use super::super::random::Dice;
use super::super::{Cost, Late, Nobody, Unwatched, engine};
use super::*;

/// A periodic thread, perhaps with the jitter that bounds assume.
fn thread(dice: &mut Dice, class: Class) -> Thread {
    let mut between = |low, high| low + dice.up_to(high - low);
    let period = between(3, 40);
    let cost = match between(0, 2) {
        0 => Cost::Worst(between(1, period / 2)),
        1 => Cost::Listed((0..3).map(|_| between(1, period)).collect()),
        _ => {
            let times = "uniform:1ns,9ns".parse().unwrap();
            Cost::Drawn { times, at_most: 8 }
        }
    };
    let arrivals = Arrivals::Periodic { offset: between(0, 20), period };
    let deadline = between(1, 2 * period);
    let late = if between(0, 2) == 0 { Late::Skip } else { Late::Queue };
    let jitter = match between(0, 3) {
        0 => Jitter::Worst(between(0, 90)),
        _ => Jitter::None,
    };
    Thread { late, jitter, ..Thread::new(class, arrivals, cost, deadline) }
}

fn run(system: &System, settings: Settings) -> Option<Result<Outcome, SimError>> {
    super::run(system, settings, &mut |_| true)
}

/// Threads that are pinned to CPUs, each of which has its own order.
fn pinned(dice: &mut Dice, cpus: u32) -> System {
    let mut system = System::new(cpus);
    let by_deadline: Vec<bool> = (0..cpus).map(|_| dice.up_to(1) == 0).collect();
    for priority in 0..1 + dice.up_to(9) {
        let cpu = dice.up_to(u64::from(cpus) - 1) as u32;
        let class =
            if by_deadline[cpu as usize] { Class::Edf } else { Class::Fifo(priority as u32) };
        system.threads.push(thread(dice, class).on(&[cpu]));
    }
    system
}

/// The same on CPUs that share no thread.
#[test]
fn it_does_as_the_engine_on_each_of_several_cpus() {
    let mut taken = 0;
    for seed in 0..1_000 {
        let mut dice = Dice::new(seed);
        let cpus = 2 + dice.up_to(3) as u32;
        let system = pinned(&mut dice, cpus);
        let settings = Settings::until(dice.up_to(900)).with_seed(seed);
        let quick = run(&system, settings);
        let engine = engine::run(&system, settings, &mut Nobody, &mut Unwatched);
        taken += u32::from(quick.is_some());
        assert_eq!(quick, Some(engine), "seed {seed}: {system:?}");
        let few = settings.with_most_events(dice.up_to(30));
        let quick = run(&system, few);
        let engine = engine::run(&system, few, &mut Nobody, &mut Unwatched);
        assert!(quick.is_none() || quick == Some(engine), "seed {seed}: {system:?}");
    }
    assert_eq!(taken, 1_000);
}

/// Where it is ended early, it is as with a horizon there.
#[test]
fn ended_early_it_is_as_with_that_horizon() {
    let mut ended = 0;
    for seed in 0..6 {
        let mut dice = Dice::new(seed);
        let system = pinned(&mut dice, 1 + (seed % 3) as u32);
        let most = 1 + dice.up_to(3);
        let (mut asked, mut last) = (0, 0);
        let settings = Settings::until(10_000_000).with_seed(seed);
        let found = super::run(&system, settings, &mut |now| {
            (asked, last) = (asked + 1, now);
            asked < most
        });
        let Ok(found) = found.unwrap() else { continue };
        ended += u32::from(last == found.horizon);
        let until = Settings { horizon: found.horizon, ..settings };
        assert_eq!(run(&system, until), Some(Ok(found)), "seed {seed}: {system:?}");
    }
    assert!(ended > 0);
}

/// The engine and this agree in everything, overloaded or not, however they end.
#[test]
fn it_does_as_the_engine() {
    let mut taken = 0;
    for seed in 0..3_000 {
        let mut dice = Dice::new(seed);
        let by_deadline = dice.up_to(1) == 0;
        let count = 1 + dice.up_to(5);
        let mut system = System::new(1);
        for priority in 0..count {
            let class = if by_deadline { Class::Edf } else { Class::Fifo(priority as u32) };
            system.threads.push(thread(&mut dice, class));
        }
        let most = if dice.up_to(9) == 0 { 50 } else { 1_000_000 };
        let settings = Settings::until(dice.up_to(600)).with_seed(seed).with_most_events(most);
        let quick = run(&system, settings);
        let engine = engine::run(&system, settings, &mut Nobody, &mut Unwatched);
        taken += u32::from(quick.is_some());
        assert_eq!(quick, Some(engine), "seed {seed}: {system:?}");
    }
    assert_eq!(taken, 3_000);
}

#[test]
fn what_is_not_simple_is_left_to_the_engine() {
    let mut system = System::new(1);
    system.threads = vec![Thread::periodic(1, 3), Thread::periodic(1, 3)];
    let settings = Settings::until(10);
    assert!(run(&system, settings).is_none(), "equal priorities");
    system.threads[0].class = Class::Fifo(2);
    assert!(run(&system, settings).is_some());
    system.threads[0].jitter = Jitter::Random(1);
    assert!(run(&system, settings).is_none(), "jitter");
}
