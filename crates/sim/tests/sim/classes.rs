//! One CPU, other classes than plain priorities, by hand.

use hourglass_sim::{
    self as sim, ArrivalPattern, Class, CostModel, OverrunPolicy, Preemption, SimSettings, Thread,
    Throttling, run_with,
};

use crate::support::{Record, system};

fn traced(system: &sim::System, horizon: u64) -> Record {
    let mut record = Record::default();
    run_with(system, SimSettings::until(horizon), &mut record, &mut sim::NullMonitor).unwrap();
    record
}

fn once(class: Class, at: u64, cost: u64, deadline: u64) -> Thread {
    Thread::new(class, ArrivalPattern::Listed(vec![at]), CostModel::Worst(cost), deadline)
}

/// PARTSim examples/edf/test-rtsim-edf.sh: 10/40 and 60/100.
#[test]
fn edf_runs_as_in_rtsim() {
    let threads = [(10, 40), (60, 100)].map(|(c, t)| Thread::periodic(c, t).with_class(Class::Edf));
    let record = traced(&system(1, threads.to_vec()), 131);
    assert_eq!(record.completions(0), [10, 50, 90, 130]);
    assert_eq!(record.completions(1), [80]);
}

/// sched(7): equal FIFO threads run in the order of release; a preempted one stays first.
#[test]
fn equals_are_served_first_come_first_served() {
    let threads = vec![
        once(Class::Fifo(1), 1, 3, 100),
        once(Class::Fifo(1), 0, 3, 100),
        once(Class::Fifo(2), 2, 2, 100),
    ];
    let record = traced(&system(1, threads), 100);
    assert_eq!(record.on(0), [(1, 0, 2), (2, 2, 4), (1, 4, 5), (0, 5, 8)]);
}

/// sched(7): a thread whose quantum is over goes to the end of the list of its priority.
#[test]
fn round_robin_takes_turns() {
    let threads = vec![once(Class::RoundRobin(1), 0, 5, 99), once(Class::RoundRobin(1), 0, 3, 99)];
    let mut machine = system(1, threads);
    machine.quantum = 2;
    let record = traced(&machine, 100);
    assert_eq!(record.on(0), [(0, 0, 2), (1, 2, 4), (0, 4, 6), (1, 6, 7), (0, 7, 8)]);
}

/// Wang and Saksena 1999: with a threshold of 2 no task of priority 2 preempts a begun job; one of 3 does.
#[test]
fn thresholds_hold_once_a_job_has_begun() {
    let mut low = once(Class::Fifo(1), 0, 4, 99);
    low.preemption = Preemption::Threshold(2);
    let threads = vec![low, once(Class::Fifo(2), 1, 1, 99), once(Class::Fifo(3), 2, 1, 99)];
    let record = traced(&system(1, threads), 100);
    assert_eq!(record.on(0), [(0, 0, 2), (2, 2, 3), (0, 3, 5), (1, 5, 6)]);
}

/// Sections of 3 and a last one of 2: a job of 7 may be preempted at 3 and at 5.
#[test]
fn sections_are_preempted_at_their_ends_only() {
    let mut low = once(Class::Fifo(1), 0, 7, 99);
    low.preemption = Preemption::Limited { longest: 3, last: 2 };
    let urgent = |at| once(Class::Fifo(2), at, 1, 99);
    let threads = vec![low, urgent(1), urgent(5), urgent(8)];
    let record = traced(&system(1, threads), 100);
    assert_eq!(record.on(0), [(0, 0, 3), (1, 3, 4), (0, 4, 6), (2, 6, 7), (0, 7, 9), (3, 9, 10)]);
}

/// sched(7): deadlines before priorities, these before fair shares.
#[test]
fn classes_stand_one_above_the_other() {
    let threads =
        vec![Thread::best_effort(0), once(Class::Fifo(99), 1, 4, 99), once(Class::Edf, 2, 1, 99)];
    let record = traced(&system(1, threads), 10);
    assert_eq!(record.on(0), [(0, 0, 1), (1, 1, 2), (2, 2, 3), (1, 3, 6), (0, 6, 10)]);
}

