//! The example files are read as their comments say, and what is written reads back the same.

use hourglass_tasks::{
    Activation, Assignment, FactOrigin, Format, Fraction, Preemption, ProgramStep, Protocol,
    Scheduler, ServerKind, TaskSet, TaskSetWarning,
};
use hourglass_time::Span;

const BASE: &str = include_str!("../data/section-5-5.toml");
const TICK: &str = include_str!("../data/section-5-5-tick.toml");
const SHORTER: &str = include_str!("../data/section-5-5-shorter.toml");
const SMT: &str = include_str!("../data/smt.toml");
const SERVERS: &str = include_str!("../data/servers.toml");

fn ms(value: i64) -> Span {
    Span::from_millis(value)
}

/// Hourglass paper, section 5.5.
#[test]
fn the_papers_set() {
    let set = TaskSet::from_toml(BASE).unwrap();
    let numbers: Vec<_> =
        set.tasks.iter().map(|task| (task.wcet, task.period, task.deadline())).collect();
    assert_eq!(numbers, [(ms(3), ms(8), ms(8)), (ms(17), ms(33), ms(33))]);
    assert_eq!(set.priorities(), [Some(2), Some(1)]);
    assert_eq!(TaskSet::utilisation(&set.tasks[1]), Fraction::new(17, 33));
    assert_eq!(set.cpus().to_string(), "0");
    assert_eq!(set.warnings(), []);
}

/// What a tick delays is at most a tick, and there must be one.
#[test]
fn a_tick_delays_by_a_tick_at_most() {
    let refused =
        |old: &str, new: &str| TaskSet::from_toml(&TICK.replace(old, new)).unwrap_err().to_string();
    assert_eq!(
        refused("tick_jitter = \"8ms\"", "tick_jitter = \"11ms\""),
        "task 'video': tick_jitter = 11ms: longer than the tick of 10ms; the rest is jitter"
    );
    assert_eq!(
        refused("timer = \"TICK:100\"", ""),
        "task 'video': tick_jitter is what a tick delays, and no tick wakes the task; give it \
         timer = \"TICK:HZ\", or call the delay jitter"
    );
}

/// Hourglass paper, section 5.5: a tick of 10 ms, 8 ms of jitter, 19 ms of execution.
#[test]
fn the_papers_set_on_a_tick() {
    let set = TaskSet::from_toml(TICK).unwrap();
    let video = set.task("video").unwrap();
    assert_eq!((video.wcet, video.tick_delay(), video.tick()), (ms(19), ms(8), Some(ms(10))));
    assert_eq!(video.execution_time.as_ref().unwrap().longest(), Some(ms(17)));
    assert_eq!(set.task("audio").unwrap().tick(), None);
    let video = &TaskSet::from_toml(SHORTER).unwrap().tasks[1];
    assert_eq!((video.wcet, video.tick_delay(), video.tick()), (ms(14), ms(8), Some(ms(10))));
}

/// SMT paper, section 5.2; the matrix answers by the most specific entry.
#[test]
fn rates_on_siblings() {
    let set = TaskSet::from_toml(SMT).unwrap();
    let rate = |a, b| set.rate(a, b).to_string();
    assert_eq!(rate("products", "compile"), "3/5");
    assert_eq!(rate("compile", "products"), "4/5");
    assert_eq!(set.machine.core_of(1).to_string(), "0-1");
    assert_eq!(set.machine.core_of(3).to_string(), "2-3");
    assert_eq!(set.server_of("products").unwrap().budget, ms(55));
    assert!(set.server_of("compile").is_none());
    assert_eq!(set.warnings(), []);
}

