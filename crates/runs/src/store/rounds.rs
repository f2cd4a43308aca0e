//! A folder of rounds: the run folders of two ways of running, made in turn.
//!
//! Owns: their names (`a-01`, `b-01`, `a-02`, ...), and setting aside what is not a whole round. Must not: know what
//! is compared. The result of the comparison lies beside them as `diff.json`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hourglass_documents::diff::DiffDocument;

use crate::store::create::refused;
use crate::store::error::{CreateError, OpenError, WriteError};
use crate::store::manifest;

pub const DIFF_FILE: &str = "diff.json";
const CUT_SHORT: &str = "interrupted-";

#[derive(Debug)]
pub struct NewRounds {
    path: PathBuf,
}

/// The run folders of whole rounds, in their order, and what has no partner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoundFolders {
    /// Runs of the first way.
    pub a: Vec<PathBuf>,
    /// Runs of the second, one for each of the first.
    pub b: Vec<PathBuf>,
    pub alone: Vec<PathBuf>,
}

impl NewRounds {
    /// Makes the folder `path`.
    ///
    /// # Errors
    /// See [`CreateError`]; nothing is left behind.
    pub fn create(path: impl Into<PathBuf>) -> Result<NewRounds, CreateError> {
        let path = path.into();
        fs::create_dir(&path).map_err(|error| refused(&path, error))?;
        Ok(NewRounds { path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where a run of `side` (`a` or `b`) belongs; rounds count from 1.
    pub fn place(&self, side: char, round: u32) -> PathBuf {
        self.path.join(format!("{side}-{round:02}"))
    }

    /// Renames the runs of a round that was cut short, so that they are not taken for a whole round.
    ///
    /// # Errors
    /// The system refuses.
    pub fn set_aside(&self, round: u32) -> Result<(), WriteError> {
        for place in ['a', 'b'].map(|side| self.place(side, round)) {
            let Some(name) = place.file_name().and_then(|name| name.to_str()) else { continue };
            let aside = self.path.join(format!("{CUT_SHORT}{name}"));
            match fs::rename(&place, &aside) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(WriteError::file(aside, error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes the comparison beside the runs.
    ///
    /// # Errors
    /// The system refuses.
    pub fn write(&self, document: &DiffDocument) -> Result<(), WriteError> {
        let mut text = serde_json::to_vec_pretty(document).map_err(WriteError::Manifest)?;
        text.push(b'\n');
        manifest::write_last(&self.path, DIFF_FILE, &text)
    }

    pub fn remove_empty(&self) {
        // A folder with something in it stays, which is what is wanted.
        let _ = fs::remove_dir(&self.path);
    }
}

/// The rounds in the folder `path`.
///
/// # Errors
/// It is no folder, or cannot be read. A folder without rounds is no error here.
pub fn find_rounds(path: &Path) -> Result<RoundFolders, OpenError> {
    let unreadable = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => OpenError::NotFound(path.to_path_buf()),
        io::ErrorKind::NotADirectory => OpenError::NotAFolder(path.to_path_buf()),
        _ => OpenError::Io { path: path.to_path_buf(), source },
    };
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(path).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        let Some((side, round)) = name.to_str().and_then(round_of) else { continue };
        if side == 'a' { a.push(round) } else { b.push(round) }
    }
    a.sort_unstable();
    b.sort_unstable();
    let place =
        |side: char| move |(_, digits): &(u32, String)| path.join(format!("{side}-{digits}"));
    let (whole_a, alone_a): (Vec<_>, Vec<_>) = a.iter().partition(|one| b.contains(one));
    let (whole_b, alone_b): (Vec<_>, Vec<_>) = b.iter().partition(|one| a.contains(one));
    Ok(RoundFolders {
        a: whole_a.into_iter().map(place('a')).collect(),
        b: whole_b.into_iter().map(place('b')).collect(),
        alone: alone_a
            .into_iter()
            .map(place('a'))
            .chain(alone_b.into_iter().map(place('b')))
            .collect(),
    })
}

/// Side, number and digits of `a-01`.
fn round_of(name: &str) -> Option<(char, (u32, String))> {
    let (side, digits) = name.split_once('-')?;
    let side = side.chars().next().filter(|c| side.len() == 1 && ['a', 'b'].contains(c))?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_number.then(|| digits.parse().ok()).flatten()?;
    Some((side, (number, digits.to_owned())))
}
