//! Experiments: whatever the threads and interruptions, one result; and refusals with their reasons.

use std::cell::Cell;
use std::fs;
use std::path::Path;

use hourglass_documents::sweep::SweepDocument;

use super::*;

struct NullObserver;

impl SweepObserver for NullObserver {
    fn started(&mut self, _: u64, _: u64) {}
    fn moved(&mut self, _: u64) {}
    fn ended(&mut self) {}
}

const SMALL: &str = "
utilisations = [0.5, 0.7, 0.8, 0.9]
sets = 70
tasks = 4
deadlines = \"share:0.8,1\"
analyses = [\"dm\", \"opa\", \"edf-preemptive\", \"edf-demand\"]
keep_sets = true
";

fn draft(text: &str) -> ExperimentBuilder {
    ExperimentBuilder::from_toml(text).unwrap()
}

fn experiment(text: &str) -> Experiment {
    draft(text).finish(None).unwrap()
}

fn done(experiment: &Experiment, folder: Option<&Path>, threads: usize) -> SweepDocument {
    run_until(experiment, folder, threads, &mut NullObserver, || None).unwrap().document
}

/// Every file of a folder with its contents.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(path).unwrap())
        })
        .collect();
    files.sort();
    files
}

#[test]
fn threads_change_nothing() {
    let experiment = experiment(SMALL);
    let one = done(&experiment, None, 1);
    assert_eq!(done(&experiment, None, 3), one);
    assert_eq!(one.points.len(), 4);
    assert!(!one.interrupted);
    // Zhang and Burns 2009: QPA decides as the full test does; Audsley 1991: the optimal assignment
    // accepts what any other does; EDF is optimal on one processor.
    for point in &one.points {
        let accepted = |name: &str| point.accepted[name];
        assert_eq!(accepted("edf-preemptive"), accepted("edf-demand"));
        assert!(accepted("dm") <= accepted("opa") && accepted("opa") <= accepted("edf-preemptive"));
    }
    assert!(one.points[0].accepted["dm"] > one.points[3].accepted["dm"]);
}

#[test]
fn an_interrupted_sweep_goes_on_to_the_same_files() {
    let experiment = experiment(SMALL);
    let parent = tempfile::tempdir().unwrap();
    let (whole, parts) = (parent.path().join("whole"), parent.path().join("parts"));
    let wanted = done(&experiment, Some(&whole), 2);
    for stop_after in [1, 3, 9] {
        let looks = Cell::new(0);
        let stop = || {
            looks.set(looks.get() + 1);
            (looks.get() > stop_after).then_some(2)
        };
        let swept = run_until(&experiment, Some(&parts), 1, &mut NullObserver, stop).unwrap();
        assert_eq!(swept.document.interrupted, swept.document.points.len() < 4);
        assert_eq!(swept.signal.is_some(), swept.document.interrupted);
    }
    // Killed while a line and a table were written.
    let journal = parts.join("points.jsonl");
    let mut text = fs::read(&journal).unwrap();
    text.extend_from_slice(b"{\"number\":");
    fs::write(&journal, text).unwrap();
    fs::write(parts.join("sweep.parquet.partial"), "PAR1").unwrap();
    assert_eq!(done(&experiment, Some(&parts), 2), wanted);
    assert_eq!(contents(&parts), contents(&whole));
    // The run is repeated with nothing left to do.
    assert_eq!(done(&experiment, Some(&parts), 2), wanted);
    assert_eq!(contents(&parts), contents(&whole));
}

/// Does the parts of these numbers below `folder`.
fn parts_done(text: &str, folder: &Path, of: u64, parts: impl Iterator<Item = u64>) {
    fs::create_dir_all(folder).unwrap();
    for index in parts {
        let mut part = experiment(text);
        part.shard = Some((index, of));
        done(&part, Some(&part_folder(folder, (index, of))), 2);
    }
}

/// Issue 23, item 1: the bytes of the merged parts are those of one run; fewer sets than parts, too.
#[test]
fn parts_make_the_whole_whatever_the_cut() {
    let parent = tempfile::tempdir().unwrap();
    let whole = parent.path().join("whole");
    // 280 sets, of an analysis by its older word as well.
    let text = SMALL.replace("\"edf-preemptive\"", "\"edf\"");
    let wanted = done(&experiment(&text), Some(&whole), 2);
    for of in [1, 2, 3, 7, 64, 300] {
        let (parts, out) = (parent.path().join(format!("parts-{of}")), parent.path().join("out"));
        // Parts may be done in any order, on several machines.
        parts_done(&text, &parts, of, (0..of).rev());
        let merged = merge(&[parts], &out).unwrap();
        assert_eq!(merged.document, wanted, "{of} parts");
        assert_eq!(contents(&out), contents(&whole), "{of} parts");
        fs::remove_dir_all(&out).unwrap();
    }
}

