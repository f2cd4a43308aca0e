//! How far tasks may change where the numbers of one processor alone do not say it: in chains, on CPUs that tasks share, in
//! reservations, with bursts, beside threads of which nothing is known.
//!
//! Owns: the changed descriptions, each translated as a whole, and which deadlines are asked for. Must not: analyse, bisect.

use std::cell::Cell;

use hourglass_sched::admission::{self, Fraction};
use hourglass_sched::catalogue::Rule;
use hourglass_sched::effort::StepLimit;
use hourglass_sched::fixed_priority::Sections;
use hourglass_sched::sensitivity::{ScaleTest, deadlines, furthest};
use hourglass_sched::{Refusal, Task as Numbers, Verdict};
use hourglass_tasks::{Preemption, Task, TaskSet};
use hourglass_time::Span;

use super::chains::ChainedTasks;
use super::placement;
use super::processor::{NoteList, Processor};
use super::sensitivity::{LOOKS, PARTS, tested};

/// Looks that the translation of a task takes.
const TRANSLATION: u64 = 400;

/// The tasks whose deadlines are asked for: those of a processor or of a server, or all in chains.
#[derive(Clone, Copy)]
pub(super) enum Scope<'a> {
    Processor(&'a Processor),
    Chains(&'a ChainedTasks),
}

/// A description, of which one thing after the other is changed.
pub(super) struct Variation<'a> {
    set: TaskSet,
    scope: Scope<'a>,
    effort: Cell<StepLimit>,
    is_given_up: Cell<bool>,
}

