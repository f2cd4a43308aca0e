//! The rules against machines made of files.

use std::collections::BTreeMap;
use std::fs;

use hourglass_documents::{Reservation, ReservationKind};
use hourglass_sys::sched::Attributes;
use hourglass_time::Span;
use tempfile::TempDir;

use super::facts::{FairServer, FairServerSource};
use super::*;
use crate::testing::request;

struct Machine {
    root: TempDir,
    policies: BTreeMap<u32, Attributes>,
}

/// Root on two CPUs with Linux 6.18, control groups of version 1, no thread in the class.
fn machine() -> Machine {
    Machine { root: TempDir::new().unwrap(), policies: BTreeMap::new() }.with(&[
        ("proc/sys/kernel/osrelease", "6.18.44-custom\n"),
        ("proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
        ("proc/sys/kernel/sched_rt_period_us", "1000000\n"),
        ("proc/sys/kernel/sched_deadline_period_min_us", "100\n"),
        ("proc/sys/kernel/sched_deadline_period_max_us", "4194304\n"),
        (
            "proc/self/status",
            "Name:\thg\nTgid:\t7\nCapEff:\t000001ffffffffff\nCpus_allowed_list:\t0-1\n",
        ),
        ("proc/self/uid_map", "         0          0 4294967295\n"),
        ("proc/self/limits", "Max realtime priority     0                    0  \n"),
        ("proc/self/cgroup", "3:cpuset:/\n1:cpu:/\n0::/\n"),
        (
            "proc/self/mountinfo",
            "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n\
             34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n\
             41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n",
        ),
        ("proc/7/task/7/status", "Name:\thg\n"),
        ("sys/devices/system/cpu/online", "0-1\n"),
        ("sys/devices/system/cpu/isolated", "\n"),
        ("sys/fs/cgroup/cpu/cpu.rt_runtime_us", "950000\n"),
        ("sys/fs/cgroup/cpuset/cpuset.sched_load_balance", "1\n"),
        ("sys/fs/cgroup/cpuset/cpuset.effective_cpus", "0-1\n"),
    ])
}

impl Machine {
    fn with(self, files: &[(&str, &str)]) -> Machine {
        for (path, content) in files {
            let place = self.root.path().join(path);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, content).unwrap();
        }
        self
    }

    fn with_thread(mut self, tid: u32, name: &str, runtime_ns: u64, period_ns: u64) -> Machine {
        let attributes = Attributes::Deadline {
            runtime_ns,
            deadline_ns: period_ns,
            period_ns,
            reclaim: false,
            overrun_signal: false,
        };
        self.policies.insert(tid, attributes);
        let status = format!("Name:\t{name}\nCpus_allowed_list:\t0-1\n");
        self.with(&[(&format!("proc/{tid}/task/{tid}/status"), &status)])
    }

    fn facts_of(&self, subject: Option<u32>) -> AdmissionFacts {
        AdmissionFacts::read(self.root.path(), subject, &|tid| self.policies.get(&tid).copied())
    }

    fn facts(&self) -> AdmissionFacts {
        self.facts_of(None)
    }
}

/// By the deadline class, and then by a user-space reserve.
fn check(request: &BackendRequest, facts: &AdmissionFacts) -> Vec<Refusal> {
    [deadline(request, facts), user(request, facts)].concat()
}

fn ids(refusals: &[Refusal]) -> Vec<(BackendKind, Obstacle)> {
    refusals.iter().map(|refusal| (refusal.backend, refusal.id)).collect()
}

fn only(request: &BackendRequest, facts: &AdmissionFacts) -> Refusal {
    let mut refusals = deadline(request, facts);
    assert_eq!(refusals.len(), 1, "{refusals:?}");
    refusals.remove(0)
}

#[test]
fn nothing_is_in_the_way_of_root_on_an_idle_machine() {
    let facts = machine().facts();
    assert_eq!(check(&request(3_100, 8_000), &facts), []);
    assert_eq!(facts.threads, Some(1));
    assert_eq!(
        (facts.fair_servers.len(), facts.fair_servers_known),
        (2, FairServerSource::Assumed)
    );
}

