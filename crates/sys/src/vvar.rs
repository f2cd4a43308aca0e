//! The page from which the kernel's own code in every process (the vDSO) tells the time: `[vvar]`
//! in `/proc/self/maps`.
//!
//! Its layout is the kernel's private matter and changes between versions. Here are words alone; a reader must prove
//! their meaning before using them.

use std::fs::File;
use std::io::Read;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// Words of the page that may be read.
pub const WORDS: usize = 512;

/// The value of [`watched`] while no word is watched ([`KernelPage::watch`]).
pub const UNWATCHED: u64 = u64::MAX;

static NOTHING: AtomicU64 = AtomicU64::new(UNWATCHED);
/// The word that is watched: one of the kernel's page, or [`NOTHING`].
static WATCHED: AtomicPtr<AtomicU64> = AtomicPtr::new((&raw const NOTHING).cast_mut());

/// The first page of `[vvar]`, which is mapped as long as the process lives.
#[derive(Clone, Copy, Debug)]
pub struct KernelPage {
    words: &'static [AtomicU64; WORDS],
}

impl KernelPage {
    /// Looks for the page: reads `/proc/self/maps`, some 50 us, the first time. `None` where the
    /// kernel maps none, or does not show it. Neither allocates nor locks.
    #[must_use]
    pub fn find() -> Option<KernelPage> {
        const UNKNOWN: usize = 0;
        const ABSENT: usize = 1;
        static START: AtomicUsize = AtomicUsize::new(UNKNOWN);
        let start = match START.load(Ordering::Relaxed) {
            UNKNOWN => {
                let maps = File::open("/proc/self/maps").ok()?;
                let start = start_of(maps, b"[vvar]").unwrap_or(ABSENT);
                START.store(start, Ordering::Relaxed);
                start
            }
            start => start,
        };
        if !start.is_multiple_of(size_of::<[u64; WORDS]>()) {
            return None;
        }
        // SAFETY: the kernel maps its time data there, readable and aligned to a page, until the
        // program is replaced; it has no writer in user space, and atomic loads do not write.
        let words = unsafe { &*std::ptr::with_exposed_provenance::<[AtomicU64; WORDS]>(start) };
        Some(KernelPage { words })
    }

    /// A word, as it is at this moment; `None` beyond the page.
    #[must_use]
    pub fn load(&self, index: usize) -> Option<u64> {
        self.words.get(index).map(|word| word.load(Ordering::Acquire))
    }

    /// From now on [`watched`] reads this word, for the whole process.
    pub fn watch(&self, index: usize) {
        if let Some(word) = self.words.get(index) {
            WATCHED.store(std::ptr::from_ref(word).cast_mut(), Ordering::Release);
        }
    }
}

/// The word that is watched, as it is at this moment; [`UNWATCHED`] without one.
#[inline(always)]
#[must_use]
pub fn watched() -> u64 {
    let word = WATCHED.load(Ordering::Relaxed);
    // SAFETY: either a static or a word of the kernel's page, which stays mapped; see `find`.
    unsafe { &*word }.load(Ordering::Relaxed)
}

/// Where lies what [`watched`] reads. For readers in other languages.
#[must_use]
pub fn watched_address() -> u64 {
    WATCHED.load(Ordering::Relaxed).expose_provenance() as u64
}

/// Where the mapping of that name begins: the number at the start of its line.
fn start_of(mut maps: impl Read, name: &[u8]) -> Option<usize> {
    const LONGEST: usize = 4096;
    let mut bytes = [0u8; LONGEST];
    let mut filled = 0;
    loop {
        let read = maps.read(bytes.get_mut(filled..)?).ok()?;
        filled += read;
        let mut rest = bytes.get(..filled)?;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, behind) = rest.split_at(end);
            if line.ends_with(name) {
                return number_at(line);
            }
            rest = behind.get(1..)?;
        }
        let left = rest.len();
        if read == 0 {
            return None;
        }
        // A path that fills the buffer belongs to no mapping of the kernel's.
        let left = if left == LONGEST { 0 } else { left };
        bytes.copy_within(filled - left..filled, 0);
        filled = left;
    }
}

/// The hexadecimal number that a line begins with.
fn number_at(line: &[u8]) -> Option<usize> {
    let end = line.iter().position(|byte| *byte == b'-')?;
    usize::from_str_radix(std::str::from_utf8(line.get(..end)?).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that gives a few bytes at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let length = self.1.min(self.0.len()).min(into.len());
            let (now, later) = self.0.split_at(length);
            into[..length].copy_from_slice(now);
            self.0 = later;
            Ok(length)
        }
    }

    #[test]
    fn a_mapping_is_found_by_its_name_however_the_file_comes() {
        let long = "x".repeat(9_000);
        let maps = format!(
            "00400000-00401000 r-xp 00000000 00:00 0 /bin/{long}\n\
             7ffe1000-7ffe5000 r--p 00000000 00:00 0          [vvar]\n\
             7ffe5000-7ffe6000 r--p 00000000 00:00 0          [vvar_vclock]\n"
        );
        for piece in [1, 7, 100, 4096, 100_000] {
            let start = start_of(Slow(maps.as_bytes(), piece), b"[vvar]");
            assert_eq!(start, Some(0x7ffe_1000), "{piece}");
            assert_eq!(start_of(Slow(maps.as_bytes(), piece), b"[vdso]"), None, "{piece}");
        }
    }

    #[test]
    fn the_page_can_be_read_to_its_end_and_no_further() {
        let Some(page) = KernelPage::find() else { return };
        assert!(page.load(WORDS - 1).is_some() && page.load(WORDS).is_none());
    }
}
