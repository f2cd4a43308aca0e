//! All analyses, each with one name: for `check`, for `sweep`, and for worked examples.
//!
//! Owns: [`ALL`]; which analysis fits a [`Question`]; which ways of scheduling are compared by it
//! ([`SchedulabilityTest`]), and which kinds of worked examples it answers. Must not: contain an analysis.

mod contenders;
mod question;
mod terms;

use std::sync::LazyLock;

use hourglass_documents::check::AnalysisFacts;
use hourglass_tasks::corpus::{Case, ExpectedResults, ResultValue};

use crate::bounds;
use crate::corpus::{BadCase, busy, chains, global, graph, misc_cases};
use crate::global::fixed_priority::{AS_PUBLISHED, Bound};
use crate::sections::Sections;
use crate::task::TaskSet;
use crate::verdict::Verdict;

pub use contenders::{ProcessorScope, SchedulabilityTest, TestOutcome};
pub use question::{Bounds, Question, Rule, Situation};
pub use terms::Term;

/// Answers one question of a worked example.
pub(crate) type CaseFn = fn(&Case, &str) -> Result<ResultValue, BadCase>;

/// How `check` has an answer from an analysis.
#[derive(Clone, Copy, Debug)]
pub enum Method {
    /// It bounds the responses on one processor, or says in a sentence why the numbers do not fit.
    Responses(fn(&Question) -> Result<Bounds, String>),
    /// By demand, under EDF.
    Demand,
    /// By a bound of the utilisation of rate-monotonic priorities.
    Utilisation(fn(&TaskSet) -> Verdict),
    /// It bounds the responses on several processors under global fixed priorities.
    Global(Bound),
    /// By the tests of global EDF.
    GlobalEdf,
    /// Tasks that release each other.
    Chains,
    /// All orders of jobs with known arrivals.
    JobOrders,
    /// `check` does not ask it.
    Examples,
}

/// An analysis.
#[derive(Clone, Copy, Debug)]
pub struct AnalysisEntry {
    /// The name, by which `check` selects it.
    pub name: &'static str,
    /// The question that it answers.
    pub about: &'static str,
    /// The authors and the paper.
    pub source: &'static str,
    /// How `check` has an answer from it.
    pub method: Method,
    /// How it takes part in comparisons.
    pub contenders: &'static [SchedulabilityTest],
    /// Whether it answers a question; the first entry that does is used.
    fits: fn(&Question) -> bool,
    /// The questions for which it may be asked by name, where they are others than those that it is the first to fit.
    by_name: Option<fn(&Question) -> bool>,
    /// Whether deadlines hold, without bounds.
    verdict: Option<fn(&Question) -> Verdict>,
    /// Priorities with which deadlines hold, if it finds any.
    priorities: Option<fn(&Question) -> Option<TaskSet>>,
    /// The kinds of worked examples that it answers.
    cases: &'static [(&'static str, CaseFn)],
}

/// An analysis that only worked examples ask.
const EXAMPLE: AnalysisEntry = AnalysisEntry {
    name: "",
    about: "",
    source: "",
    method: Method::Examples,
    contenders: &[],
    fits: |_| false,
    by_name: None,
    verdict: None,
    priorities: None,
    cases: &[],
};

/// Response times under fixed priorities, or first come, first served.
const FIXED_PRIORITY: AnalysisEntry = AnalysisEntry {
    method: Method::Responses(question::fixed_priority),
    verdict: Some(question::fixed_priority_verdict),
    priorities: Some(question::priorities),
    ..EXAMPLE
};

/// Response times under EDF on one processor.
const EDF: AnalysisEntry = AnalysisEntry {
    method: Method::Responses(question::edf),
    verdict: Some(question::edf_verdict),
    ..EXAMPLE
};

