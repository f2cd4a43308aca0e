//! Where the trace is mounted, or why it cannot be had.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::format::Format;
use super::page::PageLayout;
use super::{TraceFileError, text};

/// Where every kernel mounts it by convention.
const USUAL_PLACE: &str = "/sys/kernel/tracing";

/// Why there is no trace to be had.
#[derive(Debug, Error)]
pub enum Unavailable {
    /// The kernel was built without it.
    #[error("this kernel has no tracefs (CONFIG_FTRACE)")]
    NotBuilt,
    #[error("tracefs is not mounted")]
    NotMounted,
    /// Only root may enter it.
    #[error("{}: {source}", .path.display())]
    Refused {
        /// The path that could not be entered.
        path: PathBuf,
        source: io::Error,
    },
}

impl Unavailable {
    /// The line that grants it.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Unavailable::NotBuilt => {
                "use a kernel with CONFIG_FTRACE=y and CONFIG_EVENT_TRACING=y".to_owned()
            }
            Unavailable::NotMounted => format!("sudo mount -t tracefs nodev {USUAL_PLACE}"),
            Unavailable::Refused { .. } => {
                "run it as root (sudo hourglass ...); in a container also: docker run --privileged"
                    .to_owned()
            }
        }
    }
}

/// The kernel's trace, mounted and open to this process.
#[derive(Clone, Debug)]
pub struct Tracefs {
    path: PathBuf,
}

impl Tracefs {
    /// Finds it among the mounts of this process.
    ///
    /// # Errors
    /// See [`Unavailable`].
    pub fn find() -> Result<Tracefs, Unavailable> {
        let mounts = fs::read("/proc/self/mounts").unwrap_or_default();
        let mut places = places(&mounts);
        let usual = PathBuf::from(USUAL_PLACE);
        if !places.contains(&usual) {
            places.push(usual);
        }
        let mut refused = None;
        for path in places {
            match usable(&path) {
                Ok(()) => return Ok(Tracefs { path }),
                Err(source) if source.kind() == io::ErrorKind::NotFound => {}
                Err(source) => refused = Some(Unavailable::Refused { path, source }),
            }
        }
        Err(refused.unwrap_or_else(|| {
            let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
            let built = known.split_ascii_whitespace().any(|word| word == "tracefs");
            if built { Unavailable::NotMounted } else { Unavailable::NotBuilt }
        }))
    }

    /// The trace at `path`, for tests with made-up files.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Tracefs {
        Tracefs { path: path.into() }
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The form of an event: `system` and `name` as in `sched`, `sched_switch`. `None` if this kernel does not have it,
    /// or describes it in a way that is not understood.
    #[must_use]
    pub fn format(&self, system: &str, name: &str) -> Option<Format> {
        let path = self.path.join("events").join(system).join(name).join("format");
        Format::parse(&text(&path).ok()?)
    }

    /// The form of the pieces of a ring.
    ///
    /// # Errors
    /// The description cannot be read, or not understood.
    pub fn page_layout(&self) -> Result<PageLayout, TraceFileError> {
        let path = self.path.join("events/header_page");
        let text = text(&path).map_err(|e| TraceFileError::new(&path, e))?;
        let unknown = || io::Error::new(io::ErrorKind::InvalidData, "not understood");
        PageLayout::parse(&text).ok_or_else(|| TraceFileError::new(&path, unknown()))
    }
}

/// Checks that instances can be made there.
fn usable(path: &Path) -> io::Result<()> {
    fs::read_dir(path.join("instances")).map(drop)
}

/// The places where a trace is mounted, by the lines of `/proc/self/mounts`.
fn places(mounts: &[u8]) -> Vec<PathBuf> {
    let lines = mounts.split(|byte| *byte == b'\n');
    let tracefs = lines.filter_map(|line| {
        let mut words = line.split(|byte| *byte == b' ');
        let (place, kind) = (words.nth(1)?, words.next()?);
        (kind == b"tracefs").then(|| PathBuf::from(std::ffi::OsString::from_vec(plain(place))))
    });
    tracefs.collect()
}

/// A name without the octal escapes of `/proc/self/mounts` (`\040` is a blank).
fn plain(escaped: &[u8]) -> Vec<u8> {
    let mut name = Vec::with_capacity(escaped.len());
    let mut rest = escaped;
    while let [first, after @ ..] = rest {
        rest = after;
        if *first == b'\\'
            && let Some((digits, behind)) = after.split_at_checked(3)
            && digits.iter().all(|digit| (b'0'..=b'7').contains(digit))
        {
            let byte = digits.iter().fold(0u32, |sum, digit| sum * 8 + u32::from(digit - b'0'));
            name.push(byte as u8);
            rest = behind;
        } else {
            name.push(*first);
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_found_by_their_type() {
        let mounts = b"proc /proc proc rw 0 0\n\
            nodev /mnt/my\\040trace\\134x tracefs rw 0 0\n\
            none /sys/kernel/tracing tracefs rw,nosuid 0 0\n\
            tracefs /elsewhere tmpfs rw 0 0\n";
        let expected = ["/mnt/my trace\\x", "/sys/kernel/tracing"].map(PathBuf::from);
        assert_eq!(places(mounts), expected);
        assert_eq!(
            places(b"a\nb c\n\xff \xff tracefs"),
            [PathBuf::from(std::ffi::OsString::from_vec(vec![0xff]))]
        );
    }

    #[test]
    fn each_reason_has_its_remedy() {
        let refused = Unavailable::Refused {
            path: USUAL_PLACE.into(),
            source: io::Error::from_raw_os_error(libc::EACCES),
        };
        assert!(refused.remedy().contains("sudo hourglass"));
        let line = Unavailable::NotMounted.remedy();
        assert_eq!(line, "sudo mount -t tracefs nodev /sys/kernel/tracing");
    }
}
