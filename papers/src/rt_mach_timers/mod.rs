//! S. Savage and H. Tokuda, *Real-Time Mach Timers: Exporting Time to the User*, USENIX Mach Symposium
//! 1993: what timers and timestamps cost (section 5).
//!
//! The costs that the text of section 5 gives without a table are numbered by their sections.

mod operations;
mod pending_cost;
mod queue_cost;
mod service;
mod table_1;
mod table_2;
mod table_3;
#[cfg(test)]
mod tests;
mod timer_kinds;

use super::{Paper, TableDef};

/// The paper.
pub(super) const PAPER: Paper = Paper {
    name: "rt-mach-timers",
    title: "Real-Time Mach Timers: Exporting Time to the User",
    source: "S. Savage and H. Tokuda, USENIX Mach Symposium, 1993",
    tables: &[
        TableDef { id: table_1::ID, title: table_1::TITLE, measure: table_1::measure },
        TableDef { id: table_2::ID, title: table_2::TITLE, measure: table_2::measure },
        TableDef { id: table_3::ID, title: table_3::TITLE, measure: table_3::measure },
        TableDef {
            id: pending_cost::ID,
            title: pending_cost::TITLE,
            measure: pending_cost::measure,
        },
        TableDef { id: queue_cost::ID, title: queue_cost::TITLE, measure: queue_cost::measure },
    ],
};

/// The machine of section 5.
const MACHINE: &str = "Gateway 2000, 486DX2 of 66 MHz, Real-Time Mach MK78, caches warm, highest \
                       thread priority; averages of 1000 repetitions";
