//! RT-Mach's clock devices in virtual time: the paper's examples, and a slow twin.

mod timers;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hourglass_clock::Clock;
use hourglass_clock::source::SimSource;
use hourglass_clock::timekeeping::ClockSettings;
use hourglass_time::Span;

use super::*;
use crate::event::{
    ClockEvent, DeviceError, DeviceFeatures, DeviceWaitEnd, EventDevice, Kick, Mode, Period,
    Periods, ResolutionError, SimEvent, SimEventConfig,
};

type SimClock = Arc<Clock<Arc<SimSource>>>;
type Device<T = u32> = ClockDevice<T, SimClock>;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

fn us(us: i64) -> Span {
    Span::from_micros(us)
}

fn period(span: Span) -> Period {
    Period::from_span(span).unwrap()
}

fn clock() -> (Arc<SimSource>, SimClock) {
    let time = Arc::new(SimSource::default());
    let settings = ClockSettings { look_every_ns: u64::MAX, ..ClockSettings::DEFAULT };
    let clock = Arc::new(Clock::on(Arc::clone(&time), settings));
    (time, clock)
}

fn machine() -> (Arc<SimSource>, ClockDevices<SimClock>) {
    let (time, clock) = clock();
    let devices = ClockDevices::simulated(clock, &time);
    (time, devices)
}

fn open(name: &str) -> Device {
    machine().1.open(name).unwrap()
}

/// Section 2.2: "when the baseline clock on the i486 AT is directed to increase its resolution to
/// 1ms, the scheduling clock tick frequency increases by 10". The i8254 counts in 838 ns.
#[test]
fn the_baseline_ticks_every_10_ms_and_ten_times_as_often_on_request() {
    let mut device = open(ClockDevices::BASELINE);
    assert_eq!(device.resolution(), Period::I8254.times(11_932).unwrap());
    let fine = device.set_resolution(us(1_000), Span::from_nanos(153)).unwrap();
    assert_eq!(fine, Period::I8254.times(1_193).unwrap());
    let begun = device.now_ns();
    for interrupt in 1..=1_000u64 {
        device.wait(None).unwrap();
        assert_eq!(device.now_ns() - begun, fine.nth_ns(interrupt), "interrupt {interrupt}");
    }
}

/// Section 2.2: "in terms of a desired resolution and an allowable skew"; what is refused changes
/// nothing, and "the correct resolution may be queried later".
#[test]
fn a_resolution_is_granted_within_its_skew_only() {
    let mut device = open("sim_mc146818");
    assert_eq!(device.resolution(), Period::from_hertz(128).unwrap());
    let refused = device.set_resolution(us(1_000), us(23)).unwrap_err();
    let nearest = Period::from_hertz(1_024).unwrap();
    let error = ResolutionError::TooFar { desired: us(1_000), skew: us(23), nearest };
    assert_eq!(refused, error);
    assert_eq!(device.resolution(), Period::from_hertz(128).unwrap());
    assert_eq!(device.set_resolution(us(1_000), us(24)), Ok(nearest));
    assert_eq!(device.resolution(), nearest);
    assert_eq!(device.reader().tick_ns(), 976_563);
    assert_eq!(device.resolutions(), Periods::MC146818);
    // "Any multiple of 838ns up to .055 seconds."
    let mut device = open("sim_i8254");
    assert!(device.set_resolution(us(55_001), us(75)).is_err());
    let longest = Period::I8254.times(65_536).unwrap();
    assert_eq!(device.set_resolution(us(55_000), us(75)), Ok(longest));
    for (desired, skew) in [(0, 1), (-5, 1), (5, -1)] {
        let error = device.set_resolution(us(desired), us(skew)).unwrap_err();
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
    }
    assert_eq!(device.resolution(), longest);
}

/// Section 5.3: "changes in resolution may be postponed from the time of invocation for the duration
/// of one clock device tick".
#[test]
fn a_new_resolution_is_in_force_within_one_tick() {
    for name in ["sim", "sim_i8254", "sim_mc146818"] {
        let mut device = open(name);
        for step in 1..200u64 {
            // From the middle of a tick, to something finer or coarser.
            let until = step * 77_654_321;
            while device.wait(Some(until)).unwrap() != DeviceWaitEnd::Limit {}
            let hertz = 32 << (step * 7 % 8);
            let desired = SECOND / hertz;
            let actual = device.set_resolution(Span::from_nanos(desired as i64), us(1)).unwrap();
            let asked_ns = until.max(device.now_ns());
            assert!(matches!(device.wait(None), Ok(DeviceWaitEnd::Event { .. })));
            assert!(device.now_ns() <= asked_ns + actual.nth_ns(1), "{name}, step {step}");
        }
    }
}

