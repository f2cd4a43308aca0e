use std::collections::BTreeMap;

use hourglass_documents::{Reservation, ReservationKind};
use hourglass_time::Span;

use super::backend_selection::{BackendQuery, BudgetDoubts};
use super::check::taken_by;
use super::*;
use crate::admission::{BudgetDelay, Obstacle};
use crate::backend::choose::Choice;
use crate::guardian::Guardian;
use crate::supply::Supply;
use crate::target::Target;
use crate::testing::{Program, hard};

pub(super) fn request(subject: SessionTarget) -> SessionRequest {
    SessionRequest {
        reservation: hard(3_000, 8_000),
        cpu: None,
        backend: None,
        subject,
        siblings: None,
        additional: Vec::new(),
        aside: false,
    }
}

#[test]
fn the_document_has_what_was_delivered() {
    const MS: u64 = 1_000_000;
    let counted = |pairs: &[(u64, u64)]| pairs.iter().copied().collect::<BTreeMap<u64, u64>>();
    let supply = Supply {
        periods: 10,
        steps: counted(&[(MS, 5), (2 * MS, 1), (3 * MS, 4)]),
        wanted: counted(&[(2 * MS, 1), (3 * MS, 4)]),
        missed: 1,
        overruns: 4,
        throttled_ns: Some(7),
        last_ns: Some(3 * MS),
        changes: Vec::new(),
    };
    let mut document = document::requested_document(&request(SessionTarget::Command(vec![
        "a".into(),
        "b c".into(),
    ])));
    assert_eq!(document.target, "a b c");
    document::add_supply(&mut document, &supply);
    // Of the periods in which all was wanted: the lower median, and the least.
    assert_eq!(document.delivered_p50_ns, Some(3 * MS));
    assert_eq!(document.delivered_min_ns, Some(2 * MS));
    assert_eq!(document.delivered_max_ns, Some(3 * MS));
    let steps: Vec<_> = document.supply.iter().map(|step| (step.up_to_ns, step.periods)).collect();
    assert_eq!(steps, [(MS, 5), (2 * MS, 1), (3 * MS, 4)]);
    // Hourglass paper, section 5.6: 3 ms that are used up become 3.1 ms.
    assert_eq!(document.suggested_budget_ns, Some(3_100_000));
}

/// The bug: a quota's document said `missed: 0`, which was not measured, and suggested a larger reservation, though
/// nothing was reserved.
#[test]
fn what_a_quota_does_not_tell_is_null() {
    let mut document = document::requested_document(&request(SessionTarget::CheckOnly));
    document::by(&mut document, Some(Backend::Quota));
    let supply = Supply { periods: 44, overruns: 41, ..Supply::default() };
    document::add_supply(&mut document, &supply);
    co_runners::describe(&mut document, &request(SessionTarget::CheckOnly).reservation);
    assert_eq!((document.periods, document.overruns, document.missed), (44, 41, None));
    assert_eq!((document.suggested_budget_ns, document.kept_ns), (None, None));
    document::by(&mut document, Some(Backend::User));
    document::add_supply(&mut document, &supply);
    assert_eq!(document.missed, Some(0));
}

#[test]
fn nothing_watched_is_nothing_delivered() {
    let mut document = document::requested_document(&request(SessionTarget::CheckOnly));
    document::add_supply(&mut document, &Supply::default());
    let delivered =
        (document.delivered_p50_ns, document.delivered_min_ns, document.delivered_max_ns);
    assert_eq!((delivered, document.suggested_budget_ns), ((None, None, None), None));
}

/// `--check` starts no command, and reports a program that does not exist.
#[test]
fn a_check_looks_for_the_command() {
    let absent = request(SessionTarget::Command(vec!["no such program".into()]));
    assert!(matches!(check(&absent), Err(SessionFailure::NotStarted(LaunchError::NotFound(_)))));
    let document = check(&request(SessionTarget::CheckOnly)).unwrap();
    assert_eq!((document.periods, document.exit_code), (0, None));
    // A program may fork: what comes first is the reserve for groups (`backend::choose`).
    let refused = document.refusals.iter().any(|refusal| refusal.backend == "user");
    assert_eq!(refused, document.backend.as_deref() != Some("user"));
    assert!(!document.reason.is_empty());
}

