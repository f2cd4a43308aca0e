//! The remedies as a shell script that root reads and runs, and that takes back what it did.
//!
//! Owns: which remedies a script can apply and undo. Must not: run anything.

use std::fmt::Write;

use hourglass_documents::doctor::{CheckResult, DoctorDocument, Status};

/// `put FILE VALUE`, `set_parameter KEY=VALUE`: the state before goes to the front of the undo script.
const FUNCTIONS: &str = r#"set -eu
undo=${HOURGLASS_UNDO:-/run/hourglass-doctor.undo}
[ "$(id -u)" = 0 ] || { echo "$0: only root may change these settings: sudo sh $0" >&2; exit 3; }
case ${1-apply} in
apply) ;;
undo)
    [ -e "$undo" ] || { echo "$0: $undo is not there: nothing is to be undone" >&2; exit 2; }
    sh "$undo"
    rm "$undo"
    exit ;;
*) echo "usage: sh $0 [apply|undo]" >&2; exit 2 ;;
esac
[ ! -e "$undo" ] || { echo "$0: applied before; first: sh $0 undo" >&2; exit 2; }
: > "$undo"

remember() { # the line that takes back what comes next; the last one first
    { printf '%s\n' "$1"; cat "$undo"; } > "$undo.new"
    mv "$undo.new" "$undo"
}

put() { # FILE VALUE
    [ -e "$1" ] || { echo "not there: $1" >&2; return 0; }
    before=$(sed 's/.*\[\(.*\)\].*/\1/' "$1")
    # First, so that what is interrupted here can be taken back.
    remember "printf '%s\\n' '$before' > $1"
    if ! printf '%s\n' "$2" 2> /dev/null > "$1"; then
        sed -i 1d "$undo"
        echo "refused: $1" >&2
    fi
}

set_parameter() { # KEY=VALUE
    put "/proc/sys/$(printf %s "${1%%=*}" | tr . /)" "${1#*=}"
}
"#;

