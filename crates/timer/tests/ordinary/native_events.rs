//! The devices of this machine, one-sided: never early, whatever the load; kicks wake; what is shut
//! down fires nothing. Upper bounds hold for the best of many only.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_timer::event::native::{PosixTimerEvent, SleepEvent, TimerFdEvent};
use hourglass_timer::event::{
    DeviceError, DeviceWaitEnd, EventDevice, Mode, Period, ProgramError, validate_device,
    validate_source,
};

use crate::common::devices::{PATIENCE, managed, now, on_each, program, wait};

const EVENT: DeviceWaitEnd = DeviceWaitEnd::Event { periods: 1 };
const MS: u64 = 1_000_000;

#[test]
fn events_are_never_early() {
    on_each(|device| {
        let name = device.facts().name;
        device.set_mode(Mode::OneShot).unwrap();
        let mut best = u64::MAX;
        for turn in 0..60u64 {
            let at_ns = program(device, 50_000 + turn * 7_919);
            assert_eq!(wait(device), EVENT, "{name}");
            let late = now().checked_sub(at_ns);
            best = best.min(late.unwrap_or_else(|| panic!("{name} was early")));
        }
        assert!(best < 5 * MS, "{name}: the best of 60 is {best} ns late");
        assert_eq!((device.counts().early, device.counts().spurious), (0, 0), "{name}");
    });
}

#[test]
fn periods_are_never_early_and_none_is_lost() {
    on_each(|device| {
        let name = device.facts().name;
        // A period that no kernel timer has (976,562.5 ns), and one that some have.
        for period in [Period::from_hertz(1_024).unwrap(), Period::new(2 * MS, 1).unwrap()] {
            let begin_ns = now();
            device.set_mode(Mode::Periodic(period)).unwrap();
            let mut reported = 0;
            while reported < 20 {
                let DeviceWaitEnd::Event { periods } = wait(device) else {
                    panic!("{name}: no event")
                };
                reported += periods;
                assert!(begin_ns + period.nth_ns(reported) <= now(), "{name}: early");
            }
            assert!(reported <= period.passed(now() - begin_ns), "{name}");
            device.set_mode(Mode::Shutdown).unwrap();
        }
    });
}

#[test]
fn what_is_shut_down_fires_nothing() {
    on_each(|device| {
        let name = device.facts().name;
        for mode in [Mode::Shutdown, Mode::OneShot] {
            device.set_mode(Mode::OneShot).unwrap();
            program(device, 3 * MS);
            device.set_mode(mode).unwrap();
            assert_eq!(device.wait(Some(now() + 6 * MS)), Ok(DeviceWaitEnd::Limit), "{name}");
            device.set_mode(Mode::Periodic(Period::new(MS, 1).unwrap())).unwrap();
            device.set_mode(mode).unwrap();
            assert_eq!(device.wait(Some(now() + 3 * MS)), Ok(DeviceWaitEnd::Limit), "{name}");
        }
        program(device, 3 * MS);
        device.set_next_event(None).unwrap();
        assert_eq!(device.wait(Some(now() + 6 * MS)), Ok(DeviceWaitEnd::Limit), "{name}");
        // Nor does the hardware itself.
        assert_eq!((device.counts().early, device.counts().spurious), (0, 0), "{name}");
    });
}

#[test]
fn the_last_time_programmed_counts() {
    on_each(|device| {
        let name = device.facts().name;
        device.set_mode(Mode::OneShot).unwrap();
        for _ in 0..5 {
            program(device, 300_000);
            thread::sleep(Duration::from_millis(1));
            let at_ns = program(device, 2 * MS);
            assert_eq!(wait(device), EVENT);
            assert!(now() >= at_ns, "{name}: the old expiry was told");
        }
    });
}

#[test]
fn kicks_wake_and_are_kept() {
    on_each(|device| {
        let name = device.facts().name;
        device.set_mode(Mode::OneShot).unwrap();
        let kick = device.kick();
        // Before the wait; several are one.
        kick.kick();
        kick.kick();
        assert_eq!(wait(device), DeviceWaitEnd::Kicked, "{name}");
        assert_eq!(device.wait(Some(now() + MS)), Ok(DeviceWaitEnd::Limit), "{name}");
        // During it, from another thread: with an event programmed, and with none.
        for ahead_ns in [Some(PATIENCE), None] {
            device.set_next_event(ahead_ns.map(|ahead_ns| now() + ahead_ns)).unwrap();
            let other = kick.clone();
            let kicker = thread::spawn(move || {
                thread::sleep(Duration::from_millis(3));
                other.kick();
            });
            assert_eq!(device.wait(None), Ok(DeviceWaitEnd::Kicked), "{name}");
            kicker.join().unwrap();
        }
        // What has been seen does not keep the thread awake.
        let (begin_ns, ran_ns) = (now(), now_ns(ClockId::ThreadCpu));
        assert_eq!(device.wait(Some(begin_ns + 30 * MS)), Ok(DeviceWaitEnd::Limit), "{name}");
        let ran_ns = now_ns(ClockId::ThreadCpu) - ran_ns;
        assert!(ran_ns < 15 * MS, "{name} ran for {ran_ns} ns in a wait of 30 ms");
        // A kick leaves the event as it is. On a busy machine that may pass before the wait.
        let at_ns = program(device, 50 * MS);
        kick.kick();
        let woken = [wait(device), wait(device)];
        assert!(
            woken == [DeviceWaitEnd::Kicked, EVENT] || woken == [EVENT, DeviceWaitEnd::Kicked],
            "{name}"
        );
        assert!(now() >= at_ns, "{name}");
    });
}

