//! The class on the machine at hand. Where it is refused for want of a privilege or of bandwidth that
//! others have, a test says so and ends.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hourglass_skip::{Requirement, skip};
use hourglass_sys::sched::{self, Attributes};
use hourglass_sys::thread as os;

use super::sample::{DeadlineSample, ReservedThread, StallDetector};
use super::*;
use crate::testing::{Program, hard, request, soon};

const DEADLINE_CLASS: i32 = 6;

/// One test at a time has threads in the class, so that what it is refused is its own.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `work` in a thread of its own, since the class stays with the thread. `None`, with a message, where this
/// machine does not give the class.
fn in_the_class<T: Send>(reservation: Reservation, work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let (tell, receiver) = std::sync::mpsc::channel();
        let thread = scope.spawn(move || {
            tell.send(os::id()).unwrap();
            match enter_or_say_why(&reservation) {
                Ok(()) => Some(work()),
                Err(refusal) => {
                    say_why(&refusal);
                    None
                }
            }
        });
        let reserved = ReservedThread::open(receiver.recv().unwrap());
        let mut stuck = StallDetector::default();
        // A kernel may forget it (`StallDetector`); then the test would stand for ever.
        while let (false, Ok(reserved)) = (thread.is_finished(), &reserved) {
            std::thread::sleep(std::time::Duration::from_millis(20));
            if DeadlineSample::at(reserved).is_some_and(|look| stuck.sees(&look, 10_000_000)) {
                eprintln!("the kernel forgot a thread of the class: it is taken out");
                let _ = sched::set_of(reserved.life.id, Attributes::Other(0));
            }
        }
        thread.join().unwrap()
    })
}

/// Only a ready thread that has no budget left and gets none for long is forgotten.
#[test]
fn a_thread_that_the_kernel_forgot_is_known() {
    const MS: u64 = 1_000_000;
    let mut stuck = StallDetector::default();
    let look = |at_ns, left_ns, deadline_ns| DeadlineSample {
        at_ns,
        cpu_ns: 5,
        left_ns,
        deadline_ns,
        waited_ns: None,
        runnable: true,
    };
    // A throttled thread gets its budget with the next period.
    assert!(!stuck.sees(&look(0, -695, 10), 10 * MS));
    assert!(!stuck.sees(&look(10 * MS, 60, 20), 10 * MS));
    assert!(!stuck.sees(&look(20 * MS, -1, 20), 10 * MS));
    assert!(!stuck.sees(&look(1_019 * MS, -1, 20), 10 * MS));
    assert!(stuck.sees(&look(1_020 * MS, -1, 20), 10 * MS));
    assert!(!stuck.sees(&look(1_030 * MS, -1, 20), 10 * MS), "once, and then anew");
    // Ten of its periods, where these are longer; asleep it wants nothing.
    assert!(!stuck.sees(&look(3_000 * MS, -1, 20), 1_000 * MS));
    let asleep = DeadlineSample { runnable: false, ..look(60_000 * MS, -1, 20) };
    assert!(!stuck.sees(&asleep, 10 * MS));
}

/// Only these are no fault of ours.
fn say_why(refusal: &Refusal) {
    let others =
        matches!(refusal.id, Obstacle::Capability | Obstacle::Bandwidth | Obstacle::Affinity);
    assert!(others, "refused for an unexpected reason: {refusal}");
    skip(Requirement::DEADLINE_CLASS, refusal);
}

fn reserved(target: &Target, request: &BackendRequest) -> Option<Box<dyn ActiveReservation>> {
    Deadline.reserve(target, request).map_err(|refusal| say_why(&refusal)).ok()
}

/// Whether the kernel is at fault: by all threads of the class the request fits, and it is refused.
fn others_fault(refusal: &Refusal) -> bool {
    refusal.cause.contains("that would fit")
}

fn child(script: &str) -> Program {
    Program::spawn(Command::new("nice").args(["-n", "5", "sh", "-c", script]))
}

#[test]
fn a_thread_enters_and_leaves_the_class() {
    let _alone = alone();
    let numbers = in_the_class(hard(100, 10_000), || {
        let inside = sched::policy_number().unwrap();
        leave().unwrap();
        (inside, sched::policy_number().unwrap())
    });
    assert!(numbers.is_none_or(|numbers| numbers == (DEADLINE_CLASS, 0)));
}

/// Entered and left with shares that together are several times what the machine has.
#[test]
fn no_bandwidth_leaks() {
    let _alone = alone();
    let cpus = std::thread::available_parallelism().unwrap().get() as u64;
    let period_us = 10_000;
    // Enough for what the thread does between two entries: with less it waits for its next period each time.
    let budget_us = 600;
    // Three machines in all.
    let times = 3 * cpus * period_us / budget_us;
    let reservation = hard(budget_us as i64, period_us as i64);
    in_the_class(reservation, || {
        for time in 0..times {
            leave().unwrap();
            // EBUSY is waited for; if anything leaked, it would not end.
            if let Err(refusal) = enter_or_say_why(&reservation) {
                assert!(others_fault(&refusal), "{refusal}, after {time} times");
                return say_why(&refusal);
            }
        }
        leave().unwrap();
    });
}

#[test]
fn times_that_the_class_does_not_take_are_refused() {
    let _alone = alone();
    let asked = || enter_or_say_why(&hard(10, 50)).unwrap_err();
    let refusal = std::thread::spawn(asked).join().unwrap();
    // Without the capability, that is the first obstacle.
    assert!(matches!(refusal.id, Obstacle::Times | Obstacle::Capability), "{refusal}");
    assert!(refusal.errno.is_some());
}

