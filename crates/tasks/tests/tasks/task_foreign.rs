//! Task sets of other tools: what their files say, and that nothing of it is lost without a word.

use hourglass_tasks::import::ImportedTaskSet;
use hourglass_tasks::{Activation, Assignment, Format, Preemption, Protocol, Scheduler, TaskSet};
use hourglass_time::Span;

fn read(text: &str) -> ImportedTaskSet {
    let format = Format::of(text);
    TaskSet::from_foreign(format, text).unwrap_or_else(|| panic!("{format:?}")).unwrap()
}

fn refused(text: &str) -> String {
    let format = Format::of(text);
    let error =
        TaskSet::from_foreign(format, text).unwrap_or_else(|| panic!("{format:?}")).unwrap_err();
    let line = error.to_string();
    assert!(!line.contains('\n'), "{line}");
    line
}

/// Each row: a text of the file, what stands in its place, and what the refusal then names.
fn each_is_named(file: &str, rows: &[(&str, &str, &str)]) {
    for (from, to, named) in rows {
        let line = refused(&file.replace(from, to));
        assert!(line.contains(named), "{from} -> {to}: {line}");
    }
}

fn us(us: i64) -> Span {
    Span::from_micros(us)
}

const SCHEDCAT: &str = include_str!("../data/schedcat.xml");

/// As `schedcat.model.serialize` writes it.
#[test]
fn schedcat() {
    let found = read(SCHEDCAT);
    let [one, two] = &found.set.tasks[..] else { panic!("{found:?}") };
    assert_eq!((one.name.as_str(), one.wcet, one.period), ("T1", us(2_000), us(10_000)));
    assert_eq!((one.activation, one.deadline), (Activation::Sporadic, None));
    assert_eq!(one.cpus.as_ref().unwrap().to_string(), "1");
    let sections: Vec<_> = one.critical_sections.iter().map(|s| (s.length, s.count)).collect();
    assert_eq!(sections, [(us(50), 2), (us(20), 1)]);
    assert_eq!((two.name.as_str(), two.deadline), ("T2", Some(us(15_000))));
    assert_eq!(two.wcet.nanos(), 3_000_500);
    assert_eq!(two.cpus.as_ref().unwrap().to_string(), "0,2");
    assert_eq!(found.set.resources[0].protocol, Protocol::Ceiling);
    let all = found.notes.join("\n");
    for said in
        ["no unit", "no scheduler", "no locking protocol", "task 'T1': the working-set", "reads"]
    {
        assert!(all.contains(said), "{said}: {all}");
    }
}

#[test]
fn what_schedcat_says_beyond_that_is_named() {
    let with =
        |inner: &str| refused(&SCHEDCAT.replace("<properties", &format!("{inner}<properties")));
    assert!(
        with("<servers/>").contains("servers, line 2: this element is not supported"),
        "{}",
        with("<servers/>")
    );
    let nested = "<task wcet=\"2\" period=\"9\"><critical_sections><critical_section res_id=\"1\" length=\"2\">\
                  <critical_section res_id=\"2\" length=\"1\"/></critical_section></critical_sections></task>";
    assert!(with(nested).contains("a critical section within another"), "{}", with(nested));
    assert!(with("<task wcet=\"2\"/>").contains("period is missing"));
    assert!(with("<task wcet=\"2\" period=\"9\" colour=\"red\"/>").contains("'colour'"));
    let two = "<testpoint><taskset/><taskset/></testpoint>";
    assert!(refused(two).contains("2 task sets"), "{}", refused(two));
    assert!(refused("<taskset><task").contains("line 1"));
    // A document type that multiplies itself is not expanded.
    let laughs = "<!DOCTYPE t [<!ENTITY a \"aa\">]><taskset>&a;</taskset>";
    let error = TaskSet::from_foreign(Format::SchedCat, laughs).unwrap().unwrap_err().to_string();
    assert!(error.contains("DTD"), "{error}");
}

const SIMSO: &str = include_str!("../data/simso.xml");

#[test]
fn simso() {
    let found = read(SIMSO);
    let [a, b] = &found.set.tasks[..] else { panic!("{found:?}") };
    assert_eq!((a.wcet.nanos(), a.period, a.deadline), (2_000_001, us(10_000), Some(us(8_500))));
    assert_eq!((a.offset, a.priority, b.priority), (Some(us(1_000)), Some(1), Some(2)));
    assert_eq!((&b.after[..], b.period), (&["a".to_owned()][..], us(10_000)));
    assert_eq!(found.set.assignment, Some(Assignment::Given));
    assert_eq!(found.set.machine.overheads.context_switch, Some(Span::from_nanos(30)));
    let all = found.notes.join("\n");
    for said in ["etm 'acet'", "sched: overhead_activate", "rounded"] {
        assert!(all.contains(said), "{said}: {all}");
    }
    let edf = read(&SIMSO.replace("simso.schedulers.FP", "./EDF.py"));
    assert_eq!(edf.set.scheduler, Scheduler::Edf);
}

