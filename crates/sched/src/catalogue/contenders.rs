//! Analyses as they take part in a comparison: priorities, a placement, and what counts as accepted.
//!
//! Owns: [`SchedulabilityTest`] and the lists of them in the catalogue. Must not: contain an analysis.

use crate::edf::{demand, qpa};
use crate::effort::StepLimit;
use crate::fixed_priority;
use crate::global::fixed_priority::{AS_PUBLISHED, Bound, OpaTest};
use crate::partition::{FitHeuristic, PlacementOrder, partition};
use crate::sections::{Sections, TimeModel};
use crate::task::{Task, TaskSet};
use crate::verdict::{Refusal, Verdict};
use crate::{assign, bounds, global};

/// Looks at a task for each analysis of a set. Feasible sets with deadlines of at most their periods need
/// some thousands; only at full utilisation do busy windows take more, and then a set is seldom feasible.
const EFFORT: StepLimit = StepLimit::with_steps(500_000);

/// Looks of a first try, enough for nearly all sets below full utilisation.
const QUICK: StepLimit = StepLimit::with_steps(50_000);

/// Times are whole nanoseconds, in steps of which they pass.
const TIME: TimeModel = TimeModel::Discrete;

/// The number of processors that an analysis covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessorScope {
    /// One.
    Single,
    /// Any number.
    Any,
}

/// An analysis with the priorities and the placement by which it takes part in a comparison.
#[derive(Clone, Copy, Debug)]
pub struct SchedulabilityTest {
    /// Its name in files, on the command line and in documents: that of its analysis, if it assigns and
    /// places nothing.
    pub name: &'static str,
    /// A description in a line.
    pub about: &'static str,
    /// The machines to which it applies.
    pub machine: ProcessorScope,
    /// Whether it needs priorities, which only a task file gives.
    pub needs_priorities: bool,
    /// The word that `sweep` had for it before it had the name of its analysis; still understood.
    pub older: Option<&'static str>,
    judge: TestFn,
}

/// The function that gives the verdict on a set.
#[derive(Clone, Copy, Debug)]
enum TestFn {
    /// On this number of processors.
    Together(fn(&[Task], usize) -> Verdict),
    /// Spread over the processors, each of which this test judges.
    Spread(FitHeuristic, fn(&TaskSet) -> Verdict),
}

/// The verdict of an analysis on a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestOutcome {
    /// Feasible.
    Accepted,
    /// Infeasible, without a bound, or not known to be feasible by a test that does not promise to
    /// know.
    Refused,
    /// Given up: the search, or a number, grew too long, or the analysis does not know such tasks.
    Undecided,
}

impl SchedulabilityTest {
    /// Asks it about a set.
    #[must_use]
    pub fn answer(&self, tasks: &[Task], processors: usize) -> TestOutcome {
        let verdict = match self.judge {
            TestFn::Together(judge) => judge(tasks, processors),
            TestFn::Spread(fit, test) => spread_by(tasks, processors, fit, test),
        };
        match verdict {
            Verdict::Feasible => TestOutcome::Accepted,
            Verdict::Infeasible(_) | Verdict::NoBound | Verdict::Unknown(Refusal::NotExact) => {
                TestOutcome::Refused
            }
            Verdict::Unknown(_) => TestOutcome::Undecided,
        }
    }
}

const fn single(
    name: &'static str,
    about: &'static str,
    judge: fn(&[Task], usize) -> Verdict,
) -> SchedulabilityTest {
    let (machine, judge) = (ProcessorScope::Single, TestFn::Together(judge));
    SchedulabilityTest { name, about, machine, needs_priorities: false, older: None, judge }
}

/// A test that neither assigns nor places, with the name of its analysis.
const fn once(older: &'static str, of: SchedulabilityTest) -> SchedulabilityTest {
    SchedulabilityTest { older: Some(older), ..of }
}

