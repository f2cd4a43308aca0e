//! What an analysis is asked: a set with the rules by which it runs.
//!
//! Owns: [`Question`], [`Bounds`], and the answers of the analyses of one processor, each with its proof
//! verified. Must not: bound anything itself.

use crate::global::{self, fixed_priority::OpaTest};
use crate::sections::{Sections, TimeModel};
use crate::servers::Server;
use crate::task::{TaskFeature, TaskSet};
use crate::thresholds;
use crate::verdict::{Analysis, Refusal, Verdict};
use crate::{assign, bursts, checker, edf, fixed_priority, offsets};

use super::{ALL, AnalysisEntry};

/// Sections delay by their whole length, which is never quite reached.
const TIME: TimeModel = TimeModel::Continuous;

/// The rule by which the next job is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The highest priority; equals first come, first served.
    FixedPriority,
    /// The earliest deadline.
    Edf,
    /// The job that came first.
    Fifo,
}

/// What the tasks share; an analysis needs it besides the set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Situation {
    /// Nothing: the set has a processor of its own.
    Alone,
    /// The budget of a server.
    Inside(Server),
    /// This number of processors shares all of the tasks.
    Shared(u64),
}

/// A set and the rules by which it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The tasks.
    pub set: TaskSet,
    /// The rule by which the next job is chosen.
    pub rule: Rule,
    /// The points at which jobs may be preempted.
    pub sections: Sections,
    /// What the tasks share.
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
    /// Whether a theorem gives them, whose conditions were checked: there are no points.
    pub by_conditions: bool,
}

impl Question {
    /// The first analysis of the catalogue that answers the question.
    #[must_use]
    pub fn analysis(&self) -> Option<&'static AnalysisEntry> {
        ALL.iter().find(|entry| entry.fits(self))
    }

    /// Whether the first analysis that fits has this name.
    pub(super) fn is_answered_by(&self, name: &str) -> bool {
        self.analysis().is_some_and(|entry| entry.name == name)
    }

    /// Whether deadlines hold, without bounds of responses and their proof.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let verdict = self.analysis().and_then(|entry| entry.verdict);
        verdict.map_or(Verdict::Unknown(Refusal::OutsideModel), |verdict| verdict(self))
    }

    /// The set with priorities by which all deadlines hold; `None` if none are found.
    #[must_use]
    pub fn priorities(&self) -> Option<TaskSet> {
        self.analysis().and_then(|entry| entry.priorities)?(self)
    }

    /// Whether any task suspends itself.
    #[must_use]
    pub fn suspends(&self) -> bool {
        self.set.tasks().iter().any(|task| task.suspension() > 0)
    }

    /// Whether any task arrives in bursts.
    #[must_use]
    pub fn has_bursts(&self) -> bool {
        self.set.tasks().iter().any(|task| task.curve().is_some())
    }

    /// Whether any task has a preemption threshold.
    #[must_use]
    pub fn has_thresholds(&self) -> bool {
        self.set.tasks().iter().any(|task| task.threshold().is_some())
    }

    /// Whether the phase of any task is known.
    #[must_use]
    pub fn has_phases(&self) -> bool {
        self.set.tasks().iter().any(|task| task.phase().is_some())
    }

    /// One processor, nothing more to know.
    pub(super) fn is(&self, rule: Rule, sections: Sections) -> bool {
        // Under EDF, bursts join the demand only.
        let plain = self.set.is_plain()
            || (rule == Rule::Edf && self.set.is_plain_but(TaskFeature::Bursts));
        plain && self.is_alone(rule) && self.sections == sections
    }

    pub(super) fn is_alone(&self, rule: Rule) -> bool {
        self.situation == Situation::Alone && self.rule == rule
    }
}

fn bounds(analysis: Analysis, is_proven: bool) -> Bounds {
    Bounds { analysis, is_proven, suspended: false, by_conditions: false }
}

pub(super) fn fixed_priority(of: &Question) -> Result<Bounds, String> {
    let found = fixed_priority::analyse(&of.set, of.sections, TIME);
    let proven = checker::fixed_priority(&of.set, of.sections, TIME, &found).is_ok();
    Ok(bounds(found, proven))
}

pub(super) fn fixed_priority_verdict(of: &Question) -> Verdict {
    fixed_priority::analyse(&of.set, of.sections, TIME).verdict()
}

pub(super) fn priorities(of: &Question) -> Option<TaskSet> {
    assign::audsley(of.set.tasks(), of.sections, TIME)
}

pub(super) fn global_priorities(of: &Question) -> Option<TaskSet> {
    let Situation::Shared(processors) = of.situation else { return None };
    global::assign::audsley(of.set.tasks(), processors, OpaTest::LimitedCarryIn)
}

