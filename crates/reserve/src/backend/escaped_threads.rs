//! Threads that leave the control group of a reservation, and so its budget and its guarantee.
//!
//! A privileged program, a service manager or a user may move a process elsewhere at any time. No event reports it, so
//! a timesharing thread looks. Near looks go over the descendants of the reserved process and over those that were seen
//! in the group before; far looks over all processes for the mark that commands are started with
//! ([`crate::command::mark`]), since one whose parents have ended is no descendant. Each looks for a small part of the
//! time. The last look is made when the reservation ends, so that only a thread that leaves and ends between two looks
//! is not seen. Descendants of other users, which a reservation leaves where they are, are counted by themselves.
//!
//! Owns: that thread and what it found. Must not: bring a thread back; run at a priority that delays others.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hourglass_sys::cgroup::Group;
use hourglass_sys::sched::{self, Attributes};

use super::{AccuracyWarning, members};
use crate::command;
use crate::guardian::TaskIdentity;
use crate::ownership::{self, NotOwned};
use crate::target::Target;

/// As `ps` shows it; at most 15 bytes.
const NAME: &str = "hourglass-look";

/// Looks of each kind take at most one part in `PART` of the time.
const PART: u32 = 200;
/// How long it waits at least between near looks, and between far ones.
const NEAR: Duration = Duration::from_millis(100);
const FAR: Duration = Duration::from_secs(1);

/// A warning names at most this many threads.
const NAMED: usize = 8;

#[derive(Debug, Default)]
struct EscapedThreads {
    /// Processes that left, with their names.
    escaped: BTreeMap<u32, String>,
    /// Processes of other users that were never inside.
    foreign: BTreeSet<u32>,
}

/// The thread that looks. Dropping it ends it.
#[derive(Debug)]
pub(super) struct EscapeMonitor {
    found: Arc<Mutex<EscapedThreads>>,
    /// Closed to end it.
    goes_on: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl EscapeMonitor {
    /// Watches whether the members of `group`, which are `target` and its descendants, stay there.
    pub(super) fn watch(group: &Group, target: &Target) -> EscapeMonitor {
        let found = Arc::new(Mutex::new(EscapedThreads::default()));
        let (goes_on, ends) = channel();
        let look = EscapeScanner {
            group: group.clone(),
            target: target.clone(),
            marked: is_command(target),
            mark: command::mark().into_bytes(),
            members: Vec::new(),
            is_foreign: |id| NotOwned::find(id).is_some(),
            found: Arc::clone(&found),
        };
        let thread = std::thread::Builder::new().name(NAME.to_owned());
        // Without a thread the only look is the one at the end.
        let thread = thread.spawn(move || look.live(&ends)).ok();
        EscapeMonitor { found, goes_on: Some(goes_on), thread }
    }

    pub(super) fn end(&mut self) {
        drop(self.goes_on.take());
        if let Some(thread) = self.thread.take() {
            // What it found before a panic is kept.
            let _ = thread.join();
        }
    }

    pub(super) fn doubts(&self) -> Vec<AccuracyWarning> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.left().into_iter().chain(found.foreign()).collect()
    }
}

impl EscapedThreads {
    fn left(&self) -> Option<AccuracyWarning> {
        let named = self.escaped.iter().take(NAMED).map(|(pid, name)| format!("{pid} ({name})"));
        let mut list = named.collect::<Vec<_>>().join(", ");
        let (count, more) = (self.escaped.len(), self.escaped.len().saturating_sub(NAMED));
        if more > 0 {
            list.push_str(&format!(" and {more} more"));
        }
        let who = if count == 1 { "process" } else { "processes" };
        (count > 0).then(|| AccuracyWarning {
            id: "member-left",
            text: format!(
                "{who} {list} escaped from the control group of the reservation: outside, nothing is reserved, no limit \
                 applies, and CPU time is not counted"
            ),
            remedy: "leave it in its group: see what moved it (systemd-run, cgexec, a write to cgroup.procs); or \
                     reserve for it by itself with --pid",
        })
    }

    fn foreign(&self) -> Option<AccuracyWarning> {
        let count = self.foreign.len();
        (count > 0).then(|| AccuracyWarning {
            id: "members-of-others",
            text: format!(
                "descendants that belong to another user, as set-uid programs do, stayed outside of the control group \
                 of the reservation: {count}; nothing is reserved for them, and no limit holds them"
            ),
            remedy: "run it as root, whose reservations have all members",
        })
    }
}

impl Drop for EscapeMonitor {
    fn drop(&mut self) {
        self.end();
    }
}

struct EscapeScanner {
    group: Group,
    target: Target,
    marked: bool,
    mark: Vec<u8>,
    members: Vec<TaskIdentity>,
    is_foreign: fn(u32) -> bool,
    found: Arc<Mutex<EscapedThreads>>,
}

impl EscapeScanner {
    fn live(mut self, ends: &Receiver<()>) {
        // The starting thread may have a real-time priority, which these looks must not have.
        let _ = sched::set(Attributes::Other(0));
        let (mut near, mut far) = (NEAR, FAR);
        let mut looked_far = Instant::now();
        self.remember();
        while ends.recv_timeout(near) == Err(RecvTimeoutError::Timeout) {
            near = lasting(|| self.scan_descendants()).max(NEAR);
            if looked_far.elapsed() >= far {
                far = lasting(|| self.scan_marked()).max(FAR);
                looked_far = Instant::now();
            }
        }
        self.scan_descendants();
        self.scan_marked();
    }

