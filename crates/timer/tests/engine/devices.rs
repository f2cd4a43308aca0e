//! Devices that come and go, fail, and move from thread to thread.

use super::*;

fn device(times: &SimTimes, name: &'static str, rating: u16) -> EventDevice {
    let config = SimEventConfig { name, rating, ..SimEventConfig::exact() };
    EventDevice::new(SimEvent::new(times.source(), config)).unwrap()
}

const NUMBER: event::EngineId = event::EngineId(3);

/// An engine on a registry of the test's, with a good clock source.
fn registered(
    times: &SimTimes,
    devices: impl IntoIterator<Item = EventDevice>,
) -> (Engine<u32>, Arc<Registry>, Vec<event::DeviceId>) {
    let registry = Arc::new(Registry::new());
    let ids = devices.into_iter().map(|d| registry.register_for(NUMBER, d).unwrap()).collect();
    let engine = Engine::new(EngineConfig::DEFAULT, &registry, NUMBER, times.clone()).unwrap();
    engine.high_res().source_valid();
    (engine, registry, ids)
}

fn name(engine: &Engine<u32>) -> &'static str {
    engine.device().unwrap().facts().name
}

/// Section 6.2 there: devices come and go while engines run.
#[test]
fn a_lost_device_is_replaced_and_no_timer_is_lost() {
    let times = SimTimes::new(&Arc::new(SimSource::default()));
    let devices = [device(&times, "sim_best", 400), device(&times, "sim_spare", 100)];
    let (mut engine, registry, ids) = registered(&times, devices);
    registry.set_health(ids[0], true).unwrap();
    let tick = Period::from_hertz(100).unwrap();
    engine.set_period(Service::Tick, Some(tick)).unwrap();
    armed(&mut engine, ClockBase::Monotonic, 1, 15 * MS);
    armed(&mut engine, ClockBase::Realtime, 2, 35 * MS);
    armed(&mut engine, ClockBase::Monotonic, 3, 55 * MS);
    assert_eq!(run(&mut engine, &times, 20 * MS), [(15 * MS, 1)]);
    assert_eq!((name(&engine), engine.resolution()), ("sim_best", Resolution::High));
    // The spare was never tried: the engine is bound to its tick now, which is 10 ms.
    assert!(registry.remove(ids[0]).unwrap().is_none());
    assert_eq!(run(&mut engine, &times, 50 * MS), [(40 * MS, 2)]);
    assert_eq!((name(&engine), engine.resolution()), ("sim_spare", Resolution::TickBound));
    registry.set_health(ids[1], true).unwrap();
    assert_eq!(run(&mut engine, &times, 60 * MS), [(55 * MS, 3)]);
    assert_eq!(engine.resolution(), Resolution::High);
    // A better one comes.
    let better = registry.register_for(NUMBER, device(&times, "sim_new", 300)).unwrap();
    registry.set_health(better, true).unwrap();
    run(&mut engine, &times, 70 * MS);
    assert_eq!((name(&engine), engine.statistics().device_changes), ("sim_new", 2));
    // None is left: a typed error, until there is one again. The timers are still there.
    registry.set_health(better, false).unwrap();
    assert!(registry.remove(ids[1]).unwrap().is_some());
    armed(&mut engine, ClockBase::Monotonic, 4, 100 * MS);
    assert_eq!(engine.wait(None), Err(EngineError::NoDevice));
    assert!(engine.device().is_none());
    registry.register_for(NUMBER, device(&times, "sim_last", 1)).unwrap();
    assert_eq!(run(&mut engine, &times, 101 * MS), [(100 * MS, 4)]);
    // Its services went along: ticks at 10 ms.
    let due = engine.wait(None).unwrap().services;
    assert!(due.times(Service::Tick) > 0 && now_ns(&times) == 110 * MS);
    drop(engine);
    let claimable = registry.distribution(NUMBER).own.map(|id| registry.claim(id).is_ok());
    assert_eq!(claimable, Some(true), "the device was not given back");
}

/// A device that fails in its third wait.
struct Failing(SimEvent, u32);

