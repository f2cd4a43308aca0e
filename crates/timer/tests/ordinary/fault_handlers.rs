//! Handlers of timing faults: what they do to real threads, and their own ends. Source: Savage and
//! Tokuda, "Real-Time Mach Timers" (1993), section 4 (`thread_deadline_handler`).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use hourglass_skip::{Requirement, skip};
use hourglass_sys::sched;
use hourglass_time::Span;
use hourglass_timer::fault::{
    Attributes, Deadline, DeadlineHandler, DeadlineWatch, FaultAction, FaultError, FaultVerdict,
    Periodic, Scheduling, SchedulingUpdate, WatchSettings, deadline_handler,
};

use crate::common::watching::{
    FAR, LONG, answering, enter_deadline_class, handled, in_a_thread, now, watch, watched,
    work_until_late,
};

fn as_root() -> bool {
    in_a_thread(|| sched::set(Scheduling::Fifo(2)).is_ok())
}

#[test]
fn a_demoted_thread_is_demoted_until_its_verdict() {
    if !as_root() {
        return skip(Requirement::REAL_TIME, "no SCHED_FIFO here (CAP_SYS_NICE or `ulimit -r 50`)");
    }
    in_a_thread(|| {
        sched::set(Scheduling::Fifo(2)).unwrap();
        let mut watch = watch(FaultAction::Demote);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let verdicts = [
            FaultVerdict::Resume,
            FaultVerdict::KeepDemoted,
            FaultVerdict::Resume,
            FaultVerdict::Reschedule(SchedulingUpdate {
                scheduling: Some(Scheduling::RoundRobin(3)),
                ..SchedulingUpdate::default()
            }),
        ];
        let _handler = deadline_handler(
            &watch.thread(),
            Attributes { scheduling: Some(Scheduling::Fifo(4)), ..Attributes::DEFAULT },
            move |fault, seen: &mut Arc<Mutex<Vec<_>>>| {
                seen.lock().unwrap().push(sched::read(fault.thread).unwrap().unwrap());
                verdicts[fault.count as usize - 1]
            },
            Arc::clone(&seen),
        )
        .unwrap();
        let wanted =
            [Scheduling::Fifo(2), Scheduling::Idle, Scheduling::Fifo(2), Scheduling::RoundRobin(3)];
        for (count, wanted) in (1..).zip(wanted) {
            watch.arm(Deadline::In(Span::ZERO)).unwrap();
            // The entry may still run: the verdict is awaited, asleep.
            while seen.lock().unwrap().len() < count {
                thread::sleep(Duration::from_micros(200));
            }
            // The handler's thread may lose its CPU meanwhile, at least to a hypervisor.
            thread::sleep(Duration::from_millis(3));
            let begun = Instant::now();
            while sched::read(0).unwrap() != Some(wanted) && begun.elapsed() < LONG {
                thread::sleep(Duration::from_micros(200));
            }
            assert_eq!(sched::read(0).unwrap(), Some(wanted), "verdict {count}");
        }
        assert_eq!(*seen.lock().unwrap(), [Scheduling::Idle; 4]);
    });
}

#[test]
fn a_demoted_thread_that_is_watched_no_more_is_as_before() {
    if !as_root() {
        return skip(Requirement::REAL_TIME, "no SCHED_FIFO here (CAP_SYS_NICE or `ulimit -r 50`)");
    }
    in_a_thread(|| {
        let before = sched::read(0).unwrap();
        let mut watch = watch(FaultAction::Demote);
        let (go_on, waits) = mpsc::channel::<()>();
        let handler = handled(&watch, waits, |_, waits| {
            let _ = waits.recv_timeout(LONG);
            FaultVerdict::Resume
        });
        watch.arm(Deadline::In(Span::ZERO)).unwrap();
        while sched::read(0).unwrap() == before {
            thread::sleep(Duration::from_micros(200));
        }
        drop(watch);
        assert_eq!(sched::read(0).unwrap(), before);
        go_on.send(()).unwrap();
        drop(handler);
        assert_eq!(sched::read(0).unwrap(), before);
    });
}

#[test]
fn a_suspended_thread_goes_on_with_other_scheduling_and_on_another_cpu() {
    watched(FaultAction::Suspend, |watch| {
        let cpu = *hourglass_sys::thread::affinity().unwrap().last().unwrap();
        let change = SchedulingUpdate {
            scheduling: Some(Scheduling::Batch(5)),
            cpu: Some(cpu),
            deadline: Some(Deadline::In(FAR)),
        };
        let (handler, _faults) = answering(watch, FaultVerdict::Reschedule(change));
        watch.arm(Deadline::In(Span::from_micros(100))).unwrap();
        work_until_late(watch, 1);
        assert_eq!(sched::read(0).unwrap(), Some(Scheduling::Batch(5)));
        assert_eq!(hourglass_sys::thread::affinity().unwrap(), [cpu]);
        assert!(watch.deadline_ns().is_some());
        assert_eq!(handler.handled().refused, 0);
    });
}

