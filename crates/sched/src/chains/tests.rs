//! Examples of the papers, and random systems: no simulated response is over its bound.

use hourglass_dice::Dice;
use proptest::prelude::*;

use super::holistic::analyse;
use super::{ChainSystem, Flow, Service, Step, SystemError};
use crate::fixed_priority::TimeModel;
use crate::verdict::{Refusal, ResponseBound, Verdict};

fn step(cost: u64, processor: usize, priority: u32) -> Step {
    Step { cost, bcet: 0, suspension: 0, processor, priority }
}

fn flow(period: u64, deadline: u64, steps: Vec<Step>) -> Flow {
    Flow { period, deadline, jitter: 0, steps }
}

fn system(flows: Vec<Flow>, services: &[Service]) -> ChainSystem {
    ChainSystem::new(flows, services.to_vec()).unwrap()
}

const P: Service = Service::Preemptive;
const N: Service = Service::NonPreemptive;

/// rivasjm/pyrta, tests/test_analysis.py, compared there with MAST: 42 and 30.
#[test]
fn the_example_of_palencia() {
    let first = vec![step(5, 0, 10), step(2, 1, 1), step(20, 2, 1)];
    let second = vec![step(5, 2, 10), step(10, 1, 10), step(10, 0, 1)];
    let system = system(vec![flow(30, 60, first), flow(40, 80, second)], &[P, P, P]);
    let found = analyse(&system, TimeModel::Continuous);
    assert_eq!(found.end_to_end(), [Some(42), Some(30)]);
    assert_eq!(found.verdict(), Verdict::Feasible);
}

/// Two chains in opposite directions over two nearly full processors: each begins as the
/// less urgent beside the end of the other, so that each one's jitter is the other's interference.
#[test]
fn a_cycle_that_does_not_settle_has_no_bound() {
    let first = vec![step(5, 0, 1), step(7, 1, 2)];
    let second = vec![step(5, 1, 1), step(7, 0, 2)];
    let flows = vec![flow(13, 30, first), flow(13, 30, second)];
    let harmless = flow(100, 40, vec![step(1, 0, 9)]);
    let found = analyse(&system([flows, vec![harmless]].concat(), &[P, P]), TimeModel::Discrete);
    let ends = found.end_to_end();
    assert_eq!(ends[0], None);
    assert_eq!(found.flows[0].verdict, Verdict::Unknown(Refusal::Diverges));
    assert_eq!(ends[2], Some(1), "the most urgent is not concerned");
}

/// More than a processor has: no bound for the least urgent, and none for what follows it, but the
/// others keep theirs.
#[test]
fn an_overload_stays_where_it_is() {
    let flows = vec![
        flow(10, 10, vec![step(6, 0, 3)]),
        flow(10, 50, vec![step(6, 0, 2), step(1, 1, 1)]),
        flow(10, 50, vec![step(2, 1, 5)]),
    ];
    let found = analyse(&system(flows, &[P, N]), TimeModel::Discrete);
    assert_eq!(found.end_to_end(), [Some(6), None, Some(2)]);
    assert_eq!(found.flows[1].steps[0].outcome, ResponseBound::Unbounded);
    assert_eq!(found.verdict(), Verdict::NoBound);
}

/// Alone, a chain needs the sum of its costs.
#[test]
fn too_short_a_deadline_is_infeasible() {
    let system = system(vec![flow(100, 9, vec![step(5, 0, 1), step(5, 1, 1)])], &[P, P]);
    let found = analyse(&system, TimeModel::Discrete);
    assert!(matches!(found.verdict(), Verdict::Infeasible(_)));
    assert_eq!(found.end_to_end(), [Some(10)]);
}

