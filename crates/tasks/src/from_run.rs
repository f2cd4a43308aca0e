//! Importing a recorded run: what its threads were seen to need.
//!
//! Owns: the tasks of a run of ours, of which periods are stated. Must not: read a run folder (`runs` does), model threads
//! (`trace` does).

use std::fmt;

use hourglass_documents::cpus::ParseCpuSetError;
use hourglass_documents::manifest::{Manifest, ThreadFacts};
use hourglass_documents::policy::ParsePolicyError;
use hourglass_documents::task_model::ThreadModel;
use hourglass_documents::{CpuSet, Policy};
use hourglass_time::Span;
use hourglass_trace::Interval;
use hourglass_trace::model::{self, Activity};

use super::error::{Location, TaskSetError};
use super::from_model::{span, task};
use super::{Activation, Server, ServerKind, Task, TaskSet};

#[derive(Clone, Debug, PartialEq)]
pub struct RecordedTaskSet {
    /// One task for each thread with a period; they are called `thread-0` and so on.
    pub set: TaskSet,
    /// The parts that were left out, or are no tasks, one sentence each.
    pub notes: Vec<String>,
}

impl TaskSet {
    /// The threads of a run of ours as tasks: the period as the workload states it, else the one that was seen, else
    /// the shortest time between two jobs; the longest execution time that was seen.
    ///
    /// # Errors
    /// No thread of the run has jobs, or what the manifest says cannot be meant.
    pub fn from_run(
        manifest: &Manifest,
        intervals: &[Interval],
    ) -> Result<RecordedTaskSet, TaskSetError> {
        let mut activities = model::of_intervals(intervals);
        let mut recorded = RecordedTaskSet { set: TaskSet::default(), notes: Vec::new() };
        for facts in &manifest.threads {
            let activity: Activity = activities.remove(&facts.id).unwrap_or_default();
            let seen = model::infer(vec![(ThreadModel::default(), activity)]).pop();
            let Some(seen) = seen.filter(|seen| seen.execution.max_ns > 0) else {
                recorded.notes.push(format!("thread {}: never ran; omitted", facts.id));
                continue;
            };
            let stated = stated_period(&facts.workload);
            let found = span(seen.activation.period_ns);
            match stated.or(Some(found)).filter(|period| period.is_positive()) {
                Some(period) => recorded.add(facts, &seen, period, stated.is_some())?,
                None => recorded.notes.push(format!(
                    "thread {} ({}): never waits, so it has no period; omitted",
                    facts.id, facts.workload
                )),
            }
        }
        if recorded.set.tasks.is_empty() {
            let latency = |facts: &ThreadFacts| facts.workload.starts_with("LAT");
            let message = match manifest.threads.iter().all(latency) && !manifest.threads.is_empty()
            {
                true => {
                    "its threads measured latencies and computed nothing, so there are no jobs; hourglass show has the \
                     latencies; for tasks record a run with work, such as PERIODIC 3ms 8ms"
                }
                false => {
                    "no thread of the run has jobs; record one that waits, such as PERIODIC 3ms 8ms"
                }
            };
            return Err(Location::part("the run").contradiction(message));
        }
        recorded.set.check()?;
        Ok(recorded)
    }
}

/// The period of a workload that has one: `PERIODIC 3ms 8ms`.
fn stated_period(workload: &str) -> Option<Span> {
    let words: Vec<&str> = workload.split_whitespace().collect();
    match words[..] {
        ["PERIODIC", _, period, ..] => period.parse().ok(),
        _ => None,
    }
}

