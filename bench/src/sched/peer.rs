//! The `response-time-analysis` crate on our sets.
//!
//! Owns: the calls that its documentation gives. Must not: count the making of its own structures.

use hourglass_sched::{Task, TaskSet};
use response_time_analysis::arrival::Sporadic;
use response_time_analysis::demand::RBF;
use response_time_analysis::fixed_priority::fully_preemptive::dedicated_uniproc_rta;
use response_time_analysis::time::{Duration, Service};
use response_time_analysis::wcet::Scalar;

pub(crate) const NAME: &str = "response-time-analysis";

/// Where it gives up, ns: far beyond every window of the sets.
const LIMIT: u64 = 1 << 50;

/// A set in its terms, the most urgent task first.
pub(crate) struct PeerTaskSet(Vec<RBF<Sporadic, Scalar>>);

pub(crate) fn prepare(set: &TaskSet) -> PeerTaskSet {
    let demand = |task: &Task| {
        let arrivals = Sporadic::new(Duration::from(task.period()), Duration::from(task.jitter()));
        RBF::new(arrivals, Scalar::new(Service::from(task.cost())))
    };
    PeerTaskSet(set.tasks().iter().map(demand).collect())
}

impl PeerTaskSet {
    pub(crate) fn bounds(&self) -> Vec<Option<u64>> {
        let bound = |(index, task): (usize, &RBF<Sporadic, Scalar>)| {
            let found = dedicated_uniproc_rta(task, &self.0[..index], Duration::from(LIMIT));
            found.ok().map(u64::from)
        };
        self.0.iter().enumerate().map(bound).collect()
    }
}
