//! `hourglass clocks` as a script sees it. What was found on this machine is not judged.

use crate::calls::{ends, hourglass, json, printed, refuses, text};

/// CONTRACT, `hourglass.clocks/1`: names and keys that scripts rely on.
#[test]
fn clocks_tell_what_is_here_and_what_was_chosen() {
    let document = json(&printed("clocks --json"));
    assert_eq!(document["schema"], "hourglass.clocks/1");
    assert_eq!(document["policy"], "strict");
    let sources = document["sources"].as_array().expect("sources");
    let named = |name: &str| sources.iter().find(|source| source["name"] == name);
    for name in ["tsc", "hpet", "cntvct", "monotonic", "monotonic_raw", "realtime", "tai", "sim"] {
        assert!(named(name).is_some(), "{name}");
    }
    let monotonic = named("monotonic").expect("monotonic");
    assert_eq!(monotonic["available"], true);
    assert!(monotonic["read_p50_ns"].as_f64().is_some_and(|cost| cost > 0.0));
    let selected = document["selected"].as_str().and_then(named).expect("the selected is listed");
    assert_eq!(selected["trusted"], true);
}

/// Issue 3, item 6: `--watch`, drift and bound over time.
#[test]
fn a_watched_clock_is_reported_sample_by_sample() {
    let document = json(&printed("clocks --watch --for 200ms --every 50ms --json"));
    let samples = document["watch"]["samples"].as_array().unwrap();
    assert_eq!(samples.len(), 5);
    assert!(samples.iter().all(|sample| sample["violated"] == false), "{samples:?}");
    assert!(samples[4]["at_ns"].as_u64().unwrap() >= 200_000_000, "{samples:?}");
    assert!(samples[4]["error_bound_ns"].is_u64() && samples[0]["drift_ppb"].is_null());
    let lines = printed("clocks --watch --for 100ms --every 50ms");
    let header = lines.lines().position(|line| line.contains("drift_ppb")).unwrap();
    assert_eq!(lines.lines().count() - header, 4, "{lines}");
    refuses("clocks --every 1s", "the following required arguments were not provided: --watch");
    refuses("clocks --watch --every 1ms", "invalid value '1ms' for '--every <TIME>': samples are");
    refuses("clocks --watch --for -1s", "");
}

/// Issue 35: who vouches for UTC, as JSON, words and exit code; whether anybody does is this machine's.
#[test]
fn utc_is_vouched_for_by_a_source_or_by_none() {
    let output = hourglass("clocks --utc --json");
    let document = json(&text(&output.stdout));
    let utc = &document["utc"];
    let is_vouched = utc["status"] == "vouched";
    let code = if is_vouched { 0 } else { 4 };
    ends(&output, code, "clocks --utc");
    let names: Vec<_> = utc["sources"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["kernel", "chronyd", "clockbound", "ptp4l"]);
    assert_eq!(utc["earliest_ns"].is_u64(), is_vouched, "{utc}");
    assert_eq!(utc["source"] == "none", !is_vouched, "{utc}");
    let shown = text(&ends(&hourglass("clocks --utc"), code, "text").stdout);
    assert_eq!(shown.contains("no source vouches"), !is_vouched, "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    let watched = "clocks --utc --watch --for 60ms --every 20ms";
    let lines = text(&ends(&hourglass(watched), code, watched).stdout);
    assert_eq!(lines.lines().count(), 5, "{lines}");
    let watched = hourglass(&format!("{watched} --json"));
    let watched = json(&text(&ends(&watched, code, "watched").stdout));
    assert_eq!(watched["utc_watch"].as_array().map(Vec::len), Some(4), "{watched}");
    refuses("clocks --utc --devices", "");
}

/// On a terminal of 80 columns nothing wraps by itself; a word that is longer may be a command to be copied.
#[test]
fn the_text_fits_eighty_columns() {
    let text = printed("clocks --evidence");
    let wide = |line: &&str| {
        line.chars().count() > 80 && !line.split_whitespace().any(|word| word.len() > 40)
    };
    assert_eq!(text.lines().find(wide), None, "{text}");
}

/// A source is one row, whatever the policy and the machine; reasons stand below the table.
#[test]
fn each_source_is_a_row() {
    for policy in ["strict", "thesis", "permissive"] {
        let text = printed(&format!("clocks --policy {policy}"));
        let rows = text.lines().skip_while(|line| !line.starts_with("source "));
        let rows: Vec<&str> = rows.skip(1).take_while(|line| !line.is_empty()).collect();
        assert!(rows.len() >= 5, "{text}");
        assert!(rows.iter().all(|row| !row.starts_with(' ') && !row.contains('…')), "{text}");
    }
}
