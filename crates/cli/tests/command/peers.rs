//! `latency` and `noise` as users and scripts of cyclictest and oslat see them.
//!
//! Runs are short, and none of them spins at a real-time priority.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::calls::{command, ends, hourglass, is_refused, json, printed, refuses, text};
use crate::processes::{allowed_cpus, catches, send, until};
use hourglass_skip::{Requirement, skip};

/// Its number on every processor that Linux has but for some of MIPS.
const SIGUSR1: u32 = 10;

/// The number behind `name` in a status line, as scripts cut it out.
fn field(line: &str, name: &str) -> u64 {
    let (_, behind) = line.split_once(name).unwrap_or_else(|| panic!("{name}: {line}"));
    behind.split_whitespace().next().unwrap().parse().unwrap()
}

/// Loops are counted exactly, whatever is lost meanwhile; -S keeps the interval for all threads.
#[test]
fn cyclictests_lines_are_printed() {
    let stdout = printed("latency -S --policy other -i5000 -l 20 -q");
    let lines: Vec<&str> = stdout.lines().filter(|line| line.starts_with("T:")).collect();
    assert!(!lines.is_empty(), "{stdout}");
    for line in &lines {
        assert_eq!(field(line, "I:"), 5_000, "{line}");
        assert!(field(line, "Min:") <= field(line, "Avg:"), "{line}");
        assert!(field(line, "Avg:") <= field(line, "Max:"), "{line}");
    }
    assert!(lines.iter().any(|line| field(line, "C:") == 20), "{stdout}");
    assert!(stdout.contains("# Lost Intervals: "), "{stdout}");
    assert!(stdout.contains("# P99.9 Latencies: "), "{stdout}");
}

/// Nothing can be woken every microsecond: cyclictest says nothing of what it skips then.
#[test]
fn lost_intervals_are_said() {
    let document = json(&printed("latency --policy other -i 1 -D 0.2s --json -q"));
    let latency = &document["threads"][0]["latency"];
    let (count, lost) = (latency["count"].as_u64().unwrap(), latency["lost"].as_u64().unwrap());
    assert!(lost > 0, "{latency}");
    // Every period of the run is served or lost, but the last, which may be under way.
    assert!((199_990..=200_000).contains(&(count + lost)), "{latency}");
    let broken = hourglass("latency --policy other -i 1 -D 0.2s --max-misses 0 -q");
    assert_eq!(broken.status.code(), Some(1));
    assert!(text(&broken.stdout).contains("# Gate max-misses: broken"));
}

#[test]
fn a_histogram_counts_each_wake_up_once() {
    let stdout = printed("latency --policy other -t2 -i5000 -l 20 -H 100 -q");
    assert!(!stdout.contains("T: 0"), "with -q the histogram alone: {stdout}");
    let rows: Vec<Vec<u64>> = stdout
        .lines()
        .filter(|line| line.starts_with('0'))
        .map(|line| line.split_whitespace().map(|word| word.parse().unwrap()).collect())
        .collect();
    assert_eq!(rows.len(), 100);
    let column = |column: usize| rows.iter().map(|row| row[column]).sum::<u64>();
    let beyond = stdout.lines().find(|line| line.starts_with("# Histogram Overflows:")).unwrap();
    let beyond: Vec<u64> = beyond.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert_eq!(column(3), column(1) + column(2), "the sum of all threads");
    assert_eq!((column(1) + beyond[0]).max(column(2) + beyond[1]), 20);
}

#[test]
fn samples_and_files_are_written_whole() {
    let home = tempfile::tempdir().unwrap();
    let name = |name: &str| home.path().join(name).display().to_string();
    let (json, histogram, folder) = (name("a.json"), name("a.hist"), name("kept"));
    let stdout = printed(&format!(
        "latency --policy other -i5000 -l 8 -v -N -h 1000 --json={json} --histfile={histogram} \
         -o {folder} -q"
    ));
    let samples: Vec<&str> = stdout.lines().filter(|line| line.starts_with("       0:")).collect();
    assert_eq!(samples.len(), 8, "{stdout}");
    let document = self::json(&fs::read_to_string(&json).unwrap());
    assert_eq!(document["schema"], "hourglass.run/1");
    assert_eq!(document["threads"][0]["workload"], "GRID 5ms");
    assert_eq!(document["threads"][0]["latency"]["count"], 8);
    let first: u64 = samples[0].rsplit(':').next().unwrap().trim().parse().unwrap();
    assert!(first >= document["threads"][0]["latency"]["min_ns"].as_u64().unwrap());
    assert!(fs::read_to_string(&histogram).unwrap().starts_with("# Histogram\n000000 "));
    let shown = self::json(&printed(&format!("show {folder} --json")));
    assert_eq!(shown["threads"], document["threads"]);
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 3, "nothing half-written is left");
}

