//! What a command that needs no privilege does with the one that it got, and what commands that it starts have.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use super::{Capable, code};

/// The permitted capabilities in the text of `/proc/PID/status`.
fn permitted(status: &str) -> Option<u64> {
    let text = status.lines().find_map(|line| line.strip_prefix("CapPrm:"))?;
    u64::from_str_radix(text.trim(), 16).ok()
}

/// A file of tasks may be a stranger's: it was read with the capabilities.
#[test]
fn files_are_read_without_capabilities() {
    let Some(capable) = Capable::new() else { return };
    // It waits for the end of what it reads.
    let mut command = capable.run(&["check", "-"]);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let of = |name: &str| format!("/proc/{}/{name}", child.id());
    let (mut had, mut without) = (false, false);
    for _ in 0..2_000 {
        if fs::read_link(of("exe")).is_ok_and(|exe| exe == capable.command) {
            let permitted = permitted(&fs::read_to_string(of("status")).unwrap());
            had |= permitted.is_some_and(|set| set != 0);
            without = permitted == Some(0);
        }
        if without {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let waits = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(waits, "it did not wait for its file; it had capabilities: {had}");
    assert!(without);
}

/// capabilities(7): `execve` takes those of a file away, unless they were made ambient.
#[test]
fn a_reserved_program_has_no_capability() {
    let Some(capable) = Capable::new() else { return };
    let words = ["1ms/20ms", "--backend", "user", "--", "cat", "/proc/self/status"];
    let output = capable.reserve(&words);
    assert_eq!(code(&output), 0, "{}", super::stderr(&output));
    assert_eq!(permitted(&String::from_utf8_lossy(&output.stdout)), Some(0));
}

/// The program that `paper` runs may be anybody's: it is looked for on the caller's PATH.
#[test]
fn the_program_of_paper_has_no_capability() {
    let Some(capable) = Capable::new() else { return };
    let program = capable.folder.path().join("hourglass-paper");
    let script = capable.folder.path().join("script");
    fs::write(&script, "#!/bin/sh\nexec cat /proc/self/status\n").unwrap();
    super::copy_program(&script, &program);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let output = capable.run(&["paper", "--list"]).output().unwrap();
    assert_eq!(code(&output), 0, "{}", super::stderr(&output));
    assert_eq!(permitted(&String::from_utf8_lossy(&output.stdout)), Some(0));
}
