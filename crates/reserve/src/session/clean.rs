//! Undoing what reservations left behind when they were killed together with their guardians.
//!
//! Owns: whose records are read, with whose rights, and how the result is reported. Must not: decide what is undone
//! (`reserve` and `sys` do).

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hourglass_documents::reserve_clean::{
    CleanDocument, CleanFound, CleanStep, RESERVE_CLEAN_SCHEMA,
};
use hourglass_sys::credentials::primary_group;
use hourglass_sys::privilege;
use hourglass_sys::runtime_folder::user as own_user;

use crate::backend::user::{self, StaleClaim};
use crate::guardian::UndoAction;
use crate::guardian::clean::{self, RecordState, StaleRecord, UndoOutcome, UndoStep};
use crate::stale_state;

use super::priority_boost::PriorityBoost;

/// Time limit of a child that undoes what one user left, s.
const EACH_USER_S: u32 = 60;

/// Undoes what is left of reservations of the calling user whose process and guardians are gone; as root, of all users.
/// What a user has recorded is undone with the rights of that user alone.
///
/// To be called while the process has no other threads.
///
/// # Errors
/// The user's own folder of records cannot be read.
pub fn clean() -> io::Result<CleanDocument> {
    let root = own_user() == 0;
    // What was left may spin at a real-time priority on every CPU, and a timesharing process get 5 % of one.
    let urgent = PriorityBoost::above_all();
    if !root {
        // A command that has capabilities must not lend them to what a file says.
        privilege::give_up_capabilities()?;
    }
    let mut found = Vec::new();
    for folder in clean::folders() {
        found.extend(in_folder(&folder)?);
    }
    let own = own_user();
    found.extend(clean::resume_guardians().into_iter().map(|guardian| record(guardian, own)));
    // What others recorded is theirs, and read in no hurry.
    drop(urgent);
    if root {
        for (folder, owner) in folders_of_others() {
            found.extend(of_other(&folder, owner));
        }
    }
    // Where a guardian still lives, it is undoing that itself.
    let alive: Vec<u32> =
        found.iter().filter(|found| found.state == "alive").map(|found| found.maker).collect();
    let groups = stale_state::groups().into_iter().filter(|group| !alive.contains(&group.maker));
    found.extend(groups.filter_map(|group| by_name(&group, root)));
    found.extend(user::remove_claims().into_iter().filter_map(|stale| claim(stale, own)));
    let left = found.iter().filter(|found| match &*found.state {
        "left" => true,
        // Entries that another user makes there are not for this user to repair.
        "unreadable" => found.user == own,
        _ => false,
    });
    let left = left.count();
    Ok(CleanDocument { schema: RESERVE_CLEAN_SCHEMA.to_owned(), found, left: left as u64 })
}

fn in_folder(folder: &Path) -> io::Result<Vec<CleanFound>> {
    let owner = own_user();
    Ok(clean::clean(folder)?.into_iter().map(|leftover| record(leftover, owner)).collect())
}

/// Where other users than root have their records, and who they are.
fn folders_of_others() -> BTreeSet<(PathBuf, u32)> {
    let inside = |folder: &str| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let of_sessions = inside("/run/user").into_iter().map(|folder| folder.join("hourglass"));
    let named = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("hourglass-"))
    };
    let of_tmp = inside("/tmp").into_iter().filter(named);
    let ours = |outer: PathBuf| {
        // Links are not followed; what stands inside is only ever looked at as that user.
        let found = fs::symlink_metadata(&outer).ok().filter(fs::Metadata::is_dir)?;
        let owner = found.uid();
        (owner != 0).then(|| (outer.join(clean::FOLDER), owner))
    };
    of_sessions.chain(of_tmp).filter_map(ours).collect()
}

/// The group whose rights a user has, by the user database: a folder can be given to a group that its owner is not in.
fn group_of(owner: u32) -> u32 {
    /// `nogroup`, which has no rights.
    const NOBODY: u32 = 65_534;
    primary_group(owner).unwrap_or(NOBODY)
}

/// Undone in a process of that user: a record that was made to do harm does it to its owner alone.
fn of_other(folder: &Path, owner: u32) -> Vec<CleanFound> {
    let work = || {
        let found = in_folder(folder).unwrap_or_default();
        let report = CleanDocument { schema: RESERVE_CLEAN_SCHEMA.to_owned(), found, left: 0 };
        toml::to_string(&report).unwrap_or_default().into_bytes()
    };
    let said = privilege::as_user(owner, group_of(owner), EACH_USER_S, work).and_then(|said| {
        let text = String::from_utf8(said).map_err(io::Error::other)?;
        toml::from_str::<CleanDocument>(&text).map_err(io::Error::other)
    });
    match said {
        Ok(said) => said.found,
        Err(error) => {
            let what = format!("undoing it as user {owner}");
            let step =
                CleanStep { what, outcome: "refused".into(), cause: Some(error.to_string()) };
            let path = folder.display().to_string();
            let (state, name) = ("left".to_owned(), String::new());
            vec![CleanFound { path, user: owner, maker: 0, name, state, steps: vec![step] }]
        }
    }
}

