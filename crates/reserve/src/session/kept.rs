//! A reservation of a session from its making to its document.

use hourglass_documents::document::Warning;
use hourglass_documents::reserve::{ReserveDocument, SmtReport};
use hourglass_sys::{sched, thread};

use super::backend_selection::{BackendQuery, BudgetDoubts, SelectedBackend};
use super::{SessionFailure, co_runners, document};
use crate::backend::{ActiveReservation, members};
use crate::guardian::{Guardian, TaskIdentity, UndoAction, UndoGuard};
use crate::smt::monitor::JobCounts;
use crate::target::Target;

#[derive(Debug)]
pub(super) struct KeptReservation {
    pub(super) document: ReserveDocument,
    /// Before what is kept: it raises as long as it is there.
    pub(super) picked: SelectedBackend,
    undo: Vec<UndoGuard>,
}

impl KeptReservation {
    /// Reserves, and says so in the document. `confirm` undoes it if it is not for the intended target.
    pub(super) fn reserve(
        mut document: ReserveDocument,
        query: &BackendQuery<'_>,
        guardian: &Guardian,
        confirm: impl FnOnce(&mut dyn ActiveReservation) -> Result<(), SessionFailure>,
    ) -> Result<KeptReservation, SessionFailure> {
        let undo = keep(query.target, guardian)?;
        let mut picked = query.reserve(guardian).map_err(|refused| {
            document.refusals = refused.iter().map(document::refusal).collect();
            SessionFailure::Refused(Box::new(document.clone()))
        })?;
        confirm(picked.reserved.as_mut())?;
        document::by(&mut document, Some(picked.kind));
        document.guarantee = picked.guarantee;
        document.reason.clone_from(&picked.reason);
        let BudgetDoubts { late, longer } = std::mem::take(&mut picked.doubts);
        document.guarantee &= late.is_none();
        document.warnings.extend(late.into_iter().chain(longer));
        document.refusals = picked.refused.iter().map(document::refusal).collect();
        if document.cpus.is_empty() {
            document.cpus = thread::affinity_of(query.target.id()).unwrap_or_default();
        }
        co_runners::describe(&mut document, &query.request.reservation);
        Ok(KeptReservation { document, picked, undo })
    }

    /// Ends it, and says what was delivered. `several` take turns on what is kept for each of them; `smt` is the report
    /// of all of them together, with the counts of this one's jobs.
    pub(super) fn end(
        self,
        several: bool,
        smt: Option<(&JobCounts, &SmtReport)>,
    ) -> ReserveDocument {
        let KeptReservation { mut document, mut picked, undo } = self;
        picked.look();
        if let Err(error) = picked.reserved.release() {
            document.warnings.push(Warning {
                id: "not-undone".to_owned(),
                text: format!("not every change could be undone: {error}"),
                remedy: "show policies and CPUs with: ps -eLo tid,cls,rtprio,psr,comm".to_owned(),
            });
        }
        add_outcome(&mut document, &mut picked, several);
        if let Some((counts, smt)) = smt {
            // Against co-runners only what is given can be kept.
            document.smt = Some(of_one(smt, counts, &document));
        }
        undo.into_iter().for_each(UndoGuard::forget);
        document.warnings.extend(document::doubts(&document));
        document
    }
}

/// Has the guardian give all threads of the target their policies and CPUs back if this process is killed; what a
/// backend adds for threads that come later is its own.
fn keep(target: &Target, guardian: &Guardian) -> Result<Vec<UndoGuard>, SessionFailure> {
    let failed = || SessionFailure::system("the changes to undo cannot be recorded");
    let threads = match target {
        Target::Thread(tid) => vec![*tid],
        Target::Process(pid) => members::threads_of(*pid),
    };
    let mut kept = Vec::new();
    for tid in threads {
        // A thread that ends meanwhile needs nothing.
        let (Ok(thread), Ok(attributes)) = (TaskIdentity::of_task(tid), sched::read(tid)) else {
            continue;
        };
        let cpus = thread::affinity_of(tid).ok();
        let undo = UndoAction::Thread { thread, attributes, cpus };
        kept.push(guardian.keep(&undo).map_err(failed())?);
    }
    Ok(kept)
}

/// Adds what was delivered, when all periods have been counted, and what there is to doubt about it.
fn add_outcome(document: &mut ReserveDocument, picked: &mut SelectedBackend, several: bool) {
    document::add_supply(document, &picked.reserved.supply());
    document::add_spent(document, &picked.reserved.spent());
    if several {
        document::take_turns(document);
    }
    let doubts = picked.reserved.accuracy_warnings();
    (document.kept, document.broken_by) =
        document::kept(document.periods, document.missed, &doubts, picked.broken.names());
    if !doubts.is_empty() || document.kept_ns.is_some_and(|kept| kept > document.budget_ns) {
        // While the work was not held to its budget it took what it could; where it got more than the budget, overruns
        // refer to that larger amount.
        document.suggested_budget_ns = None;
    }
    document.guarantee &= doubts.is_empty();
    document.warnings.extend(doubts.into_iter().map(document::doubt));
}

/// The report of all, with the jobs of one.
fn of_one(smt: &SmtReport, counts: &JobCounts, document: &ReserveDocument) -> SmtReport {
    SmtReport {
        protected: smt.protected && document.guarantee,
        progress: counts.progress.to_owned(),
        jobs: counts.jobs,
        missed: counts.missed,
        idle: counts.idle,
        backwards: counts.progress_errors.backwards,
        unmoved: counts.progress_errors.unmoved,
        ..smt.clone()
    }
}
