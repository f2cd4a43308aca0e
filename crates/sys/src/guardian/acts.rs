//! How each [`super::UndoAction`] is carried out: system calls alone, no memory taken, since a
//! process that was forked from a thread among many may do no more.

use std::ffi::CStr;
use std::io;

use super::undo::{self, HAS_CPUS, ID, STARTED, TEXT, UndoWords, WORDS};
use super::{groups, raised_threads};
use crate::core_sched::{self, Scope};
use crate::sched::{self, Attributes};
use crate::{checked, lock, thread};

/// How often a folder's removal is tried, and the pause between two tries.
const TRIES: u32 = 500;
const PAUSE_NS: i64 = 10_000_000;

/// How often members are looked for anew: each time only children of the last ones are left.
const ROUNDS: u32 = 8;

/// Bytes read from a file at once.
const PIECE: usize = 1024;

/// Carries out what is written; returns the first of several failures.
pub(super) fn carry_out(words: &UndoWords) -> io::Result<()> {
    let mut bytes = [0; (WORDS - TEXT) * 8];
    for (piece, word) in bytes.chunks_exact_mut(8).zip(&words[TEXT..]) {
        piece.copy_from_slice(&word.to_le_bytes());
    }
    let first = text(&bytes);
    let second = text(bytes.get(first.count_bytes() + 1..).unwrap_or(&[]));
    let done = match words[0] {
        undo::WRITE => write(first, second.to_bytes()),
        undo::CONTINUE => wake(words),
        undo::COOKIE => take_cookie(words),
        undo::MEMBERS => members(first, words),
        undo::THREAD => of_thread(words),
        undo::MOVE => groups::move_all(first, second),
        undo::STRAYS => raised_threads::lower(first, words),
        undo::REMOVE => remove(first, |_| Ok(())),
        undo::GROUP => remove(first, groups::remove_below),
        undo::UNHELD => remove_unheld(first),
        _ => Ok(()),
    };
    done.or_else(gone)
}

/// The text up to a zero.
fn text(bytes: &[u8]) -> &CStr {
    CStr::from_bytes_until_nul(bytes).unwrap_or_default()
}

/// Turns the error that something does not exist any more into success.
pub(super) fn gone(error: io::Error) -> io::Result<()> {
    match error.raw_os_error() {
        Some(libc::ESRCH | libc::ENOENT | libc::ENODEV) => Ok(()),
        _ => Err(error),
    }
}

fn open(path: &CStr, flags: libc::c_int) -> io::Result<libc::c_int> {
    open_at(libc::AT_FDCWD, path, flags)
}

/// A path from an open folder on.
pub(super) fn open_at(
    folder: libc::c_int,
    path: &CStr,
    flags: libc::c_int,
) -> io::Result<libc::c_int> {
    let flags = flags | libc::O_CLOEXEC | libc::O_NOCTTY;
    // SAFETY: the path is a terminated string.
    checked(unsafe { libc::openat(folder, path.as_ptr(), flags) })
}

pub(super) fn close(file: libc::c_int) {
    // SAFETY: the descriptor was opened here and has no other user.
    unsafe { libc::close(file) };
}

pub(super) fn write(path: &CStr, text: &[u8]) -> io::Result<()> {
    let file = open(path, libc::O_WRONLY)?;
    // SAFETY: reads the bytes of a live slice.
    let count = unsafe { libc::write(file, text.as_ptr().cast(), text.len()) };
    let written = if count == -1 { Err(io::Error::last_os_error()) } else { Ok(()) };
    close(file);
    written
}

