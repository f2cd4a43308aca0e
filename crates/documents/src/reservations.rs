//! The document `hourglass.reservations/1`: the reservations in force on this machine.

use serde::{Deserialize, Serialize};

use crate::document::Warning;

/// Name and version of the document.
pub const RESERVATIONS_SCHEMA: &str = "hourglass.reservations/1";

/// The reservations in force at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservationsDocument {
    /// Always [`RESERVATIONS_SCHEMA`].
    pub schema: String,
    /// Reservations of `reserve` and `run -rh` that are kept from user space, and all threads of the deadline class,
    /// whatever program put them there.
    pub reservations: Vec<ReservationInForce>,
    /// Why there may be further reservations; empty if the list is known to be complete.
    pub warnings: Vec<Warning>,
}

/// A reservation in force, and the process that keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservationInForce {
    /// The process that keeps it (`hourglass` itself), or that owns the thread of the deadline class; null if this PID
    /// namespace does not show it.
    pub pid: Option<u32>,
    /// The thread in the deadline class; null for other reservations.
    pub tid: Option<u32>,
    /// The command line of that process, shortened; empty if it is not shown.
    pub command: String,
    /// User number of that process; null if it is not shown.
    pub user: Option<u32>,
    /// The CPUs on which it holds.
    pub cpus: Vec<u32>,
    /// Processor time in each period, ns.
    pub budget_ns: u64,
    /// Time between two releases of the budget, ns.
    pub period_ns: u64,
    /// Time from the start of a period by which the budget is delivered, ns.
    pub deadline_ns: u64,
    /// Whether it may take what other reservations leave (`SCHED_FLAG_RECLAIM`); null where it is not of the deadline class, or
    /// that could not be read.
    #[serde(default)]
    pub reclaims: Option<bool>,
    /// What keeps it: `user` or `deadline`.
    pub backend: String,
    /// Complete periods so far, as the process that keeps it recorded them; null where that is not known, as in the
    /// deadline class.
    pub periods: Option<u64>,
    /// Complete periods whose budget was wanted and not delivered; null where `periods` is.
    pub missed: Option<u64>,
    /// Whether no period was missed until now; null where that is not known.
    pub kept: Option<bool>,
}
