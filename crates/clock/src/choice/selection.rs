//! The choice, with everything it rests on.

use super::cross_cpu::CrossCpu;
use super::machine::ClockHost;
use super::measured::{MeasurementLimits, SourceMeasurement, measure_all};
use super::monotonicity::Monotonicity;
use super::policy::SelectionPolicy;
use super::thesis_rule::{self, ReadCostMoments};
use super::verdicts;
use crate::Rate;
use crate::source::{
    self, Counter32Policy, ProbeResult, ReadCost, SourceName, SourceProperties, Unavailable,
};
use crate::trust::{Evidence, EvidenceVerdict, TrustReport, objection};

/// The chosen source, and the reason; the content of the document `hourglass.clocks/1`.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// The rule.
    pub policy: SelectionPolicy,
    /// The source chosen.
    pub selected: SourceName,
    /// The reason of the choice, one clause for people.
    pub reason: String,
    /// Every source there is, in the order of [`source::all`].
    pub sources: Vec<SourceReport>,
    /// Offsets of the processor's counter between CPUs, as far as they were measured.
    pub cross_cpu: Vec<CrossCpu>,
    /// Whether the processor's counter went forward on all CPUs together, if that was measured.
    pub monotonicity: Option<Monotonicity>,
}

/// The facts, measurements and evidence about one source.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceReport {
    /// The name of the source.
    pub name: SourceName,
    /// Whether it can be read; if not, everything below but the reason is empty.
    pub available: bool,
    /// The reason why it cannot be read; [`Unavailable::remedy`] names the remedy.
    pub unavailable: Option<Unavailable>,
    /// Whether the policy takes it as fit to tell time by; if it is not available, why not.
    pub trust: TrustReport,
    /// The constant facts about it; `None` if it cannot be read.
    pub facts: Option<SourceProperties>,
    /// Ticks a second: measured for counters, else stated.
    pub frequency_hz: Option<f64>,
    /// Multiplier and shift of that frequency.
    pub rate: Option<Rate>,
    /// Smallest step, ns.
    pub resolution_ns: Option<f64>,
    /// The cost of an unordered read.
    pub cost: Option<ReadCost>,
    /// For a counter: how far a conversion may be off `CLOCK_MONOTONIC` right after this
    /// measurement (half the narrowest bracket, and a tick). For other sources: their smallest
    /// step; not how far their own time is from the truth.
    pub error_bound_ns: Option<f64>,
}

/// The reason why no source was chosen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// The source that was to be forced cannot be read.
    #[error("{name} cannot be read: {why}; {}", why.remedy())]
    Unavailable {
        /// The source.
        name: SourceName,
        /// The reason why it cannot be read.
        why: Unavailable,
    },
}

/// Probes and measures every source, gathers the evidence, and chooses.
///
/// Takes as long as `effort` says: 0.1 s by default. Measures on whatever CPU the caller is;
/// measurements between CPUs run in threads of their own.
///
/// # Errors
/// A forced source that cannot be read. The other policies always find one: `CLOCK_MONOTONIC`.
pub fn select(
    policy: SelectionPolicy,
    effort: &MeasurementLimits,
) -> Result<Selection, SelectError> {
    // The thesis refuses a counter of 32 bits.
    let narrow = if policy == SelectionPolicy::Thesis {
        Counter32Policy::Refuse
    } else {
        Counter32Policy::Extend
    };
    let machine = ClockHost::find(&effort.root);
    let probed = source::all(narrow);
    let measured = measure_all(&probed, effort);
    decide(policy, &machine, probed, &measured)
}

/// Chooses by what was found; pure.
fn decide(
    policy: SelectionPolicy,
    machine: &ClockHost,
    probed: Vec<ProbeResult>,
    measured: &[SourceMeasurement],
) -> Result<Selection, SelectError> {
    let mut sources: Vec<SourceReport> =
        probed.into_iter().zip(measured).map(|(p, m)| report(policy, machine, p, m)).collect();
    let (selected, reason) = match policy {
        SelectionPolicy::Thesis => by_thesis(machine, &mut sources),
        SelectionPolicy::Strict | SelectionPolicy::Permissive => best_trusted(&sources),
        SelectionPolicy::Forced(name) => forced(name, &sources)?,
    };
    let on_processor = measured.iter().find(|found| found.monotonicity.is_some());
    Ok(Selection {
        policy,
        selected,
        reason,
        sources,
        cross_cpu: measured.iter().flat_map(|found| found.cross_cpu.clone()).collect(),
        monotonicity: on_processor.and_then(|found| found.monotonicity),
    })
}

