//! Scripts on the simulated machine, where outcomes are exact, and threads together on the real
//! one, where they must come to an end.

use std::path::Path;

use hourglass_clock::choice;
use hourglass_documents::document::Deadlines;
use hourglass_documents::{Policy, Reservation};
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_tasks::{Task, TaskSet};
use hourglass_time::Span;

use super::{ReplayError, ReplayOptions, compile, threads};
use crate::jobs::JobTerms;
use crate::memory::Memory;
use crate::recorder::Recording;
use crate::reservation::{ReservationBackend, ReservationDenied, Reserver};
use crate::run::RunMeasurement;
use crate::simulated::{EPOCH, Interruption, PreemptionSource, SimulatedMachine};
use crate::spec::{RunSpec, ThreadSpec};

const MS: u64 = 1_000_000;

/// What the recorder and the acts take beside what was asked for, in the simulation.
const SLIP: u64 = 20_000;

fn ms(ms: i64) -> Span {
    Span::from_millis(ms)
}

fn taken(at_ms: u64, length_ms: u64) -> Interruption {
    Interruption { at: at_ms * MS, length: length_ms * MS, cpu: 0, by: PreemptionSource::Thread }
}

/// Runs one task of a set on a machine that takes the CPU away now and then.
fn run(set: &TaskSet, position: usize, taken: Vec<Interruption>, duration: Span) -> Recording {
    let machine = SimulatedMachine::new(taken);
    let memory = Memory::new(1_000, false, false).with_jobs(1_000, JobTerms::default());
    machine.run_with(&mut compile::running(set, position), duration, memory)
}

/// Arrival, response and execution of each job, in ms, rounded to the nearest.
fn jobs(recorded: &Recording) -> Vec<(u64, u64, u64)> {
    let near = |ns: u64| {
        let whole = (ns + MS / 2) / MS;
        assert!(ns.abs_diff(whole * MS) <= SLIP, "{ns}");
        whole
    };
    let jobs = recorded.jobs.as_ref().unwrap().jobs().iter();
    jobs.map(|job| (near(job.arrival - EPOCH), near(job.response()), near(job.received))).collect()
}

fn counted(recorded: &Recording) -> (u64, u64, u64) {
    let Deadlines { hit, missed, lost, .. } = recorded.tally.deadlines.unwrap();
    (hit, missed, lost)
}

fn toml(text: &str) -> TaskSet {
    TaskSet::from_toml(text).unwrap()
}

/// One task that goes through `phases`, in TOML; how long and how often it says is not looked at.
fn going_through(phases: &str) -> TaskSet {
    toml(&format!(
        "task = [{{ name = 't', wcet = '1s', suspension = '1s', period = '1ms', phases = [{phases}] }}]"
    ))
}

#[test]
fn jobs_are_never_skipped_and_count_from_their_arrival() {
    let task = Task { deadline: Some(ms(7)), ..Task::new("t", ms(3), ms(8)) };
    let recorded = run(&TaskSet::new(vec![task]), 0, vec![taken(9, 20)], ms(48));
    // Job 1 arrives at 8, loses 20 ms and ends at 31; those behind it follow at once.
    let wanted = [(0, 3, 3), (8, 23, 3), (16, 18, 3), (24, 13, 3), (32, 8, 3), (40, 3, 3)];
    assert_eq!(jobs(&recorded), wanted);
    assert_eq!(counted(&recorded), (2, 4, 0));
}

#[test]
fn a_job_holds_its_locks_and_suspends_itself_within_its_execution_time() {
    let set = toml(
        r#"
        [[resource]]
        name = "bus"
        protocol = "plain"
        [[task]]
        name = "t"
        wcet = "5ms"
        period = "20ms"
        suspension = "2ms"
        offset = "3ms"
        critical_sections = [{ resource = "bus", length = "1ms", count = 2 }]
        "#,
    );
    let recorded = run(&set, 0, vec![], ms(40));
    assert_eq!(jobs(&recorded), [(3, 7, 5), (23, 7, 5)]);
}

/// What the end cuts off was missed if it had begun, and lost if it had not.
#[test]
fn jobs_that_were_due_by_the_end_are_missed_or_lost() {
    let task = Task { deadline: Some(ms(6)), ..Task::new("t", ms(3), ms(8)) };
    let recorded = run(&TaskSet::new(vec![task]), 0, vec![taken(9, 100)], ms(40));
    // Due by 40: jobs 0 to 4, which arrive from 0 to 32. 0 is done, 1 has begun.
    assert_eq!(counted(&recorded), (1, 1, 3));
}

