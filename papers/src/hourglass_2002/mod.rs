//! J. Regehr, *Inferring Scheduling Behavior with Hourglass*, USENIX Annual Technical Conference,
//! FREENIX track, 2002: its Figures 3 to 6 and Tables 1 and 2, whether concurrent applications can meet
//! their deadlines (section 5.5), also in reservations (section 5.6).
//!
//! A figure is a table of its numbers here, called `figure-3`, and a picture. What has no number in the
//! paper has that of its section.

mod figure_3;
mod figure_4;
mod figure_5;
mod figure_6;
mod runs;
mod section_5_5;
mod section_5_6;
mod table_1;
mod table_2;

use super::{Paper, TableDef};

/// The paper.
pub(super) const PAPER: Paper = Paper {
    name: "hourglass-2002",
    title: "Inferring Scheduling Behavior with Hourglass",
    source: "J. Regehr, USENIX Annual Technical Conference, FREENIX track, 2002",
    tables: &[
        TableDef { id: figure_3::ID, title: figure_3::TITLE, measure: figure_3::measure },
        TableDef { id: figure_4::ID, title: figure_4::TITLE, measure: figure_4::measure },
        TableDef { id: figure_5::ID, title: figure_5::TITLE, measure: figure_5::measure },
        TableDef { id: table_1::ID, title: table_1::TITLE, measure: table_1::measure },
        TableDef { id: table_2::ID, title: table_2::TITLE, measure: table_2::measure },
        TableDef { id: figure_6::ID, title: figure_6::TITLE, measure: figure_6::measure },
        TableDef { id: section_5_5::ID, title: section_5_5::TITLE, measure: section_5_5::measure },
        TableDef { id: section_5_6::ID, title: section_5_6::TITLE, measure: section_5_6::measure },
    ],
};
