//! Task graphs across processors by event models: compositional performance analysis, as pyCPA does
//! it.
//!
//! Owns: [`CpaSystem`], the local analyses of each processor ([`busy_window`]), the propagation of event models
//! along the graph ([`events`]), and the fixed point over both (Richter, dissertation, Braunschweig
//! 2005; Schliecker, Rox, Ivers and Ernst, CODES+ISSS 2008). A response counts from a job's activation,
//! not from the nominal arrival.
//!
//! [`Node`] is no [`crate::Task`]: it has no period or deadline of its own, but what activates it, and what
//! it needs is bounded from below, too. Its stream of events is found with the response of the node before
//! it.
//!
//! Must not: join streams (a task has one predecessor at most), use correlations between streams.

pub mod busy_window;
pub mod events;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::rc::Rc;

use crate::effort::StepLimit;
use crate::exact_fraction::compare_shares;
use crate::verdict::Refusal;

use events::{EventModel, EventStream, Propagation};

/// How a processor serves its tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// Fixed priorities, preemptive. Equal priorities delay each other.
    Preemptive,
    /// Fixed priorities, not preemptive.
    NonPreemptive,
    /// Round robin; a task's parameter is the longest it is served in a turn.
    RoundRobin,
    /// A slot each in a cycle of all slots, whether it is used or not; a task's parameter is its slot.
    TimeDivision,
}

/// The source of a task's activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// Events from outside.
    Source(EventModel),
    /// The completion of the task at this position.
    After(usize),
}

/// A node of the graph: work that each event of its stream asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The shortest execution time; 0 if it is not known.
    pub bcet: u64,
    /// The longest execution time.
    pub cost: u64,
    /// Position of its processor.
    pub processor: usize,
    /// Its priority (the larger number is more urgent) or slot, as the scheduler has it.
    pub parameter: u64,
    /// The source of its activations.
    pub activation: Activation,
}

/// Tasks and the processors that they share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpaSystem {
    tasks: Vec<Node>,
    schedulers: Vec<Scheduler>,
    /// Positions, each task after the one that activates it.
    order: Vec<usize>,
}

/// A graph that cannot be meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// A cost of 0, or a shortest time over the longest.
    #[error("task {0} needs 0 <= shortest <= longest execution time, and a longest above 0")]
    Cost(usize),
    /// A slot of 0.
    #[error("task {0} has a slot of 0; give the time that it is served in a turn")]
    Slot(usize),
    /// A period of 0.
    #[error("task {0} has a period of 0; give the mean time between two events")]
    Period(usize),
    /// A processor or task that is not there.
    #[error("task {0} is on a processor, or after a task, that is not there")]
    Missing(usize),
    /// A task that no source activates.
    #[error("task {0} is activated by itself in the end; a chain needs a source")]
    Cycle(usize),
}

impl CpaSystem {
    /// These tasks on processors of which each serves as stated.
    ///
    /// # Errors
    /// The first part that is malformed.
    pub fn new(tasks: Vec<Node>, schedulers: Vec<Scheduler>) -> Result<CpaSystem, GraphError> {
        for (at, task) in tasks.iter().enumerate() {
            if task.cost == 0 || task.bcet > task.cost {
                return Err(GraphError::Cost(at));
            }
            let scheduler = schedulers.get(task.processor).ok_or(GraphError::Missing(at))?;
            let slots = matches!(scheduler, Scheduler::RoundRobin | Scheduler::TimeDivision);
            if slots && task.parameter == 0 {
                return Err(GraphError::Slot(at));
            }
            match task.activation {
                Activation::Source(arrivals) if arrivals.period == 0 => {
                    return Err(GraphError::Period(at));
                }
                Activation::After(before) if before >= tasks.len() => {
                    return Err(GraphError::Missing(at));
                }
                Activation::Source(_) | Activation::After(_) => {}
            }
        }
        let order = order(&tasks)?;
        Ok(CpaSystem { tasks, schedulers, order })
    }

    /// The tasks.
    #[must_use]
    pub fn tasks(&self) -> &[Node] {
        &self.tasks
    }

