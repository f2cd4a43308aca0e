//! A private instance of the trace: rings and switches of its own, removed at the end.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::mount::Tracefs;
use super::{TraceFileError, stale_instances, text};
use crate::guardian::{Guardian, UndoAction, UndoGuard};

/// How often removal is tried here before it is left to the guardian.
const TRIES: u32 = 20;

/// Pause between two tries.
const PAUSE: Duration = Duration::from_millis(5);

/// An instance of the trace that belongs to this process.
///
/// It is removed when dropped, and by a tiny process of its own where that does not come to pass:
/// after SIGKILL, an abort, a stack overflow. Nothing outside it is changed. [`Reader`]s and
/// [`Instance::marker`] must be dropped before it.
#[derive(Debug)]
pub struct Instance {
    path: PathBuf,
    /// Its end, should this process not live to see to it; the first one first.
    undo: Vec<UndoGuard>,
    /// An open file of the instance, for which the kernel refuses to let others remove it.
    pin: Option<File>,
}

/// The kernel's counts of the ring of one CPU (`per_cpu/cpuN/stats`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingCounts {
    /// Entries lost because newer ones took their place.
    pub overrun: u64,
    /// Entries lost because one came while the ring was being written to its end.
    pub commit_overrun: u64,
    /// Entries refused by a full ring.
    pub dropped: u64,
}

impl RingCounts {
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.overrun.saturating_add(self.commit_overrun).saturating_add(self.dropped)
    }
}

impl Instance {
    /// Makes one, switched off and without events. Instances of processes that do not live any
    /// more are removed first. To be called while the process is small: a child is made of it,
    /// and pages written before are copied when they are written next.
    ///
    /// # Errors
    /// The kernel refuses; nothing is left behind.
    pub fn create(tracefs: &Tracefs) -> Result<Instance, TraceFileError> {
        let instances = tracefs.path().join("instances");
        stale_instances::remove(&instances);
        let path = instances.join(stale_instances::new_name());
        let failed = |source| TraceFileError::new(&path, source);
        fs::create_dir(&path).map_err(failed)?;
        let mut instance = Instance { path: path.clone(), undo: Vec::new(), pin: None };
        instance.undo = keep(&path).map_err(failed)?;
        instance.write("tracing_on", "0")?;
        Ok(instance)
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The trace clocks that this kernel offers.
    #[must_use]
    pub fn clocks(&self) -> Vec<String> {
        let offered = text(&self.path.join("trace_clock")).unwrap_or_default();
        // The one in use stands in brackets.
        offered
            .split_ascii_whitespace()
            .map(|name| name.trim_matches(['[', ']']).to_owned())
            .collect()
    }

    /// Chooses the clock that stamps the events.
    ///
    /// # Errors
    /// The kernel does not have it.
    pub fn set_clock(&self, name: &str) -> Result<(), TraceFileError> {
        self.write("trace_clock", name)
    }

    /// Records events of these CPUs only and gives each a ring of `kilobytes`; the others' are as
    /// small as the kernel makes them.
    ///
    /// # Errors
    /// There is no such CPU, or not the memory.
    pub fn set_cpus(&self, cpus: &[u32], kilobytes: u64) -> Result<(), TraceFileError> {
        self.write("tracing_cpumask", &mask(cpus))?;
        self.write("buffer_size_kb", "8")?;
        cpus.iter().try_for_each(|cpu| {
            let file = format!("per_cpu/cpu{cpu}/buffer_size_kb");
            self.write(&file, &kilobytes.to_string())
        })
    }

    /// The size of a CPU's ring as the kernel made it, bytes; `None` if it does not say.
    #[must_use]
    pub fn ring_bytes(&self, cpu: u32) -> Option<u64> {
        let path = self.path.join(format!("per_cpu/cpu{cpu}/buffer_size_kb"));
        let kilobytes = text(&path).ok()?.trim().parse::<u64>().ok()?;
        kilobytes.checked_mul(1024)
    }

    /// Has an event recorded.
    ///
    /// # Errors
    /// The kernel does not have it, or refuses.
    pub fn enable(&self, system: &str, name: &str) -> Result<(), TraceFileError> {
        self.write(&format!("events/{system}/{name}/enable"), "1")
    }

    /// Has an event recorded only where a condition on its fields holds, as `id == 7`.
    ///
    /// # Errors
    /// The kernel does not have it, or refuses.
    pub fn filter(&self, system: &str, name: &str, condition: &str) -> Result<(), TraceFileError> {
        self.write(&format!("events/{system}/{name}/filter"), condition)
    }

    /// Has something done when an event comes, as `stacktrace if prev_pid == 7`.
    ///
    /// # Errors
    /// The kernel does not have it, or refuses.
    pub fn trigger(&self, system: &str, name: &str, what: &str) -> Result<(), TraceFileError> {
        self.write(&format!("events/{system}/{name}/trigger"), what)
    }

    /// Switches recording on or off; what was recorded stays.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn switch(&self, on: bool) -> Result<(), TraceFileError> {
        self.write("tracing_on", if on { "1" } else { "0" })
    }

