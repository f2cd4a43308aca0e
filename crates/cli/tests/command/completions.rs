//! Completion in real shells: what each offers at the end of a line. Closed lists of words offered files, and a run
//! without the word `run` nothing.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use hourglass_skip::{Requirement, skip};

use crate::calls::{hourglass, text};

/// Lines, what must be offered, and what must not.
const CASES: [(&str, &str, &str); 17] = [
    ("hourglass doctor --check gov", "governor", "isolation"),
    ("hourglass doctor --fail-on ", "fail warn unknown", "governor"),
    ("hourglass run -w ", "CPU PERIODIC LAT GRID", "--ring"),
    ("hourglass run -p RT", "RTLOW RTMED RTHIGH", "NORMAL"),
    ("hourglass check --analysis fp-", "fp-preemptive", "edf-preemptive"),
    ("hourglass reserve 1ms/10ms --smt ", "ignore disable monitor", "auto"),
    ("hourglass reserve 1ms/10ms --stopper s", "sigstop", "auto"),
    ("hourglass example ", "audio tasks smt", ""),
    ("hourglass man ta", "tasks", "run"),
    ("hourglass completions f", "fish", "bash"),
    // Without run.
    ("hourglass --ma", "--max-latency --max-gap --max-misses", "--margin"),
    ("hourglass -w ", "CPU PERIODIC LAT GRID", "--ring"),
    ("hourglass -w LAT 1ms -i ", "NATIVE SPIN", "run"),
    ("hourglass -q --color never -w PERIODIC 1ms 8ms --ma", "--max-misses", "--margin"),
    ("hourglass -w LAT 1ms ", "", "doctor"),
    ("hourglass -", "--ring --version", "--margin"),
    ("hourglass do", "doctor", "--ring"),
];

/// The last words of a line as bash hands them over.
const BASH: &str = r#"
source "$1"
read -ra COMP_WORDS <<<"$2"
case $2 in *" ") COMP_WORDS+=("");; esac
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_hourglass hourglass "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}"
printf '%s\n' "${COMPREPLY[@]}"
"#;

const FISH: &str = r#"
source $argv[1]
complete -C $argv[2] | cut -f 1
"#;

/// Widgets of zsh work at a terminal alone: one is made, and what is offered goes to a file besides.
const ZSH: &str = r#"
zmodload zsh/zpty
zpty asked zsh -f -i
zpty -w asked "source $SETUP"
zpty -n -w asked "$2"$'\t'
while zpty -r asked line; do :; done
cat $FOUND
"#;

const ZSH_SETUP: &str = r#"
PROMPT=
LISTMAX=1000
autoload -U compinit
compinit -D -u
source $SCRIPT
bindkey '^I' complete-word
zstyle ':completion:*' completer _complete
compadd() {
    if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)\ * ]]; then
        local -a hits
        builtin compadd -A hits "$@"
        print -rl -- $hits >>$FOUND
    fi
    builtin compadd "$@"
}
comppostfuncs=(exit)
"#;

fn written(shell: &str, folder: &Path) -> String {
    let script = folder.join("script");
    fs::write(&script, hourglass(&["completions", shell]).stdout).unwrap();
    script.display().to_string()
}

/// Whether the shell is there; else the test is skipped.
fn has(shell: &str) -> bool {
    let call = Command::new(shell).arg("--version").stdout(Stdio::null()).status();
    let there = call.is_ok_and(|status| status.success());
    if !there {
        skip(Requirement::program(shell), format!("no {shell}"));
    }
    there
}

fn offers(shell: &str, call: impl Fn(&Path, &str) -> Command) {
    if !has(shell) {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let script = written(shell, home.path());
    for (line, wanted, unwanted) in CASES {
        let mut command = call(home.path(), &script);
        let output = command.arg(line).stdin(Stdio::null()).output().unwrap();
        let printed = text(&output.stdout);
        let words: Vec<&str> = printed.split_whitespace().collect();
        for word in wanted.split_whitespace() {
            assert!(words.contains(&word), "{shell}: {line}: {word}: {output:?}");
        }
        for word in unwanted.split_whitespace() {
            assert!(!words.contains(&word), "{shell}: {line}: {word}: {output:?}");
        }
    }
}

#[test]
fn bash_completes_closed_lists_and_runs_without_run() {
    offers("bash", |_, script| {
        let mut bash = Command::new("bash");
        bash.args(["--norc", "-c", BASH, "bash", script]);
        bash
    });
}

#[test]
fn fish_completes_closed_lists_and_runs_without_run() {
    offers("fish", |home, script| {
        let mut fish = Command::new("fish");
        fish.env("HOME", home).args(["--no-config", "-c", FISH, script]);
        fish
    });
}

#[test]
fn zsh_completes_closed_lists_and_runs_without_run() {
    offers("zsh", |home, script| {
        let (setup, found) = (home.join("setup"), home.join("found"));
        fs::write(&setup, ZSH_SETUP).unwrap();
        fs::write(&found, "").unwrap();
        // It would wait for ever at a question.
        let mut zsh = Command::new("timeout");
        zsh.args(["20", "zsh", "-f", "-c", ZSH, "zsh", script]);
        zsh.env("SCRIPT", script).env("SETUP", setup).env("FOUND", found);
        zsh
    });
}
