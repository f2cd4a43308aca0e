//! Which analysis answers what a set says, against answers known from papers or worked out by hand.

use hourglass_documents::check::{CheckDocument, Verdict};
use hourglass_tasks::TaskSet;
use hourglass_theory::check::{ANALYSES, CheckRequest, FitHeuristic, PlacementOrder, check};

pub(super) fn read(text: &str) -> TaskSet {
    TaskSet::from_toml(&format!("unit = \"1ms\"\n{text}")).unwrap()
}

pub(super) fn answer(text: &str) -> CheckDocument {
    check(&read(text), &CheckRequest::default()).unwrap()
}

/// Bounds from nominal arrival in microseconds; -1 for none.
pub(super) fn bounds(document: &CheckDocument) -> Vec<i64> {
    let bound = |ns: Option<u64>| ns.map_or(-1, |ns| i64::try_from(ns / 1_000).unwrap());
    document.tasks.iter().map(|task| bound(task.response_time_ns)).collect()
}

pub(super) fn task(name: &str, rest: &str) -> String {
    format!("[[task]]\nname = \"{name}\"\n{rest}\n")
}

/// Liu and Layland 1973 know no bursts: two jobs at once of 3, and one every 10, make 5 every 11 below
/// them late, whatever the utilisation. They were called feasible.
#[test]
fn utilisation_bounds_know_no_bursts() {
    let text =
        task("a", "wcet = 3\nperiod = 10\nactivation = \"sporadic\"\narrivals = [0]\npriority = 2")
            + &task("b", "wcet = 5\nperiod = 11\npriority = 1");
    for name in ["liu-layland", "hyperbolic"] {
        let request = CheckRequest { analysis: Some(name.to_owned()), ..CheckRequest::default() };
        assert_eq!(check(&read(&text), &request).unwrap().verdict, Verdict::Unknown, "{name}");
    }
    let found = answer(&text);
    assert_eq!((found.analysis.as_str(), bounds(&found)), ("fp-bursts", vec![6_000, 14_000]));
}

/// Davis, Burns, Bril and Lukkien, RTSJ 2007, table 3: the second job of C is the worst.
#[test]
fn not_preempted() {
    let set = ["2.5", "3.5", "3.5"].iter().zip(["2.5", "3.25", "3.25"]).zip(["a", "b", "c"]);
    let text = |((t, d), name): ((&&str, &str), &str)| {
        task(
            name,
            &format!("wcet = 1\nperiod = \"{t}ms\"\ndeadline = \"{d}ms\"\npreemptive = false"),
        )
    };
    let text: String = set.map(text).collect();
    let found = answer(&format!("priorities = \"deadline-monotonic\"\n{text}"));
    assert_eq!(found.analysis, "fp-nonpreemptive");
    assert_eq!(bounds(&found), [2_000, 3_000, 3_500]);
    assert_eq!(found.verdict, Verdict::Infeasible);
}

/// Wang and Saksena, RTCSA 1999, tables 1 and 2.
#[test]
fn thresholds() {
    let text = task("a", "wcet = 20\nperiod = 70\ndeadline = 50\npriority = 3")
        + &task("b", "wcet = 20\nperiod = 80\npriority = 2\npreemption_threshold = 3")
        + &task(
            "c",
            "wcet = 35\nperiod = 200\ndeadline = 100\npriority = 1\npreemption_threshold = 2",
        );
    let found = answer(&text);
    assert_eq!(found.analysis, "fp-thresholds");
    assert_eq!(bounds(&found), [40_000, 75_000, 95_000]);
    assert_eq!(found.verdict, Verdict::Feasible);
}

/// Bedarkar et al.'s setting: everybody waits for everybody, 79 + 11 + 1.
#[test]
fn first_come_first_served() {
    let text = "scheduler = \"fifo\"\n".to_owned()
        + &task("a", "wcet = 79\nperiod = 120")
        + &task("b", "wcet = 11\nperiod = 340")
        + &task("c", "wcet = 1\nperiod = 190");
    let found = answer(&text);
    assert_eq!((found.analysis.as_str(), bounds(&found)), ("fifo", vec![91_000; 3]));
}

