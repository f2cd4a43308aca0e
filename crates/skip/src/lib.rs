//! Tests that this machine cannot run: each is counted, and named with its condition.
//!
//! The test harness hides what a passed test prints, so a test that returns early looks like one that
//! ran. [`skip`] also appends a line to the file named by [`FILE`]; `cargo xtask test` sets that
//! variable, prints the lines at the end, and fails in CI on a test that CI's machine could have run.
//!
//! Owns: the reasons for which a test may be skipped. Must not: decide whether a reason holds (the test
//! does); depend on anything.

#![forbid(unsafe_code)]

use std::fmt::{self, Display};
use std::fs::OpenOptions;
use std::io::Write;
use std::panic::Location;

/// The environment variable with the path of the file to which skipped tests are appended.
pub const FILE: &str = "HOURGLASS_SKIPPED";

/// What a skipped test needs and this machine lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// A program or library from a package, which CI installs.
    Tool,
    /// The kernel's trace, mounted, and the right to use it.
    Tracefs,
    /// A real-time policy: `CAP_SYS_NICE` or a limit of real-time priorities above zero.
    RealTime,
    /// The kernel's deadline class. A kernel may refuse it to root, too: where its account of the
    /// bandwidth is full, and on some kernels where that account is wrong.
    DeadlineClass,
    /// A control group that can be made, with the controller that the test uses.
    ControlGroup,
    /// A second CPU that is online.
    SecondCpu,
    /// Hardware threads that share a core.
    Siblings,
    /// The processor's performance counters.
    Counters,
    /// A clock source or device that not every machine has (HPET, RTC, PTP).
    Device,
    /// What a kernel is built with or offers only from some version on.
    Kernel,
    /// What the machine is otherwise: its load, its limits, what others run on it.
    Machine,
}

/// Every [`Need`] with the word that stands for it in the file.
const WORDS: [(Need, &str); 11] = [
    (Need::Tool, "tool"),
    (Need::Tracefs, "tracefs"),
    (Need::RealTime, "real-time"),
    (Need::DeadlineClass, "deadline-class"),
    (Need::ControlGroup, "control-group"),
    (Need::SecondCpu, "second-cpu"),
    (Need::Siblings, "siblings"),
    (Need::Counters, "counters"),
    (Need::Device, "device"),
    (Need::Kernel, "kernel"),
    (Need::Machine, "machine"),
];

impl Need {
    /// Whether CI's machine has it: CI runs as root on two CPUs, mounts tracefs and installs the
    /// tools. A test that was skipped there for such a need was skipped by mistake.
    #[must_use]
    pub fn is_met_in_ci(self) -> bool {
        matches!(
            self,
            Need::Tool | Need::Tracefs | Need::RealTime | Need::ControlGroup | Need::SecondCpu
        )
    }

    fn word(self) -> &'static str {
        WORDS.iter().find(|(need, _)| *need == self).map_or("", |(_, word)| word)
    }
}

impl Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// One skipped test: a line of the file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Skipped {
    /// What was missing.
    pub need: Need,
    /// The test's name, or the place in the sources where the harness gave its thread none.
    pub test: String,
    /// The condition, in one line.
    pub why: String,
}

impl Skipped {
    /// Reads a line of the file; `None` where it is none.
    #[must_use]
    pub fn parse(line: &str) -> Option<Skipped> {
        let mut fields = line.splitn(3, '\t');
        let word = fields.next()?;
        let (need, _) = WORDS.into_iter().find(|(_, known)| *known == word)?;
        let (test, why) = (fields.next()?.to_owned(), fields.next()?.to_owned());
        Some(Skipped { need, test, why })
    }

    fn line(&self) -> String {
        format!("{}\t{}\t{}\n", self.need, self.test, self.why)
    }
}

/// Notes that the test that calls this is skipped, because the machine lacks `need`; `why` says what was
/// found. The test returns afterwards.
#[track_caller]
pub fn skip(need: Need, why: impl Display) {
    let place = Location::caller();
    let test = match std::thread::current().name() {
        Some(name) if name != "main" => name.to_owned(),
        _ => format!("{}:{}", place.file(), place.line()),
    };
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let skipped = Skipped { need, test: one_line(&test), why: one_line(&why.to_string()) };
    let said = format!("skipped: {}", skipped.why);
    eprintln!("{said}");
    let Some(path) = std::env::var_os(FILE) else { return };
    let file = OpenOptions::new().append(true).create(true).open(&path);
    // One write for a line: tests of several threads and processes append to the same file.
    let written = file.and_then(|mut file| file.write_all(skipped.line().as_bytes()));
    assert!(written.is_ok(), "{}: {written:?}", path.display());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        for (need, word) in WORDS {
            let skipped = Skipped { need, test: "a::test".into(), why: "no \"such\" thing".into() };
            assert!(skipped.line().starts_with(word));
            assert_eq!(Skipped::parse(skipped.line().trim_end()), Some(skipped));
        }
    }

    #[test]
    fn what_is_no_line_of_the_file_is_refused() {
        for line in ["", "tool", "tool\ta test", "spoon\ta test\twhy"] {
            assert_eq!(Skipped::parse(line), None, "{line:?}");
        }
    }
}
