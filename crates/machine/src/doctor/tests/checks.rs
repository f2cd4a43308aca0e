//! Single checks, each in the states that differ.

use std::io::ErrorKind;

use hourglass_documents::doctor::Status;
use hourglass_documents::host::{Bound, CpuQuota, Limit};
use hourglass_documents::tuning::{Access, BootLoader};

use super::machines::{GRANTED, REFUSED, clocks, cpus, evidence, laptop, tuned};
use crate::doctor::registry::CHECKS;
use crate::doctor::{DoctorInput, ProbeResults};
use crate::facts::test_host::{ROOT_STATUS, kvm_guest, v1_container};

/// Status, finding and remedy of one check.
fn judge(id: &str, e: &DoctorInput) -> (Status, String, String) {
    let check = CHECKS.iter().find(|check| check.id == id).unwrap();
    let verdict = check.evaluate(e);
    (verdict.status, verdict.found, verdict.remedy)
}

/// The verdict must be this status, and name this in its finding and this in its remedy.
#[track_caller]
fn says(id: &str, e: &DoctorInput, status: Status, found: &str, remedy: &str) {
    let verdict = judge(id, e);
    assert!(verdict.0 == status, "{verdict:?}");
    assert!(verdict.1.contains(found), "{verdict:?}");
    assert!(verdict.2.contains(remedy), "{verdict:?}");
}

fn tuned_evidence() -> DoctorInput {
    evidence(&tuned(), "tsc", GRANTED)
}

fn laptop_evidence() -> DoctorInput {
    evidence(&laptop(), "tsc", REFUSED)
}

/// kvm-clock is steered; hpet makes each read a system call (sozu #500).
#[test]
fn the_clock_source() {
    let mut e = laptop_evidence();
    e.host.clock_source.current = Some("hpet".to_owned());
    says("clock-source", &e, Status::Fail, "hpet (changed: the kernel would take tsc)", "echo tsc");
    e.host.boot_options.push("clocksource=hpet".to_owned());
    says("clock-source", &e, Status::Fail, "hpet (clocksource=hpet on", "echo tsc");
    e.host.clock_source.available = vec!["hpet".to_owned()];
    says("clock-source", &e, Status::Fail, "hpet", "boot without clocksource=hpet");
    e.host.boot_options.clear();
    says("clock-source", &e, Status::Fail, "the kernel has dropped the TSC", "dmesg");

    let mut guest = evidence(&kvm_guest(), "monotonic", GRANTED);
    // The guest shows no nonstop_tsc: choosing the TSC would be wrong.
    says("clock-source", &guest, Status::Warn, "kvm-clock", "+invtsc");
    says("tsc", &guest, Status::Warn, "without nonstop_tsc", "+invtsc");
    says("clock-choice", &guest, Status::Warn, "monotonic, for tsc is not trusted", "+invtsc");
    guest.host.cpu.flags.push("nonstop_tsc".to_owned());
    says("clock-source", &guest, Status::Warn, "kvm-clock", "echo tsc");
    guest.host.clock_source.current = Some("tsc".to_owned());
    says("clock-source", &guest, Status::Ok, "the kernel would take kvm-clock", "");
}

/// Without high-resolution timers the kernel's clocks are as coarse as the tick (`clock_getres`).
#[test]
fn timers_that_expire_at_ticks() {
    let mut e = tuned_evidence();
    let mut coarse = clocks("tsc");
    coarse.sources[1].resolution_ns = Some(4_000_000.0);
    e.clocks = Some(coarse);
    e.host.boot_options.push("highres=off".to_owned());
    says("timer-resolution", &e, Status::Fail, "4000000 ns", "boot without highres=off");
}

