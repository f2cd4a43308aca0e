//! Where reservations of this kind are written down, so that the next one knows of them.
//!
//! Each is a file of `/run/hourglass/claims`, a folder that root owns and that root and one group may write to, as the
//! folder of the first process sees it where that may be looked into. Network namespaces share it, and so does each
//! mount namespace that has the machine's `/run`. The maker of an entry holds a lock on its file (`fcntl(2)`): the
//! kernel ends that with the process, however it ends, and reports the holder to others, by the number in their own PID
//! namespace. The owner of the file is its maker, whatever is written in it.
//!
//! Owns: making, finding and removing entries; which entries are trusted; the warning where others cannot see an entry.
//! Must not: judge whether they fit together.
//!
//! Closing any descriptor of a file lets its lock go. So a process never opens its own entries a second time, and all
//! that is done here is done by one thread at a time.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::mem::forget;
use std::os::unix::fs::{
    DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown,
};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hourglass_sys::lock;
use hourglass_sys::{credentials, strange_file};

use super::claims::ReservationClaim;
use super::gap::Gap;
use super::unseen;
pub(crate) use super::written::StaleClaim;
use super::written::{command_of, course, held, stale, text};
use crate::backend::AccuracyWarning;
use crate::guardian::{Guardian, UndoAction, UndoGuard};

const FOLDER: &str = "run/hourglass/claims";
/// The group that may write to it, if there is one.
const GROUP: &str = "hourglass";
const FIRST_MODE: u32 = 0o755;
/// Root and the group write; entries of other makers cannot be removed.
const SHARED_MODE: u32 = 0o1775;

const PREFIX: &str = "claim-";
const TRIES: u32 = 1_000;

/// The entries of this process, with the process, since a child made by `fork(2)` has a copy of this list and none of
/// the locks.
#[derive(Debug, Default)]
struct OwnEntries {
    made: u32,
    entries: Vec<OwnEntry>,
}

#[derive(Debug)]
struct OwnEntry {
    process: u32,
    number: u32,
    share: ReservationClaim,
    name: Option<OsString>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    Process {
        /// Its number; `None` if this PID namespace does not show it.
        pid: Option<u32>,
        /// Its command line, shortened, without control characters; empty if it is not shown.
        command: String,
        /// The user that owns the entry.
        uid: u32,
    },
    /// A thread of the deadline class, with its name.
    Thread(u32, String),
    /// Nobody yet: it is asked for with others, for this target.
    Planned(String),
}

impl Holder {
    pub(super) fn this_process() -> Holder {
        let pid = process::id();
        Holder::Process { pid: Some(pid), command: command_of(pid), uid: credentials::real() }
    }

