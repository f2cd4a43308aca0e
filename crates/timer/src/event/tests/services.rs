//! Several services on one device.

use std::sync::Arc;

use hourglass_clock::source::SimSource;
use hourglass_time::Span;

use super::*;
use crate::event::sim::{SimEvent, SimEventConfig};

const SECOND: u64 = 1_000_000_000;

fn served(config: SimEventConfig, tick_hz: u32) -> ServiceDevice {
    let time = Arc::new(SimSource::default());
    let device = EventDevice::new(SimEvent::new(&time, config)).unwrap();
    ServiceDevice::new(device, hertz(tick_hz)).unwrap()
}

fn hertz(hz: u32) -> Period {
    Period::from_hertz(hz).unwrap()
}

/// Counts what was due until `until_ns`, and checks that nothing is early.
fn run(device: &mut ServiceDevice, until_ns: u64) -> [u64; 4] {
    let mut counts = [0; 4];
    while let ServiceWait { reason: DeviceWaitEnd::Event { .. }, services: due } =
        device.wait(Some(until_ns)).unwrap()
    {
        assert!(due.is_due());
        for (count, service) in counts.iter_mut().zip(Service::ALL) {
            *count += due.times(service);
        }
    }
    counts
}

/// *Hrtimers and Beyond*, section 8: "a single clock event source to schedule high resolution
/// timer and periodic events e.g. jiffies tick, profiling, process accounting"; "this has been
/// proved to work with the PIT on i386".
#[test]
fn one_device_serves_all_four() {
    for config in [SimEventConfig::exact(), SimEventConfig::i8254()] {
        let name = config.name;
        let late = Span::from_micros(40);
        let mut device = served(SimEventConfig { seed: 2, jitter: late, ..config }, 250);
        device.set_resolution(Resolution::High).unwrap();
        device.set_period(Service::Tick, Some(hertz(250))).unwrap();
        device.set_period(Service::Accounting, Some(hertz(100))).unwrap();
        device.set_period(Service::Profiling, Some(hertz(1_024))).unwrap();
        device.set_next_event(Some(1_234_567));
        let mut when = None;
        let mut counts = [0u64; 4];
        loop {
            let ServiceWait { reason: woken, services: due } =
                device.wait(Some(60 * SECOND + 500_000)).unwrap();
            if woken == DeviceWaitEnd::Limit {
                break;
            }
            for (count, service) in counts.iter_mut().zip(Service::ALL) {
                *count += due.times(service);
            }
            if due.times(Service::NextEvent) > 0 {
                when = Some(device.device().now_ns());
            }
        }
        // A minute of each, exactly.
        assert_eq!(counts, [15_000, 6_000, 61_440, 1], "{name}");
        let late = when.unwrap() - 1_234_567;
        assert!(late < 45_000, "{name}: {late}");
        assert!(device.services().next_event_ns.is_none());
    }
}

/// Section 7 there: without high resolution, timers "are bound to jiffy tick boundaries again".
#[test]
fn bound_to_a_tick_the_next_event_waits_for_it() {
    let mut device = served(SimEventConfig::exact(), 250);
    device.set_next_event(Some(1_000_000));
    let ServiceWait { services: due, .. } = device.wait(None).unwrap();
    assert_eq!((due.times(Service::NextEvent), device.device().now_ns()), (1, 4_000_000));
    // And in high resolution it does not.
    device.set_resolution(Resolution::High).unwrap();
    device.set_next_event(Some(5_000_000));
    let ServiceWait { services: due, .. } = device.wait(None).unwrap();
    assert_eq!((due.times(Service::NextEvent), device.device().now_ns()), (1, 5_000_000));
}

/// Section 9 there: dynamic tick.
#[test]
fn a_device_without_a_request_sleeps() {
    let mut device = served(SimEventConfig::exact(), 250);
    device.set_resolution(Resolution::High).unwrap();
    let before = device.device().counts().programmed;
    device.set_next_event(Some(3_600 * SECOND));
    assert_eq!(run(&mut device, 7_200 * SECOND), [0, 0, 0, 1]);
    assert_eq!(device.device().now_ns(), 7_200 * SECOND);
    assert_eq!(device.device().counts().programmed - before, 1);
}

