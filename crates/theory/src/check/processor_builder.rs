//! From the tasks of one processor to its numbers.
//!
//! Owns: [`processor`], the one place where a [`Processor`] is built. What cannot be treated soundly refuses
//! its processor, with the reason. Must not: analyse.

use hourglass_documents::{CpuSet, Policy};
use hourglass_sched as sched;
use hourglass_sched::catalogue::{Rule, Situation};
use hourglass_sched::fixed_priority::Sections;
use hourglass_sched::overheads::KernelOverheads;
use hourglass_tasks::{Assignment, Preemption, Task, TaskSet};

use super::MOST_TOGETHER;
use super::priorities::{background, known_priorities, rank_above, ranks};
use super::processor::{Member, NoteList, Processor, TaskGroup};
use super::{locks, parameters, servers, time_sharing};

/// The tasks of one processor, or of the inside of a server, as they are described.
pub(super) struct ProcessorTasks<'a> {
    pub(super) set: &'a TaskSet,
    pub(super) place: &'a TaskGroup<'a>,
    /// Their positions in the set.
    pub(super) tasks: &'a [usize],
    pub(super) rule: Rule,
    pub(super) sections: Sections,
    pub(super) costs: KernelOverheads,
    /// Priorities are to be found.
    pub(super) finds_priorities: bool,
    /// There are preemption thresholds, and no other sections.
    pub(super) has_thresholds: bool,
    pub(super) has_phases: bool,
}

impl<'a> ProcessorTasks<'a> {
    /// Without `phases`, offsets are not used.
    pub(super) fn new(
        set: &'a TaskSet,
        place: &'a TaskGroup<'a>,
        tasks: &'a [usize],
        rule: Rule,
        phases: bool,
    ) -> ProcessorTasks<'a> {
        let has_thresholds = has_thresholds(set, tasks, rule);
        let sections = match rule {
            Rule::Fifo => Sections::Preemptive,
            _ if has_thresholds => Sections::Preemptive,
            Rule::FixedPriority | Rule::Edf => sections(set, tasks, place),
        };
        ProcessorTasks {
            set,
            place,
            tasks,
            rule,
            sections,
            costs: parameters::costs(set),
            finds_priorities: rule == Rule::FixedPriority
                && set.assignment() == Assignment::Optimal,
            has_thresholds,
            has_phases: phases && has_phases(set, tasks, rule),
        }
    }
}

/// What becomes of the tasks of a processor step by step.
pub(super) struct ProcessorBuilder<'a> {
    pub(super) members: Vec<Member>,
    /// What the numbers count that may never happen.
    inexact: Vec<String>,
    /// Whether what is below its servers has a share of the processor for certain.
    bounds_below: bool,
    pub(super) notes: &'a mut NoteList,
}

impl ProcessorBuilder<'_> {
    /// Says that the numbers count something that may never happen.
    pub(super) fn counts(&mut self, what: &str) {
        if !self.inexact.iter().any(|known| known == what) {
            self.inexact.push(what.to_owned());
        }
    }
}

/// One processor, or the inside of a server, with these tasks.
pub(super) fn processor(of: &ProcessorTasks, notes: &mut NoteList) -> Processor {
    let mut draft =
        ProcessorBuilder { members: Vec::new(), inexact: Vec::new(), bounds_below: true, notes };
    let filled = fill(of, &mut draft).and_then(|thresholds| {
        fits(of, &draft.members)?;
        situation(of, &thresholds, &mut draft)
    });
    let (situation, refused) = match filled {
        Ok(situation) => (situation, None),
        Err(why) => {
            if draft.members.len() < of.tasks.len() {
                let bare = of.tasks.iter().filter_map(|position| bare(of.set, *position));
                draft.members = bare.collect();
            }
            (without_numbers(of.place), Some(why))
        }
    };
    // What switches cost on several CPUs is known of jobs that meet their deadlines.
    let is_charged = matches!(of.place, TaskGroup::Shared(..)) && !of.costs.switches_are_free();
    Processor {
        cpus: of.place.cpus(),
        server: of.place.server(),
        rule: of.rule,
        sections: of.sections,
        situation,
        members: draft.members,
        finds_priorities: of.finds_priorities,
        inexact: draft.inexact,
        refused,
        holds_to_deadline: of.rule == Rule::Edf && of.costs.tick.is_some() || is_charged,
        time_sharing: match of.place {
            TaskGroup::Cpu { cpu, .. } if of.rule == Rule::FixedPriority && draft.bounds_below => {
                time_sharing::of(of.set, cpu, of.tasks)
            }
            _ => None,
        },
    }
}

