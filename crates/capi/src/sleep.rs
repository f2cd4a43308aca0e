//! Sleeping: by the thread's own sleeper, by one that is kept, and what interrupts both.
//!
//! Must not: allocate in a sleep but a thread's first.

use std::cell::RefCell;
use std::sync::{Mutex, MutexGuard, TryLockError};

use hourglass_time::{Instant, Monotonic, Span};
use hourglass_timer::Sleeper;
use hourglass_timer::sleep::{
    Budget, Delay, EndsWhen, Interrupt, Interrupter, Policy, Settings, Slept,
};

use crate::error::{
    Failure, HG_BUSY, HG_INTERRUPTED, HG_INVALID, HG_NULL, HG_OK, HG_PANIC, answer, guard,
    hg_error, hg_status,
};
use crate::pointers::{is_there, offer, read, write};
use crate::table::Table;

/// What interrupts sleeps: in the caller's memory, all zero at first.
#[repr(C, align(64))]
pub struct hg_interrupt {
    /// Nobody's but the library's.
    pub word: [u32; 16],
}

const _: () = assert!(size_of::<hg_interrupt>() == size_of::<Interrupt>());
const _: () = assert!(align_of::<hg_interrupt>() == align_of::<Interrupt>());

/// What happened in a sleep.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_slept {
    /// The deadline, ns on `CLOCK_MONOTONIC`.
    pub deadline_ns: u64,
    /// The reading that ended the sleep, ns.
    pub woke_ns: u64,
    /// Time in the kernel, ns.
    pub kernel_ns: u64,
    /// Time spinning, ns.
    pub spin_ns: u64,
    /// How long before the deadline the kernel was to wake, ns.
    pub margin_ns: u64,
    /// The longest time between two looks at the clock in the spin, ns.
    pub longest_step_ns: u64,
    /// `HG_DELAY_*`: why it ended after its deadline.
    pub delay: u32,
    /// Whether an interrupt ended it.
    pub interrupted: bool,
    /// 0.
    pub reserved: [u8; 3],
}

impl From<Slept> for hg_slept {
    fn from(slept: Slept) -> hg_slept {
        hg_slept {
            deadline_ns: slept.deadline_ns,
            woke_ns: slept.woke_ns,
            kernel_ns: slept.kernel_ns,
            spin_ns: slept.spin_ns,
            margin_ns: slept.margin_ns,
            longest_step_ns: slept.longest_step_ns,
            delay: match slept.delay {
                Delay::None => 0,
                Delay::AlreadyPast => 1,
                Delay::WokenLate => 2,
                Delay::Preempted => 3,
                Delay::Stalled => 4,
            },
            interrupted: slept.interrupted,
            reserved: [0; 3],
        }
    }
}

/// How a sleeper is to sleep.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct hg_sleep_settings {
    /// `HG_SLEEP_*`.
    pub policy: u32,
    /// Ticks a second, for `HG_SLEEP_THESIS`.
    pub hz: u32,
    /// CPU time for a sleep, ns.
    pub per_sleep_ns: u64,
    /// And so much of the time slept, parts per million.
    pub share_ppm: u32,
    /// Which share of the wake-ups the margin covers, parts per million.
    pub quantile_ppm: u32,
    /// What may be spun however much the wait costs, ns.
    pub least_spin_ns: u64,
    /// The longest margin, ns.
    pub longest_margin_ns: u64,
    /// What the kernel is thought to wake late by at first, ns.
    pub seed_ns: u64,
    /// Of so many sleeps that would be spun, one waits.
    pub sample_every: u32,
    /// `HG_ENDS_*`: which reading ends a sleep.
    pub ends_when: u32,
}

impl From<Settings> for hg_sleep_settings {
    fn from(settings: Settings) -> hg_sleep_settings {
        let (policy, hz) = match settings.policy {
            Policy::Learned => (0, 0),
            Policy::KernelOnly => (1, 0),
            Policy::SpinOnly => (2, 0),
            Policy::Thesis { hz } => (3, hz),
        };
        hg_sleep_settings {
            policy,
            hz,
            per_sleep_ns: settings.budget.per_sleep_ns,
            share_ppm: settings.budget.share_ppm,
            quantile_ppm: settings.quantile_ppm,
            least_spin_ns: settings.budget.least_spin_ns,
            longest_margin_ns: settings.longest_margin_ns,
            seed_ns: settings.seed_ns,
            sample_every: settings.sample_every,
            ends_when: u32::from(settings.ends_when == EndsWhen::SurelyReached),
        }
    }
}

