//! Sets of tasks through the simulator, and what is kept of them.

use hourglass_documents::Cause;
use hourglass_documents::simulation::{SimulationDocument, TaskFindings};
use hourglass_runs::open_run;
use hourglass_sim::{self as sim, OverrunPolicy, ServerRank, smt};
use hourglass_tasks::TaskSet;
use hourglass_time::Span;
use hourglass_trace::cause::Successor;
use hourglass_trace::{Interval, IntervalStart, JobRecord};

use super::{
    Choices, Releases, SimulationFailure, SimulationRequest, SimulationResult, model, simulate,
};

fn set(text: &str) -> TaskSet {
    TaskSet::from_toml(text).unwrap()
}

fn simulated(request: &SimulationRequest) -> SimulationResult {
    simulate(request, &mut ()).unwrap()
}

fn document(text: &str) -> SimulationDocument {
    simulated(&SimulationRequest::new(set(text))).document
}

fn ms(ms: u64) -> Option<u64> {
    Some(ms * 1_000_000)
}

/// Section 5.5 of the Hourglass paper, with this for the second task.
fn section_5_5(second: &str) -> String {
    format!(
        "unit = \"1ms\"\n[[task]]\nname = \"audio\"\nwcet = 3\nperiod = 8\n\
         [[task]]\nname = \"video\"\nperiod = 33\n{second}\n"
    )
}

fn video(second: &str) -> TaskFindings {
    document(&section_5_5(second)).tasks[1].clone()
}

/// Section 5.5: the response times are 3 and 29 ms; with 8 ms of jitter and 19 ms of execution 39 ms,
/// which is 37 ms from the actual release of the second job; 12 ms of execution mend it.
#[test]
fn the_papers_response_times() {
    let found = document(&section_5_5("wcet = 17"));
    assert_eq!(found.tasks[0].max_response_ns, ms(3));
    assert_eq!(found.tasks[1].max_response_ns, ms(29));
    assert_eq!((found.horizon_ns, found.horizon_from.as_str()), (264_000_000, "hyperperiod"));
    assert_eq!((found.jobs, found.failed()), (33 + 8, 0));
    let late = video("wcet = 19\njitter = 8");
    assert_eq!(late.max_response_ns, ms(39));
    assert_eq!(late.max_response_from_release_ns, ms(37));
    assert!(late.missed > 0);
    assert_eq!(video("wcet = 12\njitter = 8").missed, 0);
}

/// Section 5.5: with the 10 ms ticks of 2002 the second task misses about half of its deadlines
/// (142 of 285 there), with 12 ms of execution none.
#[test]
fn ticks_make_it_miss_about_half() {
    let ticked = video("wcet = 17\ntimer = \"TICK:100\"");
    let jobs = ticked.hit + ticked.missed;
    assert_eq!((jobs, ticked.lost), (40, 0));
    assert!((12..=28).contains(&ticked.missed), "{ticked:?}");
    assert_eq!(video("wcet = 12\ntimer = \"TICK:100\"").missed, 0);
}

/// Multiples of 33 ms wait up to 9 ms for a tick of 10 ms by default.
#[test]
fn a_tick_delays_no_longer_than_is_said() {
    let alone = |rest: &str| {
        let text = "unit = \"1ms\"\n[[task]]\nname = \"a\"\nwcet = 1\nperiod = 33\n";
        document(&format!("{text}timer = \"TICK:100\"\n{rest}")).tasks[0].max_response_ns
    };
    assert_eq!(alone(""), ms(10));
    assert_eq!(alone("tick_jitter = 8"), ms(9));
}

/// The contract: hit, missed and lost add up to the periods that are over. A thread of a run skips
/// the periods that it runs past.
#[test]
fn jobs_that_never_start_are_lost() {
    let overload = "unit = \"1ms\"\n[[task]]\nname = \"a\"\nwcet = 15\nperiod = 10\n";
    let mut request = SimulationRequest::new(set(overload));
    request.horizon = Some(Span::from_millis(90));
    request.late = OverrunPolicy::Skip;
    let found = simulated(&request).document.tasks.remove(0);
    // Done at 15, 35, 55, 75; the jobs at 10, 30, 50, 70 find one running; one at 80 is not done.
    assert_eq!((found.hit, found.missed, found.lost), (0, 5, 4));
    request.late = OverrunPolicy::Queue;
    let found = simulated(&request).document.tasks.remove(0);
    // Done at 15, 30, 45, 60, 75, 90; those of 60, 70 and 80 wait, of which two are never begun.
    assert_eq!((found.hit, found.missed + found.lost), (0, 9));
    assert!(found.lost >= 2, "{found:?}");
    assert!(found.max_response_ns >= ms(40));
}

