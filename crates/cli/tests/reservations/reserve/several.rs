//! Several reservations of one command, fixed intervals, counted instructions, and members that leave.

use std::fs;
use std::process::{Command, Stdio};

use hourglass_skip::{Requirement, skip};

use super::{
    AMOUNT, HOURGLASS, OWN, Running, alone, busy_on, code, document, is_refused, policies, reserve,
    soon, stands, stderr, text,
};

/// Words for work on CPU 0 that is watched beside a process on CPU 1.
fn watched<'a>(amount: &'a str, victim: &'a str) -> Vec<&'a str> {
    vec![amount, "--cpu", "0", "--smt", "monitor", "--interferes", "1", "--stop", victim]
}

/// Some periods of work: no co-runner is stopped for a target that sleeps.
const WORK: [&str; 4] = ["--", "sh", "-c", "i=0; while [ $i -lt 120000 ]; do i=$((i+1)); done"];

#[test]
fn what_does_not_go_together_is_one_line() {
    let other = Running::start(Command::new("sleep").arg("60"));
    let also = format!("1ms/20ms={}", other.pid());
    let around = format!("1ms/20ms={}", std::process::id());
    let both = other.pid().to_string();
    let cases: [(&[&str], i32, &str); 11] = [
        (&["--also", "2ms/20ms", "--", "true"], 2, "such as 2ms/20ms=4711"),
        (&["--also", "30ms/20ms=1", "--", "true"], 2, "longer than its period"),
        (&["--also", &also, "--backend", "deadline", "--", "true"], 2, "user-space reserve"),
        (&["--also", &also, "--thread", "1"], 2, "not --thread"),
        (&["--also", &also, "--also", &also, "--", "true"], 2, "named twice"),
        // The bug: work of one reservation was made part of another one, too.
        (&["--also", &around, "--", "true"], 2, "started this hourglass"),
        (&["--also", &around, "--pid", &both], 2, "did not start each other"),
        (&["--also", "1ms/20ms=4194304", "--", "true"], OWN, "no process 4194304"),
        (
            &["--smt", "disable", "--interval", "1ms", "--cpu", "0", "--", "true"],
            2,
            "--smt monitor",
        ),
        (&["--smt", "monitor", "--interval", "0ms", "--", "true"], 2, "above zero"),
        (
            &["--smt", "monitor", "--progress", "steps", "--", "true"],
            2,
            "word, instructions and cpu-time",
        ),
    ];
    for (words, wanted, says) in cases {
        is_refused(&reserve(&[&[AMOUNT], words].concat()), wanted, says, words);
    }
}

/// The bug: several reservations on one core (Inoue et al., equation 9) existed in the library, and no command line
/// reached them. Each has its own account, and the further one goes on when the first has ended.
#[test]
fn two_reservations_share_a_core() {
    let _alone = alone();
    let (Some(victim), Some(other)) = (busy_on(1), busy_on(0)) else {
        return skip(Requirement::SECOND_CPU, "there is no second CPU, or no taskset");
    };
    let (pid, stopped) = (other.pid(), victim.pid().to_string());
    let also = format!("4ms/100ms={pid}");
    let before = policies(pid);
    let mut words = vec!["--json", "--also", &also, "--interval", "1ms"];
    words.extend(watched("5ms/50ms", &stopped));
    // Longer than some periods of both, also on a fast machine.
    words.extend(["--", "sh", "-c", "i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done"]);
    let output = reserve(&words);
    if code(&output) == OWN {
        return skip(Requirement::REAL_TIME, stderr(&output).trim());
    }
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let document = document(&output);
    let [further] = &document["also"].as_array().unwrap()[..] else { panic!("{document}") };
    assert_eq!(
        (&further["budget_ns"], &further["period_ns"]),
        (&4_000_000.into(), &100_000_000.into())
    );
    assert_eq!((&further["backend"], &document["backend"]), (&"user".into(), &"user".into()));
    assert!(
        further["target"].as_str().unwrap().starts_with(&format!("process {pid} (")),
        "{further}"
    );
    for one in [&document, further] {
        assert!(one["smt"]["jobs"].as_u64().unwrap() > 0, "{one}");
        assert!(one["smt"]["interval_ns"].as_u64().unwrap() >= 1_000_000, "{one}");
        assert!(
            one["periods"].as_u64().is_some() && one["schema"] == "hourglass.reserve/1",
            "{one}"
        );
    }
    // Everything is as it was.
    soon("the other one runs again", || !stands(pid) && !stands(victim.pid()));
    assert_eq!(policies(pid), before);
    assert_eq!(further["exit_code"], serde_json::Value::Null);
}