/// Each change begins the device's period anew; changes that come faster than it ticks must not
/// stop the timers.
#[test]
fn changes_before_every_tick_starve_no_timer() {
    let mut device = open("sim");
    let timer = device.create(1).unwrap();
    device.arm_after(timer, us(1), Some(us(10_000))).unwrap();
    let mut expired = 0;
    for change in 1..=200u64 {
        let desired = if change % 2 == 0 { us(9_000) } else { us(8_000) };
        device.set_resolution(desired, Span::ZERO).unwrap();
        while device.wait(Some(change * 5 * MS)).unwrap() != DeviceWaitEnd::Limit {
            expired += device.pop_expired().map_or(0, |due| 1 + due.overruns);
        }
    }
    assert!((98..=100).contains(&expired), "{expired} expirations in a second");
}

struct Stubborn(SimEvent, Arc<AtomicBool>);

impl ClockEvent for Stubborn {
    fn facts(&self) -> DeviceFeatures {
        self.0.facts()
    }
    fn now_ns(&self) -> u64 {
        self.0.now_ns()
    }
    fn set_mode(&mut self, mode: Mode) -> Result<(), DeviceError> {
        if self.1.load(Ordering::Relaxed) {
            return Err(DeviceError::Os { device: "stubborn", errno: 5 });
        }
        self.0.set_mode(mode)
    }
    fn set_next_event(&mut self, at_ns: u64) -> Result<(), DeviceError> {
        self.0.set_next_event(at_ns)
    }
    fn wait(&mut self, limit_ns: Option<u64>) -> Result<DeviceWaitEnd, DeviceError> {
        self.0.wait(limit_ns)
    }
    fn kick(&self) -> Kick {
        self.0.kick()
    }
}

#[test]
fn what_the_device_refuses_changes_nothing() {
    let (time, clock) = clock();
    let refuses = Arc::new(AtomicBool::new(false));
    let sim = SimEvent::new(&time, SimEventConfig::i8254());
    let device = EventDevice::new(Stubborn(sim, Arc::clone(&refuses))).unwrap();
    let mut device: Device = Device::new("stubborn", clock, device, None).unwrap();
    let (before, begun) = (device.resolution(), device.now_ns());
    refuses.store(true, Ordering::Relaxed);
    let error = device.set_resolution(us(1_000), us(1)).unwrap_err();
    assert!(matches!(error, ResolutionError::Refused(_)), "{error}");
    assert!(error.to_string().contains("stubborn") && error.to_string().lines().count() == 1);
    assert_eq!((device.resolution(), device.reader().tick_ns()), (before, before.nth_ns(1)));
    for tick in 1..=100 {
        device.wait(None).unwrap();
        assert_eq!(device.now_ns(), begun + before.nth_ns(tick));
    }
}

/// Section 5.3 and Table 3: the mapped read is as coarse as the interrupts, the precise one is not.
#[test]
fn the_mapped_read_is_coarse_and_the_precise_one_is_not() {
    let (time, devices) = machine();
    let mut device: Device = devices.open(ClockDevices::BASELINE).unwrap();
    let reader = device.reader();
    for step in 1..2_000u64 {
        // Anywhere within a tick.
        device.wait(Some(step * 12_345_677)).unwrap();
        let true_ns = time.true_time().nanos_or_zero();
        let precise = reader.now_precise();
        assert!(reader.now_ns() <= true_ns && true_ns - reader.now_ns() <= reader.tick_ns());
        assert_eq!((device.now_ns(), device.name()), (reader.now_ns(), "baseline"));
        assert!(precise.earliest <= true_ns + 100 && true_ns <= precise.latest);
        assert!(precise.error_ns() < 10_000, "{precise:?}");
    }
    device.set_resolution(us(100), us(1)).unwrap();
    assert!(reader.tick_ns() < 101_000);
}