impl RecordedTaskSet {
    fn add(
        &mut self,
        facts: &ThreadFacts,
        seen: &ThreadModel,
        period: Span,
        is_stated: bool,
    ) -> Result<(), TaskSetError> {
        let name = format!("thread-{}", facts.id);
        let place = Location::named("task", &name);
        let longest = span(seen.execution.max_ns);
        if !is_stated && longest > period {
            let message = format!(
                "jobs began as close as {period}, and one took {longest}: these are no jobs of one period; record a thread with \
                 one, or write the task by hand"
            );
            return Err(place.contradiction(message));
        }
        let (policy, cpus) = self.scheduling(&name, &facts.policy, &facts.cpus)?;
        let task = Task {
            policy: Some(policy),
            cpus: Some(cpus),
            timer: Some(facts.wake_up.clone()).filter(|timer| !timer.is_empty()),
            ..task(&name, seen)
        };
        self.set.tasks.push(match is_stated {
            true => Task {
                period,
                activation: Activation::Periodic,
                jitter: Span::ZERO,
                arrivals: Vec::new(),
                ..task
            },
            false => task,
        });
        Ok(())
    }

    /// The policy of a thread and its CPUs; a reservation becomes a server.
    pub(crate) fn scheduling(
        &mut self,
        name: &str,
        policy: &str,
        cpus: &str,
    ) -> Result<(Policy, CpuSet), TaskSetError> {
        let place = Location::named("task", name);
        let wrong = |key: &str, value: &str, reason: &dyn fmt::Display| {
            place.bad(key, format_args!("{value:?}"), reason)
        };
        let allowed: CpuSet =
            cpus.parse().map_err(|error: ParseCpuSetError| wrong("cpus", cpus, &error))?;
        let policy = match reserved_times(policy) {
            Some((times, soft)) => {
                let reason = "not a reservation such as DEADLINE:3ms/8ms";
                let server = server(name, times, soft, &allowed);
                let server = server.ok_or_else(|| wrong("policy", policy, &reason))?;
                self.set.servers.push(server);
                Policy::Deadline
            }
            None => {
                policy.parse().map_err(|error: ParsePolicyError| wrong("policy", policy, &error))?
            }
        };
        Ok((policy, allowed))
    }
}

/// The times of a reservation that was in force, and the kind of a soft one: the deadline class reclaims, a reserve in
/// user space goes on.
fn reserved_times(policy: &str) -> Option<(&str, ServerKind)> {
    let by_class = policy.strip_prefix("DEADLINE:").map(|times| (times, ServerKind::CbsReclaim));
    by_class.or_else(|| Some((policy.strip_prefix("USER:")?, ServerKind::CbsSoft)))
}

/// The server that a policy such as `DEADLINE:3.1ms/8ms`, with its deadline as `DEADLINE:3.1ms/8ms/5ms`, or with a `+` behind
/// it a soft one, stands for.
fn server(name: &str, times: &str, soft: ServerKind, cpus: &CpuSet) -> Option<Server> {
    let (times, kind) = match times.strip_suffix('+') {
        Some(times) => (times, soft),
        None => (times, ServerKind::CbsHard),
    };
    let (budget, period) = times.split_once('/')?;
    let (period, deadline) = match period.split_once('/') {
        Some((period, deadline)) => (period, Some(deadline.parse().ok()?)),
        None => (period, None),
    };
    Some(Server {
        deadline,
        cpus: Some(cpus.clone()),
        tasks: vec![name.to_owned()],
        ..Server::new(name, kind, budget.parse().ok()?, period.parse().ok()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The flag and the deadline of a thread of the class were lost: one that reclaims was `cbs-hard`, of its period.
    #[test]
    fn a_reservation_is_the_server_that_it_was() {
        use ServerKind::{CbsHard, CbsReclaim};
        let ms = Span::from_millis;
        for (times, kind, deadline) in [
            ("2ms/20ms", CbsHard, None),
            ("2ms/20ms/10ms", CbsHard, Some(ms(10))),
            ("2ms/20ms+", CbsReclaim, None),
            ("2ms/20ms/10ms+", CbsReclaim, Some(ms(10))),
        ] {
            let own = server("a", times, CbsReclaim, &CpuSet::default()).unwrap();
            let found = (own.kind, own.budget, own.period, own.deadline);
            assert_eq!(found, (kind, ms(2), ms(20), deadline), "{times}");
        }
        for wrong in ["2ms", "2ms/", "2ms/20ms/", "2ms/20ms/10ms/5ms", "+"] {
            assert!(server("a", wrong, CbsReclaim, &CpuSet::default()).is_none(), "{wrong}");
        }
    }
}
