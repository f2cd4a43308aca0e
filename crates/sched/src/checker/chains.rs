//! Bounds of chains, checked by substitution: each processor's points, and that the jitters they
//! rest on are those that the bounds imply.
//!
//! Owns: what [`holistic`] checks. Must not: search.

use crate::chains::holistic::{Holistic, SHARED, sections};
use crate::chains::{ChainSystem, Service};
use crate::fixed_priority::TimeModel;
use crate::verdict::ResponseBound;

use super::{Defect, fixed_priority, global_fixed_priority};

/// Checks an answer of [`crate::chains::holistic::analyse`]. The task of a defect is the chain's
/// position.
///
/// # Errors
/// The first property that does not hold.
pub fn holistic(system: &ChainSystem, time: TimeModel, found: &Holistic) -> Result<(), Defect> {
    for processor in &found.processors {
        let Some((flow, step)) = processor.steps.first() else { continue };
        let at = system.flows()[*flow].steps[*step].processor;
        let (set, analysis, service) = (&processor.set, &processor.analysis, system.services()[at]);
        match service {
            Service::Shared(cpus) => global_fixed_priority(set, cpus, SHARED, analysis)?,
            _ => fixed_priority(set, sections(service), time, analysis)?,
        }
        for (position, (flow, step)) in processor.steps.iter().enumerate() {
            let defect = Defect::Numbers { task: *flow };
            let task = &processor.set.tasks()[position];
            let of = &system.flows()[*flow];
            let result = &found.flows[*flow].steps[*step];
            let earliest = earliest(system, *flow, *step);
            let ends = system.before(*flow, *step).iter().map(|before| {
                let bound = found.flows[*flow].steps[*before].outcome.response()?;
                Some(bound.from_arrival)
            });
            let before = match ends.collect::<Option<Vec<u64>>>() {
                Some(ends) if ends.is_empty() => Some(of.jitter),
                ends => ends.and_then(|ends| ends.into_iter().max()?.checked_sub(earliest)),
            };
            let ResponseBound::Bounded(bound) = result.outcome else { continue };
            let local = processor.analysis.tasks[position].outcome.response();
            let same = local.and_then(|local| local.from_arrival.checked_add(earliest));
            let holds = before == Some(task.jitter)
                && same == Some(bound.from_arrival)
                && task.cost == of.steps[*step].cost
                && task.suspension == of.steps[*step].suspension
                && task.period == of.period
                && task.priority == of.steps[*step].priority;
            if !holds {
                return Err(defect);
            }
        }
        check_rivals(system, at, time, found)?;
    }
    Ok(())
}

/// No path to a step is done earlier than the longest of the shortest times along it.
fn earliest(system: &ChainSystem, flow: usize, step: usize) -> u64 {
    let mut at: Vec<u64> = Vec::new();
    for other in 0..=step {
        let through =
            |before: &usize| at[*before].saturating_add(system.flows()[flow].steps[*before].bcet);
        at.push(system.before(flow, other).iter().map(through).max().unwrap_or(0));
    }
    at[step]
}

/// A step with a bound has all steps beside it that may delay it, or is blocked by those left out.
fn check_rivals(
    system: &ChainSystem,
    at: usize,
    time: TimeModel,
    found: &Holistic,
) -> Result<(), Defect> {
    let beside = |processor: &&crate::chains::holistic::Processor| {
        let first = processor.steps.first();
        first.is_some_and(|(flow, step)| system.flows()[*flow].steps[*step].processor == at)
    };
    let Some(processor) = found.processors.iter().find(beside) else { return Ok(()) };
    for (flow, step) in system.on(at) {
        if processor.steps.contains(&(flow, step)) {
            continue;
        }
        let left_out = &system.flows()[flow].steps[step];
        let begun = left_out.cost - u64::from(time == TimeModel::Discrete);
        for (position, (other, _)) in processor.steps.iter().enumerate() {
            let task = &processor.set.tasks()[position];
            let lower = processor.set.tasks().iter().filter(|t| t.priority < task.priority);
            let lower = lower.map(|t| t.cost - u64::from(time == TimeModel::Discrete)).max();
            let covered = system.services()[at] != Service::NonPreemptive
                || task.blocking + lower.unwrap_or(0) >= begun;
            let bounded = processor.analysis.tasks[position].outcome.response().is_some();
            if bounded && (task.priority <= left_out.priority || !covered) {
                return Err(Defect::Missing { task: *other, point: 0 });
            }
        }
    }
    Ok(())
}
