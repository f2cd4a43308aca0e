//! Jobs that are not preempted and whose arrivals are known: all orders that they can take, where a bound for any
//! phases does not answer.
//!
//! Owns: which jobs are explored for how long, and why that is enough for ever. Must not: explore, call a job late.
//!
//! Jobs come again after a hyperperiod. Where every schedule has done all jobs that arrived before some time, and all
//! that arrived before the same time a hyperperiod later, nothing of the past is left at either, so that what was seen
//! between them is all that can be seen. A job ends when it is done, so what arrives after the horizon changes no job
//! that is done by it. Time is counted in halves of a nanosecond: a less urgent job may begin at any time before a more
//! urgent one is released, and the half stands for all of these.

use hourglass_documents::check::{TaskFacts, Verdict};
use hourglass_sched::catalogue::{AnalysisEntry, Method, Rule, Situation};
use hourglass_sched::effort::StepLimit;
use hourglass_sched::fixed_priority::Sections;
use hourglass_sched::jobset::{self, Ties, UncertainJob};
use hourglass_sched::{self as sched, Refusal, ResponseTime};
use hourglass_tasks::{Activation, TaskSet};

use super::guard::waits_for_others;
use super::parameters::{NO_OFFSETS, TOO_LONG};
use super::processor::{NoteList, Processor};
use super::solve::{self, ProcessorSolution, note_response};

/// The name of the exploration among the analyses.
const NAME: &str = "np-jobset";

/// Jobs of one exploration, at most.
const MOST_JOBS: u64 = 20_000;

/// Units of time in a nanosecond.
const HALVES: u64 = 2;

/// The answer for each processor; notes say where offsets count.
pub(super) fn solve(
    set: &TaskSet,
    processors: &[Processor],
    asked: Option<&AnalysisEntry>,
    notes: &mut NoteList,
) -> Vec<ProcessorSolution> {
    let is_asked = asked.is_some_and(|entry| matches!(entry.method, Method::JobOrders));
    let explores = asked.is_none() || is_asked;
    let (mut explored, mut passed_over) = (false, false);
    let solved = processors.iter().map(|processor| {
        let mut solved = solve::solve(processor, asked);
        let refined = explores && refine(set, processor, &mut solved, is_asked);
        explored |= refined;
        passed_over |= !refined && processor.inexact.iter().any(|what| what == NO_OFFSETS);
        solved
    });
    let solved = solved.collect();
    if explored && !passed_over {
        notes.0.retain(|note| note != NO_OFFSETS);
        notes.0.push(EXPLORED.to_owned());
    }
    solved
}

/// Answers for a processor whose answer is unknown because its phases were not used, or for which the exploration
/// was asked by name. Returns whether the phases count now.
fn refine(
    set: &TaskSet,
    processor: &Processor,
    solved: &mut ProcessorSolution,
    is_asked: bool,
) -> bool {
    let wanted = is_asked || solved.facts.verdict == Verdict::Unknown;
    if !wanted || processor.refused.is_some() {
        return false;
    }
    let found = fits(set, processor)
        .map_err(|why| is_asked.then(|| format!("{NAME} {why}")))
        .and_then(|()| responses(set, processor).map_err(Some));
    match found {
        Ok(responses) => {
            answer(processor, &responses, solved);
            true
        }
        Err(Some(why)) if is_asked => {
            *solved = ProcessorSolution::new(processor, NAME, &processor.in_any_phase());
            solved.conclude(Err(why));
            false
        }
        Err(Some(why)) => {
            let reasons = solved.tasks.iter_mut().filter(|(_, t)| t.verdict == Verdict::Unknown);
            for reason in reasons.map(|(_, task)| &mut task.reason).chain(&mut solved.reason) {
                reason.push_str(&format!("; the orders of the jobs are not known either: {why}"));
            }
            false
        }
        Err(None) => false,
    }
}

