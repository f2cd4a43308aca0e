//! Random sets of every kind that can be called infeasible: the witness is simulated as it is written.

mod servers;

use hourglass_dice::Dice;
use hourglass_documents::check::{CheckDocument, Verdict};
use hourglass_tasks::{
    Activation, CriticalSection, Preemption, Protocol, Resource, Scheduler, Server, ServerKind,
    Task, TaskSet,
};
use hourglass_time::Span;

use super::{NOT_SHOWN, TOO_FAR};
use crate::check::{CheckRequest, check};
use crate::random::{self, us};
use crate::simulate::{self, simulate};

/// Sets in CI. `HOURGLASS_SETS` asks for another number.
const SETS: u64 = 400;

/// The properties that tasks of a set may have.
#[derive(Clone, Copy)]
struct Kind {
    jitter: bool,
    offsets: bool,
    sections: u64,
    bursts: bool,
    equals: bool,
    ticks: bool,
}

fn kind(dice: &mut Dice) -> Kind {
    Kind {
        jitter: dice.one_in(3),
        offsets: dice.one_in(5),
        sections: dice.between(0, 6),
        bursts: dice.one_in(8),
        equals: dice.one_in(3),
        ticks: dice.one_in(10),
    }
}

fn task(dice: &mut Dice, at: u64, count: u64, kind: Kind, load: u64) -> Task {
    let period = [4, 5, 6, 8, 10, 12, 15, 20, 24, 30][dice.between(0, 9) as usize] * 100;
    let wcet = (period * load * dice.between(20, 180) / (count * 10_000)).max(2);
    let mut task = Task::new(&format!("t{at}"), us(wcet), us(period));
    task.deadline = match dice.between(0, 3) {
        0 => Some(us(dice.between(wcet, (2 * period).max(wcet)))),
        1 => Some(us(dice.between(wcet, period.max(wcet)))),
        _ => None,
    };
    if kind.jitter && dice.one_in(2) {
        task.jitter = us(dice.between(1, period / 2));
    }
    if kind.offsets {
        task.offset = Some(us(dice.between(0, period)));
    }
    if kind.bursts && dice.one_in(2) {
        task.arrivals = vec![us(0), us(period / 4)];
    }
    if kind.ticks {
        task.timer = Some("TICK:10000".to_owned());
    }
    let longest = dice.between(1, wcet);
    task.preemption = match kind.sections {
        1 => Preemption::None,
        2 => Preemption::Limited { longest: us(longest), last: us(dice.between(1, longest)) },
        3 if dice.one_in(2) => Preemption::Floating { longest: us(longest) },
        _ => Preemption::Full,
    };
    if dice.one_in(4) {
        task.activation = Activation::Sporadic;
    }
    task
}

/// A set on one CPU, on several, or pinned to them.
fn set(seed: u64) -> TaskSet {
    let mut dice = Dice::new(seed);
    let kind = kind(&mut dice);
    let count = dice.between(1, 6);
    let cpus = if dice.one_in(4) { dice.between(2, 3) } else { 1 };
    let load = dice.between(50, 115) * cpus;
    let tasks = (0..count).map(|at| task(&mut dice, at, count, kind, load));
    let mut set = TaskSet::new(tasks.collect());
    set.scheduler = match dice.between(0, 5) {
        0 | 1 => Scheduler::Edf,
        2 => Scheduler::Fifo,
        _ => Scheduler::FixedPriority,
    };
    if set.scheduler == Scheduler::FixedPriority && dice.one_in(2) {
        for (task, at) in set.tasks.iter_mut().zip(1..) {
            let priority = if kind.equals { dice.between(1, 3) as u32 } else { at };
            task.priority = Some(priority);
            if kind.sections == 4 {
                task.preemption = Preemption::Threshold(priority + dice.between(0, 3) as u32);
            }
        }
    }
    let pinned = dice.one_in(2);
    set.machine.cpus = Some(format!("0-{}", cpus - 1).parse().unwrap());
    for task in &mut set.tasks {
        let cpu = dice.between(0, cpus - 1);
        task.cpus = pinned.then(|| cpu.to_string().parse().unwrap());
    }
    add_others(&mut dice, &mut set, kind);
    set
}

