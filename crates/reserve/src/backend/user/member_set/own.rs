//! Policy and CPUs that members have of their own, and their nice value, which is never written.
//!
//! Owns: recording them with the guardian, and settings that another program gives members meanwhile (`chrt -i`,
//! `taskset`), which are their own from then on. Must not: decide when members are raised.

use std::io;
use std::mem;

use hourglass_sys::sched::{self, Attributes};
use hourglass_sys::thread;

use super::{MemberSet, TeamMember};
use crate::backend::members;
use crate::backend::target_group::unless_gone;
use crate::guardian::{Guardian, TaskIdentity, UndoAction};
use crate::ownership;

#[derive(Clone, Debug)]
pub(super) struct SavedScheduling {
    pub(super) policy: Attributes,
    pub(super) cpus: Vec<u32>,
}

/// Whether two policies are the same one, whatever the nice values.
fn is_alike(one: Attributes, other: Attributes) -> bool {
    mem::discriminant(&one) == mem::discriminant(&other)
}

fn is_fair(policy: Attributes) -> bool {
    matches!(policy, Attributes::Other(_) | Attributes::Batch(_) | Attributes::Idle)
}

impl SavedScheduling {
    /// Its policy while it is not raised: its own, or timesharing if that is a real-time one.
    pub(super) fn lowered(&self) -> Attributes {
        if is_fair(self.policy) { self.policy } else { Attributes::Other(0) }
    }
}

impl TeamMember {
    pub(super) fn lower(&self) -> io::Result<()> {
        ownership::lower(self.life, self.before.lowered())
    }

    /// Writes down what it has by now, in place of what was written before.
    pub(super) fn write_down(&mut self, guardian: &Guardian, with_cpus: bool) -> io::Result<()> {
        let cpus = with_cpus.then(|| self.before.cpus.clone());
        let attributes = Some(self.before.policy);
        let kept = guardian.keep(&UndoAction::Thread { thread: self.life, attributes, cpus })?;
        if let Some(before) = self.undo.replace(kept) {
            before.forget();
        }
        Ok(())
    }
}

impl MemberSet {
    /// A timesharing policy that another program gave it since its last order is its own from now on.
    pub(super) fn heed_policy(&mut self, tid: u32) -> io::Result<()> {
        let Some(known) = self.by_tid.get_mut(&tid) else { return Ok(()) };
        let Ok(Some(now)) = sched::read(tid) else { return Ok(()) };
        if !is_fair(now) || is_alike(now, known.before.lowered()) {
            return Ok(());
        }
        known.before.policy = now;
        known.write_down(&self.guardian, self.plan.pin.is_some() || known.moves > 0)
    }

    /// Writes down what a new member has, then keeps it on its CPU.
    pub(super) fn meet(&mut self, tid: u32) -> io::Result<TeamMember> {
        let life = TaskIdentity::of_task(tid)?;
        let policy = sched::read(tid)?.unwrap_or(Attributes::Other(0));
        let begins_anew = self.complete && self.begin_anew() && policy == Attributes::Other(0);
        let inherited = self.complete && self.is_raised(Some(policy)) || begins_anew;
        let cpus = thread::affinity_of(tid)?;
        let before = if inherited {
            self.handed_down(tid)
        } else {
            let pinned = self.complete && self.plan.pin.is_some_and(|cpu| cpus == [cpu]);
            let cpus = if pinned { self.before.cpus.clone() } else { cpus.clone() };
            SavedScheduling { policy, cpus }
        };
        // The settings of a group suit most members.
        let usual =
            is_alike(before.policy, Attributes::Other(0)) && before.cpus == self.before.cpus;
        let covered = self.members.is_some() && usual && self.is_at_the_top(tid);
        let mut known =
            TeamMember { life, before, undo: None, time: None, moves: 0, outside: false };
        if !covered {
            known.write_down(&self.guardian, self.plan.pin.is_some())?;
        }
        if begins_anew {
            // The kernel has it begin at nice 0.
            let nice = sched::nice_of(parent_of(tid)).unwrap_or(0);
            let changed = nice != 0 && is_alike(known.before.lowered(), Attributes::Other(0));
            if changed {
                ownership::set_policy(tid, Attributes::Other(nice))?;
            }
        }
        if inherited {
            self.bring_back(&mut known, cpus)?;
        } else if !self.has(&cpus) {
            if self.plan.pin.is_none() {
                known.write_down(&self.guardian, true)?;
            }
            ownership::pin(tid, &self.plan.cpus)?;
        }
        Ok(known)
    }

    /// Settings that a thread with an inherited raised policy has from its parent.
    fn handed_down(&self, tid: u32) -> SavedScheduling {
        self.by_tid.get(&parent_of(tid)).map_or(&self.before, |parent| &parent.before).clone()
    }

    pub(super) fn restore(&self, tid: u32, before: &SavedScheduling) -> io::Result<()> {
        let policy = unless_gone(sched::put_back(tid, before.policy));
        if self.plan.pin.is_none() {
            return policy;
        }
        let cpus = before.cpus.iter().copied();
        policy.and(unless_gone(thread::set_affinity_of(tid, cpus)))
    }
}

/// The first thread of the maker of thread `tid`: of its own process or, if it is the first there, of the parent.
fn parent_of(tid: u32) -> u32 {
    match members::process_of(tid) {
        Some(process) if process != tid => process,
        _ => members::parent_of(tid).unwrap_or(tid),
    }
}