/// The same section: "skipping ticks". Each tick that nothing waits for is counted; in high
/// resolution no tick is skipped.
#[test]
fn ticks_that_are_skipped_are_counted() {
    let mut device = served(SimEventConfig::exact(), 250);
    device.set_next_event(Some(SECOND));
    assert_eq!(run(&mut device, SECOND), [0, 0, 0, 1]);
    // 250 ticks, the last of which was served.
    assert_eq!(device.ticks_skipped(), 249);
    // Two of the next ten are served.
    device.set_period(Service::Tick, Some(hertz(50))).unwrap();
    assert_eq!(run(&mut device, SECOND + SECOND / 25), [2, 0, 0, 0]);
    assert_eq!(device.ticks_skipped(), 249, "50 Hz is the tick now, and each is wanted");
    device.set_resolution(Resolution::High).unwrap();
    device.set_period(Service::Tick, None).unwrap();
    device.set_next_event(Some(3 * SECOND));
    assert_eq!(run(&mut device, 3 * SECOND), [0, 0, 0, 1]);
    assert_eq!(device.ticks_skipped(), 249);
    device.set_resolution(Resolution::TickBound).unwrap();
    device.set_next_event(Some(4 * SECOND));
    assert_eq!(run(&mut device, 4 * SECOND), [0, 0, 0, 1]);
    assert_eq!(device.ticks_skipped(), 249 + 249);
}

#[test]
fn the_device_is_programmed_only_when_the_first_of_all_changes() {
    let mut device = served(SimEventConfig::exact(), 250);
    device.set_resolution(Resolution::High).unwrap();
    let before = device.device().counts().programmed;
    device.set_period(Service::Tick, Some(hertz(1_000))).unwrap();
    for turn in 0..100 {
        // All behind the tick at 1 ms.
        device.set_next_event(Some(2_000_000 + turn));
        assert_eq!(device.wait(Some(turn * 100)).unwrap().reason, DeviceWaitEnd::Limit);
    }
    assert_eq!(device.device().counts().programmed - before, 1);
}

#[test]
fn what_is_past_is_due_at_once() {
    let mut device = served(SimEventConfig::exact(), 250);
    device.set_resolution(Resolution::High).unwrap();
    let _ = device.wait(Some(500)).unwrap();
    let before = device.device().counts().programmed;
    device.set_next_event(Some(400));
    let ServiceWait { services: due, .. } = device.wait(None).unwrap();
    assert_eq!((due.times(Service::NextEvent), device.device().now_ns()), (1, 500));
    assert_eq!(device.device().counts().programmed, before);
}

/// A change of resolution, as when a device or a source is lost, costs no service a period.
#[test]
fn no_period_is_lost_when_the_resolution_changes() {
    let mut device = served(SimEventConfig { seed: 9, ..SimEventConfig::exact() }, 100);
    device.set_period(Service::Tick, Some(hertz(100))).unwrap();
    device.set_period(Service::Accounting, Some(hertz(7))).unwrap();
    let mut counts = [0u64; 4];
    for turn in 1..=100 {
        let to = if turn % 2 == 0 { Resolution::TickBound } else { Resolution::High };
        device.set_resolution(to).unwrap();
        assert_eq!(device.resolution(), to);
        let more = run(&mut device, turn * 123_456_789);
        counts.iter_mut().zip(more).for_each(|(count, more)| *count += more);
    }
    // Ticks on a grid that was begun anew find what is due up to a tick later.
    let seconds_n = 100 * 123_456_789u64;
    let exact = [seconds_n / 10_000_000, seconds_n * 7 / SECOND];
    assert!(counts[0] == exact[0] || counts[0] + 1 == exact[0], "{counts:?} {exact:?}");
    assert!(counts[1] == exact[1] || counts[1] + 1 == exact[1], "{counts:?} {exact:?}");
}

#[test]
fn a_device_that_only_ticks_serves_at_its_ticks() {
    // 10 ms asked for, 128 Hz is the longest of its periods that is not above it.
    let mut device = served(SimEventConfig::mc146818(), 100);
    assert!(device.set_resolution(Resolution::High).is_err());
    assert_eq!(device.resolution(), Resolution::TickBound);
    device.set_period(Service::Tick, Some(hertz(100))).unwrap();
    device.set_period(Service::Accounting, Some(hertz(10))).unwrap();
    assert_eq!(run(&mut device, 3_600 * SECOND), [360_000, 36_000, 0, 0]);
    // Faster than it can: refused, and the rest goes on.
    let fast = device.set_period(Service::Profiling, Some(hertz(100_000)));
    assert!(fast.is_err());
    assert_eq!(run(&mut device, 3_601 * SECOND)[0], 100);
}
