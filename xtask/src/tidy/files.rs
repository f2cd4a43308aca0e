//! The texts of the repository: what git tracks, and what it would track.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::failure::StepFailure;

/// Folders that hold nothing of ours, for a tree without git.
const FOREIGN_FOLDERS: &[&str] = &[".git", "target", "node_modules", ".venv"];

#[derive(Clone, Debug)]
pub(super) struct File {
    /// Relative to the root, with `/`.
    pub(super) path: String,
    pub(super) text: String,
}

/// Every text file below `root` that git tracks or would track; binary files are left out. A tree
/// that is not a git checkout (a source package) is walked.
///
/// # Errors
/// The tree cannot be read.
pub(super) fn tracked_files(root: &Path) -> Result<Vec<File>, StepFailure> {
    let mut paths = match listed_by_git(root) {
        Some(paths) => paths,
        None => {
            let mut paths = Vec::new();
            walk(root, "", &mut paths)?;
            paths
        }
    };
    paths.sort();
    paths.dedup();
    let read = |path: String| {
        // A file that git still lists but that is gone, or that is no text, breaks no rule.
        let text = fs::read_to_string(root.join(&path)).ok()?;
        Some(File { path, text })
    };
    Ok(paths.into_iter().filter_map(read).collect())
}

fn listed_by_git(root: &Path) -> Option<Vec<String>> {
    // Root in a container often does not own the checkout; reading its list is harmless.
    let trusted = format!("safe.directory={}", root.display());
    let output = Command::new("git")
        .args(["-c", &trusted, "ls-files", "-z"])
        .args(["--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .ok()?;
    if !output.status.success() {
        return None;
    }
    let names = String::from_utf8(output.stdout).ok()?;
    let names = names.split('\0').filter(|name| !name.is_empty());
    Some(names.map(str::to_owned).collect())
}

fn walk(root: &Path, below: &str, paths: &mut Vec<String>) -> Result<(), StepFailure> {
    let folder = root.join(below);
    let entries = fs::read_dir(&folder).map_err(|e| StepFailure::file(&folder, &e))?;
    for entry in entries {
        let entry = entry.map_err(|e| StepFailure::file(&folder, &e))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        let kind = entry.file_type().map_err(|e| StepFailure::file(&folder, &e))?;
        if kind.is_file() {
            paths.push(path);
        } else if kind.is_dir() && !FOREIGN_FOLDERS.contains(&name.as_str()) {
            walk(root, &path, paths)?;
        }
    }
    Ok(())
}
