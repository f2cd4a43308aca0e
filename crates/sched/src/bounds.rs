//! Utilisation bounds for rate-monotonic priorities.
//!
//! Owns: the verdicts; [`crate::exact_fraction`] compares. Must not: compare floating-point numbers. The
//! bound of Liu and Layland as a number is for display only.

use std::cmp::Ordering;

use crate::exact_fraction::{compare_utilisation_with_one, hyperbolic_holds, liu_layland_holds};
use crate::task::{Task, TaskSet};
use crate::verdict::{Refusal, Verdict};

/// Liu and Layland, JACM 1973: feasible under rate-monotonic priorities if the utilisation is at
/// most n (2^(1/n) - 1). Sufficient; needs deadlines no shorter than periods, and neither jitter,
/// blocking, suspension nor bursts.
#[must_use]
pub fn liu_layland(set: &TaskSet) -> Verdict {
    verdict(set, liu_layland_holds)
}

/// Bini, Buttazzo and Buttazzo, IEEE TC 2003: feasible if the product of (1 + U) is at most 2.
/// Accepts all that [`liu_layland`] accepts, under the same conditions.
#[must_use]
pub fn hyperbolic(set: &TaskSet) -> Verdict {
    verdict(set, hyperbolic_holds)
}

/// Whether no period is shorter than that of a task of higher priority, which both bounds take for
/// granted.
#[must_use]
pub fn is_rate_monotonic(set: &TaskSet) -> bool {
    set.by_priority().windows(2).all(|pair| {
        let (upper, lower) = (&set.tasks()[pair[0]], &set.tasks()[pair[1]]);
        upper.period <= lower.period
    })
}

fn verdict(set: &TaskSet, holds: fn(&[Task]) -> bool) -> Verdict {
    let plain =
        |t: &Task| t.deadline >= t.period && t.jitter == 0 && t.blocking == 0 && t.suspension == 0;
    if compare_utilisation_with_one(set.tasks().iter()) == Ordering::Greater {
        Verdict::NoBound
    } else if set.is_plain() && set.tasks().iter().all(plain) && holds(set.tasks()) {
        Verdict::Feasible
    } else {
        Verdict::Unknown(Refusal::NotExact)
    }
}

/// n (2^(1/n) - 1), for display; 1 of no task.
#[must_use]
pub fn liu_layland_limit(tasks: u32) -> f64 {
    if tasks == 0 {
        return 1.0;
    }
    let n = f64::from(tasks);
    n * (2f64.powf(1.0 / n) - 1.0)
}
