//! Facts about the machine that explain a run's numbers. A fact that the machine does not tell
//! is `None` (or an empty list); it is never guessed.
//!
//! Owns: the names, units and text form of the facts. Must not: read them (`machine::facts` does), or judge them
//! (`machine::advice` does).

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cpus::CpuSet;

/// Real-time threads that are named, at most.
pub const MOST_REAL_TIME: usize = 16;

/// What helps in a virtual machine.
pub const LEAVE_THE_GUEST: &str =
    "run on bare metal, or pin the virtual CPUs to processors of their own";

/// The machine, as it was when the run began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// Name of the machine: what `HOURGLASS_NODE` says, else its host name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The kernel's identifier of this boot (`boot_id`), since which its monotonic clock counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// `uname -r`.
    pub kernel: String,
    /// `uname -v`: build, and preemption model where it says so.
    pub kernel_build: String,
    /// What the kernel was built for: `rt`, `dynamic`, `full`, or `none` (none or voluntary).
    pub preemption: Option<String>,
    /// The mode that was chosen for a dynamic kernel: `none`, `voluntary`, `full` or `lazy`.
    pub preemption_mode: Option<String>,
    /// Timer ticks per second and CPU.
    pub tick_hz: Option<u32>,
    /// Where the tick lies, as runs learn it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tick: Option<HostTick>,
    /// The words of the kernel's command line that bear on time; the others are not copied.
    pub boot_options: Vec<String>,
    /// The kernel's build options that bear on time, where it tells them: `CONFIG_HZ` to `250`.
    /// An option that is not set is `n`.
    pub kernel_config: BTreeMap<String, String>,
    /// Processors.
    pub cpu: CpuFacts,
    /// The kernel's clock sources.
    pub clock_source: ClockSourceFacts,
    /// Clock frequency of the processors.
    pub frequency: FrequencyFacts,
    /// What idle processors do.
    pub idle: IdleFacts,
    /// The scheduler's settings.
    pub scheduler: SchedulerFacts,
    /// Memory.
    pub memory: HostMemory,
    /// What is below the kernel.
    pub virtual_machine: VirtualMachine,
    /// What is around the process.
    pub container: Option<Container>,
    /// Limits of the control groups that the process is in.
    pub cgroup: CgroupFacts,
    /// What the process may do.
    pub process: ProcessFacts,
    /// What changes while a run goes on, at its start.
    pub start: HostMoment,
    /// How it changed until the end of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<HostChange>,
}

/// The kernel's tick on `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostTick {
    /// Its length, ns (`TICK_NSEC`).
    pub period_ns: u64,
    /// How far behind a multiple of its length it comes on CPU 0, ns. Null where that is not known.
    pub phase_ns: Option<u64>,
    /// By how much it comes later on each further CPU, ns (`skew_tick`).
    #[serde(default)]
    pub skew_ns: u64,
}

/// Processors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuFacts {
    /// Name of the first processor's model.
    pub model: Option<String>,
    /// Version of its microcode.
    pub microcode: Option<String>,
    /// Those of its flags that bear on time, such as `constant_tsc`; in the kernel's order.
    pub flags: Vec<String>,
    /// CPUs that can run threads.
    pub online: Option<CpuSet>,
    /// CPUs that may ever be there, for which the kernel keeps room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub possible: Option<CpuSet>,
    /// CPUs on which this process may run.
    pub allowed: Option<CpuSet>,
    /// CPUs that the scheduler does not balance (`isolcpus`).
    pub isolated: Option<CpuSet>,
    /// CPUs without a tick while they run a single thread (`nohz_full`).
    pub nohz_full: Option<CpuSet>,
    /// Whether two hardware threads share a core.
    pub smt_active: Option<bool>,
    /// Hardware threads that share a core; cores with only one are left out.
    pub siblings: Vec<CpuSet>,
    /// Weaknesses and what the kernel does against them, in its words.
    pub mitigations: BTreeMap<String, String>,
}

/// The kernel's clock sources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockSourceFacts {
    /// The one in use.
    pub current: Option<String>,
    /// Those that may be chosen.
    pub available: Vec<String>,
}

