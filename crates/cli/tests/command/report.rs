//! `report` and `export` as a script sees them: files, exit codes, and folders that cannot be read.

use std::fs;
use std::path::Path;
use std::process::Command;

use hourglass_skip::{Requirement, skip};
use serde_json::Value;

use crate::calls::{command, ends, hourglass_in, is_refused, stderr};

fn done(words: &[&str], folder: &Path) -> Vec<u8> {
    ends(&hourglass_in(folder, words), 0, words).stdout.clone()
}

/// Exit code 2 and one line that says this.
fn refused(words: &[&str], folder: &Path, message: &str) {
    is_refused(&hourglass_in(folder, words), 2, message, words);
}

#[test]
fn a_run_becomes_a_page_and_files_for_others() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    done(&["-q", "-n", "1", "-d", "200ms", "-o", "run"], folder);
    let said = done(&["report", "run", "-o", "run.html", "--json"], folder);
    let said: Value = serde_json::from_slice(&said).unwrap();
    let page = fs::read_to_string(folder.join("run.html")).unwrap();
    assert_eq!(
        (said["schema"].as_str(), said["page"].as_str()),
        (Some("hourglass.report/1"), Some("run.html"))
    );
    assert_eq!(said["bytes"].as_u64(), Some(page.len() as u64));
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("<h1>run</h1>"));
    assert!(!page.contains("http://") && !page.contains("https://"), "it names another place");
    let titled = done(&["report", "run", "-o", "-", "--title", "<b>"], folder);
    assert!(String::from_utf8(titled).unwrap().contains("<h1>&lt;b&gt;</h1>"));
    let said =
        done(&["export", "run", "--perfetto", "a.pftrace", "--csv", "a.csv", "--json"], folder);
    let said: Value = serde_json::from_slice(&said).unwrap();
    assert_eq!(said["written"].as_array().unwrap().len(), 2);
    let csv = fs::read_to_string(folder.join("a.csv")).unwrap();
    let recorded = done(&["show", "run", "--records"], folder);
    let recorded = String::from_utf8(recorded).unwrap();
    let records = recorded.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    assert_eq!(csv.lines().count(), records.count() + 1);
    assert_eq!(done(&["export", "run", "--csv", "-"], folder), csv.into_bytes());
    assert!(fs::metadata(folder.join("a.pftrace")).unwrap().len() > 100);
    refused(
        &["export", "run", "--hdr", "a.hlog", "--csv", "b.csv"],
        folder,
        "--hdr: no thread of run measured latency; run with",
    );
    assert!(!folder.join("b.csv").exists(), "nothing is written before all can be");
    refused(&["export", "run", "--csv", "x", "--perfetto", "x"], folder, "name another file");
    refused(&["export", "run", "--csv", "-", "--json"], folder, "not JSON");
    refused(&["export", "run"], folder, "required");
    // `file x.png` said SVG, and x.pdf was HTML.
    refused(&["report", "run", "-o", "x.pdf"], folder, "-o: x.pdf would hold HTML");
    for name in ["x.jpg", "x.html"] {
        refused(&["render", "run", "-o", name], folder, "would not hold what its name says");
    }
    done(&["render", "run", "-o", "monday.2", "-q"], folder);
    refused(&["report", "run", "-o", "no/where.html"], folder, "-o: no/where.html");
    refused(&["export", "run", "--csv", "no/where.csv"], folder, "--csv: no/where.csv");
}

/// Whose magic numbers: the PNG specification, section 5.2, and ISO 32000-2, 7.5.2.
#[test]
fn a_picture_has_the_format_of_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    done(&["-q", "-n", "1", "-d", "200ms", "-w", "LAT", "2ms", "-o", "run"], folder);
    let mut without = command(&["render", "run", "-o", "x.pdf"]);
    let output = without.current_dir(folder).env("PATH", "").output().unwrap();
    let said = stderr(ends(&output, 3, "without a converter"));
    assert!(said.contains("sudo apt install librsvg2-bin") && said.lines().count() == 1, "{said}");
    assert!(!folder.join("x.pdf").exists());
    if Command::new("rsvg-convert").arg("--version").output().is_err() {
        return skip(Requirement::program("rsvg-convert"), "no rsvg-convert");
    }
    done(&["-q", "-n", "1", "-d", "200ms", "-w", "LAT", "2ms", "-o", "again"], folder);
    for (name, begins) in [("x.PNG", &b"\x89PNG\r\n"[..]), ("x.pdf", b"%PDF-"), ("x.svg", b"<svg")]
    {
        done(&["render", "run", "-o", name, "-q"], folder);
        let compared = format!("diff-{}", name.to_lowercase());
        hourglass_in(folder, &["diff", "run", "again", "-o", &compared, "-q"][..]);
        for name in [name, &compared] {
            assert!(fs::read(folder.join(name)).unwrap().starts_with(begins), "{name}");
        }
    }
}

