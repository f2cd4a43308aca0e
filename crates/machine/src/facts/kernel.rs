//! The kernel: version, preemption, tick, build and boot options, scheduler settings, clock
//! sources, memory.

use std::collections::BTreeMap;

use hourglass_documents::host::{ClockSourceFacts, HostMemory, SchedulerFacts};

use super::cgroup;
use super::environment::has_word;
use super::files::{Files, clean, field};

/// Boot options that bear on time. Only these are copied: a command line may hold secrets.
const BOOT_OPTIONS: &str = "\
    acpi_pad amd_pstate audit cgroup_no_v1 clocksource cpufreq.default_governor cpuidle.off \
    cpuidle_haltpoll.force default_hugepagesz efi haltpoll.guest_halt_poll_ns highres hpet \
    hugepages idle intel_idle.max_cstate intel_pstate irqaffinity isolcpus kthread_cpus mce \
    mitigations nmi_watchdog no-kvmclock no-steal-acc nohlt nohz nohz_full nosmt \
    nosoftlockup notsc nowatchdog numa_balancing preempt processor.max_cstate psi \
    rcu_nocb_poll rcu_nocbs rcupdate.rcu_expedited rcutree.kthread_prio rt_group_sched \
    skew_tick systemd.unified_cgroup_hierarchy threadirqs timer_migration \
    transparent_hugepage tsc tsx workqueue.power_efficient";

/// Build options that bear on time, without `CONFIG_`.
const BUILD_OPTIONS: &str = "\
    CFS_BANDWIDTH CPU_ISOLATION DEBUG_LOCK_ALLOC DEBUG_PAGEALLOC HIGH_RES_TIMERS \
    HWLAT_TRACER HZ IRQSOFF_TRACER IRQ_TIME_ACCOUNTING KASAN KCSAN NO_HZ_FULL NO_HZ_IDLE \
    OSNOISE_TRACER PARAVIRT_TIME_ACCOUNTING PREEMPT PREEMPT_DYNAMIC PREEMPT_LAZY \
    PREEMPT_NONE PREEMPT_RT PREEMPT_TRACER PREEMPT_VOLUNTARY PROVE_LOCKING RCU_NOCB_CPU RSEQ \
    RT_GROUP_SCHED RT_GROUP_SCHED_DEFAULT_DISABLED SCHED_CLASS_EXT SCHED_CORE SCHED_HRTICK \
    SLUB_DEBUG_ON TIMERLAT_TRACER";

/// Where distributions keep the build options of the kernel that runs.
const CONFIG_PLACES: [(&str, &str); 3] =
    [("boot/config-", ""), ("lib/modules/", "/config"), ("usr/lib/modules/", "/config")];

/// Where a kernel built with `CONFIG_IKCONFIG_PROC` tells them itself.
const CONFIG_OF_KERNEL: &str = "proc/config.gz";

/// The tick rates that kernels are built with.
const TICK_RATES_HZ: [u32; 6] = [100, 200, 250, 300, 500, 1000];

/// How far a tick rate found by division may be from one in [`TICK_RATES_HZ`].
const TICK_TOLERANCE: f64 = 0.01;

/// The kernel counts ticks from five minutes before the overflow of 32 bits (`INITIAL_JIFFIES`).
const TICKS_WRAP: f64 = 4_294_967_296.0;
const SECONDS_TO_WRAP: f64 = 300.0;

/// Nearer than this to the overflow the division is too coarse.
const SECONDS_UNSURE: f64 = 60.0;

/// What the kernel says about itself.
pub(super) struct KernelInfo {
    pub(super) release: String,
    pub(super) build: String,
    pub(super) preemption: Option<String>,
    pub(super) preemption_mode: Option<String>,
    pub(super) tick_hz: Option<u32>,
    pub(super) boot_options: Vec<String>,
    pub(super) config: BTreeMap<String, String>,
}