/// Found by simulation: a task of a time-sharing class is not first come, first served. It was called feasible.
#[test]
fn other_classes_do_not_come_in_turn() {
    let of = |policy: &str| {
        let text = task("a", "wcet = 3\nperiod = 12\npriority = 5")
            + &task("b", &format!("wcet = 6\nperiod = 24\npolicy = \"{policy}\""));
        answer(&format!("scheduler = \"fifo\"\n{text}"))
    };
    for policy in ["OTHER:0", "BATCH", "IDLE", "DEADLINE"] {
        assert_eq!(of(policy).verdict, Verdict::Unknown, "{policy}");
        assert!(of(policy).reason.unwrap().contains("the scheduler is fifo"), "{policy}");
    }
    assert_eq!(of("FIFO:5").verdict, Verdict::Feasible);
}

/// A chain that shares two CPUs: 1, and then 2 and a suspension of 1. A thread of another class is below it, unless it has a CPU that
/// it does not give back.
#[test]
fn a_thread_of_another_class_leaves_chains_their_bounds() {
    let of = |head: &str, more: &str| {
        let all = [
            ("a", "wcet = 1\nperiod = 20\npriority = 3\n"),
            ("b", "wcet = 2\nperiod = 20\npriority = 2\nafter = [\"a\"]\n"),
            ("fair", "wcet = 5\nperiod = 100\npolicy = \"OTHER\"\n"),
        ];
        let keys = |name| if name == "b" && more.is_empty() { "suspension = 1" } else { more };
        let all = all.map(|(name, rest)| task(name, &format!("{rest}{}", keys(name))));
        answer(&format!("{head}{}", all.concat()))
    };
    let shared = of("[machine]\ncpus = \"0-1\"\n", "");
    assert_eq!((shared.verdict, bounds(&shared)), (Verdict::Unknown, vec![1_000, 4_000, -1]));
    assert!(shared.tasks[2].reason.contains("time-sharing"), "{shared:?}");
    let begun = of("", "preemptive = false");
    assert_eq!((begun.verdict, bounds(&begun)), (Verdict::Unknown, vec![-1; 3]));
}

/// Equal priorities: who came first goes first.
#[test]
fn equal_priorities() {
    let text = task("a", "wcet = 3\nperiod = 10\npriority = 1")
        + &task("b", "wcet = 3\nperiod = 10\npriority = 1");
    assert_eq!(bounds(&answer(&text)), [6_000, 6_000]);
}

/// A burst of three at once, then one every 10 ms: the last of them waits for the two before it.
#[test]
fn bursts() {
    let text = task(
        "a",
        "wcet = 1\nperiod = 10\nactivation = \"sporadic\"\narrivals = [0, 0]\ndeadline = 5",
    ) + &task("b", "wcet = 2\nperiod = 30");
    let found = answer(&text);
    assert_eq!((found.analysis.as_str(), bounds(&found)), ("fp-bursts", vec![3_000, 5_000]));
    let deadlines = answer(&format!("scheduler = \"edf\"\n{text}"));
    assert_eq!(deadlines.verdict, Verdict::Feasible);
}

/// Of 34/35 of a processor, feasible by deadlines alone; the demand within 20 is 20.
#[test]
fn earliest_deadline_first() {
    let text = task("a", "wcet = 2\nperiod = 5") + &task("b", "wcet = 4\nperiod = 7\ndeadline = 6");
    let found = answer(&format!("scheduler = \"edf\"\n{text}"));
    assert_eq!((found.analysis.as_str(), found.verdict), ("edf-preemptive", Verdict::Feasible));
    assert!(!found.processors[0].demand_points.is_empty());
    assert_eq!(answer(&text).verdict, Verdict::Infeasible);
}