pub(super) fn edf_verdict(of: &Question) -> Verdict {
    edf::qpa::feasible(&of.set, of.sections, TIME).verdict
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
            return Ok(Bounds { suspended: true, ..bounds(better, is_proven) });
        }
    }
    let proven = checker::edf(set, sections, TIME, &analysis).is_ok();
    Ok(bounds(analysis, proven))
}

pub(super) fn thresholds(of: &Question) -> Result<Bounds, String> {
    let found = thresholds::analyse(&of.set, TIME);
    let proven = checker::thresholds(&of.set, TIME, &found).is_ok();
    Ok(bounds(found.analysis, proven))
}

pub(super) fn bursts(of: &Question) -> Result<Bounds, String> {
    let found = bursts::fixed_priority(&of.set, of.sections, TIME);
    let proven = checker::bursts(&of.set, of.sections, TIME, &found).is_ok();
    Ok(bounds(found, proven))
}

/// Where all phases are known. Where the search among the windows is given up, a task has its bound for
/// any phases.
pub(super) fn phases(of: &Question) -> Result<Bounds, String> {
    let found = offsets::fixed_priority(&of.set);
    let (sections, discrete) = (Sections::Preemptive, TimeModel::Discrete);
    let plain = of.set.plain();
    let any = fixed_priority::analyse(&plain, sections, discrete);
    let same = |at: usize| {
        found.uses_phases(at) || found.analysis.tasks[at].outcome == any.tasks[at].outcome
    };
    let proven = checker::phases(&of.set, &found).is_ok()
        && checker::fixed_priority(&plain, sections, discrete, &any).is_ok()
        && (0..of.set.len()).all(same);
    Ok(bounds(found.analysis, proven))
}

pub(super) fn supply(of: &Question) -> Result<Bounds, String> {
    let Situation::Inside(server) = &of.situation else { return fixed_priority(of) };
    if let Some(found) = server.whole_budgets(&of.set) {
        let proven = checker::whole_budgets(&of.set, server, &found).is_ok();
        return Ok(Bounds { by_conditions: true, ..bounds(found, proven) });
    }
    let Some(found) = server.response_times(&of.set) else {
        return Err("what the server gives is not known".to_owned());
    };
    let proven = server.holds(&of.set, &found);
    Ok(bounds(found, proven))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::ServerPolicy;
    use crate::task::{CriticalSection, Task};

    /// What can be asked has an analysis, which `check` may be asked for by name; bursts, thresholds and
    /// phases where the analysis would pass over them have none, or it refuses them.
    #[test]
    fn questions_have_the_analysis_that_knows_them() {
        let own = Task::new(1, 4, 4).unwrap();
        let firsts = [
            own.clone(),
            own.with_bursts(&[1]).unwrap(),
            own.with_threshold(u32::MAX).unwrap(),
            own.with_phase(Some(0)),
            own.with_critical_sections(&[CriticalSection { resource: 0, count: 1, length: 1 }]),
        ];
        let inside = |kind| Situation::Inside(Server::new(kind, 4, 3).unwrap());
        let (hard, soft) =
            (inside(ServerPolicy::HardBandwidth), inside(ServerPolicy::SoftBandwidth));
        let situations = [Situation::Alone, hard, soft, Situation::Shared(2)];
        let all =
            [Sections::Preemptive, Sections::NonPreemptive, Sections::Limited, Sections::Floating];
        let rules = [Rule::FixedPriority, Rule::Edf, Rule::Fifo];
        let cases = rules.iter().flat_map(|rule| situations.iter().map(move |of| (*rule, of)));
        for (rule, situation) in cases {
            for (at, first) in firsts.iter().enumerate() {
                for sections in all {
                    let tasks = vec![first.clone(), Task::new(2, 9, 9).unwrap()];
                    let (set, situation) = (TaskSet::in_order(tasks), situation.clone());
                    let alone = situation == Situation::Alone;
                    let question = Question { set, rule, sections, situation };
                    let known = match (at, rule) {
                        (0, _) => true,
                        (1..=3, Rule::FixedPriority) | (1, Rule::Edf) => alone,
                        _ => false,
                    };
                    let Some(fitting) = question.analysis() else {
                        assert!(!known, "{question:?}");
                        continue;
                    };
                    assert!(fitting.is_checked() && (known || !alone), "{question:?}");
                    if let Some(found) = fitting.bounds(&question) {
                        let found = found.unwrap();
                        assert!(found.is_proven, "{question:?}");
                        // Under EDF, the demand has the bursts.
                        let bounded = known && (at == 0 || rule == Rule::FixedPriority);
                        let result = &found.analysis.tasks[0].outcome;
                        assert_eq!(result.response().is_some(), bounded, "{question:?}");
                    }
                }
            }
        }
    }
}
