//! H. Inoue, T. Moriyama, Y. Negishi and M. Ohara, *CPU Resource Reservation for Simultaneous
//! Multi-Thread Systems*, IBM Research Report RT0676, 2006: its example (Figures 4 and 5) and its
//! evaluation (Figures 7 to 12).
//!
//! The evaluation needs hardware threads that share a core. Where the machine has none, contention is
//! emulated ([`contention`]); each figure is simulated besides. A row says which of these it is.

mod contention;
mod emulator;
mod example;
mod jobs;
mod outcome;
mod rig;
mod simulated;
mod trial;
mod ways;
mod work;

use super::{Paper, Table};

/// The paper.
pub(super) const PAPER: Paper = Paper {
    name: "smt-reservation",
    title: "CPU Resource Reservation for Simultaneous Multi-Thread Systems",
    source: "H. Inoue, T. Moriyama, Y. Negishi, M. Ohara, IBM Research Report RT0676, 2006",
    tables: &[
        Table { id: example::MONITOR_ID, title: example::MONITOR_TITLE, measure: example::monitor },
        Table { id: example::DISABLE_ID, title: example::DISABLE_TITLE, measure: example::disable },
    ],
};
