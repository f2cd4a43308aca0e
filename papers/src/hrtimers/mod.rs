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

use super::printed::Measure;
use accuracy_tables::TABLES;

/// What measures the table of that number.
pub(super) fn measure(id: &str) -> Option<Measure> {
    Some(match id {
        "1" => |_, bench| table_1::measure(bench),
        "4.1" => |_, bench| cascade::measure(bench),
        "4.3" => |_, bench| granularity::measure(bench),
        _ => |table, bench| TABLES.iter().find(|of| of.id == table.id)?.measure(bench),
    })
}

/// The machine of section 8.1.
const MACHINE: &str =
    "Pentium III of 400 MHz; the test thread ran under SCHED_FIFO with priority 80";

/// What section 4 was not measured on.
const NO_MACHINE: &str = "none; the paper argues without measuring";
