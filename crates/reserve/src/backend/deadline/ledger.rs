//! What a thread of the class was given, from looks at the kernel's account of it.
//!
//! Owns: the reading of successive looks as periods. A pure machine over looks: it reads no clock.
//! Must not: count a period of which it does not know what was delivered; take what the kernel charged to a period for
//! what the thread had in it.
//!
//! The class is a constant bandwidth server (Abeni and Buttazzo, 1998): a budget Q until a
//! deadline. When Q is used up the thread stands until the deadline, which then moves by exactly
//! one period T, and Q comes on top of what is left, which is negative where the kernel noticed
//! late (it looks at ticks). A thread that wakes after its deadline begins a new period then and there. So
//! a deadline that moved by exactly T tells of one period used up, however late one looks. What was taken beyond the
//! budget until a tick is charged to the periods that follow: the account says that each had its budget, where one had
//! 6.6 ms and the next one 0.5. What a period really had is the thread's processor time between its begin and its end,
//! from looks that come soon behind them.

use crate::supply::{Spent, Supply};

use super::sample::DeadlineSample;

/// The least time between two samples, except within a pair. A sample costs some 30 us.
const PAUSE_NS: u64 = 4_000_000;

/// A sample that came too early is repeated after this time.
const AGAIN_NS: u64 = 20_000;

/// The kernel's clock and `CLOCK_MONOTONIC` drift apart by at most one part in `DRIFT`.
const DRIFT: u64 = 2_000;

/// Steps of the histogram in a budget, and the least of them, ns.
const STEPS: u64 = 50;
const LEAST_STEP_NS: u64 = 1_000;

/// The kernel's sums of a soft budget are rounded by less than this part of it.
const ROUNDED: u64 = 1_000;

/// A period counts if what it had is known to this part of the budget.
const KNOWN_PART: u64 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeadlineStep {
    /// The number of periods that were used up, or one period that ended by a yield.
    OnTheGrid(u64),
    /// One period, after which the thread slept.
    Slept,
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CurrentPeriod {
    /// Its deadline, of the kernel's clock.
    deadline_ns: u64,
    /// Processor time when it began, as far as the kernel's account of the budget tells.
    base_ns: Option<u64>,
    /// Waited until the first look.
    waited_ns: Option<u64>,
    seen_ns: u64,
}

/// The period of the reservation that goes on. It is the server's, but where that one took more than twice its budget
/// and has its deadline two periods on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ReservationPeriod {
    /// When it began, of the kernel's clock.
    begin_ns: i128,
    begun: CpuTimeEstimate,
    /// Whether the budget was not delivered by the deadline.
    late: bool,
    /// Whether the kernel let the thread stand, its budget used up.
    used_up: bool,
    /// Whether it was looked at from its begin on: the first one may have been another one's end.
    complete: bool,
}

/// Processor time at a moment shortly before a sample, with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CpuTimeEstimate {
    cpu_ns: u64,
    unsure_ns: u64,
}

#[derive(Clone, Debug)]
pub(super) struct PeriodLedger {
    budget_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
    soft: bool,
    /// Of a step of the histogram, ns.
    width_ns: u64,
    pub(super) supply: Supply,
    open: Option<CurrentPeriod>,
    window: Option<ReservationPeriod>,
    first: Option<DeadlineSample>,
    /// The deadline of the period that goes on under earlier terms.
    before: Option<u64>,
    last: Option<DeadlineSample>,
    /// Periods that are not in the supply, since they were looked at too late; of those too short to be looked at one by
    /// one, only looks that were meant to tell of one.
    pub(super) left_out: u64,
    /// By how much the kernel's clock is before `CLOCK_MONOTONIC`, as near as is known.
    offset: Option<i128>,
    /// A lower bound of the offset, and the time of its sample.
    least: Option<(i128, u64)>,
    /// Whether the next period is looked at too.
    pair: bool,
}

