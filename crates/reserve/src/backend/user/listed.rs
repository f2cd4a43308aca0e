//! A reservation that is in force, as a list of them says it.

use hourglass_documents::CpuSet;

use super::registry::{Holder, RegisteredReservation};
use crate::backend::{BackendKind, members};

/// One of another process, or a thread of the deadline class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InForce {
    /// The process that keeps it, or that the thread belongs to; `None` if this PID namespace does not show it.
    pub pid: Option<u32>,
    /// The thread of the deadline class.
    pub tid: Option<u32>,
    /// The command line of that process, shortened.
    pub command: String,
    /// Its user; `None` if that is not shown.
    pub uid: Option<u32>,
    /// Where it holds.
    pub cpus: CpuSet,
    /// Budget, ns.
    pub budget_ns: u64,
    /// Deadline, ns.
    pub deadline_ns: u64,
    /// Period, ns.
    pub period_ns: u64,
    /// What keeps it.
    pub kind: BackendKind,
    /// Complete periods, and how many were missed, as its keeper wrote them down last.
    pub course: Option<(u64, u64)>,
}

impl From<RegisteredReservation> for InForce {
    fn from(held: RegisteredReservation) -> InForce {
        let RegisteredReservation { share, holder, course } = held;
        let (pid, tid, command, uid, kind) = match holder {
            Holder::Process { pid, command, uid } => {
                (pid, None, command, Some(uid), BackendKind::User)
            }
            Holder::Thread(tid, name) => {
                let pid = members::process_of(tid);
                let of = pid.map(Holder::process);
                let (command, uid) = match of {
                    Some(Holder::Process { command, uid, .. }) => (command, Some(uid)),
                    _ => (name, None),
                };
                (pid, Some(tid), command, uid, BackendKind::Deadline)
            }
        };
        InForce {
            pid,
            tid,
            command,
            uid,
            cpus: share.cpus,
            budget_ns: share.budget_ns,
            deadline_ns: share.deadline_ns,
            period_ns: share.period_ns,
            kind,
            course,
        }
    }
}
