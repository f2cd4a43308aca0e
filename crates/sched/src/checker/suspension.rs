//! Bounds under EDF with suspension, checked by substitution.
//!
//! Owns: what [`edf_suspension`] checks: that all bounds hold if all hold until one of them ends. Must
//! not: search.

use crate::task::TaskSet;
use crate::verdict::{Analysis, ResponseBound};

use super::{Defect, check_verdict};

/// Checks an answer of [`crate::edf::suspension::response_times`].
///
/// # Errors
/// The first property that does not hold.
pub fn edf_suspension(set: &TaskSet, analysis: &Analysis) -> Result<(), Defect> {
    let bounds = analysis.from_arrival();
    let known: Option<Vec<u64>> = bounds.iter().copied().collect();
    for (position, (task, result)) in set.tasks().iter().zip(&analysis.tasks).enumerate() {
        check_verdict(position, task, result)?;
        let ResponseBound::Bounded(bound) = result.outcome else { continue };
        // The bounds hold together or not at all.
        let known = known.as_ref().ok_or(Defect::Verdict { task: position })?;
        let plain = task.jitter == 0 && task.blocking == 0 && task.np == 0 && task.last == 0;
        if !plain || task.deadline > task.period || bound.from_arrival > task.deadline {
            return Err(Defect::Numbers { task: position });
        }
        let mut sum = u128::from(task.cost) + u128::from(task.suspension);
        for (other, bound_of) in set
            .tasks()
            .iter()
            .zip(known)
            .enumerate()
            .filter_map(|(at, other)| (at != position).then_some(other))
        {
            // Arrivals after -R and up to x, or up to the last that is due no later.
            let until = i128::from(bound.from_arrival)
                .min(i128::from(task.deadline) - i128::from(other.deadline));
            let window = until + i128::from(*bound_of);
            let jobs = (window + i128::from(other.period) - 1).div_euclid(other.period.into());
            sum += u128::try_from(jobs).unwrap_or(0) * u128::from(other.cost);
        }
        if sum > u128::from(bound.from_arrival) {
            return Err(Defect::NotFixed { task: position, point: 0 });
        }
    }
    Ok(())
}
