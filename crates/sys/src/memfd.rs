//! Memory that processes share: a sealed, nameless file (`memfd_create(2)`) seen as 64-bit words.
//!
//! Its maker writes; others map it for reading, unless it was made for others to write. The seals keep its size, so
//! that a mapped word stays a word: a file that could shrink would end its readers with SIGBUS.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{checked, file_limit};

/// Bytes of a word.
const WORD: usize = size_of::<u64>();

/// Shared words that this process may write: its own, or some made for others.
#[derive(Debug)]
pub struct SharedWords {
    file: OwnedFd,
    mapping: Mapping,
}

impl SharedWords {
    /// Makes `words` zeroed words under `name` (which only `/proc/PID/fd` shows), maps them for
    /// reading and writing, and seals the file: its size is fixed and no further mapping can write.
    ///
    /// # Errors
    /// No descriptors or memory left; `FileTooLarge` beyond what files may have (`RLIMIT_FSIZE`), which goes for nameless
    /// ones as well; EINVAL on a kernel before 5.1 (`F_SEAL_FUTURE_WRITE`).
    pub fn create(name: &std::ffi::CStr, words: usize) -> io::Result<SharedWords> {
        SharedWords::sealed(name, words, libc::F_SEAL_FUTURE_WRITE)
    }

    /// As [`SharedWords::create`], but a holder of the file may map it for writing too ([`SharedWords::map`]).
    ///
    /// # Errors
    /// No descriptors or memory left.
    pub fn create_for_writers(name: &std::ffi::CStr, words: usize) -> io::Result<SharedWords> {
        SharedWords::sealed(name, words, 0)
    }

    /// Maps the first `words` words of `file` for reading and writing.
    ///
    /// # Errors
    /// As [`ReadOnlyWords::map`]; EPERM for words that only their maker writes.
    pub fn map(file: File, words: usize) -> io::Result<SharedWords> {
        check(&file, words)?;
        let mapping = Mapping::new(file.as_fd(), words, libc::PROT_READ | libc::PROT_WRITE)?;
        Ok(SharedWords { file: file.into(), mapping })
    }

    /// Maps the first `words` words of the file behind descriptor `number`, which this process inherited; the descriptor
    /// stays open.
    ///
    /// # Errors
    /// EBADF if it is closed; as [`SharedWords::map`].
    pub fn inherited(number: u32, words: usize) -> io::Result<SharedWords> {
        let closed = || io::Error::from_raw_os_error(libc::EBADF);
        let number = libc::c_int::try_from(number).map_err(|_| closed())?;
        // SAFETY: takes its arguments by value; a number that is not open is refused.
        let again = checked(unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) })?;
        // SAFETY: the descriptor was just opened and has no other owner.
        let file = unsafe { OwnedFd::from_raw_fd(again) };
        SharedWords::map(file.into(), words)
    }

    /// These words, mapped once more.
    ///
    /// # Errors
    /// No descriptors or memory left; EPERM for words that only their maker writes.
    pub fn again(&self) -> io::Result<SharedWords> {
        SharedWords::map(self.file.try_clone()?.into(), self.mapping.words)
    }

    /// Another descriptor of the file, with the lowest free number from `least` on, which a program that is started may
    /// inherit ([`crate::process::Program::handing_down`]).
    ///
    /// # Errors
    /// No descriptors left below the limit of open files.
    pub fn descriptor_from(&self, least: u32) -> io::Result<OwnedFd> {
        let least = libc::c_int::try_from(least).unwrap_or(libc::c_int::MAX);
        // SAFETY: takes its arguments by value.
        let fd = unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, least) };
        // SAFETY: the descriptor was just opened and has no other owner.
        checked(fd).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
    }

    fn sealed(name: &std::ffi::CStr, words: usize, seal: libc::c_int) -> io::Result<SharedWords> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a terminated string that outlives the call.
        let fd = checked(unsafe { libc::memfd_create(name.as_ptr(), flags) })?;
        // SAFETY: the descriptor was just opened and has no other owner.
        let file = unsafe { OwnedFd::from_raw_fd(fd) };
        let bytes = libc::off_t::try_from(words.saturating_mul(WORD))
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        file_limit::allows(bytes as u64)?;
        // SAFETY: takes its arguments by value.
        checked(unsafe { libc::ftruncate(file.as_raw_fd(), bytes) })?;
        let mapping = Mapping::new(file.as_fd(), words, libc::PROT_READ | libc::PROT_WRITE)?;
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL | seal;
        // SAFETY: takes its arguments by value.
        checked(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) })?;
        Ok(SharedWords { file, mapping })
    }

    #[must_use]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is readable and writable, holds this many words, is aligned to a
        // page, lives as long as `self`, and is only ever reached through atomics.
        unsafe { std::slice::from_raw_parts(self.mapping.start.as_ptr(), self.mapping.words) }
    }
}

impl AsFd for SharedWords {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Shared words that another process writes.
#[derive(Debug)]
pub struct ReadOnlyWords(Mapping);

impl ReadOnlyWords {
    /// Maps the first `words` words of `file` for reading; the file may be closed afterwards.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file is shorter; `PermissionDenied` if it is not sealed against
    /// shrinking (no memfd, or an unsealed one); what the kernel answers.
    pub fn map(file: &File, words: usize) -> io::Result<ReadOnlyWords> {
        check(file, words)?;
        Ok(ReadOnlyWords(Mapping::new(file.as_fd(), words, libc::PROT_READ)?))
    }

    /// How many words are mapped.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.words
    }

    /// Where they are mapped, until this is dropped. Readers must read atomically.
    #[must_use]
    pub fn address(&self) -> *const u64 {
        self.0.start.as_ptr().cast_const().cast()
    }

