//! pyCPA's examples, and random graphs: no simulated response is over its bound.

use hourglass_dice::Dice;
use proptest::prelude::*;

use super::events::{EventModel, Propagation};
use super::{Activation, CpaSystem, GraphError, Node, Scheduler, UnboundedReason, analyse};
use crate::verdict::Refusal;

const ALL: [Propagation; 3] =
    [Propagation::Jitter, Propagation::JitterAndDistance, Propagation::BusyWindow];

fn task(least: u64, cost: u64, processor: usize, parameter: u64, activation: Activation) -> Node {
    Node { bcet: least, cost, processor, parameter, activation }
}

fn source(period: u64, jitter: u64) -> Activation {
    Activation::Source(EventModel { period, jitter, distance: 0 })
}

fn responses(system: &CpaSystem, propagation: Propagation) -> Vec<Option<u64>> {
    let found = analyse(system, propagation);
    found.tasks.iter().map(|task| task.response.ok()).collect()
}

/// pyCPA, test/test_spp.py: busy times and responses of T11, T12, T21, T22; and 20 instead of 19
/// where the least distance of completions is not propagated.
#[test]
fn two_processors_with_priorities() {
    let tasks = vec![
        task(5, 10, 0, 2, source(30, 5)),
        task(1, 3, 0, 1, source(15, 6)),
        task(2, 2, 1, 2, Activation::After(0)),
        task(4, 9, 1, 1, Activation::After(1)),
    ];
    let system = CpaSystem::new(tasks, vec![Scheduler::Preemptive; 2]).unwrap();
    let found = analyse(&system, Propagation::BusyWindow);
    let busy: Vec<&[u64]> = found.tasks.iter().map(|task| task.busy.as_slice()).collect();
    assert_eq!(busy, [&[10][..], &[13, 16], &[2], &[11, 20, 31, 40]]);
    assert_eq!(responses(&system, Propagation::BusyWindow), [10, 13, 2, 19].map(Some));
    assert_eq!(responses(&system, Propagation::JitterAndDistance), [10, 13, 2, 19].map(Some));
    assert_eq!(responses(&system, Propagation::Jitter), [10, 13, 2, 20].map(Some));
    assert_eq!(found.latency(&[0, 2]), (7, Some(12)));
    assert_eq!(found.latency(&[1, 3]), (5, Some(32)));
}

/// pyCPA, examples/tutorial.py, step 1, with a bus that does not preempt: the path of the more urgent
/// messages takes from 10 to 32.
#[test]
fn a_bus_between_two_processors() {
    let tasks = vec![
        task(5, 10, 0, 2, source(30, 3)),
        task(1, 3, 0, 1, source(15, 1)),
        task(2, 2, 1, 2, Activation::After(0)),
        task(5, 9, 1, 1, Activation::After(1)),
        task(3, 5, 2, 1, Activation::After(2)),
        task(2, 3, 2, 2, Activation::After(3)),
    ];
    let (spp, spnp) = (Scheduler::Preemptive, Scheduler::NonPreemptive);
    let system = CpaSystem::new(tasks, vec![spp, spnp, spp]).unwrap();
    let found = analyse(&system, Propagation::BusyWindow);
    let of = |at: usize| found.tasks[at].response.ok();
    assert_eq!((of(0), of(1), of(2), of(4)), (Some(10), Some(13), Some(11), Some(11)));
    assert_eq!(found.latency(&[0, 2, 4]), (10, Some(32)));
    // A second message 2 after the first, which pyCPA 1.2 passes over: it ends the window of a task
    // that nothing blocks before it begins, and says 11.
    assert_eq!(found.tasks[3].busy[..2], [11, 20]);
    assert_eq!(of(3), Some(18));
}

/// A slot of 2 in a cycle of 5, whatever the others do; and turns.
#[test]
fn slots_and_turns() {
    let tasks = |parameters: [u64; 2]| {
        vec![
            task(0, 3, 0, parameters[0], source(20, 0)),
            task(0, 9, 0, parameters[1], source(40, 0)),
        ]
    };
    let one = |scheduler| CpaSystem::new(tasks([2, 3]), vec![scheduler]).unwrap();
    let slots = responses(&one(Scheduler::TimeDivision), Propagation::BusyWindow);
    assert_eq!(slots, [Some(3 + 2 * 3), Some(9 + 3 * 2)]);
    let turns = responses(&one(Scheduler::RoundRobin), Propagation::BusyWindow);
    assert_eq!(turns, [Some(3 + 6), Some(9 + 3)]);
}

