//! What a starter decided stays so: signals that it had ignored or blocked, for every command that lasts and for
//! the programs that they start. Neither a question (SIGUSR1) nor a full disk (SIGXFSZ) ends a command.

use std::fs;
use std::process::{Child, Command, Stdio};

use crate::calls::{HOURGLASS, ends, stderr};
use crate::processes::{catches, send, until};
use crate::programs::with_paper;
use hourglass_skip::{Requirement, skip};

const SIGUSR1: u32 = 10;
const SIGTERM: u32 = 15;

/// `hourglass WORDS` as a shell starts it that has first done `setup`.
fn under(setup: &str, words: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("{setup}; exec {HOURGLASS} {words}"));
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    shell
}

/// Waits until the command of `words` has a handler for a signal; it must not end before. `paper` becomes another program,
/// with handlers of its own.
fn await_handler(child: &mut Child, words: &str, signal: u32) {
    let program = if words.starts_with("paper") { "hourglass-paper" } else { "hourglass" };
    let has_become = |pid: u32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == program)
    };
    until("the signal is caught", || {
        child.try_wait().unwrap().is_some() || has_become(child.id()) && catches(child.id(), signal)
    });
}

/// Commands that install handlers and last for half a second and more.
const LASTING: [&str; 7] = [
    "run -n 1 -d 600ms -w CPU -q",
    "latency --policy other -i1000 -D 1 -q",
    "noise -D 600ms --warm-up 0 -q",
    "cache-cost --sizes 4K --trials 2 --duration 200ms --threads 2",
    "paper highpertimer --quick --table 2.2",
    "sweep -n 20 --sets 200 -q",
    "watch 1 -d 600ms -q",
];

/// `nohup hourglass` died of SIGHUP; a SIGINT that a shell's `&` had ignored ended the run.
#[test]
fn ignored_signals_stay_ignored() {
    with_paper();
    let home = tempfile::tempdir().unwrap();
    for words in LASTING {
        let mut command = under("trap '' HUP INT", words);
        let mut child = command.current_dir(home.path()).spawn().unwrap();
        await_handler(&mut child, words, SIGTERM);
        send("-HUP", child.id().into()).unwrap();
        send("-INT", child.id().into()).unwrap();
        let output = child.wait_with_output().unwrap();
        ends(&output, 0, words);
    }
}

/// SIGUSR1 ended every command but a `latency` that had come to its measuring.
#[test]
fn a_question_ends_no_command() {
    with_paper();
    let home = tempfile::tempdir().unwrap();
    for words in LASTING {
        let mut command = under(":", words);
        let mut child = command.current_dir(home.path()).spawn().unwrap();
        await_handler(&mut child, words, SIGUSR1);
        send("-USR1", child.id().into()).unwrap();
        let output = child.wait_with_output().unwrap();
        ends(&output, 0, words);
    }
}

/// A file beyond the limit ended the process by SIGXFSZ; it is what a full disk is: exit code 3, one line that
/// gives the system's reason, and nothing that looks like a whole run.
#[test]
fn a_file_beyond_the_limit_is_a_full_disk() {
    let home = tempfile::tempdir().unwrap();
    let run = "run -n 1 -d 50ms -w CPU --gap 200ns -q -o kept";
    let output = under("ulimit -f 1", run).current_dir(home.path()).output().unwrap();
    let text = stderr(ends(&output, 3, run));
    let messages = text.lines().filter(|line| line.contains("File too large")).count();
    assert_eq!(messages, 1, "{text}");
    let shown = Command::new(HOURGLASS).args(["show", "kept"]).current_dir(home.path()).output();
    assert_ne!(shown.unwrap().status.code(), Some(0));
    // Also where the output itself is the file.
    let run = "run -n 1 -d 50ms -w CPU --json > out";
    let output = under("ulimit -f 1", run).current_dir(home.path()).output().unwrap();
    let text = stderr(ends(&output, 3, run));
    assert!(text.contains("File too large"), "{text}");
}

/// What a program sees of signals that it ignores or blocks: the lines `SigBlk` and `SigIgn`.
const SEES: &str = "grep -E \"^Sig(Blk|Ign)\" /proc/self/status";

