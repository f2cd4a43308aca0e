//! What the engine knows of threads, CPUs, servers and locks.
//!
//! Owns: the records. Must not: change them.

use std::collections::VecDeque;

use super::super::outcome::{CpuOutcome, ServerOutcome, ThreadOutcome};
use super::super::server::SimServer;
use super::super::source::{ExecutionTimes, JobRelease, Releases};
use super::super::system::SimLockProtocol;
use super::super::thread::{Class, Mark, OverrunPolicy, Preemption};
use super::fair::Share;
use super::monitor::CpuGate;
use super::queue::{Queue, QueueState};

#[derive(Clone, Debug)]
pub(super) struct ThreadState {
    pub(super) class: Class,
    pub(super) mask: u128,
    pub(super) domain: usize,
    pub(super) server: Option<usize>,
    pub(super) endless: bool,
    /// Relative deadline, ns.
    pub(super) deadline: u64,
    pub(super) preemption: Preemption,
    pub(super) late: OverrunPolicy,
    /// Marks, with work in units.
    pub(super) marks: Vec<Mark>,
    pub(super) releases: Releases,
    pub(super) costs: ExecutionTimes,
    /// The job that the release timer stands for.
    pub(super) coming: Option<JobRelease>,
    pub(super) chain: Chain,
    /// Number of the next job to be released.
    pub(super) number: u64,
    /// Released jobs behind the current one.
    pub(super) waiting: VecDeque<QueuedJob>,
    pub(super) job: Option<ActiveJob>,
    /// The thread's place among ready threads.
    pub(super) stand: QueueState,
    /// Whether it has a job and neither suspends itself nor waits for a lock.
    pub(super) ready: bool,
    /// Whether the monitor has stopped it.
    pub(super) stopped: bool,
    /// Whether no other thread may take its CPU now.
    pub(super) held: bool,
    /// Whether it has its CPU but waits for a spin lock.
    pub(super) spinning: bool,
    pub(super) cpu: Option<usize>,
    pub(super) last_cpu: Option<usize>,
    pub(super) fifo_order: u64,
    /// The remaining part of its quantum, ns.
    pub(super) quantum: u64,
    pub(super) share: Share,
    /// The lock that it holds; sections do not overlap.
    pub(super) holds: Option<usize>,
    /// Work done, in units.
    pub(super) work: u128,
    pub(super) outcome: ThreadOutcome,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Chain {
    /// How many jobs of each predecessor are done and not yet followed.
    pub(super) done: Vec<u64>,
    /// Arrivals of those of the first predecessor.
    pub(super) arrivals: VecDeque<u64>,
    /// Jobs to be released, with the time; the first one is `coming`.
    pub(super) due: VecDeque<JobRelease>,
    /// The successors, and the index of this thread among their predecessors.
    pub(super) successors: Vec<(usize, usize)>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct QueuedJob {
    pub(super) number: u64,
    pub(super) coming: JobRelease,
    pub(super) turn: u64,
}

/// The current job of a thread. Work is in units.
#[derive(Clone, Copy, Debug)]
pub(super) struct ActiveJob {
    pub(super) number: u64,
    pub(super) coming: JobRelease,
    pub(super) deadline: u64,
    pub(super) cost: u64,
    pub(super) remaining: u64,
    /// How long it fills the caches before it goes on, ns.
    pub(super) reload: u64,
    /// The remaining work at the next mark, the next preemption point, or the end.
    pub(super) point: u64,
    /// The remaining work at the end of its non-preemptive section.
    pub(super) section: u64,
    /// How many marks are behind it.
    pub(super) marks: usize,
    pub(super) started: bool,
    pub(super) preempted: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Cpu {
    pub(super) domain: usize,
    /// The other CPUs of the core.
    pub(super) siblings: Vec<usize>,
    pub(super) gate: CpuGate,
    pub(super) thread: Option<usize>,
    /// The last thread that it ran.
    pub(super) last: Option<usize>,
    /// Accounted until here; in the future while the kernel has the CPU.
    pub(super) accounted_until: u64,
    /// Units of work a ns.
    pub(super) rate: u64,
    /// Whether the thread changed since its end was computed.
    pub(super) stale: bool,
    pub(super) payer: Option<usize>,
    /// Units of budget a ns.
    pub(super) drain: u64,
    /// Whether what runs counts for throttling.
    pub(super) counted: bool,
    /// Whether what runs has a fair share.
    pub(super) shared: bool,
    /// Time of fixed priorities in this period of throttling, ns.
    pub(super) used: u64,
    pub(super) throttled: bool,
    pub(super) slice_from: u64,
    pub(super) slice_job: u64,
    pub(super) outcome: CpuOutcome,
}

#[derive(Clone, Debug)]
pub(super) struct ServerState {
    pub(super) server: SimServer,
    pub(super) domain: usize,
    pub(super) threads: Vec<usize>,
    /// Units of budget that are 1 ns.
    pub(super) unit: u64,
    /// Budget of a period, in units.
    pub(super) budget: u64,
    /// The remaining budget, in units.
    pub(super) remaining_budget: u64,
    /// Absolute deadline, ns.
    pub(super) deadline: u64,
    /// Whether it waits for its replenishment.
    pub(super) throttled: bool,
    /// Threads of it that are ready.
    pub(super) ready: usize,
    pub(super) cpu: Option<usize>,
    pub(super) turn: u64,
    /// Whether it has ever had a deadline.
    pub(super) has_deadline: bool,
    /// Reclaiming: bandwidth in 2^-20, and whether it counts as active.
    pub(super) bandwidth: u64,
    pub(super) active: bool,
    /// Sporadic: the parts of the budget in use, with the time since when each is, and what comes
    /// back when.
    pub(super) uses: VecDeque<(u64, u64)>,
    pub(super) replenishments: VecDeque<(u64, u64)>,
    pub(super) outcome: ServerOutcome,
}

#[derive(Clone, Debug)]
pub(super) struct Lock {
    pub(super) protocol: SimLockProtocol,
    pub(super) holder: Option<usize>,
    pub(super) held_since: u64,
    /// The waiting threads, first come first.
    pub(super) waiters: Vec<usize>,
    /// Waiters that were woken when the lock was given back, and have not run since. The lock is
    /// free until one of them runs, or another thread takes it before.
    pub(super) woken_waiters: Vec<usize>,
}

/// CPUs that share threads.
#[derive(Clone, Debug, Default)]
pub(super) struct CpuDomain {
    pub(super) cpus: Vec<usize>,
    /// The CPUs as a mask, a bit for each.
    pub(super) mask: u128,
    /// Whether each of its threads may always use each of its CPUs.
    pub(super) whole: bool,
    /// The instant that its CPUs were last brought up to; nothing has run before 0.
    pub(super) accounted_until: u64,
    /// Threads that are ready, whose urgency is known.
    pub(super) queue: Queue,
    /// Threads that are ready, whose urgency depends on others; in no order.
    pub(super) rekeyed: Vec<usize>,
    /// Servers that lose their budget when no thread of theirs is ready.
    pub(super) polling: Vec<usize>,
    /// How many ready threads have a fair share.
    pub(super) sharing: usize,
    /// The last average virtual time of its fair threads.
    pub(super) virtual_time: i128,
    /// Bandwidth of all servers, and of active ones, in 2^-20.
    pub(super) bandwidth: u64,
    pub(super) active: u64,
}

impl ThreadState {
    /// Whether the class has a fair share.
    pub(super) fn is_fair(&self) -> bool {
        matches!(self.class, Class::Fair(_) | Class::Idle)
    }
}