#[test]
fn what_makes_no_whole_is_refused_and_nothing_written() {
    let parent = tempfile::tempdir().unwrap();
    let place = |name: &str| parent.path().join(name);
    let out = place("out");
    let refused = |folders: &[&str]| {
        let folders: Vec<_> = folders.iter().map(|name| place(name)).collect();
        let error = merge(&folders, &out).unwrap_err().to_string();
        assert!(!out.exists(), "{error}");
        error
    };
    parts_done(SMALL, &place("some"), 9, [0, 4].into_iter());
    assert!(refused(&["some"]).ends_with("2 of 9 parts are there; missing: 1, 2, 3, 5, 6, ..."));
    parts_done(SMALL, &place("again"), 9, [4].into_iter());
    let error = refused(&["some", "again"]);
    assert!(error.starts_with("part 4 is there twice, in "), "{error}");
    parts_done(SMALL, &place("otherwise"), 8, [1].into_iter());
    let error = refused(&["some", "otherwise"]);
    assert!(error.contains("is one of 8 parts") && error.contains("one of 9"), "{error}");
    parts_done(&format!("seed = 7\n{SMALL}"), &place("seed"), 9, [1].into_iter());
    let error = refused(&["some", "seed"]);
    assert!(error.contains("seed is 7") && error.contains("it is 1; merge"), "{error}");
    let other = format!("seed = 7\n{}", SMALL.replace("tasks = 4", "tasks = 5"));
    parts_done(&other, &place("more"), 9, [1].into_iter());
    let error = refused(&["some", "more"]);
    assert!(error.contains("seed is 7") && error.contains("1 (also different: tasks);"), "{error}");
    done(&experiment(SMALL), Some(&place("whole")), 2);
    assert!(refused(&["some", "whole"]).contains("holds a whole experiment"));
    fs::create_dir(place("empty")).unwrap();
    assert!(refused(&["empty"]).contains("no part of an experiment is there"));
    assert!(refused(&["nowhere"]).contains("cannot be read"));
    // A part that a signal ended, and one whose last line was cut.
    parts_done(SMALL, &place("two"), 2, [0, 1].into_iter());
    let journal = part_folder(&place("two"), (1, 2)).join("points.jsonl");
    let text = fs::read(&journal).unwrap();
    fs::write(&journal, &text[..text.len() - 2]).unwrap();
    assert!(refused(&["two"]).contains("1 of 2 points are finished"));
    parts_done(SMALL, &place("two"), 2, [1].into_iter());
    merge(&[place("two")], &out).unwrap();
}

#[test]
fn a_folder_of_something_else_is_left_alone() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("sweep");
    let first = experiment(SMALL);
    done(&first, Some(&folder), 1);
    let refused = |text: &str, folder: &Path| {
        run_until(&experiment(text), Some(folder), 1, &mut NullObserver, || None)
            .unwrap_err()
            .to_string()
    };
    let error = refused(&format!("seed = 7\n{SMALL}"), &folder);
    assert!(error.contains("there seed is 1, here 7"), "{error}");
    let other = parent.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("letter.txt"), "Dear").unwrap();
    let error = refused(SMALL, &other);
    assert!(error.contains("letter.txt"), "{error}");
    let error = refused(SMALL, &other.join("letter.txt"));
    assert!(error.contains("not a folder"), "{error}");
}

/// Bini and Buttazzo 2003; Liu and Layland 1973: EDF is feasible up to 1, and bounds accept what
/// response times accept.
#[test]
fn implicit_deadlines_on_one_processor() {
    let found = done(
        &experiment(
            "utilisations = \"0.6:1:0.1\"\nsets = 60\ntasks = 5\nanalyses = [\"liu-layland\", \
             \"hyperbolic\", \"rm\", \"dm\", \"edf-preemptive\", \"p-edf-ff\", \"g-edf-gfb\"]",
        ),
        None,
        2,
    );
    for point in &found.points {
        let accepted = |name: &str| point.accepted[name];
        assert_eq!((accepted("edf-preemptive"), accepted("p-edf-ff")), (60, 60), "{point:?}");
        assert_eq!(accepted("g-edf-gfb"), 60, "{point:?}");
        assert!(accepted("liu-layland") <= accepted("hyperbolic"), "{point:?}");
        assert!(accepted("hyperbolic") <= accepted("rm"), "{point:?}");
        assert_eq!(accepted("rm"), accepted("dm"), "{point:?}");
    }
    // n (2^(1/n) - 1) is 0.743 for 5.
    assert_eq!(found.points[1].accepted["liu-layland"], 60);
    assert_eq!(found.points[2].accepted["liu-layland"], 0);
    assert!((found.weighted["edf-preemptive"] - 1.0).abs() < 1e-12);
}

