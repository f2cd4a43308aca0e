//! Verifies answers by substitution: no search, no fixed-point iteration.
//!
//! Owns: [`Defect`] and one check a policy. It builds every equation anew from the task set, with
//! 128-bit sums, and shares no code with the searches but the comparison of utilisations. Must not:
//! find anything.

mod bursts;
mod chains;
mod cpa;
mod demand;
mod edf;
mod fixed_priority;
mod global;
mod phases;
mod shared;
mod spin;
mod supplied;
mod suspension;
mod thresholds;
mod whole_budgets;

pub use bursts::{bursts, bursty_demand};
pub use chains::holistic;
pub use cpa::cpa;
pub use demand::demand;
pub use edf::edf;
pub use fixed_priority::fixed_priority;
pub use global::{global_edf, global_fixed_priority};
pub use phases::phases;
pub use shared::shared_demand;
pub use spin::spin_counting;
pub use supplied::supplied_demand;
pub use suspension::edf_suspension;
pub use thresholds::thresholds;
pub use whole_budgets::whole_budgets;

use crate::task::Task;
use crate::verdict::{ResponseBound, TaskResult, Verdict};

/// A property that an answer violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Defect {
    /// A point does not satisfy its equation.
    #[error("task {task}: point {point} is not a fixed point")]
    NotFixed {
        /// Position of the task.
        task: usize,
        /// Position of the point among the task's.
        point: usize,
    },
    /// A case of the busy window is missing.
    #[error("task {task}: a case after point {point} is missing")]
    Missing {
        /// Position of the task.
        task: usize,
        /// Position of the point before the gap.
        point: usize,
    },
    /// The window is longer than stated.
    #[error("task {task}: the busy window does not end where it is said to")]
    Window {
        /// Position of the task.
        task: usize,
    },
    /// The bound is not the largest of its points.
    #[error("task {task}: the bound does not follow from its points")]
    Bound {
        /// Position of the task.
        task: usize,
    },
    /// The verdict does not follow from the bound.
    #[error("task {task}: the verdict does not follow from the bound")]
    Verdict {
        /// Position of the task.
        task: usize,
    },
    /// The numbers of the set do not fit the equations.
    #[error("task {task}: a number does not fit")]
    Numbers {
        /// Position of the task.
        task: usize,
    },
}

pub(crate) fn check_verdict(
    position: usize,
    task: &Task,
    result: &TaskResult,
) -> Result<(), Defect> {
    let holds = match (result.outcome, result.verdict) {
        (ResponseBound::Bounded(bound), Verdict::Feasible) => bound.from_arrival <= task.deadline,
        (ResponseBound::Bounded(bound), Verdict::Infeasible(_) | Verdict::Unknown(_)) => {
            bound.from_arrival > task.deadline
        }
        (ResponseBound::Unbounded, Verdict::NoBound) => true,
        (ResponseBound::Unknown(a), Verdict::Unknown(b)) => a == b,
        _ => false,
    };
    if holds { Ok(()) } else { Err(Defect::Verdict { task: position }) }
}

pub(crate) fn released_before(window: u128, jitter: u64, period: u64) -> u128 {
    (window + u128::from(jitter)).div_ceil(period.into())
}

pub(crate) fn released_by(instant: u128, jitter: u64, period: u64) -> u128 {
    (instant + u128::from(jitter)) / u128::from(period) + 1
}