/// 36 threads of 5 % and two fair servers of 5 % are 190 %, exactly what two CPUs have at 95 %; one part in a
/// million more is too much (the numbers that a kernel gave: 36 were admitted, the 37th was busy).
#[test]
fn the_sum_is_exact() {
    let mut full = machine();
    for tid in 100..135 {
        full = full.with_thread(tid, "t", 5_000_000, 100_000_000);
    }
    let facts = full.facts();
    assert_eq!(facts.deadline_threads.len(), 35);
    assert_eq!(deadline(&request(5_000, 100_000), &facts), []);
    let refusal = only(&request(5_001, 100_000), &facts);
    assert_eq!(refusal.id, Obstacle::Bandwidth);
    assert!(refusal.cause.contains("190 % on CPUs 0-1, of which 185 % is given away"), "{refusal}");
    assert!(refusal.cause.contains("10 % to the fair servers (assumed"), "{refusal}");
    assert!(refusal.cause.contains("the remaining part to 32 more threads"), "{refusal}");
    assert!(refusal.remedy.starts_with("reserve at most 5ms/100ms"), "{refusal}");
}

/// Dhall's effect in small: two threads of 60 % and one of 50 % every 100 ms on two CPUs are admitted, and one
/// may be late; two threads on two CPUs never are.
#[test]
fn what_is_admitted_may_still_be_late() {
    let alone = machine().with(&[("proc/sys/kernel/osrelease", "6.8.0\n")]);
    assert_eq!(lateness(&request(90_000, 100_000), &alone.facts()), Some(BudgetDelay::Never));
    let two = alone.with_thread(100, "a", 60_000_000, 100_000_000).with_thread(
        101,
        "b",
        60_000_000,
        100_000_000,
    );
    let facts = two.facts();
    assert_eq!(deadline(&request(50_000, 100_000), &facts), []);
    // Devi and Anderson: U = 1.7, so L = 1 and x = (60 - 50) / 2 ms; late by at most C + x.
    let late = lateness(&request(50_000, 100_000), &facts);
    assert_eq!(late, Some(BudgetDelay::AtMost(55_000_000)));
    // A light one is proven by any of the tests.
    assert_eq!(lateness(&request(1_000, 100_000), &facts), Some(BudgetDelay::Never));
}

/// Two CPUs of 1024 and of 438: 0.95 of 1462 units are 1.3563 CPUs, of which fair servers have 0.1 (`__dl_overflow` and
/// `dl_bw_capacity` in `kernel/sched/deadline.c`); 438 ms of 1 s fill the slower one.
#[test]
fn a_slower_cpu_gives_less_and_charges_less() {
    let big_little = |kernel, slower| {
        machine()
            .with(&[
                ("proc/sys/kernel/osrelease", kernel),
                ("sys/devices/system/cpu/cpu0/cpu_capacity", "1024\n"),
                ("sys/devices/system/cpu/cpu1/cpu_capacity", slower),
            ])
            .with_thread(100, "a", 500_000_000, 1_000_000_000)
    };
    let facts = big_little("6.18.0\n", "438\n").facts();
    let ms = |budget: i64| request(budget * 1_000, 1_000_000);
    let sum = bandwidth(&ms(700), &facts).unwrap();
    assert_eq!((sum.all_ppm, sum.seen_ppm, sum.fits), (1_356_347, 600_000, true));
    assert_eq!(deadline(&ms(756), &facts), []);
    assert_eq!(only(&ms(757), &facts).id, Obstacle::Bandwidth);
    assert_eq!(deadline(&ms(757), &big_little("5.7.0\n", "438\n").facts()), []);

    // 500 ms may last 1169 ms of the second: in time is proven of none.
    assert_eq!(lateness(&ms(100), &facts), Some(BudgetDelay::Unknown));
    let enough = big_little("6.8.0\n", "819\n").facts();
    assert_eq!(lateness(&ms(100), &enough), Some(BudgetDelay::Never));

    let said = by_capacity(&ms(100), &facts).unwrap();
    assert_eq!(said.id, "budget-by-capacity");
    assert!(
        said.text.ends_with("CPU 1, which has 438 of 1024, 100ms last 233.789955ms"),
        "{said:?}"
    );
    // What is no capacity says nothing, nor does a machine whose CPUs are alike.
    for slower in ["1024\n", "0\n", "4096\n", "?\n"] {
        let alike = big_little("6.18.0\n", slower).facts();
        assert_eq!(by_capacity(&ms(100), &alike), None);
        assert_eq!(bandwidth(&ms(100), &alike).unwrap().all_ppm, 1_900_000);
    }
}

