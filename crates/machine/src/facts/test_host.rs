//! Machines made of files, for tests.

use std::fs;
use std::path::Path;

use hourglass_documents::host::Host;
use tempfile::TempDir;

use super::HostReader;

/// A root folder with the files of a machine.
pub(crate) struct FakeMachine(TempDir);

impl FakeMachine {
    pub(crate) fn empty() -> FakeMachine {
        FakeMachine(TempDir::new().unwrap())
    }

    /// The same machine with more files, or others in their place.
    pub(crate) fn with(self, files: &[(&str, &str)]) -> FakeMachine {
        for (path, content) in files {
            self.put(path, content.as_bytes());
        }
        self
    }

    pub(crate) fn root(&self) -> &Path {
        self.0.path()
    }

    /// Writes one file; its content need not be text.
    pub(crate) fn put(&self, path: &str, content: &[u8]) {
        let place = self.0.path().join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, content).unwrap();
    }

    pub(crate) fn fill(&self, content: &str) {
        fn walk(folder: &Path, content: &str) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, content);
                } else {
                    fs::write(&path, content).unwrap();
                }
            }
        }
        walk(self.0.path(), content);
    }

    pub(crate) fn reader(&self) -> HostReader {
        HostReader::new(self.0.path())
    }

    pub(crate) fn host(&self) -> Host {
        self.reader().read()
    }
}

/// Limits as an ordinary user has them.
pub(crate) const USER_LIMITS: &str = "\
Limit                     Soft Limit           Hard Limit           Units     
Max cpu time              unlimited            unlimited            seconds   
Max locked memory         8388608              8388608              bytes     
Max pending signals       96365                96365                signals   
Max nice priority         0                    0                    
Max realtime priority     0                    0                    
Max realtime timeout      unlimited            unlimited            us        
";

/// Status of a process without capabilities, on four CPUs.
pub(crate) const USER_STATUS: &str = "\
Name:\thourglass
CapEff:\t0000000000000000
Seccomp:\t0
Cpus_allowed_list:\t0-3
";

/// Status of a process with all capabilities.
pub(crate) const ROOT_STATUS: &str = "\
Name:\thourglass
CapEff:\t000001ffffffffff
Seccomp:\t0
Cpus_allowed_list:\t0-3
";

