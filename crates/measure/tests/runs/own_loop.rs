//! A program's own loop beside a real-time thread that takes its CPU.

use std::time::{Duration, Instant};

use hourglass_documents::Cause;
use hourglass_measure::Finished;
use hourglass_measure::own_loop::MeasuredLoop;
use hourglass_runs::open_run;
use hourglass_skip::{Requirement, skip};
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::sched::{self, Attributes};
use hourglass_sys::{thread as os, wait};
use hourglass_time::Span;
use hourglass_workload::LoopSpec;

const PERIOD_NS: u64 = 1_000_000;
const PERIODS: u64 = 400;
const HOG: &str = "the-hog";

/// Takes the CPU for 12 ms, every 100 ms.
fn hog(cpu: u32) {
    os::set_affinity([cpu]).unwrap();
    sched::set(Attributes::Fifo(20)).unwrap();
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(88));
        let until = Instant::now() + Duration::from_millis(12);
        while Instant::now() < until {}
    }
}

/// A loop of 1 ms that takes its policy and its CPU after the recorder was made, as `hourglass.periodic` does.
fn control(cpu: u32, folder: std::path::PathBuf) -> Finished {
    let spec = LoopSpec::every("control", Span::from_nanos(PERIOD_NS as i64));
    let mut own = MeasuredLoop::start(spec, Some(folder)).unwrap();
    os::set_affinity([cpu]).unwrap();
    sched::set(Attributes::Fifo(10)).unwrap();
    let hog = std::thread::Builder::new().name(HOG.to_owned()).spawn(move || hog(cpu)).unwrap();
    let mut due_ns = now_ns(ClockId::Monotonic) + PERIOD_NS;
    for _ in 0..PERIODS {
        while now_ns(ClockId::Monotonic) < due_ns {
            let _ = wait::nanosleep_until(due_ns);
        }
        own.begin_period_due(due_ns);
        own.end_period();
        due_ns += PERIOD_NS;
    }
    sched::set(Attributes::Other(0)).unwrap();
    hog.join().unwrap();
    own.finish()
}

/// Periods that passed without a begin are lost, each at its place on the grid.
#[test]
fn lost_periods_are_kept_one_by_one() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("run");
    let spec = LoopSpec {
        deadline: Some(Span::from_nanos(400_000)),
        ..LoopSpec::every("control", Span::from_nanos(PERIOD_NS as i64))
    };
    let mut own = MeasuredLoop::start(spec, Some(path.clone())).unwrap();
    let first_ns = now_ns(ClockId::Monotonic);
    for period in [0, 1, 4, 5] {
        own.begin_period_due(first_ns + period * PERIOD_NS);
        own.end_period();
    }
    let finished = own.finish();
    assert_eq!(finished.document.result.threads[0].deadlines.unwrap().lost, 2);
    let kept = open_run(&path).unwrap();
    let jobs: Vec<_> = kept.jobs().unwrap().map(Result::unwrap).collect();
    let lost: Vec<bool> = jobs.iter().map(|job| job.lost).collect();
    assert_eq!(lost, [false, false, true, true, false, false]);
    for (place, job) in (0..).zip(&jobs) {
        let off = job.release_ns - jobs[0].release_ns - place * PERIOD_NS as i64;
        // The counter's rate is known to some parts in a million.
        assert!(off.abs() < 2_000, "{jobs:?}");
        assert_eq!(job.deadline_ns - job.release_ns, 400_000);
    }
}

/// Issue 33, 2: a loop beside a FIFO hog had "gaps 0", no latencies, and OTHER for its policy.
#[test]
fn a_loop_says_why_it_began_late() {
    let cpus = os::affinity().unwrap();
    let [.., first, last] = cpus[..] else {
        return skip(Requirement::SECOND_CPU, "who ran is sampled on another CPU than the loop's");
    };
    let may = std::thread::spawn(|| sched::set(Attributes::Fifo(1))).join().unwrap();
    if let Err(error) = may {
        return skip(Requirement::REAL_TIME, error);
    }
    assert_ne!(first, last);
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("run");
    let folder = path.clone();
    let finished = std::thread::spawn(move || control(last, folder)).join().unwrap();
    let result = &finished.document.result;
    let thread = &result.threads[0];
    // What the first period began with.
    assert_eq!((&*thread.policy, &thread.cpus[..]), ("FIFO:10", &[last][..]));
    // Each begin has its lateness, and the periods in which the hog ran count.
    let latency = thread.latency.as_ref().unwrap();
    let deadlines = thread.deadlines.unwrap();
    assert_eq!((latency.count, latency.lost), (PERIODS, deadlines.lost));
    assert!(latency.max_ns >= 8_000_000, "{latency:?}");
    // The hog preempts a loop that runs for microseconds of each millisecond: it was due, and waited.
    let cause =
        result.causes.iter().find(|one| one.cause == Cause::ContextSwitchInvoluntary.name());
    let cause = cause.unwrap_or_else(|| panic!("{:?}", result.causes));
    assert!(cause.max_ns >= 8_000_000 && cause.total_ns >= 20_000_000, "{cause:?}");
    let named = result.meanwhile.iter().flat_map(|one| &one.ran);
    let names: Vec<&str> = named.filter_map(|ran| ran.name.as_deref()).collect();
    assert!(names.contains(&HOG), "{:?}", result.meanwhile);
    // The folder says the same.
    let kept = open_run(&path).unwrap();
    assert_eq!(&kept.document.result, result);
    // The periods one by one, with those that were lost.
    let jobs: Vec<_> = kept.jobs().unwrap().map(Result::unwrap).collect();
    let lost = jobs.iter().filter(|job| job.lost).count() as u64;
    assert_eq!((jobs.len() as u64 - lost, lost), (PERIODS, deadlines.lost));
    assert!(jobs.iter().any(|job| job.is_missed(i64::MAX)), "{deadlines:?}");
    let begins: Vec<_> = kept.wake_ups(0).unwrap().map(Result::unwrap).collect();
    assert_eq!(begins.len() as u64, PERIODS);
    assert!(begins.iter().all(|begin| begin.woke_ns.is_some()));
}
