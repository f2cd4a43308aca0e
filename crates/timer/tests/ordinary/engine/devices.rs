//! Devices: fit, late, broken, failing; and those that move from thread to thread.

use super::*;

fn device(config: SimEventConfig) -> (SimTimes, EventDevice) {
    let times = machine::clocks();
    let device = machine::device(&times, config);
    (times, device)
}

fn untried(config: SimEventConfig) -> (Engine<u32>, SimTimes) {
    let (times, device) = device(config);
    let mut engine = Engine::new(DEFAULT_TICK, device, times.clone()).unwrap();
    engine.source_valid();
    (engine, times)
}

/// Section 8 there: both layers, in whatever order they announce; losing either falls back.
#[test]
fn high_resolution_takes_a_validated_device_and_a_validated_source() {
    for source_first in [true, false] {
        let (times, device) = device(SimEventConfig::exact());
        let mut engine = Engine::<u32>::new(DEFAULT_TICK, device, times).unwrap();
        if source_first {
            engine.source_valid();
        }
        assert_eq!(engine.resolution(), Resolution::TickBound);
        engine.validate().unwrap();
        if !source_first {
            assert_eq!(engine.resolution(), Resolution::TickBound);
            engine.source_valid();
        }
        assert_eq!(engine.resolution(), Resolution::High);
        engine.source_lost();
        assert_eq!(engine.resolution(), Resolution::TickBound);
    }
}

struct Failing(SimEvent, u32);

impl ClockEvent for Failing {
    fn facts(&self) -> DeviceFeatures {
        DeviceFeatures { name: "failing", ..self.0.facts() }
    }
    fn now_ns(&self) -> u64 {
        self.0.now_ns()
    }
    fn set_mode(&mut self, mode: Mode) -> Result<(), DeviceError> {
        self.0.set_mode(mode)
    }
    fn set_next_event(&mut self, at_ns: u64) -> Result<(), DeviceError> {
        self.0.set_next_event(at_ns)
    }
    fn wait(&mut self, limit_ns: Option<u64>) -> Result<DeviceWaitEnd, DeviceError> {
        self.1 += 1;
        if self.1 > 2 {
            return Err(DeviceError::Os { device: "failing", errno: 5 });
        }
        self.0.wait(limit_ns)
    }
    fn kick(&self) -> Kick {
        self.0.kick()
    }
}

#[test]
fn a_device_that_fails_serves_no_more() {
    let times = machine::clocks();
    let failing = Failing(SimEvent::new(times.source(), SimEventConfig::exact()), 0);
    let failing = EventDevice::new(failing).unwrap();
    let mut engine = Engine::new(DEFAULT_TICK, failing, times.clone()).unwrap();
    let timer = armed(&mut engine, ClockBase::Monotonic, 1, HOUR);
    engine.wait(Some(1)).unwrap();
    engine.wait(Some(2)).unwrap();
    let failed = DeviceError::Os { device: "failing", errno: 5 };
    assert_eq!(engine.wait(Some(3)), Err(EngineError::Device(failed)));
    assert_eq!(engine.wait(Some(9)), Err(EngineError::NoDevice));
    assert!(engine.device().is_none());
    assert_eq!((engine.expire(1, |_, _| ()), engine.next_wake_ns()), (0, u64::MAX));
    assert_eq!(engine.timers().expiry_ns(timer), Ok(Some(HOUR)));
    // Misuse is not the device's failure.
    let (mut engine, _) = exact();
    let never = EngineError::Device(DeviceError::NeverEnds("sim"));
    assert_eq!([engine.wait(None), engine.wait(None)], [Err(never.clone()), Err(never)]);
}

#[test]
fn kicks_end_a_wait_each() {
    let (mut engine, times) = exact();
    let kick = engine.kick();
    kick.kick();
    assert_eq!(engine.wait(None).unwrap(), DeviceWaitEnd::Kicked);
    // One while no thread has the device, too.
    engine.detach();
    kick.kick();
    assert_eq!(engine.wait(None).unwrap(), DeviceWaitEnd::Kicked);
    assert_eq!((engine.wait(Some(5)).unwrap(), now_ns(&times)), (DeviceWaitEnd::Limit, 5));
    drop(engine);
    kick.kick();
}

