//! What an analysis asks of a file, in the keys of the file, for a refusal of `--analysis`.
//!
//! Owns: [`refusal`], and [`meant`] for names that are no analysis. Must not: decide which analysis answers (`sched::catalogue` does).

use hourglass_documents::spelling;
use hourglass_sched::catalogue::{
    self, AnalysisEntry, CHECKED as ANALYSES, Question, Rule, SchedulabilityTest, Situation,
};
use hourglass_sched::fixed_priority::Sections;

use super::processor::Processor;

#[derive(Clone, Copy, Debug)]
enum Need {
    Rule(Rule),
    NoEdf,
    Sections(Sections),
    Suspension(bool),
    Bursts(bool),
    Thresholds(bool),
    Phases(bool),
    /// Each task has its own CPU, and no server.
    Alone,
    Server(bool),
    SharedCpus,
    Chain,
}

use Need::{Alone, Bursts, Chain, NoEdf, Phases, Server, SharedCpus, Suspension, Thresholds};

const FP: Need = Need::Rule(Rule::FixedPriority);
const EDF: Need = Need::Rule(Rule::Edf);
const FIFO: Need = Need::Rule(Rule::Fifo);
const FULL: Need = Need::Sections(Sections::Preemptive);
const NONE: Need = Need::Sections(Sections::NonPreemptive);
const LIMITED: Need = Need::Sections(Sections::Limited);
const FLOATING: Need = Need::Sections(Sections::Floating);
const NO_BURSTS: Need = Bursts(false);
const NO_THRESHOLDS: Need = Thresholds(false);

/// What each analysis asks for.
const NEEDS: [(&str, &[Need]); 23] = [
    ("fp-preemptive", &[FP, Alone, FULL, Suspension(false), NO_BURSTS, NO_THRESHOLDS]),
    ("fp-suspension", &[FP, Alone, FULL, NO_BURSTS, NO_THRESHOLDS, Phases(false)]),
    ("fp-nonpreemptive", &[FP, Alone, NONE, NO_BURSTS, NO_THRESHOLDS]),
    ("fp-limited-preemptive", &[FP, Alone, LIMITED, NO_BURSTS, NO_THRESHOLDS]),
    ("fp-floating-np", &[FP, Alone, FLOATING, NO_BURSTS, NO_THRESHOLDS]),
    ("fp-bursts", &[FP, Alone, Bursts(true)]),
    ("fp-thresholds", &[FP, Alone, Thresholds(true)]),
    ("fp-phases", &[FP, Alone, Phases(true)]),
    ("edf-preemptive", &[EDF, Alone, FULL, Suspension(false)]),
    ("edf-suspension", &[EDF, Alone, FULL, Suspension(true)]),
    ("edf-nonpreemptive", &[EDF, Alone, NONE]),
    ("edf-limited-preemptive", &[EDF, Alone, LIMITED]),
    ("edf-floating-np", &[EDF, Alone, FLOATING]),
    ("edf-demand", &[EDF, Server(false)]),
    ("fifo", &[FIFO, Alone]),
    ("supply", &[Server(true)]),
    ("holistic", &[FP, Chain]),
    ("global-fp-lc", &[NoEdf, SharedCpus]),
    ("global-fp-bc", &[NoEdf, SharedCpus]),
    ("global-edf", &[EDF, SharedCpus]),
    ("liu-layland", &[FP]),
    ("hyperbolic", &[FP]),
    ("np-jobset", &[Alone, NONE, NO_BURSTS, NO_THRESHOLDS]),
];

/// Why the analysis does not answer this processor of a file: the keys that are missing, or in the way, and the analysis that
/// does; or that no analysis answers all of the file.
pub(super) fn refusal_among(
    asked: &AnalysisEntry,
    processor: &Processor,
    all: &[Processor],
) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in all.iter().map(Processor::analysis) {
        if name != "none" && !names.contains(&name) {
            names.push(name);
        }
    }
    match names[..] {
        // Keys that make one of them answer all leave another without its question.
        [_, _, ..] => format!(
            "no analysis answers all of the file, which is for {} together; without --analysis, each answers its part",
            names.join(" and ")
        ),
        _ => refusal(asked, processor),
    }
}

