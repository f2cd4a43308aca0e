//! What the kernel costs, limits, refusals, long times.

use hourglass_documents::ExecutionTime;
use hourglass_sim::{
    self as sim, ArrivalPattern, Class, CostModel, Jitter, Mark, MarkAction, OverrunPolicy,
    ServerKind, SimError, SimLockProtocol, SimServer, SimSettings, System, Thread, run_with,
};

use crate::support::{Record, system};

fn once(priority: u32, at: u64, cost: u64) -> Thread {
    Thread::new(
        Class::Fifo(priority),
        ArrivalPattern::Listed(vec![at]),
        CostModel::Worst(cost),
        100,
    )
}

fn traced(system: &System, horizon: u64) -> Vec<(usize, u64, u64)> {
    let mut record = Record::default();
    run_with(system, SimSettings::until(horizon), &mut record, &mut sim::NullMonitor).unwrap();
    record.on(0)
}

#[test]
fn switches_and_cold_caches_take_time() {
    let mut machine = system(1, vec![once(1, 0, 4), once(2, 3, 2)]);
    machine.overheads.context_switch = 1;
    assert_eq!(traced(&machine, 50), [(0, 1, 3), (1, 4, 6), (0, 7, 9)]);
    machine.overheads.cache_delay = 1;
    assert_eq!(traced(&machine, 50), [(0, 1, 3), (1, 4, 6), (0, 7, 10)]);
    let outcome = sim::run(&machine, SimSettings::until(50)).unwrap();
    assert_eq!((outcome.cpus[0].switches, outcome.cpus[0].overhead), (3, 3));
    assert_eq!((outcome.cpus[0].busy, outcome.threads[0].preemptions), (7, 1));
}

/// A job that loses its CPU and gets another at the same instant was not preempted, but its data is
/// where it was: it went on for nothing.
#[test]
fn a_job_that_moves_at_once_has_a_cold_cache() {
    let mut machine = system(2, vec![once(1, 0, 6), once(2, 3, 2).on(&[0])]);
    let done = |machine: &System| {
        let mut record = Record::default();
        run_with(machine, SimSettings::until(50), &mut record, &mut sim::NullMonitor).unwrap();
        record.completions(0)
    };
    assert_eq!(done(&machine), [6]);
    machine.overheads.cache_delay = 1;
    assert_eq!(done(&machine), [7]);
    let outcome = sim::run(&machine, SimSettings::until(50)).unwrap();
    assert_eq!((outcome.threads[0].migrations, outcome.threads[0].preemptions), (1, 0));
}

#[test]
fn ticks_take_time() {
    let mut machine = system(1, vec![once(1, 0, 8)]);
    machine.overheads.tick_period = 5;
    machine.overheads.tick_cost = 1;
    assert_eq!(traced(&machine, 9), [(0, 0, 5), (0, 6, 9)]);
}

/// The same seed gives the same, another one something else; sporadic gaps, jitter and drawn costs.
#[test]
fn a_seed_replays() {
    let times: ExecutionTime = "uniform:1us,9us".parse().unwrap();
    let drawn = CostModel::Drawn { times, at_most: 8_000 };
    let arrivals = ArrivalPattern::Sporadic { offset: 0, period: 10_000, extra: 5_000 };
    let mut thread = Thread::new(Class::Edf, arrivals, drawn, 10_000);
    thread.jitter = Jitter::Random(3_000);
    let machine = system(1, vec![thread.clone(), thread]);
    let run = |seed| sim::run(&machine, SimSettings::until(10_000_000).with_seed(seed)).unwrap();
    assert_eq!(run(7), run(7));
    assert_ne!(run(7).threads, run(8).threads);
    let outcome = run(7);
    assert_ne!(outcome.threads[0], outcome.threads[1], "streams differ by thread");
    // 10 ms / (10 + 2.5) us, and costs of 5 us on average.
    let first = &outcome.threads[0];
    assert!((760..840).contains(&first.jobs), "{}", first.jobs);
    assert!((3_500_000..4_500_000).contains(&first.received), "{}", first.received);
}

