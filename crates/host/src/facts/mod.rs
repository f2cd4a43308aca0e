//! Reading the facts about the machine: kernel, processors, clocks, limits, containers.
//!
//! Owns: which file tells which fact, below a root that is passed in, so that a test brings a tree
//! of its own.
//! Must not: make system calls besides opening and reading files, write anything, judge what it
//! finds (`advice` and `doctor` do), fail: a file that is missing, unreadable or nonsense makes its fact
//! `None`.

mod cgroup;
mod cpu;
#[cfg(test)]
pub(crate) mod fake;
mod files;
mod interrupts;
mod kernel;
mod log;
mod moment;
mod power;
mod process;
mod surroundings;
#[cfg(test)]
mod tests;
pub(crate) mod tuning;

use std::path::Path;

use hourglass_model::host::{Host, HostChange, HostMoment};
use hourglass_model::tuning::Tuning;

use files::Files;

/// Reads the facts below a root folder.
#[derive(Clone, Debug)]
pub struct HostReader {
    files: Files,
}

impl HostReader {
    /// A reader of the tree below `root`; `/` is this machine.
    #[must_use]
    pub fn new(root: &Path) -> HostReader {
        HostReader { files: Files::below(root) }
    }

    /// All facts, as they are now. Takes about a millisecond per CPU, and one for the kernel's log: call
    /// it before the run, not during it.
    #[must_use]
    pub fn read(&self) -> Host {
        let files = &self.files;
        let cpu = cpu::facts(files);
        let cgroup = cgroup::facts(files);
        let kernel = kernel::Kernel::read(files);
        let mut scheduler = kernel::scheduler(files);
        scheduler.rt_group_scheduling = kernel.rt_group_scheduling(files);
        Host {
            clock_source: kernel::clock_source(files),
            frequency: power::frequency(files),
            idle: power::idle(files),
            scheduler,
            memory: kernel::memory(files),
            virtual_machine: surroundings::virtual_machine(files),
            container: surroundings::container(files),
            process: process::facts(files),
            start: moment::now(files),
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

    /// What changes while a run goes on, as it is now.
    #[must_use]
    pub fn moment(&self) -> HostMoment {
        moment::now(&self.files)
    }

    /// How the machine changed between `start` and now.
    #[must_use]
    pub fn change_since(&self, start: &HostMoment) -> HostChange {
        moment::change(start, &self.moment())
    }
}