/// Those lines as numbers, without the two signals that the C library keeps for itself (32 and 33).
fn seen(output: &str) -> Vec<u64> {
    const OWN: u64 = 0b11 << 31;
    let lines = output.lines().filter_map(|line| line.split_once(':'));
    let lines = lines.filter(|(name, _)| ["SigBlk", "SigIgn"].contains(name));
    lines.map(|(_, mask)| u64::from_str_radix(mask.trim(), 16).unwrap() & !OWN).collect()
}

/// What is started finds signals as if its starter's starter had started it. It had SIGPIPE back at its
/// default, nothing blocked, and where SIGCHLD was ignored no process could wait for its end.
#[test]
fn what_is_started_inherits_what_was_ignored_and_blocked() {
    const ENV: &str = "env --ignore-signal=HUP,PIPE,CHLD,USR2 --block-signal=USR1,WINCH";
    let shell = |line: &str| Command::new("sh").arg("-c").arg(line).output().unwrap();
    let plain = shell(&format!("{ENV} {SEES}"));
    if !plain.status.success() {
        return skip(
            Requirement::runs("env", "env --block-signal=TERM true"),
            format!("env(1) with --block-signal: {}", stderr(&plain)),
        );
    }
    let wanted = seen(&String::from_utf8(plain.stdout).unwrap());
    let [blocked, ignored] = wanted[..] else { panic!("{wanted:?}") };
    assert!(blocked != 0 && ignored != 0);
    let noise = "noise -D 20s --warm-up 0 -T 0 -q -c 0 --on-hit";
    // A command is run by a shell, which may change some of it.
    let by_shell = shell(&format!("{ENV} sh -c '{SEES}'"));
    let by_shell = seen(&String::from_utf8_lossy(&by_shell.stdout));
    let output = shell(&format!("{ENV} {HOURGLASS} {noise} '{SEES}'"));
    let text = stderr(ends(&output, 1, noise));
    assert_eq!(seen(&text), by_shell, "{text}");
    let output = shell(&format!("{ENV} {HOURGLASS} reserve 1ms/20ms -- {SEES}"));
    if output.status.code() == Some(125) {
        return skip(Requirement::REAL_TIME, format!("a reservation: {}", stderr(&output).trim()));
    }
    ends(&output, 0, "reserve");
    assert_eq!(seen(&String::from_utf8_lossy(&output.stdout)), wanted);
}

/// The starter of a run that was asked by SIGUSR1 may have had that ignored, too.
#[test]
fn a_question_that_is_ignored_is_not_answered() {
    let latency = "latency --policy other -i1000 -D 1 -q";
    let mut child = under("trap '' USR1", latency).spawn().unwrap();
    await_handler(&mut child, latency, SIGTERM);
    assert!(!catches(child.id(), SIGUSR1));
    send("-USR1", child.id().into()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(!stderr(&output).contains("# after"), "{}", stderr(&output));
}

/// A signal after the folder was made and before the first sample, or while the load began, left
/// `trace.parquet.partial`, and the next run refused the folder; Ctrl-C ends with 130 also where no thread is a task.
#[test]
fn an_early_signal_leaves_nothing_half_written() {
    let traces = fs::read_dir("/sys/kernel/tracing/instances").is_ok();
    let traced = "watch 1 -d 20s -q --trace --tasks found.toml";
    let lines = [
        "watch 1 -d 20s -q -o kept",
        "latency --policy other -D 20s -q --load cpu -o kept",
        traced,
    ];
    for words in lines.iter().filter(|words| traces || !words.contains("--trace")) {
        let home = tempfile::tempdir().unwrap();
        let names = || {
            let entries = fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().path());
            entries.collect::<Vec<_>>()
        };
        let mut child = under("true", words).current_dir(home.path()).spawn().unwrap();
        until("it has a folder", || {
            child.try_wait().unwrap().is_some() || names().iter().any(|path| path.is_dir())
        });
        send("-INT", child.id().into()).unwrap();
        let output = child.wait_with_output().unwrap();
        ends(&output, 130, words);
        let left = names();
        let is_whole = |path: &std::path::PathBuf| path.join("manifest.json").exists();
        assert!(left.iter().all(|path| path.is_file() || is_whole(path)), "{words}: {left:?}");
        assert_eq!(left.iter().any(|path| path.is_dir()), words.contains("-o"), "{left:?}");
    }
}
