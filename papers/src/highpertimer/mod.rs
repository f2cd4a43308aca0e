//! I. Fedotova, *Implementation of a unified user-space time handling library under the Linux OS*,
//! 2012: what reading a clock costs (chapter 2), the choice by that cost (chapter 3), and precise
//! sleep (chapter 5).
//!
//! "Setting the timer" of the thesis is a read of the source whose value is stored.

mod reads;
mod selection_rule;
mod sentences;
mod sleep_rows;
#[cfg(test)]
mod sleep_tests;
mod sleeps;
mod table_2_1;
mod table_2_2;
mod table_2_3;
mod table_2_4;
mod table_3_1;
mod table_3_2;
mod table_5_1;
mod table_5_2;
mod table_5_3;
mod table_5_4;
mod table_5_5;
mod table_5_6;
mod table_5_7;
mod table_5_8;
mod table_5_9;
#[cfg(test)]
mod tests;

use hourglass_clock::choice::machine::Cpuid;

use super::{Paper, TableDef};
use reads::ReadTable;
pub(super) use sleeps::CachedSweeps;

/// The thesis.
pub(super) const PAPER: Paper = Paper {
    name: "highpertimer",
    title: "Implementation of a unified user-space time handling library under the Linux OS",
    source: "I. Fedotova, master's thesis, Anhalt University of Applied Sciences, 2012",
    tables: &[
        entry(&table_2_1::TABLE, |bench| table_2_1::TABLE.measure(bench)),
        entry(&table_2_2::TABLE, |bench| table_2_2::TABLE.measure(bench)),
        entry(&table_2_3::TABLE, |bench| table_2_3::TABLE.measure(bench)),
        entry(&table_2_4::TABLE, |bench| table_2_4::TABLE.measure(bench)),
        entry(&table_3_1::TABLE, |bench| table_3_1::TABLE.measure(bench)),
        entry(&table_3_2::TABLE, |bench| table_3_2::TABLE.measure(bench)),
        table_5_1::TABLE,
        table_5_2::TABLE,
        table_5_3::TABLE,
        table_5_4::TABLE,
        table_5_5::TABLE,
        table_5_6::TABLE,
        table_5_7::TABLE,
        table_5_8::TABLE,
        table_5_9::TABLE,
    ],
};

const fn entry(
    table: &ReadTable,
    measure: fn(&super::bench::MeasurementHost) -> Option<super::MeasuredTable>,
) -> TableDef {
    TableDef { id: table.id, title: table.title, measure }
}

/// The processor of Tables 2.1, 2.2 and 2.4.
const INTEL: &str = "Intel Core i7-2600 at 3.40 GHz (listed at 1600 MHz), kernel clock source TSC";

/// The processor of Tables 2.3 and 3.2.
const AMD: &str =
    "AMD Athlon X2 BE-2350 (listed at 1000 MHz), HPET of 25 MHz, kernel clock source HPET";

/// The processor of chapter 5, whose text names it in full at Figure 5.6.
const INTEL_1000: &str = "Intel Core i7-2600, kernel with HZ 1000, sleeps measured with the TSC";

/// The processor of Table 3.1.
const CENTAUR: &str = "VIA Nano X2 U4025 at 1.2 GHz (listed at 1067 MHz), HPET of 14 MHz";

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
