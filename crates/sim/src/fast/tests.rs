use super::super::random::SimRng;
use super::super::{CostModel, Event, NullMonitor, NullSink, OverrunPolicy, engine};
use super::*;

/// A periodic thread, perhaps with the jitter that bounds assume.
fn thread(dice: &mut SimRng, class: Class) -> Thread {
    let mut between = |low, high| low + dice.next_at_most(high - low);
    let period = between(3, 40);
    let cost = match between(0, 2) {
        0 => CostModel::Worst(between(1, period / 2)),
        1 => CostModel::Listed((0..3).map(|_| between(1, period)).collect()),
        _ => {
            let times = "uniform:1ns,9ns".parse().unwrap();
            CostModel::Drawn { times, at_most: 8 }
        }
    };
    let arrivals = ArrivalPattern::Periodic { offset: between(0, 20), period };
    let deadline = between(1, 2 * period);
    let late = if between(0, 2) == 0 { OverrunPolicy::Skip } else { OverrunPolicy::Queue };
    let jitter = match between(0, 3) {
        0 => Jitter::Worst(between(0, 90)),
        _ => Jitter::None,
    };
    let preemption = if between(0, 4) == 0 { Preemption::None } else { Preemption::Full };
    Thread { late, jitter, preemption, ..Thread::new(class, arrivals, cost, deadline) }
}

/// The class of a thread: by deadline, or by a priority of its own or one that others may have.
fn class(dice: &mut SimRng, by_deadline: bool, own: u32, equals: bool) -> Class {
    match (by_deadline, equals) {
        (true, _) => Class::Edf,
        (false, true) => Class::Fifo(dice.next_at_most(2) as u32),
        (false, false) => Class::Fifo(own),
    }
}

fn run(system: &System, settings: SimSettings) -> Option<Result<SimOutcome, SimError>> {
    tried(super::run(system, settings, &mut NullSink))
}

fn tried(found: FastOutcome) -> Option<Result<SimOutcome, SimError>> {
    match found {
        FastOutcome::Done(found) => Some(found),
        FastOutcome::Left(_) => None,
    }
}

/// Slices, and how often it is asked whether to go on before it says no.
struct Tape {
    slices: Vec<Slice>,
    left: u64,
    last: u64,
}

impl Tape {
    fn new() -> Tape {
        Tape { slices: Vec::new(), left: u64::MAX, last: 0 }
    }
}

impl Sink for Tape {
    fn interest(&self) -> SinkDetail {
        SinkDetail::Slices
    }

    fn ran(&mut self, slice: Slice) {
        self.slices.push(slice);
    }

    fn event(&mut self, _: u64, _: Event) {
        unreachable!("no events are wanted");
    }

    fn reached(&mut self, now: u64) -> bool {
        self.last = now;
        self.left = self.left.saturating_sub(1);
        self.left > 0
    }
}

fn of_engine(system: &System, settings: SimSettings) -> (Result<SimOutcome, SimError>, Vec<Slice>) {
    let mut tape = Tape::new();
    let outcome = engine::run(system, settings, &mut tape, &mut NullMonitor);
    (outcome, tape.slices)
}

/// Threads that are pinned to CPUs, each of which has its own order.
fn pinned(dice: &mut SimRng, cpus: u32) -> System {
    let mut system = System::new(cpus);
    let by_deadline: Vec<bool> = (0..cpus).map(|_| dice.next_at_most(1) == 0).collect();
    let equals = dice.next_at_most(1) == 0;
    for priority in 0..1 + dice.next_at_most(9) {
        let cpu = dice.next_at_most(u64::from(cpus) - 1) as u32;
        let class = class(dice, by_deadline[cpu as usize], priority as u32, equals);
        system.threads.push(thread(dice, class).on(&[cpu]));
    }
    system
}

/// The fast path agrees with the engine on CPUs that share no thread.
#[test]
fn it_does_as_the_engine_on_each_of_several_cpus() {
    let mut taken = 0;
    for seed in 0..1_000 {
        let mut dice = SimRng::new(seed);
        let cpus = 2 + dice.next_at_most(3) as u32;
        let system = pinned(&mut dice, cpus);
        let settings = SimSettings::until(dice.next_at_most(900)).with_seed(seed);
        let quick = run(&system, settings);
        let engine = engine::run(&system, settings, &mut NullSink, &mut NullMonitor);
        taken += u32::from(quick.is_some());
        assert_eq!(quick, Some(engine), "seed {seed}: {system:?}");
        let few = settings.with_most_events(dice.next_at_most(30));
        let quick = run(&system, few);
        let engine = engine::run(&system, few, &mut NullSink, &mut NullMonitor);
        assert!(quick.is_none() || quick == Some(engine), "seed {seed}: {system:?}");
    }
    assert_eq!(taken, 1_000);
}