/// rt-app's tutorial: a semaphore remembers posts that come before any wait.
#[test]
fn a_semaphore_with_something_left_is_not_waited_for() {
    let steps = r#"["post s", "post s", "take s", "run 2ms", "take s", "run 1ms", "read 5000 4096",
                    "write 100 4096", "chase 100 4096 64", "timer unique0 10ms"]"#;
    let recorded = run(&going_through(&format!("{{ steps = {steps} }}")), 0, vec![], ms(25));
    assert_eq!(jobs(&recorded), [(0, 3, 3), (10, 3, 3), (20, 3, 3)]);
}

/// rt-app: a job is what runs between two expiries of the thread's timer.
#[test]
fn phases_have_jobs_between_their_timers() {
    let set = |absolute: &str| {
        let steps = format!(r#"["run 3ms", "timer unique0 10ms{absolute}"]"#);
        going_through(&format!("{{ steps = {steps} }}"))
    };
    let undisturbed = run(&set(""), 0, vec![], ms(35));
    assert_eq!(jobs(&undisturbed), [(0, 3, 3), (10, 3, 3), (20, 3, 3), (30, 3, 3)]);
    // The second job ends at 38. A relative timer then counts from there, an absolute one catches
    // up with 20 and 30.
    let late = run(&set(""), 0, vec![taken(11, 25)], ms(52));
    assert_eq!(jobs(&late), [(0, 3, 3), (10, 28, 3), (20, 21, 3), (48, 3, 3)]);
    let late = run(&set(" absolute"), 0, vec![taken(11, 25)], ms(52));
    assert_eq!(
        jobs(&late),
        [(0, 3, 3), (10, 28, 3), (20, 21, 3), (30, 14, 3), (40, 7, 3), (50, 3, 3)][..5]
    );
}

/// `run` is work, `run_for` is time, also while another thread has the CPU.
#[test]
fn run_is_received_and_run_for_passes() {
    let steps = |run: &str| going_through(&format!(r#"{{ steps = ["{run} 4ms", "sleep 5ms"] }}"#));
    let work = run(&steps("run"), 0, vec![taken(1, 2)], ms(7));
    assert_eq!(jobs(&work), [(0, 6, 4)]);
    let time = run(&steps("run_for"), 0, vec![taken(1, 2)], ms(7));
    assert_eq!(jobs(&time), [(0, 4, 2)]);
}

#[test]
fn phases_that_end_leave_the_rest_of_the_run() {
    let set = toml(
        r#"
        [[task]]
        name = "t"
        wcet = "1ms"
        period = "2ms"
        loops = 2
        phases = [{ loops = 3, steps = ["run 1ms", "memory 100", "yield", "timer unique 2ms"] }]
        "#,
    );
    let recorded = run(&set, 0, vec![], ms(50));
    assert_eq!(jobs(&recorded).len(), 6);
    assert!(recorded.end < EPOCH + 13 * MS);
}

#[test]
fn only_the_simplest_task_is_the_papers_periodic() {
    let names = |set: &TaskSet, draws_jitter| {
        let all = threads(set, ReplayOptions { draws_jitter }).unwrap().tasks;
        all.iter().map(|thread| thread.model.to_string()).collect::<Vec<_>>()
    };
    let jittery = Task { jitter: ms(1), ..Task::new("b", ms(2), ms(9)) };
    let short = Task { deadline: Some(ms(5)), ..Task::new("c", ms(2), ms(9)) };
    let set = TaskSet::new(vec![Task::new("a", ms(3), ms(8)), jittery, short]);
    assert_eq!(names(&set, false), ["PERIODIC 3ms 8ms", "PERIODIC 2ms 9ms", "TASK 2ms 9ms"]);
    assert_eq!(names(&set, true), ["PERIODIC 3ms 8ms", "TASK 2ms 9ms", "TASK 2ms 9ms"]);
}

#[test]
fn a_fork_that_starts_no_thread_is_refused() {
    let set = going_through(r#"{ steps = ["run 1ms", "fork late", "sleep 1ms"] }"#);
    let refused = threads(&set, ReplayOptions::default()).unwrap_err();
    assert!(matches!(&refused, ReplayError::Fork { started, .. } if started == "late"));
}

struct NoReservations;

impl Reserver for NoReservations {
    fn reserve(&self, _: &Reservation) -> Result<ReservationBackend, ReservationDenied> {
        Err(ReservationDenied {
            errno: 1,
            cause: "none is given".to_owned(),
            remedy: String::new(),
        })
    }
}

struct Quiet;

impl crate::RunObserver for Quiet {
    fn started(&mut self, _: Span, _: bool) {}
    fn tick(&mut self, _: Span) {}
    fn ended(&mut self) {}
}

/// Runs a set on this machine without privileges.
fn on_this_machine(set: &TaskSet, duration: Span) -> RunMeasurement {
    let all = threads(set, ReplayOptions::default()).unwrap();
    let specs = all.tasks.into_iter().chain(all.background).map(|thread| ThreadSpec {
        model: thread.model,
        policy: Policy::Other(0),
        jobs: 1_000,
        ..ThreadSpec::default()
    });
    let spec = RunSpec { duration, records: 10_000, ..RunSpec::new(specs.collect()) };
    crate::run(&spec, choice::choose(Path::new("/")), &NoReservations, &mut Quiet).unwrap()
}

fn completed(measured: &RunMeasurement, thread: usize) -> u64 {
    measured.threads[thread].recorded.tally.deadlines.unwrap().completed
}

/// A thread that another resumes has as many jobs, or fewer where it was still busy; one that waits
/// at a barrier goes as often as its partner; one after another is never ahead of it.
#[test]
fn threads_wake_each_other() {
    let set = toml(
        r#"
        [[resource]]
        name = "m"
        [[task]]
        name = "waker"
        wcet = "100us"
        period = "5ms"
        phases = [{ steps = ["run 100us", "lock m", "signal c", "unlock m", "barrier b", "timer unique 5ms"] }]
        [[task]]
        name = "woken"
        wcet = "100us"
        period = "5ms"
        phases = [{ steps = ["barrier b", "run 100us"] }]
        [[task]]
        name = "conditional"
        wcet = "100us"
        period = "5ms"
        critical_sections = [{ resource = "m", length = "100us" }]
        phases = [{ steps = ["lock m", "wait c m", "run 100us", "unlock m"] }]
        [[task]]
        name = "first"
        wcet = "100us"
        period = "5ms"
        [[task]]
        name = "second"
        wcet = "100us"
        after = ["first"]
        "#,
    );
    let measured = on_this_machine(&set, ms(300));
    let [waker, woken, conditional, first, second] =
        [0, 1, 2, 3, 4].map(|thread| completed(&measured, thread));
    assert!(waker > 3, "{waker}");
    assert!(woken <= waker + 1 && woken + 2 >= waker, "{woken} of {waker}");
    assert!(conditional > 0 && conditional <= waker, "{conditional} of {waker}");
    assert!(second > 3 && second <= first, "{second} after {first}");
}

/// Threads that wait for each other for ever, and one that waits for no other, end with the run,
/// and what they held is free again.
#[test]
fn a_deadlock_ends_with_the_run() {
    for protocol in ["plain", "inheritance"] {
        let set = toml(&format!(
            r#"
            [[resource]]
            name = "a"
            protocol = "{protocol}"
            [[resource]]
            name = "b"
            protocol = "{protocol}"
            [[task]]
            name = "one"
            wcet = "100us"
            period = "10ms"
            suspension = "20ms"
            critical_sections = [{{ resource = "a", length = "100us" }}, {{ resource = "b", length = "100us" }}]
            phases = [{{ steps = ["lock a", "sleep 20ms", "lock b", "run 100us", "unlock b", "unlock a", "timer unique 10ms"] }}]
            [[task]]
            name = "two"
            wcet = "100us"
            period = "10ms"
            suspension = "20ms"
            critical_sections = [{{ resource = "a", length = "100us" }}, {{ resource = "b", length = "100us" }}]
            phases = [{{ steps = ["lock b", "sleep 20ms", "lock a", "run 100us", "unlock a", "unlock b", "timer unique 10ms"] }}]
            [[background]]
            name = "nobody"
            phases = [{{ steps = ["suspend nobody"] }}]
            "#
        ));
        let begun = now_ns(ClockId::Monotonic);
        let measured = on_this_machine(&set, ms(150));
        let took = now_ns(ClockId::Monotonic) - begun;
        assert!(took < 10_000 * MS, "{protocol}: {took}");
        assert!(completed(&measured, 0) + completed(&measured, 1) <= 2, "{protocol}");
    }
}