/// A script for `sh` with the remedies of all checks that fail or warn: those that change a setting of the running kernel or a
/// service are applied, and taken back by `undo`; the others stand there as comments.
#[must_use]
pub fn script(document: &DoctorDocument) -> String {
    let mut out =
        String::from("#!/bin/sh\n# Written by hourglass doctor --script: read it, then\n");
    out.push_str("#   sudo sh FILE        applies it until the next boot\n");
    out.push_str("#   sudo sh FILE undo   takes it back\n");
    out.push_str(FUNCTIONS);
    let bad = |check: &&CheckResult| matches!(check.status, Status::Fail | Status::Warn);
    let mut others = String::new();
    for check in document.checks.iter().filter(bad) {
        let (line, note) = check.remedy.split_once(" # ").unwrap_or((&check.remedy, ""));
        // Writing to a string cannot fail.
        let _ = match commands(line) {
            Some(commands) => {
                let _ = writeln!(out, "\n# {}: {}", check.id, one_line(&check.found));
                if !note.is_empty() {
                    let _ = writeln!(out, "# {}", one_line(note));
                }
                writeln!(out, "{commands}")
            }
            None => writeln!(others, "# {}: {}", check.id, one_line(&check.remedy)),
        };
    }
    if !others.is_empty() {
        let _ = write!(out, "\n# What no script does, or none can take back:\n{others}");
    }
    out
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A remedy in the words of [`FUNCTIONS`]; `None` if it has another form.
fn commands(line: &str) -> Option<String> {
    let line = line.replace("sudo ", "");
    if let Some(settings) = line.strip_prefix("sysctl ") {
        let all = settings.split_whitespace().map(|one| format!("set_parameter {one}"));
        return settings.contains('=').then(|| all.collect::<Vec<_>>().join("\n"));
    }
    if let Some(service) = line.strip_prefix("systemctl disable --now ") {
        let back = format!("remember 'systemctl enable --now {service}'");
        return Some(format!("{back}\nsystemctl disable --now {service}"));
    }
    if line == "swapoff -a" {
        return Some("remember 'swapon -a'\nswapoff -a".to_owned());
    }
    let parts: Option<Vec<String>> = line.split("; ").map(part).collect();
    parts
        .filter(|parts| parts.iter().any(|part| part.contains("put ")))
        .map(|parts| parts.join("; "))
}

/// A part of a line between semicolons: a loop's word stays, `echo VALUE > FILE` becomes `put`.
fn part(part: &str) -> Option<String> {
    let (begin, rest) = match part.strip_prefix("do ") {
        Some(rest) => ("do ", rest),
        None => ("", part),
    };
    if rest == "done" || (rest.starts_with("for ") && !rest.contains('>')) {
        return Some(part.to_owned());
    }
    let (value, file) = rest
        .strip_prefix("echo ")?
        .split_once(" > ")
        .or_else(|| rest.strip_prefix("echo ")?.split_once(" | tee "))?;
    let plain = |text: &str| !text.contains(['|', '&', '<', '>', '(', '`', ' ']);
    let quoted = file.replace('$', "");
    (plain(value) && plain(&quoted)).then(|| format!("{begin}put {file} {value}"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use hourglass_documents::doctor::{CheckEffect, CpuSelection, DOCTOR_SCHEMA, StatusCounts};

    use super::*;

    fn document(remedies: &[(&str, &str)]) -> DoctorDocument {
        let check = |(id, remedy): &(&str, &str)| CheckResult {
            id: (*id).to_owned(),
            status: Status::Warn,
            found: "found".to_owned(),
            wanted: String::new(),
            remedy: (*remedy).to_owned(),
            effect: CheckEffect::default(),
        };
        let checks: Vec<CheckResult> = remedies.iter().map(check).collect();
        DoctorDocument {
            schema: DOCTOR_SCHEMA.to_owned(),
            cpus: [0].into_iter().collect(),
            cpus_are: CpuSelection::Online,
            counts: StatusCounts::count(&checks),
            checks,
            differences: None,
        }
    }

    #[test]
    fn remedies_of_a_setting_are_put_and_others_are_comments() {
        for (line, wanted) in [
            ("sysctl kernel.watchdog=0", Some("set_parameter kernel.watchdog=0")),
            (
                "sudo sysctl kernel.timer_migration=0",
                Some("set_parameter kernel.timer_migration=0"),
            ),
            ("echo 1 > /sys/kernel/rcu_normal", Some("put /sys/kernel/rcu_normal 1")),
            ("echo 2 | sudo tee /sys/kernel/mm/ksm/run", Some("put /sys/kernel/mm/ksm/run 2")),
            (
                "for f in /proc/irq/*/smp_affinity_list; do echo 0 > $f; done; echo 1 > /proc/irq/x",
                Some(
                    "for f in /proc/irq/*/smp_affinity_list; do put $f 0; done; put /proc/irq/x 1",
                ),
            ),
            (
                "for c in 2 3; do for f in /sys/cpu$c/online; do echo 0 > $f; done; done",
                Some("for c in 2 3; do for f in /sys/cpu$c/online; do put $f 0; done; done"),
            ),
            ("add to the kernel's command line and reboot: isolcpus=1", None),
            ("on the container's host: sudo sysctl vm.stat_interval=10", None),
            ("grubby --update-kernel=ALL --args=\"x\"", None),
            ("echo $(cat /etc/passwd) > /tmp/x", None),
        ] {
            assert_eq!(commands(line).as_deref(), wanted, "{line}");
        }
    }

    /// The script is run on files of its own, also where one refuses and one is absent, and taken back.
    #[test]
    fn what_a_script_did_it_takes_back() {
        let home = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = home.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let (plain, chosen) = (file("plain", "3\n"), file("chosen", "[always] madvise never\n"));
        let absent = home.path().join("absent");
        let put =
            |path: &std::path::Path, value: &str| format!("echo {value} > {}", path.display());
        let lines = [put(&plain, "7"), put(&plain, "8"), put(&chosen, "never"), put(&absent, "1")];
        let named = lines.iter().map(|line| ("swap", &**line)).collect::<Vec<_>>();
        // As any user: these are files of its own.
        let text = script(&document(&named)).replace("[ \"$(id -u)\" = 0 ]", "true");
        let path = file("script.sh", &text);
        let run = |word: &str| {
            let mut sh = Command::new("sh");
            sh.arg(&path).arg(word).env("HOURGLASS_UNDO", home.path().join("undo"));
            let output = sh.output().unwrap();
            (output.status.code(), String::from_utf8(output.stderr).unwrap())
        };
        let read = || [&plain, &chosen].map(|path| fs::read_to_string(path).unwrap());
        assert_eq!(run("undo").0, Some(2));
        let (code, said) = run("apply");
        assert_eq!((code, said.trim()), (Some(0), &*format!("not there: {}", absent.display())));
        assert_eq!(read(), ["8\n", "never\n"]);
        assert_eq!(run("apply").0, Some(2), "it would forget what was before");
        assert_eq!(run("undo").0, Some(0));
        assert_eq!(read(), ["3\n", "always\n"]);
        assert!(!home.path().join("undo").exists() && !absent.exists());
    }
}
