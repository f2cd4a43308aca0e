//! Tests that this machine cannot run: each is counted, and named with its condition.
//!
//! The test harness hides what a passed test prints, so a test that returns early looks like one that
//! ran. [`skip`] also appends a line to the file named by [`FILE`]; `cargo xtask test` sets that
//! variable, prints the lines at the end, and checks each condition itself: a test that was skipped for
//! what the machine has is run once more, alone, and fails the run if it is skipped again.
//!
//! Owns: the conditions for which a test may be skipped, each with a shell command that succeeds where it is met.
//! Must not: decide for a test (the test does); ask Hourglass, whose answer is what is tested; depend on anything.

#![forbid(unsafe_code)]

use std::borrow::Cow;
use std::env;
use std::fmt::{self, Display};
use std::fs::OpenOptions;
use std::io::Write;
use std::panic::Location;
use std::process::{Command, Stdio};

/// The environment variable with the path of the file to which skipped tests are appended.
pub const FILE: &str = "HOURGLASS_SKIPPED";

/// What a test needs of the machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Requirement {
    /// In a word or two, as in "needs tracefs".
    pub name: Cow<'static, str>,
    /// A line for a POSIX shell that ends with 0 where the machine has it, and with 126 or more where that cannot be found
    /// out. Empty for [`Requirement::CHANCE`].
    pub check: Cow<'static, str>,
}

const fn need(name: &'static str, check: &'static str) -> Requirement {
    Requirement { name: Cow::Borrowed(name), check: Cow::Borrowed(check) }
}

impl Requirement {
    /// The kernel's trace, mounted, and the right to use it.
    pub const TRACEFS: Requirement = need("tracefs", "test -w /sys/kernel/tracing/instances");
    pub const REAL_TIME: Requirement = need("real-time", "chrt --fifo 1 true");
    /// The kernel's deadline class, with room for the 40 % that the tests ask for.
    pub const DEADLINE_CLASS: Requirement = need(
        "deadline-class",
        "chrt --deadline --sched-runtime 40000000 --sched-deadline 100000000 --sched-period 100000000 0 true",
    );
    /// A control group that can be made.
    pub const CONTROL_GROUP: Requirement = need(
        "control-group",
        "own=hourglass-skip-$$; for place in /sys/fs/cgroup/cpu /sys/fs/cgroup/unified /sys/fs/cgroup; do \
         test -e $place/cgroup.procs && mkdir $place/$own && rmdir $place/$own && exit 0; done; exit 1",
    );
    /// Control groups of version 2, and the right to make one.
    pub const CONTROL_GROUP_2: Requirement = need(
        "control-group-2",
        "place=$(grep -m 1 -w cgroup2 /proc/mounts | cut -d ' ' -f 2) && test -n \"$place\" && \
         mkdir $place/hourglass-skip-$$ && rmdir $place/hourglass-skip-$$",
    );
    /// A second CPU that this process may use.
    pub const SECOND_CPU: Requirement = need("second-cpu", "test $(nproc) -gt 1");
    /// Hardware threads that share a core.
    pub const SIBLINGS: Requirement = need(
        "siblings",
        "grep -q '[-,]' /sys/devices/system/cpu/cpu*/topology/thread_siblings_list",
    );
    pub const COUNTERS: Requirement = need(
        "counters",
        "test -e /sys/bus/event_source/devices/cpu && perf stat -e instructions:u true",
    );
    /// What the kernel counts for a thread (`perf_event_open`), permitted.
    pub const PERF_EVENTS: Requirement = need(
        "perf-events",
        "grep -q 'Seccomp:.0' /proc/self/status && \
         { test $(id -u) = 0 || test $(cat /proc/sys/kernel/perf_event_paranoid) -le 2; }",
    );
    /// Programs of the set-user-ID bit and of file capabilities that become what they say.
    pub const FILE_CAPABILITIES: Requirement = need(
        "file-capabilities",
        "grep -q 'NoNewPrivs:.0' /proc/self/status && file=$(mktemp) && { setcap cap_sys_nice+ep $file; code=$?; \
         rm -f $file; exit $code; }",
    );
    /// A user that may become another one.
    pub const OTHER_USERS: Requirement =
        need("other-users", "setpriv --reuid=65534 --regid=65534 --clear-groups true");
    /// The right to set the machine's clock, which no daemon keeps.
    pub const SET_CLOCK: Requirement = need(
        "set-clock",
        "setpriv --dump | grep -q 'Capability bounding set:.*sys_time' && test $(id -u) = 0 && \
         ! cat /proc/[0-9]*/comm | grep -qxE 'chronyd|ntpd|systemd-timesyn|ptp4l|phc2sys'",
    );
    /// What the machine decides by chance: its load, or an oddity that no command shows. Only the tests that `cargo xtask
    /// test` has on a list, with the reason, may be skipped for it.
    pub const CHANCE: Requirement = need("chance", "");

