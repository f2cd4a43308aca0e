//! Files that get their name only when they are complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What stands behind the name of a file that is not complete.
pub(crate) const PARTIAL_SUFFIX: &str = ".partial";

/// A file under a temporary name, removed when dropped unless [`PartialFile::commit`] was called.
#[derive(Debug)]
pub(crate) struct PartialFile {
    file: File,
    partial: PathBuf,
    target: PathBuf,
}

pub(crate) fn partial_path(folder: &Path, file: &str) -> PathBuf {
    folder.join(format!("{file}{PARTIAL_SUFFIX}"))
}

impl PartialFile {
    /// Makes the file that is going to be `name` in `folder`, and opens it for writing.
    pub(crate) fn create(folder: &Path, name: &str) -> io::Result<PartialFile> {
        let partial = partial_path(folder, name);
        let file = OpenOptions::new().write(true).create_new(true).open(&partial)?;
        Ok(PartialFile { file, partial, target: folder.join(name) })
    }

    pub(crate) fn write(folder: &Path, name: &str, contents: &[u8]) -> io::Result<()> {
        let partial = PartialFile::create(folder, name)?;
        partial.file().write_all(contents)?;
        partial.commit()
    }

    /// The file, for writing at the place where the last write ended.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    pub(crate) fn is_committed(&self) -> bool {
        self.target.exists()
    }

    /// Gives the file its final name once its contents are on the disk.
    pub(crate) fn commit(&self) -> io::Result<()> {
        self.publish()?;
        match self.target.parent() {
            Some(folder) => sync_folder(folder),
            None => Ok(()),
        }
    }

    /// The same, but the name may not be on the disk.
    pub(crate) fn publish(&self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.partial, &self.target)
    }

    /// Removes the file under its temporary name, if it still has it.
    pub(crate) fn discard(&self) {
        // Nothing is lost if this fails: the name says that the file is not complete.
        let _ = fs::remove_file(&self.partial);
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        self.discard();
    }
}

/// Brings the names in `folder` to the disk, as far as its file system can.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    match File::open(folder)?.sync_all() {
        // Some network and overlay file systems know no fsync of folders.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        done => done,
    }
}
