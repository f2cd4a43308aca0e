//! The devices of this machine, for tests.

#![allow(dead_code, reason = "each program uses its part")]

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use hourglass_timer::event::native::{BusyEvent, PosixTimerEvent, SleepEvent, TimerFdEvent};
use hourglass_timer::event::{ClockEvent, DeviceWaitEnd, EventDevice, ProgramError};

pub(crate) use super::now;

/// A wait that a broken device would never end, ns.
pub(crate) const PATIENCE: u64 = 20_000_000_000;

pub(crate) fn managed(device: impl ClockEvent + 'static) -> EventDevice {
    let mut device = EventDevice::new(device).unwrap();
    device.attach().unwrap();
    device
}

/// Every device of an engine's own, attached, in a thread of its own.
pub(crate) fn on_each(test: impl Fn(&mut EventDevice) + Send + Sync) {
    let test = &test;
    let run = |mut device: EventDevice| {
        test(&mut device);
        device.detach();
    };
    thread::scope(|scope| {
        scope.spawn(move || run(managed(TimerFdEvent::new().unwrap())));
        scope.spawn(move || run(managed(PosixTimerEvent::new().unwrap())));
        scope.spawn(move || run(managed(SleepEvent::new())));
    });
    // Afterwards and alone: it takes a CPU.
    thread::scope(|scope| {
        scope.spawn(move || run(managed(BusyEvent::new())));
    });
}

/// Programs an event so far ahead, again if the thread was preempted meanwhile; returns for when.
pub(crate) fn program(device: &mut EventDevice, ahead_ns: u64) -> u64 {
    loop {
        let at_ns = now() + ahead_ns;
        match device.set_next_event(Some(at_ns)) {
            Ok(_) => return at_ns,
            Err(ProgramError::Past { .. }) => {}
            Err(error) => panic!("{}: {error}", device.facts().name),
        }
    }
}

/// The PC's real-time clock, which can be opened once on a machine, is the caller's while it has this.
pub(crate) fn the_rtc() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for what is no signal: the test harness's own, if any, do not count.
pub(crate) fn wait(device: &mut EventDevice) -> DeviceWaitEnd {
    let limit_ns = now() + PATIENCE;
    loop {
        match device.wait(Some(limit_ns)).unwrap() {
            DeviceWaitEnd::Signal => {}
            woken => return woken,
        }
    }
}