/// Hands over each number in a file, also as its digits.
pub(super) fn numbers(
    folder: libc::c_int,
    path: &CStr,
    mut each: impl FnMut(u32, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let file = open_at(folder, path, libc::O_RDONLY)?;
    let (mut piece, mut digits, mut length) = ([0u8; PIECE], [0u8; 10], 0);
    let mut done = Ok(());
    loop {
        // SAFETY: the kernel writes at most the size of the live array.
        let count = unsafe { libc::read(file, piece.as_mut_ptr().cast(), PIECE) };
        let Some(read) = usize::try_from(count).ok().and_then(|count| piece.get(..count)) else {
            done = done.and(Err(io::Error::last_os_error()));
            break;
        };
        // The end of the file ends a number as well.
        let end = if read.is_empty() { &b"\n"[..] } else { read };
        for byte in end {
            if byte.is_ascii_digit() && length < digits.len() {
                digits[length] = *byte;
                length += 1;
            } else if length > 0 {
                let number = digits[..length].iter().fold(0u32, |sum, digit| {
                    sum.wrapping_mul(10).wrapping_add(u32::from(digit - b'0'))
                });
                done = done.and(each(number, &digits[..length]));
                length = 0;
            }
        }
        if read.is_empty() {
            break;
        }
    }
    close(file);
    done
}

pub(super) fn life(words: &UndoWords) -> Option<u32> {
    let id = u32::try_from(words[ID]).ok()?;
    (started(id) == Some(words[STARTED])).then_some(id)
}

fn wake(words: &UndoWords) -> io::Result<()> {
    let Some(id) = life(words) else { return Ok(()) };
    // SAFETY: takes no memory.
    checked(unsafe { libc::kill(id as libc::pid_t, libc::SIGCONT) }).map(drop)
}

/// The caller has none, and hands that on; to all threads, since those made meanwhile inherited it.
fn take_cookie(words: &UndoWords) -> io::Result<()> {
    let Some(id) = life(words) else { return Ok(()) };
    core_sched::share_to(id, Scope::Process)
}

fn of_thread(words: &UndoWords) -> io::Result<()> {
    let Some(id) = life(words) else { return Ok(()) };
    // Policy before CPUs: a thread of the deadline class cannot be given any.
    let policy = undo::attributes(words).map_or(Ok(()), |given| sched::put_back(id, given));
    policy.and(affinity(id, words))
}

pub(super) fn affinity(id: u32, words: &UndoWords) -> io::Result<()> {
    if words[HAS_CPUS] == 0 {
        return Ok(());
    }
    thread::set_affinity_of(id, undo::cpus(words))
}

fn members(list: &CStr, words: &UndoWords) -> io::Result<()> {
    let mut done = Ok(());
    for _ in 0..ROUNDS {
        let mut found = false;
        done = numbers(libc::AT_FDCWD, list, |id, _| {
            let urgent = matches!(
                sched::read(id),
                Ok(Some(
                    Attributes::Fifo(_) | Attributes::RoundRobin(_) | Attributes::Deadline { .. }
                ))
            );
            found |= urgent;
            let policy = if urgent { sched::put_back(id, Attributes::Other(0)) } else { Ok(()) };
            policy.and(affinity(id, words)).or_else(gone)
        });
        if !found {
            break;
        }
    }
    done
}

/// `before` each try.
fn remove(folder: &CStr, before: impl Fn(&CStr) -> io::Result<()>) -> io::Result<()> {
    let mut tries = 0;
    loop {
        // What cannot be removed below keeps the folder itself in use, which is reported.
        let _ = before(folder);
        // SAFETY: the path is a terminated string.
        let removed = checked(unsafe { libc::rmdir(folder.as_ptr()) }).map(drop);
        tries += 1;
        match removed {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && tries < TRIES => pause(),
            removed => return removed,
        }
    }
}

/// Nobody takes the file between the lock and its removal; one whose holder comes between is made anew by that.
fn remove_unheld(path: &CStr) -> io::Result<()> {
    let file = open(path, libc::O_RDWR | libc::O_NOFOLLOW | libc::O_NONBLOCK)?;
    let done = match lock::take_whole(file) {
        // SAFETY: the path is a terminated string.
        Ok(true) => checked(unsafe { libc::unlink(path.as_ptr()) }).map(drop),
        taken => taken.map(drop),
    };
    close(file);
    done
}

fn pause() {
    let pause = libc::timespec { tv_sec: 0, tv_nsec: PAUSE_NS as libc::c_long };
    // SAFETY: reads a live local.
    unsafe { libc::nanosleep(&raw const pause, std::ptr::null_mut()) };
}

/// When thread or process `id` began, in clock ticks since boot; `None` if it does not exist or cannot run any more.
pub(super) fn started(id: u32) -> Option<u64> {
    stat(id).map(|stat| stat.started)
}

/// Fields of `/proc/ID/stat`.
pub(super) struct Stat {
    /// The parent of its process.
    pub(super) parent: u32,
    /// When it began, in clock ticks since boot.
    pub(super) started: u64,
}

/// Of a thread or process that may still run.
pub(super) fn stat(id: u32) -> Option<Stat> {
    /// Fields behind the parent up to the start.
    const START: usize = 17;
    if !sched::is_there(id) {
        return None;
    }
    let mut path = *b"/proc/##########/stat\0";
    let name = named(&mut path, id)?;
    let file = open(name, libc::O_RDONLY).ok()?;
    let mut piece = [0u8; PIECE];
    // SAFETY: the kernel writes at most the size of the live array.
    let count = unsafe { libc::read(file, piece.as_mut_ptr().cast(), PIECE) };
    close(file);
    let line = piece.get(..usize::try_from(count).ok()?)?;
    // The name may have anything in it, also brackets and spaces.
    let behind = line.iter().rposition(|byte| *byte == b')')?;
    let mut fields = line.get(behind + 2..)?.split(|byte| *byte == b' ');
    let dead = matches!(fields.next()?, b"Z" | b"X");
    let parent = u32::try_from(number(fields.next()?)?).ok()?;
    let started = number(fields.nth(START)?)?;
    (!dead).then_some(Stat { parent, started })
}

fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0u64, |sum, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

/// Puts a number in the place of the marks in `path`; leading zeros would be another name.
fn named(path: &mut [u8; 22], id: u32) -> Option<&CStr> {
    const HEAD: &[u8] = b"/proc/";
    const TAIL: &[u8] = b"/stat\0";
    let mut room = [0u8; 10];
    let bytes = HEAD.iter().chain(digits(id, &mut room)).chain(TAIL);
    path.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
    CStr::from_bytes_until_nul(path).ok()
}

/// A number in decimal digits. Takes no memory.
pub(super) fn digits(number: u32, room: &mut [u8; 10]) -> &[u8] {
    let (mut rest, mut first) = (number, room.len());
    loop {
        first -= 1;
        room[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    &room[first..]
}
