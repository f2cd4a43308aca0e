//! `hourglass check` as a script sees it: documents, exit codes, what is refused and how.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::calls::{command, hourglass, is_refused, text};
use serde_json::{Value, json};
use tempfile::TempDir;

fn check(words: &[&str]) -> Output {
    hourglass(&[&["check"], words].concat())
}

fn document(output: &Output) -> Value {
    assert_eq!(text(&output.stderr), "");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// A folder with one file of tasks.
struct File {
    _folder: TempDir,
    path: PathBuf,
}

impl File {
    fn new(name: &str, content: impl AsRef<[u8]>) -> File {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        File { _folder: folder, path }
    }

    fn check(&self, words: &[&str]) -> Output {
        let path = self.path.to_str().unwrap();
        check(&[&[path], words].concat())
    }
}

/// The set of the Hourglass paper, section 5.5.
const PAPER: &str = r#"
name = "audio and video"
[[task]]
name = "audio"
wcet = "3ms"
period = "8ms"
[[task]]
name = "video"
wcet = "17ms"
period = "33ms"
"#;

/// CONTRACT, `hourglass.check/1`: the keys, and the numbers of the paper: 3 and 29 ms.
#[test]
fn the_document_of_the_papers_set() {
    let output = File::new("tasks.toml", PAPER).check(&["--json"]);
    let document = document(&output);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(document["schema"], "hourglass.check/1");
    assert_eq!(
        (&document["analysis"], &document["verdict"]),
        (&json!("fp-preemptive"), &json!("feasible"))
    );
    assert_eq!(document["witness"], Value::Null);
    let tasks = document["tasks"].as_array().unwrap();
    let bounds: Vec<&Value> = tasks.iter().map(|task| &task["response_time_ns"]).collect();
    assert_eq!(bounds, [&json!(3_000_000), &json!(29_000_000)]);
    assert_eq!(tasks[1]["response_time_from_release_ns"], 29_000_000);
    assert_eq!(tasks[1]["deadline_ns"], 33_000_000);
    assert_eq!((&tasks[1]["name"], &tasks[1]["verdict"]), (&json!("video"), &json!("feasible")));
    let point = &tasks[1]["fixed_points"][0];
    assert_eq!((&point["job"], &point["finish_ns"]), (&json!(1), &json!(29_000_000)));
    assert_eq!(point["terms"][1], json!({"of": "audio", "jobs": 4, "each_ns": 3_000_000}));
    assert_eq!(document["processors"][0]["utilisation"], "235/264");
}

/// The same with the jitter and the busy wait of the paper: 39 ms, and a miss.
#[test]
fn a_set_that_misses_has_a_witness() {
    let late = PAPER.replace("17ms", "19ms").replace("33ms\"", "33ms\"\njitter = \"8ms\"");
    let file = File::new("tasks.toml", late);
    let output = file.check(&["--json"]);
    let document = document(&output);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(document["verdict"], "infeasible");
    assert_eq!(document["tasks"][1]["response_time_ns"], 39_000_000);
    assert_eq!(document["tasks"][1]["response_time_from_release_ns"], 37_000_000);
    let witness = &document["witness"];
    assert_eq!((&witness["task"], &witness["found_ns"]), (&json!("video"), &json!(39_000_000)));
    let printed = text(&file.check(&[]).stdout);
    assert!(
        printed.contains("Infeasible, because job 1 of the busy window of 'video'"),
        "{printed}"
    );
    assert!(printed.lines().all(|line| line.chars().count() <= 80), "{printed}");
}

/// What was understood and the proof, in words.
#[test]
fn an_explanation_has_the_proof() {
    let printed = text(&File::new("tasks.toml", PAPER).check(&["--explain"]).stdout);
    for wanted in [
        "Understood\n",
        "    wcet            17ms\n",
        "(not said)",
        "17ms (video) + 4 x 3ms",
        "2 points verified by substitution",
        "Feasible: every deadline holds",
    ] {
        assert!(printed.contains(wanted), "{wanted}: {printed}");
    }
    assert!(printed.lines().all(|line| line.chars().count() <= 80), "{printed}");
}

/// Under EDF a case may lie after the busy window; it has no response time.
#[test]
fn a_case_after_the_busy_window_is_said_to_be() {
    let task = |name: &str, wcet: u32, period: u32, deadline: u32| {
        format!(
            "[[task]]\nname = \"{name}\"\nwcet = \"{wcet}ms\"\nperiod = \"{period}ms\"\ndeadline = \"{deadline}ms\"\n"
        )
    };
    let tasks = [task("a", 1, 4, 4), task("b", 2, 6, 5), task("c", 4, 12, 12)].concat();
    let file = File::new("tasks.toml", format!("scheduler = \"edf\"\n{tasks}"));
    let printed = text(&file.check(&["--explain"]).stdout);
    let after = "job 2, released at 7ms, after the busy window, which ends at 4ms\n";
    assert!(printed.contains(after) && !printed.contains("response time 0s"), "{printed}");
    assert!(printed.contains("job 3, released at 8ms, done at 11ms: response time 3ms\n"));
}

/// A reservation: its budget suffices, and one nanosecond less does not.
#[test]
fn the_smallest_reservation() {
    let one = "[[task]]\nname = \"a\"\nwcet = \"1ms\"\nperiod = \"10ms\"\n";
    let output = File::new("tasks.toml", one).check(&["--server", "5ms", "--json"]);
    // 1 ms within 10 ms of any window: 2 (5 - Q) before the first, so Q = 0.5 ms needs two periods.
    let document = document(&output);
    let budget = document["server"]["budget_ns"].as_u64().unwrap();
    let inside = |budget: u64| {
        let server = format!(
            "{one}[[server]]\nname = \"s\"\nkind = \"periodic-resource\"\nbudget = \"{budget}ns\"\n\
             period = \"5ms\"\ntasks = [\"a\"]\n"
        );
        File::new("tasks.toml", server).check(&["-q"]).status.code()
    };
    assert_eq!((inside(budget), inside(budget - 1)), (Some(0), Some(1)), "{budget}");
    // Without costs, 1/9 of 1 ms is less than 1 of 4 ms. With 0.4 ms for two switches more than half of
    // 1 ms goes, and 1.2 + 0.4 of 4 ms.
    let best = |text: String| {
        let output = File::new("tasks.toml", text).check(&["--server", "4ms,1ms", "--json"]);
        self::document(&output)["server"]["period_ns"].as_u64()
    };
    assert_eq!(best(one.to_owned()), Some(1_000_000));
    let costs = "[machine.overheads]\ncontext_switch = \"200us\"\n";
    assert_eq!(best(format!("{one}{costs}")), Some(4_000_000));
}

/// CONTRACT, `hourglass.check-corpus/1`: cases that pass, fail and are not supported.
#[test]
fn worked_examples() {
    let folder = data("examples");
    let folder = folder.to_str().unwrap();
    let output = check(&["--corpus", folder, "--json"]);
    let document = document(&output);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(document["schema"], "hourglass.check-corpus/1");
    let cases = document["cases"].as_array().unwrap();
    let status: Vec<&str> = cases.iter().map(|case| case["status"].as_str().unwrap()).collect();
    assert_eq!(status, ["pass", "fail", "pass", "unsupported", "unsupported", "unsupported"]);
    assert_eq!(cases[0]["got"], json!({"r": [3, 29], "schedulable": true}));
    assert_eq!(cases[1]["expected"], json!({"r": [3, 28]}));
    assert_eq!((&cases[2]["id"], &cases[2]["kind"]), (&json!("fifo"), &json!("fifo")));
    let printed = text(&check(&["--corpus", folder]).stdout);
    assert!(printed.contains("r: expected [3,28], got [3,29]"), "{printed}");
    assert!(printed.contains("the key `offset` is not known"), "{printed}");
    assert!(printed.ends_with("2 passed, 1 failed, 3 unsupported\n"), "{printed}");
}

/// Unsupported cases are no failures; what cannot be read is bad input.
#[test]
fn exit_codes_of_worked_examples() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().to_str().unwrap();
    let exit = |content: &str| {
        std::fs::write(folder.path().join("a.json"), content).unwrap();
        check(&["--corpus", path]).status.code()
    };
    assert_eq!(check(&["--corpus", path]).status.code(), Some(2), "no files");
    assert_eq!(exit(r#"[{"id": "a", "kind": "of tomorrow", "expect": {}}]"#), Some(0));
    assert_eq!(exit("{}"), Some(2));
    assert_eq!(exit(""), Some(2));
    assert_eq!(check(&["--corpus", "/nowhere/at/all"]).status.code(), Some(2));
}

/// One line that names the culprit and the remedy, and the exit code of bad input.
fn refused(content: impl AsRef<[u8]>, wanted: &str) {
    is_refused(&File::new("tasks.toml", content).check(&[]), 2, wanted, wanted);
}

#[test]
fn what_cannot_be_read() {
    refused("", "the file is empty; write a table [[task]]");
    refused([0x7f, b'E', b'L', b'F', 0xff, 0], "byte 4 is not UTF-8");
    refused(PAPER.replace("period = \"8ms\"", "perod = \"8ms\""), "unknown key 'perod'");
    refused(
        PAPER.replace("\"3ms\"", "\"3ms\"\ndeadline = \"0s\""),
        "deadline = 0s: it must be above zero",
    );
    refused(PAPER.replace("\"8ms\"", "\"400 years\""), "period");
    refused(PAPER.replace("\"8ms\"", "\"99999999999s\""), "period");
    let circle =
        PAPER.replace("\"3ms\"", "\"3ms\"\nafter = [\"video\"]").replace("\"8ms\"", "\"33ms\"");
    refused(circle.replace("17ms\"", "17ms\"\nafter = [\"audio\"]"), "audio");
    // Phases that run five times as long as the wcet says.
    let phases =
        "\nphases = [{ loops = 10, steps = [\"run 1500us\"] }, { steps = [\"timer t 8ms\"] }]";
    let mismatch = PAPER.replace("\"3ms\"", &format!("\"3ms\"{phases}"));
    refused(mismatch, "wcet is 3ms, but its phases come to 15ms in a job");
    refused("[{\"id\": \"a\"}]", "use hourglass check --corpus FOLDER");
    for (words, wanted) in [
        (&["/nowhere.toml"][..], "/nowhere.toml"),
        (&["/tmp"], "not a run folder"),
        (&[][..], "FILE"),
        (&["--corpus", "a", "b.toml"], "cannot be used with"),
    ] {
        is_refused(&check(words), 2, wanted, words);
    }
}

/// A verdict of no, with the reason, and exit code 1.
fn no(content: &str, verdict: &str, wanted: &str) {
    let output = File::new("tasks.toml", content).check(&["--json", "-q"]);
    let document = document(&output);
    assert_eq!(document["verdict"], verdict, "{document}");
    let why = format!("{} {}", document["witness"], document["reason"]);
    assert!(why.contains(wanted), "{wanted}: {why}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn what_does_not_hold() {
    // Over a whole processor: 3/8 + 33/33.
    no(&PAPER.replace("17ms", "33ms"), "no_bound", "11/8");
    let over = PAPER.replace("33ms\"", "33ms\"\ndeadline = \"1h\"").replace("17ms", "21ms");
    no(&over, "no_bound", "89/88");
    // C > D.
    no(&PAPER.replace("\"3ms\"", "\"3ms\"\ndeadline = \"2ms\""), "infeasible", "audio");
    // All of the processor is used and releases jitter: the busy window never ends.
    let endless = "scheduler = \"edf\"\n".to_owned()
        + &PAPER
            .replace("\"3ms", "\"4ms")
            .replace("17ms", "16500us")
            .replace("33ms\"", "33ms\"\njitter = \"1ms\"");
    no(&endless, "infeasible", "due");
    // A busy window of more jobs than the step limit: the search is given up.
    let given_up = PAPER
        .replace("\"3ms", "\"4ms")
        .replace("17ms", "500000001ns")
        .replace("33ms\"", "1000000002ns\"\ndeadline = \"40h\"\njitter = \"1ms\"");
    no(&given_up, "unknown", "given up");
    // Times of 63 bits.
    let long = "[[task]]\nname = \"a\"\nwcet = \"1ns\"\nperiod = \"2ns\"\n[[task]]\nname = \"b\"\n\
                wcet = \"4611686018427387903ns\"\nperiod = \"9223372036854775807ns\"\n";
    let output = File::new("tasks.toml", long).check(&["-q", "--json"]);
    assert!(matches!(output.status.code(), Some(0 | 1)));
    no(
        "scheduler = \"fair\"\n[[task]]\nname = \"a\"\nwcet = \"1ms\"\nperiod = \"9ms\"\n",
        "unknown",
        "fair",
    );
}

#[test]
fn analyses_are_listed_and_asked_for_by_name() {
    let listed = text(&check(&["--list-analyses"]).stdout);
    for name in ["fp-preemptive", "edf-demand", "fifo", "supply", "global-edf", "holistic"] {
        assert!(listed.lines().any(|line| line == name), "{name}");
    }
    let file = File::new("tasks.toml", PAPER);
    let by = |name: &str| file.check(&["--analysis", name, "--json"]);
    // 235/264 is over 2 (2^(1/2) - 1), and (1 + 3/8) (1 + 17/33) is over 2.
    assert_eq!(document(&by("hyperbolic"))["verdict"], "unknown");
    assert_eq!(document(&by("fp-preemptive"))["verdict"], "feasible");
    // "Its scheduler is another" did not say how to ask for EDF.
    for (name, wanted) in [
        ("edf-demand", "does not answer this set: the file needs scheduler = \"edf\""),
        ("edf", "the file needs scheduler = \"edf\"; as it is, fp-preemptive answers it"),
        ("rta", "unknown analysis 'rta'"),
        ("rm", "for which check has fp-preemptive with priorities = \"rate-monotonic\""),
    ] {
        is_refused(&by(name), 2, wanted, name);
    }
}

/// A pipe without a writer made the command wait for ever; a missing file had no remedy.
#[test]
fn only_files_and_the_standard_input_are_read() {
    let folder = TempDir::new().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let missing = folder.path().join("missing.toml");
    for (path, said) in [
        (&pipe, "no regular file; name one, or - for the standard input"),
        (&missing, "no such file; name a file of tasks, a run folder, or - for the standard input"),
    ] {
        for command in ["check", "simulate", "predict", "sweep"] {
            is_refused(&hourglass(&[command, path.to_str().unwrap()]), 2, said, command);
        }
    }
    let file = File::new("tasks.toml", PAPER);
    for name in ["-", "/dev/stdin"] {
        let input = std::fs::File::open(&file.path).unwrap();
        let read = command(&["check", "--json", name]).stdin(input).output().unwrap();
        assert_eq!(document(&read)["verdict"], "feasible", "{name}");
    }
}

/// Many files, one document on stdout; an error in one does not stop the others, and the worst code counts.
#[test]
fn many_files_are_one_document() {
    let folder = TempDir::new().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let good = file("good.toml", PAPER);
    let late = file("late.toml", &PAPER.replace("17ms", "34ms"));
    let broken = file("broken.toml", "[[task]]\nname = 1\n");
    let output = check(&["--json", "-q", &good, &broken, &late]);
    assert_eq!(output.status.code(), Some(2));
    let all = document(&output);
    assert_eq!(
        (&all["schema"], &all["command"], &all["exit_code"]),
        (&json!("hourglass.batch/1"), &json!("check"), &json!(2))
    );
    let codes: Vec<_> = all["files"].as_array().unwrap().iter().map(|file| &file["exit"]).collect();
    assert_eq!(codes, [&json!(0), &json!(2), &json!(1)]);
    assert_eq!(all["files"][0]["document"], document(&check(&["--json", &good])));
    assert!(all["files"][1]["document"].is_null());
    assert!(all["files"][1]["error"].as_str().unwrap().contains("broken.toml: task number 1"));
    // The same line by line, also for one file.
    let lines = text(&check(&["--jsonl", "-q", &good, &broken, &late]).stdout);
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(json!(lines), all["files"]);
    assert_eq!(text(&check(&["--jsonl", &good]).stdout).lines().count(), 1);
    // For people, each table has its file, and errors go to stderr.
    let output = check(&["-q", &good, &broken]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stdout).starts_with(&format!("{good}:\n")), "{}", text(&output.stdout));
    assert_eq!(text(&output.stderr).lines().count(), 1);
    assert_eq!(check(&["--json", "--jsonl", &good]).status.code(), Some(2));
}

/// Files of other tools are named, never called broken TOML.
#[test]
fn other_formats_are_named() {
    for (name, content, said) in [
        (
            "workload.toml",
            "duration = \"1s\"\n[[thread]]\nworkload = \"CPU\"\n",
            "this looks like a workload file, which hourglass run runs",
        ),
        ("page.html", "<!DOCTYPE html>\n<html></html>", "this looks like XML of a kind"),
        (
            "fig1a.prec.csv",
            "Predecessor TID, Predecessor JID, Successor TID, Successor JID\n",
            "precedence constraints",
        ),
        ("sets.xml", "<testpoint><taskset/><taskset/></testpoint>", "2 task sets"),
    ] {
        let line = is_refused(&File::new(name, content).check(&[]), 2, said, name);
        assert!(!line.contains("TOML"), "{line}");
    }
    let set = "<taskset><task wcet=\"3000\" period=\"8000\"/><task wcet=\"17000\" period=\"33000\"/></taskset>";
    let found = document(&File::new("set.xml", set).check(&["--json", "-q"]));
    assert_eq!(found["tasks"][1]["response_time_ns"], json!(29_000_000));
    for option in ["--format", "--from"] {
        let said = text(&File::new("set.xml", set).check(&[option, "toml"]).stderr);
        assert!(said.contains("expected `=`"), "{option}: {said}");
    }
}
