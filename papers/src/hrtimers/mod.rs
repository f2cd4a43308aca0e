//! T. Gleixner and D. Niehaus, *Hrtimers and Beyond: Transforming the Linux Time Subsystems*, Ottawa
//! Linux Symposium 2006: how late threads are woken (section 8.1), and what the cascading timer wheel
//! costs (section 4).
//!
//! The tables of section 8.1 have no numbers in the paper; here they are numbered in its order.

mod accuracy;
mod cascade;
mod contender;
mod granularity;
mod table_1;
#[cfg(test)]
mod tests;

use super::printed::Measure;

pub(super) fn measure(id: &str) -> Option<Measure> {
    Some(match id {
        "1" => table_1::measure,
        "4.1" => cascade::measure,
        "4.3" => granularity::measure,
        _ => accuracy::measure,
    })
}