impl ClockEvent for Failing {
    fn facts(&self) -> DeviceFeatures {
        DeviceFeatures { name: "failing", rating: 450, ..self.0.facts() }
    }
    fn now_ns(&self) -> u64 {
        self.0.now_ns()
    }
    fn set_mode(&mut self, mode: Mode) -> Result<(), DeviceError> {
        self.0.set_mode(mode)
    }
    fn set_next_event(&mut self, next: NextEvent) -> Result<(), DeviceError> {
        self.0.set_next_event(next)
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
fn a_device_that_fails_is_replaced() {
    let times = SimTimes::new(&Arc::new(SimSource::default()));
    let failing = Failing(SimEvent::new(times.source(), SimEventConfig::exact()), 0);
    let failing = EventDevice::new(failing).unwrap();
    let (mut engine, registry, ids) = registered(&times, [failing, device(&times, "sim", 1)]);
    ids.iter().for_each(|id| registry.set_health(*id, true).unwrap());
    for i in 1..=5 {
        armed(&mut engine, ClockBase::Monotonic, i, i64::from(i) * MS);
    }
    let seen = run(&mut engine, &times, 5 * MS);
    assert_eq!(seen, (1..=5).map(|i| (i64::from(i) * MS, i)).collect::<Vec<_>>());
    assert_eq!((name(&engine), engine.statistics().device_changes), ("sim", 1));
    // Alone, its failure is reported.
    let times = SimTimes::new(&Arc::new(SimSource::default()));
    let failing = Failing(SimEvent::new(times.source(), SimEventConfig::exact()), 1);
    let (mut engine, ..) = registered(&times, [EventDevice::new(failing).unwrap()]);
    let error = loop {
        if let Err(error) = engine.wait(Some(9)) {
            break error;
        }
    };
    assert_eq!(error, EngineError::Device(DeviceError::Os { device: "failing", errno: 5 }));
    assert_eq!(engine.wait(Some(9)), Err(EngineError::NoDevice));
}

/// Kicks reach whatever device the engine has, and handles outlive devices and engines.
#[test]
fn kicks_follow_the_engine_from_device_to_device() {
    let times = SimTimes::new(&Arc::new(SimSource::default()));
    let devices = [device(&times, "sim_best", 400), device(&times, "sim_spare", 100)];
    let (mut engine, registry, ids) = registered(&times, devices);
    let kick = engine.kick();
    kick.kick();
    assert_eq!(engine.wait(None).unwrap().reason, DeviceWaitEnd::Kicked);
    registry.remove(ids[0]).unwrap();
    assert_eq!(engine.wait(None).unwrap().reason, DeviceWaitEnd::Kicked);
    kick.kick();
    assert_eq!(engine.wait(None).unwrap().reason, DeviceWaitEnd::Kicked);
    let quiet = engine.wait(Some(5)).unwrap().reason;
    assert_eq!((quiet, now_ns(&times)), (DeviceWaitEnd::Limit, 5));
    drop(engine);
    kick.kick();
}

#[test]
fn an_engine_without_a_device_says_so() {
    let times = SimTimes::new(&Arc::new(SimSource::default()));
    let registry = Arc::new(Registry::new());
    let none = Engine::<u32>::new(EngineConfig::DEFAULT, &registry, NUMBER, times.clone());
    assert_eq!(none.unwrap_err(), EngineError::NoDevice);
    // A tick that it cannot give: refused, and the registry has the device still.
    let config = SimEventConfig::mc146818();
    let device = EventDevice::new(SimEvent::new(times.source(), config)).unwrap();
    let id = registry.register(device).unwrap();
    let tick = Period::new(1_000, 1).unwrap();
    let fast = EngineConfig { tick, ..EngineConfig::DEFAULT };
    let refused = Engine::<u32>::new(fast, &registry, NUMBER, times.clone()).unwrap_err();
    assert!(matches!(refused, EngineError::Mode(_)), "{refused}");
    assert!(registry.claim(id).is_ok());
    let coarse = EngineConfig { timeouts: Span::ZERO, ..EngineConfig::DEFAULT };
    let refused = Engine::<u32>::new(coarse, &registry, NUMBER, times).unwrap_err();
    assert!(matches!(refused, EngineError::Timers(TimerError::Queue(QueueError::TooFine { .. }))));
}

#[test]
fn an_engine_moves_to_another_thread() {
    let (mut engine, times) = exact();
    armed(&mut engine, ClockBase::Monotonic, 1, MS);
    engine.detach();
    let mut engine = std::thread::spawn(move || {
        assert_eq!(run(&mut engine, &times, 2 * MS), [(MS, 1)]);
        engine.detach();
        engine
    })
    .join()
    .unwrap();
    assert_eq!(engine.wait(Some(0)).unwrap().reason, DeviceWaitEnd::Kicked);
}

/// One whose first `events` go wrong like this, and a spare that is not tried.
fn faulty(times: &SimTimes, kind: SimFaultKind, events: u64) -> (Engine<u32>, Arc<Registry>) {
    let faults = (0..events).map(|event| SimFault { event, kind }).collect();
    let config =
        SimEventConfig { name: "sim_faulty", rating: 400, faults, ..SimEventConfig::exact() };
    let faulty = EventDevice::new(SimEvent::new(times.source(), config)).unwrap();
    let (engine, registry, _) = registered(times, [faulty, device(times, "sim_spare", 100)]);
    (engine, registry)
}

const LATE: SimFaultKind = SimFaultKind::Late(Span::from_millis(2));

/// Section 8 there: without fit hardware "the system works as before". Late is not broken.
#[test]
fn a_late_device_stays_and_ticks() {
    let times = SimTimes::new(&Arc::new(SimSource::default()));
    let (mut engine, registry) = faulty(&times, LATE, 10_000);
    // As often as one likes.
    for _ in 0..5 {
        let late = engine.validate(&DevicePlan::DEFAULT).unwrap_err();
        assert!(matches!(late, InvalidDevice::Late { .. }), "{late}");
    }
    engine.validate_device().unwrap();
    assert_eq!(engine.high_res().why(), Err(LowResReason::DeviceUntried));
    let begin_ns = now_ns(&times);
    armed(&mut engine, ClockBase::Monotonic, 1, begin_ns + MS);
    let seen = run(&mut engine, &times, begin_ns + 30 * MS);
    assert_eq!(seen.len(), 1);
    assert_eq!((name(&engine), engine.resolution()), ("sim_faulty", Resolution::TickBound));
    assert_eq!(engine.statistics().device_changes, 0);
    // One that was valid until now is no longer trusted, but stays, too.
    let own = registry.distribution(NUMBER).own.unwrap();
    registry.set_health(own, true).unwrap();
    engine.wait(Some(0)).unwrap();
    assert_eq!(engine.resolution(), Resolution::High);
    engine.validate(&DevicePlan::DEFAULT).unwrap_err();
    engine.wait(Some(0)).unwrap();
    assert_eq!((name(&engine), engine.resolution()), ("sim_faulty", Resolution::TickBound));
}

/// Other threads were in its way: the same device is tried out again.
#[test]
fn a_device_that_was_late_is_tried_out_up_to_three_times() {
    let per_trial = u64::from(DevicePlan::DEFAULT.events);
    for (late, expected) in [(2, Resolution::High), (3, Resolution::TickBound)] {
        let times = SimTimes::new(&Arc::new(SimSource::default()));
        let (mut engine, _registry) = faulty(&times, LATE, late * per_trial);
        engine.validate_device().unwrap();
        engine.wait(Some(0)).unwrap();
        assert_eq!((name(&engine), engine.resolution()), ("sim_faulty", expected));
    }
}

#[test]
fn a_broken_device_is_dropped() {
    let early = SimFaultKind::Early(Span::from_nanos(1));
    for kind in [early, SimFaultKind::Lost] {
        let times = SimTimes::new(&Arc::new(SimSource::default()));
        let (mut engine, _registry) = faulty(&times, kind, 1);
        assert!(engine.validate_device().unwrap_err().is_broken());
        assert_eq!(engine.wait(Some(0)).unwrap().reason, DeviceWaitEnd::Kicked);
        assert_eq!((name(&engine), engine.statistics().device_changes), ("sim_spare", 1));
        engine.validate_device().unwrap();
        engine.wait(Some(0)).unwrap();
        assert_eq!((name(&engine), engine.resolution()), ("sim_spare", Resolution::High));
    }
}

/// A device of the system serves an engine without being fit for high resolution.
#[test]
fn a_device_of_the_system_stays_when_it_is_tried_out() {
    let times = SimTimes::new(&Arc::new(SimSource::default()));
    let registry = Arc::new(Registry::new());
    let shared = SimEvent::new(times.source(), SimEventConfig::i8254());
    registry.register(EventDevice::new(shared).unwrap()).unwrap();
    let mut engine =
        Engine::<u32>::new(EngineConfig::DEFAULT, &registry, NUMBER, times.clone()).unwrap();
    let refused = engine.validate(&DevicePlan::DEFAULT).unwrap_err();
    assert_eq!(refused, InvalidDevice::Global("sim_i8254"));
    engine.wait(Some(0)).unwrap();
    assert_eq!((name(&engine), engine.resolution()), ("sim_i8254", Resolution::TickBound));
}
