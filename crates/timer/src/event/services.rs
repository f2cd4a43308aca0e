//! One device, several services: which of them are due when it fires.
//!
//! *Hrtimers and Beyond*, section 8: the next event interrupt "allows to use a single clock event
//! source to schedule high resolution timer and periodic events e.g. *jiffies* tick, profiling,
//! process accounting".

use super::clock_event::{DeviceWaitEnd, Mode};
use super::device::EventDevice;
use super::error::{DeviceError, ModeError, ProgramError};
use super::high_res::Resolution;
use super::period::{Period, PeriodGrid};
use super::validation::{DevicePlan, InvalidDevice, ValidationReport, from_mode};

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

    /// Name of the service in documents.
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
pub struct DueServices([u64; 4]);

impl DueServices {
    /// No service is due.
    pub const NONE: DueServices = DueServices([0; 4]);

    /// How many times the service is due.
    #[must_use]
    pub const fn times(&self, service: Service) -> u64 {
        self.0[service as usize]
    }

    /// Whether any service is due.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.0.iter().any(|times| *times > 0)
    }
}

/// When each service is due next.
///
/// A periodic one is due at points counted from where it began, so that its rate is exact in the
/// long run however late it is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Services {
    periodic: [Option<PeriodGrid>; 3],
    next_event_ns: Option<u64>,
}

impl Services {
    /// No service is requested.
    pub const NONE: Services = Services { periodic: [None; 3], next_event_ns: None };

    /// Serves `service` every `period` from `now_ns` on, or no longer. The next event has no
    /// period: nothing happens for it.
    pub fn set_period(&mut self, service: Service, period: Option<Period>, now_ns: u64) {
        if let Some(slot) = self.periodic.get_mut(service as usize) {
            *slot = period.map(|period| PeriodGrid::starting_at(now_ns, period));
        }
    }

    /// Wants the next event at `at_ns`, or none.
    pub fn set_next_event(&mut self, at_ns: Option<u64>) {
        self.next_event_ns = at_ns;
    }

    /// When the first service is due, ns; `None` if none ever is.
    #[must_use]
    pub fn earliest_ns(&self) -> Option<u64> {
        let ticks = self.periodic.iter().flatten().map(PeriodGrid::next_ns);
        ticks.chain(self.next_event_ns).min()
    }

    /// The shortest period of any service.
    #[must_use]
    pub fn finest(&self) -> Option<Period> {
        self.periodic.iter().flatten().map(PeriodGrid::period).min()
    }

    /// What is due at `now_ns`; it is served with this.
    pub fn due(&mut self, now_ns: u64) -> DueServices {
        let mut due = DueServices::default();
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
/// In high resolution it is programmed for the first of them. Bound to a tick everything, the next
/// event too, waits for a tick at the shortest period: "*hrtimers* are bound to jiffy tick
/// boundaries again" (section 7 there). A tick at which nothing is due is left out (section 9
/// there, dynamic tick): the device is programmed for the tick that something waits for, and for
/// nothing if nothing is wanted. A device that only ticks is shut down while nothing is wanted, and
/// otherwise ticks all the time.
#[derive(Debug)]
pub struct ServiceDevice {
    device: EventDevice,
    services: Services,
    /// The tick where no service has a period.
    tick: Period,
    resolution: Resolution,
    /// The ticks of a device that is programmed for them.
    ticks: PeriodGrid,
    /// Ticks at which it was not woken.
    ticks_skipped: u64,
    /// When the device last ticked, if it does so by itself, or was begun with.
    ticked_ns: u64,
    /// Whether the device must be programmed again.
    stale: bool,
}

/// What [`ServiceDevice::wait`] came back with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceWait {
    /// Why the wait ended.
    pub reason: DeviceWaitEnd,
    /// Services that are due.
    pub services: DueServices,
}

impl ServiceDevice {
    /// Bound to a tick every `tick`, with nothing to serve yet.
    ///
    /// # Errors
    /// [`ModeError`] if the device cannot tick so.
    pub fn new(device: EventDevice, tick: Period) -> Result<ServiceDevice, ModeError> {
        ServiceDevice::with_services(device, tick, Services::NONE).map_err(|(error, _)| error)
    }

    /// As [`ServiceDevice::new`], to serve what another device served.
    ///
    /// # Errors
    /// [`ModeError`] if the device cannot tick so, and the device.
    pub fn with_services(
        device: EventDevice,
        tick: Period,
        services: Services,
    ) -> Result<ServiceDevice, (ModeError, Box<EventDevice>)> {
        let now_ns = device.now_ns();
        let mut this = ServiceDevice {
            device,
            services,
            tick,
            resolution: Resolution::TickBound,
            ticks: PeriodGrid::starting_at(now_ns, tick),
            ticks_skipped: 0,
            ticked_ns: now_ns,
            stale: true,
        };
        match this.start() {
            Ok(()) => Ok(this),
            Err(error) => Err((error, Box::new(this.device))),
        }
    }

    fn start(&mut self) -> Result<(), ModeError> {
        self.restart_ticks()?;
        let one_shot = self.device.facts().one_shot;
        self.device.set_mode(if one_shot { Mode::OneShot } else { Mode::Shutdown })
    }

    /// The device that serves them.
    #[must_use]
    pub fn device(&self) -> &EventDevice {
        &self.device
    }

    /// Tries the device out ([`super::validate_device`]); it serves on afterwards.
    ///
    /// # Errors
    /// [`InvalidDevice`]: why it is not fit.
    pub fn validate(&mut self, plan: &DevicePlan) -> Result<ValidationReport, InvalidDevice> {
        let validated = super::validate_device(&mut self.device, plan);
        self.stale = true;
        if self.device.facts().one_shot {
            let back = self.device.set_mode(Mode::OneShot);
            back.map_err(|error| from_mode(self.device.facts().name, error))?;
        }
        validated
    }

