//! Control groups of both versions: where they are, making and removing them, their files and members.
//!
//! Owns: mounts, the group of a process, folders, members, the two freezers. Must not: decide which hierarchy serves
//! for what, wait, move processes unasked. Groups are folders; dropping a [`Group`] removes nothing.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The two interfaces that the kernel has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// A hierarchy for a few controllers; threads are members one by one.
    V1,
    V2,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    version: Version,
    mount: PathBuf,
    /// Which group is at the mount, as `/proc/PID/cgroup` names it.
    root: PathBuf,
    /// Version 1: its controllers, and `name=...` where it has a name.
    controllers: Vec<String>,
}

impl Hierarchy {
    /// Every hierarchy that this process sees mounted, in the order of `/proc/self/mountinfo`.
    ///
    /// # Errors
    /// No `/proc`.
    pub fn all() -> io::Result<Vec<Hierarchy>> {
        Ok(mounted(&fs::read_to_string("/proc/self/mountinfo")?))
    }

    /// The unified hierarchy, wherever it is mounted.
    ///
    /// # Errors
    /// `NotFound` if it is not mounted.
    pub fn unified() -> io::Result<Hierarchy> {
        let all = Hierarchy::all()?;
        all.into_iter().find(|one| one.version == Version::V2).ok_or_else(not_mounted)
    }

    /// The hierarchy that has `controller` (`cpu`, `freezer`, `cpuacct`...): one of version 1, or the
    /// unified one if it is among the controllers that its mounted group may use.
    ///
    /// # Errors
    /// `NotFound` if none has it.
    pub fn with(controller: &str) -> io::Result<Hierarchy> {
        let all = Hierarchy::all()?;
        all.into_iter().find(|one| one.has(controller)).ok_or_else(not_mounted)
    }

    /// A hierarchy that is at `mount`, for tests with made-up files.
    #[must_use]
    pub fn at(version: Version, mount: impl Into<PathBuf>, controllers: &[&str]) -> Hierarchy {
        let controllers = controllers.iter().map(|name| (*name).to_owned()).collect();
        Hierarchy { version, mount: mount.into(), root: PathBuf::from("/"), controllers }
    }

    /// Whether it has `controller`.
    #[must_use]
    pub fn has(&self, controller: &str) -> bool {
        match self.version {
            Version::V1 => self.controllers.iter().any(|name| name == controller),
            Version::V2 => fs::read_to_string(self.mount.join("cgroup.controllers"))
                .is_ok_and(|text| text.split_ascii_whitespace().any(|name| name == controller)),
        }
    }

    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    #[must_use]
    pub fn mount(&self) -> &Path {
        &self.mount
    }

    /// The group that is at the mount.
    #[must_use]
    pub fn top(&self) -> Group {
        Group { version: self.version, path: self.mount.clone() }
    }

    /// The group that thread or process `id` is in; 0 is the caller.
    ///
    /// # Errors
    /// `NotFound` if there is no such process, or if its group is outside what is mounted here.
    pub fn group_of(&self, id: u32) -> io::Result<Group> {
        let who = if id == 0 { "self".to_owned() } else { id.to_string() };
        let text = fs::read_to_string(Path::new("/proc").join(who).join("cgroup"))?;
        let below = self.below_mount(&text).ok_or_else(not_mounted)?;
        Ok(Group { version: self.version, path: self.mount.join(below) })
    }

    /// Where below the mount the group is that the text of `/proc/PID/cgroup` names; `None` if it is outside what is
    /// mounted here. Allocates nothing.
    #[must_use]
    pub fn below_mount<'a>(&self, text: &'a str) -> Option<&'a Path> {
        let below = Path::new(self.name_in(text)?).strip_prefix(&self.root).ok()?;
        (!below.components().any(|part| part.as_os_str() == "..")).then_some(below)
    }

    /// Which line of `/proc/PID/cgroup` is this hierarchy's.
    fn name_in<'a>(&self, text: &'a str) -> Option<&'a str> {
        text.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (number, controllers, name) = (parts.next()?, parts.next()?, parts.next()?);
            let its_own = match self.version {
                Version::V2 => number == "0" && controllers.is_empty(),
                Version::V1 => {
                    !controllers.is_empty() && controllers.split(',').any(|name| self.has(name))
                }
            };
            its_own.then_some(name)
        })
    }
}

