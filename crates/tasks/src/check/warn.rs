//! Warnings about what may not be meant.

use crate::{Scheduler, Server, Task, TaskSet, TaskSetWarning};

/// The priorities of the kernel's real-time classes.
const KERNEL_PRIORITIES: std::ops::RangeInclusive<u32> = 1..=99;

pub(super) fn warnings(set: &TaskSet) -> Vec<TaskSetWarning> {
    let mut found = Vec::new();
    found.extend(beyond_kernel(set));
    set.tasks.iter().for_each(|task| about_task(task, &mut found));
    for server in &set.servers {
        about_server(set, server, &mut found);
    }
    for resource in &set.resources {
        let uses = |task: &Task| {
            task.critical_sections.iter().any(|section| section.resource == resource.name)
        };
        if !set.tasks.iter().any(uses) {
            found.push(TaskSetWarning::UnusedResource { resource: resource.name.clone() });
        }
    }
    if !set.interference.is_empty() && !set.machine.has_siblings() {
        found.push(TaskSetWarning::NoSiblings);
    }
    found
}

/// One warning for all priorities that the kernel does not have, and none where priorities do not
/// count.
fn beyond_kernel(set: &TaskSet) -> Option<TaskSetWarning> {
    if !matches!(set.scheduler, Scheduler::FixedPriority | Scheduler::RoundRobin) {
        return None;
    }
    let priorities = set.priorities();
    let mut beyond = set.tasks.iter().zip(priorities).filter_map(|(task, priority)| {
        priority.filter(|number| !KERNEL_PRIORITIES.contains(number)).map(|number| (task, number))
    });
    let (task, priority) = beyond.next()?;
    let others = beyond.count();
    Some(TaskSetWarning::PriorityOutOfRange { task: task.name.clone(), priority, others })
}

fn about_task(task: &Task, found: &mut Vec<TaskSetWarning>) {
    let name = || task.name.clone();
    let (wcet, deadline) = (task.wcet, task.deadline());
    if wcet > deadline {
        found.push(TaskSetWarning::WcetOverDeadline { task: name(), wcet, deadline });
    }
    if let Some(times) = &task.execution_time
        && times.longest().is_none_or(|longest| longest > wcet)
    {
        let drawn = times.to_string();
        found.push(TaskSetWarning::DrawsOverWcet { task: name(), drawn, wcet });
    }
}

fn about_server(set: &TaskSet, server: &Server, found: &mut Vec<TaskSetWarning>) {
    if server.tasks.is_empty() {
        found.push(TaskSetWarning::EmptyServer { server: server.name.clone() });
    }
    if server.kind.is_constant_bandwidth() && server.priority.is_some() {
        found.push(TaskSetWarning::PriorityNotUsed { server: server.name.clone() });
    }
    if is_overloaded(set, server) {
        found.push(TaskSetWarning::ServerOverloaded {
            server: server.name.clone(),
            budget: server.budget,
            period: server.period,
        });
    }
}

/// Whether the tasks certainly need more than the budget. Each utilisation is rounded down to a
/// multiple of 2^-64 of the server's, so that rounding raises no false alarm.
fn is_overloaded(set: &TaskSet, server: &Server) -> bool {
    let whole = u128::from(u64::MAX);
    let share = |time: u64, period: u64| (whole * u128::from(time)).checked_div(period.into());
    let needed: u128 = server
        .tasks
        .iter()
        .filter_map(|name| set.task(name))
        .filter_map(|task| share(task.wcet.nanos_or_zero(), task.period.nanos_or_zero()))
        .fold(0, u128::saturating_add);
    share(server.budget.nanos_or_zero(), server.period.nanos_or_zero())
        .is_some_and(|given| needed > given + 1)
}
