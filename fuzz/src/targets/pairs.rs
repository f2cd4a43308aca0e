//! Two programs that must agree, on inputs that are orders to both.

use std::collections::BTreeMap;

use hourglass_queue::reference::SortedList;
use hourglass_queue::{Handle, Heap, PriorityStructure, Queue, RedBlackTree, TimeoutWheel};
use hourglass_sched::effort::StepLimit;
use hourglass_sched::fixed_priority::{self, Sections, TimeModel};
use hourglass_sched::{Analysis, Task, TaskSet, checker, edf};
use hourglass_sim::{
    self as sim, ArrivalPattern, Class, CostModel, Jitter, NullMonitor, NullSink, OverrunPolicy,
    Preemption, SimSettings, Sink, SinkDetail, Slice, System, Thread,
};
use hourglass_time::{Instant, Sim, Span};

use super::no_examples;
use crate::{Answer, Target};

/// Numbers taken from an input, 0 when it is over.
struct Orders<'a>(&'a [u8]);

impl Orders<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + u64::from(self.next().unwrap_or(0)) % (high - low + 1)
    }

    fn ns(&mut self) -> i64 {
        let (kind, value) = (self.between(0, 255), self.between(0, 255));
        let value = match kind {
            0..=127 => return value as i64 % 16 * 10 - 40,
            _ => (value as i64) << (kind % 57),
        };
        if kind % 2 == 0 { value } else { value.saturating_neg() }
    }
}

/// A long input is no better than several short ones.
const MOST_ORDERS: usize = 400;

fn queues(bytes: &[u8]) -> Answer {
    let (a, b, c) = (play::<Heap>(bytes), play::<RedBlackTree>(bytes), play::<SortedList>(bytes));
    assert_eq!(a, c, "the heap and the list");
    assert_eq!(b, c, "the tree and the list");
    c.iter().fold(c.len() as u64, |sum, line| sum ^ u64::from(line.len() as u32))
}

fn play<B: PriorityStructure>(bytes: &[u8]) -> Vec<String> {
    let mut orders = Orders(bytes);
    let mut queue: Queue<Sim, u64, B> = Queue::new();
    let mut handles: Vec<Handle> = Vec::new();
    let mut now: Instant<Sim> = Instant::ZERO;
    let mut rows = Vec::new();
    while let Some(order) = orders.next().filter(|_| rows.len() < MOST_ORDERS) {
        let at = orders.between(0, 255) as usize % handles.len().max(1);
        let line = match (order % 8, handles.get(at).copied()) {
            (0 | 1, _) | (_, None) => {
                let made = queue.create(rows.len() as u64);
                handles.extend(made.ok());
                format!("{made:?}")
            }
            (2 | 3, Some(handle)) => {
                let (after, slack) = (Span::from_nanos(orders.ns()), Span::from_nanos(orders.ns()));
                format!("{:?}", queue.arm(handle, now.saturating_add(after), slack))
            }
            (4, Some(handle)) => format!("{:?}", queue.cancel(handle)),
            (5, Some(handle)) => format!("{:?}", queue.remove(handle)),
            _ => {
                now = now.saturating_add(Span::from_nanos(orders.ns()));
                let mut fired = Vec::new();
                while let Some(one) = queue.pop_expired(now) {
                    assert!(one.expiry <= now, "{one:?} fired at {now:?}");
                    fired.push(one);
                }
                format!("{fired:?}")
            }
        };
        rows.push(format!("{line} {:?} {} {}", queue.next_expiry(), queue.armed(), queue.timers()));
    }
    rows
}

pub(super) const QUEUE: Target = Target {
    name: "queue",
    purpose: "queues of timers: heap, tree and sorted list agree",
    examples: || {
        vec![vec![
            0, 0, 0, 0, 2, 0, 1, 5, 0, 0, 2, 1, 1, 3, 0, 1, 6, 0, 1, 9, 4, 0, 5, 1, 6, 0, 200, 3,
        ]]
    },
    start: || Box::new(queues),
};

/// A timeout that was armed: when it expires, and by when the wheel promises to fire it.
type Promise = (Handle, Instant<Sim>, Instant<Sim>);

