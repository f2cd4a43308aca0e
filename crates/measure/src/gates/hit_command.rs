//! The command of `--on-hit`.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use hourglass_documents::document::{HitReport, Warning};
use hourglass_runs::store::NewRunFolder;
use hourglass_sys::inherited_signals::hand_on;

use super::Gates;

const PREFIX: &str = "HOURGLASS_HIT_";

/// Runs the command of `gates`, if a limit ended the run.
pub(crate) fn run_on_hit(
    gates: &Gates,
    hit: Option<&HitReport>,
    folder: Option<&NewRunFolder>,
) -> Option<Warning> {
    run(gates.on_hit.as_deref()?, hit?, folder.map(NewRunFolder::path))
}

/// Runs `command` by `sh -c` and waits for it. What it prints goes to stderr, so that stdout stays
/// with the run. A command that fails does not spoil the run: the warning says how it ended.
fn run(command: &str, hit: &HitReport, folder: Option<&Path>) -> Option<Warning> {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).stdin(Stdio::null()).stdout(Stdio::from(io::stderr()));
    for (name, value) in [
        ("KIND", hit.kind.clone()),
        ("THREAD", hit.thread.to_string()),
        ("CPU", hit.cpu.to_string()),
        ("NS", hit.value_ns.to_string()),
        ("LIMIT_NS", hit.limit_ns.to_string()),
        ("AT_NS", hit.at_ns.to_string()),
    ] {
        shell.env(format!("{PREFIX}{name}"), value);
    }
    if let Some(folder) = folder {
        shell.env(format!("{PREFIX}FOLDER"), folder);
    }
    let how = match hand_on(&mut shell).status() {
        Ok(status) if status.success() => return None,
        Ok(status) => format!("ended with {status}"),
        Err(error) => format!("could not be started: {error}"),
    };
    Some(Warning {
        id: "on-hit-failed".to_owned(),
        text: format!("the command of --on-hit {how}: {command}"),
        remedy: format!("try it by itself; the run describes the hit in {PREFIX}* variables"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit() -> HitReport {
        HitReport {
            kind: "gap".to_owned(),
            thread: 3,
            cpu: 1,
            limit_ns: 1_000_000,
            value_ns: 1_234_567,
            at_ns: 99,
        }
    }

    #[test]
    fn the_command_hears_what_was_hit() {
        let home = tempfile::tempdir().unwrap();
        let output = home.path().join("told");
        let names = "$HOURGLASS_HIT_KIND $HOURGLASS_HIT_THREAD $HOURGLASS_HIT_CPU \
                     $HOURGLASS_HIT_NS $HOURGLASS_HIT_LIMIT_NS $HOURGLASS_HIT_AT_NS \
                     $HOURGLASS_HIT_FOLDER";
        let command = format!("echo {names} > {}", output.display());
        assert_eq!(run(&command, &hit(), Some(Path::new("kept"))), None);
        let content = std::fs::read_to_string(output).unwrap();
        assert_eq!(content, "gap 3 1 1234567 1000000 99 kept\n");
    }

    #[test]
    fn its_failure_is_said() {
        let warning = run("exit 7", &hit(), None).unwrap();
        assert_eq!(warning.id, "on-hit-failed");
        assert!(warning.text.contains("exit status: 7: exit 7"), "{}", warning.text);
    }
}
