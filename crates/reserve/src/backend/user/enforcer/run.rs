//! One reservation while it is in force: a look, and what follows of it.
//!
//! Owns: [`Run`]. Must not: wait; decide, which [`Budget`] and `Sharing` do.

use std::io;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use hourglass_sys::clock::{ClockId, now_ns};

use super::super::budget::{Budget, BudgetSample, BudgetTerms, DispatchLevel};
use super::super::claims::priority_for;
use super::super::demand::Demand;
use super::super::guardian_lost;
use super::super::member_set::MemberSet;
use super::super::member_state::{MemberAction, MemberState};
use super::super::reach::Reach;
use super::super::time_sharing::TimeSharing;
use super::{EnforcerReport, EnforcerShared, RAISED_AGAIN_NS, patience};
use crate::guardian::{GuardianUnavailable, HeartbeatPromise};
use crate::supply::Spent;

pub(super) struct Run {
    team: MemberSet,
    pub(super) budget: Budget,
    demand: Demand,
    orders: MemberState,
    /// Whose turn it is among the members.
    sharing: TimeSharing,
    /// They were lowered before they were suspended.
    lowered: bool,
    /// The promise of a look in time, renewed at each look.
    pledge: HeartbeatPromise,
    patience_ns: u64,
    /// Looks that came later than the guardian waits for.
    away: u64,
    /// Time of the keeper itself when the period began, ns.
    kept_ns: u64,
    /// Running threads must be touched before their time is read.
    several: bool,
    turn: bool,
    /// When it began, and what the members had had then, ns.
    begun: (u64, u64),
    looked_ns: u64,
    used_ns: u64,
    counts: bool,
    reach: Reach,
    denied_ns: u64,
    periods: u64,
    raised_ns: u64,
    /// Without the supply and what is counted elsewhere, which the final report adds.
    report: EnforcerReport,
}

impl Run {
    /// `woken`: what [`MemberSet::woken`] was before they were raised.
    pub(super) fn begin(
        mut team: MemberSet,
        terms: BudgetTerms,
        pledge: HeartbeatPromise,
        several: bool,
        woken: u64,
    ) -> Run {
        let mut demand = Demand::default();
        let used_ns = team.usage.read_ns().unwrap_or(0);
        let now = now_ns(ClockId::Monotonic);
        demand.observe(now, used_ns, &team.samples());
        let reading = BudgetSample { now_ns: now, used_ns, starved_ns: 0 };
        Run {
            team,
            budget: Budget::begin(terms, reading),
            demand,
            orders: MemberState::raised(woken),
            sharing: TimeSharing::default(),
            lowered: false,
            pledge,
            patience_ns: patience(&terms),
            away: 0,
            kept_ns: now_ns(ClockId::ThreadCpu),
            several,
            turn: false,
            begun: (now, used_ns),
            looked_ns: now,
            used_ns,
            counts: true,
            reach: Reach::begin(now, used_ns.saturating_add(now_ns(ClockId::ThreadCpu))),
            denied_ns: 0,
            periods: 0,
            raised_ns: now,
            report: EnforcerReport { first_ns: now, ..EnforcerReport::default() },
        }
    }