impl hg_sleep_settings {
    /// As the sleeper knows them.
    pub(crate) fn settings(&self) -> Result<Settings, Failure> {
        let policy = match self.policy {
            0 => Policy::Learned,
            1 => Policy::KernelOnly,
            2 => Policy::SpinOnly,
            3 => Policy::Thesis { hz: self.hz },
            other => {
                let text = format!("no way to sleep is {other}: give an HG_SLEEP_*");
                return Err(Failure::invalid(text));
            }
        };
        let ends_when = match self.ends_when {
            0 => EndsWhen::Reached,
            1 => EndsWhen::SurelyReached,
            other => {
                let text = format!("no end of a sleep is {other}: give an HG_ENDS_*");
                return Err(Failure::invalid(text));
            }
        };
        Ok(Settings {
            policy,
            budget: Budget {
                per_sleep_ns: self.per_sleep_ns,
                share_ppm: self.share_ppm,
                least_spin_ns: self.least_spin_ns,
            },
            quantile_ppm: self.quantile_ppm,
            longest_margin_ns: self.longest_margin_ns,
            seed_ns: self.seed_ns,
            sample_every: self.sample_every,
            ends_when,
        })
    }
}

/// The settings of a sleep that nobody gave any.
#[unsafe(no_mangle)]
pub extern "C" fn hg_sleep_defaults() -> hg_sleep_settings {
    Settings::DEFAULT.into()
}

/// Settings that may be left out.
///
/// # Safety
/// `settings` is NULL or the address of some.
pub(crate) unsafe fn settings_or(
    settings: *const hg_sleep_settings,
    otherwise: Settings,
) -> Result<Settings, Failure> {
    if settings.is_null() {
        return Ok(otherwise);
    }
    // SAFETY: as the caller promises.
    unsafe { read(settings, "settings") }?.settings()
}

/// The caller's word.
///
/// # Errors
/// `HG_NULL`; `HG_INVALID` if it does not lie as it has to.
///
/// # Safety
/// `word` is NULL or the address of an `hg_interrupt`, all zero or used only by this library, that stays
/// there while the reference is used.
unsafe fn find_interrupt(word: *const hg_interrupt) -> Result<&'static Interrupt, hg_status> {
    if word.is_null() {
        return Err(HG_NULL);
    }
    if !word.is_aligned() {
        return Err(HG_INVALID);
    }
    // SAFETY: aligned and not NULL; both are of 64 bytes that are valid whatever they hold, are
    // changed by atomics only, and the caller promises the rest.
    Ok(unsafe { &*word.cast::<Interrupt>() })
}

/// The same with a sentence where it fails, which is not for signal handlers.
///
/// # Errors
/// As [`find_interrupt`].
///
/// # Safety
/// As [`find_interrupt`].
pub(crate) unsafe fn interrupt_at(
    word: *const hg_interrupt,
) -> Result<&'static Interrupt, Failure> {
    // SAFETY: as the caller promises.
    unsafe { find_interrupt(word) }.map_err(|kind| match kind {
        HG_NULL => Failure::null("interrupt"),
        _ => Failure::invalid(
            "the interrupt does not lie at a multiple of 64 bytes: let the compiler place it, or \
             allocate it with aligned_alloc(64, ...)",
        ),
    })
}

/// Never set: for sleeps that nothing interrupts.
static NEVER: Interrupt = Interrupt::new();

thread_local! {
    /// The thread's own sleeper, made by its first sleep.
    static OWN: RefCell<Option<Sleeper>> = const { RefCell::new(None) };
}

/// What is slept for.
#[derive(Clone, Copy)]
enum Until {
    Time(u64),
    Passed(u64),
    Ticks(u64),
}

