//! The registers of the High Precision Event Timer, mapped from `/dev/hpet`.
//!
//! IA-PC HPET Specification 1.0a, section 2.3. What the registers mean is not known here.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::ptr::NonNull;

/// The part that is mapped; the registers begin at its start, and the kernel maps no less.
const LENGTH: usize = 4096;

/// A 64-bit register that is read, by its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Register {
    /// General capabilities and ID.
    Capabilities = 0x000,
    /// General configuration.
    Configuration = 0x010,
    /// Main counter.
    Counter = 0x0f0,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `open(2)`.
    #[error("cannot open: {0}")]
    Open(#[source] io::Error),
    /// `mmap(2)`.
    #[error("cannot map: {0}")]
    Map(#[source] io::Error),
    /// It is neither a device nor a file that is long enough.
    #[error("not a device, and shorter than a page")]
    TooShort,
}

/// The registers, mapped to be read; unmapped on drop. The device stays in use for as long.
#[derive(Debug)]
pub struct Mapping(NonNull<u8>);

// SAFETY: the mapping belongs to no thread, and is only read, with volatile loads.
unsafe impl Send for Mapping {}
// SAFETY: as above; loads from several threads do not disturb each other.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the registers of `device` (`/dev/hpet`, or in tests a file of at least 4096 bytes that is not truncated).
    /// The file descriptor is closed before this returns.
    ///
    /// # Errors
    /// The step that failed. Open: ENOENT without the device, EACCES without the right to read
    /// it, EBUSY if all its timers are taken. Map: EACCES if the kernel was started with
    /// `hpet_mmap=0`, ENOSYS if it was built without `CONFIG_HPET_MMAP`.
    pub fn open(device: &Path) -> Result<Mapping, Error> {
        // Without waiting, should a pipe stand in its place.
        let mut options = File::options();
        options.read(true).custom_flags(libc::O_NONBLOCK);
        let file = options.open(device).map_err(Error::Open)?;
        let metadata = file.metadata().map_err(Error::Open)?;
        if !metadata.file_type().is_char_device() && metadata.len() < LENGTH as u64 {
            return Err(Error::TooShort);
        }
        // SAFETY: a new mapping at an address of the kernel's choice, over no memory of ours.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                LENGTH,
                libc::PROT_READ,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(address.cast::<u8>()) {
            Some(start) if address != libc::MAP_FAILED => Ok(Mapping(start)),
            _ => Err(Error::Map(io::Error::last_os_error())),
        }
    }

    /// The lower half of `register`, by one 32-bit load.
    #[inline]
    #[must_use]
    pub fn low(&self, register: Register) -> u32 {
        self.half(register as usize)
    }

    /// The upper half of `register`, by one 32-bit load.
    #[inline]
    #[must_use]
    pub fn high(&self, register: Register) -> u32 {
        self.half(register as usize + size_of::<u32>())
    }

    /// The whole of `register`, by one aligned 64-bit load, which is not torn.
    #[cfg(target_pointer_width = "64")]
    #[inline]
    #[must_use]
    pub fn whole(&self, register: Register) -> u64 {
        let bytes = self.0.as_ptr().wrapping_add(register as usize);
        // SAFETY: the offset is a multiple of 8 below the length mapped at a page's start; the
        // mapping lives as long as self; volatile, since the device changes what lies there.
        u64::from_le(unsafe { bytes.cast::<u64>().read_volatile() })
    }

    #[inline]
    fn half(&self, offset: usize) -> u32 {
        let bytes = self.0.as_ptr().wrapping_add(offset);
        // SAFETY: the offset is a multiple of 4 below the length mapped at a page's start; the
        // mapping lives as long as self; volatile, since the device changes what lies there.
        u32::from_le(unsafe { bytes.cast::<u32>().read_volatile() })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `open`, and nothing refers to it after self.
        unsafe { libc::munmap(self.0.as_ptr().cast(), LENGTH) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn registers(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("hg-hpet-{name}-{}", std::process::id()));
        let mut bytes = vec![0u8; LENGTH];
        bytes[0xf0..0xf8].copy_from_slice(&0xfedc_ba98_7654_3210_u64.to_le_bytes());
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn open_files(path: &Path) -> usize {
        let entries = std::fs::read_dir("/proc/self/fd").unwrap();
        entries.flatten().filter(|e| std::fs::read_link(e.path()).is_ok_and(|p| p == path)).count()
    }

    fn mapped(path: &Path) -> bool {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.contains(path.to_str().unwrap())
    }

    /// The thesis' library (`clock/tests/clocks/thesis_defects.rs`, h) kept the descriptor open until the process
    /// ended, and never unmapped.
    #[test]
    fn nothing_stays_open_or_mapped() {
        let path = registers("drop");
        let mapping = Mapping::open(&path).unwrap();
        assert_eq!(open_files(&path), 0);
        assert!(mapped(&path));
        drop(mapping);
        assert!(!mapped(&path));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn both_halves_and_the_whole() {
        let path = registers("halves");
        let mapping = Mapping::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(mapping.low(Register::Counter), 0x7654_3210);
        assert_eq!(mapping.high(Register::Counter), 0xfedc_ba98);
        #[cfg(target_pointer_width = "64")]
        assert_eq!(mapping.whole(Register::Counter), 0xfedc_ba98_7654_3210);
    }

    #[test]
    fn what_cannot_be_mapped_leaves_nothing_behind() {
        let missing = Mapping::open(Path::new("/nonexistent/hpet"));
        assert!(matches!(missing, Err(Error::Open(e)) if e.raw_os_error() == Some(libc::ENOENT)));
        let path = std::env::temp_dir().join(format!("hg-hpet-short-{}", std::process::id()));
        std::fs::write(&path, [0u8; 8]).unwrap();
        assert!(matches!(Mapping::open(&path), Err(Error::TooShort)));
        assert_eq!(open_files(&path), 0);
        std::fs::remove_file(&path).unwrap();
    }
}
