//! The scheduler: what stops real-time threads, and what they have to wait for.
//!
//! Sources: `Documentation/scheduler/sched-rt-group.rst`, `sched-deadline.rst` and
//! `sched-preemption.rst`, `Documentation/admin-guide/sysctl/kernel.rst`
//! (`sched_rt_runtime_us`), `Documentation/core-api/real-time/`; the commits "sched/fair: Fair
//! server interface" and "sched/rt: Remove default bandwidth control" of Linux 6.12.

use hourglass_documents::CpuSet;
use hourglass_documents::host_limits::{self};
use hourglass_documents::tuning::{Access, FairServer};

use hourglass_time::Span;

use super::input::DoctorInput;
use super::remedy;
use super::verdict::{CheckVerdict, unread, unread_unless_absent};
use crate::advice::machine::{NICE_WITHIN_SESSION, NO_AUTOGROUP};
use crate::advice::refusal_advice::{hidden_rt_budget, no_rt_budget};
use crate::advice::throttling::{self, LIFT_THROTTLING, RISK};

const RT_RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";
const AUTOGROUP: &str = "/proc/sys/kernel/sched_autogroup_enabled";
const FAIR_SERVER: &str = "/sys/kernel/debug/sched/fair_server/cpu0/runtime";
const PREEMPT: &str = "/sys/kernel/debug/sched/preempt";
const RELEASE: &str = "/proc/sys/kernel/osrelease";

/// Parts per million in a whole CPU.
const WHOLE_CPU_PPM: u64 = 1_000_000;

pub(super) fn throttling(e: &DoctorInput) -> CheckVerdict {
    let Some(runtime_us) = e.host.scheduler.rt_runtime_us else {
        return unread(e, RT_RUNTIME);
    };
    if !host_limits::throttles(&e.host) {
        return match e.host.scheduler.rt_group_scheduling {
            Some(_) => CheckVerdict::ok(format!(
                "Linux {} does not throttle; sched_rt_runtime_us={runtime_us} bounds the deadline \
                 class only",
                e.host.kernel
            )),
            None => CheckVerdict::unknown(
                "Linux 6.12 and later throttle only if built with CONFIG_RT_GROUP_SCHED, which \
                 this one does not tell",
                "grep RT_GROUP_SCHED /boot/config-$(uname -r)",
            ),
        };
    }
    let remedy = || remedy::kernel(e, &format!("{LIFT_THROTTLING} # {RISK}"));
    match host_limits::tightest_real_time_limit(&e.host) {
        None => CheckVerdict::ok(format!("none (sched_rt_runtime_us={runtime_us})")),
        Some(limit) if limit.share_ppm() >= WHOLE_CPU_PPM => {
            CheckVerdict::ok(format!("none ({})", limit.setting))
        }
        Some(limit) if limit.share_ppm() == 0 => {
            let of_group = no_rt_budget(&e.host).map(|(_, line)| remedy::own(e, &line));
            CheckVerdict::fail(
                format!("real-time threads get no time ({})", limit.setting),
                of_group.unwrap_or_else(remedy),
            )
        }
        Some(limit) => {
            let (stop, period) = limit.stop();
            CheckVerdict::warn(
                format!(
                    "real-time threads that never wait are stopped for {stop} in every {period} \
                     ({})",
                    limit.setting
                ),
                remedy(),
            )
            .delaying(stop.nanos_or_zero())
        }
    }
}

/// Sessions that are scheduling groups.
pub(super) fn autogroup(e: &DoctorInput) -> CheckVerdict {
    match e.host.scheduler.autogroup {
        Some(true) => CheckVerdict::warn(
            format!("on: {NICE_WITHIN_SESSION}"),
            remedy::kernel(e, NO_AUTOGROUP),
        ),
        Some(false) => CheckVerdict::ok("off"),
        None => unread_unless_absent(e, AUTOGROUP, "this kernel has none"),
    }
}

