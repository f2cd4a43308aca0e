//! `hourglass cache-cost` as a script sees it. What was measured is not judged.

use std::process::{Output, Stdio};

use crate::calls::{command, document, ends, hourglass, is_refused};
use crate::processes::{received_ms, send, until};

fn cache_cost(line: &str) -> Output {
    hourglass(&format!("cache-cost {line}"))
}

/// CONTRACT, `hourglass.cache-cost/1`.
#[test]
fn the_document() {
    let home = tempfile::tempdir().unwrap();
    let picture = home.path().join("cost.svg");
    let line = format!(
        "--sizes 8K,64K --trials 2 --duration 20ms --threads 3 --json --svg {}",
        picture.display()
    );
    let output = cache_cost(&line);
    let document = document(ends(&output, 0, &line));
    assert_eq!(document["schema"], "hourglass.cache-cost/1");
    let sizes = document["sizes"].as_array().unwrap();
    assert_eq!(sizes.len(), 2);
    assert_eq!((&sizes[1]["bytes"], &sizes[1]["trials"]), (&65_536.into(), &2.into()));
    for key in ["penalty_ns", "ci_lo_ns", "ci_hi_ns", "refill_ns", "switches_per_s"] {
        assert!(sizes[0].get(key).is_some(), "{key}");
    }
    assert!(sizes[0]["work_of_one"].as_f64().is_some_and(|work| work > 0.0));
    assert_eq!(document["interrupted"], false);
    assert!(std::fs::read_to_string(picture).unwrap().starts_with("<svg"));
}

/// Exit code 2 (3 where it is the machine that lacks something), and one line that names the culprit.
#[test]
fn what_cannot_be_meant() {
    for (line, said) in [
        ("--sizes 4KB", "--sizes: '4KB' is not a size"),
        ("--sizes 4M..4K", "'4M..4K' goes down"),
        ("--threads 1", "--threads: '1' is out of range; take 2 to 4096"),
        ("--trials 0", "--trials"),
        ("--duration 1us", "runs take at least"),
        ("--cpu 4000", "CPU 4000 is not online"),
        ("--sizes 64G", "--sizes: arrays of 67108864 KiB"),
    ] {
        // More memory than this machine has is no mistake on another one.
        let code = if line == "--sizes 64G" { 3 } else { 2 };
        is_refused(&cache_cost(line), code, said, line);
    }
}

/// Ctrl-C: what was measured is written, exit code 130.
#[test]
fn what_was_measured_before_a_signal_is_written() {
    let line = "cache-cost --sizes 8K --trials 1000 --duration 50ms --threads 2 --json";
    let child = command(line).stdout(Stdio::piped()).spawn().unwrap();
    until("trials are finished", || received_ms(child.id()) >= 1_500);
    send("-INT", child.id().into()).unwrap();
    let output = child.wait_with_output().unwrap();
    let document = document(ends(&output, 130, line));
    assert_eq!(document["interrupted"], true);
    assert!(document["sizes"][0]["trials"].as_u64().is_some_and(|trials| trials < 1_000));
}
