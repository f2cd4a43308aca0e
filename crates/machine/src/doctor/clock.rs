//! The clock: what the kernel keeps time with, what Hourglass would, and how finely timers expire.
//!
//! Sources: `Documentation/admin-guide/kernel-parameters.txt` (`clocksource=`, `tsc=`,
//! `highres=`), `Documentation/virt/kvm/x86/timekeeping.rst`, `clock_getres(2)`; the kernel's
//! `kernel/time/clocksource.c` lists the clock sources best first, and leaves out those that it
//! found unstable.

use hourglass_documents::clocks::SourceFacts;
use hourglass_documents::tuning::Access;

use super::input::DoctorInput;
use super::remedy;
use super::verdict::{CheckVerdict, unread};
use crate::advice::machine::{self, ClockFault};

const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

const CPUINFO: &str = "/proc/cpuinfo";

/// Timers that expire more coarsely than this expire at ticks, ns.
const COARSE_NS: u64 = 1_000;

/// What a guest's host can do about its counter.
const INVARIANT_TSC: &str =
    "on the host: give the guest an invariant TSC (QEMU: -cpu host,+invtsc)";

/// The processors' own counters, as sources of time.
const COUNTERS: [&str; 2] = ["tsc", "cntvct"];

/// Flags of a TSC whose rate is constant, in idle states too.
const INVARIANT_FLAGS: [&str; 2] = ["constant_tsc", "nonstop_tsc"];

pub(super) fn source(e: &DoctorInput) -> CheckVerdict {
    let Some(current) = e.host.clock_source.current.as_deref() else {
        return unread(e, CURRENT);
    };
    let found = format!("{current}{}", changed(e, current));
    match machine::clock_fault(&e.host) {
        None => CheckVerdict::ok(found),
        Some(fault) => {
            let found = format!("{found}: {}", fault.reason());
            match fault {
                ClockFault::Slow => CheckVerdict::fail(found, source_remedy(e)),
                ClockFault::Steered => CheckVerdict::warn(found, source_remedy(e)),
            }
        }
    }
}

/// Says how the clock source was changed from the kernel's choice; empty if it was not.
fn changed(e: &DoctorInput, current: &str) -> String {
    if let Some(asked) = e.boot_option("clocksource") {
        return format!(" (clocksource={asked} on the kernel's command line)");
    }
    match e.host.clock_source.available.first() {
        Some(first) if first != current => {
            format!(" (changed: the kernel would take {first})")
        }
        _ if has_invariant_tsc(e) == Some(true) && !machine::offers_tsc(&e.host) => {
            " (the kernel has dropped the TSC)".to_owned()
        }
        _ => String::new(),
    }
}

/// What brings the processor's counter back.
fn source_remedy(e: &DoctorInput) -> String {
    if !machine::offers_tsc(&e.host) {
        let barred = ["tsc", "clocksource", "notsc"].iter().find_map(|name| {
            let value = e.boot_option(name)?;
            let bars = *name != "tsc" || value == "unstable";
            bars.then(
                || if value.is_empty() { (*name).to_owned() } else { format!("{name}={value}") },
            )
        });
        if let Some(word) = barred {
            return format!("boot without {word} on the kernel's command line");
        }
    }
    if e.is_guest() && has_invariant_tsc(e) == Some(false) {
        return INVARIANT_TSC.to_owned();
    }
    remedy::kernel(e, machine::clock_remedy(&e.host))
}

/// Whether the processor shows a TSC of constant rate; `None` if it is no x86, or hidden.
fn has_invariant_tsc(e: &DoctorInput) -> Option<bool> {
    let has = |flag: &str| e.host.cpu.flags.iter().any(|each| each == flag);
    has("tsc").then(|| INVARIANT_FLAGS.iter().all(|flag| has(flag)))
}