/// What never got a CPU is lost, the first job too: missed are jobs that started.
#[test]
fn a_first_job_that_never_starts_is_lost() {
    let starved = "unit = \"1ms\"\n[[task]]\nname = \"a\"\nwcet = 10\nperiod = 10\n\
                   [[task]]\nname = \"b\"\nwcet = 1\nperiod = 20\n";
    let mut request = SimulationRequest::new(set(starved));
    request.horizon = Some(Span::from_millis(60));
    let found = simulated(&request).document.tasks.remove(1);
    assert_eq!((found.hit, found.missed, found.lost, found.cpu_time_ns), (0, 0, 3, 0));
    // One that starts and is not finished is missed, and those behind it are lost.
    request.set =
        set(&starved.replace("wcet = 10", "wcet = 9").replace("wcet = 1\n", "wcet = 9\n"));
    let found = simulated(&request).document.tasks.remove(1);
    assert_eq!((found.hit, found.missed, found.lost, found.cpu_time_ns), (0, 1, 2, 6_000_000));
}

/// All that is drawn comes from the seed.
#[test]
fn a_seed_replays() {
    let text = section_5_5("wcet = 17\njitter = 5\nexecution_time = \"uniform:1ms,17ms\"");
    let with = |seed| {
        let mut request = SimulationRequest::new(set(&text));
        (request.seed, request.releases) = (seed, Releases::Random);
        request.horizon = Some(Span::from_secs(10));
        simulated(&request).document.tasks
    };
    assert_eq!(with(1), with(1));
    assert_ne!(with(1), with(2));
}

/// Everything that a file can say and a simulation does not do as it stands has a warning.
#[test]
fn what_means_something_else_is_named() {
    let text = r#"
        unit = "1ms"
        [[task]]
        name = "a"
        wcet = 4
        period = 20
        blocking = 1
        offset = 3
        critical_sections = [{ resource = "r", length = 1, count = 2 }]
        [[task]]
        name = "b"
        wcet = 4
        period = 40
        suspension = 2
        critical_sections = [{ resource = "r", length = 1 }]
        [[task]]
        name = "c"
        wcet = 4
        period = 80
        floating_section = 2
        [[task]]
        name = "d"
        wcet = 1
        period = 80
        [[resource]]
        name = "r"
        [[server]]
        name = "s"
        kind = "periodic-resource"
        budget = 2
        period = 40
        tasks = ["d"]
        [[task]]
        name = "e"
        wcet = 1
        period = 80
        jitter = 5
        phases = [{ steps = ["run 1ms", "timer t 80ms"] }]
        [[background]]
        name = "cat"
        phases = [{ steps = ["run 1ms", "sleep 1ms"], loops = "forever" }]
    "#;
    let found = document(text);
    let mut ids: Vec<&str> = found.warnings.iter().map(|warning| warning.id.as_str()).collect();
    ids.sort_unstable();
    let wanted = [
        "blocking",
        "critical-sections",
        "critical-sections",
        "floating-sections",
        "jitter",
        "phases",
        "server-supply",
        "suspension",
    ];
    assert_eq!(ids, wanted);
    assert_eq!(found.failed(), 0, "{:?}", found.tasks);
}

/// A server of the deadline class begins with a job here, and elsewhere whenever it was made.
#[test]
fn where_a_server_begins_is_said() {
    for (deadline, says) in [("", false), ("deadline = 20", false), ("deadline = 19", true)] {
        let text = format!(
            "{}[[server]]\nname = \"s\"\nkind = \"cbs-hard\"\nbudget = 4\nperiod = 20\n{deadline}\ntasks = [\"a\"]\n",
            "[[task]]\nname = \"a\"\nwcet = \"2ms\"\nperiod = \"40ms\"\n"
        );
        let text = text.replace("= 4\n", "= \"4ms\"\n").replace("= 20", "= \"20ms\"");
        let found = document(&text.replace("= 19", "= \"19ms\""));
        let said = found.warnings.iter().any(|warning| warning.id == "server-begin");
        assert_eq!(said, says, "{deadline}: {:?}", found.warnings);
    }
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    let refused = |text: &str| model(&set(text), Choices::default()).unwrap_err();
    let optimal = section_5_5("wcet = 17").replace("unit", "priorities = \"optimal\"\nunit");
    assert!(matches!(refused(&optimal), SimulationFailure::NoPriorities));
    let held = "wcet = 5\ncritical_sections = [{ resource = \"r\", length = 3, count = 2 }]\n\
                [[resource]]\nname = \"r\"";
    assert!(matches!(refused(&section_5_5(held)), SimulationFailure::SectionsOverWcet { .. }));
    let mut request = SimulationRequest::new(set(&section_5_5("wcet = 17")));
    request.smt = Some(smt::SmtPolicy::Disable);
    let refused = simulate(&request, &mut ()).unwrap_err().to_string();
    assert!(refused.starts_with("--smt: no core has two CPUs"), "{refused}");
}

