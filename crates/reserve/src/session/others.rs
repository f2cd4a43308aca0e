//! Further reservations beside the first one, for processes that are there (`--also`): on one core they are watched
//! together (Inoue et al., section 3.4, equation 9).
//!
//! Owns: finding whom they are for, reserving, holding the one while another's turn is, what became of each.
//! Must not: decide whose turn it is (`reserve::smt::monitor` does); outlive the first reservation.

use hourglass_model::document::Warning;
use hourglass_model::reserve::{ReserveDocument, ReserveRefusal, SmtReport};

use super::pick::{Picked, Wanted};
use super::siblings::{self, Sharing};
use super::{Also, Backend, Failure, Request, SiblingPolicy, Subject, Whom, course, document};
use crate::admission::Facts;
use crate::backend::Request as Asked;
use crate::backend::{members, user};
use crate::command::Adopted;
use crate::guardian::{Guardian, UndoGuard};
use crate::smt::dead_man::Covered;
use crate::smt::monitor::Counts;
use crate::smt::stopper::{self, Kind, Stopper};
use crate::target::Target;

#[derive(Debug)]
struct Other<'a> {
    asked: &'a Also,
    adopted: Adopted,
    document: ReserveDocument,
    /// Before what is kept: it raises as long as it is there.
    picked: Option<Picked>,
    kept: Vec<UndoGuard>,
}

/// All of them. Dropping them puts everything back.
#[derive(Debug)]
pub(super) struct Others<'a>(Vec<Other<'a>>);

impl Request {
    /// What is to enforce the first reservation: several are kept alike.
    pub(super) fn backend_for_all(&self) -> Option<Backend> {
        if self.also.is_empty() { self.backend } else { Some(Backend::User) }
    }
}

impl<'a> Others<'a> {
    /// Finds the processes. Nothing about them is changed.
    pub(super) fn find(request: &'a Request) -> Result<Others<'a>, Failure> {
        if request.also.is_empty() {
            return Ok(Others(Vec::new()));
        }
        let mut seen = match request.subject {
            Subject::Adopted(Whom::Process(pid)) => vec![pid],
            _ => Vec::new(),
        };
        let mut others = Vec::new();
        for also in &request.also {
            if seen.contains(&also.pid) {
                let pid = also.pid;
                return Err(Failure::Words(format!("--also: process {pid} is named twice")));
            }
            if let Some(other) = seen.iter().find(|other| is_within(also.pid, **other)) {
                let pid = also.pid;
                return Err(Failure::Words(format!(
                    "--also: process {pid} is part of the reservation of process {other}, or the other way round; \
                     name processes that did not start each other"
                )));
            }
            let starts = matches!(request.subject, Subject::Command(_));
            if starts && members::tree(also.pid).contains(&std::process::id()) {
                let pid = also.pid;
                return Err(Failure::Words(format!(
                    "--also: process {pid} started this hourglass, so that the command would be part of its \
                     reservation; name another process, or start hourglass from elsewhere"
                )));
            }
            seen.push(also.pid);
            let adopted = Adopted::find(&Whom::Process(also.pid))?;
            let asked = Request {
                reservation: also.reservation,
                subject: Subject::Adopted(Whom::Process(also.pid)),
                ..request.clone()
            };
            let mut document = document::asked(&asked);
            document.target = document::adopted(&adopted);
            others.push(Other { asked: also, adopted, document, picked: None, kept: Vec::new() });
        }
        Ok(Others(others))
    }

    /// Whom they are for.
    pub(super) fn targets(&self) -> Vec<Target> {
        self.0.iter().map(|other| other.adopted.target().clone()).collect()
    }

    /// What would be in the way of each beside the first one and those before it, where nobody watches them together.
    pub(super) fn refusals(&self, first: &Asked) -> Vec<ReserveRefusal> {
        let mut beside = vec![first.clone()];
        let mut refusals = Vec::new();
        for other in &self.0 {
            let (Target::Process(id) | Target::Thread(id)) = other.adopted.target();
            let facts = Facts::here(Some(*id));
            let asked = Asked { reservation: other.asked.reservation, cpu: first.cpu };
            let cpus = user::cpus_of(other.adopted.target(), &asked).unwrap_or_default();
            let refused = user::check(&asked, &facts).into_iter().next();
            let refused =
                refused.or_else(|| user::check_beside(&asked, &cpus, &beside, &facts).err());
            if let Some(mut refused) = refused {
                refused.cause = format!("{}: {}", other.document.target, refused.cause);
                refusals.push(document::refusal(&refused));
            }
            beside.push(asked);
        }
        refusals
    }

    /// Reserves for each, in the order in which they were named.
    ///
    /// # Errors
    /// The first refusal; those before it are put back when this is dropped.
    pub(super) fn reserve(
        &mut self,
        request: &Request,
        sharing: Option<&Sharing<'_>>,
        guardian: &Guardian,
    ) -> Result<(), Failure> {
        for other in &mut self.0 {
            let reservation = siblings::covering_other(other.asked.reservation, sharing);
            let target = other.adopted.target().clone();
            other.kept = course::keep(&target, guardian)?;
            let asked = Asked { reservation, cpu: request.cpu };
            let wanted = Wanted {
                kind: Some(Backend::User),
                program: false,
                target: &target,
                request: &asked,
                within: siblings::is_watched(sharing),
            };
            let mut picked = wanted.reserve(guardian).map_err(|refused| {
                let mut document = other.document.clone();
                document.refusals = refused.iter().map(document::refusal).collect();
                Failure::Refused(Box::new(document))
            })?;
            other.adopted.confirm(picked.reserved.as_mut())?;
            course::describe(&mut other.document, &picked, &target);
            siblings::describe(&mut other.document, &reservation);
            other.picked = Some(picked);
        }
        Ok(())
    }

    /// Each with its reservation and the begin of its first period, ns, for the monitor.
    pub(super) fn watched(&self) -> impl Iterator<Item = (&Also, &Target, Option<u64>)> {
        self.0.iter().map(|other| {
            let first_ns = other.picked.as_ref().and_then(|picked| picked.reserved.first_ns());
            (other.asked, other.adopted.target(), first_ns)
        })
    }

    /// Looks at the first one and at each, as [`Picked::look`].
    pub(super) fn look_with(&mut self, first: &mut Picked) {
        first.look();
        self.0.iter_mut().filter_map(|other| other.picked.as_mut()).for_each(Picked::look);
    }

    /// Whether what is kept for each is what they take turns on: then the account of one by itself does not say
    /// whether it had its budget, and the jobs that were watched do.
    pub(super) fn is_several(&self, smt: Option<&SmtReport>) -> bool {
        let takes_turns = |smt: &SmtReport| smt.policy != SiblingPolicy::Ignore.to_string();
        !self.0.is_empty() && smt.is_some_and(takes_turns)
    }

    /// Ends them all; what became of each. `smt` is what was done for all of them together, and `counts` what became of
    /// the jobs of each.
    pub(super) fn end(self, smt: Option<&SmtReport>, counts: &[Counts]) -> Vec<ReserveDocument> {
        let mut counts = counts.iter();
        let several = self.is_several(smt);
        let of = |mut other: Other<'_>| {
            if let Some(picked) = &mut other.picked {
                picked.look();
                if let Err(error) = picked.reserved.release() {
                    other.document.warnings.push(course::not_undone(&error));
                }
                course::add_outcome(&mut other.document, picked, several);
            }
            other.document.smt =
                counts.next().zip(smt).map(|(counts, smt)| of_one(smt, counts, &other.document));
            other.kept.into_iter().for_each(UndoGuard::forget);
            other.document.warnings.extend(document::doubts(&other.document));
            other.document
        };
        self.0.into_iter().map(of).collect()
    }
}

