//! Threads of fixed priority on several processors, delayed by jitter and by their own suspensions, below reservations.

use hourglass_dice::Dice;
use hourglass_sched::chains::{ChainSystem, Flow, Service, Step, holistic};
use hourglass_sched::fixed_priority::TimeModel;
use hourglass_sched::global::fixed_priority::{self, AS_PUBLISHED, Bound};
use hourglass_sched::servers::{self, PlacedServer, ServerPolicy};
use hourglass_sched::{Task, TaskSet, checker};
use hourglass_sim::{
    self as sim, ArrivalPattern, Class, CostModel, Jitter, Mark, MarkAction, ServerKind, SimServer,
    SimSettings, System, Thread,
};

use crate::simulated::support::{system, threads};

const BOUNDS: [Bound; 3] =
    [AS_PUBLISHED, Bound::BertognaCirinei { slack: false, clamp: false }, Bound::LimitedCarryIn];

/// Up to five tasks of several processors.
fn delayed(dice: &mut Dice, cpus: u64) -> TaskSet {
    let count = dice.between(1, 5);
    let one = |priority: u64| {
        let period = dice.between(6, 40);
        let cost = dice.between(1, (period * cpus / (count + 1)).clamp(1, period));
        let room = (period - cost) / 2;
        let jitter = if dice.one_in(2) { dice.between(0, room) } else { 0 };
        let suspension = if dice.one_in(3) { dice.between(0, room) } else { 0 };
        let priority = if dice.one_in(5) { 1 } else { priority };
        let task = Task::new(cost, period, period).unwrap().with_priority(priority as u32);
        task.with_jitter(jitter).with_suspension(suspension)
    };
    TaskSet::new((1..=count).map(one).collect())
}

/// Reservations that are known to be delivered on these processors; maybe none.
fn reservations(dice: &mut Dice, cpus: u64) -> Vec<(u64, u64)> {
    let count = dice.between(0, cpus + 1);
    let one = |_| {
        let period = dice.between(3, 20);
        (dice.between(1, (period / 2).max(1)), period)
    };
    let all: Vec<(u64, u64)> = (0..count).map(one).collect();
    let of = |(budget, period): &(u64, u64)| Task::new(*budget, *period, *period).unwrap();
    let set = TaskSet::new(all.iter().map(of).collect());
    let is_delivered = servers::delivery_on_several(&set, cpus).is_some();
    if is_delivered { all } else { Vec::new() }
}

/// All of them, wherever they begin, wherever they suspend themselves, and with whatever work comes to the reservations.
fn machine(dice: &mut Dice, cpus: u64, set: &TaskSet, reserved: &[(u64, u64)]) -> System {
    let mut all = threads(set);
    for (thread, task) in all.iter_mut().zip(set.tasks()) {
        let (offset, period) = (dice.between(0, 30), task.period());
        thread.jitter = match dice.one_in(2) {
            true => Jitter::Random(task.jitter()),
            false => Jitter::Worst(task.jitter()),
        };
        thread.arrivals = match dice.one_in(2) {
            true => ArrivalPattern::Periodic { offset, period },
            false => ArrivalPattern::Sporadic { offset, period, extra: dice.between(0, 5) },
        };
        if task.suspension() > 0 {
            let at = dice.between(0, task.cost() - 1);
            thread.marks = vec![Mark { at, action: MarkAction::Suspend(task.suspension()) }];
        }
    }
    let mut machine = system(cpus as u32, all);
    for (at, (budget, period)) in reserved.iter().enumerate() {
        machine.servers.push(SimServer::new(ServerKind::CbsHard, *budget, *period));
        let (mut when, mut arrivals, mut costs) = (dice.between(0, 20), Vec::new(), Vec::new());
        for _ in 0..40 {
            arrivals.push(when);
            costs.push(dice.between(1, budget * 2));
            when += dice.between(1, period * 2);
        }
        let arrivals = ArrivalPattern::Listed(arrivals);
        let own = Thread::new(Class::Edf, arrivals, CostModel::Listed(costs), 1_000);
        machine.threads.push(own.in_server(at));
    }
    machine
}