/// A shortest time of a step lets the next step jitter less.
#[test]
fn shortest_times_reduce_jitter() {
    let mut first = flow(20, 100, vec![step(10, 0, 2), step(10, 1, 2)]);
    let second = flow(20, 100, vec![step(5, 1, 1)]);
    let without =
        analyse(&system(vec![first.clone(), second.clone()], &[P, P]), TimeModel::Discrete);
    first.steps[0].bcet = 10;
    let with = analyse(&system(vec![first, second], &[P, P]), TimeModel::Discrete);
    assert_eq!(without.end_to_end()[1], Some(25), "both jobs of the other come in");
    assert_eq!(with.end_to_end(), [Some(20), Some(15)]);
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let one = |flow| ChainSystem::new(vec![flow], vec![P]);
    assert_eq!(one(flow(5, 5, vec![])), Err(SystemError::NoSteps { flow: 0 }));
    assert_eq!(one(flow(0, 5, vec![step(1, 0, 1)])), Err(SystemError::NoPeriod { flow: 0 }));
    let wrong = SystemError::Processor { flow: 0, step: 0, processor: 1, of: 1 };
    assert_eq!(one(flow(5, 5, vec![step(1, 1, 1)])), Err(wrong));
    let least = Step { bcet: 2, ..step(1, 0, 1) };
    assert!(matches!(one(flow(5, 5, vec![least])), Err(SystemError::Cost { .. })));
}

/// Numbers near 2^64 neither wrap nor panic.
#[test]
fn large_numbers_are_no_trouble() {
    let large = u64::MAX / 2;
    let steps = || vec![step(large, 0, 1), step(large, 1, 1), step(large, 0, 2)];
    let flows = vec![flow(u64::MAX, 3, steps()), flow(u64::MAX, large, steps())];
    let found = analyse(&system(flows, &[P, N]), TimeModel::Continuous);
    assert!(found.end_to_end().iter().all(Option::is_none));
}

/// A job of a chain in the simulation.
#[derive(Clone, Debug)]
struct Job {
    flow: usize,
    step: usize,
    arrival: u64,
    /// When the present step became ready.
    ready: u64,
    left: u64,
}

/// A fork and its join: what waits for two begins after the later one, and may begin as early as the
/// longest of their shortest times. By hand.
#[test]
fn a_fork_that_joins() {
    let steps = |least: bool| {
        let all = [(2, 0, 2), (3, 1, 1), (4, 2, 1), (1, 0, 1)];
        all.map(|(cost, processor, priority)| {
            let step = step(cost, processor, priority);
            Step { bcet: if least { cost } else { 0 }, ..step }
        })
    };
    let before = vec![vec![vec![], vec![0], vec![0], vec![1, 2]]];
    for least in [false, true] {
        let flows = vec![flow(20, 9, steps(least).to_vec())];
        let system = ChainSystem::graph(flows, vec![P, P, P], before.clone()).unwrap();
        let found = analyse(&system, TimeModel::Discrete);
        let bounds =
            found.flows[0].steps.iter().map(|s| s.outcome.response().unwrap().from_arrival);
        // 6 for the longer branch, and the last step behind one more of the first's jobs.
        assert_eq!(bounds.collect::<Vec<_>>(), [2, 5, 6, 9], "{least}");
        let last = found.flows[0].steps[3];
        assert_eq!((last.earliest, last.jitter), if least { (6, 0) } else { (0, 6) });
        assert_eq!(found.verdict(), Verdict::Feasible);
    }
    let flows = || vec![flow(20, 9, steps(false).to_vec())];
    for (step, wrong) in [(1, vec![]), (2, vec![2]), (0, vec![0])] {
        let mut before = before.clone();
        before[0][step] = wrong;
        let refused = ChainSystem::graph(flows(), vec![P, P, P], before);
        assert_eq!(refused, Err(SystemError::Order { flow: 0, step }));
    }
    // 2 + 4 + 1 are needed even without other tasks.
    let tight = vec![flow(20, 6, steps(false).to_vec())];
    let tight = ChainSystem::graph(tight, vec![P, P, P], before).unwrap();
    assert!(matches!(analyse(&tight, TimeModel::Discrete).verdict(), Verdict::Infeasible(_)));
}