/// What together is more than a core is refused before anything is started, by the check as by the run.
#[test]
fn the_sum_is_admitted() {
    let _alone = alone();
    let (Some(victim), Some(other)) = (busy_on(1), busy_on(0)) else {
        return skip(Requirement::SECOND_CPU, "there is no second CPU, or no taskset");
    };
    let (pid, stopped) = (other.pid(), victim.pid().to_string());
    let also = format!("60ms/100ms={pid}");
    let mut beside = vec!["--also", &also];
    beside.extend(watched("25ms/50ms", &stopped));
    let alone = ["--also", &also, "--cpu", "0", "25ms/50ms"];
    // What others have reserved meanwhile may be in the way before the core is.
    let (core, sum) = ("more than the core", "together are more");
    for (words, says) in [(&beside[..], [core, sum]), (&alone[..], [sum, sum])] {
        let says = |text: &str| says.iter().any(|one| text.contains(one));
        let check = reserve(&[words, &["--check"]].concat());
        let text = text(&check.stdout);
        let run = reserve(&[words, &["--", "true"]].concat());
        if text.contains("capability") {
            return skip(Requirement::REAL_TIME, text);
        }
        assert_eq!((code(&check), code(&run)), (1, OWN), "{words:?}: {text}{}", stderr(&run));
        let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(says(&joined), "{words:?}: {text}");
        assert!(says(&stderr(&run)), "{words:?}: {}", stderr(&run));
        soon("no process is stopped", || !stands(pid) && !stands(victim.pid()));
    }
}

/// Where the processor shows no counters that is one line, and the check says so; where it does, a command that
/// works by its children is counted.
#[test]
fn counted_instructions_are_had_or_refused_in_a_line() {
    let _alone = alone();
    let Some(victim) = busy_on(1) else {
        return skip(Requirement::SECOND_CPU, "there is no second CPU, or no taskset");
    };
    let stopped = victim.pid().to_string();
    let mut words = vec!["--json", "--progress", "instructions"];
    words.extend(watched("5ms/50ms", &stopped));
    let check = reserve(&[&words[..], &["--check"]].concat());
    let document = document(&check);
    let refusals = document["refusals"].as_array().unwrap();
    let refused = refusals.iter().find(|refusal| refusal["id"] == "progress");
    words.extend(WORK);
    words.retain(|word| *word != "--json" || refused.is_none());
    let run = reserve(&words);
    let Some(refused) = refused else {
        if code(&run) == OWN {
            return skip(Requirement::REAL_TIME, stderr(&run).trim());
        }
        let document = self::document(&run);
        let source = &document["smt"]["progress"];
        assert!(*source == "instructions" || *source == "cpu_time", "{document}");
        return;
    };
    assert_eq!((code(&check), code(&run)), (1, OWN), "{}", stderr(&run));
    let text = stderr(&run);
    assert!(text.starts_with("hourglass: --progress instructions: "), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(
        refused["cause"].as_str().unwrap().starts_with("--progress instructions: "),
        "{refused}"
    );
}

/// The bug: a job that left its control group went on as "guaranteed".
#[test]
fn who_leaves_is_named_and_nothing_is_guaranteed() {
    let _alone = alone();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let unified = mounts.lines().find(|line| line.contains(" - cgroup2 "));
    let Some(mount) = unified.and_then(|line| line.split(' ').nth(4)) else {
        return skip(Requirement::CONTROL_GROUP_2, "control groups of version 2 are not mounted");
    };
    // It forks what leaves, so that the rest stays.
    let script = format!(
        "(sh -c 'echo $$ > {mount}/cgroup.procs && echo $$ && exec sleep 0.4') & sleep 0.4"
    );
    let mut command = Command::new(HOURGLASS);
    command.args(["reserve", "2ms/50ms", "--backend", "user", "--json", "--", "sh", "-c", &script]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = stderr(&output);
    if code(&output) == OWN {
        return skip(Requirement::REAL_TIME, text.trim());
    }
    let Some(pid) = text.lines().find_map(|line| line.parse::<u32>().ok()) else {
        return skip(Requirement::CONTROL_GROUP, text.trim());
    };
    let document = document(&output);
    let warnings = document["warnings"].as_array().unwrap();
    let Some(left) = warnings.iter().find(|warning| warning["id"] == "member-left") else {
        let searched = warnings.iter().any(|warning| warning["id"] == "members-searched");
        assert!(searched, "{document}");
        return skip(Requirement::CONTROL_GROUP, "no control group can be made here");
    };
    assert_eq!(document["guarantee"], false, "{document}");
    assert!(left["text"].as_str().unwrap().contains(&format!("{pid} (")), "{left}");
}

/// A further reservation ends with its process, and the first one goes on.
#[test]
fn a_further_one_may_end_first() {
    let _alone = alone();
    let other = Running::start(Command::new("sleep").arg("0.3"));
    let also = format!("1ms/50ms={}", other.pid());
    let output = reserve(&["--json", AMOUNT, "--also", &also, "--", "sleep", "0.8"]);
    if code(&output) == OWN {
        return skip(Requirement::REAL_TIME, stderr(&output).trim());
    }
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let document = document(&output);
    assert_eq!(document["also"].as_array().map(Vec::len), Some(1), "{document}");
    assert!(document["also"][0]["guarantee"].is_boolean(), "{document}");
}