#[test]
fn fair_servers_are_read_where_they_can_be() {
    let debug = "sys/kernel/debug/sched/fair_server";
    let facts = machine()
        .with(&[
            (&format!("{debug}/cpu0/runtime"), "100000000\n"),
            (&format!("{debug}/cpu0/period"), "1000000000\n"),
            (&format!("{debug}/cpu1/runtime"), "0\n"),
            (&format!("{debug}/cpu1/period"), "1000000000\n"),
        ])
        .facts();
    let server = |cpu, runtime_ns| FairServer { cpu, runtime_ns, period_ns: 1_000_000_000 };
    assert_eq!(facts.fair_servers, [server(0, 100_000_000), server(1, 0)]);
    let sum = bandwidth(&request(1_000, 10_000), &facts).unwrap();
    assert_eq!((sum.all_ppm, sum.seen_ppm, sum.fits), (1_900_000, 100_000, true));
    // 180 % remain, but no thread can have more than one CPU.
    assert_eq!(sum.largest_budget_ns, 10_000_000);
    let older = machine().with(&[("proc/sys/kernel/osrelease", "6.8.0-45-generic\n")]).facts();
    assert_eq!(
        (older.fair_servers, older.fair_servers_known),
        (Vec::new(), FairServerSource::Absent)
    );
}

/// The kernel's account knows of threads that cannot be seen from here.
#[test]
fn the_kernels_own_account_counts() {
    let account = |total: i64| {
        let debug = format!("cpu#0, 2300 MHz\n  .dl_bw->total_bw : {total}\ncpu#1, 2\n  x : 3\n");
        machine().with(&[("sys/kernel/debug/sched/debug", &debug)]).facts()
    };
    // Two fair servers of 5 %, as 6.18 shows them: nothing else is given away.
    assert_eq!(deadline(&request(900, 1_000), &account(104_856)), []);
    // 180 % are given away, 170 % of them to no visible thread.
    let refusal = only(&request(3_100, 8_000), &account(1_887_436));
    assert!(refusal.cause.contains("to threads that are not visible"), "{refusal}");
    assert!(refusal.remedy.contains("at most 800us/8ms"), "{refusal}");
    // A negative number says nothing, but if the kernel then refuses, that is why.
    assert_eq!(deadline(&request(900, 1_000), &account(-104_859)), []);
    let busy = explain(errno::EBUSY, &request(900, 1_000), &account(-104_859));
    assert!(busy.cause.contains("has gone below zero"), "{busy}");
    assert!(busy.remedy.contains("rmdir"), "{busy}");
}

/// Several were each admitted alone, and the kernel refused the last of them.
#[test]
fn what_is_asked_for_together_counts_together() {
    let account = "cpu#0, 2300 MHz\n  .dl_bw->total_bw : 104856\n";
    let planned = |backend, budget, cpus: &str| PlannedReservation {
        target: "decoder".to_owned(),
        backend,
        reservation: request(budget, 1_000).reservation,
        cpus: cpus.parse().unwrap(),
    };
    // Of two CPUs 1.9 are given, 0.1 to the fair servers.
    for with in [&[][..], &[("sys/kernel/debug/sched/debug", account)][..]] {
        let facts = machine().with(with).facts();
        for (first, second, fits) in [(900, 900, true), (900, 901, false)] {
            let all = [planned(BackendKind::Deadline, first, "0-1")];
            let refused = deadline(&request(second, 1_000), &facts.clone().with_planned(&all));
            assert_eq!(refused.is_empty(), fits, "{refused:?}");
            assert!(
                fits || refused[0].cause.contains("to the reservation for decoder"),
                "{refused:?}"
            );
        }
        let elsewhere =
            [planned(BackendKind::Deadline, 900, "7"), planned(BackendKind::Quota, 900, "0")];
        assert_eq!(deadline(&request(901, 1_000), &facts.with_planned(&elsewhere)), []);
    }
}

