//! Nothing that a file says is passed over in silence: change one value, and the answer changes, or what is noted, or
//! the file is refused. Source: the same kind of fault in six readers (phases, loops, tickers, reservations).

use std::path::Path;

use hourglass_measure::task_input;
use hourglass_theory::check::{self, CheckRequest};
use hourglass_theory::simulate::{self, SimulationObserver};

/// A file that is read, and what in it may change without a word, with the reason.
struct Sample {
    name: &'static str,
    text: &'static str,
    silent: &'static [(&'static str, SilenceReason)],
}

/// Why a value does not matter.
enum SilenceReason {
    /// A note with these words says so.
    Noted(&'static str),
    For(&'static str),
}
use SilenceReason::{For, Noted};

use crate::answers::{MAST, RT_APP_DEADLINE};

const RT_APP_LOOPS: &str = r#"{ "tasks": {
  "burst": { "cpus": [0], "policy": "SCHED_FIFO", "priority": 20, "phases": {
    "work": { "loop": 4, "run": 500 },
    "wait": { "loop": 1, "sleep": 500, "timer": { "ref": "t", "period": 8000, "mode": "absolute" } } } },
  "other": { "cpus": [0], "policy": "SCHED_FIFO", "priority": 10, "delay": 100, "run": 3000,
    "timer": { "ref": "u", "period": 16000, "mode": "absolute" } } },
  "global": { "duration": 1, "default_policy": "SCHED_FIFO" } }"#;

/// Two tasks, of which one may come late.
const SAG: &str = "Task ID, Job ID, Arrival min, Arrival max, Cost min, Cost max, Deadline, Priority\n\
  0, 70, 0, 0, 2, 2, 10, 2\n0, 71, 10, 10, 2, 2, 20, 2\n1, 72, 0, 3, 3, 4, 10, 1\n1, 73, 10, 13, 3, 4, 20, 1\n";

const NO_NAME: SilenceReason = For("a name");
const DERIVED: SilenceReason = For("it follows from what the tasks say");
const ONE_USER: SilenceReason = For("a lock that one task alone takes delays no other");
const PEERLESS: SilenceReason = For("no other task has its priority");
const FITS: SilenceReason = For("a greater budget changes nothing of jobs that it covers");
const SPORADIC: SilenceReason = For("the worst case comes a period apart, too");
const RANGE: SilenceReason =
    For("priorities of tasks are within it or not, and are taken as they are");
const ORDER: SilenceReason = For("of priorities, the order alone counts");

