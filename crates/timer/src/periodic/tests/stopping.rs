//! How tasks end, and what a running job reports and learns.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use super::*;
use crate::periodic::{CompletedJob, JobWatch, LoopEnd, LoopStep, OverrunPolicy, ReleasedJob};

/// Issue 4, item 8: "clean stop"; in the kernel wait and in the spin alike.
#[test]
fn a_stop_ends_the_wait_at_once() {
    for policy in [SleepPolicy::KernelOnly, SleepPolicy::SpinOnly, SleepPolicy::Learned] {
        let sleeper = sleeper(seed(), Load::idle(), SleeperSettings::with_policy(policy));
        let mut task = SimLoop::new(sleeper, &every_ms(10).check().unwrap());
        let first_ns = task.next_release_ns();
        let at_ns = first_ns + 33 * MS;
        let interrupter = task.sleeper().interrupter();
        task.sleeper().mechanism().interrupt_at(at_ns, interrupter);
        assert_eq!(task.run(|_: &mut SimJob<'_>| ()), LoopEnd::Stopped);
        let late_ns = task.sleeper().mechanism().now() - at_ns;
        // The simulated kernel wakes 50 us late at most.
        assert!(late_ns < 60_000, "{policy:?}: {late_ns}");
        assert_eq!(
            (task.statistics().read().jobs, task.next_release_ns()),
            (4, first_ns + 40 * MS)
        );
    }
}

#[test]
fn a_stop_lets_the_job_finish() {
    let parameters = every_ms(1).with_overrun_policy(OverrunPolicy::CatchUp).check().unwrap();
    let mut task = task(seed(), Load::idle(), &parameters);
    let stop = task.stopper();
    let mut seen = None;
    let ended = task.run(|job: &mut SimJob<'_>| {
        assert!(!job.is_stopping());
        job.sleeper().mechanism().work(5 * MS);
        stop.stop();
        seen = Some((job.number(), job.is_stopping()));
        job.sleeper().mechanism().work(5 * MS);
    });
    assert_eq!((ended, seen), (LoopEnd::Stopped, Some((0, true))));
    let counts = task.statistics().read();
    assert_eq!((counts.releases, counts.jobs, counts.overruns, counts.lost), (1, 1, 1, 0));
    // It stays stopped.
    assert_eq!(task.step(&mut |_: &mut SimJob<'_>| ()), LoopStep::Stopped);
}

#[test]
fn a_stop_is_not_unmade() {
    let mut task = task(seed(), Load::idle(), &every_ms(1).check().unwrap());
    let stop = task.stopper();
    let ended = task.run(|job: &mut SimJob<'_>| {
        assert_eq!(job.number(), 0);
        stop.stop();
        job.sleeper().clear();
    });
    assert_eq!(ended, LoopEnd::Stopped);
}

#[test]
fn a_body_ends_its_task() {
    let mut task = task(seed(), Load::idle(), &every_ms(1).check().unwrap());
    let ended = task.run(|job: &mut SimJob<'_>| match job.number() {
        0..=8 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    });
    assert_eq!((ended, task.statistics().read().jobs), (LoopEnd::ByItself, 10));
}

/// Issue 4, item 8: "cost overrun detected by the thread's CPU clock": while it happens, and without
/// the time that others had the CPU.
#[test]
fn a_running_job_sees_its_budget_and_its_deadline_go() {
    let parameters =
        every_ms(10).with_budget(Span::from_millis(2)).with_deadline(Span::from_millis(4));
    let mut task = task(seed(), Load::idle(), &parameters.check().unwrap());
    let mut body = |job: &mut SimJob<'_>| {
        let standing = job.check();
        assert!(standing.is_within() && standing.budget_left.unwrap() > Span::from_micros(1_990));
        // A pause within the job takes time and no budget.
        let _ = job.sleeper().sleep_us(1_000);
        assert!(job.check().is_within() && job.cost_ns() < MS / 10);
        job.sleeper().mechanism().work(2 * MS);
        let standing = job.check();
        assert!(standing.is_cost_overrun() && !standing.missed() && !standing.is_within());
        job.sleeper().mechanism().work(MS);
        assert!(job.check().missed());
    };
    let LoopStep::Ran { job, .. } = task.step(&mut body) else { panic!() };
    assert!(job.missed() && job.is_cost_overrun() && !job.overrun);
    let counts = task.statistics().read();
    assert_eq!((counts.misses, counts.cost_overruns, counts.cpu_ns), (1, 1, job.cost_ns));
    let mut next = |job: &mut SimJob<'_>| {
        assert!(job.previous().is_some_and(CompletedJob::missed) && job.lost_before() == 0);
    };
    assert!(matches!(task.step(&mut next), LoopStep::Ran { .. }));
}