    /// Gives the device back, in whatever mode it is.
    #[must_use]
    pub fn into_device(self) -> EventDevice {
        self.device
    }

    /// The services that it serves.
    #[must_use]
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// Ticks at which nothing was due, so that the device was not programmed for them and the
    /// thread slept on: what the dynamic tick saved. None are counted in high resolution, where
    /// there is no tick, and on a device that ticks by itself.
    #[must_use]
    pub fn ticks_skipped(&self) -> u64 {
        self.ticks_skipped
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
        if resolution != self.resolution {
            if resolution == Resolution::High && !self.device.facts().one_shot {
                return Err(ModeError::NoOneShot(self.device.facts().name));
            }
            self.resolution = resolution;
            self.stale = true;
            // In high resolution there were no ticks to skip.
            self.ticks.advance(self.device.now_ns());
        }
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
        self.stale = true;
        if self.tick_period() != before.1
            && let Err(error) = self.restart_ticks()
        {
            self.services = before.0;
            return Err(error);
        }
        Ok(())
    }

    /// Requests the next event at `at_ns`, or none. The next wait programs the device, and only if
    /// the first of all changed.
    pub fn set_next_event(&mut self, at_ns: Option<u64>) {
        if self.services.next_event_ns != at_ns {
            self.services.set_next_event(at_ns);
            self.stale = true;
        }
    }

    /// When the device comes back by itself, ns, as far as it is known: bound to a tick, at the
    /// tick that the first service waits for; where the device ticks by itself, not before that
    /// service's time. `None` if it does not.
    #[must_use]
    pub fn next_wake_ns(&self) -> Option<u64> {
        let wanted_ns = self.services.earliest_ns()?;
        Some(match self.is_bound_to_grid() {
            true => self.ticks.first_from(wanted_ns),
            false => wanted_ns,
        })
    }

    /// The tick that time has come to at `now_ns`, ns: what is due later waits for the next one.
    /// Time itself in high resolution.
    #[must_use]
    pub fn boundary_ns(&self, now_ns: u64) -> u64 {
        match self.resolution {
            Resolution::High => now_ns,
            Resolution::TickBound if self.device.facts().one_shot => self.ticks.last_until(now_ns),
            Resolution::TickBound => self.ticked_ns,
        }
    }

    /// Waits until a service is due, a kick arrives, a signal is handled, or the time base reaches
    /// `limit_ns`. What is due already is returned at once, without entering the kernel.
    ///
    /// # Errors
    /// [`DeviceError`] of the device.
    pub fn wait(&mut self, limit_ns: Option<u64>) -> Result<ServiceWait, DeviceError> {
        loop {
            if self.stale
                && let Some(due) = self.program()?
            {
                return Ok(ServiceWait {
                    reason: DeviceWaitEnd::Event { periods: 1 },
                    services: due,
                });
            }
            let woken = self.device.wait(limit_ns)?;
            let mut due = DueServices::default();
            if matches!(woken, DeviceWaitEnd::Event { .. }) {
                self.stale = true;
                self.ticked_ns = self.device.now_ns();
                self.count_skipped(self.ticked_ns);
                due = self.services.due(self.ticked_ns);
                if !due.is_due() {
                    // A tick that no service uses.
                    continue;
                }
            }
            return Ok(ServiceWait { reason: woken, services: due });
        }
    }

    /// Tells the device what is wanted now; what is due if it is due already.
    fn program(&mut self) -> Result<Option<DueServices>, DeviceError> {
        if !self.device.facts().one_shot {
            self.tick_or_rest()?;
        } else {
            match self.device.set_next_event(self.next_wake_ns()) {
                Ok(_) | Err(ProgramError::NotOneShot(_)) => {}
                Err(ProgramError::Past { .. }) => {
                    let now_ns = self.device.now_ns();
                    self.count_skipped(now_ns);
                    return Ok(Some(self.services.due(now_ns)));
                }
                Err(ProgramError::Device(error)) => return Err(error),
            }
        }
        self.stale = false;
        Ok(None)
    }

    /// All ticks since the last one served, but for the one that is served now.
    fn count_skipped(&mut self, now_ns: u64) {
        if self.is_bound_to_grid() {
            self.ticks_skipped += self.ticks.advance(now_ns).saturating_sub(1);
        }
    }

    /// A device that only ticks does so while anything is wanted.
    fn tick_or_rest(&mut self) -> Result<(), DeviceError> {
        let wanted = self.services.earliest_ns().map(|_| self.tick_period());
        let mode = wanted.map_or(Mode::Shutdown, Mode::Periodic);
        if self.device.mode() == mode {
            return Ok(());
        }
        self.ticked_ns = self.device.now_ns();
        match self.device.set_mode(mode) {
            Ok(()) => Ok(()),
            Err(ModeError::Device(error)) => Err(error),
            // Its periods were looked at before.
            Err(_) => Err(DeviceError::Unsupported(self.device.facts().name)),
        }
    }

    /// Whether it is programmed for ticks.
    fn is_bound_to_grid(&self) -> bool {
        self.resolution == Resolution::TickBound && self.device.facts().one_shot
    }

    /// Ticks at the period that is wanted now, counted from now.
    fn restart_ticks(&mut self) -> Result<(), ModeError> {
        let period = self.tick_period();
        if !self.device.facts().can_tick_at(period) {
            // It refuses, and says why.
            self.device.set_mode(Mode::Periodic(period))?;
        }
        self.ticks = PeriodGrid::starting_at(self.device.now_ns(), period);
        Ok(())
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
