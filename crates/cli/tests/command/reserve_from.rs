//! `hourglass reserve --from` as a script sees it. Nothing is reserved here.

use std::fs;
use std::process::{Command, Output};

use hourglass_skip::{Requirement, skip};

use crate::calls::{document, ends, hourglass_in, is_refused, stderr};

/// The answer for a file of one task of 3 ms every 8 ms with these keys.
fn asked(keys: &str, options: &str) -> Output {
    let home = tempfile::tempdir().unwrap();
    let text = format!("[[task]]\nname = \"a\"\nwcet = \"3ms\"\nperiod = \"8ms\"\n{keys}\n");
    fs::write(home.path().join("tasks.toml"), text).unwrap();
    hourglass_in(home.path(), &format!("reserve --from tasks.toml {options}"))
}

/// What to reserve was to be guessed, and tried. Hourglass paper, section 5.6: 3 ms every 8 ms take 3.1. In the deadline
/// class a period begins with a job; on a grid a budget may be used up, so that its deadline leaves time for the next: 5.5 ms.
#[test]
fn what_to_reserve_is_said_for_each_task() {
    let all = "[[task]]\nname = \"all\"\nwcet = \"8ms\"\nperiod = \"8ms\"";
    let found = document(&asked(all, "--json --backend deadline"));
    let amount = |one: &serde_json::Value| {
        ["budget_ns", "period_ns", "deadline_ns", "bound_ns"].map(|key| one[key].as_u64().unwrap())
    };
    let times = |one: &serde_json::Value| {
        ["budget_ns", "period_ns", "deadline_ns"].map(|key| one[key].as_u64().unwrap())
    };
    assert_eq!((&found["target"], &found["also"][0]["target"]), (&"a".into(), &"all".into()));
    assert_eq!(times(&found), [3_100_000, 8_000_000, 8_000_000]);
    assert_eq!(times(&found["also"][0]), [8_000_000; 3]);
    // Beside a whole CPU, the sum of the kernel proves no deadline: a bound was said all the same.
    for one in [&found, &found["also"][0]] {
        let mut warnings = one["warnings"].as_array().unwrap().iter();
        let is_late = warnings.any(|warning| warning["id"] == "budget-may-be-late");
        assert_eq!(one["bound_ns"].is_null(), is_late, "{found}");
    }
    let alone = document(&asked("", "--json --backend deadline"));
    assert_eq!(amount(&alone), [3_100_000, 8_000_000, 8_000_000, 8_000_000]);
    // No one named a backend, or a CPU on the command line.
    let unnamed = String::from_utf8(asked("cpus = \"0\"", "--json").stdout).unwrap();
    for wrong in ["asked for", "named for", "--cpu out"] {
        assert!(!unnamed.contains(wrong), "{wrong}: {unnamed}");
    }
    let user = asked(all, "--json --backend user");
    // No machine gives all of a CPU from user space.
    assert_eq!(user.status.code(), Some(1));
    assert_eq!(amount(&document(&user)), [3_100_000, 8_000_000, 5_500_000, 8_000_000]);
    // It was refused, though jitter has a period. A deadline of 5 ms in a longer period was proposed: the class keeps none.
    let jitter = "jitter = \"1ms\"\ndeadline = \"6ms\"";
    let found = document(&asked(jitter, "--check --json --backend deadline"));
    assert_eq!(amount(&found), [3_100_000, 5_000_000, 5_000_000, 6_000_000]);
    let text = String::from_utf8(asked(jitter, "--backend deadline").stdout).unwrap();
    assert!(text.starts_with("a: reserve 3.1ms/5ms\n"), "{text}");
    assert!(text.contains("each job within 6ms of its arrival, where the reservation"), "{text}");
}