impl KernelInfo {
    pub(super) fn read(files: &Files) -> KernelInfo {
        // "Linux version RELEASE (builder) (compiler) #BUILD"
        let version = files.line("proc/version").unwrap_or_default();
        let release = files
            .line("proc/sys/kernel/osrelease")
            .or_else(|| version.split_whitespace().nth(2).map(str::to_owned))
            .unwrap_or_default();
        let build = files
            .line("proc/sys/kernel/version")
            .or_else(|| version.find('#').map(|at| version[at..].to_owned()))
            .unwrap_or_default();
        let boot_options = boot_options(files);
        let config = build_options(files, &release);
        KernelInfo {
            preemption: preemption(files, &build),
            preemption_mode: files
                .chosen("sys/kernel/debug/sched/preempt", '(', ')')
                .or_else(|| option(&boot_options, "preempt").map(str::to_owned)),
            tick_hz: tick_hz(files, &config),
            release,
            build,
            boot_options,
            config,
        }
    }

    /// Whether real-time threads are accounted by control group.
    pub(super) fn rt_group_scheduling(&self, files: &Files) -> Option<bool> {
        // Version 1 shows the file exactly where the accounting is on.
        if let Some(shown) = cgroup::has_rt_budget(files) {
            return Some(shown);
        }
        let built = self.config.get("CONFIG_RT_GROUP_SCHED")?;
        let off_by_default = self
            .config
            .get("CONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED")
            .is_some_and(|value| value == "y");
        Some(
            built == "y"
                && match option(&self.boot_options, "rt_group_sched") {
                    Some(word) => word != "0",
                    None => !off_by_default,
                },
        )
    }
}

fn option<'a>(options: &'a [String], key: &str) -> Option<&'a str> {
    options
        .iter()
        .filter_map(|word| word.split_once('='))
        .rfind(|(name, _)| *name == key)
        .map(|(_, value)| value)
}

/// The words of the command line that bear on time.
fn boot_options(files: &Files) -> Vec<String> {
    let line = files.text("proc/cmdline").unwrap_or_default();
    line.split_whitespace()
        // What follows belongs to the first process, not to the kernel.
        .take_while(|word| *word != "--")
        .filter(|word| {
            let name = word.split('=').next().unwrap_or_default();
            has_word(BOOT_OPTIONS, name)
        })
        .filter_map(clean)
        .collect()
}

/// The build options that bear on time.
fn build_options(files: &Files, release: &str) -> BTreeMap<String, String> {
    if release.is_empty() || release.contains('/') {
        return BTreeMap::new();
    }
    let text = CONFIG_PLACES
        .iter()
        .find_map(|(before, after)| files.text(&format!("{before}{release}{after}")))
        .or_else(|| files.unpacked(CONFIG_OF_KERNEL));
    let known: Vec<&str> = BUILD_OPTIONS.split_whitespace().collect();
    let mut options = BTreeMap::new();
    for line in text.unwrap_or_default().lines() {
        let unset = line.strip_prefix("# ").and_then(|rest| rest.strip_suffix(" is not set"));
        let (name, value) = match (unset, line.split_once('=')) {
            (Some(name), _) => (name, "n"),
            (None, Some((name, value))) => (name, value),
            (None, None) => continue,
        };
        let bears_on_time = name.strip_prefix("CONFIG_").is_some_and(|name| known.contains(&name));
        if let (true, Some(value)) = (bears_on_time, clean(value)) {
            options.insert(name.to_owned(), value);
        }
    }
    options
}

/// The preemption model that the kernel was built for.
fn preemption(files: &Files, build: &str) -> Option<String> {
    let real_time = ["PREEMPT_RT", "PREEMPT RT", "PREEMPT_{RT"];
    let model = if files.flag("sys/kernel/realtime") == Some(true)
        || real_time.iter().any(|mark| build.contains(mark))
    {
        "rt"
    } else if build.contains("PREEMPT_DYNAMIC") {
        "dynamic"
    } else if build.contains("PREEMPT") {
        "full"
    } else if build.is_empty() {
        return None;
    } else {
        "none"
    };
    Some(model.to_owned())
}

