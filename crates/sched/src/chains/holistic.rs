//! Holistic analysis (Tindell and Clark, Microprocessing and Microprogramming 40, 1994): a step's
//! response is the jitter of the next.
//!
//! Owns: the fixed point of jitters, from below. Each round bounds every processor by
//! [`crate::fixed_priority`], whole busy windows and all; then each step's jitter is the response of
//! the one before it, less its shortest. Processors that share steps are bounded by [`crate::global::fixed_priority`], where
//! no step may take longer than its chain's period and deadline. Where the rounds do not settle (two chains that cross each
//! other in opposite directions can raise each other's jitter for ever), nothing is said of the
//! steps concerned, nor of those that they may delay. Must not: use offsets between steps of a chain,
//! which would make bounds smaller (Palencia and Gonzalez Harbour, RTSS 1998).

use crate::effort::StepLimit;
use crate::fixed_priority::{self, Sections, TimeModel};
use crate::global::fixed_priority::{self as shared, Bound};
use crate::task::{Task, TaskError, TaskSet};
use crate::verdict::{Analysis, Refusal, ResponseBound, ResponseTime, Verdict, Witness};

use super::{ChainSystem, Flow, Service};

/// How steps on several processors are bounded.
pub(crate) const SHARED: Bound = Bound::LimitedCarryIn;

/// Rounds before the steps that still change are given up.
const MOST_ROUNDS: usize = 400;

/// Looks of the search on one processor in one round.
const ROUND_LOOKS: u64 = 1_250_000;

/// Points of all processors in all rounds, before the steps that still change are given up.
const MOST_POINTS: usize = 100_000;

/// The bounds of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepResult {
    /// Its response: `from_arrival` from the chain's arrival, `from_release` from the end of the step
    /// before.
    pub outcome: ResponseBound,
    /// How much later than its earliest begin it may begin.
    pub jitter: u64,
    /// The earliest start after the chain's arrival.
    pub earliest: u64,
}

/// The bounds of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowResult {
    /// Each step.
    pub steps: Vec<StepResult>,
    /// From arrival to the end of all steps at most; `None`: no bound.
    pub end_to_end: Option<u64>,
    /// Whether the deadline holds.
    pub verdict: Verdict,
}

/// One processor in the last round: the proof of the bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processor {
    /// The steps, as (chain, step).
    pub steps: Vec<(usize, usize)>,
    /// The steps as tasks, whose jitter is that of the fixed point.
    pub set: TaskSet,
    /// Their bounds, with points.
    pub analysis: Analysis,
}

/// The answer for a system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holistic {
    /// One a chain.
    pub flows: Vec<FlowResult>,
    /// One a processor.
    pub processors: Vec<Processor>,
}

impl Holistic {
    /// The bound of each chain from its arrival; `None` for a chain without a bound.
    #[must_use]
    pub fn end_to_end(&self) -> Vec<Option<u64>> {
        self.flows.iter().map(|flow| flow.end_to_end).collect()
    }

    /// The verdict on all chains: the worst of theirs.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        Verdict::worst(self.flows.iter().map(|flow| flow.verdict))
    }
}

/// The result of a round for a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The response so far, from the chain's arrival and from the step's release.
    Within(ResponseTime),
    /// There is no bound.
    Unbounded,
    Lost(Refusal),
}

struct Rounds<'a> {
    system: &'a ChainSystem,
    time: TimeModel,
    states: Vec<Vec<State>>,
    earliest: Vec<Vec<u64>>,
    processors: Vec<Processor>,
    points: usize,
}

/// Bounds the responses of a system's steps and chains.
#[must_use]
pub fn analyse(system: &ChainSystem, time: TimeModel) -> Holistic {
    analyse_by(system, time, &mut StepLimit::with_steps(u64::MAX))
}

/// The same, which takes what it needs from an effort for several analyses.
#[must_use]
pub fn analyse_by(system: &ChainSystem, time: TimeModel, effort: &mut StepLimit) -> Holistic {
    let mut rounds = Rounds::new(system, time);
    let mut round = 0;
    loop {
        round += 1;
        let changed = rounds.round(effort);
        if changed.is_empty() {
            break;
        }
        if round == MOST_ROUNDS || rounds.points > MOST_POINTS {
            rounds.lose(&changed, State::Lost(Refusal::Diverges));
            rounds.round(effort);
            break;
        }
    }
    let found = rounds.finish();
    debug_assert_eq!(crate::checker::holistic(system, time, &found), Ok(()));
    found
}