/// A file of tasks of these names, execution times, periods and deadlines on CPU 0, and the answer for it.
fn several(tasks: &[(&str, &str, &str, &str)], options: &str) -> Output {
    let home = tempfile::tempdir().unwrap();
    let task = |(name, wcet, period, deadline): &(&str, &str, &str, &str)| {
        format!(
            "[[task]]\nname = \"{name}\"\nwcet = \"{wcet}\"\nperiod = \"{period}\"\ndeadline = \"{deadline}\"\n\
             cpus = \"0\"\n"
        )
    };
    let text: String = tasks.iter().map(task).collect();
    fs::write(home.path().join("tasks.toml"), text).unwrap();
    hourglass_in(home.path(), &format!("reserve --from tasks.toml {options}"))
}

/// Each was judged alone: a pipeline whose proposals took 135 % of its CPU was granted, and refused when it was applied. Its
/// proposals are half of that now, and what does not fit beside others is refused and takes nothing from the next one.
#[test]
fn proposals_are_judged_together() {
    let stages = [
        ("a", "650us", "10ms", "3ms"),
        ("b", "1.2ms", "10ms", "6ms"),
        ("c", "700us", "10ms", "10ms"),
    ];
    let sum =
        [("a", "5ms", "10ms", "10ms"), ("b", "6ms", "10ms", "10ms"), ("c", "1ms", "10ms", "10ms")];
    let late = [("a", "4ms", "10ms", "10ms"), ("b", "3ms", "10ms", "10ms")];
    let alone =
        |one: &(&str, &str, &str, &str)| several(&[*one], "--backend user").status.success();
    let is_granted = |one: &serde_json::Value| one["backend"].is_string();
    for (tasks, granted, why) in [
        (&stages[..], &[true, true, true][..], ""),
        (&sum, &[true, false, true], "the reservation for a has 5.1ms every 10ms"),
        (
            &late,
            &[true, false],
            "the other reservations would delay 3.1ms beyond its deadline of 6.5ms: the reservation for a",
        ),
    ] {
        // What a machine gives to nobody it does not give to several.
        if !tasks.iter().all(alone) {
            continue;
        }
        let output = several(tasks, "--backend user --json");
        let found = document(&output);
        let also = found["also"].as_array().unwrap();
        let all: Vec<bool> = std::iter::once(&found).chain(also).map(is_granted).collect();
        assert_eq!(all, granted, "{found}");
        assert_eq!(output.status.success(), why.is_empty(), "{found}");
        let text = String::from_utf8(several(tasks, "--backend user --check").stdout).unwrap();
        let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(plain.contains(why), "{text}");
    }
}

/// A pipeline with no deadline but the last, of a quarter of its CPU: equal parts of the time have equal priorities, and it was refused.
#[test]
fn a_pipeline_has_reserves_that_hold_together() {
    let task = |(name, wcet, keys): &(&str, &str, &str)| {
        format!(
            "[[task]]\nname = \"{name}\"\nwcet = \"{wcet}\"\nperiod = \"10ms\"\ncpus = \"0\"\n{keys}\n"
        )
    };
    let asked = |tasks: &[(&str, &str, &str)]| {
        let home = tempfile::tempdir().unwrap();
        let text: String = tasks.iter().map(task).collect();
        fs::write(home.path().join("tasks.toml"), text).unwrap();
        hourglass_in(home.path(), "reserve --from tasks.toml --backend user --json")
    };
    let chain =
        [("a", "500us", ""), ("b", "1ms", "after = [\"a\"]"), ("c", "1ms", "after = [\"b\"]")];
    if !asked(&chain[..1]).status.success() {
        return skip(Requirement::REAL_TIME, "a reserve from user space");
    }
    let output = asked(&chain);
    let found = document(&output);
    assert!(output.status.success(), "{found}");
    assert!(found["also"][1]["bound_ns"].as_u64().unwrap() <= 10_000_000, "{found}");
}

