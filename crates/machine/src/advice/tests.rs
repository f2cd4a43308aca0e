//! Advice on machines made of files.

use hourglass_documents::document::Warning;
use hourglass_documents::host::{Bound, Host, Limit};
use hourglass_documents::{CpuSet, Policy};
use hourglass_workload::run::{self as workload, Shortfall};

use super::{RefusedOperation, ThreadDemand, before_run, why_refused};
use super::{judge_again, warning, without};
use crate::facts::test_host::{
    FakeMachine, ROOT_STATUS, bare_metal, kvm_guest, v1_container, v2_container,
};

const EPERM: i32 = 1;
const ENOMEM: i32 = 12;
const EBUSY: i32 = 16;
const EINVAL: i32 = 22;

fn thread(id: u32, policy: &str, cpus: &str) -> ThreadDemand {
    ThreadDemand {
        id,
        policy: policy.parse().unwrap(),
        cpu_bound: true,
        utilisation_ppm: None,
        cpus: match cpus {
            "" => CpuSet::default(),
            list => list.parse().unwrap(),
        },
    }
}

fn periodic(id: u32, policy: &str, cpus: &str, utilisation_ppm: u64) -> ThreadDemand {
    ThreadDemand {
        cpu_bound: false,
        utilisation_ppm: Some(utilisation_ppm),
        ..thread(id, policy, cpus)
    }
}

fn ids(warnings: &[Warning]) -> Vec<&str> {
    warnings.iter().map(|warning| warning.id.as_str()).collect()
}

fn of<'a>(warnings: &'a [Warning], id: &str) -> &'a Warning {
    warnings.iter().find(|warning| warning.id == id).unwrap()
}

#[track_caller]
fn assert_names(text: &str, part: &str) {
    assert!(text.contains(part), "{text}");
}

/// A machine that does nothing to a run.
fn quiet() -> Host {
    let mut host = bare_metal().host();
    host.frequency.policies.clear();
    host
}

#[test]
fn a_quiet_machine_needs_no_advice() {
    assert_eq!(before_run(&quiet(), &[thread(0, "OTHER:0", "")]), []);
    assert_eq!(before_run(&quiet(), &[periodic(0, "FIFO:80", "1", 949_999)])[0].id, "idle-states");
    assert_eq!(before_run(&Host::default(), &[thread(0, "FIFO:80", "")]), []);
    assert_eq!(before_run(&quiet(), &[]), []);
}

/// Seen with a FIFO spinner: eight of eight large gaps of 50 to 54 ms, one second apart.
/// `sched(7)`: with autogroups a nice value counts among the threads of a session.
#[test]
fn nice_values_count_within_a_session() {
    let warns = |autogroup, policy: &str| {
        let mut host = quiet();
        host.scheduler.autogroup = autogroup;
        ids(&before_run(&host, &[thread(0, policy, "")])).contains(&"autogroup")
    };
    assert!(warns(Some(true), "OTHER:5") && warns(Some(true), "OTHER:-3"));
    assert!(!warns(Some(true), "OTHER:0") && !warns(Some(true), "FIFO:5"));
    assert!(!warns(Some(false), "OTHER:5") && !warns(None, "OTHER:5"));
}

#[test]
fn a_real_time_spinner_is_throttled() {
    let threads = [
        thread(0, "FIFO:80", ""),
        periodic(1, "FIFO:40", "", 500_000),
        thread(2, "OTHER:0", ""),
        thread(3, "RR:10", ""),
    ];
    let warnings = before_run(&quiet(), &threads);
    let warning = of(&warnings, "rt-throttling");
    assert!(
        warning.text.starts_with(
            "threads 0 (FIFO:80) and 3 (RR:10) will be stopped for up to 50ms in every 1s"
        ),
        "{}",
        warning.text
    );
    assert_names(&warning.text, "sched_rt_runtime_us=950000");
    assert!(warning.remedy.starts_with("sudo sysctl kernel.sched_rt_runtime_us=-1"));
}

