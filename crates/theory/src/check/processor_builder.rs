//! From a set of tasks to the processors that run them.
//!
//! Owns: who runs where and by which rule, and [`processor`], the one place where a [`Processor`] is built. What cannot be treated soundly refuses
//! its processor, with the reason. Must not: analyse.

use hourglass_documents::{CpuSet, Policy};
use hourglass_sched as sched;
use hourglass_sched::catalogue::{Rule, Situation};
use hourglass_sched::fixed_priority::Sections;
use hourglass_tasks::{Assignment, Preemption, Scheduler, Server, Task, TaskSet};

use super::MOST_TOGETHER;
use super::priorities::{background, known_priorities, rank_above, ranks};
use super::processor::{Member, NoteList, Processor};
use super::{locks, parameters, servers, time_sharing};

/// The processors of a set, each task on one of them. Without `phases`, offsets are not used.
///
/// # Errors
/// The CPUs of tasks overlap, or no analysis knows the scheduler, in a sentence.
pub(super) fn processors(
    set: &TaskSet,
    phases: bool,
    notes: &mut NoteList,
) -> Result<Vec<Processor>, String> {
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
            Some(cpu) => found.extend(servers::processors(set, cpu, &tasks, rule, phases, notes)),
            None => {
                found.push(processor(set, &TaskGroup::Shared(&cpus), &tasks, rule, false, notes))
            }
        }
    }
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

fn only_cpu(cpus: &CpuSet) -> Option<u32> {
    let mut each = cpus.iter();
    each.next().filter(|_| cpus.len() == 1)
}

/// The group of tasks that share a processor.
pub(super) enum TaskGroup<'a> {
    /// A CPU, with the servers on it.
    Cpu(String, &'a [&'a Server]),
    /// Several CPUs.
    Shared(&'a CpuSet),
    /// The budget of a server on these CPUs, and why it is not known to be delivered.
    Inside(&'a Server, String, Result<(), String>),
}

impl TaskGroup<'_> {
    fn cpus(&self) -> String {
        match self {
            TaskGroup::Cpu(cpus, _) | TaskGroup::Inside(_, cpus, _) => cpus.clone(),
            TaskGroup::Shared(cpus) => cpus.to_string(),
        }
    }

    /// The server whose budget it is.
    fn server(&self) -> Option<String> {
        match self {
            TaskGroup::Inside(server, ..) => Some(server.name.clone()),
            TaskGroup::Cpu(..) | TaskGroup::Shared(_) => None,
        }
    }

    fn servers(&self) -> &[&Server] {
        match self {
            TaskGroup::Cpu(_, servers) => servers,
            TaskGroup::Shared(_) | TaskGroup::Inside(..) => &[],
        }
    }
}

/// A processor while it is built.
#[derive(Default)]
pub(super) struct ProcessorBuilder {
    pub(super) members: Vec<Member>,
    /// What the numbers count that may never happen.
    inexact: Vec<String>,
    /// Tasks have preemption thresholds, and no other sections.
    pub(super) has_thresholds: bool,
    pub(super) has_phases: bool,
    /// The threshold of each task: only ranks above it preempt the task.
    thresholds: Vec<u32>,
}

impl ProcessorBuilder {
    /// Says that the numbers count something that may never happen.
    pub(super) fn counts(&mut self, what: &str) {
        if !self.inexact.iter().any(|known| known == what) {
            self.inexact.push(what.to_owned());
        }
    }
}

