//! No simulated response exceeds its bound where tasks share locks, ask for them several times, or
//! suspend themselves.

use hourglass_dice::Dice;
use hourglass_sched::blocking::{self, LockProtocol, Usage};
use hourglass_sched::edf;
use hourglass_sched::fixed_priority::{self, Sections, TimeModel};
use hourglass_sched::task::CriticalSection;
use hourglass_sched::{Task, TaskSet};
use hourglass_sim::{self as sim, ArrivalPattern, Class, Mark, MarkAction, SimSettings, Thread};

use crate::simulated::support::{system, threads};

const SETS: u64 = 400;

/// Tasks with different priorities, locks of up to two resources, each asked for up to three times.
struct Locking {
    set: TaskSet,
    marks: Vec<Vec<Mark>>,
}

impl Locking {
    fn random(dice: &mut Dice) -> Locking {
        let count = dice.between(2, 4);
        let mut found = Locking { set: TaskSet::new(Vec::new()), marks: Vec::new() };
        let mut tasks = Vec::new();
        for priority in 1..=count {
            let period = dice.between(20, 90);
            let cost = dice.between(2, (period / (count + 1)).max(3));
            let (mut marks, mut sections) = (Vec::new(), Vec::new());
            let mut at = dice.between(0, 1);
            for _ in 0..dice.between(0, 3) {
                let (resource, length) = (dice.between(0, 1) as usize, dice.between(1, cost));
                if at + length > cost {
                    break;
                }
                marks.push(Mark { at, action: MarkAction::Lock(resource) });
                marks.push(Mark { at: at + length, action: MarkAction::Unlock(resource) });
                sections.push(CriticalSection { resource, count: 1, length });
                at += length + dice.between(1, 2);
            }
            found.marks.push(marks);
            let deadline = dice.between(cost, period);
            let task = Task::new(cost, period, deadline).unwrap();
            tasks.push(task.with_priority(priority as u32).with_critical_sections(&sections));
        }
        found.set = TaskSet::new(tasks);
        found
    }

    /// The longest response of each task, of several offsets.
    fn longest(
        &self,
        class: Option<Class>,
        protocols: &[LockProtocol],
        dice: &mut Dice,
    ) -> Vec<u64> {
        let mut longest = vec![0; self.set.len()];
        for _ in 0..6 {
            let mut all: Vec<Thread> = threads(&self.set);
            for (thread, marks) in all.iter_mut().zip(&self.marks) {
                thread.marks.clone_from(marks);
                thread.class = class.unwrap_or(thread.class);
                thread.arrivals.set_offset(dice.between(0, 40));
            }
            let mut machine = system(1, all);
            machine.resources =
                (0..2).map(|resource| self.rule(protocols[resource], resource)).collect();
            let outcome = sim::run(&machine, SimSettings::until(2_000)).unwrap();
            for (longest, thread) in longest.iter_mut().zip(&outcome.threads) {
                *longest = (*longest).max(thread.max_response.unwrap_or(0));
            }
        }
        longest
    }

    fn rule(&self, protocol: LockProtocol, resource: usize) -> sim::SimLockProtocol {
        let uses = |task: &&Task| {
            task.critical_sections().iter().any(|section| section.resource == resource)
        };
        let priorities = self.set.tasks().iter().filter(uses).map(Task::priority);
        match protocol {
            LockProtocol::Ceiling(_) => {
                sim::SimLockProtocol::Ceiling(priorities.max().unwrap_or(0))
            }
            LockProtocol::Inheritance => sim::SimLockProtocol::Inheritance,
            LockProtocol::Spin => sim::SimLockProtocol::Spin,
            LockProtocol::Plain => sim::SimLockProtocol::Plain,
        }
    }
}

const PROTOCOLS: [LockProtocol; 3] =
    [LockProtocol::Ceiling(None), LockProtocol::Inheritance, LockProtocol::Spin];

