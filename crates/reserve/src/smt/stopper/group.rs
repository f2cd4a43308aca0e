//! Stopping by freezing control groups, of either version.
//!
//! A group that is named is frozen as it is. Processes go to a new group inside the one they are in, so
//! that its limits go on to hold for them, and back when this is dropped. What they fork is in the
//! new group too.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::backend::target_group::{self, TargetGroup};
use crate::guardian::{Guardian, UndoAction, UndoGuard};
use crate::ownership::{NotOwned, has_ended};
use hourglass_sys::cgroup::{Group, Hierarchy, Version};

use super::{CoRunners, Stopper, StopperKind, StopperRequest, Unavailable};

/// How often the order is repeated in version 1: a group can stay on the way to being frozen if a member forks at the
/// wrong moment, until the next write.
const AGAIN: u32 = 64;

/// The state of version 1 when all are frozen.
const FROZEN: &[u8] = b"FROZEN";

#[derive(Debug)]
pub(super) struct Freezer {
    kind: StopperKind,
    switches: Vec<Switch>,
    stopped: bool,
    /// These put everything back, after the files.
    made: Vec<TargetGroup>,
    kept: Vec<UndoGuard>,
}

#[derive(Debug)]
struct Switch {
    file: File,
    freeze: &'static [u8],
    thaw: &'static [u8],
    /// Version 1: where it says how far it is.
    state: Option<File>,
    /// Version 2: where it says whether all stand.
    events: Option<File>,
}

/// Whether the hierarchy is there, and groups in it may be frozen or made.
pub(super) fn check(
    kind: StopperKind,
    wanted: &StopperRequest,
    keepers: &[u32],
) -> Result<(), Unavailable> {
    let hierarchy = hierarchy(kind)?;
    if let CoRunners::Group(path) = &wanted.co_runners {
        let group = Group::at(hierarchy.version(), path.clone());
        may_stand(kind, &hierarchy, &group, wanted, keepers)?;
        let (file, ..) = group.freezer();
        return group.open(file).map(drop).map_err(|error| refused(kind, group.path(), &error));
    }
    let (set, spared) = super::set_of(kind, wanted, keepers)?;
    let now = set.processes(&spared).map_err(|e| refused(kind, hierarchy.mount(), &e))?;
    let mut homes = now.into_iter().filter_map(|pid| hierarchy.group_of(pid).ok());
    // A process that may move others there may also make a group there, if the system is set up correctly.
    let may = |home: Group| {
        home.open("cgroup.procs").map(drop).map_err(|error| refused(kind, home.path(), &error))
    };
    homes.try_for_each(may)
}

/// Whether a group of another program may be frozen. It must hold neither this process nor the work that it is to
/// serve.
fn may_stand(
    kind: StopperKind,
    hierarchy: &Hierarchy,
    group: &Group,
    wanted: &StopperRequest,
    keepers: &[u32],
) -> Result<(), Unavailable> {
    let name = group.path().display().to_string();
    let (file, _, _) = group.freezer();
    if !group.has(file) {
        let cause = format!("{name} has no {file}");
        let remedy = "name a group of that hierarchy which is not its root";
        return Err(Unavailable::new(kind, cause, remedy));
    }
    for pid in super::never(wanted, keepers) {
        if hierarchy.group_of(pid).is_ok_and(|its| its.path().starts_with(group.path())) {
            let cause = format!("process {pid} is in {name} and must not be stopped");
            return Err(Unavailable::new(kind, cause, "name a group without it"));
        }
    }
    if group.frozen().unwrap_or(false) {
        let cause = format!("another program has frozen {name}");
        return Err(Unavailable::new(kind, cause, format!("thaw it, or leave {name} out")));
    }
    Ok(())
}

pub(super) fn open(
    kind: StopperKind,
    wanted: &StopperRequest,
    guardian: &Guardian,
) -> Result<Freezer, Unavailable> {
    let hierarchy = hierarchy(kind)?;
    let mut freezer =
        Freezer { kind, switches: Vec::new(), stopped: false, made: Vec::new(), kept: Vec::new() };
    if kind == StopperKind::Cgroup1Freezer {
        // Without it everything works as well, only later.
        let _ = freezer.hold(&hierarchy, guardian);
    }
    match &wanted.co_runners {
        CoRunners::Group(path) => {
            let group = Group::at(hierarchy.version(), path.clone());
            let taken = freezer.keep_thawing(&group, guardian).and_then(|()| freezer.add(&group));
            taken.map_err(|error| refused(kind, group.path(), &error))?;
        }
        CoRunners::Processes(_) | CoRunners::Everyone => {
            freezer.take_processes(&hierarchy, wanted, guardian)?;
        }
    }
    Ok(freezer)
}

