//! Samples of members: how long they ran and waited, and whether there is more than one. Changes nothing.

use std::fs::File;
use std::os::unix::fs::FileExt;

use hourglass_sys::clock::cpu_time::{SchedStatCounts, ThreadTime};
use hourglass_sys::sched::{self, Attributes};

use super::super::demand::Sample;
use super::super::turn_scheduler::{self, MemberUsage};
use super::{MemberSet, TeamMember};
use crate::backend::members;
use crate::target::Target;

/// Number of threads of a larger group that are asked whether they wait.
const SAMPLED: usize = 64;

/// Threads of groups above this size are not asked how long they ran, which would take a descriptor for each.
const TIMED: usize = 256;

impl MemberSet {
    /// Whether there is more than one member, as far as is known without looking at all of them.
    pub(in crate::backend::user) fn has_company(&self) -> bool {
        self.by_tid.len() > 1 || self.list.as_ref().is_some_and(lists_several)
    }

    /// Whether there can ever be more than one member.
    pub(in crate::backend::user) fn may_grow(&self) -> bool {
        matches!(self.target, Target::Process(_))
    }

    /// Time that each has run until now; `Err` with all of them if they are too many to be asked.
    pub(in crate::backend::user) fn uses(&mut self) -> Result<Vec<MemberUsage>, Vec<u32>> {
        if self.by_tid.len() > TIMED {
            return Err(self.by_tid.keys().copied().collect());
        }
        let used = |(tid, known): (&u32, &mut TeamMember)| {
            let run_ns = known.counts()?.run_ns;
            let weight = match known.before.policy {
                Attributes::Idle => turn_scheduler::IDLE,
                _ => turn_scheduler::weight(sched::nice_of(*tid).unwrap_or(0)),
            };
            Some(MemberUsage { tid: *tid, run_ns, weight })
        };
        Ok(self.by_tid.iter_mut().filter_map(used).collect())
    }

    /// Whether any of them runs or waits for a CPU.
    pub(in crate::backend::user) fn wants(&self) -> bool {
        self.by_tid.keys().any(|tid| members::state_of(*tid) == Some('R'))
    }

    pub(in crate::backend::user) fn samples(&mut self) -> Vec<Sample> {
        let sample = |(tid, known): (&u32, &mut TeamMember)| {
            let counts = known.counts()?;
            Some(Sample {
                tid: *tid,
                run_ns: counts.run_ns,
                wait_ns: counts.wait_ns,
                slices: counts.slices,
                runnable: members::state_of(*tid) == Some('R'),
            })
        };
        self.by_tid.iter_mut().take(SAMPLED).filter_map(sample).collect()
    }
}

impl TeamMember {
    fn counts(&mut self) -> Option<SchedStatCounts> {
        if self.time.is_none() {
            self.time = ThreadTime::for_task(self.life.id).ok();
        }
        self.time.as_ref()?.read().ok()
    }
}

fn lists_several(list: &File) -> bool {
    // One number has ten digits at most.
    let mut text = [0u8; 24];
    let count = list.read_at(&mut text, 0).unwrap_or(0);
    let lines = text.get(..count).unwrap_or_default().split(|byte| *byte == b'\n');
    lines.filter(|line| !line.is_empty()).count() > 1
}
