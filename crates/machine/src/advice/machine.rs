//! Judgements of the machine alone, whatever runs on it. The advice before a run asks whether they
//! touch its threads; the doctor tells them all.

use hourglass_documents::document::Warning;
use hourglass_documents::host::{Bound, CpuQuota, FrequencyPolicy, Host, IdleState};

use hourglass_documents::host_limits::micros;

/// Idle states that take longer than this to leave show in wake-up latencies; shallower ones are
/// within the noise of an interrupt.
pub(crate) const DEEP_IDLE_US: u64 = 10;

/// A machine with more runnable threads than this share of its CPUs is not at rest.
const HIGH_LOAD_PER_CPU: f64 = 0.5;

/// Clock sources that are read through a system call and a slow device.
const SLOW_CLOCK_SOURCES: [&str; 5] = ["hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies"];

const STEERED_CLOCK_SOURCES: [&str; 3] = ["kvm-clock", "xen", "hyperv"];

/// Takes the processor's counter as the kernel's clock.
pub(crate) const CHOOSE_TSC: &str =
    "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Keeps the processors at their highest frequency.
pub(crate) const PERFORMANCE: &str =
    "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";

/// What autogroups do (`sched(7)`).
pub(crate) const NICE_WITHIN_SESSION: &str = "a nice value counts only among the threads of its session, unless a \
                                              control group with the cpu controller is below the root";

/// Lets nice values count among all threads.
pub(crate) const NO_AUTOGROUP: &str = "sudo sysctl kernel.sched_autogroup_enabled=0";

#[must_use]
pub fn autogroup_warning() -> Warning {
    Warning {
        id: "autogroup".to_owned(),
        text: format!("autogroups are on: {NICE_WITHIN_SESSION}"),
        remedy: NO_AUTOGROUP.to_owned(),
    }
}

/// What helps against other programs.
pub(crate) const END_THE_OTHERS: &str =
    "end them or wait (top shows them), or run on isolated CPUs";

/// Why the kernel's clock source is not what one wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClockFault {
    Slow,
    /// A hypervisor has its hand in it.
    Steered,
}

impl ClockFault {
    /// Why that is a fault.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            ClockFault::Slow => {
                "each read of the clock is a system call to a slow device, about a microsecond, \
                 and the kernel may have found the processor's counter unfit"
            }
            ClockFault::Steered => {
                "the hypervisor steers it, and a read costs more than the processor's counter"
            }
        }
    }
}

/// What is wrong with the clock source that the kernel uses.
pub(crate) fn clock_fault(host: &Host) -> Option<ClockFault> {
    let current = host.clock_source.current.as_deref()?;
    if SLOW_CLOCK_SOURCES.contains(&current) {
        Some(ClockFault::Slow)
    } else if STEERED_CLOCK_SOURCES.iter().any(|kind| current.starts_with(kind)) {
        Some(ClockFault::Steered)
    } else {
        None
    }
}

/// Whether the processor's counter may be chosen as the kernel's clock source.
pub(crate) fn offers_tsc(host: &Host) -> bool {
    host.clock_source.available.iter().any(|source| source == "tsc")
}

/// What brings the processor's counter back.
pub(crate) fn clock_remedy(host: &Host) -> &'static str {
    if offers_tsc(host) {
        CHOOSE_TSC
    } else {
        "sudo dmesg | grep -i -e tsc -e clocksource says why tsc is not offered; mend that cause"
    }
}

/// Whether the frequency of the CPUs of `policy` changes with their load.
pub(crate) fn moves(policy: &FrequencyPolicy) -> bool {
    let has_room = policy.min_khz.is_none() || policy.min_khz != policy.max_khz;
    has_room && policy.governor.as_deref().is_some_and(|governor| governor != "performance")
}

/// The slowest to leave of the states that may be entered, if it shows in wake-up latencies:
/// microseconds, and name. `host` has the limit that is in force.
pub(crate) fn deepest(host: &Host, states: &[IdleState]) -> Option<(u64, String)> {
    let limit = host.idle.latency_limit_us.map_or(u64::MAX, u64::from);
    let open = states.iter().filter(|state| state.enabled);
    open.filter_map(|state| Some((state.latency_us?, state.name.clone())))
        .filter(|(latency_us, _)| *latency_us > DEEP_IDLE_US && *latency_us <= limit)
        .max()
}

/// After how many microseconds without a wait a real-time thread is killed.
pub(crate) fn rt_time_limit_us(host: &Host) -> Option<u64> {
    match host.process.real_time_timeout_us?.soft {
        Bound::At(longest_us) => Some(longest_us),
        Bound::Unlimited => None,
    }
}

/// The longest tick of any kernel, microseconds.
const LONGEST_TICK_US: u64 = 10_000;

pub(crate) fn quota_remedy(host: &Host, quota: &CpuQuota) -> String {
    if host.container.is_some() {
        return "start the container without a CPU limit (docker run without --cpus, a pod \
                without limits.cpu)"
            .to_owned();
    }
    let unlimited = if quota.file.ends_with("cpu.max") { "max" } else { "-1" };
    format!("echo {unlimited} | sudo tee {}", quota.file)
}

/// How long all threads that draw on a quota are stopped in each period, microseconds, when so
/// many CPUs are busy: they draw on it at once, so it is spent that much sooner.
pub(crate) fn quota_gap_us(quota: &CpuQuota, busy: u64) -> u64 {
    quota.period_us.saturating_sub(quota.quota_us / busy.max(1))
}

/// Beside the gap in each period: where a tick is longer than the quota, a group overdraws before the kernel sees it.
pub(crate) fn quota_debt(host: &Host, quota: &CpuQuota, busy: u64) -> String {
    let of_rate = host.tick_hz.and_then(|hz| 1_000_000_u64.checked_div(u64::from(hz)));
    let tick_us =
        host.tick.map(|tick| tick.period_ns / 1_000).or(of_rate).unwrap_or(LONGEST_TICK_US);
    if tick_us.saturating_mul(busy.max(1)) < quota.quota_us {
        return String::new();
    }
    format!(
        "; spent is noticed at ticks of {}, so a group overdraws {} and owes several periods at once",
        micros(tick_us),
        micros(quota.quota_us)
    )
}

/// The load average and the number of CPUs, if other programs are at work.
pub(crate) fn others_at_work(host: &Host) -> Option<(f64, usize)> {
    let [load, ..] = host.start.load_average?;
    let cpus = host.cpu.online.as_ref()?.len();
    // The average still counts ended work; without a runnable thread the work has ended.
    let at_rest = host.start.runnable_others == Some(0);
    (!at_rest && load >= HIGH_LOAD_PER_CPU * cpus as f64).then_some((load, cpus))
}

/// The hypervisor below the kernel, by its name.
pub(crate) fn hypervisor(host: &Host) -> Option<&str> {
    let machine = &host.virtual_machine;
    (machine.present == Some(true)).then(|| machine.kind.as_deref().unwrap_or("unknown hypervisor"))
}
