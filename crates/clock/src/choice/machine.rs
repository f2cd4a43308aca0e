//! Facts about the machine that speak for or against its counter.
//!
//! Facts are data, so that every verdict can be tested on made-up ones.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::kernel_clocksource;
use crate::source::cpuid::Cpuid;

/// Facts about a machine that need no measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClockHost {
    /// The kernel's current clock source.
    pub current: Option<String>,
    /// The clock sources that the kernel could use.
    pub available: Vec<String>,
    /// The processor's own statements; `None` on other than x86.
    pub cpuid: Option<Cpuid>,
    /// Whether software answers CPUID in the processor's place, in this thread.
    pub cpuid_intercepted: Option<bool>,
    /// Whether reading the TSC raises a signal in this thread.
    pub tsc_intercepted: Option<bool>,
    /// The kernel's judgement of the TSC.
    pub flags: Option<CpuFlags>,
    /// `IA32_TSC_ADJUST` of each CPU, where it may be read.
    pub tsc_adjust: Vec<(u32, i64)>,
}

impl ClockHost {
    /// Looks at this machine; `root` is `/` but in tests. About ten `cpuid`, 0.1 ms in a guest.
    #[must_use]
    pub fn find(root: &Path) -> ClockHost {
        let read = |path: &str| fs::read_to_string(root.join(path)).ok();
        let available = read(AVAILABLE_CLOCKSOURCES).unwrap_or_default();
        ClockHost {
            current: kernel_clocksource(root),
            available: available.split_whitespace().map(str::to_owned).collect(),
            cpuid: Cpuid::of_this_processor(),
            cpuid_intercepted: cpuid_intercepted(),
            tsc_intercepted: tsc_intercepted(),
            flags: read("proc/cpuinfo").as_deref().and_then(CpuFlags::parse),
            tsc_adjust: read_tsc_adjust(root),
        }
    }
}

/// Where the kernel lists its clock sources, below the root of the file system.
const AVAILABLE_CLOCKSOURCES: &str =
    "sys/devices/system/clocksource/clocksource0/available_clocksource";

#[cfg(target_arch = "x86_64")]
fn cpuid_intercepted() -> Option<bool> {
    hourglass_sys::cpuid::faults()
}

#[cfg(target_arch = "x86_64")]
fn tsc_intercepted() -> Option<bool> {
    use hourglass_sys::counter::{TscMode, tsc_mode};
    tsc_mode().map(|mode| mode == TscMode::Fault)
}

#[cfg(not(target_arch = "x86_64"))]
fn cpuid_intercepted() -> Option<bool> {
    None
}

#[cfg(not(target_arch = "x86_64"))]
fn tsc_intercepted() -> Option<bool> {
    None
}

/// The register of every CPU through the `msr` driver; empty where it may not be read.
fn read_tsc_adjust(root: &Path) -> Vec<(u32, i64)> {
    const IA32_TSC_ADJUST: u64 = 0x3b;
    let Ok(entries) = fs::read_dir(root.join("dev/cpu")) else { return Vec::new() };
    let read = |entry: fs::DirEntry| {
        let cpu: u32 = entry.file_name().to_str()?.parse().ok()?;
        let file = File::open(entry.path().join("msr")).ok()?;
        let mut value = [0; 8];
        file.read_exact_at(&mut value, IA32_TSC_ADJUST).ok()?;
        Some((cpu, i64::from_le_bytes(value)))
    };
    let mut found: Vec<(u32, i64)> = entries.flatten().filter_map(read).collect();
    found.sort_unstable();
    found
}

/// The kernel's judgement of the TSC (`/proc/cpuinfo`); the first processor stands for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuFlags {
    /// The TSC's rate does not follow the processor's.
    pub constant_tsc: bool,
    /// The TSC counts in deep idle states.
    pub nonstop_tsc: bool,
    /// The kernel did not need to measure its frequency.
    pub tsc_known_freq: bool,
}

impl CpuFlags {
    /// Parses the text; `None` without a line of flags, as on other than x86.
    #[must_use]
    pub fn parse(text: &str) -> Option<CpuFlags> {
        let line = text.lines().find(|line| line.starts_with("flags"))?;
        let (_, flags) = line.split_once(':')?;
        let has = |name: &str| flags.split_whitespace().any(|flag| flag == name);
        Some(CpuFlags {
            constant_tsc: has("constant_tsc"),
            nonstop_tsc: has("nonstop_tsc"),
            tsc_known_freq: has("tsc_known_freq"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_flags_are_whole_words() {
        let text = "processor\t: 0\nflags\t\t: fpu tsc constant_tsc nonstop_tsc_s3\n";
        let found = CpuFlags::parse(text).unwrap();
        assert!(found.constant_tsc && !found.nonstop_tsc && !found.tsc_known_freq);
        assert_eq!(CpuFlags::parse("Features : fp asimd\n"), None);
    }

    #[test]
    fn a_machine_below_another_root() {
        let root = std::env::temp_dir().join(format!("hg-machine-{}", std::process::id()));
        let clocksource = root.join("sys/devices/system/clocksource/clocksource0");
        fs::create_dir_all(&clocksource).unwrap();
        fs::create_dir_all(root.join("dev/cpu/1")).unwrap();
        fs::create_dir_all(root.join("proc")).unwrap();
        fs::write(clocksource.join("current_clocksource"), "hpet\n").unwrap();
        fs::write(clocksource.join("available_clocksource"), "hpet acpi_pm \n").unwrap();
        let mut msr = vec![0; 0x3b];
        msr.extend((-7_i64).to_le_bytes());
        fs::write(root.join("dev/cpu/1/msr"), msr).unwrap();
        fs::write(root.join("proc/cpuinfo"), "flags : tsc\n").unwrap();
        let found = ClockHost::find(&root);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(found.current.as_deref(), Some("hpet"));
        assert_eq!(found.available, ["hpet", "acpi_pm"]);
        assert_eq!(found.tsc_adjust, [(1, -7)]);
        assert_eq!(found.flags, Some(CpuFlags::default()));
    }
}
