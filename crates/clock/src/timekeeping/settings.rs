//! How a clock is to be kept.

use std::path::{Path, PathBuf};

use super::slope::{Slope, relative_from_ppb};
use super::timebase::{Discipline, SourceId};
use crate::source::{Frequency, FrequencyOrigin};

/// The source that serves at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The OS clock serves the first reads, at its own bound; a millisecond later the machine is
    /// judged (that takes tens of microseconds), and a counter that can be trusted takes over.
    Judged,
    /// This source serves from the first read, without checks.
    With(SourceId),
}

/// What is said to be a counter's frequency: CPUID, the device tree, an earlier run. It narrows
/// the first bound and is checked; it is never believed against what is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrequencyHint {
    /// Stated frequency, Hz.
    pub hertz: u64,
    /// How far it may be off, parts per billion.
    pub tolerance_ppb: u64,
}

/// How a clock is to be kept. [`ClockSettings::DEFAULT`] is right unless something is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockSettings {
    /// The source that serves at first.
    pub start: Start,
    /// What the counter's frequency is said to be. `None`: what the machine itself states
    /// ([`super::Timebase::stated`]), which is checked against, but narrows no bound.
    pub prior: Option<FrequencyHint>,
    /// How much the counter's rate against `CLOCK_MONOTONIC` may differ between any two moments of
    /// half a minute, parts per billion: the drift that checks allow for. `None`: 100 ppb while the
    /// kernel leaves its clock alone, 2000 ppb while a daemon synchronises it.
    ///
    /// Where the kernel shows by which line it makes its clock of the counter
    /// ([`super::ReferenceRate::Line`]), bounds rest on that line, and need no allowance. Elsewhere they
    /// rest on this one if it is given ([`super::Status::Assumed`]: NTP changes the rate by up to
    /// 1,000,000 ppb, chrony by 83,333,000); if it is not, bounded reads take the OS clock.
    pub allowance_ppb: Option<u64>,
    /// How wide a bound may grow before the line is drawn anew, ns. The interval between
    /// calibrations follows from it.
    pub target_bound_ns: u64,
    /// The longest interval between calibrations, ns.
    pub longest_interval_ns: u64,
    /// Whether a reader that finds the calibration past its validity calibrates (some 10 us, once,
    /// one reader; the others take the OS clock meanwhile). Without it no read takes much longer
    /// than one of the OS clock, and the program must call [`super::Clock::maintain`].
    pub readers_refit: bool,
    /// Whether a [`super::MaintenanceThread`] gathers the whole evidence once a counter is steady
    /// ([`super::Clock::examine`]): 0.1 s in threads on the CPUs that the helper may run on.
    pub examine: bool,
    /// How often the kernel is asked about the machine, ns. A look costs some 30 us.
    pub look_every_ns: u64,
    /// The root of the file system; `None` for `/`.
    pub root: Option<PathBuf>,
}

/// Frequencies further than this from what was stated contradict it, whatever the brackets say.
const CONTRADICTION_PPB: u64 = 500_000;
/// Drift allowed for while the kernel leaves its clock alone. Its rate is then set in steps of
/// about 137 ppb (one unit of its multiplier at 2.3 GHz), between which it alternates every tick.
const FREE_RUNNING_PPB: u64 = 100;
/// Drift allowed for while a synchroniser works: its usual corrections.
const SYNCHRONISED_PPB: u64 = 2_000;

impl ClockSettings {
    /// Judged source, bounds of about 200 ns, readers calibrate.
    pub const DEFAULT: ClockSettings = ClockSettings {
        start: Start::Judged,
        prior: None,
        allowance_ppb: None,
        target_bound_ns: 190,
        longest_interval_ns: 16_000_000_000,
        readers_refit: true,
        examine: true,
        look_every_ns: 1_000_000_000,
        root: None,
    };

    pub(super) fn root(&self) -> &Path {
        self.root.as_deref().unwrap_or(Path::new("/"))
    }

    /// The allowance for drift, 2^-32.
    pub(super) fn allowance(&self, kernel: Option<Discipline>) -> u64 {
        let free = kernel.is_some_and(|k| !k.synchronised && !k.slewing);
        let usual = if free { FREE_RUNNING_PPB } else { SYNCHRONISED_PPB };
        relative_from_ppb(self.allowance_ppb.unwrap_or(usual))
    }
}

impl Default for ClockSettings {
    fn default() -> Self {
        ClockSettings::DEFAULT
    }
}

impl FrequencyHint {
    /// What a stated frequency says: to within 500 ppm (a crystal's 100, and what NTP steers), or
    /// 1 % where it is a name in whole MHz. `None` for no frequency at all.
    #[must_use]
    pub fn from_frequency(frequency: Frequency) -> Option<FrequencyHint> {
        const NAMEPLATE_PPB: u64 = 10_000_000;
        let hertz = u128::from(frequency.ticks) * 1_000_000_000;
        let hertz = u64::try_from(hertz.checked_div(u128::from(frequency.ns))?).ok()?;
        let tolerance_ppb = match frequency.origin {
            FrequencyOrigin::Cpuid16 => NAMEPLATE_PPB,
            _ => CONTRADICTION_PPB,
        };
        (hertz > 0).then_some(FrequencyHint { hertz, tolerance_ppb })
    }

    /// The slope it states and how far that may be off, 2^-32; `None` for a frequency of zero.
    pub(super) fn slope(&self) -> Option<(Slope, u64)> {
        // Over 2^20 seconds the rounding of the ratio does not matter.
        let second = 1u64 << 20;
        let slope =
            Slope::between(second.saturating_mul(1_000_000_000), self.hertz.checked_mul(second)?)?;
        Some((slope, relative_from_ppb(self.tolerance_ppb).saturating_add(1)))
    }

    /// Whether a measured slope with its error contradicts it.
    pub(super) fn contradicts(&self, measured: Slope, error: u64) -> bool {
        let allowed = relative_from_ppb(self.tolerance_ppb.max(CONTRADICTION_PPB));
        match self.slope() {
            Some((stated, _)) => measured.distance(stated) > allowed.saturating_add(error),
            None => true,
        }
    }
}
