//! From a set of tasks to the processors that run them.
//!
//! Owns: who runs where and by which rule, the ranks of priorities, ticks, background threads,
//! servers as tasks of their processor and as processors of their tasks. What cannot be treated
//! soundly refuses its processor, with the reason. Must not: analyse.

use hourglass_model::CpuSet;
use hourglass_model::Policy;
use hourglass_model::tasks::{Assignment, Preemption, Scheduler, Task, TaskSet};
use hourglass_sched as sched;
use hourglass_sched::fixed_priority::Sections;

use super::processor::{Member, Notes, Processor, Rule};
use super::{locks, numbers, servers};

/// The processors of a set, each task on one of them.
///
/// # Errors
/// The CPUs of tasks overlap, or no analysis knows the scheduler, in a sentence.
pub(super) fn processors(set: &TaskSet, notes: &mut Notes) -> Result<Vec<Processor>, String> {
    let rule = rule(set)?;
    let all = set.cpus();
    let mut here: Vec<(CpuSet, Vec<usize>)> = Vec::new();
    for (position, task) in set.tasks.iter().enumerate() {
        let server = set.server_of(&task.name).and_then(|server| server.cpus.as_ref());
        let cpus = task.cpus.as_ref().or(server).unwrap_or(&all);
        match here.iter_mut().find(|(known, _)| known == cpus) {
            Some((_, tasks)) => tasks.push(position),
            None => here.push((cpus.clone(), vec![position])),
        }
    }
    for (at, (cpus, tasks)) in here.iter().enumerate() {
        let other = here[..at].iter().find(|(other, _)| !other.intersection(cpus).is_empty());
        if let Some((other, _)) = other {
            return Err(format!(
                "task '{}' runs on CPUs {cpus} and others on CPUs {other}, which overlap; no \
                 analysis here has that: pin each task to one CPU, or none",
                set.tasks[tasks[0]].name
            ));
        }
    }
    here.sort_by_key(|(cpus, _)| cpus.iter().next());
    let mut found = Vec::new();
    for (cpus, tasks) in here {
        match only_cpu(&cpus) {
            Some(cpu) => found.extend(servers::processors(set, cpu, &tasks, rule, notes)),
            None => found.push(shared(set, &cpus, &tasks, rule, notes)),
        }
    }
    found.iter_mut().for_each(Processor::refuse_a_crowd);
    Ok(found)
}

/// The rule by which a set is scheduled.
///
/// # Errors
/// No analysis knows it, in a sentence.
pub(super) fn rule(set: &TaskSet) -> Result<Rule, String> {
    match set.scheduler {
        Scheduler::FixedPriority => Ok(Rule::FixedPriority),
        Scheduler::Edf => Ok(Rule::Edf),
        Scheduler::Fifo => Ok(Rule::Fifo),
        Scheduler::RoundRobin | Scheduler::Fair => {
            let name = if set.scheduler == Scheduler::Fair { "fair" } else { "round-robin" };
            Err(format!(
                "no analysis here bounds response times under the scheduler {name}; give \
                 fixed-priority, edf or fifo"
            ))
        }
    }
}

/// Several CPUs that share tasks.
fn shared(
    set: &TaskSet,
    cpus: &CpuSet,
    tasks: &[usize],
    rule: Rule,
    notes: &mut Notes,
) -> Processor {
    let mut found = processor(set, cpus.to_string(), tasks, rule, notes);
    if found.has_phases {
        found.forget_phases();
    }
    found.shared_by = Some(cpus.len() as u64);
    let why = |what: &str| format!("no analysis here has {what} where several CPUs share tasks");
    let plain = || {
        let locks = |position: &usize| !set.tasks[*position].critical_sections.is_empty();
        if !set.servers.is_empty() {
            Err(why("servers"))
        } else if tasks.iter().any(locks) {
            Err(why("locks"))
        } else if found.sections != Sections::Preemptive || found.has_thresholds {
            Err(why("non-preemptive sections or thresholds"))
        } else if rule == Rule::Fifo {
            Err(why("first in, first out"))
        } else if found.members.iter().any(|m| m.position.is_none() || !m.arrivals.is_empty()) {
            Err(why("ticks or bursts"))
        } else if found.members.iter().any(|m| m.task.priority() == 0 && m.unknown.is_some()) {
            Err(why("time-sharing classes"))
        } else {
            Ok(())
        }
    };
    if let Err(why) = plain() {
        found.refused.get_or_insert(why);
    }
    found
}

