//! The command as a script sees it: exit codes, what goes to stdout and what to stderr, signals.
//!
//! Runs are short, and none of them spins at a real-time priority.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::calls::{command, document, ends, hourglass, json, printed, refuses, text};
use crate::processes::{Killed, send, until, waits_of_the_measured, within};

/// How long a test waits for something that takes milliseconds on a machine at rest.
const PATIENCE: Duration = Duration::from_secs(20);

/// The record lines among the lines of a run.
fn records(stdout: &str) -> Vec<&str> {
    stdout.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).collect()
}

/// The columns of a record line: the thread, then nanoseconds.
fn columns(line: &str) -> (u32, [i64; 4]) {
    let mut words = line.split(' ');
    let thread = words.next().unwrap().parse().unwrap();
    let times = std::array::from_fn(|_| {
        let word = words.next().unwrap();
        let (whole, part) = word.split_once('.').unwrap();
        assert_eq!(part.len(), 6, "six decimals: {line}");
        format!("{whole}{part}").parse().unwrap()
    });
    assert_eq!(words.next(), None, "five columns: {line}");
    (thread, times)
}

/// Section 5.1: id, start, finish, duration, gap, in milliseconds with six decimals.
#[test]
fn a_pipe_gets_the_papers_record_lines() {
    let stdout = printed("-d 0.2s -n 2 -a -p NORMAL -w CPU_YIELD 0.9ms");
    let lines = records(&stdout);
    assert!(lines.len() > 2, "{stdout}");
    assert_eq!(lines.len(), stdout.lines().count(), "CPU_YIELD has no other lines");
    let mut last_start = 0;
    for line in lines {
        let (thread, [start, finish, duration, _]) = columns(line);
        assert!(thread < 2, "{line}");
        assert!(last_start <= start, "sorted by start: {line}");
        assert_eq!(finish - start, duration, "{line}");
        last_start = start;
    }
}

/// Section 5.3, section 5.5, and Appendix A for `-c`.
#[test]
fn tagged_lines_follow_the_records() {
    let stdout =
        printed("-d 0.2s -n 3 -c -t 0 -w PERIODIC 1ms 8ms -t 1 -w LAT 10ms -t 2 -w CPU_SCAN 32");
    let tagged = |tag: &str| stdout.lines().filter(|line| line.starts_with(tag)).count();
    assert!(tagged("latlate: ") > 3, "{stdout}");
    assert_eq!(tagged("thread 0: missed "), 1, "{stdout}");
    assert_eq!(tagged("thread 2: work "), 1, "{stdout}");
    assert_eq!(tagged("cycles: "), records(&stdout).len(), "a raw line for each record");
    assert!(records(&stdout).iter().all(|line| columns(line).0 != 1), "LAT writes no trace");
}

#[test]
fn json_is_one_document_and_nothing_else() {
    let document = document(&hourglass("run -n 1 -d 0.1s --json --seed 0x5eed"));
    assert_eq!(document["schema"], "hourglass.run/1");
    assert_eq!(document["interrupted"], false);
    assert_eq!(document["manifest"]["seed"], 0x5eed);
    assert_eq!(document["threads"][0]["workload"], "CPU");
    assert!(document["threads"][0]["cpu_time_ns"].as_u64().unwrap() > 0);
}

#[test]
fn quiet_leaves_stderr_to_errors() {
    let output = hourglass("-q -n 1 -d 0.1s -w PERIODIC uniform:1ms,2ms 20ms");
    assert_eq!(text(&output.stderr), "");
    let output = hourglass("-n 1 -d 0.1s -w PERIODIC uniform:1ms,2ms 20ms");
    assert!(text(&output.stderr).contains("hourglass: seed "), "a made-up seed is told");
}

#[test]
fn a_kept_run_is_shown_again() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("kept");
    let folder = folder.display();
    let line = format!("-n 2 -d 0.2s -w CPU_YIELD 0.9ms -t 1 -w LAT 10ms -o {folder}");
    let output = hourglass(&line);
    assert!(text(&output.stderr).contains(&format!("hourglass: wrote {folder}")));
    let (ran, shown) = (text(&output.stdout), printed(&format!("show {folder}")));
    assert_eq!(records(&ran), records(&shown));
    let late = |text: &str| text.lines().filter(|line| line.starts_with("latlate")).count();
    assert_eq!(late(&ran), late(&shown));
    let document = json(&printed(&format!("show {folder} --json")));
    assert_eq!(document["schema"], "hourglass.run/1");
    assert_eq!(document["threads"].as_array().unwrap().len(), 2);
    let picture = home.path().join("trace.svg");
    let line = format!("render {folder} -o {} --from 10ms --to 50ms -q", picture.display());
    assert_eq!(printed(&line), "");
    assert!(fs::read_to_string(&picture).unwrap().starts_with("<svg"));
    assert!(printed(&format!("render {folder} -o -")).starts_with("<svg"));
    let line = format!("render {folder} -o {} --json", picture.display());
    assert_eq!(json(&printed(&line))["schema"], "hourglass.render/1");
    refuses(&format!("render {folder} -o - --from 2s --to 1s"), "--to: nothing lies between");
    refuses(&format!("render {folder} -o /nonexistent/a.svg"), "-o: /nonexistent/a.svg: ");
}

