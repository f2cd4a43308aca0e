//! What would be refused, without reserving anything.

use hourglass_documents::reserve::ReserveDocument;

use super::additional::{AdditionalReservations, goes_together};
use super::backend_selection::{BackendQuery, BudgetDoubts};
use super::co_runners::progress;
use super::{
    Backend, SessionFailure, SessionRequest, SessionTarget, SiblingPolicy, co_runners, document,
};
use crate::admission::{PlannedReservation, Tick, headroom};
use crate::backend::choose::Choice;
use crate::backend::deadline::{at_tick, before_period};
use crate::backend::{self, AccuracyWarning, user};
use crate::command::{AttachError, AttachedTarget, Launch};
use crate::target::Target;

/// Says which backend would take the reservation, and what is in the way of the others, and of stopping co-runners
/// where that is asked for. Nothing is
/// started, changed or asked of the kernel's scheduler.
///
/// # Errors
/// The command, process or thread is not there.
pub fn check(request: &SessionRequest) -> Result<ReserveDocument, SessionFailure> {
    check_beside(request, &[])
}

/// The same, beside reservations that are to be made with it.
///
/// # Errors
/// As [`check`](fn@check).
pub fn check_beside(
    request: &SessionRequest,
    planned: &[PlannedReservation],
) -> Result<ReserveDocument, SessionFailure> {
    goes_together(request)?;
    let mut document = document::requested_document(request);
    let subject = match &request.subject {
        SessionTarget::Adopted(whom) => match AttachedTarget::find(whom) {
            Err(AttachError::Foreign(foreign)) => {
                document.refusals = vec![document::not_own(&foreign)];
                document.reason = foreign.cause();
                return Ok(document);
            }
            found => Some(found?),
        },
        SessionTarget::Command(words) => {
            Launch::find(words, &[])?;
            None
        }
        SessionTarget::CheckOnly => None,
    };
    // A program inherits what this process has.
    let own = Target::Process(std::process::id());
    let target = subject.as_ref().map_or(&own, AttachedTarget::target);
    let others = AdditionalReservations::find(request)?;
    let targets: Vec<Target> = std::iter::once(target.clone()).chain(others.targets()).collect();
    let counted = request.siblings.as_ref().map(|asked| progress::counters(asked, targets.iter()));
    let uncounted = counted.and_then(Result::err).map(|why| co_runners::uncounted(&why));
    // How long stopping takes is measured only when co-runners are to be stopped.
    let sharing = co_runners::check_pages(request, target, &mut document)?;
    let reservation = sharing.as_ref().map_or(request.reservation, |(siblings, _)| {
        co_runners::cover(request.reservation, siblings.policy, 0)
    });
    let watched =
        sharing.as_ref().is_some_and(|(siblings, _)| siblings.policy != SiblingPolicy::Ignore);
    let mut obstacles = sharing.map_or(Vec::new(), |(siblings, shares)| {
        co_runners::obstacles(request, siblings, &targets, &shares, &mut document)
    });
    obstacles.extend(uncounted);
    let asked = backend::BackendRequest { reservation, cpu: request.cpu };
    let wanted = BackendQuery {
        kind: request.backend_for_all(),
        program: subject.is_none(),
        target,
        request: &asked,
        within: false,
        planned,
    };
    if !watched {
        let kind = request.backend_for_all().unwrap_or(Backend::User);
        let first = planned_for(&document.target, kind, target, &asked);
        obstacles.extend(others.refusals(&asked, planned.iter().cloned().chain(first).collect()));
    }
    let (choice, doubts) = wanted.check();
    taken_by(&mut document, choice, &asked, doubts);
    if !obstacles.is_empty() {
        // Without the protection, or one of the reservations, that was asked for nothing would be started.
        document::by(&mut document, None);
        document.guarantee = false;
        document.refusals.splice(..0, obstacles);
    }
    let more = headroom::for_demand(document.budget_ns, document.period_ns);
    // All of a CPU is no budget.
    let fits = document.budget_ns + 1..document.period_ns;
    document.suggested_budget_ns = Some(more).filter(|more| fits.contains(more));
    Ok(document)
}

/// What a reservation that a check has granted is to others that are to be made with it; `None` if it was not granted,
/// or takes nothing from others.
#[must_use]
pub fn planned(request: &SessionRequest, document: &ReserveDocument) -> Option<PlannedReservation> {
    let own = Target::Process(std::process::id());
    let found = match &request.subject {
        SessionTarget::Adopted(whom) => Some(AttachedTarget::find(whom).ok()?),
        _ => None,
    };
    let target = found.as_ref().map_or(&own, AttachedTarget::target);
    let asked = backend::BackendRequest { reservation: request.reservation, cpu: request.cpu };
    let kind = super::arguments::backend(document.backend.as_deref()?).ok()??;
    planned_for(&document.target, kind, target, &asked)
}

pub(super) fn planned_for(
    name: &str,
    backend: Backend,
    target: &Target,
    asked: &backend::BackendRequest,
) -> Option<PlannedReservation> {
    if backend == Backend::Quota {
        return None;
    }
    let cpus = user::cpus_of(target, asked).ok()?.into_iter().collect();
    let (target, reservation) = (name.to_owned(), asked.reservation);
    Some(PlannedReservation { target, backend, reservation, cpus })
}

pub(super) fn taken_by(
    document: &mut ReserveDocument,
    choice: Choice,
    asked: &backend::BackendRequest,
    BudgetDoubts { late, longer }: BudgetDoubts,
) {
    let unseen = (choice.kind == Some(Backend::User)).then(user::unseen).flatten();
    let coarse = Tick::of_this_machine().and_then(|tick| tick.against(asked));
    let of_class = coarse.map(at_tick).into_iter().chain(before_period(&asked.reservation));
    let of_class = of_class.filter(|_| choice.kind == Some(Backend::Deadline));
    let doubts: Vec<AccuracyWarning> = unseen.into_iter().chain(of_class).collect();
    document.guarantee = choice.kind.is_some_and(|kind| kind != Backend::Quota)
        && doubts.is_empty()
        && late.is_none();
    document.warnings.extend(late.into_iter().chain(longer));
    document.warnings.extend(doubts.into_iter().map(document::doubt));
    document::by(document, choice.kind);
    document.reason = choice.reason;
    if document.backend.is_some() {
        co_runners::describe(document, &asked.reservation);
    }
    document.refusals = choice.refusals.iter().map(document::refusal).collect();
}
