//! When an engine may be precise.

use hourglass_clock::source::SimSource;
use hourglass_clock::trust::TrustReport;

use super::*;
use crate::event::registry::DeviceId;
use crate::event::sim::{SimEvent, SimEventConfig, SimFault, SimFaultKind};
use crate::event::{DevicePlan, EventDevice, Period, Service, ServiceDevice, validate_device};

const ENGINE: EngineId = EngineId(3);

fn device(config: SimEventConfig) -> EventDevice {
    let time = Arc::new(SimSource::default());
    EventDevice::new(SimEvent::new(&time, config)).unwrap()
}

fn add(registry: &Registry, config: SimEventConfig) -> DeviceId {
    registry.register_for(ENGINE, device(config)).unwrap()
}

/// Claims, tries out, judges and gives back, as an engine does.
fn validate(registry: &Registry, id: DeviceId) {
    let mut device = registry.claim(id).unwrap();
    let fit = validate_device(&mut device, &DevicePlan::DEFAULT).is_ok();
    assert!(registry.release(id, device).is_none());
    registry.set_health(id, fit).unwrap();
}

fn followed() -> (Arc<Registry>, Arc<HighRes>, Arc<Mutex<Vec<Resolution>>>) {
    let registry = Arc::new(Registry::new());
    let high_res = HighRes::follow(&registry, ENGINE);
    let heard: Arc<Mutex<Vec<Resolution>>> = Arc::default();
    let log = Arc::clone(&heard);
    high_res.subscribe(Box::new(move |resolution| log.lock().unwrap().push(resolution)));
    (registry, high_res, heard)
}

/// *Hrtimers and Beyond*, section 8: both layers, in whatever order they announce.
#[test]
fn it_takes_a_validated_device_and_a_validated_source() {
    for source_first in [true, false] {
        let (registry, high_res, heard) = followed();
        assert_eq!(high_res.why(), Err(LowResReason::NoDevice));
        if source_first {
            high_res.source_valid();
        }
        let id = add(&registry, SimEventConfig::exact());
        assert_eq!(high_res.why(), Err(LowResReason::DeviceUntried));
        assert_eq!(high_res.resolution(), Resolution::TickBound);
        validate(&registry, id);
        if !source_first {
            assert_eq!(high_res.why(), Err(LowResReason::NoSource));
            assert_eq!(high_res.resolution(), Resolution::TickBound);
            high_res.source_valid();
        }
        assert_eq!((high_res.resolution(), high_res.why()), (Resolution::High, Ok(())));
        assert_eq!(*heard.lock().unwrap(), [Resolution::High]);
    }
}

#[test]
fn losing_either_falls_back_and_getting_it_again_returns() {
    let (registry, high_res, heard) = followed();
    let id = add(&registry, SimEventConfig::exact());
    validate(&registry, id);
    high_res.source_valid();
    high_res.source_lost("the counter went backwards");
    let why = high_res.why().unwrap_err().to_string();
    assert_eq!(why, "the clock source is not fit: the counter went backwards");
    let trust = |trusted| TrustReport { trusted, reason: "x".into(), evidence: Vec::new() };
    high_res.judge_source(&trust(true));
    high_res.judge_source(&trust(false));
    high_res.judge_source(&trust(true));
    registry.remove(id).unwrap();
    assert_eq!(high_res.why(), Err(LowResReason::NoDevice));
    let id = add(&registry, SimEventConfig::exact());
    validate(&registry, id);
    // It fails later: an event was lost, say.
    registry.set_health(id, false).unwrap();
    let (high, low) = (Resolution::High, Resolution::TickBound);
    assert_eq!(*heard.lock().unwrap(), [high, low, high, low, high, low, high, low]);
}

#[test]
fn a_device_in_reserve_takes_over_without_a_fall_back() {
    let (registry, high_res, heard) = followed();
    high_res.source_valid();
    let [first, second] = [200, 100]
        .map(|rating| add(&registry, SimEventConfig { rating, ..SimEventConfig::exact() }));
    validate(&registry, first);
    validate(&registry, second);
    registry.remove(first).unwrap();
    assert_eq!(registry.distribution(ENGINE).next_event, Some(second));
    registry.remove(second).unwrap();
    assert_eq!(*heard.lock().unwrap(), [Resolution::High, Resolution::TickBound]);
}

#[test]
fn devices_that_are_not_fit_leave_it_tick_bound() {
    let (registry, high_res, heard) = followed();
    high_res.source_valid();
    let lost = SimFault { event: 2, kind: SimFaultKind::Lost };
    let bad = add(&registry, SimEventConfig { faults: vec![lost], ..SimEventConfig::exact() });
    validate(&registry, bad);
    let ticks = add(&registry, SimEventConfig { per_cpu: true, ..SimEventConfig::mc146818() });
    validate(&registry, ticks);
    // Section 8: not with global devices only; not with another engine's.
    registry.register(device(SimEventConfig::i8254())).unwrap();
    let other = registry.register_for(EngineId(4), device(SimEventConfig::exact())).unwrap();
    validate(&registry, other);
    assert_eq!(high_res.why(), Err(LowResReason::NoDevice));
    assert!(heard.lock().unwrap().is_empty());
}

#[test]
fn what_was_registered_before_counts_and_a_dropped_follower_hears_nothing() {
    let registry = Arc::new(Registry::new());
    let id = add(&registry, SimEventConfig::exact());
    validate(&registry, id);
    let high_res = HighRes::follow(&registry, ENGINE);
    high_res.source_valid();
    assert_eq!(high_res.resolution(), Resolution::High);
    drop(high_res);
    registry.remove(id).unwrap();
    assert_eq!(Arc::strong_count(&registry), 1);
}

/// The whole of it: an engine whose source is lost for a while is bound to its tick meanwhile, and
/// no tick of the system is lost over it.
#[test]
fn an_engine_falls_back_to_its_tick_and_returns() {
    let (registry, high_res, _) = followed();
    let id = add(&registry, SimEventConfig::exact());
    validate(&registry, id);
    high_res.source_valid();
    let tick = Period::from_hertz(250).unwrap();
    let mut served = ServiceDevice::new(registry.claim(id).unwrap(), tick).unwrap();
    let begin_ns = served.device().now_ns();
    served.set_period(Service::Tick, Some(tick)).unwrap();
    let mut late = Vec::new();
    let mut ticks = 0;
    for turn in 0..30u64 {
        match turn {
            10 => high_res.source_lost("test"),
            20 => high_res.source_valid(),
            _ => {}
        }
        served.set_resolution(high_res.resolution()).unwrap();
        let wanted_ns = served.device().now_ns() + 1_000_000;
        served.set_next_event(Some(wanted_ns));
        loop {
            let due = served.wait(None).unwrap().services;
            ticks += due.times(Service::Tick);
            if due.times(Service::NextEvent) > 0 {
                break;
            }
        }
        late.push(served.device().now_ns() - wanted_ns);
    }
    assert!(late[..10].iter().chain(&late[20..]).all(|late| *late == 0), "{late:?}");
    // Wanted 1 ms after the last one, it comes at the next tick of 4 ms: the first after 11 ms.
    assert!(
        late[10] == 1_000_000 && late[11..20].iter().all(|late| *late == 3_000_000),
        "{late:?}"
    );
    assert_eq!(ticks, tick.passed(served.device().now_ns() - begin_ns));
}
