//! What the kernel wrote into its log.
//!
//! Owns: counting lines of one kind. Must not: wait for more, keep what it read.

use std::io::{ErrorKind, Read};

use super::files::Files;

/// Throttled for the first time since boot (`kernel/sched/rt.c`); it is not said again.
pub(super) const RT_THROTTLING: &str = "sched: RT throttling activated";

/// The log, one record with each read.
const LOG: &str = "dev/kmsg";

/// Longer than any record (`CONSOLE_EXT_LOG_MAX` of the kernel).
const RECORD_BYTES: usize = 8 << 10;

/// Records read at most; the log holds fewer.
const MOST_RECORDS: u32 = 1 << 16;

/// How many records have these words; `None` where the log cannot be read.
pub(super) fn count(files: &Files, words: &str) -> Option<u64> {
    let mut log = files.without_waiting(LOG)?;
    let mut record = [0; RECORD_BYTES];
    let mut found = 0u64;
    for _ in 0..MOST_RECORDS {
        match log.read(&mut record) {
            Ok(0) => break,
            Ok(length) => {
                let text = String::from_utf8_lossy(record.get(..length)?);
                found = found.saturating_add(text.matches(words).count() as u64);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            // Older records were overwritten meanwhile; the next read goes on behind them.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            Err(_) => return None,
        }
    }
    Some(found)
}
