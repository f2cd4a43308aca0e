//! Stopping and resuming co-runners.
//!
//! Owns: the ways that Linux has ([`StopperKind`]), opening one for a set of co-runners ([`open`]), measuring them on a victim
//! of its own and choosing ([`choose`]), and that no process stays stopped when it is dropped or when this process
//! dies. Must not: decide when to stop, or which processes (`co_runners` does).
//!
//! # How co-runners are stopped
//!
//! `reserve::smt::topology` reads which CPUs share with a CPU, below a root that tests replace. `co_runners.rs` makes a
//! set of what the user names and leaves out processes that must run: the kernel's, this program, the reserved work,
//! the ancestors of both. It reports what co-runners share with the reserved work (`co_runners/locks.rs`), since a lock
//! in there is what stopping can turn into a wait. Each way of stopping is a file in `stopper/`. Before anything is
//! done its undoing is with the guardian; a process is frozen in a new group inside its own one, so that its limits
//! hold on. What a way takes is measured (`latency.rs`): a child spins and writes the time, a real-time thread sleeps,
//! decides and stops it, and looks later at when it last did. The last beat is all that counts, so that nothing needs
//! to be believed of what the kernel answers.

use std::fmt;
use std::io;
use std::path::PathBuf;

use hourglass_documents::{CpuSet, named_enum};
use hourglass_sys::cgroup::{Group, Version};
use thiserror::Error;

use crate::backend::members::process_of;
use crate::guardian::Guardian;
use crate::target::Target;

mod cookie;
mod group;
pub mod latency;
pub(super) mod members;
mod set_latency;
mod signal;
mod throttling;

use members::CoRunnerMembers;

pub use latency::{NoStopperError, SelectedStopper, StopLatency, StopTrialSetup, choose, measure};
pub use set_latency::on_the_set;

/// Stops and resumes a set of co-runners.
///
/// MUST: be idempotent in both directions. MUST try again, at the next call, to resume what was not resumed: what
/// `resume` refuses is still stopped. MUST leave no process stopped when it is dropped, nor when this process dies by
/// any signal (a guardian resumes them). MUST return from `stop` only when the kernel has accepted the order.
pub trait Stopper: Send {
    /// Its name in documents, such as `cgroup2_freeze`.
    fn name(&self) -> &'static str;
    /// No process of the set may run.
    ///
    /// # Errors
    /// What the kernel answers; members that ended are no error.
    fn stop(&mut self) -> io::Result<()>;
    /// Whether all of them stand now, as far as the kernel says. For measuring: it may read many files.
    fn is_frozen(&mut self) -> io::Result<bool> {
        Ok(true)
    }
    /// How long the last order to stop took, ns, where that is measured.
    fn took_ns(&self) -> Option<u64> {
        None
    }
    /// Whether [`Stopper::slow`] does anything.
    fn is_graded(&self) -> bool {
        false
    }
    /// They may run, but only on CPU time that no other thread wants: the step before a stop. Ends a stop.
    fn slow(&mut self) -> io::Result<()> {
        self.resume()
    }
    /// All may run again.
    fn resume(&mut self) -> io::Result<()>;
}

named_enum! {
    /// The ways there are, as documents and `--stopper` name them, in the order in which they are preferred where they
    /// are equally fast.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum StopperKind {
        /// `cgroup.freeze` of the unified hierarchy: one write for a group of any size, children included; no process
        /// notices it.
        Cgroup2Freeze => "cgroup2_freeze",
        /// SIGSTOP to each process. Needs no control group; parents and shells see it, and a SIGCONT by any process
        /// undoes it.
        Sigstop => "sigstop",
        /// `freezer.state` of version 1: needs a second order where a member forks. As fast as the others, since a
        /// group without members is kept frozen meanwhile; ten times slower otherwise.
        Cgroup1Freezer => "cgroup1_freezer",
        /// A core-scheduling cookie for the reserved work: a thread with another one does not run on the siblings
        /// while it runs, kernel threads and other users included.
        CoreCookie => "core_cookie",
    }
}

impl fmt::Display for StopperKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The processes to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CoRunners {
    /// These processes with all their descendants, also later ones.
    Processes(Vec<u32>),
    /// All processes in the control group with this folder, and in those below it.
    Group(PathBuf),
    /// All threads that run on a sibling; only [`StopperKind::CoreCookie`] can do that.
    Everyone,
}

/// The processes to stop, and the work that this serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopperRequest {
    /// The processes to stop.
    pub co_runners: CoRunners,
    /// The reserved work; [`StopperKind::CoreCookie`] needs it.
    pub reserved: Option<Target>,
    /// The CPUs on which co-runners do harm ([`super::topology::SharingCpus::cpus`]).
    pub shares: CpuSet,
    /// Whether they are slowed before they are stopped ([`Stopper::slow`]).
    pub graded: bool,
}

