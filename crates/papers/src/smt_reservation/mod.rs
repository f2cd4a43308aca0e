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
mod jobs;
mod late;
mod looped;
mod outcome;
mod rig;
mod simulated;
mod tables;
mod trial;
mod ways;
mod work;

use super::{Paper, Table};
pub(super) use evaluation::Kept;
pub use headline::{Headline, PolicyFigures, headline};
use tables::FIGURE_7;

/// The paper.
pub(super) const PAPER: Paper = Paper {
    name: "smt-reservation",
    title: "CPU Resource Reservation for Simultaneous Multi-Thread Systems",
    source: "H. Inoue, T. Moriyama, Y. Negishi, M. Ohara, IBM Research Report RT0676, 2006",
    tables: &[
        Table { id: example::MONITOR_ID, title: example::MONITOR_TITLE, measure: example::monitor },
        Table { id: example::DISABLE_ID, title: example::DISABLE_TITLE, measure: example::disable },
        Table { id: FIGURE_7[0].id, title: FIGURE_7[0].title, measure: tables::figure_7a },
        Table { id: FIGURE_7[1].id, title: FIGURE_7[1].title, measure: tables::figure_7b },
        Table { id: FIGURE_7[2].id, title: FIGURE_7[2].title, measure: tables::figure_7c },
        Table { id: tables::ID_8, title: tables::TITLE_8, measure: tables::figure_8 },
        Table { id: tables::ID_9, title: tables::TITLE_9, measure: tables::figure_9 },
        Table { id: tables::ID_10, title: tables::TITLE_10, measure: tables::figure_10 },
        Table { id: tables::ID_11, title: tables::TITLE_11, measure: tables::figure_11 },
        Table { id: tables::ID_12, title: tables::TITLE_12, measure: tables::figure_12 },
    ],
};
