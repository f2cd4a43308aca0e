//! Devices that come and go, and what they serve.

use hourglass_clock::source::SimSource;

use super::*;
use crate::event::sim::{SimEvent, SimEventConfig};

const ENGINE: EngineId = EngineId(0);

fn named(name: &'static str, rating: u16, per_cpu: bool) -> EventDevice {
    let time = Arc::new(SimSource::default());
    let config = SimEventConfig { name, rating, per_cpu, ..SimEventConfig::exact() };
    EventDevice::new(SimEvent::new(&time, config)).unwrap()
}

fn own(name: &'static str, rating: u16) -> EventDevice {
    named(name, rating, true)
}

fn served(registry: &Registry, engine: EngineId) -> [Option<&'static str>; 4] {
    let distribution = registry.distribution(engine);
    Service::ALL.map(|service| {
        let id = distribution.serves(service)?;
        registry.facts(id).map(|facts| facts.name)
    })
}

/// *Hrtimers and Beyond*, section 6.1: global sources serve the tick, per-CPU ones "local CPU
/// functionality such as process accounting, profiling, and high resolution timers".
#[test]
fn global_devices_serve_the_tick_only() {
    let registry = Registry::new();
    assert_eq!(served(&registry, ENGINE), [None; 4]);
    let global = registry.register(named("pit", 400, false)).unwrap();
    assert_eq!(served(&registry, ENGINE), [Some("pit"), None, None, None]);
    registry.register_for(ENGINE, own("lapic", 100)).unwrap();
    let lapic = Some("lapic");
    assert_eq!(served(&registry, ENGINE), [Some("pit"), lapic, lapic, lapic]);
    // Without a global one, one device serves all four.
    registry.remove(global).unwrap();
    assert_eq!(served(&registry, ENGINE), [lapic; 4]);
    // Another engine has none of its own; the tick is the system's.
    assert_eq!(served(&registry, EngineId(1)), [lapic, None, None, None]);
    registry.register_for(EngineId(1), own("second", 300)).unwrap();
    let second = Some("second");
    assert_eq!(served(&registry, EngineId(1)), [lapic, second, second, second]);
}

#[test]
fn the_rating_decides_and_the_first_of_equals_stays() {
    let registry = Registry::new();
    registry.register_for(ENGINE, own("a", 100)).unwrap();
    let b = registry.register_for(ENGINE, own("b", 200)).unwrap();
    registry.register_for(ENGINE, own("c", 200)).unwrap();
    assert_eq!(served(&registry, ENGINE)[3], Some("b"));
    registry.remove(b).unwrap();
    assert_eq!(served(&registry, ENGINE)[3], Some("c"));
    let global = |name, rating| registry.register(named(name, rating, false)).unwrap();
    global("slow", 10);
    global("fast", 20);
    assert_eq!(served(&registry, ENGINE)[0], Some("fast"));
}

#[test]
fn what_only_ticks_has_no_next_event() {
    let registry = Registry::new();
    let time = Arc::new(SimSource::default());
    let ticks = SimEventConfig { per_cpu: true, ..SimEventConfig::mc146818() };
    let ticks = EventDevice::new(SimEvent::new(&time, ticks)).unwrap();
    registry.register_for(ENGINE, ticks).unwrap();
    let rtc = Some("sim_mc146818");
    assert_eq!(served(&registry, ENGINE), [rtc, rtc, rtc, None]);
}

/// Section 8: a device is validated before precise timers rest on it.
#[test]
fn a_validated_device_is_not_displaced_by_an_untried_one() {
    let registry = Registry::new();
    let old = registry.register_for(ENGINE, own("old", 100)).unwrap();
    registry.set_health(old, true).unwrap();
    let new = registry.register_for(ENGINE, own("new", 200)).unwrap();
    assert_eq!(served(&registry, ENGINE)[3], Some("old"));
    assert!(registry.distribution(ENGINE).next_event_is_valid);
    registry.set_health(new, true).unwrap();
    assert_eq!(served(&registry, ENGINE)[3], Some("new"));
    // Found wanting, it serves nothing.
    registry.set_health(new, false).unwrap();
    assert_eq!(served(&registry, ENGINE), [Some("old"); 4]);
    registry.set_health(old, false).unwrap();
    assert_eq!(served(&registry, ENGINE), [None; 4]);
}

#[test]
fn every_subscriber_is_notified_of_added_and_removed_devices() {
    let registry = Arc::new(Registry::new());
    let heard: Arc<Mutex<Vec<Notice>>> = Arc::default();
    let (all, asks) = (Arc::clone(&heard), Arc::clone(&registry));
    let subscription = registry.subscribe(Arc::new(move |notice| {
        // A listener may use the registry.
        assert!(asks.generation() >= notice.generation);
        all.lock().unwrap().push(notice.clone());
    }));
    let a = registry.register_for(ENGINE, own("a", 100)).unwrap();
    registry.set_health(a, true).unwrap();
    registry.doubt(a).unwrap();
    registry.set_health(a, false).unwrap();
    registry.remove(a).unwrap();
    registry.unsubscribe(subscription);
    registry.register(named("b", 100, false)).unwrap();
    use NoticeKind::{Came, Doubted, Invalid, Valid, Went};
    let kinds = [Came, Valid, Doubted, Invalid, Went];
    let expected: Vec<_> = (1..)
        .zip(kinds)
        .map(|(generation, kind)| Notice { generation, device: a, name: "a", kind })
        .collect();
    assert_eq!(*heard.lock().unwrap(), expected);
    assert_eq!(registry.generation(), 6);
}

#[test]
fn a_device_in_use_can_be_removed() {
    let registry = Registry::new();
    let id = registry.register_for(ENGINE, own("a", 100)).unwrap();
    let mut device = registry.claim(id).unwrap();
    assert_eq!(registry.claim(id).unwrap_err(), UnknownDevice::InUse("a"));
    assert!(registry.release(id, device).is_none());
    device = registry.claim(id).unwrap();
    // The engine is kicked, finds that it serves nothing, and keeps the device, which `remove` cannot return.
    assert!(registry.remove(id).unwrap().is_none());
    assert_eq!(device.wait(None), Ok(crate::event::DeviceWaitEnd::Kicked));
    assert_eq!(served(&registry, ENGINE), [None; 4]);
    assert!(registry.release(id, device).is_some());
    for error in [registry.claim(id).unwrap_err(), registry.remove(id).unwrap_err()] {
        assert_eq!(error, UnknownDevice::Removed);
    }
    assert_eq!(registry.set_health(id, true), Err(UnknownDevice::Removed));
}

#[test]
fn devices_are_registered_where_they_belong() {
    let registry = Registry::new();
    let error = registry.register(own("a", 1)).unwrap_err();
    assert_eq!(error, RegisterError::NeedsEngine("a"));
    let error = registry.register_for(ENGINE, named("b", 1, false)).unwrap_err();
    assert_eq!(error, RegisterError::Global("b"));
    assert_eq!(error.to_string().lines().count(), 1);
}
