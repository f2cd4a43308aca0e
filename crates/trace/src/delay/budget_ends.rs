//! Which delays of a thread of the deadline class began as its budget was used up.
//!
//! The kernel's record has no event for that: the thread leaves its CPU, could go on, and is back when the kernel has filled the
//! budget. What it ran by then tells it from a CPU that went to another thread of the class, and from a job that ends by
//! `sched_yield`. Where what was left is not known, it is taken for whole: what is named here was used up, and some ends
//! may be missing.

use hourglass_documents::document::GapReport;

use super::{Delay, RunSegment};
use crate::GapStatistics;
use crate::model::Budget;

/// The kernel's account leaves interrupts out, so that it ends by such a part later.
const PART: i128 = 64;

#[derive(Clone, Debug)]
pub struct BudgetEnds {
    budget: Budget,
    /// Less than nothing after an end, which is at a tick.
    left_ns: i128,
    /// When it is filled again; `None` before that was seen once.
    deadline_ns: Option<i128>,
    lengths: GapStatistics,
}

impl BudgetEnds {
    pub fn of(budget: Budget) -> BudgetEnds {
        let left_ns = i128::from(budget.budget_ns);
        BudgetEnds { budget, left_ns, deadline_ns: None, lengths: GapStatistics::default() }
    }

    /// The thread has this budget from now on; what was counted stays.
    pub fn change(&mut self, budget: Budget) {
        if self.budget != budget {
            let lengths = std::mem::take(&mut self.lengths);
            *self = BudgetEnds { lengths, ..BudgetEnds::of(budget) };
        }
    }

    pub fn ran(&mut self, segment: &RunSegment) {
        let ran = i128::from(segment.to_ns) - i128::from(segment.from_ns);
        self.left_ns = self.left_ns.saturating_sub(ran);
    }

    /// Whether the delay began as the budget was used up.
    pub fn delayed(&mut self, delay: &Delay) -> bool {
        let [full, period] = [self.budget.budget_ns, self.budget.period_ns].map(i128::from);
        let [from, to] = [delay.from_ns, delay.to_ns].map(i128::from);
        let fill = |at: i128| (full, Some(at.saturating_add(period)));
        if delay.after_wait {
            // The kernel's wake-up rule: what is left is too much until the deadline, or that is past.
            let until = self.deadline_ns.map_or(0, |deadline| deadline.saturating_sub(from));
            if until <= 0 || self.left_ns.saturating_mul(period) > until.saturating_mul(full) {
                (self.left_ns, self.deadline_ns) = fill(from);
            }
            return false;
        }
        if self.left_ns > full / PART {
            if self.deadline_ns.is_none_or(|deadline| deadline <= to) {
                (self.left_ns, self.deadline_ns) = fill(to);
            }
            return false;
        }
        // What it took too much is taken from the next budgets.
        let debt = -self.left_ns.min(0);
        let charged = debt - debt.saturating_add(full) / PART;
        let fills = charged.max(0).checked_div(full).unwrap_or(0) + 1;
        self.left_ns = fills.saturating_mul(full).saturating_sub(debt);
        let filled = self
            .deadline_ns
            .filter(|at| (0..period).contains(&to.saturating_sub(*at)))
            .unwrap_or(to);
        self.deadline_ns = Some(filled.saturating_add(fills.saturating_mul(period)));
        self.lengths.push(delay.length_ns());
        true
    }

