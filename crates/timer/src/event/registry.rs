//! The management layer: which devices there are, and which of them serves what.
//!
//! *Hrtimers and Beyond*, sections 6.1 and 6.2. Devices may be added and removed at any time. Each
//! subscriber is notified.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hourglass_sys::no_stop::NoStopGuard;

use super::device::EventDevice;
use super::facts::DeviceFeatures;
use super::kick::Kick;
use super::services::Service;

/// An engine: a thread that waits for events. What a CPU is to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EngineId(pub u32);

/// A registered device. Never given twice by one registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceId(u64);

/// Which device serves what for one engine. A service with `None` has no device, and waits for the tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServiceAssignment {
    /// The tick of the system: a global device, or the first engine's if no device is global.
    pub tick: Option<DeviceId>,
    /// Accounting, profiling and, if it can be programmed, the next event: the engine's own device.
    pub own: Option<DeviceId>,
    /// The engine's own device, if it can be programmed for one time.
    pub next_event: Option<DeviceId>,
    /// Whether that one has been validated.
    pub next_event_is_valid: bool,
}

impl ServiceAssignment {
    /// The device that serves `service`, if one does.
    #[must_use]
    pub fn serves(&self, service: Service) -> Option<DeviceId> {
        match service {
            Service::Tick => self.tick,
            Service::Accounting | Service::Profiling => self.own,
            Service::NextEvent => self.next_event,
        }
    }
}

/// Something that happened to a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Counts notices, from 1; listeners in several threads may hear them out of order.
    pub generation: u64,
    /// Device that changed.
    pub device: DeviceId,
    /// Name of the device.
    pub name: &'static str,
    /// What changed.
    pub kind: NoticeKind,
}

/// What changed about a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoticeKind {
    /// It was registered.
    Came,
    /// It was removed.
    Went,
    /// It was tried out, and is fit.
    Valid,
    /// It was found wanting; it serves nothing any more.
    Invalid,
    /// It is no longer held to be fit for high resolution, but ticks.
    Doubted,
}

/// Is called with every [`Notice`], in the thread that caused it. It may use the registry.
pub type Listener = Arc<dyn Fn(&Notice) + Send + Sync>;

/// Handle of a listener, to unsubscribe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscription(u64);

/// A device that cannot be registered like this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// It belongs to one engine.
    #[error("{0} belongs to one engine: register it for that (`register_for`)")]
    NeedsEngine(&'static str),
    /// It belongs to the system.
    #[error("{0} belongs to the system: register it without an engine (`register`)")]
    Global(&'static str),
}

/// A device that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnknownDevice {
    /// It was removed, or never registered here.
    #[error("no such device is registered: it was removed")]
    Removed,
    /// An engine has it.
    #[error("{0} is in use by an engine: kick it and wait until it gives the device back")]
    InUse(&'static str),
}

/// Whether a device has been tried out. `Untried` is also one that may only tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Health {
    Invalid,
    Untried,
    Valid,
}

struct DeviceEntry {
    id: DeviceId,
    facts: DeviceFeatures,
    engine: Option<EngineId>,
    kick: Kick,
    health: Health,
    /// `None` while an engine has it.
    device: Option<EventDevice>,
}

#[derive(Default)]
struct RegistryInner {
    /// In the order in which they came.
    entries: Vec<DeviceEntry>,
    listeners: Vec<(Subscription, Listener)>,
    ids: u64,
}

/// The devices of a program.
///
/// Nothing here is for the expiry path: an engine claims its device once, and asks again only when
/// [`Registry::generation`] has changed.
#[derive(Default)]
pub struct Registry {
    inner: Mutex<RegistryInner>,
    generation: AtomicU64,
}

impl Registry {
    /// A registry without devices.
    #[must_use]
    pub fn new() -> Registry {
        Registry::default()
    }

