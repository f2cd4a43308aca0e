//! Whether the CPUs can be kept out of deep idle states, by `/dev/cpu_dma_latency`.

use std::fs::OpenOptions;
use std::io;

pub use hourglass_sys::idle_latency::DEVICE;

/// The value of the device without any request (`PM_QOS_CPU_LATENCY_DEFAULT_VALUE`).
pub const NO_LIMIT_US: u32 = 2_000_000_000;

/// Whether a request may be made. None is: without a number the kernel keeps to the others'.
///
/// # Errors
/// The device is missing or may not be written.
pub fn may_hold() -> Result<(), io::ErrorKind> {
    OpenOptions::new().write(true).open(DEVICE).map(drop).map_err(|error| error.kind())
}
