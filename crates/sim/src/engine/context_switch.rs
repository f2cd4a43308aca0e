//! CPUs change hands.
//!
//! Owns: giving CPUs to those chosen, what the kernel takes for it, rates of progress, ticks and
//! throttling. Must not: choose.

use super::super::sink::{Event, Slice};
use super::super::thread::Preemption;
use super::SimState;
use super::SinkEvent;
use super::timers::NEVER;

impl<const TELL: bool> SimState<TELL> {
    pub(super) fn dispatch(&mut self, domain: usize) {
        self.bring_up(domain);
        #[cfg(debug_assertions)]
        self.assert_ranks(domain);
        if !self.domains[domain].polling.is_empty() {
            self.empty_polling(domain);
        }
        let sums = match self.domains[domain].sharing {
            0 => super::fair::Sums::default(),
            _ => self.sums(domain),
        };
        if let [cpu] = self.domains[domain].cpus[..] {
            let winner = self.choose_one(domain, cpu, sums);
            self.dispatch_one(cpu, winner);
        } else if self.all_stay(domain) {
            self.refresh_changed(domain);
        } else {
            self.choose_many(domain, sums);
            self.dispatch_many(domain);
        }
    }

    fn dispatch_one(&mut self, cpu: usize, winner: Option<usize>) {
        if self.cpus[cpu].thread == winner {
            if !self.goes_on_as_before(cpu) {
                self.refresh(cpu);
            }
            return;
        }
        self.take(cpu);
        if let Some(thread) = winner {
            self.dispatch_thread(cpu, thread);
        }
        self.reasons.dispatch = true;
        self.count_preemptions();
        if !self.rates.all_full() {
            self.refresh_core(cpu);
        }
        self.refresh(cpu);
    }

    fn dispatch_many(&mut self, domain: usize) {
        let count = self.domains[domain].cpus.len();
        let mut changed = false;
        for index in 0..count {
            let cpu = self.domains[domain].cpus[index];
            if self.cpus[cpu].thread != self.winners[cpu] {
                changed = true;
                self.take(cpu);
            }
        }
        for index in 0..count {
            let cpu = self.domains[domain].cpus[index];
            if let (None, Some(thread)) = (self.cpus[cpu].thread, self.winners[cpu]) {
                self.dispatch_thread(cpu, thread);
            }
        }
        if changed {
            self.reasons.dispatch = true;
            self.count_preemptions();
        }
        if changed && !self.rates.all_full() {
            for index in 0..count {
                let cpu = self.domains[domain].cpus[index];
                self.refresh_core(cpu);
                self.refresh(cpu);
            }
        } else {
            self.refresh_changed(domain);
        }
    }

    /// When something is to be done on those CPUs of a domain where that may have moved.
    fn refresh_changed(&mut self, domain: usize) {
        for index in 0..self.domains[domain].cpus.len() {
            let cpu = self.domains[domain].cpus[index];
            if !self.goes_on_as_before(cpu) {
                self.refresh(cpu);
            }
        }
    }

    /// Whether nothing has happened to a CPU and its thread that moves when something is to be done on it.
    #[inline]
    fn goes_on_as_before(&self, cpu: usize) -> bool {
        let cpu = &self.cpus[cpu];
        !cpu.stale && !cpu.counted && !cpu.shared && cpu.payer.is_none()
    }

    fn take(&mut self, cpu: usize) {
        let Some(thread) = self.cpus[cpu].thread.take() else { return };
        self.end_slice(cpu, thread);
        self.cpus[cpu].last = Some(thread);
        self.cpus[cpu].stale = true;
        let runner = &mut self.runners[thread];
        runner.cpu = None;
        if runner.ready && runner.job.is_some_and(|job| job.started) {
            self.displaced.push(thread);
        }
        if let Some(server) = runner.server
            && self.servers[server].cpu == Some(cpu)
        {
            self.servers[server].cpu = None;
        }
        self.rank_moved(thread);
    }

    /// A thread that lost its CPU and got no other was preempted.
    fn count_preemptions(&mut self) {
        while let Some(thread) = self.displaced.pop() {
            let runner = &mut self.runners[thread];
            if runner.cpu.is_none() {
                runner.outcome.preemptions += 1;
                if let Some(job) = &mut runner.job {
                    job.preempted = true;
                }
            }
        }
    }

    fn dispatch_thread(&mut self, at: usize, thread: usize) {
        let is_scripted = self.scripts.has(thread);
        let cpu = &mut self.cpus[at];
        let runner = &mut self.runners[thread];
        let mut cost = 0u64;
        if cpu.last != Some(thread) {
            cpu.outcome.switches += 1;
            cost = self.overheads.context_switch;
        }
        let moved = runner.last_cpu.is_some_and(|last| last != at);
        runner.outcome.migrations += u64::from(moved);
        if let Some(job) = &mut runner.job {
            // What a job that moves at once leaves in a cache does not move with it.
            let is_cold = (job.preempted && cpu.last != Some(thread)) || (job.started && moved);
            // A job that has executed nothing has nothing in a cache; what a script executed before this step is not known.
            if is_cold && (is_scripted || job.remaining < job.cost) {
                job.reload = self.overheads.cache_delay;
            }
            job.preempted = false;
        }
        cpu.thread = Some(thread);
        cpu.stale = true;
        cpu.accounted_until = cpu.accounted_until.max(self.now);
        cpu.slice_from = cpu.accounted_until;
        cpu.slice_job = runner.job.map_or(0, |job| job.number);
        runner.cpu = Some(at);
        runner.last_cpu = Some(at);
        self.rank_moved(thread);
        self.spend(at, cost);
    }

