//! `hourglass-paper` as a script sees it: papers that are read, count and compare, exit codes, signals. What was measured
//! is not judged.

#[path = "../../crates/cli/tests/processes/mod.rs"]
mod processes;

use std::fs;
use std::process::{Command, Output, Stdio};

use hourglass_skip::{Requirement, skip};
use processes::{catches, send, until};
use serde_json::Value;
use tempfile::TempDir;

const SIGINT: u32 = 2;

fn command(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hourglass-paper"));
    command.args(line.split_whitespace()).stdin(Stdio::null());
    command
}

fn paper(line: &str) -> Output {
    command(line).output().unwrap()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn printed(line: &str) -> String {
    let output = paper(line);
    assert_eq!(output.status.code(), Some(0), "{line}: {}", text(output.stderr));
    text(output.stdout)
}

fn refuses(line: &str, message: &str) {
    let output = paper(line);
    let stderr = text(output.stderr);
    assert_eq!(output.status.code(), Some(2), "{line}: {stderr}");
    assert!(output.stdout.is_empty(), "{line}");
    assert_eq!(stderr.lines().count(), 1, "{line}: {stderr}");
    assert!(stderr.starts_with(&format!("hourglass: {message}")), "{line}: {stderr}");
}

/// A document whose sentences are whole: no name stands in the place of its value.
fn document(line: &str) -> Value {
    let document = json(&printed(line));
    for table in document["tables"].as_array().unwrap() {
        let texts = [&table["method"], &table["difference"], &table["notes"]];
        assert!(texts.iter().all(|text| !text.to_string().contains('{')), "{texts:?}");
    }
    document
}

/// A document and the folder of its figures.
fn drawn(line: &str) -> (TempDir, Value) {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("figures");
    (home, document(&format!("{line} --json -o {}", folder.display())))
}

fn figure(home: &TempDir, name: &str) -> String {
    let figure = fs::read_to_string(home.path().join("figures").join(name)).unwrap();
    assert!(figure.starts_with("<svg ") && figure.ends_with("</svg>\n"), "{figure}");
    figure
}

fn tables<const N: usize>(document: &Value) -> &[Value; N] {
    let tables = document["tables"].as_array().unwrap().as_slice();
    tables.try_into().unwrap_or_else(|_| panic!("{document}"))
}

fn row<'a>(table: &'a Value, name: &str) -> &'a Value {
    let rows = table["rows"].as_array().unwrap();
    rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name}: {table}"))
}

/// CONTRACT, `hourglass.paper/1`: a counted table has the same keys, nothing is drawn of it, and a
/// cell that cannot be read in the paper is null.
#[test]
fn counted_tables_and_illegible_cells() {
    let document = document("hrtimers --quick --table 1 --table 8.1.2 --json");
    assert_eq!(document["schema"], "hourglass.paper/1");
    assert_eq!((&document["paper"], &document["effort"]), (&"hrtimers".into(), &"quick".into()));
    let [arrays, latency] = tables(&document);
    let end = row(arrays, "array 2, end");
    assert_eq!((&end["paper"], &end["measured"]), (&16_384.0.into(), &16_384.0.into()));
    assert_eq!((&end["unit"], &end["how"]), (&"ticks".into(), &"simulated".into()));
    assert_eq!(arrays["figure"], Value::Null);
    assert_eq!(row(latency, "2.6.16-rt12; here kernel, min")["paper"], 16.0);
    assert_eq!(row(latency, "2.6.16-rt12; here kernel, avg")["paper"], Value::Null);
    let ticks = row(latency, "2.6.16; here engine, ticks, avg");
    assert_eq!((&ticks["paper"], &ticks["how"]), (&2_198.0.into(), &"emulated".into()));
    assert!(ticks["measured"].as_f64().is_some_and(|us| us > 0.0), "{ticks}");
}

#[test]
fn tables_that_are_not_there() {
    let message = "--table: unknown table '8.1'; use one of 1, 4.1, 4.3, 8.1.1,";
    refuses("hrtimers --table 8.1", message);
}

#[test]
fn costs_of_timers_beside_those_of_1993() {
    let (home, document) = drawn("rt-mach-timers --quick --table 1 --table 5.1");
    let [operations, pending] = tables(&document);
    let create = row(operations, "timer_create(); POSIX timer");
    assert_eq!((&create["paper"], &create["unit"]), (&220.0.into(), &"us".into()));
    assert_eq!(row(operations, "null trap; getppid")["paper"], 7.0);
    assert_eq!(row(pending, "sorted list: for each pending")["paper"], 600.0);
    assert_eq!(
        (&operations["figure"], &pending["figure"]),
        (&Value::Null, &"figure-5.1.svg".into())
    );
    figure(&home, "figure-5.1.svg");
}

#[test]
fn figures_and_loads_of_2002() {
    let devices = || fs::read_dir("/sys/class/net").unwrap().count();
    let before = devices();
    let (home, document) =
        drawn("hourglass-2002 --quick --table figure-3 --table figure-6 --table 2");
    let [priorities, deadlines, receiving] = tables(&document);
    assert_eq!(priorities["figure"], "figure-3.svg");
    let said = receiving.to_string();
    match said.contains("CAP_SYS_NICE is missing") {
        true => skip(Requirement::REAL_TIME, "figure 6 is of a real-time thread"),
        false => assert_eq!(receiving["figure"], "figure-6.svg"),
    }
    let plain = row(deadlines, "4/5 ms and stream: missed");
    assert_eq!((&plain["paper"], &plain["unit"]), (&33.0.into(), &"%".into()));
    let stream = row(deadlines, "control 2, stream alone: throughput");
    assert_eq!(stream["paper"], 94.0);
    assert!(stream["measured"].as_f64().is_some_and(|mbps| mbps > 0.0), "{stream}");
    assert!(figure(&home, "figure-3.svg").contains("HIGH"));
    assert_eq!(devices(), before);
}

