//! Whose threads this program may change.
//!
//! With `CAP_SYS_NICE` the kernel lets a process change the scheduling of every thread of the machine. Where that
//! capability comes from the file of the program, or from a service manager, the user who runs it did not have it; so
//! only root, by real user ID, may name processes of others. Everybody else may name those whose real, effective and
//! saved user ID all are the caller's own. A set-uid program has another saved user ID, whatever user started it.
//!
//! Owns: that rule, and each call by which this crate changes the scheduling of a thread that belongs to another
//! process, or stops one. Putting back what was changed is not subject to it: a thread may have executed a set-uid
//! program meanwhile. Must not: decide what is changed.
//!
//! The kernel takes numbers, which are used again, and user IDs change by `execve(2)`. So the owner is looked up right
//! before a change and right after it, and a change that hit another one is taken back at once.

use std::fs;
use std::io;

use hourglass_sys::guardian::TaskIdentity;
use hourglass_sys::pidfd::PidFd;
use hourglass_sys::sched::{self, Attributes, SavedScheduling};
use hourglass_sys::{credentials, thread};

use crate::backend::members;

/// No such process, or thread.
pub(crate) const ESRCH: i32 = 3;

/// A process or thread that is not the caller's to change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{id} ({name}) {}, and this program, started by user {caller}, changes only that user's threads; {REMEDY}", owner(*.uids, *.caller))]
pub struct NotOwned {
    /// Its process or thread ID.
    pub id: u32,
    /// Its name, as `ps` shows it, without control characters.
    pub name: String,
    /// Its real, effective and saved user ID.
    pub uids: [u32; 3],
    /// The real user ID of this program.
    pub caller: u32,
}

/// How to avoid the refusal.
pub const REMEDY: &str =
    "run it as root (sudo hourglass ...), or name a process of your own: ps -o pid,args -u $USER";

fn owner([real, effective, saved]: [u32; 3], caller: u32) -> String {
    if real == effective && effective == saved {
        format!("belongs to user {real}")
    } else if real == caller {
        format!("runs a set-uid program (user IDs {real}, {effective}, {saved})")
    } else {
        format!("belongs to user {real} (effective {effective}, saved {saved})")
    }
}

impl NotOwned {
    /// Why this program may not change the process or thread `id`; `None` if it may, or if `id` does not exist.
    #[must_use]
    pub fn find(id: u32) -> Option<NotOwned> {
        let caller = restricted()?;
        let status = members::text(&format!("/proc/{id}/status"))?;
        in_status(id, &status, caller)
    }

    /// The obstacle, without the remedy.
    #[must_use]
    pub fn cause(&self) -> String {
        let whole = self.to_string();
        whole
            .strip_suffix(REMEDY)
            .and_then(|text| text.strip_suffix("; "))
            .unwrap_or(&whole)
            .to_owned()
    }
}

/// The user to whose processes this program keeps; `None` for root, who may change all.
fn restricted() -> Option<u32> {
    Some(credentials::real()).filter(|uid| *uid != 0)
}

/// As [`NotOwned::find`], from the text of `/proc/ID/status`; a text without an owner is foreign.
fn in_status(id: u32, status: &str, caller: u32) -> Option<NotOwned> {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    let numbers = field("Uid:").unwrap_or_default().split_ascii_whitespace();
    let mut numbers = numbers.map(|number| number.parse().unwrap_or(u32::MAX));
    let uids = [(); 3].map(|()| numbers.next().unwrap_or(u32::MAX));
    if uids == [caller; 3] {
        return None;
    }
    let name = for_people(field("Name:").unwrap_or_default().trim());
    Some(NotOwned { id, name, uids, caller })
}

/// A name that others chose, for a terminal: nothing that moves its cursor or turns the text round.
pub(crate) fn for_people(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || c.is_ascii_graphic() || c == ' ';
    name.chars().map(|c| if plain(c) { c } else { '?' }).collect()
}

/// The name of process or thread `id`, as `ps` shows it, without control characters; empty if it does not exist.
#[must_use]
pub fn name_of(id: u32) -> String {
    let name = fs::read(format!("/proc/{id}/comm")).unwrap_or_default();
    let name = String::from_utf8_lossy(&name);
    for_people(name.strip_suffix('\n').unwrap_or(&name))
}

/// Whether this program may change the process or thread `id`.
///
/// # Errors
/// `PermissionDenied` with a [`NotOwned`] inside; ESRCH if `id` does not exist, or is hidden from this user.
pub(crate) fn check(id: u32) -> io::Result<()> {
    restricted().map_or(Ok(()), |caller| check_for(caller, id))
}

fn check_for(caller: u32, id: u32) -> io::Result<()> {
    let status = members::text(&format!("/proc/{id}/status"));
    let status = status.ok_or_else(|| io::Error::from_raw_os_error(ESRCH))?;
    match in_status(id, &status, caller) {
        Some(foreign) => Err(io::Error::new(io::ErrorKind::PermissionDenied, foreign)),
        None => Ok(()),
    }
}

pub(crate) fn foreign(error: &io::Error) -> Option<&NotOwned> {
    error.get_ref()?.downcast_ref()
}

/// Whether a thread or process has ended, by the answer to a call for it.
pub(crate) fn has_ended(error: &io::Error) -> bool {
    error.raw_os_error() == Some(ESRCH)
}

pub(crate) fn set_policy(tid: u32, policy: Attributes) -> io::Result<()> {
    change_policy(restricted(), tid, || sched::set_of(tid, policy))
}

