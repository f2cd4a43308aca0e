//! Importing other descriptions of tasks: rt-app's files, the corpus, recorded runs.

use hourglass_documents::Policy;
use hourglass_documents::manifest::{Manifest, ThreadFacts};
use hourglass_documents::task_model::ThreadModel;
use hourglass_tasks::corpus::{self, Case, ResultValue};
use hourglass_tasks::rt_app::Imported;
use hourglass_tasks::{Activation, Preemption, Protocol, Scheduler, ServerKind, TaskSet};
use hourglass_time::Span;
use hourglass_trace::model;
use hourglass_trace::{Interval, IntervalStart};
use serde_json::{Value, json};

const RT_APP: &str = include_str!("../data/rt-app.json");
const CORPUS: &str = include_str!("../data/corpus.json");

fn us(value: i64) -> Span {
    Span::from_micros(value)
}

fn ns(value: i64) -> Span {
    Span::from_nanos(value)
}

fn notes(imported: &Imported) -> Vec<String> {
    imported.notes.iter().map(ToString::to_string).collect()
}

/// A file of our own could not say it again.
#[test]
fn a_name_with_a_control_character_is_refused() {
    let text = r#"{"tasks": {"a\u0001b": {"run": 1000, "timer": {"ref": "t", "period": 10000}}}}"#;
    let why = TaskSet::from_rt_app(text).unwrap_err().to_string();
    assert!(
        why.contains("a name has letters and no line breaks") && !why.contains('\u{1}'),
        "{why}"
    );
}

/// What `data/rt-app.json` says of each thread.
#[test]
fn threads_of_rt_app_become_tasks() {
    let imported = TaskSet::from_rt_app(RT_APP).unwrap();
    let set = &imported.set;
    let names: Vec<&str> = set.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["audio", "mixer", "video-0", "video-1", "modem"]);
    assert_eq!(imported.duration, Some(Span::from_secs(6)));

    let audio = set.task("audio").unwrap();
    assert_eq!((audio.wcet, audio.period), (us(3_000), us(8_000)), "the heavy phase");
    assert_eq!(audio.suspension, us(1_000));
    assert_eq!(audio.policy, Some(Policy::Fifo(80)));
    assert_eq!(audio.cpus.as_ref().unwrap().to_string(), "0");
    assert_eq!((audio.offset, audio.activation), (Some(us(2_000)), Activation::Periodic));
    let section = &audio.critical_sections[0];
    assert_eq!((section.length, section.count), (us(500), 2), "longest, and most often in a job");

    let mixer = set.task("mixer").unwrap();
    assert_eq!((mixer.wcet, mixer.period), (us(300), us(8_000)));
    assert_eq!(mixer.after, ["audio"], "which resumes it");

    let video = set.task("video-1").unwrap();
    assert_eq!((video.wcet, video.period), (us(17_000), us(33_000)), "run and sleep");
    assert_eq!(
        (video.activation, video.policy),
        (Activation::Sporadic, Some(Policy::RoundRobin(10)))
    );

    assert_eq!(set.server_of("modem").unwrap().kind, ServerKind::CbsHard);
    assert_eq!(set.server_of("modem").unwrap().budget, us(3_100));
    assert_eq!(
        (set.resources[0].name.as_str(), set.resources[0].protocol),
        ("bus", Protocol::Inheritance)
    );
    assert_eq!(set.background[0].name, "hog");
}

/// As in rt-app's own examples: `suspend` without a value, a name shared by threads, a waker that
/// executes nothing and so is no task, one that wakes twice in a job.
#[test]
fn chains_of_resumes() {
    let text = r#"{"tasks": {
        "tick": {"resume": "out", "timer": {"ref": "t", "period": 6000}},
        "out": {"run": 300, "resume": "track", "run": 400, "sleep": 50, "suspend"},
        "track": {"suspend", "run": 200, "resume": "twice", "run": 1, "resume": "twice"},
        "one": {"suspend": "out", "run": 1},
        "twice": {"suspend", "run": 100}
    }}"#;
    let imported = TaskSet::from_rt_app(text).unwrap();
    let tasks: Vec<(&str, Span, Span, &[String])> = imported
        .set
        .tasks
        .iter()
        .map(|task| (task.name.as_str(), task.wcet, task.period, &task.after[..]))
        .collect();
    let out = ["out".to_owned()];
    assert_eq!(
        tasks,
        [
            ("out", us(700), us(6_000), &[][..]),
            ("track", us(201), us(6_000), &out[..]),
            ("one", us(1), us(6_000), &[][..]),
        ]
    );
    assert_eq!(imported.set.tasks[0].suspension, us(50));
    let names: Vec<&str> = imported.set.background.iter().map(|b| b.name.as_str()).collect();
    assert_eq!(names, ["tick", "twice"]);
}

