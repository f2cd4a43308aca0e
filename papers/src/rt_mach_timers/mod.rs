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

/// What measures the table of that number.
pub(super) fn measure(id: &str) -> Option<Measure> {
    Some(match id {
        "1" => |_, bench| table_1::measure(bench),
        "2" => |_, bench| table_2::measure(bench),
        "3" => |_, bench| table_3::measure(bench),
        "5.1" => |_, bench| pending_cost::measure(bench),
        "5.4" => |_, bench| queue_cost::measure(bench),
        _ => return None,
    })
}

/// The machine of section 5.
const MACHINE: &str = "Gateway 2000, 486DX2 of 66 MHz, Real-Time Mach MK78, caches warm, highest \
                       thread priority; averages of 1000 repetitions";