/// The time that CPUs keep for ordinary threads.
pub(super) fn fair_server(e: &DoctorInput) -> CheckVerdict {
    if e.host.kernel.is_empty() {
        return unread(e, RELEASE);
    }
    if !host_limits::has_fair_server(&e.host.kernel) {
        return CheckVerdict::ok(format!("Linux {} has none", e.host.kernel));
    }
    let servers = &e.tuning.kernel.fair_servers;
    if servers.is_empty() {
        let mut verdict = unread(e, FAIR_SERVER);
        verdict.found.push_str("; the kernel's default is 50ms in every 1s");
        return verdict;
    }
    let (cpus, _) = e.judged();
    let (keeping, worst) = servers
        .iter()
        .filter(|(cpu, server)| cpus.contains(**cpu) && server.runtime_ns > 0)
        .fold((Vec::new(), FairServer::default()), |(mut keeping, worst), (cpu, server)| {
            keeping.push(*cpu);
            (keeping, if server.runtime_ns > worst.runtime_ns { *server } else { worst })
        });
    if keeping.is_empty() {
        return CheckVerdict::ok(format!("none on CPUs {cpus}"));
    }
    let keeping: CpuSet = keeping.into_iter().collect();
    let command = match keeping == e.online() {
        true => throttling::lift_fair_servers("cpu*"),
        false => {
            let words = remedy::words(&keeping);
            format!(
                "sudo sh -c 'for c in {words}; do echo 0 > \
                 /sys/kernel/debug/sched/fair_server/cpu$c/runtime; done'"
            )
        }
    };
    CheckVerdict::warn(
        format!(
            "CPUs {keeping} keep {} in every {} for ordinary threads that starve",
            Span::saturating_from_nanos(worst.runtime_ns),
            Span::saturating_from_nanos(worst.period_ns)
        ),
        remedy::kernel(e, &format!("{command} # {RISK}")),
    )
    .delaying(worst.runtime_ns)
}

/// Real-time time by control group.
pub(super) fn group_budget(e: &DoctorInput) -> CheckVerdict {
    let host = &e.host;
    let grouped = host.scheduler.rt_group_scheduling;
    if grouped == Some(false) {
        return CheckVerdict::ok("real-time threads are not accounted by control group");
    }
    if let Some((reason, line)) = no_rt_budget(host) {
        return CheckVerdict::fail(reason, remedy::own(e, &line));
    }
    if let Some(own) = host.cgroup.rt_budgets.first() {
        return CheckVerdict::ok(format!("{} is {}", own.file, own.runtime_us));
    }
    match hidden_rt_budget(host) {
        _ if e.trials.real_time == Some(Ok(())) => {
            CheckVerdict::ok("the control group of this process lets real-time threads in")
        }
        Some((reason, line)) if grouped == Some(true) => {
            CheckVerdict::fail(reason, remedy::own(e, &line))
        }
        _ => unread(e, "/proc/config.gz"),
    }
}

/// How long kernel code may keep a real-time thread waiting.
pub(super) fn preemption(e: &DoctorInput) -> CheckVerdict {
    let Some(model) = e.host.preemption.as_deref() else {
        return unread(e, "/proc/sys/kernel/version");
    };
    if model == "rt" {
        return CheckVerdict::ok("PREEMPT_RT");
    }
    let dynamic = model == "dynamic";
    let (mode, source) = mode_of(e, model);
    let effect = match mode {
        "full" | "lazy" | EITHER => "kernel code gives way, but not in locks and interrupts",
        "none" | "voluntary" => "kernel code may keep a thread waiting for milliseconds",
        _ => "the preemption model is not known",
    };
    let kind = if dynamic { "PREEMPT_DYNAMIC" } else { "no PREEMPT_RT" };
    let found = format!("{kind}, {mode}{source}: {effect}");
    let at_once = dynamic && !matches!(mode, "full" | "lazy" | EITHER);
    let remedy = match at_once {
        true if e.access(PREEMPT) == Access::Readable => remedy::write(e, "full", PREEMPT),
        true => remedy::boot(e, "preempt=full"),
        false => real_time_kernel(e),
    };
    CheckVerdict::warn(found, remedy)
}