/// Clock frequency of the processors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FrequencyFacts {
    /// Whether a processor may exceed its nominal frequency.
    pub turbo: Option<bool>,
    /// CPUs with equal settings.
    pub policies: Vec<FrequencyPolicy>,
}

/// How the frequency of some CPUs is chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FrequencyPolicy {
    /// The CPUs.
    pub cpus: CpuSet,
    /// `performance`, `powersave`, `schedutil`...
    pub governor: Option<String>,
    /// `intel_pstate`, `acpi-cpufreq`...
    pub driver: Option<String>,
    /// Preference handed to the processor: `performance`, `balance_power`...
    pub preference: Option<String>,
    /// Lowest frequency allowed, kHz.
    pub min_khz: Option<u64>,
    /// Highest frequency allowed, kHz.
    pub max_khz: Option<u64>,
}

/// What idle processors do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IdleFacts {
    /// `intel_idle`, `acpi_idle`, `haltpoll`...
    pub driver: Option<String>,
    /// Who chooses the state: `menu`, `teo`...
    pub governor: Option<String>,
    /// Exit latency to which any program holds the processors by `/dev/cpu_dma_latency`, in
    /// microseconds; 2000000000 is no limit. Where a run holds the file itself, the run's value
    /// belongs here.
    pub latency_limit_us: Option<u32>,
    /// CPUs with equal states.
    pub policies: Vec<IdlePolicy>,
}

/// Idle states of some CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IdlePolicy {
    /// The CPUs.
    pub cpus: CpuSet,
    /// The states, shallow to deep.
    pub states: Vec<IdleState>,
}

/// One idle state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IdleState {
    /// `C1`, `C6`...
    pub name: String,
    /// Time to leave it, microseconds.
    pub latency_us: Option<u64>,
    /// Whether it may be entered.
    pub enabled: bool,
}

/// The scheduler's settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SchedulerFacts {
    /// Time that real-time threads may take in every `rt_period_us`; -1 is no limit.
    pub rt_runtime_us: Option<i64>,
    /// The period of that limit.
    pub rt_period_us: Option<i64>,
    /// Shortest period of the deadline class.
    pub deadline_period_min_us: Option<u64>,
    /// Longest period of the deadline class.
    pub deadline_period_max_us: Option<u64>,
    /// Time that each CPU keeps for ordinary threads against FIFO and RR threads (Linux 6.12 and
    /// later); 0 without a fair server.
    pub fair_server_runtime_ns: Option<u64>,
    /// The period of that time.
    pub fair_server_period_ns: Option<u64>,
    /// Turn of an RR thread.
    pub rr_timeslice_ms: Option<u64>,
    /// Whether real-time threads are accounted by control group (`CONFIG_RT_GROUP_SCHED`).
    pub rt_group_scheduling: Option<bool>,
    /// Whether each session is a scheduling group of its own.
    pub autogroup: Option<bool>,
    /// Whether pages are moved towards the CPUs that use them, by taking them away first.
    pub numa_balancing: Option<bool>,
    /// Whether the lockup detectors run.
    pub watchdog: Option<bool>,
}

/// Memory of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostMemory {
    /// All of it.
    pub total_bytes: Option<u64>,
    /// Swap space; 0 without swap.
    pub swap_total_bytes: Option<u64>,
    /// `always`, `madvise` or `never`.
    pub transparent_huge_pages: Option<String>,
}

/// What is below the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VirtualMachine {
    /// Whether there is a hypervisor.
    pub present: Option<bool>,
    /// Which, as far as there are signs: `kvm`, `xen`, `hyper-v`, `vmware`...
    pub kind: Option<String>,
    /// Maker of the machine as its firmware gives it.
    pub vendor: Option<String>,
    /// Product name of the machine as its firmware gives it.
    pub product: Option<String>,
}

/// Signs of a container around the process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Container {
    /// `docker`, `podman`, `kubernetes`, `lxc`, `systemd-nspawn`, or `unknown`.
    pub kind: String,
    /// The fact by which it was recognised.
    pub evidence: String,
}

