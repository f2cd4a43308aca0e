//! When reserved work is raised, lowered or suspended: decisions over time values, nothing else.
//!
//! Owns: [`Budget`], which takes the time and the processor time used, and answers with a level and with the time of
//! the next look. Must not: read a clock, touch a thread, wait.
//!
//! The reservation is that of Inoue et al., section 4.1: periods follow each other on a grid, in each the work is
//! dispatched at the highest priority until it has had its budget, then not before the next one. What is left of a
//! budget is not carried over. What is used beyond it, until the look that finds out, is paid back from the next one,
//! so that any number of periods has as many budgets and what the last look was late. At most a part of the budget is
//! paid back, and nothing of what is used while looks were missing: then the guarantee comes before the limit.
//!
//! Looks take the CPU from the work that they look at, so that their number is limited: each one leaves the work the time that
//! it waits for, and a rest of the budget that is worth no look counts as used up and is added to the next one.

use std::collections::BTreeMap;

use hourglass_documents::{Reservation, ReservationKind};

use crate::supply::Supply;

/// The terms of a reservation, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BudgetTerms {
    /// Processor time of a period, above 0.
    pub(crate) budget_ns: u64,
    /// When in the period it is delivered at the latest; at least the budget.
    pub(crate) deadline_ns: u64,
    /// The period; at least the deadline.
    pub(crate) period_ns: u64,
    /// Number of CPUs on which the work can run at once, at least 1. The budget is used faster by this factor.
    pub(crate) cpus: u64,
    /// Hard: suspended when the budget is used up. Soft: lowered.
    pub(crate) strength: ReservationKind,
}

impl BudgetTerms {
    pub(super) fn new(reservation: &Reservation, cpus: u64) -> BudgetTerms {
        BudgetTerms {
            budget_ns: reservation.budget().nanos_or_zero(),
            deadline_ns: reservation.deadline().nanos_or_zero(),
            period_ns: reservation.period().nanos_or_zero(),
            cpus,
            strength: reservation.strength(),
        }
    }

