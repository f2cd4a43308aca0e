//! A control group of its own for a target, so that threads it makes later belong to it too.
//!
//! Owns: making the group, moving the target in, and what must be kept for that. To suspend, the
//! unified hierarchy comes first (its groups count processor time and freeze), then the freezer of
//! version 1. A group of version 1's `cpu` would have no real-time time to give, so that only a quota
//! makes one there. Must not: change a policy.

use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU32, Ordering};

use hourglass_sys::cgroup::{Group, Hierarchy, Version};
use hourglass_sys::strange_file;

use crate::backend::members;
use crate::guardian::{Guardian, UndoAction, UndoGuard};
use crate::ownership::{NotOwned, has_ended};
use crate::target::Target;

/// A process that forks while it is moved has children outside; so often they are looked for.
const PASSES: u32 = 16;

/// Names of groups begin with this; the process and a number follow.
const PREFIX: &str = "hourglass-";

static MADE: AtomicU32 = AtomicU32::new(0);

/// The group and what undoes it. Dropping it does.
#[derive(Debug)]
pub(crate) struct TargetGroup {
    pub(crate) group: Group,
    /// Its members are threads, one by one.
    pub(super) by_thread: bool,
    /// The open file that freezes it; `None` without a freezer.
    switch: Option<File>,
    /// Thaws, sends the members home, removes the group: in this order.
    thaw: UndoGuard,
    home: UndoGuard,
    remove: UndoGuard,
}

/// Makes a group for the target. `None` if none can be made: then the target is found in `/proc`.
/// `freezes` tells whether it will have to be suspended: a single thread needs a group for that alone.
pub(super) fn gather(guardian: &Guardian, target: &Target, freezes: bool) -> Option<TargetGroup> {
    match target {
        Target::Thread(_) if !freezes => None,
        Target::Thread(_) => in_hierarchy(guardian, target, &Hierarchy::with("freezer").ok()?).ok(),
        Target::Process(_) => {
            let unified = Hierarchy::unified();
            let made = unified.and_then(|unified| in_hierarchy(guardian, target, &unified));
            let other = |_| {
                let freezer = Hierarchy::with("freezer")?;
                in_hierarchy(guardian, target, &freezer)
            };
            made.or_else(other).ok()
        }
    }
}

