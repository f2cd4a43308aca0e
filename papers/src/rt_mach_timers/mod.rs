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

use super::printed::Measure;

pub(super) fn measure(id: &str) -> Option<Measure> {
    Some(match id {
        "1" => table_1::measure,
        "2" => table_2::measure,
        "3" => table_3::measure,
        "5.1" => pending_cost::measure,
        "5.4" => queue_cost::measure,
        _ => return None,
    })
}
