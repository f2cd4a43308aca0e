//! Rounds: two ways of running, in turn and in one sitting.
//!
//! Owns: the order, the folders, what becomes of a round that a signal cuts short. Must not: judge.

use std::path::PathBuf;

use hourglass_documents::diff::DiffDocument;
use hourglass_documents::document::Warning;
use hourglass_documents::random::Stream;
use hourglass_runs::store::WriteError;
use hourglass_runs::store::rounds::NewRounds;
use hourglass_sys::signal;
use hourglass_time::Span;
use hourglass_workload::spec::RunSpec;

use hourglass_runs::compare::{
    ComparedRun, ComparisonPower, Pairing, Rules, document_of, premise_broken,
};

use super::control;
use super::measured_quantities::quantities;
use crate::experiment::{self, ExperimentObserver, Finished, RunFailure, RunOptions};
use crate::gates::Gates;

/// Rounds, unless another number is asked for: they can decide every metric that a run has.
pub const DEFAULT_ROUNDS: u32 = 10;
pub const MOST_ROUNDS: u32 = 1_000;

/// How long a way of running is tried before the first round, so that what the machine refuses is refused
/// at once.
const TRIAL: Span = Span::from_millis(20);

/// The first way to run, the second, or a run of one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    A,
    /// What is compared with it.
    B,
}

impl Side {
    pub fn letter(self) -> char {
        match self {
            Side::A => 'a',
            Side::B => 'b',
        }
    }
}

#[derive(Clone, Debug)]
pub struct RunVariant {
    pub spec: RunSpec,
    pub command_line: Vec<String>,
    /// Holds `/dev/cpu_dma_latency` at this value, in microseconds.
    pub dma_latency_us: Option<u32>,
    pub gates: Gates,
}

#[derive(Clone, Debug)]
pub struct RoundsRequest {
    pub a: RunVariant,
    /// What is compared with it.
    pub b: RunVariant,
    /// How often each is run, from 1 to [`MOST_ROUNDS`].
    pub rounds: u32,
    /// Keep the runs in this folder, which must not exist.
    pub folder: Option<PathBuf>,
    /// By what is judged; its seed also draws the order.
    pub rules: Rules,
    /// Whether the base is an idle control: then the document says what the platform takes.
    pub a_is_control: bool,
}

impl RoundsRequest {
    /// How long all runs take together, without what lies between them.
    pub fn duration(&self) -> Span {
        let one =
            |way: &RunVariant| way.spec.duration.nanos().saturating_add(way.spec.warm_up.nanos());
        let both = one(&self.a).saturating_add(one(&self.b));
        Span::from_nanos(both.saturating_mul(i64::from(self.rounds)))
    }

    /// What this number of rounds can decide, in a few words: `can decide every metric`.
    pub fn can_decide(&self) -> String {
        self.plan().words(u64::from(self.rounds))
    }

    fn plan(&self) -> ComparisonPower {
        ComparisonPower::of(&quantities(&self.a.spec), &quantities(&self.b.spec))
    }
}

pub trait RoundsWatch: ExperimentObserver {
    /// Nothing stands in the way; the first run is about to begin.
    fn planned(&mut self, request: &RoundsRequest);
    /// A run begins; rounds count from 1.
    fn run_of(&mut self, round: u32, rounds: u32, side: Side);
}

#[derive(Debug)]
pub struct ComparisonResult {
    pub document: DiffDocument,
    pub folder: Option<PathBuf>,
    pub not_kept: Option<WriteError>,
    /// Errors after a run's folder was whole.
    pub doubts: Vec<WriteError>,
    pub signal: Option<i32>,
}

/// Runs both ways in turn. In which order is drawn for every second round; the round after it has
/// the other order, so that neither way is always the first. Both runs of a round draw the same random
/// execution times.
///
/// # Errors
/// See [`RunFailure`]: the machine refuses one of the ways, or the folder cannot be made. What fails
/// later than in the first round leaves the rounds before it in the folder.
pub fn rounds(
    request: RoundsRequest,
    watch: &mut dyn RoundsWatch,
) -> Result<ComparisonResult, RunFailure> {
    // Without the handlers a signal ends the process, as it does anywhere else.
    let _ = signal::catch_stop();
    for way in [&request.a, &request.b] {
        way.spec.check()?;
        way.gates.check(&way.spec)?;
    }
    let order = order(request.rounds, request.rules.seed);
    // The first run of the other way comes late; it is tried before the first.
    let other = if order.first() == Some(&Side::A) { &request.b } else { &request.a };
    let folder = request.folder.clone().map(NewRounds::create).transpose()?;
    let gone_through = try_out(other).and_then(|()| {
        watch.planned(&request);
        if let Some(few) = request.plan().warning(u64::from(request.rounds)) {
            watch.warn(&[few]);
        }
        go_through(&request, &order, folder.as_ref(), watch)
    });
    if let (Err(_), Some(folder)) = (&gone_through, &folder) {
        folder.remove_empty();
    }
    let FinishedRounds { a, b, mut not_kept, mut doubts, signal, limit } = gone_through?;
    let pairing = if request.a_is_control { Pairing::NeverWaiting } else { Pairing::Same };
    let mut compared = document_of(a, b, &request.rules, 0, pairing);
    compared.interrupted = signal.is_some();
    if compared.interrupted {
        compared.warnings.push(Warning {
            id: "interrupted".to_owned(),
            text: format!(
                "ended early by a signal after {} of {} rounds",
                compared.rounds, request.rounds
            ),
            remedy: String::new(),
        });
    }
    // Its signal is an interruption of the rounds, and a premise of them.
    let signal = signal.filter(|_| limit.is_none());
    compared.warnings.extend(limit);
    if request.a_is_control {
        compared.control = Some(control::of_rounds(&request.a.spec, &compared));
    }
    if let (Some(folder), None) = (&folder, &not_kept) {
        match folder.write(&compared) {
            Err(error) if error.whole().is_some() => doubts.push(error),
            written => not_kept = written.err(),
        }
    }
    Ok(ComparisonResult {
        document: compared,
        folder: folder.map(|folder| folder.path().to_path_buf()),
        not_kept,
        doubts,
        signal,
    })
}

