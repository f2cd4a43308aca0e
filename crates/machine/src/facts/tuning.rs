//! The facts that only a diagnosis asks for, and which of their files can be read.
//!
//! Sources: the kernel's `Documentation/admin-guide/sysctl/{kernel,vm}.rst`,
//! `Documentation/admin-guide/kernel-per-CPU-kthreads.rst`,
//! `Documentation/core-api/real-time/kernel-configuration.rst`,
//! `Documentation/core-api/workqueue.rst`, `Documentation/arch/x86/x86_64/machinecheck.rst`,
//! `Documentation/ABI/testing/sysfs-kernel-mm-ksm` and `sysfs-devices-system-cpu`.

use std::collections::{BTreeMap, BTreeSet};

use hourglass_documents::tuning::{
    Access, BootLoader, FairServer, KernelNoise, MemoryNoise, ProcessorSwitches, Tuning, User,
};

use super::files::{CPUS, Files, clean, field};
use super::{cgroup, interrupts};

/// The files and folders whose being readable the doctor wants to know: each is named where a
/// check depends on it.
pub(crate) const PROBED: [&str; 45] = [
    "/dev/cpu_dma_latency",
    "/proc/1/comm",
    "/proc/cmdline",
    "/proc/config.gz",
    "/proc/cpuinfo",
    "/proc/irq",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/self/cgroup",
    "/proc/self/limits",
    "/proc/self/status",
    "/proc/self/timerslack_ns",
    "/proc/stat",
    "/proc/sys/kernel/numa_balancing",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/sched_autogroup_enabled",
    "/proc/sys/kernel/sched_rt_runtime_us",
    "/proc/sys/kernel/soft_watchdog",
    "/proc/sys/kernel/timer_migration",
    "/proc/sys/kernel/version",
    "/proc/sys/vm/compact_unevictable_allowed",
    "/proc/sys/vm/stat_interval",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "/sys/devices/system/cpu/cpu0/cpuidle",
    "/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count",
    "/sys/devices/system/cpu/cpufreq/boost",
    "/sys/devices/system/cpu/isolated",
    "/sys/devices/system/cpu/nohz_full",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/cpu/smt/active",
    "/sys/devices/system/cpu/vulnerabilities",
    "/sys/devices/system/machinecheck/machinecheck0/check_interval",
    "/sys/devices/virtual/workqueue/cpumask",
    "/sys/firmware/efi",
    "/sys/fs/cgroup",
    "/sys/kernel/debug",
    "/sys/kernel/debug/sched/fair_server/cpu0/runtime",
    "/sys/kernel/debug/sched/preempt",
    "/sys/kernel/mm/ksm/run",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/rcu_normal",
    "/sys/kernel/tracing/current_tracer",
    "/sys/kernel/tracing/events/enable",
    "/sys/module/pcie_aspm/parameters/policy",
];

/// Where GRUB keeps the kernel's command line, if written there as is usual.
const GRUB_SETTINGS: &str = "etc/default/grub";

/// Signs of the way in which the kernel's command line is changed; the first that is found
/// counts. All of its files must be there.
const BOOT_LOADERS: [(BootLoader, &[&str]); 7] = [
    (BootLoader::Grubby, &["usr/sbin/grubby"]),
    (BootLoader::UpdateGrub, &[GRUB_SETTINGS, "usr/sbin/update-grub"]),
    (BootLoader::Grub2Mkconfig, &[GRUB_SETTINGS, "usr/sbin/grub2-mkconfig"]),
    (BootLoader::GrubMkconfig, &[GRUB_SETTINGS, "usr/bin/grub-mkconfig"]),
    (BootLoader::Firmware, &["boot/firmware/cmdline.txt"]),
    (BootLoader::BootFolder, &["boot/cmdline.txt"]),
    (BootLoader::KernelInstall, &["etc/kernel/cmdline", "usr/bin/kernel-install"]),
];

pub(super) fn facts(files: &Files) -> Tuning {
    Tuning {
        user: user(files),
        boot_loader: boot_loader(files),
        distribution: distribution(files),
        files: PROBED.iter().map(|path| ((*path).to_owned(), files.access(path))).collect(),
        timer_slack_ns: files.number("proc/self/timerslack_ns"),
        kernel: kernel(files),
        interrupts: interrupts::facts(files),
        memory: memory(files),
        processor: processor(files),
        quota_visible: cgroup::sees_cpu_controller(files),
        isolated_partitions: cgroup::isolated_partitions(files),
    }
}

