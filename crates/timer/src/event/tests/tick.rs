//! RT-Mach's change of resolution, on its two chips and on emulated ticks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hourglass_clock::source::SimSource;
use proptest::prelude::*;

use super::*;
use crate::event::sim::{SimEvent, SimEventConfig};
use crate::event::{ClockEvent, DeviceFeatures, Kick};

const SECOND: u64 = 1_000_000_000;

fn us(us: i64) -> Span {
    Span::from_micros(us)
}

fn period(span: Span) -> Period {
    Period::from_span(span).unwrap()
}

fn ticking(config: SimEventConfig) -> TickDevice {
    let time = Arc::new(SimSource::default());
    let device = EventDevice::new(SimEvent::new(&time, config)).unwrap();
    TickDevice::new(device).unwrap()
}

/// Runs to `until_ns`. Returns how many periods were reported to each user.
fn run(device: &mut TickDevice, until_ns: u64) -> BTreeMap<TickUser, u64> {
    let mut ticks = BTreeMap::new();
    loop {
        let each = |user, periods| *ticks.entry(user).or_insert(0) += periods;
        if device.wait(Some(until_ns), each).unwrap() == DeviceWaitEnd::Limit {
            return ticks;
        }
    }
}

/// *Time Services in RT-Mach*, section 2.2: "when the baseline clock on the i486 AT is directed to
/// increase its resolution to 1ms, the scheduling clock tick frequency increases by 10. To preserve
/// the illusion of the standard 10ms scheduling clock tick, the `clock_interrupt()` routine is
/// executed only at every tenth interrupt."
#[test]
fn the_scheduling_tick_is_every_tenth_interrupt() {
    let mut device = ticking(SimEventConfig::exact());
    let scheduling = device.add(period(us(10_000))).unwrap();
    assert_eq!(device.tick(), Some(period(us(10_000))));
    let user = device.add(period(us(10_000))).unwrap();
    let actual = device.set_resolution(user, us(1_000), Span::ZERO).unwrap();
    assert_eq!((actual, device.actual(user)), (period(us(1_000)), Some(actual)));
    assert_eq!(device.actual(scheduling), Some(period(us(10_000))));
    let mut interrupts = 0;
    for _ in 0..10 {
        loop {
            interrupts += 1;
            let mut now = false;
            device.wait(None, |user, _| now |= user == scheduling).unwrap();
            if now {
                break;
            }
        }
        assert_eq!(interrupts % 10, 0);
    }
    assert!(device.remove(user).unwrap());
    assert!(!device.remove(user).unwrap());
    assert_eq!(device.tick(), Some(period(us(10_000))));
    assert!(device.remove(scheduling).unwrap());
    assert_eq!(device.tick(), None);
    let end = device.device().now_ns() + SECOND;
    assert_eq!(
        device.wait(Some(end), |_, _| panic!("no handler is called")),
        Ok(DeviceWaitEnd::Limit)
    );
}

/// Section 2.2: accepted or refused by the skew, on the chips that the paper names.
#[test]
fn a_resolution_is_granted_within_its_skew_only() {
    let mut device = ticking(SimEventConfig::mc146818());
    let user = device.add(Period::from_hertz(128).unwrap()).unwrap();
    let refused = device.set_resolution(user, us(1_000), us(10)).unwrap_err();
    let ResolutionError::TooFar { nearest, .. } = refused else { panic!("{refused}") };
    assert_eq!(nearest, Period::from_hertz(1_024).unwrap());
    assert_eq!(refused.to_string().lines().count(), 1);
    // Refused: everything is as it was.
    assert_eq!(device.actual(user), Period::from_hertz(128).ok());
    assert_eq!(device.tick(), Period::from_hertz(128).ok());
    assert_eq!(device.set_resolution(user, us(1_000), us(24)), Ok(nearest));
    assert_eq!(device.device().mode(), Mode::Periodic(nearest));

    let mut device = ticking(SimEventConfig::i8254());
    let user = device.add(period(us(10_000))).unwrap();
    let actual = device.set_resolution(user, us(500), Span::from_nanos(420)).unwrap();
    assert_eq!(actual, Period::I8254.times(597).unwrap());
    let was_last = device.remove(user).unwrap();
    assert!(was_last);
    let gone = device.set_resolution(user, us(500), us(1)).unwrap_err();
    assert_eq!(gone, ResolutionError::UnknownUser);
    for (desired, skew) in [(0, 1), (-5, 1), (5, -1)] {
        let error = device.set_resolution(user, us(desired), us(skew)).unwrap_err();
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
    }
}