/// Found with `--best-effort` as an ordinary user: a thread that runs without its real-time priority is not
/// throttled, and another that got its own still is.
#[test]
fn a_thread_that_was_refused_real_time_is_not_throttled() {
    let threads = [thread(0, "FIFO:80", ""), thread(1, "FIFO:70", "")];
    let refused = |thread, errno| Shortfall {
        thread,
        refused: workload::ThreadRefusal::Policy(Policy::Fifo(80), errno),
        fatal: false,
    };
    let advice = |refused: &[Shortfall]| {
        let mut warnings = before_run(&quiet(), &threads);
        warnings.extend(warning("other", "is kept".to_owned(), String::new()));
        judge_again(&quiet(), &without(&threads, refused), &mut warnings);
        assert_eq!(warnings.last().unwrap().id, "other");
        warnings
    };
    assert!(!ids(&advice(&[refused(0, 1), refused(1, 1)])).contains(&"rt-throttling"));
    let one = advice(&[refused(0, 1)]);
    assert!(of(&one, "rt-throttling").text.starts_with("thread 1 (FIFO:70) will be stopped"));
    assert!(of(&advice(&[]), "rt-throttling").text.starts_with("threads 0 (FIFO:80) and 1 ("));
}

#[test]
fn throttling_counts_what_shares_a_cpu() {
    let crowd = [periodic(0, "FIFO:80", "1", 500_000), periodic(1, "FIFO:70", "1", 460_000)];
    let warnings = before_run(&quiet(), &crowd);
    assert!(of(&warnings, "rt-throttling").text.contains("threads 0 (FIFO:80) and 1 (FIFO:70)"));
    let apart = [periodic(0, "FIFO:80", "1", 500_000), periodic(1, "FIFO:70", "2", 460_000)];
    assert!(!ids(&before_run(&quiet(), &apart)).contains(&"rt-throttling"));
}

#[test]
fn no_throttling_without_a_limit() {
    let mut host = quiet();
    host.scheduler.rt_runtime_us = Some(-1);
    assert_eq!(before_run(&host, &[thread(0, "FIFO:80", "")]), []);
    host.scheduler.rt_runtime_us = Some(1_000_000);
    assert_eq!(before_run(&host, &[thread(0, "FIFO:80", "")]), []);
    host.scheduler.rt_runtime_us = Some(0);
    let warnings = before_run(&host, &[periodic(0, "FIFO:80", "", 1)]);
    assert!(of(&warnings, "rt-throttling").text.contains("1s in every 1s"));
    host.scheduler.rt_runtime_us = Some(i64::MAX);
    host.scheduler.rt_period_us = Some(i64::MIN);
    assert_eq!(before_run(&host, &[thread(0, "FIFO:80", "")]), []);
}

/// Linux 6.12 took throttling out; the fair server does not look at `sched_rt_runtime_us`.
#[test]
fn later_kernels_have_a_fair_server_instead() {
    let mut host = quiet();
    host.kernel = "6.12.0-rc1".to_owned();
    host.scheduler.rt_runtime_us = Some(-1);
    let threads = [thread(0, "FIFO:80", "")];
    let warnings = before_run(&host, &threads);
    let warning = of(&warnings, "rt-throttling");
    assert_names(&warning.text, "50ms in every 1s while an ordinary thread waits");
    assert_names(&warning.remedy, "fair_server/cpu*/runtime");
    host.scheduler.fair_server_runtime_ns = Some(0);
    assert_eq!(before_run(&host, &threads), []);
    // With real-time group scheduling the old mechanism is still there.
    host.scheduler.rt_group_scheduling = Some(true);
    host.scheduler.rt_runtime_us = Some(950_000);
    assert!(before_run(&host, &threads)[0].remedy.contains("sysctl"));
}

#[test]
fn a_groups_budget_is_tighter_than_the_machines() {
    let machine = v1_container().with(&[
        ("sys/fs/cgroup/cpu,cpuacct/docker/ab/cpu.rt_runtime_us", "300000\n"),
        ("sys/fs/cgroup/cpu,cpuacct/docker/cpu.rt_runtime_us", "400000\n"),
    ]);
    let warnings = before_run(&machine.host(), &[periodic(0, "FIFO:80", "", 350_000)]);
    let warning = of(&warnings, "rt-throttling");
    assert_names(&warning.text, "700ms in every 1s");
    assert_names(&warning.text, "docker/ab/cpu.rt_runtime_us=300000");
    assert!(warning.remedy.starts_with("on the container's host: sudo sysctl"));
}

