//! Changes that others, or members themselves, make to members while they are reserved: CPUs, nice values, policies.
//! Sources: reservations that were reported as kept with their program on another CPU, and nice values that were lost
//! with the first demotion.

use super::tests::{alone, last_cpu, reserved, user, user_with};
use super::*;
use crate::testing::{Program, soon};
use ReservationKind::{Hard, Soft};
use std::process::Command;
use std::time::{Duration, Instant};

use hourglass_skip::{Requirement, skip};

const SPIN: &str = "while :; do :; done";

/// Waits until something holds of a reservation in force.
fn other_cpu(cpu: u32) -> Option<u32> {
    thread::affinity().unwrap().into_iter().find(|other| *other != cpu)
}

fn raised(tid: u32) -> bool {
    matches!(sched::read(tid), Ok(Some(Attributes::Fifo(_))))
}

fn doubts(keeping: &UserReservation) -> Vec<&'static str> {
    keeping.accuracy_warnings().iter().map(|doubt| doubt.id).collect()
}

/// Whether it was ever in a real-time class elsewhere for longer than a period and a machine's own delays.
fn assert_not_urgent_elsewhere(tid: u32, cpu: u32, lasting: Duration) {
    let (begun, mut since) = (Instant::now(), None::<Instant>);
    while begun.elapsed() < lasting {
        let elsewhere = thread::affinity_of(tid).is_ok_and(|cpus| cpus != [cpu]) && raised(tid);
        since = if elsewhere { since.or_else(|| Some(Instant::now())) } else { None };
        assert!(since.is_none_or(|since| since.elapsed() < Duration::from_millis(500)));
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The bug: `taskset -p -c 0 PID` of a reservation on CPU 1 made it run there, at its real-time priority.
#[test]
fn who_is_sent_to_another_cpu_is_brought_back() {
    let _alone = alone();
    let cpu = last_cpu();
    let Some(other) = other_cpu(cpu) else { return skip(Requirement::SECOND_CPU, "one CPU") };
    for (strength, grouped) in [(Hard, true), (Hard, false), (Soft, true)] {
        let program = Program::shell(SPIN);
        let user = user_with(grouped);
        let Some(mut keeping) = reserved(&user, &program, strength, Some(cpu)) else { return };
        soon("it is kept on its CPU", || thread::affinity_of(program.pid()).unwrap() == [cpu]);
        assert!(!doubts(&keeping).contains(&"member-moved"));
        thread::set_affinity_of(program.pid(), [other]).unwrap();
        soon("it is brought back", || thread::affinity_of(program.pid()).unwrap() == [cpu]);
        soon("that is told", || doubts(&keeping).contains(&"member-moved"));
        // From now on again and again: it does not stay urgent there.
        for _ in 0..8 {
            let _ = thread::set_affinity_of(program.pid(), [other]);
            assert_not_urgent_elsewhere(program.pid(), cpu, Duration::from_millis(30));
        }
        soon("it is lowered", || !raised(program.pid()));
        assert_not_urgent_elsewhere(program.pid(), cpu, Duration::from_millis(60));
        keeping.release().unwrap();
        assert_eq!(keeping.report().fault, None);
        // Settings that it was given meanwhile are its own.
        assert_eq!(thread::affinity_of(program.pid()).unwrap(), [other]);
        assert_eq!(members::state_of(program.pid()), Some('R'));
    }
}

/// A member moves itself, as `taskset -c 0 prog`, OpenMP's places and numactl do it, alone and in a child.
#[test]
fn who_moves_by_itself_is_brought_back() {
    let _alone = alone();
    let cpu = last_cpu();
    let Some(other) = other_cpu(cpu) else { return skip(Requirement::SECOND_CPU, "one CPU") };
    let moving = format!("exec taskset -c {other} sh -c '{SPIN}'");
    for script in [format!("sleep 0.2; {moving}"), format!("sleep 0.2; ({moving}) & wait")] {
        let program = Program::shell(&script);
        let Some(mut keeping) = reserved(&user(), &program, Hard, Some(cpu)) else { return };
        soon("that is told", || doubts(&keeping).contains(&"member-moved"));
        for pid in members::tree(program.pid()) {
            soon("it is brought back", || thread::affinity_of(pid).unwrap() == [cpu]);
        }
        keeping.release().unwrap();
        assert_eq!(keeping.report().fault, None);
    }
}

/// Without `--cpu`: a reservation has the CPUs on which its program was.
#[test]
fn a_reservation_without_a_cpu_keeps_to_those_it_began_on() {
    let _alone = alone();
    let cpu = last_cpu();
    let Some(other) = other_cpu(cpu) else { return skip(Requirement::SECOND_CPU, "one CPU") };
    let program = Program::shell(SPIN);
    thread::set_affinity_of(program.pid(), [cpu]).unwrap();
    let Some(mut keeping) = reserved(&user(), &program, Soft, None) else { return };
    thread::set_affinity_of(program.pid(), [other]).unwrap();
    soon("it is brought back", || thread::affinity_of(program.pid()).unwrap() == [cpu]);
    keeping.release().unwrap();
    assert!(doubts(&keeping).contains(&"member-moved"));
    assert_eq!(thread::affinity_of(program.pid()).unwrap(), [other]);
}

/// The bug: whatever nice value a member got, that of the first one was written at the next demotion.
#[test]
fn nice_values_and_policies_set_meanwhile_stay() {
    let _alone = alone();
    let cpu = last_cpu();
    for (strength, grouped) in [(Soft, true), (Hard, true), (Hard, false)] {
        let program = Program::shell(&format!("sh -c '{SPIN}' & {SPIN}"));
        soon("both are there", || members::tree(program.pid()).len() == 2);
        let child = members::tree(program.pid())[1];
        let user = user_with(grouped);
        let Some(mut keeping) = reserved(&user, &program, strength, Some(cpu)) else { return };
        for (pid, nice) in [(program.pid(), "5"), (child, "9")] {
            let mut renice = Command::new("renice");
            let output = renice.args(["-n", nice, "-p", &pid.to_string()]).output();
            assert!(output.unwrap().status.success());
        }
        let periods = keeping.report().supply.periods + keeping.report().left_out;
        soon("some periods pass", || {
            let report = keeping.report();
            report.supply.periods + report.left_out > periods + 12
        });
        assert_eq!(sched::nice_of(program.pid()).unwrap(), 5, "{strength:?} {grouped}");
        assert_eq!(sched::nice_of(child).unwrap(), 9, "{strength:?} {grouped}");
        // As `chrt -i` does it.
        sched::set_of(child, Attributes::Idle).unwrap();
        soon("it is raised again", || raised(child));
        keeping.release().unwrap();
        assert_eq!(keeping.report().fault, None);
        assert_eq!(sched::read(program.pid()).unwrap(), Some(Attributes::Other(5)));
        assert_eq!(sched::read(child).unwrap(), Some(Attributes::Idle), "{strength:?} {grouped}");
        assert_eq!(sched::nice_of(child).unwrap(), 9);
    }
}

/// Guide: members run by nice value. Two that spin, at 0 and at 10, share the budget as about 10 to 1. Beyond it, where the
/// fair class has them, it begins anew in each period, and gives each a tick at least.
#[test]
fn members_share_by_nice_value() {
    let _alone = alone();
    let cpu = last_cpu();
    for (strength, times) in [(Hard, 3), (Soft, 1)] {
        let shares = || -> Option<(u64, u64)> {
            let program = Program::shell(&format!("nice -n 10 sh -c '{SPIN}' & {SPIN}"));
            soon("both are there", || members::tree(program.pid()).len() == 2);
            let child = members::tree(program.pid())[1];
            soon("it is nice", || sched::nice_of(child).is_ok_and(|nice| nice == 10));
            let mut keeping = reserved(&user(), &program, strength, Some(cpu))?;
            let used =
                |pid| hourglass_sys::clock::cpu_time::ProcessTime::for_task(pid).read_ns().unwrap();
            let before = (used(program.pid()), used(child));
            std::thread::sleep(Duration::from_millis(900));
            let used = (used(program.pid()) - before.0, used(child) - before.1);
            keeping.release().unwrap();
            Some(used)
        };
        let mut tried = Vec::new();
        let shared = (0..3).any(|_| {
            let Some((first, second)) = shares() else { return true };
            tried.push((first, second));
            first > second * times + second / 5
        });
        assert!(shared, "{strength:?}: {tried:?}");
    }
}
