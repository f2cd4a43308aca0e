//! What co-runners share with the reserved work: a lock in there makes the work wait for its holder, which may be
//! stopped.
//!
//! Found are an address space in common, writable shared mappings of the same memory (where mutexes of
//! processes and futexes between processes live), and locks on the same file. Not found are pipes,
//! sockets and servers that both talk to, nor what is shared later.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;

use hourglass_sys::pidfd::same_memory;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SharedResource {
    pub(crate) pid: u32,
    pub(crate) what: ResourceKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ResourceKind {
    AddressSpace,
    /// Writable memory, by the name that `/proc/PID/maps` has for it.
    Memory(String),
    /// Both hold or wait for a lock on one file, by its device and inode in `/proc/locks`.
    FileLock(String),
}

impl fmt::Display for SharedResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} shares ", self.pid)?;
        match &self.what {
            ResourceKind::AddressSpace => f.write_str("its address space")?,
            ResourceKind::Memory(name) => write!(f, "writable memory ({name})")?,
            ResourceKind::FileLock(file) => write!(f, "a lock on the file {file} of /proc/locks")?,
        }
        f.write_str(
            " with the reserved work, which waits if it is stopped while it holds a lock there",
        )
    }
}

/// The resources that each of `others` shares with process `reserved`. A process whose maps may not be read shares
/// nothing that is known.
pub(crate) fn shared_with(reserved: u32, others: &BTreeSet<u32>) -> Vec<SharedResource> {
    let mapped = maps(reserved);
    let locked = locks(&fs::read_to_string("/proc/locks").unwrap_or_default());
    let none = BTreeSet::new();
    let own_locks = locked.get(&reserved).unwrap_or(&none);
    let mut found = Vec::new();
    for pid in others.iter().copied().filter(|pid| *pid != reserved) {
        let mut add = |what| found.push(SharedResource { pid, what });
        if same_memory(reserved, pid) == Some(true) {
            add(ResourceKind::AddressSpace);
            continue;
        }
        let theirs = maps(pid);
        let common = mapped.iter().filter(|(key, _)| theirs.contains_key(*key));
        common.for_each(|(_, name)| add(ResourceKind::Memory(name.clone())));
        let files = locked.get(&pid).unwrap_or(&none).intersection(own_locks);
        files.for_each(|file| add(ResourceKind::FileLock(file.clone())));
    }
    found
}

/// Device and inode of each writable shared mapping of a process, and its name.
fn maps(pid: u32) -> BTreeMap<(String, String), String> {
    shared_mappings(&fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default())
}

/// Lines of `/proc/PID/maps`: addresses, rights, offset, device, inode, name.
fn shared_mappings(text: &str) -> BTreeMap<(String, String), String> {
    let mapping = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let rights = fields.nth(1)?;
        let (device, inode) = (fields.nth(1)?, fields.next()?);
        let name = fields.collect::<Vec<_>>().join(" ");
        let memory = inode != "0" && !is_device(&name);
        (rights.starts_with("rw") && rights.ends_with('s') && memory)
            .then(|| ((device.to_owned(), inode.to_owned()), name))
    };
    text.lines().filter_map(mapping).collect()
}

/// Memory of a driver, in which no mutex lives. `/dev/zero` is what memory shared with children is called.
fn is_device(name: &str) -> bool {
    let memory = ["/dev/shm/", "/dev/zero", "/dev/mqueue/"];
    name.starts_with("/dev/") && !memory.iter().any(|place| name.starts_with(place))
}

/// Holders and waiters of locks, with the files: lines of `/proc/locks`, such as `1: -> POSIX ADVISORY WRITE 1234
/// 08:01:5678 0 EOF`.
fn locks(text: &str) -> BTreeMap<u32, BTreeSet<String>> {
    let mut found: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
    for line in text.lines() {
        let mut fields = line.split_ascii_whitespace().skip(1).skip_while(|word| *word == "->");
        let Some(pid) = fields.nth(3).and_then(|pid| pid.parse().ok()) else { continue };
        let Some(file) = fields.next() else { continue };
        found.entry(pid).or_default().insert(file.to_owned());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use hourglass_sys::heart_beat::HeartBeat;
    use hourglass_sys::sched::Attributes;

    /// Lines as proc(5) shows them.
    const MAPS: &str = "\
00400000-00452000 r-xp 00000000 08:02 173521      /usr/bin/dbus-daemon
7f0000000000-7f0000001000 rw-s 00000000 00:05 2049       /dev/zero (deleted)
7f0000002000-7f0000003000 rw-s 00000000 00:01 77         /dev/shm/queue one
7f0000004000-7f0000005000 r--s 00000000 08:02 9          /usr/share/cache
7f0000006000-7f0000007000 rw-s 00000000 00:06 12         /dev/dri/card0
7f0000008000-7f0000009000 rw-p 00000000 00:00 0
";

    #[test]
    fn writable_shared_memory_is_distinguished() {
        let names: Vec<_> = shared_mappings(MAPS).into_values().collect();
        assert_eq!(names, ["/dev/shm/queue one", "/dev/zero (deleted)"]);
    }

    #[test]
    fn locks_are_known_by_holder_and_by_who_waits() {
        let text = "1: POSIX  ADVISORY  WRITE 3568 fd:00:2531452 0 EOF\n\
                    1: -> POSIX  ADVISORY  WRITE 77 fd:00:2531452 0 EOF\n\
                    2: FLOCK  ADVISORY  WRITE 77 fd:00:8 0 EOF\n";
        let locks = locks(text);
        assert_eq!(locks[&3568].len(), 1);
        assert_eq!(locks[&77].iter().collect::<Vec<_>>(), ["fd:00:2531452", "fd:00:8"]);
    }

    /// A child that writes into memory which it shares with this process.
    #[test]
    fn shared_memory_of_a_child_is_found() {
        let cpu = hourglass_sys::thread::affinity().unwrap()[0];
        let child = HeartBeat::start(cpu, Attributes::Other(0), 20_000_000_000).unwrap();
        let others = [child.pid(), std::process::id()].into_iter().collect();
        let shared = shared_with(std::process::id(), &others);
        assert!(!shared.is_empty());
        assert!(shared.iter().all(|one| one.pid == child.pid()));
        let text = shared.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        assert!(text.contains("writable memory (/memfd:hourglass-heart-beat (deleted))"), "{text}");
    }
}