#[test]
fn an_engine_that_cannot_be_says_so() {
    // A tick that its device cannot give.
    let (times, mc146818) = device(SimEventConfig::mc146818());
    let fast = Period::new(1_000, 1).unwrap();
    let refused = Engine::<u32>::new(fast, mc146818, times.clone()).unwrap_err();
    assert!(matches!(refused, EngineError::Device(DeviceError::Period { .. })), "{refused}");
    // One that can neither tick nor be programmed.
    let useless = SimEventConfig { one_shot: None, ..SimEventConfig::exact() };
    let refused = Engine::<u32>::simulated(DEFAULT_TICK, useless, &times).unwrap_err();
    assert_eq!(refused, EngineError::Device(DeviceError::Useless("sim")));
}

#[test]
fn an_engine_moves_to_another_thread() {
    let (mut engine, times) = exact();
    armed(&mut engine, ClockBase::Monotonic, 1, MS);
    engine.detach();
    let clocks = times.clone();
    let mut engine = std::thread::spawn(move || {
        assert_eq!(run(&mut engine, &clocks, 2 * MS), [(MS, 1)]);
        engine.detach();
        engine
    })
    .join()
    .unwrap();
    armed(&mut engine, ClockBase::Monotonic, 2, 3 * MS);
    assert_eq!(run(&mut engine, &times, 4 * MS), [(3 * MS, 2)]);
}

fn faulty(kind: SimFaultKind, events: u64) -> SimEventConfig {
    let faults = (0..events).map(|event| SimFault { event, kind }).collect();
    SimEventConfig { faults, ..SimEventConfig::exact() }
}

const LATE: SimFaultKind = SimFaultKind::Late(Span::from_millis(2));

/// Section 8 there: without fit hardware "the system works as before". Late is not broken.
#[test]
fn a_late_device_stays_and_ticks() {
    let (mut engine, times) = untried(faulty(LATE, 10_000));
    // As often as one likes.
    for _ in 0..5 {
        let late = engine.validate().unwrap_err();
        assert!(matches!(late, InvalidDevice::Late { .. }), "{late}");
    }
    engine.validate_device().unwrap();
    let begin_ns = now_ns(&times);
    armed(&mut engine, ClockBase::Monotonic, 1, begin_ns + MS);
    let seen = run(&mut engine, &times, begin_ns + 30 * MS);
    assert_eq!((seen.len(), engine.resolution()), (1, Resolution::TickBound));
}

#[test]
fn a_device_that_becomes_late_falls_back_to_its_tick() {
    let faults = (8..100).map(|event| SimFault { event, kind: LATE }).collect();
    let (mut engine, times) = untried(SimEventConfig { faults, ..SimEventConfig::exact() });
    engine.validate().unwrap();
    assert_eq!(engine.resolution(), Resolution::High);
    engine.validate().unwrap_err();
    assert_eq!(engine.resolution(), Resolution::TickBound);
    let begin_ns = now_ns(&times);
    armed(&mut engine, ClockBase::Monotonic, 1, begin_ns + MS);
    assert_eq!(run(&mut engine, &times, begin_ns + 30 * MS).len(), 1);
}

#[test]
fn a_device_that_was_late_is_tried_out_up_to_three_times() {
    let per_trial = 8;
    for (late, expected) in [(2, Resolution::High), (3, Resolution::TickBound)] {
        let (mut engine, _) = untried(faulty(LATE, late * per_trial));
        engine.validate_device().unwrap();
        assert_eq!(engine.resolution(), expected);
    }
}

#[test]
fn a_broken_device_is_dropped() {
    let early = SimFaultKind::Early(Span::from_nanos(1));
    for kind in [early, SimFaultKind::Lost] {
        let (mut engine, _) = untried(faulty(kind, 1));
        assert!(engine.validate_device().unwrap_err().is_broken());
        assert_eq!(engine.wait(Some(0)), Err(EngineError::NoDevice));
        assert_eq!(engine.resolution(), Resolution::TickBound);
        assert!(matches!(engine.validate(), Err(InvalidDevice::Device(_))));
    }
}

#[test]
fn a_device_of_the_system_stays_when_it_is_tried_out() {
    let (mut engine, times) = untried(SimEventConfig::i8254());
    assert_eq!(engine.validate().unwrap_err(), InvalidDevice::Global("sim_i8254"));
    armed(&mut engine, ClockBase::Monotonic, 1, MS);
    assert_eq!(run(&mut engine, &times, 30 * MS).len(), 1);
    assert_eq!(engine.resolution(), Resolution::TickBound);
}
