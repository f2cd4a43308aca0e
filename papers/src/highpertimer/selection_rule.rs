//! What the thesis' rule (Listings 3.1 and 3.2) chooses by the numbers of a table.
//!
//! The rule is the library's own, [`thesis::choose`]; here is only what it is asked.

use hourglass_clock::choice::machine::Cpuid;
use hourglass_clock::choice::thesis_rule::{self, ReadCostMoments};
use hourglass_documents::paper::Decision;
use hourglass_sys::clock::ClockId;

use super::super::costs::ReadCosts;
use super::reads::{LocalReads, ReadMethod, ReadResult, ReadTable};

/// The thesis' OS timer, since section 2.3.2.
pub(super) const OS: ReadMethod = ReadMethod::Clock(ClockId::Monotonic);

fn decision(
    given: &str,
    tsc_is_stable: bool,
    hpet: Option<ReadCostMoments>,
    os: ReadCostMoments,
) -> Decision {
    let (chosen, because) = thesis_rule::choose(tsc_is_stable, hpet, os);
    Decision {
        given: given.into(),
        chosen: chosen.source().to_string(),
        because: thesis_rule::reason(because, hpet, os),
    }
}

/// The numbers that a table of the thesis prints for a source.
fn printed(table: &ReadTable, read: ReadMethod) -> Option<ReadCostMoments> {
    let unit_ns = table.unit.ns();
    let subject = table.subjects.iter().find(|subject| subject.read == read)?;
    Some(ReadCostMoments {
        mean_ns: subject.mean * unit_ns,
        stddev_ns: subject.deviation * unit_ns,
    })
}

/// By the numbers printed in a table, `given` in words, for a processor that says this of itself;
/// where its TSC is stable, also as if it were not.
pub(super) fn by_thesis(table: &ReadTable, given: &str, processor: &Cpuid) -> Vec<Decision> {
    let Some(os) = printed(table, OS) else { return Vec::new() };
    let hpet = printed(table, ReadMethod::Hpet);
    with_and_without_tsc(thesis_rule::tsc_is_stable(processor), given, hpet, os)
}

/// By the numbers found here; where this TSC is stable, also as if it were not. Where there is an
/// HPET to choose, also by the deviations up to the 99th percentile.
pub(super) fn by_measurement(here: &LocalReads) -> Vec<Decision> {
    let unfiltered = |costs: &ReadCosts| ReadCostMoments {
        mean_ns: costs.mean_ns,
        stddev_ns: costs.deviation_ns,
    };
    let calm = |costs: &ReadCosts| ReadCostMoments {
        mean_ns: costs.mean_ns,
        stddev_ns: costs.calm_deviation_ns,
    };
    let Some(os) = here.costs(OS) else { return Vec::new() };
    let stable = here.cpuid.is_some_and(thesis_rule::tsc_is_stable)
        && here.costs(ReadMethod::Rdtscp).is_some();
    let hpet = wide_hpet(here);
    let measured = "the numbers measured here";
    let mut decisions =
        with_and_without_tsc(stable, measured, hpet.map(unfiltered), unfiltered(os));
    if let Some(hpet) = hpet {
        let given = "the same, with the deviations up to p99";
        decisions.push(decision(given, false, Some(calm(hpet)), calm(os)));
    }
    decisions
}

/// The costs of the HPET, if its counter has 64 bits: the thesis refuses narrower ones.
fn wide_hpet<'a>(here: &'a LocalReads) -> Option<&'a ReadCosts> {
    let subjects = here.table.subjects.iter().zip(here.found);
    subjects.into_iter().find_map(|(subject, found)| match found {
        ReadResult::Costs { costs, bits: 64 } if subject.read == ReadMethod::Hpet => Some(costs),
        _ => None,
    })
}

fn with_and_without_tsc(
    stable: bool,
    given: &str,
    hpet: Option<ReadCostMoments>,
    os: ReadCostMoments,
) -> Vec<Decision> {
    let mut decisions = vec![decision(given, stable, hpet, os)];
    if stable {
        decisions.push(decision("the same, were the TSC not stable", false, hpet, os));
    }
    decisions
}

#[cfg(test)]
mod tests {
    use super::super::{ATHLON, VIA, table_2_3, table_3_1, table_3_2};
    use super::*;

    fn chosen(decisions: &[Decision]) -> Vec<&str> {
        decisions.iter().map(|decision| decision.chosen.as_str()).collect()
    }

    /// Section 3.1: the VIA takes its TSC, the Athlon its HPET; by either of its two tables.
    #[test]
    fn the_thesis_processors_choose_what_the_thesis_says() {
        let via = by_thesis(&table_3_1::TABLE, "thesis", &VIA);
        assert_eq!(chosen(&via), ["tsc", "monotonic"]);
        assert!(via[1].because.contains("81.4 % apart"), "{via:?}");
        let athlon = by_thesis(&table_3_2::TABLE, "thesis", &ATHLON);
        assert_eq!(chosen(&athlon), ["hpet"]);
        assert!(athlon[0].because.contains("2.1 % apart"), "{athlon:?}");
        assert_eq!(chosen(&by_thesis(&table_2_3::TABLE, "thesis", &ATHLON)), ["hpet"]);
    }

    /// Listing 3.2: among close means an equal deviation leaves the OS clock.
    #[test]
    fn equal_deviations_leave_the_os_clock() {
        let cost = ReadCostMoments { mean_ns: 1_000.0, stddev_ns: 300.0 };
        assert_eq!(decision("equal", false, Some(cost), cost).chosen, "monotonic");
    }
}
