//! The threads of one reservation: meeting them, raising, lowering, suspending, putting them back.
//!
//! Owns: what each of them had before, written down with the guardian before it is changed.
//! Must not: decide when.

mod asking;
mod own;
mod places;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;

use hourglass_sys::cgroup::Group;
use hourglass_sys::clock::cpu_time::ThreadTime;
use hourglass_sys::pidfd::PidFd;
use hourglass_sys::sched::{self, Attributes};
use hourglass_sys::thread;

use self::own::SavedScheduling;
pub(super) use self::places::Moved;
use super::cpu_usage::{Tally, Usage};
use crate::backend::members;
use crate::backend::target_group::{TargetGroup, gather, unless_gone};
use crate::command;
use crate::guardian::{Guardian, TaskIdentity, UndoAction, UndoGuard};
use crate::ownership;
use crate::target::Target;

/// Threads that make threads while all are gone through: so often the new ones are looked for.
const PASSES: u32 = 16;

#[derive(Clone, Debug)]
pub(super) struct TeamPolicy {
    /// The priority of raised members; the one above serves to change it back and forth.
    pub(super) priority: u8,
    pub(super) pin: Option<u32>,
    /// The CPUs that the reservation has: that one, or all on which they were.
    pub(super) cpus: Vec<u32>,
    pub(super) freezes: bool,
    /// A control group is made for them, where one can be.
    pub(super) grouped: bool,
    /// Without a group, children of raised members start with the default policy, so that every raised thread is known
    /// to the guardian. Undoing that takes `CAP_SYS_NICE`.
    pub(super) privileged: bool,
}

/// One thread. Dropping it puts it back.
#[derive(Debug)]
struct TeamMember {
    life: TaskIdentity,
    before: SavedScheduling,
    undo: Option<UndoGuard>,
    time: Option<ThreadTime>,
    /// How often it left the CPUs of the reservation, and whether it is not raised for that.
    moves: u32,
    outside: bool,
}

/// One process that has no group to be suspended by.
#[derive(Debug)]
struct Process {
    life: TaskIdentity,
    descriptor: PidFd,
    /// Only where it may be stopped.
    kept: Option<UndoGuard>,
}

/// In which order members come to their CPU.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Queue<'a> {
    /// The members in the order of their turns; others come behind them.
    pub(super) order: &'a [u32],
    /// They have the higher of the two priorities now.
    pub(super) from_above: bool,
}

/// All of them. Dropping it puts everything back, in the order of the fields.
#[derive(Debug)]
pub(super) struct MemberSet {
    target: Target,
    pub(super) plan: TeamPolicy,
    /// Settings of the first member, which new members get.
    before: SavedScheduling,
    pub(super) usage: Usage,
    processes: HashMap<u32, Process>,
    /// For all members of the group, who may have become more since they were looked at.
    members: Option<UndoGuard>,
    by_tid: HashMap<u32, TeamMember>,
    /// Threads among them that are not the caller's to change.
    foreign: HashSet<u32>,
    /// The most of these at a time.
    pub(super) most_foreign: usize,
    pub(super) moved: Moved,
    gathered: Option<TargetGroup>,
    /// Lowers threads that inherited the priority and left the group before they were found.
    strays: Option<UndoGuard>,
    /// The numbers of the members, where a group lists them.
    list: Option<File>,
    guardian: Guardian,
    /// Whether the first members have been met.
    complete: bool,
}

