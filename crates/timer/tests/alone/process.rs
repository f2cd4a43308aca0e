//! What the kernel says of this process, and what can be taken away from it.

use std::process::Command;

use hourglass_skip::{Requirement, skip};

pub(crate) fn files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

pub(crate) fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// POSIX timers; `None` where the kernel does not list them.
pub(crate) fn timers() -> Option<usize> {
    let list = std::fs::read_to_string("/proc/self/timers").ok()?;
    Some(list.lines().filter(|line| line.starts_with("ID:")).count())
}

/// The signals that the calling thread blocks.
pub(crate) fn blocked() -> String {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    status.lines().find(|line| line.starts_with("SigBlk:")).unwrap().to_owned()
}

/// From here on no signal can be queued, for good; `false`, with a counted skip, where that cannot be set up.
pub(crate) fn take_signals_away() -> bool {
    let me = std::process::id().to_string();
    let limited = Command::new("prlimit").args(["--pid", &me, "--sigpending=0:"]).status();
    let is_done = limited.is_ok_and(|status| status.success());
    if !is_done {
        skip(Requirement::program("prlimit"), "no prlimit here to take the signals away");
    }
    is_done
}