#[test]
fn a_time_limit_kills_spinners() {
    let mut host = quiet();
    host.scheduler.rt_runtime_us = Some(-1);
    host.process.real_time_timeout_us =
        Some(Limit { soft: Bound::At(200_000), hard: Bound::At(200_000) });
    let warnings = before_run(&host, &[thread(0, "FIFO:80", "")]);
    assert_eq!(ids(&warnings), ["rt-time-limit"]);
    assert_names(&warnings[0].text, "after 200ms");
}

#[test]
fn a_quota_stops_what_wants_more() {
    let host = v2_container().host();
    let two = [thread(0, "OTHER:0", ""), thread(1, "BATCH", "")];
    let warnings = before_run(&host, &two);
    let warning = of(&warnings, "cgroup-quota");
    // 150 ms of two CPUs are spent after 75 ms.
    assert_names(&warning.text, "up to 25ms in every 100ms");
    assert_names(&warning.text, "want 200 % of a CPU");
    assert_names(&warning.remedy, "without --cpus");
    assert!(!warning.text.contains("owes"), "{}", warning.text);
    // A tick of 4 ms against 1.5 ms of 50 ms: gaps of up to 204 ms were measured.
    let mut small = host.clone();
    let quota = &mut small.cgroup.cpu_quotas[0];
    (quota.quota_us, quota.period_us) = (1_500, 50_000);
    small.tick_hz = Some(250);
    let warnings = before_run(&small, &two[..1]);
    let text = &of(&warnings, "cgroup-quota").text;
    assert_names(text, "48.5ms in every 50ms; spent is noticed at ticks of 4ms");
    // One CPU's worth is within the quota, on whichever account.
    assert_eq!(before_run(&host, &two[..1]), []);
    assert_eq!(before_run(&host, &[thread(0, "OTHER:0", "1"), thread(1, "BATCH", "1")]), []);
    // A quota does not bind real-time threads.
    let real_time = [thread(0, "DEADLINE", ""), thread(1, "DEADLINE", "")];
    assert_eq!(before_run(&host, &real_time), []);
}

#[test]
fn bare_metal_left_at_powersave() {
    let host = bare_metal().host();
    let warnings = before_run(&host, &[thread(0, "OTHER:0", "2"), periodic(1, "BATCH", "3", 9)]);
    assert_eq!(ids(&warnings), ["governor", "idle-states"]);
    assert_names(&warnings[0].text, "CPUs 0-3 is powersave");
    assert_names(&warnings[0].remedy, "echo performance");
    assert_names(&warnings[1].text, "thread 1 (BATCH)");
    assert_names(&warnings[1].text, "C6, which takes 133us");
    assert!(warnings[1].remedy.starts_with("--dma-latency 0"));
}

#[test]
fn settings_already_made_are_not_advised() {
    let mut host = bare_metal().host();
    host.idle.latency_limit_us = Some(0);
    host.frequency.policies[0].min_khz = host.frequency.policies[0].max_khz;
    assert_eq!(before_run(&host, &[periodic(0, "OTHER:0", "", 1)]), []);
}

#[test]
fn a_loaded_guest() {
    let host = kvm_guest().host();
    let warnings = before_run(&host, &[thread(0, "OTHER:0", "")]);
    assert_eq!(ids(&warnings), ["clock-source", "load", "virtual-machine"]);
    assert_names(&warnings[0].text, "kvm-clock: the hypervisor steers it");
    assert!(warnings[0].remedy.starts_with("echo tsc"));
    assert_names(&warnings[1].text, "load average 3.5 on 4 CPUs");
    assert_names(&warnings[2].text, "(kvm)");
}

#[test]
fn load_matters_only_where_it_can_reach() {
    let mut host = quiet();
    host.start.load_average = Some([3.0, 3.0, 3.0]);
    host.start.runnable_others = Some(5);
    assert_eq!(ids(&before_run(&host, &[thread(0, "OTHER:0", "0")])), ["load"]);
    assert_eq!(before_run(&host, &[thread(0, "OTHER:0", "2-3")]), []);
    host.start.runnable_others = Some(0);
    assert_eq!(before_run(&host, &[thread(0, "OTHER:0", "0")]), []);
}

