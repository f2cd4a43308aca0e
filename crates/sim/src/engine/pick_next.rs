//! Who is more urgent than whom, and who gets which CPU.
//!
//! Owns: the order of candidates, and the choice of CPUs for them. A thread takes a CPU that it may
//! use, in the order of urgency; none is moved to make room for another (weak affinities, Gujarati,
//! Cerqueira and Brandenburg 2013). Where threads of a domain may use all of its CPUs, the most
//! urgent ones run. Must not: change what runs.

use super::super::system::SimLockProtocol;
use super::super::thread::{Class, Preemption};
use super::SimState;
use super::fair::Sums;
use super::monitor::CpuGate;
use super::queue::ThreadRank;
use super::state::CpuDomain;

/// No other thread may take its CPU.
pub(super) const HELD: u8 = 0;
/// The band of absolute deadlines.
pub(super) const DEADLINE: u8 = 1;
/// The band of fixed priorities.
pub(super) const PRIORITY: u8 = 2;
/// The band of fair shares.
pub(super) const FAIR: u8 = 3;

/// How urgent something is: the smaller comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PriorityKey {
    pub(super) band: u8,
    /// The absolute deadline, or the priority counted downwards.
    pub(super) level: u64,
    /// Among equals.
    pub(super) place: i128,
}

/// A thread that may run. Of one server, its own urgency decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    pub(super) urgency: PriorityKey,
    /// The first thread of equals; for a server the first of its threads.
    first: usize,
    inner: PriorityKey,
    pub(super) thread: usize,
}

impl PriorityKey {
    fn priority(priority: u32, turn: u64) -> PriorityKey {
        let level = u64::from(u32::MAX - priority);
        PriorityKey { band: PRIORITY, level, place: i128::from(turn) }
    }

    fn deadline(due: u64, running: bool) -> PriorityKey {
        PriorityKey { band: DEADLINE, level: due, place: i128::from(!running) }
    }
}

impl<const TELL: bool> SimState<TELL> {
    /// A ready thread as a candidate; `None` if it may not run now.
    fn candidate(&self, thread: usize, sums: Sums) -> Option<Candidate> {
        let runner = &self.runners[thread];
        if runner.stopped {
            return None;
        }
        let mut found = self.by_itself(thread, sums)?;
        if let Some(lock) = runner.holds {
            self.boost(&mut found, lock, sums);
            for lock in self.outer_locks(thread) {
                self.boost(&mut found, *lock, sums);
            }
        }
        if runner.held {
            let held = PriorityKey { band: HELD, level: 0, place: 0 };
            // Where the budget has ended in a section, this goes on before the other threads of the server: one that
            // spins for its lock would use up every budget.
            found.inner = held;
            if runner.cpu.is_some() {
                found.urgency = held;
            }
        }
        Some(found)
    }

    /// A thread as a candidate, without what it inherits; `None` if its server may not run.
    fn by_itself(&self, thread: usize, sums: Sums) -> Option<Candidate> {
        let own = self.own_urgency(thread, sums);
        let Some(server) = self.runners[thread].server else {
            return Some(Candidate { urgency: own, first: thread, inner: own, thread });
        };
        if self.is_spent_and_soft(server) {
            let urgency = self.fair_urgency(thread, sums);
            return Some(Candidate { urgency, first: thread, inner: own, thread });
        }
        let keeper = &self.servers[server];
        if keeper.throttled || keeper.remaining_budget == 0 {
            return None;
        }
        let urgency = match keeper.server.rank {
            super::super::ServerRank::Deadline => {
                PriorityKey::deadline(keeper.deadline, keeper.cpu.is_some())
            }
            super::super::ServerRank::Priority(priority) => {
                PriorityKey::priority(priority, keeper.turn)
            }
        };
        let first = keeper.threads.first().copied().unwrap_or(thread);
        Some(Candidate { urgency, first, inner: own, thread })
    }

