//! Keeping the CPUs out of deep idle states: the kernel honours a latency written to
//! `/dev/cpu_dma_latency` for as long as the file is open.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

use hourglass_model::document::Warning;
use hourglass_workload::spec::RunSpec;

use crate::experiment::Failure;
use crate::refusal;

/// Where the request is made.
pub(crate) const DEVICE: &str = "/dev/cpu_dma_latency";

/// The value of the device where nobody asks for anything (`PM_QOS_CPU_LATENCY_DEFAULT_VALUE`).
pub(crate) const NO_LIMIT_US: u32 = 2_000_000_000;

/// Whether a request may be made. None is: without a number the kernel keeps to the others'.
///
/// # Errors
/// The device is missing or may not be written.
pub fn may_hold() -> Result<(), io::ErrorKind> {
    OpenOptions::new().write(true).open(DEVICE).map(drop).map_err(|error| error.kind())
}

/// Makes the request that a run asks for; one that may do without is warned instead.
pub(crate) fn hold(
    us: Option<u32>,
    spec: &RunSpec,
    warnings: &mut Vec<Warning>,
) -> Result<Option<DmaLatency>, Failure> {
    let Some(us) = us else { return Ok(None) };
    match DmaLatency::hold(us) {
        Ok(held) => Ok(Some(held)),
        Err(error) => {
            let refused = refusal::of_dma_latency(&error);
            if !spec.best_effort {
                return Err(Failure::Refused(vec![refused]));
            }
            warnings.push(refused.into_warning("dma-latency"));
            Ok(None)
        }
    }
}

/// A latency request; ends when dropped.
#[derive(Debug)]
pub(crate) struct DmaLatency {
    _open: File,
}

impl DmaLatency {
    /// Asks for at most `us` microseconds of latency when leaving idle.
    ///
    /// # Errors
    /// The device is missing or may not be written.
    pub(crate) fn hold(us: u32) -> io::Result<DmaLatency> {
        let mut device = OpenOptions::new().write(true).open(DEVICE)?;
        // The kernel takes a signed 32-bit number in the machine's byte order.
        device.write_all(&i32::try_from(us).unwrap_or(i32::MAX).to_ne_bytes())?;
        Ok(DmaLatency { _open: device })
    }
}