#[test]
fn real_time_priorities() {
    let mut e = laptop_evidence();
    let line = "echo 'ada - rtprio 99' | sudo tee -a /etc/security/limits.d/99-realtime.conf";
    says("rtprio", &e, Status::Fail, "CAP_SYS_NICE is missing and RLIMIT_RTPRIO is 0", line);
    e.tuning.user.name = None;
    says("rtprio", &e, Status::Fail, "refused", "echo '@realtime - rtprio 99'");
    e.host.process.real_time_priority = Some(Limit { soft: Bound::At(0), hard: Bound::At(99) });
    says("rtprio", &e, Status::Fail, "refused", "ulimit -r 99 #");

    e.trials = GRANTED;
    e.host.process.real_time_priority = Some(Limit { soft: Bound::At(20), hard: Bound::At(20) });
    says("rtprio", &e, Status::Warn, "up to 20 (RLIMIT_RTPRIO), below the 50", "rtprio 99");
    e.host.process.cap_sys_nice = Some(true);
    says("rtprio", &e, Status::Ok, "up to 99", "");
}

/// A refusal that no limit explains: the real answer of the kernel counts, not the limits.
#[test]
fn a_filter_refuses_although_the_capability_is_there() {
    let mut e = evidence(&tuned(), "tsc", REFUSED);
    e.host.process.cap_sys_nice = Some(true);
    e.host.process.seccomp = Some(true);
    says("rtprio", &e, Status::Fail, "seccomp", "dmesg");
}

#[test]
fn groups_without_real_time_time() {
    let machine = v1_container().with(&[("proc/self/status", ROOT_STATUS)]);
    let e = evidence(&machine, "tsc", REFUSED);
    says("rt-group", &e, Status::Fail, "cpu.rt_runtime_us is 0", "echo 900000 >");
    // Linux 6.12 and later with the option built in, groups of version 2: nothing shows it.
    let mut e = laptop_evidence();
    e.host.scheduler.rt_group_scheduling = Some(true);
    says("rt-group", &e, Status::Fail, "has CONFIG_RT_GROUP_SCHED", "rt_group_sched=0");
    e.trials = GRANTED;
    says("rt-group", &e, Status::Ok, "lets real-time threads in", "");
}

#[test]
fn memory_nice_and_time_limits() {
    let mut e = laptop_evidence();
    says("memlock", &e, Status::Warn, "8388608 bytes", "'ada - memlock unlimited'");
    says("nice", &e, Status::Warn, "none below 0", "'ada - nice -20'");
    e.host.process.memory_lock_bytes =
        Some(Limit { soft: Bound::At(65_536), hard: Bound::Unlimited });
    says("memlock", &e, Status::Warn, "65536 bytes", "ulimit -l unlimited #");
    e.host.process.nice_ceiling = Some(Limit { soft: Bound::At(31), hard: Bound::At(31) });
    says("nice", &e, Status::Ok, "down to -11", "");
    e.host.process.real_time_timeout_us =
        Some(Limit { soft: Bound::At(200_000), hard: Bound::At(200_000) });
    says("rt-time-limit", &e, Status::Warn, "after 200ms", "--rttime=unlimited #");
}

/// Slack only delays ordinary threads, so it counts where there can be no others.
#[test]
fn timer_slack_counts_without_real_time_threads() {
    let mut e = laptop_evidence();
    says("timer-slack", &e, Status::Warn, "50000 ns", "echo 1 > /proc/$$/timerslack_ns");
    e.trials = GRANTED;
    says("timer-slack", &e, Status::Ok, "50000 ns", "");
    e.tuning.timer_slack_ns = Some(1_000_000);
    says("timer-slack", &e, Status::Warn, "1000000 ns", "timerslack_ns");
}

