//! Facts of machines made of files, and of this one.

use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use hourglass_documents::CpuSet;
use hourglass_documents::host::{Bound, Host, HostChange};
use hourglass_documents::tuning::{Access, BootLoader};

use super::HostReader;
use super::test_host::{FakeMachine, bare_metal, kvm_guest, v1_container, v2_container};

fn cpus(list: &str) -> CpuSet {
    list.parse().unwrap()
}

#[test]
fn bare_metal_with_isolated_cpus() {
    let host = bare_metal().host();
    assert_eq!(host.kernel, "6.8.0-45-lowlatency");
    assert!(host.kernel_build.starts_with("#45-Ubuntu"));
    assert_eq!(host.preemption.as_deref(), Some("dynamic"));
    assert_eq!(host.preemption_mode.as_deref(), Some("full"));
    assert_eq!(host.tick_hz, Some(1000));
    assert_eq!(host.boot_options, ["isolcpus=2-3", "nohz_full=2-3", "preempt=full"]);
    assert_eq!(host.kernel_config["CONFIG_RT_GROUP_SCHED"], "n");
    assert_eq!(host.scheduler.rt_group_scheduling, Some(false));

    assert_eq!(host.cpu.model.as_deref(), Some("Intel(R) Core(TM) i7"));
    assert_eq!(host.cpu.microcode.as_deref(), Some("0xf4"));
    let flags = ["tsc", "constant_tsc", "nonstop_tsc", "rdtscp", "waitpkg", "tsc_adjust"];
    assert_eq!(host.cpu.flags, flags);
    assert_eq!(host.cpu.isolated, Some(cpus("2-3")));
    assert_eq!(host.cpu.nohz_full, Some(cpus("2-3")));
    assert_eq!(host.cpu.siblings, [cpus("0,2"), cpus("1,3")]);
    assert_eq!(host.cpu.smt_active, Some(true));
    assert_eq!(host.cpu.mitigations["meltdown"], "Mitigation: PTI");

    assert_eq!(host.frequency.turbo, Some(true));
    assert_eq!(host.frequency.policies.len(), 1);
    assert_eq!(host.frequency.policies[0].cpus, cpus("0-3"));
    assert_eq!(host.frequency.policies[0].governor.as_deref(), Some("powersave"));
    assert_eq!(host.idle.policies.len(), 1);
    assert_eq!(host.idle.policies[0].cpus, cpus("0-3"));
    assert_eq!(host.idle.policies[0].states[2].latency_us, Some(133));

    assert_eq!(host.virtual_machine.present, Some(false));
    assert_eq!(host.virtual_machine.kind, None);
    assert_eq!(host.container, None);
    assert_eq!(host.memory.swap_total_bytes, Some(0));
    assert_eq!(host.memory.transparent_huge_pages.as_deref(), Some("madvise"));
    assert_eq!(host.process.cap_sys_nice, Some(false));
    assert_eq!(host.process.user_namespace, Some(false));
    assert_eq!(host.process.memory_lock_bytes.unwrap().soft, Bound::At(8_388_608));
    assert_eq!(host.process.real_time_timeout_us.unwrap().hard, Bound::Unlimited);
}

#[test]
fn kvm_guest_by_its_flag_and_clock() {
    let host = kvm_guest().host();
    assert_eq!(host.kernel, "6.12.9-cloud");
    assert_eq!(host.kernel_build, "#1 SMP PREEMPT(voluntary)");
    assert_eq!(host.virtual_machine.present, Some(true));
    assert_eq!(host.virtual_machine.kind.as_deref(), Some("kvm"));
    assert_eq!(host.clock_source.current.as_deref(), Some("kvm-clock"));
    assert_eq!(host.clock_source.available, ["kvm-clock", "tsc", "acpi_pm"]);
    assert_eq!(host.cpu.nohz_full, Some(CpuSet::default()));
    assert_eq!(host.cpu.isolated, Some(CpuSet::default()));
    assert_eq!(host.tick_hz, Some(250));
    assert_eq!(host.start.runnable_others, Some(3));
    assert_eq!(host.scheduler.rt_group_scheduling, None);
}