/// Who asks: the second of the four numbers in `Uid:` is the effective one (`proc(5)`).
fn user(files: &Files) -> User {
    let status = files.text("proc/self/status").unwrap_or_default();
    let id = field(&status, "Uid", ':')
        .and_then(|numbers| numbers.split_whitespace().nth(1)?.parse::<u32>().ok());
    let names = files.text("etc/passwd").unwrap_or_default();
    let name = names.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse().ok() == id && id.is_some()).then(|| clean(name))?
    });
    // A name that a shell would not take as one word is not put into a command.
    let plain = |name: &String| {
        name.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-".contains(letter))
    };
    User { id, name: name.filter(plain) }
}

fn boot_loader(files: &Files) -> Option<BootLoader> {
    let grub = files.text(GRUB_SETTINGS).unwrap_or_default();
    let editable = grub.lines().any(|line| line.starts_with("GRUB_CMDLINE_LINUX=\""));
    let found = |path: &&str| files.exists(path) && (*path != GRUB_SETTINGS || editable);
    let signs = BOOT_LOADERS.iter().find(|(_, signs)| signs.iter().all(found));
    signs.map(|(loader, _)| *loader)
}

/// `ID=debian`, or with quotes (`os-release(5)`).
fn distribution(files: &Files) -> Option<String> {
    let text = files.text("etc/os-release").or_else(|| files.text("usr/lib/os-release"))?;
    clean(field(&text, "ID", '=')?.trim_matches(['"', '\'']))
}

fn kernel(files: &Files) -> KernelNoise {
    let setting = |name: &str| files.flag(&format!("proc/sys/kernel/{name}"));
    let machine_check =
        |name: &str| format!("sys/devices/system/machinecheck/machinecheck0/{name}");
    // Tracing lies below debugfs too, on kernels and machines that mount only that.
    let tracing = |name: &str| {
        ["sys/kernel/tracing", "sys/kernel/debug/tracing"]
            .iter()
            .find_map(|folder| files.line(&format!("{folder}/{name}")))
    };
    KernelNoise {
        fair_servers: fair_servers(files),
        timer_migration: setting("timer_migration"),
        nmi_watchdog: setting("nmi_watchdog"),
        soft_watchdog: setting("soft_watchdog"),
        watchdog_cpus: files.cpus("proc/sys/kernel/watchdog_cpumask"),
        rcu_normal: files.flag("sys/kernel/rcu_normal"),
        tracer: tracing("current_tracer"),
        trace_events: tracing("events/enable"),
        machine_check_interval_s: files
            .line(&machine_check("check_interval"))
            .and_then(|number| u64::from_str_radix(number.trim_start_matches("0x"), 16).ok()),
        machine_check_ignored: files.flag(&machine_check("ignore_ce")),
        // The kernel makes this worker for calls into the firmware and for nothing else.
        efi_runtime: (files.access("/sys/firmware") != Access::Unmounted).then(|| {
            files.exists("sys/firmware/efi")
                && files.exists("sys/devices/virtual/workqueue/efi_runtime")
        }),
    }
}

/// The fair servers of all CPUs; none if debugfs does not tell them.
fn fair_servers(files: &Files) -> BTreeMap<u32, FairServer> {
    let folder = "sys/kernel/debug/sched/fair_server";
    let server = |name: &String| {
        let cpu = name.strip_prefix("cpu")?.parse().ok()?;
        let number = |what: &str| files.number(&format!("{folder}/{name}/{what}"));
        Some((cpu, FairServer { runtime_ns: number("runtime")?, period_ns: number("period")? }))
    };
    files.names(folder).iter().filter_map(server).collect()
}

fn memory(files: &Files) -> MemoryNoise {
    MemoryNoise {
        swappiness: files.number("proc/sys/vm/swappiness"),
        merging: files.number("sys/kernel/mm/ksm/run"),
        compacts_locked: files.flag("proc/sys/vm/compact_unevictable_allowed"),
        statistics_interval_s: files.number("proc/sys/vm/stat_interval"),
        nodes: files.cpus("sys/devices/system/node/online").map(|nodes| nodes.len()),
    }
}

fn processor(files: &Files) -> ProcessorSwitches {
    let governors: BTreeSet<String> = files
        .cpu_folders()
        .iter()
        .filter_map(|cpu| {
            files.line(&format!("{CPUS}/cpu{cpu}/cpufreq/scaling_available_governors"))
        })
        .flat_map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let turbo_off = [
        ("1", "/sys/devices/system/cpu/intel_pstate/no_turbo"),
        ("0", "/sys/devices/system/cpu/cpufreq/boost"),
    ];
    ProcessorSwitches {
        governors: governors.into_iter().collect(),
        turbo_off: turbo_off.into_iter().find(|(_, path)| files.exists(path)),
        smt_control: files.line(&format!("{CPUS}/smt/control")),
        pcie_policy: files.chosen("sys/module/pcie_aspm/parameters/policy", '[', ']'),
    }
}