/// All analyses, in the order in which they are listed and in which the first that fits is asked.
pub const ALL: &[AnalysisEntry] = &[
    AnalysisEntry {
        name: "fp-preemptive",
        about: "response times under fixed priorities",
        source: "Joseph and Pandya 1986; Lehoczky 1990; Audsley et al. 1993; Tindell et al. 1994",
        fits: |q| q.is(Rule::FixedPriority, Sections::Preemptive) && !q.suspends(),
        contenders: contenders::FIXED_PRIORITY,
        cases: &[
            ("fp-preemptive", busy::fixed_priority),
            ("jitter-two-readings", busy::fixed_priority),
            ("trap-equal-priority", busy::equal_priorities),
        ],
        ..FIXED_PRIORITY
    },
    AnalysisEntry {
        name: "fp-suspension",
        about: "the same with tasks that suspend themselves",
        source: "Chen et al. 2019",
        fits: |q| q.is(Rule::FixedPriority, Sections::Preemptive) && q.suspends(),
        cases: &[("fp-suspension", busy::fixed_priority)],
        by_name: Some(|q| q.is_answered_by("fp-preemptive") || q.is_answered_by("fp-suspension")),
        ..FIXED_PRIORITY
    },
    AnalysisEntry {
        name: "fp-nonpreemptive",
        about: "response times under fixed priorities, jobs not preempted",
        source: "Davis, Burns, Bril and Lukkien 2007",
        fits: |q| q.is(Rule::FixedPriority, Sections::NonPreemptive),
        contenders: contenders::NOT_PREEMPTED,
        cases: &[("fp-nonpreemptive", busy::fixed_priority)],
        ..FIXED_PRIORITY
    },
    AnalysisEntry {
        name: "fp-limited-preemptive",
        about: "response times under fixed priorities, jobs preempted at fixed points",
        source: "Bril, Lukkien and Verhaegh 2009; Bozhko and Brandenburg 2020",
        fits: |q| q.is(Rule::FixedPriority, Sections::Limited),
        cases: &[("fp-limited-preemptive", busy::fixed_priority)],
        ..FIXED_PRIORITY
    },
    AnalysisEntry {
        name: "fp-floating-np",
        about: "response times under fixed priorities, sections anywhere not preempted",
        source: "Bozhko and Brandenburg 2020",
        fits: |q| q.is(Rule::FixedPriority, Sections::Floating),
        cases: &[("fp-floating-np", busy::fixed_priority)],
        ..FIXED_PRIORITY
    },
    AnalysisEntry {
        name: "fp-bursts",
        about: "response times under fixed priorities, jobs arriving in bursts",
        source: "Tindell, Burns and Wellings 1994; Richter 2005",
        fits: |q| q.is_alone(Rule::FixedPriority) && q.has_bursts(),
        method: Method::Responses(question::bursts),
        ..EXAMPLE
    },
    AnalysisEntry {
        name: "fp-thresholds",
        about: "response times under fixed priorities with preemption thresholds",
        source: "Wang and Saksena 1999; Regehr 2002; Keskin, Bril and Lukkien 2010",
        fits: |q| q.is_alone(Rule::FixedPriority) && q.has_thresholds(),
        method: Method::Responses(question::thresholds),
        ..EXAMPLE
    },
    AnalysisEntry {
        name: "fp-phases",
        about: "response times under fixed priorities, the phases of all tasks being known",
        source: "Leung and Merrill 1980; Palencia and Gonzalez Harbour 1998",
        fits: |q| q.is_alone(Rule::FixedPriority) && q.has_phases(),
        method: Method::Responses(question::phases),
        ..EXAMPLE
    },
    AnalysisEntry {
        name: "edf-preemptive",
        about: "response times and demand under earliest deadline first",
        source: "Spuri 1996; Zhang and Burns 2009",
        fits: |q| q.is(Rule::Edf, Sections::Preemptive) && !q.suspends(),
        contenders: contenders::EDF,
        cases: &[("edf-preemptive", busy::edf)],
        ..EDF
    },
    AnalysisEntry {
        name: "edf-suspension",
        about: "response times under EDF with tasks that suspend themselves",
        source: "G\u{fc}nzel, von der Br\u{fc}ggen and Chen 2022; Spuri 1996",
        fits: |q| q.is(Rule::Edf, Sections::Preemptive) && q.suspends(),
        ..EDF
    },
    AnalysisEntry {
        name: "edf-nonpreemptive",
        about: "the same, jobs not preempted",
        source: "Jeffay, Stanat and Martel 1991; George, Rivierre and Spuri 1996",
        fits: |q| q.is(Rule::Edf, Sections::NonPreemptive),
        contenders: contenders::EDF_NOT_PREEMPTED,
        cases: &[("edf-nonpreemptive", busy::edf)],
        ..EDF
    },
    AnalysisEntry {
        name: "edf-limited-preemptive",
        about: "the same, jobs preempted at fixed points",
        source: "Bozhko and Brandenburg 2020",
        fits: |q| q.is(Rule::Edf, Sections::Limited),
        cases: &[("edf-limited-preemptive", busy::edf)],
        ..EDF
    },
    AnalysisEntry {
        name: "edf-floating-np",
        about: "the same, sections anywhere not preempted",
        source: "Baruah 2005; Bozhko and Brandenburg 2020",
        fits: |q| q.is(Rule::Edf, Sections::Floating),
        cases: &[("edf-floating-np", busy::edf)],
        ..EDF
    },
    AnalysisEntry {
        name: "edf-demand",
        about: "whether deadlines hold under EDF, by demand alone",
        source: "Baruah, Mok and Rosier 1990; Zhang and Burns 2009",
        contenders: contenders::DEMAND,
        cases: &[("edf-feasibility", busy::demand), ("dbf", busy::demand)],
        method: Method::Demand,
        by_name: Some(|q| q.rule == Rule::Edf && !matches!(q.situation, Situation::Inside(_))),
        ..EXAMPLE
    },
    AnalysisEntry {
        name: "fifo",
        about: "response times first come, first served",
        source: "Bedarkar et al. 2022",
        fits: |q| q.is_alone(Rule::Fifo) && q.set.is_plain(),
        cases: &[("fifo", busy::fifo)],
        ..FIXED_PRIORITY
    },
    AnalysisEntry {
        name: "supply",
        about: "response times under fixed priorities, and demand under EDF, inside a server",
        source: "Shin and Lee 2003; Easwaran, Anand and Lee 2007; one task by whole budgets: Abeni and Buttazzo 1998",
        fits: |q| matches!(q.situation, Situation::Inside(_)),
        cases: &[
            ("supply-periodic", busy::supply),
            ("supply-edp", busy::supply),
            ("supply-rta", busy::supply),
        ],
        method: Method::Responses(question::supply),
        ..EXAMPLE
    },
    AnalysisEntry {
        name: "holistic",
        about: "chains of tasks across CPUs under fixed priorities",
        source: "Tindell and Clark 1994; Palencia and Gonzalez Harbour 1998",
        cases: &[("holistic-fp", chains::holistic)],
        method: Method::Chains,
        ..EXAMPLE
    },
    AnalysisEntry {
        name: "global-fp-lc",
        about: "response times under global fixed priorities, limited carry-in",
        source: "Guan, Stigge, Yi and Yu 2009",
        fits: |q| matches!(q.situation, Situation::Shared(_)) && q.rule != Rule::Edf,
        contenders: contenders::GLOBAL_LC,
        cases: &[("global-fp-rta-lc", global::fixed_priority)],
        method: Method::Global(Bound::LimitedCarryIn),
        priorities: Some(question::global_priorities),
        ..EXAMPLE
    },
    AnalysisEntry {
        name: "global-fp-bc",
        about: "response times under global fixed priorities",
        source: "Bertogna and Cirinei 2007",
        contenders: contenders::GLOBAL_BC,
        cases: &[("global-fp-bc", global::fixed_priority)],
        method: Method::Global(AS_PUBLISHED),
        by_name: Some(|q| q.is_answered_by("global-fp-lc")),
        ..EXAMPLE
    },
    AnalysisEntry {
        name: "global-edf",
        about: "global EDF: GFB, BAK, BCL, BAR and response times, whichever accepts",
        source: "Goossens et al. 2003; Baker 2003; Bertogna et al. 2005, 2007; Baruah 2007",
        fits: |q| matches!(q.situation, Situation::Shared(_)) && q.rule == Rule::Edf,
        contenders: contenders::GLOBAL_EDF,
        cases: &[("global-edf", global::earliest_deadline)],
        method: Method::GlobalEdf,
        ..EXAMPLE
    },
    AnalysisEntry {
        name: "liu-layland",
        about: "the utilisation bound of rate-monotonic priorities",
        source: "Liu and Layland 1973",
        contenders: contenders::LIU_LAYLAND,
        cases: &[("bounds", misc_cases::bounds)],
        method: Method::Utilisation(bounds::liu_layland),
        by_name: Some(|q| q.rule == Rule::FixedPriority),
        ..EXAMPLE
    },
    AnalysisEntry {
        name: "hyperbolic",
        about: "the hyperbolic bound of rate-monotonic priorities",
        source: "Bini, Buttazzo and Buttazzo 2003",
        contenders: contenders::HYPERBOLIC,
        method: Method::Utilisation(bounds::hyperbolic),
        by_name: Some(|q| q.rule == Rule::FixedPriority),
        ..EXAMPLE
    },
    AnalysisEntry {
        name: "spin",
        about: "response times with spin locks between processors",
        source: "Gai, Lipari and Di Natale 2001; Wieder and Brandenburg 2013",
        cases: &[("mp-spinlock", chains::spin_locks)],
        ..EXAMPLE
    },
    AnalysisEntry {
        name: "cpa",
        about: "task graphs by event models",
        source: "Richter 2005; Schliecker 2010",
        cases: &[("cpa-e2e", graph::event_models)],
        ..EXAMPLE
    },
    AnalysisEntry {
        name: "admission",
        about: "the sum of utilisations against a limit",
        source: "Linux, SCHED_DEADLINE",
        cases: &[("dl-admission", misc_cases::admission)],
        ..EXAMPLE
    },
    AnalysisEntry {
        name: "np-jobset",
        about: "jobs that arrive at known times and are not preempted, by all schedules",
        source: "Nasri and Brandenburg 2017",
        cases: &[("np-jobset", misc_cases::jobset)],
        method: Method::JobOrders,
        by_name: Some(|q| {
            q.is_answered_by("fp-nonpreemptive") || q.is_answered_by("edf-nonpreemptive")
        }),
        ..EXAMPLE
    },
    AnalysisEntry {
        name: "cbs",
        about: "constant-bandwidth servers under EDF, traced",
        source: "Abeni and Buttazzo 1998",
        cases: &[("cbs", misc_cases::trace), ("edf-trace", misc_cases::trace)],
        ..EXAMPLE
    },
    AnalysisEntry {
        name: "slack",
        about: "the slack of reserved work with a co-runner on a sibling",
        source: "equations 5 to 9 of the SMT paper",
        cases: &[
            ("slack-monitor", misc_cases::slack_monitor),
            ("slack-multi", misc_cases::slack_multi),
        ],
        ..EXAMPLE
    },
];