/// Distances of a period are no burst, nor is a first one that is longer; the proof was said not to hold.
#[test]
fn distances_of_a_period_are_no_burst() {
    for arrivals in ["[7]", "[7, 14]", "[9]"] {
        let text = task("a", &format!("wcet = 2\nperiod = 7\npriority = 2\narrivals = {arrivals}"))
            + &task("b", "wcet = 1\nperiod = 7\npriority = 1");
        let found = answer(&text);
        assert_eq!(
            (found.verdict, bounds(&found)),
            (Verdict::Feasible, vec![2_000, 3_000]),
            "{arrivals}"
        );
    }
}

/// Audsley 1991: an order that neither periods nor deadlines give.
#[test]
fn priorities_are_found() {
    let text = "priorities = \"optimal\"\n".to_owned()
        + &task("a", "wcet = 3\nperiod = 20\ndeadline = 5")
        + &task("b", "wcet = 3\nperiod = 15\ndeadline = 7");
    let found = answer(&text);
    assert_eq!(found.verdict, Verdict::Feasible);
    assert!(found.tasks[0].priority > found.tasks[1].priority);
}

/// Dhall and Liu 1978: with global EDF two CPUs are not enough; partitioned they are.
#[test]
fn several_cpus() {
    let text = "scheduler = \"edf\"\nmachine.cpus = \"0-1\"\n".to_owned()
        + &task("a", "wcet = 1\nperiod = 10")
        + &task("b", "wcet = 1\nperiod = 10")
        + &task("heavy", "wcet = 11\nperiod = 11");
    let global = answer(&text);
    assert_eq!((global.analysis.as_str(), global.verdict), ("global-edf", Verdict::Infeasible));
    let partition = Some((FitHeuristic::First, PlacementOrder::Utilisation));
    let placed =
        check(&read(&text), &CheckRequest { partition, ..CheckRequest::default() }).unwrap();
    assert_eq!(placed.verdict, Verdict::Feasible);
    assert_ne!(placed.tasks[0].cpus, placed.tasks[2].cpus);
}

/// 2 on one CPU, then 3 on the next behind 1 of another task.
#[test]
fn chains() {
    let text = task("first", "wcet = 2\nperiod = 20\ncpu = 0\npriority = 1")
        + &task("then", "wcet = 3\nafter = [\"first\"]\ncpu = 1\npriority = 1")
        + &task("other", "wcet = 1\nperiod = 10\ncpu = 1\npriority = 2");
    let found = answer(&text);
    assert_eq!((found.analysis.as_str(), bounds(&found)), ("holistic", vec![2_000, 6_000, 1_000]));
    assert_eq!(found.verdict, Verdict::Feasible);
}

/// Ticks in what is not preempted: 10 take 10 and the three ticks of 1 every 5 that may fall into them,
/// and one is before them.
#[test]
fn ticks_in_sections() {
    let text = "machine.overheads = { tick_period = 5, tick_cost = 1 }\n".to_owned()
        + &task("a", "wcet = 10\nperiod = 40\npreemptive = false");
    let found = answer(&text);
    assert_eq!((found.verdict, bounds(&found)), (Verdict::Feasible, vec![14_000]));
}

/// Hourglass paper, section 5.5: the tick delays by 8 ms where that is said, else by all of it, and
/// other jitter comes on top.
#[test]
fn ticks_of_timers() {
    let video = |rest: &str| {
        let text = task("audio", "wcet = 3\nperiod = 8")
            + &task("video", &format!("wcet = 19\nperiod = 33\ntimer = \"TICK:100\"\n{rest}"));
        bounds(&answer(&text))[1]
    };
    assert_eq!(video("tick_jitter = 8"), 39_000);
    assert_eq!(video(""), 41_000);
    assert_eq!(video("jitter = 1"), 42_000);
    assert_eq!(video("jitter = 1\ntick_jitter = 8"), 40_000);
    let chain = task("first", "wcet = 1\nperiod = 40")
        + &task("then", "wcet = 1\nafter = [\"first\"]\ntimer = \"TICK:100\"");
    assert_eq!(answer(&chain).verdict, Verdict::Unknown);
}

