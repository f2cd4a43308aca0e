//! Witnesses that are simulated: a deadline is called missed only where `hourglass simulate` shows the miss.
//!
//! Owns: which scenarios are simulated and for how long. Must not: bound anything, know how scenarios are made, change
//! a document.

use std::collections::BTreeMap;
use std::rc::Rc;

use hourglass_documents::check::{CheckDocument, MissFacts, Verdict};
use hourglass_sim::{self as sim, FirstMiss, SimError, SimSettings};
use hourglass_tasks::TaskSet;
use hourglass_time::Span;

use super::guard;
use super::scenario::{self, Scenario};
use crate::simulate;

/// Events that are simulated for a document, at most: a fraction of a second.
const MOST_EVENTS: u64 = 4_000_000;

/// Events of one scenario, at most.
const EVENTS_AT_ONCE: u64 = 1_000_000;

/// How often the horizon is doubled to see when a job that missed its deadline is done.
const MOST_DOUBLINGS: u32 = 3;

/// Simulates what the document calls missed; `None` if there is nothing to simulate. With `any` analysis, what is
/// unknown is simulated too: with the phases that are given, and those that are open together.
pub(super) fn replay(set: &TaskSet, document: &CheckDocument, any: bool) -> Option<Replay> {
    let is_late = |at: &usize| document.tasks[*at].verdict == Verdict::Infeasible;
    let wanted: Vec<usize> = (0..document.tasks.len()).filter(is_late).collect();
    let by_demand = wanted.is_empty() && document.verdict == Verdict::Infeasible;
    let overloaded = document.verdict == Verdict::NoBound;
    let unknown = any && wanted.is_empty() && document.verdict == Verdict::Unknown;
    if wanted.is_empty() && !by_demand && !overloaded && !unknown {
        return None;
    }
    let priorities: Vec<Option<u32>> = document.tasks.iter().map(|task| task.priority).collect();
    let base = scenario::together(set, &priorities);
    let cases = |at: usize| scenario::candidates(&base, at, &document.tasks[at].fixed_points);
    let mut replay = Replay {
        events: if unknown { EVENTS_AT_ONCE } else { MOST_EVENTS },
        grows: overloaded,
        wanted,
        is_unknown: unknown,
        why: NOT_SHOWN.to_owned(),
        seen: BTreeMap::new(),
        covered: 0,
    };
    // All of them at once, which mostly is enough.
    let all: Vec<usize> = (0..set.tasks.len()).collect();
    let any_task = by_demand || overloaded;
    let late = replay.wanted.clone();
    let asked = if any_task || unknown { &all } else { &late };
    replay.simulate(&base, asked, extent(set, document, &base, asked));
    let mut search = |tasks: &[usize]| {
        for at in tasks {
            let extent = extent(set, document, &base, &[*at]);
            replay.search(cases(*at), base.together, *at, extent);
        }
        replay.seen.is_empty()
    };
    if !unknown && search(&late) && any_task {
        search(&all);
    }
    Some(replay)
}

/// How far to simulate, ns: at first, and at most.
#[derive(Clone, Copy, Debug)]
struct ReplayHorizon {
    first: u64,
    max: u64,
}

/// The end of the busy window in which tasks are late, where that is known; else up to two hyperperiods.
fn extent(
    set: &TaskSet,
    document: &CheckDocument,
    base: &Scenario,
    tasks: &[usize],
) -> ReplayHorizon {
    let latest = |at: usize| {
        let (task, facts) = (&set.tasks[at], &document.tasks[at]);
        let ends = facts.fixed_points.iter().map(|point| point.finish_ns).max().unwrap_or(0);
        let due = facts.deadline_ns.saturating_add(task.jitter.nanos_or_zero());
        let begin = task.offset.map_or(0, |offset| offset.nanos_or_zero());
        begin.saturating_add(ends.max(due))
    };
    let demanded = document.witness.iter().filter(|witness| witness.kind == "demand");
    let demanded = demanded.filter_map(|witness| witness.limit_ns).max().unwrap_or(0);
    let end = tasks.iter().map(|at| latest(*at)).max().unwrap_or(0).max(demanded);
    let first = base.together.saturating_add(end).max(1);
    // Windows are of one CPU, and begin at any time where phases are known.
    let ends_there = |at: &usize| {
        let (task, facts) = (&set.tasks[*at], &document.tasks[*at]);
        let alone = facts.cpus.parse::<u32>().is_ok();
        alone && !facts.fixed_points.is_empty() && task.offset.is_none()
    };
    let most = if !tasks.is_empty() && tasks.iter().all(ends_there) { first } else { u64::MAX };
    ReplayHorizon { first, max: most }
}

/// A miss that a scenario has shown.
#[derive(Clone, Debug)]
pub(super) struct WitnessedMiss {
    pub(super) miss: MissFacts,
    pub(super) scenario: Rc<TaskSet>,
    /// The horizon of a simulation that shows the miss, ns.
    pub(super) horizon: u64,
}