fn not_mounted() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "no such control group hierarchy is mounted")
}

/// The hierarchies by the lines of `/proc/self/mountinfo`.
fn mounted(text: &str) -> Vec<Hierarchy> {
    /// `ro` and `rw` stand among the controllers.
    const NO_CONTROLLER: [&str; 6] =
        ["ro", "rw", "xattr", "clone_children", "noprefix", "release_agent"];
    let one = |line: &str| {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(3);
        let (root, mount) = (plain(fields.next()?), plain(fields.next()?));
        let mut fields = after.split(' ');
        let version = match fields.next()? {
            "cgroup" => Version::V1,
            "cgroup2" => Version::V2,
            _ => return None,
        };
        let words = fields.nth(1).unwrap_or_default().split(',');
        let controllers = match version {
            Version::V1 => words
                .filter(|word| !NO_CONTROLLER.contains(word) && !word.starts_with("release_agent="))
                .map(str::to_owned)
                .collect(),
            Version::V2 => Vec::new(),
        };
        Some(Hierarchy { version, mount, root, controllers })
    };
    text.lines().filter_map(one).collect()
}

/// A name without the octal escapes of mountinfo (`\040` is a blank).
fn plain(escaped: &str) -> PathBuf {
    let mut name = String::with_capacity(escaped.len());
    let mut parts = escaped.split('\\');
    name.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let digits = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match digits.filter(u8::is_ascii) {
            Some(byte) => {
                name.push(char::from(byte));
                name.push_str(&part[3..]);
            }
            None => {
                name.push('\\');
                name.push_str(part);
            }
        }
    }
    PathBuf::from(name)
}

/// A group: a folder of a hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    version: Version,
    path: PathBuf,
}

impl Group {
    /// The group whose folder is `path`.
    #[must_use]
    pub fn at(version: Version, path: impl Into<PathBuf>) -> Group {
        Group { version, path: path.into() }
    }

    /// The version of its hierarchy.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The group that it is in; the group at the mount has one by name, which is no group.
    #[must_use]
    pub fn parent(&self) -> Option<Group> {
        let path = self.path.parent()?;
        Some(Group { version: self.version, path: path.to_owned() })
    }

    /// Makes a group `name` in this one.
    ///
    /// # Errors
    /// `PermissionDenied`, `ReadOnlyFilesystem` (containers), `AlreadyExists`.
    pub fn make(&self, name: &str) -> io::Result<Group> {
        let path = self.path.join(name);
        fs::create_dir(&path)?;
        Ok(Group { version: self.version, path })
    }

    /// Removes the group.
    ///
    /// # Errors
    /// `ResourceBusy` while it has members, in version 1 also ended ones whose parent has not waited for them.
    pub fn remove(&self) -> io::Result<()> {
        fs::remove_dir(&self.path)
    }

