//! Calls of `hourglass`, and what a script sees of them.

#![allow(dead_code)] // each program uses its part

#[cfg(target_arch = "x86_64")]
pub(crate) mod faults;

use std::fmt::Debug;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub(crate) const HOURGLASS: &str = env!("CARGO_BIN_EXE_hourglass");

/// Arguments of a command: a line that is split at spaces, or words.
pub(crate) trait Line {
    fn words(&self) -> Vec<&str>;
}

impl Line for str {
    fn words(&self) -> Vec<&str> {
        self.split_whitespace().collect()
    }
}

impl Line for String {
    fn words(&self) -> Vec<&str> {
        self.as_str().words()
    }
}

impl Line for [&str] {
    fn words(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl<const N: usize> Line for [&str; N] {
    fn words(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl Line for Vec<&str> {
    fn words(&self) -> Vec<&str> {
        self.clone()
    }
}

pub(crate) fn command<L: Line + ?Sized>(line: &L) -> Command {
    let mut command = Command::new(HOURGLASS);
    command.args(line.words()).stdin(Stdio::null());
    command
}

pub(crate) fn hourglass<L: Line + ?Sized>(line: &L) -> Output {
    command(line).output().unwrap()
}

pub(crate) fn hourglass_in<L: Line + ?Sized>(folder: &Path, line: &L) -> Output {
    command(line).current_dir(folder).output().unwrap()
}

/// Standard output of a command that must succeed.
pub(crate) fn printed<L: Line + ?Sized>(line: &L) -> String {
    text(&ends(&hourglass(line), 0, line.words()).stdout)
}

/// That a command ended with this code; `of` is for the message.
pub(crate) fn ends(output: &Output, code: i32, of: impl Debug) -> &Output {
    assert_eq!(output.status.code(), Some(code), "{of:?}: {}", stderr(output));
    output
}

/// That a command ended with this code, nothing on stdout, and one line on stderr, which has `part` in it.
pub(crate) fn is_refused(output: &Output, code: i32, part: &str, of: impl Debug) -> String {
    let said = stderr(ends(output, code, &of));
    assert!(output.stdout.is_empty(), "{of:?}: {output:?}");
    assert_eq!(said.lines().count(), 1, "{of:?}: {said}");
    assert!(said.contains(part), "{of:?}: {part}: {said}");
    said
}

/// The line on stderr of a command that was refused: exit code 2, one line, nothing on stdout.
pub(crate) fn refusal(output: &Output) -> String {
    is_refused(output, 2, "", "")
}

/// A refusal whose line begins with `message`.
pub(crate) fn refuses(line: &str, message: &str) {
    let said = refusal(&hourglass(line));
    assert!(said.starts_with(&format!("hourglass: {message}")), "{line}: {said}");
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// That a document has a warning of this name, which it returns.
pub(crate) fn warning<'a>(document: &'a Value, id: &str) -> &'a Value {
    let mut warnings = document["warnings"].as_array().unwrap().iter();
    warnings.find(|warning| warning["id"] == id).unwrap_or_else(|| panic!("{id}: {document}"))
}

/// The document on stdout.
pub(crate) fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}
