//! Faults that another thread keeps the deadline of: by the timer service, RT-Mach's armed timer with
//! the flag that suspends a thread (Savage and Tokuda, 1993, section 4).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::thread;
use std::time::Duration;

use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_time::Span;
use hourglass_timer::TimerService;
use hourglass_timer::engine::ClockBase;
use hourglass_timer::fault::{Deadline, FaultAction, FaultVerdict, defer};
use hourglass_timer::service::{Action, TimerSpec};

use crate::common::watching::{
    FAR, LONG, answering, in_a_thread, now, watch, watched, work_until_late,
};

#[test]
fn an_expired_timer_suspends_a_thread_and_tells_its_handler() {
    for base in [ClockBase::Monotonic, ClockBase::Boottime, ClockBase::Realtime] {
        in_a_thread(move || {
            let mut watch = watch(FaultAction::Suspend);
            let (_handler, faults) = answering(&watch, FaultVerdict::Resume);
            watch.arm(Deadline::In(FAR)).unwrap();
            let own_ns = watch.deadline_ns();
            let service = TimerService::start().unwrap();
            let owner = service.owner("test");
            let timer = owner.timer(base, Action::fault(watch.thread())).unwrap();
            for count in 1..=3 {
                let begun_ns = now();
                timer.arm(TimerSpec::after(Span::from_millis(2))).unwrap();
                work_until_late(&watch, count);
                let fault = faults.recv_timeout(LONG).unwrap();
                assert!(fault.stopped_ns >= fault.deadline_ns, "stopped early: {fault:?}");
                // Setting a clock back meanwhile would be the machine's doing.
                let least_ns = if base == ClockBase::Realtime { 0 } else { 2_000_000 };
                assert!(fault.deadline_ns >= begun_ns + least_ns, "{fault:?} from {begun_ns}");
                assert_eq!((fault.count, fault.strength), (count, FaultAction::Suspend));
            }
            assert_eq!(watch.deadline_ns(), own_ns, "its own deadline is in force as before");
        });
    }
}

/// The call is a timer's signal, which a busy machine may bring only after the region: then a longer region follows.
#[test]
fn a_call_is_put_off_by_regions_and_seen_at_their_end() {
    watched(FaultAction::Suspend, |watch| {
        let (_handler, faults) = answering(watch, FaultVerdict::Resume);
        let watched = watch.thread();
        let put_off = |(tries, ms): (u64, u64)| {
            let watched = watched.clone();
            defer(|| {
                assert!(thread::spawn(move || watched.fault(now())).join().unwrap());
                let nothing = faults.recv_timeout(Duration::from_millis(ms));
                assert_eq!(nothing, Err(RecvTimeoutError::Timeout));
                assert_eq!(watch.faults(), tries);
            });
            let deferred = faults.recv_timeout(LONG).unwrap().deferred;
            assert_eq!(watch.faults(), tries + 1);
            deferred
        };
        assert!([(0, 20), (1, 200), (2, 2_000)].into_iter().any(put_off));
    });
}

#[test]
fn who_is_watched_no_more_cannot_be_called() {
    let watched = in_a_thread(|| watch(FaultAction::Suspend).thread());
    assert!(watched.is_gone() && !watched.fault(now()));
}

#[test]
fn calls_are_not_lost_among_deadlines_of_its_own() {
    const CALLS: u64 = 2_000;
    watched(FaultAction::Suspend, |watch| {
        let (_handler, faults) = answering(watch, FaultVerdict::Resume);
        let watched = watch.thread();
        let (called, seen, over) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                for call in 1..=CALLS {
                    assert!(watched.fault(now()));
                    called.store(call, Ordering::SeqCst);
                    let begun_ns = now_ns(ClockId::Monotonic);
                    while seen.load(Ordering::SeqCst) < call {
                        assert!(now() - begun_ns < 20_000_000_000, "call {call} was lost");
                        std::hint::spin_loop();
                    }
                }
                over.store(true, Ordering::SeqCst);
            });
            while !over.load(Ordering::SeqCst) {
                watch.arm(Deadline::In(FAR)).unwrap();
                assert!(watch.disarm().unwrap());
                seen.store(watch.faults(), Ordering::SeqCst);
            }
        });
        assert_eq!((watch.faults(), watch.undelivered()), (CALLS, 0));
        assert_eq!(faults.try_iter().count() as u64, CALLS);
        assert_eq!(called.into_inner(), CALLS);
    });
}
