//! Engines of the service: several, on CPUs and devices of their own.

use hourglass_time::Span;
use hourglass_timer::engine::ClockBase;
use hourglass_timer::event::{Period, Resolution};
use hourglass_timer::service::{
    Action, Device, EngineSettings, MOST_ENGINES, Port, ServiceError, ServiceSettings, Timer,
    TimerService, TimerSpec,
};

use crate::common::serving::now;

const MS: i64 = 1_000_000;
const PATIENCE: Option<Span> = Some(Span::from_secs(20));

#[test]
fn engines_share_owners() {
    let cpus = hourglass_sys::thread::affinity().unwrap();
    let settings = EngineSettings { cpus: cpus[..1].to_vec(), ..EngineSettings::default() };
    let posix = EngineSettings { device: Device::PosixTimer, ..settings.clone() };
    let fd = EngineSettings { device: Device::TimerFd, ..settings.clone() };
    let engines = vec![settings, posix, fd];
    let service = TimerService::with(&ServiceSettings { engines }).unwrap();
    let owner = service.owner("all");
    let port = Port::new(16).unwrap();
    let timers: Vec<Timer> = (0..6)
        .map(|tag| owner.timer(ClockBase::Monotonic, Action::send(&port, tag)).unwrap())
        .collect();
    for timer in &timers {
        timer.arm(TimerSpec::after(Span::MILLISECOND)).unwrap();
    }
    let mut tags: Vec<u64> = (0..6).map(|_| port.receive(PATIENCE).unwrap().unwrap().tag).collect();
    tags.sort_unstable();
    assert_eq!(tags, [0, 1, 2, 3, 4, 5]);
    for engine in 0..3 {
        assert_eq!(service.statistics(engine).unwrap().created, 2);
    }
    assert_eq!(owner.timers(), 6);
    owner.terminate().unwrap();
    assert!(timers.iter().all(|timer| timer.status().unwrap().terminated));
    drop(timers);
    assert_eq!(service.timers(), 0);
    let bad = EngineSettings { cpus: vec![1_023], ..EngineSettings::default() };
    let refused = TimerService::with(&ServiceSettings::engines(1, &bad)).unwrap_err();
    assert!(matches!(&refused, ServiceError::Thread { thread, .. } if thread == "hg-engine-0"));
    assert!(refused.to_string().contains("CPUs [1023] cannot be used"), "{refused}");
}

#[test]
fn an_engine_may_poll() {
    let polls = EngineSettings { device: Device::BusyPoll, ..EngineSettings::default() };
    let service = TimerService::with(&ServiceSettings::engines(1, &polls)).unwrap();
    let timer = service.owner("polls").timer(ClockBase::Monotonic, Action::nothing()).unwrap();
    assert_eq!(timer.sleep_for(Span::MILLISECOND), Err(ServiceError::Terminated));
    let owner = service.owner("polls");
    let timer = owner.timer(ClockBase::Monotonic, Action::nothing()).unwrap();
    let at = now() + 2 * MS;
    timer.sleep_until(at).unwrap();
    assert!(now() >= at);
}

/// "At most one wake-up, and none when the owner wakes earlier anyway" (issue, item 9), and no CPU
/// either: an engine whose timers are armed all the time goes to sleep with what it knows. (It looked
/// again and again for as long as anything changed, which took a CPU and three times as long for
/// the arming thread.)
#[test]
fn an_engine_sleeps_though_timers_are_armed() {
    let service = TimerService::start().unwrap();
    let owner = service.owner("busy");
    let make = |_| owner.timer(ClockBase::Monotonic, Action::nothing()).unwrap();
    let timers: Vec<Timer> = (0..100).map(make).collect();
    let far = now() + 3_600_000 * MS;
    // It wakes for this one, and finds what changed.
    timers[0].arm(TimerSpec::after(Span::MILLISECOND).every(Span::MILLISECOND)).unwrap();
    let so_far = || {
        let counted = service.statistics(0).unwrap();
        (counted.fired, counted.turns)
    };
    let (fired_before, looks_before) = so_far();
    let (until, mut later) = (now() + 50 * MS, far);
    while now() < until {
        for timer in &timers[1..] {
            later += 1;
            timer.arm(TimerSpec::at(later)).unwrap();
        }
    }
    let (fired, looks) = so_far();
    let (fired, looks) = (fired - fired_before, looks - looks_before);
    assert!(looks <= 3 * fired + 10, "{looks} looks for {fired} expiries");
    // It has them all the same: who is earlier than what it knows kicks.
    timers[99].sleep_for(Span::MILLISECOND).unwrap();
}

/// A service said that it was bound to its tick until the first of its timers had expired.
#[test]
fn the_resolution_is_known_from_the_start() {
    // Whether the engine's thread had gone on before it was asked was chance.
    let devices = [Device::Sleep, Device::TimerFd, Device::PosixTimer];
    for device in devices.into_iter().cycle().take(15) {
        let settings = EngineSettings { device, ..EngineSettings::default() };
        let service = TimerService::with(&ServiceSettings::engines(1, &settings)).unwrap();
        let at_start = service.resolution(0).unwrap();
        let owner = service.owner("resolution");
        let timer = owner.timer(ClockBase::Monotonic, Action::nothing()).unwrap();
        for _ in 0..3 {
            timer.sleep_for(Span::MILLISECOND).unwrap();
        }
        assert_eq!(at_start, service.resolution(0).unwrap(), "{device:?}");
    }
}

/// A service on a clock device of choice: its timers expire at ticks, never early, and the ticks
/// between are skipped (*Hrtimers and Beyond*, section 9).
#[test]
fn a_tick_that_was_asked_for_binds_and_is_skipped() {
    for device in [Device::Sleep, Device::TimerFd, Device::PosixTimer] {
        let tick = Some(Period::new(1_000_000, 1).unwrap());
        let settings = EngineSettings { device, tick, ..EngineSettings::default() };
        let service = TimerService::with(&ServiceSettings::engines(1, &settings)).unwrap();
        assert_eq!(service.resolution(0), Ok(Resolution::TickBound), "{device:?}");
        let owner = service.owner("tick");
        let timer = owner.timer(ClockBase::Monotonic, Action::nothing()).unwrap();
        let begun = std::time::Instant::now();
        timer.sleep_for(Span::from_millis(50)).unwrap();
        assert!(begun.elapsed() >= std::time::Duration::from_millis(50), "{device:?}");
        // The engine counts after it has woken the sleeper.
        timer.sleep_for(Span::from_millis(2)).unwrap();
        let skipped = service.statistics(0).unwrap().ticks_skipped;
        assert!(skipped >= 48, "{device:?}: {skipped} skipped");
    }
}

#[test]
fn more_engines_than_there_can_be_are_refused() {
    let engines = MOST_ENGINES + 1;
    let settings = ServiceSettings::engines(engines, &EngineSettings::default());
    let refused = TimerService::with(&settings).map(|_| ());
    assert_eq!(refused, Err(ServiceError::TooManyEngines { engines }));
    assert!(refused.unwrap_err().to_string().contains("at most 1024"));
}
