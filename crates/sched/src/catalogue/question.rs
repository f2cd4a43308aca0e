//! What an analysis is asked: a set with the rules by which it runs.
//!
//! Owns: [`Question`], [`Bounds`], and the answers of the analyses of one processor, each with its proof
//! verified. Must not: bound anything itself.

use crate::bursts::{self, Bursty};
use crate::checker;
use crate::edf;
use crate::fixed_priority;
use crate::offsets::{self, Phased};
use crate::sections::{Sections, TimeModel};
use crate::supply::{self, Supply};
use crate::task::TaskSet;
use crate::thresholds::{self, Thresholds};
use crate::verdict::{Analysis, Verdict};

use super::{ALL, Entry};

/// Sections delay by their whole length, which is never quite reached.
const TIME: TimeModel = TimeModel::Continuous;

/// Who runs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The highest priority; equals first come, first served.
    FixedPriority,
    /// The earliest deadline.
    Edf,
    /// Who came first.
    Fifo,
}

/// What an analysis has to know besides the set, by position in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Situation {
    /// Nothing.
    Alone,
    /// From the first to the 2nd, 3rd, ... arrival of a burst; empty without bursts.
    Bursts(Vec<Vec<u64>>),
    /// Only priorities above this preempt a job that has begun.
    Thresholds(Vec<u32>),
    /// Every task's first job arrives at its offset, every other exactly a period after the one before,
    /// and none is released later.
    Phases(Vec<Option<u64>>),
    /// What a server gives.
    Supply(Supply),
    /// So many processors share all of the tasks.
    Shared(u64),
}

/// A set and the rules by which it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The tasks.
    pub set: TaskSet,
    /// Who runs next.
    pub rule: Rule,
    /// Where jobs may be preempted.
    pub sections: Sections,
    /// What else is known.
    pub situation: Situation,
}

/// The answer of an analysis of response times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The bounds with their points.
    pub analysis: Analysis,
    /// Whether the proof holds.
    pub is_proven: bool,
    /// Whether a suspension is time in which others run, and not execution.
    pub suspended: bool,
}

impl Question {
    /// The analysis that fits: the first of the catalogue that says so.
    #[must_use]
    pub fn analysis(&self) -> Option<&'static Entry> {
        ALL.iter().find(|entry| entry.fits(self))
    }

    /// Whether any task suspends itself.
    #[must_use]
    pub fn suspends(&self) -> bool {
        self.set.tasks().iter().any(|task| task.suspension() > 0)
    }

    /// One processor, nothing more to know.
    pub(super) fn is(&self, rule: Rule, sections: Sections) -> bool {
        let plain = match &self.situation {
            Situation::Alone => true,
            // Under EDF, curves join the demand only.
            Situation::Bursts(_) => rule == Rule::Edf,
            _ => false,
        };
        plain && self.rule == rule && self.sections == sections
    }
}

fn bounds(analysis: Analysis, is_proven: bool) -> Bounds {
    Bounds { analysis, is_proven, suspended: false }
}

pub(super) fn fixed_priority(of: &Question) -> Result<Bounds, String> {
    let found = fixed_priority::analyse(&of.set, of.sections, TIME);
    let proven = checker::fixed_priority(&of.set, of.sections, TIME, &found).is_ok();
    Ok(bounds(found, proven))
}

/// Under EDF. Where tasks suspend themselves and counting that as execution is too much, the analysis
/// that leaves the processor to others meanwhile may do.
pub(super) fn edf(of: &Question) -> Result<Bounds, String> {
    let (set, sections) = (&of.set, of.sections);
    let analysis = edf::response_times(set, sections, TIME);
    let feasible = analysis.verdict() == Verdict::Feasible;
    if of.suspends() && sections == Sections::Preemptive && !feasible {
        let better = edf::suspension::response_times(set);
        if better.verdict() == Verdict::Feasible {
            let is_proven = checker::edf_suspension(set, &better).is_ok();
            return Ok(Bounds { analysis: better, is_proven, suspended: true });
        }
    }
    let proven = checker::edf(set, sections, TIME, &analysis).is_ok();
    Ok(bounds(analysis, proven))
}

