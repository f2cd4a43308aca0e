//! No sleep at all: the thread reads the clock until the time has come.

use std::hint::spin_loop;
use std::sync::Arc;

use super::{FutexKick, now};
use crate::event::{ClockEvent, DeviceError, DeviceFeatures, DeviceWaitEnd, Kick, Mode};

const NAME: &str = "busy";

/// The thread spins on `CLOCK_MONOTONIC`: tens of nanoseconds late instead of tens of
/// microseconds, for a whole CPU.
///
/// It keeps the processor while an event is programmed; with none it sleeps until a kick. A signal's
/// handler runs in between and does not end the spin; if it kicks, that does.
#[derive(Default)]
pub struct BusyEvent {
    kick: Arc<FutexKick>,
    next_ns: Option<u64>,
}

impl BusyEvent {
    /// A device that fires nothing yet.
    #[must_use]
    pub fn new() -> BusyEvent {
        BusyEvent::default()
    }

    /// Reads the clock until `next_ns`, a kick, or the limit.
    fn spin(&self, next_ns: u64, limit_ns: u64) -> DeviceWaitEnd {
        loop {
            let now_ns = now();
            if now_ns >= next_ns {
                return DeviceWaitEnd::Event { periods: 1 };
            }
            if self.kick.0.take() {
                return DeviceWaitEnd::Kicked;
            }
            if now_ns >= limit_ns {
                return DeviceWaitEnd::Limit;
            }
            spin_loop();
        }
    }
}

impl ClockEvent for BusyEvent {
    fn facts(&self) -> DeviceFeatures {
        DeviceFeatures { name: NAME, ..DeviceFeatures::KERNEL }
    }

    fn now_ns(&self) -> u64 {
        now()
    }

    fn detach(&mut self) {
        self.next_ns = None;
    }

    fn set_mode(&mut self, mode: Mode) -> Result<(), DeviceError> {
        self.next_ns = None;
        match mode {
            Mode::Shutdown | Mode::OneShot => Ok(()),
            Mode::Periodic(_) => Err(DeviceError::Unsupported(NAME)),
        }
    }

    fn set_next_event(&mut self, at_ns: u64) -> Result<(), DeviceError> {
        self.next_ns = Some(at_ns);
        Ok(())
    }

    fn wait(&mut self, limit_ns: Option<u64>) -> Result<DeviceWaitEnd, DeviceError> {
        let limit = limit_ns.unwrap_or(u64::MAX);
        if let Some(next_ns) = self.next_ns {
            let woken = self.spin(next_ns, limit);
            if matches!(woken, DeviceWaitEnd::Event { .. }) {
                self.next_ns = None;
            }
            return Ok(woken);
        }
        while limit_ns.is_none() || now() < limit {
            if let Some(woken) = self.kick.sleep(NAME, limit)? {
                return Ok(woken);
            }
        }
        Ok(if self.kick.0.take() { DeviceWaitEnd::Kicked } else { DeviceWaitEnd::Limit })
    }

    fn kick(&self) -> Kick {
        Kick::new(self.kick.clone())
    }
}