/// Records, raw records, single latencies to the picosecond and counts: nothing is lost on disk.
#[test]
fn a_kept_run_is_shown_byte_for_byte() {
    let home = tempfile::tempdir().unwrap();
    for (name, show) in [("lines", ""), ("cycles", "-c"), ("document", "--json")] {
        let folder = home.path().join(name);
        let folder = folder.display();
        let ran = printed(&format!(
            "-n 2 -d 0.2s -t 0 -w LAT 5ms -t 1 -w PERIODIC 1ms 10ms {show} -o {folder}"
        ));
        assert_eq!(ran, printed(&format!("show {show} {folder}")), "{name}");
        let late = ran.lines().filter(|line| line.starts_with("latlate: ")).count();
        assert!(late > 3 || name == "document", "{ran}");
    }
}

/// What earlier versions wrote: latencies as a histogram only.
#[test]
fn without_single_latencies_the_histogram_is_shown() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("old");
    let ran = printed(&format!("-n 1 -d 0.2s -w LAT 5ms -o {}", folder.display()));
    fs::remove_file(folder.join("latency.parquet")).unwrap();
    let shown = printed(&format!("show {}", folder.display()));
    let microseconds = |line: &str| line.strip_prefix("latlate: ").unwrap().parse().unwrap();
    let mut exact: Vec<f64> = ran.lines().map(microseconds).collect();
    let rounded: Vec<f64> = shown.lines().map(microseconds).collect();
    exact.sort_by(f64::total_cmp);
    assert_eq!(exact.len(), rounded.len());
    assert!(rounded.is_sorted());
    for (exact, rounded) in exact.iter().zip(rounded) {
        assert!((exact - rounded).abs() <= exact * 2e-3 + 2e-3, "{exact} and {rounded}");
    }
}

#[test]
fn an_existing_folder_is_refused_and_left_alone() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("diary.txt"), "mine").unwrap();
    refuses(&format!("-n 1 -d 30s -o {}", home.path().display()), "-o: ");
    let left: Vec<_> = fs::read_dir(home.path()).unwrap().collect();
    assert_eq!(left.len(), 1);
    assert_eq!(fs::read_to_string(home.path().join("diary.txt")).unwrap(), "mine");
    refuses("-n 1 -d 30s -o /nonexistent/folder", "-o: ");
}

/// The duration of 30 s shows that nothing is run: the test would not end in time.
#[test]
fn bad_input_is_refused_before_anything_runs() {
    for (line, message) in [
        ("-n 1 -d 30x", "-d: bad time '30x'"),
        ("-n 1 -d 30s --frequency 5", "--frequency: unknown option"),
        ("-n 1 -d 30s -t 1", "-t: there is no thread 1"),
        ("-n 1 -d 30s -w PERIODIC 9ms 8ms", "-w: "),
        ("-n 1 -d 30s -w PERIODIC 9ms 0ms", "-w: "),
        ("-n 1 -d 30s -i MM", "-i: timer MM is Windows only"),
        ("-n 1 -d 30s --cpu 8000", "--cpu: CPU 8000 does not exist or is offline; online: "),
        ("-n 1 -d 30s -p RTHIGH -rh 1ms 8ms", "thread 0: -p FIFO:80 contradicts"),
        ("/nonexistent/audio.toml", "unknown command '/nonexistent/audio.toml'; did you mean"),
        ("run /nonexistent/audio.toml", "/nonexistent/audio.toml: "),
        ("show /nonexistent", "/nonexistent"),
        ("show monday tuesday --json", "--json: of one run only"),
        ("shwo x", "unknown command 'shwo'; did you mean 'show'?"),
        ("-n 1 -d 30s --json -c", "-c prints lines and --json a document"),
        ("-n 1 -d 30s --json --records", "--records prints lines and --json a document"),
        ("watch abc", "invalid value 'abc' for '[PID]...': a PID is a number; --comm NAME"),
        ("man nothing", "unknown manual page 'nothing'; use one of hourglass, run"),
    ] {
        refuses(line, message);
    }
}

