//! Several CPUs.

use hourglass_dice::Dice;
use hourglass_sim::{
    self as sim, Class, JobTrigger, Script, SimPhase, SimSettings, SimStep, Thread, run_with,
};

use crate::support::{Record, system};

/// Up to `most` periodic threads whose utilisation is usually below one. Small periods, so that everything
/// comes together soon.
fn random_threads(dice: &mut Dice, most: u64) -> Vec<Thread> {
    let count = dice.between(1, most);
    let thread = |priority: u64| {
        let period = dice.between(4, 40);
        let cost = dice.between(1, (period * 2 / (count + 1)).max(1));
        let deadline = dice.between(cost, period * 3 / 2);
        // Some equals.
        let priority = if dice.between(0, 4) == 0 { 1 } else { priority };
        Thread::periodic(cost, period).with_deadline(deadline).with_priority(priority as u32)
    };
    (1..=count).map(thread).collect()
}

fn dhall(class: impl Fn(u64) -> Class) -> Vec<Thread> {
    let tasks = [(2, 10), (2, 10), (10, 11)];
    tasks.iter().map(|(c, t)| Thread::periodic(*c, *t).with_class(class(*t))).collect()
}

/// Dhall and Liu 1978, scaled (`global.json`, g-dhall): a utilisation of 1.31 on two CPUs misses at 11
/// under global EDF and global rate-monotonic priorities; partitioned it is feasible.
#[test]
fn the_effect_of_dhall() {
    let rate_monotonic = |period: u64| Class::Fifo(100 - period as u32);
    // The light ones' second jobs come at 10; only their priorities are above the heavy one.
    for (global, done) in [(dhall(|_| Class::Edf), 12), (dhall(rate_monotonic), 14)] {
        let outcome = sim::run(&system(2, global), SimSettings::until(1_100)).unwrap();
        let first = outcome.threads[2].first_miss.unwrap();
        assert_eq!((first.deadline, first.done), (11, Some(done)));
    }
    let mut partitioned = dhall(|_| Class::Edf);
    for (thread, cpu) in partitioned.iter_mut().zip([0, 0, 1]) {
        thread.cpus = vec![cpu];
    }
    let outcome = sim::run(&system(2, partitioned), SimSettings::until(1_100)).unwrap();
    assert!(outcome.threads.iter().all(|thread| thread.missed == 0));
}

/// CPUs that share no thread do not know of each other.
#[test]
fn partitions_are_machines_of_their_own() {
    for seed in 0..200 {
        let mut dice = Dice::new(seed);
        let (here, there) = (random_threads(&mut dice, 4), random_threads(&mut dice, 4));
        let settings = SimSettings::until(2_000);
        let mut together = Vec::new();
        let mut alone = Vec::new();
        for (cpu, threads) in [(0, here), (1, there)] {
            alone.extend(sim::run(&system(1, threads.clone()), settings).unwrap().threads);
            together.extend(threads.into_iter().map(|thread| thread.on(&[cpu])));
        }
        let together = sim::run(&system(2, together), settings).unwrap();
        assert_eq!(together.threads, alone, "seed {seed}");
    }
}

/// At every instant the m most urgent run: checked against a simulation step by step.
#[test]
fn global_priorities_agree_with_a_simulation_by_the_tick() {
    for seed in 0..200 {
        let mut dice = Dice::new(seed);
        let cpus = dice.between(2, 4);
        let mut all = random_threads(&mut dice, 8);
        for (at, thread) in all.iter_mut().enumerate() {
            *thread = Thread::periodic(dice.between(1, 12), dice.between(4, 30));
            thread.class = Class::Fifo(at as u32);
        }
        let horizon = 300;
        let mut record = Record::default();
        let machine = system(cpus as u32, all.clone());
        run_with(&machine, SimSettings::until(horizon), &mut record, &mut sim::NullMonitor)
            .unwrap();
        let expected = step_by_step(&all, cpus as usize, horizon);
        for (at, finish) in expected.iter().enumerate() {
            assert_eq!(&record.completions(at), finish, "seed {seed}, thread {at}: {machine:?}");
        }
    }
}