/// Files that all machines here have: four CPUs, the kernel's usual settings.
fn common() -> FakeMachine {
    FakeMachine::empty().with(&[
        ("proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
        ("proc/sys/kernel/sched_rt_period_us", "1000000\n"),
        ("proc/sys/kernel/sched_deadline_period_min_us", "100\n"),
        ("proc/sys/kernel/sched_deadline_period_max_us", "4194304\n"),
        ("proc/self/limits", USER_LIMITS),
        ("proc/self/status", USER_STATUS),
        ("proc/self/uid_map", "         0          0 4294967295\n"),
        ("proc/loadavg", "0.07 0.10 0.04 1/86 6958\n"),
        (
            "proc/stat",
            "cpu  10 0 20 3000 4 0 3 7 0 0\ncpu0 5 0 10 1500 2 0 1 3 0 0\n\
             cpu1 5 0 10 1500 2 0 2 4 0 0\nintr 5 1 2\n",
        ),
        ("proc/meminfo", "MemTotal:       16384000 kB\nSwapTotal:             0 kB\n"),
        ("sys/devices/system/cpu/online", "0-3\n"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
    ])
}

/// A desktop: two cores with two threads each, two CPUs isolated, the governor left at powersave.
pub(crate) fn bare_metal() -> FakeMachine {
    let machine = common().with(&[
        ("proc/sys/kernel/osrelease", "6.8.0-45-lowlatency\n"),
        ("proc/sys/kernel/version", "#45-Ubuntu SMP PREEMPT_DYNAMIC Fri Aug 30\n"),
        (
            "proc/cmdline",
            "BOOT_IMAGE=/vmlinuz root=UUID=1234 isolcpus=2-3 nohz_full=2-3 quiet preempt=full \
             -- mitigations=off\n",
        ),
        (
            "boot/config-6.8.0-45-lowlatency",
            "# CONFIG_HZ_250 is not set\nCONFIG_HZ=1000\n# CONFIG_RT_GROUP_SCHED is not set\n",
        ),
        (
            "proc/cpuinfo",
            "processor\t: 0\nmodel name\t: Intel(R) Core(TM) i7\nmicrocode\t: 0xf4\n\
             flags\t\t: fpu tsc msr constant_tsc nonstop_tsc rdtscp waitpkg tsc_adjust\n",
        ),
        ("sys/devices/system/cpu/isolated", "2-3\n"),
        ("sys/devices/system/cpu/nohz_full", "2-3\n"),
        ("sys/devices/system/cpu/smt/active", "1\n"),
        ("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n"),
        ("sys/devices/system/cpu/cpuidle/current_driver", "intel_idle\n"),
        ("sys/devices/system/cpu/cpuidle/current_governor", "menu\n"),
        ("sys/devices/system/cpu/vulnerabilities/meltdown", "Mitigation: PTI\n"),
        ("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "3\n"),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
        (
            "sys/devices/system/clocksource/clocksource0/available_clocksource",
            "tsc hpet acpi_pm \n",
        ),
        ("sys/class/dmi/id/sys_vendor", "LENOVO\n"),
        ("sys/class/dmi/id/product_name", "30D0\n"),
        ("proc/self/cgroup", "0::/user.slice/session-1.scope\n"),
        ("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n"),
    ]);
    put_power(&machine);
    machine
}

/// Siblings, frequency and idle states of the desktop's CPUs.
fn put_power(machine: &FakeMachine) {
    let states = [("POLL", "0"), ("C1", "2"), ("C6", "133")];
    for cpu in 0..4 {
        let folder = format!("sys/devices/system/cpu/cpu{cpu}");
        let core = format!("{},{}\n", cpu % 2, cpu % 2 + 2);
        machine.put(&format!("{folder}/topology/thread_siblings_list"), core.as_bytes());
        machine.put(&format!("{folder}/cpufreq/scaling_governor"), b"powersave\n");
        machine.put(&format!("{folder}/cpufreq/scaling_driver"), b"intel_pstate\n");
        machine.put(&format!("{folder}/cpufreq/scaling_min_freq"), b"800000\n");
        machine.put(&format!("{folder}/cpufreq/scaling_max_freq"), b"4700000\n");
        for (number, (name, latency_us)) in states.iter().enumerate() {
            let state = format!("{folder}/cpuidle/state{number}");
            machine.put(&format!("{state}/name"), name.as_bytes());
            machine.put(&format!("{state}/latency"), latency_us.as_bytes());
            machine.put(&format!("{state}/disable"), b"0\n");
        }
    }
}

/// A rented virtual machine that keeps time with kvm-clock.
pub(crate) fn kvm_guest() -> FakeMachine {
    common().with(&[
        ("proc/version", "Linux version 6.12.9-cloud (a@b) (gcc) #1 SMP PREEMPT(voluntary)\n"),
        (
            "proc/cpuinfo",
            "processor\t: 0\nmodel name\t: Intel Xeon Processor\n\
             flags\t\t: fpu tsc rdtscp constant_tsc hypervisor\n",
        ),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "kvm-clock\n"),
        (
            "sys/devices/system/clocksource/clocksource0/available_clocksource",
            "kvm-clock tsc acpi_pm \n",
        ),
        ("sys/class/dmi/id/sys_vendor", "QEMU\n"),
        ("sys/devices/system/cpu/nohz_full", "(null)\n"),
        ("sys/devices/system/cpu/isolated", "\n"),
        ("proc/loadavg", "3.50 2.10 1.04 4/386 6958\n"),
        // 100000 s after boot at 250 Hz; the count starts 300 s before 2^32.
        ("proc/schedstat", "version 17\ntimestamp 4319892296\n"),
        ("proc/uptime", "100000.00 390000.00\n"),
    ])
}

/// A docker container on control groups of version 1 with real-time group scheduling: the group
/// and its parent have no real-time budget.
pub(crate) fn v1_container() -> FakeMachine {
    common().with(&[
        ("proc/sys/kernel/osrelease", "5.15.0-1-generic\n"),
        (".dockerenv", ""),
        ("proc/self/cgroup", "4:cpuset:/docker/ab\n3:cpu,cpuacct:/docker/ab\n0::/docker/ab\n"),
        (
            "proc/self/mountinfo",
            "31 23 0:28 / / rw - overlay overlay rw,lowerdir=/var/lib/docker/l\n\
             32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct ro master:9 - cgroup cgroup rw,cpu,cpuacct\n\
             33 31 0:30 / /sys/fs/cgroup/cpuset ro - cgroup cgroup rw,cpuset\n",
        ),
        ("sys/fs/cgroup/cpu,cpuacct/cpu.rt_runtime_us", "900000\n"),
        ("sys/fs/cgroup/cpu,cpuacct/cpu.rt_period_us", "1000000\n"),
        ("sys/fs/cgroup/cpu,cpuacct/docker/cpu.rt_runtime_us", "0\n"),
        ("sys/fs/cgroup/cpu,cpuacct/docker/ab/cpu.rt_runtime_us", "0\n"),
        ("sys/fs/cgroup/cpu,cpuacct/docker/ab/cpu.rt_period_us", "1000000\n"),
        ("sys/fs/cgroup/cpu,cpuacct/docker/ab/cpu.cfs_quota_us", "-1\n"),
        ("sys/fs/cgroup/cpu,cpuacct/docker/ab/cpu.cfs_period_us", "100000\n"),
        ("sys/fs/cgroup/cpuset/docker/ab/cpuset.cpus", "0-1\n"),
    ])
}

/// A podman container on control groups of version 2 with a quota of one and a half CPUs.
pub(crate) fn v2_container() -> FakeMachine {
    common().with(&[
        ("proc/sys/kernel/osrelease", "6.12.1\n"),
        ("run/.containerenv", ""),
        ("proc/self/cgroup", "0::/libpod-1/app\n"),
        (
            "proc/self/mountinfo",
            "31 23 0:28 /libpod-1 /sys/fs/cg\\040roup rw - cgroup2 cgroup rw,nsdelegate\n",
        ),
        ("sys/fs/cg roup/cpu.max", "150000 100000\n"),
        (
            "sys/fs/cg roup/cpu.stat",
            "usage_usec 5\nnr_periods 9\nnr_throttled 4\nthrottled_usec 1250\n",
        ),
        ("dev/kmsg", "6,0,1,-;Linux version 6.1\n"),
        ("sys/fs/cg roup/app/cpu.max", "max 100000\n"),
        ("sys/fs/cg roup/app/memory.max", "max\n"),
        ("sys/fs/cg roup/memory.max", "1073741824\n"),
        ("sys/fs/cg roup/cpuset.cpus.effective", "0-1\n"),
        ("sys/fs/cg roup/app/cpuset.cpus.partition", "member\n"),
    ])
}
