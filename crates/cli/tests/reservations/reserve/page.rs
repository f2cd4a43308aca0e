//! The page of progress of a command that is not as its reserver is: another user, another PID namespace; and one that
//! closes what it was handed.

use std::os::unix::fs::PermissionsExt;

use hourglass_reserve::progress::Progress;
use serde_json::Value;

use super::*;

/// In the environment of this program where it is the reserved command.
const TELLS: &str = "HOURGLASS_TEST_TELLS";

/// The reserved command's part; for the test runner nothing.
#[test]
fn tells_its_progress_where_it_is_asked_to() {
    if std::env::var_os(TELLS).is_none() {
        return;
    }
    let mut progress = Progress::open().unwrap();
    for job in 0..4u64 {
        progress.begin();
        progress.report(job + 1, 10);
        std::thread::sleep(Duration::from_millis(30));
        progress.report(10, 10);
    }
}

/// The document about a command whose siblings are only watched; `None` where there is no reservation to be had.
fn watched(command: &[&str]) -> Option<Value> {
    let words = ["--json", "5ms/50ms", "--cpu", "0", "--smt", "ignore", "--interferes", "1", "--"];
    let output = Command::new(HOURGLASS)
        .arg("reserve")
        .args(words)
        .args(command)
        .env(TELLS, "1")
        .output()
        .unwrap();
    if code(&output) == OWN {
        skip(need("auto"), stderr(&output).trim());
        return None;
    }
    assert!(output.status.success(), "{command:?}: {}", stderr(&output));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// The bug: the page was a path in hourglass's own `/proc`, which these could not open, and no warning said so.
#[test]
fn a_started_program_can_report_progress() {
    let _alone = alone();
    // Another user must be able to execute it.
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("tells");
    crate::processes::copy_program(std::env::current_exe().unwrap(), &program);
    let program = program.to_str().unwrap();
    let own = ["--exact", "reserve::page::tells_its_progress_where_it_is_asked_to"];
    let launchers: [&[&str]; 3] = [
        &[],
        &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"],
        &["unshare", "-pf"],
    ];
    for launcher in launchers {
        let tried = launcher.split_first().is_none_or(|(first, words)| {
            Command::new(first).args(words).arg("true").output().is_ok_and(|o| o.status.success())
        });
        if !tried {
            let need = Requirement::runs("launcher", format!("{} true", launcher.join(" ")));
            skip(need, format!("{launcher:?} is not granted here"));
            continue;
        }
        let Some(document) = watched(&[launcher, &[program], &own].concat()) else { return };
        assert_eq!(document["smt"]["page"], "told", "{launcher:?}: {document}");
    }
}

/// A command that could not tell anything is not taken for one that did not want to.
#[test]
fn a_closed_descriptor_is_reported_as_the_cause() {
    let _alone = alone();
    if Command::new("bash").args(["-c", "true"]).output().is_err() {
        return skip(
            Requirement::program("bash"),
            "there is no bash, which can close a descriptor of three digits",
        );
    }
    let script = "eval \"exec $HOURGLASS_PROGRESS>&-\"; sleep 1; true";
    let Some(document) = watched(&["bash", "-c", script]) else { return };
    assert_eq!(document["smt"]["page"], "not_opened", "{document}");
    let text = warning(&document, "progress-not-opened")["text"].as_str().unwrap();
    assert!(text.starts_with("bash (process ") && text.contains("closed descriptor"), "{text}");
}
