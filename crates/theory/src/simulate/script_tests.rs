//! Threads that follow steps, simulated; expected by hand.

use hourglass_documents::simulation::SimulationDocument;
use hourglass_sim::smt;
use hourglass_tasks::TaskSet;
use hourglass_time::Span;

use super::{SimulationRequest, simulate};

/// Simulates an rt-app file of these threads for `ms`.
fn rt_app(threads: &str, ms: i64) -> SimulationDocument {
    let set = TaskSet::from_rt_app(&format!("{{\"tasks\": {{{threads}}}}}")).unwrap().set;
    document(set, ms)
}

fn document(set: TaskSet, ms: i64) -> SimulationDocument {
    let mut request = SimulationRequest::new(set);
    request.horizon = Some(Span::from_millis(ms));
    simulate(&request, &mut ()).unwrap().document
}

/// Name, jobs done, and processor time in us of each background thread.
fn background(document: &SimulationDocument) -> Vec<(&str, u64, u64)> {
    let all = document.background.iter();
    all.map(|one| (one.name.as_str(), one.jobs, one.cpu_time_ns / 1_000)).collect()
}

/// Both run at first, then they wake each other in turn.
#[test]
fn two_threads_resume_each_other() {
    let threads = r#"
        "a": {"cpus": [0], "run": 10000, "resume": "b", "suspend": "a"},
        "b": {"cpus": [1], "run": 10000, "resume": "a", "suspend": "b"}"#;
    let found = rt_app(threads, 105);
    assert!(found.tasks.is_empty());
    assert_eq!(background(&found), [("a", 6, 60_000), ("b", 5, 55_000)]);
}

/// The longer of two sides says how long a round takes; a response counts from the moment both went on.
#[test]
fn a_barrier_holds_the_shorter_side() {
    let threads = r#"
        "a": {"cpus": [0], "run": 1000, "barrier": "both"},
        "b": {"cpus": [1], "run": 3000, "barrier": "both"}"#;
    let found = rt_app(threads, 31);
    assert_eq!(background(&found), [("a", 11, 11_000), ("b", 10, 31_000)]);
    assert_eq!(found.background[0].max_response_ns, Some(1_000_000));
}

/// A job of the consumer arrives with that of the producer: 1 ms and its own 2 ms.
#[test]
fn a_semaphore_is_posted_and_taken() {
    let threads = r#"
        "consumer": {"cpus": [0], "policy": "SCHED_FIFO", "priority": 1, "sem_wait": "full", "run": 2000},
        "producer": {"cpus": [0], "policy": "SCHED_FIFO", "priority": 2, "run": 1000, "sem_post": "full",
                     "timer": {"ref": "unique", "period": 10000}}"#;
    let found = rt_app(threads, 95);
    let consumer = found.tasks.iter().find(|task| task.name == "consumer").unwrap();
    assert_eq!((consumer.jobs, consumer.hit, consumer.missed), (10, 10, 0));
    assert_eq!(consumer.max_response_ns, Some(3_000_000));
}

/// A delay comes before the first job, and the timer counts from it.
#[test]
fn a_delay_and_a_fork_say_when_a_thread_begins() {
    let threads = r#"
        "first": {"cpus": [0], "delay": 5000, "run": 1000, "fork": "second",
                  "timer": {"ref": "unique", "period": 10000}, "loop": 1},
        "second": {"cpus": [0], "instance": 0, "run": 2000, "timer": {"ref": "unique", "period": 20000}}"#;
    let found = rt_app(threads, 100);
    let of = |name: &str| found.tasks.iter().find(|task| task.name == name).unwrap();
    // The second fork starts at 6 ms: jobs come at 6, 26, 46, 66, 86.
    assert_eq!((of("second-fork0").jobs, of("second-fork0").max_response_ns), (5, Some(2_000_000)));
    assert_eq!((of("first").jobs, of("first").cpu_time_ns), (1, 1_000_000));
}

/// Two threads wait for each other's lock: the second waits until the first has signalled and waits itself.
#[test]
fn sync_hands_over_under_a_lock() {
    let threads = r#"
        "a": {"cpus": [0], "run": 1000, "sync": {"ref": "turn", "mutex": "m"}},
        "b": {"cpus": [1], "run": 4000, "sync": {"ref": "turn", "mutex": "m"}}"#;
    // b runs until 4 ms, wakes a and waits; a runs until 5 ms, wakes b and waits; b until 9 ms ...
    let found = rt_app(threads, 24);
    let times: Vec<u64> = background(&found).iter().map(|(_, _, time)| *time).collect();
    assert_eq!(times, [5_000, 20_000]);
}

/// Of rt-app's tutorial, example 8: each phase on a CPU of its own, the last on that of the thread.
#[test]
fn phases_change_cpus() {
    let threads = r#""a": {"cpus": [2], "phases": {"p": {"cpus": [0], "run": 1500},
        "q": {"cpus": [1], "run": 2500}, "r": {"run": 3500}}}"#;
    let set = TaskSet::from_rt_app(&format!("{{\"tasks\": {{{threads}}}}}")).unwrap().set;
    let mut request = SimulationRequest::new(set);
    (request.horizon, request.wants_schedule) = (Some(Span::from_millis(15)), true);
    let schedule = simulate(&request, &mut ()).unwrap().schedule;
    let found: Vec<(u32, i64)> =
        schedule.iter().map(|ran| (ran.cpu, ran.start_ns / 1_000)).collect();
    let wanted = [(0, 0), (1, 1_500), (2, 4_000), (0, 7_500), (1, 9_000), (2, 11_500)];
    assert_eq!(found, wanted);
}

/// The bug: without these steps it was reported to want a CPU for ever.
#[test]
fn a_background_thread_sleeps() {
    let text = "[[background]]\nname = \"b\"\nphases = [{ steps = [\"run 1ms\", \"sleep 3ms\"], loops = \"forever\" }]\n\
                [[task]]\nname = \"t\"\nwcet = \"1ms\"\nperiod = \"10ms\"\n";
    let found = document(TaskSet::from_toml(text).unwrap(), 40);
    assert!(found.background[0].cpu_time_ns < 11_000_000, "{:?}", found.background);
    assert!(found.background[0].jobs >= 8, "{:?}", found.background);
    assert!(found.warnings.iter().all(|warning| warning.id != "background-steps"));
}

#[test]
fn what_takes_no_time_is_named_and_ends() {
    let found = rt_app(r#""a": {"cpus": [0], "mem": 4096}"#, 5);
    assert!(found.warnings.iter().any(|warning| warning.id == "steps"), "{:?}", found.warnings);
    let yields = rt_app(r#""a": {"cpus": [0], "yield": ""}"#, 5);
    assert!(yields.background[0].cpu_time_ns > 4_900_000, "{:?}", yields.background);
}

/// A policy for shared cores has to know which jobs are to come, so that steps are not followed there.
#[test]
fn policies_for_shared_cores_take_wcet_and_period() {
    let text = "[machine]\ncores = [[0, 1]]\n[[task]]\nname = \"t\"\nwcet = \"2ms\"\nperiod = \"10ms\"\n\
                phases = [{ steps = [\"run 2ms\", \"timer unique 10ms\"] }]\n";
    let mut request = SimulationRequest::new(TaskSet::from_toml(text).unwrap());
    request.horizon = Some(Span::from_millis(100));
    request.smt = Some(smt::SmtPolicy::Disable);
    let found = simulate(&request, &mut ()).unwrap().document;
    assert!(found.warnings.iter().any(|warning| warning.id == "steps"), "{:?}", found.warnings);
    assert_eq!(found.tasks[0].hit, 10);
}
