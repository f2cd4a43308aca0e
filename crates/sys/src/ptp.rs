//! Hardware clocks of network cards and hypervisors, `/dev/ptpN` (`linux/ptp_clock.h`).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use crate::checked;
use crate::clock::{try_now_ns, try_resolution_ns};

/// `_IOR('=', 1, struct ptp_clock_caps)`; libc does not carry it on every target.
const PTP_CLOCK_GETCAPS: libc::c_ulong = 0x8050_3d01;

/// The kind of clock number that names a file (`CLOCKFD` in the kernel's headers).
const CLOCKFD: libc::clockid_t = 3;

/// An open clock device; closed on drop.
#[derive(Debug)]
pub struct Device(File);

/// Capabilities that a device reports; times are read from all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Greatest adjustment of the rate, parts per billion.
    pub max_adjustment_ppb: i32,
    /// Whether device and system time can be read together by hardware.
    pub cross_timestamps: bool,
}

impl Device {
    /// Opens `device` for reading.
    ///
    /// # Errors
    /// ENOENT without the device, EACCES without the right to read it.
    pub fn open(device: &Path) -> io::Result<Device> {
        let device = Device(File::open(device)?);
        device.now_ns()?;
        Ok(device)
    }

    /// The device's time, ns; a system call and a read of the device.
    ///
    /// # Errors
    /// ENODEV if the device is gone, EINVAL if it is no clock.
    #[inline]
    pub fn now_ns(&self) -> io::Result<u64> {
        try_now_ns(self.clock())
    }

    /// The step that the kernel states, ns.
    ///
    /// # Errors
    /// As [`Device::now_ns`].
    pub fn resolution_ns(&self) -> io::Result<u64> {
        try_resolution_ns(self.clock())
    }

    /// Capabilities that the device reports.
    ///
    /// # Errors
    /// ENOTTY if it is no PTP clock.
    pub fn capabilities(&self) -> io::Result<Capabilities> {
        // `struct ptp_clock_caps`: twenty ints, the later ones reserved.
        let mut raw = [0 as libc::c_int; 20];
        let fd = self.0.as_raw_fd();
        // SAFETY: the request writes 80 bytes (its number says so) to a live local of that size.
        checked(unsafe { libc::ioctl(fd, PTP_CLOCK_GETCAPS as _, raw.as_mut_ptr()) })?;
        Ok(Capabilities { max_adjustment_ppb: raw[0], cross_timestamps: raw[6] != 0 })
    }

    fn clock(&self) -> libc::clockid_t {
        (!self.0.as_raw_fd() << 3) | CLOCKFD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_clock_is_refused() {
        let missing = Device::open(Path::new("/nonexistent/ptp0")).unwrap_err();
        assert_eq!(missing.raw_os_error(), Some(libc::ENOENT));
        let null = Device::open(Path::new("/dev/null")).unwrap_err();
        assert!(matches!(null.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP)), "{null}");
    }
}
