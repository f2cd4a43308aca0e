//! Budgets: what spends them, and when they come back.
//!
//! Owns: the rules of each kind of server. Must not: choose among threads.

use super::super::error::SimError;
use super::super::server::{Charge, ServerKind};
use super::super::sink::Event;
use super::SimState;
use super::timers::NEVER;

/// One, with the 20 binary digits behind the point that the kernel gives to bandwidths.
pub(super) const ONE: u64 = 1 << 20;

/// Parts of a sporadic server's budget that are on their way back. Further ones come with the last,
/// that is, later.
const MOST_BACK: usize = 1024;

impl<const TELL: bool> SimState<TELL> {
    /// Whether a soft reserve has spent its budget.
    pub(super) fn is_spent_and_soft(&self, server: usize) -> bool {
        let keeper = &self.servers[server];
        keeper.server.kind == ServerKind::ReserveSoft && keeper.remaining_budget == 0
    }

    /// Units of budget that a ns on a CPU costs.
    pub(super) fn drain(&self, server: usize, cpu: usize) -> u64 {
        let keeper = &self.servers[server];
        if keeper.server.charge == Charge::Progress {
            return self.cpus[cpu].rate;
        }
        if !keeper.server.reclaim {
            return keeper.unit;
        }
        // Documentation/scheduler/sched-deadline.rst, section 2.3: dq = -(max{Ui, (Umax - Uinact -
        // Uextra)} / Umax) dt, rounded up, which takes rather too much than too little. The kernel
        // does so on each CPU; here on a CPU of the domain on average.
        let domain = &self.domains[keeper.domain];
        let cpus = domain.cpus.len() as u64;
        let most = self.most_bandwidth;
        let extra = (most * cpus).saturating_sub(domain.bandwidth);
        let inactive = domain.bandwidth.saturating_sub(domain.active);
        let spare = (inactive + extra) / cpus;
        let active = most.saturating_sub(spare).max(keeper.bandwidth);
        (active * ONE).div_ceil(most).clamp(1, ONE)
    }

    /// A thread of a server has become ready.
    pub(super) fn server_wakes(&mut self, server: usize) -> Result<(), SimError> {
        let turn = self.next_turn();
        let keeper = &mut self.servers[server];
        keeper.ready += 1;
        if keeper.ready > 1 {
            return Ok(());
        }
        keeper.turn = turn;
        match keeper.server.kind {
            ServerKind::CbsHard => self.wake_hard(server)?,
            ServerKind::CbsSoft => self.wake_soft(server)?,
            ServerKind::Sporadic if keeper.remaining_budget > 0 => self.open_use(server)?,
            _ => {}
        }
        self.rank_served(server);
        self.activate(server);
        Ok(())
    }

    /// The last ready thread of a server is not ready any more.
    pub(super) fn server_sleeps(&mut self, server: usize) -> Result<(), SimError> {
        let keeper = &mut self.servers[server];
        keeper.ready -= 1;
        if keeper.ready > 0 {
            return Ok(());
        }
        if keeper.server.kind == ServerKind::Sporadic {
            self.close_use(server)?;
        }
        self.deactivate(server);
        Ok(())
    }

    /// The kernel's rule: a new deadline if the old one is over, or if the budget left is too much
    /// for it. With a deadline before the period, see `update_dl_revised_wakeup` and
    /// `dl_check_constrained_dl`.
    fn wake_hard(&mut self, server: usize) -> Result<(), SimError> {
        let now = self.now;
        let keeper = &self.servers[server];
        if keeper.throttled {
            return Ok(());
        }
        let to_due = keeper.deadline.saturating_sub(now);
        // left / (due - now) > budget / deadline
        let too_much = u128::from(keeper.remaining_budget) * u128::from(keeper.server.deadline)
            > u128::from(to_due) * u128::from(keeper.budget);
        let constrained = keeper.server.deadline < keeper.server.period;
        if keeper.has_deadline && constrained {
            let next = keeper.deadline - keeper.server.deadline;
            let next = next.checked_add(keeper.server.period).ok_or(SimError::TimeOverflow)?;
            if keeper.deadline <= now && now < next {
                return self.wait_for(server, next);
            }
            if keeper.deadline > now && too_much {
                let left = u128::from(keeper.budget) * u128::from(to_due)
                    / u128::from(keeper.server.deadline);
                let left =
                    u64::try_from(left).unwrap_or(keeper.budget).min(keeper.remaining_budget);
                self.servers[server].remaining_budget = left;
                return if left == 0 { self.wait_for(server, next) } else { Ok(()) };
            }
        }
        if !keeper.has_deadline || keeper.deadline <= now || too_much {
            self.assign(server, now, self.servers[server].server.deadline)?;
        }
        Ok(())
    }

