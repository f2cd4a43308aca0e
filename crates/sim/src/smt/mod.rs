//! Real-time threads on cores of several hardware threads: the three policies of the SMT paper (Inoue
//! et al., CPU Resource Reservation for SMT, 2006, section 4.2), and what they cost and gain.
//!
//! Owns: the policies as monitors of the simulator, slack with arrivals to come ([`slack`]), the
//! comparison of their throughput. Must not: execute threads (the engine does), know the paper's
//! equations a second time (`crate::slack` has them).
//!
//! On a core of several CPUs all real-time threads share one CPU, as the paper has it; the scheduler
//! orders them there as on a processor of its own. The other CPUs of the core are for threads without
//! a deadline, as far as the policy lets them.

mod disabling;
mod monitoring;
mod plan;
pub mod slack;
#[cfg(test)]
mod tests;

use super::{NullMonitor, SimError, SimOutcome, SimSettings, Sink, System};
use crate::slack::{Decision, SlackReservation};
pub use crate::slack::{ProgressRate, SlackCheck};

use disabling::DisableMonitor;
use monitoring::SlackMonitor;
use plan::CorePlan;

/// What is done about the other CPUs of a core while a real-time thread runs on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmtPolicy {
    /// Nothing.
    Ignore,
    /// Siblings are idle.
    Disable,
    /// Siblings run threads without a deadline for as long as slack lasts.
    Monitor(Monitoring),
}

/// How slack is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Monitoring {
    /// The worst rate of progress beside others, equation 3. It must hold; zero always does.
    pub alpha: ProgressRate,
    /// Neighbours are stopped when slack is no more than this, ns: 10 us in section 4.2. It bounds
    /// the number of looks, which would else come ever closer to one another.
    pub margin: u64,
    /// Duration of a stop, ns: co-runners run on for this time after the decision. It is subtracted
    /// from the slack.
    pub latency: u64,
    pub check: SlackCheck,
    /// How progress is known.
    pub progress: ProgressModel,
}

/// How the progress of a job is known (section 3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProgressModel {
    /// The scheduler counts what is executed. What a job needs less than its reserve is not known
    /// before its end.
    #[default]
    Counted,
    /// The program reports the share that is done, in this number of equal steps; above zero. 256
    /// in the paper.
    Reported(u32),
}

/// The paper's margin, 10 us (section 4.2).
pub const MARGIN: u64 = 10_000;

impl Default for Monitoring {
    fn default() -> Monitoring {
        Monitoring {
            alpha: ProgressRate::ZERO,
            margin: MARGIN,
            latency: 0,
            check: SlackCheck::Variable,
            progress: ProgressModel::Counted,
        }
    }
}

impl Monitoring {
    /// Decides about the co-runners at `now`, with the remaining `slack`, ns.
    #[must_use]
    pub fn decide(&self, now: u64, slack: i128) -> Decision {
        let slack = slack - i128::from(self.latency);
        let promise = SlackReservation::new(0, 0, self.alpha, self.margin);
        self.check.limit(now, promise.decide_as_published(now, slack))
    }

    /// What of a reserve of `reserve` is certainly done, given what the job needs and has done, all
    /// in ns of a CPU that is not shared. Never more than in truth is left undone of the job.
    #[must_use]
    pub fn done(&self, reserve: u64, cost: u64, done: u64) -> u64 {
        match self.progress {
            ProgressModel::Counted => done.min(reserve),
            ProgressModel::Reported(steps) => {
                let steps = u128::from(steps.max(1));
                let reached = u128::from(done.min(cost)) * steps / u128::from(cost.max(1));
                let share = u128::from(reserve) * reached / steps;
                u64::try_from(share).unwrap_or(reserve)
            }
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MonitorCounts {
    /// Checks of the slack by a timer; those at releases and completions are free.
    pub wakeups: u64,
    /// The most of them while one job was the one running.
    pub wakeups_per_job_max: u64,
    /// How often co-runners were stopped.
    pub stops: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmtOutcome {
    pub outcome: SimOutcome,
    pub watched: MonitorCounts,
    /// Work of all threads without a deadline, ns of a CPU that is not shared.
    pub best_effort: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SmtError {
    #[error("no core has two CPUs, so that there is nothing for the policy to do")]
    NoSiblings,
    #[error("thread {0} may run on several cores; under this policy give it CPUs of one core")]
    SeveralCores(usize),
    #[error("thread {thread}: slack is not known for a thread {what}; use the policy disabling")]
    Slack {
        thread: usize,
        /// The property of the thread that hides its slack.
        what: &'static str,
    },
    #[error("slack is not known where fixed priorities are throttled; leave one of them out")]
    Throttled,
    #[error("checks of the slack are 0 apart; give a time above zero")]
    Interval,
    #[error(transparent)]
    Sim(#[from] SimError),
}

/// Simulates a system under a policy, and tells `sink` what happens.
///
/// # Errors
/// See [`SmtError`].
pub fn run(
    system: &System,
    policy: SmtPolicy,
    settings: SimSettings,
    sink: &mut dyn Sink,
) -> Result<SmtOutcome, SmtError> {
    let mut system = system.clone();
    let plan = CorePlan::new(&mut system, policy)?;
    let (outcome, watched) = match policy {
        SmtPolicy::Ignore => {
            (super::run_with(&system, settings, sink, &mut NullMonitor)?, MonitorCounts::default())
        }
        SmtPolicy::Disable => {
            let mut monitor = DisableMonitor::new(plan);
            let outcome = super::run_with(&system, settings, sink, &mut monitor)?;
            (outcome, monitor.watched())
        }
        SmtPolicy::Monitor(monitoring) => {
            let mut monitor = SlackMonitor::new(&system, plan, monitoring);
            let outcome = super::run_with(&system, settings, sink, &mut monitor)?;
            (outcome, monitor.watched())
        }
    };
    let best_effort = best_effort(&system, &outcome);
    Ok(SmtOutcome { outcome, watched, best_effort })
}

/// Work of all threads without a deadline, ns of a CPU that is not shared.
#[must_use]
pub fn best_effort(system: &System, outcome: &SimOutcome) -> u64 {
    let threads = system.threads.iter().zip(&outcome.threads);
    let without = threads.filter(|(thread, _)| !plan::is_real_time(thread));
    without.map(|(_, outcome)| outcome.progress).fold(0, u64::saturating_add)
}
