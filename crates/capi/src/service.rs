//! The timer service: its engines, owners of timers, classes of deferred actions, and ports.

use std::ffi::c_char;
use std::os::fd::{AsFd, AsRawFd};

use hourglass_time::Span;
use hourglass_timer::TimerService;
use hourglass_timer::engine::Cause;
use hourglass_timer::event::{Period, Resolution};
use hourglass_timer::service::{
    ActionClass, ClassSettings, Device, EngineSettings, Expiration, MOST_ENGINES, MOST_ROOM,
    Message, Owner, Port, ServiceError, ServiceSettings, refresh_priority,
};

use crate::error::{CapiError, HG_EMPTY, HG_TIMEOUT, answer, guard, hg_error, hg_status};
use crate::pointers::{give, is_there, read_or_default, text, unused, write};
use crate::scheduling::hg_scheduling;
use crate::table::{HandleTable, handles};

handles! {
    hg_service, "A timer service.";
    hg_owner, "An owner of timers.";
    hg_class, "A class of deferred actions.";
    hg_port, "Where messages of timers arrive.";
}

static SERVICES: HandleTable<TimerService> = HandleTable::new(3, "service");
static OWNERS: HandleTable<Owner> = HandleTable::new(4, "owner");
static CLASSES: HandleTable<ActionClass> = HandleTable::new(5, "class");
static PORTS: HandleTable<Port> = HandleTable::new(6, "port");

/// Settings of a service; all zero is one engine on any CPU, with the caller's policy.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hg_service_settings {
    /// Number of engines, each a thread; 0 is 1.
    pub engines: u32,
    /// `HG_DEVICE_*`.
    pub device: u32,
    /// Policy of the engines.
    pub scheduling: hg_scheduling,
    /// Whether they run on `cpu` only.
    pub pinned: bool,
    /// Reserved: 0.
    pub reserved: [u8; 3],
    /// The CPU of the first engine; each further one has the next.
    pub cpu: u32,
    /// Length of the ticks to which expiries are bound, ns; 0 without ticks.
    pub tick_ns: u64,
}

/// Counts of an engine.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_service_statistics {
    /// Timers made.
    pub created: u64,
    /// Expiries that ran an action.
    pub fired: u64,
    /// Expiries without an action of their own.
    pub overruns: u64,
    /// Expiries found cancelled, replaced or terminated.
    pub lost_races: u64,
    /// Immediate actions that took longer than 100 us.
    pub long_actions: u64,
    /// The longest of them, ns.
    pub longest_action_ns: u64,
    /// Greatest latency of a poll after a timer's expiry, ns.
    pub latest_ns: u64,
    /// Times that the engine woke.
    pub turns: u64,
    /// Ticks at which the engine did not wake.
    pub ticks_skipped: u64,
    /// Expiries for which a class had no room.
    pub without_room: u64,
    /// Timers that live, of all engines.
    pub timers: u64,
    /// Whether this engine is precise.
    pub precise: bool,
    /// Reserved: 0.
    pub reserved: [u8; 7],
}

/// Counts of a class.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_class_statistics {
    /// Actions that ran.
    pub ran: u64,
    /// The longest action, ns.
    pub longest_ns: u64,
    /// Expiries that found no room.
    pub without_room: u64,
    /// Times that the priority of its thread was raised.
    pub raised: u64,
    /// Times that the kernel refused to raise it.
    pub raise_refused: u64,
}

/// Settings of a class; all zero is room for 1024 expiries and the caller's policy, not raised.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hg_class_settings {
    /// The policy of its thread.
    pub scheduling: hg_scheduling,
    /// Number of expiries that may wait.
    pub room: u32,
    /// Whether its thread is raised to the priority of the thread that armed the timer.
    pub raise: bool,
    /// Reserved: 0.
    pub reserved: [u8; 3],
}

/// An expiry, as its action receives it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_expiration {
    /// The expiry as scheduled, ns on the timer's clock.
    pub expiry_ns: i64,
    /// Time of the clock at the poll, ns.
    pub now_ns: i64,
    /// Expiries that had no action of their own.
    pub overruns: u64,
    /// `HG_BASE_*`.
    pub base: u32,
    /// Whether setting the clock caused the expiry.
    pub clock_set: bool,
    /// Reserved: 0.
    pub reserved: [u8; 3],
}

impl From<Expiration> for hg_expiration {
    fn from(expiration: Expiration) -> hg_expiration {
        hg_expiration {
            expiry_ns: expiration.expiry_ns,
            now_ns: expiration.now_ns,
            overruns: expiration.overruns,
            base: expiration.base as u32,
            clock_set: expiration.cause == Cause::ClockSet,
            reserved: [0; 3],
        }
    }
}