    /// The file that puts what is written to it among the events, on the CPU that writes.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn marker(&self) -> Result<File, TraceFileError> {
        let path = self.path.join("trace_marker");
        let opened = OpenOptions::new().write(true).open(&path);
        opened.map_err(|source| TraceFileError { path, source })
    }

    /// Opens the ring of a CPU for reading.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn reader(&mut self, cpu: u32) -> Result<Reader, TraceFileError> {
        let path = self.path.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
        let open = || OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path);
        let failed = |source| TraceFileError::new(&path, source);
        if self.pin.is_none() {
            self.pin = Some(open().map_err(failed)?);
        }
        Ok(Reader { cpu, file: open().map_err(failed)? })
    }

    /// The kernel's counts of a CPU's ring.
    #[must_use]
    pub fn counts(&self, cpu: u32) -> RingCounts {
        let path = self.path.join(format!("per_cpu/cpu{cpu}/stats"));
        counts(&text(&path).unwrap_or_default())
    }

    fn write(&self, file: &str, text: &str) -> Result<(), TraceFileError> {
        let path = self.path.join(file);
        fs::write(&path, text).map_err(|source| TraceFileError { path, source })
    }

    /// Whether the instance is gone.
    fn removed(&self) -> bool {
        for _ in 0..TRIES {
            match fs::remove_dir(&self.path) {
                Ok(()) => return true,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return true,
                Err(_) => thread::sleep(PAUSE),
            }
        }
        false
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // Events may go on until the instance is gone, which ends them anyway.
        let _ = self.switch(false);
        drop(self.pin.take());
        if self.removed() {
            self.undo.drain(..).for_each(UndoGuard::forget);
        }
        // Remaining undo actions are carried out here: the guardian tries for longer.
    }
}

/// Has a guardian switch an instance off and remove it if its owner does not.
fn keep(path: &Path) -> std::io::Result<Vec<UndoGuard>> {
    let guardian = Guardian::start()?;
    let switch = UndoAction::Write { path: path.join("tracing_on"), text: "0".to_owned() };
    [switch, UndoAction::Remove(path.to_path_buf())]
        .iter()
        .map(|undo| guardian.keep(undo))
        .collect()
}

/// The ring of one CPU, read piece by piece without waiting.
#[derive(Debug)]
pub struct Reader {
    cpu: u32,
    file: File,
}

impl Reader {
    #[must_use]
    pub fn cpu(&self) -> u32 {
        self.cpu
    }

    /// Takes the next piece into `room`, which must be as large as
    /// [`PageLayout::size`](super::PageLayout::size) says. Returns its length; `None` if the ring
    /// is empty.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn take(&mut self, room: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            return match self.file.read(room) {
                Ok(0) => Ok(None),
                Ok(length) => Ok(Some(length)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                Err(error) => Err(error),
            };
        }
    }
}

/// CPUs as the kernel wants them: hexadecimal, 32 to a word, the highest first.
fn mask(cpus: &[u32]) -> String {
    let words = cpus.iter().max().map_or(1, |most| most / 32 + 1);
    let word = |number: u32| {
        let bits =
            cpus.iter().filter(|cpu| **cpu / 32 == number).fold(0, |w, cpu| w | 1 << (cpu % 32));
        format!("{bits:08x}")
    };
    (0..words).rev().map(word).collect::<Vec<String>>().join(",")
}

fn counts(text: &str) -> RingCounts {
    let count = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
    };
    RingCounts {
        overrun: count("overrun"),
        commit_overrun: count("commit overrun"),
        dropped: count("dropped events"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_hexadecimal_words() {
        assert_eq!(mask(&[0]), "00000001");
        assert_eq!(mask(&[1, 3]), "0000000a");
        assert_eq!(mask(&[31, 32, 65]), "00000002,00000001,80000000");
        assert_eq!(mask(&[]), "00000000");
    }

    #[test]
    fn counts_by_name() {
        let text = "entries: 5\noverrun: 7\ncommit overrun: 2\nbytes: 9\ndropped events: 1\n";
        let expected = RingCounts { overrun: 7, commit_overrun: 2, dropped: 1 };
        assert_eq!((counts(text), counts(text).lost()), (expected, 10));
        assert_eq!(counts("overrun 3\n"), RingCounts::default());
    }
}
