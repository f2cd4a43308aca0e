//! Admission to the deadline class.
//!
//! Owns: the sum that the kernel compares. Must not: know who asks, or what else the class demands.

use std::cmp::Ordering;

use crate::exact_fraction::{compare_shares, greatest_common_divisor};
use crate::task::{Task, TaskSet};

/// A fraction in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fraction {
    /// Above the line.
    pub numerator: u64,
    /// Below the line, not 0.
    pub denominator: u64,
}

/// Whether the class takes all of these reservations, budget and period being cost and period of
/// the tasks: if their sum is at most `cap` on each of `cpus` processors (Documentation/scheduler/
/// sched-deadline.rst, section 4: 95 % unless changed). `None` if `cap` times `cpus` has more than 64
/// bits, or `cap` divides by 0.
#[must_use]
pub fn admits(set: &TaskSet, cap: Fraction, cpus: u64) -> Option<bool> {
    let all = cap.numerator.checked_mul(cpus).filter(|_| cap.denominator > 0)?;
    let shares = set.tasks().iter().map(|task| (task.cost, task.period));
    Some(compare_shares(shares, (all, cap.denominator)) != Ordering::Greater)
}

/// The utilisation of a set; `None` if its terms have more than 64 bits.
#[must_use]
pub fn utilisation(set: &TaskSet) -> Option<Fraction> {
    let none = Fraction { numerator: 0, denominator: 1 };
    set.tasks().iter().try_fold(none, |sum, task: &Task| {
        let common = greatest_common_divisor(sum.denominator, task.period);
        let denominator = (sum.denominator / common).checked_mul(task.period)?;
        let before = sum.numerator.checked_mul(task.period / common)?;
        let added = task.cost.checked_mul(sum.denominator / common)?;
        let numerator = before.checked_add(added)?;
        let common = greatest_common_divisor(numerator, denominator);
        Some(Fraction { numerator: numerator / common, denominator: denominator / common })
    })
}