impl PeriodLedger {
    /// Of a reservation, all in ns, the period above zero.
    pub(super) fn new(
        budget_ns: u64,
        deadline_ns: u64,
        period_ns: u64,
        soft: bool,
    ) -> PeriodLedger {
        PeriodLedger {
            budget_ns,
            deadline_ns,
            period_ns: period_ns.max(1),
            soft,
            width_ns: (budget_ns / STEPS).max(LEAST_STEP_NS),
            supply: Supply::default(),
            open: None,
            window: None,
            first: None,
            before: None,
            last: None,
            left_out: 0,
            offset: None,
            least: None,
            pair: false,
        }
    }

    /// Time of the thread between the first look and the last one.
    pub(super) fn spent(&self) -> Spent {
        let Some((first, last)) = self.first.zip(self.last) else { return Spent::default() };
        Spent {
            used_ns: Some(last.cpu_ns.saturating_sub(first.cpu_ns)),
            wall_ns: last.at_ns.saturating_sub(first.at_ns),
            ..Spent::default()
        }
    }

    /// What the thread was given by the look after which it has other terms: budget, deadline and period, ns, the last above
    /// zero. They hold from the next period of the server on, and no period counts until then.
    pub(super) fn change_terms(&mut self, terms: (u64, u64, u64), look: &DeadlineSample) {
        let (budget_ns, deadline_ns, period_ns) = terms;
        (self.budget_ns, self.deadline_ns, self.period_ns) =
            (budget_ns, deadline_ns, period_ns.max(1));
        (self.open, self.window, self.pair) = (None, None, false);
        self.before = Some(look.deadline_ns);
        let first_ns = self.first.map_or(look.at_ns, |first| first.at_ns);
        let at_ns = look.at_ns.saturating_sub(first_ns);
        self.supply.changes.push((at_ns, budget_ns, period_ns));
    }

    /// Budget, deadline and period, ns.
    pub(super) fn terms(&self) -> (u64, u64, u64) {
        (self.budget_ns, self.deadline_ns, self.period_ns)
    }

    /// Takes the next look; they come in order of time, and the first shortly after the thread entered.
    pub(super) fn take(&mut self, look: &DeadlineSample) {
        // Asleep when it was given the class, it has no period before it wakes.
        if look.deadline_ns == 0 {
            return;
        }
        if self.before == Some(look.deadline_ns) {
            self.last = Some(*look);
            return;
        }
        self.before = None;
        match self.open {
            Some(open) if open.deadline_ns == look.deadline_ns => self.heed_early(&open, look),
            Some(open) => {
                let step = self.step(&open, look);
                self.change(&open, step, look);
            }
            None => {
                self.learn_offset(self.began(look), look);
                let base = self.base(DeadlineStep::Slept, look);
                self.begin(base, look);
                self.window = Some(ReservationPeriod { complete: false, ..self.fresh(base, look) });
            }
        }
        self.note_used_up(look);
        self.pass_boundaries(look);
        self.note_used_up(look);
        let late = self.is_late(look);
        if let Some(window) = &mut self.window {
            window.late |= late;
        }
        if let Some(open) = &mut self.open {
            open.seen_ns = look.at_ns;
        }
        self.first.get_or_insert(*look);
        self.last = Some(*look);
    }

    fn note_used_up(&mut self, look: &DeadlineSample) {
        if let Some(window) = &mut self.window {
            window.used_up |= look.runnable && look.left_ns <= 0;
        }
    }

