//! Changes the budget of a thread of the class. The kernel admits the change as it admits a new thread, and observers
//! of the thread notice the new terms.

use hourglass_documents::{Reservation, ReservationKind};
use hourglass_sys::sched::{self, Attributes, SavedScheduling};
use hourglass_time::Span;

use super::{ownership, refusal, waiting_for_echo};
use crate::admission::{AdmissionFacts, Refusal};
use crate::backend::{BackendKind, BackendRequest, changed, user};

/// The terms of thread `tid`, if it is in the class, and whether the kernel tells it of overruns.
fn terms(tid: u32) -> Option<(Reservation, bool)> {
    let Attributes::Deadline { runtime_ns, deadline_ns, period_ns, reclaim, overrun_signal } =
        sched::read(tid).ok()??
    else {
        return None;
    };
    let span = Span::saturating_from_nanos;
    let period_ns = if period_ns == 0 { deadline_ns } else { period_ns };
    let strength = if reclaim { ReservationKind::Soft } else { ReservationKind::Hard };
    let whole = Reservation::new(span(runtime_ns), span(period_ns), strength).ok()?;
    Some((whole.with_deadline(span(deadline_ns)).ok()?, overrun_signal))
}

/// Gives thread `tid` of the class another budget and period, from its next period on; a deadline at the end of the period
/// moves with it. `None` if it is not in the class.
///
/// # Errors
/// Why not, in a line; it goes on as it was.
pub(crate) fn change(tid: u32, budget: Span, period: Span) -> Option<Result<(), String>> {
    let (before, overrun_signal) = terms(tid)?;
    let saved = SavedScheduling::read(tid).ok()?;
    let said = |refusal: Refusal| format!("{}; {}", refusal.cause, refusal.remedy);
    Some(changed(&before, budget, period).and_then(|new| {
        let request = BackendRequest { reservation: new, cpu: None };
        let attributes = super::attributes(&new, overrun_signal);
        let set = || crate::ownership::set_policy_without_children(tid, attributes);
        let above = || user::check_above(&request, &AdmissionFacts::here(Some(tid)));
        ownership(BackendKind::Deadline, tid).and_then(|()| above()).map_err(said)?;
        waiting_for_echo(Some(tid), &new, set)
            .map_err(|error| said(refusal(&error, Some(tid), &request)))?;
        // A reservation that was made meanwhile sees this one, or is seen here.
        above().map_err(|refused| {
            // It was let in so a moment ago.
            let _ = saved.restore(tid);
            said(refused)
        })
    }))
}