    /// How each processor serves.
    #[must_use]
    pub fn schedulers(&self) -> &[Scheduler] {
        &self.schedulers
    }

    /// The source that a task's events come from in the end.
    pub(crate) fn source(&self, task: usize) -> EventModel {
        let mut at = task;
        loop {
            match self.tasks[at].activation {
                Activation::Source(arrivals) => return arrivals,
                Activation::After(before) => at = before,
            }
        }
    }

    /// The other tasks on a task's processor.
    pub(crate) fn same_processor(&self, task: usize) -> impl Iterator<Item = usize> + '_ {
        let here = self.tasks[task].processor;
        (0..self.tasks.len()).filter(move |at| *at != task && self.tasks[*at].processor == here)
    }

    /// Whether one task can delay another on its processor as often as it comes.
    pub(crate) fn delays(&self, other: usize, task: usize) -> bool {
        match self.schedulers[self.tasks[task].processor] {
            Scheduler::Preemptive | Scheduler::NonPreemptive => {
                self.tasks[other].parameter >= self.tasks[task].parameter
            }
            Scheduler::RoundRobin | Scheduler::TimeDivision => true,
        }
    }
}

/// Each task after its predecessor; refuses cycles.
fn order(tasks: &[Node]) -> Result<Vec<usize>, GraphError> {
    let mut order = Vec::with_capacity(tasks.len());
    let mut placed = vec![false; tasks.len()];
    while order.len() < tasks.len() {
        let before = order.len();
        for (at, task) in tasks.iter().enumerate() {
            let ready = match task.activation {
                Activation::Source(_) => true,
                Activation::After(before) => placed[before],
            };
            if ready && !placed[at] {
                placed[at] = true;
                order.push(at);
            }
        }
        if order.len() == before {
            let cycle = placed.iter().position(|placed| !placed);
            return Err(GraphError::Cycle(cycle.unwrap_or(0)));
        }
    }
    Ok(order)
}

/// The bounds of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeResult {
    /// The longest response from the activation.
    pub response: Result<u64, UnboundedReason>,
    /// The shortest response from the activation.
    pub best_response: u64,
    /// At most this long do the first, the first two, ... jobs of a busy window take: the points
    /// that prove the bound. The last one ends the window.
    pub busy: Vec<u64>,
}

/// The reason why a task has no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnboundedReason {
    /// More is demanded than the processor has.
    #[error("more is demanded than the processor has")]
    Overload,
    /// The analysis cannot tell.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// The answer for a system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpa {
    /// One a task.
    pub tasks: Vec<NodeResult>,
    /// How event models were propagated.
    pub propagation: Propagation,
}

impl Cpa {
    /// From the first task's activation to the last one's completion, at least and at most; the most
    /// is `None` if a task on the way has no bound (Richter 2005, definition 7.3).
    #[must_use]
    pub fn latency(&self, path: &[usize]) -> (u64, Option<u64>) {
        let results = || path.iter().map(|at| &self.tasks[*at]);
        let least = results().map(|task| task.best_response).fold(0, u64::saturating_add);
        let most = results().try_fold(0u64, |sum, task| sum.checked_add(task.response.ok()?));
        (least, most)
    }
}

/// Rounds before the tasks that still change are given up.
const MOST_ROUNDS: usize = 200;

/// Looks of the search in all rounds; a look is at the events of one task in a window.
const LOOKS: u64 = 2_500_000;

/// Bounds the responses of all tasks.
#[must_use]
pub fn analyse(system: &CpaSystem, propagation: Propagation) -> Cpa {
    let none = |task: &Node| NodeResult {
        response: Ok(task.bcet),
        best_response: task.bcet,
        busy: vec![],
    };
    let mut results: Vec<NodeResult> = system.tasks.iter().map(none).collect();
    let overloaded = (0..system.tasks.len()).filter(|at| overloaded(system, *at));
    for at in overloaded.collect::<Vec<_>>() {
        lose(system, &mut results, at, UnboundedReason::Overload);
    }
    let mut effort = StepLimit::with_steps(LOOKS);
    for round in 0..=MOST_ROUNDS {
        let changed = one_round(system, propagation, &mut results, &mut effort);
        if changed.is_empty() {
            break;
        }
        if round == MOST_ROUNDS {
            for at in changed {
                lose(system, &mut results, at, UnboundedReason::Refused(Refusal::Diverges));
            }
        }
    }
    let found = Cpa { tasks: results, propagation };
    debug_assert_eq!(crate::checker::cpa(system, &found), Ok(()));
    found
}