#[test]
fn a_slow_clock_source() {
    let mut host = quiet();
    host.clock_source.current = Some("hpet".to_owned());
    host.clock_source.available = vec!["hpet".to_owned()];
    let warnings = before_run(&host, &[thread(0, "OTHER:0", "")]);
    assert_names(&warnings[0].text, "system call");
    assert_names(&warnings[0].remedy, "dmesg");
}

/// A new group of version 1 starts with no real-time time: FIFO is refused even for root.
#[test]
fn fifo_refused_by_a_group_without_budget() {
    let as_root = v1_container().with(&[("proc/self/status", ROOT_STATUS)]).host();
    let fifo = RefusedOperation::RealTime { priority: 80 };
    let (reason, remedy) = why_refused(fifo, EPERM, &as_root);
    let folder = "/sys/fs/cgroup/cpu,cpuacct/docker";
    assert!(reason.ends_with(&format!("{folder}/ab/cpu.rt_runtime_us is 0")), "{reason}");
    let lines = format!(
        "echo 900000 > {folder}/cpu.rt_runtime_us && echo 900000 > {folder}/ab/cpu.rt_runtime_us"
    );
    assert!(remedy.starts_with(&lines), "{remedy}");
    assert_names(&remedy, "--cpu-rt-runtime=900000");

    let (reason, remedy) = why_refused(fifo, EPERM, &v1_container().host());
    assert_names(&reason, "; and CAP_SYS_NICE is missing");
    assert_names(&remedy, "--cap-add SYS_NICE --ulimit rtprio=99");
}

#[test]
fn fifo_refused_to_a_user() {
    let mut host = bare_metal().host();
    let fifo = RefusedOperation::RealTime { priority: 80 };
    let (reason, remedy) = why_refused(fifo, EPERM, &host);
    assert_eq!(reason, "CAP_SYS_NICE is missing and RLIMIT_RTPRIO is 0");
    assert!(
        remedy.starts_with("sudo setcap cap_sys_nice,cap_ipc_lock+ep $(command -v hourglass)"),
        "{remedy}"
    );
    assert_names(&remedy, "'@realtime - rtprio 99'");
    host.process.real_time_priority = Some(Limit { soft: Bound::At(0), hard: Bound::At(99) });
    assert!(why_refused(fifo, EPERM, &host).1.starts_with("ulimit -r 80"));
    let zero = why_refused(RefusedOperation::RealTime { priority: 0 }, EINVAL, &host);
    assert_names(&zero.1, "1 (lowest)");
}

#[test]
fn fifo_refused_though_the_capability_is_there() {
    let fifo = RefusedOperation::RealTime { priority: 80 };
    let rootless = v2_container()
        .with(&[("proc/self/status", ROOT_STATUS), ("proc/self/uid_map", "0 1000 1\n")])
        .host();
    let (reason, remedy) = why_refused(fifo, EPERM, &rootless);
    assert_names(&reason, "counts only inside this user namespace");
    assert!(remedy.starts_with("start the container with --ulimit rtprio=99"), "{remedy}");

    let mut root = v2_container().with(&[("proc/self/status", ROOT_STATUS)]).host();
    let (reason, remedy) = why_refused(fifo, EPERM, &root);
    assert_names(&reason, "may have CONFIG_RT_GROUP_SCHED");
    assert_names(&remedy, "rt_group_sched=0");
    root.scheduler.rt_group_scheduling = Some(false);
    assert!(why_refused(fifo, EPERM, &root).1.contains("seccomp=unconfined"));
}

#[test]
fn nice_refused_to_a_user() {
    let (reason, remedy) =
        why_refused(RefusedOperation::NegativeNice { nice: -5 }, EPERM, &bare_metal().host());
    assert_eq!(reason, "CAP_SYS_NICE is missing and RLIMIT_NICE is 0; nice -5 needs 25");
    assert_names(&remedy, "'@realtime - nice -20'");
    let (_, remedy) =
        why_refused(RefusedOperation::NegativeNice { nice: -20 }, EPERM, &v2_container().host());
    assert_eq!(remedy, "start the container with --cap-add SYS_NICE --ulimit nice=40");
}