/// What was done for all, with the jobs of one.
pub(super) fn of_one(smt: &SmtReport, counts: &Counts, document: &ReserveDocument) -> SmtReport {
    SmtReport {
        protected: smt.protected && document.guarantee,
        progress: counts.progress.to_owned(),
        jobs: counts.jobs,
        missed: counts.missed,
        idle: counts.idle,
        backwards: counts.doubts.backwards,
        unmoved: counts.doubts.unmoved,
        ..smt.clone()
    }
}

/// Whether the words go together, which is said before anything about a process.
pub(super) fn goes_together(request: &Request) -> Result<(), Failure> {
    if request.also.is_empty() {
        return Ok(());
    }
    let wrong = |text: &str| Err(Failure::Words(text.to_owned()));
    match (&request.subject, request.backend) {
        (Subject::Adopted(Whom::Thread(_) | Whom::Named(_)), _) => wrong(
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
pub(super) fn gate(target: &Target, guardian: &Guardian) -> Result<Box<dyn Stopper>, Failure> {
    let (Target::Process(pid) | Target::Thread(pid)) = target;
    let wanted = stopper::Wanted::processes([*pid]);
    let mut refused = Vec::new();
    // A cookie keeps nobody off the own CPU.
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::CoreCookie) {
        match stopper::open(kind, &wanted, guardian) {
            Ok(stopper) => return Ok(Box::new(Covered::new(stopper, guardian))),
            Err(why) => refused.push(why.to_string()),
        }
    }
    Err(Failure::Siblings(format!(
        "nothing holds process {pid} for another one's turn: {}",
        refused.join("; ")
    )))
}

/// That somebody of another reservation would be stopped as a co-runner.
pub(super) fn is_reserved(pid: u32) -> Failure {
    Failure::Siblings(format!(
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
