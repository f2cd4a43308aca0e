//! A request for processor time: a budget in every period.

use std::fmt;

use hourglass_time::Span;

/// Whether a reservation is also a limit (Hourglass paper, section 5.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReservationKind {
    /// The budget is also the most that the thread gets.
    Hard,
    /// The budget is the least that the thread gets; what is left over may be used too.
    Soft,
}

/// A reservation: `budget` of processor time in every `period`.
///
/// Invariant: 0 < `budget` <= `deadline` <= `period`, kept by its constructors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reservation {
    budget: Span,
    period: Span,
    deadline: Span,
    strength: ReservationKind,
}

/// A reservation that cannot be meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReservationError {
    /// The budget is zero or negative.
    #[error("the reserved amount must be above zero")]
    NoBudget,
    /// The budget is more than the period.
    #[error("the reserved amount is longer than its period")]
    BudgetOverPeriod,
    /// The deadline is before the budget can be delivered.
    #[error("the deadline is shorter than the reserved amount")]
    DeadlineUnderBudget,
    /// The deadline is behind the end of the period.
    #[error("the deadline is longer than the period")]
    DeadlineOverPeriod,
}

impl Reservation {
    /// A reservation of `budget` every `period`.
    ///
    /// # Errors
    /// A budget that is not above zero, or is longer than the period.
    pub fn new(
        budget: Span,
        period: Span,
        strength: ReservationKind,
    ) -> Result<Self, ReservationError> {
        if budget <= Span::ZERO {
            return Err(ReservationError::NoBudget);
        }
        if budget > period {
            return Err(ReservationError::BudgetOverPeriod);
        }
        Ok(Reservation { budget, period, deadline: period, strength })
    }

    /// The same with a deadline before the period's end, counted from its begin.
    ///
    /// # Errors
    /// A deadline shorter than the budget or longer than the period.
    pub fn with_deadline(self, deadline: Span) -> Result<Self, ReservationError> {
        if deadline < self.budget {
            return Err(ReservationError::DeadlineUnderBudget);
        }
        if deadline > self.period {
            return Err(ReservationError::DeadlineOverPeriod);
        }
        Ok(Reservation { deadline, ..self })
    }

    /// Processor time per period.
    #[must_use]
    pub fn budget(&self) -> Span {
        self.budget
    }

    /// The period.
    #[must_use]
    pub fn period(&self) -> Span {
        self.period
    }

    /// When in the period the budget is delivered at the latest; the period unless said otherwise.
    #[must_use]
    pub fn deadline(&self) -> Span {
        self.deadline
    }

    /// Hard or soft.
    #[must_use]
    pub fn strength(&self) -> ReservationKind {
        self.strength
    }
}

/// As the policy column shows it: `DEADLINE:3.1ms/8ms`, with `+` for a soft one.
impl fmt::Display for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let soft = if self.strength == ReservationKind::Soft { "+" } else { "" };
        write!(f, "DEADLINE:{}/{}{soft}", self.budget, self.period)
    }
}