#[test]
fn nothing_asked_gets_the_short_help() {
    let output = hourglass("");
    let said = text(&ends(&output, 2, "").stderr);
    assert!(output.stdout.is_empty());
    assert!(said.contains("hourglass doctor") && said.contains("hourglass --help"), "{said}");
    assert!(said.lines().count() < 20, "what to type first, not everything: {said}");
}

#[test]
fn a_workload_file_is_run_and_its_mistakes_are_found() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("audio.toml");
    let file = path.display().to_string();
    fs::write(&path, "duration = \"30s\"\n[[thread]]\ncount = 2\nworkload = \"LAT 10ms\"\n")
        .unwrap();
    let document = json(&printed(&format!("run {file} -d 0.1s --json")));
    assert_eq!(document["threads"][1]["workload"], "LAT 10ms");
    refuses(&format!("run {file} -n 2"), "-n: ");
    fs::write(&path, "[[thread]]\nworkload = \"LAT 10\"\n").unwrap();
    refuses(&format!("run {file}"), &format!("{file}:2:12: "));
    fs::write(&path, "[[thread]\n").unwrap();
    refuses(&format!("run {file}"), &format!("{file}:1:"));
}

/// Section 5.3 asks for `-i RTC`, which many machines do not have.
#[test]
fn a_missing_timer_is_reported_or_emulated() {
    let has_rtc = Path::new("/dev/rtc").exists() || Path::new("/dev/rtc0").exists();
    if !has_rtc {
        let output = hourglass("-d 0.2s -n 1 -w LAT 5.3ms -i RTC");
        let stderr = text(&ends(&output, 3, "RTC").stderr);
        assert!(output.stdout.is_empty());
        assert!(stderr.contains("timer RTC") && stderr.contains("--best-effort"), "{stderr}");
    }
    let document = json(&printed("-d 0.2s -n 1 -w LAT 5.3ms -i RTC --best-effort --json"));
    assert!(has_rtc || document["threads"][0]["emulated"].is_string(), "{document}");
}

/// For every user: with the privilege it has the priority, without it goes on and says so.
#[test]
fn best_effort_runs_whatever_is_refused() {
    let line = "-d 0.2s -n 1 -p RTHIGH -w LAT 10ms --best-effort --json";
    let document = json(&printed(line));
    let warnings = document["warnings"].as_array().unwrap();
    let refused = warnings.iter().any(|warning| warning["id"] == "policy-refused");
    assert_eq!(document["threads"][0]["policy"] == "FIFO:80", !refused, "{document}");
}