/// The misses that simulations have shown.
pub(super) struct Replay {
    /// Events that may still be simulated.
    events: u64,
    /// Whether more is demanded than there is, so that what waits grows.
    grows: bool,
    /// Positions of the tasks that the document calls late.
    pub(super) wanted: Vec<usize>,
    /// Whether the document's verdict is unknown, so that any miss is news.
    pub(super) is_unknown: bool,
    /// The reason why a miss is not known to happen.
    pub(super) why: String,
    /// The first miss of each task that had one, by its position in the set.
    pub(super) seen: BTreeMap<usize, WitnessedMiss>,
    /// The longest simulated time, ns.
    pub(super) covered: u64,
}

/// No scenario shows a miss.
pub(super) const NOT_SHOWN: &str =
    "the bound is over the deadline, but no simulation of such a case shows a miss";

const TOO_FAR: &str = "the bound is over the deadline, but the case is too long to be simulated";

impl Replay {
    /// Tries cases of a task, whose first jobs are usually released at `together` ns, until it misses a deadline.
    fn search(
        &mut self,
        mut cases: impl Iterator<Item = Scenario>,
        together: u64,
        at: usize,
        extent: ReplayHorizon,
    ) {
        while !self.seen.contains_key(&at) && self.events > 0 {
            let Some(scenario) = cases.next() else { return };
            let later = scenario.together - together;
            let first = extent.first.saturating_add(later);
            let max = extent.max.saturating_add(later);
            self.simulate(&scenario, &[at], ReplayHorizon { first, max });
        }
    }

    /// Simulates a scenario, further and further, until one of these tasks misses a deadline.
    fn simulate(&mut self, scenario: &Scenario, tasks: &[usize], extent: ReplayHorizon) {
        let model = match simulate::model(&scenario.set, guard::AS_SIMULATED) {
            Ok(model) => model,
            Err(failure) => {
                self.why = failure.to_string();
                return;
            }
        };
        // Where more is demanded than there is, nothing repeats.
        let repeats = repeats(&scenario.set).filter(|_| !self.grows).unwrap_or(u64::MAX);
        let most = extent.max.min(repeats).max(extent.first);
        let mut horizon = extent.first;
        let mut longer = MOST_DOUBLINGS;
        loop {
            let events = self.events.min(EVENTS_AT_ONCE);
            let settings = SimSettings::until(horizon).with_most_events(events);
            let outcome = match sim::run(&model.system, settings) {
                Ok(outcome) => outcome,
                Err(error) => {
                    if matches!(error, SimError::TooManyEvents { .. }) {
                        self.events -= events;
                        self.why = TOO_FAR.to_owned();
                    }
                    return;
                }
            };
            self.events -= outcome.events.min(events);
            self.covered = self.covered.max(horizon);
            let misses = outcome.threads.iter().take(model.tasks).map(|thread| thread.first_miss);
            self.note(scenario, misses, horizon);
            let mut seen = tasks.iter().filter_map(|at| self.seen.get(at)).peekable();
            if seen.peek().is_none() {
                if horizon >= most {
                    return;
                }
                horizon = horizon.saturating_mul(2).min(most);
                continue;
            }
            // When is it done?
            if longer == 0 || seen.any(|seen| seen.miss.done_ns.is_some()) {
                return;
            }
            longer -= 1;
            horizon = horizon.saturating_mul(2);
        }
    }

    /// Keeps the misses of tasks that had none before, or of which it was open when the late job is done.
    fn note(
        &mut self,
        scenario: &Scenario,
        misses: impl Iterator<Item = Option<FirstMiss>>,
        horizon: u64,
    ) {
        let mut shared: Option<Rc<TaskSet>> = None;
        for ((at, task), miss) in scenario.places.iter().zip(&scenario.set.tasks).zip(misses) {
            let done = |miss: &FirstMiss, seen: &WitnessedMiss| {
                (seen.miss.done_ns, seen.miss.job) == (None, miss.job) && miss.done.is_some()
            };
            let is_new = |miss: &FirstMiss| self.seen.get(at).is_none_or(|seen| done(miss, seen));
            let counts = |_: &FirstMiss| scenario.is_whole || task.has_fixed_priority();
            let Some(miss) = miss.filter(is_new).filter(counts) else { continue };
            let facts = MissFacts {
                task: task.name.clone(),
                job: miss.job,
                arrival_ns: miss.arrival,
                due_ns: miss.deadline,
                done_ns: miss.done,
            };
            let set = shared.get_or_insert_with(|| Rc::new(scenario.set.clone()));
            let scenario = Rc::clone(set);
            // A job that is not done may not even have been released when it was due.
            let horizon = miss.done.unwrap_or(horizon);
            self.seen.insert(*at, WitnessedMiss { miss: facts, scenario, horizon });
        }
    }
}

/// The time in which everything has repeated, if it fits.
fn repeats(set: &TaskSet) -> Option<u64> {
    let begin = |offset: Option<Span>| offset.map_or(0, |offset| offset.nanos_or_zero());
    let last = set.tasks.iter().map(|task| begin(task.offset)).max()?;
    simulate::hyperperiod(set)?.checked_mul(2)?.checked_add(last)
}

#[cfg(test)]
mod tests;
