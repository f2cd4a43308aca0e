//! What can go wrong with the folder of an experiment.
//!
//! Owns: [`SweepFolderError`]. Must not: know options.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::store::error::is_full;

#[derive(Debug, Error)]
pub enum SweepFolderError {
    #[error("{} is not a folder; name another place", .0.display())]
    NotAFolder(PathBuf),
    #[error(
        "{} cannot be made: no folder {} is there; make that first, or name another place",
        .0.display(),
        .0.parent().unwrap_or(.0).display()
    )]
    NoParent(PathBuf),
    #[error(
        "{} holds no experiment but other things ({name}); name a new or empty folder",
        .path.display()
    )]
    Others { path: PathBuf, name: String },
    #[error(
        "{} holds another experiment: there {key} is {there}, here {here}; name another folder, or \
         ask for the same",
        .path.display()
    )]
    Another {
        path: PathBuf,
        key: String,
        there: String,
        /// What was asked for, and which keys differ besides.
        here: String,
    },
    #[error("{} holds no experiment; name a folder of hourglass sweep -o", .0.display())]
    NoExperiment(PathBuf),
    #[error("{} cannot be read: {source}", .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{}: {reason}; remove the folder, or name another", .path.display())]
    Damaged { path: PathBuf, reason: String },
    /// The system or an encoder refused; most often the disk is full.
    #[error("{} cannot be written: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl SweepFolderError {
    /// Whether the machine has no room for it, whatever place is named.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self, SweepFolderError::Io { source, .. } if is_full(source))
    }

    pub(super) fn io(path: &Path, source: io::Error) -> SweepFolderError {
        SweepFolderError::Io { path: path.to_path_buf(), source }
    }
}
