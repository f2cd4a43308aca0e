//! Chains of steps across processors: each step begins when the one before it is done. A chain may fork
//! and join ([`ChainSystem::graph`]): then a step begins when all those before it are done.
//!
//! Owns: [`ChainSystem`], what is refused in it, and the holistic analysis ([`holistic`]). Steps are
//! scheduled by fixed priorities on their processor, or on several that share them; a network is a processor whose steps are not
//! preempted. [`Step`] is no [`crate::Task`]: period, deadline and jitter are those of its [`Flow`], and when
//! it may begin follows from the steps before it; [`holistic`] makes tasks of the steps of a processor. Must
//! not: know clocks; a chain's arrivals are all that it is timed by.

pub mod holistic;
#[cfg(test)]
mod tests;

/// How a processor serves its steps, by fixed priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// A more urgent step preempts.
    Preemptive,
    /// A step that has begun is finished.
    NonPreemptive,
    /// So many processors share the steps; a more urgent step preempts.
    Shared(u64),
}

/// One step of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The longest execution time.
    pub cost: u64,
    /// Its shortest, for how early the next step may begin; 0 if it is not known.
    pub bcet: u64,
    /// How long a job suspends itself in all, at most.
    pub suspension: u64,
    /// Position of its processor.
    pub processor: usize,
    /// The larger number is more urgent.
    pub priority: u32,
}

/// A chain: jobs that go through all steps in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The shortest time between two arrivals.
    pub period: u64,
    /// The time from an arrival within which the last step should be done.
    pub deadline: u64,
    /// How long after the arrival the first step may be released.
    pub jitter: u64,
    /// The steps.
    pub steps: Vec<Step>,
}

/// Chains and the processors that they share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainSystem {
    flows: Vec<Flow>,
    services: Vec<Service>,
    /// Of each step of each flow, the steps of the flow that it waits for.
    before: Vec<Vec<Vec<usize>>>,
}

/// A system that cannot be meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SystemError {
    /// A chain without steps.
    #[error("flow {flow} has no steps; give it one, or leave it out")]
    NoSteps {
        /// Position of the chain.
        flow: usize,
    },
    /// A period of 0.
    #[error("flow {flow} has a period of 0; give the shortest time between two arrivals")]
    NoPeriod {
        /// Position of the chain.
        flow: usize,
    },
    /// A cost of 0, or a shortest time over the longest.
    #[error(
        "step {step} of flow {flow} takes from {least} to {cost}; give 0 <= shortest <= longest and a longest above 0"
    )]
    Cost {
        /// Position of the chain.
        flow: usize,
        /// Position of the step.
        step: usize,
        /// Shortest time.
        least: u64,
        /// Longest time.
        cost: u64,
    },
    /// A processor that is not there.
    #[error("step {step} of flow {flow} is on processor {processor}, of which there are {of}")]
    Processor {
        /// Position of the chain.
        flow: usize,
        /// Position of the step.
        step: usize,
        /// Position of the processor.
        processor: usize,
        /// How many there are.
        of: usize,
    },
    /// A step that waits for none, or for one that does not stand before it.
    #[error(
        "step {step} of flow {flow} waits for steps before it in the list, and only the first for none"
    )]
    Order {
        /// Position of the chain.
        flow: usize,
        /// Position of the step.
        step: usize,
    },
}

impl ChainSystem {
    /// These chains on processors of which each serves as stated.
    ///
    /// # Errors
    /// The first part that is malformed.
    pub fn new(flows: Vec<Flow>, services: Vec<Service>) -> Result<ChainSystem, SystemError> {
        for (flow, of) in flows.iter().enumerate() {
            if of.steps.is_empty() {
                return Err(SystemError::NoSteps { flow });
            }
            if of.period == 0 {
                return Err(SystemError::NoPeriod { flow });
            }
            for (step, Step { cost, bcet: least, processor, .. }) in of.steps.iter().enumerate() {
                let (cost, least, processor) = (*cost, *least, *processor);
                if cost == 0 || least > cost {
                    return Err(SystemError::Cost { flow, step, least, cost });
                }
                if processor >= services.len() {
                    let of = services.len();
                    return Err(SystemError::Processor { flow, step, processor, of });
                }
            }
        }
        let chain = |of: &Flow| (0..of.steps.len()).map(|step| step.checked_sub(1));
        let chain = |of: &Flow| chain(of).map(|before| before.into_iter().collect()).collect();
        let before = flows.iter().map(chain).collect();
        Ok(ChainSystem { flows, services, before })
    }

    /// The same where steps may wait for several others, and several for one: `before[i][j]` has the
    /// steps of flow i that its step j waits for, which stand before it; only the first waits for none.
    ///
    /// # Errors
    /// The first part that is malformed.
    pub fn graph(
        flows: Vec<Flow>,
        services: Vec<Service>,
        before: Vec<Vec<Vec<usize>>>,
    ) -> Result<ChainSystem, SystemError> {
        let chains = ChainSystem::new(flows, services)?;
        for (flow, of) in chains.flows.iter().enumerate() {
            for step in 0..of.steps.len() {
                let known = before.get(flow).and_then(|before| before.get(step));
                let fits = known.is_some_and(|known| {
                    known.is_empty() == (step == 0) && known.iter().all(|other| *other < step)
                });
                if !fits {
                    return Err(SystemError::Order { flow, step });
                }
            }
        }
        Ok(ChainSystem { before, ..chains })
    }

    /// The steps that a step waits for.
    pub(crate) fn before(&self, flow: usize, step: usize) -> &[usize] {
        &self.before[flow][step]
    }

    /// For each step of a flow the longest way to its beginning, if each earlier step lasts `takes`.
    pub(crate) fn longest_ways(&self, flow: usize, takes: impl Fn(&Step) -> u64) -> Vec<u64> {
        let steps = &self.flows[flow].steps;
        let mut ways: Vec<u64> = Vec::with_capacity(steps.len());
        for before in &self.before[flow] {
            let through = |step: &usize| ways[*step].saturating_add(takes(&steps[*step]));
            ways.push(before.iter().map(through).max().unwrap_or(0));
        }
        ways
    }

    /// The chains.
    #[must_use]
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// How each processor serves.
    #[must_use]
    pub fn services(&self) -> &[Service] {
        &self.services
    }

    /// The steps on a processor, as (chain, step), in the order of chains.
    pub(crate) fn on(&self, processor: usize) -> Vec<(usize, usize)> {
        let of = |(flow, of): (usize, &Flow)| {
            let steps = of.steps.iter().enumerate();
            let here = steps.filter(|(_, step)| step.processor == processor);
            here.map(|(step, _)| (flow, step)).collect::<Vec<_>>()
        };
        self.flows.iter().enumerate().flat_map(of).collect()
    }
}
