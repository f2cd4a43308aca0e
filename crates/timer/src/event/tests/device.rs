//! Devices under management, in virtual time.

use std::sync::Arc;

use hourglass_clock::source::SimSource;
use hourglass_time::Span;
use proptest::prelude::*;

use super::*;
use crate::event::Periods;
use crate::event::sim::{ExternalEvent, SimEvent, SimEventConfig, SimFault, SimFaultKind};

const HOUR: u64 = 3_600_000_000_000;
const EVENT: DeviceWaitEnd = DeviceWaitEnd::Event { periods: 1 };

fn device(config: SimEventConfig) -> (Arc<SimSource>, EventDevice) {
    let time = Arc::new(SimSource::default());
    let device = EventDevice::new(SimEvent::new(&time, config)).unwrap();
    (time, device)
}

fn one_shot(config: SimEventConfig) -> (Arc<SimSource>, EventDevice) {
    let (time, mut device) = device(config);
    device.set_mode(Mode::OneShot).unwrap();
    (time, device)
}

fn ms(ms: i64) -> Span {
    Span::from_millis(ms)
}

#[test]
fn an_event_comes_at_its_time_once() {
    let (_, mut device) = one_shot(SimEventConfig::exact());
    device.set_next_event(Some(5_000)).unwrap();
    device.set_next_event(Some(5_000)).unwrap();
    assert_eq!(device.wait(None), Ok(EVENT));
    assert_eq!(device.now_ns(), 5_000);
    assert_eq!(device.counts().programmed, 1);
    assert_eq!(device.wait(None), Err(DeviceError::NeverEnds("sim")));
    assert_eq!(device.wait(Some(9_000)), Ok(DeviceWaitEnd::Limit));
    assert_eq!(device.now_ns(), 9_000);
}

/// The kernel takes 25 us to wake for the past, so it is not asked.
#[test]
fn the_past_is_refused_and_programs_nothing() {
    let (time, mut device) = one_shot(SimEventConfig::exact());
    time.advance(Span::from_nanos(100));
    for at in [0, 40, 100] {
        let late_ns = 100 - at;
        assert_eq!(device.set_next_event(Some(at)), Err(ProgramError::Past { late_ns }));
    }
    assert_eq!(device.counts().programmed, 0);
    // An event that was programmed before is gone: the caller handles the earlier one now.
    device.set_next_event(Some(200)).unwrap();
    assert!(device.set_next_event(Some(50)).is_err());
    assert_eq!(device.wait(Some(300)), Ok(DeviceWaitEnd::Limit));
}

#[test]
fn nothing_wanted_is_nothing_programmed() {
    let (_, mut device) = one_shot(SimEventConfig::exact());
    device.set_next_event(None).unwrap();
    device.set_next_event(Some(1_000)).unwrap();
    device.set_next_event(None).unwrap();
    assert_eq!(device.wait(Some(HOUR)), Ok(DeviceWaitEnd::Limit));
    device.set_next_event(Some(HOUR + 1)).unwrap();
    device.set_mode(Mode::Shutdown).unwrap();
    assert_eq!(device.wait(Some(2 * HOUR)), Ok(DeviceWaitEnd::Limit));
    assert_eq!(device.set_next_event(Some(3 * HOUR)), Err(DeviceError::NotOneShot("sim").into()));
}

/// *Hrtimers and Beyond*, section 6.1: `min_delta_ns` and `max_delta_ns`.
#[test]
fn the_limits_of_a_device_are_not_seen_outside() {
    // 16 bits of 838 ns: 54.9 ms at most, 1.7 us at least.
    let (_, mut device) = one_shot(SimEventConfig::i8254());
    assert_eq!(device.facts().min_delta_ns, 1_677);
    assert_eq!(device.facts().max_delta_ns, 54_925_401);
    let second = 1_000_000_000;
    device.set_next_event(Some(second)).unwrap();
    assert_eq!(device.wait(None), Ok(EVENT));
    let late = device.now_ns() - second;
    assert!(late < 2 * 839, "{late}");
    assert_eq!(device.counts().steps, 18);
    let near = device.now_ns() + 1;
    device.set_next_event(Some(near)).unwrap();
    assert_eq!(device.wait(None), Ok(EVENT));
    assert!(device.now_ns() >= near + 1_676);
    assert_eq!(device.counts().early, 0);
    // Exactly at the limits.
    for delta in [1_677, 54_925_401] {
        let at = device.now_ns() + delta;
        let steps = device.counts().steps;
        device.set_next_event(Some(at)).unwrap();
        assert_eq!(device.wait(None), Ok(EVENT));
        let late = device.now_ns().checked_sub(at);
        assert!(late.is_some_and(|late| late < 2 * 839), "{delta}: {late:?}");
        assert_eq!(device.counts().steps, steps, "{delta}");
    }
}

/// Section 6.1: "support code for clock event sources which do not provide a periodic mode".
#[test]
fn an_emulated_period_is_exact_in_the_long_run() {
    let config = SimEventConfig {
        seed: 11,
        late: Span::from_micros(30),
        jitter: Span::from_micros(200),
        ..SimEventConfig::exact()
    };
    let (_, mut device) = device(config);
    // 1024 Hz: 976,562.5 ns.
    device.set_mode(Mode::Periodic(Period::from_hertz(1_024).unwrap())).unwrap();
    let mut reported = 0;
    while device.now_ns() < HOUR {
        let DeviceWaitEnd::Event { periods } = device.wait(None).unwrap() else {
            panic!("only events")
        };
        reported += periods;
        let due = u128::from(device.now_ns()) * 1_024 / 1_000_000_000;
        assert_eq!(u128::from(reported), due, "seed 11");
    }
    assert_eq!(reported, 3_600 * 1_024);
}