    /// Abeni and Buttazzo 1998: left >= (due - now) budget / period asks for a new deadline.
    fn wake_soft(&mut self, server: usize) -> Result<(), SimError> {
        let keeper = &self.servers[server];
        let to_due = keeper.deadline.saturating_sub(self.now);
        let enough = u128::from(keeper.remaining_budget) * u128::from(keeper.server.period)
            >= u128::from(to_due) * u128::from(keeper.budget);
        if !keeper.has_deadline || enough {
            self.assign(server, self.now, self.servers[server].server.period)?;
        }
        Ok(())
    }

    /// Assigns a full budget, with its deadline `within` after `from`.
    fn assign(&mut self, server: usize, from: u64, within: u64) -> Result<(), SimError> {
        let keeper = &mut self.servers[server];
        keeper.deadline = from.checked_add(within).ok_or(SimError::TimeOverflow)?;
        keeper.remaining_budget = keeper.budget;
        keeper.has_deadline = true;
        keeper.throttled = false;
        let (deadline, domain) = (keeper.deadline, keeper.domain);
        self.soil(domain);
        self.reasons.budget = true;
        self.tell(Event::Replenished { server, deadline });
        self.share_again(server);
        self.rank_served(server);
        Ok(())
    }

    /// The server waits for its next period.
    fn wait_for(&mut self, server: usize, until: u64) -> Result<(), SimError> {
        self.servers[server].throttled = true;
        self.timers.set(self.slots.replenish + server, until);
        Ok(())
    }

    pub(super) fn exhaust(&mut self, server: usize) -> Result<(), SimError> {
        let keeper = &mut self.servers[server];
        keeper.outcome.exhausted += u64::from(keeper.ready > 0);
        let (kind, due, inner) = (keeper.server.kind, keeper.deadline, keeper.server);
        let domain = keeper.domain;
        self.soil(domain);
        self.reasons.budget = true;
        self.tell(Event::Exhausted { server });
        match kind {
            ServerKind::CbsHard => {
                let next = (due - inner.deadline).checked_add(inner.period);
                let next = next.ok_or(SimError::TimeOverflow)?;
                self.wait_for(server, next.max(self.now))?;
            }
            ServerKind::CbsSoft => self.assign(server, due, inner.period)?,
            ServerKind::Sporadic => self.close_use(server)?,
            ServerKind::ReserveSoft => self.share_again(server),
            ServerKind::Polling | ServerKind::Deferrable | ServerKind::ReserveHard => {}
        }
        Ok(())
    }

    pub(super) fn replenish(&mut self, server: usize) -> Result<(), SimError> {
        let keeper = &self.servers[server];
        let inner = keeper.server;
        match inner.kind {
            ServerKind::CbsHard => {
                // The period that begins now; its deadline may be over if the server was late.
                let due =
                    keeper.deadline.checked_add(inner.period).ok_or(SimError::TimeOverflow)?;
                let from = if due > self.now { due - inner.deadline } else { self.now };
                self.assign(server, from, inner.deadline)
            }
            ServerKind::CbsSoft => Ok(()),
            ServerKind::Sporadic => self.come_back(server),
            _ => {
                let next = self.now.checked_add(inner.period).unwrap_or(NEVER);
                self.timers.set(self.slots.replenish + server, next);
                self.assign(server, self.now, inner.deadline)
            }
        }
    }

    /// Polling servers without a ready thread lose their budgets.
    pub(super) fn empty_polling(&mut self, domain: usize) {
        for index in 0..self.domains[domain].polling.len() {
            let server = self.domains[domain].polling[index];
            let keeper = &mut self.servers[server];
            if keeper.ready == 0 {
                keeper.remaining_budget = 0;
            }
        }
    }