/// sched(7): a step of nice is a factor of 1.25; five steps are 3.05.
#[test]
fn fair_shares_follow_weights() {
    let threads = [0, 0, 5].map(Thread::best_effort);
    let outcome =
        sim::run(&system(1, threads.to_vec()), SimSettings::until(10_000_000_000)).unwrap();
    let received: Vec<u64> = outcome.threads.iter().map(|thread| thread.received).collect();
    assert_eq!(received.iter().sum::<u64>(), 10_000_000_000);
    // 1024 : 1024 : 336 of 2384, within two slices of 3 ms.
    for (got, weight) in received.iter().zip([1024u64, 1024, 336]) {
        let wanted = 10_000_000_000 * weight / 2384;
        assert!(got.abs_diff(wanted) <= 6_000_000, "{received:?}");
    }
}

/// A thread that slept does not collect more than its lag: Stoica and Abdel-Wahab 1995.
#[test]
fn who_slept_gets_no_more_than_its_share() {
    let mut late = Thread::best_effort(0);
    late.arrivals = ArrivalPattern::Always { offset: 1_000_000_000 };
    let threads = vec![Thread::best_effort(0), late];
    let outcome = sim::run(&system(1, threads), SimSettings::until(2_000_000_000)).unwrap();
    let late = outcome.threads[1].received;
    assert!(late.abs_diff(500_000_000) <= 6_000_000, "{late}");
}

/// sched_rt_runtime_us: of each period priorities get their share, the fair class the rest.
#[test]
fn priorities_are_throttled() {
    let hog = Thread::periodic(1, 1).with_priority(50);
    let mut machine = system(1, vec![hog, Thread::best_effort(0)]);
    machine.threads[0].cost = CostModel::Worst(100_000_000_000);
    machine.threads[0].late = OverrunPolicy::Skip;
    machine.threads[0].arrivals = ArrivalPattern::Listed(vec![0]);
    machine.throttling = Some(Throttling::LINUX);
    let outcome = sim::run(&machine, SimSettings::until(10_000_000_000)).unwrap();
    assert_eq!(outcome.threads[0].received, 9_500_000_000);
    assert_eq!(outcome.threads[1].received, 500_000_000);
    assert_eq!(outcome.cpus[0].throttled, 10);
    machine.throttling = Some(Throttling { runtime: 1_000, period: 1_000 });
    let outcome = sim::run(&machine, SimSettings::until(10_000)).unwrap();
    assert_eq!((outcome.cpus[0].throttled, outcome.threads[0].received), (0, 10_000));
    machine.throttling = Some(Throttling { runtime: 0, period: 1_000 });
    let outcome = sim::run(&machine, SimSettings::until(10_000)).unwrap();
    assert_eq!((outcome.threads[0].received, outcome.threads[1].received), (0, 10_000));
}

/// CONTRACT: a period is lost that never started because an earlier one was still running.
#[test]
fn late_jobs_wait_or_are_lost() {
    let mut thread = Thread::periodic(15, 10);
    let queued = sim::run(&system(1, vec![thread.clone()]), SimSettings::until(60)).unwrap();
    // Done at 15, 30, 45, 60; those that arrive at 40 and 50 are not done, and due at 50 and 60.
    let first = &queued.threads[0];
    assert_eq!((first.jobs, first.missed, first.lost, first.unfinished), (4, 6, 0, 2));
    assert_eq!(first.max_response, Some(30));
    thread.late = OverrunPolicy::Skip;
    let skipped = sim::run(&system(1, vec![thread]), SimSettings::until(60)).unwrap();
    let first = &skipped.threads[0];
    assert_eq!((first.jobs, first.missed, first.lost), (3, 3, 3));
}

/// Jobs of a chain are released when those before them are done; they arrive with the first.
#[test]
fn chains_follow() {
    let mut threads =
        vec![Thread::periodic(2, 10), Thread::periodic(3, 10), Thread::periodic(1, 10)];
    threads[1].after = vec![0];
    threads[2].after = vec![0, 1];
    let record = traced(&system(1, threads.clone()), 20);
    assert_eq!(
        record.on(0),
        [(0, 0, 2), (1, 2, 5), (2, 5, 6), (0, 10, 12), (1, 12, 15), (2, 15, 16)]
    );
    let outcome = sim::run(&system(1, threads), SimSettings::until(20)).unwrap();
    assert_eq!(outcome.threads[2].max_response, Some(6));
    assert_eq!(outcome.threads[2].max_response_from_release, Some(1));
}
