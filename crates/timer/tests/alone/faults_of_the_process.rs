//! Timing faults where they meet the process: its children, its signals, threads that end. It takes the
//! process' signals away and hands it foreign handlers.
//!
//! Source: timer_create(2), fork(2): timers are not inherited, signals are set aside.

use std::io;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use hourglass_sys::posix_timer::{block, realtime_signals, send, unblock};
use hourglass_sys::{futex, signal};
use hourglass_time::Span;
use hourglass_timer::fault::{
    Attributes, Deadline, DeadlineWatch, FaultAction, FaultError, FaultVerdict, WatchSettings,
    deadline_handler,
};

use crate::common::now;
use crate::common::watching::handled;
use crate::in_own_process;
use crate::process::{blocked, take_signals_away, threads, timers};

fn suspending() -> DeadlineWatch {
    DeadlineWatch::new(WatchSettings::with_strength(FaultAction::Suspend)).unwrap()
}

fn threads_that_end_leave_nothing() {
    let before = (timers(), threads(), blocked());
    for turn in 0..200u64 {
        thread::spawn(move || {
            let mut watch = suspending();
            let handler = (turn % 2 == 0).then(|| {
                deadline_handler(
                    &watch.thread(),
                    Attributes::DEFAULT,
                    |_, ()| FaultVerdict::Resume,
                    (),
                )
            });
            let handler = handler.transpose().unwrap();
            watch.arm(Deadline::In(Span::from_nanos(turn as i64 * 500))).unwrap();
            if turn % 3 == 0 {
                // In the other order.
                drop(handler);
            }
        })
        .join()
        .unwrap();
    }
    // A thread that was joined may still be listed for a moment.
    let begun = now();
    while (timers(), threads(), blocked()) != before && now() - begun < 10_000_000_000 {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!((timers(), threads(), blocked()), before);
}

fn a_leaked_watch_does_no_harm() {
    for _ in 0..20 {
        thread::spawn(|| {
            let mut watch = suspending();
            watch.arm(Deadline::In(Span::from_micros(300))).unwrap();
            std::mem::forget(watch);
        })
        .join()
        .unwrap();
    }
    thread::sleep(Duration::from_millis(2));
}

fn signals_of_others_are_no_faults() {
    let mut watch = suspending();
    watch.arm(Deadline::In(Span::from_secs(3_600))).unwrap();
    let signal = realtime_signals().0 + 4;
    for _ in 0..100 {
        send(watch.thread().tid(), signal).unwrap();
    }
    assert_eq!(watch.faults(), 0);
    watch.arm(Deadline::In(Span::from_millis(1))).unwrap();
    // A failed call leaves errno; then a fault comes; then it is looked at.
    assert!(std::fs::File::open("/nowhere/at/all").is_err());
    let errno = io::Error::last_os_error().raw_os_error();
    while watch.faults() == 0 {}
    assert_eq!(io::Error::last_os_error().raw_os_error(), errno);
}

/// System calls that can be restarted are; waits that cannot tell.
fn a_blocking_read_goes_on() {
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    let (sender, receiver) = mpsc::channel();
    let reading = thread::spawn(move || {
        let mut watch = suspending();
        let entry = |_: &_, sender: &mut mpsc::Sender<()>| {
            let _ = sender.send(());
            FaultVerdict::Resume
        };
        let _handler = handled(&watch, sender, entry);
        watch.arm(Deadline::In(Span::from_millis(1))).unwrap();
        let mut byte = [0];
        let read = io::Read::read(&mut reader, &mut byte).unwrap();
        (read, watch.faults())
    });
    receiver.recv().unwrap();
    thread::sleep(Duration::from_millis(20));
    io::Write::write_all(&mut writer, &[7]).unwrap();
    assert_eq!(reading.join().unwrap(), (1, 1));
}

fn a_blocked_signal_is_unblocked_meanwhile() {
    let signal = realtime_signals().0 + 4;
    block(signal).unwrap();
    let before = blocked();
    let mut watch = suspending();
    watch.arm(Deadline::In(Span::from_micros(100))).unwrap();
    while watch.faults() == 0 {}
    drop(watch);
    assert_eq!(blocked(), before);
    unblock(signal).unwrap();
}

fn a_signal_that_is_taken_is_refused() {
    static WORD: AtomicU32 = AtomicU32::new(0);
    let taken = realtime_signals().0 + 9;
    signal::latch(taken, &WORD).unwrap();
    let settings = WatchSettings { signal: Some(taken), ..WatchSettings::default() };
    assert_eq!(DeadlineWatch::new(settings).err(), Some(FaultError::SignalTaken(taken)));
    send(hourglass_sys::thread::id(), taken).unwrap();
    assert_eq!(WORD.load(Ordering::SeqCst), 1);
}

/// The kernel's own test of the child is in `sys`; here a process that was made with the timer armed.
fn a_child_process_has_no_timer() {
    let mut watch = suspending();
    watch.arm(Deadline::In(Span::from_secs(3_600))).unwrap();
    let listing = Command::new("cat").arg("/proc/self/timers").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&listing.stdout), "");
    assert!(!watch.is_inherited());
    assert!(watch.disarm().unwrap());
}

/// Takes the signals of this process away; last, since they do not come back.
fn without_signals_there_is_an_error_and_what_is_watched_stays_so() {
    let mut watch = suspending();
    if !take_signals_away() {
        return;
    }
    let mask = blocked();
    thread::spawn(move || {
        let before = blocked();
        assert_eq!(
            DeadlineWatch::new(WatchSettings::default()).err(),
            Some(FaultError::SignalsExhausted)
        );
        assert_eq!(blocked(), before);
    })
    .join()
    .unwrap();
    // Its expiry has a signal set aside, and so has an answer with a new deadline.
    let handler = handled(&watch, (), |fault, ()| match fault.count {
        1 => FaultVerdict::ResumeBy(Deadline::In(Span::from_micros(200))),
        _ => FaultVerdict::Resume,
    });
    for strength in [FaultAction::Suspend, FaultAction::Notify] {
        watch.set(WatchSettings::with_strength(strength));
        let before = watch.faults();
        watch.arm(Deadline::In(Span::from_micros(200))).unwrap();
        let begun = now();
        while watch.faults() == before {
            assert!(now() - begun < 20_000_000_000);
        }
    }
    drop(handler);
    assert_eq!(blocked(), mask);
}

fn a_wait_tells_that_it_was_interrupted() {
    let mut watch = suspending();
    let word = AtomicU32::new(0);
    // On a busy machine the deadline may pass before the wait has begun.
    let interrupted = |turn| {
        watch.arm(Deadline::In(Span::from_millis(1))).unwrap();
        let woken = futex::wait_until(&word, 0, now() + 500_000_000).unwrap();
        assert_eq!(watch.faults(), turn);
        woken == futex::WakeReason::Signal
    };
    assert!((1..=8).any(interrupted));
}

#[test]
fn faults_and_the_process() {
    in_own_process("faults_of_the_process::faults_and_the_process", || {
        threads_that_end_leave_nothing();
        a_leaked_watch_does_no_harm();
        signals_of_others_are_no_faults();
        a_blocking_read_goes_on();
        a_blocked_signal_is_unblocked_meanwhile();
        a_signal_that_is_taken_is_refused();
        a_child_process_has_no_timer();
        a_wait_tells_that_it_was_interrupted();
        without_signals_there_is_an_error_and_what_is_watched_stays_so();
    });
}
