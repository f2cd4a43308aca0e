//! The sets of an experiment, judged on several threads.
//!
//! Owns: cutting points into blocks, the threads, putting answers together in the order of sets and
//! points. Must not: depend on which thread is done when; write files.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use hourglass_documents::sweep::SweepExperiment;
use hourglass_sched::Task;

use super::TestOutcome;
use super::experiment::{Experiment, SweepError};

/// Sets that a thread takes at a time: enough that handing over costs nothing, few enough that all
/// threads end together.
const BLOCK: u64 = 32;

/// How often the waiting thread checks whether it must stop.
const LOOK: Duration = Duration::from_millis(50);

/// The answers of a finished point: for each set, in order.
pub(super) struct PointResults {
    pub(super) number: usize,
    pub(super) sets: Vec<SetOutcome>,
}

pub(super) struct SetOutcome {
    /// One answer of each analysis; none if nothing could be drawn.
    pub(super) answers: Option<Vec<TestOutcome>>,
    /// How many draws ran out of tries.
    pub(super) redrawn: u64,
}

struct WorkerReport {
    place: SetBlock,
    answers: Result<Vec<SetOutcome>, SweepError>,
}

/// A block of sets of a point.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SetBlock {
    point: usize,
    first: u64,
}

/// The sets to judge, cut into blocks.
pub(super) struct WorkQueue {
    /// The first point.
    first: usize,
    /// The sets of each point from there on.
    sets: Vec<Range<u64>>,
    /// How many blocks there are before each point, and in all.
    before: Vec<u64>,
}

impl WorkQueue {
    pub(super) fn new(facts: &SweepExperiment, points: Range<usize>) -> WorkQueue {
        let first = points.start;
        let sets: Vec<Range<u64>> = points.map(|point| facts.sets_of(point)).collect();
        let mut before = vec![0];
        let mut all = 0;
        for sets in &sets {
            all += (sets.end - sets.start).div_ceil(BLOCK);
            before.push(all);
        }
        WorkQueue { first, sets, before }
    }

    /// How many blocks a point has.
    fn blocks(&self, point: usize) -> u64 {
        let at = point - self.first;
        self.before.get(at + 1).map_or(0, |end| end - self.before[at])
    }

    /// A block by its number, with the sets in it; `None` behind the last one.
    fn block(&self, number: u64) -> Option<(SetBlock, Range<u64>)> {
        let at = self.before.partition_point(|before| *before <= number) - 1;
        let sets = self.sets.get(at)?;
        let first = sets.start + (number - self.before[at]) * BLOCK;
        Some((SetBlock { point: self.first + at, first }, first..(first + BLOCK).min(sets.end)))
    }
}

/// Judges the sets of `work` and hands the points over in their order. `look` is asked now and
/// then, with the number of sets done so far, whether to go on.
///
/// # Errors
/// A set that cannot be drawn, or what `finished` says.
pub(super) fn run_points(
    experiment: &Experiment,
    work: WorkQueue,
    threads: usize,
    mut look: impl FnMut(u64) -> ControlFlow<()>,
    mut finished: impl FnMut(PointResults) -> Result<(), SweepError>,
) -> Result<(), SweepError> {
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let (send, receive) = mpsc::channel();
    thread::scope(|scope| {
        for number in 0..threads.max(1) {
            let send = send.clone();
            let (work, next, stop) = (&work, &next, &stop);
            let started = thread::Builder::new()
                .spawn_scoped(scope, move || take_blocks(experiment, work, next, stop, &send));
            match started {
                Ok(_) => {}
                // Fewer threads give the same result.
                Err(_) if number > 0 => break,
                Err(error) => return Err(SweepError::NoThread(error.to_string())),
            }
        }
        drop(send);
        let mut open: BTreeMap<SetBlock, Vec<SetOutcome>> = BTreeMap::new();
        let (mut point, mut done) = (work.first, 0);
        let result = loop {
            if look(done).is_break() {
                break Ok(());
            }
            let report = match receive.recv_timeout(LOOK) {
                Ok(report) => report,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => break Ok(()),
            };
            let answers = match report.answers {
                Ok(answers) => answers,
                Err(error) => break Err(error),
            };
            done += answers.len() as u64;
            open.insert(report.place, answers);
            let handed = hand_over(&mut open, &mut point, &work, &mut finished);
            if handed.is_err() {
                break handed;
            }
        };
        look(done).is_break();
        stop.store(true, Ordering::Relaxed);
        result
    })
}

/// Hands over every point that is complete and whose turn it is.
fn hand_over(
    open: &mut BTreeMap<SetBlock, Vec<SetOutcome>>,
    point: &mut usize,
    work: &WorkQueue,
    finished: &mut impl FnMut(PointResults) -> Result<(), SweepError>,
) -> Result<(), SweepError> {
    while !open.is_empty()
        && open.keys().take_while(|place| place.point == *point).count() as u64
            == work.blocks(*point)
    {
        let later = open.split_off(&SetBlock { point: *point + 1, first: 0 });
        let sets = std::mem::replace(open, later).into_values().flatten().collect();
        finished(PointResults { number: *point, sets })?;
        *point += 1;
    }
    Ok(())
}

/// Takes block after block until none remains, or `stop` is set.
fn take_blocks(
    experiment: &Experiment,
    work: &WorkQueue,
    next: &AtomicU64,
    stop: &AtomicBool,
    send: &Sender<WorkerReport>,
) {
    while !stop.load(Ordering::Relaxed) {
        let Some((place, sets)) = work.block(next.fetch_add(1, Ordering::Relaxed)) else { return };
        let Some(answers) = judge_block(experiment, place.point, sets, stop) else { return };
        // The receiver has ended, so no more answers are needed.
        if send.send(WorkerReport { place, answers }).is_err() {
            return;
        }
    }
}

/// The answers about a block; `None` if it was stopped before it was done.
fn judge_block(
    experiment: &Experiment,
    point: usize,
    block: Range<u64>,
    stop: &AtomicBool,
) -> Option<Result<Vec<SetOutcome>, SweepError>> {
    let utilisation = experiment.utilisations[point];
    let sets = match experiment.at(utilisation) {
        Ok(sets) => sets,
        Err(error) => return Some(Err(error)),
    };
    let mut answers = Vec::with_capacity((block.end - block.start) as usize);
    for set in block {
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        let (tasks, redrawn) = match experiment.tasks(&sets, utilisation, set) {
            Ok(found) => found,
            Err(error) => return Some(Err(error)),
        };
        let processors = experiment.processors as usize;
        let ask = |tasks: Vec<Task>| {
            experiment.analyses.iter().map(|a| a.answer(&tasks, processors)).collect()
        };
        answers.push(SetOutcome { answers: tasks.map(ask), redrawn });
    }
    Some(Ok(answers))
}
