//! Finds threads that left their group raised before they were found, by system calls alone.
//!
//! A thread counts if its policy is that of raised members, or if it is one of timesharing priority that is kept to the
//! CPU of the group alone, as a child is that was born while its parent was lowered; if its process is in no group of a
//! reservation, and the process descends from the reserved one or carries its mark in the environment. So a thread that
//! has that policy from elsewhere is not lowered.

use std::ffi::CStr;
use std::io;

use super::acts::{affinity, close, gone, life, open_at, stat};
use super::groups::folders;
use super::undo::{ATTRIBUTES, PIN, UndoWords};
use crate::sched::{self, Attributes};
use crate::thread;

/// Parents of parents, at most.
const GENERATIONS: u32 = 256;

/// The path of each group of a reservation contains this.
const GROUP: &[u8] = b"/hourglass-";

/// Bytes read from a file at once.
const PIECE: usize = 512;

/// How often they are looked for anew: each time only children of the last ones are left.
const ROUNDS: u32 = 8;

/// Gives `SCHED_OTHER` to all of them, and their CPUs where some are written there.
pub(super) fn lower(mark: &CStr, words: &UndoWords) -> io::Result<()> {
    let mut done = Ok(());
    for _ in 0..ROUNDS {
        let mut found = false;
        let processes = open_at(libc::AT_FDCWD, c"/proc", libc::O_RDONLY | libc::O_DIRECTORY)?;
        done = folders(processes, &mut |process, name| {
            let Some(pid) = number(name) else { return Ok(()) };
            of_process(process, pid, mark, words, &mut found)
        });
        close(processes);
        if !found {
            break;
        }
    }
    done
}

fn of_process(
    process: libc::c_int,
    pid: u32,
    mark: &CStr,
    words: &UndoWords,
    found: &mut bool,
) -> io::Result<()> {
    let priority = words[ATTRIBUTES] as u8;
    let pinned = |tid| words[PIN] != 0 && thread::only_cpu_of(tid) == Some((words[PIN] - 1) as u32);
    // Whether it is raised; `None` if it does not count.
    let raised = |tid| match sched::read(tid) {
        Ok(Some(Attributes::Fifo(found))) => {
            (found == priority || found == priority.wrapping_add(1)).then_some(true)
        }
        Ok(Some(Attributes::Other(_))) => pinned(tid).then_some(false),
        _ => None,
    };
    let mut belongs = None;
    let threads = open_at(process, c"task", libc::O_RDONLY | libc::O_DIRECTORY)?;
    let done = folders(threads, &mut |_, name| {
        let Some(tid) = number(name) else { return Ok(()) };
        let Some(raised) = raised(tid) else { return Ok(()) };
        let belongs = *belongs.get_or_insert_with(|| {
            !holds(process, c"cgroup", GROUP) && (descends(pid, words) || marked(process, mark))
        });
        if !belongs {
            return Ok(());
        }
        *found = true;
        let lowered = if raised { sched::put_back(tid, Attributes::Other(0)) } else { Ok(()) };
        lowered.and(affinity(tid, words)).or_else(gone)
    });
    close(threads);
    done
}

fn number(name: &CStr) -> Option<u32> {
    let digits = name.to_bytes();
    let sum = |sum: u32, digit: &u8| {
        let digit = digit.is_ascii_digit().then(|| u32::from(digit - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    };
    if digits.is_empty() { None } else { digits.iter().try_fold(0, sum) }
}

/// Whether the process is the reserved one, or one of its ancestors is.
fn descends(pid: u32, words: &UndoWords) -> bool {
    let Some(root) = life(words) else { return false };
    let mut id = pid;
    for _ in 0..GENERATIONS {
        match stat(id) {
            _ if id == root => return true,
            Some(found) if found.parent > 1 => id = found.parent,
            _ => return false,
        }
    }
    false
}

/// Whether a file of an open folder has these bytes in it; they begin with one that is not among the others.
fn holds(folder: libc::c_int, file: &CStr, wanted: &[u8]) -> bool {
    let mut matched = 0;
    any(folder, file, |byte| {
        let again = usize::from(wanted.first() == Some(&byte));
        matched = if wanted.get(matched) == Some(&byte) { matched + 1 } else { again };
        let whole = matched == wanted.len();
        if whole {
            matched = 0;
        }
        whole
    })
}

/// Whether the mark is one of the entries of the environment with which the process began.
fn marked(process: libc::c_int, mark: &CStr) -> bool {
    let mark = mark.to_bytes();
    let mut matched = Some(0);
    !mark.is_empty()
        && any(process, c"environ", |byte| {
            let whole = byte == 0 && matched == Some(mark.len());
            matched = match matched {
                _ if byte == 0 => Some(0),
                Some(count) if mark.get(count) == Some(&byte) => Some(count + 1),
                _ => None,
            };
            whole
        })
}

/// Whether one of the bytes of a file is the one looked for; a file that cannot be read has none.
fn any(folder: libc::c_int, file: &CStr, mut found: impl FnMut(u8) -> bool) -> bool {
    let Ok(file) = open_at(folder, file, libc::O_RDONLY) else { return false };
    let mut piece = [0u8; PIECE];
    let answer = loop {
        // SAFETY: the kernel writes at most the size of the live array.
        let count = unsafe { libc::read(file, piece.as_mut_ptr().cast(), PIECE) };
        match usize::try_from(count).ok().and_then(|count| piece.get(..count)) {
            None | Some([]) => break false,
            Some(read) if read.iter().any(|byte| found(*byte)) => break true,
            Some(_) => {}
        }
    };
    close(file);
    answer
}
