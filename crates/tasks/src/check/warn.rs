//! Warnings about what may not be meant.

use hourglass_documents::CpuSet;

use crate::exact_fraction::compare_shares;
use crate::{Scheduler, Server, Task, TaskSet, TaskSetWarning};

/// The priorities of the kernel's real-time classes.
const KERNEL_PRIORITIES: std::ops::RangeInclusive<u32> = 1..=99;

/// The part of a CPU that the deadline class has, as far as its administrator leaves `sched_rt_runtime_us` alone
/// (`Documentation/scheduler/sched-deadline.rst`, section 4).
const ADMITTED: (u64, u64) = (19, 20);
/// `sched_deadline_period_min_us` to `sched_deadline_period_max_us`, as they are by default.
const CLASS_PERIODS_NS: std::ops::RangeInclusive<u64> = 100_000..=4_194_304_000;
/// `__checkparam_dl`: 2^10.
const LEAST_BUDGET_NS: u64 = 1 << 10;

pub(super) fn warnings(set: &TaskSet) -> Vec<TaskSetWarning> {
    let mut found = Vec::new();
    found.extend(beyond_kernel(set));
    found.extend(not_admitted(set));
    found.extend(pinned(set));
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

/// The sums that the kernel holds to its limit: of a CPU to which servers are pinned, which is a root domain of its own
/// then, and of all CPUs.
fn not_admitted(set: &TaskSet) -> Option<TaskSetWarning> {
    let cpus = set.cpus();
    let all = set.servers.iter().filter(|server| server.kind.is_constant_bandwidth());
    let share =
        |server: &Server| (server.budget.nanos_or_zero(), server.period.nanos_or_zero().max(1));
    let on = |server: &Server, cpu: u32| {
        server.cpus.as_ref().is_some_and(|cpus| cpus.len() == 1 && cpus.contains(cpu))
    };
    let (admitted, of) = ADMITTED;
    let exceeds = |cpu: &u32| {
        let pinned = all.clone().filter(|server| on(server, *cpu));
        compare_shares(pinned.map(share), ADMITTED).is_gt()
    };
    if let Some(cpu) = cpus.iter().find(exceeds) {
        return Some(TaskSetWarning::NotAdmitted { cpus: format!("CPU {cpu}") });
    }
    let count = cpus.len();
    let limit = admitted.checked_mul(u64::try_from(count).ok()?)?;
    let cpus = if count == 1 { "the CPU".to_owned() } else { format!("{count} CPUs") };
    compare_shares(all.map(share), (limit, of))
        .is_gt()
        .then_some(TaskSetWarning::NotAdmitted { cpus })
}

/// One warning for all servers whose threads may not run on all CPUs: the class moves its threads over their root domain
/// (`__sched_setscheduler`: `EPERM`), which is all CPUs where nobody has parted them.
fn pinned(set: &TaskSet) -> Option<TaskSetWarning> {
    let all = set.cpus();
    let lacks =
        |cpus: &Option<CpuSet>| cpus.as_ref().is_some_and(|cpus| !all.difference(cpus).is_empty());
    let is_pinned = |server: &&Server| {
        let mut tasks = server.tasks.iter().filter_map(|name| set.task(name));
        server.kind.is_constant_bandwidth()
            && (lacks(&server.cpus) || tasks.any(|task| lacks(&task.cpus)))
    };
    let mut found = set.servers.iter().filter(is_pinned);
    let first = found.next()?;
    Some(TaskSetWarning::PinnedServer { server: first.name.clone(), others: found.count() })
}

fn about_task(task: &Task, found: &mut Vec<TaskSetWarning>) {
    let name = || task.name.clone();
    let (wcet, deadline) = (task.wcet, task.deadline());
    if task.wcet_at_least.unwrap_or(wcet) > deadline {
        let wcet = task.wcet_at_least.unwrap_or(wcet);
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
    let is_of_class = |server: &Server| {
        let (budget, period) = (server.budget.nanos_or_zero(), server.period.nanos_or_zero());
        CLASS_PERIODS_NS.contains(&period) && budget >= LEAST_BUDGET_NS
    };
    if server.kind.is_constant_bandwidth() && !is_of_class(server) {
        found.push(TaskSetWarning::OutsideDeadlineClass { server: server.name.clone() });
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
