//! Whether this process sees the same claims as the rest of the machine.
//!
//! A mount namespace may have a `/run` of its own (systemd's `TemporaryFileSystem=`, bubblewrap, flatpak) in the PID
//! namespace of the machine. Owns: finding that out. What cannot be looked into tells nothing; so those who keep
//! reservations are looked for too, by the threads that keep them. Must not: say what follows.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::backend::{members, nested};

/// Device and inode of a place below `root`, or of the nearest existing folder around it.
fn identity(root: &Path, place: &str) -> Option<(u64, u64)> {
    let found =
        Path::new(place).ancestors().find_map(|place| fs::metadata(root.join(place)).ok())?;
    Some((found.dev(), found.ino()))
}

/// The first process, or one that started this one, for which `place` is another folder than below `root`.
pub(super) fn elsewhere(root: &Path, place: &str) -> Option<u32> {
    let own = identity(root, place)?;
    let mut ancestors = vec![1];
    let mut process = std::process::id();
    // A chain of parents ends; a number that is used again can close it to a ring.
    while let Some(parent) = members::parent_of(process).filter(|pid| *pid > 1) {
        if ancestors.contains(&parent) {
            break;
        }
        ancestors.push(parent);
        process = parent;
    }
    let differs = |pid: &u32| {
        let root = format!("/proc/{pid}/root");
        // Of a root that may not be looked into nothing is known.
        fs::metadata(format!("{root}/run")).is_ok()
            && identity(Path::new(&root), place).is_some_and(|other| other != own)
    };
    ancestors.into_iter().find(differs)
}

/// A process that keeps a reservation, other than this one and those that hold claims.
pub(super) fn keeper_but(claims: impl FnOnce() -> Vec<u32>) -> Option<u32> {
    let own = std::process::id();
    let keeps: Vec<u32> = members::all_processes()
        .into_iter()
        .filter(|pid| *pid != own && nested::holds_reservation(*pid))
        .collect();
    if keeps.is_empty() {
        return None;
    }
    // Read afterwards: who ended meanwhile keeps none any more, and has no claim.
    let claims = claims();
    keeps.into_iter().find(|pid| !claims.contains(pid) && nested::holds_reservation(*pid))
}
