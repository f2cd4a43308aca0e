//! What the machine tells about reservations before one is asked for.
//!
//! Owns: reading it, from any root, so that tests give a machine of files. Must not: judge it, or
//! change anything. What the machine does not tell is `None` or empty, never guessed; the one
//! exception, the usual fair servers, says that it is assumed.

mod files;
mod groups;
mod servers;
mod threads;

use std::collections::BTreeMap;
use std::path::Path;

use hourglass_documents::{CpuSet, Reservation};
use hourglass_sys::sched::{self, Attributes};

use super::tick::Tick;
use crate::request::BackendKind;

pub(crate) use files::Files;
pub use servers::{FairServer, FairServerSource};
pub use threads::DeadlineThread;

/// What bears on reservations for one thread, the subject.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdmissionFacts {
    /// The thread; `None` is the one that asks.
    pub subject: Option<u32>,
    /// `kernel.sched_rt_runtime_us`: what the real-time classes may take in each
    /// `rt_period_us`, microseconds; -1 is all, without any admission.
    pub rt_runtime_us: Option<i64>,
    /// `kernel.sched_rt_period_us`.
    pub rt_period_us: Option<u64>,
    /// Shortest period of the deadline class, microseconds.
    pub deadline_period_min_us: Option<u64>,
    /// Longest period of the deadline class, microseconds.
    pub deadline_period_max_us: Option<u64>,
    /// CPUs that can run threads.
    pub online: Option<CpuSet>,
    /// CPUs that the machine has, online or not.
    pub present: Option<CpuSet>,
    /// What CPUs can do, of 1024 that the fastest can; a CPU that does not tell is not in it.
    pub capacities: BTreeMap<u32, u64>,
    /// The kernel's version and patch level.
    pub kernel: Option<(u32, u32)>,
    /// CPUs on which the subject may run.
    pub affinity: Option<CpuSet>,
    /// CPUs of the subject's root domain, over which the kernel balances deadline threads.
    pub domain: Option<CpuSet>,
    /// CPUs that the subject's cpuset has, and its folder, where the cpuset is not the root one.
    pub cpuset: Option<Cpuset>,
    /// What each CPU keeps for ordinary threads (Linux 6.12 and later).
    pub fair_servers: Vec<FairServer>,
    /// How that is known.
    pub fair_servers_known: FairServerSource,
    /// The kernel's own account of bandwidth given away, for the root domain of each CPU; 2^20
    /// is a whole CPU. Only where debugfs can be read.
    pub accounts: BTreeMap<u32, i64>,
    /// Other threads of the deadline class on the machine, as far as they can be seen.
    pub deadline_threads: Vec<DeadlineThread>,
    /// Reservations that are to be made with this one, and are not there yet.
    pub planned: Vec<PlannedReservation>,
    /// Real-time time of the subject's control group and its ancestors, own first
    /// (`cpu.rt_runtime_us`); only version 1 with real-time group scheduling has these.
    pub group_budgets: Vec<GroupBudget>,
    /// Whether the caller has `CAP_SYS_NICE`.
    pub sys_nice: Option<bool>,
    /// Whether the caller is in a user namespace of its own, where capabilities do not count.
    pub user_namespace: Option<bool>,
    /// The highest FIFO priority that the caller may give without a capability.
    pub priority_limit: Option<u64>,
    /// Threads of the subject's process.
    pub threads: Option<usize>,
    /// The tick, at which budgets of the deadline class may end.
    pub tick: Option<Tick>,
}

/// A reservation that is asked for together with others, and counts for these as if it were there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedReservation {
    /// For whom, in a refusal of others.
    pub target: String,
    /// What would enforce it; a quota takes nothing from others.
    pub backend: BackendKind,
    /// Its times.
    pub reservation: Reservation,
    /// The CPUs on which its target may run.
    pub cpus: CpuSet,
}

/// Real-time time of a control group on each CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupBudget {
    /// Path of the file below the root.
    pub file: String,
    /// Time in each period, microseconds; 0 refuses FIFO and RR.
    pub runtime_us: i64,
}

/// The cpuset in which the subject is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpuset {
    /// Path of the folder below the root.
    pub folder: String,
    /// 1 or 2.
    pub version: u8,
    /// The CPUs it gives.
    pub cpus: CpuSet,
}

