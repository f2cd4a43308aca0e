//! Budgets of whole jobs against the simulator: alone and together.

use hourglass_dice::Dice;
use hourglass_sched::design::{self, StageServer};
use hourglass_sched::fixed_priority::{self, Sections, TimeModel};
use hourglass_sched::{Task, TaskSet, servers};
use hourglass_sim::{Class, ServerKind, ServerRank, SimServer, System, Thread};

use super::servers::{served, some_jobs, traced};
use crate::simulated::support::system;

/// Of work that fills what a reservation leaves: another server by deadlines, or a thread above it as long as the
/// budget is delivered within the period.
fn beside(machine: &mut System, dice: &mut Dice, server: &servers::Server) {
    let (budget, period, deadline) = (server.budget(), server.period(), server.deadline());
    let other = dice.between(2, 15);
    if server.kind() == servers::ServerPolicy::HardBandwidth {
        let own = SimServer::new(ServerKind::CbsHard, budget, period).with_deadline(deadline);
        machine.servers = vec![own];
        let rest = other * (deadline - budget) / deadline;
        if rest > 0 {
            machine.servers.push(SimServer::new(ServerKind::CbsHard, rest, other));
            machine.threads.push(served(&[(0, 10_000)], 1));
        }
        return;
    }
    let deferrable = server.kind() == servers::ServerPolicy::Deferrable;
    let kind = if deferrable { ServerKind::Deferrable } else { ServerKind::ReserveHard };
    machine.servers = vec![SimServer::new(kind, budget, period).with_rank(ServerRank::Priority(5))];
    // Of budgets that wait, others' may come late in one period and early in the next.
    let late = |cost| if deferrable { other - cost } else { 0 };
    let above = |cost| Task::new(cost, other, 1_000_000).unwrap().with_jitter(late(cost));
    let delivered = |cost: &u64| {
        let own = Task::new(budget, period, deadline).unwrap();
        let set = TaskSet::in_order(vec![above(*cost), own]);
        let found = fixed_priority::analyse(&set, Sections::Preemptive, TimeModel::Discrete);
        found.from_arrival()[1].is_some_and(|bound| bound <= deadline)
    };
    let Some(cost) = (1..other).rev().find(delivered) else { return };
    if deferrable {
        let (mut at, mut jobs) = (dice.between(0, other), Vec::new());
        for begin in (0..400).step_by(usize::try_from(other).unwrap()) {
            at = at.max(begin + dice.between(0, late(cost)));
            jobs.push((at, cost));
        }
        let own = SimServer::new(ServerKind::Deferrable, cost, other);
        machine.servers.push(own.with_rank(ServerRank::Priority(9)));
        machine.threads.push(served(&jobs, 1));
    } else {
        machine.threads.push(Thread::periodic(cost, other).with_class(Class::Fifo(9)));
    }
}

/// The argument of [`design::of_whole_jobs`], on random jobs beside work that takes what the reservation leaves: every
/// deadline from the arrival holds, and some job needs all of it.
#[test]
fn a_budget_of_a_whole_job_keeps_the_deadline() {
    use servers::ServerPolicy::{Deferrable, HardBandwidth, Periodic};
    for kind in [HardBandwidth, Periodic, Deferrable] {
        let (mut kept, mut reached) = (0, [0, 0, 0]);
        for seed in 0..3_000 {
            let mut dice = Dice::new(seed);
            let cost = dice.between(1, 5);
            let period = cost + dice.between(0, 12);
            let jitter = dice.between(0, 1) * dice.between(0, period + 3);
            let deadline = cost + jitter + dice.between(0, period * 2);
            let task = Task::new(cost, period, deadline).unwrap().with_jitter(jitter);
            let Some(server) = design::of_whole_jobs(kind, &task) else { continue };
            let jobs = some_jobs(&mut dice, &task);
            let releases: Vec<_> = jobs.iter().map(|(_, at, cost)| (*at, *cost)).collect();
            let mut machine = system(1, vec![served(&releases, 0)]);
            beside(&mut machine, &mut dice, &server);
            let ends = traced(&machine, 20_000).completions(0);
            assert_eq!(ends.len(), jobs.len(), "seed {seed}");
            let longest = jobs.iter().zip(&ends).map(|((at, ..), end)| end - at).max().unwrap();
            assert!(longest <= deadline, "seed {seed}: {longest}: {server:?} {task:?} {jobs:?}");
            kept += 1;
            if longest == deadline {
                reached[usize::from(jitter > 0) + usize::from(deadline < period)] += 1;
            }
        }
        assert!(kept > 1_000 && reached.iter().all(|n| *n > 0), "{kind:?}: {kept} {reached:?}");
    }
}

