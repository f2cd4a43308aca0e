//! Memory that processes share: a sealed, nameless file (`memfd_create(2)`) seen as 64-bit words.
//!
//! Whoever makes it writes; everybody else maps it for reading, unless it was made for others to
//! write. The seals keep its size, so that a mapped word stays a word: a file that could shrink would
//! end its readers with SIGBUS.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::checked;

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
    /// No descriptors or memory left; EINVAL on a kernel before 5.1 (`F_SEAL_FUTURE_WRITE`).
    pub fn create(name: &std::ffi::CStr, words: usize) -> io::Result<SharedWords> {
        SharedWords::sealed(name, words, libc::F_SEAL_FUTURE_WRITE)
    }

    /// The same, but whoever has the file may map it for writing too ([`SharedWords::map`]).
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

    fn sealed(name: &std::ffi::CStr, words: usize, seal: libc::c_int) -> io::Result<SharedWords> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a terminated string that outlives the call.
        let fd = checked(unsafe { libc::memfd_create(name.as_ptr(), flags) })?;
        // SAFETY: the descriptor was just opened and is owned by nobody else.
        let file = unsafe { OwnedFd::from_raw_fd(fd) };
        let bytes = libc::off_t::try_from(words.saturating_mul(WORD))
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        // SAFETY: takes its arguments by value.
        checked(unsafe { libc::ftruncate(file.as_raw_fd(), bytes) })?;
        let mapping = Mapping::new(file.as_fd(), words, libc::PROT_READ | libc::PROT_WRITE)?;
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL | seal;
        // SAFETY: takes its arguments by value.
        checked(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) })?;
        Ok(SharedWords { file, mapping })
    }

    /// The words.
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

/// Shared words that somebody else writes.
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

    /// Where they are mapped, until this is dropped. Whoever reads by it reads atomically.
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

/// Whether `file` has so many words, and will keep them.
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
        // SAFETY: the range is the one that `mmap` gave, and nobody can reach it any more.
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
    fn short_or_unsealed_files_are_refused() {
        let ours = SharedWords::create(c"hourglass-test", 4).unwrap();
        let short = ReadOnlyWords::map(&opened(&ours), 5).unwrap_err();
        assert_eq!(short.kind(), io::ErrorKind::UnexpectedEof);
        let program = File::open("/proc/self/exe").unwrap();
        let unsealed = ReadOnlyWords::map(&program, 4).unwrap_err();
        assert_eq!(unsealed.kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn the_size_is_sealed() {
        let ours = SharedWords::create(c"hourglass-test", 4).unwrap();
        assert!(opened(&ours).set_len(8).is_err());
        assert!(opened(&ours).set_len(4096).is_err());
    }
}
