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

use crate::corpus::{BadCase, busy, chains, global, graph, misc_cases};
use crate::sections::Sections;

pub use contenders::{ProcessorScope, SchedulabilityTest, TestOutcome};
pub use question::{Bounds, Question, Rule, Situation};
pub use terms::Term;

/// Answers one question of a worked example.
pub(crate) type CaseFn = fn(&Case, &str) -> Result<ResultValue, BadCase>;

/// Bounds the responses of a question, or says in a sentence why its numbers do not fit.
type BoundsFn = fn(&Question) -> Result<Bounds, String>;

/// An analysis.
#[derive(Clone, Copy, Debug)]
pub struct AnalysisEntry {
    /// The name, by which `check` selects it.
    pub name: &'static str,
    /// The question that it answers.
    pub about: &'static str,
    /// The authors and the paper.
    pub source: &'static str,
    /// Whether `check` asks it.
    pub is_checked: bool,
    /// How it takes part in comparisons.
    pub contenders: &'static [SchedulabilityTest],
    /// Whether it answers a question; the first entry that does is used.
    fits: fn(&Question) -> bool,
    /// The bounds of response times, if it has any on a single processor.
    bounds: Option<BoundsFn>,
    /// The kinds of worked examples that it answers.
    cases: &'static [(&'static str, CaseFn)],
}

/// An analysis that `check` uses by name only.
const fn checked(name: &'static str, about: &'static str, source: &'static str) -> AnalysisEntry {
    AnalysisEntry { is_checked: true, ..example(name, about, source) }
}

/// An analysis that only worked examples ask.
const fn example(name: &'static str, about: &'static str, source: &'static str) -> AnalysisEntry {
    AnalysisEntry {
        name,
        about,
        source,
        is_checked: false,
        contenders: &[],
        fits: |_| false,
        bounds: None,
        cases: &[],
    }
}