    /// The urgency by class alone.
    fn own_urgency(&self, thread: usize, sums: Sums) -> PriorityKey {
        let runner = &self.runners[thread];
        match runner.class {
            Class::Edf => {
                let due = runner.job.map_or(u64::MAX, |job| job.deadline);
                PriorityKey::deadline(due, runner.cpu.is_some())
            }
            Class::Fifo(priority) | Class::RoundRobin(priority) => {
                let threshold = match runner.preemption {
                    Preemption::Threshold(threshold) if runner.job.is_some_and(|j| j.started) => {
                        threshold
                    }
                    _ => 0,
                };
                PriorityKey::priority(priority.max(threshold), runner.fifo_order)
            }
            Class::Fair(_) | Class::Idle => self.fair_urgency(thread, sums),
        }
    }

    /// Who runs goes on until its slice is over; then the earliest virtual deadline of those that
    /// are eligible.
    fn fair_urgency(&self, thread: usize, sums: Sums) -> PriorityKey {
        let runner = &self.runners[thread];
        let share = &runner.share;
        let begun = runner.cpu.is_some() && share.slice > 0 && share.slice < self.slice;
        let level = if begun { 0 } else { 1 + u64::from(!sums.eligible(share.time)) };
        PriorityKey { band: FAIR, level, place: share.due }
    }

    /// The holder of a lock gets the urgency of the ceiling, or of the threads that it blocks: among all, and among the
    /// threads of its server.
    fn boost(&self, found: &mut Candidate, lock: usize, sums: Sums) {
        let runner = &self.runners[found.thread];
        match self.locks[lock].protocol {
            SimLockProtocol::Ceiling(priority) => {
                let raised = PriorityKey::priority(priority, runner.fifo_order);
                found.urgency = found.urgency.min(raised);
                found.inner = found.inner.min(raised);
            }
            SimLockProtocol::DeadlineFloor(floor) => {
                let due = self.locks[lock].held_since.saturating_add(floor);
                let raised = PriorityKey::deadline(due, runner.cpu.is_some());
                found.inner = found.inner.min(raised);
                // In a server, it is a deadline of its threads.
                if runner.server.is_none() {
                    found.urgency = found.urgency.min(raised);
                }
            }
            SimLockProtocol::Inheritance => {
                // Waiters hold nothing, so that the inheritance goes no further.
                let waiting = self.locks[lock].waiters.iter();
                for most in waiting.filter_map(|waiter| self.by_itself(*waiter, sums)) {
                    found.urgency = found.urgency.min(most.urgency);
                    if self.runners[most.thread].server == runner.server {
                        found.inner = found.inner.min(most.inner);
                    }
                }
            }
            SimLockProtocol::Spin | SimLockProtocol::Plain => {}
        }
    }

    /// The most urgent of some threads.
    pub(super) fn most_urgent(&self, threads: &[usize]) -> Option<usize> {
        let none = Sums::default();
        let candidate = |thread: &usize| self.by_itself(*thread, none);
        threads.iter().filter_map(candidate).min().map(|found| found.thread)
    }

    /// Whether one thread comes before another by class alone, of one server by their own; who came first does not count.
    pub(super) fn is_more_urgent(&self, thread: usize, other: usize) -> bool {
        let none = Sums::default();
        let together = self.runners[thread].server == self.runners[other].server;
        let rank = |thread: usize| {
            let found = self.by_itself(thread, none)?;
            let own = (found.inner.band, found.inner.level);
            Some((found.urgency.band, found.urgency.level, together.then_some(own)))
        };
        match (rank(thread), rank(other)) {
            (Some(own), Some(theirs)) => own < theirs,
            (own, _) => own.is_some(),
        }
    }