impl AnalysisEntry {
    /// Whether it is for such questions.
    #[must_use]
    pub fn fits(&self, question: &Question) -> bool {
        (self.fits)(question)
    }

    /// Whether it may be asked by name about such questions.
    #[must_use]
    pub fn answers(&self, question: &Question) -> bool {
        self.by_name.map_or_else(|| question.is_answered_by(self.name), |answers| answers(question))
    }

    /// Whether `check` asks it.
    #[must_use]
    pub fn is_checked(&self) -> bool {
        !matches!(self.method, Method::Examples)
    }

    /// Its bounds of response times, proven. `None` if it gives none of a single processor.
    ///
    /// # Errors
    /// The numbers do not fit it, in a sentence.
    #[must_use]
    pub fn bounds(&self, question: &Question) -> Option<Result<Bounds, String>> {
        match self.method {
            Method::Responses(bounds) => Some(bounds(question)),
            _ => None,
        }
    }

    /// The analysis as a document has it.
    #[must_use]
    pub fn facts(&self) -> AnalysisFacts {
        AnalysisFacts {
            name: self.name.to_owned(),
            about: self.about.to_owned(),
            source: self.source.to_owned(),
        }
    }
}

/// The analyses that `check` accepts by name.
pub static CHECKED: LazyLock<Vec<AnalysisEntry>> =
    LazyLock::new(|| ALL.iter().filter(|entry| entry.is_checked()).copied().collect());

