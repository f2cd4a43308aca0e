//! Who is in a set of co-runners now: processes come and go.
//!
//! Owns: reading that from `/proc` and from control groups. Must not: stop or move anybody.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use hourglass_sys::cgroup::Group;

/// Of whom the set consists.
#[derive(Clone, Debug)]
pub(in crate::smt) enum Members {
    /// Processes with their descendants. One whose parent ended before it was ever looked at is not
    /// found; a group finds all.
    Tree(Vec<u32>),
    /// Whoever is in a group, or in one below it.
    Group(Group),
}

impl Members {
    /// The processes now, none of which is in `but`.
    ///
    /// # Errors
    /// The group cannot be read, or is gone.
    pub(in crate::smt) fn processes(&self, but: &[u32]) -> io::Result<BTreeSet<u32>> {
        let mut found = BTreeSet::new();
        match self {
            Members::Tree(roots) => tree(roots, but, &mut found),
            Members::Group(group) => below(group, &mut found)?,
        }
        but.iter().for_each(|pid| {
            found.remove(pid);
        });
        Ok(found)
    }
}

/// Roots that live, and all that descend from them. Nobody is looked for below a spared process.
fn tree(roots: &[u32], but: &[u32], found: &mut BTreeSet<u32>) {
    let mut open: Vec<u32> = roots.iter().copied().filter(|pid| lives(*pid)).collect();
    while let Some(pid) = open.pop() {
        if !but.contains(&pid) && found.insert(pid) {
            open.extend(children(pid));
        }
    }
}

fn lives(pid: u32) -> bool {
    fs::exists(format!("/proc/{pid}/stat")).unwrap_or(false)
}

/// The children of all threads of a process.
fn children(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for tid in threads(pid) {
        match fs::read_to_string(format!("/proc/{pid}/task/{tid}/children")) {
            Ok(list) => {
                found.extend(list.split_ascii_whitespace().filter_map(|n| n.parse::<u32>().ok()))
            }
            // A kernel without CONFIG_PROC_CHILDREN, or a thread that has just ended.
            Err(_) if tid == pid => return children_by_parent(pid),
            Err(_) => {}
        }
    }
    found
}

fn children_by_parent(parent: u32) -> Vec<u32> {
    numbers_in("/proc").into_iter().filter(|pid| parent_of(*pid) == Some(parent)).collect()
}

/// The parent of a process, by `/proc/PID/stat`; `None` if the process is gone.
pub(in crate::smt) fn parent_of(pid: u32) -> Option<u32> {
    field(pid, 1)?.parse().ok()
}

/// A field of `/proc/PID/stat` behind the name: 0 is the state.
pub(in crate::smt) fn field(pid: u32, place: usize) -> Option<String> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = line.rsplit_once(") ")?;
    fields.split(' ').nth(place).map(str::to_owned)
}

/// The process of a thread, by `/proc/TID/status`; `None` if it is gone.
pub(in crate::smt) fn process_of(tid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}

/// The threads of a process; none if it is gone.
pub(in crate::smt) fn threads(pid: u32) -> Vec<u32> {
    numbers_in(&format!("/proc/{pid}/task"))
}

/// The names in a folder that are numbers.
pub(in crate::smt) fn numbers_in(folder: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn below(group: &Group, found: &mut BTreeSet<u32>) -> io::Result<()> {
    found.extend(group.processes()?);
    for inner in group.groups()? {
        match below(&inner, found) {
            // Removed since it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            done => done?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn children_of_children_are_found() {
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 100 & cat; kill $!; wait"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let set = Members::Tree(vec![shell.id()]);
        let mut found = BTreeSet::new();
        for _ in 0..5_000 {
            found = set.processes(&[]).unwrap();
            if found.len() == 3 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        let twice = children_by_parent(shell.id());
        let spared = set.processes(&[shell.id()]).unwrap();
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found.contains(&shell.id()));
        assert!(twice.len() == 2 && twice.iter().all(|pid| found.contains(pid)), "{twice:?}");
        assert!(spared.is_empty());
        assert!(set.processes(&[]).unwrap().is_empty());
    }

    #[test]
    fn own_threads_and_parent() {
        let own = std::process::id();
        assert!(threads(own).contains(&own));
        assert!(parent_of(own).is_some_and(lives));
        assert_eq!(parent_of(u32::MAX), None);
    }
}
