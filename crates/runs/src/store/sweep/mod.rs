//! Folders of experiments of schedulability.
//!
//! Owns: their layout, and what is left after the program was killed at any moment. Must not: count
//! or judge.
//!
//! `experiment.json` says what is done, and is there first. `points.jsonl` has a line for each finished
//! point (of a part of an experiment: for each point of which it has sets), in their order, on the disk before the next is waited for; a last line that is not whole is
//! taken away. `sweep.json`, `sweep.parquet` and, where sets are kept, `sets.parquet` are
//! written from it, anew at each end, and get their names when they are complete. A description that is cut is written
//! anew where no point is there. None of them says
//! when or how often the program ran.

mod error;
mod table;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use hourglass_documents::sweep::{StoredPoint, SweepDocument, SweepExperiment};
use serde_json::Value;

use crate::store::partial::{PartialFile, partial_path, sync_folder};
pub use error::SweepFolderError;

pub const EXPERIMENT_FILE: &str = "experiment.json";
pub const POINTS_FILE: &str = "points.jsonl";
/// The document `hourglass.sweep/1`.
pub const RESULT_FILE: &str = "sweep.json";
/// A row for each point.
pub const TABLE_FILE: &str = "sweep.parquet";
/// A row for each set.
pub const SETS_FILE: &str = "sets.parquet";

#[derive(Debug)]
pub struct SweepFolder {
    path: PathBuf,
    journal: File,
    experiment: SweepExperiment,
    points: Vec<StoredPoint>,
}

impl SweepFolder {
    /// Makes the folder if it is not there, and opens it, so that it can be locked before anything in
    /// it is read.
    ///
    /// # Errors
    /// It is a file; it cannot be made or opened.
    pub fn place(path: &Path) -> Result<File, SweepFolderError> {
        make(path)?;
        File::open(path).map_err(|error| SweepFolderError::io(path, error))
    }

    /// Opens the folder of this experiment, or makes it. An empty folder will do. Two must not
    /// have it open at the same time: the caller locks its [`place`](SweepFolder::place).
    ///
    /// # Errors
    /// It holds another experiment or something else; it cannot be made, read or written.
    pub fn open(
        path: impl Into<PathBuf>,
        experiment: &SweepExperiment,
    ) -> Result<SweepFolder, SweepFolderError> {
        let path = path.into();
        make(&path)?;
        let begun = is_begun(&path, experiment);
        match read_experiment(&path) {
            Err(SweepFolderError::Damaged { .. }) if begun => write_experiment(&path, experiment)?,
            found => match found? {
                Some(found) => same(&path, &found, experiment)?,
                None => {
                    refuse_others(&path)?;
                    write_experiment(&path, experiment)?;
                }
            },
        }
        let (journal, points) = open_journal(&path, experiment)?;
        Ok(SweepFolder { path, journal, experiment: experiment.clone(), points })
    }

    /// What a folder is about, and the points that it holds, without opening it for more.
    ///
    /// # Errors
    /// It holds no experiment; it cannot be read.
    pub fn read(path: &Path) -> Result<(SweepExperiment, Vec<StoredPoint>), SweepFolderError> {
        let experiment = SweepFolder::about(path)?;
        let file = path.join(POINTS_FILE);
        let text = match fs::read(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(SweepFolderError::Unreadable { path: file, source: error }),
        };
        let (points, _) = whole_points(&text, &experiment);
        Ok((experiment, points))
    }

    /// What a folder is about.
    ///
    /// # Errors
    /// It holds no experiment; it cannot be read.
    pub fn about(path: &Path) -> Result<SweepExperiment, SweepFolderError> {
        read_experiment(path)?.ok_or_else(|| SweepFolderError::NoExperiment(path.to_path_buf()))
    }

    /// The points that were there when it was opened, in their order from the first.
    pub fn take_points(&mut self) -> Vec<StoredPoint> {
        std::mem::take(&mut self.points)
    }

