//! Slowing co-runners before they are stopped: they get only CPU time that no other thread wants.
//!
//! That helps where other threads want it; a co-runner alone on a sibling runs on undisturbed, and goes on to
//! interfere. Real-time and deadline threads are left as they are. A group that is named and has `cpu.idle` or
//! `cpu.weight` is slowed as one; else each thread becomes `SCHED_IDLE`.

use std::collections::BTreeMap;
use std::io;

use hourglass_sys::cgroup::Group;
use hourglass_sys::sched::{self, Attributes};

use super::members::CoRunnerMembers;
use super::{CoRunners, Stopper, StopperKind, StopperRequest, Unavailable};
use crate::backend::members::{parent_of, threads_of};
use crate::guardian::{Guardian, TaskIdentity, UndoAction, UndoGuard};
use crate::ownership;

/// Files that make a group yield to others, and what is written to them, best first.
const YIELDING: [(&str, &str); 2] = [("cpu.idle", "1"), ("cpu.weight", "1")];

struct ThrottlingStopper {
    inner: Box<dyn Stopper>,
    slow: Throttle,
    guardian: Guardian,
}

enum Throttle {
    /// By a file of their group.
    Group {
        group: Group,
        file: &'static str,
        low: &'static str,
        before: String,
        kept: Option<UndoGuard>,
    },
    Threads(Threads),
}

struct Threads {
    set: CoRunnerMembers,
    spared: Vec<u32>,
    slowed: BTreeMap<u32, (Attributes, UndoGuard)>,
}

pub(super) fn check(
    kind: StopperKind,
    wanted: &StopperRequest,
    keepers: &[u32],
) -> Result<(), Unavailable> {
    if by_named_group(kind, wanted, keepers)?.is_some() {
        return Ok(());
    }
    reversible().map_err(|error| {
        let cause = format!("threads slowed to SCHED_IDLE could not be restored: {error}");
        Unavailable::new(kind, cause, "run as root, or stop without slowing first")
    })
}

pub(super) fn wrap(
    kind: StopperKind,
    inner: Box<dyn Stopper>,
    wanted: &StopperRequest,
    guardian: &Guardian,
) -> Result<Box<dyn Stopper>, Unavailable> {
    let keepers = &guardian.pids();
    check(kind, wanted, keepers)?;
    let slow = match by_named_group(kind, wanted, keepers)? {
        Some(slow) => slow,
        None => {
            let (set, spared) = super::set_of(kind, wanted, keepers)?;
            Throttle::Threads(Threads { set, spared, slowed: BTreeMap::new() })
        }
    };
    Ok(Box::new(ThrottlingStopper { inner, slow, guardian: guardian.clone() }))
}

/// By a file of their group, if a group is named.
/// By a file of their group, if a group is named and has such a file: it may belong to another hierarchy.
fn by_named_group(
    kind: StopperKind,
    wanted: &StopperRequest,
    keepers: &[u32],
) -> Result<Option<Throttle>, Unavailable> {
    if !matches!(wanted.co_runners, CoRunners::Group(_)) {
        return Ok(None);
    }
    let (CoRunnerMembers::Group(group), _) = super::set_of(kind, wanted, keepers)? else {
        return Ok(None);
    };
    for (file, low) in YIELDING {
        let Ok(before) = group.read(file) else { continue };
        let before = before.trim().to_owned();
        return Ok(Some(Throttle::Group { group, file, low, before, kept: None }));
    }
    Ok(None)
}

/// A thread of its own goes to `SCHED_IDLE` and back.
fn reversible() -> io::Result<()> {
    let thread = std::thread::Builder::new().name("hg-idle".to_owned()).spawn(|| {
        let before = sched::read(0)?.unwrap_or(Attributes::Other(0));
        let before = if yields(before) { before } else { Attributes::Other(0) };
        sched::set(Attributes::Idle)?;
        sched::set(before)
    })?;
    thread.join().unwrap_or_else(|_| Err(io::Error::other("the trial ended early")))
}

fn yields(attributes: Attributes) -> bool {
    matches!(attributes, Attributes::Other(_) | Attributes::Batch(_))
}

