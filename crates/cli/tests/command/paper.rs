//! `hourglass paper` runs `hourglass-paper` from its own folder, else from the PATH, and hands everything on. What that
//! program does is its own tests' business; here a script is in its place.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::calls::{ends, is_refused, stderr, text};
use crate::processes::copy_program;

/// Prints where it is and its words, reads a line, and ends with a code that Hourglass has not.
const SCRIPT: &str =
    "#!/bin/sh\nread line\nprintf '%s|' \"$0\" \"$@\" \"$line\"\necho said >&2\nexit 42\n";

fn script(folder: &Path) -> PathBuf {
    script_of(folder, SCRIPT)
}

fn script_of(folder: &Path, text: &str) -> PathBuf {
    fs::create_dir_all(folder).unwrap();
    let (written, path) = (folder.join("script"), folder.join("hourglass-paper"));
    fs::write(&written, text).unwrap();
    copy_program(&written, &path);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// A folder with the command alone, and how it ends there with these words and this PATH.
fn alone(folder: &Path, words: &str, path: &Path) -> Output {
    let command = folder.join("hourglass");
    if !command.exists() {
        copy_program(env!("CARGO_BIN_EXE_hourglass"), &command);
    }
    let input = folder.join("input");
    fs::write(&input, "typed\n").unwrap();
    let input = fs::File::open(input).unwrap();
    let mut command = Command::new(command);
    command.args(words.split_whitespace()).env("PATH", path).stdin(Stdio::from(input));
    command.output().unwrap()
}

/// Words, also those that stand before `paper` and those that only the program knows; stdin, stdout, stderr and exit code.
#[test]
fn everything_is_handed_on() {
    let home = tempfile::tempdir().unwrap();
    let beside = script(home.path());
    for (line, words) in [
        ("paper", ""),
        ("paper NAME --json -o a --new=1 -- x", "NAME|--json|-o|a|--new=1|--|x|"),
        ("--json -q --color never paper --list", "--json|-q|--color|never|--list|"),
        ("--color=always paper paper", "--color=always|paper|"),
        ("paper --help", "--help|"),
        ("help paper", "--help|"),
        ("-q help paper", "--help|"),
    ] {
        let output = alone(home.path(), line, Path::new("/none"));
        assert_eq!(text(&output.stdout), format!("{}|{words}typed|", beside.display()), "{line}");
        assert_eq!((text(&output.stderr).as_str(), output.status.code()), ("said\n", Some(42)));
    }
}

/// The one beside the command is of its version; that of the PATH may be another.
#[test]
fn the_program_beside_the_command_is_before_those_of_the_path() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("bin");
    let elsewhere = script(&path);
    let ran = || text(&alone(home.path(), "paper", &path).stdout);
    assert_eq!(ran(), format!("{}|typed|", elsewhere.display()));
    let beside = script(home.path());
    assert_eq!(ran(), format!("{}|typed|", beside.display()));
}

/// One line that says how to get it, and exit code 3; also where help is wanted.
#[test]
fn a_program_that_is_missing_is_named_with_how_to_get_it() {
    let home = tempfile::tempdir().unwrap();
    for line in ["paper highpertimer", "--json paper --list", "paper --help", "help paper"] {
        let output = alone(home.path(), line, Path::new("/none"));
        let said = is_refused(&output, 3, "cargo install --path papers", line);
        assert!(
            said.starts_with("hourglass: paper: hourglass-paper is neither in the folder"),
            "{said}"
        );
    }
    // One that is there and cannot be started is not said to be missing.
    let beside = script_of(home.path(), "#!/none/sh\n");
    let output = alone(home.path(), "paper", Path::new("/none"));
    let said = stderr(ends(&output, 3, "paper"));
    let wanted = format!("hourglass: paper: {} cannot be", beside.display());
    assert!(said.starts_with(&wanted), "{said}");
}