/// Section 2.1: opened by name, one universal name; the error for an unknown one lists the known ones.
#[test]
fn devices_are_opened_by_name() {
    let (time, mut devices) = machine();
    let error = devices.open::<()>("stat").unwrap_err();
    let text = "no clock device is called 'stat'; there are baseline, sim_i8254, sim_mc146818, sim";
    assert_eq!(error.to_string(), text);
    let taken = devices.register("sim", "another", None, || Err(DeviceError::TooManyFiles));
    assert_eq!(taken, Err(NameTaken("sim".to_owned())));
    // Section 7: "the STAT! timer board": hardware of one's own.
    let finest = Some(us(1));
    devices
        .register("stat", "a timer board", finest, move || {
            Ok(Box::new(SimEvent::new(&time, SimEventConfig::exact())))
        })
        .unwrap();
    assert_eq!(devices.list().last().map(|known| known.text), Some("a timer board"));
    let mut stat: Device = devices.open("stat").unwrap();
    // No finer than it says.
    let error = stat.set_resolution(Span::from_nanos(500), Span::from_nanos(499)).unwrap_err();
    assert!(matches!(error, ResolutionError::TooFar { nearest, .. } if nearest == period(us(1))));
    let least = stat.set_resolution(Span::from_nanos(500), Span::from_nanos(500));
    assert_eq!(least, Ok(period(us(1))));
    assert_eq!(stat.set_resolution(Span::from_nanos(1_234), Span::ZERO).unwrap().nth_ns(1), 1_234);
}

/// Issue 4, "Bad input": "a clock without the wanted device".
#[test]
fn a_clock_without_its_device_is_an_error() {
    let (time, mut devices) = machine();
    let missing = || Err(DeviceError::Missing { path: "/dev/stat".to_owned() });
    devices.register("stat", "a timer board that is not there", None, missing).unwrap();
    let error = devices.open::<()>("stat").unwrap_err();
    assert!(matches!(error, OpenError::Device { error: DeviceError::Missing { .. }, .. }));
    assert!(error.to_string().starts_with("clock device 'stat': /dev/stat does not exist"));
    assert_eq!(error.to_string().lines().count(), 1);
    // A device that neither ticks nor can be programmed.
    let useless = SimEventConfig { one_shot: None, ..SimEventConfig::exact() };
    let make = move || Ok(Box::new(SimEvent::new(&time, useless.clone())) as _);
    devices.register("useless", "nothing", None, make).unwrap();
    let error = devices.open::<()>("useless").unwrap_err();
    assert!(matches!(error, OpenError::Device { error: DeviceError::Useless(_), .. }), "{error}");
}

/// `finest` holds for every kind of device, and is refused where the device only ticks more often.
#[test]
fn the_finest_resolution_is_kept() {
    let open = |periods: Periods, finest: Span| -> Result<Device, OpenError> {
        let (time, clock) = clock();
        let config = SimEventConfig { periods, one_shot: None, ..SimEventConfig::exact() };
        let device = EventDevice::new(SimEvent::new(&time, config)).unwrap();
        Device::new("limited", clock, device, Some(finest))
    };
    // 2^9 Hz is every 1.95 ms; 2^10 Hz would be every 0.98 ms.
    let mut rtc = open(Periods::MC146818, us(1_000)).unwrap();
    assert_eq!(rtc.resolutions(), Periods::PowersOfTwo { slowest: 1, fastest: 9 });
    assert!(rtc.set_resolution(us(122), us(10)).is_err());
    assert_eq!(
        rtc.set_resolution(us(1_000), us(1_000)).unwrap(),
        Period::new(1_953_125, 1).unwrap()
    );
    // A period that is the limit itself.
    let rtc = open(Periods::MC146818, Span::from_nanos(1_953_125)).unwrap();
    assert_eq!(rtc.resolutions(), Periods::PowersOfTwo { slowest: 1, fastest: 9 });
    let multiples = Periods::Multiples { unit: period(us(1_000)), fewest: 1, most: 50 };
    let device = open(multiples, us(1_500)).unwrap();
    assert_eq!(device.resolutions().shortest(), Some(period(us(2_000))));
    for (periods, finest) in [(multiples, us(50_001)), (Periods::MC146818, us(500_001))] {
        let refused = open(periods, finest).err();
        let longest = periods.longest().unwrap();
        let error = ResolutionError::NoneSoLong { finest, longest };
        assert_eq!(refused, Some(OpenError::Resolution { name: "limited".to_owned(), error }));
    }
}
