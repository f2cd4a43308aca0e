//! The document: what was asked, and what came of it.

use hourglass_documents::ReservationKind;
use hourglass_documents::document::Warning;
use hourglass_documents::reserve::{
    RESERVE_SCHEMA, ReserveChange, ReserveDocument, ReserveRefusal, SupplyStep,
};
use hourglass_time::Span;

use super::{Backend, SessionRequest, SessionTarget, TargetSelector};
use crate::admission::{BudgetDelay, Obstacle, Refusal, headroom};
use crate::backend::AccuracyWarning;
use crate::command::AttachedTarget;
use crate::ownership::{NotOwned, REMEDY};
use crate::supply::{Spent, Supply};
use crate::target::Target;

pub(super) fn requested_document(request: &SessionRequest) -> ReserveDocument {
    let reservation = &request.reservation;
    ReserveDocument {
        schema: RESERVE_SCHEMA.to_owned(),
        target: named(&request.subject),
        budget_ns: reservation.budget().nanos_or_zero(),
        period_ns: reservation.period().nanos_or_zero(),
        deadline_ns: reservation.deadline().nanos_or_zero(),
        soft: reservation.strength() == ReservationKind::Soft,
        cpus: request.cpu.into_iter().collect(),
        missed: Some(0),
        ..ReserveDocument::default()
    }
}

/// Says what enforces it, and what that makes of a yield.
pub(super) fn by(document: &mut ReserveDocument, kind: Option<Backend>) {
    document.backend = kind.map(|kind| kind.name().to_owned());
    document.yield_ends_period = kind.map(|kind| kind == Backend::Deadline);
}

pub(super) fn adopted(adopted: &AttachedTarget) -> String {
    let name = adopted.name();
    match adopted.target() {
        Target::Process(pid) => format!("process {pid} ({name})"),
        Target::Thread(tid) => format!("thread {tid} ({name})"),
    }
}

fn named(subject: &SessionTarget) -> String {
    match subject {
        SessionTarget::Command(words) => {
            words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
        }
        SessionTarget::Adopted(TargetSelector::Process(pid)) => format!("process {pid}"),
        SessionTarget::Adopted(TargetSelector::Thread(tid)) => format!("thread {tid}"),
        SessionTarget::Adopted(TargetSelector::Named(name)) => format!("thread {name}"),
        SessionTarget::CheckOnly => "a command".to_owned(),
    }
}

pub(super) fn add_supply(document: &mut ReserveDocument, supply: &Supply) {
    document.periods = supply.periods;
    let limit = is_limit(document);
    // The kernel counts periods of a quota, and does not say what each was given.
    document.missed = (!limit).then_some(supply.missed);
    document.overruns = supply.overruns;
    document.throttled_ns = supply.throttled_ns;
    document.delivered_p50_ns = supply.delivered_p50_ns();
    document.delivered_min_ns = supply.delivered_min_ns();
    document.delivered_max_ns = supply.steps.keys().next_back().copied();
    let step =
        |(up_to_ns, periods): (&u64, &u64)| SupplyStep { up_to_ns: *up_to_ns, periods: *periods };
    document.supply = supply.steps.iter().map(step).collect();
    let suggested = headroom::suggested(supply, document.budget_ns, document.period_ns);
    document.suggested_budget_ns = suggested.filter(|_| !limit && supply.changes.is_empty());
    let change = |&(at_ns, budget_ns, period_ns): &(u64, u64, u64)| ReserveChange {
        at_ns,
        budget_ns,
        period_ns,
    };
    document.changes = supply.changes.iter().map(change).collect();
}

pub(super) fn add_spent(document: &mut ReserveDocument, spent: &Spent) {
    document.cpu_time_ns = spent.used_ns;
    document.wall_ns = (spent.wall_ns > 0).then_some(spent.wall_ns);
    document.keeper_ns = spent.keeper_ns;
    document.others_waited_max_ns = spent.longest_ns;
}

/// Whether the budget was there in each of `periods`, of which `missed` were missed, and else why not:
/// `outranked` names the work that stood above it.
pub(super) fn kept(
    periods: u64,
    missed: Option<u64>,
    doubts: &[AccuracyWarning],
    outranked: &[String],
) -> (Option<bool>, Vec<String>) {
    let has = |id: &str| doubts.iter().any(|doubt| doubt.id == id);
    let late = has("periods-left-out") || has("keeper-absent");
    let kept = match missed {
        _ if periods == 0 => None,
        Some(0) if late => None,
        missed => missed.map(|missed| missed == 0),
    };
    if kept != Some(false) {
        return (kept, Vec::new());
    }
    let by = [("member-moved", has("member-moved")), ("keeper-late", late)];
    let by = by.into_iter().filter(|(_, is_so)| *is_so).map(|(id, _)| id.to_owned());
    (kept, outranked.iter().cloned().chain(by).collect())
}

/// Leaves out what the account of one reservation does not say where several take turns.
pub(super) fn take_turns(document: &mut ReserveDocument) {
    document.missed = None;
    (document.delivered_p50_ns, document.delivered_min_ns) = (None, None);
}

/// Whether nothing is reserved, but a limit set.
pub(super) fn is_limit(document: &ReserveDocument) -> bool {
    document.backend.as_deref() == Some("quota")
}