impl<'a> Rounds<'a> {
    fn new(system: &'a ChainSystem, time: TimeModel) -> Rounds<'a> {
        let earliest = |flow: usize| system.longest_ways(flow, |step| step.bcet);
        let none = State::Within(ResponseTime { from_arrival: 0, from_release: 0 });
        let states = |flow: &Flow| vec![none; flow.steps.len()];
        Rounds {
            system,
            time,
            states: system.flows().iter().map(states).collect(),
            earliest: (0..system.flows().len()).map(earliest).collect(),
            processors: Vec::new(),
            points: 0,
        }
    }

    /// How much later than its earliest begin a step may begin, as far as is known.
    fn jitter(&self, flow: usize, step: usize) -> u64 {
        let earliest = self.earliest[flow][step];
        let late = |before: &usize| match self.states[flow][*before] {
            State::Within(response) => response.from_arrival.saturating_sub(earliest),
            State::Unbounded | State::Lost(_) => 0,
        };
        let latest = self.system.before(flow, step).iter().map(late).max();
        latest.unwrap_or(self.system.flows()[flow].jitter)
    }

    fn lost(&self, (flow, step): (usize, usize)) -> bool {
        !matches!(self.states[flow][step], State::Within(_))
    }

    /// Bounds all processors with the jitters known so far; gives the steps whose bound is new.
    fn round(&mut self, effort: &mut StepLimit) -> Vec<(usize, usize)> {
        let count = self.system.services().len();
        let processors: Vec<Result<Processor, Refusal>> =
            (0..count).map(|at| self.processor(at, effort)).collect();
        let mut changed = Vec::new();
        self.processors.clear();
        for (at, processor) in processors.into_iter().enumerate() {
            let processor = match processor {
                Ok(processor) => processor,
                Err(why) => {
                    let steps = self.system.on(at);
                    self.lose(&steps, State::Lost(why));
                    changed.extend(steps);
                    continue;
                }
            };
            self.points += processor
                .steps
                .iter()
                .enumerate()
                .fold(0, |sum, (position, _)| sum + processor.analysis.points(position).len());
            changed.extend(self.take(&processor));
            self.processors.push(processor);
        }
        changed
    }

    /// Takes over what was found on a processor; gives the steps whose bound is new.
    fn take(&mut self, processor: &Processor) -> Vec<(usize, usize)> {
        let mut changed = Vec::new();
        for (position, (flow, step)) in processor.steps.iter().enumerate() {
            let earliest = self.earliest[*flow][*step];
            let state = match processor.analysis.tasks[position].outcome {
                ResponseBound::Bounded(bound) => match bound.from_arrival.checked_add(earliest) {
                    Some(from_arrival) => State::Within(ResponseTime { from_arrival, ..bound }),
                    None => State::Lost(Refusal::Overflow),
                },
                ResponseBound::Unbounded => State::Unbounded,
                ResponseBound::Unknown(why) => State::Lost(why),
            };
            if self.lost((*flow, *step)) || state == self.states[*flow][*step] {
                continue;
            }
            changed.push((*flow, *step));
            if matches!(state, State::Within(_)) {
                self.states[*flow][*step] = state;
            } else {
                self.lose(&[(*flow, *step)], state);
            }
        }
        changed
    }

    /// Nothing is known any more of these steps, of what follows them in their chains, and of what is
    /// not more urgent than one of those on its processor.
    fn lose(&mut self, steps: &[(usize, usize)], why: State) {
        let mut left: Vec<((usize, usize), State)> = steps.iter().map(|at| (*at, why)).collect();
        let follows = match why {
            State::Unbounded => State::Lost(Refusal::Endless),
            State::Within(_) | State::Lost(_) => why,
        };
        while let Some(((flow, step), why)) = left.pop() {
            if self.lost((flow, step)) {
                continue;
            }
            self.states[flow][step] = why;
            let of = &self.system.flows()[flow].steps[step];
            for next in step + 1..self.system.flows()[flow].steps.len() {
                if self.system.before(flow, next).contains(&step) {
                    left.push(((flow, next), follows));
                }
            }
            for (other, at) in self.system.on(of.processor) {
                if self.system.flows()[other].steps[at].priority <= of.priority {
                    left.push(((other, at), follows));
                }
            }
        }
    }

    fn processor(&self, at: usize, effort: &mut StepLimit) -> Result<Processor, Refusal> {
        let service = self.system.services()[at];
        let (lost, steps): (Vec<_>, Vec<_>) =
            self.system.on(at).into_iter().partition(|step| self.lost(*step));
        let set = task_set(self.system, &steps, |(flow, step)| self.jitter(flow, step));
        let set = set.map_err(|_| Refusal::Overflow)?;
        // Lost steps are less urgent than all that are left, but may have begun.
        let longest = lost.iter().map(|(flow, step)| self.system.flows()[*flow].steps[*step].cost);
        let begun = match (service, self.time) {
            (Service::Preemptive | Service::Shared(_), _) => 0,
            (Service::NonPreemptive, TimeModel::Continuous) => longest.max().unwrap_or(0),
            (Service::NonPreemptive, TimeModel::Discrete) => longest.max().unwrap_or(1) - 1,
        };
        let set = with_begun(&set, service, self.time, begun);
        let analysis = effort.at_most(ROUND_LOOKS, |effort| match service {
            Service::Shared(cpus) => shared::analyse_by(&set, cpus, SHARED, effort),
            _ => fixed_priority::analyse_by(&set, sections(service), self.time, effort),
        });
        Ok(Processor { steps, set, analysis })
    }

    fn finish(self) -> Holistic {
        let flow = |(at, of): (usize, &Flow)| {
            let step = |step: usize| StepResult {
                outcome: match self.states[at][step] {
                    State::Within(response) => ResponseBound::Bounded(response),
                    State::Unbounded => ResponseBound::Unbounded,
                    State::Lost(why) => ResponseBound::Unknown(why),
                },
                jitter: self.jitter(at, step),
                earliest: self.earliest[at][step],
            };
            let steps: Vec<StepResult> = (0..of.steps.len()).map(step).collect();
            let ends = steps.iter().map(|step| Some(step.outcome.response()?.from_arrival));
            let end_to_end = ends.collect::<Option<Vec<u64>>>().and_then(|e| e.into_iter().max());
            FlowResult { verdict: verdict(self.system, at, &steps, end_to_end), steps, end_to_end }
        };
        let flows = self.system.flows().iter().enumerate().map(flow).collect();
        Holistic { flows, processors: self.processors }
    }
}

fn verdict(system: &ChainSystem, at: usize, steps: &[StepResult], bound: Option<u64>) -> Verdict {
    let flow = &system.flows()[at];
    let ways = system.longest_ways(at, |step| step.cost);
    let ends = ways.iter().zip(&flow.steps).map(|(way, step)| way.saturating_add(step.cost));
    let alone = ends.max().unwrap_or(0).saturating_add(flow.jitter);
    let (response, deadline) = (alone, flow.deadline);
    if response > deadline {
        // Alone on all processors, it already takes longer.
        return Verdict::Infeasible(Witness::Response { task: at, job: 1, response, deadline });
    }
    if let Some(bound) = bound {
        let holds = bound <= deadline;
        return if holds { Verdict::Feasible } else { Verdict::Unknown(Refusal::NotExact) };
    }
    let mut outcomes = steps.iter().map(|step| step.outcome);
    match outcomes.find(|outcome| outcome.response().is_none()) {
        Some(ResponseBound::Unbounded) => Verdict::NoBound,
        Some(ResponseBound::Unknown(why)) => Verdict::Unknown(why),
        _ => Verdict::Unknown(Refusal::NotExact),
    }
}

/// The points at which steps of a processor may be preempted.
pub(crate) fn sections(service: Service) -> Sections {
    match service {
        Service::Preemptive | Service::Shared(_) => Sections::Preemptive,
        Service::NonPreemptive => Sections::NonPreemptive,
    }
}

/// Steps as tasks, each with the deadline of its chain.
pub(crate) fn task_set(
    system: &ChainSystem,
    steps: &[(usize, usize)],
    jitter: impl Fn((usize, usize)) -> u64,
) -> Result<TaskSet, TaskError> {
    let task = |at: &(usize, usize)| {
        let flow = &system.flows()[at.0];
        let step = &flow.steps[at.1];
        let task = Task::new(step.cost, flow.period, flow.deadline.max(1))?;
        let task = task.with_jitter(jitter(*at)).with_suspension(step.suspension);
        Ok(task.with_priority(step.priority))
    };
    Ok(TaskSet::new(steps.iter().map(task).collect::<Result<_, _>>()?))
}

/// A step that is not in the set may have begun: each task is delayed by it, unless a task of lower
/// priority in the set delays it as long.
fn with_begun(set: &TaskSet, service: Service, time: TimeModel, begun: u64) -> TaskSet {
    if begun == 0 {
        return set.clone();
    }
    let delay = |task: &Task| {
        let lower = set.tasks().iter().filter(|t| t.priority() < task.priority());
        let lower = lower.map(|t| match (service, time) {
            (Service::Preemptive | Service::Shared(_), _) => 0,
            (Service::NonPreemptive, TimeModel::Discrete) => t.cost() - 1,
            (Service::NonPreemptive, TimeModel::Continuous) => t.cost(),
        });
        begun.saturating_sub(lower.max().unwrap_or(0))
    };
    TaskSet::new(set.tasks().iter().map(|task| task.with_blocking(delay(task))).collect())
}
