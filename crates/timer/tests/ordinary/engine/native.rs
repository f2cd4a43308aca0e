//! Engines on this machine's devices, one-sided: never early on any clock.

use std::thread;
use std::time::Duration;

use hourglass_timer::engine::OsTimes;
use hourglass_timer::event::native::{BusyEvent, PosixTimerEvent, SleepEvent, TimerFdEvent};

use super::*;

const PATIENCE: u64 = 20_000 * MS as u64;

fn devices() -> [EventDevice; 4] {
    [
        EventDevice::new(TimerFdEvent::new().unwrap()).unwrap(),
        EventDevice::new(SleepEvent::new()).unwrap(),
        EventDevice::new(PosixTimerEvent::new().unwrap()).unwrap(),
        EventDevice::new(BusyEvent::new()).unwrap(),
    ]
}

/// A precise engine: on a busy machine the device is tried out more often than that.
fn on(device: EventDevice) -> Engine<u32> {
    let mut engine = Engine::new(DEFAULT_TICK, device, OsTimes::new()).unwrap();
    engine.source_valid();
    let tried: Vec<_> = (0..100).map(|_| engine.validate()).take_while(Result::is_err).collect();
    assert_eq!(engine.resolution(), Resolution::High, "{:?}", tried.last());
    engine
}

fn run(engine: &mut Engine<u32>, count: usize) {
    let limit_ns = engine.now().device_ns() + PATIENCE;
    let times = OsTimes::new();
    let mut seen = 0;
    while seen < count {
        engine.wait(Some(limit_ns)).unwrap();
        assert!(engine.now().device_ns() < limit_ns, "{seen} of {count} expired");
        seen += engine.expire(100, |_, fired| {
            let now_ns = times.now().ns(fired.base);
            assert!(
                fired.cause == Cause::ClockSet || fired.expiry_ns <= now_ns,
                "early: {fired:?}"
            );
        });
    }
}

#[test]
fn timers_of_this_machine_are_never_early() {
    for device in devices() {
        let mut engine = on(device);
        let now = engine.now();
        for i in 0..40 {
            let base = ClockBase::ALL[i as usize % 4];
            let expiry_ns = now.ns(base) + 500_000 + i64::from(i) * 333_333;
            armed(&mut engine, base, i, expiry_ns);
        }
        run(&mut engine, 40);
        assert_eq!(engine.resolution(), Resolution::High);
        // And bound to its tick.
        engine.source_lost();
        let now = engine.now();
        for i in 0..8 {
            let base = ClockBase::ALL[i as usize % 4];
            armed(&mut engine, base, i, now.ns(base) + MS + i64::from(i) * 1_333_333);
        }
        run(&mut engine, 8);
        assert_eq!(engine.resolution(), Resolution::TickBound);
    }
}

#[test]
fn an_engine_of_this_machine_is_kicked_from_another_thread() {
    let sleep = EventDevice::new(SleepEvent::new()).unwrap();
    let mut engine: Engine<u32> = Engine::native(DEFAULT_TICK, sleep).unwrap();
    let kick = engine.kick();
    let handed = Arc::new(AtomicU64::new(0));
    let hand = Arc::clone(&handed);
    let other = thread::spawn(move || {
        thread::sleep(Duration::from_millis(5));
        hand.store(7, Ordering::Release);
        kick.kick();
    });
    let limit_ns = engine.now().device_ns() + PATIENCE;
    let mut got = 0;
    while got == 0 {
        let look = || handed.swap(0, Ordering::Acquire);
        engine
            .wait_with(Some(limit_ns), |_, _, _| {
                got = got.max(look());
                false
            })
            .unwrap();
        got = got.max(look());
        assert!(engine.now().device_ns() < limit_ns, "no kick came");
    }
    assert_eq!(got, 7);
    other.join().unwrap();
}

#[test]
fn a_device_is_tried_out_by_its_engine() {
    for device in devices() {
        let name = device.facts().name;
        let mut engine: Engine<u32> = Engine::native(DEFAULT_TICK, device).unwrap();
        // A busy machine may fail it; otherwise the engine is precise.
        let expected = match engine.validate() {
            Ok(_) => Resolution::High,
            Err(_) => Resolution::TickBound,
        };
        assert_eq!(engine.resolution(), expected, "{name}");
    }
}