const fn any(
    name: &'static str,
    about: &'static str,
    judge: fn(&[Task], usize) -> Verdict,
) -> SchedulabilityTest {
    SchedulabilityTest { machine: ProcessorScope::Any, ..single(name, about, judge) }
}

const fn spread(
    name: &'static str,
    about: &'static str,
    fit: FitHeuristic,
    test: fn(&TaskSet) -> Verdict,
) -> SchedulabilityTest {
    let (machine, judge) = (ProcessorScope::Any, TestFn::Spread(fit, test));
    SchedulabilityTest { name, about, machine, needs_priorities: false, older: None, judge }
}

/// Response times under preemptive fixed priorities.
pub(super) const FIXED_PRIORITY: &[SchedulabilityTest] = &[
    SchedulabilityTest {
        needs_priorities: true,
        ..once(
            "fp",
            single(
                "fp-preemptive",
                "the priorities of the task file, response times",
                |tasks, _| fixed(&TaskSet::new(tasks.to_vec()), Sections::Preemptive),
            ),
        )
    },
    single("rm", "rate-monotonic, response times", |tasks, _| {
        fixed(&assign::rate_monotonic(tasks), Sections::Preemptive)
    }),
    single("dm", "deadline-monotonic, response times", |tasks, _| {
        fixed(&assign::deadline_monotonic(tasks), Sections::Preemptive)
    }),
    single("opa", "optimal priorities (Audsley 1991), response times", |tasks, _| {
        optimal(tasks, Sections::Preemptive)
    }),
    spread("p-rm-ff", "partitioned rate-monotonic, first fit", FitHeuristic::First, by_rm),
    spread("p-rm-bf", "partitioned rate-monotonic, best fit", FitHeuristic::Best, by_rm),
    spread("p-rm-wf", "partitioned rate-monotonic, worst fit", FitHeuristic::Worst, by_rm),
    spread("p-dm-ff", "partitioned deadline-monotonic, first fit", FitHeuristic::First, by_dm),
    spread("p-dm-bf", "partitioned deadline-monotonic, best fit", FitHeuristic::Best, by_dm),
    spread("p-dm-wf", "partitioned deadline-monotonic, worst fit", FitHeuristic::Worst, by_dm),
];

/// Response times under fixed priorities, jobs not preempted.
pub(super) const NOT_PREEMPTED: &[SchedulabilityTest] = &[
    single("rm-np", "rate-monotonic, non-preemptive", |tasks, _| {
        fixed(&assign::rate_monotonic(tasks), Sections::NonPreemptive)
    }),
    single("dm-np", "deadline-monotonic, non-preemptive", |tasks, _| {
        fixed(&assign::deadline_monotonic(tasks), Sections::NonPreemptive)
    }),
    single("opa-np", "optimal priorities, non-preemptive", |tasks, _| {
        optimal(tasks, Sections::NonPreemptive)
    }),
];

/// The utilisation bound of rate-monotonic priorities.
pub(super) const LIU_LAYLAND: &[SchedulabilityTest] = &[once(
    "rm-ll",
    single(
        "liu-layland",
        "rate-monotonic, utilisation bound (Liu and Layland 1973)",
        |tasks, _| bounds::liu_layland(&assign::rate_monotonic(tasks)),
    ),
)];

/// The hyperbolic bound of rate-monotonic priorities.
pub(super) const HYPERBOLIC: &[SchedulabilityTest] = &[once(
    "rm-hyperbolic",
    single(
        "hyperbolic",
        "rate-monotonic, hyperbolic bound (Bini and Buttazzo 2003)",
        |tasks, _| bounds::hyperbolic(&assign::rate_monotonic(tasks)),
    ),
)];