/// The situation shown for a processor without an answer.
fn without_numbers(place: &TaskGroup) -> Situation {
    match place {
        TaskGroup::Shared(cpus, _) => Situation::Shared(cpus.len() as u64),
        TaskGroup::Inside(server, _, _) => {
            servers::known(server).map_or(Situation::Alone, Situation::Inside)
        }
        TaskGroup::Cpu { .. } => Situation::Alone,
    }
}

/// A member of which only the figures of the description are shown.
fn bare(set: &TaskSet, position: usize) -> Option<Member> {
    let task = &set.tasks[position];
    let (cost, period) = (task.wcet.nanos_or_zero(), task.period.nanos_or_zero());
    let made = sched::Task::new(cost, period, task.deadline().nanos_or_zero()).ok()?;
    let name = task.name.clone();
    Some(Member {
        position: Some(position),
        name,
        task: made,
        jitter: 0,
        held: Vec::new(),
        unknown: None,
    })
}

/// Checks that an analysis supports what tasks share.
fn fits(of: &ProcessorTasks, members: &[Member]) -> Result<(), String> {
    let count = members.len();
    if count > MOST_TOGETHER {
        return Err(format!(
            "{count} tasks run on CPUs {}, and at most {MOST_TOGETHER} are analysed together; give \
             fewer, or several CPUs and --partition",
            of.place.cpus()
        ));
    }
    match of.place {
        TaskGroup::Cpu { .. } => Ok(()),
        TaskGroup::Inside(server, _, delivered) => {
            delivered.clone()?;
            servers::is_plain(
                of.set,
                server,
                of.sections == Sections::Preemptive,
                of.finds_priorities,
            )
        }
        TaskGroup::Shared(cpus, _) => shared(of, cpus, members),
    }
}

/// Checks that the analyses of several CPUs support all of the set.
fn shared(of: &ProcessorTasks, cpus: &CpuSet, members: &[Member]) -> Result<(), String> {
    let tasks = of.tasks.iter().map(|position| &of.set.tasks[*position]);
    let known = of.place.servers();
    let others = members.iter().filter(|member| member.position.is_none()).count() > known.len();
    let may_run = |own: &Option<CpuSet>| {
        let own = own.clone().unwrap_or_else(|| of.set.cpus());
        !own.intersection(cpus).is_empty()
    };
    let here = of.set.servers.iter().filter(|server| may_run(&server.cpus));
    let what = if here.count() > known.len() {
        "servers other than hard reservations of one plain thread each"
    } else if tasks.clone().any(|task| !task.critical_sections.is_empty()) {
        "locks"
    } else if of.sections != Sections::Preemptive || of.has_thresholds {
        "non-preemptive sections or thresholds"
    } else if of.rule == Rule::Fifo {
        "first in, first out"
    } else if others || tasks.clone().any(|task| !task.arrivals.is_empty()) {
        "ticks, threads of the kernel or bursts"
    } else {
        return Ok(());
    };
    Err(format!("no analysis of Hourglass covers {what} where several CPUs share tasks"))
}

/// What tasks share; gives each its bursts, threshold or phase, which decide the analysis. Bursts are
/// jitter for analyses that know none.
///
/// # Errors
/// A number does not fit.
fn situation(
    of: &ProcessorTasks,
    thresholds: &[u32],
    draft: &mut ProcessorBuilder,
) -> Result<Situation, String> {
    let set = of.set;
    let arrivals = |member: &Member| {
        let of = member.position.map(|position| &set.tasks[position].arrivals);
        of.into_iter().flatten().map(|distance| distance.nanos_or_zero()).collect()
    };
    let curves: Vec<Vec<u64>> = draft.members.iter().map(arrivals).collect();
    let bursts = curves.iter().any(|curve| !curve.is_empty());
    let suspends = draft.members.iter().any(|member| member.task.suspension() > 0);
    let inside = matches!(of.place, TaskGroup::Inside(..));
    let counts_as_jitter = inside || suspends || of.rule == Rule::Fifo;
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
    } else if of.has_thresholds {
        for (member, threshold) in draft.members.iter_mut().zip(thresholds) {
            let made = member.task.with_threshold(*threshold);
            member.task = made.map_err(|why| why.to_string())?;
        }
    } else if of.has_phases {
        for member in &mut draft.members {
            let offset = member.position.and_then(|position| set.tasks[position].offset);
            member.task = member.task.with_phase(offset.map(|offset| offset.nanos_or_zero()));
        }
    }
    Ok(match of.place {
        TaskGroup::Inside(server, _, delivered) => {
            draft.counts(servers::LEAST_SUPPLY);
            let server = servers::known(server)?.with_delivery(delivered.clone()?);
            if server.is_soft() {
                draft.counts(servers::GOES_ON);
            }
            Situation::Inside(server)
        }
        TaskGroup::Shared(cpus, _) => Situation::Shared(cpus.len() as u64),
        TaskGroup::Cpu { .. } => Situation::Alone,
    })
}