pub(super) fn refusal(refusal: &Refusal) -> ReserveRefusal {
    ReserveRefusal {
        backend: refusal.backend.name().to_owned(),
        id: refusal.id.name().to_owned(),
        errno: refusal.errno.map(errno),
        cause: refusal.cause.clone(),
        remedy: refusal.remedy.clone(),
    }
}

/// Of whatever backend: the target is another user's.
pub(super) fn not_own(foreign: &NotOwned) -> ReserveRefusal {
    ReserveRefusal {
        backend: "owner".to_owned(),
        id: Obstacle::Owner.name().to_owned(),
        errno: None,
        cause: foreign.cause(),
        remedy: REMEDY.to_owned(),
    }
}

/// The names that matter here (errno(3)).
fn errno(number: i32) -> String {
    const NAMES: [(i32, &str); 9] = [
        (1, "EPERM"),
        (2, "ENOENT"),
        (3, "ESRCH"),
        (11, "EAGAIN"),
        (12, "ENOMEM"),
        (13, "EACCES"),
        (16, "EBUSY"),
        (22, "EINVAL"),
        (30, "EROFS"),
    ];
    let known = NAMES.iter().find(|(known, _)| *known == number);
    known.map_or_else(|| format!("errno {number}"), |(_, name)| (*name).to_owned())
}

/// The deadline class admits by a sum, which on several CPUs does not make every budget be in time.
pub(super) fn late(lateness: BudgetDelay) -> Option<Warning> {
    let how = match lateness {
        BudgetDelay::Never => return None,
        BudgetDelay::AtMost(ns) => {
            format!("up to {} late", Span::saturating_from_nanos(ns))
        }
        BudgetDelay::Unknown => "late, and no test says by how much".to_owned(),
    };
    Some(Warning {
        id: "budget-may-be-late".to_owned(),
        text: format!(
            "with the other threads of the deadline class the budget may come {how}: on several CPUs, and on \
             slower ones, the kernel's sum does not prove every deadline"
        ),
        remedy: "--backend user with --cpu, or a cpuset of one CPU, where the sum is enough"
            .to_owned(),
    })
}

pub(super) fn doubt(doubt: AccuracyWarning) -> Warning {
    let AccuracyWarning { id, text, remedy } = doubt;
    Warning { id: id.to_owned(), text, remedy: remedy.to_owned() }
}

pub(super) fn doubts(document: &ReserveDocument) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |id: &str, text: String, remedy: &str| {
        warnings.push(Warning { id: id.to_owned(), text, remedy: remedy.to_owned() });
    };
    if is_limit(document) {
        let text = "a quota is a limit: nothing promises the budget".to_owned();
        warn("no-guarantee", text, "--backend deadline or --backend user promises it");
    }
    if document.soft && document.backend.as_deref() == Some("deadline") {
        let text = "the deadline class has no soft reservations: reclaiming, which lends CPU time that is not \
                    reserved, is the kernel's approximation";
        warn(
            "soft-approximated",
            text.to_owned(),
            "--backend user continues at time-sharing priority",
        );
    }
    if let Some(smt) = &document.smt {
        // A page that was never opened has a more exact warning.
        if smt.unmoved > 0 && smt.page.as_deref() != Some("not_opened") {
            let text = format!(
                "in {} of {} jobs the program reported no progress: its processor time counts instead, only while \
                 co-runners are stopped (times --alpha while they run), and they are stopped for longer than necessary",
                smt.unmoved, smt.jobs
            );
            warn(
                "progress-unmoved",
                text,
                "report progress with hg_progress (C) or hourglass_reserve::progress::Progress (Rust)",
            );
        }
        if smt.backwards > 0 {
            let text = format!(
                "in {} of {} jobs progress went backwards, and counted as none from there on",
                smt.backwards, smt.jobs
            );
            warn(
                "progress-backwards",
                text,
                "report the part of the job that is done, never less than before",
            );
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(
        missed: Option<u64>,
        periods: u64,
        ids: &[&'static str],
    ) -> (Option<bool>, Vec<String>) {
        let doubt = |id: &&'static str| AccuracyWarning { id, text: String::new(), remedy: "" };
        let doubts: Vec<AccuracyWarning> = ids.iter().map(doubt).collect();
        super::kept(periods, missed, &doubts, &["process 1".to_owned()])
    }

    /// The bug: "guaranteed" was all that was said of a budget that was missing in 7 periods.
    #[test]
    fn what_was_kept_is_known_or_not_said() {
        let broken = |more: &[&str]| {
            let names = ["process 1"].iter().chain(more);
            (Some(false), names.map(|name| (*name).to_owned()).collect::<Vec<_>>())
        };
        let said = |kept| (kept, Vec::new());
        assert_eq!(kept(Some(0), 30, &[]), said(Some(true)));
        assert_eq!(kept(Some(7), 30, &[]), broken(&[]));
        assert_eq!(kept(Some(7), 30, &["member-moved"]), broken(&["member-moved"]));
        assert_eq!(kept(Some(7), 30, &["keeper-absent"]), broken(&["keeper-late"]));
        // Periods were left out, of a quota nothing is known, and there was none.
        assert_eq!(kept(Some(0), 30, &["periods-left-out"]), said(None));
        assert_eq!(kept(None, 30, &[]), said(None));
        assert_eq!(kept(Some(0), 0, &[]), said(None));
    }
}
