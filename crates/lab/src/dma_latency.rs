//! Keeping the CPUs out of deep idle states during a run.

use std::fs::OpenOptions;
use std::io;

use hourglass_model::document::Warning;
pub(crate) use hourglass_sys::idle_latency::DEVICE;
use hourglass_sys::idle_latency::IdleLatency;
use hourglass_workload::spec::RunSpec;

use crate::experiment::Failure;
use crate::refusal;

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
) -> Result<Option<IdleLatency>, Failure> {
    let Some(us) = us else { return Ok(None) };
    match IdleLatency::hold(us) {
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