/// Makes the members; returns the threshold of each task: only ranks above it preempt the task.
fn fill(of: &ProcessorTasks, draft: &mut ProcessorBuilder) -> Result<Vec<u32>, String> {
    let ranks = ranks(of)?;
    locks::check(of)?;
    let spinning = locks::spinning(of)?;
    if spinning.iter().any(|time| *time > 0) {
        draft.counts("locks of other CPUs need not be held whenever they are asked for");
        draft.notes.say(
            "each request for a spin lock waits for the longest section of every other CPU that \
             uses it, first come, first served",
        );
    }
    if of.has_phases {
        draft.notes.say(
            "phases are known: a task's first job arrives at its offset, each other exactly \
                   a period after the one before",
        );
    }
    let known = known_priorities(of.set);
    let mut thresholds = Vec::new();
    for ((position, rank), spinning) in of.tasks.iter().zip(&ranks).zip(spinning) {
        let mut member = parameters::member(of, *position, spinning, draft)?;
        let task = &of.set.tasks[*position];
        member.task = member.task.with_priority(*rank);
        thresholds.push(match task.preemption {
            Preemption::None => u32::MAX,
            // The threshold's rank is the number of known priorities not above it.
            Preemption::Threshold(threshold) => rank_above(&known, threshold).max(*rank),
            _ => *rank,
        });
        let is_reserved = task.policy == Some(Policy::Deadline);
        if of.rule == Rule::FixedPriority && !task.has_fixed_priority() && !is_reserved {
            member.unknown =
                Some("no analysis of Hourglass bounds the time-sharing classes".to_owned());
        }
        draft.members.push(member);
    }
    if of.finds_priorities && draft.members.iter().any(|member| member.unknown.is_some()) {
        return Err("priorities are to be found, but a task has a time-sharing policy".to_owned());
    }
    background(of, draft)?;
    burden(of, draft)?;
    Ok(thresholds)
}

/// Adds what the kernel costs, servers and ticks, and by how much locks block them all.
fn burden(of: &ProcessorTasks, draft: &mut ProcessorBuilder) -> Result<(), String> {
    let servers = of.place.servers();
    let refuse_to_find = |why: &str| match of.finds_priorities {
        true => Err(format!("priorities are to be found, but {why}; give priorities")),
        false => Ok(()),
    };
    if !servers.is_empty() && !of.costs.switches_are_free() {
        return Err(
            "how often a server is switched to is not known, and each time costs a switch \
                    and caches"
                .to_owned(),
        );
    }
    let (others, unbounded) = servers::as_tasks(of)?;
    let charged = parameters::charged(of, draft)?.with_tasks(&others);
    let held = locks::sections(of)?;
    locks::passed_over(of, draft.notes);
    let by_locks = locks::blocking(of.set, of.rule, &held, charged.tasks())?;
    // Without ranks no section is known to be of a less urgent task.
    if of.tasks.len() > 1 && held.iter().any(|held| !held.is_empty()) {
        refuse_to_find("how long locks are waited for depends on them")?;
    }
    if of.costs.tick.is_some() {
        refuse_to_find("a tick comes before all of them")?;
    }
    let names = servers.iter().map(|server| servers::label(server));
    let names = names.chain(of.costs.tick.map(|_| "the tick".to_owned()));
    let charged = charged.blocked(&by_locks).map_err(|why| why.to_string())?;
    let charged = match of.rule {
        Rule::Edf => charged.by_deadline().map_err(|why| why.to_string())?,
        Rule::FixedPriority | Rule::Fifo => charged.by_priority(),
    };
    for (member, task) in draft.members.iter_mut().zip(&charged) {
        (member.task, member.jitter) = (task.clone(), task.jitter());
    }
    for (member, held) in draft.members.iter_mut().zip(held) {
        member.held = held;
    }
    if let Some(why) = unbounded {
        draft.bounds_below = false;
        draft.members.iter_mut().for_each(|member| member.unknown = Some(why.clone()));
    }
    for (name, task) in names.zip(charged.iter().skip(of.tasks.len())) {
        draft.members.push(Member::of_others(name, task.clone()));
    }
    if !servers.is_empty() {
        draft.counts("servers need not use all of their budget");
    }
    if matches!(of.place, TaskGroup::Cpu { shared: Some(_), .. }) {
        draft.counts("servers may run on other CPUs as well");
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