    /// Looks once and obeys; when to look again.
    pub(super) fn look(&mut self, shared: &EnforcerShared) -> u64 {
        let before = self.orders.requested;
        self.report.absent = self.pledge.broken().max(self.away);
        self.orders.note_guardian_action(self.team.woken());
        let brought = self.team.bring_all_back();
        self.note(brought);
        let ends =
            self.budget.judges(now_ns(ClockId::Monotonic)) && before == DispatchLevel::Lowered;
        if self.several && (before == DispatchLevel::Raised || ends) {
            self.turn = !self.turn;
            let from_above = before == DispatchLevel::Raised && !self.turn;
            let touched = self.team.raise(self.turn, self.sharing.queue(from_above));
            self.turned(touched);
        }
        // Between the two readings the work can have used at most the time between them; a little too
        // late is the side on which the promise is kept.
        self.used_ns = self.team.usage.read_ns().unwrap_or(self.used_ns);
        let now = now_ns(ClockId::Monotonic);
        self.looked_ns = now;
        let mut wants = true;
        if self.budget.judges(now) {
            let samples = self.team.samples();
            wants = samples.iter().any(|sample| sample.runnable);
            self.denied_ns = self.demand.observe(now, self.used_ns, &samples);
        }
        let kept_ns = now_ns(ClockId::ThreadCpu);
        let taken_ns = self.used_ns.saturating_add(kept_ns);
        self.reach.look(now, taken_ns, !self.orders.leave_the_cpu(), wants);
        let reading =
            BudgetSample { now_ns: now, used_ns: self.used_ns, starved_ns: self.denied_ns };
        self.take_change(shared);
        self.budget.planned_ns = self.planned_ns(shared, kept_ns);
        let terms = self.budget.terms;
        let missed = self.budget.supply.missed;
        let order = self.budget.decide(reading);
        if self.budget.supply.missed > missed {
            self.report.busy = terms.are_broken_by(kept_ns.saturating_sub(self.kept_ns));
        }
        if self.periods() != self.periods {
            self.kept_ns = kept_ns;
        }
        if order.used_up && self.team.wants() {
            self.budget.wanted_more();
        }
        let resumed = before == DispatchLevel::Suspended && order.level == DispatchLevel::Raised;
        let another = self.sharing.charge_turns(&mut self.team, now, before, order.level);
        let from_below = self.lowered || before == DispatchLevel::Lowered;
        self.obey(order.level, now, self.budget.terms != terms);
        if self.orders.leave_the_cpu() {
            self.reach.end();
        }
        if another && !from_below {
            self.turn = !self.turn;
            let rotated = self.sharing.rotate(&mut self.team, self.turn);
            self.turned(rotated);
        }
        if resumed {
            // From here on it may wait for a CPU; while it stood it did not.
            let samples = self.team.samples();
            let now = now_ns(ClockId::Monotonic);
            self.denied_ns = self.demand.observe(now, self.used_ns, &samples);
        }
        self.report.looks = self.report.looks.saturating_add(1);
        self.tell(shared);
        let raised = order.level == DispatchLevel::Raised;
        let turn = if raised { self.sharing.next_ns(&self.team, now) } else { None };
        let over = now_ns(ClockId::Monotonic);
        let next = self.budget.next_after(over, !self.several).min(turn.unwrap_or(u64::MAX));
        let next = self.orders.next_ns(now, next);
        let pledged = self.pledge.until(next.saturating_add(self.patience_ns));
        self.note(pledged);
        next
    }

    pub(super) fn woke(&mut self, due_ns: u64) {
        let late = now_ns(ClockId::Monotonic).saturating_sub(due_ns);
        self.report.latest_ns = self.report.latest_ns.max(late);
        self.away = self.away.saturating_add(u64::from(late > self.patience_ns));
    }

    fn periods(&self) -> u64 {
        self.budget.supply.periods.saturating_add(self.budget.left_out)
    }

    /// Never waits, as [`Run::tell`]: a later look takes it.
    /// What other reservations may take of a period, and what enforcers took of this one: each about what this one did.
    fn planned_ns(&self, shared: &EnforcerShared, kept_ns: u64) -> u64 {
        let enforcers = shared.sharers.load(Ordering::Relaxed).saturating_add(1);
        let kept_ns = kept_ns.saturating_sub(self.kept_ns).saturating_mul(enforcers);
        shared.planned_ns.load(Ordering::Relaxed).saturating_add(kept_ns)
    }

    fn take_change(&mut self, shared: &EnforcerShared) {
        if let Ok(mut change) = shared.change.try_lock()
            && let Some(terms) = change.take()
        {
            self.budget.change(terms);
        }
    }

    fn obey(&mut self, level: DispatchLevel, now_ns: u64, changes: bool) {
        let periods = self.periods();
        let another = periods != self.periods;
        self.periods = periods;
        let again = now_ns.saturating_sub(self.raised_ns) >= RAISED_AGAIN_NS;
        if changes {
            self.patience_ns = patience(&self.budget.terms);
            self.team.plan.priority = priority_for(self.budget.terms.deadline_ns);
        }
        let anew = another && (again || self.team.group().is_none()) || changes;
        let act = self.orders.act(level, anew);
        if matches!(act, MemberAction::Raise | MemberAction::ResumeAndRaise) {
            // New members too.
            self.raised_ns = now_ns;
        }
        let obeyed = match act {
            MemberAction::Nothing => Ok(()),
            MemberAction::Raise => self.team.raise(self.turn, self.sharing.queue(false)),
            MemberAction::Resume if self.lowered => {
                let resumed = self.team.resume();
                resumed.and(self.team.raise(self.turn, self.sharing.queue(false)))
            }
            MemberAction::Resume => self.team.resume(),
            MemberAction::ResumeAndRaise => {
                let raised = self.team.raise(self.turn, self.sharing.queue(false));
                self.team.resume().and(raised)
            }
            MemberAction::Lower => self.team.lower(),
            MemberAction::ResumeAndLower => {
                let lowered = self.team.lower();
                self.team.resume().and(lowered)
            }
            MemberAction::Suspend => self.suspend(),
        };
        self.lowered &= level == DispatchLevel::Suspended;
        self.orders.done(obeyed.is_ok());
        self.note(obeyed);
    }