fn only_cpu(cpus: &CpuSet) -> Option<u32> {
    let mut each = cpus.iter();
    each.next().filter(|_| cpus.len() == 1)
}

/// One processor, or the inside of a server, with the tasks at these positions.
pub(super) fn processor(
    set: &TaskSet,
    cpus: String,
    tasks: &[usize],
    rule: Rule,
    notes: &mut Notes,
) -> Processor {
    let mut processor = Processor::new(cpus, rule);
    if let Err(why) = fill(set, tasks, &mut processor, notes) {
        processor.refused = Some(why);
        let plain = tasks.iter().filter_map(|position| bare(set, *position));
        processor.members = plain.collect();
    }
    processor
}

/// A member of which only the figures of the description are shown.
fn bare(set: &TaskSet, position: usize) -> Option<Member> {
    let task = &set.tasks[position];
    let (cost, period) = (task.wcet.nanos_or_zero(), task.period.nanos_or_zero());
    let made = sched::Task::new(cost, period, task.deadline().nanos_or_zero()).ok()?;
    let jitter = task.jitter.nanos_or_zero();
    Some(Member {
        position: Some(position),
        name: task.name.clone(),
        task: made,
        jitter,
        offset: None,
        arrivals: Vec::new(),
        threshold: 0,
        unknown: None,
    })
}

fn fill(
    set: &TaskSet,
    tasks: &[usize],
    processor: &mut Processor,
    notes: &mut Notes,
) -> Result<(), String> {
    let rule = processor.rule;
    let priorities = ranks(set, tasks, rule)?;
    let finds = rule == Rule::FixedPriority && set.assignment() == Assignment::Optimal;
    locks::check(set, tasks, &set.priorities(), rule)?;
    let spinning = locks::spinning(set, tasks, numbers::switches(set))?;
    if spinning.iter().any(|time| *time > 0) {
        processor.counts("locks of other CPUs need not be held whenever they are asked for");
        notes.say(
            "each request for a spin lock waits for the longest section of every other CPU that \
             uses it, first come, first served",
        );
    }
    processor.has_thresholds = has_thresholds(set, tasks, rule);
    processor.has_phases = has_phases(set, tasks, rule);
    if processor.has_phases {
        notes.say(
            "phases are known: a task's first job arrives at its offset, each other exactly \
                   a period after the one before",
        );
    }
    let known = known_priorities(set);
    for ((position, rank), spinning) in tasks.iter().zip(&priorities).zip(spinning) {
        let mut member = numbers::member(set, *position, spinning, processor, notes)?;
        let task = &set.tasks[*position];
        member.task = member.task.with_priority(*rank);
        member.threshold = match task.preemption {
            Preemption::None => u32::MAX,
            // Of the priorities known, so many are not above it.
            Preemption::Threshold(threshold) => rank_above(&known, threshold).max(*rank),
            _ => *rank,
        };
        if rule == Rule::FixedPriority && !task.has_fixed_priority() {
            member.unknown = Some("no analysis here bounds the time-sharing classes".to_owned());
        }
        processor.members.push(member);
    }
    blocked(set, tasks, finds, processor)?;
    processor.finds_priorities = finds;
    processor.sections = match rule {
        Rule::Fifo => Sections::Preemptive,
        _ if processor.has_thresholds => Sections::Preemptive,
        Rule::FixedPriority | Rule::Edf => sections(set, tasks),
    };
    if finds && processor.members.iter().any(|member| member.unknown.is_some()) {
        return Err("priorities are to be found, but a task has a time-sharing policy".to_owned());
    }
    background(set, processor)?;
    ticks(set, processor, notes)
}

/// Adds to each member what it is blocked: as stated, by locks, and by a context switch that has begun.
fn blocked(
    set: &TaskSet,
    tasks: &[usize],
    finds: bool,
    processor: &mut Processor,
) -> Result<(), String> {
    let numbers: Vec<sched::Task> = processor.members.iter().map(|member| member.task).collect();
    let extra = numbers::switches(set);
    let by_locks = locks::blocking(set, tasks, &numbers, processor.rule, extra)?;
    if finds && by_locks.iter().any(|blocking| *blocking > 0) {
        return Err("priorities are to be found, but how long locks are waited for depends on \
                    them; give priorities"
            .to_owned());
    }
    for ((member, position), by_locks) in processor.members.iter_mut().zip(tasks).zip(by_locks) {
        let stated = set.tasks[*position].blocking.nanos_or_zero();
        let all =
            stated.checked_add(by_locks).and_then(|sum| sum.checked_add(numbers::switch(set)));
        let all = all.ok_or("a blocking time has more than 64 bits")?;
        member.task = member.task.with_blocking(all);
    }
    Ok(())
}