    pub(super) fn process(pid: u32) -> Holder {
        let uid = fs::metadata(format!("/proc/{pid}")).map_or(0, |metadata| metadata.uid());
        Holder::Process { pid: Some(pid), command: command_of(pid), uid }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Holder::Process { pid: Some(pid), command, uid } => {
                write!(f, "process {pid} ({command}) of user {uid}")
            }
            Holder::Process { pid: None, uid, .. } => {
                write!(f, "a process of user {uid} in another PID namespace")
            }
            Holder::Thread(tid, name) => write!(f, "thread {tid} ({name}) of the deadline class"),
            Holder::Planned(target) => write!(f, "the reservation for {target}"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RegisteredReservation {
    pub(crate) share: ReservationClaim,
    pub(crate) holder: Holder,
    /// Complete periods, and how many were missed; `None` where that is not written down.
    pub(crate) course: Option<(u64, u64)>,
}

#[derive(Clone, Debug)]
pub(super) struct Registry {
    folder: PathBuf,
    owner: u32,
    /// Why others of the machine may have another one.
    apart: Option<Gap>,
    /// Whether it looks for keepers that have no entry there; tests have a registry that other keepers do not know.
    looks: bool,
    own: Arc<Mutex<OwnEntries>>,
}

/// An entry of this process; it goes when this is dropped, and ends to count when the process ends.
#[derive(Debug)]
pub(super) struct RegistryEntry {
    registry: Registry,
    number: u32,
    process: u32,
    share: ReservationClaim,
    file: Option<(File, PathBuf)>,
    /// Removes the file where this process is killed.
    kept: Option<UndoGuard>,
    guardian: Option<Guardian>,
    course: Option<(u64, u64)>,
    gap: Option<Gap>,
}

impl Registry {
    /// The registry of the machine: as the first process sees it, or as this one does.
    pub(super) fn of_the_machine() -> Registry {
        static MACHINE: OnceLock<Registry> = OnceLock::new();
        MACHINE.get_or_init(Registry::find).clone()
    }

    fn find() -> Registry {
        let roots = [Path::new("/proc/1/root"), Path::new("/")];
        let seen = roots.into_iter().find(|root| fs::metadata(root.join("run")).is_ok());
        let root = seen.unwrap_or(roots[1]);
        let folder = root.join(FOLDER);
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let shared = Path::new("/").join(FOLDER);
        let shared = shared.ancestors().take(2).any(|place| is_mounted(&mounts, place));
        let apart = match unseen::elsewhere(root, FOLDER) {
            _ if !is_first_namespace() && !shared => Some(Gap::Container(folder.clone())),
            Some(pid) if !shared => Some(Gap::Private(folder.clone(), pid)),
            _ => None,
        };
        Registry { folder, owner: 0, apart, looks: true, own: Arc::default() }
    }

    /// Writes down a reservation; `guardian` removes the entry where this process is killed. That others do not see it is no
    /// failure; [`RegistryEntry::doubt`] tells.
    pub(super) fn enter(
        &self,
        guardian: Option<&Guardian>,
        share: &ReservationClaim,
    ) -> RegistryEntry {
        let around = self.around();
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.made = own.made.wrapping_add(1);
        let (process, number) = (process::id(), own.made);
        let made = self
            .prepare()
            .and_then(|()| self.make(guardian, share).map_err(|error| self.closed(&error)));
        let (file, kept, gap) = match made {
            Ok((file, path, kept)) => (Some((file, path)), kept, around),
            Err(gap) => (None, None, Some(gap)),
        };
        let name = file.as_ref().and_then(|(_, path)| path.file_name().map(ToOwned::to_owned));
        own.entries.push(OwnEntry { process, number, share: share.clone(), name });
        RegistryEntry {
            registry: self.clone(),
            number,
            process,
            share: share.clone(),
            file,
            kept,
            guardian: guardian.cloned(),
            course: None,
            gap,
        }
    }

    /// The folder itself, which can be locked as a whole.
    pub(super) fn open(&self) -> io::Result<File> {
        File::open(&self.folder)
    }

    /// Why there may be more than [`Registry::all`].
    pub(super) fn gap(&self) -> Option<Gap> {
        self.trusted().err().or_else(|| self.around())
    }

    pub(super) fn all(&self) -> Vec<RegisteredReservation> {
        self.but(&[])
    }

    /// Obstacles to being visible to all, for a reservation that is not made yet.
    pub(super) fn doubt(&self) -> Option<AccuracyWarning> {
        let may = self.trusted().and_then(|_| {
            // A process that may write to the nearest existing folder makes the others.
            let there = self.folder.ancestors().find(|folder| folder.exists());
            strange_file::may_write_in(there.unwrap_or(&self.folder))
                .map_err(|error| self.closed(&error))
        });
        may.err().or_else(|| self.around()).map(AccuracyWarning::from)
    }

    fn around(&self) -> Option<Gap> {
        let unclaimed = || unseen::keeper_but(|| self.holders()).map(Gap::Unclaimed);
        self.apart.clone().or_else(|| self.looks.then(unclaimed).flatten())
    }

    fn closed(&self, error: &io::Error) -> Gap {
        Gap::Closed(self.folder.clone(), error.to_string())
    }

    fn holders(&self) -> Vec<u32> {
        let pid = |held: RegisteredReservation| match held.holder {
            Holder::Process { pid, .. } => pid,
            Holder::Thread(..) | Holder::Planned(_) => None,
        };
        self.all().into_iter().filter_map(pid).collect()
    }

    /// Whether the folder is there; who may write to it must be right then.
    fn trusted(&self) -> Result<bool, Gap> {
        let metadata = match fs::symlink_metadata(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(self.closed(&error)),
            Ok(metadata) => metadata,
        };
        let (uid, mode) = (metadata.uid(), metadata.mode() & 0o7777);
        let why = if !metadata.is_dir() {
            "it is no folder".to_owned()
        } else if uid != self.owner {
            format!("it belongs to user {uid}")
        } else if mode & 0o002 != 0 {
            format!("all users may write to it (mode {mode:o})")
        } else {
            return Ok(true);
        };
        Err(Gap::Untrusted(self.folder.clone(), why))
    }

    fn prepare(&self) -> Result<(), Gap> {
        if !self.trusted()? {
            self.make_folder()?;
        }
        self.open_outer();
        self.give_to_group();
        self.trusted().map(drop)
    }

    /// Lets all users read the folder around that of the entries, whatever its maker and mask (umask(2)): a user who
    /// cannot read it sees no reservations. Root does this, and with root's folder alone.
    fn open_outer(&self) {
        const LOOK: u32 = 0o055;
        let Some(outer) = self.folder.parent().filter(|_| credentials::real() == 0) else { return };
        let Ok(found) = fs::symlink_metadata(outer) else { return };
        if found.is_dir() && found.uid() == 0 && found.mode() & LOOK != LOOK {
            let mode = found.mode() & 0o7777 | LOOK;
            // Where this is refused (a file system that is only read), it stays as it was.
            let _ = fs::set_permissions(outer, Permissions::from_mode(mode));
        }
    }

    fn make_folder(&self) -> Result<(), Gap> {
        let outer = self.folder.parent().unwrap_or(&self.folder);
        let made = fs::create_dir_all(outer.parent().unwrap_or(outer))
            .and_then(|()| made_for_all_to_read(outer))
            .and_then(|()| made_for_all_to_read(&self.folder));
        made.map_err(|error| self.closed(&error))
    }

    /// Lets the group write to a folder that still has the mode of its creation by root. Without the group only root
    /// writes to it.
    fn give_to_group(&self) {
        let as_made = |metadata: fs::Metadata| {
            (metadata.uid(), metadata.gid(), metadata.mode() & 0o7777) == (0, 0, FIRST_MODE)
        };
        if credentials::real() != 0 || !fs::symlink_metadata(&self.folder).is_ok_and(as_made) {
            return;
        }
        let groups = fs::read_to_string("/etc/group").unwrap_or_default();
        if let Some(group) = group_of(&groups, GROUP)
            && chown(&self.folder, None, Some(group)).is_ok()
        {
            let _ = fs::set_permissions(&self.folder, Permissions::from_mode(SHARED_MODE));
        }
    }

    /// Makes an entry, and locks it before another process can open it.
    fn make(
        &self,
        guardian: Option<&Guardian>,
        share: &ReservationClaim,
    ) -> io::Result<(File, PathBuf, Option<UndoGuard>)> {
        let pid = process::id();
        for number in 0..TRIES {
            let path = self.folder.join(format!("{PREFIX}{pid}-{number}"));
            let undo = UndoAction::RemoveUnheld(path.clone());
            // Where it is not taken, the next who looks removes the entry.
            let kept = guardian.and_then(|guardian| guardian.keep(&undo).ok());
            let new =
                OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path);
            let mut file = match new {
                Err(error) => {
                    kept.into_iter().for_each(UndoGuard::forget);
                    if error.kind() == io::ErrorKind::AlreadyExists {
                        continue;
                    }
                    return Err(error);
                }
                Ok(file) => file,
            };
            let written = lock::try_for_process(&file).and_then(|locked| {
                // Another process may have removed it as stale.
                if !locked || file.metadata()?.nlink() == 0 {
                    return Ok(false);
                }
                file.set_permissions(Permissions::from_mode(0o644))?;
                file.write_all(text(share, pid)?.as_bytes()).map(|()| true)
            });
            return match written {
                Ok(true) => Ok((file, path, kept)),
                // What is there is removed with `kept`.
                Ok(false) => continue,
                Err(error) => {
                    let _ = fs::remove_file(&path);
                    Err(error)
                }
            };
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// All but some of this process.
    fn but(&self, numbers: &[u32]) -> Vec<RegisteredReservation> {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let holder = Holder::this_process();
        let here = own.of_this_process().filter(|entry| !numbers.contains(&entry.number));
        let here = here.map(|entry| RegisteredReservation {
            share: entry.share.clone(),
            holder: holder.clone(),
            course: None,
        });
        let mut found: Vec<RegisteredReservation> = here.collect();
        found.extend(self.others(&own).iter().filter_map(|path| held(path)));
        found
    }

    pub(super) fn remove_stale(&self) -> Vec<StaleClaim> {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        self.others(&own).iter().filter_map(|path| stale(path)).collect()
    }

    /// Entries of other processes, if the folder is to be trusted.
    fn others(&self, own: &OwnEntries) -> Vec<PathBuf> {
        if self.trusted() != Ok(true) {
            return Vec::new();
        }
        let known: HashSet<&OsString> =
            own.of_this_process().filter_map(|entry| entry.name.as_ref()).collect();
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name());
        let names = names.filter(|name| name.as_encoded_bytes().starts_with(PREFIX.as_bytes()));
        names.filter(|name| !known.contains(name)).map(|name| self.folder.join(name)).collect()
    }
}

impl OwnEntries {
    fn of_this_process(&self) -> impl Iterator<Item = &OwnEntry> {
        let pid = process::id();
        self.entries.iter().filter(move |entry| entry.process == pid)
    }
}

impl RegistryEntry {
    pub(super) fn share(&self) -> &ReservationClaim {
        &self.share
    }

    /// How many periods were missed when that was last written down.
    pub(super) fn missed(&self) -> u64 {
        self.course.map_or(0, |(_, missed)| missed)
    }

    /// Writes down how many periods there were, and how many were missed.
    pub(super) fn tell(&mut self, periods: u64, missed: u64) {
        let Some((file, _)) = self.file.as_ref().filter(|_| self.course != Some((periods, missed)))
        else {
            return;
        };
        if let Ok(text) = text(&self.share, self.process) {
            // Behind the rest, which never changes; where it fails the course is not known to others.
            let _ = file.write_all_at(course(periods, missed).as_bytes(), text.len() as u64);
            self.course = Some((periods, missed));
        }
    }

    pub(super) fn unclaimed(&self) -> Option<u32> {
        unseen::keeper_but(|| self.registry.holders())
    }

    pub(super) fn others(&self) -> Vec<RegisteredReservation> {
        self.registry.but(&[self.number])
    }

    /// A further entry, with another share, and what is reserved beside both. Until one of the two is dropped, others see
    /// both: neither is rewritten while it is read.
    pub(super) fn enter_instead(
        &self,
        share: &ReservationClaim,
    ) -> (RegistryEntry, Vec<RegisteredReservation>) {
        let entry = self.registry.enter(self.guardian.as_ref(), share);
        let others = self.registry.but(&[self.number, entry.number]);
        (entry, others)
    }

    pub(super) fn doubt(&self) -> Option<AccuracyWarning> {
        // Another reservation may have started meanwhile.
        let gap = self.gap.clone().or_else(|| self.registry.around());
        gap.map(AccuracyWarning::from)
    }
}

impl Drop for RegistryEntry {
    fn drop(&mut self) {
        let kept = self.kept.take();
        // A child made by `fork(2)` has a copy, and the entry is not its own.
        if self.process != process::id() {
            return forget(kept);
        }
        let mut own = self.registry.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.entries.retain(|entry| entry.number != self.number || entry.process != self.process);
        if let Some((file, path)) = self.file.take() {
            // One that stays is not locked any more, and the next who looks removes it.
            let _ = fs::remove_file(path);
            drop(file);
        }
        kept.into_iter().for_each(UndoGuard::forget);
    }
}

/// Makes a folder, whatever the mask of this process is; an existing one stays as it is.
fn made_for_all_to_read(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(FIRST_MODE).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
        Ok(()) => fs::set_permissions(folder, Permissions::from_mode(FIRST_MODE)),
    }
}

fn group_of(groups: &str, name: &str) -> Option<u32> {
    let line = groups.lines().find(|line| line.split(':').next() == Some(name))?;
    line.split(':').nth(2)?.parse().ok()
}

/// Whether something is mounted at `place`, by the text of `/proc/self/mountinfo`.
fn is_mounted(mounts: &str, place: &Path) -> bool {
    /// The field of the place (proc_pid_mountinfo(5)).
    const PLACE: usize = 4;
    mounts.lines().any(|line| line.split(' ').nth(PLACE).is_some_and(|at| Path::new(at) == place))
}

/// Whether this process is in the PID namespace of the machine, whose number is fixed (`PROC_PID_INIT_INO`).
fn is_first_namespace() -> bool {
    fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link == Path::new("pid:[4026531836]"))
}

#[cfg(test)]
#[path = "tests/registry.rs"]
mod tests;
