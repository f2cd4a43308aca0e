//! Cases about chains across processors, and about locks between them.
//!
//! Owns: the answers' shapes. Must not: compute a bound.

use hourglass_tasks::corpus::{Case, ResultValue};

use crate::chains::holistic::{self, Holistic};
use crate::chains::{ChainSystem, Flow, Service, Step};
use crate::fixed_priority::TimeModel;
use crate::spin::{self, SpinBound};
use crate::task::CriticalSection;
use crate::verdict::Verdict;

use super::{BadCase, bounds_of, is_feasible, missing, task_set, time_model};

/// The larger number is the higher priority, and equal numbers are equal.
fn ranks(case: &Case) -> Vec<u64> {
    let all = case.flows.iter().flat_map(|flow| &flow.steps);
    let mut ranks: Vec<u64> = all.map(|(_, _, priority)| *priority).collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

pub(crate) fn holistic(case: &Case, name: &str) -> Result<ResultValue, BadCase> {
    let ranks = ranks(case);
    let mut processors: Vec<&str> = Vec::new();
    let mut flows = Vec::new();
    for of in &case.flows {
        let mut steps = Vec::new();
        for (cost, on, priority) in &of.steps {
            let known = processors.iter().position(|known| known == on);
            let processor = known.unwrap_or(processors.len());
            if known.is_none() {
                processors.push(on);
            }
            let rank = ranks.binary_search(priority).unwrap_or(0);
            let priority = u32::try_from(rank).unwrap_or(u32::MAX);
            steps.push(Step { cost: *cost, bcet: 0, suspension: 0, processor, priority });
        }
        flows.push(Flow { period: of.t, deadline: of.d, jitter: 0, steps });
    }
    let service = match case.variant.as_deref() {
        Some(text) if text.starts_with("non") => Service::NonPreemptive,
        _ => Service::Preemptive,
    };
    let system = ChainSystem::new(flows, vec![service; processors.len()])
        .map_err(|why| BadCase::NoAnswer(why.to_string()))?;
    let time: TimeModel = time_model(case)?;
    answer_of_chains(&holistic::analyse(&system, time), name)
}

fn answer_of_chains(found: &Holistic, name: &str) -> Result<ResultValue, BadCase> {
    match name {
        "end_to_end" | "r" | "wcrt" => Ok(bounds_of(found.end_to_end())),
        "steps" | "r_steps" => {
            let of = |flow: &holistic::FlowResult| {
                let bound = |step: &holistic::StepResult| step.outcome.response();
                let bounds = flow.steps.iter().map(|step| bound(step).map(|r| r.from_arrival));
                bounds_of(bounds.collect())
            };
            Ok(ResultValue::List(found.flows.iter().map(of).collect()))
        }
        "schedulable" => Ok(is_feasible(found.verdict())),
        _ => Err(BadCase::Asked(name.to_owned())),
    }
}

/// One lock; each job asks for it once, for `cs`. `p` is the processor, the order the priority.
pub(crate) fn spin_locks(case: &Case, name: &str) -> Result<ResultValue, BadCase> {
    let length = missing(case.cs, "cs")?;
    let mut tasks = Vec::new();
    let mut processors: Vec<u64> = Vec::new();
    for (position, of) in case.tasks.iter().enumerate() {
        let set = task_set(std::slice::from_ref(of))?;
        let on = missing(of.p, "p")?;
        let known = processors.iter().position(|known| *known == on);
        let cpu = known.unwrap_or(processors.len());
        if known.is_none() {
            processors.push(on);
        }
        let priority = u32::try_from(case.tasks.len() - position).unwrap_or(u32::MAX);
        let section = CriticalSection { resource: 0, count: 1, length };
        let task = set.tasks()[0].with_priority(priority).with_cpu(cpu);
        tasks.push(task.with_critical_sections(&[section]));
    }
    let bounds = |account: SpinBound| {
        spin::analyse(&tasks, account).map_err(|why| BadCase::NoAnswer(why.to_string()))
    };
    match name {
        "r_inflation" | "r" => Ok(bounds_of(bounds(SpinBound::Inflation)?.from_arrival())),
        // All sections are of one length, for which counting finds what the program does.
        "r_ilp" | "r_counting" => Ok(bounds_of(bounds(SpinBound::Counting)?.from_arrival())),
        "schedulable" => {
            let accounts = [SpinBound::Inflation, SpinBound::Counting];
            let found = accounts.map(|account| bounds(account).map(|found| found.verdict()));
            let [inflated, counted] = found;
            Ok(ResultValue::Bool([inflated?, counted?].contains(&Verdict::Feasible)))
        }
        _ => Err(BadCase::Asked(name.to_owned())),
    }
}