fn wheel(bytes: &[u8]) -> Answer {
    let mut orders = Orders(bytes);
    let granularity = Span::from_nanos(1 << orders.between(0, 30));
    let mut now: Instant<Sim> = Instant::from_nanos(orders.ns());
    let Ok(mut wheel) = TimeoutWheel::<Sim, u64>::new(granularity, now) else { return 0 };
    let mut armed: BTreeMap<u64, Promise> = BTreeMap::new();
    let mut fired = 0;
    for _ in 0..MOST_ORDERS {
        let Some(order) = orders.next() else { break };
        let key = orders.between(0, 15);
        match order % 4 {
            0 | 1 => {
                let expiry = now.saturating_add(Span::from_nanos(orders.ns()));
                let from = wheel.next_expiry().unwrap_or(Instant::MAX).min(now);
                let handle = match armed.get(&key) {
                    Some((handle, ..)) => *handle,
                    None => wheel.create(key).expect("memory for a timeout"),
                };
                assert_eq!(wheel.arm_at(handle, now, expiry), Ok(()));
                let delay = expiry.saturating_since(from).max(Span::ZERO);
                let late = Span::from_nanos(delay.nanos() / 15).saturating_add(wheel.granularity());
                armed.insert(key, (handle, expiry, expiry.max(now).saturating_add(late)));
            }
            2 => {
                if let Some((handle, ..)) = armed.remove(&key) {
                    assert_eq!(wheel.remove(handle), Ok(key));
                }
            }
            _ => {
                now = now.saturating_add(Span::from_nanos(orders.ns().saturating_abs()));
                while let Some(one) = wheel.pop_expired(now) {
                    let key = wheel.remove(one.handle).expect("a fired one lives on");
                    let (_, expiry, _) = armed.remove(&key).expect("only armed ones fire");
                    assert!(expiry <= now && one.expiry == expiry, "{one:?} at {now:?}");
                    fired += 1;
                }
                assert!(
                    armed.values().all(|(_, _, latest)| *latest > now),
                    "one is late at {now:?}: {armed:?}"
                );
            }
        }
        assert_eq!(wheel.armed(), armed.len());
    }
    fired << 8 | armed.len() as u64
}

pub(super) const WHEEL: Target = Target {
    name: "wheel",
    purpose: "the wheel of timeouts keeps what it promises: never early, late by its share at most",
    examples: || vec![vec![10, 0, 0, 0, 1, 200, 7, 0, 2, 150, 9, 3, 0, 200, 8, 2, 1, 3, 0, 250, 9]],
    start: || Box::new(wheel),
};

const TIME: TimeModel = TimeModel::Discrete;
const HORIZON: u64 = 1_500;
const EFFORT: StepLimit = StepLimit::with_steps(60_000);

/// Analyses against their checkers, against the simulator, and (in debug builds, by themselves) against their twin.
fn analysis(bytes: &[u8]) -> Answer {
    let mut orders = Orders(bytes);
    let sections =
        if orders.between(0, 1) == 0 { Sections::Preemptive } else { Sections::NonPreemptive };
    let mut tasks = Vec::new();
    for _ in 0..orders.between(1, 5) {
        let period = orders.between(2, 100);
        let cost = orders.between(1, period.min(30));
        let Ok(task) = Task::new(cost, period, orders.between(cost, 250)) else { continue };
        let jitter = orders.between(0, 255).saturating_sub(128);
        tasks.push(task.with_jitter(jitter).with_priority(orders.between(2, 6) as u32));
    }
    if tasks.is_empty() {
        return 0;
    }
    let set = TaskSet::new(tasks);
    let fixed = fixed_priority::analyse_within(&set, sections, TIME, EFFORT);
    assert_eq!(checker::fixed_priority(&set, sections, TIME, &fixed), Ok(()), "{set:?}");
    let by_deadline = edf::response_times_within(&set, sections, TIME, EFFORT);
    assert_eq!(checker::edf(&set, sections, TIME, &by_deadline), Ok(()), "{set:?}");
    let mut bounded = 0;
    for (deadlines, found) in [(false, &fixed), (true, &by_deadline)] {
        let system = system(&set, sections, deadlines, &mut orders);
        let outcome =
            sim::run(&system, SimSettings::until(HORIZON)).expect("a system that makes sense");
        bounded = bounded * 8 + within(found, &outcome, &set);
    }
    bounded * 8 + set.len() as u64
}

fn within(found: &Analysis, outcome: &sim::SimOutcome, set: &TaskSet) -> u64 {
    let mut bounded = 0;
    for (task, thread) in found.tasks.iter().zip(&outcome.threads) {
        let Some(bound) = task.outcome.response() else { continue };
        let arrival = thread.max_response.unwrap_or(0);
        let release = thread.max_response_from_release.unwrap_or(0);
        assert!(
            arrival <= bound.from_arrival && release <= bound.from_release,
            "{arrival}, {release} over {bound:?}: {set:?}"
        );
        bounded += 1;
    }
    bounded
}

