//! The evaluation on a simulated core of two hardware threads.
//!
//! Owns: the paper's workloads as systems of the simulator. Must not: know an equation.

use hourglass_sched::sim::smt::{self, Monitoring, ProgressModel, SmtPolicy};
use hourglass_sched::sim::{
    CostModel, Event, OverrunPolicy, SimSettings, Sink, Slice, System, Thread,
};

use super::contention::{CoRunner, hundredths};
use super::outcome::{FinishedJob, ProcessOutcome};

/// A periodic real-time process with a reservation.
#[derive(Clone, Debug)]
pub(super) struct SimulatedProcess {
    /// The period, which is the deadline, ns.
    pub(super) period_ns: u64,
    /// What is reserved of each, ns of a CPU that is not shared.
    pub(super) reserve_ns: u64,
    /// What the jobs need, one after the other, ns of a CPU that is not shared.
    pub(super) jobs_ns: Vec<u64>,
}

/// How others are treated while the real-time process runs, and how its progress is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SimMethod {
    /// The scheduler does not know of hardware threads.
    Ignore,
    /// Others stand.
    Disable,
    /// Slack is monitored; the process reports its progress, in this number of steps.
    Reported(u32),
    /// Slack is monitored; the processor counts instructions.
    Counted,
}

impl SimMethod {
    fn policy(self) -> SmtPolicy {
        let monitoring =
            |progress| SmtPolicy::Monitor(Monitoring { progress, ..Monitoring::default() });
        match self {
            SimMethod::Ignore => SmtPolicy::Ignore,
            SimMethod::Disable => SmtPolicy::Disable,
            SimMethod::Reported(steps) => monitoring(ProgressModel::Reported(steps)),
            SimMethod::Counted => monitoring(ProgressModel::Counted),
        }
    }
}

/// Collects completion times.
struct Completions(Vec<FinishedJob>);

impl Sink for Completions {
    fn ran(&mut self, _: Slice) {}

    fn event(&mut self, _: u64, event: Event) {
        if let Event::Completion { thread: 0, job, response } = event {
            self.0.push(FinishedJob {
                period: job,
                response_ns: response,
                own_ns: 0,
                ..FinishedJob::default()
            });
        }
    }
}

/// One job of each of `work`'s, beside two of `beside`: one on each hardware thread, as the paper
/// has it.
///
/// # Errors
/// One line: what the simulator does not take.
pub(super) fn simulate(
    work: &SimulatedProcess,
    beside: Option<CoRunner>,
    method: SimMethod,
) -> Result<ProcessOutcome, String> {
    let system = system(work, beside);
    let periods = work.jobs_ns.len() as u64;
    let mut completions = Completions(Vec::new());
    let settings = SimSettings::until(periods * work.period_ns);
    let found = smt::run(&system, method.policy(), settings, &mut completions)
        .map_err(|error| error.to_string())?;
    Ok(ProcessOutcome {
        deadline_ns: work.period_ns,
        reserve_ns: None,
        periods,
        done: completions.0,
        best_effort_ns: found.best_effort as f64,
        stops: found.watched.stops,
        checks: found.watched.wakeups,
        latest_look_ns: 0,
        monitor_ns: 0,
        margin_ns: 0,
    })
}

fn system(work: &SimulatedProcess, beside: Option<CoRunner>) -> System {
    let mut system = System::new(2);
    system.cores = vec![vec![0, 1]];
    // What is reserved is the most that any job of the list needs: one that never comes.
    let mut costs = work.jobs_ns.clone();
    costs.push(work.reserve_ns);
    let mut process = Thread::periodic(work.reserve_ns, work.period_ns).on(&[0]);
    process.cost = CostModel::Listed(costs);
    process.late = OverrunPolicy::Skip;
    system.threads.push(process);
    if let Some(kind) = beside {
        system.threads.push(Thread::best_effort(0).on(&[0]));
        system.threads.push(Thread::best_effort(0).on(&[1]));
        let (with, among) = (hundredths(kind.percent()), hundredths(CoRunner::AMONG_THEMSELVES));
        for (thread, beside, rate) in [(0, 2, with), (2, 0, with), (1, 2, among), (2, 1, among)] {
            system.interference.set(thread, beside, rate);
        }
    }
    system
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Section 5.2: jobs of 50 ms, 55 of 70 ms reserved.
    fn product() -> SimulatedProcess {
        SimulatedProcess { period_ns: 70 * MS, reserve_ns: 55 * MS, jobs_ns: vec![50 * MS; 100] }
    }

    /// The rates are those with which the simulated gain is that of Figure 9.
    #[test]
    fn rates_give_the_papers_gains() {
        let paper = crate::Paper::named("smt-reservation").unwrap();
        for (line, kind) in paper.table("figure-9").unwrap().lines.iter().zip(CoRunner::ALL) {
            let best = |method| {
                let found = simulate(&product(), Some(kind), method).unwrap();
                assert_eq!(found.missed(), 0, "{method:?}");
                found.best_effort()
            };
            let gain = best(SimMethod::Reported(256)) / best(SimMethod::Disable);
            assert!((gain / line.paper[0] - 1.0).abs() < 0.03, "{kind:?}: {gain}");
        }
    }

    /// Section 5.2.1: deadlines are missed without monitoring, regardless of the co-runner.
    #[test]
    fn who_ignores_contention_misses() {
        for kind in CoRunner::ALL {
            let found = simulate(&product(), Some(kind), SimMethod::Ignore).unwrap();
            assert!(found.missed() >= 49, "{kind:?}: {}", found.missed());
        }
        let alone = simulate(&product(), None, SimMethod::Ignore).unwrap();
        assert_eq!((alone.missed(), alone.latest_ns()), (0, Some(50 * MS)));
    }
}