    /// Keeps a point; it is on the disk when this returns.
    ///
    /// # Errors
    /// Most often the disk is full.
    pub fn append(&mut self, point: &StoredPoint) -> Result<(), SweepFolderError> {
        let file = self.path.join(POINTS_FILE);
        let mut line = serde_json::to_vec(point)
            .map_err(|error| SweepFolderError::io(&file, io::Error::from(error)))?;
        line.push(b'\n');
        self.journal
            .write_all(&line)
            .and_then(|()| self.journal.sync_data())
            .map_err(|error| SweepFolderError::io(&file, error))
    }

    /// Writes the files that are read by others; those of an earlier end are replaced.
    ///
    /// # Errors
    /// Most often the disk is full.
    pub fn write_results(
        &self,
        document: &SweepDocument,
        points: &[StoredPoint],
    ) -> Result<(), SweepFolderError> {
        write_whole(&self.path, RESULT_FILE, serde_json::to_vec_pretty(document))?;
        let partial = fresh(&self.path, TABLE_FILE)?;
        table::write_points(&partial, &self.experiment.analyses, points)?;
        if self.experiment.keep_sets {
            let partial = fresh(&self.path, SETS_FILE)?;
            table::write_sets(&partial, &self.experiment.analyses, points)?;
        }
        Ok(())
    }
}

fn make(path: &Path) -> Result<(), SweepFolderError> {
    match fs::create_dir(path) {
        Ok(()) => Ok(()),
        Err(_) if path.is_dir() => Ok(()),
        Err(_) if path.exists() => Err(SweepFolderError::NotAFolder(path.to_path_buf())),
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.parent().is_some() => {
            Err(SweepFolderError::NoParent(path.to_path_buf()))
        }
        Err(error) => Err(SweepFolderError::io(path, error)),
    }
}

/// A folder with other things in it is left alone.
fn refuse_others(path: &Path) -> Result<(), SweepFolderError> {
    let mut entries = fs::read_dir(path).map_err(|error| SweepFolderError::io(path, error))?;
    let partial = partial_path(Path::new(""), EXPERIMENT_FILE);
    let other = entries.find_map(|entry| {
        let name = entry.ok()?.file_name();
        (Path::new(&name) != partial).then_some(name)
    });
    match other {
        Some(name) => Err(SweepFolderError::Others {
            path: path.to_path_buf(),
            name: name.to_string_lossy().into_owned(),
        }),
        None => Ok(()),
    }
}

fn read_experiment(path: &Path) -> Result<Option<SweepExperiment>, SweepFolderError> {
    let file = path.join(EXPERIMENT_FILE);
    let text = match fs::read(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(SweepFolderError::io(&file, error)),
    };
    let read = serde_json::from_slice(&text);
    read.map(Some)
        .map_err(|error| SweepFolderError::Damaged { path: file, reason: error.to_string() })
}

/// Whether the description is the beginning of this experiment's, and no point is there yet: of points it would not be
/// known whose they are.
fn is_begun(path: &Path, experiment: &SweepExperiment) -> bool {
    let no_point = fs::metadata(path.join(POINTS_FILE))
        .map_or_else(|error| error.kind() == io::ErrorKind::NotFound, |points| points.len() == 0);
    let there = fs::read(path.join(EXPERIMENT_FILE));
    let whole = serde_json::to_vec_pretty(experiment);
    no_point && there.ok().zip(whole.ok()).is_some_and(|(there, whole)| whole.starts_with(&there))
}

fn write_experiment(path: &Path, experiment: &SweepExperiment) -> Result<(), SweepFolderError> {
    write_whole(path, EXPERIMENT_FILE, serde_json::to_vec_pretty(experiment))
}