#[test]
fn latencies_become_the_files_of_cyclictest() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    done(&["-q", "-n", "1", "-d", "200ms", "-w", "LAT", "2ms", "-o", "run"], folder);
    let formats = ["--hdr", "a.hlog", "--cyclictest", "a.json", "--cyclictest-hist", "a.hist"];
    done(&[&["export", "run", "--histogram-us", "50"], &formats[..]].concat(), folder);
    // Its older name.
    done(&["export", "run", "--rows", "50", "--cyclictest-hist", "b.hist"], folder);
    let histogram = |name: &str| fs::read(folder.join(name)).unwrap();
    assert_eq!(histogram("a.hist"), histogram("b.hist"));
    let json: Value = serde_json::from_slice(&fs::read(folder.join("a.json")).unwrap()).unwrap();
    let thread = &json["thread"]["0"];
    let counts = thread["histogram"].as_object().unwrap().values();
    let sum: u64 = counts.map(|count| count.as_u64().unwrap()).sum();
    assert!(sum > 0);
    assert_eq!(thread["cycles"].as_u64(), Some(sum));
    let text = fs::read_to_string(folder.join("a.hist")).unwrap();
    assert!(text.starts_with("# Histogram\n000000 "));
    assert_eq!(text.lines().filter(|line| line.starts_with('0')).count(), 50);
    assert!(fs::read_to_string(folder.join("a.hlog")).unwrap().contains("Tag=thread-0,"));
    let page = done(&["report", "run", "-o", "-"], folder);
    assert!(String::from_utf8(page).unwrap().contains("Latency of wake-ups"));
    // Of a log that is damaged the file is at fault, and not stdout, nor the file to be written.
    fs::write(folder.join("run/latency.hlog"), "damaged\n").unwrap();
    for out in ["-", "b.hlog"] {
        let said = hourglass_in(folder, &["export", "run", "--hdr", out]);
        let text = stderr(ends(&said, 2, out));
        assert!(text.contains("latency.hlog") && !text.contains("stdout"), "{text}");
        assert!(!text.contains("b.hlog"), "{text}");
    }
}

/// Of a latency test `render` drew an empty axis, and `export --csv` wrote a header, both with exit code 0.
#[test]
fn latencies_are_drawn_and_become_rows() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    done(&["latency", "-q", "-i", "1000", "-l", "200", "-t", "2", "-o", "late"], folder);
    let document = done(&["show", "late", "--json"], folder);
    let document: Value = serde_json::from_slice(&document).unwrap();
    let latencies = |key: &str| -> Vec<f64> {
        let threads = document["threads"].as_array().unwrap().iter();
        threads.map(|thread| thread["latency"][key].as_f64().unwrap()).collect()
    };
    let csv = String::from_utf8(done(&["export", "late", "--csv", "-"], folder)).unwrap();
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("thread,expiry_ns,woke_ns,latency_ns"));
    let rows: Vec<Vec<f64>> =
        lines.map(|line| line.split(',').map(|field| field.parse().unwrap()).collect()).collect();
    assert_eq!(rows.len() as f64, latencies("count").iter().sum::<f64>());
    for (thread, max_ns) in latencies("max_ns").into_iter().enumerate() {
        let own = rows.iter().filter(|row| row[0] == thread as f64);
        let found = own.map(|row| row[3]).fold(0.0, f64::max);
        assert!((found - max_ns).abs() <= 1.0, "{thread}: {found}, {max_ns}");
    }
    assert!(rows.iter().all(|row| (row[2] - row[1] - row[3]).abs() <= 1.0), "{csv}");
    let picture = String::from_utf8(done(&["render", "late", "-o", "-"], folder)).unwrap();
    for part in [">wake-up latency, us<", ">wake-ups of the run<", " median ", ">max "] {
        assert!(picture.contains(part), "{part}: {picture}");
    }
    assert!(!picture.contains("ran without a gap"), "no row of the trace: {picture}");
    // Where single wake-ups are not there, their histogram is.
    fs::remove_file(folder.join("late/latency.parquet")).unwrap();
    let csv = String::from_utf8(done(&["export", "late", "--csv", "-"], folder)).unwrap();
    let counts = csv.lines().skip(1).map(|line| line.rsplit(',').next().unwrap());
    let sum: u64 = counts.map(|count| count.parse::<u64>().unwrap()).sum();
    assert!(csv.starts_with("thread,latency_ns,count\n"), "{csv}");
    assert_eq!(sum, rows.len() as u64);
    let picture = String::from_utf8(done(&["render", "late", "-o", "-"], folder)).unwrap();
    assert!(picture.contains("only their histogram is drawn"), "{picture}");
}

