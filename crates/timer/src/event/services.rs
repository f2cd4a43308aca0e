//! One device, several services: which of them are due when it fires.
//!
//! *Hrtimers and Beyond*, section 8: the next event interrupt "allows to use a single clock event
//! source to schedule high resolution timer and periodic events e.g. *jiffies* tick, profiling,
//! process accounting".

use super::clock_event::{Mode, Woken};
use super::device::EventDevice;
use super::error::{DeviceError, ModeError, ProgramError};
use super::high_res::Resolution;
use super::period::{Grid, Period};

/// What a device is for (section 6.2 there).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    /// The periodic tick of the system.
    Tick,
    /// Accounting of the engine's work.
    Accounting,
    /// Profiling.
    Profiling,
    /// The next event: precise timers, dynamic tick.
    NextEvent,
}

impl Service {
    /// All of them, in the order in which they are served.
    pub const ALL: [Service; 4] =
        [Service::Tick, Service::Accounting, Service::Profiling, Service::NextEvent];

    /// As documents write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Service::Tick => "tick",
            Service::Accounting => "accounting",
            Service::Profiling => "profiling",
            Service::NextEvent => "next_event",
        }
    }
}

/// How often each service is due: 0 if it is not, more than 1 if periods were missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Due([u64; 4]);

impl Due {
    /// How often this one is.
    #[must_use]
    pub const fn times(&self, service: Service) -> u64 {
        self.0[service as usize]
    }

    /// Whether any is.
    #[must_use]
    pub fn any(&self) -> bool {
        self.0.iter().any(|times| *times > 0)
    }
}

/// When each service is due next.
///
/// A periodic one is due at points counted from where it began, so that its rate is exact in the
/// long run however late it is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Services {
    periodic: [Option<Grid>; 3],
    next_event_ns: Option<u64>,
}

impl Services {
    /// Nothing is ever due.
    pub const NONE: Services = Services { periodic: [None; 3], next_event_ns: None };

    /// Serves `service` every `period` from `now_ns` on, or no longer. The next event has no
    /// period: nothing happens for it.
    pub fn set_period(&mut self, service: Service, period: Option<Period>, now_ns: u64) {
        if let Some(slot) = self.periodic.get_mut(service as usize) {
            *slot = period.map(|period| Grid::starting_at(now_ns, period));
        }
    }

    /// Wants the next event at `at_ns`, or none.
    pub fn set_next_event(&mut self, at_ns: Option<u64>) {
        self.next_event_ns = at_ns;
    }

    /// When the first service is due, ns; `None` if none ever is.
    #[must_use]
    pub fn earliest_ns(&self) -> Option<u64> {
        let ticks = self.periodic.iter().flatten().map(Grid::next_ns);
        ticks.chain(self.next_event_ns).min()
    }

    /// The shortest period of any service.
    #[must_use]
    pub fn finest(&self) -> Option<Period> {
        self.periodic.iter().flatten().map(Grid::period).min()
    }

    /// What is due at `now_ns`; it is served with this.
    pub fn due(&mut self, now_ns: u64) -> Due {
        let mut due = Due::default();
        for (times, grid) in due.0.iter_mut().zip(&mut self.periodic) {
            *times = grid.as_mut().map_or(0, |grid| grid.advance(now_ns));
        }
        if self.next_event_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            self.next_event_ns = None;
            due.0[Service::NextEvent as usize] = 1;
        }
        due
    }
}

/// A device that serves as many services as are wanted of it.
///
/// In high resolution it is programmed for the first of them, and for nothing if nothing is wanted
/// (dynamic tick). Bound to a tick it ticks at the shortest period, and everything else, the next
/// event too, waits for a tick: "*hrtimers* are bound to jiffy tick boundaries again" (section 7
/// there).
#[derive(Debug)]
pub struct ServiceDevice {
    device: EventDevice,
    services: Services,
    /// The tick where no service has a period.
    tick: Period,
    resolution: Resolution,
    /// Whether what the device was told is out of date.
    stale: bool,
}

/// What [`ServiceDevice::wait`] came back with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// Why it came back.
    pub woken: Woken,
    /// What is due.
    pub due: Due,
}

