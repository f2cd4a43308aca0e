//! What to reserve for each task of a set, so that its deadline holds while its jobs are no longer than stated.
//!
//! Owns: what of a file becomes a number of `sched::design`, and in words why nothing can be proposed.
//! Must not: bound anything itself, ask the machine.

use hourglass_sched::Task as Numbers;
use hourglass_sched::design::{self, Stage, StageServer};
use hourglass_sched::servers::ServerPolicy;
use hourglass_tasks::{Task, TaskSet};
use hourglass_time::Span;

/// When the periods of a reservation begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetRule {
    /// When its only thread wakes after its deadline: the kernel's deadline class.
    AtWaking,
    /// One after the other, whenever jobs come, with a budget at any time of each: a quota.
    OnGrid,
    /// The same, and what is left of a budget is there, ahead of other work, until the period ends: a user-space reserve.
    OnGridKept,
}

/// A budget of one whole job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservationProposal {
    /// No less than the longest execution time of a job; more keeps the deadline as well.
    pub budget: Span,
    pub period: Span,
    /// Within which time of a period's begin the budget is delivered.
    pub deadline: Span,
    /// The bound on the response time, from the nominal arrival, as the deadline of the task.
    pub bound: Span,
}

/// For each task of a set the reservation of the longest period, with no other task in it; or why there is none, in a
/// sentence.
///
/// A task after others is released by their ends, which their own deadlines bound: these count as its jitter. Of a chain in which
/// only the last task has a deadline, or none has, the time that no job needs is shared by its stages as their work is.
///
/// A wait within a job counts as execution where a budget is there until its period ends: the wait takes none of it, ends without
/// a CPU, and is held up by nobody (suspension-oblivious; Chen and others, Real-Time Systems 2019).
#[must_use]
pub fn propose(set: &TaskSet, rule: BudgetRule) -> Vec<Result<ReservationProposal, String>> {
    let alone = set.tasks.iter().map(|task| proposal(set, task, rule));
    let mut all: Vec<Result<ReservationProposal, String>> = alone.collect();
    // A chain is not longer than there are tasks.
    for _ in &set.tasks {
        let without: Vec<&str> = set
            .tasks
            .iter()
            .zip(&all)
            .filter(|(_, found)| found.is_err())
            .map(|(task, _)| task.name.as_str())
            .collect();
        let lacks =
            |task: &Task| task.after.iter().find(|name| without.contains(&name.as_str())).cloned();
        let lacking: Vec<Option<String>> = set.tasks.iter().map(lacks).collect();
        for (found, before) in all.iter_mut().zip(lacking) {
            if let (Ok(_), Some(before)) = (&found, before) {
                *found = Err(format!(
                    "its jobs are released by the end of those of {before}, for which nothing is proposed"
                ));
            }
        }
    }
    all
}

