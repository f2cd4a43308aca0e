//! The runs of which Figures 7 to 12 are made, each made once.
//!
//! Owns: what is run how long, the turns, what was found. Must not: say what it means.

use std::cell::OnceCell;
use std::ops::Range;

use super::super::bench::{Bench, Effort};
use super::contention::CoRunner;
use super::jobs::{FRAMES, Jobs, QUICK, product, video};
use super::outcome::Outcome;
use super::rig::Rig;
use super::simulated::simulate;
use super::trial;
use super::ways::Way;

/// A real-time process and what runs beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// Products, section 5.2.
    Product(CoRunner),
    /// An encoder beside nothing, section 5.3.
    VideoAlone,
    /// An encoder beside a compilation.
    Video,
}

/// The ways in which others are treated, in the order of the turns.
pub(super) const WAYS: [Way; 5] =
    [Way::Ignore, Way::Disable, Way::Word, Way::Instructions, Way::CpuTime];

impl Subject {
    fn beside(self) -> Option<CoRunner> {
        match self {
            Subject::Product(kind) => Some(kind),
            Subject::VideoAlone => None,
            Subject::Video => Some(CoRunner::Compile),
        }
    }

    fn ways(self) -> &'static [Way] {
        match self {
            Subject::VideoAlone => &WAYS[..1],
            _ => &WAYS,
        }
    }

    fn place(self) -> usize {
        match self {
            Subject::Product(CoRunner::Integer) => 0,
            Subject::Product(CoRunner::Float) => 1,
            Subject::Product(CoRunner::Compile) => 2,
            Subject::VideoAlone => 3,
            Subject::Video => 4,
        }
    }

    /// The jobs of a whole run, and how many of them make a turn.
    pub(super) fn jobs(self, effort: Effort) -> (Jobs, usize) {
        match (self, effort) {
            (Subject::Product(_), Effort::Quick) => (product(20), 10),
            (Subject::Product(_), Effort::Full) => (product(150), 30),
            // Whole groups of frames.
            (_, Effort::Quick) => (video(FRAMES).part(QUICK), 36),
            (_, Effort::Full) => (video(FRAMES), 300),
        }
    }
}

/// What came of a subject, by way.
#[derive(Debug)]
pub(super) struct Runs {
    /// On this machine, or why not.
    pub(super) here: Vec<(Way, Result<Outcome, String>)>,
    /// Simulated; ways that the simulator does not have are left out.
    pub(super) simulated: Vec<(Way, Result<Outcome, String>)>,
}

impl Runs {
    /// A way's outcome on this machine, or why there is none.
    pub(super) fn here(&self, way: Way) -> Option<&Result<Outcome, String>> {
        self.here.iter().find(|(own, _)| *own == way).map(|(_, found)| found)
    }

    /// A way's outcome in the simulator.
    pub(super) fn simulated(&self, way: Way) -> Option<&Outcome> {
        let found = self.simulated.iter().find(|(own, _)| *own == way);
        found.and_then(|(_, found)| found.as_ref().ok())
    }
}

/// What several tables are made of, measured once.
#[derive(Debug, Default)]
pub(in super::super) struct Kept {
    rig: OnceCell<Result<Rig, String>>,
    runs: [OnceCell<Option<Runs>>; 5],
}

/// The machine, or why nothing can be run on it.
pub(super) fn rig(bench: &Bench) -> &Result<Rig, String> {
    bench.smt.rig.get_or_init(Rig::here)
}

/// The runs of a subject; `None` if a signal asked to stop.
pub(super) fn runs(bench: &Bench, subject: Subject) -> Option<&Runs> {
    let kept = bench.smt.runs.get(subject.place())?;
    kept.get_or_init(|| run(rig(bench), subject, bench.effort, bench.stopped)).as_ref()
}

/// All ways in turns, so that they meet the same machine.
fn run(
    rig: &Result<Rig, String>,
    subject: Subject,
    effort: Effort,
    stopped: fn() -> bool,
) -> Option<Runs> {
    let (jobs, turn) = subject.jobs(effort);
    let mut here: Vec<(Way, Result<Outcome, String>)> = subject
        .ways()
        .iter()
        .map(|way| (*way, possible(rig, *way).map(|()| Outcome::default())))
        .collect();
    for begin in (0..jobs.jobs.len()).step_by(turn) {
        let part = jobs.part(begin..(begin + turn).min(jobs.jobs.len()));
        for (way, found) in &mut here {
            let (Ok(so_far), Ok(rig)) = (found.as_mut(), rig.as_ref()) else { continue };
            match trial::run(rig, &part, subject.beside(), *way, stopped) {
                Ok(more) => so_far.append(more?),
                Err(why) => *found = Err(why),
            }
        }
    }
    Some(Runs { here, simulated: all_simulated(&jobs, subject) })
}

fn all_simulated(jobs: &Jobs, subject: Subject) -> Vec<(Way, Result<Outcome, String>)> {
    let work = jobs.simulated();
    let simulated = |way: &Way| {
        let method = way.simulated()?;
        Some((*way, simulate(&work, subject.beside(), method)))
    };
    subject.ways().iter().filter_map(simulated).collect()
}

/// Whether a way can be run here.
fn possible(rig: &Result<Rig, String>, way: Way) -> Result<(), String> {
    rig.as_ref().map_err(Clone::clone)?;
    if way == Way::Instructions { trial::instructions() } else { Ok(()) }
}

impl Jobs {
    /// Some of the jobs.
    fn part(&self, range: Range<usize>) -> Jobs {
        Jobs { jobs: self.jobs.get(range).unwrap_or_default().to_vec(), ..*self }
    }
}
