//! The class of an operating system's error number, and what helps against it.
//!
//! Owns: the one table of it, for interfaces of other languages, which have names or exceptions of their own.
//! Must not: know those.

/// What helps where the kernel says no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrnoClass {
    /// A privilege is missing.
    Permission,
    /// There is no more of it.
    Exhausted,
    /// Another process or thread has it.
    Busy,
    /// An argument is invalid.
    Invalid,
    /// This kernel lacks the function.
    Unsupported,
    /// Any other error.
    Other,
}

impl ErrnoClass {
    /// Of a number of `errno(3)`, as Linux has them.
    #[must_use]
    pub const fn of_errno(errno: i32) -> ErrnoClass {
        const EPERM: i32 = 1;
        const EAGAIN: i32 = 11;
        const ENOMEM: i32 = 12;
        const EACCES: i32 = 13;
        const EBUSY: i32 = 16;
        const EINVAL: i32 = 22;
        const ENFILE: i32 = 23;
        const EMFILE: i32 = 24;
        const ENOSYS: i32 = 38;
        match errno {
            EPERM | EACCES => ErrnoClass::Permission,
            EAGAIN | ENOMEM | ENFILE | EMFILE => ErrnoClass::Exhausted,
            EBUSY => ErrnoClass::Busy,
            EINVAL => ErrnoClass::Invalid,
            ENOSYS => ErrnoClass::Unsupported,
            _ => ErrnoClass::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the kernel's own words, by which `std` names some of them.
    #[test]
    fn numbers_mean_what_std_says() {
        use std::io::{Error, ErrorKind};
        for (errno, kind) in [
            (1, ErrorKind::PermissionDenied),
            (11, ErrorKind::WouldBlock),
            (12, ErrorKind::OutOfMemory),
            (13, ErrorKind::PermissionDenied),
            (16, ErrorKind::ResourceBusy),
            (22, ErrorKind::InvalidInput),
            (38, ErrorKind::Unsupported),
        ] {
            assert_eq!(Error::from_raw_os_error(errno).kind(), kind);
            let meaning = match kind {
                ErrorKind::PermissionDenied => ErrnoClass::Permission,
                ErrorKind::ResourceBusy => ErrnoClass::Busy,
                ErrorKind::InvalidInput => ErrnoClass::Invalid,
                ErrorKind::Unsupported => ErrnoClass::Unsupported,
                _ => ErrnoClass::Exhausted,
            };
            assert_eq!(ErrnoClass::of_errno(errno), meaning);
        }
        assert_eq!(ErrnoClass::of_errno(24), ErrnoClass::Exhausted);
        assert_eq!(ErrnoClass::of_errno(0), ErrnoClass::Other);
    }
}