#[test]
fn v1_container_without_real_time_budget() {
    let host = v1_container().host();
    assert_eq!(host.container.unwrap().kind, "docker");
    let budgets: Vec<(&str, i64)> = host
        .cgroup
        .rt_budgets
        .iter()
        .map(|budget| (budget.file.as_str(), budget.runtime_us))
        .collect();
    let expected = [
        ("/sys/fs/cgroup/cpu,cpuacct/docker/ab/cpu.rt_runtime_us", 0),
        ("/sys/fs/cgroup/cpu,cpuacct/docker/cpu.rt_runtime_us", 0),
        ("/sys/fs/cgroup/cpu,cpuacct/cpu.rt_runtime_us", 900_000),
    ];
    assert_eq!(budgets, expected);
    assert!(host.cgroup.cpu_quotas.is_empty());
    assert_eq!(host.cgroup.cpuset, Some(cpus("0-1")));
    assert_eq!(host.scheduler.rt_group_scheduling, Some(true));
}

#[test]
fn v2_container_with_a_quota_above_its_group() {
    let host = v2_container().host();
    assert_eq!(host.container.unwrap().kind, "podman");
    assert_eq!(host.cgroup.cpu_quotas.len(), 1);
    assert_eq!(host.cgroup.cpu_quotas[0].file, "/sys/fs/cg roup/cpu.max");
    assert_eq!(host.cgroup.cpu_quotas[0].quota_us, 150_000);
    assert_eq!(host.cgroup.memory_limit_bytes, Some(1 << 30));
    assert_eq!(host.cgroup.cpuset, Some(cpus("0-1")));
    assert_eq!(host.cgroup.cpuset_partition.as_deref(), Some("member"));
    assert_eq!(host.start.quota_throttled, Some(4));
}

/// Version 1 counts the same in nanoseconds, under another name.
#[test]
fn a_quota_of_version_1_tells_how_long_it_stopped_the_group() {
    let group = "sys/fs/cgroup/cpu,cpuacct/docker/ab";
    let machine = v1_container().with(&[
        (&format!("{group}/cpu.cfs_quota_us"), "20000\n"),
        (&format!("{group}/cpu.cfs_period_us"), "100000\n"),
        (&format!("{group}/cpu.stat"), "nr_periods 90\nnr_throttled 12\nthrottled_time 345\n"),
    ]);
    let start = machine.reader().moment();
    assert_eq!((start.quota_throttled, start.quota_throttled_ns), (Some(12), Some(345)));
    assert_eq!(start.rt_throttling_logged, None, "there is no log to read");
}

#[test]
fn a_docker_mark_on_a_disk_is_no_container() {
    let disk = "27 1 254:0 / / rw - ext4 /dev/vda rw\n";
    let bind = "28 27 254:0 /x/hosts /etc/hosts rw - ext4 /dev/vda rw\n";
    let machine = FakeMachine::empty().with(&[(".dockerenv", "")]);
    let machine = machine.with(&[("proc/self/mountinfo", disk)]);
    assert_eq!(machine.host().container, None);
    let machine = machine.with(&[("proc/self/mountinfo", &format!("{disk}{bind}"))]);
    assert_eq!(machine.host().container.unwrap().kind, "docker");
}

#[test]
fn the_change_is_that_of_the_run_alone() {
    let machine = v2_container()
        .with(&[("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc")]);
    let start = machine.reader().moment();
    assert_eq!(start.steal_ns, Some(70_000_000));
    assert_eq!(start.steal_ns_by_cpu[&1], 40_000_000);
    let machine = machine.with(&[
        ("proc/stat", "cpu  0 0 0 0 0 0 0 9 0 0\ncpu0 0 0 0 0 0 0 0 3\ncpu1 0 0 0 0 0 0 0 6\n"),
        ("proc/loadavg", "2.00 1.00 0.50 3/86 6958\n"),
        ("sys/fs/cg roup/cpu.stat", "nr_throttled 11\nthrottled_usec 7500\n"),
        ("dev/kmsg", "4,1,2,-;sched: RT throttling activated\n"),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet"),
    ]);
    let change = machine.reader().change_since(&start);
    assert_eq!(change.steal_ns, Some(20_000_000));
    assert_eq!(change.steal_ns_by_cpu.into_iter().collect::<Vec<_>>(), [(1, 20_000_000)]);
    assert_eq!(change.load_average, Some([2.0, 1.0, 0.5]));
    assert_eq!(change.quota_throttled, Some(7));
    assert_eq!(change.quota_throttled_ns, Some(7_500_000 - 1_250_000));
    assert_eq!(change.rt_throttling_logged, Some(1));
    assert!(change.clock_source_changed);
}

