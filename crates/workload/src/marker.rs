//! Marks that a thread writes into the kernel's trace: behind a wake-up that was later than all before it.
//!
//! Owns: their text, and that a thread writes few. Must not: write anything while nothing is traced.
//!
//! A run has about ln(n) marks of n wake-ups. Each costs its thread about a microsecond, behind the moment
//! that was measured.

use std::fs::File;
use std::io::{Cursor, Write as _};
use std::sync::Weak;

/// What a mark begins with; the thread's number in the run and its lateness in ns follow.
pub const LATE_MARK: &str = "hourglass-late ";

/// Longest text of a mark: its beginning and two numbers.
const LONGEST: usize = 64;

#[derive(Clone, Debug)]
pub struct Marker {
    /// The kernel's file. The recorder of the trace holds it, since an open one keeps the trace alive.
    file: Weak<File>,
    thread: u32,
    latest_ns: u64,
}

impl Marker {
    pub fn new(file: Weak<File>, thread: u32) -> Marker {
        Marker { file, thread, latest_ns: 0 }
    }

    /// Marks a wake-up that was `ns` late, if none before it was as late. A mark that the kernel does not
    /// take is missing, which disturbs nothing.
    #[inline]
    pub(crate) fn mark_if_later(&mut self, ns: u64) {
        if ns > self.latest_ns {
            self.latest_ns = ns;
            self.write(ns);
        }
    }

    #[cold]
    fn write(&self, ns: u64) {
        let Some(file) = self.file.upgrade() else { return };
        let mut text = [0; LONGEST];
        let mut cursor = Cursor::new(&mut text[..]);
        let fits = writeln!(cursor, "{LATE_MARK}{} {ns}", self.thread).is_ok();
        let length = usize::try_from(cursor.position()).unwrap_or(0);
        if let Some(text) = text.get(..length).filter(|_| fits) {
            let _ = (&*file).write(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_wake_up_is_marked_if_it_is_the_latest_so_far() {
        let path = std::env::temp_dir().join(format!("hourglass-marks-{}", std::process::id()));
        let file = Arc::new(File::create(&path).unwrap());
        let mut marker = Marker::new(Arc::downgrade(&file), 7);
        [900, 800, 900, 1_200, u64::MAX, 5].into_iter().for_each(|ns| marker.mark_if_later(ns));
        drop(file);
        // The trace is not recorded any more.
        Marker { latest_ns: 0, ..marker }.mark_if_later(1);
        let wanted =
            format!("hourglass-late 7 900\nhourglass-late 7 1200\nhourglass-late 7 {}\n", u64::MAX);
        assert_eq!(fs::read_to_string(&path).unwrap(), wanted);
        fs::remove_file(path).unwrap();
    }
}
