//! The document `hourglass.clocks/1`: what can tell the time here, and what speaks for it.

use serde::{Deserialize, Serialize};

/// Name and version of the document.
pub const CLOCKS_SCHEMA: &str = "hourglass.clocks/1";

/// The time sources of a machine, and the one that was chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClocksDocument {
    /// Always [`CLOCKS_SCHEMA`].
    pub schema: String,
    /// Name of the source chosen.
    pub selected: String,
    /// The rule by which it was chosen: `strict`, `thesis`, `permissive`, `forced:NAME`.
    pub policy: String,
    /// Why this one; one clause.
    pub reason: String,
    /// Every source that is known.
    pub sources: Vec<SourceFacts>,
    /// Offsets of the processor's counter between pairs of CPUs.
    pub cross_cpu: Vec<CrossCpuFacts>,
    /// Whether the processor's counter went forward on all CPUs together, if that was measured.
    pub monotonicity: Option<MonotonicityFacts>,
    /// The clock chosen, watched while it ran, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<WatchFacts>,
    /// What can tick here, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub devices: Option<Vec<ClockDeviceFacts>>,
    /// UTC and who vouches for it, at the last look, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utc: Option<UtcFacts>,
    /// Each look at UTC, if it was watched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub utc_watch: Vec<UtcFacts>,
}

/// UTC at a moment, between two bounds. Without anybody who vouches the bounds are null.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UtcFacts {
    /// `vouched` or `unvouched`.
    pub status: String,
    /// Whose bound it is, the narrowest there is: `kernel`, `chronyd`, `clockbound`, `ptp4l` or `none`.
    pub source: String,
    /// `CLOCK_REALTIME`, ns since 1970.
    pub realtime_ns: u64,
    /// UTC is at least this.
    pub earliest_ns: Option<u64>,
    /// UTC is at most this.
    pub latest_ns: Option<u64>,
    /// Half the distance of the two.
    pub error_ns: Option<u64>,
    /// How fast the bound grows until the source hears from its own again, parts per billion.
    pub growth_ppb: Option<u64>,
    /// Since the source last heard from its own, at most.
    pub age_ns: Option<u64>,
    /// What would make the bound narrower, or have somebody vouch; empty where nothing is known.
    pub narrower: String,
    /// Everybody who was asked.
    pub sources: Vec<UtcSourceFacts>,
}

/// Somebody who may vouch for the wall clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UtcSourceFacts {
    /// `kernel`, `chronyd`, `clockbound` or `ptp4l`.
    pub name: String,
    /// Why it does not vouch; empty where it does.
    pub reason: String,
    /// How far `CLOCK_REALTIME` is from UTC at most; null where it does not vouch.
    pub error_ns: Option<u64>,
    /// See [`UtcFacts::growth_ppb`].
    pub growth_ppb: Option<u64>,
    /// See [`UtcFacts::age_ns`].
    pub age_ns: Option<u64>,
    /// What it said, item by item.
    pub evidence: Vec<SourceEvidence>,
}

/// A clock device: what it can tick at, the resolution that it granted, and how its ticks came.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockDeviceFacts {
    /// Its name.
    pub name: String,
    /// What it is, in a line.
    pub text: String,
    /// Whether it can be opened.
    pub available: bool,
    /// Why it cannot, or why the resolution was refused; empty where neither is.
    pub reason: String,
    /// The shortest distance of ticks; null where it cannot be opened.
    pub shortest_ns: Option<f64>,
    /// The longest.
    pub longest_ns: Option<f64>,
    /// The resolution asked for.
    pub asked_ns: u64,
    /// How far off, either way, it was allowed to be; null for any.
    pub allowed_skew_ns: Option<u64>,
    /// The resolution granted; null if none was.
    pub granted_ns: Option<f64>,
    /// How far that is from what was asked for.
    pub skew_ns: Option<f64>,
    /// Ticks that were waited for.
    pub ticks: u64,
    /// The mean distance of ticks.
    pub mean_ns: Option<f64>,
    /// How far half the intervals were off the resolution, at most.
    pub off_p50_ns: Option<u64>,
    /// How far the worst interval was off it: how late this thread was woken, mostly.
    pub off_max_ns: Option<u64>,
}