/// Sha, Rajkumar and Lehoczky 1990: also for jobs that ask several times; of ceilings and spinning, which
/// both begin before the window, only the longer one counts.
#[test]
fn blocking_bounds_hold_however_often_a_job_asks() {
    let mut blocked = 0;
    for seed in 0..SETS {
        let mut dice = Dice::new(seed);
        let locking = Locking::random(&mut dice);
        for first in PROTOCOLS {
            for second in PROTOCOLS {
                let protocols = vec![first, second];
                let usage = Usage::new(locking.set.clone(), protocols.clone()).unwrap();
                let set = usage.with_blocking(TimeModel::Continuous).unwrap();
                let bounds =
                    fixed_priority::analyse(&set, Sections::Preemptive, TimeModel::Continuous);
                let longest = locking.longest(None, &protocols, &mut dice);
                for (task, longest) in longest.into_iter().enumerate() {
                    let Some(bound) = bounds.from_arrival()[task] else { continue };
                    assert!(
                        longest <= bound,
                        "seed {seed}, task {task}: {longest} simulated, bound {bound}, \
                         {protocols:?}: {:?}",
                        locking.set
                    );
                    blocked += u64::from(set.tasks()[task].blocking() > 0);
                }
            }
        }
    }
    assert!(blocked > 1_000, "{blocked}");
}

/// Baker 1991, Baruah 2006: the same under EDF, where a job waits for those that are due later.
#[test]
fn blocking_bounds_hold_under_edf() {
    let mut blocked = 0;
    for seed in 0..SETS {
        let mut dice = Dice::new(seed);
        let locking = Locking::random(&mut dice);
        for protocol in [LockProtocol::Inheritance, LockProtocol::Spin] {
            let protocols = vec![protocol; 2];
            let usage = Usage::new(locking.set.clone(), protocols.clone()).unwrap();
            let blocking = |(at, task): (usize, &Task)| {
                task.plain().with_blocking(
                    blocking::edf::blocking(&usage, at, TimeModel::Continuous).unwrap(),
                )
            };
            let set: Vec<Task> = locking.set.tasks().iter().enumerate().map(blocking).collect();
            let set = TaskSet::new(set);
            let bounds = edf::response_times(&set, Sections::Preemptive, TimeModel::Continuous);
            let longest = locking.longest(Some(Class::Edf), &protocols, &mut dice);
            for (task, longest) in longest.into_iter().enumerate() {
                let Some(bound) = bounds.from_arrival()[task] else { continue };
                assert!(
                    longest <= bound,
                    "seed {seed}, task {task}: {longest} simulated, bound {bound}, {protocol:?}: {:?}",
                    locking.set
                );
                blocked += u64::from(set.tasks()[task].blocking() > 0);
            }
        }
    }
    assert!(blocked > 300, "{blocked}");
}

/// Guenzel, von der Brueggen and Chen 2022: jobs that suspend themselves anywhere, once or twice.
#[test]
fn bounds_with_suspension_hold_under_edf() {
    let mut accepted = 0;
    for seed in 0..SETS {
        let mut dice = Dice::new(seed);
        let mut tasks = Vec::new();
        for _ in 0..dice.between(2, 4) {
            let period = dice.between(20, 60);
            let cost = dice.between(2, period / 5);
            let deadline = dice.between(period / 2, period);
            let suspension = dice.between(0, period / 3);
            tasks.push(Task::new(cost, period, deadline).unwrap().with_suspension(suspension));
        }
        let set = TaskSet::in_order(tasks);
        let bounds = edf::suspension::response_times(&set).from_arrival();
        for _ in 0..8 {
            let mut all = threads(&set);
            for (thread, task) in all.iter_mut().zip(set.tasks()) {
                thread.class = Class::Edf;
                let (offset, period) = (dice.between(0, 40), task.period());
                let extra = dice.between(0, 5);
                thread.arrivals = ArrivalPattern::Sporadic { offset, period, extra };
                let first = dice.between(0, task.suspension());
                let at = dice.between(0, task.cost() - 1);
                let rest = task.suspension() - first;
                let marks = [(at / 2, first), (at / 2 + 1, rest)];
                let marks = marks.into_iter().filter(|(_, time)| *time > 0);
                let mark = |(at, time)| Mark { at, action: MarkAction::Suspend(time) };
                thread.marks = marks.map(mark).collect();
            }
            let settings = SimSettings::until(3_000).with_seed(seed);
            let outcome = sim::run(&system(1, all), settings).unwrap();
            for (task, (thread, bound)) in outcome.threads.iter().zip(&bounds).enumerate() {
                let Some(bound) = bound else { continue };
                let longest = thread.max_response.unwrap_or(0);
                assert!(longest <= *bound, "seed {seed}, task {task}: {longest}, {bound}: {set:?}");
                accepted += 1;
            }
        }
    }
    assert!(accepted > 1_000, "{accepted}");
}
