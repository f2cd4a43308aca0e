//! The wait of the standard library.

use std::time::Duration;

/// A thread's way to wait.
#[derive(Clone, Debug, Default)]
pub struct Alarm;

impl Alarm {
    /// Nothing to be asked for.
    #[must_use]
    pub fn new() -> Alarm {
        Alarm
    }

    /// Waits `length_ns`, and longer by the latency of the kernel.
    pub fn wait(&mut self, length_ns: u64) {
        std::thread::sleep(Duration::from_nanos(length_ns));
    }

    /// CPU time of the calling thread: not known.
    #[must_use]
    pub fn cpu_time_ns(&self) -> Option<u64> {
        None
    }

    /// The CPU that the thread runs on: not known.
    #[must_use]
    pub fn cpu(&self) -> u32 {
        0
    }
}