/// Whether [`gather`] can make a group to suspend a single thread by. Changes nothing.
///
/// # Errors
/// There is no freezer of version 1, or no group may be made in that of the thread, or it may not come back there.
pub(super) fn may_gather_thread(tid: u32) -> io::Result<()> {
    let freezer = Hierarchy::with("freezer")?;
    if freezer.version() == Version::V2 {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let home = freezer.group_of(tid)?;
    home.open("tasks")?;
    strange_file::may_write_in(home.path())
}

pub(crate) fn name() -> String {
    format!("{PREFIX}{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed))
}

/// The process that made a group of this name; `None` for groups of others.
pub(crate) fn holder(name: &str) -> Option<u32> {
    let (pid, number) = name.strip_prefix(PREFIX)?.split_once('-')?;
    number.parse::<u32>().ok().and(pid.parse().ok())
}

fn in_hierarchy(
    guardian: &Guardian,
    target: &Target,
    hierarchy: &Hierarchy,
) -> io::Result<TargetGroup> {
    let by_thread = matches!(target, Target::Thread(_));
    if by_thread && hierarchy.version() == Version::V2 {
        // Only inside a threaded domain, which others would have to be part of.
        return Err(io::ErrorKind::Unsupported.into());
    }
    let home = hierarchy.group_of(target.id())?;
    let gathered = make(guardian, &home, &home, by_thread)?;
    if gathered.switch.is_none() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    gathered.take(target)?;
    Ok(gathered)
}

pub(crate) fn make(
    guardian: &Guardian,
    parent: &Group,
    home: &Group,
    by_thread: bool,
) -> io::Result<TargetGroup> {
    let name = name();
    let file = if by_thread { "tasks" } else { "cgroup.procs" };
    let folder = parent.path().join(&name);
    let remove = guardian.keep(&UndoAction::RemoveGroup(folder.clone()))?;
    let group = parent.make(&name)?;
    // Where there is no such file, there is nothing to thaw either.
    let (freezer, _, thaw) = group.freezer();
    let thaw = UndoAction::Write { path: folder.join(freezer), text: thaw.to_owned() };
    let home = UndoAction::Move { from: folder.join(file), to: home.path().join(file) };
    let (thaw, home) = (guardian.keep(&thaw)?, guardian.keep(&home)?);
    let switch = group.open(freezer).ok();
    Ok(TargetGroup { group, by_thread, switch, thaw, home, remove })
}

impl TargetGroup {
    /// Moves the target in, with all who belong to it, but for processes of other users.
    pub(super) fn take(&self, target: &Target) -> io::Result<()> {
        let root = match target {
            Target::Thread(tid) => return self.group.take_thread(*tid),
            Target::Process(root) => *root,
        };
        for _ in 0..PASSES {
            let inside = members::processes_within(&self.group);
            let mut outside = members::tree(root);
            outside.retain(|pid| !inside.contains(pid) && NotOwned::find(*pid).is_none());
            if outside.is_empty() {
                return Ok(());
            }
            for pid in outside {
                unless_gone(self.group.take_process(pid))?;
            }
        }
        Ok(())
    }

    /// Thaws, sends the members home and removes the group, with those that members have made in it.
    ///
    /// # Errors
    /// The first that the kernel answers; all has been tried.
    pub(super) fn dissolve(self) -> io::Result<()> {
        let thawed = self.thaw.undo();
        let home = self.home.undo();
        let removed = self.remove.undo();
        thawed.and(home).and(removed)
    }

    /// Orders all members to stand.
    ///
    /// # Errors
    /// What the kernel answers; `Unsupported` without a freezer.
    pub(super) fn freeze(&self) -> io::Result<()> {
        self.switch(self.group.freezer().1)
    }

    pub(super) fn thaw(&self) -> io::Result<()> {
        self.switch(self.group.freezer().2)
    }

    fn switch(&self, value: &str) -> io::Result<()> {
        let mut switch = self.switch.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        switch.write_all(value.as_bytes())
    }
}

/// A member that has ended needs nothing.
pub(crate) fn unless_gone(answer: io::Result<()>) -> io::Result<()> {
    match answer {
        Err(error) if has_ended(&error) || error.kind() == io::ErrorKind::NotFound => Ok(()),
        answer => answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Program, soon};
    use hourglass_skip::{Requirement, skip};

    /// In each hierarchy that can freeze: a program that forks is taken whole, stands, goes on, and is home
    /// again. Where none can be made, the test says so.
    #[test]
    fn a_program_is_taken_whole_and_brought_home() {
        let hierarchies = [Hierarchy::unified(), Hierarchy::with("freezer")];
        for hierarchy in hierarchies.into_iter().flatten() {
            let child = Program::shell("while :; do :; done & while :; do :; done");
            let target = Target::Process(child.pid());
            soon("it has forked", || members::tree(child.pid()).len() >= 2);
            let everybody = members::tree(child.pid());
            let home = hierarchy.group_of(child.pid()).unwrap();
            let guardian = Guardian::start().unwrap();
            let outcome = in_hierarchy(&guardian, &target, &hierarchy).map(|gathered| {
                let mut inside = members::processes_within(&gathered.group);
                inside.sort_unstable();
                let frozen = gathered.freeze();
                if frozen.is_ok() {
                    soon("it stands", || gathered.group.frozen().unwrap());
                }
                let path = gathered.group.path().to_owned();
                (inside, frozen, gathered.thaw(), gathered.dissolve(), path)
            });
            let after: Vec<_> =
                everybody.iter().map(|pid| hierarchy.group_of(*pid).unwrap()).collect();
            drop(child);
            assert!(after.iter().all(|group| *group == home), "{after:?}, not {home:?}");
            match outcome {
                Ok((inside, frozen, thawed, dissolved, path)) => {
                    let mut expected = everybody;
                    expected.sort_unstable();
                    assert_eq!(inside, expected);
                    frozen.and(thawed).and(dissolved).unwrap();
                    assert!(!path.exists());
                }
                Err(error) => {
                    let mount = hierarchy.mount().display();
                    skip(Requirement::CONTROL_GROUP, format_args!("{mount}: {error}"));
                }
            }
        }
    }
}
