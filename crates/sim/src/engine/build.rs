//! From a system to a machine that stands at time 0.
//!
//! Owns: domains, slots, first timers. Must not: run.

use std::collections::VecDeque;

use super::super::check;
use super::super::error::SimError;
use super::super::interference::Rates;
use super::super::outcome::{ServerOutcome, ThreadOutcome};
use super::super::script;
use super::super::server::{Charge, ServerKind, SimServer};
use super::super::settings::SimSettings;
use super::super::source::{ExecutionTimes, Releases};
use super::super::system::{System, Throttling};
use super::super::thread::{Class, Mark, Thread};
use super::fair::Share;
use super::monitor::CallReasons;
use super::queue::QueueState;
use super::script::Scripts;
use super::servers::ONE;
use super::state::{Chain, Cpu, CpuDomain, Lock, ServerState, ThreadState};
use super::timers::{NEVER, TimerHeap};
use super::{SimState, Slots};

impl<const TELL: bool> SimState<TELL> {
    /// A machine at time 0, on which nothing has happened.
    pub(super) fn build(
        system: &System,
        settings: SimSettings,
        timers: usize,
    ) -> Result<SimState<TELL>, SimError> {
        let most = system.cores.iter().map(Vec::len).max().unwrap_or(1);
        let rates = Rates::new(&system.interference, system.threads.len(), most)?;
        let (home, domains) = domains(system);
        let slots = Slots::new(system, timers);
        let mut machine = SimState {
            now: 0,
            horizon: settings.horizon,
            events: 0,
            max_events: settings.max_events,
            runners: runners(system, settings.seed, &home, rates.scale)?,
            cpus: cpus(system, &home, rates.scale),
            servers: keepers(system, &home, rates.scale)?,
            locks: locks(system),
            scripts: Scripts::of(system),
            domains,
            timers: TimerHeap::new(slots.end),
            slots,
            rates,
            overheads: system.overheads,
            // All of a period is no limit.
            throttling: system.throttling.filter(|limit| limit.runtime < limit.period),
            most_bandwidth: most_bandwidth(system.throttling.unwrap_or(Throttling::LINUX)),
            quantum: system.quantum,
            slice: system.slice,
            turns: 0,
            reasons: CallReasons::default(),
            expired: vec![false; timers],
            dirty: 0,
            apart: false,
            open: system.throttling.is_none(),
            ends: vec![NEVER; system.cpus as usize],
            sink_events: Vec::new(),
            tells_events: false,
            candidates: Vec::with_capacity(system.threads.len()),
            winners: vec![None; system.cpus as usize],
            displaced: Vec::new(),
            coming: Vec::new(),
        };
        machine.apart = machine.rates.all_full()
            && machine.locks.is_empty()
            && machine.scripts.is_empty()
            && timers == 0;
        machine.see_masks();
        machine.join_servers();
        machine.set_first_timers();
        Ok(machine)
    }

    /// Which CPUs the domains have, and whether each of their threads may use all of them.
    fn see_masks(&mut self) {
        let whole = self.servers.is_empty() && self.scripts.is_empty();
        for domain in &mut self.domains {
            domain.mask = domain.cpus.iter().fold(0, |mask, cpu| mask | (1 << *cpu));
            domain.whole = whole;
        }
        for runner in &self.runners {
            let domain = &mut self.domains[runner.domain];
            domain.whole &= runner.mask == domain.mask;
        }
    }

    fn join_servers(&mut self) {
        for at in 0..self.servers.len() {
            let keeper = &self.servers[at];
            if keeper.threads.is_empty() {
                continue;
            }
            let domain = &mut self.domains[keeper.domain];
            domain.bandwidth += keeper.bandwidth;
            if keeper.server.kind == ServerKind::Polling {
                domain.polling.push(at);
            }
        }
    }

