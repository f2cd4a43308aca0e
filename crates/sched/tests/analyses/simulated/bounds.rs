//! No simulated response exceeds its bound, and exact bounds are reached.

use hourglass_dice::Dice;
use hourglass_sched::edf;
use hourglass_sched::fixed_priority::{self, Sections, TimeModel};
use hourglass_sched::{Task, TaskSet, Verdict};
use hourglass_sim::{
    self as sim, ArrivalPattern, Class, Jitter, Mark, MarkAction, Preemption, SimSettings, System,
};

use crate::simulated::support::{set, system, threads};

const SETS: u64 = 500;

/// As bounds assume: everything released at once after the worst jitter.
fn critical(set: &TaskSet) -> System {
    let mut all = threads(set);
    for (thread, task) in all.iter_mut().zip(set.tasks()) {
        thread.jitter = Jitter::Worst(task.jitter());
    }
    let mut critical = system(1, all);
    critical.align_worst_releases();
    critical
}

/// Any offsets, jitter and gaps.
fn any(set: &TaskSet, dice: &mut Dice) -> System {
    let mut all = threads(set);
    for (thread, task) in all.iter_mut().zip(set.tasks()) {
        thread.jitter = Jitter::Random(task.jitter());
        let (offset, period) = (dice.between(0, 50), task.period());
        thread.arrivals = match dice.between(0, 1) {
            0 => ArrivalPattern::Periodic { offset, period },
            _ => ArrivalPattern::Sporadic { offset, period, extra: dice.between(0, 10) },
        };
    }
    system(1, all)
}

/// Tindell, Burns and Wellings 1994: with all released together, the bound of every task is reached.
#[test]
fn fixed_priorities_reach_their_bounds_and_never_exceed_them() {
    let mut reached = 0;
    for seed in 0..SETS {
        let mut dice = Dice::new(seed);
        let set = set(&mut dice, 5, true);
        let analysis = fixed_priority::analyse(&set, Sections::Preemptive, TimeModel::Discrete);
        let equals = {
            let mut all: Vec<u32> = set.tasks().iter().map(|task| task.priority()).collect();
            all.sort_unstable();
            all.windows(2).any(|pair| pair[0] == pair[1])
        };
        let critical = sim::run(&critical(&set), SimSettings::until(10_000)).unwrap();
        let any =
            sim::run(&any(&set, &mut dice), SimSettings::until(3_000).with_seed(seed)).unwrap();
        for (at, task) in set.tasks().iter().enumerate() {
            let Some(bound) = analysis.tasks[at].outcome.response() else { continue };
            for outcome in [&critical.threads[at], &any.threads[at]] {
                let longest = outcome.max_response.unwrap_or(0);
                let released = outcome.max_response_from_release.unwrap_or(0);
                assert!(
                    longest <= bound.from_arrival && released <= bound.from_release,
                    "seed {seed}, task {at}: {longest} and {released}, bound {bound:?}: {set:?}"
                );
                if bound.from_arrival <= task.deadline() {
                    assert_eq!(outcome.missed, 0, "seed {seed}, task {at}: {set:?}");
                }
            }
            if !equals {
                let longest = critical.threads[at].max_response;
                assert_eq!(longest, Some(bound.from_arrival), "seed {seed}, task {at}: {set:?}");
                reached += 1;
            }
        }
    }
    assert!(reached > 400, "{reached}");
}

/// Audsley et al. 1993, Davis et al. 2007: non-preemptive bounds, in discrete time.
#[test]
fn non_preemptive_responses_stay_within_their_bounds() {
    for seed in 0..SETS {
        let mut dice = Dice::new(seed);
        let set = set(&mut dice, 5, false);
        let analysis = fixed_priority::analyse(&set, Sections::NonPreemptive, TimeModel::Discrete);
        let mut any = any(&set, &mut dice);
        for thread in &mut any.threads {
            thread.preemption = Preemption::None;
        }
        let outcome = sim::run(&any, SimSettings::until(5_000).with_seed(seed)).unwrap();
        for at in 0..set.len() {
            let Some(bound) = analysis.tasks[at].outcome.response() else { continue };
            let longest = outcome.threads[at].max_response.unwrap_or(0);
            assert!(longest <= bound.from_arrival, "seed {seed}, task {at}: {longest} {set:?}");
        }
    }
}

/// The set with other tasks, one by one.
fn changed(set: &TaskSet, mut change: impl FnMut(&Task) -> Task) -> TaskSet {
    TaskSet::new(set.tasks().iter().map(&mut change).collect())
}

/// Bril, Lukkien and Verhaegh 2009, Davis and Bertogna 2012: sections between fixed preemption points.
#[test]
fn limited_preemption_stays_within_its_bounds() {
    for seed in 0..SETS {
        let mut dice = Dice::new(seed);
        let set = set(&mut dice, 5, false);
        let set = changed(&set, |task| {
            let longest = dice.between(1, task.cost());
            let last = dice.between(0, longest);
            task.with_segments(longest, last).unwrap()
        });
        let analysis = fixed_priority::analyse(&set, Sections::Limited, TimeModel::Discrete);
        for mut system in [critical(&set), any(&set, &mut dice)] {
            for (thread, task) in system.threads.iter_mut().zip(set.tasks()) {
                let (longest, last) = (task.longest_segment(), task.last_segment());
                thread.preemption = Preemption::Limited { longest, last };
            }
            let outcome = sim::run(&system, SimSettings::until(3_000).with_seed(seed)).unwrap();
            for at in 0..set.len() {
                let Some(bound) = analysis.tasks[at].outcome.response() else { continue };
                let longest = outcome.threads[at].max_response.unwrap_or(0);
                assert!(longest <= bound.from_arrival, "seed {seed}, task {at}: {longest} {set:?}");
            }
        }
    }
}

