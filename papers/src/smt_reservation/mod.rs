//! H. Inoue, T. Moriyama, Y. Negishi and M. Ohara, *CPU Resource Reservation for Simultaneous
//! Multi-Thread Systems*, IBM Research Report RT0676, 2006: its example (Figures 4 and 5) and its
//! evaluation (Figures 7 to 12).
//!
//! The evaluation needs hardware threads that share a core. Where the machine has none, contention is
//! emulated ([`contention`]); each figure is simulated besides. A row says which of these it is.

mod chunk;
mod contention;
mod emulator;
mod evaluation;
mod example;
mod figures;
mod headline;
mod job_loop;
mod jobs;
mod late_jobs;
mod outcome;
mod simulated;
mod smt_methods;
mod tables;
mod test_host;
mod trial;
mod workloads;

use super::printed::Measure;
pub use headline::{Headline, PolicyFigures, headline};

pub(super) fn measure(id: &str) -> Option<Measure> {
    Some(match id {
        "figure-4" | "figure-5" => example::measure,
        "figure-9" | "figure-12" => tables::throughput,
        _ => tables::by_period,
    })
}