#[test]
fn what_simso_says_beyond_that_is_named() {
    let rows = [
        ("schedulers.FP", "schedulers.LLF", "unsupported scheduler 'LLF'"),
        ("speed=\"1.0\"", "speed=\"2\"", "speed = 2"),
        (" followed_by=\"2\"", "", "aperiodic task without a predecessor"),
        ("etm=", "physics=", "'physics'"),
        ("WCET=\"1\"", "WCET=\"x\"", "WCET = x: give a number"),
    ];
    each_is_named(SIMSO, &rows);
}

/// The job set of Nasri and Brandenburg, RTSS 2017, figure 1(a): EDF, jobs of 10, 30 and 60.
const SAG: &str = "Task ID, Job ID, Arrival min, Arrival max, Cost min, Cost max, Deadline, Priority\n\
    1, 1,  0,  0, 1,  2, 10, 10\n1, 2, 10, 10, 1,  2, 20, 20\n1, 3, 20, 20, 1,  2, 30, 30\n\
    1, 4, 30, 30, 1,  2, 40, 40\n1, 5, 40, 40, 1,  2, 50, 50\n1, 6, 50, 50, 1,  2, 60, 60\n\
    2, 7,  0,  0, 7,  8, 30, 30\n2, 8, 30, 30, 7,  7, 60, 60\n3, 9,  0,  0, 3, 13, 60, 60\n";

#[test]
fn job_sets_of_periodic_tasks() {
    let sag = SAG.replace("7,  7, 60", "7,  8, 60");
    let found = read(&sag);
    let tasks: Vec<_> =
        found.set.tasks.iter().map(|t| (t.wcet, t.bcet, t.period, t.deadline())).collect();
    assert_eq!(
        tasks,
        [
            (us(2), Some(us(1)), us(10), us(10)),
            (us(8), Some(us(7)), us(30), us(30)),
            (us(13), Some(us(3)), us(60), us(60)),
        ]
    );
    assert_eq!(found.set.scheduler, Scheduler::Edf);
    assert!(found.set.tasks.iter().all(|task| task.preemption == Preemption::None));
    assert!(
        found.notes.iter().any(|note| note.contains("once a hyperperiod")),
        "{:?}",
        found.notes
    );
    // The smaller number is the more urgent there.
    let fixed = "1, 1, 0, 3, 1, 2, 10, 4\n1, 2, 20, 23, 1, 2, 30, 4\n2, 1, 0, 0, 1, 2, 10, 1\n";
    let found = read(fixed);
    assert_eq!(found.set.priorities(), [Some(1), Some(2)]);
    assert_eq!(found.set.tasks[0].jitter, us(3));
}

