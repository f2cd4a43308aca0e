//! The folder in which programs of one user keep what must outlive a killed one, until the machine starts anew.
//!
//! Owns: where it is, and that no other user can write there: `/run/hourglass` for root, `$XDG_RUNTIME_DIR/hourglass`
//! or `/run/user/UID/hourglass` for others, and where neither can be had `/tmp/hourglass-UID`. Must not: know what is
//! kept there.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Others may look into the folder, and not write; a folder inside may be closed to them.
const SHARED: u32 = 0o755;
const PRIVATE: u32 = 0o700;
/// Mode bits that others must not have in a folder of either kind.
const WRITE_BY_OTHERS: u32 = 0o022;
const ANYTHING_BY_OTHERS: u32 = 0o077;

/// The effective user of this process.
#[must_use]
pub fn user() -> u32 {
    // SAFETY: takes no memory, and cannot fail.
    unsafe { libc::geteuid() }
}

/// Where the folder of the calling user may be, the best first. None of them need exist.
#[must_use]
pub fn candidates() -> Vec<PathBuf> {
    let user = user();
    let mut found = Vec::new();
    if user == 0 {
        found.push(PathBuf::from("/run/hourglass"));
    }
    let named = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let named = named.filter(|path| path.is_absolute());
    let usual = PathBuf::from(format!("/run/user/{user}"));
    found.extend(named.into_iter().chain([usual]).map(|folder| folder.join("hourglass")));
    found.push(PathBuf::from(format!("/tmp/hourglass-{user}")));
    found.dedup();
    found
}

/// The folder `name` inside the folder of the calling user, which no other user can read or write. It is made where it
/// is missing.
///
/// # Errors
/// None of the candidates can be made, or each belongs to another user or may be written by others: what was wrong with
/// the last one.
pub fn private(name: &str) -> io::Result<PathBuf> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for outer in candidates() {
        let made = make(&outer, SHARED, WRITE_BY_OTHERS).and_then(|()| {
            let inner = outer.join(name);
            make(&inner, PRIVATE, ANYTHING_BY_OTHERS).map(|()| inner)
        });
        match made {
            Ok(folder) => return Ok(folder),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The folders `name` of the calling user that exist and can be trusted.
#[must_use]
pub fn existing(name: &str) -> Vec<PathBuf> {
    let trusted = |outer: PathBuf| {
        let inner = outer.join(name);
        let both = check(&outer, WRITE_BY_OTHERS).and_then(|_| check(&inner, ANYTHING_BY_OTHERS));
        both.is_ok().then_some(inner)
    };
    candidates().into_iter().filter_map(trusted).collect()
}

/// Makes a folder, whatever the mask of this process (umask(2)); an existing one keeps its mode.
fn make(folder: &Path, mode: u32, refused: u32) -> io::Result<()> {
    match DirBuilder::new().mode(mode).create(folder) {
        Ok(()) => check(folder, refused)?.set_permissions(Permissions::from_mode(mode)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            check(folder, refused).map(drop)
        }
        Err(error) => Err(error),
    }
}

/// Whether it is a folder of the calling user, no link, in which others may not do what is `refused`: the folder, open.
fn check(folder: &Path, refused: u32) -> io::Result<File> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let opened: File = OpenOptions::new().read(true).custom_flags(flags).open(folder)?;
    let found: fs::Metadata = opened.metadata()?;
    if found.uid() != user() || found.mode() & refused != 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(opened)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A folder that another user may write, or that is a link, is not used.
    #[test]
    fn what_others_may_write_is_refused() {
        let home = std::env::temp_dir().join(format!("hourglass-runtime-{}", std::process::id()));
        let (good, open, link) = (home.join("good"), home.join("open"), home.join("link"));
        fs::create_dir_all(&home).unwrap();
        make(&good, PRIVATE, ANYTHING_BY_OTHERS).unwrap();
        make(&good, PRIVATE, ANYTHING_BY_OTHERS).unwrap();
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        symlink(&good, &link).unwrap();
        let refused = |folder: &Path| make(folder, PRIVATE, WRITE_BY_OTHERS).is_err();
        let answers = (refused(&open), refused(&link), refused(&home.join("no/where")));
        fs::remove_dir_all(&home).unwrap();
        assert_eq!(answers, (true, true, true));
    }

    /// The bug: a mask of 077 left the folder of root closed to others (mode 0700), who then saw no reservations.
    #[test]
    fn a_folder_has_its_mode_whatever_the_mask() {
        let home = std::env::temp_dir().join(format!("hourglass-mask-{}", std::process::id()));
        fs::create_dir_all(&home).unwrap();
        let modes = [(home.join("shared"), SHARED), (home.join("private"), PRIVATE)];
        let said = crate::fork::child_says(10_000, || {
            // SAFETY: takes its argument by value, and concerns this child alone.
            unsafe { libc::umask(0o077) };
            modes.iter().all(|(folder, mode)| make(folder, *mode, WRITE_BY_OTHERS).is_ok())
        });
        let found = modes
            .clone()
            .map(|(folder, _)| fs::metadata(folder).map(|found| found.mode() & 0o7777));
        // An existing folder keeps the mode that its owner gave it.
        fs::set_permissions(&modes[0].0, Permissions::from_mode(0o711)).unwrap();
        make(&modes[0].0, SHARED, WRITE_BY_OTHERS).unwrap();
        let kept = fs::metadata(&modes[0].0).unwrap().mode() & 0o7777;
        fs::remove_dir_all(&home).unwrap();
        assert!(said.unwrap());
        assert_eq!(found.map(Result::unwrap), [SHARED, PRIVATE]);
        assert_eq!(kept, 0o711);
    }
}
