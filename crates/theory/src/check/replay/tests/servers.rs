//! Random systems with servers of every kind: bounds against simulations, witnesses replayed.

use hourglass_dice::Dice;
use hourglass_documents::Policy;
use hourglass_documents::check::Verdict;
use hourglass_tasks::{Activation, Scheduler, Server, ServerKind, Task, TaskSet};

use super::replayed;
use crate::check::{CheckRequest, check};
use crate::random::{seeds, us};
use crate::simulate::{self, Releases, simulate};

const KINDS: [ServerKind; 8] = [
    ServerKind::CbsHard,
    ServerKind::CbsHard,
    ServerKind::CbsSoft,
    ServerKind::CbsReclaim,
    ServerKind::Polling,
    ServerKind::Deferrable,
    ServerKind::Sporadic,
    ServerKind::PeriodicResource,
];

/// Periods with a hyperperiod of 12 ms, and some that have a long one.
fn period(dice: &mut Dice) -> u64 {
    [400, 500, 600, 800, 1_000, 1_200, 1_500, 2_000, 703, 1_109][dice.between(0, 9) as usize]
}

/// A task that needs a part of `rate`, in thousandths of a CPU.
fn task(dice: &mut Dice, name: String, rate: u64) -> Task {
    let period = period(dice);
    let wcet = (period * rate * dice.between(10, 90) / 100_000).max(1);
    let mut task = Task::new(&name, us(wcet), us(period));
    if dice.one_in(4) {
        task.deadline = Some(us(dice.between(wcet, 2 * period)));
    }
    if dice.one_in(6) {
        task.jitter = us(dice.between(1, period / 2));
    }
    if dice.one_in(5) {
        task.offset = Some(us(dice.between(0, period)));
    }
    if dice.one_in(3) {
        task.activation = Activation::Sporadic;
    }
    if dice.one_in(12) {
        task.suspension = us(dice.between(1, 200));
    }
    task
}

/// A server with its tasks, of which the first may be as long as the budget.
fn server(dice: &mut Dice, set: &mut TaskSet, at: u64, first: bool) {
    let period = period(dice) / dice.between(1, 4);
    let budget = (period * dice.between(50, 350) / 1_000).max(1);
    let kind = KINDS[dice.between(0, 7) as usize];
    let mut server = Server::new(&format!("s{at}"), kind, us(budget), us(period));
    // Without one it is before those that have one.
    if !first && !dice.one_in(3) {
        server.priority = Some(dice.between(1, 40) as u32);
    }
    if dice.one_in(4) {
        server.scheduler = Scheduler::Edf;
    }
    if dice.one_in(6) {
        server.deadline = Some(us(dice.between(budget, period)));
    }
    let count = dice.between(1, 2);
    for number in 0..count {
        let mut task = task(dice, format!("s{at}t{number}"), budget * 1_000 / period / count);
        if count == 1 && dice.one_in(2) {
            task.wcet = us(budget).min(task.deadline());
        }
        if first && count == 1 && dice.one_in(3) {
            task.policy = Some(Policy::Deadline);
        } else if server.scheduler == Scheduler::FixedPriority {
            task.priority = Some(dice.between(1, 40) as u32);
        }
        server.tasks.push(task.name.clone());
        set.tasks.push(task);
    }
    set.servers.push(server);
}

fn set(seed: u64) -> TaskSet {
    let mut dice = Dice::new(seed);
    let mut set = TaskSet::new(Vec::new());
    set.machine.cpus = Some("0".parse().unwrap());
    if dice.one_in(3) {
        set.scheduler = Scheduler::Edf;
    }
    let first = set.scheduler == Scheduler::Edf || dice.one_in(2);
    for at in 0..dice.between(1, 3) {
        server(&mut dice, &mut set, at, first);
    }
    let beside = if set.scheduler == Scheduler::Edf { 0 } else { dice.between(0, 2) };
    for at in 0..beside {
        let mut task = task(&mut dice, format!("t{at}"), 200);
        task.priority = Some(dice.between(1, 40) as u32);
        set.tasks.push(task);
    }
    set.horizon = Some(us(60_000));
    set
}

/// Where `check` gives a bound, no simulation of the file goes over it, however jobs are released; what it calls
/// feasible misses nothing, and what it calls infeasible misses its deadline in the file that it writes.
#[test]
fn servers_keep_what_check_says() {
    let (mut feasible, mut bounded, mut shown) = (0, 0, 0);
    for seed in seeds(260) {
        let set = set(seed);
        if set.check().is_err() {
            continue;
        }
        let document = check(&set, &CheckRequest::default()).unwrap();
        let text = || format!("seed {seed}\n{}", set.to_toml());
        let defect = document.tasks.iter().find(|task| task.reason.contains("report"));
        assert!(defect.is_none(), "{}: {defect:?}", text());
        shown += u64::from(replayed(seed, &set, &document));
        let known = |task: &&hourglass_documents::check::TaskFacts| task.response_time_ns.is_some();
        bounded += document.tasks.iter().filter(known).count();
        feasible += u64::from(document.verdict == Verdict::Feasible);
        for releases in [Releases::Critical, Releases::Nominal, Releases::Random] {
            let request = simulate::SimulationRequest {
                releases,
                ..simulate::SimulationRequest::new(set.clone())
            };
            let Ok(simulated) = simulate(&request, &mut ()) else { continue };
            for (facts, seen) in document.tasks.iter().zip(&simulated.document.tasks) {
                let Some(bound) = facts.response_time_ns else { continue };
                let longest = seen.max_response_ns.unwrap_or(0);
                assert!(longest <= bound, "{}: '{}' {longest} > {bound}", text(), facts.name);
                let holds = facts.verdict != Verdict::Feasible || seen.missed + seen.lost == 0;
                assert!(holds, "{}: '{}'", text(), facts.name);
            }
        }
    }
    println!("{feasible} feasible, {bounded} tasks bounded, {shown} shown");
    assert!(feasible > 5 && bounded > 60 && shown > 15, "{feasible} {bounded} {shown}");
}
