//! The evaluation on a simulated core of two hardware threads.
//!
//! Owns: the paper's workloads as systems of the simulator. Must not: know an equation.

use hourglass_sim::smt::{self, SmtPolicy};
use hourglass_sim::{CostModel, Event, OverrunPolicy, SimSettings, Sink, Slice, System, Thread};

use super::contention::{CoRunner, hundredths};
use super::jobs::ProcessJobs;
use super::outcome::{FinishedJob, ProcessOutcome};

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
    work: &ProcessJobs,
    beside: Option<CoRunner>,
    policy: SmtPolicy,
) -> Result<ProcessOutcome, String> {
    let system = system(work, beside);
    let periods = work.jobs.len() as u64;
    let mut completions = Completions(Vec::new());
    let settings = SimSettings::until(periods * work.period_ns);
    let found =
        smt::run(&system, policy, settings, &mut completions).map_err(|error| error.to_string())?;
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

fn system(work: &ProcessJobs, beside: Option<CoRunner>) -> System {
    let mut system = System::new(2);
    system.cores = vec![vec![0, 1]];
    // What is reserved is the most that any job of the list needs: one that never comes.
    let mut costs: Vec<u64> = work.lengths().collect();
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
    use super::super::jobs::product;
    use super::super::smt_methods::SmtMethod;
    use super::*;

    const MS: u64 = 1_000_000;

    fn policy(way: SmtMethod) -> SmtPolicy {
        way.simulated().unwrap()
    }

    /// The rates are those with which the simulated gain is that of Figure 9.
    #[test]
    fn rates_give_the_papers_gains() {
        let paper = crate::Paper::named("smt-reservation").unwrap();
        for (line, kind) in paper.table("figure-9").unwrap().lines.iter().zip(CoRunner::ALL) {
            let best = |method| {
                let found = simulate(&product(100), Some(kind), policy(method)).unwrap();
                assert_eq!(found.missed(), 0, "{method:?}");
                found.best_effort()
            };
            let gain = best(SmtMethod::Word) / best(SmtMethod::Disable);
            assert!((gain / line.paper[0] - 1.0).abs() < 0.03, "{kind:?}: {gain}");
        }
    }

    /// Section 5.2.1: deadlines are missed without monitoring, regardless of the co-runner.
    #[test]
    fn who_ignores_contention_misses() {
        for kind in CoRunner::ALL {
            let found = simulate(&product(100), Some(kind), policy(SmtMethod::Ignore)).unwrap();
            assert!(found.missed() >= 49, "{kind:?}: {}", found.missed());
        }
        let alone = simulate(&product(100), None, policy(SmtMethod::Ignore)).unwrap();
        assert_eq!((alone.missed(), alone.latest_ns()), (0, Some(50 * MS)));
    }
}
