//! The subject's control groups: real-time budgets, cpuset, and the root domain that cpusets make.
//!
//! A root domain is a set of CPUs over which the scheduler balances. Version 1 makes one of every
//! set of overlapping cpusets with `cpuset.sched_load_balance`; version 2 of every partition
//! (Documentation/admin-guide/cgroup-v1/cpusets.rst, section 1.7, and cgroup-v2.rst, Cpuset).

use hourglass_documents::CpuSet;

use super::files::Files;
use super::{Cpuset, GroupBudget};

/// Most cpusets that are looked at for domains.
const MOST_CPUSETS: usize = 4096;

#[derive(Default)]
pub(super) struct Groups {
    pub(super) budgets: Vec<GroupBudget>,
    pub(super) domain: Option<CpuSet>,
    pub(super) cpuset: Option<Cpuset>,
}

struct CgroupLocation {
    version: u8,
    point: String,
    /// The subject's group below it: empty, or with a leading slash.
    group: String,
}

impl CgroupLocation {
    fn folder(&self) -> String {
        format!("{}{}", self.point, self.group)
    }

    /// Own folder first, the mount point last.
    fn lineage(&self) -> Vec<String> {
        let mut groups = vec![self.group.as_str()];
        while let Some((above, _)) = groups.last().and_then(|group| group.rsplit_once('/')) {
            groups.push(above);
        }
        groups.iter().map(|group| format!("{}{group}", self.point)).collect()
    }
}

/// Reads them for the thread whose folder under `proc` is `whose`.
pub(super) fn facts(
    files: &Files,
    whose: &str,
    affinity: Option<&CpuSet>,
    online: Option<&CpuSet>,
) -> Groups {
    let cpu = place(files, whose, "cpu");
    let cpuset = place(files, whose, "cpuset");
    let budgets = cpu.filter(|cpu| cpu.version == 1).map_or(Vec::new(), |cpu| budgets(files, &cpu));
    let domain = domain(files, cpuset.as_ref(), affinity, online);
    let own = cpuset.filter(|cpuset| !cpuset.group.is_empty()).and_then(|cpuset| {
        let cpus = effective(files, &cpuset.folder())?;
        Some(Cpuset { folder: cpuset.folder(), version: cpuset.version, cpus })
    });
    Groups { budgets, domain, cpuset: own }
}

/// The hierarchy with `controller`: version 1 where it is mounted so, else version 2.
fn place(files: &Files, whose: &str, controller: &str) -> Option<CgroupLocation> {
    let groups = files.text(&format!("{whose}/cgroup"))?;
    let mounts = files.text("proc/self/mountinfo")?;
    let group_of = |version_1: bool| {
        groups.lines().find_map(|line| {
            let (number, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            let fits = match version_1 {
                true => controllers.split(',').any(|one| one == controller),
                false => number == "0" && controllers.is_empty(),
            };
            fits.then(|| path.to_owned())
        })
    };
    let mount_of =
        |version_1: bool| mounts.lines().find_map(|line| mount(line, version_1, controller));
    [true, false].into_iter().find_map(|version_1| {
        let (path, (root, point)) = (group_of(version_1)?, mount_of(version_1)?);
        // In a container the mount shows an inner group as its root.
        let group = path.strip_prefix(root.trim_end_matches('/')).unwrap_or("");
        let group = group.trim_end_matches('/').to_owned();
        Some(CgroupLocation { version: if version_1 { 1 } else { 2 }, point, group })
    })
}

/// Root and point of a mount `ID PARENT DEVICE ROOT POINT OPTIONS [FIELDS] - TYPE SOURCE OPTIONS`.
fn mount(line: &str, version_1: bool, controller: &str) -> Option<(String, String)> {
    let (place, kind) = line.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (root, point) = (place.next()?, place.next()?);
    let mut kind = kind.split(' ');
    let fits = match kind.next()? {
        "cgroup2" => !version_1,
        "cgroup" => version_1 && kind.nth(1)?.split(',').any(|one| one == controller),
        _ => false,
    };
    fits.then(|| (root.to_owned(), point.to_owned()))
}

/// Real-time budgets, own first.
fn budgets(files: &Files, place: &CgroupLocation) -> Vec<GroupBudget> {
    let of = |folder: String| {
        let file = format!("{folder}/cpu.rt_runtime_us");
        files.number(&file).map(|runtime_us| GroupBudget { file, runtime_us })
    };
    place.lineage().into_iter().map_while(of).collect()
}

fn effective(files: &Files, folder: &str) -> Option<CpuSet> {
    let names = ["cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"];
    names.iter().find_map(|name| files.cpus(&format!("{folder}/{name}")))
}

fn domain(
    files: &Files,
    place: Option<&CgroupLocation>,
    affinity: Option<&CpuSet>,
    online: Option<&CpuSet>,
) -> Option<CpuSet> {
    let isolated = files.cpus("sys/devices/system/cpu/isolated").unwrap_or_default();
    let all = online?;
    let unless_isolated = |cpus: CpuSet| {
        let apart =
            affinity.is_some_and(|own| !own.is_empty() && own.difference(&isolated).is_empty());
        if apart { isolated.intersection(all) } else { cpus.difference(&isolated) }
    };
    match place {
        Some(place) if place.version == 1 => {
            match files.number::<u8>(&format!("{}/cpuset.sched_load_balance", place.point)) {
                Some(0) => Some(of_version_1(files, place, affinity?, all)),
                _ => Some(unless_isolated(all.clone())),
            }
        }
        Some(place) => {
            let partition = place.lineage().into_iter().find(|folder| {
                let kind = files.text(&format!("{folder}/cpuset.cpus.partition"));
                kind.is_some_and(|kind| matches!(kind.trim(), "root" | "isolated"))
            });
            let rest = || effective(files, &place.point).unwrap_or_else(|| all.clone());
            let own = partition.and_then(|folder| effective(files, &folder));
            Some(own.unwrap_or_else(|| unless_isolated(rest())))
        }
        None => Some(unless_isolated(all.clone())),
    }
}

/// Version 1 without balancing at the root: cpusets that balance, those that overlap together; CPUs
/// in none of them are in one domain of the unbalanced.
fn of_version_1(files: &Files, place: &CgroupLocation, affinity: &CpuSet, all: &CpuSet) -> CpuSet {
    let mut sets: Vec<CpuSet> = Vec::new();
    let mut folders = vec![place.point.clone()];
    let mut looked_at = 0;
    while let Some(folder) = folders.pop() {
        looked_at += 1;
        if looked_at > MOST_CPUSETS {
            break;
        }
        folders.extend(files.folders(&folder).iter().map(|name| format!("{folder}/{name}")));
        let balances =
            files.number::<u8>(&format!("{folder}/cpuset.sched_load_balance")) == Some(1);
        let Some(mut joined) = effective(files, &folder).filter(|_| balances) else { continue };
        sets.retain(|set| {
            let apart = set.intersection(&joined).is_empty();
            if !apart {
                joined = joined.union(set);
            }
            apart
        });
        sets.push(joined);
    }
    let balanced = sets.iter().fold(CpuSet::default(), |sum, set| sum.union(set));
    let own = sets.into_iter().find(|set| !set.intersection(affinity).is_empty());
    own.unwrap_or_else(|| all.difference(&balanced))
}
