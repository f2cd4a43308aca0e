//! Engines in virtual time: one device for several clocks, programmed only for what is first;
//! clocks that are set, suspensions, ticks, lost devices, callbacks that take long.
//!
//! Source: "Hrtimers and Beyond" (2006), sections 4.2, 6.2, 7, 8 and 9.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hourglass_queue::{Handle, QueueError};
use hourglass_time::Span;
use hourglass_timer::engine::{
    Cause, ClockBase, ClockReadings, ClockSetPolicy, DEFAULT_TICK, Engine, EngineError,
    EngineTimers, SimTimes, TimerError, TimerId, Times,
};
use hourglass_timer::event::sim::{SimFault, SimFaultKind};
use hourglass_timer::event::{
    ClockEvent, DeviceError, DeviceFeatures, DeviceWaitEnd, EventDevice, InvalidDevice, Kick, Mode,
    Period, Resolution, SimEvent, SimEventConfig,
};

use crate::common::machine;

mod clocks;
mod devices;
mod looks;
mod native;
mod random;
mod ticks;

const MS: i64 = 1_000_000;
const SECOND: i64 = 1_000 * MS;
const HOUR: i64 = 3_600 * SECOND;
const EVENT: DeviceWaitEnd = DeviceWaitEnd::Event { periods: 1 };

fn exact() -> (Engine<u32>, SimTimes) {
    machine::engine(SimEventConfig::exact())
}

fn tick_bound(engine: &mut Engine<u32>) {
    engine.source_lost();
    assert_eq!(engine.resolution(), Resolution::TickBound);
}

fn now_ns(times: &SimTimes) -> i64 {
    times.now().ns(ClockBase::Monotonic)
}

fn armed(engine: &mut Engine<u32>, base: ClockBase, name: u32, expiry_ns: i64) -> TimerId {
    let id = engine.timers().create(base, name).unwrap();
    engine.timers().arm(id, expiry_ns, 0).unwrap();
    id
}

fn expired(engine: &mut Engine<u32>) -> Vec<u32> {
    let mut names = Vec::new();
    engine.expire(usize::MAX, |timers, fired| names.push(*timers.payload(fired.id).unwrap()));
    names
}

fn run(engine: &mut Engine<u32>, times: &SimTimes, until_ns: i64) -> Vec<(i64, u32)> {
    let mut seen = Vec::new();
    while now_ns(times) < until_ns {
        engine.wait(Some(until_ns as u64)).unwrap();
        seen.extend(expired(engine).into_iter().map(|name| (now_ns(times), name)));
    }
    seen
}

fn programmed(engine: &Engine<u32>) -> u64 {
    engine.device().unwrap().counts().programmed
}