/// Whether there are preemption thresholds, and nothing that their analysis does not know.
fn has_thresholds(set: &TaskSet, tasks: &[usize], rule: Rule) -> bool {
    let tasks = || tasks.iter().map(|position| &set.tasks[*position]);
    let known = |task: &Task| {
        let kind = matches!(
            task.preemption,
            Preemption::Full | Preemption::None | Preemption::Threshold(_)
        );
        let inside = set.server_of(&task.name).is_some();
        kind && !task.suspension.is_positive() && task.arrivals.is_empty() && !inside
    };
    rule == Rule::FixedPriority
        && set.assignment() == Assignment::Given
        && set.servers.is_empty()
        && !set.machine.overheads.tick_cost.is_some_and(|cost| cost.is_positive())
        && tasks().any(|task| matches!(task.preemption, Preemption::Threshold(_)))
        && tasks().all(known)
}

/// Whether all phases are known and nothing moves a release, nor is there anything that the analysis
/// of phases does not know.
fn has_phases(set: &TaskSet, tasks: &[usize], rule: Rule) -> bool {
    let overheads = &set.machine.overheads;
    let is = |span: Option<hourglass_time::Span>| span.is_some_and(|span| span.is_positive());
    let known = |position: &usize| {
        let task = &set.tasks[*position];
        let late = task.jitter.is_positive() || task.tick_delay().is_positive();
        task.offset.is_some()
            && !late
            && !task.suspension.is_positive()
            && task.arrivals.is_empty()
            && task.after.is_empty()
            && task.preemption == Preemption::Full
    };
    rule == Rule::FixedPriority
        && set.assignment() == Assignment::Given
        && set.servers.is_empty()
        && !is(overheads.tick_cost)
        && !is(overheads.timer_granularity)
        && tasks.iter().all(known)
        && !tasks.is_empty()
}

/// What sections there are: if all tasks have the same kind, that one; else each its own, of which
/// [`Sections::Limited`] is the general case.
fn sections(set: &TaskSet, tasks: &[usize]) -> Sections {
    let kinds = || tasks.iter().map(|position| set.tasks[*position].preemption);
    if kinds().all(|kind| kind == Preemption::Full) {
        Sections::Preemptive
    } else if kinds().all(|kind| kind == Preemption::None) {
        Sections::NonPreemptive
    } else if kinds().all(|kind| matches!(kind, Preemption::Full | Preemption::Floating { .. })) {
        Sections::Floating
    } else {
        Sections::Limited
    }
}

/// The rank of each task: 0 for the time-sharing classes, above that by priority.
fn ranks(set: &TaskSet, tasks: &[usize], rule: Rule) -> Result<Vec<u32>, String> {
    if rule != Rule::FixedPriority {
        let other = tasks.iter().map(|position| &set.tasks[*position]).find(|task| {
            !matches!(task.policy, None | Some(Policy::Deadline)) && rule == Rule::Edf
        });
        return match other {
            Some(task) => Err(format!(
                "task '{}' has a policy of its own, but the scheduler is edf; drop one of them",
                task.name
            )),
            None => Ok(vec![1; tasks.len()]),
        };
    }
    let priorities = set.priorities();
    let mut given: Vec<u32> = tasks.iter().filter_map(|position| priorities[*position]).collect();
    given.sort_unstable();
    let equal = given.windows(2).any(|pair| pair[0] == pair[1]);
    for position in tasks {
        let task = &set.tasks[*position];
        match task.policy {
            Some(Policy::Deadline) => {
                return Err(format!(
                    "task '{}' is in the deadline class without a reservation; add a [[server]] \
                     with its budget and period",
                    task.name
                ));
            }
            Some(Policy::RoundRobin(_)) if equal => {
                return Err(format!(
                    "task '{}' shares its CPU by time slices with tasks of the same priority; \
                     make the priorities different",
                    task.name
                ));
            }
            _ => {}
        }
    }
    let known = known_priorities(set);
    let rank = |position: &usize| priorities[*position].map_or(0, |p| rank_among(&known, p));
    Ok(tasks.iter().map(rank).collect())
}

