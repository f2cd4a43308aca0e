//! I. Fedotova, *Implementation of a unified user-space time handling library under the Linux OS*,
//! 2012: what reading a clock costs (chapter 2), the choice by that cost (chapter 3), and precise
//! sleep (chapter 5).
//!
//! "Setting the timer" of the thesis is a read of the source whose value is stored.

mod reads;
mod selection_rule;
mod sleep_figures;
mod sleep_tables;
#[cfg(test)]
mod sleep_tests;
mod sleeps;
mod table_5_3;
mod table_5_7;
#[cfg(test)]
mod tests;

use super::printed::Measure;

pub(super) fn measure(id: &str) -> Option<Measure> {
    Some(match id {
        "5.3" => table_5_3::measure,
        "5.7" => table_5_7::measure,
        id if id.starts_with("5.") => sleep_tables::measure,
        _ => reads::measure,
    })
}
