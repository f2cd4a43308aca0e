//! Power: frequency, turbo, idle states, heat, links.
//!
//! Sources: `Documentation/admin-guide/pm/cpufreq.rst`, `intel_pstate.rst`, `cpuidle.rst`,
//! `Documentation/power/pm_qos_interface.rst`,
//! `Documentation/core-api/real-time/hardware.rst` and `kernel-configuration.rst`,
//! `Documentation/admin-guide/kernel-parameters.txt` (`pcie_aspm=`).

use std::io::ErrorKind;

use crate::idle_latency::{DEVICE, NO_LIMIT_US};
use hourglass_documents::CpuSet;
use hourglass_documents::host_limits::micros;
use hourglass_documents::tuning::Access;

use super::input::DoctorInput;
use super::remedy;
use super::verdict::{CheckVerdict, unread, unread_unless_absent};
use crate::advice::machine::{self, DEEP_IDLE_US};

const GOVERNOR: &str = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
const CPUIDLE: &str = "/sys/devices/system/cpu/cpu0/cpuidle";

pub(super) fn governor(e: &DoctorInput) -> CheckVerdict {
    let (cpus, _) = e.judged();
    let policies = &e.host.frequency.policies;
    if policies.is_empty() {
        let absent = if e.is_guest() {
            "the host of this virtual machine sets the frequency"
        } else {
            "nothing changes the frequency here"
        };
        return unread_unless_absent(e, GOVERNOR, absent);
    }
    let used: Vec<_> =
        policies.iter().filter(|policy| !policy.cpus.intersection(&cpus).is_empty()).collect();
    let moving: Vec<_> = used.iter().filter(|policy| machine::moves(policy)).collect();
    if used.is_empty() {
        return CheckVerdict::ok(format!("nothing changes the frequency of CPUs {cpus}"));
    }
    let name = |governor: &Option<String>| governor.clone().unwrap_or("unknown".to_owned());
    let Some(first) = moving.first() else {
        let mut governors: Vec<String> = used.iter().map(|policy| name(&policy.governor)).collect();
        governors.dedup();
        return CheckVerdict::ok(format!("{} on CPUs {cpus}", governors.join(", ")));
    };
    let changing: CpuSet = moving.iter().flat_map(|policy| policy.cpus.iter()).collect();
    let changing = changing.intersection(&cpus);
    let range = match (first.min_khz, first.max_khz) {
        (Some(min), Some(max)) => format!(", from {} to {} MHz", min / 1000, max / 1000),
        _ => String::new(),
    };
    let driver = first.driver.as_deref().unwrap_or("unknown driver");
    CheckVerdict::warn(
        format!("{} ({driver}) on CPUs {changing}{range}", name(&first.governor)),
        governor_remedy(e, &changing),
    )
}

/// The governor that there is, for the CPUs that need it.
fn governor_remedy(e: &DoctorInput, cpus: &CpuSet) -> String {
    let offered = &e.tuning.processor.governors;
    if !offered.is_empty() && !offered.iter().any(|governor| governor == "performance") {
        let pattern = "/sys/devices/system/cpu/cpu$c/cpufreq";
        let command = format!(
            "sudo sh -c 'for c in {}; do cat {pattern}/scaling_max_freq > \
             {pattern}/scaling_min_freq; done'",
            remedy::words(cpus)
        );
        let offered = offered.join(", ");
        return remedy::kernel(
            e,
            &format!("{command} # no performance governor; available: {offered}"),
        );
    }
    if *cpus == e.online() {
        return remedy::kernel(e, machine::PERFORMANCE);
    }
    let file = "/sys/devices/system/cpu/cpu$c/cpufreq/scaling_governor";
    remedy::write_each(e, "performance", file, cpus)
}

/// Whether the frequency may rise above what is promised, as long as heat and neighbours allow.
pub(super) fn turbo(e: &DoctorInput) -> CheckVerdict {
    match (e.host.frequency.turbo, e.tuning.processor.turbo_off) {
        (Some(false), _) => CheckVerdict::ok("off"),
        (Some(true), Some((value, file))) => CheckVerdict::warn(
            "on: how fast a CPU is depends on heat and on what its neighbours do",
            remedy::write(e, value, file),
        ),
        (Some(true), None) | (None, _) => unread_unless_absent(
            e,
            "/sys/devices/system/cpu/cpufreq/boost",
            "nothing here switches it",
        ),
    }
}