/// The steps are kept in their order, so that a run can replay them.
#[test]
fn steps_of_rt_app_are_kept() {
    let set = TaskSet::from_rt_app(RT_APP).unwrap().set;
    let program = set.task("audio").unwrap().program.as_ref().unwrap();
    let steps = |phase: usize| {
        let steps = program.phases[phase].steps.iter().map(ToString::to_string);
        steps.collect::<Vec<_>>().join("; ")
    };
    assert_eq!((program.loops, program.phases[0].loops), (None, Some(10)));
    assert_eq!(
        steps(0),
        "lock bus; run 500us; unlock bus; run 1.5ms; resume mixer; timer unique 8ms"
    );
    assert_eq!(
        steps(1),
        "run 2.5ms; lock bus; run 250us; unlock bus; lock bus; run 250us; unlock bus; sleep 1ms; \
         resume mixer; timer unique 8ms absolute"
    );
    assert_eq!(TaskSet::from_toml(&set.to_toml()).unwrap(), set);
}

#[test]
fn what_rt_app_says_and_tasks_cannot_is_noted() {
    assert_eq!(
        notes(&TaskSet::from_rt_app(RT_APP).unwrap()),
        [
            "thread 'audio': taskgroup is passed over; tasks have no such thing",
            "thread 'late': instance is 0 and no other thread forks it; it is omitted",
            "thread 'video-0': ends after 100 loops; taken as going on for ever",
            "thread 'video-1': ends after 100 loops; taken as going on for ever",
            "thread 'hog': never waits, so nothing bounds how often it runs; it is not a task and \
             runs in the background",
        ]
    );
}

/// A job that crosses the end of the loop counts as a whole; a timer of 0 is no wait.
#[test]
fn jobs_are_cut_at_timers() {
    let text = r#"{"tasks": {"a": {
        "run": 5, "timer0": {"ref": "t", "period": 0}, "run": 1,
        "timer": {"ref": "t", "period": 100}, "run": 70
    }}}"#;
    let imported = TaskSet::from_rt_app(text).unwrap();
    assert_eq!((imported.set.tasks[0].wcet, imported.set.tasks[0].period), (us(76), us(100)));
}

/// `sync` stands for lock, signal, wait, unlock (rt-app's tutorial); a thread that two others wake
/// has no period of its own.
#[test]
fn threads_that_wake_each_other() {
    let timer = r#""timer": {"ref": "unique", "period": 1000}"#;
    let text = format!(
        r#"{{"tasks": {{
            "one": {{"run": 10, "signal": "go", {timer}}},
            "two": {{"run": 10, "broad": "go", {timer}}},
            "three": {{"sync": {{"ref": "go", "mutex": "m"}}, "run": 10}}
        }}}}"#
    );
    let imported = TaskSet::from_rt_app(&text).unwrap();
    assert_eq!(
        notes(&imported),
        ["thread 'three': is not woken by one thread alone that has a period and does it once a \
          job; it is not a task and runs in the background"]
    );
    let steps = &imported.set.background[0].program.phases[0].steps;
    let steps: Vec<String> = steps.iter().map(ToString::to_string).collect();
    assert_eq!(steps, ["lock m", "signal go", "wait go m", "unlock m", "run 10us"]);
}

