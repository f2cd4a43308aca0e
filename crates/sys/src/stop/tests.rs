//! A watched thread at its gate, on this machine's kernel.

use std::cell::Cell;
use std::sync::atomic::AtomicU32;

use super::*;
use crate::clock::{ClockId, now_ns};
use crate::posix_timer::{PosixTimer, realtime_signals};
use crate::{futex, thread};

const SIGNAL_FROM_FIRST: i32 = 6;

fn now() -> u64 {
    now_ns(ClockId::Monotonic)
}

/// Signals and seats are the thread's own: each test has a thread of its own.
fn with_watched(test: impl FnOnce(WatchedThread) + Send) {
    std::thread::scope(|scope| {
        scope
            .spawn(|| test(WatchedThread::take(realtime_signals().0 + SIGNAL_FROM_FIRST).unwrap()));
    });
}

#[test]
fn a_deadline_passes_by_itself_and_never_early() {
    with_watched(|watched| {
        for count in 1..=20 {
            let deadline_ns = now() + 200_000;
            assert!(watched.arm(deadline_ns));
            match watched.gate().deadline_ns() {
                Some(standing_ns) => assert_eq!(standing_ns, deadline_ns),
                // It has passed already: this thread was kept from its CPU.
                None => assert!(now() >= deadline_ns),
            }
            while watched.gate().faults() < count {}
            assert!(now() >= deadline_ns);
            assert_eq!(watched.gate().deadline_ns(), None);
        }
        // The gate has no responder.
        assert_eq!(watched.gate().undelivered(), 20);
    });
}

#[test]
fn a_thread_stands_until_it_is_answered_or_no_thread_is_left() {
    with_watched(|watched| {
        let (stops, kernel) = (watched.stops(), NativePlatform::without_timer());
        watched.gate().set_strength(StopAction::Suspend);
        assert!(watched.gate().open() && !watched.gate().open());
        std::thread::scope(|scope| {
            let keeper = scope.spawn(move || {
                let mut expected = ExpectedDeadline::NOTHING;
                let mut mails = Vec::new();
                while mails.len() < 2 {
                    mails.extend(stops.gate().take(&kernel));
                    match mails[..] {
                        [FaultMessage { stopped_ns, .. }] => {
                            // It stands for at least this time.
                            let until_ns = stopped_ns + 3_000_000;
                            while now() < until_ns {
                                let word = AtomicU32::new(0);
                                futex::wait_until(&word, 0, until_ns).unwrap();
                            }
                            stops.gate().answer(&mails[0], FaultResponse::GO_ON, &kernel);
                            stops.gate().finish();
                        }
                        // This one is never answered.
                        [_, _] => stops.gate().close(&kernel),
                        _ => {}
                    }
                    stops.gate().wait_for_mail(&mut expected, &kernel);
                }
                stops.gate().vacate(&kernel);
                mails
            });
            let begun = now();
            assert!(watched.arm(0));
            assert!(now() - begun >= 3_000_000);
            assert!(watched.arm(0));
            let mails = keeper.join().unwrap();
            assert_eq!([mails[0].number, mails[1].number], [1, 2]);
            assert!(mails.iter().all(|mail| mail.is_stopped && mail.deadline_ns == 0));
        });
    });
}

/// The responder leaves, and another comes, before a thread that stands runs again: its message went with the first.
#[test]
fn a_thread_that_stands_does_not_wait_for_the_next_one() {
    #[derive(Default)]
    struct Replaced {
        gate: StopGate,
        waits: Cell<u32>,
    }

    impl GatePlatform for Replaced {
        fn now_ns(&self) -> u64 {
            1_000
        }
        fn set_timer(&self, _at_ns: u64) -> bool {
            true
        }
        fn stop_timer(&self) {}
        fn wait(&self, _word: &AtomicU32, _expected: u32, _until_ns: u64) {
            self.waits.set(self.waits.get() + 1);
            assert_eq!(self.waits.get(), 1, "it stands on, and its message was not taken");
            assert!(self.gate.take(self).is_some());
            self.gate.close(self);
            self.gate.vacate(self);
            assert!(self.gate.open());
        }
        fn wake(&self, _word: &AtomicU32) {}
        fn is_child(&self) -> bool {
            false
        }
    }

    let world = Replaced::default();
    world.gate.set_strength(StopAction::Suspend);
    assert!(world.gate.open());
    let depth = AtomicU32::new(0);
    assert!(LateThread { gate: &world.gate, depth: &depth, machine: &world }.arm(1));
    assert_eq!((world.waits.get(), world.gate.faults(), world.gate.undelivered()), (1, 1, 0));
}

#[test]
fn regions_are_counted_for_threads_without_a_seat_too() {
    enter();
    enter();
    leave();
    leave();
    // One too many is nothing.
    leave();
    assert!(!has_ended());
    for strength in [StopAction::Notify, StopAction::Hold, StopAction::Suspend] {
        with_watched(|watched| {
            watched.gate().set_strength(strength);
            enter();
            assert!(watched.arm(0));
            // An action that does nothing to the thread is not put off.
            assert_eq!(watched.gate().faults(), u64::from(strength == StopAction::Notify));
            leave();
            assert_eq!(watched.gate().faults(), 1);
        });
    }
}

#[test]
fn seats_and_signals_that_are_taken_are_refused() {
    with_watched(|_seat| {
        let again = WatchedThread::take(realtime_signals().0 + SIGNAL_FROM_FIRST);
        assert!(matches!(again, Err(SeatError::Taken)));
    });
    let no_signal = WatchedThread::take(9_999).map(|_| ()).unwrap_err();
    let errno = match no_signal {
        SeatError::Os(error) => error.raw_os_error(),
        _ => None,
    };
    assert_eq!(errno, Some(libc::EINVAL));
}

/// timer_create(2): timers are not inherited by `fork`, nor is the thread that answers. A
/// deadline that is past must not make the child wait for it.
#[test]
fn a_child_has_no_timer_and_stands_for_no_thread() {
    with_watched(|watched| {
        watched.gate().set_strength(StopAction::Suspend);
        assert!(watched.gate().open());
        assert!(watched.arm(now() + 3_600_000_000_000));
        // SAFETY: the child makes system calls and touches memory that it has, and leaves without
        // running anything else.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // Timers are numbered anew: one of these has the number that the registration's has.
            let own: [_; 64] =
                std::array::from_fn(|_| PosixTimer::new(thread::id(), realtime_signals().0).ok());
            let refused = !watched.arm(now() + 1_000_000_000) && !watched.arm(0);
            let knows = watched.is_inherited() && watched.gate().deadline_ns().is_none();
            let no_thread = watched.stops().with_tid(|_| ()).is_none();
            drop(watched);
            let left = own.iter().flatten().all(|own| own.remaining().is_ok_and(|at| at == (0, 0)));
            let right = refused && knows && no_thread && left && own[0].is_some();
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(!right)) };
        }
        let mut status = 0;
        // SAFETY: writes to a live local; the child is ours.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(status, 0, "the child had a timer, or stood");
        assert!(!watched.is_inherited() && watched.gate().deadline_ns().is_some());
        watched.gate().vacate(&NativePlatform::without_timer());
    });
}