/// The deepest idle state of the CPUs of the work: microseconds to leave it, and name.
fn deepest(e: &DoctorInput) -> Option<(u64, String)> {
    let (cpus, _) = e.judged();
    let used = e.host.idle.policies.iter();
    used.filter(|policy| !policy.cpus.intersection(&cpus).is_empty())
        .filter_map(|policy| machine::deepest(&e.host, &policy.states))
        .max()
}

/// Idle states that take long to leave.
pub(super) fn idle_states(e: &DoctorInput) -> CheckVerdict {
    let idle = &e.host.idle;
    if idle.policies.is_empty() {
        let absent = if e.is_guest() {
            "none here; the host of this virtual machine has its own"
        } else {
            "CPUs only halt (no cpuidle)"
        };
        return unread_unless_absent(e, CPUIDLE, absent);
    }
    let governor = idle.governor.as_deref().unwrap_or("unknown");
    let Some((latency_us, name)) = deepest(e) else {
        let held = match idle.latency_limit_us {
            Some(limit) if limit < NO_LIMIT_US => format!(", held to {limit} us by {DEVICE}"),
            _ => String::new(),
        };
        return CheckVerdict::ok(format!(
            "none takes more than {} to leave{held} (governor {governor})",
            micros(DEEP_IDLE_US)
        ));
    };
    let (cpus, _) = e.judged();
    let used = || idle.policies.iter().filter(|p| !p.cpus.intersection(&cpus).is_empty());
    let mut numbers: Vec<usize> = used()
        .flat_map(|policy| policy.states.iter().enumerate())
        .filter(|(_, state)| state.latency_us.is_some_and(|us| us > DEEP_IDLE_US))
        .map(|(number, _)| number)
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
    let file = format!("/sys/devices/system/cpu/cpu$c/cpuidle/state[{}]/disable", numbers.join(""));
    CheckVerdict::warn(
        format!("{name} takes {} to leave (governor {governor})", micros(latency_us)),
        remedy::write_each(e, "1", &file, &cpus),
    )
    .delaying(latency_us.saturating_mul(1_000))
}

/// Whether this user may hold the CPUs out of deep idle states while the work runs.
pub(super) fn idle_latency(e: &DoctorInput) -> CheckVerdict {
    let limit = match e.host.idle.latency_limit_us {
        None => "its value cannot be read by this user".to_owned(),
        Some(us) if us >= NO_LIMIT_US => "no limit is set".to_owned(),
        Some(us) => format!("{us} us is set"),
    };
    match e.trials.idle_latency {
        Some(Ok(())) => CheckVerdict::ok(format!("{limit}; this user may set one")),
        None => unread(e, DEVICE),
        Some(Err(ErrorKind::NotFound)) => unread_unless_absent(e, DEVICE, "there is no device"),
        Some(Err(_)) => {
            let found = format!("{limit}; this user may not set one");
            match e.host.idle.policies.is_empty() || deepest(e).is_some() {
                true => CheckVerdict::warn(found, device_remedy(e)),
                false => CheckVerdict::ok(format!("{found}, but no idle state is deep")),
            }
        }
    }
}

fn device_remedy(e: &DoctorInput) -> String {
    if e.is_contained() {
        return format!("start the container with --device {DEVICE}");
    }
    remedy::own(e, &format!("sudo chmod a+rw {DEVICE} # until the next boot"))
}

/// Processors slowed down by heat.
pub(super) fn heat(e: &DoctorInput) -> CheckVerdict {
    match e.host.start.thermal_throttled {
        Some(0) => CheckVerdict::ok("not slowed down by heat since boot"),
        Some(times) => CheckVerdict::warn(
            format!("slowed down by heat or power limits {times} times since boot"),
            remedy::own(e, "cool the machine better; sudo turbostat --quiet shows when it happens"),
        ),
        None => unread_unless_absent(
            e,
            "/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count",
            "nothing counts it here",
        ),
    }
}

/// Links of PCI Express that go to sleep.
pub(super) fn links(e: &DoctorInput) -> CheckVerdict {
    const POLICY: &str = "/sys/module/pcie_aspm/parameters/policy";
    match e.tuning.processor.pcie_policy.as_deref() {
        Some(policy @ ("powersave" | "powersupersave")) => CheckVerdict::warn(
            format!("{policy}: a device first has to wake its link"),
            remedy::write(e, "performance", POLICY),
        ),
        Some("default") => CheckVerdict::ok("default: as the firmware left it"),
        Some(policy) => CheckVerdict::ok(policy),
        None if e.access(POLICY) == Access::Readable => CheckVerdict::ok("no link is put to sleep"),
        None => unread_unless_absent(e, POLICY, "no link is put to sleep"),
    }
}
