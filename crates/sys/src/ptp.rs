//! Hardware clocks of network cards and hypervisors, `/dev/ptpN` (`linux/ptp_clock.h`).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use crate::checked;
use crate::clock::{ClockId, now_ns, try_now_ns, try_resolution_ns};

/// `_IOR('=', 1, struct ptp_clock_caps)` and `_IOWR('=', 9, struct ptp_sys_offset_extended)`, without their sizes; libc
/// does not carry them on every target.
const PTP_CLOCK_GETCAPS: libc::c_ulong = 0x8000_3d01;
const PTP_SYS_OFFSET_EXTENDED: libc::c_ulong = 0xc000_3d09;
/// Comparisons of which the narrowest is taken; the kernel makes 25 at most.
const SAMPLES: usize = 9;

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

/// A device's time, read between two readings of `CLOCK_REALTIME`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// `CLOCK_REALTIME` before, ns since 1970.
    pub before_ns: u64,
    /// The device's time, ns since its epoch, which is that of TAI where `ptp4l` keeps it.
    pub device_ns: u64,
    /// `CLOCK_REALTIME` after, ns since 1970.
    pub after_ns: u64,
}

impl Comparison {
    /// Between the readings before and after; `None` where the clock was set back between them.
    #[must_use]
    pub fn bracket_ns(&self) -> Option<u64> {
        self.after_ns.checked_sub(self.before_ns)
    }
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
        let mut raw = [0; 80];
        self.request(PTP_CLOCK_GETCAPS, &mut raw)?;
        let int = |at| raw.get(at..).and_then(<[u8]>::first_chunk).copied().map(i32::from_ne_bytes);
        Ok(Capabilities {
            max_adjustment_ppb: int(0).unwrap_or_default(),
            cross_timestamps: int(24) != Some(0),
        })
    }

    /// Compares the device with `CLOCK_REALTIME`: the kernel reads that right before and after the device, several
    /// times, of which the narrowest is taken. Where its driver cannot, this program does the same.
    ///
    /// # Errors
    /// As [`Device::now_ns`]; EAGAIN while the clock is set.
    pub fn compare(&self) -> io::Result<Comparison> {
        // `struct ptp_sys_offset_extended`: the number of samples, three reserved words, and 25 times three times of
        // 64 bits of seconds, 32 of nanoseconds and 32 reserved ones.
        let mut raw = [0; 16 + 25 * 48];
        raw[..4].copy_from_slice(&(SAMPLES as u32).to_ne_bytes());
        let samples: Vec<Comparison> = match self.request(PTP_SYS_OFFSET_EXTENDED, &mut raw) {
            Ok(()) => raw[16..].chunks_exact(48).take(SAMPLES).filter_map(comparison).collect(),
            Err(_) => (0..SAMPLES).map(|_| self.read_between()).collect::<io::Result<_>>()?,
        };
        let ordered = samples.into_iter().filter(|sample| sample.bracket_ns().is_some());
        let narrowest = ordered.min_by_key(Comparison::bracket_ns);
        narrowest.ok_or_else(|| io::Error::from_raw_os_error(libc::EAGAIN))
    }

    fn read_between(&self) -> io::Result<Comparison> {
        let before_ns = now_ns(ClockId::Realtime);
        let device_ns = self.now_ns()?;
        Ok(Comparison { before_ns, device_ns, after_ns: now_ns(ClockId::Realtime) })
    }

    /// Asks the driver, which reads and writes `bytes`, whose length becomes part of the request's number.
    fn request<const N: usize>(
        &self,
        number: libc::c_ulong,
        bytes: &mut [u8; N],
    ) -> io::Result<()> {
        let request = number | (N as libc::c_ulong) << 16;
        let fd = self.0.as_raw_fd();
        // SAFETY: the request reads and writes N bytes (its number says so) of a live array of that size.
        checked(unsafe { libc::ioctl(fd, request as _, bytes.as_mut_ptr()) }).map(drop)
    }

    fn clock(&self) -> libc::clockid_t {
        (!self.0.as_raw_fd() << 3) | CLOCKFD
    }
}

/// Three times of the kernel; `None` before 1970.
fn comparison(bytes: &[u8]) -> Option<Comparison> {
    let time = |at: usize| {
        let seconds = i64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?);
        let ns = u32::from_ne_bytes(*bytes.get(at + 8..)?.first_chunk()?);
        u64::try_from(seconds).ok()?.checked_mul(1_000_000_000)?.checked_add(ns.into())
    };
    Some(Comparison { before_ns: time(0)?, device_ns: time(16)?, after_ns: time(32)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `struct ptp_sys_offset_extended` of `linux/ptp_clock.h`: system, device, system.
    #[test]
    fn times_of_the_kernel_are_read_in_their_order() {
        let time = |seconds: i64, ns: u32| {
            [&seconds.to_ne_bytes()[..], &ns.to_ne_bytes(), &[0xff; 4]].concat()
        };
        let bytes = [time(1, 2), time(38, 4), time(1, 9)].concat();
        let found = comparison(&bytes).unwrap();
        let wanted = Comparison {
            before_ns: 1_000_000_002,
            device_ns: 38_000_000_004,
            after_ns: 1_000_000_009,
        };
        assert_eq!((found, found.bracket_ns()), (wanted, Some(7)));
        assert_eq!(comparison(&[time(1, 2), time(-1, 4), time(1, 9)].concat()), None);
        assert_eq!(comparison(&bytes[..43]), None);
        assert_eq!(Comparison { after_ns: 1, ..found }.bracket_ns(), None);
    }

    #[test]
    fn what_is_no_clock_is_refused() {
        let missing = Device::open(Path::new("/nonexistent/ptp0")).unwrap_err();
        assert_eq!(missing.raw_os_error(), Some(libc::ENOENT));
        let null = Device::open(Path::new("/dev/null")).unwrap_err();
        assert!(matches!(null.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP)), "{null}");
    }
}
