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
//! | 2, 3 | begin of the first period (`CLOCK_MONOTONIC`, ns) and the period (ns); 0 if not reported |
//! | 4 | how often a program has opened it |
//! | 8 | the job's number times two; less one while a job is being begun; 0 before the first |
//! | 9 | the whole of the job, in whatever unit the program likes |
//! | 10 | what is done of it, in the same unit |
//! | 11 | when it began (`CLOCK_MONOTONIC`, ns); 0 if not reported |
//!
//! The program writes the whole before what is done, and both after the number; a reader takes the number, what is
//! done, the whole, and the number again: it never sees more than has been reported by then.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use hourglass_sys::memfd::SharedWords;

/// The variable that tells a program where its page is: the number of a descriptor that it inherited, or a path.
pub const VARIABLE: &str = "HOURGLASS_PROGRESS";
/// The variable with a path for programs whose descriptor was closed on the way to them, such as by Python's
/// `subprocess`. Only processes of the same user, with the same `/proc`, can open it.
pub const PATH_VARIABLE: &str = "HOURGLASS_PROGRESS_PATH";
/// The number of the descriptor that is handed down is at least this: below are those that shells and scripts take for
/// their own.
const HANDED_FROM: u32 = 200;
/// Content of the first word.
pub const MAGIC: u64 = u64::from_le_bytes(*b"hgprogr\0");
/// Content of the second word.
pub const VERSION: u64 = 1;
/// Words of a page.
pub const WORDS: usize = 16;

/// The name that `/proc/PID/fd` shows.
const NAME: &std::ffi::CStr = c"hourglass-progress";
const LINK: &str = "/memfd:hourglass-progress";

const FIRST: usize = 2;
const PERIOD: usize = 3;
const OPENED: usize = 4;
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
    /// The descriptor was closed on the way to this program.
    #[error(
        "descriptor {0}, which {VARIABLE} names, is closed: what started this program closed it, as sudo and Python's \
         subprocess do; start hourglass behind it (sudo -u USER hourglass reserve ...), or let it pass the descriptor on \
         (sudo -C {past}, pass_fds=[{0}])",
        past = .0 + 1
    )]
    Closed(u32),
    /// It is something else.
    #[error("{} is not a progress page; {VARIABLE} must name one that hourglass made", .0.display())]
    Foreign(PathBuf),
    /// It is of another version.
    #[error("{} has version {found} of the page of progress, this is version {VERSION}", path.display())]
    Version {
        /// Where it is.
        path: PathBuf,
        /// Version of the page.
        found: u64,
    },
    /// None could be made.
    #[error("no shared memory for reports of progress: {0}")]
    Make(io::Error),
    /// A process has none.
    #[error(
        "process {0} has no page of progress; let it call hourglass's progress function before, or use another source"
    )]
    None(u32),
}

/// A page, mapped for reading and writing.
#[derive(Debug)]
pub struct ProgressPage(SharedWords);

impl ProgressPage {
    /// Makes one.
    ///
    /// # Errors
    /// [`PageError::Make`].
    pub fn create() -> Result<ProgressPage, PageError> {
        let words = SharedWords::create_for_writers(NAME, WORDS).map_err(PageError::Make)?;
        let page = ProgressPage(words);
        page.store(1, VERSION);
        page.store(0, MAGIC);
        Ok(page)
    }

    /// Opens the page that was handed down to this program, by [`VARIABLE`] or else [`PATH_VARIABLE`]; `None` if neither
    /// is set.
    ///
    /// # Errors
    /// Why [`VARIABLE`] does not lead to one: as [`ProgressPage::named`].
    pub fn handed_down() -> Result<Option<ProgressPage>, PageError> {
        let Some(value) = std::env::var_os(VARIABLE) else { return Ok(None) };
        ProgressPage::named(&value)
            .or_else(|error| match std::env::var_os(PATH_VARIABLE) {
                Some(path) => ProgressPage::open(Path::new(&path)).map_err(|_| error),
                None => Err(error),
            })
            .map(Some)
    }

    /// Opens the page that a value of [`VARIABLE`] says.
    ///
    /// # Errors
    /// [`PageError::Open`], [`PageError::Closed`], [`PageError::Foreign`], [`PageError::Version`].
    pub fn named(value: &OsStr) -> Result<ProgressPage, PageError> {
        const EBADF: i32 = 9;
        let Some(Ok(descriptor)) = value.to_str().map(str::parse::<u32>) else {
            return ProgressPage::open(Path::new(value));
        };
        match SharedWords::inherited(descriptor, WORDS) {
            Err(error) if error.raw_os_error() == Some(EBADF) => Err(PageError::Closed(descriptor)),
            mapped => {
                ProgressPage::checked(mapped, &PathBuf::from(format!("/proc/self/fd/{descriptor}")))
            }
        }
    }

    /// Opens a page that another process made.
    ///
    /// # Errors
    /// As [`ProgressPage::named`].
    pub fn open(path: &Path) -> Result<ProgressPage, PageError> {
        let failed = |error| PageError::Open { path: path.to_owned(), error };
        let file: File = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
        ProgressPage::checked(SharedWords::map(file, WORDS), path)
    }