pub(super) fn thresholds(of: &Question) -> Result<Bounds, String> {
    let Situation::Thresholds(ranks) = &of.situation else { return fixed_priority(of) };
    let made = Thresholds::new(of.set.clone(), ranks.clone()).map_err(|why| why.to_string())?;
    let found = thresholds::analyse(&made, TIME);
    let proven = checker::thresholds(&made, TIME, &found).is_ok();
    Ok(bounds(found.analysis, proven))
}

pub(super) fn bursts(of: &Question) -> Result<Bounds, String> {
    let Situation::Bursts(curves) = &of.situation else { return fixed_priority(of) };
    let bursty = Bursty::new(of.set.clone(), curves).map_err(|why| why.to_string())?;
    let found = bursts::fixed_priority(&bursty, of.sections, TIME);
    let proven = checker::bursts(&bursty, of.sections, TIME, &found).is_ok();
    Ok(bounds(found, proven))
}

/// Where all phases are known. Where the search among the windows is given up, a task has its bound for
/// any phases.
pub(super) fn phases(of: &Question) -> Result<Bounds, String> {
    let Situation::Phases(phases) = &of.situation else { return fixed_priority(of) };
    let phased = Phased::new(of.set.clone(), phases);
    let found = offsets::fixed_priority(&phased);
    let (sections, discrete) = (Sections::Preemptive, TimeModel::Discrete);
    let any = fixed_priority::analyse(&of.set, sections, discrete);
    let same = |at: usize| {
        found.uses_phases(at) || found.analysis.tasks[at].outcome == any.tasks[at].outcome
    };
    let proven = checker::phases(&phased, &found).is_ok()
        && checker::fixed_priority(&of.set, sections, discrete, &any).is_ok()
        && (0..of.set.len()).all(same);
    Ok(bounds(found.analysis, proven))
}

pub(super) fn supply(of: &Question) -> Result<Bounds, String> {
    let Situation::Supply(budget) = &of.situation else { return fixed_priority(of) };
    let found = supply::fixed_priority(&of.set, budget);
    let proven = supply::holds(&of.set, budget, &found);
    Ok(bounds(found, proven))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Task;

    /// What can be asked has an analysis, which `check` may be asked for by name; curves, thresholds and
    /// phases under a rule whose analysis would pass over them have none.
    #[test]
    fn questions_have_the_analysis_that_knows_them() {
        let set = TaskSet::in_order(vec![Task::new(1, 4, 4).unwrap(), Task::new(2, 9, 9).unwrap()]);
        let supply = Supply::periodic(4, 3).unwrap();
        let situations = [
            Situation::Alone,
            Situation::Bursts(vec![vec![1], Vec::new()]),
            Situation::Thresholds(vec![u32::MAX; 2]),
            Situation::Phases(vec![Some(0), Some(1)]),
            Situation::Supply(supply),
            Situation::Shared(2),
        ];
        let sections =
            [Sections::Preemptive, Sections::NonPreemptive, Sections::Limited, Sections::Floating];
        for rule in [Rule::FixedPriority, Rule::Edf, Rule::Fifo] {
            for situation in &situations {
                for sections in sections {
                    let (set, situation) = (set.clone(), situation.clone());
                    let unknown = match situation {
                        Situation::Bursts(_) => rule == Rule::Fifo,
                        Situation::Thresholds(_) | Situation::Phases(_) => {
                            rule != Rule::FixedPriority
                        }
                        _ => false,
                    };
                    let question = Question { set, rule, sections, situation };
                    let Some(fitting) = question.analysis() else {
                        assert!(unknown, "{question:?}");
                        continue;
                    };
                    assert!(fitting.is_checked && !unknown, "{question:?}");
                    if let Some(found) = fitting.bounds(&question) {
                        assert!(found.unwrap().is_proven, "{question:?}");
                    }
                }
            }
        }
    }
}
