//! The simulated hardware by itself.

use super::*;

fn sim(config: SimEventConfig) -> (Arc<SimSource>, SimEvent) {
    let time = Arc::new(SimSource::default());
    let device = SimEvent::new(&time, config);
    (time, device)
}

fn program(device: &mut SimEvent, delta_ns: u64) -> u64 {
    let at_ns = device.now_ns() + delta_ns;
    device.set_next_event(at_ns).unwrap();
    at_ns
}

/// *Time Services in RT-Mach*, section 2.2: the i8254 counts in 838 ns.
#[test]
fn the_i8254_fires_on_its_edges() {
    let (time, mut device) = sim(SimEventConfig::i8254());
    time.advance(Span::from_nanos(1));
    device.set_mode(Mode::OneShot).unwrap();
    let at = program(&mut device, 2_000);
    device.wait(None).unwrap();
    // The first edge after 1 ns is the first one; 2 us are three counts.
    assert_eq!(device.now_ns(), Period::I8254.nth_ns(4));
    assert!(device.now_ns() >= at);
    device.set_mode(Mode::Periodic(Period::I8254.times(1_193).unwrap())).unwrap();
    let begin = device.now_ns();
    for _ in 0..10_000 {
        device.wait(None).unwrap();
    }
    // 10,000 ticks of 999,847.466... ns: no error adds up.
    assert_eq!(device.now_ns() - begin, Period::I8254.nth_ns(11_930_000));
}

#[test]
fn lateness_comes_from_the_seed() {
    let late = |seed| {
        let jitter = Span::from_micros(50);
        let (_, mut device) =
            sim(SimEventConfig { seed, jitter, late: jitter, ..SimEventConfig::exact() });
        device.set_mode(Mode::OneShot).unwrap();
        let once = |_| {
            let at = program(&mut device, 1_000_000);
            device.wait(None).unwrap();
            device.now_ns() - at
        };
        (0..1_000).map(once).collect::<Vec<u64>>()
    };
    let first = late(5);
    assert!(first.iter().all(|ns| (50_000..=100_000).contains(ns)));
    assert!(first.iter().any(|ns| *ns < 51_000) && first.iter().any(|ns| *ns > 99_000));
    assert_eq!(first, late(5));
    assert_ne!(first, late(6));
}

#[test]
fn ticks_can_be_lost_late_and_early() {
    let fault = |event, kind| SimFault { event, kind };
    let us = Span::from_micros;
    let faults = vec![
        fault(1, SimFaultKind::Lost),
        fault(2, SimFaultKind::Lost),
        fault(4, SimFaultKind::Late(us(300))),
        fault(6, SimFaultKind::Early(us(300))),
    ];
    let (_, mut device) = sim(SimEventConfig { faults, ..SimEventConfig::mc146818() });
    device.set_mode(Mode::Periodic(Period::from_hertz(1_024).unwrap())).unwrap();
    let mut seen = Vec::new();
    for _ in 0..6 {
        let DeviceWaitEnd::Event { periods } = device.wait(None).unwrap() else {
            panic!("an event")
        };
        seen.push((periods, device.now_ns()));
    }
    let tick = |n: u64| Period::from_hertz(1_024).unwrap().nth_ns(n);
    let expected = [
        (1, tick(1)),
        (1, tick(4)),
        (1, tick(5) + 300_000),
        (1, tick(6)),
        (1, tick(7) - 300_000),
        (1, tick(8)),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn a_device_that_was_not_polled_reports_what_passed() {
    let (time, mut device) = sim(SimEventConfig::mc146818());
    device.set_mode(Mode::Periodic(Period::from_hertz(2).unwrap())).unwrap();
    time.advance(Span::from_secs(3));
    assert_eq!(device.wait(None), Ok(DeviceWaitEnd::Event { periods: 6 }));
    device.set_mode(Mode::Shutdown).unwrap();
    time.advance(Span::from_secs(3));
    let limit = device.now_ns() + 1_000_000_000;
    assert_eq!(device.wait(Some(limit)), Ok(DeviceWaitEnd::Limit));
    assert_eq!(device.wait(None), Err(DeviceError::NeverEnds("sim_mc146818")));
}

#[test]
fn two_devices_share_their_time() {
    let (time, mut first) = sim(SimEventConfig::exact());
    let mut second = SimEvent::new(&time, SimEventConfig::exact());
    first.set_mode(Mode::OneShot).unwrap();
    second.set_mode(Mode::OneShot).unwrap();
    program(&mut first, 5_000);
    program(&mut second, 3_000);
    first.wait(None).unwrap();
    assert_eq!((first.now_ns(), second.now_ns()), (5_000, 5_000));
    // It fired while no thread waited for it.
    assert_eq!(second.wait(None), Ok(DeviceWaitEnd::Event { periods: 1 }));
    assert_eq!(time.true_time(), Span::from_nanos(5_000));
}