#[test]
fn times_outside_of_the_class() {
    let facts = machine().facts();
    let refusal = only(&request(50, 99), &facts);
    assert_eq!(refusal.id, Obstacle::Times);
    assert!(refusal.cause.contains("a period of 99us is below"), "{refusal}");
    let refusal = only(&request(50, 4_194_305), &facts);
    assert!(refusal.remedy.contains("at most 4.194304s"), "{refusal}");
    assert_eq!(deadline(&request(50, 4_194_304), &facts), []);
    assert!(only(&request(1, 100), &facts).cause.contains("1.024us"));
    let reservation =
        Reservation::new(Span::from_nanos(1_024), Span::from_micros(100), ReservationKind::Hard)
            .unwrap();
    assert_eq!(deadline(&BackendRequest { reservation, cpu: None }, &facts), []);
}

#[test]
fn an_affinity_that_does_not_cover_the_root_domain() {
    let narrow = "Name:\tvideo\nTgid:\t50\nCapEff:\t0\nCpus_allowed_list:\t1\n";
    let narrowed = machine().with(&[
        ("proc/50/status", narrow),
        ("proc/50/task/50/status", narrow),
        ("proc/50/cgroup", "3:cpuset:/\n1:cpu:/\n0::/\n"),
    ]);
    let refusal = only(&request(3_100, 8_000), &narrowed.facts_of(Some(50)));
    assert_eq!(refusal.id, Obstacle::Affinity);
    assert!(
        refusal.cause.starts_with("thread 50 may run on CPUs 1 (Cpus_allowed_list)"),
        "{refusal}"
    );
    assert_eq!(refusal.remedy, "taskset -pc 0-1 50");

    // Without a limit the kernel admits everything, everywhere.
    let lifted = narrowed.with(&[("proc/sys/kernel/sched_rt_runtime_us", "-1\n")]);
    assert_eq!(deadline(&request(3_100, 8_000), &lifted.facts_of(Some(50))), []);
}

/// A cpuset of version 1 that is not exclusive narrows the affinity; an exclusive one with balancing
/// switched off at the root is a domain of its own.
#[test]
fn cpusets_of_version_1() {
    let group = "sys/fs/cgroup/cpuset/rt";
    let inside = machine().with(&[
        ("proc/self/status", "Tgid:\t7\nCapEff:\t000001ffffffffff\nCpus_allowed_list:\t1\n"),
        ("proc/self/cgroup", "3:cpuset:/rt\n1:cpu:/\n0::/\n"),
        (&format!("{group}/cpuset.effective_cpus"), "1\n"),
        (&format!("{group}/cpuset.sched_load_balance"), "1\n"),
    ]);
    let refusal = only(&request(3_100, 8_000), &inside.facts());
    assert_eq!(refusal.id, Obstacle::Affinity);
    assert!(refusal.cause.contains("its cpuset /sys/fs/cgroup/cpuset/rt has CPUs 1"), "{refusal}");
    assert!(refusal.remedy.contains("cpuset.cpu_exclusive"), "{refusal}");

    // EINVAL of sched_setaffinity was all that was said of it.
    let outside = BackendRequest { cpu: Some(0), ..request(3_100, 8_000) };
    let barred = user(&outside, &inside.facts());
    assert_eq!(barred.len(), 1, "{barred:?}");
    assert!(
        barred[0].cause.ends_with("is not in the cpuset /sys/fs/cgroup/cpuset/rt, which has 1")
    );
    assert_eq!(user(&BackendRequest { cpu: Some(1), ..outside }, &inside.facts()), []);

    let own = inside.with(&[("sys/fs/cgroup/cpuset/cpuset.sched_load_balance", "0\n")]);
    let facts = own.facts();
    assert_eq!(facts.domain, "1".parse().ok());
    assert_eq!(deadline(&request(3_100, 8_000), &facts), []);
    // It is the whole domain, so it may be asked for.
    assert_eq!(deadline(&BackendRequest { cpu: Some(1), ..request(3_100, 8_000) }, &facts), []);
    // One CPU has 95 %, and its fair server 5 % of them.
    assert_eq!(deadline(&request(7_200, 8_000), &facts), []);
    assert_eq!(only(&request(7_201, 8_000), &facts).id, Obstacle::Bandwidth);
}