#[test]
fn the_example_of_the_smt_paper() {
    let (home, document) = drawn("smt-reservation --quick --table figure-4 --table figure-5");
    let tables = tables::<2>(&document);
    for row in tables.iter().flat_map(|table| table["rows"].as_array().unwrap()) {
        assert_eq!((&row["measured"], &row["how"]), (&row["paper"], &"simulated".into()), "{row}");
    }
    assert_eq!(row(&tables[0], "look 2: slack")["paper"], 2.0);
    assert_eq!(row(&tables[0], "co-scheduled process preempted at")["measured"], 6.0);
    assert_eq!(row(&tables[1], "real-time process done at")["measured"], 6.0);
    for (table, name) in tables.iter().zip(["figure-4.svg", "figure-5.svg"]) {
        assert_eq!(table["figure"], name);
        assert!(figure(&home, name).contains("real-time on CPU 0"));
    }
}

#[test]
fn papers_are_listed() {
    let text = printed("--list");
    assert!(text.starts_with("highpertimer: "), "{text}");
    for id in ["2.1", "3.2", "5.1", "5.9"] {
        assert!(text.lines().any(|line| line.trim_start().starts_with(id)), "{id}: {text}");
    }
    let list = json(&printed("--list --json"));
    assert_eq!(list["schema"], "hourglass.paper-list/1");
    assert_eq!(list["papers"][0]["name"], "highpertimer");
    assert_eq!(list["papers"][0]["tables"][0]["id"], "2.1");
}

#[test]
fn papers_and_tables_that_are_not_there_are_named_beside_those_that_are() {
    refuses("highpertimr", "unknown paper 'highpertimr'; did you mean 'highpertimer'?\n");
    refuses(
        "xyz",
        "unknown paper 'xyz'; use one of highpertimer, hrtimers, rt-mach-timers, hourglass-2002, smt-reservation\n",
    );
    refuses(
        "highpertimer --table 2.1 --table 9.9",
        "--table: unknown table '9.9'; use one of 2.1, 2.2, 2.3, 2.4, 3.1, 3.2, \
         5.1, 5.2, 5.3, 5.4, 5.5, 5.6, 5.7, 5.8, 5.9\n",
    );
    refuses("", "the following required arguments were not provided: <NAME>");
    refuses("--list --quick", "");
}

#[test]
fn figures_need_a_folder() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    fs::write(&file, "mine").unwrap();
    for (at, why) in [(file.clone(), "is not a folder"), (home.path().join("a/b"), "No such file")]
    {
        let line = format!("highpertimer -o {}", at.display());
        refuses(&line, &format!("-o: {}: {why}", at.display()));
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
}

/// CONTRACT, `hourglass.paper/1`: keys that scripts rely on. What was measured is not judged.
#[test]
fn a_paper_is_one_document_with_figures_beside_it() {
    let (home, document) = drawn("highpertimer --quick --table 2.2");
    assert_eq!(document["schema"], "hourglass.paper/1");
    assert_eq!(
        (&document["paper"], &document["effort"]),
        (&"highpertimer".into(), &"quick".into())
    );
    assert_eq!(document["interrupted"], false);
    let [table] = tables(&document);
    assert_eq!((&table["id"], &table["figure"]), (&"2.2".into(), &"figure-2.2.svg".into()));
    assert!(table["difference"].as_str().is_some_and(|text| text.ends_with('.')));
    let row = &table["rows"][0];
    assert_eq!((&row["name"], &row["unit"]), (&"CLOCK_REALTIME, mean".into(), &"ns".into()));
    assert_eq!((&row["paper"], &row["how"]), (&31.232.into(), &"measured".into()));
    assert!(row["measured"].as_f64().is_some_and(|cost| cost > 0.0), "{row}");
    assert!(row["count"].as_u64().is_some_and(|reads| reads > 0), "{row}");
    let files = fs::read_dir(home.path().join("figures")).unwrap();
    let names: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
    assert_eq!(names, ["figure-2.2.svg"], "no half-written file beside it");
    figure(&home, "figure-2.2.svg");
}

/// CONTRACT: on Ctrl-C what was measured is written; here that is nothing, so nothing is left.
#[test]
fn a_paper_that_is_interrupted_leaves_nothing_half_written() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("figures");
    let line = format!("-q --json highpertimer --table 3.1 -o {}", folder.display());
    let running = command(&line).stdout(Stdio::piped()).spawn().unwrap();
    until("the folder is made before the measurement", || folder.exists());
    until("SIGINT is caught", || catches(running.id(), SIGINT));
    send("-INT", running.id().into()).unwrap();
    let output = running.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let document = json(&text(output.stdout));
    assert_eq!(document["interrupted"], true);
    assert_eq!(document["tables"].as_array().map(Vec::len), Some(0));
    assert!(!folder.exists());
}
