//! The kernel's trace: finding `tracefs`, a private instance of it, its ring buffers, and the
//! formats of its events.
//!
//! Owns: the files of an instance and their removal, the layout of sub-buffers and of events as
//! the kernel describes them. Nothing of the global trace is touched, and nothing is assumed
//! about an event: identifiers, places and sizes come from its `format` file.
//! Must not: know which events matter, convert times, keep events.
//!
//! Sources: `Documentation/trace/ftrace.rst` and `ring-buffer-design.rst` of the kernel;
//! `events/header_page` and `events/header_event` of a running one.

mod calls;
mod format;
mod instance;
mod mount;
mod page;
mod stale_instances;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;

pub use calls::{ABSOLUTE, CallFamily, FutexWaiting, waiting_calls};
pub use format::{Field, Format};
pub use instance::{Instance, Reader, RingCounts};
pub use mount::{Tracefs, Unavailable};
pub use page::{Entries, Page, PageLayout, RingEntry};

/// A file of the trace that could not be read or written.
#[derive(Debug, Error)]
#[error("{}: {source}", .path.display())]
pub struct TraceFileError {
    pub path: PathBuf,
    pub source: io::Error,
}

/// Reads the text of a file in pieces as large as any of them is: some give out what they have to
/// the first read only, however short that is.
fn text(path: &Path) -> io::Result<String> {
    /// More than the longest format that there is.
    const LONGEST: usize = 64 << 10;
    let mut file = File::open(path)?;
    let (mut piece, mut bytes) = (vec![0; LONGEST], Vec::new());
    loop {
        match file.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => bytes.extend_from_slice(piece.get(..length).unwrap_or(&piece)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl TraceFileError {
    fn new(path: &Path, source: io::Error) -> TraceFileError {
        TraceFileError { path: path.to_path_buf(), source }
    }
}
