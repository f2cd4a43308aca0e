//! The thesis' rule, exactly (*Implementation of a unified user-space time handling library*,
//! sections 2.1.3 and 3.1, listings 2.2, 3.1 and 3.2).

use crate::source::SourceName;
use crate::source::cpuid::Cpuid;

/// Mean and standard deviation of the cost of a read, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadCostMoments {
    /// Mean.
    pub mean_ns: f64,
    /// Standard deviation.
    pub stddev_ns: f64,
}

/// The sources between which the thesis chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThesisSource {
    /// The time-stamp counter.
    Tsc,
    /// The High Precision Event Timer.
    Hpet,
    /// `CLOCK_MONOTONIC`.
    Os,
}

impl ThesisSource {
    /// The source that is meant.
    #[must_use]
    pub fn source(self) -> SourceName {
        match self {
            ThesisSource::Tsc => SourceName::Tsc,
            ThesisSource::Hpet => SourceName::Hpet,
            ThesisSource::Os => SourceName::MONOTONIC,
        }
    }
}

/// The reason of the choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThesisReason {
    /// The TSC is stable, so no other source was considered.
    TscIsStable,
    /// There is no HPET with 64 bits.
    NoHpet,
    /// The means are close, and its standard deviation is smaller (or as small, for the OS).
    SmallerDeviation,
    /// The means are far apart, and its is smaller.
    SmallerMean,
}

/// Means that differ by less than this are close, per cent.
const LIMIT_PERCENT: f64 = 25.0;

/// By how much two means differ: 100 (1 - smaller / greater), per cent; 0 if both are zero.
#[must_use]
pub fn difference_percent(a_ns: f64, b_ns: f64) -> f64 {
    let (smaller, greater) = (a_ns.min(b_ns), a_ns.max(b_ns));
    if greater > 0.0 { 100.0 - smaller / greater * 100.0 } else { 0.0 }
}

/// Chooses: a stable TSC; else the HPET, if there is one of 64 bits, against the OS clock.
#[must_use]
pub fn choose(
    tsc_is_stable: bool,
    hpet: Option<ReadCostMoments>,
    os: ReadCostMoments,
) -> (ThesisSource, ThesisReason) {
    if tsc_is_stable {
        return (ThesisSource::Tsc, ThesisReason::TscIsStable);
    }
    let Some(hpet) = hpet else { return (ThesisSource::Os, ThesisReason::NoHpet) };
    let close = difference_percent(hpet.mean_ns, os.mean_ns) < LIMIT_PERCENT;
    let (hpet_wins, because) = if close {
        (hpet.stddev_ns < os.stddev_ns, ThesisReason::SmallerDeviation)
    } else {
        (hpet.mean_ns < os.mean_ns, ThesisReason::SmallerMean)
    };
    (if hpet_wins { ThesisSource::Hpet } else { ThesisSource::Os }, because)
}

/// The reason of the choice, one clause for people.
#[must_use]
pub fn reason(because: ThesisReason, hpet: Option<ReadCostMoments>, os: ReadCostMoments) -> String {
    let apart = hpet.map_or(0.0, |hpet| difference_percent(hpet.mean_ns, os.mean_ns));
    match because {
        ThesisReason::TscIsStable => "the TSC is stable".into(),
        ThesisReason::NoHpet => "the TSC is not stable, and there is no HPET of 64 bits".into(),
        ThesisReason::SmallerDeviation => {
            format!("the means are {apart:.1} % apart, so the smaller deviation decides")
        }
        ThesisReason::SmallerMean => {
            format!("the means are {apart:.1} % apart, so the smaller mean decides")
        }
    }
}

/// Whether the TSC is stable: by the invariant bit, or by being one of the older processors whose
/// TSC is known to have a constant rate.
#[must_use]
pub fn tsc_is_stable(cpuid: &Cpuid) -> bool {
    cpuid.invariant_tsc || has_constant_tsc(cpuid)
}