/// Jobs that are not those of periodic tasks were refused, as five of seven examples of np-schedulability-analysis.
#[test]
fn finite_job_sets_are_read() {
    let one_each = "1, 1, 0, 0, 1, 2, 10, 4\n2, 1, 5, 6, 1, 2, 10, 1\n";
    // In the file of figure 1(a) one job of task 2 costs 7 at most.
    let unlike = "line 9: this job of task 2 is not like its others";
    let fewer = SAG.replace("1, 6, 50, 50, 1,  2, 60, 60\n", "");
    let sooner = SAG.replace("20, 20, 1", "10, 20, 1");
    let ranks = SAG.replace("30, 30\n1, 4", "30, 31\n1, 4").replace("7,  7, 60", "7,  8, 60");
    let head = SAG.lines().next().unwrap();
    let named = format!("{head}\nA,1,0,0,5,5,7,1\n2,1,0,0,1,1,9,2\n");
    for (text, jobs, why) in [
        (one_each, 2, "no task has two jobs"),
        (SAG, 9, unlike),
        (&fewer, 8, "no hyperperiod"),
        (&sooner, 9, "not like its others"),
        (&ranks, 9, "priority"),
        // Repeated for ever they would need 6/5 of the processor.
        (
            "1,1,0,0,1,3,5,1\n1,2,5,5,1,3,10,1\n2,1,0,0,1,3,20,2\n2,2,5,5,1,3,25,2\n",
            4,
            "due behind 10us",
        ),
        // Jobs ahead of the first task with a number were left out.
        (&named, 2, "no task has two jobs"),
    ] {
        let found = read(text);
        assert_eq!(found.set.tasks.len(), jobs, "{text}");
        let note = found.notes.iter().find(|note| note.contains("each is a task that comes again"));
        assert!(note.is_some_and(|note| note.contains(why)), "{why}: {:?}", found.notes);
        // No round meets the next.
        let tasks = &found.set.tasks;
        let ends = |task: &hourglass_tasks::Task| task.offset.unwrap().saturating_add(task.jitter);
        let latest = tasks.iter().map(ends).max().unwrap();
        let work = tasks.iter().fold(Span::ZERO, |sum, task| sum.saturating_add(task.wcet));
        assert!(tasks.iter().all(
            |task| task.period >= latest.saturating_add(work) && task.period == tasks[0].period
        ));
    }
    let found = read(one_each);
    let [first, second] = &found.set.tasks[..] else { panic!("{found:?}") };
    assert_eq!(
        (first.name.as_str(), first.deadline, first.priority),
        ("T1J1", Some(us(10)), Some(1))
    );
    assert_eq!((second.offset, second.jitter, second.priority), (Some(us(5)), us(1), Some(2)));
    assert_eq!(read(SAG).set.scheduler, Scheduler::Edf);
}

/// A job is named by its task and its number; one that came twice counted as two.
#[test]
fn a_job_of_a_job_set_is_there_once() {
    let twice = format!("{SAG}3, 9, 60, 60, 3, 13, 120, 120\n");
    assert!(refused(&twice).contains("line 11: job 9 of task 3 is on line 10 already"));
    assert_eq!(read(&SAG.replace("2, 8, 30", "2, 1, 30")).set.tasks.len(), 9);
}

