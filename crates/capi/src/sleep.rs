//! Sleeps by the thread's own sleeper, their settings and their results.
//!
//! Must not: allocate in a sleep but a thread's first.

use std::cell::RefCell;

use hourglass_time::{Instant, Monotonic, Span};
use hourglass_timer::Sleeper;
use hourglass_timer::sleep::{
    Budget, Delay, Interrupt, SleepEnd, SleepOutcome, SleepPolicy, SleeperSettings,
};

use crate::error::{CapiError, HG_INTERRUPTED, guard, hg_error, hg_status};
use crate::interrupt::{NEVER, hg_interrupt, interrupt_at};
use crate::pointers::{offer, read, unused};

/// Result of a sleep.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_slept {
    /// The deadline, ns on `CLOCK_MONOTONIC`.
    pub deadline_ns: u64,
    /// The sample of the clock that ended the sleep, ns.
    pub woke_ns: u64,
    /// Time waited in the kernel, ns.
    pub kernel_ns: u64,
    /// Time spent spinning, ns.
    pub spin_ns: u64,
    /// Time before the deadline at which the kernel was to wake the thread, ns.
    pub margin_ns: u64,
    /// The longest time between two samples of the clock in the spin, ns.
    pub longest_step_ns: u64,
    /// `HG_DELAY_*`: why it ended after its deadline.
    pub delay: u32,
    /// Whether an interrupt ended it.
    pub interrupted: bool,
    /// Reserved: 0.
    pub reserved: [u8; 3],
}

impl From<SleepOutcome> for hg_slept {
    fn from(slept: SleepOutcome) -> hg_slept {
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

/// Settings of a sleeper.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct hg_sleep_settings {
    /// `HG_SLEEP_*`.
    pub policy: u32,
    /// Ticks a second, for `HG_SLEEP_THESIS`.
    pub hz: u32,
    /// Longest spin in one sleep, ns.
    pub per_sleep_ns: u64,
    /// Longest spin as a share of the time slept, parts per million, to cover two of three wake-ups.
    pub share_ppm: u32,
    /// Share of the wake-ups that the margin covers, parts per million.
    pub quantile_ppm: u32,
    /// Longest spin as a share of the CPU time of the kernel's wait, parts per million.
    pub of_wait_ppm: u32,
    /// Reserved: 0.
    pub reserved: u32,
    /// The longest margin, ns.
    pub longest_margin_ns: u64,
    /// First estimate of the kernel's wake-up latency, ns.
    pub seed_ns: u64,
    /// One of this number of sleeps that would spin waits in the kernel instead.
    pub sample_every: u32,
    /// `HG_ENDS_*`: which reading ends a sleep.
    pub ends_when: u32,
}

impl From<SleeperSettings> for hg_sleep_settings {
    fn from(settings: SleeperSettings) -> hg_sleep_settings {
        let (policy, hz) = match settings.policy {
            SleepPolicy::Learned => (0, 0),
            SleepPolicy::KernelOnly => (1, 0),
            SleepPolicy::SpinOnly => (2, 0),
            SleepPolicy::Thesis { hz } => (3, hz),
        };
        hg_sleep_settings {
            policy,
            hz,
            per_sleep_ns: settings.budget.per_sleep_ns,
            share_ppm: settings.budget.share_ppm,
            quantile_ppm: settings.quantile_ppm,
            of_wait_ppm: settings.budget.of_wait_ppm,
            reserved: 0,
            longest_margin_ns: settings.longest_margin_ns,
            seed_ns: settings.seed_ns,
            sample_every: settings.sample_every,
            ends_when: u32::from(settings.ends_when == SleepEnd::SurelyReached),
        }
    }
}

impl hg_sleep_settings {
    /// Settings of a program that did not begin with the defaults.
    const ALL_ZERO: hg_sleep_settings = hg_sleep_settings {
        policy: 0,
        hz: 0,
        per_sleep_ns: 0,
        share_ppm: 0,
        quantile_ppm: 0,
        of_wait_ppm: 0,
        reserved: 0,
        longest_margin_ns: 0,
        seed_ns: 0,
        sample_every: 0,
        ends_when: 0,
    };