/// The bug: a check said yes to a thread that nothing can suspend by itself, and to a process of several threads in the
/// deadline class, and the reservation was then refused.
#[test]
fn a_check_asks_all_that_the_reservation_asks() {
    let guardian = Guardian::start().unwrap();
    let asked = crate::testing::request(1_000, 100_000);
    let child = Program::sleeping();
    let own = Target::Process(std::process::id());
    let of_child = [Target::Thread(child.pid()), Target::Process(child.pid())];
    let kinds = [Backend::Deadline, Backend::User, Backend::Quota];
    let of_child = of_child.iter().flat_map(|target| kinds.map(|kind| (target, kind)));
    // The test has several threads, and would suspend itself.
    let own = [(&own, Backend::Deadline), (&own, Backend::User)];
    for (target, kind) in of_child.chain(own) {
        let query = BackendQuery {
            kind: Some(kind),
            program: false,
            target,
            request: &asked,
            within: false,
            planned: &[],
        };
        let said = query.check().0;
        let made = query.reserve(&guardian).map(drop);
        let is_own = *target == Target::Process(std::process::id());
        assert!(!(is_own && (said.kind.is_some() || made.is_ok())), "{kind:?}: {said:?}");
        // What others take meanwhile no check can know.
        let could_be_seen = |one: &crate::admission::Refusal| {
            matches!(one.id, Obstacle::Missing | Obstacle::Fork | Obstacle::Affinity)
        };
        let later = made.err().into_iter().flatten().find(could_be_seen);
        assert!(said.kind.is_none() || later.is_none(), "{target:?} {kind:?}: {later:?}");
    }
}

/// A budget that is proven to be in time needs no warning.
#[test]
fn a_budget_that_may_be_late_is_said_to_be() {
    assert_eq!(document::late(BudgetDelay::Never), None);
    let warning = document::late(BudgetDelay::AtMost(55_000_000)).unwrap();
    assert_eq!(warning.id, "budget-may-be-late");
    assert!(warning.text.contains("up to 55ms late"), "{}", warning.text);
    assert!(document::late(BudgetDelay::Unknown).is_some());
}

/// The bug: a guarantee beside the warning that the budget may be late, which the reservation itself did not claim.
#[test]
fn a_check_guarantees_no_budget_that_may_be_late() {
    let asked = crate::testing::request(100_000, 200_000);
    for delay in [BudgetDelay::Never, BudgetDelay::AtMost(1), BudgetDelay::Unknown] {
        let late = document::late(delay);
        let is_late = late.is_some();
        let choice =
            Choice { kind: Some(Backend::User), reason: String::new(), refusals: Vec::new() };
        let mut found = ReserveDocument::default();
        taken_by(&mut found, choice, &asked, BudgetDoubts { late, longer: None });
        let is_said = found.warnings.iter().any(|warning| warning.id == "budget-may-be-late");
        assert_eq!((found.guarantee && is_late, is_said), (false, is_late), "{delay:?}");
    }
}

/// Work that co-runners slow is not throttled before it is done: what it may take reaches to the
/// deadline, and never beyond nine tenths of the period.
#[test]
fn slowed_work_is_covered() {
    let ms = Span::from_millis;
    let covered = |budget: i64, deadline: i64, period: i64, policy, margin_ns| {
        let asked = Reservation::new(ms(budget), ms(period), ReservationKind::Hard).unwrap();
        let asked = asked.with_deadline(ms(deadline)).unwrap();
        let given = co_runners::cover(asked, policy, margin_ns);
        assert_eq!((given.deadline(), given.period()), (asked.deadline(), asked.period()));
        given.budget()
    };
    let (monitor, disable) = (SiblingPolicy::Monitor, SiblingPolicy::Disable);
    // Inoue et al., section 5.2: 55 ms every 70 ms.
    assert_eq!(covered(55, 70, 70, monitor, 0), ms(63));
    assert_eq!(covered(20, 40, 70, monitor, 0), ms(40));
    assert_eq!(covered(66, 70, 70, monitor, 0), ms(66));
    // The margin, and a hundredth of the period until it is seen that work goes on after a sleep.
    assert_eq!(covered(55, 70, 70, disable, 1_000_000), Span::from_micros(56_700));
    assert_eq!(covered(55, 70, 70, disable, 30_000_000), ms(63));
    assert_eq!(covered(55, 70, 70, SiblingPolicy::Ignore, 1_000_000), ms(55));
}
