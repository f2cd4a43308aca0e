//! Members of a target: threads of a process, descendants, members of control groups.
//!
//! Owns: walking `/proc` and groups. Answers are lists as of some moment; a process that forks
//! meanwhile may be missed, and the caller looks again. Must not: change anything.

use std::fs;
use std::str::FromStr;

use hourglass_sys::cgroup::Group;
use hourglass_sys::sched;

use crate::target::Target;

/// Process `root` and its descendants, `root` first; empty if it has ended.
pub(crate) fn tree(root: u32) -> Vec<u32> {
    let mut found = vec![root];
    let mut next = 0;
    if !sched::is_there(root) || fs::metadata(format!("/proc/{root}")).is_err() {
        return Vec::new();
    }
    while let Some(parent) = found.get(next).copied() {
        next += 1;
        for child in children_of(parent) {
            if !found.contains(&child) {
                found.push(child);
            }
        }
    }
    found
}

/// The children of all threads of process `pid`.
pub(crate) fn children_of(pid: u32) -> Vec<u32> {
    let mut children = Vec::new();
    for tid in threads_of(pid).into_iter().filter(|tid| sched::is_there(*tid)) {
        match fs::read_to_string(format!("/proc/{pid}/task/{tid}/children")) {
            Ok(text) => {
                children.extend(
                    text.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()),
                );
            }
            // A kernel without CONFIG_PROC_CHILDREN, or a thread that has ended.
            Err(_) if fs::metadata(format!("/proc/{pid}/task/{tid}")).is_ok() => {
                return children_by_parent(pid);
            }
            Err(_) => {}
        }
    }
    children
}

/// As [`children_of`], by asking every process for its parent.
fn children_by_parent(parent: u32) -> Vec<u32> {
    all_processes().into_iter().filter(|pid| parent_of(*pid) == Some(parent)).collect()
}

pub(crate) fn all_processes() -> Vec<u32> {
    names("/proc")
}

/// The threads of process `pid`; empty if it has ended.
pub(crate) fn threads_of(pid: u32) -> Vec<u32> {
    if sched::is_there(pid) { names(&format!("/proc/{pid}/task")) } else { Vec::new() }
}

/// A file that has a thread's name in it, which may be any bytes; `None` if it cannot be read.
pub(crate) fn text(path: &str) -> Option<String> {
    fs::read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// The threads of a target, with those of its descendants.
pub(crate) fn threads_in(target: &Target) -> Vec<u32> {
    match target {
        Target::Thread(tid) => vec![*tid],
        Target::Process(root) => tree(*root).into_iter().flat_map(threads_of).collect(),
    }
}

fn names(folder: &str) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The threads in a group and in groups in it.
pub(crate) fn within(group: &Group) -> Vec<u32> {
    let mut threads = group.threads().unwrap_or_default();
    for inner in group.groups().unwrap_or_default() {
        threads.extend(within(&inner));
    }
    threads
}

/// The processes in a group and in groups in it.
pub(crate) fn processes_within(group: &Group) -> Vec<u32> {
    let mut processes = group.processes().unwrap_or_default();
    for inner in group.groups().unwrap_or_default() {
        processes.extend(processes_within(&inner));
    }
    processes
}

pub(crate) fn process_of(tid: u32) -> Option<u32> {
    let text = sched::is_there(tid).then(|| text(&format!("/proc/{tid}/status")))??;
    text.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok())
}

pub(crate) fn parent_of(pid: u32) -> Option<u32> {
    field_of(pid, 1)
}

/// A number in `/proc/TID/stat`, by how many fields stand before it behind the name (`proc_pid_stat(5)`: 0 is the state).
pub(crate) fn field_of<T: FromStr>(tid: u32, before: usize) -> Option<T> {
    fields_behind_name(tid)?.split(' ').nth(before)?.parse().ok()
}

/// Whether `tid` is a thread of the kernel, which has no program.
pub(crate) fn is_kernel_thread(tid: u32) -> bool {
    /// `PF_KTHREAD` of `include/linux/sched.h`.
    const KERNEL: u64 = 0x0020_0000;
    /// Fields behind the name before the flags.
    const FLAGS: usize = 6;
    field_of(tid, FLAGS).is_some_and(|flags: u64| flags & KERNEL != 0)
}

/// The state of thread `tid` as `ps` shows it: R, S, D, T, Z...
pub(crate) fn state_of(tid: u32) -> Option<char> {
    fields_behind_name(tid)?.chars().next()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThreadPlacement {
    pub(super) state: char,
    /// On which it runs, or ran last.
    pub(super) cpu: u32,
    /// The real-time priority; 0 outside of these classes.
    pub(super) priority: u32,
    pub(super) policy: u32,
}

pub(super) fn placed(tid: u32) -> Option<ThreadPlacement> {
    /// Fields behind the name before the CPU; priority and policy follow it.
    const CPU: usize = 36;
    let fields = fields_behind_name(tid)?;
    let state = fields.chars().next()?;
    let mut numbers = fields.split(' ').skip(CPU).map(str::parse);
    let mut number = || numbers.next()?.ok();
    Some(ThreadPlacement { state, cpu: number()?, priority: number()?, policy: number()? })
}

/// The part of `/proc/TID/stat` behind the name, which may have blanks and brackets.
fn fields_behind_name(tid: u32) -> Option<String> {
    let text = sched::is_there(tid).then(|| text(&format!("/proc/{tid}/stat")))??;
    text.rsplit_once(") ").map(|(_, fields)| fields.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_found_both_ways() {
        // The shell waits for its own child.
        let mut child =
            std::process::Command::new("sh").args(["-c", "sleep 100; :"]).spawn().unwrap();
        let pid = child.id();
        crate::testing::soon("it has a child", || tree(pid).len() >= 2);
        let found = tree(pid);
        let by_parent = children_by_parent(pid);
        let own = tree(std::process::id());
        for pid in found.iter().rev() {
            hourglass_sys::pidfd::PidFd::open(*pid).unwrap().kill().unwrap();
        }
        child.wait().unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(by_parent, found[1..]);
        assert!(found.iter().all(|pid| own.contains(pid)));
        assert!(tree(pid).is_empty());
    }

    #[test]
    fn the_own_threads_are_found() {
        let own = hourglass_sys::thread::id();
        assert_eq!(process_of(own), Some(std::process::id()));
        assert!(threads_of(std::process::id()).contains(&own));
        assert_eq!(state_of(own), Some('R'));
        assert!(all_processes().contains(&std::process::id()));
        assert!(!is_kernel_thread(own));
        // Where the kernel's threads are seen, the second process is their parent.
        let kernels = fs::read_to_string("/proc/2/comm").is_ok_and(|name| name == "kthreadd\n");
        assert_eq!(is_kernel_thread(2), kernels);
    }
}
