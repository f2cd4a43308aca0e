//! What a file given to a sweep is: an experiment, or a set of tasks.
//!
//! Owns: telling them apart. Must not: open files.

use hourglass_tasks::{Format, TaskSet};

use super::experiment::SweepError;
use super::experiment_keys::ExperimentBuilder;
use super::template::Template;

/// The key that every task file has, and no experiment.
const TASK: &str = "task";

/// A file, read.
#[derive(Clone, Debug)]
pub enum SweepFile {
    /// An experiment on drawn sets.
    Experiment(Box<ExperimentBuilder>),
    /// A set to be scaled.
    Tasks(Box<Template>),
}

impl SweepFile {
    /// Reads an experiment, or tasks in any format but that of worked examples, of which a file
    /// has many.
    ///
    /// # Errors
    /// The text is neither, or what it says cannot be swept over.
    pub fn read(text: &str) -> Result<SweepFile, SweepError> {
        let set = match Format::of(text) {
            Format::Toml => {
                let table: Option<toml::Table> = text.parse().ok();
                if !table.is_some_and(|table| table.contains_key(TASK)) {
                    return ExperimentBuilder::from_toml(text)
                        .map(Box::new)
                        .map(SweepFile::Experiment);
                }
                TaskSet::from_toml(text)?
            }
            Format::Json => TaskSet::from_json(text)?,
            Format::RtApp => TaskSet::from_rt_app(text)?.set,
            Format::Corpus => return Err(SweepError::Examples),
            Format::Unread(what) => return Err(SweepError::Unread(what)),
            foreign => match TaskSet::from_foreign(foreign, text) {
                Some(read) => read?.set,
                None => return Err(SweepError::Examples),
            },
        };
        Ok(SweepFile::Tasks(Box::new(Template::new(&set)?)))
    }
}
