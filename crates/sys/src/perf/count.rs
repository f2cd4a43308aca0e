//! A counter of one number, whatever it counts.
//!
//! Owns: opening and reading it. Must not: know what the number is for.

use std::fs::File;
use std::io::{self, Read};

use super::{PerfAttributes, open_on};

/// One open counter (`perf_event_open(2)`).
#[derive(Debug)]
pub(crate) struct Count(File);

impl Count {
    /// Opens a counter of thread `tid`; 0 is the calling one.
    ///
    /// # Errors
    /// What the kernel answers.
    pub(crate) fn open(tid: u32, attributes: PerfAttributes) -> io::Result<Count> {
        open_on(tid, attributes).map(|event| Count(File::from(event)))
    }

    /// The count so far: a system call, some 300 ns.
    ///
    /// # Errors
    /// `UnexpectedEof` where the processor has no counter left for this one.
    pub(crate) fn read(&self) -> io::Result<u64> {
        let mut bytes = [0; size_of::<u64>()];
        (&self.0).read_exact(&mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }
}