/// Liu and Layland 1973, figure: C 20, 40, 100 every 100, 150, 350 use 75.2 %; their density may be
/// scaled up until response times are over the deadlines, and with EDF up to 1.
#[test]
fn a_given_set_is_scaled() {
    let tasks = "
[[task]]
name = \"a\"
wcet = \"20ms\"
period = \"100ms\"
[[task]]
name = \"b\"
wcet = \"40ms\"
period = \"150ms\"
[[task]]
name = \"c\"
wcet = \"100ms\"
period = \"350ms\"
";
    let SweepFile::Tasks(template) = SweepFile::read(tasks).unwrap() else { panic!("tasks") };
    let found = draft("utilisations = \"0.05:1:0.05\"").finish(Some(*template.clone())).unwrap();
    let found = done(&found, None, 1);
    let accepted = |name: &str| found.points.iter().map(|p| p.accepted[name]).collect::<Vec<_>>();
    assert_eq!(accepted("edf-preemptive"), vec![1; 20]);
    let fixed = accepted("rm");
    assert!(fixed.is_sorted_by(|a, b| a >= b), "{fixed:?}");
    assert_eq!((fixed[14], fixed[19]), (1, 0), "{fixed:?}");
    for (text, part) in [
        ("seed = 3", "seed:"),
        ("processors = 0", "0 processors are out of range"),
        // A list of tasks for each processor would not fit into memory.
        ("processors = 4294967295", "4294967295 processors are out of range; take 1 to 1024"),
    ] {
        let error = draft(text).finish(Some(*template.clone())).unwrap_err().to_string();
        assert!(error.starts_with(part), "{error}");
    }
    let chained = tasks.replace("period = \"350ms\"", "after = [\"a\"]");
    let error = SweepFile::read(&chained).unwrap_err().to_string();
    assert!(error.contains("task 'c' has tasks that it comes after"), "{error}");
}

