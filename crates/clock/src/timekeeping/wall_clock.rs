//! Wall-clock time: monotonic time plus an offset and a rate (Gleixner & Niehaus, sections 3.2
//! and 3.3: one monotonic time base, to which external references are applied as corrections).

use super::clock_offsets::Offset;
use super::slope::{relative, relative_from_ppb, share_of};

/// The source of wall-clock time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum WallStatus {
    /// No source: the kernel's clock is not synchronised (`STA_UNSYNC`), or its state is unknown.
    Unknown = 0,
    /// The kernel's clock is synchronised; the bound is the synchroniser's (`adjtimex` maxerror), or a source's that was
    /// asked beside it ([`super::Clock::vouch_utc`]).
    Synchronised = 1,
    /// Wall-clock time was set by hand, with the error stated then.
    ByHand = 2,
    /// Wall-clock time is steered by an external reference.
    Steered = 3,
}

/// A reading of wall-clock time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallTime {
    /// ns since 1970.
    pub ns: i64,
    /// Bound on the error against UTC, ns; `None` if the bound is unknown.
    pub error_ns: Option<u64>,
    /// The source of the time.
    pub status: WallStatus,
}

/// What an external reference says: at that moment on [`super::Clock::now`]'s scale it was that
/// time, to within that error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallReference {
    /// ns on `CLOCK_MONOTONIC`'s scale.
    pub monotonic_ns: u64,
    /// ns since 1970.
    pub wall_ns: i64,
    /// Bound on the error, ns.
    pub error_ns: u64,
}

/// Wall-clock time that was set or is steered, as a page holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WallLine {
    base_ns: u64,
    wall_ns: i64,
    /// Rate minus one, 2^-32.
    rate: i64,
    bound_ns: u64,
    /// 2^-32.
    growth: u64,
    status: WallStatus,
}

/// Words of a page that it takes.
const WORDS: usize = 6;

/// Errors up to this are slewed away, larger ones stepped; NTP's limit (RFC 5905, STEPT).
const STEP_NS: i64 = 128_000_000;
/// The greatest rate correction: 500 ppm, the kernel's and NTP's (RFC 5905).
const LARGEST_RATE: i64 = 500 * (1 << 32) / 1_000_000;
/// How fast a clock of known rate leaves it: 15 ppm (RFC 5905, PHI).
const PHI_PPB: u64 = 15_000;
/// Bound on the error of an unmeasured rate: 100 ppm, the tolerance with which crystals are sold.
const UNMEASURED_PPB: u64 = 100_000;
/// The shortest distance of references over which a rate is worth taking, and over which an error
/// is absorbed.
const SHORTEST_NS: u64 = 1_000_000_000;

impl WallLine {
    pub(super) const UNKNOWN: WallLine = WallLine {
        base_ns: 0,
        wall_ns: 0,
        rate: 0,
        bound_ns: 0,
        growth: 0,
        status: WallStatus::Unknown,
    };

    pub(super) fn follows_kernel(&self) -> bool {
        self.status == WallStatus::Unknown
    }

    /// Wall-clock time at a monotonic one that is known to within `error_ns`.
    pub(super) fn at(&self, monotonic_ns: u64, error_ns: u64) -> WallTime {
        let elapsed = i128::from(monotonic_ns) - i128::from(self.base_ns);
        let corrected = elapsed + ((elapsed * i128::from(self.rate)) >> 32);
        let ns = i128::from(self.wall_ns).saturating_add(corrected);
        let age_ns = monotonic_ns.abs_diff(self.base_ns);
        let bound = self.bound_ns.saturating_add(share_of(age_ns, self.growth));
        WallTime {
            ns: ns.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64,
            error_ns: Some(bound.saturating_add(error_ns).saturating_add(1)),
            status: self.status,
        }
    }

    pub(super) fn to_words(self) -> [u64; WORDS] {
        [
            self.base_ns,
            self.wall_ns.cast_unsigned(),
            self.rate.cast_unsigned(),
            self.bound_ns,
            self.growth,
            self.status as u64,
        ]
    }

