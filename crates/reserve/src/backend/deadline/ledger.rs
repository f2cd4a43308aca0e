//! What a thread of the class was given, from looks at the kernel's account of it.
//!
//! Owns: the reading of successive looks as periods. A pure machine over looks: it reads no clock.
//! Must not: count a period of which it does not know what was delivered.
//!
//! The class is a constant bandwidth server (Abeni and Buttazzo, 1998): a budget Q until a
//! deadline. When Q is used up the thread stands until the deadline, which then moves by exactly
//! one period T, and Q comes on top of what is left, which is negative where the kernel noticed
//! late (it looks at ticks). A thread that wakes after its deadline begins a new period then and there. So
//! processor time less what is gone of Q is what it had when the present period began, however late
//! one looks; and a deadline that moved by exactly n T tells of n periods used up. What was taken beyond the
//! budget until a tick is charged to the periods that follow, as the kernel does it; they count as had.

use crate::supply::Supply;

use super::look::Look;

/// Between two looks at least so long, but for pairs; each costs some 30 us.
const PAUSE_NS: u64 = 4_000_000;

/// The kernel's clock and `CLOCK_MONOTONIC` come apart by no more than one part in so many.
const DRIFT: u64 = 2_000;

/// Steps of the histogram in a budget.
const STEPS: u64 = 1_000;

/// What one step of deadlines means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closed {
    /// So many periods used up, or one that ended by a yield.
    OnTheGrid(u64),
    /// One period, after which the thread slept.
    Slept,
    /// Unknown how many.
    Unknown,
}

/// The period that goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Open {
    /// Its deadline, of the kernel's clock.
    deadline_ns: u64,
    /// Processor time when it began.
    base_ns: Option<u64>,
    /// Waited until the first look.
    waited_ns: Option<u64>,
    /// Whether its budget was not delivered by the deadline.
    missed: bool,
    /// The last look at it.
    seen_ns: u64,
}

/// Periods of one reservation.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    budget_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
    soft: bool,
    supply: Supply,
    open: Option<Open>,
    /// By how much the kernel's clock is before `CLOCK_MONOTONIC` at least, and as of when.
    offset: Option<(i128, u64)>,
    /// Whether the next period is looked at too.
    pair: bool,
}

impl Ledger {
    /// Of a reservation, all in ns, the period above zero.
    pub(super) fn new(budget_ns: u64, deadline_ns: u64, period_ns: u64, soft: bool) -> Ledger {
        Ledger {
            budget_ns,
            deadline_ns,
            period_ns: period_ns.max(1),
            soft,
            supply: Supply::default(),
            open: None,
            offset: None,
            pair: false,
        }
    }

    /// What is known so far.
    pub(super) fn supply(&self) -> &Supply {
        &self.supply
    }

    /// Takes the next look; they come in order of time, and the first shortly after the thread entered.
    pub(super) fn take(&mut self, look: &Look) {
        // Asleep when it was given the class, it has no period before it wakes.
        if look.deadline_ns == 0 {
            return;
        }
        match self.open {
            Some(open) if open.deadline_ns == look.deadline_ns => {}
            Some(open) => {
                let step = self.step(&open, look);
                self.learn_offset(&open, step, look);
                let base = self.base(step, look);
                self.close(&open, step, base, look);
                self.begin(base, look);
            }
            None => {
                self.offset = Some((self.began(look) - i128::from(look.at_ns), look.at_ns));
                self.begin(self.base(Closed::Slept, look), look);
            }
        }
        let late = self.is_late(look);
        if let Some(open) = &mut self.open {
            open.missed |= late;
            open.seen_ns = look.at_ns;
        }
    }

    /// When to look again, of `CLOCK_MONOTONIC`: behind the end of the period that goes on. Of short periods
    /// two in a row are looked at, and then none for a while.
    pub(super) fn next_look_ns(&mut self, now_ns: u64) -> u64 {
        self.pair = !self.pair;
        let soonest = now_ns.saturating_add(if self.pair { 0 } else { PAUSE_NS });
        let ends = self.open.zip(self.offset).map(|(open, (offset, _))| {
            let ends = i128::from(open.deadline_ns) - offset;
            u64::try_from(ends).unwrap_or(0)
        });
        // Nothing goes on in a period that has ended: the thread sleeps, or its budget comes late.
        let ends = ends.filter(|ends| *ends > now_ns);
        ends.unwrap_or(now_ns.saturating_add(self.period_ns)).max(soonest)
    }

    /// When the present period began, of the kernel's clock; unless the deadline moved by several periods at
    /// once, as it does where more than a budget was overrun.
    fn began(&self, look: &Look) -> i128 {
        i128::from(look.deadline_ns) - i128::from(self.deadline_ns)
    }