    /// The groups in this one.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn groups(&self) -> io::Result<Vec<Group>> {
        let mut groups = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                groups.push(Group { version: self.version, path: entry.path() });
            }
        }
        Ok(groups)
    }

    /// Whether the group has a file of that name.
    #[must_use]
    pub fn has(&self, file: &str) -> bool {
        self.path.join(file).exists()
    }

    /// Reads one of its files.
    ///
    /// # Errors
    /// `NotFound` without the controller.
    pub fn read(&self, file: &str) -> io::Result<String> {
        fs::read_to_string(self.path.join(file))
    }

    /// Writes `value` to one of its files, in one system call.
    ///
    /// # Errors
    /// What the kernel answers: `NotFound`, `PermissionDenied`, `InvalidInput` for a value that it
    /// does not take.
    pub fn write(&self, file: &str, value: &str) -> io::Result<()> {
        self.open(file)?.write_all(value.as_bytes())
    }

    /// Opens one of its files to be written to, often and without the time to open it. Each value
    /// is one `write` at any place.
    ///
    /// # Errors
    /// As [`Group::write`].
    pub fn open(&self, file: &str) -> io::Result<File> {
        OpenOptions::new().write(true).open(self.path.join(file))
    }

    /// A number that stands alone in one of its files.
    ///
    /// # Errors
    /// As [`Group::read`]; `InvalidData` if it is no number.
    pub fn number(&self, file: &str) -> io::Result<i64> {
        let text = self.read(file)?;
        text.trim().parse().map_err(|_| io::Error::new(io::ErrorKind::InvalidData, text))
    }

    /// The number behind `key` in a file of lines `key number`, such as `cpu.stat`; `None` if the
    /// file has no such line.
    ///
    /// # Errors
    /// As [`Group::read`].
    pub fn keyed(&self, file: &str, key: &str) -> io::Result<Option<u64>> {
        Ok(keyed(&self.read(file)?, key))
    }

    /// The processes in it, not those of groups in it.
    ///
    /// # Errors
    /// As [`Group::read`]; `Unsupported` (EOPNOTSUPP) for a threaded group.
    pub fn processes(&self) -> io::Result<Vec<u32>> {
        numbers(&self.path.join("cgroup.procs"))
    }

    /// The threads in it, not those of groups in it.
    ///
    /// # Errors
    /// As [`Group::read`].
    pub fn threads(&self) -> io::Result<Vec<u32>> {
        numbers(&self.path.join(self.threads_file()))
    }

    fn threads_file(&self) -> &'static str {
        match self.version {
            Version::V1 => "tasks",
            Version::V2 => "cgroup.threads",
        }
    }

    /// Moves a process with all its threads into the group; 0 is the caller.
    ///
    /// # Errors
    /// `PermissionDenied`; ESRCH if it has ended; EBUSY for a group whose children have
    /// controllers (version 2).
    pub fn take_process(&self, pid: u32) -> io::Result<()> {
        self.write("cgroup.procs", &pid.to_string())
    }

    /// Moves one thread into the group; 0 is the caller. In version 2 only between groups of one
    /// threaded domain.
    ///
    /// # Errors
    /// As [`Group::take_process`]; `Unsupported` (EOPNOTSUPP) outside the threaded domain.
    pub fn take_thread(&self, tid: u32) -> io::Result<()> {
        self.write(self.threads_file(), &tid.to_string())
    }

    /// The file that freezes the group, and what is written to it to freeze and to thaw. Version
    /// 1 has it in the freezer's hierarchy only.
    #[must_use]
    pub fn freezer(&self) -> (&'static str, &'static str, &'static str) {
        match self.version {
            Version::V1 => ("freezer.state", "FROZEN", "THAWED"),
            Version::V2 => ("cgroup.freeze", "1", "0"),
        }
    }

    /// Orders all members to stand, those of groups in it too. They do so a little later.
    ///
    /// # Errors
    /// As [`Group::write`].
    pub fn freeze(&self) -> io::Result<()> {
        let (file, freeze, _) = self.freezer();
        self.write(file, freeze)
    }

    /// Lets the members go on.
    ///
    /// # Errors
    /// As [`Group::write`].
    pub fn thaw(&self) -> io::Result<()> {
        let (file, _, thaw) = self.freezer();
        self.write(file, thaw)
    }

    /// Whether every member stands.
    ///
    /// # Errors
    /// As [`Group::read`].
    pub fn frozen(&self) -> io::Result<bool> {
        match self.version {
            Version::V1 => Ok(self.read("freezer.state")?.trim() == "FROZEN"),
            Version::V2 => Ok(self.keyed("cgroup.events", "frozen")? == Some(1)),
        }
    }
}

