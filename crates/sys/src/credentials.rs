//! Whose process this is, and giving up what it may do beyond that.

use std::{io, mem, ptr};

use crate::privilege;

/// The real user ID of this process: who started it, whatever a set-uid program or a capability on its file gave
/// it beyond that.
#[must_use]
pub fn real() -> u32 {
    // SAFETY: no arguments, no memory, and it never fails.
    unsafe { libc::getuid() }
}

/// The primary group of a user, by the user database (getpwuid(3)); `None` if that does not know the user.
#[must_use]
pub fn primary_group(uid: u32) -> Option<u32> {
    /// An entry takes no more bytes.
    const LONGEST: usize = 1 << 20;
    let mut texts = vec![0; 1024];
    loop {
        // SAFETY: numbers and pointers, which may all be zero.
        let mut entry: libc::passwd = unsafe { mem::zeroed() };
        let mut found = ptr::null_mut();
        let (room, to) = (texts.len(), texts.as_mut_ptr());
        // SAFETY: writes to live locals and to `room` bytes of a live array.
        match unsafe { libc::getpwuid_r(uid, &raw mut entry, to, room, &raw mut found) } {
            0 => return (!found.is_null()).then_some(entry.pw_gid),
            libc::EINTR => {}
            libc::ERANGE if room < LONGEST => texts.resize(room * 2, 0),
            _ => return None,
        }
    }
}

/// Gives up all capabilities of the calling thread for good, unless root started it, which has them anyway: for work
/// that needs none. Threads that it makes later have none either.
///
/// # Errors
/// What capset(2) answers; fewer capabilities are never refused, but for a filter of system calls.
pub fn give_up_capabilities() -> io::Result<()> {
    if real() == 0 { Ok(()) } else { privilege::give_up_capabilities() }
}

#[cfg(test)]
mod tests {
    /// A program of root keeps them; so the other case is a child that has become another user and kept them.
    #[test]
    fn capabilities_are_given_up_by_all_but_root() {
        let permitted = || {
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("CapPrm:")).unwrap();
            u64::from_str_radix(line.trim(), 16).unwrap()
        };
        let said = crate::fork::child_says(10_000, || {
            let before = permitted();
            super::give_up_capabilities().unwrap();
            if super::real() != 0 {
                return permitted() == 0;
            }
            // SAFETY: numbers by value; they concern this child alone.
            let became =
                unsafe { libc::prctl(libc::PR_SET_KEEPCAPS, 1) == 0 && libc::setuid(65_534) == 0 };
            let kept = permitted() == before && (!became || before != 0);
            super::give_up_capabilities().unwrap();
            kept && (permitted() == 0 || !became)
        });
        assert!(said.unwrap());
    }

    /// passwd(5): the third and the fourth field.
    #[test]
    fn a_primary_group_is_that_of_the_database() {
        let text = std::fs::read_to_string("/etc/passwd").unwrap();
        let mut first = std::collections::BTreeMap::new();
        for line in text.lines() {
            let mut numbers = line.split(':').skip(2).map(str::parse::<u32>);
            if let (Some(Ok(uid)), Some(Ok(gid))) = (numbers.next(), numbers.next()) {
                first.entry(uid).or_insert(gid);
            }
        }
        assert_eq!(super::primary_group(0), first.get(&0).copied());
        let unknown = (1..).map(|n| u32::MAX - 1 - n).find(|uid| !first.contains_key(uid)).unwrap();
        assert_eq!(super::primary_group(unknown), None);
    }

    /// credentials(7): the first number of the line is the real one.
    #[test]
    fn it_is_what_the_kernel_shows() {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
        assert_eq!(line.split_whitespace().next(), Some(&*super::real().to_string()));
    }
}