impl ServiceDevice {
    /// Bound to a tick every `tick`, with nothing to serve yet.
    ///
    /// # Errors
    /// [`ModeError`] if the device cannot tick so.
    pub fn new(device: EventDevice, tick: Period) -> Result<ServiceDevice, ModeError> {
        let (services, resolution) = (Services::NONE, Resolution::TickBound);
        let mut this = ServiceDevice { device, services, tick, resolution, stale: false };
        this.device.set_mode(Mode::Periodic(this.tick_period()))?;
        Ok(this)
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &EventDevice {
        &self.device
    }

    /// Gives the device back, in whatever mode it is.
    #[must_use]
    pub fn into_device(self) -> EventDevice {
        self.device
    }

    /// What is wanted of it.
    #[must_use]
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// Which of the two ways it works in.
    #[must_use]
    pub fn resolution(&self) -> Resolution {
        self.resolution
    }

    /// Changes the way it works in; no service loses a period.
    ///
    /// # Errors
    /// [`ModeError`] if the device has no such mode; then it works on as before.
    pub fn set_resolution(&mut self, resolution: Resolution) -> Result<(), ModeError> {
        if resolution == self.resolution {
            return Ok(());
        }
        match resolution {
            Resolution::High => self.device.set_mode(Mode::OneShot)?,
            Resolution::TickBound => {
                self.device.set_mode(Mode::Periodic(self.tick_period()))?;
            }
        }
        self.resolution = resolution;
        self.stale = resolution == Resolution::High;
        Ok(())
    }

    /// Serves a periodic service every `period` from now on, or no longer.
    ///
    /// # Errors
    /// [`ModeError`] if the device cannot tick so fast; then the service is as it was.
    pub fn set_period(
        &mut self,
        service: Service,
        period: Option<Period>,
    ) -> Result<(), ModeError> {
        let before = (self.services, self.tick_period());
        self.services.set_period(service, period, self.device.now_ns());
        match self.resolution {
            Resolution::High => self.stale = true,
            Resolution::TickBound if self.tick_period() != before.1 => {
                if let Err(error) = self.device.set_mode(Mode::Periodic(self.tick_period())) {
                    self.services = before.0;
                    return Err(error);
                }
            }
            Resolution::TickBound => {}
        }
        Ok(())
    }

    /// Wants the next event at `at_ns`, or none. The device is told when it waits next, and only
    /// if the first of all changed.
    pub fn set_next_event(&mut self, at_ns: Option<u64>) {
        self.services.set_next_event(at_ns);
        self.stale |= self.resolution == Resolution::High;
    }

    /// Waits until something is due, somebody kicks, a signal is handled, or the time base reaches
    /// `limit_ns`. What is due already is told at once, without entering the kernel.
    ///
    /// # Errors
    /// [`DeviceError`] of the device.
    pub fn wait(&mut self, limit_ns: Option<u64>) -> Result<Served, DeviceError> {
        loop {
            if self.resolution == Resolution::High && self.stale {
                match self.device.set_next_event(self.services.earliest_ns()) {
                    Ok(_) | Err(ProgramError::NotOneShot(_)) => self.stale = false,
                    Err(ProgramError::Past { .. }) => {
                        let due = self.services.due(self.device.now_ns());
                        return Ok(Served { woken: Woken::Event { periods: 1 }, due });
                    }
                    Err(ProgramError::Device(error)) => return Err(error),
                }
            }
            let woken = self.device.wait(limit_ns)?;
            let mut due = Due::default();
            if matches!(woken, Woken::Event { .. }) {
                self.stale = self.resolution == Resolution::High;
                due = self.services.due(self.device.now_ns());
                if !due.any() {
                    // A tick for nobody.
                    continue;
                }
            }
            return Ok(Served { woken, due });
        }
    }

    /// The longest period of the device that is not above what is wanted.
    fn tick_period(&self) -> Period {
        let wanted = self.services.finest().unwrap_or(self.tick);
        self.device.facts().grantable().at_most(wanted).unwrap_or(wanted)
    }
}

#[cfg(test)]
#[path = "tests/services.rs"]
mod tests;
