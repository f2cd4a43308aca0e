//! What the kernel does on its own, at intervals, on CPUs that are at work.
//!
//! Sources: `Documentation/timers/no_hz.rst`, `Documentation/admin-guide/kernel-parameters.txt`
//! (`skew_tick=`, `rcu_nocbs=`), `Documentation/admin-guide/sysctl/kernel.rst`
//! (`timer_migration`, `watchdog_cpumask`), `Documentation/admin-guide/lockup-watchdogs.rst`,
//! `Documentation/core-api/real-time/kernel-configuration.rst`,
//! `Documentation/arch/x86/x86_64/machinecheck.rst`; `rcu_normal` is described with
//! `rcupdate.rcu_normal`. The profiles `realtime` and `network-latency` of tuned set the same.

use hourglass_documents::CpuSet;
use hourglass_documents::tuning::Access;

use super::input::DoctorInput;
use super::remedy;
use super::verdict::{CheckVerdict, unread, unread_unless_absent};

const CMDLINE: &str = "/proc/cmdline";
const NOHZ_FULL: &str = "/sys/devices/system/cpu/nohz_full";

/// The CPUs of the work that have a tick while they run one thread.
fn ticking(e: &DoctorInput) -> CpuSet {
    e.judged().0.difference(&e.host.cpu.nohz_full.clone().unwrap_or_default())
}

pub(super) fn tick(e: &DoctorInput) -> CheckVerdict {
    if e.host.cpu.nohz_full.is_none() && e.access(NOHZ_FULL) != Access::Missing {
        return unread(e, NOHZ_FULL);
    }
    let rate = e.host.tick_hz.map_or("the tick".to_owned(), |hz| format!("{hz} ticks a second"));
    let ticking = ticking(e);
    if ticking.is_empty() {
        return CheckVerdict::ok(format!(
            "{rate}, but none on CPUs that run one thread (nohz_full)"
        ));
    }
    let remedy = match e.apart() {
        _ if e.built_with("CONFIG_NO_HZ_FULL") == Some(false) => {
            "boot a kernel built with CONFIG_NO_HZ_FULL=y".to_owned()
        }
        Some(apart) => {
            let line = remedy::boot(e, &format!("nohz_full={apart}"));
            let joint = if line.contains(" # ") { ";" } else { " #" };
            format!("{line}{joint} for work that computes: periodic work is as well off without")
        }
        None => remedy::no_room(e),
    };
    CheckVerdict::warn(format!("{rate} interrupt CPUs {ticking} whenever they are busy"), remedy)
}

/// Timers of idle CPUs that move to busy ones.
pub(super) fn timer_migration(e: &DoctorInput) -> CheckVerdict {
    match e.tuning.kernel.timer_migration {
        None => unread_unless_absent(e, "/proc/sys/kernel/timer_migration", "this kernel has none"),
        Some(false) => CheckVerdict::ok("timers stay on the CPU that set them"),
        Some(true) if ticking(e).is_empty() => {
            CheckVerdict::ok("timers move, but not to CPUs of nohz_full")
        }
        Some(true) => CheckVerdict::warn(
            format!("timers of idle CPUs move to busy ones, so to CPUs {} too", ticking(e)),
            remedy::sysctl(e, "kernel.timer_migration=0"),
        ),
    }
}

/// Ticks of all CPUs at the same moment.
pub(super) fn skewed_ticks(e: &DoctorInput) -> CheckVerdict {
    if e.access(CMDLINE) != Access::Readable {
        return unread(e, CMDLINE);
    }
    match e.boot_option("skew_tick") {
        Some("1") => CheckVerdict::ok("the ticks of the CPUs are spread (skew_tick=1)"),
        _ if e.online().len() <= 1 => CheckVerdict::ok("there is one CPU"),
        _ if ticking(e).is_empty() => CheckVerdict::ok("CPUs of nohz_full have no tick"),
        _ => CheckVerdict::warn(
            "all CPUs have their tick at the same moment, and wait for each other's locks",
            remedy::boot(e, "skew_tick=1"),
        ),
    }
}

