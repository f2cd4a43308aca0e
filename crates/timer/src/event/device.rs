//! What is done with any device: modes, limits, emulated periods.

use std::fmt;

use super::clock_event::{ClockEvent, DeviceFeatures, DeviceWaitEnd, Mode};
use super::error::{DeviceError, ProgramError};
use super::kick::Kick;
use super::period::{Period, PeriodGrid};

/// A device under management (*Hrtimers and Beyond*, section 6; Linux `kernel/time/clockevents.c`).
///
/// Programming checks the device's limits: a time that is past is refused with
/// [`ProgramError::Past`], one too near is taken to the shortest distance, one too far is reached
/// in several steps that are not visible outside. A period that the device cannot give by itself is
/// emulated with one-shot events, each counted from the first one, so that no error adds up.
///
/// Neither allocates nor takes a lock once it is made.
pub struct EventDevice {
    hardware: Box<dyn ClockEvent>,
    facts: DeviceFeatures,
    state: DeviceState,
    counts: DeviceCounts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeviceState {
    Shutdown,
    /// The time of the requested event, if any, and the time for which the device is programmed.
    OneShot {
        wanted_ns: Option<u64>,
        armed_ns: u64,
    },
    Ticking {
        period: Period,
    },
    Emulated {
        ticks: PeriodGrid,
    },
}

/// What a device did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounts {
    /// Events and periods that waits returned.
    pub events: u64,
    /// Times that the device was programmed.
    pub programmed: u64,
    /// Firings that were steps towards an event too far for the device.
    pub steps: u64,
    /// Firings before their time; each was programmed again and not reported.
    pub early: u64,
    /// Firings without a request; not reported.
    pub spurious: u64,
}

impl EventDevice {
    /// Puts a device under management. It is shut down until a mode is set.
    ///
    /// # Errors
    /// [`DeviceError`] of a device whose facts make no sense.
    pub fn new(hardware: impl ClockEvent + 'static) -> Result<EventDevice, DeviceError> {
        EventDevice::from_box(Box::new(hardware))
    }

    /// As [`EventDevice::new`], for a boxed device.
    ///
    /// # Errors
    /// As [`EventDevice::new`].
    pub fn from_box(hardware: Box<dyn ClockEvent>) -> Result<EventDevice, DeviceError> {
        let facts = hardware.facts();
        facts.check()?;
        Ok(EventDevice {
            hardware,
            facts,
            state: DeviceState::Shutdown,
            counts: DeviceCounts::default(),
        })
    }

    /// Features of the device.
    #[must_use]
    pub fn facts(&self) -> &DeviceFeatures {
        &self.facts
    }