    fn change(&mut self, open: &CurrentPeriod, step: DeadlineStep, look: &DeadlineSample) {
        let base = self.base(step, look);
        let charged = base.zip(open.base_ns).and_then(|(now, then)| now.checked_sub(then));
        let charged = charged.filter(|charged| *charged > 0);
        match (step, charged) {
            (DeadlineStep::OnTheGrid(periods), Some(charged)) if self.used_up(charged, periods) => {
                let begun = i128::from(open.deadline_ns) + i128::from(self.period_ns);
                self.learn_offset(begun - i128::from(self.deadline_ns), look);
                // It goes on at the next boundary of the same grid.
                let window = self.window.get_or_insert(self.since_boundary(look));
                window.used_up = true;
                self.stood(open, look);
            }
            (DeadlineStep::OnTheGrid(1) | DeadlineStep::Slept, _) => {
                // It slept, or yielded, and used nothing until it woke.
                self.learn_offset(self.began(look), look);
                let fresh = self.fresh(base, look);
                if charged.is_some_and(|charged| charged <= self.most()) {
                    self.close(fresh.begun, false);
                }
                self.window = Some(fresh);
            }
            _ => {
                if matches!(step, DeadlineStep::OnTheGrid(_)) {
                    self.learn_offset(self.began(look), look);
                }
                self.window = Some(self.since_boundary(look));
            }
        }
        self.begin(base, look);
    }

    /// The period that goes on at a look, by the server's grid.
    fn since_boundary(&self, look: &DeadlineSample) -> ReservationPeriod {
        let (began, period) = (self.began(look), i128::from(self.period_ns));
        let periods = self.clock(look.at_ns).saturating_sub(began).div_euclid(period);
        let begin_ns = began.saturating_add(periods.saturating_mul(period));
        ReservationPeriod {
            begin_ns,
            begun: self.at(begin_ns, look),
            late: false,
            used_up: false,
            complete: true,
        }
    }

    /// The period that began with a whole budget; the account tells what was used of it, if the budget runs as fast
    /// as time.
    fn fresh(&self, base: Option<u64>, look: &DeadlineSample) -> ReservationPeriod {
        let begin_ns = self.began(look);
        let known =
            base.filter(|_| !self.soft).map(|cpu_ns| CpuTimeEstimate { cpu_ns, unsure_ns: 0 });
        let begun = known.unwrap_or_else(|| self.at(begin_ns, look));
        ReservationPeriod { begin_ns, begun, late: false, used_up: false, complete: true }
    }

    /// Processor time at a moment of the kernel's clock, before this look and after the one before it. Since then the
    /// thread ran no longer than that is ago.
    fn at(&self, moment_ns: i128, look: &DeadlineSample) -> CpuTimeEstimate {
        let ago = self.clock(look.at_ns).saturating_sub(moment_ns).max(0);
        let ago = u64::try_from(ago).unwrap_or(u64::MAX);
        let before = self.last.map_or(look.cpu_ns, |last| last.cpu_ns);
        let used = look.cpu_ns.saturating_sub(before).min(ago);
        CpuTimeEstimate { cpu_ns: look.cpu_ns.saturating_sub(used), unsure_ns: used }
    }

    /// Ends the periods that are over at this look. Of several at once it is not known what each had.
    fn pass_boundaries(&mut self, look: &DeadlineSample) {
        let Some(window) = self.window else { return };
        let period = i128::from(self.period_ns);
        let passed = self.clock(look.at_ns).saturating_sub(window.begin_ns) / period;
        let Ok(passed @ 1..) = u64::try_from(passed) else { return };
        let begin_ns = window.begin_ns.saturating_add(i128::from(passed).saturating_mul(period));
        let begun = self.at(begin_ns, look);
        match passed {
            1 => self.close(begun, look.runnable),
            // Too short to be looked at one by one.
            _ if self.period_ns < PAUSE_NS => {}
            _ => self.left_out = self.left_out.saturating_add(passed),
        }
        // A thread that sleeps after its deadline has no period until it wakes.
        let goes_on = look.runnable || i128::from(look.deadline_ns) > begin_ns;
        self.window = goes_on.then_some(ReservationPeriod {
            begin_ns,
            begun,
            late: false,
            used_up: false,
            complete: true,
        });
    }

