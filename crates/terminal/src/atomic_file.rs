//! A file that is there whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::exit::Stop;

/// A file that is being written under another name. Dropped without [`WholeFile::write`], it leaves
/// nothing behind.
#[derive(Debug)]
pub struct WholeFile {
    file: File,
    other_name: PathBuf,
    /// The file itself, where `name` is a link.
    target: PathBuf,
    name: PathBuf,
}

impl WholeFile {
    /// Makes sure, before anything is measured, that the file can be written.
    ///
    /// # Errors
    /// Something else has that name, or its folder is not there or may not be written to.
    pub fn create(name: &Path) -> io::Result<WholeFile> {
        if name.is_dir() {
            return Err(io::Error::other("is a folder; name a file in it"));
        }
        if fs::metadata(name).is_ok_and(|there| !there.is_file()) {
            // A folder, a pipe or a device would be lost when the new file takes its name.
            return Err(io::Error::other("is there and is not a regular file"));
        }
        // What a link names is written, and the link stays.
        let target = fs::canonicalize(name).unwrap_or_else(|_| name.to_path_buf());
        let own =
            target.file_name().ok_or_else(|| io::Error::other("is not the name of a file"))?;
        let other = format!(".{}.{}", own.to_string_lossy(), std::process::id());
        let other_name = target.with_file_name(other);
        let file = OpenOptions::new().write(true).create_new(true).open(&other_name)?;
        Ok(WholeFile { file, other_name, target, name: name.to_path_buf() })
    }

    /// One for the file that `option` names, if it names one.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn wanted(option: &str, name: Option<&Path>) -> Result<Option<WholeFile>, Stop> {
        let wrong = |name: &Path, error: io::Error| refused(option, name, &error);
        name.map(|name| WholeFile::create(name).map_err(|error| wrong(name, error))).transpose()
    }

    /// Writes a document.
    ///
    /// # Errors
    /// What the system says; then the file is as it was before.
    pub fn write_json(self, option: &str, document: &impl Serialize) -> Result<(), Stop> {
        let name = self.name.clone();
        let text = serde_json::to_vec_pretty(document).map_err(io::Error::from);
        text.and_then(|text| self.write(&[&text[..], b"\n"].concat()))
            .map_err(|error| refused(option, &name, &error))
    }

    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Writes it and gives it its name.
    ///
    /// # Errors
    /// What the system says; then the file is as it was before.
    pub fn write(mut self, text: &[u8]) -> io::Result<()> {
        self.file.write_all(text)?;
        self.finish()
    }

    /// Where to write what is not all in memory; [`WholeFile::finish`] ends it.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives it its name.
    ///
    /// # Errors
    /// What the system says; then the file is as it was before.
    pub fn finish(self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.other_name, &self.target)
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        // Gone already if it got its name.
        let _ = fs::remove_file(&self.other_name);
    }
}

/// Writes the file that `option` names, whole or not at all. Into a pipe or a device it is simply written.
///
/// # Errors
/// It cannot be written; what was there before is as it was.
pub fn keep(option: &str, name: &Path, contents: &[u8]) -> Result<(), Stop> {
    let written = match is_special(name) {
        true => fs::write(name, contents),
        false => WholeFile::create(name).and_then(|file| file.write(contents)),
    };
    written.map_err(|error| refused(option, name, &error))
}

/// Removes a file of an earlier call of [`keep`], where nothing is written instead; whether there was one. A pipe or a device stays.
///
/// # Errors
/// It cannot be removed.
pub fn remove(option: &str, name: &Path) -> Result<bool, Stop> {
    if is_special(name) {
        return Ok(false);
    }
    // As `keep` replaces the file behind a link.
    let file = fs::canonicalize(name).unwrap_or_else(|_| name.to_path_buf());
    match fs::remove_file(file) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(refused(option, name, &error)),
    }
}

/// Makes sure, before anything is measured, that the file which [`keep`] is to write has a place.
///
/// # Errors
/// As those of [`WholeFile::create`].
pub fn has_place(option: &str, name: &Path) -> Result<(), Stop> {
    match is_special(name) {
        true => Ok(()),
        false => WholeFile::wanted(option, Some(name)).map(drop),
    }
}

/// Whether it is there, and neither a file nor a folder.
fn is_special(name: &Path) -> bool {
    fs::metadata(name).is_ok_and(|there| !there.is_file() && !there.is_dir())
}

/// Why a file cannot be written, with what mends it and the exit code for it.
pub fn refused(option: &str, name: &Path, error: &io::Error) -> Stop {
    let line = format!("{option}: {}: {error}", name.display());
    let parent = name.parent().filter(|parent| !parent.as_os_str().is_empty() && !parent.exists());
    match (error.kind(), parent) {
        (ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge, _) => {
            Stop::machine(vec![format!("{line}; free some space there, or name another place")])
        }
        (ErrorKind::NotFound, Some(parent)) => {
            Stop::usage(format!("{line}; make the folder {} first", parent.display()))
        }
        (ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem | ErrorKind::NotFound, _) => {
            Stop::usage(format!("{line}; name a place where you may write"))
        }
        _ => Stop::usage(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A full disk is the machine's fault (exit code 3), a wrong place the user's (2); both say what helps.
    #[test]
    fn what_cannot_be_written_says_what_helps() {
        let home = tempfile::tempdir().unwrap();
        let machine = Stop::machine(Vec::new()).exit_code();
        let found = |name: &Path| {
            let stop = keep("-o", name, b"text").unwrap_err();
            (stop.exit_code(), stop.to_string())
        };
        let (code, line) = found(Path::new("/dev/full"));
        assert_eq!(code, machine);
        assert!(
            line.starts_with("-o: /dev/full: ") && line.contains("; free some space"),
            "{line}"
        );
        let (code, line) = found(&home.path().join("none/a.svg"));
        assert_ne!(code, machine);
        assert!(line.contains("; make the folder ") && line.ends_with("none first"), "{line}");
        let (_, line) = found(home.path());
        assert!(line.ends_with("is a folder; name a file in it"), "{line}");
        // What is known before there is anything to write.
        assert_eq!(has_place("-o", home.path()).unwrap_err().to_string(), line);
        has_place("-o", &home.path().join("a.svg")).unwrap();
        has_place("-o", Path::new("/dev/full")).unwrap();
        keep("-o", Path::new("/dev/null"), b"text").unwrap();
        keep("-o", &home.path().join("a.svg"), b"text").unwrap();
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
    }

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
        // Begun and given up, as when the disk is full.
        let third = WholeFile::create(&name).unwrap();
        third.file().write_all(b"thi").unwrap();
        drop(third);
        assert_eq!(fs::read(&name).unwrap(), b"second");
        let link = home.path().join("latest.json");
        std::os::unix::fs::symlink("a.json", &link).unwrap();
        WholeFile::create(&link).unwrap().write(b"third").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&name).unwrap(), b"third");
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 2);
        assert!(WholeFile::create(&home.path().join("none/a.json")).is_err());
        assert!(WholeFile::create(home.path()).is_err());
    }
}
