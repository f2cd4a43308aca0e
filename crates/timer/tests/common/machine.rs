//! The simulated machine: clocks and a device in virtual time.

#![allow(dead_code, reason = "each program uses its part")]

use std::sync::Arc;

use hourglass_clock::source::SimSource;
use hourglass_timer::engine::{DEFAULT_TICK, Engine, SimTimes};
use hourglass_timer::event::{EventDevice, SimEvent, SimEventConfig};

pub(crate) fn clocks() -> SimTimes {
    SimTimes::new(&Arc::new(SimSource::default()))
}

pub(crate) fn device(times: &SimTimes, config: SimEventConfig) -> EventDevice {
    EventDevice::new(SimEvent::new(times.source(), config)).unwrap()
}

pub(crate) fn engine<T>(config: SimEventConfig) -> (Engine<T>, SimTimes) {
    let times = clocks();
    let engine = Engine::simulated(DEFAULT_TICK, config, &times).unwrap();
    (engine, times)
}