/// One job in each period was said to be enough for all of these.
#[test]
fn what_no_budget_keeps_is_refused_with_the_reason() {
    for (keys, cause) in [
        ("arrivals = [\"1ms\", \"2ms\"]", "closer together (1ms)"),
        ("jitter = \"6ms\"", "leaves 2ms of the deadline of 8ms"),
        ("suspension = \"1ms\"", "waits before its end"),
        ("deadline = \"2ms\"", "more than the deadline of 2ms"),
        ("cpus = \"4000\"", "no CPU 4000"),
    ] {
        // A user-space reserve counts waits as execution.
        let output = asked(keys, "--backend deadline");
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(output.status.code() == Some(1) && plain.contains(cause), "{keys}: {text}");
    }
    let home = tempfile::tempdir().unwrap();
    is_refused(&hourglass_in(home.path(), "reserve --from /dev/null"), 2, "/dev/null", "no tasks");
}

/// The budget was by the upper bound without a word, and refused as if it were true: by hand, 9 of 8 ms are refused and 100 us
/// are not, nor 100 us of the task before; what waits within its job is refused with any time.
#[test]
fn what_only_an_upper_bound_refuses_is_unknown() {
    let of = |wcet: &str, least: &str, more: &str| {
        let home = tempfile::tempdir().unwrap();
        let text = format!(
            "[[task]]\nname = \"a\"\nwcet = \"{wcet}\"\nwcet_at_least = \"{least}\"\nperiod = \"8ms\"\n\
             deadline = \"4ms\"\n{more}\n"
        );
        fs::write(home.path().join("tasks.toml"), text).unwrap();
        ["", "--check", "--json"].map(|options| {
            hourglass_in(
                home.path(),
                &format!("reserve --from tasks.toml --backend deadline {options}"),
            )
        })
    };
    let plain = |output: &Output| {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let next = "[[task]]\nname = \"next\"\nwcet = \"1ms\"\nafter = [\"a\"]";
    // Whether a machine grants 100 us, or its user anything, is for the machine to say, and what it does not is no.
    let granted = |of: &[Output; 3]| of[0].status.code() == Some(0);
    let known = granted(&of("100us", "90us", ""));
    for (wcet, least, more) in [("9ms", "100us", ""), ("9ms", "100us", next), ("9ms", "1us", "")] {
        let found = of(wcet, least, more);
        for output in &found[..2] {
            assert_eq!(output.status.code(), Some(1), "{wcet} {more}");
            let said = plain(output);
            let unknown = said.contains("granted unknown: the wcet of 'a' (at least");
            assert!(unknown || !known, "{said}");
            assert!(said.contains("an upper bound alone, and"), "{said}");
            // The text refers to warnings, which were in the document alone.
            let warned = stderr(ends(output, 1, wcet));
            assert!(warned.contains("warning: a: the wcet of 'a'"), "{warned}");
        }
        let found = document(&found[2]);
        let ids = found["warnings"].as_array().unwrap().iter().map(|warning| &warning["id"]);
        assert!(ids.into_iter().any(|id| id == "wcet-upper-bound"), "{found}");
        assert_eq!(found["wcet_at_least_ns"], if least == "1us" { 1_000 } else { 100_000 });
        let last = if more.is_empty() { &found } else { &found["also"][0] };
        assert!(last["unknown_because"].is_string() || !known, "{found}");
        assert!(last["backend"].is_null());
    }
    for (wcet, least, more) in [("9ms", "5ms", ""), ("9ms", "100us", "suspension = \"1ms\"")] {
        let found = of(wcet, least, more);
        assert!(plain(&found[0]).contains("granted no:"), "{wcet} {more}");
        assert_eq!(document(&found[2])["unknown_because"], serde_json::Value::Null);
    }
    let found = of("3ms", "1ms", "");
    assert!(plain(&found[0]).contains("1ms at least: the budget may be far too large"));
    assert_eq!(document(&found[2])["wcet_at_least_ns"], 1_000_000);
}

/// All threads are found, and all reservations checked, before anything is reserved.
#[test]
fn a_process_without_the_threads_gets_nothing() {
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = format!("--pid {}", child.id());
    let other = asked("", &pid);
    let late = asked("deadline = \"1ms\"", &format!("{pid} --check"));
    let text = "[[task]]\nname = \"sleep\"\nwcet = \"3ms\"\nperiod = \"8ms\"\ndeadline = \"2ms\"\n";
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("tasks.toml"), text).unwrap();
    let refused = hourglass_in(home.path(), &format!("reserve --from tasks.toml {pid}"));
    child.kill().unwrap();
    child.wait().unwrap();
    for output in [&other, &late] {
        is_refused(output, 2, "is called 'a'; it has sleep", &pid);
    }
    let said = stderr(ends(&refused, 1, &pid));
    assert!(
        said.contains("nothing is reserved: the reservation would be refused, as said"),
        "{said}"
    );
    is_refused(&asked("", &pid), 2, "it may have ended", &pid);
}