/// EDF on one processor, or on each of several.
pub(super) const EDF: &[SchedulabilityTest] = &[
    once(
        "edf",
        single(
            "edf-preemptive",
            "EDF, quick processor-demand analysis (Zhang and Burns 2009)",
            |tasks, _| by_qpa(&TaskSet::new(tasks.to_vec())),
        ),
    ),
    spread("p-edf-ff", "partitioned EDF, first fit", FitHeuristic::First, by_qpa),
    spread("p-edf-bf", "partitioned EDF, best fit", FitHeuristic::Best, by_qpa),
    spread("p-edf-wf", "partitioned EDF, worst fit", FitHeuristic::Worst, by_qpa),
];

/// EDF by demand alone.
pub(super) const DEMAND: &[SchedulabilityTest] =
    &[single("edf-demand", "EDF, processor demand at every deadline", |tasks, _| {
        demand::processor_demand(&TaskSet::new(tasks.to_vec()), Sections::Preemptive, TIME)
    })];

/// EDF, jobs not preempted.
pub(super) const EDF_NOT_PREEMPTED: &[SchedulabilityTest] = &[once(
    "edf-np",
    single("edf-nonpreemptive", "EDF, non-preemptive (Jeffay et al. 1991, by QPA)", |tasks, _| {
        let set = TaskSet::new(tasks.to_vec());
        qpa::feasible_within(&set, Sections::NonPreemptive, TIME, EFFORT).verdict
    }),
)];

/// Global EDF, by each of its tests.
pub(super) const GLOBAL_EDF: &[SchedulabilityTest] = &[
    any("g-edf-gfb", "global EDF (Goossens, Funk and Baruah 2003)", |tasks, m| {
        global::edf::gfb(&TaskSet::new(tasks.to_vec()), m as u64)
    }),
    any("g-edf-bak", "global EDF (Baker 2003)", |tasks, m| {
        global::edf::bak(&TaskSet::new(tasks.to_vec()), m as u64)
    }),
    any("g-edf-bcl", "global EDF (Bertogna, Cirinei and Lipari 2005)", |tasks, m| {
        global::edf::bcl(&TaskSet::new(tasks.to_vec()), m as u64)
    }),
    any("g-edf-bar", "global EDF (Baruah 2007)", |tasks, m| {
        global::edf::bar_by(&TaskSet::new(tasks.to_vec()), m as u64, &mut { EFFORT })
    }),
    any("g-edf-rta", "global EDF, response times (Bertogna and Cirinei 2007)", |tasks, m| {
        let set = TaskSet::new(tasks.to_vec());
        global::edf_response::analyse_by(&set, m as u64, &mut { EFFORT }).verdict()
    }),
];

/// Global fixed priorities.
pub(super) const GLOBAL_BC: &[SchedulabilityTest] =
    &[any("g-dm-bc", "global deadline-monotonic (Bertogna and Cirinei 2007)", |tasks, m| {
        by_global(&assign::deadline_monotonic(tasks), m, AS_PUBLISHED)
    })];

/// Global fixed priorities, limited carry-in.
pub(super) const GLOBAL_LC: &[SchedulabilityTest] = &[
    any("g-dm-lc", "global deadline-monotonic, limited carry-in (Guan et al. 2009)", |tasks, m| {
        by_global(&assign::deadline_monotonic(tasks), m, Bound::LimitedCarryIn)
    }),
    any("g-dkc-lc", "global priorities by D - k C, limited carry-in", |tasks, m| {
        match global::assign::dkc(tasks, m as u64) {
            Some(set) => by_global(&set, m, Bound::LimitedCarryIn),
            None => Verdict::Unknown(Refusal::OutsideModel),
        }
    }),
    any("g-opa-lc", "global optimal priorities (Davis and Burns 2011)", |tasks, m| {
        match global::assign::audsley(tasks, m as u64, OpaTest::LimitedCarryIn) {
            Some(_) => Verdict::Feasible,
            None => Verdict::Unknown(Refusal::NotExact),
        }
    }),
];

/// All bounds are found faster than a verdict without them, where there is no long busy window.
fn fixed(set: &TaskSet, sections: Sections) -> Verdict {
    match fixed_priority::analyse_within(set, sections, TIME, QUICK).verdict() {
        Verdict::Unknown(Refusal::TooLong) => {
            fixed_priority::verdict_within(set, sections, TIME, EFFORT)
        }
        known => known,
    }
}

