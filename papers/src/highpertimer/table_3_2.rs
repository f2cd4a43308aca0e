//! Table 3.2 and Figure 3.2: all three sources where the TSC is not stable.

use super::reads::{LocalReads, ReadMethod, ReadSource, ReadTable, Unit};
use super::selection_rule::{OS, by_measurement, by_thesis};
use super::sentences::{deviations, hpet, os_against_tsc, sentence};
use super::{AMD, ATHLON, table_2_3};

pub(super) const TABLE: ReadTable = ReadTable {
    id: "3.2",
    title: "Cost of reading TSC, HPET and OS clock, AMD Athlon: no stable TSC",
    machine: AMD,
    unit: Unit::Microseconds,
    subjects: &[
        ReadSource { name: "TSC", read: ReadMethod::Rdtscp, mean: 0.0275, deviation: 0.0756 },
        ReadSource { name: "HPET", read: ReadMethod::Hpet, mean: 1.1179, deviation: 0.3764 },
        ReadSource { name: "OS", read: OS, mean: 1.1423, deviation: 0.5292 },
    ],
    difference: None,
    decisions: |here| {
        let mut decisions = by_thesis(&TABLE, "the thesis' numbers", &ATHLON);
        decisions.extend(by_thesis(&table_2_3::TABLE, "those of its Table 2.3", &ATHLON));
        decisions.extend(by_measurement(here));
        decisions
    },
    explain,
    notes: &[
        "The same processor as in Table 2.3, with other numbers: the HPET's mean is 5.4 ns higher, \
         the OS clock's 12.9 ns, their deviations by a quarter and by a half.",
        "The means are 2.1 % apart, so the deviations decide. They are unfiltered: an interruption \
         more in one of the two runs can turn the choice.",
    ],
};

fn explain(here: &LocalReads) -> String {
    let clauses = format!(
        "{}, while the Athlon's kernel, whose TSC changes its rate, read the HPET; {}",
        os_against_tsc(here),
        hpet(here)
    );
    format!("{} {}", sentence(&clauses), deviations(here))
}