#[derive(Default)]
struct FinishedRounds {
    a: Vec<ComparedRun>,
    b: Vec<ComparedRun>,
    not_kept: Option<WriteError>,
    doubts: Vec<WriteError>,
    signal: Option<i32>,
    /// A limit on time ended a run.
    limit: Option<Warning>,
}

fn go_through(
    request: &RoundsRequest,
    order: &[Side],
    folder: Option<&NewRounds>,
    watch: &mut dyn RoundsWatch,
) -> Result<FinishedRounds, RunFailure> {
    let mut gone = FinishedRounds::default();
    for (round, first) in (1..).zip(order) {
        let sides = match first {
            Side::A => [Side::A, Side::B],
            Side::B => [Side::B, Side::A],
        };
        let mut of_round = Vec::new();
        for side in sides {
            gone.signal = signal::stop_asked();
            if gone.signal.is_some() {
                break;
            }
            watch.run_of(round, request.rounds, side);
            let mut finished = one_run(request, round, side, folder, watch)?;
            gone.signal = finished.measured.interrupted;
            let premises = &finished.document.result.premises;
            if let Some(limit) = premises.iter().find(|premise| premise.is_time_limit()) {
                gone.limit = Some(premise_broken(round.into(), side.letter(), limit));
            }
            match finished.folder.take_if(|kept| kept.is_err()) {
                Some(Err(error)) if error.whole().is_some() => {
                    finished.folder = error.whole().map(|path| Ok(path.to_path_buf()));
                    gone.doubts.push(error);
                }
                Some(Err(error)) => {
                    gone.not_kept = Some(error);
                    return Ok(gone);
                }
                _ => {}
            }
            of_round.push((side, compared(&finished)));
        }
        if gone.signal.is_some() && !(of_round.len() == sides.len() && is_whole(&of_round)) {
            gone.not_kept = folder.and_then(|folder| folder.set_aside(round).err());
            break;
        }
        for (side, run) in of_round {
            match side {
                Side::A => gone.a.push(run),
                Side::B => gone.b.push(run),
            }
        }
        if gone.signal.is_some() {
            break;
        }
    }
    Ok(gone)
}

fn compared(finished: &Finished) -> ComparedRun {
    let kept = finished.folder.as_ref().and_then(|kept| kept.as_ref().ok()).cloned();
    let latencies = |thread| finished.latencies_ps(thread);
    ComparedRun::finished(&finished.document, kept, finished.intervals(), latencies)
}

fn is_whole(of_round: &[(Side, ComparedRun)]) -> bool {
    of_round.iter().all(|(_, run)| !run.interrupted)
}

fn one_run(
    request: &RoundsRequest,
    round: u32,
    side: Side,
    folder: Option<&NewRounds>,
    watch: &mut dyn RoundsWatch,
) -> Result<Finished, RunFailure> {
    let way = match side {
        Side::A => &request.a,
        Side::B => &request.b,
    };
    let mut spec = way.spec.clone();
    spec.seed = spec.seed.wrapping_add(u64::from(round - 1));
    let request = RunOptions {
        command_line: way.command_line.clone(),
        dma_latency_us: way.dma_latency_us,
        folder: folder.map(|folder| folder.place(side.letter(), round)),
        gates: way.gates.clone(),
        ..RunOptions::new(spec)
    };
    experiment::run(request, watch)
}

fn order(rounds: u32, seed: u64) -> Vec<Side> {
    let mut random = Stream::from_seeds(&[seed, u64::from(rounds)]);
    let mut order = Vec::new();
    while order.len() < rounds as usize {
        order.extend(match random.below(2) {
            0 => [Side::A, Side::B],
            _ => [Side::B, Side::A],
        });
    }
    order.truncate(rounds as usize);
    order
}

/// Runs a way for a moment, for what the machine refuses.
fn try_out(way: &RunVariant) -> Result<(), RunFailure> {
    let mut spec = way.spec.clone();
    let latest = spec.threads.iter().map(|thread| thread.start.nanos()).max().unwrap_or(0);
    if latest > TRIAL.nanos() {
        // Waiting for its last thread would take as long as a run.
        return Ok(());
    }
    spec.duration = Span::from_nanos(latest.saturating_add(TRIAL.nanos())).min(spec.duration);
    spec.warm_up = Span::ZERO;
    if spec.check().is_err() {
        return Ok(());
    }
    let request = RunOptions { dma_latency_us: way.dma_latency_us, ..RunOptions::new(spec) };
    experiment::run(request, &mut ()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each way is the first in half of the rounds, and the seed decides in which.
    #[test]
    fn neither_way_is_always_the_first() {
        for seed in 0..50 {
            let order = order(10, seed);
            assert_eq!(order.iter().filter(|side| **side == Side::A).count(), 5, "seed {seed}");
            assert!(order.chunks(2).all(|pair| pair[0] != pair[1]), "seed {seed}");
        }
        assert_eq!(order(7, 3), order(7, 3));
        assert_ne!(order(20, 3), order(20, 4));
        assert_eq!(order(7, 3).len(), 7);
        assert!(order(0, 3).is_empty());
    }
}