/// The rank of the tick, before everything else.
const TICK: u32 = u32::MAX;

/// The rank of the deadline class, before every fixed priority.
pub(super) const DEADLINE_CLASS: u32 = u32::MAX - 1;

/// The priorities of tasks and servers, ascending, each once.
pub(super) fn known_priorities(set: &TaskSet) -> Vec<u32> {
    let servers = set.servers.iter().filter_map(|server| server.priority);
    let mut known: Vec<u32> = set.priorities().into_iter().flatten().chain(servers).collect();
    known.sort_unstable();
    known.dedup();
    known
}

/// The rank of the most urgent priority known that is not above a threshold.
pub(super) fn rank_above(known: &[u32], threshold: u32) -> u32 {
    let among = known.partition_point(|known| *known <= threshold);
    u32::try_from(among).unwrap_or(DEADLINE_CLASS - 2)
}

/// The rank of a priority among those known; from 1.
pub(super) fn rank_among(known: &[u32], priority: u32) -> u32 {
    let below = known.partition_point(|known| *known < priority);
    u32::try_from(below).unwrap_or(DEADLINE_CLASS - 2) + 1
}

/// Threads that run as often as they like, above tasks: nothing bounds what these wait.
fn background(set: &TaskSet, processor: &mut Processor) -> Result<(), String> {
    let all = set.cpus();
    let cpus: CpuSet = processor.cpus.parse().unwrap_or_default();
    let priorities = set.priorities();
    for thread in &set.background {
        let apart = thread.cpus.as_ref().unwrap_or(&all).intersection(&cpus).is_empty();
        let phases = thread.program.phases.iter().filter_map(|phase| phase.policy);
        let policies: Vec<Policy> = thread.policy.into_iter().chain(phases).collect();
        let why = format!("nothing bounds how often the background thread '{}' runs", thread.name);
        let urgent =
            policies.iter().filter(|policy| policy.is_real_time()).max_by_key(
                |policy| match policy {
                    Policy::Fifo(priority) | Policy::RoundRobin(priority) => u32::from(*priority),
                    _ => 0,
                },
            );
        if apart {
            continue;
        }
        match urgent {
            _ if policies.contains(&Policy::Deadline) => return Err(why),
            None => {}
            Some(_) if processor.rule != Rule::FixedPriority => return Err(why),
            Some(Policy::Fifo(urgent) | Policy::RoundRobin(urgent)) => {
                for member in &mut processor.members {
                    let own = member.position.and_then(|position| priorities[position]);
                    if own.is_none_or(|own| own <= u32::from(*urgent)) {
                        member.unknown.get_or_insert(why.clone());
                    }
                }
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// The tick as somebody who is always first. Under EDF: as a task that is due with the next tick,
/// and one tick as blocking, since of those before a deadline at most one is due after it.
fn ticks(set: &TaskSet, processor: &mut Processor, notes: &mut Notes) -> Result<(), String> {
    let overheads = &set.machine.overheads;
    let (Some(period), Some(cost)) = (overheads.tick_period, overheads.tick_cost) else {
        return Ok(());
    };
    if !cost.is_positive() {
        return Ok(());
    }
    if processor.sections != Sections::Preemptive {
        return Err(
            "a tick interrupts non-preemptive sections, which no analysis here counts".to_owned()
        );
    }
    if processor.finds_priorities {
        return Err("priorities are to be found, but a tick comes before all of them; give \
                    priorities"
            .to_owned());
    }
    notes.say(format!("a tick takes {cost} every {period}, before every task"));
    processor.counts("ticks need not come at the worst instants");
    let (cost, period) = (cost.nanos_or_zero(), period.nanos_or_zero());
    let tick = sched::Task::new(cost, period, period).map_err(|why| why.to_string())?;
    if processor.rule == Rule::Edf {
        for member in &mut processor.members {
            let blocking = member.task.blocking().checked_add(cost);
            let blocking = blocking.ok_or("a blocking time has more than 64 bits")?;
            member.task = member.task.with_blocking(blocking);
        }
        processor.holds_to_deadline = true;
    }
    let task = tick.with_priority(TICK);
    processor.members.push(Member {
        position: None,
        name: "the tick".to_owned(),
        task,
        jitter: 0,
        offset: None,
        arrivals: Vec::new(),
        threshold: TICK,
        unknown: None,
    });
    Ok(())
}
