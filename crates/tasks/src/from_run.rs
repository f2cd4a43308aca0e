//! Importing a recorded run: what its threads were seen to need.
//!
//! Owns: cutting a trace into jobs, and the figures of these. Must not: read a run folder (`runs`
//! does), infer causes (`trace` does).
//!
//! A job is what a thread received between two of its own waits. Its execution time is the sum of
//! its intervals, so that gaps do not count. What was seen is no bound: a longer job may come.

use std::collections::BTreeMap;
use std::fmt;

use hourglass_documents::cpus::ParseCpuSetError;
use hourglass_documents::manifest::{Manifest, ThreadFacts};
use hourglass_documents::policy::ParsePolicyError;
use hourglass_documents::{CpuSet, Policy};
use hourglass_time::Span;
use hourglass_trace::{Interval, IntervalStart};

use super::error::{Location, TaskSetError};
use super::{Activation, Server, ServerKind, Task, TaskSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobStatistics {
    pub jobs: u64,
    pub longest: Span,
    /// The shortest execution time; the last job, which the run's end may have cut off, does not
    /// count where there is another.
    pub shortest: Span,
    /// The shortest time between the begins of two jobs in a row; `None` for a single job.
    pub separation: Option<Span>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RecordedTaskSet {
    /// One task for each thread with a period; they are called `thread-0` and so on.
    pub set: TaskSet,
    /// The parts that were left out, one sentence each.
    pub notes: Vec<String>,
}

/// What was seen of each thread that has intervals, by its number.
///
/// `intervals` of one thread are in the order of their starts; threads may be mixed.
#[must_use]
pub fn observe(intervals: &[Interval]) -> BTreeMap<u32, JobStatistics> {
    let mut threads: BTreeMap<u32, Vec<(Span, Span)>> = BTreeMap::new();
    for interval in intervals {
        let jobs = threads.entry(interval.thread).or_default();
        let length = Span::from_nanos(interval.duration_ns().max(0));
        match jobs.last_mut() {
            Some((_, received)) if interval.onset != IntervalStart::Wait => {
                *received = received.saturating_add(length);
            }
            _ => jobs.push((Span::from_nanos(interval.start_ns), length)),
        }
    }
    threads.into_iter().filter_map(|(thread, jobs)| Some((thread, figures(&jobs)?))).collect()
}

fn figures(jobs: &[(Span, Span)]) -> Option<JobStatistics> {
    let times = || jobs.iter().map(|(_, received)| *received);
    let whole = if jobs.len() > 1 { jobs.len() - 1 } else { jobs.len() };
    let separations = jobs.windows(2).map(|pair| pair[1].0.saturating_sub(pair[0].0));
    Some(JobStatistics {
        jobs: jobs.len() as u64,
        longest: times().max()?,
        shortest: times().take(whole).min()?,
        separation: separations.min(),
    })
}

impl TaskSet {
    /// The threads of a recorded run as tasks: the period as the workload states it, else the
    /// shortest time between two jobs that was seen; the longest execution time that was seen.
    ///
    /// # Errors
    /// No thread of the run has jobs, or what the manifest says cannot be meant.
    pub fn from_run(
        manifest: &Manifest,
        intervals: &[Interval],
    ) -> Result<RecordedTaskSet, TaskSetError> {
        let observed = observe(intervals);
        let mut recorded = RecordedTaskSet { set: TaskSet::default(), notes: Vec::new() };
        for facts in &manifest.threads {
            let Some(seen) = observed.get(&facts.id).filter(|seen| seen.longest.is_positive())
            else {
                recorded.notes.push(format!("thread {}: never ran; omitted", facts.id));
                continue;
            };
            let stated = stated_period(&facts.workload);
            match stated.or(seen.separation).filter(|period| period.is_positive()) {
                Some(period) => recorded.add(facts, seen, period, stated.is_some())?,
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
        seen: &JobStatistics,
        period: Span,
        is_stated: bool,
    ) -> Result<(), TaskSetError> {
        let name = format!("thread-{}", facts.id);
        let place = Location::named("task", &name);
        if !is_stated && seen.longest > period {
            let message = format!(
                "jobs began as close as {period}, and one took {}: these are no jobs of one period; record a thread with one, or \
                 write the task by hand",
                seen.longest
            );
            return Err(place.contradiction(message));
        }
        let wrong = |key: &str, value: &str, reason: &dyn fmt::Display| {
            place.bad(key, format_args!("{value:?}"), reason)
        };
        let cpus: CpuSet = facts
            .cpus
            .parse()
            .map_err(|error: ParseCpuSetError| wrong("cpus", &facts.cpus, &error))?;
        let policy = match reserved_times(&facts.policy) {
            Some(times) => {
                let reason = "not a reservation such as DEADLINE:3ms/8ms";
                let server = server(&name, times, &cpus);
                let server = server.ok_or_else(|| wrong("policy", &facts.policy, &reason))?;
                self.set.servers.push(server);
                Policy::Deadline
            }
            None => {
                let policy = facts.policy.parse();
                policy.map_err(|error: ParsePolicyError| wrong("policy", &facts.policy, &error))?
            }
        };
        self.set.tasks.push(Task {
            activation: if is_stated { Activation::Periodic } else { Activation::Sporadic },
            bcet: Some(seen.shortest).filter(|time| time.is_positive()),
            policy: Some(policy),
            cpus: Some(cpus),
            timer: Some(facts.wake_up.clone()).filter(|timer| !timer.is_empty()),
            ..Task::new(&name, seen.longest, period)
        });
        Ok(())
    }
}

/// The times of a reservation that was in force, by the deadline class or in user space.
fn reserved_times(policy: &str) -> Option<&str> {
    policy.strip_prefix("DEADLINE:").or_else(|| policy.strip_prefix("USER:"))
}

/// The server that a policy such as `DEADLINE:3.1ms/8ms`, or with a `+` behind it a soft one,
/// stands for.
fn server(name: &str, times: &str, cpus: &CpuSet) -> Option<Server> {
    let (times, kind) = match times.strip_suffix('+') {
        Some(times) => (times, ServerKind::CbsSoft),
        None => (times, ServerKind::CbsHard),
    };
    let (budget, period) = times.split_once('/')?;
    Some(Server {
        cpus: Some(cpus.clone()),
        tasks: vec![name.to_owned()],
        ..Server::new(name, kind, budget.parse().ok()?, period.parse().ok()?)
    })
}
