//! The control groups of the process, version 1 and 2, and the limits of each and its ancestors.

use hourglass_documents::CpuSet;
use hourglass_documents::host::{CgroupFacts, CgroupPath, CpuQuota, RtBudget};

use super::files::{Files, clean};

/// Nested groups looked at; more are no tree that people build.
const MOST_ANCESTORS: usize = 64;

/// Groups of a process: one per hierarchy, of which there are about a dozen.
const MOST_GROUPS: usize = 64;

/// Version 1 writes "no limit" as the largest multiple of a page; nothing real is above this.
const UNLIMITED_BYTES: u64 = 1 << 60;

struct Mount {
    /// The group that is seen at the mount point.
    root: String,
    point: String,
    /// Controllers of version 1; `None` for version 2.
    controllers: Option<Vec<String>>,
}

/// One hierarchy as the process sees it: folders of its own group and of the ancestors.
struct Lineage {
    version: u8,
    /// Own group first, the mount point last.
    folders: Vec<String>,
}

pub(super) fn facts(files: &Files) -> CgroupFacts {
    let groups = groups(files, "self");
    let mounts = mounts(files);
    let cpu = lineage(&groups, &mounts, "cpu");
    let cpuset = lineage(&groups, &mounts, "cpuset");
    let memory = lineage(&groups, &mounts, "memory");
    CgroupFacts {
        cpu_quotas: cpu.as_ref().map(|cpu| cpu_quotas(files, cpu)).unwrap_or_default(),
        rt_budgets: cpu.as_ref().map(|cpu| rt_budgets(files, cpu)).unwrap_or_default(),
        cpuset: cpuset.as_ref().and_then(|cpuset| effective_cpus(files, cpuset)),
        cpuset_partition: cpuset.as_ref().and_then(|cpuset| {
            files.line(&format!("{}/cpuset.cpus.partition", cpuset.folders.first()?))
        }),
        memory_limit_bytes: memory.as_ref().and_then(|memory| memory_limit(files, memory)),
        groups,
    }
}

/// Whether the folders that hold quotas can be seen.
pub(super) fn sees_cpu_controller(files: &Files) -> bool {
    lineage(&groups(files, "self"), &mounts(files), "cpu")
        .is_some_and(|cpu| cpu.folders.iter().any(|folder| files.exists(folder)))
}

/// CPUs in isolated partitions. Only the root group of version 2 lists them, on newer kernels
/// (`Documentation/admin-guide/cgroup-v2.rst`, `cpuset.cpus.isolated`).
pub(super) fn isolated_partitions(files: &Files) -> Option<CpuSet> {
    mounts(files)
        .iter()
        .filter(|mount| mount.controllers.is_none())
        .find_map(|mount| files.cpus(&format!("{}/cpuset.cpus.isolated", mount.point)))
}

/// Whether groups have real-time budgets; `None` if the cpu controller is not a version 1 one.
pub(super) fn has_rt_budget(files: &Files) -> Option<bool> {
    let cpu = lineage(&groups(files, "self"), &mounts(files), "cpu")?;
    let folder = cpu.folders.first()?;
    (cpu.version == 1 && files.exists(folder))
        .then(|| files.exists(&format!("{folder}/cpu.rt_runtime_us")))
}

/// How quotas stopped a process, since its groups exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThrottleCounts {
    pub periods: u64,
    /// Throttled time, ns, summed over CPUs; `None` where the kernel does not count it.
    pub ns: Option<u64>,
    /// The quotas, own group first.
    pub quotas: Vec<CpuQuota>,
}

/// How quotas stopped a process, which is named as in `/proc`; `None` without a quota.
pub(super) fn quota_stopped(files: &Files, process: &str) -> Option<ThrottleCounts> {
    let quotas = cpu_quotas(files, &lineage(&groups(files, process), &mounts(files), "cpu")?);
    let of_group = |quota: &CpuQuota| {
        let (folder, _) = quota.file.rsplit_once('/')?;
        let statistics = files.text(&format!("{folder}/cpu.stat"))?;
        let count = |name: &str| {
            let of_name = |line: &str| line.strip_prefix(name)?.trim().parse::<u64>().ok();
            statistics.lines().find_map(of_name)
        };
        let us = count("throttled_usec ").map(|us| us.saturating_mul(1_000));
        // Version 1 has nanoseconds under a name of its own.
        let quotas = vec![quota.clone()];
        Some(ThrottleCounts {
            periods: count("nr_throttled ")?,
            ns: us.or(count("throttled_time ")),
            quotas,
        })
    };
    quotas.iter().filter_map(of_group).reduce(|a, b| ThrottleCounts {
        periods: a.periods.saturating_add(b.periods),
        ns: a.ns.zip(b.ns).map(|(a, b)| a.saturating_add(b)),
        quotas: [a.quotas, b.quotas].concat(),
    })
}

