//! `hourglass paper` of papers that count and compare, as a script sees it. What was measured is not
//! judged.

use std::process::{Command, Output, Stdio};

use hourglass_skip::{Requirement, skip};
use serde_json::Value;

fn paper(line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hourglass"));
    command.arg("paper").args(line.split_whitespace()).stdin(Stdio::null()).output().unwrap()
}

fn document(line: &str) -> Value {
    let output = paper(line);
    assert_eq!(output.status.code(), Some(0), "{line}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
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
    let [arrays, latency] = &document["tables"].as_array().unwrap()[..] else {
        panic!("{document}")
    };
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

/// Exit code 2, and the tables that there are.
#[test]
fn tables_that_are_not_there() {
    let output = paper("hrtimers --table 8.1");
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.starts_with("hourglass: --table: unknown table '8.1'; use one of 1, 4.1, 4.3, 8.1.1,"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
}

/// Section 5 of the paper of 1993: every table has rows beside the paper's numbers, and the curves are
/// drawn.
#[test]
fn costs_of_timers_beside_those_of_1993() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("figures");
    let line =
        format!("rt-mach-timers --quick --table 1 --table 5.1 --json -o {}", folder.display());
    let document = document(&line);
    let [operations, pending] = &document["tables"].as_array().unwrap()[..] else {
        panic!("{document}")
    };
    let create = row(operations, "timer_create(); POSIX timer");
    assert_eq!((&create["paper"], &create["unit"]), (&220.0.into(), &"us".into()));
    assert_eq!(row(operations, "null trap; getppid")["paper"], 7.0);
    assert_eq!(row(pending, "sorted list: for each pending")["paper"], 600.0);
    assert_eq!(
        (&operations["figure"], &pending["figure"]),
        (&Value::Null, &"figure-5.1.svg".into())
    );
    let figure = std::fs::read_to_string(folder.join("figure-5.1.svg")).unwrap();
    assert!(figure.starts_with("<svg ") && figure.ends_with("</svg>\n"));
}

/// Sections 3 and 5 of the Hourglass paper: figures have their numbers in a table, and a picture; no device
/// or tree of the load is left.
#[test]
fn figures_and_loads_of_2002() {
    let devices = || std::fs::read_dir("/sys/class/net").unwrap().count();
    let before = devices();
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("figures");
    let line = format!(
        "hourglass-2002 --quick --table figure-3 --table figure-6 --table 2 --json -o {}",
        folder.display()
    );
    let document = document(&line);
    let [priorities, deadlines, receiving] = &document["tables"].as_array().unwrap()[..] else {
        panic!("{document}")
    };
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
    let figure = std::fs::read_to_string(folder.join("figure-3.svg")).unwrap();
    assert!(figure.starts_with("<svg ") && figure.contains("HIGH"), "{figure}");
    assert_eq!(devices(), before);
}

/// Section 3.3 of the SMT paper: equations 4 to 8, Figures 4 and 5, which are simulated and drawn.
#[test]
fn the_example_of_the_smt_paper() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("figures");
    let line = format!(
        "smt-reservation --quick --table figure-4 --table figure-5 --json -o {}",
        folder.display()
    );
    let document = document(&line);
    let tables = document["tables"].as_array().unwrap();
    assert_eq!(tables.len(), 2, "{document}");
    for row in tables.iter().flat_map(|table| table["rows"].as_array().unwrap()) {
        assert_eq!((&row["measured"], &row["how"]), (&row["paper"], &"simulated".into()), "{row}");
    }
    assert_eq!(row(&tables[0], "look 2: slack")["paper"], 2.0);
    assert_eq!(row(&tables[0], "co-scheduled process preempted at")["measured"], 6.0);
    assert_eq!(row(&tables[1], "real-time process done at")["measured"], 6.0);
    for (table, name) in tables.iter().zip(["figure-4.svg", "figure-5.svg"]) {
        assert_eq!(table["figure"], name);
        let figure = std::fs::read_to_string(folder.join(name)).unwrap();
        assert!(figure.contains("real-time on CPU 0"), "{figure}");
    }
}