const SAMPLES: &[Sample] = &[
    Sample {
        name: "rt-app",
        text: include_str!("../../../tasks/tests/data/rt-app.json"),
        silent: &[
            ("// again \"run\": a second event", For("a comment")),
            ("\"mode\" : \"absolute\"", For("a relative timer differs only after a late job")),
            ("\"dl-runtime\" : 3100", FITS),
            ("\"dl-period\" : 8000", For("the same")),
            ("\"hog\" : { \"run\" : 1000 }", Noted("'hog': never waits")),
            (
                "\"late\" : { \"instance\" : 0, \"run\" : 10, \"sleep\" : 10 }",
                Noted("'late': instance is 0"),
            ),
            ("\"lock_pages\" : false", For("where the pages of a workload are changes no verdict")),
        ],
    },
    Sample {
        name: "rt-app loops",
        text: RT_APP_LOOPS,
        silent: &[
            ("absolute", For("as above")),
            ("\"SCHED_FIFO\", \"priority\": 20", PEERLESS),
            ("default_policy\": \"SCHED_FIFO\"", For("each thread has its own")),
        ],
    },
    Sample {
        name: "rt-app reservations",
        text: RT_APP_DEADLINE,
        silent: &[
            ("absolute", For("as above")),
            ("2500, \"dl-period", FITS),
            ("3100, \"dl-period", FITS),
        ],
    },
    Sample {
        name: "schedcat",
        text: include_str!("../../../tasks/tests/data/schedcat.xml"),
        silent: &[
            ("version=\"1.0\"", For("of the format")),
            ("utilization=\"0.5\" count=\"2\"", DERIVED),
            ("wss=\"64\"", Noted("working-set size is passed over")),
            ("res_id=\"3\"", NO_NAME),
            ("max_write_length=\"50\"", ONE_USER),
            ("max_read_length=\"20\"", ONE_USER),
        ],
    },
    Sample {
        name: "simso",
        text: include_str!("../../../tasks/tests/data/simso.xml"),
        silent: &[
            ("overhead_activate=\"5\"", Noted("overhead_activate is passed over")),
            ("memory_access_time=\"100\"", Noted("taken to execute for its WCET")),
            ("id=\"1\" cl_overhead", NO_NAME),
            ("activationDate=\"1\"", For("no other task runs beside its chain")),
            (
                "ACET=\"1\" et_stddev=\"0.1\" base_cpi=\"1.0\" instructions=\"0\" mix=\"0.5\"",
                Noted("taken to execute for its WCET"),
            ),
            ("task_type=\"APeriodic\" period=\"0\"", For("it comes as often as its predecessor")),
            ("priority=\"7\"", ORDER),
        ],
    },
    Sample {
        name: "mast",
        text: include_str!("../../../tasks/tests/data/mast.txt"),
        silent: &[
            ("Max_Priority => 400, Min_Priority => 1", RANGE),
            ("Fixed_Priority_Policy", For("the chain has one job at a time")),
            ("Non_Preemptible_FP_Policy", For("the chain has one job at a time")),
            ("Ceiling => 12", ORDER),
            ("Best_Case_Execution_Time => 1", For("jobs that are shorter make none late")),
        ],
    },
    Sample {
        name: "mast ticker",
        text: MAST,
        silent: &[
            ("Max_Priority => 100", RANGE),
            ("Min_Priority => 1,", RANGE),
            ("Max_Interrupt_Priority => 101", RANGE),
            ("Min_Interrupt_Priority  => 101", RANGE),
        ],
    },
    Sample {
        name: "amalthea",
        text: include_str!("../../../tasks/tests/data/amalthea.xml"),
        silent: &[
            ("xmi:version=\"2.0\"", For("of the format")),
            ("ordered=\"true\"", For("the sum is the same in any order")),
            (
                "xsi:type=\"am:DiscreteValueStatistics\" lowerBound=\"10\" upperBound=\"90000\"",
                For("the core of the task has ticks of its own"),
            ),
        ],
    },
    Sample {
        name: "np-schedulability",
        text: SAG,
        silent: &[("70", NO_NAME), ("71", NO_NAME), ("72", NO_NAME), ("73", NO_NAME)],
    },
    Sample {
        name: "ticks",
        text: include_str!("../../../tasks/tests/data/section-5-5-tick.toml"),
        silent: &[],
    },
    Sample {
        name: "smt",
        text: include_str!("../../../tasks/tests/data/smt.toml"),
        silent: &[("55ms", FITS), ("sporadic", SPORADIC)],
    },
    Sample {
        name: "phases",
        text: PHASES,
        silent: &[("length = 1 }", For("it delays the lower task as execution does"))],
    },
];

/// Phases, sections, jitter and costs in our own format.
const PHASES: &str = r#"unit = "1ms"
horizon = "500ms"
[machine]
cpus = "0"
[machine.overheads]
context_switch = "3us"
tick_period = 4
tick_cost = "2us"
cache_delay = "40us"
[[resource]]
name = "m"
protocol = "inheritance"
[[task]]
name = "a"
period = 10
wcet = 3
jitter = "500us"
priority = 20
critical_sections = [{ resource = "m", length = 1 }]
phases = [{ loops = 2, steps = ["run 1ms"] }, { steps = ["lock m", "run 1ms", "unlock m", "timer t 10ms absolute"] }]
[[task]]
name = "b"
period = 20
deadline = 15
wcet = 4
priority = 10
critical_sections = [{ resource = "m", length = 2, count = 2 }]
"#;

