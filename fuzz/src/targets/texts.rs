//! What people and other tools write.

use std::fmt::{Debug, Display};
use std::path::Path;
use std::str::FromStr;

use hourglass_documents::execution_time::{ExecutionTime, Sampler};
use hourglass_documents::{CpuSet, Policy};
use hourglass_measure::gates::Percentile;
use hourglass_measure::task_input::{self, Source};
use hourglass_measure::workload_file;
use hourglass_tasks::{Format, Fraction, ProgramStep, TaskSet, corpus};
use hourglass_time::Span;
use hourglass_workload::{models, wake};

use super::{no_examples, of_result, of_text};
use crate::{Answer, Body, Target};

/// What is read is written so that it is read as the same.
fn again<T: FromStr + Display + PartialEq + Debug>(kind: u64, text: &str) -> Answer
where
    T::Err: Display + Debug,
{
    let read = text.parse::<T>();
    if let Ok(value) = &read {
        let written = value.to_string();
        let second = written.parse::<T>();
        assert!(
            second.as_ref().is_ok_and(|second| second == value),
            "{text:?} is {value:?}, written {written:?}, read {second:?}"
        );
    }
    of_result(kind, read)
}

pub(super) const SPAN: Target = Target {
    name: "span",
    purpose: "time strings; what is read is written again as the same",
    examples: || {
        ["5.3ms", "1h", "-87.0us", "0.000000001s", "9223372036854775807ns"]
            .map(|t| t.as_bytes().to_vec())
            .to_vec()
    },
    start: || of_text(|text| again::<Span>(1, text)),
};

pub(super) const WORDS: Target = Target {
    name: "words",
    purpose: "the words of Appendix A and of options: workloads, timers, policies, CPUs, execution times",
    examples: || {
        [
            "LAT 5.3ms",
            "PERIODIC 3ms 8ms",
            "TICK:100",
            "FIFO:80",
            "0-1,3",
            "uniform:1ns,9ns",
            "3/4",
            "99.9",
            "run 3ms",
            "lock bus 2ms",
        ]
        .map(|t| t.as_bytes().to_vec())
        .to_vec()
    },
    start: || of_text(words),
};

fn words(text: &str) -> Answer {
    let words: Vec<&str> = text.split_whitespace().collect();
    let times = text.parse::<ExecutionTime>();
    if let Ok(times) = &times {
        let mut sampler = Sampler::new(times, 1);
        let longest = times.longest();
        for _ in 0..20 {
            let drawn = sampler.draw();
            assert!(drawn >= Span::ZERO, "{text:?} draws {drawn}");
            assert!(
                longest.is_none_or(|longest| drawn <= longest),
                "{text:?} draws {drawn}, at most {longest:?}"
            );
        }
    }
    let model = models::parse(&words);
    if let Ok(model) = &model {
        let written = model.to_string();
        let second = models::parse(&written.split_whitespace().collect::<Vec<_>>());
        let second = second.map(|second| second.to_string());
        assert!(
            second.as_ref() == Ok(&written),
            "{text:?} is written {written:?}, then {second:?}"
        );
    }
    [
        of_result(1, times),
        of_result(2, model),
        of_result(3, wake::parse(text)),
        again::<CpuSet>(4, text),
        again::<Policy>(5, text),
        again::<Fraction>(6, text),
        again::<Percentile>(7, text),
        again::<ProgramStep>(8, text),
        of_result(9, workload_file::read_seed(text)),
    ]
    .into_iter()
    .fold(0, |sum, one| sum.rotate_left(7) ^ one)
}

/// A set that was read is written and read as the same set, in both formats; explaining it and reading its
/// priorities and rates does no harm.
fn set(kind: u64, read: Result<TaskSet, impl Display>) -> Answer {
    if let Ok(set) = &read {
        let (toml, json) = (set.to_toml(), set.to_json());
        let second = TaskSet::from_toml(&toml).map_err(|error| error.to_string());
        assert!(second.as_ref() == Ok(set), "read again {second:?} from\n{toml}");
        let second = TaskSet::from_json(&json).map_err(|error| error.to_string());
        assert!(second.as_ref() == Ok(set), "read again {second:?} from\n{json}");
        let _ = (set.explain(), set.priorities(), set.cpus());
    }
    of_result(kind, read)
}