/// One processor, or the inside of a server, with the tasks at these positions.
pub(super) fn processor(
    set: &TaskSet,
    place: &TaskGroup,
    tasks: &[usize],
    rule: Rule,
    phases: bool,
    notes: &mut NoteList,
) -> Processor {
    let mut draft = ProcessorBuilder {
        has_thresholds: has_thresholds(set, tasks, rule),
        has_phases: phases && has_phases(set, tasks, rule),
        ..ProcessorBuilder::default()
    };
    let finds = rule == Rule::FixedPriority && set.assignment() == Assignment::Optimal;
    let sections = match rule {
        Rule::Fifo => Sections::Preemptive,
        _ if draft.has_thresholds => Sections::Preemptive,
        Rule::FixedPriority | Rule::Edf => sections(set, tasks, place),
    };
    let filled = fill(set, place, tasks, rule, sections, &mut draft, notes)
        .and_then(|()| fits(set, place, tasks, rule, sections, &draft))
        .and_then(|()| situation(set, place, rule, &mut draft));
    let (situation, refused) = match filled {
        Ok(situation) => (situation, None),
        Err(why) => {
            if draft.members.len() < tasks.len() {
                draft.members = tasks.iter().filter_map(|position| bare(set, *position)).collect();
            }
            (without_numbers(place), Some(why))
        }
    };
    Processor {
        cpus: place.cpus(),
        server: place.server(),
        rule,
        sections,
        situation,
        members: draft.members,
        finds_priorities: finds,
        inexact: draft.inexact,
        refused,
        holds_to_deadline: rule == Rule::Edf && parameters::costs(set).tick.is_some(),
        time_sharing: match place {
            TaskGroup::Cpu(cpu, _) if rule == Rule::FixedPriority => {
                time_sharing::of(set, cpu, tasks)
            }
            _ => None,
        },
    }
}

/// The situation shown for a processor without an answer.
fn without_numbers(place: &TaskGroup) -> Situation {
    match place {
        TaskGroup::Shared(cpus) => Situation::Shared(cpus.len() as u64),
        TaskGroup::Inside(server, _, _) => {
            servers::known(server).map_or(Situation::Alone, Situation::Inside)
        }
        TaskGroup::Cpu(..) => Situation::Alone,
    }
}

/// A member of which only the figures of the description are shown.
fn bare(set: &TaskSet, position: usize) -> Option<Member> {
    let task = &set.tasks[position];
    let (cost, period) = (task.wcet.nanos_or_zero(), task.period.nanos_or_zero());
    let made = sched::Task::new(cost, period, task.deadline().nanos_or_zero()).ok()?;
    let name = task.name.clone();
    Some(Member { position: Some(position), name, task: made, jitter: 0, unknown: None })
}

/// Checks that an analysis supports what tasks share.
fn fits(
    set: &TaskSet,
    place: &TaskGroup,
    tasks: &[usize],
    rule: Rule,
    sections: Sections,
    draft: &ProcessorBuilder,
) -> Result<(), String> {
    let members = draft.members.len();
    if members > MOST_TOGETHER {
        return Err(format!(
            "{members} tasks run on CPUs {}, and at most {MOST_TOGETHER} are analysed together; give \
             fewer, or several CPUs and --partition",
            place.cpus()
        ));
    }
    match place {
        TaskGroup::Cpu(..) => Ok(()),
        TaskGroup::Inside(server, _, delivered) => {
            let finds = rule == Rule::FixedPriority && set.assignment() == Assignment::Optimal;
            delivered.clone()?;
            servers::is_plain(server, sections == Sections::Preemptive, finds)
        }
        TaskGroup::Shared(_) => shared(set, tasks, rule, sections, draft),
    }
}

/// Checks that the analyses of several CPUs support all of the set.
fn shared(
    set: &TaskSet,
    tasks: &[usize],
    rule: Rule,
    sections: Sections,
    draft: &ProcessorBuilder,
) -> Result<(), String> {
    let locks = |position: &usize| !set.tasks[*position].critical_sections.is_empty();
    let bursts = |position: &usize| !set.tasks[*position].arrivals.is_empty();
    let ticks = draft.members.iter().any(|member| member.position.is_none());
    let what = if !set.servers.is_empty() {
        "servers"
    } else if tasks.iter().any(locks) {
        "locks"
    } else if sections != Sections::Preemptive || draft.has_thresholds {
        "non-preemptive sections or thresholds"
    } else if rule == Rule::Fifo {
        "first in, first out"
    } else if ticks || tasks.iter().any(bursts) {
        "ticks or bursts"
    } else if draft.members.iter().any(|m| m.task.priority() == 0 && m.unknown.is_some()) {
        "time-sharing classes"
    } else {
        return Ok(());
    };
    Err(format!("no analysis here has {what} where several CPUs share tasks"))
}

