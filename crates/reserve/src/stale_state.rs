//! Control groups that reservations that were killed leave beside their records, found by their names.
//!
//! Owns: finding them ([`groups`]), what undoes one ([`undo`]). Must not: touch one whose maker lives, or one that may
//! belong to a container, where processes have other numbers.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hourglass_sys::cgroup::{Group, Hierarchy, Version};

use crate::backend::{members, target_group};
use crate::guardian::UndoAction;

/// Groups inside groups, at most.
const DEEPEST: u32 = 32;

/// One that is empty may be new, and its maker about to fill it.
const NEW_FOR: Duration = Duration::from_secs(60);

#[derive(Clone, Debug)]
pub(crate) struct StaleGroup {
    pub(crate) group: Group,
    /// The process that made it, which is gone.
    pub(crate) maker: u32,
}

/// Those of all hierarchies whose maker is gone.
pub(crate) fn groups() -> Vec<StaleGroup> {
    let mut found = Vec::new();
    for hierarchy in Hierarchy::all().unwrap_or_default() {
        collect_under(&hierarchy.top(), DEEPEST, &mut found);
    }
    found.sort_by(|a, b| a.group.path().cmp(b.group.path()));
    // Controllers that are mounted together show the same groups.
    found.dedup_by(|a, b| a.group.path() == b.group.path());
    found
}

fn collect_under(group: &Group, deeper: u32, found: &mut Vec<StaleGroup>) {
    for inner in group.groups().unwrap_or_default() {
        if deeper > 0 {
            // Those inside first: they go with the outer ones.
            collect_under(&inner, deeper - 1, found);
        }
        let name = inner.path().file_name().and_then(|name| name.to_str());
        if let Some(maker) = name.and_then(target_group::holder)
            && !Path::new(&format!("/proc/{maker}")).exists()
            && is_ours_to_judge(&inner)
        {
            found.push(StaleGroup { group: inner, maker });
        }
    }
}

/// Whether numbers of processes mean here what they meant to its maker, as far as its members tell.
fn is_ours_to_judge(group: &Group) -> bool {
    let inside = members::processes_within(group);
    if inside.is_empty() {
        let changed = fs::metadata(group.path()).and_then(|folder| folder.modified());
        return changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > NEW_FOR));
    }
    // A number of zero is a process that has none here.
    inside.into_iter().all(|pid| pid > 0 && !is_in_container(pid))
}

/// Whether a process has a number of its own in another PID namespace.
fn is_in_container(pid: u32) -> bool {
    let status = members::text(&format!("/proc/{pid}/status")).unwrap_or_default();
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    numbers.is_none_or(|numbers| numbers.split_ascii_whitespace().count() > 1)
}

/// What undoes one, in this order: its members run again, at timesharing priority, and go to the group above; then it
/// is removed.
pub(crate) fn undo(leftover: &StaleGroup) -> Vec<UndoAction> {
    let group = &leftover.group;
    let file = |name: &str| group.path().join(name);
    let first_of = |names: [&str; 2]| -> PathBuf {
        let [usual, other] = names.map(file);
        if usual.exists() { usual } else { other }
    };
    let (freezer, _, thaw) = group.freezer();
    let mut steps = Vec::new();
    if file(freezer).exists() {
        steps.push(UndoAction::Write { path: file(freezer), text: thaw.to_owned() });
    }
    let list = first_of(["cgroup.threads", "tasks"]);
    steps.push(UndoAction::Members { list, cpus: None });
    if let Some(parent) = group.parent() {
        // Single threads in version 1, where a group may have only some of a process.
        let name = if group.version() == Version::V1 { "tasks" } else { "cgroup.procs" };
        steps.push(UndoAction::Move { from: file(name), to: parent.path().join(name) });
    }
    steps.push(UndoAction::RemoveGroup(group.path().to_path_buf()));
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use hourglass_skip::{Requirement, skip};

    /// A group of a maker that is gone is found with its members, and one whose maker lives is not.
    #[test]
    fn a_group_without_a_maker_is_found_and_undone() {
        use crate::guardian::clean;
        let Ok(hierarchy) = Hierarchy::unified().or_else(|_| Hierarchy::with("freezer")) else {
            return skip(Requirement::CONTROL_GROUP, "no control groups are mounted");
        };
        let home = hierarchy.group_of(0).unwrap();
        // Numbers of processes end far below.
        let gone = u32::MAX - std::process::id();
        let names = [gone, std::process::id()].map(|pid| format!("hourglass-{pid}-77"));
        let made = names.each_ref().map(|name| home.make(name));
        let [Ok(left), Ok(alive)] = made else {
            let text = format!("no control group can be made in {}", home.path().display());
            return skip(Requirement::CONTROL_GROUP, text);
        };
        let child = crate::testing::Program::sleeping();
        left.take_process(child.pid()).unwrap();
        left.freeze().unwrap();
        let found = groups();
        let ours = found.iter().find(|found| found.maker == gone);
        let steps = ours.map(undo).unwrap_or_default();
        let outcomes: Vec<_> = steps.iter().map(clean::undo).collect();
        let (exists, back) =
            (left.path().exists(), hierarchy.group_of(child.pid()).unwrap() == home);
        drop(child);
        alive.remove().unwrap();
        assert!(found.iter().all(|found| found.maker != std::process::id()));
        assert!(
            outcomes.iter().all(|one| matches!(one, clean::UndoOutcome::Undone)),
            "{outcomes:?}"
        );
        assert_eq!((outcomes.len(), exists, back), (4, false, true));
    }
}