    /// Converts them to settings of the sleeper.
    pub(crate) fn settings(&self) -> Result<SleeperSettings, CapiError> {
        /// All of the wake-ups, parts per million.
        const ALL_PPM: u32 = 1_000_000;
        if *self == hg_sleep_settings::ALL_ZERO {
            let text = "settings of a sleep are not all zero: begin with hg_sleep_defaults()";
            return Err(CapiError::invalid(text));
        }
        unused(self.reserved, "hg_sleep_settings")?;
        if self.quantile_ppm > ALL_PPM {
            let text = format!("quantile_ppm is at most {ALL_PPM}, not {}", self.quantile_ppm);
            return Err(CapiError::invalid(text));
        }
        let policy = match self.policy {
            0 => SleepPolicy::Learned,
            1 => SleepPolicy::KernelOnly,
            2 => SleepPolicy::SpinOnly,
            3 if self.hz == 0 => {
                return Err(CapiError::invalid(
                    "hz is 0: HG_SLEEP_THESIS counts in ticks a second",
                ));
            }
            3 => SleepPolicy::Thesis { hz: self.hz },
            other => {
                let text = format!("policy {other} is no way to sleep: give an HG_SLEEP_*");
                return Err(CapiError::invalid(text));
            }
        };
        let ends_when = match self.ends_when {
            0 => SleepEnd::Reached,
            1 => SleepEnd::SurelyReached,
            other => {
                let text = format!("ends_when {other} is no end of a sleep: give an HG_ENDS_*");
                return Err(CapiError::invalid(text));
            }
        };
        Ok(SleeperSettings {
            policy,
            budget: Budget {
                per_sleep_ns: self.per_sleep_ns,
                share_ppm: self.share_ppm,
                of_wait_ppm: self.of_wait_ppm,
            },
            quantile_ppm: self.quantile_ppm,
            longest_margin_ns: self.longest_margin_ns,
            seed_ns: self.seed_ns,
            sample_every: self.sample_every,
            ends_when,
        })
    }
}

/// The default settings of a sleep.
#[unsafe(no_mangle)]
pub extern "C" fn hg_sleep_defaults() -> hg_sleep_settings {
    SleeperSettings::DEFAULT.into()
}

/// Settings for the least CPU time of a precise sleep.
#[unsafe(no_mangle)]
pub extern "C" fn hg_sleep_frugal() -> hg_sleep_settings {
    SleeperSettings::FRUGAL.into()
}

/// Settings for the most precise sleep, at any cost of CPU time.
#[unsafe(no_mangle)]
pub extern "C" fn hg_sleep_precise() -> hg_sleep_settings {
    SleeperSettings::PRECISE.into()
}

/// Settings that may be left out.
///
/// # Safety
/// `settings` is NULL or the address of some.
pub(crate) unsafe fn settings_or(
    settings: *const hg_sleep_settings,
    otherwise: SleeperSettings,
) -> Result<SleeperSettings, CapiError> {
    if settings.is_null() {
        return Ok(otherwise);
    }
    // SAFETY: as the caller promises.
    unsafe { read(settings, "settings") }?.settings()
}

thread_local! {
    /// The thread's own sleeper, made by its first sleep.
    static OWN: RefCell<Option<Sleeper>> = const { RefCell::new(None) };
}

#[derive(Clone, Copy)]
pub(crate) enum SleepDeadline {
    Time(u64),
    Passed(u64),
    Ticks(u64),
}

pub(crate) fn sleep(sleeper: &mut Sleeper, until: SleepDeadline) -> SleepOutcome {
    match until {
        SleepDeadline::Time(ns) => {
            let ns = i64::try_from(ns).unwrap_or(i64::MAX);
            sleeper.sleep_until(Instant::<Monotonic>::from_nanos(ns))
        }
        SleepDeadline::Passed(ns) => sleeper.sleep_for(Span::saturating_from_nanos(ns)),
        SleepDeadline::Ticks(count) => sleeper.sleep_ticks(count),
    }
}

/// Does something by the thread's own sleeper, which `interrupt` ends.
pub(crate) fn by_own_sleeper<T>(
    interrupt: &'static Interrupt,
    work: impl FnOnce(&mut Sleeper) -> T,
) -> T {
    let own = OWN.try_with(|own| own.try_borrow_mut().ok()?.take()).ok().flatten();
    let mut sleeper = own.unwrap_or_default().interrupted_by(interrupt);
    let done = work(&mut sleeper);
    // While the thread ends its own sleeper is gone.
    let _ = OWN.try_with(|own| {
        if let Ok(mut own) = own.try_borrow_mut() {
            *own = Some(sleeper.interrupted_by(&NEVER));
        }
    });
    done
}

/// Writes the outcome of a sleep. An interrupted sleep is an error.
///
/// # Safety
/// `slept` is NULL or the address of room for an `hg_slept`.
pub(crate) unsafe fn store_outcome(
    found: SleepOutcome,
    slept: *mut hg_slept,
) -> Result<(), CapiError> {
    // SAFETY: as the caller promises.
    unsafe { offer(slept, hg_slept::from(found)) };
    if found.interrupted { Err(CapiError::new(HG_INTERRUPTED, "")) } else { Ok(()) }
}

/// # Safety
/// As the header says of the two addresses.
unsafe fn own_sleep(
    until: SleepDeadline,
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
        unsafe { store_outcome(by_own_sleeper(interrupt, |own| sleep(own, until)), slept) }
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
    unsafe { own_sleep(SleepDeadline::Time(deadline_ns), interrupt, slept, error) }
}

/// Sleeps for a length of time, ns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_sleep_for(
    length_ns: u64,
    interrupt: *mut hg_interrupt,
    slept: *mut hg_slept,
    error: *mut hg_error,
) -> hg_status {
    // SAFETY: as the header says.
    unsafe { own_sleep(SleepDeadline::Passed(length_ns), interrupt, slept, error) }
}

/// Sleeps for a number of ticks of the counter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_sleep_ticks(
    count: u64,
    interrupt: *mut hg_interrupt,
    slept: *mut hg_slept,
    error: *mut hg_error,
) -> hg_status {
    // SAFETY: as the header says.
    unsafe { own_sleep(SleepDeadline::Ticks(count), interrupt, slept, error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_go_both_ways() {
        let policies = [
            SleepPolicy::Learned,
            SleepPolicy::KernelOnly,
            SleepPolicy::SpinOnly,
            SleepPolicy::Thesis { hz: 250 },
        ];
        for policy in policies {
            let settings = SleeperSettings::with_policy(policy);
            assert_eq!(hg_sleep_settings::from(settings).settings().unwrap(), settings);
        }
        let wrong = hg_sleep_settings { policy: 9, ..hg_sleep_defaults() };
        assert!(wrong.settings().unwrap_err().text.contains("HG_SLEEP_"));
    }
}