/// A clock watched while it ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WatchFacts {
    /// One look after the other.
    pub samples: Vec<WatchSample>,
    /// What happened to the clock, oldest first.
    pub events: Vec<WatchEvent>,
}

/// A look at a clock beside `CLOCK_MONOTONIC`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchSample {
    /// When, after the watch began.
    pub at_ns: u64,
    /// What served.
    pub source: String,
    /// How: `os_clock`, `settling`, `steady`, `failed_over`, `assumed`.
    pub status: String,
    /// The clock minus `CLOCK_MONOTONIC`.
    pub offset_ns: i64,
    /// How far that may be off: half the bracket of the comparison, and rounding.
    pub offset_error_ns: u64,
    /// The bound on its error that the clock claimed.
    pub error_bound_ns: u64,
    /// Whether the comparison contradicts the bound.
    pub violated: bool,
    /// How much faster the counter ran against `CLOCK_MONOTONIC` since the last look than in the
    /// first interval, parts per billion; null for the first two looks and without a counter.
    pub drift_ppb: Option<i64>,
    /// How far that may be off.
    pub drift_error_ppb: Option<u64>,
}

/// Something that happened to a clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchEvent {
    /// When it was found, after the watch began; 0 if before.
    pub at_ns: u64,
    /// What, for people.
    pub text: String,
    /// Whether the clock left its counter because of it.
    pub failed_over: bool,
}

/// A time source. What a source that cannot be read does not tell is null.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourceFacts {
    /// Its name.
    pub name: String,
    /// Whether it can be read.
    pub available: bool,
    /// Whether the policy takes it as fit to tell time by.
    pub trusted: bool,
    /// Why it is trusted, or not, or not available.
    pub reason: String,
    /// What would make it available; empty where it is.
    pub remedy: String,
    /// Item by item.
    pub evidence: Vec<SourceEvidence>,
    /// How good it is as the base of time, on the kernel's scale of 1 to 499.
    #[serde(default)]
    pub rating: Option<u16>,
    /// Bits after which its count wraps.
    #[serde(default)]
    pub width_bits: Option<u32>,
    /// With `shift`: ns = ticks x mult / 2^shift, at the frequency stated or measured.
    #[serde(default)]
    pub mult: Option<u64>,
    /// See `mult`.
    #[serde(default)]
    pub shift: Option<u32>,
    /// Ticks a second.
    pub frequency_hz: Option<f64>,
    /// Smallest step.
    pub resolution_ns: Option<f64>,
    /// Cost of a read, median.
    pub read_p50_ns: Option<f64>,
    /// Cost of a read that 99 of 100 do not exceed.
    pub read_p99_ns: Option<f64>,
    /// For a counter: how far a conversion may be off `CLOCK_MONOTONIC` right after measuring.
    pub error_bound_ns: Option<f64>,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceEvidence {
    /// What; constant between versions.
    pub id: String,
    /// What was found.
    pub found: String,
    /// What that says about the source.
    pub verdict: String,
}

/// How far the counter of CPU `b` is ahead of that of CPU `a`: somewhere in this interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrossCpuFacts {
    /// A CPU.
    pub a: u32,
    /// Another one.
    pub b: u32,
    /// Lower bound of the offset, ns.
    pub offset_lo_ns: i64,
    /// Upper bound of the offset, ns.
    pub offset_hi_ns: i64,
}

/// Reads of the counter, handed from CPU to CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MonotonicityFacts {
    /// CPUs that took part.
    pub cpus: u32,
    /// Reads compared.
    pub reads: u64,
    /// Reads that were before an earlier one.
    pub violations: u64,
}