    /// Whether a band may run on a CPU.
    fn admits(&self, cpu: usize, band: u8, thread: usize) -> bool {
        let cpu = &self.cpus[cpu];
        let gate = match cpu.gate {
            CpuGate::Open => true,
            CpuGate::RealTime => band != FAIR,
            CpuGate::Closed => false,
        };
        gate && !(cpu.throttled && self.is_counted(thread))
    }

    /// Whether a thread's time counts for throttling: fixed priorities outside servers.
    pub(super) fn is_counted(&self, thread: usize) -> bool {
        let runner = &self.runners[thread];
        self.throttling.is_some()
            && runner.server.is_none()
            && matches!(runner.class, Class::Fifo(_) | Class::RoundRobin(_))
    }

    /// Whether a thread yields to equals after its quantum.
    pub(super) fn takes_turns(&self, thread: usize) -> bool {
        matches!(self.runners[thread].class, Class::RoundRobin(_))
    }

    pub(super) fn choose_one(&self, domain: usize, cpu: usize, sums: Sums) -> Option<usize> {
        let CpuDomain { queue, rekeyed: asked, .. } = &self.domains[domain];
        let may = |rank: ThreadRank, thread| {
            self.has_budget(thread) && (self.open || self.admits(cpu, rank.band(), thread))
        };
        let first = queue.iter().find(|(rank, thread)| may(*rank, *thread));
        let first = first.map(|(_, thread)| thread);
        if asked.is_empty() {
            return first;
        }
        let asked = asked.iter().filter_map(|thread| self.candidate(*thread, sums));
        let asked = asked.filter(|c| self.admits(cpu, c.urgency.band, c.thread));
        let first = first.and_then(|thread| self.candidate(thread, sums));
        first.into_iter().chain(asked).min().map(|c| c.thread)
    }

    /// Whether the most urgent threads of a domain of several CPUs are those that run.
    pub(super) fn all_stay(&self, domain: usize) -> bool {
        let CpuDomain { cpus, queue, rekeyed: asked, .. } = &self.domains[domain];
        let runs = |(_, thread): (_, usize)| {
            let runner = &self.runners[thread];
            // A phase of a script may have changed what it may use.
            runner.cpu.is_some_and(|cpu| runner.mask & (1 << cpu) != 0)
        };
        let plain = self.open && asked.is_empty() && self.servers.is_empty();
        plain && queue.iter().take(cpus.len()).all(runs) && {
            // Else one that runs is not ready any more, or not among the most urgent.
            let busy = cpus.iter().filter(|cpu| self.cpus[**cpu].thread.is_some()).count();
            busy == queue.len().min(cpus.len())
        }
    }

    /// Chooses for a domain of several CPUs: `winners` by CPU of the machine.
    pub(super) fn choose_many(&mut self, domain: usize, sums: Sums) {
        let CpuDomain { queue, rekeyed: asked, whole, .. } = &self.domains[domain];
        if *whole && self.open && asked.is_empty() {
            return self.choose_whole(domain);
        }
        let mut winners = std::mem::take(&mut self.winners);
        if asked.is_empty() {
            let order = queue.iter().filter(|(_, thread)| self.has_budget(*thread));
            let order = order.map(|(rank, thread)| (rank.band(), thread));
            self.spread(domain, order, &mut winners);
            self.winners = winners;
            return;
        }
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.clear();
        let ready = queue.iter().map(|(_, thread)| thread).chain(asked.iter().copied());
        candidates.extend(ready.filter_map(|thread| self.candidate(thread, sums)));
        candidates.sort_unstable();
        let order = candidates.iter().map(|found| (found.urgency.band, found.thread));
        self.spread(domain, order, &mut winners);
        self.candidates = candidates;
        self.winners = winners;
    }

