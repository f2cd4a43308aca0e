//! Running an experiment, from the beginning or from where a folder ends.
//!
//! Owns: the order of things, the document. Must not: print, draw.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::time::{Duration, Instant};

use hourglass_documents::sweep::{
    ACCEPTED, REFUSED, SWEEP_SCHEMA, StoredPoint, SweepDocument, SweepExperiment, SweepPoint,
    UNDECIDED,
};
use hourglass_runs::store::sweep::SweepFolder;
use hourglass_sys::{lock, signal};
use hourglass_tasks::generate::Millionths;

use super::TestOutcome;
use super::experiment::{Experiment, SweepError};
use super::workers::{PointResults, WorkQueue, run_points};

/// The result of an experiment.
#[derive(Clone, Debug)]
pub struct SweepResult {
    /// The result, with the points that are finished.
    pub document: SweepDocument,
    /// The signal that ended it before the last point, if one did.
    pub signal: Option<i32>,
}

/// Follows the progress of an experiment.
pub trait SweepObserver {
    /// The experiment begins: `done` of `all` sets are stored already.
    fn started(&mut self, done: u64, all: u64);

    /// Receives the number of finished sets; called many times a second.
    fn moved(&mut self, done: u64);

    fn ended(&mut self);
}

/// Runs the experiment on `threads` threads until SIGINT, SIGTERM or SIGHUP asks to stop. With a
/// folder, every finished point is kept there at once, and points that it holds are not done again.
///
/// # Errors
/// The folder holds something else or cannot be written; a set cannot be drawn.
pub fn run(
    experiment: &Experiment,
    folder: Option<&Path>,
    threads: usize,
    watch: &mut dyn SweepObserver,
) -> Result<SweepResult, SweepError> {
    // Without the handlers a signal ends the process, as it does anywhere else; what is finished
    // is kept in either case.
    let _ = signal::catch_stop();
    run_until(experiment, folder, threads, watch, signal::stop_asked)
}

/// The same until `stop` gives the signal that it stands for.
///
/// # Errors
/// As [`run`].
pub fn run_until(
    experiment: &Experiment,
    folder: Option<&Path>,
    threads: usize,
    watch: &mut dyn SweepObserver,
    stop: impl Fn() -> Option<i32>,
) -> Result<SweepResult, SweepError> {
    let facts = experiment.facts();
    let _held = folder.map(held).transpose()?;
    let mut folder = folder.map(|path| SweepFolder::open(path, &facts)).transpose()?;
    let mut kept = folder.as_mut().map(SweepFolder::take_points).unwrap_or_default();
    let wanted = facts.points();
    let sets = |points: Range<usize>| -> u64 {
        points.map(|point| facts.sets_of(point)).map(|sets| sets.end - sets.start).sum()
    };
    let next = wanted.start + kept.len();
    let begun = sets(wanted.start..next);
    watch.started(begun, sets(wanted.clone()));
    let mut signal = None;
    let judged = run_points(
        experiment,
        WorkQueue::new(&facts, next..wanted.end),
        threads,
        |done| {
            watch.moved(begun + done);
            signal = stop();
            if signal.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        },
        |answers| {
            let point = kept_point(experiment, &answers);
            if let Some(folder) = &mut folder {
                folder.append(&point)?;
            }
            kept.push(point);
            Ok(())
        },
    );
    watch.ended();
    judged?;
    let complete = kept.len() == wanted.len();
    let older = experiment.older.iter().copied();
    let document = document(&facts, older, &kept, !complete);
    if let Some(folder) = &folder {
        folder.write_results(&document, &kept)?;
    }
    Ok(SweepResult { document, signal: signal.filter(|_| !complete) })
}

/// For how long a lock is asked for: a process that another thread is just starting has what this one
/// had open, with its locks, until it becomes its program.
const PATIENCE: Duration = Duration::from_millis(500);

/// The folder, locked against another sweep until this is dropped. Where the file system has no
/// locks, it is taken as it is.
pub(super) fn held(path: &Path) -> Result<File, SweepError> {
    let place = SweepFolder::place(path)?;
    let begun = Instant::now();
    while let Ok(false) = lock::try_exclusive(&place) {
        if begun.elapsed() > PATIENCE {
            return Err(SweepError::InUse(path.to_path_buf()));
        }
        std::thread::sleep(PATIENCE / 50);
    }
    Ok(place)
}

/// A finished point, counted.
fn kept_point(experiment: &Experiment, answers: &PointResults) -> StoredPoint {
    let names = || experiment.analyses.iter().map(|analysis| analysis.name.to_owned());
    let judged = || answers.sets.iter().filter_map(|set| set.answers.as_ref());
    let counted = |wanted: TestOutcome| {
        let count = |at: usize| judged().filter(|set| set[at] == wanted).count() as u64;
        names().enumerate().map(|(at, name)| (name, count(at))).collect()
    };
    let letters = |at: usize| judged().map(|set| letter(set[at])).collect();
    StoredPoint {
        number: answers.number,
        point: SweepPoint {
            utilisation: experiment.utilisations[answers.number].as_f64(),
            sets: judged().count() as u64,
            redrawn: answers.sets.iter().map(|set| set.redrawn).sum(),
            accepted: counted(TestOutcome::Accepted),
            undecided: counted(TestOutcome::Undecided),
        },
        answers: match experiment.keep_sets {
            true => names().enumerate().map(|(at, name)| (name, letters(at))).collect(),
            false => BTreeMap::new(),
        },
    }
}

fn letter(answer: TestOutcome) -> char {
    match answer {
        TestOutcome::Accepted => ACCEPTED,
        TestOutcome::Refused => REFUSED,
        TestOutcome::Undecided => UNDECIDED,
    }
}

/// The document about what is kept. `older` has words by which analyses were asked for, and their names.
pub(super) fn document<'a>(
    facts: &SweepExperiment,
    older: impl Iterator<Item = (&'a str, &'a str)>,
    kept: &[StoredPoint],
    interrupted: bool,
) -> SweepDocument {
    let mut points: Vec<SweepPoint> = kept.iter().map(|kept| kept.point.clone()).collect();
    let utilisations: Vec<Millionths> = facts
        .utilisations
        .iter()
        .skip(facts.points().start)
        .filter_map(|text| text.parse().ok())
        .collect();
    let weight: u64 = utilisations.iter().take(points.len()).map(|point| point.count()).sum();
    let weighted = |name: &str| {
        let each = utilisations.iter().zip(&points).map(|(utilisation, point)| {
            let accepted = point.accepted.get(name).copied().unwrap_or(0);
            utilisation.as_f64() * accepted as f64 / point.sets.max(1) as f64
        });
        each.sum::<f64>() / Millionths::new(weight.max(1)).as_f64()
    };
    let each = facts.analyses.iter();
    let mut weighted: BTreeMap<String, f64> =
        each.map(|name| (name.clone(), weighted(name))).collect();
    // A request by an older word finds the numbers under that word, too.
    for (word, name) in older {
        also(&mut weighted, word, name);
        for point in &mut points {
            also(&mut point.accepted, word, name);
            also(&mut point.undecided, word, name);
        }
    }
    let (schema, experiment) = (SWEEP_SCHEMA.to_owned(), facts.clone());
    SweepDocument { schema, experiment, points, weighted, interrupted }
}

/// Puts what stands under `name` under `word`, too.
fn also<T: Copy>(numbers: &mut BTreeMap<String, T>, word: &str, name: &str) {
    if let Some(number) = numbers.get(name).copied() {
        numbers.insert(word.to_owned(), number);
    }
}
