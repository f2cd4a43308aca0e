//! J. Regehr, *Inferring Scheduling Behavior with Hourglass*, USENIX Annual Technical Conference,
//! FREENIX track, 2002: whether concurrent applications can meet their deadlines (section 5.5).
//!
//! The paper numbers sections, not tables; here a table has the number of its section.

mod section_5_5;

use super::{Paper, Table};

/// The paper.
pub(super) const PAPER: Paper = Paper {
    name: "hourglass-2002",
    title: "Inferring Scheduling Behavior with Hourglass",
    source: "J. Regehr, USENIX Annual Technical Conference, FREENIX track, 2002",
    tables: &[Table {
        id: section_5_5::ID,
        title: section_5_5::TITLE,
        measure: section_5_5::measure,
    }],
};