    /// When to look again, of `CLOCK_MONOTONIC`: behind the end of the period that goes on. Of short periods
    /// two in a row are looked at, and then none for a while.
    pub(super) fn next_look_ns(&mut self, now_ns: u64) -> u64 {
        self.pair = !self.pair;
        let soonest = now_ns.saturating_add(if self.pair { AGAIN_NS } else { PAUSE_NS });
        let boundary = self.window.zip(self.offset).and_then(|(window, offset)| {
            // As of `CLOCK_MONOTONIC`.
            let begin = window.begin_ns.saturating_sub(offset);
            let ahead = i128::from(soonest).saturating_sub(begin).max(1);
            let periods =
                ahead.saturating_add(i128::from(self.period_ns) - 1) / i128::from(self.period_ns);
            let boundary = begin.saturating_add(periods.saturating_mul(i128::from(self.period_ns)));
            u64::try_from(boundary).ok()
        });
        // A period that its thread ended begins anew when that wakes.
        boundary.unwrap_or(now_ns.saturating_add(self.period_ns).max(soonest))
    }

    /// When the present period began, of the kernel's clock; unless the deadline moved by several periods at
    /// once, as it does where more than a budget was overrun.
    fn began(&self, look: &DeadlineSample) -> i128 {
        i128::from(look.deadline_ns) - i128::from(self.deadline_ns)
    }

    /// The kernel's clock stood at `stood_ns` or further when this was seen: a budget comes back when the period of the
    /// deadline before is over, and with a fresh deadline when a thread wakes.
    fn learn_offset(&mut self, stood_ns: i128, look: &DeadlineSample) {
        let seen = stood_ns.saturating_sub(i128::from(look.at_ns));
        // A deadline that was put off by several periods at once is no sign of the time.
        let sudden = self
            .offset
            .is_some_and(|known| seen.saturating_sub(known) > i128::from(self.period_ns / 8));
        if sudden {
            return;
        }
        self.offset = Some(self.offset.map_or(seen, |known| known.max(seen)));
        let known = self.least_offset(look.at_ns);
        self.least = Some((known.map_or(seen, |known| known.max(seen)), look.at_ns));
    }

    /// While a thread stands its budget has not come back: the clock does not stand where it would.
    fn heed_early(&mut self, open: &CurrentPeriod, look: &DeadlineSample) {
        let back = self.began(look).saturating_add(i128::from(self.period_ns));
        let same = open.deadline_ns == look.deadline_ns;
        if same && look.runnable && look.left_ns <= 0 && self.clock(look.at_ns) >= back {
            self.offset = Some(back.saturating_sub(i128::from(look.at_ns)).saturating_sub(1));
        }
    }

    /// The offset at least, after the clocks may have come apart.
    fn least_offset(&self, at_ns: u64) -> Option<i128> {
        let (offset, as_of) = self.least?;
        Some(offset - i128::from(at_ns.saturating_sub(as_of) / DRIFT))
    }

    /// The kernel's clock at a time, at least.
    fn kernel_clock(&self, at_ns: u64) -> i128 {
        self.least_offset(at_ns).map_or(i128::MIN, |offset| offset + i128::from(at_ns))
    }

    /// The kernel's clock at a time, as near as is known.
    fn clock(&self, at_ns: u64) -> i128 {
        self.offset.unwrap_or(0).saturating_add(i128::from(at_ns))
    }

    /// The thread is past its deadline, has budget left, and is awake. A thread that wakes after its deadline gets a
    /// new one, so this one was awake at the deadline.
    fn is_late(&self, look: &DeadlineSample) -> bool {
        look.runnable
            && look.left_ns > 0
            && self.kernel_clock(look.at_ns) > i128::from(look.deadline_ns)
    }

    fn begin(&mut self, base_ns: Option<u64>, look: &DeadlineSample) {
        self.open = Some(CurrentPeriod {
            deadline_ns: look.deadline_ns,
            base_ns,
            waited_ns: look.waited_ns,
            seen_ns: look.at_ns,
        });
    }

