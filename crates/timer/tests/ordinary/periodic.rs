//! Periodic threads of this machine. Timing is judged on one side only: never early.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

use hourglass_skip::{Requirement, skip};
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::{sched, thread as os};
use hourglass_time::Span;
use hourglass_timer::PeriodicThread;
use hourglass_timer::fault::{self, Fault, FaultAction, FaultVerdict};
use hourglass_timer::periodic::{
    JoinError, LoopEnd, OverrunPolicy, ParameterError, Scheduling, SchedulingError, SpawnError,
};
use hourglass_timer::sleep::{Interrupt, SleeperSettings};

const MS: u64 = 1_000_000;

fn spin(length_ns: u64) {
    let end = now_ns(ClockId::ThreadCpu) + length_ns;
    while now_ns(ClockId::ThreadCpu) < end {}
}

/// An entry of a deadline handler that sends each fault, and answers with this verdict.
fn reporting(
    sender: Sender<Fault>,
    verdict: FaultVerdict,
) -> impl FnMut(&Fault, &mut ()) -> FaultVerdict + Send + 'static {
    move |fault, ()| {
        sender.send(*fault).unwrap();
        verdict
    }
}

fn until(jobs: u64, number: u64) -> ControlFlow<()> {
    if number + 1 < jobs { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}

/// Each start is at or after its point of the grid, by the kernel's own clock beyond the stated bound
/// of ours; waiting in the kernel, and with the learnt margin.
#[test]
fn no_job_is_early() {
    for waiting in [
        SleeperSettings::with_policy(hourglass_timer::sleep::SleepPolicy::KernelOnly),
        SleeperSettings::DEFAULT,
    ] {
        let (sender, receiver) = channel();
        let thread = PeriodicThread::builder("grid")
            .period(Span::from_millis(2))
            .phase(Span::from_micros(300))
            .waiting(waiting)
            .spawn(move |job| {
                let now = now_ns(ClockId::Monotonic);
                let bound = 2 * hourglass_clock::process::clock().now_bounded().error_ns() + 1;
                sender.send((job.release_ns(), job.started_ns(), now + bound)).unwrap();
                until(50, job.number())
            })
            .unwrap();
        let (ended, statistics) = thread.join().unwrap();
        assert_eq!((ended, statistics.jobs), (LoopEnd::ByItself, 50));
        let jobs: Vec<(u64, u64, u64)> = receiver.iter().collect();
        for (release, started, now) in &jobs {
            assert!(started >= release && now >= release);
            assert_eq!((release - jobs[0].0) % (2 * MS), 0);
        }
        let periods = (jobs[49].0 - jobs[0].0) / (2 * MS);
        assert!(periods <= 49 + statistics.lost);
    }
}

#[test]
fn stopping_does_not_wait_for_the_release() {
    let hourly = || {
        let builder = PeriodicThread::builder("hourly").period(Span::from_secs(3_600));
        builder.phase(Span::from_secs(1_800)).spawn(|_| ()).unwrap()
    };
    let begun = Instant::now();
    let thread = hourly();
    assert!(!thread.is_finished());
    let (ended, statistics) = thread.stop().unwrap();
    assert_eq!((ended, statistics.releases), (LoopEnd::Stopped, 0));
    drop(hourly());
    let thread = hourly();
    thread.stopper().stop();
    assert_eq!(thread.join().unwrap().0, LoopEnd::Stopped);
    assert!(begun.elapsed().as_secs() < 60);
}

#[test]
fn a_stop_that_a_body_saw_is_not_lost() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let thread = PeriodicThread::builder("sleeper")
        .period(Span::from_secs(3_600))
        .spawn(move |job| {
            sender.send(()).unwrap();
            let far = job.now_ns() + 60_000_000_000;
            assert!(job.sleeper().sleep_until_ns(far).interrupted);
            job.sleeper().clear();
        })
        .unwrap();
    receiver.recv().unwrap();
    let begun = std::time::Instant::now();
    thread.stop().unwrap();
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}

