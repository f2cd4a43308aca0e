//! The one device of an engine: programmed for each event, or for the tick that covers it.
//!
//! Owns: which of the two, the ticks, when the device must be programmed again.
//! Must not: know timers.

use crate::event::{
    DeviceError, DeviceWaitEnd, EventDevice, InvalidDevice, Mode, Period, PeriodGrid, ProgramError,
    Resolution, ValidationReport, validate_device,
};

/// A device that comes back for one event after another.
///
/// In high resolution it is programmed for the event itself. Bound to a tick the event waits for a
/// tick: "*hrtimers* are bound to jiffy tick boundaries again" (*Hrtimers and Beyond*, section 7). A
/// tick at which nothing is due is left out (section 9 there, dynamic tick): the device is programmed
/// for the tick that the event waits for, and for nothing without one. A device that only ticks is
/// shut down while no event is requested, and otherwise ticks all the time.
#[derive(Debug)]
pub(super) struct EngineDevice {
    device: EventDevice,
    is_attached: bool,
    next_event_ns: Option<u64>,
    /// The longest period of the device that is not above the tick asked for.
    tick: Period,
    resolution: Resolution,
    /// The ticks of a device that is programmed for them.
    ticks: PeriodGrid,
    ticks_skipped: u64,
    /// When the device last ticked, if it does so by itself, or was begun with.
    ticked_ns: u64,
    stale: bool,
}

impl EngineDevice {
    /// Attached to the calling thread and bound to a tick every `tick`, without an event.
    pub(super) fn new(device: EventDevice, tick: Period) -> Result<EngineDevice, DeviceError> {
        let now_ns = device.now_ns();
        let tick = device.facts().grantable().at_most(tick).unwrap_or(tick);
        let mut this = EngineDevice {
            device,
            is_attached: false,
            next_event_ns: None,
            tick,
            resolution: Resolution::TickBound,
            ticks: PeriodGrid::starting_at(now_ns, tick),
            ticks_skipped: 0,
            ticked_ns: now_ns,
            stale: true,
        };
        this.attach()?;
        Ok(this)
    }

    /// The calling thread will wait from now on; its ticks begin now.
    pub(super) fn attach(&mut self) -> Result<(), DeviceError> {
        if self.is_attached {
            return Ok(());
        }
        self.device.attach()?;
        if !self.device.facts().can_tick_at(self.tick) {
            // It refuses, and says why.
            self.device.set_mode(Mode::Periodic(self.tick))?;
        }
        self.begin()?;
        self.ticked_ns = self.device.now_ns();
        self.ticks = PeriodGrid::starting_at(self.ticked_ns, self.tick);
        self.is_attached = true;
        Ok(())
    }

    fn begin(&mut self) -> Result<(), DeviceError> {
        self.stale = true;
        let one_shot = self.device.facts().one_shot;
        self.device.set_mode(if one_shot { Mode::OneShot } else { Mode::Shutdown })
    }

    pub(super) fn detach(&mut self) {
        self.device.detach();
        self.is_attached = false;
    }

    pub(super) fn device(&self) -> &EventDevice {
        &self.device
    }

    /// Tries the device out ([`validate_device`]); it serves on afterwards.
    pub(super) fn validate(&mut self) -> Result<ValidationReport, InvalidDevice> {
        let validated = validate_device(&mut self.device);
        self.begin()?;
        validated
    }

    /// Whether it may be used for high resolution at all: global devices and those that only tick may
    /// not (*Hrtimers and Beyond*, section 6.2).
    pub(super) fn is_suited(&self) -> bool {
        self.device.facts().per_cpu && self.device.facts().one_shot
    }

    pub(super) fn ticks_skipped(&self) -> u64 {
        self.ticks_skipped
    }

    pub(super) fn resolution(&self) -> Resolution {
        self.resolution
    }

