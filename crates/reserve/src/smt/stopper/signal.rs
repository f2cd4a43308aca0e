//! Stopping by SIGSTOP, a process at a time.
//!
//! All known processes get the signal first; then the set is read again until it has no new process, since a process
//! may have forked meanwhile.

use std::collections::BTreeMap;
use std::io;

use crate::guardian::{Guardian, TaskIdentity, UndoAction, UndoGuard};
use crate::ownership::{NotOwned, has_ended};
use hourglass_sys::pidfd::PidFd;

use super::members::CoRunnerMembers;
use super::{Stopper, StopperKind, StopperRequest, Unavailable};
use crate::backend::members::{state_of, threads_of};

/// How often the set is looked at again in one stop. A set that forks faster than that is not
/// stopped by signals.
const LOOKS: u32 = 16;

#[derive(Debug)]
struct Member {
    process: PidFd,
    /// Resumes it if this process dies.
    kept: UndoGuard,
}

#[derive(Debug)]
pub(super) struct Signals {
    set: CoRunnerMembers,
    spared: Vec<u32>,
    known: BTreeMap<u32, Member>,
    guardian: Guardian,
    stopped: bool,
}

/// Whether all processes that it finds may be signalled.
pub(super) fn check(wanted: &StopperRequest, keepers: &[u32]) -> Result<(), Unavailable> {
    let (set, spared) = super::set_of(StopperKind::Sigstop, wanted, keepers)?;
    let probe = |pid: u32| match PidFd::open(pid).and_then(|process| process.probe()) {
        _ if NotOwned::find(pid).is_some() => Ok(()),
        Err(error) if has_ended(&error) => Ok(()),
        answer => answer,
    };
    let probed = set.processes(&spared).and_then(|now| now.into_iter().try_for_each(probe));
    probed.map_err(|error| refused(&error))
}

fn refused(error: &io::Error) -> Unavailable {
    let cause = format!("the co-runners cannot be signalled: {error}");
    Unavailable::new(StopperKind::Sigstop, cause, "run as their user or as root")
}

/// Reads the set. A process that another program has stopped is left to that program.
pub(super) fn open(wanted: &StopperRequest, guardian: &Guardian) -> Result<Signals, Unavailable> {
    let (set, spared) = super::set_of(StopperKind::Sigstop, wanted, &guardian.pids())?;
    let guardian = guardian.clone();
    let mut signals = Signals { set, spared, known: BTreeMap::new(), guardian, stopped: false };
    let look = |signals: &mut Signals| -> io::Result<()> {
        for pid in signals.unknown()? {
            if let Some(member) = signals.member(pid)? {
                member.process.probe()?;
                signals.known.insert(pid, member);
            }
        }
        Ok(())
    };
    look(&mut signals).map_err(|error| refused(&error))?;
    Ok(signals)
}

impl Signals {
    fn unknown(&self) -> io::Result<Vec<u32>> {
        let now = self.set.processes(&self.spared)?;
        Ok(now.into_iter().filter(|pid| !self.known.contains_key(pid)).collect())
    }

    /// Makes a descriptor of a process; `None` if it has ended, another program stopped it, or it is another user's.
    fn member(&self, pid: u32) -> io::Result<Option<Member>> {
        let process = match PidFd::open(pid) {
            Err(error) if has_ended(&error) => return Ok(None),
            process => process?,
        };
        if NotOwned::find(pid).is_some() {
            return Ok(None);
        }
        match (state_of(pid), TaskIdentity::of_task(pid)) {
            (Some('T' | 't'), _) | (_, Err(_)) => Ok(None),
            (_, Ok(life)) => {
                let kept = self.guardian.keep(&UndoAction::Continue(life))?;
                Ok(Some(Member { process, kept }))
            }
        }
    }
}

/// Whether no thread of a process runs on in user mode: it is stopped, has ended, or will be stopped before it comes
/// back from a wait that nothing interrupts.
fn is_stopped(pid: u32) -> bool {
    let mut states = threads_of(pid).into_iter().filter_map(state_of);
    states.all(|state| matches!(state, 'T' | 't' | 'Z' | 'X' | 'D'))
}

impl Stopper for Signals {
    fn name(&self) -> &'static str {
        StopperKind::Sigstop.name()
    }

    fn is_frozen(&mut self) -> io::Result<bool> {
        Ok(self.known.keys().all(|pid| is_stopped(*pid)))
    }

    fn stop(&mut self) -> io::Result<()> {
        self.stopped = true;
        let mut done = Ok(());
        self.known.retain(|_, member| match member.process.stop() {
            Err(error) if has_ended(&error) => false,
            answer => {
                if done.is_ok() {
                    done = answer;
                }
                true
            }
        });
        done?;
        for _ in 0..LOOKS {
            let unknown = self.unknown()?;
            let mut found = false;
            for pid in unknown {
                let Some(member) = self.member(pid)? else { continue };
                match member.process.stop() {
                    Err(error) if has_ended(&error) => continue,
                    answer => answer?,
                }
                self.known.insert(pid, member);
                found = true;
            }
            if !found {
                return Ok(());
            }
        }
        Err(io::Error::other("the co-runners fork faster than they can be stopped by signals"))
    }

    fn resume(&mut self) -> io::Result<()> {
        let Signals { known, stopped, .. } = self;
        super::resume_if(stopped, || {
            let mut done = Ok(());
            for member in known.values() {
                match member.process.resume() {
                    Err(error) if !has_ended(&error) && done.is_ok() => done = Err(error),
                    _ => {}
                }
            }
            done
        })
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // Only a process that is no longer ours to signal refuses; then the guardian tries once more.
        if self.resume().is_err() {
            return;
        }
        // A resumed process must not be resumed again: another program may have stopped it meanwhile.
        std::mem::take(&mut self.known).into_values().for_each(|member| member.kept.forget());
    }
}
