//! The tables and figures of papers, measured here.
//!
//! Owns: which papers there are, measuring their tables, what differs from the paper and why. A
//! paper is a folder with a `paper.toml` and a line in `FILES`; a table is its data there and what measures it.
//! Must not: draw, print, write files.

#![forbid(unsafe_code)]

mod batches;
mod bench;
mod costs;
mod downsample;
mod drawing;
mod highpertimer;
mod hourglass_2002;
mod hrtimers;
pub mod load;
pub mod miss_over_cpu;
mod printed;
mod rows;
mod rt_mach_timers;
mod sentences;
mod smt_reservation;
mod wakeups;

use std::sync::LazyLock;

use hourglass_documents::paper::{
    PAPER_LIST_SCHEMA, PAPER_SCHEMA, PaperDocument, PaperEntry, PaperFigure, PaperList, TableEntry,
};
use hourglass_sys::signal;

use bench::MeasurementHost;
pub use bench::MeasurementSize;
use printed::MeasureOf;
pub use printed::{Paper, Table};
pub use smt_reservation::{Headline, PolicyFigures, headline};

const FILES: [(&str, MeasureOf); 5] = [
    (include_str!("highpertimer/paper.toml"), highpertimer::measure),
    (include_str!("hrtimers/paper.toml"), hrtimers::measure),
    (include_str!("rt_mach_timers/paper.toml"), rt_mach_timers::measure),
    (include_str!("hourglass_2002/paper.toml"), hourglass_2002::measure),
    (include_str!("smt_reservation/paper.toml"), smt_reservation::measure),
];

#[must_use]
pub fn papers() -> &'static [Paper] {
    static PAPERS: LazyLock<Vec<Paper>> = LazyLock::new(|| {
        // A test reads them all.
        FILES.iter().filter_map(|(text, measure)| Paper::read(text, *measure).ok()).collect()
    });
    &PAPERS
}

#[derive(Debug)]
pub struct PaperMeasurement {
    pub document: PaperDocument,
    /// What is drawn of each of them, in the same order.
    pub figures: Vec<Option<PaperFigure>>,
    pub signal: Option<i32>,
}

#[must_use]
pub fn list() -> PaperList {
    let table = |table: &Table| TableEntry { id: table.id.clone(), title: table.title.clone() };
    let entry = |paper: &Paper| PaperEntry {
        name: paper.name.clone(),
        title: paper.title.clone(),
        source: paper.source.clone(),
        tables: paper.tables.iter().map(table).collect(),
    };
    PaperList { schema: PAPER_LIST_SCHEMA.into(), papers: papers().iter().map(entry).collect() }
}

impl Paper {
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Paper> {
        papers().iter().find(|paper| paper.name == name)
    }

    #[must_use]
    pub fn table(&self, id: &str) -> Option<&Table> {
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
        wanted: impl Fn(&Table) -> bool,
        mut begin: impl FnMut(&Table),
    ) -> PaperMeasurement {
        // Without the handlers a signal ends the process, as it does anywhere else.
        let _ = signal::catch_stop();
        let bench = MeasurementHost::for_this_machine(effort, || signal::stop_asked().is_some());
        let mut tables = Vec::new();
        let mut figures = Vec::new();
        for table in self.tables.iter().filter(|table| wanted(table)) {
            begin(table);
            let Some(measured) = table.measure.and_then(|measure| measure(table, &bench)) else {
                break;
            };
            tables.push(measured.table);
            figures.push(measured.figure);
        }
        let signal = signal::stop_asked();
        let document = PaperDocument {
            schema: PAPER_SCHEMA.into(),
            paper: self.name.clone(),
            title: self.title.clone(),
            source: self.source.clone(),
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
    use hourglass_documents::paper::{PaperRow, PaperTable};

    use super::*;

    pub(crate) fn row<'a>(table: &'a PaperTable, name: &str) -> &'a PaperRow {
        let found = table.rows.iter().find(|row| row.name == name);
        found.unwrap_or_else(|| panic!("{name} is not among {:?}", table.rows))
    }

    /// Every row has a number or says why not, and the texts can be read.
    pub(crate) fn is_whole(table: &PaperTable) {
        for row in &table.rows {
            assert!(row.measured.is_some() != row.missing.is_some(), "{row:?}");
            assert!(row.measured.is_none_or(f64::is_finite), "{row:?}");
        }
        let said = &table.difference;
        assert!(said.ends_with('.') && !said.contains("NaN") && !said.contains("inf"), "{said}");
        for text in table.notes.iter().chain([said, &table.method]) {
            assert!(!text.contains("nothing measured") && !text.contains(['{', '}']), "{text}");
        }
    }

    #[test]
    fn papers_and_tables_are_found_by_name() {
        for (text, measure) in FILES {
            let read = Paper::read(text, measure).unwrap_or_else(|error| panic!("{error}"));
            let paper = Paper::named(&read.name).unwrap();
            for table in &read.tables {
                assert_eq!(paper.table(&table.id).map(|found| &found.title), Some(&table.title));
                assert!(table.measure.is_some(), "{} {}", paper.name, table.id);
            }
            assert!(paper.table("9.9").is_none());
            assert_eq!(text.matches('{').count(), text.matches('}').count(), "{}", paper.name);
        }
        assert!(Paper::named("hourglas").is_none());
    }

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
