//! Busy times of task graphs, checked by substitution: with the event models that the answer itself
//! implies, each busy time satisfies its equation, the window is closed, and the response is the
//! largest.
//!
//! Owns: what [`cpa`] checks. Must not: search.

use crate::cpa::{Cpa, CpaSystem, Scheduler, busy_window, models};
use crate::effort::StepLimit;

use super::Defect;

/// Checks an answer of [`crate::cpa::analyse`].
///
/// # Errors
/// The first property that does not hold.
pub fn cpa(system: &CpaSystem, found: &Cpa) -> Result<(), Defect> {
    let models = models(system, found.propagation, &found.tasks);
    let mut effort = StepLimit::default();
    for (task, result) in found.tasks.iter().enumerate() {
        let Ok(response) = result.response else { continue };
        let numbers = Defect::Numbers { task };
        let own = models[task].as_ref().ok_or(numbers)?;
        let mut longest = 0;
        for (point, time) in result.busy.iter().enumerate() {
            let jobs = point as u64 + 1;
            let needed = busy_window::equation(system, &models, task, jobs, *time, &mut effort);
            if needed.map_err(|_| numbers)? != *time {
                return Err(Defect::NotFixed { task, point });
            }
            let distance = own.distance(jobs).map_err(|_| numbers)?;
            longest = longest.max(time.saturating_sub(distance));
        }
        let end = match system.schedulers()[system.tasks()[task].processor] {
            Scheduler::NonPreemptive => {
                busy_window::window(system, &models, task, &mut effort).map_err(|_| numbers)?
            }
            _ => result.busy.last().copied().ok_or(Defect::Window { task })?,
        };
        let next = own.distance(result.busy.len() as u64 + 1).map_err(|_| numbers)?;
        if next < end {
            return Err(Defect::Window { task });
        }
        if longest != response {
            return Err(Defect::Bound { task });
        }
    }
    Ok(())
}