/// Limits of the control groups that the process is in. Files are named by the path at which the
/// process sees them; groups above a container's own are not visible to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CgroupFacts {
    /// The groups.
    pub groups: Vec<CgroupPath>,
    /// Quotas on the time of ordinary threads, own group first, then its ancestors.
    pub cpu_quotas: Vec<CpuQuota>,
    /// Time given to real-time threads, own group first, then its ancestors. Only version 1
    /// with real-time group scheduling has these.
    pub rt_budgets: Vec<RtBudget>,
    /// CPUs that the group leaves to the process.
    pub cpuset: Option<CpuSet>,
    /// `member`, `root` or `isolated`: whether the group has a scheduling domain of its own.
    pub cpuset_partition: Option<String>,
    /// The lowest memory limit of the group and its ancestors.
    pub memory_limit_bytes: Option<u64>,
}

/// A control group of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CgroupPath {
    /// 1 or 2.
    pub version: u8,
    /// Controllers of a version 1 hierarchy.
    pub controllers: Vec<String>,
    /// The path inside the hierarchy, as the kernel tells the process.
    pub path: String,
}

/// A quota on processor time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuQuota {
    /// The file that sets it.
    pub file: String,
    /// Processor time, summed over all CPUs, in each period.
    pub quota_us: u64,
    /// The period; never 0.
    pub period_us: u64,
}

/// Time that a control group's real-time threads may take on each CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RtBudget {
    /// The file that sets it.
    pub file: String,
    /// Time in each period; 0 refuses real-time policies, -1 is no limit.
    pub runtime_us: i64,
    /// The period.
    pub period_us: Option<i64>,
}

/// What the process may do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessFacts {
    /// Memory that may be locked, bytes.
    pub memory_lock_bytes: Option<Limit>,
    /// Highest real-time priority, 0 to 99.
    pub real_time_priority: Option<Limit>,
    /// Real-time threads that run longer than this without a blocking call are killed,
    /// microseconds.
    pub real_time_timeout_us: Option<Limit>,
    /// The process is ended at this CPU time, seconds.
    pub cpu_time_s: Option<Limit>,
    /// The lowest nice value is 20 minus this.
    pub nice_ceiling: Option<Limit>,
    /// Signals, and timers made with `timer_create`, that may be pending.
    pub pending_signals: Option<Limit>,
    /// Effective capabilities: `CAP_SYS_NICE`.
    pub cap_sys_nice: Option<bool>,
    /// `CAP_IPC_LOCK`.
    pub cap_ipc_lock: Option<bool>,
    /// `CAP_SYS_ADMIN`.
    pub cap_sys_admin: Option<bool>,
    /// Whether the process is in a user namespace of its own, where capabilities do not count
    /// for scheduling.
    pub user_namespace: Option<bool>,
    /// Whether a seccomp filter looks at its system calls.
    pub seccomp: Option<bool>,
}

/// A resource limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// What is in force.
    pub soft: Bound,
    /// Up to which the process may raise `soft` itself.
    pub hard: Bound,
}

/// A limit's value, in the unit of the limit; written as a number or as `"unlimited"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bound {
    /// At most this.
    At(u64),
    /// No limit.
    Unlimited,
}

impl Bound {
    /// Whether `amount` is within the limit.
    #[must_use]
    pub fn allows(self, amount: u64) -> bool {
        match self {
            Bound::At(most) => amount <= most,
            Bound::Unlimited => true,
        }
    }
}

/// The word that stands for no limit.
const UNLIMITED: &str = "unlimited";

impl Serialize for Bound {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Bound::At(most) => serializer.serialize_u64(*most),
            Bound::Unlimited => serializer.serialize_str(UNLIMITED),
        }
    }
}

impl<'de> Deserialize<'de> for Bound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bound, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum SettingValue {
            Number(u64),
            Word(String),
        }
        match SettingValue::deserialize(deserializer)? {
            SettingValue::Number(most) => Ok(Bound::At(most)),
            SettingValue::Word(word) if word == UNLIMITED => Ok(Bound::Unlimited),
            SettingValue::Word(word) => Err(serde::de::Error::custom(format!(
                "'{word}' is not a limit; write a number or \"{UNLIMITED}\""
            ))),
        }
    }
}