/// "1 of 1 would be refused, of 1 of which that is not known" was said of a thread. By hand, 9 of 8 ms are refused and 100 us
/// are not; without the privilege, nothing is granted, of which nothing was said beside the budget.
#[test]
fn a_refusal_that_is_not_known_reserves_nothing_for_a_process() {
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let home = tempfile::tempdir().unwrap();
    let task = |wcet: &str, least: &str| {
        let text = format!(
            "[[task]]\nname = \"sleep\"\nwcet = \"{wcet}\"\nwcet_at_least = \"{least}\"\nperiod = \"8ms\"\n"
        );
        fs::write(home.path().join("tasks.toml"), text).unwrap();
    };
    let words = format!("reserve --from tasks.toml --backend deadline --pid {}", child.id());
    task("100us", "90us");
    let known = hourglass_in(home.path(), &format!("{words} --check")).status.success();
    task("9ms", "100us");
    let text = hourglass_in(home.path(), &words);
    let json = hourglass_in(home.path(), &format!("{words} --json"));
    let drop =
        ["--bounding-set=-sys_nice", "--inh-caps=-sys_nice", env!("CARGO_BIN_EXE_hourglass")];
    let mut without = Command::new("setpriv");
    without.args(drop).args(words.split(' ')).current_dir(home.path());
    let without = without.output();
    child.kill().unwrap();
    child.wait().unwrap();
    let said = stderr(ends(&text, 1, &words));
    let found = document(&json);
    assert_eq!(json.status.code(), Some(1), "{found}");
    assert!(found["backend"].is_null(), "{found}");
    let expected = match known {
        true => "reserved: it is not known whether the reservation would be granted, as said above",
        false => "reserved: the reservation would be refused, as said above",
    };
    assert!(said.contains(expected), "{said}");
    assert_eq!(found["unknown_because"].is_string(), known, "{found}");
    // A user who may not drop the privilege does not have it.
    let without = without.ok().filter(|without| !without.stdout.is_empty()).unwrap_or(text);
    let said = String::from_utf8_lossy(&without.stdout);
    for line in
        ["no: no budget", "no-proposal", "deadline: capability", "remedy: sudo setcap cap_sys_nice"]
    {
        assert!(said.contains(line), "{line}: {said}");
    }
}

/// Times that make no sense, and a process that does not exist, were a refusal (exit code 1).
#[test]
fn a_change_that_makes_no_sense_is_bad_input() {
    let home = tempfile::tempdir().unwrap();
    let own = std::process::id();
    for (what, code, says) in [
        (format!("{own} 30ms/10ms"), 2, "30ms/10ms: "),
        ("4194305 3ms/10ms".to_owned(), 2, "there is no process 4194305"),
        (format!("{own} 150ns/10ms"), 2, "multiples of 100ns"),
        (format!("{own} 3ms/10ms"), 1, "keeps no reservation"),
    ] {
        let output = hourglass_in(home.path(), &format!("reserve --change {what}"));
        is_refused(&output, code, says, &what);
    }
}
