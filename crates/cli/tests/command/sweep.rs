//! `hourglass sweep` as a script sees it: documents, files, refusals, Ctrl-C.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::calls::{
    self, Line as _, command, ends, hourglass, is_refused, json, printed, refusal, stderr, text,
};
use crate::processes::{send, until};
use serde_json::Value;

/// The document of a sweep that must succeed.
fn document(words: &[&str]) -> Value {
    json(&printed(&[words, &["--json"]].concat()))
}

const SMALL: [&str; 9] =
    ["sweep", "-u", "0.7,0.9", "--sets", "20", "-n", "3", "-a", "liu-layland,rm,edf-preemptive"];

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Issue 23, item 1: parts of an experiment, merged, are the files of the whole; what is missing is named.
#[test]
fn parts_are_merged() {
    let parent = tempfile::tempdir().unwrap();
    let place = |name: &str| parent.path().join(name).to_str().unwrap().to_owned();
    let (whole, parts, out) = (place("whole"), place("parts"), place("out"));
    let shard = |k: &str| hourglass(&[&SMALL[..], &["--shard", k, "-o", &parts]].concat());
    printed(&[&SMALL[..], &["-o", &whole]].concat());
    let said = stderr(ends(&shard("2/3"), 0, "2/3"));
    // 40 sets of two points: the last third begins with set 26.
    assert!(said.contains("part 2 of 3, 14 sets; hourglass merge"), "{said}");
    assert!(shard("0/3").status.success());
    let refused = hourglass(&["merge", &parts, "-o", &out]);
    is_refused(&refused, 2, "2 of 3 parts are there; missing: 1", "merge");
    assert!(!Path::new(&out).exists());
    assert!(shard("1/3").status.success());
    let merged = document(&["merge", &parts, "-o", &out]);
    assert_eq!(merged, document(&SMALL));
    assert_eq!(names(Path::new(&out)), names(Path::new(&whole)));
    for name in names(Path::new(&whole)) {
        let read = |folder: &str| fs::read(Path::new(folder).join(&name)).unwrap();
        assert_eq!(read(&out), read(&whole), "{name}");
    }
    for (words, said) in [
        (vec!["--shard", "3/3", "-o", &parts], "K from 0 to N-1"),
        (vec!["--shard", "half", "-o", &parts], "is not K/N"),
        (vec!["--shard", "1/3", "-o", &whole], "holds an experiment"),
        (vec!["--shard", "1/3"], "--output <DIR>"),
    ] {
        is_refused(&hourglass(&[&SMALL[..], &words].concat()), 2, said, words);
    }
}

/// The keys of `hourglass.sweep/1`.
#[test]
fn the_document_has_its_keys() {
    let found = document(&SMALL);
    assert_eq!(found["schema"], "hourglass.sweep/1");
    assert_eq!(found["interrupted"], false);
    let points = found["points"].as_array().unwrap();
    assert_eq!(points.len(), 2);
    for (point, utilisation) in points.iter().zip([0.7, 0.9]) {
        assert_eq!(
            (point["utilisation"].as_f64(), point["sets"].as_u64()),
            (Some(utilisation), Some(20))
        );
        let accepted = |name: &str| point["accepted"][name].as_u64().unwrap();
        assert!(
            accepted("liu-layland") <= accepted("rm")
                && accepted("rm") <= accepted("edf-preemptive")
        );
        assert_eq!(accepted("edf-preemptive"), 20);
    }
    assert_eq!(document(&SMALL), found, "a seed replays");
    assert_ne!(
        document(&[&SMALL[..], &["--seed", "2"]].concat())["experiment"],
        found["experiment"]
    );
}