/// The simulator speaks of threads by number, a user knows tasks by name.
#[test]
fn refusals_name_the_task() {
    let text = "[machine]\ncpus = \"0-2\"\ncores = [[0, 1]]\n\
                [[task]]\nname = \"everywhere\"\nwcet = \"1ms\"\nperiod = \"8ms\"\n";
    let mut request = SimulationRequest::new(set(text));
    request.smt = Some(smt::SmtPolicy::Disable);
    let refused = simulate(&request, &mut ()).unwrap_err().to_string();
    assert!(refused.contains("task 'everywhere' may run on several cores"), "{refused}");
}

/// Where priorities are assigned, a server without one takes its place by its period among the tasks.
#[test]
fn servers_rank_among_tasks() {
    let text = r#"
        unit = "1ms"
        [[task]]
        name = "fast"
        wcet = 1
        period = 5
        [[task]]
        name = "slow"
        wcet = 1
        period = 50
        [[task]]
        name = "served"
        wcet = 1
        period = 100
        [[server]]
        name = "s"
        kind = "deferrable"
        budget = 1
        period = 10
        tasks = ["served"]
    "#;
    let found = model(&set(text), Choices::default()).unwrap();
    let priority = |at: usize| match found.system.threads[at].class {
        sim::Class::Fifo(priority) => priority,
        class => panic!("{class:?}"),
    };
    let ServerRank::Priority(server) = found.system.servers[0].rank else { panic!("no priority") };
    assert!(priority(0) > server && server > priority(1), "{found:?}");
    assert_eq!(found.system.threads[2].server, Some(0));
}

/// CPUs keep the machine's numbers in what is reported.
#[test]
fn cpus_keep_their_numbers() {
    let text = "[machine]\ncpus = \"4,7\"\n\
                [[task]]\nname = \"a\"\nwcet = \"1ms\"\nperiod = \"8ms\"\ncpus = 7\n";
    let folder = tempfile::tempdir().unwrap();
    let mut request = SimulationRequest::new(set(text));
    request.folder = Some(folder.path().join("run"));
    let kept = simulated(&request).folder.unwrap().unwrap();
    let recalled = open_run(&kept).unwrap();
    assert!(recalled.intervals().unwrap().all(|interval| interval.unwrap().cpu == 7));
    assert_eq!(recalled.document.result.threads[0].cpus, [7]);
}

/// A kept simulation is a run folder: its intervals are what each task received, and as a recorded
/// run it gives the tasks back.
#[test]
fn a_simulation_is_kept_as_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let mut request = SimulationRequest::new(set(&section_5_5("wcet = 17")));
    request.folder = Some(folder.path().join("run"));
    let done = simulated(&request);
    let recalled = open_run(&done.folder.unwrap().unwrap()).unwrap();
    let manifest = &recalled.document.manifest;
    assert_eq!(manifest.clock.source, "sim");
    assert_eq!(manifest.simulation.as_ref(), Some(&done.document));
    let intervals: Vec<Interval> = recalled.intervals().unwrap().map(Result::unwrap).collect();
    assert!(intervals.is_sorted_by_key(|interval| interval.start_ns));
    for (thread, task) in recalled.document.result.threads.iter().zip(&done.document.tasks) {
        let of = || intervals.iter().filter(|interval| interval.thread == thread.id);
        let received: i64 = of().map(Interval::duration_ns).sum();
        assert_eq!(received as u64, task.cpu_time_ns);
        assert_eq!(of().count() as u64, thread.intervals);
        let jobs =
            of().filter(|i| matches!(i.onset, IntervalStart::Start | IntervalStart::Wait)).count();
        assert_eq!(jobs as u64, task.jobs);
        let deadlines = thread.deadlines.unwrap();
        assert_eq!((deadlines.hit, deadlines.missed), (task.hit, task.missed));
        assert_eq!(thread.name.as_ref(), Some(&task.name));
    }
    assert!(recalled.document.result.switches > 0);
    let again = TaskSet::from_run(manifest, &intervals).unwrap().set;
    let times = |set: &TaskSet| -> Vec<(Span, Span)> {
        set.tasks.iter().map(|task| (task.wcet, task.period)).collect()
    };
    assert_eq!(times(&again), times(&request.set));
}