/// Bertogna and Cirinei 2007 and Guan et al. 2009, where a job is released late and suspends itself, and below
/// reservations, which may use two budgets in a row: no response is over its bound.
#[test]
fn delayed_threads_below_reservations_keep_their_bounds() {
    let (mut bounded, mut reached) = ([0; 2], [0; 2]);
    for seed in 0..1_000 {
        let mut dice = Dice::new(seed);
        let cpus = dice.between(2, 3);
        let set = delayed(&mut dice, cpus);
        let reserved = reservations(&mut dice, cpus);
        let placed = |(budget, period): &(u64, u64)| {
            let server = servers::Server::new(ServerPolicy::HardBandwidth, *period, *budget);
            PlacedServer { server: server.unwrap(), priority: None }
        };
        let placed: Vec<PlacedServer> = reserved.iter().map(placed).collect();
        let above = servers::among_priorities(&placed, true).unwrap();
        let all = TaskSet::new(set.tasks().iter().cloned().chain(above).collect());
        let machine = machine(&mut dice, cpus, &set, &reserved);
        let settings = SimSettings::until(2_000).with_seed(seed);
        let outcome = sim::run(&machine, settings).unwrap();
        for bound in BOUNDS {
            let found = fixed_priority::analyse(&all, cpus, bound);
            for at in 0..set.len() {
                let Some(bound) = found.tasks[at].outcome.response() else { continue };
                let thread = &outcome.threads[at];
                let longest = thread.max_response.unwrap_or(0);
                let released = thread.max_response_from_release.unwrap_or(0);
                assert!(
                    longest <= bound.from_arrival && released <= bound.from_release,
                    "seed {seed}, task {at}: {longest} and {released}, bound {bound:?}: {all:?}"
                );
                let is_below = usize::from(!reserved.is_empty());
                bounded[is_below] += 1;
                reached[is_below] += u64::from(released == bound.from_release);
            }
        }
    }
    let is_enough = bounded.iter().chain(&reached).all(|count| *count > 200);
    assert!(is_enough, "{bounded:?} {reached:?}");
}

/// Chains of two to four steps, with the jitter of each.
fn flows(dice: &mut Dice) -> Vec<Flow> {
    let step = |dice: &mut Dice| {
        let cost = dice.between(1, 5);
        let (bcet, priority) = (dice.between(0, cost), dice.between(1, 6) as u32);
        let suspension = if dice.one_in(4) { dice.between(1, 4) } else { 0 };
        Step { cost, bcet, suspension, processor: 0, priority }
    };
    let flow = |dice: &mut Dice| {
        let period = dice.between(15, 60);
        let steps = (0..dice.between(1, 4)).map(|_| step(dice)).collect();
        Flow { period, deadline: period, jitter: dice.between(0, 4), steps }
    };
    (0..dice.between(1, 4)).map(|_| flow(dice)).collect()
}

/// Tindell and Clark 1994, on one processor and on several that share all steps, which suspend themselves: none ends later
/// than its bound after its chain's arrival.
#[test]
fn chains_on_shared_processors_keep_their_bounds() {
    let (mut bounded, mut close) = (0, 0);
    for seed in 0..1_000 {
        let mut dice = Dice::new(seed);
        let cpus = dice.between(1, 3);
        let service = if cpus == 1 { Service::Preemptive } else { Service::Shared(cpus) };
        let flows = flows(&mut dice);
        let mut threads: Vec<Thread> = Vec::new();
        for flow in &flows {
            let offset = dice.between(0, 30);
            for (at, step) in flow.steps.iter().enumerate() {
                let mut thread = Thread::periodic(step.cost, flow.period)
                    .with_deadline(flow.deadline)
                    .with_priority(step.priority);
                thread.arrivals = ArrivalPattern::Periodic { offset, period: flow.period };
                match at {
                    0 => thread.jitter = Jitter::Random(flow.jitter),
                    _ => thread.after = vec![threads.len() - 1],
                }
                if step.suspension > 0 {
                    let action = MarkAction::Suspend(step.suspension);
                    thread.marks = vec![Mark { at: dice.between(0, step.cost - 1), action }];
                }
                let costs = (0..40).map(|_| dice.between(step.bcet.max(1), step.cost)).collect();
                thread.cost = CostModel::Listed(costs);
                threads.push(thread);
            }
        }
        let system_of = ChainSystem::new(flows, vec![service]).unwrap();
        let found = holistic::analyse(&system_of, TimeModel::Discrete);
        assert_eq!(checker::holistic(&system_of, TimeModel::Discrete, &found), Ok(()));
        let settings = SimSettings::until(3_000).with_seed(seed);
        let outcome = sim::run(&system(cpus as u32, threads), settings).unwrap();
        let steps = found.flows.iter().flat_map(|flow| &flow.steps);
        for (step, thread) in steps.zip(&outcome.threads) {
            let Some(bound) = step.outcome.response() else { continue };
            let longest = thread.max_response.unwrap_or(0);
            assert!(longest <= bound.from_arrival, "seed {seed}: {longest}, {bound:?}");
            bounded += 1;
            close += u64::from(longest * 10 >= bound.from_arrival * 9);
        }
    }
    assert!(bounded > 1_000 && close > 200, "{bounded} {close}");
}