pub(super) fn watchdog(e: &DoctorInput) -> CheckVerdict {
    const SOFT: &str = "/proc/sys/kernel/soft_watchdog";
    let kernel = &e.tuning.kernel;
    if kernel.soft_watchdog.is_none() && kernel.nmi_watchdog.is_none() {
        return unread_unless_absent(e, SOFT, "this kernel has none");
    }
    let running: Vec<&str> =
        [(kernel.soft_watchdog, "timer and stopper thread"), (kernel.nmi_watchdog, "NMI")]
            .into_iter()
            .filter(|(on, _)| *on == Some(true))
            .map(|(_, name)| name)
            .collect();
    if running.is_empty() {
        return CheckVerdict::ok("off");
    }
    let watched = match &kernel.watchdog_cpus {
        Some(watched) => e.judged().0.intersection(watched),
        None => e.judged().0,
    };
    if watched.is_empty() {
        return CheckVerdict::ok("none watches the CPUs of the work");
    }
    let remedy = match e.rest().filter(|_| e.sets_cpus_apart()) {
        Some(rest) => remedy::sysctl(e, &format!("kernel.watchdog_cpumask={rest}")),
        None => remedy::sysctl(e, "kernel.watchdog=0"),
    };
    CheckVerdict::warn(
        format!(
            "on CPUs {watched} every few seconds, above every priority ({})",
            running.join(", ")
        ),
        remedy,
    )
}

/// Where RCU callbacks are done.
pub(super) fn rcu_callbacks(e: &DoctorInput) -> CheckVerdict {
    if e.access(CMDLINE) != Access::Readable {
        return unread(e, CMDLINE);
    }
    let (cpus, _) = e.judged();
    let offloaded = e.boot_cpus("rcu_nocbs").unwrap_or_default();
    let left = ticking(e).difference(&offloaded);
    if left.is_empty() {
        return CheckVerdict::ok(format!("threads on other CPUs do those of CPUs {cpus}"));
    }
    let remedy = match e.apart() {
        _ if e.built_with("CONFIG_RCU_NOCB_CPU") == Some(false) => {
            "boot a kernel built with CONFIG_RCU_NOCB_CPU=y".to_owned()
        }
        Some(apart) => remedy::boot(e, &format!("rcu_nocbs={apart}")),
        None => remedy::no_room(e),
    };
    CheckVerdict::warn(format!("CPUs {left} do their own, between the work"), remedy)
}

/// Grace periods that are hurried by interrupting every CPU.
pub(super) fn expedited_rcu(e: &DoctorInput) -> CheckVerdict {
    const NORMAL: &str = "/sys/kernel/rcu_normal";
    match e.tuning.kernel.rcu_normal {
        Some(true) => CheckVerdict::ok("all grace periods are normal ones"),
        _ if e.is_preempt_rt() => CheckVerdict::ok("grace periods are normal ones (PREEMPT_RT)"),
        Some(false) => CheckVerdict::warn(
            "hurried grace periods interrupt every CPU that is not idle",
            remedy::write(e, "1", NORMAL),
        ),
        None => unread_unless_absent(e, NORMAL, "this kernel has one CPU and needs none"),
    }
}

/// Polling for corrected hardware errors.
pub(super) fn machine_check(e: &DoctorInput) -> CheckVerdict {
    const FOLDER: &str = "/sys/devices/system/machinecheck";
    let kernel = &e.tuning.kernel;
    match kernel.machine_check_interval_s {
        None => unread_unless_absent(
            e,
            "/sys/devices/system/machinecheck/machinecheck0/check_interval",
            "no CPU polls for hardware errors here",
        ),
        Some(_) if kernel.machine_check_ignored == Some(true) => {
            CheckVerdict::ok("corrected hardware errors are ignored")
        }
        Some(0) => CheckVerdict::ok("corrected hardware errors are not polled for"),
        Some(seconds) => CheckVerdict::warn(
            format!("every CPU polls for corrected hardware errors every {seconds} s"),
            format!(
                "{} # those that do harm still arrive as exceptions",
                remedy::write(e, "0", &format!("{FOLDER}/machinecheck0/check_interval"))
            ),
        ),
    }
}

/// Tracers left on.
pub(super) fn tracing(e: &DoctorInput) -> CheckVerdict {
    const TRACER: &str = "/sys/kernel/tracing/current_tracer";
    const EVENTS: &str = "/sys/kernel/tracing/events/enable";
    let kernel = &e.tuning.kernel;
    let Some(tracer) = kernel.tracer.as_deref() else {
        return unread_unless_absent(e, TRACER, "this kernel has no tracers");
    };
    if tracer != "nop" {
        return CheckVerdict::warn(
            format!("the tracer {tracer} is on"),
            remedy::write(e, "nop", TRACER),
        );
    }
    match kernel.trace_events.as_deref() {
        Some("0") => CheckVerdict::ok("no tracer and no trace event is on"),
        None => unread(e, EVENTS),
        Some(_) => CheckVerdict::warn("trace events are on", remedy::write(e, "0", EVENTS)),
    }
}