/// The tick rate: from the build options, else from ticks since boot over time since boot.
fn tick_hz(files: &Files, config: &BTreeMap<String, String>) -> Option<u32> {
    if let Some(built) = config.get("CONFIG_HZ").and_then(|hz| hz.parse().ok()) {
        return Some(built);
    }
    let by_statistics = || {
        let ticks = files.text("proc/schedstat")?.lines().find_map(|line| {
            let ticks = line.strip_prefix("timestamp ")?;
            ticks.trim().parse::<u64>().ok()
        })?;
        let uptime = files.line("proc/uptime")?;
        let seconds = uptime.split_whitespace().next()?.parse::<f64>().ok()?;
        tick_rate(ticks, seconds)
    };
    let by_timers = || {
        let timers = files.text("proc/timer_list")?;
        let ticks = field(&timers, ".last_jiffies", ':')?.parse::<u64>().ok()?;
        let now = timers.lines().find_map(|line| {
            let rest = line.strip_prefix("now at ")?;
            rest.strip_suffix(" nsecs")?.trim().parse::<u64>().ok()
        })?;
        tick_rate(ticks, now as f64 / 1e9)
    };
    by_statistics().or_else(by_timers)
}

/// The usual rate that explains `ticks` after `seconds`; `None` if none does.
fn tick_rate(ticks: u64, seconds: f64) -> Option<u32> {
    let (ticks, seconds) = (ticks as f64 - TICKS_WRAP, seconds - SECONDS_TO_WRAP);
    if seconds.abs() < SECONDS_UNSURE {
        return None;
    }
    let rate = ticks / seconds;
    TICK_RATES_HZ.into_iter().find(|hz| (rate / f64::from(*hz) - 1.0).abs() < TICK_TOLERANCE)
}

pub(super) fn scheduler(files: &Files) -> SchedulerFacts {
    let setting = |name: &str| format!("proc/sys/kernel/{name}");
    let server = |name: &str| {
        // The servers of all CPUs have equal settings by default: the first stands for all.
        files.number(&format!("sys/kernel/debug/sched/fair_server/cpu0/{name}"))
    };
    SchedulerFacts {
        rt_runtime_us: files.number(&setting("sched_rt_runtime_us")),
        rt_period_us: files.number(&setting("sched_rt_period_us")),
        deadline_period_min_us: files.number(&setting("sched_deadline_period_min_us")),
        deadline_period_max_us: files.number(&setting("sched_deadline_period_max_us")),
        fair_server_runtime_ns: server("runtime"),
        fair_server_period_ns: server("period"),
        rr_timeslice_ms: files.number(&setting("sched_rr_timeslice_ms")),
        rt_group_scheduling: None,
        autogroup: files.flag(&setting("sched_autogroup_enabled")),
        numa_balancing: files.number::<u32>(&setting("numa_balancing")).map(|mode| mode != 0),
        watchdog: files.flag(&setting("watchdog")),
    }
}

pub(super) fn clock_source(files: &Files) -> ClockSourceFacts {
    let available = files
        .line("sys/devices/system/clocksource/clocksource0/available_clocksource")
        .unwrap_or_default();
    ClockSourceFacts {
        current: current_clock_source(files),
        available: available.split_whitespace().map(str::to_owned).collect(),
    }
}

pub(super) fn current_clock_source(files: &Files) -> Option<String> {
    files.line("sys/devices/system/clocksource/clocksource0/current_clocksource")
}

pub(super) fn memory(files: &Files) -> HostMemory {
    let text = files.text("proc/meminfo").unwrap_or_default();
    let bytes = |key: &str| {
        let amount = field(&text, key, ':')?.strip_suffix("kB")?;
        amount.trim().parse::<u64>().ok()?.checked_mul(1024)
    };
    HostMemory {
        total_bytes: bytes("MemTotal"),
        swap_total_bytes: bytes("SwapTotal"),
        transparent_huge_pages: files.chosen(
            "sys/kernel/mm/transparent_hugepage/enabled",
            '[',
            ']',
        ),
    }
}
