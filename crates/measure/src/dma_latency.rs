//! Keeping the CPUs out of deep idle states during a run.

use hourglass_documents::document::Warning;
use hourglass_machine::refusal;
use hourglass_sys::idle_latency::IdleLatency;
use hourglass_workload::spec::RunSpec;

use crate::failure::RunFailure;

/// Makes the request that a run asks for; one that may do without is warned instead.
pub(crate) fn hold(
    us: Option<u32>,
    spec: &RunSpec,
    warnings: &mut Vec<Warning>,
) -> Result<Option<IdleLatency>, RunFailure> {
    let Some(us) = us else { return Ok(None) };
    match IdleLatency::hold(us) {
        Ok(held) => Ok(Some(held)),
        Err(error) => {
            let refused = refusal::of_dma_latency(&error);
            if !spec.best_effort {
                return Err(RunFailure::Refused(vec![refused]));
            }
            warnings.push(refused.into_warning("dma-latency"));
            Ok(None)
        }
    }
}
