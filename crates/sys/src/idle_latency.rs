//! Keeping the CPUs out of deep idle states: the kernel honours a latency written to
//! `/dev/cpu_dma_latency` for as long as the file is open.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

/// Where the request is made. `sudo chmod a+w` grants it.
pub const DEVICE: &str = "/dev/cpu_dma_latency";

/// A latency request for all CPUs; ends when dropped.
#[derive(Debug)]
pub struct IdleLatency {
    _open: File,
}

impl IdleLatency {
    /// Asks for at most `us` microseconds of latency when a CPU leaves idle; 0 has idle CPUs poll.
    ///
    /// # Errors
    /// The device is missing or may not be written.
    pub fn hold(us: u32) -> io::Result<IdleLatency> {
        let mut device = OpenOptions::new().write(true).open(DEVICE)?;
        // The kernel takes a signed 32-bit number in the machine's byte order.
        device.write_all(&i32::try_from(us).unwrap_or(i32::MAX).to_ne_bytes())?;
        Ok(IdleLatency { _open: device })
    }
}