/// User-space reserves that hold beside each other, for the tasks with a budget and a CPU here; `None` if none are found, or one of
/// these has no proposal alone. The deadlines of chains are shared so that the reserves have different priorities.
///
/// `less_urgent`: the shortest deadline of which the reserve has a lower priority than that of this one.
#[must_use]
pub fn propose_together(
    set: &TaskSet,
    shares: &[Option<(Span, u32)>],
    less_urgent: impl Fn(Span) -> Option<Span>,
) -> Option<Vec<Option<ReservationProposal>>> {
    let of_set = || set.tasks.iter().zip(shares);
    let shared: Vec<(&Task, Span, u32)> =
        of_set().filter_map(|(task, share)| share.map(|(span, cpu)| (task, span, cpu))).collect();
    let place = |name: &String| shared.iter().position(|(task, ..)| task.name == *name);
    let numbers = |(task, budget, _): &(&Task, Span, u32)| {
        waits(set, task, BudgetRule::OnGridKept).ok()?;
        // What has no reserve of this kind is bounded by its own deadline.
        let others = set.tasks.iter().filter(|other| task.after.contains(&other.name));
        let others = others.filter(|other| place(&other.name).is_none());
        let before = others.map(|other| stage_deadline(set, other)).max().unwrap_or(Span::ZERO);
        let released = before.saturating_add(task.jitter).saturating_add(task.tick_delay());
        numbers(task, (*budget, released, task.deadline())).ok()
    };
    let numbers = shared.iter().map(numbers).collect::<Option<Vec<Numbers>>>()?;
    let after = shared.iter().map(|(task, ..)| task.after.iter().filter_map(place).collect());
    let after: Vec<Vec<usize>> = after.collect();
    let stage = |at: usize| {
        let (task, _, processor) = shared[at];
        let mut next = set.tasks.iter().filter(|other| other.after.contains(&task.name)).peekable();
        // What has no reserve of this kind relies on the deadline that it was proposed with.
        let is_relied_on = next.peek().is_none() || next.any(|other| place(&other.name).is_none());
        let deadline = task.deadline.is_some() || is_relied_on;
        let deadline = deadline.then(|| stage_deadline(set, task).nanos_or_zero());
        Stage { task: &numbers[at], processor, after: &after[at], deadline }
    };
    let stages: Vec<Stage<'_>> = (0..shared.len()).map(stage).collect();
    let next = |ns| less_urgent(span(ns)).map(Span::nanos_or_zero);
    let mut found = design::together(&stages, next)?.into_iter();
    let proposal = |(task, share): (&Task, &Option<(Span, u32)>)| {
        share.as_ref()?;
        let StageServer { server, bound } = found.next()?;
        let [period, deadline, bound] = [server.period(), server.deadline(), bound].map(span);
        Some(ReservationProposal { budget: work(task), period, deadline, bound })
    };
    Some(of_set().map(proposal).collect())
}

fn proposal(set: &TaskSet, task: &Task, rule: BudgetRule) -> Result<ReservationProposal, String> {
    waits(set, task, rule)?;
    let (deadline, work) = (stage_deadline(set, task), work(task));
    if work > deadline {
        return Err(format!("a job takes up to {work}, more than the deadline of {deadline}"));
    }
    let released = released_within(set, task);
    let left = deadline.saturating_sub(released);
    if work > left {
        let why = match task.after.is_empty() {
            true => String::new(),
            false => format!(
                " after those of {}; state an earlier deadline for these",
                task.after.join(", ")
            ),
        };
        return Err(format!(
            "a job takes up to {work}, and may be released {released} after its arrival, which leaves {} of the deadline \
             of {deadline}{why}",
            left.max(Span::ZERO)
        ));
    }
    let numbers = numbers(task, (work, released, deadline))?;
    let kind = match rule {
        BudgetRule::AtWaking => ServerPolicy::HardBandwidth,
        BudgetRule::OnGrid => ServerPolicy::Periodic,
        BudgetRule::OnGridKept => ServerPolicy::Deferrable,
    };
    let Some(server) = design::of_whole_jobs(kind, &numbers) else {
        let apart = numbers.curve().map_or(Some(numbers.period()), |curve| curve.distance(2));
        return Err(format!(
            "jobs may come closer together ({}) than one of them takes ({work})",
            span(apart.unwrap_or(0))
        ));
    };
    let [period, served] = [server.period(), server.deadline()].map(span);
    // From the release, and on the grid after what is left of a period that has begun.
    let before = match rule {
        BudgetRule::AtWaking => Span::ZERO,
        BudgetRule::OnGrid | BudgetRule::OnGridKept => served.saturating_sub(work),
    };
    let bound = released.saturating_add(before).saturating_add(served);
    Ok(ReservationProposal { budget: span(server.budget()), period, deadline: served, bound })
}

/// How long after its nominal arrival, that of a chain's first task, a job is released at the latest.
fn released_within(set: &TaskSet, task: &Task) -> Span {
    let before = set.tasks.iter().filter(|other| task.after.contains(&other.name));
    let ended = before.map(|other| stage_deadline(set, other)).max().unwrap_or(Span::ZERO);
    ended.saturating_add(task.jitter).saturating_add(task.tick_delay())
}

