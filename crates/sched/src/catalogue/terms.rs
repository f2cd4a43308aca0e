//! What adds up to a point of a proof, for people.
//!
//! Owns: [`Term`], and the response that follows from a point. Must not: judge.

use crate::checker::{released_before, released_by};
use crate::sections::Sections;
use crate::task::Task;
use crate::verdict::Point;

use super::{Question, Rule, Situation};

/// Jobs of a task that count in a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// The position of the task; `None` for blocking.
    pub of: Option<usize>,
    /// How many.
    pub jobs: u64,
    /// The time that each of them counts.
    pub each: u64,
}

impl Question {
    /// The response time from nominal arrival that follows from a point of the task at `position`, whose
    /// releases jitter by `jitter`. Its jitter in the set may be longer, to stand for a burst.
    #[must_use]
    pub fn response(&self, position: usize, point: &Point, jitter: u64) -> u64 {
        let Some(task) = self.set.tasks().get(position) else { return 0 };
        if task.jitter > jitter {
            return point.finish.saturating_sub(point.offset).saturating_add(jitter);
        }
        let nominal = match (self.rule, task.curve()) {
            // Of responses inside a server, those count whose order plays no part.
            (Rule::Edf, _) if !matches!(self.situation, Situation::Inside(_)) => point.offset,
            // Nothing jitters, and jobs count from the beginning of a window of known phase.
            _ if self.has_phases() => point.offset,
            (_, Some(curve)) => curve.distance(point.jobs).unwrap_or(0).max(point.offset),
            (_, None) => point.jobs.saturating_sub(1).saturating_mul(task.period).max(point.offset),
        };
        point.finish.saturating_add(task.jitter).saturating_sub(nominal)
    }

    /// What adds up to the completion of a point of the task at `position`, its own jobs first; nothing
    /// where it does not add up, as inside a server, whose supply comes between.
    #[must_use]
    pub fn terms(&self, position: usize, point: &Point) -> Vec<Term> {
        let tasks = self.set.tasks();
        let (Situation::Alone, Some(own)) = (&self.situation, tasks.get(position)) else {
            return Vec::new();
        };
        if !self.set.is_plain() {
            return Vec::new();
        }
        let tail = match self.sections {
            Sections::Preemptive | Sections::Floating => 0,
            Sections::NonPreemptive => own.cost,
            Sections::Limited => own.last,
        };
        let Some(begin) = point.finish.checked_sub(tail.saturating_sub(1)) else {
            return Vec::new();
        };
        let each = own.cost.saturating_add(own.suspension);
        let mut found = vec![Term { of: Some(position), jobs: point.jobs, each }];
        for (other, task) in tasks.iter().enumerate().filter(|(other, _)| *other != position) {
            let jobs = u64::try_from(self.jobs(own, task, point, begin));
            let Ok(jobs @ 1..) = jobs else { continue };
            let suspended = if self.rule == Rule::Edf { task.suspension } else { 0 };
            let each = task.cost.saturating_add(suspended);
            found.push(Term { of: Some(other), jobs, each });
        }
        let sum: u128 = found.iter().map(|t| u128::from(t.jobs) * u128::from(t.each)).sum();
        match u128::from(point.finish).checked_sub(sum).map(u64::try_from) {
            Some(Ok(0)) => found,
            // The remainder is the blocking, if blocking is possible.
            Some(Ok(each)) if own.blocking > 0 || self.sections != Sections::Preemptive => {
                found.push(Term { of: None, jobs: 1, each });
                found
            }
            _ => Vec::new(),
        }
    }

    /// How many jobs of another task count in a point whose last segment begins at `begin`.
    fn jobs(&self, own: &Task, task: &Task, point: &Point, begin: u64) -> u128 {
        let before = released_before(begin.into(), task.jitter, task.period);
        if self.rule == Rule::Edf {
            let due = |task: &Task| i128::from(task.deadline) - i128::from(task.jitter);
            let ends = i128::from(point.offset) + due(own);
            return u128::try_from(ends - due(task))
                .map_or(0, |after| before.min(after / u128::from(task.period) + 1));
        }
        match task.priority.cmp(&own.priority) {
            std::cmp::Ordering::Greater => before,
            std::cmp::Ordering::Equal => released_by(point.offset.into(), task.jitter, task.period),
            std::cmp::Ordering::Less => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::TaskSet;

    /// Joseph and Pandya's sum: 3 of its own, twice 1 and once 2 of others are 7, from which the
    /// response follows; blocking is what is left over.
    #[test]
    fn terms_add_up_to_the_point() {
        let task = |cost, period| Task::new(cost, period, period).unwrap();
        for blocking in [0, 1] {
            let tasks = vec![task(1, 4), task(2, 12), task(3, 20).with_blocking(blocking)];
            let set = TaskSet::in_order(tasks);
            let (rule, sections) = (Rule::FixedPriority, Sections::Preemptive);
            let question = Question { set, rule, sections, situation: Situation::Alone };
            let found = question.analysis().unwrap().bounds(&question).unwrap().unwrap();
            let point = found.analysis.points(2)[0];
            let term = |of, jobs, each| Term { of, jobs, each };
            let mut terms = vec![term(Some(2), 1, 3), term(Some(0), 2, 1), term(Some(1), 1, 2)];
            terms.extend((blocking > 0).then_some(term(None, 1, blocking)));
            assert_eq!(question.terms(2, &point), terms);
            assert_eq!(question.response(2, &point, 0), 7 + blocking);
        }
    }
}