pub(super) fn tsc(e: &DoctorInput) -> CheckVerdict {
    let flags = &e.host.cpu.flags;
    // Other processors tell few flags, some of them none that bears on time.
    let may_have_one = cfg!(target_arch = "x86_64") || e.access(CPUINFO) != Access::Readable;
    if flags.is_empty() && may_have_one {
        return unread(e, CPUINFO);
    }
    let has = |flag: &str| flags.iter().any(|each| each == flag);
    let found: Vec<&str> =
        flags.iter().map(String::as_str).filter(|flag| flag.contains("tsc")).collect();
    match has_invariant_tsc(e) {
        None => CheckVerdict::ok("no x86 processor: the counter is the architecture's"),
        Some(true) => CheckVerdict::ok(found.join(" ")),
        Some(false) => {
            let lacking: Vec<&str> =
                INVARIANT_FLAGS.iter().copied().filter(|flag| !has(flag)).collect();
            let remedy = if e.is_guest() {
                INVARIANT_TSC
            } else {
                "take a processor with an invariant TSC; this one's counter cannot be trusted"
            };
            CheckVerdict::warn(format!("{} without {}", found.join(" "), lacking.join(" ")), remedy)
        }
    }
}

/// What Hourglass trusts, by the policy `strict`.
pub(super) fn choice(e: &DoctorInput) -> CheckVerdict {
    let Some(clocks) = &e.clocks else {
        return CheckVerdict::unknown("the clocks were not measured", "hourglass clocks");
    };
    if COUNTERS.contains(&clocks.selected.as_str()) {
        return CheckVerdict::ok(format!("{}: {}", clocks.selected, clocks.reason));
    }
    let counter = clocks
        .sources
        .iter()
        .filter(|source| COUNTERS.contains(&source.name.as_str()))
        .max_by_key(|source| source.available);
    let against = counter.map_or("no counter is known".to_owned(), objection);
    let of_kernel = ["kernel_clocksource", "available_clocksources"]
        .iter()
        .any(|item| counter.is_some_and(|counter| counter.reason.starts_with(item)));
    let found = format!("{}, for {against}", clocks.selected);
    if of_kernel && e.host.clock_source.current.is_none() {
        return CheckVerdict::unknown(found, unread(e, CURRENT).remedy);
    }
    let remedy = if of_kernel {
        source_remedy(e)
    } else if e.is_guest() {
        INVARIANT_TSC.to_owned()
    } else {
        "hourglass clocks --verify --evidence # what speaks against it; where counters disagree, \
         update the firmware"
            .to_owned()
    };
    CheckVerdict::warn(found, remedy)
}

fn objection(counter: &SourceFacts) -> String {
    let fault = if counter.available { "is not trusted" } else { "cannot be read" };
    format!("{} {fault} ({})", counter.name, counter.reason)
}

/// How finely timers expire: without high-resolution timers only at ticks.
pub(super) fn resolution(e: &DoctorInput) -> CheckVerdict {
    let step = e.clocks.as_ref().and_then(|clocks| {
        let monotonic = clocks.sources.iter().find(|source| source.name == "monotonic")?;
        // clock_getres gives whole nanoseconds.
        Some(monotonic.resolution_ns? as u64)
    });
    let remedy = || match (e.boot_option("highres"), e.built_with("CONFIG_HIGH_RES_TIMERS")) {
        (Some(value), _) => format!("boot without highres={value} on the kernel's command line"),
        (None, Some(false)) => "boot a kernel built with CONFIG_HIGH_RES_TIMERS=y".to_owned(),
        _ => "sudo dmesg | grep -i -e hres -e 'high resolution' says why they are off".to_owned(),
    };
    match step {
        None => CheckVerdict::unknown("the clocks were not measured", "hourglass clocks"),
        Some(ns) if ns > COARSE_NS => {
            CheckVerdict::fail(format!("timers expire in steps of {ns} ns, at ticks"), remedy())
        }
        Some(ns) => CheckVerdict::ok(format!("timers expire in steps of {ns} ns")),
    }
}
