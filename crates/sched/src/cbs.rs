//! Constant bandwidth servers and periodic tasks under EDF, event by event.
//!
//! Owns: the rules of the hard server of Abeni and Buttazzo (RTSS 1998): a job that comes to an
//! idle server gets a new deadline if the budget left is too much for the old one; an exhausted
//! budget is refilled at once and the deadline postponed. Must not: be the simulator; this is for
//! short traces with known answers.

use std::collections::VecDeque;

use crate::effort::StepLimit;
use crate::task::Task;
use crate::verdict::Refusal;

/// A server and the jobs that come to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CbsServer {
    /// Processor time of a period; not 0.
    pub budget: u64,
    /// The period; not 0.
    pub period: u64,
    /// Arrival and cost of each job, ascending.
    pub jobs: Vec<(u64, u64)>,
}

/// The events until the horizon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Completion times of each periodic task's jobs.
    pub task_finish: Vec<Vec<u64>>,
    /// Completion times of each server's jobs.
    pub server_finish: Vec<Vec<u64>>,
    /// Each server's deadline assignments: when, and which deadline.
    pub deadlines: Vec<Vec<(u64, u64)>>,
}

/// Something that the processor may execute.
struct Runner {
    /// Arrivals to come, with costs and, of periodic tasks, absolute deadlines.
    arrivals: VecDeque<(u64, u64, Option<u64>)>,
    /// Jobs that arrived: the remaining work of each, and its deadline.
    queue: VecDeque<(u64, Option<u64>)>,
    server: Option<State>,
    finish: Vec<u64>,
}

struct State {
    budget: u64,
    period: u64,
    remaining_budget: u64,
    deadline: u64,
    assigned: Vec<(u64, u64)>,
}

/// Runs servers and periodic tasks, all of which arrive at 0, up to `horizon`. Of equal deadlines
/// the one that runs goes on; else tasks go before servers, in the order given.
///
/// # Errors
/// A trace that is too long, or deadlines over 64 bits.
pub fn run(
    tasks: &[Task],
    servers: &[CbsServer],
    horizon: u64,
    effort: StepLimit,
) -> Result<Trace, Refusal> {
    let mut effort = effort;
    let mut runners = Vec::new();
    for task in tasks {
        runners.push(Runner::periodic(task, horizon, &mut effort)?);
    }
    for server in servers {
        if server.budget == 0 || server.period == 0 {
            return Err(Refusal::Overflow);
        }
        runners.push(Runner::server(server));
    }
    let mut now = 0;
    let mut running = None;
    while now < horizon {
        effort.charge(runners.len())?;
        for runner in &mut runners {
            runner.arrive(now)?;
        }
        let ready = |at: &usize| !runners[*at].queue.is_empty();
        let key = |at: &usize| (runners[*at].deadline(), Some(*at) != running, *at);
        running = (0..runners.len()).filter(ready).min_by_key(key);
        let coming = runners.iter().filter_map(|r| r.arrivals.front()).map(|(at, ..)| *at).min();
        let event = coming.unwrap_or(horizon).min(horizon);
        match running {
            Some(at) => now = runners[at].execute(now, event)?,
            None => now = event,
        }
    }
    Ok(trace(runners, tasks.len()))
}

fn trace(runners: Vec<Runner>, tasks: usize) -> Trace {
    let mut trace = Trace::default();
    for (at, runner) in runners.into_iter().enumerate() {
        if at < tasks {
            trace.task_finish.push(runner.finish);
        } else {
            trace.server_finish.push(runner.finish);
            trace.deadlines.push(runner.server.map(|s| s.assigned).unwrap_or_default());
        }
    }
    trace
}

impl Runner {
    fn periodic(task: &Task, horizon: u64, effort: &mut StepLimit) -> Result<Runner, Refusal> {
        let mut arrivals = VecDeque::new();
        let mut at = 0u64;
        while at < horizon {
            effort.charge(1)?;
            let due = at.checked_add(task.deadline).ok_or(Refusal::Overflow)?;
            arrivals.push_back((at, task.cost, Some(due)));
            at = at.checked_add(task.period).ok_or(Refusal::Overflow)?;
        }
        Ok(Runner { arrivals, queue: VecDeque::new(), server: None, finish: Vec::new() })
    }

    fn server(server: &CbsServer) -> Runner {
        let state = State {
            budget: server.budget,
            period: server.period,
            remaining_budget: server.budget,
            deadline: 0,
            assigned: Vec::new(),
        };
        Runner {
            arrivals: server.jobs.iter().map(|(at, cost)| (*at, *cost, None)).collect(),
            queue: VecDeque::new(),
            server: Some(state),
            finish: Vec::new(),
        }
    }

    fn deadline(&self) -> u64 {
        let of_job = self.queue.front().and_then(|(_, due)| *due);
        self.server.as_ref().map_or(of_job.unwrap_or(u64::MAX), |server| server.deadline)
    }

    /// Takes in what has come by `now`.
    fn arrive(&mut self, now: u64) -> Result<(), Refusal> {
        while let Some((at, cost, due)) =
            self.arrivals.front().copied().filter(|(at, ..)| *at <= now)
        {
            self.arrivals.pop_front();
            if let Some(server) = self.server.as_mut().filter(|_| self.queue.is_empty()) {
                server.wake(at)?;
            }
            self.queue.push_back((cost, due));
        }
        Ok(())
    }

    /// Executes the first job until it is done, the budget is exhausted, or `until`.
    fn execute(&mut self, now: u64, until: u64) -> Result<u64, Refusal> {
        let Some((left, _)) = self.queue.front_mut() else { return Ok(until) };
        let budget = self.server.as_ref().map_or(u64::MAX, |server| server.remaining_budget);
        let length = (*left).min(budget).min(until - now);
        let end = now + length;
        *left -= length;
        if *left == 0 {
            self.queue.pop_front();
            self.finish.push(end);
        }
        if let Some(server) = &mut self.server {
            server.remaining_budget -= length;
            if server.remaining_budget == 0 {
                server.remaining_budget = server.budget;
                server.assign(end, server.deadline)?;
            }
        }
        Ok(end)
    }
}

impl State {
    /// A job has come while the server was idle: left >= (d - t) Q / P asks for a new deadline.
    fn wake(&mut self, now: u64) -> Result<(), Refusal> {
        let to_deadline = u128::from(self.deadline.saturating_sub(now));
        if u128::from(self.remaining_budget) * u128::from(self.period)
            >= to_deadline * u128::from(self.budget)
        {
            self.remaining_budget = self.budget;
            self.assign(now, now)?;
        }
        Ok(())
    }

    /// The deadline becomes a period after `from`.
    fn assign(&mut self, now: u64, from: u64) -> Result<(), Refusal> {
        self.deadline = from.checked_add(self.period).ok_or(Refusal::Overflow)?;
        self.assigned.push((now, self.deadline));
        Ok(())
    }
}
