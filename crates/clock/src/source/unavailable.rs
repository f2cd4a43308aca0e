//! Reasons why a source cannot be read, and their remedies.

#[cfg(target_os = "linux")]
use std::io;

/// The reason why a source cannot be read; the thesis' `HPETFail` (listing 2.3), for every source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// The device does not exist.
    #[error("{device} does not exist")]
    NotPresent {
        /// The path of the device.
        device: String,
    },
    /// The device may not be opened.
    #[error("{device} may not be read")]
    Permission {
        /// The path of the device.
        device: String,
    },
    /// Another program uses the device.
    #[error("{device} is in use, or has no free timer")]
    Busy {
        /// The path of the device.
        device: String,
    },
    /// The process has too many files open.
    #[error("too many files are open")]
    TooManyFiles,
    /// The kernel has no memory for it.
    #[error("out of memory")]
    NoMemory,
    /// The processor or the kernel does not have such a clock.
    #[error("{what}")]
    NotSupported {
        /// The missing feature.
        what: &'static str,
    },
    /// Reading raises a signal in this thread.
    #[error("reading the TSC is disabled for this thread (PR_SET_TSC)")]
    DisabledForThread,
    /// A kernel option forbids programs to map the HPET.
    #[error("the kernel refuses to map the HPET")]
    MapRefused,
    /// The kernel cannot let programs map the HPET.
    #[error("the kernel cannot map the HPET for programs")]
    MapNotConfigured,
    /// A counter of 32 bits wraps within minutes (`MC32BIT` of the thesis).
    #[error("the counter has 32 bits and wraps every {wraps_after_s} s")]
    Width32Refused {
        /// How long until it wraps, whole seconds.
        wraps_after_s: u64,
    },
    /// The registers hold what no such device has.
    #[error("its registers make no sense: {what}")]
    BadRegisters {
        /// The registers that are wrong, and how.
        what: &'static str,
    },
    /// The counter does not count.
    #[error("its counter does not advance")]
    Stopped,
    /// Something else went wrong (`UNKNOWN` of the thesis).
    #[error("{device}: error {errno} of the operating system")]
    Other {
        /// The path of the device, or the question to it.
        device: String,
        /// The number, as `errno(3)`.
        errno: i32,
    },
}

impl Unavailable {
    /// The meaning of an error in opening `device`.
    #[cfg(target_os = "linux")]
    pub(crate) fn from_open(device: &str, error: &io::Error) -> Unavailable {
        let device = device.to_owned();
        // The numbers are Linux's on every architecture that this crate reads devices on.
        match error.raw_os_error().unwrap_or(0) {
            1 | 13 => Unavailable::Permission { device },
            2 | 6 | 19 => Unavailable::NotPresent { device },
            12 => Unavailable::NoMemory,
            16 => Unavailable::Busy { device },
            23 | 24 => Unavailable::TooManyFiles,
            errno => Unavailable::Other { device, errno },
        }
    }

    /// The meaning of an error in mapping `device`.
    #[cfg(target_os = "linux")]
    pub(crate) fn from_map(device: &str, error: &io::Error) -> Unavailable {
        match error.raw_os_error().unwrap_or(0) {
            1 | 13 => Unavailable::MapRefused,
            11 | 12 => Unavailable::NoMemory,
            38 => Unavailable::MapNotConfigured,
            _ => Unavailable::from_open(device, error),
        }
    }

    /// The remedy, one clause for people.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Unavailable::NotPresent { device } if device.contains("hpet") => {
                "needs a PC with an HPET and a kernel with CONFIG_HPET; virtual machines often \
                 have none (QEMU: -machine hpet=on)"
                    .into()
            }
            Unavailable::NotPresent { device } if device.contains("ptp") => {
                "needs a network card with a PTP clock, or in a KVM guest `modprobe ptp_kvm`".into()
            }
            Unavailable::NotPresent { device } => format!("load the driver that makes {device}"),
            Unavailable::Permission { device } => format!("as root: chmod a+r {device}"),
            Unavailable::Busy { device } if device.contains("hpet") => format!(
                "end the program that holds it (fuser -v {device}); if none does, the machine has \
                 no HPET or the kernel took all its timers"
            ),
            Unavailable::Busy { device } => {
                format!("end the program that holds it: fuser -v {device}")
            }
            Unavailable::TooManyFiles => "raise the limit: ulimit -n 4096".into(),
            Unavailable::NoMemory => "free memory, or raise RLIMIT_MEMLOCK (ulimit -l)".into(),
            Unavailable::NotSupported { .. } => "needs another machine".into(),
            Unavailable::DisabledForThread => {
                "the program that started this thread must call prctl(PR_SET_TSC, PR_TSC_ENABLE)"
                    .into()
            }
            Unavailable::MapRefused => {
                "boot the kernel with hpet_mmap=1 on its command line".into()
            }
            Unavailable::MapNotConfigured => {
                "needs a kernel with CONFIG_HPET_MMAP, and registers at a page's start".into()
            }
            Unavailable::Width32Refused { .. } => {
                "take another source, or let the counter be extended (`HpetSource::open`)".into()
            }
            Unavailable::BadRegisters { .. } | Unavailable::Stopped => {
                "nothing from here; report it to the maker of the machine or the hypervisor".into()
            }
            Unavailable::Other { errno, .. } => format!("see errno {errno}: man 3 errno"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Linux answers, and what it means.
    #[test]
    fn errors_of_the_kernel_become_reasons() {
        let open =
            |errno| Unavailable::from_open("/dev/hpet", &io::Error::from_raw_os_error(errno));
        let map = |errno| Unavailable::from_map("/dev/hpet", &io::Error::from_raw_os_error(errno));
        let device = || "/dev/hpet".to_owned();
        assert_eq!(open(2), Unavailable::NotPresent { device: device() });
        assert_eq!(open(13), Unavailable::Permission { device: device() });
        assert_eq!(open(16), Unavailable::Busy { device: device() });
        assert_eq!(open(24), Unavailable::TooManyFiles);
        assert_eq!(open(5), Unavailable::Other { device: device(), errno: 5 });
        // hpet_mmap=0, and a kernel without CONFIG_HPET_MMAP.
        assert_eq!(map(13), Unavailable::MapRefused);
        assert_eq!(map(38), Unavailable::MapNotConfigured);
        assert_eq!(map(12), Unavailable::NoMemory);
        // QEMU with hpet=off: the node exists, and opening it gives EBUSY.
        assert!(open(16).remedy().contains("no HPET"));
        assert!(open(13).remedy().contains("chmod a+r /dev/hpet"));
        assert!(map(13).remedy().contains("hpet_mmap=1"));
    }
}