/// Tells a thread's policy.
pub type Policies<'a> = &'a dyn Fn(u32) -> Option<Attributes>;

impl AdmissionFacts {
    /// Those of this machine for thread `subject`, or for the calling thread.
    #[must_use]
    pub fn here(subject: Option<u32>) -> AdmissionFacts {
        let root = Path::new("/");
        let facts = AdmissionFacts::read(root, subject, &|tid| sched::read(tid).ok().flatten());
        AdmissionFacts { tick: Tick::from_files(&Files::under_root(root)), ..facts }
    }

    /// The same, with these reservations beside what is there.
    #[must_use]
    pub fn with_planned(self, planned: &[PlannedReservation]) -> AdmissionFacts {
        AdmissionFacts { planned: planned.to_vec(), ..self }
    }

    /// What is planned with this backend.
    pub(crate) fn planned_by(
        &self,
        backend: BackendKind,
    ) -> impl Iterator<Item = &PlannedReservation> {
        self.planned.iter().filter(move |one| one.backend == backend)
    }

    /// Those of the machine whose files lie below `root` and whose threads have `policies`. The tick is in no file.
    #[must_use]
    pub fn read(root: &Path, subject: Option<u32>, policies: Policies<'_>) -> AdmissionFacts {
        let files = Files::under_root(root);
        let own = files.first(&["proc/thread-self", "proc/self"]);
        let whose = subject.map_or(own.clone(), |tid| format!("proc/{tid}"));
        let caller = files.text(&format!("{own}/status")).unwrap_or_default();
        let status = files.text(&format!("{whose}/status")).unwrap_or_default();
        let affinity = field(&status, "Cpus_allowed_list").and_then(|list| list.parse().ok());
        let online: Option<CpuSet> = files.cpus("sys/devices/system/cpu/online");
        let group = groups::facts(&files, &whose, affinity.as_ref(), online.as_ref());
        let (fair_servers, fair_servers_known) = servers::fair(&files, online.as_ref());
        let kernel = |name: &str| files.number(&format!("proc/sys/kernel/{name}"));
        let positive = |name: &str| kernel(name).and_then(|value: i64| u64::try_from(value).ok());
        AdmissionFacts {
            subject,
            rt_runtime_us: kernel("sched_rt_runtime_us"),
            rt_period_us: positive("sched_rt_period_us"),
            deadline_period_min_us: positive("sched_deadline_period_min_us"),
            deadline_period_max_us: positive("sched_deadline_period_max_us"),
            accounts: servers::accounts(&files),
            deadline_threads: threads::deadline(&files, subject, policies),
            planned: Vec::new(),
            threads: threads::count(&files, &whose, &status),
            sys_nice: capability(&caller),
            user_namespace: files.text("proc/self/uid_map").map(|map| is_mapped(&map)),
            priority_limit: priority_limit(&files),
            group_budgets: group.budgets,
            domain: group.domain,
            cpuset: group.cpuset,
            capacities: servers::capacities(&files, online.as_ref()),
            kernel: servers::version(&files),
            online,
            present: files.cpus("sys/devices/system/cpu/present"),
            affinity,
            fair_servers,
            fair_servers_known,
            tick: None,
        }
    }
}

/// A line `NAME: VALUE` of a status file.
fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim))
}

/// Whether `CAP_SYS_NICE` is effective; its number is 23 (capabilities(7)).
fn capability(status: &str) -> Option<bool> {
    const CAP_SYS_NICE: u64 = 1 << 23;
    let effective = u64::from_str_radix(field(status, "CapEff")?, 16).ok()?;
    Some(effective & CAP_SYS_NICE != 0)
}

/// Whether users are renamed, which only a namespace of its own does (user_namespaces(7)).
fn is_mapped(map: &str) -> bool {
    let numbers: Vec<&str> = map.split_whitespace().collect();
    numbers != ["0", "0", "4294967295"]
}

/// `RLIMIT_RTPRIO`: the soft limit of the line `Max realtime priority`.
fn priority_limit(files: &Files) -> Option<u64> {
    let text = files.text("proc/self/limits")?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max realtime priority"))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}