#[test]
fn a_handler_that_panics_resumes_the_thread_and_handles_what_comes_later() {
    watched(FaultAction::Suspend, |watch| {
        let handler = handled(watch, (), |fault, _| {
            assert!(fault.count % 2 == 0, "on purpose: this test is about a handler that panics");
            FaultVerdict::Resume
        });
        for _ in 0..6 {
            // Stopped in a system call of its own, not in what the panic's message needs.
            watch.arm(Deadline::In(Span::ZERO)).unwrap();
        }
        assert_eq!((watch.faults(), handler.handled().faults, handler.handled().panics), (6, 6, 3));
    });
}

#[test]
fn dropping_the_handler_resumes_the_thread() {
    let entered = Arc::new(AtomicBool::new(false));
    let (stop, stopped) = mpsc::channel::<()>();
    let (give, watched) = mpsc::channel();
    let resumed = Arc::new(AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut watch = watch(FaultAction::Suspend);
            give.send(watch.thread()).unwrap();
            // Until the handler is there.
            while !watch.thread().is_handled() {
                thread::yield_now();
            }
            watch.arm(Deadline::In(Span::ZERO)).unwrap();
            resumed.store(now(), Ordering::SeqCst);
            // No handler answers now: counted, not stopped.
            watch.arm(Deadline::In(Span::ZERO)).unwrap();
            assert_eq!((watch.faults(), watch.undelivered()), (2, 1));
        });
        let watched = watched.recv_timeout(LONG).unwrap();
        let says = Arc::clone(&entered);
        let handler = deadline_handler(
            &watched,
            Attributes::DEFAULT,
            move |_, stopped: &mut mpsc::Receiver<()>| {
                says.store(true, Ordering::SeqCst);
                stopped.recv_timeout(LONG).unwrap();
                FaultVerdict::Resume
            },
            stopped,
        )
        .unwrap();
        let again =
            deadline_handler(&watched, Attributes::DEFAULT, |_, ()| FaultVerdict::Resume, ());
        assert_eq!(again.err(), Some(FaultError::Handled));
        while !entered.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        thread::sleep(Duration::from_millis(5));
        assert_eq!(resumed.load(Ordering::SeqCst), 0, "it ran while suspended");
        let dropping = scope.spawn(|| drop(handler));
        // Its entry still runs; the thread goes on all the same.
        let begun = now();
        while resumed.load(Ordering::SeqCst) == 0 {
            assert!(now() - begun < 20_000_000_000);
            thread::sleep(Duration::from_millis(1));
        }
        stop.send(()).unwrap();
        dropping.join().unwrap();
    });
}

#[test]
fn a_handler_may_be_replaced_and_drop_itself() {
    watched(FaultAction::Suspend, |watch| {
        for _ in 0..5 {
            let own: Arc<Mutex<Option<DeadlineHandler>>> = Arc::default();
            let handler = handled(watch, Arc::clone(&own), |_, own| {
                drop(own.lock().unwrap().take());
                FaultVerdict::Resume
            });
            *own.lock().unwrap() = Some(handler);
            watch.arm(Deadline::In(Span::ZERO)).unwrap();
            assert!(own.lock().unwrap().is_none());
            while watch.thread().is_handled() {
                thread::yield_now();
            }
        }
    });
}

fn standing_at_most(longest: Span) -> DeadlineWatch {
    let suspend = WatchSettings::with_strength(FaultAction::Suspend);
    DeadlineWatch::new(WatchSettings { longest_stop: Some(longest), ..suspend }).unwrap()
}

#[test]
fn the_longest_stop_is_a_way_out() {
    in_a_thread(|| {
        let mut watch = standing_at_most(Span::from_millis(3));
        let (stop, stopped) = mpsc::channel::<()>();
        let handler = handled(&watch, stopped, |_, stopped| {
            // Waits for what only the suspended thread can give.
            stopped.recv_timeout(LONG).unwrap();
            FaultVerdict::Resume
        });
        let begun = now();
        watch.arm(Deadline::In(Span::ZERO)).unwrap();
        assert!(now() - begun >= 3_000_000);
        assert_eq!(watch.overstayed(), 1);
        stop.send(()).unwrap();
        drop(handler);
    });
}