/// The analyses that can be compared, those for one processor first.
pub static CONTENDERS: LazyLock<Vec<SchedulabilityTest>> = LazyLock::new(|| {
    let mut all: Vec<SchedulabilityTest> =
        ALL.iter().flat_map(|entry| entry.contenders).copied().collect();
    all.sort_by_key(|contender| contender.machine == ProcessorScope::Any);
    all
});

/// The analysis with this name, or with this older name.
#[must_use]
pub fn checked_by(name: &str) -> Option<&'static AnalysisEntry> {
    let older = || CONTENDERS.iter().find(|c| c.older == Some(name)).map(|c| c.name);
    let of = |name: &str| CHECKED.iter().find(|entry| entry.name == name);
    of(name).or_else(|| of(older()?))
}

/// The contender of this name, or of this older word.
#[must_use]
pub fn contender(name: &str) -> Option<&'static SchedulabilityTest> {
    CONTENDERS.iter().find(|contender| contender.name == name || contender.older == Some(name))
}

/// The function that answers a kind of worked example.
fn case_fn(kind: &str) -> Option<CaseFn> {
    let mut all = ALL.iter().flat_map(|entry| entry.cases);
    all.find(|(known, _)| *known == kind).map(|(_, answer)| *answer)
}

/// Answers a case: all that it asks for, by the same names.
///
/// # Errors
/// A kind that no analysis answers, a key that is not known, a field that is missing or cannot
/// be read.
pub fn answer(case: &Case) -> Result<ExpectedResults, BadCase> {
    let Some(ask) = case_fn(&case.kind) else {
        return Err(BadCase::Unsupported(case.kind.clone()));
    };
    // A graph is written in many ways, so that all of its keys are read where it is.
    let unknown = case.unknown_keys().first().copied().filter(|_| case.kind != "cpa-e2e");
    if let Some(key) = unknown.or_else(|| key_of_others(case)) {
        return Err(BadCase::UnknownKey(key.to_owned()));
    }
    let mut answers = ExpectedResults::new();
    for name in case.expect.keys() {
        answers.insert(name.clone(), ask(case, name)?);
    }
    Ok(answers)
}

