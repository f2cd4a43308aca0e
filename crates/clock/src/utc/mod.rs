//! Who may vouch for `CLOCK_REALTIME` beside the kernel, how each is asked, and a thread that does so for a clock.

mod chronyd;
mod clock_bound;
mod command_socket;
mod keeper;
mod oscillator;
mod ptp;
mod source;

pub use chronyd::Chronyd;
pub use clock_bound::ClockBound;
pub use keeper::{UtcKeeper, UtcKeeperStatus};
pub use ptp::Ptp4l;
pub use source::{Kernel, UtcAnswer, UtcDenial, UtcEvidence, UtcSource};

/// For fuzzing: bytes as the page of ClockBound's daemon and the moment at which it is read; the bound that follows, ns.
#[doc(hidden)]
pub fn of_clock_bound(bytes: &[u8]) -> Result<Option<u64>, String> {
    let (page, now) = bytes.split_at(bytes.len().saturating_sub(8));
    let now_ns = now.first_chunk().map_or(0, |now| u64::from_be_bytes(*now));
    Ok(clock_bound::strange(page, now_ns)?.map(|said| said.error_ns))
}

/// For fuzzing: bytes as chronyd's answers about its tracking and the source that it follows, and four numbers beside them; the
/// bound that follows and its growth, ns and parts in 10^9.
#[doc(hidden)]
pub fn of_chronyd(bytes: &[u8]) -> Result<(u64, u64), String> {
    chronyd::strange(bytes).map(|said| (said.error_ns, said.growth_ppb))
}

/// For fuzzing: bytes as messages of ptp4l, each after its length, and three clocks; the bound that follows, ns.
#[doc(hidden)]
pub fn of_ptp4l(bytes: &[u8]) -> Result<u64, String> {
    ptp::strange(bytes).map(|said| said.error_ns)
}
