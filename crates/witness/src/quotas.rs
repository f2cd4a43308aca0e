//! The quotas of the control groups that the thread is in, and for how long they stopped these groups.
//!
//! A thread may be moved, and a group may get a quota, at any time: [`Quotas::follow`] finds that. Must not: allocate
//! after it was opened.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use hourglass_sys::cgroup::{Hierarchy, Version};
use hourglass_sys::open::open_in;

/// Groups with a quota above each other; more are not counted.
const MOST_LIMITED: usize = 16;
/// Groups above each other that are looked at.
const MOST_ANCESTORS: usize = 64;
/// The longest path of a group, and of what `/proc/PID/cgroup` says.
const MOST_PATH: usize = 4_096;

/// The groups with a quota.
#[derive(Debug)]
pub(crate) struct Quotas {
    hierarchy: Option<Hierarchy>,
    /// `/proc/PID/cgroup`.
    membership: Option<File>,
    /// The folder of the thread's own group; empty if it is not seen here. Has room for the longest.
    own: PathBuf,
    /// The group itself first. Has room for all.
    limited: Vec<Limited>,
}

/// A group with a quota.
#[derive(Debug)]
struct Limited {
    /// How many groups it is above the thread's own.
    above: usize,
    period_ns: u64,
    stat: File,
}

impl Quotas {
    pub(crate) fn open() -> Quotas {
        let membership = File::open("/proc/thread-self/cgroup").ok();
        Quotas::of(Hierarchy::with("cpu").ok(), membership)
    }

    fn of(hierarchy: Option<Hierarchy>, membership: Option<File>) -> Quotas {
        let own = PathBuf::with_capacity(MOST_PATH);
        let limited = Vec::with_capacity(MOST_LIMITED);
        let mut quotas = Quotas { hierarchy, membership, own, limited };
        quotas.follow();
        quotas
    }

    /// Finds the groups in which the thread is now. Whether their quotas are others than before.
    pub(crate) fn follow(&mut self) -> bool {
        let moved = self.follow_membership();
        let had_some = !self.limited.is_empty();
        if moved {
            self.limited.clear();
        }
        let others = self.follow_limits();
        others || moved && had_some
    }

    /// Whether the thread is in another group than before.
    fn follow_membership(&mut self) -> bool {
        let (Some(hierarchy), Some(membership)) = (&self.hierarchy, &self.membership) else {
            return false;
        };
        read(membership, |text| {
            let below = hierarchy.below_mount(text);
            let before = self.own.strip_prefix(hierarchy.mount()).ok();
            let moved = below != before || self.own.as_os_str().is_empty() != below.is_none();
            if moved {
                self.own.clear();
                let parts = [Some(hierarchy.mount()), below].into_iter().flatten();
                parts.filter(|_| below.is_some()).for_each(|part| self.own.push(part));
            }
            moved
        })
        .unwrap_or(false)
    }

    /// Whether other groups than before have a quota.
    fn follow_limits(&mut self) -> bool {
        let Some(hierarchy) = &self.hierarchy else { return false };
        let (mut others, mut known) = (false, 0);
        let groups = self.own.ancestors().take_while(|group| group.starts_with(hierarchy.mount()));
        for (above, group) in groups.take(MOST_ANCESTORS).enumerate() {
            let period_ns = period_ns(hierarchy.version(), group);
            let counted = self.limited.get(known).is_some_and(|limited| limited.above == above);
            match period_ns {
                Some(period_ns) if counted => self.limited[known].period_ns = period_ns,
                Some(period_ns) if self.limited.len() < MOST_LIMITED => {
                    let Ok(stat) = open_in(group, "cpu.stat") else { continue };
                    self.limited.insert(known, Limited { above, period_ns, stat });
                    others = true;
                }
                None if counted => {
                    self.limited.remove(known);
                    others = true;
                    continue;
                }
                _ => continue,
            }
            known += 1;
        }
        others
    }

    /// The longest period of a quota, ns.
    pub(crate) fn period_ns(&self) -> Option<u64> {
        self.limited.iter().map(|limited| limited.period_ns).max()
    }

    /// For how long all of them stopped their groups so far, ns.
    pub(crate) fn throttled_ns(&self) -> Option<u64> {
        let of = |limited: &Limited| read(&limited.stat, throttled_ns).flatten();
        self.limited.iter().map(of).try_fold(0, |sum: u64, ns| Some(sum.saturating_add(ns?)))
    }
}

/// The period of a group's quota, ns; `None` without a quota.
fn period_ns(version: Version, group: &Path) -> Option<u64> {
    let of = |name, number: fn(&str) -> Option<u64>| read(&open_in(group, name).ok()?, number)?;
    let us = match version {
        Version::V1 => {
            // No quota is -1, which is no u64.
            of("cpu.cfs_quota_us", |text| text.trim().parse().ok())?;
            of("cpu.cfs_period_us", |text| text.trim().parse().ok())?
        }
        Version::V2 => of("cpu.max", |text| {
            let (quota, period) = text.trim().split_once(' ')?;
            quota.parse::<u64>().ok()?;
            period.parse().ok()
        })?,
    };
    us.checked_mul(1_000)
}