/// The number behind `key` in lines `key number`.
fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        (name == key).then(|| value.trim().parse().ok())?
    })
}

fn numbers(path: &Path) -> io::Result<Vec<u32>> {
    let mut text = String::new();
    File::open(path)?.read_to_string(&mut text)?;
    Ok(text.split_ascii_whitespace().filter_map(|number| number.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hourglass_skip::{Requirement, skip};

    const HYBRID: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd
41 31 0:38 /box /mnt/my\\040groups rw,relatime - cgroup2 cgroup2 rw,nsdelegate
";

    #[test]
    fn mounts_of_both_versions_are_distinguished() {
        let all = mounted(HYBRID);
        assert_eq!(all.len(), 3);
        assert_eq!(all[0].controllers, ["cpu", "cpuacct"]);
        assert_eq!(all[1].controllers, ["name=systemd"]);
        assert_eq!(all[2].version, Version::V2);
        assert_eq!(all[2].mount, Path::new("/mnt/my groups"));
        assert_eq!(all[2].root, Path::new("/box"));
    }

    /// cgroups(7): `hierarchy-ID:controller-list:cgroup-path`, a path that may have colons.
    #[test]
    fn a_process_is_found_in_each_hierarchy() {
        let text = "5:cpu,cpuacct:/a:b\n1:name=systemd:/session\n0::/box/inner\n";
        let names: Vec<_> = mounted(HYBRID).iter().map(|one| one.name_in(text)).collect();
        assert_eq!(names, [Some("/a:b"), Some("/session"), Some("/box/inner")]);
    }

    #[test]
    fn statistics_are_read_by_their_key() {
        let text = "usage_usec 17\nnr_throttled 3\nthrottled_usec 4500\n";
        assert_eq!(keyed(text, "throttled_usec"), Some(4500));
        assert_eq!(keyed(text, "throttled"), None);
    }

    #[test]
    fn each_version_has_its_files() {
        let folder = std::env::temp_dir().join(format!("hourglass-cgroup-{}", std::process::id()));
        let top = Hierarchy::at(Version::V1, &folder, &["freezer"]).top();
        fs::create_dir_all(top.path()).unwrap();
        let group = top.make("one").unwrap();
        fs::write(group.path().join("tasks"), "7\n9\n").unwrap();
        fs::write(group.path().join("freezer.state"), "THAWED\n").unwrap();
        assert_eq!(group.threads().unwrap(), [7, 9]);
        assert!(!group.frozen().unwrap());
        group.freeze().unwrap();
        assert!(group.frozen().unwrap());
        assert_eq!(top.groups().unwrap(), std::slice::from_ref(&group));
        assert_eq!(group.parent(), Some(top));
        fs::remove_dir_all(folder).unwrap();
    }

    /// Where groups may be made: a child of this test freezes, thaws, and is counted in `cpu.stat`.
    #[test]
    fn a_real_group_freezes_its_member() {
        let made = Hierarchy::unified()
            .and_then(|unified| unified.group_of(0))
            .and_then(|own| own.make(&format!("hourglass-test-{}", std::process::id())));
        let group = match made {
            Ok(group) => group,
            Err(error) => {
                let why = format_args!("no control group can be made ({error})");
                return skip(Requirement::CONTROL_GROUP, why);
            }
        };
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let taken = group.take_process(child.id());
        let frozen = taken.and_then(|()| {
            group.freeze()?;
            let begun = std::time::Instant::now();
            while !group.frozen()? && begun.elapsed().as_secs() < 5 {
                std::thread::yield_now();
            }
            let frozen = group.frozen()?;
            group.thaw()?;
            Ok((frozen, group.processes()?, group.keyed("cpu.stat", "usage_usec")?))
        });
        child.kill().unwrap();
        child.wait().unwrap();
        let removed = group.remove();
        let (frozen, members, usage) = frozen.unwrap();
        assert!(frozen && usage.is_some());
        assert_eq!(members, [child.id()]);
        removed.unwrap();
    }
}