impl StopperRequest {
    /// These processes with all their descendants, not graded.
    #[must_use]
    pub fn processes(pids: impl IntoIterator<Item = u32>) -> StopperRequest {
        StopperRequest {
            co_runners: CoRunners::Processes(pids.into_iter().collect()),
            reserved: None,
            shares: CpuSet::default(),
            graded: false,
        }
    }
}

/// Why a stopper cannot be had.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{kind}: {cause}; {remedy}")]
pub struct Unavailable {
    /// Which one.
    pub kind: StopperKind,
    /// The obstacle, with the file or the answer that shows it.
    pub cause: String,
    /// How to avoid the obstacle.
    pub remedy: String,
}

impl Unavailable {
    fn new(kind: StopperKind, cause: impl Into<String>, remedy: impl Into<String>) -> Unavailable {
        Unavailable { kind, cause: cause.into(), remedy: remedy.into() }
    }
}

/// Whether `kind` can be had for a set of co-runners. Nothing is changed.
///
/// # Errors
/// Why this kind cannot be had.
pub fn check(kind: StopperKind, wanted: &StopperRequest) -> Result<(), Unavailable> {
    tests(kind, wanted, &[])?;
    if wanted.graded { throttling::check(kind, wanted, &[]) } else { Ok(()) }
}

/// The tests of both [`check`] and [`open`]; `keepers` are the guardian's processes.
fn tests(kind: StopperKind, wanted: &StopperRequest, keepers: &[u32]) -> Result<(), Unavailable> {
    match kind {
        StopperKind::Cgroup2Freeze | StopperKind::Cgroup1Freezer => {
            group::check(kind, wanted, keepers)
        }
        StopperKind::Sigstop => signal::check(wanted, keepers),
        StopperKind::CoreCookie => cookie::check(wanted).map(drop),
    }
}

/// Opens `kind` for a set of co-runners, and stops none of them. The guardian has all undo actions before anything is
/// done; the guardian itself is never stopped.
///
/// # Errors
/// This kind is unavailable; nothing is changed then.
pub fn open(
    kind: StopperKind,
    wanted: &StopperRequest,
    guardian: &Guardian,
) -> Result<Box<dyn Stopper>, Unavailable> {
    tests(kind, wanted, &guardian.pids())?;
    let stopper: Box<dyn Stopper> = match kind {
        StopperKind::Cgroup2Freeze | StopperKind::Cgroup1Freezer => {
            Box::new(group::open(kind, wanted, guardian)?)
        }
        StopperKind::Sigstop => Box::new(signal::open(wanted, guardian)?),
        StopperKind::CoreCookie => Box::new(cookie::open(wanted, guardian)?),
    };
    if wanted.graded { throttling::wrap(kind, stopper, wanted, guardian) } else { Ok(stopper) }
}

/// Runs `resume` if something is stopped. What it could not resume is still stopped, so that the next call tries again.
fn resume_if(stopped: &mut bool, resume: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let done = if *stopped { resume() } else { Ok(()) };
    *stopped = done.is_err();
    done
}

/// Processes that no stopper stops: the first one, this one, its guardian, and the reserved one.
fn never(wanted: &StopperRequest, keepers: &[u32]) -> Vec<u32> {
    let mut never = vec![1, std::process::id()];
    never.extend(keepers);
    match wanted.reserved {
        Some(Target::Process(pid)) => never.push(pid),
        Some(Target::Thread(tid)) => never.extend(process_of(tid)),
        None => {}
    }
    never
}

/// The set that a stopper of processes or groups watches, and who of it is spared.
fn set_of(
    kind: StopperKind,
    wanted: &StopperRequest,
    keepers: &[u32],
) -> Result<(CoRunnerMembers, Vec<u32>), Unavailable> {
    let never = never(wanted, keepers);
    match &wanted.co_runners {
        CoRunners::Everyone => {
            let cause = "it stops only processes that are named";
            Err(Unavailable::new(kind, cause, "name processes or a control group"))
        }
        CoRunners::Processes(pids) => match pids.iter().find(|pid| never.contains(pid)) {
            Some(pid) => {
                let cause = format!("process {pid} is this one, the reserved one or the first one");
                Err(Unavailable::new(kind, cause, "name other processes"))
            }
            None => Ok((CoRunnerMembers::Tree(pids.clone()), never)),
        },
        CoRunners::Group(path) => {
            let version = match path.join("cgroup.events").exists() {
                true => Version::V2,
                false => Version::V1,
            };
            Ok((CoRunnerMembers::Group(Group::at(version, path.clone())), never))
        }
    }
}
