//! The PC's real-time clock, which ticks and does nothing else: as a device, as a clock device, below a
//! timer service. QEMU has one (`cargo xtask bed rtc`).

use std::path::Path;

use hourglass_skip::{Requirement, skip};
use hourglass_time::Span;
use hourglass_timer::clock_device::{ClockDevice, ClockDevices};
use hourglass_timer::engine::ClockBase;
use hourglass_timer::event::native::RtcEvent;
use hourglass_timer::event::{DeviceError, DeviceWaitEnd, EventDevice, Mode, Period, Resolution};
use hourglass_timer::service::{Action, Device, EngineSettings, ServiceSettings, TimerService};

use crate::common::devices::{now, the_rtc, wait};

/// Set where the device must be there: in the bed.
const REQUIRED: &str = "HOURGLASS_TEST_RTC_REQUIRED";

fn on_the_rtc(test: impl FnOnce()) {
    let _alone = the_rtc();
    match RtcEvent::find() {
        Ok(device) => drop(device),
        Err(reason) => {
            assert_eq!(reason.to_string().lines().count(), 1);
            assert!(std::env::var_os(REQUIRED).is_none(), "{reason}");
            return skip(
                Requirement::runs(
                    "RTC",
                    "head -c 0 /dev/rtc0 || head -c 0 /dev/rtc || cat /sys/class/rtc/rtc0/dev",
                ),
                reason,
            );
        }
    }
    test();
}

#[test]
fn an_rtc_ticks_at_powers_of_two() {
    on_the_rtc(|| {
        let mut device = EventDevice::new(RtcEvent::find().unwrap()).unwrap();
        device.attach().unwrap();
        assert_eq!(device.set_mode(Mode::OneShot), Err(DeviceError::NoOneShot("rtc")));
        let period = Period::from_hertz(64).unwrap();
        device.set_mode(Mode::Periodic(period)).unwrap();
        let begin_ns = now();
        let mut reported = 0;
        while reported < 8 {
            let DeviceWaitEnd::Event { periods } = wait(&mut device) else { panic!("no event") };
            reported += periods;
        }
        // Its first period may have begun before; its crystal is not ours.
        assert!(now() - begin_ns >= period.nth_ns(7) * 9 / 10);
        device.kick().kick();
        device.set_mode(Mode::Shutdown).unwrap();
        assert_eq!(wait(&mut device), DeviceWaitEnd::Kicked);
    });
}

/// *Real-Time Mach Timers*, section 2.2: what is asked for is not to be had exactly, so a skew is
/// allowed. 1 ms becomes 1/1024 s, which is 23.4 us away.
#[test]
fn a_clock_device_grants_what_the_chip_has() {
    on_the_rtc(|| {
        let mut clock: ClockDevice<u32> = ClockDevices::native().open("rtc").unwrap();
        let ms = Span::from_millis(1);
        let refused = clock.set_resolution(ms, Span::from_micros(23)).unwrap_err();
        assert!(refused.to_string().contains("976562.500 ns"), "{refused}");
        let granted = clock.set_resolution(ms, Span::from_micros(24)).unwrap();
        assert_eq!(granted, Period::from_hertz(1_024).unwrap());
        let timer = clock.create(7).unwrap();
        clock.arm_after(timer, Span::from_millis(20), None).unwrap();
        let due = loop {
            clock.wait(None).unwrap();
            if let Some(due) = clock.pop_expired() {
                break due;
            }
        };
        assert!(due.tick_ns >= due.expiry.since_zero().nanos_or_zero(), "{due:?}");
    });
}

#[test]
fn a_service_lives_on_its_ticks() {
    on_the_rtc(|| {
        let tick = Some(Period::from_hertz(256).unwrap());
        let settings = EngineSettings { device: Device::Rtc, tick, ..EngineSettings::default() };
        let service = TimerService::with(&ServiceSettings::engines(1, &settings)).unwrap();
        assert_eq!(service.resolution(0), Ok(Resolution::TickBound));
        let owner = service.owner("rtc");
        let timer = owner.timer(ClockBase::Monotonic, Action::nothing()).unwrap();
        for ms in [1, 5, 20] {
            let begin_ns = now();
            timer.sleep_for(Span::from_millis(ms)).unwrap();
            assert!(now() - begin_ns >= ms as u64 * 1_000_000, "{ms} ms");
        }
        // It ticks by itself, so no tick is skipped.
        assert_eq!(service.statistics(0).unwrap().ticks_skipped, 0);
    });
}

#[test]
fn a_missing_device_says_so() {
    let error = RtcEvent::open(Path::new("/dev/rtc-that-is-not-there")).err().unwrap();
    assert!(matches!(error, DeviceError::Missing { .. }), "{error}");
    assert!(error.to_string().contains("/dev/rtc-that-is-not-there"));
}
