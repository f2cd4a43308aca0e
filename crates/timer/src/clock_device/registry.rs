//! Clock devices by name.

use std::fmt;
use std::sync::Arc;

use hourglass_clock::Clock;
use hourglass_clock::source::SimSource;
use hourglass_time::Span;

use crate::event::native::{PosixTimerEvent, RtcEvent, SleepEvent, TimerFdEvent};
use crate::event::{ClockEvent, DeviceError, EventDevice, SimEvent, SimEventConfig};

use super::device::ClockDevice;
use super::error::{NameTaken, OpenError};

type Make = Box<dyn Fn() -> Result<Box<dyn ClockEvent>, DeviceError> + Send + Sync>;

/// A clock device that can be opened, as a list shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description<'a> {
    /// Name by which the device is opened.
    pub name: &'a str,
    /// What it is, in a line.
    pub text: &'a str,
}

struct ClockDeviceEntry {
    name: String,
    text: String,
    finest: Option<Span>,
    make: Make,
}

/// The clock devices of a machine, real or simulated, by name.
///
/// Opening one makes a device of the caller's own: users of one device share its ticks, several
/// openers do not. (A hardware clock that exists once, `/dev/rtc`, can be opened once.)
pub struct ClockDevices<C = &'static Clock> {
    clock: C,
    entries: Vec<ClockDeviceEntry>,
}

/// On this machine no device is asked to tick faster than this: about what a wake-up costs.
const FINEST_NATIVE: Span = Span::from_micros(50);

impl ClockDevices {
    /// The name of a clock device that is on every machine: what RT-Mach's macro `CLOCK_REALTIME`
    /// names (section 2.1; POSIX means another clock by that).
    pub const BASELINE: &str = "baseline";

    /// The devices of this machine, telling the time of the process' clock: `baseline` (the thread's
    /// own sleep, which needs nothing and so never fails to open), `timerfd`, `posix`, `rtc`. Listed
    /// whether or not they can be had; that is seen when one is opened.
    #[must_use]
    pub fn native() -> ClockDevices {
        let mut devices = ClockDevices::on(hourglass_clock::process::clock());
        let finest = Some(FINEST_NATIVE);
        devices.put(
            ClockDevices::BASELINE,
            "the thread's own sleep, ticks emulated",
            finest,
            || Ok(Box::new(SleepEvent::new())),
        );
        devices.put("timerfd", "a periodic timer behind a file", finest, || {
            Ok(Box::new(TimerFdEvent::new()?))
        });
        devices.put("posix", "a periodic timer that signals the thread", finest, || {
            Ok(Box::new(PosixTimerEvent::new()?))
        });
        devices.put("rtc", "the real-time clock's interrupt, powers of two", None, || {
            Ok(Box::new(RtcEvent::find()?))
        });
        devices
    }
}

impl<C: Clone> ClockDevices<C> {
    /// No devices yet; those that come tell the time of `clock`.
    #[must_use]
    pub fn on(clock: C) -> ClockDevices<C> {
        ClockDevices { clock, entries: Vec::new() }
    }

    /// The devices of the paper's machines, in the virtual time of `time`, which `clock` MUST run
    /// on: `sim_i8254` (multiples of 838 ns to 0.055 s), `sim_mc146818` (powers of two), `sim`
    /// (exact), and as `baseline` the i486 AT's i8254.
    #[must_use]
    pub fn simulated(clock: C, time: &Arc<SimSource>) -> ClockDevices<C> {
        let mut devices = ClockDevices::on(clock);
        for (name, config, text) in [
            (ClockDevices::BASELINE, SimEventConfig::i8254(), "the i486 AT's interval timer"),
            ("sim_i8254", SimEventConfig::i8254(), "multiples of 838 ns to 0.055 s"),
            ("sim_mc146818", SimEventConfig::mc146818(), "powers of two from 2 Hz to 8192 Hz"),
            ("sim", SimEventConfig::exact(), "every whole number of nanoseconds"),
        ] {
            let time = Arc::clone(time);
            devices
                .put(name, text, None, move || Ok(Box::new(SimEvent::new(&time, config.clone()))));
        }
        devices
    }

    /// Adds a device of the caller's: `make` is called at each opening, by the thread that opens.
    ///
    /// # Errors
    /// [`NameTaken`].
    pub fn register(
        &mut self,
        name: &str,
        text: &str,
        finest: Option<Span>,
        make: impl Fn() -> Result<Box<dyn ClockEvent>, DeviceError> + Send + Sync + 'static,
    ) -> Result<(), NameTaken> {
        if self.list().any(|known| known.name == name) {
            return Err(NameTaken(name.to_owned()));
        }
        self.put(name, text, finest, make);
        Ok(())
    }

    fn put(
        &mut self,
        name: &str,
        text: &str,
        finest: Option<Span>,
        make: impl Fn() -> Result<Box<dyn ClockEvent>, DeviceError> + Send + Sync + 'static,
    ) {
        let (name, text, make) = (name.to_owned(), text.to_owned(), Box::new(make));
        self.entries.push(ClockDeviceEntry { name, text, finest, make });
    }

    /// Opens the device by that name for the calling thread, which will serve it.
    ///
    /// # Errors
    /// [`OpenError::Unknown`] lists the names there are; the others say what is missing.
    pub fn open<T>(&self, name: &str) -> Result<ClockDevice<T, C>, OpenError> {
        let named = || name.to_owned();
        let Some(entry) = self.entries.iter().find(|entry| entry.name == name) else {
            let known: Vec<&str> = self.list().map(|known| known.name).collect();
            return Err(OpenError::Unknown { name: named(), known: known.join(", ") });
        };
        let device = (entry.make)().and_then(EventDevice::from_box);
        let device = device.map_err(|error| OpenError::Device { name: named(), error })?;
        ClockDevice::new(name, self.clock.clone(), device, entry.finest)
    }
}

impl<C> ClockDevices<C> {
    /// The devices, in the order in which they came.
    pub fn list(&self) -> impl Iterator<Item = Description<'_>> {
        let entries = self.entries.iter();
        entries.map(|entry| Description { name: &entry.name, text: &entry.text })
    }
}

impl<C> fmt::Debug for ClockDevices<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list().map(|known| known.name.to_owned())).finish()
    }
}