    /// A budget comes back when the period of the deadline before is over, and with a fresh deadline when
    /// a thread wakes: the clock stood there or further when this was seen.
    fn learn_offset(&mut self, open: &Open, step: Closed, look: &Look) {
        let known = self.known_offset(look.at_ns);
        let stood = match step {
            Closed::OnTheGrid(_) => {
                i128::from(open.deadline_ns) + i128::from(self.period_ns)
                    - i128::from(self.deadline_ns)
            }
            Closed::Slept => self.began(look),
            Closed::Unknown => return,
        };
        let least = stood - i128::from(look.at_ns);
        self.offset = Some((known.map_or(least, |known| known.max(least)), look.at_ns));
    }

    /// The offset at least, after the clocks may have come apart.
    fn known_offset(&self, at_ns: u64) -> Option<i128> {
        let (offset, as_of) = self.offset?;
        Some(offset - i128::from(at_ns.saturating_sub(as_of) / DRIFT))
    }

    /// The kernel's clock at a time, at least.
    fn kernel_clock(&self, at_ns: u64) -> i128 {
        self.known_offset(at_ns).map_or(i128::MIN, |offset| offset + i128::from(at_ns))
    }

    /// Behind its deadline, with budget left, and awake. Whoever wakes behind a deadline gets a
    /// new one, so it was awake at the deadline.
    fn is_late(&self, look: &Look) -> bool {
        look.runnable
            && look.left_ns > 0
            && self.kernel_clock(look.at_ns) > i128::from(look.deadline_ns)
    }

    fn begin(&mut self, base_ns: Option<u64>, look: &Look) {
        self.open = Some(Open {
            deadline_ns: look.deadline_ns,
            base_ns,
            waited_ns: look.waited_ns,
            missed: false,
            seen_ns: look.at_ns,
        });
    }

    /// Processor time when the period began of which this is the first look. With reclaiming the budget
    /// runs slower than time, so that it is known only shortly after the begin.
    fn base(&self, step: Closed, look: &Look) -> Option<u64> {
        if !self.soft {
            let gone = i128::from(self.budget_ns) - i128::from(look.left_ns);
            return u64::try_from(i128::from(look.cpu_ns) - gone).ok();
        }
        let since = self.kernel_clock(look.at_ns) - self.began(look);
        let fresh = since <= i128::from(self.period_ns / 16);
        (fresh && matches!(step, Closed::OnTheGrid(1) | Closed::Slept)).then_some(look.cpu_ns)
    }

    /// How the deadline came from the open one to this one.
    fn step(&self, open: &Open, look: &Look) -> Closed {
        let Some(step) = look.deadline_ns.checked_sub(open.deadline_ns) else {
            return Closed::Unknown;
        };
        if step % self.period_ns == 0 {
            return Closed::OnTheGrid(step / self.period_ns);
        }
        // Another period fits between the last look and the begin of this one.
        let unseen = self.began(look) - self.kernel_clock(open.seen_ns);
        if step < self.period_ns / 2 || unseen >= i128::from(self.period_ns) {
            return Closed::Unknown;
        }
        Closed::Slept
    }

    fn close(&mut self, open: &Open, step: Closed, base: Option<u64>, look: &Look) {
        let given = base.zip(open.base_ns).and_then(|(now, then)| now.checked_sub(then));
        match (step, given.filter(|given| *given > 0)) {
            (Closed::OnTheGrid(periods), Some(given)) if self.used_up(given, periods) => {
                self.supply.overruns += periods;
                self.count(given / periods.max(1), periods, true);
                self.stood(open, look);
            }
            // The thread yielded.
            (Closed::OnTheGrid(1) | Closed::Slept, Some(given)) if given <= self.most() => {
                self.count(given, 1, open.missed);
            }
            _ => return,
        }
        self.supply.missed += u64::from(open.missed);
    }

    /// Whether so many periods had all of their budget. The kernel's sums of a soft one are rounded.
    fn used_up(&self, given: u64, periods: u64) -> bool {
        let all = u128::from(self.budget_ns) * u128::from(periods);
        periods > 0 && u128::from(given) + u128::from(self.budget_ns / STEPS) >= all
    }

    /// The most that a single period can have been given.
    fn most(&self) -> u64 {
        if self.soft { self.period_ns } else { self.budget_ns }
    }

    fn count(&mut self, given: u64, periods: u64, wanted: bool) {
        self.supply.periods += periods;
        let width = (self.budget_ns / STEPS).max(1);
        let upper = given.div_ceil(width).saturating_mul(width);
        // The budget itself is a step.
        let upper = if given <= self.budget_ns { upper.min(self.budget_ns) } else { upper };
        *self.supply.steps.entry(upper).or_default() += periods;
        if wanted {
            *self.supply.wanted.entry(upper).or_default() += periods;
        }
    }

    /// While a budget is used up the thread is ready and does not run.
    fn stood(&mut self, open: &Open, look: &Look) {
        let stood = look.waited_ns.zip(open.waited_ns).map(|(now, then)| now.saturating_sub(then));
        if let Some(stood) = stood {
            *self.supply.throttled_ns.get_or_insert(0) += stood;
        }
    }
}

#[cfg(test)]
mod tests;