#[test]
fn everything_that_can_be_said() {
    let set = TaskSet::from_toml(SERVERS).unwrap();
    let kinds: Vec<ServerKind> = set.servers.iter().map(|server| server.kind).collect();
    assert_eq!(
        kinds,
        [
            ServerKind::Polling,
            ServerKind::Deferrable,
            ServerKind::Sporadic,
            ServerKind::CbsHard,
            ServerKind::CbsSoft,
            ServerKind::PeriodicResource,
            ServerKind::ExplicitDeadline,
            ServerKind::CbsReclaim,
        ]
    );
    assert_eq!(set.servers[5].scheduler, Scheduler::Edf);
    assert_eq!(set.assignment(), Assignment::Given);
    let task = |name| set.task(name).unwrap();
    assert_eq!(task("requests").arrivals, [ms(0), ms(1), ms(30)]);
    assert_eq!(task("requests").activation, Activation::Sporadic);
    assert_eq!(task("alarms").priority(), Some(50));
    assert_eq!(task("modem").priority(), None);
    assert_eq!(task("filter").period, ms(20), "from the sensor, which it is after");
    assert_eq!(task("filter").preemption, Preemption::Threshold(75));
    assert_eq!(
        task("sensor").preemption,
        Preemption::Limited { longest: Span::from_micros(400), last: Span::from_micros(300) }
    );
    assert_eq!(task("pages").longest_section(), task("pages").wcet);
    let protocols: Vec<Protocol> = set.resources.iter().map(|resource| resource.protocol).collect();
    assert_eq!(protocols, [Protocol::Inheritance, Protocol::Ceiling, Protocol::Spin]);
    assert_eq!(set.ceiling(&set.resources[1]), Some(90));
    let program = task("pages").program.as_ref().unwrap();
    assert_eq!((program.loops, program.phases[0].loops), (Some(100), Some(3)));
    assert_eq!(program.phases[1].policy.unwrap().to_string(), "FIFO:5");
    assert_eq!(program.phases[0].steps[1], ProgramStep::Run(Span::from_micros(200)));
    assert_eq!(set.background[0].program.phases[0].loops, None);
    let pinned = TaskSetWarning::PinnedServer { server: "hard".to_owned(), others: 0 };
    assert_eq!(set.warnings(), [pinned]);
}

#[test]
fn what_is_written_reads_back_the_same() {
    for text in [BASE, TICK, SHORTER, SMT, SERVERS] {
        let set = TaskSet::from_toml(text).unwrap();
        let written = set.to_toml();
        assert_eq!(TaskSet::from_toml(&written).unwrap(), set, "{written}");
        assert_eq!(TaskSet::from_toml(&written).unwrap().to_toml(), written);
        let written = set.to_json();
        assert_eq!(TaskSet::from_json(&written).unwrap(), set, "{written}");
    }
}

/// What `hourglass check --explain` prints: what was said, what then holds, what follows.
#[test]
fn an_explanation_fills_in_what_was_not_said() {
    let explanation = TaskSet::from_toml(BASE).unwrap().explain();
    let kinds: Vec<&str> = explanation.subjects.iter().map(|subject| subject.kind).collect();
    assert_eq!(kinds, ["set", "machine", "task", "task"]);
    let fact = |subject: usize, key: &str| {
        let fact = explanation.subjects[subject].facts.iter().find(|fact| fact.key == key).unwrap();
        (fact.value.as_str(), fact.origin)
    };
    assert_eq!(fact(0, "scheduler").0, "fixed-priority");
    assert_eq!(fact(0, "priorities"), ("rate-monotonic", FactOrigin::Given));
    assert_eq!(fact(1, "cpus"), ("0", FactOrigin::Derived));
    assert_eq!(fact(1, "timer_granularity"), ("1ns", FactOrigin::Default));
    assert_eq!(explanation.subjects[3].name, "video");
    assert_eq!(fact(3, "wcet"), ("17ms", FactOrigin::Given));
    assert_eq!(fact(3, "deadline"), ("33ms", FactOrigin::Default));
    assert_eq!(fact(3, "offset"), ("any", FactOrigin::Default));
    assert_eq!(fact(3, "priority"), ("1", FactOrigin::Derived));
    assert_eq!(fact(3, "utilisation"), ("17/33", FactOrigin::Derived));
    assert_eq!(explanation.warnings, [""; 0]);
    // Other schedulers know no priorities, except where a server has them inside.
    let keys = |text: &str| {
        let explanation = TaskSet::from_toml(text).unwrap().explain();
        let facts = explanation.subjects.into_iter().flat_map(|subject| subject.facts);
        facts.map(|fact| fact.key).filter(|key| key.starts_with("priorit")).collect::<Vec<_>>()
    };
    let task = "[[task]]\nname = \"a\"\nwcet = \"1ms\"\nperiod = \"4ms\"\n";
    for (head, wanted) in [("", 2), ("scheduler = \"edf\"\n", 0), ("scheduler = \"fifo\"\n", 0)] {
        let found = keys(&format!("{head}{task}"));
        assert_eq!(found.len(), wanted, "{head}: {found:?}");
    }
}

