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

/// A ticking device and its users.
///
/// The device ticks at the finest period that any user needs; a user is notified at the first tick
/// that is not before its own time. Where its period is no multiple of the device's, single
/// intervals are off by less than one tick of the device ("temporarily skewed", section 2.2
/// there), and its rate in the long run is exact, since its times are counted from where it began.
#[derive(Debug)]
pub struct TickDevice {
    device: EventDevice,
    /// Those that users can be granted.
    periods: Periods,
    users: Vec<User>,
    /// Number of the next user.
    next: u64,
    /// When it ticked last, or began to, ns.
    last_ns: u64,
    /// Its period was changed since, and began anew.
    begun_anew: bool,
}

#[derive(Clone, Copy, Debug)]
struct User {
    id: TickUser,
    times: PeriodGrid,
    /// The longest period of the device that serves it.
    needs: Period,
}

impl TickDevice {
    /// A device with no users: it is shut down until there is one.
    ///
    /// # Errors
    /// [`DeviceError`] of the device.
    pub fn new(mut device: EventDevice) -> Result<TickDevice, ModeError> {
        device.set_mode(Mode::Shutdown)?;
        let periods = device.facts().grantable();
        Ok(TickDevice {
            device,
            periods,
            users: Vec::new(),
            next: 0,
            last_ns: 0,
            begun_anew: false,
        })
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &EventDevice {
        &self.device
    }

    /// The period at which the device ticks now; `None` if it does not.
    #[must_use]
    pub fn tick(&self) -> Option<Period> {
        self.users.iter().map(|user| user.needs).min()
    }

    /// The period that a user has, exactly.
    #[must_use]
    pub fn actual(&self, user: TickUser) -> Option<Period> {
        self.users.iter().find(|u| u.id == user).map(|u| u.times.period())
    }

    /// Adds a user that is notified every `period`, exactly in the long run, from now on. If the
    /// device does not have that period, single intervals are off by up to a tick; a caller that
    /// prefers the device's own period nearby calls [`TickDevice::set_resolution`] next.
    ///
    /// # Errors
    /// [`ResolutionError`]; then the others go on as they did.
    pub fn add(&mut self, period: Period) -> Result<TickUser, ResolutionError> {
        let now_ns = self.device.now_ns();
        let shortest = self.periods.shortest().ok_or(ResolutionError::NoPeriods)?;
        let too_short = ResolutionError::TooShort { asked: period, shortest };
        let needs = self.periods.at_most(period).ok_or(too_short)?;
        let before = self.tick();
        let id = TickUser(self.next);
        self.next += 1;
        self.users.push(User { id, times: PeriodGrid::starting_at(now_ns, period), needs });
        if let Err(error) = self.follow(before) {
            self.users.pop();
            return Err(error);
        }
        Ok(id)
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
        let actual = self.periods.grant(desired, skew)?;
        let tick = self.tick();
        let place = self.users.iter().position(|u| u.id == user);
        let place = place.ok_or(ResolutionError::UnknownUser)?;
        let times = PeriodGrid::starting_at(now_ns, actual);
        let before =
            std::mem::replace(&mut self.users[place], User { id: user, times, needs: actual });
        if let Err(error) = self.follow(tick) {
            self.users[place] = before;
            return Err(error);
        }
        Ok(actual)
    }

    /// The user leaves; whether it was there. The device slows down to what the others need.
    ///
    /// # Errors
    /// [`ResolutionError::Refused`] if the device refuses to slow down: it ticks on as it did.
    pub fn remove(&mut self, user: TickUser) -> Result<bool, ResolutionError> {
        let (tick, users) = (self.tick(), self.users.len());
        self.users.retain(|u| u.id != user);
        self.follow(tick)?;
        Ok(self.users.len() < users)
    }

    /// Waits until the device ticks, a kick arrives, a signal is handled, or the time base reaches
    /// `limit_ns`. After a tick `each` is called for each user whose time came, with how many of its
    /// periods ended, in the order in which they joined. Allocates nothing.
    ///
    /// # Errors
    /// [`DeviceError`] of the device.
    pub fn wait(
        &mut self,
        limit_ns: Option<u64>,
        mut each: impl FnMut(TickUser, u64),
    ) -> Result<DeviceWaitEnd, DeviceError> {
        let woken = self.next_tick(limit_ns)?;
        if matches!(woken, DeviceWaitEnd::Event { .. }) {
            for user in &mut self.users {
                let periods = user.times.advance(self.last_ns);
                if periods > 0 {
                    each(user.id, periods);
                }
            }
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
