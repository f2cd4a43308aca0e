//! By what a reservation is kept, and among whom.

use super::*;

/// The deadline class does not pin (`Documentation/scheduler/sched-deadline.rst`, section 5), and ends budgets of less than
/// ten ticks late: `-rh` takes the means that keeps them, and says which. Without such a means, it names the remedy.
#[test]
fn a_run_reserved_on_one_cpu_says_what_keeps_it() {
    let _alone = alone();
    let words = "run -n 1 --cpu 0 -w PERIODIC 1ms 20ms -rh 2ms 20ms -d 100ms --json";
    let output = Command::new(HOURGLASS).args(words.split(' ')).output().unwrap();
    let text = stderr(&output);
    if !output.status.success() {
        assert_eq!(code(&output), 3, "{text}");
        assert!(output.stdout.is_empty());
        assert!(text.starts_with("hourglass: thread 0: reservation of 2ms every 20ms: "), "{text}");
        assert!(text.contains("CAP_SYS_NICE") || text.contains("--cpu"), "{text}");
        return skip(need("user"), text.trim());
    }
    let document = document(&output);
    let thread = &document["manifest"]["threads"][0];
    let policy = match thread["reserved"]["by"].as_str() {
        Some("user") => "USER:2ms/20ms",
        Some("deadline") => "DEADLINE:2ms/20ms",
        by => panic!("reserved by {by:?}"),
    };
    assert_eq!(thread["policy"], policy);
    assert!(!thread["reserved"]["reason"].as_str().unwrap().is_empty());
}

/// The bug: the outer reservation took the inner one's keeper and guardian for work, and the inner 10 ms were 29.8.
#[test]
fn a_reservation_inside_another_is_refused_with_the_reason() {
    let _alone = alone();
    if !granted("user") {
        return;
    }
    for inner in [&["--backend", "user"][..], &["--backend", "deadline"], &[]] {
        let mut words = vec!["-q", "4ms/40ms", "--backend", "user", "--", HOURGLASS, "reserve"];
        words.extend(inner);
        words.extend([AMOUNT, "--", "true"]);
        let output = reserve(&words);
        let text = stderr(&output);
        assert_eq!(code(&output), OWN, "{inner:?}: {text}");
        assert!(text.contains("inside the reservation that hourglass (process "), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
    // And the other way round: one that keeps a reservation is not taken for work.
    let mut command = Command::new(HOURGLASS);
    command.args(["reserve", AMOUNT, "--backend", "user", "--", "sh", "-c"]);
    command.arg("echo ready; exec sleep 60");
    let mut inner = Running::start(&mut command);
    let mut line = String::new();
    BufReader::new(inner.child().stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let pid = inner.pid().to_string();
    let outer = reserve(&["4ms/40ms", "--pid", &pid]);
    assert_eq!(code(&outer), OWN);
    assert!(stderr(&outer).contains("would be part of this one"), "{}", stderr(&outer));
    inner.signal("-TERM");
}

/// The bug: the second busy child began when the first had ended. Of two that run for some tenths of a second each, the
/// second has come far when the first is done: in the best of three, since a host may keep the CPU from one.
#[test]
fn busy_children_share_their_reservation() {
    let _alone = alone();
    if !granted("user") {
        return;
    }
    let script = "f() { i=0; while [ $i -lt 60000 ]; do i=$((i+1)); [ $((i % 6000)) = 0 ] && echo $1; done; }; \
                  f a & f b & wait";
    let words = ["-q", "20ms/40ms", "--cpu", "0", "--backend", "user", "--", "sh", "-c", script];
    let mut least = usize::MAX;
    for _ in 0..3 {
        let output = reserve(&words);
        if code(&output) == OWN {
            return skip(need("user"), stderr(&output).trim());
        }
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines.len(), 20, "{said}");
        let last = lines.last().unwrap();
        let behind = lines.iter().rev().take_while(|line| *line == last).count();
        least = least.min(behind);
        if least <= 6 {
            return;
        }
    }
    panic!("one was left with {least} of its 10 parts when the other had ended");
}