/// A process that is moved to another group, or gets a quota: the counts of one are not taken from those of another.
#[test]
fn counts_of_two_groups_are_not_taken_from_each_other() {
    let stat = "nr_throttled 500\nthrottled_usec 7500000\n";
    let moved = [
        ("proc/self/cgroup", "0::/libpod-1/busy\n"),
        ("sys/fs/cg roup/busy/cpu.max", "5000 50000\n"),
        ("sys/fs/cg roup/busy/cpu.stat", stat),
    ];
    let change = |before: FakeMachine, files: &[(&str, &str)]| {
        let start = before.reader().moment();
        before.with(files).reader().change_since(&start)
    };
    let to_it = change(v2_container(), &moved);
    assert_eq!((to_it.quota_throttled, to_it.quota_throttled_ns), (None, None));
    let files = |change: &HostChange| -> Vec<String> {
        change.quotas.as_ref().unwrap().iter().map(|quota| quota.file.clone()).collect()
    };
    assert_eq!(files(&to_it), ["/sys/fs/cg roup/busy/cpu.max", "/sys/fs/cg roup/cpu.max"]);
    let unlimited = ("sys/fs/cg roup/cpu.max", "max 100000\n");
    let came = change(v2_container().with(&[unlimited]), &[("sys/fs/cg roup/cpu.max", "1 9\n")]);
    assert_eq!((came.quota_throttled, files(&came).len()), (None, 1));
    let went = change(v2_container(), &[unlimited]);
    assert_eq!((went.quota_throttled, files(&went).len()), (None, 0));
    let other_limit = change(v2_container(), &[("sys/fs/cg roup/cpu.max", "9000 100000\n")]);
    assert_eq!((other_limit.quota_throttled, other_limit.quotas), (Some(0), None));
}

#[test]
fn a_count_that_falls_tells_nothing() {
    let machine = bare_metal();
    let start = machine.reader().moment();
    assert_eq!(start.thermal_throttled, Some(3));
    let machine = machine.with(&[("proc/stat", "cpu  0 0 0 0 0 0 0 1 0 0\n")]);
    let change = machine.reader().change_since(&start);
    assert_eq!(change.steal_ns, None);
    assert_eq!(change.thermal_throttled, Some(0));
}

#[test]
fn nothing_is_guessed_where_there_are_no_files() {
    assert_eq!(FakeMachine::empty().host(), Host::default());
    assert_eq!(HostReader::new(Path::new("/nonexistent")).read(), Host::default());
}

/// A folder in the place of a file cannot be read, not even by root.
#[test]
fn an_unreadable_file_costs_only_its_own_fact() {
    let machine = FakeMachine::empty().with(&[
        ("proc/stat/folder", ""),
        ("proc/self/limits/folder", ""),
        ("proc/sys/kernel/osrelease", "6.1.0\n"),
    ]);
    let host = machine.host();
    assert_eq!(host.kernel, "6.1.0");
    assert_eq!(host.start.steal_ns, None);
    assert_eq!(host.process.memory_lock_bytes, None);
}

/// Every file that any machine here has, filled with contents that no kernel writes.
#[test]
fn hostile_contents_are_survived() {
    let long = "0-8191,".repeat(400_000);
    let contents: [&[u8]; 12] = [
        b"",
        b"\0\0\0\0",
        b"\xff\xfe\xf0\x9f\x28",
        b"-1",
        b"18446744073709551616",
        b"99999999999999999999999 0",
        b"NaN inf -inf 1/ 1",
        b": : : - - cgroup , ( [ = :: 0::/../../..\n::\n1:cpu\n - \n",
        b"0::/\n1:cpu,memory,cpuset:/a/../b\n1 2 3 /\\ /\\777\\04 r - cgroup c cpu\n",
        b"cpu cpu0 cpu-1\ncpu99999999999 1 2 3 4 5 6 7 8\ntimestamp \nnow at  nsecs\n",
        "CapEff:\té\nflags\t:\u{1b}[31m\u{202e}\n".as_bytes(),
        long.as_bytes(),
    ];
    let paths = every_path();
    assert!(paths.len() > 60, "{}", paths.len());
    for content in contents {
        let machine = FakeMachine::empty();
        for path in &paths {
            machine.put(path, content);
        }
        machine.put("sys/devices/system/cpu/cpu4294967296/online", content);
        let host = machine.host();
        let _ = machine.reader().change_since(&host.start);
        let _ = machine.reader().tuning();
        let document = serde_json::to_string(&host).unwrap();
        assert!(!document.contains('\u{1b}') && !document.contains("\\u001b"), "{document}");
        assert_eq!(serde_json::from_str::<Host>(&document).unwrap(), host);
    }
}

