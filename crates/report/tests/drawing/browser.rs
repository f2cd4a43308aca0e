//! The page in a real browser, from disk: it checks itself (`#selftest`), nothing is fetched, and
//! nothing goes to the console. Skipped, with the reason, where no Chromium is installed.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hourglass_skip::{Requirement, skip};

use crate::shown::{
    HOSTILE, TestRun, competed, full, latency_run, made, missed, thread, timed_latency_run, trace,
};
use hourglass_report::html;
use hourglass_report::{LatencyCounts, RunView};

/// Debian's names for Chromium; the first is the lightest.
const BROWSERS: [&str; 4] =
    ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];

/// No frame of a page of 300,000 records may take longer in half of all depths of zoom. A frame
/// takes a few milliseconds; machines that are shared take longer.
const MOST_FRAME_MS: f64 = 250.0;

fn browser() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&folders).collect();
    let found = BROWSERS.iter().flat_map(|name| folders.iter().map(move |dir| dir.join(name)));
    let found = found.into_iter().find(|path| path.is_file());
    if found.is_none() {
        skip(
            Requirement::runs(
                "Chromium",
                "command -v chromium-headless-shell || command -v chromium",
            ),
            "no Chromium; apt-get install chromium-headless-shell",
        );
    }
    found
}

fn open(browser: &Path, page: &Path, fragment: &str, more: &[&str]) -> Output {
    let profile = tempfile::tempdir().unwrap();
    Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args(["--no-first-run", "--disable-background-networking", "--disable-extensions"])
        // Whatever it asked for, it would not get.
        .args(["--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(more)
        .arg(format!("file://{}#{fragment}", page.display()))
        .output()
        .unwrap()
}

/// What the page found when it checked itself, and the whole of it after scripts ran.
fn checked(browser: &Path, run: &RunView<'_>, title: &str) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    std::fs::write(&page, html::page(run, title)).unwrap();
    let output = open(browser, &page, "selftest", &["--dump-dom", "--window-size=1200,900"]);
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    let console: Vec<&str> = log.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(console.is_empty(), "{console:#?}");
    let found = dom.split_once("<pre id=\"selftest\"").map(|(_, rest)| rest);
    let found = found.unwrap_or_else(|| panic!("the page did not check itself: {log}"));
    let (attributes, text) = found.split_once('>').unwrap();
    let text = text.split_once("</pre>").unwrap().0.to_owned();
    assert!(attributes.contains("data-failed=\"0\""), "{text}");
    (text, dom)
}

/// Zoom, drag, pinch, keyboard, hover, themes, and the time of frames, on as many records as a
/// run keeps by default.
#[test]
fn a_full_page_checks_itself() {
    let Some(browser) = browser() else { return };
    let run = full(300_000, 4, 20_020_618);
    let (text, _) = checked(&browser, &run.run(), "Monday, 300,000 records");
    println!("{text}");
    for wanted in ["down to a microsecond", "pinch zooms", "hover tells the confidence", "Enter"] {
        assert!(text.contains(&format!("pass {wanted}")), "{wanted}: {text}");
    }
    let frames = text.lines().find(|line| line.contains("frames: median")).unwrap();
    let median = frames.split_whitespace().skip_while(|word| *word != "median").nth(1).unwrap();
    assert!(median.parse::<f64>().unwrap() < MOST_FRAME_MS, "{frames}");
}

/// A name from a folder cannot run, close the data or fetch anything.
#[test]
fn a_hostile_folder_is_text() {
    let Some(browser) = browser() else { return };
    let mut run = full(200, 2, 7);
    run.document.result.threads[0].name = Some(HOSTILE.to_owned());
    run.document.result.threads[1].workload = HOSTILE.to_owned();
    run.document.result.threads[1].policy = HOSTILE.to_owned();
    run.document.result.warnings[0].text = HOSTILE.to_owned();
    run.document.result.warnings[0].remedy = HOSTILE.to_owned();
    run.document.result.gates[0].name = HOSTILE.to_owned();
    run.document.result.causes[0].cause = HOSTILE.to_owned();
    run.document.manifest.command_line = vec![HOSTILE.to_owned()];
    run.document.manifest.host.kernel = HOSTILE.to_owned();
    run.document.manifest.clock.reason = HOSTILE.to_owned();
    run.names.threads.insert(12, HOSTILE.to_owned());
    let (text, dom) = checked(&browser, &run.run(), HOSTILE);
    assert!(text.contains("pass no script but ours"), "{text}");
    assert!(!dom.contains("<img"), "markup came through");
}

/// What a folder can hold at its edges.
#[test]
fn pages_at_the_edges() {
    let Some(browser) = browser() else { return };
    let single = || vec![thread(0, "CPU")];
    let mut negative = trace(50, 1, 3);
    negative.iter_mut().for_each(|record| {
        record.start_ns -= 400_000;
        record.end_ns -= 400_000;
    });
    let mut huge = trace(6, 2, 3);
    huge[4].start_ns = i64::MAX - 10;
    huge[4].end_ns = i64::MAX;
    huge[5] = huge[4];
    let many = (0..64).map(|id| thread(id, "CPU")).collect();
    let cases: Vec<(&str, TestRun)> = vec![
        ("no threads", made(Vec::new(), Vec::new())),
        ("no records", made(single(), Vec::new())),
        ("one record", made(single(), trace(1, 1, 1))),
        ("two records", made(single(), trace(2, 1, 1))),
        ("before the start", made(single(), negative)),
        ("huge times", made(single(), huge)),
        ("64 threads", made(many, trace(20_000, 64, 5))),
        ("latency only", latency_run(3, 11)),
        ("latency with times", timed_latency_run()),
        ("a competitor", competed()),
        ("a missed deadline", missed()),
    ];
    for (name, run) in cases {
        println!("{name}");
        let (text, _) = checked(&browser, &run.run(), name);
        let wanted = match name {
            "latency with times" => "pass and says it: thread 0: wake-up of thread 0; late",
            "a competitor" => "pass a CPU tells who had it",
            "a missed deadline" => "pass a deadline's mark tells about its job",
            _ => "",
        };
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
}

/// Histograms of what no run would measure do not disturb the page either.
#[test]
fn histograms_at_the_edges() {
    let Some(browser) = browser() else { return };
    for counts in [vec![], vec![(0, 1)], vec![(0, u64::MAX), (u64::MAX, u64::MAX)]] {
        let mut run = latency_run(1, 1);
        run.latencies = vec![LatencyCounts { thread: 0, counts, ..LatencyCounts::default() }];
        checked(&browser, &run.run(), "edge");
    }
}
