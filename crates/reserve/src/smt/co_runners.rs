//! The set of processes to stop: those that the user names, without those that must run.
//!
//! Owns: reading a selection, leaving out processes that must never be stopped, finding what co-runners share with the
//! reserved work ([`locks`]). Must not: stop a process; choose one that was not selected.
//!
//! Never stopped are kernel threads, the first process, this one and its guardian, the reserved work with
//! its descendants, the ancestors of both (shells, terminals and supervisors that wait for them), and, unless
//! root asks, processes of other users. A
//! selection of many leaves them out and says so; one that names them is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use hourglass_documents::CpuSet;
use hourglass_sys::cgroup::{Group, Hierarchy};
use thiserror::Error;

use super::stopper::members::CoRunnerMembers;
use super::stopper::{CoRunners, StopperRequest};
use crate::backend::members::{
    self, all_processes, field_of, is_kernel_thread, parent_of, process_of, threads_of,
};
use crate::ownership::NotOwned;
use crate::target::Target;

pub(crate) mod locks;

use locks::SharedResource;

/// A selection of processes to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// A process with its descendants.
    Process(u32),
    /// A control group with those below it, by its folder or by its name in the unified hierarchy or
    /// that of the freezer.
    Group(PathBuf),
    /// Every process of a session (`setsid(2)`), such as those of one terminal.
    Session(u32),
}

/// As it is written on the command line.
impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Selection::Process(pid) => pid.fmt(f),
            Selection::Group(path) => path.display().fmt(f),
            Selection::Session(session) => write!(f, "session:{session}"),
        }
    }
}

/// A word that selects nothing.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "'{0}' is not a process or group to stop; write a process such as 1234, a control group such as /sys/fs/cgroup/batch, or session:1234"
)]
pub struct ParseSelectionError(String);

impl FromStr for Selection {
    type Err = ParseSelectionError;

    fn from_str(text: &str) -> Result<Selection, ParseSelectionError> {
        let number = |digits: &str| digits.parse::<u32>().ok().filter(|number| *number > 0);
        if text.starts_with('/') {
            return Ok(Selection::Group(PathBuf::from(text)));
        }
        let found = match text.strip_prefix("session:") {
            Some(digits) => number(digits).map(Selection::Session),
            None => number(text).map(Selection::Process),
        };
        found.ok_or_else(|| ParseSelectionError(text.to_owned()))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExemptReason {
    First,
    Itself,
    /// It is reserved, or descends from a process that is.
    Reserved,
    Ancestor,
    Kernel,
    /// It belongs to another user, by one of its user IDs ([`crate::ownership`]).
    Foreign,
    Elsewhere,
}

impl fmt::Display for ExemptReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ExemptReason::First => "the first process",
            ExemptReason::Itself => "this program",
            ExemptReason::Reserved => "the reserved work",
            ExemptReason::Ancestor => "an ancestor of the reserved work or of this program",
            ExemptReason::Kernel => "a kernel thread",
            ExemptReason::Foreign => "another user's, or runs a set-uid program",
            ExemptReason::Elsewhere => "not allowed on a CPU that shares with the reserved one",
        })
    }
}

#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum SelectionError {
    #[error("no process {0} to stop")]
    NoProcess(u32),
    #[error("session {0} has no process that may be stopped")]
    NoSession(u32),
    #[error("{} is not a control group; name its folder, or its name as in /proc/PID/cgroup", .0.display())]
    NoGroup(PathBuf),
    #[error("process {0} must not be stopped: it is {1}; name others")]
    MustRun(u32, ExemptReason),
    #[error("process {pid} in {} must not be stopped: it is {why}; move it out: echo {pid} > {}/cgroup.procs", group.display(), group.parent().unwrap_or(group).display())]
    InGroup { group: PathBuf, pid: u32, why: ExemptReason },
}

/// The processes to stop, and the warnings about them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CoRunnerSelection {
    /// For [`super::stopper::choose`]; not graded.
    pub(crate) wanted: StopperRequest,
    pub(crate) spared: Vec<(u32, ExemptReason)>,
    /// What co-runners share with the reserved work, which waits for a stopped co-runner that holds a lock in there.
    pub(crate) shared: Vec<SharedResource>,
}

/// Finds the processes to stop. Co-runners matter on the CPUs `shares`; if that is empty, anywhere. Whether a process
/// may run there is looked at once.
pub(crate) fn select(
    selections: &[Selection],
    reserved: Option<Target>,
    shares: &CpuSet,
) -> Result<CoRunnerSelection, SelectionError> {
    let must_run = Unstoppable::now(reserved.as_ref());
    let mut spared = BTreeMap::new();
    let co_runners = match selections {
        [Selection::Group(name)] => CoRunners::Group(group(name, &must_run)?),
        many => {
            let mut chosen = BTreeSet::new();
            for selection in many {
                add(selection, &must_run, shares, &mut chosen, &mut spared)?;
            }
            CoRunners::Processes(chosen.into_iter().collect())
        }
    };
    let members = match &co_runners {
        CoRunners::Group(path) => in_group(path),
        CoRunners::Processes(pids) => {
            CoRunnerMembers::Tree(pids.clone()).processes(&must_run.never).unwrap_or_default()
        }
        CoRunners::Everyone => BTreeSet::new(),
    };
    // Descendants of those that are named.
    let foreign = members.iter().filter(|pid| NotOwned::find(**pid).is_some());
    spared.extend(foreign.map(|pid| (*pid, ExemptReason::Foreign)));
    let shared = must_run.reserved.map(|pid| locks::shared_with(pid, &members)).unwrap_or_default();
    let wanted = StopperRequest { co_runners, reserved, shares: shares.clone(), graded: false };
    Ok(CoRunnerSelection { wanted, spared: spared.into_iter().collect(), shared })
}