/// The groups of a process, which is named as in `/proc`: lines `NUMBER:CONTROLLERS:PATH`, version 2 as `0::PATH`.
fn groups(files: &Files, process: &str) -> Vec<CgroupPath> {
    let text = files.text(&format!("proc/{process}/cgroup")).unwrap_or_default();
    text.lines()
        .filter_map(|line| {
            let (number, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            let version = if number == "0" && controllers.is_empty() { 2 } else { 1 };
            Some(CgroupPath {
                version,
                controllers: controllers.split(',').filter_map(clean).collect(),
                path: clean(path)?,
            })
        })
        .take(MOST_GROUPS)
        .collect()
}

/// The mounted hierarchies: `ID PARENT DEVICE ROOT POINT OPTIONS [FIELDS] - TYPE SOURCE OPTIONS`.
fn mounts(files: &Files) -> Vec<Mount> {
    let text = files.text("proc/self/mountinfo").unwrap_or_default();
    let mount = |line: &str| {
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let (root, point) = (place.next()?, place.next()?);
        let mut kind = kind.split(' ');
        let controllers = match kind.next()? {
            "cgroup2" => None,
            "cgroup" => {
                let options = kind.nth(1)?;
                Some(options.split(',').map(str::to_owned).collect())
            }
            _ => return None,
        };
        Some(Mount { root: unescape(root), point: unescape(point), controllers })
    };
    text.lines().filter_map(mount).collect()
}

/// A path of mountinfo, in which blanks are octal numbers: `\040`.
fn unescape(path: &str) -> String {
    let mut parts = path.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match (code, part.get(3..)) {
            (Some(code), Some(rest)) if code.is_ascii() => {
                plain.push(char::from(code));
                plain.push_str(rest);
            }
            _ => {
                plain.push('\\');
                plain.push_str(part);
            }
        }
    }
    plain
}

/// The hierarchy that has `controller`: version 1 where it is mounted so, else version 2.
fn lineage(groups: &[CgroupPath], mounts: &[Mount], controller: &str) -> Option<Lineage> {
    let has = |names: &[String]| names.iter().any(|name| name == controller);
    let of_version = |version: u8| {
        let group = groups
            .iter()
            .find(|group| group.version == version && (version == 2 || has(&group.controllers)))?;
        let folders = mounts
            .iter()
            .filter(|mount| match &mount.controllers {
                Some(names) => version == 1 && has(names),
                None => version == 2,
            })
            .find_map(|mount| folders(mount, &group.path))?;
        Some(Lineage { version, folders })
    };
    of_version(1).or_else(|| of_version(2))
}

/// The folders of a group and its ancestors as they are seen at a mount point.
fn folders(mount: &Mount, path: &str) -> Option<Vec<String>> {
    let root = mount.root.trim_end_matches('/');
    let below = match path.strip_prefix(root) {
        Some(below) if below.is_empty() || below.starts_with('/') => below,
        // A container that shares the hierarchy's root but not its name for it.
        _ if path == "/" => "",
        _ => return None,
    };
    let point = mount.point.trim_end_matches('/');
    let mut own = below.trim_matches('/');
    let mut folders = Vec::new();
    while !own.is_empty() && folders.len() < MOST_ANCESTORS {
        folders.push(format!("{point}/{own}"));
        own = own.rsplit_once('/').map_or("", |(parent, _)| parent);
    }
    folders.push(point.to_owned());
    Some(folders)
}

/// Quotas of a group and its ancestors; groups without one are left out.
fn cpu_quotas(files: &Files, cpu: &Lineage) -> Vec<CpuQuota> {
    let quota = |folder: &String| {
        let (file, quota_us, period_us) = if cpu.version == 1 {
            let file = format!("{folder}/cpu.cfs_quota_us");
            // No quota is -1, which is no u64.
            let quota_us = files.number::<u64>(&file)?;
            (file, quota_us, files.number::<u64>(&format!("{folder}/cpu.cfs_period_us"))?)
        } else {
            let file = format!("{folder}/cpu.max");
            let line = files.line(&file)?;
            let (quota, period) = line.split_once(' ')?;
            // No quota is `max`.
            (file, quota.parse().ok()?, period.trim().parse().ok()?)
        };
        (period_us > 0).then_some(CpuQuota { file, quota_us, period_us })
    };
    cpu.folders.iter().filter_map(quota).collect()
}

/// Real-time budgets of a group and its ancestors.
fn rt_budgets(files: &Files, cpu: &Lineage) -> Vec<RtBudget> {
    let budget = |folder: &String| {
        let file = format!("{folder}/cpu.rt_runtime_us");
        Some(RtBudget {
            runtime_us: files.number(&file)?,
            period_us: files.number(&format!("{folder}/cpu.rt_period_us")),
            file,
        })
    };
    match cpu.version {
        1 => cpu.folders.iter().filter_map(budget).collect(),
        _ => Vec::new(),
    }
}

/// CPUs that the nearest group with the controller leaves to the process.
fn effective_cpus(files: &Files, cpuset: &Lineage) -> Option<CpuSet> {
    let names: &[&str] = match cpuset.version {
        1 => &["cpuset.effective_cpus", "cpuset.cpus"],
        _ => &["cpuset.cpus.effective"],
    };
    let in_folder = |folder: &String| {
        let cpus = names.iter().find_map(|name| files.cpus(&format!("{folder}/{name}")))?;
        (!cpus.is_empty()).then_some(cpus)
    };
    cpuset.folders.iter().find_map(in_folder)
}

/// The lowest memory limit of a group and its ancestors.
fn memory_limit(files: &Files, memory: &Lineage) -> Option<u64> {
    let name = match memory.version {
        1 => "memory.limit_in_bytes",
        _ => "memory.max",
    };
    memory
        .folders
        .iter()
        .filter_map(|folder| files.number::<u64>(&format!("{folder}/{name}")))
        .filter(|bytes| *bytes < UNLIMITED_BYTES)
        .min()
}
