//! Clock devices of this machine. Timing is judged on one side only: never early.

use hourglass_sys::allocation::thread_counts;
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_time::Span;
use hourglass_timer::clock_device::{ClockDevice, ClockDevices, OpenError};
use hourglass_timer::event::{DeviceWaitEnd, ResolutionError};

use crate::common::devices::the_rtc;

const MS: u64 = 1_000_000;

/// Section 2.1 of the paper: a baseline clock device on all platforms. Others may be missing, and
/// then say so in one line.
#[test]
fn the_baseline_is_everywhere() {
    let _alone = the_rtc();
    let devices = ClockDevices::native();
    let names: Vec<&str> = devices.list().map(|known| known.name).collect();
    assert_eq!(names, ["baseline", "timerfd", "posix", "rtc"]);
    for name in names {
        // Ticks are counted from within `open`: a reading after it is later than that by whatever the machine does.
        let begun = now_ns(ClockId::Monotonic);
        match devices.open::<()>(name) {
            Ok(mut device) => {
                let tick_ns = device.resolution().nth_ns(1);
                for tick in 1..=3 {
                    assert!(matches!(device.wait(None), Ok(DeviceWaitEnd::Event { .. })));
                    // The chip of `rtc` ticks on its own beat: its first tick may come at once.
                    let fewest = if name == "rtc" { tick - 1 } else { tick };
                    assert!(now_ns(ClockId::Monotonic) >= begun + fewest * tick_ns - MS, "{name}");
                }
            }
            Err(error) => {
                println!("{error}");
                assert_ne!(name, ClockDevices::BASELINE);
                assert!(matches!(error, OpenError::Device { .. }), "{error}");
                assert_eq!(error.to_string().lines().count(), 1);
            }
        }
    }
    let unknown = devices.open::<()>("stat").unwrap_err().to_string();
    assert!(unknown.ends_with("there are baseline, timerfd, posix, rtc"), "{unknown}");
}

#[test]
fn timers_are_never_early() {
    for name in ["baseline", "timerfd", "posix"] {
        let mut device: ClockDevice<u64> = ClockDevices::native().open(name).unwrap();
        let actual = device.set_resolution(Span::from_millis(1), Span::ZERO).unwrap();
        assert_eq!((actual.nth_ns(1), device.resolution()), (MS, actual));
        let timers: Vec<_> = (0..5).map(|i| device.create(i).unwrap()).collect();
        let before = thread_counts();
        let begun = now_ns(ClockId::Monotonic);
        for (i, timer) in timers.iter().enumerate() {
            let after = Span::from_micros(700 * i as i64);
            device.arm_after(*timer, after, Some(Span::from_micros(2_300))).unwrap();
        }
        let mut expired = 0;
        while expired < 60 {
            device.wait(None).unwrap();
            while let Some(due) = device.pop_expired() {
                let now = now_ns(ClockId::Monotonic);
                let expiry = due.expiry.since_zero().nanos_or_zero();
                assert!(due.tick_ns >= expiry && due.tick_ns <= now, "{name}: {due:?}");
                let first = begun + 700_000 * *device.payload_mut(due.timer).unwrap();
                assert!(expiry >= first);
                expired += 1 + due.overruns;
            }
        }
        assert_eq!(thread_counts(), before, "{name}");
    }
}

#[test]
fn any_thread_reads_it() {
    let mut device: ClockDevice = ClockDevices::native().open(ClockDevices::BASELINE).unwrap();
    device.set_resolution(Span::from_millis(1), Span::ZERO).unwrap();
    let reader = device.reader();
    let kick = device.kick();
    let other = std::thread::spawn(move || {
        let begun = reader.now_ns();
        let mut last = begun;
        while last < begun + 20 * MS {
            let coarse = reader.now_ns();
            // In this order: the precise read is after the coarse one.
            let precise = reader.now_precise();
            assert!(coarse >= last && coarse <= precise.latest);
            last = coarse;
        }
        kick.kick();
    });
    while device.wait(None).unwrap() != DeviceWaitEnd::Kicked {}
    other.join().unwrap();
}

#[test]
fn no_resolution_is_finer_than_a_wake_up() {
    let mut device: ClockDevice = ClockDevices::native().open(ClockDevices::BASELINE).unwrap();
    let error = device.set_resolution(Span::NANOSECOND, Span::from_micros(10)).unwrap_err();
    let ResolutionError::TooFar { nearest, .. } = error else { panic!("{error}") };
    assert_eq!(nearest.nth_ns(1), 50_000);
    assert_eq!(device.set_resolution(Span::NANOSECOND, Span::from_micros(50)), Ok(nearest));
}
