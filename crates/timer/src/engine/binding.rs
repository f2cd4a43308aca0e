//! Which device an engine has, and how precise it may be.
//!
//! Owns: claiming, exchanging and giving back the device; following the decision on resolution.
//! Must not: know about timers.

use std::sync::Arc;

use super::EngineError;
use super::kicks::DeviceKicks;
use crate::event::{
    self, ClockEvent, DeviceError, DeviceId, DevicePlan, DeviceWaitEnd, DueServices, EventDevice,
    HighRes, InvalidDevice, Kick, Kicker, ModeError, Period, Registry, Resolution, Service,
    ServiceDevice, ServiceWait, Services, Subscription, ValidationReport,
};

/// An engine's place among the devices.
pub(super) struct DeviceBinding {
    number: event::EngineId,
    tick: Period,
    registry: Arc<Registry>,
    subscription: Subscription,
    high_res: Arc<HighRes>,
    kicks: Arc<DeviceKicks>,
    device: Option<Device>,
    /// What the services were while there is no device.
    services: Services,
    /// The registry's generation that was acted upon.
    generation: Option<u64>,
    /// Devices taken so far.
    taken: u64,
    /// Ticks that devices given back were not woken at.
    ticks_skipped: u64,
}

struct Device {
    id: DeviceId,
    served: ServiceDevice,
    /// Whether it serves this engine alone, so that high resolution is about it.
    own: bool,
}

/// Nothing happened but that the engine should look again.
pub(super) const KICKED: ServiceWait =
    ServiceWait { reason: DeviceWaitEnd::Kicked, services: DueServices::NONE };

/// Why a device was not taken.
enum DeviceRejected {
    InUse,
    /// It does not have the modes wanted.
    Unsuited(ModeError),
    Broken(DeviceError),
}

impl DeviceBinding {
    /// No device yet; kicked when devices or the resolution change.
    pub(super) fn new(
        registry: &Arc<Registry>,
        number: event::EngineId,
        tick: Period,
    ) -> DeviceBinding {
        let kicks = DeviceKicks::new();
        let kick = Kick::new(Arc::clone(&kicks) as Arc<dyn Kicker>);
        let subscription = registry.subscribe(Arc::new(move |_| kick.kick()));
        DeviceBinding {
            number,
            tick,
            registry: Arc::clone(registry),
            subscription,
            high_res: HighRes::follow(registry, number),
            kicks,
            device: None,
            services: Services::NONE,
            generation: None,
            taken: 0,
            ticks_skipped: 0,
        }
    }

    /// From now on a change of the resolution kicks the engine.
    pub(super) fn listen(&self) {
        let kick = self.kick();
        self.high_res.subscribe(Box::new(move |_| kick.kick()));
    }

    pub(super) fn high_res(&self) -> &Arc<HighRes> {
        &self.high_res
    }

    pub(super) fn kick(&self) -> Kick {
        Kick::new(Arc::clone(&self.kicks) as Arc<dyn Kicker>)
    }

    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    pub(super) fn ticks_skipped(&self) -> u64 {
        self.ticks_skipped + self.device().map_or(0, ServiceDevice::ticks_skipped)
    }

    pub(super) fn device(&self) -> Option<&ServiceDevice> {
        self.device.as_ref().map(|device| &device.served)
    }

    pub(super) fn device_mut(&mut self) -> Result<&mut ServiceDevice, EngineError> {
        self.device.as_mut().map(|device| &mut device.served).ok_or(EngineError::NoDevice)
    }

    pub(super) fn resolution(&self) -> Resolution {
        self.device().map_or(Resolution::TickBound, ServiceDevice::resolution)
    }

    /// Serves a service every `period`, also on devices to come.
    pub(super) fn set_period(
        &mut self,
        service: Service,
        period: Option<Period>,
    ) -> Result<(), EngineError> {
        Ok(self.device_mut()?.set_period(service, period)?)
    }

    /// Tries the device out, and says so in the registry. One that is merely not fit for high
    /// resolution stays, for ticking.
    pub(super) fn validate(
        &mut self,
        plan: &DevicePlan,
    ) -> Result<ValidationReport, InvalidDevice> {
        let Some(device) = &mut self.device else {
            return Err(DeviceError::Unsupported("an engine without a device").into());
        };
        let validated = device.served.validate(plan);
        // It may have been removed meanwhile.
        let _ = match &validated {
            Ok(_) => self.registry.set_health(device.id, true),
            Err(why) if why.is_broken() => self.registry.set_health(device.id, false),
            Err(_) => self.registry.doubt(device.id),
        };
        validated
    }