fn report(
    policy: SelectionPolicy,
    machine: &ClockHost,
    probed: ProbeResult,
    measured: &SourceMeasurement,
) -> SourceReport {
    let name = probed.name;
    let facts = match probed.source {
        Ok(source) => source.facts(),
        Err(why) => return unavailable(name, why),
    };
    let mut evidence = verdicts::about(&facts, machine, measured);
    let required: &[&str] = match (policy, name) {
        // Other evidence against it is shown, and does not count.
        (SelectionPolicy::Permissive, SourceName::Tsc) => &["invariant_tsc"],
        (SelectionPolicy::Permissive, SourceName::Cntvct) => &[],
        _ => verdicts::required(name),
    };
    let is_permitted = policy == SelectionPolicy::Permissive
        && matches!(name, SourceName::Tsc | SourceName::Cntvct);
    let against = if is_permitted {
        let heeded: Vec<Evidence> =
            evidence.iter().filter(|e| required.contains(&e.id)).cloned().collect();
        objection(&heeded, required)
    } else {
        objection(&evidence, required)
    };
    let trusted = against.is_none();
    let reason = match against {
        Some(against) => against,
        None if is_permitted => "its rate is constant, and the policy asks no more".into(),
        None => favour(name, machine),
    };
    if let (SelectionPolicy::Thesis, SourceName::Tsc, Some(cpuid)) = (policy, name, &machine.cpuid)
    {
        let listed = thesis_rule::has_constant_tsc(cpuid);
        let found = format!(
            "family {:#04x}, model {:#04x}{}",
            cpuid.family,
            cpuid.model,
            if listed { ", listed" } else { ", not listed" }
        );
        let verdict = if listed { EvidenceVerdict::Good } else { EvidenceVerdict::Neutral };
        evidence.push(Evidence { id: "family_list", found, verdict });
    }
    let frequency = measured.frequency.map(|found| found.frequency).or(facts.frequency);
    let frequency_hz = frequency.map(|frequency| frequency.hertz());
    let is_counter = super::measured::needs_frequency(&facts);
    let resolution_ns = match frequency_hz {
        Some(hertz) if is_counter => 1e9 / hertz,
        _ => facts.resolution_ns,
    };
    SourceReport {
        name,
        available: true,
        unavailable: None,
        trust: TrustReport { trusted, reason, evidence },
        facts: Some(facts),
        frequency_hz,
        rate: frequency.and_then(|frequency| frequency.rate()),
        resolution_ns: Some(resolution_ns),
        cost: measured.cost,
        error_bound_ns: match measured.frequency {
            Some(found) => Some(found.bracket_ns),
            None if is_counter => None,
            None => Some(resolution_ns),
        },
    }
}

fn unavailable(name: SourceName, why: Unavailable) -> SourceReport {
    SourceReport {
        name,
        available: false,
        trust: TrustReport { trusted: false, reason: why.to_string(), evidence: Vec::new() },
        unavailable: Some(why),
        facts: None,
        frequency_hz: None,
        rate: None,
        resolution_ns: None,
        cost: None,
        error_bound_ns: None,
    }
}

/// The reason why a source is trusted.
fn favour(name: SourceName, machine: &ClockHost) -> String {
    match (name, machine.current.as_deref()) {
        (SourceName::Tsc | SourceName::Cntvct, Some(kernel)) => {
            format!("the kernel keeps time with it ({kernel}), and nothing speaks against it")
        }
        (SourceName::Os(_), Some(kernel)) => format!("the kernel keeps it, with {kernel}"),
        (SourceName::Os(_), None) => "the kernel keeps it".into(),
        _ => "nothing speaks against it".into(),
    }
}

/// The trusted source with the highest rating.
fn best_trusted(sources: &[SourceReport]) -> (SourceName, String) {
    let rating = |report: &&SourceReport| report.facts.map_or(0, |facts| facts.rating);
    // The last of equals would win otherwise.
    match sources.iter().rev().filter(|report| report.trust.trusted).max_by_key(rating) {
        Some(best) => (best.name, best.trust.reason.clone()),
        None => (SourceName::MONOTONIC, "no source is trusted; every machine has this one".into()),
    }
}

fn forced(name: SourceName, sources: &[SourceReport]) -> Result<(SourceName, String), SelectError> {
    let found = sources.iter().find(|report| report.name == name);
    let why = match found {
        Some(report) if report.available => None,
        Some(report) => report.unavailable.clone(),
        // A number of a PTP clock that is not listed.
        None => source::probe(name).err(),
    };
    match why {
        Some(why) => Err(SelectError::Unavailable { name, why }),
        None => Ok((name, "forced".into())),
    }
}

/// The thesis' rule; its report lists what it rested on, and the sources that it takes as fit.
fn by_thesis(machine: &ClockHost, sources: &mut [SourceReport]) -> (SourceName, String) {
    let find = |name| sources.iter().find(|report| report.name == name && report.available);
    let cost = |name| {
        let cost = find(name)?.cost?;
        Some(ReadCostMoments { mean_ns: cost.mean_ns, stddev_ns: cost.stddev_ns })
    };
    let stable = machine.cpuid.as_ref().is_some_and(thesis_rule::tsc_is_stable)
        && find(SourceName::Tsc).is_some();
    let hpet = cost(SourceName::Hpet);
    let os =
        cost(SourceName::MONOTONIC).unwrap_or(ReadCostMoments { mean_ns: 0.0, stddev_ns: 0.0 });
    let (chosen, because) = thesis_rule::choose(stable, hpet, os);
    let selected = chosen.source();
    for report in sources.iter_mut().filter(|report| report.available) {
        report.trust.trusted = match report.name {
            SourceName::Tsc => stable,
            name => name == SourceName::Hpet || name == SourceName::MONOTONIC,
        };
        report.trust.reason = match report.name {
            SourceName::Tsc if stable => "stable by the thesis' rule".into(),
            SourceName::Tsc => "neither invariant nor on the thesis' list".into(),
            SourceName::Hpet | SourceName::MONOTONIC => "compared by the cost of a read".into(),
            _ => "the thesis does not consider it".into(),
        };
        let compared = matches!(report.name, SourceName::Hpet | SourceName::MONOTONIC);
        if let (true, Some(cost)) = (compared, report.cost) {
            let found = format!("mean {:.1} ns, deviation {:.1} ns", cost.mean_ns, cost.stddev_ns);
            report.trust.evidence.push(Evidence::new(
                "thesis_cost",
                EvidenceVerdict::Neutral,
                found,
            ));
        }
    }
    (selected, thesis_rule::reason(because, hpet, os))
}

impl Selection {
    /// The report about a source.
    #[must_use]
    pub fn source(&self, name: SourceName) -> Option<&SourceReport> {
        self.sources.iter().find(|report| report.name == name)
    }
}

#[cfg(test)]
mod tests;