    /// The device's time base now, ns.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.hardware.now_ns()
    }

    /// A handle that ends waits of this device.
    #[must_use]
    pub fn kick(&self) -> Kick {
        self.hardware.kick()
    }

    /// Counts since the device was made.
    #[must_use]
    pub fn counts(&self) -> DeviceCounts {
        self.counts
    }

    /// The mode that was set.
    #[must_use]
    pub fn mode(&self) -> Mode {
        match self.state {
            DeviceState::Shutdown => Mode::Shutdown,
            DeviceState::OneShot { .. } => Mode::OneShot,
            DeviceState::Ticking { period } => Mode::Periodic(period),
            DeviceState::Emulated { ticks } => Mode::Periodic(ticks.period()),
        }
    }

    /// The calling thread will wait from now on.
    pub fn attach(&mut self) -> Result<(), DeviceError> {
        self.hardware.attach()
    }

    /// The calling thread will no longer wait; the device is shut down. To be called by the thread
    /// that attached the device.
    pub fn detach(&mut self) {
        self.state = DeviceState::Shutdown;
        self.hardware.detach();
    }

    /// Sets the mode. In one-shot mode nothing is programmed yet; the first period begins now.
    ///
    /// # Errors
    /// [`DeviceError`] for what the device cannot give; then it is as it was.
    pub fn set_mode(&mut self, mode: Mode) -> Result<(), DeviceError> {
        match mode {
            Mode::Shutdown => {
                self.hardware.set_mode(Mode::Shutdown)?;
                self.state = DeviceState::Shutdown;
            }
            Mode::OneShot => self.set_one_shot()?,
            Mode::Periodic(period) => self.set_periodic(period)?,
        }
        Ok(())
    }

    fn set_periodic(&mut self, period: Period) -> Result<(), DeviceError> {
        let device = self.facts.name;
        if self.facts.periods.contains(period) {
            self.hardware.set_mode(Mode::Periodic(period))?;
            self.state = DeviceState::Ticking { period };
            return Ok(());
        }
        if !self.facts.can_tick_at(period) {
            if self.facts.one_shot {
                let min_delta_ns = self.facts.min_delta_ns;
                return Err(DeviceError::TooShort { device, asked: period, min_delta_ns });
            }
            let nearest = self.facts.periods.nearest(period.span_ceil()).unwrap_or(period);
            return Err(DeviceError::Period { device, asked: period, nearest });
        }
        self.hardware.set_mode(Mode::OneShot)?;
        let ticks = PeriodGrid::starting_at(self.hardware.now_ns(), period);
        self.state = DeviceState::Emulated { ticks };
        // A time past becomes the shortest distance.
        self.arm(self.hardware.now_ns(), ticks.next_ns())?;
        Ok(())
    }

    fn set_one_shot(&mut self) -> Result<(), DeviceError> {
        if !self.facts.one_shot {
            return Err(DeviceError::NoOneShot(self.facts.name));
        }
        self.hardware.set_mode(Mode::OneShot)?;
        self.state = DeviceState::OneShot { wanted_ns: None, armed_ns: 0 };
        Ok(())
    }

    /// Programs the next event for `at_ns`, in place of the one before; `None` programs nothing,
    /// and an idle engine is not woken (*Hrtimers and Beyond*, section 9). The device is left alone
    /// where that changes nothing.
    ///
    /// # Errors
    /// [`ProgramError::Past`] if the time is not ahead: then nothing is programmed.
    pub fn set_next_event(&mut self, at_ns: Option<u64>) -> Result<(), ProgramError> {
        let device = self.facts.name;
        let DeviceState::OneShot { wanted_ns, .. } = self.state else {
            return Err(DeviceError::NotOneShot(device).into());
        };
        match at_ns {
            None if wanted_ns.is_none() => Ok(()),
            None => Ok(self.disarm()?),
            Some(at_ns) => self.program(at_ns, wanted_ns),
        }
    }

    fn program(&mut self, at_ns: u64, before: Option<u64>) -> Result<(), ProgramError> {
        let now_ns = self.hardware.now_ns();
        if at_ns <= now_ns {
            if before.is_some() {
                self.disarm()?;
            }
            return Err(ProgramError::Past { late_ns: now_ns - at_ns });
        }
        if before == Some(at_ns) {
            return Ok(());
        }
        let armed_ns = self.arm(now_ns, at_ns)?;
        self.state = DeviceState::OneShot { wanted_ns: Some(at_ns), armed_ns };
        Ok(())
    }

    fn disarm(&mut self) -> Result<(), DeviceError> {
        self.hardware.set_mode(Mode::OneShot)?;
        self.state = DeviceState::OneShot { wanted_ns: None, armed_ns: 0 };
        Ok(())
    }

    /// Programs the device within its limits; returns for when.
    fn arm(&mut self, now_ns: u64, at_ns: u64) -> Result<u64, DeviceError> {
        let DeviceFeatures { min_delta_ns, max_delta_ns, .. } = self.facts;
        let delta_ns = at_ns.saturating_sub(now_ns).clamp(min_delta_ns, max_delta_ns);
        let at_ns = now_ns.saturating_add(delta_ns);
        self.hardware.set_next_event(at_ns)?;
        self.counts.programmed += 1;
        Ok(at_ns)
    }

    /// Waits until the device fires at or after the requested time, a kick arrives, a signal is
    /// handled, or the time base reaches `limit_ns` (for ever without).
    pub fn wait(&mut self, limit_ns: Option<u64>) -> Result<DeviceWaitEnd, DeviceError> {
        loop {
            let woken = self.hardware.wait(limit_ns)?;
            let DeviceWaitEnd::Event { periods } = woken else { return Ok(woken) };
            if let Some(periods) = self.fired(periods)? {
                self.counts.events += periods;
                return Ok(DeviceWaitEnd::Event { periods });
            }
        }
    }

    /// Handles a firing. Returns how many periods to report, if any.
    fn fired(&mut self, periods: u64) -> Result<Option<u64>, DeviceError> {
        match self.state {
            DeviceState::Ticking { .. } => Ok(Some(periods)),
            DeviceState::Emulated { mut ticks } => {
                let now_ns = self.hardware.now_ns();
                let passed = ticks.advance(now_ns);
                self.state = DeviceState::Emulated { ticks };
                self.arm(now_ns, ticks.next_ns())?;
                if passed == 0 {
                    self.counts.steps += 1;
                }
                Ok((passed > 0).then_some(passed))
            }
            DeviceState::OneShot { wanted_ns: Some(at_ns), armed_ns } => {
                let now_ns = self.hardware.now_ns();
                if now_ns >= at_ns {
                    self.state = DeviceState::OneShot { wanted_ns: None, armed_ns: 0 };
                    return Ok(Some(1));
                }
                match now_ns < armed_ns {
                    true => self.counts.early += 1,
                    false => self.counts.steps += 1,
                }
                let armed_ns = self.arm(now_ns, at_ns)?;
                self.state = DeviceState::OneShot { wanted_ns: Some(at_ns), armed_ns };
                Ok(None)
            }
            DeviceState::OneShot { wanted_ns: None, .. } | DeviceState::Shutdown => {
                self.counts.spurious += 1;
                Ok(None)
            }
        }
    }
}

impl fmt::Debug for EventDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventDevice")
            .field("name", &self.facts.name)
            .field("state", &self.state)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "tests/device.rs"]
mod tests;