/// The paths of all files of all machines, relative to the root.
fn every_path() -> Vec<String> {
    fn walk(folder: &Path, root: &Path, paths: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, root, paths);
            } else {
                paths.push(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    let mut paths = Vec::new();
    for machine in [bare_metal(), kvm_guest(), v1_container(), v2_container()] {
        walk(machine.root(), machine.root(), &mut paths);
    }
    paths.extend(
        ["proc/timer_list", "dev/cpu_dma_latency", "sys/kernel/realtime"].map(str::to_owned),
    );
    paths.sort();
    paths.dedup();
    paths
}

/// What a diagnosis asks for, in the forms in which the kernel writes it.
#[test]
fn settings_and_who_asks() {
    let machine = bare_metal().with(&[
        ("proc/self/status", "Uid:\t1000\t1001\t1001\t1001\n"),
        ("etc/passwd", "root:x:0:0::/r:/bin/sh\nada:x:1001:1001::/h:/bin/sh\n"),
        ("etc/os-release", "NAME=x\nID=\"opensuse-leap\"\n"),
        ("etc/default/grub", "GRUB_CMDLINE_LINUX=\"\"\n"),
        ("usr/sbin/grub2-mkconfig", ""),
        ("sys/devices/virtual/workqueue/cpumask", "1,0000000c\n"),
        ("sys/devices/system/machinecheck/machinecheck0/check_interval", "12c\n"),
        ("etc/default/irqbalance", "#X\nIRQBALANCE_BANNED_CPULIST=\"2-3\"\n"),
        ("proc/1/comm", "systemd\n"),
        ("proc/irq/9/smp_affinity_list", "0-3\n"),
        ("proc/irq/9/effective_affinity_list", "\n"),
        ("proc/irq/9/acpi/x", ""),
        ("proc/irq/11/smp_affinity_list", "0-3\n"),
        ("proc/irq/default_smp_affinity", "f\n"),
        ("sys/fs/cgroup/cpuset.cpus.isolated", "3\n"),
        ("sys/kernel/debug/sched/fair_server/cpu1/runtime", "50000000\n"),
        ("sys/kernel/debug/sched/fair_server/cpu1/period", "1000000000\n"),
    ]);
    let tuning = machine.reader().tuning();
    assert_eq!((tuning.user.id, tuning.user.name.as_deref()), (Some(1001), Some("ada")));
    assert_eq!(tuning.distribution.as_deref(), Some("opensuse-leap"));
    assert_eq!(tuning.boot_loader, Some(BootLoader::Grub2Mkconfig));
    assert_eq!(tuning.interrupts.workqueue_cpus, Some(cpus("2-3,32")));
    assert_eq!(tuning.kernel.machine_check_interval_s, Some(300));
    assert_eq!(tuning.interrupts.irqbalance, Some(false));
    assert_eq!(tuning.interrupts.irqbalance_banned, Some(cpus("2-3")));
    let lines = tuning.interrupts.lines.unwrap();
    assert_eq!(lines.len(), 1, "an interrupt without a handler does not fire");
    assert_eq!((lines[0].number, lines[0].name.as_str()), (9, "acpi"));
    assert_eq!((&lines[0].allowed, &lines[0].delivered), (&cpus("0-3"), &None));
    assert_eq!(tuning.isolated_partitions, Some(cpus("3")));
    assert_eq!(tuning.kernel.fair_servers[&1].runtime_ns, 50_000_000);
    assert!(tuning.quota_visible);

    // Settings of GRUB that the line would not change, and a name that is no word for a shell.
    let machine = machine.with(&[
        ("etc/default/grub", "GRUB_CMDLINE_LINUX='quiet'\n"),
        ("etc/passwd", "a;b:x:1001:1001::/h:/bin/sh\n"),
        ("proc/700/comm", "irqbalance\n"),
    ]);
    let tuning = machine.reader().tuning();
    assert_eq!((tuning.boot_loader, tuning.user.name), (None, None));
    assert_eq!(tuning.interrupts.irqbalance, Some(true));
}

/// A file that the kernel lacks is distinguished from a file system that is not mounted.
#[test]
fn why_a_file_cannot_be_read() {
    let access = |machine: &FakeMachine, path: &str| machine.reader().tuning().files[path];
    let (ksm, preempt) = ("/sys/kernel/mm/ksm/run", "/sys/kernel/debug/sched/preempt");
    assert_eq!(access(&FakeMachine::empty(), ksm), Access::Unmounted);
    assert_eq!(access(&bare_metal(), ksm), Access::Missing);
    assert_eq!(access(&bare_metal(), preempt), Access::Unmounted);
    let machine = bare_metal()
        .with(&[("sys/kernel/mm/ksm/run", "0\n"), ("sys/kernel/debug/sched/debug", "")]);
    assert_eq!(access(&machine, ksm), Access::Readable);
    assert_eq!(access(&machine, preempt), Access::Missing);
    assert_eq!(access(&machine, "/sys/kernel/debug"), Access::Readable, "a folder");
}

/// A kernel that keeps its build options tells them packed; damage is no panic.
#[test]
fn build_options_from_the_kernel_itself() {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(b"CONFIG_HZ=300\n# CONFIG_PREEMPT_RT is not set\n").unwrap();
    let packed = packed.finish().unwrap();
    let machine = FakeMachine::empty().with(&[("proc/sys/kernel/osrelease", "6.18.0\n")]);
    machine.put("proc/config.gz", &packed);
    let host = machine.host();
    assert_eq!((host.tick_hz, host.kernel_config["CONFIG_PREEMPT_RT"].as_str()), (Some(300), "n"));
    machine.put("proc/config.gz", &packed[..packed.len() / 2]);
    assert!(machine.host().kernel_config.is_empty());
}

/// A hierarchy that is mounted but covered by something else shows nothing of its settings.
#[test]
fn a_hidden_hierarchy_does_not_say_that_it_has_no_budget() {
    let machine = v1_container().with(&[
        ("boot/config-5.15.0-1-generic", "CONFIG_RT_GROUP_SCHED=y\n"),
        ("proc/self/mountinfo", "32 31 0:29 / /covered/cpu ro - cgroup cgroup rw,cpu,cpuacct\n"),
    ]);
    assert_eq!(machine.host().scheduler.rt_group_scheduling, Some(true));
}

/// The group's path comes from a file; it must not lead out of the tree.
#[test]
fn no_path_climbs_out_of_the_tree() {
    let machine = FakeMachine::empty().with(&[
        ("proc/self/cgroup", "0::/../../../outside\n"),
        ("proc/self/mountinfo", "1 2 0:1 / /inside rw - cgroup2 c rw\n"),
        ("cpu.max", "1 100000\n"),
        ("outside/cpu.max", "2 100000\n"),
        ("inside/cpu.max", "3 100000\n"),
    ]);
    let quotas = machine.host().cgroup.cpu_quotas;
    let files: Vec<&str> = quotas.iter().map(|quota| quota.file.as_str()).collect();
    assert_eq!(files, ["/inside/cpu.max"]);
}

#[test]
fn real_time_kernels_by_their_three_marks() {
    let model = |path: &str, content: &str| {
        let host = FakeMachine::empty().with(&[(path, content)]).host();
        host.preemption
    };
    let rt = Some("rt".to_owned());
    assert_eq!(model("proc/version", "Linux version 6.1 (x) (gcc) #1 SMP PREEMPT_RT Debian"), rt);
    assert_eq!(model("proc/sys/kernel/version", "#1 SMP PREEMPT RT Mon"), rt);
    assert_eq!(model("sys/kernel/realtime", "1\n"), rt);
    assert_eq!(model("proc/sys/kernel/version", "#1 SMP PREEMPT").as_deref(), Some("full"));
    assert_eq!(model("proc/sys/kernel/version", "#1 SMP").as_deref(), Some("none"));
}

#[test]
fn the_latency_file_is_a_number_in_binary() {
    let machine = FakeMachine::empty();
    machine.put("dev/cpu_dma_latency", &20_i32.to_ne_bytes());
    assert_eq!(machine.host().idle.latency_limit_us, Some(20));
    machine.put("dev/cpu_dma_latency", b"20\n");
    assert_eq!(machine.host().idle.latency_limit_us, None);
}

#[test]
fn the_document_keeps_every_fact() {
    for machine in [bare_metal(), kvm_guest(), v1_container(), v2_container()] {
        let host = machine.host();
        let document = serde_json::to_string(&host).unwrap();
        assert_eq!(serde_json::from_str::<Host>(&document).unwrap(), host);
    }
    // A document of an earlier version, with fewer facts.
    let early: Host = serde_json::from_str(r#"{"kernel": "6.1", "kernel_build": "SMP"}"#).unwrap();
    assert_eq!(early.kernel, "6.1");
}

#[test]
fn this_machine_tells_its_kernel() {
    let reader = HostReader::new(Path::new("/"));
    let host = reader.read();
    assert!(!host.kernel.is_empty());
    let _ = reader.change_since(&host.start);
}
