//! A network of its own for the calling thread.
//!
//! Owns: the calls that make it. Must not: configure it. The kernel removes it, with all devices in it,
//! when the last thread and socket in it have gone, however they went.

use std::{io, ptr};

use crate::checked;

/// Gives the calling thread a network namespace with nothing but a loopback device that is down, and a
/// view of `/sys` that shows this namespace's devices. Threads and programs that it starts from here on
/// share both. There is no way back: use a thread that is to end.
///
/// # Errors
/// EPERM without CAP_SYS_ADMIN; ENOSYS or EINVAL on kernels without namespaces. After an error the
/// thread may have been moved: let it end.
pub fn enter_own_network() -> io::Result<()> {
    // SAFETY: takes no memory; concerns the calling thread alone.
    checked(unsafe { libc::unshare(libc::CLONE_NEWNET | libc::CLONE_NEWNS) })?;
    // Without this, the mount below would appear in all namespaces.
    mount(c"none", c"/", None, libc::MS_REC | libc::MS_PRIVATE)?;
    mount(c"sysfs", c"/sys", Some(c"sysfs"), 0)
}

fn mount(
    source: &std::ffi::CStr,
    target: &std::ffi::CStr,
    kind: Option<&std::ffi::CStr>,
    flags: libc::c_ulong,
) -> io::Result<()> {
    let kind = kind.map_or(ptr::null(), std::ffi::CStr::as_ptr);
    // SAFETY: the strings are live and end with a zero; the data argument may be null.
    checked(unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind, flags, ptr::null()) })
        .map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The thread sees a loopback device alone, others see what they saw.
    #[test]
    fn a_thread_has_a_network_of_its_own() {
        let devices = || -> Vec<_> {
            let entries = std::fs::read_dir("/sys/class/net").unwrap();
            entries.map(|entry| entry.unwrap().file_name()).collect()
        };
        let before = devices();
        let inside = std::thread::spawn(move || enter_own_network().map(|()| devices()));
        match inside.join().unwrap() {
            Ok(own) => assert!(own.iter().all(|name| name == "lo"), "{own:?}"),
            Err(error) => assert!(error.raw_os_error().is_some(), "{error}"),
        }
        assert_eq!(devices(), before);
    }
}
