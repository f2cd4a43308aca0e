//! What would be refused, without reserving anything.

use hourglass_model::reserve::ReserveDocument;
use hourglass_reserve::admission::{self, Facts, Refusal, over};
use hourglass_reserve::backend;
use hourglass_reserve::command::{Adopted, Launch};
use hourglass_reserve::target::Target;

use super::{Backend, Failure, Request, Subject, document};

/// Says which backend would take the reservation, and what is in the way of the others. Nothing is
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
    let id = subject.as_ref().map(|adopted| match adopted.target() {
        Target::Thread(id) | Target::Process(id) => *id,
    });
    let asked = backend::Request { reservation: request.reservation, cpu: request.cpu };
    let facts = Facts::here(id);
    let wanted = |kind: Backend| request.backend.is_none_or(|asked| asked == kind);
    let mut refusals: Vec<Refusal> = admission::check(&asked, &facts);
    refusals.retain(|refusal| wanted(refusal.backend));
    let free =
        |kind: &Backend| wanted(*kind) && !refusals.iter().any(|refusal| refusal.backend == *kind);
    let taken = [Backend::Deadline, Backend::User].into_iter().find(free);
    document.guarantee = taken.is_some();
    document.reason = match (taken, request.backend) {
        (Some(_), Some(_)) => "it was asked for, and nothing is in its way".to_owned(),
        (Some(Backend::Deadline), None) => {
            "nothing is in the way of the kernel's own class".to_owned()
        }
        (Some(_), None) => "what comes before it is refused".to_owned(),
        (None, _) => "all that was asked is refused".to_owned(),
    };
    document.backend = taken.map(|kind| kind.to_string());
    document.refusals = refusals.iter().map(document::refusal).collect();
    let more = over::for_demand(document.budget_ns, document.period_ns);
    document.suggested_budget_ns = Some(more).filter(|more| *more > document.budget_ns);
    Ok(document)
}