#[test]
fn a_pinned_thread_is_refused_with_the_line_that_widens_it() {
    let _alone = alone();
    let facts = AdmissionFacts::here(None);
    if facts.domain.as_ref().is_none_or(|domain| domain.len() < 2)
        || facts.rt_runtime_us.is_none_or(|us| us <= 0)
    {
        return skip(Requirement::SECOND_CPU, "one CPU, or no admission");
    }
    let refusal = std::thread::spawn(|| {
        let first = os::affinity().unwrap()[0];
        os::set_affinity([first]).unwrap();
        enter_or_say_why(&hard(100, 10_000)).unwrap_err()
    });
    let refusal = refusal.join().unwrap();
    assert_eq!(refusal.errno, Some(1), "{refusal}");
    if refusal.id == Obstacle::Affinity {
        assert!(
            refusal.remedy.contains("taskset") || refusal.remedy.contains("cpuset"),
            "{refusal}"
        );
    } else {
        say_why(&refusal);
    }
}

#[test]
fn what_cannot_be_a_target_is_refused() {
    let _alone = alone();
    let refusal = Deadline.reserve(&Target::Thread(u32::MAX), &request(100, 10_000)).unwrap_err();
    assert_eq!(refusal.id, Obstacle::Gone, "{refusal}");
    let refusal = Deadline.reserve(&Target::Process(u32::MAX), &request(100, 10_000)).unwrap_err();
    assert_eq!(refusal.id, Obstacle::Gone, "{refusal}");
    // The harness has a thread of its own beside this one.
    let own = Target::Process(std::process::id());
    let refusal = Deadline.reserve(&own, &request(100, 10_000)).unwrap_err();
    assert_eq!(refusal.id, Obstacle::Fork, "{refusal}");
    let far = BackendRequest { cpu: Some(9_999), ..request(100, 10_000) };
    let refusal = Deadline.reserve(&Target::Thread(os::id()), &far).unwrap_err();
    assert_eq!(refusal.id, Obstacle::Cpu, "{refusal}");
}

/// A process that was not started here and never waits uses up its budget in each period; afterwards its scheduling is
/// as before.
#[test]
fn another_process_is_held_to_its_budget_and_put_back() {
    let _alone = alone();
    if !std::path::Path::new("/proc/self/sched").exists() {
        return skip(
            Requirement::file("/proc/self/sched"),
            "no /proc/self/sched, which shows what is left of a budget",
        );
    }
    let hog = child("while :; do :; done");
    let pid = hog.0.id();
    // Until `nice` has become the shell.
    let state = || sched::read(pid).unwrap();
    let ready = || std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap() == "sh\n";
    // These tests may themselves run with a nice value.
    let Some(Attributes::Other(own)) = sched::read(0).unwrap() else { panic!("not time-sharing") };
    let nice = Attributes::Other((own + 5).min(19));
    soon("it is the shell", || ready() && state() == Some(nice));
    let Some(mut held) = reserved(&Target::Process(pid), &request(1_000, 10_000)) else { return };
    assert!(matches!(state(), Some(Attributes::Deadline { runtime_ns: 1_000_000, .. })));
    soon("20 periods", || held.supply().periods >= 20);
    let supply = held.supply();
    // Because of the tick, some are short. The report has what they got, not what they were charged.
    assert_eq!(supply.overruns, supply.periods, "{supply:?}");
    assert_eq!(supply.wanted, supply.steps, "{supply:?}");
    let coarse = Tick::of_this_machine().is_some_and(|tick| tick.is_coarse_for(1_000_000));
    let warned = held.accuracy_warnings().iter().any(|doubt| doubt.id == "budget-at-tick");
    assert_eq!(warned, coarse);
    assert!(supply.throttled_ns.is_some_and(|ns| ns > 0), "{supply:?}");
    held.release().unwrap();
    assert_eq!(state(), Some(nice));
    held.release().unwrap();
}

/// A command may start others, which are in the time-sharing class (field 41 of `stat`, proc(5)).
#[test]
fn children_of_a_reserved_process_begin_anew() {
    let _alone = alone();
    let script = "read go; cut -d ' ' -f 41 /proc/self/stat; cut -d ' ' -f 41 /proc/$$/stat";
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut shell = command.spawn().unwrap();
    let target = Target::Process(shell.id());
    let Some(held) = reserved(&target, &request(1_000, 10_000)) else {
        return drop(Program(shell));
    };
    shell.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let stdout = shell.wait_with_output().unwrap().stdout;
    assert_eq!(String::from_utf8(stdout).unwrap(), "0\n6\n");
    drop(held);
}

/// Dropped instead of released; and one that ended before.
#[test]
fn dropping_puts_back_and_an_ended_one_is_left_alone() {
    let _alone = alone();
    let sleeper = child("exec sleep 60");
    let pid = sleeper.0.id();
    let Some(held) = reserved(&Target::Thread(pid), &request(100, 10_000)) else { return };
    drop(held);
    assert!(matches!(sched::read(pid).unwrap(), Some(Attributes::Other(_))));

    let Some(mut held) = reserved(&Target::Thread(pid), &request(100, 10_000)) else { return };
    drop(sleeper);
    held.release().unwrap();
}

/// Documentation/scheduler/sched-deadline.rst, section 5: a thread of the class may not fork.
#[test]
fn a_fork_in_the_class_is_refused_and_explained() {
    let _alone = alone();
    let answer = in_the_class(hard(100, 10_000), || {
        std::thread::Builder::new().spawn(|| {}).map(drop).unwrap_err()
    });
    let Some(error) = answer else { return };
    let refusal = refusal(&error, None, &request(100, 10_000));
    assert_eq!((refusal.id, refusal.errno), (Obstacle::Fork, Some(11)), "{refusal}");
}