fn hierarchy(kind: StopperKind) -> Result<Hierarchy, Unavailable> {
    let (found, remedy) = match kind {
        StopperKind::Cgroup1Freezer => (
            Hierarchy::with("freezer"),
            "mount it: mkdir -p /sys/fs/cgroup/freezer && mount -t cgroup -o freezer none /sys/fs/cgroup/freezer",
        ),
        _ => (
            Hierarchy::unified(),
            "mount it: mkdir -p /sys/fs/cgroup/unified && mount -t cgroup2 none /sys/fs/cgroup/unified",
        ),
    };
    let wanted = if kind == StopperKind::Cgroup1Freezer { Version::V1 } else { Version::V2 };
    match found {
        Ok(hierarchy) if hierarchy.version() == wanted => Ok(hierarchy),
        _ => Err(Unavailable::new(kind, "its hierarchy of control groups is not mounted", remedy)),
    }
}

impl Freezer {
    fn take_processes(
        &mut self,
        hierarchy: &Hierarchy,
        wanted: &StopperRequest,
        guardian: &Guardian,
    ) -> Result<(), Unavailable> {
        let (set, spared) = super::set_of(self.kind, wanted, &guardian.pids())?;
        let mut made: BTreeMap<PathBuf, Group> = BTreeMap::new();
        // Again, for what was forked while its parent was being moved.
        for _ in 0..2 {
            let now =
                set.processes(&spared).map_err(|e| refused(self.kind, hierarchy.mount(), &e))?;
            for pid in now {
                let Ok(home) = hierarchy.group_of(pid) else { continue };
                if NotOwned::find(pid).is_some() {
                    continue;
                }
                if made.values().any(|group| group == &home) {
                    continue;
                }
                let group = match made.get(home.path()) {
                    Some(group) => group.clone(),
                    None => {
                        let group = self.make(&home, guardian);
                        let group = group.map_err(|e| refused(self.kind, home.path(), &e))?;
                        made.insert(home.path().to_owned(), group.clone());
                        group
                    }
                };
                match group.take_process(pid) {
                    Err(error) if has_ended(&error) => {}
                    done => done.map_err(|error| refused(self.kind, group.path(), &error))?,
                }
            }
        }
        Ok(())
    }

    /// Keeps a group without members frozen. While none of version 1 is, the kernel skips its checks by
    /// code that it patches on all CPUs when the first one freezes, which takes some 80 us.
    fn hold(&mut self, hierarchy: &Hierarchy, guardian: &Guardian) -> io::Result<()> {
        let home = hierarchy.group_of(0)?;
        let name = target_group::name();
        let removal = guardian.keep(&UndoAction::Remove(home.path().join(&name)))?;
        home.make(&name)?.freeze()?;
        self.kept.push(removal);
        Ok(())
    }

    /// Makes a group in the group `home`.
    fn make(&mut self, home: &Group, guardian: &Guardian) -> io::Result<Group> {
        let made = target_group::make(guardian, home, home, false)?;
        let group = made.group.clone();
        self.add(&group)?;
        self.made.push(made);
        Ok(group)
    }

    fn keep_thawing(&mut self, group: &Group, guardian: &Guardian) -> io::Result<()> {
        let (file, _, thaw) = group.freezer();
        let undo = UndoAction::Write { path: group.path().join(file), text: thaw.to_owned() };
        self.kept.push(guardian.keep(&undo)?);
        Ok(())
    }

    fn add(&mut self, group: &Group) -> io::Result<()> {
        let (name, freeze, thaw) = group.freezer();
        let file = group.open(name)?;
        let (state, events) = match group.version() {
            Version::V1 => (Some(File::open(group.path().join(name))?), None),
            Version::V2 => (None, File::open(group.path().join("cgroup.events")).ok()),
        };
        let (freeze, thaw) = (freeze.as_bytes(), thaw.as_bytes());
        self.switches.push(Switch { file, freeze, thaw, state, events });
        Ok(())
    }
}