/// What a kernel has whose version leaves no other mode.
const EITHER: &str = "full or lazy";

/// Linux 7.0 and later have no other modes (commit 7dadeaa6e851, "sched: Further restrict the preemption modes") on the
/// architectures that know the lazy one.
fn has_two_modes(e: &DoctorInput) -> bool {
    let lazy = ["x86_64", "aarch64", "riscv64", "s390x", "loongarch64", "powerpc64"];
    host_limits::is_since(&e.host.kernel, (7, 0)) && lazy.contains(&std::env::consts::ARCH)
}

/// The mode of preemption, and what tells it.
fn mode_of<'a>(e: &'a DoctorInput, model: &str) -> (&'a str, &'static str) {
    let known = |mode: &&str| ["none", "voluntary", "full", "lazy"].contains(mode);
    // Newer kernels name the mode: PREEMPT(voluntary).
    let named =
        e.host.kernel_build.split_once("PREEMPT(").and_then(|(_, rest)| rest.split_once(')'));
    if let Some((mode, _)) = named.filter(|(mode, _)| known(mode)) {
        return (mode, "");
    }
    if let Some(mode) = e.host.preemption_mode.as_deref().filter(known) {
        return (mode, "");
    }
    let built = [
        ("CONFIG_PREEMPT_NONE", "none"),
        ("CONFIG_PREEMPT_VOLUNTARY", "voluntary"),
        ("CONFIG_PREEMPT_LAZY", "lazy"),
        ("CONFIG_PREEMPT", "full"),
    ];
    if let Some((_, mode)) = built.iter().find(|(option, _)| e.built_with(option) == Some(true)) {
        return (mode, " as built");
    }
    match model {
        "full" => ("full", ""),
        "dynamic" if has_two_modes(e) => (EITHER, ", as this version has no other"),
        "none" => ("none", " or voluntary"),
        _ => ("mode not told", ""),
    }
}

/// How this distribution gets a fully preemptible kernel.
fn real_time_kernel(e: &DoctorInput) -> String {
    let line = match e.tuning.distribution.as_deref() {
        // The package's name ends in the architecture.
        Some("debian" | "raspbian") => {
            "sudo apt-get install linux-image-rt-$(dpkg --print-architecture) # then reboot"
        }
        Some("ubuntu") => "sudo pro enable realtime-kernel # then reboot",
        Some("rhel" | "centos" | "rocky" | "almalinux") => {
            "sudo dnf install kernel-rt # then reboot"
        }
        Some("arch") => "sudo pacman -S linux-rt # then reboot",
        Some("opensuse-tumbleweed" | "opensuse-leap" | "sles") => {
            "sudo zypper install kernel-rt # then reboot"
        }
        _ => return own_kernel(e),
    };
    match e.is_guest() && e.tuning.boot_loader.is_none() {
        // Such a guest gets its kernel from the host.
        true => own_kernel(e),
        false => remedy::kernel(e, line),
    }
}

fn own_kernel(e: &DoctorInput) -> String {
    let place = if e.is_contained() { "on the container's host: " } else { "" };
    format!("{place}boot a kernel built with CONFIG_PREEMPT_RT=y (part of Linux since 6.12)")
}

/// Whether interrupt handlers are threads with a priority.
pub(super) fn threaded_interrupts(e: &DoctorInput) -> CheckVerdict {
    if e.is_preempt_rt() {
        return CheckVerdict::ok("handlers are threads (PREEMPT_RT)");
    }
    if e.boot_option("threadirqs").is_some() {
        return CheckVerdict::ok("handlers are threads (threadirqs)");
    }
    if e.access("/proc/cmdline") != Access::Readable {
        return unread(e, "/proc/cmdline");
    }
    CheckVerdict::warn(
        "handlers run before every thread, whatever its priority",
        remedy::boot(e, "threadirqs"),
    )
}
