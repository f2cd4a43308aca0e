//! Threads of the deadline class: a job that yields gives up what is left of its budget, and the next one begins when the kernel
//! fills it again (`yield_task_dl` and `dl_task_timer` in `kernel/sched/deadline.c`). Neither is a wait, nor a waking.

use super::activity::{Burst, length};

/// In place of a kernel's state: a thread of the deadline class that could run, and left its CPU to none of that class.
pub(super) const THROTTLED: u64 = 1 << 32;

/// What the deadline class gives a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Time on a CPU in each period, ns.
    pub budget_ns: u64,
    /// ns.
    pub period_ns: u64,
}

/// A thread that is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowedThread {
    pub tid: u32,
    /// Where it is of the deadline class.
    pub budget: Option<Budget>,
    /// Who has more comes before who has less.
    pub urgency: u8,
    /// Threads of different ones share no CPU.
    pub group: u32,
}

impl From<u32> for FollowedThread {
    fn from(tid: u32) -> FollowedThread {
        FollowedThread { tid, budget: None, urgency: 0, group: 0 }
    }
}

/// What is left of a budget.
#[derive(Clone, Copy, Debug)]
pub(super) struct BudgetAccount {
    budget: Budget,
    /// When it was filled, and what the burst had run by then; `None` before that was seen.
    filled: Option<(i64, u64)>,
    /// What a burst took too much of the budget before, which ends at a tick.
    debt_ns: u64,
}

impl BudgetAccount {
    pub(super) fn of(budget: Budget) -> BudgetAccount {
        BudgetAccount { budget, filled: None, debt_ns: 0 }
    }

    pub(super) fn was_filled_at(&self, ns: i64) -> bool {
        self.filled.is_some_and(|(filled_ns, _)| filled_ns == ns)
    }

    /// Events are missing.
    pub(super) fn lose(&mut self) {
        *self = BudgetAccount::of(self.budget);
    }

    /// Whether the burst `last`, or what was seen first of the thread, goes on: it was taken off its CPU at `left_ns` and is
    /// back at `ns`, since its budget was used up, or another one of the class came first and it could not be filled yet.
    pub(super) fn goes_on(&mut self, last: Option<&Burst>, left_ns: i64, ns: i64) -> bool {
        let Budget { budget_ns, period_ns } = self.budget;
        let last = last.filter(|last| last.end_ns == left_ns);
        let waited =
            last.filter(|last| self.filled.is_none_or(|(filled_ns, _)| last.at_ns > filled_ns));
        if let Some(last) = waited {
            (self.filled, self.debt_ns) = (Some((last.at_ns, 0)), 0);
        }
        let Some((filled_ns, before_ns)) = self.filled else {
            // The job may have begun before it was seen.
            self.filled = Some((ns, 0));
            return true;
        };
        if length(filled_ns, ns) < period_ns - period_ns / 8 {
            return true;
        }
        let used_ns = last.map_or(0, |last| last.run_ns.saturating_sub(before_ns));
        let had_ns = budget_ns.saturating_sub(self.debt_ns);
        // The kernel's account leaves out interrupts, and is no later than its events.
        let used_up = last.filter(|_| used_ns >= had_ns - had_ns / 64);
        self.debt_ns = used_up.map_or(0, |_| used_ns.saturating_sub(had_ns));
        self.filled = Some((ns, used_up.map_or(0, |last| last.run_ns)));
        used_up.is_some()
    }
}
