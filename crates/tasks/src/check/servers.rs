//! Checks of servers and the tasks in them.

use std::collections::BTreeMap;

use super::{CheckResult, above_zero, known_name, task_names};
use crate::error::Location;
use crate::{Server, ServerKind, Task, TaskSet};

pub(super) fn check(set: &TaskSet) -> CheckResult {
    let names = task_names(&set.tasks);
    let mut homes: BTreeMap<&str, &str> = BTreeMap::new();
    for server in &set.servers {
        let place = Location::named("server", &server.name);
        times(&place, server)?;
        for task in &server.tasks {
            known_name(&place, "tasks", "task", task, &names)?;
            if let Some(other) = homes.insert(task, &server.name) {
                let message = format!(
                    "task '{}' is in server '{}' already; a task runs in one server",
                    task.escape_debug(),
                    other.escape_debug()
                );
                return Err(place.contradiction(message));
            }
            meets(&place, server, set.task(task))?;
        }
    }
    Ok(())
}

/// A task runs on CPUs that are its own and those of its server.
fn meets(place: &Location, server: &Server, task: Option<&Task>) -> CheckResult {
    let Some((task, cpus)) = task.and_then(|task| Some((task, task.cpus.as_ref()?))) else {
        return Ok(());
    };
    match &server.cpus {
        Some(own) if own.intersection(cpus).is_empty() => {
            let message = format!(
                "its CPUs are {own} and those of its task '{}' are {cpus}, so that the task can run nowhere; give both \
                 the same",
                task.name.escape_debug()
            );
            Err(place.contradiction(message))
        }
        _ => Ok(()),
    }
}

fn times(place: &Location, server: &Server) -> CheckResult {
    above_zero(place, "period", server.period, "give the time between two replenishments")?;
    above_zero(place, "budget", server.budget, "give the processor time per period")?;
    if server.budget > server.period {
        let reason = format!("there is no room for it in a period of {}", server.period);
        return Err(place.bad("budget", server.budget, &reason));
    }
    let Some(deadline) = server.deadline else { return Ok(()) };
    above_zero(place, "deadline", deadline, "leave it out if it is the period")?;
    use ServerKind::{CbsHard, CbsReclaim, ExplicitDeadline};
    let may_differ = matches!(server.kind, ExplicitDeadline | CbsHard | CbsReclaim);
    if !may_differ && deadline != server.period {
        let message = format!(
            "deadline {deadline} differs from the period {}, which only the kinds \
             'explicit-deadline', 'cbs-hard' and 'cbs-reclaim' may; change the kind or leave the deadline out",
            server.period
        );
        return Err(place.contradiction(message));
    }
    if deadline > server.period {
        let reason = format!("longer than the period of {}", server.period);
        return Err(place.bad("deadline", deadline, &reason));
    }
    if server.budget > deadline {
        let reason = format!("there is no room for it within a deadline of {deadline}");
        return Err(place.bad("budget", server.budget, &reason));
    }
    Ok(())
}