impl Throttle {
    fn begin(&mut self, guardian: &Guardian) -> io::Result<()> {
        match self {
            Throttle::Group { group, file, low, before, kept } => {
                if kept.is_none() {
                    let path = group.path().join(*file);
                    let undo = UndoAction::Write { path, text: before.clone() };
                    *kept = Some(guardian.keep(&undo)?);
                }
                group.write(file, low)
            }
            Throttle::Threads(threads) => threads.begin(guardian),
        }
    }

    fn end(&mut self) -> io::Result<()> {
        match self {
            Throttle::Group { kept, .. } => put_back(kept),
            Throttle::Threads(threads) => threads.end(),
        }
    }
}

impl Threads {
    fn now(&self) -> io::Result<Vec<(u32, u32)>> {
        let processes = self.set.processes(&self.spared)?;
        let of = |pid| threads_of(pid).into_iter().map(move |tid| (pid, tid));
        Ok(processes.into_iter().flat_map(of).collect())
    }

    /// Slows those that are not slowed yet; a thread that ends meanwhile is no error.
    fn begin(&mut self, guardian: &Guardian) -> io::Result<()> {
        for (_, tid) in self.now()? {
            if self.slowed.contains_key(&tid) {
                continue;
            }
            let Ok(Some(before)) = sched::read(tid) else { continue };
            if !yields(before) {
                continue;
            }
            let Ok(thread) = TaskIdentity::of_task(tid) else { continue };
            let undo = UndoAction::Thread { thread, attributes: Some(before), cpus: None };
            let kept = guardian.keep(&undo)?;
            match ownership::set_policy(tid, Attributes::Idle) {
                Ok(()) => {
                    self.slowed.insert(tid, (before, kept)).map_or((), |(_, old)| old.forget())
                }
                Err(error) => {
                    kept.forget();
                    unless_ended(error)?;
                }
            }
        }
        Ok(())
    }

    /// Gives all threads their policy back. A thread or process made meanwhile inherited the low one; it gets what its
    /// process, or its parent, had.
    fn end(&mut self) -> io::Result<()> {
        if self.slowed.is_empty() {
            return Ok(());
        }
        let mut done = Ok(());
        for (pid, tid) in self.now()? {
            if !self.slowed.contains_key(&tid)
                && matches!(sched::read(tid), Ok(Some(Attributes::Idle)))
            {
                let inherited = [Some(pid), parent_of(pid)].into_iter().flatten();
                let mut known = inherited.filter_map(|id| Some(self.slowed.get(&id)?.0));
                if let Some(attributes) = known.next() {
                    done = done.and(sched::put_back(tid, attributes).or_else(unless_ended));
                }
            }
        }
        for (tid, (attributes, kept)) in std::mem::take(&mut self.slowed) {
            let mut kept = Some(kept);
            done = done.and(put_back(&mut kept));
            if let Some(kept) = kept {
                self.slowed.insert(tid, (attributes, kept));
            }
        }
        done
    }
}

/// Puts it back; what is refused is kept, so that the next call tries again.
fn put_back(kept: &mut Option<UndoGuard>) -> io::Result<()> {
    kept.as_ref().map_or(Ok(()), UndoGuard::attempt)?;
    kept.take().into_iter().for_each(UndoGuard::forget);
    Ok(())
}

/// A thread that has ended is no error, nor is a thread of another user, which is left as it is.
fn unless_ended(error: io::Error) -> io::Result<()> {
    if ownership::has_ended(&error) || ownership::foreign(&error).is_some() {
        Ok(())
    } else {
        Err(error)
    }
}

impl Stopper for ThrottlingStopper {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn stop(&mut self) -> io::Result<()> {
        self.inner.stop()
    }

    fn is_frozen(&mut self) -> io::Result<bool> {
        self.inner.is_frozen()
    }

    fn is_graded(&self) -> bool {
        true
    }

    fn slow(&mut self) -> io::Result<()> {
        // Before they run again, so that they never run faster than asked.
        self.slow.begin(&self.guardian).and(self.inner.resume())
    }

    fn resume(&mut self) -> io::Result<()> {
        let restored = self.slow.end();
        self.inner.resume().and(restored)
    }
}

impl Drop for ThrottlingStopper {
    fn drop(&mut self) {
        // The guardian undoes what is kept when it is dropped, whatever this answers.
        let _ = self.resume();
    }
}