#[test]
fn other_job_sets_are_named() {
    assert!(
        refused(&SAG.replace("2, 8, 30", "2, 8\u{1}, 30")).contains("it has a control character")
    );
    assert!(refused(&format!("{SAG}4, 1, 0, 0\n")).contains("4 columns where a job has 8"));
    for (text, word) in [
        (
            "Predecessor TID,\tPredecessor JID,\tSuccessor TID, Successor JID\n1, 1, 1, 2\n",
            "precedence",
        ),
        ("TID, JID, Tmin, Tmax, Cmin, Cmax\n2, 1, 15, 15, 0, 0\n", "abort"),
        ("<html><body/></html>", "XML of a kind"),
        (
            "Predecessor TID,\"\tPredecessor JID\", Successor TID, Successor JID,Sus_Min,Sus_Max\n4, 1, 5, 1, 7, 19\n",
            "suspensions",
        ),
        ("Job A TID, Job A JID, Job B TID, Job B JID, Delay Min, Delay Max, Type\n", "exclusions"),
        ("TaskID, MaxMisses (m), WindowSize (k)\n0, 3, 10\n", "weakly-hard"),
        ("n_cores, EFT1, LFT1\n2, 1, 3\n", "platform"),
        ("# jobs\njobset:\n  - Task ID: 1\n", "YAML"),
        // Cut off in its first lines.
        ("Task ID, Job ID, Arri", "CSV"),
        ("Task I", "no file of tasks"),
    ] {
        match Format::of(text) {
            Format::Unread(what) => assert!(what.contains(word), "{what}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

/// What TOML's reader explains better stays TOML, whatever is wrong with it.
#[test]
fn broken_toml_is_toml() {
    for text in ["[[task]]\nname \"a\"", "unit = ", "# so\nname", "\"a, b\" 3", "", "[[task"] {
        assert_eq!(Format::of(text), Format::Toml, "{text}");
    }
}

/// For a part of an rt-app file, as its `merge.py` takes them, the error names what it lacks.
#[test]
fn parts_of_rt_apps_files_are_its() {
    for text in ["{\"global\": {\"duration\": 5}}", "{\"resources\": {\"m0\": {}}}"] {
        assert_eq!(Format::of(text), Format::RtApp, "{text}");
        let refused = TaskSet::from_rt_app(text).unwrap_err().to_string();
        assert!(refused.contains("tasks is missing"), "{refused}");
    }
    // A key without a value is rt-app's; what is wrong is the end.
    let cut = "{\"tasks\": {\n\"a\": {\"suspend\",\n\"run\": 1";
    assert_eq!(Format::of(cut), Format::RtApp);
    let refused = TaskSet::from_rt_app(cut).unwrap_err().to_string();
    assert!(refused.starts_with("line 3"), "{refused}");
}

const MAST: &str = include_str!("../data/mast.txt");

#[test]
fn mast() {
    let found = read(MAST);
    let [first, second] = &found.set.tasks[..] else { panic!("{found:?}") };
    assert_eq!((first.name.as_str(), first.wcet, first.period), ("T-1", us(3_000), us(10_000)));
    assert_eq!((first.jitter, first.priority, first.deadline), (us(1_000), Some(10), None));
    assert_eq!(first.critical_sections[0].length, us(500));
    assert_eq!(
        (second.name.as_str(), second.wcet, second.bcet),
        ("T-2", us(2_500), Some(us(1_000)))
    );
    assert_eq!((second.deadline, second.preemption), (Some(us(9_000)), Preemption::None));
    assert_eq!(second.after, ["T-1"]);
    assert_eq!(found.set.machine.overheads.context_switch, Some(us(250)));
    assert_eq!(found.set.resources[0].ceiling, Some(12));
    assert!(found.notes.iter().any(|note| note.contains("milliseconds")));
}

#[test]
fn what_mast_says_beyond_that_is_named() {
    let rows = [
        ("Type => Periodic,", "Type => Bursty,", "an event of type bursty"),
        ("Max_Jitter", "Colour", "'colour' is not translated"),
        ("Hard_Global_Deadline", "Max_Output_Jitter_Req", "max_output_jitter_req is not"),
        ("Name => S2,", "Name => S3,", "its Activity_Server is not there"),
        ("Type => Composite", "Type => Enclosing", "parts execute for longer"),
        ("Name => R,", "Name => R", "line 12"),
        ("Shared_Resource (", "Driver (", "driver"),
    ];
    each_is_named(MAST, &rows);
}

/// Two tasks of one core at 2 MHz: 4000 ticks are 2 ms.
const AMALTHEA: &str = include_str!("../data/amalthea.xml");

#[test]
fn amalthea() {
    let found = read(AMALTHEA);
    let task = &found.set.tasks[0];
    assert_eq!((task.wcet, task.period, task.deadline), (us(4_000), us(10_000), Some(us(8_000))));
    assert_eq!((task.offset, task.priority), (Some(us(500)), Some(5)));
    assert_eq!(task.cpus.as_ref().unwrap().to_string(), "0");
    // Its runnable is called twice: two accesses, and one task.
    let labels: Vec<&String> = found.notes.iter().filter(|note| note.contains("labels")).collect();
    assert_eq!(labels, ["task 'A': accesses of labels take no time of their own"]);
}

#[test]
fn what_amalthea_says_beyond_that_is_named() {
    let rows = [
        ("am:PeriodicStimulus", "am:InterProcessStimulus", "is a InterProcessStimulus"),
        ("am:LabelAccess", "am:WaitEvent", "the item WaitEvent takes a time"),
        ("am:FixedPriorityPreemptive", "am:Pfair", "'Pfair'"),
        ("am:DiscreteValueConstant\" value", "am:DiscreteValueStatistics\" average", "upper bound"),
        ("runnable=\"r?type=R\"/><", "runnable=\"q?type=R\"/><", "'q' is nowhere"),
        ("<taskAllocation task=\"A", "<taskAllocation task=\"B", "one taskAllocation"),
    ];
    each_is_named(AMALTHEA, &rows);
    let endless = AMALTHEA
        .replace("am:LabelAccess\" access=\"read\"", "am:RunnableCall\" runnable=\"r?type=R\"");
    assert!(refused(&endless).contains("without an end"), "{}", refused(&endless));
}

/// Whatever is cut or changed in a file, it is read, so that a file of our own says the same, or refused, in one line. A name with a
/// control character was read, and its own file could not be.
#[test]
fn damaged_files_are_refused() {
    for text in [SCHEDCAT, SIMSO, SAG, MAST, AMALTHEA] {
        let format = Format::of(text);
        for cut in (0..text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            let (head, tail) = text.split_at(cut);
            let changed = ["9", ")", "\0"].map(|more| format!("{head}{more}{tail}"));
            for damaged in changed.into_iter().chain([head.to_owned()]) {
                match TaskSet::from_foreign(format, &damaged).unwrap() {
                    Ok(read) => {
                        let again = TaskSet::from_toml(&read.set.to_toml());
                        assert_eq!(again.as_ref(), Ok(&read.set), "{damaged:?}");
                    }
                    Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
                }
            }
        }
    }
}
