//! What a clock is made of: a counter that is fast to read and a reference that says what it means.

use std::fmt;
use std::path::Path;

use super::inline_string::InlineString;
use super::reference_rate::ReferenceRate;
use super::settings::FrequencyHint;

/// Which counter a line is drawn over. The number stands in shared pages, so it keeps its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SourceId(pub u16);

impl SourceId {
    /// The operating system's `CLOCK_MONOTONIC`, one tick a nanosecond. Every timebase has it.
    pub const OS: SourceId = SourceId(1);
    /// The x86 time-stamp counter.
    pub const TSC: SourceId = SourceId(2);
    /// The aarch64 generic timer.
    pub const CNTVCT: SourceId = SourceId(3);
    /// The High Precision Event Timer.
    pub const HPET: SourceId = SourceId(4);
    /// A simulated counter.
    pub const SIMULATED: SourceId = SourceId(16);

    /// The name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            SourceId::OS => "monotonic",
            SourceId::TSC => "tsc",
            SourceId::CNTVCT => "cntvct",
            SourceId::HPET => "hpet",
            SourceId::SIMULATED => "sim",
            _ => "unknown",
        }
    }
}

impl fmt::Display for SourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            "unknown" => write!(f, "source {}", self.0),
            name => f.write_str(name),
        }
    }
}

/// A clock of the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReferenceClock {
    /// `CLOCK_MONOTONIC`: what [`super::Clock::now`] means.
    Monotonic,
    /// `CLOCK_MONOTONIC_RAW`: never slewed; what differences of ticks are measured in.
    Raw,
    /// `CLOCK_REALTIME`, ns since 1970.
    Realtime,
    /// `CLOCK_TAI`, ns since 1970.
    Tai,
    /// `CLOCK_BOOTTIME`, which goes on in suspend.
    Boottime,
}

/// The discipline of the reference, as its timekeeper states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discipline {
    /// Whether wall-clock time is synchronised to anything.
    pub synchronised: bool,
    /// Greatest error of wall-clock time against UTC that is vouched for, ns.
    pub max_error_ns: u64,
    /// The rate at which `CLOCK_MONOTONIC` is made to run against `CLOCK_MONOTONIC_RAW`, in units
    /// of 2^-32.
    pub correction: i64,
    /// Whether the rate is being changed for a while to slew an offset away.
    pub slewing: bool,
    /// Whether a leap second is near.
    pub leap: Leap,
}

/// The leap second that the reference's timekeeper announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leap {
    /// None is announced.
    None,
    /// At the next midnight of UTC, or at the last one, if the announcement still stands.
    Announced,
    /// The leap second is being inserted.
    Running,
}

/// A counter and a reference clock that a [`super::Clock`] runs on: the machine's, or simulated
/// ones.
///
/// Implementations MUST
/// - answer for [`SourceId::OS`] with `CLOCK_MONOTONIC` of the reference;
/// - never fail, block or allocate in the reading methods, and be callable from any thread;
/// - keep `CLOCK_MONOTONIC` from going backwards;
/// - sample an *ordered* read after all earlier instructions, and an *enclosing* one also before
///   all later ones.
pub trait Timebase: Send + Sync {
    /// Reads a counter. The processor may sample it tens of nanoseconds early or late with
    /// respect to the instructions around it. Only asked for supported sources.
    fn ticks(&self, source: SourceId) -> u64;

    /// Reads a counter after all earlier instructions.
    fn ticks_ordered(&self, source: SourceId) -> u64;

    /// Reads a counter after all earlier and before all later instructions.
    fn ticks_enclosing(&self, source: SourceId) -> u64;

    /// Reads a clock of the reference, ns rounded down.
    fn reference_ns(&self, scale: ReferenceClock) -> u64;

    /// Whether a source can be read here at all.
    fn supports(&self, source: SourceId) -> bool;

    /// The source to trust, judged in some tens of microseconds by what stands below `root` (`/`
    /// but in tests); [`SourceId::OS`] if none. MUST NOT allocate or lock where `root` is `/`: a
    /// reader may be who asks, in a signal handler.
    fn choose(&self, root: &Path) -> SourceId;

    /// What speaks against a counter that serves, if everything is looked at that policy `strict`
    /// knows; `None` if nothing does. May take some 0.1 s and threads of its own.
    fn examine(&self, _source: SourceId, _root: &Path) -> Option<InlineString<48>> {
        None
    }

    /// What the reference's timekeeper says; `None` if it does not tell. Each read of wall-clock time
    /// asks: MUST NOT allocate or lock, and SHOULD cost less than 1 us.
    fn discipline(&self) -> Option<Discipline>;

    /// Under which generation the reference runs: another even number after every change of its rate,
    /// and after how many others it likes; `u32::MAX` if it does not tell. Every bounded read asks
    /// after it has read the counter: MUST cost no more than a load.
    #[inline(always)]
    fn generation(&self) -> u32 {
        u32::MAX
    }

    /// What the reference tells of its rate against a counter. MUST NOT allocate or lock.
    fn steering(&self, _source: SourceId) -> ReferenceRate {
        ReferenceRate::Untold
    }

    /// Where [`Timebase::generation`] is read, 32 bits, for readers in other languages; 0 if nowhere.
    fn generation_address(&self) -> u64 {
        0
    }

    /// The stated frequency of a counter; `None` if none is stated. Called once for each adoption,
    /// not by reads; it may take some 50 us.
    fn stated(&self, _source: SourceId) -> Option<FrequencyHint> {
        None
    }
}