    /// Registers a device of the system.
    ///
    /// # Errors
    /// [`RegisterError::NeedsEngine`] for one of an engine.
    pub fn register(&self, device: EventDevice) -> Result<DeviceId, RegisterError> {
        if device.facts().per_cpu {
            return Err(RegisterError::NeedsEngine(device.facts().name));
        }
        Ok(self.add(device, None))
    }

    /// Registers a device of one engine.
    ///
    /// # Errors
    /// [`RegisterError::Global`] for one of the system.
    pub fn register_for(
        &self,
        engine: EngineId,
        device: EventDevice,
    ) -> Result<DeviceId, RegisterError> {
        if !device.facts().per_cpu {
            return Err(RegisterError::Global(device.facts().name));
        }
        Ok(self.add(device, Some(engine)))
    }

    fn add(&self, device: EventDevice, engine: Option<EngineId>) -> DeviceId {
        let facts = *device.facts();
        let mut inner = self.lock();
        let id = DeviceId(inner.ids);
        inner.ids += 1;
        inner.entries.push(DeviceEntry {
            id,
            facts,
            engine,
            kick: device.kick(),
            health: Health::Untried,
            device: Some(device),
        });
        self.tell(inner, id, facts.name, NoticeKind::Came);
        id
    }

    /// Removes a device, also while an engine has it: that one is kicked, so that it asks again.
    /// Returns the device if no engine has it.
    ///
    /// # Errors
    /// [`UnknownDevice::Removed`].
    pub fn remove(&self, id: DeviceId) -> Result<Option<EventDevice>, UnknownDevice> {
        let mut inner = self.lock();
        let at = inner.entries.iter().position(|e| e.id == id).ok_or(UnknownDevice::Removed)?;
        let entry = inner.entries.remove(at);
        self.tell(inner, id, entry.facts.name, NoticeKind::Went);
        if entry.device.is_none() {
            entry.kick.kick();
        }
        Ok(entry.device)
    }

    /// Takes a device to run it.
    ///
    /// # Errors
    /// [`UnknownDevice`] if it is gone or another engine has it.
    pub fn claim(&self, id: DeviceId) -> Result<EventDevice, UnknownDevice> {
        let mut inner = self.lock();
        let entry = inner.entries.iter_mut().find(|e| e.id == id).ok_or(UnknownDevice::Removed)?;
        entry.device.take().ok_or(UnknownDevice::InUse(entry.facts.name))
    }

    /// Gives a claimed device back; it is returned if it was removed in the meantime.
    pub fn release(&self, id: DeviceId, device: EventDevice) -> Option<EventDevice> {
        let mut inner = self.lock();
        match inner.entries.iter_mut().find(|e| e.id == id && e.device.is_none()) {
            Some(entry) => {
                entry.device = Some(device);
                None
            }
            None => Some(device),
        }
    }

    /// Says what trying a device out has shown ([`super::validate_device`]), or that it failed
    /// later.
    ///
    /// # Errors
    /// [`UnknownDevice::Removed`].
    pub fn set_health(&self, id: DeviceId, fit: bool) -> Result<(), UnknownDevice> {
        match fit {
            true => self.note(id, Health::Valid, NoticeKind::Valid),
            false => self.note(id, Health::Invalid, NoticeKind::Invalid),
        }
    }

    /// Says that trying a device out has shown that it is not fit for high resolution, but not
    /// broken: it may tick, like one that was never tried.
    ///
    /// # Errors
    /// [`UnknownDevice::Removed`].
    pub fn doubt(&self, id: DeviceId) -> Result<(), UnknownDevice> {
        self.note(id, Health::Untried, NoticeKind::Doubted)
    }

    fn note(&self, id: DeviceId, health: Health, kind: NoticeKind) -> Result<(), UnknownDevice> {
        let mut inner = self.lock();
        let entry = inner.entries.iter_mut().find(|e| e.id == id).ok_or(UnknownDevice::Removed)?;
        entry.health = health;
        let name = entry.facts.name;
        self.tell(inner, id, name, kind);
        Ok(())
    }

