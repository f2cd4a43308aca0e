//! The parts of an experiment, put together.
//!
//! Owns: which folders are parts, that they are all of one experiment, each there once and whole; adding them.
//! Must not: judge anything anew.
//!
//! Counts add, and answers of sets follow each other in the order of the parts, so that what is written is, byte
//! for byte, what one program would have written that did the whole experiment.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use hourglass_documents::sweep::{StoredPoint, SweepExperiment, SweepShard};
use hourglass_runs::store::sweep::{EXPERIMENT_FILE, SweepFolder, SweepFolderError, same};

use super::experiment::SweepError;
use super::run::{SweepResult, document, held};

/// Numbers of missing parts that a message names.
const NAMED: usize = 5;

/// A folder with a part. Of a million only this is kept.
struct SweepPart {
    path: PathBuf,
    index: u64,
}

/// The parts of one experiment.
struct SweepParts {
    /// The experiment, with the first part's place in it.
    first: SweepExperiment,
    all: Vec<SweepPart>,
}

impl SweepParts {
    fn of(&self) -> u64 {
        self.first.shard.as_ref().map_or(0, |shard| shard.of)
    }

    fn whole(&self) -> SweepExperiment {
        SweepExperiment { shard: None, ..self.first.clone() }
    }
}

/// The folder of a part below `folder`, where the parts of an experiment can stand together.
#[must_use]
pub fn part_folder(folder: &Path, (index, of): (u64, u64)) -> PathBuf {
    let width = of.saturating_sub(1).to_string().len();
    folder.join(format!("shard-{index:0width$}-of-{of}"))
}

/// Whether a folder has an experiment, or a part of one, itself.
#[must_use]
pub fn is_experiment(folder: &Path) -> bool {
    folder.join(EXPERIMENT_FILE).exists()
}

/// Puts the parts in `folders`, which are parts or have parts as subfolders, together in `out`.
///
/// # Errors
/// They are parts of different experiments, or cut differently; one is missing, there twice, or unfinished; a folder
/// cannot be read, or `out` not be written. Then nothing is written.
pub fn merge(folders: &[PathBuf], out: &Path) -> Result<SweepResult, SweepError> {
    let mut parts = of_one_experiment(find(folders)?)?;
    parts.all.sort_by(|a, b| (a.index, &a.path).cmp(&(b.index, &b.path)));
    all_there(&parts)?;
    let whole = parts.whole();
    let (points, older) = added(&whole, &parts.all)?;
    let _held = held(out)?;
    let mut folder = SweepFolder::open(out, &whole)?;
    let there = folder.take_points().len();
    for point in points.iter().skip(there) {
        folder.append(point)?;
    }
    let older = older.iter().map(|(word, name)| (word.as_str(), name.as_str()));
    let document = document(&whole, older, &points, false);
    folder.write_results(&document, &points)?;
    Ok(SweepResult { document, signal: None })
}

/// The folders of parts, in the order in which they are named, and by name within one that holds several.
fn find(folders: &[PathBuf]) -> Result<Vec<PathBuf>, SweepError> {
    let mut parts = Vec::new();
    for folder in folders {
        if is_experiment(folder) {
            parts.push(folder.clone());
            continue;
        }
        let failed = |source| SweepError::Parts { path: folder.clone(), source };
        let before = parts.len();
        for entry in fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if is_experiment(&path) {
                parts.push(path);
            }
        }
        let Some(found @ [_, ..]) = parts.get_mut(before..) else {
            return Err(SweepError::NoParts(folder.clone()));
        };
        found.sort();
    }
    Ok(parts)
}

/// The parts, all of one experiment and cut as the first is.
fn of_one_experiment(paths: Vec<PathBuf>) -> Result<SweepParts, SweepError> {
    let whole = |of: &SweepExperiment| SweepExperiment { shard: None, ..of.clone() };
    let mut paths = paths.into_iter();
    let Some(path) = paths.next() else { return Err(SweepError::NoParts(PathBuf::new())) };
    let (first, index, of) = part(&path)?;
    let wanted = whole(&first);
    let first_path = path.clone();
    let mut all = vec![SweepPart { path, index }];
    for path in paths {
        let (experiment, index, cut) = part(&path)?;
        same(&path, &whole(&experiment), &wanted).map_err(|error| match error {
            SweepFolderError::Another { path, key, there, here } => {
                SweepError::OtherExperiment { path, key, there, other: first_path.clone(), here }
            }
            error => error.into(),
        })?;
        if cut != of {
            let other = first_path;
            return Err(SweepError::CutOtherwise { path, of: cut, other, other_of: of });
        }
        all.push(SweepPart { path, index });
    }
    Ok(SweepParts { first, all })
}

/// The experiment of a part, its number, and the number of parts.
fn part(path: &Path) -> Result<(SweepExperiment, u64, u64), SweepError> {
    let experiment = SweepFolder::about(path)?;
    match &experiment.shard {
        Some(SweepShard { index, of, .. }) => {
            let (index, of) = (*index, *of);
            Ok((experiment, index, of))
        }
        None => Err(SweepError::NoPart(path.to_path_buf())),
    }
}

/// Checks that each part is present once; they are in order.
fn all_there(parts: &SweepParts) -> Result<(), SweepError> {
    let (of, parts) = (parts.of(), &parts.all);
    for pair in parts.windows(2) {
        if pair[0].index == pair[1].index {
            let (path, other) = (pair[0].path.clone(), pair[1].path.clone());
            return Err(SweepError::Double { index: pair[0].index, path, other });
        }
    }
    if parts.len() as u64 == of {
        return Ok(());
    }
    let mut there = parts.iter().map(|part| part.index).peekable();
    let missing = (0..of).filter(|index| there.next_if_eq(index).is_none());
    let mut named: Vec<String> = missing.take(NAMED + 1).map(|index| index.to_string()).collect();
    if named.len() > NAMED {
        named.truncate(NAMED);
        named.push("...".to_owned());
    }
    Err(SweepError::Missing { there: parts.len() as u64, of, named: named.join(", ") })
}

/// Every point with the counts of all parts, and the older words by which analyses were requested.
fn added(
    whole: &SweepExperiment,
    parts: &[SweepPart],
) -> Result<(Vec<StoredPoint>, BTreeMap<String, String>), SweepError> {
    let mut points: Vec<StoredPoint> = Vec::with_capacity(whole.utilisations.len());
    let mut older = BTreeMap::new();
    for part in parts {
        let (experiment, kept) = SweepFolder::read(&part.path)?;
        let wanted = experiment.points().len();
        if kept.len() < wanted {
            let (path, done) = (part.path.clone(), kept.len());
            return Err(SweepError::Unfinished { path, done, wanted });
        }
        older.extend(experiment.shard.into_iter().flat_map(|shard| shard.older));
        for point in kept {
            match points.last_mut() {
                Some(last) if last.number == point.number => add(last, point),
                _ => points.push(point),
            }
        }
    }
    Ok((points, older))
}

fn add(sum: &mut StoredPoint, more: StoredPoint) {
    sum.point.sets += more.point.sets;
    sum.point.redrawn += more.point.redrawn;
    for (name, count) in more.point.accepted {
        *sum.point.accepted.entry(name).or_default() += count;
    }
    for (name, count) in more.point.undecided {
        *sum.point.undecided.entry(name).or_default() += count;
    }
    for (name, letters) in more.answers {
        sum.answers.entry(name).or_default().push_str(&letters);
    }
}
