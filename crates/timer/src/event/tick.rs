//! One ticking device, several users, each at its own rate: RT-Mach's change of resolution.
//!
//! *Time Services in RT-Mach*, section 2.2: to let one user have a finer clock without the others
//! noticing "it was necessary to multiplex the kernel `clock_interrupt()` routine on top of this
//! baseline clock device".

use hourglass_time::Span;

use super::clock_event::{DeviceWaitEnd, Mode};
use super::device::EventDevice;
use super::error::{DeviceError, ModeError};
use super::period::{Period, PeriodGrid};
use super::periods::{Periods, ResolutionError};

/// A user of a ticking device. Never given twice by one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TickUser(u64);

/// Which user is notified of which tick.
///
/// The device ticks at the finest period that any user needs; a user is notified at the first tick
/// that is not before its own time. Where its period is no multiple of the device's, single
/// intervals are off by less than one tick of the device ("temporarily skewed", section 2.2
/// there), and its rate in the long run is exact, since its times are counted from where it began.
#[derive(Clone, Debug)]
pub struct Ticks {
    periods: Periods,
    users: Vec<User>,
    next: u64,
}

#[derive(Clone, Copy, Debug)]
struct User {
    id: TickUser,
    times: PeriodGrid,
    /// The longest period of the device that serves it.
    needs: Period,
}

impl Ticks {
    /// No users yet, on a device that can tick at `periods`.
    #[must_use]
    pub const fn new(periods: Periods) -> Ticks {
        Ticks { periods, users: Vec::new(), next: 0 }
    }

    /// Adds a user that is notified every `period`, exactly in the long run, from `now_ns` on.
    ///
    /// # Errors
    /// [`ResolutionError::TooShort`] if the device does not tick so fast.
    pub fn add(&mut self, period: Period, now_ns: u64) -> Result<TickUser, ResolutionError> {
        let needs = self.needs(period)?;
        let id = TickUser(self.next);
        self.next += 1;
        self.users.push(User { id, times: PeriodGrid::starting_at(now_ns, period), needs });
        Ok(id)
    }

    /// Changes the resolution that a user has: to the device's period nearest to `desired`, if that
    /// is at most `skew` away. The user's new times count from `now_ns`. Returns the actual one.
    ///
    /// # Errors
    /// [`ResolutionError`]; then nothing changed. [`ResolutionError::TooFar`] names the nearest
    /// possible.
    pub fn set_resolution(
        &mut self,
        user: TickUser,
        desired: Span,
        skew: Span,
        now_ns: u64,
    ) -> Result<Period, ResolutionError> {
        let actual = self.periods.grant(desired, skew)?;
        let user = self.users.iter_mut().find(|u| u.id == user);
        let user = user.ok_or(ResolutionError::UnknownUser)?;
        user.times = PeriodGrid::starting_at(now_ns, actual);
        user.needs = actual;
        Ok(actual)
    }

    /// The period that a user has, exactly.
    #[must_use]
    pub fn actual(&self, user: TickUser) -> Option<Period> {
        self.users.iter().find(|u| u.id == user).map(|u| u.times.period())
    }

    /// The user leaves; whether it was there.
    pub fn remove(&mut self, user: TickUser) -> bool {
        let before = self.users.len();
        self.users.retain(|u| u.id != user);
        self.users.len() < before
    }

    /// The period at which the device must tick; `None` if it need not.
    #[must_use]
    pub fn tick(&self) -> Option<Period> {
        self.users.iter().map(|user| user.needs).min()
    }

    /// Tells each user whose time came by `now_ns`, and how many of its periods ended, in the order
    /// in which they joined; returns how many users those are. Allocates nothing.
    pub fn due(&mut self, now_ns: u64, mut each: impl FnMut(TickUser, u64)) -> usize {
        let mut notified = 0;
        for user in &mut self.users {
            let periods = user.times.advance(now_ns);
            if periods > 0 {
                each(user.id, periods);
                notified += 1;
            }
        }
        notified
    }

    fn needs(&self, period: Period) -> Result<Period, ResolutionError> {
        let shortest = self.periods.shortest().ok_or(ResolutionError::NoPeriods)?;
        let too_short = ResolutionError::TooShort { asked: period, shortest };
        self.periods.at_most(period).ok_or(too_short)
    }
}

/// A ticking device and its users.
#[derive(Debug)]
pub struct TickDevice {
    device: EventDevice,
    ticks: Ticks,
    /// When it ticked last, or began to, ns.
    last_ns: u64,
    /// Its period was changed since, and began anew.
    begun_anew: bool,
}

