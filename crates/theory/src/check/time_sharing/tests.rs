//! Time-sharing tasks beside background threads: bounds held against the simulation, cases by hand.

use hourglass_dice::Dice;
use hourglass_documents::Policy;
use hourglass_documents::check::Verdict;
use hourglass_tasks::{Background, Phase, Program, ProgramStep, Task, TaskSet};
use hourglass_time::Span;

use super::{Demand, demand};
use crate::check::{CheckRequest, check};
use crate::random::{seeds, us};
use crate::simulate::{self, simulate};

fn policy(dice: &mut Dice) -> Policy {
    match dice.between(0, 4) {
        0 => Policy::Batch,
        1 => Policy::Idle,
        _ => Policy::Other(dice.between(0, 39) as i8 - 20),
    }
}

fn step(dice: &mut Dice) -> ProgramStep {
    let name = dice.between(0, 2).to_string();
    match dice.between(0, 9) {
        0 | 1 => ProgramStep::Run(us(dice.between(1, 200))),
        2 => ProgramStep::RunFor(us(dice.between(1, 200))),
        3..=5 => ProgramStep::Sleep(us(dice.between(1, 5_000))),
        6 if dice.one_in(3) => ProgramStep::Suspend(name),
        7 => ProgramStep::Resume(name),
        8 => ProgramStep::Yield,
        _ => ProgramStep::Post(name),
    }
}

fn background(dice: &mut Dice, at: u64) -> Background {
    let loops = |dice: &mut Dice| (!dice.one_in(6)).then(|| dice.between(1, 3));
    let mut phases = Vec::new();
    for _ in 0..dice.between(1, 3) {
        let mut steps: Vec<ProgramStep> = (0..dice.between(1, 4)).map(|_| step(dice)).collect();
        // Most programs sleep, since few bounds exist without a sleep.
        if !dice.one_in(20) {
            steps.push(ProgramStep::Sleep(us(dice.between(1_000, 5_000))));
        }
        let (loops, policy) = (loops(dice), dice.one_in(6).then(|| policy(dice)));
        phases.push(Phase { name: String::new(), loops, policy, cpus: None, steps });
    }
    let loops = if dice.one_in(4) { loops(dice) } else { None };
    let policy = Some(if dice.one_in(5) { Policy::Fifo(5) } else { policy(dice) });
    Background { name: format!("b{at}"), policy, cpus: None, program: Program { loops, phases } }
}

fn set(seed: u64) -> TaskSet {
    let mut dice = Dice::new(seed);
    let count = dice.between(1, 4);
    let task = |dice: &mut Dice, at: u64| {
        let period = [500, 600, 800, 1_000, 1_500, 2_000][dice.between(0, 5) as usize];
        let wcet = (period * dice.between(20, 150) / (count * 200)).max(1);
        let mut task = Task::new(&format!("t{at}"), us(wcet), us(period));
        if dice.one_in(3) {
            task.priority = Some(10 + at as u32);
        } else {
            task.policy = Some(policy(dice));
        }
        if dice.one_in(4) {
            task.jitter = us(dice.between(1, period / 2));
        }
        if dice.one_in(4) {
            task.offset = Some(us(dice.between(0, period)));
        }
        if dice.one_in(3) {
            task.deadline = Some(us(dice.between(wcet, 2 * period)));
        }
        task
    };
    let tasks: Vec<Task> = (0..count).map(|at| task(&mut dice, at)).collect();
    let mut set = TaskSet::new(tasks);
    set.background = (0..dice.between(0, 3)).map(|at| background(&mut dice, at)).collect();
    set.horizon = Some(Span::from_nanos(60_000_000));
    set
}

/// No job of a bounded task responds later in the simulation; what is called feasible misses no deadline.
#[test]
fn no_simulated_response_is_over_its_bound() {
    let (mut bounded, mut feasible) = (0, 0);
    for seed in seeds(100) {
        let set = set(seed);
        if set.check().is_err() {
            continue;
        }
        let document = check(&set, &CheckRequest::default()).unwrap();
        let shares = |name: &str| set.task(name).unwrap().policy.is_some();
        let defect = document.tasks.iter().find(|task| task.reason.contains("defect"));
        assert!(defect.is_none(), "seed {seed}: {defect:?}\n{}", set.to_toml());
        if document.tasks.iter().all(|task| task.response_time_ns.is_none()) {
            continue;
        }
        let request = simulate::SimulationRequest::new(set.clone());
        let Ok(simulated) = simulate(&request, &mut ()) else { continue };
        for (facts, seen) in document.tasks.iter().zip(&simulated.document.tasks) {
            let Some(bound) = facts.response_time_ns.filter(|_| shares(&facts.name)) else {
                continue;
            };
            bounded += 1;
            feasible += u64::from(facts.verdict == Verdict::Feasible);
            let longest = seen.max_response_ns.unwrap_or(0);
            assert!(
                longest <= bound,
                "seed {seed}: '{}' {longest} > {bound}\n{}",
                facts.name,
                set.to_toml()
            );
            assert!(
                facts.verdict != Verdict::Feasible || seen.missed + seen.lost == 0,
                "seed {seed}"
            );
        }
    }
    assert!(bounded > 30 && feasible > 20, "{bounded} bounded, {feasible} feasible");
}