/// A thread of the deadline class cannot start others: what handles its faults is there before.
#[test]
fn the_deadline_class_may_have_a_handler() {
    let builder = || {
        PeriodicThread::builder("deadline")
            .period(Span::from_millis(20))
            .budget(Span::from_millis(1))
            .policy(Scheduling::Deadline { reclaim: false })
    };
    if let Err(refused) = builder().spawn(|_job| ()) {
        return skip(Requirement::DEADLINE_CLASS, refused);
    }
    let settings = fault::WatchSettings::with_strength(fault::FaultAction::Suspend);
    let attributes = fault::Attributes::DEFAULT;
    let entry = |_: &fault::Fault, (): &mut ()| fault::FaultVerdict::Resume;
    let thread = builder().deadline_handler(settings, attributes, entry, ()).spawn(|_job| ());
    match thread {
        Ok(thread) => drop(thread),
        // The bandwidth of the one before may not be free yet.
        Err(SpawnError::Refused { .. }) => {}
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_group_is_stopped_by_one_word() {
    static ALL: Interrupt = Interrupt::new();
    let threads = [1, 2, 3].map(|hours| {
        PeriodicThread::builder(format!("group-{hours}"))
            .period(Span::from_secs(3_600 * hours))
            .phase(Span::from_secs(60))
            .stopped_by(&ALL)
            .spawn(|_| ())
            .unwrap()
    });
    ALL.interrupt();
    for thread in threads {
        assert_eq!(thread.join().unwrap().0, LoopEnd::Stopped);
    }
}

#[test]
fn a_panic_is_reported_and_the_statistics_are_kept() {
    let thread = PeriodicThread::builder("doomed")
        .period(Span::from_millis(1))
        .on_overrun(OverrunPolicy::CatchUp)
        .spawn(|job| assert!(job.number() < 7, "the pump is gone"))
        .unwrap();
    let statistics = thread.statistics();
    while statistics.read().releases < 8 {
        std::thread::yield_now();
    }
    let error = thread.join().unwrap_err();
    let text = error.to_string();
    assert_eq!(text, "doomed panicked in job 7: the pump is gone");
    let JoinError::Panicked { statistics: kept, job, .. } = error else { panic!("{error}") };
    assert_eq!((job, kept.releases, kept.jobs), (7, 8, 7));
    assert_eq!(*kept, statistics.read());
}

/// A job that spins three times its budget has overrun it; a sleep in it would not have. Of what a host takes from a
/// thread the CPU clock counts some, so that of the jobs that sleep the best counts.
#[test]
fn a_cost_overrun_is_seen_by_the_cpu_clock() {
    let (sender, receiver) = channel();
    let thread = PeriodicThread::builder("greedy")
        .period(Span::from_millis(20))
        .budget(Span::from_millis(1))
        .on_cost_overrun(move |job| sender.send((job.number, job.cost_ns)).unwrap())
        .spawn(|job| {
            match job.number() % 2 {
                0 => spin(3 * MS),
                _ => std::thread::sleep(std::time::Duration::from_millis(3)),
            }
            assert!(job.check().is_cost_overrun() || job.number() % 2 == 1);
            until(6, job.number())
        })
        .unwrap();
    let (_, statistics) = thread.join().unwrap();
    assert_eq!(statistics.jobs, 6);
    assert!(statistics.cpu_ns >= 9 * MS && statistics.response.max_ns() >= Some(3 * MS));
    let receiver: Vec<(u64, u64)> = receiver.iter().collect();
    assert_eq!(receiver.len() as u64, statistics.cost_overruns);
    let (spun, slept): (Vec<_>, Vec<_>) =
        receiver.into_iter().partition(|(number, _)| number % 2 == 0);
    assert_eq!(spun.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 2, 4]);
    assert!(spun.iter().all(|(_, cost_ns)| *cost_ns >= 3 * MS));
    assert!(slept.len() < 3 && slept.iter().all(|(_, cost_ns)| *cost_ns >= MS), "{slept:?}");
}

#[test]
fn threads_share_an_epoch() {
    let epoch = hourglass_clock::Instant::now();
    let (sender, receiver) = channel();
    let threads = [0, 1, 2].map(|slot| {
        let sender = sender.clone();
        PeriodicThread::builder("slot")
            .period(Span::from_millis(3))
            .phase(Span::from_millis(slot))
            .epoch(epoch)
            .spawn(move |job| {
                sender.send((slot as u64, job.release_ns())).unwrap();
                until(5, job.number())
            })
            .unwrap()
    });
    drop(sender);
    for thread in threads {
        thread.join().unwrap();
    }
    let released: Vec<(u64, u64)> = receiver.iter().collect();
    assert_eq!(released.len(), 15);
    let base = released.iter().find(|(slot, _)| *slot == 0).unwrap().1;
    for (slot, release) in released {
        assert_eq!((release + 3_000 * MS - base) % (3 * MS), slot * MS);
    }
}

#[test]
fn a_policy_is_given_or_its_remedy() {
    let deadline = Scheduling::Deadline { reclaim: false };
    for (scheduling, number) in [
        (Scheduling::Fifo(10), 1),
        (Scheduling::RoundRobin(1), 2),
        (deadline, 6),
        (Scheduling::Other(19), 0),
    ] {
        let (sender, receiver) = channel();
        let started = PeriodicThread::builder("policed")
            .period(Span::from_millis(10))
            .budget(Span::from_micros(500))
            .policy(scheduling)
            .spawn(move |_| {
                sender.send((sched::policy_number().unwrap(), sched::nice())).unwrap();
                ControlFlow::<()>::Break(())
            });
        match started {
            Ok(thread) => {
                thread.join().unwrap();
                let (policy, nice) = receiver.recv().unwrap();
                assert_eq!(policy, number);
                assert!(scheduling != Scheduling::Other(19) || nice == 19);
            }
            Err(SpawnError::Refused { name, refusal }) => {
                let line = refusal.to_string();
                println!("{line}");
                assert_eq!((name.as_str(), line.lines().count()), ("policed", 1));
                let lines = ["setcap", "ulimit", "bandwidth", "dmesg"];
                assert!(lines.iter().any(|word| refusal.remedy.contains(word)), "{line}");
                assert_ne!(scheduling, Scheduling::Other(19), "this is granted to every user");
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn it_runs_on_the_requested_cpu() {
    let cpu = *os::affinity().unwrap().last().unwrap();
    let (sender, receiver) = channel();
    let thread = PeriodicThread::builder("pinned")
        .period(Span::from_millis(1))
        .cpu(cpu)
        .spawn(move |_| {
            sender.send((os::affinity().unwrap(), os::id())).unwrap();
            ControlFlow::<()>::Break(())
        })
        .unwrap();
    let id = thread.id();
    thread.join().unwrap();
    assert_eq!(receiver.recv().unwrap(), (vec![cpu], id));
    let nowhere = PeriodicThread::builder("nowhere").period(Span::MILLISECOND).cpu(1_023);
    let error = nowhere.spawn(|_| ()).unwrap_err();
    assert!(matches!(error, SpawnError::Affinity { .. }), "{error}");
    assert!(error.to_string().starts_with("nowhere: CPUs [1023] cannot be used"), "{error}");
}

/// Issue 4, "Bad input": one clear line that names the culprit, and no thread.
#[test]
fn what_cannot_be_is_refused() {
    let named = |name: &str| PeriodicThread::builder(name);
    let error = named("idle").spawn(|_| ()).unwrap_err();
    assert!(matches!(error, SpawnError::Parameters { error: ParameterError::Period(_), .. }));
    assert!(error.to_string().starts_with("idle: the period: "), "{error}");
    let error = named("a\0b").period(Span::MILLISECOND).spawn(|_| ()).unwrap_err();
    assert!(matches!(error, SpawnError::Name(_)), "{error}");
    let error = named("x").hertz(50).policy(Scheduling::Fifo(0)).spawn(|_| ()).unwrap_err();
    let SpawnError::Scheduling { error, .. } = error else { panic!("{error}") };
    assert_eq!(error, SchedulingError::Priority(0));
}

#[test]
fn a_start_hook_runs_before_the_first_release() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let cpu = os::affinity().unwrap()[0];
    let own = sender.clone();
    let hooked = || PeriodicThread::builder("hooked").period(Span::MILLISECOND).cpu(cpu);
    let hook = move || {
        std::thread::sleep(std::time::Duration::from_millis(5));
        own.send((os::id(), os::affinity().unwrap(), now_ns(ClockId::Monotonic) as i64)).unwrap();
        Ok::<(), std::io::Error>(())
    };
    let thread = hooked()
        .on_start(hook)
        .spawn(move |job| {
            sender.send((os::id(), os::affinity().unwrap(), job.release_ns() as i64)).unwrap();
            ControlFlow::<()>::Break(())
        })
        .unwrap();
    let id = thread.id();
    // It is over when the thread is started.
    let (first, cpus, ended_ns) = receiver.try_recv().unwrap();
    assert_eq!((first, cpus), (id, vec![cpu]));
    thread.join().unwrap();
    let (second, _, release_ns) = receiver.recv().unwrap();
    assert!(second == id && release_ns >= ended_ns, "released at {release_ns}, not {ended_ns}");

    let refused = hooked().on_start(|| Err("no device")).spawn(|_| ());
    let error = refused.unwrap_err();
    assert_eq!(error.to_string(), "hooked: its start hook failed: no device");
    assert!(matches!(error, SpawnError::OnStart { .. }));
}

#[test]
fn a_watch_that_cannot_be_made_is_an_error() {
    struct RefusedWatch;
    impl hourglass_timer::periodic::JobWatch for RefusedWatch {
        fn released(&mut self, _: hourglass_timer::periodic::ReleasedJob) {}
        fn completed(&mut self) -> ControlFlow<()> {
            ControlFlow::Continue(())
        }
    }
    let builder = PeriodicThread::builder("watched").hertz(100);
    let builder = builder.on_deadline(|| Err::<RefusedWatch, _>("no signals are left"));
    let error = builder.spawn(|_| ()).unwrap_err();
    assert!(matches!(error, SpawnError::Watch { .. }), "{error}");
}

/// RT-Mach section 4: the handler is notified when the deadline passes, while the job runs, and may
/// end the thread; "in practice the most frequent actions include ... thread termination".
#[test]
fn a_deadline_handler_ends_the_thread() {
    let (sender, receiver) = channel();
    let thread = PeriodicThread::builder("late")
        .period(Span::from_millis(50))
        .deadline(Span::from_millis(5))
        .deadline_handler(
            fault::WatchSettings::with_strength(FaultAction::Notify),
            fault::Attributes::DEFAULT,
            move |fault: &Fault, faults: &mut u64| {
                *faults += 1;
                sender.send(*fault).unwrap();
                if *faults < 3 { FaultVerdict::Resume } else { FaultVerdict::End }
            },
            0,
        )
        .spawn(|job| {
            // Runs on until its deadline has passed; the handler is notified meanwhile.
            while !job.check().missed() {}
            spin(MS);
        })
        .unwrap();
    let id = thread.id();
    let (ended, statistics) = thread.join().unwrap();
    assert_eq!(ended, LoopEnd::ByWatch);
    let faults: Vec<Fault> = receiver.iter().collect();
    // More than three, or some untold, only where the handler was slower than a period.
    assert!(faults.len() >= 3 && faults.is_sorted_by_key(|fault| fault.count), "{faults:?}");
    assert!(faults[2].count == 3 || faults[2].undelivered > 0, "{faults:?}");
    assert!(statistics.jobs >= 3 && statistics.misses == statistics.jobs);
    for fault in &faults {
        assert!(fault.thread == id && fault.handled_ns >= fault.deadline_ns);
        assert_eq!((fault.deadline_ns - faults[0].deadline_ns) % (50 * MS), 0);
    }
}

/// Issue, item 8: "cost overrun detected by the thread's CPU clock", here while the job runs: the
/// handler is notified though the deadline is far, and may end the thread at a safepoint.
#[test]
fn an_overrun_of_the_budget_is_reported_while_the_job_runs() {
    let (sender, receiver) = channel();
    let thread = PeriodicThread::builder("costly")
        .period(Span::from_secs(60))
        .budget(Span::from_millis(5))
        .deadline_and_budget_handler(
            fault::WatchSettings::with_strength(FaultAction::Suspend),
            fault::Attributes::DEFAULT,
            reporting(sender, FaultVerdict::End),
            (),
        )
        .spawn(|job| {
            // No deadline ends this.
            while fault::safepoint().is_ok() {}
            // Its own count begins a moment after that of the timer.
            spin(MS);
            assert!(job.check().is_cost_overrun());
        })
        .unwrap();
    let (ended, statistics) = thread.join().unwrap();
    assert_eq!(ended, LoopEnd::ByWatch);
    assert_eq!((statistics.jobs, statistics.misses, statistics.cost_overruns), (1, 0, 1));
    let faults: Vec<Fault> = receiver.iter().collect();
    assert_eq!(faults.len(), 1);
    assert!(faults[0].is_over_budget() && faults[0].count == 1);
}

/// The kernel of a guest counts to a thread what the host takes from it meanwhile.
#[test]
fn a_job_within_its_budget_is_no_fault() {
    let (sender, receiver) = channel();
    let held_up = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&held_up);
    let thread = PeriodicThread::builder("frugal")
        .period(Span::from_millis(100))
        .budget(Span::from_millis(90))
        .deadline_and_budget_handler(
            fault::WatchSettings::with_strength(FaultAction::Suspend),
            fault::Attributes::DEFAULT,
            reporting(sender, FaultVerdict::Resume),
            (),
        )
        .spawn(move |job| {
            let begun = now_ns(ClockId::ThreadCpu);
            spin(20 * MS);
            let took = now_ns(ClockId::ThreadCpu) - begun;
            seen.fetch_add(u64::from(took > 80 * MS), Ordering::Relaxed);
            until(6, job.number())
        })
        .unwrap();
    let (_, statistics) = thread.join().unwrap();
    let overruns = receiver.iter().filter(Fault::is_over_budget).count() as u64;
    let held_up = held_up.load(Ordering::Relaxed);
    assert!(overruns.max(statistics.cost_overruns) <= held_up, "{overruns} {statistics:?}");
}

#[test]
fn in_time_is_no_fault() {
    let (sender, receiver) = channel();
    let thread = PeriodicThread::builder("timely")
        .period(Span::from_millis(2))
        .deadline(Span::from_secs(3_600))
        .deadline_handler(
            fault::WatchSettings::with_strength(FaultAction::Suspend),
            fault::Attributes::DEFAULT,
            reporting(sender, FaultVerdict::Resume),
            (),
        )
        .spawn(|job| until(20, job.number()))
        .unwrap();
    let (ended, statistics) = thread.join().unwrap();
    assert_eq!((ended, statistics.jobs, statistics.misses), (LoopEnd::ByItself, 20, 0));
    assert_eq!(receiver.iter().count(), 0);
}