/// Whether jobs arrive at known times, run without preemption and wait for the processor alone.
fn fits(set: &TaskSet, processor: &Processor) -> Result<(), &'static str> {
    let is_known = |member: &super::processor::Member| {
        let task = member.position.map(|position| &set.tasks[position]);
        member.unknown.is_none()
            && member.task.blocking() == 0
            && member.task.suspension() == 0
            && member.task.jitter() == member.jitter
            && member.jitter < member.task.period()
            && task.is_some_and(|task| {
                task.offset.is_some()
                    && task.activation == Activation::Periodic
                    && task.arrivals.is_empty()
                    && task.critical_sections.is_empty()
                    && !waits_for_others(task)
            })
    };
    if processor.sections != Sections::NonPreemptive
        || processor.rule == Rule::Fifo
        || processor.situation != Situation::Alone
        || processor.finds_priorities
    {
        Err(
            "is for tasks that are not preempted, on one CPU, under EDF or priorities that are given",
        )
    } else if !processor.members.iter().all(is_known) {
        Err(
            "needs the offset of every periodic task, jitter below its period, and no blocking or suspension",
        )
    } else if processor.inexact.iter().any(|what| what != NO_OFFSETS) {
        Err("knows no costs of the kernel")
    } else {
        Ok(())
    }
}

struct Periodic<'a> {
    task: &'a sched::Task,
    offset: u64,
    shortest: u64,
}

/// A job of a member and when it arrives.
struct Arrival {
    member: usize,
    at: u64,
}

/// The longest response of each member from arrival, or why it is not known.
fn responses(set: &TaskSet, processor: &Processor) -> Result<Vec<u64>, String> {
    let members = processor.members.iter().filter_map(|member| {
        let task = &set.tasks[member.position?];
        Some(Periodic {
            task: &member.task,
            offset: task.offset?.nanos_or_zero(),
            shortest: task.bcet.map_or(0, |bcet| bcet.nanos_or_zero()).min(member.task.cost()),
        })
    });
    let members: Vec<Periodic> = members.collect();
    let (first, hyperperiod) = repeats(&members).ok_or(TOO_LONG)?;
    let end = hyperperiod.checked_mul(2).and_then(|two| two.checked_add(first)).ok_or(TOO_LONG)?;
    let arrivals = arrivals(&members, end)?;
    let ties = if processor.rule == Rule::Edf { Ties::Any } else { Ties::ByRelease };
    let jobs: Option<Vec<UncertainJob>> =
        arrivals.iter().zip(0..).map(|(a, id)| job(&members, a, id, processor.rule)).collect();
    let explored = jobset::explore(&jobs.ok_or(TOO_LONG)?, ties, StepLimit::default())
        .map_err(|why| why.to_string())?;
    let done: Option<Vec<u64>> =
        explored.finish.iter().map(|found| Some(found.as_ref()?.1.div_ceil(HALVES))).collect();
    let done = done.ok_or_else(|| match explored.verdict {
        sched::Verdict::Unknown(why) => why.to_string(),
        _ => Refusal::NotExact.to_string(),
    })?;
    let last = last_needed(&arrivals, &done, first, hyperperiod)
        .ok_or("jobs may be left at any time of a hyperperiod, so that nothing repeats")?;
    let mut longest = vec![0; members.len()];
    for (arrival, done) in arrivals[..last].iter().zip(done) {
        let response = &mut longest[arrival.member];
        *response = (*response).max(done.saturating_sub(arrival.at));
    }
    Ok(longest)
}

/// The time from which on arrivals repeat, and the time after which they do.
fn repeats(members: &[Periodic]) -> Option<(u64, u64)> {
    let hyperperiod = members.iter().try_fold(1_u64, |multiple, member| {
        let period = member.task.period();
        let (mut a, mut b) = (multiple, period);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        (multiple / a).checked_mul(period)
    })?;
    let begins = |member: &Periodic| (member.offset + 1).saturating_sub(member.task.period());
    let latest = members.iter().map(begins).max().unwrap_or(0);
    Some((latest.div_ceil(hyperperiod).checked_mul(hyperperiod)?, hyperperiod))
}

