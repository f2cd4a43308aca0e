//! The reservations that a run makes, for each thread by itself: by the means that keeps them on this machine.
//!
//! Owns: which means is taken, how it ended, and the error of a thread that is refused one. Must not: enforce anything
//! (`reserve` does).

use std::sync::{Mutex, PoisonError};

use hourglass_documents::document::Warning;
use hourglass_documents::manifest::{ReservedFacts, ThreadFacts};
use hourglass_documents::{Reservation, ReservationKind};
use hourglass_reserve::admission::{self, AdmissionFacts, Obstacle, Refusal};
use hourglass_reserve::backend::choose::{BackendSubject, choose};
use hourglass_reserve::backend::user::User;
use hourglass_reserve::backend::{
    ActiveReservation, Backend, BackendKind, BackendRequest, deadline,
};
use hourglass_reserve::guardian::Guardian;
use hourglass_reserve::session::kept_until_now;
use hourglass_reserve::target::Target;
use hourglass_sys::thread;
use hourglass_workload::RunSpec;
use hourglass_workload::reservation::{ReservationBackend, ReservationDenied, Reserver};

/// The reservations of this machine, kept until this is dropped.
#[derive(Debug, Default)]
pub(crate) struct KernelReserver {
    /// Who undoes what a reserve in user space does, if this process is killed.
    guardian: Option<Guardian>,
    made: Mutex<Vec<ThreadReservation>>,
}

#[derive(Debug)]
struct ThreadReservation {
    tid: u32,
    facts: ReservedFacts,
    /// Only in user space; the class is left with the end of the thread.
    reservation: Option<Box<dyn ActiveReservation>>,
}

impl KernelReserver {
    /// For the threads of a run. To be called before there are any: a guardian is forked.
    pub(crate) fn for_run(spec: &RunSpec) -> KernelReserver {
        let reserves = spec.threads.iter().any(|thread| thread.deadline_reservation().is_some());
        // Without one the deadline class is left.
        let guardian = if reserves { Guardian::start().ok() } else { None };
        KernelReserver { guardian, made: Mutex::default() }
    }

    /// Ends them; what kept each goes to its thread, by the kernel's number, and what is doubtful is returned.
    pub(crate) fn end(self, tids: &[u32], threads: &mut [ThreadFacts]) -> Vec<Warning> {
        let made = self.made.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut doubts = Vec::new();
        for ThreadReservation { tid, facts, reservation: kept } in made {
            let place = tids.iter().position(|known| *known == tid);
            let Some(thread) = place.and_then(|place| threads.get_mut(place)) else { continue };
            let facts = thread.reserved.insert(facts);
            let Some(mut kept) = kept else { continue };
            (facts.kept, facts.broken_by) = kept_until_now(kept.as_mut());
            let released = kept.release();
            doubts.extend(kept.accuracy_warnings().into_iter().map(|doubt| Warning {
                id: doubt.id.to_owned(),
                text: format!("thread {}: {}", thread.id, doubt.text),
                remedy: doubt.remedy.to_owned(),
            }));
            doubts.extend(released.err().map(|error| Warning {
                id: "not-undone".to_owned(),
                text: format!("thread {}: not everything could be put back: {error}", thread.id),
                remedy: "show policies with: ps -eLo tid,cls,rtprio,psr,comm".to_owned(),
            }));
        }
        doubts
    }

    fn by(
        &self,
        kind: BackendKind,
        tid: u32,
        request: &BackendRequest,
    ) -> Result<Option<Box<dyn ActiveReservation>>, Refusal> {
        match (kind, &self.guardian) {
            (BackendKind::User, Some(guardian)) => {
                let user = User::new(guardian.clone());
                user.reserve(&Target::Thread(tid), request).map(Some)
            }
            _ => deadline::enter_or_say_why(&request.reservation).map(|()| None),
        }
    }
}

impl Reserver for KernelReserver {
    fn reserve(&self, reservation: &Reservation) -> Result<ReservationBackend, ReservationDenied> {
        let tid = thread::id();
        let request = BackendRequest { reservation: *reservation, cpu: None };
        let facts = AdmissionFacts::here(None);
        let coarse = facts.tick.and_then(|tick| tick.against(&request));
        // A thread of the class may not be kept to a part of its CPUs.
        let pinned = facts.affinity.as_ref().zip(facts.domain.as_ref());
        let pinned =
            pinned.is_some_and(|(affinity, domain)| !domain.difference(affinity).is_empty());
        let mut said: Vec<Refusal> = Vec::new();
        loop {
            let refused = |kind| match kind {
                BackendKind::User if self.guardian.is_none() => vec![no_guardian()],
                kind => said.iter().filter(|refusal| refusal.backend == kind).cloned().collect(),
            };
            let choice = choose(BackendSubject::Thread, pinned, coarse.as_deref(), refused);
            let Some(kind) = choice.kind else {
                return Err(denied(&choice.refusals, reservation, &facts));
            };
            match self.by(kind, tid, &request) {
                Ok(kept) => {
                    let facts = ReservedFacts {
                        by: kind.name().to_owned(),
                        reason: choice.reason,
                        ..ReservedFacts::default()
                    };
                    let first_ns = kept.as_ref().and_then(|kept| kept.first_ns());
                    let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
                    made.push(ThreadReservation { tid, facts, reservation: kept });
                    let user = |first_ns| ReservationBackend::UserSpace { first_ns };
                    return Ok(first_ns.map_or(ReservationBackend::DeadlineClass, user));
                }
                Err(refusal) => said.push(Refusal { backend: kind, ..refusal }),
            }
        }
    }
}

