//! What to reserve for each task of a set, so that its deadline holds while its jobs are no longer than stated.
//!
//! Owns: what of a file becomes a number of `sched::design::of_whole_jobs`, and in words why nothing can be proposed.
//! Must not: bound anything itself, ask the machine.

use hourglass_sched::Task as Numbers;
use hourglass_sched::design;
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
/// A task after others is released by their ends, which their own deadlines bound: these count as its jitter.
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

fn proposal(set: &TaskSet, task: &Task, rule: BudgetRule) -> Result<ReservationProposal, String> {
    waits(set, task)?;
    let deadline = task.deadline();
    if task.wcet > deadline {
        return Err(format!(
            "a job takes up to {}, more than the deadline of {deadline}",
            task.wcet
        ));
    }
    let released = released_within(set, task);
    let left = deadline.saturating_sub(released);
    if task.wcet > left {
        let why = match task.after.is_empty() {
            true => String::new(),
            false => format!(
                " after those of {}; state an earlier deadline for these",
                task.after.join(", ")
            ),
        };
        return Err(format!(
            "a job takes up to {}, and may be released {released} after its arrival, which leaves {} of the deadline \
             of {deadline}{why}",
            task.wcet,
            left.max(Span::ZERO)
        ));
    }
    let numbers = numbers(task, released)?;
    let kind = match rule {
        BudgetRule::AtWaking => ServerPolicy::HardBandwidth,
        BudgetRule::OnGrid => ServerPolicy::Periodic,
        BudgetRule::OnGridKept => ServerPolicy::Deferrable,
    };
    let Some(server) = design::of_whole_jobs(kind, &numbers) else {
        let apart = numbers.curve().map_or(Some(numbers.period()), |curve| curve.distance(2));
        return Err(format!(
            "jobs may come closer together ({}) than one of them takes ({})",
            span(apart.unwrap_or(0)),
            task.wcet
        ));
    };
    let [period, served] = [server.period(), server.deadline()].map(span);
    // From the release, and on the grid after what is left of a period that has begun.
    let before = match rule {
        BudgetRule::AtWaking => Span::ZERO,
        BudgetRule::OnGrid | BudgetRule::OnGridKept => served.saturating_sub(task.wcet),
    };
    let bound = released.saturating_add(before).saturating_add(served);
    Ok(ReservationProposal { budget: span(server.budget()), period, deadline: served, bound })
}

/// How long after its nominal arrival, that of a chain's first task, a job is released at the latest.
fn released_within(set: &TaskSet, task: &Task) -> Span {
    let before = set.tasks.iter().filter(|other| task.after.contains(&other.name));
    let ended = before.map(Task::deadline).max().unwrap_or(Span::ZERO);
    ended.saturating_add(task.jitter).saturating_add(task.tick_delay())
}

fn numbers(task: &Task, released: Span) -> Result<Numbers, String> {
    let ns = |time: &Span| time.nanos_or_zero();
    let later: Vec<u64> = task.arrivals.iter().map(ns).collect();
    let made = Numbers::new(ns(&task.wcet), ns(&task.period), ns(&task.deadline()));
    let made = made.map_err(|why| why.to_string())?.with_jitter(ns(&released));
    made.with_bursts(&later).map_err(|why| why.to_string())
}

fn span(ns: u64) -> Span {
    Span::from_nanos(i64::try_from(ns).unwrap_or(i64::MAX))
}

/// That no job of the task waits before its end: after a wait, the budget that remains is not known.
fn waits(set: &TaskSet, task: &Task) -> Result<(), String> {
    if task.suspension.is_positive() || task.program.is_some() {
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
            ("jitter = \"4ms\"\ndeadline = \"10ms\"", (16, 6, 10), (4, 4, 10), (16, 4, 10)),
            ("deadline = \"60ms\"", (20, 20, 20), (20, 20, 37), (20, 20, 37)),
            ("arrivals = [\"7ms\", \"21ms\"]", (7, 7, 7), (7, 7, 11), (7, 7, 11)),
            ("timer = \"TICK:250\"", (16, 16, 20), (9, 9, 20), (16, 9, 20)),
        ] {
            assert_eq!(proposed(keys, AtWaking), Ok(waking), "{keys}");
            assert_eq!(proposed(keys, OnGrid), Ok(grid), "{keys}");
            assert_eq!(proposed(keys, OnGridKept), Ok(kept), "{keys}");
        }
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
        let late = proposed(next, BudgetRule::AtWaking).unwrap_err();
        assert!(late.contains("state an earlier deadline"), "{late}");
        let none = format!("deadline = \"5ms\"\nsuspension = \"1ms\"\n{next}");
        let none = proposed(&none, BudgetRule::AtWaking).unwrap_err();
        assert!(none.contains("those of a, for which nothing"), "{none}");
    }
}
