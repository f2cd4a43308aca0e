//! What ends when a signal is handled. The handlers are the process', and every thread gets the signals.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use hourglass_sys::{signal, thread};
use hourglass_time::Span;
use hourglass_timer::Sleeper;
use hourglass_timer::event::{DeviceWaitEnd, Mode};
use hourglass_timer::sleep::{Interrupt, SleepPolicy, SleeperSettings};

use crate::common::devices::{PATIENCE, on_each, program};
use crate::common::watching::{LONG, wait_until_asleep};
use crate::in_own_process;

const FOR_EVER: Span = Span::HOUR;

#[test]
fn an_interrupt_comes_from_a_signal_handler() {
    in_own_process("signals::an_interrupt_comes_from_a_signal_handler", || {
        /// The signal that `signal::kick` sends.
        const SIGUSR2: i32 = 12;
        static WORD: Interrupt = Interrupt::new();
        WORD.interrupt_on_signal(SIGUSR2).unwrap();
        for policy in [SleepPolicy::KernelOnly, SleepPolicy::SpinOnly, SleepPolicy::Learned] {
            let mut sleeper =
                Sleeper::with(SleeperSettings::with_policy(policy)).interrupted_by(&WORD);
            WORD.clear();
            let (sender, receiver) = mpsc::channel();
            let (done, finished) = mpsc::channel();
            let sleeping = std::thread::spawn(move || {
                sender.send(thread::id()).unwrap();
                done.send(sleeper.sleep_for(FOR_EVER)).unwrap();
                done.send(sleeper.sleep_for(FOR_EVER)).unwrap();
            });
            let id = receiver.recv().unwrap();
            match policy {
                SleepPolicy::SpinOnly => std::thread::sleep(Duration::from_millis(20)),
                _ => wait_until_asleep(id),
            }
            signal::kick(id).unwrap();
            for _ in 0..2 {
                let slept = finished.recv_timeout(LONG).expect("the signal ended nothing");
                assert!(slept.interrupted && !slept.reached(), "{policy}: {slept:?}");
            }
            sleeping.join().unwrap();
        }
    });
}

#[test]
fn signals_end_a_wait() {
    in_own_process("signals::signals_end_a_wait", || {
        signal::catch_stop().unwrap();
        on_each(|device| {
            let name = device.facts().name;
            device.set_mode(Mode::OneShot).unwrap();
            program(device, if name == "busy" { 10_000_000 } else { PATIENCE });
            let (me, done) = (thread::id(), Arc::new(AtomicBool::new(false)));
            let stop = Arc::clone(&done);
            // Again and again: one may come before the wait begins.
            let sender = std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    signal::kick(me).unwrap();
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            let woken = device.wait(None).unwrap();
            done.store(true, Ordering::Relaxed);
            sender.join().unwrap();
            assert_eq!(
                woken,
                if name == "busy" {
                    DeviceWaitEnd::Event { periods: 1 }
                } else {
                    DeviceWaitEnd::Signal
                },
                "{name}"
            );
        });
    });
}