/// The thesis' list of families: Intel family 0Fh from model 3 on (Pentium 4, Xeon) and family 6
/// from model 0Eh on (Core), Centaur family 6 from model 0Fh on (VIA Nano).
#[must_use]
pub fn has_constant_tsc(cpuid: &Cpuid) -> bool {
    match (&cpuid.vendor, cpuid.family, cpuid.model) {
        (b"GenuineIntel", 0x0f, model) => model >= 0x03,
        (b"GenuineIntel", 0x06, model) => model >= 0x0e,
        (b"CentaurHauls", 0x06, model) => model >= 0x0f,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn cost(mean_ns: f64, stddev_ns: f64) -> ReadCostMoments {
        ReadCostMoments { mean_ns, stddev_ns }
    }

    #[test]
    fn the_rule_row_by_row() {
        use ThesisReason::{NoHpet, SmallerDeviation, SmallerMean, TscIsStable};
        use ThesisSource::{Hpet, Os, Tsc};
        let os = cost(100.0, 10.0);
        let rows = [
            // A stable TSC is taken whatever the others cost (listing 3.1).
            (true, None, os, Tsc, TscIsStable),
            (true, Some(cost(1.0, 0.0)), os, Tsc, TscIsStable),
            (false, None, os, Os, NoHpet),
            // Table 3.2, AMD Athlon X2 (us): 2 % apart, and the HPET deviates less.
            (false, Some(cost(1.1179, 0.3764)), cost(1.1423, 0.5292), Hpet, SmallerDeviation),
            // Table 2.3, for the processor of the row above.
            (false, Some(cost(1.1125, 0.3073)), cost(1.1294, 0.3582), Hpet, SmallerDeviation),
            // Table 3.1, VIA Nano without its TSC: far apart.
            (false, Some(cost(0.6042, 3.0271)), cost(0.1122, 0.3755), Os, SmallerMean),
            // Close: the deviation decides, against the mean if need be; ties go to the OS.
            (false, Some(cost(80.0, 11.0)), os, Os, SmallerDeviation),
            (false, Some(cost(120.0, 9.0)), os, Hpet, SmallerDeviation),
            (false, Some(cost(80.0, 10.0)), os, Os, SmallerDeviation),
            (false, Some(os), os, Os, SmallerDeviation),
            // p = 25 exactly is no longer close, on either side; 24.99 is.
            (false, Some(cost(75.0, 99.0)), os, Hpet, SmallerMean),
            (false, Some(cost(100.0, 0.0)), cost(75.0, 10.0), Os, SmallerMean),
            (false, Some(cost(75.01, 99.0)), os, Os, SmallerDeviation),
            (false, Some(cost(100.0, 0.0)), cost(75.01, 10.0), Hpet, SmallerDeviation),
            (false, Some(cost(74.99, 99.0)), os, Hpet, SmallerMean),
            // Nothing measured.
            (false, Some(cost(0.0, 0.0)), cost(0.0, 0.0), Os, SmallerDeviation),
        ];
        for (stable, hpet, os, chosen, because) in rows {
            assert_eq!(choose(stable, hpet, os), (chosen, because), "{stable} {hpet:?} {os:?}");
        }
    }

    #[test]
    fn the_list_of_families_at_its_edges() {
        let rows = [
            (b"GenuineIntel", 0x0f, 0x02, false),
            (b"GenuineIntel", 0x0f, 0x03, true),
            (b"GenuineIntel", 0x06, 0x0d, false),
            (b"GenuineIntel", 0x06, 0x0e, true),
            (b"GenuineIntel", 0x06, 0xcf, true),
            (b"GenuineIntel", 0x05, 0xff, false),
            (b"CentaurHauls", 0x06, 0x0e, false),
            (b"CentaurHauls", 0x06, 0x0f, true),
            (b"CentaurHauls", 0x0f, 0x0f, false),
            (b"AuthenticAMD", 0x0f, 0x6b, false),
        ];
        for (vendor, family, model, stable) in rows {
            let cpuid = Cpuid { vendor: *vendor, family, model, ..Cpuid::default() };
            assert_eq!(tsc_is_stable(&cpuid), stable, "{family:#x} {model:#x}");
            assert!(tsc_is_stable(&Cpuid { invariant_tsc: true, ..cpuid }));
        }
    }
}