    /// Whether `took_ns` of a period is at least half of what others may take without harm to the budget.
    pub(crate) fn are_broken_by(&self, took_ns: u64) -> bool {
        took_ns >= self.deadline_ns.saturating_sub(self.budget_ns) / 2
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum DispatchLevel {
    /// Above all that is not reserved.
    Raised,
    /// As if nothing were reserved.
    Lowered,
    Suspended,
}

/// Values at one look. None of the sums goes backwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BudgetSample {
    /// When, ns of a clock that does not stop.
    pub(crate) now_ns: u64,
    /// Processor time that the work has had since it began, ns.
    pub(crate) used_ns: u64,
    /// Time for which the work wanted a CPU, and none of it had one, since it began; what is
    /// not known is left out. Looked at only where [`Budget::judges`] says so.
    pub(crate) starved_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DispatchDecision {
    pub(crate) level: DispatchLevel,
    /// When to look again; later than now.
    pub(crate) next_ns: u64,
    /// The budget was found used up at this look. A caller that can see whether the work would have gone on reports it
    /// with [`Budget::wanted_more`].
    pub(crate) used_up: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Budget {
    pub(crate) terms: BudgetTerms,
    pub(crate) next: Option<BudgetTerms>,
    begun_ns: u64,
    /// Shortest time between two looks while a budget runs out, ns.
    grain_ns: u64,
    /// Width of the steps of the histogram, ns.
    step_ns: u64,
    last: BudgetSample,
    /// How long looks take, ns; a running mean.
    cost_ns: u64,
    period: Period,
    level: DispatchLevel,
    pub(crate) supply: Supply,
    /// Periods whose processor time could not be separated.
    pub(crate) left_out: u64,
    /// The most that reservations at the same priority or above, and enforcers, may take of the time until the deadline, ns.
    pub(crate) planned_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Period {
    begin_ns: u64,
    /// Processor time used before it, for what is counted.
    used_ns: u64,
    /// The charged processor time in the same form: a lower bound.
    charged_ns: u64,
    denied_ns: u64,
    /// The budget less what the period before it has to pay back.
    budget_ns: u64,
    /// From where what is used beyond it counts: `used_ns`, or `charged_ns` where the look at the begin was too late to tell.
    pays_from_ns: u64,
    /// Use beyond the budget until the work was lowered, where it goes on after that.
    over_ns: u64,
    /// Whether the budget was delivered by the deadline, once that is known.
    verdict: Option<PeriodVerdict>,
    /// Since when the work stands although it wants more.
    stands_since_ns: Option<u64>,
    /// The work itself has ended it.
    ended: bool,
    /// Remainder of the budget when it counted as used up.
    rest_ns: u64,
    awaited: Option<Awaited>,
    /// Shortest time that the next look leaves to the work, ns: longer after each one that found that it had hardly run.
    pause_ns: u64,
}

/// The next look is to find that the work has used the budget.
#[derive(Clone, Copy, Debug)]
struct Awaited {
    due_ns: u64,
    /// Of less the work has hardly run.
    least_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PeriodVerdict {
    /// The period had its budget: `all` of it, or what was wanted.
    Kept {
        all: bool,
    },
    Missed,
}

/// The grain is this part of the budget, within limits: looks more frequent than the lower one are not needed, and no
/// budget should be exceeded by more than the upper one.
const GRAIN_PART: u64 = 500;
const GRAIN_NS: (u64, u64) = (5_000, 50_000);

/// Number of steps of the supply histogram per budget.
const STEPS: u64 = 50;
const LEAST_STEP_NS: u64 = 1_000;

/// At most this part of a budget is paid back.
const PAID_PART: u64 = 10;

/// A rest of the budget that is not used when it could have been is worth another look if it is more than one step of the
/// histogram, and longer than this number of looks.
const REST_LOOKS: u64 = 4;

/// A look counts to the mean by this part.
const COST_PART: u64 = 8;

/// A period counts if what was used in it is known to this part of the budget.
const KNOWN_PART: u64 = 10;

fn grain_ns(terms: &BudgetTerms) -> u64 {
    (terms.budget_ns / GRAIN_PART).clamp(GRAIN_NS.0, GRAIN_NS.1)
}

impl Budget {
    /// The first period begins with this reading.
    pub(crate) fn begin(terms: BudgetTerms, reading: BudgetSample) -> Budget {
        Budget {
            terms,
            next: None,
            begun_ns: reading.now_ns,
            grain_ns: grain_ns(&terms),
            step_ns: (terms.budget_ns / STEPS).max(LEAST_STEP_NS),
            last: reading,
            cost_ns: 0,
            period: Period::begin(reading.now_ns, reading.used_ns, reading, terms.budget_ns),
            level: DispatchLevel::Raised,
            supply: Supply { throttled_ns: Some(0), ..Supply::default() },
            left_out: 0,
            planned_ns: 0,
        }
    }

    /// Decides. A reading before the last one counts as the last one again.
    pub(crate) fn decide(&mut self, reading: BudgetSample) -> DispatchDecision {
        let reading = BudgetSample {
            now_ns: reading.now_ns.max(self.last.now_ns),
            used_ns: reading.used_ns.max(self.last.used_ns),
            starved_ns: reading.starved_ns.max(self.last.starved_ns),
        };
        self.settle_period(reading);
        if reading.now_ns >= self.end_ns() {
            self.replenish(reading);
        }
        let spent = reading.used_ns.saturating_sub(self.period.charged_ns);
        let raised = self.level == DispatchLevel::Raised;
        let used_up = raised && self.is_used_up(reading, spent);
        if used_up {
            self.period.rest_ns = self.period.budget_ns.saturating_sub(spent);
            self.period.budget_ns = self.period.budget_ns.min(spent);
        }
        if used_up || raised && self.period.ended {
            self.level = match self.terms.strength {
                ReservationKind::Hard => DispatchLevel::Suspended,
                ReservationKind::Soft => DispatchLevel::Lowered,
            };
            self.period.verdict.get_or_insert(PeriodVerdict::Kept { all: true });
            let used = reading.used_ns.saturating_sub(self.period.pays_from_ns);
            self.period.over_ns = used.saturating_sub(self.period.budget_ns);
        }
        self.last = reading;
        DispatchDecision {
            level: self.level,
            next_ns: self.next(reading.now_ns, reading.now_ns),
            used_up,
        }
    }

    /// When to look again after a look that was over at `now_ns`: no sooner than the work has had time to run. `stood`: it
    /// had no CPU during the look.
    pub(crate) fn next_after(&mut self, now_ns: u64, stood: bool) -> u64 {
        let took = now_ns.saturating_sub(self.last.now_ns);
        let part = COST_PART - 1;
        self.cost_ns = self.cost_ns.saturating_mul(part).saturating_add(took) / COST_PART;
        self.next(if stood { now_ns } else { self.last.now_ns }, now_ns)
    }

    /// Whether nothing is left of the budget, or less than is worth another look.
    fn is_used_up(&mut self, reading: BudgetSample, spent: u64) -> bool {
        let rest = self.period.budget_ns.saturating_sub(spent);
        let ran = reading.used_ns.saturating_sub(self.last.used_ns);
        let awaited = self.period.awaited.filter(|awaited| reading.now_ns >= awaited.due_ns);
        let idle = awaited.is_some_and(|awaited| ran < awaited.least_ns);
        if idle {
            let longest = self.cost_ns.saturating_mul(REST_LOOKS).max(self.grain_ns);
            let longer = self.period.pause_ns.max(self.grain_ns).saturating_mul(2);
            self.period.pause_ns = longer.min(longest);
        }
        rest == 0 || rest <= if idle { self.rest_ns() } else { self.grain_ns.min(self.rest_ns()) }
    }

    /// The longest rest that is worth no look after one that found that the work had hardly run.
    fn rest_ns(&self) -> u64 {
        let looks = self.cost_ns.saturating_mul(REST_LOOKS);
        looks.max(self.terms.budget_ns / STEPS).min(self.terms.budget_ns / PAID_PART)
    }

    /// Whether a look at `now_ns` decides on a deadline, for which [`BudgetSample::starved_ns`] is needed.
    pub(crate) fn judges(&self, now_ns: u64) -> bool {
        now_ns >= self.end_ns() || self.period.verdict.is_none() && now_ns >= self.deadline_ns()
    }

    /// The work would have gone on when its budget was used up at the last look.
    pub(crate) fn wanted_more(&mut self) {
        if self.level == DispatchLevel::Raised || self.period.stands_since_ns.is_some() {
            return;
        }
        self.supply.overruns = self.supply.overruns.saturating_add(1);
        self.period.stands_since_ns = Some(self.last.now_ns);
    }

    /// The work is done with this period (Inoue et al., section 4.1: it yields): it is not dispatched again as reserved work
    /// until the next one, and has had all that it wanted. To be followed by a look.
    pub(crate) fn end_period(&mut self) {
        self.period.verdict.get_or_insert(PeriodVerdict::Kept { all: false });
        self.period.ended = true;
    }

    /// Budget, deadline and period are these from the next period on. Steps of the histogram stay as they are.
    pub(crate) fn change(&mut self, terms: BudgetTerms) {
        self.next = Some(terms);
    }

    fn end_ns(&self) -> u64 {
        self.period.begin_ns.saturating_add(self.terms.period_ns)
    }

    fn deadline_ns(&self) -> u64 {
        self.period.begin_ns.saturating_add(self.terms.deadline_ns)
    }

    /// The most that can have been used between `from_ns`, which is behind the last look, and now.
    fn used_since(&self, from_ns: u64, reading: BudgetSample) -> u64 {
        let late = reading.now_ns.saturating_sub(from_ns);
        let used = reading.used_ns.saturating_sub(self.last.used_ns);
        late.saturating_mul(self.terms.cpus).min(used)
    }

    /// The time that work which comes late in its period may have to wait for other reservations: what they may take in
    /// the whole of it, with the remainder of a budget that one may have carried over. Work that wants its budget from
    /// the begin on was admitted with all of this.
    fn planned(&self) -> u64 {
        let slack = self.terms.deadline_ns.saturating_sub(self.terms.budget_ns);
        self.planned_ns.saturating_add(self.planned_ns / PAID_PART).min(slack)
    }

    /// At the first look at or behind the deadline: was the budget wanted, and was it delivered? It is
    /// missed only if it was for certain: what may have been used in time was.
    fn settle_period(&mut self, reading: BudgetSample) {
        let deadline = self.deadline_ns();
        if self.period.verdict.is_some() || reading.now_ns < deadline {
            return;
        }
        let spent = reading.used_ns.saturating_sub(self.period.used_ns);
        let for_certain = spent.saturating_sub(self.used_since(deadline, reading));
        let denied = reading.starved_ns.saturating_sub(self.period.denied_ns);
        let in_time = denied.saturating_sub(reading.now_ns.saturating_sub(deadline));
        let beyond_plan = in_time.saturating_sub(self.planned());
        // The remainder of an earlier period is not due by this deadline.
        let promised = self.period.budget_ns.min(self.terms.budget_ns);
        let wanted = for_certain.saturating_add(beyond_plan) >= promised;
        let delivered = spent >= promised;
        self.period.verdict = Some(match (wanted, delivered) {
            (true, false) => PeriodVerdict::Missed,
            (_, all) => PeriodVerdict::Kept { all },
        });
    }

    /// Closes the period and begins the one that lasts now.
    fn replenish(&mut self, reading: BudgetSample) {
        let end = self.end_ns();
        let behind = reading.now_ns.saturating_sub(end);
        let unsure = self.used_since(end, reading);
        let skipped = behind.checked_div(self.terms.period_ns).unwrap_or(0);
        let delivered = reading.used_ns.saturating_sub(self.period.used_ns).saturating_sub(unsure);
        let open = self.period.verdict == Some(PeriodVerdict::Kept { all: true })
            && delivered < self.period.budget_ns;
        let late = skipped > 0 || unsure > self.terms.budget_ns / KNOWN_PART;
        if late || open {
            self.left_out = self.left_out.saturating_add(skipped).saturating_add(1);
        } else {
            self.close(delivered);
        }
        if let Some(since) = self.period.stands_since_ns
            && let Some(sum) = &mut self.supply.throttled_ns
            && self.level == DispatchLevel::Suspended
        {
            *sum = sum.saturating_add(reading.now_ns.saturating_sub(since));
        }
        let begin = end.saturating_add(skipped.saturating_mul(self.terms.period_ns));
        let counted = reading.used_ns.saturating_sub(unsure);
        self.begin_next_terms(begin);
        let budget = if skipped > 0 { self.terms.budget_ns } else { self.next_budget(counted) };
        self.period = Period::begin(begin, counted, reading, budget);
        if late {
            self.period.pays_from_ns = reading.used_ns;
        }
        self.level = DispatchLevel::Raised;
    }

    fn begin_next_terms(&mut self, begin_ns: u64) {
        let Some(terms) = self.next.take() else { return };
        self.terms = terms;
        self.grain_ns = grain_ns(&terms);
        let at_ns = begin_ns.saturating_sub(self.begun_ns);
        self.supply.changes.push((at_ns, terms.budget_ns, terms.period_ns));
    }

    /// The budget of the next period, where `used_ns` had been used when this one ended: less what it has to pay back, or
    /// with what this one left.
    fn next_budget(&self, used_ns: u64) -> u64 {
        let over = match self.level {
            // Later use was ordinary timesharing.
            DispatchLevel::Lowered => self.period.over_ns,
            DispatchLevel::Raised | DispatchLevel::Suspended => used_ns
                .saturating_sub(self.period.pays_from_ns)
                .saturating_sub(self.period.budget_ns),
        };
        let budget = self.terms.budget_ns;
        let most = budget / PAID_PART;
        let owed = over.saturating_sub(self.period.rest_ns).min(most);
        let left = self.period.rest_ns.saturating_sub(over).min(most);
        let with_left = budget.saturating_add(left).min(self.terms.deadline_ns.max(budget));
        with_left.saturating_sub(owed)
    }

    fn close(&mut self, delivered: u64) {
        fn count(steps: &mut BTreeMap<u64, u64>, step: u64) {
            let periods = steps.entry(step).or_default();
            *periods = periods.saturating_add(1);
        }
        let step = delivered.div_ceil(self.step_ns).saturating_mul(self.step_ns);
        let supply = &mut self.supply;
        supply.periods = supply.periods.saturating_add(1);
        supply.last_ns = Some(delivered);
        count(&mut supply.steps, step);
        let judged = self.period.verdict;
        if judged == Some(PeriodVerdict::Missed) {
            supply.missed = supply.missed.saturating_add(1);
        }
        if matches!(judged, Some(PeriodVerdict::Missed | PeriodVerdict::Kept { all: true })) {
            count(&mut supply.wanted, step);
        }
    }

    /// The earliest time at which something can be to do, where the work goes on at `from_ns` and the look was over at
    /// `over_ns`.
    fn next(&mut self, from_ns: u64, over_ns: u64) -> u64 {
        let end = self.end_ns();
        self.period.awaited = None;
        if self.level != DispatchLevel::Raised {
            return end;
        }
        let spent = self.last.used_ns.saturating_sub(self.period.charged_ns);
        let left = self.period.budget_ns.saturating_sub(spent).div_ceil(self.terms.cpus.max(1));
        let pause = self.period.pause_ns.max(self.grain_ns);
        let due = from_ns.saturating_add(left).max(over_ns.saturating_add(pause));
        self.period.awaited = Some(Awaited { due_ns: due, least_ns: left.div_ceil(2) });
        let next = due.min(end);
        let deadline = self.deadline_ns();
        let judges = self.period.verdict.is_none() && self.last.now_ns < deadline;
        if judges { next.min(deadline) } else { next }
    }
}

impl Period {
    fn begin(begin_ns: u64, used_ns: u64, reading: BudgetSample, budget_ns: u64) -> Period {
        Period {
            begin_ns,
            used_ns,
            charged_ns: reading.used_ns,
            denied_ns: reading.starved_ns,
            budget_ns,
            pays_from_ns: used_ns,
            over_ns: 0,
            verdict: None,
            stands_since_ns: None,
            ended: false,
            rest_ns: 0,
            awaited: None,
            pause_ns: 0,
        }
    }
}

#[cfg(test)]
#[path = "tests/budget.rs"]
mod tests;
