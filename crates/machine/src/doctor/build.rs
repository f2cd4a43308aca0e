//! How the kernel was built and booted: debugging, mitigations, calls into the firmware.
//!
//! Sources: `Documentation/core-api/real-time/kernel-configuration.rst` ("Kernel Debug Options",
//! `CONFIG_EFI_DISABLE_RUNTIME`), `Documentation/core-api/real-time/hardware.rst` ("EFI"),
//! `Documentation/admin-guide/hw-vuln/index.rst`.

use super::input::DoctorInput;
use super::remedy;
use super::verdict::{CheckVerdict, unread};
use hourglass_documents::tuning::Access;

/// Build options that cost time on every lock, allocation or preemption, even at rest.
const COSTLY: [&str; 8] = [
    "CONFIG_DEBUG_LOCK_ALLOC",
    "CONFIG_DEBUG_PAGEALLOC",
    "CONFIG_IRQSOFF_TRACER",
    "CONFIG_KASAN",
    "CONFIG_KCSAN",
    "CONFIG_PREEMPT_TRACER",
    "CONFIG_PROVE_LOCKING",
    "CONFIG_SLUB_DEBUG_ON",
];

pub(super) fn debugging(e: &DoctorInput) -> CheckVerdict {
    if e.host.kernel_config.is_empty() {
        return unread(e, "/proc/config.gz");
    }
    let found: Vec<&str> =
        COSTLY.into_iter().filter(|option| e.built_with(option) == Some(true)).collect();
    if found.is_empty() {
        return CheckVerdict::ok("nothing that costs time");
    }
    CheckVerdict::warn(
        format!("built with {}", found.join(", ")),
        "boot a kernel built without them",
    )
}

/// Defences against the processor's weaknesses. They cost a little time, and are no fault.
pub(super) fn mitigations(e: &DoctorInput) -> CheckVerdict {
    const FOLDER: &str = "/sys/devices/system/cpu/vulnerabilities";
    let states = &e.host.cpu.mitigations;
    if states.is_empty() {
        return match e.access(FOLDER) {
            Access::Readable | Access::Missing => CheckVerdict::ok("the kernel tells of none"),
            _ => unread(e, FOLDER),
        };
    }
    let count = |word: &str| states.values().filter(|state| state.starts_with(word)).count();
    let chosen = match e.boot_option("mitigations") {
        Some(value) => format!(" (mitigations={value})"),
        None => String::new(),
    };
    CheckVerdict::ok(format!(
        "{} in force, {} weaknesses left open{chosen}",
        count("Mitigation"),
        count("Vulnerable")
    ))
}

/// Calls into the firmware, which may keep interrupts off for long.
pub(super) fn firmware(e: &DoctorInput) -> CheckVerdict {
    match e.tuning.kernel.efi_runtime {
        None => unread(e, "/sys/firmware/efi"),
        Some(false) => CheckVerdict::ok("the kernel does not call it (EFI runtime services)"),
        Some(true) => CheckVerdict::warn(
            "the kernel calls it with preemption off (EFI runtime services)",
            remedy::boot(e, "efi=noruntime"),
        ),
    }
}
