//! Machines for the doctor, made of files, and what they answer when something is tried.

use std::io::ErrorKind;

use hourglass_documents::CpuSet;
use hourglass_documents::clocks::{CLOCKS_SCHEMA, ClocksDocument, SourceFacts};

use crate::doctor::{DoctorInput, ProbeResults};
use crate::facts::test_host::{FakeMachine, ROOT_STATUS, bare_metal, kvm_guest};

/// Everything that real-time work asked for, granted.
pub(super) const GRANTED: ProbeResults =
    ProbeResults { real_time: Some(Ok(())), deadline: Some(Ok(())), idle_latency: Some(Ok(())) };

/// Everything refused, as to an ordinary user (EPERM).
pub(super) const REFUSED: ProbeResults = ProbeResults {
    real_time: Some(Err(1)),
    deadline: Some(Err(1)),
    idle_latency: Some(Err(ErrorKind::PermissionDenied)),
};

/// Limits of a user in the group realtime.
const REALTIME_LIMITS: &str = "\
Limit                     Soft Limit           Hard Limit           Units     
Max locked memory         unlimited            unlimited            bytes     
Max nice priority         40                   40                   
Max realtime priority     99                   99                   
Max realtime timeout      unlimited            unlimited            us        
";

/// Status of user 1000 on the CPUs that are not isolated.
const REALTIME_STATUS: &str = "\
Name:\thourglass
Uid:\t1000\t1000\t1000\t1000
CapEff:\t0000000000000000
Seccomp:\t0
Cpus_allowed_list:\t0-1
";

/// Status of an ordinary user on four CPUs.
const USER_STATUS: &str = "\
Name:\thourglass
Uid:\t1000\t1000\t1000\t1000
CapEff:\t0000000000000000
Seccomp:\t0
Cpus_allowed_list:\t0-3
";

/// What the doctor goes by on a machine of files.
pub(super) fn evidence(machine: &FakeMachine, selected: &str, trials: ProbeResults) -> DoctorInput {
    DoctorInput {
        host: machine.host(),
        tuning: machine.reader().tuning(),
        clocks: Some(clocks(selected)),
        trials,
        asked: None,
    }
}

/// Measured clocks of which `selected` was taken.
pub(super) fn clocks(selected: &str) -> ClocksDocument {
    let trusted = selected == "tsc";
    let against = "kernel_clocksource: kvm-clock";
    let source = |name: &str, trusted: bool, reason: &str| SourceFacts {
        name: name.to_owned(),
        available: true,
        trusted,
        reason: reason.to_owned(),
        remedy: String::new(),
        evidence: Vec::new(),
        rating: None,
        width_bits: None,
        mult: None,
        shift: None,
        frequency_hz: None,
        resolution_ns: Some(1.0),
        read_p50_ns: None,
        read_p99_ns: None,
        error_bound_ns: None,
    };
    ClocksDocument {
        schema: CLOCKS_SCHEMA.to_owned(),
        selected: selected.to_owned(),
        policy: "strict".to_owned(),
        reason: "the kernel keeps time with it".to_owned(),
        sources: vec![
            source("tsc", trusted, if trusted { "" } else { against }),
            source("monotonic", true, "the kernel keeps it"),
        ],
        cross_cpu: Vec::new(),
        monotonicity: None,
        watch: None,
        utc: None,
        utc_watch: Vec::new(),
        devices: None,
    }
}

