//! What reservations for tasks say whose `wcet` is an upper bound alone: which budgets are by it, and which refusals are not
//! known to hold.

use hourglass_documents::document::Warning;
use hourglass_documents::reserve::ReserveDocument;
use hourglass_tasks::{Task, TaskSet};

/// Marks the documents of the tasks, in their order. `least` has the answers with the lower figures, `None` where they cannot be
/// asked for.
pub(super) fn mark(
    set: &TaskSet,
    documents: &mut [ReserveDocument],
    least: Option<&[ReserveDocument]>,
) {
    for (at, (task, document)) in set.tasks.iter().zip(documents).enumerate() {
        if task.has_upper_bound() {
            document.wcet_at_least_ns = task.wcet_at_least.map(|least| least.nanos_or_zero());
            document.warnings.push(warning(task));
        }
        // What does not fit beside others rests on all of them.
        let beside = document.refusals.iter().any(|refusal| refusal.id == NO_ROOM);
        let bounded = match beside {
            true => set.tasks.iter().filter(|task| task.has_upper_bound()).collect(),
            false => bounded(set, task),
        };
        if document.backend.is_none() && !bounded.is_empty() {
            let least = least.and_then(|least| least.get(at));
            document.unknown_because = unknown(&bounded, least);
        }
    }
}

/// Why a refusal is not known to hold, for the answer with the lower figures of these tasks; `None` if it is refused then, too.
pub(super) fn unknown(bounded: &[&Task], least: Option<&ReserveDocument>) -> Option<String> {
    // What is too little for a backend may be more in truth.
    let too_little = |one: &ReserveDocument| one.refusals.iter().any(|it| it.id == TOO_LITTLE);
    let then = match least {
        Some(one) if one.backend.is_some() => "it would be granted",
        Some(one) if too_little(one) => "the budget is too small for the refusal to say anything",
        None => "the file makes no sense",
        Some(_) => return None,
    };
    Some(format!("{}, and with wcet_at_least {then}", upper_bounds(bounded)))
}

/// The tasks among these that have an upper bound alone, with their lower figures.
fn upper_bounds(bounded: &[&Task]) -> String {
    let named = |task: &&Task| match task.wcet_at_least {
        Some(least) => format!("'{}' (at least {least})", task.name),
        None => format!("'{}'", task.name),
    };
    let names: Vec<String> = bounded.iter().map(named).collect();
    format!("the wcet of {} is an upper bound alone", names.join(", "))
}

/// That a budget is by an upper bound.
pub(super) fn warning(task: &Task) -> Warning {
    Warning {
        id: "wcet-upper-bound".to_owned(),
        text: format!("{}: the budget may be far too large", upper_bounds(&[task])),
        remedy: "record while less runs beside it, and model that, or state a wcet that is known"
            .to_owned(),
    }
}

/// The tasks with an upper bound alone on which the answer for `task` rests: itself, and those whose ends release it.
fn bounded<'a>(set: &'a TaskSet, task: &'a Task) -> Vec<&'a Task> {
    let mut found: Vec<&Task> = vec![task];
    let mut at = 0;
    while let Some(task) = found.get(at).copied() {
        for before in set.tasks.iter().filter(|other| task.after.contains(&other.name)) {
            if !found.iter().any(|other| other.name == before.name) {
                found.push(before);
            }
        }
        at += 1;
    }
    found.retain(|task| task.has_upper_bound());
    found
}

/// The refusal of more than there is, with the others.
const NO_ROOM: &str = "bandwidth";

/// The refusal of a budget or period that a backend does not take.
const TOO_LITTLE: &str = "times";