/// Analyses all tasks with the event models that the results so far imply; gives those whose result
/// is new.
fn one_round(
    system: &CpaSystem,
    propagation: Propagation,
    results: &mut [NodeResult],
    effort: &mut StepLimit,
) -> Vec<usize> {
    let models = models(system, propagation, results);
    let mut changed = Vec::new();
    for at in 0..system.tasks.len() {
        if results[at].response.is_err() {
            continue;
        }
        match busy_window::busy_times(system, &models, at, effort) {
            Ok((busy, response)) => {
                if busy != results[at].busy || results[at].response != Ok(response) {
                    changed.push(at);
                }
                results[at].busy = busy;
                results[at].response = Ok(response);
            }
            Err(why) => {
                changed.push(at);
                lose(system, results, at, UnboundedReason::Refused(why));
            }
        }
    }
    changed
}

/// The event model of each task's activations; none where nothing is known of what activates it.
pub(crate) fn models(
    system: &CpaSystem,
    propagation: Propagation,
    results: &[NodeResult],
) -> Vec<Option<Rc<EventStream>>> {
    let mut models: Vec<Option<Rc<EventStream>>> = vec![None; system.tasks.len()];
    for at in &system.order {
        models[*at] = match system.tasks[*at].activation {
            Activation::Source(arrivals) => Some(EventStream::source(arrivals)),
            Activation::After(before) => {
                let result = &results[before];
                models[before].as_ref().zip(result.response.ok()).map(|(input, response)| {
                    let (least, busy) = (result.best_response, result.busy.clone());
                    EventStream::output(Rc::clone(input), propagation, response, least, busy)
                })
            }
        };
    }
    models
}

/// Nothing is known any more of a task, of what it activates, and of what those can delay.
fn lose(system: &CpaSystem, results: &mut [NodeResult], at: usize, why: UnboundedReason) {
    let mut left = vec![(at, why)];
    while let Some((at, why)) = left.pop() {
        if results[at].response.is_err() {
            continue;
        }
        results[at].response = Err(why);
        results[at].busy.clear();
        let follows = match why {
            UnboundedReason::Overload => UnboundedReason::Refused(Refusal::Endless),
            UnboundedReason::Refused(_) => why,
        };
        for (other, task) in system.tasks.iter().enumerate() {
            let after = task.activation == Activation::After(at);
            // A slot is reserved, and a turn never exceeds its length.
            let beside = task.processor == system.tasks[at].processor
                && !matches!(
                    system.schedulers[task.processor],
                    Scheduler::TimeDivision | Scheduler::RoundRobin
                )
                && system.delays(at, other);
            if after || beside {
                left.push((other, follows));
            }
        }
    }
}

/// Whether a task and those that delay it without limit demand more than there is.
fn overloaded(system: &CpaSystem, at: usize) -> bool {
    let share = |at: usize| (system.tasks[at].cost, system.source(at).period);
    match system.schedulers[system.tasks[at].processor] {
        Scheduler::Preemptive | Scheduler::NonPreemptive => {
            let all: Vec<(u64, u64)> = system
                .same_processor(at)
                .filter(|other| system.delays(*other, at))
                .chain(std::iter::once(at))
                .map(share)
                .collect();
            compare_shares(all.into_iter(), (1, 1)) == Ordering::Greater
        }
        // What others use of it depends on when they come; a search that does not end tells.
        Scheduler::RoundRobin | Scheduler::TimeDivision => {
            compare_shares(std::iter::once(share(at)), (1, 1)) == Ordering::Greater
        }
    }
}
