//! The reservations in force on this machine.

use hourglass_documents::reservations::{
    RESERVATIONS_SCHEMA, ReservationInForce, ReservationsDocument,
};

use super::document;
use crate::backend::user::{self, InForce};

/// Reads them; nothing is changed. The CPU that is named first comes first, then the shorter period.
#[must_use]
pub fn list() -> ReservationsDocument {
    let (found, doubt) = user::in_force();
    let mut reservations: Vec<ReservationInForce> = found.into_iter().map(said).collect();
    reservations.sort_by(|a, b| (&a.cpus, a.period_ns, a.pid).cmp(&(&b.cpus, b.period_ns, b.pid)));
    let warnings = doubt.into_iter().map(document::doubt).collect();
    ReservationsDocument { schema: RESERVATIONS_SCHEMA.to_owned(), reservations, warnings }
}

fn said(one: InForce) -> ReservationInForce {
    let whole = one.course.filter(|(periods, _)| *periods > 0);
    ReservationInForce {
        pid: one.pid,
        tid: one.tid,
        command: one.command,
        user: one.uid,
        cpus: one.cpus.iter().collect(),
        budget_ns: one.budget_ns,
        period_ns: one.period_ns,
        deadline_ns: one.deadline_ns,
        backend: one.kind.to_string(),
        periods: one.course.map(|(periods, _)| periods),
        missed: one.course.map(|(_, missed)| missed),
        kept: whole.map(|(_, missed)| missed == 0),
    }
}