/// A timer may have no name: rt-app calls all of these by one, and so they are one timer.
#[test]
fn timers_of_rt_app_need_no_name() {
    let imported = |timer: &str| {
        let text = format!(r#"{{"tasks": {{"a": {{"run": 1000, "timer": {{{timer}}}}}}}}}"#);
        TaskSet::from_rt_app(&text).unwrap().set
    };
    let unnamed = imported(r#""period": 10000"#);
    assert_eq!(unnamed.tasks[0].period, us(10_000));
    assert_eq!(unnamed.tasks, imported(r#""ref": "unknown", "period": 10000"#).tasks);
}

/// rt-app's tutorial, example 9: `thread1` runs twice, `thread2` only when it is forked. Where no thread comes again,
/// there is no task, and the threads are run all the same.
#[test]
fn forked_threads_wait_for_their_start() {
    let text = r#"{"tasks": {
        "thread1": {"run": 10, "sleep": 10},
        "thread2": {"instance": 0, "delay": 5, "run": 20, "sleep": 20},
        "thread3": {"loop": 2, "phases": {"a": {"loop": 3, "fork": "thread1"}, "b": {"fork": "thread2", "run": 20}}}
    }}"#;
    let imported = TaskSet::from_rt_app(text).unwrap();
    let tasks = &imported.set.tasks;
    let of = |name: &str| tasks.iter().filter(|task| task.name.starts_with(name)).count();
    assert_eq!((of("thread1"), of("thread2"), of("thread3")), (7, 2, 0));
    assert!(imported.set.task("thread1").unwrap().program.as_ref().unwrap().forked().is_none());
    let second = imported.set.task("thread2-fork1").unwrap();
    assert_eq!(second.program.as_ref().unwrap().forked(), Some(("thread2", 1)));
    assert_eq!((second.wcet, second.period, second.offset), (us(20), us(40), None));
    let all = notes(&imported).join("\n");
    assert!(all.contains("'thread2': its delay is passed over"), "{all}");

    let imported =
        TaskSet::from_rt_app(r#"{"tasks": {"a": {"delay": 3, "suspend": "a", "run": 5}}}"#);
    let set = imported.unwrap().set;
    assert!(set.tasks.is_empty());
    let steps: Vec<String> = set.background[0]
        .program
        .phases
        .iter()
        .flat_map(|p| &p.steps)
        .map(ToString::to_string)
        .collect();
    assert_eq!(steps, ["start_after 3us", "suspend a", "run 5us"]);
    // As a file of tasks, and back.
    assert_eq!(TaskSet::from_toml(&set.to_toml()).unwrap(), set);
    // A fork in an endless loop starts no more than what is said.
    let imported = TaskSet::from_rt_app(
        r#"{"tasks": {"a": {"fork": "b", "run": 5, "sleep": 1}, "b": {"instance": 0, "loop": 1, "run": 1}}}"#,
    );
    let imported = imported.unwrap();
    assert_eq!(imported.set.background.len(), 256);
    assert!(notes(&imported).iter().any(|note| note.contains("starts 256 threads at most")));
    let itself = TaskSet::from_rt_app(r#"{"tasks": {"a": {"fork": "a", "run": 5, "sleep": 1}}}"#);
    assert!(itself.unwrap_err().to_string().contains("over 4000 threads"));
}

fn cases() -> Vec<Case> {
    corpus::read(CORPUS).unwrap().into_iter().map(Result::unwrap).collect()
}

/// That `written` has all of `read`, and besides only what says nothing: null, 0, and empty texts and lists.
fn has_all_of(read: &Value, written: &Value) -> bool {
    let nothing = [json!(null), json!(0), json!(""), json!([])];
    match (read, written) {
        (Value::Array(read), Value::Array(written)) => {
            read.len() == written.len()
                && read.iter().zip(written).all(|(read, written)| has_all_of(read, written))
        }
        (Value::Object(read), Value::Object(written)) => {
            let kept = |(key, value): (&String, &Value)| {
                written.get(key).is_some_and(|written| has_all_of(value, written))
            };
            let added =
                |(key, value): (&String, &Value)| read.contains_key(key) || nothing.contains(value);
            read.iter().all(kept) && written.iter().all(added)
        }
        (read, written) => read == written,
    }
}

/// Read as it stands, and written back without loss.
#[test]
fn the_corpus_is_read_without_loss() {
    let cases = cases();
    let text = serde_json::from_str::<Value>(CORPUS).unwrap();
    let written = serde_json::to_value(&cases).unwrap();
    assert!(has_all_of(&text, &written), "{written}");
    let last = cases.last().unwrap();
    assert_eq!(
        (last.kind.as_str(), last.unknown_keys()),
        ("mixed-criticality", vec!["hi", "levels"])
    );
    assert_eq!(last.tasks[0].other["hi"], ResultValue::Whole(2));
    assert_eq!(cases[0].unknown_keys(), [""; 0]);
    assert_eq!(cases[1].model.as_deref(), Some("discrete"));
}

/// A part that is not understood is reported, and hides nothing else.
#[test]
fn one_bad_case_hides_no_other() {
    let good = r#"{"id": "a", "kind": "fifo", "expect": {}, "remark": "a text is no key to obey"}"#;
    let text = format!(r#"[{{"id": 1, "kind": "fifo"}}, 7, {good}]"#);
    let read = corpus::read(&text).unwrap();
    let first = read[0].as_ref().unwrap_err();
    assert_eq!((first.id.as_str(), first.kind.as_str()), ("1", "fifo"));
    assert_eq!(read[1].as_ref().unwrap_err().id, "number 2");
    assert_eq!(read[2].as_ref().unwrap().unknown_keys(), [""; 0]);
    assert_eq!(
        corpus::read("{\"id\": 1}").unwrap_err().to_string(),
        "line 1, column 0: invalid type: map, expected a sequence"
    );
}

/// Columns are found by their names, in any order, a remark behind them.
#[test]
fn jobs_are_read_by_their_columns() {
    let cases = cases();
    let jobs = cases.iter().find(|case| case.id == "jobs").unwrap();
    let by_name = jobs.job_set().unwrap();
    assert_eq!((by_name[0].cost, by_name[0].deadline), ((1, 2), 10));
    let columns = Some("prio, deadline,cmax,cmin,rmax,rmin,id (EDF: prio = deadline)".to_owned());
    let turned = Case { columns, jobs: vec![vec![10, 10, 2, 1, 0, 0, 1]], ..jobs.clone() };
    assert_eq!(turned.job_set().unwrap(), by_name);
    let short = Case { jobs: vec![vec![1, 0, 0]], ..jobs.clone() };
    assert_eq!(short.job_set().unwrap_err(), corpus::BadJobs::ShortRow(1));
    let other = Case { columns: Some("id,r".to_owned()), ..jobs.clone() };
    assert_eq!(other.job_set().unwrap_err(), corpus::BadJobs::NoColumn("deadline"));
}

#[test]
fn cases_become_sets_of_tasks() {
    let cases = cases();
    let set = |id: &str| cases.iter().find(|case| case.id == id).unwrap().task_set();
    let fp = set("fp").unwrap();
    assert_eq!((fp.tasks[1].wcet, fp.tasks[1].jitter), (ns(19), ns(8)));
    assert_eq!(fp.priorities(), [Some(2), Some(1)], "decreasing, in the order of the list");
    let limited = set("limited").unwrap();
    assert_eq!(limited.tasks[1].preemption, Preemption::Limited { longest: ns(3), last: ns(2) });
    assert_eq!(limited.tasks[0].deadline(), ns(9));
    assert_eq!(set("suspends").unwrap().tasks[0].suspension, ns(3));
    let cbs = set("cbs").unwrap();
    assert_eq!((cbs.servers[0].kind, cbs.tasks[0].period), (ServerKind::CbsSoft, ns(8)));
    let chain = set("chain").unwrap();
    assert_eq!(chain.tasks[1].after, ["flow-1.1"]);
    let cpus: Vec<String> =
        chain.tasks.iter().map(|task| task.cpus.as_ref().unwrap().to_string()).collect();
    assert_eq!(cpus, ["0", "1", "1"]);
    let inside = set("inside").unwrap();
    assert_eq!(inside.server_of("task-1").unwrap().kind, ServerKind::PeriodicResource);
    let spin = set("spin").unwrap();
    assert_eq!(spin.resources[0].protocol, Protocol::Spin);
    assert_eq!(spin.cpus().to_string(), "0-1");
    assert_eq!(set("admission").unwrap().scheduler, Scheduler::Edf);
    assert_eq!(set("global").unwrap().cpus().to_string(), "0-1");
    assert_eq!(set("equals").unwrap().priorities(), [Some(1), Some(1)]);
    assert_eq!(set("jobs").unwrap_err().to_string(), "no tasks; add a table [[task]] for each");
}

fn interval(thread: u32, start_ns: i64, end_ns: i64, onset: IntervalStart) -> Interval {
    Interval::new(thread, 0, start_ns, end_ns, onset)
}

/// Jobs begin after waits; gaps within one do not count.
const TRACE: [(u32, i64, i64, IntervalStart); 8] = [
    (0, 0, 3_000, IntervalStart::Start),
    (1, 3_000, 8_000, IntervalStart::Start),
    (0, 8_000, 9_000, IntervalStart::Wait),
    (1, 9_000, 9_500, IntervalStart::Gap),
    (0, 9_500, 11_700, IntervalStart::Gap),
    (1, 11_700, 15_000, IntervalStart::Gap),
    (0, 15_900, 16_000, IntervalStart::Wait),
    (2, 16_000, 20_000, IntervalStart::Start),
];

fn trace() -> Vec<Interval> {
    TRACE.map(|(thread, start, end, onset)| interval(thread, start, end, onset)).to_vec()
}

fn manifest(threads: &[(u32, &str, &str)]) -> Manifest {
    let facts = |(id, workload, policy): &(u32, &str, &str)| ThreadFacts {
        id: *id,
        workload: (*workload).to_owned(),
        wake_up: "HR".to_owned(),
        policy_asked: (*policy).to_owned(),
        policy: (*policy).to_owned(),
        cpus: "0-1".to_owned(),
        finish_ns: 20_000,
        gap_ns: 100,
        loop_ns: 10,
        records_capacity: 100,
        ..ThreadFacts::default()
    };
    Manifest { threads: threads.iter().map(facts).collect(), ..Manifest::default() }
}

#[test]
fn jobs_of_a_trace() {
    let activities = model::of_intervals(&trace());
    let threads = activities.into_values().map(|seen| (ThreadModel::default(), seen)).collect();
    let seen = model::infer(threads);
    let times = |thread: &ThreadModel| (thread.fit.jobs, thread.execution.max_ns);
    assert_eq!((times(&seen[0]), times(&seen[1])), ((3, 3_200), (1, 8_800)));
    assert_eq!((seen[0].execution.min_ns, seen[0].activation.period_ns), (3_000, 7_900));
}

#[test]
fn a_recorded_run_becomes_a_set_of_tasks() {
    let manifest = manifest(&[
        (0, "PERIODIC 3us 8us", "FIFO:80"),
        (1, "CPU", "OTHER:0"),
        (2, "PERIODIC 17us 33us", "DEADLINE:17.1us/33us+"),
        (3, "CPU", "OTHER:0"),
    ]);
    let recorded = TaskSet::from_run(&manifest, &trace()).unwrap();
    let set = &recorded.set;
    let names: Vec<&str> = set.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["thread-0", "thread-2"]);
    assert_eq!((set.tasks[0].period, set.tasks[0].wcet), (us(8), ns(3_200)));
    assert_eq!(set.tasks[0].bcet, Some(ns(3_000)));
    assert_eq!(set.tasks[0].policy, Some(Policy::Fifo(80)));
    assert_eq!(set.servers[0].kind, ServerKind::CbsReclaim);
    assert_eq!(set.servers[0].budget, ns(17_100));
    assert_eq!(
        recorded.notes,
        [
            "thread 1 (CPU): never waits, so it has no period; omitted",
            "thread 3: never ran; omitted"
        ]
    );
    assert_eq!(
        TaskSet::from_run(&manifest, &[]).unwrap_err().to_string(),
        "the run: no thread of the run has jobs; record one that waits, such as PERIODIC 3ms 8ms"
    );
    // Issue 33, 6: one that did nothing but wait was told to record one that waits.
    let latencies = self::manifest(&[(0, "LAT 1ms", "FIFO:80")]);
    let said = TaskSet::from_run(&latencies, &[]).unwrap_err().to_string();
    assert!(
        said.starts_with("the run: its threads measured latencies and computed nothing"),
        "{said}"
    );
}

/// Without a stated period, the shortest distance that was seen, and no more than sporadic.
#[test]
fn a_period_can_be_what_was_seen() {
    let manifest = manifest(&[(0, "LAT 8us", "FIFO:80")]);
    let set = TaskSet::from_run(&manifest, &trace()).unwrap().set;
    assert_eq!((set.tasks[0].period, set.tasks[0].activation), (ns(7_900), Activation::Sporadic));
}