    /// Acts on what happened to devices and clock sources; whether the engine has another device
    /// than before. One load each if nothing happened.
    pub(super) fn follow(&mut self) -> Result<DeviceChange, EngineError> {
        let mut follow = DeviceChange::Same;
        let generation = self.registry.generation();
        if self.device.is_none() || self.generation != Some(generation) {
            if self.choose_device()? {
                follow = DeviceChange::Device;
            }
            self.generation = Some(generation);
        }
        let decided = self.high_res.resolution();
        if let Some(device) = &mut self.device {
            let wanted = if device.own { decided } else { Resolution::TickBound };
            // If it cannot, a notice is on its way that says so.
            if device.served.resolution() != wanted
                && device.served.set_resolution(wanted).is_ok()
                && follow == DeviceChange::Same
            {
                follow = DeviceChange::Resolution;
            }
        }
        Ok(follow)
    }

    /// The device failed: another one, if there is one. Misuse is not the device's failure.
    pub(super) fn lose(&mut self, error: DeviceError) -> Result<(), EngineError> {
        if matches!(
            error,
            DeviceError::NeverEnds(_) | DeviceError::NotAttached(_) | DeviceError::Suspended(_)
        ) {
            return Err(error.into());
        }
        if let Some(device) = &self.device {
            // It may have been removed meanwhile.
            let _ = self.registry.set_health(device.id, false);
        }
        match self.choose_device() {
            Ok(_) => Ok(()),
            Err(EngineError::NoDevice) => Err(error.into()),
            Err(other) => Err(other),
        }
    }

    /// Takes the best device there is; whether it is another one than before.
    pub(super) fn choose_device(&mut self) -> Result<bool, EngineError> {
        let mut refused = None;
        'again: loop {
            let devices = self.registry.distribution(self.number);
            for id in [devices.own, devices.tick].into_iter().flatten() {
                if let Some(device) = &mut self.device
                    && device.id == id
                {
                    device.own = devices.own == Some(id);
                    return Ok(false);
                }
                match self.take(id, devices.own == Some(id)) {
                    Ok(()) => return Ok(true),
                    Err(DeviceRejected::InUse) => {}
                    Err(DeviceRejected::Unsuited(error)) => refused = Some(error.into()),
                    Err(DeviceRejected::Broken(error)) => {
                        // It serves nothing any more, so that this ends.
                        let _ = self.registry.set_health(id, false);
                        refused = Some(error.into());
                        continue 'again;
                    }
                }
            }
            if self.device.as_ref().is_some_and(|device| self.registry.is_fit(device.id)) {
                return Ok(false);
            }
            self.release();
            return Err(refused.unwrap_or(EngineError::NoDevice));
        }
    }

    /// Takes a device in place of the one before.
    fn take(&mut self, id: DeviceId, own: bool) -> Result<(), DeviceRejected> {
        let Ok(mut device) = self.registry.claim(id) else { return Err(DeviceRejected::InUse) };
        // First: what a device changes in its thread must not be restored after the next changed it.
        self.release();
        if let Err(error) = device.attach() {
            self.release_device(id, device);
            return Err(DeviceRejected::Broken(error));
        }
        let kick = device.kick();
        match ServiceDevice::with_services(device, self.tick, self.services) {
            Ok(served) => {
                self.device = Some(Device { id, served, own });
                self.taken += 1;
                self.kicks.switch_to(id, &kick);
                Ok(())
            }
            Err((error, device)) => {
                self.release_device(id, *device);
                Err(match error {
                    ModeError::Device(error) => DeviceRejected::Broken(error),
                    other => DeviceRejected::Unsuited(other),
                })
            }
        }
    }

    pub(super) fn release(&mut self) {
        if let Some(Device { id, served, .. }) = self.device.take() {
            self.services = *served.services();
            self.services.set_next_event(None);
            self.ticks_skipped += served.ticks_skipped();
            self.release_device(id, served.into_device());
        }
    }

    fn release_device(&self, id: DeviceId, mut device: EventDevice) {
        device.detach();
        // Returned if it was removed meanwhile; then it ends here.
        drop(self.registry.release(id, device));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeviceChange {
    Same,
    Resolution,
    Device,
}

impl Drop for DeviceBinding {
    fn drop(&mut self) {
        self.release();
        self.registry.unsubscribe(self.subscription);
    }
}

/// Registers a device for an engine or for the system, as it says of itself; `None` if its facts
/// make no sense.
pub(super) fn add(
    registry: &Registry,
    number: event::EngineId,
    device: Box<dyn ClockEvent>,
) -> Option<DeviceId> {
    let device = EventDevice::from_box(device).ok()?;
    match device.facts().per_cpu {
        true => registry.register_for(number, device).ok(),
        false => registry.register(device).ok(),
    }
}
