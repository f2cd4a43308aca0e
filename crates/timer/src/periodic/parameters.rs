//! When jobs are released and what they may take: the parameters of a periodic task.

use hourglass_time::{Instant, Monotonic, Span};

use crate::event::{BadPeriod, Period};

/// What becomes of the releases that pass while a job is still running.
///
/// A job that ends exactly at the next release is in time. Whatever the policy, a release that was
/// waited for is never left out, however late the thread was woken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OverrunPolicy {
    /// They are lost: the next job is released at the next point of the grid that is still ahead.
    /// Old work is dropped, the phase stays.
    #[default]
    Skip,
    /// They are made up for: every one is run, the ones that have passed at once and counted as
    /// late. Nothing is lost and the phase stays, but a task that needs more than its period falls
    /// behind for ever.
    CatchUp,
    /// The grid moves: the next job is released when the long one ends, and the later ones whole
    /// periods after that. The release that was due moves with it; whole periods beyond that are
    /// lost. **The task drifts**, by what [`super::Snapshot::drift_ns`] adds up to, and loses its
    /// phase to other tasks.
    Delay,
}

/// Parameters that make no periodic task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// The period is zero, negative, or no rate.
    #[error("the period: {0}")]
    Period(#[from] BadPeriod),
    /// The deadline is zero or negative.
    #[error("a deadline {0} after the release cannot be met; give one of at least 1 ns")]
    Deadline(Span),
    /// The phase is not within one period.
    #[error(
        "a phase of {phase} is out of range: give one from 0 to below the period of {period}, and an epoch for what is beyond"
    )]
    Phase {
        /// The phase asked for.
        phase: Span,
        /// The period.
        period: Period,
    },
    /// The budget is zero or negative.
    #[error("a budget of {0} lets no job run; give one of at least 1 ns, or none for no limit")]
    Budget(Span),
    /// The budget is longer than the period.
    #[error(
        "a budget of {budget} is more than the period of {period}; shorten it or lengthen that"
    )]
    BudgetAbovePeriod {
        /// The budget asked for.
        budget: Span,
        /// The period.
        period: Period,
    },
    /// The budget is longer than the deadline.
    #[error(
        "a job that used its budget of {budget} would miss its deadline of {deadline}; shorten the one or lengthen the other"
    )]
    BudgetAboveDeadline {
        /// The budget asked for.
        budget: Span,
        /// The deadline.
        deadline: Span,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PeriodSpec {
    Every(Span),
    Hertz(u32),
}

/// The parameters of a periodic task, not checked yet.
///
/// Without more than a period: deadline at the next release, phase 0, no budget, an epoch of its
/// own, overruns skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    period: PeriodSpec,
    deadline: Option<Span>,
    phase: Span,
    budget: Option<Span>,
    epoch: Option<Instant<Monotonic>>,
    on_overrun: OverrunPolicy,
}

impl Parameters {
    /// A release every `period`.
    #[must_use]
    pub const fn every(period: Span) -> Parameters {
        Parameters {
            period: PeriodSpec::Every(period),
            deadline: None,
            phase: Span::ZERO,
            budget: None,
            epoch: None,
            on_overrun: OverrunPolicy::Skip,
        }
    }

    /// Releases in a second, exact in the long run also where a period is no whole number of
    /// nanoseconds (60 Hz).
    #[must_use]
    pub const fn hertz(hertz: u32) -> Parameters {
        Parameters { period: PeriodSpec::Hertz(hertz), ..Parameters::every(Span::ZERO) }
    }

    /// These parameters with another period.
    #[must_use]
    pub const fn with_period(self, period: Span) -> Parameters {
        Parameters { period: PeriodSpec::Every(period), ..self }
    }

    /// These parameters with another rate.
    #[must_use]
    pub const fn with_hertz(self, hertz: u32) -> Parameters {
        Parameters { period: PeriodSpec::Hertz(hertz), ..self }
    }