/// What a job takes from its release on, with its waits.
fn work(task: &Task) -> Span {
    task.wcet.saturating_add(task.suspension)
}

/// A part of a chain, from a time that is known to one that is.
#[derive(Clone, Copy)]
struct Stretch {
    /// The end of what is before it, or the deadline at its end.
    at: Span,
    work: Span,
}

impl Stretch {
    fn with(self, task: &Task) -> Stretch {
        Stretch { work: self.work.saturating_add(work(task)), ..self }
    }
}

/// The deadline of a task, from the arrival of the first of its chain: the stated one, or a part of that of the chain.
fn stage_deadline(set: &TaskSet, task: &Task) -> Span {
    let most = set.tasks.len();
    let Some(before) = stages_before(set, task, most) else { return task.deadline() };
    let share = |after: Stretch| {
        let needed = before.at.saturating_add(before.work).saturating_add(after.work);
        let [slack, done, left] = [after.at.saturating_sub(needed), before.work, after.work]
            .map(|span| i128::from(span.nanos()));
        let part = i64::try_from(slack.checked_mul(done)? / (done + left).max(1)).ok()?;
        let end = before.at.saturating_add(before.work).saturating_add(Span::from_nanos(part));
        (slack > 0).then_some(end)
    };
    let ends = stages_after(set, task, most);
    match task.deadline {
        None if !ends.is_empty() => {
            let shares: Option<Vec<Span>> = ends.into_iter().map(share).collect();
            shares.and_then(|shares| shares.into_iter().min()).unwrap_or(task.deadline())
        }
        _ => task.deadline(),
    }
}

/// From the last stated deadline, or the release of the first task, to the end of this one; `None` after so many tasks.
fn stages_before(set: &TaskSet, task: &Task, most: usize) -> Option<Stretch> {
    let released = Stretch { at: task.jitter.saturating_add(task.tick_delay()), work: Span::ZERO };
    let mut latest = released;
    for other in set.tasks.iter().filter(|other| task.after.contains(&other.name)) {
        let before = match other.deadline {
            Some(at) => Stretch { at: at.saturating_add(released.at), ..released },
            None => stages_before(set, other, most.checked_sub(1)?)?,
        };
        let end = |stretch: &Stretch| stretch.at.saturating_add(stretch.work);
        if end(&before) > end(&latest) {
            latest = before;
        }
    }
    Some(latest.with(task))
}

/// From the end of this task to each deadline that comes first behind it; empty for the last of a chain.
fn stages_after(set: &TaskSet, task: &Task, most: usize) -> Vec<Stretch> {
    let Some(most) = most.checked_sub(1) else { return Vec::new() };
    let next = set.tasks.iter().filter(|other| other.after.contains(&task.name));
    next.flat_map(|next| {
        let ends = match next.deadline {
            Some(_) => Vec::new(),
            None => stages_after(set, next, most),
        };
        let end = Stretch { at: next.deadline(), work: Span::ZERO };
        let ends = if ends.is_empty() { vec![end] } else { ends };
        ends.into_iter().map(|stretch| stretch.with(next)).collect::<Vec<Stretch>>()
    })
    .collect()
}

/// `of_job`: what a job takes, when it is released at the latest, and its deadline.
fn numbers(task: &Task, of_job: (Span, Span, Span)) -> Result<Numbers, String> {
    let ns = |time: &Span| time.nanos_or_zero();
    let later: Vec<u64> = task.arrivals.iter().map(ns).collect();
    let (work, released, deadline) = of_job;
    let made = Numbers::new(ns(&work), ns(&task.period), ns(&deadline));
    let made = made.map_err(|why| why.to_string())?.with_jitter(ns(&released));
    made.with_bursts(&later).map_err(|why| why.to_string())
}

fn span(ns: u64) -> Span {
    Span::from_nanos(i64::try_from(ns).unwrap_or(i64::MAX))
}