/// Throttling went in Linux 6.12, but not where real-time time is accounted by group.
#[test]
fn throttling_and_fair_servers() {
    let mut e = tuned_evidence();
    e.host.scheduler.rt_runtime_us = Some(950_000);
    says("rt-throttling", &e, Status::Ok, "does not throttle", "");
    e.host.scheduler.rt_group_scheduling = Some(true);
    says("rt-throttling", &e, Status::Warn, "50ms in every 1s", "sched_rt_runtime_us=-1 #");
    e.host.scheduler.rt_runtime_us = Some(0);
    says("rt-throttling", &e, Status::Fail, "no time", "sched_rt_runtime_us=-1");
    e.host.scheduler.rt_group_scheduling = None;
    says("rt-throttling", &e, Status::Unknown, "CONFIG_RT_GROUP_SCHED", "config-$(uname -r)");

    for server in e.tuning.kernel.fair_servers.values_mut() {
        server.runtime_ns = 50_000_000;
    }
    // Only the servers on the CPUs of the work are in its way.
    let line = "for c in 2 3; do echo 0 > /sys/kernel/debug/sched/fair_server/cpu$c/runtime";
    says("fair-server", &e, Status::Warn, "CPUs 2-3 keep 50ms in every 1s", line);
    e.asked = Some(cpus("0-3"));
    says("fair-server", &e, Status::Warn, "CPUs 0-3", "fair_server/cpu*/runtime");
    e.tuning.kernel.fair_servers.clear();
    e.tuning
        .files
        .insert("/sys/kernel/debug/sched/fair_server/cpu0/runtime".to_owned(), Access::Denied);
    says("fair-server", &e, Status::Unknown, "permission denied", "sudo hourglass doctor");
    says("fair-server", &laptop_evidence(), Status::Ok, "has none", "");
}

#[test]
fn preemption_by_what_tells_it() {
    let mut e = laptop_evidence();
    says("preemption", &e, Status::Warn, "mode not told", "preempt=full");
    // As Debian's kernels of its backports.
    e.host.kernel = "7.3.1+deb13-cloud-amd64".to_owned();
    if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        let mode = "full or lazy, as this version";
        says("preemption", &e, Status::Warn, mode, "pro enable realtime");
    }
    e.host.preemption_mode = Some("voluntary".to_owned());
    says("preemption", &e, Status::Warn, "voluntary: kernel code may keep", "preempt=full");
    let debugfs = "/sys/kernel/debug/sched/preempt";
    e.tuning.files.insert(debugfs.to_owned(), Access::Readable);
    says("preemption", &e, Status::Warn, "voluntary", "echo full | sudo tee /sys/kernel/debug");
    e.host.preemption_mode = Some("lazy".to_owned());
    says("preemption", &e, Status::Warn, "lazy: kernel code gives way", "pro enable realtime");
    e.host.preemption_mode = None;
    e.host.kernel_config.insert("CONFIG_PREEMPT_NONE".to_owned(), "y".to_owned());
    says("preemption", &e, Status::Warn, "none as built", "full");
    e.tuning.distribution = Some("debian".to_owned());
    e.host.preemption = Some("none".to_owned());
    says("preemption", &e, Status::Warn, "no PREEMPT_RT", "apt-get install linux-image-rt-");
    let mut guest = evidence(&kvm_guest(), "monotonic", GRANTED);
    says("preemption", &guest, Status::Warn, "voluntary", "CONFIG_PREEMPT_RT=y");
    guest.host.preemption = Some("rt".to_owned());
    says("preemption", &guest, Status::Ok, "PREEMPT_RT", "");
}

#[test]
fn cpus_set_apart_by_isolcpus_or_a_partition() {
    let mut e = tuned_evidence();
    e.asked = Some(cpus("1-2"));
    says("isolation", &e, Status::Warn, "CPUs 1 are open", "isolcpus=managed_irq,domain,1-2");
    e.tuning.isolated_partitions = Some(cpus("1"));
    says("isolation", &e, Status::Ok, "CPUs 1-2 are isolated", "");
    e.asked = Some(cpus("0-3"));
    says("isolation", &e, Status::Warn, "CPUs 0 are open", "name fewer CPUs with --cpus");
    e.asked = None;
    e.host.cpu.online = Some(cpus("0"));
    says("isolation", &e, Status::Warn, "no CPU is kept", "a second CPU");
    // Without a choice of CPUs those of the last core are proposed.
    let line = "isolcpus=managed_irq,domain,1,3";
    says("isolation", &laptop_evidence(), Status::Warn, "no CPU", line);
}