    /// Processor time when the period began of which this is the first look. With reclaiming the budget
    /// runs slower than time, so that it is known only shortly after the begin.
    fn base(&self, step: DeadlineStep, look: &DeadlineSample) -> Option<u64> {
        if !self.soft {
            let gone = i128::from(self.budget_ns) - i128::from(look.left_ns);
            return u64::try_from(i128::from(look.cpu_ns) - gone).ok();
        }
        let since = self.kernel_clock(look.at_ns) - self.began(look);
        let fresh = since <= i128::from(self.period_ns / 16);
        (fresh && matches!(step, DeadlineStep::OnTheGrid(1) | DeadlineStep::Slept))
            .then_some(look.cpu_ns)
    }

    /// How the deadline came from the open one to this one.
    fn step(&self, open: &CurrentPeriod, look: &DeadlineSample) -> DeadlineStep {
        let Some(step) = look.deadline_ns.checked_sub(open.deadline_ns) else {
            return DeadlineStep::Unknown;
        };
        if step % self.period_ns == 0 {
            return DeadlineStep::OnTheGrid(step / self.period_ns);
        }
        // Another period fits between the last look and the begin of this one.
        let unseen = self.began(look) - self.kernel_clock(open.seen_ns);
        if step < self.period_ns / 2 || unseen >= i128::from(self.period_ns) {
            return DeadlineStep::Unknown;
        }
        DeadlineStep::Slept
    }

    /// Counts the period that has ended, when the processor time was `end`; whether the thread would have gone on.
    fn close(&mut self, end: CpuTimeEstimate, goes_on: bool) {
        let Some(window) = self.window.filter(|window| window.complete) else { return };
        let had = end.cpu_ns.saturating_sub(window.begun.cpu_ns);
        let unsure = end.unsure_ns.saturating_add(window.begun.unsure_ns);
        if unsure > self.budget_ns / KNOWN_PART || had > self.period_ns {
            if self.period_ns >= PAUSE_NS {
                self.left_out = self.left_out.saturating_add(1);
            }
            return;
        }
        // Missed only if it was for certain.
        let least = self.budget_ns - self.budget_ns / STEPS;
        let short = window.used_up && had.saturating_add(unsure) < least;
        self.supply.missed += u64::from(window.late || short);
        self.supply.overruns += u64::from(window.used_up);
        self.count(had, window.used_up || window.late || goes_on && had >= self.budget_ns);
    }

    /// Whether `periods` periods had all of their budget. The kernel's sums of a soft reservation are rounded.
    fn used_up(&self, given: u64, periods: u64) -> bool {
        let all = u128::from(self.budget_ns) * u128::from(periods);
        periods > 0 && u128::from(given) + u128::from(self.budget_ns / ROUNDED) >= all
    }

    /// The most that a single period can have been given.
    fn most(&self) -> u64 {
        if self.soft { self.period_ns } else { self.budget_ns }
    }

    fn count(&mut self, had: u64, wanted: bool) {
        self.supply.periods += 1;
        self.supply.last_ns = Some(had);
        let upper = had.div_ceil(self.width_ns).saturating_mul(self.width_ns);
        // The budget itself is a step.
        let upper = if had <= self.budget_ns { upper.min(self.budget_ns) } else { upper };
        *self.supply.steps.entry(upper).or_default() += 1;
        if wanted {
            *self.supply.wanted.entry(upper).or_default() += 1;
        }
    }

    /// While a budget is used up the thread is ready and does not run.
    fn stood(&mut self, open: &CurrentPeriod, look: &DeadlineSample) {
        let stood = look.waited_ns.zip(open.waited_ns).map(|(now, then)| now.saturating_sub(then));
        if let Some(stood) = stood {
            *self.supply.throttled_ns.get_or_insert(0) += stood;
        }
    }
}

#[cfg(test)]
mod tests;
