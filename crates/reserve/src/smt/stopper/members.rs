//! The present members of a set of co-runners: processes come and go.
//!
//! Owns: the set. Must not: read `/proc` itself (`backend::members` does); stop or move a process.

use std::collections::BTreeSet;
use std::io;

use hourglass_sys::cgroup::Group;

use crate::backend::members;

#[derive(Clone, Debug)]
pub(in crate::smt) enum CoRunnerMembers {
    /// Processes with their descendants. One whose parent ended before it was ever looked at is not
    /// found; a group finds all.
    Tree(Vec<u32>),
    Group(Group),
}

impl CoRunnerMembers {
    /// The processes now, none of which is in `but`.
    ///
    /// # Errors
    /// The group cannot be read, or is gone.
    pub(in crate::smt) fn processes(&self, but: &[u32]) -> io::Result<BTreeSet<u32>> {
        let mut found = BTreeSet::new();
        match self {
            CoRunnerMembers::Tree(roots) => tree(roots, but, &mut found),
            CoRunnerMembers::Group(group) => collect_under(group, &mut found)?,
        }
        but.iter().for_each(|pid| {
            found.remove(pid);
        });
        Ok(found)
    }
}

/// Live roots and all their descendants. Descendants of an exempt process are not looked for.
fn tree(roots: &[u32], but: &[u32], found: &mut BTreeSet<u32>) {
    let mut open: Vec<u32> =
        roots.iter().copied().filter(|pid| members::state_of(*pid).is_some()).collect();
    while let Some(pid) = open.pop() {
        if !but.contains(&pid) && found.insert(pid) {
            open.extend(members::children_of(pid));
        }
    }
}

fn collect_under(group: &Group, found: &mut BTreeSet<u32>) -> io::Result<()> {
    found.extend(group.processes()?);
    for inner in group.groups()? {
        match collect_under(&inner, found) {
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
        let set = CoRunnerMembers::Tree(vec![shell.id()]);
        crate::testing::soon("it has forked", || set.processes(&[]).unwrap().len() == 3);
        let found = set.processes(&[]).unwrap();
        let spared = set.processes(&[shell.id()]).unwrap();
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert!(found.contains(&shell.id()));
        assert!(spared.is_empty());
        assert!(set.processes(&[]).unwrap().is_empty());
    }
}