#[test]
fn deadline_refused_in_four_ways() {
    let user = bare_metal().host();
    let (reason, remedy) = why_refused(RefusedOperation::Deadline, EPERM, &user);
    assert_names(&reason, "no resource limit grants");
    assert!(!remedy.contains("limits.d"), "{remedy}");

    // The isolated CPUs are no part of the others' domain, so 0-1 is all of it.
    let machine = bare_metal().with(&[("proc/self/status", ROOT_STATUS)]);
    let mut root = machine.host();
    root.cpu.allowed = "0-1".parse().ok();
    let (reason, remedy) = why_refused(RefusedOperation::Deadline, EPERM, &root);
    assert_names(&reason, "--cpu");
    assert!(remedy.starts_with("leave --cpu out"), "{remedy}");
    root.cpu.allowed = "1".parse().ok();
    let (reason, remedy) = why_refused(RefusedOperation::Deadline, EPERM, &root);
    assert!(reason.ends_with("has only 1"), "{reason}");
    assert_names(&remedy, "cpuset.cpus.partition");

    let (reason, _) = why_refused(RefusedOperation::Deadline, EBUSY, &root);
    assert_names(&reason, "95 % of each CPU");
    let (_, remedy) = why_refused(RefusedOperation::Deadline, EINVAL, &root);
    assert_names(&remedy, "from 100us to 4.194304s");
    assert_names(&remedy, "1024ns");
}

#[test]
fn locks_refused() {
    let lock = |bytes| RefusedOperation::MemoryLock { bytes };
    let user = bare_metal().host();
    let (reason, remedy) = why_refused(lock(16_777_216), ENOMEM, &user);
    assert_eq!(
        reason,
        "CAP_IPC_LOCK is missing and RLIMIT_MEMLOCK is 8388608 bytes; 16777216 are wanted"
    );
    assert_names(&remedy, "'@realtime - memlock unlimited'");
    let (reason, _) = why_refused(lock(4096), ENOMEM, &user);
    assert!(reason.ends_with("more than what is locked already"), "{reason}");
    let (_, remedy) = why_refused(lock(16_777_216), ENOMEM, &v2_container().host());
    assert_eq!(remedy, "start the container with --cap-add IPC_LOCK --ulimit memlock=-1");

    let root = v2_container().with(&[("proc/self/status", ROOT_STATUS)]).host();
    let (reason, _) = why_refused(lock(2 << 30), ENOMEM, &root);
    assert_names(&reason, "may use 1073741824 bytes");
}

/// Whatever is refused, for whatever reason, on whatever machine: one line each, and a remedy.
#[test]
fn every_answer_is_one_line() {
    let refusals = [
        RefusedOperation::RealTime { priority: 255 },
        RefusedOperation::NegativeNice { nice: i8::MIN },
        RefusedOperation::NegativeNice { nice: i8::MAX },
        RefusedOperation::Deadline,
        RefusedOperation::MemoryLock { bytes: u64::MAX },
    ];
    let machines =
        [FakeMachine::empty(), bare_metal(), kvm_guest(), v1_container(), v2_container()];
    for machine in machines {
        let host = machine.host();
        for refused in refusals {
            for errno in [-1, 0, EPERM, ENOMEM, EBUSY, EINVAL, 38, i32::MAX] {
                let (reason, remedy) = why_refused(refused, errno, &host);
                for line in [reason, remedy] {
                    assert!(!line.is_empty() && !line.contains('\n'), "{line}");
                }
            }
        }
        let demands = [thread(0, "FIFO:99", ""), thread(u32::MAX, "RR:1", "8191")];
        for warning in before_run(&host, &demands) {
            assert!(!warning.text.contains("  ") && !warning.remedy.contains("  "));
            assert!(!warning.remedy.is_empty());
        }
    }
}

#[test]
fn unknown_shares_are_not_counted() {
    let unknown = ThreadDemand {
        cpu_bound: false,
        utilisation_ppm: None,
        policy: Policy::Fifo(80),
        ..thread(0, "OTHER:0", "")
    };
    assert_eq!(ids(&before_run(&quiet(), &[unknown])), ["idle-states"]);
}