/// ENODEV or ENOENT: the group was removed, which only an empty one can be.
fn is_gone(error: &io::Error) -> bool {
    const ENODEV: i32 = 19;
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(ENODEV)
}

fn refused(kind: StopperKind, path: &Path, error: &io::Error) -> Unavailable {
    let cause = format!("{}: {error}", path.display());
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "run as root, or have the group delegated to this user"
        }
        _ => "use another stopper",
    };
    Unavailable::new(kind, cause, remedy)
}

impl Switch {
    fn freeze(&self) -> io::Result<()> {
        self.file.write_all_at(self.freeze, 0)?;
        let Some(state) = &self.state else { return Ok(()) };
        let mut answer = [0; 16];
        for _ in 0..AGAIN {
            let length = state.read_at(&mut answer, 0)?;
            if answer[..length].starts_with(FROZEN) {
                break;
            }
            self.file.write_all_at(self.freeze, 0)?;
        }
        Ok(())
    }
}

impl Switch {
    /// Whether all members of the group are stopped; a removed group has no members.
    fn is_frozen(&self) -> io::Result<bool> {
        let (file, wanted) = match (&self.state, &self.events) {
            (Some(state), _) => (state, FROZEN),
            (None, Some(events)) => (events, &b"frozen 1"[..]),
            (None, None) => return Ok(true),
        };
        let mut answer = [0; 64];
        match file.read_at(&mut answer, 0) {
            Err(error) if is_gone(&error) => Ok(true),
            length => Ok(answer[..length?].windows(wanted.len()).any(|part| part == wanted)),
        }
    }
}

impl Stopper for Freezer {
    fn name(&self) -> &'static str {
        self.kind.name()
    }

    fn is_frozen(&mut self) -> io::Result<bool> {
        self.switches.iter().try_fold(true, |all, switch| Ok(all && switch.is_frozen()?))
    }

    fn stop(&mut self) -> io::Result<()> {
        self.stopped = true;
        for_each(&self.switches, Switch::freeze)
    }

    fn resume(&mut self) -> io::Result<()> {
        let Freezer { switches, stopped, .. } = self;
        super::resume_if(stopped, || {
            for_each(switches, |switch| switch.file.write_all_at(switch.thaw, 0))
        })
    }
}

/// Acts on all of them, despite errors; returns the first error.
fn for_each(switches: &[Switch], act: impl Fn(&Switch) -> io::Result<()>) -> io::Result<()> {
    let mut done = Ok(());
    for switch in switches {
        match act(switch) {
            Err(error) if !is_gone(&error) && done.is_ok() => done = Err(error),
            _ => {}
        }
    }
    done
}

impl Drop for Freezer {
    fn drop(&mut self) {
        // The guardian carries out the undo action when `kept` is dropped, and that thaws too.
        let _ = self.resume();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The bug: no process counted as stopped any more after a thaw that the kernel refused, and the next order to
    /// resume did nothing.
    #[test]
    fn a_thaw_that_is_refused_is_tried_again() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("freeze");
        fs::write(&path, "1").unwrap();
        let switch =
            |file: File| Switch { file, freeze: b"1", thaw: b"0", state: None, events: None };
        // Writing to it is refused (EBADF).
        let switches = vec![switch(File::open(&path).unwrap())];
        let kind = StopperKind::Cgroup2Freeze;
        let mut freezer =
            Freezer { kind, switches, stopped: true, made: Vec::new(), kept: Vec::new() };
        assert!(freezer.resume().is_err());
        assert!(freezer.resume().is_err(), "still to be resumed");
        freezer.switches = vec![switch(fs::OpenOptions::new().write(true).open(&path).unwrap())];
        let answer = freezer.resume();
        let text = fs::read_to_string(&path).unwrap();
        // Once it is done it is not done again.
        fs::write(&path, "1").unwrap();
        let again = freezer.resume();
        let after = fs::read_to_string(&path).unwrap();
        assert_eq!(
            (answer.is_ok(), text.as_str(), again.is_ok(), after.as_str()),
            (true, "0", true, "1")
        );
    }
}