/// By hand: 4 ms, and what each program uses before the job of 4 ms is done.
#[test]
fn what_a_background_thread_may_take_is_bounded() {
    // Steps, loops of the phase and of the program, the bound in ms.
    let cases = [
        // The file does not say who ends the wait, so nothing says how often.
        (&["suspend b", "run 1ms"][..], None, None, None),
        (&["run 1ms", "suspend b"], Some(3), None, None),
        (&["suspend b", "run 1ms"], Some(1), Some(1), Some(5)),
        (&["suspend b", "sleep 3ms", "run 1ms"], None, None, Some(6)),
        (&["sleep 100ms", "run 1ms"], None, None, Some(5)),
        (&["sleep 3ms", "run 1ms"], None, None, Some(6)),
        (&["run 1ms"], Some(1), Some(1), Some(5)),
        (&["run 1ms"], Some(1), Some(2), Some(6)),
        (&["run 1ms"], None, None, None),
        (&["wait c m", "run 1ms"], None, None, None),
    ];
    for (steps, of_phase, of_program, bound) in cases {
        let mut set = TaskSet::new(vec![Task::new("a", us(4_000), us(6_000))]);
        set.tasks[0].policy = Some(Policy::Other(0));
        let steps: Vec<ProgramStep> = steps.iter().map(|step| step.parse().unwrap()).collect();
        let phase = Phase { name: String::new(), loops: of_phase, policy: None, cpus: None, steps };
        let program = Program { loops: of_program, phases: vec![phase] };
        set.background =
            vec![Background { name: "b".to_owned(), policy: None, cpus: None, program }];
        let document = check(&set, &CheckRequest::default()).unwrap();
        let found = document.tasks[0].response_time_ns.map(|ns| ns / 1_000_000);
        assert_eq!(found, bound, "{:?}: {document:?}", set.background);
        assert_eq!(document.verdict == Verdict::Feasible, bound.is_some());
        let premise = document.assumptions.iter().any(|text| text.contains("no program but"));
        assert_eq!(premise, bound.is_some(), "{:?}", document.assumptions);
        // A thread that never sleeps is simulated, and the miss is seen.
        let said = document.tasks[0].reason.contains("background thread 'b'");
        assert_eq!(bound.is_none(), said || document.verdict == Verdict::Infeasible);
    }
}

/// A thread that a record saw, but of which it did not see what wakes it: it waits, and then has a job longer than the task's
/// deadline. Ordinary threads of any class and nice value hold each other up, real-time ones those that are not above them.
#[test]
fn a_task_that_a_background_thread_may_hold_up_has_no_verdict() {
    use Policy::{Batch, Deadline, Fifo, Idle, Other, RoundRobin};
    let ordinary = [Other(0), Other(5), Other(-20), Other(19), Batch, Idle];
    let urgent = [Fifo(40), RoundRobin(40), Fifo(50), RoundRobin(50), Deadline];
    let level = |policy| match policy {
        Fifo(priority) | RoundRobin(priority) => u32::from(priority),
        Deadline => u32::MAX,
        _ => 0,
    };
    let steps = || ["suspend b", "run 30ms"].iter().map(|step| step.parse().unwrap()).collect();
    let tasks = ordinary.into_iter().chain([Fifo(45), RoundRobin(50)]);
    let others = || ordinary.into_iter().chain(urgent);
    for (own, other) in tasks.flat_map(|own| others().map(move |other| (own, other))) {
        let mut set = TaskSet::new(vec![Task::new("a", us(2_000), us(20_000))]);
        set.tasks[0].policy = Some(own);
        let (name, policy) = ("b".to_owned(), Some(other));
        let phase =
            Phase { name: String::new(), loops: None, policy: None, cpus: None, steps: steps() };
        let program = Program { loops: None, phases: vec![phase] };
        set.background = vec![Background { name, policy, cpus: None, program }];
        let request = CheckRequest { sensitivity: true, growth: true, ..CheckRequest::default() };
        let document = check(&set, &request).unwrap();
        let may_wait = level(other) >= level(own);
        let verdict = if may_wait { Verdict::Unknown } else { Verdict::Feasible };
        assert_eq!(document.verdict, verdict, "{own:?} beside {other:?}: {document:?}");
        assert_eq!(document.tasks[0].response_time_ns.is_none(), may_wait, "{own:?} {other:?}");
        let row = &document.sensitivity.as_ref().unwrap()[0];
        assert_eq!(row.largest_wcet_ns.is_none(), may_wait, "{own:?} {other:?}: {row:?}");
    }
}

/// A phase without an end is repeated, what stands behind it never comes.
#[test]
fn phases_without_an_end_are_the_last() {
    let phase = |loops, steps: &[&str]| {
        let steps = steps.iter().map(|step| step.parse().unwrap()).collect();
        Phase { name: String::new(), loops, policy: None, cpus: None, steps }
    };
    let phases = vec![
        phase(Some(2), &["run 3ns", "sleep 1ns"]),
        phase(None, &["run 5ns", "sleep 7ns", "run 1ns", "sleep 2ns"]),
        phase(Some(1), &["run 1s"]),
    ];
    let found = demand(&Program { loops: None, phases });
    assert_eq!(found, Some(Demand { once: 6, each: Some((6, 9)) }));
}