/// All analyses, in the order in which they are listed and in which the first that fits is asked.
pub const ALL: &[AnalysisEntry] = &[
    AnalysisEntry {
        fits: |q| q.is(Rule::FixedPriority, Sections::Preemptive) && !q.suspends(),
        bounds: Some(question::fixed_priority),
        contenders: contenders::FIXED_PRIORITY,
        cases: &[
            ("fp-preemptive", busy::fixed_priority),
            ("jitter-two-readings", busy::fixed_priority),
            ("trap-equal-priority", busy::equal_priorities),
        ],
        ..checked(
            "fp-preemptive",
            "response times under fixed priorities",
            "Joseph and Pandya 1986; Lehoczky 1990; Audsley et al. 1993; Tindell et al. 1994",
        )
    },
    AnalysisEntry {
        fits: |q| q.is(Rule::FixedPriority, Sections::Preemptive) && q.suspends(),
        bounds: Some(question::fixed_priority),
        cases: &[("fp-suspension", busy::fixed_priority)],
        ..checked(
            "fp-suspension",
            "the same with tasks that suspend themselves",
            "Chen et al. 2019",
        )
    },
    AnalysisEntry {
        fits: |q| q.is(Rule::FixedPriority, Sections::NonPreemptive),
        bounds: Some(question::fixed_priority),
        contenders: contenders::NOT_PREEMPTED,
        cases: &[("fp-nonpreemptive", busy::fixed_priority)],
        ..checked(
            "fp-nonpreemptive",
            "response times under fixed priorities, jobs not preempted",
            "Davis, Burns, Bril and Lukkien 2007",
        )
    },
    AnalysisEntry {
        fits: |q| q.is(Rule::FixedPriority, Sections::Limited),
        bounds: Some(question::fixed_priority),
        cases: &[("fp-limited-preemptive", busy::fixed_priority)],
        ..checked(
            "fp-limited-preemptive",
            "response times under fixed priorities, jobs preempted at fixed points",
            "Bril, Lukkien and Verhaegh 2009; Bozhko and Brandenburg 2020",
        )
    },
    AnalysisEntry {
        fits: |q| q.is(Rule::FixedPriority, Sections::Floating),
        bounds: Some(question::fixed_priority),
        cases: &[("fp-floating-np", busy::fixed_priority)],
        ..checked(
            "fp-floating-np",
            "response times under fixed priorities, sections anywhere not preempted",
            "Bozhko and Brandenburg 2020",
        )
    },
    AnalysisEntry {
        fits: |q| q.is_alone(Rule::FixedPriority) && q.has_bursts(),
        bounds: Some(question::bursts),
        ..checked(
            "fp-bursts",
            "response times under fixed priorities, jobs arriving in bursts",
            "Tindell, Burns and Wellings 1994; Richter 2005",
        )
    },
    AnalysisEntry {
        fits: |q| q.is_alone(Rule::FixedPriority) && q.has_thresholds(),
        bounds: Some(question::thresholds),
        ..checked(
            "fp-thresholds",
            "response times under fixed priorities with preemption thresholds",
            "Wang and Saksena 1999; Regehr 2002; Keskin, Bril and Lukkien 2010",
        )
    },
    AnalysisEntry {
        fits: |q| q.is_alone(Rule::FixedPriority) && q.has_phases(),
        bounds: Some(question::phases),
        ..checked(
            "fp-phases",
            "response times under fixed priorities, the phases of all tasks being known",
            "Leung and Merrill 1980; Palencia and Gonzalez Harbour 1998",
        )
    },
    AnalysisEntry {
        fits: |q| q.is(Rule::Edf, Sections::Preemptive) && !q.suspends(),
        bounds: Some(question::edf),
        contenders: contenders::EDF,
        cases: &[("edf-preemptive", busy::edf)],
        ..checked(
            "edf-preemptive",
            "response times and demand under earliest deadline first",
            "Spuri 1996; Zhang and Burns 2009",
        )
    },
    AnalysisEntry {
        fits: |q| q.is(Rule::Edf, Sections::Preemptive) && q.suspends(),
        bounds: Some(question::edf),
        ..checked(
            "edf-suspension",
            "response times under EDF with tasks that suspend themselves",
            "G\u{fc}nzel, von der Br\u{fc}ggen and Chen 2022; Spuri 1996",
        )
    },
    AnalysisEntry {
        fits: |q| q.is(Rule::Edf, Sections::NonPreemptive),
        bounds: Some(question::edf),
        contenders: contenders::EDF_NOT_PREEMPTED,
        cases: &[("edf-nonpreemptive", busy::edf)],
        ..checked(
            "edf-nonpreemptive",
            "the same, jobs not preempted",
            "Jeffay, Stanat and Martel 1991; George, Rivierre and Spuri 1996",
        )
    },
    AnalysisEntry {
        fits: |q| q.is(Rule::Edf, Sections::Limited),
        bounds: Some(question::edf),
        cases: &[("edf-limited-preemptive", busy::edf)],
        ..checked(
            "edf-limited-preemptive",
            "the same, jobs preempted at fixed points",
            "Bozhko and Brandenburg 2020",
        )
    },
    AnalysisEntry {
        fits: |q| q.is(Rule::Edf, Sections::Floating),
        bounds: Some(question::edf),
        cases: &[("edf-floating-np", busy::edf)],
        ..checked(
            "edf-floating-np",
            "the same, sections anywhere not preempted",
            "Baruah 2005; Bozhko and Brandenburg 2020",
        )
    },
    AnalysisEntry {
        contenders: contenders::DEMAND,
        cases: &[("edf-feasibility", busy::demand), ("dbf", busy::demand)],
        ..checked(
            "edf-demand",
            "whether deadlines hold under EDF, by demand alone",
            "Baruah, Mok and Rosier 1990; Zhang and Burns 2009",
        )
    },
    AnalysisEntry {
        fits: |q| q.is_alone(Rule::Fifo) && q.set.is_plain(),
        bounds: Some(question::fixed_priority),
        cases: &[("fifo", busy::fifo)],
        ..checked("fifo", "response times first come, first served", "Bedarkar et al. 2022")
    },
    AnalysisEntry {
        fits: |q| matches!(q.situation, Situation::Inside(_)),
        bounds: Some(question::supply),
        cases: &[
            ("supply-periodic", busy::supply),
            ("supply-edp", busy::supply),
            ("supply-rta", busy::supply),
        ],
        ..checked(
            "supply",
            "response times under fixed priorities, and demand under EDF, inside a server",
            "Shin and Lee 2003; Easwaran, Anand and Lee 2007",
        )
    },
    AnalysisEntry {
        cases: &[("holistic-fp", chains::holistic)],
        ..checked(
            "holistic",
            "chains of tasks across CPUs under fixed priorities",
            "Tindell and Clark 1994; Palencia and Gonzalez Harbour 1998",
        )
    },
    AnalysisEntry {
        fits: |q| matches!(q.situation, Situation::Shared(_)) && q.rule != Rule::Edf,
        contenders: contenders::GLOBAL_LC,
        cases: &[("global-fp-rta-lc", global::fixed_priority)],
        ..checked(
            "global-fp-lc",
            "response times under global fixed priorities, limited carry-in",
            "Guan, Stigge, Yi and Yu 2009",
        )
    },
    AnalysisEntry {
        contenders: contenders::GLOBAL_BC,
        cases: &[("global-fp-bc", global::fixed_priority)],
        ..checked(
            "global-fp-bc",
            "response times under global fixed priorities",
            "Bertogna and Cirinei 2007",
        )
    },
    AnalysisEntry {
        fits: |q| matches!(q.situation, Situation::Shared(_)) && q.rule == Rule::Edf,
        contenders: contenders::GLOBAL_EDF,
        cases: &[("global-edf", global::earliest_deadline)],
        ..checked(
            "global-edf",
            "global EDF: GFB, BAK, BCL, BAR and response times, whichever accepts",
            "Goossens et al. 2003; Baker 2003; Bertogna et al. 2005, 2007; Baruah 2007",
        )
    },
    AnalysisEntry {
        contenders: contenders::LIU_LAYLAND,
        cases: &[("bounds", misc_cases::bounds)],
        ..checked(
            "liu-layland",
            "the utilisation bound of rate-monotonic priorities",
            "Liu and Layland 1973",
        )
    },
    AnalysisEntry {
        contenders: contenders::HYPERBOLIC,
        ..checked(
            "hyperbolic",
            "the hyperbolic bound of rate-monotonic priorities",
            "Bini, Buttazzo and Buttazzo 2003",
        )
    },
    AnalysisEntry {
        cases: &[("mp-spinlock", chains::spin_locks)],
        ..example(
            "spin",
            "response times with spin locks between processors",
            "Gai, Lipari and Di Natale 2001; Wieder and Brandenburg 2013",
        )
    },
    AnalysisEntry {
        cases: &[("cpa-e2e", graph::event_models)],
        ..example("cpa", "task graphs by event models", "Richter 2005; Schliecker 2010")
    },
    AnalysisEntry {
        cases: &[("dl-admission", misc_cases::admission)],
        ..example("admission", "the sum of utilisations against a limit", "Linux, SCHED_DEADLINE")
    },
    AnalysisEntry {
        cases: &[("np-jobset", misc_cases::jobset)],
        ..checked(
            "np-jobset",
            "jobs that arrive at known times and are not preempted, by all schedules",
            "Nasri and Brandenburg 2017",
        )
    },
    AnalysisEntry {
        cases: &[("cbs", misc_cases::trace), ("edf-trace", misc_cases::trace)],
        ..example("cbs", "constant-bandwidth servers under EDF, traced", "Abeni and Buttazzo 1998")
    },
    AnalysisEntry {
        cases: &[
            ("slack-monitor", misc_cases::slack_monitor),
            ("slack-multi", misc_cases::slack_multi),
        ],
        ..example(
            "slack",
            "the slack of promised work beside a sibling",
            "equations 5 to 9 of the SMT paper",
        )
    },
];

impl AnalysisEntry {
    /// Whether it is for such questions.
    #[must_use]
    pub fn fits(&self, question: &Question) -> bool {
        (self.fits)(question)
    }

    /// Its bounds of response times, proven. `None` if it gives none of a single processor.
    ///
    /// # Errors
    /// The numbers do not fit it, in a sentence.
    #[must_use]
    pub fn bounds(&self, question: &Question) -> Option<Result<Bounds, String>> {
        self.bounds.map(|bounds| bounds(question))
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
    LazyLock::new(|| ALL.iter().filter(|entry| entry.is_checked).copied().collect());

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
