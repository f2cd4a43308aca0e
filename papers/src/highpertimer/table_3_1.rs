//! Table 3.1 and Figure 3.1: all three sources where the TSC is stable.

use super::reads::{LocalReads, ReadMethod, ReadSource, ReadTable, Unit};
use super::selection_rule::{OS, by_measurement, by_thesis};
use super::sentences::{deviations, hpet, os_against_tsc, sentence};
use super::{CENTAUR, VIA};

pub(super) const TABLE: ReadTable = ReadTable {
    id: "3.1",
    title: "Cost of reading TSC, HPET and OS clock, VIA Nano: a stable TSC",
    machine: CENTAUR,
    unit: Unit::Microseconds,
    subjects: &[
        ReadSource { name: "TSC", read: ReadMethod::Rdtscp, mean: 0.0441, deviation: 0.3711 },
        ReadSource { name: "HPET", read: ReadMethod::Hpet, mean: 0.6042, deviation: 3.0271 },
        ReadSource { name: "OS", read: OS, mean: 0.1122, deviation: 0.3755 },
    ],
    difference: None,
    decisions: |here| {
        let mut decisions = by_thesis(&TABLE, "the thesis' numbers", &VIA);
        decisions.extend(by_measurement(here));
        decisions
    },
    explain,
    notes: &[
        "Were the VIA's TSC not stable, Listing 3.2 as printed would choose nothing, because it \
         ends where the means are 25 % apart or more; the smaller mean is taken here.",
        "Every deviation of this table is greater than its mean, eight times for the TSC: \
         unfiltered, it counts interruptions. The rule compares such numbers.",
    ],
};

fn explain(here: &LocalReads) -> String {
    let clauses = format!("{}; {}", os_against_tsc(here), hpet(here));
    format!("{} {}", sentence(&clauses), deviations(here))
}