    /// Which device serves what for `engine`.
    ///
    /// Of several the best rated serves, the older of two as good. A device that was validated for
    /// the next event is not displaced by a better rated one that was not tried yet.
    #[must_use]
    pub fn distribution(&self, engine: EngineId) -> ServiceAssignment {
        let inner = self.lock();
        let own = inner.own(engine);
        let next_event = own.filter(|entry| entry.facts.one_shot);
        ServiceAssignment {
            tick: inner.tick().map(|entry| entry.id),
            own: own.map(|entry| entry.id),
            next_event: next_event.map(|entry| entry.id),
            next_event_is_valid: next_event.is_some_and(|entry| entry.health == Health::Valid),
        }
    }

    /// Features of a device.
    #[must_use]
    pub fn facts(&self, id: DeviceId) -> Option<DeviceFeatures> {
        self.lock().entries.iter().find(|e| e.id == id).map(|e| e.facts)
    }

    /// Whether a device is registered and was not found wanting.
    #[must_use]
    pub fn is_fit(&self, id: DeviceId) -> bool {
        self.lock().fit().any(|entry| entry.id == id)
    }

    /// Counts what happened; one load, so that an engine can see cheaply whether to ask again.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Tells `listener` of everything from now on.
    pub fn subscribe(&self, listener: Listener) -> Subscription {
        let mut inner = self.lock();
        let subscription = Subscription(inner.ids);
        inner.ids += 1;
        inner.listeners.push((subscription, listener));
        subscription
    }

    /// No longer tells it; a notice already on its way may still come.
    pub fn unsubscribe(&self, subscription: Subscription) {
        self.lock().listeners.retain(|(kept, _)| *kept != subscription);
    }

    /// Tells the listeners, without the lock.
    fn tell(
        &self,
        inner: NoStopGuard<MutexGuard<'_, RegistryInner>>,
        device: DeviceId,
        name: &'static str,
        kind: NoticeKind,
    ) {
        let generation = self.generation.fetch_add(1, Ordering::AcqRel) + 1;
        let listeners: Vec<Listener> = inner.listeners.iter().map(|(_, l)| Arc::clone(l)).collect();
        drop(inner);
        let notice = Notice { generation, device, name, kind };
        listeners.iter().for_each(|listener| listener(&notice));
    }

    fn lock(&self) -> NoStopGuard<MutexGuard<'_, RegistryInner>> {
        // Nothing is half done while the lock is held.
        NoStopGuard::new(|| self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.lock();
        let names: Vec<&str> = inner.entries.iter().map(|entry| entry.facts.name).collect();
        f.debug_struct("Registry").field("devices", &names).finish_non_exhaustive()
    }
}

impl RegistryInner {
    fn own(&self, engine: EngineId) -> Option<&DeviceEntry> {
        let of_engine = self.fit().filter(|entry| entry.engine == Some(engine));
        best(of_engine, |entry| {
            let ready = entry.facts.one_shot && entry.health == Health::Valid;
            (ready, entry.facts.rating)
        })
    }

    /// The device of the system's tick.
    fn tick(&self) -> Option<&DeviceEntry> {
        let global = self.fit().filter(|entry| entry.engine.is_none());
        best(global, |entry| entry.facts.rating).or_else(|| {
            let first = self.fit().filter_map(|entry| entry.engine).min()?;
            self.own(first)
        })
    }

    fn fit(&self) -> impl Iterator<Item = &DeviceEntry> {
        self.entries.iter().filter(|entry| entry.health != Health::Invalid)
    }
}

/// The first of those that are best.
fn best<'a, K: Ord>(
    entries: impl Iterator<Item = &'a DeviceEntry>,
    key: impl Fn(&DeviceEntry) -> K,
) -> Option<&'a DeviceEntry> {
    entries.reduce(|best, entry| if key(entry) > key(best) { entry } else { best })
}

#[cfg(test)]
#[path = "tests/registry.rs"]
mod tests;
