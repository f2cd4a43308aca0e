//! The PC's real-time clock as a source of periodic interrupts (`rtc(4)`).

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;

use crate::checked;

// ioctl numbers of linux/rtc.h; libc does not carry them.
const RTC_PIE_ON: libc::c_ulong = 0x7005;
const RTC_PIE_OFF: libc::c_ulong = 0x7006;
const RTC_IRQP_SET: libc::c_ulong = 0x4008_700c;

/// An RTC that interrupts periodically while this value lives.
#[derive(Debug)]
pub struct Rtc(File);

impl Rtc {
    /// Opens the device and starts interrupts at `hertz`, a power of two from 2 to 8192.
    ///
    /// # Errors
    /// The device is missing, busy (it can be opened once), or refuses the rate (EACCES above
    /// the limit in `/proc/sys/dev/rtc/max-user-freq` without privilege).
    pub fn open(device: &Path, hertz: u32) -> io::Result<Rtc> {
        let rtc = Rtc(File::open(device)?);
        rtc.control(RTC_IRQP_SET, libc::c_ulong::from(hertz))?;
        rtc.control(RTC_PIE_ON, 0)?;
        Ok(rtc)
    }

    /// Blocks until the next interrupt; returns how many came since the last call.
    ///
    /// # Errors
    /// Interrupted by a signal.
    pub fn wait(&self) -> io::Result<u64> {
        let mut data: libc::c_ulong = 0;
        // SAFETY: one unsigned long is read into a live local of that type, as rtc(4) says.
        let read = unsafe {
            libc::read(self.0.as_raw_fd(), (&raw mut data).cast(), size_of::<libc::c_ulong>())
        };
        // The low byte tells the kind of interrupt, the rest counts them.
        if read == -1 { Err(io::Error::last_os_error()) } else { Ok(data as u64 >> 8) }
    }

    fn control(&self, request: libc::c_ulong, argument: libc::c_ulong) -> io::Result<()> {
        // SAFETY: both requests take their argument by value and write nothing.
        checked(unsafe { libc::ioctl(self.0.as_raw_fd(), request as _, argument) }).map(|_| ())
    }
}

impl AsFd for Rtc {
    /// Readable when an interrupt came.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for Rtc {
    fn drop(&mut self) {
        // The device is closed next, which stops the interrupts too.
        let _ = self.control(RTC_PIE_OFF, 0);
    }
}