/// A key that does not change the analysis must not change the verdict; a key that does is
/// reported.
#[test]
fn transformations_are_reported() {
    let text = task("a", "wcet = 1\nperiod = 10\noffset = 3\npriority = 2")
        + &task("b", "wcet = 9\nperiod = 20\ndeadline = 10\npriority = 1");
    let found = answer(&text);
    assert!(
        found.assumptions.iter().any(|line| line.contains("offsets are not used")),
        "{:?}",
        found.assumptions
    );
    assert_eq!((found.verdict, bounds(&found)), (Verdict::Feasible, vec![1_000, 10_000]));
    let late = answer(&text.replace("deadline = 10", "deadline = \"9500us\""));
    // The phase of b is open: released at 0 it waits for a, and is done at 10 ms.
    assert_eq!(late.verdict, Verdict::Infeasible);
    assert_eq!(late.witness.unwrap().miss.unwrap().done_ns, Some(10_000_000));
    let overheads = "[machine]\noverheads = { context_switch = \"1ms\", tick_period = 100, tick_cost = \"1ms\" }\n";
    let found = answer(&format!("{}{overheads}", task("a", "wcet = 1\nperiod = 10")));
    // 1 + 2 switches, one that has just begun, and a tick.
    assert_eq!(bounds(&found), [5_000]);
}

/// A neighbour on the same core halves the speed.
#[test]
fn siblings() {
    let text = "[machine]\ncpus = \"0-1\"\ncores = [[0, 1]]\n[[interference]]\ntask = \"a\"\nrate = \"1/2\"\n".to_owned()
        + &task("a", "wcet = 2\nperiod = 10\ncpu = 0")
        + &task("b", "wcet = 2\nperiod = 10\ncpu = 1");
    assert_eq!(bounds(&answer(&text)), [4_000, 2_000]);
    let apart = text.replace("cores = [[0, 1]]", "cores = [[0], [1]]");
    assert_eq!(bounds(&answer(&apart)), [2_000, 2_000]);
}

/// Section 5.5 of the Hourglass paper: video may take 20 ms, come every 29 ms or jitter by 4 ms.
#[test]
fn how_far_tasks_may_change() {
    let text = task("audio", "wcet = 3\nperiod = 8") + &task("video", "wcet = 17\nperiod = 33");
    let request = CheckRequest { sensitivity: true, ..CheckRequest::default() };
    let answer = check(&read(&text), &request).unwrap();
    // The fifth job of audio comes at 32: 29 ms of work may become 32 and no more.
    let together = &answer.breakdown.unwrap()[0];
    assert!((together.factor - 1.103).abs() < 1e-9, "{together:?}");
    assert_eq!(together.first_to_miss.as_deref(), Some("video"));
    let found = answer.sensitivity.unwrap();
    let ms = |ns: Option<u64>| ns.map(|ns| ns / 1_000_000);
    // 20 + 4 x 3 = 32, when the fifth job of audio comes.
    assert_eq!(ms(found[1].largest_wcet_ns), Some(20));
    assert_eq!(ms(found[1].largest_jitter_ns), Some(4));
    assert_eq!(ms(found[1].smallest_period_ns), Some(29));
}