/// Chen et al. 2019: wherever jobs suspend themselves, they stay within the bounds.
#[test]
fn suspension_stays_within_its_bounds() {
    for seed in 0..SETS {
        let mut dice = Dice::new(seed);
        let set = set(&mut dice, 4, false);
        let set = changed(&set, |task| task.with_suspension(dice.between(0, 4)));
        let analysis = fixed_priority::analyse(&set, Sections::Preemptive, TimeModel::Discrete);
        for mut system in [critical(&set), any(&set, &mut dice)] {
            for (thread, task) in system.threads.iter_mut().zip(set.tasks()) {
                let at = dice.between(0, task.cost() - 1);
                if task.suspension() > 0 {
                    let action = MarkAction::Suspend(task.suspension());
                    thread.marks = vec![Mark { at, action }];
                }
            }
            let outcome = sim::run(&system, SimSettings::until(3_000).with_seed(seed)).unwrap();
            for at in 0..set.len() {
                let Some(bound) = analysis.tasks[at].outcome.response() else { continue };
                let longest = outcome.threads[at].max_response.unwrap_or(0);
                assert!(longest <= bound.from_arrival, "seed {seed}, task {at}: {longest} {set:?}");
            }
        }
    }
}

/// Baruah, Rosier and Howell 1990: a synchronous set meets all deadlines if and only if its demand
/// never exceeds the interval; Spuri 1996: response times.
#[test]
fn edf_agrees_with_demand_and_stays_within_response_times() {
    let (mut feasible, mut infeasible) = (0, 0);
    for seed in 0..SETS {
        let mut dice = Dice::new(seed);
        let set = set(&mut dice, 5, false);
        let verdict = edf::qpa::feasible(&set, Sections::Preemptive, TimeModel::Discrete).verdict;
        let bounds = edf::response_times(&set, Sections::Preemptive, TimeModel::Discrete);
        let by_deadline = |mut system: System| {
            for thread in &mut system.threads {
                thread.class = Class::Edf;
            }
            system
        };
        let settings = SimSettings::until(5_000).with_seed(seed);
        let together = sim::run(&by_deadline(critical(&set)), settings).unwrap();
        let any = sim::run(&by_deadline(any(&set, &mut dice)), settings).unwrap();
        let missed =
            |outcome: &sim::SimOutcome| -> u64 { outcome.threads.iter().map(|t| t.missed).sum() };
        match verdict {
            Verdict::Feasible => {
                feasible += 1;
                assert_eq!((missed(&together), missed(&any)), (0, 0), "seed {seed}: {set:?}");
            }
            Verdict::Infeasible(_) => {
                infeasible += 1;
                assert!(missed(&together) > 0, "seed {seed}: {set:?}");
            }
            _ => {}
        }
        for at in 0..set.len() {
            let Some(bound) = bounds.tasks[at].outcome.response() else { continue };
            for outcome in [&together, &any] {
                let longest = outcome.threads[at].max_response.unwrap_or(0);
                assert!(longest <= bound.from_arrival, "seed {seed}, task {at}: {longest} {set:?}");
            }
        }
    }
    assert!(feasible > 100 && infeasible > 20, "{feasible} {infeasible}");
}

/// Hourglass paper, section 5.5: 3/8 and 17/33 respond in 3 and 29; with 8 of jitter and 19 of cost
/// in 39 from nominal arrival (`fp.json`); with a tick of 10 the first misses two of five.
#[test]
fn the_example_of_the_paper() {
    let task =
        |cost, period, priority| Task::new(cost, period, period).unwrap().with_priority(priority);
    let longest = |system: &System| -> Vec<Option<u64>> {
        let outcome = sim::run(system, SimSettings::until(264_000)).unwrap();
        outcome.threads.iter().map(|thread| thread.max_response).collect()
    };
    let set = TaskSet::new(vec![task(3, 8, 2), task(17, 33, 1)]);
    assert_eq!(longest(&critical(&set)), [Some(3), Some(29)]);
    let jitter = TaskSet::new(vec![task(3, 8, 2), task(19, 33, 1).with_jitter(8)]);
    assert_eq!(longest(&critical(&jitter)), [Some(3), Some(39)]);
    let mut ticks = critical(&set);
    ticks.threads[0].tick = 10;
    let outcome = sim::run(&ticks, SimSettings::until(40_004)).unwrap();
    let first = &outcome.threads[0];
    // Arrivals at 0, 8, 16, 24, 32 of 40 wait for 0, 2, 4, 6, 8. The last one that is done is 39 992.
    assert_eq!((first.max_response, first.missed), (Some(11), 2 * 1_000), "{first:?}");
}

/// The order in which threads are given changes nothing but the order of the answers.
#[test]
fn permutation_changes_nothing() {
    for seed in 0..300 {
        let mut dice = Dice::new(seed);
        let set = set(&mut dice, 5, true);
        let mut system = any(&set, &mut dice);
        for (position, thread) in system.threads.iter_mut().enumerate() {
            thread.stream = Some(position as u64);
            thread.class = Class::Fifo(position as u32);
        }
        let mut turned = system.clone();
        turned.threads.reverse();
        let settings = SimSettings::until(3_000).with_seed(seed);
        let (there, mut back) =
            (sim::run(&system, settings).unwrap(), sim::run(&turned, settings).unwrap());
        back.threads.reverse();
        assert_eq!(there.threads, back.threads, "seed {seed}");
    }
}