/// Equal numbers: of two equal periods the first is the more urgent.
#[test]
fn priorities_are_assigned_as_was_said() {
    let tasks = r#"
        [[task]]
        name = "a"
        wcet = "1ms"
        period = "20ms"
        deadline = "5ms"
        [[task]]
        name = "b"
        wcet = "1ms"
        period = "10ms"
        [[task]]
        name = "c"
        wcet = "1ms"
        period = "10ms"
        [[task]]
        name = "d"
        wcet = "1ms"
        period = "10ms"
        policy = "OTHER:0"
    "#;
    let priorities =
        |head: &str| TaskSet::from_toml(&format!("{head}\n{tasks}")).unwrap().priorities();
    assert_eq!(priorities(""), [Some(3), Some(2), Some(1), None]);
    assert_eq!(priorities("priorities = \"rate-monotonic\""), [Some(1), Some(3), Some(2), None]);
    assert_eq!(priorities("priorities = \"optimal\""), [None; 4]);
}

#[test]
fn times_may_have_a_blank_and_numbers_a_unit() {
    let text = "unit = \"1 us\"\n[[task]]\nname = \"a\"\nwcet = 1500\nperiod = \"8 ms\"";
    let set = TaskSet::from_toml(text).unwrap();
    assert_eq!((set.tasks[0].wcet, set.tasks[0].period), (Span::from_micros(1500), ms(8)));
}

/// The example in the description of the format.
#[test]
fn the_documented_example() {
    let text = include_str!("../../src/format.md");
    let example = text.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let set = TaskSet::from_toml(example).unwrap();
    assert_eq!(set.task("log").unwrap().period, ms(5));
    assert_eq!(set.ceiling(&set.resources[0]), Some(3));
    assert_eq!(set.warnings(), []);
}

/// Large and deep files end, and soon.
#[test]
fn large_files() {
    let mut text = String::new();
    for position in 0..4_000 {
        let after = if position == 3_999 {
            "period = \"1s\"".to_owned()
        } else {
            format!("after = \"t{}\"", position + 1)
        };
        text += &format!("[[task]]\nname = \"t{position}\"\nwcet = \"1us\"\n{after}\n");
    }
    let set = TaskSet::from_toml(&text).unwrap();
    assert_eq!(set.tasks[0].period, Span::SECOND, "along 3999 steps");
    let circle = text.replace("period = \"1s\"", "after = \"t0\"");
    let message = TaskSet::from_toml(&circle).unwrap_err().to_string();
    assert!(message.starts_with("tasks wait for each other: t0 after t1 after"), "{message}");
    for open in ["[", "{a = "] {
        let deep = format!("a = {}", open.repeat(100_000));
        assert!(TaskSet::from_toml(&deep).is_err());
    }
    assert!(TaskSet::from_json(&"[".repeat(100_000)).is_err());
}

#[test]
fn formats_are_distinguished() {
    let set = TaskSet::from_toml(SERVERS).unwrap();
    for (text, format) in [
        (BASE, Format::Toml),
        (&set.to_toml(), Format::Toml),
        ("[[task]]", Format::Toml),
        ("[machine]", Format::Toml),
        ("", Format::Toml),
        (&set.to_json(), Format::Json),
        ("{", Format::Json),
        (include_str!("../data/rt-app.json"), Format::RtApp),
        ("{\"tasks\": {\"a\": {\"suspend\"}},}", Format::RtApp),
        (include_str!("../data/corpus.json"), Format::Corpus),
        ("[]", Format::Corpus),
    ] {
        assert_eq!(Format::of(text), format, "{text}");
    }
}