    pub fn lengths(&self) -> GapReport {
        self.lengths.report()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IntervalStart;

    const MS: i64 = 1_000_000;
    /// 2 ms in 10 ms.
    const BUDGET: Budget = Budget { budget_ns: 2_000_000, period_ns: 10_000_000 };

    /// What a thread does, in thousandths of a millisecond.
    #[derive(Clone, Copy, Debug)]
    enum Does {
        Runs(i64),
        /// The CPU is taken from it.
        Loses(i64),
        /// It waits, and then for the CPU.
        Waits(i64, i64),
    }
    use Does::{Loses, Runs, Waits};

    fn ends(all: &[Does]) -> Vec<bool> {
        let (mut ends, mut now, mut found) = (BudgetEnds::of(BUDGET), 0, Vec::new());
        let us = |us: i64| us * MS / 1_000;
        for does in all {
            let (Runs(length) | Loses(length) | Waits(_, length)) = *does;
            let wait = if let Waits(wait, _) = *does { us(wait) } else { 0 };
            let (from_ns, to_ns) = (now + wait, now + wait + us(length));
            let after_wait = matches!(does, Waits(..));
            match does {
                Runs(_) => {
                    let onset = IntervalStart::Gap;
                    ends.ran(&RunSegment { from_ns, to_ns, cpu: 1, onset });
                }
                _ => found.push(ends.delayed(&Delay {
                    from_ns,
                    to_ns,
                    cpu: 1,
                    after_wait,
                    occupants: Vec::new(),
                })),
            }
            now = to_ns;
        }
        assert_eq!(ends.lengths().count, found.iter().filter(|end| **end).count() as u64);
        found
    }

    #[test]
    fn a_used_up_budget_is_told_from_other_losses_of_the_cpu() {
        let rows: &[(&str, &[Does], &[bool])] = &[
            ("never waits", &[Runs(2_000), Loses(8_000), Runs(2_000), Loses(8_000)], &[true; 2]),
            (
                "at the tick: 4 ms, and so a period less",
                &[Runs(4_000), Loses(6_000), Runs(2_000), Loses(18_000), Runs(2_000), Loses(8_000)],
                &[true; 3],
            ),
            (
                "interrupts within",
                &[Runs(1_990), Loses(8_010), Runs(1_990), Loses(8_010)],
                &[true; 2],
            ),
            (
                "another one of the class within the budget",
                &[Waits(500, 0), Runs(1_000), Loses(500), Runs(1_000), Loses(7_500)],
                &[false, false, true],
            ),
            (
                "jobs that yield",
                &[Runs(1_000), Loses(9_000), Runs(1_000), Loses(9_000), Runs(1_000), Loses(9_000)],
                &[false; 3],
            ),
            (
                "jobs that wait",
                &[Runs(1_000), Waits(9_000, 0), Runs(1_500), Waits(8_500, 0), Runs(1_500)],
                &[false; 2],
            ),
            (
                "one longer than its budget",
                &[Waits(9_000, 20), Runs(2_000), Loses(8_000), Runs(500), Waits(9_500, 0)],
                &[false, true, false],
            ),
            (
                "a short wait fills no budget",
                &[Waits(9_000, 0), Runs(1_800), Waits(100, 0), Runs(200), Loses(7_900)],
                &[false, false, true],
            ),
        ];
        for (name, does, expected) in rows {
            assert_eq!(ends(does), *expected, "{name}");
        }
    }

    #[test]
    fn another_budget_counts_from_then_on() {
        let mut ends = BudgetEnds::of(BUDGET);
        let ran =
            |ms: i64| RunSegment { from_ns: 0, to_ns: ms * MS, cpu: 0, onset: IntervalStart::Gap };
        let lost = |ms: i64| Delay {
            from_ns: 0,
            to_ns: ms * MS,
            cpu: 0,
            after_wait: false,
            occupants: Vec::new(),
        };
        ends.ran(&ran(2));
        assert!(ends.delayed(&lost(8)));
        ends.change(Budget { budget_ns: 5_000_000, ..BUDGET });
        ends.ran(&ran(2));
        assert!(!ends.delayed(&lost(1)));
        assert_eq!((ends.lengths().count, ends.lengths().total_ns), (1, 8_000_000));
        // Nothing that the kernel could say is too much.
        let most = RunSegment { from_ns: i64::MIN, to_ns: i64::MAX, ..ran(0) };
        for budget_ns in [0, 1, u64::MAX] {
            ends.change(Budget { budget_ns, period_ns: u64::MAX });
            ends.ran(&most);
            ends.delayed(&Delay { from_ns: i64::MIN, to_ns: i64::MAX, ..lost(0) });
        }
    }
}