fn system(set: &TaskSet, sections: Sections, by_deadline: bool, orders: &mut Orders<'_>) -> System {
    let mut system = System::new(1);
    for task in set.tasks() {
        let mut thread =
            Thread::periodic(task.cost(), task.period()).with_deadline(task.deadline());
        thread = match by_deadline {
            true => thread.with_class(Class::Edf),
            false => thread.with_priority(task.priority()),
        };
        if sections == Sections::NonPreemptive {
            thread.preemption = Preemption::None;
        }
        let (period, offset) = (task.period(), orders.between(0, 200));
        thread.arrivals = ArrivalPattern::Sporadic { offset, period, extra: orders.between(0, 40) };
        thread.jitter = Jitter::Random(task.jitter());
        system.threads.push(thread);
    }
    system
}

pub(super) const ANALYSIS: Target = Target {
    name: "analysis",
    purpose: "response times against checker, twin and simulator",
    examples: || {
        vec![
            vec![0, 1, 6, 2, 8, 128, 1, 31, 16, 33, 128, 2],
            vec![1, 2, 8, 3, 9, 140, 1, 12, 3, 20, 128, 1, 20, 4, 60, 130, 3],
        ]
    },
    start: || Box::new(analysis),
};

#[derive(Default)]
struct SliceLog(Vec<Slice>);

impl Sink for SliceLog {
    fn interest(&self) -> SinkDetail {
        SinkDetail::Slices
    }

    fn ran(&mut self, slice: Slice) {
        self.0.push(slice);
    }

    fn event(&mut self, _: u64, _: sim::Event) {}

    fn reached(&mut self, _: u64) -> bool {
        true
    }
}

/// `run` takes the fast path where it can, `run_with` never does.
fn simulation(bytes: &[u8]) -> Answer {
    let mut orders = Orders(bytes);
    let cpus = orders.between(1, 3) as u32;
    let by_deadline = orders.between(0, 255);
    let settings = SimSettings::until(orders.between(0, 255) * 4).with_seed(orders.between(0, 255));
    let settings = match orders.between(0, 9) {
        0 => settings.with_most_events(orders.between(1, 60)),
        _ => settings,
    };
    let mut system = System::new(cpus);
    for priority in 0..orders.between(1, 8) as u32 {
        let cpu = orders.between(0, u64::from(cpus) - 1) as u32;
        let class =
            if by_deadline & 1 << cpu != 0 { Class::Edf } else { Class::Fifo(priority / 2) };
        let period = orders.between(2, 60);
        let cost = match orders.between(0, 2) {
            0 => CostModel::Worst(orders.between(1, period)),
            1 => CostModel::Listed((0..3).map(|_| orders.between(1, period)).collect()),
            _ => CostModel::Drawn {
                times: "uniform:1ns,9ns".parse().expect("execution times"),
                at_most: 8,
            },
        };
        let arrivals = ArrivalPattern::Periodic { offset: orders.between(0, 50), period };
        let late =
            if orders.between(0, 1) == 0 { OverrunPolicy::Skip } else { OverrunPolicy::Queue };
        let jitter = match orders.between(0, 3) {
            0 => Jitter::Worst(orders.between(0, 90)),
            _ => Jitter::None,
        };
        let mut thread = Thread::new(class, arrivals, cost, orders.between(1, 120));
        (thread.late, thread.jitter) = (late, jitter);
        system.threads.push(thread.on(&[cpu]));
    }
    let quick = sim::run(&system, settings);
    let engine = sim::run_with(&system, settings, &mut NullSink, &mut NullMonitor);
    assert_eq!(quick, engine, "{system:?}");
    let (mut one, mut other) = (SliceLog::default(), SliceLog::default());
    let quick = sim::run_to(&system, settings, &mut one);
    assert_eq!(quick, sim::run_with(&system, settings, &mut other, &mut NullMonitor), "{system:?}");
    assert_eq!(one.0, other.0, "{system:?}");
    match quick {
        Ok(outcome) => outcome
            .threads
            .iter()
            .fold(3, |sum, thread| sum * 4 + thread.max_response.map_or(0, |r| r % 3 + 1)),
        Err(error) => crate::answer(1, &error.to_string()),
    }
}

pub(super) const SIMULATION: Target = Target {
    name: "simulation",
    purpose: "the simulator's fast path against its engine",
    examples: no_examples,
    start: || Box::new(simulation),
};
