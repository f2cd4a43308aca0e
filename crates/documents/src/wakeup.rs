//! What became of a thread's wake-ups, in `hourglass.run/1`.

use serde::{Deserialize, Serialize};

/// The wake-ups of one thread, taken apart by the kernel's events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeUpReport {
    /// Number of the thread in the run.
    pub thread: u32,
    /// Wake-ups of which every stage is known.
    pub joined: u64,
    /// Wake-ups that no timer brought about, or of which an event is missing.
    pub unjoined: u64,
    /// The stages in their order; the last is all of them together. Empty if none was joined.
    pub stages: Vec<WakeUpStage>,
}

/// One stage on the way from a timer's expiry to the thread.
///
/// Percentiles are by the nearest rank. The first stage can be negative: an interrupt that was
/// already being served finds the timer expired.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeUpStage {
    /// `expiry_to_interrupt`, `interrupt_to_handler`, `handler_to_waking`, `waking_to_switch`,
    /// `switch_to_user`, `expiry_to_user`.
    pub stage: String,
    /// The shortest.
    pub min_ns: i64,
    /// Median.
    pub p50_ns: i64,
    /// 99 of 100 are not longer.
    pub p99_ns: i64,
    /// 999 of 1000 are not longer.
    pub p999_ns: i64,
    /// The longest.
    pub max_ns: i64,
}