#[test]
fn periods_that_were_missed_are_counted_not_caught_up() {
    let (time, mut device) = device(SimEventConfig::exact());
    device.set_mode(Mode::Periodic(Period::from_span(ms(10)).unwrap())).unwrap();
    time.advance(ms(35));
    assert_eq!(device.wait(None), Ok(DeviceWaitEnd::Event { periods: 3 }));
    assert_eq!(device.wait(None), Ok(EVENT));
    assert_eq!(device.now_ns(), 40_000_000);
}

#[test]
fn a_device_that_ticks_by_itself_does() {
    let (_, mut device) = device(SimEventConfig::mc146818());
    let hertz = |hz| Period::from_hertz(hz).unwrap();
    device.set_mode(Mode::Periodic(hertz(64))).unwrap();
    assert_eq!(device.mode(), Mode::Periodic(hertz(64)));
    for tick in 1..=64 {
        assert_eq!(device.wait(None), Ok(EVENT));
        assert_eq!(device.now_ns(), 15_625_000 * tick);
    }
    assert_eq!(device.counts().programmed, 0);
    assert_eq!(device.set_mode(Mode::OneShot), Err(DeviceError::NoOneShot("sim_mc146818")));
    let refused = device.set_mode(Mode::Periodic(hertz(100))).unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("7812500 ns") && text.lines().count() == 1, "{text}");
    // What was refused changed nothing.
    assert_eq!(device.wait(None), Ok(EVENT));
    assert_eq!(device.now_ns(), 15_625_000 * 65);
}

#[test]
fn a_period_shorter_than_the_device_is_refused() {
    let config = SimEventConfig { periods: Periods::None, ..SimEventConfig::i8254() };
    let (_, mut device) = device(config);
    let asked = Period::from_span(Span::from_nanos(1_676)).unwrap();
    let refused = device.set_mode(Mode::Periodic(asked)).unwrap_err();
    assert!(matches!(refused, DeviceError::TooShort { min_delta_ns: 1_677, .. }), "{refused}");
}

/// A device against its contract: nothing early is reported, and early firings are counted.
#[test]
fn a_device_that_fires_early_is_programmed_again() {
    let fault = SimFault { event: 0, kind: SimFaultKind::Early(Span::from_micros(10)) };
    let config = SimEventConfig { faults: vec![fault], ..SimEventConfig::exact() };
    let (_, mut device) = one_shot(config);
    device.set_next_event(Some(50_000)).unwrap();
    assert_eq!(device.wait(None), Ok(EVENT));
    assert_eq!((device.now_ns(), device.counts().early), (50_000, 1));
}

#[test]
fn a_lost_event_is_found_by_the_limit() {
    let fault = SimFault { event: 0, kind: SimFaultKind::Lost };
    let config = SimEventConfig { faults: vec![fault], ..SimEventConfig::exact() };
    let (_, mut device) = one_shot(config);
    device.set_next_event(Some(50_000)).unwrap();
    assert_eq!(device.wait(Some(60_000)), Ok(DeviceWaitEnd::Limit));
    // It can be programmed again, for the same time or another.
    assert!(device.set_next_event(Some(70_000)).is_ok());
    assert_eq!(device.wait(None), Ok(EVENT));
}

#[test]
fn kicks_and_signals_leave_the_event_as_it_is() {
    let at = |us| Span::from_micros(us);
    let outside = vec![(at(20), ExternalEvent::Kick), (at(30), ExternalEvent::Signal)];
    let (_, mut device) = one_shot(SimEventConfig { outside, ..SimEventConfig::exact() });
    device.kick().kick();
    device.kick().kick();
    device.set_next_event(Some(50_000)).unwrap();
    let woken = [device.wait(None), device.wait(None), device.wait(None), device.wait(None)];
    assert_eq!(
        woken,
        [
            Ok(DeviceWaitEnd::Kicked),
            Ok(DeviceWaitEnd::Kicked),
            Ok(DeviceWaitEnd::Signal),
            Ok(EVENT)
        ]
    );
    assert_eq!(device.now_ns(), 50_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Hours of random programming on devices of every granularity: never early, and late by no
    /// more than the granularity and the jitter.
    #[test]
    fn never_early_on_any_device(
        seed: u64,
        which in 0..2usize,
        jitter in 0..100_000i64,
        deltas in prop::collection::vec(1..200_000_000u64, 1..200),
    ) {
        let base = [SimEventConfig::exact(), SimEventConfig::i8254()][which].clone();
        let config = SimEventConfig { seed, jitter: Span::from_nanos(jitter), ..base };
        let (_, mut device) = one_shot(config);
        for delta in deltas {
            let at = device.now_ns() + delta;
            device.set_next_event(Some(at)).unwrap();
            prop_assert_eq!(device.wait(None), Ok(EVENT));
            let late = device.now_ns().checked_sub(at);
            let bound = jitter as u64 + device.facts().min_delta_ns + 2 * 839;
            prop_assert!(late.is_some_and(|late| late <= bound), "{late:?} {bound}");
        }
        prop_assert_eq!(device.counts().early, 0);
    }
}