    /// Reads a word; beyond the end there is nothing but zero.
    ///
    /// `order` must be one that a load can have: anything but `Acquire` and `SeqCst` is taken as
    /// `Relaxed`.
    #[inline(always)]
    #[must_use]
    pub fn load(&self, index: usize, order: Ordering) -> u64 {
        if index >= self.0.words {
            return 0;
        }
        // SAFETY: the index was just checked; the mapping is readable, aligned and lives as long
        // as `self`; an atomic load does not write.
        let word = unsafe { &*self.0.start.as_ptr().add(index) };
        match order {
            Ordering::Acquire => word.load(Ordering::Acquire),
            Ordering::SeqCst => word.load(Ordering::SeqCst),
            _ => word.load(Ordering::Relaxed),
        }
    }
}

/// Whether `file` has `words` words, and will keep them.
fn check(file: &File, words: usize) -> io::Result<()> {
    // Asked before the length: what is sealed afterwards may have shrunk in between.
    // SAFETY: takes its arguments by value.
    let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
    if file.metadata()?.len() < words.saturating_mul(WORD) as u64 {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
    }
    if seals == -1 || seals & libc::F_SEAL_SHRINK == 0 {
        return Err(io::Error::from(io::ErrorKind::PermissionDenied));
    }
    Ok(())
}

/// A mapped range of words, unmapped when dropped.
#[derive(Debug)]
struct Mapping {
    start: NonNull<AtomicU64>,
    words: usize,
}

impl Mapping {
    fn new(file: BorrowedFd<'_>, words: usize, protection: libc::c_int) -> io::Result<Mapping> {
        let bytes = words.saturating_mul(WORD);
        // SAFETY: asks for a new range wherever there is room; the kernel checks the rest.
        let start = unsafe {
            libc::mmap(ptr::null_mut(), bytes, protection, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        match NonNull::new(start.cast()) {
            Some(start) => Ok(Mapping { start, words }),
            None => Err(io::Error::from(io::ErrorKind::AddrNotAvailable)),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is the one that `mmap` gave, and it is out of reach from now on.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.words * WORD) };
    }
}

// SAFETY: the mapping belongs to no thread, and its words are only reached through atomics.
unsafe impl Send for Mapping {}

// SAFETY: as for `Send`; shared references give nothing but atomic access.
unsafe impl Sync for Mapping {}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(words: &SharedWords) -> File {
        File::from(words.as_fd().try_clone_to_owned().unwrap())
    }

    #[test]
    fn what_one_mapping_writes_the_other_reads() {
        let ours = SharedWords::create(c"hourglass-test", 16).unwrap();
        let theirs = ReadOnlyWords::map(&opened(&ours), 16).unwrap();
        ours.words()[3].store(7, Ordering::Release);
        assert_eq!(theirs.load(3, Ordering::Acquire), 7);
        assert_eq!((theirs.count(), theirs.load(16, Ordering::Relaxed)), (16, 0));
    }

    #[test]
    fn words_made_for_writers_are_written_from_both_sides() {
        let ours = SharedWords::create_for_writers(c"hourglass-test", 4).unwrap();
        let theirs = SharedWords::map(opened(&ours), 4).unwrap();
        theirs.words()[1].store(5, Ordering::Release);
        assert_eq!(ours.words()[1].load(Ordering::Acquire), 5);
        let own = SharedWords::create(c"hourglass-test", 4).unwrap();
        assert!(SharedWords::map(opened(&own), 4).is_err(), "only its maker writes it");
    }

    #[test]
    fn an_inherited_descriptor_is_mapped_and_a_closed_one_refused() {
        let ours = SharedWords::create_for_writers(c"hourglass-test", 4).unwrap();
        let handed = ours.descriptor_from(200).unwrap();
        let number = handed.as_raw_fd() as u32;
        assert!(number >= 200);
        let theirs = SharedWords::inherited(number, 4).unwrap();
        theirs.words()[2].store(9, Ordering::Release);
        assert_eq!(ours.again().unwrap().words()[2].load(Ordering::Acquire), 9);
        let closed = SharedWords::inherited(u32::MAX, 4).unwrap_err();
        assert_eq!(closed.raw_os_error(), Some(libc::EBADF));
        // Its holder cannot make its readers end by SIGBUS.
        let file = File::from(handed);
        assert!(file.set_len(0).is_err() && file.set_len(8).is_err());
    }

    #[test]
    fn short_or_unsealed_files_are_refused() {
        let ours = SharedWords::create(c"hourglass-test", 4).unwrap();
        let short = ReadOnlyWords::map(&opened(&ours), 5).unwrap_err();
        assert_eq!(short.kind(), io::ErrorKind::UnexpectedEof);
        let program = File::open("/proc/self/exe").unwrap();
        let unsealed = ReadOnlyWords::map(&program, 4).unwrap_err();
        assert_eq!(unsealed.kind(), io::ErrorKind::PermissionDenied);
    }

    /// The bug: a program with a small limit for files was ended by SIGXFSZ.
    #[test]
    fn words_beyond_the_limit_for_files_are_refused() {
        let said = crate::fork::child_says(10_000, || {
            file_limit::set(4096);
            let small = SharedWords::create(c"hourglass-test", 512).is_ok();
            let large = SharedWords::create(c"hourglass-test", 513).map(drop);
            small && large.is_err_and(|error| error.kind() == io::ErrorKind::FileTooLarge)
        });
        assert!(said.unwrap());
    }

    #[test]
    fn the_size_is_sealed() {
        let ours = SharedWords::create(c"hourglass-test", 4).unwrap();
        assert!(opened(&ours).set_len(8).is_err());
        assert!(opened(&ours).set_len(4096).is_err());
    }
}