#[test]
fn the_limits_themselves_are_kept() {
    let job = CompletedJob {
        number: 0,
        release_ns: 10,
        started_ns: 11,
        deadline_ns: 20,
        completed_ns: 20,
        cost_ns: 5,
        budget_ns: Some(5),
        late: false,
        overrun: false,
        lost: 0,
        moved_ns: 0,
    };
    assert!(!job.missed() && !job.is_cost_overrun());
    assert!(CompletedJob { completed_ns: 21, ..job }.missed());
    assert!(CompletedJob { cost_ns: 6, ..job }.is_cost_overrun());
    assert!(!CompletedJob { cost_ns: 6, budget_ns: None, ..job }.is_cost_overrun());
}

#[test]
fn handlers_are_notified() {
    let parameters =
        every_ms(10).with_budget(Span::from_millis(2)).with_deadline(Span::from_millis(5));
    let mut task = task(seed(), Load::idle(), &parameters.check().unwrap());
    let counts = Arc::new(Mutex::new((Vec::new(), Vec::new())));
    let (misses, overruns) = (Arc::clone(&counts), Arc::clone(&counts));
    task.on_miss(move |job| misses.lock().unwrap().0.push(job.number));
    task.on_cost_overrun(move |job| overruns.lock().unwrap().1.push(job.number));
    for work_ms in [1, 3, 1, 6, 1] {
        let mut body = |job: &mut SimJob<'_>| job.sleeper().mechanism().work(work_ms * MS);
        assert!(matches!(task.step(&mut body), LoopStep::Ran { .. }));
    }
    assert_eq!(*counts.lock().unwrap(), (vec![3], vec![1, 3]));
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn write(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }
}

impl JobWatch for Log {
    fn released(&mut self, job: ReleasedJob) {
        self.write(format!("{} {}", job.number, job.deadline_ns - job.release_ns));
    }

    fn completed(&mut self) -> ControlFlow<()> {
        self.write("completed".to_owned());
        match self.0.lock().unwrap().len() {
            0..6 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }
}

/// "In practice the most frequent actions include ... thread termination" (section 4).
#[test]
fn a_watch_ends_its_task() {
    let mut task = task(seed(), Load::idle(), &every_ms(10).check().unwrap());
    let log = Log::default();
    task.set_watch(Some(Box::new(log.clone())));
    assert_eq!(task.run(|_: &mut SimJob<'_>| ()), LoopEnd::ByWatch);
    // Two lines a job.
    assert_eq!((task.statistics().read().jobs, log.0.lock().unwrap().len()), (3, 6));
    // What the body says comes first.
    let ended = task.run(|_: &mut SimJob<'_>| ControlFlow::<()>::Break(()));
    assert_eq!(ended, LoopEnd::ByItself);
}

/// RT-Mach section 4: a deadline is watched while the job runs, and no longer, also if it panics.
#[test]
fn a_watch_sees_each_job_begin_and_end() {
    let log = Log::default();
    let mut task = task(seed(), Load::idle(), &every_ms(10).check().unwrap());
    task.set_watch(Some(Box::new(log.clone())));
    let inner = log.clone();
    let mut body = |job: &mut SimJob<'_>| {
        inner.write("body".to_owned());
        assert!(job.number() == 0, "a panic that is meant");
    };
    assert!(matches!(task.step(&mut body), LoopStep::Ran { .. }));
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| task.step(&mut body)));
    assert!(panic.is_err());
    let seen = log.0.lock().unwrap().join(", ");
    let job = |number| format!("{number} 10000000, body, completed");
    assert_eq!(seen, format!("{}, {}", job(0), job(1)));
    let counts = task.statistics().read();
    assert_eq!((counts.releases, counts.jobs), (2, 1));
}