/// The keys that are missing, or in the way, for the analysis to answer, and the analysis that does.
fn refusal(asked: &AnalysisEntry, processor: &Processor) -> String {
    let question = processor.question();
    let row = NEEDS.iter().find(|(name, _)| *name == asked.name);
    let needs = row.map_or(&[][..], |(_, needs)| needs);
    let missing: Vec<&str> =
        needs.iter().filter(|need| !need.is_met(&question)).map(|need| need.words()).collect();
    let fitting = match processor.analysis() {
        "none" => String::new(),
        name => format!("; as it is, {name} answers it"),
    };
    match missing.is_empty() {
        true => format!("it answers {}{fitting}", asked.about),
        false => format!("the file needs {}{fitting}", missing.join(", and ")),
    }
}

/// What a name may have meant, with a blank behind it: a test of `sweep`, which assigns or places, or an analysis whose
/// name is near. Empty if there is none.
pub(super) fn meant(name: &str) -> String {
    let test = catalogue::contender(name);
    let of = |test: &SchedulabilityTest| {
        ANALYSES.iter().find(|entry| entry.contenders.iter().any(|known| known.name == test.name))
    };
    if let Some((test, entry)) = test.and_then(|test| Some((test, of(test)?))) {
        let keys: Vec<&str> = test.name.split('-').filter_map(key_of_test).collect();
        let keys =
            if keys.is_empty() { String::new() } else { format!(" with {}", keys.join(", ")) };
        let (about, analysis) = (test.about, entry.name);
        return format!("it is a test of sweep ({about}), for which check has {analysis}{keys}; ");
    }
    let question = spelling::did_you_mean(name, ANALYSES.iter().map(|entry| entry.name));
    question.map_or_else(String::new, |question| format!("{question} "))
}

/// What a part of the name of a test of `sweep` is in a file, or among the options of `check`.
fn key_of_test(part: &str) -> Option<&'static str> {
    Some(match part {
        "rm" => "priorities = \"rate-monotonic\"",
        "dm" => "priorities = \"deadline-monotonic\"",
        "opa" => "priorities = \"optimal\"",
        "np" => "preemptive = false",
        "edf" => "scheduler = \"edf\"",
        "ff" => "--partition first-fit",
        "bf" => "--partition best-fit",
        "wf" => "--partition worst-fit",
        _ => return None,
    })
}

impl Need {
    fn is_met(self, of: &Question) -> bool {
        match self {
            Need::Rule(rule) => of.rule == rule,
            NoEdf => of.rule != Rule::Edf,
            // A threshold is told by its own key.
            Need::Sections(sections) => of.sections == sections || of.has_thresholds(),
            Suspension(wanted) => of.suspends() == wanted,
            Bursts(wanted) => of.has_bursts() == wanted,
            Thresholds(wanted) => of.has_thresholds() == wanted,
            Phases(wanted) => of.has_phases() == wanted,
            Alone => of.situation == Situation::Alone,
            Server(wanted) => matches!(of.situation, Situation::Inside(_)) == wanted,
            SharedCpus => matches!(of.situation, Situation::Shared(_)),
            // Tasks in chains are asked about elsewhere.
            Chain => false,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Need::Rule(Rule::FixedPriority) => "scheduler = \"fixed-priority\"",
            Need::Rule(Rule::Edf) => "scheduler = \"edf\"",
            Need::Rule(Rule::Fifo) => "scheduler = \"fifo\"",
            NoEdf => "scheduler = \"fixed-priority\" or \"fifo\"",
            Need::Sections(Sections::Preemptive) => {
                "no preemptive = false, longest_section or floating_section"
            }
            Need::Sections(Sections::NonPreemptive) => "preemptive = false in every task",
            Need::Sections(Sections::Limited) => "longest_section in a task",
            Need::Sections(Sections::Floating) => {
                "floating_section in a task, and no other key of preemption"
            }
            Suspension(true) => "suspension in a task",
            Suspension(false) => "no suspension",
            Bursts(true) => "arrivals in a task",
            Bursts(false) => "no arrivals",
            Thresholds(true) => "preemption_threshold in a task, with a priority in every task",
            Thresholds(false) => "no preemption_threshold",
            Phases(false) => "no offset",
            Phases(true) => {
                "offset and priority in every task, without jitter, arrivals, suspension and \
                 servers"
            }
            Alone => "one CPU for each task (cpus = 0), and no server for it",
            Server(true) => "a [[server]] whose tasks are named",
            Server(false) => "no [[server]]",
            SharedCpus => "several CPUs (cpus = \"0-1\" in [machine]), and tasks without cpus",
            Chain => "tasks that release each other (after)",
        }
    }
}