/// A group that is left without a record; `None` if it is another user's.
fn by_name(leftover: &stale_state::StaleGroup, root: bool) -> Option<CleanFound> {
    let path = leftover.group.path();
    let owner = fs::metadata(path).ok()?.uid();
    if !root && owner != own_user() {
        return None;
    }
    let carry_out = |undo: UndoAction| {
        let outcome = clean::undo(&undo);
        UndoStep { undo, outcome }
    };
    let steps: Vec<UndoStep> = stale_state::undo(leftover).into_iter().map(carry_out).collect();
    let refused = steps.iter().any(|step| matches!(step.outcome, UndoOutcome::Refused(_)));
    Some(CleanFound {
        path: path.display().to_string(),
        user: owner,
        maker: leftover.maker,
        name: String::new(),
        state: if refused { "left" } else { "undone" }.to_owned(),
        steps: steps.iter().map(step_report).collect(),
    })
}

/// An entry of the registry whose process is gone; `None` if it is another user's, and so left to that one.
fn claim(stale: StaleClaim, own: u32) -> Option<CleanFound> {
    if stale.removed.is_err() && own != 0 && stale.uid != own {
        return None;
    }
    let (state, outcome, cause) = match stale.removed {
        Ok(()) => ("undone", "undone", None),
        Err(error) => ("left", "refused", Some(error.to_string())),
    };
    let path = stale.path.display().to_string();
    let name = stale.path.file_name().and_then(|name| name.to_str());
    let maker = name.and_then(|name| name.split('-').nth(1)?.parse().ok());
    let step = CleanStep { what: format!("remove {path}"), outcome: outcome.to_owned(), cause };
    Some(CleanFound {
        path,
        user: stale.uid,
        maker: maker.unwrap_or(0),
        name: String::new(),
        state: state.to_owned(),
        steps: vec![step],
    })
}

fn record(leftover: StaleRecord, owner: u32) -> CleanFound {
    let state = match leftover.state {
        RecordState::Alive => "alive",
        RecordState::Undone => "undone",
        RecordState::Left => "left",
        RecordState::Unreadable => "unreadable",
    };
    CleanFound {
        path: leftover.path.display().to_string(),
        user: owner,
        maker: leftover.maker,
        name: leftover.name,
        state: state.to_owned(),
        steps: leftover.steps.iter().map(step_report).collect(),
    }
}

fn step_report(step: &UndoStep) -> CleanStep {
    let (outcome, cause) = match &step.outcome {
        UndoOutcome::Undone => ("undone", None),
        UndoOutcome::Gone => ("gone", None),
        UndoOutcome::Elsewhere => ("elsewhere", None),
        UndoOutcome::Refused(error) => ("refused", Some(error.to_string())),
    };
    CleanStep { what: words(&step.undo), outcome: outcome.to_owned(), cause }
}

fn words(undo: &UndoAction) -> String {
    match undo {
        UndoAction::Write { path, text } => {
            format!("write {} to {}", text.escape_debug(), path.display())
        }
        UndoAction::Continue(process) => format!("resume process {}", process.id),
        UndoAction::Cookie(process) => {
            format!("take its core-scheduling cookie from process {}", process.id)
        }
        UndoAction::Members { list, .. } => {
            format!("give time-sharing priority to the threads in {}", list.display())
        }
        UndoAction::Thread { thread, .. } => {
            format!("give thread {} its policy and CPUs back", thread.id)
        }
        UndoAction::Move { from, to } => format!("move {} to {}", from.display(), to.display()),
        UndoAction::Strays { root, .. } => {
            format!(
                "give time-sharing priority to threads that escaped from the group of process {}",
                root.id
            )
        }
        UndoAction::Remove(path)
        | UndoAction::RemoveGroup(path)
        | UndoAction::RemoveUnheld(path) => format!("remove {}", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bug: what a user left was undone with the group of the folder it lay in, which need not be the user's.
    #[test]
    fn what_a_user_left_is_undone_with_the_users_group() {
        assert_eq!(group_of(0), primary_group(0).unwrap());
        let unknown = (1..).map(|n| u32::MAX - 1 - n).find(|uid| primary_group(*uid).is_none());
        assert_eq!(group_of(unknown.unwrap()), 65_534);
    }

    /// The bug: "nothing was left" was said of an entry of a reservation whose process was killed.
    #[test]
    fn a_claim_without_a_process_is_told() {
        let stale = |uid, removed| StaleClaim { path: "/run/c/claim-4711-0".into(), uid, removed };
        let found = claim(stale(7, Ok(())), 7).unwrap();
        assert_eq!((found.state.as_str(), found.maker, found.user), ("undone", 4711, 7));
        assert_eq!(found.steps[0].what, "remove /run/c/claim-4711-0");
        let refused = || Err(io::ErrorKind::PermissionDenied.into());
        assert_eq!(claim(stale(7, refused()), 8), None);
        assert_eq!(claim(stale(7, refused()), 0).unwrap().state, "left");
    }
}