#[test]
fn what_cannot_be_meant_is_refused() {
    for (text, part) in [
        ("utilisations = \"0:1:0.1\"", "utilisation of 0"),
        ("utilisations = \"0.5:1.2:0.1\"", "over the number of processors"),
        ("utilisations = \"0.5:1:0\"", "the step is 0"),
        ("utilisations = \"1:0.5:0.1\"", "ends before it begins"),
        ("utilisations = \"0.5-1\"", "0.5-1"),
        ("tasks = 0", "0 tasks"),
        ("processors = 0", "0 processors are out of range"),
        ("sets = 0", "sets: '0' is out of range"),
        ("processors = 2\ntasks = 1\nutilisations = [1.5]", "over 1, the most that 1 tasks"),
        ("processors = 2\nanalyses = [\"rm\"]", "'rm' is for one processor"),
        ("analyses = [\"rmm\"]", "unknown analysis 'rmm'; did you mean 'rm'?"),
        ("analyses = [\"rm\", \"rm\"]", "duplicate 'rm'"),
        ("analyses = [\"fp\"]", "priorities of a task file"),
        ("generator = \"dice\"", "uunifast"),
        ("generator = \"drs\"\nbounds = \"0.3..\"", "under 3, the sum of the lower bounds"),
        ("bounds = \"0.3\"", "LEAST..MOST"),
        ("periods = \"10ms\"", "periods: "),
        ("periods = \"uniform:1s,10ms\"", "ends before it begins"),
        ("periods = \"list:0ms\"", "above zero"),
        ("deadlines = \"share:0,1\"", "deadlines may be 0"),
        ("jitter = \"1,0\"", "ends before it begins"),
        ("task = 5", "unknown key 'task'"),
        ("sets = {a = 1}", "sets: has a value of another kind"),
        ("sets = = 1", "line 1"),
        ("processors = 2\ngenerator = \"uunifast\"", "uunifast-discard"),
    ] {
        let error =
            ExperimentBuilder::from_toml(text).and_then(|draft| draft.finish(None)).unwrap_err();
        let error = error.to_string();
        assert!(error.contains(part), "{text}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

/// Davis and Burns 2009: with 4 tasks at 3.84 one draw of UUniFast in 14,000 stays below 1
/// each. A set that runs out of tries ended the sweep; now another one is drawn in its place.
#[test]
fn a_set_that_cannot_be_drawn_does_not_end_the_sweep() {
    let experiment = experiment(
        "utilisations = [2.0, 3.84]\nsets = 60\ntasks = 4\nprocessors = 4\n\
         generator = \"uunifast-discard\"\nanalyses = [\"g-edf-gfb\"]\nkeep_sets = true",
    );
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("sweep");
    let found = done(&experiment, Some(&folder), 2);
    println!("{:?}", found.points.iter().map(|p| (p.sets, p.redrawn)).collect::<Vec<_>>());
    assert_eq!((found.points[0].sets, found.points[0].redrawn), (60, 0));
    let full = &found.points[1];
    assert!(full.redrawn > 0 && full.sets > 0, "{full:?}");
    assert!(full.redrawn >= 4 * (60 - full.sets), "{full:?}");
    // Stored points are used again.
    assert_eq!(done(&experiment, Some(&folder), 1), found);
    let hopeless = "utilisations = [2.999]\nsets = 9\ntasks = 12\nprocessors = 3\n\
                    bounds = \"..0.25\"\ngenerator = \"uunifast-discard\"";
    let error = draft(hopeless).finish(None).unwrap_err().to_string();
    assert!(error.contains("take randfixedsum or drs"), "{error}");
}

/// A script that uses an older word finds its numbers; all others see the one name.
#[test]
fn older_words_are_keys_beside_the_names() {
    let of = |analyses: &str| {
        let text = format!("utilisations = [0.9]\nsets = 20\ntasks = 4\nanalyses = {analyses}");
        done(&experiment(&text), None, 1)
    };
    let named = of("[\"liu-layland\", \"edf-preemptive\"]");
    let asked = of("[\"rm-ll\", \"edf\"]");
    assert_eq!(asked.experiment, named.experiment);
    assert_eq!(named.experiment.analyses, ["liu-layland", "edf-preemptive"]);
    for (word, name) in [("rm-ll", "liu-layland"), ("edf", "edf-preemptive")] {
        let (here, there) = (&asked.points[0], &named.points[0]);
        assert_eq!([here.accepted[word], here.accepted[name]], [there.accepted[name]; 2]);
        assert_eq!(here.undecided[word], there.undecided[name]);
        assert!((asked.weighted[word] - named.weighted[name]).abs() < 1e-12);
        assert!(!there.accepted.contains_key(word) && !named.weighted.contains_key(word));
    }
    let twice = draft("analyses = [\"edf\", \"edf-preemptive\"]").finish(None).unwrap_err();
    assert!(twice.to_string().contains("duplicate 'edf-preemptive'"), "{twice}");
}

/// At full utilisation a busy window lasts up to a hyperperiod; deadlines of at most the period are
/// decided by the first late job all the same.
#[test]
fn full_processors_are_decided() {
    let found = done(
        &experiment(
            "utilisations = [0.85, 1.0]\nsets = 60\ntasks = 6\nanalyses = [\"rm\", \"dm\", \
             \"opa\", \"edf-preemptive\"]",
        ),
        None,
        2,
    );
    for point in &found.points {
        assert!(point.undecided.values().all(|count| *count == 0), "{point:?}");
    }
    assert!(found.points[0].accepted["rm"] > found.points[1].accepted["rm"]);
}

/// Two sweeps at once would write over each other's points.
#[test]
fn a_folder_has_one_sweep_at_a_time() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("shared");
    let experiment = experiment(SMALL);
    let refused = Cell::new(0);
    let swept = run_until(&experiment, Some(&folder), 1, &mut NullObserver, || {
        let second = run_until(&experiment, Some(&folder), 1, &mut NullObserver, || None);
        let text = second.unwrap_err().to_string();
        assert!(text.contains("another sweep is at work in this folder; wait"), "{text}");
        refused.set(refused.get() + 1);
        None
    });
    let first = contents(&folder);
    assert!(refused.get() > 0 && !swept.unwrap().document.interrupted);
    // The folder is free again, and whole.
    assert_eq!(done(&experiment, Some(&folder), 1).points.len(), 4);
    assert_eq!(contents(&folder), first);
}
