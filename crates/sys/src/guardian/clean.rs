//! Undoes what a process left behind whose guardians were killed with it.
//!
//! Owns: reading the records in a folder of the calling user, deciding whether all processes that could undo one are
//! gone, and undoing it. What a record says is done with the rights of the calling user alone: a user who can write one
//! can do nothing with it that they could not do themselves. Must not: look at folders of other users
//! ([`crate::privilege`] makes a process of theirs).
//!
//! A thread or process is touched only if it is the one that was meant: number and start must agree, and the machine
//! must not have been started anew since.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::acts;
use super::record::{self, Record, RecordHeader, RecordMatch, UNFINISHED};
use super::table::SLOTS;
use super::undo::{TaskIdentity, UndoAction, UndoWords};
use crate::{runtime_folder, signal};

/// The folders of the calling user in which there may be records.
#[must_use]
pub fn folders() -> Vec<PathBuf> {
    runtime_folder::existing(record::FOLDER)
}

/// The name of such a folder inside that of a user.
pub const FOLDER: &str = record::FOLDER;

/// A record is being made for no longer than that.
const UNFINISHED_FOR: Duration = Duration::from_secs(60);

/// A guardian that goes on again has undone a record within that.
const UNDONE_WITHIN: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub struct StaleRecord {
    /// The record, or the guardian in `/proc`.
    pub path: PathBuf,
    /// The process that made it, or the guardian, if no record is left; 0 if that cannot be read.
    pub maker: u32,
    /// The name of that process.
    pub name: String,
    pub state: RecordState,
    /// Its steps, in the order in which they were undone.
    pub steps: Vec<UndoStep>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordState {
    /// Its maker or a guardian lives: it was left alone.
    Alive,
    /// Nothing of it is left; it was removed.
    Undone,
    /// Something could not be undone: it stays.
    Left,
    /// It is no record of this version: it stays.
    Unreadable,
}

#[derive(Debug)]
pub struct UndoStep {
    pub undo: UndoAction,
    pub outcome: UndoOutcome,
}

/// The outcome of undoing one change.
#[derive(Debug)]
pub enum UndoOutcome {
    Undone,
    /// The thread, process or file that it concerned is gone.
    Gone,
    /// It concerns a process by its number in another PID namespace.
    Elsewhere,
    Refused(io::Error),
}

/// Undoes what the records in `folder` say whose maker and guardians are gone, and removes them.
///
/// # Errors
/// The folder cannot be read.
pub fn clean(folder: &Path) -> io::Result<Vec<StaleRecord>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    paths.sort_unstable();
    Ok(paths.into_iter().filter_map(read_record).collect())
}

/// Undoes one change that no record has.
#[must_use]
pub fn undo(undo: &UndoAction) -> UndoOutcome {
    match undo.written() {
        Ok(written) => undo_one(&written, undo, RecordMatch::Here),
        Err(error) => UndoOutcome::Refused(error),
    }
}

/// `None` if it is gone meanwhile, of no interest, or this process's own.
fn read_record(path: PathBuf) -> Option<StaleRecord> {
    let name = path.file_name()?.to_str()?.to_owned();
    let unfinished = name.starts_with(UNFINISHED);
    let mut parts = name.trim_start_matches(UNFINISHED).split('-').map(str::parse::<u64>);
    let maker = parts.next()?.ok().and_then(|id| u32::try_from(id).ok())?;
    let started = parts.next()?.ok()?;
    if maker == std::process::id()
        && TaskIdentity::of_task(maker).is_ok_and(|life| life.started == started)
    {
        // To close its own record would end its lock on it.
        return None;
    }
    let bare = |state| StaleRecord {
        path: path.clone(),
        maker,
        name: String::new(),
        state,
        steps: Vec::new(),
    };
    let record = match Record::open(&path) {
        Ok(record) => record,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(_) => return Some(bare(RecordState::Unreadable)),
    };
    if unfinished {
        let old = fs::metadata(&path).ok()?.modified().ok()?.elapsed().ok()? > UNFINISHED_FOR;
        // Nothing had been changed when its maker was killed.
        if old && record.take_over() {
            let _ = fs::remove_file(&path);
        }
        return None;
    }
    let Some(head) = record.head() else { return Some(bare(RecordState::Unreadable)) };
    let label = String::from_utf8_lossy(&head.name).trim_end_matches('\0').to_owned();
    let place = head.place();
    let leftover = StaleRecord { maker: head.maker.id, name: label, ..bare(RecordState::Alive) };
    if place == RecordMatch::Here && head.maker.is_alive() {
        return Some(leftover);
    }
    if !record.take_over() {
        return Some(awakened(&path, &record, leftover));
    }
    Some(undo_all(&record, &head, leftover))
}

/// Guardians whose maker is gone and that were stopped (SIGSTOP) do nothing: they are let go on, and undo the record.
fn awakened(path: &Path, record: &Record, leftover: StaleRecord) -> StaleRecord {
    let stopped: Vec<u32> = holders(path).into_iter().filter(|pid| is_stopped(*pid)).collect();
    if stopped.is_empty() {
        return leftover;
    }
    let slots = slots_of(record);
    for pid in stopped.into_iter().filter_map(|pid| i32::try_from(pid).ok()) {
        if signal::send_to(pid, libc::SIGCONT).is_err() {
            return StaleRecord { state: RecordState::Left, ..leftover };
        }
    }
    let begun = Instant::now();
    // It is removed when nothing is left of it.
    while path.exists() {
        if begun.elapsed() > UNDONE_WITHIN {
            return leftover;
        }
        std::thread::sleep(LOOK);
    }
    let steps =
        slots.into_iter().map(|(_, _, undo)| UndoStep { undo, outcome: UndoOutcome::Undone });
    StaleRecord { state: RecordState::Undone, steps: steps.collect(), ..leftover }
}

