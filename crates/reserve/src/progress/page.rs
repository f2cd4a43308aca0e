//! The page in which a program writes how far it is.
//!
//! Owns: the layout, making a page, finding one. Must not: interpret what is written.
//!
//! Words of 64 bits, in the machine's byte order:
//!
//! | word | what |
//! |---|---|
//! | 0 | [`MAGIC`] |
//! | 1 | [`VERSION`] |
//! | 2, 3 | begin of the first period (`CLOCK_MONOTONIC`, ns) and the period (ns); 0 if not told |
//! | 8 | the job's number times two; less one while a job is being begun; 0 before the first |
//! | 9 | the whole of the job, in whatever unit the program likes |
//! | 10 | what is done of it, in the same unit |
//! | 11 | when it began (`CLOCK_MONOTONIC`, ns); 0 if not told |
//!
//! The program writes the whole before what is done, and both after the number; who reads takes the
//! number, what is done, the whole, and the number again: what is seen is never more than has been told
//! by then.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use hourglass_sys::memfd::SharedWords;

/// The variable that tells a program where its page is: a path, or the number of a descriptor that it
/// inherited.
pub const VARIABLE: &str = "HOURGLASS_PROGRESS";
/// What the first word says.
pub const MAGIC: u64 = u64::from_le_bytes(*b"hgprogr\0");
/// What the second says.
pub const VERSION: u64 = 1;
/// Words of a page.
pub const WORDS: usize = 16;

/// The name that `/proc/PID/fd` shows.
const NAME: &std::ffi::CStr = c"hourglass-progress";
const LINK: &str = "/memfd:hourglass-progress";

const FIRST: usize = 2;
const PERIOD: usize = 3;
pub(super) const JOB: usize = 8;
pub(super) const TOTAL: usize = 9;
pub(super) const DONE: usize = 10;
pub(super) const BEGUN: usize = 11;

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// It cannot be opened, or is not a sealed shared memory.
    #[error(
        "{} cannot be used for progress: {error}; {VARIABLE} must name a page that hourglass made",
        path.display()
    )]
    Open {
        /// Where it was looked for.
        path: PathBuf,
        /// The kernel's answer.
        error: io::Error,
    },
    /// It is something else.
    #[error("{} is no page of progress; {VARIABLE} must name one that hourglass made", .0.display())]
    Foreign(PathBuf),
    /// It is of another version.
    #[error("{} has version {found} of the page of progress, this is version {VERSION}", path.display())]
    Version {
        /// Where it is.
        path: PathBuf,
        /// Its version.
        found: u64,
    },
    /// None could be made.
    #[error("no memory to tell progress in: {0}")]
    Make(io::Error),
    /// A process has none.
    #[error(
        "process {0} has no page of progress; let it call hourglass's progress function before, or use another source"
    )]
    None(u32),
}

/// A page, mapped for reading and writing.
#[derive(Debug)]
pub struct Page(SharedWords);

impl Page {
    /// Makes one.
    ///
    /// # Errors
    /// [`PageError::Make`].
    pub fn create() -> Result<Page, PageError> {
        let words = SharedWords::create_for_writers(NAME, WORDS).map_err(PageError::Make)?;
        let page = Page(words);
        page.store(1, VERSION);
        page.store(0, MAGIC);
        Ok(page)
    }

    /// Opens the page that [`VARIABLE`] says.
    ///
    /// # Errors
    /// [`PageError::Open`], [`PageError::Foreign`], [`PageError::Version`].
    pub fn named(value: &OsStr) -> Result<Page, PageError> {
        match value.to_str().map(str::parse::<u32>) {
            Some(Ok(descriptor)) => Page::open(Path::new(&format!("/proc/self/fd/{descriptor}"))),
            _ => Page::open(Path::new(value)),
        }
    }