    pub(super) fn from_words([base, wall, rate, bound_ns, growth, status]: [u64; WORDS]) -> Self {
        WallLine {
            base_ns: base,
            wall_ns: wall.cast_signed(),
            rate: rate.cast_signed(),
            bound_ns,
            growth,
            status: match status {
                1 => WallStatus::Synchronised,
                2 => WallStatus::ByHand,
                3 => WallStatus::Steered,
                _ => WallStatus::Unknown,
            },
        }
    }
}

/// The source of wall-clock time, and its state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wall {
    pub(super) line: WallLine,
    last: Option<WallReference>,
}

impl Wall {
    /// The kernel's `CLOCK_REALTIME` decides.
    pub(super) const FOLLOWING: Wall = Wall { line: WallLine::UNKNOWN, last: None };

    /// Sets the time: it may step either way.
    pub(super) fn set(&mut self, said: WallReference) {
        self.last = None;
        self.line = WallLine {
            base_ns: said.monotonic_ns,
            wall_ns: said.wall_ns,
            rate: 0,
            bound_ns: said.error_ns,
            growth: relative_from_ppb(UNMEASURED_PPB),
            status: WallStatus::ByHand,
        };
    }

    /// Steers by a reference: the rate is what the last two references say, an error of up to
    /// 128 ms is absorbed by 15/16 until the next one is due, a larger one stepped. `kernel` is the
    /// offset that served until the first one.
    pub(super) fn steer(&mut self, said: WallReference, kernel: Offset) {
        let follows_kernel = self.line.follows_kernel();
        let here = if follows_kernel {
            said.monotonic_ns.cast_signed().saturating_add(kernel.ns)
        } else {
            self.line.at(said.monotonic_ns, 0).ns
        };
        let ahead = here.saturating_sub(said.wall_ns);
        let first = follows_kernel && !kernel.is_known();
        let last = self
            .last
            .filter(|last| said.monotonic_ns.saturating_sub(last.monotonic_ns) >= SHORTEST_NS);
        let distance_ns = last.map_or(SHORTEST_NS, |l| said.monotonic_ns - l.monotonic_ns);
        let (rate, rate_error) = match &last {
            Some(last) => rate_between(last, &said),
            None => (self.line.rate, relative_from_ppb(UNMEASURED_PPB)),
        };
        let phi = relative_from_ppb(PHI_PPB);
        self.line = if first || ahead.saturating_abs() > STEP_NS {
            WallLine {
                base_ns: said.monotonic_ns,
                wall_ns: said.wall_ns,
                rate,
                bound_ns: said.error_ns,
                growth: phi.saturating_add(rate_error),
                status: WallStatus::Steered,
            }
        } else {
            let absorbed = i128::from(ahead) * 15 / 16;
            let correction = (-absorbed << 32) / i128::from(distance_ns);
            let limit = i128::from(LARGEST_RATE);
            let total = (i128::from(rate) + correction).clamp(-limit, limit) as i64;
            WallLine {
                base_ns: said.monotonic_ns,
                wall_ns: here,
                rate: total,
                bound_ns: said.error_ns.saturating_add(ahead.unsigned_abs()),
                // The correction may go on for longer than it takes: it counts as error.
                growth: phi.saturating_add(rate_error).saturating_add(total.abs_diff(rate)),
                status: WallStatus::Steered,
            }
        };
        self.last = Some(said);
    }
}

/// The rate minus one between two references and the bound on its error, both 2^-32.
fn rate_between(first: &WallReference, last: &WallReference) -> (i64, u64) {
    let monotonic = last.monotonic_ns.saturating_sub(first.monotonic_ns).max(1);
    let wall = i128::from(last.wall_ns) - i128::from(first.wall_ns);
    let apart = wall - i128::from(monotonic);
    let rate = (apart << 32) / i128::from(monotonic);
    let limit = i128::from(LARGEST_RATE);
    let held = rate.clamp(-limit, limit);
    // A reference that runs off faster than is followed is left behind by the rest.
    let left_behind = u64::try_from((rate - held).unsigned_abs()).unwrap_or(u64::MAX);
    let error = relative(first.error_ns.saturating_add(last.error_ns), monotonic);
    (held as i64, error.saturating_add(left_behind))
}

#[cfg(test)]
#[path = "tests/wall.rs"]
mod tests;