/// That no assignment is found is an answer of the analysis, not a witness. Where deadline-monotonic
/// priorities do, there is one to be found.
fn optimal(tasks: &[Task], sections: Sections) -> Verdict {
    if fixed(&assign::deadline_monotonic(tasks), sections) == Verdict::Feasible {
        return Verdict::Feasible;
    }
    let looks = EFFORT.left().saturating_mul(tasks.len() as u64);
    match assign::audsley_by(tasks, sections, TIME, &mut StepLimit::with_steps(looks)) {
        Ok(Some(_)) => Verdict::Feasible,
        Ok(None) => Verdict::Unknown(Refusal::NotExact),
        Err(why) => Verdict::Unknown(why),
    }
}

fn by_rm(set: &TaskSet) -> Verdict {
    fixed(&assign::rate_monotonic(set.tasks()), Sections::Preemptive)
}

fn by_dm(set: &TaskSet) -> Verdict {
    fixed(&assign::deadline_monotonic(set.tasks()), Sections::Preemptive)
}

fn by_qpa(set: &TaskSet) -> Verdict {
    qpa::feasible_within(set, Sections::Preemptive, TIME, EFFORT).verdict
}

fn by_global(set: &TaskSet, processors: usize, bound: Bound) -> Verdict {
    let analysis =
        global::fixed_priority::analyse_by(set, processors as u64, bound, &mut { EFFORT });
    analysis.verdict()
}

/// The largest tasks first; that the heuristic fails does not prove that there is no way. Where it
/// fails after the test of a processor was given up, that may be why.
fn spread_by(
    tasks: &[Task],
    processors: usize,
    fit: FitHeuristic,
    test: fn(&TaskSet) -> Verdict,
) -> Verdict {
    let mut why = Refusal::NotExact;
    let fits = |set: &TaskSet| {
        let verdict = test(set);
        if let Verdict::Unknown(given_up) = verdict
            && given_up != Refusal::NotExact
        {
            why = given_up;
        }
        verdict
    };
    match partition(tasks, processors, PlacementOrder::Utilisation, fit, fits) {
        Some(_) => Verdict::Feasible,
        None => Verdict::Unknown(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is given up on a processor is not known not to fit there: the answer was "refused".
    #[test]
    fn a_test_that_gives_up_leaves_the_partition_undecided() {
        let task = Task::new(2, 10, 10).unwrap();
        for (why, wanted) in
            [(Refusal::TooLong, TestOutcome::Undecided), (Refusal::NotExact, TestOutcome::Refused)]
        {
            let test = match why {
                Refusal::TooLong => |_: &TaskSet| Verdict::Unknown(Refusal::TooLong),
                _ => |_: &TaskSet| Verdict::Unknown(Refusal::NotExact),
            };
            let analysis = spread("p", "", FitHeuristic::First, test);
            assert_eq!(analysis.answer(std::slice::from_ref(&task), 2), wanted);
        }
    }

    /// With jitter at full utilisation the window repeats after the hyperperiod, which has more than
    /// 64 bits here: Audsley's search knows nothing of the least urgent task.
    #[test]
    fn an_assignment_that_is_given_up_is_undecided() {
        let periods = [1_000_003, 1_000_033, 1_000_037, 1_000_039].map(|p: u64| p * 1_000);
        let mut tasks: Vec<Task> =
            periods.iter().map(|p| Task::new(p / 8, *p, 5 * p).unwrap().with_jitter(7)).collect();
        tasks.push(Task::new(4_000, 8_000, 50_000).unwrap());
        let answer = |name: &str| super::super::contender(name).unwrap().answer(&tasks, 1);
        assert_eq!(answer("opa"), TestOutcome::Undecided);
        assert_eq!(answer("edf-preemptive"), TestOutcome::Undecided);
    }
}