#[test]
fn a_folder_holds_the_result_and_goes_on() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("monday");
    let words = [&SMALL[..], &["--keep-sets", "-o", folder.to_str().unwrap()]].concat();
    let first = document(&words);
    let files = "experiment.json points.jsonl sets.parquet sweep.json sweep.parquet sweep.svg";
    assert_eq!(names(&folder), files.words());
    let all = || files.words().iter().map(|name| fs::read(folder.join(name)).unwrap()).collect();
    let before: Vec<Vec<u8>> = all();
    assert_eq!(document(&words), first);
    assert_eq!(before, all());
    assert_eq!(json(&fs::read_to_string(folder.join("sweep.json")).unwrap()), first);
    // Again as a picture of another format, for a paper.
    let drawn = parent.path().join("curves.svg");
    let render = ["render", folder.to_str().unwrap(), "-o", drawn.to_str().unwrap()];
    assert_eq!(hourglass(&render[..]).status.code(), Some(0));
    assert_eq!(fs::read(&drawn).unwrap(), fs::read(folder.join("sweep.svg")).unwrap());
    let refused = hourglass(&[&render[..], &["--to", "1s"]].concat());
    is_refused(&refused, 2, "--to: ", "--to");
    let pdf = parent.path().join("curves.pdf");
    let made = hourglass(&["render", render[1], "-o", pdf.to_str().unwrap()][..]);
    match made.status.code() {
        Some(3) => is_refused(&made, 3, "rsvg-convert", "pdf"),
        code => {
            assert_eq!(code, Some(0));
            assert!(fs::read(&pdf).unwrap().starts_with(b"%PDF"));
            String::new()
        }
    };
    let refused = hourglass(&[&words[..], &["--seed", "9"]].concat());
    is_refused(&refused, 2, "another experiment: there seed is 1, here 9", "--seed 9");
}

/// A description that was cut anywhere is written anew by the command that would go on; beside points of which it is not
/// known whose they are, and for another experiment, it stays as it is.
#[test]
fn a_cut_description_does_not_stop_who_goes_on() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("cut");
    let words = [&SMALL[..], &["-o", folder.to_str().unwrap()]].concat();
    let first = document(&words);
    let (file, points) = (folder.join("experiment.json"), folder.join("points.jsonl"));
    let (whole, kept) = (fs::read(&file).unwrap(), fs::read(&points).unwrap());
    for length in [0, 1, whole.len() / 2, whole.len() - 3] {
        fs::write(&file, &whole[..length]).unwrap();
        fs::write(&points, "").unwrap();
        assert_eq!(document(&words), first, "{length}");
        assert_eq!(fs::read(&file).unwrap(), whole);
    }
    let cut = &whole[..whole.len() - 3];
    fs::write(&file, cut).unwrap();
    assert_eq!(fs::read(&points).unwrap(), kept);
    let refused = |words: &[&str]| {
        is_refused(&hourglass(words), 2, "remove the folder", words);
        assert_eq!(fs::read(&file).unwrap(), cut);
    };
    refused(&words);
    fs::remove_file(&points).unwrap();
    refused(&[&words[..], &["--seed", "9"]].concat());
}

#[test]
fn a_quiet_sweep_that_is_kept_prints_nothing() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("quiet");
    let words = [&SMALL[..], &["-q", "-o", folder.to_str().unwrap()]].concat();
    let plain: Vec<&str> = words.iter().copied().filter(|word| *word != "--json").collect();
    let output = hourglass(&plain);
    assert!(output.status.success());
    assert_eq!((text(&output.stdout), text(&output.stderr)), (String::new(), String::new()));
    assert!(!hourglass(&[&words[..], &["--json"]].concat()).stdout.is_empty());
}

#[test]
fn files_describe_experiments_and_tasks() {
    let parent = tempfile::tempdir().unwrap();
    let file = parent.path().join("e.toml");
    fs::write(&file, "utilisations = [0.5]\nsets = 5\nanalyses = [\"edf\"]\n").unwrap();
    let name = file.to_str().unwrap();
    // Options come before what the file says.
    let found = document(&["sweep", name, "--sets", "7"]);
    assert_eq!(found["points"][0]["sets"], 7);
    fs::write(&file, "[[task]]\nname = \"a\"\nwcet = \"1ms\"\nperiod = \"10ms\"\n").unwrap();
    let found = document(&["sweep", name, "-u", "0.5:1:0.25", "-a", "rm"]);
    assert_eq!(found["points"].as_array().unwrap().len(), 3);
    assert_eq!(found["points"][2]["accepted"]["rm"], 1);
    fs::write(&file, "sets = 5\nsteps = 3\n").unwrap();
    let refused = hourglass(&["sweep", name]);
    assert!(text(&refused.stderr).contains("e.toml: unknown key 'steps'"), "{refused:?}");
}