/// Locks, suspension, a server: seldom, as little is called infeasible then.
fn add_others(dice: &mut Dice, set: &mut TaskSet, kind: Kind) {
    if kind.sections == 5 {
        let protocol = [Protocol::Ceiling, Protocol::Inheritance][dice.between(0, 1) as usize];
        set.resources.push(Resource { name: "r".to_owned(), protocol, ceiling: None });
        for task in &mut set.tasks {
            let length = us((task.wcet.nanos_or_zero() / 1_000).div_ceil(2));
            let resource = "r".to_owned();
            task.critical_sections = vec![CriticalSection { resource, length, count: 1 }];
        }
    }
    if kind.sections == 6 && dice.one_in(2) {
        set.tasks[0].suspension = us(dice.between(1, 300));
    }
    if kind.sections == 6 && dice.one_in(4) {
        set.servers.push(Server {
            tasks: vec![set.tasks[0].name.clone()],
            ..Server::new("s", ServerKind::Deferrable, us(200), us(500))
        });
    }
}

/// Asserts that the witness of a set shows what it says. Returns whether it has one.
fn replayed(seed: u64, set: &TaskSet, document: &CheckDocument) -> bool {
    let found = document
        .witness
        .as_ref()
        .and_then(|witness| witness.miss.as_ref().zip(witness.scenario.as_ref()));
    let Some((miss, scenario)) = found else {
        assert_ne!(document.verdict, Verdict::Infeasible, "seed {seed}: {}", set.to_toml());
        return false;
    };
    let read = TaskSet::from_toml(scenario).unwrap();
    let simulated = simulate(&simulate::SimulationRequest::new(read), &mut ()).unwrap().document;
    let task = simulated.tasks.iter().find(|task| task.name == miss.task).unwrap();
    let seen = task.first_miss.unwrap_or_else(|| panic!("seed {seed}: no miss\n{scenario}"));
    assert_eq!(
        (seen.job, seen.arrival_ns, seen.due_ns, seen.done_ns),
        (miss.job, miss.arrival_ns, miss.due_ns, miss.done_ns),
        "seed {seed}: {scenario}"
    );
    // A job that never started is lost, not missed.
    let is_late = seen.done_ns.is_none_or(|done| done > seen.due_ns);
    assert!(task.missed + task.lost > 0 && is_late, "seed {seed}");
    let named = document.witness.as_ref().and_then(|witness| witness.task.as_ref());
    assert!(named.is_none_or(|named| *named == miss.task), "seed {seed}: {document:?}");
    is_of(seed, set, &TaskSet::from_toml(scenario).unwrap());
    true
}

/// Asserts that a scenario is a case of the set: its tasks, with their given phases.
fn is_of(seed: u64, set: &TaskSet, scenario: &TaskSet) {
    assert_eq!(set.tasks.len(), scenario.tasks.len(), "seed {seed}");
    for task in &set.tasks {
        let other = scenario.task(&task.name).unwrap();
        let key =
            |task: &Task| (task.wcet, task.period, task.deadline, task.jitter, task.suspension);
        assert_eq!(key(task), key(other), "seed {seed}");
        assert!(task.offset.is_none() || task.offset == other.offset, "seed {seed}");
        assert!(
            task.preemption == other.preemption
                || matches!(task.preemption, Preemption::Floating { .. }),
            "seed {seed}"
        );
    }
}

/// Whatever is called infeasible misses that deadline in the simulation of its witness. What an analysis
/// called so and no scenario showed is counted: it must be rare.
#[test]
fn every_witness_is_replayed_by_the_simulation() {
    let sets = random::sets();
    let (mut infeasible, mut shown, mut refuted, mut over) = (0, 0, 0, 0);
    for seed in 0..sets.unwrap_or(SETS) {
        let set = set(seed);
        if set.check().is_err() {
            continue;
        }
        let document = check(&set, &CheckRequest::default()).unwrap();
        infeasible += u64::from(document.verdict == Verdict::Infeasible);
        over += u64::from(document.verdict == Verdict::NoBound);
        shown += u64::from(replayed(seed, &set, &document));
        let taken = |task: &&hourglass_documents::check::TaskFacts| {
            task.reason == NOT_SHOWN || task.reason == TOO_FAR
        };
        if let Some(task) = document.tasks.iter().find(taken) {
            refuted += 1;
            if sets.is_some() {
                println!("seed {seed}: '{}' {} {}", task.name, task.reason, document.analysis);
            }
        }
    }
    println!("{infeasible} infeasible, {over} overloaded, {shown} shown, {refuted} taken back");
    assert!(
        infeasible > SETS / 8 && over > 0 && shown >= infeasible,
        "{infeasible} {over} {shown}"
    );
    assert!(refuted * 10 <= infeasible, "{refuted} of {infeasible} taken back");
}