    /// A page if it says that it is one; `path` is where it was found.
    fn checked(mapped: io::Result<SharedWords>, path: &Path) -> Result<ProgressPage, PageError> {
        let page = match mapped {
            Ok(words) => ProgressPage(words),
            // Too short, no memory that is shared, or one that may shrink: some file of the program's own.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::UnexpectedEof | io::ErrorKind::PermissionDenied
                ) =>
            {
                return Err(PageError::Foreign(path.to_owned()));
            }
            Err(error) => return Err(PageError::Open { path: path.to_owned(), error }),
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
    pub fn of_process(pid: u32) -> Result<ProgressPage, PageError> {
        let folder = PathBuf::from(format!("/proc/{pid}/fd"));
        let descriptors = fs::read_dir(&folder)
            .map_err(|error| PageError::Open { path: folder.clone(), error })?;
        for descriptor in descriptors.flatten() {
            let path = descriptor.path();
            let link = fs::read_link(&path).unwrap_or_default();
            if link.to_str().is_some_and(|link| link.starts_with(LINK)) {
                return ProgressPage::open(&path);
            }
        }
        Err(PageError::None(pid))
    }

    /// This page, mapped once more.
    ///
    /// # Errors
    /// [`PageError::Make`].
    pub fn try_clone(&self) -> Result<ProgressPage, PageError> {
        self.0.again().map(ProgressPage).map_err(PageError::Make)
    }

    /// A descriptor for a program that this process starts; it keeps its number, the value for [`VARIABLE`]. Its holder
    /// can write the page, and can neither shorten nor lengthen it.
    ///
    /// # Errors
    /// [`PageError::Make`].
    pub fn to_hand_down(&self) -> Result<OwnedFd, PageError> {
        // Where the limit of open files is lower, any number will do.
        let high = self.0.descriptor_from(HANDED_FROM);
        high.or_else(|_| self.0.descriptor_from(3)).map_err(PageError::Make)
    }

    /// Whether a process has a page among its descriptors under this number; `None` where that may not be looked at, or
    /// it is gone.
    #[must_use]
    pub fn is_held_by(pid: u32, descriptor: u32) -> Option<bool> {
        match fs::read_link(format!("/proc/{pid}/fd/{descriptor}")) {
            Ok(link) => Some(link.to_str().is_some_and(|link| link.starts_with(LINK))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::metadata(format!("/proc/{pid}/fd/0")).is_ok().then_some(false)
            }
            Err(_) => None,
        }
    }

    pub(super) fn count_opened(&self) {
        if let Some(word) = self.0.words().get(OPENED) {
            word.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Whether a program has opened it to tell its progress.
    #[must_use]
    pub fn was_opened(&self) -> bool {
        self.load(OPENED) > 0 || self.was_reported()
    }

    /// Whether the program reported any job.
    #[must_use]
    pub fn was_reported(&self) -> bool {
        self.load(JOB) > 0
    }

    /// Where other processes of the same user find it, as long as this one has it: a value for [`PATH_VARIABLE`].
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

    /// When periods begin: the first, and the period, ns. `None` if the monitor did not report them.
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

impl AsFd for ProgressPage {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_found_by_path_by_descriptor_and_by_process() {
        let page = ProgressPage::create().unwrap();
        page.set_grid(5, 70);
        assert_eq!(ProgressPage::open(&page.path()).unwrap().grid(), Some((5, 70)));
        let descriptor = page.as_fd().as_raw_fd().to_string();
        assert_eq!(ProgressPage::named(OsStr::new(&descriptor)).unwrap().grid(), Some((5, 70)));
        // This process may have the pages of other tests too.
        assert!(ProgressPage::of_process(std::process::id()).is_ok());
    }

    /// The bug: a page was a path in the `/proc` of its maker, which a program of another user, in another PID
    /// namespace, or of a maker with capabilities cannot open. A descriptor closed on the way is reported as such.
    #[test]
    fn a_page_is_handed_down_by_descriptor() {
        let page = ProgressPage::create().unwrap();
        let handed = page.to_hand_down().unwrap();
        let number = handed.as_raw_fd() as u32;
        assert!(number >= HANDED_FROM);
        assert_eq!(ProgressPage::is_held_by(std::process::id(), number), Some(true));
        let inherited = ProgressPage::named(OsStr::new(&number.to_string())).unwrap();
        assert!(!page.was_opened());
        let mut progress = crate::progress::Progress::on(inherited);
        progress.report(1, 2);
        assert!(page.was_opened() && page.was_reported());
        let closed = ProgressPage::named(OsStr::new("1048575")).unwrap_err();
        let text = closed.to_string();
        assert!(matches!(closed, PageError::Closed(1_048_575)) && text.contains("sudo"), "{text}");
        // Another file has the number now.
        let file = File::open("/proc/self/exe").unwrap();
        let other = ProgressPage::named(OsStr::new(&file.as_raw_fd().to_string())).unwrap_err();
        assert!(matches!(other, PageError::Foreign(_)), "{other}");
        assert_eq!(
            ProgressPage::is_held_by(std::process::id(), file.as_raw_fd() as u32),
            Some(false)
        );
    }

    #[test]
    fn what_is_no_page_is_refused_by_name() {
        let missing = ProgressPage::named(OsStr::new("/nowhere/page")).unwrap_err().to_string();
        assert!(missing.contains("/nowhere/page") && missing.contains(VARIABLE), "{missing}");
        let short = SharedWords::create_for_writers(c"hourglass-test", 2).unwrap();
        let number = short.as_fd().as_raw_fd().to_string();
        assert!(matches!(ProgressPage::named(OsStr::new(&number)), Err(PageError::Foreign(_))));
        let other = SharedWords::create_for_writers(c"hourglass-test", WORDS).unwrap();
        let number = other.as_fd().as_raw_fd().to_string();
        assert!(matches!(ProgressPage::named(OsStr::new(&number)), Err(PageError::Foreign(_))));
        let newer = ProgressPage::create().unwrap();
        newer.store(1, VERSION + 1);
        let refused = ProgressPage::open(&newer.path()).unwrap_err();
        assert!(matches!(refused, PageError::Version { found: 2, .. }), "{refused}");
    }
}