/// cyclictest -b exits 0.
#[test]
fn a_break_is_said_and_gives_1() {
    let output = hourglass("latency --policy other -i1000 -D 20 -b 0 -q");
    let stdout = text(&ends(&output, 1, "-b 0").stdout);
    assert!(stdout.contains("# Break Thread: ") && stdout.contains("# Break Value: "), "{stdout}");
    assert_eq!(field(stdout.lines().find(|l| l.starts_with("T: 0")).unwrap(), "C:"), 1);
    printed("latency --policy other -i1000 -l 10 -b 9000000000 -q");
}

#[test]
fn sigusr1_prints_the_state_and_ctrl_c_ends_an_endless_run() {
    let started = Instant::now();
    let mut child = command("latency --policy other -i1000 -q")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let id = child.id();
    let signal = |name: &str| send(name, id.into()).unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let (teller, lines) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        stderr.lines().map_while(Result::ok).try_for_each(|l| teller.send(l))
    });
    // Until there is a handler the signal would end it.
    until("SIGUSR1 is caught", || catches(id, SIGUSR1));
    // A question from before the run is not answered; the first answer may come before the first wake-up.
    until("it counts", || {
        signal("-USR1");
        while let Ok(line) = lines.recv_timeout(Duration::from_millis(200)) {
            let answer = line.starts_with("T: 0 (");
            assert!(answer || line.starts_with("# after "), "{line}");
            if answer {
                return field(&line, "C:") > 0;
            }
        }
        false
    });
    signal("-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(field(&text(&output.stdout), "C:") > 0);
    assert!(started.elapsed() < Duration::from_secs(120));
}

#[test]
fn oslats_table_is_printed() {
    let stdout = printed("noise -D 0.3s --warm-up 0 -b 8 -q 300");
    let row = |label: &str| {
        let line = stdout.lines().find(|line| line.trim_start().starts_with(label));
        let cells = line.unwrap_or_else(|| panic!("{label}: {stdout}")).split_once(':').unwrap().1;
        cells.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let number = |cell: &String| cell.parse::<u64>().unwrap();
    let columns = row("Core").len();
    let gaps: u64 = row("Gaps").iter().map(number).sum();
    let labels = ["001", "002", "003", "004", "005", "006", "007", "008"];
    let counted: u64 = labels
        .iter()
        .flat_map(|label| row(&format!("{label} (us)")).into_iter().take(columns))
        .map(|cell| number(&cell))
        .sum();
    assert_eq!(counted, gaps, "each gap stands in one row: {stdout}");
    assert!(row("Threshold").iter().take(columns).all(|ns| number(ns) >= 300), "{stdout}");
}

#[test]
fn a_threshold_ends_a_noise_run() {
    let output = hourglass("noise -D 20 --warm-up 0 -T 0 -q -c 0 --on-hit true");
    let stdout = text(&ends(&output, 1, "-T 0").stdout);
    assert!(stdout.contains("# Gate stop-on-gap: broken"));
}

/// One line on stderr that says what to use instead, nothing on stdout.
#[test]
fn refusals_name_the_remedy() {
    for (line, wanted) in [
        ("latency -r", "-r: no relative timers; use --rephase"),
        ("latency -h", "-h: USEC is missing; help is --help"),
        ("latency --json=/nonexistent/a.json", "--json: /nonexistent/a.json: "),
        ("latency --json=/dev/null", "--json: /dev/null: is there and is not a"),
        ("noise -B", "-B: nothing to subtract"),
        ("noise --max-latency 5", "--max-latency: unknown option"),
    ] {
        refuses(line, wanted);
    }
    for line in ["latency --help", "noise --help", "noise -h", "latency -S --help"] {
        assert!(printed(line).contains("Refused, and what to use instead"), "{line}");
    }
}

/// On a terminal of its own: util-linux's script. Two CPUs are wanted, one of them to draw from.
#[test]
fn top_shows_the_run_on_a_terminal() {
    let program = env!("CARGO_BIN_EXE_hourglass");
    let mut terminal = Command::new("script");
    let line = |cpu: u32| {
        let top = format!("{program} noise -c {cpu} -D2 --warm-up 0s --top --gap 1us");
        format!("stty rows 30 cols 100; exec {top}")
    };
    let Some(cpu) = allowed_cpus().iter().nth(1) else {
        return skip(Requirement::SECOND_CPU, "one CPU");
    };
    terminal.args(["-qfec", &line(cpu), "/dev/null"]).stdin(Stdio::null()).env("TERM", "xterm");
    let Ok(output) = terminal.output() else {
        return skip(Requirement::program("script"), "script");
    };
    let seen = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{seen}");
    let pictures: Vec<&str> = seen.split(&format!("noise, CPU {cpu} (drawn from CPU ")).collect();
    assert!(pictures.len() > 3, "drawn ten times a second: {seen}");
    let last = pictures.last().unwrap();
    assert!(last.contains("less than") && last.contains("Worst: "), "{last}");
    // The picture is wiped before the result is printed.
    let lines = last.split("\u{1b}[2K").count();
    assert!(lines > 8, "{last}");
}

#[test]
fn top_wants_a_terminal() {
    let output = hourglass("noise -c 0 -C 0 -D1 --top");
    is_refused(&output, 2, "--top: stderr is no terminal", "--top");
}
