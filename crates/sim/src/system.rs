//! The simulated machine and all that runs on it.
//!
//! Owns: [`System`], what its kernel costs, the kernel's limits. Must not: judge, execute.

use std::cmp::Ordering;

use super::interference::ProgressRates;
use super::server::{ServerKind, SimServer};
use super::thread::Thread;
use hourglass_tasks::exact_fraction::compare_shares;

/// A machine and all that runs on it. Whatever takes it checks it first.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct System {
    /// CPUs, numbered from 0; from 1 to 128.
    pub cpus: u32,
    /// CPUs that are hardware threads of one core, core by core. A CPU in none has a core of its own.
    pub cores: Vec<Vec<u32>>,
    /// All threads. They are identified by their positions.
    pub threads: Vec<Thread>,
    /// Servers and reservations, known by their positions.
    pub servers: Vec<SimServer>,
    /// Locks, known by their positions.
    pub resources: Vec<SimLockProtocol>,
    /// Threads that come to each barrier of the scripts before it opens.
    pub barriers: Vec<u32>,
    /// How fast threads progress beside others on the same core.
    pub interference: ProgressRates,
    /// Execution times of the kernel.
    pub overheads: Overheads,
    /// The limit on fixed priorities; none as a rule. Reclaiming servers leave what it leaves, without it 5 %.
    pub throttling: Option<Throttling>,
    /// How long a round-robin thread runs before others of its priority, ns; above zero.
    pub quantum: u64,
    /// How long a fair thread runs before the next is searched, ns; above zero.
    pub slice: u64,
}

/// What the kernel costs, ns. During switches and ticks nothing progresses on the CPU, and no budget is
/// spent; they are not preempted. Caches are filled by the job itself, in its own time and budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Overheads {
    /// Delay before a thread runs on a CPU that last ran another.
    pub context_switch: u64,
    /// Ticks come at all multiples of this above 0, on all CPUs; 0 without ticks.
    pub tick_period: u64,
    /// The execution time of a tick; shorter than the time between two.
    pub tick_cost: u64,
    /// How long a preempted job runs without progress after another thread, or any job on another CPU. One that is
    /// preempted meanwhile begins this again.
    pub cache_delay: u64,
}

/// Fixed priorities use at most `runtime` of a CPU in every `period`: `sched_rt_runtime_us` and
/// `sched_rt_period_us`. Periods begin at 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttling {
    /// Processor time, ns.
    pub runtime: u64,
    /// The period, ns; above zero.
    pub period: u64,
}

impl Throttling {
    /// The kernel's defaults: 950 ms of every second.
    pub const LINUX: Throttling = Throttling { runtime: 950_000_000, period: 1_000_000_000 };
}

/// The rules of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimLockProtocol {
    /// The holder has at least this priority from the moment it locks (Sha, Rajkumar and Lehoczky
    /// 1990 in its immediate form; `PTHREAD_PRIO_PROTECT`).
    Ceiling(u32),
    /// The holder is due this long after it locks at the latest, ns: no job that comes later and may want the lock is more
    /// urgent (Burns, Gutierrez, Aldea Rivas and Gonzalez Harbour, IEEE Transactions on Computers, 2015: the ceilings of
    /// Baker's stack resource policy as deadlines).
    DeadlineFloor(u64),
    /// The holder inherits the urgency of the threads that it blocks (`PTHREAD_PRIO_INHERIT`).
    Inheritance,
    /// Waiters spin, first come, first served; waiters and holder are not preempted (MSRP).
    Spin,
    /// A plain mutex.
    Plain,
}

/// The kernel's default quantum of `SCHED_RR`, 100 ms.
pub const QUANTUM: u64 = 100_000_000;

/// The kernel's usual slice of the fair class on machines of several CPUs, 3 ms.
pub const SLICE: u64 = 3_000_000;

impl System {
    /// A machine of `cpus` CPUs on cores of their own, with nothing on it and at no cost.
    #[must_use]
    pub fn new(cpus: u32) -> System {
        System {
            cpus,
            cores: Vec::new(),
            threads: Vec::new(),
            servers: Vec::new(),
            resources: Vec::new(),
            barriers: Vec::new(),
            interference: ProgressRates::default(),
            overheads: Overheads::default(),
            throttling: None,
            quantum: QUANTUM,
            slice: SLICE,
        }
    }

    /// The CPUs that share a core with `cpu`, without itself.
    #[must_use]
    pub fn siblings(&self, cpu: u32) -> Vec<u32> {
        let core = self.cores.iter().find(|core| core.contains(&cpu));
        core.into_iter().flatten().copied().filter(|other| *other != cpu).collect()
    }

    /// Whether the kernel would take all constant bandwidth servers into its deadline class: if
    /// their sum is at most what throttling allows on each CPU, 95 % without it (Documentation/
    /// scheduler/sched-deadline.rst, section 4). The simulation does not ask.
    #[must_use]
    pub fn admits_deadlines(&self) -> bool {
        let constant = |server: &&SimServer| {
            matches!(server.kind, ServerKind::CbsHard | ServerKind::CbsSoft) && server.period > 0
        };
        let shares = self.servers.iter().filter(constant).map(|s| (s.budget, s.period));
        let limit = self.throttling.unwrap_or(Throttling::LINUX);
        // Above 2^64 a share of all CPUs does not limit any run.
        let all = limit.runtime.saturating_mul(u64::from(self.cpus));
        limit.period > 0 && compare_shares(shares, (all, limit.period)) != Ordering::Greater
    }

    /// Shifts first arrivals so that all jobs with the worst jitter are released together: what
    /// bounds of response times assume. Threads whose arrivals are listed or chained stay.
    ///
    /// Each thread with [`Jitter::Worst`](super::Jitter::Worst) first arrives its jitter before the
    /// common instant.
    pub fn align_worst_releases(&mut self) {
        let longest = self.threads.iter().map(Thread::worst_jitter).max().unwrap_or(0);
        for thread in &mut self.threads {
            let lead = longest - thread.worst_jitter();
            thread.arrivals.set_offset(lead);
        }
    }
}
