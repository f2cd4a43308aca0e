//! What would be refused, without reserving anything.

use hourglass_model::reserve::ReserveDocument;

use super::others::{Others, goes_together};
use super::pick::Wanted;
use super::siblings::progress;
use super::{Backend, Failure, Request, SiblingPolicy, Subject, document, siblings};
use crate::admission::{Tick, over};
use crate::backend::choose::Choice;
use crate::backend::deadline::at_tick;
use crate::backend::{self, Doubt, user};
use crate::command::{Adopted, Launch, NotAdopted};
use crate::target::Target;

/// Says which backend would take the reservation, and what is in the way of the others, and of stopping co-runners
/// where that is asked for. Nothing is
/// started, changed or asked of the kernel's scheduler.
///
/// # Errors
/// The command, process or thread is not there.
pub fn check(request: &Request) -> Result<ReserveDocument, Failure> {
    goes_together(request)?;
    let mut document = document::asked(request);
    let subject = match &request.subject {
        Subject::Adopted(whom) => match Adopted::find(whom) {
            Err(NotAdopted::Foreign(foreign)) => {
                document.refusals = vec![document::not_own(&foreign)];
                document.reason = foreign.cause();
                return Ok(document);
            }
            found => Some(found?),
        },
        Subject::Command(words) => {
            Launch::find(words, &[])?;
            None
        }
        Subject::Nobody => None,
    };
    // A program inherits what this process has.
    let own = Target::Process(std::process::id());
    let target = subject.as_ref().map_or(&own, Adopted::target);
    let others = Others::find(request)?;
    let targets: Vec<Target> = std::iter::once(target.clone()).chain(others.targets()).collect();
    let counted = request.siblings.as_ref().map(|asked| progress::counters(asked, targets.iter()));
    let uncounted = counted.and_then(Result::err).map(|why| siblings::uncounted(&why));
    // How long stopping takes is measured only when somebody is to be stopped.
    let sharing = siblings::look(request, target, &mut document)?;
    let reservation = sharing.as_ref().map_or(request.reservation, |(siblings, _)| {
        siblings::cover(request.reservation, siblings.policy, 0)
    });
    let watched =
        sharing.as_ref().is_some_and(|(siblings, _)| siblings.policy != SiblingPolicy::Ignore);
    let mut obstacles = sharing.map_or(Vec::new(), |(siblings, shares)| {
        siblings::obstacles(request, siblings, &targets, &shares, &mut document)
    });
    obstacles.extend(uncounted);
    let asked = backend::Request { reservation, cpu: request.cpu };
    let wanted = Wanted {
        kind: request.backend_for_all(),
        program: subject.is_none(),
        target,
        request: &asked,
        within: false,
    };
    if !watched {
        obstacles.extend(others.refusals(&asked));
    }
    let (choice, lateness) = wanted.check();
    document.warnings.extend(lateness.and_then(document::late));
    taken_by(&mut document, choice, &asked);
    if !obstacles.is_empty() {
        // Without the protection, or one of the reservations, that was asked for nothing would be started.
        document::by(&mut document, None);
        document.guarantee = false;
        document.refusals.splice(..0, obstacles);
    }
    let more = over::for_demand(document.budget_ns, document.period_ns);
    // All of a CPU is no budget.
    let fits = document.budget_ns + 1..document.period_ns;
    document.suggested_budget_ns = Some(more).filter(|more| fits.contains(more));
    Ok(document)
}

/// Says which backend would take the reservation, and what it would promise.
fn taken_by(document: &mut ReserveDocument, choice: Choice, asked: &backend::Request) {
    let unseen = (choice.kind == Some(Backend::User)).then(user::unseen).flatten();
    let coarse = Tick::of_this_machine().and_then(|tick| tick.against(asked));
    let coarse = coarse.filter(|_| choice.kind == Some(Backend::Deadline)).map(at_tick);
    let doubts: Vec<Doubt> = unseen.into_iter().chain(coarse).collect();
    document.guarantee =
        choice.kind.is_some_and(|kind| kind != Backend::Quota) && doubts.is_empty();
    document.warnings.extend(doubts.into_iter().map(document::doubt));
    document::by(document, choice.kind);
    document.reason = choice.reason;
    if document.backend.is_some() {
        siblings::describe(document, &asked.reservation);
    }
    document.refusals = choice.refusals.iter().map(document::refusal).collect();
}
