//! Facts about the processor and its counters, as of the thesis' `AccessTimeHardware`.

use std::ffi::c_char;
use std::fs;
use std::path::Path;

use hourglass_clock::choice::thesis_rule::has_constant_tsc;
use hourglass_clock::source::cpuid::Cpuid;
use hourglass_clock::source::hpet::{DEVICE, HpetSource};
use hourglass_clock::source::{Counter32Policy, Unavailable};

use crate::error::{TEXT, hg_error, hg_status, put_text};
use crate::pointers::give;

/// Bytes of a processor's name with its end.
const BRAND: usize = 64;

/// Facts about the processor and its counters.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct hg_hardware {
    /// Whether the processor has `rdtscp`.
    pub rdtscp: bool,
    /// Whether its TSC keeps its rate when the frequency changes.
    pub constant_tsc: bool,
    /// Whether its TSC keeps its rate in all power states.
    pub invariant_tsc: bool,
    /// Whether a hypervisor runs below.
    pub hypervisor: bool,
    /// `HG_HPET_*`.
    pub hpet: u32,
    /// The processor's name; terminated.
    pub brand: [c_char; BRAND],
    /// Why the HPET cannot be used, with a remedy; terminated by 0.
    pub hpet_reason: [c_char; TEXT],
}

/// `HG_HPET_*`.
fn number(why: &Unavailable) -> u32 {
    match why {
        Unavailable::NotPresent { .. } => 1,
        Unavailable::Permission { .. } => 2,
        Unavailable::Busy { .. } => 3,
        Unavailable::TooManyFiles => 4,
        Unavailable::NoMemory => 5,
        Unavailable::MapRefused | Unavailable::MapNotConfigured => 6,
        Unavailable::Width32Refused { .. } => 7,
        Unavailable::BadRegisters { .. } | Unavailable::Stopped => 8,
        _ => 9,
    }
}

/// The processor's name, as the kernel tells it.
fn brand(cpuinfo: &str) -> &str {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"));
    line.and_then(|line| line.split_once(':')).map_or("", |(_, name)| name.trim())
}

/// Facts about the processor and its counters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_hardware_look(
    hardware: *mut hg_hardware,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let cpuid = Cpuid::of_this_processor();
        let says = |fact: fn(&Cpuid) -> bool| cpuid.as_ref().is_some_and(fact);
        let mut hardware = hg_hardware {
            rdtscp: says(|cpuid| cpuid.rdtscp),
            constant_tsc: says(has_constant_tsc),
            invariant_tsc: says(|cpuid| cpuid.invariant_tsc),
            hypervisor: says(|cpuid| cpuid.hypervisor.is_some()),
            hpet: 0,
            brand: [0; BRAND],
            hpet_reason: [0; TEXT],
        };
        put_text(
            &mut hardware.brand,
            brand(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
        );
        if let Err(why) = HpetSource::open(Path::new(DEVICE), Counter32Policy::Refuse) {
            hardware.hpet = number(&why);
            put_text(&mut hardware.hpet_reason, &format!("{why}: {}", why.remedy()));
        }
        Ok(hardware)
    };
    // SAFETY: as the header says of `hardware` and `error`.
    unsafe { give(hardware, "hardware", error, work) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_kernels() {
        let cpuinfo = "processor\t: 0\nmodel name\t: Some CPU @ 2.00GHz\nflags\t: fpu\n";
        assert_eq!(brand(cpuinfo), "Some CPU @ 2.00GHz");
        assert_eq!(brand(""), "");
    }
}