#[test]
fn what_is_too_much_is_said() {
    let settings = SimSettings::until(1_000_000).with_most_events(100);
    let machine = system(1, vec![Thread::periodic(1, 2)]);
    let found = sim::run(&machine, settings);
    assert!(matches!(found, Err(SimError::TooManyEvents { events: 100, .. })), "{found:?}");
    let late = system(1, vec![Thread::periodic(1_000_000, 1)]);
    let found = sim::run(&late, SimSettings::until(10_000_000));
    assert!(matches!(found, Err(SimError::Backlog { thread: 0, .. })), "{found:?}");
}

/// Times near 2^64: nothing wraps.
#[test]
fn huge_times_do_not_wrap() {
    let max = u64::MAX;
    let machine = system(1, vec![Thread::periodic(max / 2, max / 2 + 1).with_deadline(max)]);
    let outcome = sim::run(&machine, SimSettings::until(max)).unwrap();
    let first = &outcome.threads[0];
    assert_eq!((first.jobs, first.unfinished, first.missed), (1, 1, 0));
    let edf =
        system(1, vec![Thread::periodic(1, max / 2).with_deadline(max).with_class(Class::Edf)]);
    let found = sim::run(&edf, SimSettings::until(max));
    assert_eq!(found, Err(SimError::Overflow { thread: 0 }));
    let mut server = system(1, vec![once(1, max - 5, 1).in_server(0)]);
    server.servers = vec![SimServer::new(ServerKind::CbsHard, 5, 10)];
    assert_eq!(sim::run(&server, SimSettings::until(max)), Err(SimError::TimeOverflow));
}

fn refused(change: impl Fn(&mut System)) -> SimError {
    let mut machine = system(2, vec![Thread::periodic(1, 10), Thread::periodic(1, 10)]);
    change(&mut machine);
    sim::run(&machine, SimSettings::until(100)).unwrap_err()
}

#[test]
fn nonsense_is_refused() {
    assert_eq!(refused(|m| m.cpus = 0), SimError::Cpus(0));
    assert_eq!(refused(|m| m.threads[0].cpus = vec![2]), SimError::UnknownCpu(2));
    assert_eq!(refused(|m| m.cores = vec![vec![0, 1], vec![1]]), SimError::CoreTwice(1));
    let zero = |what| SimError::Zero { thread: 1, what };
    assert_eq!(refused(|m| m.threads[1].cost = CostModel::Worst(0)), zero("cost"));
    assert_eq!(refused(|m| m.threads[1].deadline = 0), zero("deadline"));
    assert_eq!(refused(|m| m.threads[1] = Thread::periodic(1, 0)), zero("period"));
    let cycle = |m: &mut System| {
        m.threads[0].after = vec![1];
        m.threads[1].after = vec![0];
    };
    assert_eq!(refused(cycle), SimError::Cycle(0));
    let lock = |m: &mut System| {
        m.resources = vec![SimLockProtocol::Plain];
        m.threads[0].marks = vec![Mark { at: 0, action: MarkAction::Unlock(0) }];
    };
    assert_eq!(refused(lock), SimError::Sections(0));
    let server = |m: &mut System| m.servers = vec![SimServer::new(ServerKind::CbsHard, 11, 10)];
    assert_eq!(refused(server), SimError::Server(0));
    assert_eq!(
        refused(|m| m.threads[0].server = Some(0)),
        SimError::Dangling { thread: 0, what: "server" }
    );
    let tick = |m: &mut System| {
        m.overheads.tick_period = 5;
        m.overheads.tick_cost = 5;
    };
    assert_eq!(refused(tick), SimError::Tick);
    let endless = |m: &mut System| {
        m.threads[0] = Thread::best_effort(0);
        m.threads[1].after = vec![0];
    };
    assert_eq!(refused(endless), SimError::Endless(1));
    assert!(OverrunPolicy::default() == OverrunPolicy::Queue);
}