/// What tasks share; gives each its bursts, threshold or phase, which decide the analysis. Bursts are
/// jitter for analyses that know none.
///
/// # Errors
/// A number does not fit.
fn situation(
    set: &TaskSet,
    place: &TaskGroup,
    rule: Rule,
    draft: &mut ProcessorBuilder,
) -> Result<Situation, String> {
    let arrivals = |member: &Member| {
        let of = member.position.map(|position| &set.tasks[position].arrivals);
        of.into_iter().flatten().map(|distance| distance.nanos_or_zero()).collect()
    };
    let curves: Vec<Vec<u64>> = draft.members.iter().map(arrivals).collect();
    let bursts = curves.iter().any(|curve| !curve.is_empty());
    let suspends = draft.members.iter().any(|member| member.task.suspension() > 0);
    let inside = matches!(place, TaskGroup::Inside(..));
    let counts_as_jitter = inside || suspends || rule == Rule::Fifo;
    if bursts {
        for (member, later) in draft.members.iter_mut().zip(&curves) {
            let bursty = member.task.with_bursts(later).map_err(|why| why.to_string())?;
            member.task = match counts_as_jitter {
                true => bursty.with_bursts_as_jitter().ok_or(parameters::TOO_LONG)?,
                false => bursty,
            };
        }
        if counts_as_jitter {
            draft.counts("bursts count as jitter");
        }
    } else if draft.has_thresholds {
        for (member, threshold) in draft.members.iter_mut().zip(&draft.thresholds) {
            let made = member.task.with_threshold(*threshold);
            member.task = made.map_err(|why| why.to_string())?;
        }
    } else if draft.has_phases {
        for member in &mut draft.members {
            let offset = member.position.and_then(|position| set.tasks[position].offset);
            member.task = member.task.with_phase(offset.map(|offset| offset.nanos_or_zero()));
        }
    }
    Ok(match place {
        TaskGroup::Inside(server, _, _) => {
            draft.counts(servers::LEAST_SUPPLY);
            let server = servers::known(server)?;
            if server.is_soft() {
                draft.counts(servers::GOES_ON);
            }
            Situation::Inside(server)
        }
        TaskGroup::Shared(cpus) => Situation::Shared(cpus.len() as u64),
        TaskGroup::Cpu(..) => Situation::Alone,
    })
}