#[cfg(test)]
mod tests {
    use hourglass_tasks::TaskSet;

    use super::super::{CheckRequest, RequestError, check};
    use super::*;

    const PLAIN: &str = "wcet = \"1ms\"\nperiod = \"9ms\"\n";

    fn refused(head: &str, keys: &str, analysis: &str) -> Option<String> {
        let text = format!("{head}\n[[task]]\nname = \"a\"\n{PLAIN}{keys}");
        let request =
            CheckRequest { analysis: Some(analysis.to_owned()), ..CheckRequest::default() };
        match check(&TaskSet::from_toml(&text).unwrap(), &request) {
            Err(RequestError::Unfit { reason, .. }) => Some(reason),
            other => {
                other.unwrap();
                None
            }
        }
    }

    /// "Its scheduler is another" named no key: how to ask for EDF could not be found.
    #[test]
    fn a_refusal_names_the_keys_that_help() {
        let plain = "as it is, fp-preemptive answers it";
        for (analysis, needs, head, keys) in [
            ("edf", "scheduler = \"edf\"", "scheduler = \"edf\"", ""),
            ("fifo", "scheduler = \"fifo\"", "scheduler = \"fifo\"", ""),
            ("fp-nonpreemptive", "preemptive = false", "", "preemptive = false"),
            ("np-jobset", "preemptive = false", "", "preemptive = false"),
            ("fp-limited-preemptive", "longest_section", "", "longest_section = \"1ms\""),
            ("fp-floating-np", "floating_section", "", "floating_section = \"1ms\""),
            ("fp-bursts", "arrivals", "", "arrivals = [\"1ms\"]"),
            ("fp-thresholds", "preemption_threshold", "", "priority = 2\npreemption_threshold = 3"),
            ("fp-phases", "offset", "", "priority = 2\noffset = \"0ms\""),
            ("global-fp-lc", "several CPUs", "machine.cpus = \"0-1\"", ""),
        ] {
            let reason = refused("", "", analysis).unwrap();
            assert!(reason.starts_with(&format!("the file needs {needs}")), "{analysis}: {reason}");
            assert!(reason.ends_with(plain), "{analysis}: {reason}");
            assert_eq!(refused(head, keys, analysis), None, "{analysis}");
        }
        let (head, keys) = ("scheduler = \"edf\"", "suspension = \"1ms\"");
        assert_eq!(
            refused(head, keys, "fp-preemptive").unwrap(),
            "the file needs scheduler = \"fixed-priority\", and no suspension; as it is, \
             edf-suspension answers it"
        );
        assert_eq!(
            refused("", "", "holistic").unwrap(),
            "the file needs tasks that release each other (after); as it is, fp-preemptive \
             answers it"
        );
    }