/// As [`set_policy`], and what the thread forks from now on begins with `SCHED_OTHER`.
pub(crate) fn set_policy_without_children(tid: u32, policy: Attributes) -> io::Result<()> {
    change_policy(restricted(), tid, || sched::set_without_children(tid, policy))
}

fn change_policy(
    caller: Option<u32>,
    tid: u32,
    change: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    let Some(caller) = caller else { return change() };
    let before = SavedScheduling::read(tid)?;
    guarded(|| check_for(caller, tid), change, || before.restore(tid))
}

pub(crate) fn pin(tid: u32, cpus: &[u32]) -> io::Result<()> {
    let pin = |cpus: &[u32]| thread::set_affinity_of(tid, cpus.iter().copied());
    let Some(caller) = restricted() else { return pin(cpus) };
    let before = thread::affinity_of(tid)?;
    guarded(|| check_for(caller, tid), || pin(cpus), || pin(&before))
}

pub(crate) fn stop(pid: u32, process: &PidFd) -> io::Result<()> {
    check(pid)?;
    process.stop()
}

/// A change between two looks at the owner; one that hit another's thread is taken back.
fn guarded(
    check: impl Fn() -> io::Result<()>,
    change: impl FnOnce() -> io::Result<()>,
    back: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    check()?;
    change()?;
    check().inspect_err(|error| {
        if foreign(error).is_some() {
            // The returned error says that the thread was not the caller's to change.
            let _ = back();
        }
    })
}

/// Gives a thread that this program raised a lower policy, whatever user it belongs to by now, and keeps its nice
/// value: it must still be the thread that was raised. Root's programs skip this check to save time: no other thread
/// can delay them between finding a thread and changing it.
///
/// # Errors
/// As [`sched::set_of`]; ESRCH if it has ended.
pub(crate) fn lower(life: TaskIdentity, policy: Attributes) -> io::Result<()> {
    if restricted().is_some() && !life.is_alive() {
        return Err(io::Error::from_raw_os_error(ESRCH));
    }
    sched::put_back(life.id, policy)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const CALLER: u32 = 1000;

    fn with(uids: &str) -> Option<NotOwned> {
        in_status(7, &format!("Name:\tname\nTgid:\t7\nUid:\t{uids}\nGid:\t0\t0\t0\t0\n"), CALLER)
    }

    /// The bug: a copy of the command with capabilities changed threads of all users.
    #[test]
    fn real_effective_and_saved_user_are_the_callers() {
        assert_eq!(with("1000\t1000\t1000\t1000"), None);
        let says = |uids: &str, wanted: &str| {
            let foreign = with(uids).unwrap();
            assert!(foreign.cause().starts_with(&format!("7 (name) {wanted}, ")), "{foreign}");
            assert!(foreign.to_string().contains("sudo hourglass"), "{foreign}");
        };
        says("0\t0\t0\t0", "belongs to user 0");
        says("1001\t1001\t1001\t1001", "belongs to user 1001");
        // A set-uid program of root that this user started, and one that has gone back to this user for now.
        says("1000\t0\t0\t0", "runs a set-uid program (user IDs 1000, 0, 0)");
        says("1000\t1000\t0\t1000", "runs a set-uid program (user IDs 1000, 1000, 0)");
        // A service of root that acts for this user.
        says("0\t1000\t1000\t1000", "belongs to user 0 (effective 1000, saved 1000)");
        // A text without an owner is not this user's.
        assert!(with("").is_some() && with("1000").is_some() && with("x y z").is_some());
    }

    #[test]
    fn a_name_of_others_does_not_reach_the_terminal_as_it_is() {
        let foreign = in_status(7, "Name:\t\x1b[2Jx\nUid:\t0\t0\t0\t0\n", CALLER).unwrap();
        assert_eq!(foreign.name, "?[2Jx");
        // Nor where it is read by itself; one need not be text at all.
        let named = |name: &[u8]| {
            fs::write("/proc/thread-self/comm", name).unwrap();
            name_of(thread::id())
        };
        let names = std::thread::spawn(move || [named(b"\x1b[2Jx\ny"), named(b"a\xff b")]);
        assert_eq!(names.join().unwrap(), ["?[2Jx?y", "a? b"]);
    }

    /// Time of check, time of use: the number was used again, or a set-uid program was executed, between the look and
    /// the change.
    #[test]
    fn a_change_that_hit_another_is_taken_back() {
        let (own, id) = (credentials::real(), thread::id());
        let (changed, back) = (Cell::new(0), Cell::new(0));
        let count = |cell: &Cell<u32>| {
            cell.set(cell.get() + 1);
            Ok(())
        };
        let act = |check: &dyn Fn() -> io::Result<()>| {
            let done = guarded(check, || count(&changed), || count(&back));
            (done.err().map(|error| foreign(&error).cloned()), changed.take(), back.take())
        };
        assert_eq!(act(&|| check_for(own, id)), (None, 1, 0));
        // Whatever user it belongs to, the thread is not changed.
        let (refused, changed_then, _) = act(&|| check_for(own + 1, id));
        assert_eq!((refused.unwrap().unwrap().uids, changed_then), ([own; 3], 0));
        // The look that follows sees another owner.
        let looks = Cell::new(0);
        let turns = || check_for(own + looks.replace(1), id);
        let (refused, changed_then, taken_back) = act(&turns);
        assert!(refused.unwrap().is_some());
        assert_eq!((changed_then, taken_back), (1, 1));
        // An ended thread needs nothing taken back.
        let ended = check_for(own, u32::MAX >> 1).unwrap_err();
        assert_eq!(ended.raw_os_error(), Some(ESRCH));
    }
}