/// Leung and Merrill, IPL 1980: with phases, the critical instant need not come. Of two tasks that each
/// take half of every 8 ms, the second one always finds the CPU free.
#[test]
fn known_phases() {
    let set = |phase: &str, more: &str| {
        task("a", &format!("wcet = 4\nperiod = 8\npriority = 2\noffset = 0\n{more}"))
            + &task("b", &format!("wcet = 4\nperiod = 8\ndeadline = 4\npriority = 1\n{phase}"))
    };
    let found = answer(&set("offset = 4", ""));
    assert_eq!((found.analysis.as_str(), found.verdict), ("fp-phases", Verdict::Feasible));
    assert_eq!(bounds(&found), [4_000, 4_000]);
    assert!(found.tasks.iter().all(|task| !task.fixed_points.is_empty()));
    let points = found.tasks.iter().flat_map(|task| &task.fixed_points);
    assert!(points.into_iter().all(|point| point.response_time_ns == 4_000_000));
    // Two milliseconds earlier it always waits for two, which is a witness.
    let late = answer(&set("offset = 2", ""));
    assert_eq!((bounds(&late)[1], late.verdict), (6_000, Verdict::Infeasible));
    assert_eq!(late.witness.unwrap().task.as_deref(), Some("b"));
    // Where a release moves or a phase is not known, any phase counts: the job of a that comes by 1 ms later delays
    // b; and b may come together with a.
    for other in [set("offset = 4", "jitter = 1"), set("", "")] {
        let found = answer(&other);
        assert_eq!(
            (found.analysis.as_str(), found.verdict),
            ("fp-preemptive", Verdict::Infeasible)
        );
        assert_eq!(found.witness.unwrap().task.as_deref(), Some("b"));
    }
    let request =
        CheckRequest { analysis: Some("fp-preemptive".into()), ..CheckRequest::default() };
    let found = check(&read(&set("offset = 4", "")), &request).unwrap();
    assert_eq!((bounds(&found)[1], found.verdict), (8_000, Verdict::Unknown));
}

/// A section, too, takes longer beside a busy sibling: it held up others by its length at full speed.
#[test]
fn sections_are_slowed_by_siblings() {
    let section = "critical_sections = [{ resource = \"r\", length = 2 }]";
    let text = "[machine]\ncpus = \"0-1\"\ncores = [[0, 1]]\n[[interference]]\ntask = \"low\"\n\
                rate = \"1/2\"\n[[resource]]\nname = \"r\"\n"
        .to_owned()
        + &task("high", &format!("wcet = 3\nperiod = 20\npriority = 2\ncpu = 0\n{section}"))
        + &task("low", &format!("wcet = 3\nperiod = 20\npriority = 1\ncpu = 0\n{section}"))
        + &task("beside", "wcet = 1\nperiod = 20\npriority = 1\ncpu = 1");
    assert_eq!(bounds(&answer(&text)), [7_000, 9_000, 1_000]);
}

/// A task may release several, and wait for several that go back to one arrival. By hand: 2, 2 + 3,
/// 2 + 4, and 6 + 1 behind one more job of the first.
#[test]
fn chains_that_fork_and_join() {
    let text = "[machine]\ncpus = \"0-2\"\n".to_owned()
        + &task("first", "wcet = 2\nperiod = 20\npriority = 2\ncpu = 0")
        + &task("left", "wcet = 3\npriority = 1\ncpu = 1\nafter = [\"first\"]")
        + &task("right", "wcet = 4\npriority = 1\ncpu = 2\nafter = [\"first\"]")
        + &task("last", "wcet = 1\npriority = 1\ncpu = 0\nafter = [\"left\", \"right\"]");
    let found = answer(&text);
    assert_eq!((found.analysis.as_str(), found.verdict), ("holistic", Verdict::Feasible));
    assert_eq!(bounds(&found), [2_000, 5_000, 6_000, 9_000]);
    let other = text.replace("after = [\"left\", \"right\"]", "after = [\"left\", \"other\"]")
        + &task("other", "wcet = 1\nperiod = 20\npriority = 3\ncpu = 2");
    let refused = answer(&other);
    assert_eq!(refused.verdict, Verdict::Unknown);
    assert!(refused.reason.unwrap().contains("'last' waits for tasks of different chains"));
}