    /// A program on the search path.
    #[must_use]
    pub fn program(name: &str) -> Requirement {
        Requirement::runs(name, format!("command -v {name}"))
    }

    /// A file or device that can be read.
    #[must_use]
    pub fn file(path: &str) -> Requirement {
        Requirement::runs(path, format!("head -c 0 {path}"))
    }

    /// A processor that has what `/proc/cpuinfo` calls so.
    #[must_use]
    pub fn processor(flag: &str) -> Requirement {
        Requirement::runs(flag, format!("grep -qw {flag} /proc/cpuinfo"))
    }

    /// An option that the kernel is built with.
    #[must_use]
    pub fn kernel(option: &str) -> Requirement {
        let read = format!(
            "zgrep -q ^{option}=y /proc/config.gz || grep -q ^{option}=y /boot/config-$(uname -r)"
        );
        Requirement::runs(
            option,
            format!(
                "{{ test -e /proc/config.gz || test -e /boot/config-$(uname -r) || exit 127; }}; {read}"
            ),
        )
    }

    /// Whatever makes a command line succeed.
    #[must_use]
    pub fn runs(name: &str, check: impl Into<String>) -> Requirement {
        Requirement { name: name.to_owned().into(), check: check.into().into() }
    }

    /// Whether this machine has it; `None` where that cannot be found out.
    #[must_use]
    pub fn is_met(&self) -> Option<bool> {
        if self.check.is_empty() {
            return None;
        }
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(&*self.check);
        let path = env::var("PATH").unwrap_or_default();
        shell.env("PATH", format!("{path}:/usr/sbin:/sbin"));
        let status =
            shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        match status.ok()?.code()? {
            0 => Some(true),
            1..126 => Some(false),
            _ => None,
        }
    }
}

impl Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}

/// One skipped test: a line of the file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Skipped {
    /// The test's name, or the place in the sources where the harness gave its thread none.
    pub test: String,
    pub need: Requirement,
    /// What was found, in one line.
    pub why: String,
    /// The test program and the folder in which it ran; empty where that is not known.
    pub program: String,
    /// See `program`.
    pub folder: String,
}

impl Skipped {
    /// Reads a line of the file; `None` if the line is malformed.
    #[must_use]
    pub fn parse(line: &str) -> Option<Skipped> {
        let fields: Vec<String> = line.split('\t').map(str::to_owned).collect();
        let [test, name, check, why, program, folder] = <[String; 6]>::try_from(fields).ok()?;
        let whole = !test.is_empty() && !name.is_empty() && !why.is_empty();
        let need = Requirement { name: name.into(), check: check.into() };
        whole.then_some(Skipped { test, need, why, program, folder })
    }

    /// The line, with its end.
    #[must_use]
    pub fn line(&self) -> String {
        let Skipped { test, need: Requirement { name, check }, why, program, folder } = self;
        format!("{test}\t{name}\t{check}\t{why}\t{program}\t{folder}\n")
    }
}

/// Notes that the test that calls this is skipped, because the machine lacks `need`; `why` says what was
/// found. The test returns afterwards.
#[track_caller]
pub fn skip(need: Requirement, why: impl Display) {
    let place = Location::caller();
    let test = match std::thread::current().name() {
        Some(name) if name != "main" => name.to_owned(),
        _ => format!("{}:{}", place.file(), place.line()),
    };
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let why = match one_line(&why.to_string()) {
        nothing if nothing.is_empty() => format!("no {need}"),
        why => why,
    };
    let said = format!("skipped: {why}");
    eprintln!("{said}");
    let program = env::current_exe().map(|path| path.display().to_string()).unwrap_or_default();
    let folder = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let skipped = Skipped { test: one_line(&test), need, why, program, folder };
    let Some(path) = env::var_os(FILE) else { return };
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
        for need in [
            Requirement::TRACEFS,
            Requirement::CHANCE,
            Requirement::program("clang"),
            Requirement::kernel("CONFIG_X"),
        ] {
            let skipped = Skipped {
                test: "a::test".into(),
                need,
                why: "no \"such\" thing".into(),
                program: "/a/b-1".into(),
                folder: String::new(),
            };
            assert_eq!(Skipped::parse(skipped.line().trim_end_matches('\n')), Some(skipped));
        }
    }

    #[test]
    fn what_is_no_line_of_the_file_is_refused() {
        for line in ["", "tool", "a\tb\tc\td\te", "\tb\tc\td\te\tf", "a\tb\tc\t\te\tf"] {
            assert_eq!(Skipped::parse(line), None, "{line:?}");
        }
    }

    #[test]
    fn a_condition_is_met_or_not_or_cannot_be_found_out() {
        assert_eq!(Requirement::program("sh").is_met(), Some(true));
        assert_eq!(Requirement::file("/no/such/file").is_met(), Some(false));
        assert_eq!(Requirement::runs("odd", "no-such-program-anywhere").is_met(), None);
        assert_eq!(Requirement::CHANCE.is_met(), None);
    }
}