#[test]
fn an_overload_has_no_bound_and_spoils_what_follows() {
    let tasks = vec![
        task(0, 5, 0, 3, source(10, 0)),
        task(0, 6, 0, 2, source(10, 0)),
        task(0, 1, 1, 2, Activation::After(1)),
        task(0, 1, 1, 1, source(10, 0)),
        task(0, 1, 1, 3, Activation::After(0)),
    ];
    let system = CpaSystem::new(tasks, vec![Scheduler::Preemptive; 2]).unwrap();
    let found = analyse(&system, Propagation::BusyWindow);
    assert_eq!(found.tasks[1].response, Err(UnboundedReason::Overload));
    assert_eq!(found.tasks[2].response, Err(UnboundedReason::Refused(Refusal::Endless)));
    assert_eq!(responses(&system, Propagation::Jitter), [Some(5), None, None, None, Some(1)]);
    assert_eq!(found.latency(&[1, 2]).1, None);
}

/// All of the processor and jitter: the window never ends; and a circle of two chains that does not
/// settle.
#[test]
fn searches_end() {
    let full = vec![task(0, 10, 0, 1, source(10, 1))];
    let full = CpaSystem::new(full, vec![Scheduler::Preemptive]).unwrap();
    assert_eq!(responses(&full, Propagation::BusyWindow), [None]);
    let circle = vec![
        task(0, 5, 0, 1, source(13, 0)),
        task(0, 7, 1, 2, Activation::After(0)),
        task(0, 5, 1, 1, source(13, 0)),
        task(0, 7, 0, 2, Activation::After(2)),
    ];
    let circle = CpaSystem::new(circle, vec![Scheduler::Preemptive; 2]).unwrap();
    assert_eq!(responses(&circle, Propagation::Jitter), [None; 4]);
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let one = |task| CpaSystem::new(vec![task], vec![Scheduler::TimeDivision]);
    assert_eq!(one(task(0, 0, 0, 1, source(5, 0))), Err(GraphError::Cost(0)));
    assert_eq!(one(task(0, 1, 0, 0, source(5, 0))), Err(GraphError::Slot(0)));
    assert_eq!(one(task(0, 1, 0, 1, source(0, 0))), Err(GraphError::Period(0)));
    assert_eq!(one(task(0, 1, 1, 1, source(5, 0))), Err(GraphError::Missing(0)));
    assert_eq!(one(task(0, 1, 0, 1, Activation::After(0))), Err(GraphError::Cycle(0)));
}

