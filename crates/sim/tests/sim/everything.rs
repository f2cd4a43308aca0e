//! Everything at once, at random: nothing panics, hangs or gets lost, and what must not matter does
//! not.

use hourglass_dice::Dice;
use hourglass_sim::{
    self as sim, ArrivalPattern, Charge, Class, CostModel, CpuGate, Jitter, MachineView, Mark,
    MarkAction, Monitor, OrderList, OverrunPolicy, Preemption, ServerKind, ServerRank,
    SimLockProtocol, SimServer, SimSettings, System, Thread, Throttling, run_with,
};
use hourglass_tasks::Fraction;

use crate::support::{Record, system};

const HORIZON: u64 = 400;

fn pick<T: Copy>(dice: &mut Dice, from: &[T]) -> T {
    from[dice.between(0, from.len() as u64 - 1) as usize]
}

fn class(dice: &mut Dice) -> Class {
    let priority = dice.between(1, 4) as u32;
    let all = [
        Class::Edf,
        Class::Fifo(priority),
        Class::Fifo(priority),
        Class::RoundRobin(priority),
        Class::Fair(0),
        Class::Fair(-5),
        Class::Idle,
    ];
    pick(dice, &all)
}

fn thread(dice: &mut Dice, position: usize) -> Thread {
    let (period, offset) = (dice.between(5, 60), dice.between(0, 30));
    let arrivals = match dice.between(0, 5) {
        0 => ArrivalPattern::Always { offset },
        1 => ArrivalPattern::Sporadic { offset, period, extra: dice.between(0, 9) },
        2 => ArrivalPattern::Burst { offset, distances: vec![0, 2, 3], period },
        3 => ArrivalPattern::Listed(vec![offset, offset, offset + 7]),
        _ => ArrivalPattern::Periodic { offset, period },
    };
    let cost = dice.between(1, 12);
    let mut thread = Thread::new(class(dice), arrivals, CostModel::Worst(cost), period);
    thread.jitter = pick(dice, &[Jitter::None, Jitter::Random(5), Jitter::Worst(7)]);
    thread.tick = pick(dice, &[0, 0, 4]);
    thread.late = pick(dice, &[OverrunPolicy::Queue, OverrunPolicy::Skip]);
    let limited = Preemption::Limited { longest: 3, last: 1 };
    let full = Preemption::Full;
    thread.preemption =
        pick(dice, &[full, full, full, Preemption::None, Preemption::Threshold(3), limited]);
    if position > 0 && !thread.is_best_effort() && dice.between(0, 5) == 0 {
        thread.after = vec![dice.between(0, position as u64 - 1) as usize];
    }
    let at = dice.between(0, 5);
    thread.marks = match dice.between(0, 4) {
        0 => vec![Mark { at, action: MarkAction::Suspend(dice.between(1, 9)) }],
        1 => {
            let lock = dice.between(0, 2) as usize;
            let end = at + dice.between(1, 4);
            vec![
                Mark { at, action: MarkAction::Lock(lock) },
                Mark { at: end, action: MarkAction::Unlock(lock) },
            ]
        }
        _ => Vec::new(),
    };
    thread
}

fn server(dice: &mut Dice) -> SimServer {
    use ServerKind::{CbsHard, CbsSoft, Deferrable, Polling, ReserveHard, ReserveSoft, Sporadic};
    let kinds = [CbsHard, CbsSoft, Polling, Deferrable, Sporadic, ReserveHard, ReserveSoft];
    let period = dice.between(4, 40);
    let mut server = SimServer::new(pick(dice, &kinds), dice.between(1, period), period);
    server.deadline = dice.between(server.budget, period);
    server.rank = pick(dice, &[server.rank, ServerRank::Deadline, ServerRank::Priority(2)]);
    server.charge = pick(dice, &[Charge::Time, Charge::Progress]);
    let constant = matches!(server.kind, CbsHard | CbsSoft);
    server.reclaim = constant && server.charge == Charge::Time && dice.between(0, 1) == 0;
    server
}

fn machine(dice: &mut Dice, cpus: u32) -> System {
    let count = dice.between(2, 8) as usize;
    let mut machine = system(cpus, (0..count).map(|position| thread(dice, position)).collect());
    let endless: Vec<bool> = machine.threads.iter().map(Thread::is_best_effort).collect();
    for thread in &mut machine.threads {
        thread.after.retain(|before| !endless[*before]);
        if dice.between(0, 2) == 0 {
            thread.cpus = vec![dice.between(0, u64::from(cpus) - 1) as u32];
        }
    }
    let second = pick(dice, &[SimLockProtocol::Inheritance, SimLockProtocol::Spin]);
    let first = pick(dice, &[SimLockProtocol::Ceiling(4), SimLockProtocol::DeadlineFloor(12)]);
    machine.resources = vec![first, second, SimLockProtocol::Plain];
    machine.servers = (0..dice.between(0, 2)).map(|_| server(dice)).collect();
    for position in 0..machine.servers.len() {
        for _ in 0..2 {
            let member = dice.between(0, count as u64 - 1) as usize;
            machine.threads[member].server = Some(position);
            machine.threads[member].cpus = Vec::new();
        }
    }
    if dice.between(0, 2) == 0 {
        machine.throttling = Some(Throttling { runtime: dice.between(0, 20), period: 20 });
    }
    machine.quantum = 3;
    machine.slice = 4;
    machine
}

