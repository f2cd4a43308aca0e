//! Sleepers with a handle: they have settings of their own and are interrupted by the handle.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

use hourglass_timer::Sleeper;
use hourglass_timer::sleep::{Interrupter, SleeperSettings};

use crate::error::{CapiError, HG_BUSY, HG_OK, HG_PANIC, answer, guard, hg_error, hg_status};
use crate::pointers::give;
use crate::sleep::{SleepDeadline, hg_sleep_settings, hg_slept, settings_or, sleep, store_outcome};
use crate::table::{HandleTable, handles};
use crate::threads::thread_number;

handles! {
    hg_sleeper, "A sleeper with a handle.";
}

/// Owner of a sleeper by which no thread has slept.
const NO_THREAD: u64 = 0;

struct SleeperHandle {
    sleeper: Mutex<Sleeper>,
    interrupter: Interrupter,
    /// The thread that slept last. Only this thread may use the sleeper otherwise, so that it never waits
    /// for the lock.
    owner: AtomicU64,
}

impl SleeperHandle {
    fn lock(&self) -> Option<MutexGuard<'_, Sleeper>> {
        match self.sleeper.try_lock() {
            Ok(sleeper) => Some(sleeper),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The sleeper, for the one thread that sleeps.
    fn for_sleep(&self) -> Result<MutexGuard<'_, Sleeper>, CapiError> {
        let sleeper = self.lock().ok_or_else(|| {
            let text = "another thread sleeps by this sleeper: make one for each thread";
            CapiError::new(HG_BUSY, text)
        })?;
        self.owner.store(thread_number(), Ordering::Relaxed);
        Ok(sleeper)
    }

    /// The sleeper, for the thread that slept last; `None` for every other thread.
    fn for_owner(&self) -> Option<MutexGuard<'_, Sleeper>> {
        let own = self.owner.load(Ordering::Relaxed) == thread_number();
        if own { self.lock() } else { None }
    }
}

static SLEEPERS: HandleTable<SleeperHandle> = HandleTable::new(2, "sleeper");

/// Makes a sleeper.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_sleeper_new(
    settings: *const hg_sleep_settings,
    sleeper: *mut hg_sleeper,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        // SAFETY: as the header says of `settings`.
        let settings = unsafe { settings_or(settings, SleeperSettings::DEFAULT) }?;
        let made = Sleeper::with(settings);
        let interrupter = made.interrupter();
        let handle = SLEEPERS.insert(SleeperHandle {
            sleeper: Mutex::new(made),
            interrupter,
            owner: AtomicU64::new(NO_THREAD),
        })?;
        Ok(hg_sleeper { handle })
    };
    // SAFETY: as the header says of `sleeper` and `error`.
    unsafe { give(sleeper, "sleeper", error, work) }
}

/// # Safety
/// As the header says of the two addresses.
unsafe fn kept_sleep(
    sleeper: hg_sleeper,
    until: SleepDeadline,
    slept: *mut hg_slept,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let kept = SLEEPERS.get(sleeper.handle)?;
        let found = sleep(&mut *kept.for_sleep()?, until);
        // SAFETY: as the caller promises.
        unsafe { store_outcome(found, slept) }
    };
    // SAFETY: as the caller promises.
    unsafe { guard(error, work) }
}

/// Sleeps until a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_sleeper_until(
    sleeper: hg_sleeper,
    deadline_ns: u64,
    slept: *mut hg_slept,
    error: *mut hg_error,
) -> hg_status {
    // SAFETY: as the header says.
    unsafe { kept_sleep(sleeper, SleepDeadline::Time(deadline_ns), slept, error) }
}

/// Sleeps for a length of time, ns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_sleeper_for(
    sleeper: hg_sleeper,
    length_ns: u64,
    slept: *mut hg_slept,
    error: *mut hg_error,
) -> hg_status {
    // SAFETY: as the header says.
    unsafe { kept_sleep(sleeper, SleepDeadline::Passed(length_ns), slept, error) }
}

/// Sleeps for a number of ticks of the counter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_sleeper_ticks(
    sleeper: hg_sleeper,
    count: u64,
    slept: *mut hg_slept,
    error: *mut hg_error,
) -> hg_status {
    // SAFETY: as the header says.
    unsafe { kept_sleep(sleeper, SleepDeadline::Ticks(count), slept, error) }
}

/// Sets the calling thread's timer slack to the minimum, for the rest of its life.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_sleeper_take_slack(
    sleeper: hg_sleeper,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        SLEEPERS.get(sleeper.handle)?.for_sleep()?.take_slack();
        Ok(())
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

/// Keeps CPUs out of deep idle states until the sleeper is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_sleeper_hold_idle_latency(
    sleeper: hg_sleeper,
    us: u32,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let kept = SLEEPERS.get(sleeper.handle)?;
        kept.for_sleep()?.hold_idle_latency(us).map_err(|error| CapiError::os(&error))
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

/// Ends its sleeps.
#[unsafe(no_mangle)]
pub extern "C" fn hg_sleeper_interrupt(sleeper: hg_sleeper) -> hg_status {
    answer(HG_PANIC, || match SLEEPERS.find(sleeper.handle) {
        Ok(kept) => {
            kept.interrupter.interrupt();
            HG_OK
        }
        Err(kind) => kind,
    })
}

/// Clears a pending interrupt of the sleeper. Returns whether one was pending.
#[unsafe(no_mangle)]
pub extern "C" fn hg_sleeper_clear(sleeper: hg_sleeper) -> bool {
    answer(false, || SLEEPERS.find(sleeper.handle).is_ok_and(|kept| kept.interrupter.clear()))
}

/// The margin that a sleep of this length would have; 0 if no margin was learnt, and in other threads than
/// the one that slept last.
#[unsafe(no_mangle)]
pub extern "C" fn hg_sleeper_margin(sleeper: hg_sleeper, length_ns: u64) -> u64 {
    answer(0, || {
        let Ok(kept) = SLEEPERS.get(sleeper.handle) else { return 0 };
        kept.for_owner().and_then(|mut sleeper| sleeper.margin_ns(length_ns)).unwrap_or(0)
    })
}

/// Frees it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_sleeper_free(sleeper: hg_sleeper, error: *mut hg_error) -> hg_status {
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, || SLEEPERS.remove(sleeper.handle).map(drop)) }
}
