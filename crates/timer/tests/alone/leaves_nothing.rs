//! What devices leave behind: nothing. It counts what the process has, and takes its signals away.

use std::process::Command;
use std::thread;
use std::time::Duration;

use hourglass_sys::thread::timer_slack;
use hourglass_timer::event::native::{PosixTimerEvent, SleepEvent, TimerFdEvent};
use hourglass_timer::event::{ClockEvent, DeviceError, DeviceWaitEnd, EventDevice, Mode};

use crate::common::now;
use crate::in_own_process;
use crate::process::{blocked, files, take_signals_away, timers};

fn devices() -> [Box<dyn ClockEvent>; 3] {
    [
        Box::new(TimerFdEvent::new().unwrap()),
        Box::new(PosixTimerEvent::new().unwrap()),
        Box::new(SleepEvent::new()),
    ]
}

fn use_and_drop(detach: bool) {
    for hardware in devices() {
        let mut device = EventDevice::from_box(hardware).unwrap();
        device.attach().unwrap();
        device.set_mode(Mode::OneShot).unwrap();
        // The time may be past by then: that is refused, and nothing to wait for.
        let armed = device.set_next_event(Some(now() + 200_000)).is_ok();
        assert!(!armed || device.wait(Some(now() + 20_000_000_000)) != Ok(DeviceWaitEnd::Limit));
        // An expiry that is pending, and one to come.
        let _ = device.set_next_event(Some(now() + 100_000));
        thread::sleep(Duration::from_millis(1));
        device.set_next_event(Some(now() + 60_000_000_000)).unwrap();
        if detach {
            device.detach();
        }
    }
}

fn nothing_is_left() {
    let before = (files(), timers(), blocked(), timer_slack());
    for turn in 0..20 {
        use_and_drop(turn % 2 == 0);
    }
    assert_eq!(before, (files(), timers(), blocked(), timer_slack()));
}

/// fork(2), timer_create(2): a child has no POSIX timers, and files are closed by `exec`.
fn a_child_gets_nothing() {
    let mut armed = devices().map(|hardware| EventDevice::from_box(hardware).unwrap());
    for device in &mut armed {
        device.attach().unwrap();
        device.set_mode(Mode::OneShot).unwrap();
        device.set_next_event(Some(now() + 60_000_000_000)).unwrap();
    }
    let listing = Command::new("ls").args(["-l", "/proc/self/fd"]).output().unwrap();
    let listing = String::from_utf8_lossy(&listing.stdout).into_owned();
    assert!(!listing.contains("timerfd") && !listing.contains("eventfd"), "{listing}");
}

/// Takes the signals of this process away: a device says so, and kicks of one that is attached
/// already arrive all the same.
fn without_signals_kicks_still_wake() {
    let mut device = EventDevice::new(PosixTimerEvent::new().unwrap()).unwrap();
    device.attach().unwrap();
    device.set_mode(Mode::OneShot).unwrap();
    if !take_signals_away() {
        return;
    }
    let mut other = EventDevice::new(PosixTimerEvent::new().unwrap()).unwrap();
    let before = blocked();
    assert_eq!(other.attach(), Err(DeviceError::SignalsExhausted));
    assert_eq!(blocked(), before);
    for _ in 0..20 {
        let kick = device.kick();
        let kicker = thread::spawn(move || {
            thread::sleep(Duration::from_millis(1));
            kick.kick();
        });
        assert_eq!(device.wait(Some(now() + 20_000_000_000)), Ok(DeviceWaitEnd::Kicked));
        kicker.join().unwrap();
    }
    // Expiries have their signal set aside.
    device.set_next_event(Some(now() + 100_000_000)).unwrap();
    assert_eq!(device.wait(None), Ok(DeviceWaitEnd::Event { periods: 1 }));
}

#[test]
fn devices_leave_nothing_behind() {
    in_own_process("leaves_nothing::devices_leave_nothing_behind", || {
        nothing_is_left();
        a_child_gets_nothing();
        without_signals_kicks_still_wake();
    });
}