/// Each way of changing the kernel's command line.
#[test]
fn boot_loaders() {
    let mut e = tuned_evidence();
    e.asked = Some(cpus("1"));
    for (loader, line) in [
        (BootLoader::Grubby, "sudo grubby --update-kernel=ALL --args=\"isolcpus=managed_irq"),
        (BootLoader::UpdateGrub, "/etc/default/grub && sudo update-grub #"),
        (BootLoader::Grub2Mkconfig, "&& sudo grub2-mkconfig -o /boot/grub2/grub.cfg"),
        (BootLoader::GrubMkconfig, "&& sudo grub-mkconfig -o /boot/grub/grub.cfg"),
        (BootLoader::Firmware, "isolcpus=managed_irq,domain,1/' /boot/firmware/cmdline.txt"),
        (BootLoader::BootFolder, "/boot/cmdline.txt"),
        (BootLoader::KernelInstall, "/etc/kernel/cmdline && sudo kernel-install add"),
    ] {
        e.tuning.boot_loader = Some(loader);
        says("isolation", &e, Status::Warn, "", line);
    }
    e.tuning.boot_loader = None;
    says("isolation", &e, Status::Warn, "", "add to the kernel's command line (boot loader)");
}

#[test]
fn threads_that_share_a_core() {
    let mut e = laptop_evidence();
    says("smt", &e, Status::Warn, "CPUs share 2 cores, such as CPUs 0,2", "echo off | sudo tee");
    // For some CPUs only: their siblings go.
    e.asked = Some(cpus("1"));
    says("smt", &e, Status::Warn, "CPUs 1,3 share a core", "for c in 3;");
    e.host.cpu.online = Some(cpus("0-2"));
    says("smt", &e, Status::Ok, "CPUs 1 have their cores to themselves", "");
}

#[test]
fn interrupts_by_where_they_are_delivered() {
    let mut e = laptop_evidence();
    // One has no handler, and none without effective affinity is forgotten.
    says("irq-affinity", &e, Status::Warn, "2 of 2 interrupts", "do echo 0,2 | sudo tee $f");
    e.asked = Some(cpus("2"));
    let found = "1 of 2 interrupts are delivered to CPUs 2 (9 acpi)";
    says("irq-affinity", &e, Status::Warn, found, "echo b |");
    let mut e = tuned_evidence();
    says("irq-affinity", &e, Status::Ok, "none of 1 interrupts", "");
    e.asked = Some(cpus("1"));
    says("irq-affinity", &e, Status::Ok, "though 1 may be", "");
}

/// `irqbalance` leaves isolated CPUs alone, unless its list says otherwise.
#[test]
fn the_balancer_and_its_list() {
    let mut e = tuned_evidence();
    e.tuning.interrupts.irqbalance = Some(true);
    says("irqbalance", &e, Status::Ok, "leaves CPUs 2-3 alone", "");
    e.tuning.interrupts.irqbalance_banned = Some(cpus("3"));
    says("irqbalance", &e, Status::Warn, "to CPUs 2", "systemctl disable --now irqbalance");
}

#[test]
fn noise_only_where_the_work_is() {
    let mut e = tuned_evidence();
    e.tuning.kernel.timer_migration = Some(true);
    says("timer-migration", &e, Status::Ok, "not to CPUs of nohz_full", "");
    says("tick", &e, Status::Ok, "none on CPUs that run one thread", "");
    says("watchdog", &e, Status::Ok, "none watches", "");
    e.asked = Some(cpus("1"));
    says("timer-migration", &e, Status::Warn, "CPUs 1", "kernel.timer_migration=0");
    says("tick", &e, Status::Warn, "1000 ticks a second interrupt CPUs 1", "nohz_full=1");
    says("rcu-callbacks", &e, Status::Warn, "CPUs 1 do their own", "rcu_nocbs=1");
    says("watchdog", &e, Status::Warn, "on CPUs 1", "kernel.watchdog_cpumask=0,2-3");
    says("workqueues", &e, Status::Warn, "CPUs 1", "echo d | sudo tee");
    e.host.kernel_config.insert("CONFIG_NO_HZ_FULL".to_owned(), "n".to_owned());
    says("tick", &e, Status::Warn, "", "built with CONFIG_NO_HZ_FULL=y");
    says("skew-tick", &e, Status::Ok, "skew_tick=1", "");
}

