//! Witnesses that are simulated: a deadline is called missed only where `hourglass simulate` shows the miss.
//!
//! Owns: which scenarios are simulated and for how long, what becomes of a verdict whose scenario shows
//! nothing, the miss and the file of the witness. Must not: bound anything, know how scenarios are made.

use std::collections::BTreeMap;
use std::rc::Rc;

use hourglass_documents::check::{
    CheckDocument, MissFacts, ProcessorFacts, TaskFacts, Verdict, WitnessFacts,
};
use hourglass_sim::{self as sim, FirstMiss, SimError, SimSettings};
use hourglass_tasks::TaskSet;
use hourglass_time::Span;

use super::guard;
use super::proof::time;
use super::scenario::{self, Scenario};
use crate::simulate;

/// Events that are simulated for a document, at most: a fraction of a second.
const MOST_EVENTS: u64 = 4_000_000;

/// Events of one scenario, at most.
const EVENTS_AT_ONCE: u64 = 1_000_000;

/// How often the horizon is doubled to see when a job that missed its deadline is done.
const MOST_DOUBLINGS: u32 = 3;

/// Simulates what the document calls missed. A task whose miss no scenario shows is not known to miss its
/// deadline; the witness gets the miss that was seen, and the file that shows it. With `any` analysis, what is
/// unknown is simulated too: with the phases that are given, and those that are open together.
pub(super) fn confirm(set: &TaskSet, document: &mut CheckDocument, any: bool) {
    let wanted: Vec<usize> = late(document).collect();
    let by_demand = wanted.is_empty() && document.verdict == Verdict::Infeasible;
    let overloaded = document.verdict == Verdict::NoBound;
    let unknown = any && wanted.is_empty() && document.verdict == Verdict::Unknown;
    if wanted.is_empty() && !by_demand && !overloaded && !unknown {
        return;
    }
    let priorities: Vec<Option<u32>> = document.tasks.iter().map(|task| task.priority).collect();
    let base = scenario::together(set, &priorities);
    let mut replay = Replay {
        events: if unknown { EVENTS_AT_ONCE } else { MOST_EVENTS },
        grows: overloaded,
        why: NOT_SHOWN.to_owned(),
        seen: BTreeMap::new(),
        covered: 0,
    };
    // All of them at once, which mostly is enough.
    let all: Vec<usize> = (0..set.tasks.len()).collect();
    let anybody = by_demand || overloaded;
    let asked = if anybody || unknown { &all } else { &wanted };
    replay.simulate(&base, asked, extent(set, document, &base, asked));
    if unknown {
        promote(document, &replay);
        say_covered(document, &replay);
        return show(document, replay);
    }
    for at in &wanted {
        replay.search(&base, *at, &document.tasks[*at], extent(set, document, &base, &[*at]));
    }
    if anybody && replay.seen.is_empty() {
        for at in all {
            replay.search(&base, at, &document.tasks[at], extent(set, document, &base, &[at]));
        }
    }
    retract_unwitnessed(document, &wanted, &replay);
    show(document, replay);
}

/// Positions of the tasks that are called late.
fn late(document: &CheckDocument) -> impl Iterator<Item = usize> + '_ {
    let late = |(_, task): &(usize, &TaskFacts)| task.verdict == Verdict::Infeasible;
    document.tasks.iter().enumerate().filter(late).map(|(at, _)| at)
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
struct WitnessedMiss {
    miss: MissFacts,
    scenario: Rc<TaskSet>,
    /// The horizon of a simulation that shows the miss, ns.
    horizon: u64,
}

struct Replay {
    /// Events that may still be simulated.
    events: u64,
    /// Whether more is demanded than there is, so that what waits grows.
    grows: bool,
    /// The reason why a miss is not known to happen.
    why: String,
    /// The first miss of each task that had one, by its position in the set.
    seen: BTreeMap<usize, WitnessedMiss>,
    /// The longest simulated time, ns.
    covered: u64,
}

/// No scenario shows a miss.
const NOT_SHOWN: &str =
    "the bound is over the deadline, but no simulation of such a case shows a miss";

const TOO_FAR: &str =
    "the bound is over the deadline, but the case is too long to be simulated here";