/// Cores of two, rates, costs of the kernel.
fn trouble(dice: &mut Dice, machine: &mut System) {
    machine.cores = (0..machine.cpus / 2).map(|core| vec![2 * core, 2 * core + 1]).collect();
    for thread in 0..machine.threads.len() {
        let beside = dice.between(0, machine.threads.len() as u64 - 1) as usize;
        let rate = Fraction::new(dice.between(0, 5), 5 + dice.between(0, 2)).unwrap();
        machine.interference.set(thread, beside, rate);
    }
    machine.overheads.context_switch = dice.between(0, 2);
    machine.overheads.cache_delay = dice.between(0, 1);
    if dice.between(0, 1) == 0 {
        (machine.overheads.tick_period, machine.overheads.tick_cost) = (10, 1);
    }
}

/// Orders at random, but the same each time.
struct Whims(Dice, u64);

impl Monitor for Whims {
    fn on_event(&mut self, view: &dyn MachineView, orders: &mut OrderList<'_>) {
        if view.now() == self.1 {
            return;
        }
        self.1 = view.now();
        let thread = self.0.between(0, 1) as usize;
        match self.0.between(0, 6) {
            0 => orders.gate(0, CpuGate::Closed),
            1 => orders.gate(0, CpuGate::RealTime),
            2 | 3 => orders.gate(0, CpuGate::Open),
            4 => orders.stop(thread),
            5 => orders.spend(0, 1),
            _ => orders.resume(thread),
        }
        orders.wake_at(0, view.now() + self.0.between(1, 20));
    }
}

fn check(seed: u64, machine: &System, outcome: &sim::SimOutcome, record: &Record) {
    for cpu in 0..machine.cpus {
        let on = record.on(cpu);
        assert!(on.windows(2).all(|pair| pair[0].2 <= pair[1].1), "seed {seed}: {machine:?}");
        let busy: u64 = on.iter().map(|(_, start, end)| end - start).sum();
        let counted = outcome.cpus[cpu as usize];
        assert_eq!(busy, counted.busy, "seed {seed}: {machine:?}");
        assert!(busy + counted.overhead <= HORIZON, "seed {seed}: {machine:?}");
    }
    for (at, thread) in outcome.threads.iter().enumerate() {
        let mut own: Vec<_> = record.slices.iter().filter(|s| s.thread == at).collect();
        own.sort_by_key(|slice| slice.start);
        assert!(own.windows(2).all(|pair| pair[0].end <= pair[1].start), "seed {seed}");
        let received: u64 = own.iter().map(|s| s.end - s.start).sum();
        assert_eq!(received, thread.received, "seed {seed}, thread {at}: {machine:?}");
        assert!(thread.progress <= received, "seed {seed}, thread {at}: {machine:?}");
        assert_eq!(thread.responses.count(), thread.jobs);
        let sim::CostModel::Worst(cost) = machine.threads[at].cost else { panic!() };
        if !machine.threads[at].is_best_effort() {
            let open = thread.unfinished;
            assert_eq!(thread.released, thread.jobs + open, "seed {seed}, thread {at}");
            let whole = thread.jobs * cost;
            assert!(
                (whole..=whole + cost).contains(&thread.progress),
                "seed {seed}, thread {at}: {} for {} jobs: {machine:?}",
                thread.progress,
                thread.jobs
            );
        }
    }
    for (server, outcome) in machine.servers.iter().zip(&outcome.servers) {
        // At most a budget in each period, and one more at the edges.
        let periods = HORIZON / server.period + 2;
        let hard = server.kind == ServerKind::ReserveHard || server.kind == ServerKind::Polling;
        if hard && server.charge == Charge::Time {
            assert!(outcome.received <= periods * server.budget, "seed {seed}: {machine:?}");
        }
    }
}

#[test]
fn nothing_gets_lost() {
    for seed in 0..2_000 {
        let mut dice = Dice::new(seed);
        let cpus = dice.between(1, 4) as u32;
        let mut machine = machine(&mut dice, cpus);
        if dice.between(0, 1) == 0 {
            trouble(&mut dice, &mut machine);
        }
        let settings = SimSettings::until(HORIZON).with_seed(seed).with_most_events(1_000_000);
        let mut record = Record::default();
        let run = |record: &mut Record| match seed % 3 {
            0 => run_with(&machine, settings, record, &mut Whims(Dice::new(seed), u64::MAX)),
            _ => run_with(&machine, settings, record, &mut sim::NullMonitor),
        };
        let outcome = run(&mut record).unwrap_or_else(|e| panic!("seed {seed}: {e}: {machine:?}"));
        check(seed, &machine, &outcome, &record);
        let mut again = Record::default();
        assert_eq!(run(&mut again).as_ref(), Ok(&outcome), "seed {seed}");
        assert_eq!(again, record, "seed {seed}");
        if seed % 3 > 0 {
            assert_eq!(sim::run(&machine, settings), Ok(outcome), "seed {seed}");
        }
    }
}

/// CPU 1 is closed for ever.
struct Closed;

impl Monitor for Closed {
    fn on_event(&mut self, _: &dyn MachineView, orders: &mut OrderList<'_>) {
        orders.gate(1, CpuGate::Closed);
    }
}

/// Two CPUs of which one is closed are one CPU: choosing among several agrees with choosing for one.
#[test]
fn a_closed_cpu_is_none() {
    for seed in 0..500 {
        let mut dice = Dice::new(seed);
        let mut one = machine(&mut dice, 1);
        for thread in &mut one.threads {
            thread.cpus = Vec::new();
        }
        for server in &mut one.servers {
            server.reclaim = false;
        }
        let mut two = one.clone();
        two.cpus = 2;
        let settings = SimSettings::until(HORIZON).with_seed(seed);
        let alone = sim::run(&one, settings).unwrap();
        let beside = run_with(&two, settings, &mut Record::default(), &mut Closed).unwrap();
        assert_eq!(alone.threads, beside.threads, "seed {seed}: {one:?}");
        assert_eq!(alone.servers, beside.servers, "seed {seed}: {one:?}");
    }
}