/// What changes while a run goes on, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostMoment {
    /// Load averages over 1, 5 and 15 minutes.
    pub load_average: Option<[f64; 3]>,
    /// Threads that could run at that moment on the whole machine, the reader not counted.
    pub runnable_others: Option<u32>,
    /// Time that the hypervisor reports to have taken from all CPUs since boot. 0 does not prove
    /// that it took none.
    pub steal_ns: Option<u64>,
    /// The same for each CPU.
    pub steal_ns_by_cpu: BTreeMap<u32, u64>,
    /// The kernel's clock source.
    pub clock_source: Option<String>,
    /// Periods in which a quota stopped the process's control groups, since they exist.
    pub quota_throttled: Option<u64>,
    /// For how long it did (`throttled_usec` or `throttled_time`), ns, summed over CPUs.
    pub quota_throttled_ns: Option<u64>,
    /// The quotas that were counted, own group first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quotas: Vec<CpuQuota>,
    /// How often the kernel's log says that it throttles real-time threads; once at most in most
    /// kernels, from boot on. `None` where the log cannot be read.
    pub rt_throttling_logged: Option<u64>,
    /// How often heat or power made the processors slow down, since boot, summed over CPUs.
    pub thermal_throttled: Option<u64>,
}

/// How the machine changed during a run: amounts are those of the run alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostChange {
    /// Load averages over 1, 5 and 15 minutes at the end.
    pub load_average: Option<[f64; 3]>,
    /// Time that the hypervisor reports to have taken from all CPUs.
    pub steal_ns: Option<u64>,
    /// The same for each CPU that lost any.
    pub steal_ns_by_cpu: BTreeMap<u32, u64>,
    /// The kernel's clock source at the end.
    pub clock_source: Option<String>,
    /// Whether the kernel changed its clock source meanwhile.
    pub clock_source_changed: bool,
    /// Periods in which a quota stopped the process's control groups; null where they were others at the end.
    pub quota_throttled: Option<u64>,
    /// For how long it did, ns, summed over CPUs.
    pub quota_throttled_ns: Option<u64>,
    /// The quotas at the end, where they are of other groups than at the start; empty where there was none any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quotas: Option<Vec<CpuQuota>>,
    /// How often the kernel's log says, anew, that it throttles real-time threads. 0 says nothing,
    /// since most kernels say it once.
    pub rt_throttling_logged: Option<u64>,
    /// How often heat or power made the processors slow down.
    pub thermal_throttled: Option<u64>,
    /// Interrupts of the CPUs that were measured, where the kernel counts them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interrupts: Vec<CpuInterrupts>,
    /// Real-time threads of other processes that ran for a millisecond or more, those that ran longest first, and behind
    /// them those that ended meanwhile, 16 at most; where threads of the run are real-time ones. A thread that also began
    /// meanwhile is not among them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub real_time_others: Vec<RealTimeThread>,
    /// The time between the two looks at them, ns: longer than the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub real_time_others_over_ns: Option<u64>,
}

/// A thread of a real-time policy, and for how long it ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RealTimeThread {
    /// The kernel's number of it.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Its policy and priority, as `FIFO:50`.
    pub policy: String,
    /// Time on a CPU, ns; not known, and 0, of one that ended.
    pub ran_ns: u64,
    /// Whether it ended meanwhile.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
}

/// Interrupts of a CPU during a run, as `/proc/interrupts` and `/proc/softirqs` count them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuInterrupts {
    /// The CPU.
    pub cpu: u32,
    /// Interrupts of its own timer: the tick, and every other timer.
    pub timer: u64,
    /// All other interrupts: of devices, from other CPUs, of the hypervisor.
    pub others: u64,
    /// Softirqs but those that the tick brings: network, block, tasklets.
    pub softirqs: u64,
    /// Stretches of the run, ns from its start, in which no interrupt came but ticks. Only where a CPU
    /// without a measured thread counted meanwhile.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quiet: Vec<(i64, i64)>,
}
