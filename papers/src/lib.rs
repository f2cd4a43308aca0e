//! The tables and figures of papers, measured here.
//!
//! Owns: which papers there are, measuring their tables, what differs from the paper and why. A
//! paper is a folder and a line in [`PAPERS`]; a table is a file and a line in its paper's list.
//! Must not: draw, print, write files.

#![forbid(unsafe_code)]

mod batches;
mod bench;
mod costs;
mod downsample;
mod highpertimer;
mod hourglass_2002;
mod hrtimers;
pub mod load;
pub mod miss_over_cpu;
mod rows;
mod rt_mach_timers;
mod sentences;
mod smt_reservation;
mod wakeups;

use hourglass_documents::paper::{
    PAPER_LIST_SCHEMA, PAPER_SCHEMA, PaperDocument, PaperEntry, PaperFigure, PaperList, PaperTable,
    TableEntry,
};
use hourglass_sys::signal;

use bench::MeasurementHost;
pub use bench::MeasurementSize;
pub use smt_reservation::{Headline, PolicyFigures, headline};

/// Every paper of which tables can be measured.
pub const PAPERS: &[Paper] = &[
    highpertimer::PAPER,
    hrtimers::PAPER,
    rt_mach_timers::PAPER,
    hourglass_2002::PAPER,
    smt_reservation::PAPER,
];

/// A paper.
#[derive(Debug)]
pub struct Paper {
    /// Its name on the command line.
    pub name: &'static str,
    pub title: &'static str,
    /// Who wrote it, where and when.
    pub source: &'static str,
    /// Its tables, in its order.
    pub tables: &'static [TableDef],
}

/// A table that can be measured.
#[derive(Debug)]
pub struct TableDef {
    /// Its number in the paper.
    pub id: &'static str,
    pub title: &'static str,
    /// Measures it; `None` if a signal asked to stop before it was complete.
    measure: fn(&MeasurementHost) -> Option<MeasuredTable>,
}

/// A table with the figure that belongs to it, if one does.
#[derive(Debug)]
struct MeasuredTable {
    table: PaperTable,
    figure: Option<PaperFigure>,
}

/// A paper's tables as they were measured.
#[derive(Debug)]
pub struct PaperMeasurement {
    pub document: PaperDocument,
    /// What is drawn of each of them, in the same order.
    pub figures: Vec<Option<PaperFigure>>,
    /// The signal that ended the measurement, if one did.
    pub signal: Option<i32>,
}

/// All papers, for people and scripts.
#[must_use]
pub fn list() -> PaperList {
    let table = |table: &TableDef| TableEntry { id: table.id.into(), title: table.title.into() };
    let entry = |paper: &Paper| PaperEntry {
        name: paper.name.into(),
        title: paper.title.into(),
        source: paper.source.into(),
        tables: paper.tables.iter().map(table).collect(),
    };
    PaperList { schema: PAPER_LIST_SCHEMA.into(), papers: PAPERS.iter().map(entry).collect() }
}

impl Paper {
    /// The paper of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Paper> {
        PAPERS.iter().find(|paper| paper.name == name)
    }

    /// Its table of that number.
    #[must_use]
    pub fn table(&self, id: &str) -> Option<&'static TableDef> {
        self.tables.iter().find(|table| table.id == id)
    }

    /// Measures the tables that `wanted` takes, one after the other, on one CPU; `begin` is called with
    /// each before its measurement. Takes at most [`MeasurementSize::budget`] for each table of costs; the
    /// sleeps of the thesis' chapter 5 take a quarter of a minute for the first table, or some minutes.
    ///
    /// From here on SIGINT, SIGTERM and SIGHUP end the measurement and not the process: what was
    /// complete by then is returned.
    pub fn measure(
        &self,
        effort: MeasurementSize,
        wanted: impl Fn(&TableDef) -> bool,
        mut begin: impl FnMut(&TableDef),
    ) -> PaperMeasurement {
        // Without the handlers a signal ends the process, as it does anywhere else.
        let _ = signal::catch_stop();
        let bench = MeasurementHost::for_this_machine(effort, || signal::stop_asked().is_some());
        let mut tables = Vec::new();
        let mut figures = Vec::new();
        for table in self.tables.iter().filter(|table| wanted(table)) {
            begin(table);
            let Some(measured) = (table.measure)(&bench) else { break };
            tables.push(measured.table);
            figures.push(measured.figure);
        }
        let signal = signal::stop_asked();
        let document = PaperDocument {
            schema: PAPER_SCHEMA.into(),
            paper: self.name.into(),
            title: self.title.into(),
            source: self.source.into(),
            effort: effort.name().into(),
            machine: bench.machine,
            tables,
            interrupted: signal.is_some(),
        };
        PaperMeasurement { document, figures, signal }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn papers_and_tables_are_found_by_name() {
        for paper in PAPERS {
            assert_eq!(Paper::named(paper.name).map(|found| found.name), Some(paper.name));
            for table in paper.tables {
                assert_eq!(paper.table(table.id).map(|found| found.title), Some(table.title));
            }
            assert!(paper.table("9.9").is_none());
        }
        assert!(Paper::named("hourglas").is_none());
    }

    /// The tables of chapters 2, 3 and 5 of the thesis.
    #[test]
    fn the_list_names_every_table() {
        let list = list();
        let thesis = list.papers.iter().find(|paper| paper.name == "highpertimer").unwrap();
        let ids: Vec<&str> = thesis.tables.iter().map(|table| table.id.as_str()).collect();
        assert_eq!(
            ids,
            [
                "2.1", "2.2", "2.3", "2.4", "3.1", "3.2", "5.1", "5.2", "5.3", "5.4", "5.5", "5.6",
                "5.7", "5.8", "5.9",
            ]
        );
    }
}
