//! What would be refused, without reserving anything.

use hourglass_model::reserve::ReserveDocument;
use hourglass_reserve::admission::over;
use hourglass_reserve::backend;
use hourglass_reserve::command::{Adopted, Launch};
use hourglass_reserve::target::Target;

use super::pick::Wanted;
use super::{Backend, Failure, Request, Subject, document, siblings};

/// Says which backend would take the reservation, and what is in the way of the others, and of stopping co-runners
/// where that is asked for. Nothing is
/// started, changed or asked of the kernel's scheduler.
///
/// # Errors
/// The command, process or thread is not there.
pub fn check(request: &Request) -> Result<ReserveDocument, Failure> {
    let mut document = document::asked(request);
    let subject = match &request.subject {
        Subject::Adopted(whom) => Some(Adopted::find(whom)?),
        Subject::Command(words) => {
            Launch::find(words, &[])?;
            None
        }
        Subject::Nobody => None,
    };
    // A program inherits what this process has.
    let own = Target::Process(std::process::id());
    let target = subject.as_ref().map_or(&own, Adopted::target);
    // How long stopping takes is measured only when somebody is to be stopped.
    let sharing = siblings::look(request, target, &mut document)?;
    let reservation = sharing.as_ref().map_or(request.reservation, |(siblings, _)| {
        siblings::cover(request.reservation, siblings.policy, 0)
    });
    let obstacles = sharing.map_or(Vec::new(), |(siblings, shares)| {
        siblings::obstacles(siblings, target, &shares, &mut document)
    });
    let asked = backend::Request { reservation, cpu: request.cpu };
    let wanted =
        Wanted { kind: request.backend, program: subject.is_none(), target, request: &asked };
    let (choice, lateness) = wanted.check();
    document.guarantee = choice.kind.is_some_and(|kind| kind != Backend::Quota);
    document::by(&mut document, choice.kind);
    document.reason = choice.reason;
    if document.backend.is_some() {
        siblings::describe(&mut document, &reservation);
    }
    document.warnings.extend(lateness.and_then(document::late));
    document.refusals = choice.refusals.iter().map(document::refusal).collect();
    if !obstacles.is_empty() {
        // Without the protection that was asked for nothing would be started.
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
