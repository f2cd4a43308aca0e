//! Owners: what timers are torn down with.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use hourglass_sys::no_stop::NoStopGuard;

use super::action::Action;
use super::error::ServiceError;
use super::run::is_in_action;
use super::service::Core;
use super::table::TimerEntry;
use super::timer::{Timer, TimerInner, open};
use crate::engine::{ClockBase, ClockSetPolicy};

/// The owner of timers, the paper's task: "If a task is terminated, then the timer resources owned
/// by it are terminated as well" (RT-Mach, section 3.1). Terminated or dropped, it terminates all of
/// its timers, by the rules of [`Timer::terminate`].
pub struct Owner {
    name: String,
    core: Arc<Core>,
    timers: Mutex<OwnerState>,
}

#[derive(Default)]
struct OwnerState {
    timers: Vec<OwnedTimer>,
    terminated: bool,
}

/// A timer of an owner, and where it lives: what it does can still be seen when its last handle is
/// about to go, and while an action runs in which that went.
#[derive(Clone)]
struct OwnedTimer {
    timer: Weak<TimerInner>,
    engine: u32,
    index: u32,
    generation: u32,
}

impl OwnedTimer {
    fn new(timer: &Timer) -> OwnedTimer {
        let TimerInner { table, place, generation, .. } = &*timer.0;
        let (engine, index) = (table.engine, place.index);
        OwnedTimer { timer: Arc::downgrade(&timer.0), engine, index, generation: *generation }
    }

    /// Whether an owner that is terminated has anything to do with it.
    fn may_act(&self, core: &Core) -> bool {
        let acts = |entry: &TimerEntry| entry.may_act(self.generation);
        self.timer.strong_count() > 0 || self.in_place(core, acts).unwrap_or(false)
    }

    fn is_alive(&self, core: &Core) -> bool {
        let lives = |entry: &TimerEntry| {
            let is_dead = entry.slot.state().dead();
            // Last: what was seen before may be the next timer's.
            !is_dead && entry.generation() == self.generation
        };
        self.timer.strong_count() > 0 && self.in_place(core, lives).unwrap_or(false)
    }

    fn terminate(&self, core: &Core) -> Result<(), ServiceError> {
        if let Some(timer) = self.timer.upgrade() {
            return Timer(timer).terminate();
        }
        // Dropping the last handle terminates the timer. Its action may be the caller's own.
        if !is_in_action() {
            self.in_place(core, |entry| entry.wait_for_orphan(self.generation));
        }
        Ok(())
    }

    fn in_place<T>(&self, core: &Core, look: impl FnOnce(&TimerEntry) -> T) -> Option<T> {
        let table = core.table(Some(self.engine as usize)).ok()?;
        table.entry(self.index).map(look)
    }
}

/// What a timer is made with.
#[derive(Debug)]
pub struct TimerSettings {
    /// Its clock, which also says what a suspension of the machine does to it (see [`ClockBase`]).
    pub base: ClockBase,
    /// What it does when that is set.
    pub on_set: ClockSetPolicy,
    /// What it does when it expires.
    pub action: Action,
    /// Which engine serves it, from 0; `None` takes them in turn.
    pub engine: Option<usize>,
}

impl Owner {
    pub(super) fn new(name: &str, core: &Arc<Core>) -> Owner {
        Owner { name: name.to_owned(), core: Arc::clone(core), timers: Mutex::default() }
    }

    /// Name that the owner was given.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A new timer on a clock, not armed, that follows that when it is set.
    ///
    /// Allocates, and wakes the engine when it needs more room.
    ///
    /// # Errors
    /// [`ServiceError::Terminated`] for an owner that was terminated,
    /// [`ServiceError::TooManyTimers`], [`ServiceError::ForeignClass`],
    /// [`ServiceError::Forked`].
    pub fn timer(&self, base: ClockBase, action: Action) -> Result<Timer, ServiceError> {
        self.timer_with(TimerSettings {
            base,
            on_set: ClockSetPolicy::Follow,
            action,
            engine: None,
        })
    }

    /// As [`Owner::timer`], with all settings.
    ///
    /// # Errors
    /// As [`Owner::timer`], and [`ServiceError::NoEngine`].
    pub fn timer_with(&self, settings: TimerSettings) -> Result<Timer, ServiceError> {
        let TimerSettings { base, on_set, action, engine } = settings;
        self.core.check_not_forked()?;
        if let Some(class) = action.class()
            && !self.core.classes.has(class)
        {
            return Err(ServiceError::ForeignClass { class: class.name().to_owned() });
        }
        let table = self.core.table(engine)?;
        let mut owned = self.owned();
        if owned.terminated {
            return Err(ServiceError::Terminated);
        }
        if owned.timers.len() == owned.timers.capacity() {
            owned.timers.retain(|timer| timer.may_act(&self.core));
            // So that the next time is as many timers away as there are.
            let living = owned.timers.len();
            owned.timers.reserve(living + 1);
        }
        let timer = open(table, (base, on_set), action)?;
        owned.timers.push(OwnedTimer::new(&timer));
        Ok(timer)
    }

    /// Terminates all its timers; it makes none any more. Terminating twice does no harm, and waits
    /// as the first time does, but not from an action: of two actions that terminate the owner of
    /// both, one returns while the other still runs. Waited for is also an action in which the last
    /// handle of its timer went, or for whose end another thread waits that drops that; not from an
    /// action.
    ///
    /// # Errors
    /// [`ServiceError::Forked`].
    pub fn terminate(&self) -> Result<(), ServiceError> {
        self.core.check_not_forked()?;
        let mut owned = self.owned();
        if std::mem::replace(&mut owned.terminated, true) && is_in_action() {
            return Ok(());
        }
        // The timers stay listed: another thread that terminates it too has to wait for the same actions.
        let timers = owned.timers.clone();
        drop(owned);
        timers.iter().try_for_each(|timer| timer.terminate(&self.core))
    }

    /// Number of its live timers.
    #[must_use]
    pub fn timers(&self) -> usize {
        let owned = self.owned();
        if owned.terminated {
            return 0;
        }
        owned.timers.iter().filter(|listed| listed.is_alive(&self.core)).count()
    }

    fn owned(&self) -> NoStopGuard<MutexGuard<'_, OwnerState>> {
        NoStopGuard::new(|| self.timers.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // Only a forked child is refused, where nothing of it is.
        let _ = self.terminate();
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owner").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::TimerService;

    /// One that is dropped and one that is made, at a full list, must not have it searched each
    /// time.
    #[test]
    fn a_full_list_is_searched_rarely() {
        let service = TimerService::start().unwrap();
        let owner = service.owner("many");
        let make = || owner.timer(ClockBase::Monotonic, Action::nothing()).unwrap();
        let mut timers: Vec<Timer> = (0..64).map(|_| make()).collect();
        let room = || {
            let owned = owner.owned();
            owned.timers.capacity() - owned.timers.len()
        };
        while room() > 0 {
            timers.push(make());
        }
        timers.pop();
        timers.push(make());
        assert!(room() >= timers.len() / 2);
    }
}