/// A simulation that is ended early equals one with a horizon there.
#[test]
fn ended_early_it_is_as_with_that_horizon() {
    let mut ended = 0;
    for seed in 0..6 {
        let mut dice = SimRng::new(seed);
        let system = pinned(&mut dice, 1 + (seed % 3) as u32);
        let mut tape = Tape { left: 1 + dice.next_at_most(3), ..Tape::new() };
        let settings = SimSettings::until(10_000_000).with_seed(seed);
        let Some(Ok(found)) = tried(super::run(&system, settings, &mut tape)) else { continue };
        ended += u32::from(tape.last == found.horizon);
        let until = SimSettings { horizon: found.horizon, ..settings };
        assert_eq!(run(&system, until), Some(Ok(found.clone())), "seed {seed}: {system:?}");
        let (outcome, slices) = of_engine(&system, until);
        assert_eq!((Ok(found), tape.slices), (outcome, slices), "seed {seed}: {system:?}");
    }
    assert!(ended > 0);
}

/// The engine and this agree in everything, overloaded or not, however they end.
#[test]
fn it_does_as_the_engine() {
    let mut taken = 0;
    for seed in 0..3_000 {
        let mut dice = SimRng::new(seed);
        let by_deadline = dice.next_at_most(1) == 0;
        let equals = dice.next_at_most(1) == 0;
        let count = 1 + dice.next_at_most(5);
        let mut system = System::new(1);
        for priority in 0..count {
            let class = class(&mut dice, by_deadline, priority as u32, equals);
            system.threads.push(thread(&mut dice, class));
        }
        let most = if dice.next_at_most(9) == 0 { 50 } else { 1_000_000 };
        let settings =
            SimSettings::until(dice.next_at_most(600)).with_seed(seed).with_most_events(most);
        let quick = run(&system, settings);
        let engine = engine::run(&system, settings, &mut NullSink, &mut NullMonitor);
        taken += u32::from(quick.is_some());
        assert_eq!(quick, Some(engine), "seed {seed}: {system:?}");
    }
    assert_eq!(taken, 3_000);
}

/// Slices are reported in the order of the engine, on one CPU and on several, over many stretches;
/// and where the fast path gives up on the way, the engine goes on behind the reported slices.
#[test]
fn it_tells_the_slices_of_the_engine() {
    let mut left = 0;
    for seed in 0..500 {
        let mut dice = SimRng::new(seed);
        let system = pinned(&mut dice, 1 + (seed % 4) as u32);
        let horizon = if seed % 20 == 0 { 100_000 } else { dice.next_at_most(900) };
        let settings = SimSettings::until(horizon).with_seed(seed);
        let mut tape = Tape::new();
        let quick = tried(super::run(&system, settings, &mut tape));
        let (outcome, slices) = of_engine(&system, settings);
        assert_eq!(quick, Some(outcome), "seed {seed}: {system:?}");
        assert_eq!(tape.slices, slices, "seed {seed}: {system:?}");

        let few = settings.with_most_events(dice.next_at_most(horizon / 3));
        let mut tape = Tape::new();
        let found = super::super::run_to(&system, few, &mut tape);
        let (outcome, slices) = of_engine(&system, few);
        left += u32::from(outcome.is_err());
        assert_eq!(found, outcome, "seed {seed}: {system:?}");
        if outcome.is_ok() {
            assert_eq!(tape.slices, slices, "seed {seed}: {system:?}");
        } else {
            // A failed run may have reported more on one CPU, and less where the engine still holds some.
            let both = tape.slices.len().min(slices.len());
            assert_eq!(tape.slices[..both], slices[..both], "seed {seed}: {system:?}");
        }
    }
    assert!(left > 50, "{left}");
}

/// More threads than a word has bits.
#[test]
fn many_threads_do_as_in_the_engine() {
    for seed in 0..60 {
        let mut dice = SimRng::new(seed);
        let by_deadline = seed % 2 == 0;
        let count = [65, 66, 127, 128, 129, 200, 300][seed as usize % 7];
        let mut system = System::new(1 + (seed % 3) as u32 / 2);
        for priority in 0..count {
            let class = class(&mut dice, by_deadline, priority, seed % 4 == 1);
            let mut made = thread(&mut dice, class).on(&[0]);
            // With shorter periods few threads ever run.
            if let ArrivalPattern::Periodic { offset, period } = made.arrivals {
                made.arrivals =
                    ArrivalPattern::Periodic { offset, period: period * u64::from(count) };
            }
            system.threads.push(made);
        }
        let settings = SimSettings::until(dice.next_at_most(30_000)).with_seed(seed);
        let mut tape = Tape::new();
        let quick = tried(super::run(&system, settings, &mut tape));
        let (outcome, slices) = of_engine(&system, settings);
        assert_eq!(quick, Some(outcome.clone()), "seed {seed}: {system:?}");
        assert_eq!(run(&system, settings), Some(outcome), "seed {seed}: {system:?}");
        assert_eq!(tape.slices, slices, "seed {seed}: {system:?}");
    }
}

#[test]
fn what_is_not_simple_is_left_to_the_engine() {
    let mut system = System::new(1);
    system.threads = vec![Thread::periodic(1, 3), Thread::periodic(1, 3)];
    let settings = SimSettings::until(10);
    assert!(run(&system, settings).is_some());
    system.threads[0].class = Class::RoundRobin(2);
    assert!(run(&system, settings).is_none(), "turns");
    system.threads[0].class = Class::Fifo(2);
    system.threads[0].jitter = Jitter::Random(1);
    assert!(run(&system, settings).is_none(), "jitter");
}