/// Jobs one by one are what the document counts, and so are the causes of gaps: who had the CPU is in the trace.
#[test]
fn jobs_and_causes_are_exact() {
    let folder = tempfile::tempdir().unwrap();
    let mut request = SimulationRequest::new(set(&section_5_5("wcet = 17\ntimer = \"TICK:100\"")));
    request.folder = Some(folder.path().join("run"));
    let done = simulated(&request);
    let mut recalled = open_run(&done.folder.unwrap().unwrap()).unwrap();
    let end_ns = done.document.simulated_ns as i64;
    let jobs: Vec<_> = recalled.jobs().unwrap().map(Result::unwrap).collect();
    for task in &done.document.tasks {
        let of = || jobs.iter().filter(|job| job.thread == task.thread);
        assert_eq!(of().filter(|job| !job.lost).count() as u64, task.jobs, "{}", task.name);
        assert_eq!(of().filter(|job| job.is_missed(end_ns)).count() as u64, task.missed);
        let response = of().filter_map(|job| Some(job.finished_ns? - job.release_ns)).max();
        assert_eq!(response.map(|ns| ns as u64), task.max_response_ns);
        let due = |job: &&JobRecord| job.deadline_ns - job.release_ns == task.deadline_ns as i64;
        assert!(of().all(|job| due(&job)));
    }
    assert!(jobs.iter().any(|job| job.is_missed(end_ns)));
    let gaps = recalled.gaps().unwrap();
    assert!(!gaps.is_empty());
    for gap in &gaps {
        let audio = Successor::OfRun(0);
        assert_eq!((gap.thread, gap.cause), (1, Cause::ContextSwitchInvoluntary));
        assert_eq!((gap.to_thread, gap.confidence()), (Some(audio), 1.0));
        assert_eq!(gap.occupants.longest().unwrap().ns, gap.length_ns());
    }
    let mut lengths: Vec<u64> = gaps.iter().map(|gap| gap.length_ns()).collect();
    lengths.sort_unstable();
    let median = lengths[lengths.len().div_ceil(2) - 1];
    let found = recalled.document.result.threads[1].gaps;
    assert_eq!((found.count, found.max_ns), (lengths.len() as u64, *lengths.last().unwrap()));
    assert!(found.p50_ns.abs_diff(median) <= median / 1000 + 1, "{found:?}, the median {median}");
    recalled.find_causes();
    let [cause] = &recalled.document.result.causes[..] else { panic!("one cause") };
    assert_eq!((cause.count, cause.confidence), (gaps.len() as u64, 1.0));
    assert_eq!(cause.ran[0].name.as_deref(), Some("audio"));
}

/// A job that waits for a lock gave its CPU up, and one whose server has spent its budget was stopped.
#[test]
fn locks_and_budgets_are_causes() {
    let causes = |text: &str| {
        let folder = tempfile::tempdir().unwrap();
        let mut request = SimulationRequest::new(set(text));
        request.folder = Some(folder.path().join("run"));
        let recalled = open_run(&simulated(&request).folder.unwrap().unwrap()).unwrap();
        let gaps = recalled.gaps().unwrap();
        gaps.iter().map(|gap| (gap.thread, gap.cause)).collect::<Vec<_>>()
    };
    let server = "[[task]]\nname = \"a\"\nwcet = \"3ms\"\nperiod = \"20ms\"\n\
                  [[server]]\nname = \"s\"\nkind = \"cbs-hard\"\nbudget = \"1ms\"\nperiod = \"5ms\"\ntasks = [\"a\"]\n";
    let found = causes(server);
    assert!(found.contains(&(0, Cause::DeadlineBudget)), "{found:?}");
    let lock = "[[resource]]\nname = \"l\"\nprotocol = \"inheritance\"\n\
                [[task]]\nname = \"high\"\nwcet = \"3ms\"\nperiod = \"20ms\"\noffset = \"2ms\"\n\
                critical_sections = [{ resource = \"l\", length = \"1ms\" }]\n\
                [[task]]\nname = \"low\"\nwcet = \"6ms\"\nperiod = \"40ms\"\noffset = \"0ms\"\n\
                critical_sections = [{ resource = \"l\", length = \"4ms\" }]\n";
    let found = causes(lock);
    assert!(found.contains(&(0, Cause::ContextSwitchVoluntary)), "{found:?}");
    assert!(found.contains(&(1, Cause::ContextSwitchInvoluntary)), "{found:?}");
}

