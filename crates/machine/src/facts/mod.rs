//! Reading the facts about the machine: kernel, processors, clocks, limits, containers.
//!
//! Owns: which file tells which fact, below a root that is passed in, so that a test brings a tree
//! of its own.
//! Must not: make system calls besides opening and reading files, write anything, judge what it
//! finds (`advice` and `doctor` do), fail: a file that is missing, unreadable or nonsense makes its fact
//! `None`.

mod cgroup;
mod changes;
mod cpu;
mod environment;
mod files;
mod interrupts;
mod kernel;
mod log;
mod power;
mod process;
#[cfg(test)]
pub(crate) mod test_host;
#[cfg(test)]
mod tests;
mod threads;
pub(crate) mod tuning;

use std::path::Path;
use std::time::Instant;

use hourglass_documents::host::{Host, HostChange, HostMoment, RealTimeThread};
use hourglass_documents::tuning::Tuning;

pub use cgroup::ThrottleCounts;
use files::Files;
use hourglass_sys::thread::SchedStat;
pub use threads::ThreadCounts;

/// Reads the facts below a root folder.
#[derive(Clone, Debug)]
pub struct HostReader {
    files: Files,
}

/// Real-time threads at a moment, with the time that each had run.
#[derive(Clone, Debug)]
pub struct RealTimeThreads(Instant, threads::RealTime);

impl HostReader {
    /// A reader of the tree below `root`; `/` is this machine.
    #[must_use]
    pub fn new(root: &Path) -> HostReader {
        HostReader { files: Files::under_root(root) }
    }

    /// All facts, as they are now. Takes about a millisecond per CPU, and one for the kernel's log: call
    /// it before the run, not during it.
    #[must_use]
    pub fn read(&self) -> Host {
        let files = &self.files;
        let cpu = cpu::facts(files);
        let cgroup = cgroup::facts(files);
        let kernel = kernel::KernelInfo::read(files);
        let mut scheduler = kernel::scheduler(files);
        scheduler.rt_group_scheduling = kernel.rt_group_scheduling(files);
        Host {
            node: files.line("proc/sys/kernel/hostname"),
            boot_id: files.line("proc/sys/kernel/random/boot_id"),
            clock_source: kernel::clock_source(files),
            frequency: power::frequency(files),
            idle: power::idle(files),
            scheduler,
            memory: kernel::memory(files),
            virtual_machine: environment::virtual_machine(files),
            container: environment::container(files),
            process: process::facts(files),
            start: changes::now(files),
            change: None,
            kernel: kernel.release,
            kernel_build: kernel.build,
            preemption: kernel.preemption,
            preemption_mode: kernel.preemption_mode,
            tick_hz: kernel.tick_hz,
            tick: None,
            boot_options: kernel.boot_options,
            kernel_config: kernel.config,
            cpu,
            cgroup,
        }
    }

    /// What a diagnosis wants to know besides. Takes longer the more interrupts and processes the
    /// machine has: some milliseconds.
    #[must_use]
    pub fn tuning(&self) -> Tuning {
        tuning::facts(&self.files)
    }

    #[must_use]
    pub fn moment(&self) -> HostMoment {
        changes::now(&self.files)
    }

    #[must_use]
    pub fn change_since(&self, start: &HostMoment) -> HostChange {
        changes::change(start, &self.moment())
    }

    /// Every process that is visible, ascending.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        threads::processes(&self.files)
    }

    /// The threads of a process, ascending; none if it has ended, or is hidden (`hidepid`, `proc(5)`).
    #[must_use]
    pub fn threads_of(&self, pid: u32) -> Vec<u32> {
        threads::of_process(&self.files, pid)
    }

    /// The process of a thread, which is the same number for its first thread; `None` if there is no such thread.
    #[must_use]
    pub fn process_of(&self, tid: u32) -> Option<u32> {
        threads::process_of(&self.files, tid)
    }

    /// The name of a thread; `None` if the thread does not exist.
    #[must_use]
    pub fn thread_name(&self, pid: u32, tid: u32) -> Option<String> {
        threads::name(&self.files, pid, tid)
    }

    /// Its time on a CPU and waiting for one; `None` if there is no such thread, or the kernel does not count.
    #[must_use]
    pub fn thread_times(&self, pid: u32, tid: u32) -> Option<SchedStat> {
        threads::times(&self.files, pid, tid)
    }

    /// The kernel's counts of a thread; `None` if the thread does not exist. Reads four files: some 30 us.
    #[must_use]
    pub fn thread(&self, pid: u32, tid: u32) -> Option<ThreadCounts> {
        threads::counts(&self.files, pid, tid)
    }

    /// Real-time threads of all processes but this one. Takes some 20 us for each thread of the machine.
    #[must_use]
    pub fn real_time_others(&self) -> RealTimeThreads {
        RealTimeThreads(Instant::now(), threads::real_time(&self.files, std::process::id()))
    }

    /// Those of them that ran for a millisecond or more since `before`, the longest first, then those that ended, 16 at
    /// most; and how long ago that was, ns.
    #[must_use]
    pub fn real_time_others_since(&self, before: &RealTimeThreads) -> (Vec<RealTimeThread>, u64) {
        let now = self.real_time_others();
        let over_ns = u64::try_from(before.0.elapsed().as_nanos()).unwrap_or(u64::MAX);
        (threads::real_time_since(&before.1, now.1), over_ns)
    }

    /// CPU time of a process so far, in steps of 10 ms, with its ended threads; `None` if it does not exist.
    #[must_use]
    pub fn process_cpu_ns(&self, pid: u32) -> Option<u64> {
        threads::cpu_ns(&self.files, pid)
    }

    /// CPU time of the ended children of a process for which it has waited, and of theirs, in steps of 10 ms; `None` if the
    /// process does not exist.
    #[must_use]
    pub fn children_cpu_ns(&self, pid: u32) -> Option<u64> {
        threads::children_cpu_ns(&self.files, pid)
    }

    /// The processes that a process started, ascending; none where the kernel does not list them
    /// (`CONFIG_PROC_CHILDREN`).
    #[must_use]
    pub fn children_of(&self, pid: u32) -> Vec<u32> {
        threads::children(&self.files, pid)
    }

    /// Whether each session is a scheduling group of its own; `None` where the kernel does not tell.
    #[must_use]
    pub fn autogroup(&self) -> Option<bool> {
        self.files.flag("proc/sys/kernel/sched_autogroup_enabled")
    }

    /// How quotas of control groups stopped a process so far; `None` without a quota.
    #[must_use]
    pub fn quota_stopped(&self, pid: u32) -> Option<ThrottleCounts> {
        cgroup::quota_stopped(&self.files, &pid.to_string())
    }
}