/// No priority is raised without a guardian that would put it back.
fn no_guardian() -> Refusal {
    Refusal {
        backend: BackendKind::User,
        id: Obstacle::Missing,
        errno: None,
        cause: "no guardian process can be started".to_owned(),
        remedy: "free memory or processes (ulimit -u)".to_owned(),
    }
}

/// What each means says, and the one that was not asked if it would do.
fn denied(
    refusals: &[Refusal],
    reservation: &Reservation,
    facts: &AdmissionFacts,
) -> ReservationDenied {
    let request = BackendRequest { reservation: *reservation, cpu: None };
    let alike = refusals.windows(2).all(|two| two[0].cause == two[1].cause);
    let each = |refusal: &Refusal| match refusal.backend {
        _ if alike => refusal.cause.clone(),
        BackendKind::Deadline => format!("the deadline class: {}", refusal.cause),
        BackendKind::User | BackendKind::Quota => {
            format!("a user-space reserve: {}", refusal.cause)
        }
    };
    let mut causes: Vec<String> = refusals.iter().map(each).collect();
    causes.dedup();
    let mut remedies: Vec<String> = refusals.iter().map(|refusal| refusal.remedy.clone()).collect();
    remedies.dedup();
    let asked = refusals.iter().any(|refusal| refusal.backend == BackendKind::User);
    if !asked && admission::user(&request, facts).is_empty() {
        let soft = if reservation.strength() == ReservationKind::Soft { " --soft" } else { "" };
        remedies.push(format!(
            "a reserve in user space: hourglass reserve {}/{}{soft} --backend user -- COMMAND",
            reservation.budget(),
            reservation.period()
        ));
    }
    let errno = refusals.iter().find_map(|refusal| refusal.errno);
    let errno = errno.unwrap_or_default();
    ReservationDenied { errno, cause: causes.join("; "), remedy: remedies.join("; or ") }
}

#[cfg(test)]
mod tests {
    use hourglass_time::Span;

    use super::*;

    fn remedy(facts: &AdmissionFacts) -> String {
        let (budget, period) = (Span::from_micros(3_100), Span::from_millis(8));
        let reservation = Reservation::new(budget, period, ReservationKind::Soft).unwrap();
        let refusal = Refusal {
            backend: BackendKind::Deadline,
            id: Obstacle::Bandwidth,
            errno: Some(16),
            cause: "the bandwidth is gone".to_owned(),
            remedy: "reserve less".to_owned(),
        };
        denied(&[refusal], &reservation, facts).remedy
    }

    /// The bug: the class was named, where the user-space reserve had been refused for another reason that
    /// would have been mended.
    #[test]
    fn both_means_say_why() {
        let (budget, period) = (Span::from_millis(17), Span::from_millis(33));
        let reservation = Reservation::new(budget, period, ReservationKind::Hard).unwrap();
        let refusal = |backend, cause: &str, remedy: &str| Refusal {
            backend,
            id: Obstacle::Bandwidth,
            errno: None,
            cause: cause.to_owned(),
            remedy: remedy.to_owned(),
        };
        let said = |refusals: &[Refusal]| {
            let denied = denied(refusals, &reservation, &AdmissionFacts::default());
            (denied.cause, denied.remedy)
        };
        let both = [
            refusal(BackendKind::User, "it comes too late", "reserve less"),
            refusal(BackendKind::Deadline, "it wants all CPUs", "taskset"),
        ];
        let cause =
            "a user-space reserve: it comes too late; the deadline class: it wants all CPUs";
        assert_eq!(said(&both), (cause.to_owned(), "reserve less; or taskset".to_owned()));
        let nested = [BackendKind::User, BackendKind::Deadline]
            .map(|kind| refusal(kind, "it is inside", "outside"));
        assert_eq!(said(&nested), ("it is inside".to_owned(), "outside".to_owned()));
    }

    /// The other means is named only to those who may use it.
    #[test]
    fn a_reserve_in_user_space_is_named_where_it_would_do() {
        let root = AdmissionFacts { sys_nice: Some(true), ..AdmissionFacts::default() };
        let line = "reserve less; or a reserve in user space: hourglass reserve 3.1ms/8ms --soft --backend \
                    user -- COMMAND";
        assert_eq!(remedy(&root), line);
        let user = AdmissionFacts { sys_nice: Some(false), ..AdmissionFacts::default() };
        assert_eq!(remedy(&user), "reserve less");
    }
}