pub(super) const TOML: Target = Target {
    name: "tasks-toml",
    purpose: "files of tasks; what is read is written again as the same",
    examples: || {
        let files: [&[u8]; 6] = [
            include_bytes!("../../../crates/tasks/tests/data/section-5-5.toml"),
            include_bytes!("../../../crates/tasks/tests/data/section-5-5-tick.toml"),
            include_bytes!("../../../crates/tasks/tests/data/servers.toml"),
            include_bytes!("../../../crates/tasks/tests/data/smt.toml"),
            include_bytes!("../../../examples/tasks.toml"),
            include_bytes!("../../../examples/section-5-5.toml"),
        ];
        files.map(<[u8]>::to_vec).to_vec()
    },
    start: || of_text(|text| set(1, TaskSet::from_toml(text))),
};

pub(super) const JSON: Target = Target {
    name: "tasks-json",
    purpose: "the same as JSON",
    examples: || {
        let files = (TOML.examples)();
        let sets = files
            .iter()
            .filter_map(|file| TaskSet::from_toml(std::str::from_utf8(file).ok()?).ok());
        sets.map(|set| set.to_json().into_bytes()).collect()
    },
    start: || of_text(|text| set(1, TaskSet::from_json(text))),
};

pub(super) const RT_APP: Target = Target {
    name: "rt-app",
    purpose: "rt-app's JSON",
    examples: || vec![include_bytes!("../../../crates/tasks/tests/data/rt-app.json").to_vec()],
    start: || foreign(Some(Source::RtApp)),
};

fn foreign(source: Option<Source>) -> Body {
    of_text(move |text| {
        let read = task_input::parse(Path::new("input"), text, source);
        if let Ok(input) = &read {
            assert!(input.notes.iter().all(|note| !note.contains('\n')), "{:?}", input.notes);
            let toml = input.set.to_toml();
            let second = TaskSet::from_toml(&toml).map_err(|error| error.to_string());
            assert!(second.as_ref() == Ok(&input.set), "read again {second:?} from\n{toml}");
        }
        of_result(1, read)
            ^ of_result(2, task_input::parse(Path::new("input"), text, None)).rotate_left(9)
    })
}

pub(super) const SCHEDCAT: Target = Target {
    name: "schedcat",
    purpose: "SchedCAT's XML",
    examples: no_examples,
    start: || foreign(Some(Source::Foreign(Format::SchedCat))),
};

pub(super) const SIMSO: Target = Target {
    name: "simso",
    purpose: "SimSo's XML",
    examples: no_examples,
    start: || foreign(Some(Source::Foreign(Format::SimSo))),
};

pub(super) const MAST: Target = Target {
    name: "mast",
    purpose: "MAST's text",
    examples: no_examples,
    start: || foreign(Some(Source::Foreign(Format::Mast))),
};

pub(super) const AMALTHEA: Target = Target {
    name: "amalthea",
    purpose: "AMALTHEA's XML",
    examples: no_examples,
    start: || foreign(Some(Source::Foreign(Format::Amalthea))),
};

pub(super) const SAG: Target = Target {
    name: "sag",
    purpose: "the tables of schedule-abstraction-graph",
    examples: no_examples,
    start: || foreign(Some(Source::Foreign(Format::Sag))),
};

pub(super) const CORPUS: Target = Target {
    name: "corpus",
    purpose: "collections of worked examples",
    examples: || vec![include_bytes!("../../../crates/tasks/tests/data/corpus.json").to_vec()],
    start: || {
        of_text(|text| {
            let read = corpus::read(text);
            for case in read.iter().flatten().flatten() {
                let _ = (case.task_set(), case.job_set(), case.unknown_keys().len());
            }
            of_result(1, read)
        })
    },
};

pub(super) const WORKLOAD: Target = Target {
    name: "workload-file",
    purpose: "workload files of the command",
    examples: || {
        let files: [&[u8]; 4] = [
            include_bytes!("../../../examples/experiment.toml"),
            include_bytes!("../../../examples/audio.toml"),
            include_bytes!("../../../examples/audio-video.toml"),
            include_bytes!("../../../examples/video.json"),
        ];
        files.map(<[u8]>::to_vec).to_vec()
    },
    start: || {
        of_text(|text| {
            let online: CpuSet = [0, 1].into_iter().collect();
            let read = workload_file::parse("input", text, Some(&online));
            if let Err(error) = &read {
                assert!(!error.to_string().contains('\n'), "{error}");
            }
            of_result(1, read)
        })
    },
};