    /// Opens a page that somebody else made.
    ///
    /// # Errors
    /// As [`Page::named`].
    pub fn open(path: &Path) -> Result<Page, PageError> {
        let failed = |error| PageError::Open { path: path.to_owned(), error };
        let file: File = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
        let page = match SharedWords::map(file, WORDS) {
            Ok(words) => Page(words),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(PageError::Foreign(path.to_owned()));
            }
            Err(error) => return Err(failed(error)),
        };
        match (page.load(0), page.load(1)) {
            (MAGIC, VERSION) => Ok(page),
            (MAGIC, found) => Err(PageError::Version { path: path.to_owned(), found }),
            _ => Err(PageError::Foreign(path.to_owned())),
        }
    }

    /// Opens the page of a running process.
    ///
    /// # Errors
    /// [`PageError::None`]; [`PageError::Open`] where its descriptors may not be looked at.
    pub fn of_process(pid: u32) -> Result<Page, PageError> {
        let folder = PathBuf::from(format!("/proc/{pid}/fd"));
        let descriptors = fs::read_dir(&folder)
            .map_err(|error| PageError::Open { path: folder.clone(), error })?;
        for descriptor in descriptors.flatten() {
            let path = descriptor.path();
            let link = fs::read_link(&path).unwrap_or_default();
            if link.to_str().is_some_and(|link| link.starts_with(LINK)) {
                return Page::open(&path);
            }
        }
        Err(PageError::None(pid))
    }

    /// Where other processes of the same user find it, as long as this one has it: a value for
    /// [`VARIABLE`]. One that is started from here may get the descriptor instead.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        let descriptor = self.0.as_fd().as_raw_fd();
        PathBuf::from(format!("/proc/{}/fd/{descriptor}", std::process::id()))
    }

    /// Tells the program when its periods begin. Times in ns, of `CLOCK_MONOTONIC`.
    pub fn set_grid(&self, first_ns: u64, period_ns: u64) {
        self.store(FIRST, first_ns);
        self.store(PERIOD, period_ns);
    }

    /// When periods begin: the first, and the period, ns. `None` if that was not told.
    #[must_use]
    pub fn grid(&self) -> Option<(u64, u64)> {
        let period_ns = self.load(PERIOD);
        (period_ns > 0).then(|| (self.load(FIRST), period_ns))
    }

    /// Where it is mapped, until this is dropped: for writers in other languages, who write the words as
    /// above, atomically.
    #[must_use]
    pub fn address(&self) -> *const AtomicU64 {
        self.0.words().as_ptr()
    }

    /// The words.
    #[inline(always)]
    pub(super) fn words(&self) -> Option<&[AtomicU64; WORDS]> {
        self.0.words().first_chunk()
    }

    pub(super) fn load(&self, index: usize) -> u64 {
        self.0.words().get(index).map_or(0, |word| word.load(Ordering::Acquire))
    }

    fn store(&self, index: usize, value: u64) {
        if let Some(word) = self.0.words().get(index) {
            word.store(value, Ordering::Release);
        }
    }
}

impl AsFd for Page {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_found_by_path_by_descriptor_and_by_process() {
        let page = Page::create().unwrap();
        page.set_grid(5, 70);
        assert_eq!(Page::open(&page.path()).unwrap().grid(), Some((5, 70)));
        let descriptor = page.as_fd().as_raw_fd().to_string();
        assert_eq!(Page::named(OsStr::new(&descriptor)).unwrap().grid(), Some((5, 70)));
        // This process may have the pages of other tests too.
        assert!(Page::of_process(std::process::id()).is_ok());
    }

    #[test]
    fn what_is_no_page_is_refused_by_name() {
        let missing = Page::named(OsStr::new("/nowhere/page")).unwrap_err().to_string();
        assert!(missing.contains("/nowhere/page") && missing.contains(VARIABLE), "{missing}");
        let short = SharedWords::create_for_writers(c"hourglass-test", 2).unwrap();
        let number = short.as_fd().as_raw_fd().to_string();
        assert!(matches!(Page::named(OsStr::new(&number)), Err(PageError::Foreign(_))));
        let other = SharedWords::create_for_writers(c"hourglass-test", WORDS).unwrap();
        let number = other.as_fd().as_raw_fd().to_string();
        assert!(matches!(Page::named(OsStr::new(&number)), Err(PageError::Foreign(_))));
        let newer = Page::create().unwrap();
        newer.store(1, VERSION + 1);
        let refused = Page::open(&newer.path()).unwrap_err();
        assert!(matches!(refused, PageError::Version { found: 2, .. }), "{refused}");
    }
}
