//! Further reservations beside the first one, for processes that are there (`--also`): on one core they are watched
//! together (Inoue et al., section 3.4, equation 9). Or for threads, each by itself (`--from FILE --pid`).
//!
//! Owns: finding their targets, reserving, holding the one while another's turn is, the outcome of each. Must not:
//! decide whose turn it is (`reserve::smt::monitor` does); outlive the first reservation.

use hourglass_documents::Reservation;
use hourglass_documents::document::Warning;
use hourglass_documents::reserve::{ReserveDocument, ReserveRefusal, SmtReport};

use super::backend_selection::{BackendQuery, SelectedBackend};
use super::check::planned_for;
use super::co_runners::{self, CoRunnerProtection};
use super::kept::KeptReservation;
use super::{
    AdditionalReservation, Backend, SessionFailure, SessionRequest, SessionTarget, SiblingPolicy,
    TargetSelector, document,
};
use crate::admission::PlannedReservation;
use crate::backend::BackendRequest as Asked;
use crate::backend::{ActiveReservation, members};
use crate::command::AttachedTarget;
use crate::guardian::Guardian;
use crate::smt::monitor::JobCounts;
use crate::smt::stopper::{self, Stopper, StopperKind};
use crate::smt::watchdog_stopper::GuardedStopper;
use crate::target::Target;

#[derive(Debug)]
struct AdditionalEntry<'a> {
    spec: &'a AdditionalReservation,
    adopted: AttachedTarget,
    document: ReserveDocument,
    kept: Option<KeptReservation>,
}

/// All of them. Dropping them puts everything back.
#[derive(Debug)]
pub(super) struct AdditionalReservations<'a>(Vec<AdditionalEntry<'a>>);

impl SessionRequest {
    /// The backend for the first reservation: those of several processes are kept alike.
    pub(super) fn backend_for_all(&self) -> Option<Backend> {
        match self.additional.is_empty() || self.is_for_threads() {
            true => self.backend,
            false => Some(Backend::User),
        }
    }

    /// Whether several threads are reserved for, each by itself.
    fn is_for_threads(&self) -> bool {
        let is_thread = |whom: &TargetSelector| !matches!(whom, TargetSelector::Process(_));
        matches!(&self.subject, SessionTarget::Adopted(whom) if is_thread(whom))
            && self.siblings.is_none()
            && self.additional.iter().all(|also| is_thread(&also.target))
    }
}

impl<'a> AdditionalReservations<'a> {
    /// Finds the processes. Nothing about them is changed.
    pub(super) fn find(
        request: &'a SessionRequest,
    ) -> Result<AdditionalReservations<'a>, SessionFailure> {
        if request.additional.is_empty() {
            return Ok(AdditionalReservations(Vec::new()));
        }
        let mut seen = match request.subject {
            SessionTarget::Adopted(TargetSelector::Process(pid)) => vec![pid],
            _ => Vec::new(),
        };
        let mut others = Vec::new();
        for also in &request.additional {
            if let TargetSelector::Process(pid) = also.target {
                is_apart(request, pid, &seen)?;
                seen.push(pid);
            }
            let adopted = AttachedTarget::find(&also.target)?;
            let asked = SessionRequest {
                reservation: also.reservation,
                cpu: also.cpu.or(request.cpu),
                subject: SessionTarget::Adopted(also.target.clone()),
                ..request.clone()
            };
            let mut document = document::requested_document(&asked);
            document.target = document::adopted(&adopted);
            others.push(AdditionalEntry { spec: also, adopted, document, kept: None });
        }
        Ok(AdditionalReservations(others))
    }

    pub(super) fn targets(&self) -> Vec<Target> {
        self.0.iter().map(|other| other.adopted.target().clone()).collect()
    }

    /// The refusals for each reservation beside the first one and those before it, which are `planned`, where they are not
    /// watched together.
    pub(super) fn refusals(
        &self,
        first: &Asked,
        mut planned: Vec<PlannedReservation>,
    ) -> Vec<ReserveRefusal> {
        let mut refusals = Vec::new();
        for other in &self.0 {
            let name = &other.document.target;
            let asked = other.asked(other.spec.reservation, first.cpu);
            let query = BackendQuery { planned: &planned, ..other.query(&asked, false) };
            if let Some(mut refused) = query.check().0.refusals.into_iter().next() {
                refused.cause = format!("{name}: {}", refused.cause);
                refusals.push(document::refusal(&refused));
            }
            planned.extend(planned_for(name, other.kind(), other.adopted.target(), &asked));
        }
        refusals
    }

    /// Reserves for each, in the order in which they were named.
    ///
    /// # Errors
    /// The first refusal; those before it are put back when this is dropped.
    pub(super) fn reserve(
        &mut self,
        request: &SessionRequest,
        sharing: Option<&CoRunnerProtection<'_>>,
        guardian: &Guardian,
    ) -> Result<(), SessionFailure> {
        for other in &mut self.0 {
            let reservation = co_runners::covering(other.spec.reservation, sharing);
            let asked = other.asked(reservation, request.cpu);
            let query = other.query(&asked, co_runners::is_watched(sharing));
            let confirm =
                |reserved: &mut dyn ActiveReservation| Ok(other.adopted.confirm(reserved)?);
            let document = other.document.clone();
            other.kept = Some(KeptReservation::reserve(document, &query, guardian, confirm)?);
        }
        Ok(())
    }

    /// Each with its reservation and the begin of its first period, ns, for the monitor.
    pub(super) fn watched(
        &self,
    ) -> impl Iterator<Item = (&AdditionalReservation, &Target, Option<u64>)> {
        self.0.iter().map(|other| {
            let first_ns = other.kept.as_ref().and_then(|kept| kept.picked.reserved.first_ns());
            (other.spec, other.adopted.target(), first_ns)
        })
    }

    /// Looks at the first one and at each, as [`SelectedBackend::look`].
    pub(super) fn look_with(&mut self, first: &mut SelectedBackend) {
        first.look();
        self.0
            .iter_mut()
            .filter_map(|other| other.kept.as_mut())
            .for_each(|kept| kept.picked.look());
    }

    /// Whether what is kept for each is what they take turns on: then the account of one by itself does not say
    /// whether it had its budget, and the jobs that were watched do.
    pub(super) fn is_several(&self, smt: Option<&SmtReport>) -> bool {
        let takes_turns = |smt: &SmtReport| smt.policy != SiblingPolicy::Ignore.name();
        !self.0.is_empty() && smt.is_some_and(takes_turns)
    }

    /// Ends them all, and returns the outcome of each, as [`KeptReservation::end`].
    pub(super) fn end(
        self,
        several: bool,
        smt: Option<&SmtReport>,
        counts: &[JobCounts],
    ) -> Vec<ReserveDocument> {
        let mut counts = counts.iter();
        let kept = self.0.into_iter().filter_map(|other| other.kept);
        kept.map(|kept| kept.end(several, counts.next().zip(smt))).collect()
    }
}

