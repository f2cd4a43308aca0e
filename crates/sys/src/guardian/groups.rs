//! Control groups below one of ours: emptying and removing them, deepest first, by system calls alone.
//!
//! What a program makes inside its group is removed with it. A group that another of these programs made there is
//! left alone: its own guardian sees to it.

use std::ffi::CStr;
use std::io;

use super::acts::{close, gone, numbers, open_at, write};
use crate::{checked, checked_long};

/// Limit of nesting: the kernel has no limit below this one that is reached in practice.
const DEEPEST: u32 = 32;

/// How a group of ours begins its name.
const OURS: &[u8] = b"hourglass-";

/// How often members are looked for anew: each time only children of the last ones are left.
const ROUNDS: u32 = 8;

/// Entries of a folder as `getdents64(2)` writes them: number, offset, length, type, name.
const LENGTH: usize = 16;
const TYPE: usize = 18;
const NAME: usize = 19;

/// Room for entries, in words, so that they are aligned.
const ROOM: usize = 128;

/// Moves every number in the file `list` of a folder and of those below it into the file `to`.
pub(super) fn move_all(list: &CStr, to: &CStr) -> io::Result<()> {
    let bytes = list.to_bytes();
    let Some(slash) = bytes.iter().rposition(|byte| *byte == b'/') else {
        return move_list(libc::AT_FDCWD, list, to);
    };
    let mut path = [0u8; libc::PATH_MAX as usize];
    let folder = path.get_mut(..slash).zip(bytes.get(..slash));
    let (folder, above) = folder.ok_or(io::ErrorKind::InvalidInput)?;
    folder.copy_from_slice(above);
    let name = CStr::from_bytes_with_nul(list.to_bytes_with_nul().get(slash + 1..).unwrap_or(&[]));
    let name = name.map_err(|_| io::ErrorKind::InvalidInput)?;
    let folder = CStr::from_bytes_until_nul(&path).map_err(|_| io::ErrorKind::InvalidInput)?;
    let folder = open_at(libc::AT_FDCWD, folder, libc::O_RDONLY | libc::O_DIRECTORY)?;
    let done = move_below(folder, name, to, DEEPEST);
    close(folder);
    done
}

/// Of an open folder: those below it first, so that who forks there is found above.
fn move_below(folder: libc::c_int, list: &CStr, to: &CStr, deeper: u32) -> io::Result<()> {
    let below = match deeper {
        0 => Ok(()),
        _ => folders(folder, &mut |inner, _| move_below(inner, list, to, deeper - 1)),
    };
    below.and(move_list(folder, list, to).or_else(gone))
}

fn move_list(folder: libc::c_int, list: &CStr, to: &CStr) -> io::Result<()> {
    let mut done = Ok(());
    for _ in 0..ROUNDS {
        let mut found = false;
        done = numbers(folder, list, |number, digits| {
            // Members of another number space read as zero, and cannot be named.
            found |= number != 0;
            if number == 0 { Ok(()) } else { write(to, digits).or_else(gone) }
        });
        if !found {
            break;
        }
    }
    done
}

/// Empties this folder and those below it into the group above, and removes those below, deepest first; what is in use
/// stays. Who was moved away may have come back: a program that makes groups moves its processes when it likes.
pub(super) fn remove_below(top: &CStr) -> io::Result<()> {
    let folder = open_at(libc::AT_FDCWD, top, libc::O_RDONLY | libc::O_DIRECTORY)?;
    let done = remove_inner(folder, top, DEEPEST);
    close(folder);
    done
}

fn remove_inner(folder: libc::c_int, top: &CStr, deeper: u32) -> io::Result<()> {
    if deeper == 0 {
        return Ok(());
    }
    let below = folders(folder, &mut |inner, name| {
        remove_inner(inner, top, deeper - 1)?;
        // SAFETY: the name is a terminated string, and the folder is open.
        checked(unsafe { libc::unlinkat(folder, name.as_ptr(), libc::AT_REMOVEDIR) })
            .map(drop)
            .or_else(gone)
    });
    // Whoever stays keeps the folder itself in use, which is reported.
    let _ = evict(folder, top);
    below
}

/// Moves who is in an open folder into the group above `top`: thread by thread where there is such a list (version 1).
fn evict(folder: libc::c_int, top: &CStr) -> io::Result<()> {
    for list in [c"tasks", c"cgroup.procs"] {
        let mut path = [0u8; libc::PATH_MAX as usize];
        let parts = [top.to_bytes(), b"/../", list.to_bytes()];
        let bytes = parts.into_iter().flatten();
        path.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
        let to = CStr::from_bytes_until_nul(&path).map_err(|_| io::ErrorKind::InvalidInput)?;
        match move_list(folder, list, to) {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {}
            done => return done,
        }
    }
    Ok(())
}

/// Hands over each folder in an open one, opened, with its name, but for those of other programs like this; returns the
/// first of several failures.
pub(super) fn folders(
    folder: libc::c_int,
    each: &mut dyn FnMut(libc::c_int, &CStr) -> io::Result<()>,
) -> io::Result<()> {
    let mut room = [0u64; ROOM];
    let mut done = Ok(());
    loop {
        // SAFETY: the kernel writes at most the size of the live array.
        let count = checked_long(unsafe {
            libc::syscall(libc::SYS_getdents64, folder, room.as_mut_ptr(), size_of_val(&room))
        })?;
        let Some(count) = usize::try_from(count).ok().filter(|count| *count > 0) else {
            return done;
        };
        let bytes = bytes_of(&room);
        let mut at = 0;
        while let Some((length, entry)) = entry(bytes.get(at..count).unwrap_or(&[])) {
            at += length;
            let Some(name) = entry else { continue };
            let inner =
                open_at(folder, name, libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW);
            let each = inner.and_then(|inner| {
                let done = each(inner, name);
                close(inner);
                done
            });
            done = done.and(each.or_else(gone));
        }
    }
}

/// The array's bytes, as they lie in memory.
fn bytes_of(room: &[u64; ROOM]) -> [u8; ROOM * 8] {
    let mut bytes = [0; ROOM * 8];
    for (piece, word) in bytes.chunks_exact_mut(8).zip(room) {
        piece.copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}

/// The first entry: its length, and its name if it is a folder that does not belong to another program.
fn entry(bytes: &[u8]) -> Option<(usize, Option<&CStr>)> {
    let length = bytes.get(LENGTH..LENGTH + 2)?;
    let length = usize::from(u16::from_ne_bytes([length[0], length[1]]));
    let name = CStr::from_bytes_until_nul(bytes.get(NAME..length)?).ok()?;
    let kind = *bytes.get(TYPE)?;
    let folder = kind == libc::DT_DIR || kind == libc::DT_UNKNOWN;
    let text = name.to_bytes();
    let counts = folder && text != b"." && text != b".." && !text.starts_with(OURS);
    Some((length, counts.then_some(name)))
}
