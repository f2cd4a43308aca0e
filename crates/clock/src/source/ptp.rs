//! PTP hardware clocks, `/dev/ptpN`.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use hourglass_sys::ptp::Device;

use super::{
    ClockSource, CounterMeaning, Frequency, FrequencyOrigin, Probe, SourceName, SourceProperties,
    Unavailable,
};

const DEVICES: &str = "/dev";

/// A PTP hardware clock: its own time scale, set and steered by a synchronisation daemon. A read is
/// a system call and a read of the device, microseconds.
#[derive(Debug)]
pub struct PtpSource {
    number: u32,
    device: Device,
    resolution_ns: u64,
    /// The result of the last read: it is returned again after the device was removed.
    last: AtomicU64,
}

/// Names of the PTP devices; only `ptp0` without any, so that the reason is listed.
pub(super) fn names() -> Vec<SourceName> {
    let mut names = found_in(Path::new(DEVICES));
    if names.is_empty() {
        names.push(0);
    }
    names.into_iter().map(SourceName::Ptp).collect()
}

fn found_in(devices: &Path) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(devices) else { return Vec::new() };
    let number = |entry: std::fs::DirEntry| match entry.file_name().to_str()?.parse() {
        Ok(SourceName::Ptp(number)) => Some(number),
        _ => None,
    };
    let mut numbers: Vec<u32> = entries.flatten().filter_map(number).collect();
    numbers.sort_unstable();
    numbers
}

/// The source of that name, if it is one of this file and can be opened.
pub(super) fn probe(name: SourceName) -> Probe {
    let SourceName::Ptp(number) = name else {
        return Err(Unavailable::NotSupported { what: "not a PTP clock" });
    };
    PtpSource::open(number).map(|source| Box::new(source) as _)
}

impl PtpSource {
    /// Opens `/dev/ptpN`; it stays open while the value lives.
    ///
    /// # Errors
    /// `NotPresent`, `Permission`, `Busy`, or what else the kernel answers.
    pub fn open(number: u32) -> Result<PtpSource, Unavailable> {
        let path = PathBuf::from(DEVICES).join(format!("ptp{number}"));
        let device = Device::open(&path)
            .map_err(|error| Unavailable::from_open(&path.display().to_string(), &error))?;
        let resolution_ns = device.resolution_ns().unwrap_or(1).max(1);
        let last = AtomicU64::new(device.now_ns().unwrap_or(0));
        Ok(PtpSource { number, device, resolution_ns, last })
    }

    /// The capabilities that the device states; `None` if it does not answer.
    #[must_use]
    pub fn capabilities(&self) -> Option<hourglass_sys::ptp::Capabilities> {
        self.device.capabilities().ok()
    }
}

impl ClockSource for PtpSource {
    fn facts(&self) -> SourceProperties {
        // The clock is accurate, but slow to read, and another program may set it.
        const RATING: u16 = 140;
        SourceProperties {
            name: SourceName::Ptp(self.number),
            rating: RATING,
            counts: CounterMeaning::TimeOfDay,
            frequency: Some(Frequency::from_hertz(1_000_000_000, FrequencyOrigin::Definition)),
            resolution_ns: self.resolution_ns as f64,
            width_bits: u64::BITS,
            hardware_bits: u64::BITS,
            settable: true,
        }
    }

    fn read(&self) -> u64 {
        // A device that is gone stands still, as the contract asks.
        match self.device.now_ns() {
            Ok(ns) => {
                self.last.store(ns, Ordering::Relaxed);
                ns
            }
            Err(_) => self.last.load(Ordering::Relaxed),
        }
    }

    fn read_ordered(&self) -> u64 {
        self.read()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_found_by_number() {
        let folder = std::env::temp_dir().join(format!("hg-ptp-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for name in ["ptp10", "ptp2", "ptp_kvm", "ptp", "pts"] {
            std::fs::write(folder.join(name), "").unwrap();
        }
        assert_eq!(found_in(&folder), [2, 10]);
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found_in(&folder), []);
    }

    #[test]
    fn a_clock_that_is_not_there_says_so() {
        let missing = PtpSource::open(4_000_000_000).unwrap_err();
        assert!(matches!(missing, Unavailable::NotPresent { .. }), "{missing:?}");
        assert!(missing.remedy().contains("ptp_kvm"));
    }
}