/// Work that uses the budgets of a server at any place of their periods, often late in one and early in the next.
fn any_work(dice: &mut Dice, server: &servers::Server) -> Vec<(u64, u64)> {
    let (budget, period) = (server.budget(), server.period());
    let mut begin = 0;
    let mut jobs: Vec<(u64, u64)> = Vec::new();
    while begin < 5_000 {
        let (at, cost) = match dice.one_in(3) {
            true => (dice.between(0, period - 1), dice.between(1, budget * 2)),
            false => (period - budget, budget * 2),
        };
        jobs.push((begin + at, cost));
        begin += period * dice.between(1, 2);
    }
    jobs
}

/// Jobs as far apart as they must be, released early or late, mostly of full length, of which one is released when the last
/// budget of a period of this server begins.
fn close_jobs(dice: &mut Dice, task: &Task, other: &servers::Server) -> Vec<(u64, u64, u64)> {
    let mut jobs = Vec::new();
    let mut arrival = dice.between(0, 100);
    for _ in 0..30 {
        let late = [0, task.jitter(), dice.between(0, task.jitter())][dice.between(0, 2) as usize];
        let before = jobs.last().map_or(0, |(_, release, _)| *release);
        let cost = if dice.one_in(4) { dice.between(1, task.cost()) } else { task.cost() };
        jobs.push((arrival, before.max(arrival + late), cost));
        arrival += task.period() + dice.between(0, 1) * dice.between(0, 5);
    }
    let (one, last) = (jobs[dice.between(0, 20) as usize].1, other.period() - other.budget());
    let moved = (other.period() + last - one % other.period()) % other.period();
    jobs.iter().map(|(arrival, release, cost)| (arrival + moved, release + moved, *cost)).collect()
}

/// The argument of [`design::together`]: up to four tasks, some released by the end of the one before, each in a server of its own
/// on one processor. Every job of one of them ends within its bound, whatever the others do, and some need all of it.
#[test]
fn budgets_of_whole_jobs_hold_together() {
    let (mut found, mut reached) = (0, [0, 0]);
    for seed in 0..10_000 {
        let mut dice = Dice::new(seed);
        let base = dice.between(8, 40);
        let mut tasks: Vec<(Task, Vec<usize>)> = Vec::new();
        for at in 0..dice.between(1, 4) as usize {
            let follows = at > 0 && dice.one_in(2);
            let period =
                if follows { tasks[at - 1].0.period() } else { base + dice.between(0, 30) };
            let jitter = if follows { 0 } else { dice.between(0, 1) * dice.between(0, 6) };
            let task = Task::new(dice.between(1, 6), period, period).unwrap().with_jitter(jitter);
            tasks.push((task, if follows { vec![at - 1] } else { Vec::new() }));
        }
        let is_last = |at: usize| !tasks.iter().any(|(_, after)| after.contains(&at));
        let stage = |at: usize| {
            let (task, after) = &tasks[at];
            let deadline = is_last(at).then_some(task.deadline());
            design::Stage { task, processor: 0, after, deadline }
        };
        let stages: Vec<design::Stage<'_>> = (0..tasks.len()).map(stage).collect();
        // Deadlines of one octave have one priority.
        let octave = |deadline: u64| Some(1 << (deadline.ilog2() + 1));
        let next = |deadline: u64| Some(deadline + 1);
        let servers = match dice.one_in(2) {
            true => design::together(&stages, octave),
            false => design::together(&stages, next),
        };
        let Some(servers) = servers else { continue };
        found += 1;
        let judged = dice.between(0, servers.len() as u64 - 1) as usize;
        let (task, after) = &tasks[judged];
        let before = after.iter().map(|at| servers[*at].bound).max().unwrap_or(0);
        let task = task.clone().with_jitter(before + task.jitter());
        let other = servers[dice.between(0, servers.len() as u64 - 1) as usize].server;
        let jobs = close_jobs(&mut dice, &task, &other);
        let mut machine = system(1, Vec::new());
        for (at, StageServer { server, .. }) in servers.iter().enumerate() {
            let rank = ServerRank::Priority(1_000 - server.deadline() as u32);
            let made = SimServer::new(ServerKind::Deferrable, server.budget(), server.period());
            machine.servers.push(made.with_rank(rank));
            let own = jobs.iter().map(|(_, at, cost)| (*at, *cost)).collect();
            let releases = if at == judged { own } else { any_work(&mut dice, server) };
            machine.threads.push(served(&releases, at));
        }
        let ends = traced(&machine, 20_000).completions(judged);
        assert_eq!(ends.len(), jobs.len(), "seed {seed}");
        let longest = jobs.iter().zip(&ends).map(|((at, ..), end)| end - at).max().unwrap();
        let bound = servers[judged].bound;
        assert!(longest <= bound, "seed {seed}: {judged}: {longest}: {servers:?} {tasks:?}");
        let is_short = servers[judged].server.period() < task.period() - task.jitter();
        if judged > 0 && longest == bound {
            reached[usize::from(is_short)] += 1;
        }
    }
    assert!(found > 5_000 && reached.iter().all(|n| *n > 2), "{found} {reached:?}");
}