/// A partition of version 2 is a root domain; the others have what it left.
#[test]
fn partitions_of_version_2() {
    let mount = "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n";
    let machine = machine().with(&[
        ("sys/devices/system/cpu/online", "0-3\n"),
        ("proc/self/mountinfo", mount),
        ("proc/self/cgroup", "0::/user.slice\n"),
        ("proc/self/status", "Tgid:\t7\nCapEff:\t000001ffffffffff\nCpus_allowed_list:\t0-1\n"),
        ("proc/60/status", "Tgid:\t60\nCpus_allowed_list:\t2-3\n"),
        ("proc/60/cgroup", "0::/rt.slice/audio\n"),
        ("sys/fs/cgroup/cpuset.cpus.effective", "0-1\n"),
        ("sys/fs/cgroup/rt.slice/cpuset.cpus.partition", "root\n"),
        ("sys/fs/cgroup/rt.slice/cpuset.cpus.effective", "2-3\n"),
    ]);
    assert_eq!(machine.facts().domain, "0-1".parse().ok());
    assert_eq!(deadline(&request(3_100, 8_000), &machine.facts()), []);
    let audio = machine.facts_of(Some(60));
    assert_eq!(audio.domain, "2-3".parse().ok());
    assert_eq!(deadline(&request(3_100, 8_000), &audio), []);
}

#[test]
fn a_cpu_that_is_offline_or_one_of_several() {
    let facts = machine().facts();
    let offline = BackendRequest { cpu: Some(9), ..request(3_100, 8_000) };
    let both = [(BackendKind::Deadline, Obstacle::Cpu), (BackendKind::User, Obstacle::Cpu)];
    assert_eq!(ids(&check(&offline, &facts)), both);
    assert!(only(&offline, &facts).remedy.contains("cpu9/online"));
    let pinned = only(&BackendRequest { cpu: Some(1), ..request(3_100, 8_000) }, &facts);
    assert_eq!(pinned.id, Obstacle::Affinity);
    assert!(pinned.remedy.contains("--backend user, which pins"), "{pinned}");
}

/// An ordinary user may have neither the class nor FIFO; with a limit, FIFO.
#[test]
fn a_user_without_privileges() {
    let user = machine().with(&[(
        "proc/self/status",
        "Tgid:\t7\nCapEff:\t0000000000000000\nCpus_allowed_list:\t0-1\n",
    )]);
    let (deadline, own) =
        ((BackendKind::Deadline, Obstacle::Capability), (BackendKind::User, Obstacle::Capability));
    assert_eq!(ids(&check(&request(3_100, 8_000), &user.facts())), [deadline, own]);
    let limits = "Max realtime priority     99                    99  \n";
    let limited = user.with(&[("proc/self/limits", limits)]);
    assert_eq!(ids(&check(&request(3_100, 8_000), &limited.facts())), [deadline]);
    let inside = machine().with(&[("proc/self/uid_map", "0 1000 1\n")]);
    assert_eq!(ids(&check(&request(3_100, 8_000), &inside.facts())), [deadline, own]);
}

