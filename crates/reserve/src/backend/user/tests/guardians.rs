//! Reservations whose guardian acts for another one, or is killed. Where no reserve can be had, the tests say that they
//! were skipped.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hourglass_documents::Reservation;
use hourglass_sys::pidfd::PidFd;

use super::tests::{alone, kept, last_cpu, request};
use super::*;
use crate::testing::{Program, soon};

/// One period, which lasts for the whole test: nothing is ordered anew for another reason.
fn long(cpu: Option<u32>) -> BackendRequest {
    let (budget, period) = (Span::from_secs(6), Span::from_secs(60));
    BackendRequest {
        reservation: Reservation::new(budget, period, ReservationKind::Soft).unwrap(),
        cpu,
    }
}

fn kill(guardian: &Guardian) {
    for process in guardian.pids().into_iter().filter_map(|pid| PidFd::open(pid).ok()) {
        let _ = process.kill();
    }
}

/// The bug: a guardian that acts on one broken pledge lowers the members of all reservations, and the keepers of the
/// others left them so until the next period.
#[test]
fn members_lowered_for_another_reservation_are_raised_again() {
    let _alone = alone();
    let guardian = Guardian::start().unwrap();
    let user = User::new(guardian.clone());
    let program = Program::shell("exec sleep 100");
    let target = Target::Process(program.pid());
    let Some(mut keeping) = kept(|| user.keep(&target, &long(Some(last_cpu())))) else { return };
    let pledge = guardian.pledge().unwrap();
    pledge.until(1).unwrap();
    soon("the pledge is broken", || pledge.broken() == 1);
    let raised = || matches!(sched::read(program.pid()), Ok(Some(Attributes::Fifo(_))));
    soon("the member is raised again", raised);
    keeping.release().unwrap();
    let report = keeping.report();
    assert_eq!((report.absent, report.fault), (0, None));
}

/// The bug: while guardians were replaced, members that only were to take turns, or to have their processor time
/// brought up to date, were reported as orders that the kernel refused (0 of them).
#[test]
fn nothing_is_refused_while_guardians_are_replaced() {
    let _alone = alone();
    let guardian = Guardian::start().unwrap();
    let user = User::new(guardian.clone());
    let program = Program::shell("sleep 100 & exec sleep 100");
    let target = Target::Process(program.pid());
    let Some(mut keeping) = kept(|| user.keep(&target, &long(None))) else { return };
    for round in 1..=100 {
        kill(&guardian);
        soon("both are replaced", || {
            guardian.replaced() >= 2 * round && guardian.pids().len() == 2
        });
        std::thread::sleep(Duration::from_millis(3));
    }
    keeping.release().unwrap();
    let (report, doubts) = (keeping.report(), keeping.accuracy_warnings());
    assert_eq!((report.refused, report.fault), (0, None));
    assert!(doubts.iter().all(|doubt| doubt.id != "order-refused"), "{doubts:?}");
}

/// The bug: the same at the start was a refusal, with a remedy for something else.
#[test]
fn a_reservation_begins_while_guardians_are_replaced() {
    let _alone = alone();
    let guardian = Guardian::start().unwrap();
    let user = User::new(guardian.clone());
    let program = Program::shell("exec sleep 100");
    let (target, request) =
        (Target::Process(program.pid()), request(ReservationKind::Soft, Some(last_cpu())));
    // Whether one can be had at all.
    let Some(first) = kept(|| user.keep(&target, &request)) else { return };
    drop(first);
    let ended = AtomicBool::new(false);
    let refusals: Vec<Refusal> = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                kill(&guardian);
                std::thread::sleep(Duration::from_micros(500));
            }
        });
        let refusals = (0..30).filter_map(|_| user.keep(&target, &request).err()).collect();
        ended.store(true, Ordering::Relaxed);
        refusals
    });
    // Others may reserve on this CPU meanwhile.
    let other = refusals.iter().find(|refusal| refusal.id != Obstacle::Bandwidth);
    assert_eq!(other, None);
    // If none comes, the refusal names that.
    let said = explain(&GuardianUnavailable.into(), &target, &request).to_string();
    assert!(said.contains("hourglass-guard") && said.contains("pids.max"), "{said}");
    assert!(!said.contains("--backend"), "{said}");
}
