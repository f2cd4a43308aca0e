//! S. Savage and H. Tokuda, *Real-Time Mach Timers: Exporting Time to the User*, USENIX Mach Symposium
//! 1993: what timers and timestamps cost (section 5).
//!
//! The costs that the text of section 5 gives without a table are numbered by their sections.

mod operations;
mod pending;
mod queue_cost;
mod service;
mod subject;
mod table_1;
mod table_2;
mod table_3;
#[cfg(test)]
mod tests;

use super::{Paper, Table};

/// The paper.
pub(super) const PAPER: Paper = Paper {
    name: "rt-mach-timers",
    title: "Real-Time Mach Timers: Exporting Time to the User",
    source: "S. Savage and H. Tokuda, USENIX Mach Symposium, 1993",
    tables: &[
        Table { id: table_1::ID, title: table_1::TITLE, measure: table_1::measure },
        Table { id: table_2::ID, title: table_2::TITLE, measure: table_2::measure },
        Table { id: table_3::ID, title: table_3::TITLE, measure: table_3::measure },
        Table { id: pending::ID, title: pending::TITLE, measure: pending::measure },
        Table { id: queue_cost::ID, title: queue_cost::TITLE, measure: queue_cost::measure },
    ],
};

/// The machine of section 5.
const MACHINE: &str = "Gateway 2000, 486DX2 of 66 MHz, Real-Time Mach MK78, caches warm, highest \
                       thread priority; averages of 1000 repetitions";