#[test]
fn large_numbers_are_no_trouble() {
    let large = u64::MAX / 2;
    let tasks = vec![
        task(0, large, 0, 1, source(u64::MAX, u64::MAX)),
        task(large, large, 0, 2, source(u64::MAX, 9)),
        task(0, large, 1, 2, Activation::After(0)),
    ];
    for scheduler in [Scheduler::Preemptive, Scheduler::NonPreemptive, Scheduler::RoundRobin] {
        let system = CpaSystem::new(tasks.clone(), vec![scheduler; 2]).unwrap();
        for propagation in ALL {
            let _ = analyse(&system, propagation);
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Job {
    task: usize,
    number: u64,
    activated: u64,
    left: u64,
}

/// Events of a source up to `end`: one a period, off by up to the jitter, none closer than the
/// distance.
fn events(of: EventModel, end: u64, dice: &mut Dice) -> Vec<u64> {
    let start = dice.below(of.period);
    let early = dice.below(2) == 0;
    let mut found: Vec<u64> = Vec::new();
    for number in 0..end / of.period {
        let late =
            if early { of.jitter * u64::from(number == 0) } else { dice.below(of.jitter + 1) };
        let at = start + number * of.period + late;
        let after = found.last().map_or(0, |last| last + of.distance);
        found.push(at.max(after));
    }
    found
}

/// The processors, unit after unit, and the longest response of each task.
fn simulate(system: &CpaSystem, units: u64, seed: u64) -> Vec<u64> {
    let mut dice = Dice::new(seed);
    let tasks = system.tasks();
    let mut longest = vec![0; tasks.len()];
    let mut waiting: Vec<Job> = Vec::new();
    let mut count = 0;
    let mut due: Vec<(u64, usize)> = Vec::new();
    for (at, task) in tasks.iter().enumerate() {
        if let Activation::Source(arrivals) = task.activation {
            due.extend(events(arrivals, units, &mut dice).into_iter().map(|event| (event, at)));
        }
    }
    due.sort_unstable();
    let mut due = due.into_iter().peekable();
    // Of each processor: the job it holds or the task whose turn it is, and for how long yet.
    let mut held: Vec<Option<u64>> = vec![None; system.schedulers().len()];
    let mut turn: Vec<(usize, u64)> = vec![(0, 0); system.schedulers().len()];
    for now in 0..units {
        while due.peek().is_some_and(|(at, _)| *at <= now) {
            let Some((_, task)) = due.next() else { break };
            activate(tasks, task, now, &mut count, &mut waiting, &mut dice);
        }
        let mut done = Vec::new();
        for (processor, scheduler) in system.schedulers().iter().enumerate() {
            let here: Vec<usize> =
                (0..tasks.len()).filter(|at| tasks[*at].processor == processor).collect();
            let first = |task: usize, waiting: &[Job]| {
                let of = |at: &usize| waiting[*at].task == task;
                (0..waiting.len()).filter(of).min_by_key(|at| waiting[*at].number)
            };
            let chosen = match scheduler {
                Scheduler::Preemptive | Scheduler::NonPreemptive => {
                    let hold = held[processor].filter(|_| *scheduler == Scheduler::NonPreemptive);
                    let ready = here.iter().filter_map(|task| first(*task, &waiting));
                    ready.max_by_key(|at| {
                        let job = &waiting[*at];
                        let priority = tasks[job.task].parameter;
                        (hold == Some(job.number), priority, std::cmp::Reverse(job.number))
                    })
                }
                Scheduler::TimeDivision => {
                    slot_at(tasks, &here, now).and_then(|task| first(task, &waiting))
                }
                Scheduler::RoundRobin => {
                    next_turn(tasks, &here, &mut turn[processor], |task| first(task, &waiting))
                }
            };
            let Some(chosen) = chosen else { continue };
            held[processor] = Some(waiting[chosen].number);
            waiting[chosen].left -= 1;
            if waiting[chosen].left == 0 {
                held[processor] = None;
                done.push(waiting[chosen]);
            }
        }
        waiting.retain(|job| job.left > 0);
        for job in done {
            longest[job.task] = longest[job.task].max(now + 1 - job.activated);
            for (at, task) in tasks.iter().enumerate() {
                if task.activation == Activation::After(job.task) {
                    activate(tasks, at, now + 1, &mut count, &mut waiting, &mut dice);
                }
            }
        }
    }
    longest
}

fn activate(
    tasks: &[Node],
    task: usize,
    now: u64,
    count: &mut u64,
    waiting: &mut Vec<Job>,
    dice: &mut Dice,
) {
    let Node { bcet: least, cost, .. } = tasks[task];
    let spread = if dice.below(2) == 0 { cost - least.max(1) } else { 0 };
    *count += 1;
    waiting.push(Job { task, number: *count, activated: now, left: cost - dice.below(spread + 1) });
}

fn slot_at(tasks: &[Node], here: &[usize], now: u64) -> Option<usize> {
    let cycle: u64 = here.iter().map(|at| tasks[*at].parameter).sum();
    let mut left = now % cycle.max(1);
    here.iter().copied().find(|at| match left.checked_sub(tasks[*at].parameter) {
        Some(rest) => {
            left = rest;
            false
        }
        None => true,
    })
}

/// The job whose turn it is: the same task's until its turn is over or it has none.
fn next_turn(
    tasks: &[Node],
    here: &[usize],
    (place, used): &mut (usize, u64),
    first: impl Fn(usize) -> Option<usize>,
) -> Option<usize> {
    for _ in 0..=here.len() {
        let task = *here.get(*place)?;
        let job = first(task).filter(|_| *used < tasks[task].parameter);
        if job.is_some() {
            *used += 1;
            return job;
        }
        (*place, *used) = ((*place + 1) % here.len(), 0);
    }
    None
}

/// Cost, shortest cost, processor, parameter, period, jitter, distance, predecessor.
type DrawnNode = (u64, u64, usize, u64, u64, u64, u64, usize);

fn small_systems() -> impl Strategy<Value = CpaSystem> {
    let task = (1..6u64, 0..3u64, 0..2usize, 1..5u64, 12..60u64, 0..40u64, 0..4u64, 0..6usize);
    let schedulers = prop_oneof![
        3 => Just(Scheduler::Preemptive),
        3 => Just(Scheduler::NonPreemptive),
        1 => Just(Scheduler::RoundRobin),
        1 => Just(Scheduler::TimeDivision),
    ];
    (proptest::collection::vec(task, 1..6), proptest::collection::vec(schedulers, 2)).prop_map(
        |(tasks, schedulers)| {
            let make = |(at, of): (usize, &DrawnNode)| {
                let (cost, least, processor, parameter, period, jitter, distance, after) = *of;
                let activation = if after < at {
                    Activation::After(after)
                } else {
                    let distance = distance.min(period);
                    Activation::Source(EventModel { period, jitter, distance })
                };
                Node { bcet: least.min(cost), cost, processor, parameter, activation }
            };
            CpaSystem::new(tasks.iter().enumerate().map(make).collect(), schedulers).unwrap()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn bounds_hold(system in small_systems(), seed in 1..u64::MAX) {
        let longest = simulate(&system, 2_000, seed);
        for propagation in ALL {
            for (longest, bound) in longest.iter().zip(responses(&system, propagation)) {
                prop_assert!(bound.is_none_or(|bound| *longest <= bound), "{:?}", propagation);
            }
        }
    }
}