    fn set_first_timers(&mut self) {
        for thread in 0..self.runners.len() {
            if let Some(start) = self.scripts.start(thread) {
                self.timers.set(self.slots.wake + thread, start);
                continue;
            }
            let runner = &mut self.runners[thread];
            if runner.chain.done.is_empty() {
                runner.coming = runner.releases.next();
                let at = runner.coming.map_or(NEVER, |coming| coming.release);
                self.timers.set(self.slots.release + thread, at);
            }
        }
        for server in 0..self.servers.len() {
            let constant = matches!(
                self.servers[server].server.kind,
                ServerKind::CbsHard | ServerKind::CbsSoft | ServerKind::Sporadic
            );
            if !constant {
                self.timers.set(self.slots.replenish + server, 0);
            }
        }
        if self.overheads.tick_period > 0 && self.overheads.tick_cost > 0 {
            self.timers.set(self.slots.tick, self.overheads.tick_period);
        }
        if let Some(throttling) = self.throttling {
            self.timers.set(self.slots.throttle, throttling.period);
        }
    }
}

impl Slots {
    fn new(system: &System, timers: usize) -> Slots {
        let (servers, threads) = (system.servers.len(), system.threads.len());
        let zero_lag = servers;
        let throttle = zero_lag + servers;
        let wake = throttle + 1;
        let release = wake + threads;
        let tick = release + threads;
        let monitor = tick + 1;
        Slots {
            replenish: 0,
            zero_lag,
            throttle,
            wake,
            release,
            tick,
            monitor,
            end: monitor + timers,
        }
    }
}

/// Which domain each CPU belongs to, and the domains: CPUs that one thread may use belong together.
fn domains(system: &System) -> (Vec<usize>, Vec<CpuDomain>) {
    let count = system.cpus as usize;
    let mut home: Vec<usize> = (0..count).collect();
    for thread in &system.threads {
        let mask = check::mask(thread, system.cpus) | script::mask(thread);
        let mut members = (0..count).filter(|cpu| mask & (1 << *cpu) != 0).map(|cpu| home[cpu]);
        let Some(first) = members.next() else { continue };
        let others: Vec<usize> = members.filter(|other| *other != first).collect();
        for place in &mut home {
            if others.contains(place) {
                *place = first;
            }
        }
    }
    let mut numbers: Vec<usize> = Vec::new();
    let mut domains: Vec<CpuDomain> = Vec::new();
    for (cpu, place) in home.iter_mut().enumerate() {
        let number = numbers.iter().position(|other| other == place).unwrap_or_else(|| {
            numbers.push(*place);
            domains.push(CpuDomain::default());
            domains.len() - 1
        });
        *place = number;
        domains[number].cpus.push(cpu);
    }
    (home, domains)
}

fn home_of(thread: &Thread, system: &System, home: &[usize]) -> usize {
    let mask = check::mask(thread, system.cpus);
    home.get(mask.trailing_zeros() as usize).copied().unwrap_or(0)
}

fn runners(
    system: &System,
    seed: u64,
    home: &[usize],
    scale: u64,
) -> Result<Vec<ThreadState>, SimError> {
    let mut runners = Vec::with_capacity(system.threads.len());
    for (position, thread) in system.threads.iter().enumerate() {
        runners.push(runner(system, position, thread, seed, home, scale)?);
    }
    for (position, thread) in system.threads.iter().enumerate() {
        for (place, before) in thread.after.iter().enumerate() {
            runners[*before].chain.successors.push((position, place));
        }
    }
    Ok(runners)
}

