//! A file that is there whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::stop::Stop;

/// A file that is being written under another name. Dropped without [`WholeFile::write`], it leaves
/// nothing behind.
#[derive(Debug)]
pub(super) struct WholeFile {
    file: File,
    other_name: PathBuf,
    name: PathBuf,
}

impl WholeFile {
    /// Makes sure, before anything is measured, that the file can be written.
    ///
    /// # Errors
    /// Something else has that name, or its folder is not there or may not be written to.
    pub(super) fn create(name: &Path) -> io::Result<WholeFile> {
        if fs::metadata(name).is_ok_and(|there| !there.is_file()) {
            // A folder, a pipe or a device would be lost when the new file takes its name.
            return Err(io::Error::other("is there and is not a regular file"));
        }
        let own = name.file_name().ok_or_else(|| io::Error::other("is not the name of a file"))?;
        let other = format!(".{}.{}", own.to_string_lossy(), std::process::id());
        let other_name = name.with_file_name(other);
        let file = OpenOptions::new().write(true).create_new(true).open(&other_name)?;
        Ok(WholeFile { file, other_name, name: name.to_path_buf() })
    }

    /// One for the file that `option` names, if it names one.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn wanted(option: &str, name: Option<&Path>) -> Result<Option<WholeFile>, Stop> {
        let wrong =
            |name: &Path, error| Stop::usage(format!("{option}: {}: {error}", name.display()));
        name.map(|name| WholeFile::create(name).map_err(|error| wrong(name, error))).transpose()
    }

    /// Writes a document.
    ///
    /// # Errors
    /// What the system says; then the file is as it was before.
    pub(super) fn write_json(self, option: &str, document: &impl Serialize) -> Result<(), Stop> {
        let text = serde_json::to_vec_pretty(document).map_err(io::Error::from);
        text.and_then(|text| self.write(&[&text[..], b"\n"].concat()))
            .map_err(|error| Stop::machine(vec![format!("{option}: {error}")]))
    }

    /// Writes it and gives it its name.
    ///
    /// # Errors
    /// What the system says; then the file is as it was before.
    pub(super) fn write(mut self, text: &[u8]) -> io::Result<()> {
        self.file.write_all(text)?;
        self.file.sync_all()?;
        fs::rename(&self.other_name, &self.name)
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        // Gone already if it got its name.
        let _ = fs::remove_file(&self.other_name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_there_whole_or_not_at_all() {
        let home = tempfile::tempdir().unwrap();
        let name = home.path().join("a.json");
        drop(WholeFile::create(&name).unwrap());
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
        WholeFile::create(&name).unwrap().write(b"first").unwrap();
        WholeFile::create(&name).unwrap().write(b"second").unwrap();
        assert_eq!(fs::read(&name).unwrap(), b"second");
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
        assert!(WholeFile::create(&home.path().join("none/a.json")).is_err());
        assert!(WholeFile::create(home.path()).is_err());
    }
}