/// That no job of the task waits before its end: after a wait, the budget that remains is not known but by the last rule.
fn waits(set: &TaskSet, task: &Task, rule: BudgetRule) -> Result<(), String> {
    let is_known = rule == BudgetRule::OnGridKept;
    if task.program.is_some() || task.suspension.is_positive() && !is_known {
        return Err(
            "a job waits before its end, and the budget that remains then is not known".to_owned()
        );
    }
    let shared = |other: &Task, name: &str| {
        other.name != task.name && other.critical_sections.iter().any(|s| s.resource == name)
    };
    let lock = task
        .critical_sections
        .iter()
        .find(|section| set.tasks.iter().any(|other| shared(other, &section.resource)));
    match lock {
        Some(section) => Err(format!(
            "a job may wait for the lock {}, and the budget that remains then is not known",
            section.resource
        )),
        None if task.blocking.is_positive() => {
            Err("less urgent tasks may hold a job up, which no budget ends".to_owned())
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proposed(keys: &str, rule: BudgetRule) -> Result<(i64, i64, i64), String> {
        let text = format!("[[task]]\nname = \"a\"\nwcet = \"3ms\"\nperiod = \"20ms\"\n{keys}");
        let set = TaskSet::from_toml(&text).unwrap();
        let found = propose(&set, rule).pop().unwrap()?;
        assert!(found.bound <= set.tasks.last().unwrap().deadline(), "{found:?}");
        let ms = |time: Span| time.nanos() / 1_000_000;
        Ok((ms(found.period), ms(found.deadline), ms(found.bound)))
    }

    /// As by hand in `sched::design`; the deadline counts from the nominal arrival (format.md).
    #[test]
    fn jitter_and_deadlines_count() {
        use BudgetRule::{AtWaking, OnGrid, OnGridKept};
        for (keys, waking, grid, kept) in [
            ("", (20, 20, 20), (11, 11, 20), (20, 11, 20)),
            ("jitter = \"4ms\"", (16, 16, 20), (9, 9, 20), (16, 9, 20)),
            ("jitter = \"4ms\"\ndeadline = \"10ms\"", (6, 6, 10), (4, 4, 10), (16, 4, 10)),
            ("deadline = \"60ms\"", (20, 20, 20), (20, 20, 37), (20, 20, 37)),
            ("arrivals = [\"7ms\", \"21ms\"]", (7, 7, 7), (7, 7, 11), (7, 7, 11)),
            ("timer = \"TICK:250\"", (16, 16, 20), (9, 9, 20), (16, 9, 20)),
        ] {
            assert_eq!(proposed(keys, AtWaking), Ok(waking), "{keys}");
            assert_eq!(proposed(keys, OnGrid), Ok(grid), "{keys}");
            assert_eq!(proposed(keys, OnGridKept), Ok(kept), "{keys}");
        }
    }

    /// 3 ms of work and 1 ms of waiting: 2 x 12 - 4 = 20.
    #[test]
    fn waits_count_as_execution_where_a_budget_is_kept() {
        let set = "[[task]]\nname = \"a\"\nwcet = \"3ms\"\nperiod = \"20ms\"\nsuspension = \"1ms\"";
        let found = propose(&TaskSet::from_toml(set).unwrap(), BudgetRule::OnGridKept).pop();
        let ms = Span::from_millis;
        let expected =
            ReservationProposal { budget: ms(4), period: ms(20), deadline: ms(12), bound: ms(20) };
        assert_eq!(found, Some(Ok(expected)));
    }

    #[test]
    fn what_no_budget_of_a_job_keeps_is_refused() {
        for (keys, cause) in [
            ("arrivals = [\"1ms\", \"21ms\"]", "closer together (1ms)"),
            ("arrivals = [\"7ms\", \"8ms\"]", "closer together (1ms)"),
            ("jitter = \"18ms\"", "leaves 2ms of the deadline of 20ms"),
            ("jitter = \"30ms\"", "leaves 0s of"),
            ("deadline = \"2ms\"", "more than the deadline of 2ms"),
            ("suspension = \"1ms\"", "waits before its end"),
            ("blocking = \"1ms\"", "hold a job up"),
            (
                "critical_sections = [{ resource = \"bus\", length = \"1ms\" }]\n[[resource]]\nname = \"bus\"\n[[task]]\n\
                 name = \"b\"\nwcet = \"1ms\"\nperiod = \"9ms\"\n\
                 critical_sections = [{ resource = \"bus\", length = \"1ms\" }]",
                "the lock bus",
            ),
        ] {
            let why = proposed(keys, BudgetRule::AtWaking).unwrap_err();
            assert!(why.contains(cause), "{keys}: {why}");
        }
    }

    /// A deadline of a chain counts from the arrival of its first task.
    #[test]
    fn chains_have_what_the_task_before_leaves() {
        let next = "[[task]]\nname = \"b\"\nwcet = \"2ms\"\nafter = [\"a\"]\n";
        let found = proposed(&format!("deadline = \"5ms\"\n{next}"), BudgetRule::AtWaking);
        assert_eq!(found, Ok((15, 15, 20)));
        // 15 ms are left over in all, and 9 of them are for the 3 ms of the first.
        assert_eq!(proposed(next, BudgetRule::AtWaking), Ok((8, 8, 20)));
        let three = format!("{next}[[task]]\nname = \"c\"\nwcet = \"3ms\"\nafter = [\"b\"]\n");
        assert_eq!(proposed(&three, BudgetRule::AtWaking), Ok((7, 7, 20)));
        let long = next.replace("2ms", "18ms");
        let late = proposed(&long, BudgetRule::AtWaking).unwrap_err();
        assert!(late.contains("state an earlier deadline"), "{late}");
        let none = format!("deadline = \"5ms\"\nsuspension = \"1ms\"\n{next}");
        let none = proposed(&none, BudgetRule::AtWaking).unwrap_err();
        assert!(none.contains("those of a, for which nothing"), "{none}");
    }

    /// As by hand in `sched::design`: 600 us, 1.1 ms and 1.1 ms in 10 ms, in octaves of 100 us: half of 600 us more, a quarter of
    /// 2.3 ms for the last one, which is the second most urgent, and an eighth of 4.5 ms. What has no share waits until its own deadline.
    #[test]
    fn reserves_hold_beside_each_other() {
        let task = |name: &str, wcet: &str, after: &str| {
            format!("[[task]]\nname = \"{name}\"\nwcet = \"{wcet}\"\nperiod = \"10ms\"\n{after}\n")
        };
        let chain = task("a", "500us", "")
            + &task("b", "1ms", "after = [\"a\"]")
            + &task("c", "1ms", "after = [\"b\"]");
        let set = TaskSet::from_toml(&chain).unwrap();
        let us = Span::from_micros;
        let shares = [Some((us(600), 1)), Some((us(1_100), 1)), Some((us(1_100), 1))];
        let octave = |deadline: Span| Some(us(100 << ((deadline.nanos() / 100_000).ilog2() + 1)));
        let found = propose_together(&set, &shares, octave).unwrap();
        let numbers = |one: ReservationProposal| {
            [one.budget, one.period, one.deadline, one.bound].map(|span| span.nanos() / 1_000)
        };
        let numbers: Vec<[i64; 4]> = found.into_iter().flatten().map(numbers).collect();
        assert_eq!(
            numbers,
            [[500, 9_700, 900, 900], [1_000, 5_137, 5_062, 5_962], [1_000, 3_425, 2_875, 10_000]]
        );
        let one = propose_together(&set, &[None, None, Some((us(1_100), 1))], octave).unwrap();
        assert!(one[0].is_none() && one[2].is_some_and(|one| one.bound > us(6_000)), "{one:?}");
        // The second begins when the first ends: 2 ms, as by `propose`.
        let first = propose_together(&set, &[Some((us(1_500), 1)), None, None], octave).unwrap();
        assert!(first[0].is_some_and(|one| one.bound <= us(2_000)), "{first:?}");
    }
}
