//! What can tell the time on this machine.

use hourglass_clock::choice::{self, MeasurementLimits, SelectError, SourceReport};
use hourglass_clock::{Selection, SelectionPolicy};
use hourglass_documents::clocks::{
    CLOCKS_SCHEMA, ClocksDocument, CrossCpuFacts, MonotonicityFacts, SourceEvidence, SourceFacts,
};

/// Probes and measures every source and chooses by `policy`. Takes about 0.1 s, or, if
/// `thorough`, some seconds: all pairs of CPUs, for longer.
///
/// # Errors
/// The source that was to be forced cannot be read.
pub fn clocks(policy: SelectionPolicy, thorough: bool) -> Result<ClocksDocument, SelectError> {
    let effort =
        if thorough { MeasurementLimits::thorough() } else { MeasurementLimits::default() };
    choice::select(policy, &effort).map(document)
}

fn document(selection: Selection) -> ClocksDocument {
    ClocksDocument {
        schema: CLOCKS_SCHEMA.to_owned(),
        selected: selection.selected.to_string(),
        policy: selection.policy.to_string(),
        reason: selection.reason,
        sources: selection.sources.iter().map(source).collect(),
        cross_cpu: selection
            .cross_cpu
            .iter()
            .map(|pair| CrossCpuFacts {
                a: pair.a,
                b: pair.b,
                offset_lo_ns: pair.offset_lo_ns,
                offset_hi_ns: pair.offset_hi_ns,
            })
            .collect(),
        monotonicity: selection.monotonicity.map(|found| MonotonicityFacts {
            cpus: found.cpus,
            reads: found.reads,
            violations: found.violations,
        }),
        watch: None,
        utc: None,
        utc_watch: Vec::new(),
        devices: None,
    }
}

fn source(report: &SourceReport) -> SourceFacts {
    SourceFacts {
        name: report.name.to_string(),
        available: report.available,
        trusted: report.trust.trusted,
        reason: report.trust.reason.clone(),
        remedy: report.unavailable.as_ref().map(|why| why.remedy().to_string()).unwrap_or_default(),
        evidence: report
            .trust
            .evidence
            .iter()
            .map(|item| SourceEvidence {
                id: item.id.to_owned(),
                found: item.found.clone(),
                verdict: item.verdict.name().to_owned(),
            })
            .collect(),
        rating: report.facts.map(|facts| facts.rating),
        width_bits: report.facts.map(|facts| facts.width_bits),
        mult: report.rate.map(|rate| rate.mult()),
        shift: report.rate.map(|rate| rate.shift()),
        frequency_hz: report.frequency_hz,
        resolution_ns: report.resolution_ns,
        read_p50_ns: report.cost.as_ref().map(|cost| cost.p50_ns),
        read_p99_ns: report.cost.as_ref().map(|cost| cost.p99_ns),
        error_bound_ns: report.error_bound_ns,
    }
}
