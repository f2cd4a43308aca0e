//! What the doctor goes by, and which CPUs the work is taken to run on.

use std::io::ErrorKind;

use hourglass_documents::CpuSet;
use hourglass_documents::clocks::ClocksDocument;
use hourglass_documents::doctor::CpuSelection;
use hourglass_documents::host::Host;
use hourglass_documents::tuning::{Access, Tuning};

/// Everything that a check may look at. Checks are pure functions of it.
#[derive(Clone, Debug, Default)]
pub struct DoctorInput {
    /// The machine, as a run's manifest keeps it.
    pub host: Host,
    /// What only a diagnosis asks for.
    pub tuning: Tuning,
    /// The clocks, measured, and the choice by the policy `strict`; `None` if not measured.
    pub clocks: Option<ClocksDocument>,
    pub trials: ProbeResults,
    /// CPUs that the work is to run on; `None` if the user named no CPU.
    pub asked: Option<CpuSet>,
}

/// What the kernel answered when it was tried; `None` if it was not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeResults {
    /// `SCHED_FIFO` of the lowest priority; or the error number.
    pub real_time: Option<Result<(), i32>>,
    /// `SCHED_DEADLINE` with a small budget; or the error number.
    pub deadline: Option<Result<(), i32>>,
    /// Opening `/dev/cpu_dma_latency` for writing.
    pub idle_latency: Option<Result<(), ErrorKind>>,
}

impl DoctorInput {
    /// The CPUs that are online, or at least those that this process may use; empty if the machine
    /// tells neither.
    pub(super) fn online(&self) -> CpuSet {
        let cpu = &self.host.cpu;
        cpu.online.clone().or_else(|| cpu.allowed.clone()).unwrap_or_default()
    }

    /// The CPUs that are isolated, by whatever means.
    pub(super) fn isolated(&self) -> CpuSet {
        let booted = self.host.cpu.isolated.clone().unwrap_or_default();
        let partitions = self.tuning.isolated_partitions.clone().unwrap_or_default();
        let own = match self.host.cgroup.cpuset_partition.as_deref() {
            Some("isolated") => self.host.cgroup.cpuset.clone().unwrap_or_default(),
            _ => CpuSet::default(),
        };
        booted.union(&partitions).union(&own).intersection(&self.online())
    }

    /// The CPUs that the work is taken to run on, and why these.
    pub(super) fn judged(&self) -> (CpuSet, CpuSelection) {
        if let Some(asked) = &self.asked {
            return (asked.clone(), CpuSelection::Asked);
        }
        let isolated = self.isolated();
        if isolated.is_empty() {
            (self.online(), CpuSelection::Online)
        } else {
            (isolated, CpuSelection::Isolated)
        }
    }

    /// Whether some CPUs are meant for the work and others are not.
    pub(super) fn sets_cpus_apart(&self) -> bool {
        self.judged().1 != CpuSelection::Online
    }

    /// The CPUs to set apart for the work: those that are meant for it, else those of the last
    /// core. `None` if nothing would be left for the rest of the system.
    pub(super) fn apart(&self) -> Option<CpuSet> {
        let online = self.online();
        let apart = if self.sets_cpus_apart() {
            self.judged().0
        } else {
            let last = online.iter().last()?;
            let core = self.host.cpu.siblings.iter().find(|core| core.contains(last));
            core.map_or_else(|| CpuSet::from_iter([last]), |core| core.intersection(&online))
        };
        (!online.difference(&apart).is_empty()).then_some(apart)
    }

    /// The CPUs that are left for the rest of the system.
    pub(super) fn rest(&self) -> Option<CpuSet> {
        Some(self.online().difference(&self.apart()?))
    }

    pub(super) fn is_guest(&self) -> bool {
        self.host.virtual_machine.present == Some(true)
    }

    /// Whether the process is in a container, whose settings of the kernel are its host's.
    pub(super) fn is_contained(&self) -> bool {
        self.host.container.is_some()
    }

    pub(super) fn is_root(&self) -> bool {
        self.tuning.user.id == Some(0)
    }

    /// Whether a file can be read. What was not looked at counts as not mounted.
    pub(super) fn access(&self, path: &str) -> Access {
        self.tuning.files.get(path).copied().unwrap_or(Access::Unmounted)
    }

    pub(super) fn is_preempt_rt(&self) -> bool {
        self.host.preemption.as_deref() == Some("rt")
    }

    /// The value of a boot option; the last one counts. An option without a value has the value
    /// `""`.
    pub(super) fn boot_option(&self, name: &str) -> Option<&str> {
        let value = |word: &'_ String| match word.split_once('=') {
            Some((key, _)) => key == name,
            None => word == name,
        };
        let word = self.host.boot_options.iter().rfind(|word| value(word))?;
        Some(word.split_once('=').map_or("", |(_, value)| value))
    }

    /// The CPUs of a boot option, which may also be written `all` or with `N` for the last CPU
    /// (`Documentation/admin-guide/kernel-parameters.rst`, "cpu lists"). Flags among them are
    /// left out.
    pub(super) fn boot_cpus(&self, name: &str) -> Option<CpuSet> {
        let value = self.boot_option(name)?;
        let online = self.online();
        let last = online.iter().last()?.to_string();
        let mut cpus = CpuSet::default();
        for part in value.split(',') {
            if part == "all" {
                return Some(online);
            }
            let part = part.replace('N', &last);
            if part.starts_with(|first: char| first.is_ascii_digit()) {
                cpus = cpus.union(&part.parse().ok()?);
            }
        }
        Some(cpus)
    }

    /// Whether the kernel was built with an option; `None` if its build options are unknown.
    pub(super) fn built_with(&self, option: &str) -> Option<bool> {
        let config = &self.host.kernel_config;
        (!config.is_empty()).then(|| config.get(option).is_some_and(|value| value == "y"))
    }
}