#[test]
fn the_longest_stop_is_a_way_out_however_often() {
    in_a_thread(|| {
        let mut watch = standing_at_most(Span::from_millis(2));
        let (stop, stopped) = mpsc::channel::<()>();
        let handler = handled(&watch, stopped, |_, stopped| {
            let _ = stopped.recv_timeout(LONG);
            FaultVerdict::Resume
        });
        let begun = now();
        for _ in 0..4 {
            watch.arm(Deadline::In(Span::ZERO)).unwrap();
        }
        assert!(now() - begun < LONG.as_nanos() as u64 / 2, "it waited for the handler");
        assert_eq!((watch.faults(), watch.overstayed()), (4, 4));
        // It may not even have begun with the first.
        assert!(watch.undelivered() >= 2);
        drop(stop);
        drop(handler);
    });
}

#[test]
fn a_new_deadline_reaches_a_thread_that_stood_long_enough() {
    in_a_thread(|| {
        let mut watch = standing_at_most(Span::from_millis(2));
        let (stop, stopped) = mpsc::channel::<()>();
        let _handler = handled(&watch, stopped, |fault, stopped| {
            if fault.count > 1 {
                return FaultVerdict::Resume;
            }
            stopped.recv_timeout(LONG).unwrap();
            FaultVerdict::ResumeBy(Deadline::In(Span::from_millis(1)))
        });
        watch.arm(Deadline::In(Span::ZERO)).unwrap();
        assert_eq!(watch.overstayed(), 1);
        stop.send(()).unwrap();
        work_until_late(&watch, 2);
    });
}

#[test]
fn bad_input_is_refused() {
    in_a_thread(|| {
        let signal = |signal| WatchSettings { signal: Some(signal), ..WatchSettings::default() };
        assert!(matches!(
            DeadlineWatch::new(signal(9)).err(),
            Some(FaultError::NotRealTime { asked: 9, .. })
        ));
        assert!(matches!(
            DeadlineWatch::new(signal(-1)).err(),
            Some(FaultError::NotRealTime { .. })
        ));
        let mut watch = watch(FaultAction::Notify);
        assert_eq!(DeadlineWatch::new(WatchSettings::default()).err(), Some(FaultError::Watched));
        assert_eq!(watch.arm(Deadline::At(u64::MAX)), Err(FaultError::OutOfRange));
        assert_eq!(watch.arm(Deadline::In(Span::MAX)), Err(FaultError::OutOfRange));
        for period in [Span::ZERO, Span::from_nanos(-1)] {
            let series = Periodic { first_ns: 0, period };
            assert_eq!(watch.begin_jobs(series), Err(FaultError::Period(period.nanos())));
        }
        let series = Periodic { first_ns: u64::MAX, period: Span::from_nanos(1) };
        assert_eq!(watch.begin_jobs(series), Err(FaultError::OutOfRange));
        assert_eq!((watch.faults(), watch.deadline_ns()), (0, None));
        let nowhere = Attributes { cpu: Some(1_023), ..Attributes::DEFAULT };
        let handler = deadline_handler(&watch.thread(), nowhere, |_, ()| FaultVerdict::Resume, ());
        assert!(matches!(handler.err(), Some(FaultError::Scheduling { .. })));
        // And is not in the way of one that is right.
        let (_handler, _faults) = answering(&watch, FaultVerdict::Resume);
        let gone = watch.thread();
        drop(watch);
        let handler =
            deadline_handler(&gone, Attributes::DEFAULT, |_, ()| FaultVerdict::Resume, ());
        assert_eq!(handler.err(), Some(FaultError::Gone));
    });
}

/// The kernel lets a deadline thread make no threads; its handler's is one.
#[test]
fn a_deadline_thread_gets_a_handler() {
    in_a_thread(|| {
        let Some(own) = enter_deadline_class() else { return };
        let mut watch = watch(FaultAction::Notify);
        let (sender, receiver) = mpsc::channel();
        let _handler = handled(&watch, sender, |_, sender| {
            let _ = sender.send(sched::read(0).unwrap());
            FaultVerdict::Resume
        });
        watch.arm(Deadline::In(Span::ZERO)).unwrap();
        let handlers = receiver.recv_timeout(Duration::from_secs(20)).unwrap();
        assert_eq!(handlers, Some(Scheduling::Other(0)));
        // It is what it was, and hands nothing on to others.
        assert_eq!(sched::read(0).unwrap(), Some(own));
        assert!(thread::Builder::new().spawn(|| ()).is_err());
    });
}
