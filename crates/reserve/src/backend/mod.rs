//! The means by which Linux is made to give a budget in every period.

use std::fmt;

use hourglass_documents::Reservation;
use hourglass_time::Span;

pub use crate::request::{BackendKind, BackendRequest};

use crate::request::Refusal;
use crate::supply::{Spent, Supply};
use crate::target::Target;

pub mod choose;
pub mod deadline;
mod escaped_threads;
pub(crate) mod members;
pub(crate) mod nested;
pub mod quota;
pub(crate) mod target_group;
pub mod user;

/// Makes and keeps reservations.
///
/// MUST: change nothing if [`Backend::reserve`] fails. MUST put everything back as it was when what
/// it returned is released or dropped, also if the target has ended meanwhile. MUST NOT promise
/// what it does not enforce: `guarantee` is true only if the budget is given whatever others do.
pub trait Backend: fmt::Debug {
    /// Which one it is.
    fn kind(&self) -> BackendKind;
    /// Whether the budget is promised, not only a limit.
    fn guarantee(&self) -> bool;
    /// Puts the target under the reservation.
    ///
    /// # Errors
    /// Why not, with the line that mends it.
    fn reserve(
        &self,
        target: &Target,
        request: &BackendRequest,
    ) -> Result<Box<dyn ActiveReservation>, Refusal>;
}

/// A reservation in force.
///
/// MUST: not miscount when a period is looked at late; say what was delivered as of each period's
/// end, or leave the period out.
pub trait ActiveReservation: Send + fmt::Debug {
    /// The supply until now.
    fn supply(&mut self) -> Supply;
    /// What the reservation cost until now; all that is known, also when it has been released.
    fn spent(&mut self) -> Spent;
    /// When its first period began, ns of `CLOCK_MONOTONIC`; `None` if periods begin with the work
    /// itself, as in the deadline class.
    fn first_ns(&self) -> Option<u64> {
        None
    }
    /// Limits of the accuracy of the supply; mostly none.
    fn accuracy_warnings(&self) -> Vec<AccuracyWarning> {
        Vec::new()
    }
    /// To be called now and then, from a thread that is not reserved: lets others know how it goes.
    fn look(&mut self) {}
    /// Work above the target on its CPUs by now, as far as can be seen: reservations and the deadline class.
    fn outranked_by(&self) -> Vec<String> {
        Vec::new()
    }
    /// Budget and period are these from the next period on.
    ///
    /// # Errors
    /// Why not; it goes on as it was.
    fn change(&mut self, _budget: Span, _period: Span) -> Result<(), String> {
        Err("only a user-space reserve can be changed".to_owned())
    }
    /// Ends it and puts everything back. Doing it twice does nothing.
    ///
    /// # Errors
    /// What the kernel answers; all that can be put back has been.
    fn release(&mut self) -> std::io::Result<()>;
}

/// The reservation with another budget and period; a deadline at the end of the period moves with it.
fn changed(of: &Reservation, budget: Span, period: Span) -> Result<Reservation, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{budget}/{period}: {error}");
    let new = Reservation::new(budget, period, of.strength()).map_err(|error| wrong(&error))?;
    if of.deadline() == of.period() {
        return Ok(new);
    }
    new.with_deadline(of.deadline()).map_err(|error| wrong(&error))
}

/// A reason not to believe the numbers as they stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccuracyWarning {
    /// A name for scripts, such as `periods-left-out`.
    pub id: &'static str,
    /// The doubt, and its size.
    pub text: String,
    /// How to avoid the doubt.
    pub remedy: &'static str,
}