impl Replay {
    /// Tries scenarios for one task until it misses a deadline in one of them.
    fn search(&mut self, base: &Scenario, at: usize, facts: &TaskFacts, extent: ReplayHorizon) {
        if self.seen.contains_key(&at) {
            return;
        }
        for scenario in scenario::candidates(base, at, &facts.fixed_points) {
            let later = scenario.together - base.together;
            let first = extent.first.saturating_add(later);
            let most = extent.max.saturating_add(later);
            self.simulate(&scenario, &[at], ReplayHorizon { first, max: most });
            if self.seen.contains_key(&at) || self.events == 0 {
                return;
            }
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

/// Takes back what no scenario shows.
fn retract_unwitnessed(document: &mut CheckDocument, wanted: &[usize], replay: &Replay) {
    let shown = |at: usize, document: &CheckDocument| {
        let (cpus, server) = (&document.tasks[at].cpus, &document.tasks[at].server);
        let same = |other: &usize| {
            let other = &document.tasks[*other];
            other.cpus == *cpus && other.server == *server
        };
        // Where no response time is known, the demand says that some deadline is missed, but not whose.
        let whose = document.tasks[at].response_time_ns.is_none();
        replay.seen.contains_key(&at) || (whose && replay.seen.keys().any(same))
    };
    let kept: Vec<bool> = wanted.iter().map(|at| shown(*at, document)).collect();
    for (at, _) in wanted.iter().zip(kept).filter(|(_, kept)| !kept) {
        let facts = &mut document.tasks[*at];
        (facts.verdict, facts.reason) = (Verdict::Unknown, replay.why.clone());
    }
    for at in 0..document.processors.len() {
        let processor = &document.processors[at];
        let here =
            |task: &TaskFacts| task.cpus == processor.cpus && task.server == processor.server;
        let mut members = document.tasks.iter().enumerate().filter(|(_, task)| here(task));
        let stands = processor.verdict != Verdict::Infeasible
            || members.any(|(at, task)| {
                task.verdict == Verdict::Infeasible || replay.seen.contains_key(&at)
            });
        if !stands {
            document.processors[at].verdict = Verdict::Unknown;
            document.reason = Some(replay.why.clone());
        }
    }
    let before = document.verdict;
    super::conclude(document);
    if before == Verdict::NoBound && !replay.seen.is_empty() {
        document.verdict = document.verdict.max(before);
        document.reason = None;
    }
    if document.verdict == Verdict::Unknown && before != Verdict::Unknown {
        document.reason = Some(replay.why.clone());
        document.witness = None;
    }
}

/// Marks tasks as late if a scenario shows it, whatever the analysis found.
fn promote(document: &mut CheckDocument, replay: &Replay) {
    for at in replay.seen.keys() {
        let facts = &mut document.tasks[*at];
        if facts.verdict == Verdict::Unknown {
            facts.verdict = Verdict::Infeasible;
            facts.reason = "a simulation of an allowed case shows that it is late".to_owned();
        }
        let facts = &document.tasks[*at];
        let here = |on: &&mut ProcessorFacts| on.cpus == facts.cpus && on.server == facts.server;
        if let Some(processor) = document.processors.iter_mut().find(here) {
            processor.verdict = processor.verdict.max(facts.verdict);
        }
    }
    super::conclude(document);
}

/// Reports the time simulated without a miss, where a bound is over a deadline.
fn say_covered(document: &mut CheckDocument, replay: &Replay) {
    if !replay.seen.is_empty() || replay.covered == 0 {
        return;
    }
    let tasks = document.tasks.iter_mut().map(|task| &mut task.reason);
    for reason in document.reason.iter_mut().chain(tasks) {
        if reason.starts_with("the bound is over the deadline") {
            let covered = time(replay.covered);
            reason.push_str(&format!(
                "; with open phases together, no job misses its deadline in a simulation of {covered}"
            ));
        }
    }
}

/// Gives the witness the miss that was seen, of its own task if that is among them.
fn show(document: &mut CheckDocument, mut replay: Replay) {
    let named = document.witness.as_ref().and_then(|witness| witness.task.clone());
    let own = replay.seen.iter().find(|(_, seen)| Some(&seen.miss.task) == named.as_ref());
    let late = || replay.seen.keys().find(|at| document.tasks[**at].verdict == Verdict::Infeasible);
    let at = own.map(|(at, _)| *at).or_else(|| late().copied());
    let Some(at) = at.or_else(|| replay.seen.keys().next().copied()) else { return };
    let Some(WitnessedMiss { miss, scenario, horizon }) = replay.seen.remove(&at) else { return };
    if document.verdict < Verdict::NoBound {
        return;
    }
    let witness = match document.witness.take() {
        Some(witness) if witness.task.is_none() || named.as_ref() == Some(&miss.task) => witness,
        _ => of_miss(&miss),
    };
    let horizon = i64::try_from(horizon).ok().map(Span::from_nanos);
    let scenario = TaskSet { horizon, ..scenario.as_ref().clone() };
    let scenario = format!("{}{}", header(&miss), scenario.to_toml());
    let witness = WitnessFacts { miss: Some(miss), scenario: Some(scenario), ..witness };
    guard::admit(document, witness, NOT_SHOWN);
}

/// A witness of nothing but a miss.
fn of_miss(miss: &MissFacts) -> WitnessFacts {
    let (response, late) = match miss.done_ns {
        Some(done) => {
            let response = done.saturating_sub(miss.arrival_ns);
            (Some(response), format!("responds in {}", time(response)))
        }
        None => (None, "is not done".to_owned()),
    };
    let deadline = miss.due_ns.saturating_sub(miss.arrival_ns);
    WitnessFacts {
        kind: "response".to_owned(),
        task: Some(miss.task.clone()),
        job: Some(miss.job.saturating_add(1)),
        found_ns: response,
        limit_ns: Some(deadline),
        text: format!(
            "job {} of '{}' {late}, after its deadline of {}",
            miss.job.saturating_add(1),
            miss.task,
            time(deadline)
        ),
        ..WitnessFacts::default()
    }
}

/// The header comment in the file of a scenario.
fn header(miss: &MissFacts) -> String {
    let done = match miss.done_ns {
        Some(done) => format!("is done at {}", time(done)),
        None => "is not done by then".to_owned(),
    };
    format!(
        "# A case in which a deadline is missed, found by hourglass check. In hourglass simulate:\n\
         # job {} of {:?}, counted from 0, arrives at {}, is due at {} and {done}.\n",
        miss.job,
        miss.task,
        time(miss.arrival_ns),
        time(miss.due_ns)
    )
}

#[cfg(test)]
mod tests;