    /// A sporadic server comes into use.
    fn open_use(&mut self, server: usize) -> Result<(), SimError> {
        let now = self.now;
        let keeper = &mut self.servers[server];
        keeper.uses.push_back((now, keeper.remaining_budget));
        let due = now.checked_add(keeper.server.deadline);
        keeper.deadline = due.ok_or(SimError::TimeOverflow)?;
        self.rank_served(server);
        Ok(())
    }

    /// What a sporadic server has used comes back a period after it came into use. What came back
    /// while the server was in use is in use from then on, and not before: else a delayed server
    /// takes more than its budget in a period (Stanovich, Baker, Wang and Gonzalez Harbour 2010,
    /// section 3.2).
    fn close_use(&mut self, server: usize) -> Result<(), SimError> {
        let slot = self.slots.replenish + server;
        let keeper = &mut self.servers[server];
        let had = keeper.uses.iter().map(|(_, amount)| *amount).sum::<u64>();
        let mut used = had.saturating_sub(keeper.remaining_budget);
        while let Some((since, amount)) = keeper.uses.pop_front() {
            let part = amount.min(used);
            if part == 0 {
                continue;
            }
            used -= part;
            let at = since.checked_add(keeper.server.period).ok_or(SimError::TimeOverflow)?;
            let full = keeper.replenishments.len() >= MOST_BACK;
            match keeper.replenishments.back_mut() {
                Some(last) if full => *last = (at, last.1 + part),
                _ => keeper.replenishments.push_back((at, part)),
            }
        }
        if let Some((first, _)) = keeper.replenishments.front() {
            let first = (*first).max(self.now);
            self.timers.set(slot, first);
        }
        Ok(())
    }

    /// Part of a sporadic server's budget comes back.
    fn come_back(&mut self, server: usize) -> Result<(), SimError> {
        let slot = self.slots.replenish + server;
        let (now, keeper) = (self.now, &mut self.servers[server]);
        let Some((_, amount)) = keeper.replenishments.pop_front() else { return Ok(()) };
        let was_empty = keeper.remaining_budget == 0;
        let left = (keeper.remaining_budget + amount).min(keeper.budget);
        if !keeper.uses.is_empty() {
            keeper.uses.push_back((now, left - keeper.remaining_budget));
        }
        keeper.remaining_budget = left;
        if let Some((next, _)) = keeper.replenishments.front() {
            let next = (*next).max(now);
            self.timers.set(slot, next);
        }
        if was_empty && self.servers[server].ready > 0 {
            self.open_use(server)?;
        }
        let keeper = &self.servers[server];
        let (deadline, domain) = (keeper.deadline, keeper.domain);
        self.soil(domain);
        self.reasons.budget = true;
        self.tell(Event::Replenished { server, deadline });
        Ok(())
    }

    /// The threads of a soft reserve join the fair ones, or leave them.
    fn share_again(&mut self, server: usize) {
        if self.servers[server].server.kind == ServerKind::ReserveSoft {
            for index in 0..self.servers[server].threads.len() {
                let thread = self.servers[server].threads[index];
                self.update_share(thread);
            }
        }
    }

    /// A server counts as active from now on.
    fn activate(&mut self, server: usize) {
        self.timers.set(self.slots.zero_lag + server, NEVER);
        let keeper = &mut self.servers[server];
        if keeper.bandwidth > 0 && !std::mem::replace(&mut keeper.active, true) {
            let domain = keeper.domain;
            self.domains[domain].active += keeper.bandwidth;
            self.soil(domain);
        }
    }

    /// A server that sleeps counts until its lag is zero: at due - left period / budget.
    fn deactivate(&mut self, server: usize) {
        let keeper = &self.servers[server];
        if keeper.bandwidth == 0 || !keeper.active {
            return;
        }
        let lead = u128::from(keeper.remaining_budget) * u128::from(keeper.server.period);
        let lead = lead / u128::from(keeper.budget);
        let at = keeper.deadline.saturating_sub(u64::try_from(lead).unwrap_or(u64::MAX));
        if at > self.now {
            self.timers.set(self.slots.zero_lag + server, at);
        } else {
            self.end_of_lag(server);
        }
    }

    /// A sleeping server leaves its bandwidth to others.
    pub(super) fn end_of_lag(&mut self, server: usize) {
        let keeper = &mut self.servers[server];
        if keeper.ready == 0 && std::mem::take(&mut keeper.active) {
            let domain = keeper.domain;
            self.domains[domain].active -= keeper.bandwidth;
            self.soil(domain);
        }
    }
}
