//! What the thesis' rule (Listings 3.1 and 3.2) chooses by the numbers of a table.
//!
//! The rule is the library's own, [`thesis_rule::choose`]; here is only what it is asked.

use hourglass_clock::choice::thesis_rule::{self, ReadCostMoments};
use hourglass_clock::source::cpuid::Cpuid;
use hourglass_documents::paper::Decision;

use super::super::Paper;
use super::super::costs::ReadCosts;
use super::super::printed::Table;
use super::reads::{LocalReads, printed_ns, sources};

/// What the VIA says of itself: a family whose TSC has a constant rate.
const VIA: Cpuid = Cpuid { vendor: *b"CentaurHauls", family: 0x06, model: 0x0f, ..NOBODY };

/// What the Athlon says of itself: `rdtscp`, and no invariant TSC.
const ATHLON: Cpuid =
    Cpuid { vendor: *b"AuthenticAMD", family: 0x0f, model: 0x6b, rdtscp: true, ..NOBODY };

const NOBODY: Cpuid = Cpuid {
    vendor: [0; 12],
    family: 0,
    model: 0,
    rdtscp: false,
    invariant_tsc: false,
    tsc_adjust: false,
    frequency15: None,
    frequency16: None,
    hypervisor: None,
};

/// What the rule decides by a table of chapter 3: by its numbers, by those of Table 2.3 where that has the same
/// processor, and by those found here.
pub(super) fn decisions(here: &LocalReads) -> Vec<Decision> {
    let thesis = "the thesis' numbers";
    let mut decisions = match here.table.id.as_str() {
        "3.1" => by_thesis(here.table, thesis, &VIA),
        "3.2" => by_thesis(here.table, thesis, &ATHLON),
        _ => return Vec::new(),
    };
    if here.table.id == "3.2" {
        let other = Paper::named("highpertimer").and_then(|paper| paper.table("2.3"));
        decisions.extend(
            other.into_iter().flat_map(|table| by_thesis(table, "those of its Table 2.3", &ATHLON)),
        );
    }
    decisions.extend(by_measurement(here));
    decisions
}

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

/// By the numbers printed in a table, `given` in words, for a processor that says this of itself;
/// where its TSC is stable, also as if it were not.
fn by_thesis(table: &Table, given: &str, processor: &Cpuid) -> Vec<Decision> {
    let printed = |name: &str| {
        let line = sources(table).find(|line| line.name == name)?;
        Some(ReadCostMoments { mean_ns: printed_ns(line, 0)?, stddev_ns: printed_ns(line, 1)? })
    };
    let Some(os) = printed("OS") else { return Vec::new() };
    with_and_without_tsc(thesis_rule::tsc_is_stable(processor), given, printed("HPET"), os)
}

/// By the numbers found here; where this TSC is stable, also as if it were not. Where there is an
/// HPET to choose, also by the deviations up to the 99th percentile. The thesis refuses an HPET of less than 64 bits.
fn by_measurement(here: &LocalReads) -> Vec<Decision> {
    let moments =
        |costs: &ReadCosts, stddev_ns| ReadCostMoments { mean_ns: costs.mean_ns, stddev_ns };
    let unfiltered = |costs: &ReadCosts| moments(costs, costs.deviation_ns);
    let calm = |costs: &ReadCosts| moments(costs, costs.calm_deviation_ns);
    let Some((os, _)) = here.source("OS") else { return Vec::new() };
    let stable = here.cpuid.is_some_and(thesis_rule::tsc_is_stable) && here.source("TSC").is_some();
    let hpet = here.source("HPET").filter(|(_, bits)| *bits == 64).map(|(costs, _)| costs);
    let measured = "the numbers measured here";
    let mut decisions =
        with_and_without_tsc(stable, measured, hpet.map(unfiltered), unfiltered(os));
    if let Some(hpet) = hpet {
        let given = "the same, with the deviations up to p99";
        decisions.push(decision(given, false, Some(calm(hpet)), calm(os)));
    }
    decisions
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
    use super::*;

    /// Section 3.1: the VIA takes its TSC, the Athlon its HPET; by either of its two tables.
    #[test]
    fn the_thesis_processors_choose_what_the_thesis_says() {
        let paper = Paper::named("highpertimer").unwrap();
        for (id, processor, expected, because) in [
            ("3.1", &VIA, ["tsc", "monotonic"].as_slice(), "81.4 % apart"),
            ("3.2", &ATHLON, &["hpet"], "2.1 % apart"),
            ("2.3", &ATHLON, &["hpet"], " % apart"),
        ] {
            let decisions = by_thesis(paper.table(id).unwrap(), "thesis", processor);
            let chosen: Vec<&str> = decisions.iter().map(|by| by.chosen.as_str()).collect();
            assert_eq!(chosen, expected, "{id}");
            assert!(decisions.last().unwrap().because.contains(because), "{id}: {decisions:?}");
        }
    }

    /// Listing 3.2: among close means an equal deviation leaves the OS clock.
    #[test]
    fn equal_deviations_leave_the_os_clock() {
        let cost = ReadCostMoments { mean_ns: 1_000.0, stddev_ns: 300.0 };
        assert_eq!(decision("equal", false, Some(cost), cost).chosen, "monotonic");
    }
}