    /// Changes the way it works in; whether that is another one. The caller has asked whether it is
    /// suited.
    pub(super) fn set_resolution(&mut self, resolution: Resolution) -> bool {
        if resolution == self.resolution {
            return false;
        }
        self.resolution = resolution;
        self.stale = true;
        // In high resolution there were no ticks to skip.
        self.ticks.advance(self.device.now_ns());
        true
    }

    /// Requests the next event at `at_ns`, or none. The next wait programs the device, and only if
    /// that changed.
    pub(super) fn set_next_event(&mut self, at_ns: Option<u64>) {
        if self.next_event_ns != at_ns {
            self.next_event_ns = at_ns;
            self.stale = true;
        }
    }

    /// When the device comes back by itself, ns, as far as it is known: bound to a tick, at the
    /// tick that the event waits for; where the device ticks by itself, not before the event's time.
    /// `None` if it does not.
    pub(super) fn next_wake_ns(&self) -> Option<u64> {
        let at_ns = self.next_event_ns?;
        Some(match self.is_bound_to_grid() {
            true => self.ticks.first_from(at_ns),
            false => at_ns,
        })
    }

    /// The tick that time has come to at `now_ns`, ns: what is due later waits for the next one.
    /// Time itself in high resolution.
    pub(super) fn boundary_ns(&self, now_ns: u64) -> u64 {
        match self.resolution {
            Resolution::High => now_ns,
            Resolution::TickBound if self.device.facts().one_shot => self.ticks.last_until(now_ns),
            Resolution::TickBound => self.ticked_ns,
        }
    }

    /// Waits until the event is due, a kick arrives, a signal is handled, or the time base reaches
    /// `limit_ns`. What is due already is returned at once, without entering the kernel.
    pub(super) fn wait(&mut self, limit_ns: Option<u64>) -> Result<DeviceWaitEnd, DeviceError> {
        loop {
            if self.stale && self.program()? {
                return Ok(DeviceWaitEnd::Event { periods: 1 });
            }
            let woken = self.device.wait(limit_ns)?;
            if matches!(woken, DeviceWaitEnd::Event { .. }) {
                self.stale = true;
                self.ticked_ns = self.device.now_ns();
                self.count_skipped(self.ticked_ns);
                if !self.take_due(self.ticked_ns) {
                    // A tick that nothing waits for.
                    continue;
                }
            }
            return Ok(woken);
        }
    }

    /// Programs the device for the event; whether that is due already.
    fn program(&mut self) -> Result<bool, DeviceError> {
        if !self.device.facts().one_shot {
            self.tick_or_rest()?;
        } else {
            match self.device.set_next_event(self.next_wake_ns()) {
                Ok(()) => {}
                Err(ProgramError::Past { .. }) => {
                    let now_ns = self.device.now_ns();
                    self.count_skipped(now_ns);
                    self.take_due(now_ns);
                    return Ok(true);
                }
                Err(ProgramError::Device(error)) => return Err(error),
            }
        }
        self.stale = false;
        Ok(false)
    }

    /// Whether the event is due; it is served with this.
    fn take_due(&mut self, now_ns: u64) -> bool {
        self.next_event_ns.take_if(|at_ns| *at_ns <= now_ns).is_some()
    }

    /// All ticks since the last one served, but for the one that is served now.
    fn count_skipped(&mut self, now_ns: u64) {
        if self.is_bound_to_grid() {
            self.ticks_skipped += self.ticks.advance(now_ns).saturating_sub(1);
        }
    }

    /// A device that only ticks does so while an event is requested.
    fn tick_or_rest(&mut self) -> Result<(), DeviceError> {
        let mode = self.next_event_ns.map_or(Mode::Shutdown, |_| Mode::Periodic(self.tick));
        if self.device.mode() == mode {
            return Ok(());
        }
        self.ticked_ns = self.device.now_ns();
        self.device.set_mode(mode)
    }

    /// Whether it is programmed for ticks.
    fn is_bound_to_grid(&self) -> bool {
        self.resolution == Resolution::TickBound && self.device.facts().one_shot
    }
}

impl Drop for EngineDevice {
    fn drop(&mut self) {
        self.detach();
    }
}
