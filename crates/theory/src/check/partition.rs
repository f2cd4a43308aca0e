//! Tasks placed on the CPUs of their machine by a packing heuristic.
//!
//! Owns: the heuristic's parameters. Must not: pack (`sched::partition` does).

use hourglass_documents::{CpuSet, spelling};
use hourglass_sched::partition::{FitHeuristic, PlacementOrder, partition};
use hourglass_sched::{Task, TaskSet as Numbers, Verdict};
use hourglass_tasks::TaskSet;

use super::RequestError;
use super::placement;
use super::processor::NoteList;

/// A heuristic and an order by their names, such as `worst-fit,period`; without an order, by utilisation.
///
/// # Errors
/// A text with all names.
pub fn placing(text: &str) -> Result<(FitHeuristic, PlacementOrder), String> {
    let (fit, order) = text.split_once(',').unwrap_or((text, "utilisation"));
    let fit = match fit {
        "first-fit" => FitHeuristic::First,
        "best-fit" => FitHeuristic::Best,
        "worst-fit" => FitHeuristic::Worst,
        _ => return Err(spelling::unknown("fit", fit, ["first-fit", "best-fit", "worst-fit"])),
    };
    let order = match order {
        "given" => PlacementOrder::Given,
        "utilisation" => PlacementOrder::Utilisation,
        "density" => PlacementOrder::Density,
        "period" => PlacementOrder::Period,
        "deadline" => PlacementOrder::Deadline,
        _ => {
            let known = ["given", "utilisation", "density", "period", "deadline"];
            return Err(spelling::unknown("order", order, known));
        }
    };
    Ok((fit, order))
}

/// The set with a CPU for each task; in the inner result, why the heuristic found none.
///
/// # Errors
/// A task has its place already.
pub(super) fn place(
    set: &TaskSet,
    fit: FitHeuristic,
    order: PlacementOrder,
    notes: &mut NoteList,
) -> Result<Result<TaskSet, String>, RequestError> {
    let taken =
        |task: &&hourglass_tasks::Task| task.cpus.is_some() || set.server_of(&task.name).is_some();
    if let Some(task) = set.tasks.iter().find(taken) {
        return Err(RequestError::Placed(task.name.clone()));
    }
    if set.tasks.iter().any(|task| !task.critical_sections.is_empty()) {
        return Ok(Err(
            "how long tasks wait for locks depends on which tasks share a CPU; place the tasks in the file"
                .to_owned(),
        ));
    }
    let cpus: Vec<u32> = set.cpus().iter().collect();
    // All tasks as on one CPU, for their numbers.
    let mut together = set.clone();
    together.machine.cpus = Some(single_cpu(cpus.first().copied().unwrap_or(0)));
    together.machine.cores.clear();
    together.interference.clear();
    if !set.interference.is_empty() {
        return Ok(Err(
            "how fast a task runs depends on what runs on the sibling CPU; place the tasks in the file"
                .to_owned(),
        ));
    }
    let one = match placement::processors(&together, true, notes) {
        Ok(mut all) if all.len() == 1 => all.remove(0),
        Ok(_) => return Ok(Err("no tasks to place".to_owned())),
        Err(why) => return Ok(Err(why)),
    };
    if one.has_bursts() || one.has_thresholds() {
        return Ok(Err(
            "bursts and thresholds cannot be placed; place the tasks in the file".to_owned()
        ));
    }
    if let Some(why) = &one.refused {
        return Ok(Err(why.clone()));
    }
    let fits = |set: &Numbers| {
        let question = one.question_of(set.clone());
        match one.finds_priorities {
            true => question.priorities().map_or(Verdict::NoBound, |_| Verdict::Feasible),
            false => question.verdict(),
        }
    };
    let members: Vec<Task> = one
        .members
        .iter()
        .filter(|m| m.position.is_some())
        .map(|m| m.task.with_phase(None))
        .collect();
    let Some(found) = partition(&members, cpus.len(), order, fit, fits) else {
        return Ok(Err("this heuristic finds no CPU for every task; another one, or another \
                       order, may"
            .to_owned()));
    };
    let mut placed = set.clone();
    for (task, cpu) in placed.tasks.iter_mut().zip(found) {
        task.cpus = cpus.get(cpu).copied().map(single_cpu);
    }
    placed.machine.cpus = Some(set.cpus());
    Ok(Ok(placed))
}

pub(super) fn single_cpu(cpu: u32) -> CpuSet {
    let mut one = CpuSet::default();
    one.insert(cpu);
    one
}