    /// By when a job is to be complete, after its release. May be above the period.
    #[must_use]
    pub const fn with_deadline(self, deadline: Span) -> Parameters {
        Parameters { deadline: Some(deadline), ..self }
    }

    /// How long after the epoch the first release is; from 0 to below the period.
    #[must_use]
    pub const fn with_phase(self, phase: Span) -> Parameters {
        Parameters { phase, ..self }
    }

    /// CPU time that a job may take; at most the period, and at most the deadline.
    #[must_use]
    pub const fn with_budget(self, budget: Span) -> Parameters {
        Parameters { budget: Some(budget), ..self }
    }

    /// Where the grid of releases begins. Tasks with one epoch keep their phases to each other for
    /// ever. If it has passed, the first release is the next point of its grid; the ones before are
    /// not counted as lost. Without one the grid begins when the task does.
    #[must_use]
    pub const fn with_epoch(self, epoch: Instant<Monotonic>) -> Parameters {
        Parameters { epoch: Some(epoch), ..self }
    }

    /// What becomes of releases that pass while a job is running.
    #[must_use]
    pub const fn with_overrun_policy(self, on_overrun: OverrunPolicy) -> Parameters {
        Parameters { on_overrun, ..self }
    }

    /// Whether there is such a task.
    ///
    /// # Errors
    /// [`ParameterError`], naming what there cannot be.
    pub fn check(&self) -> Result<ValidParameters, ParameterError> {
        let period = match self.period {
            PeriodSpec::Every(span) => Period::from_span(span)?,
            PeriodSpec::Hertz(hertz) => Period::from_hertz(hertz)?,
        };
        let phase = self.phase;
        if phase.is_negative() || period.passed(phase.nanos_or_zero()) > 0 {
            return Err(ParameterError::Phase { phase, period });
        }
        let deadline = match self.deadline {
            Some(deadline) if !deadline.is_positive() => {
                return Err(ParameterError::Deadline(deadline));
            }
            given => given,
        };
        if let Some(budget) = self.budget {
            check_budget(budget, period, deadline)?;
        }
        Ok(ValidParameters {
            period,
            deadline_ns: deadline.map_or(period.nth_ns(1), Span::nanos_or_zero),
            phase_ns: phase.nanos_or_zero(),
            budget_ns: self.budget.map(Span::nanos_or_zero),
            epoch: self.epoch,
            on_overrun: self.on_overrun,
        })
    }
}

fn check_budget(
    budget: Span,
    period: Period,
    deadline: Option<Span>,
) -> Result<(), ParameterError> {
    if !budget.is_positive() {
        return Err(ParameterError::Budget(budget));
    }
    if budget.nanos_or_zero() > period.nth_ns(1) {
        return Err(ParameterError::BudgetAbovePeriod { budget, period });
    }
    match deadline {
        Some(deadline) if budget > deadline => {
            Err(ParameterError::BudgetAboveDeadline { budget, deadline })
        }
        _ => Ok(()),
    }
}

/// Parameters that make a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidParameters {
    pub(super) period: Period,
    pub(super) deadline_ns: u64,
    pub(super) phase_ns: u64,
    pub(super) budget_ns: Option<u64>,
    pub(super) epoch: Option<Instant<Monotonic>>,
    pub(super) on_overrun: OverrunPolicy,
}

impl ValidParameters {
    /// The period, exactly.
    #[must_use]
    pub const fn period(&self) -> Period {
        self.period
    }

    /// The deadline after the release, ns.
    #[must_use]
    pub const fn deadline_ns(&self) -> u64 {
        self.deadline_ns
    }

    /// CPU time that a job may take, ns.
    #[must_use]
    pub const fn budget_ns(&self) -> Option<u64> {
        self.budget_ns
    }
}

#[cfg(test)]
#[path = "tests/parameters.rs"]
mod tests;