    fn scan_descendants(&mut self) {
        let mut suspects = match self.target {
            Target::Process(root) => members::tree(root),
            Target::Thread(tid) => vec![tid],
        };
        suspects.extend(self.members.iter().filter(|life| life.is_alive()).map(|life| life.id));
        self.confirm_escaped(&suspects);
        self.remember();
    }

    fn remember(&mut self) {
        if matches!(self.target, Target::Process(_)) {
            let inside = members::processes_within(&self.group);
            self.members =
                inside.into_iter().filter_map(|pid| TaskIdentity::of_task(pid).ok()).collect();
        }
    }

    /// Those with the mark of this program's commands.
    fn scan_marked(&mut self) {
        if !self.marked {
            return;
        }
        let marked = |pid: &u32| {
            fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|text| text.split(|byte| *byte == 0).any(|entry| entry == self.mark))
        };
        let suspects: Vec<u32> = members::all_processes().into_iter().filter(marked).collect();
        self.confirm_escaped(&suspects);
    }

    /// Keeps those that are outside. A list shows one moment: a thread that began or ended meanwhile is not outside, so
    /// that all must be outside at a second look.
    fn confirm_escaped(&self, suspects: &[u32]) {
        let lives: Vec<TaskIdentity> =
            suspects.iter().filter_map(|id| TaskIdentity::of_task(*id).ok()).collect();
        let outside = self.outside(lives);
        if outside.is_empty() {
            return;
        }
        // Before the second look: one that has ended is not foreign, and not outside either.
        let foreign: HashSet<TaskIdentity> =
            outside.iter().copied().filter(|life| self.stayed_outside(life)).collect();
        let outside = self.outside(outside);
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        for life in outside {
            if !foreign.contains(&life) {
                found.escaped.entry(life.id).or_insert_with(|| ownership::name_of(life.id));
            } else if !found.escaped.contains_key(&life.id) {
                found.foreign.insert(life.id);
            }
        }
    }

    /// Whether it is another user's and was never seen inside: those are not taken in.
    fn stayed_outside(&self, life: &TaskIdentity) -> bool {
        let was_member = match self.target {
            Target::Process(_) => self.members.contains(life),
            Target::Thread(_) => true,
        };
        !was_member && (self.is_foreign)(life.id)
    }

    /// A group that was removed had no members left: every thread that still lives is outside.
    fn outside(&self, lives: Vec<TaskIdentity>) -> Vec<TaskIdentity> {
        let inside: HashSet<u32> = members::within(&self.group).into_iter().collect();
        let runs = |life: &TaskIdentity| {
            let state = members::state_of(life.id);
            life.is_alive() && state.is_some_and(|state| state != 'Z' && state != 'X')
        };
        lives.into_iter().filter(|life| !inside.contains(&life.id) && runs(life)).collect()
    }
}

/// Whether this process started the target as a command; otherwise it attached to it.
fn is_command(target: &Target) -> bool {
    matches!(target, Target::Process(pid) if members::parent_of(*pid) == Some(std::process::id()))
}

/// Does it, and says for how long to wait so that it takes one of [`PART`] parts of the time.
fn lasting(look: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    look();
    begun.elapsed().saturating_mul(PART)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use hourglass_sys::cgroup::Version;

    use super::*;
    use crate::testing::Program;

    /// Whether they are another user's, who left, and who stayed outside.
    type Case = (fn(u32) -> bool, Vec<u32>, Vec<u32>);

    /// The bug: a child of another user (sudo), which no reservation takes in, was reported as one that left, with a
    /// remedy that does not help.
    #[test]
    fn who_was_never_inside_and_is_anothers_did_not_leave() {
        let programs = [(); 2].map(|()| Program::sleeping());
        let [member, stranger] = programs.each_ref().map(Program::pid);
        let cases: [Case; 2] =
            [(|_| true, vec![member], vec![stranger]), (|_| false, vec![member, stranger], vec![])];
        for (is_foreign, left, foreign) in cases {
            let look = EscapeScanner {
                // The group has no members.
                group: Group::at(Version::V2, PathBuf::from("/nowhere")),
                target: Target::Process(std::process::id()),
                marked: false,
                mark: Vec::new(),
                members: vec![TaskIdentity::of_task(member).unwrap()],
                is_foreign,
                found: Arc::default(),
            };
            look.confirm_escaped(&[member, stranger]);
            let found = look.found.lock().unwrap();
            let mut expected = left.clone();
            expected.sort_unstable();
            assert_eq!(found.escaped.keys().copied().collect::<Vec<_>>(), expected);
            assert_eq!(found.foreign.iter().copied().collect::<Vec<_>>(), foreign);
            assert_eq!(found.left().map(|doubt| doubt.id), Some("member-left"));
            let of_others = found.foreign().map(|doubt| doubt.id);
            assert_eq!(of_others, (!foreign.is_empty()).then_some("members-of-others"));
        }
    }
}