impl MemberSet {
    /// Gathers the members of `target`, and keeps them on their CPU.
    pub(super) fn assemble(
        guardian: &Guardian,
        target: &Target,
        plan: TeamPolicy,
    ) -> io::Result<MemberSet> {
        let first = target.id();
        let before = SavedScheduling {
            policy: sched::read(first)?.unwrap_or(Attributes::Other(0)),
            cpus: thread::affinity_of(first)?,
        };
        let gathered = if plan.grouped { gather(guardian, target, plan.freezes) } else { None };
        let usage = match (target, &gathered) {
            (Target::Thread(tid), _) => Usage::Thread(ThreadTime::for_task(*tid)?),
            (Target::Process(_), Some(gathered)) => Usage::of_group(&gathered.group),
            (Target::Process(_), None) => Usage::Processes(Tally::default()),
        };
        if gathered.is_none() && plan.freezes && matches!(target, Target::Thread(_)) {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "one thread cannot be suspended",
            ));
        }
        let list = gathered.as_ref().filter(|gathered| !gathered.by_thread);
        let list = list.map(|gathered| gathered.group.path().join("cgroup.threads"));
        let list = list.map(|path| if path.exists() { path } else { path.with_file_name("tasks") });
        let cpus = plan.pin.map(|_| before.cpus.clone());
        let listed = list.as_ref().and_then(|list| File::open(list).ok());
        let members =
            list.map(|list| guardian.keep(&UndoAction::Members { list, cpus })).transpose()?;
        let strays = strays(target, &plan, &before, guardian)?;
        let guardian = guardian.clone();
        let mut team = MemberSet {
            target: target.clone(),
            plan,
            before,
            usage,
            processes: HashMap::new(),
            members,
            strays,
            by_tid: HashMap::new(),
            foreign: HashSet::new(),
            most_foreign: 0,
            moved: Moved::default(),
            gathered,
            list: listed,
            guardian,
            complete: false,
        };
        team.meet_all()?;
        if team.by_tid.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        team.complete = true;
        Ok(team)
    }

    pub(super) fn group(&self) -> Option<&Group> {
        self.gathered.as_ref().map(|gathered| &gathered.group)
    }

    /// How often guardians have changed how members stand, of whichever reservation.
    pub(super) fn woken(&self) -> u64 {
        self.guardian.woken()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.threads().is_empty()
    }

    /// Raises all. `turn` is which of the two priorities: a change of priority makes the kernel bring a
    /// running thread's processor time up to date, and puts them into the order of `queue`.
    ///
    /// # Errors
    /// The first that the kernel answers, but for members that have ended; the others are raised.
    pub(super) fn raise(&mut self, turn: bool, queue: Queue<'_>) -> io::Result<()> {
        // Without a guardian they would stay raised if this process were killed.
        self.guardian.must_live()?;
        let policy = Attributes::Fifo(self.plan.priority.saturating_add(u8::from(turn)));
        if self.begin_anew() {
            self.set_in_order(queue, |known| match known.outside {
                false => ownership::set_policy_without_children(known.life.id, policy),
                true => known.lower(),
            })
        } else {
            self.set_in_order(queue, |known| match known.outside {
                false => ownership::set_policy(known.life.id, policy),
                true => known.lower(),
            })
        }
    }

    fn is_newly_foreign(&mut self, tid: u32) -> bool {
        let new = self.foreign.insert(tid);
        self.most_foreign = self.most_foreign.max(self.foreign.len());
        new
    }

    /// Whether children of raised members begin at timesharing priority.
    fn begin_anew(&self) -> bool {
        let process = matches!(self.target, Target::Process(_));
        process && self.gathered.is_none() && self.plan.privileged
    }

    /// Gives all what they had before, or timesharing priority if that was a real-time one.
    pub(super) fn lower(&mut self) -> io::Result<()> {
        self.set_in_order(Queue::default(), TeamMember::lower)
    }

    /// The kernel puts a thread whose priority is raised behind the others of its new one, and a thread whose
    /// priority is lowered before them (sched(7)): so from above the last one is the first to be lowered.
    fn set_in_order(
        &mut self,
        queue: Queue<'_>,
        set: impl Fn(&TeamMember) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut first = Ok(());
        for _ in 0..PASSES {
            let met = self.meet_all();
            let mut lost = Vec::new();
            for tid in self.sequence(queue) {
                first = first.and(self.heed_policy(tid));
                let Some(known) = self.by_tid.get(&tid) else { continue };
                match set(known) {
                    // It has executed a set-uid program since it was met.
                    Err(error) if ownership::foreign(&error).is_some() => lost.push(tid),
                    given => first = first.and(unless_gone(given)),
                }
            }
            for tid in lost {
                self.is_newly_foreign(tid);
                let let_go = self.by_tid.remove(&tid).map_or(Ok(()), |known| self.let_go(known));
                first = first.and(let_go);
            }
            match met {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => return first.and(Err(error)),
            }
        }
        first
    }

    fn sequence(&self, queue: Queue<'_>) -> Vec<u32> {
        let placed: HashSet<u32> = queue.order.iter().copied().collect();
        let others = self.by_tid.keys().copied().filter(|tid| !placed.contains(tid));
        let mut sequence: Vec<u32> = queue.order.iter().copied().chain(others).collect();
        if queue.from_above {
            sequence.reverse();
        }
        sequence
    }

    pub(super) fn suspend(&mut self) -> io::Result<()> {
        self.guardian.must_live()?;
        if let Some(gathered) = &self.gathered {
            return gathered.freeze();
        }
        let mut first = Ok(());
        for _ in 0..PASSES {
            let met = self.meet_all();
            for process in self.processes.values() {
                match ownership::stop(process.life.id, &process.descriptor) {
                    // It runs on, at the priority that it has.
                    Err(error) if ownership::foreign(&error).is_some() => {}
                    stopped => first = first.and(unless_gone(stopped)),
                }
            }
            if !matches!(met, Ok(1..)) {
                break;
            }
        }
        first
    }

    pub(super) fn resume(&mut self) -> io::Result<()> {
        if let Some(gathered) = &self.gathered {
            return gathered.thaw();
        }
        if !self.plan.freezes {
            return Ok(());
        }
        let resumed = self.processes.values().map(|process| process.descriptor.resume());
        resumed.map(unless_gone).fold(Ok(()), io::Result::and)
    }

    /// Puts everything back.
    ///
    /// # Errors
    /// The first that the kernel answers; all has been tried.
    pub(super) fn put_back(mut self) -> io::Result<()> {
        // Those made meanwhile too, who have nothing of their own written down.
        let mut done = self.lower();
        done = done.and(self.resume());
        for kept in self.processes.into_values().filter_map(|process| process.kept) {
            done = done.and(kept.undo());
        }
        done = done.and(self.members.map_or(Ok(()), UndoGuard::undo));
        for kept in self.by_tid.into_values().filter_map(|known| known.undo) {
            done = done.and(kept.undo());
        }
        done = done.and(self.gathered.map_or(Ok(()), TargetGroup::dissolve));
        // Who went back into the group is found outside of it only.
        done.and(self.strays.map_or(Ok(()), UndoGuard::undo))
    }

    fn threads(&self) -> Vec<u32> {
        match (&self.target, &self.gathered) {
            (Target::Thread(tid), _) => {
                // Not another one that has its number by now.
                let goes_on = match self.by_tid.get(tid) {
                    Some(known) => known.life.is_alive(),
                    None => !self.complete && TaskIdentity::of_task(*tid).is_ok(),
                };
                if goes_on { vec![*tid] } else { Vec::new() }
            }
            (_, Some(gathered)) => members::within(&gathered.group),
            (_, None) => self.descendants().into_iter().flat_map(members::threads_of).collect(),
        }
    }

    /// Processes found in `/proc`: also those whose parents have ended since they were met.
    fn descendants(&self) -> Vec<u32> {
        let Target::Process(root) = self.target else { return Vec::new() };
        let mut found = members::tree(root);
        for process in self.processes.values() {
            if !found.contains(&process.life.id) && process.life.is_alive() {
                found.extend(members::tree(process.life.id));
            }
        }
        found.sort_unstable();
        found.dedup();
        found.retain(|pid| members::state_of(*pid).is_some_and(|state| state != 'Z'));
        found
    }

    /// Adds new members, and forgets ended ones; returns the number of new ones.
    fn meet_all(&mut self) -> io::Result<usize> {
        let threads: HashSet<u32> = self.threads().into_iter().collect();
        let gone: Vec<u32> =
            self.by_tid.keys().filter(|tid| !threads.contains(tid)).copied().collect();
        let gone: Vec<TeamMember> = gone.iter().filter_map(|tid| self.by_tid.remove(tid)).collect();
        let let_go = gone.into_iter().map(|known| self.let_go(known));
        let_go.fold(Ok(()), io::Result::and)?;
        if self.gathered.is_none() && matches!(self.target, Target::Process(_)) {
            self.meet_processes()?;
        }
        let mut new = 0;
        self.foreign.retain(|tid| threads.contains(tid));
        for tid in threads {
            if !self.by_tid.contains_key(&tid) && !self.is_foreign(tid)? {
                let met = self.meet(tid).map(|known| {
                    self.by_tid.insert(tid, known);
                    new += 1;
                });
                unless_gone(met)?;
            }
        }
        let gathered = self.gathered.as_ref().map(|gathered| gathered.group.clone());
        let found = || gathered.map_or_else(Vec::new, |group| members::processes_within(&group));
        match self.gathered {
            Some(_) => self.usage.tell(found),
            None => {
                let processes = self.processes.keys().copied().collect();
                self.usage.tell(|| processes);
            }
        }
        Ok(new)
    }

    /// Whether a thread that was not met yet is another user's, as that of a set-uid program is: it stays as it is, but
    /// for the priority that it has inherited from a raised one.
    fn is_foreign(&mut self, tid: u32) -> io::Result<bool> {
        match ownership::check(tid) {
            Err(error) if ownership::foreign(&error).is_some() => {}
            // Meeting it tells.
            _ => return Ok(false),
        }
        if self.is_newly_foreign(tid)
            && self.complete
            && self.is_raised(sched::read(tid).ok().flatten())
        {
            unless_gone(sched::put_back(tid, self.before.lowered()))?;
        }
        Ok(true)
    }

    fn is_raised(&self, policy: Option<Attributes>) -> bool {
        let priorities = self.plan.priority..=self.plan.priority.saturating_add(1);
        matches!(policy, Some(Attributes::Fifo(priority)) if priorities.contains(&priority))
    }

    /// Of one that has ended nothing is left to do; one that has left the group keeps nothing of the
    /// reserve.
    fn let_go(&self, TeamMember { life, before, undo: kept, .. }: TeamMember) -> io::Result<()> {
        match kept {
            Some(kept) if life.is_alive() => unless_gone(kept.undo()),
            Some(kept) => {
                kept.forget();
                Ok(())
            }
            None if life.is_alive() => self.restore(life.id, &before),
            None => Ok(()),
        }
    }

    fn meet_processes(&mut self) -> io::Result<()> {
        let found = self.descendants();
        let gone: Vec<u32> =
            self.processes.keys().filter(|pid| !found.contains(pid)).copied().collect();
        for process in gone.iter().filter_map(|pid| self.processes.remove(pid)) {
            process.kept.into_iter().for_each(UndoGuard::forget);
        }
        for pid in found {
            if self.processes.contains_key(&pid) {
                continue;
            }
            let (Ok(life), Ok(descriptor)) = (TaskIdentity::of_task(pid), PidFd::open(pid)) else {
                continue;
            };
            let stopped = self.plan.freezes.then_some(UndoAction::Continue(life));
            let kept = stopped.map(|undo| self.guardian.keep(&undo)).transpose()?;
            self.processes.insert(pid, Process { life, descriptor, kept });
        }
        Ok(())
    }

    /// Whether it is in the group itself, and not in one that the program made below it.
    fn is_at_the_top(&self, tid: u32) -> bool {
        let group = self.gathered.as_ref().map(|gathered| &gathered.group);
        group.is_some_and(|group| group.threads().is_ok_and(|threads| threads.contains(&tid)))
    }
}

/// Undo action for members that may leave the group of a process unseen.
fn strays(
    target: &Target,
    plan: &TeamPolicy,
    before: &SavedScheduling,
    guardian: &Guardian,
) -> io::Result<Option<UndoGuard>> {
    let Target::Process(root) = *target else { return Ok(None) };
    let cpus = plan.pin.map(|_| before.cpus.clone());
    let (root, priority, mark) = (TaskIdentity::of_task(root)?, plan.priority, command::mark());
    guardian.keep(&UndoAction::Strays { root, priority, mark, pin: plan.pin, cpus }).map(Some)
}