/// Threads that measure latencies beside others: one picture has both.
#[test]
fn latencies_and_records_are_in_one_picture() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let words = "-q -n 2 -d 0.2s -t 0 -w LAT 5ms -t 1 -w PERIODIC 1ms 10ms -o run";
    done(&words.split(' ').collect::<Vec<_>>(), folder);
    let title = ["render", "run", "-o", "-", "--title", "Monday"];
    let picture = String::from_utf8(done(&title, folder)).unwrap();
    assert!(picture.contains(">wake-up latency, us<") && picture.contains("PERIODIC"), "{picture}");
    assert_eq!(picture.matches("<svg ").count(), 3, "two in one");
    assert_eq!(picture.matches(">Monday</text>").count(), 1);
}

/// A folder may have neither records nor wake-ups: a header alone would say that nothing happened.
#[test]
fn nothing_to_export_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    done(&["latency", "-q", "-i", "1000", "-l", "5", "-o", "late"], folder);
    let manifest = folder.join("late/manifest.json");
    let mut found: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    found["result"]["threads"][0]["latency"] = Value::Null;
    found.as_object_mut().unwrap().remove("crc32").unwrap();
    fs::write(&manifest, serde_json::to_vec(&found).unwrap()).unwrap();
    refused(&["export", "late", "--csv", "x.csv"], folder, "neither records nor wake-ups");
    assert!(!folder.join("x.csv").exists());
}

/// What a crash, a copy that broke off, or a wrong name leaves.
#[test]
fn folders_that_cannot_be_read_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    done(&["-q", "-n", "1", "-d", "100ms", "-o", "run"], folder);
    for (name, message) in [("nowhere", "does not exist"), ("half", "is half-written")] {
        if name == "half" {
            fs::create_dir(folder.join(name)).unwrap();
            fs::copy(folder.join("run/trace.parquet"), folder.join("half/trace.parquet")).unwrap();
        }
        refused(&["report", name, "-o", "x.html"], folder, message);
        refused(&["export", name, "--csv", "x.csv"], folder, message);
    }
    let trace = fs::read(folder.join("run/trace.parquet")).unwrap();
    fs::write(folder.join("run/trace.parquet"), &trace[..trace.len() / 2]).unwrap();
    refused(&["report", "run", "-o", "x.html"], folder, "truncated");
    refused(&["export", "run", "--perfetto", "x"], folder, "truncated");
    assert!(!folder.join("x.html").exists() && !folder.join("x").exists());
}

/// Issue 23: runs of nodes become one table, each of their gaps in it; a node that answers twice is refused.
#[test]
fn runs_of_nodes_are_merged_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("runs")).unwrap();
    for node in ["n1", "n2"] {
        let mut command = command(&format!("-q -n 1 -d 100ms -o runs/{node}"));
        let output = command.env("HOURGLASS_NODE", node).current_dir(folder).output().unwrap();
        ends(&output, 0, node);
    }
    let said = done(&["merge", "runs", "-o", "fleet", "--json"], folder);
    let document: Value = serde_json::from_slice(&said).unwrap();
    assert_eq!(document["schema"], "hourglass.fleet/1");
    let nodes = document["nodes"].as_array().unwrap();
    let mut names: Vec<&str> = nodes.iter().map(|node| node["node"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["n1", "n2"]);
    // A full buffer is said.
    let all_stored = nodes.iter().all(|node| node["gaps"]["stored"] == node["gaps"]["count"]);
    assert!(all_stored || said.windows(15).any(|text| text == b"gaps-not-stored"));
    assert_eq!(done(&["report", "fleet", "--json"], folder), said);
    let shown = String::from_utf8(done(&["report", "fleet"], folder)).unwrap();
    assert!(shown.starts_with("2 runs of 2 nodes: CPU by "), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    refused(&["report", "fleet", "-o", "page.html"], folder, "leave -o and --title out");
    refused(&["report", "runs/n1"], folder, "-o: a run makes a page");
    refused(&["merge", "runs", "runs/n1", "-o", "out"], folder, "of n1 is there twice, in runs/n1");
    refused(&["merge", "runs", "-o", "fleet"], folder, "fleet exists already");
    fs::remove_file(folder.join("runs/n2/manifest.json")).unwrap();
    refused(&["merge", "runs", "-o", "out"], folder, "runs/n2 is half-written");
    assert!(!folder.join("out").exists());
}
