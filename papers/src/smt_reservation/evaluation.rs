//! The runs of which Figures 7 to 12 are made, each made once.
//!
//! Owns: what is run how long, the turns, what was found. Must not: say what it means.

use std::cell::OnceCell;
use std::ops::Range;

use super::super::bench::{MeasurementHost, MeasurementSize};
use super::contention::CoRunner;
use super::jobs::{FRAMES, ProcessJobs, QUICK, product, video};
use super::outcome::ProcessOutcome;
use super::simulated::simulate;
use super::smt_methods::SmtMethod;
use super::test_host::SmtTestHost;
use super::trial;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scenario {
    /// Products, section 5.2.
    Product(CoRunner),
    /// An encoder beside nothing, section 5.3.
    VideoAlone,
    /// An encoder beside a compilation.
    Video,
}

pub(super) const WAYS: [SmtMethod; 5] = [
    SmtMethod::Ignore,
    SmtMethod::Disable,
    SmtMethod::Word,
    SmtMethod::Instructions,
    SmtMethod::CpuTime,
];

impl Scenario {
    fn beside(self) -> Option<CoRunner> {
        match self {
            Scenario::Product(kind) => Some(kind),
            Scenario::VideoAlone => None,
            Scenario::Video => Some(CoRunner::Compile),
        }
    }

    fn ways(self) -> &'static [SmtMethod] {
        match self {
            Scenario::VideoAlone => &WAYS[..1],
            _ => &WAYS,
        }
    }

    fn place(self) -> usize {
        match self {
            Scenario::Product(CoRunner::Integer) => 0,
            Scenario::Product(CoRunner::Float) => 1,
            Scenario::Product(CoRunner::Compile) => 2,
            Scenario::VideoAlone => 3,
            Scenario::Video => 4,
        }
    }

    /// The jobs of a whole run, and how many of them make a turn.
    pub(super) fn jobs(self, effort: MeasurementSize) -> (ProcessJobs, usize) {
        match (self, effort) {
            (Scenario::Product(_), MeasurementSize::Quick) => (product(20), 10),
            (Scenario::Product(_), MeasurementSize::Full) => (product(150), 30),
            // Whole groups of frames.
            (_, MeasurementSize::Quick) => (video(FRAMES).part(QUICK), 36),
            (_, MeasurementSize::Full) => (video(FRAMES), 300),
        }
    }
}

#[derive(Debug)]
pub(super) struct SubjectRuns {
    pub(super) here: Vec<(SmtMethod, Result<ProcessOutcome, String>)>,
    /// Simulated; ways that the simulator does not have are left out.
    pub(super) simulated: Vec<(SmtMethod, Result<ProcessOutcome, String>)>,
}

impl SubjectRuns {
    pub(super) fn here(&self, way: SmtMethod) -> Option<&Result<ProcessOutcome, String>> {
        self.here.iter().find(|(own, _)| *own == way).map(|(_, found)| found)
    }

    pub(super) fn simulated(&self, way: SmtMethod) -> Option<&ProcessOutcome> {
        let found = self.simulated.iter().find(|(own, _)| *own == way);
        found.and_then(|(_, found)| found.as_ref().ok())
    }
}

#[derive(Debug, Default)]
struct CachedRuns {
    rig: OnceCell<Result<SmtTestHost, String>>,
    runs: [OnceCell<Option<SubjectRuns>>; 5],
}

pub(super) fn rig(bench: &MeasurementHost) -> &Result<SmtTestHost, String> {
    bench.shared.get::<CachedRuns>().rig.get_or_init(SmtTestHost::for_this_machine)
}

pub(super) fn runs(bench: &MeasurementHost, subject: Scenario) -> Option<&SubjectRuns> {
    let kept = bench.shared.get::<CachedRuns>().runs.get(subject.place())?;
    kept.get_or_init(|| run(rig(bench), subject, bench.effort, bench.stopped)).as_ref()
}

/// All ways in turns, so that they meet the same machine.
fn run(
    rig: &Result<SmtTestHost, String>,
    subject: Scenario,
    effort: MeasurementSize,
    stopped: fn() -> bool,
) -> Option<SubjectRuns> {
    let (jobs, turn) = subject.jobs(effort);
    let mut here: Vec<(SmtMethod, Result<ProcessOutcome, String>)> = subject
        .ways()
        .iter()
        .map(|way| (*way, possible(rig, *way).map(|()| ProcessOutcome::default())))
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
    Some(SubjectRuns { here, simulated: all_simulated(&jobs, subject) })
}

fn all_simulated(
    jobs: &ProcessJobs,
    subject: Scenario,
) -> Vec<(SmtMethod, Result<ProcessOutcome, String>)> {
    let simulated =
        |way: &SmtMethod| Some((*way, simulate(jobs, subject.beside(), way.simulated()?)));
    subject.ways().iter().filter_map(simulated).collect()
}

fn possible(rig: &Result<SmtTestHost, String>, way: SmtMethod) -> Result<(), String> {
    rig.as_ref().map_err(Clone::clone)?;
    if way == SmtMethod::Instructions { trial::instructions() } else { Ok(()) }
}

impl ProcessJobs {
    fn part(&self, range: Range<usize>) -> ProcessJobs {
        ProcessJobs { jobs: self.jobs.get(range).unwrap_or_default().to_vec(), ..*self }
    }
}
