//! The analyses that can be compared, by name.
//!
//! Owns: the table [`ANALYSES`], and what counts as accepted. Must not: contain an analysis.

use hourglass_sched::edf::{demand, qpa};
use hourglass_sched::effort::Effort;
use hourglass_sched::fixed_priority::{self, Sections, TimeModel};
use hourglass_sched::global::fixed_priority::{AS_PUBLISHED, Bound, OrderFree};
use hourglass_sched::partition::{Fit, Order, partition};
use hourglass_sched::{Refusal, Task, TaskSet, Verdict, assign, bounds, global};

/// Steps for each analysis of a set. Feasible sets with deadlines of at most their periods need some
/// hundreds; only at full utilisation do busy windows take more, and then a set is seldom feasible.
const EFFORT: Effort = Effort::of(20_000);

/// Times are whole nanoseconds, in steps of which they pass.
const TIME: TimeModel = TimeModel::Discrete;

/// On how many processors an analysis looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// One.
    Single,
    /// Any number.
    Any,
}

/// An analysis that can take part in an experiment.
#[derive(Clone, Copy, Debug)]
pub struct Analysis {
    /// Its name in files, on the command line and in documents.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// For which machines.
    pub machine: Machine,
    /// Whether it needs priorities, which only a task file gives.
    pub needs_priorities: bool,
    judge: fn(&[Task], usize) -> Verdict,
}

/// What an analysis says of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Feasible.
    Accepted,
    /// Infeasible, without a bound, or not known to be feasible by a test that does not promise to
    /// know.
    Refused,
    /// Given up: the search, or a number, grew too long, or the analysis does not know such tasks.
    Undecided,
}

impl Analysis {
    /// The analysis of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Analysis> {
        ANALYSES.iter().find(|analysis| analysis.name == name)
    }

    /// Asks it about a set.
    #[must_use]
    pub fn answer(&self, tasks: &[Task], processors: usize) -> Answer {
        match (self.judge)(tasks, processors) {
            Verdict::Feasible => Answer::Accepted,
            Verdict::Infeasible(_) | Verdict::NoBound | Verdict::Unknown(Refusal::NotExact) => {
                Answer::Refused
            }
            Verdict::Unknown(_) => Answer::Undecided,
        }
    }
}

const fn single(
    name: &'static str,
    about: &'static str,
    judge: fn(&[Task], usize) -> Verdict,
) -> Analysis {
    Analysis { name, about, machine: Machine::Single, needs_priorities: false, judge }
}

const fn any(
    name: &'static str,
    about: &'static str,
    judge: fn(&[Task], usize) -> Verdict,
) -> Analysis {
    Analysis { name, about, machine: Machine::Any, needs_priorities: false, judge }
}