/// What ran adds up to what the document says, also where nothing is kept; with less room the oldest stay.
#[test]
fn a_schedule_comes_back_if_it_is_wanted() {
    let plain = SimulationRequest::new(set(&section_5_5("wcet = 17")));
    assert!(simulated(&plain).schedule.is_empty());
    let wanted = SimulationRequest { wants_schedule: true, ..plain };
    let whole = simulated(&wanted);
    for task in &whole.document.tasks {
        let of_task = whole.schedule.iter().filter(|interval| interval.thread == task.thread);
        let received: i64 = of_task.map(Interval::duration_ns).sum();
        assert_eq!(received.unsigned_abs(), task.cpu_time_ns, "{}", task.name);
    }
    assert!(whole.schedule.is_sorted_by_key(|interval| interval.start_ns));
    assert_eq!(whole.dropped, 0);
    let short = simulated(&SimulationRequest { records: 5, ..wanted });
    assert_eq!((short.schedule.len(), short.dropped), (5, whole.schedule.len() as u64 - 5));
}

/// A trace that is too long keeps its beginning, counts the rest and says so.
#[test]
fn a_full_trace_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut request = SimulationRequest::new(set(&section_5_5("wcet = 17")));
    (request.folder, request.records) = (Some(folder.path().join("run")), 10);
    let recalled = open_run(&simulated(&request).folder.unwrap().unwrap()).unwrap();
    assert_eq!(recalled.intervals().unwrap().count(), 10);
    let result = &recalled.document.result;
    let counted: u64 = result.threads.iter().map(|thread| thread.intervals).sum();
    let dropped: u64 = result.threads.iter().map(|thread| thread.records_dropped).sum();
    assert_eq!(counted, dropped + 10);
    assert!(result.warnings.iter().any(|warning| warning.id == "records-dropped"));
}

/// Section 5.2 of the SMT paper: 55 of 70 ms reserved, 50 needed, beside others at 3/5 of the speed.
#[test]
fn the_three_policies_of_the_smt_paper() {
    let text = r#"
        unit = "1ms"
        [machine]
        cores = [[0, 1]]
        [[task]]
        name = "product"
        wcet = 55
        execution_time = "50ms"
        period = 70
        [[background]]
        name = "integer"
        phases = [{ steps = ["run 1ms"], loops = "forever" }]
        [[interference]]
        task = "product"
        rate = "3/5"
    "#;
    let with = |policy| {
        let mut request = SimulationRequest::new(set(text));
        request.smt = Some(policy);
        request.horizon = Some(Span::from_millis(700));
        let document = simulated(&request).document;
        (document.failed(), document.smt.unwrap())
    };
    let (unaware, _) = with(smt::SmtPolicy::Ignore);
    assert!(unaware > 0);
    let (disabling, found) = with(smt::SmtPolicy::Disable);
    assert_eq!((disabling, found.throughput_ratio), (0, Some(1.0)));
    let (monitoring, found) = with(smt::SmtPolicy::Monitor(smt::Monitoring::default()));
    assert_eq!(monitoring, 0);
    assert!(found.throughput_ratio.unwrap() > 1.2, "{found:?}");
    assert!((1..=16).contains(&found.wakeups_per_job_max), "{found:?}");
}

/// Equation 3 needs a rate that holds.
#[test]
fn an_alpha_that_does_not_hold_is_named() {
    let text = section_5_5(
        "wcet = 17\n[machine]\ncores = [[0, 1]]\n[[background]]\nname = \"b\"\n\
                            phases = [{ steps = [\"run 1ms\"], loops = \"forever\" }]\n\
                            [[interference]]\nrate = \"1/2\"",
    );
    let warned = |part, whole| {
        let mut request = SimulationRequest::new(set(&text));
        let alpha = smt::ProgressRate::new(part, whole).unwrap();
        let monitoring = smt::Monitoring { alpha, ..smt::Monitoring::default() };
        request.smt = Some(smt::SmtPolicy::Monitor(monitoring));
        simulated(&request).document.warnings.iter().any(|warning| warning.id == "alpha")
    };
    assert!(warned(2, 3) && !warned(1, 2));
}