/// What `cpu.stat` says: version 2 in us, version 1 in ns.
fn throttled_ns(text: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (key, number) = line.split_once(' ')?;
        let number: u64 = number.trim().parse().ok()?;
        match key {
            "throttled_usec" => number.checked_mul(1_000),
            "throttled_time" => Some(number),
            _ => None,
        }
    })
}

/// Reads a small file anew. Allocates nothing.
pub(crate) fn read<T>(file: &File, take: impl FnOnce(&str) -> T) -> Option<T> {
    let mut room = [0; MOST_PATH];
    let length = file.read_at(&mut room, 0).ok()?;
    let text = std::str::from_utf8(room.get(..length)?).ok()?;
    Some(take(text))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A hierarchy made of files, and a thread in it.
    struct TestHierarchy {
        folder: tempfile::TempDir,
        version: Version,
    }

    impl TestHierarchy {
        fn of(version: Version) -> TestHierarchy {
            TestHierarchy { folder: tempfile::tempdir().unwrap(), version }
        }

        fn put(&self, name: &str, text: &str) {
            let place = self.folder.path().join(name);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, text).unwrap();
        }

        fn quota(&self, group: &str, quota: Option<u64>, stopped_us: u64) {
            let put = |name: &str, text: &str| self.put(&format!("mount/{group}/{name}"), text);
            match self.version {
                Version::V1 => {
                    let quota = quota.map_or("-1\n".to_owned(), |us| format!("{us}\n"));
                    put("cpu.cfs_quota_us", &quota);
                    put("cpu.cfs_period_us", "50000\n");
                    put("cpu.stat", &format!("nr_throttled 1\nthrottled_time {stopped_us}000\n"));
                }
                Version::V2 => {
                    let quota = quota.map_or("max".to_owned(), |us| us.to_string());
                    put("cpu.max", &format!("{quota} 50000\n"));
                    put("cpu.stat", &format!("usage_usec 9\nthrottled_usec {stopped_us}\n"));
                }
            }
        }

        fn enter(&self, group: &str) {
            let line = match self.version {
                Version::V1 => format!("7:memory:/else\n3:cpu,cpuacct:{group}\n0::/third\n"),
                Version::V2 => format!("7:memory:/else\n0::{group}\n"),
            };
            self.put("membership", &line);
        }

        fn quotas(&self) -> Quotas {
            let mount = self.folder.path().join("mount");
            let hierarchy = Hierarchy::at(self.version, mount, &["cpu", "cpuacct"]);
            Quotas::of(Some(hierarchy), File::open(self.folder.path().join("membership")).ok())
        }
    }

    /// Moves, and quotas that come and go: what counts is known after each, and that it is not what counted before.
    #[test]
    fn a_thread_is_followed_from_group_to_group() {
        for version in [Version::V1, Version::V2] {
            let made = TestHierarchy::of(version);
            made.quota("free", None, 70);
            made.quota("a", Some(10_000), 100);
            made.quota("a/inner", Some(5_000), 1_000);
            made.quota("b", Some(10_000), 4);
            made.enter("/free");
            let mut quotas = made.quotas();
            assert_eq!((quotas.period_ns(), quotas.throttled_ns()), (None, Some(0)));
            assert!(!quotas.follow());
            let mut moved = |to: &str| {
                made.enter(to);
                let others = quotas.follow();
                assert!(!quotas.follow(), "{version:?} {to}");
                (others, quotas.period_ns(), quotas.throttled_ns())
            };
            let period = Some(50_000_000);
            assert_eq!(moved("/a/inner"), (true, period, Some(1_100_000)), "{version:?}");
            assert_eq!(moved("/a/inner"), (false, period, Some(1_100_000)));
            assert_eq!(moved("/b"), (true, period, Some(4_000)));
            assert_eq!(moved("/a"), (true, period, Some(100_000)));
            // Out of what is mounted here, and where there is no such group.
            assert_eq!(moved("/../b"), (true, None, Some(0)));
            assert_eq!(moved("/b"), (true, period, Some(4_000)));
            assert_eq!(moved("/nowhere"), (true, None, Some(0)));
            assert_eq!(moved("/free"), (false, None, Some(0)));
            made.quota("free", Some(1_000), 70);
            assert_eq!(moved("/free"), (true, period, Some(70_000)), "a quota that came");
            made.quota("", Some(1_000), 1);
            assert_eq!(moved("/free"), (true, period, Some(71_000)), "one above");
            made.quota("free", None, 70);
            assert_eq!(moved("/free"), (true, period, Some(1_000)), "one that went");
            assert_eq!(moved("/"), (true, period, Some(1_000)));
        }
    }

    #[test]
    fn both_versions_of_cpu_stat_are_read() {
        let second = "usage_usec 9\nnr_periods 4\nnr_throttled 2\nthrottled_usec 7500\n";
        assert_eq!(throttled_ns(second), Some(7_500_000));
        assert_eq!(throttled_ns("nr_throttled 12\nthrottled_time 345\n"), Some(345));
        assert_eq!(throttled_ns("usage_usec 9\n"), None);
        assert_eq!(throttled_ns("throttled_usec x\n"), None);
    }
}
