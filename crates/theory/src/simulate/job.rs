//! One task as a thread of the simulator: when its jobs come, what they need, what they do.
//!
//! Owns: arrivals, costs, and the points of a job at which it locks or suspends itself. Must not:
//! know how it competes.

use hourglass_sim::{
    self as sim, ArrivalPattern, Class, CostModel, Jitter, Mark, MarkAction, Script, Thread,
};
use hourglass_tasks::{Activation, Preemption, Task, TaskSet};

use super::system::{Choices, Warnings, ns, warn};
use super::{Releases, SimulationFailure};

pub(super) fn thread(
    set: &TaskSet,
    task: &Task,
    class: Class,
    choices: Choices,
    warnings: &mut Warnings,
) -> Result<Thread, SimulationFailure> {
    let arrivals = arrivals(task, choices.releases);
    let mut thread = Thread::new(class, arrivals, cost(task), ns(task.deadline()));
    let jitter = ns(task.jitter);
    thread.jitter = match choices.releases {
        _ if jitter == 0 => Jitter::None,
        Releases::Nominal => Jitter::None,
        Releases::Critical => Jitter::Worst(jitter),
        Releases::Random => Jitter::Random(jitter),
    };
    let granularity = set.machine.overheads.timer_granularity;
    thread.tick = task.tick().or(granularity).map_or(0, ns);
    thread.tick_jitter = task.tick().and(task.tick_jitter).map_or(u64::MAX, ns);
    let position = |name: &String| set.tasks.iter().position(|task| task.name == *name);
    thread.after = task.after.iter().filter_map(position).collect();
    thread.preemption = preemption(task, warnings);
    thread.late = choices.late;
    thread.server = set.servers.iter().position(|server| server.tasks.contains(&task.name));
    if task.program.is_none() || !choices.follows_steps {
        thread.marks = marks(set, task, warnings)?;
    }
    unsaid(task, choices, warnings);
    Ok(thread)
}

pub(super) fn scripted(thread: Thread, script: Script) -> Thread {
    let preemption = match thread.preemption {
        // Its sections belong to jobs with known execution times.
        sim::Preemption::Limited { .. } => sim::Preemption::Full,
        other => other,
    };
    let mut scripted = Thread::scripted(thread.class, script, thread.deadline);
    (scripted.preemption, scripted.server) = (preemption, thread.server);
    (scripted.tick, scripted.tick_jitter) = (thread.tick, thread.tick_jitter);
    scripted
}

fn arrivals(task: &Task, releases: Releases) -> ArrivalPattern {
    let offset = task.offset.map_or(0, ns);
    let period = ns(task.period);
    match task.activation {
        _ if !task.arrivals.is_empty() => ArrivalPattern::Burst {
            offset,
            distances: task.arrivals.iter().map(|distance| ns(*distance)).collect(),
            period,
        },
        Activation::Sporadic if releases == Releases::Random => {
            ArrivalPattern::Sporadic { offset, period, extra: period }
        }
        _ => ArrivalPattern::Periodic { offset, period },
    }
}

fn cost(task: &Task) -> CostModel {
    let at_most = ns(task.wcet);
    match &task.execution_time {
        None => CostModel::Worst(at_most),
        Some(times) => CostModel::Drawn { times: times.clone(), at_most },
    }
}

fn preemption(task: &Task, warnings: &mut Warnings) -> sim::Preemption {
    match task.preemption {
        Preemption::Full => sim::Preemption::Full,
        Preemption::None => sim::Preemption::None,
        Preemption::Threshold(priority) => sim::Preemption::Threshold(priority),
        Preemption::Limited { longest, last } => {
            sim::Preemption::Limited { longest: ns(longest), last: ns(last) }
        }
        Preemption::Floating { longest } => {
            let text = format!(
                "task '{}': its floating sections are simulated one after the other, each as long \
                 as the longest; other places may delay others more",
                task.name
            );
            warn(warnings, "floating-sections", text, "");
            sim::Preemption::Limited { longest: ns(longest), last: ns(longest) }
        }
    }
}

/// What a job does on its way. Where a file says how long and how often but not where, locks lie
/// evenly in the job, and the suspension in the middle of what comes before the first of them.
fn marks(
    set: &TaskSet,
    task: &Task,
    warnings: &mut Warnings,
) -> Result<Vec<Mark>, SimulationFailure> {
    let wcet = ns(task.wcet);
    let mut sections = Vec::new();
    for section in &task.critical_sections {
        let resource = set.resources.iter().position(|known| known.name == section.resource);
        let Some(resource) = resource else { continue };
        for _ in 0..section.count {
            if sections.len() >= MOST_SECTIONS {
                return Err(SimulationFailure::TooManySections { task: task.name.clone() });
            }
            sections.push((resource, ns(section.length)));
        }
    }
    let held = sections.iter().map(|(_, length)| *length).fold(0, u64::saturating_add);
    let count = sections.len() as u64;
    let Some(free) = wcet.checked_sub(held) else {
        return Err(SimulationFailure::SectionsOverWcet {
            task: task.name.clone(),
            wcet: task.wcet,
        });
    };
    let gap = free / (count + 1);
    let mut marks = Vec::new();
    let suspension = ns(task.suspension);
    if suspension > 0 {
        marks.push(Mark { at: gap / 2, action: MarkAction::Suspend(suspension) });
        let text = format!(
            "task '{}': each job suspends itself once, for all of {}, after {} of execution",
            task.name,
            task.suspension,
            hourglass_time::Span::saturating_from_nanos(gap / 2),
        );
        warn(warnings, "suspension", text, "");
    }
    let mut at = gap;
    for (resource, length) in &sections {
        marks.push(Mark { at, action: MarkAction::Lock(*resource) });
        at += length;
        marks.push(Mark { at, action: MarkAction::Unlock(*resource) });
        at += gap;
    }
    if !sections.is_empty() && task.program.is_none() {
        let text = format!("task '{}': its critical sections lie evenly in its jobs", task.name);
        warn(warnings, "critical-sections", text, "");
    }
    Ok(marks)
}

/// Maximum number of critical sections of a job in a simulation.
pub(super) const MOST_SECTIONS: usize = 1_000;

/// Warns about keys of a file that a simulation does not follow.
fn unsaid(task: &Task, choices: Choices, warnings: &mut Warnings) {
    if task.blocking.is_positive() {
        let text = format!(
            "task '{}': blocking of {} is not simulated, because no blocking task is named",
            task.name, task.blocking
        );
        warn(warnings, "blocking", text, "describe critical sections or non-preemptive sections");
    }
    if task.program.is_none() {
        return;
    }
    if !choices.follows_steps {
        let text = format!(
            "task '{}': its steps are not followed one by one; its wcet, period and critical \
             sections are simulated",
            task.name
        );
        warn(warnings, "steps", text, "");
    } else if task.jitter.is_positive() && choices.releases != Releases::Nominal {
        let text = format!(
            "task '{}': its jitter of {} is not simulated, because its phases say when it is released",
            task.name, task.jitter
        );
        warn(warnings, "jitter", text, "describe it without phases");
    }
}
