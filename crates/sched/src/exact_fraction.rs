//! Utilisations and periods of tasks, compared exactly ([`hourglass_tasks::exact_fraction`]).

use std::cmp::Ordering;

pub(crate) use hourglass_tasks::exact_fraction::*;

use crate::task::Task;

/// Compares the sum of `cost / period` with 1. Periods are not 0.
#[must_use]
pub fn compare_utilisation_with_one<'a>(tasks: impl Iterator<Item = &'a Task> + Clone) -> Ordering {
    compare_shares(tasks.map(|task| (task.cost, task.period)), (1, 1))
}

/// Whether the product of (1 + `cost / period`) is at most 2 (Bini and Buttazzo, 2003).
#[must_use]
pub fn hyperbolic_holds(tasks: &[Task]) -> bool {
    let start = (BigNatural::from_u64(1), BigNatural::from_u64(2));
    let (grown, doubled) = tasks.iter().fold(start, |(grown, doubled), task| {
        let period = BigNatural::from_u64(task.period);
        (grown.times(&period.plus(&BigNatural::from_u64(task.cost))), doubled.times(&period))
    });
    grown.compare(&doubled) != Ordering::Greater
}

/// Whether the utilisation is at most n (2^(1/n) - 1) (Liu and Layland, 1973). With a utilisation
/// of a/b, that is (a + n b)^n <= 2 (n b)^n.
#[must_use]
pub fn liu_layland_holds(tasks: &[Task]) -> bool {
    if compare_utilisation_with_one(tasks.iter()) == Ordering::Greater {
        return false;
    }
    let (numerator, denominator) = exact_sum(tasks.iter().map(|task| (task.cost, task.period)));
    let count = tasks.len();
    let scaled = denominator.times(&BigNatural::from_u64(count as u64));
    let left = numerator.plus(&scaled).power(count);
    let right = scaled.power(count).times(&BigNatural::from_u64(2));
    left.compare(&right) != Ordering::Greater
}

/// The least common multiple of the periods; `None` if it has more than 64 bits.
#[must_use]
pub fn hyperperiod<'a>(tasks: impl Iterator<Item = &'a Task>) -> Option<u64> {
    tasks.map(|task| task.period).try_fold(1u64, |multiple, period| {
        (multiple / greatest_common_divisor(multiple, period)).checked_mul(period)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(cost: u64, period: u64) -> Task {
        Task::new(cost, period, period).unwrap()
    }

    /// Halves, thirds and sixths make one, which no binary fraction says.
    #[test]
    fn one_is_one() {
        let tasks = [task(1, 2), task(1, 3), task(1, 6)];
        assert_eq!(compare_utilisation_with_one(tasks.iter()), Ordering::Equal);
        let more = [task(1, 2), task(1, 3), task(1, 6), task(1, u64::MAX)];
        assert_eq!(compare_utilisation_with_one(more.iter()), Ordering::Greater);
        let less = [task(1, 2), task(1, 3), task((u64::MAX / 6) - 1, u64::MAX)];
        assert_eq!(compare_utilisation_with_one(less.iter()), Ordering::Less);
    }

    #[test]
    fn huge_costs_are_compared() {
        let tasks = vec![task(u64::MAX, 1); 5];
        assert_eq!(compare_utilisation_with_one(tasks.iter()), Ordering::Greater);
    }

    /// Bini and Buttazzo 2003: 1/2 and 1/3 pass (1 + U1)(1 + U2) = 2 and fail Liu and Layland.
    #[test]
    fn the_hyperbolic_bound_accepts_its_edge() {
        let tasks = [task(1, 2), task(1, 3)];
        assert!(hyperbolic_holds(&tasks) && !liu_layland_holds(&tasks));
        assert!(!hyperbolic_holds(&[task(1, 2), task(1_000_001, 3_000_000)]));
        assert!(liu_layland_holds(&[task(1, 1)]) && !liu_layland_holds(&[task(2, 1)]));
    }

    /// 2 (sqrt 2 - 1) = 0.828427124...
    #[test]
    fn the_bound_of_liu_and_layland_is_sharp() {
        assert!(liu_layland_holds(&vec![task(414_213_562, 1_000_000_000); 2]));
        assert!(!liu_layland_holds(&vec![task(414_213_563, 1_000_000_000); 2]));
        let many: Vec<Task> = (0..30).map(|i| task(1_000_003 + i, 45_000_017 + i * i)).collect();
        assert!(liu_layland_holds(&many), "0.667 is below ln 2");
    }

    #[test]
    fn hyperperiods_that_do_not_fit_are_not_wrapped() {
        assert_eq!(hyperperiod([task(1, 4), task(1, 6)].iter()), Some(12));
        assert_eq!(hyperperiod([task(1, u64::MAX), task(1, u64::MAX - 1)].iter()), None);
    }
}