fn sleep(sleeper: &mut Sleeper, until: Until) -> Slept {
    match until {
        Until::Time(ns) => {
            let ns = i64::try_from(ns).unwrap_or(i64::MAX);
            sleeper.sleep_until(Instant::<Monotonic>::from_nanos(ns))
        }
        Until::Passed(ns) => {
            sleeper.sleep_for(Span::from_nanos(i64::try_from(ns).unwrap_or(i64::MAX)))
        }
        Until::Ticks(count) => sleeper.sleep_ticks(count),
    }
}

/// Sleeps by the thread's own sleeper, unless `interrupt` is set meanwhile.
fn sleep_here(until: Until, interrupt: &'static Interrupt) -> Slept {
    let own = OWN.try_with(|own| own.try_borrow_mut().ok()?.take()).ok().flatten();
    let mut sleeper = own.unwrap_or_default().interrupted_by(interrupt);
    let slept = sleep(&mut sleeper, until);
    // Where the thread ends there is nowhere to put it.
    let _ = OWN.try_with(|own| {
        if let Ok(mut own) = own.try_borrow_mut() {
            *own = Some(sleeper.interrupted_by(&NEVER));
        }
    });
    slept
}

/// Tells how a sleep went.
///
/// # Safety
/// `slept` is NULL or room for one.
unsafe fn told(found: Slept, slept: *mut hg_slept) -> Result<(), Failure> {
    // SAFETY: as the caller promises.
    unsafe { offer(slept, hg_slept::from(found)) };
    if found.interrupted { Err(Failure::new(HG_INTERRUPTED, "")) } else { Ok(()) }
}

/// # Safety
/// As the header says of the two addresses.
unsafe fn own_sleep(
    until: Until,
    interrupt: *mut hg_interrupt,
    slept: *mut hg_slept,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let interrupt = if interrupt.is_null() {
            &NEVER
        } else {
            // SAFETY: as the caller promises; the sleeper drops the reference before this returns.
            unsafe { interrupt_at(interrupt) }?
        };
        // SAFETY: as the caller promises.
        unsafe { told(sleep_here(until, interrupt), slept) }
    };
    // SAFETY: as the caller promises.
    unsafe { guard(error, work) }
}

/// Sleeps until a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_sleep_until(
    deadline_ns: u64,
    interrupt: *mut hg_interrupt,
    slept: *mut hg_slept,
    error: *mut hg_error,
) -> hg_status {
    // SAFETY: as the header says.
    unsafe { own_sleep(Until::Time(deadline_ns), interrupt, slept, error) }
}

/// Sleeps so long.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_sleep_for(
    length_ns: u64,
    interrupt: *mut hg_interrupt,
    slept: *mut hg_slept,
    error: *mut hg_error,
) -> hg_status {
    // SAFETY: as the header says.
    unsafe { own_sleep(Until::Passed(length_ns), interrupt, slept, error) }
}

/// Sleeps for so many ticks of the counter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_sleep_ticks(
    count: u64,
    interrupt: *mut hg_interrupt,
    slept: *mut hg_slept,
    error: *mut hg_error,
) -> hg_status {
    // SAFETY: as the header says.
    unsafe { own_sleep(Until::Ticks(count), interrupt, slept, error) }
}

/// Ends the sleeps.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_interrupt_set(interrupt: *mut hg_interrupt) -> hg_status {
    answer(HG_PANIC, || {
        // SAFETY: as the header says; nothing keeps the reference.
        match unsafe { find_interrupt(interrupt) } {
            Ok(interrupt) => {
                interrupt.interrupt();
                HG_OK
            }
            Err(kind) => kind,
        }
    })
}

/// Lets sleeps last again; whether it was set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_interrupt_clear(interrupt: *mut hg_interrupt) -> bool {
    // SAFETY: as the header says; nothing keeps the reference.
    answer(false, || unsafe { find_interrupt(interrupt) }.is_ok_and(Interrupt::clear))
}

/// Whether it is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_interrupt_is_set(interrupt: *const hg_interrupt) -> bool {
    // SAFETY: as the header says; nothing keeps the reference.
    answer(false, || unsafe { find_interrupt(interrupt) }.is_ok_and(Interrupt::is_set))
}

/// Lets a signal set it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_interrupt_on_signal(
    interrupt: *mut hg_interrupt,
    signal: i32,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        // SAFETY: as the header says; it stays until the process ends.
        let interrupt = unsafe { interrupt_at(interrupt) }?;
        interrupt.interrupt_on_signal(signal).map_err(|found| {
            let text = format!("signal {signal} cannot interrupt sleeps: {found}");
            Failure { text, ..Failure::os(&found) }
        })
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

