//! Timing faults of real threads. Source: Savage and Tokuda, "Real-Time Mach Timers" (1993), section 4;
//! the pitfalls are those of the project's own measurements (an epoch, not a flag).
//!
//! Timing is asserted one-sided: a thread is never stopped before its deadline. Nothing here runs at a
//! real-time priority for longer than some ms, and no thread stays suspended: whatever stands is
//! resumed when its handler is dropped.

use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use hourglass_skip::{Requirement, skip};
use hourglass_time::Span;
use hourglass_timer::fault::{
    Attributes, Deadline, DeadlineWatch, Fault, FaultAction, FaultError, FaultVerdict, Periodic,
    Region, ThreadTerminated, deadline_handler, defer, safepoint,
};

use crate::common::watching::{
    FAR, LONG, SOON, answering, handled, in_a_thread, now, watched, work_until_late,
};

#[test]
fn a_handler_is_notified_of_each_strength_and_never_early() {
    for strength in [FaultAction::Notify, FaultAction::Demote, FaultAction::Suspend] {
        watched(strength, |watch| {
            let handled = deadline_handler(
                &watch.thread(),
                Attributes::DEFAULT,
                |fault, all: &mut Arc<Mutex<Vec<Fault>>>| {
                    all.lock().unwrap().push(*fault);
                    FaultVerdict::Resume
                },
                Arc::default(),
            );
            let handler = match handled {
                Err(FaultError::CannotRestore { .. }) => {
                    return skip(
                        Requirement::REAL_TIME,
                        "without a privilege a demoted thread stays demoted",
                    );
                }
                handled => handled.unwrap(),
            };
            for turn in 1..=50 {
                watch.arm(Deadline::In(Span::from_micros(200))).unwrap();
                work_until_late(watch, turn);
                assert_eq!(watch.faults(), turn);
            }
            let begun = now();
            while handler.handled().faults + watch.undelivered() < 50
                && now() - begun < 20_000_000_000
            {
                thread::yield_now();
            }
            let handled = handler.handled();
            assert_eq!(handled.faults + watch.undelivered(), 50);
            assert_eq!((handled.panics, handled.refused), (0, 0));
        });
    }
}

#[test]
fn faults_are_reported_in_order_and_after_the_deadline() {
    watched(FaultAction::Suspend, |watch| {
        let (_handler, faults) = answering(watch, FaultVerdict::Resume);
        for count in 1..=100 {
            let deadline = now() + 100_000;
            watch.arm(Deadline::At(deadline)).unwrap();
            work_until_late(watch, count);
            let resumed = now();
            let fault = faults.recv_timeout(LONG).unwrap();
            assert_eq!((fault.count, fault.undelivered), (count, 0));
            assert_eq!((fault.deadline_ns, fault.thread), (deadline, watch.thread().tid()));
            assert!(deadline <= fault.stopped_ns && fault.stopped_ns <= fault.handled_ns);
            assert!(fault.handled_ns <= resumed, "it ran before it was resumed");
        }
    });
}

/// A flag that is set to resume and cleared to stop is lost when the next fault comes before the
/// thread ran. Deadlines that are past when the thread goes on make it so every time.
#[test]
fn resumed_and_at_once_late_again_it_does_not_hang() {
    watched(FaultAction::Suspend, |watch| {
        let handler = handled(watch, 2_000, |fault, left| {
            *left -= 1;
            if *left == 0 {
                FaultVerdict::Resume
            } else {
                FaultVerdict::ResumeBy(Deadline::At(fault.deadline_ns))
            }
        });
        watch.arm(Deadline::In(Span::from_micros(100))).unwrap();
        work_until_late(watch, 1);
        assert_eq!((watch.faults(), handler.handled().faults), (2_000, 2_000));
    });
}

#[test]
fn a_deadline_already_past_is_a_fault_before_arm_returns() {
    watched(FaultAction::Suspend, |watch| {
        let (_handler, faults) = answering(watch, FaultVerdict::Resume);
        let past = [
            Deadline::At(0),
            Deadline::At(now()),
            Deadline::In(Span::ZERO),
            Deadline::In(Span::from_secs(-5)),
        ];
        for (count, deadline) in past.into_iter().enumerate() {
            watch.arm(deadline).unwrap();
            assert_eq!(watch.faults(), count as u64 + 1);
            assert!(faults.try_recv().is_ok());
            assert_eq!(watch.deadline_ns(), None);
        }
    });
}

#[test]
fn what_is_met_is_no_fault() {
    watched(FaultAction::Suspend, |watch| {
        let (handler, _faults) = answering(watch, FaultVerdict::Resume);
        for _ in 0..1_000 {
            watch.arm(Deadline::In(FAR)).unwrap();
            assert!(watch.disarm().unwrap());
        }
        assert!(!watch.disarm().unwrap());
        assert_eq!((watch.faults(), handler.handled().faults), (0, 0));
    });
}

#[test]
fn a_job_is_missed_or_met_and_a_fault_or_none_alike() {
    watched(FaultAction::Suspend, |watch| {
        let (_handler, _faults) = answering(watch, FaultVerdict::Resume);
        let mut missed = 0;
        for length_ns in 0..3_000u64 {
            let deadline = now() + 3_000;
            watch.begin_job(Deadline::At(deadline)).unwrap();
            while now() < deadline - 1_500 + length_ns {}
            let before = watch.faults();
            let ending = watch.end_job().unwrap().unwrap();
            missed += u64::from(ending.has_missed());
            assert_eq!(watch.faults(), missed, "{before} {ending:?}");
            assert_eq!(watch.end_job().unwrap(), None);
        }
        assert!(missed > 0);
    });
}