impl<'a> Variation<'a> {
    /// Phases are not used: they are of these periods alone.
    pub(super) fn new(set: &TaskSet, scope: Scope<'a>, effort: StepLimit) -> Variation<'a> {
        let mut set = set.clone();
        for task in &mut set.tasks {
            (task.offset, task.wcet_at_least) = (None, None);
        }
        Variation { set, scope, effort: Cell::new(effort), is_given_up: Cell::new(false) }
    }

    /// Whether the last search ended where a test was given up; asked once.
    pub(super) fn was_given_up(&self) -> bool {
        self.is_given_up.take()
    }

    pub(super) fn effort(&self) -> StepLimit {
        self.effort.get()
    }

    /// The largest execution time of a task; `None` if the deadlines are not known to hold as it is.
    pub(super) fn largest_wcet(&self, at: usize) -> Option<u64> {
        let task = &self.set.tasks[at];
        let (given, deadline) = (task.wcet.nanos_or_zero(), task.deadline().nanos_or_zero());
        furthest(given, deadline, given, Vec::new(), |wcet| {
            self.holds(&|set| set.tasks[at].wcet = nanos(wcet))
        })
    }

    /// The smallest period, which is that of all in its chain; `None` also of a task that another one releases, and of one whose
    /// bursts go with its period.
    pub(super) fn smallest_period(&self, at: usize) -> Option<u64> {
        let task = &self.set.tasks[at];
        if !task.after.is_empty() || !task.arrivals.is_empty() {
            return None;
        }
        let together = match self.scope {
            Scope::Processor(_) => &[at],
            Scope::Chains(chained) => chained.chain_of(at),
        };
        let given = task.period.nanos_or_zero();
        let is_implicit = task.deadline() == task.period;
        let ends = self.ends(at).into_iter().filter(|_| is_implicit);
        let ends = ends.flat_map(|own| [own.saturating_add(1), own]);
        let ends = ends.filter_map(|own| given.checked_sub(own)).collect();
        let shorter = furthest(0, given.checked_sub(1)?, 0, ends, |less| {
            self.holds(&|set| {
                for of in together {
                    let task = &mut set.tasks[*of];
                    // A deadline that is the period stays it.
                    task.deadline = task.deadline.filter(|deadline| *deadline != task.period);
                    task.period = nanos(given - less);
                }
            })
        })?;
        Some(given - shorter)
    }

    /// The largest jitter; `None` also of a task that another one releases.
    pub(super) fn largest_jitter(&self, at: usize) -> Option<u64> {
        let task = &self.set.tasks[at];
        let given = task.jitter.nanos_or_zero();
        let most = task.after.is_empty().then(|| task.deadline().nanos_or_zero())?;
        let ends = self.ends(at).into_iter().filter_map(|own| most.checked_sub(own));
        let ends = ends.flat_map(|jitter| [jitter.saturating_sub(1), jitter]).collect();
        furthest(given, most, given, ends, |jitter| {
            self.holds(&|set| set.tasks[at].jitter = nanos(jitter))
        })
    }

    /// By how many parts of [`PARTS`] all execution times may be multiplied, the utilisation that there is then, and what is
    /// said of one part more; `None` if by none.
    pub(super) fn largest_factor(&self) -> Option<(u64, Option<Fraction>, ScaleTest)> {
        let own = self.own();
        let most = |at: &usize| {
            let task = &self.set.tasks[*at];
            let parts = task.deadline().nanos_or_zero().checked_mul(PARTS)?;
            Some(parts.div_ceil(task.wcet.nanos_or_zero().max(1)))
        };
        let high = own.iter().filter_map(most).min()?;
        let scale = |factor: u64| move |task: &mut Task| scale(task, factor);
        let scaled = |factor: u64| {
            let own = &own;
            move |set: &mut TaskSet| own.iter().for_each(|at| scale(factor)(&mut set.tasks[*at]))
        };
        let is_held = |factor| self.holds(&scaled(factor));
        let factor = furthest(1, high, PARTS, Vec::new(), is_held)?;
        let numbers = self.changed(&scaled(factor)).and_then(|set| self.numbers(&set));
        let utilisation = numbers.and_then(|numbers| admission::utilisation(&numbers.into()));
        Some((factor, utilisation, self.test(&scaled(factor + 1))))
    }

    /// The deadlines that a task may have, less its jitter, behind which others hold it up, or it them.
    fn ends(&self, at: usize) -> Vec<u64> {
        let Scope::Processor(of) = self.scope else { return Vec::new() };
        let has_locks = of.members.iter().any(|member| !member.held.is_empty());
        let own = of.members.iter().position(|member| member.position == Some(at));
        let own = own.filter(|_| has_locks || of.sections != Sections::Preemptive);
        let Some(own) = own.filter(|_| of.rule == Rule::Edf) else { return Vec::new() };
        let jitter = of.members[own].jitter;
        let timers = jitter.saturating_sub(self.set.tasks[at].jitter.nanos_or_zero());
        let found: Vec<u64> = deadlines(&of.numbers(), own).collect();
        let later = [0, timers, jitter];
        found.iter().flat_map(|end| later.map(|later| end.saturating_add(later))).collect()
    }

    /// Positions of the tasks that are asked about.
    pub(super) fn own(&self) -> Vec<usize> {
        let processors = match self.scope {
            Scope::Processor(processor) => std::slice::from_ref(processor),
            Scope::Chains(chained) => &chained.processors,
        };
        let members = processors.iter().flat_map(|processor| &processor.members);
        members.filter_map(|member| member.position).collect()
    }

    fn holds(&self, change: &dyn Fn(&mut TaskSet)) -> bool {
        let found = self.test(change).verdict;
        let holds = found == Verdict::Feasible;
        // Searches close in: the last that does not hold is the one next to the limit.
        if !holds {
            self.is_given_up.set(found == Verdict::Unknown(Refusal::TooLong));
        }
        holds
    }

    fn changed(&self, change: &dyn Fn(&mut TaskSet)) -> Option<TaskSet> {
        let mut set = self.set.clone();
        change(&mut set);
        for task in &mut set.tasks {
            task.bcet = task.bcet.map(|least| least.min(task.wcet));
        }
        set.check().ok()?;
        Some(set)
    }

    fn test(&self, change: &dyn Fn(&mut TaskSet)) -> ScaleTest {
        let unknown = ScaleTest { verdict: Verdict::Unknown(Refusal::NotExact), failing: None };
        let looks = TRANSLATION.saturating_mul(self.set.tasks.len() as u64);
        let mut left = StepLimit::with_steps(self.effort.get().left().saturating_sub(looks));
        let found = self.changed(change).and_then(|set| match self.scope {
            Scope::Chains(_) => {
                let chained = ChainedTasks::of(&set, &mut NoteList::default()).ok()?;
                Some(left.at_most(LOOKS, |effort| chained.test(&set, effort)))
            }
            Scope::Processor(_) => {
                let here = self.here(&set)?;
                let found = tested(&here, &here.numbers(), &mut left);
                let failing = found.failing.and_then(|at| here.members[at].position);
                Some(ScaleTest { failing, ..found })
            }
        });
        self.effort.set(left);
        found.unwrap_or(unknown)
    }

    /// The processor asked about with a changed set.
    fn here(&self, set: &TaskSet) -> Option<Processor> {
        let Scope::Processor(asked) = self.scope else { return None };
        let all = placement::processors(set, false, &mut NoteList::default()).ok()?;
        let mut all = all.into_iter();
        let is_here = |of: &Processor| (&of.cpus, &of.server) == (&asked.cpus, &asked.server);
        all.find(is_here).filter(|here| here.refused.is_none())
    }

    fn numbers(&self, set: &TaskSet) -> Option<Vec<Numbers>> {
        let numbers = |of: &Processor| of.numbers().tasks().to_vec();
        match self.scope {
            Scope::Processor(_) => self.here(set).map(|here| numbers(&here)),
            Scope::Chains(_) => {
                let chained = ChainedTasks::of(set, &mut NoteList::default()).ok()?;
                Some(chained.processors.iter().flat_map(numbers).collect())
            }
        }
    }
}

fn nanos(ns: u64) -> Span {
    Span::from_nanos(i64::try_from(ns).unwrap_or(i64::MAX))
}

/// The execution time and the sections that are not preempted, in parts, rounded up. The shortest execution time, rounded down,
/// shrinks as well: a job that ends early may move what comes after it. It does not grow, so that it may be any longer one.
fn scale(task: &mut Task, factor: u64) {
    let times = |span: &mut Span| {
        let scaled = u128::from(span.nanos_or_zero()) * u128::from(factor);
        *span = nanos(u64::try_from(scaled.div_ceil(PARTS.into())).unwrap_or(u64::MAX));
    };
    times(&mut task.wcet);
    let shortest = |span: Span| {
        let scaled = u128::from(span.nanos_or_zero()) * u128::from(factor.min(PARTS));
        nanos(u64::try_from(scaled / u128::from(PARTS)).unwrap_or(u64::MAX))
    };
    task.bcet = task.bcet.map(shortest);
    match &mut task.preemption {
        Preemption::Limited { longest, last } => [longest, last].into_iter().for_each(times),
        Preemption::Floating { longest } => times(longest),
        Preemption::Full | Preemption::None | Preemption::Threshold(_) => {}
    }
}
