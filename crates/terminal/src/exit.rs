//! Why the command ends without having done what it was asked, and the exit code that says so.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

/// Done, and the answer is yes.
pub const YES: u8 = 0;
/// Done, and the answer is no.
pub const NO: u8 = 1;
/// The command line or something that it names is wrong.
pub const USAGE: u8 = 2;
/// This machine cannot do it: privilege, hardware, a full disk.
pub const MACHINE: u8 = 3;
/// Done, and no verdict: what was measured does not decide.
pub const UNDECIDED: u8 = 4;
/// `reserve` failed by itself, not its command, as timeout(1) and env(1) have it.
pub const OWN: u8 = 125;
/// Added to the number of a signal that ended a run early; 130 for Ctrl-C.
pub const SIGNALLED: u8 = 128;

/// The exit code of a run that `signal` ended early.
pub fn ended_by(signal: i32) -> ExitCode {
    ExitCode::from(code_of(signal))
}

/// The same as a number.
pub fn code_of(signal: i32) -> u8 {
    SIGNALLED.saturating_add(u8::try_from(signal).unwrap_or(0))
}

/// An end without a result, with its exit code and lines that say why.
#[derive(Debug, PartialEq, Eq)]
pub struct Stop {
    code: u8,
    lines: Vec<String>,
}

impl Stop {
    /// The command line or a file is wrong.
    pub fn usage(line: impl Into<String>) -> Stop {
        Stop { code: USAGE, lines: vec![line.into()] }
    }

    /// A value or a file is wrong, for this reason.
    pub fn bad_input(reason: impl fmt::Display) -> Stop {
        Stop::usage(reason.to_string())
    }

    /// The machine cannot, for these reasons.
    pub fn machine(lines: Vec<String>) -> Stop {
        Stop { code: MACHINE, lines }
    }

    /// For a command with codes of its own.
    pub fn with(code: u8, lines: Vec<String>) -> Stop {
        Stop { code, lines }
    }

    /// The exit code for the shell.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }

    /// The same, its lines beginning with the file that they are about.
    pub fn about(mut self, file: Option<&Path>) -> Stop {
        let Some(file) = file.map(|file| file.display().to_string()) else { return self };
        for line in self.lines.iter_mut().filter(|line| !line.starts_with(&file)) {
            *line = format!("{file}: {line}");
        }
        self
    }

    /// The exit code as a number.
    pub fn code(&self) -> u8 {
        self.code
    }

    /// Why, one line each.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines.join("; "))
    }
}

impl std::error::Error for Stop {}
