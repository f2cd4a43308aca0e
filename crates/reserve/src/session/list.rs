//! The reservations in force on this machine.

use hourglass_documents::reservations::{RESERVATIONS_SCHEMA, ReservationsDocument};

use super::document;
use crate::backend::user;

/// Reads them; nothing is changed. The CPU that is named first comes first, then the shorter period.
#[must_use]
pub fn list() -> ReservationsDocument {
    let (mut reservations, doubt) = user::in_force();
    reservations.sort_by(|a, b| (&a.cpus, a.period_ns, a.pid).cmp(&(&b.cpus, b.period_ns, b.pid)));
    let warnings = doubt.into_iter().map(document::doubt).collect();
    ReservationsDocument { schema: RESERVATIONS_SCHEMA.to_owned(), reservations, warnings }
}
