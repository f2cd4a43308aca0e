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

use super::{Paper, TableDef};
pub(super) use evaluation::CachedRuns;
pub use headline::{Headline, PolicyFigures, headline};
use tables::FIGURE_7;

/// The paper.
pub(super) const PAPER: Paper = Paper {
    name: "smt-reservation",
    title: "CPU Resource Reservation for Simultaneous Multi-Thread Systems",
    source: "H. Inoue, T. Moriyama, Y. Negishi, M. Ohara, IBM Research Report RT0676, 2006",
    tables: &[
        TableDef {
            id: example::MONITOR_ID,
            title: example::MONITOR_TITLE,
            measure: example::monitor,
        },
        TableDef {
            id: example::DISABLE_ID,
            title: example::DISABLE_TITLE,
            measure: example::disable,
        },
        TableDef { id: FIGURE_7[0].id, title: FIGURE_7[0].title, measure: tables::figure_7a },
        TableDef { id: FIGURE_7[1].id, title: FIGURE_7[1].title, measure: tables::figure_7b },
        TableDef { id: FIGURE_7[2].id, title: FIGURE_7[2].title, measure: tables::figure_7c },
        TableDef { id: tables::ID_8, title: tables::TITLE_8, measure: tables::figure_8 },
        TableDef { id: tables::ID_9, title: tables::TITLE_9, measure: tables::figure_9 },
        TableDef { id: tables::ID_10, title: tables::TITLE_10, measure: tables::figure_10 },
        TableDef { id: tables::ID_11, title: tables::TITLE_11, measure: tables::figure_11 },
        TableDef { id: tables::ID_12, title: tables::TITLE_12, measure: tables::figure_12 },
    ],
};