    /// The same where the most urgent threads run, since each may use every CPU: those that have one keep it, the
    /// others take in their order the CPUs that `place_open` says.
    fn choose_whole(&mut self, domain: usize) {
        let CpuDomain { cpus, queue, mask, .. } = &self.domains[domain];
        let (mut staying, mut idle) = (0u128, 0u128);
        self.coming.clear();
        for (_, thread) in queue.iter().take(cpus.len()) {
            match self.runners[thread].cpu {
                Some(cpu) => staying |= 1 << cpu,
                None => self.coming.push(thread),
            }
        }
        let mut free = mask & !staying;
        for cpu in cpus {
            let thread = self.cpus[*cpu].thread;
            idle |= u128::from(thread.is_none()) << *cpu;
            self.winners[*cpu] = thread.filter(|_| staying & (1 << *cpu) != 0);
        }
        for index in 0..self.coming.len() {
            let thread = self.coming[index];
            if let Some(cpu) = self.place_open(thread, free, staying, idle) {
                self.winners[cpu] = Some(thread);
                free &= !(1 << cpu);
            }
        }
    }

    /// Gives the CPUs of a domain to threads in this order, each with its band.
    fn spread(
        &self,
        domain: usize,
        order: impl Iterator<Item = (u8, usize)> + Clone,
        winners: &mut [Option<usize>],
    ) {
        let cpus = &self.domains[domain].cpus;
        let (mut free, mut idle) = (0u128, 0u128);
        for cpu in cpus {
            winners[*cpu] = None;
            free |= 1 << *cpu;
            idle |= u128::from(self.cpus[*cpu].thread.is_none()) << *cpu;
        }
        // CPUs whose threads will probably stay.
        let first = order.clone().take(cpus.len());
        let staying = first.filter_map(|(_, thread)| self.runners[thread].cpu);
        let staying = staying.fold(0u128, |mask, cpu| mask | (1 << cpu));
        for (band, thread) in order {
            if free == 0 {
                break;
            }
            let runner = &self.runners[thread];
            let server = runner.server.filter(|s| !self.is_spent_and_soft(*s));
            let served = |cpu: &usize| {
                winners[*cpu].is_some_and(|other: usize| self.runners[other].server == server)
            };
            if server.is_some() && cpus.iter().any(served) {
                continue;
            }
            let allowed = free & runner.mask;
            let place = match self.open {
                true => self.place_open(thread, allowed, staying, idle),
                false => self.place(band, thread, allowed, staying),
            };
            if let Some(cpu) = place {
                winners[cpu] = Some(thread);
                free &= !(1 << cpu);
            }
        }
    }

    /// The CPU for a candidate: its own, else one whose thread will not stay (its last one, an idle
    /// one, the first), else the first.
    fn place(&self, band: u8, thread: usize, allowed: u128, staying: u128) -> Option<usize> {
        let runner = &self.runners[thread];
        let fits = |cpu: &usize| allowed & (1 << *cpu) != 0 && self.admits(*cpu, band, thread);
        if let Some(own) = runner.cpu.filter(fits) {
            return Some(own);
        }
        let cost = |cpu: &usize| {
            let stays = staying & (1 << *cpu) != 0;
            let other = runner.last_cpu != Some(*cpu);
            (stays, other, self.cpus[*cpu].thread.is_some(), *cpu)
        };
        self.domains[runner.domain].cpus.iter().copied().filter(fits).min_by_key(cost)
    }

    /// The place where every CPU admits every thread.
    fn place_open(&self, thread: usize, allowed: u128, staying: u128, idle: u128) -> Option<usize> {
        let runner = &self.runners[thread];
        let within = |mask: u128, cpu: &usize| mask & (1 << *cpu) != 0;
        if let Some(own) = runner.cpu.filter(|cpu| within(allowed, cpu)) {
            return Some(own);
        }
        let leaving = allowed & !staying;
        let those = if leaving != 0 { leaving } else { allowed };
        if let Some(last) = runner.last_cpu.filter(|cpu| within(those, cpu)) {
            return Some(last);
        }
        let those = if those & idle != 0 { those & idle } else { those };
        (those != 0).then(|| those.trailing_zeros() as usize)
    }
}