/// No kick is lost, wherever it meets the wait: each one is waited for, without a limit that could
/// hide a lost one (the test would hang).
#[test]
fn no_kick_is_lost() {
    on_each(|device| {
        let name = device.facts().name;
        device.set_mode(Mode::OneShot).unwrap();
        // Far away, so that the busy device really spins.
        device.set_next_event(Some(now() + 3_600_000 * MS)).unwrap();
        let (asked, seen) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (asks, sees, kick) = (Arc::clone(&asked), Arc::clone(&seen), device.kick());
        const ROUNDS: u64 = 2_000;
        let kicker = thread::spawn(move || {
            for round in 1..=ROUNDS {
                asks.store(round, Ordering::Relaxed);
                kick.kick();
                // Sometimes as soon as it can, sometimes when the engine sleeps again.
                if round % 16 == 0 {
                    thread::sleep(Duration::from_micros(100));
                }
                while sees.load(Ordering::Relaxed) < round {
                    thread::yield_now();
                }
            }
        });
        while seen.load(Ordering::Relaxed) < ROUNDS {
            assert_eq!(device.wait(None), Ok(DeviceWaitEnd::Kicked), "{name}");
            // What was stored before the kick is visible.
            seen.store(asked.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        kicker.join().unwrap();
    });
}

#[test]
fn kicks_outlive_their_device() {
    let kicks = thread::spawn(|| {
        let devices = [
            managed(TimerFdEvent::new().unwrap()),
            managed(PosixTimerEvent::new().unwrap()),
            managed(SleepEvent::new()),
        ];
        devices.map(|device| device.kick())
    });
    // Neither device nor thread is there any more.
    for kick in kicks.join().unwrap() {
        kick.kick();
    }
}

/// Kicks while the device is attached and detached, again and again: no signal may be left over,
/// since its default action would end this process.
#[test]
fn a_kick_may_meet_the_end_of_its_device() {
    let mut device = EventDevice::new(PosixTimerEvent::new().unwrap()).unwrap();
    let (kick, stop) = (device.kick(), Arc::new(AtomicBool::new(false)));
    let stopped = Arc::clone(&stop);
    let kicker = thread::spawn(move || {
        while !stopped.load(Ordering::Relaxed) {
            kick.kick();
        }
    });
    for _ in 0..300 {
        device.attach().unwrap();
        let _ = device.wait(Some(now() + 20_000)).unwrap();
        device.detach();
    }
    stop.store(true, Ordering::Relaxed);
    kicker.join().unwrap();
}

/// A wait for the past would cost 25 us; a refusal costs nothing like it.
#[test]
fn the_past_is_refused() {
    on_each(|device| {
        device.set_mode(Mode::OneShot).unwrap();
        for at_ns in [0, 1, now() - 1] {
            let error = device.set_next_event(Some(at_ns)).unwrap_err();
            assert!(matches!(error, ProgramError::Past { .. }), "{error}");
        }
        assert_eq!(device.counts().programmed, 0);
        // A limit that is past does not wait either.
        assert_eq!(device.wait(Some(1)), Ok(DeviceWaitEnd::Limit));
    });
}

#[test]
fn the_devices_of_this_machine_are_fit() {
    on_each(|device| {
        let name = device.facts().name;
        // One of many: the machine may be busy.
        let mut tries = (0..50).map(|_| validate_device(device));
        assert!(tries.any(|tried| tried.is_ok()), "{name}: {:?}", validate_device(device));
    });
    assert!(validate_source(now).is_ok());
}

#[test]
fn a_posix_timer_belongs_to_the_thread_that_attached_it() {
    let mut device = EventDevice::new(PosixTimerEvent::new().unwrap()).unwrap();
    let not_attached = DeviceError::NotAttached("posix");
    assert_eq!(device.wait(Some(1)), Err(not_attached.clone()));
    device.set_mode(Mode::OneShot).unwrap();
    let error = device.set_next_event(Some(now() + MS)).unwrap_err();
    assert_eq!(error, ProgramError::Device(not_attached.clone()));
    device.attach().unwrap();
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let refused = device.wait(Some(1));
            // It can be attached anew.
            device.attach().unwrap();
            device.set_mode(Mode::OneShot).unwrap();
            program(&mut device, MS);
            let woken = wait(&mut device);
            device.detach();
            (refused, woken)
        });
        assert_eq!(other.join().unwrap(), (Err(not_attached), EVENT));
    });
}

/// prctl(2), PR_SET_TIMERSLACK: 50 us of slack would make every sleep late.
#[test]
fn a_thread_that_sleeps_has_no_slack_while_it_is_attached() {
    thread::scope(|scope| {
        scope.spawn(|| {
            let before_ns = hourglass_sys::thread::timer_slack();
            let mut device = managed(SleepEvent::new());
            assert!(hourglass_sys::thread::timer_slack() <= Some(1));
            device.detach();
            assert_eq!(hourglass_sys::thread::timer_slack(), before_ns);
        });
    });
}