fn fill(
    set: &TaskSet,
    place: &TaskGroup,
    tasks: &[usize],
    rule: Rule,
    sections: Sections,
    draft: &mut ProcessorBuilder,
    notes: &mut NoteList,
) -> Result<(), String> {
    let priorities = ranks(set, tasks, rule)?;
    locks::check(set, tasks, &set.priorities(), rule)?;
    let costs = parameters::costs(set);
    let spinning = locks::spinning(set, tasks, &costs)?;
    if spinning.iter().any(|time| *time > 0) {
        draft.counts("locks of other CPUs need not be held whenever they are asked for");
        notes.say(
            "each request for a spin lock waits for the longest section of every other CPU that \
             uses it, first come, first served",
        );
    }
    if draft.has_phases {
        notes.say(
            "phases are known: a task's first job arrives at its offset, each other exactly \
                   a period after the one before",
        );
    }
    let known = known_priorities(set);
    for ((position, rank), spinning) in tasks.iter().zip(&priorities).zip(spinning) {
        let mut member = parameters::member(set, *position, spinning, draft, notes)?;
        let task = &set.tasks[*position];
        member.task = member.task.with_priority(*rank);
        draft.thresholds.push(match task.preemption {
            Preemption::None => u32::MAX,
            // The threshold's rank is the number of known priorities not above it.
            Preemption::Threshold(threshold) => rank_above(&known, threshold).max(*rank),
            _ => *rank,
        });
        let is_reserved = task.policy == Some(Policy::Deadline);
        if rule == Rule::FixedPriority && !task.has_fixed_priority() && !is_reserved {
            member.unknown = Some("no analysis here bounds the time-sharing classes".to_owned());
        }
        draft.members.push(member);
    }
    let finds = rule == Rule::FixedPriority && set.assignment() == Assignment::Optimal;
    if finds && draft.members.iter().any(|member| member.unknown.is_some()) {
        return Err("priorities are to be found, but a task has a time-sharing policy".to_owned());
    }
    background(set, &place.cpus(), rule, draft)?;
    burden(set, place.servers(), tasks, rule, sections, draft, notes)
}

/// Adds what the kernel costs, servers and ticks, and by how much locks block them all.
fn burden(
    set: &TaskSet,
    servers: &[&Server],
    tasks: &[usize],
    rule: Rule,
    sections: Sections,
    draft: &mut ProcessorBuilder,
    notes: &mut NoteList,
) -> Result<(), String> {
    let costs = parameters::costs(set);
    if !servers.is_empty() && !costs.switches_are_free() {
        return Err(
            "how often a server is switched to is not known, and each time costs a switch \
                    and caches"
                .to_owned(),
        );
    }
    let others = servers::as_tasks(set, servers, rule, tasks)?;
    let charged = parameters::charged(set, &costs, sections, draft, notes)?.with_tasks(&others);
    let by_locks = locks::blocking(set, tasks, charged.tasks(), rule, &costs)?;
    let finds = rule == Rule::FixedPriority && set.assignment() == Assignment::Optimal;
    if finds && by_locks.iter().any(|blocking| *blocking > 0) {
        return Err("priorities are to be found, but how long locks are waited for depends on \
                    them; give priorities"
            .to_owned());
    }
    if finds && costs.tick.is_some() {
        return Err("priorities are to be found, but a tick comes before all of them; give \
                    priorities"
            .to_owned());
    }
    let names = servers.iter().map(|server| servers::label(server));
    let names = names.chain(costs.tick.map(|_| "the tick".to_owned()));
    let charged = charged.blocked(&by_locks).map_err(|why| why.to_string())?;
    let charged = match rule {
        Rule::Edf => charged.by_deadline().map_err(|why| why.to_string())?,
        Rule::FixedPriority | Rule::Fifo => charged.by_priority(),
    };
    for (member, task) in draft.members.iter_mut().zip(&charged) {
        (member.task, member.jitter) = (task.clone(), task.jitter());
    }
    for (name, task) in names.zip(charged.iter().skip(tasks.len())) {
        let jitter = task.jitter();
        let task = task.clone();
        draft.members.push(Member { position: None, name, task, jitter, unknown: None });
    }
    if !servers.is_empty() {
        draft.counts("servers need not use all of their budget");
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
/// [`Sections::Limited`] is the general case. Servers are preempted.
fn sections(set: &TaskSet, tasks: &[usize], place: &TaskGroup) -> Sections {
    let kinds = || tasks.iter().map(|position| set.tasks[*position].preemption);
    if kinds().all(|kind| kind == Preemption::Full) {
        Sections::Preemptive
    } else if place.servers().is_empty() && kinds().all(|kind| kind == Preemption::None) {
        Sections::NonPreemptive
    } else if kinds().all(|kind| matches!(kind, Preemption::Full | Preemption::Floating { .. })) {
        Sections::Floating
    } else {
        Sections::Limited
    }
}