/// A job that needs more than its deadline leaves is late, also where the demand is above what there is: `no_bound` was
/// said of it, beside a witness of the miss.
#[test]
fn a_job_that_is_too_long_alone_is_infeasible_by_every_analysis() {
    let long = |more: &str| task("long", &format!("wcet = 5\nperiod = 4\n{more}"));
    let quick = task("quick", "wcet = 1\nperiod = 20\npriority = 2");
    let server = "[[server]]\nname = \"s\"\nkind = \"cbs-hard\"\nbudget = 4\nperiod = 4\ntasks = [\"long\"]\n";
    let mut answered = 0;
    for (head, tasks) in [
        ("", long("priority = 1")),
        ("", quick.clone() + &long("priority = 1")),
        ("", long("priority = 3") + &quick),
        ("", long("priority = 1\npreemptive = false") + &quick),
        ("", long("priority = 1\njitter = 1") + &quick),
        ("", long("priority = 1\ndeadline = 3")),
        ("", long("suspension = 1\npriority = 1")),
        ("priorities = \"deadline-monotonic\"\n", long("")),
        ("priorities = \"optimal\"\n", long("")),
        ("scheduler = \"edf\"\n", long("")),
        ("scheduler = \"edf\"\n", long("preemptive = false")),
        ("scheduler = \"edf\"\n", long("jitter = 1")),
        ("scheduler = \"fifo\"\n", long("")),
        ("scheduler = \"edf\"\n[machine]\ncpus = \"0-1\"\n", long("")),
        ("[machine]\ncpus = \"0-1\"\n", quick + &long("priority = 1")),
        ("", long("policy = \"DEADLINE\"") + server),
    ] {
        let set = read(&format!("{head}{tasks}"));
        let names = ANALYSES.iter().map(|entry| Some(entry.name.to_owned()));
        for analysis in [None].into_iter().chain(names) {
            let request = CheckRequest { analysis: analysis.clone(), ..CheckRequest::default() };
            let Ok(found) = check(&set, &request) else { continue };
            answered += 1;
            let why = format!("{analysis:?}: {head}{tasks}: {found:?}");
            assert_eq!(found.verdict, Verdict::Infeasible, "{why}");
            let late = found.tasks.iter().find(|task| task.name == "long").unwrap();
            assert_eq!(late.verdict, Verdict::Infeasible, "{why}");
            assert!(found.witness.is_some_and(|witness| witness.miss.is_some()), "{why}");
        }
    }
    assert!(answered >= 30, "{answered}");
}

/// Of two jobs on two CPUs the less urgent one moves whenever the other takes its CPU, as Linux lets it, though neither waits for
/// the other: 8 of work, and a cold cache of 1 for each of three arrivals until its deadline of 20, and one more. It had one in all.
#[test]
fn who_moves_between_cpus_fills_caches_himself() {
    for (scheduler, priorities) in
        [("fixed-priority", ["priority = 2", "priority = 1"]), ("edf", ["", ""])]
    {
        let text = format!(
            "unit = \"1ms\"\nscheduler = \"{scheduler}\"\n[machine]\ncpus = \"0-1\"\noverheads = {{ cache_delay = 1 }}\n\
             [[task]]\nname = \"often\"\nwcet = 1\nperiod = 8\n{}\n\
             [[task]]\nname = \"moved\"\nwcet = 8\nperiod = 20\n{}\n",
            priorities[0], priorities[1]
        );
        let found = check(&TaskSet::from_toml(&text).unwrap(), &CheckRequest::default()).unwrap();
        let moved = &found.tasks[1];
        assert_eq!(moved.verdict, Verdict::Feasible, "{scheduler}: {:?}", found.reason);
        assert!(moved.response_time_ns.is_none_or(|ns| ns >= 11_000_000), "{scheduler}: {moved:?}");
    }
}
