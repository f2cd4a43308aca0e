//! Members that leave the CPUs of their reservation (`taskset`, `sched_setaffinity`): elsewhere none is theirs.
//!
//! Owns: bringing them back, and lowering those that do not stay. Must not: decide when to look.

use std::io;

use hourglass_documents::CpuSet;
use hourglass_sys::thread;

use super::{MemberSet, TeamMember};
use crate::backend::AccuracyWarning;
use crate::backend::target_group::unless_gone;
use crate::ownership;

/// A member that leaves its CPUs more often than this is lowered, and not raised again.
const PATIENCE: u32 = 3;

/// Observations of members that left their CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// How often a member was found elsewhere.
    pub times: u64,
    /// Members that were lowered for it, as they could not be brought back or left again and again.
    pub lowered: u64,
    /// The first one: its number, its name and where it was.
    pub first: Option<(u32, String, Vec<u32>)>,
}

impl Moved {
    /// Why the reservation cannot be promised.
    pub(in crate::backend::user) fn doubt(&self) -> Option<AccuracyWarning> {
        let (tid, name, cpus) = self.first.as_ref()?;
        let cpus: CpuSet = cpus.iter().copied().collect();
        let times =
            if self.times == 1 { "once".to_owned() } else { format!("{} times", self.times) };
        let lowered = match self.lowered {
            0 => String::new(),
            _ => {
                format!("; not held there, and at time-sharing priority instead: {}", self.lowered)
            }
        };
        Some(AccuracyWarning {
            id: "member-moved",
            text: format!(
                "members moved off the CPUs of the reservation {times}, and were moved back: first thread {tid} ({name}), to \
                 CPU {cpus}, where nothing is reserved{lowered}"
            ),
            remedy: "reserve on the CPU that the program chooses (--cpu), or have it choose none: without taskset and the like",
        })
    }
}

impl MemberSet {
    /// Brings back members that have left the CPUs of the reservation since the last look.
    ///
    /// # Errors
    /// The first that the kernel answers, but for members that have ended.
    pub(in crate::backend::user) fn bring_all_back(&mut self) -> io::Result<()> {
        let mut done = Ok(());
        let members: Vec<u32> = self.by_tid.keys().copied().collect();
        for tid in members {
            let Ok(now) = thread::affinity_of(tid) else { continue };
            let Some(mut known) = self.by_tid.remove(&tid) else { continue };
            done = done.and(self.bring_back(&mut known, now));
            self.by_tid.insert(tid, known);
        }
        done
    }

    pub(super) fn has(&self, cpus: &[u32]) -> bool {
        cpus.iter().all(|cpu| self.plan.cpus.contains(cpu))
    }

    /// Brings back one member, which may use the CPUs `now`.
    pub(super) fn bring_back(&mut self, known: &mut TeamMember, now: Vec<u32>) -> io::Result<()> {
        let tid = known.life.id;
        if self.has(&now) {
            known.outside &= known.moves > PATIENCE;
            return Ok(());
        }
        let left = !known.outside;
        if left {
            known.outside = true;
            known.moves = known.moves.saturating_add(1);
            self.moved.times = self.moved.times.saturating_add(1);
            self.moved.first.get_or_insert_with(|| (tid, ownership::name_of(tid), now.clone()));
            known.before.cpus = now;
            known.write_down(&self.guardian, true)?;
        }
        if known.moves <= PATIENCE && ownership::pin(tid, &self.plan.cpus).is_ok() {
            known.outside = false;
            return Ok(());
        }
        if left {
            self.moved.lowered = self.moved.lowered.saturating_add(1);
        }
        unless_gone(known.lower())
    }
}
