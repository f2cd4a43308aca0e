//! The document `hourglass.reservations/1`: the reservations in force on this machine.

use serde::{Deserialize, Serialize};

use crate::document::Warning;

/// Name and version of the document.
pub const RESERVATIONS_SCHEMA: &str = "hourglass.reservations/1";

/// What is reserved at this moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservationsDocument {
    /// Always [`RESERVATIONS_SCHEMA`].
    pub schema: String,
    /// Reservations of `reserve` and `run -rh` kept from user space, and all threads of the deadline class, whoever put them
    /// there.
    pub reservations: Vec<ReservationInForce>,
    /// Why there may be more than these; empty where nothing is known to stand against it.
    pub warnings: Vec<Warning>,
}

/// One reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservationInForce {
    /// The process that keeps it (`hourglass` itself), or that the thread of the deadline class belongs to; null if this PID
    /// namespace does not show it.
    pub pid: Option<u32>,
    /// The thread, in the deadline class; null of others.
    pub tid: Option<u32>,
    /// The command line of that process, shortened; empty if it is not shown.
    pub command: String,
    /// Its user, by number; null if that is not shown.
    pub user: Option<u32>,
    /// The CPUs on which it holds.
    pub cpus: Vec<u32>,
    /// Budget, ns.
    pub budget_ns: u64,
    /// Period, ns.
    pub period_ns: u64,
    /// Deadline, ns.
    pub deadline_ns: u64,
    /// What keeps it: `user` or `deadline`.
    pub backend: String,
    /// Complete periods so far, as its keeper wrote them down; null where that is not known, as in the deadline class.
    pub periods: Option<u64>,
    /// Those of them whose budget was wanted and not delivered; null likewise.
    pub missed: Option<u64>,
    /// Whether it was kept until now: none was missed; null where that is not known.
    pub kept: Option<bool>,
}