/// A sleeper that is kept.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_sleeper {
    /// 0 is none.
    pub handle: u64,
}

struct Kept {
    sleeper: Mutex<Sleeper>,
    interrupter: Interrupter,
}

impl Kept {
    /// For the one thread that uses it.
    fn sleeper(&self) -> Result<MutexGuard<'_, Sleeper>, Failure> {
        match self.sleeper.try_lock() {
            Ok(sleeper) => Ok(sleeper),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                let text = "another thread sleeps by this sleeper: make one for each thread";
                Err(Failure::new(HG_BUSY, text))
            }
        }
    }
}

static SLEEPERS: Table<Kept> = Table::new(2, "sleeper");

/// Makes a sleeper.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_sleeper_new(
    settings: *const hg_sleep_settings,
    sleeper: *mut hg_sleeper,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        is_there(sleeper, "sleeper")?;
        // SAFETY: as the header says of `settings`.
        let settings = unsafe { settings_or(settings, Settings::DEFAULT) }?;
        let made = Sleeper::with(settings);
        let interrupter = made.interrupter();
        let handle = SLEEPERS.insert(Kept { sleeper: Mutex::new(made), interrupter })?;
        // SAFETY: as the header says of `sleeper`.
        unsafe { write(sleeper, hg_sleeper { handle }, "sleeper") }
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

/// # Safety
/// As the header says of the two addresses.
unsafe fn kept_sleep(
    sleeper: hg_sleeper,
    until: Until,
    slept: *mut hg_slept,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let kept = SLEEPERS.get(sleeper.handle)?;
        let found = sleep(&mut *kept.sleeper()?, until);
        // SAFETY: as the caller promises.
        unsafe { told(found, slept) }
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
    unsafe { kept_sleep(sleeper, Until::Time(deadline_ns), slept, error) }
}

/// Sleeps so long.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_sleeper_for(
    sleeper: hg_sleeper,
    length_ns: u64,
    slept: *mut hg_slept,
    error: *mut hg_error,
) -> hg_status {
    // SAFETY: as the header says.
    unsafe { kept_sleep(sleeper, Until::Passed(length_ns), slept, error) }
}

/// Sleeps for so many ticks of the counter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_sleeper_ticks(
    sleeper: hg_sleeper,
    count: u64,
    slept: *mut hg_slept,
    error: *mut hg_error,
) -> hg_status {
    // SAFETY: as the header says.
    unsafe { kept_sleep(sleeper, Until::Ticks(count), slept, error) }
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

/// Lets them last again; whether there was an interrupt.
#[unsafe(no_mangle)]
pub extern "C" fn hg_sleeper_clear(sleeper: hg_sleeper) -> bool {
    answer(false, || SLEEPERS.find(sleeper.handle).is_ok_and(|kept| kept.interrupter.clear()))
}

/// The margin that a sleep of this length would have; 0 if nothing was learnt, or it sleeps.
#[unsafe(no_mangle)]
pub extern "C" fn hg_sleeper_margin(sleeper: hg_sleeper, length_ns: u64) -> u64 {
    answer(0, || {
        let Ok(kept) = SLEEPERS.get(sleeper.handle) else { return 0 };
        kept.sleeper().ok().and_then(|mut sleeper| sleeper.margin_ns(length_ns)).unwrap_or(0)
    })
}

/// Frees it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_sleeper_free(sleeper: hg_sleeper, error: *mut hg_error) -> hg_status {
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, || SLEEPERS.remove(sleeper.handle).map(drop)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_go_both_ways() {
        let policies =
            [Policy::Learned, Policy::KernelOnly, Policy::SpinOnly, Policy::Thesis { hz: 250 }];
        for policy in policies {
            let settings = Settings::with_policy(policy);
            assert_eq!(hg_sleep_settings::from(settings).settings().unwrap(), settings);
        }
        let wrong = hg_sleep_settings { policy: 9, ..hg_sleep_defaults() };
        assert!(wrong.settings().unwrap_err().text.contains("HG_SLEEP_"));
    }
}