impl TickDevice {
    /// A device with no users: it is shut down until there is one.
    ///
    /// # Errors
    /// [`DeviceError`] of the device.
    pub fn new(mut device: EventDevice) -> Result<TickDevice, ModeError> {
        device.set_mode(Mode::Shutdown)?;
        let ticks = Ticks::new(device.facts().grantable());
        Ok(TickDevice { device, ticks, last_ns: 0, begun_anew: false })
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

    /// The period at which the device ticks now; `None` if it does not.
    #[must_use]
    pub fn tick(&self) -> Option<Period> {
        self.ticks.tick()
    }

    /// The period that a user has, exactly.
    #[must_use]
    pub fn actual(&self, user: TickUser) -> Option<Period> {
        self.ticks.actual(user)
    }

    /// Adds a user that is notified every `period`, exactly in the long run, from now on. If the
    /// device does not have that period, single intervals are off by up to a tick; a caller that
    /// prefers the device's own period nearby calls [`TickDevice::set_resolution`] next.
    ///
    /// # Errors
    /// [`ResolutionError`]; then the others go on as they did.
    pub fn add(&mut self, period: Period) -> Result<TickUser, ResolutionError> {
        let now_ns = self.device.now_ns();
        let before = self.tick();
        let user = self.ticks.add(period, now_ns)?;
        if let Err(error) = self.follow(before) {
            self.ticks.remove(user);
            return Err(error);
        }
        Ok(user)
    }

    /// Changes a user's resolution (RT-Mach's `device_set_status`): the device's period nearest to
    /// `desired`, if that is at most `skew` away. In force at once, the first tick one new period
    /// from now at the latest. Returns the actual one; the other users keep their rates.
    ///
    /// # Errors
    /// [`ResolutionError`]; then nothing changed. [`ResolutionError::TooFar`] names the nearest
    /// possible.
    pub fn set_resolution(
        &mut self,
        user: TickUser,
        desired: Span,
        skew: Span,
    ) -> Result<Period, ResolutionError> {
        let now_ns = self.device.now_ns();
        let before = self.ticks.clone();
        let actual = self.ticks.set_resolution(user, desired, skew, now_ns)?;
        if let Err(error) = self.follow(before.tick()) {
            self.ticks = before;
            return Err(error);
        }
        Ok(actual)
    }

    /// The user leaves; whether it was there. The device slows down to what the others need.
    ///
    /// # Errors
    /// [`ResolutionError::Refused`] if the device refuses to slow down: it ticks on as it did.
    pub fn remove(&mut self, user: TickUser) -> Result<bool, ResolutionError> {
        let before = self.tick();
        let left = self.ticks.remove(user);
        self.follow(before)?;
        Ok(left)
    }

    /// Waits until users are due, a kick arrives, a signal is handled, or the time base reaches
    /// `limit_ns`; notifies the users ([`Ticks::due`]).
    ///
    /// # Errors
    /// [`DeviceError`] of the device.
    pub fn wait(
        &mut self,
        limit_ns: Option<u64>,
        mut each: impl FnMut(TickUser, u64),
    ) -> Result<DeviceWaitEnd, DeviceError> {
        loop {
            let woken = self.next_tick(limit_ns)?;
            let fired = matches!(woken, DeviceWaitEnd::Event { .. });
            if !fired || self.ticks.due(self.last_ns, &mut each) > 0 {
                return Ok(woken);
            }
        }
    }

    /// As [`TickDevice::wait`], but returns after each tick of the device, whether users are due or not.
    ///
    /// # Errors
    /// [`DeviceError`] of the device.
    pub fn wait_tick(
        &mut self,
        limit_ns: Option<u64>,
        each: impl FnMut(TickUser, u64),
    ) -> Result<DeviceWaitEnd, DeviceError> {
        let woken = self.next_tick(limit_ns)?;
        if matches!(woken, DeviceWaitEnd::Event { .. }) {
            self.ticks.due(self.last_ns, each);
        }
        Ok(woken)
    }

    /// Waits for a tick. A tick that a change of the period would delay beyond a period is due now:
    /// repeated changes before the first tick must not stop the users' time.
    fn next_tick(&mut self, limit_ns: Option<u64>) -> Result<DeviceWaitEnd, DeviceError> {
        if std::mem::take(&mut self.begun_anew) {
            let now_ns = self.device.now_ns();
            let since_ns = now_ns.saturating_sub(self.last_ns);
            if self.tick().is_some_and(|tick| since_ns >= tick.nth_ns(1)) {
                self.last_ns = now_ns;
                return Ok(DeviceWaitEnd::Event { periods: 1 });
            }
        }
        let woken = self.device.wait(limit_ns)?;
        if matches!(woken, DeviceWaitEnd::Event { .. }) {
            self.last_ns = self.device.now_ns();
        }
        Ok(woken)
    }

    /// Makes the device tick as its users need it, if that is otherwise than `before`.
    fn follow(&mut self, before: Option<Period>) -> Result<(), ResolutionError> {
        let mode = match self.tick() {
            tick if tick == before => return Ok(()),
            Some(period) => Mode::Periodic(period),
            None => Mode::Shutdown,
        };
        self.device.set_mode(mode).map_err(ResolutionError::Refused)?;
        match before {
            Some(_) => self.begun_anew = true,
            None => self.last_ns = self.device.now_ns(),
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "tests/tick.rs"]
mod tests;
