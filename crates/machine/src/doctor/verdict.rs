//! How a check ends, also where a file tells nothing.

use hourglass_documents::doctor::Status;
use hourglass_documents::tuning::Access;

use super::input::DoctorInput;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CheckVerdict {
    pub(super) status: Status,
    pub(super) found: String,
    /// One line; empty where nothing is to be done.
    pub(super) remedy: String,
    /// The delay that this machine's own settings give, ns, where they give one.
    pub(super) delay_ns: Option<u64>,
}

impl CheckVerdict {
    pub(super) fn ok(found: impl Into<String>) -> CheckVerdict {
        CheckVerdict::new(Status::Ok, found, "")
    }

    /// It costs latency or jitter.
    pub(super) fn warn(found: impl Into<String>, remedy: impl Into<String>) -> CheckVerdict {
        CheckVerdict::new(Status::Warn, found, remedy)
    }

    /// Real-time work is refused, or will miss deadlines.
    pub(super) fn fail(found: impl Into<String>, remedy: impl Into<String>) -> CheckVerdict {
        CheckVerdict::new(Status::Fail, found, remedy)
    }

    /// It was not found out; `remedy` lets it be.
    pub(super) fn unknown(found: impl Into<String>, remedy: impl Into<String>) -> CheckVerdict {
        CheckVerdict::new(Status::Unknown, found, remedy)
    }

    pub(super) fn delaying(self, ns: u64) -> CheckVerdict {
        CheckVerdict { delay_ns: Some(ns), ..self }
    }

    fn new(status: Status, found: impl Into<String>, remedy: impl Into<String>) -> CheckVerdict {
        CheckVerdict { status, found: found.into(), remedy: remedy.into(), delay_ns: None }
    }
}

/// The verdict where `path` does not tell the fact: what keeps it from being read, and what lets
/// it be.
pub(super) fn unread(e: &DoctorInput, path: &str) -> CheckVerdict {
    let (why, remedy) = match e.access(path) {
        Access::Denied if e.is_root() && e.is_contained() => {
            ("root may not read it here", "start the container with --privileged".to_owned())
        }
        Access::Denied if e.is_root() && path.starts_with("/sys/kernel/debug") => (
            "root may not read it here",
            "cat /sys/kernel/security/lockdown # where it is on, debugfs is shut: boot with \
             lockdown=none, without Secure Boot"
                .to_owned(),
        ),
        Access::Denied if e.is_root() => (
            "root may not read it here",
            "sudo dmesg | grep -i -e audit -e denied names the rule of a security module"
                .to_owned(),
        ),
        Access::Denied => ("permission denied", "sudo hourglass doctor".to_owned()),
        Access::Missing => {
            ("this kernel does not have it", "another kernel: this one leaves it out".to_owned())
        }
        Access::Unmounted => ("its file system is not mounted here", mount(e, path)),
        Access::Readable => ("it says nothing that is understood", format!("cat {path}")),
    };
    CheckVerdict::unknown(format!("{path}: {why}"), remedy)
}

/// The same, but a kernel that does not have the file is as it should be, for the reason `absent`.
pub(super) fn unread_unless_absent(e: &DoctorInput, path: &str, absent: &str) -> CheckVerdict {
    match e.access(path) {
        Access::Missing => CheckVerdict::ok(absent),
        _ => unread(e, path),
    }
}

/// The line that makes the file system of `path` visible.
fn mount(e: &DoctorInput, path: &str) -> String {
    let kinds = [
        ("/sys/kernel/debug", "debugfs"),
        ("/sys/kernel/tracing", "tracefs"),
        ("/sys/fs/cgroup", "cgroup2"),
        ("/sys", "sysfs"),
        ("/proc", "proc"),
        ("/dev", "devtmpfs"),
    ];
    let found = kinds.into_iter().find(|(point, _)| path.starts_with(point));
    let (point, kind) = found.unwrap_or(("/sys", "sysfs"));
    if e.is_contained() {
        return format!("start the container with -v {point}:{point}:ro, as root");
    }
    match e.is_root() {
        true => format!("mount -t {kind} none {point}"),
        false => format!("sudo mount -t {kind} none {point} && sudo hourglass doctor"),
    }
}