/// A message of a timer.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_message {
    /// Number of the message, from the timer's action.
    pub tag: u64,
    /// The expiry.
    pub expiration: hg_expiration,
}

impl hg_service_settings {
    fn settings(&self) -> Result<ServiceSettings, CapiError> {
        unused(self.reserved, "hg_service_settings")?;
        let device = match self.device {
            0 => Device::Sleep,
            1 => Device::TimerFd,
            2 => Device::PosixTimer,
            3 => Device::BusyPoll,
            4 => Device::Rtc,
            other => {
                let text = format!("no device is {other}: give an HG_DEVICE_*");
                return Err(CapiError::invalid(text));
            }
        };
        if self.engines as usize > MOST_ENGINES {
            return Err(ServiceError::TooManyEngines { engines: self.engines as usize }.into());
        }
        let attributes = self.scheduling.attributes()?;
        let tick = match self.tick_ns {
            0 => None,
            ns => Some(
                Period::new(ns, 1)
                    .map_err(|error| CapiError::invalid(format!("tick_ns: {error}")))?,
            ),
        };
        let engines = (0..self.engines.max(1)).map(|number| EngineSettings {
            cpus: if self.pinned { vec![self.cpu.saturating_add(number)] } else { Vec::new() },
            attributes,
            device,
            tick,
        });
        Ok(ServiceSettings { engines: engines.collect() })
    }
}

/// Checks the room of a class or port.
///
/// # Errors
/// `HG_INVALID`.
fn room_of(room: u32) -> Result<usize, CapiError> {
    let room = room as usize;
    if (1..=MOST_ROOM).contains(&room) {
        return Ok(room);
    }
    Err(CapiError::invalid(format!("no room for {room}: give 1 to {MOST_ROOM}")))
}

/// Starts a service.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_service_start(
    settings: *const hg_service_settings,
    service: *mut hg_service,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        // SAFETY: as the header says of `settings`.
        let settings = unsafe { read_or_default(settings) };
        let started = TimerService::with(&settings.settings()?)?;
        Ok(hg_service { handle: SERVICES.insert(started)? })
    };
    // SAFETY: as the header says of `service` and `error`.
    unsafe { give(service, "service", error, work) }
}

/// Reads the counts of an engine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_service_look(
    service: hg_service,
    engine: u32,
    statistics: *mut hg_service_statistics,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let service = SERVICES.get(service.handle)?;
        let found = service.statistics(engine as usize)?;
        let totals = hg_service_statistics {
            created: found.created,
            fired: found.fired,
            overruns: found.overruns,
            lost_races: found.lost_races,
            long_actions: found.long_actions,
            longest_action_ns: found.longest_action_ns,
            latest_ns: found.latest_ns,
            turns: found.turns,
            ticks_skipped: found.ticks_skipped,
            without_room: found.without_room,
            timers: service.timers() as u64,
            precise: service.resolution(engine as usize)? == Resolution::High,
            reserved: [0; 7],
        };
        Ok(totals)
    };
    // SAFETY: as the header says of `statistics` and `error`.
    unsafe { give(statistics, "statistics", error, work) }
}

/// Frees a service.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_service_free(service: hg_service, error: *mut hg_error) -> hg_status {
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, || SERVICES.remove(service.handle).map(drop)) }
}

/// Makes an owner.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_owner_new(
    service: hg_service,
    name: *const c_char,
    owner: *mut hg_owner,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        // SAFETY: as the header says of `name`.
        let name = unsafe { text(name, "owner") }?;
        let made = SERVICES.get(service.handle)?.owner(&name);
        Ok(hg_owner { handle: OWNERS.insert(made)? })
    };
    // SAFETY: as the header says of `owner` and `error`.
    unsafe { give(owner, "owner", error, work) }
}

/// The owner of a handle.
pub(crate) fn owner_of(owner: hg_owner) -> Result<crate::table::HandleRef<Owner>, CapiError> {
    OWNERS.get(owner.handle)
}

/// Terminates the timers of an owner.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_owner_terminate(owner: hg_owner, error: *mut hg_error) -> hg_status {
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, || Ok(OWNERS.get(owner.handle)?.terminate()?)) }
}

/// Terminates them and frees the owner.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_owner_free(owner: hg_owner, error: *mut hg_error) -> hg_status {
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, || OWNERS.remove(owner.handle).map(drop)) }
}

