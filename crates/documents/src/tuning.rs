//! Facts about the machine that only a diagnosis asks for: settings that a run's manifest does not
//! keep, and who asks. A fact that the machine does not give is `None`; the reason is stored with
//! the file that should have given it.
//!
//! Owns: the names and units of the facts. Must not: read them, or judge them (`machine` does).

use std::collections::BTreeMap;

use crate::cpus::CpuSet;

/// What a diagnosis wants to know besides [`crate::host::Host`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    /// Who asks.
    pub user: User,
    /// How the kernel's command line is changed here, where there are signs of it.
    pub boot_loader: Option<BootLoader>,
    /// `ID` of `/etc/os-release`: `debian`, `fedora`...
    pub distribution: Option<String>,
    /// Whether the files that tell the facts can be read, by path.
    pub files: BTreeMap<String, Access>,
    /// Timer slack of the process, ns.
    pub timer_slack_ns: Option<u64>,
    /// What the scheduler and the timers do on their own.
    pub kernel: KernelNoise,
    /// Who may interrupt which CPU.
    pub interrupts: Interrupts,
    /// Memory management behind the back of programs.
    pub memory: MemoryNoise,
    /// Switches of the processors.
    pub processor: ProcessorSwitches,
    /// Whether the control group that would hold a quota can be seen.
    pub quota_visible: bool,
    /// CPUs in isolated partitions of control groups.
    pub isolated_partitions: Option<CpuSet>,
}

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// Effective user number.
    pub id: Option<u32>,
    /// Login name.
    pub name: Option<String>,
}

/// How the kernel's command line is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootLoader {
    /// By `grubby` (Fedora, RHEL).
    Grubby,
    /// In `/etc/default/grub`, then `update-grub` (Debian, Ubuntu).
    UpdateGrub,
    /// In `/etc/default/grub`, then `grub2-mkconfig` (openSUSE).
    Grub2Mkconfig,
    /// In `/etc/default/grub`, then `grub-mkconfig` (Arch).
    GrubMkconfig,
    /// In `/boot/firmware/cmdline.txt` (Raspberry Pi).
    Firmware,
    /// In `/boot/cmdline.txt` (Raspberry Pi, earlier systems).
    BootFolder,
    /// In `/etc/kernel/cmdline`, then `kernel-install` (systemd-boot, unified kernel images).
    KernelInstall,
}

/// Whether a file can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It can.
    Readable,
    /// It is there, but not for this user.
    Denied,
    /// Its file system is there and does not have it: the kernel lacks the feature.
    Missing,
    /// Its file system is not mounted, or hidden.
    Unmounted,
}

/// What the scheduler and the timers do on their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelNoise {
    /// The fair server of each CPU.
    pub fair_servers: BTreeMap<u32, FairServer>,
    /// Whether timers move from idle CPUs to busy ones.
    pub timer_migration: Option<bool>,
    /// Whether the lockup detector of non-maskable interrupts runs.
    pub nmi_watchdog: Option<bool>,
    /// Whether the lockup detector of timers runs.
    pub soft_watchdog: Option<bool>,
    /// CPUs that the lockup detectors watch.
    pub watchdog_cpus: Option<CpuSet>,
    /// Whether expedited grace periods are done as normal ones.
    pub rcu_normal: Option<bool>,
    /// The tracer in force; `nop` without a tracer.
    pub tracer: Option<String>,
    /// Trace events: `0` none, `1` all, `X` some.
    pub trace_events: Option<String>,
    /// Seconds between two polls for corrected hardware errors; 0 is never.
    pub machine_check_interval_s: Option<u64>,
    /// Whether corrected hardware errors are ignored.
    pub machine_check_ignored: Option<bool>,
    /// Whether the firmware is called while the system runs (EFI runtime services).
    pub efi_runtime: Option<bool>,
}

/// The time that a CPU keeps for ordinary threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FairServer {
    /// Time in each period, ns; 0 without a fair server.
    pub runtime_ns: u64,
    /// The period, ns.
    pub period_ns: u64,
}

/// Who may interrupt which CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interrupts {
    /// Interrupts that have a handler; `None` if the kernel does not list them.
    pub lines: Option<Vec<Interrupt>>,
    /// Whether `irqbalance` runs; `None` if other users' processes are hidden.
    pub irqbalance: Option<bool>,
    /// CPUs that the configuration of `irqbalance` keeps it from.
    pub irqbalance_banned: Option<CpuSet>,
    /// CPUs of the workers that are bound to none.
    pub workqueue_cpus: Option<CpuSet>,
    /// CPUs of the workers that write files back.
    pub writeback_cpus: Option<CpuSet>,
}

/// An interrupt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interrupt {
    /// Its number.
    pub number: u32,
    /// Its handlers.
    pub name: String,
    /// CPUs to which it may be delivered.
    pub allowed: CpuSet,
    /// CPUs to which it is delivered at present.
    pub delivered: Option<CpuSet>,
}

/// Memory management behind the back of programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryNoise {
    /// Eagerness to swap, 0 to 200.
    pub swappiness: Option<u32>,
    /// What the daemon that merges equal pages does: 0 rests, 1 merges, 2 has undone it.
    pub merging: Option<u32>,
    /// Whether compaction moves locked pages.
    pub compacts_locked: Option<bool>,
    /// Seconds between two updates of the memory statistics of a CPU.
    pub statistics_interval_s: Option<u32>,
    /// Number of memory nodes.
    pub nodes: Option<usize>,
}

/// Switches of the processors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessorSwitches {
    /// Frequency governors that may be chosen.
    pub governors: Vec<String>,
    /// The line that ends turbo: what is to be written, and where.
    pub turbo_off: Option<(&'static str, &'static str)>,
    /// State of `smt/control`: `on`, `off`, `forceoff`, `notsupported`, `notimplemented`.
    pub smt_control: Option<String>,
    /// Power saving of PCI Express links: `default`, `performance`, `powersave`, `powersupersave`.
    pub pcie_policy: Option<String>,
}