    /// The kernel uses a CPU for `time`, ns.
    pub(super) fn spend(&mut self, at: usize, time: u64) {
        if time == 0 {
            return;
        }
        if let Some(thread) = self.cpus[at].thread {
            self.end_slice(at, thread);
        }
        let cpu = &mut self.cpus[at];
        cpu.stale = true;
        cpu.accounted_until = cpu.accounted_until.max(self.now).saturating_add(time);
        cpu.outcome.overhead = cpu.outcome.overhead.saturating_add(time);
        cpu.slice_from = cpu.accounted_until;
    }

    /// A thread has run on a CPU from the slice's begin until now.
    pub(super) fn end_slice(&mut self, at: usize, thread: usize) {
        if TELL {
            let cpu = &mut self.cpus[at];
            let (start, job) = (cpu.slice_from, cpu.slice_job);
            if start < self.now {
                cpu.slice_from = self.now;
                let cpu = u32::try_from(at).unwrap_or(u32::MAX);
                let slice = Slice { cpu, thread, job, start, end: self.now };
                self.sink_events.push(SinkEvent::Ran(slice));
            }
        }
    }

    /// Rates of a core after one of its CPUs has changed hands.
    fn refresh_core(&mut self, cpu: usize) {
        for index in 0..=self.cpus[cpu].siblings.len() {
            let at = match index {
                0 => cpu,
                _ => self.cpus[cpu].siblings[index - 1],
            };
            let Some(thread) = self.cpus[at].thread else { continue };
            let siblings = self.cpus[at].siblings.iter();
            let beside = siblings.filter_map(|sibling| self.cpus[*sibling].thread);
            let rate = self.rates.rate_of(thread, beside);
            self.cpus[at].rate = rate;
            if at != cpu {
                self.refresh(at);
            }
        }
    }

    /// Computes the charge of a CPU's thread, and its end.
    fn refresh(&mut self, at: usize) {
        self.cpus[at].stale = false;
        let Some(thread) = self.cpus[at].thread else {
            self.ends[at] = NEVER;
            let cpu = &mut self.cpus[at];
            (cpu.payer, cpu.counted, cpu.shared) = (None, false, false);
            return;
        };
        let (mut payer, mut drain) = (None, 0);
        if let Some(server) = self.runners[thread].server {
            payer = Some(server).filter(|server| !self.is_spent_and_soft(*server));
            drain = payer.map_or(0, |payer| self.drain(payer, at));
            self.servers[server].cpu = payer.map(|_| at);
        }
        let (counted, shared) = (self.is_counted(thread), self.runners[thread].share.counts);
        let cpu = &mut self.cpus[at];
        (cpu.payer, cpu.drain, cpu.counted, cpu.shared) = (payer, drain, counted, shared);
        self.start_job(thread);
        self.ends[at] = self.next_end(at);
    }

    /// A job has a CPU: from now on thresholds hold, and sections are not preempted.
    fn start_job(&mut self, thread: usize) {
        let runner = &mut self.runners[thread];
        if let Some(job) = &mut runner.job {
            job.started = true;
        }
        if runner.preemption == Preemption::Full {
            return;
        }
        if matches!(runner.preemption, Preemption::None | Preemption::Limited { .. }) {
            runner.held = true;
        }
        self.rank_again(thread);
    }

    pub(super) fn tick(&mut self) {
        self.bring_up_all();
        for cpu in 0..self.cpus.len() {
            self.spend(cpu, self.overheads.tick_cost);
            let domain = self.cpus[cpu].domain;
            self.soil(domain);
        }
        let next = self.now.checked_add(self.overheads.tick_period).unwrap_or(NEVER);
        self.timers.set(self.slots.tick, next);
    }

    /// Fixed priorities have had their share of a CPU.
    pub(super) fn throttle(&mut self, at: usize) {
        let cpu = &mut self.cpus[at];
        cpu.throttled = true;
        cpu.outcome.throttled += 1;
        let domain = cpu.domain;
        self.soil(domain);
        self.tell(Event::Throttled { cpu: u32::try_from(at).unwrap_or(u32::MAX) });
    }

    /// A period of throttling begins on all CPUs.
    pub(super) fn unthrottle(&mut self) {
        let Some(throttling) = self.throttling else { return };
        self.bring_up_all();
        for at in 0..self.cpus.len() {
            self.cpus[at].used = 0;
            self.cpus[at].stale = true;
            let domain = self.cpus[at].domain;
            self.soil(domain);
            if std::mem::take(&mut self.cpus[at].throttled) {
                self.tell(Event::Unthrottled { cpu: u32::try_from(at).unwrap_or(u32::MAX) });
            }
        }
        let next = self.now.checked_add(throttling.period).unwrap_or(NEVER);
        self.timers.set(self.slots.throttle, next);
    }
}