fn start(line: &str) -> Killed {
    Killed(command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

fn exit_code(running: &mut Killed) -> Option<i32> {
    let mut status = None;
    let ended = within(PATIENCE, || {
        status = running.0.try_wait().unwrap();
        status.is_some()
    });
    assert!(ended, "it does not end");
    status.and_then(|status| status.code())
}

#[test]
fn an_interrupted_run_prints_and_keeps_what_there_is() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("cut");
    let line = format!("-n 1 -d 300s -w LAT 10ms --json -o {}", folder.display());
    let mut running = start(&line);
    assert!(within(PATIENCE, || folder.exists()), "the folder is made before the run");
    // From here the run takes some milliseconds to begin on a machine at rest.
    until("it measures", || waits_of_the_measured(running.pid()) >= 20);
    running.signal("-INT");
    assert_eq!(exit_code(&mut running), Some(130));
    let mut stdout = String::new();
    running.0.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    let document = json(&stdout);
    assert_eq!(document["interrupted"], true);
    assert!(document["threads"][0]["latency"]["count"].as_u64().unwrap() > 0);
    let kept = json(&printed(&format!("show {} --json", folder.display())));
    assert_eq!(kept["interrupted"], true);
    assert_eq!(kept["threads"], document["threads"]);
}

/// `hourglass ... | head -1`
#[test]
fn a_reader_that_has_read_enough_is_no_failure() {
    // Records of single loop iterations fill a pipe many times over.
    let mut running = start("-q -n 1 -d 0.1s --gap 1ns");
    let mut first = String::new();
    BufReader::new(running.0.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.starts_with("0 "), "{first}");
    assert_eq!(exit_code(&mut running), Some(0));
    let mut stderr = String::new();
    running.0.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(stderr, "");
}

#[test]
fn help_version_pages_and_completions() {
    assert!(printed("--version").starts_with("hourglass "));
    for line in ["--help", "run --help", "-n 1 --help", "show --help", "doctor --help", "help run"]
    {
        let help = printed(line);
        assert!(help.contains("Usage:") && help.contains("Examples:"), "{line}");
        assert!(!help.contains('\u{1b}'), "{line}: a pipe gets no colour");
    }
    assert!(printed("--color always run --help").contains('\u{1b}'));
    assert!(printed("man run").contains("CPU_SCAN_YIELD"));
    assert_eq!(printed("man hourglass-run"), printed("man run"));
    assert!(printed("completions bash").contains("hourglass"));
    let home = tempfile::tempdir().unwrap();
    printed(&format!("man --dir {}", home.path().display()));
    assert!(home.path().join("hourglass-run.1").exists());
}

/// Ctrl-C: what was seen is written, exit 130.
#[test]
fn a_watch_ends_with_ctrl_c() {
    let mut child = command("clocks --watch --every 20ms").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.by_ref().any(|line| line.unwrap().contains("drift_ppb")));
    let _ = lines.next();
    send("-INT", child.id().into()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// Files of rt-app without a timer run as rt-app runs them: threads that others start, resume or meet at a
/// barrier. Each gets what its steps ask for, and none more often than it was started.
#[test]
fn a_file_of_rt_app_is_run() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("threads.json");
    let file = path.display().to_string();
    fs::write(
        &path,
        r#"{"tasks": {
            "main": {"loop": 2, "run": 1000, "fork": "child", "resume": "go", "sleep": 5000},
            "child": {"instance": 0, "loop": 1, "run": 2000},
            "waiter": {"loop": 1, "suspend": "go", "run": 3000},
            "left": {"loop": 1, "run": 500, "barrier": "meet", "run": 500},
            "right": {"loop": 1, "sleep": 2000, "barrier": "meet", "run": 700},
            "late": {"loop": 1, "delay": 3000, "run": 400, /* a comma too many */ },
        }, "global": {"duration": 1}}"#,
    )
    .unwrap();
    let document = json(&printed(&format!("run {file} --json")));
    let threads = document["threads"].as_array().unwrap();
    let received = |name: &str| {
        let found = threads.iter().find(|thread| thread["name"] == name);
        let found = found.unwrap_or_else(|| panic!("{name}: {document}"));
        found["cpu_time_ns"].as_u64().unwrap()
    };
    for (name, us) in [
        ("main", 2_000),
        ("child-fork0", 2_000),
        ("child-fork1", 2_000),
        ("waiter", 3_000),
        ("left", 1_000),
        ("right", 700),
        ("late", 400),
    ] {
        // The rate by which a run is planned and the one by which it is reported differ by a trifle.
        let least = us * 999;
        assert!(received(name) >= least, "{name}: {document}");
    }
    assert_eq!(threads.len(), 7);
    fs::write(&path, r#"{"tasks": {"a": {"fork": "b", "run": 1000}}}"#).unwrap();
    refuses(&format!("run {file}"), &format!("{file}: thread 'a': fork names 'b'"));
}

/// Of three missed deadlines one had a cause, and no list said which jobs were late, when and why.
#[test]
fn the_latest_jobs_are_listed_with_where_their_time_went() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("late");
    let cpu = crate::processes::last_allowed_cpu();
    let line = "run -q --summary -n 2 -d 300ms -w PERIODIC 15ms 20ms --cpu";
    let out = printed(&format!("{line} {cpu} -o {}", folder.display()));
    assert!(out.contains("\nLate jobs    at "), "{out}");
    // A folder of an earlier version lacks the list; it has the jobs.
    let manifest = folder.join("manifest.json");
    let mut older = json(&fs::read_to_string(&manifest).unwrap());
    older.as_object_mut().unwrap().remove("crc32").unwrap();
    let stored = older["result"].as_object_mut().unwrap().remove("late_jobs").unwrap();
    fs::write(&manifest, older.to_string()).unwrap();
    let shown = json(&printed(&format!("show --json {}", folder.display())));
    let keys = |jobs: &serde_json::Value| {
        let of = |job: &serde_json::Value| {
            (job["thread"].clone(), job["release_ns"].clone(), job["late_ns"].clone())
        };
        jobs.as_array().unwrap().iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(keys(&shown["late_jobs"]), keys(&stored));
    for job in shown["late_jobs"].as_array().unwrap() {
        let ns = |key: &str| job[key].as_i64().unwrap_or(0);
        let gaps =
            job["gaps"].as_array().unwrap().iter().map(|gap| gap["total_ns"].as_i64().unwrap());
        let parts = ns("behind_ns") + ns("wake_up_ns") + ns("own_ns") + gaps.sum::<i64>();
        let end = job["finished_ns"].as_i64().or_else(|| shown["manifest"]["elapsed_ns"].as_i64());
        assert_eq!(parts, end.unwrap() - ns("release_ns"), "{job}");
        assert!(ns("late_ns") > 0 || ns("lost_behind") > 0, "{job}");
    }
}