/// Words of which a file may have each where it has another.
const WORDS: &[&[&str]] = &[
    &["SCHED_FIFO", "SCHED_RR", "SCHED_OTHER"],
    &["fp", "edf"],
    &["absolute", "relative"],
    &["true", "false"],
    &["yes", "no"],
    &["polling", "deferrable", "sporadic", "cbs-hard", "cbs-soft", "cbs-reclaim"],
    &["inheritance", "ceiling", "spin", "plain"],
    &["rate-monotonic", "deadline-monotonic", "given"],
    &["periodic", "sporadic"],
    &["Fixed_Priority_Policy", "Non_Preemptible_FP_Policy"],
    &["Immediate_Ceiling_Resource", "Priority_Inheritance_Resource"],
    &["Periodic", "Sporadic"],
    &["FixedPriorityPreemptive", "EarliestDeadlineFirst"],
    &["preemptive", "non_preemptive"],
    &["FP", "EDF"],
    &["run", "sleep"],
    &["ms", "us"],
    &["DiscreteValueConstant", "DiscreteValueStatistics"],
];

struct NullObserver;

impl SimulationObserver for NullObserver {
    fn reached(&mut self, _: u64, _: u64) {}
}

/// What is said of a file, in its own words; the reason for which it is refused, otherwise.
fn answer(text: &str) -> Result<String, String> {
    let read = task_input::parse(Path::new("file"), text, None).map_err(|why| why.to_string())?;
    let checked =
        check::check(&read.set, &CheckRequest::default()).map_err(|why| why.to_string())?;
    let request = simulate::SimulationRequest {
        notes: read.notes.clone(),
        ..simulate::SimulationRequest::new(read.set)
    };
    let simulated =
        simulate::simulate(&request, &mut NullObserver).map(|simulated| simulated.document);
    Ok(format!("{:?}\n{checked:?}\n{simulated:?}", read.notes))
}

/// Where the words and numbers of a file begin and end, but for comments.
fn tokens(text: &str) -> Vec<(usize, usize)> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    let bytes = text.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let begins_line = at == 0 || bytes[at - 1] == b'\n';
        if begins_line && (bytes[at] == b'#' || bytes[at..].starts_with(b"--")) {
            at += bytes[at..].iter().take_while(|byte| **byte != b'\n').count();
            continue;
        }
        let length = bytes[at..].iter().take_while(|byte| is_part(**byte)).count();
        if length > 0 {
            found.push((at, at + length));
        }
        at += length.max(1);
    }
    found
}

/// What may stand in the place of a word or number.
fn others(token: &str) -> Vec<String> {
    let digits = token.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(token.len());
    let (number, unit) = token.split_at(digits);
    if let Ok(number) = number.parse::<f64>()
        && unit.bytes().all(|byte| byte.is_ascii_alphabetic())
    {
        let halved = if number.fract() == 0.0 { (number / 2.0).ceil() } else { number / 2.0 };
        let all = [number * 2.0, halved, number + 1.0];
        return all.into_iter().filter(|n| *n != number).map(|n| format!("{n}{unit}")).collect();
    }
    let groups = WORDS.iter().filter(|group| group.contains(&token));
    groups
        .flat_map(|group| group.iter().filter(|word| **word != token))
        .map(ToString::to_string)
        .collect()
}

#[test]
fn nothing_is_passed_over_in_silence() {
    let mut passed_over = Vec::new();
    for Sample { name, text, silent } in SAMPLES {
        let before = answer(text).unwrap_or_else(|why| panic!("{name}: {why}"));
        let mut used = vec![false; silent.len()];
        for (begin, end) in tokens(text) {
            for other in others(&text[begin..end]) {
                let changed = format!("{}{other}{}", &text[..begin], &text[end..]);
                let after = answer(&changed);
                if after.is_err() || after.is_ok_and(|after| after != before) {
                    continue;
                }
                let within = |(part, _): &(&str, SilenceReason)| {
                    text.match_indices(part).any(|(at, _)| at <= begin && end <= at + part.len())
                };
                match silent.iter().position(within) {
                    Some(at) => used[at] = true,
                    None => {
                        let line = text[..begin].lines().count();
                        let whole = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
                        passed_over.push(format!(
                            "{name}, line {line}: {} -> {other}: {whole}",
                            &text[begin..end]
                        ));
                    }
                }
            }
        }
        for ((part, why), used) in silent.iter().zip(used) {
            let holds = match why {
                Noted(words) => before.contains(words),
                For(reason) => !reason.is_empty(),
            };
            if !(used && holds) {
                passed_over.push(format!("{name}: {part} needs no exception, or has no note"));
            }
        }
    }
    assert!(passed_over.is_empty(), "{}", passed_over.join("\n"));
}