/// A machine of bare metal with a fully preemptible kernel, CPUs 2-3 set apart, nothing left to do.
pub(super) fn tuned() -> FakeMachine {
    let machine = bare_metal().with(&[
        ("proc/sys/kernel/osrelease", "6.12.8-rt8\n"),
        ("proc/sys/kernel/version", "#1 SMP PREEMPT_RT Debian\n"),
        (
            "proc/cmdline",
            "isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-N skew_tick=1 quiet\n",
        ),
        (
            "boot/config-6.12.8-rt8",
            "CONFIG_HZ=1000\nCONFIG_PREEMPT_RT=y\nCONFIG_HIGH_RES_TIMERS=y\nCONFIG_NO_HZ_FULL=y\n\
             CONFIG_CPU_ISOLATION=y\nCONFIG_RCU_NOCB_CPU=y\n\
             # CONFIG_RT_GROUP_SCHED is not set\n# CONFIG_PROVE_LOCKING is not set\n",
        ),
        ("proc/sys/kernel/sched_rt_runtime_us", "-1\n"),
        ("proc/sys/kernel/timer_migration", "0\n"),
        ("proc/sys/kernel/nmi_watchdog", "0\n"),
        ("proc/sys/kernel/soft_watchdog", "1\n"),
        ("proc/sys/kernel/watchdog_cpumask", "0-1\n"),
        ("proc/sys/kernel/numa_balancing", "0\n"),
        ("proc/sys/vm/swappiness", "60\n"),
        ("proc/sys/vm/stat_interval", "10\n"),
        ("proc/sys/vm/compact_unevictable_allowed", "0\n"),
        ("proc/self/limits", REALTIME_LIMITS),
        ("proc/self/status", REALTIME_STATUS),
        ("proc/self/timerslack_ns", "50000\n"),
        ("proc/1/comm", "systemd\n"),
        ("proc/stat", "cpu  10 0 20 3000 4 0 3 0 0 0\n"),
        ("sys/devices/system/cpu/smt/active", "0\n"),
        ("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
        ("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "0\n"),
        ("sys/devices/system/machinecheck/machinecheck0/check_interval", "0\n"),
        ("sys/devices/virtual/workqueue/cpumask", "3\n"),
        ("sys/bus/workqueue/devices/writeback/cpumask", "3\n"),
        ("sys/module/pcie_aspm/parameters/policy", "default [performance] powersave\n"),
        ("sys/kernel/mm/ksm/run", "0\n"),
        ("sys/kernel/rcu_normal", "1\n"),
        ("sys/kernel/debug/sched/preempt", "(full) lazy\n"),
        ("sys/kernel/tracing/current_tracer", "nop\n"),
        ("sys/kernel/tracing/events/enable", "0\n"),
        ("sys/fs/cgroup/user.slice/session-1.scope/cpu.max", "max 100000\n"),
        ("proc/irq/24/smp_affinity_list", "0-1\n"),
        ("proc/irq/24/effective_affinity_list", "0\n"),
        ("proc/irq/24/eth0/x", ""),
        ("dev/null", ""),
    ]);
    for cpu in 0..4 {
        let folder = format!("sys/devices/system/cpu/cpu{cpu}");
        let core = format!("{cpu}\n");
        machine.put(&format!("{folder}/topology/thread_siblings_list"), core.as_bytes());
        machine.put(&format!("{folder}/cpufreq/scaling_governor"), b"performance\n");
        machine.put(&format!("{folder}/cpuidle/state2/disable"), b"1\n");
        let server = format!("sys/kernel/debug/sched/fair_server/cpu{cpu}");
        machine.put(&format!("{server}/runtime"), b"0\n");
        machine.put(&format!("{server}/period"), b"1000000000\n");
    }
    machine
}

/// A laptop as it was bought, of an ordinary user.
pub(super) fn laptop() -> FakeMachine {
    bare_metal().with(&[
        ("proc/cmdline", "BOOT_IMAGE=/vmlinuz quiet splash\n"),
        (
            "boot/config-6.8.0-45-lowlatency",
            "CONFIG_HZ=1000\nCONFIG_NO_HZ_FULL=y\nCONFIG_CPU_ISOLATION=y\n\
             CONFIG_RCU_NOCB_CPU=y\n# CONFIG_RT_GROUP_SCHED is not set\n",
        ),
        ("etc/os-release", "NAME=\"Ubuntu\"\nID=ubuntu\n"),
        ("etc/default/grub", "GRUB_CMDLINE_LINUX=\"\"\n"),
        ("usr/sbin/update-grub", ""),
        ("etc/passwd", "root:x:0:0::/r:/bin/sh\nada:x:1000:1000:Ada:/h:/bin/bash\n"),
        ("proc/self/status", USER_STATUS),
        ("proc/self/timerslack_ns", "50000\n"),
        ("proc/1/comm", "systemd\n"),
        ("proc/700/comm", "irqbalance\n"),
        ("proc/stat", "cpu  10 0 20 3000 4 0 3 0 0 0\n"),
        ("proc/meminfo", "MemTotal:       16384000 kB\nSwapTotal:       8388608 kB\n"),
        ("proc/sys/kernel/timer_migration", "1\n"),
        ("proc/sys/kernel/nmi_watchdog", "1\n"),
        ("proc/sys/kernel/soft_watchdog", "1\n"),
        ("proc/sys/kernel/watchdog_cpumask", "0-3\n"),
        ("proc/sys/kernel/numa_balancing", "0\n"),
        ("proc/sys/vm/swappiness", "60\n"),
        ("proc/sys/vm/stat_interval", "1\n"),
        ("proc/sys/vm/compact_unevictable_allowed", "1\n"),
        ("sys/devices/system/cpu/isolated", "\n"),
        ("sys/devices/system/cpu/nohz_full", "(null)\n"),
        ("sys/devices/system/cpu/smt/control", "on\n"),
        (
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_available_governors",
            "performance powersave\n",
        ),
        ("sys/devices/system/machinecheck/machinecheck0/check_interval", "12c\n"),
        ("sys/devices/virtual/workqueue/cpumask", "f\n"),
        ("sys/devices/virtual/workqueue/efi_runtime/cpumask", "f\n"),
        ("sys/firmware/efi/systab", ""),
        ("sys/module/pcie_aspm/parameters/policy", "[default] performance powersave\n"),
        ("sys/kernel/mm/ksm/run", "0\n"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n"),
        ("sys/kernel/rcu_normal", "0\n"),
        ("sys/kernel/tracing/current_tracer", "nop\n"),
        ("sys/kernel/tracing/events/enable", "0\n"),
        ("sys/fs/cgroup/cgroup.procs", ""),
        ("proc/irq/24/smp_affinity_list", "0-3\n"),
        ("proc/irq/24/effective_affinity_list", "3\n"),
        ("proc/irq/24/snd_hda_intel:card0/x", ""),
        ("proc/irq/9/smp_affinity_list", "0-3\n"),
        ("proc/irq/9/acpi/x", ""),
        ("proc/irq/10/smp_affinity_list", "0-3\n"),
        ("dev/null", ""),
    ])
}

/// A container of docker with half a CPU, in a virtual machine that keeps time with kvm-clock.
pub(super) fn container() -> FakeMachine {
    kvm_guest().with(&[
        (".dockerenv", ""),
        (
            "proc/self/status",
            ROOT_STATUS
                .replace("CapEff:\t000001ffffffffff", "Uid:\t0\t0\t0\t0\nCapEff:\t00000000a80425fb")
                .as_str(),
        ),
        ("proc/self/timerslack_ns", "50000\n"),
        ("proc/1/comm", "app\n"),
        ("proc/cmdline", "console=ttyS0\n"),
        ("proc/self/cgroup", "0::/\n"),
        (
            "proc/self/mountinfo",
            "31 23 0:28 / / rw - overlay overlay rw,lowerdir=/var/lib/docker/l\n\
             32 31 0:29 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
        ),
        ("sys/fs/cgroup/cpu.max", "50000 100000\n"),
        ("sys/fs/cgroup/cpuset.cpus.effective", "0-3\n"),
        ("sys/devices/virtual/workqueue/cpumask", "f\n"),
        ("proc/sys/kernel/timer_migration", "1\n"),
        ("proc/sys/vm/swappiness", "60\n"),
        ("dev/null", ""),
    ])
}

/// A machine of which nothing can be read, and on which nothing was tried.
pub(super) fn mute() -> DoctorInput {
    let machine = FakeMachine::empty();
    DoctorInput {
        host: machine.host(),
        tuning: machine.reader().tuning(),
        ..DoctorInput::default()
    }
}

pub(super) fn cpus(list: &str) -> CpuSet {
    list.parse().unwrap()
}