/// Completions of periodic threads, the last being the most urgent.
fn step_by_step(all: &[Thread], cpus: usize, horizon: u64) -> Vec<Vec<u64>> {
    let numbers: Vec<(u64, u64)> = all
        .iter()
        .map(|thread| match (&thread.cost, &thread.arrivals) {
            (sim::CostModel::Worst(cost), sim::ArrivalPattern::Periodic { period, .. }) => {
                (*cost, *period)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    let mut left = vec![0u64; all.len()];
    let mut done = vec![Vec::new(); all.len()];
    for now in 0..horizon {
        for (at, (cost, period)) in numbers.iter().enumerate() {
            left[at] += if now % period == 0 { *cost } else { 0 };
        }
        let ready: Vec<usize> =
            (0..all.len()).rev().filter(|at| left[*at] > 0).take(cpus).collect();
        for at in ready {
            left[at] -= 1;
            if left[at].is_multiple_of(numbers[at].0) {
                done[at].push(now + 1);
            }
        }
    }
    done
}

/// What ran is what jobs needed; nothing runs twice at a time; a CPU runs one at a time.
#[test]
fn work_is_conserved() {
    for seed in 0..200 {
        let mut dice = Dice::new(seed);
        let cpus = dice.between(1, 4) as u32;
        let mut all = random_threads(&mut dice, 8);
        for thread in &mut all {
            if dice.between(0, 2) == 0 {
                thread.cpus = vec![dice.between(0, u64::from(cpus) - 1) as u32];
            }
            if dice.between(0, 2) == 0 {
                thread.class = Class::Edf;
            }
        }
        let mut record = Record::default();
        let machine = system(cpus, all);
        let settings = SimSettings::until(1_000);
        let outcome = run_with(&machine, settings, &mut record, &mut sim::NullMonitor).unwrap();
        assert_eq!(outcome, sim::run(&machine, settings).unwrap(), "seed {seed}");
        for (at, thread) in outcome.threads.iter().enumerate() {
            let sim::CostModel::Worst(cost) = machine.threads[at].cost else { panic!() };
            let mut own: Vec<_> = record.slices.iter().filter(|s| s.thread == at).collect();
            let ran: u64 = own.iter().map(|s| s.end - s.start).sum();
            assert_eq!((ran, ran), (thread.received, thread.progress), "seed {seed}");
            assert!(ran >= thread.jobs * cost && ran < (thread.jobs + 1) * cost, "seed {seed}");
            assert_eq!(thread.released, thread.jobs + thread.unfinished);
            own.sort_by_key(|slice| slice.start);
            assert!(own.windows(2).all(|pair| pair[0].end <= pair[1].start), "seed {seed}");
        }
        for cpu in 0..cpus {
            let on = record.on(cpu);
            assert!(on.windows(2).all(|pair| pair[0].2 <= pair[1].1), "seed {seed}");
            let busy: u64 = on.iter().map(|(_, start, end)| end - start).sum();
            assert_eq!(busy, outcome.cpus[cpu as usize].busy);
        }
    }
}

/// A thread stays on its CPU while it runs: with a CPU for each thread no thread ever moves.
#[test]
fn no_thread_moves_without_need() {
    let all = [(3, 7), (4, 9), (5, 11)].map(|(c, t)| Thread::periodic(c, t).with_class(Class::Edf));
    let outcome = sim::run(&system(3, all.to_vec()), SimSettings::until(10_000)).unwrap();
    for thread in &outcome.threads {
        assert_eq!((thread.migrations, thread.preemptions, thread.missed), (0, 0, 0));
    }
}

/// A phase that may not use its thread's CPU moves the thread, though no other thread wants a CPU.
#[test]
fn a_phase_moves_its_thread_though_all_could_stay() {
    let phase = |cpu| SimPhase {
        loops: Some(1),
        class: None,
        cpus: vec![cpu],
        acts: vec![SimStep::Run(3)],
    };
    let phases = vec![phase(0), phase(1)];
    let script = Script { start: 0, loops: Some(1), phases, beginning: JobTrigger::Timer };
    let machine = system(2, vec![Thread::scripted(Class::Fifo(1), script, 10)]);
    let mut record = Record::default();
    sim::run_to(&machine, SimSettings::until(10), &mut record).unwrap();
    assert_eq!((record.on(0), record.on(1)), (vec![(0, 0, 3)], vec![(0, 3, 6)]));
}