#[test]
fn mistakes_are_one_line_with_a_remedy() {
    for (words, wanted) in [
        (&["-u", "0:1:0.1"][..], "a utilisation of 0 asks for nothing"),
        (&["-u", "1.5"], "utilisation 1.5 is over the number of processors, 1"),
        (&["-n", "0"], "0 tasks cannot be drawn"),
        (&["-n", "x"], "--tasks: 'x' is not a whole number in range; write for example 10"),
        (&["--sets", "1e3"], "--sets: '1e3' is not a whole number"),
        (&["--seed", "-1"], "--seed: '-1' is not a whole number"),
        (&["-u", "-0.5"], "--utilisations: '-0.5' is not a number with up to six decimals; write"),
        (&["-g", "dice"], "--generator: 'dice' is not understood; write uunifast, "),
        (&["--periods", "10ms"], "--periods: '10ms' is not understood; write log-uniform"),
        (&["-o", "/nonexistent/a/b"], "/nonexistent/a/b cannot be made: no folder /nonexistent/a"),
        (&["--cost-granularity", "5"], "--cost-granularity: "),
        (
            &["-a", "edf-preemtive"],
            "--analyses: unknown analysis 'edf-preemtive'; did you mean 'edf-preemptive'?",
        ),
        (&["-m", "2", "-a", "rm"], "analyses: 'rm' is for one processor"),
        (&["-g", "drs", "--bounds", "0.5.."], "utilisation 0.05 is under 5"),
        (&["--threads", "0"], "--threads: '0' is out of range"),
        (&["/nonexistent.toml"], "/nonexistent.toml: "),
    ] {
        let said = refusal(&hourglass(&[&["sweep"], words].concat()));
        assert!(said.starts_with(&format!("hourglass: {wanted}")), "{words:?}: {said}");
    }
}

/// A table for a spreadsheet was to be had of parquet or JSON lines only.
#[test]
fn a_sweep_becomes_rows() {
    let parent = tempfile::tempdir().unwrap();
    let place = |name: &str| parent.path().join(name).to_str().unwrap().to_owned();
    let folder = place("kept");
    printed(&[&SMALL[..], &["-q", "-o", &folder]].concat());
    let found = document(&SMALL);
    let csv = printed(&["export", &folder, "--csv", "-"]);
    assert!(csv.starts_with("utilisation,analysis,sets,accepted,undecided\n0.7,liu-layland,20,"));
    assert_eq!(csv.lines().count(), 1 + 2 * 3, "{csv}");
    for point in found["points"].as_array().unwrap() {
        for (name, accepted) in point["accepted"].as_object().unwrap() {
            let row = format!("{},{name},20,{accepted},0\n", point["utilisation"]);
            assert!(csv.contains(&row), "{row}: {csv}");
        }
    }
    let other = place("x");
    let refused = hourglass(&["export", &folder, "--csv", &other, "--perfetto", &other, "-q"]);
    is_refused(&refused, 2, "name another file", "twice");
    let refused = hourglass(&["export", &folder, "--perfetto", &other]);
    is_refused(&refused, 2, "holds a sweep; export it with --csv", "perfetto");
    fs::write(Path::new(&folder).join("points.jsonl"), "").unwrap();
    let refused = hourglass(&["export", &folder, "--csv", &other]);
    is_refused(&refused, 2, "no point of", "empty");
    assert!(!Path::new(&other).exists());
}

/// Killed or interrupted, the finished points stay, and the same command ends with what it would
/// have found at once.
#[test]
fn ctrl_c_keeps_what_is_done() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("long");
    let place = folder.to_str().unwrap();
    let line = format!(
        "sweep -u 0.3:0.8:0.001 --sets 2000 -n 4 -a liu-layland -o {place} --json --threads 1"
    );
    let child = command(&line).stdout(Stdio::piped()).spawn().unwrap();
    let journal = folder.join("points.jsonl");
    until("two points are finished", || {
        fs::read_to_string(&journal).unwrap_or_default().lines().count() >= 2
    });
    send("-INT", child.id().into()).unwrap();
    let output = child.wait_with_output().unwrap();
    let found = calls::document(&output);
    if output.status.code() == Some(0) {
        // Faster than the signal.
        assert_eq!(found["interrupted"], false);
        return;
    }
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(found["interrupted"], true);
    let done = found["points"].as_array().unwrap().len();
    assert!((2..501).contains(&done), "{done}");
    assert!(folder.join("sweep.parquet").is_file() && folder.join("sweep.svg").is_file());
}