    /// Freezing takes a lock of the kernel that a member may hold that is not at its turn: among others of its own
    /// priority that spin it would never come to release it. At timesharing priority it does.
    fn suspend(&mut self) -> io::Result<()> {
        let (lowered, done) = guardian_lost::suspend(self.sharing.company, |order| match order {
            MemberAction::Suspend => self.team.suspend(),
            _ => self.team.lower(),
        });
        self.lowered |= lowered;
        done
    }

    /// How it ended that raised members were to get the other one of their priorities. Where no guardian lives at the
    /// moment they have kept theirs, and nothing was refused: a later look does it.
    fn turned(&mut self, answer: io::Result<()>) {
        match answer {
            Err(error) if GuardianUnavailable::is_behind(&error) => self.turn = !self.turn,
            answer => self.note(answer),
        }
    }

    fn note(&mut self, answer: io::Result<()>) {
        if let Err(error) = answer {
            self.report.fault.get_or_insert_with(|| error.to_string());
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.budget.judges(now_ns(ClockId::Monotonic)) && self.team.has_ended()
    }

    /// Never waits: the reader runs at a lower priority, and this thread would wait for it.
    pub(super) fn tell(&mut self, shared: &EnforcerShared) {
        if let Ok(mut report) = shared.report.try_lock() {
            self.write_report(&mut report);
        }
    }

    /// Takes the last sample, and whether it was taken. Without it, only a group knows what ended members used.
    fn look_a_last_time(&mut self) {
        self.report.absent = self.pledge.broken().max(self.away);
        self.used_ns = self.team.usage.read_ns().unwrap_or(self.used_ns);
        self.looked_ns = now_ns(ClockId::Monotonic);
        let taken_ns = self.used_ns.saturating_add(now_ns(ClockId::ThreadCpu));
        self.reach.look(self.looked_ns, taken_ns, !self.orders.leave_the_cpu(), true);
        if self.report.absent > 0 {
            self.counts = self.team.usage.counts_the_dead();
            let (now_ns, used_ns) = (self.looked_ns, self.used_ns);
            self.budget.decide(BudgetSample { now_ns, used_ns, starved_ns: self.denied_ns });
        }
    }

    fn write_report(&mut self, report: &mut EnforcerReport) {
        let (begun_ns, used_before_ns) = self.begun;
        self.report.left_out = self.budget.left_out;
        self.report.spent = Spent {
            used_ns: self.counts.then(|| self.used_ns.saturating_sub(used_before_ns)),
            wall_ns: self.looked_ns.saturating_sub(begun_ns),
            keeper_ns: Some(now_ns(ClockId::ThreadCpu)),
            longest_ns: (!self.several && self.report.absent == 0).then_some(self.reach.max_ns),
        };
        self.report.refused = self.orders.refused;
        self.report.foreign = self.team.most_foreign as u64;
        self.report.moved.clone_from(&self.team.moved);
        // Only what a period adds makes the supply another one.
        let mut supply = std::mem::take(&mut report.supply);
        if supply != self.budget.supply {
            supply.clone_from(&self.budget.supply);
        }
        *report = EnforcerReport { supply, ..self.report.clone() };
    }

    pub(super) fn end(mut self, shared: &EnforcerShared) -> io::Result<()> {
        self.look_a_last_time();
        self.write_report(&mut shared.report.lock().unwrap_or_else(PoisonError::into_inner));
        // No member is held to a budget any more, and none stays raised.
        let pledged = self.pledge.until(0);
        self.team.put_back().and(pledged)
    }
}
