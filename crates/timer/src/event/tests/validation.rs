//! Validation of devices and sources that are fit, and of ones that are not.

use std::sync::Arc;

use hourglass_clock::ClockSource;
use hourglass_clock::source::SimSource;

use super::*;
use crate::event::sim::{ExternalEvent, SimEvent, SimEventConfig, SimFault, SimFaultKind};

fn try_out(config: SimEventConfig) -> (EventDevice, Result<ValidationReport, InvalidDevice>) {
    let time = Arc::new(SimSource::default());
    let mut device = EventDevice::new(SimEvent::new(&time, config)).unwrap();
    let result = validate_device(&mut device);
    assert_eq!(device.mode(), Mode::Shutdown);
    (device, result)
}

fn with(kind: SimFaultKind, events: &[u64]) -> SimEventConfig {
    let faults = events.iter().map(|event| SimFault { event: *event, kind }).collect();
    SimEventConfig { faults, ..SimEventConfig::exact() }
}

#[test]
fn a_device_that_keeps_its_word_is_fit() {
    let us = Span::from_micros;
    let (_, result) = try_out(SimEventConfig {
        seed: 1,
        late: us(20),
        jitter: us(60),
        ..SimEventConfig::exact()
    });
    let seen = result.unwrap();
    assert_eq!((seen.events, seen.excused), (8, 0));
    assert!(seen.least_late_ns >= 20_000 && seen.most_late_ns <= 80_000, "{seen:?}");
    // Coarse is fit, too: 838 ns.
    let own = SimEventConfig { per_cpu: true, ..SimEventConfig::i8254() };
    assert!(try_out(own).1.unwrap().most_late_ns < 1_700);
}

/// *Hrtimers and Beyond*, section 8: "high resolution timer does not support SMP machines which
/// have only global clock event sources".
#[test]
fn devices_of_the_system_and_devices_that_only_tick_are_not() {
    let global = try_out(SimEventConfig::i8254()).1.unwrap_err();
    assert_eq!(global, InvalidDevice::Global("sim_i8254"));
    let ticks = SimEventConfig { per_cpu: true, ..SimEventConfig::mc146818() };
    assert_eq!(try_out(ticks).1.unwrap_err(), InvalidDevice::NoOneShot("sim_mc146818"));
}

#[test]
fn one_event_that_is_early_or_lost_is_one_too_many() {
    let early = SimFaultKind::Early(Span::from_nanos(1));
    for (kind, event, expected) in [
        (early, 5, InvalidDevice::Early { device: "sim", event: 5 }),
        (SimFaultKind::Lost, 7, InvalidDevice::Lost { device: "sim", event: 7 }),
    ] {
        assert_eq!(try_out(with(kind, &[event])).1.unwrap_err(), expected);
    }
}

#[test]
fn a_few_late_events_are_excused() {
    let late = SimFaultKind::Late(Span::from_millis(4));
    let (_, excused) = try_out(with(late, &[0, 3, 4]));
    assert_eq!(excused.unwrap().excused, 3);
    let (_, refused) = try_out(with(late, &[0, 3, 4, 6]));
    let error = refused.unwrap_err();
    assert!(matches!(error, InvalidDevice::Late { events: 4, worst_ns: 4_000_000, .. }), "{error}");
    // A device bound to a tick of 4 ms is late by 2 ms in the mean.
    let mean = Span::from_millis(4);
    let (_, tick_bound) =
        try_out(SimEventConfig { seed: 3, jitter: mean, ..SimEventConfig::exact() });
    assert!(tick_bound.is_err());
}

#[test]
fn kicks_and_signals_do_not_disturb_and_kicks_are_not_lost() {
    let at = Span::from_micros;
    let outside = vec![(at(100), ExternalEvent::Signal), (at(900), ExternalEvent::Kick)];
    let (mut device, result) = try_out(SimEventConfig { outside, ..SimEventConfig::exact() });
    assert!(result.is_ok());
    assert_eq!(device.wait(None), Ok(DeviceWaitEnd::Kicked));
}

fn source(hertz: u64, cost_ns: i64) -> SimSource {
    SimSource::new(hourglass_clock::source::sim::SimConfig {
        hertz,
        read_cost: Span::from_nanos(cost_ns),
        ..Default::default()
    })
}

#[test]
fn sources_are_tried_too() {
    let fine = source(1_000_000_000, 20);
    assert_eq!(validate_source(|| fine.read()), Ok(20));
    // A tick of 4 ms, read as nanoseconds.
    let coarse = source(250, 1_000);
    let error = validate_source(|| coarse.read() * 4_000_000).unwrap_err();
    assert!(matches!(error, InvalidSource::Coarse { step_ns: 4_000_000 }), "{error}");
    let still = source(1_000_000_000, 0);
    assert_eq!(validate_source(|| still.read()), Err(InvalidSource::Still));
    let mut count = 100;
    let back = validate_source(|| {
        count -= 3;
        count
    });
    assert_eq!(back, Err(InvalidSource::Backwards { by_ns: 3 }));
}