#[test]
fn governors_that_there_are() {
    let mut e = laptop_evidence();
    let found = "powersave (intel_pstate) on CPUs 0-3, from 800 to 4700 MHz";
    says("governor", &e, Status::Warn, found, "cpu*/cpufreq/scaling_governor");
    e.asked = Some(cpus("2-3"));
    says("governor", &e, Status::Warn, "on CPUs 2-3", "for c in 2 3; do for f in");
    e.tuning.processor.governors = vec!["powersave".to_owned(), "schedutil".to_owned()];
    says("governor", &e, Status::Warn, "", "available: powersave, schedutil");
    says("governor", &e, Status::Warn, "", "scaling_min_freq");
    // The frequency is fixed under any governor.
    e.host.frequency.policies[0].min_khz = Some(4_700_000);
    says("governor", &e, Status::Ok, "powersave on CPUs 2-3", "");
    says("turbo", &e, Status::Warn, "on", "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate");
}

#[test]
fn idle_states_and_who_may_hold_them_off() {
    let mut e = laptop_evidence();
    let line = "for f in /sys/devices/system/cpu/cpu$c/cpuidle/state[2]/disable; do echo 1";
    says("idle-states", &e, Status::Warn, "C6 takes 133us", line);
    says("cpu-dma-latency", &e, Status::Warn, "may not set one", "chmod a+rw /dev/cpu_dma_latency");
    e.trials = GRANTED;
    e.host.idle.latency_limit_us = Some(2_000_000_000);
    says("cpu-dma-latency", &e, Status::Ok, "no limit is set; this user may", "");
    e.host.idle.latency_limit_us = Some(5);
    says("idle-states", &e, Status::Ok, "held to 5 us", "");
    e.trials.idle_latency = Some(Err(ErrorKind::PermissionDenied));
    says("cpu-dma-latency", &e, Status::Ok, "5 us is set; this user may not", "");
}

#[test]
fn swap_counts_where_memory_is_not_locked() {
    let mut e = laptop_evidence();
    says("swap", &e, Status::Warn, "8192 MiB, vm.swappiness=60", "sudo swapoff -a # or");
    e.tuning.memory.swappiness = Some(10);
    says("swap", &e, Status::Warn, "vm.swappiness=10", "swapoff");
    e.host.process.cap_ipc_lock = Some(true);
    says("swap", &e, Status::Ok, "memory may be locked", "");
}

#[test]
fn a_quota_binds_if_it_is_less_than_the_cpus() {
    let mut e = laptop_evidence();
    says("cgroup-quota", &e, Status::Ok, "none", "");
    let file = "/sys/fs/cgroup/user.slice/cpu.max".to_owned();
    e.host.cgroup.cpu_quotas =
        vec![CpuQuota { file: file.clone(), quota_us: 200_000, period_us: 100_000 }];
    says("cgroup-quota", &e, Status::Fail, "200 % of a CPU", "echo max | sudo tee /sys/fs/cgroup");
    e.host.cgroup.cpu_quotas[0].quota_us = 400_000;
    says("cgroup-quota", &e, Status::Ok, "as much as there is", "");
}

#[test]
fn cpus_within_reach() {
    let mut e = laptop_evidence();
    e.host.cgroup.cpuset = Some(cpus("0-1"));
    e.host.cpu.allowed = Some(cpus("0-1"));
    let line = "/sys/fs/cgroup/user.slice/session-1.scope/cpuset.cpus";
    says("cpuset", &e, Status::Warn, "starts on CPUs 0-1 of 0-3 only", line);
    e.asked = Some(cpus("3"));
    says("cpuset", &e, Status::Fail, "CPUs 3 are barred", line);
    e.host.cgroup.cpuset = None;
    says("cpuset", &e, Status::Ok, "CPUs 0-3 may be used", "");
    e.asked = None;
    says("cpuset", &e, Status::Warn, "only", "taskset -cp 0-3 $$");
    // Isolated CPUs are outside of every program's usual set.
    says("cpuset", &tuned_evidence(), Status::Ok, "0-3", "");
}