fn add(
    selection: &Selection,
    must_run: &Unstoppable,
    shares: &CpuSet,
    chosen: &mut BTreeSet<u32>,
    spared: &mut BTreeMap<u32, ExemptReason>,
) -> Result<(), SelectionError> {
    match selection {
        Selection::Process(pid) => {
            if process_of(*pid) != Some(*pid) {
                return Err(SelectionError::NoProcess(*pid));
            }
            if let Some(why) = must_run.exemption(*pid) {
                return Err(SelectionError::MustRun(*pid, why));
            }
            chosen.insert(*pid);
        }
        Selection::Group(name) => chosen.extend(in_group(&group(name, must_run)?)),
        Selection::Session(session) => {
            let before = chosen.len();
            for pid in session_of(*session) {
                match must_run.exemption(pid).or_else(|| excluded_by_affinity(pid, shares)) {
                    Some(why) => drop(spared.insert(pid, why)),
                    None => drop(chosen.insert(pid)),
                }
            }
            if chosen.len() == before {
                return Err(SelectionError::NoSession(*session));
            }
        }
    }
    Ok(())
}

/// The folder of a group, if none of its members must run.
fn group(name: &Path, must_run: &Unstoppable) -> Result<PathBuf, SelectionError> {
    let path = folder(name).ok_or_else(|| SelectionError::NoGroup(name.to_owned()))?;
    for pid in in_group(&path) {
        if let Some(why) = must_run.exemption(pid) {
            return Err(SelectionError::InGroup { group: path, pid, why });
        }
    }
    Ok(path)
}

/// A folder that is given, or that of a group whose name is given.
fn folder(name: &Path) -> Option<PathBuf> {
    let is_group = |path: &PathBuf| path.join("cgroup.procs").exists();
    let given = Some(name.to_owned()).filter(is_group);
    given.or_else(|| {
        let inside = name.strip_prefix("/").ok()?;
        let hierarchies = [Hierarchy::unified(), Hierarchy::with("freezer")];
        let found = hierarchies.into_iter().flatten().map(|one| one.mount().join(inside));
        found.into_iter().find(is_group)
    })
}

fn in_group(path: &Path) -> BTreeSet<u32> {
    // The version matters for its freezer only.
    let group = Group::at(hourglass_sys::cgroup::Version::V2, path);
    CoRunnerMembers::Group(group).processes(&[]).unwrap_or_default()
}

fn session_of(session: u32) -> impl Iterator<Item = u32> {
    /// Behind the name: state, parent, process group, session.
    const SESSION: usize = 3;
    all_processes().into_iter().filter(move |pid| field_of(*pid, SESSION) == Some(session))
}

/// Whether none of a process's threads may run on `shares`.
fn excluded_by_affinity(pid: u32, shares: &CpuSet) -> Option<ExemptReason> {
    let allowed = |tid: &u32| {
        let status = members::text(&format!("/proc/{pid}/task/{tid}/status"))?;
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        list.trim().parse::<CpuSet>().ok()
    };
    let mut sets = threads_of(pid).into_iter().filter_map(|tid| allowed(&tid)).peekable();
    if shares.is_empty() || sets.peek().is_none() {
        return None;
    }
    let here = sets.any(|cpus| !cpus.intersection(shares).is_empty());
    (!here).then_some(ExemptReason::Elsewhere)
}

struct Unstoppable {
    /// The process of the reserved work, and whether all of it is, with its descendants.
    reserved: Option<u32>,
    wholly: bool,
    ancestors: BTreeSet<u32>,
    never: Vec<u32>,
}

impl Unstoppable {
    fn now(reserved: Option<&Target>) -> Unstoppable {
        let own = std::process::id();
        let wholly = matches!(reserved, Some(Target::Process(_)));
        let reserved = match reserved {
            Some(Target::Process(pid)) => Some(*pid),
            Some(Target::Thread(tid)) => process_of(*tid),
            None => None,
        };
        let never: Vec<u32> = [Some(own), reserved].into_iter().flatten().collect();
        let ancestors = never.iter().flat_map(|pid| ancestors(*pid)).collect();
        Unstoppable { reserved, wholly, ancestors, never }
    }

    fn exemption(&self, pid: u32) -> Option<ExemptReason> {
        if pid == 1 {
            return Some(ExemptReason::First);
        }
        if pid == std::process::id() {
            return Some(ExemptReason::Itself);
        }
        let below = |own| self.wholly && ancestors(pid).any(|one| one == own);
        if self.reserved.is_some_and(|own| own == pid || below(own)) {
            return Some(ExemptReason::Reserved);
        }
        if self.ancestors.contains(&pid) {
            return Some(ExemptReason::Ancestor);
        }
        let kernel = is_kernel_thread(pid).then_some(ExemptReason::Kernel);
        kernel.or_else(|| NotOwned::find(pid).map(|_| ExemptReason::Foreign))
    }
}

fn ancestors(pid: u32) -> impl Iterator<Item = u32> {
    std::iter::successors(parent_of(pid), |pid| parent_of(*pid)).take_while(|pid| *pid != 0)
}

#[cfg(test)]
#[path = "co_runners/tests.rs"]
mod tests;