/// All analyses: those for one processor, then those for several.
pub const ANALYSES: &[Analysis] = &[
    Analysis {
        name: "fp",
        about: "the priorities of the task file, response times",
        machine: Machine::Single,
        needs_priorities: true,
        judge: |tasks, _| fixed(&TaskSet::new(tasks.to_vec()), Sections::Preemptive),
    },
    single("rm-ll", "rate-monotonic, utilisation bound (Liu and Layland 1973)", |tasks, _| {
        bounds::liu_layland(&assign::rate_monotonic(tasks))
    }),
    single(
        "rm-hyperbolic",
        "rate-monotonic, hyperbolic bound (Bini and Buttazzo 2003)",
        |tasks, _| bounds::hyperbolic(&assign::rate_monotonic(tasks)),
    ),
    single("rm", "rate-monotonic, response times", |tasks, _| {
        fixed(&assign::rate_monotonic(tasks), Sections::Preemptive)
    }),
    single("dm", "deadline-monotonic, response times", |tasks, _| {
        fixed(&assign::deadline_monotonic(tasks), Sections::Preemptive)
    }),
    single("opa", "optimal priorities (Audsley 1991), response times", |tasks, _| {
        optimal(tasks, Sections::Preemptive)
    }),
    single("rm-np", "rate-monotonic, non-preemptive", |tasks, _| {
        fixed(&assign::rate_monotonic(tasks), Sections::NonPreemptive)
    }),
    single("dm-np", "deadline-monotonic, non-preemptive", |tasks, _| {
        fixed(&assign::deadline_monotonic(tasks), Sections::NonPreemptive)
    }),
    single("opa-np", "optimal priorities, non-preemptive", |tasks, _| {
        optimal(tasks, Sections::NonPreemptive)
    }),
    single("edf", "EDF, quick processor-demand analysis (Zhang and Burns 2009)", |tasks, _| {
        by_qpa(&TaskSet::new(tasks.to_vec()))
    }),
    single("edf-demand", "EDF, processor demand at every deadline", |tasks, _| {
        demand::processor_demand(&TaskSet::new(tasks.to_vec()), Sections::Preemptive, TIME)
    }),
    single("edf-np", "EDF, non-preemptive (Jeffay et al. 1991, by QPA)", |tasks, _| {
        let set = TaskSet::new(tasks.to_vec());
        qpa::feasible_within(&set, Sections::NonPreemptive, TIME, EFFORT).verdict
    }),
    any("p-rm-ff", "partitioned rate-monotonic, first fit", |tasks, m| {
        spread(tasks, m, Fit::First, by_rm)
    }),
    any("p-rm-bf", "partitioned rate-monotonic, best fit", |tasks, m| {
        spread(tasks, m, Fit::Best, by_rm)
    }),
    any("p-rm-wf", "partitioned rate-monotonic, worst fit", |tasks, m| {
        spread(tasks, m, Fit::Worst, by_rm)
    }),
    any("p-dm-ff", "partitioned deadline-monotonic, first fit", |tasks, m| {
        spread(tasks, m, Fit::First, by_dm)
    }),
    any("p-dm-bf", "partitioned deadline-monotonic, best fit", |tasks, m| {
        spread(tasks, m, Fit::Best, by_dm)
    }),
    any("p-dm-wf", "partitioned deadline-monotonic, worst fit", |tasks, m| {
        spread(tasks, m, Fit::Worst, by_dm)
    }),
    any("p-edf-ff", "partitioned EDF, first fit", |tasks, m| spread(tasks, m, Fit::First, by_qpa)),
    any("p-edf-bf", "partitioned EDF, best fit", |tasks, m| spread(tasks, m, Fit::Best, by_qpa)),
    any("p-edf-wf", "partitioned EDF, worst fit", |tasks, m| spread(tasks, m, Fit::Worst, by_qpa)),
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
        global::edf::bar_within(&TaskSet::new(tasks.to_vec()), m as u64, EFFORT)
    }),
    any("g-edf-rta", "global EDF, response times (Bertogna and Cirinei 2007)", |tasks, m| {
        let set = TaskSet::new(tasks.to_vec());
        global::edf_response::analyse_within(&set, m as u64, EFFORT).verdict()
    }),
    any("g-dm-bc", "global deadline-monotonic (Bertogna and Cirinei 2007)", |tasks, m| {
        by_global(&assign::deadline_monotonic(tasks), m, AS_PUBLISHED)
    }),
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
        match global::assign::audsley(tasks, m as u64, OrderFree::LimitedCarryIn) {
            Some(_) => Verdict::Feasible,
            None => Verdict::Unknown(Refusal::NotExact),
        }
    }),
];

/// What is compared if nothing is said.
pub(super) fn default_names(processors: u32) -> &'static [&'static str] {
    match processors {
        1 => &["rm-ll", "rm-hyperbolic", "rm", "dm", "opa", "edf"],
        _ => &["g-edf-gfb", "g-edf-rta", "g-dm-lc", "g-opa-lc", "p-dm-ff", "p-edf-ff"],
    }
}

fn fixed(set: &TaskSet, sections: Sections) -> Verdict {
    fixed_priority::analyse_within(set, sections, TIME, EFFORT).verdict()
}

/// That no assignment is found is an answer of the analysis, not a witness. Where deadline-monotonic
/// priorities do, there is one to be found.
fn optimal(tasks: &[Task], sections: Sections) -> Verdict {
    if fixed(&assign::deadline_monotonic(tasks), sections) == Verdict::Feasible {
        return Verdict::Feasible;
    }
    match assign::audsley_within(tasks, sections, TIME, EFFORT) {
        Some(_) => Verdict::Feasible,
        None => Verdict::Unknown(Refusal::NotExact),
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
    let analysis = global::fixed_priority::analyse_within(set, processors as u64, bound, EFFORT);
    analysis.verdict()
}

/// The largest tasks first; that the heuristic fails does not prove that there is no way.
fn spread(
    tasks: &[Task],
    processors: usize,
    fit: Fit,
    fits: impl FnMut(&TaskSet) -> Verdict,
) -> Verdict {
    match partition(tasks, processors, Order::Utilisation, fit, fits) {
        Some(_) => Verdict::Feasible,
        None => Verdict::Unknown(Refusal::NotExact),
    }
}