/// Makes a class.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_class_new(
    service: hg_service,
    name: *const c_char,
    settings: *const hg_class_settings,
    class_: *mut hg_class,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        // SAFETY: as the header says of `settings`.
        let settings = unsafe { read_or_default(settings) };
        unused(settings.reserved, "hg_class_settings")?;
        let default = ClassSettings::default();
        let room = match settings.room {
            0 => default.capacity,
            room => room_of(room)?,
        };
        let settings = ClassSettings {
            attributes: settings.scheduling.attributes()?,
            capacity: room,
            raise: settings.raise,
        };
        // SAFETY: as the header says of `name`.
        let name = unsafe { text(name, "class") }?;
        let made = SERVICES.get(service.handle)?.class(&name, settings)?;
        Ok(hg_class { handle: CLASSES.insert(made)? })
    };
    // SAFETY: as the header says of `class_` and `error`.
    unsafe { give(class_, "class_", error, work) }
}

/// The class of a handle.
pub(crate) fn class_of(class: hg_class) -> Result<ActionClass, CapiError> {
    CLASSES.get(class.handle).map(|class| class.clone())
}

/// Reads the counts of a class.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_class_look(
    class_: hg_class,
    statistics: *mut hg_class_statistics,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let found = CLASSES.get(class_.handle)?.statistics();
        let totals = hg_class_statistics {
            ran: found.ran,
            longest_ns: found.longest_ns,
            without_room: found.without_room,
            raised: found.raised,
            raise_refused: found.raise_refused,
        };
        Ok(totals)
    };
    // SAFETY: as the header says of `statistics` and `error`.
    unsafe { give(statistics, "statistics", error, work) }
}

/// Frees a class' handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_class_free(class_: hg_class, error: *mut hg_error) -> hg_status {
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, || CLASSES.remove(class_.handle).map(drop)) }
}

/// Makes a port.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_port_new(
    room: u32,
    port: *mut hg_port,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let made = Port::new(room_of(room)?).map_err(|error| {
            let text = format!(
                "no port with room for {room} messages ({error}): give less, or close files"
            );
            CapiError { text: text.into(), ..CapiError::os(&error) }
        })?;
        Ok(hg_port { handle: PORTS.insert(made)? })
    };
    // SAFETY: as the header says of `port` and `error`.
    unsafe { give(port, "port", error, work) }
}

/// The port of a handle.
pub(crate) fn port_of(port: hg_port) -> Result<Port, CapiError> {
    PORTS.get(port.handle).map(|port| port.clone())
}

/// A port's descriptor; -1 without a port.
#[unsafe(no_mangle)]
pub extern "C" fn hg_port_fd(port: hg_port) -> i32 {
    answer(-1, || PORTS.get(port.handle).map_or(-1, |port| port.as_fd().as_raw_fd()))
}

/// Messages that found no room.
#[unsafe(no_mangle)]
pub extern "C" fn hg_port_lost(port: hg_port) -> u64 {
    answer(0, || PORTS.get(port.handle).map_or(0, |port| port.lost()))
}

/// # Safety
/// As the header says of `message`.
unsafe fn received(
    found: Option<Message>,
    otherwise: hg_status,
    to: *mut hg_message,
) -> Result<(), CapiError> {
    let Some(Message { tag, expiration }) = found else {
        return Err(CapiError::new(otherwise, ""));
    };
    // SAFETY: as the caller promises.
    unsafe { write(to, hg_message { tag, expiration: expiration.into() }, "message") }
}

/// The oldest message, if there is any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_port_try_receive(
    port: hg_port,
    message: *mut hg_message,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        is_there(message, "message")?;
        let port = PORTS.get(port.handle)?;
        // SAFETY: as the header says of `message`.
        unsafe { received(port.try_receive(), HG_EMPTY, message) }
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

/// The oldest message; waits for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_port_receive(
    port: hg_port,
    limit_ns: u64,
    message: *mut hg_message,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        is_there(message, "message")?;
        let port = PORTS.get(port.handle)?;
        let limit = i64::try_from(limit_ns).ok().map(Span::from_nanos);
        let found = port.receive(limit).map_err(|error| CapiError::os(&error))?;
        // SAFETY: as the header says of `message`.
        unsafe { received(found, HG_TIMEOUT, message) }
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

/// Frees a port's handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_port_free(port: hg_port, error: *mut hg_error) -> hg_status {
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, || PORTS.remove(port.handle).map(drop)) }
}

/// Reads the calling thread's real-time priority anew.
#[unsafe(no_mangle)]
pub extern "C" fn hg_refresh_priority() -> u32 {
    answer(0, || u32::from(refresh_priority()))
}