/// The jobs that arrive before `end`, in the order of their arrivals.
fn arrivals(members: &[Periodic], end: u64) -> Result<Vec<Arrival>, String> {
    let count = |m: &Periodic| end.saturating_sub(m.offset).div_ceil(m.task.period());
    let count = members.iter().map(count).fold(0, u64::saturating_add);
    if count > MOST_JOBS {
        return Err(format!(
            "two hyperperiods have {count} jobs, and at most {MOST_JOBS} are explored"
        ));
    }
    let mut all = Vec::new();
    for (member, periodic) in members.iter().enumerate() {
        let next = |at: &u64| at.checked_add(periodic.task.period());
        let times = std::iter::successors(Some(periodic.offset), next);
        all.extend(times.take_while(|at| *at < end).map(|at| Arrival { member, at }));
    }
    all.sort_by_key(|arrival| arrival.at);
    Ok(all)
}

fn job(members: &[Periodic], arrival: &Arrival, id: u64, rule: Rule) -> Option<UncertainJob> {
    let Periodic { task, shortest, .. } = &members[arrival.member];
    let halves = |time: u64| time.checked_mul(HALVES);
    let due = arrival.at.checked_add(task.deadline())?;
    let priority = match rule {
        Rule::Edf => due,
        Rule::FixedPriority | Rule::Fifo => u64::from(u32::MAX - task.priority()),
    };
    Some(UncertainJob {
        id,
        release: (halves(arrival.at)?, halves(arrival.at.checked_add(task.jitter())?)?),
        cost: (halves(*shortest)?, halves(task.cost())?),
        deadline: halves(due)?,
        priority,
    })
}

/// How many jobs show all that can happen: those that arrive before a time at which all earlier ones are done, as they
/// are a hyperperiod before it.
fn last_needed(arrivals: &[Arrival], done: &[u64], first: u64, hyperperiod: u64) -> Option<usize> {
    // Whether all jobs that arrive before a time are done by then; and how many they are.
    let latest: Vec<u64> = std::iter::once(0)
        .chain(done.iter().scan(0, |latest, done| {
            *latest = (*latest).max(*done);
            Some(*latest)
        }))
        .collect();
    let before = |time: u64| {
        let count = arrivals.partition_point(|arrival| arrival.at < time);
        (latest[count] <= time).then_some(count)
    };
    let times = arrivals.iter().map(|arrival| arrival.at);
    let times = times.filter(|at| (first..first.saturating_add(hyperperiod)).contains(at));
    std::iter::once(first).chain(times).find_map(|time| {
        before(time)?;
        before(time.checked_add(hyperperiod)?)
    })
}

/// Puts the longest responses into the words of the document.
fn answer(processor: &Processor, responses: &[u64], solved: &mut ProcessorSolution) {
    for ((member, response), (_, facts)) in
        processor.members.iter().zip(responses).zip(&mut solved.tasks)
    {
        let deadline = member.task.deadline();
        let from_release = facts.response_time_from_release_ns.unwrap_or(*response);
        *facts = TaskFacts { priority: facts.priority, ..TaskFacts::default() };
        let from_release = from_release.min(*response);
        note_response(facts, ResponseTime { from_arrival: *response, from_release }, deadline);
        if *response <= deadline {
            facts.verdict = Verdict::Feasible;
        } else {
            (facts.verdict, facts.reason) = (Verdict::Unknown, LATE.to_owned());
        }
    }
    NAME.clone_into(&mut solved.facts.analysis);
    (solved.facts.verified_points, solved.facts.verified_by) = (0, None);
    solved.facts.demand_points.clear();
    (solved.facts.demand_length_ns, solved.witness) = (None, None);
    solved.conclude(Ok(None));
}

/// The basis of the answer.
const EXPLORED: &str = "phases are known and all orders of the jobs are explored: a task's jobs arrive exactly a period apart from its offset";

/// Some order of jobs has a late one; only a simulation may call it so.
const LATE: &str = "the bound is over the deadline in an order of jobs that no simulation shows";