/// The cases whose witnesses rested on an order among equal deadlines that no simulation has (global EDF): what
/// is said of them now is what their simulation shows.
#[test]
fn global_deadlines_agree_with_the_simulation() {
    let cases = [
        ("0-1", vec![("1ms", "6ms"), ("4ms", "6ms"), ("1ms", "2ms"), ("3ms", "6ms")]),
        ("0-1", vec![("1ms", "6ms"), ("3ms", "12ms"), ("3ms", "3ms"), ("3ms", "6ms")]),
        (
            "0-2",
            vec![
                ("1ms", "16ms"),
                ("1ms", "8ms"),
                ("7ms", "16ms"),
                ("7ms", "16ms"),
                ("6ms", "6ms"),
                ("2ms", "3ms"),
            ],
        ),
    ];
    for (cpus, tasks) in cases {
        let span = |text: &str| text.parse::<Span>().unwrap();
        let task = |(at, (wcet, period)): (usize, &(&str, &str))| {
            Task::new(&format!("t{at}"), span(wcet), span(period))
        };
        let mut set = TaskSet::new(tasks.iter().enumerate().map(task).collect());
        set.scheduler = Scheduler::Edf;
        set.machine.cpus = Some(cpus.parse().unwrap());
        let document = check(&set, &CheckRequest::default()).unwrap();
        let simulated =
            simulate(&simulate::SimulationRequest::new(set.clone()), &mut ()).unwrap().document;
        let missed = simulated.failed() > 0;
        assert!(!missed || document.verdict != Verdict::Feasible);
        assert_eq!(document.verdict == Verdict::Infeasible, replayed(0, &set, &document));
    }
}

/// More demanded than there is grows, whatever the phases; and phases that are given and miss a deadline are a
/// witness, also where the analysis takes any phase to be possible. Cases by hand.
#[test]
fn given_phases_are_simulated_before_anything_is_unknown() {
    let span = |text: &str| text.parse::<Span>().unwrap();
    let set = |preemption: Preemption, tasks: [(&str, &str, &str); 2]| {
        let task = |(wcet, period, offset): (&str, &str, &str)| {
            let mut task = Task::new(wcet, span(wcet), span(period));
            task.offset = Some(span(offset));
            task.preemption = preemption;
            task
        };
        let mut set = TaskSet::new(tasks.into_iter().map(task).collect());
        set.scheduler = Scheduler::Edf;
        set
    };
    let over = set(Preemption::Full, [("10ms", "15ms", "10ms"), ("3ms", "8ms", "0ms")]);
    let document = check(&over, &CheckRequest::default()).unwrap();
    assert_eq!(document.verdict, Verdict::NoBound);
    assert!(document.tasks.iter().all(|task| task.verdict == Verdict::NoBound));
    assert!(replayed(0, &over, &document));
    // The short one arrives 1 ms behind the other, which is not preempted, and is done at 9 ms, due at 6.
    let late = set(Preemption::None, [("2ms", "5ms", "1ms"), ("7ms", "20ms", "0ms")]);
    let document = check(&late, &CheckRequest::default()).unwrap();
    assert_eq!(document.verdict, Verdict::Infeasible);
    assert!(replayed(0, &late, &document));
    // The jobs never come at the same time: none is late, and none is called late.
    let apart = set(Preemption::None, [("2ms", "10ms", "8ms"), ("7ms", "10ms", "0ms")]);
    assert!(check(&apart, &CheckRequest::default()).unwrap().verdict < Verdict::Infeasible);
}
