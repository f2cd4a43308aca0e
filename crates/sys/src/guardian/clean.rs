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
use super::table::{PAGE, SLOTS};
use super::undo::{TaskIdentity, UndoAction, UndoWords};
use crate::runtime_folder;

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
    let stopped = stopped_guardians_of(&path);
    if !stopped.is_empty() {
        return Some(awakened(&path, &record, &head, leftover, &stopped));
    }
    if !record.take_over() {
        return Some(leftover);
    }
    Some(undo_all(&record, &head, leftover))
}

/// Guardians whose maker is gone and that were stopped (SIGSTOP) do nothing: they are let go on, and undo the record.
/// Before it is taken over: one that was stopped before it held the record would do everything once more, later.
fn awakened(
    path: &Path,
    record: &Record,
    head: &RecordHeader,
    leftover: StaleRecord,
    stopped: &[TaskIdentity],
) -> StaleRecord {
    let slots = slots_of(record);
    for guardian in stopped {
        if matches!(undo(&UndoAction::Continue(*guardian)), UndoOutcome::Refused(_)) {
            return StaleRecord { state: RecordState::Left, ..leftover };
        }
    }
    let begun = Instant::now();
    // It is removed when nothing is left of it.
    while path.exists() {
        let ended = !stopped.iter().any(TaskIdentity::is_alive);
        if ended && record.take_over() {
            return undo_all(record, head, leftover);
        }
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
/// other guardian has removed it, or it had no name yet. They are let go on, undo what is left, and end.
#[must_use]
pub fn resume_guardians() -> Vec<StaleRecord> {
    let orphans = processes().filter(|pid| is_stopped_guardian(*pid) && is_orphan(*pid));
    // All of them first: one waits for the other.
    let resumed: Vec<_> = orphans.filter_map(resumed).collect();
    let begun = Instant::now();
    let ended = |(guardian, found): (TaskIdentity, StaleRecord)| {
        while guardian.is_alive() && begun.elapsed() < UNDONE_WITHIN {
            std::thread::sleep(LOOK);
        }
        if guardian.is_alive() {
            return StaleRecord { state: RecordState::Left, ..found };
        }
        found
    };
    resumed.into_iter().map(ended).collect()
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
}

/// `None` if it has gone meanwhile, or is another user's.
fn resumed(pid: u32) -> Option<(TaskIdentity, StaleRecord)> {
    let path = PathBuf::from(format!("/proc/{pid}"));
    let own = runtime_folder::user();
    if own != 0 && fs::metadata(&path).ok()?.uid() != own {
        return None;
    }
    let name = fs::read_to_string(path.join("comm")).ok()?.trim_end().to_owned();
    let identity = TaskIdentity::of_task(pid).ok()?;
    let action = UndoAction::Continue(identity);
    let outcome = undo(&action);
    let steps = vec![UndoStep { undo: action, outcome }];
    Some((identity, StaleRecord { path, maker: pid, name, state: RecordState::Undone, steps }))
}

/// Whether a guardian's maker is gone. A guardian has a file (`PidFd`) for its maker, whose child it is, and the maker has
/// one for itself, as no guardian has: a maker that lives is no orphan, nor is what has a file for it.
fn is_orphan(pid: u32) -> bool {
    let Some(files) = numbers(pid, "fdinfo", "Pid:") else { return false };
    let parent = numbers(pid, "status", "PPid:").unwrap_or_default();
    let lives =
        |maker: u32| numbers(maker, "fdinfo", "Pid:").is_some_and(|files| files.contains(&maker));
    !files.into_iter().any(|maker| parent.contains(&maker) || lives(maker))
}

/// The numbers of processes behind `key` in a file of a process, or in all of a folder; `None` if it cannot be read. A
/// `PidFd` of a process that has ended has -1 there, which is no number.
fn numbers(pid: u32, name: &str, key: &str) -> Option<Vec<u32>> {
    let path = PathBuf::from(format!("/proc/{pid}/{name}"));
    let number = |path: PathBuf| {
        let text = fs::read_to_string(path).ok()?;
        text.lines().find_map(|line| line.strip_prefix(key))?.trim().parse().ok()
    };
    match fs::read_dir(&path) {
        Ok(files) => Some(files.flatten().filter_map(|file| number(file.path())).collect()),
        Err(_) => Some(vec![number(path)?]),
    }
}

/// Stopped guardians of a record: those that hold it, and those that were stopped before they did and have it open.
fn stopped_guardians_of(path: &Path) -> Vec<TaskIdentity> {
    let holders = holders(path);
    let has = |pid: &u32| holders.contains(pid) || has_open(*pid, path).unwrap_or(false);
    let stopped = processes().filter(|pid| is_stopped_guardian(*pid)).filter(has);
    stopped.filter_map(|pid| TaskIdentity::of_task(pid).ok()).collect()
}

fn has_open(pid: u32, path: &Path) -> io::Result<bool> {
    let wanted = fs::metadata(path)?;
    let files = fs::read_dir(format!("/proc/{pid}/fd"))?.flatten();
    let mut files = files.filter_map(|file| fs::metadata(file.path()).ok());
    Ok(files.any(|file| (file.dev(), file.ino()) == (wanted.dev(), wanted.ino())))
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

/// Whether a process is a guardian that stands by a signal that stops (proc_pid_stat(5)). One that was stopped before it
/// took its name has its maker's, and that one's page. So has a child that a maker forked for something else and that is
/// no other program yet: without its maker it is let go on as well.
fn is_stopped_guardian(pid: u32) -> bool {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    text.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with('T'))
        && (text.contains("(hourglass-guard") || (has_page(pid) && is_orphan(pid)))
}

/// Whether a process has the page of a guardian and its maker among its memory (proc_pid_maps(5)).
fn has_page(pid: u32) -> bool {
    let text = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    let ending = [b"/memfd:", PAGE.to_bytes(), b" (deleted)"].concat();
    text.split(|byte| *byte == b'\n').any(|line| line.ends_with(&ending))
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