/// That what a folder is about is the same as `wanted`.
///
/// # Errors
/// The first key that differs.
pub fn same(
    path: &Path,
    found: &SweepExperiment,
    wanted: &SweepExperiment,
) -> Result<(), SweepFolderError> {
    if found == wanted {
        return Ok(());
    }
    let keys = |experiment| serde_json::to_value(experiment).unwrap_or(Value::Null);
    let (there, here) = (keys(found), keys(wanted));
    let fields = there.as_object().into_iter().flatten();
    let differs = fields.filter(|(key, value)| here.get(key.as_str()) != Some(value));
    let only_here = here.as_object().into_iter().flatten();
    let only_here = only_here.filter(|(key, _)| there.get(key.as_str()).is_none());
    let mut keys = differs.chain(only_here).map(|(key, _)| key.clone());
    let key = keys.next().unwrap_or_default();
    let others: Vec<String> = keys.collect();
    let said = |from: &Value| from.get(&key).map_or("none".to_owned(), short);
    let mut wanted = said(&here);
    if !others.is_empty() {
        wanted.push_str(&format!(" (also different: {})", others.join(", ")));
    }
    Err(SweepFolderError::Another {
        path: path.to_path_buf(),
        there: said(&there),
        here: wanted,
        key,
    })
}

/// A value in a message.
fn short(value: &Value) -> String {
    match value {
        Value::String(text) if text.lines().count() > 1 => "another one".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().map(short).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// Opens the journal, reads its whole lines, and takes away what follows them.
fn open_journal(
    path: &Path,
    experiment: &SweepExperiment,
) -> Result<(File, Vec<StoredPoint>), SweepFolderError> {
    let file = path.join(POINTS_FILE);
    let failed = |error| SweepFolderError::io(&file, error);
    let mut options = OpenOptions::new();
    let mut journal =
        options.read(true).write(true).create(true).truncate(false).open(&file).map_err(failed)?;
    sync_folder(path).map_err(failed)?;
    let mut text = Vec::new();
    journal.read_to_end(&mut text).map_err(failed)?;
    let (points, good) = whole_points(&text, experiment);
    journal.set_len(good).map_err(failed)?;
    journal.seek(SeekFrom::Start(good)).map_err(failed)?;
    Ok((journal, points))
}

/// The points that are whole, in their order, and how many bytes they take.
fn whole_points(text: &[u8], experiment: &SweepExperiment) -> (Vec<StoredPoint>, u64) {
    let first = experiment.points().start;
    let (mut points, mut good) = (Vec::new(), 0u64);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let Ok(point) = serde_json::from_slice::<StoredPoint>(line) else { break };
        if line.last() != Some(&b'\n') || !belongs(&point, first + points.len(), experiment) {
            break;
        }
        points.push(point);
        good += line.len() as u64;
    }
    (points, good)
}

/// Whether a point is the one with this number of the experiment, with all that is kept of it.
fn belongs(kept: &StoredPoint, number: usize, experiment: &SweepExperiment) -> bool {
    let utilisation = experiment.utilisations.get(number).and_then(|text| text.parse().ok());
    let analyses = || experiment.analyses.iter();
    let answers = |name: &String| kept.answers.get(name).map_or(0, String::len) as u64;
    let range = experiment.sets_of(number);
    let sets = range.end - range.start;
    kept.number == number
        && utilisation == Some(kept.point.utilisation)
        && (kept.point.sets == sets || kept.point.redrawn > 0 && kept.point.sets < sets)
        && analyses().all(|name| kept.point.accepted.contains_key(name))
        && analyses().all(|name| !experiment.keep_sets || answers(name) == kept.point.sets)
}

/// A partial file; what a killed program left of one is removed.
fn fresh(folder: &Path, name: &str) -> Result<PartialFile, SweepFolderError> {
    let stale = partial_path(folder, name);
    if stale.exists() {
        fs::remove_file(&stale).map_err(|error| SweepFolderError::io(&stale, error))?;
    }
    PartialFile::create(folder, name).map_err(|error| SweepFolderError::io(&stale, error))
}

fn write_whole(
    folder: &Path,
    name: &str,
    document: serde_json::Result<Vec<u8>>,
) -> Result<(), SweepFolderError> {
    let partial = fresh(folder, name)?;
    let failed = |error| SweepFolderError::io(partial.target(), error);
    let mut text = document.map_err(io::Error::from).map_err(failed)?;
    text.push(b'\n');
    let mut file = partial.file();
    file.write_all(&text).and_then(|()| partial.commit()).map_err(failed)
}