impl AdditionalEntry<'_> {
    fn kind(&self) -> Backend {
        self.spec.backend.unwrap_or(Backend::User)
    }

    fn asked(&self, reservation: Reservation, cpu: Option<u32>) -> Asked {
        Asked { reservation, cpu: self.spec.cpu.or(cpu) }
    }

    fn query<'a>(&'a self, request: &'a Asked, within: bool) -> BackendQuery<'a> {
        let target = self.adopted.target();
        BackendQuery {
            kind: Some(self.kind()),
            program: false,
            target,
            request,
            within,
            planned: &[],
        }
    }
}

/// Whether a process is no part of the work that is reserved for already.
fn is_apart(request: &SessionRequest, pid: u32, seen: &[u32]) -> Result<(), SessionFailure> {
    if seen.contains(&pid) {
        return Err(SessionFailure::Words(format!("--also: process {pid} is named twice")));
    }
    if let Some(other) = seen.iter().find(|other| is_within(pid, **other)) {
        return Err(SessionFailure::Words(format!(
            "--also: process {pid} is part of the reservation of process {other}, or the other way round; \
             name processes that did not start each other"
        )));
    }
    let starts = matches!(request.subject, SessionTarget::Command(_));
    if starts && members::tree(pid).contains(&std::process::id()) {
        return Err(SessionFailure::Words(format!(
            "--also: process {pid} started this hourglass, so that the command would be part of its \
             reservation; name another process, or start hourglass from elsewhere"
        )));
    }
    Ok(())
}

/// Whether the arguments go together; checked before anything about a process.
pub(super) fn goes_together(request: &SessionRequest) -> Result<(), SessionFailure> {
    if request.additional.is_empty() || request.is_for_threads() {
        return Ok(());
    }
    let wrong = |text: &str| Err(SessionFailure::Words(text.to_owned()));
    match (&request.subject, request.backend) {
        (SessionTarget::Adopted(TargetSelector::Thread(_) | TargetSelector::Named(_)), _) => wrong(
            "--also: reservations that share a core are those of processes; give --pid or a COMMAND, not --thread",
        ),
        (_, Some(Backend::Deadline | Backend::Quota)) => wrong(
            "--also: several reservations of one command are kept by the user-space reserve; leave out --backend, or give \
             --backend user",
        ),
        _ => Ok(()),
    }
}

/// Whether one of two processes started the other, so that both would be members of one reservation.
fn is_within(pid: u32, other: u32) -> bool {
    members::tree(pid).contains(&other) || members::tree(other).contains(&pid)
}

/// Opens what holds a process while it is another one's turn.
///
/// # Errors
/// Nothing here can hold it.
pub(super) fn gate(
    target: &Target,
    guardian: &Guardian,
) -> Result<Box<dyn Stopper>, SessionFailure> {
    let pid = target.id();
    let wanted = stopper::StopperRequest::processes([pid]);
    let mut refused = Vec::new();
    // A cookie does not keep co-runners off the reserved CPU itself.
    for kind in StopperKind::ALL.into_iter().filter(|kind| *kind != StopperKind::CoreCookie) {
        match stopper::open(kind, &wanted, guardian) {
            Ok(stopper) => return Ok(Box::new(GuardedStopper::new(stopper, guardian))),
            Err(why) => refused.push(why.to_string()),
        }
    }
    Err(SessionFailure::Siblings(format!(
        "nothing holds process {pid} for another one's turn: {}",
        refused.join("; ")
    )))
}

pub(super) fn is_reserved(pid: u32) -> SessionFailure {
    SessionFailure::Siblings(format!(
        "process {pid} must not be stopped: it is reserved with --also; name others with --stop"
    ))
}

/// The warnings of a further reservation, each of which says whose it is.
pub fn warnings_of(document: &ReserveDocument) -> impl Iterator<Item = Warning> + '_ {
    document.warnings.iter().map(|warning| Warning {
        text: format!("{}: {}", document.target, warning.text),
        ..warning.clone()
    })
}