/// A new group of version 1 has no real-time time: FIFO is refused, the deadline class is not.
#[test]
fn a_group_without_budget_refuses_fifo_only() {
    let group = "sys/fs/cgroup/cpu/a";
    let inside = machine().with(&[
        ("proc/self/cgroup", "3:cpuset:/\n1:cpu:/a/b\n0::/\n"),
        (&format!("{group}/cpu.rt_runtime_us"), "0\n"),
        (&format!("{group}/b/cpu.rt_runtime_us"), "0\n"),
    ]);
    let refusals = check(&request(3_100, 8_000), &inside.facts());
    assert_eq!(ids(&refusals), [(BackendKind::User, Obstacle::GroupBudget)]);
    assert!(refusals[0].cause.ends_with("/sys/fs/cgroup/cpu/a/b/cpu.rt_runtime_us is 0"));
    let lines = "echo 950000 > /sys/fs/cgroup/cpu/a/cpu.rt_runtime_us && echo 950000 > \
                 /sys/fs/cgroup/cpu/a/b/cpu.rt_runtime_us # as root";
    assert_eq!(refusals[0].remedy, lines);
}

#[test]
fn real_time_switched_off_or_asked_for_too_much() {
    let off = machine().with(&[("proc/sys/kernel/sched_rt_runtime_us", "0\n")]).facts();
    let refusals = deadline(&request(3_100, 8_000), &off);
    assert!(refusals.iter().all(|refusal| refusal.id == Obstacle::Bandwidth), "{refusals:?}");
    assert_eq!(refusals[0].remedy, "sudo sysctl kernel.sched_rt_runtime_us=950000");
    let refusals = check(&request(7_700, 8_000), &machine().facts());
    assert_eq!(ids(&refusals), [(BackendKind::User, Obstacle::Bandwidth)]);
}

#[test]
fn each_error_number_has_its_cause() {
    let facts = machine().facts();
    let asked = request(3_100, 8_000);
    let id = |errno| {
        let refusal = explain(errno, &asked, &facts);
        assert_eq!(refusal.errno, Some(errno));
        refusal.id
    };
    assert_eq!(id(errno::EPERM), Obstacle::Capability);
    assert_eq!(id(errno::EBUSY), Obstacle::Bandwidth);
    assert_eq!(id(errno::EAGAIN), Obstacle::Fork);
    assert_eq!(id(errno::EINVAL), Obstacle::Times);
    assert_eq!(id(crate::ownership::ESRCH), Obstacle::Gone);
    assert_eq!(id(errno::ENOSYS), Obstacle::Missing);
    assert_eq!(id(12_345), Obstacle::Missing);
    let narrow = machine().with(&[(
        "proc/self/status",
        "Tgid:\t7\nCapEff:\t000001ffffffffff\nCpus_allowed_list:\t1\n",
    )]);
    let refusal = explain(errno::EPERM, &asked, &narrow.facts());
    assert_eq!(refusal.id, Obstacle::Affinity);
    assert!(refusal.remedy.ends_with("taskset -c 0-1"), "{refusal}");
}

/// Whatever the files hold, whatever is asked: one line each, nothing panics.
#[test]
fn files_of_any_content_are_survived() {
    let contents = ["", "\n", "-1", "0", "18446744073709551615", "max 100000", ":::\n- -", "\u{0}"];
    for content in contents {
        let machine = machine().with_thread(90, "x", u64::MAX, 1);
        fn fill(folder: &std::path::Path, content: &str) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => fill(&path, content),
                    false => fs::write(&path, content).unwrap(),
                }
            }
        }
        fill(machine.root.path(), content);
        for subject in [None, Some(7), Some(90), Some(u32::MAX)] {
            let facts = machine.facts_of(subject);
            for (budget, period) in [(1, 1), (3_100, 8_000), (i64::MAX / 1_000, i64::MAX / 1_000)] {
                for cpu in [None, Some(0), Some(u32::MAX)] {
                    let request = BackendRequest { cpu, ..request(budget, period) };
                    for errno in [1, 11, 16, 22, -1] {
                        let refusal = explain(errno, &request, &facts).to_string();
                        assert!(!refusal.contains('\n'), "{refusal}");
                    }
                    let _ = check(&request, &facts);
                }
            }
        }
    }
}