/// "In force within one tick".
#[test]
fn a_new_resolution_is_in_force_within_one_tick() {
    for (config, desired) in [
        (SimEventConfig::i8254(), 1_000),
        (SimEventConfig::mc146818(), 977),
        (SimEventConfig::exact(), 300),
    ] {
        let name = config.name;
        let mut device = ticking(config);
        let other = device.add(Period::from_hertz(64).unwrap()).unwrap();
        let user = device.add(Period::from_hertz(64).unwrap()).unwrap();
        // In the middle of a tick.
        device.wait(Some(5 * SECOND + 7_654_321), |_, _| ()).unwrap();
        let asked_ns = device.device().now_ns();
        let actual = device.set_resolution(user, us(desired), us(1)).unwrap();
        let mut last_ns = asked_ns;
        for _ in 0..100 {
            let mut ticks = 0;
            while ticks == 0 {
                device
                    .wait(None, |who, periods| ticks += periods * u64::from(who == user))
                    .unwrap();
            }
            let now_ns = device.device().now_ns();
            assert_eq!(ticks, 1, "{name}");
            assert!(now_ns - last_ns <= actual.nth_ns(1) + 1, "{name}: {last_ns} {now_ns}");
            last_ns = now_ns;
        }
        assert_eq!(device.actual(other), Period::from_hertz(64).ok());
    }
}

/// Each change begins the device's period anew; changes that come faster than it ticks must not
/// stop the time of the users.
#[test]
fn changes_before_every_tick_starve_no_user() {
    let mut device = ticking(SimEventConfig::exact());
    let steady = device.add(period(us(10_000))).unwrap();
    let restless = device.add(period(us(8_000))).unwrap();
    let mut ticks = 0;
    for change in 0..200 {
        let desired = if change % 2 == 0 { us(9_000) } else { us(8_000) };
        device.set_resolution(restless, desired, Span::ZERO).unwrap();
        let until_ns = device.device().now_ns() + 5_000_000;
        ticks += run(&mut device, until_ns).get(&steady).copied().unwrap_or(0);
    }
    assert!((98..=100).contains(&ticks), "told {ticks} times in a second");
}

/// Section 2.2: "when the interrupt frequency is not an integral divisor of the scheduling clock
/// tick frequency, the scheduling clock tick will be temporarily skewed". In the long run it is not.
#[test]
fn a_period_that_is_no_multiple_is_skewed_but_keeps_its_rate() {
    let mut device = ticking(SimEventConfig::i8254());
    let scheduling = device.add(period(us(10_000))).unwrap();
    let user = device.add(period(us(10_000))).unwrap();
    let actual = device.set_resolution(user, us(1_000), us(1)).unwrap();
    let tick_ns = actual.nth_ns(1);
    let mut count = 0;
    let mut skewed = 0;
    while device.device().now_ns() < 600 * SECOND {
        let mut now = 0;
        device.wait(None, |who, periods| now += periods * u64::from(who == scheduling)).unwrap();
        if now > 0 {
            count += now;
            let late = device.device().now_ns() - count * 10_000_000;
            assert!(late < tick_ns, "{late}");
            skewed += u64::from(late > 1_000);
        }
    }
    assert_eq!(count, 60_000);
    assert!(skewed > 50_000, "the periods are incommensurable: {skewed}");
}

/// An hour in which users come, go and change their resolutions: the others keep their rates.
#[test]
fn users_keep_their_rates_whatever_the_others_do() {
    let mut device = ticking(SimEventConfig { seed: 4, jitter: us(5), ..SimEventConfig::i8254() });
    let steady = device.add(period(us(10_000))).unwrap();
    let odd = device.add(Period::from_hertz(60).unwrap()).unwrap();
    let guest = device.add(period(us(50_000))).unwrap();
    let mut ticks: BTreeMap<TickUser, u64> = BTreeMap::new();
    for turn in 1..=360u64 {
        let desired = us(200 + (turn as i64 * 7_919) % 20_000);
        device.set_resolution(guest, desired, us(1)).unwrap();
        for (user, more) in run(&mut device, turn * 10 * SECOND + 3_000_000) {
            *ticks.entry(user).or_insert(0) += more;
        }
    }
    // The end lies 3 ms after a point of both; a coarse tick may find it up to a tick later.
    let (steady, odd) = (ticks[&steady], ticks[&odd]);
    assert!((359_998..=360_000).contains(&steady), "{steady}");
    assert!((215_998..=216_000).contains(&odd), "{odd}");
}