/// The longest response of each chain, one unit of time after the other, with random arrivals no
/// closer than the period and execution times from the shortest to the longest.
fn simulate(system: &ChainSystem, units: u64, seed: u64) -> Vec<u64> {
    let mut dice = Dice::new(seed);
    let flows = system.flows();
    let mut next: Vec<u64> = flows.iter().map(|f| dice.below(f.period)).collect();
    let mut jobs: Vec<Job> = Vec::new();
    let mut longest = vec![0; flows.len()];
    let mut holds: Vec<Option<(usize, u64)>> = vec![None; system.services().len()];
    for now in 0..units {
        for (at, flow) in flows.iter().enumerate() {
            if next[at] == now {
                let ready = now + dice.below(flow.jitter + 1);
                let left = time_of(&flow.steps[0], &mut dice);
                jobs.push(Job { flow: at, step: 0, arrival: now, ready, left });
                let late = if dice.below(3) == 0 { dice.below(flow.period) } else { 0 };
                next[at] = now + flow.period + late;
            }
        }
        for (processor, service) in system.services().iter().enumerate() {
            let step_of = |job: &Job| flows[job.flow].steps[job.step];
            let here = |job: &&mut Job| step_of(job).processor == processor && job.ready <= now;
            let held = holds[processor].filter(|_| *service == N);
            let urgent = |job: &&mut Job| {
                let step = step_of(job);
                let holds = held == Some((job.flow, job.arrival));
                (holds, step.priority, std::cmp::Reverse(job.ready), std::cmp::Reverse(job.arrival))
            };
            let Some(job) = jobs.iter_mut().filter(here).max_by_key(urgent) else { continue };
            holds[processor] = Some((job.flow, job.arrival));
            job.left -= 1;
            if job.left == 0 {
                holds[processor] = None;
                job.step += 1;
                job.ready = now + 1;
                match flows[job.flow].steps.get(job.step) {
                    Some(step) => job.left = time_of(step, &mut dice),
                    None => {
                        let response = now + 1 - job.arrival;
                        longest[job.flow] = longest[job.flow].max(response);
                        job.left = u64::MAX;
                    }
                }
            }
            jobs.retain(|job| job.left != u64::MAX);
        }
    }
    longest
}

fn time_of(step: &Step, dice: &mut Dice) -> u64 {
    let most = if dice.below(3) == 0 { step.cost - step.bcet.max(1) } else { 0 };
    step.cost - dice.below(most + 1)
}

fn small_systems() -> impl Strategy<Value = ChainSystem> {
    let step =
        (1..7u64, 0..3u64, 0..3usize, 0..4u32).prop_map(|(cost, least, processor, priority)| {
            Step { cost, bcet: least.min(cost), suspension: 0, processor, priority }
        });
    let steps = proptest::collection::vec(step, 1..4);
    let flow = (8..40u64, 0..5u64, steps).prop_map(|(period, jitter, steps)| Flow {
        period,
        deadline: 2 * period,
        jitter,
        steps,
    });
    let services = proptest::collection::vec(prop_oneof![Just(P), Just(N)], 3);
    (proptest::collection::vec(flow, 1..5), services)
        .prop_map(|(flows, services)| ChainSystem::new(flows, services).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn bounds_hold(system in small_systems(), seed in 1..u64::MAX) {
        let bounds = analyse(&system, TimeModel::Discrete).end_to_end();
        let longest = simulate(&system, 2_000, seed);
        for (longest, bound) in longest.iter().zip(bounds) {
            prop_assert!(bound.is_none_or(|bound| *longest <= bound));
        }
    }

    /// More work anywhere, or more jitter, never lowers a bound.
    #[test]
    fn bounds_grow_with_costs(system in small_systems(), which in 0..4usize, more in 1..3u64) {
        let mut flows = system.flows().to_vec();
        let at = which % flows.len();
        flows[at].jitter += more;
        flows[at].steps[0].cost += more;
        let larger = ChainSystem::new(flows, system.services().to_vec()).unwrap();
        let before = analyse(&system, TimeModel::Discrete).end_to_end();
        let after = analyse(&larger, TimeModel::Discrete).end_to_end();
        for (before, after) in before.iter().zip(after) {
            prop_assert!(after.is_none_or(|after| before.is_some_and(|before| before <= after)));
        }
    }
}
