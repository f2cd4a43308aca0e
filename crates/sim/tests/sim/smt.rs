//! Hardware threads of one core: rates, and monitors in the manner of the SMT paper.

use hourglass_sim::slack::{Decision, ProgressRate, SlackReservation};
use hourglass_sim::{
    self as sim, ArrivalPattern, Class, CostModel, CpuGate, MachineView, Monitor, OrderList,
    SimError, SimSettings, System, Thread, run_with,
};
use hourglass_tasks::Fraction;

use crate::support::{Record, system};

fn fraction(above: u64, below: u64) -> Fraction {
    Fraction::new(above, below).unwrap()
}

fn once(class: Class, cost: u64) -> Thread {
    Thread::new(class, ArrivalPattern::Listed(vec![0]), CostModel::Worst(cost), 1_000)
}

/// One core of two CPUs: a real-time thread on CPU 0, others on CPU 1.
fn core(cost: u64, others: Vec<Thread>) -> System {
    let mut threads = vec![once(Class::Fifo(50), cost).on(&[0])];
    threads.extend(others.into_iter().map(|thread| thread.on(&[1])));
    let mut core = system(2, threads);
    core.cores = vec![vec![0, 1]];
    core
}

/// A job at a rate r takes cost / r, rounded up to the next nanosecond once.
#[test]
fn rates_are_exact() {
    for (above, below, done) in [(1, 3, 30), (2, 3, 15), (3, 7, 24), (1, 1, 10)] {
        let mut core = core(10, vec![Thread::best_effort(0)]);
        core.interference.set(0, 1, fraction(above, below));
        let outcome = sim::run(&core, SimSettings::until(100)).unwrap();
        assert_eq!(outcome.threads[0].max_response, Some(done), "{above}/{below}");
        assert_eq!(outcome.threads[0].progress, 10);
    }
    let mut stopped = core(10, vec![Thread::best_effort(0)]);
    stopped.interference.set(0, 1, Fraction::ZERO);
    let outcome = sim::run(&stopped, SimSettings::until(100)).unwrap();
    assert_eq!((outcome.threads[0].progress, outcome.threads[0].received), (0, 100));
    stopped.interference.set(0, 1, fraction(3, 2));
    let refused = SimError::Interference { thread: 0, beside: 1 };
    assert_eq!(sim::run(&stopped, SimSettings::until(100)), Err(refused));
}

/// A rate changes a thousand times within a job; thirds are not lost: 1000 periods of 2 at a third
/// and 1 alone are 5000 thirds.
#[test]
fn nothing_drifts() {
    let neighbour = Thread::periodic(2, 3).with_priority(1);
    let mut core = core(1_000_000, vec![neighbour]);
    core.interference.set(0, 1, fraction(1, 3));
    let outcome = sim::run(&core, SimSettings::until(3_000)).unwrap();
    assert_eq!(outcome.threads[0].progress, 5_000 / 3);
    let mut whole = core.clone();
    whole.threads[0].cost = CostModel::Worst(5_000);
    // 5000 = 3000 periods of 5/3.
    let outcome = sim::run(&whole, SimSettings::until(20_000)).unwrap();
    assert_eq!(outcome.threads[0].max_response, Some(9_000));
}

/// Beside two others rates are multiplied.
#[test]
fn three_on_a_core() {
    let mut core = core(10, vec![Thread::best_effort(0), Thread::best_effort(0)]);
    core.cpus = 3;
    core.cores = vec![vec![0, 1, 2]];
    core.threads[2].cpus = vec![2];
    core.interference.set(0, 1, fraction(1, 2));
    core.interference.set(0, 2, fraction(2, 5));
    let outcome = sim::run(&core, SimSettings::until(100)).unwrap();
    assert_eq!(outcome.threads[0].max_response, Some(50));
}

/// The sibling of CPU 0 is closed to the fair class while thread 0 has a job on it.
struct Disabling;

impl Monitor for Disabling {
    fn on_event(&mut self, view: &dyn MachineView, orders: &mut OrderList<'_>) {
        let gate = if view.running(0) == Some(0) { CpuGate::RealTime } else { CpuGate::Open };
        orders.gate(1, gate);
    }
}

/// The slack of thread 0 is monitored with a timer of variable interval.
struct Slack {
    promise: SlackReservation,
    looks: Vec<u64>,
}

impl Monitor for Slack {
    fn on_event(&mut self, view: &dyn MachineView, orders: &mut OrderList<'_>) {
        let Some(job) = view.job(0) else {
            orders.gate(1, CpuGate::Open);
            orders.cancel(0);
            return;
        };
        let now = view.now();
        if self.looks.last() == Some(&now) {
            return;
        }
        self.looks.push(now);
        match self.promise.decide(now, self.promise.slack(now, job.done)) {
            Decision::RunUntil(next) => orders.wake_at(0, next),
            Decision::Stop => orders.gate(1, CpuGate::Closed),
        }
    }
}

/// SMT paper, Figure 5: 6 of work before 10 with SMT disabled are done at 6; then others run.
#[test]
fn disabling_runs_the_real_time_thread_alone() {
    let mut core = core(6, vec![Thread::best_effort(0)]);
    core.interference.set(0, 1, fraction(1, 2));
    let mut record = Record::default();
    let outcome = run_with(&core, SimSettings::until(10), &mut record, &mut Disabling).unwrap();
    assert_eq!((record.on(0), record.on(1)), (vec![(0, 0, 6)], vec![(1, 6, 10)]));
    assert_eq!(outcome.threads[1].progress, 4);
    let unaware = sim::run(&core, SimSettings::until(20)).unwrap();
    assert_eq!(unaware.threads[0].max_response, Some(12));
}

/// SMT paper, section 3.3 and Figure 4: 6 of work before 10; 2 are done in the first 4, nothing from
/// 4 to 6; slack is 4, 2 and 0; the rest runs alone and is done at 10.
#[test]
fn slack_is_monitored_as_in_the_example() {
    let fast = once(Class::Fifo(2), 4);
    let mut core = core(6, vec![fast, Thread::best_effort(0)]);
    core.interference.set(0, 1, fraction(1, 2));
    core.interference.set(0, 2, Fraction::ZERO);
    let promise = SlackReservation::new(10, 6, ProgressRate::ZERO, 0);
    let mut monitor = Slack { promise, looks: Vec::new() };
    let mut record = Record::default();
    run_with(&core, SimSettings::until(12), &mut record, &mut monitor).unwrap();
    assert_eq!(monitor.looks, [0, 4, 6]);
    assert_eq!(record.completions(0), [10]);
    assert_eq!(record.on(1), [(1, 0, 4), (2, 4, 6), (2, 10, 12)]);
}

/// Gives and takes back at once, for ever.
struct Fickle;

impl Monitor for Fickle {
    fn on_event(&mut self, view: &dyn MachineView, orders: &mut OrderList<'_>) {
        match view.running(1) {
            Some(thread) => orders.stop(thread),
            None => orders.resume(1),
        }
    }
}

#[test]
fn a_monitor_that_never_rests_is_refused() {
    let core = core(6, vec![Thread::best_effort(0)]);
    let mut record = Record::default();
    let found = run_with(&core, SimSettings::until(10), &mut record, &mut Fickle);
    assert_eq!(found.unwrap_err(), SimError::Restless { at: 0 });
}