/// A device that refuses to tick.
struct Stubborn {
    device: SimEvent,
    refuses: Arc<AtomicBool>,
}

impl ClockEvent for Stubborn {
    fn facts(&self) -> DeviceFeatures {
        self.device.facts()
    }
    fn now_ns(&self) -> u64 {
        self.device.now_ns()
    }
    fn set_mode(&mut self, mode: Mode) -> Result<(), DeviceError> {
        if self.refuses.load(Ordering::Relaxed) {
            return Err(DeviceError::Os { device: "stubborn", errno: 5 });
        }
        self.device.set_mode(mode)
    }
    fn set_next_event(&mut self, at_ns: u64) -> Result<(), DeviceError> {
        self.device.set_next_event(at_ns)
    }
    fn wait(&mut self, limit_ns: Option<u64>) -> Result<DeviceWaitEnd, DeviceError> {
        self.device.wait(limit_ns)
    }
    fn kick(&self) -> Kick {
        self.device.kick()
    }
}

#[test]
fn what_the_device_refuses_changes_nothing_for_its_users() {
    let refuses = Arc::new(AtomicBool::new(false));
    let time = Arc::new(SimSource::default());
    let device = SimEvent::new(&time, SimEventConfig::i8254());
    let device = EventDevice::new(Stubborn { device, refuses: Arc::clone(&refuses) }).unwrap();
    let mut device = TickDevice::new(device).unwrap();
    let user = device.add(period(us(10_000))).unwrap();
    let tick = device.tick();
    refuses.store(true, Ordering::Relaxed);
    let error = device.add(period(us(1_000))).unwrap_err();
    assert!(matches!(error, ResolutionError::Refused(_)), "{error}");
    assert!(error.to_string().contains("stubborn") && error.to_string().lines().count() == 1);
    assert_eq!(device.tick(), tick);
    assert!(device.set_resolution(user, us(1_000), us(1)).is_err());
    assert_eq!((device.tick(), device.actual(user)), (tick, Some(period(us(10_000)))));
    refuses.store(false, Ordering::Relaxed);
    // The device ticks every 9,999.3 us: the hundredth point is found 9.93 ms late.
    assert_eq!(run(&mut device, SECOND + 9_950_000), BTreeMap::from([(user, 100)]));
}

#[test]
fn a_rate_that_the_device_does_not_reach_is_refused() {
    let mut device = ticking(SimEventConfig::mc146818());
    let error = device.add(period(us(100))).unwrap_err();
    let shortest = Period::from_hertz(8_192).unwrap();
    assert_eq!(error, ResolutionError::TooShort { asked: period(us(100)), shortest });
    assert_eq!(device.tick(), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The multiplexer against counting by hand: every user, whatever the ticks.
    #[test]
    fn every_user_is_notified_as_often_as_its_period_passes(
        periods in prop::collection::vec((1_000_000u64..90_000_000, 1u32..50), 1..6),
        seed: u64,
    ) {
        let jitter = us(50);
        let mut device = ticking(SimEventConfig { seed, jitter, ..SimEventConfig::exact() });
        let users: Vec<(TickUser, Period)> = periods
            .iter()
            .map(|(ns, per)| Period::new(ns * u64::from(*per) + 1, *per).unwrap())
            .map(|period| (device.add(period).unwrap(), period))
            .collect();
        let mut ticks: BTreeMap<TickUser, u64> = BTreeMap::new();
        for _ in 0..2_000 {
            device.wait(None, |user, periods| *ticks.entry(user).or_insert(0) += periods).unwrap();
            let now_ns = device.device().now_ns();
            for (user, period) in &users {
                let exact = period.passed(now_ns);
                prop_assert_eq!(ticks.get(user).copied().unwrap_or(0), exact);
            }
        }
    }
}