#[test]
fn stolen_time_and_other_programs() {
    let mut e = evidence(&kvm_guest(), "monotonic", GRANTED);
    says("steal-time", &e, Status::Warn, "took 70ms", "virsh vcpupin");
    e.host.start.steal_ns = Some(0);
    says("steal-time", &e, Status::Ok, "does not prove", "");
    says("load", &e, Status::Warn, "load average 3.5 on 4 CPUs", "end them");
    let mut e = tuned_evidence();
    e.host.start.load_average = Some([3.5, 0.0, 0.0]);
    e.host.start.runnable_others = Some(3);
    says("load", &e, Status::Ok, "the work has its own", "");
}

#[test]
fn the_rest_of_the_memory_and_the_build() {
    let mut e = tuned_evidence();
    e.tuning.memory.merging = Some(1);
    says("ksm", &e, Status::Warn, "merges", "echo 2 | sudo tee /sys/kernel/mm/ksm/run");
    e.host.scheduler.autogroup = Some(true);
    says("autogroup", &e, Status::Warn, "its session", "kernel.sched_autogroup_enabled=0");
    e.host.scheduler.autogroup = Some(false);
    says("autogroup", &e, Status::Ok, "off", "");
    e.host.scheduler.numa_balancing = Some(true);
    says("numa-balancing", &e, Status::Warn, "on", "kernel.numa_balancing=0");
    e.tuning.memory.nodes = Some(1);
    says("numa-balancing", &e, Status::Ok, "one memory node", "");
    e.host.kernel_config.insert("CONFIG_PROVE_LOCKING".to_owned(), "y".to_owned());
    says("kernel-debugging", &e, Status::Warn, "CONFIG_PROVE_LOCKING", "without them");
    e.tuning.kernel.tracer = Some("function".to_owned());
    says("tracing", &e, Status::Warn, "tracer function", "echo nop");
    e.tuning.processor.pcie_policy = Some("powersave".to_owned());
    says("pcie-power", &e, Status::Warn, "powersave", "echo performance");
    e.tuning.kernel.rcu_normal = Some(false);
    e.host.preemption = Some("full".to_owned());
    says("rcu-expedited", &e, Status::Warn, "interrupt every CPU", "echo 1");
    says("machine-check", &laptop_evidence(), Status::Warn, "every 300 s", "check_interval");
    says("firmware", &laptop_evidence(), Status::Warn, "EFI", "efi=noruntime");
}

/// A missing file is distinguished from one that may not be read.
#[test]
fn why_a_file_tells_nothing() {
    let mut e = laptop_evidence();
    e.tuning.memory.merging = None;
    let path = "/sys/kernel/mm/ksm/run".to_owned();
    for (access, root, status, remedy) in [
        (Access::Missing, false, Status::Ok, ""),
        (Access::Denied, false, Status::Unknown, "sudo hourglass doctor"),
        (Access::Denied, true, Status::Unknown, "names the rule"),
        (Access::Unmounted, false, Status::Unknown, "sudo mount -t sysfs none /sys && sudo"),
        (Access::Unmounted, true, Status::Unknown, "mount -t sysfs none /sys"),
        (Access::Readable, false, Status::Unknown, "cat /sys/kernel/mm/ksm/run"),
    ] {
        e.tuning.files.insert(path.clone(), access);
        e.tuning.user.id = Some(if root { 0 } else { 1000 });
        says("ksm", &e, status, "", remedy);
    }
}

#[test]
fn nothing_tried_is_nothing_known() {
    let e = DoctorInput { trials: ProbeResults::default(), ..tuned_evidence() };
    for id in ["rtprio", "deadline-class"] {
        says(id, &e, Status::Unknown, "it was not tried", "chrt");
    }
}
