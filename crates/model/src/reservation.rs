//! A request for processor time: so much in every period.

use std::fmt;

use hourglass_time::Span;

/// Whether a reservation is also a limit (Hourglass paper, section 5.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strength {
    /// The budget is also the most that the thread gets.
    Hard,
    /// The budget is the least that the thread gets; what is left over may be used too.
    Soft,
}

/// A reservation: `budget` of processor time in every `period`.
///
/// Invariant: 0 < `budget` <= `period`, kept by [`Reservation::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reservation {
    budget: Span,
    period: Span,
    strength: Strength,
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
}

impl Reservation {
    /// A reservation of `budget` every `period`.
    ///
    /// # Errors
    /// A budget that is not above zero, or is longer than the period.
    pub fn new(budget: Span, period: Span, strength: Strength) -> Result<Self, ReservationError> {
        if budget <= Span::ZERO {
            return Err(ReservationError::NoBudget);
        }
        if budget > period {
            return Err(ReservationError::BudgetOverPeriod);
        }
        Ok(Reservation { budget, period, strength })
    }

    /// Processor time per period.
    #[must_use]
    pub fn budget(&self) -> Span {
        self.budget
    }

    /// The period; also the deadline by which the budget is delivered.
    #[must_use]
    pub fn period(&self) -> Span {
        self.period
    }

    /// Hard or soft.
    #[must_use]
    pub fn strength(&self) -> Strength {
        self.strength
    }
}

/// As the policy column shows it: `DEADLINE:3.1ms/8ms`, with `+` for a soft one.
impl fmt::Display for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let soft = if self.strength == Strength::Soft { "+" } else { "" };
        write!(f, "DEADLINE:{}/{}{soft}", self.budget, self.period)
    }
}
