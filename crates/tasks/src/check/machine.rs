//! Checks of the machine, and of everything that names its CPUs.

use std::collections::BTreeMap;

use hourglass_documents::CpuSet;
use hourglass_time::Span;

use super::{CheckResult, above_zero, known_name, not_negative, task_names};
use crate::error::Location;
use crate::{Fraction, Overheads, TaskSet};

pub(super) fn check(set: &TaskSet) -> CheckResult {
    let all = set.cpus();
    let machine = Location::part("machine");
    if all.is_empty() {
        return Err(machine.bad("cpus", "\"\"", "a machine has a CPU at least"));
    }
    let mut placed = CpuSet::default();
    for core in &set.machine.cores {
        exist(&machine, "cores", core, &all)?;
        for cpu in core.iter() {
            if placed.contains(cpu) {
                let reason = "a CPU belongs to one core only";
                return Err(machine.bad("cores", format!("CPU {cpu}"), reason));
            }
            placed.insert(cpu);
        }
    }
    overheads(&set.machine.overheads)?;
    for task in &set.tasks {
        let place = Location::named("task", &task.name);
        exist(&place, "cpus", task.cpus.as_ref().unwrap_or(&all), &all)?;
    }
    for server in &set.servers {
        let place = Location::named("server", &server.name);
        exist(&place, "cpus", server.cpus.as_ref().unwrap_or(&all), &all)?;
    }
    interference(set)
}

fn exist(place: &Location, key: &str, wanted: &CpuSet, all: &CpuSet) -> CheckResult {
    if wanted.is_empty() {
        let reason = "no CPU at all; leave it out for all of the machine";
        return Err(place.bad(key, "\"\"", reason));
    }
    let missing = wanted.difference(all);
    if missing.is_empty() {
        return Ok(());
    }
    let reason =
        format!("the machine has no CPU {missing}; its CPUs are {all}, as machine.cpus says");
    Err(place.bad(key, format!("\"{wanted}\""), &reason))
}

fn overheads(overheads: &Overheads) -> CheckResult {
    let place = Location::part("machine.overheads");
    let zero = Span::ZERO;
    for (key, value) in [
        ("context_switch", overheads.context_switch),
        ("tick_cost", overheads.tick_cost),
        ("cache_delay", overheads.cache_delay),
    ] {
        not_negative(&place, key, value.unwrap_or(zero))?;
    }
    for (key, value) in
        [("tick_period", overheads.tick_period), ("timer_granularity", overheads.timer_granularity)]
    {
        if let Some(value) = value {
            above_zero(&place, key, value, "leave it out if there is none")?;
        }
    }
    match (overheads.tick_cost, overheads.tick_period) {
        (Some(cost), Some(period)) if cost >= period => {
            let reason = format!("no time remains between ticks, which come every {period}");
            Err(place.bad("tick_cost", cost, &reason))
        }
        (Some(cost), None) if cost > zero => {
            let remedy = "say how often a tick costs that, for example tick_period = \"4ms\"";
            Err(place.missing("tick_period", remedy))
        }
        _ => Ok(()),
    }
}

fn interference(set: &TaskSet) -> CheckResult {
    let mut names = task_names(&set.tasks);
    names.extend(set.background.iter().map(|thread| thread.name.as_str()));
    let mut pairs = BTreeMap::new();
    for (position, entry) in set.interference.iter().enumerate() {
        let place = Location::numbered("interference", position);
        for (key, name) in [("task", &entry.task), ("beside", &entry.beside)] {
            if let Some(name) = name {
                known_name(&place, key, "task", name, &names)?;
            }
        }
        if entry.rate > Fraction::ONE {
            let reason = "a co-runner makes no task faster; give 0 to 1";
            return Err(place.bad("rate", entry.rate, reason));
        }
        if let Some(first) = pairs.insert((&entry.task, &entry.beside), position) {
            let message = format!("interference number {} is about the same two", first + 1);
            return Err(place.contradiction(format!("{message}; keep one of them")));
        }
    }
    Ok(())
}