    /// Of a file with a server and a task beside it, each analysis named the other as the one that answers it.
    #[test]
    fn a_file_for_several_analyses_is_sent_to_neither() {
        let mixes = [
            (
                "priority = 9\n[[server]]\nname = \"s\"\nkind = \"cbs-hard\"\nbudget = \"1ms\"\nperiod = \"9ms\"\n\
                 tasks = [\"b\"]\n[[task]]\nname = \"b\"\npriority = 1\nwcet = \"1ms\"\nperiod = \"9ms\"",
                ["fp-preemptive", "supply"],
            ),
            (
                "cpu = 0\npriority = 9\n[[task]]\nname = \"b\"\npriority = 1\nwcet = \"1ms\"\nperiod = \"9ms\"\ncpu = 1\n\
                 preemptive = false",
                ["fp-preemptive", "fp-nonpreemptive"],
            ),
        ];
        for (keys, names) in mixes {
            for asked in names.into_iter().chain(["edf-preemptive", "holistic"]) {
                let reason = refused("", keys, asked).unwrap();
                assert!(reason.contains(&names.join(" and ")), "{asked}: {reason}");
                assert!(reason.ends_with("without --analysis, each answers its part"), "{reason}");
            }
        }
    }

    /// `sweep` has tests that assign priorities or place tasks; `check` takes these from the file.
    #[test]
    fn tests_of_sweep_are_explained() {
        for (name, said) in [
            ("rm", "for which check has fp-preemptive with priorities = \"rate-monotonic\"; "),
            (
                "dm-np",
                "has fp-nonpreemptive with priorities = \"deadline-monotonic\", preemptive = false; ",
            ),
            ("p-edf-wf", "has edf-preemptive with scheduler = \"edf\", --partition worst-fit; "),
            ("g-edf-bar", "has global-edf with scheduler = \"edf\"; "),
            ("fp-premptive", "did you mean 'fp-preemptive'? "),
        ] {
            assert!(meant(name).ends_with(said), "{name}: {}", meant(name));
        }
        assert_eq!(meant("nothing near it"), "");
    }

    /// The two lists of names never disagree: what `sweep` calls by the name of an analysis is that analysis.
    #[test]
    fn names_of_sweep_are_those_of_check() {
        for test in catalogue::CONTENDERS.iter() {
            let owners = catalogue::ALL.iter().filter(|entry| entry.name == test.name);
            for entry in owners {
                assert!(entry.is_checked(), "{}", entry.name);
                assert!(entry.contenders.iter().any(|own| own.name == test.name), "{}", test.name);
            }
            let found = catalogue::checked_by(test.name).is_some();
            assert!(found || !meant(test.name).is_empty(), "{}", test.name);
        }
    }

    /// Whatever the file is, a refusal finds a key to change.
    #[test]
    fn no_refusal_is_without_a_key() {
        let heads = ["", "scheduler = \"edf\"", "scheduler = \"fifo\"", "machine.cpus = \"0-1\""];
        let keys = [
            "",
            "preemptive = false",
            "longest_section = \"1ms\"",
            "floating_section = \"1ms\"",
            "suspension = \"1ms\"",
            "arrivals = [\"1ms\"]",
            "priority = 2\npreemption_threshold = 3",
            "priority = 2\noffset = \"0ms\"",
            "[[server]]\nname = \"s\"\nkind = \"cbs-hard\"\nbudget = \"2ms\"\nperiod = \"9ms\"\n\
             tasks = [\"a\"]",
        ];
        let mut refusals = 0;
        for entry in ANALYSES.iter() {
            for (head, keys) in heads.iter().flat_map(|head| keys.map(|keys| (head, keys))) {
                if let Some(reason) = refused(head, keys, entry.name) {
                    let context = format!("{}: {head} {keys}: {reason}", entry.name);
                    assert!(reason.starts_with("the file needs "), "{context}");
                    refusals += 1;
                }
            }
        }
        assert!(refusals > 300, "{refusals}");
    }
}
