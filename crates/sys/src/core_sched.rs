//! Core scheduling (`PR_SCHED_CORE`, Linux 5.14): threads run together on the hardware threads of a core
//! only if they have the same cookie; otherwise the kernel idles the siblings of the more urgent one.
//!
//! Owns: making, handing on and reading cookies. Must not: decide who gets one.

use std::io;

use crate::checked;

const CREATE: libc::c_ulong = 1;
const SHARE_TO: libc::c_ulong = 2;
const GET: libc::c_ulong = 0;
const PR_SCHED_CORE: libc::c_int = 62;

/// The threads that get a cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A thread alone.
    Thread,
    /// All threads of its process.
    Process,
}

/// Gives `id` a new cookie; 0 is the calling thread. New threads and children inherit it.
///
/// # Errors
/// EINVAL on a kernel without core scheduling, ENODEV where no core has siblings, ESRCH, EPERM for a task that this
/// process may not trace.
pub fn create(id: u32, scope: Scope) -> io::Result<()> {
    order(CREATE, id, scope)
}

/// Gives `id` the cookie of the calling thread, be it that it has none: then `id` has none either.
///
/// # Errors
/// As [`create`].
pub fn share_to(id: u32, scope: Scope) -> io::Result<()> {
    order(SHARE_TO, id, scope)
}

/// The cookie of thread `id`; 0 is the calling thread, and the answer 0 means that it has none. Numbers
/// of cookies tell nothing but which are the same.
///
/// # Errors
/// As [`create`].
pub fn cookie(id: u32) -> io::Result<u64> {
    let mut cookie = 0u64;
    // SAFETY: the kernel writes eight bytes to a live local.
    checked(unsafe {
        libc::prctl(
            PR_SCHED_CORE,
            GET,
            libc::c_ulong::from(id),
            0 as libc::c_ulong,
            &raw mut cookie,
        )
    })?;
    Ok(cookie)
}

fn order(what: libc::c_ulong, id: u32, scope: Scope) -> io::Result<()> {
    let scope: libc::c_ulong = match scope {
        Scope::Thread => 0,
        Scope::Process => 1,
    };
    // SAFETY: takes its arguments by value; the last one is unused.
    checked(unsafe {
        libc::prctl(PR_SCHED_CORE, what, libc::c_ulong::from(id), scope, 0 as libc::c_ulong)
    })
    .map(drop)
}

#[cfg(test)]
mod tests {
    use hourglass_skip::{Requirement, skip};

    use super::*;

    /// In a thread of its own, which takes its cookie with it.
    #[test]
    fn a_cookie_is_made_and_taken_away() {
        let answer = std::thread::spawn(|| {
            create(0, Scope::Thread)?;
            let own = cookie(0)?;
            // A thread inherits it; the process's first one has none to give.
            let inherited = std::thread::spawn(|| cookie(0)).join();
            Ok::<_, io::Error>((own, inherited.map_err(|_| io::Error::other("panic"))??))
        })
        .join()
        .unwrap();
        match answer {
            Ok((own, inherited)) => {
                assert_ne!(own, 0);
                assert_eq!(inherited, own);
                assert_eq!(cookie(0).unwrap(), 0);
            }
            Err(error) => {
                let errno = error.raw_os_error();
                assert!(
                    matches!(errno, Some(libc::EINVAL | libc::ENODEV | libc::EPERM)),
                    "{error}"
                );
                // Without siblings the kernel refuses it (ENODEV), whatever it is built with.
                let need = match errno {
                    Some(libc::ENODEV) => Requirement::SIBLINGS,
                    _ => Requirement::kernel("CONFIG_SCHED_CORE"),
                };
                skip(need, format_args!("no core scheduling: {error}"));
            }
        }
    }
}
