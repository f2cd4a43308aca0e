//! Importing the task sets of other tools: SchedCAT, SimSo, MAST, AMALTHEA, SAG.
//!
//! Owns: which of their elements a set of tasks can say. An element that it cannot is an error where the answer would
//! be about another system, and a note where it would not; none is passed over silently. Must not: open files, judge.
//!
//! Formats without a unit are read with one, which a note names. Times are exact where they are whole nanoseconds;
//! otherwise execution times are rounded up, and periods and deadlines down, so that a bound holds for the original.
//!
//! # How another tool's file is read
//!
//! `tasks::format` tells formats apart by their beginning; `tasks::foreign` has a file for each. An element or
//! attribute that is not read is an error that names it; what does not change the answer is a note. A format that is
//! known and not read is named (`Format::UnreadableCase`). To add one: its file, its variant of `Format`, its line in
//! `foreign::of_xml` or a function that knows its beginning, its name in `measure::task_input::Source::ALL`.

mod amalthea;
mod decimal;
pub(crate) mod format;
mod mast;
mod mast_text;
mod sag;
mod schedcat;
mod simso;
mod xml;

use std::collections::BTreeSet;

use super::error::TaskSetError;
use super::{Format, TaskSet};

/// A set of another tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedTaskSet {
    pub set: TaskSet,
    /// The parts that were skipped or assumed, one sentence each.
    pub notes: Vec<String>,
}

/// The result of an import; the error concerns the whole file.
type Import<T> = Result<T, TaskSetError>;

impl TaskSet {
    /// Reads the file of another tool. For formats of our own and of rt-app it is `None`: they have readers of their
    /// own.
    ///
    /// # Errors
    /// The text is not of that format, or says something that a set of tasks cannot say.
    pub fn from_foreign(
        format: Format,
        text: &str,
    ) -> Option<Result<ImportedTaskSet, TaskSetError>> {
        let read = match format {
            Format::SchedCat => schedcat::read,
            Format::SimSo => simso::read,
            Format::Mast => mast::read,
            Format::Amalthea => amalthea::read,
            Format::Sag => sag::read,
            Format::Toml | Format::Json | Format::RtApp | Format::Corpus | Format::Unread(_) => {
                return None;
            }
        };
        let checked = |translated: ImportedTaskSet| {
            translated.set.check_names()?;
            translated.set.check().map(|()| translated)
        };
        Some(read(text).and_then(checked))
    }
}

/// The format of an XML text by its root element; `None` where it belongs to another tool.
pub(super) fn of_xml(text: &str) -> Option<Format> {
    match xml::root_name(text)?.as_str() {
        "taskset" | "testpoint" => Some(Format::SchedCat),
        "simulation" => Some(Format::SimSo),
        "Amalthea" | "AMALTHEA" => Some(Format::Amalthea),
        "MAST_MODEL" => Some(Format::Unread("a MAST model in XML; export it as MAST text")),
        _ => None,
    }
}

pub(super) use mast_text::looks_like as looks_like_mast;
pub(super) use sag::looks_like as sag_format;

/// Notes that are said once, however many elements they are about: the first of them, and how many more.
#[derive(Default)]
struct ImportNotes {
    all: Vec<(String, String, BTreeSet<String>)>,
}

impl ImportNotes {
    /// `what` is about `who`.
    fn about(&mut self, who: &str, what: &str) {
        match self.all.iter_mut().find(|(_, known, _)| known == what) {
            Some((first, _, more)) if first != who => drop(more.insert(who.to_owned())),
            Some(_) => {}
            None => self.all.push((who.to_owned(), what.to_owned(), BTreeSet::new())),
        }
    }

    fn file(&mut self, what: &str) {
        self.about("", what);
    }

    fn rounded(&mut self, inexact: bool) {
        if inexact {
            self.file(
                "times are rounded to nanoseconds: execution times up, periods and deadlines down",
            );
        }
    }

    fn sentences(self) -> Vec<String> {
        let sentence = |(who, what, more): (String, String, BTreeSet<String>)| match (
            who.as_str(),
            more.len(),
        ) {
            ("", _) => what,
            (who, 0) => format!("{who}: {what}"),
            (who, more) => format!("{who} and {more} more: {what}"),
        };
        self.all.into_iter().map(sentence).collect()
    }
}