#[test]
fn periodic_deadlines_stay_on_their_grid() {
    watched(FaultAction::Notify, |watch| {
        let first_ns = now() + 2_000_000;
        let period = Span::from_millis(1);
        watch.begin_jobs(Periodic { first_ns, period }).unwrap();
        let mut late = 0;
        for number in 0..30u64 {
            if number % 10 == 5 {
                // Past two deadlines: its own, and the next when that comes into force.
                while now() < first_ns + (number + 1) * 1_000_000 + 200_000 {}
            }
            let ending = watch.end_job().unwrap().unwrap();
            assert_eq!(
                (ending.number, ending.deadline_ns),
                (number, first_ns + number * 1_000_000)
            );
            assert_eq!(ending.next_deadline_ns, Some(first_ns + (number + 1) * 1_000_000));
            late += u64::from(ending.has_missed());
        }
        assert!(late >= 3 && watch.faults() >= late, "{late} {}", watch.faults());
        assert!(watch.deadline_ns().is_some() || watch.faults() > late);
    });
}

#[test]
fn regions_put_the_stop_off_to_their_outermost_end() {
    watched(FaultAction::Suspend, |watch| {
        let (_handler, faults) = answering(watch, FaultVerdict::Resume);
        let mut deferred = 0;
        for _ in 0..20 {
            let before = watch.faults();
            let outer = Region::enter();
            let deadline = now() + 50_000;
            watch.arm(Deadline::At(deadline)).unwrap();
            defer(|| while now() < deadline + 300_000 {});
            assert!(faults.try_recv().is_err(), "stopped in a region");
            assert_eq!(watch.faults(), before);
            drop(outer);
            // A host may keep the timer's interrupt from this CPU until the region is over.
            let at_its_end = watch.faults();
            work_until_late(watch, before + 1);
            let fault = faults.recv_timeout(LONG).unwrap();
            assert!(fault.stopped_ns >= deadline + 300_000, "{fault:?}");
            assert!(!fault.deferred || at_its_end == before + 1, "{fault:?}");
            deferred += u32::from(fault.deferred);
        }
        assert!(deferred > 0);
    });
}

/// Nothing is done to a thread that is only reported, so that a region is no reason to wait: who
/// never leaves it would never be reported.
#[test]
fn a_region_does_not_put_a_message_off() {
    watched(FaultAction::Notify, |watch| {
        let (_handler, faults) = answering(watch, FaultVerdict::Resume);
        let _region = Region::enter();
        watch.arm(Deadline::In(SOON)).unwrap();
        assert!(faults.recv_timeout(LONG).unwrap().deferred);
    });
}

#[test]
fn a_verdict_gives_a_new_deadline_or_ends_at_a_safepoint() {
    in_a_thread(|| {
        for strength in [FaultAction::Notify, FaultAction::Suspend] {
            watched(strength, |watch| {
                let _handler = handled(watch, 4, |_, left| {
                    *left -= 1;
                    if *left == 0 {
                        FaultVerdict::End
                    } else {
                        FaultVerdict::ResumeBy(Deadline::In(SOON))
                    }
                });
                let work = |watch: &mut DeadlineWatch| -> Result<(), ThreadTerminated> {
                    assert!(safepoint().is_ok());
                    let _ = watch.arm(Deadline::In(SOON));
                    let begun = now();
                    while now() - begun < 20_000_000_000 {
                        safepoint()?;
                    }
                    Ok(())
                };
                assert_eq!(work(watch), Err(ThreadTerminated));
                assert_eq!(watch.faults(), 4);
                // From here on always.
                assert_eq!(watch.arm(Deadline::In(SOON)), Err(FaultError::Ended(ThreadTerminated)));
                assert_eq!(watch.disarm(), Err(ThreadTerminated));
                assert_eq!(
                    (watch.safepoint(), safepoint()),
                    (Err(ThreadTerminated), Err(ThreadTerminated))
                );
            });
        }
        // Another thread is not meant.
        assert_eq!(safepoint(), Ok(()));
    });
}

#[test]
fn an_answer_that_comes_late_does_not_touch_the_next_job() {
    watched(FaultAction::Notify, |watch| {
        let (go, gone) = mpsc::channel::<()>();
        let (answered, answers) = mpsc::channel();
        let handler = handled(watch, (), move |_, _| {
            gone.recv_timeout(LONG).unwrap();
            answered.send(()).unwrap();
            FaultVerdict::ResumeBy(Deadline::In(Span::from_micros(100)))
        });
        watch.arm(Deadline::In(Span::ZERO)).unwrap();
        let next = now() + 3_600_000_000_000;
        watch.begin_job(Deadline::At(next)).unwrap();
        go.send(()).unwrap();
        answers.recv_timeout(LONG).unwrap();
        drop(handler);
        thread::sleep(Duration::from_millis(2));
        assert_eq!((watch.deadline_ns(), watch.faults()), (Some(next), 1));
        // The timer is still set for it, not only written down.
        assert!(watch.disarm().unwrap());
    });
}

/// "`FaultAction::Notify` does nothing to the thread and so is not put off": nor where the deadline is past
/// already when it is taken, in a region.
#[test]
fn a_deadline_that_is_past_is_reported_in_a_region() {
    watched(FaultAction::Notify, |watch| {
        let (sender, receiver) = mpsc::channel();
        let _handler = handled(watch, sender, |fault, sender| {
            let _ = sender.send(fault.count);
            FaultVerdict::Resume
        });
        let region = Region::enter();
        for count in 1..=3 {
            watch.arm(Deadline::At(1)).unwrap();
            assert_eq!(receiver.recv_timeout(Duration::from_secs(20)), Ok(count));
            assert_eq!(watch.faults(), count);
        }
        drop(region);
        assert_eq!((watch.faults(), watch.undelivered()), (3, 0));
    });
}
