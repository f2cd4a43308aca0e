//! T. Gleixner and D. Niehaus, *Hrtimers and Beyond: Transforming the Linux Time Subsystems*, Ottawa
//! Linux Symposium 2006: how late threads are woken (section 8.1), and what the cascading timer wheel
//! costs (section 4).
//!
//! The tables of section 8.1 have no numbers in the paper; here they are numbered in its order.

mod accuracy;
mod accuracy_tables;
mod cascade;
mod contender;
mod granularity;
mod table_1;
#[cfg(test)]
mod tests;

use super::bench::MeasurementHost;
use super::{MeasuredTable, Paper, TableDef};
use accuracy::AccuracyTable;
use accuracy_tables::TABLES;

/// The paper.
pub(super) const PAPER: Paper = Paper {
    name: "hrtimers",
    title: "Hrtimers and Beyond: Transforming the Linux Time Subsystems",
    source: "T. Gleixner and D. Niehaus, Proceedings of the Linux Symposium, Ottawa, 2006",
    tables: &[
        TableDef { id: table_1::ID, title: table_1::TITLE, measure: table_1::measure },
        TableDef { id: cascade::ID, title: cascade::TITLE, measure: cascade::measure },
        TableDef { id: granularity::ID, title: granularity::TITLE, measure: granularity::measure },
        accuracy(&TABLES[0], |bench| TABLES[0].measure(bench)),
        accuracy(&TABLES[1], |bench| TABLES[1].measure(bench)),
        accuracy(&TABLES[2], |bench| TABLES[2].measure(bench)),
        accuracy(&TABLES[3], |bench| TABLES[3].measure(bench)),
        accuracy(&TABLES[4], |bench| TABLES[4].measure(bench)),
        accuracy(&TABLES[5], |bench| TABLES[5].measure(bench)),
        accuracy(&TABLES[6], |bench| TABLES[6].measure(bench)),
        accuracy(&TABLES[7], |bench| TABLES[7].measure(bench)),
    ],
};

const fn accuracy(
    table: &AccuracyTable,
    measure: fn(&MeasurementHost) -> Option<MeasuredTable>,
) -> TableDef {
    TableDef { id: table.id, title: table.title, measure }
}

/// The machine of section 8.1.
const MACHINE: &str =
    "Pentium III of 400 MHz; the test thread ran under SCHED_FIFO with priority 80";

/// What section 4 was not measured on.
const NO_MACHINE: &str = "none; the paper argues without measuring";