fn runner(
    system: &System,
    position: usize,
    thread: &Thread,
    seed: u64,
    home: &[usize],
    scale: u64,
) -> Result<ThreadState, SimError> {
    let stream = thread.stream.unwrap_or(position as u64);
    let scaled = |mark: &Mark| {
        let at = mark.at.checked_mul(scale).ok_or(SimError::Overflow { thread: position });
        at.map(|at| Mark { at, ..*mark })
    };
    let nice = match thread.class {
        Class::Fair(nice) => Some(nice),
        Class::Idle => None,
        _ => Some(0),
    };
    Ok(ThreadState {
        class: thread.class,
        mask: check::mask(thread, system.cpus),
        domain: home_of(thread, system, home),
        server: thread.server,
        endless: thread.is_best_effort(),
        deadline: thread.deadline,
        preemption: thread.preemption,
        late: thread.late,
        marks: thread.marks.iter().map(scaled).collect::<Result<_, _>>()?,
        releases: Releases::new(thread, stream, seed),
        costs: ExecutionTimes::new(thread, stream, seed),
        coming: None,
        chain: Chain { done: vec![0; thread.after.len()], ..Chain::default() },
        number: 0,
        waiting: VecDeque::new(),
        job: None,
        stand: QueueState::Away,
        ready: false,
        stopped: false,
        held: false,
        spinning: false,
        cpu: None,
        last_cpu: None,
        fifo_order: 0,
        quantum: system.quantum,
        share: Share::new(nice, system.slice),
        holds: None,
        work: 0,
        outcome: ThreadOutcome::default(),
    })
}

fn cpus(system: &System, home: &[usize], scale: u64) -> Vec<Cpu> {
    let cpu = |(number, domain): (u32, &usize)| Cpu {
        domain: *domain,
        siblings: system.siblings(number).iter().map(|cpu| *cpu as usize).collect(),
        rate: scale,
        stale: true,
        ..Cpu::default()
    };
    (0..).zip(home).map(cpu).collect()
}

fn keepers(system: &System, home: &[usize], scale: u64) -> Result<Vec<ServerState>, SimError> {
    let servers = system.servers.iter().enumerate();
    servers.map(|(position, server)| keeper(system, position, server, home, scale)).collect()
}

fn keeper(
    system: &System,
    position: usize,
    server: &SimServer,
    home: &[usize],
    scale: u64,
) -> Result<ServerState, SimError> {
    let threads: Vec<usize> = (0..system.threads.len())
        .filter(|thread| system.threads[*thread].server == Some(position))
        .collect();
    let domain = threads.first().map_or(0, |at| home_of(&system.threads[*at], system, home));
    let unit = match (server.charge, server.reclaim) {
        (Charge::Progress, _) => scale,
        (Charge::Time, true) => ONE,
        (Charge::Time, false) => 1,
    };
    let full = server.budget.checked_mul(unit).ok_or(SimError::TimeOverflow)?;
    let constant = matches!(server.kind, ServerKind::CbsHard | ServerKind::CbsSoft);
    let bandwidth = u128::from(server.budget) * u128::from(ONE) / u128::from(server.period);
    // The bandwidth is at most ONE, since a budget is at most its period.
    let bandwidth = if constant { u64::try_from(bandwidth).unwrap_or(ONE) } else { 0 };
    let left = if constant || server.kind == ServerKind::Sporadic { full } else { 0 };
    Ok(ServerState {
        server: *server,
        domain,
        threads,
        unit,
        budget: full,
        remaining_budget: left,
        deadline: 0,
        throttled: false,
        ready: 0,
        cpu: None,
        turn: 0,
        has_deadline: false,
        bandwidth,
        active: false,
        uses: VecDeque::new(),
        replenishments: VecDeque::new(),
        outcome: ServerOutcome::default(),
    })
}

fn locks(system: &System) -> Vec<Lock> {
    let free = |protocol: &_| Lock {
        protocol: *protocol,
        holder: None,
        held_since: 0,
        waiters: Vec::new(),
        woken_waiters: Vec::new(),
    };
    system.resources.iter().map(free).collect()
}

/// What deadlines may use of a CPU, in 2^-20.
fn most_bandwidth(limit: Throttling) -> u64 {
    let share = u128::from(limit.runtime) * u128::from(ONE) / u128::from(limit.period.max(1));
    u64::try_from(share.clamp(1, u128::from(ONE))).unwrap_or(ONE)
}