/// A key that belongs to questions of other kinds, and would be passed over here.
fn key_of_others(case: &Case) -> Option<&'static str> {
    let several = |kind: &str| ["global", "mp-", "dl-"].iter().any(|begin| kind.starts_with(begin));
    let one = case.m.is_none_or(|m| m == 1) || several(&case.kind);
    let varies = ["global", "holistic", "cpa"];
    let plain = case.variant.is_none() || varies.iter().any(|begin| case.kind.starts_with(begin));
    if !one {
        Some("m")
    } else if !plain {
        Some("variant")
    } else {
        None
    }
}

/// The kinds of worked examples that are answered.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    ALL.iter().flat_map(|entry| entry.cases).map(|(kind, _)| *kind)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// No name means two things: of analyses, of contenders, of kinds.
    #[test]
    fn names_are_of_one_thing_each() {
        let once = |names: Vec<&str>| {
            let different: BTreeSet<&&str> = names.iter().collect();
            assert_eq!(different.len(), names.len(), "{names:?}");
        };
        once(ALL.iter().map(|entry| entry.name).collect());
        once(CONTENDERS.iter().map(|contender| contender.name).collect());
        once(kinds().collect());
        for contender in CONTENDERS.iter() {
            let of = ALL.iter().find(|entry| entry.name == contender.name);
            let own = of.is_none_or(|e| e.contenders.iter().any(|c| c.name == contender.name));
            assert!(own, "{} is also another analysis", contender.name);
        }
    }

    /// An analysis has one name in `check` and in `sweep`, which both understand the word that `sweep`
    /// had before.
    #[test]
    fn older_words_are_understood() {
        for (name, older) in [
            ("fp-preemptive", "fp"),
            ("edf-preemptive", "edf"),
            ("edf-nonpreemptive", "edf-np"),
            ("liu-layland", "rm-ll"),
            ("hyperbolic", "rm-hyperbolic"),
        ] {
            for word in [name, older] {
                assert_eq!(checked_by(word).map(|entry| entry.name), Some(name));
                assert_eq!(contender(word).map(|contender| contender.name), Some(name));
            }
        }
        let all: Vec<&str> = CONTENDERS.iter().filter_map(|contender| contender.older).collect();
        assert_eq!(all.len(), 5, "{all:?}");
        let taken = |word: &&str| {
            ALL.iter().any(|e| e.name == *word) || CONTENDERS.iter().any(|c| c.name == *word)
        };
        assert_eq!(all.iter().find(|word| taken(word)), None);
        assert!(checked_by("dm").is_none() && contender("fifo").is_none());
        assert!(checked_by("cbs").is_none());
    }
}