/// What a record says, in the order in which it is undone.
fn slots_of(record: &Record) -> Vec<(usize, UndoWords, UndoAction)> {
    let read = |index| {
        let written = record.read(index)?;
        Some((index, written, UndoAction::read(&written)?))
    };
    let mut slots: Vec<_> = (0..SLOTS).filter_map(read).collect();
    slots.sort_by_key(|(_, written, _)| written[0]);
    slots
}

/// Guardians of this user, or of all for root, that were stopped (SIGSTOP) and have no maker and no record any more: the
/// command was killed while it dismissed them, and the other guardian has removed the record. They are let go on, have
/// nothing to undo, and end.
#[must_use]
pub fn resume_guardians() -> Vec<StaleRecord> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| is_stopped(*pid) && is_orphan(*pid)).filter_map(resumed).collect()
}

/// `None` if it has gone meanwhile, or is another user's.
fn resumed(pid: u32) -> Option<StaleRecord> {
    let path = PathBuf::from(format!("/proc/{pid}"));
    let own = runtime_folder::user();
    if own != 0 && fs::metadata(&path).ok()?.uid() != own {
        return None;
    }
    let identity = TaskIdentity::of_task(pid).ok()?;
    let action = UndoAction::Continue(identity);
    let outcome = undo(&action);
    let begun = Instant::now();
    while identity.is_alive() && begun.elapsed() < UNDONE_WITHIN {
        std::thread::sleep(LOOK);
    }
    let state = if identity.is_alive() { RecordState::Left } else { RecordState::Undone };
    let name = "hourglass-guard".to_owned();
    let steps = vec![UndoStep { undo: action, outcome }];
    Some(StaleRecord { path, maker: pid, name, state, steps })
}

/// Whether a guardian's maker is gone. It is a child of its maker, for which it has a file (`PidFd`): whose child it is
/// otherwise, it has none for.
fn is_orphan(pid: u32) -> bool {
    let line = |path: &Path, key: &str| -> Option<i64> {
        let text = fs::read_to_string(path).ok()?;
        text.lines().find_map(|line| line.strip_prefix(key))?.trim().parse().ok()
    };
    let folder = PathBuf::from(format!("/proc/{pid}"));
    let Ok(files) = fs::read_dir(folder.join("fdinfo")) else { return false };
    let parent = line(&folder.join("status"), "PPid:");
    !files.flatten().any(|file| line(&file.path(), "Pid:") == parent)
}

/// The processes that hold a lock on a file (proc_locks(5)).
fn holders(path: &Path) -> Vec<u32> {
    /// Fields before the process; the file follows it.
    const BEFORE: usize = 4;
    let Ok(inode) = fs::metadata(path).map(|file| file.ino()) else { return Vec::new() };
    let text = fs::read_to_string("/proc/locks").unwrap_or_default();
    let of = |line: &str| {
        let mut fields = line.split_ascii_whitespace().skip(BEFORE);
        let pid = fields.next()?.parse().ok()?;
        let number = fields.next()?.rsplit(':').next()?.parse::<u64>().ok()?;
        (number == inode).then_some(pid)
    };
    text.lines().filter_map(of).collect()
}

/// Whether a process is a guardian that stands by a signal that stops (proc_pid_stat(5)).
fn is_stopped(pid: u32) -> bool {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    text.contains("(hourglass-guard")
        && text.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with('T'))
}

fn undo_all(record: &Record, head: &RecordHeader, leftover: StaleRecord) -> StaleRecord {
    let place = head.place();
    let mut steps = Vec::new();
    // After a start of the machine nothing of it is left.
    if place != RecordMatch::Before {
        for (index, written, undo) in slots_of(record) {
            let outcome = undo_one(&written, &undo, place);
            if !matches!(outcome, UndoOutcome::Refused(_)) {
                record.clear(index);
            }
            steps.push(UndoStep { undo, outcome });
        }
    }
    let refused = steps.iter().any(|step| matches!(step.outcome, UndoOutcome::Refused(_)));
    if !refused {
        record.remove();
    }
    StaleRecord {
        state: if refused { RecordState::Left } else { RecordState::Undone },
        steps,
        ..leftover
    }
}

fn undo_one(written: &UndoWords, undo: &UndoAction, place: RecordMatch) -> UndoOutcome {
    let there = match undo {
        UndoAction::Continue(life)
        | UndoAction::Cookie(life)
        | UndoAction::Thread { thread: life, .. } => {
            if place != RecordMatch::Here {
                return UndoOutcome::Elsewhere;
            }
            life.is_alive()
        }
        UndoAction::Strays { .. } if place != RecordMatch::Here => return UndoOutcome::Elsewhere,
        UndoAction::Strays { .. } => true,
        UndoAction::Write { path, .. }
        | UndoAction::Members { list: path, .. }
        | UndoAction::Move { from: path, .. }
        | UndoAction::Remove(path)
        | UndoAction::RemoveGroup(path)
        | UndoAction::RemoveUnheld(path) => path.exists(),
    };
    match acts::carry_out(written) {
        _ if !there => UndoOutcome::Gone,
        Ok(()) => UndoOutcome::Undone,
        Err(error) => UndoOutcome::Refused(error),
    }
}
